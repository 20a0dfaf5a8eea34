//! Redaction of trace lines: exact secret texts and a few token shapes become numbered placeholders.
//!
//! Here lives the substitution. What is written where never does. The substitution is on plain text and the same everywhere,
//! so that a redacted trace replays to the redacted events.

use std::{borrow::Cow, collections::BTreeMap};

/// Shorter values are too common to be replaced everywhere.
const MIN_SECRET: usize = 8;

/// Parts of a variable's name that make its value a secret.
const SECRET_NAMES: &[&str] = &[
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "COOKIE",
];

/// A token shape: what it starts with, and how long and of which characters the rest is.
struct Shape {
    /// Literal beginning, compared without case.
    prefix: &'static str,
    /// The beginning is part of the secret.
    with_prefix: bool,
    /// Fewest characters after the beginning.
    min: usize,
    /// Further characters besides ASCII letters and digits.
    extra: &'static [u8],
    /// How many dots separate non-empty parts.
    dots: usize,
}

/// The shapes, by what they begin with.
const SHAPES: &[Shape] = &[
    Shape {
        prefix: "sk-ant-",
        with_prefix: true,
        min: 8,
        extra: b"-_",
        dots: 0,
    },
    Shape {
        prefix: "eyJ",
        with_prefix: true,
        min: 20,
        extra: b"-_.",
        dots: 2,
    },
    Shape {
        prefix: "Bearer ",
        with_prefix: false,
        min: 16,
        extra: b"-_.~+/=",
        dots: 0,
    },
    Shape {
        prefix: "CLAUDE_CODE_MESSAGING_TOKEN=",
        with_prefix: false,
        min: 8,
        extra: b"-_.~+/=",
        dots: 0,
    },
];

/// What is redacted besides exact secrets and token shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RedactOptions {
    /// E-mail addresses as well.
    pub emails: bool,
}

/// Replaces secrets in lines. Remembers which text got which number.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Exact texts, longest first, each with its number; escaped spellings share the number.
    exact: Vec<(String, u32)>,
    /// Numbers of texts found by shape.
    found: BTreeMap<String, u32>,
    last: u32,
    options: RedactOptions,
    off: bool,
}

impl Redactor {
    /// Redacts `secrets` and every known token shape. Secrets shorter than eight bytes are ignored.
    #[must_use]
    pub fn new(secrets: impl IntoIterator<Item = String>, options: RedactOptions) -> Self {
        let mut this = Self {
            options,
            ..Self::default()
        };
        for secret in secrets {
            this.add(&secret);
        }
        this
    }

    /// Changes nothing.
    #[must_use]
    pub fn off() -> Self {
        Self {
            off: true,
            ..Self::default()
        }
    }

    /// Adds one exact secret, in its plain and its JSON-escaped spellings.
    pub fn add(&mut self, secret: &str) {
        if secret.len() < MIN_SECRET || self.exact.iter().any(|(known, _)| known == secret) {
            return;
        }
        self.last = self.last.saturating_add(1);
        let mut spelling = secret.to_owned();
        // Plain, inside a JSON string, and inside a JSON document that is itself a JSON string.
        for _ in 0..3 {
            if !self.exact.iter().any(|(known, _)| *known == spelling) {
                self.exact.push((spelling.clone(), self.last));
            }
            spelling = escaped(&spelling);
        }
        self.exact
            .sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    }

    /// `line` with every secret replaced by `<redacted:n>`.
    pub fn apply<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(line);
        if self.off {
            return text;
        }
        for (secret, number) in &self.exact {
            if text.contains(secret.as_str()) {
                text = Cow::Owned(text.replace(secret.as_str(), &placeholder(*number)));
            }
        }
        let mut spans: Vec<(usize, usize)> = SHAPES
            .iter()
            .flat_map(|shape| shape_spans(&text, shape))
            .collect();
        if self.options.emails {
            spans.extend(email_spans(&text));
        }
        if spans.is_empty() {
            return text;
        }
        spans.sort_unstable();
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (from, to) in spans {
            let (Some(between), Some(secret)) = (text.get(done..from), text.get(from..to)) else {
                continue;
            };
            out.push_str(between);
            out.push_str(&placeholder(self.number(secret)));
            done = to;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }

    fn number(&mut self, secret: &str) -> u32 {
        if let Some(number) = self.found.get(secret) {
            return *number;
        }
        self.last = self.last.saturating_add(1);
        self.found.insert(secret.to_owned(), self.last);
        self.last
    }
}

/// The values of `env` that are secrets by their name, and passwords inside URLs.
#[must_use]
pub(crate) fn secrets_of_env(env: &BTreeMap<String, String>) -> Vec<String> {
    env.iter()
        .flat_map(|(name, value)| {
            let name = name.to_ascii_uppercase();
            let named = SECRET_NAMES.iter().any(|part| name.contains(part))
                && !value.bytes().all(|b| b.is_ascii_digit());
            [
                named.then(|| value.clone()),
                url_password(value).map(ToOwned::to_owned),
            ]
        })
        .flatten()
        .filter(|secret| secret.len() >= MIN_SECRET)
        .collect()
}

fn url_password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (userinfo, _) = authority.rsplit_once('@')?;
    userinfo.split_once(':').map(|(_, password)| password)
}

fn placeholder(number: u32) -> String {
    format!("<redacted:{number}>")
}

/// The inside of the JSON string literal of `text`.
fn escaped(text: &str) -> String {
    let literal = serde_json::Value::from(text).to_string();
    literal
        .get(1..literal.len().saturating_sub(1))
        .unwrap_or_default()
        .to_owned()
}

fn shape_spans(text: &str, shape: &Shape) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let prefix = shape.prefix.as_bytes();
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(start) = find_from(bytes, prefix, at) {
        let body = start.saturating_add(prefix.len());
        let tail = bytes.get(body..).unwrap_or_default();
        let taken = tail
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || shape.extra.contains(b))
            .count();
        let rest = tail.get(..taken).unwrap_or_default();
        at = body.saturating_add(taken).max(start.saturating_add(1));
        let parts: Vec<&[u8]> = rest.split(|b| *b == b'.').collect();
        let dotted = shape.dots == 0
            || (parts.len() == shape.dots.saturating_add(1)
                && parts.iter().all(|part| !part.is_empty()));
        // Words are not tokens: a token has a digit somewhere.
        let token = taken >= shape.min && dotted && rest.iter().any(u8::is_ascii_digit);
        if token {
            let from = if shape.with_prefix { start } else { body };
            spans.push((from, body.saturating_add(taken)));
        } else {
            at = body;
        }
    }
    spans
}

fn find_from(haystack: &[u8], needle: &[u8], from: usize) -> Option<usize> {
    haystack
        .get(from..)?
        .windows(needle.len())
        .position(|window| window.eq_ignore_ascii_case(needle))
        .map(|index| from.saturating_add(index))
}

fn email_spans(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let word = |b: &u8| b.is_ascii_alphanumeric() || b"._%+-".contains(b);
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let local = bytes
            .get(..at)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|b| word(b))
            .count();
        let after = at.saturating_add(1);
        let domain = bytes
            .get(after..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'.' || **b == b'-')
            .count();
        let to = after.saturating_add(domain);
        let name = text
            .get(after..to)
            .unwrap_or_default()
            .trim_end_matches(['.', '-']);
        let real = local > 0
            && name.rsplit_once('.').is_some_and(|(host, top)| {
                !host.is_empty() && top.len() >= 2 && top.bytes().all(|b| b.is_ascii_alphabetic())
            });
        if real {
            spans.push((at.saturating_sub(local), after.saturating_add(name.len())));
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    fn redact(line: &str) -> String {
        Redactor::new(
            ["hunter2-hunter2".to_owned()],
            RedactOptions { emails: true },
        )
        .apply(line)
        .into_owned()
    }

    #[test]
    fn each_kind_of_secret_is_replaced() {
        let table = [
            ("a hunter2-hunter2 b", "a <redacted:1> b"),
            ("key sk-ant-api03-AbC_9-x, then", "key <redacted:2>, then"),
            ("SK-ANT-oat01-AbCdEf12", "<redacted:2>"),
            (
                "Authorization: Bearer abcdef0123456789abcd\\n",
                "Authorization: Bearer <redacted:2>\\n",
            ),
            (
                "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl end",
                "jwt <redacted:2> end",
            ),
            (
                "X CLAUDE_CODE_MESSAGING_TOKEN=ab12cd34ef56 Y",
                "X CLAUDE_CODE_MESSAGING_TOKEN=<redacted:2> Y",
            ),
            ("mail a.b+c@example.org.", "mail <redacted:2>."),
        ];
        for (line, expected) in table {
            assert_eq!(redact(line), expected, "{line}");
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for line in [
            "Invalid bearer token",
            "bearer authentication-is-a-word",
            "sk-ant-",
            "sk-ant-abc",
            "eyJustAWordWithoutDotsAndLonger1",
            "{\"a\":\"eyJ.1.\"}",
            "git@host",
            "a @ b.c",
            "",
            "<redacted:1>",
            "ünï → ✻",
        ] {
            assert_eq!(redact(line), line);
        }
    }

    #[test]
    fn the_same_secret_has_the_same_number_everywhere() {
        let mut redactor = Redactor::new(
            ["first-secret".into(), "second-secret".into()],
            RedactOptions::default(),
        );
        assert_eq!(
            redactor.apply("second-secret first-secret"),
            "<redacted:2> <redacted:1>"
        );
        assert_eq!(redactor.apply("sk-ant-12345678"), "<redacted:3>");
        assert_eq!(
            redactor.apply("sk-ant-87654321 sk-ant-12345678"),
            "<redacted:4> <redacted:3>"
        );
        assert_eq!(redactor.apply("a@example.org"), "a@example.org");
    }

    #[test]
    fn secrets_are_found_in_every_json_spelling() {
        let secret = "qu\"ote\\back";
        let mut redactor = Redactor::new([secret.to_owned()], RedactOptions::default());
        let once = serde_json::json!({ "v": secret }).to_string();
        let twice = serde_json::json!({ "body": once }).to_string();
        assert_eq!(redactor.apply(&once), "{\"v\":\"<redacted:1>\"}");
        assert_eq!(
            redactor.apply(&twice),
            "{\"body\":\"{\\\"v\\\":\\\"<redacted:1>\\\"}\"}"
        );
    }

    #[test]
    fn a_secret_that_contains_another_is_replaced_whole() {
        let mut redactor = Redactor::new(
            ["12345678".into(), "0123456789".into()],
            RedactOptions::default(),
        );
        assert_eq!(
            redactor.apply("x0123456789y12345678"),
            "x<redacted:2>y<redacted:1>"
        );
    }

    #[test]
    fn an_off_redactor_changes_nothing() {
        assert_eq!(Redactor::off().apply("sk-ant-12345678"), "sk-ant-12345678");
    }

    #[test]
    fn secret_variables_are_known_by_name_and_urls_by_shape() {
        let env: BTreeMap<String, String> = [
            ("MY_API_KEY", "value-one"),
            ("github_token", "value-two"),
            ("MAX_TOKENS", "1234567890"),
            ("SHORT_KEY", "abc"),
            ("PATH", "/usr/bin:/bin"),
            ("https_proxy", "http://user:value-three@proxy:8080/"),
        ]
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .collect();
        let mut found = secrets_of_env(&env);
        found.sort();
        assert_eq!(found, ["value-one", "value-three", "value-two"]);
    }
}
