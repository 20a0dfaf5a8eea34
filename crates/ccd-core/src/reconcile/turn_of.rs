//! Which turn an observation belongs to: by prompt id where it has one, by tool, request or message id where those are known,
//! and for transcript lines without any id by the prompt line that stands before them in the file.

use ccd_model::{ids::TurnKey, lattice::Lattice, status::TurnStatus};

use crate::state::{Domain, Turn};

/// What is known of a prompt id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// A turn that has not ended.
    Open(TurnKey),
    /// A turn that has ended.
    Ended(TurnKey),
    /// A turn that was forgotten.
    Gone,
    /// Never seen.
    New,
}

/// Looks a prompt id up. An empty id stands for the turn that runs.
pub(crate) fn by_prompt(d: &Domain, id: &str) -> Known {
    let key = if id.is_empty() {
        match d.current() {
            Some(turn) => Some(turn.key),
            None => return Known::Gone,
        }
    } else {
        d.ids.prompts.get(id).copied()
    };
    match key.and_then(|key| d.turn(key)) {
        Some(turn) if turn.status.get().is_terminal() => Known::Ended(turn.key),
        Some(turn) => Known::Open(turn.key),
        None if d.tombs.has(id) => Known::Gone,
        None => Known::New,
    }
}

/// A turn whose prompt was acknowledged and whose own prompt id is still to come.
pub(crate) fn unbound(d: &Domain) -> Option<TurnKey> {
    d.open_turns
        .iter()
        .filter_map(|key| d.turn(*key))
        .find(|turn| {
            turn.submitted
                && turn.prompt_id.is_none()
                && match turn.status.get() {
                    TurnStatus::Running => true,
                    TurnStatus::Submitting => turn
                        .host
                        .and_then(|host| d.turn(host))
                        .is_none_or(|host| host.status.ended()),
                    TurnStatus::Queued
                    | TurnStatus::Stopping
                    | TurnStatus::Completed
                    | TurnStatus::Failed
                    | TurnStatus::Interrupted
                    | TurnStatus::Withdrawn
                    | TurnStatus::NotSubmitted
                    | TurnStatus::Aborted
                    | TurnStatus::Unknown => false,
                }
        })
        .map(|turn| turn.key)
}

/// Whether lines of an ended turn may still come.
fn lines_may_come(turn: &Turn) -> bool {
    !turn.tx_done
        && !turn.settled
        && matches!(
            turn.status.get(),
            TurnStatus::Completed | TurnStatus::Failed | TurnStatus::Interrupted
        )
}

/// The turn of a main-thread transcript line that names none.
pub(crate) fn for_line(d: &Domain) -> Option<TurnKey> {
    let written = d.session.tx_turn.and_then(|key| d.turn(key));
    written
        .filter(|turn| !turn.status.ended() || lines_may_come(turn))
        .or_else(|| d.current())
        // A fast turn has ended before its first line is on disk, and its request line may stand before its prompt line.
        .or_else(|| oldest_owing_lines(d))
        .or(written)
        .map(|turn| turn.key)
}

fn oldest_owing_lines(d: &Domain) -> Option<&Turn> {
    d.ended_turns
        .iter()
        .filter_map(|key| d.turn(*key))
        .find(|turn| lines_may_come(turn))
}

/// The turn of a duration line: the one whose prompt line stands before it, else the oldest one that still owes one, else the one that runs.
pub(crate) fn for_duration(d: &Domain) -> Option<TurnKey> {
    let owes = |turn: &&Turn| !turn.tx_done && turn.status.get() != TurnStatus::Withdrawn;
    d.session
        .tx_turn
        .and_then(|key| d.turn(key))
        .filter(owes)
        .or_else(|| oldest_owing_lines(d))
        .or_else(|| d.current().filter(owes))
        .map(|turn| turn.key)
}
