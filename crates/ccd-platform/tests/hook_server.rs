//! What the hook server promises to Claude, to the session and to strangers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt as _, net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use ccd_model::{
    ids::{HoldId, JobKey, Launch},
    intent::PromptGuard,
    json::RawJson,
    observation::{LostPart, Verdict},
    time::Mono,
};
use ccd_platform::hook_server::{self, HookServer};
use ccd_ports::{
    clock::Clock as _,
    error::PortErrorKind,
    inbox::Inbox,
    raw::{HookRecord, Raw},
    session::{DenyRule, HookReplies, HookSpec},
};
use ccd_testing::fakes::clock::FakeClock;
use support::{LAUNCH, PATIENCE, Records};

const TOKEN: &str = "the-token";
const BLOCK: &str = "{\"decision\":\"block\"}";
const DEADLINE_MS: u64 = 300_000;

struct World {
    dir: tempfile::TempDir,
    clock: FakeClock,
    records: Arc<Records>,
    server: HookServer,
}

/// One answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn spec(dir: &tempfile::TempDir) -> HookSpec {
    HookSpec {
        token: TOKEN.to_owned(),
        runtime_dir: dir.path().to_owned(),
        permission_deadline_ms: DEADLINE_MS,
        deny: vec![DenyRule {
            text: "Bash(rm:*)".to_owned(),
            tool: "Bash".to_owned(),
            command_prefix: Some("rm".to_owned()),
            command_exact: None,
        }],
        replies: HookReplies {
            block_prompt: BLOCK.to_owned(),
            deny_tool: "{\"deny\":{reason}}".to_owned(),
            deny_permission: "{\"no\":{message}}".to_owned(),
            prompt_field: "prompt".to_owned(),
            permission_event: "Permission".to_owned(),
            prompt_event: "Prompt".to_owned(),
            tool_event: "Tool".to_owned(),
            internal_prompt_prefixes: vec!["<task>".to_owned()],
        },
    }
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (clock, records) = (FakeClock::new(), Records::new());
        let server =
            hook_server::start(spec(&dir), LAUNCH, Arc::clone(&records) as _, clock.port())
                .unwrap();
        Self {
            dir,
            clock,
            records,
            server,
        }
    }

    fn tcp(&self) -> TcpStream {
        let address = self.server.address.url.strip_prefix("http://").unwrap();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn unix(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.server.address.socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A call with the token over TCP, answered.
    fn call(&self, event: &str, body: &str) -> Answer {
        answer(send(
            self.tcp(),
            &head(event, &[("X-CCD-Token", TOKEN)], body.len()),
            body,
        ))
    }

    /// The same in the background.
    fn calling(&self, event: &str, body: &str) -> JoinHandle<Answer> {
        let stream = send(
            self.tcp(),
            &head(event, &[("X-CCD-Token", TOKEN)], body.len()),
            body,
        );
        std::thread::spawn(move || answer(stream))
    }

    fn arm(&self, text: &str, self_test: bool) {
        self.server.handle().arm(PromptGuard {
            job: JobKey(1),
            text: text.into(),
            self_test,
        });
    }

    fn hook(&self) -> HookRecord {
        match self.records.wait(1).as_slice() {
            [Raw::Hook(record)] => record.clone(),
            other => panic!("one hook was expected, not {other:?}"),
        }
    }
}

fn head(event: &str, headers: &[(&str, &str)], length: usize) -> String {
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    format!(
        "POST /h/{event} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: keep-alive\r\nContent-Length: {length}\r\n\r\n"
    )
}

fn send<S: Write>(mut stream: S, head: &str, body: &str) -> S {
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// Reads to the end: the server closes after each answer.
fn answer(mut stream: impl Read) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    Answer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

fn prompt(text: &str) -> String {
    serde_json::json!({"prompt": text}).to_string()
}

fn bash(command: &str) -> String {
    serde_json::json!({"tool_name": "Bash", "tool_input": {"command": command}}).to_string()
}

fn assert_no_opinion(answer: &Answer) {
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert!(answer.head.contains("content-length: 0"), "{}", answer.head);
    assert!(answer.head.contains("connection: close"), "{}", answer.head);
}

// ---- observations ----

#[tokio::test]
async fn observations_are_answered_and_recorded_while_the_host_runtime_is_blocked() {
    // This runtime has one thread, which these blocking calls occupy.
    let world = World::new();
    for number in 0..50 {
        let body = format!("{{\"n\":{number}}}");
        assert_no_opinion(&world.call("PostToolUse", &body));
        let record = world.hook();
        assert_eq!(&*record.event, "PostToolUse");
        assert_eq!(record.body, RawJson::new(body));
        assert_eq!(
            (
                record.hold,
                record.verdict,
                record.denied_by,
                record.claude_pid
            ),
            (None, None, None, None)
        );
    }
}

#[test]
fn records_keep_the_order_and_time_of_arrival() {
    let world = World::new();
    for number in 0..20 {
        let body = number.to_string();
        if number % 2 == 0 {
            world.call("Stop", &body);
        } else {
            answer(send(world.unix(), &head("Stop", &[], body.len()), &body));
        }
        world.clock.advance(5);
    }
    for (number, (at, raw)) in world.records.wait_stamped(20).into_iter().enumerate() {
        assert_eq!(at, Mono(number as u64 * 5));
        assert!(matches!(raw, Raw::Hook(record) if record.body.get() == number.to_string()));
    }
}

#[test]
fn the_forwarder_needs_no_token_and_names_claudes_pid() {
    let world = World::new();
    let head = head("SessionStart", &[("X-CCD-Claude-Pid", "4711")], 2);
    assert_no_opinion(&answer(send(world.unix(), &head, "{}")));
    assert_eq!(world.hook().claude_pid, Some(4711));
    let mode = std::fs::metadata(&world.server.address.socket)
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn large_bodies_pass_and_larger_ones_are_refused() {
    let world = World::new();
    for megabytes in [3, 20] {
        let body = format!("{{\"x\":\"{}\"}}", "é".repeat(megabytes * 512 * 1024));
        assert_no_opinion(&world.call("PostToolUse", &body));
        assert!(world.hook().body.get() == body);
    }
    let too_long = 64 * 1024 * 1024 + 1;
    let refused = answer(send(
        world.tcp(),
        &head("Stop", &[("X-CCD-Token", TOKEN)], too_long),
        "",
    ));
    assert_eq!(refused.status, 413);
    // Without an announced length the bound is met while reading.
    let chunked = format!(
        "POST /h/Stop HTTP/1.1\r\nHost: x\r\nX-CCD-Token: {TOKEN}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    let mut stream = send(world.unix(), &chunked, "");
    let chunk = format!("{:x}\r\n{}\r\n", 1024 * 1024, "x".repeat(1024 * 1024));
    for _ in 0..=64 {
        // The server may have answered and closed already.
        if stream.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    assert!(
        text.starts_with(b"HTTP/1.1 413"),
        "{:?}",
        String::from_utf8_lossy(&text)
    );
    world.call("Stop", "{}");
    assert_eq!(world.records.wait(1).len(), 1);
}

// ---- strangers ----

#[test]
fn without_the_token_nothing_is_read_recorded_or_answered() {
    let world = World::new();
    let long = "x".repeat(TOKEN.len());
    let cases: [&[(&str, &str)]; 6] = [
        &[],
        &[("X-CCD-Token", "")],
        &[("X-CCD-Token", &long)],
        &[("X-CCD-Token", "the-toke")],
        &[("X-CCD-Token", TOKEN), ("X-CCD-Token", TOKEN)],
        &[("Authorization", TOKEN)],
    ];
    for headers in cases {
        for event in ["Stop", "Permission", "Prompt", "Tool"] {
            let refused = answer(send(world.tcp(), &head(event, headers, 2), "{}"));
            assert_eq!(
                (refused.status, refused.body.as_str()),
                (403, ""),
                "{headers:?}"
            );
            assert!(refused.head.contains("connection: close"));
        }
    }
    // Refused before the body is there.
    assert_eq!(
        answer(send(world.tcp(), &head("Stop", &[], 1000), "")).status,
        403
    );
    world.call("Stop", "{}");
    assert_eq!(world.records.wait(1).len(), 1);
}

#[test]
fn other_paths_and_methods_are_refused() {
    let world = World::new();
    for (request, status) in [
        ("POST / HTTP/1.1", 404),
        ("POST /h/ HTTP/1.1", 404),
        ("POST /h/a/b HTTP/1.1", 404),
        ("POST /h/a%2Fb HTTP/1.1", 404),
        ("POST /h/a%20b HTTP/1.1", 404),
        ("GET /h/Stop HTTP/1.1", 405),
    ] {
        let text =
            format!("{request}\r\nHost: x\r\nX-CCD-Token: {TOKEN}\r\nContent-Length: 0\r\n\r\n");
        let refused = answer(send(world.tcp(), &text, ""));
        assert_eq!(refused.status, status, "{request}");
        assert!(refused.head.contains("connection: close"), "{request}");
    }
    let name = "x".repeat(65);
    assert_eq!(world.call(&name, "{}").status, 404);
    assert_eq!(world.records.take(), []);
}

#[test]
fn a_request_that_is_not_complete_in_time_is_dropped() {
    let world = World::new();
    let token = [("X-CCD-Token", TOKEN)];
    for half in [
        String::new(),
        "POST /h/St".to_owned(),
        head("Stop", &token, 100) + "{",
    ] {
        let mut stream = send(world.tcp(), &half, "");
        let deadline = world.clock.now().after(30_000);
        assert!(world.clock.wait_for_sleeper(deadline));
        world.clock.advance(30_000);
        let mut text = String::new();
        // The end may come as a reset.
        let _ = stream.read_to_string(&mut text);
        assert!(!text.starts_with("HTTP/1.1 200"), "{text:?}");
    }
    world.call("Stop", "{}");
    assert_eq!(world.records.wait(1).len(), 1);
}

#[test]
fn connections_are_bounded_on_each_listener() {
    let world = World::new();
    let mut idle: Vec<TcpStream> = (0..128).map(|_| world.tcp()).collect();
    let mut waiting = send(
        world.tcp(),
        &head("Stop", &[("X-CCD-Token", TOKEN)], 2),
        "{}",
    );
    // The other listener is served meanwhile, by the same thread.
    for _ in 0..20 {
        assert_no_opinion(&answer(send(world.unix(), &head("Stop", &[], 2), "{}")));
    }
    waiting.set_nonblocking(true).unwrap();
    let error = waiting.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    waiting.set_nonblocking(false).unwrap();
    drop(idle.pop());
    assert_no_opinion(&answer(waiting));
}

// ---- prompts ----

#[test]
fn the_armed_prompt_passes_once_and_another_one_is_blocked_once() {
    let world = World::new();
    let submit = |text: &str| {
        let answer = world.call("Prompt", &prompt(text));
        let verdict = world.hook().verdict.unwrap();
        match answer.body.as_str() {
            "" => assert_no_opinion(&answer),
            body => assert_eq!((answer.status, body), (200, BLOCK)),
        }
        (verdict, answer.body == BLOCK)
    };
    assert_eq!(submit("typed by hand"), (Verdict::Foreign, false));
    world.arm("do \"it\"\n\u{1f600}", false);
    assert_eq!(submit("<task> done"), (Verdict::Foreign, false));
    assert_eq!(submit("do \"it\"\n\u{1f600}"), (Verdict::Exact, false));
    assert_eq!(submit("do \"it\"\n\u{1f600}"), (Verdict::Foreign, false));
    world.arm("do it", false);
    assert_eq!(submit("do it!"), (Verdict::MismatchBlocked, true));
    assert_eq!(submit("do it!"), (Verdict::Foreign, false));
    world.arm("nonce", true);
    assert_eq!(submit("nonce"), (Verdict::SelfTest, true));
    world.arm("do it", false);
    world.server.handle().disarm();
    assert_eq!(submit("other"), (Verdict::Foreign, false));
}

#[test]
fn an_unreadable_prompt_is_blocked_while_a_guard_is_armed() {
    let world = World::new();
    for body in ["{", "", "{\"prompt\":7}", "{\"text\":\"do it\"}"] {
        world.arm("do it", false);
        assert_eq!(world.call("Prompt", body).body, BLOCK, "{body}");
        assert_eq!(world.hook().verdict, Some(Verdict::MismatchBlocked));
        assert_no_opinion(&world.call("Prompt", body));
        assert_eq!(world.hook().verdict, Some(Verdict::Foreign));
    }
}

// ---- tools ----

#[test]
fn a_denied_or_unreadable_tool_call_is_refused_by_the_thread_itself() {
    let world = World::new();
    assert_no_opinion(&world.call("Tool", &bash("ls")));
    assert_eq!(world.hook().denied_by, None);
    let denied = world.call("Tool", &bash("cd x && rm -rf y"));
    assert_eq!(denied.body, "{\"deny\":\"Denied by the rule Bash(rm:*).\"}");
    assert!(denied.head.contains("content-type: application/json"));
    assert_eq!(world.hook().denied_by.as_deref(), Some("Bash(rm:*)"));
    assert!(world.call("Tool", "{").body.starts_with("{\"deny\":\""));
    assert!(world.hook().denied_by.is_some());
}

#[test]
fn a_tool_call_waits_for_the_submission_in_flight_but_not_forever() {
    let world = World::new();
    let ends: [fn(&World); 3] = [
        |world| {
            world.call("Prompt", &prompt("do it"));
            world.records.wait(1);
        },
        |world| world.server.handle().disarm(),
        |world| world.clock.advance(1_000),
    ];
    for end in ends {
        world.arm("do it", false);
        let call = world.calling("Tool", &bash("ls"));
        // It is recorded at once, and waits.
        assert_eq!(&*world.hook().event, "Tool");
        assert!(world.clock.wait_for_sleeper(world.clock.now().after(1_000)));
        assert!(!call.is_finished());
        end(&world);
        assert_no_opinion(&call.join().unwrap());
        world.server.handle().disarm();
        assert_eq!(world.records.take(), []);
    }
    // What is denied needs not wait.
    world.arm("do it", false);
    assert!(world.call("Tool", &bash("rm x")).body.contains("deny"));
}

// ---- permissions ----

#[test]
fn a_permission_is_held_until_its_answer() {
    let world = World::new();
    let mut handle = world.server.handle();
    let first = world.calling("Permission", "{\"n\":1}");
    let record = world.hook();
    assert_eq!(
        (record.hold, record.body.get()),
        (Some(HoldId(1)), "{\"n\":1}")
    );
    let second = world.calling("Permission", "{\"n\":2}");
    assert_eq!(world.hook().hold, Some(HoldId(2)));
    // Others are answered meanwhile, and an unknown hold is nobody's.
    assert_no_opinion(&world.call("Notification", "{}"));
    handle.answer(HoldId(9), RawJson::new("{}"));
    handle.answer(HoldId(2), RawJson::new("{\"b\":2}"));
    assert_eq!(second.join().unwrap().body, "{\"b\":2}");
    assert!(!first.is_finished());
    handle.answer(HoldId(1), RawJson::new("{\"a\":1}"));
    handle.answer(HoldId(1), RawJson::new("{\"late\":1}"));
    let answer = first.join().unwrap();
    assert_eq!((answer.status, answer.body.as_str()), (200, "{\"a\":1}"));
    // The record follows the reply.
    assert_eq!(world.records.wait(1).len(), 1);
}

#[test]
fn at_the_deadline_the_thread_denies() {
    let world = World::new();
    let call = world.calling("Permission", "{}");
    let hold = world.hook().hold.unwrap();
    assert!(world.clock.wait_for_sleeper(Mono(DEADLINE_MS)));
    // The deadline for reading a request does not end one that is held.
    world.clock.advance(DEADLINE_MS - 1);
    world.call("Stop", "{}");
    assert_eq!(world.records.wait(1).len(), 1);
    assert!(!call.is_finished());
    world.clock.advance(1);
    let body = call.join().unwrap().body;
    assert!(body.starts_with("{\"no\":\"Nobody answered"), "{body}");
    assert_eq!(world.records.wait(1), [Raw::HookExpired { hold }]);
    world.server.handle().answer(hold, RawJson::new("{}"));
    assert_eq!(world.records.take(), []);
}

#[test]
fn a_caller_that_goes_away_is_reported_once() {
    let world = World::new();
    let token = [("X-CCD-Token", TOKEN)];
    let tcp = send(world.tcp(), &head("Permission", &token, 2), "{}");
    let first = world.hook().hold.unwrap();
    let unix = send(world.unix(), &head("Permission", &token, 2), "{}");
    let second = world.hook().hold.unwrap();
    drop(tcp);
    assert_eq!(world.records.wait(1), [Raw::HookGone { hold: first }]);
    unix.shutdown(Shutdown::Both).unwrap();
    assert_eq!(world.records.wait(1), [Raw::HookGone { hold: second }]);
    world.server.handle().answer(first, RawJson::new("{}"));
    world.call("Stop", "{}");
    assert_eq!(world.records.wait(1).len(), 1);
}

// ---- the end ----

#[test]
fn the_stop_denies_what_is_held_and_frees_everything() {
    let mut world = World::new();
    let held = world.calling("Permission", "{}");
    world.records.wait(1);
    world.arm("do it", false);
    let tool = world.calling("Tool", &bash("ls"));
    world.records.wait(1);
    let idle = world.tcp();
    let (address, mut handle) = (world.server.address.clone(), world.server.handle());
    world.server.stop();
    assert!(
        held.join()
            .unwrap()
            .body
            .starts_with("{\"no\":\"The session is ending")
    );
    assert_no_opinion(&tool.join().unwrap());
    assert_eq!(world.records.take(), []);
    assert!(TcpStream::connect(address.url.strip_prefix("http://").unwrap()).is_err());
    assert!(!address.socket.exists());
    assert!(world.server.listener_fds().is_empty());
    // Harmless afterwards.
    handle.answer(HoldId(1), RawJson::new("{}"));
    handle.disarm();
    world.server.stop();
    drop(idle);
}

#[test]
fn the_listening_sockets_can_be_handed_on() {
    let world = World::new();
    let [tcp, unix] = world.server.listener_fds()[..] else {
        panic!("two sockets")
    };
    let tcp = TcpListener::from(tcp.try_clone_to_owned().unwrap());
    let port = tcp.local_addr().unwrap().port();
    assert_eq!(world.server.address.url, format!("http://127.0.0.1:{port}"));
    let unix = std::os::unix::net::UnixListener::from(unix.try_clone_to_owned().unwrap());
    let path = unix.local_addr().unwrap();
    assert_eq!(
        path.as_pathname(),
        Some(world.server.address.socket.as_path())
    );
    // After our end the other holder still gets the calls.
    drop(world.server);
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    tcp.set_nonblocking(false).unwrap();
    tcp.accept().unwrap();
    drop(stream);
}

#[test]
fn a_runtime_directory_that_cannot_take_the_socket_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let start = |spec: HookSpec| {
        hook_server::start(spec, LAUNCH, Records::new() as _, FakeClock::new().port()).map(|_| ())
    };
    let mut missing = spec(&dir);
    missing.runtime_dir = dir.path().join("missing");
    assert_eq!(start(missing).unwrap_err().kind, PortErrorKind::DirUnusable);
    let mut long = spec(&dir);
    long.runtime_dir = dir.path().join("x".repeat(120));
    std::fs::create_dir(&long.runtime_dir).unwrap();
    assert_eq!(start(long).unwrap_err().kind, PortErrorKind::DirUnusable);
    std::fs::write(dir.path().join("hook.sock"), "").unwrap();
    assert_eq!(
        start(spec(&dir)).unwrap_err().kind,
        PortErrorKind::DirUnusable
    );
}

/// Panics at the first record.
#[derive(Default)]
struct Fragile {
    broken: AtomicBool,
    records: Records,
}

impl Inbox for Fragile {
    fn push(&self, launch: Launch, at: Mono, raw: Raw) {
        assert!(
            self.broken.swap(true, Ordering::SeqCst),
            "as the test wants"
        );
        self.records.push(launch, at, raw);
    }
}

#[test]
fn the_death_of_the_thread_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let inbox = Arc::new(Fragile::default());
    let clock = FakeClock::new();
    let server =
        hook_server::start(spec(&dir), LAUNCH, Arc::clone(&inbox) as _, clock.port()).unwrap();
    let stream = UnixStream::connect(&server.address.socket).unwrap();
    let _ = send(stream, &head("Stop", &[], 2), "{}");
    assert_eq!(
        inbox.records.wait(1),
        [Raw::Lost {
            part: LostPart::HookServer
        }]
    );
    drop(server);
    assert_eq!(inbox.records.take(), []);
}

#[test]
fn the_death_of_the_port_is_reported_at_once_even_while_a_request_is_held() {
    let world = World::new();
    let mut held = send(
        world.tcp(),
        &head("Permission", &[("X-CCD-Token", TOKEN)], 2),
        "{}",
    );
    world.records.wait(1);
    let tcp = world.server.listener_fds()[0];
    rustix::net::shutdown(tcp, rustix::net::Shutdown::Both).unwrap();
    assert_eq!(
        world.records.wait(2),
        [
            Raw::HookGone { hold: HoldId(1) },
            Raw::Lost {
                part: LostPart::HookServer
            }
        ]
    );
    let mut answer = String::new();
    // An end or a reset: no answer either way.
    let _ = held.read_to_string(&mut answer);
    assert_eq!(answer, "");
    drop(world.server);
    assert_eq!(world.records.take(), []);
}

#[test]
fn nothing_is_left_in_the_runtime_directory() {
    let world = World::new();
    world.call("Stop", "{}");
    let World { dir, server, .. } = world;
    drop(server);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
