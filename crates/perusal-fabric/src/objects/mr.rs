//! Memory registration, as the interface sees it.

use crate::api::*;
use crate::objects::cntr::Cntr;
use crate::objects::domain::{Domain, Shared};
use crate::objects::object::{Object, give, with};
use crate::operands::region::Region;
use libc::{c_int, c_void, iovec};
use std::rc::Rc;

/// Pieces of one registration.
pub const IOV_LIMIT: usize = 64;

/// What `struct fid_mr` has behind its `struct fid`.
#[repr(C)]
#[derive(Debug)]
struct Head {
    desc: *mut c_void,
    key: u64,
}

/// A registration; it ends when it is closed.
#[derive(Debug)]
struct Registration {
    region: Rc<Region>,
    shared: Rc<Shared>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.regions.remove(self.region.key);
        let generation = self.shared.regions.generation.get();
        self.shared.each(|endpoint| endpoint.borrow_mut().end_region(&self.region, generation));
    }
}

type Mr = Object<Head, Registration>;

static FID: FidOps = FidOps::new([
    crate::objects::object::close::<Head, Registration> as *const (),
    bind as *const (),
    control as *const (),
    NONE,
    NONE,
    NONE,
]);
/// The functions of a domain that register memory.
pub static TABLE: Table<3> = Table::new([reg as *const (), regv as *const (), regattr as *const ()]);

/// Binds a counter of accesses (FI_RMA_EVENT), or an endpoint:
/// the keys are the domain's, so every endpoint serves them.
unsafe extern "C" fn bind(mr: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    // SAFETY: caller rule 1: an object.
    let class = unsafe { (*other).class };
    let bind = |mr: &Mr| match class {
        FI_CLASS_EP if flags == 0 => 0,
        FI_CLASS_EP => -FI_EBADFLAGS,
        FI_CLASS_CNTR => {
            if flags & !(FI_REMOTE_READ | FI_REMOTE_WRITE) != 0 {
                return -FI_EBADFLAGS;
            }
            // SAFETY: its class says that it is one of ours.
            let cntr = unsafe { &*other.cast::<Cntr>() };
            if let Err(error) = mr.check_domain(cntr) {
                return -error;
            }
            mr.uses(&cntr.users);
            let counter = &cntr.value;
            mr.value.region.counters.borrow_mut().push((flags, Rc::clone(counter)));
            mr.value.shared.regions.counted.set(true);
            mr.value.shared.each(|endpoint| {
                counter.bound.add(&endpoint);
                endpoint.borrow_mut().count_accesses();
            });
            0
        }
        _ => -FI_EINVAL,
    };
    // SAFETY: caller rule 1: a registration of ours.
    unsafe { with(mr, bind) }
}

/// FI_ENABLE is asked for where registrations are bound first; FI_REFRESH where contents of the page tables are cached.
/// Neither has work here.
unsafe extern "C" fn control(mr: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    match command {
        FI_ENABLE | FI_REFRESH => 0,
        // SAFETY: caller rule 1: a registration of ours; caller rule 3: what the command wants.
        FI_GET_RAW_MR => unsafe { with(mr, |mr: &Mr| raw(&mr.value.region, &*argument.cast())) },
        _ => -FI_ENOSYS,
    }
}

/// `struct fi_mr_raw_attr`.
#[repr(C)]
struct RawAttr {
    flags: u64,
    base: *mut u64,
    key: *mut u8,
    len: *mut usize,
}

/// `struct fi_mr_map_raw`.
#[repr(C)]
struct MapRaw {
    flags: u64,
    base: u64,
    from: *const u8,
    len: usize,
    key: *mut u64,
}

/// fi_mr_raw_attr, which may be called of any registration: a raw key is the key, byte by byte.
///
/// # Safety
///
/// As fi_mr_raw_attr(3) says.
unsafe fn raw(region: &Region, attr: &RawAttr) -> c_int {
    let bytes = region.key.to_ne_bytes();
    // SAFETY: caller rule 3: a place for the base and as many bytes for the key as its length says.
    unsafe {
        if std::mem::replace(&mut *attr.len, bytes.len()) < bytes.len() {
            return -FI_ETOOSMALL;
        }
        *attr.base = region.base;
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), attr.key, bytes.len());
    }
    0
}

/// `control` of a domain: raw keys of peers are keys.
///
/// # Safety
///
/// As fi_mr_map_raw(3) and fi_mr_unmap_key(3) say.
pub unsafe extern "C" fn control_keys(_: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    match command {
        FI_MAP_RAW_MR => {
            // SAFETY: caller rule 3: a valid structure.
            let map = unsafe { &*argument.cast::<MapRaw>() };
            let mut bytes = [0; size_of::<u64>()];
            if map.len != bytes.len() {
                return -FI_EINVAL;
            }
            // SAFETY: caller rule 3: as many bytes, and a place for the key.
            unsafe {
                std::ptr::copy_nonoverlapping(map.from, bytes.as_mut_ptr(), bytes.len());
                *map.key = u64::from_ne_bytes(bytes);
            }
            0
        }
        FI_UNMAP_KEY => 0,
        _ => -FI_ENOSYS,
    }
}

/// # Safety
///
/// As [`regattr`].
unsafe fn register(
    domain: *mut Fid,
    attr: &MrAttr,
    base: Option<&Mr>,
    flags: u64,
    out: *mut *mut Fid,
) -> c_int {
    if flags & !FI_RMA_EVENT != 0 {
        return -FI_EBADFLAGS;
    }
    if attr.iov_count == 0 || attr.iov_count > IOV_LIMIT || attr.iov.is_null() || attr.offset != 0 {
        return -FI_EINVAL;
    }
    // SAFETY: the array has as many entries, as the caller promises.
    let iov = unsafe { std::slice::from_raw_parts(attr.iov, attr.iov_count) };
    let pieces: Box<[_]> =
        iov.iter().map(|piece| (piece.iov_base.expose_provenance() as u64, piece.iov_len)).collect();
    if base.is_some_and(|base| !base.value.region.has(&pieces)) {
        return -FI_EINVAL;
    }
    let access = attr.access & (FI_REMOTE_READ | FI_REMOTE_WRITE);
    // SAFETY: a domain of ours, as the caller promises.
    let registered = unsafe {
        with(domain, |domain: &Domain| {
            base.map_or(Ok(()), |base| base.check_domain(domain))?;
            let shared = Rc::clone(&domain.value);
            let region = shared.regions.add(attr.requested_key, access, pieces)?;
            shared.each(|endpoint| endpoint.borrow().add_region(&region));
            Ok((Registration { region, shared }, domain.ties()))
        })
    };
    match registered {
        Ok((registration, ties)) => {
            let head = Head { desc: std::ptr::null_mut(), key: registration.region.key };
            // SAFETY: caller rule 3: a place for the object.
            unsafe {
                let error = give(FI_CLASS_MR, &FID, head, ties, registration, attr.context, out);
                if let (0, Some(base)) = (error, base) {
                    (*(*out).cast::<Mr>()).uses(&base.users);
                }
                error
            }
        }
        Err(error) => {
            let error: i32 = error;
            -error
        }
    }
}

unsafe extern "C" fn reg(
    domain: *mut Fid,
    buf: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let iov = iovec { iov_base: buf.cast_mut(), iov_len: len };
    let attr = MrAttr { iov: &raw const iov, iov_count: 1, access, offset, requested_key, context };
    // SAFETY: caller rule 1: a domain of ours; caller rule 3: a place for the object. The array has one entry.
    unsafe { register(domain, &attr, None, flags, out) }
}

unsafe extern "C" fn regv(
    domain: *mut Fid,
    iov: *const iovec,
    iov_count: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    out: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let attr = MrAttr { iov, iov_count, access, offset, requested_key, context };
    // SAFETY: caller rule 1: a domain of ours; caller rule 3: `iov_count` entries, and a place for the object.
    unsafe { register(domain, &attr, None, flags, out) }
}

/// `struct fi_mr_attr` of version 2.0.
#[repr(C)]
struct WithBase {
    attr: MrAttr,
    auth_key_size: usize,
    _auth_key: *const c_void,
    _iface: u32,
    _device: u64,
    _hmem_data: *const c_void,
    _page_size: usize,
    base: *const Mr,
}

/// The versions that have brought keys for authorization, and regions in others.
const KEYS: u32 = 1 << 16 | 5;
const BASES: u32 = 2 << 16;

/// # Safety
///
/// As fi_mr_regattr(3) says.
unsafe extern "C" fn regattr(domain: *mut Fid, attr: *const MrAttr, flags: u64, out: *mut *mut Fid) -> c_int {
    let with_base = attr.cast::<WithBase>();
    // SAFETY: caller rule 1: a domain of ours, and a registration of ours in it; caller rule 3: a valid structure,
    // which has what its version has, its entries, and a place for the object.
    unsafe {
        let version = with(domain, |domain: &Domain| domain.value.version);
        // Keys for authorization are no more offered here than with the domain.
        if version >= KEYS && (*with_base).auth_key_size != 0 {
            return -FI_EINVAL;
        }
        let base = if version >= BASES { (*with_base).base.as_ref() } else { None };
        register(domain, &*attr, base, flags, out)
    }
}
