//! Hints of windows (MPI 5.0 §12.2.1 to §12.2.7): those that are known, with the values that are in force.
//!
//! A hint that is not known, or whose value makes no sense, is ignored.

use super::Memory;
use crate::info::Info;
use crate::limits::{HUGE_PAGE, LINE};

/// What a hint's value is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Truth,
    Ordering,
    SameOp,
    Number,
    Alignment,
    Node,
}

/// A hint that is known.
struct Hint {
    key: &'static str,
    kind: Kind,
    /// Empty for a hint that is not there unless it is asked for.
    default: &'static str,
    /// Whether it can be changed when the window is there.
    /// That of parts that need not be contiguous can, and moves none.
    later: bool,
}

const NO_LOCKS: &str = "no_locks";
const NONCONTIG: &str = "alloc_shared_noncontig";
const ALIGNMENT: &str = "mpi_minimum_memory_alignment";
/// The NUMA node whose memory a member's part is to be, by the kernel's number.
pub(super) const NUMA_NODE: &str = "perusal_numa_node";

const HINTS: &[Hint] = &[
    Hint { key: NO_LOCKS, kind: Kind::Truth, default: "false", later: true },
    Hint { key: "accumulate_ordering", kind: Kind::Ordering, default: "rar,raw,war,waw", later: true },
    Hint { key: "accumulate_ops", kind: Kind::SameOp, default: "same_op_no_op", later: true },
    Hint { key: "mpi_accumulate_granularity", kind: Kind::Number, default: "0", later: true },
    Hint { key: "same_size", kind: Kind::Truth, default: "false", later: true },
    Hint { key: "same_disp_unit", kind: Kind::Truth, default: "false", later: true },
    Hint { key: NONCONTIG, kind: Kind::Truth, default: "false", later: true },
    Hint { key: ALIGNMENT, kind: Kind::Alignment, default: "1", later: false },
    Hint { key: NUMA_NODE, kind: Kind::Node, default: "", later: false },
];

/// Hints that members may give differently.
const OWN: [&str; 3] = [NONCONTIG, ALIGNMENT, NUMA_NODE];

/// Which hints a window has.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// Whether its parts may be apart.
    shared: bool,
    /// Whether the library allocates the memory.
    allocated: bool,
    /// Whether it allocates that of each rank by itself.
    aligned: bool,
}

impl Scope {
    /// For a window of this memory.
    #[must_use]
    pub fn of(memory: &Memory, asked: &Info) -> Self {
        Self {
            shared: matches!(memory, Memory::Shared(_)),
            allocated: matches!(memory, Memory::Shared(_) | Memory::Allocated(_)),
            aligned: match memory {
                Memory::Allocated(_) => true,
                Memory::Shared(_) => has_own_parts(asked),
                Memory::Own { .. } | Memory::Dynamic => false,
            },
        }
    }

    fn has(self, hint: &Hint) -> bool {
        match hint.key {
            NONCONTIG => self.shared,
            ALIGNMENT => self.aligned,
            NUMA_NODE => self.allocated,
            _ => true,
        }
    }
}

fn is_true(hints: &Info, key: &str) -> bool {
    value(Kind::Truth, hints.text(key)).as_deref() == Some("true")
}

/// Whether the parts of a shared window with these hints need not be contiguous.
#[must_use]
pub fn has_own_parts(hints: &Info) -> bool {
    is_true(hints, NONCONTIG)
}

/// Whether these hints say that nobody locks the window.
#[must_use]
pub fn has_no_locks(hints: &Info) -> bool {
    is_true(hints, NO_LOCKS)
}

/// The bytes of alignment that hints of memory ask for.
#[must_use]
pub fn minimum_alignment(hints: &Info) -> Option<usize> {
    hints.text(ALIGNMENT)?.trim().parse().ok()
}

/// The NUMA node that a member's part is to lie on.
#[must_use]
pub(super) fn numa_node(hints: &Info) -> Option<u32> {
    value(Kind::Node, hints.text(NUMA_NODE))?.parse().ok()
}

/// The alignment of memory that is allocated for a window with these hints: a power of two, a cache line at least.
#[must_use]
pub fn alignment(hints: &Info) -> usize {
    minimum_alignment(hints).and_then(aligned).unwrap_or(LINE)
}

/// The alignment in force where one is asked for. The shared heap has none above that of huge pages.
fn aligned(asked: usize) -> Option<usize> {
    (asked <= HUGE_PAGE).then(|| asked.max(LINE).next_power_of_two())
}

/// The value in force for what was asked for; `None` if it makes no sense.
fn value(kind: Kind, asked: Option<&str>) -> Option<String> {
    let asked = asked?.trim().to_ascii_lowercase();
    let good = match kind {
        Kind::Truth => matches!(&*asked, "true" | "false"),
        Kind::Ordering => {
            let known = |part: &str| matches!(part.trim(), "rar" | "raw" | "war" | "waw");
            asked == "none" || asked.split(',').all(known)
        }
        Kind::SameOp => matches!(&*asked, "same_op" | "same_op_no_op"),
        Kind::Number => asked.parse::<u64>().is_ok(),
        Kind::Node => return Some(asked.parse::<u32>().ok()?.to_string()),
        Kind::Alignment => return Some(aligned(asked.parse().ok()?)?.to_string()),
    };
    good.then_some(asked)
}

/// The hints of a new window.
#[must_use]
pub fn at_creation(scope: Scope, asked: &Info) -> Info {
    let mut info = Info::new();
    for hint in HINTS.iter().filter(|hint| scope.has(hint)) {
        let value = value(hint.kind, asked.text(hint.key)).or_else(|| value(hint.kind, Some(hint.default)));
        if let Some(value) = value {
            // Keys and values are short.
            let _ = info.set(hint.key, value);
        }
    }
    info
}

/// What the members of a new window must give alike, in words (MPI 5.0 §12.2.1).
#[must_use]
pub fn alike(asked: &Info, memory: Memory, unit: u64) -> String {
    let hint = |hint: &Hint| {
        let given = value(hint.kind, asked.text(hint.key)).filter(|given| given != hint.default)?;
        Some(format!("{}={given}", hint.key))
    };
    let mut said: Vec<String> =
        HINTS.iter().filter(|hint| !OWN.contains(&hint.key)).filter_map(hint).collect();
    if let Memory::Own { bytes, .. } | Memory::Allocated(bytes) | Memory::Shared(bytes) = memory {
        said.extend(is_true(asked, "same_size").then(|| format!("{bytes} bytes")));
        said.extend(is_true(asked, "same_disp_unit").then(|| format!("displacement unit {unit}")));
    }
    if said.is_empty() { "no hint".to_owned() } else { said.join(", ") }
}

/// The hints of a window with `hints`, after others have been asked for.
#[must_use]
pub fn changed(mut hints: Info, asked: &Info) -> Info {
    for hint in HINTS.iter().filter(|hint| hint.later) {
        let has = hints.text(hint.key).is_some();
        if let Some(value) = value(hint.kind, asked.text(hint.key)).filter(|_| has) {
            // Keys and values are short.
            let _ = hints.set(hint.key, value);
        }
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(pairs: &[(&str, &str)]) -> Info {
        let mut info = Info::new();
        pairs.iter().for_each(|(key, value)| info.set(key, value).unwrap());
        info
    }

    #[test]
    fn hints_that_are_known_have_defaults_and_others_are_ignored() {
        let asked = info(&[("no_locks", " TRUE"), ("accumulate_ops", "any"), ("colour", "red")]);
        let memory = Memory::Dynamic;
        let hints = at_creation(Scope::of(&memory, &asked), &asked);
        assert_eq!(hints.text("no_locks"), Some("true"));
        assert_eq!(hints.text("accumulate_ops"), Some("same_op_no_op"));
        assert_eq!((hints.text("colour"), hints.text(NONCONTIG), hints.text(ALIGNMENT)), (None, None, None));
        let hints = changed(hints, &info(&[("accumulate_ordering", "none"), ("no_locks", "maybe")]));
        assert_eq!(hints.text("accumulate_ordering"), Some("none"));
        assert_eq!(hints.text("no_locks"), Some("true"));
    }

    #[test]
    fn the_alignment_is_what_memory_has_and_stays() {
        let asked = info(&[(ALIGNMENT, "100"), (NONCONTIG, "true")]);
        let memory = Memory::Shared(8);
        let hints = at_creation(Scope::of(&memory, &asked), &asked);
        assert_eq!(hints.text(ALIGNMENT), Some("128"));
        assert_eq!(changed(hints, &info(&[(ALIGNMENT, "4096")])).text(ALIGNMENT), Some("128"));
        let none = Info::new();
        let hints = at_creation(Scope::of(&Memory::Allocated(8), &none), &none);
        assert_eq!(hints.text(ALIGNMENT), Some(&*LINE.to_string()));
        assert_eq!(at_creation(Scope::of(&memory, &none), &none).text(ALIGNMENT), None);
    }

    #[test]
    fn a_numa_node_is_a_number_for_memory_that_the_library_allocates() {
        let node = |memory: Memory, asked: &str| {
            let asked = info(&[(NUMA_NODE, asked)]);
            at_creation(Scope::of(&memory, &asked), &asked).text(NUMA_NODE).map(str::to_owned)
        };
        assert_eq!(node(Memory::Allocated(8), " 01 ").as_deref(), Some("1"));
        assert_eq!(node(Memory::Shared(8), "3").as_deref(), Some("3"));
        assert_eq!((node(Memory::Shared(8), "-1"), node(Memory::Shared(8), "near")), (None, None));
        assert_eq!(node(Memory::Dynamic, "0"), None);
        let hints = changed(info(&[(NUMA_NODE, "3")]), &info(&[(NUMA_NODE, "4")]));
        assert_eq!(hints.text(NUMA_NODE), Some("3"));
    }
}
