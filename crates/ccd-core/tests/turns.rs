//! How turns stop: Stop and StopFailure, other Stop hooks, the transcript, silence, prompts of others, settlement.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use ccd_model::{
    event::{Alert, DomainEvent as E},
    ids::{FileKey, TurnKey},
    intent::Key,
    observation::{
        ApiError, AssistantBlock, Observation as O, PromptOrigin, RegistryStatus, Verdict,
    },
    outcome::{Origin, Outcome, Usage},
    permission::Policy,
    screen::{Composer, StatusLine, Surface},
    status::{AgentStatus, TurnStatus},
};
use support::*;

fn settled(rig: &Rig, turn: TurnKey) -> Vec<(bool, Option<Usage>)> {
    rig.events
        .iter()
        .filter_map(|e| match e {
            E::TurnSettled {
                turn: t,
                complete,
                usage,
                ..
            } if *t == turn => Some((*complete, *usage)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_stop_ends_the_turn_at_once_where_no_other_stop_hook_exists() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "hello");
    assert_eq!(rig.view().running, Some(turn));
    rig.stop("p1", "Hi there.");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
    assert_eq!(&*rig.turn(turn).text, "Hi there.");
    assert_eq!(rig.view().status, AgentStatus::Idle);
}

#[test]
fn a_duplicated_or_late_stop_changes_nothing() {
    let mut rig = Rig::ready(Policy::Deny);
    let a = rig.run("p1", "one");
    for _ in 0..13 {
        rig.stop("p1", "done");
    }
    assert_eq!(rig.outcomes(a), vec![Outcome::Completed]);
    let b = rig.run("p2", "two");
    rig.stop("p1", "done");
    assert_eq!(rig.turn(b).status, TurnStatus::Running);
}

#[test]
fn a_stop_for_an_unknown_prompt_is_a_diagnostic() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.stop("p77", "?");
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    assert_eq!(rig.view().turns.len(), 1);
    assert_eq!(
        rig.diagnostics.last().unwrap().kind,
        ccd_core::DiagnosticKind::Unmatched
    );
}

#[test]
fn t4_with_other_stop_hooks_the_end_needs_the_duration_line_or_the_registry() {
    for by_registry in [true, false] {
        let mut rig = Rig::ready_with(config(Policy::Deny), true);
        let turn = rig.run("p1", "one");
        rig.later(50).registry(RegistryStatus::Busy);
        rig.later(50).stop("p1", "done");
        assert_eq!(rig.turn(turn).status, TurnStatus::Stopping);
        assert_eq!(rig.count(|e| matches!(e, E::TurnStopping { .. })), 1);
        rig.later(80);
        if by_registry {
            rig.registry(RegistryStatus::Idle);
        } else {
            rig.tx_duration();
        }
        assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
    }
}

#[test]
fn t5_a_stopping_turn_goes_on_when_a_stop_hook_blocked_it() {
    let mut rig = Rig::ready_with(config(Policy::Deny), true);
    let turn = rig.run("p1", "one");
    rig.stop("p1", "first");
    rig.later(300).pre("p1", "tool", "Bash", "{}");
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    assert_eq!(rig.count(|e| matches!(e, E::TurnContinued { .. })), 1);
    rig.post("p1", "tool");
    rig.stop_full("p1", "second", true, vec![]);
    rig.stop_full("p1", "third", true, vec![]);
    assert_eq!(rig.count(|e| matches!(e, E::TurnContinued { .. })), 2);
    assert_eq!(rig.turn(turn).status, TurnStatus::Stopping);
    rig.later(80).registry(RegistryStatus::Idle);
    assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
    assert_eq!(&*rig.turn(turn).text, "third");
}

#[test]
fn a_request_line_soon_after_a_stop_is_late_and_later_it_is_a_continuation() {
    let mut rig = Rig::ready_with(config(Policy::Deny), true);
    let turn = rig.run("p1", "one");
    rig.stop("p1", "first");
    rig.later(200).tx_request("r1", None);
    assert_eq!(rig.turn(turn).status, TurnStatus::Stopping);
    rig.later(1_000).tx_request("r2", None);
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
}

#[test]
fn a_second_round_reveals_stop_hooks_that_nobody_announced() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.stop_full("p1", "again", true, vec![]);
    assert_eq!(rig.turn(turn).status, TurnStatus::Stopping);
}

#[test]
fn something_after_an_end_by_stop_is_told_and_never_reopens_the_turn() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.stop("p1", "done");
    rig.pre("p1", "late", "Bash", "{}");
    assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
    assert!(matches!(rig.alerts().as_slice(), [Alert::Conflict { .. }]));
    assert!(rig.view().tools.is_empty());
    let next = rig.run("p2", "two");
    rig.stop("p2", "done");
    assert_eq!(
        rig.turn(next).status,
        TurnStatus::Stopping,
        "from now on Stop is not the end"
    );
}

#[test]
fn a_failure_ends_the_turn_with_class_and_message() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.stop_failed("p1", "server_error", "API Error: 529");
    assert_eq!(
        rig.outcomes(turn),
        vec![Outcome::Failed {
            error: arc("server_error"),
            message: arc("API Error: 529")
        }]
    );
}

#[test]
fn d_wake_a_usage_limit_is_reached_gets_its_reset_time_and_is_cleared_by_it() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.stop_failed("p1", "rate_limit", "You've hit your limit");
    assert_eq!(rig.view().usage_limit, Some(None));
    assert_eq!(rig.view().status, AgentStatus::UsageLimited);
    // The wall clock of the rig starts at 1_700_000_000 s.
    let resets_at = Some(1_700_000_060);
    rig.tx(O::TxApiError {
        file: FileKey(1),
        prompt_id: Some(arc("p1")),
        error: ApiError {
            error: arc("rate_limit"),
            status: Some(429),
            text: arc("You've hit your limit"),
            resets_at,
        },
    });
    assert_eq!(rig.view().usage_limit, Some(resets_at));
    assert_eq!(rig.count(|e| matches!(e, E::UsageLimitReached { .. })), 2);
    rig.wait(60_000);
    assert_eq!(rig.view().usage_limit, None);
    assert_eq!(rig.count(|e| matches!(e, E::UsageLimitCleared)), 1);
    assert_eq!(rig.outcomes(turn).len(), 1);
}

#[test]
fn a_missing_login_is_a_status_until_the_next_answer() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "one");
    rig.stop_failed("p1", "authentication_failed", "Please run /login");
    assert_eq!(rig.view().status, AgentStatus::AuthRequired);
    rig.run("p2", "two");
    rig.stop("p2", "back");
    assert_eq!(rig.view().status, AgentStatus::Idle);
}

#[test]
fn a_stop_that_never_comes_is_replaced_by_registry_and_duration_in_either_order() {
    for registry_first in [true, false] {
        let mut rig = Rig::ready(Policy::Deny);
        let turn = rig.run("p1", "one");
        rig.later(50).tx_prompt("p1", "one", PromptOrigin::Human);
        rig.later(50).registry(RegistryStatus::Busy);
        rig.tx_request("r1", None);
        rig.tx_text("m1", "r1", "the answer");
        rig.later(100);
        if registry_first {
            rig.registry(RegistryStatus::Idle);
            assert_eq!(rig.outcomes(turn), vec![]);
            rig.tx_duration();
        } else {
            rig.tx_duration();
            assert_eq!(rig.outcomes(turn), vec![]);
            rig.registry(RegistryStatus::Idle);
        }
        assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
        assert_eq!(&*rig.turn(turn).text, "the answer");
    }
}

#[test]
fn an_error_line_stands_in_for_a_failure_hook_that_never_came() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.tx(O::TxApiError {
        file: FileKey(1),
        prompt_id: Some(arc("p1")),
        error: ApiError {
            error: arc("unknown"),
            status: Some(400),
            text: arc("API Error: 400"),
            resets_at: None,
        },
    });
    rig.registry(RegistryStatus::Idle);
    rig.tx_duration();
    assert!(matches!(
        rig.outcomes(turn).as_slice(),
        [Outcome::Failed { .. }]
    ));
}

#[test]
fn d_quiet_silence_without_evidence_is_unknown() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.later(50).registry(RegistryStatus::Busy);
    rig.later(50).registry(RegistryStatus::Idle);
    rig.empty();
    rig.wait(9_999);
    assert_eq!(rig.outcomes(turn), vec![]);
    rig.wait(1);
    assert!(matches!(
        rig.outcomes(turn).as_slice(),
        [Outcome::Unknown { .. }]
    ));
}

#[test]
fn d_quiet_waits_on_while_something_still_works() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.registry(RegistryStatus::Idle);
    let mut busy = facts(Surface::Main, Composer::Empty);
    busy.status_line = StatusLine::Spinner;
    rig.screen(busy);
    rig.wait(30_000);
    assert_eq!(rig.outcomes(turn), vec![]);
    rig.registry(RegistryStatus::Busy);
    rig.empty();
    rig.wait(30_000);
    assert_eq!(rig.outcomes(turn), vec![], "the registry said busy again");
}

#[test]
fn d_settle_the_transcript_settles_a_turn_with_usage_counted_once() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.later(50).tx_prompt("p1", "one", PromptOrigin::Human);
    rig.tx_request("r1", None);
    rig.stop("p1", "answer");
    assert_eq!(settled(&rig, turn), vec![]);
    rig.later(100);
    rig.tx_block(
        "m1",
        0,
        "r1",
        AssistantBlock::Thinking { text: arc("hm") },
        Some("end_turn"),
    );
    rig.tx_block(
        "m1",
        1,
        "r1",
        AssistantBlock::Text {
            text: arc("answer"),
        },
        Some("end_turn"),
    );
    rig.tx_block(
        "m1",
        1,
        "r1",
        AssistantBlock::Text {
            text: arc("answer"),
        },
        Some("end_turn"),
    );
    rig.tx_duration();
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 1,
    };
    assert_eq!(settled(&rig, turn), vec![(true, Some(usage))]);
    assert_eq!(rig.count(|e| matches!(e, E::ThinkingFinal { .. })), 1);

    let other = rig.run("p2", "two");
    rig.stop("p2", "x");
    rig.wait(1_500);
    assert_eq!(settled(&rig, other), vec![(false, None)]);
}

#[test]
fn late_lines_of_the_turn_before_do_not_end_the_turn_that_runs() {
    let mut rig = Rig::ready(Policy::Deny);
    let a = rig.run("p1", "one");
    rig.later(50).tx_prompt("p1", "one", PromptOrigin::Human);
    rig.stop("p1", "first");
    let b = rig.run("p2", "two");
    // The registry's idle of the first turn and its transcript lines come while the second runs.
    rig.registry(RegistryStatus::Idle);
    rig.tx_request("r1", None);
    rig.tx_text("m1", "r1", "first");
    rig.tx_duration();
    assert_eq!(settled(&rig, a).len(), 1);
    assert_eq!(rig.turn(b).status, TurnStatus::Running);
    let calls = rig.count(|e| matches!(e, E::CallStarted { .. }));
    assert_eq!(calls, 0, "the request was the first turn's");
    let text_of = rig.since().iter().find_map(|e| match e {
        E::MessageFinal { turn, .. } => Some(*turn),
        _ => None,
    });
    assert_eq!(text_of, Some(Some(a)));
    rig.tx_prompt("p2", "two", PromptOrigin::Human);
    rig.tx_request("r2", None);
    assert_eq!(rig.view().calls[0].turn, Some(b));
}

#[test]
fn a_foreign_prompt_runs_as_an_attached_turn_and_holds_ours() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.prompt("h1", "typed by hand", Verdict::Foreign);
    let attached = rig.view().running.unwrap();
    assert_eq!(rig.turn(attached).origin, Origin::Attached);
    let ours = rig.send("ours");
    assert_eq!(rig.turn(ours).status, TurnStatus::Queued);
    // Queued inside the running turn: merged, no turn of its own.
    rig.prompt("h1", "and another", Verdict::Foreign);
    assert_eq!(rig.view().turns.len(), 2);
    rig.stop("h1", "done");
    assert_eq!(rig.outcomes(attached), vec![Outcome::Completed]);
    assert_eq!(rig.turn(ours).status, TurnStatus::Submitting);
}

#[test]
fn a_queued_foreign_prompt_appears_with_a_new_id_in_the_transcript_or_in_any_hook() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "one");
    rig.stop("p1", "");
    rig.tx_prompt("p2", "typed while it ran", PromptOrigin::Human);
    let attached = rig.view().running.unwrap();
    assert_eq!(&*rig.turn(attached).prompt, "typed while it ran");
    rig.stop("p2", "");

    rig.pre("p3", "u", "Bash", "{}");
    let other = rig.view().running.unwrap();
    assert_eq!(&*rig.turn(other).prompt, "");
    rig.tx_prompt("p3", "go on", PromptOrigin::AutoContinue);
    assert_eq!(rig.turn(other).origin, Origin::AutoContinue);
    assert_eq!(&*rig.turn(other).prompt, "go on");
}

#[test]
fn lines_that_are_no_prompts_open_no_turn() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.tx_prompt("c1", "<command-name>", PromptOrigin::Other);
    rig.tx(O::TxPrompt {
        file: FileKey(1),
        uuid: arc("u"),
        prompt_id: Some(arc("c2")),
        text: arc("caveat"),
        origin: PromptOrigin::Human,
        meta: true,
    });
    assert!(rig.view().turns.is_empty());
}

#[test]
fn d_superseded_a_turn_overtaken_by_another_waits_for_its_end_and_is_unknown_without_one() {
    for stop_comes in [true, false] {
        let mut rig = Rig::ready(Policy::Deny);
        let turn = rig.run("p1", "one");
        rig.prompt("h1", "typed", Verdict::Foreign);
        assert_eq!(rig.turn(turn).status, TurnStatus::Stopping);
        let attached = rig.view().running.unwrap();
        assert_ne!(attached, turn);
        if stop_comes {
            rig.later(20).stop("p1", "late Stop");
            assert_eq!(rig.outcomes(turn), vec![Outcome::Completed]);
        } else {
            rig.wait(1_500);
            assert!(matches!(
                rig.outcomes(turn).as_slice(),
                [Outcome::Unknown { .. }]
            ));
        }
        assert_eq!(rig.turn(attached).status, TurnStatus::Running);
    }
}

#[test]
fn a_withdrawn_prompt_that_another_followed_is_withdrawn_when_the_transcript_says_so() {
    let mut rig = Rig::ready(Policy::Deny);
    let turn = rig.run("p1", "one");
    rig.prompt("h1", "typed", Verdict::Foreign);
    rig.tx(O::TxWithdrawn { file: FileKey(1) });
    assert_eq!(rig.outcomes(turn), vec![Outcome::Withdrawn]);
}

#[test]
fn a_new_session_id_opens_a_generation_and_old_ones_do_not_touch_the_turn() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.saw(
        ccd_model::fact::Source::Hook,
        Some("s-2"),
        O::SessionStarted {
            start: ccd_model::observation::StartSource::Clear,
            transcript_path: arc("/t/s-2.jsonl"),
            model: None,
            claude_pid: None,
        },
    );
    assert_eq!(
        rig.count(|e| matches!(e, E::GenerationChanged { generation, .. } if generation.0 == 2)),
        1
    );
    assert_eq!(rig.view().transcript_path, Some(arc("/t/s-2.jsonl")));
    let turn = rig.send("hello");
    rig.take();
    rig.enter();
    rig.saw(
        ccd_model::fact::Source::Hook,
        Some("s-2"),
        O::PromptSeen {
            prompt_id: arc("p1"),
            text: arc("hello"),
            verdict: Verdict::Exact,
            mode: None,
            task_notification: false,
        },
    );
    // The rig's own helper still names the old conversation.
    rig.stop("p1", "of the old one");
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
    assert_eq!(
        rig.diagnostics.last().unwrap().kind,
        ccd_core::DiagnosticKind::OldGeneration
    );
}

#[test]
fn the_registry_can_be_first_with_a_new_session_id() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.saw(
        ccd_model::fact::Source::Registry,
        Some("s-2"),
        O::Registry {
            pid: CLAUDE,
            version: arc("2.1.316"),
            status: Some(RegistryStatus::Idle),
        },
    );
    assert_eq!(&*rig.view().session_id, "s-2");
    assert_eq!(rig.view().generation.0, 2);
    rig.saw(
        ccd_model::fact::Source::Hook,
        Some("s-2"),
        O::SessionStarted {
            start: ccd_model::observation::StartSource::Clear,
            transcript_path: arc("/t/s-2.jsonl"),
            model: None,
            claude_pid: None,
        },
    );
    assert_eq!(rig.count(|e| matches!(e, E::GenerationChanged { .. })), 1);
    assert_eq!(rig.view().transcript_path, Some(arc("/t/s-2.jsonl")));
}

#[test]
fn mode_and_model_changes_are_published_once() {
    let mut rig = Rig::ready(Policy::Deny);
    let mut plan = facts(Surface::Main, Composer::Empty);
    plan.mode = Some(arc("plan"));
    rig.screen(plan);
    rig.same();
    assert_eq!(rig.view().mode, Some(arc("plan")));
    rig.hook(O::ModelSwitched { to: arc("sonnet") });
    rig.hook(O::ModelSwitched { to: arc("sonnet") });
    assert_eq!(rig.count(|e| matches!(e, E::ModeChanged { .. })), 1);
    assert_eq!(rig.count(|e| matches!(e, E::ModelChanged { .. })), 1);
    assert_eq!(rig.view().model, Some(arc("sonnet")));
}

#[test]
fn compaction_is_a_status_and_ends_once() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "one");
    rig.hook(O::CompactionStarted {
        trigger: arc("auto"),
    });
    assert_eq!(rig.view().status, AgentStatus::Compacting);
    rig.tx(O::TxCompacted { file: FileKey(1) });
    rig.hook(O::CompactionEnded {
        trigger: arc("auto"),
    });
    assert_eq!(rig.count(|e| matches!(e, E::CompactionEnded)), 1);
}

#[test]
fn prompts_listed_as_queued_on_an_idle_screen_are_not_idle() {
    let mut rig = Rig::ready(Policy::Deny);
    let mut queued = facts(Surface::Main, Composer::Empty);
    queued.queued = true;
    rig.screen(queued);
    rig.same();
    assert_eq!(rig.view().status, AgentStatus::Unknown);
}

#[test]
fn a_conversation_that_is_resumed_inside_the_session_is_a_generation_again() {
    let mut rig = Rig::ready(Policy::Deny);
    for (id, start) in [
        ("s-2", ccd_model::observation::StartSource::Clear),
        (SESSION, ccd_model::observation::StartSource::Resume),
    ] {
        rig.saw(
            ccd_model::fact::Source::Hook,
            Some(id),
            O::SessionStarted {
                start,
                transcript_path: arc(&format!("/t/{id}.jsonl")),
                model: None,
                claude_pid: None,
            },
        );
    }
    assert_eq!(rig.view().generation.0, 3);
    let turn = rig.run("p1", "back again");
    assert_eq!(rig.turn(turn).status, TurnStatus::Running);
}

#[test]
fn many_held_prompts_are_not_looked_at_one_by_one() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p0", "go");
    let held: Vec<TurnKey> = (0..500).map(|n| rig.send(&format!("held {n}"))).collect();
    assert!(!rig.view().quiescent);
    rig.stop("p0", "");
    rig.deliver("p1", "held 0");
    rig.exited(Some(0));
    assert!(held.iter().all(|turn| rig.outcomes(*turn).len() == 1));
}

#[test]
fn d_menu_after_a_usage_limit_prompts_wait_until_the_menu_has_come_and_gone() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "one");
    rig.stop_failed("p1", "rate_limit", "You've hit your 5-hour limit");
    let turn = rig.send("two");
    rig.empty();
    assert_eq!(rig.turn(turn).status, TurnStatus::Queued);
    let menu = facts(Surface::UsageLimitMenu, Composer::Unknown);
    rig.screen(menu);
    rig.same();
    assert_eq!(rig.keys(Key::Escape), 1);
    assert_eq!(rig.turn(turn).status, TurnStatus::Queued);
    rig.empty();
    assert_eq!(rig.turn(turn).status, TurnStatus::Submitting);
}

#[test]
fn d_menu_without_a_menu_prompts_are_delivered_after_the_wait() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "one");
    rig.stop_failed("p1", "rate_limit", "You've hit your 5-hour limit");
    let turn = rig.send("two");
    rig.empty();
    rig.wait(3_900);
    assert_eq!(rig.turn(turn).status, TurnStatus::Queued);
    rig.wait(200);
    assert_eq!(rig.turn(turn).status, TurnStatus::Submitting);
}

#[test]
fn a_passing_rate_limit_is_no_usage_limit() {
    let mut rig = Rig::ready(Policy::Deny);
    rig.run("p1", "one");
    rig.stop_failed(
        "p1",
        "rate_limit",
        "API Error: Server is temporarily limiting requests (not your usage limit)",
    );
    assert_eq!(rig.view().usage_limit, None);
    let turn = rig.send("two");
    rig.empty();
    assert_eq!(rig.turn(turn).status, TurnStatus::Submitting);
}

#[test]
fn turns_with_the_same_answer_keep_their_own_text_and_usage() {
    let mut rig = Rig::ready(Policy::Deny);
    let mut ended = Vec::new();
    for n in 1..=3 {
        let (prompt, request, message) = (format!("p{n}"), format!("r{n}"), format!("msg{n}"));
        let turn = rig.run(&prompt, "again");
        rig.stop(&prompt, "ok");
        // The transcript catches up only after the end, and the request may stand before its prompt.
        rig.tx_request(&request, None);
        rig.tx_prompt(&prompt, "again", PromptOrigin::Human);
        rig.tx_text(&message, &request, "ok");
        rig.tx_duration();
        rig.empty();
        ended.push(turn);
    }
    for turn in ended {
        let view = rig.turn(turn);
        assert_eq!(&*view.text, "ok");
        assert!(view.usage.is_some(), "{turn} has no usage");
        assert!(view.settled);
    }
}
