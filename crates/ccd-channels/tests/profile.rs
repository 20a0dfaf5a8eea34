//! What a launcher asks of the profile: answers, settings, rules, paths, registry and the key guards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::path::Path;

use ccd_channels::{RuleError, SettingsRequest, profiles};
use ccd_model::{
    fact::Source,
    ids::OpId,
    json::RawJson,
    observation::{Launched, LostPart, Observation, OpEnd, RegistryStatus},
    permission::Decision,
};
use ccd_ports::raw::Raw;
use common::{channels, files, one, text, unrecognized};
use serde_json::{Value, json};

fn reply(decision: &Decision, tool: &str, input: &str) -> Value {
    profiles::pinned()
        .permission_reply(decision, tool, &RawJson::new(input))
        .value()
        .unwrap()
}

fn recorded(name: &str) -> Value {
    serde_json::from_str(&text("hooks/responses", &format!("{name}.json"))).unwrap()
}

fn allow(input: Option<&str>, permissions: Option<&str>) -> Decision {
    Decision::Allow {
        updated_input: input.map(RawJson::new),
        updated_permissions: permissions.map(RawJson::new),
    }
}

#[test]
fn the_pinned_profile_is_found_by_its_version_only() {
    assert_eq!(profiles::pinned().version, "2.1.316");
    assert!(profiles::get("2.1.316").is_some());
    assert!(profiles::get("2.1.31").is_none());
}

#[test]
fn permission_replies_equal_the_recorded_ones() {
    let bash = r#"{"command":"ls"}"#;
    assert_eq!(
        reply(&Decision::allow(), "Bash", bash),
        recorded("PermissionRequest.allow")
    );
    let denied = recorded("PermissionRequest.deny");
    let message = denied["hookSpecificOutput"]["decision"]["message"]
        .as_str()
        .unwrap();
    assert_eq!(reply(&Decision::deny(message), "Bash", bash), denied);
    let stop = Decision::Deny {
        message: "Stop now".into(),
        interrupt: true,
    };
    assert_eq!(
        reply(&stop, "Bash", bash),
        recorded("PermissionRequest.deny-interrupt")
    );
    for name in [
        "allow-updatedInput",
        "allow-addRules-session",
        "allow-setMode",
    ] {
        let wanted = recorded(&format!("PermissionRequest.{name}"));
        let decision = &wanted["hookSpecificOutput"]["decision"];
        let member = |key: &str| decision.get(key).map(Value::to_string);
        let given = allow(
            member("updatedInput").as_deref(),
            member("updatedPermissions").as_deref(),
        );
        assert_eq!(reply(&given, "Bash", bash), wanted, "{name}");
    }
}

#[test]
fn an_allow_of_a_plan_or_a_question_always_has_an_input() {
    assert_eq!(
        reply(&Decision::allow(), "ExitPlanMode", r#"{"plan":"x"}"#),
        recorded("PermissionRequest.ExitPlanMode-approve")
    );
    let answer = recorded("PermissionRequest.AskUserQuestion-answer");
    let updated = answer["hookSpecificOutput"]["decision"]["updatedInput"].to_string();
    assert_eq!(
        reply(&allow(Some(&updated), None), "AskUserQuestion", "{}"),
        answer
    );
    let plain = reply(&Decision::allow(), "AskUserQuestion", r#"{"questions":[]}"#);
    assert_eq!(
        plain["hookSpecificOutput"]["decision"]["updatedInput"],
        json!({"questions": []})
    );
}

#[test]
fn an_allow_that_is_not_json_becomes_a_deny() {
    for broken in [
        allow(Some("{"), None),
        allow(None, Some("[1,]")),
        allow(Some(""), None),
        allow(Some(r#"{}},"x":{"#), None),
    ] {
        let decision = reply(&broken, "Bash", "{}");
        assert_eq!(
            decision["hookSpecificOutput"]["decision"]["behavior"],
            "deny"
        );
    }
}

#[test]
fn messages_are_quoted_in_replies() {
    let message = "say \"no\"\n\u{1} é";
    let value = reply(&Decision::deny(message), "Bash", "{}");
    assert_eq!(value["hookSpecificOutput"]["decision"]["message"], message);
}

#[test]
fn the_hook_threads_constant_answers_equal_the_recorded_ones() {
    let replies = profiles::pinned().hook_replies();
    let fill = |template: &str, name: &str, text: &str| -> Value {
        serde_json::from_str(&template.replace(name, &Value::from(text).to_string())).unwrap()
    };
    assert_eq!(
        fill(&replies.deny_tool, "{reason}", "pre-denied"),
        recorded("PreToolUse.deny")
    );
    let denied = recorded("PermissionRequest.deny");
    let message = denied["hookSpecificOutput"]["decision"]["message"]
        .as_str()
        .unwrap();
    assert_eq!(fill(&replies.deny_permission, "{message}", message), denied);
    let mut block: Value = serde_json::from_str(&replies.block_prompt).unwrap();
    block["reason"] = "selftest-ok".into();
    assert_eq!(block, recorded("UserPromptSubmit.block-suppress-original"));
    assert_eq!(replies.prompt_field, "prompt");
    assert_eq!(
        [
            &*replies.permission_event,
            &*replies.prompt_event,
            &*replies.tool_event
        ],
        ["PermissionRequest", "UserPromptSubmit", "PreToolUse"]
    );
    assert_eq!(replies.internal_prompt_prefixes, ["<task-notification>"]);
}

fn plan<'a>(change: impl FnOnce(&mut SettingsRequest<'a>)) -> Value {
    let mut request = SettingsRequest::new(
        "http://127.0.0.1:4711",
        "secret",
        Path::new("/opt/ccd/ccd-helper"),
        Path::new("/run/ccd/s1/hook.sock"),
        300_000,
    );
    change(&mut request);
    serde_json::from_str(&profiles::pinned().settings_plan(&request)).unwrap()
}

#[test]
fn the_settings_of_a_session_are_exactly_these() {
    let http = |event: &str, timeout: u64| {
        json!([{"hooks": [{
            "type": "http",
            "url": format!("http://127.0.0.1:4711/h/{event}"),
            "headers": {"X-CCD-Token": "secret"},
            "timeout": timeout,
        }]}])
    };
    let guard = |event: &str| {
        let mut entry = http(event, 30);
        entry[0]["hooks"][0]["onFailure"] = "block".into();
        entry
    };
    let command = |event: &str, timeout: u64| {
        json!([{"hooks": [{
            "type": "command",
            "command": "/opt/ccd/ccd-helper",
            "args": ["forward", "--protocol", "1", "--socket", "/run/ccd/s1/hook.sock", "--event", event],
            "timeout": timeout,
        }]}])
    };
    let mut permission = command("PermissionRequest", 360);
    permission[0]["hooks"][0]["onFailure"] = "block".into();
    let rules = [" Read ".to_owned(), "Bash(ls:*)".to_owned()];
    let denied = ["WebFetch".to_owned()];
    let found = plan(|request| {
        request.allow = &rules;
        request.deny = &denied;
    });
    assert_eq!(
        found,
        json!({
            "hooks": {
                "PreToolUse": guard("PreToolUse"),
                "UserPromptSubmit": guard("UserPromptSubmit"),
                "PermissionRequest": permission,
                "SessionStart": command("SessionStart", 10),
                "PostToolUse": http("PostToolUse", 10),
                "PostToolUseFailure": http("PostToolUseFailure", 10),
                "PostToolBatch": http("PostToolBatch", 10),
                "PermissionDenied": http("PermissionDenied", 10),
                "Notification": http("Notification", 10),
                "SessionEnd": http("SessionEnd", 10),
                "Stop": http("Stop", 10),
                "StopFailure": http("StopFailure", 10),
                "SubagentStart": http("SubagentStart", 10),
                "SubagentStop": http("SubagentStop", 10),
                "PreCompact": http("PreCompact", 10),
                "PostCompact": http("PostCompact", 10),
                "PostModelSwitch": http("PostModelSwitch", 10),
                "MessageDisplay": http("MessageDisplay", 10),
            },
            "permissions": {"allow": ["Read", "Bash(ls:*)"], "deny": ["WebFetch"]},
            "env": {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"},
            "tui": "default",
            "autoContinueAtUsageLimit": false,
            "askUserQuestionTimeout": "never",
            "promptSuggestionEnabled": false,
            "spinnerTipsEnabled": false,
            "awaySummaryEnabled": false,
            "terminalProgressBarEnabled": false,
            "feedbackSurveyRate": 0,
        })
    );
}

#[test]
fn the_users_proxy_exceptions_are_kept_and_the_loopback_always_added() {
    let found = plan(|request| request.no_proxy = Some("intern.example, localhost,, 10.0.0.0/8"));
    assert_eq!(
        found["env"]["NO_PROXY"],
        "127.0.0.1,localhost,intern.example,10.0.0.0/8"
    );
}

#[test]
fn a_deadline_is_rounded_up_and_project_servers_can_be_kept_off() {
    let servers = ["demo".to_owned()];
    let found = plan(|request| {
        request.permission_deadline_ms = 1;
        request.disabled_mcp_servers = &servers;
    });
    assert_eq!(
        found["hooks"]["PermissionRequest"][0]["hooks"][0]["timeout"],
        61
    );
    assert_eq!(found["disabledMcpjsonServers"], json!(["demo"]));
    plan(|request| request.permission_deadline_ms = u64::MAX);
}

#[test]
fn the_childs_environment_pins_the_renderer() {
    let env = profiles::pinned().child_env();
    for pinned in [
        ("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", "1"),
        ("CLAUDE_CODE_DISABLE_AGENT_VIEW", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("TERM", "xterm-256color"),
    ] {
        assert!(env.contains(&pinned), "{pinned:?}");
    }
}

#[test]
fn malformed_rules_are_refused() {
    for (rule, error) in [
        ("", RuleError::Empty),
        ("  ", RuleError::Empty),
        ("Bash(rm", RuleError::Malformed),
        ("Bash(rm)x", RuleError::Malformed),
        ("Bash)", RuleError::Malformed),
        ("Bash (rm)", RuleError::Malformed),
        (r"Bash(rm\)", RuleError::Malformed),
        ("Bash()", RuleError::EmptyContent),
        ("Bash( )", RuleError::EmptyContent),
        ("(rm)", RuleError::NoTool),
        ("bash(ls)", RuleError::LowerCaseTool),
        ("read", RuleError::LowerCaseTool),
        ("mcp__demo__echo(x)", RuleError::McpContent),
        ("Bash(:*)", RuleError::EmptyPrefix),
        ("Read(src:*)", RuleError::FilePrefix),
        ("Glob(a:*b)", RuleError::FilePrefix),
        ("mcp__demo()", RuleError::EmptyContent),
        ("Bash(ls)*", RuleError::Malformed),
        ("Bash)(x)", RuleError::Malformed),
        ("ünder", RuleError::LowerCaseTool),
        ("WebFetch(x)", RuleError::NotADomain),
        ("WebFetch(https://x.com)", RuleError::NotADomain),
        ("WebFetch(domain:http://x)", RuleError::NotADomain),
        ("WebSearch(x*)", RuleError::LiteralOnly),
        ("WebSearch(a?)", RuleError::LiteralOnly),
        (r"Bash(a \( b ( c)", RuleError::AmbiguousEscape),
    ] {
        assert_eq!(profiles::pinned().parse_rule(rule), Err(error), "{rule}");
    }
}

#[test]
fn well_formed_rules_are_split_and_those_we_can_decide_become_deny_rules() {
    // Rule, specifier, and the deny rule: tool, prefix, exact.
    type Deny = Option<(&'static str, Option<&'static str>, Option<&'static str>)>;
    let rows: &[(&str, Option<&str>, Deny)] = &[
        ("Bash", None, Some(("Bash", None, None))),
        (" Bash ", None, Some(("Bash", None, None))),
        ("Bash(*)", Some("*"), Some(("Bash", None, None))),
        ("Bash(rm:*)", Some("rm:*"), Some(("Bash", Some("rm"), None))),
        (
            "Bash(git push *)",
            Some("git push *"),
            Some(("Bash", Some("git push"), None)),
        ),
        (
            "Bash(npm run build)",
            Some("npm run build"),
            Some(("Bash", None, Some("npm run build"))),
        ),
        (
            "Bash(echo (a))",
            Some("echo (a)"),
            Some(("Bash", None, Some("echo (a)"))),
        ),
        ("Bash(git * main)", Some("git * main"), None),
        ("Bash(* rm:*)", Some("* rm:*"), None),
        (r"Bash(echo \(a\))", Some(r"echo \(a\)"), None),
        ("NotATool(x)", Some("x"), None),
        ("Read(./secret/**)", Some("./secret/**"), None),
        (
            "WebFetch(domain:example.com)",
            Some("domain:example.com"),
            None,
        ),
        ("WebFetch", None, Some(("WebFetch", None, None))),
        ("mcp__demo", None, Some(("mcp__demo__*", None, None))),
        (
            "mcp__demo__echo",
            None,
            Some(("mcp__demo__echo", None, None)),
        ),
        ("mcp__demo__*", None, Some(("mcp__demo__*", None, None))),
        ("mcp__*__echo", None, None),
        ("*", None, Some(("*", None, None))),
    ];
    for (text, specifier, deny) in rows {
        let rule = profiles::pinned().parse_rule(text).expect(text);
        assert_eq!(rule.text, text.trim());
        assert_eq!(rule.specifier.as_deref(), *specifier, "{text}");
        let found = rule.to_deny();
        let found = found.as_ref().map(|rule| {
            (
                rule.tool.as_str(),
                rule.command_prefix.as_deref(),
                rule.command_exact.as_deref(),
            )
        });
        assert_eq!(found, *deny, "{text}");
    }
}

#[test]
fn only_deny_rules_may_have_a_star_anywhere_in_the_tool_name() {
    for (text, allowed) in [
        ("Bash", true),
        ("Bash(ls:*)", true),
        ("mcp__demo", true),
        ("mcp__demo__*", true),
        ("mcp__demo__get_*", true),
        ("*", false),
        ("Ba*", false),
        ("mcp__*", false),
        ("mcp__demo*", false),
        ("mcp__*__echo", false),
        ("mcp____*", false),
    ] {
        let rule = profiles::pinned().parse_rule(text).expect(text);
        let expected = if allowed {
            Ok(())
        } else {
            Err(RuleError::WideAllow)
        };
        assert_eq!(rule.check_allow(), expected, "{text}");
    }
}

#[test]
fn transcript_folders_follow_the_slug_rule() {
    let path = |cwd: &str| {
        let path = profiles::pinned().transcript_path(Path::new("/home/user/.claude"), cwd, "id");
        assert_eq!(path.file_name().unwrap(), "id.jsonl");
        let folder = path.parent().unwrap();
        assert_eq!(
            folder.parent().unwrap(),
            Path::new("/home/user/.claude/projects")
        );
        folder.file_name().unwrap().to_str().unwrap().to_owned()
    };
    for (cwd, slug) in [
        ("/work/project", "-work-project"),
        ("/My_Proj.v1 (x)", "-My-Proj-v1--x-"),
        ("/héllo-日本-😀", "-h-llo------"),
        ("/cafe\u{301}", "-cafe-"),
        ("/", "-"),
    ] {
        assert_eq!(path(cwd), slug, "{cwd}");
    }
    let exact = format!("/{}", "a".repeat(199));
    assert_eq!(path(&exact), format!("-{}", "a".repeat(199)));
    // The hash is over the original path in UTF-16 units.
    for (cwd, hash) in [
        (format!("/work/{}", "a".repeat(200)), "55ajgx"),
        (format!("/work/{}", "日😀".repeat(70)), "9oaxf3"),
        (format!("/work/{}", "b_".repeat(120)), "q07g93"),
    ] {
        let slug = path(&cwd);
        assert_eq!(slug.get(200..).unwrap(), format!("-{hash}"), "{cwd}");
    }
}

#[test]
fn registry_files_say_the_live_status() {
    let status = |name: &str| {
        let body = text("registry", &format!("{name}.json"));
        let observed = one(
            &mut channels(),
            &Raw::Registry {
                body: RawJson::new(body),
            },
        );
        assert_eq!(observed[0].source, Source::Registry);
        assert!(observed[0].session.is_some());
        match &observed[0].what {
            Observation::Registry {
                pid,
                version,
                status,
            } => {
                assert!(*pid > 0);
                assert_eq!(&**version, "2.1.316");
                status.clone()
            }
            other => panic!("{name}: {other:?}"),
        }
    };
    let waiting = |word: &str| {
        Some(RegistryStatus::Waiting {
            waiting_for: word.into(),
        })
    };
    for (name, expected) in [
        ("busy", Some(RegistryStatus::Busy)),
        ("busy-user-name", Some(RegistryStatus::Busy)),
        ("idle", Some(RegistryStatus::Idle)),
        ("shell", Some(RegistryStatus::Shell)),
        ("torn-read", Some(RegistryStatus::Idle)),
        ("waiting-permission-prompt", waiting("permission prompt")),
        ("waiting-dialog-open", waiting("dialog open")),
    ] {
        assert_eq!(status(name), expected, "{name}");
    }
    assert!(files("registry", "json").len() >= 8);
}

#[test]
fn an_unknown_status_word_is_kept_and_a_broken_file_is_told() {
    let registry = |body: &str| {
        one(
            &mut channels(),
            &Raw::Registry {
                body: RawJson::new(body),
            },
        )
    };
    let observed = registry(r#"{"pid":1,"sessionId":"s","version":"v","status":"dreaming"}"#);
    assert!(matches!(
        &observed[0].what,
        Observation::Registry { status: Some(RegistryStatus::Other { word }), .. }
            if &**word == "dreaming"
    ));
    assert!(matches!(
        registry(r#"{"pid":1,"sessionId":"s"}"#)[0].what,
        Observation::Registry { status: None, .. }
    ));
    for broken in ["", "{", r#"{"pid":1}"#, r#"{"peerToken":"x"}"#] {
        assert_eq!(unrecognized(&registry(broken)).len(), 1, "{broken}");
    }
}

#[test]
fn records_without_a_version_pass_as_they_are() {
    let launched = Launched {
        session_id: "s".into(),
        resume: false,
        self_test: true,
        other_stop_hooks: false,
        pane_pid: 7,
    };
    let op = OpId(3);
    let end = OpEnd::Unknown;
    let (pid, code, signal) = (7, Some(0), None);
    let part = LostPart::TmuxServer;
    for (raw, source, what) in [
        (Raw::Tick, Source::Own, Observation::Tick),
        (
            Raw::RegistryGone,
            Source::Registry,
            Observation::RegistryGone,
        ),
        (Raw::Lost { part }, Source::Own, Observation::Lost { part }),
        (
            Raw::OpEnded {
                op,
                end: end.clone(),
            },
            Source::Own,
            Observation::OpEnded { op, end },
        ),
        (
            Raw::Exited { pid, code, signal },
            Source::Process,
            Observation::Exited { pid, code, signal },
        ),
        (
            Raw::Launched(launched.clone()),
            Source::Process,
            Observation::Launched(launched),
        ),
    ] {
        let observed = one(&mut channels(), &raw);
        assert_eq!(observed.len(), 1);
        assert_eq!(observed[0].source, source);
        assert_eq!(observed[0].what, what);
    }
}

#[test]
fn key_guards_hold_no_character_that_tmux_would_take_for_its_own() {
    let guards = profiles::pinned().guard_formats();
    assert!(guards.composer.contains("❯\u{a0}"));
    for format in [
        &guards.composer,
        &guards.empty,
        &guards.busy,
        &guards.tall,
        &guards.dialog,
    ] {
        for pattern in format.split("#{C/r:").skip(1) {
            let pattern = pattern.split('}').next().unwrap();
            assert!(pattern.starts_with('^'), "{pattern}");
            assert!(!pattern.contains([',', '#', '\'']), "{pattern}");
            let compiled = is_balanced(pattern);
            assert!(compiled, "{pattern}");
        }
        assert!(!format.contains('\''));
    }
}

/// Balanced parentheses and brackets: what an extended regular expression needs to be compiled.
fn is_balanced(pattern: &str) -> bool {
    let count = |c: char| pattern.matches(c).count();
    count('(') == count(')') && count('[') == count(']')
}
