//! The key under which a successful self-test is remembered: whatever could change its outcome goes in.
//!
//! Here lives the key. Running the self-test is the core's business.

use ccd_channels::{Profile, SettingsRequest};
use ccd_ports::host::SettingsLayer;
use std::path::Path;

/// What a self-test depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelfTestFacts<'a> {
    /// Recognises the Claude binary.
    pub(crate) claude: &'a str,
    /// Recognises the helper program.
    pub(crate) helper: &'a Path,
    /// The workspace was trusted before the start.
    pub(crate) trusted: bool,
    /// The user's settings layers.
    pub(crate) layers: &'a [SettingsLayer],
}

/// A key of 32 hexadecimal digits.
pub(crate) fn key(profile: &Profile, facts: SelfTestFacts<'_>) -> String {
    // The same placeholders every time: only the shape of our settings counts.
    let settings = profile.settings_plan(&SettingsRequest::new(
        "http://127.0.0.1:1",
        "token",
        facts.helper,
        Path::new("/socket"),
        1_000,
    ));
    let mut parts = vec![
        env!("CARGO_PKG_VERSION").to_owned(),
        profile.version.to_owned(),
        facts.claude.to_owned(),
        facts.trusted.to_string(),
        settings,
    ];
    for layer in facts.layers {
        parts.push(layer.path.to_string_lossy().into_owned());
        parts.push(match &layer.content {
            Ok(text) => text.get().to_owned(),
            Err(why) => why.clone(),
        });
    }
    // Lengths keep neighbouring parts apart.
    let text: String = parts
        .iter()
        .map(|part| format!("{}:{part}", part.len()))
        .collect();
    format!(
        "{:016x}{:016x}",
        fnv1a(0xcbf2_9ce4_8422_2325, text.as_bytes()),
        fnv1a(0x6c62_272e_07bb_0142, text.as_bytes())
    )
}

/// FNV-1a: stable over versions and platforms, unlike the standard hasher.
fn fnv1a(basis: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(basis, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use ccd_channels::profiles;
    use ccd_model::json::RawJson;
    use ccd_ports::host::LayerKind;

    use super::*;

    #[test]
    fn the_key_changes_with_everything_that_matters() {
        let layer = |text: &str| SettingsLayer {
            kind: LayerKind::User,
            path: "/s".into(),
            content: Ok(RawJson::new(text)),
        };
        let layers = [layer("{}")];
        let others = [layer("{\"a\":1}")];
        let facts = SelfTestFacts {
            claude: "binary",
            helper: Path::new("/helper"),
            trusted: true,
            layers: &layers,
        };
        let key = |facts| key(profiles::pinned(), facts);
        let base = key(facts);
        assert_eq!(base, key(facts));
        assert_eq!(base.len(), 32);
        let changed = [
            SelfTestFacts {
                claude: "other",
                ..facts
            },
            SelfTestFacts {
                helper: Path::new("/other"),
                ..facts
            },
            SelfTestFacts {
                trusted: false,
                ..facts
            },
            SelfTestFacts {
                layers: &others,
                ..facts
            },
            SelfTestFacts {
                layers: &[],
                ..facts
            },
        ];
        for facts in changed {
            assert_ne!(base, key(facts), "{facts:?}");
        }
    }
}
