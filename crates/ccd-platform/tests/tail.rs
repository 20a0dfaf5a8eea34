//! What every transcript follower promises.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use ccd_model::ids::FileKey;
use ccd_platform::fs_tail::{TailFollower, lines::MAX_LINE};
use ccd_ports::{
    clock::Clock as _,
    raw::{Raw, TailNote},
    session::Tail,
};
use ccd_testing::fakes::{
    clock::FakeClock,
    tail::{FakeTail, FakeTailControl},
};
use support::{LAUNCH, Records};

const A: FileKey = FileKey(1);
const B: FileKey = FileKey(2);

/// A follower and the files it sees.
trait Rig {
    fn tail(&mut self) -> &mut dyn Tail;
    fn records(&self) -> &Records;
    fn path(&self, name: &str) -> PathBuf;
    fn append(&mut self, path: &Path, bytes: &[u8]);
    fn truncate(&mut self, path: &Path, length: u64);
    /// Puts another file at the path.
    fn replace(&mut self, path: &Path, bytes: &[u8]);
    fn remove(&mut self, path: &Path);
    /// Called before something is asked that [`Rig::settle`] is to wait for.
    fn prepare(&mut self) {}
    /// Waits until what was asked is done.
    fn settle(&mut self) {}
    /// One cadence passes, and the look of it is over.
    fn pass(&mut self);

    fn look(&mut self) -> Vec<Raw> {
        self.pass();
        self.records().take()
    }

    fn follow(&mut self, file: FileKey, path: &Path, from: u64) -> Vec<Raw> {
        self.prepare();
        self.tail().follow(file, path.to_owned(), from);
        self.settle();
        self.records().take()
    }
}

struct RealRig {
    dir: tempfile::TempDir,
    clock: FakeClock,
    records: Arc<Records>,
    tail: TailFollower,
}

impl RealRig {
    fn new() -> Self {
        let (clock, records) = (FakeClock::new(), Records::new());
        let tail = TailFollower::start(LAUNCH, Arc::clone(&records) as _, clock.port());
        Self {
            dir: tempfile::tempdir().unwrap(),
            clock,
            records,
            tail,
        }
    }
}

impl Rig for RealRig {
    fn tail(&mut self) -> &mut dyn Tail {
        &mut self.tail
    }

    fn records(&self) -> &Records {
        &self.records
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn append(&mut self, path: &Path, bytes: &[u8]) {
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        file.unwrap().write_all(bytes).unwrap();
    }

    fn truncate(&mut self, path: &Path, length: u64) {
        fs::OpenOptions::new()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(length)
            .unwrap();
    }

    fn replace(&mut self, path: &Path, bytes: &[u8]) {
        let other = path.with_extension("other");
        fs::write(&other, bytes).unwrap();
        fs::rename(other, path).unwrap();
    }

    fn remove(&mut self, path: &Path) {
        fs::remove_file(path).unwrap();
    }

    fn prepare(&mut self) {
        // The sleep after the look then ends at a time of its own.
        self.clock.advance(1);
    }

    fn settle(&mut self) {
        // It sleeps for a whole cadence from now only after its look.
        assert!(self.clock.wait_for_sleeper(self.clock.now().after(250)));
    }

    fn pass(&mut self) {
        self.clock.advance(250);
        self.settle();
    }
}

struct FakeRig {
    records: Arc<Records>,
    tail: FakeTail,
    control: FakeTailControl,
}

impl FakeRig {
    fn new() -> Self {
        let records = Records::new();
        let (tail, control) =
            FakeTail::new(LAUNCH, Arc::clone(&records) as _, FakeClock::new().port());
        Self {
            records,
            tail,
            control,
        }
    }
}

impl Rig for FakeRig {
    fn tail(&mut self) -> &mut dyn Tail {
        &mut self.tail
    }

    fn records(&self) -> &Records {
        &self.records
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new("/fake").join(name)
    }

    fn append(&mut self, path: &Path, bytes: &[u8]) {
        self.control.append(path, bytes);
    }

    fn truncate(&mut self, path: &Path, length: u64) {
        self.control
            .truncate(path, usize::try_from(length).unwrap());
    }

    fn replace(&mut self, path: &Path, bytes: &[u8]) {
        self.control.replace(path, bytes);
    }

    fn remove(&mut self, path: &Path) {
        self.control.remove(path);
    }

    fn pass(&mut self) {
        self.control.look();
    }
}

fn line(file: FileKey, offset: u64, text: &str) -> Raw {
    Raw::Line {
        file,
        offset,
        text: text.into(),
    }
}

fn note(file: FileKey, note: TailNote) -> Raw {
    Raw::Tail { file, note }
}

fn a_file_that_appears_later_is_read_whole(rig: &mut dyn Rig) {
    let path = rig.path("a.jsonl");
    assert_eq!(rig.follow(A, &path, 0), []);
    assert_eq!(rig.look(), []);
    rig.append(&path, b"one\ntw");
    assert_eq!(rig.look(), [note(A, TailNote::Appeared), line(A, 0, "one")]);
    rig.append(&path, b"o\r\n\nthree\n");
    assert_eq!(
        rig.look(),
        [line(A, 4, "two\r"), line(A, 9, ""), line(A, 10, "three")]
    );
    assert_eq!(rig.look(), []);
}

fn following_begins_where_it_is_asked_to(rig: &mut dyn Rig) {
    let path = rig.path("a.jsonl");
    rig.append(&path, b"one\ntwo\nto");
    assert_eq!(
        rig.follow(A, &path, 4),
        [note(A, TailNote::Appeared), line(A, 4, "two")]
    );
    rig.prepare();
    rig.tail().follow_from_end(B, path.clone());
    rig.append(&path, b"rn\nnew\n");
    rig.settle();
    let mut seen = rig.records().take();
    seen.extend(rig.look());
    seen.sort_by_key(|raw| matches!(raw, Raw::Line { file: B, .. } | Raw::Tail { file: B, .. }));
    let whole = [line(A, 8, "torn"), line(A, 13, "new")];
    assert_eq!(
        seen,
        [
            &whole[..],
            &[note(B, TailNote::Appeared), line(B, 13, "new")]
        ]
        .concat()
    );
}

fn a_shrunk_file_is_announced_and_goes_on(rig: &mut dyn Rig) {
    let path = rig.path("a.jsonl");
    rig.append(&path, b"one\ntwo\nthree\npart");
    assert_eq!(rig.follow(A, &path, 0).len(), 4);
    rig.truncate(&path, 8);
    assert_eq!(rig.look(), [note(A, TailNote::Shrank)]);
    rig.append(&path, b"four\n");
    assert_eq!(rig.look(), [line(A, 8, "four")]);
}

fn another_file_at_the_path_is_read_from_its_start(rig: &mut dyn Rig) {
    let path = rig.path("a.jsonl");
    rig.append(&path, b"one\n");
    rig.follow(A, &path, 0);
    rig.replace(&path, b"longer than before\nb\n");
    let expected = [
        note(A, TailNote::Replaced),
        line(A, 0, "longer than before"),
        line(A, 19, "b"),
    ];
    assert_eq!(rig.look(), expected);
    rig.remove(&path);
    assert_eq!(rig.look(), []);
    rig.append(&path, b"c\n");
    assert_eq!(rig.look(), [note(A, TailNote::Replaced), line(A, 0, "c")]);
}

fn several_files_are_followed_until_forgotten(rig: &mut dyn Rig) {
    let (a, b) = (rig.path("a"), rig.path("b"));
    rig.append(&a, b"a1\n");
    rig.follow(A, &a, 0);
    rig.follow(B, &b, 0);
    rig.append(&b, b"b1\n");
    rig.append(&a, b"a2\n");
    assert_eq!(
        rig.look(),
        [
            line(A, 3, "a2"),
            note(B, TailNote::Appeared),
            line(B, 0, "b1")
        ]
    );
    rig.tail().forget(A);
    rig.append(&a, b"a3\n");
    rig.append(&b, b"b2\n");
    assert_eq!(rig.look(), [line(B, 3, "b2")]);
    assert_eq!(
        rig.follow(A, &a, 6),
        [note(A, TailNote::Appeared), line(A, 6, "a3")]
    );
}

fn what_is_too_long_or_no_utf_8_is_announced(rig: &mut dyn Rig) {
    let path = rig.path("a");
    let mut bytes = b"a\xffb\n".to_vec();
    bytes.resize(bytes.len() + MAX_LINE + 1, b'x');
    bytes.extend(b"\nok\n");
    rig.append(&path, &bytes);
    let expected = [
        note(A, TailNote::Appeared),
        line(A, 0, "a\u{fffd}b"),
        note(A, TailNote::Repaired),
        note(
            A,
            TailNote::Oversize {
                bytes: MAX_LINE as u64 + 1,
            },
        ),
        line(A, MAX_LINE as u64 + 6, "ok"),
    ];
    assert_eq!(rig.follow(A, &path, 0), expected);
}

fn without_a_cadence_only_a_nudge_looks(rig: &mut dyn Rig) {
    let path = rig.path("a");
    rig.append(&path, b"one\n");
    rig.follow(A, &path, 0);
    rig.tail().cadence(0);
    rig.append(&path, b"two\n");
    rig.tail().nudge();
    assert_eq!(rig.records().wait(1), [line(A, 4, "two")]);
}

const SUITE: [fn(&mut dyn Rig); 7] = [
    a_file_that_appears_later_is_read_whole,
    following_begins_where_it_is_asked_to,
    a_shrunk_file_is_announced_and_goes_on,
    another_file_at_the_path_is_read_from_its_start,
    several_files_are_followed_until_forgotten,
    what_is_too_long_or_no_utf_8_is_announced,
    without_a_cadence_only_a_nudge_looks,
];

#[test]
fn the_fake_follower_keeps_the_contract() {
    for promise in SUITE {
        promise(&mut FakeRig::new());
    }
}

#[test]
fn the_real_follower_keeps_the_contract() {
    for promise in SUITE {
        promise(&mut RealRig::new());
    }
}

#[test]
fn the_cadence_asked_for_is_the_one_waited_for() {
    let mut rig = RealRig::new();
    let path = rig.path("a");
    rig.append(&path, b"one\n");
    rig.follow(A, &path, 0);
    rig.tail.cadence(50);
    assert!(rig.clock.wait_for_sleeper(rig.clock.now().after(50)));
    rig.append(&path, b"two\n");
    rig.clock.advance(49);
    assert_eq!(rig.records.take(), []);
    rig.clock.advance(1);
    assert_eq!(rig.records.wait(1), [line(A, 4, "two")]);
}

#[test]
fn the_task_ends_with_its_follower() {
    let mut rig = RealRig::new();
    let path = rig.path("a");
    rig.follow(A, &path, 0);
    let records = Arc::downgrade(&rig.records);
    drop(rig);
    let deadline = std::time::Instant::now() + support::PATIENCE;
    while records.upgrade().is_some() {
        assert!(
            std::time::Instant::now() < deadline,
            "the task still holds the inbox"
        );
        std::thread::yield_now();
    }
}
