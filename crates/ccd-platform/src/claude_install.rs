//! The managed install of Claude Code: which releases are known, and where one lies in the cache.
//!
//! What lives here: the pinned packages as data and the layout of the cache. What never does: fetching, or running
//! anything.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use crate::env;

/// One package of the pinned release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// Claude's version.
    pub version: &'static str,
    /// Operating system and processor as the package spells them, with `-musl` where it is meant for that libc.
    pub platform: &'static str,
    /// Name of the npm package.
    pub package: &'static str,
    /// Integrity of its archive: `sha512-` and base64.
    pub integrity: &'static str,
}

const VERSION: &str = "2.1.316";

/// The pinned release, one row for each platform.
pub const PINS: [Pin; 6] = [
    Pin {
        version: VERSION,
        platform: "linux-x64",
        package: "@anthropic-ai/claude-code-linux-x64",
        integrity: "sha512-RQDM6N285IjNKcmlPRriayNzpTkEJreAw5/vBU+V0R3qljkQ5z6/pSbzcVUAXvasoOlvub0RIma3NWvSuZA8Cg==",
    },
    Pin {
        version: VERSION,
        platform: "linux-x64-musl",
        package: "@anthropic-ai/claude-code-linux-x64-musl",
        integrity: "sha512-fjJ+xM4cSW9m/q6Zh1W9tkq0Ia44GEUh1TGcJtcrPwFCRWeMCAluOf2st51Bcaet7MAjBn9SwvKts96whjhQXA==",
    },
    Pin {
        version: VERSION,
        platform: "linux-arm64",
        package: "@anthropic-ai/claude-code-linux-arm64",
        integrity: "sha512-xqlAkhgSLCMdcaepQNIs1+ym5X9++apiEeOc0LHRVOHpfLlpYKAaAXBRccM6QVITN0T9sXLCIby7CO1Lczusgw==",
    },
    Pin {
        version: VERSION,
        platform: "linux-arm64-musl",
        package: "@anthropic-ai/claude-code-linux-arm64-musl",
        integrity: "sha512-MEirZ6NFW4GQhDwHZR3EuWEIQ73AiSmr+VkBbohiwZOXW6FaJ7TQJ4ypN3CddDBn8HKPXVgpjYSsUkfbKo1NSQ==",
    },
    Pin {
        version: VERSION,
        platform: "darwin-arm64",
        package: "@anthropic-ai/claude-code-darwin-arm64",
        integrity: "sha512-wJiLVMzg2atF7C/a+0wt+yQShWIePsMNL86gIoIJanURY2fxrwHIxrYuxoTW8sWqfj7ai+otV/ik2r7m5aPy1g==",
    },
    Pin {
        version: VERSION,
        platform: "darwin-x64",
        package: "@anthropic-ai/claude-code-darwin-x64",
        integrity: "sha512-UVb9M3ViDyLwPE4D5TQ0G/gFC3kWU6x/m6DbDg5OuAZZGpdwi7P2ajLusJGaNk1FSxTDj0SnzA6VCEiNEOI46w==",
    },
];

/// Bytes of the integrity that name an install's directory.
const TAG_BYTES: usize = 8;

impl Pin {
    /// Name of the install's directory: `<version>-<platform>-<first bytes of the integrity in hex>`. `None` if the
    /// integrity is malformed.
    #[must_use]
    pub fn directory(&self) -> Option<String> {
        let digest = self.integrity.strip_prefix("sha512-")?;
        let bytes = decode_base64(digest)
            .take(TAG_BYTES)
            .collect::<Option<Vec<u8>>>()?;
        let tag: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        (bytes.len() == TAG_BYTES).then(|| format!("{}-{}-{tag}", self.version, self.platform))
    }

    /// Where the program of this install lies, whether it is there or not.
    #[must_use]
    pub fn program(&self, cache: &Path) -> Option<PathBuf> {
        Some(cache.join("claude").join(self.directory()?).join("claude"))
    }
}

/// The cache of the project: `CCD_CACHE_DIR`, else `ccd` in `XDG_CACHE_HOME`, else in `.cache` of `HOME`.
#[must_use]
pub fn cache_dir(env: &BTreeMap<String, String>) -> Option<PathBuf> {
    if let Some(dir) = env::set(env, "CCD_CACHE_DIR") {
        return Some(dir.into());
    }
    let base = match env::set(env, "XDG_CACHE_HOME").map(Path::new) {
        Some(base) if base.is_absolute() => base.to_owned(),
        Some(_) | None => Path::new(env::set(env, "HOME")?).join(".cache"),
    };
    Some(base.join("ccd"))
}

/// The program of the managed install of `version` for this machine, if one is there.
#[must_use]
pub fn installed(version: &str, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let (cache, here) = (cache_dir(env)?, this_platform()?);
    // Where both libc variants lie, the plain one is first in the table.
    PINS.iter()
        .filter(|pin| pin.version == version)
        .filter(|pin| pin.platform.strip_suffix("-musl").unwrap_or(pin.platform) == here)
        .filter_map(|pin| pin.program(&cache))
        .find(|program| program.is_file())
}

/// This machine, as the packages spell it.
fn this_platform() -> Option<String> {
    let system = match std::env::consts::OS {
        "linux" => "linux",
        "macos" => "darwin",
        _ => return None,
    };
    let processor = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        _ => return None,
    };
    Some(format!("{system}-{processor}"))
}

/// The whole bytes of a base64 text without its padding; `None` for each group with a foreign character.
fn decode_base64(text: &str) -> impl Iterator<Item = Option<u8>> {
    let groups = text.trim_end_matches('=').as_bytes().chunks(4);
    groups.flat_map(|group| {
        let mut bits = Some(0_u32);
        for index in 0..4 {
            let value = group
                .get(index)
                .map_or(Some(0), |symbol| base64_value(*symbol));
            bits = bits
                .zip(value)
                .map(|(bits, value)| (bits << 6) | u32::from(value));
        }
        let [_, bytes @ ..] = bits.unwrap_or_default().to_be_bytes();
        let whole = group.len() * 6 / 8;
        bytes
            .into_iter()
            .take(whole)
            .map(move |byte| bits.map(|_| byte))
    })
}

fn base64_value(symbol: u8) -> Option<u8> {
    match symbol {
        b'A'..=b'Z' => Some(symbol - b'A'),
        b'a'..=b'z' => Some(symbol - b'a' + 26),
        b'0'..=b'9' => Some(symbol - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_table_is_the_pin_file() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../claude-pin.toml");
        // A packaged crate comes without the file.
        let Ok(text) = std::fs::read_to_string(path) else {
            return;
        };
        let file: toml::Table = text.parse().unwrap();
        let version = file["version"].as_str().unwrap();
        let platforms = file["platform"].as_table().unwrap();
        assert_eq!(platforms.len(), PINS.len());
        for pin in PINS {
            let row = &platforms[pin.platform];
            assert_eq!(pin.version, version);
            assert_eq!(row["package"].as_str(), Some(pin.package));
            assert_eq!(row["integrity"].as_str(), Some(pin.integrity));
        }
    }

    #[test]
    fn base64_is_decoded_to_whole_bytes() {
        let decode = |text| decode_base64(text).collect::<Option<Vec<u8>>>();
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYmE=", b"fooba"),
            ("+/+/", b"\xfb\xff\xbf"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(bytes), "{text}");
        }
        assert_eq!(decode("Zm9v!A=="), None);
    }

    #[test]
    fn an_install_is_named_by_version_platform_and_integrity() {
        assert_eq!(
            PINS[0].directory().unwrap(),
            "2.1.316-linux-x64-4500cce8ddbce488"
        );
        let bad = Pin {
            integrity: "sha512-AAAA",
            ..PINS[0]
        };
        assert_eq!(bad.directory(), None);
    }

    #[test]
    fn the_cache_follows_its_variables_in_order() {
        let env = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect()
        };
        let all = [
            ("CCD_CACHE_DIR", "/a"),
            ("XDG_CACHE_HOME", "/b"),
            ("HOME", "/c"),
        ];
        assert_eq!(cache_dir(&env(&all)), Some("/a".into()));
        assert_eq!(cache_dir(&env(&all[1..])), Some("/b/ccd".into()));
        assert_eq!(cache_dir(&env(&all[2..])), Some("/c/.cache/ccd".into()));
        assert_eq!(
            cache_dir(&env(&[("XDG_CACHE_HOME", "b"), ("HOME", "/c")])),
            Some("/c/.cache/ccd".into())
        );
        assert_eq!(cache_dir(&env(&[])), None);
    }

    #[test]
    fn only_an_install_of_the_version_and_this_machine_is_found() {
        let cache = tempfile::tempdir().unwrap();
        let env = BTreeMap::from([(
            "CCD_CACHE_DIR".to_owned(),
            cache.path().to_str().unwrap().to_owned(),
        )]);
        let here = this_platform().unwrap();
        assert_eq!(installed(VERSION, &env), None);
        for pin in PINS.iter().rev() {
            let program = pin.program(cache.path()).unwrap();
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            std::fs::write(program, "").unwrap();
        }
        let found = installed(VERSION, &env).unwrap();
        let plain = PINS.iter().find(|pin| pin.platform == here).unwrap();
        assert_eq!(Some(found), plain.program(cache.path()));
        assert_eq!(installed("9.9.9", &env), None);
    }
}
