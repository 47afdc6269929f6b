//! The one caller of consumers; deferred sends; how to wait.
