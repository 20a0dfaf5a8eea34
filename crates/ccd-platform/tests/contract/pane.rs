//! The contract of the pane port.

use ccd_model::{
    ids::OpId,
    intent::{Key, KeyGuard, KeyHeld},
    observation::OpEnd,
};
use ccd_ports::{
    raw::{PaneMeta, Raw},
    session::Pane,
};
use ccd_testing::fakes::pane::Painted;

use super::Rig;

/// A pane, its painter and its keyboard's other end.
pub trait PaneRig: Rig {
    fn pane(&mut self) -> &mut dyn Pane;
    /// Paints; resolves when a capture would show it. `Composer` and `Dialog` add a row of their own.
    async fn paint(&mut self, rows: &[&str], painted: Painted);
    /// The keys that the program has got, once there are at least `count`.
    async fn pressed(&mut self, count: usize) -> Vec<Key>;
}

const ALL_KEYS: [Key; 4] = [Key::Enter, Key::Escape, Key::CtrlG, Key::Backspace];

fn held(held: KeyHeld) -> OpEnd {
    OpEnd::Held { held }
}

/// A frame's operation, and its state and text unless it is a repetition.
type Told = (Option<OpId>, Option<(PaneMeta, String)>);

fn frames(records: &[Raw]) -> Vec<Told> {
    records
        .iter()
        .filter_map(|raw| match raw {
            Raw::Frame { op, meta, text } => Some((*op, Some((meta.clone(), text.to_string())))),
            Raw::FrameSame { op } => Some((*op, None)),
            _ => None,
        })
        .collect()
}

/// The whole suite on one pane.
pub async fn pane_contract(rig: &mut impl PaneRig) {
    an_asked_capture_is_told_and_then_ends(rig).await;
    a_repetition_is_told_at_most_twice_unless_asked_for(rig).await;
    a_forgotten_frame_is_told_in_full(rig).await;
    rows_that_look_like_the_protocol_are_rows(rig).await;
    a_guarded_key_is_pressed_once_when_its_guard_holds(rig).await;
    a_dialog_holds_every_key_at_once(rig).await;
    a_composer_that_never_comes_holds_the_key(rig).await;
    a_key_waits_for_the_composer(rig).await;
    a_key_without_composer_guard_needs_no_composer(rig).await;
    a_key_whose_time_is_over_is_not_tried(rig).await;
    operations_end_in_order(rig).await;
}

async fn an_asked_capture_is_told_and_then_ends(rig: &mut impl PaneRig) {
    rig.paint(&["one", "", "three"], Painted::Nothing).await;
    rig.records().take();
    rig.pane().capture(Some(OpId(1)));
    let (end, records) = rig.ended(OpId(1)).await;
    assert_eq!(end, OpEnd::Done);
    let told = frames(&records);
    let [(op, Some((meta, text)))] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!((*op, text.as_str()), (Some(OpId(1)), "one\n\nthree"));
    assert_eq!(
        (meta.cols, meta.rows, meta.alternate, meta.dead),
        (250, 80, false, false)
    );
    assert!(matches!(records.last(), Some(Raw::OpEnded { .. })));
    assert_eq!(&*rig.pane().last_frame(), "one\n\nthree");
    assert!(!rig.pane().attach_command().is_empty());
}

async fn a_repetition_is_told_at_most_twice_unless_asked_for(rig: &mut impl PaneRig) {
    rig.paint(&["same"], Painted::Nothing).await;
    rig.pane().capture(Some(OpId(10)));
    rig.ended(OpId(10)).await;
    let mut told = 0;
    for op in 11..16 {
        rig.pane().capture(None);
        // A key that cannot be pressed any more ends after the capture before it.
        let past = rig.clock().now();
        rig.pane()
            .key(OpId(op), Key::Enter, KeyGuard::Composer, past);
        let (_, records) = rig.ended(OpId(op)).await;
        for (op, frame) in frames(&records) {
            assert_eq!((op, frame), (None, None));
            told += 1;
        }
    }
    assert_eq!(told, 2);
    rig.pane().capture(Some(OpId(20)));
    let (_, records) = rig.ended(OpId(20)).await;
    assert_eq!(frames(&records), [(Some(OpId(20)), None)]);
}

async fn a_forgotten_frame_is_told_in_full(rig: &mut impl PaneRig) {
    rig.pane().capture(Some(OpId(30)));
    rig.ended(OpId(30)).await;
    rig.pane().forget_frame();
    rig.pane().capture(Some(OpId(31)));
    let (_, records) = rig.ended(OpId(31)).await;
    let told = frames(&records);
    assert!(
        matches!(told.as_slice(), [(Some(OpId(31)), Some((_, text)))] if text == "same"),
        "{told:?}"
    );
}

async fn rows_that_look_like_the_protocol_are_rows(rig: &mut impl PaneRig) {
    let rows = [
        "%end 1 2 1",
        "%begin 1 2 1",
        "%exit",
        "FIRED",
        "%error 1 2 1",
    ];
    rig.paint(&rows, Painted::Nothing).await;
    rig.pane().capture(Some(OpId(40)));
    let (end, _) = rig.ended(OpId(40)).await;
    assert_eq!(end, OpEnd::Done);
    assert_eq!(&*rig.pane().last_frame(), rows.join("\n"));
}

async fn a_guarded_key_is_pressed_once_when_its_guard_holds(rig: &mut impl PaneRig) {
    let before = rig.pressed(0).await.len();
    rig.paint(&["text"], Painted::Composer).await;
    for (op, key) in (50..).zip(ALL_KEYS) {
        let until = rig.clock().now().after(5_000);
        rig.pane().key(OpId(op), key, KeyGuard::Composer, until);
        assert_eq!(rig.ended(OpId(op)).await.0, OpEnd::Done);
    }
    let pressed = rig.pressed(before + 4).await;
    assert_eq!(pressed[before..], ALL_KEYS);
}

async fn a_dialog_holds_every_key_at_once(rig: &mut impl PaneRig) {
    let before = rig.pressed(0).await.len();
    rig.paint(&["text"], Painted::Dialog).await;
    for (op, guard) in (60..).zip([KeyGuard::Composer, KeyGuard::NoDialog]) {
        let now = rig.clock().now();
        rig.pane()
            .key(OpId(op), Key::Enter, guard, now.after(60_000));
        let (end, _) = rig.ended(OpId(op)).await;
        assert_eq!(end, held(KeyHeld::Dialog));
        assert!(rig.clock().now().since(now) < 5_000);
    }
    assert_eq!(rig.pressed(0).await.len(), before);
}

async fn a_composer_that_never_comes_holds_the_key(rig: &mut impl PaneRig) {
    let before = rig.pressed(0).await.len();
    rig.paint(&["text"], Painted::Nothing).await;
    let until = rig.clock().now().after(60);
    rig.pane()
        .key(OpId(70), Key::Enter, KeyGuard::Composer, until);
    let (end, _) = rig.ended(OpId(70)).await;
    assert_eq!(end, held(KeyHeld::NotPainted));
    assert!(rig.clock().now() >= until);
    assert_eq!(rig.pressed(0).await.len(), before);
}

async fn a_key_waits_for_the_composer(rig: &mut impl PaneRig) {
    let before = rig.pressed(0).await.len();
    rig.paint(&[""], Painted::Nothing).await;
    let until = rig.clock().now().after(10_000);
    rig.pane()
        .key(OpId(80), Key::Enter, KeyGuard::Composer, until);
    rig.paint(&["now"], Painted::Nothing).await;
    assert_eq!(super::end(&rig.records().all(), OpId(80)), None);
    rig.paint(&["now"], Painted::Composer).await;
    assert_eq!(rig.ended(OpId(80)).await.0, OpEnd::Done);
    assert_eq!(rig.pressed(before + 1).await[before..], [Key::Enter]);
}

async fn a_key_without_composer_guard_needs_no_composer(rig: &mut impl PaneRig) {
    let before = rig.pressed(0).await.len();
    rig.paint(&["busy"], Painted::Nothing).await;
    let until = rig.clock().now().after(5_000);
    rig.pane()
        .key(OpId(90), Key::Escape, KeyGuard::NoDialog, until);
    assert_eq!(rig.ended(OpId(90)).await.0, OpEnd::Done);
    assert_eq!(rig.pressed(before + 1).await[before..], [Key::Escape]);
}

async fn a_key_whose_time_is_over_is_not_tried(rig: &mut impl PaneRig) {
    let before = rig.pressed(0).await.len();
    rig.paint(&["text"], Painted::Composer).await;
    super::eventually("a later moment", || rig.clock().now().0 > 0).await;
    let past = ccd_model::time::Mono(rig.clock().now().0 - 1);
    rig.pane()
        .key(OpId(100), Key::Enter, KeyGuard::Composer, past);
    assert_eq!(rig.ended(OpId(100)).await.0, held(KeyHeld::NotPainted));
    assert_eq!(rig.pressed(0).await.len(), before);
}

async fn operations_end_in_order(rig: &mut impl PaneRig) {
    rig.paint(&["text"], Painted::Nothing).await;
    rig.records().take();
    let until = rig.clock().now().after(50);
    rig.pane().capture(Some(OpId(110)));
    rig.pane()
        .key(OpId(111), Key::Enter, KeyGuard::Composer, until);
    rig.pane().capture(Some(OpId(112)));
    rig.pane().key(
        OpId(113),
        Key::Escape,
        KeyGuard::NoDialog,
        until.after(5_000),
    );
    let (_, records) = rig.ended(OpId(113)).await;
    let ends: Vec<u32> = records
        .iter()
        .filter_map(|raw| match raw {
            Raw::OpEnded { op, .. } => Some(op.0),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [110, 111, 112, 113]);
}
