//! The shared heap: memory for users' buffers that every rank of the job can map,
//! so that a large message is copied once.
//!
//! | file | what it defines |
//! |---|---|
//! | [`allocator`], `bitmap_word` | [`Heap`]: which granules are allocated, by a bitmap that all ranks share; a word of that |
//! | `numa` | which NUMA node pages come from |
//! | [`arena`] | [`Arena`]: one process's blocks, as malloc wants them |
//! | [`mod@table`] | tables that all ranks share, made on first need |
//! | [`malloc`] | the hook for the preloaded library `libperusal-heap.so` |
//! | [`remap`], `remapped_ranges` | buffers of other memory that are moved here; where they are |
//! | `mappings`, `origin`, `kept` | what this process has mapped; where a buffer's memory is from; what is not moved |
//! | `fork` | what a child process gets of its parent's blocks |
//!
//! The heap lies in the job's file behind the segment ([`crate::shm::HeapRegion`]). A rank maps it when it first needs
//! it: one that never calls MPI_Alloc_mem, and is sent nothing from such memory, has neither the mapping nor a page of
//! it. The heap is allocated in *granules* of 64 KiB. A *place* is an offset from the heap's start, never 0: ranks tell
//! each other places, not addresses.

pub mod allocator;
pub mod arena;
mod bitmap_word;
mod fork;
mod kept;
pub mod malloc;
mod mappings;
mod numa;
mod origin;
pub mod remap;
mod remapped_ranges;
mod table;

pub use allocator::{Extent, Heap, map_around};
pub use arena::Arena;
pub use bitmap_word::BitmapWord;
pub use kept::KeptMemory;
pub use remap::{BufferUse, ExposedPlaces, RemappedBuffers, may_remap, remapped_buffers};
pub use table::{agree_on, table};
