//! Claude processes that live, by Claude's own registry.
//!
//! What lives here: the entries whose process still is the one that wrote them. What never does: the secret key files
//! beside the entries.

use ccd_ports::host::{ClaudeDirs, LiveClaude};

use crate::claude_registry::{Entry, entries, read_entry};

/// Name of the registry directory in the configuration directory.
const SESSIONS: &str = "sessions";

pub(super) fn live_claudes(dirs: &ClaudeDirs) -> Vec<LiveClaude> {
    let found = entries(&dirs.config.join(SESSIONS));
    found
        .into_iter()
        .filter_map(|(pid, path)| {
            let body = read_entry(&path).ok()??;
            let entry = Entry::parse(body.get())?;
            entry.lives(pid).then_some(LiveClaude {
                pid,
                session_id: entry.session_id?,
                cwd: entry.cwd?.into(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn only_the_process_that_wrote_its_entry_is_listed() {
        let config = tempfile::tempdir().unwrap();
        let dirs = ClaudeDirs {
            home: config.path().into(),
            config: config.path().into(),
            global: config.path().join(".claude.json"),
        };
        assert!(live_claudes(&dirs).is_empty());
        let sessions = config.path().join(SESSIONS);
        std::fs::create_dir(&sessions).unwrap();
        let pid = std::process::id();
        let start = ccd_helper::proc::start_time(pid).unwrap().unwrap();
        let entry = |start: u64| {
            format!(
                "{{\"pid\":{pid},\"sessionId\":\"s-1\",\"cwd\":\"/w\",\"procStart\":\"{start}\"}}"
            )
        };
        let path = sessions.join(format!("{pid}.json"));
        std::fs::write(&path, format!("{}torn\"}}", entry(start))).unwrap();
        std::fs::write(sessions.join("4294967295.json"), entry(1)).unwrap();
        let expected = LiveClaude {
            pid,
            session_id: "s-1".to_owned(),
            cwd: "/w".into(),
        };
        assert_eq!(live_claudes(&dirs), [expected]);
        std::fs::write(&path, entry(start + 1)).unwrap();
        assert!(live_claudes(&dirs).is_empty());
    }
}
