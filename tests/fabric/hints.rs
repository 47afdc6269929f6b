//! What fi_getinfo answers to hints: what is asked for, or more, or that there is no such endpoint.

use crate::node::{CAPS, Node, Part, Said, ask, ask_of, ask_with, info, no_hints};
use libc::c_int;
use perusal_fi::api::*;

const NONE: Option<c_int> = Some(-FI_ENODATA);

/// `struct fi_domain_attr` with what versions from 2.0 on have behind it.
#[repr(C)]
struct Domain {
    attr: DomainAttr,
    appended: [u64; 4],
}

impl Domain {
    /// A copy of what the provider has offered.
    ///
    /// # Safety
    ///
    /// The provider made it.
    unsafe fn of(offered: &Info) -> Self {
        // SAFETY: what the provider made has all parts.
        Self { attr: unsafe { offered.domain_attr.read() }, appended: [0; 4] }
    }
}

/// Attributes that may be changed before they are hints.
type Change = fn(&mut Info, &mut EpAttr, &mut TxAttr, &mut RxAttr, &mut DomainAttr, &mut FabricAttr);

/// What fi_getinfo of this version answers to hints with the attributes that it has offered, changed so.
fn offer(version: u32, change: Change) -> Result<&'static Info, c_int> {
    // SAFETY: what the provider made has all parts, and nothing here gives it back.
    unsafe {
        let offered = &*ask_with(None, None, 0, &no_hints()).expect("an endpoint");
        let (mut ep, mut tx) = (offered.ep_attr.read(), offered.tx_attr.read());
        let (mut rx, mut domain) = (offered.rx_attr.read(), Domain::of(offered));
        let (mut fabric, mut hints) = (offered.fabric_attr.read(), no_hints());
        change(&mut hints, &mut ep, &mut tx, &mut rx, &mut domain.attr, &mut fabric);
        (hints.ep_attr, hints.domain_attr) = (&raw mut ep, (&raw mut domain).cast());
        (hints.tx_attr, hints.rx_attr) = (&raw mut tx, &raw mut rx);
        hints.fabric_attr = &raw mut fabric;
        ask_of(version, None, None, 0, &hints).map(|info| &*info)
    }
}

/// The same, of the version of these tests, and the domain.
fn domain(change: Change) -> &'static DomainAttr {
    // SAFETY: what the provider made has all parts.
    unsafe { &*offer(2 << 16 | 5, change).expect("an endpoint").domain_attr }
}

#[test]
fn what_is_not_offered_is_refused() {
    assert!(info(0).is_ok() && info(FI_TAGGED | FI_MULTI_RECV).is_ok());
    for caps in [FI_MSG | FI_REMOTE_COMM, FI_TAGGED | 1 << 6, FI_RMA | 1 << 47] {
        assert_eq!(info(caps).err(), NONE);
    }
    let refused: [Change; 25] = [
        |_, ep, _, _, _, _| ep.max_order_raw_size += 1,
        |_, ep, _, _, _, _| ep.max_order_war_size += 1,
        |_, ep, _, _, _, _| ep.max_order_waw_size += 1,
        |_, ep, _, _, _, _| ep.max_msg_size += 1,
        |_, ep, _, _, _, _| ep.protocol_version += 1,
        |_, ep, _, _, _, _| ep.tx_ctx_cnt = 2,
        |_, ep, _, _, _, _| ep.rx_ctx_cnt = usize::MAX,
        |_, _, tx, _, _, _| tx.comp_order = 1,
        |_, _, tx, _, _, _| tx.inject_size += 1,
        |_, _, tx, _, _, _| tx.op_flags = 1 << 30,
        |_, _, _, rx, _, _| rx.comp_order = 1,
        |_, _, _, rx, _, _| rx.iov_limit += 1,
        |_, _, _, _, domain, _| domain.mr_iov_limit += 1,
        |_, _, _, _, domain, _| domain.mr_key_size += 1,
        |_, _, _, _, domain, _| domain.max_err_data += 1,
        |_, _, _, _, domain, _| domain.max_ep_tx_ctx = 2,
        |_, _, _, _, domain, _| domain.max_ep_rx_ctx = 2,
        |_, _, _, _, domain, _| domain.max_ep_stx_ctx = 1,
        |_, _, _, _, domain, _| domain.max_ep_srx_ctx = 1,
        |_, _, _, _, domain, _| domain.threading = 6,
        |_, _, _, _, domain, _| domain.av_type = 3,
        |_, _, _, _, domain, _| domain.data_progress = 3,
        |_, _, _, _, domain, _| domain.control_progress = 4,
        |_, _, _, _, domain, _| domain.mr_mode = FI_MR_BASIC | FI_MR_VIRT_ADDR,
        |_, _, _, _, _, fabric| fabric.prov_version += 1,
    ];
    for (at, change) in refused.into_iter().enumerate() {
        assert_eq!(offer(2 << 16 | 5, change).err(), NONE, "change {at}");
    }
}

#[test]
fn what_is_offered_can_be_asked_for_and_no_number_comes_back_smaller() {
    assert!(offer(2 << 16 | 5, |_, _, _, _, _, _| {}).is_ok());
    let deep = offer(2 << 16 | 5, |_, _, tx, rx, _, _| {
        (tx.size, rx.size, rx.total_buffered_recv) = (5000, 6000, 1 << 40);
    });
    // SAFETY: what the provider made has all parts.
    let (tx, rx) = unsafe { deep.map(|info| (&*info.tx_attr, &*info.rx_attr)).expect("an endpoint") };
    assert_eq!((tx.size, rx.size, rx.total_buffered_recv), (5000, 6000, 1 << 40));
    let many = domain(|_, _, _, _, domain, _| {
        (domain.cq_cnt, domain.ep_cnt, domain.tx_ctx_cnt) = (1 << 20, 1 << 21, 1 << 22);
        (domain.rx_ctx_cnt, domain.cntr_cnt, domain.mr_cnt) = (1 << 23, 1 << 24, 1 << 25);
    });
    assert_eq!((many.cq_cnt, many.ep_cnt, many.tx_ctx_cnt), (1 << 20, 1 << 21, 1 << 22));
    assert_eq!((many.rx_ctx_cnt, many.cntr_cnt, many.mr_cnt), (1 << 23, 1 << 24, 1 << 25));
    let unified = domain(|_, _, _, _, domain, _| domain.control_progress = FI_PROGRESS_CONTROL_UNIFIED);
    assert_eq!(unified.control_progress, FI_PROGRESS_CONTROL_UNIFIED);
}

#[test]
fn a_caller_of_an_old_version_hears_of_the_old_modes_of_registration_alone() {
    let mode = |version| {
        let offer = offer(version, |_, _, _, _, domain, _| domain.mr_mode = 0).expect("an endpoint");
        // SAFETY: what the provider made has all parts.
        unsafe { (*offer.domain_attr).mr_mode }
    };
    assert_eq!((mode(1 << 16 | 4), mode(1 << 16 | 5)), (FI_MR_SCALABLE, 0));
}

#[test]
fn formats_of_tags_that_an_mpi_names_come_back_and_masks_do_not_matter() {
    let format = |change| {
        // SAFETY: what the provider made has all parts.
        unsafe { (*offer(2 << 16 | 5, change).expect("an endpoint").ep_attr).mem_tag_format }
    };
    assert_eq!(format(|_, ep, _, _, _, _| ep.mem_tag_format = 0), FI_TAG_GENERIC);
    assert_eq!(format(|_, ep, _, _, _, _| ep.mem_tag_format = 1), 1, "FI_TAG_MPI");
    assert_eq!(format(|_, ep, _, _, _, _| ep.mem_tag_format = 2), 2, "FI_TAG_CCL");
    assert_eq!(format(|_, ep, _, _, _, _| ep.mem_tag_format = 0xffff_0000_ffff_0000), FI_TAG_GENERIC);
}

#[test]
fn keys_for_authorization_and_groups_of_peers_are_refused_to_those_who_know_them() {
    for (at, is_refused) in [(0, true), (1, true), (2, false)] {
        // SAFETY: what the provider made has all parts.
        let answers = unsafe {
            let offered = &*ask_with(None, None, 0, &no_hints()).expect("an endpoint");
            let mut domain = Domain::of(offered);
            domain.appended[at] = 1;
            let mut hints = no_hints();
            hints.domain_attr = (&raw mut domain).cast();
            [1 << 16 | 17, 2 << 16].map(|version| ask_of(version, None, None, 0, &hints).err())
        };
        assert_eq!(answers, [None, if is_refused { NONE } else { None }], "word {at}");
    }
}

/// What fi_getinfo answers to hints that name a fabric and a domain, with this mode of registration:
/// which fabric and which domain, and their modes.
fn objects(fabric: *mut Fid, domain: *mut Fid, mode: i32) -> Result<(*mut Fid, *mut Fid, i32), c_int> {
    // SAFETY: what the provider made has all parts.
    unsafe {
        let offered = &*ask_with(None, None, 0, &no_hints()).expect("an endpoint");
        let (mut of_fabric, mut of_domain) = (offered.fabric_attr.read(), Domain::of(offered));
        (of_fabric.fabric, of_domain.attr.domain, of_domain.attr.mr_mode) = (fabric, domain, mode);
        let mut hints = no_hints();
        (hints.fabric_attr, hints.domain_attr) = (&raw mut of_fabric, (&raw mut of_domain).cast());
        let answer = &*ask_with(None, None, 0, &hints)?;
        let domain = &*answer.domain_attr;
        Ok(((*answer.fabric_attr).fabric, domain.domain, domain.mr_mode))
    }
}

#[test]
fn an_open_fabric_and_domain_can_be_asked_for_and_are_told() {
    const KEYS: i32 = FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
    let none = std::ptr::null_mut();
    let (plain, basic) = (Node::new(), Node::with_mode(KEYS));
    for (node, mode) in [(&plain, 0), (&basic, KEYS)] {
        let (fabric, domain) = (node.address(Part::Fabric), node.address(Part::Domain));
        // Modes that the caller would keep to, and need not, are cleared.
        assert_eq!(objects(none, domain, KEYS | FI_MR_ALLOCATED), Ok((fabric, domain, mode)));
        assert_eq!(objects(fabric, domain, KEYS), Ok((fabric, domain, mode)));
        let found = objects(fabric, none, 0).expect("an endpoint");
        assert_eq!(found, (fabric, if mode == 0 { domain } else { none }, 0));
    }
    let (fabric, domain) = (plain.address(Part::Fabric), plain.address(Part::Domain));
    assert_eq!(objects(basic.address(Part::Fabric), domain, 0).err(), NONE, "of another fabric");
    assert_eq!(
        objects(none, basic.address(Part::Domain), 0).err(),
        NONE,
        "modes that the caller does not keep to"
    );
    assert_eq!(objects(domain, none, 0).err(), NONE, "no fabric");
    assert_eq!(objects(none, fabric, 0).err(), NONE, "no domain");
    // Whoever names none hears of the first ones, which may be another test's.
    let found = objects(none, none, 0).expect("an endpoint");
    assert!(!found.0.is_null());
    let offer = info(CAPS).expect("an endpoint");
    // SAFETY: what the provider made has all parts.
    unsafe {
        assert!(!(*(*offer).fabric_attr).fabric.is_null());
        // It is opened once more.
        assert!(Node::open(offer).is_ok());
    }
}

#[test]
fn whom_an_endpoint_reaches_is_said_whatever_is_asked_for() {
    for caps in [0, FI_MSG, FI_TAGGED | FI_SEND] {
        // SAFETY: what the provider made.
        let said = unsafe { (*info(caps).expect("an endpoint")).caps };
        assert_eq!(said & (FI_LOCAL_COMM | FI_REMOTE_COMM), FI_LOCAL_COMM);
    }
}

#[test]
fn where_a_node_is_a_number_no_name_is_looked_up() {
    let service = Some(c"hints-test");
    assert!(ask(Some(c"127.0.0.1"), service, FI_NUMERICHOST, 0, None).is_ok());
    assert_eq!(ask(Some(c"localhost"), service, FI_NUMERICHOST, 0, None).err(), NONE);
    assert!(ask(Some(c"localhost"), service, 0, 0, None).is_ok());
}

/// A provider enables no kind of operation that nobody has asked for: neither its own nor those of peers.
#[test]
fn an_endpoint_does_what_it_was_opened_for_and_nothing_else() {
    const NO: isize = -(FI_ENOSYS as isize);
    let opened = |caps| Node::open(info(caps).expect("an endpoint")).expect("an endpoint");
    let (plain, tagged) = (opened(FI_MSG), opened(FI_TAGGED));
    let (to_tagged, to_plain) = (plain.insert(&tagged.name()), tagged.insert(&plain.name()));
    assert_eq!(plain.send_now(&[1], to_tagged, 1, 0, 1), NO);
    assert_eq!(tagged.try_send_plain(&[1], to_plain, 1), NO);
    assert_eq!(plain.access(true, [0_u8].as_mut_ptr(), 1, to_tagged, 0, 1), NO);
    assert_eq!(plain.fetch(&[1], &mut [0], to_tagged, 0, 1, 2), NO);
    assert_eq!(plain.try_send_plain(&[1], to_tagged, 1), 0);
    assert_eq!(tagged.send_now(&[1], to_plain, 1, 0, 1), 0);

    let origin = Node::new();
    let mut memory = [7_u8; 8];
    for (caps, reads, writes) in [
        (FI_MSG, false, false),
        (FI_RMA | FI_READ | FI_WRITE, false, false),
        (FI_RMA | FI_REMOTE_READ, true, false),
        (FI_RMA | FI_REMOTE_WRITE, false, true),
        (FI_RMA, true, true),
    ] {
        let target = opened(caps);
        let to = origin.insert(&target.name());
        let _registered = target
            .register(memory.as_mut_ptr(), 8, FI_REMOTE_READ | FI_REMOTE_WRITE, 1)
            .expect("a registration");
        // The second round meets an origin that has asked before.
        for (write, may) in [(false, reads), (true, writes)].repeat(2) {
            let mut bytes = [7_u8; 8];
            assert_eq!(origin.access(write, bytes.as_mut_ptr(), 8, to, 0, 1), 0);
            let start = std::time::Instant::now();
            let said = loop {
                target.read_now();
                if let Some(said) = origin.read_now() {
                    break said;
                }
                assert!(start.elapsed().as_secs() < 60, "no completion within a minute");
            };
            assert_eq!(matches!(said, Said::Done(..)), may, "{caps:#x} {write}: {said:?}");
            assert!(may || said == Said::Failed(11, FI_EACCES), "{said:?}");
        }
    }
}

/// Each side of an endpoint may be asked for less than the whole.
#[test]
fn a_side_of_an_endpoint_does_what_it_was_asked_for_and_nothing_else() {
    const NO: isize = -(FI_ENOSYS as isize);
    let asked = |tx: u64, rx: u64| {
        let (mut hints, mut sends, mut receives) = (no_hints(), None, None);
        hints.caps = FI_MSG | FI_TAGGED | FI_RMA;
        // SAFETY: what the provider made has all parts; zero is a value of every field of the attributes.
        unsafe {
            hints.tx_attr = sends.insert(std::mem::zeroed::<TxAttr>());
            hints.rx_attr = receives.insert(std::mem::zeroed::<RxAttr>());
            ((*hints.tx_attr).caps, (*hints.rx_attr).caps) = (tx, rx);
        }
        ask_with(None, None, 0, &hints)
    };
    assert_eq!(asked(FI_ATOMIC, 0).err(), NONE, "more than the endpoint can do");
    assert_eq!(asked(0, FI_MSG | FI_SOURCE).err(), NONE);
    let opened = |tx, rx| Node::open(asked(tx, rx).expect("an endpoint")).expect("an endpoint");
    let (whole, narrow) = (opened(0, 0), opened(FI_MSG | FI_RMA | FI_READ | FI_SEND, FI_TAGGED));
    let (to, from) = (whole.insert(&narrow.name()), narrow.insert(&whole.name()));
    let (mut room, mut memory) = ([0_u8; 8], [3_u8; 8]);
    // It sends without a tag and receives with one; it reads and does not write, and peers access nothing by it.
    assert_eq!(narrow.send_now(&[1], from, 1, 0, 1), NO);
    assert_eq!(narrow.try_receive_plain(&mut room, from, 1), NO);
    assert_eq!(narrow.access(true, memory.as_mut_ptr(), 8, from, 0, 1), NO);
    let _theirs = whole.register(memory.as_mut_ptr(), 8, FI_REMOTE_READ, 1).expect("a registration");
    let _own = narrow.register(memory.as_mut_ptr(), 8, FI_REMOTE_READ, 1).expect("a registration");
    let end = |one: &Node, other: &Node| loop {
        if let Some(said) = one.read_now() {
            break said;
        }
        other.read_now();
    };
    assert_eq!(whole.access(false, room.as_mut_ptr(), 8, to, 0, 1), 0);
    assert_eq!(end(&whole, &narrow), Said::Failed(11, FI_EACCES));
    assert_eq!(narrow.access(false, room.as_mut_ptr(), 8, from, 0, 1), 0);
    assert!(matches!(end(&narrow, &whole), Said::Done(..)));
    narrow.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 2);
    assert_eq!((whole.send(&[1; 8], to, 1, 0, 1), narrow.try_send_plain(&[2; 8], from, 3)), (0, 0));
    assert!(matches!(end(&whole, &narrow), Said::Done(1, ..)));
    let mut ends = [end(&narrow, &whole), end(&narrow, &whole)];
    ends.sort_by_key(|end| matches!(end, Said::Done(3, ..)));
    assert!(matches!(ends, [Said::Done(2, ..), Said::Done(3, ..)]), "{ends:?}");
}
