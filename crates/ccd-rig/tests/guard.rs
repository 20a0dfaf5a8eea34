//! The guard and the rig around processes that do not go: they are found, named, ended, and only those of one's own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ccd_rig::guard::{Because, Guard, ID_VARIABLE, Survivor};
use ccd_rig::rig::{Rig, RigError, RigOptions};
use ccd_rig::service::{Queue, Reply, Scenario};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const SHORT: Duration = Duration::from_millis(100);

/// A process that lives until it is killed.
struct Sleeper(Child);

impl Sleeper {
    fn start(change: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000").env_clear();
        Self(change(&mut command).spawn().unwrap())
    }

    fn marked(id: &str) -> Self {
        Self::start(|command| command.env(ID_VARIABLE, id))
    }

    fn pid(&self) -> i32 {
        self.0.id().try_into().unwrap()
    }

    fn killed(&mut self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        self.0.wait().unwrap().signal() == Some(9)
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn pids(survivors: &[Survivor]) -> Vec<(i32, Because)> {
    survivors
        .iter()
        .filter_map(|survivor| match survivor {
            Survivor::Process { pid, because, .. } => Some((*pid, *because)),
            Survivor::Socket { .. } | Survivor::Directory { .. } => None,
        })
        .collect()
}

fn unisolated() -> Rig {
    Rig::unisolated(RigOptions::default())
        .unwrap()
        .patience(SHORT)
}

#[test]
fn a_process_is_found_by_each_sign_and_not_by_another_rigs() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let id = format!("guard-test-signs-{}", std::process::id());
    let guard = Guard::new(&id, &root);
    let copy = root.join("sleep-copy");
    std::fs::copy(which("sleep"), &copy).unwrap();
    let by_id = Sleeper::marked(&id);
    let by_directory = Sleeper::start(|command| command.current_dir(&root));
    let by_program = Sleeper(start_copy(&copy));
    let named = root.join("named");
    let by_command = Sleeper::start(|command| command.arg0(&named));
    let _other = Sleeper::marked(&format!("{id}-longer"));
    let found = pids(&guard.running());
    for expected in [
        (by_id.pid(), Because::Environment),
        (by_directory.pid(), Because::WorkingDirectory),
        (by_program.pid(), Because::Program),
        (by_command.pid(), Because::CommandLine),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
    assert_eq!(found.len(), 4, "{found:?}");
}

/// Starts a program that was just written. A process that another test forks meanwhile may still hold it open for
/// writing until it executes its own program.
fn start_copy(program: &Path) -> Child {
    let start = Instant::now();
    loop {
        match Command::new(program).arg("1000").env_clear().spawn() {
            Err(error)
                if error.kind() == std::io::ErrorKind::ExecutableFileBusy
                    && start.elapsed() < PATIENCE =>
            {
                std::thread::yield_now();
            }
            started => return started.unwrap(),
        }
    }
}

fn which(program: &str) -> std::path::PathBuf {
    ["/usr/bin", "/bin"]
        .iter()
        .map(|directory| Path::new(directory).join(program))
        .find(|path| path.is_file())
        .unwrap()
}

#[test]
fn a_rig_that_leaves_nothing_finishes_and_tells_what_the_service_saw() {
    let rig = Rig::unisolated(RigOptions {
        scenario: Scenario::of([Reply::text("a")]),
        ..RigOptions::default()
    })
    .unwrap();
    let root = rig.root();
    let address = rig.service().address();
    assert_eq!(rig.env()["ANTHROPIC_BASE_URL"], format!("http://{address}"));
    assert!(rig.cwd().starts_with(&root) && root.is_dir());
    let report = rig.finish().unwrap();
    assert_eq!(report.unused, [(Queue::Main, 0)]);
    assert!(!root.exists());
}

#[test]
fn a_rig_with_a_survivor_names_it_ends_it_and_fails() {
    let rig = unisolated();
    let root = rig.root();
    let mut sleeper = Sleeper::marked(rig.id());
    let pid = sleeper.pid();
    let RigError::Survived(survived) = rig.finish().unwrap_err() else {
        panic!("survived")
    };
    assert_eq!(pids(&survived.survivors), [(pid, Because::Environment)]);
    let message = survived.to_string();
    assert!(
        message.contains(&pid.to_string()) && message.contains("sleep 1000"),
        "{message}"
    );
    assert!(sleeper.killed());
    assert!(!root.exists());
}

#[test]
fn a_rig_waits_for_what_is_about_to_go() {
    let rig = unisolated().patience(PATIENCE);
    let mut command = Command::new("sleep");
    command.arg("0.3").env_clear().envs(rig.env());
    let mut child = command.spawn().unwrap();
    let reaper = std::thread::spawn(move || child.wait().unwrap());
    assert_eq!(rig.guard().running().len(), 1);
    let start = Instant::now();
    rig.finish().unwrap();
    assert!(start.elapsed() < PATIENCE);
    assert!(reaper.join().unwrap().success());
}

#[test]
fn a_socket_that_somebody_listens_on_is_a_survivor() {
    let rig = unisolated();
    let path = rig.home().run_dir().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let found = rig.guard().running();
    assert_eq!(
        found,
        [Survivor::Socket {
            path: path.to_string_lossy().into_owned()
        }]
    );
    drop(listener);
    rig.finish().unwrap();
}

#[test]
fn a_watched_path_outside_the_root_must_go_too() {
    let outside = tempfile::tempdir().unwrap();
    let mut guard = Guard::new("guard-test-watched", Path::new("/nonexistent/guard-test"));
    guard.watch(outside.path().to_owned());
    let survived = guard.wait_until_gone(SHORT).unwrap_err();
    assert_eq!(
        survived.survivors,
        [Survivor::Directory {
            path: outside.path().to_owned()
        }]
    );
    drop(outside);
    guard.wait_until_gone(PATIENCE).unwrap();
}

#[test]
fn a_failed_test_leaves_neither_process_nor_directory() {
    let rig = unisolated();
    let root = rig.root();
    let mut sleeper = Sleeper::marked(rig.id());
    let result = std::thread::spawn(move || {
        let _rig = rig;
        panic!("the test fails");
    })
    .join();
    assert!(result.is_err());
    assert!(sleeper.killed());
    assert!(!root.exists());
}

#[test]
fn a_dropped_rig_checks_itself() {
    let rig = unisolated();
    let mut sleeper = Sleeper::marked(rig.id());
    let result = std::thread::spawn(move || drop(rig)).join();
    let message = *result.unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("not left clean"), "{message}");
    assert!(sleeper.killed());
}

#[test]
fn rigs_at_the_same_time_see_only_their_own() {
    let (one, two) = (unisolated(), unisolated());
    assert_ne!(one.id(), two.id());
    let mut sleeper = Sleeper::marked(two.id());
    one.finish().unwrap();
    assert_eq!(two.guard().running().len(), 1);
    assert_eq!(two.guard().kill(PATIENCE).len(), 1);
    assert!(sleeper.killed());
    two.finish().unwrap();
}
