//! Deny rules, decided without Claude.
//!
//! What lives here: whether a tool call matches a rule. What never does: the rule syntax (rules come parsed), or
//! allowing anything: no match means no opinion.
//!
//! A shell command is not understood, only cut into parts that may be commands of their own; where in doubt it
//! matches. The rule stops an honest model; it is no sandbox.

use ccd_ports::session::DenyRule;

use super::payload::Fields;

/// Fields of a tool call's payload, common to all versions so far.
const TOOL_NAME: &str = "tool_name";
const TOOL_INPUT: &str = "tool_input";
const COMMAND: &str = "command";

/// What `denied_by` says of a call that could not be read.
const UNREADABLE: &str = "(the call could not be read)";

/// Words after which a shell reads a new command, so that they may stand before one.
const SHELL_WORDS: [&str; 9] = [
    "!", "then", "do", "else", "elif", "if", "while", "until", "time",
];

/// A denial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Denial {
    /// The rule as written.
    pub(super) rule: String,
    /// What the model is told.
    pub(super) reason: String,
}

/// Judges a tool call's payload. An unreadable one is denied.
pub(super) fn judge(rules: &[DenyRule], body: &str) -> Option<Denial> {
    let unreadable = || Denial {
        rule: UNREADABLE.to_owned(),
        reason: "The tool call could not be read, so it was denied.".to_owned(),
    };
    let Some(fields) = Fields::parse(body) else {
        return Some(unreadable());
    };
    let Some(tool) = fields.text(TOOL_NAME) else {
        return Some(unreadable());
    };
    let named = rules.iter().filter(|rule| names(&rule.tool, &tool));
    let mut command: Option<Option<String>> = None;
    for rule in named {
        let matched = if rule.command_prefix.is_none() && rule.command_exact.is_none() {
            true
        } else {
            let command = command.get_or_insert_with(|| fields.object(TOOL_INPUT)?.text(COMMAND));
            match command {
                Some(command) => matches(rule, command),
                None => return Some(unreadable()),
            }
        };
        if matched {
            return Some(Denial {
                rule: rule.text.clone(),
                reason: format!("Denied by the rule {}.", rule.text),
            });
        }
    }
    None
}

fn names(pattern: &str, tool: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => tool.starts_with(prefix),
        None => tool == pattern,
    }
}

fn matches(rule: &DenyRule, command: &str) -> bool {
    let exact = |part: &str| {
        rule.command_exact
            .as_ref()
            .is_some_and(|exact| part == exact.trim())
    };
    let prefix = |part: &str| {
        let wanted = rule.command_prefix.as_deref().map(str::trim_end);
        wanted.is_some_and(|wanted| begins(part, wanted))
    };
    exact(command.trim()) || parts(command).any(|part| exact(part) || prefix(part))
}

/// The parts of a command line that may be commands, each also without what may stand before a command.
fn parts(command: &str) -> impl Iterator<Item = &str> {
    let whole = std::iter::once(command.trim());
    let cut = command
        .split(['&', '|', ';', '\n', '\r', '(', ')', '{', '}', '`'])
        .map(str::trim);
    whole
        .chain(cut)
        .flat_map(|part| [part, bare(part)])
        .filter(|part| !part.is_empty())
}

/// Strips shell words, assignments, and quoting in front of the command's name.
fn bare(part: &str) -> &str {
    let mut rest = part.trim_start();
    loop {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let assignment = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        });
        if after.is_empty() || !(SHELL_WORDS.contains(&word) || assignment) {
            return rest.trim_start_matches(['\\', '"', '\'']);
        }
        rest = after.trim_start();
    }
}

/// Whether `part` begins with `prefix` and the prefix ends a word there.
fn begins(part: &str, prefix: &str) -> bool {
    let Some(rest) = part.strip_prefix(prefix) else {
        return false;
    };
    let in_word = |c: char| c.is_alphanumeric() || "_-./=:+@%,".contains(c);
    !rest.starts_with(in_word)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn rule(tool: &str, prefix: Option<&str>, exact: Option<&str>) -> DenyRule {
        DenyRule {
            text: format!("{tool}({prefix:?},{exact:?})"),
            tool: tool.to_owned(),
            command_prefix: prefix.map(str::to_owned),
            command_exact: exact.map(str::to_owned),
        }
    }

    fn call(tool: &str, command: &str) -> String {
        serde_json::json!({"tool_name": tool, "tool_input": {"command": command}}).to_string()
    }

    fn denied(rule: &DenyRule, body: &str) -> bool {
        match judge(std::slice::from_ref(rule), body) {
            Some(denial) => {
                assert_eq!(denial.rule, rule.text);
                assert!(denial.reason.contains(&rule.text));
                true
            }
            None => false,
        }
    }

    #[test]
    fn a_tool_is_named_exactly_or_by_its_beginning() {
        for (pattern, tool, expected) in [
            ("Write", "Write", true),
            ("Write", "WriteX", false),
            ("Write", "write", false),
            ("mcp__demo__*", "mcp__demo__echo", true),
            ("mcp__demo__*", "mcp__demo2__echo", false),
            ("*", "anything", true),
        ] {
            assert_eq!(
                denied(&rule(pattern, None, None), &call(tool, "x")),
                expected,
                "{pattern} {tool}"
            );
        }
    }

    #[test]
    fn a_command_prefix_matches_any_part_at_a_word_boundary() {
        let rm = rule("Bash", Some("rm"), None);
        for command in [
            "rm",
            "rm -rf x",
            "  rm x",
            "cd a && rm x",
            "a||rm x",
            "a;rm x",
            "a | rm",
            "a\nrm x",
            "a & rm x",
            "(rm x)",
            "echo `rm x`",
            "echo $(rm x)",
            "{ rm x; }",
            "A=1 B=2 rm x",
            "if true; then rm x; fi",
            "! rm x",
            "\\rm x",
            "\"rm\" x",
            "rm\tx",
            "rm>x",
            "a;;rm",
            "rm\"\" x",
        ] {
            assert!(denied(&rm, &call("Bash", command)), "{command:?}");
        }
        for command in [
            "",
            "rmdir x",
            "rm-all",
            "echo rm",
            "rm.sh",
            "ls rm",
            "grep -r m",
            "r m",
            "rm=1",
        ] {
            assert!(!denied(&rm, &call("Bash", command)), "{command:?}");
        }
        let push = rule("Bash", Some("git push "), None);
        assert!(denied(&push, &call("Bash", "git add . && git push origin")));
        assert!(!denied(&push, &call("Bash", "git pull")));
    }

    #[test]
    fn an_exact_command_matches_as_a_whole_or_as_a_part() {
        let exact = rule("Bash", None, Some("npm test"));
        for (command, expected) in [
            ("npm test", true),
            (" npm test\n", true),
            ("npm i && npm test", true),
            ("npm test -- -x", false),
            ("npm tests", false),
        ] {
            assert_eq!(
                denied(&exact, &call("Bash", command)),
                expected,
                "{command:?}"
            );
        }
        let compound = rule("Bash", None, Some("a && b"));
        assert!(denied(&compound, &call("Bash", "a && b")));
        assert!(!denied(&compound, &call("Bash", "a")));
    }

    #[test]
    fn what_cannot_be_read_is_denied() {
        for body in ["", "{", "[]", "{\"tool_input\":{}}", "{\"tool_name\":1}"] {
            assert_eq!(judge(&[], body).unwrap().rule, UNREADABLE, "{body:?}");
        }
        let no_command = "{\"tool_name\":\"Bash\",\"tool_input\":{\"command\":7}}";
        assert_eq!(
            judge(&[rule("Bash", Some("rm"), None)], no_command)
                .unwrap()
                .rule,
            UNREADABLE
        );
        assert_eq!(judge(&[rule("Other", Some("rm"), None)], no_command), None);
        assert_eq!(judge(&[], no_command), None);
    }

    #[test]
    fn lone_surrogates_are_no_reason_to_deny() {
        let body = r#"{"tool_name":"Write","tool_input":{"content":"\ud83d","command":"\ud83d"}}"#;
        assert_eq!(judge(&[rule("Write", Some("rm"), None)], body), None);
    }
}
