//! Elements: the types whose values messages carry.

use crate::abi;
use crate::datatype::Datatype;
use crate::error::{Error, Result};

/// A type whose values can be sent as they lie in memory, and made of any bytes that arrive.
///
/// Integers, floats and arrays of them are elements. `bool` and `char` are not: not every byte that a peer may send is
/// one of their values; send them as `u8` and `u32`.
///
/// # Safety
///
/// - A value may have any bit pattern: an element is made of whatever a peer sends.
/// - It has no padding: all of its bytes are initialised, so they can be read as bytes.
/// - It has no interior mutability, so that bytes behind a `&Self` stand still.
/// - It is `COUNT` times the predefined MPI datatype `HANDLE`, one behind the other, and no more.
///
/// ```
/// use perusal::Element;
///
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Particle {
///     position: [f64; 3],
///     mass: f64,
/// }
/// // SAFETY: `repr(C)` of four `f64`s: any bits will do, no padding, no cells, four times MPI_DOUBLE.
/// unsafe impl Element for Particle {
///     const HANDLE: usize = f64::HANDLE;
///     const COUNT: usize = 4;
/// }
/// ```
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// Handle of a predefined datatype of fixed size: that of another element.
    const HANDLE: usize;
    /// How many of it make one element.
    const COUNT: usize;
}

macro_rules! elements {
    ($($rust:ty: $handle:ident),* $(,)?) => { $(
        // SAFETY: a number: any bits will do, no padding, no cells; the datatype is the same number in MPI.
        unsafe impl Element for $rust {
            const HANDLE: usize = abi::$handle;
            const COUNT: usize = 1;
        }
    )* };
}

elements! {
    u8: MPI_UINT8_T, u16: MPI_UINT16_T, u32: MPI_UINT32_T, u64: MPI_UINT64_T,
    i8: MPI_INT8_T, i16: MPI_INT16_T, i32: MPI_INT32_T, i64: MPI_INT64_T,
    f32: MPI_FLOAT, f64: MPI_DOUBLE,
}

// Linux on machines whose pointers have 64 bits is all that the ABI is for.
const _: () = assert!(size_of::<usize>() == size_of::<u64>());
elements! { usize: MPI_UINT64_T, isize: MPI_INT64_T }

// SAFETY: an array is its elements one behind the other, without gaps; what holds for them holds for it.
unsafe impl<E: Element, const N: usize> Element for [E; N] {
    const HANDLE: usize = E::HANDLE;
    const COUNT: usize = N * E::COUNT;
}

/// Returns the datatype that `E` is made of.
pub(super) fn datatype<E: Element>() -> &'static Datatype {
    let found = Datatype::predefined_ref(E::HANDLE).expect("an element is made of a predefined datatype");
    debug_assert_eq!(found.size() * E::COUNT, size_of::<E>());
    found
}

/// Returns `count` elements, all zero.
///
/// # Errors
/// [`Error::NoMem`] if there is no memory for so many.
pub(super) fn zeroed<E: Element>(count: usize) -> Result<Vec<E>> {
    let mut elements = Vec::new();
    let refused = |_| Error::NoMem(format!("{count} elements of {} bytes each", size_of::<E>()));
    elements.try_reserve_exact(count).map_err(refused)?;
    // SAFETY: there is room for `count` elements, and zeros are one of the bit patterns that an element may have.
    unsafe {
        core::ptr::write_bytes(elements.as_mut_ptr(), 0, count);
        elements.set_len(count);
    }
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<E: Element>() {
        let datatype = datatype::<E>();
        assert_eq!(datatype.size() * E::COUNT, size_of::<E>(), "{}", core::any::type_name::<E>());
        assert!(datatype.is_contiguous() && datatype.true_lb() == 0);
    }

    #[test]
    fn every_element_is_as_large_as_its_datatypes() {
        check::<u8>();
        check::<u16>();
        check::<u32>();
        check::<u64>();
        check::<usize>();
        check::<i8>();
        check::<i16>();
        check::<i32>();
        check::<i64>();
        check::<isize>();
        check::<f32>();
        check::<f64>();
        check::<[[f32; 3]; 5]>();
        check::<[u64; 0]>();
    }

    #[cfg_attr(miri, ignore = "Miri ends where memory does")]
    #[test]
    fn too_many_elements_are_an_error_and_not_the_end() {
        assert_eq!(zeroed::<u32>(3).unwrap(), [0, 0, 0]);
        assert!(matches!(zeroed::<u64>(usize::MAX / 16), Err(Error::NoMem(_))));
    }
}
