//! Strings that go to C, cut to the room that is there.

use core::ffi::c_char;

/// Writes as much of `text` as fits into `room` bytes with a zero behind it; gives the length without the zero.
/// `room` 0 writes nothing.
///
/// # Safety
/// `to` may be written for `room` bytes, or `room` is 0.
pub unsafe fn write(to: *mut c_char, room: usize, text: &[u8]) -> usize {
    let Some(most) = room.checked_sub(1) else { return 0 };
    let length = text.len().min(most);
    // SAFETY: `length + 1 <= room` bytes may be written; `text` is ours and cannot overlap a buffer of the user's.
    unsafe {
        core::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), length);
        *to.add(length) = 0;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_cut_to_the_room_and_always_ended() {
        for (room, expected, length) in
            [(0, &b"zzzz"[..], 0), (1, b"\0zzz", 0), (3, b"ab\0z", 2), (4, b"abc\0", 3)]
        {
            let mut buffer = *b"zzzz";
            // SAFETY: the buffer has at least `room` bytes.
            assert_eq!(unsafe { write(buffer.as_mut_ptr().cast(), room, b"abc") }, length);
            assert_eq!(buffer, expected);
        }
    }
}
