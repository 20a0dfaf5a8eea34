//! The retention window: what is held, what is forgotten, and that a step costs the same whatever came before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeSet;

use ccd_core::DiagnosticKind;
use ccd_model::{
    event::DomainEvent as E,
    observation::{AssistantBlock, PromptOrigin},
    permission::Policy,
};
use support::*;

/// A whole turn with a tool, a request, a message and its transcript.
fn whole_turn(rig: &mut Rig, n: u32) {
    let (p, t, r, m) = (
        format!("p{n}"),
        format!("t{n}"),
        format!("r{n}"),
        format!("m{n}"),
    );
    rig.run(&p, "go");
    rig.tx_prompt(&p, "go", PromptOrigin::Human);
    rig.tx_request(&r, None);
    rig.pre(&p, &t, "Bash", "{}");
    rig.post(&p, &t);
    rig.delta(&p, &format!("d{n}"), 0, "text\n", true);
    rig.later(5).stop(&p, "text");
    rig.tx_block(
        &m,
        0,
        &r,
        AssistantBlock::Text { text: arc("text") },
        Some("end_turn"),
    );
    rig.tx_duration();
    rig.later(5);
}

#[test]
fn the_last_64_ended_turns_are_held_in_full_and_older_ones_are_forgotten() {
    let mut rig = Rig::ready(Policy::Deny);
    for n in 0..100 {
        whole_turn(&mut rig, n);
    }
    let view = rig.view();
    assert_eq!(view.turns.len(), 64);
    assert_eq!(view.turns[0].prompt_id, Some(arc("p36")));
    assert_eq!(view.tools.len(), 64);
    assert!(view.calls.is_empty());
    assert_eq!(
        rig.count(|e| matches!(e, E::TurnSettled { complete: true, .. })),
        100
    );
}

#[test]
fn late_observations_of_forgotten_entities_are_counted_and_make_nothing_new() {
    let mut rig = Rig::ready(Policy::Deny);
    for n in 0..100 {
        whole_turn(&mut rig, n);
    }
    let before = rig.view();
    rig.forget();
    let seen = rig.diagnostics.len();
    rig.stop("p1", "late");
    rig.prompt("p1", "go", ccd_model::observation::Verdict::Foreign);
    rig.tx_prompt("p1", "go", PromptOrigin::Human);
    rig.pre("p1", "t1", "Bash", "{}");
    rig.pre("p1", "t-new", "Bash", "{}");
    rig.post("p1", "t1");
    rig.tx_result("t1", false, None);
    rig.tx_request("r1", None);
    rig.delta("p1", "d1", 3, "x", false);
    rig.tx_interrupted("p1");
    assert!(rig.since().is_empty(), "{:?}", rig.since());
    let after = rig.view();
    assert_eq!(after.turns, before.turns);
    assert_eq!(after.tools, before.tools);
    let kinds: BTreeSet<DiagnosticKind> = rig.diagnostics[seen..].iter().map(|d| d.kind).collect();
    assert_eq!(rig.diagnostics.len() - seen, 10, "each is counted");
    assert!(kinds.is_subset(&BTreeSet::from([
        DiagnosticKind::Late,
        DiagnosticKind::Duplicate,
        DiagnosticKind::Unmatched
    ])));
    assert_eq!(after.diagnostics, rig.diagnostics.len() as u64);
    // Not even under a turn that runs now.
    rig.run("p-now", "go");
    rig.pre("p-now", "t1", "Bash", "{}");
    assert!(
        rig.view()
            .tools
            .iter()
            .all(|tool| &*tool.tool_use_id != "t1")
    );
}

#[test]
fn the_state_does_not_grow_from_turn_100_to_turn_1000() {
    let mut rig = Rig::ready(Policy::Deny);
    let mut sizes = Vec::new();
    for n in 0..1_000 {
        whole_turn(&mut rig, n);
        if n == 199 || n == 999 {
            // Everything the core holds, as text, without what merely counts upwards.
            let text = format!("{:?}", rig.core);
            sizes.push(
                text.matches("Turn {").count()
                    + text.matches("Tool {").count()
                    + text.matches("Message {").count()
                    + text.matches("Request {").count(),
            );
        }
    }
    assert_eq!(sizes[0], sizes[1]);
}
