//! The analysis against jobs whose every moment is known, with answers worked out by hand.

use super::types::{Last, Report};
use super::{analyse, page, text};
use crate::events::{CollMode, CollRoot, Event as E};
use crate::shm::telemetry::Waiting;
use crate::trace::synthetic::{Synthetic, SyntheticMessage};
use crate::trace::{Record, RecordPayload};

fn report(job: &Synthetic) -> Report {
    analyse(&job.trace(), "known.trace")
}

#[test]
fn of_endpoints_under_another_mpi_nothing_is_said_of_waiting() {
    let mut job = Synthetic::new(2);
    for at in [1000, 1_000_000_000] {
        job.message(&message(0, 1, at, at + 1000));
    }
    let mut trace = job.trace();
    let of_ranks = analyse(&trace, "known.trace").verdict;
    assert!(of_ranks.paragraph.contains("of their time waiting"), "{}", of_ranks.paragraph);
    trace.job.of_endpoints = true;
    let of_endpoints = analyse(&trace, "known.trace").verdict;
    assert!(
        of_endpoints.paragraph.starts_with("Nothing stands out. No queue grew long"),
        "{}",
        of_endpoints.paragraph
    );
    assert!(of_endpoints.cautions.iter().any(|caution| caution.contains("how long they waited")));
    let mpi = |text: &String| text.contains("MPI_Init") || text.contains("MPI_Finalize");
    assert!(!of_endpoints.cautions.iter().any(mpi), "{:?}", of_endpoints.cautions);
}

fn message(from: u32, to: u32, sent: u64, posted: u64) -> SyntheticMessage {
    SyntheticMessage { from, to, tag: 1, bytes: 100, sent, posted, ..SyntheticMessage::default() }
}

/// `rank` sleeps, waiting for `peer` (negative: for any).
fn sleep(job: &mut Synthetic, rank: u32, begin: u64, end: u64, kind: Waiting, peer: i32) {
    let payload = RecordPayload::Sleep { waiting: kind as u8, peer: peer.cast_unsigned() };
    let context = Record::NO_CONTEXT;
    let what = Record { payload, peer, context, ..Synthetic::record(E::BellSleep, 0) };
    job.span(rank, begin, end, &what, E::BellWake);
}

/// The job's clock begins with its first record: one at 0 makes times those that are written here.
fn job(ranks: u32) -> Synthetic {
    let mut job = Synthetic::new(ranks);
    for rank in 0..ranks {
        job.push(rank, 0, &Synthetic::record(E::Initialized, 0));
    }
    job
}

#[test]
fn a_receiver_that_sleeps_until_the_send_waited_for_a_late_sender() {
    let mut job = job(2);
    // Posted at 1000, in the queue at 1010, asleep from 1020 on; sent at 501,000, there at 501,050.
    job.message(&message(0, 1, 501_000, 1_000));
    sleep(&mut job, 1, 1_020, 501_045, Waiting::Receive, 0);
    let report = report(&job);
    // It polled from 1010 on. What lies behind the send is the message's way, not the sender's lateness.
    let [row] = &report.late_senders[..] else { panic!("{:?}", report.late_senders) };
    assert_eq!((row.sender, row.receiver, row.messages), (0, 1, 1));
    assert_eq!((row.waited_ns, row.longest_ns, row.longest_at_ns), (499_990, 499_990, 1_010));
    assert_eq!((row.open_ns, row.passed_on_ns), (500_000, 0));
    assert!(report.late_receivers.is_empty());
    let (waited, caused) = (report.ranks[1].waited, report.ranks[0].caused);
    assert_eq!((waited.late_sender_ns, waited.other_ns), (499_990, 45));
    assert_eq!((caused.late_sender_ns, caused.direct_ns, caused.root_ns), (499_990, 499_990, 499_990));
    assert_eq!((report.ranks[1].sleep.times, report.ranks[1].sleep.ns), (1, 500_025));
    assert_eq!(report.ranks[1].sleep.kinds[0].what, "a message");
    let paragraph = &report.verdict.paragraph;
    assert!(
        paragraph.starts_with("Rank 0 kept the others waiting: 100 % of all waiting time, 500 µs of 500 µs"),
        "{paragraph}"
    );
    assert!(paragraph.contains("because it sent late"), "{paragraph}");
}

#[test]
fn a_wait_too_short_for_sleep_is_seen_between_the_records() {
    let mut job = job(2);
    job.message(&message(0, 1, 31_000, 1_000));
    let report = report(&job);
    // From the last record, the receive in the queue at 1010, to the send.
    assert_eq!(report.late_senders[0].waited_ns, 29_990);
    // Before a message that was sent much later the rank may have computed for all the trace says.
    let mut job = self::job(2);
    job.message(&message(0, 1, 901_000, 1_000));
    let report = self::report(&job);
    assert!(report.late_senders.is_empty());
    assert_eq!(report.key.waited_ns, 0);
    assert!(report.verdict.paragraph.starts_with("Nothing stands out."), "{}", report.verdict.paragraph);
}

#[test]
fn a_receive_that_is_open_all_along_is_charged_to_nobody() {
    let mut job = job(3);
    // A receive for the word to stop, from rank 2, is open from the begin; rank 0 waits for rank 1.
    job.message(&SyntheticMessage { tag: 9, ..message(2, 0, 2_000_000, 100) });
    job.message(&message(1, 0, 501_000, 1_000));
    sleep(&mut job, 0, 1_020, 501_045, Waiting::Receive, 1);
    let report = report(&job);
    assert_eq!(report.late_senders.len(), 1);
    assert_eq!((report.late_senders[0].sender, report.late_senders[0].waited_ns), (1, 499_990));
}

#[test]
fn waiting_for_several_is_charged_to_each_until_it_sends() {
    let mut job = job(3);
    job.message(&message(1, 0, 201_000, 1_000));
    job.message(&message(2, 0, 501_000, 1_100));
    sleep(&mut job, 0, 1_200, 201_040, Waiting::All, -1);
    sleep(&mut job, 0, 201_200, 501_040, Waiting::All, -1);
    let report = report(&job);
    let late: Vec<_> = report.late_senders.iter().map(|row| (row.sender, row.waited_ns)).collect();
    // The second part begins with the first message's last record, at 201,070.
    assert_eq!(late, [(2, 501_000 - 201_070), (1, 201_000 - 1_110)]);
}

/// Rank 0 sleeps for the request of a collective operation until rank 1 has begun it, and the message of rank 2 for an
/// open receive comes meanwhile.
#[test]
fn a_sleep_for_the_request_of_a_collective_operation_is_not_charged_to_whose_message_comes_meanwhile() {
    for kind in [Waiting::Operation, Waiting::Agreement, Waiting::Outside, Waiting::Partitions] {
        let mut job = job(3);
        job.message(&message(2, 0, 351_000, 1_000));
        sleep(&mut job, 0, 1_200, 351_040, kind, -1);
        sleep(&mut job, 0, 351_200, 401_000, kind, -1);
        let report = report(&job);
        assert!(report.late_senders.is_empty(), "{kind:?}: {:?}", report.late_senders);
        assert_eq!(report.ranks[2].caused.late_sender_ns, 0, "{kind:?}");
        assert_eq!(report.ranks[0].sleep.kinds[0].what, kind.phrase());
    }
}

#[test]
fn a_wait_for_one_rank_lets_the_messages_of_others_pass_by() {
    let mut job = job(3);
    // Both come at about the same time, that of rank 1 first; the rank said that it waits for rank 2.
    job.message(&message(1, 0, 501_000, 1_000));
    job.message(&message(2, 0, 501_010, 1_100));
    sleep(&mut job, 0, 1_200, 501_045, Waiting::Receive, 2);
    let report = report(&job);
    let late: Vec<_> = report.late_senders.iter().map(|row| (row.sender, row.waited_ns)).collect();
    // From the record before the sleep to the send.
    assert_eq!(late, [(2, 501_010 - 1_110)]);
}

#[test]
fn a_sleep_while_a_large_message_moves_is_nobodys_lateness() {
    let mut job = job(2);
    let receive = |event| Record { bytes: 1 << 20, ..Synthetic::record(event, 52) };
    for (when, event) in [(1_000, E::ReqActivate), (1_010, E::ReqMatchUnex), (1_020, E::ReqXferBegin)] {
        job.push(1, when, &receive(event));
    }
    sleep(&mut job, 1, 1_100, 400_000, Waiting::Receive, 0);
    job.push(1, 400_010, &receive(E::ReqXferEnd));
    // Another message of that rank, which it sends much later, has its receive open.
    job.message(&message(0, 1, 900_000, 1_050));
    let report = report(&job);
    assert_eq!((report.key.late_sender_ns, report.ranks[1].waited.other_ns), (0, 398_940));
}

#[test]
fn a_sender_that_waits_for_its_receiver_is_told_with_what_it_cost() {
    let mut job = job(2);
    let send = |event| Record { peer: 1, send: true, bytes: 1 << 20, ..Synthetic::record(event, 50) };
    let message = |event| Record { bytes: 1 << 20, ..Synthetic::record(event, 51) };
    let receive = |event| Record { bytes: 1 << 20, ..Synthetic::record(event, 52) };
    job.push(0, 1_000, &send(E::ReqActivate));
    sleep(&mut job, 0, 1_010, 800_500, Waiting::Send, 1);
    for (when, event) in [
        (800_600, E::ReqXferBegin),
        (801_000, E::ReqXferEnd),
        (801_010, E::ReqComplete),
        (801_020, E::ReqNotify),
    ] {
        job.push(0, when, &send(event));
    }
    job.push(1, 1_050, &message(E::MsgArrived));
    job.push(1, 1_060, &message(E::MsgInsertInUnexQ));
    job.push(1, 800_000, &receive(E::ReqActivate));
    job.push(1, 800_020, &receive(E::ReqMatchUnex));
    job.push(1, 800_020, &message(E::MsgRemoveFromUnexQ));
    job.push(1, 801_000, &receive(E::ReqComplete));
    let report = report(&job);
    let [row] = &report.late_receivers[..] else { panic!("{:?}", report.late_receivers) };
    assert_eq!((row.receiver, row.sender, row.messages), (1, 0, 1));
    assert!(!page(&report).unwrap().contains("\"late_receivers\":[]"), "rank 0 waited");
    assert_eq!((row.waited_ns, row.longest_at_ns, row.early_ns), (799_000, 1_000, 799_000));
    assert_eq!(report.ranks[0].waited.other_ns, 500);
    assert_eq!(report.ranks[1].caused.late_receiver_ns, 799_000);
    assert_eq!(report.ranks[1].unexpected.residence.max, 800_020 - 1_060);
    assert!(
        report.verdict.paragraph.contains("because it posted its receives late"),
        "{}",
        report.verdict.paragraph
    );
}

#[test]
fn the_first_of_a_chain_is_at_the_root() {
    let mut job = job(3);
    // 0 is late for 1, which is therefore late for 2.
    job.message(&message(0, 1, 401_000, 1_000));
    sleep(&mut job, 1, 1_020, 401_040, Waiting::Receive, 0);
    job.message(&message(1, 2, 421_000, 1_000));
    sleep(&mut job, 2, 1_020, 421_040, Waiting::Receive, 1);
    let report = report(&job);
    // Of the wait of rank 2, from 1010 to 421,000, rank 1 waited itself from 1010 to 401,000.
    let charged: Vec<_> =
        report.ranks.iter().map(|rank| (rank.caused.direct_ns, rank.caused.root_ns)).collect();
    assert_eq!(charged, [(399_990, 799_980), (419_990, 20_000), (0, 0)]);
    let row = report.late_senders.iter().find(|row| row.sender == 1).expect("late");
    assert_eq!(row.passed_on_ns, 399_990);
    assert!(
        report.verdict.paragraph.starts_with("Rank 0 kept the others waiting: 98 %"),
        "{}",
        report.verdict.paragraph
    );
}

fn barrier(job: &mut Synthetic, rank: u32, id: u64, begin: u64, end: u64) {
    collective(job, rank, id, CollMode::Blocking, begin, end);
}

fn collective(job: &mut Synthetic, rank: u32, id: u64, mode: CollMode, begin: u64, end: u64) {
    let payload = RecordPayload::Coll {
        operation: 0,
        root: CollRoot::default(),
        algorithm: 0,
        mode: mode as u8,
        bytes: 0,
    };
    let what = Record { payload, ..Synthetic::record(E::CollBegin, id) };
    job.span(rank, begin, end, &what, E::CollEnd);
}

#[test]
fn the_last_rank_in_a_collective_is_charged_with_the_others_waiting() {
    let mut job = job(3);
    for (rank, begin) in [(0, 10_000), (1, 40_000), (2, 300_000)] {
        barrier(&mut job, rank, 1, begin, 300_100);
        if rank < 2 {
            sleep(&mut job, rank, begin + 5_000, 300_050, Waiting::Collective, -1);
        }
    }
    for (rank, begin) in [(0, 400_000), (1, 420_000), (2, 400_000)] {
        barrier(&mut job, rank, 2, begin, 420_050);
    }
    let report = report(&job);
    let [row] = &report.collectives[..] else { panic!("{:?}", report.collectives) };
    assert_eq!((row.operation.as_str(), row.calls), ("MPI_Barrier", 6));
    assert_eq!(row.waited_ns, 290_000 + 260_000 + 2 * 20_000);
    assert_eq!((row.longest_ns, row.longest_at_ns), (290_000, 10_000));
    assert_eq!(row.inside_ns, 290_100 + 260_100 + 100 + 2 * 20_050 + 50);
    let last = [Last { rank: 2, times: 1, cost_ns: 550_000 }, Last { rank: 1, times: 1, cost_ns: 40_000 }];
    assert_eq!(row.last, last);
    assert_eq!(report.ranks[0].waited.collective_ns, 310_000);
    assert_eq!(report.ranks[0].waited.other_ns, 50);
    assert_eq!(report.ranks[2].caused.collective_ns, 550_000);
    assert!(report.verdict.paragraph.contains("In MPI_Barrier on "), "{}", report.verdict.paragraph);
}

#[test]
fn a_nonblocking_collective_beside_computing_is_no_waiting() {
    let mut job = job(2);
    collective(&mut job, 0, 1, CollMode::Nonblocking, 10_000, 900_100);
    // Computed, waited for a message, computed until 600,000, then waited for a request; rank 1 comes at 900,000.
    sleep(&mut job, 0, 200_000, 300_050, Waiting::Receive, -1);
    sleep(&mut job, 0, 600_000, 900_050, Waiting::Any, -1);
    collective(&mut job, 1, 1, CollMode::Nonblocking, 900_000, 900_100);
    let report = report(&job);
    assert_eq!(report.collectives[0].waited_ns, 300_000);
    assert_eq!(report.collectives[0].operation, "MPI_Ibarrier");
}

#[test]
fn starts_of_persistent_collectives_do_not_shift_the_count_of_the_others() {
    let mut job = job(2);
    collective(&mut job, 0, 1, CollMode::Persistent, 10_000, 500_000);
    barrier(&mut job, 0, 2, 20_000, 300_000);
    barrier(&mut job, 1, 1, 299_000, 300_000);
    collective(&mut job, 1, 2, CollMode::Persistent, 400_000, 500_000);
    let report = report(&job);
    let names: Vec<_> =
        report.collectives.iter().map(|row| (row.operation.as_str(), row.mode.as_str())).collect();
    assert_eq!(names, [("MPI_Barrier", "blocking"), ("MPI_Barrier_init", "persistent")]);
    let last = report.collectives.iter().map(|row| row.last.iter().map(|last| last.rank).collect::<Vec<_>>());
    assert_eq!(last.collect::<Vec<_>>(), [vec![1], vec![]]);
    assert_eq!(report.collectives[0].waited_ns, 279_000);
}

#[test]
fn a_rank_that_gave_its_cpu_away_in_a_collective_waited_without_a_sleep() {
    let mut job = job(2);
    barrier(&mut job, 0, 1, 10_000, 7_000_100);
    barrier(&mut job, 1, 1, 7_000_000, 7_000_100);
    // What goes on beside other things of the program is no waiting.
    collective(&mut job, 0, 2, CollMode::Nonblocking, 8_000_000, 9_000_100);
    job.message(&message(0, 1, 8_500_000, 8_400_000));
    collective(&mut job, 1, 2, CollMode::Nonblocking, 9_000_000, 9_000_100);
    let report = report(&job);
    assert_eq!(report.collectives[0].waited_ns, 6_990_000);
    assert_eq!(report.collectives[1].waited_ns, 0);
}

#[test]
fn a_collective_that_not_all_ranks_recorded_has_no_last_one() {
    let mut job = job(2);
    barrier(&mut job, 0, 1, 10_000, 20_000);
    let report = report(&job);
    assert_eq!((report.collectives[0].calls, report.collectives[0].waited_ns), (1, 0));
}

#[test]
fn queues_have_their_high_water_their_series_and_their_residence() {
    let mut job = job(2);
    // Three messages wait for their receives, which come in the order of their tags.
    for (tag, sent) in [(1, 1_000), (2, 2_000), (3, 3_000)] {
        job.message(&SyntheticMessage { tag, ..message(0, 1, sent, 10_000 + sent) });
    }
    let report = report(&job);
    let queue = &report.ranks[1].unexpected;
    assert_eq!((queue.entries, queue.high, queue.high_at_ns, queue.left), (3, 3, 3_060, 0));
    // In the queue from 60 after the send to 10 after the receive.
    let stay = 10_010 - 60;
    assert_eq!((queue.residence.count, queue.residence.total, queue.residence.min), (3, 3 * stay, stay));
    assert_eq!(queue.occupied_ns, 13_010 - 1_060);
    assert_eq!((queue.search_time.count, queue.search_time.total, queue.hits), (3, 30, 3));
    assert_eq!((queue.search_depth.count, queue.search_depth.max), (3, 1));
    // Three messages find no receive.
    assert_eq!((report.ranks[1].posted.search_time.count, report.ranks[1].posted.hits), (3, 0));
    assert_eq!(report.ranks[1].posted.high, 0);
    let high = report.queues.unexpected[1].iter().map(|bin| bin.2).max();
    assert_eq!((high, report.queues.unexpected[1].last().map(|bin| bin.3)), (Some(3), Some(0)));
    assert!(report.queues.unexpected[0].is_empty());
    assert_eq!(report.key.unexpected_high.rank, 1);
    // Sends live 4 ns in such a job; receives from their begin to 10 after the match.
    assert_eq!((report.ranks[0].send_requests.count, report.ranks[0].send_requests.max), (3, 4));
    assert_eq!((report.ranks[1].receive_requests.count, report.ranks[1].receive_requests.max), (3, 20));
    assert_eq!((report.late_receivers[0].early_ns, report.late_receivers[0].waited_ns), (30_000, 0));
    assert!(page(&report).unwrap().contains("\"late_receivers\":[]"), "nobody waited");
}

#[test]
fn the_matrix_counts_messages_and_bytes_of_every_pair_by_world_rank() {
    let mut job = job(3);
    job.communicator(5, 8, "odd <ones>", &[2, 0]);
    for n in 0..4 {
        job.message(&SyntheticMessage { bytes: 1_000, ..message(0, 1, 1_000 + n, 100_000 + n) });
    }
    job.message(&message(1, 0, 9_000, 100));
    job.message(&SyntheticMessage { context: 8, bytes: 7, ..message(0, 1, 20_000, 100) });
    let report = report(&job);
    assert_eq!(report.matrix.cells, [(0, 1, 4, 4_000, 4, 4_000), (1, 0, 1, 100, 0, 0), (2, 0, 1, 7, 0, 0)]);
    let names: Vec<_> =
        report.communicators.iter().map(|c| (c.name.as_str(), c.messages, c.members.as_str())).collect();
    assert!(names.contains(&("odd <ones>", 1, "0, 2")), "{names:?}");
    let grouped = report.matrix.grouped(3, 2);
    assert_eq!((grouped.group, grouped.cells), (2, vec![(0, 0, 5, 4_100, 4, 4_000), (1, 0, 1, 7, 0, 0)]));
    assert_eq!((report.ranks[0].sent.messages, report.ranks[1].received.messages), (4, 4));
}

#[test]
fn a_queue_that_grows_is_told_with_who_fills_it() {
    let mut job = job(3);
    for n in 0..100 {
        job.message(&message(2, 0, 1_000 + 100 * n, 1_000_000 + 100 * n));
    }
    job.message(&message(1, 0, 500, 900_000));
    let report = report(&job);
    let finding = report.verdict.findings.iter().find(|finding| finding.kind == "unexpected-queue");
    let text = &finding.expect("a finding").text;
    assert!(text.starts_with("Rank 0's unexpected queue grew to 101 messages"), "{text}");
    assert!(text.contains("100 of 101 that came too early there are from rank 2 (10.0 kB)"), "{text}");
}

#[test]
fn what_is_missing_is_said_first_of_all() {
    let mut job = job(2);
    job.message(&message(0, 1, 1_000, u64::MAX));
    job.drop_events(1, 1_234);
    job.kill(0);
    job.ended(None);
    let report = report(&job);
    let all = report.verdict.cautions.join("\n");
    assert!(all.contains("1,234 events of"), "{all}");
    assert!(all.contains("The trace of rank 0 ends early: the job was still running"), "{all}");
    assert_eq!((report.job.dropped, report.job.incomplete.clone()), (1_234, vec![0]));
    // Rank 1 dropped events: that the message was never received is not known.
    assert!(report.verdict.findings.iter().all(|finding| finding.kind != "lost-messages"));
    assert!(text(&report).contains("Caution: 1,234 events"));
    assert!(page(&report).expect("a page").contains("<strong>Caution.</strong> 1,234 events"));
}

#[test]
fn a_message_that_nobody_received_is_told() {
    let mut job = job(2);
    job.message(&message(0, 1, 1_000, u64::MAX));
    let report = report(&job);
    assert!(
        report.verdict.paragraph.contains("1 message to rank 1 was never received."),
        "{}",
        report.verdict.paragraph
    );
}

#[test]
fn a_trace_without_records_is_no_mistake() {
    let report = report(&Synthetic::new(2));
    assert_eq!(report.verdict.paragraph, "The trace has no records: nothing can be said.");
    assert!(page(&report).expect("a page").contains("nothing can be said"));
    assert!(text(&report).contains("nothing can be said"));
}

#[test]
fn a_terminal_obeys_no_name_in_the_text() {
    let mut job = job(2);
    job.message(&message(0, 1, 1_000, 2_000));
    for (rank, begin) in [(0, 10_000), (1, 300_000)] {
        barrier(&mut job, rank, 1, begin, 300_100);
    }
    let mut trace = job.trace();
    trace.job.command = "heat \u{1b}[2J\r\u{202e}x".into();
    for comm in trace.ranks.iter_mut().flat_map(|rank| &mut rank.communicators) {
        comm.name = "rows\u{9b}31m\nrank 7: killed".into();
    }
    let shown = text(&analyse(&trace, "known.trace"));
    assert!(!shown.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')), "{shown:?}");
    assert!(shown.starts_with("heat \\u{1b}[2J\\r\\u{202e}x: 2 ranks"), "{shown}");
    assert!(shown.contains(" on rows\\u{9b}31m\\nrank 7: killed"), "{shown}");
    assert!(!shown.lines().any(|line| line.starts_with("rank 7")), "{shown}");
}
