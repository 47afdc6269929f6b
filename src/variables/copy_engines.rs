//! The copy engines that the variable `copy_engine` can ask for, a line each.

use super::enumeration::choices;

choices! {
    /// Which copy engine copies large messages.
    CopyChoice, COPY_ENGINES = "copy_engine" {
        /// By the thresholds.
        Auto "auto",
        /// In chunks through the ring, both ranks at work.
        Chunks "chunks",
        /// One `process_vm_readv` by the receiver.
        Read "read",
        /// Receiver and sender copy a half each by `process_vm_readv` and `process_vm_writev`.
        Halves "halves",
        /// A plain copy, where both ranks see the memory; elsewhere as `Auto`.
        Direct "direct",
    }
}
