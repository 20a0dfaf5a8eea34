//! The other endpoints of the subscription service, as a table.
//!
//! What lives here: contented answers, one row per endpoint. What never does: the Messages API.
//!
//! Account and organisation are invented. `{+N}` in a body stands for the moment N seconds from now, in ISO 8601.

use serde_json::Value;

/// The public host a row belongs to. On loopback every row answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Api,
    Platform,
}

impl Host {
    fn fits(self, host: &str) -> bool {
        let own = match self {
            Self::Api => "api.anthropic.com",
            Self::Platform => "platform.claude.com",
        };
        host == own || host == "localhost" || host.starts_with("127.")
    }
}

struct Endpoint {
    host: Host,
    method: &'static str,
    path: &'static str,
    status: u16,
    body: &'static str,
}

const fn row(
    host: Host,
    method: &'static str,
    path: &'static str,
    status: u16,
    body: &'static str,
) -> Endpoint {
    Endpoint {
        host,
        method,
        path,
        status,
        body,
    }
}

const ENDPOINTS: &[Endpoint] = &[
    row(
        Host::Api,
        "GET",
        "/api/hello",
        200,
        r#"{"message":"hello"}"#,
    ),
    row(
        Host::Platform,
        "GET",
        "/v1/oauth/hello",
        200,
        r#"{"message":"hello"}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/oauth/profile",
        200,
        r#"{"account":{"uuid":"00000000-0000-4000-8000-000000000001","email":"test@example.com",
            "full_name":"Test User","display_name":"Test","has_claude_max":true,"has_claude_pro":false,
            "created_at":"2025-01-01T00:00:00Z"},
            "organization":{"uuid":"00000000-0000-4000-8000-000000000002","name":"Test",
            "organization_type":"claude_max","billing_type":"stripe_subscription",
            "rate_limit_tier":"default_claude_max_5x","has_extra_usage_enabled":false,
            "cc_onboarding_flags":{},"subscription_created_at":"2025-01-01T00:00:00Z"}}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/oauth/usage",
        200,
        r#"{"five_hour":{"utilization":42.0,"resets_at":"{+10800}"},
            "seven_day":{"utilization":17.0,"resets_at":"{+345600}"},
            "seven_day_oauth_apps":null,"seven_day_opus":null,
            "seven_day_sonnet":{"utilization":5.0,"resets_at":"{+345600}"},"cinder_cove":null,
            "extra_usage":{"is_enabled":false,"monthly_limit":null,"used_credits":null,"utilization":null,
            "currency":null},
            "limits":[{"kind":"five_hour","group":"session","percent":42,"severity":"normal",
            "resets_at":"{+10800}","scope":null,"is_active":true},
            {"kind":"seven_day","group":"weekly","percent":17,"severity":"normal",
            "resets_at":"{+345600}","scope":null,"is_active":true}]}"#,
    ),
    row(
        Host::Platform,
        "POST",
        "/v1/oauth/token",
        200,
        r#"{"token_type":"Bearer","access_token":"sk-ant-oat01-fake-new","expires_in":28800,
            "refresh_token":"sk-ant-ort01-fake-new",
            "scope":"user:profile user:inference user:sessions:claude_code user:mcp_servers",
            "organization":{"uuid":"00000000-0000-4000-8000-000000000002","name":"Test"},
            "account":{"uuid":"00000000-0000-4000-8000-000000000001","email_address":"test@example.com"}}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/claude_cli/bootstrap",
        200,
        r#"{"client_data":null,"additional_model_options":null,"additional_model_costs":null,
            "model_access":null,
            "oauth_account":{"account_uuid":"00000000-0000-4000-8000-000000000001",
            "account_email":"test@example.com","organization_uuid":"00000000-0000-4000-8000-000000000002",
            "organization_name":"Test","organization_type":"claude_max",
            "organization_rate_limit_tier":"default_claude_max_5x","user_rate_limit_tier":null,
            "seat_tier":null}}"#,
    ),
    row(Host::Api, "POST", "/api/eval/*", 200, r#"{"features":{}}"#),
    row(
        Host::Api,
        "POST",
        "/api/eval-authed/*",
        200,
        r#"{"features":{}}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/claude_code_grove",
        200,
        r#"{"grove_enabled":true,"domain_excluded":false,"notice_is_grace_period":false,
            "notice_reminder_frequency":null}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/oauth/account/settings",
        200,
        r#"{"grove_enabled":true,"grove_notice_viewed_at":"2025-10-01T00:00:00Z"}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/oauth/claude_cli/roles",
        200,
        r#"{"organization_role":"admin","workspace_role":null,"organization_name":"Test"}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/claude_code_penguin_mode",
        200,
        r#"{"enabled":false,"disabled_reason":"preference"}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/claude_code/organizations/metrics_enabled",
        200,
        r#"{"metrics_logging_enabled":false}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/claude_code/notification_preferences",
        200,
        "{}",
    ),
    row(
        Host::Api,
        "GET",
        "/api/claude_code/policy_limits",
        200,
        r#"{"restrictions":{}}"#,
    ),
    row(Host::Api, "GET", "/api/claude_code/settings", 404, "{}"),
    row(
        Host::Api,
        "GET",
        "/v1/mcp_servers",
        200,
        r#"{"data":[],"has_more":false}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/mcp-registry/v0/servers",
        200,
        r#"{"servers":[],"metadata":{"count":0,"next_cursor":null}}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/oauth/organizations/*",
        200,
        r#"{"eligible":false}"#,
    ),
    row(
        Host::Api,
        "POST",
        "/api/event_logging/*",
        200,
        r#"{"accepted_count":1,"rejected_count":0}"#,
    ),
    row(
        Host::Api,
        "GET",
        "/api/web/domain_info",
        200,
        r#"{"can_fetch":true}"#,
    ),
];

/// The answer of the table. `HEAD` finds the row of `GET`.
pub(super) fn find(host: &str, method: &str, path: &str, now_unix_s: i64) -> Option<(u16, Value)> {
    let method = if method == "HEAD" { "GET" } else { method };
    let row = ENDPOINTS
        .iter()
        .find(|row| row.host.fits(host) && row.method == method && path_fits(row.path, path))?;
    let body = with_moments(row.body, now_unix_s);
    Some((row.status, serde_json::from_str(&body).unwrap_or_default()))
}

/// A path fits a pattern in which `*` stands for any run of characters.
pub(super) fn path_fits(pattern: &str, path: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == path,
        Some((before, after)) => path.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter(|at| rest.is_char_boundary(*at))
                .any(|at| path_fits(after, &rest[at..]))
        }),
    }
}

fn with_moments(body: &str, now_unix_s: i64) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((before, after)) = rest.split_once("{+") {
        out.push_str(before);
        let (seconds, after) = after.split_once('}').unwrap_or((after, ""));
        let seconds: i64 = seconds.parse().unwrap_or(0);
        out.push_str(&iso(now_unix_s.saturating_add(seconds)));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// ISO 8601 in UTC (days to civil date by Hinnant's method, for moments after 1970).
fn iso(unix_s: i64) -> String {
    let unix_s = unix_s.max(0);
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}+00:00",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_json_and_is_found_at_its_own_host_and_on_loopback() {
        for row in ENDPOINTS {
            let path = row.path.replace('*', "x");
            let own = match row.host {
                Host::Api => "api.anthropic.com",
                Host::Platform => "platform.claude.com",
            };
            for host in [own, "127.0.0.1"] {
                let (status, body) = find(host, row.method, &path, 0).unwrap_or_default();
                assert_eq!(status, row.status, "{path}");
                assert!(body.is_object(), "{path}: {body}");
            }
            assert_eq!(find("www.example.com", row.method, &path, 0), None);
        }
    }

    #[test]
    fn moments_are_relative_to_now() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00+00:00"),
            (951_782_399, "2000-02-28T23:59:59+00:00"),
            (951_782_400, "2000-02-29T00:00:00+00:00"),
            (1_796_090_344, "2026-12-01T01:59:04+00:00"),
        ] {
            assert_eq!(iso(seconds), text);
        }
        assert_eq!(
            with_moments(r#"["{+60}"]"#, 0),
            r#"["1970-01-01T00:01:00+00:00"]"#
        );
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        assert!(path_fits("/a/*", "/a/b/c"));
        assert!(path_fits("/a/*/d", "/a/b/c/d"));
        assert!(!path_fits("/a/*/d", "/a/b/c"));
        assert!(!path_fits("/a", "/a/b"));
    }
}
