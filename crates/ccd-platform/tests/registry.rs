//! What every follower of Claude's registry promises.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{fs, path::PathBuf, sync::Arc};

use ccd_helper::proc;
use ccd_model::json::RawJson;
use ccd_platform::claude_registry::RegistryFollower;
use ccd_ports::{clock::Clock as _, raw::Raw, session::RegistryFile};
use ccd_testing::fakes::{
    clock::FakeClock,
    registry::{FakeRegistry, FakeRegistryControl},
};
use support::{LAUNCH, Records};

const SESSION: &str = "11111111-0000-4000-8000-000000000000";

/// A follower of [`SESSION`] and the registry it sees.
trait Rig {
    fn follower(&mut self) -> &mut dyn RegistryFile;
    fn records(&self) -> &Records;
    /// A process that lives.
    fn pid(&self) -> u32 {
        std::process::id()
    }
    fn write(&mut self, pid: u32, text: &str);
    fn remove(&mut self, pid: u32);
    /// One cadence passes, and the look of it is over.
    fn pass(&mut self);

    fn look(&mut self) -> Vec<Raw> {
        self.pass();
        self.records().take()
    }
}

struct RealRig {
    dir: tempfile::TempDir,
    clock: FakeClock,
    records: Arc<Records>,
    follower: RegistryFollower,
}

impl RealRig {
    fn new() -> Self {
        let (clock, records) = (FakeClock::new(), Records::new());
        let dir = tempfile::tempdir().unwrap();
        let sessions = dir.path().join("sessions");
        let follower = RegistryFollower::start(
            sessions,
            SESSION,
            LAUNCH,
            Arc::clone(&records) as _,
            clock.port(),
        );
        let rig = Self {
            dir,
            clock,
            records,
            follower,
        };
        assert!(rig.clock.wait_for_sleeper(rig.clock.now().after(250)));
        rig
    }

    fn path(&self, pid: u32) -> PathBuf {
        self.dir.path().join("sessions").join(format!("{pid}.json"))
    }
}

impl Rig for RealRig {
    fn follower(&mut self) -> &mut dyn RegistryFile {
        &mut self.follower
    }

    fn records(&self) -> &Records {
        &self.records
    }

    fn write(&mut self, pid: u32, text: &str) {
        fs::create_dir_all(self.dir.path().join("sessions")).unwrap();
        fs::write(self.path(pid), text).unwrap();
    }

    fn remove(&mut self, pid: u32) {
        fs::remove_file(self.path(pid)).unwrap();
    }

    fn pass(&mut self) {
        self.clock.advance(250);
        assert!(self.clock.wait_for_sleeper(self.clock.now().after(250)));
    }
}

struct FakeRig {
    records: Arc<Records>,
    follower: FakeRegistry,
    control: FakeRegistryControl,
}

impl FakeRig {
    fn new() -> Self {
        let records = Records::new();
        let clock = FakeClock::new().port();
        let (follower, control) =
            FakeRegistry::new(SESSION, LAUNCH, Arc::clone(&records) as _, clock);
        Self {
            records,
            follower,
            control,
        }
    }
}

impl Rig for FakeRig {
    fn follower(&mut self) -> &mut dyn RegistryFile {
        &mut self.follower
    }

    fn records(&self) -> &Records {
        &self.records
    }

    fn write(&mut self, pid: u32, text: &str) {
        self.control.write(pid, text);
    }

    fn remove(&mut self, pid: u32) {
        self.control.remove(pid);
    }

    fn pass(&mut self) {
        self.control.look();
    }
}

fn entry(session: &str, status: &str) -> String {
    format!("{{\"sessionId\":\"{session}\",\"status\":\"{status}\"}}")
}

fn registry(text: &str) -> Raw {
    Raw::Registry {
        body: RawJson::new(text),
    }
}

fn the_entry_of_the_session_is_found_and_reported_when_it_changes(rig: &mut dyn Rig) {
    let pid = rig.pid();
    assert_eq!(rig.look(), []);
    rig.write(1, &entry("another", "busy"));
    assert_eq!(rig.look(), []);
    let idle = entry(SESSION, "idle");
    rig.write(pid, &idle);
    assert_eq!(rig.look(), [registry(&idle)]);
    assert_eq!(rig.look(), []);
    let busy = entry(SESSION, "busy");
    rig.write(pid, &busy);
    assert_eq!(rig.look(), [registry(&busy)]);
    // Another session in the same process is the same follower's.
    let next = entry("next", "idle");
    rig.write(pid, &next);
    assert_eq!(rig.look(), [registry(&next)]);
}

fn a_torn_entry_gives_its_first_value_or_waits(rig: &mut dyn Rig) {
    let (pid, idle) = (rig.pid(), entry(SESSION, "idle"));
    rig.write(pid, "{\"sessionId\":");
    assert_eq!(rig.look(), []);
    rig.write(pid, &format!("{idle}46,\"waitingFor\":\"dialog open\"}}"));
    assert_eq!(rig.look(), [registry(&idle)]);
    rig.write(pid, "");
    assert_eq!(rig.look(), []);
    rig.write(pid, &idle);
    assert_eq!(rig.look(), []);
}

fn the_end_of_the_entry_is_reported_once(rig: &mut dyn Rig) {
    let (pid, idle) = (rig.pid(), entry(SESSION, "idle"));
    rig.write(pid, &idle);
    rig.look();
    rig.remove(pid);
    assert_eq!(rig.look(), [Raw::RegistryGone]);
    assert_eq!(rig.look(), []);
    rig.write(pid, &idle);
    assert_eq!(rig.look(), [registry(&idle)]);
}

fn a_known_pid_is_read_at_once_and_alone(rig: &mut dyn Rig) {
    let (pid, other) = (rig.pid(), entry("whatever", "idle"));
    rig.write(1, &entry(SESSION, "idle"));
    rig.write(pid, &other);
    rig.follower().pid(pid);
    assert_eq!(rig.records().wait(1), [registry(&other)]);
    assert_eq!(rig.look(), []);
}

const SUITE: [fn(&mut dyn Rig); 4] = [
    the_entry_of_the_session_is_found_and_reported_when_it_changes,
    a_torn_entry_gives_its_first_value_or_waits,
    the_end_of_the_entry_is_reported_once,
    a_known_pid_is_read_at_once_and_alone,
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
fn the_entry_of_a_dead_process_with_our_session_is_passed_over() {
    let mut rig = RealRig::new();
    let pid = std::process::id();
    let start = proc::start_time(pid).unwrap().unwrap();
    let entry = |start: u64| format!("{{\"sessionId\":\"{SESSION}\",\"procStart\":\"{start}\"}}");
    rig.write(u32::MAX, &entry(1));
    rig.write(pid, &entry(start + 1));
    assert_eq!(rig.look(), []);
    rig.write(pid, &entry(start));
    assert_eq!(rig.look(), [registry(&entry(start))]);
}

#[test]
fn a_key_file_is_never_opened() {
    let mut rig = RealRig::new();
    let pid = std::process::id();
    rig.write(pid, &entry(SESSION, "idle"));
    let key = rig
        .dir
        .path()
        .join("sessions")
        .join(format!("{pid}.aaaa.key"));
    fs::write(&key, "{\"peerToken\":\"secret\"}").unwrap();
    // A file that was read has a later access time; noatime mounts show nothing, and then this proves nothing.
    let before = fs::metadata(&key).unwrap().accessed().unwrap();
    assert_eq!(rig.look().len(), 1);
    assert_eq!(fs::metadata(&key).unwrap().accessed().unwrap(), before);
    assert!(!format!("{:?}", rig.look()).contains("secret"));
}

#[test]
fn a_cadence_of_zero_stops_looking_and_another_one_goes_on() {
    let mut rig = RealRig::new();
    rig.follower.cadence(0);
    rig.write(rig.pid(), &entry(SESSION, "idle"));
    rig.clock.advance(1000);
    rig.follower.cadence(100);
    // The cadence is counted from the last look, which was long ago.
    assert_eq!(rig.records.wait(1).len(), 1);
    assert!(rig.clock.wait_for_sleeper(rig.clock.now().after(100)));
}
