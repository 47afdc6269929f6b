//! Who has something for me; sleeping and waking across processes.
