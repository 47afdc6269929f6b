//! Errors of the transport, and their numbers.

use crate::api::*;
use std::fmt;

/// Why an operation was not begun, or did not end well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// There is no room to the peer now: take completions or wait, and try again. Nothing was sent.
    Full,
    /// There is no such endpoint: it is closed, its process has ended, or it is on another machine or another user's.
    Unreachable,
    /// The peer's endpoint was closed, or its process has ended, while the operation was under way.
    Closed,
    /// This endpoint has not added the peer, or has removed it.
    UnknownPeer,
    /// The peer has as many senders as it has places for.
    TooManySenders,
    /// More bytes than an inject takes.
    TooLong,
    /// The message was longer than the buffer, and its end is lost.
    Truncated,
    /// The receive was cancelled.
    Canceled,
    /// There is no memory for the rings.
    OutOfMemory,
    /// The text is no address.
    NoAddress,
    /// Another error of the system, with its number.
    System(i32),
}

impl Error {
    /// The number of the error, as C sees it.
    pub fn number(self) -> i32 {
        match self {
            Error::Full => FI_EAGAIN,
            Error::Unreachable => FI_EHOSTUNREACH,
            Error::Closed => FI_ESHUTDOWN,
            Error::UnknownPeer => libc::ENXIO,
            Error::TooManySenders => FI_EBUSY,
            Error::TooLong => FI_EMSGSIZE,
            Error::Truncated => libc::EOVERFLOW,
            Error::Canceled => FI_ECANCELED,
            Error::OutOfMemory => FI_ENOMEM,
            Error::NoAddress => FI_EINVAL,
            Error::System(number) => number,
        }
    }
}

impl From<i32> for Error {
    fn from(number: i32) -> Self {
        match number {
            FI_EAGAIN => Error::Full,
            // The kernel hides other users' processes.
            FI_EHOSTUNREACH | libc::EACCES | libc::EPERM => Error::Unreachable,
            FI_ESHUTDOWN => Error::Closed,
            FI_EINVAL => Error::UnknownPeer,
            FI_EBUSY => Error::TooManySenders,
            FI_EMSGSIZE => Error::TooLong,
            FI_ETRUNC => Error::Truncated,
            FI_ECANCELED => Error::Canceled,
            FI_ENOMEM => Error::OutOfMemory,
            number => Error::System(number),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Full => "there is no room to the peer now: take completions, then try again",
            Error::Unreachable => {
                "there is no such endpoint: it is closed, or on another machine or another user's"
            }
            Error::Closed => "the peer's endpoint was closed, or its process has ended",
            Error::UnknownPeer => "this endpoint has not added the peer, or has removed it",
            Error::TooManySenders => "the peer has as many senders as it has places for",
            Error::TooLong => "more bytes than an inject takes",
            Error::Truncated => "the message was longer than the buffer, and its end is lost",
            Error::Canceled => "the receive was cancelled",
            Error::OutOfMemory => "there is no memory for the rings",
            Error::NoAddress => "the text is no address of an endpoint",
            Error::System(number) => {
                return std::io::Error::from_raw_os_error(*number).fmt(f);
            }
        })
    }
}

impl std::error::Error for Error {}
