//! Host, method and path to what answers them. It knows nothing of listeners.
//!
//! What lives here: the decision. What never does: replies to Messages requests, sockets.

use super::endpoints;
use super::scenario::EndpointReply;
use serde_json::{Value, json};

/// What answers a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Route {
    /// The Messages API.
    Messages,
    /// A fixed JSON answer.
    Fixed { status: u16, body: Value },
    /// Nothing: the API's own 404.
    NotFound,
}

/// Splits a request target into its authority (absolute form only) and its path with query.
pub(super) fn split_target(target: &str) -> (Option<&str>, &str) {
    match target.split_once("://") {
        Some((_, rest)) => match rest.find('/') {
            Some(slash) => {
                let (authority, path) = rest.split_at(slash);
                (Some(authority), path)
            }
            None => (Some(rest), "/"),
        },
        None => (None, target),
    }
}

/// Removes the port of an authority.
pub(super) fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|digit| digit.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Decides. `route` is the path without its query; `own` are the scenario's endpoints, which win.
pub(super) fn route(
    host: &str,
    method: &str,
    route: &str,
    own: &[EndpointReply],
    now_unix_s: i64,
) -> Route {
    if let Some(reply) = own.iter().find(|reply| {
        reply.method.eq_ignore_ascii_case(method) && endpoints::path_fits(&reply.path, route)
    }) {
        return Route::Fixed {
            status: reply.status,
            body: reply.body.clone(),
        };
    }
    match (method, route) {
        ("POST", "/v1/messages") => Route::Messages,
        ("POST", "/v1/messages/count_tokens") => Route::Fixed {
            status: 200,
            body: json!({ "input_tokens": 100 }),
        },
        _ => match endpoints::find(host, method, route, now_unix_s) {
            Some((status, body)) => Route::Fixed { status, body },
            None => Route::NotFound,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_in_both_forms_give_the_same_path() {
        assert_eq!(split_target("/v1/x?y=1"), (None, "/v1/x?y=1"));
        assert_eq!(
            split_target("http://127.0.0.1:80/v1/x"),
            (Some("127.0.0.1:80"), "/v1/x")
        );
        assert_eq!(split_target("http://h"), (Some("h"), "/"));
        assert_eq!(without_port("h:80"), "h");
        assert_eq!(without_port("h"), "h");
    }

    #[test]
    fn the_scenarios_own_endpoints_win_over_the_table() {
        let own = [EndpointReply {
            method: "GET".to_owned(),
            path: "/api/oauth/*".to_owned(),
            status: 500,
            body: json!({}),
        }];
        let with =
            |own: &[EndpointReply]| route("api.anthropic.com", "GET", "/api/oauth/profile", own, 0);
        assert!(matches!(with(&own), Route::Fixed { status: 500, .. }));
        assert!(matches!(with(&[]), Route::Fixed { status: 200, .. }));
        assert_eq!(
            route("api.anthropic.com", "GET", "/nothing", &[], 0),
            Route::NotFound
        );
        assert_eq!(
            route("127.0.0.1", "POST", "/v1/messages", &[], 0),
            Route::Messages
        );
    }
}
