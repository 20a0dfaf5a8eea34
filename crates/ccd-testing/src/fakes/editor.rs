//! An editor injection without a socket: the test plays Claude's editor.
//!
//! What lives here: the [`Editor`] port on a slot in memory. What never does: processes or files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ccd_model::{
    ids::{Launch, OpId},
    observation::OpEnd,
};
use ccd_ports::{clock::Clock, inbox::Inbox, raw::Raw, session::Editor};

struct State {
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    staged: Option<(OpId, Arc<str>)>,
}

/// The port side; give it to the session.
pub struct FakeEditor(Arc<Mutex<State>>);

/// The test side.
#[derive(Clone)]
pub struct FakeEditorControl(Arc<Mutex<State>>);

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn end(&self, op: OpId, end: OpEnd) {
        let raw = Raw::OpEnded { op, end };
        self.inbox.push(self.launch, self.clock.now(), raw);
    }

    fn refuse(&self, op: OpId, reason: &str) {
        let reason = reason.into();
        self.end(op, OpEnd::Refused { reason });
    }
}

impl FakeEditor {
    /// An editor with nothing staged and the control over it.
    #[must_use]
    pub fn new(
        launch: Launch,
        inbox: Arc<dyn Inbox>,
        clock: Arc<dyn Clock>,
    ) -> (Self, FakeEditorControl) {
        let state = Arc::new(Mutex::new(State {
            launch,
            inbox,
            clock,
            staged: None,
        }));
        (Self(Arc::clone(&state)), FakeEditorControl(state))
    }
}

impl Editor for FakeEditor {
    fn stage(&mut self, op: OpId, text: Arc<str>) {
        let mut state = lock(&self.0);
        if let Some((before, _)) = state.staged.replace((op, text)) {
            state.refuse(before, "replaced");
        }
    }

    fn unstage(&mut self, op: OpId, staged: OpId) {
        let mut state = lock(&self.0);
        if let Some((withdrawn, _)) = state.staged.take_if(|(one, _)| *one == staged) {
            state.refuse(withdrawn, "unstaged");
        }
        state.end(op, OpEnd::Done);
    }
}

impl FakeEditorControl {
    /// Claude starts its editor while the composer holds `had`; gives what the composer holds afterwards.
    #[must_use]
    pub fn open(&self, had: &str) -> Arc<str> {
        let mut state = lock(&self.0);
        let Some((op, text)) = state.staged.take() else {
            return had.into();
        };
        let had = had.into();
        state.end(op, OpEnd::Taken { had });
        text
    }

    /// Claude starts its editor, and the editor dies before anybody knows what it did.
    pub fn open_and_die(&self) {
        let mut state = lock(&self.0);
        if let Some((op, _)) = state.staged.take() {
            state.end(op, OpEnd::Unknown);
        }
    }

    /// The text that is staged now.
    #[must_use]
    pub fn staged(&self) -> Option<Arc<str>> {
        lock(&self.0)
            .staged
            .as_ref()
            .map(|(_, text)| Arc::clone(text))
    }
}
