//! The state of an operation under way: an atomic state word with named transitions.
