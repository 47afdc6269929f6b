//! What this process has mapped, as the kernel says (Linux 6.11: `PROCMAP_QUERY`).

use core::mem::size_of;
use core::ops::Range;
use rustix::fs::{fstat, major, minor};
use std::fs::File;
use std::os::fd::AsRawFd;

const PATH: &str = "/proc/self/maps";

/// Bits of `Query::query_flags` and `Query::vma_flags` (`linux/fs.h`).
const READABLE: u64 = 1;
const WRITABLE: u64 = 2;
const SHARED: u64 = 8;
const COVERING_OR_NEXT: u64 = 16;

/// Most bytes of a mapping's name.
const NAME: usize = 128;

/// `struct procmap_query`.
#[repr(C)]
#[derive(Debug, Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

/// `_IOWR('f', 17, struct procmap_query)`.
const PROCMAP_QUERY: u64 = 3 << 30 | (size_of::<Query>() as u64) << 16 | (b'f' as u64) << 8 | 17;

/// A file as the kernel knows it: its device's two numbers, and its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId(u32, u32, u64);

impl FileId {
    /// That of an open file; `None` if the kernel does not say.
    pub fn of(file: &File) -> Option<Self> {
        let stat = fstat(file).ok()?;
        Some(Self(major(stat.st_dev), minor(stat.st_dev), stat.st_ino))
    }
}

/// One mapping.
#[derive(Debug)]
pub struct Mapping {
    /// Its addresses.
    pub addresses: Range<usize>,
    /// What it shows: the file, and the byte of it at which the mapping begins. `None` for memory without a file.
    pub file: Option<(FileId, u64)>,
    /// What kind of memory it is.
    pub kind: MemoryKind,
}

/// What kind of memory a mapping is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// What malloc has by `brk`: private, and to be read and written.
    Break,
    /// Other private memory that may be read and written, and is no file's.
    Private,
    /// Anything else.
    Other,
}

/// Answers what lies at an address of this process.
#[derive(Debug)]
pub struct Mappings {
    maps: File,
}

impl Mappings {
    /// `None` where the kernel does not answer.
    pub fn open() -> Option<Self> {
        let mappings = Self { maps: File::open(PATH).ok()? };
        let known = mappings.at(PATH.as_ptr().addr()).ok()?;
        known.map(|_| mappings)
    }

    /// The mapping that has an address, if one does.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub fn at(&self, addr: usize) -> std::io::Result<Option<Mapping>> {
        self.ask(addr, 0)
    }

    /// The mapping that has an address, or the next one behind it.
    ///
    /// # Errors
    /// As for [`at`](Self::at).
    pub fn at_or_behind(&self, addr: usize) -> std::io::Result<Option<Mapping>> {
        self.ask(addr, COVERING_OR_NEXT)
    }

    fn ask(&self, addr: usize, flags: u64) -> std::io::Result<Option<Mapping>> {
        let mut query = Query {
            size: size_of::<Query>() as u64,
            query_flags: flags,
            query_addr: addr as u64,
            ..Query::default()
        };
        if !self.ioctl(&mut query)? {
            return Ok(None);
        }
        let addresses = query.vma_start as usize..query.vma_end as usize;
        let id = FileId(query.dev_major, query.dev_minor, query.inode);
        let file = (query.inode != 0).then_some((id, query.vma_offset));
        let is_private =
            file.is_none() && query.vma_flags & (READABLE | WRITABLE | SHARED) == READABLE | WRITABLE;
        let mut kind = MemoryKind::Other;
        if is_private {
            let mut name = [0_u8; NAME];
            (query.vma_name_size, query.vma_name_addr) = (NAME as u32, name.as_mut_ptr() as u64);
            // A name that is longer is an error, and none of these.
            kind = match self.ioctl(&mut query) {
                Ok(true) if name.starts_with(b"[heap]") => MemoryKind::Break,
                Ok(true) if !name.starts_with(b"[stack]") => MemoryKind::Private,
                _ => MemoryKind::Other,
            };
        }
        Ok(Some(Mapping { addresses, file, kind }))
    }

    /// Whether there is such a mapping.
    fn ioctl(&self, query: &mut Query) -> std::io::Result<bool> {
        // SAFETY: the kernel fills a query, which is as long as its `size` says, and the room for a name that it names.
        let done =
            unsafe { libc::ioctl(self.maps.as_raw_fd(), PROCMAP_QUERY as _, core::ptr::from_mut(query)) };
        match std::io::Error::last_os_error() {
            _ if done == 0 => Ok(true),
            error if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            error => Err(error),
        }
    }

    /// Whether a driver's memory is mapped. Its device may have pages of this process pinned, and would go on using
    /// them where the process sees others in their place.
    pub fn has_devices() -> bool {
        let Ok(text) = std::fs::read_to_string(PATH) else { return true };
        let path = |line: &str| line.split_ascii_whitespace().nth(5).map(str::to_owned);
        text.lines().filter_map(path).any(|path| is_device(&path))
    }
}

fn is_device(path: &str) -> bool {
    const MEMORY: [&str; 2] = ["/dev/shm/", "/dev/zero"];
    (path.starts_with("/dev/") && !MEMORY.iter().any(|memory| path.starts_with(memory)))
        || path.starts_with("anon_inode:")
}
