//! The one serialized loop of a session: records, commands and the timer become stamped inputs; events, view, intents and replies come out.
//!
//! Here live the order of things and the batches. Every decision is the core's, every effect an executor's.

use std::sync::{Arc, Mutex, PoisonError};

use ccd_core::Input;
use ccd_model::{
    command::{Accepted, Command, Refusal},
    event::{DomainEvent, Published, StartFailure},
    ids::{Launch, Ticket},
    intent::Intent,
    kernel::DebugInfo,
    observation::{Launched, Observation, StartSource},
    time::Mono,
    view::View,
};
use ccd_ports::raw::Raw;
use tokio::sync::{oneshot, watch};

use crate::{
    engine::{Arrival, Engine, Stepped},
    error::LaunchStep,
    event_log::EventLog,
    input_executor::Executor,
    loop_lag::LoopLag,
    permission_broker::Broker,
    pollers::{pane_dead::PaneDead, screen::ScreenPoll},
    queue::{Item, Receiver, ReplyTo},
    scheduler::{Alarm, Scheduler, SessionClock},
    tail_driver::TailDriver,
    trace::{Trace, TraceLine},
};

/// Inputs that are stepped before the view is published again.
const BATCH: usize = 64;

/// A close that the core does not finish is cut off this long after its own limit, milliseconds.
const OVERDUE_MS: u64 = 20_000;

/// How a start went, told once.
pub(crate) type Ready = Result<bool, StartFailure>;

/// What the loop shares with the kernel's handle.
pub(crate) struct Shared {
    /// Events.
    pub(crate) log: Arc<EventLog>,
    /// The latest view.
    pub(crate) view: watch::Sender<Arc<View>>,
    /// Attach command, screen text, paths.
    pub(crate) debug: Arc<Mutex<DebugInfo>>,
}

/// Everything that the loop drives.
pub(crate) struct Parts {
    pub(crate) engine: Engine,
    pub(crate) clock: SessionClock,
    pub(crate) launch: Launch,
    pub(crate) receiver: Receiver,
    pub(crate) trace: Trace,
    pub(crate) shared: Shared,
    pub(crate) executor: Executor,
    pub(crate) tail: TailDriver,
    pub(crate) broker: Broker,
    pub(crate) ready: oneshot::Sender<Ready>,
    pub(crate) close_limit_ms: u64,
}

/// The loop.
pub(crate) struct StepLoop {
    parts: Parts,
    ready: Option<oneshot::Sender<Ready>>,
    scheduler: Scheduler,
    screen: ScreenPoll,
    pane_dead: PaneDead,
    lag: LoopLag,
    overdue: Alarm,
    launched_at: Mono,
    last_at: Mono,
    last_ticket: u32,
    finished: bool,
    /// Of the batch in hand: published together.
    batch: Batch,
}

#[derive(Default)]
struct Batch {
    events: Vec<Arc<Published>>,
    replies: Vec<(ReplyTo, Result<Accepted, Refusal>)>,
    stepped: bool,
}

/// What follows from one raw record or command, taken out of the engine's borrow.
#[derive(Default)]
struct Outcome {
    intents: Vec<Intent>,
    reply: Option<Result<Accepted, Refusal>>,
    ready: Option<Ready>,
    started: Option<StartSource>,
}

impl StepLoop {
    pub(crate) fn new(mut parts: Parts) -> Self {
        let (unused, _) = oneshot::channel();
        let ready = std::mem::replace(&mut parts.ready, unused);
        Self {
            parts,
            ready: Some(ready),
            scheduler: Scheduler::default(),
            screen: ScreenPoll::default(),
            pane_dead: PaneDead::new(0),
            lag: LoopLag::default(),
            overdue: Alarm::default(),
            launched_at: Mono(0),
            last_at: Mono(0),
            last_ticket: 0,
            finished: false,
            batch: Batch::default(),
        }
    }

    /// Follows the conversation file that is expected before Claude named one.
    pub(crate) fn follow(&mut self, path: &str, session_id: &Arc<str>) {
        if let Some((file, role)) = self.parts.tail.follow(path, session_id) {
            self.parts.trace.file(file, &role);
            self.parts.engine.register_file(file, role);
        }
    }

    /// Publishes an event of the session layer.
    pub(crate) fn own_event(&mut self, event: DomainEvent) {
        let arrival = self.arrival(self.parts.clock.now(), self.parts.launch);
        let event = self.parts.engine.own_event(arrival, event);
        self.parts
            .trace
            .line(|| TraceLine::Own(Published::clone(&event)));
        self.batch.events.push(event);
        self.batch.stepped = true;
    }

    /// Runs from the launch to the core's `Finish`. Gives the parts back for the teardown.
    pub(crate) async fn run(mut self, launched: Launched) -> Parts {
        self.launched_at = self.parts.clock.now();
        self.pane_dead = PaneDead::new(launched.pane_pid);
        self.raw(
            self.parts.launch,
            self.launched_at,
            &Raw::Launched(launched),
        );
        loop {
            self.timers();
            self.publish();
            if self.finished {
                break;
            }
            tokio::select! {
                biased;
                item = self.parts.receiver.recv() => match item {
                    Some(item) => self.batch(item),
                    // The broker holds a sender: this is only reached when it is gone, and then nothing can come any more.
                    None => break,
                },
                () = self.scheduler.wait(&self.parts.clock) => {}
                () = self.screen.wait(&self.parts.clock) => {}
                () = self.pane_dead.wait(&self.parts.clock) => {}
                () = &mut self.overdue => {
                    tracing::error!("the close is overdue; the session is torn down");
                    let reason = "the close was overdue".into();
                    self.command(Command::Abandon { reason }, None);
                    self.finished = true;
                }
            }
        }
        self.parts.broker.cancel_all();
        // Nobody is served any more: whoever waits for a reply learns it by the dropped sender.
        self.parts.receiver.close();
        while self.parts.receiver.try_recv().is_ok() {}
        self.parts
    }

    fn batch(&mut self, first: Item) {
        let mut next = Some(first);
        let mut left = BATCH;
        while let Some(item) = next.take() {
            match item {
                Item::Raw { launch, at, raw } => {
                    let at = self.parts.clock.of(at);
                    if let Some(ms) = self.lag.saw(at, self.parts.clock.now()) {
                        tracing::warn!(ms, "a record waited for the session loop");
                    }
                    self.raw(launch, at, &raw);
                }
                Item::Command { command, reply } => self.command(command, reply),
            }
            left = left.saturating_sub(1);
            if !self.finished && left > 0 {
                next = self.parts.receiver.try_recv().ok();
            }
        }
    }

    /// Steps a tick when the core's deadline has passed, and takes a capture when one is due.
    fn timers(&mut self) {
        let now = self.parts.clock.now();
        if self.scheduler.due(now) && !self.finished {
            self.scheduler.ticked(now);
            self.raw(self.parts.launch, now, &Raw::Tick);
        }
        if let Some(exit) = self.pane_dead.exit(now)
            && !self.finished
        {
            self.raw(self.parts.launch, now, &exit);
        }
        if self.screen.due(now) && !self.finished {
            self.parts.executor.pane.capture(None);
        }
    }

    /// Time never goes back between inputs, whatever the adapters stamped.
    fn arrival(&mut self, at: Mono, launch: Launch) -> Arrival {
        self.last_at = self.last_at.max(at);
        Arrival {
            at: self.last_at,
            wall: self.parts.clock.wall(),
            launch,
        }
    }

    fn raw(&mut self, launch: Launch, at: Mono, raw: &Raw) {
        let arrival = self.arrival(at, launch);
        if let Raw::Frame { text, .. } = raw {
            let mut debug = self
                .parts
                .shared
                .debug
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            debug.screen = Arc::clone(text);
        }
        self.screen.saw(raw);
        self.pane_dead.saw(arrival.at, raw);
        self.parts.tail.saw(raw);
        self.parts
            .trace
            .raw(arrival.at, arrival.wall, arrival.launch, raw);
        let mut outcome = Outcome::default();
        let Parts {
            engine,
            trace,
            executor,
            ..
        } = &mut self.parts;
        let (batch, scheduler) = (&mut self.batch, &mut self.scheduler);
        engine.raw(arrival, raw, |stepped| {
            if let Input::Saw { observed, .. } = stepped.input {
                executor.saw(&observed.what);
                if let Observation::SessionStarted { start, .. } = observed.what {
                    outcome.started = Some(start);
                }
            }
            collect(stepped, trace, batch, scheduler, &mut outcome);
        });
        self.act(outcome);
    }

    fn command(&mut self, command: Command, reply: Option<ReplyTo>) {
        self.last_ticket = self.last_ticket.saturating_add(1);
        let ticket = Ticket(self.last_ticket);
        let closes = matches!(command, Command::Close { .. } | Command::Abandon { .. });
        let arrival = self.arrival(self.parts.clock.now(), self.parts.launch);
        let mut outcome = Outcome::default();
        let Parts { engine, trace, .. } = &mut self.parts;
        let (batch, scheduler) = (&mut self.batch, &mut self.scheduler);
        engine.command(arrival, ticket, command, |stepped| {
            collect(stepped, trace, batch, scheduler, &mut outcome);
        });
        if let Some(to) = reply {
            let answer = outcome.reply.take().unwrap_or(Err(Refusal::SessionOver));
            self.batch.replies.push((to, answer));
        }
        if closes && self.overdue.at().is_none() {
            let at = self
                .parts
                .clock
                .now()
                .after(self.parts.close_limit_ms.saturating_add(OVERDUE_MS));
            self.overdue.set(&self.parts.clock, Some(at));
        }
        self.act(outcome);
    }

    /// Carries out the intents, in order.
    fn act(&mut self, outcome: Outcome) {
        if let Some(start) = outcome.started {
            self.parts.tail.conversation_started(start);
        }
        if let Some(ready) = outcome.ready
            && let Some(told) = self.ready.take()
        {
            let ms = self.parts.clock.now().since(self.launched_at);
            self.parts.trace.line(|| TraceLine::Step {
                step: LaunchStep::Ready,
                ms,
            });
            // Whoever started the session may have given up meanwhile; the lifecycle notices that by itself.
            let _ = told.send(ready);
        }
        for intent in outcome.intents {
            self.carry_out(intent);
        }
    }

    fn carry_out(&mut self, intent: Intent) {
        let now = self.parts.clock.now();
        let parts = &mut self.parts;
        match intent {
            Intent::Io { op, what } => parts.executor.io(&parts.clock, op, &what),
            Intent::Arm(guard) => parts.executor.arm(&guard),
            Intent::Disarm => parts.executor.disarm(),
            Intent::Answer { hold, decision } => parts.executor.answer(hold, &decision),
            Intent::AskHandler { permission } => {
                let request = parts
                    .engine
                    .view()
                    .permissions
                    .into_iter()
                    .find(|p| p.permission == permission);
                if let Some(request) = request {
                    parts.broker.ask(request);
                }
            }
            Intent::CancelHandler { permission } => parts.broker.cancel(permission),
            Intent::Cadence(cadence) => {
                self.screen.cadence(now, cadence.screen_ms);
                parts.tail.cadence(cadence.tail_ms);
                parts.executor.registry.cadence(cadence.registry_ms);
            }
            Intent::WatchProcess { pid } => parts.executor.watch(pid),
            Intent::Follow { path, session_id } => self.follow(&path, &session_id),
            Intent::Finish => self.finished = true,
        }
    }

    /// Publishes the batch: first the view, then the events and replies that it explains.
    fn publish(&mut self) {
        if !std::mem::take(&mut self.batch.stepped) {
            return;
        }
        let shared = &self.parts.shared;
        shared.view.send_replace(Arc::new(self.parts.engine.view()));
        shared.log.append(self.batch.events.drain(..));
        for (to, answer) in self.batch.replies.drain(..) {
            // A caller that does not wait for its answer is no error.
            let _ = to.send(answer);
        }
    }
}

fn collect(
    stepped: Stepped<'_>,
    trace: &mut Trace,
    batch: &mut Batch,
    scheduler: &mut Scheduler,
    outcome: &mut Outcome,
) {
    match stepped.input {
        Input::Saw { stamp, observed } => trace.line(|| TraceLine::Obs {
            seq: stamp.seq,
            observed: observed.clone(),
        }),
        Input::Asked {
            stamp,
            ticket,
            command,
        } => trace.command(*stamp, *ticket, command),
    }
    for event in &stepped.events {
        trace.line(|| TraceLine::Event(Published::clone(event)));
        match &event.event {
            DomainEvent::SessionReady { self_tested, .. } => {
                outcome.ready = Some(Ok(*self_tested));
            }
            DomainEvent::SessionStartFailed { failure } => {
                outcome.ready = Some(Err(failure.clone()));
            }
            // Only the two ends of a start concern the session layer.
            _ => {}
        }
    }
    for diagnostic in &stepped.out.diagnostics {
        tracing::debug!(kind = ?diagnostic.kind, about = %diagnostic.about, "diagnostic");
        trace.line(|| TraceLine::Diag(diagnostic.clone()));
    }
    batch.events.extend(stepped.events);
    batch.stepped = true;
    scheduler.next(stepped.out.wake);
    outcome.intents.extend(stepped.out.intents.iter().cloned());
    if let Some((_, answer)) = stepped.out.replies.first() {
        outcome.reply = Some(answer.clone());
    }
}
