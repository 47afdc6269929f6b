//! Asking about the environment: versions, names, time, addresses, the ABI (MPI 5.0 §9.1, §9.6, §15.2.4, §20).

use crate::abi::*;
use crate::arguments::Array;
use crate::error::{Error, Result};
use crate::info::Info;
use crate::types::{MPI_Aint, MPI_Count, MPI_Info, MPI_Offset};
use core::ffi::{c_int, c_void};
use core::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The name of this machine, without its domain if the system gives none.
#[must_use]
pub fn host_name() -> String {
    let mut name = [0u8; MPI_MAX_PROCESSOR_NAME as usize];
    // SAFETY: the last byte is not offered, so that the result ends with a zero whatever is cut.
    let failed = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0;
    let end = name.iter().position(|&b| b == 0).unwrap_or(0);
    if failed || end == 0 {
        "localhost".to_owned()
    } else {
        String::from_utf8_lossy(&name[..end]).into_owned()
    }
}

fn library_version() -> String {
    format!(
        "perusal {} (MPI {MPI_VERSION}.{MPI_SUBVERSION}, ABI {MPI_ABI_VERSION}.{MPI_ABI_SUBVERSION}, {} {}, PERUSE 2.0{})",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        if cfg!(feature = "peruse") { "" } else { " without events" },
    )
}

fn clock(read: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: CLOCK_MONOTONIC is there on every Linux, and `time` is ours to be written.
    unsafe { read(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// What the Fortran side of a program said about its compiler (MPI 5.0 §20.3).
struct Fortran {
    info: Option<Info>,
    booleans: Option<(Vec<u8>, Vec<u8>)>,
}

static FORTRAN: Mutex<Fortran> = Mutex::new(Fortran { info: None, booleans: None });

fn fortran() -> MutexGuard<'static, Fortran> {
    FORTRAN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A Fortran LOGICAL.
pub struct Logical<'a> {
    /// NULL, or valid for reads and writes of `size` bytes (argument rule 1).
    at: *mut u8,
    size: usize,
    call: PhantomData<&'a mut u8>,
}

impl<'a> Array<'a, *mut c_void, c_int> for Logical<'a> {
    unsafe fn of(from: *mut c_void, size: c_int) -> Result<Self> {
        match size {
            1 | 2 | 4 | 8 | 16 => Ok(Self { at: from.cast(), size: size as usize, call: PhantomData }),
            _ => Err(Error::Arg("logical_size is not the size of a Fortran LOGICAL")),
        }
    }
}

impl Logical<'_> {
    fn there(&self) -> Result<()> {
        if self.at.is_null() { Err(Error::Arg("a logical value is NULL")) } else { Ok(()) }
    }

    fn get(&self) -> Result<Vec<u8>> {
        self.there()?;
        // SAFETY: argument rule 1: `at` is not NULL, so a value of `size` bytes lies there.
        Ok(unsafe { core::slice::from_raw_parts(self.at, self.size) }.to_vec())
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        self.there()?;
        // SAFETY: argument rule 1: `at` is not NULL, so `size` bytes can be written there, and no more are.
        unsafe { self.at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len().min(self.size)) };
        Ok(())
    }
}

/// MPI_Get_version.
pub fn version() -> Result<(c_int, c_int)> {
    Ok((MPI_VERSION, MPI_SUBVERSION))
}

/// MPI_Get_library_version.
pub fn library() -> Result<String> {
    Ok(library_version())
}

/// MPI_Get_processor_name: the host's name.
pub fn processor() -> Result<String> {
    Ok(host_name())
}

/// MPI_Get_hw_resource_info.
pub fn hardware() -> Result<Info> {
    super::split_type::resources()
}

/// MPI_Wtime: seconds of a clock that all ranks share (MPI_WTIME_IS_GLOBAL). An event callback may call it.
pub fn time() -> f64 {
    clock(libc::clock_gettime)
}

/// MPI_Wtick: seconds between two ticks of that clock. An event callback may call it.
pub fn tick() -> f64 {
    clock(libc::clock_getres)
}

/// MPI_Pcontrol: does nothing; profilers interpose it. C declares it variadic,
/// which a function that reads no argument need not be.
pub fn pcontrol() -> c_int {
    MPI_SUCCESS
}

/// MPI_Get_address.
pub fn address(of: *const c_void) -> Result<MPI_Aint> {
    Ok(of as MPI_Aint)
}

/// MPI_Aint_add.
pub fn add(base: MPI_Aint, by: MPI_Aint) -> MPI_Aint {
    base.wrapping_add(by)
}

/// MPI_Aint_diff.
pub fn difference(a: MPI_Aint, b: MPI_Aint) -> MPI_Aint {
    a.wrapping_sub(b)
}

/// MPI_Abi_get_version.
pub fn abi_version() -> Result<(c_int, c_int)> {
    Ok((MPI_ABI_VERSION, MPI_ABI_SUBVERSION))
}

/// MPI_Abi_get_info: sizes in bytes of the integer types that the ABI leaves open.
pub fn abi_info() -> Result<Info> {
    let mut facts = Info::new();
    facts.set("mpi_aint_size", size_of::<MPI_Aint>().to_string())?;
    facts.set("mpi_count_size", size_of::<MPI_Count>().to_string())?;
    facts.set("mpi_offset_size", size_of::<MPI_Offset>().to_string())?;
    Ok(facts)
}

/// MPI_Abi_get_fortran_info: what `MPI_Abi_set_fortran_info` was given; MPI_INFO_NULL before.
pub fn fortran_info() -> Result<MPI_Info> {
    let facts = fortran().info.clone();
    facts.map_or(Ok(MPI_INFO_NULL), super::info::hand_out)
}

/// MPI_Abi_set_fortran_info: once a process.
pub fn set_fortran_info(facts: Info) -> Result<()> {
    let mut fortran = fortran();
    if fortran.info.is_some() {
        return Err(Error::Code(MPI_ERR_ABI));
    }
    fortran.info = Some(facts);
    Ok(())
}

/// MPI_Abi_get_fortran_booleans: whether values of this size were set, and which.
pub fn fortran_booleans(yes: Logical<'_>, no: Logical<'_>) -> Result<bool> {
    yes.there()?;
    no.there()?;
    let Some(known) = fortran().booleans.clone().filter(|known| known.0.len() == yes.size) else {
        return Ok(false);
    };
    yes.set(&known.0)?;
    no.set(&known.1)?;
    Ok(true)
}

/// MPI_Abi_set_fortran_booleans: once a process.
pub fn set_fortran_booleans(yes: Logical<'_>, no: Logical<'_>) -> Result<()> {
    let values = (yes.get()?, no.get()?);
    let mut fortran = fortran();
    if fortran.booleans.is_some() {
        return Err(Error::Code(MPI_ERR_ABI));
    }
    fortran.booleans = Some(values);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_and_ticks_finely() {
        let (start, tick) = (time(), tick());
        std::thread::sleep(std::time::Duration::from_millis(2));
        let passed = time() - start;
        assert!(passed >= 0.002, "{passed}");
        assert!(tick > 0.0 && tick < 0.01, "{tick}");
    }

    #[test]
    fn the_host_has_a_name_that_fits() {
        assert!(!host_name().is_empty() && host_name().len() < MPI_MAX_PROCESSOR_NAME as usize);
        assert!(library_version().len() < MPI_MAX_LIBRARY_VERSION_STRING as usize);
    }
}
