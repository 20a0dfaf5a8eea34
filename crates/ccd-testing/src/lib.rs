//! Fakes, contract suites, scenario builders and goldens for tests.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod fakes;
