//! Signals that ask the job to end. The second request is obeyed at once, so a copy of the first must not count as one:
//! timeout(1) and batch systems send one signal to the launcher, and the same one to its process group.

use std::time::{Duration, Instant};

/// How long the signal of a request counts as a copy when it comes once more.
const COPY_LIMIT: Duration = Duration::from_millis(250);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Nothing that ends the job.
    None,
    /// That the job ends, for the first time.
    First,
    /// What the first request has asked for already.
    Copy,
    /// That the job ends, for the second time.
    Again,
}

/// The first request to end.
#[derive(Debug, Default)]
pub struct Interrupts {
    first: Option<(i32, Instant)>,
}

impl Interrupts {
    /// Notes `signal`, which the launcher has taken at `now`.
    pub fn note(&mut self, signal: i32, now: Instant) -> Interrupt {
        if !matches!(signal, libc::SIGINT | libc::SIGTERM) {
            return Interrupt::None;
        }
        match self.first {
            None => {
                self.first = Some((signal, now));
                Interrupt::First
            }
            Some((first, at)) if first == signal && now.duration_since(at) < COPY_LIMIT => Interrupt::Copy,
            Some(_) => Interrupt::Again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_signal_to_the_launcher_and_to_its_group_is_one_request() {
        let (mut interrupts, start) = (Interrupts::default(), Instant::now());
        assert_eq!(interrupts.note(libc::SIGTERM, start), Interrupt::First);
        assert_eq!(interrupts.note(libc::SIGCONT, start), Interrupt::None);
        assert_eq!(interrupts.note(libc::SIGTERM, start + COPY_LIMIT / 2), Interrupt::Copy);
        assert_eq!(interrupts.note(libc::SIGTERM, start + COPY_LIMIT), Interrupt::Again);
    }

    #[test]
    fn another_signal_is_a_second_request_at_once() {
        let (mut interrupts, start) = (Interrupts::default(), Instant::now());
        assert_eq!(interrupts.note(libc::SIGINT, start), Interrupt::First);
        assert_eq!(interrupts.note(libc::SIGTERM, start), Interrupt::Again);
    }
}
