//! Telling a new frame from the one before.
//!
//! What lives here: the comparison and the rule how often "the same" is told; pure. What never does: taking captures.

use std::sync::Arc;

use ccd_ports::raw::PaneMeta;

/// How often in a row an unasked-for repetition is told.
const TOLD_SAME: u8 = 2;

/// What is told of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// It differs from the one before: its text.
    Frame(Arc<str>),
    /// It is the one before.
    Same,
    /// It is the one before, which was told often enough.
    Nothing,
}

/// The last frame.
#[derive(Debug, Default)]
pub(crate) struct Differ {
    last: Option<(PaneMeta, Arc<str>)>,
    same: u8,
}

impl Differ {
    /// Compares; `asked` captures are always told.
    pub(crate) fn accept(&mut self, meta: &PaneMeta, rows: &[u8], asked: bool) -> News {
        let text = String::from_utf8_lossy(rows);
        let text = text.trim_end_matches('\n');
        if let Some((last_meta, last_text)) = &self.last
            && last_meta == meta
            && &**last_text == text
        {
            if !asked && self.same >= TOLD_SAME {
                return News::Nothing;
            }
            self.same = self.same.saturating_add(1);
            return News::Same;
        }
        let text: Arc<str> = text.into();
        self.last = Some((meta.clone(), Arc::clone(&text)));
        self.same = 0;
        News::Frame(text)
    }

    /// The next capture is told in full.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repetition_is_told_twice_unless_asked_for() {
        let mut differ = Differ::default();
        let meta = PaneMeta::default();
        assert_eq!(
            differ.accept(&meta, b"a\n\n\n", false),
            News::Frame("a".into())
        );
        let told: Vec<News> = [false, false, false, true, false]
            .map(|asked| differ.accept(&meta, b"a\n", asked))
            .into();
        assert_eq!(
            told,
            [
                News::Same,
                News::Same,
                News::Nothing,
                News::Same,
                News::Nothing
            ]
        );
        assert_eq!(differ.accept(&meta, b"b\n", false), News::Frame("b".into()));
        assert_eq!(differ.accept(&meta, b"b\n", false), News::Same);
    }

    #[test]
    fn the_state_of_the_pane_counts_and_a_forgotten_frame_is_new() {
        let mut differ = Differ::default();
        let meta = PaneMeta::default();
        let other = PaneMeta {
            title: "x".into(),
            ..meta.clone()
        };
        differ.accept(&meta, b"a", false);
        assert_eq!(differ.accept(&other, b"a", false), News::Frame("a".into()));
        differ.forget();
        assert_eq!(differ.accept(&other, b"a", false), News::Frame("a".into()));
    }
}
