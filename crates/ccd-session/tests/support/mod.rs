//! A platform in memory around [`claude::Claude`], and what tests ask of it afterwards.

pub(crate) mod claude;
pub(crate) mod clock;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ccd_model::{
    ids::Launch,
    permission::{PermissionMode, Policy},
    spec::{Account, Conversation, ExpectVersion, Limits, SessionSpec, Trust},
};
use ccd_ports::{
    Platform, PortFut,
    clock::{Clock, Ids},
    error::{PortError, PortErrorKind},
    host::{
        AccountFacts, ClaudeBinary, ClaudeDirs, Host, LiveClaude, SettingsLayer, TmuxBinary,
        WorkspaceFacts,
    },
    inbox::Inbox,
    session::{
        Editor, GuardFormats, HookAddress, HookSpec, OpenHooks, Pane, PaneAddress, Process,
        RegistryFile, SessionPorts, SuperviseSpec, Tail, Teardown,
    },
    state::{ProcessId, Reaped, SessionRecord, StateStore},
    trace::TraceSink,
};

use claude::{Claude, PID};
use clock::{CountingIds, ManualClock};

/// What happened outside, in order, and the trace.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) steps: Vec<String>,
    pub(crate) records: BTreeMap<String, SessionRecord>,
    pub(crate) trace: Vec<String>,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) supervised: Option<SuperviseSpec>,
    pub(crate) remembered: Vec<String>,
    pub(crate) orphans: Vec<Reaped>,
    /// The step that fails.
    pub(crate) fails_at: Option<&'static str>,
    /// The step that never ends.
    pub(crate) hangs_at: Option<&'static str>,
}

/// The platform.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) claude: Claude,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    ids: Arc<CountingIds>,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::default();
        Self {
            claude: Claude::new(clock.clone()),
            clock,
            ledger: Arc::default(),
            ids: Arc::default(),
        }
    }

    /// Another Claude on the same machine.
    pub(crate) fn on(ledger: &Arc<Mutex<Ledger>>) -> Self {
        Self {
            ledger: Arc::clone(ledger),
            ..Self::new()
        }
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Ledger) -> T) -> T {
        act(&mut self.ledger.lock().unwrap())
    }

    async fn step(&self, name: &'static str) -> Result<(), PortError> {
        let (fails, hangs) = self.with(|ledger| {
            ledger.steps.push(name.to_owned());
            (ledger.fails_at == Some(name), ledger.hangs_at == Some(name))
        });
        if hangs {
            std::future::pending::<()>().await;
        }
        if fails {
            return Err(PortError::new(
                PortErrorKind::Internal,
                format!("{name} failed"),
            ));
        }
        Ok(())
    }
}

impl Platform for World {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }
    fn ids(&self) -> Arc<dyn Ids> {
        self.ids.clone()
    }
    fn host(&self) -> Arc<dyn Host> {
        Arc::new(self.clone())
    }
    fn state(&self, _dir: Option<&str>) -> Result<Arc<dyn StateStore>, PortError> {
        Ok(Arc::new(self.clone()))
    }
    fn open(&self, launch: Launch, inbox: Arc<dyn Inbox>) -> Box<dyn SessionPorts> {
        Box::new(Ports {
            world: self.clone(),
            launch,
            inbox,
            session: String::new(),
        })
    }
    fn trace(&self, _path: &str) -> Result<Box<dyn TraceSink>, PortError> {
        Ok(Box::new(self.clone()))
    }
}

impl TraceSink for World {
    fn line(&mut self, line: String) {
        self.with(|ledger| ledger.trace.push(line));
    }
    fn finish(&mut self) -> Result<(), PortError> {
        self.with(|ledger| ledger.steps.push("trace finished".into()));
        Ok(())
    }
}

impl StateStore for World {
    fn write(&self, record: &SessionRecord) -> Result<(), PortError> {
        self.with(|ledger| {
            ledger.steps.push("record written".into());
            ledger
                .records
                .insert(record.session.clone(), record.clone());
        });
        Ok(())
    }
    fn remove(&self, session: &str) -> Result<(), PortError> {
        self.with(|ledger| {
            ledger.steps.push("record removed".into());
            ledger.records.remove(session);
        });
        Ok(())
    }
    fn list(&self) -> Vec<SessionRecord> {
        self.with(|ledger| ledger.records.values().cloned().collect())
    }
    fn owner_alive(&self, _record: &SessionRecord) -> bool {
        true
    }
    fn reap(&self) -> PortFut<'_, Vec<Reaped>> {
        let orphans = self.with(|ledger| std::mem::take(&mut ledger.orphans));
        Box::pin(async move { orphans })
    }
    fn this_process(&self) -> ProcessId {
        ProcessId {
            pid: 1,
            start_time: 1,
        }
    }
    fn runtime_base(&self) -> Result<PathBuf, PortError> {
        Ok("/run/ccd".into())
    }
    fn self_test_known(&self, key: &str) -> bool {
        self.with(|ledger| ledger.remembered.iter().any(|known| known == key))
    }
    fn remember_self_test(&self, key: &str) {
        self.with(|ledger| ledger.remembered.push(key.to_owned()));
    }
}

impl Host for World {
    fn env(&self) -> BTreeMap<String, String> {
        [
            ("PATH", "/bin"),
            ("HOME", "/home/user"),
            ("NODE_OPTIONS", "--require x"),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
    }
    fn claude<'a>(
        &'a self,
        _option: Option<&'a str>,
        pinned: &'a str,
        _env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<ClaudeBinary, PortError>> {
        Box::pin(async move {
            self.step("claude").await?;
            Ok(ClaudeBinary {
                path: "/opt/claude".into(),
                version: pinned.to_owned(),
                fingerprint: "1".into(),
            })
        })
    }
    fn tmux<'a>(
        &'a self,
        _env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<TmuxBinary, PortError>> {
        Box::pin(async {
            Ok(TmuxBinary {
                path: "/bin/tmux".into(),
                version: "3.5".into(),
            })
        })
    }
    fn helper<'a>(
        &'a self,
        _option: Option<&'a str>,
        _env: &'a BTreeMap<String, String>,
    ) -> PortFut<'a, Result<PathBuf, PortError>> {
        Box::pin(async { Ok("/opt/ccd-helper".into()) })
    }
    fn dirs(&self, _env: &BTreeMap<String, String>) -> Result<ClaudeDirs, PortError> {
        Ok(ClaudeDirs {
            home: "/home/user".into(),
            config: "/home/user/.claude".into(),
            global: "/home/user/.claude.json".into(),
        })
    }
    fn layers(&self, _dirs: &ClaudeDirs, _workspace: &Path) -> Vec<SettingsLayer> {
        Vec::new()
    }
    fn account(&self, _dirs: &ClaudeDirs) -> Result<AccountFacts, PortError> {
        Ok(AccountFacts {
            onboarded: true,
            oauth: true,
            subscription: Some("max".into()),
            expires_at: None,
            refreshable: true,
            stored_api_key: false,
        })
    }
    fn workspace(&self, _dirs: &ClaudeDirs, cwd: &str) -> Result<WorkspaceFacts, PortError> {
        Ok(WorkspaceFacts {
            real_path: cwd.into(),
            trusted: true,
            mcp_servers: Vec::new(),
        })
    }
    fn seed_trust(&self, _dirs: &ClaudeDirs, _workspace: &Path) -> Result<(), PortError> {
        Ok(())
    }
    fn live_claudes(&self, _dirs: &ClaudeDirs) -> Vec<LiveClaude> {
        Vec::new()
    }
    fn exists(&self, _path: &Path) -> bool {
        false
    }
    fn read(&self, path: &Path) -> Result<Arc<str>, PortError> {
        Err(PortError::new(
            PortErrorKind::FileUnreadable,
            path.to_string_lossy(),
        ))
    }
}

struct Ports {
    world: World,
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    session: String,
}

impl SessionPorts for Ports {
    fn supervise(&mut self, spec: SuperviseSpec) -> PortFut<'_, Result<(), PortError>> {
        self.session = spec
            .claude_argv
            .iter()
            .find_map(|arg| arg.strip_prefix("--session-id="))
            .unwrap_or_default()
            .to_owned();
        self.world.with(|ledger| ledger.supervised = Some(spec));
        Box::pin(self.world.step("supervise"))
    }
    fn hooks(&mut self, spec: HookSpec) -> PortFut<'_, Result<OpenHooks, PortError>> {
        Box::pin(async move {
            self.world.step("hooks").await?;
            Ok(OpenHooks {
                address: HookAddress {
                    url: "http://127.0.0.1:4711".into(),
                    socket: spec.runtime_dir.join("hook.sock"),
                },
                hooks: Box::new(self.world.claude.clone()),
            })
        })
    }
    fn editor(&mut self) -> PortFut<'_, Result<Box<dyn Editor>, PortError>> {
        Box::pin(async {
            self.world.step("editor").await?;
            Ok(Box::new(self.world.claude.clone()) as Box<dyn Editor>)
        })
    }
    fn write_private<'a>(
        &'a mut self,
        name: &'a str,
        content: &'a str,
    ) -> PortFut<'a, Result<PathBuf, PortError>> {
        Box::pin(async move {
            self.world.step("write settings").await?;
            self.world.with(|ledger| {
                ledger.files.insert(name.to_owned(), content.to_owned());
            });
            Ok(PathBuf::from("/run/ccd").join(name))
        })
    }
    fn spawn(&mut self) -> PortFut<'_, Result<PaneAddress, PortError>> {
        Box::pin(async {
            self.world.step("spawn").await?;
            // Claude speaks before the launcher is done: nothing of it may be lost.
            self.world
                .claude
                .start(self.launch, self.inbox.clone(), &self.session);
            Ok(PaneAddress {
                socket: "/run/ccd/tmux.sock".into(),
                pane_pid: PID,
                server_pid: PID + 1,
            })
        })
    }
    fn pane(&mut self, _guards: GuardFormats) -> PortFut<'_, Result<Box<dyn Pane>, PortError>> {
        Box::pin(async {
            self.world.step("pane").await?;
            Ok(Box::new(self.world.claude.clone()) as Box<dyn Pane>)
        })
    }
    fn tail(&mut self) -> Box<dyn Tail> {
        Box::new(self.world.claude.clone())
    }
    fn registry(&mut self, _dir: PathBuf, _session_id: &str) -> Box<dyn RegistryFile> {
        Box::new(self.world.claude.clone())
    }
    fn process(&mut self) -> Box<dyn Process> {
        Box::new(self.world.claude.clone())
    }
    fn teardown(&mut self) -> PortFut<'_, Teardown> {
        Box::pin(async {
            // The teardown is never the step that fails: it reports.
            let _ = self.world.step("teardown").await;
            Teardown::default()
        })
    }
}

/// A traced session in `/work`.
pub(crate) fn spec() -> SessionSpec {
    SessionSpec {
        cwd: "/work".into(),
        claude: None,
        helper: None,
        expect_version: ExpectVersion::Pinned,
        account: Account::Subscription,
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
        env: BTreeMap::new(),
        self_test: false,
        trace: Some("/traces/t.ccd.jsonl".into()),
        state_dir: None,
        limits: Limits::default(),
    }
}
