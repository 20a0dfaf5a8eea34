//! Ids of entities that were forgotten: bounded, so that a late observation is counted and never makes a new entity.

use alloc::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

/// How many ids are remembered.
const CAPACITY: usize = 4_096;

/// The newest forgotten ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tombstones {
    order: VecDeque<Arc<str>>,
    known: BTreeSet<Arc<str>>,
}

impl Tombstones {
    /// Remembers an id, and forgets the oldest one beyond the capacity.
    pub(crate) fn bury(&mut self, id: Arc<str>) {
        if !self.known.insert(Arc::clone(&id)) {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > CAPACITY
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether the id was forgotten.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.known.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, sync::Arc};

    use super::{CAPACITY, Tombstones};

    #[test]
    fn the_oldest_ids_make_room_and_the_newest_stay() {
        let mut tombs = Tombstones::default();
        for n in 0..=CAPACITY {
            tombs.bury(Arc::from(format!("id{n}")));
        }
        assert!(!tombs.has("id0"));
        assert!(tombs.has("id1") && tombs.has(&format!("id{CAPACITY}")));
        assert_eq!(tombs.order.len(), CAPACITY);
        assert_eq!(tombs.known.len(), CAPACITY);
    }
}
