//! A clock that stands still until a test moves it, and the driver that moves it to the next deadline when nothing else can happen.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use ccd_model::time::{Mono, Wall};
use ccd_ports::{
    PortFut,
    clock::{Clock, Ids},
};

/// Rounds in which every task may run before time moves.
const ROUNDS: u32 = 40;

#[derive(Default)]
struct Inner {
    now: u64,
    sleepers: Vec<(u64, Waker)>,
}

/// The clock.
#[derive(Clone, Default)]
pub(crate) struct ManualClock(Arc<Mutex<Inner>>);

impl ManualClock {
    /// Moves to the next deadline that somebody waits for. `false`: nobody waits.
    fn skip(&self) -> bool {
        let due = {
            let mut inner = self.0.lock().unwrap();
            let Some(next) = inner.sleepers.iter().map(|(at, _)| *at).min() else {
                return false;
            };
            inner.now = inner.now.max(next);
            let now = inner.now;
            let (due, later) = std::mem::take(&mut inner.sleepers)
                .into_iter()
                .partition(|(at, _)| *at <= now);
            inner.sleepers = later;
            due
        };
        let due: Vec<(u64, Waker)> = due;
        due.into_iter().for_each(|(_, waker)| waker.wake());
        true
    }
}

struct Sleep {
    clock: ManualClock,
    at: u64,
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.clock.0.lock().unwrap();
        if inner.now >= self.at {
            return Poll::Ready(());
        }
        // A wait that was dropped leaves its row: moving to it wakes nobody and changes nothing.
        inner.sleepers.push((self.at, cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let at = self.at;
        let mut inner = self.clock.0.lock().unwrap();
        if let Some(index) = inner.sleepers.iter().position(|(one, _)| *one == at) {
            inner.sleepers.remove(index);
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Mono {
        Mono(self.0.lock().unwrap().now)
    }
    fn wall(&self) -> Wall {
        let ms = i64::try_from(self.now().0).unwrap();
        Wall(1_796_000_000_000 + ms)
    }
    fn sleep_until(&self, at: Mono) -> PortFut<'static, ()> {
        Box::pin(Sleep {
            clock: self.clone(),
            at: at.0,
        })
    }
}

/// Runs `future`; whenever nothing can happen any more, time moves to the next deadline.
pub(crate) async fn drive<T>(clock: &ManualClock, future: impl Future<Output = T>) -> T {
    let mut future = Box::pin(future);
    loop {
        for _ in 0..ROUNDS {
            let polled = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
            if let Poll::Ready(done) = polled {
                return done;
            }
            tokio::task::yield_now().await;
        }
        clock.skip();
    }
}

/// Counts instead of drawing.
#[derive(Default)]
pub(crate) struct CountingIds(std::sync::atomic::AtomicU64);

impl Ids for CountingIds {
    fn uuid(&self) -> String {
        let n = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        format!("00000000-0000-4000-8000-{n:012}")
    }
    fn hex(&self, bytes: usize) -> String {
        let n = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        format!("{:0width$x}", 0xfeed_0000 + n, width = bytes * 2)
    }
}
