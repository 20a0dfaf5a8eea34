//! The control protocol of tmux as a pure parser: bytes in, events out.
//!
//! What lives here: lines into blocks and notices. What never does: I/O, or knowledge of what was asked.
//!
//! A block ends only at the exact triple (time, number, flags) that began it: a captured screen line may itself look
//! like `%end`.

/// Longest line, in bytes.
pub const MAX_LINE: usize = 1024 * 1024;

/// Largest block body, in bytes.
pub const MAX_BODY: usize = 16 * 1024 * 1024;

/// The answer to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// tmux's number of the command.
    pub number: u64,
    /// It answers a command of this client.
    pub own: bool,
    /// It ended with `%end`, not `%error`.
    pub ok: bool,
    /// Number of lines.
    pub lines: usize,
    /// The lines, each with its `\n`.
    pub body: Vec<u8>,
}

/// One thing that tmux said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A whole block.
    Block(Block),
    /// `%exit`: the client ends; with the reason, if one was given.
    Exit(String),
    /// Another notice: its name without `%`, and the rest of its line.
    Notice {
        /// Name.
        name: String,
        /// Operands as they stand.
        rest: String,
    },
    /// A line outside of a block that is no notice.
    Stray,
    /// A line or a body over its limit. The stream cannot be followed any more; nothing comes after this.
    Overflow,
}

/// The parser's state between two reads.
#[derive(Debug, Default)]
pub struct Parser {
    /// The line that has no end yet.
    line: Vec<u8>,
    open: Option<Open>,
    overflown: bool,
}

#[derive(Debug)]
struct Open {
    /// The triple as text.
    guard: Vec<u8>,
    number: u64,
    own: bool,
    lines: usize,
    body: Vec<u8>,
}

impl Parser {
    /// Reads `bytes`, in chunks of any size, and hands each event to `sink`.
    pub fn push(&mut self, bytes: &[u8], mut sink: impl FnMut(Event)) {
        let mut rest = bytes;
        while !self.overflown {
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(rest);
                self.limit(&mut sink);
                return;
            };
            let (head, tail) = rest.split_at(end);
            rest = tail.get(1..).unwrap_or_default();
            if self.line.is_empty() && head.len() <= MAX_LINE {
                self.take(head, &mut sink);
            } else {
                self.line.extend_from_slice(head);
                self.limit(&mut sink);
                if !self.overflown {
                    let line = std::mem::take(&mut self.line);
                    self.take(&line, &mut sink);
                    self.line = line;
                    self.line.clear();
                }
            }
        }
    }

    fn limit(&mut self, sink: &mut impl FnMut(Event)) {
        let body = self.open.as_ref().map_or(0, |open| open.body.len());
        if !self.overflown && (self.line.len() > MAX_LINE || body > MAX_BODY) {
            self.overflown = true;
            self.line = Vec::new();
            self.open = None;
            sink(Event::Overflow);
        }
    }

    /// One whole line without its end.
    fn take(&mut self, line: &[u8], sink: &mut impl FnMut(Event)) {
        if let Some(open) = &mut self.open {
            let ok = match line.strip_prefix(b"%end ") {
                Some(guard) if guard == open.guard => Some(true),
                _ => match line.strip_prefix(b"%error ") {
                    Some(guard) if guard == open.guard => Some(false),
                    _ => None,
                },
            };
            match ok {
                None => {
                    open.lines += 1;
                    open.body.extend_from_slice(line);
                    open.body.push(b'\n');
                    self.limit(sink);
                }
                Some(ok) => {
                    if let Some(open) = self.open.take() {
                        sink(Event::Block(Block {
                            number: open.number,
                            own: open.own,
                            ok,
                            lines: open.lines,
                            body: open.body,
                        }));
                    }
                }
            }
            return;
        }
        if let Some(guard) = line.strip_prefix(b"%begin ")
            && let Some((number, own)) = triple(guard)
        {
            self.open = Some(Open {
                guard: guard.to_vec(),
                number,
                own,
                lines: 0,
                body: Vec::new(),
            });
            return;
        }
        sink(notice(line));
    }
}

/// `TIME NUMBER FLAGS`, all decimal; gives the number and whether the block answers this client.
fn triple(guard: &[u8]) -> Option<(u64, bool)> {
    let text = std::str::from_utf8(guard).ok()?;
    let mut words = text.split(' ');
    let _time: u64 = words.next()?.parse().ok()?;
    let number = words.next()?.parse().ok()?;
    let flags: u64 = words.next()?.parse().ok()?;
    words.next().is_none().then_some((number, flags & 1 == 1))
}

fn notice(line: &[u8]) -> Event {
    let text = String::from_utf8_lossy(line);
    let Some(text) = text.strip_prefix('%') else {
        return Event::Stray;
    };
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    if name == "exit" {
        Event::Exit(rest.to_owned())
    } else if !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') {
        Event::Notice {
            name: name.to_owned(),
            rest: rest.to_owned(),
        }
    } else {
        Event::Stray
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn parse(chunks: &[&[u8]]) -> Vec<Event> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for chunk in chunks {
            parser.push(chunk, |event| events.push(event));
        }
        events
    }

    fn block(number: u64, own: bool, ok: bool, lines: &[&str]) -> Event {
        Event::Block(Block {
            number,
            own,
            ok,
            lines: lines.len(),
            body: lines
                .iter()
                .flat_map(|l| [l, "\n"])
                .collect::<String>()
                .into(),
        })
    }

    #[test]
    fn the_greeting_and_an_answer_are_told_apart() {
        let text = "%begin 17 268 0\n%end 17 268 0\n%session-changed $0 ccd\n\
                    %begin 17 273 1\nhello\n\n%end 17 273 1\n%exit server exited\n";
        let expected = vec![
            block(268, false, true, &[]),
            Event::Notice {
                name: "session-changed".into(),
                rest: "$0 ccd".into(),
            },
            block(273, true, true, &["hello", ""]),
            Event::Exit("server exited".into()),
        ];
        assert_eq!(parse(&[text.as_bytes()]), expected);
    }

    #[test]
    fn only_the_exact_triple_ends_a_block() {
        for fake in [
            "%end 17 5 0",
            "%end 17 6 1",
            "%end 16 5 1",
            "%end 17 5 1 ",
            "%end 17 5 1x",
            " %end 17 5 1",
            "%error 17 4 1",
            "%end",
            "%begin 17 6 1",
            "%exit",
        ] {
            let text = format!("%begin 17 5 1\n{fake}\nlast\n%error 17 5 1\n");
            assert_eq!(
                parse(&[text.as_bytes()]),
                [block(5, true, false, &[fake, "last"])],
                "{fake}"
            );
        }
    }

    #[test]
    fn what_is_no_notice_is_stray() {
        for line in [
            "",
            "text",
            "%",
            "% x",
            "%End 1 2 1",
            "%begin 1 2",
            "%begin a b c",
        ] {
            let events = parse(&[format!("{line}\n").as_bytes()]);
            let malformed_begin = line.starts_with("%begin");
            assert_eq!(events.len(), 1, "{line}");
            assert_eq!(events[0] == Event::Stray, !malformed_begin, "{line}");
        }
    }

    #[test]
    fn an_endless_line_and_an_endless_body_end_the_stream_once() {
        let line = vec![b'x'; MAX_LINE + 2];
        assert_eq!(parse(&[&line, b"\n%exit\n"]), [Event::Overflow]);
        let mut parser = Parser::default();
        let mut events = Vec::new();
        parser.push(b"%begin 1 2 1\n", |event| events.push(event));
        let mut line = vec![b'x'; MAX_LINE];
        line.push(b'\n');
        for _ in 0..=(MAX_BODY / MAX_LINE) {
            parser.push(&line, |event| events.push(event));
        }
        parser.push(b"%end 1 2 1\n", |event| events.push(event));
        assert_eq!(events, [Event::Overflow]);
    }

    fn line() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(b"%begin 1 2 1".to_vec()),
            Just(b"%end 1 2 1".to_vec()),
            Just(b"%error 1 2 1".to_vec()),
            Just(b"%end 1 3 1".to_vec()),
            Just(b"%session-changed $0 ccd".to_vec()),
            Just(b"%exit".to_vec()),
            Just("❯\u{a0}hi".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>().prop_filter("line end", |b| *b != b'\n'), 0..8),
        ]
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            lines in proptest::collection::vec(line(), 0..24),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..24),
        ) {
            let bytes: Vec<u8> = lines.into_iter().flat_map(|mut l| { l.push(b'\n'); l }).collect();
            let whole = parse(&[&bytes]);
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(&parse(&chunks), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&parse(&single), &whole);
        }

        #[test]
        fn a_block_gives_back_every_screen(rows in proptest::collection::vec("[^\n]{0,20}", 0..80)) {
            let rows: Vec<String> = rows.into_iter().filter(|row| row != "%end 9 8 1" && row != "%error 9 8 1").collect();
            let body: String = rows.iter().flat_map(|row| [row.as_str(), "\n"]).collect();
            let text = format!("%begin 9 8 1\n{body}%end 9 8 1\n");
            let events = parse(&[text.as_bytes()]);
            prop_assert_eq!(events, vec![Event::Block(Block {
                number: 8, own: true, ok: true, lines: rows.len(), body: body.into_bytes(),
            })]);
        }
    }
}
