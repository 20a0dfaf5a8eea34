//! The contract of the editor port.

use ccd_model::{ids::OpId, observation::OpEnd};
use ccd_ports::{raw::Raw, session::Editor};

use super::{Rig, refused};

/// An editor port and a Claude that starts editors.
pub trait EditorRig: Rig {
    fn port(&mut self) -> &mut dyn Editor;
    /// Claude starts its editor on a composer that holds `had`; what the composer holds afterwards.
    async fn open(&mut self, had: &str) -> String;
}

fn taken(had: &str) -> OpEnd {
    OpEnd::Taken { had: had.into() }
}

/// The whole suite on one editor.
pub async fn editor_contract(rig: &mut impl EditorRig) {
    a_staged_text_is_taken_exactly_once(rig).await;
    nothing_staged_keeps_the_draft(rig).await;
    an_unstaged_text_is_not_given_out(rig).await;
    unstaging_something_else_changes_nothing(rig).await;
    a_new_text_replaces_the_one_before(rig).await;
    every_text_arrives_exactly(rig).await;
}

async fn a_staged_text_is_taken_exactly_once(rig: &mut impl EditorRig) {
    rig.port().stage(OpId(1), "prompt".into());
    assert_eq!(rig.open("a draft\n").await, "prompt");
    assert_eq!(rig.ended(OpId(1)).await.0, taken("a draft\n"));
    assert_eq!(rig.open("prompt").await, "prompt");
    rig.port().unstage(OpId(2), OpId(1));
    let (end, records) = rig.ended(OpId(2)).await;
    assert_eq!((end, records.len()), (OpEnd::Done, 1));
}

async fn nothing_staged_keeps_the_draft(rig: &mut impl EditorRig) {
    assert_eq!(rig.open("mine\n").await, "mine\n");
    assert!(rig.records().take().is_empty());
}

async fn an_unstaged_text_is_not_given_out(rig: &mut impl EditorRig) {
    rig.port().stage(OpId(10), "never".into());
    rig.port().unstage(OpId(11), OpId(10));
    let (_, records) = rig.ended(OpId(11)).await;
    let expected = [
        Raw::OpEnded {
            op: OpId(10),
            end: refused("unstaged"),
        },
        Raw::OpEnded {
            op: OpId(11),
            end: OpEnd::Done,
        },
    ];
    assert_eq!(records, expected);
    assert_eq!(rig.open("draft").await, "draft");
}

async fn unstaging_something_else_changes_nothing(rig: &mut impl EditorRig) {
    rig.port().stage(OpId(20), "kept".into());
    rig.port().unstage(OpId(21), OpId(19));
    let (end, records) = rig.ended(OpId(21)).await;
    assert_eq!((end, records.len()), (OpEnd::Done, 1));
    assert_eq!(rig.open("").await, "kept");
    assert_eq!(rig.ended(OpId(20)).await.0, taken(""));
}

async fn a_new_text_replaces_the_one_before(rig: &mut impl EditorRig) {
    rig.port().stage(OpId(30), "old".into());
    rig.port().stage(OpId(31), "new".into());
    assert_eq!(rig.ended(OpId(30)).await.0, refused("replaced"));
    assert_eq!(rig.open("").await, "new");
    assert_eq!(rig.ended(OpId(31)).await.0, taken(""));
}

async fn every_text_arrives_exactly(rig: &mut impl EditorRig) {
    let long = "❯\u{a0}line \t\r\n".repeat(80_000);
    let texts = ["", "\n", "!ls", "CCD1 KEEP\n", "\u{feff}\u{0}", &long];
    for (op, text) in (40..).zip(texts) {
        rig.port().stage(OpId(op), text.into());
        assert!(rig.open("before").await == text, "{op}");
        assert_eq!(rig.ended(OpId(op)).await.0, taken("before"));
    }
}
