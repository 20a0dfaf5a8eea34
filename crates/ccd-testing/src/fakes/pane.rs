//! A pane without tmux: the test paints, the pane answers as the real one does.
//!
//! What lives here: the [`Pane`] port on a screen in memory. What never does: time of its own; a key that waits is looked
//! at again whenever the test paints or calls [`FakePaneControl::settle`].

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ccd_model::{
    ids::{Launch, OpId},
    intent::{Key, KeyGuard, KeyHeld},
    observation::{LostPart, OpEnd},
    time::Mono,
};
use ccd_ports::{
    clock::Clock,
    inbox::Inbox,
    raw::{PaneMeta, Raw},
    session::Pane,
};

/// What the guards see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Painted {
    /// Neither composer nor dialog.
    #[default]
    Nothing,
    /// The composer owns the keys.
    Composer,
    /// A dialog is painted.
    Dialog,
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

struct State {
    launch: Launch,
    inbox: Arc<dyn Inbox>,
    clock: Arc<dyn Clock>,
    queue: VecDeque<Request>,
    meta: PaneMeta,
    text: Arc<str>,
    painted: Painted,
    told: Option<(PaneMeta, Arc<str>)>,
    same: u8,
    last: Arc<str>,
    pressed: Vec<Key>,
    lose_answers: u32,
    server_gone: bool,
}

/// The port side; give it to the session.
pub struct FakePane(Arc<Mutex<State>>);

/// The test side.
#[derive(Clone)]
pub struct FakePaneControl(Arc<Mutex<State>>);

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakePane {
    /// An empty pane of 250×80 and the control over it.
    #[must_use]
    pub fn new(
        launch: Launch,
        inbox: Arc<dyn Inbox>,
        clock: Arc<dyn Clock>,
    ) -> (Self, FakePaneControl) {
        let state = Arc::new(Mutex::new(State {
            launch,
            inbox,
            clock,
            queue: VecDeque::new(),
            meta: PaneMeta {
                cols: 250,
                rows: 80,
                ..PaneMeta::default()
            },
            text: "".into(),
            painted: Painted::Nothing,
            told: None,
            same: 0,
            last: "".into(),
            pressed: Vec::new(),
            lose_answers: 0,
            server_gone: false,
        }));
        (Self(Arc::clone(&state)), FakePaneControl(state))
    }

    fn request(&self, request: Request) {
        let mut state = lock(&self.0);
        state.queue.push_back(request);
        state.serve();
    }
}

impl Pane for FakePane {
    fn capture(&mut self, op: Option<OpId>) {
        self.request(Request::Capture(op));
    }

    fn key(&mut self, op: OpId, key: Key, guard: KeyGuard, until: Mono) {
        self.request(Request::Key {
            op,
            key,
            guard,
            until,
        });
    }

    fn forget_frame(&mut self) {
        self.request(Request::Forget);
    }

    fn last_frame(&self) -> Arc<str> {
        Arc::clone(&lock(&self.0).last)
    }

    fn attach_command(&self) -> String {
        "tmux -S /nonexistent/tmux.sock attach-session -r -t ccd".to_owned()
    }
}

impl FakePaneControl {
    /// Paints: rows joined by newlines (blank rows at the end do not count), and what the guards see.
    pub fn paint(&self, text: &str, painted: Painted) {
        let mut state = lock(&self.0);
        state.text = text.trim_end_matches('\n').into();
        state.painted = painted;
        state.serve();
    }

    /// Changes what the pane says of itself.
    pub fn meta(&self, change: impl FnOnce(&mut PaneMeta)) {
        let mut state = lock(&self.0);
        change(&mut state.meta);
        state.serve();
    }

    /// The answers to the next `count` requests are lost; a key is pressed nevertheless if its guard holds.
    pub fn lose_answers(&self, count: u32) {
        lock(&self.0).lose_answers = count;
    }

    /// The server is gone: told, and nothing works any more.
    pub fn lose_server(&self) {
        let mut state = lock(&self.0);
        if !state.server_gone {
            state.server_gone = true;
            state.push(Raw::Lost {
                part: LostPart::TmuxServer,
            });
        }
        state.serve();
    }

    /// Looks again at a key that waits, for example after time has passed.
    pub fn settle(&self) {
        lock(&self.0).serve();
    }

    /// Every key that was pressed, in order.
    #[must_use]
    pub fn pressed(&self) -> Vec<Key> {
        lock(&self.0).pressed.clone()
    }
}

impl State {
    fn push(&self, raw: Raw) {
        self.inbox.push(self.launch, self.clock.now(), raw);
    }

    fn end(&self, op: OpId, end: OpEnd) {
        self.push(Raw::OpEnded { op, end });
    }

    fn answer_is_lost(&mut self) -> bool {
        let lost = self.lose_answers > 0;
        self.lose_answers = self.lose_answers.saturating_sub(1);
        lost
    }

    /// Carries out what is in the queue, in order, up to a key that has to wait.
    fn serve(&mut self) {
        while let Some(request) = self.queue.pop_front() {
            match request {
                Request::Capture(op) => self.capture(op),
                Request::Forget => self.told = None,
                Request::Key {
                    op,
                    key,
                    guard,
                    until,
                } => {
                    let Some(end) = self.key(key, guard, until) else {
                        self.queue.push_front(Request::Key {
                            op,
                            key,
                            guard,
                            until,
                        });
                        return;
                    };
                    self.end(op, end);
                }
            }
        }
    }

    fn capture(&mut self, op: Option<OpId>) {
        let lost = self.answer_is_lost() || self.server_gone;
        if !lost {
            self.tell(op);
        }
        if let Some(op) = op {
            self.end(op, if lost { OpEnd::Unknown } else { OpEnd::Done });
        }
    }

    fn tell(&mut self, op: Option<OpId>) {
        let frame = (self.meta.clone(), Arc::clone(&self.text));
        if self.told.as_ref() == Some(&frame) {
            if op.is_some() || self.same < 2 {
                self.same = self.same.saturating_add(1);
                self.push(Raw::FrameSame { op });
            }
            return;
        }
        self.same = 0;
        self.last = Arc::clone(&frame.1);
        self.told = Some(frame.clone());
        self.push(Raw::Frame {
            op,
            meta: frame.0,
            text: frame.1,
        });
    }

    fn key(&mut self, key: Key, guard: KeyGuard, until: Mono) -> Option<OpEnd> {
        if self.clock.now() > until {
            return Some(OpEnd::Held {
                held: KeyHeld::NotPainted,
            });
        }
        if self.server_gone {
            return Some(OpEnd::Refused {
                reason: "there is no tmux server".into(),
            });
        }
        let holds = match (guard, self.painted) {
            (_, Painted::Dialog) => {
                return Some(OpEnd::Held {
                    held: KeyHeld::Dialog,
                });
            }
            (KeyGuard::NoDialog | KeyGuard::Busy, _) => true,
            (
                KeyGuard::Composer | KeyGuard::EmptyComposer | KeyGuard::TallComposer,
                Painted::Composer,
            ) => true,
            (
                KeyGuard::Composer | KeyGuard::EmptyComposer | KeyGuard::TallComposer,
                Painted::Nothing,
            ) => false,
        };
        let lost = self.answer_is_lost();
        if holds && !self.meta.dead {
            self.pressed.push(key);
            return Some(if lost { OpEnd::Unknown } else { OpEnd::Done });
        }
        lost.then_some(OpEnd::Unknown)
    }
}
