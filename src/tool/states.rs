//! The names of states that performance variables have.

use crate::events::{Waiting, WindowReach};
use crate::variables::enumeration::{Enumeration, EnumerationItem};
use core::ffi::CStr;

/// The items of an enumeration whose values are the places of `names`.
const fn items<const N: usize>(names: &'static [&'static CStr]) -> [EnumerationItem; N] {
    assert!(names.len() == N);
    let mut items = [const { EnumerationItem { name: "", value: 0 } }; N];
    let mut place = 0;
    while place < N {
        let Ok(name) = names[place].to_str() else { panic!("a name that is no text") };
        items[place] = EnumerationItem { name, value: place as i32 };
        place += 1;
    }
    items
}

/// What a rank waits for, by [`Waiting`].
pub static WAITING: Enumeration =
    Enumeration { name: "waiting_for", items: &const { items::<{ Waiting::NAMES.len() }>(Waiting::NAMES) } };

/// How windows reach memory, by [`WindowReach`].
pub static REACHES: Enumeration = Enumeration {
    name: "window_reach",
    items: &const { items::<{ WindowReach::NAMES.len() }>(WindowReach::NAMES) },
};

/// Which way long messages from a rank go.
pub static ROUTES: Enumeration = Enumeration {
    name: "copy_route",
    items: &[
        EnumerationItem { name: "by_thresholds", value: 0 },
        EnumerationItem { name: "kernel", value: 1 },
        EnumerationItem { name: "ring", value: 2 },
    ],
};

/// Where a rank stands, by [`crate::shm::RankState`].
pub static STATES: Enumeration = Enumeration {
    name: "rank_state",
    items: &[
        EnumerationItem { name: "absent", value: 0 },
        EnumerationItem { name: "arrived", value: 1 },
        EnumerationItem { name: "initialised", value: 2 },
        EnumerationItem { name: "finalizing", value: 3 },
        EnumerationItem { name: "finalized", value: 4 },
        EnumerationItem { name: "dead", value: 5 },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_names_that_events_have() {
        for (states, names) in [(&REACHES, WindowReach::NAMES), (&WAITING, Waiting::NAMES)] {
            for (item, name) in states.items.iter().zip(names) {
                assert_eq!((item.name, names[item.value as usize]), (name.to_str().unwrap(), *name));
            }
            assert_eq!(states.items.len(), names.len());
        }
        // A rank may be in any of the states that there are.
        for waiting in Waiting::ALL {
            assert!(WAITING.items.iter().any(|item| item.value == *waiting as i32), "{waiting:?}");
        }
    }
}
