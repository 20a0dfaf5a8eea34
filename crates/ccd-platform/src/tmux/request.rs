//! What is asked of tmux in one line, and how its blocks are read as one answer.
//!
//! What lives here: command lines and the collection of their blocks; pure. What never does: I/O, retries, deadlines.

use std::sync::Arc;

use ccd_model::intent::{Key, KeyGuard};
use ccd_ports::{raw::PaneMeta, session::GuardFormats};

use super::{PANE, protocol::Block, words::quote};

/// What a capture says of the pane; the title last, since it may hold anything.
const META: &str = "#{window_width} #{window_height} #{alternate_on} #{pane_dead} #{cursor_x} #{cursor_y} #{pane_title}";

const FIRED: &str = "FIRED";
const HELD: &str = "HELD";

/// One line for tmux and what its answer must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The line with its `\n`.
    pub(crate) line: Arc<str>,
    /// How its blocks are read.
    pub(crate) shape: Shape,
}

/// How the blocks of an answer are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The pane's state, then its rows.
    Capture,
    /// The test's own block, then what the branch printed.
    Key,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A capture: the pane's state and its rows, blank rows at the end included.
    Frame(PaneMeta, Vec<u8>),
    /// The key was pressed.
    Fired,
    /// The key was not pressed.
    Held {
        /// A dialog is painted.
        dialog: bool,
    },
    /// tmux refused before anything was done, or the answer has the wrong form.
    Failed(String),
}

/// A capture with the pane's state, atomic.
pub(crate) fn capture() -> Request {
    Request {
        line: format!(
            "display-message -p -t {PANE} {} ; capture-pane -p -t {PANE}\n",
            quote(META)
        )
        .into(),
        shape: Shape::Capture,
    }
}

/// A key that is pressed only if the guard holds at that very moment inside the server.
pub(crate) fn key(key: Key, guard: KeyGuard, formats: &GuardFormats) -> Request {
    let dialog = &formats.dialog;
    let screen = match guard {
        KeyGuard::Composer => formats.composer.clone(),
        KeyGuard::EmptyComposer => format!("#{{&&:{},{}}}", formats.composer, formats.empty),
        KeyGuard::Busy => format!("#{{&&:#{{==:{dialog},0}},{}}}", formats.busy),
        KeyGuard::TallComposer => format!("#{{||:{},{}}}", formats.composer, formats.tall),
        KeyGuard::NoDialog => format!("#{{==:{dialog},0}}"),
    };
    // In a mode of tmux itself (a copy mode) a key would not reach the program; a dead pane takes none.
    let condition = format!("#{{&&:#{{==:#{{pane_in_mode}}#{{pane_dead}},00}},{screen}}}");
    let press = format!(
        "send-keys -t {PANE} {} ; display-message -p {FIRED}",
        name(key)
    );
    let hold = format!(
        "display-message -p -t {PANE} {}",
        quote(&format!("{HELD} {dialog}"))
    );
    Request {
        line: format!(
            "if-shell -F -t {PANE} {} {} {}\n",
            quote(&condition),
            quote(&press),
            quote(&hold)
        )
        .into(),
        shape: Shape::Key,
    }
}

/// tmux's name of a key.
pub(crate) fn name(key: Key) -> &'static str {
    match key {
        Key::Enter => "Enter",
        Key::Escape => "Escape",
        Key::CtrlG => "C-g",
        Key::Backspace => "BSpace",
    }
}

/// An answer that is not whole yet.
#[derive(Debug)]
pub(crate) struct Pending {
    shape: Shape,
    meta: Option<PaneMeta>,
    blocks: usize,
}

impl Pending {
    pub(crate) fn new(shape: Shape) -> Self {
        Self {
            shape,
            meta: None,
            blocks: 0,
        }
    }

    /// Takes the next block; gives the answer when it is whole.
    pub(crate) fn feed(&mut self, block: Block) -> Option<Reply> {
        self.blocks += 1;
        if !block.ok {
            // An error ends the line; in both shapes it comes before anything was pressed.
            let text = String::from_utf8_lossy(&block.body);
            return Some(Reply::Failed(text.trim_end().to_owned()));
        }
        match self.shape {
            Shape::Capture => self.capture(block),
            Shape::Key => self.key(&block),
        }
    }

    fn capture(&mut self, block: Block) -> Option<Reply> {
        let Some(meta) = self.meta.take() else {
            let text = String::from_utf8_lossy(&block.body);
            self.meta = parse_meta(text.trim_end_matches('\n'));
            // Without the state the rows still come, and must not be taken for another answer.
            if self.meta.is_none() {
                self.meta = Some(PaneMeta::default());
            }
            return None;
        };
        Some(if meta.rows == 0 || block.lines != usize::from(meta.rows) {
            Reply::Failed(format!(
                "a capture of {} rows for a pane of {}",
                block.lines, meta.rows
            ))
        } else {
            Reply::Frame(meta, block.body)
        })
    }

    fn key(&self, block: &Block) -> Option<Reply> {
        let text = String::from_utf8_lossy(&block.body);
        let text = text.trim_end_matches('\n');
        if text == FIRED {
            return Some(Reply::Fired);
        }
        if let Some(dialog) = text.strip_prefix(HELD) {
            let dialog = dialog.trim();
            return Some(Reply::Held {
                dialog: !dialog.is_empty() && dialog != "0",
            });
        }
        // The blocks of the test and of the key are empty; more of them is another protocol.
        (self.blocks > 3).then(|| Reply::Failed("an answer without a verdict".to_owned()))
    }
}

fn parse_meta(line: &str) -> Option<PaneMeta> {
    let mut words = line.splitn(7, ' ');
    let mut number = || words.next()?.parse::<u16>().ok();
    Some(PaneMeta {
        cols: number()?,
        rows: number()?,
        alternate: number()? != 0,
        dead: number()? != 0,
        cursor: (number()?, number()?),
        title: words.next().unwrap_or_default().into(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn block(ok: bool, body: &str) -> Block {
        Block {
            number: 1,
            own: true,
            ok,
            lines: body.lines().count(),
            body: body.into(),
        }
    }

    fn formats() -> GuardFormats {
        GuardFormats {
            composer: "#{C/r:^it's}".into(),
            empty: "#{C/r:^E}".into(),
            busy: "#{C/r:^B}".into(),
            tall: "#{C/r:^T}".into(),
            dialog: "#{C/r:^D}".into(),
        }
    }

    #[test]
    fn a_guarded_key_is_one_line_and_quotes_are_nested() {
        let request = key(Key::CtrlG, KeyGuard::Composer, &formats());
        assert_eq!(
            &*request.line,
            "if-shell -F -t %0 '#{&&:#{==:#{pane_in_mode}#{pane_dead},00},#{C/r:^it'\\''s}}' \
             'send-keys -t %0 C-g ; display-message -p FIRED' \
             'display-message -p -t %0 '\\''HELD #{C/r:^D}'\\'''\n"
        );
        let request = key(Key::Escape, KeyGuard::NoDialog, &formats());
        assert!(request.line.contains(",#{==:#{C/r:^D},0}}"));
        let request = key(Key::Enter, KeyGuard::TallComposer, &formats());
        assert!(
            request.line.contains(",#{||:#{C/r:^it'\\''s},#{C/r:^T}}}"),
            "{}",
            request.line
        );
    }

    #[test]
    fn a_capture_is_read_with_a_title_of_any_form() {
        let mut pending = Pending::new(Shape::Capture);
        let meta = "250 2 0 1 3 4 a title 9\n";
        assert_eq!(pending.feed(block(true, meta)), None);
        let Some(Reply::Frame(meta, rows)) = pending.feed(block(true, "x\n\n")) else {
            panic!("no frame");
        };
        assert_eq!(rows, b"x\n\n");
        assert_eq!((meta.cols, meta.rows, meta.cursor), (250, 2, (3, 4)));
        assert_eq!(
            (meta.alternate, meta.dead, &*meta.title),
            (false, true, "a title 9")
        );
    }

    #[test]
    fn a_capture_with_another_number_of_rows_fails() {
        for (meta, rows) in [("250 3 0 0 0 0 ", "x\ny\n"), ("no numbers", "x\n")] {
            let mut pending = Pending::new(Shape::Capture);
            assert_eq!(pending.feed(block(true, meta)), None);
            let reply = pending.feed(block(true, rows));
            assert!(matches!(reply, Some(Reply::Failed(_))), "{meta}");
        }
    }

    #[test]
    fn the_verdict_of_a_key_is_its_last_block() {
        let cases: &[(&[&str], Reply)] = &[
            (&["", "", "FIRED\n"], Reply::Fired),
            (&["", "HELD 0\n"], Reply::Held { dialog: false }),
            (&["", "HELD \n"], Reply::Held { dialog: false }),
            (&["", "HELD 31\n"], Reply::Held { dialog: true }),
        ];
        for (bodies, expected) in cases {
            let mut pending = Pending::new(Shape::Key);
            let replies: Vec<_> = bodies
                .iter()
                .map(|b| pending.feed(block(true, b)))
                .collect();
            let (last, before) = replies.split_last().unwrap();
            assert_eq!(last.as_ref(), Some(expected));
            assert!(before.iter().all(Option::is_none));
        }
    }

    #[test]
    fn an_error_block_ends_either_answer() {
        for shape in [Shape::Capture, Shape::Key] {
            let reply = Pending::new(shape).feed(block(false, "parse error: x\n"));
            assert_eq!(reply, Some(Reply::Failed("parse error: x".into())));
        }
    }
}
