//! The prompt guard's ruling.
//!
//! What lives here: one pure decision from the armed guard and the submitted text. What never does: the wire, or the
//! guard's state.

use ccd_model::{intent::PromptGuard, observation::Verdict};

/// What happens to a submitted prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ruling {
    pub(super) verdict: Verdict,
    /// The prompt is blocked.
    pub(super) block: bool,
    /// The guard is used up.
    pub(super) disarm: bool,
}

/// Rules on `prompt` (`None`: it could not be read). A prompt that begins with one of `internal` is Claude's own.
pub(super) fn rule(
    guard: Option<&PromptGuard>,
    prompt: Option<&str>,
    internal: &[String],
) -> Ruling {
    let ruling = |verdict, block, disarm| Ruling {
        verdict,
        block,
        disarm,
    };
    let Some(guard) = guard else {
        return ruling(Verdict::Foreign, false, false);
    };
    match prompt {
        Some(prompt) if prompt == guard.text.as_ref() => {
            if guard.self_test {
                ruling(Verdict::SelfTest, true, true)
            } else {
                ruling(Verdict::Exact, false, true)
            }
        }
        Some(prompt) if is_internal(prompt, internal) => ruling(Verdict::Foreign, false, false),
        Some(_) | None => ruling(Verdict::MismatchBlocked, true, true),
    }
}

fn is_internal(prompt: &str, internal: &[String]) -> bool {
    internal
        .iter()
        .any(|prefix| !prefix.is_empty() && prompt.starts_with(prefix.as_str()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use ccd_model::ids::JobKey;

    #[test]
    fn every_case_has_its_ruling() {
        let guard = |self_test| PromptGuard {
            job: JobKey(1),
            text: "do it".into(),
            self_test,
        };
        let (real, test) = (guard(false), guard(true));
        let internal = ["<task-".to_owned(), String::new()];
        let cases = [
            (None, Some("anything"), Verdict::Foreign, false, false),
            (None, None, Verdict::Foreign, false, false),
            (Some(&real), Some("do it"), Verdict::Exact, false, true),
            (
                Some(&real),
                Some("do it "),
                Verdict::MismatchBlocked,
                true,
                true,
            ),
            (Some(&real), Some(""), Verdict::MismatchBlocked, true, true),
            (Some(&real), None, Verdict::MismatchBlocked, true, true),
            (
                Some(&real),
                Some("<task-notification>"),
                Verdict::Foreign,
                false,
                false,
            ),
            (Some(&test), Some("do it"), Verdict::SelfTest, true, true),
            (
                Some(&test),
                Some("else"),
                Verdict::MismatchBlocked,
                true,
                true,
            ),
            (
                Some(&test),
                Some("<task-notification>"),
                Verdict::Foreign,
                false,
                false,
            ),
        ];
        for (guard, prompt, verdict, block, disarm) in cases {
            let ruling = rule(guard, prompt, &internal);
            assert_eq!(
                ruling,
                Ruling {
                    verdict,
                    block,
                    disarm
                },
                "{guard:?} {prompt:?}"
            );
        }
    }

    #[test]
    fn our_own_text_that_looks_internal_is_still_exact() {
        let guard = PromptGuard {
            job: JobKey(1),
            text: "<task-x".into(),
            self_test: false,
        };
        let ruling = rule(Some(&guard), Some("<task-x"), &["<task-".to_owned()]);
        assert_eq!(ruling.verdict, Verdict::Exact);
    }
}
