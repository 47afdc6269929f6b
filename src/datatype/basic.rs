//! The basic types: what each predefined handle of the ABI is made of, with C's and gfortran's defaults. `char`,
//! `wchar_t` and `long double` depend on the processor.
//!
//! A row gives a handle its name, its machine representation ([`MachineType`]) and the class that decides which
//! reduction operations take it ([`BasicClass`]; MPI 5.0 §6.9.2). Pair types are not here: they are two basic types.

use crate::abi;

/// The machine representation of a basic type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineType {
    /// Signed integers.
    I8,
    /// 16 bits.
    I16,
    /// 32 bits.
    I32,
    /// 64 bits.
    I64,
    /// 128 bits.
    I128,
    /// Unsigned integers.
    U8,
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// x87 extended in 16 bytes, of which 6 are padding.
    F80,
    /// IEEE quadruple.
    F128,
    /// A pair of [`MachineType::F32`], and so on.
    C32,
    /// A pair of [`MachineType::F64`].
    C64,
    /// A pair of [`MachineType::F80`].
    C80,
    /// A pair of [`MachineType::F128`].
    C128,
}

impl MachineType {
    /// C's `char`: signed on x86-64, unsigned on AArch64.
    pub const CHAR: Self = if core::ffi::c_char::MIN == 0 { Self::U8 } else { Self::I8 };
    /// C's `wchar_t`: signed on x86-64, unsigned on AArch64.
    pub const WCHAR: Self = if libc::wchar_t::MIN == 0 { Self::U32 } else { Self::I32 };
    /// C's `long double`: x87 extended on x86-64, IEEE quadruple on AArch64.
    pub const LONG_DOUBLE: Self = if cfg!(target_arch = "x86_64") { Self::F80 } else { Self::F128 };
    /// C's `long double _Complex`.
    pub const LONG_DOUBLE_COMPLEX: Self = if cfg!(target_arch = "x86_64") { Self::C80 } else { Self::C128 };

    /// Bytes in memory.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::C32 => 8,
            Self::I128 | Self::F80 | Self::F128 | Self::C64 => 16,
            Self::C80 | Self::C128 => 32,
        }
    }

    /// The alignment that C or Fortran gives it; a complex number has that of its parts.
    #[must_use]
    pub const fn align(self) -> usize {
        match self {
            Self::C32 => 4,
            Self::C64 => 8,
            Self::C80 | Self::C128 => 16,
            _ => self.size(),
        }
    }
}

/// Which group of types of MPI 5.0 §6.9.2 a basic type belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasicClass {
    /// C integer.
    Integer,
    /// Fortran integer.
    FortranInteger,
    /// Floating point.
    Floating,
    /// Logical, C and C++ bool included.
    Logical,
    /// Complex.
    Complex,
    /// MPI_BYTE.
    Byte,
    /// MPI_AINT, MPI_COUNT, MPI_OFFSET.
    Address,
    /// MPI_CHAR: a character in the standard, taken as an integer by reductions here, as elsewhere.
    Char,
    /// MPI_CHARACTER, MPI_WCHAR, MPI_PACKED: no reduction takes them.
    Opaque,
}

/// One row of the table of basic types.
#[derive(Debug)]
pub struct BasicRow {
    handle: usize,
    name: &'static str,
    lane: MachineType,
    class: BasicClass,
    external: usize,
}

/// A basic type; two are equal when their handles are.
#[derive(Debug, Clone, Copy)]
pub struct Basic(&'static BasicRow);

impl PartialEq for Basic {
    fn eq(&self, other: &Self) -> bool {
        self.0.handle == other.0.handle
    }
}
impl Eq for Basic {}

impl Basic {
    /// The basic type with this handle, if it is one that we have.
    #[must_use]
    pub fn of(handle: usize) -> Option<Self> {
        let row = NUMBERS.get(handle.wrapping_sub(abi::MPI_DATATYPE_NULL))?;
        ROWS.get(usize::from(*row)).map(Self)
    }

    /// Whether its values are equal where their bytes are: what MPI_Compare_and_swap takes (MPI 5.0 §12.3.4).
    #[must_use]
    pub fn is_discrete(self) -> bool {
        !matches!(self.class(), BasicClass::Floating | BasicClass::Complex)
    }

    /// Whether reductions add its values as integers.
    #[inline(always)]
    #[must_use]
    pub fn is_integer(self) -> bool {
        use BasicClass as C;
        matches!(self.class(), C::Integer | C::FortranInteger | C::Address | C::Char)
    }

    /// Every basic type.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(Self)
    }

    /// The ABI's handle value.
    #[must_use]
    pub fn handle(self) -> usize {
        self.0.handle
    }
    /// The name that MPI_Type_get_name gives.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name
    }
    /// How it is represented.
    #[must_use]
    pub fn machine_type(self) -> MachineType {
        self.0.lane
    }
    /// Which reductions take it.
    #[must_use]
    pub fn class(self) -> BasicClass {
        self.0.class
    }
    /// Bytes in memory and in a packed stream.
    #[must_use]
    pub fn size(self) -> usize {
        self.0.lane.size()
    }
    /// Alignment in bytes.
    #[must_use]
    pub fn align(self) -> usize {
        self.0.lane.align()
    }
    /// Bytes in the "external32" representation (MPI 5.0 §14.5.2).
    #[must_use]
    pub fn external_size(self) -> usize {
        self.0.external
    }
}

macro_rules! rows {
    ($($name:ident $lane:ident $class:ident $($external:literal)?;)*) => {
        &[$(BasicRow {
            handle: abi::$name,
            name: stringify!($name),
            lane: MachineType::$lane,
            class: BasicClass::$class,
            external: external(MachineType::$lane, &[$($external)?]),
        }),*]
    };
}

const fn external(lane: MachineType, given: &[usize]) -> usize {
    match given {
        [bytes] => *bytes,
        _ => lane.size(),
    }
}

static ROWS: &[BasicRow] = TABLE;

const TABLE: &[BasicRow] = rows! {
    MPI_AINT I64 Address;
    MPI_COUNT I64 Address;
    MPI_OFFSET I64 Address;
    MPI_PACKED U8 Opaque;
    MPI_SHORT I16 Integer;
    MPI_INT I32 Integer;
    MPI_LONG I64 Integer 4;
    MPI_LONG_LONG I64 Integer;
    MPI_UNSIGNED_SHORT U16 Integer;
    MPI_UNSIGNED U32 Integer;
    MPI_UNSIGNED_LONG U64 Integer 4;
    MPI_UNSIGNED_LONG_LONG U64 Integer;
    MPI_FLOAT F32 Floating;
    MPI_C_FLOAT_COMPLEX C32 Complex;
    MPI_CXX_FLOAT_COMPLEX C32 Complex;
    MPI_DOUBLE F64 Floating;
    MPI_C_DOUBLE_COMPLEX C64 Complex;
    MPI_CXX_DOUBLE_COMPLEX C64 Complex;
    MPI_LOGICAL I32 Logical;
    MPI_INTEGER I32 FortranInteger;
    MPI_REAL F32 Floating;
    MPI_COMPLEX C32 Complex;
    MPI_DOUBLE_PRECISION F64 Floating;
    MPI_DOUBLE_COMPLEX C64 Complex;
    MPI_CHARACTER U8 Opaque;
    MPI_LONG_DOUBLE LONG_DOUBLE Floating;
    MPI_C_LONG_DOUBLE_COMPLEX LONG_DOUBLE_COMPLEX Complex;
    MPI_CXX_LONG_DOUBLE_COMPLEX LONG_DOUBLE_COMPLEX Complex;
    MPI_C_BOOL U8 Logical;
    MPI_CXX_BOOL U8 Logical;
    MPI_WCHAR WCHAR Opaque 2;
    MPI_INT8_T I8 Integer;
    MPI_UINT8_T U8 Integer;
    MPI_CHAR CHAR Char;
    MPI_SIGNED_CHAR I8 Integer;
    MPI_UNSIGNED_CHAR U8 Integer;
    MPI_BYTE U8 Byte;
    MPI_INT16_T I16 Integer;
    MPI_UINT16_T U16 Integer;
    MPI_INT32_T I32 Integer;
    MPI_UINT32_T U32 Integer;
    MPI_INT64_T I64 Integer;
    MPI_UINT64_T U64 Integer;
    MPI_LOGICAL1 I8 Logical;
    MPI_INTEGER1 I8 FortranInteger;
    MPI_LOGICAL2 I16 Logical;
    MPI_INTEGER2 I16 FortranInteger;
    MPI_LOGICAL4 I32 Logical;
    MPI_INTEGER4 I32 FortranInteger;
    MPI_REAL4 F32 Floating;
    MPI_LOGICAL8 I64 Logical;
    MPI_INTEGER8 I64 FortranInteger;
    MPI_REAL8 F64 Floating;
    MPI_COMPLEX8 C32 Complex;
    MPI_LOGICAL16 I128 Logical;
    MPI_INTEGER16 I128 FortranInteger;
    MPI_REAL16 F128 Floating;
    MPI_COMPLEX16 C64 Complex;
    MPI_COMPLEX32 C128 Complex;
};

/// The pair types (MPI 5.0 §6.9.4): handle, name, value, index.
pub(super) static PAIRS: &[(usize, &str, usize, usize)] = &[
    (abi::MPI_FLOAT_INT, "MPI_FLOAT_INT", abi::MPI_FLOAT, abi::MPI_INT),
    (abi::MPI_DOUBLE_INT, "MPI_DOUBLE_INT", abi::MPI_DOUBLE, abi::MPI_INT),
    (abi::MPI_LONG_INT, "MPI_LONG_INT", abi::MPI_LONG, abi::MPI_INT),
    (abi::MPI_2INT, "MPI_2INT", abi::MPI_INT, abi::MPI_INT),
    (abi::MPI_SHORT_INT, "MPI_SHORT_INT", abi::MPI_SHORT, abi::MPI_INT),
    (abi::MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", abi::MPI_LONG_DOUBLE, abi::MPI_INT),
    (abi::MPI_2REAL, "MPI_2REAL", abi::MPI_REAL, abi::MPI_REAL),
    (
        abi::MPI_2DOUBLE_PRECISION,
        "MPI_2DOUBLE_PRECISION",
        abi::MPI_DOUBLE_PRECISION,
        abi::MPI_DOUBLE_PRECISION,
    ),
    (abi::MPI_2INTEGER, "MPI_2INTEGER", abi::MPI_INTEGER, abi::MPI_INTEGER),
];

/// Sizes of the predefined types whose elements lie one behind the other from displacement 0 on, by handle from
/// MPI_DATATYPE_NULL on; 0 for all other handles. For the way of a message, which must not look anything up.
pub static CONTIGUOUS_SIZES: [u8; 256] = {
    let mut sizes = [0; 256];
    let mut i = 0;
    while i < TABLE.len() {
        sizes[TABLE[i].handle - abi::MPI_DATATYPE_NULL] = TABLE[i].lane.size() as u8;
        i += 1;
    }
    // Pairs of two types of one size have no padding.
    sizes[abi::MPI_FLOAT_INT - abi::MPI_DATATYPE_NULL] = 8;
    sizes[abi::MPI_2INT - abi::MPI_DATATYPE_NULL] = 8;
    sizes[abi::MPI_2REAL - abi::MPI_DATATYPE_NULL] = 8;
    sizes[abi::MPI_2INTEGER - abi::MPI_DATATYPE_NULL] = 8;
    sizes[abi::MPI_2DOUBLE_PRECISION - abi::MPI_DATATYPE_NULL] = 16;
    sizes
};

/// Rows by handle from MPI_DATATYPE_NULL on; beyond the last row for all other handles.
static NUMBERS: [u8; 256] = {
    let mut numbers = [u8::MAX; 256];
    let mut i = 0;
    while i < TABLE.len() {
        numbers[TABLE[i].handle - abi::MPI_DATATYPE_NULL] = i as u8;
        i += 1;
    }
    numbers
};

/// Optional types that this implementation does not have: MPI_Type_size gives MPI_UNDEFINED for them.
static MISSING: &[(usize, &str)] = &[(abi::MPI_REAL2, "MPI_REAL2"), (abi::MPI_COMPLEX4, "MPI_COMPLEX4")];

/// The name of an optional type that the ABI numbers and we do not have (MPI 5.0 §3.2.2).
#[must_use]
pub fn missing_optional(handle: usize) -> Option<&'static str> {
    MISSING.iter().find(|(known, _)| *known == handle).map(|(_, name)| *name)
}
