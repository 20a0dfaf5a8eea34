//! The answers: one handler for every hook call.
//!
//! What lives here: authentication, size, and which answer each kind of event gets. What never does: field names of one
//! version, or waiting on the session loop except for a held permission.

use std::sync::Arc;

use axum::{
    Router,
    body::{Body, Bytes, HttpBody as _, to_bytes},
    extract::{ConnectInfo, Path, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::map_response,
    response::Response,
    routing::post,
};
use ccd_model::ids::HoldId;
use ccd_ports::raw::Raw;
use subtle::ConstantTimeEq as _;

use super::{
    deny,
    listen::Peer,
    payload::Fields,
    shared::{Call, Record, Shared, fill},
};

/// Header with the session's secret.
const TOKEN: &str = "x-ccd-token";
/// Header in which the forwarder names Claude's pid.
const CLAUDE_PID: &str = "x-ccd-claude-pid";

/// Longest body, bytes.
const MAX_BODY: usize = ccd_helper::MAX_BODY;

/// Longest name of an event, bytes.
const MAX_EVENT: usize = 64;

/// A tool call waits this long for the submission in flight, milliseconds.
const TOOL_WAIT_MS: u64 = 1_000;

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/h/{event}", post(receive))
        // A kept connection would break under a call after our death; a new one reaches who listens then.
        .layer(map_response(async |mut response: Response| {
            response
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
            response
        }))
        .with_state(shared)
}

async fn receive(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path(event): Path<String>,
    request: Request,
) -> Response {
    if !peer.own_user() && !knows_token(request.headers(), &shared.token) {
        return status(StatusCode::FORBIDDEN);
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if event.is_empty() || event.len() > MAX_EVENT || !event.bytes().all(plain) {
        return status(StatusCode::NOT_FOUND);
    }
    let claude_pid = number(request.headers(), CLAUDE_PID);
    let announced = request.body().size_hint().lower();
    if announced > MAX_BODY as u64 {
        return status(StatusCode::PAYLOAD_TOO_LARGE);
    }
    // A body that ends with its connection fails here too; nobody reads that answer.
    let Ok(body) = to_bytes(request.into_body(), MAX_BODY).await else {
        return status(StatusCode::PAYLOAD_TOO_LARGE);
    };
    peer.request_complete();
    let call = Call {
        event: event.into(),
        hold: None,
        verdict: None,
        denied_by: None,
        claude_pid,
        body,
    };
    if *call.event == *shared.replies.permission_event {
        permission(shared, call).await
    } else if *call.event == *shared.replies.prompt_event {
        prompt(&shared, call)
    } else if *call.event == *shared.replies.tool_event {
        tool(&shared, call).await
    } else {
        shared.record(shared.clock.now(), Record::Call(call));
        no_opinion()
    }
}

fn prompt(shared: &Shared, mut call: Call) -> Response {
    let ruling = shared.rule(|| {
        Fields::parse(&String::from_utf8_lossy(&call.body))?.text(&shared.replies.prompt_field)
    });
    call.verdict = Some(ruling.verdict);
    shared.record(shared.clock.now(), Record::Call(call));
    if ruling.block {
        json(shared.replies.block_prompt.clone())
    } else {
        no_opinion()
    }
}

async fn tool(shared: &Shared, mut call: Call) -> Response {
    let at = shared.clock.now();
    let denial = deny::judge(&shared.deny, &String::from_utf8_lossy(&call.body));
    call.denied_by = denial.as_ref().map(|denial| denial.rule.as_str().into());
    shared.record(at, Record::Call(call));
    if let Some(denial) = denial {
        return json(fill(&shared.replies.deny_tool, "{reason}", &denial.reason));
    }
    // While a submission is in flight no dialog may open under its Enter key.
    tokio::select! {
        biased;
        () = shared.unarmed() => {}
        () = shared.clock.sleep_until(at.after(TOOL_WAIT_MS)) => {}
    }
    no_opinion()
}

async fn permission(shared: Arc<Shared>, mut call: Call) -> Response {
    let at = shared.clock.now();
    let Some(mut held) = shared.hold() else {
        shared.record(at, Record::Call(call));
        return json(shared.denial_at_end());
    };
    call.hold = Some(held.hold);
    shared.record(at, Record::Call(call));
    // Armed until there is an answer: the future is dropped when the caller goes away.
    let watch = GoneWatch {
        shared: &shared,
        hold: held.hold,
    };
    let deadline = shared
        .clock
        .sleep_until(at.after(shared.permission_deadline_ms));
    let answer = tokio::select! {
        biased;
        answer = &mut held.answer => answer.ok(),
        () = deadline => None,
    };
    let answer = match answer {
        Some(answer) => answer,
        None if shared.take(held.hold) => {
            let expired = Raw::HookExpired { hold: held.hold };
            shared.record(shared.clock.now(), Record::Other(expired));
            shared.denial_at_deadline()
        }
        // Somebody answered at the same moment.
        None => held.answer.await.unwrap_or_else(|_| shared.denial_at_end()),
    };
    drop(watch);
    json(answer)
}

/// Reports a held request whose caller went away.
struct GoneWatch<'a> {
    shared: &'a Shared,
    hold: HoldId,
}

impl Drop for GoneWatch<'_> {
    fn drop(&mut self) {
        // After an answer the hold is not open any more.
        if self.shared.take(self.hold) {
            let gone = Raw::HookGone { hold: self.hold };
            self.shared
                .record(self.shared.clock.now(), Record::Other(gone));
        }
    }
}

fn knows_token(headers: &HeaderMap, token: &str) -> bool {
    let mut given = headers.get_all(TOKEN).iter();
    match (given.next(), given.next()) {
        (Some(given), None) => bool::from(given.as_bytes().ct_eq(token.as_bytes())),
        _ => false,
    }
}

fn number(headers: &HeaderMap, name: &str) -> Option<u32> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

fn no_opinion() -> Response {
    status(StatusCode::OK)
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn json(text: String) -> Response {
    let mut response = Response::new(Body::from(Bytes::from(text)));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
