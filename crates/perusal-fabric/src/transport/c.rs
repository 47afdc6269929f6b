//! The transport for C: `include/perusal-transport.h`, which says what each function does.

use super::{Completion, EAGER_LIMIT, Endpoint, Error, Operation, Peer};
use libc::{c_char, c_int, c_void, ssize_t};
use std::ffi::CStr;
use std::time::Duration;

/// `PERUSAL_ADDRESS_BYTES`
const ADDRESS: usize = 64;
/// `PERUSAL_ANY_PEER`
const ANY_PEER: u32 = u32::MAX;
const _: () = assert!(crate::names::address::ADDRESS_BYTES <= ADDRESS);

/// `perusal_completion`
#[repr(C)]
#[derive(Debug)]
pub struct CCompletion {
    context: *mut c_void,
    tag: u64,
    data: u64,
    length: usize,
    peer: u32,
    received: c_int,
    error: c_int,
    reserved: c_int,
}

/// `perusal_message`
#[repr(C)]
#[derive(Debug)]
pub struct CMessage {
    tag: u64,
    data: u64,
    length: usize,
    peer: u32,
    reserved: c_int,
}

/// `perusal_operation`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct COperation {
    at: u32,
    serial: u32,
}

impl From<Operation> for COperation {
    fn from(Operation { at, serial }: Operation) -> Self {
        Self { at, serial }
    }
}

impl From<Completion> for CCompletion {
    fn from(done: Completion) -> Self {
        Self {
            context: std::ptr::with_exposed_provenance_mut(done.context as usize),
            tag: done.tag,
            data: done.data,
            length: done.len,
            peer: done.peer.map_or(ANY_PEER, |peer| peer.0),
            received: c_int::from(done.received),
            error: done.result.err().map_or(0, Error::number),
            reserved: 0,
        }
    }
}

fn answer(result: Result<(), Error>) -> c_int {
    result.err().map_or(0, |error| -error.number())
}

fn from(peer: u32) -> Option<Peer> {
    (peer != ANY_PEER).then_some(Peer(peer))
}

/// The endpoint, or `return -EINVAL`: the header asks for one that is open.
macro_rules! endpoint {
    ($endpoint:ident) => {
        // SAFETY: the header wants an endpoint that is open and that no other thread uses now,
        // or gets an error for null.
        match unsafe { $endpoint.as_mut() } {
            Some(endpoint) => endpoint,
            None => return -libc::EINVAL,
        }
    };
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_endpoint_open(out: *mut *mut Endpoint) -> c_int {
    if out.is_null() {
        return -libc::EINVAL;
    }
    match Endpoint::open() {
        Ok(endpoint) => {
            // SAFETY: the header wants a place for the endpoint.
            unsafe { *out = Box::into_raw(Box::new(endpoint)) };
            0
        }
        Err(error) => -error.number(),
    }
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_endpoint_close(endpoint: *mut Endpoint) {
    if !endpoint.is_null() {
        // SAFETY: the header wants one that came from `perusal_endpoint_open` and is not used any more.
        drop(unsafe { Box::from_raw(endpoint) });
    }
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_endpoint_address(endpoint: *mut Endpoint, out: *mut c_char) -> c_int {
    let endpoint = endpoint!(endpoint);
    if out.is_null() {
        return -libc::EINVAL;
    }
    let bytes = endpoint.address().to_bytes();
    // SAFETY: the header wants room for PERUSAL_ADDRESS_BYTES; the address is not longer, and ends with a zero.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), bytes.len()) };
    0
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_peer_add(
    endpoint: *mut Endpoint,
    address: *const c_char,
    peer: *mut u32,
) -> c_int {
    let endpoint = endpoint!(endpoint);
    if address.is_null() || peer.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the header wants a C string.
    let Some(address) = super::Address::parse(unsafe { CStr::from_ptr(address) }.to_bytes()) else {
        return -Error::NoAddress.number();
    };
    // SAFETY: the header wants a place for the number.
    unsafe { *peer = endpoint.add(address).0 };
    0
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_peer_remove(endpoint: *mut Endpoint, peer: u32) -> c_int {
    answer(endpoint!(endpoint).remove(Peer(peer)))
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_peer_has_left(endpoint: *mut Endpoint, peer: u32) -> c_int {
    c_int::from(endpoint!(endpoint).has_left(Peer(peer)))
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_send(
    endpoint: *mut Endpoint,
    peer: u32,
    tag: u64,
    data: u64,
    bytes: *const c_void,
    length: usize,
    context: *mut c_void,
) -> c_int {
    let endpoint = endpoint!(endpoint);
    if bytes.is_null() && length > 0 {
        return -libc::EINVAL;
    }
    let context = context.expose_provenance() as u64;
    // SAFETY: the header wants bytes that stay as they are until the completion.
    let sent = unsafe { endpoint.send_raw(Peer(peer), tag, data, bytes.cast(), length, context) };
    answer(sent.map(drop))
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_inject(
    endpoint: *mut Endpoint,
    peer: u32,
    tag: u64,
    data: u64,
    bytes: *const c_void,
    length: usize,
) -> c_int {
    let endpoint = endpoint!(endpoint);
    if bytes.is_null() && length > 0 {
        return -libc::EINVAL;
    }
    let bytes = match length {
        0 => &[],
        // Before there is a slice of it: no memory is so large.
        _ if length > EAGER_LIMIT => return -Error::TooLong.number(),
        // SAFETY: the header wants `length` bytes.
        _ => unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) },
    };
    answer(endpoint.inject(Peer(peer), tag, data, bytes))
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_receive(
    endpoint: *mut Endpoint,
    peer: u32,
    tag: u64,
    ignore: u64,
    bytes: *mut c_void,
    length: usize,
    context: *mut c_void,
    operation: *mut COperation,
) -> c_int {
    let endpoint = endpoint!(endpoint);
    if bytes.is_null() && length > 0 {
        return -libc::EINVAL;
    }
    let context = context.expose_provenance() as u64;
    // SAFETY: the header wants bytes that nobody touches until the completion.
    let begun = unsafe { endpoint.receive_known(from(peer), tag, ignore, bytes.cast(), length, context) };
    let Some(begun) = begun else { return -Error::UnknownPeer.number() };
    if !operation.is_null() {
        // SAFETY: the header wants a place for the operation, or null.
        unsafe { *operation = begun.into() };
    }
    0
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_cancel(endpoint: *mut Endpoint, operation: COperation) -> c_int {
    endpoint!(endpoint).cancel(Operation { at: operation.at, serial: operation.serial });
    0
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_probe(
    endpoint: *mut Endpoint,
    peer: u32,
    tag: u64,
    ignore: u64,
    out: *mut CMessage,
) -> c_int {
    let endpoint = endpoint!(endpoint);
    if !endpoint.knows(from(peer)) {
        return -Error::UnknownPeer.number();
    }
    let Some(found) = endpoint.probe(from(peer), tag, ignore) else { return 0 };
    if !out.is_null() {
        let peer = found.peer.map_or(ANY_PEER, |peer| peer.0);
        let message = CMessage { tag: found.tag, data: found.data, length: found.len, peer, reserved: 0 };
        // SAFETY: the header wants a place for the message, or null.
        unsafe { *out = message };
    }
    1
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_progress(endpoint: *mut Endpoint) -> c_int {
    c_int::from(endpoint!(endpoint).progress())
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_poll(
    endpoint: *mut Endpoint,
    out: *mut CCompletion,
    count: usize,
) -> ssize_t {
    // SAFETY: the header wants an endpoint that is open and that no other thread uses now, or gets an error for null.
    let Some(endpoint) = (unsafe { endpoint.as_mut() }) else { return -(libc::EINVAL as ssize_t) };
    if out.is_null() && count > 0 {
        return -(libc::EINVAL as ssize_t);
    }
    let mut taken = 0;
    while taken < count {
        let Some(done) = endpoint.poll() else { break };
        // SAFETY: the header wants room for `count` completions.
        unsafe { out.add(taken).write(done.into()) };
        taken += 1;
    }
    taken as ssize_t
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_wait(
    endpoint: *mut Endpoint,
    out: *mut CCompletion,
    milliseconds: c_int,
) -> c_int {
    let endpoint = endpoint!(endpoint);
    if out.is_null() {
        return -libc::EINVAL;
    }
    let at_most = u64::try_from(milliseconds).map_or(Duration::MAX, Duration::from_millis);
    let Some(done) = endpoint.wait(at_most) else { return 0 };
    // SAFETY: the header wants a place for the completion.
    unsafe { out.write(done.into()) };
    1
}

/// # Safety
///
/// As `include/perusal-transport.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perusal_error_text(error: c_int, out: *mut c_char, length: usize) -> *const c_char {
    if out.is_null() || length == 0 {
        return c"".as_ptr();
    }
    let text = match error.unsigned_abs() as c_int {
        libc::ENXIO => Error::UnknownPeer.to_string(),
        libc::EOVERFLOW => Error::Truncated.to_string(),
        libc::EINVAL => "an argument is null, or a text is no address".to_owned(),
        number => Error::from(number).to_string(),
    };
    let fits = text.len().min(length - 1);
    // SAFETY: the header wants `length` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), out.cast(), fits);
        *out.add(fits) = 0;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn an_inject_of_more_than_memory_holds_is_refused() {
        let mut endpoint = null_mut();
        let byte = 0_u8;
        // SAFETY: a place for the endpoint, which is closed once; of the bytes none is read.
        unsafe {
            assert_eq!(perusal_endpoint_open(&raw mut endpoint), 0);
            for length in [EAGER_LIMIT + 1, usize::MAX] {
                let sent = perusal_inject(endpoint, 0, 0, 0, (&raw const byte).cast(), length);
                assert_eq!(sent, -libc::EMSGSIZE);
            }
            perusal_endpoint_close(endpoint);
        }
    }
}
