//! The algorithms that users can choose for each operation, one line each. `coll` asserts at compile time that its functions
//! are in the same order.

use super::enumeration::{Enumeration, EnumerationItem};

/// The algorithms of a collective operation.
pub static WAYS: Enumeration = Enumeration {
    name: "coll_way",
    items: &[
        EnumerationItem { name: "auto", value: 0 },
        EnumerationItem { name: "messages", value: 1 },
        EnumerationItem { name: "counted", value: 2 },
        EnumerationItem { name: "flagged", value: 3 },
    ],
};
