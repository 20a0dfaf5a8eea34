//! The usage limit: reached by a failure, cleared by the reset time or by an answer.

use alloc::sync::Arc;

use ccd_model::event::DomainEvent;

use crate::{cx::Cx, deadlines::Row, evolve::SessionChange};

/// Whether an error is the usage limit: its class is also that of a passing rate limit, so a reset time or the message has to say so.
pub(crate) fn is_limit(cx: &Cx<'_>, class: &str, message: &str, resets_at: Option<i64>) -> bool {
    let words = &cx.config.vocabulary;
    words
        .usage_limit_errors
        .iter()
        .any(|known| **known == *class)
        && (resets_at.is_some()
            || words
                .usage_limit_texts
                .iter()
                .any(|text| message.starts_with(&**text)))
}

/// Claude opens its menu by itself a moment after the limit: nothing is typed until it has come and gone.
pub(crate) fn menu_due(cx: &mut Cx<'_>) {
    cx.arm(Row::Menu, 0);
}

/// The menu has come; what it leaves behind decides from here on.
pub(crate) fn menu_came(cx: &mut Cx<'_>) {
    cx.disarm(Row::Menu, 0);
}

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
