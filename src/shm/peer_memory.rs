//! The memory of another process of the job, by system calls (cross-memory attach).

use std::io;

/// Places that one system call is given.
const BATCH: usize = 64;

/// Copies `len` bytes at `from` in process `pid` to `to` here.
///
/// # Errors
///
/// What `process_vm_readv` says: EPERM where it is forbidden, EFAULT where the peer has no such memory.
///
/// # Safety
///
/// `to` is valid for writes of `len` bytes, and nobody else touches them meanwhile.
pub unsafe fn read_peer(pid: i32, from: u64, to: *mut u8, len: usize) -> io::Result<()> {
    // SAFETY: what the caller says of `to`.
    unsafe { read_runs(pid, core::iter::once((from, len)), to) }
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
pub unsafe fn write_peer(pid: i32, from: *const u8, to: u64, len: usize) -> io::Result<()> {
    // SAFETY: what the caller says of `from` and of the peer.
    unsafe { write_runs(pid, from, core::iter::once((to, len))) }
}

/// Copies runs of bytes in process `pid`, each an address and a length, one behind the other to `to` here.
///
/// # Errors
///
/// As [`read_peer`].
///
/// # Safety
///
/// `to` is valid for writes of as many bytes as the runs have, and nobody else touches them meanwhile.
pub unsafe fn read_runs(pid: i32, runs: impl Iterator<Item = (u64, usize)>, to: *mut u8) -> io::Result<()> {
    transfer(runs, to, |local, remote| {
        // SAFETY: the kernel writes at most the local bytes, which the caller gives us;
        // it checks the remote addresses itself.
        unsafe { libc::process_vm_readv(pid, local, 1, remote.as_ptr(), remote.len() as u64, 0) }
    })
}

/// Copies bytes from `from` on here to runs of bytes in process `pid`, each an address and a length.
///
/// # Errors
///
/// As [`write_peer`].
///
/// # Safety
///
/// `from` is valid for reads of as many bytes as the runs have, and the peer has asked for bytes there.
pub unsafe fn write_runs(
    pid: i32,
    from: *const u8,
    runs: impl Iterator<Item = (u64, usize)>,
) -> io::Result<()> {
    transfer(runs, from.cast_mut(), |local, remote| {
        // SAFETY: the kernel reads at most the local bytes, which the caller gives us;
        // it checks the remote addresses itself.
        unsafe { libc::process_vm_writev(pid, local, 1, remote.as_ptr(), remote.len() as u64, 0) }
    })
}

/// Calls `call` with batches of runs and the local bytes for each, until all are moved.
fn transfer(
    mut runs: impl Iterator<Item = (u64, usize)>,
    mut local: *mut u8,
    call: impl Fn(*const libc::iovec, &[libc::iovec]) -> isize,
) -> io::Result<()> {
    let mut batch: Vec<libc::iovec> = Vec::new();
    loop {
        batch.extend(
            runs.by_ref()
                .filter(|(_, len)| *len > 0)
                .take(BATCH - batch.len())
                .map(|(at, len)| libc::iovec { iov_base: at as *mut _, iov_len: len }),
        );
        if batch.is_empty() {
            return Ok(());
        }
        let here = libc::iovec { iov_base: local.cast(), iov_len: batch.iter().map(|run| run.iov_len).sum() };
        let mut moved = match call(&raw const here, &batch) {
            0 => return Err(io::Error::from(io::ErrorKind::WriteZero)),
            moved if moved > 0 => moved as usize,
            _ => return Err(io::Error::last_os_error()),
        };
        local = local.wrapping_add(moved);
        // The kernel may stop anywhere.
        batch.retain_mut(|run| {
            let done = moved.min(run.iov_len);
            moved -= done;
            run.iov_base = run.iov_base.wrapping_byte_add(done);
            run.iov_len -= done;
            run.iov_len > 0
        });
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
            // A sandbox forbids it, or an emulator does not have it; the engine then copies through the ring.
            println!("the kernel does not copy between processes here: not checked");
            return;
        }
        read.expect("own memory");
        assert_eq!(from, to);
        // SAFETY: `to` is ours and long enough; the bad address is the remote one.
        let bad = unsafe { read_peer(own, 8, to.as_mut_ptr(), 100) };
        assert_eq!(bad.unwrap_err().raw_os_error(), Some(libc::EFAULT));
        // SAFETY: both are ours.
        unsafe { write_peer(own, [9_u8; 4].as_ptr(), to.as_mut_ptr() as u64, 4) }.expect("own memory");
        assert_eq!(to[..5], [9, 9, 9, 9, 7]);
        // More runs than one call takes.
        let at = to.as_mut_ptr() as u64;
        let runs = || (0..1000).map(|i| (at + 10 * i, (i % 4) as usize));
        let bytes: usize = runs().map(|(_, len)| len).sum();
        let (given, mut taken) = ((0..bytes).map(|i| i as u8).collect::<Vec<_>>(), vec![0; bytes]);
        // SAFETY: all are ours and long enough.
        unsafe {
            write_runs(own, given.as_ptr(), runs()).expect("own memory");
            read_runs(own, runs(), taken.as_mut_ptr()).expect("own memory");
        }
        assert_eq!(given, taken);
    }
}
