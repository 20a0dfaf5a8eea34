//! The editor injection over its real socket and with the real helper, and the fake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;

use std::{
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    sync::Arc,
};

use ccd_helper::{EDITOR_LINK_NAME, EDITOR_SOCKET_NAME};
use ccd_model::{ids::OpId, observation::OpEnd};
use ccd_ports::{
    clock::Clock,
    inbox::Inbox,
    session::{EDITOR_NAME, Editor},
};
use ccd_testing::fakes::editor::{FakeEditor, FakeEditorControl};
use contract::{
    LAUNCH, Records, Rig,
    editor::{EditorRig, editor_contract},
    real::RealRig,
};

struct FakeRig {
    records: Arc<Records>,
    clock: Arc<dyn Clock>,
    editor: FakeEditor,
    control: FakeEditorControl,
}

impl FakeRig {
    fn new() -> Self {
        let records = Arc::new(Records::default());
        let clock = contract::clock();
        let inbox: Arc<dyn Inbox> = Arc::clone(&records) as Arc<dyn Inbox>;
        let (editor, control) = FakeEditor::new(LAUNCH, inbox, Arc::clone(&clock));
        Self {
            records,
            clock,
            editor,
            control,
        }
    }
}

impl Rig for FakeRig {
    fn records(&self) -> &Records {
        &self.records
    }
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }
}

impl EditorRig for FakeRig {
    fn port(&mut self) -> &mut dyn Editor {
        &mut self.editor
    }
    async fn open(&mut self, had: &str) -> String {
        self.control.open(had).to_string()
    }
}

fn connect(rig: &RealRig) -> UnixStream {
    UnixStream::connect(rig.spec.runtime_dir.join(EDITOR_SOCKET_NAME)).unwrap()
}

#[test]
fn host_and_helper_name_the_link_alike() {
    assert_eq!(EDITOR_NAME, EDITOR_LINK_NAME);
}

#[tokio::test]
async fn the_fake_editor_keeps_the_contract() {
    editor_contract(&mut FakeRig::new()).await;
}

#[tokio::test]
async fn the_socket_editor_keeps_the_contract() {
    let mut rig = RealRig::started().await;
    let mode = std::fs::metadata(&rig.spec.runtime_dir).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o700);
    editor_contract(&mut rig).await;
    rig.finish().await;
}

#[tokio::test]
async fn the_end_is_told_only_after_the_editors_process_has_ended() {
    let mut rig = RealRig::started().await;
    rig.port().stage(OpId(1), "text".into());
    // An editor that closes its connection and lives on for a while.
    let socket = rig.spec.runtime_dir.join(EDITOR_SOCKET_NAME);
    let held = rig.base.path().join("held");
    rustix::fs::mkfifoat(rustix::fs::CWD, &held, rustix::fs::Mode::RWXU).unwrap();
    let mut editor = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "an_editor_that_lingers", "--ignored"])
        .env("CCD_TEST_SOCKET", &socket)
        .env("CCD_TEST_HELD", &held)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Opens once the editor has closed its connection.
    let mut release = std::fs::OpenOptions::new();
    let release = tokio::task::spawn_blocking(move || release.write(true).open(held).unwrap());
    let release = release.await.unwrap();
    tokio::task::yield_now().await;
    assert!(rig.records().all().is_empty());
    drop(release);
    let (end, _) = rig.ended(OpId(1)).await;
    assert!(matches!(end, OpEnd::Taken { .. }), "{end:?}");
    editor.wait().unwrap();
    rig.finish().await;
}

#[test]
#[ignore = "the editor of another test"]
fn an_editor_that_lingers() {
    let (Ok(socket), Ok(held)) = (
        std::env::var("CCD_TEST_SOCKET"),
        std::env::var("CCD_TEST_HELD"),
    ) else {
        return;
    };
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(b"CCD1 EDIT 0\n").unwrap();
    let mut answer = [0; 16];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"CCD1 TEXT 4\ntext");
    drop(stream);
    // Ends when the other side has opened it and closed it again.
    std::fs::read(held).unwrap();
}

#[tokio::test]
async fn an_editor_that_goes_away_with_unread_bytes_is_unknown() {
    let mut rig = RealRig::started().await;
    rig.port().stage(OpId(1), "x".repeat(2_000_000).into());
    let mut stream = connect(&rig);
    stream.write_all(b"CCD1 EDIT 0\n").unwrap();
    let mut some = [0; 100];
    let first = tokio::task::spawn_blocking(move || {
        stream.read_exact(&mut some).unwrap();
        drop(stream);
    });
    first.await.unwrap();
    assert_eq!(rig.ended(OpId(1)).await.0, OpEnd::Unknown);
    // It was given out: nobody else gets it.
    assert_eq!(rig.open("draft").await, "draft");
    rig.finish().await;
}

#[tokio::test]
async fn an_editor_that_never_ends_is_unknown_after_a_while() {
    let mut rig = RealRig::started().await;
    rig.port().stage(OpId(1), "text".into());
    let mut stream = connect(&rig);
    stream.write_all(b"CCD1 EDIT 3\nold").unwrap();
    let began = rig.clock().now();
    let (end, _) = rig.ended(OpId(1)).await;
    assert_eq!(end, OpEnd::Unknown);
    assert!(rig.clock().now().since(began) >= 1_900);
    drop(stream);
    rig.finish().await;
}

#[tokio::test]
async fn a_caller_that_says_nothing_sensible_gets_nothing() {
    let mut rig = RealRig::started().await;
    rig.port().stage(OpId(1), "text".into());
    for words in [&b"CCD2 EDIT 0\n"[..], b"hello\n", b"CCD1 EDIT 5\nabc", b""] {
        let mut stream = connect(&rig);
        stream.write_all(words).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let read = tokio::task::spawn_blocking(move || {
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            answer
        });
        assert!(read.await.unwrap().is_empty());
    }
    assert!(rig.records().all().is_empty());
    assert_eq!(rig.open("draft").await, "text");
    rig.ended(OpId(1)).await;
    rig.finish().await;
}

#[tokio::test]
async fn a_text_that_is_being_taken_is_not_withdrawn() {
    let mut rig = RealRig::started().await;
    rig.port().stage(OpId(1), "text".into());
    let mut stream = connect(&rig);
    stream.write_all(b"CCD1 EDIT 0\n").unwrap();
    let read = tokio::task::spawn_blocking(move || {
        let mut answer = [0; 16];
        stream.read_exact(&mut answer).unwrap();
        stream
    });
    let stream = read.await.unwrap();
    rig.port().unstage(OpId(2), OpId(1));
    let (end, records) = rig.ended(OpId(2)).await;
    assert_eq!((end, records.len()), (OpEnd::Done, 1));
    drop(stream);
    // This very process is the editor here, and it does not end.
    let (end, _) = rig.ended(OpId(1)).await;
    assert!(matches!(end, OpEnd::Taken { .. }), "{end:?}");
    rig.finish().await;
}
