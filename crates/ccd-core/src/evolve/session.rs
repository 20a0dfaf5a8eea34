//! Applies changes of the session as a whole. No decisions.

use ccd_model::{fact::Fact, ids::GenerationKey};

use super::SessionChange as C;
use crate::state::{Domain, Registry, Seen};

/// How many earlier session ids are remembered.
const PAST_IDS: usize = 64;

pub(super) fn apply(d: &mut Domain, change: C) -> bool {
    let (now, seq) = (d.now, d.seq);
    let s = &mut d.session;
    match change {
        C::Input(stamp) => {
            d.now = d.now.max(stamp.at);
            d.wall = stamp.wall;
            d.seq = stamp.seq;
        }
        C::Time(at) => d.now = d.now.max(at),
        C::Launched(launch, info) => {
            // What Claude reported before the launcher did still holds, unless it was an earlier process.
            if s.launch.replace(launch).is_some() {
                s.hook_started = false;
                s.claude_pid = None;
                d.screen = None;
                d.registry = None;
            }
            if !s.hook_started {
                s.id = info.session_id.clone();
            }
            s.other_stop_hooks = info.other_stop_hooks;
            s.launched = Some(info);
        }
        C::Life(to, source) => return s.life.advance(to, source),
        C::HookStarted => s.hook_started = true,
        C::SelfTested => s.self_tested = true,
        C::Pid(pid) => s.claude_pid = Some(pid),
        C::Version(version) => s.claude_version = Some(version),
        C::Id(id) => s.id = id,
        C::Generation(id) => {
            s.past_ids.retain(|past| *past != id);
            s.past_ids.push_back(core::mem::replace(&mut s.id, id));
            if s.past_ids.len() > PAST_IDS {
                s.past_ids.pop_front();
            }
            s.generation = GenerationKey(s.generation.0.saturating_add(1));
            s.transcript_path = None;
            s.tx_turn = None;
        }
        C::Path(path) => s.transcript_path = Some(path),
        C::Model(model, source) => match &mut s.model {
            Some(fact) => {
                return fact.learn(model, source, seq) == ccd_model::fact::Learned::Changed;
            }
            None => s.model = Some(Fact::new(model, source, seq)),
        },
        C::Mode(mode, source) => {
            return s.mode.learn(mode, source, seq) == ccd_model::fact::Learned::Changed;
        }
        C::Registry(status) => d.registry = Some(Registry { status, at: now }),
        C::Screen(facts) => {
            d.screen = Some(Seen {
                facts,
                equal: 1,
                at: now,
            });
        }
        C::ScreenSame => {
            let Some(seen) = &mut d.screen else {
                return false;
            };
            seen.equal = seen.equal.saturating_add(1);
            seen.at = now;
        }
        C::Compacting(on) => s.compacting = on,
        C::AuthFailed(on) => s.auth_failed = on,
        C::UsageLimit(limit) => {
            let changed = s.usage_limit != limit;
            s.usage_limit = limit;
            return changed;
        }
        C::OtherStopHooks => s.other_stop_hooks = true,
        C::Background(items) => d.background = items,
        C::BackgroundStarted(id, kind) => {
            d.background.insert(id, kind);
        }
        C::BackgroundEnded(id) => return d.background.remove(&id).is_some(),
        C::Dirty(dirty) => s.dirty = dirty.then_some(now),
        C::LateEscape => s.late_escape = Some(now),
        C::BlockOwed => s.blocks_owed = s.blocks_owed.saturating_add(1),
        C::BlockPaid => s.blocks_owed = s.blocks_owed.saturating_sub(1),
        C::TxTurn(turn) => s.tx_turn = Some(turn),
        C::Closing(closing) => s.closing = Some(closing),
        C::EndReason(reason) => s.end_reason = Some(reason),
        C::Exit(exit) => s.exit = Some(exit),
        C::Alerted(surface) => s.alerted = surface,
        C::LastScreen(text) => s.last_screen = Some(text),
        C::ShownStatus(status) => d.shown.status = Some(status),
        C::ShownQuiescent(on) => d.shown.quiescent = on,
        C::ShownCadence(cadence) => d.shown.cadence = Some(cadence),
        C::Diagnosed => d.diagnostics = d.diagnostics.saturating_add(1),
    }
    true
}
