//! The supervise mode: one process per session that ends everything of the session when its owner ends.
//! Timer A-8 (owner watch, 1 s) lives here.
//!
//! What lives here: the set-up and the loop that serves the owner. What never does: accepting on a held socket,
//! talking to tmux or Claude, knowledge of Claude's protocol, printing the environment.
//!
//! * The owner is whoever holds the other end of stdin, and the parent process at the start. The end of either one is
//!   the owner's death: the kill ladder runs ([`ladder`]), the files are removed, the program ends.
//! * the loop wakes at least once a second to reap orphans (as child subreaper it inherits them) and to compare
//!   its parent. Everything that can be waited for is in the poll set besides; the tick is never the first to know.
//! * SIGTERM to the supervisor itself has its default action: it dies at once without the ladder, and the owner sees
//!   the end of stdout and must close the session itself. As a session leader without terminal it gets no SIGHUP
//!   and no Ctrl-C. Hosts must not start it as leader of its own process group if they want that (`setsid` would be
//!   refused; it then goes on in the group it leads, which a terminal's Ctrl-C does not reach either).

mod inbox;
mod ladder;
mod runtime_dir;
mod signal;

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

use self::inbox::{Inbox, Received};
use self::ladder::Ladder;
use self::runtime_dir::RuntimeDir;
use self::signal::Target;
use crate::args::SuperviseArgs;
use crate::proc::{self, Identity, ProcError};
use crate::report::{Acknowledged, OwnerCommand, Report};

/// longest time between two looks at the owner and at orphans.
const TICK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// How much of the tmux command's stderr is kept, in bytes.
const MAX_STDERR: usize = 4096;

/// How long a server that is still detaching itself is waited for before the best candidate is taken.
const DETACH_LIMIT: Duration = Duration::from_millis(200);

/// Why the supervisor could not be set up.
#[derive(Debug)]
pub(crate) enum SetupError {
    Stdin,
    Session(Errno),
    Subreaper(Errno),
    Pidfd(Errno),
    Proc(ProcError),
    RuntimeDir(io::Error),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("stdin is not a unix socket"),
            Self::Session(error) => write!(f, "setsid failed: {error}"),
            Self::Subreaper(error) => write!(f, "cannot become child subreaper: {error}"),
            Self::Pidfd(error) => write!(f, "pidfd is not available: {error}"),
            Self::Proc(error) => error.fmt(f),
            Self::RuntimeDir(error) => {
                write!(f, "the runtime directory cannot be created: {error}")
            }
        }
    }
}

/// Runs the mode until the orderly end or the owner's death.
pub(crate) fn run(args: &SuperviseArgs) -> Result<(), SetupError> {
    match Supervisor::set_up(args) {
        Ok(mut supervisor) => {
            say(&Report::Ready {
                pid: supervisor.own_pid,
            }
            .to_line());
            supervisor.serve();
            supervisor.end();
            Ok(())
        }
        Err(error) => {
            let report = Report::Failed {
                message: error.to_string(),
            };
            say(&report.to_first_line());
            Err(error)
        }
    }
}

/// The tmux command while it runs.
struct Starting {
    child: Child,
    target: Option<Target>,
    stderr: Option<ChildStderr>,
    said: Vec<u8>,
    status: Option<WaitStatus>,
}

struct Supervisor<'a> {
    args: &'a SuperviseArgs,
    own_pid: u32,
    /// The parent at the start: the owner.
    owner: Option<Pid>,
    /// The owner and everything above it: never killed, whatever environment they have.
    protected: Vec<Identity>,
    dir: RuntimeDir,
    inbox: Inbox,
    listeners: Vec<OwnedFd>,
    starting: Option<Starting>,
    started: bool,
    server: Option<Target>,
    watch: Option<Identity>,
}

impl<'a> Supervisor<'a> {
    fn set_up(args: &'a SuperviseArgs) -> Result<Self, SetupError> {
        if rustix::net::sockopt::socket_domain(io::stdin()) != Ok(rustix::net::AddressFamily::UNIX)
        {
            return Err(SetupError::Stdin);
        }
        let own = rustix::process::getpid();
        let owner = rustix::process::getppid();
        match rustix::process::setsid() {
            Ok(_) => {}
            Err(Errno::PERM) if rustix::process::getpgrp() == own => {}
            Err(error) => return Err(SetupError::Session(error)),
        }
        // The value only has to be non-zero.
        rustix::process::set_child_subreaper(Some(own)).map_err(SetupError::Subreaper)?;
        rustix::process::pidfd_open(own, rustix::process::PidfdFlags::empty())
            .map_err(SetupError::Pidfd)?;
        let own_pid = std::process::id();
        let table = proc::snapshot().map_err(SetupError::Proc)?;
        let protected = table
            .ancestors(own_pid)
            .iter()
            .map(|row| row.identity)
            .collect();
        Ok(Self {
            args,
            own_pid,
            owner,
            protected,
            dir: RuntimeDir::create(&args.dir).map_err(SetupError::RuntimeDir)?,
            inbox: Inbox::default(),
            listeners: Vec::new(),
            starting: None,
            started: false,
            server: None,
            watch: None,
        })
    }

    /// Serves commands until `CLOSE` or the owner's death.
    fn serve(&mut self) {
        loop {
            let stdin_ready = match self.wait() {
                Ok(ready) => ready,
                // A loop that cannot wait cannot watch the owner either: fail closed.
                Err(_) => return,
            };
            let received = if stdin_ready {
                self.inbox.receive(io::stdin().as_fd())
            } else {
                Received::Data
            };
            while let Some(command) = self.inbox.next_command() {
                match command {
                    Ok(OwnerCommand::Close) => return,
                    Ok(command) => self.handle(command),
                    Err(error) => fail(error.to_string()),
                }
            }
            self.reap();
            self.settle_start();
            self.settle_server();
            if received == Received::Closed || rustix::process::getppid() != self.owner {
                return;
            }
        }
    }

    /// Waits for the next event or tick; tells whether stdin has something (its end too).
    fn wait(&self) -> Result<bool, Errno> {
        let stdin = io::stdin();
        let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
        if let Some(starting) = &self.starting {
            if let Some(fd) = starting.target.as_ref().and_then(Target::pidfd) {
                fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            }
            if let Some(stderr) = &starting.stderr {
                fds.push(PollFd::new(stderr, PollFlags::IN));
            }
        }
        if let Some(fd) = self.server.as_ref().and_then(Target::pidfd) {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        match rustix::event::poll(&mut fds, Some(&TICK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        Ok(fds.first().is_some_and(|fd| !fd.revents().is_empty()))
    }

    fn handle(&mut self, command: OwnerCommand) {
        match command {
            OwnerCommand::Listen { count } => match self.inbox.take_sockets(usize::from(count)) {
                Some(sockets) => {
                    self.listeners.extend(sockets);
                    say(&Report::Ok(Acknowledged::Listen).to_line());
                }
                None => fail(format!("LISTEN {count}: that many sockets did not arrive")),
            },
            OwnerCommand::Start => self.start(),
            OwnerCommand::Watch(identity) => {
                self.watch = Some(identity);
                say(&Report::Ok(Acknowledged::Watch).to_line());
            }
            // Ends the loop before it comes here.
            OwnerCommand::Close => {}
        }
    }

    fn start(&mut self) {
        if self.started || self.starting.is_some() {
            return fail("START: already started".to_owned());
        }
        let spawned = Command::new(&self.args.program)
            .args(&self.args.program_args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => return fail(format!("the tmux program cannot be run: {error}")),
        };
        let stderr = child
            .stderr
            .take()
            .filter(|stderr| rustix::fs::fcntl_setfl(stderr, rustix::fs::OFlags::NONBLOCK).is_ok());
        // A child of ours keeps its process id until it is reaped, which happens only in this loop.
        let identity = proc::identity(child.id()).ok().flatten();
        self.starting = Some(Starting {
            target: identity.and_then(Target::open),
            child,
            stderr,
            said: Vec::new(),
            status: None,
        });
    }

    /// Takes every dead child, and notes the status of the tmux command if it is among them.
    fn reap(&mut self) {
        for (pid, status) in reap_children() {
            if let Some(starting) = &mut self.starting
                && u32::try_from(pid.as_raw_nonzero().get()) == Ok(starting.child.id())
            {
                starting.status = Some(status);
            }
        }
    }

    /// Reads the tmux command's stderr; when the command has ended, reports and finds its server.
    fn settle_start(&mut self) {
        let Some(starting) = &mut self.starting else {
            return;
        };
        starting.read_stderr();
        let Some(status) = starting.status else {
            return;
        };
        let failure = starting.failure(status);
        self.starting = None;
        match failure {
            Some(message) => fail(message),
            None => {
                self.started = true;
                self.server = self.find_server().and_then(Target::open);
                say(&Report::Started { code: 0 }.to_line());
                if self.server.is_none() {
                    say(&Report::ServerGone.to_line());
                }
            }
        }
    }

    /// The server that the tmux command left behind: our child now, and leader of its own session.
    ///
    /// A server that is just detaching itself still has a short-lived parent, which is waited for.
    fn find_server(&mut self) -> Option<Identity> {
        let deadline = Instant::now() + DETACH_LIMIT;
        loop {
            self.reap();
            let table = proc::snapshot().ok()?;
            let mut children: Vec<_> = table
                .children(self.own_pid)
                .filter(|row| row.alive)
                .collect();
            children.sort_by_key(|row| {
                let is_tmux = row.command.starts_with("tmux");
                let leads = row.session == row.identity.pid;
                (!is_tmux, !leads, row.identity.start_time, row.identity.pid)
            });
            let best = children.first()?;
            if best.session == best.identity.pid || Instant::now() >= deadline {
                return Some(best.identity);
            }
            let waiting: Vec<Target> = children
                .iter()
                .filter_map(|row| Target::open(row.identity))
                .collect();
            signal::wait_any(&waiting, deadline);
        }
    }

    fn settle_server(&mut self) {
        if let Some(server) = &self.server
            && !server.is_alive()
        {
            self.server = None;
            say(&Report::ServerGone.to_line());
        }
    }

    /// Kills what is left, removes the files, reports. The held sockets close only when the process ends.
    fn end(self) {
        let ladder = Ladder {
            own_pid: self.own_pid,
            protected: &self.protected,
            marker: self.args.marker.entry().as_bytes(),
            watch: self.watch,
            server: self.server.as_ref().map(Target::identity),
            grace: self.args.grace,
        };
        let killed = ladder.run();
        for path in &self.args.unlink {
            // Absent is as good as removed; for everything else nobody is left to be told.
            let _ = std::fs::remove_file(path);
        }
        self.dir.remove();
        say(&Report::Closed { killed }.to_line());
    }
}

impl Starting {
    fn read_stderr(&mut self) {
        let mut buffer = [0; 1024];
        while let Some(stderr) = &mut self.stderr {
            match stderr.read(&mut buffer) {
                Ok(0) => self.stderr = None,
                Ok(len) => {
                    let room = MAX_STDERR.saturating_sub(self.said.len()).min(len);
                    self.said.extend(buffer.iter().take(room));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.stderr = None,
            }
        }
    }

    /// Why the command failed, if it did: its status and the first line it said.
    fn failure(&self, status: WaitStatus) -> Option<String> {
        let how = match (status.exit_status(), status.terminating_signal()) {
            (Some(0), _) => return None,
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "unknown status".to_owned(),
        };
        let said = String::from_utf8_lossy(&self.said);
        Some(match said.lines().find(|line| !line.trim().is_empty()) {
            Some(line) => format!("{how}: {line}"),
            None => how,
        })
    }
}

/// Takes every child that is dead now.
fn reap_children() -> Vec<(Pid, WaitStatus)> {
    let mut reaped = Vec::new();
    while let Ok(Some(child)) = rustix::process::wait(WaitOptions::NOHANG) {
        reaped.push(child);
    }
    reaped
}

fn fail(message: String) {
    say(&Report::Failed { message }.to_line());
}

/// Writes one line for the owner. An owner that is gone is noticed elsewhere.
fn say(line: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(line.as_bytes());
    let _ = stdout.flush();
}
