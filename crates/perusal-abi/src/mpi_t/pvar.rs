//! Performance variables (§14.3.7). The table is [`crate::tool::pvar`].
//!
//! States are MPI_INT with an enumeration, times and shares MPI_DOUBLE, everything else MPI_UNSIGNED_LONG_LONG. A count is of one
//! element always.

use super::enums::handle_of;
use super::pvar_state::{Value, with};
use super::{Outcome, give, name, offer, put, row, tool, verbosity};
use crate::abi::*;
use crate::capi::comms;
use crate::tool::pvar::{Class, PVARS, Pvar, Source};
use core::ffi::{c_char, c_int, c_void};

fn class(class: Class) -> c_int {
    match class {
        Class::State => MPI_T_PVAR_CLASS_STATE,
        Class::Level => MPI_T_PVAR_CLASS_LEVEL,
        Class::Size => MPI_T_PVAR_CLASS_SIZE,
        Class::Percentage => MPI_T_PVAR_CLASS_PERCENTAGE,
        Class::HighWatermark => MPI_T_PVAR_CLASS_HIGHWATERMARK,
        Class::LowWatermark => MPI_T_PVAR_CLASS_LOWWATERMARK,
        Class::Counter => MPI_T_PVAR_CLASS_COUNTER,
        Class::Aggregate => MPI_T_PVAR_CLASS_AGGREGATE,
        Class::Timer => MPI_T_PVAR_CLASS_TIMER,
        Class::Generic => MPI_T_PVAR_CLASS_GENERIC,
    }
}

fn datatype(pvar: &Pvar) -> usize {
    match pvar.source {
        Source::Int(_) => MPI_INT,
        _ if pvar.is_real() => MPI_DOUBLE,
        _ => MPI_UNSIGNED_LONG_LONG,
    }
}

/// Writes a value to the user's buffer.
///
/// # Safety
/// `buf` has room for one element of the variable's datatype.
unsafe fn deliver(value: Value, buf: *mut c_void) {
    // SAFETY: the caller's promise, for each.
    unsafe {
        match value {
            Value::Int(int) => buf.cast::<c_int>().write(int),
            Value::Number(number) => buf.cast::<u64>().write(number),
            Value::Real(real) => buf.cast::<f64>().write(real),
        }
    }
}

/// The value in the user's buffer.
///
/// # Safety
/// `buf` holds one element of the variable's datatype.
unsafe fn accept(pvar: &Pvar, buf: *const c_void) -> Outcome<Value> {
    if !pvar.is_real() {
        // SAFETY: the caller's promise. An MPI_INT is never writable.
        return Ok(Value::Number(unsafe { buf.cast::<u64>().read() }));
    }
    // SAFETY: as above.
    let real = unsafe { buf.cast::<f64>().read() };
    if real.is_finite() && real >= 0.0 { Ok(Value::Real(real)) } else { Err(MPI_T_ERR_INVALID) }
}

/// Delivers a value that was read, or says that there is no buffer.
///
/// # Safety
/// As for [`deliver`], or `buf` is NULL.
unsafe fn read(buf: *mut c_void, get: impl FnOnce() -> Outcome<Value>) -> Outcome {
    if buf.is_null() {
        return Err(MPI_T_ERR_INVALID);
    }
    let value = get()?;
    // SAFETY: not null, and the caller's promise.
    unsafe { deliver(value, buf) };
    Ok(())
}

/// The communicator whose handle lies at `object`, if the variable is bound to one.
///
/// # Safety
/// `object` is NULL or leads to a handle.
unsafe fn bound_to(pvar: &Pvar, object: *const c_void) -> Outcome<usize> {
    if !pvar.is_of_comm() {
        return Ok(0);
    }
    if object.is_null() {
        return Err(MPI_T_ERR_INVALID);
    }
    // SAFETY: not null, so the caller's promise.
    let comm = unsafe { object.cast::<usize>().read() };
    comms::get(comm).map(|_| comm).map_err(|_| MPI_T_ERR_INVALID)
}

tool! {
    /// §14.3.7.
    fn MPI_T_pvar_get_num(num_pvar: *mut c_int) {
        // SAFETY: an output argument.
        unsafe { put(num_pvar, PVARS.len() as c_int) }
    }

    /// §14.3.7.
    fn MPI_T_pvar_get_info(
        pvar_index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity_: *mut c_int,
        var_class: *mut c_int, datatype_: *mut usize, enumtype: *mut usize, desc: *mut c_char,
        desc_len: *mut c_int, bind: *mut c_int, readonly: *mut c_int, continuous: *mut c_int,
        atomic: *mut c_int,
    ) {
        let pvar = row(PVARS, pvar_index)?;
        // SAFETY: output arguments.
        unsafe {
            give(pvar.name, name, name_len);
            offer(verbosity_, verbosity(pvar.verbosity));
            offer(var_class, class(pvar.class));
            offer(datatype_, datatype(pvar));
            offer(enumtype, handle_of(pvar.enumeration));
            give(pvar.what, desc, desc_len);
            offer(bind, if pvar.is_of_comm() { MPI_T_BIND_MPI_COMM } else { MPI_T_BIND_NO_OBJECT });
            offer(readonly, c_int::from(pvar.is_readonly()));
            offer(continuous, c_int::from(pvar.is_continuous()));
            offer(atomic, c_int::from(pvar.is_atomic()));
        }
        Ok(())
    }

    /// §14.3.7.
    fn MPI_T_pvar_get_index(name_: *const c_char, var_class: c_int, pvar_index: *mut c_int) {
        // SAFETY: a string argument.
        let wanted = unsafe { name(name_) }?;
        let index = PVARS.iter().position(|pvar| pvar.name == wanted && class(pvar.class) == var_class);
        // SAFETY: an output argument.
        unsafe { put(pvar_index, index.ok_or(MPI_T_ERR_INVALID_NAME)? as c_int) }
    }

    /// §14.3.7.
    fn MPI_T_pvar_session_create(session: *mut usize) {
        if session.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        let made = with(|state| state.open())?;
        // SAFETY: an output argument.
        unsafe { put(session, made) }
    }

    /// §14.3.7. Its handles go with it.
    fn MPI_T_pvar_session_free(session: *mut usize) {
        if session.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        // SAFETY: not null; an argument that is read and written.
        let named = unsafe { session.read() };
        with(|state| state.close(named))?;
        // SAFETY: as above.
        unsafe { put(session, MPI_T_PVAR_SESSION_NULL) }
    }

    /// §14.3.7.
    fn MPI_T_pvar_handle_alloc(
        session: usize, pvar_index: c_int, obj_handle: *mut c_void, handle: *mut usize, count: *mut c_int,
    ) {
        with(|state| state.check(session))?;
        let pvar = row(PVARS, pvar_index)?;
        if handle.is_null() || count.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        // SAFETY: the caller passes the address of a handle of the kind that MPI_T_pvar_get_info says.
        let comm = unsafe { bound_to(pvar, obj_handle) }?;
        let made = with(|state| state.bind(session, pvar, comm))?;
        // SAFETY: output arguments.
        unsafe {
            put(handle, made)?;
            put(count, 1)
        }
    }

    /// §14.3.7.
    fn MPI_T_pvar_handle_free(session: usize, handle: *mut usize) {
        if handle.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        // SAFETY: not null; an argument that is read and written.
        let named = unsafe { handle.read() };
        with(|state| state.free(session, named))?;
        // SAFETY: as above.
        unsafe { put(handle, MPI_T_PVAR_HANDLE_NULL) }
    }

    /// §14.3.7. One that is started already stays so.
    fn MPI_T_pvar_start(session: usize, handle: usize) {
        with(|state| state.run(session, handle, true))
    }

    /// §14.3.7. One that is stopped already stays so.
    fn MPI_T_pvar_stop(session: usize, handle: usize) {
        with(|state| state.run(session, handle, false))
    }

    /// §14.3.7. Before MPI_Init nothing has been counted.
    fn MPI_T_pvar_read(session: usize, handle: usize, buf: *mut c_void) {
        // SAFETY: the caller gives room for what MPI_T_pvar_handle_alloc said.
        unsafe { read(buf, || with(|state| state.read(session, handle))) }
    }

    /// §14.3.7.
    fn MPI_T_pvar_write(session: usize, handle: usize, buf: *const c_void) {
        let pvar = with(|state| state.writable(session, handle))?;
        if buf.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        // SAFETY: not null; the caller gives what MPI_T_pvar_handle_alloc said.
        let value = unsafe { accept(pvar, buf) }?;
        with(|state| state.write(session, handle, Some(value)))
    }

    /// §14.3.7.
    fn MPI_T_pvar_reset(session: usize, handle: usize) {
        with(|state| match handle {
            MPI_T_PVAR_ALL_HANDLES => state.reset_all(session),
            _ => state.write(session, handle, None),
        })
    }

    /// §14.3.7.
    fn MPI_T_pvar_readreset(session: usize, handle: usize, buf: *mut c_void) {
        // SAFETY: the caller gives room for what MPI_T_pvar_handle_alloc said.
        unsafe { read(buf, || with(|state| state.read_and_reset(session, handle))) }
    }
}
