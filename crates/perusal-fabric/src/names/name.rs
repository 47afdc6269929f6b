//! The name of an endpoint, as libfabric passes it on: its address on its node, and where the network finds it.
//!
//! An endpoint without a network is named by its address.
//! One with a network has a longer name, of which this is the content:
//!
//! | bytes | |
//! |---|---|
//! | 4, 3, 8 | the address: process, descriptor, number |
//! | 6 | the node |
//! | 16, 2 | the socket of the core provider's endpoint: IPv6, or IPv4 mapped to it; port |
//! | 2 | the port whose connections end with the endpoint |

use crate::names::address::Address;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// What every address begins with, that of a service included.
pub const SCHEME: &str = "perusal:";
const BYTES: usize = 41;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Bytes of the longest name with the zero at its end: libfabric's callers have room for as many (FI_NAME_MAX).
pub const NAME_BYTES: usize = 64;
const _: () = assert!(SCHEME.len() + (BYTES * 8).div_ceil(6) + 1 == NAME_BYTES);

/// What an address vector holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// The endpoint's address on its node.
    pub local: Address,
    /// Where it is found from another node, if it has a network.
    pub elsewhere: Option<Elsewhere>,
}

/// Where the network finds an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elsewhere {
    /// The node that it is on: 48 bits.
    pub node: u64,
    /// The core provider's endpoint.
    pub core: SocketAddr,
    /// A port at the same address, whose connections end when the endpoint does.
    pub watch: u16,
}

impl From<Address> for Name {
    fn from(local: Address) -> Self {
        Self { local, elsewhere: None }
    }
}

impl Name {
    /// Returns the name as text with a zero at its end: all names of one kind have as many bytes.
    pub fn to_bytes(self) -> Vec<u8> {
        let text = match self.elsewhere {
            None => return self.local.to_bytes().into(),
            Some(elsewhere) => format!("{SCHEME}{}\0", digits(&self.pack(elsewhere))),
        };
        text.into_bytes()
    }

    /// Reads a name; `None` if it is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if let Some(local) = Address::parse(bytes) {
            return Some(local.into());
        }
        let text = bytes.split(|&byte| byte == 0).next()?;
        let packed = bytes_of(text.strip_prefix(SCHEME.as_bytes())?)?;
        let number = |from: usize, len: usize| {
            packed[from..from + len].iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
        };
        let ip: [u8; 16] = packed[21..37].try_into().ok()?;
        let ip = Ipv6Addr::from(ip);
        let ip = ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4);
        let local = Address { pid: number(0, 4) as u32, fd: number(4, 3) as u32, nonce: number(7, 8) };
        let core = SocketAddr::new(ip, number(37, 2) as u16);
        let elsewhere = Some(Elsewhere { node: number(15, 6), core, watch: number(39, 2) as u16 });
        Some(Self { local, elsewhere })
    }

    fn pack(self, elsewhere: Elsewhere) -> [u8; BYTES] {
        let ip = match elsewhere.core.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut packed = [0; BYTES];
        packed[..4].copy_from_slice(&self.local.pid.to_be_bytes());
        packed[4..7].copy_from_slice(&self.local.fd.to_be_bytes()[1..]);
        packed[7..15].copy_from_slice(&self.local.nonce.to_be_bytes());
        packed[15..21].copy_from_slice(&elsewhere.node.to_be_bytes()[2..]);
        packed[21..37].copy_from_slice(&ip.octets());
        packed[37..39].copy_from_slice(&elsewhere.core.port().to_be_bytes());
        packed[39..].copy_from_slice(&elsewhere.watch.to_be_bytes());
        packed
    }
}

/// Bytes as digits of six bits (the alphabet of RFC 4648 §5), without padding.
fn digits(bytes: &[u8]) -> String {
    let bit = |at: usize| bytes.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
    let digit = |at: usize| (0..6).fold(0, |digit, step| digit << 1 | bit(at * 6 + step));
    (0..(bytes.len() * 8).div_ceil(6)).map(|at| char::from(DIGITS[usize::from(digit(at))])).collect()
}

/// The bytes of such digits; `None` if they are not as many as a name has.
fn bytes_of(text: &[u8]) -> Option<[u8; BYTES]> {
    if text.len() != (BYTES * 8).div_ceil(6) {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (at, digit) in text.iter().enumerate() {
        let value = DIGITS.iter().position(|known| known == digit)?;
        for step in 0..6 {
            let to = at * 6 + step;
            if let Some(byte) = bytes.get_mut(to / 8) {
                *byte |= ((value >> (5 - step) & 1) << (7 - to % 8)) as u8;
            }
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_its_text_and_fits_where_libfabric_keeps_names() {
        let local = Address { pid: 4_194_304, fd: 999_999, nonce: 0xfedc_ba98_7654_3210 };
        let sockets = ["10.1.2.3:65535", "[2001:db8::ff]:1"].map(|text| text.parse().expect("a socket"));
        let all = sockets.map(|core| Some(Elsewhere { node: 0xffee_ddcc_bbaa, core, watch: 40_000 }));
        for elsewhere in all.into_iter().chain([None]) {
            let name = Name { local, elsewhere };
            let bytes = name.to_bytes();
            assert_eq!((bytes.last(), Name::parse(&bytes)), (Some(&0), Some(name)));
            assert!(bytes.len() <= NAME_BYTES);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let name = Name { local: Address { pid: 1, fd: 2, nonce: 3 }, elsewhere: None };
        let long = Name {
            elsewhere: Some(Elsewhere { node: 1, core: "1.2.3.4:5".parse().expect("a socket"), watch: 1 }),
            ..name
        };
        let text = long.to_bytes();
        assert_eq!(Name::parse(&text[..40]), None);
        assert_eq!(Name::parse(&[&text[..62], b"!", &text[63..]].concat()), None);
        assert_eq!(Name::parse(b"perusal:"), None);
    }
}
