//! What may be sent: removes beforehand what Claude's composer would alter, so that the receipt can be compared exactly; refuses what would not be a prompt.

use alloc::{string::String, sync::Arc, vec::Vec};

use ccd_model::{
    command::Refusal,
    outcome::{Normalization, Normalized},
};

/// Largest prompt, bytes after normalisation.
pub const MAX_PROMPT_BYTES: u64 = 4 * 1_024 * 1_024;

/// What happens to a character in the composer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Newline,
    Remove(Normalization),
}

/// The table of what the composer alters. Joiners inside emoji and scripts, variation selectors and combining marks stay.
const FATES: &[(u32, u32, Fate)] = &[
    (0x00, 0x08, Fate::Remove(Normalization::ControlCharacters)),
    (0x0B, 0x0C, Fate::Newline),
    (0x0E, 0x1F, Fate::Remove(Normalization::ControlCharacters)),
    (0x7F, 0x84, Fate::Remove(Normalization::ControlCharacters)),
    (0x85, 0x85, Fate::Newline),
    (0x86, 0x9F, Fate::Remove(Normalization::ControlCharacters)),
    (0xAD, 0xAD, Fate::Remove(Normalization::InvisibleCharacters)),
    (
        0x200B,
        0x200B,
        Fate::Remove(Normalization::InvisibleCharacters),
    ),
    (0x200F, 0x200F, Fate::Remove(Normalization::BidiMarks)),
    (0x2028, 0x2029, Fate::Newline),
    (0x202A, 0x202E, Fate::Remove(Normalization::BidiMarks)),
    (0x2066, 0x2069, Fate::Remove(Normalization::BidiMarks)),
    (
        0xFEFF,
        0xFEFF,
        Fate::Remove(Normalization::InvisibleCharacters),
    ),
    (
        0xE0000,
        0xE007F,
        Fate::Remove(Normalization::InvisibleCharacters),
    ),
];

fn fate(c: char) -> Fate {
    if (' '..='~').contains(&c) || c == '\n' || c == '\t' || c == '\r' {
        return Fate::Keep;
    }
    let code = u32::from(c);
    FATES
        .iter()
        .find(|(from, to, _)| (*from..=*to).contains(&code))
        .map_or(Fate::Keep, |(_, _, fate)| *fate)
}

/// Characters that the composer trims from the right.
fn trimmed(c: char) -> bool {
    c.is_whitespace()
}

/// Normalises `text` and checks that it is a prompt.
///
/// `exit_words` end the program when they are sent alone, in whatever white space: refused always. With `as_text`, what looks like a
/// command is sent as text, with a leading space.
/// CRLF stays CRLF: the composer keeps it.
///
/// # Errors
/// A refusal; nothing is sent.
pub fn normalize(
    text: &str,
    as_text: bool,
    exit_words: &[Arc<str>],
) -> Result<Normalized, Refusal> {
    let mut clean = String::with_capacity(text.len());
    let mut changes = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match fate(c) {
            Fate::Keep if c == '\r' && chars.peek() != Some(&'\n') => {
                clean.push('\n');
                changes.push(Normalization::LineEndings);
            }
            Fate::Keep => clean.push(c),
            Fate::Newline => {
                clean.push('\n');
                changes.push(Normalization::LineEndings);
            }
            Fate::Remove(what) => changes.push(what),
        }
    }
    let kept = clean.trim_end_matches(trimmed).len();
    if kept < clean.len() {
        clean.truncate(kept);
        changes.push(Normalization::TrailingSpace);
    }
    if clean.is_empty() {
        return Err(Refusal::EmptyPrompt);
    }
    // A leading space does not protect an exit word: Claude trims before it compares.
    if let Some(exit) = exit_word(&clean, exit_words) {
        return Err(exit);
    }
    if let Some(refusal) = command_like(&clean) {
        if !as_text {
            return Err(refusal);
        }
        clean.insert(0, ' ');
        changes.push(Normalization::AsText);
    }
    let bytes = u64::try_from(clean.len()).unwrap_or(u64::MAX);
    if bytes > MAX_PROMPT_BYTES {
        return Err(Refusal::TooLarge {
            bytes,
            limit: MAX_PROMPT_BYTES,
        });
    }
    changes.sort_unstable();
    changes.dedup();
    Ok(Normalized {
        text: Arc::from(clean),
        changes,
    })
}

fn exit_word(text: &str, exit_words: &[Arc<str>]) -> Option<Refusal> {
    let alone = text.trim();
    let exit = exit_words.iter().find(|exit| &***exit == alone)?;
    Some(Refusal::ExitWord { word: exit.clone() })
}

fn command_like(text: &str) -> Option<Refusal> {
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    is_command(word).then(|| Refusal::LooksLikeCommand {
        word: Arc::from(word),
    })
}

/// `/[A-Za-z][\w:-]*`
fn is_command(word: &str) -> bool {
    let mut rest = word.chars();
    rest.next() == Some('/')
        && rest.next().is_some_and(|c| c.is_ascii_alphabetic())
        && rest.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-'))
}
