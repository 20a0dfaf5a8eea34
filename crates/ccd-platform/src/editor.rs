//! The editor port: texts laid out for Claude's external editor, handed out over a private socket.
//!
//! What lives here: the host's side of one exchange per editor start, and who got which text. What never does: pressing
//! the key that starts the editor, or judging what the composer held.
//!
//! A text is given to at most one editor. It counts as taken only when the editor read all of it, closed its connection
//! in order and, where the system can tell, its process has ended: only then the composer owns the keys again.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use ccd_helper::{
    MAX_BODY,
    frame::{self, EditReply, MAX_HEADER},
};
use ccd_model::{ids::OpId, observation::OpEnd};
use ccd_ports::session::Editor;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixListener, UnixStream},
    sync::oneshot,
    task::JoinHandle,
};

use crate::{
    outlet::Outlet,
    process::{ExitWatch, PinnedProcess},
};

/// How long an editor may take to say what the composer holds, milliseconds.
const CONTENT_MS: u64 = 5_000;

/// How long the end of an editor that has its text is waited for, milliseconds.
const END_MS: u64 = 2_000;

struct Staged {
    op: OpId,
    text: Arc<str>,
}

struct Shared {
    outlet: Arc<Outlet>,
    exits: Arc<ExitWatch>,
    staged: Mutex<Option<Staged>>,
}

/// The [`Editor`] of one launch.
pub(crate) struct SocketEditor {
    shared: Arc<Shared>,
}

/// Ends the editor's socket. Dropping it ends it as well.
pub(crate) struct EditorTask {
    task: JoinHandle<()>,
    shared: Arc<Shared>,
}

impl Drop for EditorTask {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(staged) = self.shared.take() {
            self.shared.outlet.refuse(staged.op, "the editor is closed");
        }
    }
}

/// Listens at `socket`, which must not exist.
///
/// # Errors
/// What the system says when the socket cannot be made.
pub(crate) fn open(
    socket: &Path,
    outlet: Arc<Outlet>,
    exits: Arc<ExitWatch>,
) -> io::Result<(SocketEditor, EditorTask)> {
    let listener = UnixListener::bind(socket)?;
    let shared = Arc::new(Shared {
        outlet,
        exits,
        staged: Mutex::new(None),
    });
    let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
    let editor = SocketEditor {
        shared: Arc::clone(&shared),
    };
    Ok((editor, EditorTask { task, shared }))
}

impl Shared {
    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Staged>> {
        self.staged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Staged> {
        self.slot().take()
    }
}

impl Editor for SocketEditor {
    fn stage(&mut self, op: OpId, text: Arc<str>) {
        if text.len() > MAX_BODY {
            return self.shared.outlet.refuse(op, "the text is too long");
        }
        let before = self.shared.slot().replace(Staged { op, text });
        if let Some(before) = before {
            self.shared.outlet.refuse(before.op, "replaced");
        }
    }

    fn unstage(&mut self, op: OpId, staged: OpId) {
        let withdrawn = {
            let mut slot = self.shared.slot();
            slot.take_if(|text| text.op == staged)
        };
        if let Some(withdrawn) = withdrawn {
            self.shared.outlet.refuse(withdrawn.op, "unstaged");
        }
        self.shared.outlet.end(op, OpEnd::Done);
    }
}

async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    let mut exchanges = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    exchanges.spawn(exchange(stream, Arc::clone(&shared)));
                }
                Err(error) => {
                    // No descriptor to be had, most likely. The editor that waits gives up by itself.
                    tracing::warn!(%error, "an editor could not be accepted");
                    shared.outlet.after(10).await;
                }
            },
            Some(_) = exchanges.join_next() => {}
        }
    }
}

/// Ends the operation of a text that was given out, whatever happens to the exchange.
struct Handed {
    op: OpId,
    outlet: Arc<Outlet>,
    end: OpEnd,
}

impl Drop for Handed {
    fn drop(&mut self) {
        let end = std::mem::replace(&mut self.end, OpEnd::Unknown);
        self.outlet.end(self.op, end);
    }
}

async fn exchange(stream: UnixStream, shared: Arc<Shared>) {
    let Ok(peer) = stream.peer_cred() else {
        return;
    };
    if peer.uid() != rustix::process::geteuid().as_raw() {
        tracing::warn!(uid = peer.uid(), "an editor of another user was refused");
        return;
    }
    // Pinned while it holds its connection open, so it is surely the peer.
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    let process = pid.and_then(|pid| PinnedProcess::open(pid).ok());
    let mut stream = BufReader::new(stream);
    let content = shared.outlet.within(CONTENT_MS, content(&mut stream)).await;
    let had = match content {
        Some(Ok(had)) => had,
        Some(Err(error)) => return tracing::warn!(%error, "an editor said nothing sensible"),
        None => return tracing::warn!("an editor said nothing in time"),
    };
    let Some(staged) = shared.take() else {
        // Nothing of ours: a person's own key.
        let keep = frame::encode_reply(&EditReply::Keep);
        let _ = shared.outlet.within(END_MS, stream.write_all(&keep)).await;
        return;
    };
    let mut handed = Handed {
        op: staged.op,
        outlet: Arc::clone(&shared.outlet),
        end: OpEnd::Unknown,
    };
    let exit = process.and_then(|process| ended(&shared.exits, &process));
    let reply = frame::encode_reply(&EditReply::Text(staged.text.as_bytes().to_vec()));
    let delivered = async {
        stream.write_all(&reply).await?;
        stream.flush().await?;
        // A peer that closes with unread bytes resets the connection instead.
        let mut rest = [0; 1];
        stream.read(&mut rest).await
    };
    let deadline = shared.outlet.now().after(END_MS);
    let closed = tokio::select! {
        biased;
        closed = delivered => matches!(closed, Ok(0)),
        () = shared.outlet.until(deadline) => false,
    };
    if !closed {
        return;
    }
    if let Some(exit) = exit {
        tokio::select! {
            biased;
            _ = exit => {}
            () = shared.outlet.until(deadline) => {}
        }
    }
    handed.end = OpEnd::Taken { had: had.into() };
}

/// Resolves when the process has ended; `None` where that cannot be watched.
fn ended(exits: &ExitWatch, process: &PinnedProcess) -> Option<oneshot::Receiver<()>> {
    let (tell, told) = oneshot::channel();
    let then = move || {
        // Nobody waits any more: the deadline was earlier.
        let _ = tell.send(());
    };
    exits.watch(process, Box::new(then)).ok()?;
    Some(told)
}

async fn content(stream: &mut BufReader<UnixStream>) -> io::Result<String> {
    let malformed = |error: frame::FrameError| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut line = Vec::new();
    let limit = u64::try_from(MAX_HEADER).unwrap_or(u64::MAX);
    (&mut *stream)
        .take(limit)
        .read_until(b'\n', &mut line)
        .await?;
    let len = frame::parse_edit_header(&String::from_utf8_lossy(&line)).map_err(malformed)?;
    let mut bytes = Vec::new();
    let limit = u64::try_from(len).unwrap_or(u64::MAX);
    (&mut *stream).take(limit).read_to_end(&mut bytes).await?;
    if bytes.len() != len {
        return Err(malformed(frame::FrameError::Truncated));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}
