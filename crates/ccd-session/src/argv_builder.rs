//! Claude's command line from a session specification.
//!
//! Here live the order of arguments and the refusal list. Checking facts of the machine and starting anything never do.

use std::path::Path;

use ccd_model::spec::{Conversation, SessionSpec};
use ccd_ports::error::{PortError, PortErrorKind};

/// What a refused extra argument should be replaced by.
struct Refused {
    flags: &'static [&'static str],
    why: &'static str,
}

/// Flags that never pass as extra arguments.
const REFUSED: &[Refused] = &[
    Refused {
        flags: &[
            "--model",
            "--permission-mode",
            "--allowedTools",
            "--allowed-tools",
            "--disallowedTools",
            "--disallowed-tools",
            "--add-dir",
            "--append-system-prompt",
            "--mcp-config",
            "-c",
            "--continue",
            "-r",
            "--resume",
            "--fork-session",
        ],
        why: "it has an option of its own",
    },
    Refused {
        flags: &[
            "--settings",
            "--session-id",
            "--setting-sources",
            "--bare",
            "--safe-mode",
            "--restricted",
        ],
        why: "the driver depends on its value",
    },
    Refused {
        flags: &[
            "-p",
            "--print",
            "--output-format",
            "--input-format",
            "--include-partial-messages",
            "--include-hook-events",
            "--replay-user-messages",
            "--forward-subagent-text",
            "--json-schema",
            "--max-turns",
            "--max-budget-usd",
            "--permission-prompts",
            "--permission-prompt-tool",
            "--no-session-persistence",
            "--sdk-url",
        ],
        why: "it belongs to the headless mode",
    },
    Refused {
        flags: &[
            "--dangerously-skip-permissions",
            "--allow-dangerously-skip-permissions",
        ],
        why: "permissions are chosen by mode and policy",
    },
    Refused {
        flags: &[
            "--bg",
            "--background",
            "--cloud",
            "--desktop",
            "--environment",
            "--from-pr",
            "--teleport",
            "--remote-control",
            "--remote-control-session-name-prefix",
            "--tmux",
            "-w",
            "--worktree",
            "--ide",
            "--chrome",
            "--ax-screen-reader",
            "-h",
            "--help",
            "-v",
            "--version",
        ],
        why: "it starts something else than a plain session",
    },
];

/// Flags that take the argument after them.
const WITH_VALUE: &[&str] = &[
    "--agent",
    "--agents",
    "--autocompact",
    "--betas",
    "--debug-file",
    "--effort",
    "--fallback-model",
    "--file",
    "-n",
    "--name",
    "--plugin-dir",
    "--plugin-url",
    "--system-prompt",
    "--append-system-prompt-file",
    "--system-prompt-file",
    "--system-prompt-snapshot",
    "--tools",
    "--max-thinking-tokens",
    "--thinking",
];

/// Checks the extra arguments: flags outside the refusal list, and no argument that Claude would take as a prompt.
///
/// # Errors
/// `Config`, naming the argument.
pub(crate) fn check_extra(args: &[String]) -> Result<(), PortError> {
    let refuse = |arg: &str, why: &str| {
        Err(PortError::new(
            PortErrorKind::Config,
            format!("the argument `{arg}` is not passed on: {why}"),
        ))
    };
    let mut value_of: Option<&str> = None;
    for arg in args {
        if arg.contains('\0') {
            return refuse(&arg.escape_default().to_string(), "it contains a NUL");
        }
        if !arg.starts_with('-') {
            if value_of.take().is_none() {
                return refuse(
                    arg,
                    "Claude would take it as a prompt; write values as --flag=value",
                );
            }
            continue;
        }
        let flag = arg.split_once('=').map_or(arg.as_str(), |(flag, _)| flag);
        if flag == "-" || flag == "--" {
            return refuse(arg, "Claude would take what follows as a prompt");
        }
        if !flag.starts_with("--") && flag.len() > 2 {
            return refuse(arg, "short flags are not combined");
        }
        if let Some(row) = REFUSED.iter().find(|row| row.flags.contains(&flag)) {
            return refuse(arg, row.why);
        }
        value_of = (flag.len() == arg.len() && WITH_VALUE.contains(&flag)).then_some(flag);
    }
    Ok(())
}

/// What the launcher adds to the specification.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArgvFacts<'a> {
    /// Claude's binary.
    pub(crate) claude: &'a Path,
    /// The settings file.
    pub(crate) settings: &'a Path,
    /// A fresh session id, for new and forked conversations.
    pub(crate) fresh_id: &'a str,
}

/// The command line, the program first.
#[must_use]
pub(crate) fn build(spec: &SessionSpec, facts: ArgvFacts<'_>) -> Vec<String> {
    let mut argv = vec![facts.claude.to_string_lossy().into_owned()];
    let mut flag = |name: &str, value: &str| argv.push(format!("{name}={value}"));
    let fork = match &spec.conversation {
        Conversation::New => {
            flag("--session-id", facts.fresh_id);
            false
        }
        Conversation::Continue { fork } => {
            argv.push("--continue".to_owned());
            *fork
        }
        Conversation::Resume { id, fork } => {
            flag("--resume", id);
            *fork
        }
    };
    let mut flag = |name: &str, value: &str| argv.push(format!("{name}={value}"));
    if fork {
        flag("--session-id", facts.fresh_id);
    }
    flag("--permission-mode", spec.mode.as_str());
    if let Some(model) = &spec.model {
        flag("--model", model);
    }
    flag("--settings", &facts.settings.to_string_lossy());
    for (name, values) in [
        ("--allowedTools", &spec.allowed_tools),
        ("--disallowedTools", &spec.disallowed_tools),
        ("--add-dir", &spec.add_dirs),
        ("--mcp-config", &spec.mcp_config),
    ] {
        for value in values {
            flag(name, value);
        }
    }
    if let Some(text) = &spec.append_system_prompt {
        flag("--append-system-prompt", text);
    }
    if fork {
        argv.push("--fork-session".to_owned());
    }
    argv.extend(spec.extra_args.iter().cloned());
    argv
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::testing::spec;

    fn line(spec: &SessionSpec) -> String {
        build(
            spec,
            ArgvFacts {
                claude: Path::new("/c"),
                settings: Path::new("/rt/settings.json"),
                fresh_id: "F",
            },
        )
        .join(" ")
    }

    #[test]
    fn conversations_have_their_flags() {
        let tail = "--permission-mode=default --settings=/rt/settings.json";
        let resume = |fork| Conversation::Resume {
            id: "R".into(),
            fork,
        };
        let table = [
            (Conversation::New, format!("/c --session-id=F {tail}")),
            (
                Conversation::Continue { fork: false },
                format!("/c --continue {tail}"),
            ),
            (
                Conversation::Continue { fork: true },
                format!("/c --continue --session-id=F {tail} --fork-session"),
            ),
            (resume(false), format!("/c --resume=R {tail}")),
            (
                resume(true),
                format!("/c --resume=R --session-id=F {tail} --fork-session"),
            ),
        ];
        for (conversation, expected) in table {
            assert_eq!(
                line(&SessionSpec {
                    conversation,
                    ..spec()
                }),
                expected
            );
        }
    }

    #[test]
    fn every_option_reaches_the_command_line() {
        let spec = SessionSpec {
            model: Some("m".into()),
            allowed_tools: vec!["Read".into(), "Bash(git *)".into()],
            disallowed_tools: vec!["Write".into()],
            add_dirs: vec!["/d".into()],
            append_system_prompt: Some("-p is text".into()),
            mcp_config: vec!["{}".into()],
            extra_args: vec!["--verbose".into()],
            ..spec()
        };
        assert_eq!(
            line(&spec),
            "/c --session-id=F --permission-mode=default --model=m --settings=/rt/settings.json --allowedTools=Read \
             --allowedTools=Bash(git *) --disallowedTools=Write --add-dir=/d --mcp-config={} \
             --append-system-prompt=-p is text --verbose"
        );
    }

    #[test]
    fn extra_arguments_pass_or_are_refused() {
        let table: &[(&[&str], bool)] = &[
            (&[], true),
            (&["--verbose", "--effort", "high"], true),
            (&["--effort=high"], true),
            (&["-n", "name"], true),
            (&["--strict-mcp-config"], true),
            (&["fix the bug"], false),
            (&["--verbose", "fix the bug"], false),
            (&["--effort=high", "fix the bug"], false),
            (&["--effort", "high", "fix the bug"], false),
            (&["--", "x"], false),
            (&["-p"], false),
            (&["-pc"], false),
            (&["--print"], false),
            (&["--print=x"], false),
            (&["--settings", "x"], false),
            (&["--settings=x"], false),
            (&["--dangerously-skip-permissions"], false),
            (&["--resume=x"], false),
            (&["--bg"], false),
            (&["a\0b"], false),
        ];
        for (args, passes) in table {
            let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
            let checked = check_extra(&args);
            assert_eq!(checked.is_ok(), *passes, "{args:?}");
            if let Err(error) = checked {
                assert_eq!(error.kind, PortErrorKind::Config);
            }
        }
    }
}
