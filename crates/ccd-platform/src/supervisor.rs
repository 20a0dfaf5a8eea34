//! The supervisor process of one launch, seen from its owner.
//!
//! What lives here: starting it, its reports, commands to it. What never does: what it does ([`ccd_helper`]), or killing
//! it: closing the command socket makes it clean up.

use std::{
    io::{self, Write as _},
    os::{fd::BorrowedFd, fd::OwnedFd, unix::net::UnixStream},
    process::Stdio,
    sync::{Arc, Weak},
    time::Duration,
};

use ccd_helper::{
    Acknowledged, MessageError, OwnerCommand, Report, SuperviseArgs, owner::send_listeners,
};
use ccd_model::observation::LostPart;
use ccd_ports::{
    error::{PortError, PortErrorKind},
    session::SuperviseSpec,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
    sync::mpsc,
};

use crate::outlet::Outlet;

/// How long the supervisor may take to be ready or to confirm a command, milliseconds.
const CONFIRM_MS: u64 = 5_000;

/// How long the tmux command may take, milliseconds.
const START_MS: u64 = 10_000;

/// How long the process may take to end after its last report, milliseconds.
const EXIT_MS: u64 = 2_000;

/// A running supervisor. Dropping it closes the command socket: it then ends everything by itself.
pub(crate) struct Supervisor {
    outlet: Arc<Outlet>,
    owner: Arc<UnixStream>,
    child: Child,
    reports: mpsc::UnboundedReceiver<Result<Report, MessageError>>,
}

/// How the end was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closed {
    /// In order; so many processes had to be killed.
    InOrder(u32),
    /// No report of the end came in time.
    Silent,
}

/// Writes one command. Never blocks: the socket's buffer holds many more lines than are ever sent.
pub(crate) fn command(mut owner: &UnixStream, command: OwnerCommand) -> io::Result<()> {
    owner.write_all(command.to_line().as_bytes())
}

impl Supervisor {
    /// Starts it and waits until it is ready: then the runtime directory exists.
    pub(crate) async fn start(
        spec: &SuperviseSpec,
        args: &SuperviseArgs,
        outlet: Arc<Outlet>,
    ) -> Result<Self, PortError> {
        let internal =
            |error: io::Error| PortError::new(PortErrorKind::Internal, error.to_string());
        let (ours, theirs) = UnixStream::pair().map_err(internal)?;
        ours.set_nonblocking(true).map_err(internal)?;
        let mut command = Command::new(&spec.helper);
        command.args(args.to_argv()).env_clear().envs(&spec.env);
        // tmux takes the pane's working directory from its starter.
        command.current_dir(&spec.cwd);
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| {
            let helper = spec.helper.display();
            PortError::new(
                PortErrorKind::HelperMissing,
                format!("the helper {helper} cannot be run: {error}"),
            )
        })?;
        // The command holds its copy of the other end, which would hide the supervisor's death.
        drop(command);
        let stdout = child.stdout.take();
        let stdout = stdout.ok_or_else(|| internal(io::ErrorKind::BrokenPipe.into()))?;
        let (tell, reports) = mpsc::unbounded_channel();
        tokio::spawn(listen(stdout, tell, Arc::clone(&outlet)));
        let mut supervisor = Self {
            outlet,
            owner: Arc::new(ours),
            child,
            reports,
        };
        match supervisor.report(CONFIRM_MS).await {
            Ok(Report::Ready { .. }) => Ok(supervisor),
            Ok(Report::Failed { message }) => Err(PortError::new(
                PortErrorKind::Internal,
                format!("the supervisor cannot be set up: {message}"),
            )),
            Ok(other) => Err(unexpected(&other)),
            Err(error) => Err(error),
        }
    }

    /// The command socket, for others that may outlive it.
    pub(crate) fn owner(&self) -> Weak<UnixStream> {
        Arc::downgrade(&self.owner)
    }

    /// Hands listening sockets over, so that they stay open whatever happens to this process.
    pub(crate) async fn hold(&mut self, listeners: &[BorrowedFd<'_>]) -> Result<(), PortError> {
        self.forget_reports();
        send_listeners(&self.owner, listeners).map_err(|error| deaf(&error))?;
        match self.report(CONFIRM_MS).await? {
            Report::Ok(Acknowledged::Listen) => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Runs the tmux command; its server runs when this returns well.
    pub(crate) async fn run_tmux(&mut self) -> Result<(), PortError> {
        self.forget_reports();
        command(&self.owner, OwnerCommand::Start).map_err(|error| deaf(&error))?;
        match self.report(START_MS).await? {
            Report::Started { .. } => Ok(()),
            Report::Failed { message } => Err(PortError::new(
                PortErrorKind::TmuxFailed,
                format!("tmux did not start: {message}"),
            )),
            other => Err(unexpected(&other)),
        }
    }

    /// Asks for the end of everything and waits for it, `patience_ms` milliseconds at most. Afterwards the command
    /// socket is closed in any case.
    pub(crate) async fn close(mut self, patience_ms: u64) -> Closed {
        let outlet = Arc::clone(&self.outlet);
        let asked = command(&self.owner, OwnerCommand::Close);
        let closed = if asked.is_ok() {
            outlet.within(patience_ms, self.closed()).await.flatten()
        } else {
            None
        };
        drop(self.owner);
        // It ends right after its last report, or because its socket is closed.
        let exited = outlet.within(EXIT_MS, self.child.wait()).await;
        match (closed, exited) {
            (Some(killed), Some(_)) => Closed::InOrder(killed),
            (Some(_) | None, _) => Closed::Silent,
        }
    }

    async fn closed(&mut self) -> Option<u32> {
        loop {
            if let Ok(Report::Closed { killed }) = self.reports.recv().await? {
                return Some(killed);
            }
        }
    }

    /// Confirmations that nobody waited for.
    fn forget_reports(&mut self) {
        while self.reports.try_recv().is_ok() {}
    }

    async fn report(&mut self, within_ms: u64) -> Result<Report, PortError> {
        let outlet = Arc::clone(&self.outlet);
        match outlet.within(within_ms, self.reports.recv()).await {
            Some(Some(Ok(report))) => Ok(report),
            Some(Some(Err(error))) => Err(PortError::new(
                PortErrorKind::HelperProtocol,
                format!("the helper is of another version: {error}"),
            )),
            Some(None) => Err(self.ended().await),
            None => Err(PortError::new(
                PortErrorKind::TimedOut,
                "the supervisor did not report in time",
            )),
        }
    }

    /// Why there will be no report any more.
    async fn ended(&mut self) -> PortError {
        let outlet = Arc::clone(&self.outlet);
        let status = outlet.within(EXIT_MS, self.child.wait()).await;
        let usage = i32::from(ccd_helper::EXIT_USAGE);
        match status {
            Some(Ok(status)) if status.code() == Some(usage) => PortError::new(
                PortErrorKind::HelperProtocol,
                "the helper does not know its arguments: it is of another version",
            ),
            Some(Ok(status)) => PortError::new(
                PortErrorKind::Internal,
                format!("the supervisor ended: {status}"),
            ),
            Some(Err(_)) | None => {
                PortError::new(PortErrorKind::Internal, "the supervisor closed its output")
            }
        }
    }
}

fn unexpected(report: &Report) -> PortError {
    PortError::new(
        PortErrorKind::Internal,
        format!("the supervisor reported {:?} out of turn", report.to_line()),
    )
}

fn deaf(error: &io::Error) -> PortError {
    PortError::new(
        PortErrorKind::Internal,
        format!("the supervisor takes no commands: {error}"),
    )
}

/// Reads reports until the supervisor's output ends, which is its death unless it was closed.
async fn listen(
    stdout: ChildStdout,
    tell: mpsc::UnboundedSender<Result<Report, MessageError>>,
    outlet: Arc<Outlet>,
) {
    let mut lines = BufReader::new(stdout).lines();
    let mut set_up = false;
    while let Ok(Some(line)) = lines.next_line().await {
        let report = Report::parse(&line);
        match &report {
            Ok(Report::ServerGone) => {
                outlet.lost(LostPart::TmuxServer);
                continue;
            }
            Ok(Report::Ready { .. }) => set_up = true,
            Ok(
                Report::Started { .. }
                | Report::Failed { .. }
                | Report::Ok(_)
                | Report::Closed { .. },
            )
            | Err(_) => {}
        }
        if tell.send(report).is_err() {
            break;
        }
    }
    if set_up {
        outlet.lost(LostPart::Supervisor);
    }
}

/// The arguments for a launch.
pub(crate) fn arguments(
    spec: &SuperviseSpec,
    tmux_args: Vec<String>,
) -> Result<SuperviseArgs, PortError> {
    let (name, value) = &spec.marker;
    let marker = ccd_helper::Marker::new(name, value)
        .map_err(|error| PortError::new(PortErrorKind::Config, error.to_string()))?;
    Ok(SuperviseArgs {
        session: spec.session.clone(),
        dir: spec.runtime_dir.clone(),
        marker,
        grace: Duration::from_millis(spec.grace_ms),
        unlink: Vec::new(),
        program: spec.tmux.clone().into(),
        program_args: tmux_args.into_iter().map(Into::into).collect(),
    })
}
