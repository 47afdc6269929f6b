//! The C face: the standard ABI's functions, PERUSE, handles. Thin.
