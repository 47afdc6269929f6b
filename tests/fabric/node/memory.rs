//! Memory that is registered, and accesses to that of others.

use super::*;

/// fi_mr_reg and fi_mr_regv, of bytes and of pieces.
type Register<T> =
    unsafe extern "C" fn(*mut Fid, *const T, usize, u64, u64, u64, u64, *mut *mut Fid, *mut c_void) -> c_int;

/// `struct fi_mr_attr` of version 2.0.
#[repr(C)]
struct Attr {
    head: MrAttr,
    tail: [u64; 8],
}

/// Memory that is registered.
#[derive(Debug)]
pub struct Registered {
    mr: *mut Fid,
    /// Its key.
    pub key: u64,
}

impl Registered {
    /// fi_mr_raw_attr with room for so many bytes of the key. Returns the error, the base and the raw key.
    pub fn raw(&self, room: usize) -> (c_int, u64, Vec<u8>) {
        let (mut base, mut len, mut key) = (u64::MAX, room, vec![0_u8; room.max(64)]);
        let mut words = [
            0,
            (&raw mut base).expose_provenance() as u64,
            key.as_mut_ptr() as u64,
            (&raw mut len).expose_provenance() as u64,
        ];
        // SAFETY: the structure of the command: flags, a place for the base, one for the key, one for its length.
        let error = unsafe { control(self.mr, FI_GET_RAW_MR, words.as_mut_ptr()) };
        key.truncate(len);
        (error, base, key)
    }

    /// fi_close, which is refused. Returns its error.
    pub fn try_close(&self) -> c_int {
        try_close(self.mr)
    }

    /// fi_mr_bind.
    pub fn bind(&self, other: &Opened, flags: u64) -> c_int {
        // SAFETY: a registration has this function, and the other object is open.
        unsafe {
            let bind: Bind = transmute_copy(&(*(*self.mr).ops).function(1));
            bind(self.mr, other.0, flags)
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        close(self.mr);
    }
}

impl Node {
    /// fi_mr_reg, of all bytes from `at` on, for what `access` allows.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn register(&self, at: *mut u8, len: usize, access: u64, key: u64) -> Result<Registered, c_int> {
        let mut mr = null_mut();
        let register: Register<u8> = function(self.domain, 1, 0);
        // SAFETY: the callers keep the bytes as long as the registration; behind `struct fid` it has its description
        // and its key.
        unsafe {
            match register(self.domain, at, len, access, 0, key, 0, &raw mut mr, null_mut()) {
                0 => Ok(Registered { mr, key: *mr.add(1).cast::<u64>().add(1) }),
                error => Err(error),
            }
        }
    }

    /// fi_mr_regattr, of bytes in `base` with a key for authorization of so many bytes.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn register_in(
        &self,
        base: Option<&Registered>,
        bytes: (*mut u8, usize),
        key: u64,
        authorization: usize,
    ) -> Result<Registered, c_int> {
        let iov = libc::iovec { iov_base: bytes.0.cast(), iov_len: bytes.1 };
        let (none, mut mr) = (null_mut(), null_mut());
        let base = base.map_or(0, |base| base.mr.expose_provenance() as u64);
        let (iov, iov_count, access) = (&raw const iov, 1, FI_REMOTE_READ);
        let head = MrAttr { iov, iov_count, access, offset: 0, requested_key: key, context: none };
        // Size and place of the key, interface, device, two more, the base, a count.
        let attr = Attr { head, tail: [authorization as u64, 0, 0, 0, 0, 0, base, 0] };
        let register: unsafe extern "C" fn(*mut Fid, *const Attr, u64, *mut *mut Fid) -> c_int =
            function(self.domain, 1, 2);
        // SAFETY: the callers keep the bytes as long as the registration; behind `struct fid` it has its description
        // and its key.
        unsafe {
            match register(self.domain, &raw const attr, 0, &raw mut mr) {
                0 => Ok(Registered { mr, key: *mr.add(1).cast::<u64>().add(1) }),
                error => Err(error),
            }
        }
    }

    /// fi_mr_regv: memory in pieces, which peers do not access by themselves.
    pub fn register_pieces(&self, pieces: &mut [&mut [u8]], access: u64, key: u64) -> Registered {
        let (iov, mut mr) = (vectors(pieces), null_mut());
        let register: Register<libc::iovec> = function(self.domain, 1, 1);
        // SAFETY: the callers keep the bytes as long as the registration; as many pieces as said.
        unsafe {
            let (at, len) = (iov.as_ptr(), iov.len());
            assert_eq!(register(self.domain, at, len, access, 0, key, 0, &raw mut mr, null_mut()), 0);
        }
        Registered { mr, key }
    }

    /// A counter that is bound to a registration for these accesses.
    pub fn count(&self, registered: &Registered, accesses: u64) -> Counted {
        let mut counter = null_mut();
        // SAFETY: as the manual pages want it; zero is a value of every field of the attributes.
        unsafe {
            let attr: CntrAttr = std::mem::zeroed();
            let open = function::<Open<CntrAttr>>(self.domain, 0, 4);
            assert_eq!(open(self.domain, &raw const attr, &raw mut counter, null_mut()), 0);
            let bind: Bind = transmute_copy(&(*(*registered.mr).ops).function(1));
            assert_eq!(bind(registered.mr, counter, accesses), 0);
        }
        Counted(counter)
    }

    /// fi_write or fi_read.
    pub fn access(&self, write: bool, bytes: *mut u8, len: usize, to: u64, addr: u64, key: u64) -> isize {
        type Access =
            unsafe extern "C" fn(*mut Fid, *mut u8, usize, *mut c_void, u64, u64, u64, usize) -> isize;
        let access: Access = function(self.ep, 3, if write { 3 } else { 0 });
        // SAFETY: the callers keep the bytes until the completion.
        unsafe { access(self.ep, bytes, len, null_mut(), to, addr, key, 11) }
    }

    /// fi_inject_writedata.
    pub fn inject_write(&self, bytes: &[u8], data: u64, to: u64, addr: u64, key: u64) -> isize {
        type Inject = unsafe extern "C" fn(*mut Fid, *const u8, usize, u64, u64, u64, u64) -> isize;
        let inject: Inject = function(self.ep, 3, 8);
        // SAFETY: the bytes are copied.
        unsafe { inject(self.ep, bytes.as_ptr(), bytes.len(), data, to, addr, key) }
    }

    /// fi_writemsg of pieces to pieces.
    pub fn write_pieces(&self, from: &[&[u8]], to: u64, there: &[RmaIov]) -> isize {
        self.write_flags(from, to, there, FI_COMPLETION)
    }

    /// The same with these flags.
    pub fn write_flags(&self, from: &[&[u8]], to: u64, there: &[RmaIov], flags: u64) -> isize {
        let iov: Vec<libc::iovec> = from
            .iter()
            .map(|piece| libc::iovec { iov_base: piece.as_ptr().cast_mut().cast(), iov_len: piece.len() })
            .collect();
        let msg = MsgRma {
            iov: iov.as_ptr(),
            desc: null_mut(),
            iov_count: iov.len(),
            addr: to,
            rma_iov: there.as_ptr(),
            rma_iov_count: there.len(),
            context: 11 as *mut c_void,
            data: 0,
        };
        let write: unsafe extern "C" fn(*mut Fid, *const MsgRma, u64) -> isize = function(self.ep, 3, 5);
        // SAFETY: the callers keep the bytes until the completion.
        unsafe { write(self.ep, &raw const msg, flags) }
    }

    /// fi_fetch_atomic of numbers of 64 bits.
    pub fn fetch(&self, operand: &[u64], old: &mut [u64], to: u64, addr: u64, key: u64, op: u32) -> isize {
        type Fetch = unsafe extern "C" fn(
            *mut Fid,
            *const u64,
            usize,
            *mut c_void,
            *mut u64,
            *mut c_void,
            u64,
            u64,
            u64,
            u32,
            u32,
            usize,
        ) -> isize;
        let (fetch, none): (Fetch, _) = (function(self.ep, 5, 4), null_mut());
        let (from, count) = (operand.as_ptr(), operand.len());
        // SAFETY: the callers keep the numbers until the completion.
        unsafe { fetch(self.ep, from, count, none, old.as_mut_ptr(), none, to, addr, key, 7, op, 11) }
    }

    /// fi_atomicmsg that adds a number of 64 bits, with these flags.
    pub fn add_atomically(&self, operand: &u64, to: u64, key: u64, flags: u64) -> isize {
        let iov = libc::iovec { iov_base: (&raw const *operand).cast_mut().cast(), iov_len: 1 };
        let there = RmaIov { addr: 0, len: 1, key };
        let msg = MsgAtomic {
            iov: &raw const iov,
            desc: null_mut(),
            iov_count: 1,
            addr: to,
            rma_iov: &raw const there,
            rma_iov_count: 1,
            datatype: 7,
            op: 2,
            context: 11 as *mut c_void,
            data: 0,
        };
        let atomic: unsafe extern "C" fn(*mut Fid, *const MsgAtomic, u64) -> isize = function(self.ep, 5, 2);
        // SAFETY: one number, which is copied into the record.
        unsafe { atomic(self.ep, &raw const msg, flags) }
    }

    /// fi_query_atomic: how many values of a type one operation takes, and their size.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn query(&self, datatype: u32, op: u32, flags: u64) -> Result<(usize, usize), c_int> {
        let query: unsafe extern "C" fn(*mut Fid, u32, u32, *mut AtomicAttr, u64) -> c_int =
            function(self.domain, 0, 8);
        let mut attr = AtomicAttr { count: 0, size: 0 };
        // SAFETY: a domain, and a place for the answer.
        match unsafe { query(self.domain, datatype, op, &raw mut attr, flags) } {
            0 => Ok((attr.count, attr.size)),
            error => Err(error),
        }
    }
}

/// A counter. Nobody closes it but the caller.
pub struct Counted(*mut Fid);

impl Counted {
    /// fi_close. Returns its error.
    pub fn try_close(&self) -> c_int {
        try_close(self.0)
    }

    /// fi_cntr_read.
    pub fn read(&self) -> u64 {
        let read: unsafe extern "C" fn(*mut Fid) -> u64 = function(self.0, 0, 0);
        // SAFETY: a counter.
        unsafe { read(self.0) }
    }
}
