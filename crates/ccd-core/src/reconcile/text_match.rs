//! Matches texts: streamed chunks with the transcript block that finalizes them, and painted composer text with the prompt that it came from.

use ccd_model::ids::{MessageKey, TurnKey};

use crate::state::Domain;

/// So many equal characters make a folded composer text consistent with a prompt.
const CONSISTENT: usize = 16;

/// The streamed message of `turn` that a transcript block finalizes: the oldest one that is not final and agrees with the text.
pub(crate) fn streamed(d: &Domain, turn: TurnKey, block: &str) -> Option<MessageKey> {
    let block = block.trim();
    d.turn(turn)?
        .messages
        .iter()
        .filter_map(|key| d.messages.get(key))
        .find(|message| {
            let text = message.text.trim();
            !message.finalized
                && !text.is_empty()
                && (block == text || block.starts_with(text) || text.starts_with(block))
        })
        .map(|message| message.key)
}

/// Whether a painted composer text may be `prompt`: equal without white space, or with the same beginning where Claude folds long text.
pub(crate) fn composer_shows(prompt: &str, painted: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
    let strip = |c: &char| !c.is_whitespace();
    let (p, q) = (letters(prompt), letters(painted));
    let common = prompt
        .chars()
        .filter(strip)
        .zip(painted.chars().filter(strip))
        .take_while(|(a, b)| a == b)
        .count();
    q > 0 && ((p == q && common == p) || (common >= CONSISTENT && p > CONSISTENT))
}

#[cfg(test)]
mod tests {
    use super::composer_shows;

    #[test]
    fn the_same_text_wrapped_differently_is_the_prompt() {
        assert!(composer_shows(
            "fix the bug\nthen stop",
            "fix the bug then\nstop"
        ));
    }

    #[test]
    fn a_folded_long_text_is_consistent_with_its_beginning() {
        assert!(composer_shows(
            "a long prompt that goes on and on and on",
            "a long prompt that go …[...Truncated text #1 +2 lines...]…"
        ));
    }

    #[test]
    fn other_text_and_a_prefix_of_a_short_prompt_are_not_the_prompt() {
        assert!(!composer_shows("fix the bug", "fix the bus"));
        assert!(!composer_shows("fix", "fix the bug"));
        assert!(!composer_shows("fix", ""));
    }
}
