//! The adapters to tmux, files, sockets, processes and the clock.
#![deny(missing_docs)]
