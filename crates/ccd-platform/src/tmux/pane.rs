//! The pane port: operations in order through the control client, which is attached again when it is lost.
//!
//! What lives here: one task that owns the client; retries of a guarded key that was surely not pressed. What never
//! does: pressing a key twice, or reading meaning out of a frame.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use ccd_model::{
    ids::OpId,
    intent::{Key, KeyGuard, KeyHeld},
    observation::{LostPart, OpEnd},
    time::Mono,
};
use ccd_ports::{
    raw::{PaneMeta, Raw},
    session::{GuardFormats, Pane},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

use super::{
    SESSION,
    connection::{Connection, ConnectionError},
    frame::{Differ, News},
    request::{self, Reply},
    words,
};
use crate::{outlet::Outlet, process::PinnedProcess};

/// Pause between two tries of a guarded key, milliseconds.
const KEY_RETRY_MS: u64 = 2;

/// Tries to attach again while the server lives, and the pause before each, milliseconds.
const REATTACH_MS: &[u64] = &[0, 20, 100, 500, 1_000];

/// Where the pane is.
pub(crate) struct PaneTarget {
    pub(crate) tmux: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) server: Arc<PinnedProcess>,
}

enum Request {
    Capture(Option<OpId>),
    Key {
        op: OpId,
        key: Key,
        guard: KeyGuard,
        until: Mono,
    },
    Forget,
}

struct Shared {
    last: Mutex<Arc<str>>,
    /// An unasked-for capture is in the queue already.
    polled: AtomicBool,
}

/// The [`Pane`] of one launch.
pub(crate) struct TmuxPane {
    requests: mpsc::UnboundedSender<Request>,
    shared: Arc<Shared>,
    outlet: Arc<Outlet>,
    attach: String,
}

/// Ends the pane's task.
pub(crate) struct PaneTask {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl PaneTask {
    /// Ends the control client and every operation that is still open. Resolves when the client is gone.
    pub(crate) async fn stop(self) {
        // No receiver: the task is gone already.
        let _ = self.stop.send(true);
        let _ = self.task.await;
    }
}

/// Attaches the control client.
pub(crate) async fn open(
    target: PaneTarget,
    guards: GuardFormats,
    outlet: Arc<Outlet>,
) -> Result<(TmuxPane, PaneTask), ConnectionError> {
    let connection = Connection::attach(&target.tmux, &target.socket, &outlet).await?;
    let (requests, incoming) = mpsc::unbounded_channel();
    let (stop, stopped) = watch::channel(false);
    let shared = Arc::new(Shared {
        last: Mutex::new("".into()),
        polled: AtomicBool::new(false),
    });
    let pane = TmuxPane {
        requests,
        shared: Arc::clone(&shared),
        outlet: Arc::clone(&outlet),
        attach: attach_command(&target),
    };
    let actor = Actor {
        outlet,
        target,
        guards,
        shared,
        connection: Some(connection),
        differ: Differ::default(),
        open: None,
        gone: None,
    };
    let task = tokio::spawn(actor.run(incoming, stopped));
    Ok((pane, PaneTask { stop, task }))
}

fn attach_command(target: &PaneTarget) -> String {
    let words = [
        &target.tmux.to_string_lossy(),
        "-S",
        &target.socket.to_string_lossy(),
        "attach-session",
        "-r",
        "-t",
        SESSION,
    ]
    .map(words::shell);
    words.join(" ")
}

impl TmuxPane {
    /// The task is gone: nothing can be done any more.
    fn send(&self, request: Request) {
        if let Err(mpsc::error::SendError(request)) = self.requests.send(request) {
            refuse(&self.outlet, &request);
        }
    }
}

fn refuse(outlet: &Outlet, request: &Request) {
    match request {
        Request::Key { op, .. } => outlet.refuse(*op, "the pane is closed"),
        Request::Capture(Some(op)) => outlet.end(*op, OpEnd::Unknown),
        Request::Capture(None) | Request::Forget => {}
    }
}

impl Pane for TmuxPane {
    fn capture(&mut self, op: Option<OpId>) {
        if op.is_none() && self.shared.polled.swap(true, Ordering::SeqCst) {
            return;
        }
        self.send(Request::Capture(op));
    }

    fn key(&mut self, op: OpId, key: Key, guard: KeyGuard, until: Mono) {
        self.send(Request::Key {
            op,
            key,
            guard,
            until,
        });
    }

    fn forget_frame(&mut self) {
        self.send(Request::Forget);
    }

    fn last_frame(&self) -> Arc<str> {
        let last = self.shared.last.lock();
        Arc::clone(&last.unwrap_or_else(PoisonError::into_inner))
    }

    fn attach_command(&self) -> String {
        self.attach.clone()
    }
}

struct Actor {
    outlet: Arc<Outlet>,
    target: PaneTarget,
    guards: GuardFormats,
    shared: Arc<Shared>,
    connection: Option<Connection>,
    differ: Differ,
    /// The operation that is being carried out.
    open: Option<OpId>,
    /// Why the client is gone, until it is replaced.
    gone: Option<String>,
}

impl Actor {
    async fn run(
        mut self,
        mut incoming: mpsc::UnboundedReceiver<Request>,
        mut stopped: watch::Receiver<bool>,
    ) {
        tokio::select! {
            biased;
            // An error means that whoever could stop it is gone, which stops it as well.
            _ = stopped.changed() => {}
            () = self.serve(&mut incoming) => {}
        }
        if let Some(op) = self.open.take() {
            self.outlet.end(op, OpEnd::Unknown);
        }
        incoming.close();
        while let Ok(request) = incoming.try_recv() {
            refuse(&self.outlet, &request);
        }
        if let Some(connection) = self.connection.take() {
            connection.end().await;
        }
    }

    async fn serve(&mut self, incoming: &mut mpsc::UnboundedReceiver<Request>) {
        loop {
            if let Some(why) = self.gone.take() {
                self.reattach(&why).await;
            }
            let request = match &mut self.connection {
                Some(connection) => tokio::select! {
                    biased;
                    request = incoming.recv() => request,
                    why = connection.ended() => {
                        self.gone = Some(why);
                        continue;
                    }
                },
                None => incoming.recv().await,
            };
            match request {
                Some(Request::Capture(op)) => {
                    if op.is_none() {
                        self.shared.polled.store(false, Ordering::SeqCst);
                    }
                    self.capture(op).await;
                }
                Some(Request::Key {
                    op,
                    key,
                    guard,
                    until,
                }) => {
                    self.open = Some(op);
                    let end = self.key(key, guard, until).await;
                    self.open = None;
                    self.outlet.end(op, end);
                }
                Some(Request::Forget) => self.differ.forget(),
                None => return,
            }
        }
    }

    async fn capture(&mut self, op: Option<OpId>) {
        self.open = op;
        let reply = self.ask(&request::capture()).await;
        self.open = None;
        let end = match reply {
            Some(Reply::Frame(meta, rows)) => {
                self.tell(op, meta, &rows);
                OpEnd::Done
            }
            Some(Reply::Failed(why)) => {
                tracing::debug!(why, "a capture failed");
                OpEnd::Unknown
            }
            Some(Reply::Fired | Reply::Held { .. }) | None => OpEnd::Unknown,
        };
        if let Some(op) = op {
            self.outlet.end(op, end);
        }
    }

    fn tell(&mut self, op: Option<OpId>, meta: PaneMeta, rows: &[u8]) {
        match self.differ.accept(&meta, rows, op.is_some()) {
            News::Frame(text) => {
                let mut last = self
                    .shared
                    .last
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *last = Arc::clone(&text);
                drop(last);
                self.outlet.push(Raw::Frame { op, meta, text });
            }
            News::Same => self.outlet.push(Raw::FrameSame { op }),
            News::Nothing => {}
        }
    }

    /// Tries until the key is pressed, a dialog is there, or the time is over. A lost answer ends it: the key may have
    /// been pressed.
    async fn key(&mut self, key: Key, guard: KeyGuard, until: Mono) -> OpEnd {
        let request = request::key(key, guard, &self.guards);
        let held = |held| OpEnd::Held { held };
        while self.outlet.now() <= until {
            if self.connection.is_none() {
                return OpEnd::Refused {
                    reason: "there is no tmux server".into(),
                };
            }
            match self.ask(&request).await {
                Some(Reply::Fired) => return OpEnd::Done,
                Some(Reply::Held { dialog: true }) => return held(KeyHeld::Dialog),
                Some(Reply::Held { dialog: false }) => {}
                Some(Reply::Failed(why)) => return OpEnd::Refused { reason: why.into() },
                Some(Reply::Frame(..)) | None => return OpEnd::Unknown,
            }
            self.outlet.after(KEY_RETRY_MS).await;
        }
        held(KeyHeld::NotPainted)
    }

    /// One line and its answer; `None` when the answer is lost.
    async fn ask(&mut self, request: &request::Request) -> Option<Reply> {
        let connection = self.connection.as_mut()?;
        match connection.ask(request, &self.outlet).await {
            Ok(reply) => Some(reply),
            Err(ConnectionError::TimedOut) => {
                tracing::warn!("tmux did not answer in time");
                None
            }
            Err(error) => {
                self.gone = Some(error.to_string());
                None
            }
        }
    }

    async fn reattach(&mut self, why: &str) {
        tracing::warn!(why, "the control client is lost");
        if let Some(connection) = self.connection.take() {
            connection.end().await;
        }
        for pause in REATTACH_MS {
            if *pause > 0 {
                self.outlet.after(*pause).await;
            }
            if self.target.server.has_ended() {
                break;
            }
            let PaneTarget { tmux, socket, .. } = &self.target;
            match Connection::attach(tmux, socket, &self.outlet).await {
                Ok(connection) => {
                    self.connection = Some(connection);
                    self.outlet.lost(LostPart::ControlClient);
                    return;
                }
                Err(error) => tracing::debug!(%error, "attaching again failed"),
            }
        }
        self.outlet.lost(LostPart::TmuxServer);
    }
}
