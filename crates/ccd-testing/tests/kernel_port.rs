//! The kernel port alone drives a session: what another facade would do, with nothing but the composition root and its model.
//!
//! What lives here: five scenarios over `SessionKernel`. What never does: the public API, a port of the outside world, or
//! knowledge of how the fake platform is made (see `platform`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "kernel_port/platform.rs"]
mod platform;

use std::{future::poll_fn, sync::Arc, time::Duration};

use ccd_runtime::{
    create_kernel_on,
    model::{
        command::{Accepted, CloseHow, Command, Refusal},
        event::{DomainEvent, InterruptEnd},
        ids::{Seq, TurnKey},
        kernel::{BoxFut, Decide, LogItem, PermissionRequest, SessionKernel},
        outcome::{Outcome, Usage},
        permission::{DecidedBy, Decision},
        status::{Lifecycle, PermissionStatus},
        view::{TurnView, View},
    },
};
use platform::Fake;

/// Longest wait for anything that is to happen.
const PATIENCE: Duration = Duration::from_secs(20);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it did not happen in time")
}

/// A facade of five functions.
struct Facade {
    fake: Fake,
    kernel: Arc<dyn SessionKernel>,
}

impl Facade {
    async fn start(handler: Option<Arc<dyn Decide>>) -> Self {
        let fake = Fake::new();
        let kernel = soon(create_kernel_on(fake.port(), platform::spec(), handler)).await;
        Self {
            fake,
            kernel: kernel.unwrap(),
        }
    }

    async fn send(&self, text: &str) -> TurnKey {
        let command = Command::Send {
            text: text.into(),
            as_text: false,
        };
        match soon(self.kernel.dispatch(command)).await.unwrap() {
            Accepted::Turn { turn } => turn,
            Accepted::Done => panic!("a prompt is a turn"),
        }
    }

    /// The turn in the first view in which `holds`.
    async fn turn(
        &self,
        turn: TurnKey,
        holds: impl Fn(&TurnView) -> bool + Send + Sync + 'static,
    ) -> TurnView {
        let found = move |view: &View| -> Option<TurnView> {
            view.turns
                .iter()
                .find(|one| one.turn == turn && holds(one))
                .cloned()
        };
        let found = Arc::new(found);
        let wanted = Arc::clone(&found);
        let view = soon(
            self.kernel
                .wait_for(Box::new(move |view| wanted(view).is_some())),
        )
        .await;
        found(&view.expect("the session is over")).unwrap()
    }

    async fn event<R>(&self, found: impl Fn(&DomainEvent) -> Option<R>) -> R {
        let mut cursor = self.kernel.events(Seq(1));
        soon(async {
            loop {
                match poll_fn(|cx| cursor.poll_next(cx)).await {
                    Some(LogItem::Event(event)) => {
                        if let Some(result) = found(&event.event) {
                            return result;
                        }
                    }
                    Some(LogItem::Gap { .. }) => panic!("a reader of few events missed some"),
                    None => panic!("the session is over"),
                }
            }
        })
        .await
    }

    async fn close(self) {
        let exit = soon(self.kernel.close(CloseHow::Graceful)).await;
        assert!(exit.clean, "{exit:?}");
        assert!(self.fake.is_clean());
    }
}

struct AllowEcho;

impl Decide for AllowEcho {
    fn decide(&self, request: PermissionRequest) -> BoxFut<Decision> {
        let echo = request.input.get().contains("echo");
        Box::pin(async move {
            if echo {
                Decision::allow()
            } else {
                Decision::deny("only echo")
            }
        })
    }
}

#[tokio::test]
async fn a_prompt_is_answered() {
    let facade = Facade::start(None).await;
    assert_eq!(facade.kernel.view().lifecycle, Lifecycle::Ready);
    let turn = facade.send("hello").await;
    let ended = facade.turn(turn, |turn| turn.outcome.is_some()).await;
    assert_eq!(ended.outcome, Some(Outcome::Completed));
    assert!(ended.submitted);
    assert_eq!(&*ended.text, "You said hello.");
    let text = facade.event(|event| match event {
        DomainEvent::TurnEnded {
            turn: one, text, ..
        } if *one == turn => Some(text.clone()),
        _ => None,
    });
    assert_eq!(text.await, ended.text);
    facade.close().await;
}

#[tokio::test]
async fn a_permission_is_asked_for_and_the_answer_counts() {
    let facade = Facade::start(None).await;
    facade.kernel.on_permission(Arc::new(AllowEcho));
    let turn = facade.send("tool").await;
    let resolved = facade.event(|event| match event {
        DomainEvent::PermissionResolved { permission, by, .. } => Some((*permission, *by)),
        _ => None,
    });
    let (permission, by) = resolved.await;
    assert_eq!(by, DecidedBy::Handler);
    facade.turn(turn, |turn| turn.outcome.is_some()).await;
    let view = facade.kernel.view();
    let request = view
        .permissions
        .iter()
        .find(|one| one.permission == permission)
        .unwrap();
    assert_eq!(request.status, PermissionStatus::Resolved);
    assert_eq!(request.decision, Some(Decision::allow()));
    assert_eq!(request.turn, Some(turn));
    facade.close().await;
}

#[tokio::test]
async fn an_interrupt_is_confirmed_and_ends_the_turn() {
    let facade = Facade::start(None).await;
    let refused = soon(facade.kernel.dispatch(Command::Interrupt)).await;
    assert_eq!(refused, Err(Refusal::NothingToInterrupt));
    let turn = facade.send("wait").await;
    facade
        .event(|event| matches!(event, DomainEvent::TurnStarted { .. }).then_some(()))
        .await;
    soon(facade.kernel.dispatch(Command::Interrupt))
        .await
        .unwrap();
    let end = facade.event(|event| match event {
        DomainEvent::InterruptEnded { end, .. } => Some(*end),
        _ => None,
    });
    assert_eq!(end.await, InterruptEnd::Confirmed);
    let ended = facade.turn(turn, |turn| turn.outcome.is_some()).await;
    assert_eq!(ended.outcome, Some(Outcome::Interrupted));
    facade.close().await;
}

#[tokio::test]
async fn the_usage_of_a_turn_is_in_its_view_and_its_event() {
    let facade = Facade::start(None).await;
    let turn = facade.send("hello").await;
    let settled = facade.turn(turn, |turn| turn.settled).await;
    let expected = Usage {
        input_tokens: 10,
        output_tokens: 20,
        ..Usage::default()
    };
    assert_eq!(settled.usage, Some(expected));
    assert_eq!(settled.model.as_deref(), Some("claude-x"));
    let told = facade.event(|event| match event {
        DomainEvent::TurnSettled {
            turn: one,
            usage,
            complete,
            ..
        } if *one == turn => Some((*usage, *complete)),
        _ => None,
    });
    assert_eq!(told.await, (Some(expected), true));
    facade.close().await;
}

#[tokio::test]
async fn a_close_in_mid_turn_ends_everything_and_is_final() {
    let facade = Facade::start(None).await;
    let turn = facade.send("wait").await;
    facade
        .event(|event| matches!(event, DomainEvent::TurnStarted { .. }).then_some(()))
        .await;
    let exited = facade.kernel.exited();
    let exit = soon(facade.kernel.close(CloseHow::Kill)).await;
    assert_eq!(soon(exited).await, exit);
    let view = facade.kernel.view();
    assert_eq!(view.lifecycle, Lifecycle::Exited);
    assert_eq!(view.exit.as_ref(), Some(&exit));
    let ended = view.turns.iter().find(|one| one.turn == turn).unwrap();
    assert!(
        matches!(ended.outcome, Some(Outcome::Aborted { .. })),
        "{ended:?}"
    );
    let refused = soon(facade.kernel.dispatch(Command::Interrupt)).await;
    assert_eq!(refused, Err(Refusal::SessionOver));
    let mut cursor = facade.kernel.events(Seq(1));
    let mut exits = 0;
    while let Some(item) = soon(poll_fn(|cx| cursor.poll_next(cx))).await {
        let LogItem::Event(event) = item else {
            panic!("{item:?}")
        };
        exits += usize::from(matches!(event.event, DomainEvent::SessionExited { .. }));
    }
    assert_eq!(exits, 1, "the stream ends, and told the end once");
    assert!(facade.fake.is_clean());
}

#[test]
fn the_scenarios_name_no_crate_but_the_composition_root() {
    let source = include_str!("kernel_port.rs");
    let prefix = concat!("ccd", "_");
    let mut named: Vec<&str> = source
        .match_indices(prefix)
        .map(|(index, _)| {
            let rest = source.get(index..).unwrap_or_default();
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .unwrap()
        })
        .collect();
    named.dedup();
    assert_eq!(named, [concat!("ccd", "_runtime")]);
}
