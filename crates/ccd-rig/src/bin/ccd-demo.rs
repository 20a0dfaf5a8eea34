//! The main job in one minute: the real Claude Code answers a prompt, uses a tool after a permission answered from code,
//! and closes cleanly, against the fake service on loopback.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use ccd_api::{
    ClaudeSession, Event, EventKind, PermissionDecision, PermissionRequest, Permissions,
    TurnOutcome,
};
use ccd_rig::{
    driven::{Driven, DrivenError},
    service::{Block, Reply, Scenario},
};

const COMMAND: &str = "touch proof.txt && echo made proof.txt";

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(demo()),
        Err(error) => {
            eprintln!("demo: {error}");
            return ExitCode::FAILURE;
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn scenario() -> Scenario {
    Scenario::new()
        .reply(Reply::blocks([Block::text_deltas([
            "Hello from the model,\n",
            "line by line.\n",
        ])
        .gap(80)]))
        .reply(Reply::blocks([
            Block::text("I will make a file.\n"),
            Block::bash(COMMAND),
        ]))
        .reply(Reply::text("The file is there."))
}

async fn demo() -> Result<(), DrivenError> {
    let driven = Driven::new(scenario())?;
    println!("Starting the real Claude Code in a private tmux server …");
    let session = driven.start(Permissions::ask(answer)).await?;
    let state = session.state();
    println!(
        "Ready: Claude Code {}, session {}. A terminal may watch it: {}",
        state.claude_version.as_deref().unwrap_or("?"),
        state.session_id,
        session.debug().attach
    );

    let first = prompt(&session, "Say hello.").await?;
    let second = prompt(&session, "Make a file called proof.txt.").await?;
    let made = driven.rig().cwd().join("proof.txt").is_file();
    let exit = session.close().await;
    println!("Closed: {}", exit.reason);

    let replayed = driven.replay()?;
    driven.finish()?;
    println!();
    println!("Summary");
    summary("1", &first);
    summary("2", &second);
    println!("  the tool ran after the permission: {}", yes(made));
    println!("  traces replayed without a difference: {replayed}");
    println!("  processes, sockets and files left: 0");
    let well = first.completed() && second.completed() && made && exit.clean;
    if well {
        Ok(())
    } else {
        Err(DrivenError::Left {
            left: vec!["something undone: see the summary".into()],
        })
    }
}

async fn answer(request: PermissionRequest) -> PermissionDecision {
    let allowed = request
        .tool_input
        .get("command")
        .and_then(|command| command.as_str())
        == Some(COMMAND);
    println!(
        "  ? {} asks: {} -> {}",
        request.tool_name,
        request.tool_input,
        if allowed { "allow" } else { "deny" }
    );
    if allowed {
        PermissionDecision::allow()
    } else {
        PermissionDecision::deny("not in this demo")
    }
}

async fn prompt(session: &ClaudeSession, text: &str) -> Result<TurnOutcome, DrivenError> {
    println!("\n> {text}");
    let mut turn = session.send(text).await?;
    while let Some(event) = turn.next().await {
        show(&event);
    }
    Ok(turn.done().await)
}

fn show(event: &Event) {
    let text = match &event.kind {
        EventKind::TurnSubmitted { .. } => "receipt: the exact text was acknowledged".to_owned(),
        EventKind::ToolProposed { name, input, .. } => format!("tool proposed: {name} {input}"),
        EventKind::ToolStarted { name, .. } => format!("tool started: {name}"),
        EventKind::ToolEnded { name, result, .. } => {
            format!("tool ended: {name} {:?}", result.status)
        }
        EventKind::MessageDelta { text, .. } => format!("text: {}", text.trim_end()),
        EventKind::PermissionResolved {
            tool_name,
            resolution,
            ..
        } => {
            format!("permission for {tool_name}: {resolution:?}")
        }
        EventKind::TurnEnded { status, .. } => format!("turn ended: {status:?}"),
        kind => serde_json::to_value(kind)
            .ok()
            .and_then(|value| {
                value
                    .get("type")
                    .and_then(|name| name.as_str())
                    .map(str::to_owned)
            })
            .unwrap_or_default(),
    };
    println!("  {:>6} ms  {text}", event.at_ms);
}

fn summary(number: &str, outcome: &TurnOutcome) {
    println!(
        "  turn {number}: {:?}, {} ms, {} tool runs, answer {:?}",
        outcome.status,
        outcome.duration_ms,
        outcome.tools.len(),
        outcome.text
    );
}

const fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}
