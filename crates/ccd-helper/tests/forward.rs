//! The forwarder against a small real server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Output, Stdio};
use std::thread;

use ccd_helper::ForwardArgs;
use support::{helper, output};
use tempfile::TempDir;

struct Received {
    head: String,
    body: Vec<u8>,
}

fn read_request(stream: &UnixStream) -> Received {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head:?}");
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Received { head, body }
}

/// One hook call with `input`; the server answers with these bytes and closes.
fn call(input: &[u8], answer: &[u8], claude_pid: Option<&str>) -> (Received, Output) {
    let dir = TempDir::new().unwrap();
    let socket = dir.path().join("hook.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let answer = answer.to_vec();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let received = read_request(&stream);
        stream.write_all(&answer).unwrap();
        received
    });
    let args = ForwardArgs {
        socket,
        event: "PreToolUse".to_owned(),
    };
    let mut command = helper(&args.to_argv());
    if let Some(pid) = claude_pid {
        command.env("CLAUDE_PID", pid);
    }
    let result = output(command, input);
    (server.join().unwrap(), result)
}

fn assert_no_answer(result: &Output) {
    assert_eq!(result.status.code(), Some(1));
    assert!(result.stdout.is_empty());
    let said = String::from_utf8_lossy(&result.stderr);
    assert_eq!(said.lines().count(), 1, "{said:?}");
}

#[test]
fn a_complete_answer_is_printed_exactly() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 14\r\n\r\n{\"ok\":\"\xc3\xa9\x00\"}\n\n";
    let (received, result) = call(b"{\"a\":1}\n", answer, Some("4321"));
    assert_eq!(result.status.code(), Some(0));
    assert_eq!(result.stdout, b"{\"ok\":\"\xc3\xa9\x00\"}\n\n");
    assert!(result.stderr.is_empty());
    assert_eq!(received.body, b"{\"a\":1}\n");
    assert!(received.head.starts_with("POST /h/PreToolUse HTTP/1.1\r\n"));
    for line in [
        "Connection: close",
        "X-CCD-Protocol: 1",
        "X-CCD-Claude-Pid: 4321",
    ] {
        assert!(received.head.lines().any(|l| l == line), "{line}");
    }
}

#[test]
fn an_empty_answer_is_no_opinion_and_a_strange_pid_is_not_sent() {
    let empty = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for pid in [None, Some(""), Some("1\r\nX: y"), Some("-1")] {
        let (received, result) = call(b"", empty, pid);
        assert_eq!(result.status.code(), Some(0));
        assert!(result.stdout.is_empty() && result.stderr.is_empty());
        assert!(received.body.is_empty());
        assert!(!received.head.contains("Claude-Pid"), "{pid:?}");
    }
}

#[test]
fn bodies_of_megabytes_pass_both_ways() {
    let input: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n".to_vec();
    answer.extend(input.iter().rev());
    let (received, result) = call(&input, &answer, None);
    assert_eq!(result.status.code(), Some(0));
    assert!(received.body == input);
    assert!(result.stdout.iter().eq(input.iter().rev()));
}

#[test]
fn an_input_beyond_the_bound_is_not_sent() {
    let dir = TempDir::new().unwrap();
    let socket = dir.path().join("hook.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let args = ForwardArgs {
        socket,
        event: "Stop".to_owned(),
    };
    let input = vec![b' '; ccd_helper::MAX_BODY + 1];
    assert_no_answer(&output(helper(&args.to_argv()), &input));
    let error = listener.accept().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn anything_but_a_complete_good_answer_is_exit_1_and_prints_nothing() {
    let answers: [&[u8]; 8] = [
        b"",
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"half\":",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"CCD1 KEEP\n",
    ];
    for answer in answers {
        let (_, result) = call(b"{}\n", answer, None);
        assert_no_answer(&result);
    }
}

#[test]
fn a_missing_or_refusing_socket_is_exit_1() {
    let dir = TempDir::new().unwrap();
    let missing = dir.path().join("missing.sock");
    let refusing = dir.path().join("refusing.sock");
    drop(UnixListener::bind(&refusing).unwrap());
    let long = dir.path().join("x".repeat(200));
    for socket in [missing, refusing, long] {
        let args = ForwardArgs {
            socket,
            event: "Stop".to_owned(),
        };
        assert_no_answer(&output(helper(&args.to_argv()), b"{}\n"));
    }
}

#[test]
fn sigterm_ends_a_call_that_is_held() {
    use std::os::unix::process::ExitStatusExt as _;
    let dir = TempDir::new().unwrap();
    let socket = dir.path().join("hook.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let args = ForwardArgs {
        socket,
        event: "PermissionRequest".to_owned(),
    };
    let mut child = helper(&args.to_argv())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (stream, _) = listener.accept().unwrap();
    read_request(&stream);
    support::session::kill(child.id(), rustix::process::Signal::TERM);
    let status = support::wait_exit(&mut child, support::session::SOON).unwrap();
    assert_eq!(status.signal(), Some(15));
    let mut printed = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut printed)
        .unwrap();
    assert!(printed.is_empty());
}
