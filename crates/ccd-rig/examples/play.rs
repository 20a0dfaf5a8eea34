//! A rig to play in: starts the fake service with a scenario file (or an echo of defaults), then runs a command with `{…}` replaced:
//! `{cwd}`, `{claude}`, `{root}`, and `{env}` by one `--env K=V` argument for each variable of the rig.
//!
//! `cargo xtask isolate -- target/debug/examples/play scenario.json target/debug/ccd run --cwd {cwd} --claude {claude} {env} hello`
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::process::Command;

use ccd_rig::{rig::Rig, service::Scenario};

fn main() {
    let mut args = std::env::args().skip(1);
    let file = args.next().expect("a scenario file, or -");
    let scenario: Scenario = if file == "-" {
        Scenario::new()
    } else {
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap()
    };
    let rig = Rig::new(scenario).unwrap();
    let mut words = Vec::new();
    for arg in args {
        if arg == "{env}" {
            for (name, value) in rig
                .env()
                .into_iter()
                .filter(|(name, _)| !name.starts_with("TMUX"))
            {
                words.extend(["--env".to_owned(), format!("{name}={value}")]);
            }
            continue;
        }
        words.push(
            arg.replace("{cwd}", rig.cwd().to_str().unwrap())
                .replace("{root}", rig.root().to_str().unwrap())
                .replace("{claude}", rig.claude().unwrap().to_str().unwrap()),
        );
    }
    let (program, rest) = words.split_first().expect("a command");
    let status = Command::new(program)
        .args(rest)
        .env("CCD_STATE_DIR", rig.root().join("state"))
        .status()
        .unwrap();
    eprintln!(
        "play: {status}; {} main requests",
        rig.service().main_requests().len()
    );
    rig.finish().unwrap();
}
