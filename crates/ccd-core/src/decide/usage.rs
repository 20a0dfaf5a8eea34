//! The usage limit: reached by a failure, cleared by the reset time or by an answer.

use alloc::sync::Arc;

use ccd_model::event::DomainEvent;

use crate::{cx::Cx, deadlines::Row, evolve::SessionChange};

/// The limit was reached, or its reset time became known.
pub(crate) fn reached(cx: &mut Cx<'_>, resets_at: Option<i64>, message: &Arc<str>) {
    let known = cx.s().session.usage_limit.flatten();
    let resets_at = resets_at.or(known);
    if !cx.session(SessionChange::UsageLimit(Some(resets_at))) {
        return;
    }
    if let Some(at) = resets_at {
        let wait = at.saturating_mul(1_000).saturating_sub(cx.s().wall.0);
        cx.arm_for(Row::UsageWake, 0, u64::try_from(wait).unwrap_or(0));
    }
    cx.event(DomainEvent::UsageLimitReached {
        resets_at,
        message: message.clone(),
    });
}

/// The limit is over.
pub(crate) fn clear(cx: &mut Cx<'_>) {
    cx.disarm(Row::UsageWake, 0);
    if cx.session(SessionChange::UsageLimit(None)) {
        cx.event(DomainEvent::UsageLimitCleared);
    }
}
