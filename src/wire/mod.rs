//! What a record means: envelope, eager payload, handshake for large messages, the copy engines.
