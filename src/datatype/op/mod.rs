//! Reduction operations: the predefined ones on every type that they take (MPI 5.0 §6.9.2, §6.9.4), and users' own.
//!
//! Beyond the standard's table, MPI_CHAR counts as an integer, and the logical operations take all integers, as in
//! MPICH. Everything else that does not fit is [`Error::Op`].
//!
//! | file | what lives there |
//! |---|---|
//! | `number` | what a representation must be able to do; integers, `f32`, `f64`, complex numbers |
//! | `long_double` | C's `long double` and Fortran's `REAL(16)`, which Rust does not have |
//! | `kernels` | the loops |

mod kernels;
mod long_double;
mod number;

#[cfg(test)]
mod tests;

use core::ffi::c_void;
use std::sync::Arc;

use super::{Basic, BasicClass, Datatype};
use crate::abi;
use crate::scratch::Scratch;
use crate::{Error, Result};
use kernels::{Builtin, Pairs};

/// MPI_User_function: `void (void *invec, void *inoutvec, int *len, MPI_Datatype *datatype)`.
pub type UserFunction = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i32, *mut usize);
/// MPI_User_function_c: the same with an `MPI_Count *len`.
pub type UserFunctionC = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut i64, *mut usize);
/// A user's operation in Rust: left operands, right operands and results, how many, of what type.
pub type Closure = Box<dyn Fn(*const u8, *mut u8, usize, &Datatype) + Send + Sync>;

/// A reduction operation.
#[derive(Debug, Clone)]
pub struct Op(OpKind);

#[derive(Debug, Clone)]
enum OpKind {
    Builtin(Builtin),
    User(Arc<UserOp>),
}

struct UserOp {
    call: UserCall,
    commutes: bool,
}

enum UserCall {
    Int(UserFunction),
    Count(UserFunctionC),
    Rust(Closure),
}

impl core::fmt::Debug for UserOp {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("UserOp").field("commutes", &self.commutes).finish_non_exhaustive()
    }
}

impl Op {
    /// The predefined operation with this ABI handle.
    #[must_use]
    pub fn predefined(handle: usize) -> Option<Self> {
        Builtin::of(handle).map(|builtin| Self(OpKind::Builtin(builtin)))
    }

    /// MPI_Op_create.
    ///
    /// # Safety
    /// `function` can be called, with operands as MPI 5.0 §6.9.5 describes them, as long as a clone of this exists.
    #[must_use]
    pub unsafe fn user(function: UserFunction, commutes: bool) -> Self {
        Self(OpKind::User(Arc::new(UserOp { call: UserCall::Int(function), commutes })))
    }

    /// MPI_Op_create_c.
    ///
    /// # Safety
    /// As for [`Op::user`].
    #[must_use]
    pub unsafe fn user_c(function: UserFunctionC, commutes: bool) -> Self {
        Self(OpKind::User(Arc::new(UserOp { call: UserCall::Count(function), commutes })))
    }

    /// An operation written in Rust. It must be associative.
    #[must_use]
    pub fn closure(function: Closure, commutes: bool) -> Self {
        Self(OpKind::User(Arc::new(UserOp { call: UserCall::Rust(function), commutes })))
    }

    /// MPI_Op_commutative.
    #[must_use]
    pub fn commutative(&self) -> bool {
        match &self.0 {
            OpKind::Builtin(builtin) => !matches!(builtin, Builtin::Replace | Builtin::NoOp),
            OpKind::User(user) => user.commutes,
        }
    }

    /// Whether it is one of the predefined ones, which cannot be freed.
    #[must_use]
    pub fn is_predefined(&self) -> bool {
        matches!(self.0, OpKind::Builtin(_))
    }

    /// Whether it is the predefined one with this ABI handle.
    #[must_use]
    pub fn is(&self, handle: usize) -> bool {
        matches!(&self.0, OpKind::Builtin(builtin) if Builtin::of(handle) == Some(*builtin))
    }

    /// Whether it is MPI_REPLACE or MPI_NO_OP, which only one-sided communication takes (MPI 5.0 §12.3.4).
    #[must_use]
    pub fn is_for_rma_only(&self) -> bool {
        matches!(self.0, OpKind::Builtin(builtin) if builtin.is_for_rma_only())
    }

    /// Whether it can combine elements of `datatype`.
    ///
    /// # Errors
    /// [`Error::Op`] if not.
    pub fn check(&self, datatype: &Datatype) -> Result<()> {
        match &self.0 {
            OpKind::User(_) | OpKind::Builtin(Builtin::Replace | Builtin::NoOp) => Ok(()),
            OpKind::Builtin(builtin) => match (builtin.is_location(), single(datatype)) {
                (true, _) if datatype.pair().is_some() => Ok(()),
                (false, Some(basic)) if builtin.takes(basic.class()) => Ok(()),
                _ => Err(MISFIT),
            },
        }
    }

    /// `inoutvec[i] = invec[i] op inoutvec[i]` for `count` elements of `datatype`, laid out as in a user's buffer.
    /// `handle` is the datatype's handle, for a user's C function.
    ///
    /// # Errors
    /// [`Error::Op`] if the operation does not take this type.
    ///
    /// # Safety
    /// Both hold `count` elements, are not looked at by anybody else meanwhile, and do not overlap.
    pub unsafe fn apply(
        &self,
        invec: *const u8,
        inoutvec: *mut u8,
        count: usize,
        datatype: &Datatype,
        handle: usize,
    ) -> Result<()> {
        match &self.0 {
            OpKind::Builtin(builtin) => {
                self.check(datatype)?;
                // SAFETY: both sides hold `count` elements and do not overlap;
                // `check` has seen that the operation takes the type.
                unsafe { builtin_on_elements(*builtin, invec, inoutvec, count, datatype) };
            }
            // SAFETY: both sides hold `count` elements and do not overlap;
            // the operation was made with a function that takes them.
            OpKind::User(user) => unsafe { user.apply(invec, inoutvec, count, datatype, handle) },
        }
        Ok(())
    }

    /// [`Op::apply`] on packed streams of whole elements: `right = left op right`.
    ///
    /// # Errors
    /// [`Error::Op`] if the operation does not take this type;
    /// [`Error::Arg`] if the lengths differ or are not whole elements.
    ///
    /// # Safety
    /// What a user's function asks of its operands. Both are aligned for the type if it is contiguous.
    pub unsafe fn apply_packed(
        &self,
        left: &[u8],
        right: &mut [u8],
        datatype: &Datatype,
        handle: usize,
    ) -> Result<()> {
        let size = datatype.size();
        if size == 0 || left.is_empty() {
            return self.check(datatype);
        }
        if left.len() != right.len() || !left.len().is_multiple_of(size) {
            return Err(Error::Arg("operands of a reduction are not equally many whole elements"));
        }
        let count = left.len() / size;
        if datatype.is_contiguous() {
            // The operands may be other members' contributions, which others read, too.
            let copy = self.may_change_left().then(|| Scratch::copy_of(left)).transpose()?;
            let left = copy.as_deref().unwrap_or(left);
            let shift = datatype.true_lb();
            let (from, to) =
                (left.as_ptr().wrapping_offset(-shift), right.as_mut_ptr().wrapping_offset(-shift));
            // SAFETY: contiguous elements are their packed stream, displaced by the true lower bound.
            return unsafe { self.apply(from, to, count, datatype, handle) };
        }
        match (&self.0, datatype.pair()) {
            (OpKind::Builtin(builtin), Some((value, index, _))) if builtin.is_location() => {
                let layout = Pairs { value, index, at: value.size(), stride: size };
                // SAFETY: `layout` is that of packed pairs, and both slices are `count` of them.
                unsafe { layout.choose(*builtin, left.as_ptr(), right.as_mut_ptr(), count) };
                Ok(())
            }
            (OpKind::User(user), _) => user.apply_unpacked(left, right, count, datatype, handle),
            _ => self.check(datatype).map(|()| replace_packed(self, left, right)),
        }
    }

    /// Whether it may store into its left operands, too: MPI says of a user's C function what it returns in the right
    /// ones (MPI 5.0 §6.9.5), and not that it leaves the left ones as they are.
    fn may_change_left(&self) -> bool {
        matches!(&self.0, OpKind::User(user) if !matches!(user.call, UserCall::Rust(_)))
    }

    /// Whether it is predefined and combines values of this basic type.
    #[inline(always)]
    #[must_use]
    pub fn takes(&self, basic: Basic) -> bool {
        matches!(&self.0, OpKind::Builtin(builtin) if !builtin.is_location() && builtin.takes(basic.class()))
    }

    /// [`Op::apply`] on `count` values of a basic type, for accumulating into derived types piece by piece.
    ///
    /// # Errors
    /// [`Error::Op`] if the operation is not predefined or does not take this type.
    ///
    /// # Safety
    /// As for [`Op::apply`].
    pub unsafe fn apply_basic(
        &self,
        basic: Basic,
        left: *const u8,
        right: *mut u8,
        count: usize,
    ) -> Result<()> {
        match &self.0 {
            OpKind::Builtin(builtin) if self.takes(basic) => {
                // SAFETY: kernel rule 1: both sides hold `count` values of `basic` and do not overlap.
                unsafe { builtin.reduce(basic.machine_type(), basic.class(), left, right, count) };
                Ok(())
            }
            _ => Err(MISFIT),
        }
    }
}

/// A predefined reduction of values of a basic type, which it takes.
#[derive(Debug, Clone, Copy)]
pub struct BasicReduction {
    builtin: Builtin,
    basic: Basic,
}

impl BasicReduction {
    /// The operation with this ABI handle; `None` if there is none that takes the type, or only one-sided communication
    /// takes it.
    #[inline(always)]
    #[must_use]
    pub fn of(op: usize, basic: Basic) -> Option<Self> {
        let builtin = Builtin::of(op)?;
        let is_reduction = !builtin.is_location() && !builtin.is_for_rma_only();
        (is_reduction && builtin.takes(basic.class())).then_some(Self { builtin, basic })
    }

    /// `right[i] = left[i] op right[i]` for `count` values.
    ///
    /// # Safety
    /// Both hold so many values of the type, at any address, and do not overlap.
    #[inline(always)]
    pub unsafe fn apply(self, left: *const u8, right: *mut u8, count: usize) {
        // SAFETY: kernel rule 1: both sides hold `count` values of `basic` and do not overlap, as the caller says.
        unsafe { self.builtin.reduce(self.basic.machine_type(), self.basic.class(), left, right, count) }
    }
}

const MISFIT: Error = Error::Op("the operation is not defined for this datatype");

/// The basic type that a predefined type consists of.
fn single(datatype: &Datatype) -> Option<Basic> {
    if datatype.elements() == 1 && datatype.is_predefined() { datatype.uniform() } else { None }
}

/// # Safety
/// As for [`Op::apply`], which has checked that `builtin` takes the type.
unsafe fn builtin_on_elements(
    builtin: Builtin,
    left: *const u8,
    right: *mut u8,
    count: usize,
    datatype: &Datatype,
) {
    match (builtin, single(datatype), datatype.pair()) {
        (Builtin::NoOp, ..) => {}
        (Builtin::Replace, ..) => {
            for (at, len) in datatype.runs(count) {
                let (from, to) = (left.wrapping_offset(at), right.wrapping_offset(at));
                // SAFETY: the run is part of the `count` elements on each side, which do not overlap.
                unsafe { core::ptr::copy_nonoverlapping(from, to, len) };
            }
        }
        (_, Some(basic), _) => {
            // SAFETY: kernel rule 1: an element is one value of `basic`, and there are `count` on each side.
            unsafe { builtin.reduce(basic.machine_type(), basic.class(), left, right, count) };
        }
        (_, None, Some((value, index, at))) => {
            let layout = Pairs { value, index, at, stride: datatype.extent() as usize };
            // SAFETY: `layout` is that of the pair type.
            unsafe { layout.choose(builtin, left, right, count) };
        }
        (_, None, None) => {}
    }
}

fn replace_packed(op: &Op, left: &[u8], right: &mut [u8]) {
    if matches!(op.0, OpKind::Builtin(Builtin::Replace)) {
        right.copy_from_slice(left);
    }
}

impl UserOp {
    /// # Safety
    /// As for [`Op::apply`].
    unsafe fn apply(
        &self,
        left: *const u8,
        right: *mut u8,
        count: usize,
        datatype: &Datatype,
        handle: usize,
    ) {
        let mut handle = handle;
        match &self.call {
            UserCall::Rust(function) => function(left, right, count, datatype),
            UserCall::Count(function) => {
                let mut len = count as i64;
                // SAFETY: MPI_Op_create_c was given a function that takes `len` elements on each side,
                // and there are `count`.
                unsafe { function(left.cast_mut().cast(), right.cast(), &mut len, &mut handle) };
            }
            UserCall::Int(function) => {
                let mut done = 0;
                while done < count {
                    let mut len = i32::try_from(count - done).unwrap_or(i32::MAX);
                    let by = done as isize * datatype.extent();
                    let (from, to) = (left.wrapping_offset(by), right.wrapping_offset(by));
                    done += len as usize;
                    // SAFETY: MPI_Op_create was given a function that takes `len` elements on each side; these are the
                    // next `len` of `count`.
                    unsafe { function(from.cast_mut().cast(), to.cast(), &mut len, &mut handle) };
                }
            }
        }
    }

    /// Users' functions want elements as they lie in a buffer, so they are laid out in two temporary ones.
    fn apply_unpacked(
        &self,
        left: &[u8],
        right: &mut [u8],
        count: usize,
        datatype: &Datatype,
        handle: usize,
    ) -> Result<()> {
        let mut from = AlignedElements::new(datatype, count)?;
        let mut to = AlignedElements::new(datatype, count)?;
        // SAFETY: both buffers were made for `count` elements; the function's needs are those of `apply_packed`.
        unsafe {
            datatype.unpack(count, from.base(), 0, left);
            datatype.unpack(count, to.base(), 0, right);
            self.apply(from.base(), to.base(), count, datatype, handle);
            datatype.pack(count, to.base(), 0, right);
        }
        Ok(())
    }
}

/// Zeroed memory for elements of a datatype, aligned for any basic type.
struct AlignedElements {
    memory: Vec<u128>,
    zero: isize,
}

impl AlignedElements {
    fn new(datatype: &Datatype, count: usize) -> Result<Self> {
        let (zero, bytes) = Self::place(datatype, count).ok_or(Error::CountTooLarge(count))?;
        let mut memory = Vec::new();
        memory.try_reserve_exact(bytes.div_ceil(16))?;
        memory.resize(bytes.div_ceil(16), 0);
        Ok(Self { memory, zero })
    }

    /// Where displacement 0 is, and how many bytes there are; `None` if they are more than the address space holds.
    /// Displacement 0 gets an aligned place, so that what is aligned in the user's buffer is aligned here.
    fn place(datatype: &Datatype, count: usize) -> Option<(isize, usize)> {
        let (low, high) = datatype.data_span(count)?;
        let zero = low.min(0).unsigned_abs().checked_next_multiple_of(16)?;
        let zero = isize::try_from(zero).ok()?;
        Some((zero, usize::try_from(zero.checked_add(high.max(0))?).ok()?))
    }

    fn base(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast::<u8>().wrapping_offset(self.zero)
    }
}

impl Builtin {
    fn of(handle: usize) -> Option<Self> {
        Some(match handle {
            abi::MPI_SUM => Self::Sum,
            abi::MPI_MIN => Self::Min,
            abi::MPI_MAX => Self::Max,
            abi::MPI_PROD => Self::Prod,
            abi::MPI_BAND => Self::BitAnd,
            abi::MPI_BOR => Self::BitOr,
            abi::MPI_BXOR => Self::BitXor,
            abi::MPI_LAND => Self::And,
            abi::MPI_LOR => Self::Or,
            abi::MPI_LXOR => Self::Xor,
            abi::MPI_MINLOC => Self::MinLoc,
            abi::MPI_MAXLOC => Self::MaxLoc,
            abi::MPI_REPLACE => Self::Replace,
            abi::MPI_NO_OP => Self::NoOp,
            _ => return None,
        })
    }

    fn is_location(self) -> bool {
        matches!(self, Self::MinLoc | Self::MaxLoc)
    }

    #[inline(always)]
    fn is_for_rma_only(self) -> bool {
        matches!(self, Self::Replace | Self::NoOp)
    }

    #[inline(always)]
    fn takes(self, class: BasicClass) -> bool {
        self.classes() & set(&[class]) != 0
    }

    /// The table of MPI 5.0 §6.9.2, with the extensions that this module's head names.
    #[inline(always)]
    const fn classes(self) -> u32 {
        use BasicClass as C;
        const INTEGER: u32 = set(&[C::Integer, C::FortranInteger, C::Address, C::Char]);
        match self {
            Self::Min | Self::Max => INTEGER | set(&[C::Floating]),
            Self::Sum | Self::Prod => INTEGER | set(&[C::Floating, C::Complex]),
            Self::And | Self::Or | Self::Xor => INTEGER | set(&[C::Logical]),
            Self::BitAnd | Self::BitOr | Self::BitXor => INTEGER | set(&[C::Byte]),
            Self::MinLoc | Self::MaxLoc => 0,
            Self::Replace | Self::NoOp => u32::MAX,
        }
    }
}

/// A set of classes: a bit for each.
#[inline(always)]
const fn set(classes: &[BasicClass]) -> u32 {
    let (mut set, mut i) = (0, 0);
    while i < classes.len() {
        set |= 1 << classes[i] as u32;
        i += 1;
    }
    set
}
