//! The start sequence: checks, identifiers, adapters in order, and the undoing of whatever was done.
//!
//! Here lives the order of steps. The rules of each check live in `preflight`, the wait for readiness in `lifecycle`.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use ccd_channels::{Profile, SettingsRequest, profiles};
use ccd_core::CoreConfig;
use ccd_model::{
    event::Alert,
    ids::Launch,
    observation::Launched,
    spec::{Conversation, SessionSpec},
    time::Mono,
};
use ccd_ports::{
    Platform,
    error::{PortError, PortErrorKind},
    host::Host,
    session::{HookAddress, HookSpec, SETTINGS_NAME, SessionPorts, SuperviseSpec},
    state::{SessionRecord, StateStore},
    trace::TraceSink,
};
use tokio::task::JoinHandle;

use crate::{
    argv_builder::{self, ArgvFacts},
    core_config::core_config,
    engine::Engine,
    env_builder::{self, MARKER},
    error::{LaunchError, LaunchStep},
    input_executor::Executor,
    launch_facts::{HostFacts, blocking, open_state, open_trace, read_host, timed},
    launch_plan::{claude_session, resumes, rules, with_http_allowlist},
    preflight::{self, SettingsFindings, TrustAction},
    queue::Queue,
    reaper,
    redact::{RedactOptions, Redactor, secrets_of_env},
    scheduler::SessionClock,
    self_test::{self, SelfTestFacts},
    tail_driver::TailDriver,
    trace::{self, FORMAT, Header, Trace, TraceConfig, TraceLine, VERSION},
};

/// Format number of the session record.
const RECORD_FORMAT: u32 = 1;
/// Columns and rows of the pane.
const PANE_SIZE: (u16, u16) = (250, 80);
/// From TERM to KILL when the owner dies, milliseconds.
const GRACE_MS: u64 = 2_000;
/// The hook thread denies this long after the handler's own deadline: the better worded answer comes first, milliseconds.
const HOOK_MARGIN_MS: u64 = 1_000;
/// The start of the Claude process within this session.
const FIRST_LAUNCH: Launch = Launch(1);

/// Everything that is open when Claude runs.
pub(crate) struct Opened {
    pub(crate) engine: Engine,
    pub(crate) executor: Executor,
    pub(crate) tail: TailDriver,
    pub(crate) trace: Trace,
    pub(crate) launch: Launch,
    pub(crate) launched: Launched,
    /// Where the conversation file is expected, when its id is known.
    pub(crate) transcript: Option<String>,
    pub(crate) orphans: Option<Alert>,
    pub(crate) trace_path: Option<String>,
    /// Our session id.
    pub(crate) session: String,
}

/// One start.
pub(crate) struct Launcher {
    platform: Arc<dyn Platform>,
    spec: SessionSpec,
    clock: SessionClock,
    queue: Queue,
    step: LaunchStep,
    /// When the step in hand began; nothing once it is over.
    step_began: Option<Mono>,
    /// Steps that were over before the trace had its header.
    done: Vec<(LaunchStep, u64)>,
    trace: Trace,
    ports: Option<Box<dyn SessionPorts>>,
    state: Option<Arc<dyn StateStore>>,
    session: String,
    /// The write of the record: begun, perhaps not over.
    record: Option<JoinHandle<Result<(), PortError>>>,
    self_test_key: String,
}

/// What the checks found out.
struct Checked {
    findings: SettingsFindings,
    off_servers: Vec<String>,
}

impl Launcher {
    pub(crate) fn new(
        platform: Arc<dyn Platform>,
        spec: SessionSpec,
        clock: SessionClock,
        queue: Queue,
    ) -> Self {
        Self {
            platform,
            spec,
            step_began: Some(clock.now()),
            clock,
            queue,
            step: LaunchStep::Config,
            done: Vec::new(),
            trace: Trace::none(),
            ports: None,
            state: None,
            session: String::new(),
            record: None,
            self_test_key: String::new(),
        }
    }

    /// The step in hand.
    pub(crate) fn step(&self) -> LaunchStep {
        self.step
    }

    /// Runs every step up to a Claude in its pane. After an error, or when dropped half-way, the caller calls [`Launcher::undo`].
    pub(crate) async fn open(&mut self) -> Result<Opened, LaunchError> {
        let opened = self.open_all().await;
        opened.map_err(|error| LaunchError::new(self.step, error))
    }

    async fn open_all(&mut self) -> Result<Opened, PortError> {
        let profile = profiles::pinned();
        preflight::config(&self.spec)?;
        let rules = rules(profile, &self.spec)?;
        self.finish_step();

        // Independent reads run side by side; their errors keep the order of the steps.
        let host = self.platform.host();
        let host_env = host.env();
        let base = env_builder::base(&host_env, &self.spec.env);
        let mut lookup = host_env;
        lookup.extend(self.spec.env.clone());
        self.usable_home(&host, &base).await?;
        let (state, facts, claude, tmux, helper) = {
            let (spec, clock) = (&self.spec, &self.clock);
            let read = read_host(Arc::clone(&host), base.clone(), spec.cwd.clone());
            tokio::join!(
                timed(clock, open_state(&self.platform, spec)),
                timed(clock, read),
                timed(
                    clock,
                    host.claude(spec.claude.as_deref(), profile.version, &lookup)
                ),
                timed(clock, host.tmux(&lookup)),
                timed(clock, host.helper(spec.helper.as_deref(), &lookup)),
            )
        };
        let state = self.took(LaunchStep::State, state)?;
        self.state = Some(Arc::clone(&state.store));
        let facts = self.took(LaunchStep::Environment, facts)?;
        let claude = self.took(LaunchStep::Claude, claude)?;
        preflight::version(&self.spec, &claude, profile.version)?;
        let tmux = self.took(LaunchStep::Tmux, tmux)?;
        let helper = self.took(LaunchStep::Helper, helper)?;
        let checked = self.check(&facts, &base)?;
        self.seed_trust(&host, &facts).await?;

        self.begin(LaunchStep::Record);
        let sink = open_trace(&self.platform, &self.spec).await?;
        let ids = self.platform.ids();
        self.session = ids.hex(8);
        let fresh_id = ids.uuid();
        let token = ids.hex(32);
        let claude_session: Arc<str> = claude_session(&self.spec, &fresh_id).into();
        let runtime_dir = state.runtime_base.join(&self.session);
        let env = env_builder::complete(
            base,
            profile.child_env().iter().copied(),
            &self.spec.env,
            &runtime_dir,
            &self.session,
        );
        let real_cwd = facts.workspace.real_path.to_string_lossy().into_owned();
        let core = core_config(profile, &self.spec, &real_cwd);
        self.write_header(sink, &env, &token, &claude.version, profile, &core);
        let marker = (MARKER.to_owned(), self.session.clone());
        self.write_record(SessionRecord {
            format: RECORD_FORMAT,
            session: self.session.clone(),
            claude_session: claude_session.to_string(),
            owner: state.store.this_process(),
            supervisor: None,
            runtime_dir: runtime_dir.clone(),
            marker: marker.clone(),
            cwd: facts.workspace.real_path.clone(),
            started_ms: self.clock.wall().0,
        })
        .await?;

        // The adapters, in order. From here on there is something to undo.
        self.begin(LaunchStep::Supervise);
        self.ports = Some(
            self.platform
                .open(FIRST_LAUNCH, Arc::new(self.queue.clone())),
        );
        let settings_path = runtime_dir.join(SETTINGS_NAME);
        let no_proxy = env_builder::no_proxy(&env);
        let supervise = SuperviseSpec {
            session: self.session.clone(),
            helper: helper.clone(),
            runtime_dir: runtime_dir.clone(),
            env,
            marker,
            grace_ms: GRACE_MS,
            tmux: tmux.path.clone(),
            size: PANE_SIZE,
            cwd: facts.workspace.real_path.clone(),
            claude_argv: argv_builder::build(
                &self.spec,
                ArgvFacts {
                    claude: &claude.path,
                    settings: &settings_path,
                    fresh_id: &fresh_id,
                },
            ),
        };
        self.ports()?.supervise(supervise).await?;

        self.begin(LaunchStep::Hooks);
        let permission_deadline_ms = self
            .spec
            .limits
            .permission_ms
            .saturating_add(HOOK_MARGIN_MS);
        let hooks = HookSpec {
            token: token.clone(),
            runtime_dir: runtime_dir.clone(),
            permission_deadline_ms,
            deny: rules.deny,
            replies: profile.hook_replies(),
        };
        let hooks = self.ports()?.hooks(hooks).await?;

        self.begin(LaunchStep::Editor);
        let editor = self.ports()?.editor().await?;

        self.begin(LaunchStep::WriteSettings);
        let HookAddress { url, socket } = &hooks.address;
        let plan = profile.settings_plan(&SettingsRequest {
            deny: &rules.deny_texts,
            no_proxy: Some(&no_proxy),
            disabled_mcp_servers: &checked.off_servers,
            ..SettingsRequest::new(url, &token, &helper, socket, permission_deadline_ms)
        });
        let plan = if checked.findings.http_allowlist {
            with_http_allowlist(&plan, url)?
        } else {
            plan
        };
        self.ports()?.write_private(SETTINGS_NAME, &plan).await?;

        self.begin(LaunchStep::Spawn);
        let address = self.ports()?.spawn().await?;

        self.begin(LaunchStep::Pane);
        let pane = self.ports()?.pane(profile.guard_formats()).await?;

        self.begin(LaunchStep::Watch);
        let registry_dir = facts.dirs.config.join(profile.words().registry_dir);
        let ports = self.ports()?;
        let process = ports.process();
        let registry = ports.registry(registry_dir, &claude_session);
        let tail = ports.tail();
        let resume = resumes(&self.spec.conversation);
        let self_test = self
            .wants_self_test(profile, &claude.fingerprint, &helper, &facts)
            .await;
        let transcript = (!claude_session.is_empty()).then(|| {
            profile
                .transcript_path(&facts.dirs.config, &real_cwd, &claude_session)
                .to_string_lossy()
                .into_owned()
        });
        self.finish_step();
        self.step = LaunchStep::Ready;
        Ok(Opened {
            engine: Engine::new(profile, core),
            executor: Executor {
                profile,
                hooks: hooks.hooks,
                editor,
                pane,
                process,
                registry,
                held: BTreeMap::new(),
            },
            tail: TailDriver::new(tail, resume.from_end),
            trace: std::mem::replace(&mut self.trace, Trace::none()),
            launch: FIRST_LAUNCH,
            launched: Launched {
                session_id: claude_session,
                resume: resume.resumed,
                self_test,
                other_stop_hooks: checked.findings.other_stop_hooks,
                pane_pid: address.pane_pid,
            },
            transcript,
            orphans: reaper::alert(&state.reaped),
            trace_path: self.spec.trace.clone(),
            session: self.session.clone(),
        })
    }

    /// Refuses a home that cannot be used before anything could be made in it.
    async fn usable_home(
        &mut self,
        host: &Arc<dyn Host>,
        env: &BTreeMap<String, String>,
    ) -> Result<(), PortError> {
        self.step = LaunchStep::Environment;
        let (host, env) = (Arc::clone(host), env.clone());
        blocking(move || host.dirs(&env).map(|_| ())).await
    }

    /// The checks that need only what was read.
    fn check(
        &mut self,
        facts: &HostFacts,
        env: &BTreeMap<String, String>,
    ) -> Result<Checked, PortError> {
        self.begin(LaunchStep::Account);
        let account = facts.account.clone()?;
        preflight::account(&self.spec, env, &account, self.clock.wall())?;
        self.begin(LaunchStep::Settings);
        let findings = preflight::settings(&self.spec, &facts.layers)?;
        if let Some((path, text)) = &facts.keybindings {
            preflight::keybindings(path, text)?;
        }
        Ok(Checked {
            findings,
            off_servers: preflight::unapproved_mcp(&facts.workspace, &facts.layers),
        })
    }

    async fn seed_trust(
        &mut self,
        host: &Arc<dyn Host>,
        facts: &HostFacts,
    ) -> Result<(), PortError> {
        self.begin(LaunchStep::Trust);
        let action = preflight::trust(&self.spec, &facts.workspace, &facts.live)?;
        self.begin(LaunchStep::Conversation);
        preflight::conversation(&self.spec, &facts.workspace, &facts.live)?;
        if action == TrustAction::Seed {
            // Written only when nothing else stands in the way.
            self.begin(LaunchStep::Trust);
            let host = Arc::clone(host);
            let (dirs, path) = (facts.dirs.clone(), facts.workspace.real_path.clone());
            blocking(move || host.seed_trust(&dirs, &path)).await?;
        }
        Ok(())
    }

    /// Opens the trace with its header and the steps so far.
    fn write_header(
        &mut self,
        sink: Option<Box<dyn TraceSink>>,
        env: &BTreeMap<String, String>,
        token: &str,
        claude_version: &str,
        profile: &Profile,
        core: &CoreConfig,
    ) {
        let Some(sink) = sink else { return };
        let mut secrets = secrets_of_env(env);
        secrets.push(token.to_owned());
        self.trace = Trace::new(sink, Redactor::new(secrets, RedactOptions::default()));
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            claude_version: claude_version.to_owned(),
            profile: profile.version.to_owned(),
            ccd_version: env!("CARGO_PKG_VERSION").to_owned(),
            session: self.session.clone(),
            config: TraceConfig {
                spec: self.spec.clone(),
                core: core.clone(),
            },
        };
        self.trace.line(|| TraceLine::Header(Box::new(header)));
        for (step, ms) in self.done.drain(..) {
            self.trace.line(|| TraceLine::Step { step, ms });
        }
    }

    async fn write_record(&mut self, record: SessionRecord) -> Result<(), PortError> {
        let Some(state) = self.state.clone() else {
            return Ok(());
        };
        let write = tokio::task::spawn_blocking(move || state.write(&record));
        match self.record.insert(write).await {
            Ok(written) => written,
            Err(error) => Err(PortError::new(PortErrorKind::Internal, error.to_string())),
        }
    }

    async fn wants_self_test(
        &mut self,
        profile: &'static Profile,
        fingerprint: &str,
        helper: &Path,
        facts: &HostFacts,
    ) -> bool {
        if !self.spec.self_test || self.spec.conversation != Conversation::New {
            return false;
        }
        let key = self_test::key(
            profile,
            SelfTestFacts {
                claude: fingerprint,
                helper,
                trusted: facts.workspace.trusted,
                layers: &facts.layers,
            },
        );
        self.self_test_key.clone_from(&key);
        let Some(state) = self.state.clone() else {
            return true;
        };
        let known = blocking(move || Ok(state.self_test_known(&key))).await;
        !known.unwrap_or(false)
    }

    /// The self-test of this start succeeded.
    pub(crate) fn remember_self_test(&self) {
        if let Some(state) = self.state.clone() {
            let key = self.self_test_key.clone();
            // Detached: a memory that could not be written costs the next start a self-test, no more.
            drop(tokio::task::spawn_blocking(move || {
                state.remember_self_test(&key);
            }));
        }
    }

    /// Undoes whatever was done: adapters, processes, files, at last the record. Safe at any point and more than once.
    pub(crate) async fn undo(&mut self) {
        let mut clean = true;
        if let Some(mut ports) = self.ports.take() {
            let teardown = ports.teardown().await;
            for left in &teardown.left {
                tracing::warn!(%left, "the teardown left something");
            }
            clean = teardown.left.is_empty();
        }
        if let Some(mut record) = self.record.take() {
            if !record.is_finished() {
                // Removed only after it is written, whatever became of the write.
                let _ = (&mut record).await;
            }
            // What could not be removed is left to the reaper, which needs the record.
            if let Some(state) = self.state.clone().filter(|_| clean) {
                let session = self.session.clone();
                if let Err(error) = blocking(move || state.remove(&session)).await {
                    tracing::warn!(%error, "the session's record was not removed");
                }
            }
        }
        let mut trace = std::mem::replace(&mut self.trace, Trace::none());
        // The start failed: its own error is what is told.
        let _ = finish_trace(&mut trace).await;
    }

    fn ports(&mut self) -> Result<&mut Box<dyn SessionPorts>, PortError> {
        self.ports
            .as_mut()
            .ok_or_else(|| PortError::new(PortErrorKind::Internal, "no adapters are open"))
    }

    /// The step in hand is over, `step` begins.
    fn begin(&mut self, step: LaunchStep) {
        self.finish_step();
        self.step = step;
        self.step_began = Some(self.clock.now());
    }

    fn finish_step(&mut self) {
        if let Some(began) = self.step_began.take() {
            let ms = self.clock.now().since(began);
            self.note(self.step, ms);
        }
    }

    fn note(&mut self, step: LaunchStep, ms: u64) {
        if self.trace.is_open() {
            self.trace.line(|| TraceLine::Step { step, ms });
        } else {
            self.done.push((step, ms));
        }
    }

    /// Takes over the result of a step that ran beside others.
    fn took<T>(
        &mut self,
        step: LaunchStep,
        (ms, result): (u64, Result<T, PortError>),
    ) -> Result<T, PortError> {
        self.step = step;
        self.note(step, ms);
        result
    }
}

/// Writes a trace out. Gives what it lacks, if it is incomplete.
pub(crate) async fn finish_trace(trace: &mut Trace) -> Option<PortError> {
    let sink = trace.take_sink()?;
    let error = blocking(move || trace::finish(sink)).await.err()?;
    tracing::warn!(%error, "the trace is incomplete");
    Some(error)
}
