//! A trace's file, as those who write it have it: the launcher, which makes and ends it, and each rank,
//! which takes windows.

use super::format::{self, TraceHeader, header, rank as block};
use crate::arch::clock;
use crate::error::{Error, Result};
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes that each rank may write if nobody says otherwise: eight million records.
pub const DEFAULT_LIMIT: u64 = 256 << 20;

/// What the file of a job of `ranks` ranks begins with that is about to start on this machine: `command` and its
/// arguments. CPUs are for the launcher to add.
#[must_use]
pub fn trace_header(ranks: u32, limit: u64, command: impl Iterator<Item = String>) -> TraceHeader {
    let base = clock::read();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    TraceHeader {
        ranks,
        limit,
        started: u64::try_from(started.as_nanos()).unwrap_or(0),
        base_ticks: base.ticks,
        base_nanoseconds: base.nanoseconds,
        ticks_per_second: clock::source().ticks_per_second,
        command: command.collect::<Vec<_>>().join(" "),
        host: host.trim().to_owned(),
        cpus: vec![],
        capacity: 0,
    }
}

/// A new trace in the place of an earlier one, which lies beside it until this is dropped.
#[derive(Debug)]
pub struct Replaced {
    new: PathBuf,
    earlier: Option<PathBuf>,
}

impl Replaced {
    /// Takes the new trace away, and gives the earlier one its name again.
    pub fn undo(mut self) {
        // It does not matter if somebody else has removed them.
        let _ = match self.earlier.take() {
            Some(earlier) => std::fs::rename(earlier, &self.new),
            None => std::fs::remove_file(&self.new),
        };
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        if let Some(earlier) = self.earlier.take() {
            // As in `undo`.
            let _ = std::fs::remove_file(earlier);
        }
    }
}

/// Makes the file of a job that is about to start. What is there is replaced if it is empty or a trace, and nothing
/// else is. A job that still writes an older trace of that name goes on in that file, which loses its name once the
/// answer is dropped. Nobody else may read a new file: command lines are in it. Where it cannot be made
/// whole, none is left.
///
/// # Errors
/// [`Error::Trace`] with the path, and what is in the way.
pub fn create(path: &Path, trace_header: &TraceHeader) -> Result<Replaced> {
    let wrong = |what: String| Error::Trace(format!("{}: {what}", path.display()));
    let failed = |error: io::Error| {
        let full = error.kind() == io::ErrorKind::StorageFull;
        wrong(format!("{error}{}", if full { "; make room, or name a file on another disk" } else { "" }))
    };
    let open =
        || OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    let is_new = !path.try_exists().unwrap_or(true);
    let mut file = open().map_err(failed)?;
    let there = file.metadata().map_err(failed)?;
    if !there.is_file() {
        return Err(wrong("a trace is written to a regular file, which this is not".into()));
    }
    let mut magic = [0; 8];
    if there.len() > 0
        && (file.read_exact_at(&mut magic, 0).is_err() || u64::from_le_bytes(magic) != format::MAGIC)
    {
        return Err(wrong("the file is there and is no trace; name another, or remove it".into()));
    }
    let mut replaced = Replaced { new: path.canonicalize().map_err(failed)?, earlier: None };
    let mut written = || {
        // Whoever has mapped it would be killed if it became shorter. Where names cannot be taken away it has to.
        if there.len() > 0 {
            let mut beside = replaced.new.clone().into_os_string();
            beside.push(format!(".{}.earlier", std::process::id()));
            if std::fs::rename(&replaced.new, &beside).is_ok() {
                replaced.earlier = Some(beside.into());
                file = open()?;
            }
        }
        let bytes = trace_header.bytes();
        file.set_len(0)?;
        reserve(&file, 0, bytes.len() as u64)?;
        file.write_all_at(&bytes, 0)
    };
    match written() {
        Ok(()) => Ok(replaced),
        Err(error) => {
            if is_new || replaced.earlier.is_some() {
                replaced.undo();
            }
            Err(failed(error))
        }
    }
}

/// Notes how the job ended.
///
/// # Errors
/// [`Error::Trace`] with the path, if the file is gone or cannot be written.
pub fn finish(path: &Path, status: i32) -> Result<()> {
    let failed = |error: io::Error| Error::Trace(format!("{}: {error}", path.display()));
    let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    file.write_all_at(&status.to_le_bytes(), header::STATUS).map_err(failed)?;
    file.write_all_at(&1_u32.to_le_bytes(), header::ENDED).map_err(failed)
}

/// Takes room on the disk, so that touching it through a mapping cannot fail.
fn reserve(file: &File, at: u64, length: u64) -> io::Result<()> {
    check_file_size(at.saturating_add(length))?;
    loop {
        // SAFETY: integers only, on a descriptor that `file` keeps open.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), at.cast_signed(), length.cast_signed()) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// An error where the kernel would end the process by SIGXFSZ.
fn check_file_size(end: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live rlimit that the call fills.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if known && end > limit.rlim_cur { Err(io::Error::from_raw_os_error(libc::EFBIG)) } else { Ok(()) }
}

/// Why there is no window.
#[derive(Debug)]
pub enum WindowError {
    /// The rank has all that its limit allows.
    Limit,
    /// The disk is full, or the like.
    Disk(io::Error),
}

/// The file as one rank has it.
#[derive(Debug)]
pub struct Store {
    file: File,
    /// Header and rank blocks.
    head: MmapRaw,
    rank: u32,
    limit: u64,
    /// What records count their ticks from.
    pub base: u64,
}

impl Store {
    /// Opens what the launcher has made.
    ///
    /// # Errors
    /// [`Error::Trace`] with the path.
    pub fn open(path: &Path, rank: u32) -> Result<Store> {
        let store = Store::map(path, |start, begin| {
            let ranks = format::get_u32(start, header::RANKS).unwrap_or(0);
            if rank < ranks && begin == format::windows_begin(ranks) {
                return Ok(());
            }
            Err(format!("the trace is one of {ranks} ranks, and this is rank {rank}"))
        })?;
        let store = store.of_rank(rank);
        // Relaxed: a plain fact, for whoever reads later.
        store.block_u32(block::PID).store(std::process::id(), Ordering::Relaxed);
        Ok(store)
    }

    /// Opens a trace, if `check` takes its header and where its windows begin; as that of rank 0.
    ///
    /// # Errors
    /// [`Error::Trace`] with the path, and what `check` says.
    pub(super) fn map(
        path: &Path,
        check: impl FnOnce(&[u8], u64) -> core::result::Result<(), String>,
    ) -> Result<Store> {
        let wrong = |what: String| Error::Trace(format!("{}: {what}", path.display()));
        let failed = |error: io::Error| wrong(error.to_string());
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let mut start = vec![0; format::HEADER as usize];
        file.read_exact_at(&mut start, 0).map_err(failed)?;
        let word = |at| format::get_u64(&start, at).unwrap_or(0);
        let length = file.metadata().map_err(failed)?.len();
        let begin = word(header::WINDOWS);
        if word(header::MAGIC) != format::MAGIC || begin > length {
            return Err(wrong("this is not the trace that the launcher has made".into()));
        }
        check(&start, begin).map_err(wrong)?;
        let head = MmapOptions::new().len(begin as usize).map_raw(&file).map_err(failed)?;
        Ok(Store { file, head, rank: 0, limit: word(header::LIMIT), base: word(header::BASE_TICKS) })
    }

    /// The file as this rank has it.
    pub(super) fn of_rank(self, rank: u32) -> Store {
        Store { rank, ..self }
    }

    /// The rank that this is the file of.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    pub(super) fn u64_at(&self, at: u64) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.head.len() as u64, "a word of the head");
        // SAFETY: inside the mapping, which `self` keeps, and aligned: the mapping begins on a page. All who write
        // there in another process do so with atomic instructions,
        // or did so before this process was started (trace rule 1).
        unsafe { &*self.head.as_ptr().add(at as usize).cast::<AtomicU64>() }
    }

    fn block_u32(&self, offset: u64) -> &AtomicU32 {
        self.u32_at(format::HEADER + u64::from(self.rank) * format::RANK_BLOCK + offset)
    }

    pub(super) fn u32_at(&self, at: u64) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.head.len() as u64, "a word of the head");
        // SAFETY: inside the mapping, which `self` keeps, and aligned: the mapping begins on a page. All who write
        // there in another process do so with atomic instructions,
        // or did so before this process was started (trace rule 1).
        unsafe { &*self.head.as_ptr().add(at as usize).cast::<AtomicU32>() }
    }

    fn block_u64(&self, offset: u64) -> &AtomicU64 {
        self.u64_at(format::HEADER + u64::from(self.rank) * format::RANK_BLOCK + offset)
    }

    /// A number for a new stream.
    pub fn next_stream(&self) -> u32 {
        // Relaxed: a counter.
        self.block_u32(block::STREAMS).fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that the rank has come to MPI_Finalize.
    pub fn finalized(&self) {
        // Relaxed: a plain fact, for whoever reads later.
        self.block_u32(block::FINALIZED).store(1, Ordering::Relaxed);
    }

    /// Counts an event that gets no record.
    pub fn drop_event(&self, number: u16) {
        let number = u64::from(number).min(block::DROPPED_LENGTH - 1);
        // Relaxed: a counter.
        self.block_u64(block::DROPPED + number * 8).fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a record that goes on with the one before it.
    pub fn continued(&self) {
        // Relaxed: a counter.
        self.block_u64(block::CONTINUED).fetch_add(1, Ordering::Relaxed);
    }

    /// Notes why recording stops before the limit.
    pub fn stopped_by(&self, error: &io::Error) {
        let number = error.raw_os_error().unwrap_or(libc::EIO);
        // Relaxed: a plain fact, for whoever reads later.
        self.block_u32(block::ERROR).store(number.cast_unsigned(), Ordering::Relaxed);
    }

    /// Takes a place for a window that is nobody else's.
    fn place(&self) -> core::result::Result<u64, WindowError> {
        // Relaxed: counters; what lies in a window is published by its own words.
        let taken = self.block_u64(block::TAKEN).fetch_add(format::UNIT, Ordering::Relaxed);
        if taken.saturating_add(format::UNIT) > self.limit {
            self.block_u64(block::TAKEN).fetch_sub(format::UNIT, Ordering::Relaxed);
            return Err(WindowError::Limit);
        }
        // Relaxed: as above; an addition gives each who takes a place of their own.
        Ok(self.u64_at(format::NEXT).fetch_add(format::UNIT, Ordering::Relaxed))
    }

    /// A window of one unit, mapped, all zero, its pages at hand.
    pub fn stage(&self) -> core::result::Result<MmapRaw, WindowError> {
        let at = self.place()?;
        reserve(&self.file, at, format::UNIT).map_err(WindowError::Disk)?;
        let length = format::UNIT as usize;
        MmapOptions::new().offset(at).len(length).populate().map_raw(&self.file).map_err(WindowError::Disk)
    }

    /// Copies a stage to a place of its own.
    pub fn keep(&self, stage: &MmapRaw) -> core::result::Result<(), WindowError> {
        let at = self.place()?;
        check_file_size(at + stage.len() as u64).map_err(WindowError::Disk)?;
        let mut done = 0;
        while done < stage.len() {
            // SAFETY: `done` is within the stage, which is mapped; the kernel reads what is left of it.
            let written = unsafe {
                let from = stage.as_ptr().add(done).cast();
                libc::pwrite(
                    self.file.as_raw_fd(),
                    from,
                    stage.len() - done,
                    (at + done as u64).cast_signed(),
                )
            };
            match usize::try_from(written) {
                Ok(0) => return Err(WindowError::Disk(io::Error::from_raw_os_error(libc::ENOSPC))),
                Ok(written) => done += written,
                Err(_) => match io::Error::last_os_error() {
                    again if again.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(WindowError::Disk(error)),
                },
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::testing::ScratchFile;

    #[test]
    fn what_is_no_trace_is_not_written_over() {
        let scratch = ScratchFile::new("program");
        std::fs::write(scratch.path(), "int main() {}").expect("writable");
        let error = create(scratch.path(), &TraceHeader { ranks: 1, ..TraceHeader::default() })
            .unwrap_err()
            .to_string();
        assert!(error.contains("is there and is no trace"), "{error}");
        assert_eq!(std::fs::read(scratch.path()).expect("there"), b"int main() {}");
    }

    #[test]
    fn a_trace_is_its_owner_s_alone() {
        use std::os::unix::fs::PermissionsExt;
        let trace_header = TraceHeader { ranks: 1, ..TraceHeader::default() };
        let scratch = ScratchFile::new("private");
        let mode = || std::fs::metadata(scratch.path()).expect("there").permissions().mode() & 0o777;
        create(scratch.path(), &trace_header).expect("writable");
        assert_eq!(mode(), 0o600);
        // An older trace that everybody could read is replaced by one that they cannot.
        std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o644)).expect("ours");
        create(scratch.path(), &trace_header).expect("writable");
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        for path in ["/no/such/folder/trace", "/dev/null", "/tmp"] {
            let error =
                create(Path::new(path), &TraceHeader { ranks: 1, ..TraceHeader::default() }).unwrap_err();
            assert!(error.to_string().contains(path), "{error}");
        }
    }
}
