//! Data representations (MPI 5.0 §14.5): how data lies in a file.

use super::access::{Direction, Elements};
use crate::abi;
use crate::comm::lock;
use crate::datatype::{Basic, Constructor, Datatype};
use crate::error::{Error, Result};
use crate::sync::{Arc, Mutex};
use core::ffi::{c_int, c_void};
use std::collections::BTreeMap;

/// Converts elements between memory and file:
/// `int f(void *userbuf, MPI_Datatype, int count, void *filebuf, MPI_Offset position, void *extra_state)`.
pub type ConversionFn =
    unsafe extern "C" fn(*mut c_void, usize, c_int, *mut c_void, i64, *mut c_void) -> c_int;
/// The same with a large count.
pub type ConversionFnC =
    unsafe extern "C" fn(*mut c_void, usize, i64, *mut c_void, i64, *mut c_void) -> c_int;
/// Tells how many bytes an element takes in a file: `int f(MPI_Datatype, MPI_Aint *extent, void *extra_state)`.
pub type ExtentFn = unsafe extern "C" fn(usize, *mut isize, *mut c_void) -> c_int;

/// A conversion function of either form.
#[derive(Debug, Clone, Copy)]
pub enum Conversion {
    /// With `int` counts.
    Small(ConversionFn),
    /// With `MPI_Count` counts.
    Large(ConversionFnC),
}

/// What a program has registered for a representation. A conversion that is `None` changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Conversions {
    /// From file to memory.
    pub read: Option<Conversion>,
    /// From memory to file.
    pub write: Option<Conversion>,
    /// Bytes of predefined types in a file.
    pub extent: ExtentFn,
    /// Given to all of them.
    pub extra: *mut c_void,
}

// SAFETY: functions and an argument that the program has registered for any thread that accesses files.
unsafe impl Send for Conversions {}
// SAFETY: functions and an argument that the program has registered for any thread that accesses files.
unsafe impl Sync for Conversions {}

/// How data lies in a file.
#[derive(Debug, Clone)]
pub enum Representation {
    /// As in memory.
    Native,
    /// As in memory too: all ranks are of one kind.
    Internal,
    /// The portable one (MPI 5.0 §14.5.2).
    External32,
    /// A program's own, by its name.
    User(Arc<(String, Conversions)>),
}

static REGISTERED: Mutex<BTreeMap<String, Arc<(String, Conversions)>>> = Mutex::new(BTreeMap::new());
/// Basic elements that a conversion function is given at a time.
const MOST: usize = c_int::MAX as usize;

fn wrong(class: i32, name: &str, what: &'static str) -> Error {
    Error::Representation { class, name: name.into(), what }
}

/// Adds a representation (MPI_Register_datarep).
///
/// # Errors
/// [`Error::Representation`] if the name is taken; [`Error::Arg`] if it is empty or too long.
pub fn register(name: &[u8], conversions: Conversions) -> Result<()> {
    let name = core::str::from_utf8(name)
        .map_err(|_| Error::Arg("the name of a data representation is no UTF-8"))?;
    if name.is_empty() || name.len() >= abi::MPI_MAX_DATAREP_STRING as usize {
        return Err(Error::Arg(
            "the name of a data representation is empty or longer than MPI_MAX_DATAREP_STRING",
        ));
    }
    let mut registered = lock(&REGISTERED);
    if ["native", "internal", "external32"].contains(&name) || registered.contains_key(name) {
        return Err(wrong(abi::MPI_ERR_DUP_DATAREP, name, "it is there already"));
    }
    registered.insert(name.into(), Arc::new((name.into(), conversions)));
    Ok(())
}

impl Representation {
    /// The representation of that name.
    ///
    /// # Errors
    /// [`Error::Representation`] if there is none.
    pub fn named(name: &[u8]) -> Result<Self> {
        let name = String::from_utf8_lossy(name);
        Ok(match &*name {
            "native" => Self::Native,
            "internal" => Self::Internal,
            "external32" => Self::External32,
            other => Self::User(lock(&REGISTERED).get(other).cloned().ok_or_else(|| {
                let what = "there is none of this name: native, internal, external32, or one of MPI_Register_datarep";
                wrong(abi::MPI_ERR_UNSUPPORTED_DATAREP, other, what)
            })?),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Native => "native",
            Self::Internal => "internal",
            Self::External32 => "external32",
            Self::User(user) => &user.0,
        }
    }

    /// Whether bytes of the file differ from those in memory in this direction.
    pub(super) fn converts(&self, direction: Direction) -> bool {
        match self {
            Self::Native | Self::Internal => false,
            Self::External32 => true,
            Self::User(user) => match direction {
                Direction::Read => user.1.read.is_some(),
                Direction::Write => user.1.write.is_some(),
            },
        }
    }

    /// Whether only the thread that the program calls from may convert:
    /// its functions may look at handles that it frees later.
    pub(super) fn is_users(&self) -> bool {
        matches!(self, Self::User(_))
    }

    /// Bytes of a basic type in a file.
    fn basic_bytes(&self, basic: Basic) -> Result<usize> {
        match self {
            Self::Native | Self::Internal => Ok(basic.size()),
            Self::External32 => Ok(basic.external_size()),
            Self::User(user) => {
                let mut extent = 0;
                // SAFETY: the program registered the function for this use: it takes a predefined type, the place of a
                // number, and its state.
                let code = unsafe { (user.1.extent)(basic.handle(), &raw mut extent, user.1.extra) };
                let bytes = usize::try_from(extent).ok().filter(|_| code == abi::MPI_SUCCESS);
                bytes.ok_or_else(|| {
                    wrong(
                        abi::MPI_ERR_CONVERSION,
                        &user.0,
                        "its extent function has failed, or gave a negative extent",
                    )
                })
            }
        }
    }

    /// Bytes of one element in a file.
    fn element_bytes(&self, datatype: &Datatype) -> Result<usize> {
        let (mut sum, mut failed) = (Some(0_usize), Ok(()));
        datatype.for_each_basic(|basic, elements| match self.basic_bytes(basic) {
            Ok(bytes) => sum = sum.and_then(|sum| sum.checked_add(bytes.checked_mul(elements)?)),
            Err(error) => failed = Err(error),
        });
        failed?;
        sum.ok_or(Error::CountTooLarge(1))
    }

    /// Bytes of `count` elements in a file.
    ///
    /// # Errors
    /// [`Error::CountTooLarge`] if that is larger than the address space; those of a program's functions.
    pub fn file_bytes(&self, datatype: &Datatype, count: usize) -> Result<usize> {
        let native = datatype.bytes_of(count)?;
        match self {
            Self::Native | Self::Internal => Ok(native),
            Self::External32 => datatype.external_size(count),
            Self::User(_) => {
                let bytes = self.element_bytes(datatype)?.checked_mul(count);
                bytes.filter(|bytes| isize::try_from(*bytes).is_ok()).ok_or(Error::CountTooLarge(count))
            }
        }
    }

    /// A type as it lies in a file: displacements in units of a type grow and shrink with it, those in bytes stay
    /// (MPI 5.0 §14.5). There all data is byte aligned, so that neither a pair of types (MPI_DOUBLE_INT) nor a
    /// structure has padding that memory has for the sake of alignment (§14.5.2, §14.5.3).
    ///
    /// # Errors
    /// Those of a program's functions and of the constructors.
    pub fn file_layout(&self, datatype: &Datatype) -> Result<Datatype> {
        match self {
            Self::Native | Self::Internal => Ok(datatype.clone()),
            Self::External32 | Self::User(_) => self.rebuilt(datatype),
        }
    }

    fn rebuilt(&self, datatype: &Datatype) -> Result<Datatype> {
        use Constructor as C;
        let parts = || datatype.parts().iter().map(|part| self.rebuilt(part)).collect::<Result<Vec<_>>>();
        let part = || {
            let part = datatype.parts().first().ok_or(Error::Type("a derived type has no part"))?;
            self.rebuilt(part)
        };
        match datatype.made() {
            C::Named(_) | C::F90Real { .. } | C::F90Complex { .. } | C::F90Integer { .. } => {
                let byte = Datatype::predefined(abi::MPI_BYTE).ok_or(Error::Type("there is no MPI_BYTE"))?;
                Datatype::contiguous(self.element_bytes(datatype)?, &byte)
            }
            C::Dup => part(),
            C::Contiguous { count } => Datatype::contiguous(*count, &part()?),
            C::Vector { count, blocklength, stride } => {
                Datatype::vector(*count, *blocklength, *stride, &part()?)
            }
            C::Hvector { count, blocklength, stride } => {
                Datatype::hvector(*count, *blocklength, *stride, &part()?)
            }
            C::Indexed { lengths, displacements } => {
                Datatype::indexed(&**lengths, &**displacements, &part()?)
            }
            C::Hindexed { lengths, displacements } => {
                Datatype::hindexed(&**lengths, &**displacements, &part()?)
            }
            C::IndexedBlock { blocklength, displacements } => {
                Datatype::indexed_block(*blocklength, &**displacements, &part()?)
            }
            C::HindexedBlock { blocklength, displacements } => {
                Datatype::hindexed_block(*blocklength, &**displacements, &part()?)
            }
            C::Struct { lengths, displacements } => {
                Datatype::structure(&**lengths, &**displacements, parts()?)
            }
            C::Subarray { sizes, subsizes, starts, order } => {
                Datatype::subarray(sizes, subsizes, starts, *order, &part()?)
            }
            C::Darray { size, rank, dims, order } => Datatype::darray(*size, *rank, dims, *order, &part()?),
            C::Resized { lb, extent } => Datatype::resized(&part()?, *lb, *extent),
        }
    }

    /// Writes elements as they lie in a file to `to`, which has [`file_bytes`](Self::file_bytes) bytes.
    pub(super) fn encode(&self, elements: &Elements, to: &mut [u8]) -> Result<()> {
        match self {
            Self::Native | Self::Internal => elements.pack(0, to),
            Self::External32 => {
                // SAFETY: the elements can be read (elements rule), and `to` is memory of this library's.
                unsafe { elements.datatype().pack_external(elements.count(), elements.addr(), to) }?;
            }
            Self::User(user) => {
                let items = self.items(elements, usize::MAX, to.len())?.count;
                self.convert(user, user.1.write, elements, items, to)?;
            }
        }
        Ok(())
    }

    /// Puts what was read where the elements lie: whole basic elements. Gives their bytes in memory.
    pub(super) fn decode(&self, elements: &Elements, from: &mut [u8]) -> Result<u64> {
        match self {
            Self::Native | Self::Internal => elements.unpack(0, from),
            Self::External32 => {
                // SAFETY: the elements can be written (elements rule), and `from` is memory of this library's.
                unsafe { elements.datatype().unpack_external_start(elements.count(), elements.addr(), from) };
            }
            Self::User(user) => {
                let items = self.items(elements, usize::MAX, from.len())?.count;
                self.convert(user, user.1.read, elements, items, from)?;
            }
        }
        Ok(self.native_bytes(elements, from.len() as u64))
    }

    /// The bytes in memory of the basic elements that are whole in so many bytes of the file.
    pub(super) fn native_bytes(&self, elements: &Elements, bytes: u64) -> u64 {
        match self {
            Self::Native | Self::Internal => bytes,
            Self::External32 => elements.datatype().external_start(elements.count(), bytes as usize) as u64,
            Self::User(_) => {
                self.items(elements, usize::MAX, bytes as usize).map_or(0, |items| items.native as u64)
            }
        }
    }

    /// The first basic elements of `elements`: at most so many, and no more than fit into `room` bytes of the file.
    fn items(&self, elements: &Elements, most: usize, room: usize) -> Result<Items> {
        let (datatype, mut each) = (elements.datatype(), 0);
        datatype.for_each_basic(|_, items| each += items);
        let (file, fit) = (self.element_bytes(datatype)?, |have: usize, one: usize| have.checked_div(one));
        let whole =
            [fit(most, each), fit(room, file)].into_iter().flatten().fold(elements.count(), usize::min);
        let mut all = Items { count: whole * each, file: whole * file, native: whole * datatype.size() };
        let (mut going_on, mut failed) = (whole < elements.count(), Ok(()));
        datatype.for_each_basic(|basic, items| match self.basic_bytes(basic) {
            Ok(bytes) if going_on => {
                let here = fit(room - all.file, bytes).unwrap_or(items).min(most - all.count).min(items);
                all.count += here;
                all.file += here * bytes;
                all.native += here * basic.size();
                going_on = here == items;
            }
            Ok(_) => {}
            Err(error) => failed = Err(error),
        });
        failed.map(|()| all)
    }

    /// Has a program's function convert the first `items` basic elements of `elements`, which lie one behind the other
    /// in `file`.
    fn convert(
        &self,
        (name, conversions): &(String, Conversions),
        by: Option<Conversion>,
        elements: &Elements,
        items: usize,
        file: &mut [u8],
    ) -> Result<()> {
        let (memory, extra, handle) =
            (elements.addr().cast::<c_void>(), conversions.extra, elements.handle());
        let mut done = 0;
        while done < items {
            let now = (items - done).min(MOST);
            let before = self.items(elements, done, file.len())?.file;
            let to = file[before..].as_mut_ptr().cast::<c_void>();
            // SAFETY: the program registered the function for this use: it takes its elements, their type, how many
            // basic elements, as many bytes of the file's form as its extent function has said, the number of the first
            // of them, and its state (MPI 5.0 §14.5.3).
            let code = unsafe {
                match by {
                    Some(Conversion::Small(f)) => f(memory, handle, now as c_int, to, done as i64, extra),
                    Some(Conversion::Large(f)) => f(memory, handle, now as i64, to, done as i64, extra),
                    None => abi::MPI_SUCCESS,
                }
            };
            if code != abi::MPI_SUCCESS {
                return Err(wrong(abi::MPI_ERR_CONVERSION, name, "its conversion function has failed"));
            }
            done += now;
        }
        Ok(())
    }
}

/// Basic elements at the beginning of others.
struct Items {
    /// How many.
    count: usize,
    /// Their bytes in the file.
    file: usize,
    /// Their bytes in memory.
    native: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn extent(handle: usize, bytes: *mut isize, _: *mut c_void) -> c_int {
        let of_type = if handle == abi::MPI_SHORT { 3 } else { 5 };
        // SAFETY: whoever asks for an extent gives the place of a number.
        unsafe { *bytes = of_type };
        abi::MPI_SUCCESS
    }

    #[test]
    fn items_are_the_basic_elements_that_are_whole() {
        let conversions = Conversions { read: None, write: None, extent, extra: core::ptr::null_mut() };
        let user = Representation::User(Arc::new(("pairs".into(), conversions)));
        let part = |handle| Datatype::predefined(handle).expect("a predefined type");
        let parts = [part(abi::MPI_SHORT), part(abi::MPI_INT)];
        let pair = Datatype::structure(&[1; 2], &[0, 4], &parts).expect("a type");
        // SAFETY: no element is accessed.
        let elements = unsafe { Elements::new(core::ptr::null_mut(), 4, pair, 0) };
        for (most, room, wanted) in [
            (usize::MAX, usize::MAX, (8, 32, 24)),
            (usize::MAX, 32, (8, 32, 24)),
            (usize::MAX, 31, (7, 27, 20)),
            (usize::MAX, 14, (3, 11, 8)),
            (usize::MAX, 2, (0, 0, 0)),
            (3, usize::MAX, (3, 11, 8)),
            (0, 32, (0, 0, 0)),
        ] {
            let items = user.items(&elements, most, room).expect("extents");
            assert_eq!((items.count, items.file, items.native), wanted, "{most} items in {room} bytes");
        }
    }
}
