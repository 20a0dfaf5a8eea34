//! One connection: requests are read, logged, answered, one after the other.
//!
//! What lives here: the way from a request to the actions of its reply. What never does: accepting connections.

use super::classify::{self, RequestClass};
use super::clock::Stamp;
use super::http::{Conn, RawRequest, ReadEnd};
use super::log::{ConnectionRecord, Exchange, Outcome, Picked, Request};
use super::plan::{self, Action};
use super::play::{self, After, Setting};
use super::reply::{Reply, ReplyBody};
use super::router::{self, Route};
use super::shared::{Shared, State};
use super::sse::{self, Identity};
use super::transport::Transport;
use serde_json::{Value, json};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Serves a connection until either side ends it.
pub(super) async fn serve<T: Transport>(io: T, id: u64, shared: Arc<Shared>) {
    let opened = Stamp::now();
    shared.update(|state| {
        state.log.connections.push(ConnectionRecord {
            id,
            opened,
            closed: None,
            requests: 0,
            fault: None,
        });
    });
    let mut conn = Conn::new(io);
    let mut served = 0;
    let after = loop {
        let raw = match conn.read_request().await {
            Ok(raw) => raw,
            Err(end) => {
                if !matches!(end, ReadEnd::Idle) {
                    connection(&shared, id, |record| record.fault = Some(end.to_string()));
                }
                break After::Close;
            }
        };
        let after = answer(&mut conn, raw, (id, served), &shared).await;
        served += 1;
        if after != After::KeepAlive {
            break after;
        }
    };
    match after {
        After::Reset => conn.reset(),
        After::KeepAlive | After::Close => conn.finish().await,
    }
    let closed = Stamp::now();
    connection(&shared, id, |record| record.closed = Some(closed));
}

fn connection(shared: &Shared, id: u64, change: impl FnOnce(&mut ConnectionRecord)) {
    shared.update(|state| {
        let found = state.log.connections.iter_mut().rfind(|one| one.id == id);
        if let Some(record) = found {
            change(record);
        }
    });
}

/// A request that is in the log, and the reply that was picked for it.
struct Logged {
    request: Arc<Request>,
    picked: Option<(Picked, Reply)>,
    fixed: Option<(u16, Value)>,
    request_id: String,
    message_id: String,
}

async fn answer<T: Transport>(
    conn: &mut Conn<T>,
    raw: RawRequest,
    place: (u64, usize),
    shared: &Shared,
) -> After {
    let head_only = raw.method == "HEAD";
    let logged = log_and_pick(raw, place, shared);
    let request = &logged.request;
    let mut headers = vec![("request-id".to_owned(), logged.request_id.clone())];
    let (actions, drip, close) = match (&logged.picked, &logged.fixed) {
        (Some((_, reply)), _) => {
            let limits = reply
                .limits
                .clone()
                .unwrap_or_else(|| shared.read(|state| state.script.scenario().limits.clone()));
            headers.extend(limits.headers(request.received.unix_seconds()));
            headers.extend(reply.headers.iter().cloned());
            let drip = match &reply.body {
                ReplyBody::Message(message) => message.drip,
                ReplyBody::Error(_) | ReplyBody::Raw(_) => None,
            };
            (actions(reply, &logged, shared), drip, reply.close)
        }
        (None, Some((status, body))) => (fixed(*status, body), None, false),
        (None, None) => {
            let message = format!("{} {} is not scripted", request.method, request.path);
            let body = sse::error_body("not_found_error", &message, &logged.request_id);
            (fixed(404, &body), None, false)
        }
    };
    let asked_to_close = request
        .header("connection")
        .is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let setting = Setting {
        shared,
        position: request.position,
        headers,
        drip,
        close: close || asked_to_close,
        head_only,
        received: request.received,
    };
    play::play(conn, &setting, actions).await
}

fn fixed(status: u16, body: &Value) -> Vec<Action> {
    let reply = Reply::text("");
    plan::with_body(
        &reply,
        status,
        "application/json",
        body.to_string().as_bytes(),
        &[],
    )
}

fn actions(reply: &Reply, logged: &Logged, shared: &Shared) -> Vec<Action> {
    let request_id = &logged.request_id;
    match &reply.body {
        ReplyBody::Message(message) => {
            let body = &logged.request.body;
            let identity = Identity {
                message_id: logged.message_id.clone(),
                model: message.model.clone().unwrap_or_else(|| {
                    body["model"]
                        .as_str()
                        .unwrap_or("claude-unknown")
                        .to_owned()
                }),
                usage: message
                    .usage
                    .unwrap_or_else(|| shared.read(|state| state.script.scenario().usage)),
                verdicts_asked: body.get("safeguards").is_some(),
                tool_ids: message
                    .blocks
                    .iter()
                    .map(|_| shared.new_id("toolu_"))
                    .collect(),
            };
            if logged.request.wants_stream() {
                plan::stream(reply, message, &identity)
            } else {
                plan::single(reply, message, &identity, request_id)
            }
        }
        ReplyBody::Error(error) => {
            let body = sse::error_body(&error.kind, &error.message, request_id).to_string();
            plan::with_body(
                reply,
                error.status,
                "application/json",
                body.as_bytes(),
                &[],
            )
        }
        ReplyBody::Raw(raw) => plan::with_body(
            reply,
            raw.status,
            &raw.content_type,
            raw.body.as_bytes(),
            &[],
        ),
    }
}

fn log_and_pick(raw: RawRequest, place: (u64, usize), shared: &Shared) -> Logged {
    let mut request = parse(raw, place);
    let route = shared.read(|state| {
        router::route(
            &request.host,
            &request.method,
            request.route(),
            &state.script.scenario().endpoints,
            request.received.unix_seconds(),
        )
    });
    request.class = match &route {
        Route::Messages => classify::classify(&request.body, |name| request.header(name)),
        _ if request.route() == "/v1/messages/count_tokens" => RequestClass::CountTokens,
        Route::Fixed { .. } | Route::NotFound => RequestClass::Endpoint,
    };
    request.sameness = sameness(&request);
    let handled = shared
        .handler
        .as_ref()
        .and_then(|handler| handler(&request));
    let request_id = shared.new_id("req_");
    let new_message_id = shared.new_id("msg_");
    shared.update(|state| {
        request.position = state.log.requests.len();
        request.attempt = if matches!(route, Route::Messages) {
            let same = |earlier: &&Arc<Request>| earlier.sameness == request.sameness;
            state.log.requests.iter().filter(same).count()
        } else {
            0
        };
        let request = Arc::new(request);
        let picked = match handled {
            Some(reply) => Some((Picked::Handler, reply)),
            None => state.script.pick(&request),
        };
        let message_id = match picked.as_ref().map(|(_, reply)| &reply.body) {
            Some(ReplyBody::Message(message)) => Some(message.id.clone().unwrap_or(new_message_id)),
            Some(ReplyBody::Error(_) | ReplyBody::Raw(_)) | None => None,
        };
        remember(
            state,
            &request,
            picked.as_ref(),
            &request_id,
            message_id.as_ref(),
        );
        Logged {
            request,
            picked,
            fixed: match route {
                Route::Fixed { status, body } => Some((status, body)),
                Route::Messages | Route::NotFound => None,
            },
            request_id,
            message_id: message_id.unwrap_or_default(),
        }
    })
}

fn remember(
    state: &mut State,
    request: &Arc<Request>,
    picked: Option<&(Picked, Reply)>,
    request_id: &str,
    message_id: Option<&String>,
) {
    let keep = state.script.scenario().keep_bodies;
    let log = &mut state.log;
    log.requests.push(Arc::clone(request));
    log.exchanges.push(Exchange {
        request: Arc::clone(request),
        picked: picked.map_or(Picked::Endpoint, |(picked, _)| *picked),
        status: None,
        request_id: request_id.to_owned(),
        message_id: message_id.cloned(),
        first_byte: None,
        last_event: None,
        finished: None,
        events: 0,
        outcome: Outcome::Open,
    });
    if let Some(connection) = log
        .connections
        .iter_mut()
        .rfind(|one| one.id == request.connection)
    {
        connection.requests += 1;
    }
    if let Some(old) = log.requests.len().checked_sub(keep.saturating_add(1)) {
        let light = log.requests.get(old).map(|request| {
            let mut light = Request {
                body: Value::Null,
                human_texts: Vec::new(),
                ..request.as_ref().clone()
            };
            light
                .human_texts
                .extend(request.human_texts.last().cloned());
            Arc::new(light)
        });
        if let (Some(light), Some(request), Some(exchange)) =
            (light, log.requests.get_mut(old), log.exchanges.get_mut(old))
        {
            exchange.request = Arc::clone(&light);
            *request = light;
        }
    }
}

fn parse(raw: RawRequest, (connection, position_on_connection): (u64, usize)) -> Request {
    let received = Stamp::now();
    let (authority, path) = router::split_target(&raw.target);
    let host = authority
        .or_else(|| raw.header("host"))
        .map(router::without_port)
        .unwrap_or_default()
        .to_owned();
    let body: Value = serde_json::from_slice(&raw.body).unwrap_or(Value::Null);
    Request {
        position: 0,
        connection,
        position_on_connection,
        attempt: 0,
        received,
        method: raw.method,
        host,
        path: path.to_owned(),
        headers: raw.headers,
        body_bytes: raw.body.len(),
        class: RequestClass::Endpoint,
        human_texts: classify::human_texts(&body),
        body,
        sameness: 0,
    }
}

fn sameness(request: &Request) -> u64 {
    let mut hasher = DefaultHasher::new();
    request.class.hash(&mut hasher);
    request.session_id().hash(&mut hasher);
    json!(request.body["messages"])
        .to_string()
        .hash(&mut hasher);
    hasher.finish()
}
