//! The copy engines that the variable `copy_engine` can ask for, a line each.

use super::enumeration::choices;

choices! {
    /// Which copy engine copies large messages.
    CopyChoice, COPY_ENGINES = "copy_engine" {
        /// By the thresholds.
        Auto "auto",
        /// In chunks through the ring: the sender copies in, the receiver copies out.
        Chunks "chunks",
        /// One `process_vm_readv` by the receiver.
        Read "read",
        /// Receiver and sender copy a half each by `process_vm_readv` and `process_vm_writev`.
        Halves "halves",
        /// One copy between two buffers that both ranks map; elsewhere as `Auto`.
        Direct "direct",
    }
}
