//! The contract of the process port.

use ccd_model::{ids::OpId, intent::Signal, observation::OpEnd};
use ccd_ports::{raw::Raw, session::Process};

use super::Rig;

/// A process port with a living pane process, and other processes to watch.
pub trait ProcessRig: Rig {
    fn port(&mut self) -> &mut dyn Process;
    fn pane_pid(&self) -> u32;
    /// A living process of the session besides the pane's.
    async fn other(&mut self) -> u32;
    /// Ends a process of [`ProcessRig::other`].
    async fn end_other(&mut self, pid: u32);
    /// The pane's process ends with this exit code.
    async fn exit_pane(&mut self, code: i32);
}

fn exits(records: &[Raw], of: u32) -> Vec<(Option<i32>, Option<i32>)> {
    records
        .iter()
        .filter_map(|raw| match raw {
            Raw::Exited { pid, code, signal } if *pid == of => Some((*code, *signal)),
            _ => None,
        })
        .collect()
}

/// The whole suite on one launch.
pub async fn process_contract(rig: &mut impl ProcessRig) {
    // An end that was seen is told once, however often it was asked for.
    let pid = rig.other().await;
    rig.port().watch(pid);
    rig.port().watch(pid);
    assert!(rig.records().take().is_empty());
    rig.end_other(pid).await;
    let records = rig.until("exit", |r| !exits(r, pid).is_empty()).await;
    assert_eq!(exits(&records, pid).len(), 1);

    // A process that has ended takes no signal, and its end is not told again.
    rig.port().signal(OpId(1), Signal::Kill);
    let (end, records) = rig.ended(OpId(1)).await;
    assert!(matches!(end, OpEnd::Refused { .. }), "{end:?}");
    rig.port().watch(pid);
    assert!(exits(&records, pid).is_empty());

    // The end of one that was gone before it was watched is told at once.
    let gone = rig.other().await;
    rig.end_other(gone).await;
    rig.port().watch(gone);
    let records = rig.until("exit", |r| !exits(r, gone).is_empty()).await;
    assert_eq!(exits(&records, gone).len(), 1);

    // A signal goes to the process that is watched as Claude.
    let claude = rig.other().await;
    rig.port().watch(claude);
    rig.port().signal(OpId(2), Signal::Term);
    assert_eq!(
        rig.until("end and exit", |r| {
            super::end(r, OpId(2)).is_some() && !exits(r, claude).is_empty()
        })
        .await
        .len(),
        2
    );

    // The pane's own end is told without being asked for.
    let pane = rig.pane_pid();
    rig.exit_pane(7).await;
    let records = rig.until("exit", |r| !exits(r, pane).is_empty()).await;
    let status = exits(&records, pane);
    assert!(
        status == [(Some(7), None)] || status == [(None, None)],
        "{status:?}"
    );
    rig.port().watch(pane);
    assert!(rig.records().take().is_empty());
}
