//! The "external32" representation (MPI 5.0 §14.5.2): big-endian, with sizes of its own for a few types.

use super::Datatype;
use super::basic::{Basic, BasicClass, MachineType};
use crate::{Error, Result};

/// Bytes of the native packed stream that are converted at a time.
const STAGE: usize = 8 << 10;
/// Bytes of the largest basic element, native or external.
const LARGEST: usize = 32;

/// Elements between the native packed stream and the external one.
struct Converter {
    basic: Basic,
    native: usize,
    external: usize,
}

/// Reverses the bytes of each value of `$word`.
macro_rules! swap {
    ($word:ty, $from:expr, $to:expr) => {
        for (from, to) in $from.as_chunks().0.iter().zip($to.as_chunks_mut().0) {
            *to = <$word>::from_le_bytes(*from).to_be_bytes();
        }
    };
}

impl Converter {
    fn new(basic: Basic) -> Self {
        Self { basic, native: basic.size(), external: basic.external_size() }
    }

    /// Bytes of what is swapped on its own, native and external: complex numbers have two parts.
    fn part(&self) -> (usize, usize) {
        let halved = u32::from(self.basic.class() == BasicClass::Complex);
        (self.native >> halved, self.external >> halved)
    }

    /// How many of `elements` have room in so many bytes of `each`. Most stretches are short and fit: a division takes
    /// longer than one of them.
    #[inline]
    fn fitting(elements: usize, each: usize, room: usize) -> usize {
        if elements <= room / LARGEST { elements } else { elements.min(room / each) }
    }

    fn encode(&self, native: &[u8], external: &mut [u8]) {
        match self.part() {
            _ if self.is_extended() => {
                for (from, to) in native.chunks_exact(16).zip(external.as_chunks_mut().0) {
                    *to = quad_from_x87(from).to_be_bytes();
                }
            }
            (1, 1) => external.copy_from_slice(native),
            (2, 2) => swap!(u16, native, external),
            (4, 4) => swap!(u32, native, external),
            (8, 8) => swap!(u64, native, external),
            (16, 16) => swap!(u128, native, external),
            // A narrower form keeps the low bytes: the value, if it fits.
            (8, 4) => {
                for (from, to) in native.as_chunks().0.iter().zip(external.as_chunks_mut().0) {
                    *to = (u64::from_le_bytes(*from) as u32).to_be_bytes();
                }
            }
            (n, e) => {
                for (from, to) in native.chunks_exact(n).zip(external.chunks_exact_mut(e)) {
                    to.copy_from_slice(&from[..e]);
                    to.reverse();
                }
            }
        }
    }

    fn decode(&self, external: &[u8], native: &mut [u8]) {
        match self.part() {
            _ if self.is_extended() => {
                for (from, to) in external.as_chunks().0.iter().zip(native.chunks_exact_mut(16)) {
                    to.copy_from_slice(&x87_from_quad(u128::from_be_bytes(*from)));
                }
            }
            (1, 1) => native.copy_from_slice(external),
            (2, 2) => swap!(u16, external, native),
            (4, 4) => swap!(u32, external, native),
            (8, 8) => swap!(u64, external, native),
            (16, 16) => swap!(u128, external, native),
            (8, 4) => {
                let is_signed = self.is_signed();
                for (from, to) in external.as_chunks().0.iter().zip(native.as_chunks_mut().0) {
                    let value = u32::from_be_bytes(*from);
                    let wide = if is_signed { i64::from(value.cast_signed()) } else { i64::from(value) };
                    *to = wide.to_le_bytes();
                }
            }
            (n, e) => {
                for (from, to) in external.chunks_exact(e).zip(native.chunks_exact_mut(n)) {
                    let negative = self.is_signed() && from[0] >= 0x80;
                    to.fill(if negative { 0xff } else { 0 });
                    to[..e].copy_from_slice(from);
                    to[..e].reverse();
                }
            }
        }
    }

    /// Whether the elements are x87's extended numbers, which are quadruple ones outside.
    fn is_extended(&self) -> bool {
        matches!(self.basic.machine_type(), MachineType::F80 | MachineType::C80)
    }

    /// Whether the elements are numbers with a sign, which a wider form repeats.
    /// A wide character has none, whatever integer holds it.
    fn is_signed(&self) -> bool {
        let machine_type = self.basic.machine_type();
        self.basic.class() != BasicClass::Opaque
            && matches!(
                machine_type,
                MachineType::I8 | MachineType::I16 | MachineType::I32 | MachineType::I64 | MachineType::I128
            )
    }
}

/// IEEE quadruple has the same exponent as x87, an implicit leading bit and 49 more bits of fraction.
fn quad_from_x87(bytes: &[u8]) -> u128 {
    let mantissa = bytes[..8].iter().rev().fold(0u64, |m, b| m << 8 | u64::from(*b));
    let head = u128::from(bytes[9]) << 8 | u128::from(bytes[8]);
    head << 112 | u128::from(mantissa << 1) << 48
}

/// The inverse; fraction bits that x87 does not have are cut off.
fn x87_from_quad(quad: u128) -> [u8; 16] {
    let head = (quad >> 112) as u16;
    let normal = u64::from(head & 0x7fff != 0);
    let mantissa = normal << 63 | ((quad << 16) >> 65) as u64;
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mantissa.to_le_bytes());
    bytes[8..10].copy_from_slice(&head.to_le_bytes());
    bytes
}

impl Datatype {
    /// Bytes of `count` elements in "external32" (MPI_Pack_external_size).
    ///
    /// # Errors
    /// [`Error::CountTooLarge`] if that is larger than the address space, or the elements are.
    pub fn external_size(&self, count: usize) -> Result<usize> {
        self.bytes_of(count)?;
        let bytes = self.0.signature.external_bytes().checked_mul(count);
        bytes.filter(|bytes| isize::try_from(*bytes).is_ok()).ok_or(Error::CountTooLarge(count))
    }

    /// MPI_Pack_external: writes `count` elements to the beginning of `out`.
    ///
    /// # Errors
    /// [`Error::Truncate`] if `out` has too little room.
    ///
    /// # Safety
    /// As for [`Datatype::pack`].
    pub unsafe fn pack_external(&self, count: usize, buf: *const u8, out: &mut [u8]) -> Result<usize> {
        let need = self.external_size(count)?;
        let out = enough(out.len(), need).map(|()| &mut out[..need])?;
        let mut stage = [0; STAGE];
        // The staged bytes begin at `start` of the native stream; those before `at` are converted.
        let (mut start, mut at, mut staged, mut written) = (0, 0, 0, 0);
        self.0.signature.repeated(count).for_each(&mut |basic, mut elements| {
            let convert = Converter::new(basic);
            while elements > 0 {
                if staged - at < convert.native {
                    start += at;
                    // SAFETY: `buf` holds `count` elements that can be read; `stage` is memory of this function's, so
                    // it does not overlap them.
                    staged = unsafe { self.pack(count, buf, start, &mut stage) };
                    at = 0;
                }
                let some = Converter::fitting(elements, convert.native, staged - at);
                let (next, end) = (at + some * convert.native, written + some * convert.external);
                convert.encode(&stage[at..next], &mut out[written..end]);
                (at, written) = (next, end);
                elements -= some;
            }
        });
        Ok(need)
    }

    /// MPI_Unpack_external: reads `count` elements from the beginning of `input`; returns the bytes taken.
    ///
    /// # Errors
    /// [`Error::Truncate`] if `input` is too short.
    ///
    /// # Safety
    /// As for [`Datatype::unpack`].
    pub unsafe fn unpack_external(&self, count: usize, buf: *mut u8, input: &[u8]) -> Result<usize> {
        let need = self.external_size(count)?;
        enough(input.len(), need)?;
        // SAFETY: `buf` has room for `count` elements and does not overlap `input`, as the caller promises.
        unsafe { self.unpack_external_start(count, buf, input) };
        Ok(need)
    }

    /// Reads as many basic elements as lie whole in `input`, of `count` elements at most;
    /// returns the bytes that they are in memory.
    ///
    /// # Safety
    /// As for [`Datatype::unpack`].
    pub(crate) unsafe fn unpack_external_start(&self, count: usize, buf: *mut u8, input: &[u8]) -> usize {
        let mut stage = [0; STAGE];
        // The first `at` staged bytes belong at `start` of the native stream.
        let (mut start, mut at, mut left) = (0, 0, input);
        self.0.signature.repeated(count).for_each(&mut |basic, mut elements| {
            let convert = Converter::new(basic);
            while elements > 0 {
                if STAGE - at < convert.native {
                    // SAFETY: `buf` has room for `count` elements; `stage` is memory of this function's,
                    // so it does not overlap them.
                    start += unsafe { self.unpack(count, buf, start, &stage[..at]) };
                    at = 0;
                }
                let some = Converter::fitting(elements, convert.native, STAGE - at);
                let some = Converter::fitting(some, convert.external, left.len());
                if some == 0 {
                    // What follows an element that is cut off is not read.
                    left = &[];
                    break;
                }
                let (external, rest) = left.split_at(some * convert.external);
                let next = at + some * convert.native;
                convert.decode(external, &mut stage[at..next]);
                (at, left) = (next, rest);
                elements -= some;
            }
        });
        // SAFETY: `buf` has room for `count` elements; `stage` is memory of this function's,
        // so it does not overlap them.
        start + unsafe { self.unpack(count, buf, start, &stage[..at]) }
    }

    /// The bytes in memory of the basic elements that lie whole in the first `bytes` bytes of `count` elements in
    /// "external32".
    pub(crate) fn external_start(&self, count: usize, bytes: usize) -> usize {
        let each = self.0.signature.external_bytes();
        let whole = bytes.checked_div(each).unwrap_or(0).min(count);
        let (mut native, mut left) = (whole * self.size(), bytes - whole * each);
        if whole < count {
            self.for_each_basic(|basic, elements| {
                let fit = elements.min(left / basic.external_size());
                native += fit * basic.size();
                left = if fit == elements { left - fit * basic.external_size() } else { 0 };
            });
        }
        native
    }
}

fn enough(have: usize, need: usize) -> Result<()> {
    if have < need {
        return Err(Error::Truncate { sent: need as u64, room: have as u64 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi;

    #[test]
    fn external32_is_big_endian_and_comes_back_unchanged() {
        let types =
            [abi::MPI_INT, abi::MPI_LONG, abi::MPI_DOUBLE, abi::MPI_C_FLOAT_COMPLEX, abi::MPI_SHORT_INT];
        let parts: Vec<Datatype> = types.iter().filter_map(|h| Datatype::predefined(*h)).collect();
        let ty = Datatype::structure(&[1; 5], &[0, 8, 16, 24, 32], &parts).unwrap();
        let mut memory = [0u8; 40];
        memory[..4].copy_from_slice(&0x0102_0304i32.to_ne_bytes());
        memory[8..16].copy_from_slice(&(-5i64).to_ne_bytes());
        memory[16..24].copy_from_slice(&1.5f64.to_ne_bytes());
        memory[24..28].copy_from_slice(&2f32.to_ne_bytes());
        memory[28..32].copy_from_slice(&(-3f32).to_ne_bytes());
        memory[32..34].copy_from_slice(&7i16.to_ne_bytes());
        memory[36..40].copy_from_slice(&9i32.to_ne_bytes());
        let mut packed = [0u8; 30];
        assert_eq!(ty.external_size(1), Ok(30));
        // SAFETY: `memory` is one element.
        assert_eq!(unsafe { ty.pack_external(1, memory.as_ptr(), &mut packed) }, Ok(30));
        assert_eq!(packed[..8], [1, 2, 3, 4, 0xff, 0xff, 0xff, 0xfb]);
        assert_eq!(packed[8..16], 1.5f64.to_be_bytes());
        assert_eq!(packed[20..24], (-3f32).to_be_bytes());
        assert_eq!(packed[24..30], [0, 7, 0, 0, 0, 9]);
        let mut back = [0u8; 40];
        // SAFETY: `back` has room for one element.
        assert_eq!(unsafe { ty.unpack_external(1, back.as_mut_ptr(), &packed) }, Ok(30));
        assert_eq!(back, memory);
        // SAFETY: nothing is written where the room is too little.
        assert!(unsafe { ty.pack_external(1, memory.as_ptr(), &mut packed[..29]) }.is_err());
    }

    #[test]
    fn external32_of_many_elements_is_that_of_each_basic_one_and_may_end_within_one() {
        const APART: usize = 100;
        let is_extended = |basic: &Basic| matches!(basic.machine_type(), MachineType::F80 | MachineType::C80);
        let basics: Vec<Basic> = Basic::all().filter(|basic| !is_extended(basic)).collect();
        let lengths: Vec<usize> = (0..basics.len()).map(|i| i % 4).collect();
        let places: Vec<isize> = (0..basics.len()).map(|i| (i * APART) as isize).collect();
        let parts: Vec<Datatype> = basics.iter().filter_map(|b| Datatype::predefined(b.handle())).collect();
        let ty = Datatype::structure(&lengths, &places, &parts).unwrap();
        let ty = Datatype::resized(&ty, 0, (basics.len() * APART) as isize).unwrap();
        let count = if cfg!(miri) { 2 } else { 50 };
        let mut state = 11_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let memory: Vec<u8> = (0..count * basics.len() * APART).map(|_| next() as u8).collect();
        // The low bytes of each number, the other way round; where each basic element ends, and how many bytes of the
        // native stream there are.
        let (mut expected, mut ends) = (Vec::new(), vec![(0, 0)]);
        for element in memory.chunks_exact(basics.len() * APART) {
            for (i, basic) in basics.iter().enumerate() {
                let of_complex = if basic.class() == BasicClass::Complex { 2 } else { 1 };
                for value in element[i * APART..].chunks_exact(basic.size()).take(lengths[i]) {
                    for part in value.chunks_exact(basic.size() / of_complex) {
                        expected.extend(part[..basic.external_size() / of_complex].iter().rev());
                    }
                    ends.push((expected.len(), ends[ends.len() - 1].1 + basic.size()));
                }
            }
        }
        let mut packed = vec![0; expected.len()];
        assert_eq!(ty.external_size(count), Ok(packed.len()));
        // SAFETY: `memory` is `count` elements.
        assert_eq!(unsafe { ty.pack_external(count, memory.as_ptr(), &mut packed) }, Ok(packed.len()));
        assert_eq!(packed, expected);
        for cut in (0..20).map(|_| next() % packed.len()).chain([packed.len()]) {
            let mut back = vec![0; memory.len()];
            let whole = ends[ends.partition_point(|(end, _)| *end <= cut) - 1];
            // SAFETY: `back` has room for `count` elements.
            let native = unsafe { ty.unpack_external_start(count, back.as_mut_ptr(), &packed[..cut]) };
            assert_eq!((native, ty.external_start(count, cut)), (whole.1, whole.1));
            let mut again = vec![0xaa; packed.len()];
            // SAFETY: `back` is `count` elements.
            assert_eq!(unsafe { ty.pack_external(count, back.as_ptr(), &mut again) }, Ok(packed.len()));
            assert_eq!(again[..whole.0], packed[..whole.0]);
            assert!(again[whole.0..].iter().all(|byte| *byte == 0), "{cut}");
        }
    }

    #[test]
    fn external32_widens_by_the_sign_of_numbers_that_have_one() {
        for (handle, wide) in [(abi::MPI_LONG, u64::MAX << 31), (abi::MPI_UNSIGNED_LONG, 1 << 31)] {
            let ty = Datatype::predefined(handle).expect("predefined");
            let mut back = [0xaa; 8];
            // SAFETY: `back` has room for one element.
            assert_eq!(unsafe { ty.unpack_external(1, back.as_mut_ptr(), &[0x80, 0, 0, 0]) }, Ok(4));
            assert_eq!(u64::from_ne_bytes(back), wide);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn external32_takes_long_double_through_quadruple() {
        let ty = Datatype::predefined(abi::MPI_LONG_DOUBLE).expect("predefined");
        // -1.5: sign, exponent 16383, mantissa 1.1 with x87's explicit leading bit.
        let mut native = [0u8; 16];
        native[..8].copy_from_slice(&(0b11u64 << 62).to_le_bytes());
        native[8..10].copy_from_slice(&0xbfffu16.to_le_bytes());
        let mut packed = [0u8; 16];
        // SAFETY: one element each way.
        assert_eq!(unsafe { ty.pack_external(1, native.as_ptr(), &mut packed) }, Ok(16));
        assert_eq!(packed[..4], [0xbf, 0xff, 0x80, 0]);
        let mut back = [0xaau8; 16];
        // SAFETY: one element each way.
        assert_eq!(unsafe { ty.unpack_external(1, back.as_mut_ptr(), &packed) }, Ok(16));
        assert_eq!(back[..10], native[..10]);
    }

    #[test]
    fn a_wide_character_has_no_sign_in_external32() {
        let ty = Datatype::predefined(abi::MPI_WCHAR).expect("predefined");
        // A syllable of Hangul: the first bit of its 16 is set.
        let native = 0xac00_u32.to_ne_bytes();
        let (mut packed, mut back) = ([0; 2], [0; 4]);
        // SAFETY: one element each way.
        assert_eq!(unsafe { ty.pack_external(1, native.as_ptr(), &mut packed) }, Ok(2));
        assert_eq!(packed, [0xac, 0]);
        // SAFETY: one element each way.
        assert_eq!(unsafe { ty.unpack_external(1, back.as_mut_ptr(), &packed) }, Ok(2));
        assert_eq!(back, native);
    }
}
