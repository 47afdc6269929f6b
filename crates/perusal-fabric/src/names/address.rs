//! The address of an endpoint: the process that owns it, where that process has the endpoint's memory, and a number
//! that no other endpoint has.

use std::fmt;

/// Bytes of an address as text, with the zero at its end: all addresses have as many.
pub const ADDRESS_BYTES: usize = 45;

/// Where an endpoint is to be found. As text: `perusal://PID.FD.NONCE`, each of fixed width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Address {
    /// The process, as its PID namespace numbers it.
    pub pid: u32,
    /// The descriptor of the endpoint's memory in that process.
    pub fd: u32,
    /// Drawn by the endpoint; also in its memory, so that a later process with the same number is not taken for it.
    pub nonce: u64,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "perusal://{:010}.{:06}.{:016x}", self.pid, self.fd, self.nonce)
    }
}

impl Address {
    /// Returns the address as text with a zero at its end.
    pub fn to_bytes(self) -> [u8; ADDRESS_BYTES] {
        let mut bytes = [0; ADDRESS_BYTES];
        let text = self.to_string();
        // A descriptor of more than six digits would make it longer; `Segment::new` refuses those.
        let len = text.len().min(ADDRESS_BYTES - 1);
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        bytes
    }

    /// Reads an address; `None` if it is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = bytes.split(|&byte| byte == 0).next()?;
        let text = std::str::from_utf8(text).ok()?.strip_prefix("perusal://")?;
        let mut parts = text.split('.');
        let (pid, fd, nonce) = (parts.next()?, parts.next()?, parts.next()?);
        let address = Self {
            pid: pid.parse().ok()?,
            fd: fd.parse().ok()?,
            nonce: u64::from_str_radix(nonce, 16).ok()?,
        };
        parts.next().is_none().then_some(address)
    }
}

impl std::str::FromStr for Address {
    type Err = crate::transport::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text.trim().as_bytes()).ok_or(crate::transport::Error::NoAddress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_its_text() {
        let address = Address { pid: 4_194_304, fd: 17, nonce: 0x0123_4567_89ab_cdef };
        let bytes = address.to_bytes();
        assert_eq!((bytes[ADDRESS_BYTES - 1], Address::parse(&bytes)), (0, Some(address)));
        assert_eq!(address.to_string().len() + 1, ADDRESS_BYTES);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in
            ["", "perusal://", "shm://1.2.3", "perusal://1.2", "perusal://1.2.3.4", "perusal://-1.2.3"]
        {
            assert_eq!(Address::parse(text.as_bytes()), None, "{text}");
        }
    }
}
