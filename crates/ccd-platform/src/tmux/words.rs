//! Quoting for the two languages that tmux reads: its command lines, and its argument lists.
//!
//! What lives here: pure text to text. What never does: knowing any command.

/// One word of a tmux command line, taken literally whatever it holds (but it must have no line end).
pub(crate) fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// One argument of a tmux argument list. There an argument that ends with `;` would end the command.
pub(crate) fn argument(word: &str) -> String {
    match word.strip_suffix(';') {
        Some(head) => format!(r"{head}\;"),
        None => word.to_owned(),
    }
}

/// One word of a POSIX shell command line, for people to copy.
pub(crate) fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        quote(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_inside_are_carried() {
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("#{x} $Y \"z\""), "'#{x} $Y \"z\"'");
    }

    #[test]
    fn a_last_semicolon_is_escaped_and_others_are_not() {
        assert_eq!(argument(";"), r"\;");
        assert_eq!(argument("a;b;"), r"a;b\;");
        assert_eq!(argument(r"x\;"), r"x\\;");
        assert_eq!(argument("a;b"), "a;b");
        assert_eq!(argument(""), "");
    }

    #[test]
    fn only_odd_words_are_quoted_for_the_shell() {
        assert_eq!(shell("/run/x-1/tmux.sock"), "/run/x-1/tmux.sock");
        assert_eq!(shell("a b"), "'a b'");
        assert_eq!(shell(""), "''");
    }
}
