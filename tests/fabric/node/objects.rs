//! Objects besides an endpoint's own, and how they are bound and closed.

use super::*;

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
}

impl Node {
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

    /// fi_cntr_open.
    pub fn counter(&self) -> Opened {
        self.opened(self.domain, 4, &[0; 8]).expect("a counter")
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

    /// fi_eq_open.
    pub fn event_queue(&self) -> Opened {
        self.opened(self.fabric, 2, &[0; 8]).expect("an event queue")
    }

    /// fi_av_insert of texts, as an array of pointers or one behind the other. Returns how many were inserted, and their numbers.
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

    /// fi_cntr_open for this type of events. Returns its error.
    pub fn open_counter(&self, events: u32) -> c_int {
        let mut counter = null_mut();
        // SAFETY: as the manual pages want it; zero is a value of every field of the attributes.
        let error = unsafe {
            let attr = CntrAttr { events, ..std::mem::zeroed() };
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
