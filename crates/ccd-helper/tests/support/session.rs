//! A supervised session with this test as its owner, and a stand-in for tmux.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ccd_helper::{Identity, Marker, OwnerCommand, Report, SuperviseArgs, proc};
use tempfile::TempDir;

use super::{helper, poll_readable, until, wait_exit};

/// Longest wait for anything that is expected at once.
pub(crate) const SOON: Duration = Duration::from_secs(10);

const MARKER_NAME: &str = "CCD_TEST_SESSION";

/// A stand-in for tmux: the client double-forks a server that leads its own session, the server runs a pane, the
/// pane leaves a double-forked tool behind that leads its own session and ignores SIGTERM. `polite` and `stubborn`
/// say what the pane does at SIGTERM. The client ends when all of them run.
const FAKE_TMUX: &str = r#"#!/bin/sh
role=$1 state=$2 kind=$3
note() { echo $$ >"$state/$role.tmp" && mv "$state/$role.tmp" "$state/$role"; }
case $role in
client)
    ( setsid sh "$0" server "$state" "$kind" </dev/null >/dev/null 2>&1 & )
    while [ ! -e "$state/server" ] || [ ! -e "$state/pane" ] || [ ! -e "$state/tool" ]; do sleep 0.01; done ;;
hang) note; exec sleep 1000 ;;
server)
    sh "$0" pane "$state" "$kind" &
    note
    exec sleep 1000 ;;
pane)
    ( setsid sh "$0" tool "$state" & )
    [ "$kind" = stubborn ] && trap '' TERM HUP
    note
    exec sleep 1000 ;;
tool)
    trap '' TERM HUP INT
    note
    exec sleep 1000 ;;
orphans)
    for _ in 1 2 3 4 5; do ( ( sleep 0.05 ) & ); done
    ( setsid sh "$0" server "$state" polite </dev/null >/dev/null 2>&1 & )
    while [ ! -e "$state/tool" ]; do sleep 0.01; done ;;
esac
"#;

/// What a test needs to start a supervisor.
pub(crate) struct Plan {
    pub(crate) base: TempDir,
    pub(crate) args: SuperviseArgs,
}

impl Plan {
    /// A session whose tmux is the stand-in in this role.
    pub(crate) fn fake(role: &str, kind: &str) -> Self {
        let mut plan = Self::new("/bin/sh", &[]);
        let script = plan.base.path().join("fake-tmux");
        fs::write(&script, FAKE_TMUX).unwrap();
        let state = plan.state();
        fs::create_dir(&state).unwrap();
        plan.args.program_args = vec![script.into(), role.into(), state.into(), kind.into()];
        plan
    }

    /// A session with this program as tmux.
    pub(crate) fn new(program: &str, args: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = tempfile::tempdir().unwrap();
        let value = format!("{}-{count}", std::process::id());
        Self {
            args: SuperviseArgs {
                session: value.clone(),
                dir: base.path().join("run"),
                marker: Marker::new(MARKER_NAME, &value).unwrap(),
                grace: Duration::from_millis(2000),
                unlink: Vec::new(),
                program: program.into(),
                program_args: args.iter().map(OsString::from).collect(),
            },
            base,
        }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.base.path().join("state")
    }

    /// Starts the supervisor, its report of readiness not yet read.
    pub(crate) fn launch(self) -> Session {
        let (owner, theirs) = UnixStream::pair().unwrap();
        let mut command = helper(&self.args.to_argv());
        command.env(self.args.marker.name(), self.args.marker.value());
        command.env("TERM", "xterm-256color");
        let mut child = command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let reports = BufReader::new(child.stdout.take().unwrap());
        Session {
            plan: self,
            child,
            owner: Some(owner),
            reports,
        }
    }

    /// Starts the supervisor and waits until it is ready.
    pub(crate) fn ready(self) -> Session {
        let mut session = self.launch();
        let pid = session.child.id();
        assert_eq!(session.report(), Some(Report::Ready { pid }));
        session
    }

    /// Starts everything.
    pub(crate) fn started(self) -> Session {
        let mut session = self.ready();
        session.command(OwnerCommand::Start);
        assert_eq!(session.report(), Some(Report::Started { code: 0 }));
        session
    }
}

/// A running supervisor. Dropped, it takes everything of the session with it even when the test fails.
pub(crate) struct Session {
    pub(crate) plan: Plan,
    pub(crate) child: Child,
    pub(crate) owner: Option<UnixStream>,
    reports: BufReader<ChildStdout>,
}

impl Session {
    pub(crate) fn command(&self, command: OwnerCommand) {
        self.raw(&command.to_line());
    }

    pub(crate) fn raw(&self, line: &str) {
        let mut owner = self.owner.as_ref().unwrap();
        owner.write_all(line.as_bytes()).unwrap();
    }

    /// The next report; `None` at the end of the supervisor's stdout.
    pub(crate) fn report(&mut self) -> Option<Report> {
        if self.reports.buffer().is_empty() {
            assert!(
                poll_readable(&self.reports.get_ref().as_fd(), SOON),
                "no report in time"
            );
        }
        let mut line = String::new();
        self.reports.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| Report::parse(&line).unwrap())
    }

    /// The process that the stand-in runs in this role.
    pub(crate) fn role(&self, role: &str) -> Identity {
        let pid = fs::read_to_string(self.plan.state().join(role)).unwrap();
        proc::identity(pid.trim().parse().unwrap())
            .unwrap()
            .unwrap()
    }

    pub(crate) fn watch(&mut self, identity: Identity) {
        self.command(OwnerCommand::Watch(identity));
        let expected = Report::Ok(ccd_helper::Acknowledged::Watch);
        assert_eq!(self.report(), Some(expected));
    }

    /// Sends `CLOSE`; gives the number of killed processes.
    pub(crate) fn close(&mut self) -> u32 {
        self.command(OwnerCommand::Close);
        let report = self.report();
        let Some(Report::Closed { killed }) = report else {
            panic!("not closed: {report:?}");
        };
        assert_eq!(self.report(), None);
        assert!(self.exit(SOON).success());
        killed
    }

    /// The owner dies.
    pub(crate) fn drop_owner(&mut self) {
        self.owner = None;
    }

    pub(crate) fn exit(&mut self, limit: Duration) -> ExitStatus {
        wait_exit(&mut self.child, limit).expect("the supervisor must end in time")
    }

    /// Living processes that carry the marker of the session.
    pub(crate) fn marked(&self) -> Vec<Identity> {
        marked(self.plan.args.marker.entry())
    }

    /// Nothing is left: no process with the marker, no directory. To be called after the supervisor's end.
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.marked(), []);
        assert!(fs::symlink_metadata(&self.plan.args.dir).is_err());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.owner = None;
        if wait_exit(&mut self.child, SOON).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        kill_marked(self.plan.args.marker.entry());
    }
}

pub(crate) fn marked(entry: &str) -> Vec<Identity> {
    let rows = proc::snapshot().unwrap().processes;
    rows.into_iter()
        .filter(|row| row.alive && row.identity.pid != std::process::id())
        .filter(|row| proc::environ_has(row.identity.pid, entry.as_bytes()).unwrap())
        .map(|row| row.identity)
        .collect()
}

pub(crate) fn kill_marked(entry: &str) {
    until("marked processes end", SOON, || {
        let left = marked(entry);
        for identity in &left {
            kill(identity.pid, rustix::process::Signal::KILL);
        }
        left.is_empty()
    });
}

pub(crate) fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, signal);
}

/// A process beside the session that ends with the test, however that ends.
pub(crate) struct Stray(pub(crate) Identity, Option<Child>);

impl Stray {
    pub(crate) fn new(command: &mut Command) -> Self {
        let child = command.spawn().unwrap();
        let identity = proc::identity(child.id()).unwrap().unwrap();
        Self(identity, Some(child))
    }

    pub(crate) fn adopt(pid: u32) -> Self {
        Self(proc::identity(pid).unwrap().unwrap(), None)
    }
}

impl Drop for Stray {
    fn drop(&mut self) {
        if proc::is_alive(self.0).unwrap() {
            kill(self.0.pid, rustix::process::Signal::KILL);
        }
        if let Some(child) = &mut self.1 {
            child.wait().unwrap();
        }
    }
}
