//! The algorithms that users can choose for each operation, one line each. `coll` asserts at compile time that its functions
//! are in the same order.

use super::enumeration::{Enumeration, Item};

/// The algorithms of a collective operation.
pub static WAYS: Enumeration = Enumeration {
    name: "coll_way",
    items: &[
        Item { name: "auto", value: 0 },
        Item { name: "messages", value: 1 },
        Item { name: "counted", value: 2 },
        Item { name: "flagged", value: 3 },
    ],
};
