//! Asking about the environment: versions, names, time, addresses, the ABI (MPI 5.0 §9.1, §9.6, §15.2.4, §20).

use crate::abi::*;
use crate::capi::strings;
use crate::capi::types::{MPI_Aint, MPI_Count, MPI_Info, MPI_Offset};
use crate::error::{Error, Result};
use crate::info::Info;
use crate::{export, nonnull};
use core::ffi::{c_char, c_int, c_void};
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

/// What the Fortran side of a program told about its compiler (MPI 5.0 §20.3).
struct Fortran {
    info: Option<Info>,
    booleans: Option<(Vec<u8>, Vec<u8>)>,
}

static FORTRAN: Mutex<Fortran> = Mutex::new(Fortran { info: None, booleans: None });

fn fortran() -> MutexGuard<'static, Fortran> {
    FORTRAN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of a Fortran LOGICAL of `size`, at `from`.
///
/// # Safety
/// `from` may be read for `size` bytes if `size` is one that Fortran has.
unsafe fn logical(from: *const c_void, size: c_int) -> Result<Vec<u8>> {
    let size = logical_size(size)?;
    if from.is_null() {
        return Err(Error::Arg("a logical value is NULL"));
    }
    // SAFETY: not null; the rest is the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(from.cast::<u8>(), size) }.to_vec())
}

fn logical_size(size: c_int) -> Result<usize> {
    match size {
        1 | 2 | 4 | 8 | 16 => Ok(size as usize),
        _ => Err(Error::Arg("logical_size is not the size of a Fortran LOGICAL")),
    }
}

export! {
    /// MPI 5.0 §9.1.1; legal at any time.
    fn MPI_Get_version(version: *mut c_int, subversion: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let (version, subversion) = (nonnull!(version)?, nonnull!(subversion)?);
        // SAFETY: neither is null, and both are results of this function.
        unsafe { (*version, *subversion) = (MPI_VERSION, MPI_SUBVERSION) };
        Ok(())
    }

    /// MPI 5.0 §9.1.1; legal at any time. `version` has room for MPI_MAX_LIBRARY_VERSION_STRING bytes.
    fn MPI_Get_library_version(version: *mut c_char, resultlen: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let text = library_version();
        // SAFETY: the user gives MPI_MAX_LIBRARY_VERSION_STRING bytes and a place for the length.
        unsafe { strings::give(version, MPI_MAX_LIBRARY_VERSION_STRING as usize, resultlen, text.as_bytes()) }
    }

    /// MPI 5.0 §9.1.2: the host's name; `name` has room for MPI_MAX_PROCESSOR_NAME bytes.
    fn MPI_Get_processor_name(name: *mut c_char, resultlen: *mut c_int) raises(MPI_COMM_SELF) {
        // SAFETY: the user gives MPI_MAX_PROCESSOR_NAME bytes and a place for the length.
        unsafe { strings::give(name, MPI_MAX_PROCESSOR_NAME as usize, resultlen, host_name().as_bytes()) }
    }

    /// MPI 5.0 §9.1.2: which kinds of hardware resource a communicator can be split by; this process is confined to the node.
    fn MPI_Get_hw_resource_info(hw_info: *mut MPI_Info) anytime raises(MPI_COMM_SELF) {
        let hw_info = nonnull!(hw_info)?;
        let mut info = Info::new();
        info.set("mpi_shared_memory", "true")?;
        // SAFETY: not null, and a result of this function.
        unsafe { *hw_info = super::info::hand_out(info)? };
        Ok(())
    }

    /// MPI 5.0 §9.6: seconds of a clock that all ranks share (MPI_WTIME_IS_GLOBAL). An event callback may call it.
    fn MPI_Wtime() -> f64 {
        clock(libc::clock_gettime)
    }

    /// MPI 5.0 §9.6: seconds between two ticks of that clock. An event callback may call it.
    fn MPI_Wtick() -> f64 {
        clock(libc::clock_getres)
    }

    /// MPI 5.0 §15.2.4: does nothing; profilers interpose it. C declares it variadic, which a function that looks at nothing is not asked to be.
    fn MPI_Pcontrol(_level: c_int) -> c_int {
        MPI_SUCCESS
    }

    /// MPI 5.0 §5.1.5.
    fn MPI_Get_address(location: *const c_void, address: *mut MPI_Aint) anytime raises(MPI_COMM_SELF) {
        let address = nonnull!(address)?;
        // SAFETY: not null, and a result of this function.
        unsafe { *address = location as MPI_Aint };
        Ok(())
    }

    /// MPI 5.0 §5.1.5.
    fn MPI_Aint_add(base: MPI_Aint, disp: MPI_Aint) -> MPI_Aint {
        base.wrapping_add(disp)
    }

    /// MPI 5.0 §5.1.5.
    fn MPI_Aint_diff(addr1: MPI_Aint, addr2: MPI_Aint) -> MPI_Aint {
        addr1.wrapping_sub(addr2)
    }

    /// MPI 5.0 §20.2; legal at any time.
    fn MPI_Abi_get_version(abi_major: *mut c_int, abi_minor: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let (abi_major, abi_minor) = (nonnull!(abi_major)?, nonnull!(abi_minor)?);
        // SAFETY: neither is null, and both are results of this function.
        unsafe { (*abi_major, *abi_minor) = (MPI_ABI_VERSION, MPI_ABI_SUBVERSION) };
        Ok(())
    }

    /// MPI 5.0 §20.2: sizes in bytes of the integer types that the ABI leaves open; legal at any time.
    fn MPI_Abi_get_info(info: *mut MPI_Info) anytime raises(MPI_COMM_SELF) {
        let info = nonnull!(info)?;
        let mut facts = Info::new();
        facts.set("mpi_aint_size", size_of::<MPI_Aint>().to_string())?;
        facts.set("mpi_count_size", size_of::<MPI_Count>().to_string())?;
        facts.set("mpi_offset_size", size_of::<MPI_Offset>().to_string())?;
        // SAFETY: not null, and a result of this function.
        unsafe { *info = super::info::hand_out(facts)? };
        Ok(())
    }

    /// MPI 5.0 §20.3: what `MPI_Abi_set_fortran_info` was given; MPI_INFO_NULL before. Legal at any time.
    fn MPI_Abi_get_fortran_info(info: *mut MPI_Info) anytime raises(MPI_COMM_SELF) {
        let info = nonnull!(info)?;
        let facts = fortran().info.clone();
        // SAFETY: not null, and a result of this function.
        unsafe { *info = facts.map_or(Ok(MPI_INFO_NULL), super::info::hand_out)? };
        Ok(())
    }

    /// MPI 5.0 §20.3: once a process. Legal at any time.
    fn MPI_Abi_set_fortran_info(info: MPI_Info) anytime raises(MPI_COMM_SELF) {
        let facts = super::info::hints(info)?;
        let mut fortran = fortran();
        if fortran.info.is_some() {
            return Err(Error::Code(MPI_ERR_ABI));
        }
        fortran.info = Some(facts);
        Ok(())
    }

    /// MPI 5.0 §20.3: `is_set` tells whether values of this size were set. Legal at any time.
    fn MPI_Abi_get_fortran_booleans(
        logical_size: c_int, logical_true: *mut c_void, logical_false: *mut c_void, is_set: *mut c_int
    ) anytime raises(MPI_COMM_SELF) {
        let is_set = nonnull!(is_set)?;
        let size = self::logical_size(logical_size)?;
        let known = fortran().booleans.clone().filter(|(yes, _)| yes.len() == size);
        // SAFETY: not null, and a result of this function.
        unsafe { *is_set = c_int::from(known.is_some()) };
        if let Some((yes, no)) = known {
            let (logical_true, logical_false) = (nonnull!(logical_true)?, nonnull!(logical_false)?);
            // SAFETY: neither is null; the user gives `logical_size` bytes for each.
            unsafe {
                core::ptr::copy_nonoverlapping(yes.as_ptr(), logical_true.cast(), size);
                core::ptr::copy_nonoverlapping(no.as_ptr(), logical_false.cast(), size);
            }
        }
        Ok(())
    }

    /// MPI 5.0 §20.3: once a process. Legal at any time.
    fn MPI_Abi_set_fortran_booleans(logical_size: c_int, logical_true: *mut c_void, logical_false: *mut c_void)
        anytime raises(MPI_COMM_SELF)
    {
        // SAFETY: the user passes `logical_size` bytes for each.
        let values = unsafe { (logical(logical_true, logical_size)?, logical(logical_false, logical_size)?) };
        let mut fortran = fortran();
        if fortran.booleans.is_some() {
            return Err(Error::Code(MPI_ERR_ABI));
        }
        fortran.booleans = Some(values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_and_ticks_finely() {
        // SAFETY: neither takes arguments.
        let (start, tick) = unsafe { (MPI_Wtime(), MPI_Wtick()) };
        std::thread::sleep(std::time::Duration::from_millis(2));
        // SAFETY: as above.
        let passed = unsafe { MPI_Wtime() } - start;
        assert!(passed >= 0.002, "{passed}");
        assert!(tick > 0.0 && tick < 0.01, "{tick}");
    }

    #[test]
    fn the_host_has_a_name_that_fits() {
        assert!(!host_name().is_empty() && host_name().len() < MPI_MAX_PROCESSOR_NAME as usize);
        assert!(library_version().len() < MPI_MAX_LIBRARY_VERSION_STRING as usize);
    }
}
