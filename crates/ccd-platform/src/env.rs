//! The environment of this process, read as a whole.
//!
//! What lives here: the only reading of all variables, as data for the builders of child environments. What never
//! does: handing it to a child.

use std::collections::BTreeMap;

/// All variables of this process whose name and value are valid Unicode; others are left out.
#[must_use]
pub fn process_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// A variable that is set and not empty.
pub(crate) fn set<'a>(env: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    env.get(name)
        .map(String::as_str)
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn the_environment_holds_what_a_single_read_gives() {
        let env = process_environment();
        assert_eq!(env.get("PATH").cloned(), std::env::var("PATH").ok());
    }

    #[test]
    fn an_empty_variable_counts_as_not_set() {
        let env = BTreeMap::from([
            ("A".to_owned(), String::new()),
            ("B".to_owned(), "b".to_owned()),
        ]);
        assert_eq!(
            (set(&env, "A"), set(&env, "B"), set(&env, "C")),
            (None, Some("b"), None)
        );
    }
}
