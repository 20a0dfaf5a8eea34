//! The host's questions, asked on this machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{collections::BTreeMap, path::Path, sync::Arc};

use ccd_platform::{
    claude_install::{PINS, installed},
    clock::BootClock,
    env::process_environment,
    host::RealHost,
};
use ccd_ports::{
    error::PortErrorKind,
    host::{Host, LayerKind},
};

fn host() -> RealHost {
    RealHost::new(Arc::new(BootClock::new()))
}

#[tokio::test]
async fn the_pinned_claude_says_its_version() {
    let env = process_environment();
    let version = PINS[0].version;
    let Some(program) = installed(version, &env) else {
        eprintln!("skipped: Claude Code {version} is not installed");
        return;
    };
    let asked = BTreeMap::from([(
        "CCD_CLAUDE".to_owned(),
        program.to_str().unwrap().to_owned(),
    )]);
    let found = host().claude(None, version, &asked).await.unwrap();
    assert_eq!(found.version, version);
    assert_eq!(found.path, std::fs::canonicalize(program).unwrap());
}

#[tokio::test]
async fn the_tmux_of_this_machine_is_new_enough() {
    let found = host().tmux(&process_environment()).await.unwrap();
    assert!(found.path.is_absolute());
    assert!(!found.version.is_empty());
}

#[test]
fn files_are_read_through_the_port() {
    let dir = tempfile::tempdir().unwrap();
    let (home, path) = (dir.path(), dir.path().join("f"));
    std::fs::write(&path, "text").unwrap();
    let host = host();
    assert!(host.exists(&path) && !host.exists(Path::new("/no/such/file")));
    assert_eq!(&*host.read(&path).unwrap(), "text");
    let error = host.read(Path::new("/no/such/file")).unwrap_err();
    assert_eq!(error.kind, PortErrorKind::FileUnreadable);
    assert_eq!(host.env().get("PATH").cloned(), std::env::var("PATH").ok());

    // A home from the first look to a trusted workspace.
    let env = BTreeMap::from([("HOME".to_owned(), home.to_str().unwrap().to_owned())]);
    let dirs = host.dirs(&env).unwrap();
    let work = home.join("work");
    std::fs::create_dir_all(work.join(".claude")).unwrap();
    std::fs::write(work.join(".claude/settings.json"), "{}").unwrap();
    std::fs::write(&dirs.global, "{\"hasCompletedOnboarding\":true}").unwrap();
    assert!(host.account(&dirs).unwrap().onboarded);
    assert!(host.live_claudes(&dirs).is_empty());
    let project = host
        .layers(&dirs, &work)
        .into_iter()
        .filter(|layer| layer.kind == LayerKind::Project);
    assert_eq!(project.count(), 1);
    let trusted = || {
        host.workspace(&dirs, work.to_str().unwrap())
            .unwrap()
            .trusted
    };
    assert!(!trusted());
    host.seed_trust(&dirs, &work).unwrap();
    assert!(trusted());
    assert!(host.account(&dirs).unwrap().onboarded);
}
