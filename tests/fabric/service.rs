//! Endpoints that have the name of a service, and what fi_getinfo says of addresses.

use crate::node::{CAPS, Node, Said, ask};
use crate::{NAMED, Other};
use perusal_fi::api::*;
use std::ffi::{CStr, CString};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A name that no other run of these tests has.
fn service(of: &str) -> CString {
    CString::new(format!("test-{of}-{}", std::process::id())).expect("a text")
}

/// Source and destination of an offer.
fn addresses(info: *mut Info) -> (String, String) {
    // SAFETY: the provider's structure, whose addresses end with a zero within their lengths, or are null.
    unsafe {
        let text = |at: *mut std::ffi::c_void, len: usize| match at.is_null() {
            true => String::new(),
            false => {
                let bytes = std::slice::from_raw_parts(at.cast::<u8>(), len);
                let text = CStr::from_bytes_with_nul(bytes).expect("a zero at the end, and no other");
                text.to_str().expect("text").to_owned()
            }
        };
        let info = &*info;
        (text(info.src_addr, info.src_addrlen), text(info.dest_addr, info.dest_addrlen))
    }
}

/// The offer for an endpoint with this name.
fn named(service: &CStr) -> *mut Info {
    ask(Some(c"127.0.0.1"), Some(service), FI_SOURCE, CAPS, None).expect("an offer")
}

/// Opens an endpoint with this name.
pub fn endpoint_named(name: &str) -> Node {
    Node::open(named(&CString::new(name).expect("a text"))).expect("an endpoint")
}

#[test]
fn an_endpoint_is_found_by_the_name_of_its_service() {
    let name = service("found");
    let text = format!("perusal://:{}", name.to_str().expect("text"));
    assert_eq!(addresses(named(&name)), (text.clone(), String::new()));
    let server = Node::open(named(&name)).expect("an endpoint");
    // Its own address is one for everybody.
    assert!(server.name().starts_with("perusal://0"), "{}", server.name());

    let offer = ask(Some(c"localhost"), Some(&name), 0, CAPS, None).expect("an offer");
    assert_eq!(addresses(offer), ("perusal://:".into(), text.clone()));
    let client = Node::open(offer).expect("an endpoint");
    let (to, also) = (client.insert(&text), client.insert_service(c"localhost", &name).expect("an address"));
    assert_eq!((client.lookup(to), client.lookup(also)), (server.name(), server.name()));
    let mut buffer = [0; 4];
    server.receive(&mut buffer, FI_ADDR_UNSPEC, 5, 0, 1);
    assert_eq!(client.send(&[1, 2, 3, 4], to, 5, 0, 2), 0);
    assert!(matches!(server.read(), Said::Done(1, ..)));
    assert_eq!(buffer, [1, 2, 3, 4]);

    // One endpoint has a name at a time.
    assert_eq!(Node::open(named(&name)).err(), Some(-FI_EADDRINUSE));
    drop(server);
    assert_eq!(client.try_insert(&text), Err(FI_EADDRNOTAVAIL));
    assert_eq!(client.insert_service(c"localhost", &name), Err(-FI_EADDRNOTAVAIL));
    let next = Node::open(named(&name)).expect("the name is free again");
    assert_eq!(client.lookup(client.insert(&text)), next.name());
}

#[test]
fn an_address_as_text_is_a_node() {
    let node = Node::new();
    let name = CString::new(node.name()).expect("a text");
    let offer = ask(Some(&name), None, 0, CAPS, None).expect("an offer");
    assert_eq!(addresses(offer), ("perusal://:".into(), node.name()));
    // As a destination in the hints it stays what it is.
    let offer = ask(None, None, 0, CAPS, Some(&node.name())).expect("an offer");
    assert_eq!(addresses(offer), ("perusal://:".into(), node.name()));
    assert_eq!(
        addresses(ask(None, None, 0, CAPS, None).expect("an offer")),
        ("perusal://:".into(), String::new())
    );
}

#[test]
fn addresses_that_no_endpoint_can_have_are_refused() {
    let node = Node::new();
    let name = CString::new(node.name()).expect("a text");
    let refused = Err(-FI_ENODATA);
    // Together with a service; as one's own; without the node or service that FI_SOURCE wants.
    assert_eq!(ask(Some(&name), Some(c"1"), 0, CAPS, None), refused);
    assert_eq!(ask(Some(&name), None, FI_SOURCE, CAPS, None), refused);
    assert_eq!(ask(None, None, FI_SOURCE, CAPS, None), refused);
    // Another machine, any endpoint of this one, and what is no name.
    assert_eq!(ask(Some(c"192.0.2.1"), Some(c"1"), 0, CAPS, None), refused);
    assert_eq!(ask(Some(c"192.0.2.1"), Some(c"1"), FI_SOURCE, CAPS, None), refused);
    assert_eq!(ask(Some(c"localhost"), None, 0, CAPS, None), refused);
    assert_eq!(ask(None, Some(c"a/b"), 0, CAPS, None), refused);
    assert_eq!(ask(None, None, 0, CAPS, Some("fi_shm://1")), refused);
    assert_eq!(node.try_insert("fi_shm://1"), Err(FI_EINVAL));
}

#[test]
fn a_process_that_is_killed_leaves_no_name() {
    let name = service("killed");
    let name = name.to_str().expect("text");
    let text = format!("perusal://:{name}");
    let node = Node::new();
    let mut other = Other::start(&format!("{NAMED}{name}"));
    let to = other.meet(&node);
    assert_eq!(node.lookup(node.insert(&text)), node.lookup(to));
    other.child.kill().expect("a process");
    other.child.wait().expect("an end");
    assert_eq!(node.try_insert(&text), Err(FI_EADDRNOTAVAIL));
    let next = endpoint_named(name);
    assert_eq!(node.lookup(node.insert(&text)), next.name());
}

/// Anybody can bind the names of sockets. A process that is not named so by its own memory is not found by them.
#[test]
fn a_name_that_somebody_else_gives_an_endpoint_is_not_believed() {
    let (node, victim) = (Node::new(), Node::new());
    let name = service("impostor");
    let name = name.to_str().expect("text");
    // SAFETY: a plain call.
    let user = unsafe { libc::geteuid() };
    let socket = format!("perusal-fi/{user}/{name}/{}", victim.name());
    let socket = SocketAddr::from_abstract_name(socket).expect("room for the name");
    let _bound = UnixDatagram::bind_addr(&socket).expect("a socket");
    assert_eq!(node.try_insert(&format!("perusal://:{name}")), Err(FI_EADDRNOTAVAIL));
}
