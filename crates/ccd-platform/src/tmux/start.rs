//! The one command line that starts the private server with Claude in its pane.
//!
//! What lives here: server options and the pane's program as separate words. What never does: running it.
//!
//! All options but one come before the session: `remain-on-exit` must hold before the program can end, and the terminal
//! type before it can start. `window-size manual` comes after it, because tmux 3.3 crashes when that is set while there
//! is no session; both are carried out in one go, before any client can attach.

use ccd_ports::session::SuperviseSpec;

use super::{SESSION, words};

/// `set-option` of the server, before the session: scope, name, value.
const OPTIONS: &[(&str, &str, &str)] = &[
    ("-g", "default-terminal", "xterm-256color"),
    ("-g", "remain-on-exit", "on"),
    ("-g", "status", "off"),
    ("-g", "mouse", "off"),
    ("-g", "automatic-rename", "off"),
    ("-g", "history-limit", "2000"),
    // The environment of a client that attaches later is not taken over.
    ("-g", "update-environment", ""),
    ("-s", "set-clipboard", "off"),
    ("-s", "extended-keys", "off"),
    ("-s", "exit-unattached", "off"),
];

/// Arguments of tmux that start the server, the pane and Claude in it.
pub(crate) fn arguments(spec: &SuperviseSpec, socket: &str) -> Vec<String> {
    let (cols, rows) = spec.size;
    let mut words: Vec<String> = Vec::new();
    let mut add = |list: &[&str]| words.extend(list.iter().map(|word| (*word).to_owned()));
    add(&["-S", socket, "-f", "/dev/null", "start-server", ";"]);
    for (scope, name, value) in OPTIONS {
        add(&["set-option", scope, name, value, ";"]);
    }
    let size = format!("{cols}x{rows}");
    add(&["set-option", "-g", "default-size", &size, ";"]);
    add(&["new-session", "-d", "-s", SESSION]);
    add(&["-x", &cols.to_string(), "-y", &rows.to_string()]);
    // No `-c`: it would be expanded as a format. The server takes the working directory of its starter.
    add(&["--"]);
    // More than one word: tmux runs them as they are, without a shell.
    add(&["/usr/bin/env", "-u", "TMUX", "-u", "TMUX_PANE"]);
    for word in &spec.claude_argv {
        add(&[&words::argument(word)]);
    }
    add(&[";", "set-option", "-g", "window-size", "manual"]);
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_program_is_separate_words_and_its_size_is_fixed_at_once() {
        let spec = SuperviseSpec {
            session: "s".into(),
            helper: "/h".into(),
            runtime_dir: "/r".into(),
            env: BTreeMap::new(),
            marker: ("M".into(), "1".into()),
            grace_ms: 1,
            tmux: "/usr/bin/tmux".into(),
            size: (250, 80),
            cwd: "/a b".into(),
            claude_argv: ["/c", "--x", "a b;", "$H"].map(String::from).into(),
        };
        let words = arguments(&spec, "/r/tmux.sock");
        let session = words.iter().position(|w| w == "new-session").unwrap();
        let before = &words[..session];
        assert!(before.windows(2).any(|w| w == ["remain-on-exit", "on"]));
        assert!(!before.iter().any(|w| w == "window-size"));
        assert_eq!(
            words[session..].join("|"),
            "new-session|-d|-s|ccd|-x|250|-y|80|--|/usr/bin/env|-u|TMUX|-u|TMUX_PANE|/c|--x|a b\\;|$H|;|\
             set-option|-g|window-size|manual"
        );
    }
}
