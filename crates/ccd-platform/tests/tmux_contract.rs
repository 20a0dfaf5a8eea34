//! The pane on real tmux and on the fake; what only the real one can do; the end of a launch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;

use std::sync::Arc;

use ccd_helper::proc;
use ccd_model::{
    ids::OpId,
    intent::{Key, KeyGuard},
    observation::{LostPart, OpEnd},
};
use ccd_ports::{
    clock::Clock,
    error::PortErrorKind,
    inbox::Inbox,
    raw::Raw,
    session::{Pane, SessionPorts, TMUX_SOCKET_NAME, Teardown},
};
use ccd_testing::fakes::pane::{FakePane, FakePaneControl, Painted};
use contract::{
    LAUNCH, Records, Rig, end, eventually,
    pane::{PaneRig, pane_contract},
    real::{RealRig, guards},
};
use rustix::process::{Pid, Signal, kill_process};

struct FakeRig {
    records: Arc<Records>,
    clock: Arc<dyn Clock>,
    pane: FakePane,
    control: FakePaneControl,
}

impl FakeRig {
    fn new() -> Self {
        let records = Arc::new(Records::default());
        let clock = contract::clock();
        let inbox: Arc<dyn Inbox> = Arc::clone(&records) as Arc<dyn Inbox>;
        let (pane, control) = FakePane::new(LAUNCH, inbox, Arc::clone(&clock));
        Self {
            records,
            clock,
            pane,
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
    fn settle(&mut self) {
        self.control.settle();
    }
}

impl PaneRig for FakeRig {
    fn pane(&mut self) -> &mut dyn Pane {
        &mut self.pane
    }
    async fn paint(&mut self, rows: &[&str], painted: Painted) {
        self.control.paint(&rows.join("\n"), painted);
    }
    async fn pressed(&mut self, count: usize) -> Vec<Key> {
        let pressed = self.control.pressed();
        assert!(pressed.len() >= count);
        pressed
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

fn lost(records: &[Raw], part: LostPart) -> usize {
    let is = |raw: &&Raw| matches!(raw, Raw::Lost { part: p } if *p == part);
    records.iter().filter(is).count()
}

fn control_clients(rig: &RealRig) -> Vec<u32> {
    let socket = rig.spec.runtime_dir.join(TMUX_SOCKET_NAME);
    let socket = socket.display().to_string();
    let table = proc::snapshot().unwrap();
    let ours = table.children(std::process::id()).filter(|row| row.alive);
    ours.map(|row| row.identity.pid)
        .filter(|pid| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline"));
            line.unwrap_or_default()
                .contains(&format!("{socket}\0-C\0"))
        })
        .collect()
}

#[tokio::test]
async fn the_fake_pane_keeps_the_contract() {
    pane_contract(&mut FakeRig::new()).await;
}

#[tokio::test]
async fn the_tmux_pane_keeps_the_contract_and_leaves_nothing() {
    let mut rig = RealRig::started().await;
    pane_contract(&mut rig).await;
    let teardown = rig.finish().await;
    assert_eq!(teardown, Teardown::default());
}

#[tokio::test]
async fn a_capture_agrees_with_the_second_opinion() {
    let mut rig = RealRig::started().await;
    let rows = [
        "❯ \u{1F468}\u{200D}\u{1F469} 漢字",
        "e\u{301} trailing   ",
        "",
        "  #{pane_id} $x \\",
    ];
    rig.paint(&["x"], Painted::Nothing).await;
    let text = rows.map(str::trim_end).join("\n");
    let path = rig.exec.ask("#{pane_tty}").await.unwrap();
    std::fs::write(path, format!("\x1b[2J\x1b[H{}", rows.join("\r\n"))).unwrap();
    rig.shows("漢字").await;
    rig.pane().capture(Some(OpId(1)));
    assert_eq!(rig.ended(OpId(1)).await.0, OpEnd::Done);
    let seen = rig.exec.rows().await.unwrap();
    let frame = rig.pane().last_frame();
    assert_eq!(&*frame, seen.trim_end_matches('\n'));
    assert_eq!(frame.lines().nth(3), text.lines().nth(3));
    rig.finish().await;
}

#[tokio::test]
async fn a_lost_control_client_is_told_and_replaced() {
    let mut rig = RealRig::started().await;
    rig.paint(&["x"], Painted::Composer).await;
    for round in 1..=2 {
        let clients = control_clients(&rig);
        assert_eq!(clients.len(), 1);
        signal(clients[0], Signal::KILL);
        let records = rig
            .until("lost client", |r| lost(r, LostPart::ControlClient) == 1)
            .await;
        assert_eq!(lost(&records, LostPart::TmuxServer), 0);
        let until = rig.clock().now().after(5_000);
        let op = OpId(round);
        rig.pane().key(op, Key::Enter, KeyGuard::Composer, until);
        assert_eq!(rig.ended(op).await.0, OpEnd::Done);
    }
    assert_eq!(rig.pressed(2).await, [Key::Enter, Key::Enter]);
    rig.finish().await;
}

#[tokio::test]
async fn a_lost_server_is_told_once_and_nothing_is_pressed_any_more() {
    let mut rig = RealRig::started().await;
    signal(rig.address.as_ref().unwrap().server_pid, Signal::KILL);
    let mut records = rig
        .until("lost server", |r| lost(r, LostPart::TmuxServer) > 0)
        .await;
    rig.pane().capture(Some(OpId(1)));
    let until = rig.clock().now().after(5_000);
    rig.pane()
        .key(OpId(2), Key::Enter, KeyGuard::NoDialog, until);
    let (refusal, more) = rig.ended(OpId(2)).await;
    assert!(matches!(refusal, OpEnd::Refused { .. }), "{refusal:?}");
    assert_eq!(end(&more, OpId(1)), Some(OpEnd::Unknown));
    records.extend(more);
    assert_eq!(lost(&records, LostPart::TmuxServer), 1);
    assert_eq!(lost(&records, LostPart::ControlClient), 0);
    rig.finish().await;
}

#[tokio::test]
async fn a_server_that_is_ended_by_hand_is_told_once() {
    let mut rig = RealRig::started().await;
    rig.exec.kill_server().await.unwrap();
    let ended = |raw: &Raw| matches!(raw, Raw::Exited { .. });
    let records = rig
        .until("lost server and exit", |r| {
            lost(r, LostPart::TmuxServer) > 0 && r.iter().any(ended)
        })
        .await;
    assert_eq!(lost(&records, LostPart::TmuxServer), 1);
    rig.finish().await;
    assert_eq!(lost(&records, LostPart::ControlClient), 0);
}

#[tokio::test]
async fn the_same_keys_by_exec_are_the_same_bytes() {
    let keys = [Key::Enter, Key::Escape, Key::CtrlG, Key::Backspace];
    let mut bytes = Vec::new();
    for by_exec in [true, false] {
        let mut rig = RealRig::started().await;
        for (op, key) in (1..).zip(keys) {
            if by_exec {
                rig.exec.press(key).await.unwrap();
            } else {
                let until = rig.clock().now().after(5_000);
                rig.pane().key(OpId(op), key, KeyGuard::NoDialog, until);
                assert_eq!(rig.ended(OpId(op)).await.0, OpEnd::Done);
            }
        }
        assert_eq!(rig.pressed(4).await, keys);
        bytes.push(std::fs::read(rig.keys_path()).unwrap());
        rig.finish().await;
    }
    assert_eq!(bytes[0], bytes[1]);
}

#[tokio::test]
async fn a_key_whose_answer_is_lost_is_unknown_and_never_pressed_again() {
    let mut rig = RealRig::started().await;
    rig.paint(&["x"], Painted::Composer).await;
    let server = rig.address.as_ref().unwrap().server_pid;
    signal(server, Signal::STOP);
    let until = rig.clock().now().after(60_000);
    rig.pane()
        .key(OpId(1), Key::Enter, KeyGuard::Composer, until);
    rig.pane().capture(Some(OpId(2)));
    assert_eq!(rig.ended(OpId(1)).await.0, OpEnd::Unknown);
    assert_eq!(rig.ended(OpId(2)).await.0, OpEnd::Unknown);
    signal(server, Signal::CONT);
    // The late answers are dropped: the next ones belong to the next requests.
    rig.pane().capture(Some(OpId(3)));
    let (done, records) = rig.ended(OpId(3)).await;
    assert_eq!(done, OpEnd::Done);
    let frames = records.iter().filter(|r| {
        matches!(
            r,
            Raw::Frame {
                op: Some(OpId(3)),
                ..
            }
        )
    });
    assert_eq!(frames.count(), 1);
    rig.pane()
        .key(OpId(4), Key::Escape, KeyGuard::Composer, until);
    assert_eq!(rig.ended(OpId(4)).await.0, OpEnd::Done);
    assert_eq!(rig.pressed(2).await, [Key::Enter, Key::Escape]);
    rig.finish().await;
}

#[tokio::test]
async fn a_key_is_held_while_tmux_itself_would_take_it() {
    let mut rig = RealRig::started().await;
    rig.paint(&["x"], Painted::Composer).await;
    let socket = rig.spec.runtime_dir.join(TMUX_SOCKET_NAME);
    let copy_mode = tokio::process::Command::new(&rig.spec.tmux)
        .arg("-S")
        .arg(socket)
        .args(["copy-mode", "-t", "%0"])
        .status();
    assert!(copy_mode.await.unwrap().success());
    let until = rig.clock().now().after(50);
    rig.pane()
        .key(OpId(1), Key::Enter, KeyGuard::Composer, until);
    let (held, _) = rig.ended(OpId(1)).await;
    assert!(matches!(held, OpEnd::Held { .. }), "{held:?}");
    assert!(rig.pressed(0).await.is_empty());
    rig.finish().await;
}

#[tokio::test]
async fn the_attach_command_is_read_only_and_names_the_socket() {
    let mut rig = RealRig::started().await;
    let command = rig.pane().attach_command();
    let socket = rig.spec.runtime_dir.join(TMUX_SOCKET_NAME);
    assert!(command.contains(" -r "), "{command}");
    assert!(command.contains(&*socket.to_string_lossy()), "{command}");
    rig.finish().await;
}

#[tokio::test]
async fn the_program_gets_its_words_its_directory_and_exactly_its_environment() {
    let mut rig = RealRig::new("");
    let dir = rig.base.path().join("a #{pane_id} #[x] 'b';");
    std::fs::create_dir(&dir).unwrap();
    let out = rig.base.path().join("out").display().to_string();
    let words = [
        "a;",
        ";",
        "x\\;",
        "$HOME",
        "#{pane_id}",
        "",
        "~",
        "a\nb",
        "{ b }",
        "%1",
        "'",
    ];
    rig.spec.claude_argv = vec![
        "/bin/sh".into(),
        "-c".into(),
        "o=$1; shift; { pwd; env -0 | tr '\\0' '\\n' | sort; for w; do printf '<%s>' \"$w\"; done; } >\"$o.new\"; \
         mv \"$o.new\" \"$o\"; exec sleep 600"
            .into(),
        "sh".into(),
        out.clone(),
    ];
    rig.spec.claude_argv.extend(words.map(String::from));
    rig.spec.cwd = dir.clone();
    rig.open_all().await;
    eventually("its report", || std::path::Path::new(&out).exists()).await;
    let said = std::fs::read_to_string(&out).unwrap();
    assert_eq!(said.lines().next().unwrap(), dir.to_str().unwrap());
    let printed: String = words.iter().map(|word| format!("<{word}>")).collect();
    assert!(said.ends_with(&printed), "{said}");
    let names: Vec<&str> = said
        .lines()
        .skip(1)
        .filter_map(|line| Some(line.split_once('=')?.0))
        .collect();
    for name in &names {
        let expected = rig.spec.env.contains_key(*name)
            || ["PWD", "OLDPWD", "SHELL", "SHLVL", "TERM", "_"].contains(name)
            || name.starts_with("TERM_PROGRAM")
            || name.starts_with('<');
        assert!(expected, "{name} leaked");
    }
    assert!(said.contains("\nTERM=xterm-256color\n"));
    rig.finish().await;
}

#[tokio::test]
async fn a_launch_that_is_dropped_ends_itself() {
    let mut rig = RealRig::started().await;
    assert!(!rig.processes().is_empty());
    rig.pane = None;
    rig.editor = None;
    rig.process = None;
    rig.ports = RealRig::new("").ports;
    rig.assert_gone().await;
}

#[tokio::test]
async fn a_dead_supervisor_is_told_and_the_teardown_ends_everything_itself() {
    let mut rig = RealRig::started().await;
    let supervisor = rig
        .processes()
        .into_iter()
        .find(|(_, name)| name.starts_with("ccd-helper"));
    signal(supervisor.unwrap().0, Signal::KILL);
    let records = rig
        .until("lost supervisor", |r| lost(r, LostPart::Supervisor) > 0)
        .await;
    assert_eq!(lost(&records, LostPart::Supervisor), 1);
    let teardown = rig.finish().await;
    assert!(teardown.killed >= 2, "{teardown:?}");
}

#[tokio::test]
async fn a_teardown_is_safe_at_any_point_and_twice() {
    let mut rig = RealRig::new("");
    assert_eq!(rig.ports.teardown().await, Teardown::default());
    rig.ports.supervise(rig.spec.clone()).await.unwrap();
    assert_eq!(rig.ports.teardown().await, Teardown::default());
    rig.assert_gone().await;
    assert_eq!(rig.ports.teardown().await, Teardown::default());
    assert!(rig.records.all().is_empty());
}

#[tokio::test]
async fn open_operations_end_at_the_teardown() {
    let mut rig = RealRig::started().await;
    let until = rig.clock().now().after(60_000);
    rig.pane()
        .key(OpId(1), Key::Enter, KeyGuard::Composer, until);
    rig.pane()
        .key(OpId(2), Key::Enter, KeyGuard::Composer, until);
    // The first one is tried by now.
    rig.shows("ready").await;
    rig.editor.as_mut().unwrap().stage(OpId(3), "never".into());
    rig.ports.teardown().await;
    let records = rig.records.all();
    assert_eq!(end(&records, OpId(1)), Some(OpEnd::Unknown));
    for op in [OpId(2), OpId(3)] {
        let ended = end(&records, op);
        assert!(matches!(ended, Some(OpEnd::Refused { .. })), "{ended:?}");
    }
    assert!(!records.iter().any(|raw| matches!(raw, Raw::Lost { .. })));
    // After the end an operation still ends.
    rig.pane().capture(Some(OpId(4)));
    assert_eq!(end(&rig.records.all(), OpId(4)), Some(OpEnd::Unknown));
    rig.assert_gone().await;
}

#[tokio::test]
async fn private_files_are_exclusive_and_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut rig = RealRig::new("");
    let early = rig.ports.write_private("x", "").await.unwrap_err();
    assert_eq!(early.kind, PortErrorKind::Internal);
    rig.ports.supervise(rig.spec.clone()).await.unwrap();
    let path = rig
        .ports
        .write_private("settings.json", "{}")
        .await
        .unwrap();
    assert_eq!(path, rig.spec.runtime_dir.join("settings.json"));
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for name in ["settings.json", "../x", "a/b", ".."] {
        assert!(rig.ports.write_private(name, "").await.is_err(), "{name}");
    }
    rig.finish().await;
}

#[tokio::test]
async fn what_cannot_work_is_refused_before_anything_is_started() {
    type Change = fn(&mut ccd_ports::session::SuperviseSpec);
    let cases: [(Change, PortErrorKind); 7] = [
        (|s| s.claude_argv.clear(), PortErrorKind::Config),
        (|s| s.claude_argv[0] = "/a=b".into(), PortErrorKind::Config),
        (|s| s.env.clear(), PortErrorKind::Config),
        (
            |s| s.runtime_dir = format!("/{}", "x".repeat(100)).into(),
            PortErrorKind::Config,
        ),
        (
            |s| s.cwd = "/nonexistent".into(),
            PortErrorKind::DirUnusable,
        ),
        (
            |s| s.helper = "/nonexistent/ccd-helper".into(),
            PortErrorKind::HelperMissing,
        ),
        (|s| s.helper = "/bin/true".into(), PortErrorKind::Internal),
    ];
    for (change, kind) in cases {
        let mut rig = RealRig::new("");
        change(&mut rig.spec);
        let error = rig.ports.supervise(rig.spec.clone()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        rig.finish().await;
    }
}

#[tokio::test]
async fn a_tmux_that_fails_says_why() {
    let mut rig = RealRig::new("");
    let fake = rig.base.path().join("tmux");
    std::fs::write(&fake, "#!/bin/sh\necho no server today >&2\nexit 1\n").unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    rig.spec.tmux = fake;
    rig.ports.supervise(rig.spec.clone()).await.unwrap();
    let error = rig.ports.spawn().await.unwrap_err();
    assert_eq!(error.kind, PortErrorKind::TmuxFailed);
    assert!(error.message.contains("no server today"), "{error}");
    let early = rig.ports.pane(guards()).await.err().unwrap();
    assert_eq!(early.kind, PortErrorKind::Internal);
    rig.finish().await;
}
