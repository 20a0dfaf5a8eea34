//! The event log: a ring of published events that many readers follow at their own speed.
//!
//! Here live the ring, its cursors and their wakers. What an event means, and who publishes it, never does.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use ccd_model::{
    event::Published,
    ids::Seq,
    kernel::{Cursor, LogItem},
};

/// Events that the ring keeps; older ones show up as a gap.
pub(crate) const CAPACITY: usize = 65_536;

/// The log of one session. Shared between the loop, which appends, and any number of cursors.
#[derive(Debug)]
pub(crate) struct EventLog {
    inner: Mutex<Inner>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Inner {
    ring: VecDeque<Arc<Published>>,
    /// Position of the last appended event; 0 before the first.
    last: u64,
    closed: bool,
    wakers: BTreeMap<u64, Waker>,
    next_cursor: u64,
}

impl Inner {
    /// Position of the oldest event in the ring; one past `last` when the ring is empty.
    fn first(&self) -> u64 {
        self.last
            .saturating_sub(self.ring.len() as u64)
            .saturating_add(1)
    }

    fn at(&self, seq: u64) -> Option<&Arc<Published>> {
        let index = usize::try_from(seq.checked_sub(self.first())?).ok()?;
        self.ring.get(index)
    }
}

impl EventLog {
    /// An empty log of the usual capacity.
    #[must_use]
    pub(crate) fn new() -> Arc<Self> {
        Self::with_capacity(CAPACITY)
    }

    /// An empty log that keeps `capacity` events, at least one.
    #[must_use]
    pub(crate) fn with_capacity(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            inner: Mutex::default(),
            capacity: capacity.max(1),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a batch and wakes every waiting cursor once. Positions are the caller's and must go up by one.
    pub(crate) fn append(&self, events: impl IntoIterator<Item = Arc<Published>>) {
        let mut inner = self.lock();
        let before = inner.last;
        for event in events {
            inner.last = event.seq.0;
            inner.ring.push_back(event);
            if inner.ring.len() > self.capacity {
                inner.ring.pop_front();
            }
        }
        let wakers = if inner.last == before {
            BTreeMap::new()
        } else {
            std::mem::take(&mut inner.wakers)
        };
        drop(inner);
        wake_all(wakers);
    }

    /// No event will follow: cursors that have read everything end.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let wakers = std::mem::take(&mut inner.wakers);
        drop(inner);
        wake_all(wakers);
    }

    /// A reader from position `from` on; 0 and 1 both mean the beginning, `u64::MAX` the next event.
    #[must_use]
    pub(crate) fn cursor(self: &Arc<Self>, from: Seq) -> Box<dyn Cursor> {
        let mut inner = self.lock();
        let id = inner.next_cursor;
        inner.next_cursor = id.wrapping_add(1);
        let next = match from.0 {
            u64::MAX => inner.last.saturating_add(1),
            from => from.max(1),
        };
        drop(inner);
        Box::new(LogCursor {
            log: Arc::clone(self),
            next,
            id,
        })
    }
}

fn wake_all(wakers: BTreeMap<u64, Waker>) {
    for waker in wakers.into_values() {
        waker.wake();
    }
}

struct LogCursor {
    log: Arc<EventLog>,
    next: u64,
    id: u64,
}

impl Cursor for LogCursor {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<LogItem>> {
        let mut inner = self.log.lock();
        let first = inner.first();
        if self.next < first {
            let gap = LogItem::Gap {
                from: Seq(self.next),
                to: Seq(first.saturating_sub(1)),
            };
            self.next = first;
            return Poll::Ready(Some(gap));
        }
        if let Some(event) = inner.at(self.next) {
            let item = LogItem::Event(Arc::clone(event));
            self.next = self.next.saturating_add(1);
            return Poll::Ready(Some(item));
        }
        if inner.closed {
            return Poll::Ready(None);
        }
        inner.wakers.insert(self.id, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for LogCursor {
    fn drop(&mut self) {
        self.log.lock().wakers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        task::Wake,
    };

    use ccd_model::{
        event::DomainEvent,
        time::{Mono, Wall},
    };

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn event(seq: u64) -> Arc<Published> {
        Arc::new(Published {
            seq: Seq(seq),
            at: Mono(seq),
            wall: Wall(0),
            event: DomainEvent::CompactionEnded,
        })
    }

    fn read(cursor: &mut dyn Cursor) -> Poll<Option<LogItem>> {
        cursor.poll_next(&mut Context::from_waker(Waker::noop()))
    }

    fn seqs(cursor: &mut dyn Cursor) -> Vec<String> {
        let mut out = Vec::new();
        loop {
            match read(cursor) {
                Poll::Ready(Some(LogItem::Event(e))) => out.push(e.seq.0.to_string()),
                Poll::Ready(Some(LogItem::Gap { from, to })) => {
                    out.push(format!("gap {}-{}", from.0, to.0));
                }
                Poll::Ready(None) => {
                    out.push("end".into());
                    return out;
                }
                Poll::Pending => return out,
            }
        }
    }

    #[test]
    fn readers_see_every_event_from_where_they_began() {
        let log = EventLog::with_capacity(10);
        let mut early = log.cursor(Seq(0));
        log.append((1..=3).map(event));
        let mut late = log.cursor(Seq(3));
        assert_eq!(seqs(&mut *early), ["1", "2", "3"]);
        assert_eq!(seqs(&mut *late), ["3"]);
        log.append([event(4)]);
        assert_eq!(seqs(&mut *early), ["4"]);
        assert_eq!(seqs(&mut *late), ["4"]);
    }

    #[test]
    fn a_slow_reader_gets_a_gap_and_goes_on() {
        let log = EventLog::with_capacity(3);
        let mut slow = log.cursor(Seq(1));
        log.append((1..=2).map(event));
        assert!(matches!(
            read(&mut *slow),
            Poll::Ready(Some(LogItem::Event(_)))
        ));
        log.append((3..=9).map(event));
        assert_eq!(seqs(&mut *slow), ["gap 2-6", "7", "8", "9"]);
        assert_eq!(seqs(&mut *log.cursor(Seq(1))), ["gap 1-6", "7", "8", "9"]);
    }

    #[test]
    fn a_batch_wakes_each_waiting_reader_once() {
        let log = EventLog::new();
        let counts: Vec<Arc<Count>> = (0..3).map(|_| Arc::default()).collect();
        let mut cursors: Vec<_> = counts.iter().map(|_| log.cursor(Seq(1))).collect();
        for (cursor, count) in cursors.iter_mut().zip(&counts) {
            let waker = Waker::from(Arc::clone(count));
            assert!(
                cursor
                    .poll_next(&mut Context::from_waker(&waker))
                    .is_pending()
            );
        }
        log.append([]);
        cursors.pop();
        log.append((1..=5).map(event));
        log.append([event(6)]);
        let woken: Vec<usize> = counts.iter().map(|c| c.0.load(Ordering::SeqCst)).collect();
        assert_eq!(woken, [1, 1, 0]);
    }

    #[test]
    fn a_closed_log_ends_after_the_last_event() {
        let log = EventLog::new();
        let count: Arc<Count> = Arc::default();
        let waker = Waker::from(Arc::clone(&count));
        let mut cursor = log.cursor(Seq(1));
        assert!(
            cursor
                .poll_next(&mut Context::from_waker(&waker))
                .is_pending()
        );
        log.append([event(1)]);
        log.close();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert_eq!(seqs(&mut *cursor), ["1", "end"]);
    }

    #[test]
    fn a_cursor_beyond_the_end_waits_for_its_position() {
        let log = EventLog::new();
        let mut ahead = log.cursor(Seq(3));
        log.append((1..=2).map(event));
        let mut next = log.cursor(Seq(u64::MAX));
        assert!(read(&mut *ahead).is_pending());
        log.append([event(3), event(4)]);
        assert_eq!(seqs(&mut *ahead), ["3", "4"]);
        assert_eq!(seqs(&mut *next), ["3", "4"]);
    }
}
