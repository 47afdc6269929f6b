//! fi_getinfo: what the provider offers, and whether that is what the caller asks for.

use crate::api::*;
use crate::names::name::{NAME_BYTES, Name};
use crate::names::service::{self, Service};
use crate::objects::opened::{self, Asked, Found};
use crate::protocol::access::RMA_IOV_LIMIT;
use crate::protocol::core::EAGER_LIMIT;
use libc::{c_char, c_int, c_void};
use std::ffi::CStr;

/// What an endpoint can do.
pub const CAPS: u64 = PRIMARY
    | DIRECTIONS
    | ACCESSES
    | FI_RMA_EVENT
    | FI_MULTI_RECV
    | FI_REMOTE_CQ_DATA_CAP
    | FI_LOCAL_COMM
    | FI_SOURCE
    | FI_DIRECTED_RECV;
/// What it can do besides, for those who ask: it changes what completions say, or what calls do.
const ON_REQUEST: u64 = FI_TAGGED_DIRECTED_RECV
    | FI_TAGGED_MULTI_RECV
    | FI_EXACT_DIRECTED_RECV
    | FI_SOURCE_ERR
    | FI_FENCE
    | FI_AV_USER_ID;
/// Those of them that the interface has since [`GROUPS`].
const NEW: u64 = FI_TAGGED_DIRECTED_RECV | FI_TAGGED_MULTI_RECV | FI_EXACT_DIRECTED_RECV;
/// Whom an endpoint reaches: a provider tells that also who does not ask (fi_getinfo(3)).
const COMMUNICATION: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;
/// FI_REMOTE_CQ_DATA is a flag of operations; as a capability some callers ask for it, too.
const FI_REMOTE_CQ_DATA_CAP: u64 = FI_REMOTE_CQ_DATA;
/// Which of them an endpoint has without being asked.
const PRIMARY: u64 = MESSAGES | FI_RMA | FI_ATOMIC;
const MESSAGES: u64 = FI_MSG | FI_TAGGED;
/// What is meant if messages are asked for, and none of it.
const DIRECTIONS: u64 = FI_SEND | FI_RECV;
/// What is meant if accesses are asked for, and none of it.
const ACCESSES: u64 = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
const TX_CAPS: u64 = PRIMARY | FI_SEND | FI_READ | FI_WRITE | FI_FENCE;
const RX_CAPS: u64 = PRIMARY
    | FI_RECV
    | FI_REMOTE_READ
    | FI_REMOTE_WRITE
    | FI_RMA_EVENT
    | FI_MULTI_RECV
    | FI_SOURCE
    | FI_DIRECTED_RECV
    | ON_REQUEST & !(FI_FENCE | FI_AV_USER_ID);
pub const TX_FLAGS: u64 =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MORE;
pub const RX_FLAGS: u64 = FI_COMPLETION | FI_MULTI_RECV | FI_MORE;
/// Operations that an endpoint says it takes where no number is asked for; what it can have under way is not limited.
const DEPTH: usize = 256;
/// Pieces of a message.
pub const IOV_LIMIT: usize = 64;
/// Bytes of the longest message.
const MESSAGE_LIMIT: usize = isize::MAX as usize;
const PROTOCOL_VERSION: u32 = 1;
/// The version of the interface that brought modes of registration beyond the two old ones: 1.5.
const MODES: u32 = 1 << 16 | 5;
/// The version that has appended [`Appended`]: 2.0.
const GROUPS: u32 = 2 << 16;

/// `struct fi_domain_attr` as it is since 2.0.
#[repr(C)]
struct Appended {
    _before: DomainAttr,
    max_ep_auth_key: usize,
    max_group_id: u32,
}

impl Appended {
    /// Whether neither keys for authorization nor groups of peers are asked for.
    fn is_empty(&self) -> bool {
        self.max_ep_auth_key == 0 && self.max_group_id == 0
    }
}

/// Orders are kept among accesses, of at most [`EAGER_LIMIT`] bytes, and among messages.
const ORDERS: u64 =
    FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_ACCESSES;

/// The modes of registration that the domain needs of the caller: none, unless the caller knows only the two old ones,
/// as callers of old versions do. A caller that sets others before it opens the domain has them.
fn mr_mode(hinted: i32, version: u32) -> i32 {
    match hinted {
        FI_MR_BASIC | FI_MR_SCALABLE => hinted,
        _ if version < MODES => FI_MR_SCALABLE,
        _ => 0,
    }
}

/// The same, of a domain that is open and wants these.
fn mr_mode_of(registration: i32, hinted: i32, version: u32) -> i32 {
    match registration {
        0 => mr_mode(hinted, version),
        _ if hinted == FI_MR_BASIC || version < MODES => FI_MR_BASIC,
        _ => registration,
    }
}

/// The open fabric and domain that the caller can go on with. `None` if it asks for others.
///
/// # Safety
///
/// `hints` is a valid `struct fi_info`, or null.
unsafe fn opened(hints: *const Info, version: u32) -> Option<Found> {
    // SAFETY: pointers of a valid `struct fi_info` are null or valid, as the caller promises.
    let (fabric, domain) = unsafe {
        let hints = hints.as_ref();
        (
            hints.and_then(|hints| hints.fabric_attr.as_ref()),
            hints.and_then(|hints| hints.domain_attr.as_ref()),
        )
    };
    let hinted = domain.map_or(0, |domain| domain.mr_mode);
    let none = std::ptr::null_mut();
    // A domain's own mode of threads suits a caller that names the domain and no mode.
    let threading = domain.map_or(FI_THREAD_UNSPEC, |domain| domain.threading);
    let names_domain = domain.is_some_and(|domain| !domain.domain.is_null());
    opened::find(&Asked {
        fabric: fabric.map_or(none, |fabric| fabric.fabric),
        domain: domain.map_or(none, |domain| domain.domain),
        version,
        automatic: domain.is_some_and(|domain| domain.data_progress == FI_PROGRESS_AUTO),
        one_thread: threading == FI_THREAD_DOMAIN || threading == FI_THREAD_UNSPEC && names_domain,
        allows: if version < MODES && hinted == 0 {
            FI_MR_VIRT_ADDR | FI_MR_PROV_KEY
        } else {
            opened::registration(hinted)
        },
        offered: opened::registration(mr_mode(hinted, version)),
    })
}

/// Memory that fi_freeinfo gives back, zeroed, with room behind it for what later versions of a structure append.
fn allocate<T>() -> *mut T {
    // SAFETY: calloc takes two numbers.
    unsafe { libc::calloc(1, size_of::<T>() + 256) }.cast()
}

fn text(text: &CStr) -> *mut c_char {
    // SAFETY: a C string.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// What an endpoint can do, with FI_REMOTE_COMM if it has a network, or if the environment says that no peer is remote:
/// Open MPI asks every provider for it.
fn offered() -> u64 {
    let one_node = std::env::var_os("PERUSAL_FABRIC_ONE_NODE").is_some_and(|value| value == "1");
    CAPS | if one_node || crate::remote::wanted().is_some() { FI_REMOTE_COMM } else { 0 }
}

/// Whether an endpoint meets the hints: what they ask for is offered,
/// and no number in them is larger than what the offer can say.
///
/// # Safety
///
/// `hints` is a valid `struct fi_info`.
unsafe fn meets(hints: &Info, version: u32) -> bool {
    let old = if version < GROUPS { NEW } else { 0 };
    let offered = (offered() | ON_REQUEST) & !old;
    // One side can do no more than the endpoint (fi_endpoint(3)).
    let of_a_side = granted(hints.caps) | COMMUNICATION;
    let mut meets = hints.caps & !offered == 0 && [0, FI_ADDR_STR].contains(&hints.addr_format);
    // The error names the source.
    meets &= hints.caps & (FI_SOURCE | FI_SOURCE_ERR) != FI_SOURCE_ERR;
    // SAFETY: pointers of a valid `struct fi_info` are null or valid.
    let (ep, domain, tx, rx, fabric) = unsafe {
        (
            hints.ep_attr.as_ref(),
            hints.domain_attr.as_ref(),
            hints.tx_attr.as_ref(),
            hints.rx_attr.as_ref(),
            hints.fabric_attr.as_ref(),
        )
    };
    if let Some(ep) = ep {
        meets &= [0, FI_EP_RDM].contains(&ep.kind);
        meets &= [0, PROTOCOL].contains(&ep.protocol) && ep.protocol_version <= PROTOCOL_VERSION;
        meets &= ep.tx_ctx_cnt <= 1 && ep.rx_ctx_cnt <= 1 && ep.msg_prefix_size == 0 && ep.auth_key_size == 0;
        meets &= ep.max_msg_size <= MESSAGE_LIMIT;
        let ordered = [ep.max_order_raw_size, ep.max_order_war_size, ep.max_order_waw_size];
        meets &= ordered.into_iter().all(|size| size <= EAGER_LIMIT);
    }
    if let Some(domain) = domain {
        meets &= domain.data_progress <= FI_PROGRESS_MANUAL;
        meets &= domain.control_progress <= FI_PROGRESS_CONTROL_UNIFIED;
        meets &= domain.threading <= FI_THREAD_ENDPOINT && domain.av_type <= FI_AV_TABLE;
        let old = domain.mr_mode & (FI_MR_BASIC | FI_MR_SCALABLE);
        meets &= old == 0 || [FI_MR_BASIC, FI_MR_SCALABLE].contains(&domain.mr_mode);
        meets &= domain.cq_data_size <= 8 && domain.mr_key_size <= 8 && domain.max_err_data <= NAME_BYTES;
        meets &= domain.max_ep_tx_ctx <= 1 && domain.max_ep_rx_ctx <= 1;
        meets &= domain.max_ep_stx_ctx == 0 && domain.max_ep_srx_ctx == 0;
        meets &= domain.mr_iov_limit <= crate::objects::mr::IOV_LIMIT && domain.auth_key_size == 0;
        meets &= domain.caps & !(offered & (COMMUNICATION | FI_AV_USER_ID)) == 0;
        // SAFETY: a valid structure, which has these since this version.
        meets &= version < GROUPS || unsafe { (*(&raw const *domain).cast::<Appended>()).is_empty() };
        // SAFETY: a name in a valid structure is null or a C string.
        meets &= unsafe { name_is(domain.name, c"perusal") };
    }
    if let Some(tx) = tx {
        meets &= tx.caps & !of_a_side == 0 && tx.op_flags & !TX_FLAGS == 0;
        meets &= tx.inject_size <= EAGER_LIMIT && tx.iov_limit <= IOV_LIMIT && tx.msg_order & !ORDERS == 0;
        meets &= tx.rma_iov_limit <= RMA_IOV_LIMIT && tx.comp_order == FI_ORDER_NONE;
    }
    if let Some(rx) = rx {
        meets &= rx.caps & !of_a_side == 0 && rx.op_flags & !RX_FLAGS == 0;
        meets &= rx.iov_limit <= IOV_LIMIT && rx.msg_order & !ORDERS == 0 && rx.comp_order == FI_ORDER_NONE;
    }
    if let Some(fabric) = fabric {
        // SAFETY: a name in a valid structure is null or a C string.
        meets &= unsafe { name_is(fabric.name, c"perusal") } && fabric.prov_version <= crate::VERSION;
    }
    meets
}

/// Whether a structure names nothing, or this.
///
/// # Safety
///
/// `name` is null or a C string.
unsafe fn name_is(name: *const c_char, own: &CStr) -> bool {
    // SAFETY: a name that is not null is a C string, as the caller promises.
    name.is_null() || unsafe { CStr::from_ptr(name) } == own
}

/// The bytes of an address; `None` if there is none.
///
/// # Safety
///
/// `at` is null or has `len` bytes, which outlive what is returned.
pub unsafe fn bytes_of<'a>(at: *const c_void, len: usize) -> Option<&'a [u8]> {
    // SAFETY: an address that is not null has `len` bytes, as the caller promises.
    (!at.is_null()).then(|| unsafe { std::slice::from_raw_parts(at.cast(), len) })
}

/// The address that a caller names by a node and a service, as text with a zero: one as text is a node without a
/// service, and a service is an endpoint of this node that has its name. `None` if there is no such address, or if it
/// is a name where FI_NUMERICHOST of `flags` wants numbers.
///
/// # Safety
///
/// Each is null or a C string.
pub unsafe fn asked(node: *const c_char, service: *const c_char, flags: u64) -> Option<Vec<u8>> {
    // SAFETY: a text that is not null is a C string, as the caller promises.
    let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) });
    let (node, service) = (text(node), text(service));
    if let Some(node) = node {
        if Name::parse(node.to_bytes()).is_some() || Service::parse(node.to_bytes()).is_some() {
            return service.is_none().then(|| node.to_bytes_with_nul().into());
        }
        let node = node.to_str().ok()?;
        let is_numeric = node.parse::<std::net::IpAddr>().is_ok();
        if flags & FI_NUMERICHOST != 0 && !is_numeric || !service::is_here(node) {
            return None;
        }
    }
    let service = Service::new(service.map_or(Ok(""), CStr::to_str).ok()?)?;
    Some(format!("{service}\0").into_bytes())
}

/// Where an endpoint is to be, and whom it is to reach, if anybody is named: addresses as text with a zero.
type Addresses = (Vec<u8>, Option<Vec<u8>>);

/// The addresses that a caller asks for. `None` if the provider has none like these.
///
/// # Safety
///
/// As fi_getinfo(3) says.
unsafe fn addresses(
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const Info,
) -> Option<Addresses> {
    let names = !node.is_null() || !service.is_null();
    let is_source = flags & FI_SOURCE != 0;
    // SAFETY: C strings or null, and valid hints with their addresses, or none, as the caller promises.
    let (asked, source, destination) = unsafe {
        let hints = hints.as_ref();
        (
            asked(node, service, flags),
            hints.and_then(|hints| bytes_of(hints.src_addr, hints.src_addrlen)),
            hints.and_then(|hints| bytes_of(hints.dest_addr, hints.dest_addrlen)),
        )
    };
    let (source, destination) = match (is_source, names) {
        (true, true) => (Some(asked?), destination.map(<[u8]>::to_vec)),
        (true, false) => return None,
        (false, true) => (source.map(<[u8]>::to_vec), Some(asked?)),
        (false, false) => (source.map(<[u8]>::to_vec), destination.map(<[u8]>::to_vec)),
    };
    // An endpoint of its own has an address when it is open: before, it can only have the name of a service.
    let source = source.map_or(Some(Service::default()), |bytes| Service::parse(&bytes))?;
    let reachable = |bytes: &Vec<u8>| {
        Name::parse(bytes).is_some() || Service::parse(bytes).is_some_and(|one| !one.is_any())
    };
    if !destination.as_ref().is_none_or(reachable) {
        return None;
    }
    Some((format!("{source}\0").into_bytes(), destination))
}

/// A copy that fi_freeinfo gives back.
fn copy(bytes: &[u8]) -> *mut c_void {
    // SAFETY: as many bytes are written as are made.
    unsafe {
        let to = libc::malloc(bytes.len().max(1));
        if !to.is_null() {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
        }
        to
    }
}

/// What an endpoint can do for hints that ask for `caps`: that,
/// and the kinds of operations and their directions where the hints name none.
pub fn granted(caps: u64) -> u64 {
    let caps = if caps == 0 { CAPS } else { caps };
    let caps = if caps & PRIMARY == 0 { caps | PRIMARY } else { caps };
    let messages = caps & MESSAGES != 0 && caps & DIRECTIONS == 0;
    let caps = if messages { caps | DIRECTIONS } else { caps };
    let accesses = caps & (FI_RMA | FI_ATOMIC) != 0 && caps & ACCESSES == 0;
    if accesses { caps | ACCESSES } else { caps }
}

/// What one side of an endpoint with `caps` can do, that which sends or that which receives, for hints that ask for
/// `own` of it: all, where they ask for nothing.
pub fn narrowed(caps: u64, own: u64) -> u64 {
    let caps = granted(caps);
    if own == 0 { caps } else { caps & granted(own) }
}

fn tx_attr(caps: u64, asked: Option<&TxAttr>) -> TxAttr {
    TxAttr {
        caps: narrowed(caps, asked.map_or(0, |tx| tx.caps)) & TX_CAPS,
        mode: 0,
        op_flags: asked.map_or(0, |tx| tx.op_flags),
        msg_order: ORDERS,
        comp_order: FI_ORDER_NONE,
        inject_size: EAGER_LIMIT,
        size: DEPTH.max(asked.map_or(0, |tx| tx.size)),
        iov_limit: IOV_LIMIT,
        rma_iov_limit: RMA_IOV_LIMIT,
        tclass: 0,
    }
}

fn rx_attr(caps: u64, asked: Option<&RxAttr>) -> RxAttr {
    RxAttr {
        caps: narrowed(caps, asked.map_or(0, |rx| rx.caps)) & RX_CAPS,
        mode: 0,
        op_flags: asked.map_or(0, |rx| rx.op_flags),
        msg_order: ORDERS,
        comp_order: FI_ORDER_NONE,
        // What no receive waits for is kept, however much it is.
        total_buffered_recv: asked.map_or(0, |rx| rx.total_buffered_recv),
        size: DEPTH.max(asked.map_or(0, |rx| rx.size)),
        iov_limit: IOV_LIMIT,
    }
}

fn ep_attr(asked: Option<&EpAttr>) -> EpAttr {
    // Tags and masks may be any: a caller whose tags have the fields of an MPI or of a library of collectives hears
    // just that.
    let format = asked.map_or(0, |ep| ep.mem_tag_format);
    let is_named = (1..FI_TAG_MAX_FORMAT).contains(&format);
    EpAttr {
        kind: FI_EP_RDM,
        protocol: PROTOCOL,
        protocol_version: PROTOCOL_VERSION,
        max_msg_size: MESSAGE_LIMIT,
        msg_prefix_size: 0,
        max_order_raw_size: EAGER_LIMIT,
        max_order_war_size: EAGER_LIMIT,
        max_order_waw_size: EAGER_LIMIT,
        mem_tag_format: if is_named { format } else { FI_TAG_GENERIC },
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        auth_key_size: 0,
        auth_key: std::ptr::null_mut(),
    }
}

fn domain_attr(asked: Option<&DomainAttr>, opened: &Found, version: u32, name: *mut c_char) -> DomainAttr {
    // A value that is asked for, or else ours; there can be as many objects as anybody asks for.
    let or = |value: fn(&DomainAttr) -> u32, own| asked.map(value).filter(|&value| value != 0).unwrap_or(own);
    let at_least = |count: fn(&DomainAttr) -> usize, own: usize| asked.map_or(own, count).max(own);
    let hinted = asked.map_or(0, |one| one.mr_mode);
    let automatic = asked.is_some_and(|one| one.data_progress == FI_PROGRESS_AUTO)
        || opened.modes.is_some_and(|modes| modes.automatic);
    let own_threading =
        if opened.modes.is_some_and(|modes| modes.one_thread) { FI_THREAD_DOMAIN } else { FI_THREAD_SAFE };
    DomainAttr {
        domain: opened.domain,
        name,
        threading: or(|one| one.threading, own_threading),
        control_progress: or(|one| one.control_progress, FI_PROGRESS_MANUAL),
        data_progress: if automatic { FI_PROGRESS_AUTO } else { FI_PROGRESS_MANUAL },
        resource_mgmt: FI_RM_ENABLED,
        av_type: or(|one| one.av_type, FI_AV_TABLE),
        mr_mode: mr_mode_of(opened.modes.map_or(0, |modes| modes.registration), hinted, version),
        mr_key_size: 8,
        cq_data_size: 8,
        cq_cnt: at_least(|one| one.cq_cnt, 1 << 16),
        ep_cnt: at_least(|one| one.ep_cnt, 1 << 12),
        tx_ctx_cnt: at_least(|one| one.tx_ctx_cnt, 1 << 12),
        rx_ctx_cnt: at_least(|one| one.rx_ctx_cnt, 1 << 12),
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        max_ep_stx_ctx: 0,
        max_ep_srx_ctx: 0,
        cntr_cnt: at_least(|one| one.cntr_cnt, 1 << 16),
        mr_iov_limit: crate::objects::mr::IOV_LIMIT,
        caps: offered() & COMMUNICATION | asked.map_or(0, |one| one.caps) & FI_AV_USER_ID,
        mode: 0,
        auth_key: std::ptr::null_mut(),
        auth_key_size: 0,
        max_err_data: NAME_BYTES,
        mr_cnt: at_least(|one| one.mr_cnt, 1 << 16),
        tclass: 0,
    }
}

/// The memory of an offer, zeroed, in the parts that fi_freeinfo(3) frees.
struct Parts {
    info: *mut Info,
    tx: *mut TxAttr,
    rx: *mut RxAttr,
    ep: *mut EpAttr,
    domain: *mut DomainAttr,
    fabric: *mut FabricAttr,
    domain_name: *mut c_char,
    fabric_name: *mut c_char,
    source: *mut c_void,
    destination: *mut c_void,
}

impl Parts {
    /// All parts, the addresses filled in; `None` without memory.
    fn allocate(source: &[u8], destination: Option<&[u8]>) -> Option<Self> {
        let parts = Self {
            info: allocate(),
            tx: allocate(),
            rx: allocate(),
            ep: allocate(),
            domain: allocate(),
            fabric: allocate(),
            domain_name: text(c"perusal"),
            fabric_name: text(c"perusal"),
            source: copy(source),
            destination: copy(destination.unwrap_or_default()),
        };
        let all: [*mut c_void; 10] = [
            parts.info.cast(),
            parts.tx.cast(),
            parts.rx.cast(),
            parts.ep.cast(),
            parts.domain.cast(),
            parts.fabric.cast(),
            parts.domain_name.cast(),
            parts.fabric_name.cast(),
            parts.source,
            parts.destination,
        ];
        if all.iter().all(|one| !one.is_null()) {
            return Some(parts);
        }
        // SAFETY: each came from the C library or is null, and nobody else knows of it.
        all.iter().for_each(|&one| unsafe { libc::free(one) });
        None
    }
}

/// `getinfo` of the provider.
///
/// # Safety
///
/// As fi_getinfo(3) says.
pub unsafe extern "C" fn getinfo(
    version: u32,
    node: *const c_char,
    service: *const c_char,
    flags: u64,
    hints: *const Info,
    out: *mut *mut Info,
) -> c_int {
    // SAFETY: caller rule 3: valid hints, or none.
    if !unsafe { hints.as_ref().is_none_or(|hints| meets(hints, version)) } {
        return -FI_ENODATA;
    }
    // SAFETY: caller rule 3: C strings or null; valid hints, or none.
    let Some((source, destination)) = (unsafe { addresses(node, service, flags, hints) }) else {
        return -FI_ENODATA;
    };
    // SAFETY: caller rule 3: valid hints, or none.
    let Some(opened) = (unsafe { opened(hints, version) }) else { return -FI_ENODATA };
    let Some(parts) = Parts::allocate(&source, destination.as_deref()) else { return -FI_ENOMEM };
    let Parts { info, tx, rx, ep, domain, fabric, .. } = parts;
    // SAFETY: hints are valid or null (promised), and what was allocated is zeroed, large enough, and ours.
    unsafe {
        let hints = hints.as_ref();
        let caps = granted(hints.map_or(0, |hints| hints.caps)) | offered() & COMMUNICATION;
        *tx = tx_attr(caps, hints.and_then(|hints| hints.tx_attr.as_ref()));
        *rx = rx_attr(caps, hints.and_then(|hints| hints.rx_attr.as_ref()));
        *ep = ep_attr(hints.and_then(|hints| hints.ep_attr.as_ref()));
        let asked = hints.and_then(|hints| hints.domain_attr.as_ref());
        *domain = domain_attr(asked, &opened, version, parts.domain_name);
        // libfabric sets the provider's name itself.
        *fabric = FabricAttr {
            fabric: opened.fabric,
            name: parts.fabric_name,
            prov_name: std::ptr::null_mut(),
            prov_version: crate::VERSION,
            api_version: version,
        };
        (*info).caps = caps;
        (*info).src_addr = parts.source;
        (*info).src_addrlen = source.len();
        match destination {
            Some(destination) => {
                (*info).dest_addr = parts.destination;
                (*info).dest_addrlen = destination.len();
            }
            None => libc::free(parts.destination),
        }
        (*info).addr_format = FI_ADDR_STR;
        (*info).tx_attr = tx;
        (*info).rx_attr = rx;
        (*info).ep_attr = ep;
        (*info).domain_attr = domain;
        (*info).fabric_attr = fabric;
        *out = info;
    }
    0
}
