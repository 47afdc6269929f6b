//! Memory that the library gives out (MPI 5.0 §9.2): from `copy_direct_from` bytes on out of the job's shared heap,
//! where every rank can copy from it and to it; else, and when that is exhausted, ordinary memory.

use crate::abi::MPI_ERR_BASE;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::heap::{Extent, Heap};
use crate::info::Info;
use crate::process;
use crate::rma::hints::minimum_alignment;
use crate::types::MPI_Aint;
use core::alloc::Layout;
use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// What was given out.
enum Allocation {
    Ordinary(Layout),
    Shared(Extent),
}

/// What was given out and not yet freed, so that freeing anything else is an error and not a crash.
static GIVEN: LazyLock<Mutex<HashMap<usize, Allocation>>> = LazyLock::new(Mutex::default);

fn given() -> MutexGuard<'static, HashMap<usize, Allocation>> {
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Alignment in bytes if the user asks for none: a cache line.
const ALIGNMENT: usize = crate::limits::LINE;

fn layout(size: MPI_Aint, hints: &Info) -> Result<Layout> {
    let size = usize::try_from(size).map_err(|_| Error::Arg("size is negative"))?;
    let asked = minimum_alignment(hints).unwrap_or(1);
    let alignment = asked.max(ALIGNMENT).checked_next_power_of_two().unwrap_or(ALIGNMENT);
    Layout::from_size_align(size.max(1), alignment)
        .map_err(|_| Error::NoMem(format!("MPI_Alloc_mem of {size} bytes")))
}

/// Takes memory that all ranks see. `None` for what is too small to be worth it, and if there is none.
fn take_shared(engine: &Engine, layout: Layout) -> Option<Extent> {
    if layout.size() < engine.config().direct_from() {
        return None;
    }
    let job = engine.job();
    let extent = Heap::of(job).and_then(|heap| heap.allocate(layout.size(), layout.align()));
    let counts = job.own_telemetry();
    let count = if extent.is_some() { &counts.shared_allocations } else { &counts.ordinary_allocations };
    count.add(1);
    extent
}

fn take(layout: Layout) -> Result<(*mut u8, Allocation)> {
    if let Some(extent) = take_shared(process::engine()?, layout) {
        return Ok((extent.addr().as_ptr(), Allocation::Shared(extent)));
    }
    // SAFETY: the layout's size is at least 1.
    let base = unsafe { std::alloc::alloc(layout) };
    if base.is_null() {
        return Err(Error::NoMem(format!("MPI_Alloc_mem of {} bytes", layout.size())));
    }
    Ok((base, Allocation::Ordinary(layout)))
}

/// MPI_Alloc_mem. Honours the hint `mpi_minimum_memory_alignment`.
pub fn alloc(size: MPI_Aint, info: Info) -> Result<usize> {
    let (base, what) = take(layout(size, &info)?)?;
    given().insert(base as usize, what);
    Ok(base as usize)
}

/// MPI_Free_mem. Frees nothing for NULL, which other libraries take, too: programs pass what they have not allocated.
pub fn free(base: *mut c_void) -> Result<()> {
    if base.is_null() {
        return Ok(());
    }
    let what = given().remove(&(base as usize)).ok_or(Error::Code(MPI_ERR_BASE))?;
    match what {
        // SAFETY: the table says that it came from `MPI_Alloc_mem` with this layout, and has not been freed.
        Allocation::Ordinary(layout) => unsafe { std::alloc::dealloc(base.cast(), layout) },
        Allocation::Shared(extent) => {
            if let Some(heap) = Heap::of(process::engine()?.job()) {
                heap.free(&extent);
            }
        }
    }
    Ok(())
}
