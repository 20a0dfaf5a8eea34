//! The rate-limit headers of a subscription, as a function of the moment.
//!
//! What lives here: the header set. What never does: the decision when a limit is hit (that is the scenario's).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const PREFIX: &str = "anthropic-ratelimit-unified";

/// The state of a limit, as the service names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitStatus {
    /// Below the limit.
    Allowed,
    /// Near the limit.
    AllowedWarning,
    /// Over the limit.
    Rejected,
}

impl LimitStatus {
    fn wire(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::AllowedWarning => "allowed_warning",
            Self::Rejected => "rejected",
        }
    }
}

/// The window that a warning or a limit speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitClaim {
    /// The 5-hour window.
    FiveHour,
    /// The weekly window.
    SevenDay,
    /// The weekly window of Opus.
    SevenDayOpus,
    /// The weekly window of Sonnet.
    SevenDaySonnet,
    /// The weekly window with usage credits included.
    SevenDayOverageIncluded,
    /// Usage credits.
    Overage,
}

impl LimitClaim {
    fn wire(self) -> &'static str {
        match self {
            Self::FiveHour => "five_hour",
            Self::SevenDay => "seven_day",
            Self::SevenDayOpus => "seven_day_opus",
            Self::SevenDaySonnet => "seven_day_sonnet",
            Self::SevenDayOverageIncluded => "seven_day_overage_included",
            Self::Overage => "overage",
        }
    }

    /// The name of the window's own header group.
    fn window(self) -> &'static str {
        match self {
            Self::FiveHour => "5h",
            Self::SevenDay | Self::SevenDayOpus | Self::SevenDaySonnet => "7d",
            Self::SevenDayOverageIncluded => "7d_oi",
            Self::Overage => "overage",
        }
    }
}

/// One window's own header group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitWindow {
    /// `-status`.
    pub status: Option<LimitStatus>,
    /// `-utilization`, per mille (930 = `0.93`).
    pub utilization_per_mille: Option<u32>,
    /// `-reset`, seconds from now.
    pub reset_in_s: Option<i64>,
    /// `-surpassed-threshold`, per mille.
    pub surpassed_per_mille: Option<u32>,
}

/// A set of rate-limit headers. Times are relative; the header holds the moment of the reply plus them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimits {
    /// `-status`.
    pub status: Option<LimitStatus>,
    /// `-representative-claim`.
    pub claim: Option<LimitClaim>,
    /// `-reset`, seconds from now.
    pub reset_in_s: Option<i64>,
    /// Header groups by window name (`5h`, `7d`, `7d_oi`, `overage`).
    pub windows: BTreeMap<String, LimitWindow>,
    /// `retry-after`, seconds.
    pub retry_after_s: Option<u64>,
    /// More headers of the family, by the rest of their name (`overage-in-use` = `true`).
    pub more: BTreeMap<String, String>,
}

impl RateLimits {
    /// No rate-limit header at all.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Below every limit; the window resets in three hours.
    #[must_use]
    pub fn allowed() -> Self {
        Self {
            status: Some(LimitStatus::Allowed),
            reset_in_s: Some(3 * 3600),
            ..Self::default()
        }
    }

    /// A warning at the given use of a window (per mille).
    #[must_use]
    pub fn warning(claim: LimitClaim, utilization_per_mille: u32, reset_in_s: i64) -> Self {
        Self::at(
            LimitStatus::AllowedWarning,
            claim,
            utilization_per_mille,
            reset_in_s,
        )
    }

    /// The limit is reached; the window resets in `reset_in_s` seconds.
    #[must_use]
    pub fn rejected(claim: LimitClaim, reset_in_s: i64) -> Self {
        Self::at(LimitStatus::Rejected, claim, 1000, reset_in_s)
    }

    fn at(status: LimitStatus, claim: LimitClaim, per_mille: u32, reset_in_s: i64) -> Self {
        let window = LimitWindow {
            status: Some(status),
            utilization_per_mille: Some(per_mille),
            reset_in_s: Some(reset_in_s),
            surpassed_per_mille: None,
        };
        Self {
            status: Some(status),
            claim: Some(claim),
            reset_in_s: Some(reset_in_s),
            windows: BTreeMap::from([(claim.window().to_owned(), window)]),
            ..Self::default()
        }
    }

    /// Adds a header of the family.
    #[must_use]
    pub fn with(mut self, rest_of_name: &str, value: &str) -> Self {
        self.more.insert(rest_of_name.to_owned(), value.to_owned());
        self
    }

    /// The headers at the moment `now_unix_s`.
    #[must_use]
    pub fn headers(&self, now_unix_s: i64) -> Vec<(String, String)> {
        let mut out = Vec::new();
        let mut add = |name: String, value: Option<String>| {
            if let Some(value) = value {
                out.push((name, value));
            }
        };
        let moment = |relative: i64| now_unix_s.saturating_add(relative).to_string();
        add(
            format!("{PREFIX}-status"),
            self.status.map(|status| status.wire().to_owned()),
        );
        add(format!("{PREFIX}-reset"), self.reset_in_s.map(moment));
        add(
            format!("{PREFIX}-representative-claim"),
            self.claim.map(|claim| claim.wire().to_owned()),
        );
        for (name, window) in &self.windows {
            add(
                format!("{PREFIX}-{name}-status"),
                window.status.map(|status| status.wire().to_owned()),
            );
            add(
                format!("{PREFIX}-{name}-reset"),
                window.reset_in_s.map(moment),
            );
            add(
                format!("{PREFIX}-{name}-utilization"),
                window.utilization_per_mille.map(fraction),
            );
            add(
                format!("{PREFIX}-{name}-surpassed-threshold"),
                window.surpassed_per_mille.map(fraction),
            );
        }
        for (name, value) in &self.more {
            add(format!("{PREFIX}-{name}"), Some(value.clone()));
        }
        add(
            "retry-after".to_owned(),
            self.retry_after_s.map(|seconds| seconds.to_string()),
        );
        out
    }
}

fn fraction(per_mille: u32) -> String {
    format!("{}.{:03}", per_mille / 1000, per_mille % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reached_limit_names_its_window_and_the_moment_of_the_reset() {
        let headers = RateLimits::rejected(LimitClaim::FiveHour, 60)
            .with("overage-status", "rejected")
            .headers(1_000);
        for (name, value) in [
            ("anthropic-ratelimit-unified-status", "rejected"),
            ("anthropic-ratelimit-unified-reset", "1060"),
            (
                "anthropic-ratelimit-unified-representative-claim",
                "five_hour",
            ),
            ("anthropic-ratelimit-unified-5h-utilization", "1.000"),
            ("anthropic-ratelimit-unified-5h-reset", "1060"),
            ("anthropic-ratelimit-unified-overage-status", "rejected"),
        ] {
            assert!(
                headers.contains(&(name.to_owned(), value.to_owned())),
                "{name}: {headers:?}"
            );
        }
        assert_eq!(RateLimits::none().headers(1), []);
    }
}
