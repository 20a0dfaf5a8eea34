//! The fake service as a client on the wire sees it: event shapes, faults at their exact points, gates, and the log.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod http_client;

use ccd_rig::service::{
    Block, ClientEnd, LimitClaim, Matcher, Message, Outcome, Picked, Point, Queue, RateLimits,
    RawResponse, Reply, ReplyBody, RequestClass, Scenario, Scripted, Service, ServiceError,
    SideKind, Step, StopReason, ToolCall, Verdicts,
};
use http_client::{Client, End, Event, PATIENCE, main_body, names, text_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

fn service(replies: impl IntoIterator<Item = Reply>) -> Service {
    Service::start(Scenario::of(replies)).unwrap()
}

async fn ask(service: &Service, text: &str) -> (Vec<Event>, End) {
    let mut client = Client::connect(service.address()).await;
    client.prompt(text).await;
    assert_eq!(client.head().await.unwrap().status, 200);
    client.events().await
}

const TEXT_EVENTS: [&str; 8] = [
    "message_start",
    "ping",
    "content_block_start",
    "content_block_delta",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

#[tokio::test]
async fn a_text_streams_in_the_shape_of_the_api() {
    let service = service([Reply::text("Hello there")]);
    let mut client = Client::connect(service.address()).await;
    client.prompt("hi").await;
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 200);
    assert_eq!(
        head.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(head.header("transfer-encoding"), Some("chunked"));
    assert_eq!(
        head.header("anthropic-ratelimit-unified-status"),
        Some("allowed")
    );
    let request_id = head.header("request-id").unwrap().to_owned();
    assert!(request_id.starts_with("req_"));
    let (events, end) = client.events().await;
    assert_eq!(end, End::Complete);
    assert_eq!(names(&events), TEXT_EVENTS);
    let message_id = events[0].data["message"]["id"].as_str().unwrap().to_owned();
    assert!(message_id.starts_with("msg_"));
    let data: Vec<Value> = events.into_iter().map(|event| event.data).collect();
    assert_eq!(
        data,
        [
            json!({"type":"message_start","message":{"id":message_id,"type":"message","role":"assistant",
                "model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,
                "usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,
                "output_tokens":1}}}),
            json!({"type":"ping"}),
            json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello "}}),
            json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"there"}}),
            json!({"type":"content_block_stop","index":0}),
            json!({"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},
                "usage":{"output_tokens":20}}),
            json!({"type":"message_stop"}),
        ]
    );
    let exchange = service.wait_for_end(0, PATIENCE).unwrap();
    assert_eq!(exchange.request_id, request_id);
    assert_eq!(exchange.message_id, Some(message_id));
    let (first, last, finished) = (
        exchange.first_byte.unwrap(),
        exchange.last_event.unwrap(),
        exchange.finished.unwrap(),
    );
    assert!(exchange.request.received <= first && first <= last && last <= finished);
}

#[tokio::test]
async fn thinking_and_parallel_tools_stream_and_put_together_give_their_input() {
    let input = json!({"command": "echo \"é\"", "description": "Say it twice, and more"});
    let service = service([Reply::blocks([
        Block::thinking("let me see"),
        Block::tool("Bash", input.clone()),
        Block::tool_with_id("toolu_given", "Read", json!({"file_path": "/a"})),
    ])
    .verdicts(Verdicts::NotFlagged)]);
    let (events, end) = ask(&service, "x").await;
    assert_eq!(end, End::Complete);
    assert_eq!(
        events[2].data["content_block"],
        json!({"type":"thinking","thinking":"","signature":""})
    );
    let signature = events
        .iter()
        .find(|event| event.data["delta"]["type"] == "signature_delta")
        .unwrap();
    assert_eq!(signature.data["index"], 0);
    let starts: Vec<&Value> = events
        .iter()
        .filter(|event| event.name == "content_block_start")
        .map(|event| &event.data["content_block"])
        .collect();
    let made_up = starts[1]["id"].as_str().unwrap();
    assert!(made_up.starts_with("toolu_"));
    assert_eq!(
        *starts[1],
        json!({"type":"tool_use","id":made_up,"name":"Bash","input":{}})
    );
    assert_eq!(starts[2]["id"], "toolu_given");
    let pieces: Vec<&str> = events
        .iter()
        .filter(|event| event.data["index"] == 1)
        .filter_map(|event| event.data["delta"]["partial_json"].as_str())
        .collect();
    assert!(pieces.len() > 2, "the input comes in pieces: {pieces:?}");
    assert_eq!(
        serde_json::from_str::<Value>(&pieces.concat()).unwrap(),
        input
    );
    let end = &events[events.len() - 2].data["delta"];
    assert_eq!(end["stop_reason"], "tool_use");
    assert_eq!(
        end["safeguard_results"][0]["status"]["tool_uses"],
        json!({
            made_up: {"type":"evaluated","outcome":"not_flagged"},
            "toolu_given": {"type":"evaluated","outcome":"not_flagged"}
        })
    );
}

#[tokio::test]
async fn verdicts_come_by_default_only_where_the_request_asks_for_them() {
    let service = Service::start(Scenario::new().forever(Reply::text("a"))).unwrap();
    for (asked, expected) in [(false, Value::Null), (true, json!("available"))] {
        let mut body = main_body("x", true);
        if asked {
            body["safeguards"] = json!([]);
        }
        let mut client = Client::connect(service.address()).await;
        client.post(&body).await;
        client.head().await.unwrap();
        let (events, _) = client.events().await;
        let delta = events
            .iter()
            .find(|event| event.name == "message_delta")
            .unwrap();
        assert_eq!(
            delta.data["delta"]["safeguard_results"][0]["status"]["type"],
            expected
        );
    }
}

#[tokio::test]
async fn a_request_without_stream_gets_one_json_body() {
    let service = service([Reply::blocks([
        Block::text("two words"),
        Block::bash("true"),
    ])]);
    let mut client = Client::connect(service.address()).await;
    client.post(&main_body("x", false)).await;
    let head = client.head().await.unwrap();
    assert_eq!(head.header("content-type"), Some("application/json"));
    let body = client.json(&head).await;
    assert_eq!(body["type"], "message");
    assert_eq!(body["model"], "claude-opus-5-5");
    assert_eq!(
        body["content"][0],
        json!({"type":"text","text":"two words"})
    );
    assert_eq!(body["content"][1]["input"]["command"], "true");
    assert_eq!(body["stop_reason"], "tool_use");
    assert_eq!(body["usage"]["output_tokens"], 20);
}

#[tokio::test]
async fn replies_come_in_order_on_one_connection_and_then_the_default() {
    let service = Service::start(
        Scenario::of([Reply::text("one")])
            .times(2, Reply::text("two"))
            .otherwise(Reply::text("rest")),
    )
    .unwrap();
    let mut client = Client::connect(service.address()).await;
    let mut ids = BTreeSet::new();
    for expected in ["one", "two", "two", "rest", "rest"] {
        client.prompt("x").await;
        client.head().await.unwrap();
        let (events, _) = client.events().await;
        assert_eq!(text_of(&events), expected);
        ids.insert(events[0].data["message"]["id"].to_string());
    }
    assert_eq!(ids.len(), 5, "every message has an id of its own");
    let requests = service.wait_for_main_requests(5, PATIENCE).unwrap();
    for (place, request) in requests.iter().enumerate() {
        assert_eq!(request.connection, 1);
        assert_eq!(request.position, place);
        assert_eq!(request.position_on_connection, place);
        assert_eq!(request.attempt, place, "the same messages came before");
    }
    assert_eq!(service.log().exchanges[4].picked, Picked::Otherwise);
    assert_eq!(service.unused(), []);
}

#[tokio::test]
async fn replies_bound_to_a_text_serve_parallel_conversations() {
    let service = Service::start(
        Scenario::new()
            .reply_to("beta", Reply::text("for beta"))
            .reply_when(Matcher::session("session-2"), Reply::text("for session 2"))
            .reply_to("alpha", Reply::text("for alpha"))
            .reply_to("gamma", Reply::text("never"))
            .reply_when(
                Matcher {
                    any_text: Some("early".to_owned()),
                    ..Matcher::last_message("<task-notification>")
                },
                Reply::text("for the notification"),
            ),
    )
    .unwrap();
    let (alpha, beta, other) = tokio::join!(
        ask(&service, "this is alpha"),
        ask(&service, "this is beta"),
        ask(&service, "context")
    );
    assert_eq!(text_of(&alpha.0), "for alpha");
    assert_eq!(text_of(&beta.0), "for beta");
    assert_eq!(
        text_of(&other.0),
        "ok",
        "a reminder's text is not the human's"
    );
    assert_eq!(
        service.unused(),
        [(Queue::Main, 1), (Queue::Main, 3), (Queue::Main, 4)]
    );
    let mut body = main_body("early", true);
    let notification =
        "<system-reminder><task-notification>done</task-notification></system-reminder>";
    for message in [
        json!({"role":"assistant","content":"started"}),
        json!({"role":"user","content":notification}),
    ] {
        body["messages"].as_array_mut().unwrap().push(message);
    }
    let mut client = Client::connect(service.address()).await;
    client.post(&body).await;
    client.head().await.unwrap();
    assert_eq!(text_of(&client.events().await.0), "for the notification");
    let last = service.main_requests().pop().unwrap();
    assert_eq!(last.last_user_text(), Some("early"));
}

#[tokio::test]
async fn side_requests_get_the_reply_of_their_kind_and_leave_the_queue_alone() {
    let service = Service::start(
        Scenario::of([Reply::text("main")])
            .subagent_reply(Reply::text("agent"))
            .side_reply(SideKind::Title, Reply::text(r#"{"title":"Mine"}"#)),
    )
    .unwrap();
    let mut client = Client::connect(service.address()).await;

    client
        .post(&json!({"model":"m","max_tokens":1,"messages":[{"role":"user","content":"quota"}]}))
        .await;
    let head = client.head().await.unwrap();
    assert_eq!(client.json(&head).await["type"], "message");

    for expected in ["Mine", "Scripted session"] {
        client
            .post(
                &json!({"model":"m","stream":true,"messages":[{"role":"user","content":"x"}],
                "output_config":{"format":{"schema":{"properties":{"title":{}}}}}}),
            )
            .await;
        client.head().await.unwrap();
        let text = text_of(&client.events().await.0);
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap()["title"],
            expected
        );
    }

    for (stop, expected) in [("</severity>", "<severity>5"), ("</block>", "<block>no")] {
        client
            .post(&json!({"model":"m","stop_sequences":[stop],"messages":[{"role":"user","content":"x"}],
                "system":[{"type":"text","text":"You are a security monitor for"}]}))
            .await;
        let head = client.head().await.unwrap();
        let body = client.json(&head).await;
        assert_eq!(body["content"][0]["text"], expected);
        assert_eq!(body["stop_reason"], "stop_sequence");
        assert_eq!(body["stop_sequence"], stop);
    }

    let mut agent = main_body("x", true);
    agent["system"] =
        json!([{"type":"text","text":"x-anthropic-billing-header: cc_is_subagent=true;"}]);
    client.post(&agent).await;
    client.head().await.unwrap();
    assert_eq!(text_of(&client.events().await.0), "agent");

    let (events, _) = ask(&service, "x").await;
    assert_eq!(text_of(&events), "main");
    let log = service.log();
    let classes: Vec<RequestClass> = log.requests.iter().map(|request| request.class).collect();
    assert_eq!(
        classes,
        [
            RequestClass::Side(SideKind::Quota),
            RequestClass::Side(SideKind::Title),
            RequestClass::Side(SideKind::Title),
            RequestClass::Side(SideKind::Classifier),
            RequestClass::Side(SideKind::Classifier),
            RequestClass::Subagent,
            RequestClass::Main,
        ]
    );
}

#[tokio::test]
async fn an_http_error_has_the_apis_body_and_its_headers() {
    let service = service([
        Reply::overloaded().header("retry-after", "7"),
        Reply::usage_limit(RateLimits::rejected(LimitClaim::FiveHour, 60)),
        Reply::rate_limited(),
        Reply::of(ReplyBody::Raw(RawResponse {
            status: 502,
            content_type: "text/html".to_owned(),
            body: "<h1>Bad gateway</h1>".to_owned(),
        })),
    ]);
    let mut client = Client::connect(service.address()).await;

    client.prompt("x").await;
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 529);
    assert_eq!(head.header("retry-after"), Some("7"));
    let request_id = head.header("request-id").unwrap().to_owned();
    assert_eq!(
        client.json(&head).await,
        json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":request_id})
    );

    client.prompt("x").await;
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 429);
    let header = |name: &str| head.header(name).map(str::to_owned);
    assert_eq!(
        header("anthropic-ratelimit-unified-status").unwrap(),
        "rejected"
    );
    assert_eq!(
        header("anthropic-ratelimit-unified-representative-claim").unwrap(),
        "five_hour"
    );
    let received = service.log().requests[1].received.unix_seconds();
    assert_eq!(
        header("anthropic-ratelimit-unified-reset").unwrap(),
        (received + 60).to_string()
    );
    client.body(&head).await.unwrap();

    client.prompt("x").await;
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 429);
    assert!(
        !head
            .headers
            .iter()
            .any(|(name, _)| name.starts_with("anthropic-ratelimit"))
    );
    client.body(&head).await.unwrap();

    client.prompt("x").await;
    let head = client.head().await.unwrap();
    assert_eq!(
        (head.status, head.header("content-type")),
        (502, Some("text/html"))
    );
    assert_eq!(client.body(&head).await.unwrap(), b"<h1>Bad gateway</h1>");
}

#[tokio::test]
async fn a_fault_falls_at_its_point_and_ends_the_connection_its_own_way() {
    let mid = Point::InBlock {
        block: 0,
        deltas: 2,
    };
    // Events that were written before the fault, per point; `None` = not even headers.
    let points = [
        (Point::BeforeHeaders, None),
        (Point::AfterHeaders, Some(0)),
        (Point::AfterStart, Some(2)),
        (mid, Some(5)),
        (Point::AfterBlock { block: 0 }, Some(7)),
        (Point::BeforeStop, Some(8)),
    ];
    for (step, how, outcome) in [
        (Step::Reset, End::Reset, Outcome::Reset),
        (Step::Eof, End::Complete, Outcome::Eof),
        (Step::Cut, End::Fin, Outcome::Cut),
    ] {
        for (point, written) in points {
            // The gate makes sure that the client has read all before a reset can overtake it.
            let reply = Reply::text("a b c")
                .at(point, Step::gate("read"))
                .at(point, step.clone());
            let service = service([reply]);
            let mut client = Client::connect(service.address()).await;
            client.prompt("x").await;
            let case = format!("{step:?} at {point:?}");
            match written {
                None => {
                    service.wait_for_mark("read", PATIENCE).unwrap();
                    service.release("read");
                    let expected = if how == End::Reset {
                        End::Reset
                    } else {
                        End::Fin
                    };
                    assert_eq!(client.head().await.unwrap_err(), expected, "{case}");
                }
                Some(count) => {
                    client.head().await.unwrap();
                    let mut text = Vec::new();
                    for _ in 0..count {
                        text.extend(client.chunk().await.unwrap());
                    }
                    assert_eq!(http_client::events_of(&text).len(), count, "{case}");
                    service.release("read");
                    let (rest, end) = client.events().await;
                    assert_eq!((rest, &end), (Vec::new(), &how), "{case}");
                    if end == End::Complete {
                        assert_eq!(client.wait_for_close().await, End::Fin, "{case}");
                    }
                }
            }
            let exchange = service.wait_for_end(0, PATIENCE).unwrap();
            assert_eq!(exchange.outcome, outcome, "{case}");
            assert_eq!(exchange.events, written.unwrap_or(0), "{case}");
            assert_eq!(service.disconnects().len(), 0, "{case}");
        }
    }
}

#[tokio::test]
async fn a_reset_inside_a_single_body_leaves_half_of_it() {
    let service = service([Reply::text("a b").at(
        Point::InBlock {
            block: 0,
            deltas: 1,
        },
        Step::Cut,
    )]);
    let mut client = Client::connect(service.address()).await;
    client.post(&main_body("x", false)).await;
    let head = client.head().await.unwrap();
    assert_eq!(client.body(&head).await.unwrap_err(), End::Fin);
}

#[tokio::test]
async fn an_error_event_ends_the_stream_and_keeps_the_connection() {
    let error = || Step::sse_error("overloaded_error", "Overloaded");
    let service = service([
        Reply::text("a b c").at(
            Point::InBlock {
                block: 0,
                deltas: 2,
            },
            error(),
        ),
        Reply::text("again"),
        Reply::text("a").at(Point::AfterStart, error()),
    ]);
    let mut client = Client::connect(service.address()).await;
    client.prompt("x").await;
    client.head().await.unwrap();
    let (events, end) = client.events().await;
    assert_eq!(end, End::Complete);
    assert_eq!(
        *events.last().unwrap(),
        Event {
            name: "error".to_owned(),
            data: json!({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})
        }
    );
    assert_eq!(events.len(), 6);
    client.prompt("x").await;
    client.head().await.unwrap();
    assert_eq!(text_of(&client.events().await.0), "again");
    client.post(&main_body("x", false)).await;
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 529, "without a stream it is the HTTP error");
    assert_eq!(
        client.json(&head).await["error"]["type"],
        "overloaded_error"
    );
}

#[tokio::test]
async fn a_gate_holds_a_reply_until_the_test_releases_it() {
    let mid = Point::InBlock {
        block: 0,
        deltas: 1,
    };
    let service = service([
        Reply::text("a b")
            .at(Point::BeforeHeaders, Step::mark("got it"))
            .at(mid, Step::gate("hold")),
        Reply::text("c").gate("hold"),
    ]);
    let mut client = Client::connect(service.address()).await;
    client.prompt("x").await;
    client.head().await.unwrap();
    for _ in 0..4 {
        client.chunk().await.unwrap();
    }
    let mark = service.wait_for_mark("hold", PATIENCE).unwrap();
    assert_eq!(mark.request, 0);
    assert_eq!(service.log().marked("got it"), 1);
    assert_eq!(service.log().exchanges[0].outcome, Outcome::Open);
    let nothing = service.wait_for("an end", Duration::from_millis(50), |log| {
        (log.exchanges[0].outcome != Outcome::Open).then_some(())
    });
    let failed = nothing.unwrap_err().to_string();
    assert!(
        failed.contains("an end") && failed.contains("mark hold"),
        "{failed}"
    );
    service.release("hold");
    let (events, end) = client.events().await;
    assert_eq!((text_of(&events), end), ("b".to_owned(), End::Complete));
    // A gate that is open stays open.
    client.prompt("x").await;
    client.head().await.unwrap();
    assert_eq!(text_of(&client.events().await.0), "c");
}

#[tokio::test]
async fn a_client_that_leaves_in_mid_stream_is_logged_with_its_delay() {
    for at in [
        Point::BeforeHeaders,
        Point::InBlock {
            block: 0,
            deltas: 1,
        },
    ] {
        for resets in [true, false] {
            let reply = Reply::text("a b")
                .at(at, Step::mark("stalls"))
                .at(at, Step::Stall);
            let service = service([reply]);
            let mut client = Client::connect(service.address()).await;
            client.prompt("x").await;
            let mark = service.wait_for_mark("stalls", PATIENCE).unwrap();
            let left = if resets {
                client.reset();
                ClientEnd::Reset
            } else {
                drop(client);
                ClientEnd::Closed
            };
            let gone = service.wait_for_disconnect(PATIENCE).unwrap();
            let events = if at == Point::BeforeHeaders { 0 } else { 4 };
            assert_eq!((gone.request, gone.events), (0, events));
            assert_eq!(gone.class, RequestClass::Main);
            // Unread bytes make even a plain close a reset.
            if events == 0 {
                assert_eq!(gone.how, left);
            }
            assert!(gone.at > mark.at);
            assert!(gone.after >= gone.at.since(mark.at));
            assert!(gone.after < PATIENCE);
            let end = service.wait_for_end(0, PATIENCE).unwrap();
            assert_eq!(end.outcome, Outcome::ClientGone);
            let closed = service.wait_for("the close", PATIENCE, |log| log.connections[0].closed);
            assert!(closed.is_ok());
        }
    }
}

#[tokio::test]
async fn waits_keep_their_time_and_pings_keep_the_stream() {
    let service = service([
        Reply::text("a b").gap(30).delay(40),
        Reply::text("a").at(
            Point::InBlock {
                block: 0,
                deltas: 0,
            },
            Step::Pings {
                count: Some(3),
                gap_ms: 5,
            },
        ),
    ]);
    let start = Instant::now();
    let (_, end) = ask(&service, "x").await;
    assert_eq!(end, End::Complete);
    assert!(start.elapsed() >= Duration::from_millis(100));
    let (events, _) = ask(&service, "x").await;
    assert_eq!(
        names(&events)[2..7],
        [
            "content_block_start",
            "ping",
            "ping",
            "ping",
            "content_block_delta"
        ]
    );
}

#[tokio::test]
async fn a_dripping_stream_comes_in_small_pieces_and_is_the_same_stream() {
    let service = service([Reply::text("Hello there").drip(40, 1)]);
    let mut client = Client::connect(service.address()).await;
    client.prompt("x").await;
    client.head().await.unwrap();
    let mut text = Vec::new();
    let mut pieces = 0;
    loop {
        let chunk = client.chunk().await.unwrap();
        if chunk.is_empty() {
            break;
        }
        assert!(chunk.len() <= 40);
        pieces += 1;
        text.extend(chunk);
    }
    assert!(pieces > TEXT_EVENTS.len());
    assert_eq!(names(&http_client::events_of(&text)), TEXT_EVENTS);
}

#[tokio::test]
async fn what_is_written_can_be_chosen() {
    let service = service([
        Reply::blocks([]).stop(StopReason::Refusal),
        Reply::of(ReplyBody::Message(Message {
            id: Some("msg_mine".to_owned()),
            model: Some("other".to_owned()),
            ..Message::default()
        })),
        Reply::text("x").closing(),
    ]);
    let (events, _) = ask(&service, "x").await;
    assert_eq!(
        names(&events),
        ["message_start", "ping", "message_delta", "message_stop"]
    );
    assert_eq!(events[2].data["delta"]["stop_reason"], "refusal");
    let (events, _) = ask(&service, "x").await;
    assert_eq!(events[0].data["message"]["id"], "msg_mine");
    assert_eq!(events[0].data["message"]["model"], "other");
    let mut client = Client::connect(service.address()).await;
    client.prompt("x").await;
    let head = client.head().await.unwrap();
    assert_eq!(head.header("connection"), Some("close"));
    client.events().await;
    assert_eq!(client.wait_for_close().await, End::Fin);
}

#[tokio::test]
async fn large_bodies_chunked_bodies_and_absolute_targets_are_read() {
    let service = Service::start(Scenario::new()).unwrap();
    let mut client = Client::connect(service.address()).await;
    let long = "x".repeat(3 * 1024 * 1024);
    client.prompt(&long).await;
    client.head().await.unwrap();
    client.events().await;
    let body = main_body("in chunks", true).to_string();
    let (one, two) = body.split_at(100);
    let raw = format!(
        "POST http://127.0.0.1:1/v1/messages HTTP/1.1\r\nHost: elsewhere\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    client.send_raw(raw.as_bytes()).await;
    client.head().await.unwrap();
    client.events().await;
    let requests = service.main_requests();
    assert_eq!(requests[0].last_user_text(), Some(long.as_str()));
    assert_eq!(requests[1].last_user_text(), Some("in chunks"));
    assert_eq!(requests[1].host, "127.0.0.1");
    assert_eq!(requests[1].path, "/v1/messages");
    assert_eq!(requests[0].session_id(), Some("session-1"));
}

#[tokio::test]
async fn other_endpoints_answer_from_the_table_and_the_rest_is_a_404() {
    let service = Service::start(Scenario::new()).unwrap();
    let mut client = Client::connect(service.address()).await;
    client.send("HEAD", "/api/hello", &[], b"").await;
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 200);
    // Had the answer to HEAD a body, it would stand in front of the next head.
    client
        .send("POST", "/v1/messages/count_tokens", &[], b"{}")
        .await;
    let head = client.head().await.unwrap();
    assert_eq!(client.json(&head).await, json!({"input_tokens": 100}));
    client.send("GET", "/nothing/here?x=1", &[], b"").await;
    let head = client.head().await.unwrap();
    assert_eq!(head.status, 404);
    let body = client.json(&head).await;
    assert_eq!(body["error"]["type"], "not_found_error");
    let classes: Vec<RequestClass> = service.log().requests.iter().map(|r| r.class).collect();
    assert_eq!(
        classes,
        [
            RequestClass::Endpoint,
            RequestClass::CountTokens,
            RequestClass::Endpoint
        ]
    );
}

#[tokio::test]
async fn what_is_no_http_is_a_fault_of_the_connection_not_a_reply() {
    let service = Service::start(Scenario::new()).unwrap();
    let mut client = Client::connect(service.address()).await;
    client.send_raw(b"\x16\x03\x01 not http\r\n\r\n").await;
    assert_ne!(client.wait_for_close().await, End::Complete);
    let fault = service
        .wait_for("the fault", PATIENCE, |log| {
            log.connections[0].fault.clone()
        })
        .unwrap();
    assert!(fault.contains("not an HTTP request"), "{fault}");
    assert!(service.log().requests.is_empty());
}

#[tokio::test]
async fn replies_can_be_added_and_computed_while_it_runs() {
    let service = Service::start_with(Scenario::new(), |request| {
        request
            .last_user_text()?
            .strip_prefix("echo ")
            .map(Reply::text)
    })
    .unwrap();
    service.add_reply(Reply::text("added")).unwrap();
    let impossible = Reply::overloaded().at(Point::BeforeStop, Step::Reset);
    assert!(matches!(
        service.add_reply(impossible),
        Err(ServiceError::Scenario(_))
    ));
    service
        .add(
            Queue::Side(SideKind::Recap),
            Scripted {
                when: Matcher::default(),
                times: None,
                reply: Reply::text("recap"),
            },
        )
        .unwrap();
    assert_eq!(text_of(&ask(&service, "echo this").await.0), "this");
    assert_eq!(text_of(&ask(&service, "x").await.0), "added");
    let recap = "The user stepped away and is coming back. Recap in under 40 words";
    assert_eq!(text_of(&ask(&service, recap).await.0), "recap");
    assert_eq!(service.log().exchanges[0].picked, Picked::Handler);
}

#[tokio::test]
async fn a_log_keeps_only_so_many_bodies_but_every_request() {
    let service = Service::start(Scenario {
        keep_bodies: 2,
        ..Scenario::new()
    })
    .unwrap();
    for text in ["one", "two", "three"] {
        ask(&service, text).await;
    }
    let requests = service.main_requests();
    let kept: Vec<bool> = requests.iter().map(|one| !one.body.is_null()).collect();
    assert_eq!(kept, [false, true, true]);
    assert_eq!(requests[0].last_user_text(), Some("one"));
}

#[tokio::test]
async fn waiting_in_a_task_hears_of_a_request_that_comes_later() {
    let service = Service::start(Scenario::new()).unwrap();
    let wait = service.wait_for_async("a request", PATIENCE, |log| {
        log.requests.first().map(|request| request.position)
    });
    let (found, _) = tokio::join!(wait, ask(&service, "x"));
    assert_eq!(found.unwrap(), 0);
    let vain = service
        .wait_for_async("more", Duration::from_millis(20), |log| {
            (log.requests.len() > 1).then_some(())
        })
        .await;
    assert!(vain.unwrap_err().to_string().contains("more"));
}

#[tokio::test]
async fn a_stopped_service_leaves_no_port_no_connection_and_tells_what_was_open() {
    let service = service([
        Reply::text("a").at(Point::AfterHeaders, Step::Stall),
        Reply::text("unused"),
    ]);
    let address = service.address();
    let mut client = Client::connect(address).await;
    client.prompt("x").await;
    client.head().await.unwrap();
    let report = service.stop().unwrap();
    assert_eq!((report.open_connections, report.open_exchanges), (1, 1));
    assert_eq!(report.unused, [(Queue::Main, 1)]);
    assert_eq!(report.log.main_requests().len(), 1);
    assert_ne!(client.wait_for_close().await, End::Complete);
    assert!(TcpStream::connect(address).await.is_err());
}

#[test]
fn a_scenario_file_in_the_documented_form_is_played() {
    let scenario: Scenario = serde_json::from_value(json!({
        "main": [
            { "times": 2, "reply": { "body": { "type": "error", "status": 529,
                "kind": "overloaded_error", "message": "Overloaded" } } },
            { "when": { "last_text": "list" }, "reply": {
                "body": { "type": "message", "blocks": [
                    { "content": { "type": "text", "deltas": ["Look", "ing"] }, "gap_ms": 10 },
                    { "content": { "type": "tool_use", "name": "Bash", "input": { "command": "ls" } } } ] },
                "steps": [ { "at": { "point": "in_block", "block": 0, "deltas": 1 },
                    "step": { "step": "gate", "name": "half" } } ] } }
        ],
        "side": { "title": [ { "reply": { "body": { "type": "message", "blocks": [] } } } ] },
        "limits": { "status": "allowed_warning", "claim": "five_hour" }
    }))
    .unwrap();
    assert_eq!(scenario.check(), Ok(()));
    assert_eq!(scenario.main[0].times, Some(2));
    let ReplyBody::Message(message) = &scenario.main[1].reply.body else {
        panic!("a message")
    };
    assert_eq!(
        message.blocks[1].content,
        ccd_rig::service::Content::ToolUse(ToolCall {
            id: None,
            name: "Bash".to_owned(),
            input: json!({"command": "ls"}),
            chunk: 16,
        })
    );
}
