//! Control variables (§14.3.6). The table is [`crate::variables::table`].
//!
//! A choice is an MPI_INT with an enumeration, a number an MPI_UNSIGNED_LONG, a text a string of MPI_CHAR. All are bound to no
//! object.

use super::enums::handle_of;
use super::{Outcome, give, name, offer, put, row, tool, verbosity};
use crate::abi::*;
use crate::capi::overrides;
use crate::handles::HandleTable;
use crate::limits::TOOL_HANDLES;
use crate::limits::VARIABLE_TEXT;
use crate::variables::table::{Domain, VariableScope};
use crate::variables::{Refusal, VARIABLES, Variable};
use core::ffi::{c_char, c_int, c_ulong, c_void};
use std::sync::Arc;

static HANDLES: HandleTable<Handle> = HandleTable::new();

/// What a handle names.
struct Handle(&'static Variable);

/// Forgets all handles.
pub(super) fn end() {
    for handle in HANDLES.handles() {
        HANDLES.remove(handle);
    }
}

fn find(handle: usize) -> Outcome<&'static Variable> {
    HANDLES.get(handle).map(|handle| handle.0).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

fn datatype(kind: Domain) -> usize {
    match kind {
        Domain::Choice(_) => MPI_INT,
        Domain::Number(_) | Domain::PowerOfTwo(..) => MPI_UNSIGNED_LONG,
        Domain::Text => MPI_CHAR,
    }
}

fn scope(scope: VariableScope) -> c_int {
    match scope {
        VariableScope::Constant => MPI_T_SCOPE_CONSTANT,
        VariableScope::Readonly => MPI_T_SCOPE_READONLY,
        VariableScope::Local => MPI_T_SCOPE_LOCAL,
        VariableScope::AllEqual => MPI_T_SCOPE_ALL_EQ,
    }
}

/// Writes the value in force to `buf`.
///
/// # Safety
/// `buf` has room for the variable's count of its datatype.
unsafe fn read(variable: &Variable, buf: *mut c_void) -> Outcome {
    let write = |config: &crate::variables::Config| match variable.kind {
        // SAFETY: the caller's promise.
        Domain::Choice(_) => unsafe { buf.cast::<c_int>().write(config.number(variable.id) as c_int) },
        // SAFETY: as above.
        Domain::Number(_) | Domain::PowerOfTwo(..) => unsafe {
            buf.cast::<c_ulong>().write(config.number(variable.id));
        },
        // SAFETY: as above; the count is VARIABLE_TEXT.
        Domain::Text => unsafe {
            crate::capi::strings::write(buf.cast(), VARIABLE_TEXT, config.text(variable.id).as_bytes());
        },
    };
    overrides::with_config(write).ok_or(MPI_T_ERR_INVALID)
}

/// The number in `buf`; 0 of a text, which nobody can change.
///
/// # Safety
/// `buf` holds the variable's count of its datatype.
unsafe fn number(variable: &Variable, buf: *const c_void) -> Outcome<u64> {
    match variable.kind {
        Domain::Choice(_) => {
            // SAFETY: the caller's promise.
            let value = unsafe { buf.cast::<c_int>().read() };
            u64::try_from(value).map_err(|_| MPI_T_ERR_INVALID)
        }
        // SAFETY: the caller's promise.
        Domain::Number(_) | Domain::PowerOfTwo(..) => Ok(unsafe { buf.cast::<c_ulong>().read() }),
        Domain::Text => Ok(0),
    }
}

tool! {
    /// §14.3.6.
    fn MPI_T_cvar_get_num(num_cvar: *mut c_int) {
        // SAFETY: an output argument.
        unsafe { put(num_cvar, VARIABLES.len() as c_int) }
    }

    /// §14.3.6.
    fn MPI_T_cvar_get_info(
        cvar_index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity_: *mut c_int,
        datatype_: *mut usize, enumtype: *mut usize, desc: *mut c_char, desc_len: *mut c_int,
        bind: *mut c_int, scope_: *mut c_int,
    ) {
        let variable = row(&VARIABLES, cvar_index)?;
        // SAFETY: output arguments.
        unsafe {
            give(variable.name, name, name_len);
            offer(verbosity_, verbosity(variable.verbosity));
            offer(datatype_, datatype(variable.kind));
            offer(enumtype, handle_of(variable.enumeration()));
            give(&variable.description(), desc, desc_len);
            offer(bind, MPI_T_BIND_NO_OBJECT);
            offer(scope_, scope(variable.scope));
        }
        Ok(())
    }

    /// §14.3.6.
    fn MPI_T_cvar_get_index(name_: *const c_char, cvar_index: *mut c_int) {
        // SAFETY: a string argument.
        let wanted = unsafe { name(name_) }?;
        let variable = Variable::named(wanted).ok_or(MPI_T_ERR_INVALID_NAME)?;
        // SAFETY: an output argument.
        unsafe { put(cvar_index, variable.id as c_int) }
    }

    /// §14.3.6. The object is ignored: no variable is bound to one.
    fn MPI_T_cvar_handle_alloc(
        cvar_index: c_int, _obj_handle: *mut c_void, handle: *mut usize, count: *mut c_int,
    ) {
        let variable = row(&VARIABLES, cvar_index)?;
        if handle.is_null() || count.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        let made = (HANDLES.len() < TOOL_HANDLES).then(|| HANDLES.insert(Arc::new(Handle(variable)))).flatten();
        let made = made.ok_or(MPI_T_ERR_OUT_OF_HANDLES)?;
        // SAFETY: output arguments.
        unsafe {
            put(handle, made)?;
            put(count, if matches!(variable.kind, Domain::Text) { VARIABLE_TEXT as c_int } else { 1 })
        }
    }

    /// §14.3.6.
    fn MPI_T_cvar_handle_free(handle: *mut usize) {
        if handle.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        // SAFETY: not null; an argument that is read and written.
        HANDLES.remove(unsafe { handle.read() }).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
        // SAFETY: as above.
        unsafe { put(handle, MPI_T_CVAR_HANDLE_NULL) }
    }

    /// §14.3.6. Before MPI_Init: what would be in force if it were called now.
    fn MPI_T_cvar_read(handle: usize, buf: *mut c_void) {
        let variable = find(handle)?;
        if buf.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        // SAFETY: not null; the caller gives room for what MPI_T_cvar_handle_alloc said.
        unsafe { read(variable, buf) }
    }

    /// §14.3.6.
    fn MPI_T_cvar_write(handle: usize, buf: *const c_void) {
        let variable = find(handle)?;
        if buf.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        // SAFETY: not null; the caller gives what MPI_T_cvar_handle_alloc said.
        let number = unsafe { number(variable, buf) };
        overrides::change(variable.id, number?).map_err(|refusal| match refusal {
            Refusal::Value => MPI_T_ERR_INVALID,
            Refusal::NotNow => MPI_T_ERR_CVAR_SET_NOT_NOW,
            Refusal::Never => MPI_T_ERR_CVAR_SET_NEVER,
        })
    }
}
