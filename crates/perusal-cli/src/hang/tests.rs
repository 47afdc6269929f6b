//! Jobs without processes, whose memory the test writes as ranks would.

use perusal::internals::shm::telemetry::{
    CallsMade, CollectiveAbout, CommAbout, MessageAbout, OperationAbout, Wait, WaitDetail, Waiting,
};
use perusal::internals::shm::{Exit, Memory, RankState};

use super::{RankView, Watch, cause, json, report};
use perusal::internals::shm::roster::names;

fn wait(kind: Waiting, peer: Option<u32>) -> Wait {
    Wait { kind, peer, tag: Some(7), context: 0, since: 0 }
}

/// A rank in a wait, with a detail.
fn waits(memory: &Memory, rank: u32, wait: &Wait, detail: &WaitDetail) {
    let entry = memory.roster().entry(rank);
    entry.arrive(rank, std::process::id().cast_signed()).unwrap();
    entry.advance(RankState::Initialised);
    let page = memory.telemetry(rank);
    page.waiting.set(wait);
    page.detail.set(page.waiting.numbered().unwrap().0, detail);
}

#[test]
fn ranks_are_named_in_runs() {
    assert_eq!(names(&[3]), "rank 3");
    assert_eq!(names(&[0, 1]), "ranks 0 and 1");
    assert_eq!(names(&[0, 1, 2, 3, 7, 9, 10, 11]), "ranks 0-3, 7 and 9-11");
}

#[test]
fn what_ranks_write_is_printed_and_neither_believed_nor_followed() {
    let memory = Memory::create(3, 0).unwrap();
    let far = MessageAbout {
        peer: Some(u32::MAX - 1),
        tag: Some(i32::MIN),
        context: u32::MAX,
        bytes: u64::MAX,
        sends: true,
        unstarted: true,
        comm: "\u{1b}[2J\n".into(),
    };
    let detail = WaitDetail {
        call: "MPI_\u{7}".into(),
        comm: CommAbout { name: "x\r\ny".into(), members: vec![0, 1, 1023], ..CommAbout::default() },
        collective: CollectiveAbout {
            function: "MPI_I\u{1b}".into(),
            number: u64::MAX,
            root: Some(u32::MAX - 1),
            data: "\u{1b}[2J\n".into(),
            bytes: Some(u64::MAX - 1),
            op: "\r".into(),
        },
        unexpected: vec![far.clone(), far.clone()],
        pending: vec![far.clone(), far],
        operations: vec![OperationAbout {
            function: "MPI_I\u{1b}".into(),
            number: u64::MAX,
            context: u32::MAX,
            comm: "\r\n".into(),
        }],
        made: vec![CallsMade { context: 0, calls: u64::MAX }],
    };
    let kinds = [
        Waiting::Receive,
        Waiting::Send,
        Waiting::Any,
        Waiting::Collective,
        Waiting::Operation,
        Waiting::Lock,
        Waiting::Epoch,
    ];
    for kind in kinds {
        let memory = Memory::create(3, 0).unwrap();
        for rank in 0..3 {
            waits(&memory, rank, &wait(kind, Some(u32::MAX - 1)), &detail);
        }
        let ranks = RankView::all(&memory);
        let text = format!("{}\n{}", cause(&ranks).text, report(&ranks));
        assert!(text.chars().all(|char| !char.is_control() || char == '\n'), "{text:?}");
        assert!(json(None, &ranks)["ranks"].as_array().is_some_and(|ranks| ranks.len() == 3));
    }
    let nobody = RankView::all(&memory);
    assert_eq!(cause(&nobody).kind, "standstill");
    assert!(
        report(&nobody).starts_with("perusal:   ranks 0-2 have not called MPI_Init"),
        "{}",
        report(&nobody)
    );
}

#[test]
fn a_rank_that_has_ended_is_named_by_who_waits_for_it() {
    let memory = Memory::create(2, 0).unwrap();
    let detail = WaitDetail {
        call: "MPI_Recv".into(),
        comm: CommAbout { name: "halo".into(), members: vec![0, 1], ..CommAbout::default() },
        ..WaitDetail::default()
    };
    waits(&memory, 0, &wait(Waiting::Receive, Some(1)), &detail);
    memory.roster().entry(1).set_exit(Exit(0));
    let cause = cause(&RankView::all(&memory));
    assert_eq!(cause.kind, "finalized-early");
    assert_eq!(
        cause.text,
        "rank 0 waits in MPI_Recv (tag 7 on 'halo') for rank 1, which has ended: exited with status 0"
    );
}

#[test]
fn a_process_with_further_threads_proves_nothing() {
    let memory = Memory::create(1, 0).unwrap();
    waits(&memory, 0, &wait(Waiting::Receive, Some(0)), &WaitDetail::default());
    // The test's own process has several.
    let (stop, other) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || other.recv());
    let mut watch = Watch::new(true);
    for _ in 0..4 {
        assert!(!watch.look(&memory));
        std::thread::sleep(watch.next().expect("a deadlock is possible"));
        memory.telemetry(0).vain_blocks.add(5);
    }
    drop(stop);
    let _ = other.join();
}
