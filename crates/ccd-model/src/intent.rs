//! Intents: instructions from the core to the session loop. Each I/O intent ends exactly once, as an observation.

use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    ids::{HoldId, JobKey, OpId, PermissionKey},
    permission::Decision,
};

/// Keys that the core may press.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    /// Submit.
    Enter,
    /// Interrupt or close a modal.
    Escape,
    /// Open the external editor.
    CtrlG,
    /// Leave shell mode on an empty composer.
    Backspace,
}

/// What must be on screen at the moment of the key, tested inside the tmux server together with the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyGuard {
    /// The prompt composer owns the keys and no dialog is painted.
    Composer,
    /// As [`KeyGuard::Composer`], and the cursor stands where it stands in an empty composer.
    EmptyComposer,
    /// No dialog is painted and Claude looks busy.
    Busy,
    /// As [`KeyGuard::Composer`], or the composer is taller than the pane, so that its mark has scrolled off. Only for a text of ours that is
    /// known to be tall and was laid out just now.
    TallComposer,
    /// No dialog is painted.
    NoDialog,
}

/// Why a guarded key was not pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyHeld {
    /// A dialog was on screen.
    Dialog,
    /// The composer was not painted before the deadline.
    NotPainted,
}

/// A signal to the verified Claude process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Ask to end.
    Term,
    /// End.
    Kill,
}

/// One primitive I/O operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "io")]
pub enum IoOp {
    /// Lay out `text` for the next editor start. Ends `Taken` when the editor process has ended with it, or `Refused` when unstaged.
    Stage {
        /// The text; empty clears the composer.
        text: Arc<str>,
    },
    /// Withdraw the staged text of `op`, if it was not taken yet. Ends `Done`; the staged operation then ends `Refused`.
    Unstage {
        /// The staging operation.
        op: OpId,
    },
    /// Press a key if the guard holds; tried again until it fires or the time is over.
    Key {
        /// The key.
        key: Key,
        /// The guard.
        guard: KeyGuard,
        /// How long to try, milliseconds.
        within_ms: u32,
    },
    /// Take one capture now. Ends with a screen observation and `Done`.
    Capture,
    /// Signal the Claude process.
    Signal {
        /// Which.
        signal: Signal,
    },
}

/// What the hook thread compares the next submitted prompt with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptGuard {
    /// The job that delivers it.
    pub job: JobKey,
    /// The exact text expected.
    pub text: Arc<str>,
    /// Block it even when it is exact: the self-test.
    pub self_test: bool,
}

/// How often to look, milliseconds; 0 is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cadence {
    /// Screen captures.
    pub screen_ms: u32,
    /// Transcript polls.
    pub tail_ms: u32,
    /// Registry polls.
    pub registry_ms: u32,
}

/// An instruction to the session loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "i")]
pub enum Intent {
    /// Do one operation.
    Io {
        /// Its id; an `OpEnded` observation carries it.
        op: OpId,
        /// What.
        what: IoOp,
    },
    /// Arm the prompt guard in the hook thread.
    Arm(PromptGuard),
    /// Disarm the prompt guard.
    Disarm,
    /// Answer a held permission request.
    Answer {
        /// The held call.
        hold: HoldId,
        /// The answer.
        decision: Decision,
    },
    /// Let the caller's permission handler decide.
    AskHandler {
        /// The request; its details stand in the view and the event.
        permission: PermissionKey,
    },
    /// The caller's handler is not needed any more: cancel it.
    CancelHandler {
        /// The request.
        permission: PermissionKey,
    },
    /// Look this often.
    Cadence(Cadence),
    /// Claude's own pid became known: watch it.
    WatchProcess {
        /// The pid.
        pid: u32,
    },
    /// Follow this transcript file.
    Follow {
        /// Path as a source named it.
        path: Arc<str>,
        /// Claude's session id of the file.
        session_id: Arc<str>,
    },
    /// Everything is over: tear the session down.
    Finish,
}
