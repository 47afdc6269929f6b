//! Where a buffer's memory is from, as far as it can be known without asking whoever has it: from glibc's malloc, or a
//! program's or a library's static memory.
//!
//! A long block of glibc's malloc is a mapping of its own, near the beginning of which lie the block's two words: the
//! bytes from the mapping's beginning to them, and those from them to its end, with a flag. What malloc has by `brk`,
//! the kernel knows ([`super::mappings::MemoryKind::Break`]).

use crate::limits::PAGE;
use core::ffi::c_void;
use core::ops::Range;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes before a buffer in which the beginning of its block is looked for.
pub(super) const FAR: usize = 16 << 20;
/// Bytes that are looked through at a time.
const STEP: usize = 256 << 10;

/// Bytes of a block's two words; the block's memory begins behind them.
const HEAD: usize = 16;
/// Where the words are in a page, by the alignment of the block: malloc's own, 32, 64 and 128 bytes, and a page.
const HEADS: [usize; 5] = [0, 32 - HEAD, 64 - HEAD, 128 - HEAD, PAGE - HEAD];

/// The flags in the second word: the block is a mapping of its own.
const FLAGS: usize = 7;
const IS_MAPPED: usize = 2;

/// Whether a buffer that lies in private memory, where all is mapped from `mapped` on, is known to be static memory, or
/// within a long block of glibc's malloc.
pub(super) fn is_known(buffer: &Range<usize>, mapped: usize) -> bool {
    is_static(buffer.start) || is_in_block(buffer, mapped)
}

/// Whether an address lies in a program's or a library's static memory.
fn is_static(addr: usize) -> bool {
    // SAFETY: zeros are a `Dl_info`, which `dladdr` fills for an address that it knows; it looks at none.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        libc::dladdr(addr as *const c_void, &raw mut info) != 0
    }
}

/// Whether the words of a block that has the buffer are found before it. Another thread may unmap what lies there, so
/// the kernel reads it.
fn is_in_block(buffer: &Range<usize>, mapped: usize) -> bool {
    let Ok(memory) = File::open("/proc/self/mem") else { return false };
    let mut room = vec![0_u8; STEP];
    let mut end = buffer.start.next_multiple_of(PAGE);
    let first = mapped.max(end.saturating_sub(FAR));
    while end > first {
        let start = first.max(end.saturating_sub(STEP));
        let bytes = &mut room[..end - start];
        if memory.read_exact_at(bytes, start as u64).is_err() {
            return false;
        }
        let word = |at: usize| usize::from_ne_bytes(core::array::from_fn(|i| bytes[at + i]));
        let pages = (0..bytes.len()).step_by(PAGE).rev();
        let heads = pages.flat_map(|page| HEADS.map(|head| page + head));
        if heads.into_iter().any(|at| is_head([word(at), word(at + 8)], start + at, buffer, mapped)) {
            return true;
        }
        end = start;
    }
    false
}

/// Whether these words, which lie at `at`, are those of a block that has the buffer.
fn is_head([before, behind]: [usize; 2], at: usize, buffer: &Range<usize>, mapped: usize) -> bool {
    let Some(start) = at.checked_sub(before) else { return false };
    let Some(end) = at.checked_add(behind & !FLAGS) else { return false };
    behind & FLAGS == IS_MAPPED
        && start.is_multiple_of(PAGE)
        && end.is_multiple_of(PAGE)
        && start >= mapped
        && at + HEAD <= buffer.start
        && buffer.end <= end
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    static STATIC: [u8; 100_000] = [0; 100_000];

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn what_malloc_has_mapped_is_known() {
        for align in [16, 32, 64, 128, PAGE] {
            let layout = std::alloc::Layout::from_size_align(48 << 20, align).expect("a layout");
            // SAFETY: not of no bytes.
            let block = unsafe { std::alloc::alloc(layout) };
            let all = (block.addr() - HEAD) / PAGE * PAGE;
            for (from, bytes, known) in [
                (0, 48 << 20, true),
                (100_001, 70_000, true),
                (15 << 20, 1 << 20, true),
                (40 << 20, 70_000, false),
            ] {
                let start = block.addr() + from;
                assert_eq!(is_in_block(&(start..start + bytes), all), known, "{align} {from}");
            }
            let start = block.addr();
            assert!(!is_in_block(&(start..start + (48 << 20) + 2 * PAGE), all), "longer than the block");
            // SAFETY: allocated above, with this layout.
            unsafe { std::alloc::dealloc(block, layout) };
        }
        assert!(is_static(STATIC.as_ptr().addr()));
    }

    #[test]
    fn words_are_a_blocks_head_if_all_of_it_fits() {
        let at = 100 * PAGE;
        let mapped = 90 * PAGE;
        let buffer = at + 16..at + 20 * PAGE;
        let words = [0, (30 * PAGE) | IS_MAPPED];
        assert!(is_head(words, at, &buffer, mapped));
        assert!(!is_head([0, (30 * PAGE) | 1], at, &buffer, mapped), "another flag");
        assert!(!is_head([0, (30 * PAGE + 16) | IS_MAPPED], at, &buffer, mapped), "no whole pages");
        assert!(!is_head([0, (19 * PAGE) | IS_MAPPED], at, &buffer, mapped), "too short");
        assert!(!is_head(words, at, &(at..at + PAGE), mapped), "a buffer that has the words");
        assert!(!is_head([11 * PAGE, (30 * PAGE) | IS_MAPPED], at, &buffer, mapped), "not mapped");
        assert!(is_head(
            [PAGE - 16, (31 * PAGE - (PAGE - 16)) | IS_MAPPED],
            at + PAGE - 16,
            &(at + PAGE..at + 2 * PAGE),
            mapped
        ));
        assert!(!is_head([usize::MAX, IS_MAPPED], at, &buffer, mapped));
    }
}
