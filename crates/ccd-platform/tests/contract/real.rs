//! A launch of the real adapters with a small program in the pane instead of Claude.

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use ccd_helper::proc;
use ccd_model::intent::Key;
use ccd_platform::{session_ports::LaunchPorts, tmux::exec::ExecTmux};
use ccd_ports::{
    clock::Clock,
    inbox::Inbox,
    session::{
        EDITOR_NAME, Editor, GuardFormats, Pane, PaneAddress, Process, SessionPorts, SuperviseSpec,
        TMUX_SOCKET_NAME, Teardown,
    },
};
use ccd_testing::fakes::pane::Painted;
use tempfile::TempDir;

use super::{
    LAUNCH, Records, Rig, editor::EditorRig, eventually, pane::PaneRig, process::ProcessRig,
};

/// Reads keys raw, ends with the code in the file beside it when its terminal says `x`.
const PROGRAM: &str = "stty raw -echo; printf ready; exec cat >\"$1\"";

/// Waits for a word and exits with it.
const EXITING: &str = "read -r code <\"$1\"; exit \"$code\"";

/// The helper program, built once.
pub fn helper() -> &'static Path {
    static HELPER: OnceLock<PathBuf> = OnceLock::new();
    HELPER.get_or_init(|| {
        let this = std::env::current_exe().unwrap();
        let profile = this.parent().and_then(Path::parent).unwrap();
        let target = profile.parent().unwrap();
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--offline",
                "-p",
                "ccd-helper",
                "--bin",
                "ccd-helper-alone",
            ])
            .arg("--target-dir")
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.unwrap().success());
        profile.join("ccd-helper-alone")
    })
}

pub fn tmux() -> PathBuf {
    which::which("tmux").unwrap()
}

/// One launch.
pub struct RealRig {
    pub ports: LaunchPorts,
    pub records: Arc<Records>,
    pub clock: Arc<dyn Clock>,
    pub spec: SuperviseSpec,
    pub address: Option<PaneAddress>,
    pub pane: Option<Box<dyn Pane>>,
    pub editor: Option<Box<dyn Editor>>,
    pub process: Option<Box<dyn Process>>,
    pub exec: ExecTmux,
    pub base: TempDir,
    tty: Option<fs::File>,
}

pub fn guards() -> GuardFormats {
    GuardFormats {
        composer: "#{&&:#{C/r:^❯\u{a0}},#{==:#{C/r:^ (❯ [0-9]|Esc to cancel|Do you want)},0}}"
            .to_owned(),
        empty: "1".to_owned(),
        busy: "1".to_owned(),
        tall: "#{==:1,2}".to_owned(),
        dialog: "#{C/r:^ (❯ [0-9]|Esc to cancel|Do you want)}".to_owned(),
    }
}

impl RealRig {
    /// Nothing is started yet. `program` is a shell script; its `$1` is the path `keys`.
    pub fn new(program: &str) -> Self {
        let base = tempfile::Builder::new().prefix("ccd-t").tempdir().unwrap();
        let records = Arc::new(Records::default());
        let clock = super::clock();
        let inbox: Arc<dyn Inbox> = Arc::clone(&records) as Arc<dyn Inbox>;
        let marker = (
            "CCD_TEST_MARKER".to_owned(),
            base.path().display().to_string(),
        );
        let env = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), base.path().display().to_string()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
            marker.clone(),
        ]);
        let keys = base.path().join("keys").display().to_string();
        let spec = SuperviseSpec {
            session: "test".into(),
            helper: helper().to_owned(),
            runtime_dir: base.path().join("rt"),
            env,
            marker,
            grace_ms: 500,
            tmux: tmux(),
            size: (250, 80),
            cwd: base.path().to_owned(),
            claude_argv: ["/bin/sh", "-c", program, "sh", &keys]
                .map(String::from)
                .into(),
        };
        Self {
            ports: LaunchPorts::new(LAUNCH, inbox, Arc::clone(&clock)),
            exec: ExecTmux::new(
                tmux(),
                spec.runtime_dir.join(TMUX_SOCKET_NAME),
                Arc::clone(&clock),
            ),
            records,
            clock,
            spec,
            address: None,
            pane: None,
            editor: None,
            process: None,
            base,
            tty: None,
        }
    }

    /// A program that reads keys, with every adapter open.
    pub async fn started() -> Self {
        let mut rig = Self::new(PROGRAM);
        rig.open_all().await;
        rig.shows("ready").await;
        rig.records.take();
        rig
    }

    /// A program that waits for its exit code.
    pub async fn exiting() -> Self {
        let mut rig = Self::new(EXITING);
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            rig.keys_path(),
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .unwrap();
        rig.open_all().await;
        rig.records.take();
        rig
    }

    /// Opens every adapter in the launcher's order.
    pub async fn open_all(&mut self) {
        self.ports.supervise(self.spec.clone()).await.unwrap();
        self.editor = Some(self.ports.editor().await.unwrap());
        self.address = Some(self.ports.spawn().await.unwrap());
        self.pane = Some(self.ports.pane(guards()).await.unwrap());
        self.process = Some(self.ports.process());
    }

    /// The process port, where its name is not clear from the trait.
    pub fn process_port(&mut self) -> &mut dyn Process {
        self.process.as_deref_mut().unwrap()
    }

    pub fn keys_path(&self) -> PathBuf {
        self.base.path().join("keys")
    }

    /// Waits until the screen holds `text`, by the second opinion.
    pub async fn shows(&self, text: &str) {
        let started = Instant::now();
        loop {
            let rows = self.exec.rows().await.unwrap();
            if rows.contains(text) {
                return;
            }
            assert!(
                started.elapsed() < Duration::from_secs(10),
                "{text:?} not in {rows:?}"
            );
        }
    }

    /// Living processes of this launch.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let entry = format!("{}={}", self.spec.marker.0, self.spec.marker.1);
        let table = proc::snapshot().unwrap();
        let alive = table.processes.into_iter().filter(|row| row.alive);
        alive
            .filter(|row| proc::environ_has(row.identity.pid, entry.as_bytes()).unwrap_or(false))
            .map(|row| (row.identity.pid, row.command))
            .collect()
    }

    /// Ends the launch and asserts that nothing is left.
    pub async fn finish(mut self) -> Teardown {
        let teardown = self.ports.teardown().await;
        assert_eq!(teardown.left, Vec::<String>::new());
        self.assert_gone().await;
        teardown
    }

    /// No process, no socket, no directory; no child of ours, dead or alive.
    pub async fn assert_gone(&self) {
        eventually("no process is left", || self.processes().is_empty()).await;
        eventually("no runtime directory is left", || {
            !self.spec.runtime_dir.exists()
        })
        .await;
        let socket = self.spec.runtime_dir.display().to_string();
        eventually("no child is left", || {
            let table = proc::snapshot().unwrap();
            table.children(std::process::id()).all(|child| {
                let line = fs::read_to_string(format!("/proc/{}/cmdline", child.identity.pid));
                let zombie = !child.alive && child.command.contains("tmux");
                !zombie && !line.unwrap_or_default().contains(&socket)
            })
        })
        .await;
    }
}

impl Rig for RealRig {
    fn records(&self) -> &Records {
        &self.records
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }
}

impl PaneRig for RealRig {
    fn pane(&mut self) -> &mut dyn Pane {
        self.pane.as_deref_mut().unwrap()
    }

    async fn paint(&mut self, rows: &[&str], painted: Painted) {
        let mut rows: Vec<&str> = rows.to_vec();
        match painted {
            Painted::Nothing => {}
            Painted::Composer => rows.push("❯\u{a0}draft"),
            Painted::Dialog => rows.push(" ❯ 1. Yes"),
        }
        if self.tty.is_none() {
            let path = self.exec.ask("#{pane_tty}").await.unwrap();
            let mut options = fs::OpenOptions::new();
            self.tty = Some(options.write(true).open(path).unwrap());
        }
        let text = rows.join("\r\n");
        let mut tty = self.tty.as_ref().unwrap();
        tty.write_all(format!("\x1b[2J\x1b[H{text}").as_bytes())
            .unwrap();
        let expected = rows.join("\n");
        let started = Instant::now();
        loop {
            let seen = self.exec.rows().await.unwrap();
            if seen.trim_end_matches('\n') == expected.trim_end_matches('\n') {
                return;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "{seen:?}");
        }
    }

    async fn pressed(&mut self, count: usize) -> Vec<Key> {
        let path = self.keys_path();
        let read = || fs::read(&path).unwrap_or_default();
        eventually("keys", || read().len() >= count).await;
        read()
            .into_iter()
            .map(|byte| match byte {
                b'\r' => Key::Enter,
                0x1b => Key::Escape,
                0x07 => Key::CtrlG,
                0x7f => Key::Backspace,
                other => panic!("byte {other}"),
            })
            .collect()
    }
}

impl EditorRig for RealRig {
    fn port(&mut self) -> &mut dyn Editor {
        self.editor.as_deref_mut().unwrap()
    }

    async fn open(&mut self, had: &str) -> String {
        let file = self.base.path().join("prompt.md");
        fs::write(&file, had).unwrap();
        let status = tokio::process::Command::new(self.spec.runtime_dir.join(EDITOR_NAME))
            .arg(&file)
            .env_clear()
            .status()
            .await
            .unwrap();
        assert!(status.success());
        fs::read_to_string(&file).unwrap()
    }
}

impl ProcessRig for RealRig {
    fn port(&mut self) -> &mut dyn Process {
        self.process.as_deref_mut().unwrap()
    }

    fn pane_pid(&self) -> u32 {
        self.address.as_ref().unwrap().pane_pid
    }

    async fn other(&mut self) -> u32 {
        // Marked as a process of the session; reaped at once by a thread of its own.
        let mut child = Command::new("sleep")
            .arg("600")
            .env_clear()
            .envs(&self.spec.env)
            .spawn()
            .unwrap();
        let pid = child.id();
        std::thread::spawn(move || child.wait());
        eventually("it is marked", || {
            self.processes().iter().any(|(marked, _)| *marked == pid)
        })
        .await;
        pid
    }

    async fn end_other(&mut self, pid: u32) {
        let raw = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(raw, rustix::process::Signal::KILL).unwrap();
        eventually("it is reaped", || proc::start_time(pid).unwrap().is_none()).await;
    }

    async fn exit_pane(&mut self, code: i32) {
        fs::write(self.keys_path(), format!("{code}\n")).unwrap();
    }
}
