//! `cargo xtask isolate -- CMD…`: replaces this process by CMD in a network namespace that has only loopback.

use crate::child::find;
use crate::failure::{Failure, Outcome, during};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The ways into a namespace, in the order in which they are tried.
const WAYS: [&[&str]; 2] = [
    &["-n"],
    &["--user", "--map-current-user", "--keep-caps", "-n"],
];

/// Brings loopback up, then becomes the command.
const ENTER: &str = "\"$0\" link set lo up && exec \"$@\"";

const NOT_ALLOWED: &str = "no network namespace can be made here, so nothing is run: the tests never touch a real network.\n\
    Allow one of: running as root with CAP_SYS_ADMIN and CAP_NET_ADMIN (a container: --cap-add SYS_ADMIN --cap-add NET_ADMIN),\n\
    or unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces > 0,\n\
    and on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0).";

/// The programs that make a namespace.
#[derive(Debug)]
struct Programs {
    unshare: PathBuf,
    ip: PathBuf,
}

/// A command that runs `program` inside the namespace; the caller adds arguments and environment.
pub(crate) fn command(program: &Path) -> Outcome<Command> {
    let programs = programs()?;
    let mut refused = Vec::new();
    for way in WAYS {
        match probe(&programs, way) {
            Ok(()) => {
                let mut command = enter(&programs, way);
                command.arg(program);
                return Ok(command);
            }
            Err(why) => refused.push(format!("  unshare {}: {why}", way.join(" "))),
        }
    }
    Err(Failure::new(format!(
        "{NOT_ALLOWED}\n{}",
        refused.join("\n")
    )))
}

/// Replaces this process; comes back only with the reason why it could not.
pub(crate) fn run(args: &[OsString]) -> Failure {
    let args = match args.split_first() {
        Some((first, rest)) if first == "--" => rest,
        _ => args,
    };
    let Some((program, rest)) = args.split_first() else {
        return Failure::usage("isolate: no command; say `cargo xtask isolate -- CMD…`");
    };
    match command(Path::new(program)) {
        Ok(mut command) => {
            let error = command.args(rest).exec();
            Failure::new(format!("isolate: unshare: {error}"))
        }
        Err(failure) => failure,
    }
}

fn programs() -> Outcome<Programs> {
    let more = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(Path::new);
    let need = |name: &str| {
        find(name, &more).ok_or_else(|| {
            Failure::new(format!(
                "{name} is not installed, and without it nothing can be isolated; run `cargo xtask setup`"
            ))
        })
    };
    Ok(Programs {
        unshare: need("unshare")?,
        ip: need("ip")?,
    })
}

fn enter(programs: &Programs, way: &[&str]) -> Command {
    let mut command = Command::new(&programs.unshare);
    command
        .args(way)
        .args(["--", "/bin/sh", "-c", ENTER])
        .arg(&programs.ip);
    command
}

fn probe(programs: &Programs, way: &[&str]) -> Result<(), String> {
    let output = enter(programs, way)
        .arg("true")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| during("unshare")(e).message)?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.trim().lines().next().unwrap_or("refused").to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{Programs, command, probe, run};
    use std::path::Path;
    use std::process::Stdio;

    #[test]
    fn inside_there_is_only_loopback_and_it_is_up() {
        // Where no namespace is allowed, the reason must say what to allow.
        let mut command = match command(Path::new("sh")) {
            Ok(command) => command,
            Err(failure) => {
                assert!(failure.message.contains("Allow one of"), "{failure}");
                return;
            }
        };
        let script = "cat /proc/net/dev; cat /sys/class/net/lo/flags 2>/dev/null; echo \"arg:$1\"";
        let output = command
            .args(["-c", script, "sh", "two words"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let devices = text
            .lines()
            .filter(|l| l.contains(':') && !l.starts_with("arg:"));
        let devices: Vec<_> = devices.filter(|l| !l.contains('|')).collect();
        assert!(
            devices.len() == 1 && devices.iter().all(|d| d.contains("lo:")),
            "{text}"
        );
        assert!(text.contains("arg:two words"), "{text}");
    }

    #[test]
    fn a_refused_way_says_why() {
        let programs = Programs {
            unshare: "/bin/false".into(),
            ip: "/bin/true".into(),
        };
        assert_eq!(probe(&programs, &["-n"]).unwrap_err(), "refused");
    }

    #[test]
    fn no_command_is_a_wrong_request() {
        assert_eq!(run(&[]).code, 2);
        assert_eq!(run(&["--".into()]).code, 2);
    }
}
