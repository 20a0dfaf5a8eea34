//! The stage of one test: a driven rig, the command beside it, and the proof at the end.
//!
//! What lives here: what every theme needs around a session. What never does: a test, or a question to one session
//! (see `live`).

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use ccd_api::{Options, Permissions, RunResult};
use ccd_rig::{
    driven::Driven,
    guard::Guard,
    rig::RigOptions,
    service::{Reply, Request, Scenario, Service, StopReport},
};

use crate::live::Live;

/// From a start to its end, or from a prompt to the end of its turn, on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(25);

/// For what a dead owner leaves to be gone.
pub(crate) const CLEAN_UP: Duration = Duration::from_secs(3);

/// The directory in which passing tests leave their traces, too: the sources of `fixtures/traces`.
const KEEP_TRACES: &str = "CCD_KEEP_TRACES";

/// A rig for one test. [`Stage::finish`] proves that nothing is left; a failed test keeps its traces.
pub(crate) struct Stage {
    driven: Option<Driven>,
    command_traces: Mutex<Vec<PathBuf>>,
}

impl Stage {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self::with(RigOptions {
            scenario,
            ..RigOptions::default()
        })
    }

    pub(crate) fn with(options: RigOptions) -> Self {
        Self {
            driven: Some(Driven::with(options).unwrap()),
            command_traces: Mutex::default(),
        }
    }

    /// A rig whose service answers every prompt with "ok".
    pub(crate) fn plain() -> Self {
        Self::new(Scenario::new())
    }

    pub(crate) fn driven(&self) -> &Driven {
        self.driven.as_ref().unwrap()
    }

    pub(crate) fn rig(&self) -> &ccd_rig::rig::Rig {
        self.driven().rig()
    }

    pub(crate) fn service(&self) -> &Service {
        self.rig().service()
    }

    pub(crate) fn guard(&self) -> &Guard {
        self.rig().guard()
    }

    /// The workspace, or a path in it.
    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.rig().cwd().join(name)
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.driven().state_dir()
    }

    /// The state directory of the command, which has no option for it.
    pub(crate) fn command_state_dir(&self) -> PathBuf {
        self.rig().home().path().join(".local/state/ccd")
    }

    pub(crate) fn options(&self, permissions: Permissions) -> Options {
        self.driven().options(permissions).unwrap()
    }

    pub(crate) async fn start(&self, permissions: Permissions) -> Live {
        self.start_with(self.options(permissions)).await
    }

    /// Starts a session and notes its runtime directory, which must be gone at the end.
    pub(crate) async fn start_with(&self, options: Options) -> Live {
        let started = tokio::time::timeout(PATIENCE, Live::start(options)).await;
        let live = started
            .expect("the start took too long")
            .expect("the session did not start");
        self.driven().note_runtime_dirs();
        live
    }

    /// The texts a human wrote last, of all main requests so far.
    pub(crate) fn received(&self) -> Vec<String> {
        let requests = self.service().main_requests();
        requests
            .iter()
            .map(|request| without_marker(request.last_user_text().unwrap_or_default()))
            .collect()
    }

    /// Waits for `count` main requests.
    pub(crate) async fn main_requests(&self, count: usize) -> Vec<Arc<Request>> {
        let what = format!("{count} main requests");
        let found = self.service().wait_for_async(&what, PATIENCE, |log| {
            let found = log.main_requests();
            (found.len() >= count).then_some(found)
        });
        found.await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until a reply has left the mark, or stands at the gate, of this name.
    pub(crate) async fn mark(&self, name: &str) {
        let what = format!("the mark {name:?}");
        let found = self
            .service()
            .wait_for_async(&what, PATIENCE, |log| (log.marked(name) > 0).then_some(()));
        found.await.unwrap_or_else(|error| panic!("{error}"));
    }

    /// Makes a named pipe in the workspace: a command that reads it runs until [`Stage::open_pipe`].
    pub(crate) fn pipe(&self, name: &str) {
        let made = Command::new("mkfifo")
            .arg(self.work(name))
            .status()
            .unwrap();
        assert!(made.success(), "mkfifo: {made}");
    }

    /// Lets the command that reads the pipe end.
    pub(crate) async fn open_pipe(&self, name: &str, text: &str) {
        let (path, text) = (self.work(name), text.to_owned());
        let write = tokio::task::spawn_blocking(move || fs::write(path, text));
        let written = tokio::time::timeout(PATIENCE, write).await;
        written.expect("nobody reads the pipe").unwrap().unwrap();
    }

    /// The `ccd` command with an environment that has nothing of this machine.
    pub(crate) fn ccd(&self) -> Command {
        let program = std::env::var_os("CCD_BIN").expect("CCD_BIN names the built command");
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(self.rig().env())
            .env("CCD_HELPER", self.rig().helper().unwrap());
        command
            .current_dir(self.rig().root())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// `ccd run` in the rig: workspace, Claude, Claude's environment, a trace.
    pub(crate) fn ccd_run(&self, args: &[&str]) -> Command {
        let mut traces = self.command_traces.lock().unwrap();
        let trace = self
            .rig()
            .root()
            .join(format!("command-{}.ccd.jsonl", traces.len()));
        let mut command = self.ccd();
        command
            .arg("run")
            .arg("--cwd")
            .arg(self.rig().cwd())
            .arg("--trace")
            .arg(&trace);
        if !args.contains(&"--claude") {
            command.arg("--claude").arg(self.rig().claude().unwrap());
        }
        for (name, value) in self
            .rig()
            .env()
            .into_iter()
            .filter(|(name, _)| !name.starts_with("TMUX"))
        {
            command.arg("--env").arg(format!("{name}={value}"));
        }
        traces.push(trace);
        command.args(args);
        command
    }

    /// The trace of a killed command ends anywhere, and a command that could not start has none: neither is run again.
    pub(crate) fn forget_command_traces(&self) {
        self.command_traces.lock().unwrap().clear();
    }

    /// Ends the stage: every trace gives the same events again, and nothing of the sessions is left.
    pub(crate) fn finish(mut self) -> StopReport {
        let traces = std::mem::take(&mut *self.command_traces.lock().unwrap());
        for path in traces.iter().filter(|path| path.is_file()) {
            let replayed = ccd_runtime::replay_file(path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert!(
                replayed.differences.is_empty(),
                "{}: {}",
                path.display(),
                replayed.differences.join("\n")
            );
        }
        self.driven()
            .replay()
            .unwrap_or_else(|error| panic!("{error}"));
        let left = ccd_runtime::list_sessions(self.command_state_dir().to_str()).unwrap();
        assert!(left.is_empty(), "records of the command are left: {left:?}");
        if let Some(dir) = std::env::var_os(KEEP_TRACES) {
            self.keep(Path::new(&dir));
        }
        let driven = self.driven.take().unwrap();
        driven.finish().unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Stage {
    /// Copies the traces and the service's log to a directory of this test's own.
    fn keep(&self, dir: &Path) -> PathBuf {
        let name = std::thread::current()
            .name()
            .unwrap_or("unnamed")
            .replace("::", "-");
        let kept = dir.join(name);
        let _ = fs::remove_dir_all(&kept);
        let _ = fs::create_dir_all(&kept);
        let Some(driven) = &self.driven else {
            return kept;
        };
        let _ = fs::write(
            kept.join("service.txt"),
            driven.rig().service().log().summary(),
        );
        let of_command = self
            .command_traces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for path in driven.traces().iter().chain(of_command.iter()) {
            let _ = path.file_name().map(|file| fs::copy(path, kept.join(file)));
        }
        kept
    }
}

impl Drop for Stage {
    /// Keeps the traces and the service's log of a failed test.
    fn drop(&mut self) {
        let Some(driven) = self.driven.as_ref().filter(|_| std::thread::panicking()) else {
            return;
        };
        let kept = self.keep(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("real"));
        eprintln!(
            "the service saw:\n{}\ntraces are kept in {}",
            driven.rig().service().log().summary(),
            kept.display()
        );
    }
}

/// A reply that never goes on after its first two lines, "line one" and "line two".
pub(crate) fn stuck_after_two_lines(gate: &str) -> Reply {
    use ccd_rig::service::{Block, Point, Step};
    Reply::blocks([Block::text_deltas([
        "line one\n",
        "line two\n",
        "line three\n",
        "line four",
    ])])
    .at(
        Point::InBlock {
            block: 0,
            deltas: 3,
        },
        Step::gate(gate),
    )
}

/// After an interrupt Claude puts its own marker into the next prompt's message.
fn without_marker(text: &str) -> String {
    let markers = [
        "[Request interrupted by user]",
        "[Request interrupted by user for tool use]",
    ];
    let rest = markers
        .iter()
        .find_map(|marker| text.strip_prefix(marker)?.strip_prefix("\n\n"));
    rest.unwrap_or(text).to_owned()
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The result object on the last line of standard output.
    pub(crate) fn result(&self) -> RunResult {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("{error}: {line}\n{}", self.stderr))
    }
}

/// Runs a command to its end.
pub(crate) async fn run(mut command: Command) -> Ended {
    wait(command.spawn().unwrap()).await
}

/// Waits for the end of a command; kills it when that takes too long.
pub(crate) async fn wait(child: Child) -> Ended {
    let pid = rustix::process::Pid::from_child(&child);
    let task = tokio::task::spawn_blocking(move || child.wait_with_output());
    match tokio::time::timeout(PATIENCE, task).await {
        Ok(output) => Ended::of(output.unwrap().unwrap()),
        Err(_) => {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            panic!("the command did not end within {PATIENCE:?}");
        }
    }
}

/// Looks every few milliseconds until `found` is true.
pub(crate) async fn until(what: &str, patience: Duration, mut found: impl FnMut() -> bool) {
    let start = Instant::now();
    while !found() {
        assert!(
            start.elapsed() < patience,
            "{what}: not within {patience:?}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
