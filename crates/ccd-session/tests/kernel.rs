//! The real loop, core and channels over a Claude in memory: whole turns, permissions, interrupts and ends, each replayed from its trace.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod support;

use std::{
    future::poll_fn,
    io::Cursor as Bytes,
    sync::{Arc, Mutex},
};

use ccd_model::{
    command::{Accepted, CloseHow, Command, Refusal},
    event::{Alert, DomainEvent, InterruptEnd, Published, StartFailure},
    ids::{PermissionKey, Seq, TurnKey},
    intent::Signal,
    kernel::{BoxFut, Decide, LogItem, PermissionRequest, SessionKernel},
    observation::LostPart,
    outcome::Outcome,
    permission::{DecidedBy, Decision},
    spec::SessionSpec,
    view::ExitView,
};
use ccd_ports::state::{ProcessId, Reaped, SessionRecord};
use ccd_session::{
    Handler, LaunchError, LaunchErrorKind, LaunchStep, Replayed, replay, start_with,
};
use support::{World, clock::drive, spec};

struct Session {
    world: World,
    kernel: Arc<dyn SessionKernel>,
}

async fn try_start(
    world: &World,
    spec: SessionSpec,
    handler: Option<Arc<dyn Decide>>,
) -> Result<Arc<dyn SessionKernel>, LaunchError> {
    // Captured here, the handler runs on the test's own runtime: time moves only when it cannot go on.
    let handler = handler.map(|decide| Handler::capture(decide).unwrap());
    drive(
        &world.clock,
        start_with(Arc::new(world.clone()), spec, handler),
    )
    .await
}

async fn start(handler: Option<Arc<dyn Decide>>) -> Session {
    let world = World::new();
    let kernel = try_start(&world, spec(), handler).await.unwrap();
    Session { world, kernel }
}

impl Session {
    async fn dispatch(&self, command: Command) -> Result<Accepted, Refusal> {
        drive(&self.world.clock, self.kernel.dispatch(command)).await
    }

    async fn send(&self, text: &str) -> TurnKey {
        let command = Command::Send {
            text: text.into(),
            as_text: false,
        };
        match self.dispatch(command).await.unwrap() {
            Accepted::Turn { turn } => turn,
            Accepted::Done => panic!("no turn"),
        }
    }

    /// Waits for an event; returns everything up to it.
    async fn until(&self, wanted: impl Fn(&DomainEvent) -> bool) -> Vec<Arc<Published>> {
        let mut cursor = self.kernel.events(Seq(1));
        let mut seen = Vec::new();
        let search = async {
            while let Some(item) = poll_fn(|cx| cursor.poll_next(cx)).await {
                let LogItem::Event(event) = item else {
                    panic!("{item:?}")
                };
                let found = wanted(&event.event);
                seen.push(event);
                if found {
                    return true;
                }
            }
            false
        };
        let found = drive(&self.world.clock, search).await;
        assert!(found, "the event never came: {seen:#?}");
        seen
    }

    async fn outcome(&self, wanted: TurnKey) -> (Outcome, String) {
        let seen = self
            .until(|event| matches!(event, DomainEvent::TurnEnded { turn, .. } if *turn == wanted))
            .await;
        match &seen.last().unwrap().event {
            DomainEvent::TurnEnded { outcome, text, .. } => (outcome.clone(), text.to_string()),
            other => panic!("{other:?}"),
        }
    }

    async fn close(&self, how: CloseHow) -> ExitView {
        drive(&self.world.clock, self.kernel.close(how)).await
    }

    /// Ends the session and proves that nothing is left and that its trace replays exactly.
    async fn finish(self) -> Replayed {
        self.close(CloseHow::Graceful).await;
        let mut cursor = self.kernel.events(Seq(1));
        let mut events = Vec::new();
        while let Some(LogItem::Event(event)) =
            drive(&self.world.clock, poll_fn(|cx| cursor.poll_next(cx))).await
        {
            events.push(event);
        }
        let replayed = replay_of(&self.world);
        assert_eq!(replayed.events, events);
        assert_eq!(replayed.view, *self.kernel.view());
        nothing_is_left(&self.world);
        replayed
    }
}

fn replay_of(world: &World) -> Replayed {
    let text = world.with(|ledger| ledger.trace.join("\n"));
    let replayed = replay(Bytes::new(text)).unwrap();
    assert_eq!(replayed.differences, Vec::<String>::new());
    assert!(replayed.complete);
    replayed
}

fn nothing_is_left(world: &World) {
    world.with(|ledger| {
        assert!(ledger.records.is_empty(), "{:?}", ledger.records);
        let steps: Vec<&str> = ledger.steps.iter().map(String::as_str).collect();
        let torn_down = steps.iter().position(|step| *step == "teardown").unwrap();
        let removed = steps
            .iter()
            .position(|step| *step == "record removed")
            .unwrap();
        assert!(torn_down < removed, "{steps:?}");
    });
}

/// A handler that answers with a function of the request, and counts.
struct Answers<F>(F, Mutex<Vec<PermissionKey>>);

impl<F: Fn(&PermissionRequest) -> Option<Decision> + Send + Sync> Decide for Answers<F> {
    fn decide(&self, request: PermissionRequest) -> BoxFut<Decision> {
        let answer = (self.0)(&request);
        Box::pin(async move {
            match answer {
                Some(decision) => decision,
                None => std::future::pending().await,
            }
        })
    }
    fn cancelled(&self, permission: PermissionKey) {
        self.1.lock().unwrap().push(permission);
    }
}

fn answers<F: Fn(&PermissionRequest) -> Option<Decision> + Send + Sync>(f: F) -> Arc<Answers<F>> {
    Arc::new(Answers(f, Mutex::default()))
}

#[tokio::test]
async fn a_turn_runs_from_the_prompt_to_the_final_text() {
    let session = start(None).await;
    let turn = session.send("hello").await;
    let (outcome, text) = session.outcome(turn).await;
    assert_eq!(outcome, Outcome::Completed);
    assert_eq!(text, "You said hello.");
    let seen = session
        .until(|event| matches!(event, DomainEvent::TurnSettled { .. }))
        .await;
    let names = |wanted: fn(&DomainEvent) -> bool| seen.iter().position(|e| wanted(&e.event));
    let submitted = names(|e| matches!(e, DomainEvent::TurnSubmitted { .. })).unwrap();
    let ended = names(|e| matches!(e, DomainEvent::TurnEnded { .. })).unwrap();
    assert!(submitted < ended);
    // The view that a reader sees after an event already explains it.
    let view = session.kernel.view();
    let turn_view = view.turns.iter().find(|t| t.turn == turn).unwrap();
    assert_eq!(turn_view.outcome, Some(Outcome::Completed));
    session.finish().await;
}

#[tokio::test]
async fn a_second_prompt_waits_for_the_first_and_both_complete() {
    let session = start(None).await;
    let first = session.send("one").await;
    let second = session.send("two").await;
    assert_eq!(session.outcome(second).await.1, "You said two.");
    assert_eq!(session.outcome(first).await.1, "You said one.");
    session.finish().await;
}

#[tokio::test]
async fn an_allowed_tool_runs() {
    let session = start(Some(answers(|request| {
        assert_eq!(request.name.as_ref(), "Bash");
        Some(Decision::allow())
    })))
    .await;
    let turn = session.send("tool").await;
    assert_eq!(session.outcome(turn).await.0, Outcome::Completed);
    let replies = session.world.claude.replies();
    assert_eq!(replies.len(), 1);
    let decision = &replies[0]["hookSpecificOutput"]["decision"];
    assert_eq!(decision["behavior"], "allow", "{replies:?}");
    let seen = session
        .until(|event| matches!(event, DomainEvent::PermissionResolved { .. }))
        .await;
    let DomainEvent::PermissionResolved { by, .. } = &seen.last().unwrap().event else {
        unreachable!()
    };
    assert_eq!(*by, DecidedBy::Handler);
    session.finish().await;
}

async fn denied_because(handler: Option<Arc<dyn Decide>>) {
    let session = start(handler).await;
    let turn = session.send("tool").await;
    assert_eq!(session.outcome(turn).await.0, Outcome::Completed);
    let replies = session.world.claude.replies();
    assert_eq!(replies.len(), 1);
    let decision = &replies[0]["hookSpecificOutput"]["decision"];
    assert_eq!(decision["behavior"], "deny", "{replies:?}");
    let seen = session
        .until(|event| matches!(event, DomainEvent::PermissionResolved { .. }))
        .await;
    let DomainEvent::PermissionResolved { by, .. } = &seen.last().unwrap().event else {
        unreachable!()
    };
    assert_eq!(*by, DecidedBy::HandlerFailure);
    session.finish().await;
}

#[tokio::test]
async fn a_handler_that_panics_is_a_deny() {
    denied_because(Some(answers(|_| panic!("the handler's own panic")))).await;
}

#[tokio::test]
async fn a_handler_that_never_answers_is_a_deny_at_its_deadline() {
    denied_because(Some(answers(|_| None))).await;
}

#[tokio::test]
async fn a_missing_handler_is_a_deny() {
    denied_because(None).await;
}

#[tokio::test]
async fn a_handler_set_later_answers() {
    let session = start(None).await;
    session
        .kernel
        .on_permission(answers(|_| Some(Decision::allow())));
    let turn = session.send("tool").await;
    session.outcome(turn).await;
    let reply = &session.world.claude.replies()[0];
    assert_eq!(reply["hookSpecificOutput"]["decision"]["behavior"], "allow");
    session.finish().await;
}

#[tokio::test]
async fn closing_denies_a_held_request_and_cancels_its_handler() {
    let handler = answers(|_| None);
    let session = start(Some(handler.clone())).await;
    session.send("tool").await;
    let seen = session
        .until(|event| matches!(event, DomainEvent::PermissionRequested { .. }))
        .await;
    let DomainEvent::PermissionRequested { permission, .. } = &seen.last().unwrap().event else {
        unreachable!()
    };
    let permission = *permission;
    let world = session.world.clone();
    session.finish().await;
    let reply = &world.claude.replies()[0];
    assert_eq!(reply["hookSpecificOutput"]["decision"]["behavior"], "deny");
    for _ in 0..40 {
        tokio::task::yield_now().await;
    }
    assert_eq!(*handler.1.lock().unwrap(), [permission]);
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_with_evidence() {
    let session = start(None).await;
    let turn = session.send("wait").await;
    session
        .until(|event| matches!(event, DomainEvent::TurnStarted { .. }))
        .await;
    session.dispatch(Command::Interrupt).await.unwrap();
    assert_eq!(session.outcome(turn).await.0, Outcome::Interrupted);
    let seen = session
        .until(|event| matches!(event, DomainEvent::InterruptEnded { .. }))
        .await;
    let DomainEvent::InterruptEnded { end, .. } = &seen.last().unwrap().event else {
        unreachable!()
    };
    assert_eq!(*end, InterruptEnd::Confirmed);
    session.finish().await;
}

#[tokio::test]
async fn commands_are_refused_with_a_reason_and_after_the_end() {
    let session = start(None).await;
    assert_eq!(
        session.dispatch(Command::Interrupt).await,
        Err(Refusal::NothingToInterrupt)
    );
    let kernel = Arc::clone(&session.kernel);
    let clock = session.world.clock.clone();
    let exit = session.close(CloseHow::Graceful).await;
    assert!(exit.clean, "{exit:?}");
    assert_eq!(
        drive(&clock, kernel.dispatch(Command::Interrupt)).await,
        Err(Refusal::SessionOver)
    );
    assert_eq!(drive(&clock, kernel.exited()).await, exit);
    let never = kernel.wait_for(Box::new(|_| false));
    assert!(drive(&clock, never).await.is_none());
}

#[tokio::test]
async fn a_graceful_close_leaves_by_itself_and_a_kill_does_not_wait() {
    let idle = start(None).await;
    let exit = idle.close(CloseHow::Graceful).await;
    assert_eq!((exit.code, exit.clean), (Some(0), true));
    assert!(idle.world.claude.signals().is_empty());
    idle.finish().await;

    let busy = start(None).await;
    busy.send("wait").await;
    let exit = busy.close(CloseHow::Kill).await;
    assert_eq!(exit.signal, Some(9), "{exit:?}");
    assert_eq!(busy.world.claude.signals(), [Signal::Kill]);
    busy.finish().await;
}

#[tokio::test]
async fn losing_the_hook_server_ends_the_session_and_its_turns() {
    let session = start(None).await;
    let turn = session.send("wait").await;
    session
        .until(|event| matches!(event, DomainEvent::TurnStarted { .. }))
        .await;
    session.world.claude.lose(LostPart::HookServer);
    let exit = drive(&session.world.clock, session.kernel.exited()).await;
    assert!(!exit.clean, "{exit:?}");
    assert!(matches!(
        session.outcome(turn).await.0,
        Outcome::Aborted { .. } | Outcome::Unknown { .. }
    ));
    assert!(!session.world.claude.signals().is_empty());
    session.finish().await;
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_session() {
    let Session { world, kernel } = start(None).await;
    let exited = kernel.exited();
    drop(kernel);
    let exit = drive(&world.clock, exited).await;
    assert!(exit.clean, "{exit:?}");
    nothing_is_left(&world);
    replay_of(&world);
}

#[tokio::test]
async fn a_self_test_runs_once_and_is_remembered() {
    let self_test = || SessionSpec {
        self_test: true,
        ..spec()
    };
    let first = World::new();
    let kernel = try_start(&first, self_test(), None).await.unwrap();
    assert_eq!(first.claude.self_tests(), 1);
    drive(&first.clock, kernel.close(CloseHow::Kill)).await;
    replay_of(&first);
    while first.with(|ledger| ledger.remembered.is_empty()) {
        tokio::task::yield_now().await;
    }

    let next = World::on(&first.ledger);
    let kernel = try_start(&next, self_test(), None).await.unwrap();
    assert_eq!(next.claude.self_tests(), 0);
    drive(&next.clock, kernel.close(CloseHow::Kill)).await;
}

#[tokio::test]
async fn orphans_are_the_first_event_and_replay() {
    let world = World::new();
    let record = SessionRecord {
        format: 1,
        session: "old".into(),
        claude_session: "c".into(),
        owner: ProcessId {
            pid: 7,
            start_time: 1,
        },
        supervisor: None,
        runtime_dir: "/run/ccd/old".into(),
        marker: ("M".into(), "old".into()),
        cwd: "/old".into(),
        started_ms: 0,
    };
    world.with(|ledger| {
        ledger.orphans.push(Reaped {
            record,
            killed: 2,
            dir_removed: true,
        });
    });
    let kernel = try_start(&world, spec(), None).await.unwrap();
    let session = Session { world, kernel };
    let seen = session.until(|_| true).await;
    assert!(matches!(
        &seen[0].event,
        DomainEvent::Alert(Alert::OrphansFound { count: 1, .. })
    ));
    assert_eq!(seen[0].seq, Seq(1));
    session.finish().await;
}

#[tokio::test]
async fn a_silent_claude_is_a_failed_start_with_everything_undone() {
    let world = World::new();
    world.claude.be_silent();
    let error = try_start(&world, spec(), None).await.err().unwrap();
    assert_eq!(
        (error.kind, error.step),
        (LaunchErrorKind::TimedOut, LaunchStep::Ready)
    );
    assert!(matches!(error.failure, Some(StartFailure::Timeout { .. })));
    nothing_is_left(&world);
    replay_of(&world);
}

#[tokio::test]
async fn every_failing_step_undoes_what_was_done() {
    let table = [
        ("supervise", LaunchStep::Supervise),
        ("hooks", LaunchStep::Hooks),
        ("editor", LaunchStep::Editor),
        ("write settings", LaunchStep::WriteSettings),
        ("spawn", LaunchStep::Spawn),
        ("pane", LaunchStep::Pane),
    ];
    for (name, step) in table {
        let world = World::new();
        world.with(|ledger| ledger.fails_at = Some(name));
        let error = try_start(&world, spec(), None).await.err().unwrap();
        assert_eq!((error.step, error.kind), (step, LaunchErrorKind::Internal));
        nothing_is_left(&world);
        world.with(|ledger| {
            assert_eq!(
                ledger.steps[ledger.steps.len() - 1],
                "trace finished",
                "{name}"
            );
        });
    }
    let world = World::new();
    world.with(|ledger| ledger.fails_at = Some("claude"));
    let error = try_start(&world, spec(), None).await.err().unwrap();
    assert_eq!(error.step, LaunchStep::Claude);
    world.with(|ledger| assert_eq!(ledger.steps, ["claude"]));
}

#[tokio::test]
async fn a_start_that_is_given_up_undoes_what_was_done() {
    for name in ["supervise", "hooks", "write settings", "spawn", "pane"] {
        let world = World::new();
        world.with(|ledger| ledger.hangs_at = Some(name));
        let reached = |world: &World| world.with(|l| l.steps.iter().any(|step| step == name));
        {
            let mut start = Box::pin(start_with(Arc::new(world.clone()), spec(), None));
            while !reached(&world) {
                let polled = poll_fn(|cx| std::task::Poll::Ready(start.as_mut().poll(cx))).await;
                assert!(polled.is_pending());
                tokio::task::yield_now().await;
            }
        }
        while !world.with(|l| l.steps.iter().any(|step| step == "record removed")) {
            tokio::task::yield_now().await;
        }
        nothing_is_left(&world);
    }
}

#[tokio::test]
async fn the_child_gets_a_built_environment_and_our_arguments() {
    let session = start(None).await;
    session.world.with(|ledger| {
        let supervised = ledger.supervised.as_ref().unwrap();
        let env = &supervised.env;
        assert!(!env.contains_key("NODE_OPTIONS"));
        assert_eq!(env["CCD_SESSION"], supervised.session);
        assert_eq!(env["NO_PROXY"], "127.0.0.1,localhost");
        assert!(env["VISUAL"].ends_with("/ccd-editor"));
        let argv = supervised.claude_argv.join(" ");
        assert!(argv.contains("--permission-mode=default"), "{argv}");
        assert!(argv.contains("/settings.json"), "{argv}");
        assert!(ledger.files["settings.json"].contains("http://127.0.0.1:4711/h/Stop"));
    });
    session.finish().await;
}

#[tokio::test]
async fn the_trace_holds_no_secret_and_says_what_each_step_took() {
    let world = World::new();
    let spec = SessionSpec {
        env: [("MY_API_TOKEN".to_owned(), "very-secret-value".to_owned())].into(),
        ..spec()
    };
    let kernel = try_start(&world, spec, None).await.unwrap();
    let session = Session { world, kernel };
    let turn = session
        .send("echo very-secret-value and sk-ant-api03-0123456789")
        .await;
    session.outcome(turn).await;
    let world = session.world.clone();
    session.close(CloseHow::Graceful).await;
    replay_of(&world);
    world.with(|ledger| {
        let text = ledger.trace.join("\n");
        assert!(!text.contains("very-secret-value"));
        assert!(!text.contains("sk-ant-api03"));
        assert!(text.contains("echo <redacted:"));
        assert!(ledger.trace[0].starts_with("{\"k\":\"header\""));
        let steps: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("{\"k\":\"step\",\"step\":\""))
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        let expected = "config state environment claude tmux helper account settings trust conversation record \
                        supervise hooks editor write_settings spawn pane watch ready";
        assert_eq!(steps.join(" "), expected);
    });
}
