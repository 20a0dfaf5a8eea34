//! The settings layers that Claude reads.
//!
//! What lives here: which files are layers, and their texts. What never does: the meaning of a setting.

use std::path::{Path, PathBuf};

use ccd_model::json::RawJson;
use ccd_ports::host::{ClaudeDirs, LayerKind, SettingsLayer};
use serde::de::IgnoredAny;

use super::files;

/// Directory of the machine's managed settings.
pub(super) const MANAGED_DIR: &str = if cfg!(target_os = "macos") {
    "/Library/Application Support/ClaudeCode"
} else {
    "/etc/claude-code"
};

/// The layers that exist, lowest precedence first.
pub(super) fn layers(dirs: &ClaudeDirs, workspace: &Path, managed: &Path) -> Vec<SettingsLayer> {
    let project = workspace.join(".claude");
    let mut files = vec![
        (LayerKind::User, dirs.config.join("settings.json")),
        (LayerKind::Project, project.join("settings.json")),
        (LayerKind::Local, project.join("settings.local.json")),
        (LayerKind::Managed, managed.join("managed-settings.json")),
    ];
    let drop_ins = drop_ins(&managed.join("managed-settings.d"));
    files.extend(drop_ins.into_iter().map(|path| (LayerKind::Managed, path)));
    // Managed settings that an organisation's server sent.
    files.push((LayerKind::Managed, dirs.config.join("remote-settings.json")));
    files
        .into_iter()
        .filter_map(|(kind, path)| layer(kind, path))
        .collect()
}

fn drop_ins(dir: &Path) -> Vec<PathBuf> {
    let Ok(listing) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = listing
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    paths.sort();
    paths
}

fn layer(kind: LayerKind, path: PathBuf) -> Option<SettingsLayer> {
    let content = match files::read_if_there(&path) {
        Ok(None) => return None,
        Ok(Some(text)) if text.trim().is_empty() => Ok(RawJson::new("{}")),
        Ok(Some(text)) => files::parse::<IgnoredAny>(&path, &text)
            .map(|_| RawJson::new(text.trim_start_matches('\u{feff}')))
            .map_err(|error| error.message),
        Err(error) => Err(error.message),
    };
    Some(SettingsLayer {
        kind,
        path,
        content,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::fs;

    #[test]
    fn the_layers_that_exist_come_in_order_of_precedence() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let dirs = ClaudeDirs {
            home: at("home"),
            config: at("config"),
            global: at("config/.claude.json"),
        };
        assert!(layers(&dirs, &at("work"), &at("managed")).is_empty());
        for (name, text) in [
            ("config/settings.json", "{\"a\":1}"),
            ("work/.claude/settings.json", "{\"b\":"),
            ("work/.claude/settings.local.json", " \n"),
            ("managed/managed-settings.json", "{}"),
            ("managed/managed-settings.d/20-b.json", "{\"n\":2}"),
            ("managed/managed-settings.d/10-a.json", "{\"n\":1}"),
            ("managed/managed-settings.d/notes.txt", "no layer"),
            ("config/remote-settings.json", "{\"r\":1}"),
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        }
        let found: Vec<(LayerKind, Option<String>)> = layers(&dirs, &at("work"), &at("managed"))
            .into_iter()
            .map(|layer| {
                (
                    layer.kind,
                    layer.content.ok().map(|json| json.get().to_owned()),
                )
            })
            .collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [
                (LayerKind::User, text("{\"a\":1}")),
                (LayerKind::Project, None),
                (LayerKind::Local, text("{}")),
                (LayerKind::Managed, text("{}")),
                (LayerKind::Managed, text("{\"n\":1}")),
                (LayerKind::Managed, text("{\"n\":2}")),
                (LayerKind::Managed, text("{\"r\":1}")),
            ]
        );
    }
}
