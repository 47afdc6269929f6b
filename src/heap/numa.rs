//! Which NUMA node the pages of the heap come from. The kernel keeps that with the job's file, so that it holds for
//! every process that touches a page first.

use std::ptr::NonNull;

/// More nodes than the kernel has.
const NODES: usize = 1024;

/// Prefers memory of a node for the pages of these bytes, or again that of the CPU that touches them first for `None`.
/// The kernel refuses a node that it does not have, or that has no memory; a container may refuse all of them.
fn set_policy(start: NonNull<u8>, bytes: usize, node: Option<u32>) -> bool {
    let mut nodes = [0_u64; NODES / 64];
    let mode = match node {
        Some(node) if node as usize >= NODES => return false,
        Some(node) => {
            nodes[node as usize / 64] = 1 << (node % 64);
            libc::MPOL_PREFERRED
        }
        None => libc::MPOL_DEFAULT,
    };
    // The kernel takes one bit less than the number says. An empty set is none.
    let (set, bits) = if node.is_some() { (nodes.as_ptr(), NODES + 1) } else { (core::ptr::null(), 0) };
    if cfg!(miri) {
        return false;
    }
    // SAFETY: a policy changes nothing that the pages hold, wherever they are; `set` has so many bits, or there are
    // none.
    unsafe { libc::syscall(libc::SYS_mbind, start.as_ptr(), bytes, mode, set, bits, 0) == 0 }
}

/// Has the kernel prefer a node for the pages of these bytes that nobody has touched yet. Returns whether it will.
pub(super) fn prefer(start: NonNull<u8>, bytes: usize, node: u32) -> bool {
    set_policy(start, bytes, Some(node))
}

/// Has the kernel prefer no node any more.
pub(super) fn prefer_none(start: NonNull<u8>, bytes: usize) {
    set_policy(start, bytes, None);
}
