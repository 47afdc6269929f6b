//! Control variables (MPI 5.0 §15.3.6). The table is [`crate::variables::table`].
//!
//! A choice is an MPI_INT with an enumeration, a number an MPI_UNSIGNED_LONG, a text a string of MPI_CHAR. All are
//! bound to no object.

use super::enums::handle_of;
use super::{Outcome, TextPlace, ValueAt, row};
use crate::abi::*;
use crate::arguments::{InOut, Out, offer};
use crate::handles::{HandleKind, HandleTable};
use crate::limits::TOOL_HANDLES;
use crate::limits::VARIABLE_TEXT;
use crate::overrides;
use crate::variables::{Domain, VariableScope};
use crate::variables::{Refusal, VARIABLES, Variable};
use core::ffi::{c_int, c_ulong};
use std::sync::Arc;

static HANDLES: HandleTable<CvarHandle> = HandleTable::new(HandleKind::Cvar);

/// What a handle names.
struct CvarHandle(&'static Variable);

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

/// MPI_T_cvar_get_num.
pub fn number() -> Outcome<usize> {
    Ok(VARIABLES.len())
}

/// MPI_T_cvar_get_info.
pub fn info(
    index: c_int,
    name: TextPlace<'_>,
    verbosity: Option<Out<'_, c_int>>,
    datatype: Option<Out<'_, usize>>,
    enumeration: Option<Out<'_, usize>>,
    description: TextPlace<'_>,
    bind: Option<Out<'_, c_int>>,
    scope: Option<Out<'_, c_int>>,
) -> Outcome {
    let variable = row(&VARIABLES, index)?;
    name.give(variable.name);
    offer(verbosity, variable.verbosity.code());
    offer(datatype, self::datatype(variable.domain));
    offer(enumeration, handle_of(variable.enumeration()));
    description.give(&variable.description());
    offer(bind, MPI_T_BIND_NO_OBJECT);
    offer(scope, self::scope(variable.scope));
    Ok(())
}

/// MPI_T_cvar_get_index.
pub fn index(name: &[u8]) -> Outcome<c_int> {
    let variable = Variable::named(super::name(name)?).ok_or(MPI_T_ERR_INVALID_NAME)?;
    Ok(variable.id as c_int)
}

/// MPI_T_cvar_handle_alloc: the handle, and how many elements a value has. No variable is bound to an object.
pub fn alloc(index: c_int) -> Outcome<(usize, c_int)> {
    let variable = row(&VARIABLES, index)?;
    if HANDLES.len() >= TOOL_HANDLES {
        return Err(MPI_T_ERR_OUT_OF_HANDLES);
    }
    let handle = HANDLES.insert(Arc::new(CvarHandle(variable))).map_err(|_| MPI_T_ERR_OUT_OF_HANDLES)?;
    let count = if matches!(variable.domain, Domain::Text) { VARIABLE_TEXT as c_int } else { 1 };
    Ok((handle, count))
}

/// MPI_T_cvar_handle_free.
pub fn free(handle: InOut<'_, usize>) -> Outcome {
    HANDLES.remove(handle.get()).ok_or(MPI_T_ERR_INVALID_HANDLE)?;
    handle.set(MPI_T_CVAR_HANDLE_NULL);
    Ok(())
}

/// MPI_T_cvar_read. Before MPI_Init: what would be in force if it were called now.
pub fn read(handle: usize, to: ValueAt<'_>) -> Outcome {
    let variable = find(handle)?;
    // SAFETY: the tool gives room for the count and the datatype that MPI_T_cvar_handle_alloc and MPI_T_cvar_get_info
    // say, which are those of `datatype` and `alloc` here.
    let write = |config: &crate::variables::Config| unsafe {
        match variable.domain {
            Domain::Choice(_) => to.write(config.number(variable.id) as c_int),
            Domain::Number(_) | Domain::PowerOfTwo(..) => to.write::<c_ulong>(config.number(variable.id)),
            Domain::Text => {
                let text = config.text(variable.id).as_bytes();
                crate::strings::write(to.addr().cast(), VARIABLE_TEXT, text);
            }
        }
    };
    overrides::with_config(write).ok_or(MPI_T_ERR_INVALID)
}

/// MPI_T_cvar_write.
pub fn write(handle: usize, from: ValueAt<'_>) -> Outcome {
    let variable = find(handle)?;
    // SAFETY: the tool gives a value of the datatype that MPI_T_cvar_get_info says, which is that of `datatype` here.
    let number = unsafe {
        match variable.domain {
            // A negative number is no choice; whether the variable may be set at all counts first.
            Domain::Choice(_) => u64::try_from(from.read::<c_int>()).unwrap_or(u64::MAX),
            Domain::Number(_) | Domain::PowerOfTwo(..) => from.read::<c_ulong>(),
            // Nobody can change a text.
            Domain::Text => 0,
        }
    };
    overrides::change(variable.id, number).map_err(|refusal| match refusal {
        Refusal::Value => MPI_T_ERR_INVALID,
        Refusal::NotNow => MPI_T_ERR_CVAR_SET_NOT_NOW,
        Refusal::Never => MPI_T_ERR_CVAR_SET_NEVER,
    })
}
