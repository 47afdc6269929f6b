//! perusal as a provider of libfabric: `libperusal-fi.so`, the on-node transport of MPIs that use libfabric.
//!
//! From the lowest layer up:
//!
//! | modules | what they have |
//! |---|---|
//! | `api` | structures, constants and tables of libfabric's interface |
//! | `names` | what names an endpoint: here, on another node, as a service |
//! | `memory` | the memory of an endpoint, and whether its process is still there |
//! | `lock`, `forks` | a domain's lock; what a child of fork finds |
//! | `operands` | match keys, callers' buffers, registered memory, atomic operations |
//! | `remote`, `peers` | peers on other nodes; all peers |
//! | `protocol` | records, operations under way, completion queues and counters |
//! | `progress` | progress; rings that come and go; threads that wait |
//! | [`transport`] | the interface for programs of one's own |
//! | [`observe`] | what the endpoints of this machine do, seen from outside |
//! | `objects` | the objects that libfabric calls |

pub mod api;
mod forks;
mod lock;
mod memory;
mod names;
mod objects;
pub mod observe;
mod operands;
mod peers;
mod progress;
mod protocol;
mod remote;
pub mod transport;

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
    getinfo: objects::info::getinfo,
    fabric: objects::domain::fabric,
    cleanup: None,
};

/// What libfabric calls when it has loaded the library. Returns the provider, which lives as long as the process.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut Provider {
    &raw mut PROVIDER
}
