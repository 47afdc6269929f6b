//! What a rank can wait for: the numbers that the job's memory, events and traces have for it,
//! and what all of them call it.

use core::ffi::CStr;

// Variant: its number, its name for tools, and a phrase for a person who reads that a rank slept for it. The numbers
// are those of the job's memory (docs/job-memory.md) and of traces: none ever changes.
macro_rules! waiting {
    ($($(#[$meta:meta])* $variant:ident = $number:literal, $name:literal, $phrase:literal;)*) => {
        /// What a rank waits for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u64)]
        pub enum Waiting {
            $($(#[$meta])* $variant = $number,)*
        }

        impl Waiting {
            /// All of them, each at the place of its number.
            pub const ALL: &'static [Waiting] = &[$(Waiting::$variant),*];

            /// The names of [`Waiting::ALL`], as events and variables have them.
            pub const NAMES: &'static [&'static CStr] = &[$($name),*];

            /// The one of that number; [`Waiting::Nothing`] if there is none, as in memory or a file that is spoiled.
            #[must_use]
            pub fn from_number(number: u64) -> Waiting {
                let place = usize::try_from(number).unwrap_or(usize::MAX);
                Waiting::ALL.get(place).copied().unwrap_or(Waiting::Nothing)
            }

            /// Says it in a sentence about a rank that slept for it.
            #[must_use]
            pub fn phrase(self) -> &'static str {
                match self {
                    $(Waiting::$variant => $phrase,)*
                }
            }
        }
    };
}

waiting! {
    /// It does not wait.
    Nothing = 0, c"nothing", "something";
    /// A blocking receive, or a wait for one.
    Receive = 1, c"receive", "a message";
    /// A blocking send, or a wait for one.
    Send = 2, c"send", "a send";
    /// A probe.
    Probe = 3, c"probe", "a probe";
    /// One of several requests.
    Any = 4, c"any", "any of several requests";
    /// All of several requests.
    All = 5, c"all", "all of several requests";
    /// A collective operation.
    Collective = 6, c"collective", "a collective operation";
    /// The others, in MPI_Finalize.
    Finalize = 7, c"finalize", "MPI_Finalize";
    /// Room in the ring to a peer.
    Room = 8, c"room", "room in a ring";
    /// The lock of a window. The peer is the rank that holds it, one of them where several do in shared mode.
    Lock = 9, c"lock", "the lock of a window";
    /// Other members of a window, to open or close an epoch.
    Epoch = 10, c"epoch", "an epoch of a window";
    /// Something outside of the job: another program, the launcher.
    Outside = 11, c"outside", "something outside of the job";
    /// The votes of the other members of a communicator that live (`crate::shm::failures`).
    Agreement = 12, c"agreement", "an agreement";
    /// The request of a nonblocking or persistent collective operation.
    Operation = 13, c"operation", "a collective operation";
    /// The rank itself, which has not marked all partitions of a partitioned send as ready.
    Partitions = 14, c"partitions", "partitions of its own send";
}

const _: () = {
    let mut number = 0;
    while number < Waiting::ALL.len() {
        assert!(Waiting::ALL[number] as usize == number, "a row stands where its number does not belong");
        number += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Field;

    #[test]
    fn all_that_a_rank_can_wait_for_has_a_name_of_its_own_in_events() {
        let names = Field::Waiting.info().names.expect("an enumeration");
        assert_eq!(names.len(), Waiting::ALL.len());
        for (waiting, place) in Waiting::ALL.iter().zip(0..) {
            assert_eq!(Waiting::from_number(place), *waiting);
            let name = names[*waiting as usize];
            assert_eq!(names.iter().filter(|other| **other == name).count(), 1, "{name:?}");
        }
        assert_eq!(Waiting::from_number(names.len() as u64), Waiting::Nothing);
    }
}
