//! What fi_getinfo answers to hints: what is asked for, or more, or that there is no such endpoint.

use crate::node::{Node, Said, ask, ask_of, ask_with, info, no_hints};
use libc::c_int;
use perusal_fi::api::*;

const NONE: Option<c_int> = Some(-FI_ENODATA);

/// Attributes that may be changed before they are hints.
type Change = fn(&mut Info, &mut EpAttr, &mut TxAttr, &mut RxAttr, &mut DomainAttr, &mut FabricAttr);

/// What fi_getinfo of this version answers to hints with the attributes that it has offered, changed so.
fn offer(version: u32, change: Change) -> Result<&'static Info, c_int> {
    // SAFETY: what the provider made has all parts, and nothing here gives it back.
    unsafe {
        let offered = &*ask_with(None, None, 0, &no_hints()).expect("an endpoint");
        let (mut ep, mut tx) = (offered.ep_attr.read(), offered.tx_attr.read());
        let (mut rx, mut domain) = (offered.rx_attr.read(), offered.domain_attr.read());
        let (mut fabric, mut hints) = (offered.fabric_attr.read(), no_hints());
        change(&mut hints, &mut ep, &mut tx, &mut rx, &mut domain, &mut fabric);
        (hints.ep_attr, hints.domain_attr) = (&raw mut ep, &raw mut domain);
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
        |_, _, _, _, domain, _| domain.max_err_data = 1,
        |_, _, _, _, domain, _| domain.max_ep_tx_ctx = 2,
        |_, _, _, _, domain, _| domain.max_ep_rx_ctx = 2,
        |_, _, _, _, domain, _| domain.max_ep_stx_ctx = 1,
        |_, _, _, _, domain, _| domain.max_ep_srx_ctx = 1,
        |_, _, _, _, domain, _| domain.threading = 6,
        |_, _, _, _, domain, _| domain.av_type = 3,
        |_, _, _, _, domain, _| domain.data_progress = 1,
        |_, _, _, _, domain, _| domain.control_progress = 1,
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
