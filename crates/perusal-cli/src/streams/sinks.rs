//! All places where the launcher writes what ranks write: its own standard output and error, and files.

use rustix::event::epoll::EventFlags;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use super::output::{LAUNCHER, Outlet, Sink, WriterId};
use super::output_files::{self, OutputFiles};
use crate::sys::{self, Epoll};

/// The sinks that a stream of a rank goes to, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Targets {
    first: usize,
    copy: Option<usize>,
}

impl Targets {
    /// Where standard output goes, if nothing else is asked for.
    #[cfg(test)]
    pub const OUT: Self = Self { first: 0, copy: None };

    fn all(self) -> impl Iterator<Item = usize> {
        [self.first].into_iter().chain(self.copy)
    }
}

/// The launcher's sinks: first its own, then files.
#[derive(Debug)]
pub struct Sinks {
    sinks: Vec<Sink<'static>>,
    /// Which sinks are watched for room.
    armed: Vec<bool>,
    /// Which sinks are so full that their streams rest.
    resting: Vec<bool>,
    /// Standard output and error; one sink, if both lead to the same place.
    own: [usize; 2],
    /// The files that are open.
    files: HashMap<PathBuf, usize>,
}

impl Sinks {
    /// Standard output and error.
    pub fn new() -> Self {
        let (out, err) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        let together = sys::identity(out).is_some() && sys::identity(out) == sys::identity(err);
        let mut all = Self {
            sinks: vec![],
            armed: vec![],
            resting: vec![],
            own: [0, usize::from(!together)],
            files: HashMap::new(),
        };
        all.add(Sink::new(out));
        if !together {
            all.add(Sink::new(err));
        }
        all
    }

    fn add(&mut self, sink: Sink<'static>) -> usize {
        self.sinks.push(sink);
        self.armed.push(false);
        self.resting.push(false);
        self.sinks.len() - 1
    }

    /// Where both streams of `rank` go, in a job of `ranks`. Its files are opened, unless they are open.
    ///
    /// # Errors
    /// Names the file that cannot be opened.
    pub fn targets(&mut self, files: &OutputFiles, rank: u32, ranks: u32) -> io::Result<[Targets; 2]> {
        let mut targets = [Targets { first: self.own[0], copy: None }; 2];
        for (stream, targets) in targets.iter_mut().enumerate() {
            let stream = if files.merged { 0 } else { stream };
            targets.first = self.own[stream];
            let Some(path) = files.name_of(stream, rank, ranks) else { continue };
            let file = self
                .file(&path)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            if files.alone {
                targets.first = file;
            } else {
                targets.copy = Some(file);
            }
        }
        Ok(targets)
    }

    fn file(&mut self, path: &Path) -> io::Result<usize> {
        if let Some(open) = self.files.get(path) {
            return Ok(*open);
        }
        let number = self.add(Sink::of_file(output_files::open(path)?));
        self.files.insert(path.to_owned(), number);
        Ok(number)
    }

    /// Those of a stream.
    pub fn of(&mut self, targets: Targets) -> Chosen<'_> {
        Chosen { sinks: self, targets }
    }

    /// A line of the launcher's own, in order with what ranks have written to standard error.
    pub fn say(&mut self, line: &str) {
        self.sinks[self.own[1]].put(LAUNCHER, perusal_trace::terminal::lines(line).as_bytes());
    }

    /// Writes what can be written, and has `epoll` wake the launcher, with `token`, when the rest can be.
    pub fn flush(&mut self, epoll: &Epoll, token: u64) {
        for (sink, armed) in self.sinks.iter_mut().zip(&mut self.armed) {
            let left = sink.flush();
            if left && !*armed {
                *armed = epoll.add(sink.fd(), EventFlags::OUT, token).is_ok();
            } else if !left && *armed {
                epoll.remove(sink.fd());
                *armed = false;
            }
        }
    }

    /// Whether a sink is full that was not, or has room again, since this was last asked.
    pub fn take_turned(&mut self) -> bool {
        let mut turned = false;
        for (sink, resting) in self.sinks.iter().zip(&mut self.resting) {
            turned |= sink.is_full() != *resting;
            *resting = sink.is_full();
        }
        turned
    }

    /// Whether something waits for which the system cannot say when it can be written.
    pub fn want_retry(&self) -> bool {
        self.sinks.iter().zip(&self.armed).any(|(sink, armed)| !sink.is_empty() && !armed)
    }

    /// Whether nothing waits.
    pub fn are_empty(&self) -> bool {
        self.sinks.iter().all(Sink::is_empty)
    }

    /// Why standard output or a file cannot be written any more; the file.
    pub fn broken(&self) -> Option<(&io::Error, Option<&Path>)> {
        if let Some(error) = self.sinks[self.own[0]].broken() {
            return Some((error, None));
        }
        let mut files = self.files.iter();
        files.find_map(|(path, number)| Some((self.sinks[*number].broken()?, Some(path.as_path()))))
    }
}

/// The sinks of one stream.
#[derive(Debug)]
pub struct Chosen<'a> {
    sinks: &'a mut Sinks,
    targets: Targets,
}

impl Outlet for Chosen<'_> {
    fn put(&mut self, writer: WriterId, text: &[u8]) {
        for number in self.targets.all() {
            self.sinks.sinks[number].put(writer, text);
        }
    }

    fn is_full(&self) -> bool {
        self.targets.all().any(|number| self.sinks.sinks[number].is_full())
    }
}
