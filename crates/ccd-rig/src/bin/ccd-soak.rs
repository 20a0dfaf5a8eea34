//! Long runs of the real Claude Code against the fake service: every prompt is counted, and what is left is counted.
//! Figures go to standard output, progress to standard error; the exit code is 0 only if nothing is missing or left.
#![forbid(unsafe_code)]

use std::{process::ExitCode, time::Duration};

use ccd_api::{ClaudeSession, Permissions, TurnOutcome};
use ccd_rig::{
    driven::{Driven, DrivenError},
    rig::RigError,
    service::Scenario,
};

const USAGE: &str =
    "usage: ccd-soak prompts N\n  N prompts in one session, then 10 sessions one after another";

/// Sessions one after another.
const SESSIONS: u32 = 10;

/// Prompts between two lines of progress.
const PROGRESS_EVERY: u32 = 10;

/// For one prompt from acceptance to the end of its turn, and for one close.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let prompts = match words[..] {
        ["prompts", number] => number.parse::<u32>().ok().filter(|number| *number > 0),
        _ => None,
    };
    let Some(prompts) = prompts else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let passed = match runtime {
        Ok(runtime) => runtime.block_on(soak(prompts)),
        Err(error) => Err(error.to_string()),
    };
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("ccd-soak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs everything and prints the figures. `true`: nothing is missing and nothing is left.
async fn soak(prompts: u32) -> Result<bool, String> {
    // Only the latest bodies are kept: each carries the whole conversation.
    let scenario = Scenario {
        keep_bodies: 2,
        ..Scenario::new()
    };
    let driven = Driven::new(scenario).map_err(|error| error.to_string())?;
    let receipts = one_session(&driven, prompts)
        .await
        .map_err(|error| error.to_string())?;
    let mut sessions = 0;
    for number in 1..=SESSIONS {
        match one_session(&driven, 1).await {
            Ok(done) => sessions += done,
            Err(error) => eprintln!("session {number}: {error}"),
        }
        eprintln!("session {number} of {SESSIONS}");
    }
    let leaks = leaks(driven)?;
    println!("receipts {receipts}/{prompts}");
    println!("sessions {sessions}/{SESSIONS}");
    println!("leaks {leaks}");
    Ok(receipts == prompts && sessions == SESSIONS && leaks == 0)
}

/// Sends prompts one after another and closes. Gives how many arrived exactly, were acknowledged, and completed.
async fn one_session(driven: &Driven, prompts: u32) -> Result<u32, DrivenError> {
    let session = driven.start(Permissions::Deny).await?;
    let mut receipts = 0;
    for number in 1..=prompts {
        let before = driven.rig().service().main_requests().len();
        let text = format!("prompt {number} of {prompts}: ö 漢 👍\n\tsecond line");
        match prompt(&session, &text).await {
            Ok(()) => {
                let received = driven.rig().service().main_requests();
                let arrived = received.get(before..).unwrap_or_default();
                match arrived {
                    [request] if request.last_user_text() == Some(&text) => receipts += 1,
                    _ => eprintln!(
                        "prompt {number}: the service got {} requests, or another text",
                        arrived.len()
                    ),
                }
            }
            Err(why) => eprintln!("prompt {number}: {why}"),
        }
        if number % PROGRESS_EVERY == 0 {
            eprintln!("prompt {number} of {prompts}");
        }
    }
    match tokio::time::timeout(PATIENCE, session.close()).await {
        Ok(exit) if exit.clean => {}
        Ok(exit) => eprintln!("the close was not clean: {}", exit.reason),
        Err(_) => eprintln!("the close took more than {PATIENCE:?}"),
    }
    Ok(receipts)
}

async fn prompt(session: &ClaudeSession, text: &str) -> Result<(), String> {
    let run = async {
        let turn = session
            .send(text)
            .await
            .map_err(|error| error.to_string())?;
        let outcome = turn.done().await;
        if turn.submitted().await && outcome.completed() {
            Ok(())
        } else {
            Err(told(&outcome))
        }
    };
    match tokio::time::timeout(PATIENCE, run).await {
        Ok(done) => done,
        Err(_) => Err(format!("not done within {PATIENCE:?}")),
    }
}

fn told(outcome: &TurnOutcome) -> String {
    let error = outcome
        .error
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    format!("{:?} {error}", outcome.status)
}

/// Ends the rig and counts what is left of its sessions.
fn leaks(driven: Driven) -> Result<usize, String> {
    match driven.finish() {
        Ok(_) => Ok(0),
        Err(DrivenError::Left { left }) => {
            left.iter().for_each(|what| eprintln!("left: {what}"));
            Ok(left.len())
        }
        Err(DrivenError::Rig(RigError::Survived(survived))) => {
            eprintln!("{survived}");
            Ok(survived.survivors.len())
        }
        Err(error) => Err(error.to_string()),
    }
}
