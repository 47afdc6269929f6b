//! perusal as a provider of libfabric: `libperusal-fi.so`, the on-node transport of MPIs that use libfabric.
//!
//! From the lowest layer up:
//!
//! | modules | what they have |
//! |---|---|
//! | `api` | structures, constants and tables of libfabric's interface |
//! | `address`, `name`, `service` | what names an endpoint: here, on another node, as a service |
//! | `process`, `words`, `segment` | whether a peer's process is still there; an endpoint's memory |
//! | `lock`, `key`, `spans`, `slab`, `directory`, `region`, `arithmetic`, `yields` | a domain's lock, match keys, callers' buffers, operations and peers by number, registered memory, atomic operations, yields of MPICH |
//! | `wire`, `queue` | records; completion queues and counters |
//! | `remote`, `peers` | peers on other nodes; all peers |
//! | `operation`, `core`, `receive`, `share`, `direct`, `access` | the protocol |
//! | `endpoint`, `senders`, `elsewhere`, `waker` | progress; rings that come and go; progress of what other nodes send; threads that wait |
//! | [`transport`] | the interface for programs of one's own |
//! | `object`, `opened`, `wait`, `domain`, `eq`, `av`, `cq`, `cntr`, `mr`, `ep`, `rma`, `info` | the objects that libfabric calls |

mod access;
pub mod address;
pub mod api;
mod arithmetic;
mod av;
mod cntr;
mod core;
mod cq;
mod direct;
mod directory;
mod domain;
mod elsewhere;
mod endpoint;
mod ep;
mod eq;
mod info;
mod key;
mod lock;
mod mr;
mod name;
mod object;
mod opened;
mod operation;
mod peers;
mod process;
mod queue;
mod receive;
mod region;
mod remote;
mod rma;
mod segment;
mod senders;
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
