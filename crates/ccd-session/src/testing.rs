//! A session specification for this crate's own unit tests. Nothing else lives here.

use ccd_model::{
    permission::{PermissionMode, Policy},
    spec::{Account, Conversation, ExpectVersion, Limits, SessionSpec, Trust},
};

/// A plain new session in `/w`.
pub(crate) fn spec() -> SessionSpec {
    SessionSpec {
        cwd: "/w".into(),
        claude: None,
        helper: None,
        expect_version: ExpectVersion::Pinned,
        account: Account::Any,
        trust: Trust::Require,
        conversation: Conversation::New,
        model: None,
        mode: PermissionMode::Default,
        policy: Policy::Ask,
        allowed_tools: Vec::new(),
        disallowed_tools: Vec::new(),
        add_dirs: Vec::new(),
        append_system_prompt: None,
        mcp_config: Vec::new(),
        extra_args: Vec::new(),
        env: std::collections::BTreeMap::new(),
        self_test: false,
        trace: None,
        state_dir: None,
        limits: Limits::default(),
    }
}
