//! The event types: what MPI_T_event_get_num counts and MPI_T_event_get_info describes.
//!
//! Made from the catalogue (`events::CATALOG`), in this order:
//!
//! 1. each event for the whole process: the index is the event's number - 1, so that the first index needs no object;
//! 2. each event of a communicator, window or file once more, bound to one;
//! 3. the types of the paper on MPI_T events under its names, with its elements.

use crate::abi;
use crate::events::{
    Binding, CATALOG, Event, EventPayload, EventRecord, Field, FieldType, FieldValue, RmaOperation,
    WindowSync,
};
use crate::variables::Category;
use crate::variables::enumeration::{Enumeration, EnumerationItem};
use core::ffi::{CStr, c_int};
use std::sync::LazyLock;

/// The suffix of the name of a type for all communicators, where there is also a type bound to one.
pub const ALL: &str = "_all";

/// One element of an event of a type. All are numbers: of text it is the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventElement {
    /// Its name among the elements of the type.
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// What of a record it is.
    pub field: Field,
}

impl EventElement {
    fn of(field: Field) -> EventElement {
        let info = field.info();
        match info.field_type {
            FieldType::Text(_) => EventElement::named(
                "name_length",
                "bytes of the name, which MPI_Comm_get_name or MPI_Win_get_name gives",
                field,
            ),
            // A test reads all names.
            _ => EventElement::named(info.name.to_str().unwrap_or_default(), info.description, field),
        }
    }

    const fn named(name: &'static str, about: &'static str, field: Field) -> EventElement {
        EventElement { name, about, field }
    }

    /// What it is, and of an enumeration what each value means: `send or receive (0 send, 1 recv, …)`.
    #[must_use]
    pub fn explanation(&self) -> String {
        // Of functions there are too many; their names have an element of their own.
        let few = |names: &&[&CStr]| names.len() <= 64;
        let Some(names) = self.field.info().names.filter(few) else { return self.about.into() };
        let values =
            names.iter().enumerate().map(|(value, name)| format!("{value} {}", name.to_string_lossy()));
        format!("{} ({})", self.about, values.collect::<Vec<_>>().join(", "))
    }

    /// Handle of its datatype.
    #[must_use]
    pub fn datatype(self) -> usize {
        match self.field.info().field_type {
            FieldType::I32 | FieldType::Text(_) => abi::MPI_INT,
            FieldType::U32 => abi::MPI_UINT32_T,
            FieldType::I64 => abi::MPI_INT64_T,
            FieldType::U64 => abi::MPI_UINT64_T,
        }
    }

    /// Its bytes, and what its displacement is a multiple of.
    #[must_use]
    pub fn size(self) -> usize {
        match self.field.info().field_type {
            FieldType::I32 | FieldType::U32 | FieldType::Text(_) => 4,
            FieldType::I64 | FieldType::U64 => 8,
        }
    }

    /// Writes its value in `record`.
    ///
    /// # Safety
    /// `to` may be written for [`size`](Self::size) bytes; it need not be aligned.
    #[inline(always)]
    pub unsafe fn write(self, record: &EventRecord<'_>, to: *mut u8) {
        // SAFETY: `to` is valid for `size` bytes, and `size` is the width of what `read` returns for this field.
        unsafe {
            match record.read(self.field) {
                FieldValue::I32(value) => to.cast::<i32>().write_unaligned(value),
                FieldValue::U32(value) => to.cast::<u32>().write_unaligned(value),
                FieldValue::I64(value) => to.cast::<i64>().write_unaligned(value),
                FieldValue::U64(value) => to.cast::<u64>().write_unaligned(value),
                FieldValue::Text(text) => to.cast::<i32>().write_unaligned(text.len() as i32),
            }
        }
    }
}

/// An event type.
#[derive(Debug)]
pub struct ToolEventType {
    /// Unique.
    pub name: String,
    /// One line for people: what happens.
    pub description: String,
    /// The event behind it.
    pub event: Event,
    /// Whether it is bound to a communicator or a window; which of them, the event says.
    pub bound: bool,
    /// Whether it is one of the paper's.
    pub of_paper: bool,
    /// What its events hold.
    pub elements: Box<[EventElement]>,
    /// Where each element lies in what MPI_T_event_copy copies, in bytes.
    pub displacements: Box<[usize]>,
    /// The names of the elements, by index.
    pub names: &'static Enumeration,
    /// Which of its event's records it accepts.
    filter: Filter,
}

/// Which records of its event a type accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    /// All.
    All,
    /// Only receives that a cancel takes out of the posted queue.
    Cancelled,
    /// Only those of a one-sided operation.
    Of(RmaOperation),
    /// Only those of a call that synchronises a window.
    By(WindowSync),
}

impl ToolEventType {
    fn new(
        name: String,
        what: &str,
        bound: bool,
        of_paper: Option<&PaperEventType>,
        event: Event,
    ) -> ToolEventType {
        let elements: Box<[EventElement]> = match of_paper {
            Some(paper) => paper.elements.into(),
            None => event.info().fields.iter().copied().map(EventElement::of).collect(),
        };
        let scope = match (event.info().binding, bound) {
            (Binding::Communicator, false) => "; of all communicators, those to come included",
            (Binding::Window, false) => "; of all windows, those to come included",
            (Binding::File, false) => "; of all files, those to come included",
            _ => "",
        };
        let description = format!("{what}{scope}");
        let names = Box::leak(Box::new(enumeration(&name, &elements)));
        ToolEventType {
            name,
            description,
            event,
            bound,
            of_paper: of_paper.is_some(),
            displacements: displacements(&elements),
            elements,
            names,
            filter: of_paper.map_or(Filter::All, |paper| paper.filter),
        }
    }

    /// Whether the type accepts this record of its event.
    #[must_use]
    pub fn accepts(&self, record: &EventRecord<'_>) -> bool {
        match (self.filter, record.payload) {
            (Filter::All, _) | (Filter::Cancelled, EventPayload::Cancelled) => true,
            (Filter::Of(only), EventPayload::Rma { operation, .. }) => operation == only as u8,
            (Filter::By(only), EventPayload::Sync { call, .. }) => call == only as u8,
            _ => false,
        }
    }

    /// Whether it accepts some records of its event alone.
    #[must_use]
    pub fn has_filter(&self) -> bool {
        self.filter != Filter::All
    }

    /// What MPI_T_event_copy copies, in bytes: up to the end of the last element.
    #[must_use]
    pub fn extent(&self) -> usize {
        let last = self.elements.last().zip(self.displacements.last());
        last.map_or(0, |(element, at)| at + element.size())
    }

    /// Writes all elements, each at its displacement. Padding is left as it is.
    ///
    /// # Safety
    /// `to` may be written for [`extent`](Self::extent) bytes.
    pub unsafe fn copy(&self, record: &EventRecord<'_>, to: *mut u8) {
        for (element, at) in self.elements.iter().zip(&self.displacements) {
            // SAFETY: displacement and size lie within the extent.
            unsafe { element.write(record, to.add(*at)) };
        }
    }

    /// What one event handle of it is bound to.
    #[must_use]
    pub fn binding(&self) -> Binding {
        if self.bound { self.event.info().binding } else { Binding::Nothing }
    }

    /// MPI_T_BIND_MPI_COMM, MPI_T_BIND_MPI_WIN, MPI_T_BIND_MPI_FILE or MPI_T_BIND_NO_OBJECT.
    #[must_use]
    pub fn bind(&self) -> c_int {
        match self.binding() {
            Binding::Communicator => abi::MPI_T_BIND_MPI_COMM,
            Binding::Window => abi::MPI_T_BIND_MPI_WIN,
            Binding::File => abi::MPI_T_BIND_MPI_FILE,
            Binding::Nothing => abi::MPI_T_BIND_NO_OBJECT,
        }
    }

    /// For whom it is.
    #[must_use]
    pub fn verbosity(&self) -> c_int {
        self.event.info().verbosity.code()
    }

    /// Its branch of the tree of categories.
    #[must_use]
    pub fn category(&self) -> Category {
        self.event.info().category
    }
}

/// A row of the paper's tables 3 to 5: names and elements are a promise to tools that know them,
/// so each is a type of its own.
struct PaperEventType {
    name: &'static str,
    event: Event,
    description: &'static str,
    elements: &'static [EventElement],
    filter: Filter,
    /// Whether the paper binds it to an object; if so there is a type for all objects too.
    bound: bool,
}

const REQUEST: &[EventElement] = &[EventElement::named(
    "request",
    "a number for the request, message or search: the same in all events of the pair",
    Field::Id,
)];
const SEARCHED: &[EventElement] = &[
    EventElement::named("source", "rank of the sender", Field::Peer),
    EventElement::named("tag", "tag of the message", Field::Tag),
];
const ARRIVED: &[EventElement] = &[
    EventElement::named("context id", "context id of the communicator", Field::Context),
    EventElement::named("source", "rank of the sender", Field::Peer),
    EventElement::named("tag", "tag of the message", Field::Tag),
    EventElement::named(
        "sequence number",
        "number of the message among those that have come from its sender on its communicator while somebody listened to arrivals there, from 0",
        Field::Sequence,
    ),
];

const TARGET: &[EventElement] =
    &[EventElement::named("target rank", "rank of the target in the window's group; -1: all", Field::Target)];
const ACCESS: &[EventElement] = &[
    EventElement::named("target rank", "rank of the target in the window's group", Field::Target),
    EventElement::named("remote address", "address in the target's process", Field::TargetAddress),
    EventElement::named("size", "bytes of the region", Field::Bytes),
];
const NETWORK: &[EventElement] = &[
    EventElement::named("network-op type", "which one-sided operation", Field::RmaOperation),
    EventElement::named("target rank", "rank of the target in the job", Field::World),
    EventElement::named("size", "bytes of the region", Field::Bytes),
    EventElement::named("local address", "address of the origin's bytes", Field::Buffer),
    EventElement::named("remote address", "address in the target's process", Field::TargetAddress),
];
const NONE: &[EventElement] = &[];

macro_rules! paper {
    ($($name:literal $event:ident $elements:ident $filter:expr, $bound:literal: $description:literal;)*) => {
        &[$(PaperEventType {
            name: $name,
            event: Event::$event,
            description: $description,
            elements: $elements,
            filter: $filter,
            bound: $bound,
        }),*]
    };
}

/// Tables 3 to 5 of "The MPI_T Events Interface", in their order; before those of windows, what Open MPI's ob1 has
/// besides with the same elements. Open MPI's ob1 raises its request events where PERUSE has them; so do we.
static PAPER: &[PaperEventType] = paper! {
    "pml_ob1_message_arrived" MsgArrived ARRIVED Filter::All, true: "message arrived for match";
    "pml_ob1_search_posted_begin" SearchPostedQBegin SEARCHED Filter::All, true: "starting search of the posted receive queue";
    "pml_ob1_search_posted_end" SearchPostedQEnd SEARCHED Filter::All, true: "finished search of the posted receive queue";
    "pml_ob1_search_unexpected_begin" SearchUnexQBegin REQUEST Filter::All, true: "starting search of the unexpected message queue";
    "pml_ob1_search_unexpected_end" SearchUnexQEnd REQUEST Filter::All, true: "finished search of the unexpected message queue";
    "pml_ob1_posted_insert" ReqInsertInPostedQ REQUEST Filter::All, true: "added request to the posted receive queue";
    "pml_ob1_posted_remove" ReqRemoveFromPostedQ REQUEST Filter::All, true: "removed request from the posted receive queue";
    "pml_ob1_unex_insert" MsgInsertInUnexQ REQUEST Filter::All, true: "added message to the unexpected message queue";
    "pml_ob1_unex_remove" MsgRemoveFromUnexQ REQUEST Filter::All, true: "removed message from the unexpected message queue";
    "pml_ob1_transfer_begin" ReqXferBegin REQUEST Filter::All, true: "data transfer has begun for a request";
    "pml_ob1_transfer" ReqXferContinue REQUEST Filter::All, true: "data transfer goes on for a request";
    "pml_ob1_cancel" ReqRemoveFromPostedQ REQUEST Filter::Cancelled, true: "receive request was cancelled";
    "pml_ob1_free" ReqNotify REQUEST Filter::All, true: "the completion of a request was returned to the user, which frees the request unless it is persistent";
    "pml_ob1_request_activate" ReqActivate REQUEST Filter::All, true: "a request was activated";
    "pml_ob1_request_complete" ReqComplete REQUEST Filter::All, true: "a request is complete inside the library";
    "pml_ob1_receive_cancel" ReqRemoveFromPostedQ REQUEST Filter::Cancelled, true: "a receive request was cancelled";
    "osc_rdma_lock_acquired" WinLockAcquired TARGET Filter::All, true: "a lock on a remote peer was acquired";
    "osc_rdma_lock_released" WinLockReleased TARGET Filter::All, true: "a lock on a remote peer was released";
    "osc_rdma_put_started" WinRegionBegin ACCESS Filter::Of(RmaOperation::Put), true: "a put on a contiguous region has been started";
    "osc_rdma_put_complete" WinRegionEnd ACCESS Filter::Of(RmaOperation::Put), true: "a put on a contiguous region is complete";
    "osc_rdma_get_started" WinRegionBegin ACCESS Filter::Of(RmaOperation::Get), true: "a get on a contiguous region has been started";
    "osc_rdma_get_complete" WinRegionEnd ACCESS Filter::Of(RmaOperation::Get), true: "a get on a contiguous region is complete";
    "osc_rdma_flush_started" WinSyncBegin TARGET Filter::By(WindowSync::Flush), true: "a flush has started";
    "osc_rdma_flush_complete" WinSyncEnd TARGET Filter::By(WindowSync::Flush), true: "a flush has completed";
    "osc_rdma_pscw_expose_start" WinExposeBegin NONE Filter::All, true: "an exposure epoch has started";
    "osc_rdma_pscw_expose_complete" WinExposeEnd NONE Filter::All, true: "an exposure epoch has completed";
    "osc_rdma_pscw_access_start" WinAccessBegin TARGET Filter::All, true: "an access epoch has started";
    "osc_rdma_pscw_access_complete" WinAccessEnd TARGET Filter::All, true: "an access epoch has completed";
    "osc_rdma_rdma_fence" WinFenceEpoch NONE Filter::All, true: "a fence epoch has started";
    "btl_ugni_event_netop_rdma" WinRegionEnd NETWORK Filter::All, false: "an operation on a contiguous region of another rank's memory is complete";
};

/// All types; a type's place is its index. None where events are compiled out.
pub static TYPES: LazyLock<Vec<ToolEventType>> = LazyLock::new(|| {
    let own = |bound: bool| {
        CATALOG.iter().filter(move |row| !bound || row.binding != Binding::Nothing).map(move |row| {
            let suffix = if bound || row.binding == Binding::Nothing { "" } else { ALL };
            let name = format!("{}{suffix}", row.name.to_string_lossy());
            ToolEventType::new(name, row.description, bound, None, row.event)
        })
    };
    let paper = |bound: bool| {
        PAPER.iter().filter(move |row| !bound || row.bound).map(move |row| {
            let name = format!("{}{}", row.name, if bound || !row.bound { "" } else { ALL });
            ToolEventType::new(name, row.description, bound, Some(row), row.event)
        })
    };
    let all = own(false).chain(own(true)).chain(paper(true)).chain(paper(false));
    all.filter(|_| cfg!(feature = "peruse")).collect()
});

/// The type of an index.
#[must_use]
pub fn by_index(index: c_int) -> Option<&'static ToolEventType> {
    TYPES.get(usize::try_from(index).ok()?)
}

/// The index of a name. Another spelling that PERUSE has for an event is taken too.
#[must_use]
pub fn by_name(name: &str) -> Option<usize> {
    let found = |name: &str| TYPES.iter().position(|event_type| event_type.name == name);
    found(name).or_else(|| {
        let is_name = |alias: &&CStr| alias.to_bytes() == name.as_bytes();
        let row = CATALOG.iter().find(|row| row.aliases.iter().any(is_name))?;
        found(row.name.to_str().ok()?)
    })
}

fn enumeration(name: &str, elements: &[EventElement]) -> Enumeration {
    let items: Vec<EnumerationItem> = elements
        .iter()
        .enumerate()
        .map(|(index, element)| EnumerationItem { name: element.name, value: index as i32 })
        .collect();
    Enumeration { name: format!("elements of {name}").leak(), items: items.leak() }
}

/// Each element at the next multiple of its size.
fn displacements(elements: &[EventElement]) -> Box<[usize]> {
    let mut end = 0_usize;
    elements
        .iter()
        .map(|element| {
            let at = end.next_multiple_of(element.size());
            end = at + element.size();
            at
        })
        .collect()
}

#[cfg(all(test, feature = "peruse"))]
mod tests {
    use super::*;
    use crate::events::{EVENTS, Spec};
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_lead_back_to_their_index() {
        let mut seen = HashSet::new();
        for (index, event_type) in TYPES.iter().enumerate() {
            assert!(!event_type.name.is_empty() && !event_type.description.is_empty());
            assert!(seen.insert(event_type.name.clone()), "{:?} twice", event_type.name);
            assert_eq!(by_name(&event_type.name), Some(index));
        }
        assert_eq!(by_name("PERUSE_COMM_REQ"), None);
        assert_eq!(by_name(""), None);
    }

    #[test]
    fn the_first_types_are_every_event_of_the_table_without_an_object() {
        for (index, row) in CATALOG.iter().enumerate() {
            assert_eq!(TYPES[index].event, row.event);
            assert!(!TYPES[index].bound);
        }
        let bound = CATALOG.iter().filter(|row| row.binding != Binding::Nothing).count();
        let of_paper = PAPER.len() + PAPER.iter().filter(|row| row.bound).count();
        assert_eq!(TYPES.len(), EVENTS + bound + of_paper);
        let unbound =
            |event_type: &&ToolEventType| event_type.bound && event_type.binding() == Binding::Nothing;
        assert_eq!(TYPES.iter().filter(unbound).count(), 0);
    }

    #[test]
    fn other_spellings_of_peruse_lead_to_the_same_type() {
        let one = by_name("PERUSE_COMM_SEARCH_UNEX_QUEUE_BEGIN");
        assert!(one.is_some());
        assert_eq!(by_name("PERUSE_COMM_SEARCH_UNEX_Q_BEGIN"), one);
    }

    #[test]
    fn displacements_ascend_from_zero_without_overlap_and_are_aligned() {
        for event_type in TYPES.iter() {
            let mut end = 0;
            for (element, at) in event_type.elements.iter().zip(&event_type.displacements) {
                assert_eq!(at % element.size(), 0);
                assert!(*at >= end && at - end < 8, "{:?}", event_type.name);
                end = at + element.size();
            }
            assert_eq!(event_type.extent(), end);
            assert_eq!(event_type.names.items.len(), event_type.elements.len());
            assert!(event_type.elements.iter().all(|element| !element.name.is_empty()));
        }
    }

    #[test]
    fn a_copy_writes_each_element_at_its_place_and_nothing_else() {
        let spec = Spec { comm: 0x101, peer: -3, tag: 44, bytes: 1 << 33, ..Spec::NOTHING };
        let payload = EventPayload::Arrival { sequence: 0x1234_5678_9abc };
        let record = EventRecord { context: 6, payload, ..EventRecord::new(Event::MsgArrived, 7, &spec) };
        let event_type = &TYPES[by_name("pml_ob1_message_arrived").unwrap()];
        assert_eq!(&*event_type.displacements, [0, 4, 8, 16]);
        let mut image = [0xee_u8; 32];
        // SAFETY: 32 bytes are more than the extent of 24.
        unsafe { event_type.copy(&record, image.as_mut_ptr()) };
        assert_eq!(image[..4], 6_u32.to_ne_bytes());
        assert_eq!(image[4..8], (-3_i32).to_ne_bytes());
        assert_eq!(image[8..12], 44_i32.to_ne_bytes());
        assert_eq!(image[12..16], [0xee; 4], "padding is left as it is");
        assert_eq!(image[16..24], 0x1234_5678_9abc_u64.to_ne_bytes());
        assert_eq!(image[24..], [0xee; 8]);
    }

    #[test]
    fn a_description_is_a_line_and_explanations_fit_into_an_info_object() {
        for event_type in TYPES.iter() {
            assert!(event_type.description.len() <= 160, "{}", event_type.description);
            for element in &event_type.elements {
                assert!(element.explanation().len() < abi::MPI_MAX_INFO_VAL as usize, "{}", element.name);
            }
        }
        let operation = TYPES[0].elements.iter().find(|element| element.name == "operation").unwrap();
        assert!(operation.explanation().starts_with("send or receive (0 send, 1 recv, "));
    }

    #[test]
    fn the_papers_cancel_accepts_cancelled_receives_alone() {
        let cancel = &TYPES[by_name("pml_ob1_cancel").unwrap()];
        let remove = &TYPES[by_name("pml_ob1_posted_remove").unwrap()];
        let matched = EventRecord::new(Event::ReqRemoveFromPostedQ, 1, &Spec::NOTHING);
        let cancelled = EventRecord { payload: EventPayload::Cancelled, ..matched };
        assert!(!cancel.accepts(&matched) && cancel.accepts(&cancelled));
        assert!(remove.accepts(&matched) && remove.accepts(&cancelled));
    }
}
