//! Raw records: what adapters saw, uninterpreted. The trace stores exactly these.

use std::sync::Arc;

use ccd_model::{
    ids::{FileKey, HoldId, OpId},
    json::RawJson,
    observation::{LostPart, OpEnd, TunnelEvent, Verdict},
};
use serde::{Deserialize, Serialize};

/// One hook call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// Event name from the request path.
    pub event: Arc<str>,
    /// Set when the answer is held open.
    pub hold: Option<HoldId>,
    /// The prompt guard's verdict, for UserPromptSubmit.
    pub verdict: Option<Verdict>,
    /// The deny rule of ours that stopped the tool, for PreToolUse.
    pub denied_by: Option<Arc<str>>,
    /// Claude's pid, where the forwarder could tell.
    pub claude_pid: Option<u32>,
    /// The payload.
    pub body: RawJson,
}

/// What a tmux pane says of itself with a capture.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PaneMeta {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
    /// The alternate screen is on.
    pub alternate: bool,
    /// The pane's process has ended.
    pub dead: bool,
    /// Terminal title.
    pub title: Arc<str>,
    /// Cursor column and row, from 0.
    pub cursor: (u16, u16),
}

/// What happened to a followed file besides lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "tail")]
pub enum TailNote {
    /// The file exists now.
    Appeared,
    /// The file is shorter than before; reading went on from its new end or start.
    Shrank,
    /// Another file stands at the path; reading began anew.
    Replaced,
    /// A line over the limit was discarded.
    Oversize {
        /// Its bytes.
        bytes: u64,
    },
    /// A line was not valid UTF-8 and was repaired.
    Repaired,
}

/// One record of one adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "r")]
pub enum Raw {
    /// A hook call arrived and, unless held, was answered already.
    Hook(HookRecord),
    /// The caller of a held hook went away.
    HookGone {
        /// Which.
        hold: HoldId,
    },
    /// The hook thread denied a held hook at its deadline.
    HookExpired {
        /// Which.
        hold: HoldId,
    },
    /// A whole transcript line, without its newline.
    Line {
        /// Which file.
        file: FileKey,
        /// Byte offset of the line's first byte.
        offset: u64,
        /// The line.
        text: Arc<str>,
    },
    /// Something else happened to a followed file.
    Tail {
        /// Which file.
        file: FileKey,
        /// What.
        note: TailNote,
    },
    /// A capture that differs from the one before.
    Frame {
        /// The capture operation, when the core asked for it.
        op: Option<OpId>,
        /// Pane state.
        meta: PaneMeta,
        /// Visible rows joined by newlines, trailing blank rows removed.
        text: Arc<str>,
    },
    /// A capture equal to the one before. Sent at most twice in a row.
    FrameSame {
        /// The capture operation, when the core asked for it.
        op: Option<OpId>,
    },
    /// An operation ended.
    OpEnded {
        /// Which.
        op: OpId,
        /// How.
        end: OpEnd,
    },
    /// The registry file of the followed process changed.
    Registry {
        /// Its first JSON value.
        body: RawJson,
    },
    /// The registry file is gone.
    RegistryGone,
    /// A subagent's meta file appeared or changed.
    AgentMeta {
        /// Claude's agent id, from the file name.
        agent_id: Arc<str>,
        /// Its content.
        body: RawJson,
    },
    /// The status line command was called.
    Statusline {
        /// What it was told.
        body: RawJson,
    },
    /// Something happened on a tunnel of the network sidecar.
    Tunnel {
        /// Number of the tunnel, unique within the launch.
        tunnel: u32,
        /// What.
        what: TunnelEvent,
    },
    /// What the pane still shows after its program ended, told before its [`Raw::Exited`].
    LastScreen {
        /// Visible rows joined by newlines.
        text: Arc<str>,
    },
    /// A watched process ended.
    Exited {
        /// Which.
        pid: u32,
        /// Exit code, when known.
        code: Option<i32>,
        /// Signal, when known.
        signal: Option<i32>,
    },
    /// A part was lost.
    Lost {
        /// Which.
        part: LostPart,
    },
    /// The decision timer fired.
    Tick,
    /// What the launcher set up.
    Launched(ccd_model::observation::Launched),
}
