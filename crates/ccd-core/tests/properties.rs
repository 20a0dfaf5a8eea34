//! Properties over random sequences of observations and commands: total, deterministic, nothing reopens, everything ends exactly once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use ccd_core::{Core, Input, Step, step, view};
use ccd_model::{
    command::{Accepted, CloseHow, Command},
    event::DomainEvent as E,
    fact::Source,
    ids::{FileKey, HoldId, OpId, PermissionKey, TurnKey},
    intent::{Intent, IoOp, KeyHeld},
    json::RawJson,
    lattice::Lattice,
    observation::{
        AssistantBlock, LostPart, Observation as O, OpEnd, PromptOrigin, RegistryStatus, Verdict,
    },
    permission::{Decision, HandlerFailure, Policy},
    screen::{Composer, ScreenFacts, StatusLine, Surface},
    status::Lifecycle,
};
use proptest::prelude::*;
use support::*;

/// One random thing that happens.
#[derive(Debug, Clone)]
enum Act {
    Hook(O),
    Tx(O),
    Registry(RegistryStatus),
    Screen(ScreenFacts),
    Same,
    Wait(u64),
    Command(Command),
    /// Ends the n-th operation that is in flight.
    Op(usize, OpEnd),
    /// Acknowledges what is being delivered.
    Receipt(u8, Verdict),
    Exit,
    Lost(LostPart),
    OldLaunch,
}

fn id(prefix: &'static str, n: u8) -> std::sync::Arc<str> {
    arc(&format!("{prefix}{n}"))
}

fn composer() -> impl Strategy<Value = Composer> {
    prop_oneof![
        4 => Just(Composer::Empty),
        2 => (0..3u8).prop_map(|n| text(&format!("prompt {n}"))),
        1 => Just(Composer::Unknown),
        1 => Just(Composer::Shell),
    ]
}

fn surface() -> impl Strategy<Value = Surface> {
    prop_oneof![
        8 => Just(Surface::Main),
        1 => Just(Surface::Blank),
        2 => Just(dialog()),
        1 => Just(Surface::UsageLimitMenu),
        1 => Just(Surface::ExitDialog),
        1 => Just(Surface::UnknownModal { text: arc("?") }),
    ]
}

fn screen() -> impl Strategy<Value = ScreenFacts> {
    let line = prop_oneof![
        4 => Just(StatusLine::None),
        2 => Just(StatusLine::Spinner),
        1 => (1..4u32).prop_map(|attempt| StatusLine::Retrying { reason: arc("x"), seconds: 1, attempt, max: 10 }),
        1 => Just(StatusLine::Stalled { text: arc("quiet") }),
    ];
    (surface(), composer(), line, any::<bool>()).prop_map(
        |(surface, composer, line, interrupted)| {
            let mut f = facts(surface, composer);
            f.status_line = line;
            f.interrupted = interrupted;
            f
        },
    )
}

fn maybe_agent() -> impl Strategy<Value = Option<ccd_model::observation::AgentRef>> {
    prop_oneof![3 => Just(None), 1 => (0..2u8).prop_map(|n| Some(agent(&format!("a{n}"))))]
}

fn hook() -> impl Strategy<Value = O> {
    let p = 0..6u8;
    let t = 0..6u8;
    prop_oneof![
        3 => (p.clone(), t.clone(), maybe_agent(), any::<bool>()).prop_map(|(p, t, agent, deny)| O::ToolPre {
            tool_use_id: id("t", t), name: arc("Bash"), input: RawJson::new("{}"), agent,
            prompt_id: id("p", p), mode: None, denied_by_us: deny.then(|| arc("rule")) }),
        3 => (p.clone(), t.clone(), maybe_agent(), 0..4u8).prop_map(|(p, t, agent, kind)| O::ToolPost {
            tool_use_id: id("t", t), name: arc("Bash"), input: RawJson::new("{}"), result: arc("1"), agent,
            prompt_id: id("p", p), duration_ms: None,
            background_id: (kind == 1).then(|| arc("b1")), agent_id: (kind == 2).then(|| arc("a0")) }),
        1 => (p.clone(), t.clone()).prop_map(|(p, t)| O::ToolFailed {
            tool_use_id: id("t", t), name: arc("Bash"), error: arc("e"), agent: None, prompt_id: id("p", p), duration_ms: None }),
        2 => (p.clone(), t).prop_map(|(p, t)| O::ToolBatch {
            calls: vec![ccd_model::observation::BatchCall { tool_use_id: id("t", t), name: arc("Bash"), response: arc("r") }],
            agent: None, prompt_id: id("p", p) }),
        3 => (p.clone(), 0..8u32, maybe_agent()).prop_map(|(p, h, agent)| O::PermissionAsked {
            hold: HoldId(h), name: arc("Bash"), input: RawJson::new("{}"), agent, prompt_id: id("p", p), suggestions: None }),
        1 => (0..8u32).prop_map(|h| O::PermissionGone { hold: HoldId(h) }),
        1 => (0..8u32).prop_map(|h| O::PermissionExpired { hold: HoldId(h) }),
        3 => (p.clone(), any::<bool>()).prop_map(|(p, active)| O::Stopped {
            prompt_id: id("p", p), text: arc("done"), stop_hook_active: active, background: vec![], mode: None }),
        1 => p.clone().prop_map(|p| O::StopFailed { prompt_id: id("p", p), error: arc("rate_limit"), text: arc("x"), agent: None }),
        1 => (p.clone(), 0..2u8).prop_map(|(p, a)| O::AgentStarted { agent: agent(&format!("a{a}")), prompt_id: id("p", p) }),
        1 => (0..2u8).prop_map(|a| O::AgentStopped { agent: agent(&format!("a{a}")), text: arc("") }),
        2 => (p.clone(), 0..4u8, 0..4u32, any::<bool>()).prop_map(|(p, m, index, last)| O::MessageDelta {
            turn_id: arc("x"), message_id: id("d", m), index, last, delta: arc("l\n"), prompt_id: Some(id("p", p)) }),
        2 => (p, 0..3u8, any::<bool>()).prop_map(|(p, n, task)| O::PromptSeen {
            prompt_id: id("p", p), text: arc(&format!("prompt {n}")), verdict: Verdict::Foreign, mode: None, task_notification: task }),
        1 => Just(O::CompactionStarted { trigger: arc("auto") }),
        1 => Just(O::SessionEnded { reason: arc("other") }),
    ]
}

fn tx() -> impl Strategy<Value = O> {
    let f = FileKey(1);
    prop_oneof![
        2 => (0..6u8, 0..3u8).prop_map(move |(p, n)| O::TxPrompt { file: f, uuid: id("p", p), prompt_id: Some(id("p", p)),
            text: arc(&format!("prompt {n}")), origin: PromptOrigin::Human, meta: false }),
        2 => (0..6u8, 0..7u8).prop_map(move |(r, of)| O::TxApiRequest { file: f, agent: None, id: id("r", r),
            retry_of: (of < 6).then(|| id("r", of)) }),
        2 => (0..6u8, 0..6u8, 0..3u32, any::<bool>()).prop_map(move |(m, r, index, done)| O::TxAssistant { file: f, agent: None,
            message_id: id("m", m), request_ref: Some(id("r", r)), index, block: AssistantBlock::Text { text: arc("l\n") },
            stop_reason: done.then(|| arc("end_turn")), usage: None, model: arc("opus"), aborted: false }),
        1 => (0..6u8, 0..6u8).prop_map(move |(m, t)| O::TxAssistant { file: f, agent: None, message_id: id("m", m), request_ref: None,
            index: 9, block: AssistantBlock::ToolUse { id: id("t", t), name: arc("Bash"), input: RawJson::new("{}") },
            stop_reason: None, usage: None, model: arc("opus"), aborted: true }),
        1 => (0..6u8, any::<bool>()).prop_map(move |(t, denied)| O::TxToolResult { file: f, agent: None, prompt_id: None,
            tool_use_id: id("t", t), is_error: denied, text: arc("r"), denial: denied.then(|| arc("user-rejected")) }),
        1 => (0..6u8).prop_map(move |p| O::TxInterrupted { file: f, agent: None, prompt_id: Some(id("p", p)), for_tool: false, message_id: None }),
        2 => Just(O::TxTurnDuration { file: f, duration_ms: 1, pending_agents: 0 }),
        1 => Just(O::TxPromptBlocked { file: f, reason: arc("no") }),
        1 => Just(O::TxWithdrawn { file: f }),
        1 => (0..6u8, any::<bool>()).prop_map(move |(t, allow)| O::TxPermissionDecision { file: f, tool_use_id: id("t", t), allow }),
    ]
}

fn registry() -> impl Strategy<Value = RegistryStatus> {
    prop_oneof![
        Just(RegistryStatus::Busy),
        Just(RegistryStatus::Idle),
        Just(RegistryStatus::Shell),
        Just(RegistryStatus::Waiting {
            waiting_for: arc("permission prompt")
        }),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    prop_oneof![
        6 => (0..3u8).prop_map(|n| Command::Send { text: arc(&format!("prompt {n}")), as_text: false }),
        1 => Just(Command::Send { text: arc("/help"), as_text: false }),
        2 => (1..8u32).prop_map(|t| Command::Cancel { turn: TurnKey(t) }),
        3 => Just(Command::Interrupt),
        3 => (1..8u32, any::<bool>()).prop_map(|(p, allow)| Command::Decide { permission: PermissionKey(p),
            decision: if allow { Decision::allow() } else { Decision::deny("no") } }),
        1 => (1..8u32).prop_map(|p| Command::HandlerFailed { permission: PermissionKey(p), failure: HandlerFailure::TimedOut }),
    ]
}

fn end() -> impl Strategy<Value = OpEnd> {
    prop_oneof![
        4 => Just(OpEnd::Done),
        6 => Just(OpEnd::Taken { had: arc("") }),
        1 => Just(OpEnd::Held { held: KeyHeld::Dialog }),
        1 => Just(OpEnd::Held { held: KeyHeld::NotPainted }),
        1 => Just(OpEnd::Refused { reason: arc("no") }),
        1 => Just(OpEnd::Unknown),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => hook().prop_map(Act::Hook),
        5 => tx().prop_map(Act::Tx),
        3 => registry().prop_map(Act::Registry),
        4 => screen().prop_map(Act::Screen),
        4 => Just(Act::Same),
        4 => (0..4_000u64).prop_map(Act::Wait),
        6 => command().prop_map(Act::Command),
        12 => (0..4usize, end()).prop_map(|(n, end)| Act::Op(n, end)),
        4 => (0..6u8, prop_oneof![4 => Just(Verdict::Exact), 1 => Just(Verdict::MismatchBlocked)])
            .prop_map(|(p, v)| Act::Receipt(p, v)),
        1 => Just(Act::OldLaunch),
    ]
}

fn last_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Exit),
        1 => Just(Act::Lost(LostPart::HookServer)),
        1 => Just(Act::Command(Command::Close { how: CloseHow::Graceful })),
        1 => Just(Act::Command(Command::Close { how: CloseHow::Kill })),
        1 => Just(Act::Command(Command::Abandon { reason: arc("gave up") })),
    ]
}

/// What random acts did.
struct Run {
    rig: Rig,
    accepted: Vec<TurnKey>,
}

/// Which operations are in flight.
fn in_flight(rig: &Rig) -> Vec<OpId> {
    let ended: BTreeSet<OpId> = rig
        .inputs
        .iter()
        .filter_map(|i| match i {
            Input::Saw { observed, .. } => match &observed.what {
                O::OpEnded { op, .. } => Some(*op),
                _ => None,
            },
            Input::Asked { .. } => None,
        })
        .collect();
    rig.intents
        .iter()
        .filter_map(|i| match i {
            Intent::Io { op, .. } if !ended.contains(op) => Some(*op),
            _ => None,
        })
        .collect()
}

impl Run {
    fn new(policy: Policy, other_stop_hooks: bool) -> Self {
        Self {
            rig: Rig::ready_with(config(policy), other_stop_hooks),
            accepted: Vec::new(),
        }
    }

    fn act(&mut self, act: Act) {
        let rig = &mut self.rig;
        rig.now += 3;
        match act {
            Act::Hook(what) => rig.hook(what),
            Act::Tx(what) => rig.tx(what),
            Act::Registry(status) => rig.registry(status),
            Act::Screen(facts) => rig.screen(facts),
            Act::Same => rig.same(),
            Act::Wait(ms) => rig.wait(ms),
            Act::Command(command) => {
                let send = matches!(command, Command::Send { .. });
                if let (true, Ok(Accepted::Turn { turn })) = (send, rig.ask(command)) {
                    self.accepted.push(turn);
                }
            }
            Act::Op(n, end) => {
                let open = in_flight(rig);
                if let Some(op) = open.get(open.len().saturating_sub(1 + n)) {
                    rig.op(*op, end);
                }
            }
            Act::Receipt(p, verdict) => {
                let guard = rig.intents.iter().rev().find_map(|i| match i {
                    Intent::Arm(guard) => Some(guard.text.to_string()),
                    _ => None,
                });
                if let Some(text) = guard {
                    rig.prompt(&format!("p{p}"), &text, verdict);
                }
            }
            Act::Exit => rig.exited(Some(0)),
            Act::Lost(part) => rig.own(O::Lost { part }),
            Act::OldLaunch => {
                rig.launch = 0;
                rig.saw(
                    Source::Process,
                    None,
                    O::Exited {
                        pid: CLAUDE,
                        code: None,
                        signal: None,
                    },
                );
                rig.launch = 1;
            }
        }
    }

    fn check(&self) {
        let rig = &self.rig;
        ends_once(rig);
        holds_answered_once(rig);
        keys_under_guards(rig);
        let view = rig.view();
        let running = view
            .turns
            .iter()
            .filter(|t| !t.status.is_terminal())
            .count();
        assert!(view.running.is_none() || running > 0);
        assert!(
            view.turns
                .iter()
                .all(|t| t.status.is_terminal() == t.outcome.is_some())
        );
    }
}

/// Every entity begins once and ends at most once, and nothing is said of it in a wrong order.
fn ends_once(rig: &Rig) {
    let mut begun: BTreeMap<String, u32> = BTreeMap::new();
    let mut ended: BTreeMap<String, u32> = BTreeMap::new();
    for event in &rig.events {
        let (key, end) = match event {
            E::TurnStarted { turn, .. } => (turn.to_string(), false),
            E::TurnEnded { turn, .. } => (turn.to_string(), true),
            E::TurnSettled { turn, .. } => (format!("settled {turn}"), true),
            E::ToolProposed { tool, .. } => (tool.to_string(), false),
            E::ToolStarted { tool } => {
                assert!(
                    !ended.contains_key(&tool.to_string()),
                    "{tool} started after its end"
                );
                (format!("started {tool}"), true)
            }
            E::ToolEnded { tool, .. } => (tool.to_string(), true),
            E::PermissionRequested { permission, .. } => (permission.to_string(), false),
            E::PermissionResolved { permission, .. } => (permission.to_string(), true),
            E::AgentStarted { agent, .. } => (agent.to_string(), false),
            E::AgentEnded { agent, .. } => (agent.to_string(), true),
            E::CallStarted { call, .. } => (call.to_string(), false),
            E::CallEnded { call, .. } => (call.to_string(), true),
            E::MessageFinal { message, .. } => (message.to_string(), true),
            E::SessionExited { .. } => ("session".into(), true),
            _ => continue,
        };
        let (count, other) = if end {
            (&mut ended, None)
        } else {
            (&mut begun, Some(()))
        };
        *count.entry(key.clone()).or_default() += 1;
        assert_eq!(count[&key], 1, "{key}: {event:?}");
        if other.is_some() {
            assert!(!ended.contains_key(&key), "{key} began after its end");
        }
    }
}

/// Each held request is answered at most once, and only while it was open.
fn holds_answered_once(rig: &Rig) {
    let mut seen = BTreeSet::new();
    for (hold, _) in rig.answers() {
        assert!(seen.insert(hold), "{hold} answered twice");
    }
}

/// No key without a guard, and never an Enter that does not belong to a text taken just before.
fn keys_under_guards(rig: &Rig) {
    let mut staged = 0_usize;
    let mut entered = 0_usize;
    for intent in &rig.intents {
        if let Intent::Io { what, .. } = intent {
            match what {
                IoOp::Stage { text } if !text.is_empty() => staged += 1,
                IoOp::Key {
                    key: ccd_model::intent::Key::Enter,
                    ..
                } => entered += 1,
                _ => {}
            }
            assert!(entered <= staged, "more Enters than injections");
        }
    }
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Ask),
        Just(Policy::Deny),
        Just(Policy::DangerouslyAllowAll),
        Just(Policy::AllowRead)
    ]
}

fn bytes(inputs: &[Input], policy: Policy) -> String {
    let mut core = Core::new(config(policy));
    let mut out = Step::default();
    let mut all = String::new();
    for input in inputs {
        step(&mut core, input, &mut out);
        all.push_str(&serde_json::to_string(&out).unwrap());
    }
    all.push_str(&serde_json::to_string(&view(&core)).unwrap());
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_sessions_are_total_and_end_everything_exactly_once(
        policy in policies(),
        other_stop_hooks in any::<bool>(),
        acts in prop::collection::vec(act(), 1..150),
        last in last_act(),
    ) {
        let mut run = Run::new(policy, other_stop_hooks);
        for act in acts {
            run.act(act);
            run.check();
        }
        run.act(last);
        run.rig.wait(20_000);
        if run.rig.view().lifecycle != Lifecycle::Exited {
            run.act(Act::Exit);
        }
        run.check();
        let rig = &run.rig;
        prop_assert_eq!(rig.view().lifecycle, Lifecycle::Exited);
        for turn in &run.accepted {
            prop_assert_eq!(rig.outcomes(*turn).len(), 1, "{} has not exactly one outcome", turn);
        }
        let begun = |f: fn(&E) -> Option<String>| rig.events.iter().filter_map(f).collect::<BTreeSet<_>>();
        let asked = begun(|e| match e { E::PermissionRequested { permission, .. } => Some(permission.to_string()), _ => None });
        let ended = begun(|e| match e { E::PermissionResolved { permission, .. } => Some(permission.to_string()), _ => None });
        prop_assert_eq!(asked, ended, "every request ends");
        let tools = begun(|e| match e { E::ToolProposed { tool, .. } => Some(tool.to_string()), _ => None });
        let ended = begun(|e| match e { E::ToolEnded { tool, .. } => Some(tool.to_string()), _ => None });
        prop_assert_eq!(tools, ended, "every tool ends");
        let turns = begun(|e| match e { E::TurnEnded { turn, .. } => Some(turn.to_string()), _ => None });
        let settled = begun(|e| match e { E::TurnSettled { turn, .. } => Some(turn.to_string()), _ => None });
        prop_assert_eq!(turns, settled, "every ended turn settles");
        prop_assert_eq!(rig.intents.iter().filter(|i| **i == Intent::Finish).count(), 1);
        let first = bytes(&rig.inputs, policy);
        prop_assert!(first == bytes(&rig.inputs, policy), "the same inputs give the same bytes");
        let text = serde_json::to_string(&rig.inputs).unwrap();
        let read: Vec<Input> = serde_json::from_str(&text).unwrap();
        prop_assert!(read == rig.inputs, "inputs survive their text form");
    }

    #[test]
    fn a_core_that_never_saw_a_launch_survives_anything(acts in prop::collection::vec(act(), 1..60)) {
        let mut run = Run { rig: Rig::bare(config(Policy::Ask)), accepted: Vec::new() };
        for act in acts {
            run.act(act);
        }
        run.act(Act::Exit);
        for turn in &run.accepted {
            prop_assert_eq!(run.rig.outcomes(*turn).len(), 1);
        }
    }

    #[test]
    fn a_normalised_prompt_normalises_to_itself(text in any::<String>(), as_text in any::<bool>()) {
        let exit = config(Policy::Deny).vocabulary.exit_words;
        if let Ok(once) = ccd_core::normalize(&text, as_text, &exit) {
            let twice = ccd_core::normalize(&once.text, as_text, &exit).unwrap();
            prop_assert_eq!(&twice.text, &once.text);
            prop_assert!(twice.changes.is_empty());
        }
    }
}
