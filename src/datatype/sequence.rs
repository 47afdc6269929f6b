//! The type signature of a message as a number that can be compared:
//! the sequence of its basic types (MPI 5.0 §3.3.1), however they lie.

use super::{Basic, BasicClass, Datatype};

/// The number of a basic type, which those of one class and size share. `None` for what may stand for others: bytes,
/// packed data, and characters, which are often sent under another name.
fn kind_of(basic: Basic) -> Option<u64> {
    let class = match basic.class() {
        BasicClass::Integer | BasicClass::FortranInteger | BasicClass::Address => 1,
        BasicClass::Floating => 2,
        BasicClass::Logical => 3,
        BasicClass::Complex => 4,
        _ => return None,
    };
    (basic.size() > 1).then_some(class << 32 | basic.size() as u64)
}

/// A sequence of basic types, as the map `x → x * factor + number`: that of two sequences, one behind the other,
/// follows from theirs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sequence {
    factor: u64,
    number: u64,
}

impl Sequence {
    pub const EMPTY: Self = Self { factor: 1, number: 0 };

    /// So many elements of a basic type; `None` if it may stand for others.
    pub fn of(basic: Basic, count: usize) -> Option<Self> {
        let kind = kind_of(basic)?;
        let one = Self {
            factor: 0x9e37_79b9_7f4a_7c15,
            number: (kind ^ kind >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9),
        };
        Some(one.times(count))
    }

    /// It, and `next` behind it.
    pub const fn then(self, next: Self) -> Self {
        let number = self.number.wrapping_mul(next.factor).wrapping_add(next.number);
        Self { factor: self.factor.wrapping_mul(next.factor), number }
    }

    /// So many of it.
    pub fn times(self, mut count: usize) -> Self {
        let (mut all, mut power) = (Self::EMPTY, self);
        while count > 0 {
            if count & 1 == 1 {
                all = all.then(power);
            }
            power = power.then(power);
            count >>= 1;
        }
        all
    }
}

impl Datatype {
    /// Returns the number of the first `bytes` bytes of elements of this type, one behind the other: equal for equal
    /// sequences of basic types. `None` if one of them may stand for others, or the bytes end within one.
    #[must_use]
    pub fn sequence_number(&self, bytes: usize) -> Option<u64> {
        let elements = bytes.checked_div(self.size())?;
        let (signature, rest) = (&self.0.signature, bytes - elements * self.size());
        let whole = signature.sequence(self.size())?.times(elements);
        Some(whole.then(signature.sequence(rest)?).number)
    }

    /// Returns what `bytes` bytes of elements of this type are, for people:
    /// "4 × MPI_INT", "2 × {1 × MPI_INT, 3 × MPI_DOUBLE}".
    #[must_use]
    pub fn contents_text(&self, bytes: usize) -> String {
        /// Stretches of equal basic types that are written out.
        const SHOWN: usize = 4;
        let mut stretches: Vec<(Basic, usize)> = vec![];
        self.for_each_basic(|basic, count| {
            let full = stretches.len() > SHOWN;
            match stretches.last_mut() {
                Some((last, number)) if *last == basic => *number += count,
                _ if full => {}
                _ => stretches.push((basic, count)),
            }
        });
        let several = match stretches.as_slice() {
            [] => return "nothing".into(),
            [(basic, _)] => return format!("{} × {}", bytes / basic.size(), basic.name()),
            several => several,
        };
        let some = several.iter().take(SHOWN).map(|(basic, count)| format!("{count} × {}", basic.name()));
        let more = if several.len() > SHOWN { ", …" } else { "" };
        format!("{} × {{{}{more}}}", bytes / self.size().max(1), some.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;
    use crate::abi;

    fn basic(handle: usize) -> Datatype {
        Datatype::predefined_ref(handle).unwrap().clone()
    }

    #[test]
    fn equal_sequences_have_equal_numbers_however_they_are_made() {
        let (int, double) = (basic(abi::MPI_INT), basic(abi::MPI_DOUBLE));
        let pair = Datatype::structure(&[1, 1], &[0, 8], &[int.clone(), double.clone()]).unwrap();
        let two = Datatype::contiguous(2, &pair).unwrap();
        let flat = Datatype::structure(
            &[1, 1, 1, 1],
            &[0, 8, 100, 108],
            &[int.clone(), double.clone(), int.clone(), double.clone()],
        )
        .unwrap();
        assert_eq!(pair.sequence_number(24), two.sequence_number(24));
        assert_eq!(pair.sequence_number(24), flat.sequence_number(24));
        assert_eq!(pair.sequence_number(4), int.sequence_number(4));
        assert_eq!(two.sequence_number(16), flat.sequence_number(16), "a part of an element");
        assert_ne!(pair.sequence_number(12), int.sequence_number(12));
        assert_ne!(int.sequence_number(8), double.sequence_number(8));
        assert_ne!(basic(abi::MPI_FLOAT).sequence_number(4), int.sequence_number(4));
        assert_eq!(basic(abi::MPI_INT32_T).sequence_number(1 << 40), int.sequence_number(1 << 40));
        assert_eq!(double.sequence_number(12), None, "the bytes end within an element");
        assert_eq!(basic(abi::MPI_BYTE).sequence_number(4), None);
        let mixed = Datatype::structure(&[1, 1], &[0, 4], &[int, basic(abi::MPI_CHAR)]).unwrap();
        assert_eq!(mixed.sequence_number(5), None);
    }

    #[test]
    fn contents_are_named_by_their_basic_types() {
        let (int, double) = (basic(abi::MPI_INT), basic(abi::MPI_DOUBLE));
        let pair = Datatype::structure(&[1, 3], &[0, 8], &[int.clone(), double]).unwrap();
        assert_eq!(int.contents_text(16), "4 × MPI_INT");
        assert_eq!(Datatype::contiguous(2, &int).unwrap().contents_text(16), "4 × MPI_INT");
        assert_eq!(pair.contents_text(56), "2 × {1 × MPI_INT, 3 × MPI_DOUBLE}");
    }
}
