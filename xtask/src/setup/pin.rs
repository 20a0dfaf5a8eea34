//! The pin table `claude-pin.toml`, and which of its rows belongs to this machine.

use super::integrity::Integrity;
use crate::failure::{Failure, Outcome, during};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The one archive for this machine.
#[derive(Debug)]
pub(crate) struct Pin {
    pub(crate) version: String,
    /// The npm package.
    pub(crate) package: String,
    pub(crate) integrity: Integrity,
    pub(crate) platform: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    version: String,
    platform: BTreeMap<String, Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    package: String,
    integrity: String,
}

impl Pin {
    /// Reads the row for this machine from the table at the root of the workspace.
    pub(crate) fn load(root: &Path) -> Outcome<Self> {
        let path = root.join("claude-pin.toml");
        let text = std::fs::read_to_string(&path).map_err(during(path.display()))?;
        let platform = platform(std::env::consts::OS, std::env::consts::ARCH, Path::new("/"))?;
        Self::parse(&text, &platform)
    }

    fn parse(text: &str, platform: &str) -> Outcome<Self> {
        let mut table: Table = toml::from_str(text).map_err(during("claude-pin.toml"))?;
        let Some(row) = table.platform.remove(platform) else {
            let known: Vec<_> = table.platform.keys().cloned().collect();
            return Err(Failure::new(format!(
                "Claude Code is not pinned for {platform}; only for {}",
                known.join(", ")
            )));
        };
        Ok(Self {
            version: table.version,
            package: row.package,
            integrity: Integrity::parse(&row.integrity)?,
            platform: platform.to_owned(),
        })
    }

    /// The name of its folder in the cache: it names the content.
    pub(crate) fn folder(&self) -> String {
        let short = self.integrity.short();
        format!("{}-{}-{short}", self.version, self.platform)
    }
}

/// The name of a platform as the packages spell it. `root` is where the C library is looked for.
fn platform(os: &str, arch: &str, root: &Path) -> Outcome<String> {
    let (cpu, glibc, musl) = match arch {
        "x86_64" => (
            "x64",
            "lib64/ld-linux-x86-64.so.2",
            "lib/ld-musl-x86_64.so.1",
        ),
        "aarch64" => (
            "arm64",
            "lib/ld-linux-aarch64.so.1",
            "lib/ld-musl-aarch64.so.1",
        ),
        _ => {
            return Err(Failure::new(format!(
                "no Claude Code for the processor {arch}"
            )));
        }
    };
    match os {
        "macos" => Ok(format!("darwin-{cpu}")),
        "linux" => {
            let only_musl = root.join(musl).exists() && !root.join(glibc).exists();
            Ok(format!(
                "linux-{cpu}{}",
                if only_musl { "-musl" } else { "" }
            ))
        }
        _ => Err(Failure::new(format!("no Claude Code for the system {os}"))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{Pin, platform};
    use std::path::Path;

    #[test]
    fn every_row_of_the_table_names_a_package_and_an_integrity() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = std::fs::read_to_string(root.join("claude-pin.toml")).unwrap();
        for name in [
            "linux-x64",
            "linux-arm64",
            "linux-x64-musl",
            "linux-arm64-musl",
            "darwin-x64",
            "darwin-arm64",
        ] {
            let pin = Pin::parse(&text, name).unwrap();
            assert!(pin.package.ends_with(&format!("-{name}")), "{pin:?}");
        }
        let pin = Pin::parse(&text, "linux-x64").unwrap();
        assert_eq!(pin.folder(), "2.1.316-linux-x64-4500cce8ddbce488");
        assert!(Pin::parse(&text, "plan9-x64").is_err());
    }

    #[test]
    fn the_c_library_decides_between_the_linux_packages() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        let now = || platform("linux", "x86_64", root.path()).unwrap();
        assert_eq!(now(), "linux-x64");
        file("lib/ld-musl-x86_64.so.1");
        assert_eq!(now(), "linux-x64-musl");
        file("lib64/ld-linux-x86-64.so.2");
        assert_eq!(now(), "linux-x64");
    }

    #[test]
    fn other_machines_are_named_or_refused() {
        let root = Path::new("/nonexistent");
        assert_eq!(platform("macos", "aarch64", root).unwrap(), "darwin-arm64");
        assert!(platform("linux", "riscv64", root).is_err());
        assert!(platform("windows", "x86_64", root).is_err());
    }
}
