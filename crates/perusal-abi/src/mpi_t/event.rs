//! Event types, registration handles, and what a callback reads (MPI 5.0 §15.3.8).
//!
//! What lies behind is [`crate::tool::event`]; `docs/tool-events.md` says what was chosen where the standard leaves a choice.

use super::{Outcome, enums, give, list, name, offer, put, row, tool};
use crate::abi::*;
use crate::capi::mpi::info::{hand_out, hints};
use crate::capi::types::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Info};
use crate::capi::{comms, overrides, process};
use crate::events::{EventRecord, inside_callback};
use crate::info::Info;
use crate::tool::event::instance::{Instance, look, read};
use crate::tool::event::registration::{DroppedFunction, EventFunction, FreeFunction, Refused, Registration};
use crate::tool::event::safety::Safety;
use crate::tool::event::types::{TYPES, Type, by_name};
use crate::tool::event::{delivery, source};
use crate::variables::VariableId;
use core::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// Hint of a handle: entries of its buffer; 0: no buffer.
const BUFFER: &str = "perusal_event_buffer";

fn kind(index: c_int) -> Outcome<&'static Type> {
    row(&TYPES, index)
}

fn registration(handle: usize) -> Outcome<Arc<Registration>> {
    delivery::find(handle).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

fn level(safety: c_int) -> Outcome<Safety> {
    Safety::from_c(safety).ok_or(MPI_T_ERR_INVALID)
}

fn given(info: MPI_Info) -> Outcome<Info> {
    hints(info).map_err(|_| MPI_T_ERR_INVALID)
}

/// An info object that says how many entries a buffer has, for the user to free.
fn buffer_hint(entries: usize) -> Outcome<MPI_Info> {
    let mut info = Info::new();
    info.set(BUFFER, entries.to_string()).and_then(|()| hand_out(info)).map_err(|_| MPI_T_ERR_MEMORY)
}

/// Entries of a buffer that no hint asks for.
fn default_entries() -> usize {
    let entries = overrides::with_config(|config| config.number(VariableId::EventBuffer));
    entries.and_then(|entries| entries.try_into().ok()).unwrap_or(0)
}

/// The entries that the hints ask for. A value that is no number is a hint that is ignored.
fn asked(info: &Info) -> Option<usize> {
    info.text(BUFFER).and_then(|text| text.trim().parse().ok())
}

fn refused(why: Refused) -> c_int {
    match why {
        Refused::Memory => MPI_T_ERR_MEMORY,
        Refused::Handles => MPI_T_ERR_OUT_OF_HANDLES,
        Refused::Object | Refused::Closing => MPI_T_ERR_INVALID_HANDLE,
    }
}

/// A new registration of `kind`, on the communicator that `object` points to if the type is bound.
///
/// # Safety
/// `object` is NULL or, for a type that is bound, points to a handle.
unsafe fn allocate(kind: &'static Type, object: *const c_void, info: &Info) -> Outcome<usize> {
    let comm = match (kind.bound, object.is_null()) {
        (false, _) => None,
        (true, true) => return Err(MPI_T_ERR_INVALID),
        (true, false) => {
            // SAFETY: not null, and by contract a handle.
            let handle = unsafe { object.cast::<usize>().read() };
            Some(comms::get(handle).map_err(|_| MPI_T_ERR_INVALID_HANDLE)?)
        }
    };
    let made =
        Registration::new(kind, asked(info).unwrap_or_else(default_entries), process::registry().clone())
            .map_err(refused)?;
    let number = delivery::admit(&made).ok_or(MPI_T_ERR_OUT_OF_HANDLES)?;
    made.bind(number, comm.as_ref().map(|comm| &comm.events)).map_err(|why| {
        made.close(None, core::ptr::null_mut());
        refused(why)
    })?;
    Ok(number)
}

/// Runs `with` on the instance that a callback was given.
fn instance<R>(handle: *mut c_void, with: impl FnOnce(&Instance<'_>) -> R) -> Outcome<R> {
    look(handle, with).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

/// As [`instance`], for who reads elements alone.
#[inline(always)]
fn reading<R>(handle: *mut c_void, with: impl FnOnce(&'static Type, &EventRecord<'_>) -> R) -> Outcome<R> {
    read(handle, with).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

/// Writes what MPI_T_event_get_info says of elements: as many as the caller has room for, and how many there are.
///
/// # Safety
/// `num` is NULL or may be read and written; each array is NULL or has room for `*num` elements.
unsafe fn describe(kind: &Type, types: *mut MPI_Datatype, places: *mut MPI_Aint, num: *mut c_int) {
    if num.is_null() {
        return;
    }
    // SAFETY: not null, and by contract may be read.
    let room = usize::try_from(unsafe { num.read() }).unwrap_or(0);
    for (index, (element, at)) in kind.elements.iter().zip(&kind.displacements).enumerate().take(room) {
        // SAFETY: NULL is ignored, and `index` is below what the caller has room for.
        unsafe {
            offer(if types.is_null() { types } else { types.add(index) }, element.datatype());
            offer(if places.is_null() { places } else { places.add(index) }, *at as MPI_Aint);
        }
    }
    // SAFETY: as above.
    unsafe { num.write(kind.elements.len() as c_int) };
}

tool! {
    /// MPI 5.0 §15.3.8, event type query functions.
    fn MPI_T_event_get_num(num_events: *mut c_int) {
        // SAFETY: an output argument.
        unsafe { put(num_events, TYPES.len() as c_int) }
    }

    /// MPI 5.0 §15.3.8. Every output argument may be NULL; a string with its length, an array with `num_elements`.
    fn MPI_T_event_get_info(
        event_index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int,
        array_of_datatypes: *mut MPI_Datatype, array_of_displacements: *mut MPI_Aint, num_elements: *mut c_int,
        enumtype: *mut usize, info: *mut MPI_Info, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int,
    ) {
        let kind = kind(event_index)?;
        let hint = if info.is_null() { MPI_INFO_NULL } else { buffer_hint(default_entries())? };
        let names = (!kind.elements.is_empty()).then_some(kind.names);
        // SAFETY: output arguments; arrays with as much room as the caller says.
        unsafe {
            give(&kind.name, name, name_len);
            offer(verbosity, kind.verbosity());
            describe(kind, array_of_datatypes, array_of_displacements, num_elements);
            offer(enumtype, enums::handle_of(names));
            offer(info, hint);
            give(&kind.description, desc, desc_len);
            offer(bind, kind.bind());
        }
        Ok(())
    }

    /// MPI 5.0 §15.3.8. Other spellings that PERUSE has for an event are taken too.
    fn MPI_T_event_get_index(name_: *const c_char, event_index: *mut c_int) {
        // SAFETY: a string argument.
        let index = by_name(unsafe { name(name_) }?).ok_or(MPI_T_ERR_INVALID_NAME)?;
        // SAFETY: an output argument.
        unsafe { put(event_index, index as c_int) }
    }

    /// MPI 5.0 §15.3.8, handle allocation. `obj_handle` points to the communicator's handle, and is ignored by types of no object.
    fn MPI_T_event_handle_alloc(
        event_index: c_int, obj_handle: *mut c_void, info: MPI_Info, event_registration: *mut usize,
    ) {
        let kind = kind(event_index)?;
        let info = given(info)?;
        if event_registration.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        // SAFETY: the caller gives the address of a handle to types that are bound.
        let number = unsafe { allocate(kind, obj_handle, &info) }?;
        // SAFETY: an output argument.
        unsafe { put(event_registration, number) }
    }

    /// MPI 5.0 §15.3.8. Hints that are not given stay as they are. What waits in a buffer stays, whatever size comes next.
    fn MPI_T_event_handle_set_info(event_registration: usize, info: MPI_Info) {
        let of = registration(event_registration)?;
        let Some(entries) = asked(&given(info)?) else { return Ok(()) };
        if entries == 0 && !inside_callback() {
            // From here on events are told at once: none that waits should come after them.
            delivery::deliver();
        }
        of.resize(entries).map_err(refused)
    }

    /// MPI 5.0 §15.3.8.
    fn MPI_T_event_handle_get_info(event_registration: usize, info_used: *mut MPI_Info) {
        let of = registration(event_registration)?;
        if info_used.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        // SAFETY: an output argument.
        unsafe { put(info_used, buffer_hint(of.entries())?) }
    }

    /// MPI 5.0 §15.3.8. Events come from the first function on.
    fn MPI_T_event_register_callback(
        event_registration: usize, cb_safety: c_int, info: MPI_Info, user_data: *mut c_void,
        event_cb_function: Option<EventFunction>,
    ) {
        let of = registration(event_registration)?;
        let level = level(cb_safety)?;
        given(info)?;
        // What was dropped for want of this function is told before anything that it hears.
        of.register(level, event_cb_function, user_data).map_err(refused)
    }

    /// MPI 5.0 §15.3.8. Callbacks have no hints.
    fn MPI_T_event_callback_set_info(event_registration: usize, cb_safety: c_int, info: MPI_Info) {
        callback(event_registration, cb_safety)?;
        given(info).map(drop)
    }

    /// MPI 5.0 §15.3.8. Callbacks have no hints: the info object is empty.
    fn MPI_T_event_callback_get_info(event_registration: usize, cb_safety: c_int, info_used: *mut MPI_Info) {
        callback(event_registration, cb_safety)?;
        if info_used.is_null() {
            return Err(MPI_T_ERR_INVALID);
        }
        let made = hand_out(Info::new()).map_err(|_| MPI_T_ERR_MEMORY)?;
        // SAFETY: an output argument.
        unsafe { put(info_used, made) }
    }

    /// MPI 5.0 §15.3.8. When it returns, no event is heard any more; `free_cb_function` tells when the last one has been told.
    fn MPI_T_event_handle_free(
        event_registration: usize, user_data: *mut c_void, free_cb_function: Option<FreeFunction>,
    ) {
        if registration(event_registration)?.close(free_cb_function, user_data) {
            Ok(())
        } else {
            Err(MPI_T_ERR_INVALID_HANDLE)
        }
    }

    /// MPI 5.0 §15.3.8, handling dropped events.
    fn MPI_T_event_set_dropped_handler(
        event_registration: usize, dropped_cb_function: Option<DroppedFunction>,
    ) {
        registration(event_registration)?.set_dropped_handler(dropped_cb_function, delivery::here());
        Ok(())
    }

    /// MPI 5.0 §15.3.8, reading event data.
    fn MPI_T_event_read(event_instance: *mut c_void, element_index: c_int, buffer: *mut c_void) {
        reading(event_instance, |kind, record| {
            let element = row(&kind.elements, element_index)?;
            if buffer.is_null() {
                return Err(MPI_T_ERR_INVALID);
            }
            // SAFETY: not null, and the caller gives room for one element of the type that MPI_T_event_get_info tells.
            unsafe { element.write(record, buffer.cast()) };
            Ok(())
        })?
    }

    /// MPI 5.0 §15.3.8, reading event data.
    fn MPI_T_event_copy(event_instance: *mut c_void, buffer: *mut c_void) {
        reading(event_instance, |kind, record| {
            if buffer.is_null() {
                return Err(MPI_T_ERR_INVALID);
            }
            // SAFETY: not null, and the caller gives room for the extent that follows from MPI_T_event_get_info.
            unsafe { kind.copy(record, buffer.cast()) };
            Ok(())
        })?
    }

    /// MPI 5.0 §15.3.8, reading event meta data.
    fn MPI_T_event_get_timestamp(event_instance: *mut c_void, event_timestamp: *mut MPI_Count) {
        let when = instance(event_instance, |of| of.when())?;
        // SAFETY: an output argument.
        unsafe { put(event_timestamp, ticks(when)) }
    }

    /// MPI 5.0 §15.3.8, reading event meta data.
    fn MPI_T_event_get_source(event_instance: *mut c_void, source_index: *mut c_int) {
        let index = instance(event_instance, |of| of.source())?;
        // SAFETY: an output argument.
        unsafe { put(source_index, index as c_int) }
    }

    /// MPI 5.0 §15.3.8, event sources. Grows with the threads that raise events or ask.
    fn MPI_T_source_get_num(num_sources: *mut c_int) {
        // SAFETY: an output argument.
        unsafe { put(num_sources, source::count() as c_int) }
    }

    /// MPI 5.0 §15.3.8, event sources. Sources have no hints: the info object is empty.
    fn MPI_T_source_get_info(
        source_index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int,
        ordering: *mut c_int, ticks_per_second: *mut MPI_Count, max_ticks: *mut MPI_Count, info: *mut MPI_Info,
    ) {
        let of = source_of(source_index)?;
        let hint = if info.is_null() { MPI_INFO_NULL } else { hand_out(Info::new()).map_err(|_| MPI_T_ERR_MEMORY)? };
        // SAFETY: output arguments.
        unsafe {
            give(&of.name, name, name_len);
            give(of.description, desc, desc_len);
            offer(ordering, if of.ordered { MPI_T_SOURCE_ORDERED } else { MPI_T_SOURCE_UNORDERED });
            offer(ticks_per_second, ticks(crate::arch::clock::source().ticks_per_second));
            offer(max_ticks, MPI_Count::MAX);
            offer(info, hint);
        }
        Ok(())
    }

    /// MPI 5.0 §15.3.8, event sources. All sources have one clock.
    fn MPI_T_source_get_timestamp(source_index: c_int, timestamp: *mut MPI_Count) {
        source_of(source_index)?;
        // SAFETY: an output argument.
        unsafe { put(timestamp, ticks(crate::arch::clock::ticks())) }
    }

    /// MPI 5.0 §15.3.9: the event types of a branch.
    fn MPI_T_category_get_num_events(cat_index: c_int, num_events: *mut c_int) {
        let count = in_category(cat_index)?.count();
        // SAFETY: an output argument.
        unsafe { put(num_events, count as c_int) }
    }

    /// MPI 5.0 §15.3.9: the event types of a branch.
    fn MPI_T_category_get_events(cat_index: c_int, len: c_int, indices: *mut c_int) {
        // SAFETY: the caller gives room for `len`.
        unsafe { list(in_category(cat_index)?, len, indices) }
    }
}

fn in_category(index: c_int) -> Outcome<impl Iterator<Item = usize>> {
    let of = super::category::find(index)?.id;
    Ok(TYPES.iter().enumerate().filter(move |(_, kind)| kind.category() == of).map(|(index, _)| index))
}

/// The registration, and that it has a function for the level.
fn callback(handle: usize, safety: c_int) -> Outcome {
    let of = registration(handle)?;
    if of.has(level(safety)?) { Ok(()) } else { Err(MPI_T_ERR_INVALID) }
}

fn source_of(index: c_int) -> Outcome<source::Source> {
    usize::try_from(index).ok().and_then(source::by_index).ok_or(MPI_T_ERR_INVALID_INDEX)
}

/// Ticks as C has them. What begins when the machine does comes nowhere near the sign.
fn ticks(count: u64) -> MPI_Count {
    (count & i64::MAX.cast_unsigned()).cast_signed()
}

/// What waits is told while tools may still read it.
pub(super) fn flush() {
    if !inside_callback() {
        delivery::deliver();
    }
}

/// The last MPI_T_finalize frees what is left; no function of a tool is called afterwards.
pub(super) fn end() {
    delivery::close_all();
}
