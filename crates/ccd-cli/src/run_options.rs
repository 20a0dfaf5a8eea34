//! The `run` arguments as session options. What this version cannot do is refused here, never dropped silently.

use std::{io::Read as _, path::Path};

use ccd_api::{
    Account, Error, ErrorCode, ExpectVersion, Options, PermissionMode, Permissions, Trust,
};

use crate::{
    args::{AccountArg, ExpectVersionArg, NetworkArg, PolicyArg, RunArgs, TrustArg},
    permissions::TerminalHandler,
};

fn usage(reason: &str, message: impl Into<String>) -> Error {
    Error::new(ErrorCode::Config, reason, message)
}

fn unsupported(flag: &str) -> Error {
    Error::new(
        ErrorCode::Unsupported,
        "flag",
        format!("{flag} is not available yet"),
    )
}

/// The prompt text: the argument, or standard input for `-` or nothing.
pub(crate) fn prompt(args: &RunArgs, stdin_is_terminal: bool) -> Result<String, Error> {
    match args.prompt.as_deref() {
        Some("-") => {}
        Some(text) => return Ok(text.to_owned()),
        None if stdin_is_terminal => {
            return Err(usage(
                "prompt_missing",
                "give a prompt, or `-` to read it from standard input",
            ));
        }
        None => {}
    }
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| usage("stdin", format!("cannot read standard input: {error}")))?;
    String::from_utf8(bytes)
        .map_err(|_| usage("stdin_not_utf8", "standard input is not valid UTF-8"))
}

/// The session options.
pub(crate) fn options(args: &RunArgs, terminal: bool) -> Result<Options, Error> {
    if args.network == NetworkArg::On {
        return Err(unsupported("--network on"));
    }
    if !args.connect_map.is_empty() {
        return Err(unsupported("--connect-map"));
    }
    if !args.fault.is_empty() {
        return Err(unsupported("--fault"));
    }
    let mode = PermissionMode::parse(&args.permission_mode).ok_or_else(|| {
        let known: Vec<&str> = PermissionMode::ALL.iter().map(|(_, name)| *name).collect();
        usage(
            "permission_mode",
            format!(
                "unknown permission mode `{}`; known: {}",
                args.permission_mode,
                known.join(", ")
            ),
        )
    })?;
    let policy = args.policy.unwrap_or(if terminal {
        PolicyArg::Ask
    } else {
        PolicyArg::Deny
    });
    let permissions = match policy {
        PolicyArg::Deny => Permissions::Deny,
        PolicyArg::DangerouslyAllowAll => Permissions::DangerouslyAllowAll,
        PolicyArg::AllowRead => return Err(unsupported("--policy allow-read")),
        PolicyArg::Ask if terminal => Permissions::handler(TerminalHandler),
        PolicyArg::Ask => {
            return Err(usage(
                "ask_without_terminal",
                "--policy ask needs a terminal",
            ));
        }
    };
    let mut options = Options::new(&args.cwd)
        .permissions(permissions)
        .permission_mode(mode)
        .expect_version(match args.expect_version {
            ExpectVersionArg::Pinned => ExpectVersion::Pinned,
            ExpectVersionArg::Any => ExpectVersion::Any,
        })
        .account(match args.account {
            AccountArg::Subscription => Account::Subscription,
            AccountArg::Any => Account::Any,
        })
        .trust(match args.trust {
            TrustArg::Require => Trust::Require,
            TrustArg::Seed => Trust::Seed,
        })
        .allowed_tools(
            args.allowed_tools
                .iter()
                .flat_map(|rules| split_rules(rules)),
        )
        .disallowed_tools(
            args.disallowed_tools
                .iter()
                .flat_map(|rules| split_rules(rules)),
        );
    if let Some(path) = &args.claude {
        options = options.claude(path);
    }
    if let Some(model) = &args.model {
        options = options.model(model);
    }
    if let Some(text) = &args.append_system_prompt {
        options = options.append_system_prompt(text);
    }
    for dir in &args.add_dir {
        options = options.add_dir(dir);
    }
    for file in &args.mcp_config {
        options = options.mcp_config(file);
    }
    if let Some(id) = &args.resume {
        options = options.resume(id);
    }
    if args.continue_last {
        options = options.continue_last();
    }
    if args.fork_session {
        options = options.fork();
    }
    if let Some(file) = &args.trace {
        options = options.trace(file);
    }
    for arg in &args.claude_args {
        options = options.arg(arg);
    }
    for (name, value) in variables(args)? {
        options = options.env(name, value);
    }
    Ok(options)
}

/// Splits a rule list at commas and white space outside of parentheses, as Claude Code does.
fn split_rules(rules: &str) -> Vec<String> {
    let (mut parts, mut part, mut depth) = (Vec::new(), String::new(), 0_u32);
    for c in rules.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            if !part.is_empty() {
                parts.push(std::mem::take(&mut part));
            }
        } else {
            part.push(c);
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

fn variables(args: &RunArgs) -> Result<Vec<(String, String)>, Error> {
    let mut found = Vec::new();
    for file in &args.env_file {
        found.extend(env_file(file)?);
    }
    for entry in &args.env {
        if let Some((name, value)) = entry.split_once('=') {
            found.push((variable_name(name)?, value.to_owned()));
        } else {
            let name = variable_name(entry)?;
            let value = std::env::var(&name).map_err(|_| {
                usage(
                    "env_unset",
                    format!("--env {name}: the variable is not set or not UTF-8"),
                )
            })?;
            found.push((name, value));
        }
    }
    Ok(found)
}

fn variable_name(name: &str) -> Result<String, Error> {
    let valid = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if valid {
        Ok(name.to_owned())
    } else {
        Err(usage(
            "env_name",
            format!("`{name}` is not a variable name"),
        ))
    }
}

fn env_file(file: &Path) -> Result<Vec<(String, String)>, Error> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        usage(
            "env_file",
            format!("cannot read {}: {error}", file.display()),
        )
    })?;
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (name, value) = line.split_once('=').ok_or_else(|| {
                usage(
                    "env_file",
                    format!("{}: expected K=V, found `{line}`", file.display()),
                )
            })?;
            Ok((variable_name(name.trim())?, value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_lists_split_outside_of_parentheses_only() {
        assert_eq!(
            split_rules("Bash(git log:*), Read,Edit(a, b) Write"),
            ["Bash(git log:*)", "Read", "Edit(a, b)", "Write"]
        );
        assert_eq!(split_rules(" , "), Vec::<String>::new());
    }
}
