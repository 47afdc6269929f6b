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

    /// Opens an endpoint, and adds another, or itself. It is the test's to close.
    fn open(to: Option<*mut Endpoint>) -> *mut Endpoint {
        let (mut endpoint, mut peer, mut address) = (null_mut(), 9, [0; ADDRESS]);
        // SAFETY: places for the endpoint, its address, and a number; a C string.
        unsafe {
            assert_eq!(perusal_endpoint_open(&raw mut endpoint), 0);
            assert_eq!(perusal_endpoint_address(to.unwrap_or(endpoint), address.as_mut_ptr()), 0);
            assert_eq!(perusal_peer_add(endpoint, address.as_ptr(), &raw mut peer), 0);
        }
        assert_eq!(peer, 0);
        endpoint
    }

    fn nothing() -> CCompletion {
        CCompletion {
            context: null_mut(),
            tag: 0,
            data: 0,
            length: 0,
            peer: 0,
            received: 0,
            error: 0,
            reserved: 0,
        }
    }

    #[test]
    fn null_where_there_must_be_something_is_an_error_and_where_there_need_not_be_none_is() {
        let endpoint = open(None);
        let (none, mut peer) = (null_mut(), 0);
        let refused = -libc::EINVAL;
        let operation = COperation { at: 0, serial: 0 };
        // SAFETY: an endpoint or null; where null is given the header allows it or gives an error.
        unsafe {
            assert_eq!(perusal_endpoint_open(null_mut()), refused);
            perusal_endpoint_close(null_mut());
            for answer in [
                perusal_endpoint_address(none, [0; ADDRESS].as_mut_ptr()),
                perusal_endpoint_address(endpoint, null_mut()),
                perusal_peer_add(none, c"".as_ptr(), &raw mut peer),
                perusal_peer_add(endpoint, null_mut(), &raw mut peer),
                perusal_peer_add(endpoint, c"perusal://1.2.3".as_ptr(), null_mut()),
                perusal_peer_add(endpoint, c"perusal://1.2".as_ptr(), &raw mut peer),
                perusal_peer_remove(none, 0),
                perusal_peer_has_left(none, 0),
                perusal_send(none, 0, 0, 0, null_mut(), 0, null_mut()),
                perusal_send(endpoint, 0, 0, 0, null_mut(), 1, null_mut()),
                perusal_inject(none, 0, 0, 0, null_mut(), 0),
                perusal_inject(endpoint, 0, 0, 0, null_mut(), 1),
                perusal_receive(none, 0, 0, 0, null_mut(), 0, null_mut(), null_mut()),
                perusal_receive(endpoint, 0, 0, 0, null_mut(), 1, null_mut(), null_mut()),
                perusal_cancel(none, operation),
                perusal_probe(none, 0, 0, 0, null_mut()),
                perusal_progress(none),
                perusal_poll(none, null_mut(), 0) as c_int,
                perusal_poll(endpoint, null_mut(), 1) as c_int,
                perusal_wait(none, &mut nothing(), 0),
                perusal_wait(endpoint, null_mut(), 0),
            ] {
                assert_eq!(answer, refused);
            }
            assert_eq!(perusal_poll(endpoint, null_mut(), 0), 0);
            assert_eq!(perusal_send(endpoint, 0, 1, 2, null_mut(), 0, null_mut()), 0);
            assert_eq!(perusal_probe(endpoint, 0, 1, 0, null_mut()), 1);
            assert_eq!(perusal_receive(endpoint, 0, 1, 0, null_mut(), 0, null_mut(), null_mut()), 0);
            perusal_endpoint_close(endpoint);
        }
    }

    #[test]
    fn a_peer_that_was_not_added_is_an_error_of_its_own() {
        let endpoint = open(None);
        let zero = 0_u8;
        let byte = (&raw const zero).cast::<c_void>();
        // SAFETY: an endpoint that is closed at the end; a byte to read, and none to write.
        unsafe {
            for answer in [
                perusal_peer_remove(endpoint, 1),
                perusal_send(endpoint, 1, 0, 0, byte, 1, null_mut()),
                perusal_inject(endpoint, 1, 0, 0, byte, 1),
                perusal_receive(endpoint, 1, 0, 0, null_mut(), 0, null_mut(), null_mut()),
                perusal_probe(endpoint, 1, 0, 0, null_mut()),
                perusal_peer_remove(endpoint, ANY_PEER),
                perusal_send(endpoint, ANY_PEER, 0, 0, byte, 1, null_mut()),
            ] {
                assert_eq!(answer, -libc::ENXIO);
            }
            assert_eq!(perusal_peer_has_left(endpoint, 1), 1);
            assert_eq!(perusal_wait(endpoint, &mut nothing(), 0), 0, "no completion follows");
            perusal_endpoint_close(endpoint);
        }
    }

    #[test]
    fn completions_say_what_has_ended_and_how() {
        let b = open(None);
        let a = open(Some(b));
        let (sent, mut room, mut done) = ([7_u8; 3], [0_u8; 4], [nothing(), nothing(), nothing()]);
        let (mut operation, mut found) =
            (COperation { at: 0, serial: 0 }, CMessage { tag: 0, data: 0, length: 0, peer: 0, reserved: 0 });
        let (own, its) = (1_u8, 2_u8);
        let [own, its] = [&raw const own, &raw const its].map(|at| at.cast_mut().cast::<c_void>());
        let to = room.as_mut_ptr().cast();
        // SAFETY: endpoints that are closed at the end, buffers and places that outlive them.
        unsafe {
            // Of two receives the first is cancelled; the second is too short for its message.
            assert_eq!(perusal_receive(b, ANY_PEER, 5, 0, to, 4, own, &raw mut operation), 0);
            assert_eq!(perusal_receive(b, ANY_PEER, 5, 0, to, 2, its, null_mut()), 0);
            assert_eq!(perusal_cancel(b, operation), 0);
            assert_eq!(perusal_send(a, 0, 5, 6, sent.as_ptr().cast(), 3, own), 0);
            assert_eq!(perusal_inject(a, 0, 8, 9, sent.as_ptr().cast(), 3), 0);
            assert_eq!(perusal_progress(b), 1);
            assert_eq!(perusal_poll(b, done.as_mut_ptr(), 3), 2);
            let [cancelled, short, _] = &done;
            assert_eq!((cancelled.context, cancelled.error, cancelled.received), (own, libc::ECANCELED, 1));
            assert_eq!((short.context, short.error, short.received), (its, libc::EOVERFLOW, 1));
            assert_eq!((short.tag, short.data, short.length, short.peer), (5, 6, 2, ANY_PEER));
            assert_eq!(room, [7, 7, 0, 0]);
            assert_eq!(perusal_probe(b, ANY_PEER, 8, 0, &raw mut found), 1);
            assert_eq!((found.tag, found.data, found.length, found.peer), (8, 9, 3, ANY_PEER));
            // An inject has no completion, the send has one.
            assert_eq!(perusal_wait(a, done.as_mut_ptr(), -1), 1);
            assert_eq!((done[0].context, done[0].error, done[0].received, done[0].length), (own, 0, 0, 0));
            assert_eq!(perusal_wait(a, done.as_mut_ptr(), 1), 0);
            perusal_endpoint_close(b);
            assert_eq!(perusal_peer_has_left(a, 0), 1);
            perusal_endpoint_close(a);
        }
    }

    #[test]
    fn every_error_has_words_that_fit_where_they_are_to_go() {
        let words = |error: c_int, length: usize| {
            let mut text = [1 as c_char; 128];
            // SAFETY: as many bytes as said; what comes back is a C string.
            let said = unsafe { CStr::from_ptr(perusal_error_text(error, text.as_mut_ptr(), length)) };
            said.to_str().expect("plain text").to_owned()
        };
        for (error, text) in [
            (libc::EAGAIN, "no room"),
            (libc::EHOSTUNREACH, "no such endpoint"),
            (libc::ESHUTDOWN, "was closed"),
            (libc::ENXIO, "has not added the peer"),
            (libc::EBUSY, "as many senders"),
            (libc::EMSGSIZE, "than an inject takes"),
            (libc::EOVERFLOW, "longer than the buffer"),
            (libc::ECANCELED, "cancelled"),
            (libc::ENOMEM, "no memory"),
            (libc::EINVAL, "no address"),
            (libc::EMFILE, "Too many open files"),
        ] {
            for error in [error, -error] {
                assert!(words(error, 128).contains(text), "{error}: {}", words(error, 128));
            }
        }
        assert_eq!(words(libc::ENXIO, 5), "this");
        assert_eq!(words(libc::ENXIO, 0), "");
    }

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
