//! The engine of a session: channels and core behind one door, fed live by the loop and from a file by the replay.
//!
//! Here live the numbering of inputs and events and the call of the core. Queues, time and executing intents never do.

use std::sync::Arc;

use ccd_channels::{Channels, FileRole, Profile};
use ccd_core::{Core, CoreConfig, Input, Step, step, view};
use ccd_model::{
    command::Command,
    event::{DomainEvent, Published},
    ids::{FileKey, Launch, Seq, Ticket},
    observation::Observed,
    time::{Mono, Stamp, Wall},
    view::View,
};
use ccd_ports::raw::Raw;

/// When and for which process start an input arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Session time.
    pub(crate) at: Mono,
    /// Wall time.
    pub(crate) wall: Wall,
    /// Process start.
    pub(crate) launch: Launch,
}

/// Channels, core and the counters of one session.
pub(crate) struct Engine {
    channels: Channels,
    core: Core,
    seq: Seq,
    event_seq: Seq,
    observed: Vec<Observed>,
    out: Step,
}

/// What follows from one input.
pub(crate) struct Stepped<'a> {
    /// The input.
    pub(crate) input: &'a Input,
    /// The core's answer. Its events are those of `events`, without their place.
    pub(crate) out: &'a Step,
    /// The events with their places in the log.
    pub(crate) events: Vec<Arc<Published>>,
}

impl Engine {
    pub(crate) fn new(profile: &'static Profile, config: CoreConfig) -> Self {
        Self {
            channels: Channels::new(profile),
            core: Core::new(config),
            seq: Seq(0),
            event_seq: Seq(0),
            observed: Vec::new(),
            out: Step::default(),
        }
    }

    /// Says what a followed file is.
    pub(crate) fn register_file(&mut self, file: FileKey, role: FileRole) {
        self.channels.register_file(file, role);
    }

    /// Normalizes a raw record and steps every observation.
    pub(crate) fn raw(&mut self, arrival: Arrival, raw: &Raw, mut then: impl FnMut(Stepped<'_>)) {
        let mut observed = std::mem::take(&mut self.observed);
        self.channels.normalize(raw, &mut observed);
        for observed in observed.drain(..) {
            let input = Input::Saw {
                stamp: self.stamp(arrival),
                observed,
            };
            self.step(&input, &mut then);
        }
        self.observed = observed;
    }

    /// Steps a command.
    pub(crate) fn command(
        &mut self,
        arrival: Arrival,
        ticket: Ticket,
        command: Command,
        mut then: impl FnMut(Stepped<'_>),
    ) {
        let input = Input::Asked {
            stamp: self.stamp(arrival),
            ticket,
            command,
        };
        self.step(&input, &mut then);
    }

    /// Gives an event of the session layer its place.
    pub(crate) fn own_event(&mut self, arrival: Arrival, event: DomainEvent) -> Arc<Published> {
        self.place(arrival.at, arrival.wall, event)
    }

    /// The view of the core's state.
    pub(crate) fn view(&self) -> View {
        view(&self.core)
    }

    fn stamp(&mut self, arrival: Arrival) -> Stamp {
        self.seq = self.seq.next();
        Stamp {
            seq: self.seq,
            at: arrival.at,
            wall: arrival.wall,
            launch: arrival.launch,
        }
    }

    fn step(&mut self, input: &Input, then: &mut impl FnMut(Stepped<'_>)) {
        let mut out = std::mem::take(&mut self.out);
        step(&mut self.core, input, &mut out);
        let stamp = input.stamp();
        let events = out
            .events
            .iter()
            .map(|event| self.place(stamp.at, stamp.wall, event.clone()))
            .collect();
        then(Stepped {
            input,
            out: &out,
            events,
        });
        self.out = out;
    }

    fn place(&mut self, at: Mono, wall: Wall, event: DomainEvent) -> Arc<Published> {
        self.event_seq = self.event_seq.next();
        Arc::new(Published {
            seq: self.event_seq,
            at,
            wall,
            event,
        })
    }
}
