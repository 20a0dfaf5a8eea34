//! The settings text of a session: hooks, permission rules and the keys that make the screen quiet. Key names live in the
//! profile; this text is the whole of what the driver changes about a session's configuration.

use std::{borrow::Cow, path::Path};

use serde_json::{Map, Value, json};

use crate::hooks::{HookRow, HookTable, HookTimeout, Registration, Transport};

/// What one session asks of its settings. Paths must be absolute.
#[derive(Debug, Clone)]
pub struct SettingsRequest<'a> {
    /// Base URL of the hook server, without a trailing slash.
    pub url: &'a str,
    /// Secret that each HTTP hook carries.
    pub token: &'a str,
    /// The helper program.
    pub helper: &'a Path,
    /// Socket of the forwarder.
    pub hook_socket: &'a Path,
    /// When the hook thread itself denies a held permission request, milliseconds.
    pub permission_deadline_ms: u64,
    /// Allow rules, already checked by [`crate::Profile::parse_rule`] and [`crate::PermissionRule::check_allow`].
    pub allow: &'a [String],
    /// Deny rules, already checked by [`crate::Profile::parse_rule`].
    pub deny: &'a [String],
    /// Hosts that the user keeps off proxies; the loopback is always added.
    pub no_proxy: Option<&'a str>,
    /// Servers of the project's own MCP file that stay off, so that no dialog asks for them.
    pub disabled_mcp_servers: &'a [String],
}

impl<'a> SettingsRequest<'a> {
    /// A request without rules, proxy exceptions and MCP servers.
    #[must_use]
    pub const fn new(
        url: &'a str,
        token: &'a str,
        helper: &'a Path,
        hook_socket: &'a Path,
        permission_deadline_ms: u64,
    ) -> Self {
        Self {
            url,
            token,
            helper,
            hook_socket,
            permission_deadline_ms,
            allow: &[],
            deny: &[],
            no_proxy: None,
            disabled_mcp_servers: &[],
        }
    }
}

/// A constant of a settings key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constant {
    Bool(bool),
    Number(u32),
    Text(&'static str),
}

/// The settings keys of a profile.
pub(crate) struct SettingsTable {
    /// Keys with one value for every session.
    pub(crate) constants: &'static [(&'static str, Constant)],
    /// Environment of the Claude process.
    pub(crate) child_env: &'static [(&'static str, &'static str)],
    /// Variables that keep hosts off proxies, and the hosts that always stay off.
    pub(crate) no_proxy_names: &'static [&'static str],
    pub(crate) no_proxy_hosts: &'static [&'static str],
    /// Header that carries the token.
    pub(crate) token_header: &'static str,
    /// Arguments of the forwarder before the socket, before the event.
    pub(crate) forward: (&'static [&'static str], &'static str),
    /// Key names.
    pub(crate) keys: SettingsKeys,
}

/// Names of settings keys whose values are made per session.
pub(crate) struct SettingsKeys {
    pub(crate) hooks: &'static str,
    pub(crate) permissions: &'static str,
    pub(crate) allow: &'static str,
    pub(crate) deny: &'static str,
    pub(crate) env: &'static str,
    pub(crate) disabled_mcp_servers: &'static str,
    /// Value of a failing hook that blocks.
    pub(crate) on_failure: (&'static str, &'static str),
}

/// The settings JSON text.
pub(crate) fn plan(
    table: &SettingsTable,
    hooks: &HookTable,
    request: &SettingsRequest<'_>,
) -> String {
    let keys = &table.keys;
    let mut root = Map::new();
    for (key, value) in table.constants {
        root.insert((*key).to_owned(), constant(*value));
    }
    let events: Map<String, Value> = hooks
        .rows
        .iter()
        .filter_map(|row| {
            let hook = hook(table, row, row.registration?, request);
            Some((row.event.to_owned(), json!([{ keys.hooks: [hook] }])))
        })
        .collect();
    root.insert(keys.hooks.to_owned(), Value::Object(events));
    root.insert(
        keys.permissions.to_owned(),
        json!({ keys.allow: trimmed(request.allow), keys.deny: trimmed(request.deny) }),
    );
    let hosts = no_proxy(table, request.no_proxy.unwrap_or(""));
    let env: Map<String, Value> = table
        .no_proxy_names
        .iter()
        .map(|name| ((*name).to_owned(), Value::from(hosts.as_str())))
        .collect();
    root.insert(keys.env.to_owned(), Value::Object(env));
    if !request.disabled_mcp_servers.is_empty() {
        root.insert(
            keys.disabled_mcp_servers.to_owned(),
            json!(request.disabled_mcp_servers),
        );
    }
    Value::Object(root).to_string()
}

/// Rules without surrounding blanks: with them a rule silently fits no tool.
fn trimmed(rules: &[String]) -> Vec<&str> {
    rules.iter().map(|rule| rule.trim()).collect()
}

fn constant(value: Constant) -> Value {
    match value {
        Constant::Bool(value) => Value::from(value),
        Constant::Number(value) => Value::from(value),
        Constant::Text(value) => Value::from(value),
    }
}

/// One hook entry.
fn hook(
    table: &SettingsTable,
    row: &HookRow,
    registration: Registration,
    request: &SettingsRequest<'_>,
) -> Value {
    let mut entry = match registration.transport {
        Transport::Http => json!({
            "type": "http",
            "url": format!("{}/h/{}", request.url, row.event),
            "headers": { table.token_header: request.token },
        }),
        Transport::Command => {
            let (before_socket, before_event) = table.forward;
            let mut args: Vec<Cow<'_, str>> = before_socket
                .iter()
                .map(|arg| Cow::Borrowed(*arg))
                .collect();
            args.push(request.hook_socket.to_string_lossy());
            args.push(before_event.into());
            args.push(row.event.into());
            json!({
                "type": "command",
                "command": request.helper.to_string_lossy(),
                "args": args,
            })
        }
    };
    if let Some(entry) = entry.as_object_mut() {
        let seconds = match registration.timeout {
            HookTimeout::Seconds(seconds) => seconds,
            HookTimeout::DeadlineAnd(seconds) => request
                .permission_deadline_ms
                .div_ceil(1000)
                .saturating_add(seconds),
        };
        entry.insert("timeout".to_owned(), Value::from(seconds));
        if registration.fails_closed {
            let (key, value) = table.keys.on_failure;
            entry.insert(key.to_owned(), Value::from(value));
        }
    }
    entry
}

/// The hosts that always stay off proxies, then the user's, each once.
fn no_proxy(table: &SettingsTable, users: &str) -> String {
    let mut hosts: Vec<&str> = Vec::new();
    let users = users.split([',', ' ']).map(str::trim);
    for host in table.no_proxy_hosts.iter().copied().chain(users) {
        if !host.is_empty() && !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts.join(",")
}
