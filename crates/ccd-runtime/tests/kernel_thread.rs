//! The kernel thread: sessions on a Claude in memory, driven from threads without a runtime, given up half-way, with handlers of a runtime that is gone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

#[allow(
    dead_code,
    reason = "shared with the tests of the session layer, which need more of it"
)]
#[path = "../../ccd-session/tests/support/mod.rs"]
mod support;

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};

use ccd_model::{
    command::{Accepted, CloseHow, Command},
    ids::{Launch, TurnKey},
    kernel::{BoxFut, Decide, PermissionRequest, SessionKernel},
    outcome::Outcome,
    permission::Decision,
    spec::SessionSpec,
};
use ccd_platform::RealPlatform;
use ccd_ports::{
    Platform,
    clock::{Clock, Ids},
    error::PortError,
    host::Host,
    inbox::Inbox,
    session::SessionPorts,
    state::StateStore,
    trace::TraceSink,
};
use ccd_runtime::create_kernel_on;
use support::World;

/// The platform in memory with real time.
struct RealTime(World, RealPlatform);

impl Platform for RealTime {
    fn clock(&self) -> Arc<dyn Clock> {
        self.1.clock()
    }
    fn ids(&self) -> Arc<dyn Ids> {
        self.0.ids()
    }
    fn host(&self) -> Arc<dyn Host> {
        self.0.host()
    }
    fn state(&self, dir: Option<&str>) -> Result<Arc<dyn StateStore>, PortError> {
        self.0.state(dir)
    }
    fn open(&self, launch: Launch, inbox: Arc<dyn Inbox>) -> Box<dyn SessionPorts> {
        self.0.open(launch, inbox)
    }
    fn trace(&self, path: &str) -> Result<Box<dyn TraceSink>, PortError> {
        self.0.trace(path)
    }
}

struct Unpark(Thread);
impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor there is: no tokio in sight.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        std::thread::park();
    }
}

type Started = BoxFut<Result<Arc<dyn SessionKernel>, ccd_runtime::LaunchError>>;

fn start(world: &World, handler: Option<Arc<dyn Decide>>) -> Started {
    let platform = Arc::new(RealTime(world.clone(), RealPlatform::new()));
    let spec = SessionSpec {
        trace: None,
        ..support::spec()
    };
    create_kernel_on(platform, spec, handler)
}

async fn outcome(kernel: &dyn SessionKernel, text: &str) -> Outcome {
    let command = Command::Send {
        text: text.into(),
        as_text: false,
    };
    let Accepted::Turn { turn } = kernel.dispatch(command).await.unwrap() else {
        panic!("no turn")
    };
    ended(kernel, turn).await
}

async fn ended(kernel: &dyn SessionKernel, key: TurnKey) -> Outcome {
    let view = kernel
        .wait_for(Box::new(move |view| {
            view.turns
                .iter()
                .any(|turn| turn.turn == key && turn.outcome.is_some())
        }))
        .await
        .unwrap();
    let turn = view.turns.iter().find(|turn| turn.turn == key).unwrap();
    turn.outcome.clone().unwrap()
}

struct Allows;
impl Decide for Allows {
    fn decide(&self, _request: PermissionRequest) -> BoxFut<Decision> {
        Box::pin(async { Decision::allow() })
    }
}

fn behavior(world: &World) -> String {
    let reply = &world.claude.replies()[0];
    let behavior = &reply["hookSpecificOutput"]["decision"]["behavior"];
    behavior.as_str().unwrap().to_owned()
}

#[test]
fn a_session_runs_on_threads_without_a_runtime() {
    let world = World::new();
    let kernel = block_on(start(&world, Some(Arc::new(Allows)))).unwrap();
    assert_eq!(block_on(outcome(&*kernel, "hello")), Outcome::Completed);
    let other = Arc::clone(&kernel);
    let from_elsewhere = std::thread::spawn(move || block_on(outcome(&*other, "tool")));
    assert_eq!(from_elsewhere.join().unwrap(), Outcome::Completed);
    assert_eq!(behavior(&world), "allow");
    let exit = block_on(kernel.close(CloseHow::Graceful));
    assert!(exit.clean, "{exit:?}");
    assert!(world.with(|ledger| ledger.records.is_empty()));
}

#[test]
fn a_host_runtime_that_is_gone_stops_nothing_but_its_handler() {
    let world = World::new();
    let host = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let handler: Arc<dyn Decide> = Arc::new(Allows);
    let kernel = host
        .block_on(async { start(&world, Some(handler)).await })
        .unwrap();
    drop(host);
    assert_eq!(block_on(outcome(&*kernel, "tool")), Outcome::Completed);
    assert_eq!(behavior(&world), "deny");
    block_on(kernel.close(CloseHow::Kill));
}

#[test]
fn a_start_that_is_dropped_is_undone_on_the_kernel_thread() {
    let world = World::new();
    world.with(|ledger| ledger.hangs_at = Some("spawn"));
    let has = |step: &str| world.with(|ledger| ledger.steps.iter().any(|one| one == step));
    let mut pending = start(&world, None);
    while !has("spawn") {
        let polled = pending
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        std::thread::yield_now();
    }
    drop(pending);
    while !has("record removed") {
        std::thread::yield_now();
    }
    assert!(has("teardown"));
}
