//! The point-to-point verbs: send, receive, probe, wait.
