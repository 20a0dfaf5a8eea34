//! The adapters to tmux, files, sockets, processes and the clock.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod background;
pub mod claude_install;
pub mod claude_registry;
pub mod clock;
pub mod env;
pub mod fs_tail;
pub mod hook_server;
pub mod host;
pub mod ids;
pub mod platform;
mod private_file;
pub mod state_dir;
pub mod trace_file;

mod claude_process;
mod editor;
mod outlet;
pub mod process;
pub mod session_ports;
mod supervisor;
pub mod tmux;

pub use platform::RealPlatform;
