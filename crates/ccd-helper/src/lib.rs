//! The stand-alone helper program: hook forwarder, prompt editor and session supervisor.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
