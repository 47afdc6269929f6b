//! Poll sets: queues and counters that one call asks whether something has happened.

use crate::api::*;
use crate::objects::cntr::Cntr;
use crate::objects::cq::Cq;
use crate::objects::domain::Domain;
use crate::objects::object::{Object, Tables, Users, close, give, table, with};
use crate::protocol::queue::{Awaited, Counter, Queue};
use libc::{c_int, c_void};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What a set asks.
#[derive(Debug)]
enum Asked {
    Queue(Rc<Queue>),
    /// With its values and errors as the caller has learned of them last.
    Counter(Rc<Counter>, Cell<(u64, u64)>),
}

impl Asked {
    /// Makes progress. Returns whether a queue is not empty, or a counter has changed since the caller was here last.
    fn has_something(&self) -> bool {
        match self {
            Asked::Queue(queue) => {
                queue.bound.progress();
                queue.is_there()
            }
            Asked::Counter(counter, known) => {
                counter.bound.progress();
                let now = counter.now();
                known.replace(now) != now
            }
        }
    }
}

/// A queue or a counter of a set.
#[derive(Debug)]
struct Member {
    /// The object, which closes after it was taken out.
    fid: *mut Fid,
    asked: Asked,
    _user: Users,
}

/// The members of a set.
#[derive(Debug, Default)]
pub struct Members(RefCell<Vec<Member>>);

/// A poll set.
type Poll = Object<Tables<1>, Members>;

static FID: FidOps = FidOps::new([close::<Tables<1>, Members> as *const (), NONE, NONE, NONE, NONE, NONE]);
static POLL: Table<3> = Table::new([poll as *const (), add as *const (), delete as *const ()]);

/// `poll_open` of a domain.
///
/// # Safety
///
/// As fi_poll(3) says.
pub unsafe extern "C" fn open(domain: *mut Fid, attr: *const u64, out: *mut *mut Fid) -> c_int {
    // SAFETY: caller rule 3: null or a valid structure, which begins with its flags.
    if unsafe { attr.as_ref() }.is_some_and(|&flags| flags != 0) {
        return -FI_EINVAL;
    }
    // SAFETY: caller rule 1: a domain of ours; caller rule 3: a place for the object.
    unsafe {
        let ties = with(domain, |domain: &Domain| domain.ties());
        give(FI_CLASS_POLL, &FID, [table(&POLL)], ties, Members::default(), std::ptr::null_mut(), out)
    }
}

/// Writes the contexts of members that may have something. Returns how many.
unsafe extern "C" fn poll(set: *mut Fid, contexts: *mut *mut c_void, count: c_int) -> c_int {
    let poll = |set: &Poll| {
        let members = set.value.0.borrow();
        let room = usize::try_from(count).unwrap_or(0);
        let found = members.iter().filter(|member| member.asked.has_something()).take(room);
        // SAFETY: caller rule 3: `count` places. A member's object is open.
        found.enumerate().map(|(at, member)| unsafe { *contexts.add(at) = (*member.fid).context }).count()
    };
    // SAFETY: caller rule 1: a poll set of ours.
    unsafe { with(set, poll) as c_int }
}

unsafe extern "C" fn add(set: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    if flags != 0 {
        return -FI_EINVAL;
    }
    let add = |set: &Poll| {
        // SAFETY: caller rule 1: an object, and its class says which of ours it is.
        let (asked, user) = unsafe {
            match (*other).class {
                FI_CLASS_CQ => {
                    let queue = &*other.cast::<Cq>();
                    set.check_domain(queue)?;
                    (Asked::Queue(Rc::clone(&queue.value)), queue.users.clone())
                }
                FI_CLASS_CNTR => {
                    let counter = &*other.cast::<Cntr>();
                    set.check_domain(counter)?;
                    let known = Cell::new(counter.value.now());
                    (Asked::Counter(Rc::clone(&counter.value), known), counter.users.clone())
                }
                _ => return Err(FI_EINVAL),
            }
        };
        let mut members = set.value.0.borrow_mut();
        if !members.iter().any(|member| member.fid == other) {
            members.push(Member { fid: other, asked, _user: user });
        }
        Ok(())
    };
    // SAFETY: caller rule 1: a poll set of ours.
    unsafe { with(set, add) }.map_or_else(|error: c_int| -error, |()| 0)
}

unsafe extern "C" fn delete(set: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    if flags != 0 {
        return -FI_EINVAL;
    }
    let delete = |set: &Poll| {
        let mut members = set.value.0.borrow_mut();
        let before = members.len();
        members.retain(|member| member.fid != other);
        members.len() < before
    };
    // SAFETY: caller rule 1: a poll set of ours.
    if unsafe { with(set, delete) } { 0 } else { -FI_EINVAL }
}
