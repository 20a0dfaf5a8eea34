//! Input jobs, interrupts and operations in flight. Data only; the machines are in `input_policy` and `decide::interrupt`.

use alloc::sync::Arc;

use ccd_model::{
    ids::{JobKey, OpId, TurnKey},
    intent::KeyHeld,
    outcome::NotSubmitted,
    time::Mono,
};

/// What an input job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobWhat {
    /// The self-test's prompt.
    SelfTest,
    /// A turn's prompt.
    Prompt(TurnKey),
    /// The exit command.
    Exit,
    /// Text of ours that came back.
    Clear,
}

/// What follows when the composer is clean again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Then {
    /// Deliver the text once more.
    Reinject,
    /// The turn ends without having been submitted.
    End(NotSubmitted),
    /// The self-test has passed.
    SelfTested,
    /// The self-test has failed.
    SelfTestFailed(&'static str),
    /// Nothing more.
    Done,
}

/// Where an input job stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Text is staged and the editor key is tried.
    Editor,
    /// The staged text is being withdrawn.
    Unstaging,
    /// Enter is tried on the fresh text.
    Enter,
    /// Enter was pressed; the hook must acknowledge.
    Receipt,
    /// A capture is under way that decides about the missing receipt.
    Judge,
    /// The text left the composer without a receipt.
    LateReceipt,
    /// A blocked text must come back before it can be cleared.
    AwaitReturn,
    /// The composer was cleared and must be seen empty.
    ClearSeen,
}

/// An input job: everything done to deliver one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) key: JobKey,
    pub(crate) what: JobWhat,
    pub(crate) text: Arc<str>,
    pub(crate) phase: Phase,
    /// When the phase began.
    pub(crate) since: Mono,
    /// The text was injected this often.
    pub(crate) injects: u8,
    /// The composer was cleared this often.
    pub(crate) clears: u8,
    /// Another text arrived this often.
    pub(crate) mismatches: u8,
    /// Set while the job clears the composer.
    pub(crate) then: Option<Then>,
    /// The staging in flight.
    pub(crate) staged: Option<OpId>,
    /// Why a key was not pressed the last time.
    pub(crate) held: Option<KeyHeld>,
    /// An Enter was pressed, or may have been.
    pub(crate) entered: bool,
    /// The editor took a text of the job: what stands in the composer is ours.
    pub(crate) taken: bool,
    /// The caller wants the prompt back.
    pub(crate) cancelled: bool,
    /// Equal captures that show what the phase waits for.
    pub(crate) seen: u8,
}

impl Job {
    /// Whether the text may be with the model: an Enter was pressed, or is being tried.
    pub(crate) fn may_have_entered(&self) -> bool {
        match self.phase {
            Phase::Enter | Phase::Receipt | Phase::Judge | Phase::LateReceipt => true,
            Phase::Editor | Phase::Unstaging | Phase::AwaitReturn | Phase::ClearSeen => false,
        }
    }
}

/// How an interrupt is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Means {
    /// Waits until the prompt is acknowledged or its job is cancelled.
    Waiting,
    /// One Escape.
    Escape,
    /// A permission request is denied with an interrupt.
    Answer,
}

/// An open interrupt request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interrupt {
    pub(crate) turn: TurnKey,
    pub(crate) means: Means,
    /// When the Escape was pressed (or may have been) or the answer went out.
    pub(crate) acted_at: Option<Mono>,
    /// The Escape was held back once and tried again.
    pub(crate) retried: bool,
    /// The registry said that nothing runs, after the act.
    pub(crate) idle_after: bool,
    /// Equal captures after the act that show the interrupted line.
    pub(crate) line_seen: u8,
    /// Equal captures after the act that show text in the composer.
    pub(crate) text_seen: u8,
}

/// What an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpKind {
    /// Stage a text.
    Stage,
    /// Withdraw a staged text.
    Unstage,
    /// Open the editor.
    Editor,
    /// Submit.
    Enter,
    /// A capture that decides.
    Capture,
    /// Interrupt.
    Escape,
    /// Close a menu.
    Dismiss,
    /// A signal.
    Signal,
}

/// What an operation in flight is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpFor {
    pub(crate) kind: OpKind,
    /// The job that asked for it.
    pub(crate) job: Option<JobKey>,
}
