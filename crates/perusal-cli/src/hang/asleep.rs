//! Threads of a rank that are not in MPI and that one of its threads keeps from going on, which may be in MPI itself:
//! they wait for a mutex that it holds, or for its end.
//!
//! Which mutex a thread waits for, and who holds it, stands in the memory of the process, as glibc lays a mutex out
//! (`pthread_mutex_t`): the word that threads sleep on, a count, the holder by the kernel's number. A join sleeps on
//! the word that has the number of the thread which is joined. What is found is said and decides nothing.

use super::process::{sleeping_on, threads_of};
use super::{LongWait, RankView};
use crate::sys;

/// The word of a mutex that is locked, and for which threads wait (glibc).
const LOCKED_WITH_WAITERS: u32 = 2;

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaits {
    /// A mutex that the thread with that number holds.
    Mutex(u64),
    /// The end of the thread with that number.
    End(u64),
}

/// A thread that sleeps until another one of its process goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sleeper {
    /// Its number, by the kernel.
    pub thread: u64,
    /// What it waits for.
    pub awaits: Awaits,
    /// Whether the thread that it waits for waits in MPI.
    pub on_mpi: bool,
}

impl Awaits {
    /// What a thread of the process `pid` waits for that sleeps on the word at `addr`, if that is known.
    fn at(pid: i32, addr: u64, threads: &[u64]) -> Option<Self> {
        let [word, _, holder] = sys::words_of(pid, addr)?;
        Self::of(word, holder, |thread| threads.contains(&thread))
    }

    fn of(word: u32, holder: u32, is_thread: impl Fn(u64) -> bool) -> Option<Self> {
        let (end, holder) = (u64::from(word), u64::from(holder));
        if word == LOCKED_WITH_WAITERS && is_thread(holder) {
            Some(Self::Mutex(holder))
        } else {
            is_thread(end).then_some(Self::End(end))
        }
    }

    /// The number of the thread that must go on.
    pub fn thread(self) -> u64 {
        match self {
            Self::Mutex(thread) | Self::End(thread) => thread,
        }
    }
}

impl Sleeper {
    /// Those of the process `pid`, whose threads `in_mpi` wait in MPI; where these are not known, none or one of all.
    pub fn all(pid: i32, in_mpi: &[u64], waits: bool) -> Vec<Self> {
        let threads = threads_of(pid);
        let asleep: Vec<(u64, u64)> =
            threads.iter().filter_map(|thread| Some((*thread, sleeping_on(pid, *thread)?))).collect();
        let is_asleep = |thread: u64| asleep.iter().any(|(other, _)| *other == thread);
        let only = || threads.iter().filter(|thread| !is_asleep(**thread)).count() == 1;
        let is_in_mpi = |thread: u64| match in_mpi {
            [] | [0] => waits && !is_asleep(thread) && only(),
            known => known.contains(&thread),
        };
        let of = |(thread, addr): &(u64, u64)| {
            let awaits = Awaits::at(pid, *addr, &threads)?;
            Some(Self { thread: *thread, awaits, on_mpi: is_in_mpi(awaits.thread()) })
        };
        asleep.iter().filter_map(of).collect()
    }

    /// What it waits for; `wait` is that of its rank.
    fn text(&self, wait: Option<&LongWait>) -> String {
        let whom = match wait.filter(|_| self.on_mpi) {
            Some(wait) => format!("the thread in {}", wait.call()),
            None => format!("thread {}", self.awaits.thread()),
        };
        match self.awaits {
            Awaits::Mutex(_) => format!("a mutex that {whom} holds"),
            Awaits::End(_) => format!("the end of {whom}"),
        }
    }
}

/// What the threads of a rank that are not in MPI wait for, and how many for each.
pub fn said_of(rank: &RankView) -> Vec<(String, usize)> {
    let mut said: Vec<(String, usize)> = vec![];
    for sleeper in &rank.asleep {
        let text = sleeper.text(rank.wait());
        match said.iter_mut().find(|(other, _)| *other == text) {
            Some((_, threads)) => *threads += 1,
            None => said.push((text, 1)),
        }
    }
    said
}

/// A rank, one of whose threads waits for a mutex that another one holds while it waits in MPI: the first thread may be
/// the one that the job needs.
pub fn held_mutex(ranks: &[RankView]) -> Option<String> {
    ranks.iter().find_map(|rank| {
        let is_it = |sleeper: &&Sleeper| sleeper.on_mpi && matches!(sleeper.awaits, Awaits::Mutex(_));
        let sleeper = rank.asleep.iter().find(is_it)?;
        Some(format!("a thread of rank {} waits for {}", rank.rank, sleeper.text(Some(rank.wait()?))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_has_its_holder_and_a_join_the_thread_that_is_joined() {
        let is_thread = |thread| thread == 4711 || thread == 4712;
        assert_eq!(Awaits::of(2, 4711, is_thread), Some(Awaits::Mutex(4711)));
        assert_eq!(Awaits::of(4712, 4711, is_thread), Some(Awaits::End(4712)));
        // A condition, and a mutex of another kind.
        assert_eq!(Awaits::of(2, 9, is_thread), None);
        assert_eq!(Awaits::of(0, 4711, is_thread), None);
    }
}
