//! The process port on real processes and on the fake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;

use std::{process::Command, sync::Arc};

use ccd_model::{ids::OpId, intent::Signal, observation::OpEnd};
use ccd_ports::{clock::Clock, inbox::Inbox, raw::Raw, session::Process};
use ccd_testing::fakes::process::{FakeProcess, FakeProcessControl};
use contract::{
    LAUNCH, Records, Rig,
    process::{ProcessRig, process_contract},
    real::RealRig,
};

struct FakeRig {
    records: Arc<Records>,
    clock: Arc<dyn Clock>,
    process: FakeProcess,
    control: FakeProcessControl,
    next: u32,
}

impl Rig for FakeRig {
    fn records(&self) -> &Records {
        &self.records
    }
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }
}

impl ProcessRig for FakeRig {
    fn port(&mut self) -> &mut dyn Process {
        &mut self.process
    }
    fn pane_pid(&self) -> u32 {
        100
    }
    async fn other(&mut self) -> u32 {
        self.next += 1;
        self.next
    }
    async fn end_other(&mut self, pid: u32) {
        self.control.exit(pid, None, None);
    }
    async fn exit_pane(&mut self, code: i32) {
        self.control.exit(100, Some(code), None);
    }
}

#[tokio::test]
async fn the_fake_process_keeps_the_contract() {
    let records = Arc::new(Records::default());
    let clock = contract::clock();
    let inbox: Arc<dyn Inbox> = Arc::clone(&records) as Arc<dyn Inbox>;
    let (process, control) = FakeProcess::new(LAUNCH, inbox, Arc::clone(&clock), 100);
    let mut rig = FakeRig {
        records,
        clock,
        process,
        control,
        next: 200,
    };
    process_contract(&mut rig).await;
}

#[tokio::test]
async fn real_processes_keep_the_contract() {
    let mut rig = RealRig::exiting().await;
    process_contract(&mut rig).await;
    rig.finish().await;
}

#[tokio::test]
async fn the_panes_exit_code_is_known_nearly_always_and_the_end_is_told_soon() {
    let mut known = 0;
    for _ in 0..5 {
        let mut rig = RealRig::exiting().await;
        let pane = rig.pane_pid();
        let began = rig.clock().now();
        rig.exit_pane(7).await;
        let records = rig
            .until("exit", |r| {
                r.iter().any(|raw| matches!(raw, Raw::Exited { .. }))
            })
            .await;
        assert!(rig.clock().now().since(began) < 1_500);
        match records.as_slice() {
            [
                Raw::LastScreen { .. },
                Raw::Exited {
                    pid,
                    code: Some(7),
                    signal: None,
                },
            ] if *pid == pane => known += 1,
            [
                Raw::Exited {
                    code: None,
                    signal: None,
                    ..
                },
            ] => {}
            other => panic!("{other:?}"),
        }
        rig.finish().await;
    }
    assert!(known >= 4, "{known} of 5");
}

#[tokio::test]
async fn a_killed_pane_is_told_with_its_signal() {
    let mut rig = RealRig::started().await;
    rig.process_port().signal(OpId(1), Signal::Kill);
    let records = rig
        .until("exit", |r| {
            r.iter().any(|raw| matches!(raw, Raw::Exited { .. }))
        })
        .await;
    assert_eq!(contract::end(&records, OpId(1)), Some(OpEnd::Done));
    let exit = records.iter().find(|raw| matches!(raw, Raw::Exited { .. }));
    assert!(
        matches!(
            exit,
            Some(Raw::Exited {
                code: None,
                signal: None | Some(9),
                ..
            })
        ),
        "{exit:?}"
    );
    rig.finish().await;
}

#[tokio::test]
async fn a_process_of_somebody_else_is_never_signalled() {
    let mut rig = RealRig::started().await;
    let mut stranger = Command::new("sleep")
        .arg("600")
        .env_clear()
        .spawn()
        .unwrap();
    rig.process_port().watch(stranger.id());
    // It goes to the pane's process instead, which is ours.
    rig.process_port().signal(OpId(1), Signal::Term);
    assert_eq!(rig.ended(OpId(1)).await.0, OpEnd::Done);
    assert_eq!(stranger.try_wait().unwrap(), None);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    rig.finish().await;
}
