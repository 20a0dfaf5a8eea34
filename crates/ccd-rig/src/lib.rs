//! The fake Anthropic service, the real-Claude rig, demo, bench and soak programs.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
