//! Flags, capabilities, classes and error numbers.
#![allow(missing_docs)]

pub const FI_MSG: u64 = 1 << 1;
pub const FI_RMA: u64 = 1 << 2;
pub const FI_TAGGED: u64 = 1 << 3;
pub const FI_ATOMIC: u64 = 1 << 4;
pub const FI_MULTICAST: u64 = 1 << 5;
pub const FI_READ: u64 = 1 << 8;
pub const FI_WRITE: u64 = 1 << 9;
pub const FI_RECV: u64 = 1 << 10;
pub const FI_SEND: u64 = 1 << 11;
pub const FI_REMOTE_READ: u64 = 1 << 12;
pub const FI_REMOTE_WRITE: u64 = 1 << 13;
pub const FI_MULTI_RECV: u64 = 1 << 16;
pub const FI_REMOTE_CQ_DATA: u64 = 1 << 17;
pub const FI_MORE: u64 = 1 << 18;
pub const FI_PEEK: u64 = 1 << 19;
pub const FI_TRIGGER: u64 = 1 << 20;
pub const FI_FENCE: u64 = 1 << 21;
pub const FI_COMPLETION: u64 = 1 << 24;
pub const FI_INJECT: u64 = 1 << 25;
pub const FI_INJECT_COMPLETE: u64 = 1 << 26;
pub const FI_TRANSMIT_COMPLETE: u64 = 1 << 27;
pub const FI_DELIVERY_COMPLETE: u64 = 1 << 28;
/// A flag of fi_cq_open.
pub const FI_AFFINITY: u64 = 1 << 29;
pub const FI_COMMIT_COMPLETE: u64 = 1 << 30;
pub const FI_MATCH_COMPLETE: u64 = 1 << 31;
/// Flags of address vectors.
pub const FI_AV_USER_ID: u64 = 1 << 41;
pub const FI_AUTH_KEY: u64 = 1 << 57;
/// Capabilities of version 2.0 of the interface: what the last bit meant before was another one.
pub const FI_TAGGED_DIRECTED_RECV: u64 = 1 << 45;
pub const FI_TAGGED_MULTI_RECV: u64 = 1 << 46;
pub const FI_EXACT_DIRECTED_RECV: u64 = 1 << 48;
pub const FI_SOURCE_ERR: u64 = 1 << 50;
pub const FI_LOCAL_COMM: u64 = 1 << 51;
pub const FI_REMOTE_COMM: u64 = 1 << 52;
/// A flag of fi_getinfo.
pub const FI_NUMERICHOST: u64 = 1 << 55;
pub const FI_RMA_EVENT: u64 = 1 << 56;
pub const FI_FETCH_ATOMIC: u64 = 1 << 58;
pub const FI_COMPARE_ATOMIC: u64 = 1 << 59;
pub const FI_SOURCE: u64 = 1 << 57;
pub const FI_DIRECTED_RECV: u64 = 1 << 59;
/// A flag of a tagged receive; the same bit as the capability FI_DIRECTED_RECV.
pub const FI_CLAIM: u64 = 1 << 59;
pub const FI_DISCARD: u64 = 1 << 58;
/// A flag of fi_ep_bind.
pub const FI_SELECTIVE_COMPLETION: u64 = 1 << 59;

pub const FI_ADDR_STR: u32 = 9;
pub const FI_ADDR_UNSPEC: u64 = u64::MAX;
pub const FI_ADDR_NOTAVAIL: u64 = u64::MAX;

pub const FI_AV_MAP: u32 = 1;
pub const FI_AV_TABLE: u32 = 2;
pub const FI_PROGRESS_UNSPEC: u32 = 0;
pub const FI_PROGRESS_AUTO: u32 = 1;
pub const FI_PROGRESS_MANUAL: u32 = 2;
/// Of control alone: manual, and by the threads that move data.
pub const FI_PROGRESS_CONTROL_UNIFIED: u32 = 3;
pub const FI_THREAD_UNSPEC: u32 = 0;
pub const FI_THREAD_SAFE: u32 = 1;
pub const FI_THREAD_DOMAIN: u32 = 3;
pub const FI_THREAD_COMPLETION: u32 = 4;
pub const FI_THREAD_ENDPOINT: u32 = 5;
pub const FI_RM_ENABLED: u32 = 2;
pub const FI_EP_RDM: u32 = 3;
/// Tags of any bits; formats from the second number on are masks of their fields.
pub const FI_TAG_GENERIC: u64 = 0xAAAA_AAAA_AAAA_AAAA;
pub const FI_TAG_MAX_FORMAT: u64 = 1 << 16;
/// The bit that a provider's own protocols have (`FI_PROV_SPECIFIC`), and a number.
pub const PROTOCOL: u32 = 1 << 31 | 0x7065;
/// Reads and writes after reads and writes; sends after sends.
pub const FI_ORDER_RAR: u64 = 1;
pub const FI_ORDER_RAW: u64 = 1 << 1;
pub const FI_ORDER_WAR: u64 = 1 << 3;
pub const FI_ORDER_WAW: u64 = 1 << 4;
pub const FI_ORDER_SAS: u64 = 1 << 8;
/// The same of accesses and of atomic operations among themselves, four bits each.
pub const FI_ORDER_ACCESSES: u64 = 0xff << 32;
pub const FI_ORDER_NONE: u64 = 0;

pub const FI_MR_BASIC: i32 = 1;
pub const FI_MR_SCALABLE: i32 = 2;
pub const FI_MR_VIRT_ADDR: i32 = 1 << 4;
pub const FI_MR_ALLOCATED: i32 = 1 << 5;
pub const FI_MR_PROV_KEY: i32 = 1 << 6;

pub const FI_CLASS_FABRIC: usize = 1;
pub const FI_CLASS_DOMAIN: usize = 2;
pub const FI_CLASS_EP: usize = 3;
pub const FI_CLASS_AV: usize = 11;
pub const FI_CLASS_MR: usize = 12;
pub const FI_CLASS_EQ: usize = 13;
pub const FI_CLASS_CQ: usize = 14;
pub const FI_CLASS_CNTR: usize = 15;
pub const FI_CLASS_POLL: usize = 17;

pub const FI_WAIT_NONE: u32 = 0;
pub const FI_WAIT_UNSPEC: u32 = 1;
pub const FI_WAIT_FD: u32 = 3;
pub const FI_WAIT_YIELD: u32 = 5;

pub const FI_CNTR_EVENTS_BYTES: u32 = 1;

pub const FI_CQ_FORMAT_UNSPEC: u32 = 0;
pub const FI_CQ_FORMAT_CONTEXT: u32 = 1;
pub const FI_CQ_FORMAT_MSG: u32 = 2;
pub const FI_CQ_FORMAT_DATA: u32 = 3;
pub const FI_CQ_FORMAT_TAGGED: u32 = 4;

pub const FI_GETOPSFLAG: i32 = 2;
pub const FI_SETOPSFLAG: i32 = 3;
pub const FI_ALIAS: i32 = 4;
pub const FI_GETWAIT: i32 = 5;
pub const FI_ENABLE: i32 = 6;
pub const FI_GET_RAW_MR: i32 = 8;
pub const FI_MAP_RAW_MR: i32 = 9;
pub const FI_UNMAP_KEY: i32 = 10;
pub const FI_REFRESH: i32 = 14;
pub const FI_GETWAITOBJ: i32 = 16;
pub const FI_OPT_ENDPOINT: i32 = 0;
pub const FI_OPT_MIN_MULTI_RECV: i32 = 0;

pub const FI_EACCES: i32 = libc::EACCES;
pub const FI_EKEYREJECTED: i32 = libc::EKEYREJECTED;
pub const FI_EOPNOTSUPP: i32 = libc::EOPNOTSUPP;
pub const FI_EAGAIN: i32 = libc::EAGAIN;
pub const FI_EINVAL: i32 = libc::EINVAL;
pub const FI_ENODATA: i32 = libc::ENODATA;
pub const FI_ENOMEM: i32 = libc::ENOMEM;
pub const FI_ENOMSG: i32 = libc::ENOMSG;
pub const FI_ENOSYS: i32 = libc::ENOSYS;
pub const FI_EMSGSIZE: i32 = libc::EMSGSIZE;
pub const FI_ENOPROTOOPT: i32 = libc::ENOPROTOOPT;
pub const FI_EBUSY: i32 = libc::EBUSY;
pub const FI_EIO: i32 = libc::EIO;
pub const FI_ESHUTDOWN: i32 = libc::ESHUTDOWN;
pub const FI_EADDRINUSE: i32 = libc::EADDRINUSE;
pub const FI_EADDRNOTAVAIL: i32 = libc::EADDRNOTAVAIL;
pub const FI_EHOSTUNREACH: i32 = libc::EHOSTUNREACH;
pub const FI_ECANCELED: i32 = libc::ECANCELED;
pub const FI_ETIMEDOUT: i32 = libc::ETIMEDOUT;
pub const FI_EOTHER: i32 = 256;
pub const FI_ETOOSMALL: i32 = 257;
pub const FI_EOPBADSTATE: i32 = 258;
pub const FI_EAVAIL: i32 = 259;
pub const FI_EBADFLAGS: i32 = 260;
pub const FI_ENOEQ: i32 = 261;
pub const FI_EDOMAIN: i32 = 262;
pub const FI_ENOCQ: i32 = 263;
pub const FI_ECRC: i32 = 264;
pub const FI_ETRUNC: i32 = 265;
pub const FI_ENOKEY: i32 = 266;
pub const FI_ENOAV: i32 = 267;
pub const FI_EOVERRUN: i32 = 268;
pub const FI_ENORX: i32 = 269;
pub const FI_ENOMR: i32 = 270;

/// Returns what an error means, a C string that lasts: of libfabric's own numbers, and of the system's.
pub fn error_text(number: i32) -> *const std::ffi::c_char {
    let own = match number.saturating_abs() {
        FI_EOTHER => c"Unspecified error",
        FI_ETOOSMALL => c"Provided buffer is too small",
        FI_EOPBADSTATE => c"Operation not permitted in current state",
        FI_EAVAIL => c"Error available",
        FI_EBADFLAGS => c"Flags not supported",
        FI_ENOEQ => c"Missing or unavailable event queue",
        FI_EDOMAIN => c"Invalid resource domain",
        FI_ENOCQ => c"Missing or unavailable completion queue",
        FI_ECRC => c"CRC error",
        FI_ETRUNC => c"Message longer than the buffer of its receive",
        FI_ENOKEY => c"Required key not available",
        FI_ENOAV => c"Missing or unavailable address vector",
        FI_EOVERRUN => c"Queue has been overrun",
        FI_ENORX => c"Receiver not ready, no receive buffers available",
        FI_ENOMR => c"No more memory registrations available",
        // SAFETY: a plain call; the text it gives is a C string.
        system => return unsafe { libc::strerror(system) },
    };
    own.as_ptr()
}

/// The number of an error of the system's.
pub fn number_of(error: std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(FI_EIO)
}

/// The number of the error of the last call of this thread.
pub fn last_error() -> i32 {
    number_of(std::io::Error::last_os_error())
}
