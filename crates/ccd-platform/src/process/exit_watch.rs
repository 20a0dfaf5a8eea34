//! Waiting for the end of processes that are not children of this one.
//!
//! What lives here: one thread that sleeps on pidfds and calls back. It wakes for nothing else, so it has no timer.
//! What never does: exit codes (only a parent can read them), or deciding what an end means.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use super::pinned::PinnedProcess;

/// What is called, on the watcher's thread, when a process has ended. It must not block.
pub type OnExit = Box<dyn FnOnce() + Send>;

/// Most of the thread's stack, in bytes: it only polls.
const STACK: usize = 128 * 1024;

/// The watcher. Dropping it ends the thread; callbacks that did not run yet never will.
#[derive(Debug)]
pub struct ExitWatch {
    /// `None` only while it is being dropped.
    requests: Option<Sender<Watched>>,
    wake: OwnedFd,
}

struct Watched {
    pidfd: OwnedFd,
    then: OnExit,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched")
            .field("pidfd", &self.pidfd)
            .finish_non_exhaustive()
    }
}

impl ExitWatch {
    /// Starts the thread.
    ///
    /// # Errors
    /// What the system says when there is no pipe or no thread to be had.
    pub fn start() -> io::Result<Self> {
        let (woken, wake) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (requests, incoming) = channel();
        thread::Builder::new()
            .name("ccd-exit-watch".to_owned())
            .stack_size(STACK)
            .spawn(move || run(&woken, &incoming))?;
        Ok(Self {
            requests: Some(requests),
            wake,
        })
    }

    /// Calls `then` once when `process` has ended; at once if it has already.
    ///
    /// # Errors
    /// What the system says when the descriptor cannot be duplicated; `BrokenPipe` if the thread is gone.
    pub fn watch(&self, process: &PinnedProcess, then: OnExit) -> io::Result<()> {
        let pidfd = process.pidfd().try_clone_to_owned()?;
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(Watched { pidfd, then }).map_err(|_| gone())?;
        self.wake();
        Ok(())
    }

    fn wake(&self) {
        // A full pipe wakes it as well; a closed one means that the thread is gone.
        let _ = rustix::io::write(&self.wake, &[1]);
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        self.requests = None;
        self.wake();
    }
}

fn run(woken: &OwnedFd, incoming: &Receiver<Watched>) {
    let mut watched: Vec<Watched> = Vec::new();
    loop {
        match take_new(incoming, &mut watched) {
            Next::Wait => {}
            Next::End => return,
        }
        let mut fds = vec![PollFd::new(woken, PollFlags::IN)];
        fds.extend(
            watched
                .iter()
                .map(|one| PollFd::new(&one.pidfd, PollFlags::IN)),
        );
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // Without poll there is no watch; the owner sees `BrokenPipe` at the next request.
            Err(_) => return,
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        if ready.first() == Some(&true) {
            let mut sink = [0; 64];
            while matches!(rustix::io::read(woken, &mut sink), Ok(len) if len > 0) {}
        }
        let mut ended = ready.into_iter().skip(1);
        let (gone, left) = watched
            .into_iter()
            .partition::<Vec<_>, _>(|_| ended.next().unwrap_or(false));
        watched = left;
        for one in gone {
            (one.then)();
        }
    }
}

enum Next {
    Wait,
    End,
}

fn take_new(incoming: &Receiver<Watched>, watched: &mut Vec<Watched>) -> Next {
    loop {
        match incoming.try_recv() {
            Ok(one) => watched.push(one),
            Err(TryRecvError::Empty) => return Next::Wait,
            Err(TryRecvError::Disconnected) => return Next::End,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use crate::process::{PinnedProcess, StopSignal};
    use std::process::Command;

    #[test]
    fn each_end_is_told_once_and_to_the_right_one() {
        let watch = ExitWatch::start().unwrap();
        let (tell, told) = channel();
        let mut children: Vec<_> = (0..3)
            .map(|_| Command::new("sleep").arg("60").spawn().unwrap())
            .collect();
        let pinned: Vec<_> = children
            .iter()
            .map(|child| PinnedProcess::open(child.id()).unwrap())
            .collect();
        for one in &pinned {
            let (tell, pid) = (tell.clone(), one.pid());
            let then = move || tell.send(pid).unwrap();
            watch.watch(one, Box::new(then)).unwrap();
        }
        for index in [1, 0, 2] {
            pinned[index].stop(StopSignal::Kill).unwrap();
            assert_eq!(told.recv().unwrap(), pinned[index].pid());
            children[index].wait().unwrap();
        }
        assert!(told.try_recv().is_err());
    }

    #[test]
    fn the_end_of_a_process_that_has_ended_already_is_told() {
        let watch = ExitWatch::start().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pinned = PinnedProcess::open(child.id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let (tell, told) = channel();
        watch
            .watch(&pinned, Box::new(move || tell.send(()).unwrap()))
            .unwrap();
        told.recv().unwrap();
    }

    #[test]
    fn dropping_the_watch_ends_its_thread_and_drops_what_waited() {
        let watch = ExitWatch::start().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pinned = PinnedProcess::open(child.id()).unwrap();
        let (tell, told) = channel::<()>();
        watch
            .watch(&pinned, Box::new(move || tell.send(()).unwrap()))
            .unwrap();
        drop(watch);
        // The thread drops the callback, and with it the sender.
        assert!(told.recv().is_err());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
