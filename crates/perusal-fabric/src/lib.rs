//! perusal as a provider of libfabric: `libperusal-fi.so`, the on-node transport of MPIs that use libfabric.
//!
//! In the order of the layers: `api` (the interface's structures), `address`, `name`, `process` (whether one is still there), `words`, `segment` (an endpoint's memory) and `service` (names for it), `lock`, `key`, `spans`, `slab`, `wire`,
//! `queue`, `region`, `arithmetic`, `remote` (peers on other nodes), `peers`, `operation`, `core`, `receive`, `share`, `direct` and `access` (the protocol), `endpoint` (rings and progress), `elsewhere` (progress of what other nodes send), `waker`, and above them two faces: [`transport`], for programs of one's own, and
//! the objects that libfabric calls: `object`, `wait`, `domain`, `av`, `cq`, `cntr`, `mr`, `ep`, `rma`, `info`.

mod access;
pub mod address;
pub mod api;
mod arithmetic;
mod av;
mod cntr;
mod core;
mod cq;
mod direct;
mod domain;
mod elsewhere;
mod endpoint;
mod ep;
mod info;
mod key;
mod lock;
mod mr;
mod name;
mod object;
mod operation;
mod peers;
mod process;
mod queue;
mod receive;
mod region;
mod remote;
mod rma;
mod segment;
mod service;
mod share;
mod slab;
mod spans;
pub mod transport;
mod wait;
mod waker;
mod wire;
mod words;
mod yields;

use api::Provider;

/// The provider's own version: 0.1.
pub const VERSION: u32 = 1;
/// The version of the interface: libfabric takes no provider that knows an older one than itself.
const INTERFACE: u32 = 2 << 16 | 5;

/// libfabric keeps words of its own in it.
static mut PROVIDER: Provider = Provider {
    version: VERSION,
    fi_version: INTERFACE,
    core: [std::ptr::null_mut(); 4],
    name: c"perusal".as_ptr(),
    getinfo: info::getinfo,
    fabric: domain::fabric,
    cleanup: None,
};

/// What libfabric calls when it has loaded the library. Returns the provider, which lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut Provider {
    &raw mut PROVIDER
}
