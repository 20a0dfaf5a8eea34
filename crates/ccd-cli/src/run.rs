//! `ccd run`: one session, one prompt, one answer.

use std::{
    io::IsTerminal as _,
    sync::{Arc, Mutex, PoisonError},
};

use ccd_api::{ClaudeSession, Close, Error, EventStream, ExitCode, Prompt, Turn, TurnOutcome};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    args::{OutputFormat, RunArgs, Until},
    collect::{self, Collected},
    output,
    progress::Progress,
    run_options,
    signals::{Signals, Stop},
};

/// Runs the command and gives the exit code.
pub(crate) async fn run(args: RunArgs) -> u8 {
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let prepared = run_options::options(&args, terminal).and_then(|options| {
        Ok((
            options,
            run_options::prompt(&args, std::io::stdin().is_terminal())?,
        ))
    });
    let (options, prompt) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return fail(&args, error),
    };
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            output::tell(&format!("ccd: cannot take signals over: {error}"));
            return ExitCode::INTERNAL.0;
        }
    };
    let mut starting = Box::pin(ClaudeSession::start(options));
    let started = tokio::select! {
        started = &mut starting => started,
        stop = signals.next() => {
            // The start goes on to its end, so that nothing is left behind; a second signal does not wait for it, and the
            // supervisor finishes the rest.
            tokio::select! {
                started = &mut starting => if let Ok(session) = started {
                    session.close_with(Close::Kill).await;
                },
                _ = signals.next() => {}
            }
            return signal_code(stop).0;
        }
    };
    match started {
        Ok(session) => drive(&args, session, prompt, signals).await,
        Err(error) => fail(&args, error),
    }
}

/// A failure before there was a turn.
fn fail(args: &RunArgs, error: Error) -> u8 {
    output::tell(&format!("ccd: {error}"));
    let code = ExitCode::of_error(error.code).0;
    if args.output_format != OutputFormat::Text {
        output::result(&collect::failed(error));
    }
    code
}

const fn signal_code(stop: Stop) -> ExitCode {
    match stop {
        Stop::Interrupt => ExitCode::SIGINT,
        Stop::Terminate => ExitCode::SIGTERM,
    }
}

/// Why the wait for the end was left.
enum Left {
    Ended,
    TimedOut,
    Signalled(Stop),
    NobodyReads,
}

async fn drive(args: &RunArgs, session: ClaudeSession, prompt: String, mut signals: Signals) -> u8 {
    let collected = Arc::new(Mutex::new(Collected::default()));
    let (pump, reader) = pump(args, session.events(1), Arc::clone(&collected));
    let prompt = if args.as_text {
        Prompt::new(prompt).as_text()
    } else {
        Prompt::new(prompt)
    };
    let turn = match session.send(prompt).await {
        Ok(turn) => turn,
        Err(error) => {
            session.close().await;
            let _ = pump.await;
            return fail(args, error);
        }
    };
    lock(&collected).own_turn(turn.id());

    let left = wait(args, &session, &turn, &mut signals, reader).await;
    let outcome = close(&session, &turn, &left, &mut signals).await;
    let _ = pump.await;

    let code = match left {
        Left::Ended => ExitCode::of_turn(
            outcome.status,
            outcome.error.as_ref().map(|error| error.code),
        ),
        Left::TimedOut => ExitCode::TIMED_OUT,
        Left::Signalled(stop) => signal_code(stop),
        Left::NobodyReads => ExitCode::INTERNAL,
    };
    let ended = matches!(left, Left::Ended);
    let written = report(args, &session, outcome, &collected, ended);
    if !written && code == ExitCode::COMPLETED {
        output::tell("ccd: the answer could not be written");
        return ExitCode::INTERNAL.0;
    }
    code.0
}

/// Prints the end. `false`: standard output did not take it.
fn report(
    args: &RunArgs,
    session: &ClaudeSession,
    outcome: TurnOutcome,
    collected: &Mutex<Collected>,
    ended: bool,
) -> bool {
    if let Some(error) = &outcome.error {
        output::tell(&format!("ccd: {error}"));
    }
    if let Some(returned) = &outcome.returned {
        output::tell(&format!(
            "ccd: the prompt came back: {}",
            output::printable(returned)
        ));
    }
    let collected = std::mem::take(&mut *lock(collected));
    let debug = session.debug();
    if let Some(lacking) = &debug.trace_error {
        output::tell(&format!("ccd: {lacking}"));
    }
    let result = collected.result(outcome, debug.session);
    match args.output_format {
        OutputFormat::Text if !result.is_error && ended => output::line(&result.result),
        OutputFormat::Text => {
            if !result.result.is_empty() {
                output::tell(&result.result);
            }
            true
        }
        OutputFormat::Json | OutputFormat::Events => output::result(&result),
    }
}

/// Waits for what `--until` names, a signal, the time limit, or a reader that went away.
async fn wait(
    args: &RunArgs,
    session: &ClaudeSession,
    turn: &Turn,
    signals: &mut Signals,
    reader: oneshot::Receiver<ReaderGone>,
) -> Left {
    let ended = async {
        turn.done().await;
        if args.until == Until::Quiescent {
            session.quiescent().await;
        }
    };
    let limit = async {
        match args.timeout {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let reader_gone = async {
        if reader.await.is_err() {
            // The events ended in good order; the end of the turn decides.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = ended => Left::Ended,
        stop = signals.next() => Left::Signalled(stop),
        () = limit => {
            tokio::select! {
                // However the interrupt ends: the time is over, and the turn's outcome says what is known.
                _ = session.interrupt() => Left::TimedOut,
                stop = signals.next() => Left::Signalled(stop),
            }
        }
        () = reader_gone => Left::NobodyReads,
    }
}

/// Closes the session; a signal meanwhile kills it. Gives the turn's outcome.
async fn close(
    session: &ClaudeSession,
    turn: &Turn,
    left: &Left,
    signals: &mut Signals,
) -> TurnOutcome {
    let orderly = async {
        if matches!(left, Left::Signalled(_)) {
            let _ = session.interrupt().await;
        }
        session.close().await
    };
    tokio::select! {
        _ = orderly => {}
        _ = signals.next() => { session.close_with(Close::Kill).await; }
    }
    turn.done().await
}

/// Nobody reads standard output any more.
struct ReaderGone;

/// Reads every event: prints, tells and collects. Ends with the session, or when nobody reads.
fn pump(
    args: &RunArgs,
    mut events: EventStream,
    collected: Arc<Mutex<Collected>>,
) -> (JoinHandle<()>, oneshot::Receiver<ReaderGone>) {
    let print = args.output_format == OutputFormat::Events;
    let progress = Progress {
        terminal: std::io::stderr().is_terminal(),
    };
    let (gone, reader) = oneshot::channel();
    let task = tokio::spawn(async move {
        while let Some(event) = events.next().await {
            lock(&collected).event(&event);
            progress.event(&event);
            if print && !output::event(&event) {
                let _ = gone.send(ReaderGone);
                return;
            }
        }
    });
    (task, reader)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
