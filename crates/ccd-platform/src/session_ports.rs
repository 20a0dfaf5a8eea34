//! The adapters of one launch, opened in the launcher's order and taken down in reverse.
//!
//! What lives here: what belongs to a launch, who needs which part, and the end of it all. What never does: the parts
//! themselves, or deciding when to open or end them.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use ccd_helper::{EDITOR_SOCKET_NAME, proc};
use ccd_model::{
    ids::{Launch, OpId},
    intent::Signal,
};
use ccd_ports::{
    PortFut,
    clock::Clock,
    error::{PortError, PortErrorKind},
    inbox::Inbox,
    session::{
        EDITOR_NAME, Editor, GuardFormats, HOOK_SOCKET_NAME, HookSpec, OpenHooks, Pane,
        PaneAddress, Process, RegistryFile, SessionPorts, SuperviseSpec, TMUX_SOCKET_NAME, Tail,
        Teardown,
    },
};
use tokio::runtime::Handle;

use crate::{
    claude_process::{self, Surroundings},
    claude_registry::RegistryFollower,
    editor::{self, EditorTask},
    fs_tail::TailFollower,
    hook_server::{self, HookServer},
    outlet::Outlet,
    process::{ExitWatch, PinnedProcess, StopSignal},
    supervisor::{self, Closed, Supervisor},
    tmux::{
        exec::ExecTmux,
        pane::{self, PaneTarget, PaneTask},
        start,
    },
};

/// Beyond the grace, how long the supervisor may take to end everything, milliseconds.
const CLOSE_MS: u64 = 2_000;

/// How long processes that were killed here may take to end, milliseconds.
const KILLED_MS: u64 = 1_000;

/// Pause between two looks at them, milliseconds.
const LOOK_MS: u64 = 10;

/// Longest path of a unix socket, in bytes.
const MAX_SOCKET_PATH: usize = 107;

/// The adapters of one launch. Nothing is started before [`SessionPorts::supervise`].
///
/// Its methods must be called inside a tokio runtime with I/O and time enabled. Dropped without a teardown it closes the
/// supervisor's command socket: the supervisor then ends everything by itself.
pub struct LaunchPorts {
    outlet: Arc<Outlet>,
    spec: Option<SuperviseSpec>,
    supervisor: Option<Supervisor>,
    runtime: Option<Handle>,
    exits: Option<Arc<ExitWatch>>,
    hooks: Option<HookServer>,
    editor: Option<EditorTask>,
    started: Option<Started>,
    pane: Option<PaneTask>,
}

struct Started {
    server: Arc<PinnedProcess>,
    /// `None` if it had ended before it could be pinned.
    pane: Option<Arc<PinnedProcess>>,
    pane_pid: u32,
}

impl LaunchPorts {
    /// The adapters of launch `launch`; what they see goes to `inbox`.
    #[must_use]
    pub fn new(launch: Launch, inbox: Arc<dyn Inbox>, clock: Arc<dyn Clock>) -> Self {
        Self {
            outlet: Arc::new(Outlet::new(launch, inbox, clock)),
            spec: None,
            supervisor: None,
            runtime: None,
            exits: None,
            hooks: None,
            editor: None,
            started: None,
            pane: None,
        }
    }

    fn spec(&self) -> Result<&SuperviseSpec, PortError> {
        self.spec.as_ref().ok_or_else(too_early)
    }

    fn path(&self, name: &str) -> Result<PathBuf, PortError> {
        Ok(self.spec()?.runtime_dir.join(name))
    }

    fn exec(&self, spec: &SuperviseSpec) -> ExecTmux {
        ExecTmux::new(
            spec.tmux.clone(),
            spec.runtime_dir.join(TMUX_SOCKET_NAME),
            self.outlet.clock(),
        )
    }

    async fn start_supervisor(&mut self, spec: SuperviseSpec) -> Result<(), PortError> {
        check(&spec)?;
        let socket = spec.runtime_dir.join(TMUX_SOCKET_NAME);
        let tmux = start::arguments(&spec, &socket.to_string_lossy());
        let arguments = supervisor::arguments(&spec, tmux)?;
        let exits = ExitWatch::start().map_err(|error| internal(&error))?;
        self.supervisor =
            Some(Supervisor::start(&spec, &arguments, Arc::clone(&self.outlet)).await?);
        self.exits = Some(Arc::new(exits));
        self.runtime = Some(Handle::current());
        self.spec = Some(spec);
        Ok(())
    }

    async fn open_hooks(&mut self, spec: HookSpec) -> Result<OpenHooks, PortError> {
        let supervisor = self.supervisor.as_mut().ok_or_else(too_early)?;
        let outlet = &self.outlet;
        let server = hook_server::start(spec, outlet.launch(), outlet.inbox(), outlet.clock())?;
        let server = self.hooks.insert(server);
        supervisor.hold(&server.listener_fds()).await?;
        Ok(OpenHooks {
            address: server.address.clone(),
            hooks: server.handle(),
        })
    }

    fn open_editor(&mut self) -> Result<Box<dyn Editor>, PortError> {
        let exits = self.exits.as_ref().ok_or_else(too_early)?;
        let link = self.path(EDITOR_NAME)?;
        std::os::unix::fs::symlink(&self.spec()?.helper, &link)
            .map_err(|error| unusable(&link, &error))?;
        let socket = self.path(EDITOR_SOCKET_NAME)?;
        let (editor, task) = editor::open(&socket, Arc::clone(&self.outlet), Arc::clone(exits))
            .map_err(|error| unusable(&socket, &error))?;
        self.editor = Some(task);
        Ok(Box::new(editor))
    }

    fn write(&self, name: &str, content: &str) -> Result<PathBuf, PortError> {
        if Path::new(name).file_name() != Some(name.as_ref()) {
            return Err(PortError::new(
                PortErrorKind::Internal,
                format!("{name:?} is not a file name"),
            ));
        }
        let path = self.path(name)?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let written = options
            .open(&path)
            .and_then(|mut file| file.write_all(content.as_bytes()));
        written.map_err(|error| unusable(&path, &error))?;
        Ok(path)
    }

    async fn start_tmux(&mut self) -> Result<PaneAddress, PortError> {
        let supervisor = self.supervisor.as_mut().ok_or_else(too_early)?;
        supervisor.run_tmux().await?;
        let spec = self.spec()?;
        let failed = |error: &dyn std::fmt::Display| {
            PortError::new(PortErrorKind::TmuxFailed, error.to_string())
        };
        let (pane_pid, server_pid) = self
            .exec(spec)
            .pids()
            .await
            .map_err(|error| failed(&error))?;
        let server = PinnedProcess::open(server_pid).map_err(|error| failed(&error))?;
        let address = PaneAddress {
            socket: spec.runtime_dir.join(TMUX_SOCKET_NAME),
            pane_pid,
            server_pid,
        };
        self.started = Some(Started {
            server: Arc::new(server),
            pane: PinnedProcess::open(pane_pid).ok().map(Arc::new),
            pane_pid,
        });
        Ok(address)
    }

    async fn attach(&mut self, guards: GuardFormats) -> Result<Box<dyn Pane>, PortError> {
        if [&guards.composer, &guards.dialog]
            .iter()
            .any(|format| format.is_empty() || format.contains(['\n', '\r', '\0']))
        {
            return Err(PortError::new(
                PortErrorKind::Internal,
                "a guard's format is empty or has a line end",
            ));
        }
        let started = self.started.as_ref().ok_or_else(too_early)?;
        let target = PaneTarget {
            tmux: self.spec()?.tmux.clone(),
            socket: self.path(TMUX_SOCKET_NAME)?,
            server: Arc::clone(&started.server),
        };
        let (pane, task) = pane::open(target, guards, Arc::clone(&self.outlet))
            .await
            .map_err(|error| PortError::new(PortErrorKind::TmuxFailed, error.to_string()))?;
        self.pane = Some(task);
        Ok(Box::new(pane))
    }

    fn surroundings(&self) -> Option<Surroundings> {
        let (spec, started) = (self.spec.as_ref()?, self.started.as_ref()?);
        let (name, value) = &spec.marker;
        Some(Surroundings {
            outlet: Arc::clone(&self.outlet),
            exits: Arc::clone(self.exits.as_ref()?),
            tmux: self.exec(spec),
            server: Arc::clone(&started.server),
            pane: started.pane.clone(),
            pane_pid: started.pane_pid,
            marker: format!("{name}={value}"),
            owner: self.supervisor.as_ref()?.owner(),
            runtime: self.runtime.clone()?,
        })
    }

    async fn end(&mut self) -> Teardown {
        self.outlet.close();
        let mut teardown = Teardown::default();
        if let Some(pane) = self.pane.take() {
            pane.stop().await;
        }
        if let (Some(supervisor), Some(spec)) = (self.supervisor.take(), self.spec.take()) {
            let patience = spec.grace_ms.saturating_add(CLOSE_MS);
            match supervisor.close(patience).await {
                Closed::InOrder(killed) => teardown.killed = killed,
                Closed::Silent => self.end_by_hand(&spec, &mut teardown).await,
            }
            if spec.runtime_dir.exists() {
                teardown.left.push(spec.runtime_dir.display().to_string());
            }
        }
        // Only now: a hook of a Claude that is ending still gets its answer.
        if let Some(mut hooks) = self.hooks.take() {
            // It waits for its thread. A panic there was told as a loss.
            let _ = tokio::task::spawn_blocking(move || hooks.stop()).await;
        }
        self.editor = None;
        self.started = None;
        self.exits = None;
        teardown
    }

    /// The supervisor is dead or stuck: everything that carries the marker is killed from here, itself included.
    async fn end_by_hand(&self, spec: &SuperviseSpec, teardown: &mut Teardown) {
        let (name, value) = &spec.marker;
        let marker = format!("{name}={value}");
        let started = self.started.as_ref();
        let mut doomed: Vec<Arc<PinnedProcess>> = Vec::new();
        doomed.extend(started.and_then(|started| started.pane.clone()));
        doomed.extend(started.map(|started| Arc::clone(&started.server)));
        doomed.extend(marked(&marker));
        for process in &doomed {
            if process.stop(StopSignal::Kill).is_ok() {
                teardown.killed = teardown.killed.saturating_add(1);
            }
        }
        let deadline = self.outlet.now().after(KILLED_MS);
        while doomed.iter().any(|process| !process.has_ended()) && self.outlet.now() < deadline {
            self.outlet.after(LOOK_MS).await;
        }
        // What was started in the meantime.
        doomed.extend(marked(&marker));
        for process in doomed.iter().filter(|process| !process.has_ended()) {
            let _ = process.stop(StopSignal::Kill);
            teardown.left.push(format!("process {}", process.pid()));
        }
        if let Err(error) = fs::remove_dir_all(&spec.runtime_dir) {
            tracing::warn!(%error, "the runtime directory could not be removed");
        }
    }
}

/// The living processes with this environment entry, never this one.
fn marked(marker: &str) -> Vec<Arc<PinnedProcess>> {
    let Ok(table) = proc::snapshot() else {
        return Vec::new();
    };
    let own = std::process::id();
    let has = |pid| proc::environ_has(pid, marker.as_bytes()).unwrap_or(false);
    let rows = table.processes.iter().filter(|row| row.alive);
    rows.filter(|row| row.identity.pid != own && has(row.identity.pid))
        .filter_map(|row| {
            PinnedProcess::open_exactly(row.identity.pid, row.identity.start_time).ok()
        })
        .map(Arc::new)
        .collect()
}

impl SessionPorts for LaunchPorts {
    fn supervise(&mut self, spec: SuperviseSpec) -> PortFut<'_, Result<(), PortError>> {
        Box::pin(self.start_supervisor(spec))
    }

    fn hooks(&mut self, spec: HookSpec) -> PortFut<'_, Result<OpenHooks, PortError>> {
        Box::pin(self.open_hooks(spec))
    }

    fn editor(&mut self) -> PortFut<'_, Result<Box<dyn Editor>, PortError>> {
        Box::pin(async move { self.open_editor() })
    }

    fn write_private<'a>(
        &'a mut self,
        name: &'a str,
        content: &'a str,
    ) -> PortFut<'a, Result<PathBuf, PortError>> {
        Box::pin(async move { self.write(name, content) })
    }

    fn spawn(&mut self) -> PortFut<'_, Result<PaneAddress, PortError>> {
        Box::pin(self.start_tmux())
    }

    fn pane(&mut self, guards: GuardFormats) -> PortFut<'_, Result<Box<dyn Pane>, PortError>> {
        Box::pin(self.attach(guards))
    }

    fn tail(&mut self) -> Box<dyn Tail> {
        let outlet = &self.outlet;
        Box::new(TailFollower::start(
            outlet.launch(),
            outlet.inbox(),
            outlet.clock(),
        ))
    }

    fn registry(&mut self, dir: PathBuf, session_id: &str) -> Box<dyn RegistryFile> {
        let outlet = &self.outlet;
        Box::new(RegistryFollower::start(
            dir,
            session_id,
            outlet.launch(),
            outlet.inbox(),
            outlet.clock(),
        ))
    }

    fn process(&mut self) -> Box<dyn Process> {
        match self.surroundings() {
            Some(around) => Box::new(claude_process::open(around)),
            None => Box::new(NoProcess(Arc::clone(&self.outlet))),
        }
    }

    fn teardown(&mut self) -> PortFut<'_, Teardown> {
        Box::pin(self.end())
    }
}

/// Nothing was spawned.
struct NoProcess(Arc<Outlet>);

impl Process for NoProcess {
    fn watch(&mut self, _pid: u32) {}

    fn signal(&mut self, op: OpId, _signal: Signal) {
        self.0.refuse(op, "nothing was spawned");
    }
}

/// What would fail late, or in a way that nobody understands.
fn check(spec: &SuperviseSpec) -> Result<(), PortError> {
    let config = |message: String| Err(PortError::new(PortErrorKind::Config, message));
    let dir = &spec.runtime_dir;
    if !dir.is_absolute() || !spec.helper.is_absolute() {
        return config("the runtime directory and the helper must be absolute paths".into());
    }
    for name in [TMUX_SOCKET_NAME, EDITOR_SOCKET_NAME, HOOK_SOCKET_NAME] {
        if dir.join(name).as_os_str().len() > MAX_SOCKET_PATH {
            return config(format!(
                "the runtime directory's path is too long for a socket: {}",
                dir.display()
            ));
        }
    }
    let (name, value) = &spec.marker;
    if spec.env.get(name) != Some(value) {
        return config("the environment does not contain the session's marker".into());
    }
    let mut words = spec.claude_argv.iter();
    match words.next() {
        // `env` would read it as a variable.
        Some(program) if program.contains('=') => {
            return config(format!("the program's path contains `=`: {program}"));
        }
        Some(_) => {}
        None => return config("there is no program to run".into()),
    }
    if spec.claude_argv.iter().any(|word| word.contains('\0')) {
        return config("an argument contains a NUL".into());
    }
    if spec.size.0 == 0 || spec.size.1 == 0 {
        return config("the pane has no size".into());
    }
    if !spec.cwd.is_dir() {
        return Err(PortError::new(
            PortErrorKind::DirUnusable,
            format!("{} is not a directory", spec.cwd.display()),
        ));
    }
    Ok(())
}

fn too_early() -> PortError {
    PortError::new(PortErrorKind::Internal, "the session is not at this point")
}

fn internal(error: &dyn std::fmt::Display) -> PortError {
    PortError::new(PortErrorKind::Internal, error.to_string())
}

fn unusable(path: &Path, error: &std::io::Error) -> PortError {
    PortError::new(
        PortErrorKind::DirUnusable,
        format!("{}: {error}", path.display()),
    )
}
