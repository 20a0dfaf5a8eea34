//! The command line, as the host writes it and as the program reads it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::time::Duration;

use ccd_helper::{
    EditorArgs, ForwardArgs, Invocation, Marker, SuperviseArgs, UsageError, is_helper_invocation,
};
use support::{helper, output};

fn argv(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn with_program(args: Vec<OsString>) -> Vec<OsString> {
    std::iter::once(OsString::from("ccd-helper"))
        .chain(args)
        .collect()
}

fn supervise_args() -> SuperviseArgs {
    SuperviseArgs {
        session: "s1".to_owned(),
        dir: OsString::from_vec(b"/r/\xff".to_vec()).into(),
        marker: Marker::new("CCD_SESSION", "a=b").unwrap(),
        grace: Duration::from_millis(2000),
        unlink: vec!["/r/one".into(), "--two".into()],
        program: "/usr/bin/tmux".into(),
        program_args: argv(&["-S", "/r/t.sock", "--", "--protocol", "9", ""]),
    }
}

#[test]
fn every_mode_reads_back_what_the_host_wrote() {
    let forward = ForwardArgs {
        socket: "-odd name.sock".into(),
        event: "PreToolUse".to_owned(),
    };
    let editor = EditorArgs {
        socket: OsString::from_vec(b"/\xfe.sock".to_vec()).into(),
        file: "/t/prompt.md".into(),
    };
    let supervise = supervise_args();
    let cases = [
        (forward.to_argv(), Invocation::Forward(forward)),
        (editor.to_argv(), Invocation::Editor(editor)),
        (supervise.to_argv(), Invocation::Supervise(supervise)),
    ];
    for (args, expected) in cases {
        let args = with_program(args);
        assert!(is_helper_invocation(&args));
        assert_eq!(Invocation::parse(&args), Ok(expected));
    }
}

#[test]
fn the_editor_link_finds_its_socket_beside_itself() {
    let expected = Invocation::Editor(EditorArgs {
        socket: "/run/s1/editor.sock".into(),
        file: "-f.md".into(),
    });
    let args = argv(&["/run/s1/ccd-editor", "-f.md"]);
    assert!(is_helper_invocation(&args));
    assert_eq!(Invocation::parse(&args), Ok(expected));
    for bad in [
        argv(&["ccd-editor", "f"]),
        argv(&["/run/ccd-editor"]),
        argv(&["/run/ccd-editor", "f", "g"]),
    ] {
        assert!(Invocation::parse(&bad).is_err(), "{bad:?}");
    }
}

#[test]
fn an_ordinary_command_line_of_a_host_is_not_the_helpers() {
    for args in [
        &["ccd", "run", "hello"][..],
        &["ccd", "forward"],
        &["ccd", "forward", "me"],
        &["ccd"],
    ] {
        assert!(!is_helper_invocation(&argv(args)), "{args:?}");
    }
}

#[test]
fn wrong_command_lines_are_typed_errors() {
    let parse = |words: &[&str]| Invocation::parse(&with_program(argv(words))).unwrap_err();
    assert_eq!(parse(&[]), UsageError::Missing("the mode"));
    assert_eq!(parse(&["edit"]), UsageError::UnknownMode("edit".to_owned()));
    assert_eq!(
        parse(&["forward", "--socket", "s", "--event", "E"]),
        UsageError::Missing("--protocol")
    );
    // The version is judged first: flags of another version may be unknown.
    assert_eq!(
        parse(&["forward", "--protocol", "2", "--new-flag"]),
        UsageError::Protocol {
            got: "2".to_owned()
        }
    );
    let forward = |tail: &[&str]| parse(&[&["forward", "--protocol", "1"], tail].concat());
    assert_eq!(forward(&["--socket", "s"]), UsageError::Missing("--event"));
    assert_eq!(
        forward(&["--socket", "s", "--socket", "t", "--event", "E"]),
        UsageError::Repeated("--socket")
    );
    assert_eq!(
        forward(&["--verbose"]),
        UsageError::UnknownArgument("--verbose".to_owned())
    );
    assert_eq!(
        forward(&["--socket", "s", "--event", "E", "more"]),
        UsageError::UnknownArgument("more".to_owned())
    );
    for event in ["", "../x", "a b", "E\r\nX: y"] {
        let error = forward(&["--socket", "s", "--event", event]);
        assert!(matches!(
            error,
            UsageError::Invalid {
                flag: "--event",
                ..
            }
        ));
    }
}

#[test]
fn the_supervisor_refuses_markers_graces_and_programs_it_cannot_use() {
    let good = supervise_args().to_argv();
    let replaced = |from: &str, to: &str| {
        let swap = |word: &OsString| {
            if word == from {
                to.into()
            } else {
                word.clone()
            }
        };
        let args: Vec<OsString> = good.iter().map(swap).collect();
        Invocation::parse(&with_program(args)).unwrap_err()
    };
    for marker in ["CCD_SESSION", "CCD_SESSION=", "=x", ""] {
        let error = replaced("CCD_SESSION=a=b", marker);
        assert!(matches!(
            error,
            UsageError::Invalid {
                flag: "--marker",
                ..
            }
        ));
    }
    for grace in ["", "-1", "60001", "2s"] {
        let error = replaced("2000", grace);
        assert!(matches!(
            error,
            UsageError::Invalid {
                flag: "--grace-ms",
                ..
            }
        ));
    }
    let end = good.iter().position(|word| word == "--").unwrap();
    for cut in [end, end + 1] {
        let args = with_program(good.iter().take(cut).cloned().collect());
        assert!(matches!(
            Invocation::parse(&args),
            Err(UsageError::Missing(_))
        ));
    }
}

#[test]
fn the_program_exits_64_or_as_a_forwarder_1_with_one_line_on_stderr() {
    let cases: [(&[&str], i32); 6] = [
        (&[], 64),
        (&["nonsense"], 64),
        (&["supervise", "--protocol", "2"], 64),
        (&["editor", "--protocol", "1"], 64),
        (&["forward"], 1),
        (&["forward", "--protocol", "2"], 1),
    ];
    for (args, code) in cases {
        let result = output(helper(&argv(args)), b"");
        assert_eq!(result.status.code(), Some(code), "{args:?}");
        assert!(result.stdout.is_empty());
        let said = String::from_utf8(result.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said:?}");
    }
}
