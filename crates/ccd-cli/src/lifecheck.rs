//! `ccd lifecheck`: which sessions are recorded, whose owner is gone, and cleaning what those left.

use ccd_runtime::{ReapedSession, RecordedSession, RecordsError, list_sessions, reap};
use serde_json::json;

use crate::{args::LifecheckArgs, output};

/// Runs the command and gives the exit code: 0 in order, 8 when orphans are left, 3 when the state directory cannot be used.
pub(crate) async fn lifecheck(args: LifecheckArgs) -> u8 {
    match check(&args).await {
        Ok(code) => code,
        Err(error) => {
            let fix = error.fix.map(|fix| format!(" ({fix})")).unwrap_or_default();
            output::tell(&format!("ccd: {}{fix}", error.message));
            3
        }
    }
}

async fn check(args: &LifecheckArgs) -> Result<u8, RecordsError> {
    let reaped = if args.reap {
        reap(None).await?
    } else {
        Vec::new()
    };
    let sessions = list_sessions(None)?;
    let orphans = sessions.iter().any(|session| !session.owner_alive);
    if args.json {
        let object = json!({
            "sessions": sessions.iter().map(session_json).collect::<Vec<_>>(),
            "reaped": reaped.iter().map(reaped_json).collect::<Vec<_>>(),
        });
        output::line(&object.to_string());
    } else {
        print(&sessions, &reaped);
    }
    Ok(if orphans { 8 } else { 0 })
}

fn print(sessions: &[RecordedSession], reaped: &[ReapedSession]) {
    for found in reaped {
        let dir = if found.dir_removed {
            ", removed its directory"
        } else {
            ""
        };
        output::line(&format!(
            "reaped {}: killed {}{dir}",
            found.session.session, found.killed
        ));
    }
    for session in sessions {
        let state = if session.owner_alive {
            "live"
        } else {
            "orphaned"
        };
        output::line(&format!(
            "{state} {} owner {} in {}",
            session.session, session.owner_pid, session.cwd
        ));
    }
    if sessions.is_empty() && reaped.is_empty() {
        output::line("no sessions");
    }
}

fn session_json(session: &RecordedSession) -> serde_json::Value {
    json!({
        "state": if session.owner_alive { "live" } else { "orphaned" },
        "ccd_session": session.session,
        "session_id": session.claude_session,
        "owner_pid": session.owner_pid,
        "cwd": session.cwd,
        "runtime_dir": session.runtime_dir,
        "started_ms": session.started_ms,
    })
}

fn reaped_json(found: &ReapedSession) -> serde_json::Value {
    json!({ "ccd_session": found.session.session, "killed": found.killed, "dir_removed": found.dir_removed })
}
