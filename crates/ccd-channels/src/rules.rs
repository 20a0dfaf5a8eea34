//! Permission rules in Claude's own syntax, checked before Claude sees them: a malformed one opens a blocking dialog there and
//! is dropped, so that what it should have denied passes. Tool names live in the profile.

use std::fmt;

use ccd_ports::session::DenyRule;

/// Why a rule would not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleError {
    /// Nothing but blanks.
    Empty,
    /// Not `Tool` or `Tool(content)`, or it does not end at the closing parenthesis.
    Malformed,
    /// `Tool()`: a pattern is missing.
    EmptyContent,
    /// `(content)`: a tool name is missing.
    NoTool,
    /// A tool name that begins with a lower-case letter.
    LowerCaseTool,
    /// An MCP rule with a pattern in parentheses.
    McpContent,
    /// `Bash(:*)`: a command is missing before the prefix sign.
    EmptyPrefix,
    /// The prefix sign in a rule about files.
    FilePrefix,
    /// An escaped parenthesis beside one that is not.
    AmbiguousEscape,
    /// A rule about hosts that is not spelled with its prefix, or holds a URL.
    NotADomain,
    /// A wildcard in a rule whose content is taken literally.
    LiteralOnly,
    /// A star in the tool name of an allow rule, other than behind an MCP server's name.
    WideAllow,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the rule is empty",
            Self::Malformed => {
                "the rule is neither Tool nor Tool(content) up to a closing parenthesis"
            }
            Self::EmptyContent => "the parentheses are empty; give a pattern or leave them out",
            Self::NoTool => "there is no tool name before the parentheses",
            Self::LowerCaseTool => "tool names begin with an upper-case letter",
            Self::McpContent => "MCP rules take no pattern in parentheses",
            Self::EmptyPrefix => "there is no command before :*",
            Self::FilePrefix => ":* is for command rules only; use * or ** for files",
            Self::AmbiguousEscape => "an escaped parenthesis stands beside an unescaped one",
            Self::NotADomain => "hosts are spelled domain:hostname, without a URL",
            Self::LiteralOnly => "this tool's rules take no * and no ?",
            Self::WideAllow => {
                "an allow rule may have a * in the tool name only behind an MCP server's name"
            }
        })
    }
}

impl std::error::Error for RuleError {}

/// A well-formed permission rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    /// The rule as written, without surrounding blanks.
    pub text: String,
    /// Tool name.
    pub tool: String,
    /// What stands in the parentheses.
    pub specifier: Option<String>,
    form: Form,
    /// The tool name has a star that an allow rule may not have.
    wide: bool,
}

/// What the hook thread can do with a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// Every call of the tool.
    Every,
    /// Every tool of an MCP server.
    Server,
    /// Commands that begin so.
    CommandPrefix(String),
    /// Exactly this command.
    Command(String),
    /// Only Claude can decide it.
    ClaudeOnly,
}

impl PermissionRule {
    /// Whether the rule may stand among allow rules too; deny rules may be wider.
    ///
    /// # Errors
    /// [`RuleError::WideAllow`].
    pub fn check_allow(&self) -> Result<(), RuleError> {
        if self.wide {
            Err(RuleError::WideAllow)
        } else {
            Ok(())
        }
    }

    /// The rule as the hook thread can decide it without Claude; `None` when only Claude can.
    #[must_use]
    pub fn to_deny(&self) -> Option<DenyRule> {
        let rule = |tool: &str, prefix: Option<&str>, exact: Option<&str>| DenyRule {
            text: self.text.clone(),
            tool: tool.to_owned(),
            command_prefix: prefix.map(str::to_owned),
            command_exact: exact.map(str::to_owned),
        };
        match &self.form {
            Form::Every => Some(rule(&self.tool, None, None)),
            Form::Server => Some(rule(&format!("{}__*", self.tool), None, None)),
            Form::CommandPrefix(prefix) => Some(rule(&self.tool, Some(prefix), None)),
            Form::Command(command) => Some(rule(&self.tool, None, Some(command))),
            Form::ClaudeOnly => None,
        }
    }
}

/// What a tool's content may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentRule {
    /// A path pattern: no prefix sign.
    Path,
    /// This prefix and a host.
    Host(&'static str),
    /// Literal text.
    Literal,
}

/// The tool names of a profile that rules treat in their own way.
pub(crate) struct RuleTable {
    pub(crate) mcp_prefix: &'static str,
    pub(crate) mcp_separator: &'static str,
    /// The tool whose content is a command.
    pub(crate) command_tool: &'static str,
    /// Tools whose content is checked.
    pub(crate) contents: &'static [(&'static str, ContentRule)],
    /// End of a command prefix.
    pub(crate) prefix_sign: &'static str,
    /// Ends that are read as a prefix as well.
    pub(crate) prefix_ends: &'static [&'static str],
}

/// Reads one rule.
pub(crate) fn parse(table: &RuleTable, rule: &str) -> Result<PermissionRule, RuleError> {
    let text = rule.trim();
    if text.is_empty() {
        return Err(RuleError::Empty);
    }
    let (tool, specifier) = match first_unescaped(text, '(') {
        None if first_unescaped(text, ')').is_some() => return Err(RuleError::Malformed),
        None => (text, None),
        Some(open) => {
            let content = text
                .get(open + 1..)
                .and_then(|rest| rest.strip_suffix(')'))
                .filter(|content| !ends_escaping(content))
                .ok_or(RuleError::Malformed)?;
            (text.get(..open).unwrap_or(""), Some(content))
        }
    };
    if tool.is_empty() {
        return Err(RuleError::NoTool);
    }
    if specifier.is_some_and(|content| content.trim().is_empty()) {
        return Err(RuleError::EmptyContent);
    }
    let form = if tool.starts_with(table.mcp_prefix) {
        if specifier.is_some() {
            return Err(RuleError::McpContent);
        }
        mcp_form(table, tool)
    } else {
        if tool.trim() != tool || tool.contains(')') {
            return Err(RuleError::Malformed);
        }
        if tool.starts_with(char::is_lowercase) {
            return Err(RuleError::LowerCaseTool);
        }
        match specifier {
            None => plain_form(tool),
            Some(content) => content_form(table, tool, content)?,
        }
    };
    Ok(PermissionRule {
        text: text.to_owned(),
        tool: tool.to_owned(),
        specifier: specifier.map(str::to_owned),
        form,
        wide: is_wide(table, tool),
    })
}

/// A star in the tool name that is not behind a whole MCP server name.
fn is_wide(table: &RuleTable, tool: &str) -> bool {
    let Some(star) = tool.find('*') else {
        return false;
    };
    let behind_server = tool
        .strip_prefix(table.mcp_prefix)
        .and_then(|rest| rest.find(table.mcp_separator))
        .is_some_and(|at| {
            at > 0 && at + table.mcp_prefix.len() + table.mcp_separator.len() <= star
        });
    !behind_server
}

/// A rule about a whole tool. The hook thread knows a star only at the end.
fn plain_form(tool: &str) -> Form {
    match tool.find('*') {
        Some(at) if at + 1 < tool.len() => Form::ClaudeOnly,
        _ => Form::Every,
    }
}

fn mcp_form(table: &RuleTable, tool: &str) -> Form {
    let server = tool.strip_prefix(table.mcp_prefix).unwrap_or(tool);
    if server.contains(table.mcp_separator) || server.contains('*') {
        plain_form(tool)
    } else {
        Form::Server
    }
}

fn check_content(table: &RuleTable, tool: &str, content: &str) -> Result<(), RuleError> {
    let rule = table.contents.iter().find(|(known, _)| *known == tool);
    let error = match rule.map(|(_, rule)| *rule) {
        Some(ContentRule::Path) if content.contains(table.prefix_sign) => RuleError::FilePrefix,
        Some(ContentRule::Host(prefix))
            if !content.starts_with(prefix) || content.contains("://") =>
        {
            RuleError::NotADomain
        }
        Some(ContentRule::Literal) if content.contains(['*', '?']) => RuleError::LiteralOnly,
        Some(ContentRule::Path | ContentRule::Host(_) | ContentRule::Literal) | None => {
            return Ok(());
        }
    };
    Err(error)
}

fn content_form(table: &RuleTable, tool: &str, content: &str) -> Result<Form, RuleError> {
    if mixes_escapes(content) {
        return Err(RuleError::AmbiguousEscape);
    }
    check_content(table, tool, content)?;
    if tool != table.command_tool {
        return Ok(Form::ClaudeOnly);
    }
    if content == table.prefix_sign {
        return Err(RuleError::EmptyPrefix);
    }
    if content == "*" {
        return Ok(Form::Every);
    }
    let prefix = std::iter::once(table.prefix_sign)
        .chain(table.prefix_ends.iter().copied())
        .find_map(|end| content.strip_suffix(end));
    let plain = |text: &str| !text.contains(['*', '\\']);
    Ok(match prefix {
        Some(prefix) if plain(prefix) && !prefix.trim().is_empty() => {
            Form::CommandPrefix(prefix.to_owned())
        }
        Some(_) => Form::ClaudeOnly,
        None if plain(content) => Form::Command(content.to_owned()),
        None => Form::ClaudeOnly,
    })
}

/// Byte index of the first `wanted` without a backslash before it.
fn first_unescaped(text: &str, wanted: char) -> Option<usize> {
    text.char_indices()
        .find(|(at, c)| *c == wanted && !ends_escaping(text.get(..*at).unwrap_or("")))
        .map(|(at, _)| at)
}

/// Whether what follows `text` is escaped: an odd number of backslashes ends it.
fn ends_escaping(text: &str) -> bool {
    text.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// Whether the content has escaped and unescaped parentheses.
fn mixes_escapes(content: &str) -> bool {
    let mut escaped = false;
    let mut plain = false;
    for (at, _) in content.match_indices(['(', ')']) {
        if ends_escaping(content.get(..at).unwrap_or("")) {
            escaped = true;
        } else {
            plain = true;
        }
    }
    escaped && plain
}
