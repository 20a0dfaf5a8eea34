//! The tables: complete, without doubles, and named by the tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;

use ccd_core::{CADENCES, DEADLINES};
use ccd_model::{
    intent::{Cadence, Intent},
    permission::Policy,
};
use support::*;

#[test]
fn every_deadline_row_has_one_id_and_one_kind() {
    let ids: BTreeSet<&str> = DEADLINES.iter().map(|row| row.id).collect();
    let kinds: BTreeSet<_> = DEADLINES.iter().map(|row| row.row).collect();
    assert_eq!((ids.len(), kinds.len()), (DEADLINES.len(), DEADLINES.len()));
}

#[test]
fn every_deadline_row_is_named_by_a_test() {
    let tests = [
        include_str!("start.rs"),
        include_str!("delivery.rs"),
        include_str!("turns.rs"),
        include_str!("tools.rs"),
        include_str!("permissions.rs"),
        include_str!("interrupt.rs"),
        include_str!("close.rs"),
        include_str!("agents.rs"),
    ]
    .concat();
    for row in DEADLINES {
        let name = row.id.to_lowercase().replace('-', "_");
        let named = tests
            .lines()
            .any(|line| line.starts_with("fn ") && line.contains(&name));
        assert!(named, "no test is named after {}", row.id);
    }
}

fn cadence(id: &str) -> Cadence {
    CADENCES.iter().find(|row| row.id == id).unwrap().cadence
}

fn cadences(rig: &Rig) -> Vec<Cadence> {
    rig.intents
        .iter()
        .filter_map(|i| match i {
            Intent::Cadence(c) => Some(*c),
            _ => None,
        })
        .collect()
}

#[test]
fn the_cadence_follows_what_is_going_on_and_is_told_on_change_only() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.run("p1", "x");
    rig.pre("p1", "t", "Bash", "{}");
    rig.asked(1, "p1", "Bash", "{}");
    rig.post("p1", "t");
    rig.interrupt().unwrap();
    rig.tx_interrupted("p1");
    rig.run("p2", "y");
    rig.stop("p2", "");
    rig.wait(2_000);
    rig.exited(Some(0));
    let rows = [
        "K-START",
        "K-IDLE",
        "K-DELIVERY",
        "K-TURN",
        "K-PERMISSION",
        "K-TURN",
        "K-INTERRUPT",
        "K-IDLE",
        "K-DELIVERY",
        "K-TURN",
        "K-SETTLE",
        "K-IDLE",
        "K-OVER",
    ];
    assert_eq!(cadences(&rig), rows.map(cadence).to_vec());
}

#[test]
fn the_wake_is_the_earliest_deadline() {
    let mut rig = Rig::ready(Policy::Ask);
    rig.send("x");
    let now = rig.now;
    let out = rig.saw(
        ccd_model::fact::Source::Own,
        None,
        ccd_model::observation::Observation::Tick,
    );
    assert_eq!(out.wake, Some(ccd_model::time::Mono(now + 1_300)));
}
