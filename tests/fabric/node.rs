//! A caller of the provider, as libfabric's inline functions are one:
//! everything goes through the tables of the objects.

mod addresses;
mod memory;
mod objects;

pub use memory::Counted;
pub use objects::{Opened, Part};

use perusal_fi::api::*;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute_copy;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// Function `at` of table `table` of an object.
fn function<F>(object: *mut Fid, table: usize, at: usize) -> F {
    // SAFETY: behind `struct fid` an object has its tables, and a table has its size before its functions.
    unsafe {
        let tables = object.add(1).cast::<*const *const c_void>();
        let functions = (*tables.add(table)).add(1);
        assert!(*(*tables.add(table)).cast::<usize>() > 8 * (at + 1), "the table has the function");
        transmute_copy(&*functions.add(at))
    }
}

type Open<A> = unsafe extern "C" fn(*mut Fid, *const A, *mut *mut Fid, *mut c_void) -> c_int;
type Bind = unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int;

/// Returns what the provider offers, or its error.
pub fn info(caps: u64) -> Result<*mut Info, c_int> {
    ask(None, None, 0, caps, None)
}

/// fi_getinfo with a node, a service, flags, and hints with capabilities and a destination.
pub fn ask(
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    caps: u64,
    destination: Option<&str>,
) -> Result<*mut Info, c_int> {
    let mut hints = no_hints();
    hints.caps = caps;
    let destination = destination.map(|text| CString::new(text).expect("a text"));
    if let Some(destination) = &destination {
        hints.dest_addr = destination.as_ptr().cast_mut().cast();
        hints.dest_addrlen = destination.as_bytes_with_nul().len();
    }
    ask_with(node, service, flags, &hints)
}

/// Hints that ask for nothing.
pub fn no_hints() -> Info {
    // SAFETY: all fields of the structure may be zero.
    unsafe { std::mem::zeroed() }
}

/// fi_getinfo.
pub fn ask_with(
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: &Info,
) -> Result<*mut Info, c_int> {
    ask_of(2 << 16 | 5, node, service, flags, hints)
}

/// fi_getinfo of a version of the interface.
pub fn ask_of(
    version: u32,
    node: Option<&CStr>,
    service: Option<&CStr>,
    flags: u64,
    hints: &Info,
) -> Result<*mut Info, c_int> {
    let mut info = null_mut();
    // SAFETY: as fi_getinfo(3) wants it.
    let error = unsafe {
        ((*perusal_fi::fi_prov_ini()).getinfo)(
            version,
            node.map_or(null(), CStr::as_ptr),
            service.map_or(null(), CStr::as_ptr),
            flags,
            hints,
            &raw mut info,
        )
    };
    if error == 0 { Ok(info) } else { Err(error) }
}

/// What endpoints of these tests can do.
pub const CAPS: u64 =
    FI_TAGGED | FI_MSG | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV | FI_RMA | FI_ATOMIC | FI_RMA_EVENT;

/// The context of these endpoints.
pub const CONTEXT: usize = 0xe9;

/// An endpoint with a completion queue and an address vector.
pub struct Node {
    fabric: *mut Fid,
    domain: *mut Fid,
    ep: *mut Fid,
    cq: *mut Fid,
    av: *mut Fid,
}

fn close(object: *mut Fid) {
    assert_eq!(try_close(object), 0);
}

/// fi_close. Returns its error.
fn try_close(object: *mut Fid) -> c_int {
    // SAFETY: an object that is open, and that no thread uses now.
    unsafe {
        let close: unsafe extern "C" fn(*mut Fid) -> c_int = transmute_copy(&(*(*object).ops).function(0));
        close(object)
    }
}

/// fi_control.
///
/// # Safety
///
/// `argument` is what the command wants.
unsafe fn control<T>(object: *mut Fid, command: c_int, argument: *mut T) -> c_int {
    // SAFETY: an object that is open; the callers promise the rest.
    unsafe {
        let control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int =
            transmute_copy(&(*(*object).ops).function(2));
        control(object, command, argument.cast())
    }
}

fn vectors(pieces: &mut [&mut [u8]]) -> Vec<libc::iovec> {
    let vector =
        |piece: &mut &mut [u8]| libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() };
    pieces.iter_mut().map(vector).collect()
}

/// What a completion queue says.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// Context, flags, length, data, tag, source.
    Done(usize, u64, usize, u64, u64, u64),
    /// Context and error.
    Failed(usize, i32),
}

impl Node {
    pub fn new() -> Node {
        Self::with_mode(0)
    }

    /// An endpoint of a domain with these modes of registration.
    pub fn with_mode(mode: i32) -> Node {
        let info = info(CAPS).expect("an endpoint");
        // SAFETY: what the provider made has all parts.
        unsafe { (*(*info).domain_attr).mr_mode = mode };
        Self::open(info).expect("an endpoint")
    }

    /// An endpoint as the provider has offered it.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn open(info: *mut Info) -> Result<Node, c_int> {
        let node = Self::bound(info)?;
        node.enable();
        Ok(node)
    }

    /// An endpoint that is bound and not enabled.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn bound(info: *mut Info) -> Result<Node, c_int> {
        Self::bound_for(info, FI_SEND | FI_RECV)
    }

    /// An endpoint that is bound and not enabled, with a queue for these operations.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn bound_for(info: *mut Info, operations: u64) -> Result<Node, c_int> {
        Self::bound_with(info, operations, 0)
    }

    /// The same, with an address vector that is opened with these flags.
    fn bound_with(info: *mut Info, operations: u64, vector_flags: u64) -> Result<Node, c_int> {
        let (mut fabric, mut domain, mut cq, mut av, mut ep) =
            (null_mut(), null_mut(), null_mut(), null_mut(), null_mut());
        let none = null_mut();
        // SAFETY: as the manual pages want it; zero is a value of every field of the attributes.
        unsafe {
            assert_eq!(((*perusal_fi::fi_prov_ini()).fabric)((*info).fabric_attr, &raw mut fabric, none), 0);
            assert_eq!(function::<Open<Info>>(fabric, 0, 0)(fabric, info, &raw mut domain, none), 0);
            let mut vector: AvAttr = std::mem::zeroed();
            vector.flags = vector_flags;
            assert_eq!(
                function::<Open<AvAttr>>(domain, 0, 0)(domain, &raw const vector, &raw mut av, none),
                0
            );
            let mut queue: CqAttr = std::mem::zeroed();
            queue.format = FI_CQ_FORMAT_TAGGED;
            queue.wait_obj = FI_WAIT_FD;
            let error = function::<Open<CqAttr>>(domain, 0, 1)(domain, &raw const queue, &raw mut cq, none);
            if error != 0 {
                [av, domain, fabric].into_iter().for_each(close);
                return Err(error);
            }
            let own = std::ptr::without_provenance_mut(CONTEXT);
            let error = function::<Open<Info>>(domain, 0, 2)(domain, info, &raw mut ep, own);
            if error != 0 {
                [cq, av, domain, fabric].into_iter().for_each(close);
                return Err(error);
            }
            let ops = &*(*ep).ops;
            let bind: Bind = transmute_copy(&ops.function(1));
            assert_eq!(bind(ep, av, 0), 0);
            assert_eq!(bind(ep, cq, operations), 0);
        }
        Ok(Node { fabric, domain, ep, cq, av })
    }

    /// fi_enable.
    pub fn enable(&self) {
        // SAFETY: the command wants nothing.
        assert_eq!(unsafe { control(self.ep, FI_ENABLE, null_mut::<c_void>()) }, 0);
    }

    /// fi_tsenddata, until it is taken or refused.
    pub fn send(&self, bytes: &[u8], to: u64, tag: u64, data: u64, context: usize) -> isize {
        loop {
            let error = self.send_now(bytes, to, tag, data, context);
            if error != -(FI_EAGAIN as isize) {
                return error;
            }
            self.read_now();
        }
    }

    /// fi_tsenddata.
    pub fn send_now(&self, bytes: &[u8], to: u64, tag: u64, data: u64, context: usize) -> isize {
        type Send =
            unsafe extern "C" fn(*mut Fid, *const u8, usize, *mut c_void, u64, u64, u64, usize) -> isize;
        // SAFETY: the callers keep the bytes until the completion.
        unsafe {
            function::<Send>(self.ep, 4, 7)(
                self.ep,
                bytes.as_ptr(),
                bytes.len(),
                null_mut(),
                data,
                to,
                tag,
                context,
            )
        }
    }

    /// fi_tsendmsg with data of bytes in two pieces, which the receiver cannot copy from this process.
    pub fn send_pieces(&self, bytes: &[u8], to: u64, tag: u64, data: u64, context: usize) -> isize {
        let halves = bytes.split_at(bytes.len() / 2);
        let iov = [halves.0, halves.1]
            .map(|half| libc::iovec { iov_base: half.as_ptr().cast_mut().cast(), iov_len: half.len() });
        let msg = MsgTagged {
            iov: iov.as_ptr(),
            desc: null_mut(),
            iov_count: 2,
            addr: to,
            tag,
            ignore: 0,
            context: context as *mut c_void,
            data,
        };
        // SAFETY: the callers keep the bytes until the completion.
        unsafe {
            function::<unsafe extern "C" fn(*mut Fid, *const MsgTagged, u64) -> isize>(self.ep, 4, 5)(
                self.ep,
                &raw const msg,
                FI_REMOTE_CQ_DATA | FI_COMPLETION,
            )
        }
    }

    /// fi_tsendmsg of what fi_inject takes, FI_DELIVERY_COMPLETE, without a completion.
    pub fn inject_delivered(&self, bytes: &[u8], to: u64, tag: u64) -> isize {
        self.send_flags(bytes, to, tag, FI_INJECT | FI_DELIVERY_COMPLETE)
    }

    /// fi_tsendmsg with these flags.
    pub fn send_flags(&self, bytes: &[u8], to: u64, tag: u64, flags: u64) -> isize {
        let iov = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let msg = MsgTagged {
            iov: &raw const iov,
            desc: null_mut(),
            iov_count: 1,
            addr: to,
            tag,
            ignore: 0,
            context: null_mut(),
            data: 0,
        };
        // SAFETY: one piece, which the callers keep until the completion, or which is copied.
        unsafe {
            function::<unsafe extern "C" fn(*mut Fid, *const MsgTagged, u64) -> isize>(self.ep, 4, 5)(
                self.ep,
                &raw const msg,
                flags,
            )
        }
    }

    /// fi_send.
    pub fn send_plain(&self, bytes: &[u8], to: u64, context: usize) {
        assert_eq!(self.try_send_plain(bytes, to, context), 0);
    }

    /// fi_send. Returns its error.
    pub fn try_send_plain(&self, bytes: &[u8], to: u64, context: usize) -> isize {
        type Send = unsafe extern "C" fn(*mut Fid, *const u8, usize, *mut c_void, u64, usize) -> isize;
        // SAFETY: the callers keep the bytes until the completion.
        unsafe {
            function::<Send>(self.ep, 2, 3)(self.ep, bytes.as_ptr(), bytes.len(), null_mut(), to, context)
        }
    }

    /// fi_recv.
    pub fn receive_plain(&self, bytes: &mut [u8], from: u64, context: usize) {
        assert_eq!(self.try_receive_plain(bytes, from, context), 0);
    }

    /// fi_recv. Returns its error.
    pub fn try_receive_plain(&self, bytes: &mut [u8], from: u64, context: usize) -> isize {
        type Receive = unsafe extern "C" fn(*mut Fid, *mut u8, usize, *mut c_void, u64, usize) -> isize;
        // SAFETY: the callers keep the bytes until the completion.
        unsafe {
            function::<Receive>(self.ep, 2, 0)(
                self.ep,
                bytes.as_mut_ptr(),
                bytes.len(),
                null_mut(),
                from,
                context,
            )
        }
    }

    /// fi_trecv.
    pub fn receive(&self, bytes: &mut [u8], from: u64, tag: u64, ignore: u64, context: usize) {
        assert_eq!(self.try_receive(bytes, from, tag, ignore, context), 0);
    }

    /// fi_trecv. Returns its error.
    pub fn try_receive(&self, bytes: &mut [u8], from: u64, tag: u64, ignore: u64, context: usize) -> isize {
        type Receive =
            unsafe extern "C" fn(*mut Fid, *mut u8, usize, *mut c_void, u64, u64, u64, usize) -> isize;
        // SAFETY: the callers keep the bytes until the completion.
        unsafe {
            function::<Receive>(self.ep, 4, 0)(
                self.ep,
                bytes.as_mut_ptr(),
                bytes.len(),
                null_mut(),
                from,
                tag,
                ignore,
                context,
            )
        }
    }

    /// fi_trecvmsg with these flags.
    pub fn receive_flags(&self, bytes: &mut [u8], tag: u64, context: usize, flags: u64) -> isize {
        let iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let msg = MsgTagged {
            iov: &raw const iov,
            desc: null_mut(),
            iov_count: 1,
            addr: FI_ADDR_UNSPEC,
            tag,
            ignore: 0,
            context: context as *mut c_void,
            data: 0,
        };
        // SAFETY: the callers keep the bytes until the completion.
        unsafe {
            function::<unsafe extern "C" fn(*mut Fid, *const MsgTagged, u64) -> isize>(self.ep, 4, 2)(
                self.ep,
                &raw const msg,
                flags,
            )
        }
    }

    /// fi_recvmsg of a buffer for several messages.
    pub fn receive_several(&self, pieces: &mut [&mut [u8]], context: usize) -> isize {
        let iov = vectors(pieces);
        let msg = Msg {
            iov: iov.as_ptr(),
            desc: null_mut(),
            iov_count: iov.len(),
            addr: FI_ADDR_UNSPEC,
            context: context as *mut c_void,
            data: 0,
        };
        // SAFETY: the callers keep the bytes until the completion.
        unsafe {
            function::<unsafe extern "C" fn(*mut Fid, *const Msg, u64) -> isize>(self.ep, 2, 2)(
                self.ep,
                &raw const msg,
                FI_MULTI_RECV,
            )
        }
    }

    /// fi_cq_strerror, into a buffer of the caller's.
    pub fn error_text(&self, number: c_int) -> String {
        type Text = unsafe extern "C" fn(
            *mut Fid,
            c_int,
            *const c_void,
            *mut std::ffi::c_char,
            usize,
        ) -> *const std::ffi::c_char;
        let mut text = [0; 80];
        // SAFETY: 80 bytes, as said; the result and they are C strings.
        unsafe {
            let said = function::<Text>(self.cq, 0, 6)(self.cq, number, null(), text.as_mut_ptr(), 80);
            let said = std::ffi::CStr::from_ptr(said).to_string_lossy().into_owned();
            assert_eq!(said, std::ffi::CStr::from_ptr(text.as_ptr()).to_string_lossy());
            said
        }
    }

    pub fn cancel(&self, context: usize) {
        let cancel: unsafe extern "C" fn(*mut Fid, usize) -> isize = function(self.ep, 0, 0);
        // SAFETY: an endpoint.
        assert_eq!(unsafe { cancel(self.ep, context) }, 0);
    }

    /// fi_cq_read of no completion.
    pub fn read_none(&self) -> isize {
        let read: unsafe extern "C" fn(*mut Fid, *mut CqEntry, usize) -> isize = function(self.cq, 0, 0);
        // SAFETY: room for no entry.
        unsafe { read(self.cq, null_mut(), 0) }
    }

    /// One completion, if there is one. Completions are kept for nobody:
    /// callers of `send` have none outstanding but their own.
    pub fn read_now(&self) -> Option<Said> {
        // SAFETY: room for one entry and one address; zero is a value of every field.
        unsafe {
            let mut entry: CqEntry = std::mem::zeroed();
            let mut source = 0;
            let read: unsafe extern "C" fn(*mut Fid, *mut CqEntry, usize, *mut u64) -> isize =
                function(self.cq, 0, 1);
            match read(self.cq, &raw mut entry, 1, &raw mut source) {
                1 => Some(Said::Done(
                    entry.context as usize,
                    entry.flags,
                    entry.len,
                    entry.data,
                    entry.tag,
                    source,
                )),
                error if error == -(FI_EAGAIN as isize) => None,
                error => {
                    assert_eq!(error, -(FI_EAVAIL as isize));
                    let mut entry: CqErrEntry = std::mem::zeroed();
                    let readerr: unsafe extern "C" fn(*mut Fid, *mut CqErrEntry, u64) -> isize =
                        function(self.cq, 0, 2);
                    assert_eq!(readerr(self.cq, &raw mut entry, 0), 1);
                    Some(Said::Failed(entry.context as usize, entry.err))
                }
            }
        }
    }

    /// The next completion, which comes within a minute.
    pub fn read(&self) -> Said {
        let start = Instant::now();
        loop {
            if let Some(said) = self.read_now() {
                return said;
            }
            assert!(start.elapsed() < Duration::from_secs(900), "no completion");
        }
    }

    /// fi_trywait, and poll(2) of the queue's descriptor for so long if that says so.
    /// Returns whether there may be something to do.
    pub fn poll(&self, milliseconds: c_int) -> bool {
        !self.may_wait() || self.is_readable(milliseconds)
    }

    /// fi_trywait: whether there is nothing to do, and the queue's descriptor says when there is.
    pub fn may_wait(&self) -> bool {
        let trywait: unsafe extern "C" fn(*mut Fid, *mut *mut Fid, c_int) -> c_int =
            function(self.fabric, 0, 4);
        let mut cq = self.cq;
        // SAFETY: one queue, which has a descriptor.
        let error = unsafe { trywait(self.fabric, &raw mut cq, 1) };
        assert!([0, -FI_EAGAIN].contains(&error), "{error}");
        error == 0
    }

    /// poll(2) of the queue's descriptor for so long.
    pub fn is_readable(&self, milliseconds: c_int) -> bool {
        let mut fd = -1;
        // SAFETY: a queue, which has a descriptor; one entry for poll.
        unsafe {
            assert_eq!(control(self.cq, FI_GETWAIT, &raw mut fd), 0);
            let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            libc::poll(&raw mut poll, 1, milliseconds) == 1
        }
    }

    /// fi_cq_signal.
    pub fn signal(&self) {
        let signal: unsafe extern "C" fn(*mut Fid) -> c_int = function(self.cq, 0, 5);
        // SAFETY: a queue.
        assert_eq!(unsafe { signal(self.cq) }, 0);
    }

    /// fi_cq_sread: waits for a completion for so many milliseconds. Returns whether there was one.
    pub fn wait(&self, milliseconds: c_int) -> bool {
        let sread: unsafe extern "C" fn(*mut Fid, *mut CqEntry, usize, *const c_void, c_int) -> isize =
            function(self.cq, 0, 3);
        // SAFETY: room for one entry.
        unsafe {
            let mut entry: CqEntry = std::mem::zeroed();
            sread(self.cq, &raw mut entry, 1, null(), milliseconds) == 1
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        [self.ep, self.cq, self.av].into_iter().for_each(close);
    }
}
