//! The life of a session: one task from the start to the last removed file.
//!
//! Here live the phases and their order. What a step of the start does is the launcher's, what happens in between the loop's.

use std::sync::{Arc, Mutex, PoisonError};

use ccd_model::{
    command::Command,
    event::DomainEvent,
    kernel::{DebugInfo, Decide, SessionKernel},
    spec::SessionSpec,
};
use ccd_ports::Platform;
use tokio::sync::{oneshot, watch};

use crate::{
    error::{LaunchError, LaunchStep},
    event_log::EventLog,
    kernel::{Kernel, unexplained},
    launcher::{Launcher, Opened, finish_trace},
    permission_broker::{Broker, Handler, HandlerSeat},
    queue::queue,
    scheduler::SessionClock,
    step_loop::{Parts, Shared, StepLoop},
    trace::TraceLine,
};

type Started = Result<Arc<dyn SessionKernel>, LaunchError>;

/// Starts a session; resolves when it is ready for prompts. Must run on the kernel thread's tokio runtime.
/// The handler runs on a thread of its own; see [`start_with`] for the caller's runtime.
///
/// # Errors
/// Any [`LaunchError`]; then everything that was set up is gone. Dropping the future has the same effect, a little later.
pub async fn start(
    platform: Arc<dyn Platform>,
    spec: SessionSpec,
    handler: Option<Arc<dyn Decide>>,
) -> Started {
    let handler = match handler.map(Handler::on_own_thread).transpose() {
        Ok(handler) => handler,
        Err(error) => {
            let error = ccd_ports::error::PortError::new(
                ccd_ports::error::PortErrorKind::Internal,
                format!("no thread for the permission handler: {error}"),
            );
            return Err(LaunchError::new(LaunchStep::Config, error));
        }
    };
    start_with(platform, spec, handler).await
}

/// Like [`start`], with a handler that knows where it runs.
///
/// # Errors
/// As [`start`].
pub async fn start_with(
    platform: Arc<dyn Platform>,
    spec: SessionSpec,
    handler: Option<Handler>,
) -> Started {
    let (told, started) = oneshot::channel();
    // A task of its own: the teardown must go on when the caller gives up.
    tokio::spawn(live(platform, spec, handler, told));
    started
        .await
        .unwrap_or_else(|_| Err(LaunchError::abandoned(LaunchStep::Ready)))
}

async fn live(
    platform: Arc<dyn Platform>,
    spec: SessionSpec,
    handler: Option<Handler>,
    mut told: oneshot::Sender<Started>,
) {
    let clock = SessionClock::start(platform.clock());
    let (queue, receiver) = queue();
    let limits = spec.limits.clone();
    let mut launcher = Launcher::new(platform, spec, clock.clone(), queue.clone());
    let opened = tokio::select! {
        biased;
        () = told.closed() => Err(LaunchError::abandoned(launcher.step())),
        opened = launcher.open() => opened,
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            launcher.undo().await;
            // The caller may have given up; nobody else is interested.
            let _ = told.send(Err(error));
            return;
        }
    };
    let Opened {
        engine,
        executor,
        tail,
        trace,
        launch,
        launched,
        transcript,
        orphans,
        trace_path,
        session,
    } = opened;
    let debug = Arc::new(Mutex::new(DebugInfo {
        session,
        attach: executor.pane.attach_command(),
        trace: trace_path,
        trace_error: None,
        screen: "".into(),
    }));
    let log = EventLog::new();
    let (view, view_seen) = watch::channel(Arc::new(engine.view()));
    let (exit, exit_seen) = watch::channel(None);
    let seat = HandlerSeat::default();
    seat.set(handler);
    let kernel: Arc<dyn SessionKernel> = Arc::new(Kernel {
        queue: queue.clone(),
        log: Arc::clone(&log),
        view: view_seen,
        exit: exit_seen,
        seat: seat.clone(),
        debug: Arc::clone(&debug),
    });
    let (ready, mut is_ready) = oneshot::channel();
    let mut step_loop = StepLoop::new(Parts {
        engine,
        broker: Broker::new(
            seat.clone(),
            clock.clone(),
            queue.clone(),
            limits.permission_ms,
        ),
        clock,
        launch,
        receiver,
        trace,
        shared: Shared {
            log: Arc::clone(&log),
            view,
            debug,
        },
        executor,
        tail,
        ready,
        close_limit_ms: limits.close_ms,
    });
    if let Some(orphans) = orphans {
        step_loop.own_event(DomainEvent::Alert(orphans));
    }
    if let Some(path) = transcript {
        step_loop.follow(&path, &launched.session_id);
    }

    let mut running = Box::pin(step_loop.run(launched));
    let mut over = None;
    let ready = tokio::select! {
        biased;
        ready = &mut is_ready => ready.ok(),
        () = told.closed() => None,
        parts = &mut running => {
            over = Some(parts);
            is_ready.try_recv().ok()
        }
    };
    let failed = match ready {
        Some(Ok(self_tested)) => {
            if self_tested {
                launcher.remember_self_test();
            }
            // Given back when the caller is gone: dropping it starts the close.
            drop(told.send(Ok(kernel)));
            None
        }
        Some(Err(failure)) => Some((told, LaunchError::from_failure(failure), kernel)),
        None => Some((told, LaunchError::abandoned(LaunchStep::Ready), kernel)),
    };
    if let Some((_, error, _)) = &failed {
        let reason = error.message.as_str().into();
        queue.command(Command::Abandon { reason }, None);
    }
    let parts = match over {
        Some(parts) => parts,
        None => running.await,
    };
    end(parts, &mut launcher, &log, &exit).await;
    if let Some((told, error, _)) = failed {
        let _ = told.send(Err(error));
    }
}

/// Tears down and tells everybody that nothing is left.
async fn end(
    mut parts: Parts,
    launcher: &mut Launcher,
    log: &EventLog,
    exit: &watch::Sender<Option<ccd_model::view::ExitView>>,
) {
    launcher.undo().await;
    let view = parts.engine.view();
    let how = view
        .exit
        .clone()
        .unwrap_or_else(|| unexplained("the session was torn down"));
    parts.trace.line(|| TraceLine::End {
        view: Box::new(view),
    });
    if let Some(error) = finish_trace(&mut parts.trace).await {
        let mut debug = parts
            .shared
            .debug
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        debug.trace_error = Some(error.message);
    }
    // The handles of the adapters outlive the teardown: no hook may meet a closed port while Claude lives.
    drop(parts);
    log.close();
    exit.send_replace(Some(how));
}
