//! What every store of session records promises, and how the real one reaps.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    collections::BTreeMap,
    fs,
    io::Read as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use ccd_helper::proc;
use ccd_platform::state_dir::StateDir;
use ccd_ports::{
    error::PortErrorKind,
    state::{ProcessId, SessionRecord, StateStore},
};
use ccd_testing::fakes::state::FakeState;

fn record(session: &str, owner: ProcessId, started_ms: i64) -> SessionRecord {
    SessionRecord {
        format: 1,
        session: session.to_owned(),
        claude_session: format!("claude-{session}"),
        owner,
        supervisor: None,
        runtime_dir: "/no/such/runtime/dir".into(),
        marker: (
            "CCD_TEST".to_owned(),
            format!("{session}-{}", std::process::id()),
        ),
        cwd: "/work".into(),
        started_ms,
    }
}

/// The suite. `dead` is a process that lives no more.
async fn store_contract(store: &dyn StateStore, dead: ProcessId) {
    let this = store.this_process();
    assert_eq!(store.this_process(), this);
    assert!(store.list().is_empty());

    // Records are written, replaced, listed by start, removed.
    let (mine, orphan) = (record("b", this, 1), record("a", dead, 2));
    for record in [&orphan, &mine] {
        store.write(record).unwrap();
    }
    assert_eq!(store.list(), [mine.clone(), orphan.clone()]);
    let supervised = SessionRecord {
        supervisor: Some(this),
        ..mine.clone()
    };
    store.write(&supervised).unwrap();
    assert_eq!(store.list(), [supervised, orphan.clone()]);
    store.write(&mine).unwrap();

    // A session id is a plain name.
    for session in ["", "../x", "a/b", "a.b", &"x".repeat(65)] {
        let error = store.write(&record(session, this, 3)).unwrap_err();
        assert_eq!(error.kind, PortErrorKind::Config, "{session}");
        assert_eq!(
            store.remove(session).unwrap_err().kind,
            PortErrorKind::Config
        );
    }

    // An owner is a process with its start time.
    assert!(store.owner_alive(&mine));
    assert!(!store.owner_alive(&orphan));
    let reused = ProcessId {
        start_time: this.start_time + 1,
        ..this
    };
    assert!(!store.owner_alive(&record("x", reused, 4)));

    // Only orphans are reaped, once.
    let reaped = store.reap().await;
    assert_eq!(
        reaped
            .iter()
            .map(|reaped| &reaped.record)
            .collect::<Vec<_>>(),
        [&orphan]
    );
    assert_eq!((reaped[0].killed, reaped[0].dir_removed), (0, false));
    assert_eq!(store.list(), std::slice::from_ref(&mine));
    assert!(store.reap().await.is_empty());
    store.remove("b").unwrap();
    store.remove("b").unwrap();
    assert!(store.list().is_empty());

    // Self-tests are remembered by key.
    assert!(!store.self_test_known("k1"));
    store.remember_self_test("k1");
    store.remember_self_test("k2");
    store.remember_self_test("k1");
    assert!(store.self_test_known("k1") && store.self_test_known("k2"));
    for key in ["k", "", "k1\nk2"] {
        assert!(!store.self_test_known(key), "{key:?}");
    }
    store.remember_self_test("");
    assert!(!store.self_test_known(""));
}

fn identity(child: &Child) -> ProcessId {
    let start_time = proc::start_time(child.id()).unwrap().unwrap();
    ProcessId {
        pid: child.id(),
        start_time,
    }
}

/// A process that has ended and was waited for.
fn dead() -> ProcessId {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let id = identity(&child);
    drop(child.stdin.take());
    child.wait().unwrap();
    id
}

struct World {
    root: tempfile::TempDir,
    store: StateDir,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = StateDir::open(root.path().join("state").to_str(), &BTreeMap::new()).unwrap();
        Self { root, store }
    }

    fn runtime_dir(&self, name: &str) -> PathBuf {
        let dir = self.root.path().join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("settings.json"), "{}").unwrap();
        dir
    }
}

#[tokio::test]
async fn the_fake_store_keeps_the_contract() {
    store_contract(
        &FakeState::new(),
        ProcessId {
            pid: 5,
            start_time: 5,
        },
    )
    .await;
}

#[tokio::test]
async fn the_real_store_keeps_the_contract() {
    store_contract(&World::new().store, dead()).await;
}

#[test]
fn another_store_on_the_same_directory_sees_the_records() {
    let world = World::new();
    let mine = record("a", world.store.this_process(), 1);
    world.store.write(&mine).unwrap();
    world.store.remember_self_test("k");
    let other = StateDir::open(world.store.path().to_str(), &BTreeMap::new()).unwrap();
    assert_eq!(other.list(), [mine]);
    assert!(other.self_test_known("k"));
}

/// Starts a shell that says its children's pids and then waits.
fn start(script: &str, marker: Option<&(String, String)>) -> (Child, Vec<u32>) {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if let Some((name, value)) = marker {
        command.env(name, value);
    }
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    let mut out = child.stdout.take().unwrap();
    let mut byte = [0];
    while !said.ends_with('\n') {
        out.read_exact(&mut byte).unwrap();
        said.push(char::from(byte[0]));
    }
    let pids = said
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect();
    (child, pids)
}

fn is_alive(pid: u32) -> bool {
    proc::snapshot()
        .unwrap()
        .get(pid)
        .is_some_and(|row| row.alive)
}

#[tokio::test]
async fn what_is_left_of_a_dead_session_is_killed_and_removed_and_nothing_else() {
    const FAMILY: &str = "sleep 600 >/dev/null & a=$!; env -u CCD_TEST setsid sleep 600 >/dev/null & echo $a $!; wait";
    let world = World::new();
    let mut orphan = record("orphan", dead(), 1);
    orphan.runtime_dir = world.runtime_dir("orphan");
    // Without the marker: found as the supervisor, and what is below it. With it: found anywhere.
    let (mut supervisor, below) = start(FAMILY, None);
    orphan.supervisor = Some(identity(&supervisor));
    let (mut marked, children) = start(FAMILY, Some(&orphan.marker));
    let mut living = record("living", world.store.this_process(), 2);
    living.runtime_dir = world.runtime_dir("living");
    let (mut other, others) = start(FAMILY, Some(&living.marker));
    world.store.write(&orphan).unwrap();
    world.store.write(&living).unwrap();

    let reaped = world.store.reap().await;
    assert_eq!(reaped.len(), 1);
    assert_eq!(reaped[0].record, orphan);
    assert_eq!(reaped[0].killed, 6);
    assert!(reaped[0].dir_removed);
    assert!(!orphan.runtime_dir.exists());
    for pid in below
        .iter()
        .chain(&children)
        .chain(&[supervisor.id(), marked.id()])
    {
        assert!(!is_alive(*pid), "{pid}");
    }
    for pid in others.iter().chain(&[other.id()]) {
        assert!(is_alive(*pid), "{pid}");
    }
    assert!(living.runtime_dir.exists());
    assert_eq!(world.store.list(), [living.clone()]);
    supervisor.wait().unwrap();
    marked.wait().unwrap();

    // The same reaping ends the other family when its owner is gone.
    world
        .store
        .write(&SessionRecord {
            owner: dead(),
            ..living
        })
        .unwrap();
    assert_eq!(world.store.reap().await[0].killed, 3);
    other.wait().unwrap();
    assert!(world.store.list().is_empty());
}

#[tokio::test]
async fn a_reused_pid_of_a_supervisor_is_not_touched() {
    let world = World::new();
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    let id = identity(&bystander);
    let mut orphan = record("orphan", dead(), 1);
    orphan.supervisor = Some(ProcessId {
        start_time: id.start_time + 1,
        ..id
    });
    // An empty marker marks nobody.
    orphan.marker = (String::new(), String::new());
    world.store.write(&orphan).unwrap();
    let reaped = world.store.reap().await;
    assert_eq!((reaped.len(), reaped[0].killed), (1, 0));
    assert!(is_alive(bystander.id()));
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_runtime_directory_that_is_a_link_is_left_alone() {
    let world = World::new();
    let kept = world.runtime_dir("kept");
    let link = world.root.path().join("link");
    std::os::unix::fs::symlink(&kept, &link).unwrap();
    let mut orphan = record("orphan", dead(), 1);
    orphan.runtime_dir = link;
    world.store.write(&orphan).unwrap();
    let reaped = world.store.reap().await;
    assert!(!reaped[0].dir_removed);
    assert!(kept.join("settings.json").exists());
    assert!(world.store.list().is_empty());
}
