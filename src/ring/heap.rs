//! A ring on the heap, whose every access loom can watch.

use super::control::RingControl;
use super::record::{INLINE, RecordBody};
use super::storage::Storage;
use crate::limits::{LINE, block_bytes, block_count};
use crate::sync::{Arc, AtomicU64, Cell};

/// A ring of reference-counted heap memory: for tests, fuzzing and loom.
#[derive(Debug, Clone)]
pub struct HeapRing(Arc<HeapRingParts>);

#[derive(Debug)]
struct HeapRingParts {
    control: RingControl,
    cells: Vec<(AtomicU64, Cell<RecordBody>)>,
    /// Bytes of the bulk area, which the blocks follow.
    bulk_bytes: usize,
    bulk: Cell<Vec<u8>>,
    /// One guard a line of them: loom sees overlapping use even though the bytes are one allocation.
    lines: Vec<Cell<()>>,
}

// SAFETY: bodies and bulk bytes are accessed under the ring rules, from whatever thread holds producer or consumer.
unsafe impl Send for HeapRing {}
// SAFETY: a shared ring gives addresses, and what lies there is used under the ring rules.
unsafe impl Sync for HeapRing {}

impl HeapRing {
    /// An empty ring of `cells` cells and `bulk` bytes.
    ///
    /// # Panics
    ///
    /// When a capacity is no power of two, or the bulk area is smaller than four lines.
    pub fn new(cells: usize, bulk: usize) -> Self {
        assert!(
            cells.is_power_of_two() && bulk.is_power_of_two() && bulk >= 4 * LINE,
            "ring of {cells} cells, {bulk} bytes"
        );
        let bytes = bulk + block_count(bulk) * block_bytes(bulk);
        let body = RecordBody { context: 0, tag: 0, source: 0, id: 0, inline: [0; INLINE] };
        #[allow(
            clippy::arc_with_non_send_sync,
            reason = "shared between threads by ring rule 4, not by its type"
        )]
        let parts = Arc::new(HeapRingParts {
            control: RingControl::default(),
            cells: (0..cells).map(|_| (AtomicU64::new(0), Cell::new(body))).collect(),
            bulk_bytes: bulk,
            bulk: Cell::new(vec![0; bytes]),
            lines: (0..bytes / LINE).map(|_| Cell::new(())).collect(),
        });
        Self(parts)
    }

    fn base(&self) -> *mut u8 {
        // SAFETY: the vector itself never changes after `new`; only its heap bytes do, which this does not touch.
        self.0.bulk.with(|bytes| unsafe { (*bytes).as_ptr().cast_mut() })
    }

    fn touched(&self, at: usize, len: usize) -> &[Cell<()>] {
        &self.0.lines[at / LINE..(at + len).div_ceil(LINE)]
    }
}

// SAFETY: one allocation a part, never moved while any clone lives; places do not overlap.
unsafe impl Storage for HeapRing {
    fn control(&self) -> &RingControl {
        &self.0.control
    }
    fn cells(&self) -> usize {
        self.0.cells.len()
    }
    fn bulk(&self) -> usize {
        self.0.bulk_bytes
    }
    fn commit(&self, at: usize) -> &AtomicU64 {
        &self.0.cells[at].0
    }
    fn read_body<R>(&self, at: usize, f: impl FnOnce(*const RecordBody) -> R) -> R {
        self.0.cells[at].1.with(f)
    }
    fn write_body<R>(&self, at: usize, f: impl FnOnce(*mut RecordBody) -> R) -> R {
        self.0.cells[at].1.with_mut(f)
    }
    fn read_bulk<R>(&self, at: usize, len: usize, f: impl FnOnce(*const u8) -> R) -> R {
        self.touched(at, len).iter().for_each(|line| line.with(|_| ()));
        f(self.base().wrapping_add(at))
    }
    fn write_bulk<R>(&self, at: usize, len: usize, f: impl FnOnce(*mut u8) -> R) -> R {
        self.touched(at, len).iter().for_each(|line| line.with_mut(|_| ()));
        f(self.base().wrapping_add(at))
    }
}
