//! Windows: making, freeing, asking about and synchronising them (MPI 5.0 §12.2, §12.5).

use super::{attr, memory_kinds};
use crate::abi::*;
use crate::arguments::{Fitting, InOut};
use crate::check;
use crate::comm::attributes::KeyvalKind;
use crate::comm::{Comm, Group};
use crate::error::{Error, Result};
use crate::events::fast_path_is_open;
use crate::info::Info;
use crate::messages::is_memory;
use crate::process::{engine, running};
use crate::rma::hints::{self, Scope};
use crate::rma::{Assert, Flavor, LockKind, Memory, Window};
use crate::types::MPI_Win;
use crate::windows::{self, WindowObject};
use core::ffi::{c_int, c_void};
use std::sync::Arc;

/// A size in bytes.
fn bytes(size: i64) -> Result<usize> {
    usize::try_from(size).map_err(|_| Error::Size("the size of a window is negative"))
}

/// Memory of the program's: its address and its bytes.
fn memory(base: *mut c_void, size: i64) -> Result<(*mut u8, usize)> {
    let bytes = bytes(size)?;
    if bytes > 0 && !is_memory(base.addr()) {
        return Err(Error::Buffer("it is NULL or an address of MPI's own, and its size is not 0"));
    }
    let end = base.addr().checked_add(bytes).filter(|end| isize::try_from(*end).is_ok());
    if bytes > 0 && end.is_none() {
        return Err(Error::Size("the memory is larger than what is left of the address space"));
    }
    Ok((base.cast(), bytes))
}

fn unit(unit: i64) -> Result<u64> {
    match u64::try_from(unit) {
        Ok(unit @ 1..) => Ok(unit),
        _ => Err(Error::Disp("a displacement unit is not positive")),
    }
}

/// Makes a window and gives it a handle, and says where its own memory begins:
/// at `base`, or where the library has put it.
fn made(
    comm: &Comm,
    memory: Memory,
    base: Option<usize>,
    unit: u64,
    hints: &Info,
) -> Result<(usize, MPI_Win)> {
    let engine = engine()?;
    if check::is_on() {
        check::compare_on_comm(comm, "hints or sizes", &hints::alike(hints, memory, unit));
    }
    let hints = memory_kinds::with_kinds(hints::at_creation(Scope::of(&memory, hints), hints), comm)?;
    let window = Window::create(engine, comm, memory, unit, &hints)?;
    let contiguous = matches!(memory, Memory::Shared(_)) && !hints::has_own_parts(&hints);
    let placed = window.own_size().0 > 0 || contiguous;
    let base = base.unwrap_or_else(|| if placed { window.base() } else { 0 });
    let events = window.events().clone();
    let win = windows::insert(WindowObject::new(window, base, contiguous))?;
    events.set_comm(win);
    windows::get(win)?.emit_created();
    Ok((base, win))
}

/// MPI_Win_create.
pub fn create(base: *mut c_void, size: i64, disp_unit: i64, hints: Info, comm: &Comm) -> Result<MPI_Win> {
    let ((at, bytes), unit) = (memory(base, size)?, unit(disp_unit)?);
    let given = Some(base as usize);
    made(comm, Memory::Own { base: at, bytes }, given, unit, &hints).map(|(_, win)| win)
}

/// MPI_Win_allocate.
pub fn allocate(size: i64, disp_unit: i64, hints: Info, comm: &Comm) -> Result<(usize, MPI_Win)> {
    made(comm, Memory::Allocated(bytes(size)?), None, unit(disp_unit)?, &hints)
}

/// MPI_Win_allocate_shared.
pub fn allocate_shared(size: i64, disp_unit: i64, hints: Info, comm: &Comm) -> Result<(usize, MPI_Win)> {
    made(comm, Memory::Shared(bytes(size)?), None, unit(disp_unit)?, &hints)
}

/// MPI_Win_create_dynamic. Its displacements are addresses, in bytes.
pub fn create_dynamic(hints: Info, comm: &Comm) -> Result<MPI_Win> {
    made(comm, Memory::Dynamic, Some(MPI_BOTTOM), 1, &hints).map(|(_, win)| win)
}

/// MPI_Win_free. Its attributes go first, while it can still be used.
pub fn free(win: InOut<'_, MPI_Win>) -> Result<()> {
    let (engine, handle) = (engine()?, win.get());
    let object = windows::get(handle)?;
    object.check_free()?;
    object.attributes.delete_all(attr::owner(KeyvalKind::Win, handle))?;
    if check::is_on() {
        check::window_freed(&object);
        compare_function(&object);
        check::context_freed(object.context());
    }
    let freed = object.free(engine);
    // Without a member that has died no member can be waited for. The handle goes; the memory stays, for those that
    // live may access it still.
    let without_the_dead = matches!(freed, Err(Error::ProcFailed { .. }));
    if !without_the_dead {
        freed.clone()?;
    }
    drop(object);
    let object = windows::remove(handle)?;
    win.set(MPI_WIN_NULL);
    object.emit_freed();
    engine.registry().detach(object.events());
    // Another thread that looks at a window while it is freed breaks argument rule 2; then its memory stays.
    if without_the_dead {
        core::mem::forget(object);
    } else if let Some(object) = Arc::into_inner(object) {
        object.into_window().release(engine);
    }
    freed
}

/// MPI_Win_get_group.
pub fn group(win: &WindowObject) -> Result<Group> {
    Ok(win.group().clone())
}

/// MPI_Win_attach.
pub fn attach(win: &WindowObject, base: *mut c_void, size: i64) -> Result<()> {
    let (base, bytes) = memory(base, size)?;
    win.attach(engine()?, base, bytes as u64)
}

/// MPI_Win_detach.
pub fn detach(win: &WindowObject, base: *const c_void) -> Result<()> {
    win.detach(base.cast())
}

/// MPI_Win_shared_query: size, displacement unit and address; size 0 and NULL where the memory is not mapped here.
pub fn shared_query(win: &WindowObject, rank: c_int) -> Result<(Fitting, Fitting, usize)> {
    if win.flavor() == Flavor::Dynamic {
        return Err(Error::RmaFlavor("a dynamic window has no memory of its own that could be shared"));
    }
    let rank = (rank != MPI_PROC_NULL).then_some(rank);
    let (part, unit) = (win.shared_part(rank)?, win.shared_unit(rank)?);
    let (bytes, addr) = part.map_or((0, 0), |part| (part.bytes, win.address(part.addr, part.bytes)));
    Ok((
        Fitting(bytes as usize, "the size of the memory"),
        Fitting(unit as usize, "the displacement unit"),
        addr,
    ))
}

/// MPI_Win_set_name.
pub fn set_name(win: &WindowObject, name: &[u8]) -> Result<()> {
    win.set_name(name);
    win.emit_name();
    Ok(())
}

/// MPI_Win_get_name; the null handle has a name, too.
pub fn name(win: MPI_Win) -> Result<Vec<u8>> {
    if win == MPI_WIN_NULL { Ok(b"MPI_WIN_NULL".to_vec()) } else { Ok(windows::get(win)?.name()) }
}

/// Compares a collective call on a window with those of the other members.
fn compare(win: &WindowObject, what: &'static str, about: &str) {
    check::compare_call(win.comm(), what, about, || check::window_name(win));
}

fn compare_function(win: &WindowObject) {
    compare(win, "arguments", "");
}

/// The operations on the window with a target, or with all, are complete here.
fn flushed(win: &WindowObject, target: Option<c_int>) {
    if check::is_on() {
        check::flushed(win, target);
    }
}

/// The operations on the window with a target, or with all, are about to be complete,
/// which others may know before this call returns.
fn about_to_end(win: &WindowObject, target: Option<c_int>) {
    if check::is_on() {
        check::ended_at_target(win, target, false);
    }
}

/// MPI_Win_set_info: hints that are not named stay as they are.
pub fn set_info(win: &WindowObject, hints: Info) -> Result<()> {
    if check::is_on() {
        compare_function(win);
    }
    win.set_info(hints::changed(win.info(), &hints));
    Ok(())
}

/// MPI_Win_get_info; the object is the caller's to free.
pub fn info(win: &WindowObject) -> Result<Info> {
    Ok(win.info())
}

/// The assertions of a call that takes those in `allowed` (MPI 5.0 §12.5.5).
fn assertions(assert: c_int, allowed: c_int) -> Result<Assert> {
    if assert & !allowed != 0 {
        return Err(Error::Assert("the function does not take all of them"));
    }
    Ok(Assert { no_check: assert & MPI_MODE_NOCHECK != 0, no_succeed: assert & MPI_MODE_NOSUCCEED != 0 })
}

/// MPI_Win_fence.
pub fn fence(assert: c_int, win: &WindowObject) -> Result<()> {
    let allowed = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
    let checked = assertions(assert, allowed)?;
    if check::is_on() {
        let named = [(MPI_MODE_NOPRECEDE, "MPI_MODE_NOPRECEDE"), (MPI_MODE_NOSUCCEED, "MPI_MODE_NOSUCCEED")];
        let given: Vec<&str> =
            named.iter().filter(|(bit, _)| assert & bit != 0).map(|(_, name)| *name).collect();
        let about = if given.is_empty() { "neither assertion".to_owned() } else { given.join(" | ") };
        compare(win, "assertions", &about);
        check::fence(win, assert & MPI_MODE_NOPRECEDE != 0);
    }
    win.fence(engine()?, checked)?;
    flushed(win, None);
    Ok(())
}

/// MPI_Win_post.
pub fn post(group: Arc<Group>, assert: c_int, win: &WindowObject) -> Result<()> {
    assertions(assert, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT)?;
    win.post(engine()?, &group)
}

/// MPI_Win_start.
pub fn start(group: Arc<Group>, assert: c_int, win: &WindowObject) -> Result<()> {
    assertions(assert, MPI_MODE_NOCHECK)?;
    win.start(engine()?, &group)
}

/// MPI_Win_complete.
pub fn complete(win: &WindowObject) -> Result<()> {
    about_to_end(win, None);
    win.complete(engine()?)?;
    flushed(win, None);
    Ok(())
}

/// MPI_Win_wait.
pub fn wait(win: &WindowObject) -> Result<()> {
    win.wait_completed(engine()?)
}

/// MPI_Win_test.
pub fn test(win: &WindowObject) -> Result<bool> {
    win.test_completed(engine()?)
}

/// A kind of lock by its number.
#[inline(always)]
fn lock_kind(kind: c_int) -> Option<LockKind> {
    match kind {
        MPI_LOCK_SHARED => Some(LockKind::Shared),
        MPI_LOCK_EXCLUSIVE => Some(LockKind::Exclusive),
        _ => None,
    }
}

/// MPI_Win_lock of a lock that is free.
#[inline(always)]
pub fn lock_direct(kind: c_int, rank: c_int, assert: c_int, win: &WindowObject) -> Option<()> {
    let kind = lock_kind(kind)?;
    (fast_path_is_open() && assert == 0 && win.lock_direct(running()?, kind, rank)).then_some(())
}

/// MPI_Win_lock. Nothing is locked at MPI_PROC_NULL.
pub fn lock(kind: c_int, rank: c_int, assert: c_int, win: &WindowObject) -> Result<()> {
    let wrong = Error::LockKind("it is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE");
    let kind = lock_kind(kind).ok_or(wrong)?;
    let assert = assertions(assert, MPI_MODE_NOCHECK)?;
    if rank == MPI_PROC_NULL { Ok(()) } else { win.lock(engine()?, kind, rank, assert) }
}

/// MPI_Win_unlock of a rank for which nothing else is to be done.
#[inline(always)]
pub fn unlock_direct(rank: c_int, win: &WindowObject) -> Option<()> {
    (fast_path_is_open() && win.unlock_direct(running()?, rank)).then_some(())
}

/// MPI_Win_unlock.
pub fn unlock(rank: c_int, win: &WindowObject) -> Result<()> {
    if rank != MPI_PROC_NULL {
        about_to_end(win, Some(rank));
        win.unlock(engine()?, rank)?;
        flushed(win, Some(rank));
    }
    Ok(())
}

/// MPI_Win_lock_all.
pub fn lock_all(assert: c_int, win: &WindowObject) -> Result<()> {
    win.lock_all(engine()?, assertions(assert, MPI_MODE_NOCHECK)?)
}

/// MPI_Win_unlock_all.
pub fn unlock_all(win: &WindowObject) -> Result<()> {
    about_to_end(win, None);
    win.unlock_all(engine()?)?;
    flushed(win, None);
    Ok(())
}

/// MPI_Win_flush, MPI_Win_flush_local of a rank whose operations need no more than to become visible.
#[inline(always)]
pub fn flush_direct(rank: c_int, win: &WindowObject) -> Option<()> {
    (fast_path_is_open() && win.flush_direct(rank)).then_some(())
}

/// MPI_Win_flush, MPI_Win_flush_local.
pub fn flush(rank: c_int, win: &WindowObject) -> Result<()> {
    if rank != MPI_PROC_NULL {
        win.flush(engine()?, Some(rank))?;
        flushed(win, Some(rank));
    }
    Ok(())
}

/// MPI_Win_flush_all, MPI_Win_flush_local_all.
pub fn flush_all(win: &WindowObject) -> Result<()> {
    win.flush(engine()?, None)?;
    flushed(win, None);
    Ok(())
}

/// MPI_Win_sync.
pub fn sync(win: &WindowObject) -> Result<()> {
    win.sync(engine()?)
}
