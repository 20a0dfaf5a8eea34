//! The editor against a small real host.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs;
use std::io::{BufReader, Write as _};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;

use ccd_helper::EditorArgs;
use ccd_helper::frame::{self, EditReply};
use support::{helper, output};
use tempfile::TempDir;

struct Desk {
    dir: TempDir,
    file: PathBuf,
    socket: PathBuf,
}

impl Desk {
    fn new(content: &[u8]) -> Self {
        let dir = TempDir::new().unwrap();
        let file = dir.path().join("prompt.md");
        fs::write(&file, content).unwrap();
        let socket = dir.path().join("editor.sock");
        Self { dir, file, socket }
    }

    /// The way Claude starts it: through the link in the runtime directory.
    fn linked(&self) -> Command {
        let link = self.dir.path().join("ccd-editor");
        symlink(env!("CARGO_BIN_EXE_ccd-helper-alone"), &link).unwrap();
        let mut command = Command::new(link);
        command.arg(&self.file).env_clear();
        command
    }

    fn direct(&self) -> Command {
        let args = EditorArgs {
            socket: self.socket.clone(),
            file: self.file.clone(),
        };
        helper(&args.to_argv())
    }

    /// Runs the editor; the host reads the composer's text, then does `answer`. Gives what the host read.
    fn edit(
        &self,
        command: Command,
        answer: impl FnOnce(UnixStream) + Send + 'static,
    ) -> (Vec<u8>, Output) {
        let listener = UnixListener::bind(&self.socket).unwrap();
        let host = thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let content = frame::read_edit(&mut BufReader::new(&stream)).unwrap();
            answer(stream);
            content
        });
        let result = output(command, b"");
        (host.join().unwrap(), result)
    }
}

fn assert_silent(result: &Output, code: i32) {
    assert_eq!(result.status.code(), Some(code));
    assert!(result.stdout.is_empty() && result.stderr.is_empty());
}

#[test]
fn the_hosts_text_replaces_the_file_in_place() {
    for text in [&b"short"[..], b"", &vec![b'x'; 3_000_000]] {
        for linked in [true, false] {
            let desk = Desk::new("draft \u{e9}\n".as_bytes());
            let inode = fs::metadata(&desk.file).unwrap().ino();
            let command = if linked { desk.linked() } else { desk.direct() };
            let reply = EditReply::Text(text.to_vec());
            let (content, result) = desk.edit(command, move |mut stream| {
                frame::write_reply(&mut stream, &reply).unwrap();
            });
            assert_silent(&result, 0);
            assert_eq!(content, "draft \u{e9}\n".as_bytes());
            assert!(fs::read(&desk.file).unwrap() == text);
            assert_eq!(fs::metadata(&desk.file).unwrap().ino(), inode);
        }
    }
}

#[test]
fn keep_leaves_the_file_alone() {
    let desk = Desk::new(b"draft");
    let before = fs::metadata(&desk.file).unwrap().modified().unwrap();
    let (content, result) = desk.edit(desk.linked(), |mut stream| {
        frame::write_reply(&mut stream, &EditReply::Keep).unwrap();
    });
    assert_silent(&result, 0);
    assert_eq!(content, b"draft");
    assert_eq!(fs::read(&desk.file).unwrap(), b"draft");
    let after = fs::metadata(&desk.file).unwrap().modified().unwrap();
    assert_eq!(after, before);
}

#[test]
fn a_host_that_vanishes_or_babbles_leaves_the_file_alone() {
    let answers: [&[u8]; 6] = [
        b"",
        b"CCD1 TE",
        b"CCD1 TEXT 10\n",
        b"CCD1 TEXT 10\n123456789",
        b"CCD2 TEXT 1\nx",
        b"CCD1 TEXT 99999999999\nx",
    ];
    for answer in answers {
        let desk = Desk::new(b"draft");
        let (_, result) = desk.edit(desk.linked(), move |mut stream| {
            stream.write_all(answer).unwrap();
        });
        assert_silent(&result, 1);
        assert_eq!(fs::read(&desk.file).unwrap(), b"draft");
    }
}

#[test]
fn without_a_host_or_a_file_it_fails_in_silence() {
    let desk = Desk::new(b"draft");
    assert_silent(&output(desk.linked(), b""), 1);
    assert_eq!(fs::read(&desk.file).unwrap(), b"draft");
    let listener = UnixListener::bind(&desk.socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    fs::remove_file(&desk.file).unwrap();
    assert_silent(&output(desk.direct(), b""), 1);
    assert!(!desk.file.exists());
    assert!(listener.accept().is_err(), "the host is asked for nothing");
}

#[test]
fn the_hosts_socket_ends_only_after_the_file_is_written() {
    let desk = Desk::new(b"draft");
    let file = desk.file.clone();
    let (_, result) = desk.edit(desk.linked(), move |mut stream| {
        frame::write_reply(&mut stream, &EditReply::Text(b"new".to_vec())).unwrap();
        let rest = std::io::Read::bytes(&stream).count();
        assert_eq!(rest, 0);
        assert_eq!(fs::read(&file).unwrap(), b"new");
    });
    assert_silent(&result, 0);
}
