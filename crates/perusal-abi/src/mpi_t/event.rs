//! Event types, registration handles, and what a callback reads (MPI 5.0 §15.3.8).
//!
//! What lies behind is [`crate::tool::event`]; `docs/tool-events.md` says what was chosen where the standard leaves a
//! choice.

use super::{ObjectAt, OptionalRoom, Outcome, TextPlace, ValueAt, enums, list, row};
use crate::abi::*;
use crate::arguments::{Out, Room, offer};
use crate::events::{Binding, CommEvents, EventRecord, inside_callback};
use crate::info::Info;
use crate::mpi::info::{hand_out, hints};
use crate::tool::event::instance::{Instance, expect_times, read, with_instance};
use crate::tool::event::registration::{
    DroppedFunction, EventFunction, FreeFunction, Registration, RegistrationError,
};
use crate::tool::event::safety::Safety;
use crate::tool::event::types::{EventElement, TYPES, ToolEventType, by_name};
use crate::tool::event::{delivery, source as sources};
use crate::types::{MPI_Aint, MPI_Count, MPI_Datatype, MPI_Info};
use crate::variables::VariableId;
use crate::{comms, files, overrides, process, windows};
use core::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

/// Hint of a handle: entries of its buffer; 0: no buffer.
const BUFFER: &str = "perusal_event_buffer";

fn kind(index: c_int) -> Outcome<&'static ToolEventType> {
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

/// Before an element's name: the key of what the element is.
const ELEMENT: &str = "perusal_element_";

/// An info object that says how many entries a buffer has, for the user to free.
fn buffer_hint(entries: usize) -> Outcome<MPI_Info> {
    type_hints(entries, &[])
}

/// The same, and what each of these elements is.
fn type_hints(entries: usize, elements: &[EventElement]) -> Outcome<MPI_Info> {
    let mut info = Info::new();
    let mut set = |key: &str, value: String| info.set(key, value).map_err(|_| MPI_T_ERR_MEMORY);
    set(BUFFER, entries.to_string())?;
    for element in elements {
        set(&format!("{ELEMENT}{}", element.name), element.explanation())?;
    }
    hand_out(info).map_err(|_| MPI_T_ERR_MEMORY)
}

/// The entries that MPI_T_event_get_info names: what it says of a type does not change,
/// whatever becomes of the control variable.
fn named_entries() -> usize {
    static NAMED: OnceLock<usize> = OnceLock::new();
    *NAMED.get_or_init(default_entries)
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

fn refused(why: RegistrationError) -> c_int {
    match why {
        RegistrationError::Memory => MPI_T_ERR_MEMORY,
        RegistrationError::Handles => MPI_T_ERR_OUT_OF_HANDLES,
        RegistrationError::Object | RegistrationError::Closing => MPI_T_ERR_INVALID_HANDLE,
    }
}

/// The events of the communicator, window or file that `object` leads to, if the type is bound to one.
fn events_of(kind: &ToolEventType, object: &ObjectAt<'_>) -> Outcome<Option<Arc<CommEvents>>> {
    if kind.binding() == Binding::Nothing {
        return Ok(None);
    }
    // SAFETY: the type is bound to an object, whose handle the tool passes by address.
    let handle = unsafe { object.handle() }?;
    let found = match kind.binding() {
        Binding::Window => windows::get(handle).map(|win| win.events().clone()),
        Binding::File => files::get(handle).map(|file| file.events().clone()),
        _ => comms::get_even_incomplete(handle).map(|comm| comm.events.clone()),
    };
    found.map(Some).map_err(|_| MPI_T_ERR_INVALID_HANDLE)
}

/// A new registration of `kind`, on the object that `object` leads to if the type is bound.
fn allocate(kind: &'static ToolEventType, object: &ObjectAt<'_>, info: &Info) -> Outcome<usize> {
    let events = events_of(kind, object)?;
    let made =
        Registration::new(kind, asked(info).unwrap_or_else(default_entries), process::registry().clone())
            .map_err(refused)?;
    let number = delivery::admit(&made).ok_or(MPI_T_ERR_OUT_OF_HANDLES)?;
    made.bind(number, events.as_ref()).map_err(|why| {
        made.close(None, core::ptr::null_mut());
        refused(why)
    })?;
    Ok(number)
}

/// Runs `with` on the instance that a callback was given.
fn instance<R>(handle: *mut c_void, with: impl FnOnce(&Instance<'_>) -> R) -> Outcome<R> {
    with_instance(handle, with).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

/// As [`instance`], for who reads elements alone.
#[inline(always)]
fn reading<R>(
    handle: *mut c_void,
    with: impl FnOnce(&'static ToolEventType, &EventRecord<'_>) -> R,
) -> Outcome<R> {
    read(handle, with).ok_or(MPI_T_ERR_INVALID_HANDLE)
}

/// MPI_T_event_get_num.
pub fn number() -> Outcome<usize> {
    Ok(TYPES.len())
}

/// MPI_T_event_get_info. Every result may be unwanted; a string comes with its length, an array with `elements`.
pub fn info(
    index: c_int,
    name: TextPlace<'_>,
    verbosity: Option<Out<'_, c_int>>,
    datatypes: OptionalRoom<'_, MPI_Datatype>,
    displacements: OptionalRoom<'_, MPI_Aint>,
    elements: Option<Out<'_, c_int>>,
    enumeration: Option<Out<'_, usize>>,
    info: Option<Out<'_, MPI_Info>>,
    description: TextPlace<'_>,
    bind: Option<Out<'_, c_int>>,
) -> Outcome {
    let kind = kind(index)?;
    let hint = if info.is_none() { MPI_INFO_NULL } else { type_hints(named_entries(), &kind.elements)? };
    let names = (!kind.elements.is_empty()).then_some(kind.names);
    name.give(&kind.name);
    offer(verbosity, kind.verbosity());
    datatypes.fill(kind.elements.iter().map(|element| element.datatype()));
    displacements.fill(kind.displacements.iter().map(|at| *at as MPI_Aint));
    offer(elements, kind.elements.len() as c_int);
    offer(enumeration, enums::handle_of(names));
    offer(info, hint);
    description.give(&kind.description);
    offer(bind, kind.bind());
    Ok(())
}

/// MPI_T_event_get_index. Other spellings that PERUSE has for an event are taken too.
pub fn index(name: &[u8]) -> Outcome<usize> {
    by_name(super::name(name)?).ok_or(MPI_T_ERR_INVALID_NAME)
}

/// MPI_T_event_handle_alloc. `object` leads to the communicator's handle or the window's,
/// and is ignored by types of no object.
pub fn alloc(
    index: c_int,
    object: ObjectAt<'_>,
    info: MPI_Info,
    registration: Option<Out<'_, usize>>,
) -> Outcome {
    let kind = kind(index)?;
    let info = given(info)?;
    let registration = registration.ok_or(MPI_T_ERR_INVALID)?;
    registration.set(allocate(kind, &object, &info)?);
    Ok(())
}

/// MPI_T_event_handle_set_info. Hints that are not given stay as they are.
/// What waits in a buffer stays, whatever size comes next.
pub fn set_info(handle: usize, info: MPI_Info) -> Outcome {
    let of = registration(handle)?;
    let Some(entries) = asked(&given(info)?) else { return Ok(()) };
    if entries == 0 && !inside_callback() {
        // From here on events are delivered at once: none that waits should come after them.
        delivery::deliver();
    }
    of.resize(entries).map_err(refused)
}

/// MPI_T_event_handle_get_info.
pub fn used_info(handle: usize, to: Option<Out<'_, MPI_Info>>) -> Outcome {
    let of = registration(handle)?;
    to.ok_or(MPI_T_ERR_INVALID)?.set(buffer_hint(of.entries())?);
    Ok(())
}

/// MPI_T_event_register_callback. Events come from the first function on.
pub fn register(
    handle: usize,
    safety: c_int,
    info: MPI_Info,
    data: *mut c_void,
    function: Option<EventFunction>,
) -> Outcome {
    let of = registration(handle)?;
    let level = level(safety)?;
    given(info)?;
    // What was dropped for want of this function is delivered before anything else that this function receives.
    of.register(level, function, data).map_err(refused)
}

/// MPI_T_event_callback_set_info. Callbacks have no hints.
pub fn set_callback_info(handle: usize, safety: c_int, info: MPI_Info) -> Outcome {
    callback(handle, safety)?;
    given(info).map(drop)
}

/// MPI_T_event_callback_get_info. Callbacks have no hints: the info object is empty.
pub fn callback_info(handle: usize, safety: c_int, to: Option<Out<'_, MPI_Info>>) -> Outcome {
    callback(handle, safety)?;
    to.ok_or(MPI_T_ERR_INVALID)?.set(hand_out(Info::new()).map_err(|_| MPI_T_ERR_MEMORY)?);
    Ok(())
}

/// MPI_T_event_handle_free. When it returns, no event is accepted any more;
/// `function` says when the last one has been delivered.
pub fn free(handle: usize, data: *mut c_void, function: Option<FreeFunction>) -> Outcome {
    if registration(handle)?.close(function, data) { Ok(()) } else { Err(MPI_T_ERR_INVALID_HANDLE) }
}

/// MPI_T_event_set_dropped_handler.
pub fn set_dropped_handler(handle: usize, function: Option<DroppedFunction>) -> Outcome {
    registration(handle)?.set_dropped_handler(function, delivery::level_here());
    Ok(())
}

/// MPI_T_event_read.
#[inline]
pub fn read_element(instance: *mut c_void, index: c_int, to: Option<ValueAt<'_>>) -> Outcome {
    reading(instance, |kind, record| {
        let element = row(&kind.elements, index)?;
        let to = to.ok_or(MPI_T_ERR_INVALID)?;
        // SAFETY: the tool gives room for one element of the type that MPI_T_event_get_info says.
        unsafe { element.write(record, to.addr().cast()) };
        Ok(())
    })?
}

/// MPI_T_event_copy.
pub fn copy(instance: *mut c_void, to: Option<ValueAt<'_>>) -> Outcome {
    reading(instance, |kind, record| {
        let to = to.ok_or(MPI_T_ERR_INVALID)?;
        // SAFETY: the tool gives room for the extent that follows from MPI_T_event_get_info.
        unsafe { kind.copy(record, to.addr().cast()) };
        Ok(())
    })?
}

/// MPI_T_event_get_timestamp.
pub fn timestamp(handle: *mut c_void, to: Option<Out<'_, MPI_Count>>) -> Outcome {
    let when = instance(handle, |of| of.when())?;
    to.ok_or(MPI_T_ERR_INVALID)?.set(ticks(when));
    Ok(())
}

/// MPI_T_event_get_source.
pub fn source(handle: *mut c_void, to: Option<Out<'_, c_int>>) -> Outcome {
    let index = instance(handle, |of| of.source())?;
    to.ok_or(MPI_T_ERR_INVALID)?.set(index as c_int);
    Ok(())
}

/// MPI_T_source_get_num. Grows with the threads that raise events or ask.
pub fn sources() -> Outcome<usize> {
    Ok(sources::count() as usize)
}

/// MPI_T_source_get_info. Sources have no hints: the info object is empty.
pub fn source_info(
    index: c_int,
    name: TextPlace<'_>,
    description: TextPlace<'_>,
    ordering: Option<Out<'_, c_int>>,
    ticks_per_second: Option<Out<'_, MPI_Count>>,
    max_ticks: Option<Out<'_, MPI_Count>>,
    info: Option<Out<'_, MPI_Info>>,
) -> Outcome {
    let of = source_of(index)?;
    expect_times();
    if let Some(info) = info {
        info.set(hand_out(Info::new()).map_err(|_| MPI_T_ERR_MEMORY)?);
    }
    name.give(&of.name);
    description.give(of.description);
    offer(ordering, if of.ordered { MPI_T_SOURCE_ORDERED } else { MPI_T_SOURCE_UNORDERED });
    offer(ticks_per_second, ticks(crate::arch::clock::source().ticks_per_second));
    offer(max_ticks, MPI_Count::MAX);
    Ok(())
}

/// MPI_T_source_get_timestamp. All sources have one clock.
pub fn source_timestamp(index: c_int, to: Option<Out<'_, MPI_Count>>) -> Outcome {
    source_of(index)?;
    expect_times();
    to.ok_or(MPI_T_ERR_INVALID)?.set(ticks(crate::arch::clock::ticks()));
    Ok(())
}

/// MPI_T_category_get_num_events: the event types of a branch.
pub fn number_in_category(index: c_int) -> Outcome<usize> {
    Ok(in_category(index)?.count())
}

/// MPI_T_category_get_events: the event types of a branch.
pub fn list_in_category(index: c_int, to: Room<'_, c_int>) -> Outcome {
    list(in_category(index)?, &to)
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

fn source_of(index: c_int) -> Outcome<sources::EventSource> {
    usize::try_from(index).ok().and_then(sources::by_index).ok_or(MPI_T_ERR_INVALID_INDEX)
}

/// Ticks as C has them. What begins when the machine does comes nowhere near the sign.
fn ticks(count: u64) -> MPI_Count {
    (count & i64::MAX.cast_unsigned()).cast_signed()
}

/// Delivers what waits, while tools may still read it.
pub(super) fn flush() {
    if !inside_callback() {
        delivery::deliver();
    }
}

/// The last MPI_T_finalize frees what is left; no function of a tool is called afterwards.
pub(super) fn end() {
    delivery::close_all();
}
