//! Performance variables (MPI 5.0 §15.3.7). The table is [`crate::tool::pvar`].
//!
//! States are MPI_INT with an enumeration, lengths of queues MPI_UNSIGNED, times and shares MPI_DOUBLE, everything else
//! MPI_UNSIGNED_LONG_LONG. A count is of one element, but for a variable that has one for each rank of a communicator.

use super::enums::handle_of;
use super::pvar_state::{BoundObject, PvarValue, elements, with};
use super::{ObjectAt, Outcome, TextPlace, ValueAt, row};
use crate::abi::*;
use crate::arguments::{InOut, Out, offer};
use crate::events::Binding;
use crate::tool::pvar::{Class, PVARS, Pvar};
use crate::{comms, files, windows};
use core::ffi::{c_int, c_uint};
use std::sync::Arc;

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
    match pvar {
        _ if pvar.is_int() => MPI_INT,
        _ if pvar.is_length() => MPI_UNSIGNED,
        _ if pvar.is_real() => MPI_DOUBLE,
        _ => MPI_UNSIGNED_LONG_LONG,
    }
}

/// Writes element `at` of a value to the tool's buffer.
fn deliver(value: PvarValue, to: &ValueAt<'_>, at: usize) {
    // SAFETY: the tool gives room for as many elements as MPI_T_pvar_handle_alloc says, of the datatype that
    // MPI_T_pvar_get_info says: `datatype` here has the variant's.
    unsafe {
        match value {
            PvarValue::Int(int) => to.write_at::<c_int>(at, int),
            PvarValue::Length(length) => to.write_at::<c_uint>(at, length),
            PvarValue::Number(number) => to.write_at::<u64>(at, number),
            PvarValue::Real(real) => to.write_at::<f64>(at, real),
        }
    }
}

/// The value in the tool's buffer. An MPI_INT is never writable.
fn accept(pvar: &Pvar, from: &ValueAt<'_>) -> Outcome<PvarValue> {
    // SAFETY: the tool gives one element of the datatype that MPI_T_pvar_get_info says,
    // which `datatype` here derives likewise.
    unsafe {
        if pvar.is_length() {
            return Ok(PvarValue::Length(from.read::<c_uint>()));
        }
        if !pvar.is_real() {
            return Ok(PvarValue::Number(from.read::<u64>()));
        }
        let real = from.read::<f64>();
        if real.is_finite() && real >= 0.0 { Ok(PvarValue::Real(real)) } else { Err(MPI_T_ERR_INVALID) }
    }
}

/// The communicator or window that the variable is bound to.
fn bound_to(pvar: &Pvar, object: &ObjectAt<'_>) -> Outcome<BoundObject> {
    if pvar.binding() == Binding::Nothing {
        return Ok(BoundObject::NONE);
    }
    // SAFETY: it is bound to an object, whose handle the tool passes by address.
    let handle = unsafe { object.handle() }?;
    let found = match pvar.binding() {
        Binding::Window => windows::get(handle).map(|win| Arc::downgrade(win.events())),
        Binding::File => files::get(handle).map(|file| Arc::downgrade(file.events())),
        _ => comms::get_even_incomplete(handle).map(|comm| Arc::downgrade(&comm.events)),
    };
    found.map(|events| BoundObject { handle, events }).map_err(|_| MPI_T_ERR_INVALID_HANDLE)
}

/// MPI_T_pvar_get_num.
pub fn number() -> Outcome<usize> {
    Ok(PVARS.len())
}

/// MPI_T_pvar_get_info.
pub fn info(
    index: c_int,
    name: TextPlace<'_>,
    verbosity: Option<Out<'_, c_int>>,
    class: Option<Out<'_, c_int>>,
    datatype: Option<Out<'_, usize>>,
    enumeration: Option<Out<'_, usize>>,
    description: TextPlace<'_>,
    bind: Option<Out<'_, c_int>>,
    readonly: Option<Out<'_, c_int>>,
    continuous: Option<Out<'_, c_int>>,
    atomic: Option<Out<'_, c_int>>,
) -> Outcome {
    let pvar = row(PVARS, index)?;
    name.give(pvar.name);
    offer(verbosity, pvar.verbosity.code());
    offer(class, self::class(pvar.class));
    offer(datatype, self::datatype(pvar));
    offer(enumeration, handle_of(pvar.enumeration));
    description.give(pvar.what);
    offer(
        bind,
        match pvar.binding() {
            Binding::Communicator => MPI_T_BIND_MPI_COMM,
            Binding::Window => MPI_T_BIND_MPI_WIN,
            Binding::File => MPI_T_BIND_MPI_FILE,
            Binding::Nothing => MPI_T_BIND_NO_OBJECT,
        },
    );
    offer(readonly, c_int::from(pvar.is_readonly()));
    offer(continuous, c_int::from(pvar.is_continuous()));
    offer(atomic, c_int::from(pvar.is_atomic()));
    Ok(())
}

/// MPI_T_pvar_get_index.
pub fn index(name: &[u8], of: c_int) -> Outcome<usize> {
    let wanted = super::name(name)?;
    let index = PVARS.iter().position(|pvar| pvar.name == wanted && class(pvar.class) == of);
    index.ok_or(MPI_T_ERR_INVALID_NAME)
}

/// MPI_T_pvar_session_create.
pub fn open_session() -> Outcome<usize> {
    with(|state| state.open())
}

/// MPI_T_pvar_session_free. Its handles go with it.
pub fn close_session(session: InOut<'_, usize>) -> Outcome {
    with(|state| state.close(session.get()))?;
    session.set(MPI_T_PVAR_SESSION_NULL);
    Ok(())
}

/// MPI_T_pvar_handle_alloc: the handle, and how many elements a value has.
pub fn alloc(
    session: usize,
    index: c_int,
    object: ObjectAt<'_>,
    handle: Option<Out<'_, usize>>,
    count: Option<Out<'_, c_int>>,
) -> Outcome {
    with(|state| state.check(session))?;
    let pvar = row(PVARS, index)?;
    let (Some(handle), Some(count)) = (handle, count) else { return Err(MPI_T_ERR_INVALID) };
    let object = bound_to(pvar, &object)?;
    let elements = elements(pvar, &object)?;
    handle.set(with(|state| state.bind(session, pvar, object))?);
    count.set(elements);
    Ok(())
}

/// MPI_T_pvar_handle_free.
pub fn free(session: usize, handle: InOut<'_, usize>) -> Outcome {
    with(|state| state.free(session, handle.get()))?;
    handle.set(MPI_T_PVAR_HANDLE_NULL);
    Ok(())
}

/// MPI_T_pvar_start, MPI_T_pvar_stop. One that is started, or stopped, already stays so.
pub fn run(session: usize, handle: usize, on: bool) -> Outcome {
    with(|state| state.run(session, handle, on))
}

/// MPI_T_pvar_read. Before MPI_Init nothing has been counted.
pub fn read(session: usize, handle: usize, to: ValueAt<'_>) -> Outcome {
    with(|state| state.read(session, handle, |at, value| deliver(value, &to, at)))
}

/// MPI_T_pvar_write.
pub fn write(session: usize, handle: usize, from: Option<ValueAt<'_>>) -> Outcome {
    let pvar = with(|state| state.writable(session, handle))?;
    let value = accept(pvar, &from.ok_or(MPI_T_ERR_INVALID)?)?;
    with(|state| state.write(session, handle, Some(value)))
}

/// MPI_T_pvar_reset.
pub fn reset(session: usize, handle: usize) -> Outcome {
    with(|state| match handle {
        MPI_T_PVAR_ALL_HANDLES => state.reset_all(session),
        _ => state.write(session, handle, None),
    })
}

/// MPI_T_pvar_readreset.
pub fn read_and_reset(session: usize, handle: usize, to: ValueAt<'_>) -> Outcome {
    deliver(with(|state| state.read_and_reset(session, handle))?, &to, 0);
    Ok(())
}
