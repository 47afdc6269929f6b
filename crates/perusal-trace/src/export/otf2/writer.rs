//! An OTF2 archive that is being written: handles that cannot outlive it, calls that are checked.
//!
//! - **Writer rule 1.** The writer of a [`Location`] or of [`Definitions`] is open: it borrows the archive, and is
//!   closed once, by what has it.
//! - **Writer rule 2.** OTF2 has copied a text or a list when the call returns that is given its address. A list has as
//!   many elements as the call says; definitions name each other by number.

use super::library::{FlushCallbacks, Library, Opaque};
use crate::error::{Error, Result};
use core::cell::RefCell;
use core::ffi::c_void;
use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

/// OTF2_UNDEFINED_UINT32: no string, no parent, no file.
const NONE: u32 = u32::MAX;
const FILEMODE_WRITE: u8 = 0;
const CHUNK_OF_EVENTS: u64 = 1 << 20;
const CHUNK_OF_DEFINITIONS: u64 = 4 << 20;
const SUBSTRATE_POSIX: u8 = 1;
const COMPRESSION_NONE: u8 = 1;
const FLUSH: u8 = 1;
const TYPE_UINT64: u8 = 4;
const PARADIGM_MPI: u8 = 4;
const IO_PARADIGM_CLASS_PARALLEL: u8 = 1;
const PARADIGM_CLASS_PROCESS: u8 = 0;
const CPU_THREAD: u8 = 1;
const PROCESS: u8 = 1;
const GROUP_COMM_LOCATIONS: u8 = 4;
const GROUP_COMM: u8 = 5;
const METRIC_TYPE_OTHER: u8 = 0;
/// A value that holds from this moment on.
const METRIC_TIMING_NEXT: u8 = 3 << 4;
const METRIC_ABSOLUTE: u8 = 1;
const METRIC_SYNCHRONOUS: u8 = 1;
const RECORDER_ABSTRACT: u8 = 1;
const BASE_DECIMAL: u8 = 1;
/// A window whose making and freeing have events.
const WITH_EVENTS: u32 = 1;

extern "C" fn flush_always(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    FLUSH
}

/// Kept by OTF2 as long as the archive.
static FLUSH_CALLBACKS: Callbacks =
    Callbacks(FlushCallbacks { before: flush_always, after: std::ptr::null() });

struct Callbacks(FlushCallbacks);

// SAFETY: a function and a null pointer, never written.
unsafe impl Sync for Callbacks {}

/// The archive.
pub struct Archive<'a> {
    library: &'a Library,
    archive: Opaque,
    /// Attributes of the next region that begins or ends.
    attributes: Opaque,
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy)]
pub enum Attribute {
    Int32(i32),
    Uint32(u32),
    /// The number of a communicator.
    Comm(u32),
}

/// OTF2_Type of an attribute.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum AttributeKind {
    Uint32 = 3,
    Int32 = 7,
    Comm = 17,
}

fn text(text: &str) -> Result<CString> {
    CString::new(text.replace('\0', " ")).map_err(|error| Error::Trace(error.to_string()))
}

impl<'a> Archive<'a> {
    /// Makes the folder and opens what events are written to.
    pub fn create(library: &'a Library, folder: &Path) -> Result<Archive<'a>> {
        let path = CString::new(folder.as_os_str().as_bytes())
            .map_err(|_| Error::Trace("the folder's name contains a NUL byte".into()))?;
        // SAFETY: strings with their zeros; the modes are OTF2's.
        let archive = unsafe {
            (library.archive_open)(
                path.as_ptr(),
                c"traces".as_ptr(),
                FILEMODE_WRITE,
                CHUNK_OF_EVENTS,
                CHUNK_OF_DEFINITIONS,
                SUBSTRATE_POSIX,
                COMPRESSION_NONE,
            )
        };
        if archive.is_null() {
            return Err(Error::Trace(format!("OTF2 cannot make an archive in {}", folder.display())));
        }
        // SAFETY: no arguments; the list is ours until `close`.
        let attributes = unsafe { (library.attributes_new)() };
        if attributes.is_null() {
            return Err(Error::Trace("OTF2 has no memory for attributes".into()));
        }
        let this = Archive { library, archive, attributes };
        let creator = text(concat!("perusal ", env!("CARGO_PKG_VERSION")))?;
        // SAFETY: an open archive; the callbacks are static, the string outlives its call.
        unsafe {
            let flush = &raw const FLUSH_CALLBACKS.0;
            library.check("flush callbacks", (library.set_flush_callbacks)(archive, flush, null_mut()))?;
            library.check("serial use", (library.set_serial)(archive))?;
            library.check("creator", (library.set_creator)(archive, creator.as_ptr()))?;
            library.check("event files", (library.open_events)(archive))?;
        }
        Ok(this)
    }

    fn clear_attributes(&self) -> Result<()> {
        // SAFETY: the archive's own list.
        self.library.check("attributes", unsafe { (self.library.attributes_clear)(self.attributes) })
    }

    /// A location's events.
    pub fn location(&self, number: u64) -> Result<Location<'_>> {
        // SAFETY: an open archive whose event files are open.
        let writer = unsafe { (self.library.event_writer)(self.archive, number) };
        if writer.is_null() {
            return Err(Error::Trace(format!("OTF2 has no writer for location {number}")));
        }
        Ok(Location { archive: self, writer, last: 0 })
    }

    /// After the last location.
    pub fn close_events(&self) -> Result<()> {
        // SAFETY: an open archive.
        self.library.check("event files", unsafe { (self.library.close_events)(self.archive) })
    }

    /// The definitions of all locations.
    pub fn definitions(&self) -> Result<Definitions<'_>> {
        // SAFETY: an open archive.
        let writer = unsafe {
            self.library.check("definition files", (self.library.open_definitions)(self.archive))?;
            (self.library.global_writer)(self.archive)
        };
        if writer.is_null() {
            return Err(Error::Trace("OTF2 has no writer for definitions".into()));
        }
        let definitions = Definitions { archive: self, writer, strings: RefCell::default() };
        definitions.string("")?;
        Ok(definitions)
    }

    /// A location's own definitions: none, but a reader looks for the file.
    pub fn local_definitions(&self, number: u64) -> Result<()> {
        // SAFETY: an open archive whose definition files are open; the writer is closed once.
        let closed = unsafe {
            let writer = (self.library.definition_writer)(self.archive, number);
            if writer.is_null() {
                return Err(Error::Trace(format!("OTF2 has no definition writer for location {number}")));
            }
            (self.library.close_definition_writer)(self.archive, writer)
        };
        self.library.check("definitions of a location", closed)
    }

    /// Writes what is left.
    pub fn close(self) -> Result<()> {
        // SAFETY: an open archive, which nothing uses afterwards.
        unsafe {
            self.library.check("definition files", (self.library.close_definitions)(self.archive))?;
            self.library.check("attributes", (self.library.attributes_delete)(self.attributes))?;
            self.library.check("closing the archive", (self.library.archive_close)(self.archive))
        }
    }
}

/// A location whose events are being written. Times may not go back: what does is moved to the last one.
pub struct Location<'a> {
    archive: &'a Archive<'a>,
    writer: Opaque,
    last: u64,
}

impl Location<'_> {
    fn at(&mut self, when: u64) -> u64 {
        self.last = self.last.max(when);
        self.last
    }

    /// Gives the region that begins or ends next an attribute.
    pub fn attribute(&mut self, number: u32, value: Attribute) -> Result<()> {
        let Archive { library, attributes, .. } = *self.archive;
        // SAFETY: a list that the archive keeps, and numbers.
        let code = unsafe {
            match value {
                Attribute::Int32(value) => (library.add_int32)(attributes, number, value),
                Attribute::Uint32(value) => (library.add_uint32)(attributes, number, value),
                Attribute::Comm(comm) => (library.add_comm)(attributes, number, comm),
            }
        };
        library.check("attribute", code)
    }

    /// A region begins.
    pub fn enter(&mut self, when: u64, region: u32) -> Result<()> {
        let (library, when) = (self.archive.library, self.at(when));
        let attributes = self.archive.attributes;
        // SAFETY: writer rule 1; the archive's list of attributes, which is empty afterwards.
        library.check("enter", unsafe { (library.enter)(self.writer, attributes, when, region) })?;
        self.archive.clear_attributes()
    }

    /// A region ends.
    pub fn leave(&mut self, when: u64, region: u32) -> Result<()> {
        let (library, when) = (self.archive.library, self.at(when));
        let attributes = self.archive.attributes;
        // SAFETY: writer rule 1; the archive's list of attributes, which is empty afterwards.
        library.check("leave", unsafe { (library.leave)(self.writer, attributes, when, region) })?;
        self.archive.clear_attributes()
    }

    /// A message leaves.
    pub fn send(&mut self, when: u64, to: u32, comm: u32, tag: u32, bytes: u64) -> Result<()> {
        let (library, when) = (self.archive.library, self.at(when));
        // SAFETY: writer rule 1, and numbers; no attributes.
        let code = unsafe { (library.mpi_send)(self.writer, null_mut(), when, to, comm, tag, bytes) };
        library.check("send", code)
    }

    /// A message comes.
    pub fn receive(&mut self, when: u64, from: u32, comm: u32, tag: u32, bytes: u64) -> Result<()> {
        let (library, when) = (self.archive.library, self.at(when));
        // SAFETY: writer rule 1, and numbers; no attributes.
        let code = unsafe { (library.mpi_recv)(self.writer, null_mut(), when, from, comm, tag, bytes) };
        library.check("receive", code)
    }

    /// The values of a metric class, at most two.
    pub fn metric(&mut self, when: u64, class: u32, values: &[u64]) -> Result<()> {
        const TYPES: [u8; 2] = [TYPE_UINT64; 2];
        assert!(values.len() <= TYPES.len(), "at most two members a class");
        let (library, when) = (self.archive.library, self.at(when));
        let count = values.len() as u8;
        // SAFETY: writer rule 1; both lists have `count` elements, and OTF2's union of a value is 64 bits.
        let code = unsafe {
            (library.metric)(self.writer, null_mut(), when, class, count, TYPES.as_ptr(), values.as_ptr())
        };
        library.check("metric", code)
    }

    /// Calls the function that writes one event, with the library, the writer and the time.
    pub(super) fn event(
        &mut self,
        what: &str,
        when: u64,
        write: impl FnOnce(&Library, Opaque, u64) -> core::ffi::c_int,
    ) -> Result<()> {
        let (library, when) = (self.archive.library, self.at(when));
        library.check(what, write(library, self.writer, when))
    }

    /// Ends it; the number of its events.
    pub fn close(self) -> Result<u64> {
        let library = self.archive.library;
        let mut count = 0;
        // SAFETY: an open writer of the archive, closed once; `count` is a live number.
        unsafe {
            library.check("counting events", (library.event_count)(self.writer, &raw mut count))?;
            library.check("events", (library.close_event_writer)(self.archive.archive, self.writer))?;
        }
        Ok(count)
    }
}

/// What events speak of. Names become strings of their own when they first come.
pub struct Definitions<'a> {
    archive: &'a Archive<'a>,
    writer: Opaque,
    strings: RefCell<HashMap<String, u32>>,
}

impl Definitions<'_> {
    fn check(&self, what: &str, code: core::ffi::c_int) -> Result<()> {
        self.archive.library.check(what, code)
    }

    fn string(&self, name: &str) -> Result<u32> {
        let mut strings = self.strings.borrow_mut();
        if let Some(number) = strings.get(name) {
            return Ok(*number);
        }
        let (number, string) = (strings.len() as u32, text(name)?);
        // SAFETY: writer rules 1 and 2: a number, and a text that outlives the call.
        let code = unsafe { (self.archive.library.string)(self.writer, number, string.as_ptr()) };
        self.check("string", code)?;
        strings.insert(name.into(), number);
        Ok(number)
    }

    /// Ticks are nanoseconds; the trace begins at 0, which was `started`.
    pub fn clock(&self, length: u64, started: u64) -> Result<()> {
        // SAFETY: writer rule 1, and numbers.
        let code =
            unsafe { (self.archive.library.clock)(self.writer, 1_000_000_000, 0, length + 1, started) };
        self.check("clock", code)
    }

    /// The paradigm of all regions.
    pub fn paradigm(&self, name: &str) -> Result<()> {
        let name = self.string(name)?;
        // SAFETY: writer rule 1, and numbers.
        let code = unsafe {
            (self.archive.library.paradigm)(self.writer, PARADIGM_MPI, name, PARADIGM_CLASS_PROCESS)
        };
        self.check("paradigm", code)
    }

    /// The machine, and the job on it: system tree nodes 0 and 1.
    pub fn node(&self, host: &str, command: &str) -> Result<()> {
        let (host, command, class, job) =
            (self.string(host)?, self.string(command)?, self.string("node")?, self.string("job")?);
        // SAFETY: writer rule 1, and numbers.
        unsafe {
            self.check("node", (self.archive.library.system_node)(self.writer, 0, host, class, NONE))?;
            self.check("job", (self.archive.library.system_node)(self.writer, 1, command, job, 0))
        }
    }

    /// A region.
    pub fn region(&self, number: u32, name: &str, role: u8) -> Result<()> {
        let (name, empty) = (self.string(name)?, self.string("")?);
        // SAFETY: writer rule 1, and numbers.
        let code = unsafe {
            let library = self.archive.library;
            (library.region)(self.writer, number, name, name, empty, role, PARADIGM_MPI, 0, NONE, 0, 0)
        };
        self.check("region", code)
    }

    /// An attribute of regions.
    pub fn attribute(&self, number: u32, name: &str, what: &str, kind: AttributeKind) -> Result<()> {
        let (name, what) = (self.string(name)?, self.string(what)?);
        // SAFETY: writer rule 1, and numbers.
        let code = unsafe { (self.archive.library.attribute)(self.writer, number, name, what, kind as u8) };
        self.check("attribute", code)
    }

    /// A metric of which there may be several in a class.
    pub fn metric_member(&self, number: u32, name: &str, what: &str) -> Result<()> {
        let (name, what, unit) = (self.string(name)?, self.string(what)?, self.string("entries")?);
        let mode = METRIC_ABSOLUTE | METRIC_TIMING_NEXT;
        // SAFETY: writer rule 1, and numbers.
        let code = unsafe {
            let (library, kind) = (self.archive.library, METRIC_TYPE_OTHER);
            (library.metric_member)(
                self.writer,
                number,
                name,
                what,
                kind,
                mode,
                TYPE_UINT64,
                BASE_DECIMAL,
                0,
                unit,
            )
        };
        self.check("metric", code)
    }

    /// Metrics that are written together.
    pub fn metric_class(&self, number: u32, members: &[u32]) -> Result<()> {
        // SAFETY: writer rules 1 and 2: numbers, and a list of `count` elements that outlives the call.
        let code = unsafe {
            let (library, count) = (self.archive.library, members.len() as u8);
            let (when, by) = (METRIC_SYNCHRONOUS, RECORDER_ABSTRACT);
            (library.metric_class)(self.writer, number, count, members.as_ptr(), when, by)
        };
        self.check("metric class", code)
    }

    /// A rank, as a process of the job.
    pub fn process(&self, number: u32, name: &str) -> Result<()> {
        let name = self.string(name)?;
        // SAFETY: writer rule 1, and numbers.
        let code =
            unsafe { (self.archive.library.location_group)(self.writer, number, name, PROCESS, 1, NONE) };
        self.check("process", code)
    }

    /// A location of a process, which has so many events.
    pub fn location(&self, number: u64, name: &str, events: u64, process: u32) -> Result<()> {
        let name = self.string(name)?;
        // SAFETY: writer rule 1, and numbers.
        let code = unsafe {
            (self.archive.library.location)(self.writer, number, name, CPU_THREAD, events, process)
        };
        self.check("location", code)
    }

    /// The location of each rank: group 0.
    pub fn ranks(&self, locations: &[u64]) -> Result<()> {
        self.group(0, "ranks", GROUP_COMM_LOCATIONS, locations)
    }

    /// A communicator of these ranks of the job; its group is the next number.
    pub fn communicator(&self, number: u32, name: &str, ranks: &[u64]) -> Result<()> {
        self.group(number + 1, "", GROUP_COMM, ranks)?;
        let name = self.string(name)?;
        // SAFETY: writer rule 1, and numbers.
        let code = unsafe { (self.archive.library.comm)(self.writer, number, name, number + 1, NONE, 0) };
        self.check("communicator", code)
    }

    /// A window of the members of a communicator.
    pub fn window(&self, number: u32, name: &str, comm: u32) -> Result<()> {
        let name = self.string(name)?;
        // SAFETY: writer rule 1, and numbers.
        let code = unsafe { (self.archive.library.rma_win)(self.writer, number, name, comm, WITH_EVENTS) };
        self.check("window", code)
    }

    /// What files are accessed by.
    pub fn io_paradigm(&self, name: &str) -> Result<()> {
        let name = self.string(name)?;
        let nothing = core::ptr::null();
        // SAFETY: writer rule 1, and numbers; there are no properties.
        let code = unsafe {
            let (library, class) = (self.archive.library, IO_PARADIGM_CLASS_PARALLEL);
            let none = core::ptr::null();
            (library.io_paradigm)(self.writer, 0, name, name, class, 0, 0, nothing, nothing, none)
        };
        self.check("I/O paradigm", code)
    }

    /// A file on the machine, and its opening by the members of a communicator, which have the same number.
    pub fn file(&self, number: u32, name: &str, comm: u32) -> Result<()> {
        let name = self.string(name)?;
        let (library, writer) = (self.archive.library, self.writer);
        // SAFETY: writer rule 1, and numbers.
        unsafe {
            self.check("file", (library.io_file)(writer, number, name, 0))?;
            self.check("file", (library.io_handle)(writer, number, name, number, 0, 0, comm, NONE))
        }
    }

    fn group(&self, number: u32, name: &str, kind: u8, members: &[u64]) -> Result<()> {
        let name = self.string(name)?;
        let count = members.len() as u32;
        // SAFETY: writer rules 1 and 2: numbers, and a list of `count` elements that outlives the call.
        let code = unsafe {
            let library = self.archive.library;
            (library.group)(self.writer, number, name, kind, PARADIGM_MPI, 0, count, members.as_ptr())
        };
        self.check("group", code)
    }

    /// Nothing more is defined.
    pub fn close(self) -> Result<()> {
        let (library, archive) = (self.archive.library, self.archive.archive);
        // SAFETY: an open writer of the archive, closed once.
        self.check("definitions", unsafe { (library.close_global_writer)(archive, self.writer) })
    }
}
