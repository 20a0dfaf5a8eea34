//! The permission broker: runs the caller's handler away from the kernel thread, with a deadline, and turns whatever happens into a command.
//!
//! Here live the running handler calls. Deciding what an absent answer means never does: the core denies.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use ccd_model::{
    command::Command,
    ids::PermissionKey,
    json::RawJson,
    kernel::{Decide, PermissionRequest},
    permission::{Decision, HandlerFailure},
};
use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinError, JoinHandle},
};

use crate::{queue::Queue, scheduler::SessionClock};

/// Told to the model when a handler's answer cannot be used.
const UNUSABLE: &str = "The permission handler gave an answer that cannot be used.";

/// A permission handler with the place where it runs.
#[derive(Clone)]
pub struct Handler {
    decide: Arc<dyn Decide>,
    place: Place,
}

/// Where handler calls run.
#[derive(Clone)]
struct Place {
    runtime: Handle,
    /// Keeps our own thread alive, when there is one.
    _thread: Option<Arc<oneshot::Sender<()>>>,
}

impl Handler {
    /// Takes `decide` together with the caller's tokio runtime, if this thread has one; else with a thread of its own.
    /// Call it on the caller's thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn capture(decide: Arc<dyn Decide>) -> std::io::Result<Self> {
        let place = match Handle::try_current() {
            Ok(runtime) => Place {
                runtime,
                _thread: None,
            },
            Err(_) => Place::own_thread()?,
        };
        Ok(Self { decide, place })
    }

    /// Takes `decide` with a thread of its own.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn on_own_thread(decide: Arc<dyn Decide>) -> std::io::Result<Self> {
        Ok(Self {
            decide,
            place: Place::own_thread()?,
        })
    }
}

impl Place {
    fn own_thread() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let (alive, dropped) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("ccd-handler".to_owned())
            .spawn(move || {
                // Ends when the last handler of this place is gone.
                let _ = runtime.block_on(dropped);
            })?;
        Ok(Self {
            runtime: handle,
            _thread: Some(Arc::new(alive)),
        })
    }

    fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDrop<T> {
        AbortOnDrop(self.runtime.spawn(task))
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The place of the handler: set by the kernel's handle on any thread, read by the broker.
#[derive(Clone, Default)]
pub(crate) struct HandlerSeat(Arc<Mutex<Option<Handler>>>);

impl HandlerSeat {
    pub(crate) fn set(&self, handler: Option<Handler>) {
        let old = {
            let mut seat = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *seat, handler)
        };
        // The caller's destructor runs without our lock.
        drop(old);
    }

    fn get(&self) -> Option<Handler> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The running handler calls of one session.
pub(crate) struct Broker {
    seat: HandlerSeat,
    clock: SessionClock,
    queue: Queue,
    limit_ms: u64,
    running: BTreeMap<PermissionKey, (Handler, AbortOnDrop<()>)>,
}

impl Broker {
    /// A broker whose handlers have `limit_ms` for an answer.
    pub(crate) fn new(seat: HandlerSeat, clock: SessionClock, queue: Queue, limit_ms: u64) -> Self {
        Self {
            seat,
            clock,
            queue,
            limit_ms,
            running: BTreeMap::new(),
        }
    }

    /// Lets the handler decide `request`. The answer comes back as a command. Must run inside the kernel's runtime.
    pub(crate) fn ask(&mut self, request: PermissionRequest) {
        let permission = request.permission;
        self.running.retain(|_, (_, call)| !call.0.is_finished());
        let Some(handler) = self.seat.get() else {
            self.queue
                .command(failed(permission, HandlerFailure::Missing), None);
            return;
        };
        let call = {
            let decide = Arc::clone(&handler.decide);
            handler
                .place
                .spawn(async move { decide.decide(request).await })
        };
        let until = self.clock.now().after(self.limit_ms);
        let deadline = self.clock.sleep_until(until);
        let queue = self.queue.clone();
        let wait = tokio::spawn(async move {
            let mut call = call;
            let command = tokio::select! {
                biased;
                answer = &mut call.0 => answered(permission, answer),
                () = deadline => failed(permission, HandlerFailure::TimedOut),
            };
            queue.command(command, None);
        });
        self.running
            .insert(permission, (handler, AbortOnDrop(wait)));
    }

    /// The answer is not needed any more: the call is dropped and its handler is told.
    pub(crate) fn cancel(&mut self, permission: PermissionKey) {
        if let Some((handler, call)) = self.running.remove(&permission) {
            drop(call);
            let runtime = handler.place.runtime.clone();
            // Detached: it runs the caller's code, whose end nobody waits for.
            drop(runtime.spawn(async move { handler.decide.cancelled(permission) }));
        }
    }

    /// Nothing will be asked any more.
    pub(crate) fn cancel_all(&mut self) {
        while let Some(permission) = self.running.keys().next().copied() {
            self.cancel(permission);
        }
    }
}

fn failed(permission: PermissionKey, failure: HandlerFailure) -> Command {
    Command::HandlerFailed {
        permission,
        failure,
    }
}

fn answered(permission: PermissionKey, answer: Result<Decision, JoinError>) -> Command {
    match answer {
        Ok(decision) => Command::Decide {
            permission,
            decision: usable(decision),
        },
        Err(error) if error.is_panic() => failed(permission, HandlerFailure::Panicked),
        Err(_) => failed(permission, HandlerFailure::Dropped),
    }
}

/// An allow whose JSON is not what Claude takes becomes a deny.
fn usable(decision: Decision) -> Decision {
    let fits = |json: &Option<RawJson>, kind: fn(&Value) -> bool| {
        json.as_ref()
            .is_none_or(|json| json.value().as_ref().is_some_and(kind))
    };
    match decision {
        Decision::Allow {
            updated_input,
            updated_permissions,
        } if !fits(&updated_input, Value::is_object)
            || !fits(&updated_permissions, Value::is_array) =>
        {
            Decision::deny(UNUSABLE)
        }
        fine @ (Decision::Allow { .. } | Decision::Deny { .. }) => fine,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::thread::ThreadId;

    use ccd_model::{
        kernel::BoxFut,
        permission::Decision,
        status::PermissionStatus,
        time::{Mono, Wall},
    };
    use ccd_ports::{PortFut, clock::Clock};

    use super::*;
    use crate::queue::{Item, Receiver, queue};

    /// Time stands still; a wait ends at once if `expired`.
    struct Still {
        expired: bool,
    }
    impl Clock for Still {
        fn now(&self) -> Mono {
            Mono(0)
        }
        fn wall(&self) -> Wall {
            Wall(0)
        }
        fn sleep_until(&self, _at: Mono) -> PortFut<'static, ()> {
            let expired = self.expired;
            Box::pin(async move {
                if !expired {
                    std::future::pending::<()>().await;
                }
            })
        }
    }

    enum Does {
        Answer(Decision),
        Panic,
        Never,
    }
    struct Scripted {
        does: Does,
        ran_on: Mutex<Option<ThreadId>>,
        cancelled: Mutex<Option<oneshot::Sender<PermissionKey>>>,
    }
    impl Scripted {
        fn new(does: Does) -> Arc<Self> {
            Arc::new(Self {
                does,
                ran_on: Mutex::default(),
                cancelled: Mutex::default(),
            })
        }
    }
    impl Decide for Scripted {
        fn decide(&self, _request: PermissionRequest) -> BoxFut<Decision> {
            *self.ran_on.lock().unwrap() = Some(std::thread::current().id());
            match &self.does {
                Does::Answer(decision) => {
                    let decision = decision.clone();
                    Box::pin(async move { decision })
                }
                Does::Panic => panic!("a handler's panic"),
                Does::Never => Box::pin(std::future::pending()),
            }
        }
        fn cancelled(&self, permission: PermissionKey) {
            if let Some(told) = self.cancelled.lock().unwrap().take() {
                let _ = told.send(permission);
            }
        }
    }

    fn request() -> PermissionRequest {
        PermissionRequest {
            permission: PermissionKey(1),
            turn: None,
            tool: None,
            tool_use_id: None,
            agent: None,
            name: "Bash".into(),
            input: RawJson::new("{}"),
            suggestions: None,
            status: PermissionStatus::Pending,
            decision: None,
            by: None,
        }
    }

    fn broker(handler: Option<Handler>, expired: bool) -> (Broker, Receiver) {
        let (queue, receiver) = queue();
        let seat = HandlerSeat::default();
        seat.set(handler);
        let clock = SessionClock::start(Arc::new(Still { expired }));
        (Broker::new(seat, clock, queue, 1_000), receiver)
    }

    async fn command(receiver: &mut Receiver) -> Command {
        match receiver.recv().await.unwrap() {
            Item::Command { command, .. } => command,
            Item::Raw { raw, .. } => panic!("{raw:?}"),
        }
    }

    async fn outcome(does: Does, expired: bool) -> Command {
        let handler = Handler::on_own_thread(Scripted::new(does)).unwrap();
        let (mut broker, mut receiver) = broker(Some(handler), expired);
        broker.ask(request());
        command(&mut receiver).await
    }

    fn decided(decision: Decision) -> Command {
        Command::Decide {
            permission: PermissionKey(1),
            decision,
        }
    }

    #[tokio::test]
    async fn an_answer_becomes_a_decision() {
        assert_eq!(
            outcome(Does::Answer(Decision::allow()), false).await,
            decided(Decision::allow())
        );
    }

    #[tokio::test]
    async fn a_panic_a_deadline_and_a_missing_handler_are_failures() {
        let failure = |failure| failed(PermissionKey(1), failure);
        assert_eq!(
            outcome(Does::Panic, false).await,
            failure(HandlerFailure::Panicked)
        );
        assert_eq!(
            outcome(Does::Never, true).await,
            failure(HandlerFailure::TimedOut)
        );
        let (mut broker, mut receiver) = broker(None, false);
        broker.ask(request());
        assert_eq!(
            command(&mut receiver).await,
            failure(HandlerFailure::Missing)
        );
    }

    #[test]
    fn a_runtime_that_is_gone_is_a_dropped_handler() {
        let host = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let handler = {
            let _entered = host.enter();
            Handler::capture(Scripted::new(Does::Answer(Decision::allow()))).unwrap()
        };
        drop(host);
        let kernel = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let got = kernel.block_on(async move {
            let (mut broker, mut receiver) = broker(Some(handler), false);
            broker.ask(request());
            command(&mut receiver).await
        });
        assert_eq!(got, failed(PermissionKey(1), HandlerFailure::Dropped));
    }

    #[tokio::test]
    async fn malformed_json_in_an_allow_is_a_deny() {
        let allow = |input: Option<&str>, permissions: Option<&str>| Decision::Allow {
            updated_input: input.map(RawJson::new),
            updated_permissions: permissions.map(RawJson::new),
        };
        let table = [
            (allow(Some("{}"), Some("[]")), true),
            (allow(Some("{"), None), false),
            (allow(Some("[]"), None), false),
            (allow(None, Some("{}")), false),
        ];
        for (decision, passes) in table {
            assert_eq!(usable(decision.clone()) == decision, passes, "{decision:?}");
        }
        let got = outcome(Does::Answer(allow(Some("x"), None)), false).await;
        assert_eq!(got, decided(Decision::deny(UNUSABLE)));
    }

    #[test]
    fn handlers_run_on_the_callers_runtime_and_never_on_the_kernel_thread() {
        let kernel = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let host = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || drop(runtime.block_on(stopped)));
        let host_worker = thread.thread().id();
        for (on_host, name) in [(true, "host"), (false, "own")] {
            let scripted = Scripted::new(Does::Answer(Decision::allow()));
            let handler = {
                let _entered = on_host.then(|| host.enter());
                Handler::capture(scripted.clone()).unwrap()
            };
            kernel.block_on(async {
                let (mut broker, mut receiver) = broker(Some(handler), false);
                broker.ask(request());
                command(&mut receiver).await;
            });
            let ran_on = scripted.ran_on.lock().unwrap().unwrap();
            assert_ne!(ran_on, std::thread::current().id(), "{name}");
            assert_eq!(ran_on == host_worker, on_host, "{name}");
        }
        drop(stop);
        thread.join().unwrap();
    }

    #[tokio::test]
    async fn a_cancelled_call_is_dropped_and_its_handler_told() {
        let scripted = Scripted::new(Does::Never);
        let (told, hears) = oneshot::channel();
        *scripted.cancelled.lock().unwrap() = Some(told);
        let handler = Handler::on_own_thread(scripted.clone()).unwrap();
        let (mut broker, mut receiver) = broker(Some(handler), false);
        broker.ask(request());
        broker.cancel(PermissionKey(1));
        assert_eq!(hears.await, Ok(PermissionKey(1)));
        assert!(receiver.try_recv().is_err());
        assert!(broker.running.is_empty());
    }
}
