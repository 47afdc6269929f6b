//! Copy engine by cross-memory attach: the receiver copies straight out of the sender's memory, by system calls.

use super::{CopyEngine, emit, is_plain};
use crate::engine::{Body, Engine, Ref, Rts};
use crate::error::Result;
use crate::events::Event;
use crate::shm::telemetry::ProtocolKind;
use std::io;

pub(super) static ENGINE: CopyEngine = CopyEngine { number: 1, takes, begin };

fn takes(engine: &Engine, body: &Body, rts: &Rts) -> bool {
    // Also where both ranks might copy, but may not.
    let [read, split] = engine.protocol_state().copy.cma_thresholds(engine);
    is_plain(body, rts) && rts.total >= read.min(split)
}

fn begin(engine: &Engine, request: Ref, _: &Rts) -> Result<()> {
    // SAFETY: request rule 2: matched, so ours.
    let body = unsafe { request.body() };
    emit(request, Event::ReqXferBegin);
    engine.emit_copy(Event::CopyBegin, request, body, ENGINE.number, body.wanted.get());
    let copy = |pid| {
        // SAFETY: our buffer is valid for `wanted` bytes until the request completes.
        let read = || unsafe { read_peer(pid, body.remote_addr.get(), body.addr.get(), body.wanted.get()) };
        engine.job.reach(body.world.get(), read)
    };
    let read = engine.job.process_of(body.world.get()).and_then(copy);
    let read = matches!(read, Some(Ok(_)));
    engine.emit_copy(Event::CopyEnd, request, body, ENGINE.number, if read { body.wanted.get() } else { 0 });
    if !read {
        // Forbidden, or the sender is dying, or its process is not the one that the roster says: the ring works wherever messages do.
        engine.protocol_state().copy.refuse();
        return engine.rendezvous().fall_back(request);
    }
    engine.rendezvous().finish_copied(request, ProtocolKind::Cma)
}

/// Copies `len` bytes at `from` in process `pid` to `to` here.
///
/// # Errors
///
/// What `process_vm_readv` says: EPERM where it is forbidden, EFAULT where the peer has no such memory.
///
/// # Safety
///
/// `to` is valid for writes of `len` bytes, and nobody else touches them meanwhile.
pub(super) unsafe fn read_peer(pid: i32, from: u64, to: *mut u8, len: usize) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let local = libc::iovec { iov_base: to.wrapping_add(done).cast(), iov_len: len - done };
        let remote = libc::iovec { iov_base: (from as usize + done) as *mut _, iov_len: len - done };
        // SAFETY: the kernel writes at most `len - done` bytes at `to + done`, which the caller gives us; it checks
        // the remote addresses itself.
        let moved = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
        done += step(moved)?;
    }
    Ok(())
}

/// Copies `len` bytes at `from` here to `to` in process `pid`.
///
/// # Errors
///
/// What `process_vm_writev` says.
///
/// # Safety
///
/// `from` is valid for reads of `len` bytes, and the peer has asked for bytes at `to`.
pub(super) unsafe fn write_peer(pid: i32, from: *const u8, to: u64, len: usize) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let local = libc::iovec { iov_base: from.wrapping_add(done).cast_mut().cast(), iov_len: len - done };
        let remote = libc::iovec { iov_base: (to as usize + done) as *mut _, iov_len: len - done };
        // SAFETY: the kernel reads at most `len - done` bytes at `from + done`, which the caller gives us; it checks
        // the remote addresses itself.
        let moved = unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
        done += step(moved)?;
    }
    Ok(())
}

fn step(moved: isize) -> io::Result<usize> {
    match moved {
        0 => Err(io::Error::from(io::ErrorKind::WriteZero)),
        moved if moved > 0 => Ok(moved as usize),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg_attr(miri, ignore = "Miri has no such system calls")]
    #[test]
    fn a_process_can_copy_from_and_to_itself_and_is_told_of_bad_addresses() {
        let (from, mut to) = (vec![7_u8; 100_000], vec![0_u8; 100_000]);
        let own = std::process::id() as i32;
        // SAFETY: `to` is ours and as long as `from`.
        let read = unsafe { read_peer(own, from.as_ptr() as u64, to.as_mut_ptr(), from.len()) };
        let refusal = read.as_ref().err().and_then(std::io::Error::raw_os_error);
        if matches!(refusal, Some(libc::EPERM | libc::ENOSYS)) {
            return; // A sandbox forbids it, or an emulator does not have it; the engine then copies through the ring.
        }
        read.expect("own memory");
        assert_eq!(from, to);
        // SAFETY: `to` is ours and long enough; the bad address is the remote one.
        let bad = unsafe { read_peer(own, 8, to.as_mut_ptr(), 100) };
        assert_eq!(bad.unwrap_err().raw_os_error(), Some(libc::EFAULT));
        // SAFETY: both are ours.
        unsafe { write_peer(own, [9_u8; 4].as_ptr(), to.as_mut_ptr() as u64, 4) }.expect("own memory");
        assert_eq!(to[..5], [9, 9, 9, 9, 7]);
    }
}
