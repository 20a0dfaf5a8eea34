//! Library keys: counters, one per kind. A key is handed out once and never again.

use ccd_model::ids::{
    AgentKey, CallKey, JobKey, MessageKey, OpId, PermissionKey, ToolKey, TurnKey,
};

/// The last key handed out of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counters {
    turn: u32,
    tool: u32,
    agent: u32,
    permission: u32,
    call: u32,
    message: u32,
    job: u32,
    op: u32,
}

macro_rules! next {
    ($($(#[$doc:meta])* $name:ident: $key:ident),* $(,)?) => {
        $(
            $(#[$doc])*
            pub(crate) const fn $name(&self) -> $key {
                $key(self.$name.saturating_add(1))
            }
        )*

        /// Marks keys as handed out.
        pub(crate) fn spend(&mut self, spent: Spent) {
            match spent {
                $(Spent::$key(key) => self.$name = self.$name.max(key.0),)*
            }
        }
    };
}

macro_rules! spent {
    ($($key:ident),* $(,)?) => {
        /// A key that was handed out.
        #[derive(Debug, Clone, Copy)]
        #[allow(clippy::enum_variant_names, reason = "named as the keys are")]
        pub(crate) enum Spent {
            $($key($key)),*
        }
    };
}

spent!(
    TurnKey,
    ToolKey,
    AgentKey,
    PermissionKey,
    CallKey,
    MessageKey,
    JobKey,
    OpId
);

impl Counters {
    next!(
        /// The next turn key.
        turn: TurnKey,
        /// The next tool key.
        tool: ToolKey,
        /// The next agent key.
        agent: AgentKey,
        /// The next permission key.
        permission: PermissionKey,
        /// The next call key.
        call: CallKey,
        /// The next message key.
        message: MessageKey,
        /// The next job key.
        job: JobKey,
        /// The next operation id.
        op: OpId,
    );
}
