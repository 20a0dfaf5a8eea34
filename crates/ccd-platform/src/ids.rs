//! Identifiers and secrets from the operating system's random source.
//!
//! What lives here: random version-4 UUIDs and hex secrets. What never does: a generator with a state of its own.

use std::fmt::Write as _;

use ccd_ports::clock::Ids;
use uuid::Uuid;

/// Identifiers from the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsIds;

impl Ids for OsIds {
    fn uuid(&self) -> String {
        Uuid::new_v4().hyphenated().to_string()
    }

    fn hex(&self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes.saturating_mul(2));
        let random = std::iter::repeat_with(|| random_bytes(Uuid::new_v4())).flatten();
        for byte in random.take(bytes) {
            // Writing into a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

/// The bytes of a version-4 UUID that are random as a whole: all but the two with the version and the variant.
fn random_bytes(uuid: Uuid) -> impl Iterator<Item = u8> {
    let fixed = |index: &usize| matches!(index, 6 | 8);
    let bytes = uuid.into_bytes().into_iter().enumerate();
    bytes
        .filter(move |(index, _)| !fixed(index))
        .map(|(_, byte)| byte)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_uuid_is_version_4_in_lower_case() {
        let text = OsIds.uuid();
        let parsed = Uuid::parse_str(&text).unwrap();
        assert_eq!(parsed.get_version_num(), 4);
        assert_eq!(text, text.to_lowercase());
        assert_eq!(text.len(), 36);
    }

    #[test]
    fn hex_has_the_length_asked_for_and_does_not_repeat() {
        for bytes in [0, 1, 14, 15, 33] {
            let text = OsIds.hex(bytes);
            assert_eq!(text.len(), bytes * 2);
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            );
        }
        let many: BTreeSet<String> = (0..100).map(|_| OsIds.hex(16)).collect();
        assert_eq!(many.len(), 100);
    }

    #[test]
    fn every_bit_of_a_secret_changes() {
        let (mut ones, mut zeros) = ([0_u8; 16], [0_u8; 16]);
        for _ in 0..200 {
            let text = OsIds.hex(16);
            for (index, (one, zero)) in ones.iter_mut().zip(zeros.iter_mut()).enumerate() {
                let byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).unwrap();
                *one |= byte;
                *zero |= !byte;
            }
        }
        assert_eq!((ones, zeros), ([0xff; 16], [0xff; 16]));
    }
}
