//! The libfabric that has loaded this provider, and the objects of another provider of its.

use crate::api::*;
use libc::{c_char, c_int, c_void};
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::ptr::{NonNull, null_mut};

type Getinfo =
    unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int;
type Dupinfo = unsafe extern "C" fn(*const Info) -> *mut Info;
type Freeinfo = unsafe extern "C" fn(*mut Info);
type Fabric = unsafe extern "C" fn(*mut FabricAttr, *mut *mut Fid, *mut c_void) -> c_int;

/// What this provider calls of libfabric by name.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    getinfo: Getinfo,
    dupinfo: Dupinfo,
    freeinfo: Freeinfo,
    fabric: Fabric,
}

/// Every version from here on has all that is used of it.
const VERSION: u32 = 1 << 16 | 17;

impl Library {
    /// Finds the library among those that the process has loaded; `None` if there is none.
    pub fn find() -> Option<Self> {
        // The usual case: the program is linked with an MPI that is linked with libfabric. A program in another
        // language has loaded it privately.
        Self::of(libc::RTLD_DEFAULT).or_else(|| {
            let mut names: Vec<CString> = Vec::new();
            // SAFETY: the function is called with the list, and returns before the list ends.
            unsafe { libc::dl_iterate_phdr(Some(keep_name), (&raw mut names).cast()) };
            // A stable sort: libfabric itself before what may contain it.
            names.sort_by_key(|name| !name.to_bytes().windows(9).any(|part| part == b"libfabric"));
            names.iter().find_map(|name| {
                // SAFETY: a C string; a library that is loaded is not loaded again.
                // It stays: nothing closes the handle.
                let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
                if handle.is_null() { None } else { Self::of(handle) }
            })
        })
    }

    fn of(handle: *mut c_void) -> Option<Self> {
        let symbol = |name: &CStr| {
            // SAFETY: a handle and a C string.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!address.is_null()).then_some(address)
        };
        let (getinfo, dupinfo) = (symbol(c"fi_getinfo")?, symbol(c"fi_dupinfo")?);
        let (freeinfo, fabric) = (symbol(c"fi_freeinfo")?, symbol(c"fi_fabric")?);
        // SAFETY: libfabric's functions of these names have these signatures.
        unsafe {
            Some(Self {
                getinfo: std::mem::transmute::<*mut c_void, Getinfo>(getinfo),
                dupinfo: std::mem::transmute::<*mut c_void, Dupinfo>(dupinfo),
                freeinfo: std::mem::transmute::<*mut c_void, Freeinfo>(freeinfo),
                fabric: std::mem::transmute::<*mut c_void, Fabric>(fabric),
            })
        }
    }

    /// What a provider offers for endpoints that exchange messages in order, with tags if it has them.
    ///
    /// # Errors
    ///
    /// The number of the error: FI_ENODATA if there is no such provider, or it offers nothing like that.
    pub fn offers(&self, provider: &CStr) -> Result<Offers, i32> {
        self.offers_of(provider, FI_MSG | FI_TAGGED, 2).or_else(|_| self.offers_of(provider, FI_MSG, 1))
    }

    fn offers_of(&self, provider: &CStr, caps: u64, pieces: usize) -> Result<Offers, i32> {
        // SAFETY: null asks for an empty structure.
        let hints = unsafe { (self.dupinfo)(std::ptr::null()) };
        if hints.is_null() {
            return Err(FI_ENOMEM);
        }
        let hints = Offers { first: hints, freeinfo: self.freeinfo };
        // SAFETY: an empty structure has its parts, zeroed. The name is a copy that goes with it.
        unsafe {
            let info = &mut *hints.first;
            info.caps = caps;
            (*info.ep_attr).kind = FI_EP_RDM;
            (*info.tx_attr).msg_order = FI_ORDER_SAS;
            // An offer has as many as are asked for: a head and a payload.
            (*info.tx_attr).iov_limit = pieces;
            (*info.rx_attr).msg_order = FI_ORDER_SAS;
            (*info.domain_attr).threading = FI_THREAD_DOMAIN;
            (*info.domain_attr).resource_mgmt = FI_RM_ENABLED;
            (*info.fabric_attr).prov_name = libc::strdup(provider.as_ptr());
        }
        let mut first = null_mut();
        // SAFETY: no node and no service; the hints are a valid structure, and `first` is a place for the list.
        let error = unsafe {
            (self.getinfo)(VERSION, std::ptr::null(), std::ptr::null(), 0, hints.first, &raw mut first)
        };
        if error != 0 || first.is_null() {
            return Err(if error < 0 { -error } else { FI_ENODATA });
        }
        Ok(Offers { first, freeinfo: self.freeinfo })
    }

    /// Opens the fabric of an offer.
    ///
    /// # Errors
    ///
    /// The number of the error.
    pub fn open(&self, offer: &Info) -> Result<Handle, i32> {
        let mut fid = null_mut();
        // SAFETY: the offer is libfabric's, with its parts.
        let error = unsafe { (self.fabric)(offer.fabric_attr, &raw mut fid, null_mut()) };
        Handle::new(error, fid)
    }
}

unsafe extern "C" fn keep_name(info: *mut libc::dl_phdr_info, _: usize, names: *mut c_void) -> c_int {
    // SAFETY: the loader's structure, and the list that `find` has given.
    let (info, names) = unsafe { (&*info, &mut *names.cast::<Vec<CString>>()) };
    if !info.dlpi_name.is_null() {
        // SAFETY: a C string of the loader's.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        if !name.is_empty() {
            names.push(name.to_owned());
        }
    }
    0
}

/// A list of `struct fi_info`, which is given back at its end.
#[derive(Debug)]
pub struct Offers {
    first: *mut Info,
    freeinfo: Freeinfo,
}

impl Offers {
    /// The entries.
    pub fn iter(&self) -> impl Iterator<Item = &Info> {
        // SAFETY: entries of the list are valid or null, and live as long as it.
        std::iter::successors(unsafe { self.first.as_ref() }, |info| unsafe { info.next.as_ref() })
    }
}

impl Drop for Offers {
    fn drop(&mut self) {
        // SAFETY: the list is libfabric's, and nobody uses it any more.
        unsafe { (self.freeinfo)(self.first) };
    }
}

/// An object of the other provider, which is closed at its end.
#[derive(Debug)]
pub struct Handle(NonNull<Fid>);

impl Handle {
    fn new(error: c_int, fid: *mut Fid) -> Result<Self, i32> {
        match NonNull::new(fid).filter(|_| error == 0) {
            Some(fid) => Ok(Self(fid)),
            None => Err(if error < 0 { -error } else { FI_EIO }),
        }
    }

    /// Opens an object by function `at` of this one's first table.
    ///
    /// # Errors
    ///
    /// The number of the error.
    ///
    /// # Safety
    ///
    /// The function takes this object, an argument, a place for the new object, and a context.
    pub unsafe fn open<A>(&self, at: usize, argument: *mut A) -> Result<Self, i32> {
        type Open<A> = unsafe extern "C" fn(*mut Fid, *mut A, *mut *mut Fid, *mut c_void) -> c_int;
        let mut fid = null_mut();
        // SAFETY: the function has this signature, as the caller promises.
        let error =
            unsafe { self.function::<Open<A>>(0, at)(self.fid(), argument, &raw mut fid, null_mut()) };
        Self::new(error, fid)
    }

    /// The object, as functions take it.
    pub fn fid(&self) -> *mut Fid {
        self.0.as_ptr()
    }

    /// Function `at` of one of the tables behind `struct fid`.
    ///
    /// # Safety
    ///
    /// The object's class has it, and `F` is its type, a function pointer.
    #[inline(always)]
    pub unsafe fn function<F: Copy>(&self, table: usize, at: usize) -> F {
        const { assert!(size_of::<F>() == size_of::<*const ()>()) };
        // SAFETY: an object has its tables behind its `struct fid`, and a table its size before its functions.
        unsafe {
            let tables = self.0.as_ptr().add(1).cast::<*const *const c_void>();
            std::mem::transmute_copy(&*(*tables.add(table)).add(1 + at))
        }
    }

    /// `bind` of the object.
    ///
    /// # Errors
    ///
    /// The number of the error.
    pub fn bind(&self, other: &Handle, flags: u64) -> Result<(), i32> {
        type Bind = unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int;
        // SAFETY: every object has a table of its own functions, of which this is the second.
        let error = unsafe {
            let bind: Bind = std::mem::transmute::<*const (), Bind>((*(*self.fid()).ops).function(1));
            bind(self.fid(), other.fid(), flags)
        };
        if error == 0 { Ok(()) } else { Err(-error) }
    }

    /// `control` of the object, without an argument.
    ///
    /// # Errors
    ///
    /// The number of the error.
    pub fn control(&self, command: c_int) -> Result<(), i32> {
        // SAFETY: the commands that this is called with need no argument.
        unsafe { self.control_with(command, null_mut()) }
    }

    /// The descriptor of an object that was opened with one.
    pub fn wait_fd(&self) -> Option<RawFd> {
        let mut fd: c_int = -1;
        // SAFETY: FI_GETWAIT writes a descriptor.
        let given = unsafe { self.control_with(FI_GETWAIT, (&raw mut fd).cast()) };
        given.ok().map(|()| fd).filter(|&fd| fd >= 0)
    }

    /// # Safety
    ///
    /// `argument` is what the command wants.
    unsafe fn control_with(&self, command: c_int, argument: *mut c_void) -> Result<(), i32> {
        type Control = unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int;
        // SAFETY: every object has a table of its own functions, of which this is the third; `argument` is what the
        // command wants, as the caller promises.
        let error = unsafe {
            let control: Control =
                std::mem::transmute::<*const (), Control>((*(*self.fid()).ops).function(2));
            control(self.fid(), command, argument)
        };
        if error == 0 { Ok(()) } else { Err(-error) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        type Close = unsafe extern "C" fn(*mut Fid) -> c_int;
        // SAFETY: every object has a table of its own functions, of which this is the first. What was opened with the
        // object is closed before: fields of `Network` are in that order.
        unsafe {
            let close: Close = std::mem::transmute::<*const (), Close>((*(*self.fid()).ops).function(0));
            close(self.fid());
        }
    }
}
