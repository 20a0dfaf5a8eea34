//! Normalizers from raw records to observations, and the version profiles.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
