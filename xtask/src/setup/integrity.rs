//! The `sha512-<base64>` integrity of an archive: parsing and computing. No files are fetched here.

use crate::failure::{Failure, Outcome, during};
use sha2::{Digest, Sha512};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The sha512 of an archive.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Integrity([u8; 64]);

impl Integrity {
    /// Reads `sha512-<base64>`.
    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let wrong = || Failure::new(format!("not a sha512 integrity: {text}"));
        let encoded = text.strip_prefix("sha512-").ok_or_else(wrong)?;
        let bytes = base64(encoded).ok_or_else(wrong)?;
        Ok(Self(bytes.try_into().map_err(|_| wrong())?))
    }

    /// The integrity of a file.
    pub(crate) fn of(path: &Path) -> Outcome<Self> {
        let mut file = File::open(path).map_err(during(path.display()))?;
        let mut hasher = Sha512::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = file.read(&mut buffer).map_err(during(path.display()))?;
            match buffer.get(..count) {
                Some([]) | None => break,
                Some(bytes) => hasher.update(bytes),
            }
        }
        Ok(Self(hasher.finalize().into()))
    }

    /// The first 8 bytes in hexadecimal: part of the name of the cache folder.
    pub(crate) fn short(&self) -> String {
        self.0.iter().take(8).map(|b| format!("{b:02x}")).collect()
    }
}

impl fmt::Debug for Integrity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha512 {}…", self.short())
    }
}

/// Decodes standard base64 with its padding; `None` when it is anything else.
fn base64(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let padding = bytes.iter().rev().take_while(|b| **b == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    for (index, chunk) in bytes.chunks(4).enumerate() {
        let last = (index + 1) * 4 == bytes.len();
        let mut group = 0_u32;
        for (place, byte) in chunk.iter().enumerate() {
            let padded = last && place >= 4 - padding;
            group = group << 6 | if padded { 0 } else { digit(*byte)? };
        }
        let [_, a, b, c] = group.to_be_bytes();
        let keep = if last { 3 - padding } else { 3 };
        out.extend([a, b, c].into_iter().take(keep));
    }
    Some(out)
}

fn digit(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{Integrity, base64};

    /// The sha512 of "abc", in base64.
    const ABC: &str = "sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj/uu9RU1EI2Q86A4qmslPpUyknw==";

    #[test]
    fn the_integrity_of_a_file_equals_the_published_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("abc");
        std::fs::write(&file, "abc").unwrap();
        let integrity = Integrity::of(&file).unwrap();
        assert_eq!(integrity, Integrity::parse(ABC).unwrap());
        assert_eq!(integrity.short(), "ddaf35a193617aba");
        std::fs::write(&file, "abd").unwrap();
        assert_ne!(Integrity::of(&file).unwrap(), integrity);
    }

    #[test]
    fn base64_is_decoded_with_every_padding() {
        let cases = [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
        ];
        for (encoded, plain) in cases {
            assert_eq!(base64(encoded).unwrap(), plain.as_bytes(), "{encoded}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "sha1-Zm9v",
            "sha512-Zm9v",
            "sha512-Zm9",
            "sha512-Z=9v",
            "sha512-Zm9*",
            "Zm9v",
            "sha512-====",
        ] {
            assert!(Integrity::parse(text).is_err(), "{text}");
        }
    }
}
