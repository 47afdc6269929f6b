//! The hints of a communicator (MPI 5.0 §7.4.4).

use crate::info::Info;

/// What a program may assert of its use of a communicator: `true` or `false`, and `false` where it says nothing.
const ASSERTIONS: [&str; 5] = [
    "mpi_assert_no_any_tag",
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
];

/// The hints in force, of which `given` have been given.
pub(super) fn in_force(given: &Info) -> Info {
    let mut hints = Info::new();
    for key in ASSERTIONS {
        // A key and a value that are short enough.
        let _ = hints.set(key, "false");
    }
    hints.update(given);
    hints
}

/// What is taken of `asked`: all but assertions whose value makes no sense, which are ignored.
pub(super) fn taken(asked: &Info) -> Info {
    let mut hints = Info::new();
    for (key, value) in asked.iter() {
        let is_assertion = ASSERTIONS.iter().any(|assertion| assertion.as_bytes() == key);
        let value = if is_assertion { value.trim_ascii().to_ascii_lowercase() } else { value.to_vec() };
        if !is_assertion || matches!(&*value, b"true" | b"false") {
            // They have fitted there.
            let _ = hints.set(key, value);
        }
    }
    hints
}
