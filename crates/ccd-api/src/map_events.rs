//! Domain events to public events. Exhaustive: a new domain event does not compile until it has a public shape or a reason to have none.

use std::{collections::BTreeMap, sync::Arc};

use ccd_runtime::model;
use ccd_types::{
    AlertKind, CallId, CompactionTrigger, Event, EventKind, MessageId, PermissionAnswer,
    PermissionId, PermissionResolution, ToolResult,
};
use jiff::Timestamp;
use model::{
    event::{Alert, DomainEvent, Published},
    ids::{CallKey, PermissionKey, ToolKey, TurnKey},
    kernel::{LogItem, SessionKernel},
    outcome::Outcome,
    permission::DecidedBy,
    status::{PermissionStatus, TurnStatus},
};

use crate::{map_errors, map_state as map};

/// A public event and the turn it belongs to.
pub(crate) struct Mapped {
    pub(crate) turn: Option<TurnKey>,
    pub(crate) event: Event,
}

/// Maps one reader's events. Remembers which turn and name an entity has, since later events carry only its key.
pub(crate) struct EventMapper {
    kernel: Arc<dyn SessionKernel>,
    tools: BTreeMap<ToolKey, (Option<TurnKey>, String)>,
    permissions: BTreeMap<PermissionKey, (Option<TurnKey>, String)>,
    calls: BTreeMap<CallKey, Option<TurnKey>>,
}

impl EventMapper {
    pub(crate) fn new(kernel: Arc<dyn SessionKernel>) -> Self {
        Self {
            kernel,
            tools: BTreeMap::new(),
            permissions: BTreeMap::new(),
            calls: BTreeMap::new(),
        }
    }

    /// `None`: the item has no public shape.
    pub(crate) fn map(&mut self, item: &LogItem) -> Option<Mapped> {
        match item {
            LogItem::Event(published) => {
                let (turn, kind) = self.kind(&published.event)?;
                Some(Mapped {
                    turn,
                    event: stamped(published, kind),
                })
            }
            LogItem::Gap { from, to } => {
                let kind = EventKind::Gap {
                    from: from.0,
                    to: to.0,
                };
                Some(Mapped {
                    turn: None,
                    event: Event::new(to.0, 0, String::new(), kind),
                })
            }
        }
    }

    fn tool(&mut self, key: ToolKey, ended: bool) -> (Option<TurnKey>, String) {
        let known = if ended {
            self.tools.remove(&key)
        } else {
            self.tools.get(&key).cloned()
        };
        known.unwrap_or_else(|| {
            let view = self.kernel.view();
            let tool = view.tools.iter().find(|tool| tool.tool == key);
            tool.map_or((None, String::new()), |tool| {
                (tool.turn, tool.name.to_string())
            })
        })
    }

    fn call(&self, key: CallKey) -> Option<TurnKey> {
        self.calls.get(&key).copied().flatten()
    }

    #[allow(
        clippy::too_many_lines,
        reason = "one arm for each event; splitting it would hide a missing one"
    )]
    fn kind(&mut self, event: &DomainEvent) -> Option<(Option<TurnKey>, EventKind)> {
        let text = |value: &Arc<str>| value.to_string();
        Some(match event {
            DomainEvent::SessionReady {
                session_id,
                model,
                self_tested,
            } => (
                None,
                EventKind::SessionReady {
                    session_id: text(session_id),
                    model: model.as_ref().map(text),
                    self_tested: *self_tested,
                },
            ),
            DomainEvent::SessionExited {
                code,
                signal,
                clean,
                reason,
            } => (
                None,
                EventKind::SessionExited {
                    code: *code,
                    signal: *signal,
                    clean: *clean,
                    reason: text(reason),
                },
            ),
            DomainEvent::PromptNormalized {
                turn,
                text: prompt,
                changes,
            } => (
                Some(*turn),
                EventKind::PromptNormalized {
                    turn: map::turn_id(*turn),
                    text: text(prompt),
                    changes: changes.iter().copied().map(map::normalization).collect(),
                },
            ),
            DomainEvent::TurnQueued { turn, origin } => (
                Some(*turn),
                EventKind::TurnQueued {
                    turn: map::turn_id(*turn),
                    origin: map::origin(*origin),
                },
            ),
            DomainEvent::TurnSubmitted { turn, prompt_id } => (
                Some(*turn),
                EventKind::TurnSubmitted {
                    turn: map::turn_id(*turn),
                    prompt_id: text(prompt_id),
                },
            ),
            DomainEvent::TurnStarted {
                turn,
                origin,
                prompt,
            } => (
                Some(*turn),
                EventKind::TurnStarted {
                    turn: map::turn_id(*turn),
                    origin: map::origin(*origin),
                    prompt: text(prompt),
                },
            ),
            DomainEvent::TurnEnded {
                turn,
                origin,
                outcome,
                text: answer,
                returned,
            } => {
                let limited = self.kernel.view().usage_limit.is_some();
                (
                    Some(*turn),
                    EventKind::TurnEnded {
                        turn: map::turn_id(*turn),
                        origin: map::origin(*origin),
                        status: map::turn_status(ended_status(outcome)),
                        text: text(answer),
                        returned: returned.as_ref().map(text),
                        error: map_errors::outcome(outcome, limited),
                    },
                )
            }
            DomainEvent::ToolProposed {
                tool,
                turn,
                agent,
                tool_use_id,
                name,
                input,
            } => {
                self.tools.insert(*tool, (*turn, text(name)));
                (
                    *turn,
                    EventKind::ToolProposed {
                        tool: map::tool_id(*tool),
                        turn: turn.map(map::turn_id),
                        agent: agent.map(map::agent_id),
                        tool_use_id: text(tool_use_id),
                        name: text(name),
                        input: map::json(input),
                    },
                )
            }
            DomainEvent::ToolStarted { tool } => {
                let (turn, name) = self.tool(*tool, false);
                (
                    turn,
                    EventKind::ToolStarted {
                        tool: map::tool_id(*tool),
                        turn: turn.map(map::turn_id),
                        name,
                    },
                )
            }
            DomainEvent::ToolEnded {
                tool,
                status,
                result,
                duration_ms,
            } => {
                let (turn, name) = self.tool(*tool, true);
                let result = ToolResult::new(map::tool_status(*status), text(result), *duration_ms);
                (
                    turn,
                    EventKind::ToolEnded {
                        tool: map::tool_id(*tool),
                        turn: turn.map(map::turn_id),
                        name,
                        result,
                    },
                )
            }
            DomainEvent::PermissionRequested {
                permission,
                turn,
                tool,
                agent,
                tool_use_id,
                name,
                input,
                suggestions,
                ..
            } => {
                self.permissions.insert(*permission, (*turn, text(name)));
                (
                    *turn,
                    EventKind::PermissionRequested {
                        permission: PermissionId::new(permission.to_string()),
                        turn: turn.map(map::turn_id),
                        tool: tool.map(map::tool_id),
                        agent: agent.map(map::agent_id),
                        tool_name: text(name),
                        tool_input: map::json(input),
                        tool_use_id: tool_use_id.as_ref().map(text),
                        permission_suggestions: suggestions.as_ref().map(map::json),
                    },
                )
            }
            DomainEvent::PermissionResolved {
                permission,
                status,
                decision,
                by,
            } => {
                let (turn, tool_name) = self.permissions.remove(permission).unwrap_or_default();
                (
                    turn,
                    EventKind::PermissionResolved {
                        permission: PermissionId::new(permission.to_string()),
                        turn: turn.map(map::turn_id),
                        tool_name,
                        resolution: resolution(*status),
                        decision: decision.as_ref().map(map::decision),
                        by: answerer(*by),
                    },
                )
            }
            DomainEvent::AgentStarted { agent, turn, kind } => (
                *turn,
                EventKind::AgentStarted {
                    agent: map::agent_id(*agent),
                    turn: turn.map(map::turn_id),
                    kind: text(kind),
                },
            ),
            DomainEvent::AgentEnded {
                agent,
                known,
                text: answer,
            } => (
                None,
                EventKind::AgentEnded {
                    agent: map::agent_id(*agent),
                    known: *known,
                    text: text(answer),
                },
            ),
            DomainEvent::CallStarted { call, turn, agent } => {
                self.calls.insert(*call, *turn);
                (
                    *turn,
                    EventKind::ModelCallStarted {
                        call: call_id(*call),
                        turn: turn.map(map::turn_id),
                        agent: agent.map(map::agent_id),
                    },
                )
            }
            DomainEvent::CallRetrying {
                call,
                attempt,
                max,
                delay_s,
                reason,
            } => {
                let turn = self.call(*call);
                (
                    turn,
                    EventKind::ModelCallRetrying {
                        call: call_id(*call),
                        turn: turn.map(map::turn_id),
                        attempt: *attempt,
                        max_attempts: *max,
                        delay_s: *delay_s,
                        reason: text(reason),
                    },
                )
            }
            DomainEvent::CallStalled { call, evidence } => {
                let turn = self.call(*call);
                (
                    turn,
                    EventKind::ModelCallStalled {
                        call: call_id(*call),
                        turn: turn.map(map::turn_id),
                        evidence: text(evidence),
                    },
                )
            }
            DomainEvent::CallResumed { call } => {
                let turn = self.call(*call);
                (
                    turn,
                    EventKind::ModelCallResumed {
                        call: call_id(*call),
                        turn: turn.map(map::turn_id),
                    },
                )
            }
            DomainEvent::CallEnded { call, ended_well } => {
                let turn = self.calls.remove(call).flatten();
                (
                    turn,
                    EventKind::ModelCallEnded {
                        call: call_id(*call),
                        turn: turn.map(map::turn_id),
                        ended_well: *ended_well,
                    },
                )
            }
            DomainEvent::MessageDelta {
                message,
                turn,
                index,
                text: delta,
            } => (
                *turn,
                EventKind::MessageDelta {
                    message: MessageId::new(message.to_string()),
                    turn: turn.map(map::turn_id),
                    index: *index,
                    text: text(delta),
                },
            ),
            DomainEvent::MessageFinal {
                message,
                turn,
                text: block,
                confirmed,
            } => (
                *turn,
                EventKind::MessageFinal {
                    message: MessageId::new(message.to_string()),
                    turn: turn.map(map::turn_id),
                    text: text(block),
                    confirmed: *confirmed,
                },
            ),
            DomainEvent::ThinkingFinal { turn, text: block } => (
                *turn,
                EventKind::ThinkingFinal {
                    turn: turn.map(map::turn_id),
                    text: text(block),
                },
            ),
            DomainEvent::UsageLimitReached { resets_at, message } => (
                None,
                EventKind::UsageLimitReached {
                    resets_at: *resets_at,
                    message: text(message),
                },
            ),
            DomainEvent::UsageLimitCleared => (None, EventKind::UsageLimitCleared {}),
            DomainEvent::CompactionStarted { trigger } => {
                let trigger = if &**trigger == "auto" {
                    CompactionTrigger::Auto
                } else {
                    CompactionTrigger::Manual
                };
                (None, EventKind::CompactionStarted { trigger })
            }
            DomainEvent::CompactionEnded => (None, EventKind::CompactionEnded {}),
            DomainEvent::ModeChanged { mode } => {
                (None, EventKind::ModeChanged { mode: text(mode) })
            }
            DomainEvent::ModelChanged { model } => {
                (None, EventKind::ModelChanged { model: text(model) })
            }
            DomainEvent::StatusChanged { status } => (
                None,
                EventKind::StatusChanged {
                    status: map::agent_status(status),
                },
            ),
            DomainEvent::Alert(alert) => {
                let (turn, alert, message) = alert_of(alert);
                (turn, EventKind::AlertRaised { alert, message })
            }
            // No public shape: a failed start is the error of `start`, an interrupt's end the answer of `interrupt`, and the
            // rest is visible in the state.
            DomainEvent::SessionStartFailed { .. }
            | DomainEvent::InterruptEnded { .. }
            | DomainEvent::GenerationChanged { .. }
            | DomainEvent::TurnStopping { .. }
            | DomainEvent::TurnContinued { .. }
            | DomainEvent::TurnSettled { .. }
            | DomainEvent::QuiescentChanged { .. } => return None,
        })
    }
}

fn stamped(published: &Published, kind: EventKind) -> Event {
    let ts = Timestamp::from_millisecond(published.wall.0)
        .map_or_else(|_| String::new(), |time| time.to_string());
    Event::new(published.seq.0, published.at.0, ts, kind)
}

fn call_id(key: CallKey) -> CallId {
    CallId::new(key.to_string())
}

/// The status that an outcome ends a turn with.
pub(crate) const fn ended_status(outcome: &Outcome) -> TurnStatus {
    match outcome {
        Outcome::Completed => TurnStatus::Completed,
        Outcome::Failed { .. } => TurnStatus::Failed,
        Outcome::Interrupted => TurnStatus::Interrupted,
        Outcome::Withdrawn => TurnStatus::Withdrawn,
        Outcome::NotSubmitted(_) => TurnStatus::NotSubmitted,
        Outcome::Aborted { .. } => TurnStatus::Aborted,
        Outcome::Unknown { .. } => TurnStatus::Unknown,
    }
}

const fn resolution(status: PermissionStatus) -> PermissionResolution {
    match status {
        PermissionStatus::Resolved => PermissionResolution::Resolved,
        PermissionStatus::DialogOnly => PermissionResolution::DialogOnly,
        PermissionStatus::Abandoned => PermissionResolution::Abandoned,
        PermissionStatus::Pending | PermissionStatus::Answered | PermissionStatus::Unknown => {
            PermissionResolution::Unknown
        }
    }
}

const fn answerer(by: DecidedBy) -> PermissionAnswer {
    match by {
        DecidedBy::Policy => PermissionAnswer::Policy,
        DecidedBy::Handler => PermissionAnswer::Handler,
        DecidedBy::HandlerFailure => PermissionAnswer::HandlerFailure,
        DecidedBy::Ambiguous => PermissionAnswer::Ambiguous,
        DecidedBy::Deadline => PermissionAnswer::Deadline,
        DecidedBy::Interrupt => PermissionAnswer::Interrupt,
        DecidedBy::Close => PermissionAnswer::Close,
        DecidedBy::Keyboard => PermissionAnswer::Keyboard,
        DecidedBy::Unsupported => PermissionAnswer::Unsupported,
    }
}

fn alert_of(alert: &Alert) -> (Option<TurnKey>, AlertKind, String) {
    match alert {
        Alert::Mismatch { turn } => (
            Some(*turn),
            AlertKind::Mismatch,
            "a prompt arrived that is not the one sent; it was blocked before the model saw it"
                .into(),
        ),
        Alert::Conflict { what } => (None, AlertKind::Conflict, what.to_string()),
        Alert::Drift { row } => (None, AlertKind::Drift, row.to_string()),
        Alert::UnreportedDialog { text } => (None, AlertKind::UnreportedDialog, text.to_string()),
        Alert::AnswerWithoutEffect { permission } => (
            None,
            AlertKind::AnswerWithoutEffect,
            format!("the answer to permission {permission} had no visible effect"),
        ),
        Alert::DenyRuleHeld { tool } => (
            None,
            AlertKind::DenyRuleHeld,
            format!("a deny rule stopped {tool}"),
        ),
        Alert::OrphansFound { count, details } => (
            None,
            AlertKind::OrphansFound,
            format!(
                "{count} left by crashed owners, cleaned: {}",
                details.join("; ")
            ),
        ),
        Alert::TranscriptGap { reason } => (None, AlertKind::TranscriptGap, reason.to_string()),
    }
}
