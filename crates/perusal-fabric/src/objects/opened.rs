//! The fabrics and domains of this process that are open. fi_getinfo names those that its caller can go on with
//! (fi_fabric(3), fi_domain(3)).

use crate::api::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a domain was opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// One thread at a time uses the domain's objects (FI_THREAD_DOMAIN).
    pub one_thread: bool,
    /// Progress needs no calls (FI_PROGRESS_AUTO).
    pub automatic: bool,
    /// FI_MR_VIRT_ADDR, FI_MR_PROV_KEY.
    pub registration: i32,
}

impl Modes {
    /// Those of a domain that is opened with these attributes.
    pub fn of(attr: Option<&DomainAttr>) -> Self {
        let threading = attr.map_or(FI_THREAD_SAFE, |attr| attr.threading);
        let registration = registration(attr.map_or(0, |attr| attr.mr_mode));
        let automatic = attr.is_some_and(|attr| attr.data_progress == FI_PROGRESS_AUTO);
        Self { one_thread: threading == FI_THREAD_DOMAIN, automatic, registration }
    }
}

/// The modes of registration that a caller must keep to.
pub fn registration(mr_mode: i32) -> i32 {
    let all = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
    if mr_mode == FI_MR_BASIC { all } else { mr_mode & all }
}

/// An object that is open.
#[derive(Debug, Clone, Copy)]
struct Entry {
    number: u64,
    /// The object, and its fabric, as addresses.
    fid: usize,
    fabric: usize,
    /// The version of the interface that the fabric was opened with.
    version: u32,
    /// Of a domain.
    modes: Option<Modes>,
}

#[derive(Debug)]
struct All {
    last: u64,
    entries: Vec<Entry>,
}

/// In the order in which they were opened.
static ALL: Mutex<All> = Mutex::new(All { last: 0, entries: Vec::new() });

fn all() -> MutexGuard<'static, All> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of a fabric or a domain among those that are open. It is given up when this is dropped.
#[derive(Debug)]
pub struct Opened(u64);

impl Opened {
    /// A place.
    pub fn new() -> Self {
        let mut all = all();
        all.last += 1;
        Self(all.last)
    }

    /// This fabric has the place `number`.
    pub fn tell_fabric(number: u64, fid: *mut Fid, version: u32) {
        let fid = fid.expose_provenance();
        all().entries.push(Entry { number, fid, fabric: fid, version, modes: None });
    }

    /// This domain has the place `number`.
    pub fn tell_domain(number: u64, fid: *mut Fid, fabric: *mut Fid, version: u32, modes: Modes) {
        let (fid, fabric) = (fid.expose_provenance(), fabric.addr());
        all().entries.push(Entry { number, fid, fabric, version, modes: Some(modes) });
    }

    /// The place's number.
    pub fn number(&self) -> u64 {
        self.0
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        all().entries.retain(|one| one.number != self.0);
    }
}

/// What a caller of fi_getinfo asks for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// An open fabric, an open domain, or null.
    pub fabric: *mut Fid,
    pub domain: *mut Fid,
    pub version: u32,
    /// Its own threads use objects one at a time.
    pub one_thread: bool,
    /// It counts on progress without calls.
    pub automatic: bool,
    /// It keeps to these modes of registration, if a domain wants that.
    pub allows: i32,
    /// It is to keep to these modes, unless it names a domain that wants others.
    pub offered: i32,
}

/// The fabric and the domain that it can go on with, or null, and the domain's modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub fabric: *mut Fid,
    pub domain: *mut Fid,
    pub modes: Option<Modes>,
}

/// Finds the open fabric and the open domain that suit a caller: those that it asks for, or the first ones. `None` if
/// what it asks for is not open, or does not suit it.
pub fn find(asked: &Asked) -> Option<Found> {
    find_among(&all().entries, asked)
}

fn find_among(entries: &[Entry], asked: &Asked) -> Option<Found> {
    let is = |entry: &Entry, asked: *mut Fid| asked.is_null() || entry.fid == asked.addr();
    let fits =
        |modes: Modes| (asked.one_thread || !modes.one_thread) && (modes.automatic || !asked.automatic);
    let found = |fabric: Option<&Entry>, domain: Option<&Entry>| {
        let [fabric, domain_fid] = [fabric, domain].map(|entry| {
            entry.map_or(std::ptr::null_mut(), |entry| std::ptr::with_exposed_provenance_mut(entry.fid))
        });
        Found { fabric, domain: domain_fid, modes: domain.and_then(|entry| entry.modes) }
    };
    if !asked.domain.is_null() {
        let domain = entries.iter().find(|entry| entry.modes.is_some() && is(entry, asked.domain))?;
        let fabric = entries.iter().find(|entry| entry.fid == domain.fabric)?;
        let modes = domain.modes?;
        let suits = is(fabric, asked.fabric) && fits(modes) && modes.registration & !asked.allows == 0;
        return suits.then(|| found(Some(fabric), Some(domain)));
    }
    // Objects of a fabric that was opened with another version speak other structures:
    // only a caller that names it gets it.
    let suits = |entry: &Entry| {
        let speaks = !asked.fabric.is_null() || entry.version == asked.version;
        entry.modes.is_none() && is(entry, asked.fabric) && speaks
    };
    let Some(fabric) = entries.iter().find(|entry| suits(entry)) else {
        return asked.fabric.is_null().then(|| found(None, None));
    };
    let same = |modes: Modes| {
        fits(modes) && modes.registration == asked.offered && modes.automatic == asked.automatic
    };
    let of_fabric = |entry: &&Entry| entry.fabric == fabric.fid && entry.modes.is_some_and(same);
    Some(found(Some(fabric), entries.iter().find(of_fabric)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: u32 = 2 << 16;
    const OLD: u32 = 1 << 16 | 4;
    const BOTH: i32 = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;

    fn fid(at: usize) -> *mut Fid {
        std::ptr::without_provenance_mut(at)
    }

    fn fabric(fid: usize, version: u32) -> Entry {
        Entry { number: 0, fid, fabric: fid, version, modes: None }
    }

    fn domain(fid: usize, fabric: usize, one_thread: bool, registration: i32) -> Entry {
        Entry {
            number: 0,
            fid,
            fabric,
            version: NEW,
            modes: Some(Modes { one_thread, automatic: false, registration }),
        }
    }

    #[test]
    fn the_first_objects_that_suit_are_found_and_those_that_are_asked_for() {
        let entries = [
            fabric(1, OLD),
            fabric(2, NEW),
            domain(10, 1, false, BOTH),
            domain(20, 2, true, 0),
            domain(21, 2, false, BOTH),
            domain(22, 2, false, 0),
            fabric(3, NEW),
            domain(30, 3, false, 0),
        ];
        let none = Asked {
            fabric: fid(0),
            domain: fid(0),
            version: NEW,
            one_thread: false,
            automatic: false,
            allows: 0,
            offered: 0,
        };
        let find = |asked: Asked| {
            find_among(&entries, &asked).map(|found| (found.fabric.addr(), found.domain.addr()))
        };
        assert_eq!(find(none), Some((2, 22)));
        assert_eq!(find(Asked { one_thread: true, ..none }), Some((2, 20)));
        assert_eq!(find(Asked { allows: BOTH, offered: BOTH, ..none }), Some((2, 21)));
        assert_eq!(
            find(Asked { automatic: true, ..none }),
            Some((2, 0)),
            "no domain makes progress by itself"
        );
        assert_eq!(find(Asked { automatic: true, domain: fid(22), ..none }), None);
        assert_eq!(find(Asked { version: OLD, ..none }), Some((1, 0)));
        assert_eq!(find(Asked { version: NEW + 1, ..none }), Some((0, 0)));
        assert_eq!(find(Asked { fabric: fid(3), ..none }), Some((3, 30)));
        assert_eq!(find(Asked { fabric: fid(1), ..none }), Some((1, 0)), "of another version, but asked for");
        assert_eq!(find(Asked { fabric: fid(9), ..none }), None);
        assert_eq!(find(Asked { domain: fid(30), ..none }), Some((3, 30)));
        assert_eq!(find(Asked { domain: fid(30), fabric: fid(2), ..none }), None, "of another fabric");
        assert_eq!(
            find(Asked { domain: fid(21), ..none }),
            None,
            "its modes of registration are not kept to"
        );
        assert_eq!(find(Asked { domain: fid(21), allows: BOTH, ..none }), Some((2, 21)));
        assert_eq!(find(Asked { domain: fid(20), ..none }), None, "it has no lock");
        assert_eq!(find(Asked { domain: fid(20), one_thread: true, ..none }), Some((2, 20)));
        assert_eq!(find(Asked { domain: fid(2), ..none }), None, "a fabric");
    }
}
