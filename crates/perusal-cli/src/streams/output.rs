//! Passes on what ranks write, whole lines at a time, and never waits for the reader.

use rustix::fs::FileType;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use super::label::Label;
use super::sinks::Targets;
use crate::sys;

/// Bytes that a pipe takes at once without waiting when it is writable at all (PIPE_BUF).
const ATOM: usize = 4096;
/// Bytes waiting in a sink from which on no more is read from the ranks.
const FULL: usize = 1 << 20;
/// Length of a line from which on it is passed on in pieces.
const LONG_LINE: usize = 64 << 20;
/// Bytes read from a rank at once.
const PIECE: usize = 64 << 10;

/// Identifies a writer: a rank's stream, or the launcher.
pub type WriterId = u32;
/// The launcher itself.
pub const LAUNCHER: WriterId = u32::MAX;

/// Takes what the streams of ranks pass on.
pub trait Outlet {
    /// Takes text from `writer`.
    fn put(&mut self, writer: WriterId, text: &[u8]);

    /// Whether so much waits that the ranks should wait too.
    fn is_full(&self) -> bool;
}

/// What a sink writes to.
#[derive(Debug)]
enum Descriptor<'a> {
    Borrowed(BorrowedFd<'a>),
    Owned(File),
}

impl AsFd for Descriptor<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Borrowed(fd) => *fd,
            Self::Owned(file) => file.as_fd(),
        }
    }
}

/// Where lines go: the launcher's own standard output or error, or a file.
#[derive(Debug)]
pub struct Sink<'a> {
    descriptor: Descriptor<'a>,
    waiting: VecDeque<u8>,
    /// Who has begun a line and not ended it.
    open: Option<WriterId>,
    atom: usize,
    broken: Option<io::Error>,
}

impl<'a> Sink<'a> {
    /// Lines go to `fd`.
    pub fn new(fd: BorrowedFd<'a>) -> Self {
        Self::of(Descriptor::Borrowed(fd))
    }

    /// Lines go to a file, without waiting for whoever reads a pipe of that name.
    pub fn of_file(file: File) -> Self {
        Self::of(Descriptor::Owned(file))
    }

    fn of(descriptor: Descriptor<'a>) -> Self {
        let regular = sys::identity(&descriptor).is_some_and(|(kind, ..)| kind == FileType::RegularFile);
        let atom = if regular { usize::MAX } else { ATOM };
        Self { descriptor, waiting: VecDeque::new(), open: None, atom, broken: None }
    }

    /// The descriptor, for watching.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Why nothing can be written any more, if that is so.
    pub fn broken(&self) -> Option<&io::Error> {
        self.broken.as_ref()
    }

    /// Writes as much as it can without blocking; returns whether something is left.
    pub fn flush(&mut self) -> bool {
        while !self.waiting.is_empty() && sys::writable(self.fd()) {
            let (front, _) = self.waiting.as_slices();
            let piece = &front[..front.len().min(self.atom)];
            let error = match rustix::io::write(&self.descriptor, piece) {
                Ok(written) => {
                    self.waiting.drain(..written);
                    continue;
                }
                Err(error) => io::Error::from(error),
            };
            match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => break,
                _ => {
                    self.broken = Some(error);
                    self.waiting.clear();
                }
            }
        }
        !self.waiting.is_empty()
    }
}

impl Outlet for Sink<'_> {
    /// If somebody else has a line open, it is ended first, so that lines never mix.
    fn put(&mut self, writer: WriterId, text: &[u8]) {
        let Some(last) = text.last() else { return };
        if self.broken.is_some() {
            return;
        }
        if self.open.is_some_and(|open| open != writer) {
            self.waiting.push_back(b'\n');
        }
        self.waiting.extend(text);
        self.open = (*last != b'\n').then_some(writer);
    }

    fn is_full(&self) -> bool {
        self.waiting.len() >= FULL
    }
}

/// One stream of one rank.
#[derive(Debug)]
pub struct RankStream {
    pipe: Option<io::PipeReader>,
    writer: WriterId,
    label: Label,
    /// A line that has begun and not ended.
    partial: Vec<u8>,
    /// Since when the partial line has not grown.
    pub idle_since: Option<Instant>,
    /// Whether a part of the line has already been passed on, so that its rest gets no label.
    begun: bool,
    /// Which of the launcher's sinks it goes to.
    pub targets: Targets,
    /// Whether the event loop watches it.
    pub watched: bool,
}

impl RankStream {
    /// What comes out of `pipe` goes to `targets`, each line after `label`.
    pub fn new(pipe: io::PipeReader, writer: WriterId, label: Label, targets: Targets) -> Self {
        Self {
            pipe: Some(pipe),
            writer,
            label,
            partial: vec![],
            idle_since: None,
            begun: false,
            targets,
            watched: false,
        }
    }

    /// The descriptor, while it is open.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads what is there and passes on whole lines; at the end of the stream also the rest, and closes it.
    pub fn read(&mut self, sink: &mut impl Outlet) {
        let mut piece = [0; PIECE];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut piece) {
                Ok(0) => self.close(sink),
                Ok(got) => {
                    self.take(&piece[..got], sink);
                    if got < PIECE || sink.is_full() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.close(sink),
            }
        }
    }

    fn take(&mut self, bytes: &[u8], sink: &mut impl Outlet) {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let (lines, rest) = bytes.split_at(whole);
        if !lines.is_empty() {
            let mut text = std::mem::take(&mut self.partial);
            text.extend_from_slice(lines);
            self.emit(&text, sink);
        }
        self.partial.extend_from_slice(rest);
        self.idle_since = (!self.partial.is_empty()).then(Instant::now);
        if self.partial.len() > LONG_LINE {
            self.emit_partial(sink);
        }
    }

    /// Passes text on, each line of it after the label.
    fn emit(&mut self, text: &[u8], sink: &mut impl Outlet) {
        if self.label.is_empty() {
            sink.put(self.writer, text);
        } else {
            let mut labelled = Vec::with_capacity(text.len() + text.len() / 16);
            for line in text.split_inclusive(|byte| *byte == b'\n') {
                if !self.begun {
                    self.label.write(&mut labelled);
                }
                labelled.extend_from_slice(line);
                self.begun = false;
            }
            sink.put(self.writer, &labelled);
        }
        self.begun = text.last().is_some_and(|last| *last != b'\n');
    }

    /// Passes a line on that has not ended yet: a prompt, or one that is too long to be kept.
    pub fn emit_partial(&mut self, sink: &mut impl Outlet) {
        let text = std::mem::take(&mut self.partial);
        self.idle_since = None;
        if !text.is_empty() {
            self.emit(&text, sink);
        }
    }

    fn close(&mut self, sink: &mut impl Outlet) {
        self.pipe = None;
        if !self.label.is_empty() && (self.begun || !self.partial.is_empty()) {
            self.partial.push(b'\n');
        }
        self.emit_partial(sink);
    }

    /// Reads what is still there and closes the stream, even if another process holds its other end.
    pub fn drain(&mut self, sink: &mut impl Outlet) {
        self.read(sink);
        if self.pipe.is_some() && !sink.is_full() {
            self.close(sink);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Plan;
    use std::io::Write;

    fn nowhere() -> Sink<'static> {
        Sink::new(rustix::stdio::stdin())
    }

    fn held(sink: &Sink<'_>) -> String {
        String::from_utf8(sink.waiting.iter().copied().collect()).unwrap()
    }

    fn stream(label: bool) -> (io::PipeWriter, RankStream) {
        let (reader, writer) = io::pipe().unwrap();
        sys::set_nonblocking(&reader).unwrap();
        let label = Label::of(&Plan { label, ..Plan::default() }, 3, 0);
        (writer, RankStream::new(reader, 3, label, Targets::OUT))
    }

    #[test]
    fn a_line_waits_for_its_end() {
        let (mut writer, mut stream) = stream(false);
        let mut sink = nowhere();
        writer.write_all(b"one\ntw").unwrap();
        stream.read(&mut sink);
        assert_eq!(held(&sink), "one\n");
        assert!(stream.idle_since.is_some());
        writer.write_all(b"o\nthree").unwrap();
        stream.read(&mut sink);
        assert_eq!(held(&sink), "one\ntwo\n");
        drop(writer);
        stream.read(&mut sink);
        assert_eq!(held(&sink), "one\ntwo\nthree");
        assert!(stream.fd().is_none());
    }

    #[test]
    fn every_line_has_its_label_and_the_last_its_end() {
        let (mut writer, mut stream) = stream(true);
        let mut sink = nowhere();
        writer.write_all(b"one\n\ntwo").unwrap();
        drop(writer);
        stream.drain(&mut sink);
        assert_eq!(held(&sink), "[3] one\n[3] \n[3] two\n");
    }

    #[test]
    fn the_rest_of_a_line_gets_no_second_label() {
        let (mut writer, mut stream) = stream(true);
        let mut sink = nowhere();
        writer.write_all(b"name? ").unwrap();
        stream.read(&mut sink);
        stream.emit_partial(&mut sink);
        writer.write_all(b"thanks\nbye\n").unwrap();
        stream.read(&mut sink);
        assert_eq!(held(&sink), "[3] name? thanks\n[3] bye\n");
    }

    #[test]
    fn an_open_line_is_ended_before_another_begins() {
        let mut sink = nowhere();
        sink.put(1, b"half");
        sink.put(1, b" done");
        sink.put(2, b"other\n");
        sink.put(LAUNCHER, b"end\n");
        assert_eq!(held(&sink), "half done\nother\nend\n");
    }

    #[test]
    fn a_sink_without_reader_swallows_the_rest() {
        let (reader, writer) = io::pipe().unwrap();
        let mut sink = Sink::new(writer.as_fd());
        drop(reader);
        sink.put(1, b"text\n");
        assert!(!sink.flush());
        assert_eq!(sink.broken().map(io::Error::kind), Some(ErrorKind::BrokenPipe));
        sink.put(1, b"more\n");
        assert!(sink.is_empty());
    }

    #[test]
    fn a_slow_reader_is_not_waited_for() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut sink = Sink::new(writer.as_fd());
        let text = vec![b'x'; 300_000];
        sink.put(1, &text);
        let mut got = vec![];
        while sink.flush() {
            let mut piece = [0; 5000];
            let count = reader.read(&mut piece).unwrap();
            got.extend_from_slice(&piece[..count]);
        }
        drop(writer);
        reader.read_to_end(&mut got).unwrap();
        assert_eq!(got, text);
    }
}
