//! All that depends on the processor: prefetches, the cycle counter, long copies, the identity of a thread.
//!
//! `x86_64.rs`, `aarch64.rs` and `portable.rs` define the same items, behind the functions here and in `copy`; `clock`
//! turns ticks into time. The portable form uses nothing but the standard library; it is also what Miri and loom run. A
//! port to another processor is one more file with these items, and its line here. (What C's types are on a processor
//! is a matter of the ABI and stands in `datatype`.)

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(perusal_loom)))]
#[path = "x86_64.rs"]
mod imp;
#[cfg(all(target_arch = "aarch64", target_os = "linux", not(miri), not(perusal_loom)))]
#[path = "aarch64.rs"]
mod imp;
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    target_os = "linux",
    not(miri),
    not(perusal_loom)
)))]
#[path = "portable.rs"]
mod imp;

pub mod clock;
mod copy;

pub use copy::{
    copy_apart, copy_each, copy_long, copy_nontemporal, copy_run, copy_short, copy_slice, streams,
    strings_stall,
};

/// Whether an atomic read-modify-write instruction is a full fence by itself.
pub const EXCHANGE_IS_FENCE: bool = imp::EXCHANGE_IS_FENCE;

/// Makes the loads before this call complete before those behind it begin. Orders nothing that a protocol relies on.
///
/// For use between two loads of a word that another processor is about to write: a processor that has begun several of
/// them discards all of them when it loses the line, and begins again.
#[inline(always)]
pub fn serialize_loads() {
    imp::serialize_loads();
}

/// Asks for the cache line at `line` for reading. Only a hint: any address is allowed.
#[inline(always)]
pub fn prefetch_read(line: *const u8) {
    imp::prefetch_read(line);
}

/// Asks for the cache line at `line` for writing. Only a hint: any address is allowed.
#[inline(always)]
pub fn prefetch_write(line: *mut u8) {
    imp::prefetch_write(line);
}

/// A number that identifies the calling thread among the live threads of the process; never 0.
///
/// (One operating-system thread runs all threads of a loom model: [`crate::sync::thread_id`] knows them apart.)
#[inline(always)]
#[must_use]
pub fn thread_id() -> usize {
    imp::thread_id()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetches_take_any_address() {
        prefetch_read(core::ptr::null());
        prefetch_write(core::ptr::without_provenance_mut(usize::MAX));
        serialize_loads();
    }

    #[test]
    fn live_threads_have_different_ids_and_keep_them() {
        let mine = thread_id();
        let other = std::thread::spawn(thread_id).join().expect("no panic in here");
        assert!(mine != 0 && other != 0 && mine == thread_id());
        let all = std::sync::Barrier::new(2);
        let ids = std::thread::scope(|scope| {
            let both = [(); 2].map(|()| {
                scope.spawn(|| {
                    let id = thread_id();
                    all.wait();
                    id
                })
            });
            both.map(|thread| thread.join().expect("no panic in here"))
        });
        assert!(ids[0] != ids[1] && !ids.contains(&mine));
    }
}
