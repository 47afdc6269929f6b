//! Which node this process is on, and whether an endpoint elsewhere is still there.

use crate::names::name::Elsewhere;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long what a peer has sent before its end may take to arrive: it comes by another connection.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: i32 = 4096;

/// After how long without an answer a peer on another node is given up: PERUSAL_FABRIC_TIMEOUT, in seconds.
pub fn timeout() -> Duration {
    let seconds = std::env::var("PERUSAL_FABRIC_TIMEOUT").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.filter(|&seconds| seconds > 0).unwrap_or(20))
}

/// The node of this process: 48 bits. Processes with the same number can open each other's memory: they have the same
/// kernel and the same numbers of processes, and PERUSAL_FABRIC_NODE says nothing else.
pub fn node() -> u64 {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let named = std::env::var_os("PERUSAL_FABRIC_NODE").unwrap_or_default();
    let parts = [&boot[..], namespace.as_os_str().as_encoded_bytes(), named.as_encoded_bytes()];
    // FNV-1a, with a byte between the parts that none of them has.
    let hash = parts.join(&0xff).iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ hash >> 48) & 0xffff_ffff_ffff
}

/// Where others watch this endpoint: a port whose connections end with it. Nothing is read or written there.
#[derive(Debug)]
pub struct Watchers {
    listener: TcpListener,
    accepted: Vec<TcpStream>,
}

impl Watchers {
    /// Listens at the address of this socket.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn listen(beside: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(beside.ip(), 0))?;
        listener.set_nonblocking(true)?;
        // SAFETY: a plain call on a descriptor that we own.
        unsafe { libc::listen(listener.as_raw_fd(), BACKLOG) };
        Ok(Self { listener, accepted: Vec::new() })
    }

    /// The port.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn port(&self) -> std::io::Result<u16> {
        self.listener.local_addr().map(|at| at.port())
    }

    /// Makes room for who comes later: until somebody accepts, the kernel keeps a limited number of connections.
    pub fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            self.accepted.push(stream);
        }
        let poll =
            |stream: &TcpStream| libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut polls: Vec<libc::pollfd> = self.accepted.iter().map(poll).collect();
        // SAFETY: as many entries as said, which live through the call; it does not wait.
        unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, 0) };
        // A watcher writes nothing: what can be read is its end.
        let mut ended = polls.iter().map(|poll| poll.revents != 0);
        self.accepted.retain(|_| ended.next() != Some(true));
    }
}

/// A peer on another node, whose end is watched from the first question on.
#[derive(Debug)]
pub struct Watched {
    pub elsewhere: Elsewhere,
    /// The network's number of the way there, once there was one.
    pub way: Option<usize>,
    socket: Option<OwnedFd>,
    ended: Option<Instant>,
}

impl Watched {
    /// A peer that nobody has asked for yet.
    pub fn new(elsewhere: Elsewhere) -> Self {
        Self { elsewhere, way: None, socket: None, ended: None }
    }

    /// Whether it has ended, or does not answer in time.
    #[cold]
    pub fn has_ended(&mut self) -> bool {
        if self.socket.is_none() {
            self.socket = watch(SocketAddr::new(self.elsewhere.core.ip(), self.elsewhere.watch));
        }
        let ended = self.socket.as_ref().is_some_and(is_readable);
        ended && self.ended.get_or_insert_with(Instant::now).elapsed() > LAST_WORDS
    }

    /// The peer has ended, and is not asked for any more.
    pub fn give_up(&mut self) {
        self.socket = None;
    }
}

fn is_readable(fd: &OwnedFd) -> bool {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry that lives through the call, which does not wait.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}

/// Connects to where an endpoint listens, without waiting. The descriptor can be read when the endpoint has ended, or
/// does not answer in time.
fn watch(peer: SocketAddr) -> Option<OwnedFd> {
    let family = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: a plain system call.
    let fd = unsafe { libc::socket(family, kind, 0) };
    if fd < 0 {
        return None;
    }
    // SAFETY: a descriptor that was just made and that nobody else has.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let timeout = timeout();
    let seconds = i32::try_from(timeout.as_secs()).unwrap_or(i32::MAX);
    let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    set(&socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
    // Asked after a third of the time, and then as often as fits into the rest.
    set(&socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, (seconds / 3).max(1));
    set(&socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, (seconds / 6).max(1));
    set(&socket, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 4);
    set(&socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, milliseconds);
    // The n-th try waits twice as long as the one before: 1, 3, 7, 15, … seconds.
    let tries = (seconds.max(1) as u32 + 1).ilog2().max(1) as i32;
    set(&socket, libc::IPPROTO_TCP, libc::TCP_SYNCNT, tries);
    let (bytes, len) = to_sockaddr(peer);
    // SAFETY: a socket address of that length.
    unsafe { libc::connect(socket.as_raw_fd(), bytes.as_ptr().cast(), len as u32) };
    // Errors of connect show in the descriptor, like those of an answer.
    Some(socket)
}

fn set(socket: &OwnedFd, level: i32, option: i32, value: i32) {
    // SAFETY: a descriptor, and a value of that size.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<i32>() as u32,
        )
    };
}

/// A socket address as C has it, and its length.
#[repr(C, align(8))]
#[derive(Debug, Default)]
pub struct Bytes([u8; 28]);

impl Bytes {
    /// Where it begins.
    pub fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }
}

/// Writes a socket address as C has it.
pub fn to_sockaddr(socket: SocketAddr) -> (Bytes, usize) {
    let mut bytes = Bytes::default();
    let family = if socket.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    bytes.0[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    bytes.0[2..4].copy_from_slice(&socket.port().to_be_bytes());
    match socket {
        SocketAddr::V4(socket) => {
            bytes.0[4..8].copy_from_slice(&socket.ip().octets());
            (bytes, 16)
        }
        SocketAddr::V6(socket) => {
            bytes.0[8..24].copy_from_slice(&socket.ip().octets());
            (bytes, 28)
        }
    }
}

/// Reads a socket address as C has it; `None` if it is of another family.
pub fn from_sockaddr(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => {
            let ip: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::new(ip.into(), port))
        }
        libc::AF_INET6 => {
            let ip: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some(SocketAddr::new(ip.into(), port))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn becomes_readable(fd: &OwnedFd, milliseconds: i32) -> bool {
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry that lives through the call.
        unsafe { libc::poll(&raw mut poll, 1, milliseconds) > 0 }
    }

    #[test]
    fn socket_addresses_survive_the_form_of_c() {
        for text in ["10.1.2.3:4567", "[2001:db8::1]:80"] {
            let socket: SocketAddr = text.parse().expect("a socket");
            let (bytes, len) = to_sockaddr(socket);
            assert_eq!(from_sockaddr(&bytes.0[..len]), Some(socket));
        }
        assert_eq!(from_sockaddr(&[0; 28]), None);
    }

    /// Whether it is accepted or not, the connection lives as long as who listens.
    #[test]
    fn a_watch_tells_the_end_of_what_it_watches() {
        for accepts in [false, true] {
            let mut watchers = Watchers::listen("127.0.0.1:1".parse().expect("a socket")).expect("a port");
            let at = SocketAddr::new([127, 0, 0, 1].into(), watchers.port().expect("a port"));
            let socket = watch(at).expect("a descriptor");
            while accepts && watchers.accepted.is_empty() {
                watchers.accept();
            }
            assert!(!becomes_readable(&socket, 50));
            if accepts {
                // A process that has ended is not kept.
                drop(watch(at));
                while watchers.accepted.len() != 1 {
                    watchers.accept();
                }
            }
            drop(watchers);
            assert!(becomes_readable(&socket, 60_000));
            let refused = watch(at).expect("a descriptor");
            assert!(becomes_readable(&refused, 60_000));
        }
    }
}
