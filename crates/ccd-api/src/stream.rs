//! Streams of public events.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use ccd_runtime::model;
use ccd_types::Event;
use futures_core::Stream;
use model::{
    ids::Seq,
    kernel::{Cursor, SessionKernel},
};

use crate::map_events::{EventMapper, Mapped};

/// Public events of a session, in order. Ends after the session is over. A reader that falls behind gets a `gap` event.
pub struct EventStream {
    cursor: Box<dyn Cursor>,
    mapper: EventMapper,
}

impl EventStream {
    pub(crate) fn new(kernel: &Arc<dyn SessionKernel>, from: Seq) -> Self {
        Self {
            cursor: kernel.events(from),
            mapper: EventMapper::new(Arc::clone(kernel)),
        }
    }

    pub(crate) fn poll_mapped(&mut self, cx: &mut Context<'_>) -> Poll<Option<Mapped>> {
        loop {
            match self.cursor.poll_next(cx) {
                Poll::Ready(Some(item)) => {
                    if let Some(mapped) = self.mapper.map(&item) {
                        return Poll::Ready(Some(mapped));
                    }
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// The next event; `None` after the session is over.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| self.poll_mapped(cx))
            .await
            .map(|mapped| mapped.event)
    }
}

impl Stream for EventStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.poll_mapped(cx)
            .map(|mapped| mapped.map(|mapped| mapped.event))
    }
}
