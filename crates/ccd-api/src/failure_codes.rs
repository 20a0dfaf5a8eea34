//! Claude's own error classes as public codes: data, since the classes are words and not a type.

use ccd_types::ErrorCode;

/// Error classes that are more than a failed turn.
const CLASSES: &[(&str, ErrorCode)] = &[
    ("authentication_failed", ErrorCode::Account),
    ("oauth_org_not_allowed", ErrorCode::Account),
    ("account_on_hold", ErrorCode::Account),
    ("verification_required", ErrorCode::Account),
];

/// The class of both a usage limit and a passing rate limit.
const RATE_LIMIT: &str = "rate_limit";

/// The public code of a turn that failed with Claude's error class `class`. `limited`: the session is at its usage limit.
pub(crate) fn code(class: &str, limited: bool) -> ErrorCode {
    if class == RATE_LIMIT && limited {
        return ErrorCode::UsageLimit;
    }
    CLASSES
        .iter()
        .find(|(known, _)| *known == class)
        .map_or(ErrorCode::TurnFailed, |(_, code)| *code)
}
