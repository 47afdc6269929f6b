//! Endpoints that have the name of a service, and the addresses by which libfabric's callers ask for them:
//! `perusal://:NAME`.
//!
//! Such an endpoint holds two sockets in the abstract namespace, which the kernel takes away with the process: one has
//! the service's name, so that no second endpoint of the user gets it; the name of the other also has the endpoint's
//! address, for whoever looks for the service. Nobody connects to them: the kernel lists their names in /proc/net/unix.
//! Anybody can bind such names, so an address counts only if the memory there has the service's name, too.

use crate::api::{FI_EADDRINUSE, FI_EADDRNOTAVAIL, FI_EINVAL, number_of};
use crate::names::address::Address;
use std::ffi::CString;
use std::fmt;
use std::net::ToSocketAddrs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

const SCHEME: &str = "perusal://:";
/// Bytes of the longest name of a service: with user and address it fits into the name of a socket, by itself into
/// where libfabric's callers keep names.
const LONGEST: usize = 40;
/// The kernel's list of sockets.
const SOCKETS: &str = "/proc/net/unix";

/// The name of a service; without one, any endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Service(String);

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0)
    }
}

impl Service {
    /// A service by its name; `None` if it cannot be one.
    pub fn new(name: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b'@';
        (name.len() <= LONGEST && name.bytes().all(plain)).then(|| Self(name.into()))
    }

    /// Reads the address of a service; `None` if it is none.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let text = bytes.split(|&byte| byte == 0).next()?;
        Self::new(std::str::from_utf8(text).ok()?.strip_prefix(SCHEME)?)
    }

    /// Whether any endpoint is meant.
    pub fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of the memory of an endpoint that has this name.
    pub fn of_memory(&self) -> CString {
        let separator = if self.is_any() { "" } else { ":" };
        CString::new(format!("{}{separator}{}", crate::memory::segment::MEMORY, self.0)).unwrap_or_default()
    }

    /// The name of the socket that is there while an endpoint of this user has the name.
    fn of_socket(&self) -> String {
        // SAFETY: the call has no argument.
        format!("perusal-fi/{}/{}", unsafe { libc::geteuid() }, self.0)
    }

    /// Gives the name to the endpoint with this address. It has it until what is returned is dropped.
    ///
    /// # Errors
    ///
    /// FI_EADDRINUSE if another endpoint has it, or the number of another error.
    pub fn announce(&self, address: Address) -> Result<Option<Announced>, i32> {
        if self.is_any() {
            return Ok(None);
        }
        let name = self.of_socket();
        let bind = |name: String| {
            let bound = SocketAddr::from_abstract_name(name).and_then(|at| UnixDatagram::bind_addr(&at));
            bound.map_err(|error| match error.kind() {
                std::io::ErrorKind::AddrInUse => FI_EADDRINUSE,
                _ => number_of(error),
            })
        };
        let unique = bind(name.clone())?;
        let tells = bind(format!("{name}/{address}"))?;
        Ok(Some(Announced { _unique: unique, _tells: tells }))
    }

    /// Returns the address of the endpoint that has the name now.
    ///
    /// # Errors
    ///
    /// FI_EADDRNOTAVAIL if none has it, FI_EINVAL if none is named.
    pub fn find(&self) -> Result<Address, i32> {
        if self.is_any() {
            return Err(FI_EINVAL);
        }
        // The kernel writes @ for the zero before such names.
        let start = format!("@{}/", self.of_socket());
        let sockets = std::fs::read(SOCKETS).map_err(number_of)?;
        let sockets = String::from_utf8_lossy(&sockets);
        let tells = |line: &str| {
            let address = Address::parse(line.split(' ').next_back()?.strip_prefix(&start)?.as_bytes())?;
            self.has(address).then_some(address)
        };
        sockets.lines().find_map(tells).ok_or(FI_EADDRNOTAVAIL)
    }

    /// Whether the memory at this address has the service's name.
    fn has(&self, address: Address) -> bool {
        let link = std::fs::read_link(format!("/proc/{}/fd/{}", address.pid, address.fd));
        let name = format!("/memfd:{} (deleted)", self.of_memory().to_string_lossy());
        link.is_ok_and(|link| link.as_os_str() == name.as_str())
    }
}

/// An endpoint's hold of a name.
#[derive(Debug)]
pub struct Announced {
    _unique: UnixDatagram,
    _tells: UnixDatagram,
}

/// Whether this machine has a node's name or address: one that can be bound to.
pub fn is_here(node: &str) -> bool {
    let of_machine = || {
        let mut name = [0_u8; 256];
        // SAFETY: 256 bytes to write, of which the last one stays zero.
        let known = unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } == 0;
        known && name.split(|&byte| byte == 0).next() == Some(node.as_bytes())
    };
    let can_be_bound = || {
        let mut addresses = (node, 0).to_socket_addrs().into_iter().flatten();
        addresses.any(|address| std::net::UdpSocket::bind(address).is_ok())
    };
    node == "localhost" || of_machine() || can_be_bound()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_survives_its_address() {
        let service = Service::new("9228").expect("a name");
        assert_eq!(service.to_string(), "perusal://:9228");
        assert_eq!(Service::parse(b"perusal://:9228\0"), Some(service));
        assert_eq!(Service::parse(b"perusal://:"), Some(Service::default()));
        let address = Address { pid: 1, fd: 2, nonce: 3 };
        assert_eq!(Service::parse(&address.to_bytes()), None);
        for name in ["a/b", "a b", "@", &"a".repeat(LONGEST + 1)] {
            assert_eq!(Service::new(name), None, "{name}");
        }
        // With any user and any address it fits into the name of a socket.
        assert!("perusal-fi/4294967295//".len() + LONGEST + address.to_string().len() <= 107);
    }

    #[test]
    fn a_node_is_this_one_by_its_names_only() {
        assert!(is_here("localhost") && is_here("127.0.0.1"));
        assert!(!is_here("192.0.2.1") && !is_here(""));
    }
}
