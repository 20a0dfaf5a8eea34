//! A small language for scenarios: a session with a clock, one method for each thing that a channel reports, and assertions on what follows.

#![allow(dead_code, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use ccd_core::{Core, CoreConfig, Input, PathField, ReadOnlyTool, Step, Vocabulary, step, view};
use ccd_model::{
    command::{Accepted, CloseHow, Command, Refusal},
    event::{Alert, DomainEvent as E},
    fact::Source,
    ids::{FileKey, HoldId, Launch, OpId, PermissionKey, Seq, Ticket, TurnKey},
    intent::{Intent, IoOp, Key, KeyHeld, Signal},
    json::RawJson,
    observation::{
        AgentRef, AssistantBlock, BackgroundItem, BatchCall, Launched, Observation as O, Observed,
        OpEnd, PromptOrigin, RegistryStatus, StartSource, Verdict,
    },
    outcome::{Outcome, Usage},
    permission::{Decision, PermissionMode, Policy},
    screen::{Composer, ScreenFacts, StatusLine, Surface},
    spec::Limits,
    time::{Mono, Stamp, Wall},
    view::{TurnView, View},
};

pub(crate) const SESSION: &str = "s-1";
pub(crate) const CLAUDE: u32 = 4_711;

pub(crate) fn arc(text: &str) -> Arc<str> {
    Arc::from(text)
}

pub(crate) fn config(policy: Policy) -> CoreConfig {
    let words = |list: &[&str]| list.iter().map(|w| arc(w)).collect();
    CoreConfig {
        policy,
        mode: PermissionMode::Default,
        workspace_roots: vec![arc("/project")],
        limits: Limits::default(),
        read_only_tools: vec![
            ReadOnlyTool {
                name: arc("Read"),
                paths: vec![PathField {
                    field: arc("file_path"),
                    required: true,
                    relative: false,
                }],
            },
            ReadOnlyTool {
                name: arc("Glob"),
                paths: vec![
                    PathField {
                        field: arc("path"),
                        required: false,
                        relative: false,
                    },
                    PathField {
                        field: arc("pattern"),
                        required: true,
                        relative: true,
                    },
                ],
            },
        ],
        vocabulary: Vocabulary {
            exit_words: words(&["exit", "quit", ":q", ":q!", ":wq", ":wq!"]),
            exit_command: arc("/exit"),
            question_tools: words(&["AskUserQuestion", "ExitPlanMode"]),
            usage_limit_errors: words(&["rate_limit"]),
            usage_limit_texts: words(&["You've hit your "]),
            auth_errors: words(&["authentication_failed"]),
            user_denials: words(&["user-rejected"]),
            background_running: arc("running"),
            switching_ends: words(&["clear", "resume"]),
        },
    }
}

pub(crate) fn facts(surface: Surface, composer: Composer) -> ScreenFacts {
    ScreenFacts {
        surface,
        status_line: StatusLine::None,
        composer,
        mode: None,
        interrupted: false,
        title_busy: None,
        queued: false,
        logged_out: false,
    }
}

pub(crate) fn text(text: &str) -> Composer {
    Composer::Text { text: arc(text) }
}

pub(crate) fn dialog() -> Surface {
    Surface::PermissionDialog {
        title: arc("Bash command"),
        text: arc("touch a"),
    }
}

pub(crate) fn agent(id: &str) -> AgentRef {
    AgentRef {
        id: arc(id),
        kind: arc("general-purpose"),
    }
}

pub(crate) fn background(id: &str) -> BackgroundItem {
    BackgroundItem {
        id: arc(id),
        kind: arc("shell"),
        status: arc("running"),
        description: arc("sleep"),
    }
}

/// A session under test.
pub(crate) struct Rig {
    pub(crate) core: Core,
    pub(crate) now: u64,
    pub(crate) launch: u16,
    seq: u64,
    ticket: u32,
    out: Step,
    /// Everything published so far.
    pub(crate) events: Vec<E>,
    /// Everything asked for so far.
    pub(crate) intents: Vec<Intent>,
    /// Every diagnostic so far.
    pub(crate) diagnostics: Vec<ccd_core::Diagnostic>,
    /// Every input so far.
    pub(crate) inputs: Vec<Input>,
    mark: usize,
    intent_mark: usize,
}

impl Rig {
    /// Before the launch.
    pub(crate) fn bare(config: CoreConfig) -> Self {
        Self {
            core: Core::new(config),
            now: 0,
            launch: 1,
            seq: 0,
            ticket: 0,
            out: Step::default(),
            events: Vec::new(),
            intents: Vec::new(),
            diagnostics: Vec::new(),
            inputs: Vec::new(),
            mark: 0,
            intent_mark: 0,
        }
    }

    /// Launched, not ready.
    pub(crate) fn launched(config: CoreConfig, self_test: bool, other_stop_hooks: bool) -> Self {
        let mut rig = Self::bare(config);
        rig.own(O::Launched(Launched {
            session_id: arc(SESSION),
            resume: false,
            self_test,
            other_stop_hooks,
            pane_pid: 1_000,
        }));
        rig
    }

    /// Ready for prompts, with what led there forgotten.
    pub(crate) fn ready_with(config: CoreConfig, other_stop_hooks: bool) -> Self {
        let mut rig = Self::launched(config, false, other_stop_hooks);
        rig.start_hook();
        rig.empty();
        rig.same();
        assert!(
            rig.events
                .iter()
                .any(|e| matches!(e, E::SessionReady { .. })),
            "not ready: {:?}",
            rig.events
        );
        rig.forget();
        rig
    }

    /// Ready for prompts; no other Stop hooks.
    pub(crate) fn ready(policy: Policy) -> Self {
        Self::ready_with(config(policy), false)
    }

    fn stamp(&mut self) -> Stamp {
        self.seq += 1;
        Stamp {
            seq: Seq(self.seq),
            at: Mono(self.now),
            wall: Wall(1_700_000_000_000 + i64::try_from(self.now).unwrap()),
            launch: Launch(self.launch),
        }
    }

    /// One input; its output is collected.
    pub(crate) fn input(&mut self, input: Input) -> &Step {
        self.inputs.push(input.clone());
        step(&mut self.core, &input, &mut self.out);
        self.events.extend(self.out.events.iter().cloned());
        self.intents.extend(self.out.intents.iter().cloned());
        self.diagnostics
            .extend(self.out.diagnostics.iter().cloned());
        &self.out
    }

    pub(crate) fn saw(&mut self, source: Source, session: Option<&str>, what: O) -> &Step {
        let stamp = self.stamp();
        self.input(Input::Saw {
            stamp,
            observed: Observed {
                source,
                session: session.map(arc),
                what,
            },
        })
    }

    pub(crate) fn ask(&mut self, command: Command) -> Result<Accepted, Refusal> {
        let stamp = self.stamp();
        self.ticket += 1;
        let ticket = Ticket(self.ticket);
        let out = self.input(Input::Asked {
            stamp,
            ticket,
            command,
        });
        assert_eq!(out.replies.len(), 1, "one reply for each command");
        assert_eq!(out.replies[0].0, ticket);
        out.replies[0].1.clone()
    }

    pub(crate) fn hook(&mut self, what: O) {
        self.saw(Source::Hook, Some(SESSION), what);
    }

    pub(crate) fn tx(&mut self, what: O) {
        self.saw(Source::Transcript, Some(SESSION), what);
    }

    pub(crate) fn own(&mut self, what: O) {
        self.saw(Source::Own, None, what);
    }

    /// Lets `ms` pass without anything else, stopping at every wake on the way.
    pub(crate) fn wait(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some(wake) = self.out.wake.filter(|wake| wake.0 <= end) {
            self.now = self.now.max(wake.0);
            self.own(O::Tick);
        }
        self.now = end;
        self.own(O::Tick);
    }

    /// Lets `ms` pass up to the next input.
    pub(crate) fn later(&mut self, ms: u64) -> &mut Self {
        self.now += ms;
        self
    }

    // ---- channels ----

    pub(crate) fn start_hook(&mut self) {
        self.hook(O::SessionStarted {
            start: StartSource::Startup,
            transcript_path: arc("/t/s-1.jsonl"),
            model: Some(arc("opus")),
            claude_pid: Some(CLAUDE),
        });
    }

    pub(crate) fn screen(&mut self, facts: ScreenFacts) {
        self.saw(Source::Screen, None, O::Screen { facts });
    }

    pub(crate) fn same(&mut self) {
        self.saw(Source::Screen, None, O::ScreenSame);
    }

    pub(crate) fn empty(&mut self) {
        self.screen(facts(Surface::Main, Composer::Empty));
    }

    pub(crate) fn registry(&mut self, status: RegistryStatus) {
        self.saw(
            Source::Registry,
            Some(SESSION),
            O::Registry {
                pid: CLAUDE,
                version: arc("2.1.316"),
                status: Some(status),
            },
        );
    }

    pub(crate) fn op(&mut self, op: OpId, end: OpEnd) {
        self.own(O::OpEnded { op, end });
    }

    pub(crate) fn prompt(&mut self, id: &str, text: &str, verdict: Verdict) {
        self.hook(O::PromptSeen {
            prompt_id: arc(id),
            text: arc(text),
            verdict,
            mode: Some(arc("default")),
            task_notification: false,
        });
    }

    pub(crate) fn pre(&mut self, prompt: &str, id: &str, name: &str, input: &str) {
        self.pre_by(None, prompt, id, name, input);
    }

    pub(crate) fn pre_by(
        &mut self,
        agent: Option<AgentRef>,
        prompt: &str,
        id: &str,
        name: &str,
        input: &str,
    ) {
        self.hook(O::ToolPre {
            tool_use_id: arc(id),
            name: arc(name),
            input: RawJson::new(input),
            agent,
            prompt_id: arc(prompt),
            mode: None,
            denied_by_us: None,
        });
    }

    pub(crate) fn post(&mut self, prompt: &str, id: &str) {
        self.post_full(None, prompt, id, None, None);
    }

    pub(crate) fn post_full(
        &mut self,
        agent: Option<AgentRef>,
        prompt: &str,
        id: &str,
        background_id: Option<&str>,
        agent_id: Option<&str>,
    ) {
        self.hook(O::ToolPost {
            tool_use_id: arc(id),
            name: arc("Bash"),
            input: RawJson::new("{}"),
            result: arc("ok"),
            agent,
            prompt_id: arc(prompt),
            duration_ms: Some(7),
            background_id: background_id.map(arc),
            agent_id: agent_id.map(arc),
        });
    }

    pub(crate) fn batch(&mut self, prompt: &str, ids: &[&str]) {
        let calls = ids
            .iter()
            .map(|id| BatchCall {
                tool_use_id: arc(id),
                name: arc("Bash"),
                response: arc("the response"),
            })
            .collect();
        self.hook(O::ToolBatch {
            calls,
            agent: None,
            prompt_id: arc(prompt),
        });
    }

    pub(crate) fn asked(&mut self, hold: u32, prompt: &str, name: &str, input: &str) {
        self.asked_by(None, hold, prompt, name, input);
    }

    pub(crate) fn asked_by(
        &mut self,
        agent: Option<AgentRef>,
        hold: u32,
        prompt: &str,
        name: &str,
        input: &str,
    ) {
        self.hook(O::PermissionAsked {
            hold: HoldId(hold),
            name: arc(name),
            input: RawJson::new(input),
            agent,
            prompt_id: arc(prompt),
            suggestions: None,
        });
    }

    pub(crate) fn delta(
        &mut self,
        prompt: &str,
        message: &str,
        index: u32,
        text: &str,
        last: bool,
    ) {
        self.hook(O::MessageDelta {
            turn_id: arc("x"),
            message_id: arc(message),
            index,
            last,
            delta: arc(text),
            prompt_id: Some(arc(prompt)),
        });
    }

    pub(crate) fn stop(&mut self, prompt: &str, text: &str) {
        self.stop_full(prompt, text, false, vec![]);
    }

    pub(crate) fn stop_full(
        &mut self,
        prompt: &str,
        text: &str,
        stop_hook_active: bool,
        background: Vec<BackgroundItem>,
    ) {
        self.hook(O::Stopped {
            prompt_id: arc(prompt),
            text: arc(text),
            stop_hook_active,
            background,
            mode: None,
        });
    }

    pub(crate) fn stop_failed(&mut self, prompt: &str, error: &str, text: &str) {
        self.hook(O::StopFailed {
            prompt_id: arc(prompt),
            error: arc(error),
            text: arc(text),
            agent: None,
        });
    }

    pub(crate) fn tx_prompt(&mut self, id: &str, text: &str, origin: PromptOrigin) {
        self.tx(O::TxPrompt {
            file: FileKey(1),
            uuid: arc(id),
            prompt_id: Some(arc(id)),
            text: arc(text),
            origin,
            meta: false,
        });
    }

    pub(crate) fn tx_request(&mut self, id: &str, retry_of: Option<&str>) {
        self.tx(O::TxApiRequest {
            file: FileKey(1),
            agent: None,
            id: arc(id),
            retry_of: retry_of.map(arc),
        });
    }

    pub(crate) fn tx_block(
        &mut self,
        message: &str,
        index: u32,
        request: &str,
        block: AssistantBlock,
        stop_reason: Option<&str>,
    ) {
        self.tx(O::TxAssistant {
            file: FileKey(1),
            agent: None,
            message_id: arc(message),
            request_ref: Some(arc(request)),
            index,
            block,
            stop_reason: stop_reason.map(arc),
            usage: Some(Usage {
                input_tokens: 10,
                output_tokens: 5,
                cache_creation_input_tokens: 0,
                cache_read_input_tokens: 1,
            }),
            model: arc("opus"),
            aborted: false,
        });
    }

    pub(crate) fn tx_text(&mut self, message: &str, request: &str, text: &str) {
        let block = AssistantBlock::Text { text: arc(text) };
        self.tx_block(message, 0, request, block, Some("end_turn"));
    }

    pub(crate) fn tx_duration(&mut self) {
        self.tx(O::TxTurnDuration {
            file: FileKey(1),
            duration_ms: 5,
            pending_agents: 0,
        });
    }

    pub(crate) fn tx_result(&mut self, id: &str, is_error: bool, denial: Option<&str>) {
        self.tx(O::TxToolResult {
            file: FileKey(1),
            agent: None,
            prompt_id: None,
            tool_use_id: arc(id),
            is_error,
            text: arc("result"),
            denial: denial.map(arc),
        });
    }

    pub(crate) fn tx_interrupted(&mut self, prompt: &str) {
        self.tx(O::TxInterrupted {
            file: FileKey(1),
            agent: None,
            prompt_id: Some(arc(prompt)),
            for_tool: false,
            message_id: None,
        });
    }

    pub(crate) fn exited(&mut self, code: Option<i32>) {
        self.saw(
            Source::Process,
            None,
            O::Exited {
                pid: CLAUDE,
                code,
                signal: None,
            },
        );
    }

    // ---- commands ----

    pub(crate) fn send(&mut self, text: &str) -> TurnKey {
        match self.ask(Command::Send {
            text: arc(text),
            as_text: false,
        }) {
            Ok(Accepted::Turn { turn }) => turn,
            other => panic!("send: {other:?}"),
        }
    }

    pub(crate) fn interrupt(&mut self) -> Result<Accepted, Refusal> {
        self.ask(Command::Interrupt)
    }

    pub(crate) fn close(&mut self, how: CloseHow) {
        assert_eq!(self.ask(Command::Close { how }), Ok(Accepted::Done));
    }

    pub(crate) fn decide(
        &mut self,
        permission: u32,
        decision: Decision,
    ) -> Result<Accepted, Refusal> {
        self.ask(Command::Decide {
            permission: PermissionKey(permission),
            decision,
        })
    }

    // ---- the input executor, when all goes well ----

    /// The operation of the last intent that `pick` accepts.
    pub(crate) fn last_op(&self, pick: impl Fn(&IoOp) -> bool) -> OpId {
        self.intents
            .iter()
            .rev()
            .find_map(|i| match i {
                Intent::Io { op, what } if pick(what) => Some(*op),
                _ => None,
            })
            .unwrap_or_else(|| panic!("no such operation in {:?}", self.intents))
    }

    pub(crate) fn last_key(&self, wanted: Key) -> OpId {
        self.last_op(|op| matches!(op, IoOp::Key { key, .. } if *key == wanted))
    }

    pub(crate) fn last_stage(&self) -> OpId {
        self.last_op(|op| matches!(op, IoOp::Stage { .. }))
    }

    /// The editor took what is staged.
    pub(crate) fn take(&mut self) {
        let key = self.last_key(Key::CtrlG);
        self.op(key, OpEnd::Done);
        let stage = self.last_stage();
        self.op(stage, OpEnd::Taken { had: arc("") });
    }

    /// Enter was pressed.
    pub(crate) fn enter(&mut self) {
        let op = self.last_key(Key::Enter);
        self.op(op, OpEnd::Done);
    }

    /// The composer was cleared and is seen empty twice.
    pub(crate) fn cleared(&mut self) {
        self.take();
        self.later(15).empty();
        self.later(15).same();
    }

    /// Sends, delivers and acknowledges a prompt.
    pub(crate) fn run(&mut self, id: &str, prompt: &str) -> TurnKey {
        let turn = self.send(prompt);
        self.deliver(id, prompt);
        turn
    }

    /// Delivers and acknowledges what is being delivered.
    pub(crate) fn deliver(&mut self, id: &str, prompt: &str) {
        self.later(20).take();
        self.later(20).enter();
        self.later(10).prompt(id, prompt, Verdict::Exact);
    }

    // ---- what followed ----

    /// Forgets what has followed so far: `since` begins here.
    pub(crate) fn forget(&mut self) {
        self.mark = self.events.len();
        self.intent_mark = self.intents.len();
    }

    /// Events since the last `forget`.
    pub(crate) fn since(&self) -> &[E] {
        &self.events[self.mark..]
    }

    /// Intents since the last `forget`.
    pub(crate) fn intents_since(&self) -> &[Intent] {
        &self.intents[self.intent_mark..]
    }

    pub(crate) fn view(&self) -> View {
        view(&self.core)
    }

    pub(crate) fn turn(&self, turn: TurnKey) -> TurnView {
        self.view()
            .turns
            .into_iter()
            .find(|t| t.turn == turn)
            .unwrap_or_else(|| panic!("no turn {turn}"))
    }

    /// Outcomes of `turn`, in order: exactly one once it has ended.
    pub(crate) fn outcomes(&self, turn: TurnKey) -> Vec<Outcome> {
        self.events
            .iter()
            .filter_map(|e| match e {
                E::TurnEnded {
                    turn: t, outcome, ..
                } if *t == turn => Some(outcome.clone()),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn alerts(&self) -> Vec<Alert> {
        self.events
            .iter()
            .filter_map(|e| match e {
                E::Alert(alert) => Some(alert.clone()),
                _ => None,
            })
            .collect()
    }

    /// How many events since the last `forget` satisfy `pred`.
    pub(crate) fn count(&self, pred: impl Fn(&E) -> bool) -> usize {
        self.since().iter().filter(|e| pred(e)).count()
    }

    /// Operations since the last `forget` that satisfy `pred`.
    pub(crate) fn ops(&self, pred: impl Fn(&IoOp) -> bool) -> usize {
        self.intents_since()
            .iter()
            .filter(|i| matches!(i, Intent::Io { what, .. } if pred(what)))
            .count()
    }

    pub(crate) fn keys(&self, wanted: Key) -> usize {
        self.ops(|op| matches!(op, IoOp::Key { key, .. } if *key == wanted))
    }

    pub(crate) fn staged(&self, wanted: &str) -> usize {
        self.ops(|op| matches!(op, IoOp::Stage { text } if **text == *wanted))
    }

    pub(crate) fn signals(&self, wanted: Signal) -> usize {
        self.ops(|op| matches!(op, IoOp::Signal { signal } if *signal == wanted))
    }

    pub(crate) fn answers(&self) -> Vec<(HoldId, Decision)> {
        self.intents
            .iter()
            .filter_map(|i| match i {
                Intent::Answer { hold, decision } => Some((*hold, decision.clone())),
                _ => None,
            })
            .collect()
    }

    /// Holds a key back.
    pub(crate) fn held(&mut self, key: Key, held: KeyHeld) {
        let op = self.last_key(key);
        self.op(op, OpEnd::Held { held });
    }
}
