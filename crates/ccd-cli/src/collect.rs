//! What one run adds up to: denials, turns, and the result object.

use std::collections::BTreeMap;

use ccd_api::{
    Error, Event, EventKind, Json, PermissionDecision, PermissionDenial, PermissionId, RunResult,
    TurnId, TurnOutcome, TurnStatus,
};

/// Gathers while events pass by.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    requests: BTreeMap<PermissionId, (Option<String>, Json)>,
    pub(crate) denials: Vec<PermissionDenial>,
    pub(crate) turns: u32,
    pub(crate) session_id: Option<String>,
    /// Text of the last turn that Claude ran by itself after the prompt's own: a background task's report.
    pub(crate) follow_up: Option<String>,
    own_turn: Option<TurnId>,
}

impl Collected {
    /// Names the turn of the prompt.
    pub(crate) fn own_turn(&mut self, turn: TurnId) {
        self.own_turn = Some(turn);
    }

    /// Takes one event into account.
    pub(crate) fn event(&mut self, event: &Event) {
        match &event.kind {
            EventKind::SessionReady { session_id, .. } => {
                self.session_id = Some(session_id.clone())
            }
            EventKind::TurnStarted { .. } => self.turns += 1,
            EventKind::TurnEnded {
                turn,
                status: TurnStatus::Completed,
                text,
                ..
            } if self.own_turn.as_ref().is_some_and(|own| own != turn) => {
                self.follow_up = Some(text.clone());
            }
            EventKind::PermissionRequested {
                permission,
                tool_input,
                tool_use_id,
                ..
            } => {
                self.requests.insert(
                    permission.clone(),
                    (tool_use_id.clone(), tool_input.clone()),
                );
            }
            EventKind::PermissionResolved {
                permission,
                tool_name,
                decision: Some(PermissionDecision::Deny { .. }),
                ..
            } => {
                let (tool_use_id, tool_input) =
                    self.requests.remove(permission).unwrap_or_default();
                self.denials.push(PermissionDenial {
                    tool_name: tool_name.clone(),
                    tool_use_id,
                    tool_input,
                });
            }
            _ => {}
        }
    }

    /// The result of an ended turn.
    pub(crate) fn result(self, outcome: TurnOutcome, ccd_session: String) -> RunResult {
        let completed = outcome.completed();
        RunResult {
            kind: "result".into(),
            subtype: if completed {
                "success".into()
            } else {
                format!("error_{}", word(outcome.status))
            },
            is_error: !completed,
            status: outcome.status,
            result: self.follow_up.filter(|_| completed).unwrap_or(outcome.text),
            session_id: self.session_id,
            ccd_session: Some(ccd_session),
            turn: Some(outcome.turn),
            num_turns: self.turns,
            duration_ms: outcome.duration_ms,
            permission_denials: self.denials,
            tools: outcome.tools,
            usage: outcome.usage,
            total_cost_usd: None,
            error: outcome.error,
        }
    }
}

/// The result of a run that never had a turn.
pub(crate) fn failed(error: Error) -> RunResult {
    RunResult {
        kind: "result".into(),
        subtype: "error_not_submitted".into(),
        is_error: true,
        status: TurnStatus::NotSubmitted,
        result: String::new(),
        session_id: None,
        ccd_session: None,
        turn: None,
        num_turns: 0,
        duration_ms: 0,
        permission_denials: Vec::new(),
        tools: Vec::new(),
        usage: None,
        total_cost_usd: None,
        error: Some(error),
    }
}

fn word(status: TurnStatus) -> String {
    serde_json::to_value(status)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}
