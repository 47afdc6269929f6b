//! The "external32" representation (MPI 5.0 §14.5.2): big-endian, with sizes of its own for a few types.

use super::Datatype;
use super::basic::{Basic, BasicClass, MachineType};
use crate::{Error, Result};

/// Elements that are converted at a time, in a buffer of fixed size.
const PIECE: usize = 256;
/// Bytes of the largest basic element, native or external.
const LARGEST: usize = 32;

/// Element by element between the native packed stream and the external one.
struct Converter {
    basic: Basic,
    native: usize,
    external: usize,
}

impl Converter {
    fn new(basic: Basic) -> Self {
        Self { basic, native: basic.size(), external: basic.external_size() }
    }

    /// Parts that are swapped on their own: complex numbers have two.
    fn parts(&self) -> usize {
        if self.basic.class() == BasicClass::Complex { 2 } else { 1 }
    }

    fn encode(&self, native: &[u8], external: &mut [u8]) {
        let (n, e) = (self.native / self.parts(), self.external / self.parts());
        for (from, to) in native.chunks_exact(n).zip(external.chunks_exact_mut(e)) {
            if matches!(self.basic.machine_type(), MachineType::F80 | MachineType::C80) {
                to.copy_from_slice(&quad_from_x87(from).to_be_bytes());
            } else {
                // A narrower form keeps the low bytes: the value, if it fits.
                to.copy_from_slice(&from[..e]);
                to.reverse();
            }
        }
    }

    fn decode(&self, external: &[u8], native: &mut [u8]) {
        let (n, e) = (self.native / self.parts(), self.external / self.parts());
        for (from, to) in external.chunks_exact(e).zip(native.chunks_exact_mut(n)) {
            if matches!(self.basic.machine_type(), MachineType::F80 | MachineType::C80) {
                let mut quad = [0; 16];
                quad.copy_from_slice(from);
                to.copy_from_slice(&x87_from_quad(u128::from_be_bytes(quad)));
            } else {
                let negative = self.is_signed() && from[0] >= 0x80;
                to.fill(if negative { 0xff } else { 0 });
                to[..e].copy_from_slice(from);
                to[..e].reverse();
            }
        }
    }

    /// Whether the elements are numbers with a sign, which a wider form repeats. A wide character has none, whatever integer holds it.
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
        let (mut position, mut written) = (0, 0);
        let mut room = [0; PIECE * LARGEST];
        self.0.signature.repeated(count).for_each(&mut |basic, elements| {
            let convert = Converter::new(basic);
            for piece in pieces(elements) {
                let chunk = &mut room[..piece * convert.native];
                // SAFETY: `buf` holds `count` elements that can be read; `chunk` is memory of this function's, so it does not overlap them.
                position += unsafe { self.pack(count, buf, position, chunk) };
                let end = written + piece * convert.external;
                convert.encode(chunk, &mut out[written..end]);
                written = end;
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
        // SAFETY: as this function's.
        unsafe { self.unpack_external_start(count, buf, input) };
        Ok(need)
    }

    /// Reads as many basic elements as lie whole in `input`, of `count` elements at most; returns the bytes that they are in memory.
    ///
    /// # Safety
    /// As for [`Datatype::unpack`].
    pub(crate) unsafe fn unpack_external_start(&self, count: usize, buf: *mut u8, input: &[u8]) -> usize {
        let (mut position, mut left) = (0, input);
        let mut room = [0; PIECE * LARGEST];
        self.0.signature.repeated(count).for_each(&mut |basic, elements| {
            let convert = Converter::new(basic);
            for piece in pieces(elements) {
                if left.is_empty() {
                    break;
                }
                let whole = piece.min(left.len() / convert.external);
                let chunk = &mut room[..whole * convert.native];
                let (external, rest) = left.split_at(whole * convert.external);
                convert.decode(external, chunk);
                // What follows an element that is cut off is not read.
                left = if whole == piece { rest } else { &[] };
                // SAFETY: `buf` has room for `count` elements; `chunk` is memory of this function's, so it does not overlap them.
                position += unsafe { self.unpack(count, buf, position, chunk) };
            }
        });
        position
    }

    /// The bytes in memory of the basic elements that lie whole in the first `bytes` bytes of `count` elements in "external32".
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

/// Numbers of elements, none above [`PIECE`], that add up to `elements`.
fn pieces(elements: usize) -> impl Iterator<Item = usize> {
    (0..elements).step_by(PIECE).map(move |done| PIECE.min(elements - done))
}

fn enough(have: usize, need: usize) -> Result<()> {
    if have < need {
        return Err(Error::Truncate { sent: need as u64, room: have as u64 });
    }
    Ok(())
}
