//! A Claude that lives in memory: it reacts to keys, guards and answers as the real one does, and speaks through raw records.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use ccd_model::{
    ids::{FileKey, HoldId, Launch, OpId},
    intent::{Key, KeyGuard, PromptGuard, Signal},
    json::RawJson,
    observation::{LostPart, OpEnd, Verdict},
    time::Mono,
};
use ccd_ports::{
    clock::Clock,
    inbox::Inbox,
    raw::{HookRecord, PaneMeta, Raw},
    session::{Editor, Hooks, Pane, Process, RegistryFile, Tail},
};
use serde_json::{Value, json};

use super::clock::ManualClock;

/// Pid of the process in the pane, which is Claude itself.
pub(crate) const PID: u32 = 4_711;
const TOOL_ID: &str = "toolu_01";

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    None,
    /// Works until it is interrupted.
    Working,
    /// A permission request is held.
    Asking(HoldId),
}

struct Mind {
    inbox: Option<(Launch, Arc<dyn Inbox>)>,
    clock: ManualClock,
    session: String,
    transcript: String,
    file: Option<FileKey>,
    lines: VecDeque<String>,
    offset: u64,
    guard: Option<PromptGuard>,
    staged: Option<(OpId, Arc<str>)>,
    composer: String,
    history: Vec<String>,
    turn: Turn,
    prompts: u32,
    holds: u32,
    told: Option<String>,
    same: u8,
    exited: bool,
    /// A self-test prompt was blocked.
    self_tests: u32,
    replies: Vec<(HoldId, RawJson)>,
    signals: Vec<Signal>,
    silent: bool,
}

/// Claude and every adapter to it.
#[derive(Clone)]
pub(crate) struct Claude(Arc<Mutex<Mind>>);

impl Claude {
    pub(crate) fn new(clock: ManualClock) -> Self {
        Self(Arc::new(Mutex::new(Mind {
            inbox: None,
            clock,
            session: String::new(),
            transcript: String::new(),
            file: None,
            lines: VecDeque::new(),
            offset: 0,
            guard: None,
            staged: None,
            composer: String::new(),
            history: Vec::new(),
            turn: Turn::None,
            prompts: 0,
            holds: 0,
            told: None,
            same: 0,
            exited: false,
            self_tests: 0,
            replies: Vec::new(),
            signals: Vec::new(),
            silent: false,
        })))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Mind) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    /// From now on Claude starts without ever saying so.
    pub(crate) fn be_silent(&self) {
        self.with(|mind| mind.silent = true);
    }

    /// The process begins.
    pub(crate) fn start(&self, launch: Launch, inbox: Arc<dyn Inbox>, session: &str) {
        self.with(|mind| {
            mind.inbox = Some((launch, inbox));
            mind.session = session.to_owned();
            mind.transcript = format!("/home/user/.claude/projects/-work/{session}.jsonl");
            if !mind.silent {
                mind.hook(
                    "SessionStart",
                    json!({"source": "startup", "model": "claude-x"}),
                );
                mind.registry("idle");
            }
        });
    }

    /// Answers that were given to held requests.
    pub(crate) fn replies(&self) -> Vec<Value> {
        self.with(|mind| {
            let replies = mind.replies.iter();
            replies.map(|(_, reply)| reply.value().unwrap()).collect()
        })
    }

    pub(crate) fn signals(&self) -> Vec<Signal> {
        self.with(|mind| mind.signals.clone())
    }

    pub(crate) fn self_tests(&self) -> u32 {
        self.with(|mind| mind.self_tests)
    }

    /// A part of the machinery is lost.
    pub(crate) fn lose(&self, part: LostPart) {
        self.with(|mind| mind.push(Raw::Lost { part }));
    }
}

impl Mind {
    fn push(&self, raw: Raw) {
        if let Some((launch, inbox)) = &self.inbox {
            inbox.push(*launch, self.clock.now(), raw);
        }
    }

    fn end(&self, op: OpId, end: OpEnd) {
        self.push(Raw::OpEnded { op, end });
    }

    fn prompt_id(&self) -> String {
        format!("prompt-{}", self.prompts)
    }

    fn hook_with(
        &self,
        event: &str,
        hold: Option<HoldId>,
        verdict: Option<Verdict>,
        fields: Value,
    ) {
        let mut body = json!({
            "session_id": self.session,
            "transcript_path": self.transcript,
            "cwd": "/work",
            "hook_event_name": event,
            "permission_mode": "default",
        });
        if event != "SessionStart" {
            body["prompt_id"] = self.prompt_id().into();
        }
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.push(Raw::Hook(HookRecord {
            event: event.into(),
            hold,
            verdict,
            denied_by: None,
            claude_pid: Some(PID),
            body: RawJson::from(&body),
        }));
    }

    fn hook(&self, event: &str, fields: Value) {
        self.hook_with(event, None, None, fields);
    }

    fn registry(&self, status: &str) {
        let body = json!({
            "pid": PID, "sessionId": self.session, "cwd": "/work", "version": "2.1.316",
            "kind": "interactive", "status": status,
        });
        self.push(Raw::Registry {
            body: RawJson::from(&body),
        });
    }

    /// Writes a transcript line and lets the follower see it.
    fn line(&mut self, fields: Value) {
        let mut line = json!({
            "parentUuid": null, "isSidechain": false, "userType": "external", "entrypoint": "cli",
            "cwd": "/work", "sessionId": self.session, "version": "2.1.316", "gitBranch": "HEAD",
            "uuid": format!("uuid-{}", self.offset), "timestamp": "2026-12-01T00:31:42.576Z",
            "promptId": self.prompt_id(),
        });
        for (name, value) in fields.as_object().unwrap() {
            line[name] = value.clone();
        }
        self.lines.push_back(line.to_string());
        self.flush();
    }

    fn flush(&mut self) {
        let Some(file) = self.file else { return };
        while let Some(text) = self.lines.pop_front() {
            let offset = self.offset;
            self.offset += text.len() as u64 + 1;
            self.push(Raw::Line {
                file,
                offset,
                text: text.into(),
            });
        }
    }

    fn screen(&self) -> String {
        let rule = "─".repeat(250);
        let mut rows: Vec<String> = self.history.clone();
        if self.turn != Turn::None {
            rows.push("✻ Pondering… (1s)".into());
        }
        rows.push(rule.clone());
        if let Turn::Asking(_) = self.turn {
            rows.push(" Bash command".into());
            rows.push("   echo hi".into());
            rows.push(" Do you want to proceed?".into());
            rows.push(" ❯ 1. Yes".into());
            rows.push("   2. No".into());
            rows.push(" Esc to cancel · Tab to amend".into());
            return rows.join("\n");
        }
        rows.push(format!("❯\u{a0}{}", self.composer));
        rows.push(rule);
        rows.push("  ⏸ manual mode on · ? for shortcuts".into());
        rows.join("\n")
    }

    fn capture(&mut self, op: Option<OpId>) {
        if self.silent {
            if let Some(op) = op {
                self.end(op, OpEnd::Unknown);
            }
            return;
        }
        let text = self.screen();
        if self.told.as_ref() == Some(&text) {
            self.same = self.same.saturating_add(1);
            if op.is_some() || self.same <= 2 {
                self.push(Raw::FrameSame { op });
            }
        } else {
            self.same = 0;
            self.told = Some(text.clone());
            let meta = PaneMeta {
                cols: 250,
                rows: 80,
                ..PaneMeta::default()
            };
            self.push(Raw::Frame {
                op,
                meta,
                text: text.into(),
            });
        }
        if let Some(op) = op {
            self.end(op, OpEnd::Done);
        }
    }

    fn key(&mut self, key: Key) {
        match key {
            Key::CtrlG => {
                if let Some((op, text)) = self.staged.take() {
                    let had = std::mem::replace(&mut self.composer, text.to_string());
                    self.end(op, OpEnd::Taken { had: had.into() });
                }
            }
            Key::Enter => self.enter(),
            Key::Escape => self.escape(),
            Key::Backspace => {}
        }
    }

    fn enter(&mut self) {
        let text = std::mem::take(&mut self.composer);
        match text.as_str() {
            "" => {}
            "/exit" => {
                self.hook("SessionEnd", json!({"reason": "prompt_input_exit"}));
                self.exit(Some(0), None);
            }
            _ => self.submit(text),
        }
    }

    fn submit(&mut self, text: String) {
        let verdict = match &self.guard {
            None => Verdict::Foreign,
            Some(guard) if *guard.text != text => Verdict::MismatchBlocked,
            Some(guard) if guard.self_test => Verdict::SelfTest,
            Some(_) => Verdict::Exact,
        };
        self.guard = None;
        self.prompts += 1;
        self.hook_with(
            "UserPromptSubmit",
            None,
            Some(verdict),
            json!({"prompt": text}),
        );
        if matches!(verdict, Verdict::SelfTest | Verdict::MismatchBlocked) {
            self.self_tests += 1;
            self.composer = text;
            return;
        }
        self.history.push(format!("❯ {text}"));
        self.registry("busy");
        self.turn = Turn::Working;
        self.line(json!({
            "type": "user", "message": {"role": "user", "content": text},
            "permissionMode": "default", "origin": {"kind": "human"}, "promptSource": "typed",
            "turnOrigin": "human",
        }));
        match text.as_str() {
            "wait" => {}
            "tool" => self.tool(),
            _ => self.finish(&format!("You said {text}.")),
        }
    }

    fn tool(&mut self) {
        let input = json!({"command": "echo hi", "description": "says hi"});
        let call = json!({"tool_name": "Bash", "tool_input": input, "tool_use_id": TOOL_ID});
        self.hook("PreToolUse", call);
        self.holds += 1;
        let hold = HoldId(self.holds);
        self.turn = Turn::Asking(hold);
        self.registry("waiting");
        self.hook_with(
            "PermissionRequest",
            Some(hold),
            None,
            json!({"tool_name": "Bash", "tool_input": input}),
        );
    }

    fn answered(&mut self, hold: HoldId, reply: &RawJson) {
        if self.turn != Turn::Asking(hold) {
            return;
        }
        self.turn = Turn::Working;
        self.registry("busy");
        let input = json!({"command": "echo hi", "description": "says hi"});
        let allowed = reply.get().contains("\"allow\"");
        if allowed {
            self.hook(
                "PostToolUse",
                json!({
                    "tool_name": "Bash", "tool_input": input, "tool_use_id": TOOL_ID, "duration_ms": 5,
                    "tool_response": {"stdout": "hi", "stderr": "", "interrupted": false},
                }),
            );
        }
        let result = if allowed { "hi" } else { "denied" };
        self.hook(
            "PostToolBatch",
            json!({"tool_calls": [{
                "tool_name": "Bash", "tool_input": input, "tool_use_id": TOOL_ID, "tool_response": result,
            }]}),
        );
        self.finish("Done with it.");
    }

    fn finish(&mut self, text: &str) {
        self.turn = Turn::None;
        self.history.push(format!("● {text}"));
        self.hook(
            "MessageDisplay",
            json!({"turn_id": "turn", "message_id": format!("shown-{}", self.prompts), "index": 0, "final": true, "delta": text}),
        );
        self.hook(
            "Stop",
            json!({"stop_hook_active": false, "last_assistant_message": text, "background_tasks": [], "session_crons": []}),
        );
        self.registry("idle");
        self.line(json!({
            "type": "assistant", "apiBlockIndex": 0, "requestId": "req", "requestRef": "ref",
            "message": {
                "id": format!("msg_{}", self.prompts), "type": "message", "role": "assistant", "model": "claude-x",
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": {"input_tokens": 10, "output_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
            },
        }));
        self.line(json!({"type": "system", "subtype": "turn_duration", "durationMs": 9, "messageCount": 2, "isMeta": false}));
    }

    fn escape(&mut self) {
        if self.turn != Turn::Working {
            return;
        }
        self.turn = Turn::None;
        self.history
            .push("  ⎿  Interrupted · What should Claude do instead?".into());
        self.registry("idle");
        self.line(json!({
            "type": "user",
            "message": {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]},
        }));
    }

    fn exit(&mut self, code: Option<i32>, signal: Option<i32>) {
        if !std::mem::replace(&mut self.exited, true) {
            self.push(Raw::RegistryGone);
            self.push(Raw::Exited {
                pid: PID,
                code,
                signal,
            });
        }
    }
}

impl Pane for Claude {
    fn capture(&mut self, op: Option<OpId>) {
        self.with(|mind| mind.capture(op));
    }
    fn key(&mut self, op: OpId, key: Key, _guard: KeyGuard, _until: Mono) {
        self.with(|mind| {
            mind.key(key);
            mind.end(op, OpEnd::Done);
        });
    }
    fn forget_frame(&mut self) {
        self.with(|mind| mind.told = None);
    }
    fn last_frame(&self) -> Arc<str> {
        self.with(|mind| mind.screen().into())
    }
    fn attach_command(&self) -> String {
        "tmux attach -r".into()
    }
}

impl Editor for Claude {
    fn stage(&mut self, op: OpId, text: Arc<str>) {
        self.with(|mind| mind.staged = Some((op, text)));
    }
    fn unstage(&mut self, op: OpId, staged: OpId) {
        self.with(|mind| {
            if mind.staged.take_if(|(one, _)| *one == staged).is_some() {
                let reason = "unstaged".into();
                mind.end(staged, OpEnd::Refused { reason });
            }
            mind.end(op, OpEnd::Done);
        });
    }
}

impl Hooks for Claude {
    fn arm(&mut self, guard: PromptGuard) {
        self.with(|mind| mind.guard = Some(guard));
    }
    fn disarm(&mut self) {
        self.with(|mind| mind.guard = None);
    }
    fn answer(&mut self, hold: HoldId, reply: RawJson) {
        self.with(|mind| {
            mind.answered(hold, &reply);
            mind.replies.push((hold, reply));
        });
    }
}

impl Process for Claude {
    fn watch(&mut self, _pid: u32) {}
    fn signal(&mut self, op: OpId, signal: Signal) {
        self.with(|mind| {
            mind.signals.push(signal);
            mind.end(op, OpEnd::Done);
            let number = if signal == Signal::Term { 15 } else { 9 };
            mind.exit(None, Some(number));
        });
    }
}

impl RegistryFile for Claude {
    fn pid(&mut self, _pid: u32) {}
    fn cadence(&mut self, _ms: u32) {}
}

impl Tail for Claude {
    fn follow(&mut self, file: FileKey, _path: PathBuf, _from: u64) {
        self.with(|mind| {
            mind.file = Some(file);
            mind.flush();
        });
    }
    fn follow_from_end(&mut self, file: FileKey, path: PathBuf) {
        self.follow(file, path, 0);
    }
    fn forget(&mut self, file: FileKey) {
        self.with(|mind| mind.file = mind.file.filter(|one| *one != file));
    }
    fn cadence(&mut self, _ms: u32) {}
    fn nudge(&mut self) {}
}
