//! Requests that are alive: what each is, whether it is active, and which memory it uses.

use super::buffers::{Access, Area};
use super::collectives::{self, Starts};
use super::{Kind, accesses, conflicts, function, is_on, overlaps, report, with};
use crate::abi::{MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_PROC_NULL};
use crate::arguments::Buffer;
use crate::coll::call::CollectiveOp;
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::events::CommEvents;
use crate::files::FileObject;
use crate::process::engine;
use crate::requests::{self, Named};
use core::cell::RefCell;
use core::ffi::c_int;
use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, ThreadId};

/// A call of a message: its text is made only where something is said of it.
#[derive(Clone)]
struct MessageCall {
    function: &'static str,
    comm: Arc<CommEvents>,
    one: Message,
}

/// One message of a call.
#[derive(Clone, Copy)]
struct Message {
    access: Access,
    /// The rank as the program has given it, and that in the job, if there is one.
    peer: (c_int, Option<u32>),
    tag: c_int,
    bytes: u64,
}

impl Message {
    fn of(comm: &Comm, half: Half<'_>, access: Access) -> Self {
        let Half { peer, tag, buffer } = half;
        let world = comm.has_peer(peer).then(|| comm.world_rank_of(peer));
        let size = crate::datatypes::any(buffer.datatype).map_or(0, |datatype| datatype.size());
        let bytes = usize::try_from(buffer.count).unwrap_or(0).saturating_mul(size) as u64;
        Self { access, peer: (peer, world), tag, bytes }
    }

    /// The other rank and the tag, in words.
    fn envelope(&self) -> String {
        let direction = if self.access == Access::Read { "to" } else { "from" };
        let other = match self.peer {
            (MPI_ANY_SOURCE, _) => "from any rank".to_owned(),
            (MPI_PROC_NULL, _) => "MPI_PROC_NULL".to_owned(),
            (_, Some(world)) => format!("{direction} rank {world}"),
            (peer, None) => format!("rank {peer}"),
        };
        let tag = if self.tag == MPI_ANY_TAG { "any tag".to_owned() } else { format!("tag {}", self.tag) };
        format!("{other}, {tag}")
    }
}

impl MessageCall {
    fn of(comm: &Comm, peer: c_int, tag: c_int, buffer: &Buffer<'_>, access: Access) -> Self {
        let one = Message::of(comm, Half { peer, tag, buffer }, access);
        Self { function: function(), comm: comm.events.clone(), one }
    }
}

/// A call that made a request, with its arguments.
#[derive(Clone)]
enum Text {
    Made(String),
    Message(MessageCall),
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made(text) => f.write_str(text),
            Self::Message(MessageCall { function, comm, one }) => {
                let name = report::in_quotation_marks(&comm.about().name);
                write!(f, "{function} ({}, on {name}, {})", one.envelope(), report::bytes(one.bytes))
            }
        }
    }
}

thread_local! {
    /// Requests for which this thread's call waits, or which it tests.
    static ASKED: RefCell<Vec<usize>> = const { RefCell::new(vec![]) };
}

/// A request, as the checks know it.
struct LiveRequest {
    /// The call that made it, with its arguments.
    text: Text,
    kind: Kind,
    /// What it uses while it is active.
    areas: Vec<Area>,
    /// What it reads, as it was when it became active.
    sums: Vec<Option<u64>>,
    /// Whether a change of what it reads is looked for.
    summed: bool,
    /// The type in which it receives a message.
    receives: Option<Datatype>,
    /// Whether it is active, and whether it ever was.
    active: bool,
    ever_active: bool,
    /// Whether it has been cancelled since it was started.
    cancelled: bool,
    /// Whether a wait or test has asked for it while it was not.
    asked_in_vain: bool,
    /// The thread that is in a wait or test for it, and the function.
    asked_by: Option<(ThreadId, &'static str)>,
    /// How often it has been started, if it is for a collective operation.
    starts: Option<Starts>,
    /// Its partitions, if it sends some: its areas are those that are ready. Those of a receive are its areas.
    partitions: Option<Partitions>,
}

impl LiveRequest {
    /// What is wrong with a persistent request that was waited for and never started.
    fn never_started(&self) -> Option<String> {
        let text = &self.text;
        let is_it = self.asked_in_vain && !self.ever_active;
        is_it.then(|| format!("{text} was waited for and never started; call MPI_Start before"))
    }
}

/// The partitions of a send.
struct Partitions {
    /// The first one, and how many there are.
    first: Area,
    number: usize,
    /// Those that are ready, in the order of their areas.
    ready: Vec<usize>,
}

/// Requests that are alive, by handle.
#[derive(Default)]
pub struct Live(BTreeMap<usize, LiveRequest>);

impl Live {
    /// The call that made a request.
    pub fn text(&self, handle: usize) -> (String, Kind) {
        let text = self.0.get(&handle).map(|live| (live.text.to_string(), live.kind));
        text.unwrap_or_else(|| ("an operation".into(), Kind::Message))
    }

    /// The function that made the request of a message.
    pub fn maker(&self, handle: usize) -> Option<&'static str> {
        match &self.0.get(&handle)?.text {
            Text::Message(call) => Some(call.function),
            Text::Made(_) => None,
        }
    }

    /// Whether a request is for a message that is received.
    pub fn receives(&self, handle: usize) -> bool {
        self.0.get(&handle).is_some_and(|live| live.receives.is_some())
    }

    /// Says that a request has been cancelled: then it may be freed (MPI 5.0 §3.8.4).
    pub fn cancelled(&mut self, handle: usize) {
        if let Some(live) = self.0.get_mut(&handle) {
            live.cancelled = true;
        }
    }

    /// Says more of the call that made a request.
    pub fn rename(&mut self, handle: usize, text: String) {
        if let Some(live) = self.0.get_mut(&handle) {
            live.text = Text::Made(text);
        }
    }

    /// What is wrong with the requests that are there when MPI ends.
    pub fn left(&self) -> Vec<String> {
        let Ok(engine) = engine() else { return vec![] };
        let never_started = self.0.values().filter_map(LiveRequest::never_started);
        let left = self.0.iter().filter_map(|(handle, live)| {
            let text = &live.text;
            let persists = match requests::find(engine, *handle).ok()? {
                Named::Null => return None,
                Named::Message(request) if request.is_inactive() => true,
                Named::Message(_) => false,
                Named::Task(task) => task.is_persistent() && !task.is_active(),
            };
            Some(if persists {
                format!("the persistent request of {text} was never freed; call MPI_Request_free")
            } else {
                format!("{text} was never completed; call MPI_Wait or MPI_Test for its request")
            })
        });
        left.chain(never_started).collect()
    }
}

fn message_text(comm: &Comm, peer: c_int, tag: c_int, buffer: &Buffer<'_>, access: Access) -> Text {
    Text::Message(MessageCall::of(comm, peer, tag, buffer, access))
}

fn half_text(comm: &Comm, half: Half<'_>, access: Access) -> String {
    let message = Message::of(comm, half, access);
    format!("{}, {}", message.envelope(), report::bytes(message.bytes))
}

/// The type of a buffer into which a message is received.
fn receive_type(buffer: &Buffer<'_>, access: Access) -> Option<Datatype> {
    crate::datatypes::any(buffer.datatype).ok().filter(|_| access == Access::Write)
}

/// Says where a message that was received ends within a basic element: it was not sent in that type.
fn say_broken_element(datatype: &Datatype, bytes: usize, text: impl FnOnce() -> Text) {
    if datatype.elements_in(bytes).is_some() {
        return;
    }
    let name = match datatype.initial_name() {
        "" => "elements of its type",
        name => name,
    };
    let finding = format!(
        "{} has received {}, which is no whole number of {name}; give the send and its receive the same type",
        text(),
        report::bytes(bytes as u64)
    );
    with(|state| state.findings.say(finding));
}

/// A blocking call has received a message of so many bytes.
pub fn received(comm: &Comm, peer: c_int, tag: c_int, buffer: &Buffer<'_>, bytes: usize) {
    if let Some(datatype) = receive_type(buffer, Access::Write) {
        say_broken_element(&datatype, bytes, || message_text(comm, peer, tag, buffer, Access::Write));
    }
}

fn keep(
    handle: usize,
    (text, kind): (Text, Kind),
    areas: Vec<Area>,
    (summed, receives): (bool, Option<Datatype>),
    active: bool,
) {
    with(|state| {
        let live = LiveRequest {
            text,
            kind,
            areas,
            sums: vec![],
            summed,
            receives,
            active: false,
            ever_active: false,
            cancelled: false,
            asked_in_vain: false,
            asked_by: None,
            starts: None,
            partitions: None,
        };
        state.requests.0.insert(handle, live);
    });
    if active {
        started(handle);
    }
}

/// A call has made a request of which nothing more is known.
pub fn noted(handle: usize) {
    let is_known = with(|state| state.requests.0.contains_key(&handle));
    if is_known == Some(false) {
        let text = Text::Made(function().to_owned());
        keep(handle, (text, Kind::Message), vec![], (false, None), false);
    }
}

/// A call has made a request for a message; a persistent one is not active.
pub fn began_message(
    handle: usize,
    comm: &Comm,
    peer: c_int,
    tag: c_int,
    buffer: &Buffer<'_>,
    access: Access,
    persistent: bool,
) {
    let text = message_text(comm, peer, tag, buffer, access);
    let area = if peer == MPI_PROC_NULL { None } else { Area::of(buffer, access) };
    let receives = receive_type(buffer, access);
    keep(handle, (text, Kind::Message), area.into_iter().collect(), (true, receives), !persistent);
}

/// A blocking call of a message is about to begin.
pub fn blocking_message(comm: &Comm, peer: c_int, tag: c_int, buffer: &Buffer<'_>, access: Access) {
    if peer != MPI_PROC_NULL
        && let Some(area) = Area::of(buffer, access)
    {
        let text = || message_text(comm, peer, tag, buffer, access);
        conflicts(&[area], text);
    }
}

fn areas_of(op: &CollectiveOp, comm: &Comm) -> Vec<Area> {
    let access = |writes| if writes { Access::Write } else { Access::Read };
    let all = op.memory(comm).into_iter();
    all.filter_map(|(elements, writes)| Area::of_elements(&elements, access(writes))).collect()
}

fn operation_text(op: &CollectiveOp, comm: &Comm) -> Text {
    let arguments = op.outline(0).about().to_string();
    let arguments = if arguments.is_empty() { arguments } else { format!(" ({arguments})") };
    Text::Made(format!("{}{arguments} on {}", function(), report::name_of(comm)))
}

/// A call has made a request for a collective operation, which is active.
pub fn began_operation(handle: usize, comm: &Comm, op: &CollectiveOp) {
    keep(handle, (operation_text(op, comm), Kind::Message), areas_of(op, comm), (true, None), true);
}

/// A call has made a persistent request for a collective operation, and is compared with those of the other members.
pub fn began_persistent(handle: usize, comm: &Comm, op: &CollectiveOp) {
    let starts = collectives::compare(comm, op).map(|number| Starts::new(comm, number));
    keep(handle, (operation_text(op, comm), Kind::Message), areas_of(op, comm), (true, None), false);
    with(|state| state.requests.0.get_mut(&handle).map(|live| live.starts = starts));
}

/// A blocking collective operation is about to begin.
pub fn blocking_operation(comm: &Comm, op: &CollectiveOp) {
    conflicts(&areas_of(op, comm), || operation_text(op, comm));
}

/// Both halves of a combined send and receive are about to begin.
pub fn blocking_exchange(comm: &Comm, send: Half<'_>, recv: Half<'_>) {
    overlaps(&exchange_areas(Some(send), recv), || exchange_text(comm, send, recv));
}

fn exchange_areas(send: Option<Half<'_>>, recv: Half<'_>) -> Vec<Area> {
    let area = |half: Half<'_>, access| match half.peer {
        MPI_PROC_NULL => None,
        _ => Area::of(half.buffer, access),
    };
    let sent = send.and_then(|send| area(send, Access::Read));
    sent.into_iter().chain(area(recv, Access::Write)).collect()
}

fn exchange_text(comm: &Comm, send: Half<'_>, recv: Half<'_>) -> Text {
    let (sent, received) = (half_text(comm, send, Access::Read), half_text(comm, recv, Access::Write));
    Text::Made(format!("{} ({sent}; {received}, on {})", function(), report::name_of(comm)))
}

/// A call has made a request for both halves of a combined send and receive. What is sent from a copy is not used.
pub fn began_exchange(handle: usize, comm: &Comm, send: Option<Half<'_>>, recv: Half<'_>) {
    let text = match send {
        Some(send) => exchange_text(comm, send, recv),
        None => message_text(comm, recv.peer, recv.tag, recv.buffer, Access::Write),
    };
    let receives = receive_type(recv.buffer, Access::Write);
    keep(handle, (text, Kind::Message), exchange_areas(send, recv), (true, receives), true);
}

/// One half of a combined send and receive.
#[derive(Debug, Clone, Copy)]
pub struct Half<'a> {
    /// The rank at the other end.
    pub peer: c_int,
    /// The tag.
    pub tag: c_int,
    /// The elements.
    pub buffer: &'a Buffer<'a>,
}

/// A call has made a request for an access to a file.
pub fn began_file(handle: usize, file: &FileObject, buffer: &Buffer<'_>, access: Access) {
    let areas = Area::of(buffer, access).into_iter().collect();
    let text = Text::Made(accesses::file_text(file, buffer));
    keep(handle, (text, Kind::File), areas, (true, None), true);
}

/// A request has become active.
pub fn started(handle: usize) {
    let of_request = with(|state| {
        let live = state.requests.0.get(&handle)?;
        Some((live.areas.clone(), live.text.clone()))
    });
    let Some((areas, text)) = of_request.flatten() else { return };
    conflicts(&areas, || text.clone());
    with(|state| {
        let Some(live) = state.requests.0.get_mut(&handle) else { return };
        (live.active, live.ever_active, live.cancelled) = (true, true, false);
        if let Some(starts) = &mut live.starts {
            starts.times += 1;
        }
        live.sums = areas.iter().map(|area| if live.summed { area.sum() } else { None }).collect();
        areas.into_iter().for_each(|area| state.buffers.add(handle, area));
    });
}

/// This thread waits for requests, or tests them, until its call ends:
/// says of which another thread does so (MPI 5.0 §11.6.2).
pub fn asked(handles: &[usize]) {
    let own = thread::current().id();
    with(|state| {
        for handle in handles {
            let Some(live) = state.requests.0.get_mut(handle).filter(|live| live.active) else { continue };
            match live.asked_by {
                Some((thread, other)) if thread != own => {
                    let text = &live.text;
                    state.findings.say(format!(
                        "{} was called for the request of {text} while another thread was in {other} for it; let one thread wait for a request",
                        function()
                    ));
                }
                _ => {
                    live.asked_by = Some((own, function()));
                    ASKED.with_borrow_mut(|asked| asked.push(*handle));
                }
            }
        }
    });
}

/// The call of this thread ends, that may have asked for requests.
pub fn asked_no_more() {
    let asked = ASKED.take();
    if asked.is_empty() {
        return;
    }
    let own = thread::current().id();
    with(|state| {
        for handle in asked {
            // Another request may have the handle by now.
            if let Some(live) = state.requests.0.get_mut(&handle)
                && live.asked_by.is_some_and(|(thread, _)| thread == own)
            {
                live.asked_by = None;
            }
        }
    });
}

/// The program has taken the outcome of a request, which stays if it persists.
/// A receive has so many bytes, if it went well.
pub fn ended(handle: usize, persists: bool, bytes: Option<usize>) {
    let received = with(|state| {
        let live = state.requests.0.get(&handle)?;
        Some((live.receives.clone()?, bytes?, live.text.clone()))
    });
    if let Some((datatype, bytes, text)) = received.flatten() {
        say_broken_element(&datatype, bytes, || text);
    }
    with(|state| {
        let Some(live) = state.requests.0.get_mut(&handle) else { return };
        live.asked_in_vain |= !live.active;
        live.active = false;
        let sums = core::mem::take(&mut live.sums);
        state.buffers.remove(handle, &live.areas);
        if let Some(at) = Area::first_changed(&live.areas, &sums) {
            let text = &live.text;
            state.findings.say(match &live.partitions {
                None => format!("the buffer of {text} was changed before it was complete; wait for it before"),
                Some(partitions) => format!(
                    "partition {} of {text} was changed after it was ready and before the send was complete; wait for the send before",
                    partitions.ready[at]
                ),
            });
        }
        if let Some(partitions) = &mut live.partitions {
            partitions.ready.clear();
            live.areas.clear();
        }
        if !persists {
            state.requests.0.remove(&handle);
        }
        accesses::request_ended(state, handle);
    });
}

/// A call has made a request for a send in so many partitions, the first of which lies in `buffer`.
pub fn began_partitioned(
    handle: usize,
    comm: &Comm,
    peer: c_int,
    tag: c_int,
    buffer: &Buffer<'_>,
    number: usize,
) {
    let text = message_text(comm, peer, tag, buffer, Access::Read);
    keep(handle, (text, Kind::Message), vec![], (true, None), false);
    if peer != MPI_PROC_NULL
        && let Some(first) = Area::of(buffer, Access::Read)
    {
        let partitions = Partitions { first, number, ready: vec![] };
        with(|state| state.requests.0.get_mut(&handle).map(|live| live.partitions = Some(partitions)));
    }
}

/// A call has made a request for a receive in so many partitions, the first of which goes to `buffer`.
pub fn began_partitioned_receive(
    handle: usize,
    comm: &Comm,
    peer: c_int,
    tag: c_int,
    buffer: &Buffer<'_>,
    number: usize,
) {
    let text = message_text(comm, peer, tag, buffer, Access::Write);
    let first = if peer == MPI_PROC_NULL { None } else { Area::of(buffer, Access::Write) };
    let areas = (0..number).map_while(|partition| first.as_ref()?.behind(partition)).collect();
    keep(handle, (text, Kind::Message), areas, (false, None), false);
}

/// A partition of a receive has arrived: the program may use it from now on.
pub fn arrived(handle: usize, partition: usize) {
    with(|state| {
        let live = state.requests.0.get(&handle).filter(|live| live.active)?;
        state.buffers.remove(handle, core::slice::from_ref(live.areas.get(partition)?));
        Some(())
    });
}

/// A partition is about to be ready, and the program leaves it alone from now on.
pub fn ready(handle: usize, partition: usize) {
    let area = with(|state| {
        let live = state.requests.0.get(&handle)?;
        let partitions = live.partitions.as_ref()?;
        let is_new = partition < partitions.number && !partitions.ready.contains(&partition);
        Some((partitions.first.behind(partition).filter(|_| is_new)?, live.text.clone()))
    });
    let Some((area, text)) = area.flatten() else { return };
    conflicts(core::slice::from_ref(&area), || text.clone());
    let sum = area.sum();
    with(|state| {
        let Some(live) = state.requests.0.get_mut(&handle) else { return };
        let Some(partitions) = &mut live.partitions else { return };
        partitions.ready.push(partition);
        live.sums.push(sum);
        live.areas.push(area.clone());
        state.buffers.add(handle, area);
    });
}

/// The program has freed a request. Of an active one nobody can say when it is over.
pub fn freed(handle: usize) {
    with(|state| {
        if let Some(live) = state.requests.0.remove(&handle) {
            state.buffers.remove(handle, &live.areas);
            if live.active && !live.cancelled && live.receives.is_some() {
                let text = &live.text;
                state.findings.say(format!(
                    "{text} was freed while it was active, so that nothing says when its message has come; call MPI_Wait instead, or MPI_Cancel before"
                ));
            }
            if let Some(left) = live.never_started() {
                state.findings.say(left);
            }
            if let Some(starts) = live.starts {
                starts.compare(state);
            }
        }
    });
}

/// Nothing is started any more: compares how often what was never freed has been.
pub fn compare_starts() {
    with(|state| {
        let all: Vec<Starts> = state.requests.0.values_mut().filter_map(|live| live.starts.take()).collect();
        all.iter().for_each(|starts| starts.compare(state));
    });
}

/// The program has asked whether requests are over, and may use the buffers of those that are.
pub fn seen() {
    if is_on() {
        with(|state| {
            state.buffers.clear();
            state.requests.0.values_mut().for_each(|live| live.sums.fill(None));
            state.accesses.forget_sums();
        });
    }
}
