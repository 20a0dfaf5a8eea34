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

const CONTROL: Fate = Fate::Remove(Normalization::ControlCharacters);
const INVISIBLE: Fate = Fate::Remove(Normalization::InvisibleCharacters);
const BIDI: Fate = Fate::Remove(Normalization::BidiMarks);

/// The table of what the composer alters or may alter. Joiners and variation selectors depend on their neighbours and are not in it;
/// combining marks stay.
const FATES: &[(u32, u32, Fate)] = &[
    (0x00, 0x08, CONTROL),
    (0x0B, 0x0C, Fate::Newline),
    (0x0E, 0x1F, CONTROL),
    (0x7F, 0x84, CONTROL),
    (0x85, 0x85, Fate::Newline),
    (0x86, 0x9F, CONTROL),
    (0xAD, 0xAD, INVISIBLE),
    (0x034F, 0x034F, INVISIBLE),
    (0x061C, 0x061C, BIDI),
    (0x115F, 0x1160, INVISIBLE),
    (0x17B4, 0x17B5, INVISIBLE),
    (0x180E, 0x180E, INVISIBLE),
    (0x200B, 0x200B, INVISIBLE),
    (0x200E, 0x200F, BIDI),
    (0x2028, 0x2029, Fate::Newline),
    (0x202A, 0x202E, BIDI),
    (0x2060, 0x2065, INVISIBLE),
    (0x2066, 0x2069, BIDI),
    (0x206A, 0x206F, INVISIBLE),
    (0x3164, 0x3164, INVISIBLE),
    (0xFEFF, 0xFEFF, INVISIBLE),
    (0xFFA0, 0xFFA0, INVISIBLE),
    (0xFFF9, 0xFFFB, INVISIBLE),
    (0x1D173, 0x1D17A, INVISIBLE),
    (0xE0000, 0xE0FFF, INVISIBLE),
];

/// Whether a joiner or a variation selector stands where it means something: between two characters outside ASCII, or as the selector of
/// one, or of a keycap's digit.
fn joins(c: char, before: Option<char>, after: Option<char>) -> bool {
    let outside = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !c.is_whitespace());
    match c {
        '\u{200C}' | '\u{200D}' => outside(before) && outside(after),
        '\u{FE00}'..='\u{FE0F}' => {
            outside(before)
                || (after == Some('\u{20E3}')
                    && before.is_some_and(|c| c.is_ascii_digit() || matches!(c, '#' | '*')))
        }
        _ => true,
    }
}

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
            Fate::Keep if joins(c, clean.chars().next_back(), chars.peek().copied()) => {
                clean.push(c);
            }
            Fate::Keep => changes.push(Normalization::InvisibleCharacters),
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

/// `/[\w:-]*`: what Claude takes for the name of a command, known or not, also an empty one.
fn is_command(word: &str) -> bool {
    word.strip_prefix('/').is_some_and(|name| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-'))
    })
}
