//! What a session specification means for a start, without any fact of the machine: rules, ids, the settings text.
//!
//! Here live small pure functions of the launcher. Doing anything with their results never does.

use ccd_channels::Profile;
use ccd_model::spec::{Conversation, SessionSpec};
use ccd_ports::{
    error::{PortError, PortErrorKind},
    session::DenyRule,
};

/// Settings key with the URLs that HTTP hooks may call.
const HTTP_ALLOWLIST: &str = "allowedHttpHookUrls";

/// Checked permission rules.
pub(crate) struct Rules {
    pub(crate) deny_texts: Vec<String>,
    pub(crate) deny: Vec<DenyRule>,
}

/// Parses every rule.
pub(crate) fn rules(profile: &Profile, spec: &SessionSpec) -> Result<Rules, PortError> {
    let parse = |text: &String| {
        profile.parse_rule(text).map_err(|error| {
            PortError::new(
                PortErrorKind::Config,
                format!("the permission rule `{text}` is not valid: {error}"),
            )
        })
    };
    for text in &spec.allowed_tools {
        parse(text)?;
    }
    let denied: Vec<_> = spec
        .disallowed_tools
        .iter()
        .map(parse)
        .collect::<Result<_, _>>()?;
    Ok(Rules {
        deny_texts: denied.iter().map(|rule| rule.text.clone()).collect(),
        deny: denied.iter().filter_map(|rule| rule.to_deny()).collect(),
    })
}

/// Claude's session id, empty when Claude chooses it.
pub(crate) fn claude_session(spec: &SessionSpec, fresh_id: &str) -> String {
    match &spec.conversation {
        Conversation::New
        | Conversation::Continue { fork: true }
        | Conversation::Resume { fork: true, .. } => fresh_id.to_owned(),
        Conversation::Resume { id, fork: false } => id.clone(),
        Conversation::Continue { fork: false } => String::new(),
    }
}

/// What a conversation option means for the start.
pub(crate) struct Resumes {
    pub(crate) resumed: bool,
    /// The conversation's file exists and has a past.
    pub(crate) from_end: bool,
}

/// Whether `conversation` resumes, and from where its file is read.
pub(crate) fn resumes(conversation: &Conversation) -> Resumes {
    match conversation {
        Conversation::New => Resumes {
            resumed: false,
            from_end: false,
        },
        Conversation::Continue { fork } | Conversation::Resume { fork, .. } => Resumes {
            resumed: true,
            from_end: !fork,
        },
    }
}

/// The user has an allowlist for HTTP hooks: ours joins it.
pub(crate) fn with_http_allowlist(plan: &str, url: &str) -> Result<String, PortError> {
    let mut root: serde_json::Map<String, serde_json::Value> = serde_json::from_str(plan)
        .map_err(|error| PortError::new(PortErrorKind::Internal, error.to_string()))?;
    root.insert(
        HTTP_ALLOWLIST.to_owned(),
        serde_json::json!([format!("{url}/*")]),
    );
    Ok(serde_json::Value::Object(root).to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use ccd_channels::profiles;

    use super::*;
    use crate::testing::spec;

    #[test]
    fn a_malformed_rule_is_a_config_error_and_a_deny_rule_reaches_the_hook_thread() {
        let profile = profiles::pinned();
        let bad = SessionSpec {
            allowed_tools: vec!["Bash(".into()],
            ..spec()
        };
        let error = rules(profile, &bad).err().unwrap();
        assert_eq!(error.kind, PortErrorKind::Config);
        let good = SessionSpec {
            disallowed_tools: vec!["Write".into(), "Read(./x/**)".into()],
            ..spec()
        };
        let rules = rules(profile, &good).unwrap();
        assert_eq!(rules.deny_texts, ["Write", "Read(./x/**)"]);
        let tools: Vec<&str> = rules.deny.iter().map(|rule| rule.tool.as_str()).collect();
        assert_eq!(tools, ["Write"]);
    }

    #[test]
    fn our_hooks_join_an_allowlist() {
        let plan = with_http_allowlist("{\"a\":1}", "http://127.0.0.1:9").unwrap();
        assert_eq!(
            plan,
            "{\"a\":1,\"allowedHttpHookUrls\":[\"http://127.0.0.1:9/*\"]}"
        );
    }

    #[test]
    fn the_conversation_decides_the_id_and_where_the_transcript_is_read_from() {
        let resume = |fork| Conversation::Resume {
            id: "R".into(),
            fork,
        };
        let table = [
            (Conversation::New, "F", false, false),
            (Conversation::Continue { fork: false }, "", true, true),
            (Conversation::Continue { fork: true }, "F", true, false),
            (resume(false), "R", true, true),
            (resume(true), "F", true, false),
        ];
        for (conversation, id, resumed, from_end) in table {
            let got = resumes(&conversation);
            assert_eq!((got.resumed, got.from_end), (resumed, from_end));
            let spec = SessionSpec {
                conversation,
                ..spec()
            };
            assert_eq!(claude_session(&spec, "F"), id);
        }
    }
}
