//! Joins between sources. Pure lookups on the state; nothing here changes it.

pub(crate) mod permission_binding;
pub(crate) mod text_match;
pub(crate) mod turn_of;
