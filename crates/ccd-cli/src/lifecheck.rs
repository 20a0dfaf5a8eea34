//! `ccd lifecheck`: which sessions are recorded, whose owner is gone, and cleaning what those left.

use ccd_runtime::{ReapedSession, RecordedSession, RecordsError, list_sessions, reap};
use serde_json::json;

use crate::{args::LifecheckArgs, output};

/// Runs the command and gives the exit code: 0 in order, 8 when orphans are left, 3 when the state directory cannot be used, 1 when
/// standard output did not take the report.
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
    let lines = if args.json {
        let object = json!({
            "sessions": sessions.iter().map(session_json).collect::<Vec<_>>(),
            "reaped": reaped.iter().map(reaped_json).collect::<Vec<_>>(),
        });
        vec![object.to_string()]
    } else {
        readable(&sessions, &reaped)
    };
    if !lines.iter().all(|line| output::line(line)) {
        output::tell("ccd: the report could not be written");
        return Ok(1);
    }
    Ok(if orphans { 8 } else { 0 })
}

fn readable(sessions: &[RecordedSession], reaped: &[ReapedSession]) -> Vec<String> {
    let mut lines = Vec::new();
    for found in reaped {
        let dir = if found.dir_removed {
            ", removed its directory"
        } else {
            ""
        };
        lines.push(format!(
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
        lines.push(format!(
            "{state} {} owner {} in {}",
            session.session, session.owner_pid, session.cwd
        ));
    }
    if sessions.is_empty() && reaped.is_empty() {
        lines.push("no sessions".to_owned());
    }
    lines
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
