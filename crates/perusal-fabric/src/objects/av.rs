//! Address vectors: fi_addr_t is the place in a table, which grows while endpoints run.

use crate::api::*;
use crate::names::name::{NAME_BYTES, Name, SCHEME};
use crate::names::service::Service;
use crate::objects::domain::Domain;
use crate::objects::object::{Object, Tables, close, give, table, with};
use crate::progress::endpoint::Endpoint;
use libc::{c_char, c_int, c_void};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::{Rc, Weak};

/// The table, and the endpoints that use it.
#[derive(Debug, Default)]
pub struct Vector {
    /// Each with what completions call it.
    entries: RefCell<Vec<Option<(Name, u64)>>>,
    /// Completions name whom they come from by what fi_av_set_user_id says alone (FI_AV_USER_ID).
    has_own_ids: bool,
    /// The places of entries that were removed: the lowest serves next (fi_av(3)).
    unused: RefCell<BTreeSet<u64>>,
    endpoints: RefCell<Vec<Weak<RefCell<Endpoint>>>>,
}

impl Vector {
    /// Has an endpoint learn all addresses, and those that come.
    pub fn bind(&self, endpoint: &Rc<RefCell<Endpoint>>) {
        for (at, entry) in self.entries.borrow().iter().enumerate() {
            if let Some((name, source)) = entry {
                endpoint.borrow_mut().core.introduce_as(at as u64, *name, *source);
            }
        }
        let mut endpoints = self.endpoints.borrow_mut();
        endpoints.retain(|one| one.strong_count() > 0);
        endpoints.push(Rc::downgrade(endpoint));
    }

    fn each(&self, mut f: impl FnMut(&mut Endpoint)) {
        for endpoint in self.endpoints.borrow().iter().filter_map(Weak::upgrade) {
            f(&mut endpoint.borrow_mut());
        }
    }

    /// Inserts an endpoint, which completions are to call `id`, or else by its number.
    fn insert(&self, name: Name, id: Option<u64>) -> u64 {
        let mut entries = self.entries.borrow_mut();
        let at = self.unused.borrow_mut().pop_first().unwrap_or_else(|| {
            entries.push(None);
            (entries.len() - 1) as u64
        });
        let source = if self.has_own_ids { FI_ADDR_NOTAVAIL } else { id.unwrap_or(at) };
        entries[at as usize] = Some((name, source));
        self.each(|endpoint| endpoint.core.introduce_as(at, name, source));
        at
    }

    /// Has completions call an endpoint `id`.
    ///
    /// # Errors
    ///
    /// FI_EINVAL if the vector has no such number, or was not opened for that.
    fn set_id(&self, number: u64, id: u64) -> Result<(), c_int> {
        let mut entries = self.entries.borrow_mut();
        let entry = usize::try_from(number).ok().and_then(|at| entries.get_mut(at)?.as_mut());
        let (true, Some(entry)) = (self.has_own_ids, entry) else { return Err(FI_EINVAL) };
        entry.1 = id;
        self.each(|endpoint| endpoint.core.rename(number, id));
        Ok(())
    }

    /// The flags of a call that inserts.
    ///
    /// # Errors
    ///
    /// FI_EBADFLAGS for such as are not offered; FI_EINVAL where identifiers are given that fi_av_set_user_id sets, or
    /// none are there.
    fn check_insertion(&self, flags: u64, numbers: *const u64) -> Result<(), c_int> {
        if flags & FI_AUTH_KEY != 0 {
            return Err(FI_EBADFLAGS);
        }
        let misplaced = flags & FI_AV_USER_ID != 0 && (self.has_own_ids || numbers.is_null());
        if misplaced { Err(FI_EINVAL) } else { Ok(()) }
    }
}

/// An address vector.
pub type Av = Object<Tables<1>, Rc<Vector>>;

static FID: FidOps =
    FidOps::new([close::<Tables<1>, Rc<Vector>> as *const (), bind as *const (), NONE, NONE, NONE, NONE]);
static AV: Table<10> = Table::new([
    insert as *const (),
    insert_service as *const (),
    insert_symmetric as *const (),
    remove as *const (),
    lookup as *const (),
    straddr as *const (),
    NONE,
    NONE,
    NONE,
    set_user_id as *const (),
]);

/// `av_open` of a domain.
///
/// # Safety
///
/// As fi_av_open(3) says.
pub unsafe extern "C" fn open(
    domain: *mut Fid,
    attr: *mut AvAttr,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    // SAFETY: caller rule 3: a valid structure.
    let attr = unsafe { &mut *attr };
    // FI_EVENT (as FI_COMPLETION) asks for insertions to be reported to an event queue, a name (FI_READ wants one) for
    // a table that processes share.
    if attr.flags & (FI_COMPLETION | FI_READ) != 0 || !attr.name.is_null() || attr.rx_ctx_bits != 0 {
        return -FI_ENOSYS;
    }
    if attr.kind == 0 {
        attr.kind = FI_AV_TABLE;
    }
    if attr.kind != FI_AV_TABLE && attr.kind != FI_AV_MAP {
        return -FI_EINVAL;
    }
    let vector = Vector { has_own_ids: attr.flags & FI_AV_USER_ID != 0, ..Vector::default() };
    // SAFETY: caller rule 1: a domain of ours; caller rule 3: a place for the object.
    unsafe {
        let ties = with(domain, |domain: &Domain| domain.ties());
        give(FI_CLASS_AV, &FID, [table(&AV)], ties, Rc::new(vector), context, out)
    }
}

unsafe extern "C" fn bind(_: *mut Fid, _: *mut Fid, _: u64) -> c_int {
    -FI_ENOSYS
}

/// FI_SYNC_ERR: errors of single addresses go to an array of the caller's.
const FI_SYNC_ERR: u64 = 1 << 58;

unsafe extern "C" fn insert(
    av: *mut Fid,
    addresses: *const u8,
    count: usize,
    out: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    let insert = |av: &Av| {
        if let Err(error) = av.value.check_insertion(flags, out) {
            return -error;
        }
        let mut inserted = 0;
        let answers = Answers::new(out, flags, context);
        // SAFETY: caller rule 3: `count` addresses.
        let mut texts = unsafe { Texts::new(addresses, count) };
        for at in 0..count {
            let name = texts.take().ok_or(FI_EINVAL).and_then(named);
            inserted += c_int::from(name.is_ok());
            // SAFETY: caller rule 3: `count` places, or none; and as many for errors where it asks for them.
            unsafe { answers.insert(at, av, name) };
        }
        inserted
    };
    // SAFETY: caller rule 1: an address vector of ours.
    unsafe { with(av, insert) }
}

/// Where a call says what became of its addresses: their numbers, and the errors of those that have none.
struct Answers {
    /// Before, they may be what completions are to call the endpoints (FI_AV_USER_ID).
    numbers: *mut u64,
    are_ids: bool,
    errors: *mut c_int,
}

impl Answers {
    fn new(numbers: *mut u64, flags: u64, context: *mut c_void) -> Self {
        let errors = if flags & FI_SYNC_ERR != 0 { context.cast() } else { std::ptr::null_mut() };
        Self { numbers, are_ids: flags & FI_AV_USER_ID != 0, errors }
    }

    /// Inserts address `at` of the call, if there is one.
    ///
    /// # Safety
    ///
    /// There are as many places for numbers and for errors, or none; those for numbers hold identifiers where the flags
    /// of the call say so.
    unsafe fn insert(&self, at: usize, av: &Av, name: Result<Name, c_int>) {
        // SAFETY: places that are there may be written to, as the caller promises.
        unsafe {
            let id = self.are_ids.then(|| *self.numbers.add(at));
            let number = name.map_or(FI_ADDR_NOTAVAIL, |name| av.value.insert(name, id));
            if !self.numbers.is_null() {
                *self.numbers.add(at) = number;
            }
            if !self.errors.is_null() {
                *self.errors.add(at) = name.err().unwrap_or(0);
            }
        }
    }
}

/// The addresses of a call: an array of pointers to texts, as fi_av(3) says, or texts one behind the other, as
/// libfabric's shm takes them and fi_getname gives one. Each ends with a zero.
struct Texts {
    next: *const u8,
    are_apart: bool,
}

impl Texts {
    /// # Safety
    ///
    /// There are `count` addresses at `at`.
    unsafe fn new(at: *const u8, count: usize) -> Self {
        /// Where no process has memory, and where it ends; the byte above may be a tag of the pointer's.
        const PLACES: std::ops::Range<u64> = 4096..1 << 48;
        // SAFETY: a text of ours has more than eight bytes, and so have the pointers.
        // It is compared up to the first byte that differs.
        let is_text = || unsafe { libc::strncmp(at.cast(), SCHEME.as_ptr().cast(), SCHEME.len()) == 0 };
        // SAFETY: as many bytes as a pointer has.
        let first = || unsafe { at.cast::<u64>().read_unaligned() } << 8 >> 8;
        // No text of another provider's has a zero as its seventh byte, unless it ends there.
        Self { next: at, are_apart: count > 0 && !is_text() && PLACES.contains(&first()) }
    }

    /// The next address; `None` where there is no text.
    fn take(&mut self) -> Option<&[u8]> {
        // SAFETY: as many texts or pointers as `new` was promised, each text with a zero at its end.
        unsafe {
            let text =
                if self.are_apart { self.next.cast::<*const u8>().read_unaligned() } else { self.next };
            let len = if text.is_null() { 0 } else { libc::strnlen(text.cast(), NAME_BYTES) };
            self.next = self.next.add(if self.are_apart { size_of::<*const u8>() } else { len + 1 });
            (!text.is_null()).then(|| std::slice::from_raw_parts(text, len))
        }
    }
}

/// The endpoint with this address, which may be that of a service: then who has the name now.
fn named(bytes: &[u8]) -> Result<Name, c_int> {
    if let Some(name) = Name::parse(bytes) {
        return Ok(name);
    }
    Service::parse(bytes).ok_or(FI_EINVAL)?.find().map(Name::from)
}

unsafe extern "C" fn insert_service(
    av: *mut Fid,
    node: *const c_char,
    service: *const c_char,
    out: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: caller rule 3: C strings, or null.
    let asked = unsafe { crate::objects::info::asked(node, service, 0) };
    let insert = |av: &Av| {
        if let Err(error) = av.value.check_insertion(flags, out) {
            return -error;
        }
        let name = asked.as_deref().ok_or(FI_EADDRNOTAVAIL).and_then(named);
        // SAFETY: caller rule 3: a place for the number, or none; and one for the error where it is asked for.
        unsafe { Answers::new(out, flags, context).insert(0, av, name) };
        name.map_or_else(|error| -error, |_| 1)
    };
    // SAFETY: caller rule 1: an address vector of ours.
    unsafe { with(av, insert) }
}

/// The name `by` numbers behind another one, of a node or a service: an address of the internet, or a name that ends
/// with a number, which keeps its digits. `None` if it is neither.
fn name_behind(name: &CStr, by: usize) -> Option<CString> {
    if by == 0 {
        return Some(name.into());
    }
    let text = name.to_str().ok()?;
    let behind = match text.parse() {
        Ok(IpAddr::V4(ip)) => Ipv4Addr::from(u32::from(ip).checked_add(by.try_into().ok()?)?).to_string(),
        Ok(IpAddr::V6(ip)) => Ipv6Addr::from(u128::from(ip).checked_add(by as u128)?).to_string(),
        Err(_) => {
            let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
            let (stem, number) = text.split_at(text.len() - digits);
            let number = number.parse::<u64>().ok()?.checked_add(by as u64)?;
            format!("{stem}{number:0digits$}")
        }
    };
    CString::new(behind).ok()
}

/// All services of a node come before the next node.
unsafe extern "C" fn insert_symmetric(
    av: *mut Fid,
    node: *const c_char,
    nodes: usize,
    service: *const c_char,
    services: usize,
    out: *mut u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: caller rule 3: C strings, or null.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    let (node, service) = (text(node), text(service));
    let is_one = |text: Option<&CStr>, count: usize| text.is_some() || count == 1;
    if !is_one(node, nodes) || !is_one(service, services) || nodes.checked_mul(services).is_none() {
        return -FI_EINVAL;
    }
    let find = |at: usize| {
        let behind = |name: Option<&CStr>, by| name.map(|name| name_behind(name, by).ok_or(FI_EINVAL));
        let node = behind(node, at / services).transpose()?;
        let service = behind(service, at % services).transpose()?;
        let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        // SAFETY: C strings that are there as long as the call, or null.
        let asked = unsafe { crate::objects::info::asked(pointer(&node), pointer(&service), 0) };
        named(&asked.ok_or(FI_EADDRNOTAVAIL)?)
    };
    let insert = |av: &Av| {
        if let Err(error) = av.value.check_insertion(flags, out) {
            return -error;
        }
        let answers = Answers::new(out, flags, context);
        let mut inserted = 0;
        for at in 0..nodes * services {
            let name = find(at);
            inserted += c_int::from(name.is_ok());
            // SAFETY: caller rule 3: as many places as nodes and services, or none; and as many for errors.
            unsafe { answers.insert(at, av, name) };
        }
        inserted
    };
    // SAFETY: caller rule 1: an address vector of ours.
    unsafe { with(av, insert) }
}

unsafe extern "C" fn remove(av: *mut Fid, numbers: *const u64, count: usize, flags: u64) -> c_int {
    if flags & (FI_AV_USER_ID | FI_AUTH_KEY) != 0 {
        return -FI_EBADFLAGS;
    }
    let remove = |av: &Av| {
        for at in 0..count {
            // SAFETY: caller rule 3: `count` numbers.
            let number = unsafe { *numbers.add(at) };
            match av.value.entries.borrow_mut().get_mut(number as usize) {
                Some(entry @ Some(_)) => *entry = None,
                _ => return -FI_EINVAL,
            }
            av.value.unused.borrow_mut().insert(number);
            av.value.each(|endpoint| endpoint.core.forget(number));
        }
        0
    };
    // SAFETY: caller rule 1: an address vector of ours.
    unsafe { with(av, remove) }
}

unsafe extern "C" fn set_user_id(av: *mut Fid, number: u64, id: u64, flags: u64) -> c_int {
    if flags != 0 {
        return -FI_EBADFLAGS;
    }
    // SAFETY: caller rule 1: an address vector of ours.
    unsafe { with(av, |av: &Av| av.value.set_id(number, id)) }.map_or_else(|error| -error, |()| 0)
}

unsafe extern "C" fn lookup(av: *mut Fid, number: u64, out: *mut u8, len: *mut usize) -> c_int {
    let lookup = |av: &Av| {
        let Some((name, _)) = av.value.entries.borrow().get(number as usize).copied().flatten() else {
            return -FI_EINVAL;
        };
        let bytes = name.to_bytes();
        // SAFETY: caller rule 3: `*len` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), out, bytes.len().min(*len));
            *len = bytes.len();
        }
        0
    };
    // SAFETY: caller rule 1: an address vector of ours.
    unsafe { with(av, lookup) }
}

unsafe extern "C" fn straddr(
    _: *mut Fid,
    address: *const u8,
    out: *mut c_char,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: caller rule 3: an address, which ends with a zero, and `*len` bytes.
    unsafe {
        let text = libc::strnlen(address.cast(), NAME_BYTES);
        if *len > 0 {
            let fits = text.min(*len - 1);
            std::ptr::copy_nonoverlapping(address, out.cast(), fits);
            *out.add(fits) = 0;
        }
        *len = text + 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_end_with_a_number_follow_each_other() {
        for (name, by, behind) in [
            (c"7000", 3, Some(c"7003")),
            (c"host09", 1, Some(c"host10")),
            (c"host099", 902, Some(c"host1001")),
            (c"10.1.1.255", 1, Some(c"10.1.2.0")),
            (c"fe80::ffff", 1, Some(c"fe80::1:0")),
            (c"localhost", 0, Some(c"localhost")),
            (c"localhost", 1, None),
            (c"255.255.255.255", 1, None),
            (c"18446744073709551615", 1, None),
            (c"", 1, None),
        ] {
            assert_eq!(name_behind(name, by).as_deref(), behind, "{name:?} {by}");
        }
    }
}
