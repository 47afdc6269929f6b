//! Objects besides an endpoint's own, and how they are bound and closed.

use super::*;
use std::mem::ManuallyDrop;

/// One of an endpoint's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Fabric,
    Domain,
    Queue,
    Vector,
}

/// An object that was opened. Nobody closes it but the caller.
#[derive(Debug)]
pub struct Opened(pub(super) *mut Fid);

impl Opened {
    /// fi_close. Returns its error.
    pub fn try_close(&self) -> c_int {
        try_close(self.0)
    }

    /// fi_cntr_read.
    pub fn read_counter(&self) -> u64 {
        let read: unsafe extern "C" fn(*mut Fid) -> u64 = function(self.0, 0, 0);
        // SAFETY: a counter.
        unsafe { read(self.0) }
    }

    /// fi_cntr_readerr.
    pub fn read_counter_errors(&self) -> u64 {
        let read: unsafe extern "C" fn(*mut Fid) -> u64 = function(self.0, 0, 1);
        // SAFETY: a counter.
        unsafe { read(self.0) }
    }

    /// fi_poll with room for so many contexts. Returns them, or the error.
    pub fn poll(&self, room: usize) -> Result<Vec<usize>, c_int> {
        type Poll = unsafe extern "C" fn(*mut Fid, *mut usize, c_int) -> c_int;
        let mut contexts = vec![0; room];
        // SAFETY: a poll set, and as many places as said.
        let found = unsafe { function::<Poll>(self.0, 0, 0)(self.0, contexts.as_mut_ptr(), room as c_int) };
        contexts.truncate(usize::try_from(found).map_err(|_| found)?);
        Ok(contexts)
    }

    /// fi_poll_add with these flags, or fi_poll_del.
    pub fn poll_change(&self, at: usize, other: &Opened, flags: u64) -> c_int {
        type Change = unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int;
        // SAFETY: a poll set, and an object that is open.
        unsafe { function::<Change>(self.0, 0, at)(self.0, other.0, flags) }
    }

    /// Gives an object this context, as its caller may.
    pub fn set_context(&self, context: usize) {
        // SAFETY: an object that is open, and that no thread uses now.
        unsafe { (*self.0).context = std::ptr::without_provenance_mut(context) };
    }

    /// fi_eq_write of these bytes.
    pub fn write_event(&self, event: u32, bytes: &[u8]) -> isize {
        type Write = unsafe extern "C" fn(*mut Fid, u32, *const u8, usize, u64) -> isize;
        // SAFETY: as many bytes as said.
        unsafe { function::<Write>(self.0, 0, 2)(self.0, event, bytes.as_ptr(), bytes.len(), 0) }
    }

    /// fi_eq_read of at most eight bytes, with these flags. Returns the event and its length, or the error.
    pub fn read_event(&self, flags: u64) -> Result<(u32, isize), isize> {
        type Read = unsafe extern "C" fn(*mut Fid, *mut u32, *mut u8, usize, u64) -> isize;
        let (mut event, mut room) = (0, [0; 8]);
        // SAFETY: a place for the event, and eight bytes.
        let read = unsafe {
            function::<Read>(self.0, 0, 0)(self.0, &raw mut event, room.as_mut_ptr(), room.len(), flags)
        };
        if read < 0 { Err(read) } else { Ok((event, read)) }
    }
}

impl Node {
    /// An endpoint whose progress needs no calls (FI_PROGRESS_AUTO).
    pub fn with_automatic_progress() -> Node {
        let mut hints = no_hints();
        hints.caps = CAPS;
        // SAFETY: zero is a value of every field; what versions from 2.0 on have behind it is short.
        let mut domain: [DomainAttr; 2] = unsafe { std::mem::zeroed() };
        domain[0].data_progress = FI_PROGRESS_AUTO;
        hints.domain_attr = domain.as_mut_ptr();
        let info = ask_with(None, None, 0, &hints).expect("an offer");
        // SAFETY: what the provider made has all parts.
        assert_eq!(unsafe { (*(*info).domain_attr).data_progress }, FI_PROGRESS_AUTO);
        Self::open(info).expect("an endpoint")
    }

    /// Closes all but the fabric and the domain, and gives that.
    pub fn into_domain(self) -> Opened {
        Opened(self.domain)
    }

    fn part(&self, part: Part) -> *mut Fid {
        match part {
            Part::Fabric => self.fabric,
            Part::Domain => self.domain,
            Part::Queue => self.cq,
            Part::Vector => self.av,
        }
    }

    /// fi_close of an object that is in use. Returns its error.
    pub fn try_close(&self, part: Part) -> c_int {
        try_close(self.part(part))
    }

    /// fi_ep_bind of this endpoint with an object of that node's.
    pub fn bind_part(&self, other: &Node, part: Part, flags: u64) -> c_int {
        self.bind_fid(other.part(part), flags)
    }

    /// fi_ep_bind.
    pub fn bind(&self, other: &Opened, flags: u64) -> c_int {
        self.bind_fid(other.0, flags)
    }

    fn bind_fid(&self, other: *mut Fid, flags: u64) -> c_int {
        // SAFETY: an endpoint of the provider has this function, and the other object is open.
        unsafe {
            let bind: Bind = transmute_copy(&(*(*self.ep).ops).function(1));
            bind(self.ep, other, flags)
        }
    }

    /// Opens an object of the fabric or the domain by function `at`.
    fn opened(&self, from: *mut Fid, at: usize, attr: &[u64; 8]) -> Result<Opened, c_int> {
        let mut object = null_mut();
        let open: Open<[u64; 8]> = function(from, 0, at);
        // SAFETY: zero is a value of every field of the attributes, which are not longer.
        match unsafe { open(from, attr, &raw mut object, null_mut()) } {
            0 => Ok(Opened(object)),
            error => Err(error),
        }
    }

    /// fi_poll_open with these flags.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn poll_set(&self, flags: u64) -> Result<Opened, c_int> {
        type Open = unsafe extern "C" fn(*mut Fid, *const u64, *mut *mut Fid) -> c_int;
        let mut object = null_mut();
        // SAFETY: a domain, and a structure that is its flags alone.
        match unsafe { function::<Open>(self.domain, 0, 5)(self.domain, &raw const flags, &raw mut object) } {
            0 => Ok(Opened(object)),
            error => Err(error),
        }
    }

    /// The object, as its own.
    pub fn opened_part(&self, part: Part) -> Opened {
        Opened(self.part(part))
    }

    /// fi_av_open with these flags.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn vector(&self, flags: u64) -> Result<Opened, c_int> {
        // SAFETY: zero is a value of every field; eight words are enough for six.
        let attr = unsafe {
            let mut attr = [0_u64; 8];
            (*attr.as_mut_ptr().cast::<AvAttr>()).flags = flags;
            attr
        };
        self.opened(self.domain, 0, &attr)
    }

    /// The object as hints name it.
    pub fn address(&self, part: Part) -> *mut Fid {
        self.part(part)
    }

    /// fi_domain_bind of an event queue.
    pub fn bind_domain(&self, events: &Opened, flags: u64) -> c_int {
        // SAFETY: a domain has this function, and the event queue is open.
        unsafe {
            let bind: Bind = transmute_copy(&(*(*self.domain).ops).function(1));
            bind(self.domain, events.0, flags)
        }
    }

    /// fi_enable of another endpoint with these capabilities, to which a queue and a counter are bound with these
    /// flags, or not at all. Returns its error.
    pub fn enable_another(&self, caps: u64, queue: u64, counter: u64) -> c_int {
        let (info, mut ep) = (info(caps).expect("an endpoint"), null_mut());
        let (completions, counts) = (self.queue(), self.counter());
        // SAFETY: as the manual pages want it.
        let error = unsafe {
            assert_eq!(
                function::<Open<Info>>(self.domain, 0, 2)(self.domain, info, &raw mut ep, null_mut()),
                0
            );
            let bind: Bind = transmute_copy(&(*(*ep).ops).function(1));
            assert_eq!(bind(ep, self.av, 0), 0);
            for (object, flags) in [(&completions, queue), (&counts, counter)] {
                assert!(flags == 0 || bind(ep, object.0, flags) == 0);
            }
            control(ep, FI_ENABLE, null_mut::<c_void>())
        };
        close(ep);
        [completions, counts].iter().for_each(|one| assert_eq!(one.try_close(), 0));
        error
    }

    /// fi_sendv, fi_recvv, fi_tsendv and fi_trecvv, and the calls with a message, of so many pieces without a byte.
    /// Returns their errors.
    pub fn pieces(&self, count: usize, to: u64) -> [isize; 8] {
        type Plain =
            unsafe extern "C" fn(*mut Fid, *const libc::iovec, *mut *mut c_void, usize, u64, usize) -> isize;
        type Send = unsafe extern "C" fn(
            *mut Fid,
            *const libc::iovec,
            *mut *mut c_void,
            usize,
            u64,
            u64,
            usize,
        ) -> isize;
        type Receive = unsafe extern "C" fn(
            *mut Fid,
            *const libc::iovec,
            *mut *mut c_void,
            usize,
            u64,
            u64,
            u64,
            usize,
        ) -> isize;
        type Call<M> = unsafe extern "C" fn(*mut Fid, *const M, u64) -> isize;
        let pieces = vec![libc::iovec { iov_base: null_mut(), iov_len: 0 }; count];
        let (iov, desc, none) = (pieces.as_ptr(), null_mut(), null_mut());
        let plain = Msg { iov, desc, iov_count: count, addr: to, context: none, data: 0 };
        let tagged =
            MsgTagged { iov, desc, iov_count: count, addr: to, tag: 1, ignore: 0, context: none, data: 0 };
        let ep = self.ep;
        // SAFETY: as many pieces as said, of which none has a byte.
        unsafe {
            [
                function::<Plain>(ep, 2, 1)(ep, iov, desc, count, to, 0),
                function::<Plain>(ep, 2, 4)(ep, iov, desc, count, to, 0),
                function::<Receive>(ep, 4, 1)(ep, iov, desc, count, to, 1, 0, 0),
                function::<Send>(ep, 4, 4)(ep, iov, desc, count, to, 1, 0),
                function::<Call<Msg>>(ep, 2, 2)(ep, &raw const plain, 0),
                function::<Call<Msg>>(ep, 2, 5)(ep, &raw const plain, 0),
                function::<Call<MsgTagged>>(ep, 4, 2)(ep, &raw const tagged, 0),
                function::<Call<MsgTagged>>(ep, 4, 5)(ep, &raw const tagged, 0),
            ]
        }
    }

    /// fi_cq_open with these flags. Returns its error.
    pub fn open_queue(&self, flags: u64) -> c_int {
        // SAFETY: zero is a value of every field; eight words are enough for the attributes.
        let attr = unsafe {
            let mut attr = [0_u64; 8];
            (*attr.as_mut_ptr().cast::<CqAttr>()).flags = flags;
            attr
        };
        self.opened(self.domain, 1, &attr).map_or_else(|error| error, |queue| queue.try_close())
    }

    /// fi_cq_readerr of the next error into words that are `given` before, more than the structure has.
    pub fn read_error(&self, given: u64) -> [u64; 13] {
        let mut words = [given; 13];
        let readerr: unsafe extern "C" fn(*mut Fid, *mut u64, u64) -> isize = function(self.cq, 0, 2);
        let start = Instant::now();
        // SAFETY: room for the structure of any version.
        while unsafe { readerr(self.cq, words.as_mut_ptr(), 0) } != 1 {
            assert!(start.elapsed() < Duration::from_secs(900), "no error");
        }
        words
    }

    /// fi_cntr_open.
    pub fn counter(&self) -> Opened {
        self.opened(self.domain, 4, &[0; 8]).expect("a counter")
    }

    /// fi_cntr_open of a counter of bytes.
    pub fn counter_of_bytes(&self) -> Opened {
        self.opened(self.domain, 4, &[u64::from(FI_CNTR_EVENTS_BYTES), 0, 0, 0, 0, 0, 0, 0])
            .expect("a counter")
    }

    /// fi_eq_open with these flags and this kind of wait object. Returns FI_GETWAITOBJ of the queue.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn event_wait_object(&self, flags: u64, kind: u32) -> Result<u32, c_int> {
        let queue = self.opened(self.fabric, 2, &[0, flags, u64::from(kind), 0, 0, 0, 0, 0])?;
        let mut said = u32::MAX;
        // SAFETY: a place for the kind.
        assert_eq!(unsafe { control(queue.0, FI_GETWAITOBJ, &raw mut said) }, 0);
        assert_eq!(queue.try_close(), 0);
        Ok(said)
    }

    /// fi_trywait of the address vector, which nobody can wait for. Returns its error.
    pub fn try_wait_for_vector(&self) -> c_int {
        let trywait: unsafe extern "C" fn(*mut Fid, *const *mut Fid, c_int) -> c_int =
            function(self.fabric, 0, 4);
        // SAFETY: one object.
        unsafe { trywait(self.fabric, &raw const self.av, 1) }
    }

    /// fi_cq_open and fi_cntr_open with this kind of wait object, and FI_GETWAITOBJ of both.
    pub fn wait_objects(&self, kind: u32) -> [u32; 2] {
        // SAFETY: zero is a value of every field; eight words are enough for both attributes.
        let (queue, counter) = unsafe {
            let (mut queue, mut counter) = ([0_u64; 8], [0_u64; 8]);
            (*queue.as_mut_ptr().cast::<CqAttr>()).wait_obj = kind;
            (*counter.as_mut_ptr().cast::<CntrAttr>()).wait_obj = kind;
            (queue, counter)
        };
        [(1, queue), (4, counter)].map(|(at, attr)| {
            let (object, mut said) = (self.opened(self.domain, at, &attr).expect("an object"), u32::MAX);
            // SAFETY: a place for the kind.
            assert_eq!(unsafe { control(object.0, FI_GETWAITOBJ, &raw mut said) }, 0);
            assert_eq!(object.try_close(), 0);
            said
        })
    }

    /// FI_GETOPSFLAG or FI_SETOPSFLAG with these flags.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn flags(&self, command: c_int, mut flags: u64) -> Result<u64, c_int> {
        // SAFETY: a place for flags.
        match unsafe { control(self.ep, command, &raw mut flags) } {
            0 => Ok(flags),
            error => Err(error),
        }
    }

    /// fi_mr_map_raw of a raw key, and fi_mr_unmap_key of what it gives.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn map_raw(&self, raw: &[u8]) -> Result<u64, c_int> {
        let mut key = 0_u64;
        let mut words =
            [0, 0, raw.as_ptr() as u64, raw.len() as u64, (&raw mut key).expose_provenance() as u64];
        // SAFETY: the structure of the command: flags, base, raw key, its length, a place for the key.
        unsafe {
            match control(self.domain, FI_MAP_RAW_MR, words.as_mut_ptr()) {
                0 => {
                    assert_eq!(control(self.domain, FI_UNMAP_KEY, &raw mut key), 0);
                    Ok(key)
                }
                error => Err(error),
            }
        }
    }

    /// fi_cq_open.
    pub fn queue(&self) -> Opened {
        self.opened(self.domain, 1, &[0; 8]).expect("a queue")
    }

    /// fi_ep_alias: the same node with another object for its endpoint. Nobody closes it but the caller.
    ///
    /// # Errors
    ///
    /// The number of the error, negative.
    pub fn alias(&self, flags: u64) -> Result<ManuallyDrop<Node>, c_int> {
        let mut ep: *mut Fid = null_mut();
        let mut words = [(&raw mut ep).expose_provenance() as u64, flags];
        let Node { fabric, domain, cq, av, .. } = *self;
        // SAFETY: the structure of the command: a place for the object, and flags.
        match unsafe { control(self.ep, FI_ALIAS, words.as_mut_ptr()) } {
            0 => Ok(ManuallyDrop::new(Node { fabric, domain, ep, cq, av })),
            error => Err(error),
        }
    }

    /// fi_close of the endpoint's object. Returns its error.
    pub fn close_endpoint(&self) -> c_int {
        try_close(self.ep)
    }

    /// fi_av_insertsym. Returns what the call says, the numbers and the errors.
    pub fn insert_symmetric(
        &self,
        (node, nodes): (&CStr, usize),
        (service, services): (&CStr, usize),
    ) -> (c_int, Vec<u64>, Vec<c_int>) {
        type Insert = unsafe extern "C" fn(
            *mut Fid,
            *const c_char,
            usize,
            *const c_char,
            usize,
            *mut u64,
            u64,
            *mut c_int,
        ) -> c_int;
        const FI_SYNC_ERR: u64 = 1 << 58;
        let (mut numbers, mut errors) = (vec![0; nodes * services], vec![-1; nodes * services]);
        let (node, service, out) = (node.as_ptr(), service.as_ptr(), numbers.as_mut_ptr());
        let insert: Insert = function(self.av, 0, 2);
        // SAFETY: C strings, and as many places for numbers and errors as said.
        let said =
            unsafe { insert(self.av, node, nodes, service, services, out, FI_SYNC_ERR, errors.as_mut_ptr()) };
        (said, numbers, errors)
    }

    /// fi_cq_readfrom, which says that there is an error, and fi_cq_readerr into a buffer of so many bytes, or without
    /// one. Returns context, flags, length, error, and what belongs to the error.
    pub fn read_error_data(&self, room: usize) -> (usize, u64, usize, i32, String) {
        let (start, mut buffer) = (Instant::now(), vec![0xff_u8; room]);
        // SAFETY: room for one entry and one address; the buffer is as long as said; zero is a value of every field.
        unsafe {
            let read: unsafe extern "C" fn(*mut Fid, *mut CqEntry, usize, *mut u64) -> isize =
                function(self.cq, 0, 1);
            let readerr: unsafe extern "C" fn(*mut Fid, *mut CqErrEntry, u64) -> isize =
                function(self.cq, 0, 2);
            let (mut entry, mut source): (CqEntry, u64) = (std::mem::zeroed(), 0);
            while read(self.cq, &raw mut entry, 1, &raw mut source) != -(FI_EAVAIL as isize) {
                assert!(start.elapsed() < Duration::from_secs(900), "no error");
            }
            let mut error: CqErrEntry = std::mem::zeroed();
            (error.err_data, error.err_data_size) = (buffer.as_mut_ptr().cast(), room);
            assert_eq!(readerr(self.cq, &raw mut error, 0), 1);
            assert_eq!(error.src_addr, FI_ADDR_NOTAVAIL);
            let data = match error.err_data.is_null() {
                true => Vec::new(),
                false => {
                    std::slice::from_raw_parts(error.err_data.cast::<u8>(), error.err_data_size).to_vec()
                }
            };
            let data = String::from_utf8(data).expect("text");
            (error.context as usize, error.flags, error.len, error.err, data)
        }
    }

    /// fi_eq_open.
    pub fn event_queue(&self) -> Opened {
        self.opened(self.fabric, 2, &[0; 8]).expect("an event queue")
    }

    /// fi_av_insert of texts, as an array of pointers or one behind the other.
    /// Returns how many were inserted, and their numbers.
    pub fn insert_all(&self, texts: &[&str], apart: bool, flags: u64) -> (c_int, Vec<u64>) {
        let texts: Vec<CString> = texts.iter().map(|text| CString::new(*text).expect("a text")).collect();
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let joined: Vec<u8> = texts.iter().flat_map(|text| text.as_bytes_with_nul()).copied().collect();
        let at: *const u8 = if apart { pointers.as_ptr().cast() } else { joined.as_ptr() };
        let mut numbers = vec![0; texts.len()];
        let insert: unsafe extern "C" fn(*mut Fid, *const u8, usize, *mut u64, u64, *mut c_void) -> c_int =
            function(self.av, 0, 0);
        // SAFETY: as many addresses and places as said.
        let inserted = unsafe { insert(self.av, at, texts.len(), numbers.as_mut_ptr(), flags, null_mut()) };
        (inserted, numbers)
    }

    /// fi_av_insertsvc without a place for the number. Returns what the call says, and the error that it writes.
    pub fn insert_service_at_once(&self, node: &CStr, service: &CStr) -> (c_int, c_int) {
        type Insert =
            unsafe extern "C" fn(*mut Fid, *const c_char, *const c_char, *mut u64, u64, *mut c_int) -> c_int;
        let (insert, mut error): (Insert, c_int) = (function(self.av, 0, 1), -1);
        const FI_SYNC_ERR: u64 = 1 << 58;
        // SAFETY: C strings, and a place for the error.
        let said = unsafe {
            insert(self.av, node.as_ptr(), service.as_ptr(), null_mut(), FI_SYNC_ERR, &raw mut error)
        };
        (said, error)
    }

    /// fi_eq_open with FI_WAIT_FD. Returns the queue, and its descriptor.
    pub fn event_queue_to_poll(&self) -> (Opened, c_int) {
        let (events, mut fd) =
            (self.opened(self.fabric, 2, &[0, 0, u64::from(FI_WAIT_FD), 0, 0, 0, 0, 0]), -1);
        let events = events.expect("an event queue");
        // SAFETY: a place for a descriptor.
        assert_eq!(unsafe { control(events.0, FI_GETWAIT, &raw mut fd) }, 0);
        (events, fd)
    }

    /// fi_trywait of an event queue.
    pub fn may_wait_for(&self, events: &Opened) -> bool {
        let trywait: unsafe extern "C" fn(*mut Fid, *const *mut Fid, c_int) -> c_int =
            function(self.fabric, 0, 4);
        // SAFETY: one queue.
        let error = unsafe { trywait(self.fabric, &raw const events.0, 1) };
        assert!([0, -FI_EAGAIN].contains(&error), "{error}");
        error == 0
    }

    /// fi_eq_write of no bytes into a new event queue, and fi_eq_strerror of FI_ETRUNC.
    pub fn events(&self) -> (isize, String) {
        type Write = unsafe extern "C" fn(*mut Fid, u32, *const u8, usize, u64) -> isize;
        type Text = unsafe extern "C" fn(*mut Fid, c_int, *const c_void, *mut c_char, usize) -> *const c_char;
        let mut eq = null_mut();
        // SAFETY: as the manual pages want it; zero is a value of every field of the attributes.
        unsafe {
            let attr = [0_u64; 8];
            assert_eq!(
                function::<Open<[u64; 8]>>(self.fabric, 0, 2)(
                    self.fabric,
                    &raw const attr,
                    &raw mut eq,
                    null_mut()
                ),
                0
            );
            let written = function::<Write>(eq, 0, 2)(eq, 1, null(), 0, 0);
            let text = function::<Text>(eq, 0, 4)(eq, FI_ETRUNC, null(), null_mut(), 0);
            let text = CStr::from_ptr(text).to_string_lossy().into_owned();
            close(eq);
            (written, text)
        }
    }

    /// fi_cntr_open for this type of events, with these flags. Returns its error.
    pub fn open_counter(&self, events: u32, flags: u64) -> c_int {
        let mut counter = null_mut();
        // SAFETY: as the manual pages want it; zero is a value of every field of the attributes.
        let error = unsafe {
            let attr = CntrAttr { events, flags, ..std::mem::zeroed() };
            function::<Open<CntrAttr>>(self.domain, 0, 4)(
                self.domain,
                &raw const attr,
                &raw mut counter,
                null_mut(),
            )
        };
        if error == 0 {
            close(counter);
        }
        error
    }
}
