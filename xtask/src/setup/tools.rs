//! The system programs: tmux, and on Linux what isolation needs. Found, installed as root on Debian, or asked for.

use crate::child::{find, read, show};
use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest tmux that has what the driver uses.
const TMUX: (u32, u32) = (3, 2);

/// Where system programs are, also when `PATH` does not say so.
const SYSTEM: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// Distribution, as in `/etc/os-release`; the start of its install command; its own names for packages.
type Manager = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const MANAGERS: [Manager; 6] = [
    ("debian", "apt-get install -y --no-install-recommends", &[]),
    ("ubuntu", "apt-get install -y --no-install-recommends", &[]),
    ("fedora", "dnf install -y", &[("iproute2", "iproute")]),
    ("arch", "pacman -S --needed", &[]),
    ("alpine", "apk add", &[]),
    ("suse", "zypper install", &[]),
];

/// A package that is needed, and why.
#[derive(Debug, PartialEq, Eq)]
struct Missing {
    package: &'static str,
    why: String,
}

/// Makes sure that the programs are there.
pub(crate) fn ensure() -> Outcome<()> {
    let linux = cfg!(target_os = "linux");
    let missing = look(linux)?;
    if missing.is_empty() {
        return Ok(());
    }
    for m in &missing {
        eprintln!("setup: {}", m.why);
    }
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let root = rustix::process::geteuid().is_root();
    let debian = distributions(&release).any(|d| d == "debian" || d == "ubuntu");
    if linux && root && debian {
        install(&missing)?;
        let still = look(linux)?;
        if still.is_empty() {
            return Ok(());
        }
        let why: Vec<_> = still.into_iter().map(|m| m.why).collect();
        let message = format!(
            "installed what the distribution offers, and still: {}",
            why.join("; ")
        );
        return Err(Failure::new(message));
    }
    let advice = advice(&missing, &release, linux, root);
    Err(Failure::new(format!(
        "setup: run `{advice}`, then `cargo xtask setup` again"
    )))
}

fn look(linux: bool) -> Outcome<Vec<Missing>> {
    let system = SYSTEM.map(Path::new);
    let programs = ["tmux", "ip", "unshare"].map(|name| find(name, &system));
    let [tmux, ip, unshare] = programs;
    let mut missing = Vec::new();
    missing.extend(tmux_missing(tmux)?);
    if linux {
        let needed = [(ip, "ip", "iproute2"), (unshare, "unshare", "util-linux")];
        for (found, program, package) in needed {
            if found.is_none() {
                let why = format!("`{program}` is missing (tests run in a network namespace)");
                missing.push(Missing { package, why });
            }
        }
    }
    Ok(missing)
}

fn tmux_missing(found: Option<PathBuf>) -> Outcome<Option<Missing>> {
    let why = match found {
        None => format!("tmux is missing; {}.{} or newer is needed", TMUX.0, TMUX.1),
        Some(program) => {
            let text = read(Command::new(&program).arg("-V"))?;
            let text = text.trim();
            if new_enough(text) {
                return Ok(None);
            }
            format!(
                "{text} is too old; {}.{} or newer is needed",
                TMUX.0, TMUX.1
            )
        }
    };
    Ok(Some(Missing {
        package: "tmux",
        why,
    }))
}

/// Reads `tmux 3.3a`, `tmux next-3.7`, `tmux master`.
fn new_enough(text: &str) -> bool {
    let version = text.strip_prefix("tmux ").unwrap_or(text);
    if version == "master" {
        return true;
    }
    let version = version.strip_prefix("next-").unwrap_or(version);
    let mut parts = version.split('.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    });
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) >= TMUX,
        _ => false,
    }
}

fn distributions(release: &str) -> impl Iterator<Item = &str> {
    release
        .lines()
        .filter_map(|line| {
            line.strip_prefix("ID=")
                .or_else(|| line.strip_prefix("ID_LIKE="))
        })
        .flat_map(|value| value.trim_matches('"').split(' '))
}

fn advice(missing: &[Missing], release: &str, linux: bool, root: bool) -> String {
    let manager =
        distributions(release).find_map(|d| MANAGERS.iter().find(|(id, _, _)| d.starts_with(id)));
    let (start, names) = match (linux, manager) {
        (true, Some((_, start, names))) => (*start, *names),
        (true, None) => ("your package manager's install of", [].as_slice()),
        (false, _) => ("brew install", [].as_slice()),
    };
    let sudo = if linux && !root && manager.is_some() {
        "sudo "
    } else {
        ""
    };
    let packages: Vec<&str> = missing
        .iter()
        .map(|m| {
            let renamed = names.iter().find(|(from, _)| *from == m.package);
            renamed.map_or(m.package, |(_, to)| *to)
        })
        .collect();
    format!("{sudo}{start} {}", packages.join(" "))
}

fn install(missing: &[Missing]) -> Outcome<()> {
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(std::io::stderr());
        command
    };
    let mut args = vec!["install", "-y", "--no-install-recommends"];
    args.extend(missing.iter().map(|m| m.package));
    if show(&mut apt(&args))?.success() {
        return Ok(());
    }
    eprintln!("setup: the package lists may be missing or old: fetching them, then once more");
    crate::child::must(&mut apt(&["update"]))?;
    crate::child::must(&mut apt(&args))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::{Missing, advice, distributions, new_enough, tmux_missing};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn tmux_versions_are_compared_as_numbers() {
        for text in [
            "tmux 3.2",
            "tmux 3.2a",
            "tmux 3.10",
            "tmux 4.0-rc",
            "tmux next-3.7",
            "tmux master",
        ] {
            assert!(new_enough(text), "{text}");
        }
        for text in [
            "tmux 3.1c",
            "tmux 2.9",
            "tmux 1.8",
            "tmux next-3.1",
            "tmux x",
            "",
        ] {
            assert!(!new_enough(text), "{text}");
        }
    }

    #[test]
    fn an_old_tmux_is_missing_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("tmux");
        std::fs::write(&program, "#!/bin/sh\necho tmux 3.1c\n").unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let missing = tmux_missing(Some(program)).unwrap().unwrap();
        assert_eq!(missing.why, "tmux 3.1c is too old; 3.2 or newer is needed");
        assert!(tmux_missing(None).unwrap().is_some());
    }

    fn both() -> [Missing; 2] {
        ["tmux", "iproute2"].map(|package| Missing {
            package,
            why: String::new(),
        })
    }

    #[test]
    fn the_one_command_fits_the_distribution() {
        for (release, command) in [
            (
                "ID=debian\n",
                "sudo apt-get install -y --no-install-recommends tmux iproute2",
            ),
            (
                "ID=mint\nID_LIKE=\"ubuntu debian\"\n",
                "sudo apt-get install -y --no-install-recommends tmux iproute2",
            ),
            (
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n",
                "sudo dnf install -y tmux iproute",
            ),
            (
                "ID=other\n",
                "your package manager's install of tmux iproute2",
            ),
        ] {
            assert_eq!(advice(&both(), release, true, false), command);
        }
        assert_eq!(
            advice(&both(), "ID=alpine\n", true, true),
            "apk add tmux iproute2"
        );
        assert_eq!(
            advice(both().get(..1).unwrap(), "", false, false),
            "brew install tmux"
        );
        assert_eq!(
            distributions("NAME=\"x\"\nID=a\n").collect::<Vec<_>>(),
            ["a"]
        );
    }
}
