//! Jobs without processes, whose memory the test writes as ranks would.

use perusal::internals::io::FILE_THREAD;
use perusal::internals::shm::telemetry::detail::PARTITIONS;
use perusal::internals::shm::telemetry::{
    CallsMade, CollectiveAbout, CommAbout, LockAbout, MessageAbout, OperationAbout, RootAbout,
    UnreadyPartitions, Wait, WaitDetail, Waiting,
};
use perusal::internals::shm::{Exit, Memory, RankState, Universe};
use perusal::internals::variables::Overrides;

use super::{RankView, Scene, Stage, Watch, cause, json, report};
use perusal::internals::shm::roster::names;

fn wait(kind: Waiting, peer: Option<u32>) -> Wait {
    Wait { kind, peer, tag: Some(7), context: 0, since: 0 }
}

/// A job that has met no other.
fn alone(memory: &Memory) -> Scene<'_> {
    Scene::new(memory, [])
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
            root: Some(RootAbout::Rank(u32::MAX - 1)),
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
        partitions: UnreadyPartitions { count: u64::MAX, of: 0, first: [u64::MAX; PARTITIONS] },
        lock: LockAbout { target: Some(u32::MAX - 1), holders: vec![0, u32::MAX], shared: true },
    };
    let kinds = [
        Waiting::Receive,
        Waiting::Send,
        Waiting::Any,
        Waiting::Collective,
        Waiting::Operation,
        Waiting::Lock,
        Waiting::Epoch,
        Waiting::Partitions,
    ];
    for kind in kinds {
        let memory = Memory::create(3, 0).unwrap();
        for rank in 0..3 {
            waits(&memory, rank, &wait(kind, Some(u32::MAX - 1)), &detail);
        }
        let ranks = RankView::all(&alone(&memory));
        let text = format!("{}\n{}", cause(&ranks).text, report(&ranks));
        assert!(text.chars().all(|char| !char.is_control() || char == '\n'), "{text:?}");
        assert!(json(None, &ranks)["ranks"].as_array().is_some_and(|ranks| ranks.len() == 3));
    }
    let nobody = RankView::all(&alone(&memory));
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
    let cause = cause(&RankView::all(&alone(&memory)));
    assert_eq!(cause.kind, "finalized-early");
    assert_eq!(
        cause.text,
        "rank 0 waits in MPI_Recv (tag 7 on 'halo') for rank 1, which has ended: exited with status 0"
    );
}

#[test]
fn a_process_with_further_threads_that_may_call_mpi_proves_nothing() {
    let memory = Memory::create(1, 0).unwrap();
    waits(&memory, 0, &wait(Waiting::Receive, Some(0)), &WaitDetail::default());
    let proves = |name: &str, may_call: bool| {
        // The test's own process has several.
        let (stop, other) = std::sync::mpsc::channel::<()>();
        let other = std::thread::Builder::new().name(name.into()).spawn(move || other.recv()).unwrap();
        memory.telemetry(0).threads.set(u64::from(may_call));
        let mut watch = Watch::new(true);
        let proved = (0..4).any(|_| {
            let proved = watch.look(&alone(&memory));
            std::thread::sleep(watch.next().expect("a deadlock is possible"));
            memory.telemetry(0).vain_blocks.add(5);
            proved
        });
        drop(stop);
        let _ = other.join();
        proved
    };
    assert!(proves("idle", false));
    assert!(!proves("idle", true));
    assert!(!proves(FILE_THREAD, false));
}

#[test]
fn a_wait_for_a_request_that_a_handler_may_complete_proves_nothing() {
    extern "C" fn handler(_: i32) {}
    // SAFETY: the handler does nothing, and no test expects the signal.
    let catch = |handler| unsafe { libc::signal(libc::SIGUSR2, handler) };
    let detail = WaitDetail { call: "MPI_Wait".into(), ..WaitDetail::default() };
    // Beside other tests in this process a look may prove nothing.
    let proves = |kind, looks| {
        let memory = Memory::create(1, 0).unwrap();
        waits(&memory, 0, &wait(kind, Some(0)), &detail);
        let mut watch = Watch::new(true);
        (0..looks).any(|_| {
            let proved = watch.look(&alone(&memory));
            std::thread::sleep(watch.next().expect("a deadlock is possible"));
            memory.telemetry(0).vain_blocks.add(5);
            proved
        })
    };
    assert!(proves(Waiting::Any, 100));
    catch(handler as *const () as libc::sighandler_t);
    assert!(!proves(Waiting::Any, 4), "it may be that of a generalized request");
    assert!(proves(Waiting::Receive, 100), "a handler sends no messages");
    catch(libc::SIG_DFL);
}

#[test]
fn several_ranks_are_spoken_of_in_the_plural() {
    for (one, all) in [
        ("waits in MPI_Barrier", "wait in MPI_Barrier"),
        ("does not wait in MPI: it computes, or polls", "do not wait in MPI: they compute, or poll"),
        (
            "does not wait in MPI: it sleeps in a system call (read)",
            "do not wait in MPI: they sleep in a system call (read)",
        ),
        (
            "does not wait in MPI: it is blocked in the kernel",
            "do not wait in MPI: they are blocked in the kernel",
        ),
        ("has finalized MPI and runs on", "have finalized MPI and run on"),
        ("has ended: status 1", "have ended: status 1"),
    ] {
        assert_eq!(report::plural(one), all);
    }
}

/// A job of `ranks` ranks with room for others.
fn extensible(ranks: u32, launcher: i32) -> Memory {
    let universe = Universe { places: ranks + 4, size: ranks };
    Memory::create_universe(ranks, universe, launcher, &Overrides::default()).unwrap()
}

/// Gives rank `there` of another job the place `place`.
fn meets(memory: &Memory, place: u32, other: &Memory, there: u32) {
    memory.reserve_places(place, 1).unwrap();
    memory.roster().entry(place).prepare_guest(place, (other.header().job_id(), there));
}

#[test]
fn guests_do_what_they_do_in_their_own_job() {
    let (own, other, third) = (extensible(2, 1), extensible(2, 77), extensible(1, 2));
    meets(&own, 2, &other, 0);
    meets(&own, 3, &other, 1);
    meets(&other, 2, &own, 0);
    meets(&other, 3, &own, 1);
    let members = CommAbout { members: vec![1, 2, 3], ..CommAbout::default() };
    let pending = [2, 9].map(|peer| MessageAbout { peer: Some(peer), ..MessageAbout::default() });
    let detail = WaitDetail {
        call: "MPI_Recv".into(),
        comm: members,
        pending: pending.into(),
        ..WaitDetail::default()
    };
    waits(&other, 1, &wait(Waiting::Receive, Some(3)), &detail);
    other.telemetry(1).posted.set(5);
    let unknown = RankView::of(&alone(&own), 3);
    assert_eq!(
        (unknown.home, unknown.doing()),
        (None, "belongs to another job, with which this one has met".into())
    );

    let scene = Scene::new(&own, [&third, &own, &other]);
    let seen = RankView::of(&scene, 3);
    assert_eq!((seen.home, seen.queues[0], seen.pid), (Some((77, 1)), 5, std::process::id().cast_signed()));
    // Ranks 1, 2 and 3 of that job are 3, 0 and 1 here; there is no rank 9.
    let said = seen.wait().unwrap();
    assert_eq!((said.wait.peer, &*said.detail.comm.members), (Some(1), &[3, 0, 1][..]));
    assert_eq!(said.detail.pending.iter().map(|message| message.peer).collect::<Vec<_>>(), [Some(0)]);
    let text = report(&[RankView::of(&scene, 2), seen]);
    assert!(text.starts_with("perusal:   rank 2 (rank 0 of job 77) has not called MPI_Init\n"), "{text}");
    assert!(text.contains("rank 3 (rank 1 of job 77) waits in MPI_Recv for rank 1, tag 7"), "{text}");

    // Each job has the rings to its own processes.
    let ring = |from, to| scene.ring(from, to).map(|(memory, from, to)| (memory.header().job_id(), from, to));
    let [home, away] = [&own, &other].map(|memory| memory.header().job_id());
    assert_eq!(ring(3, 0), Some((home, 3, 0)));
    assert_eq!(ring(0, 3), Some((away, 2, 1)));
    assert_eq!(ring(2, 3), Some((away, 0, 1)));
    // One that waits for a rank which is not here is not guessed at.
    waits(&other, 0, &wait(Waiting::Receive, Some(9)), &WaitDetail::default());
    assert_eq!(RankView::of(&scene, 2).stage, Stage::Guest);
}

#[test]
fn a_deadlock_of_two_jobs_is_proved_where_nobody_else_has_met_them() {
    let (own, other, third) = (extensible(1, 1), extensible(1, 2), extensible(1, 3));
    meets(&own, 1, &other, 0);
    meets(&other, 1, &own, 0);
    let detail = WaitDetail { call: "MPI_Recv".into(), ..WaitDetail::default() };
    for job in [&own, &other, &third] {
        waits(job, 0, &wait(Waiting::Receive, Some(1)), &detail);
    }
    let proved = |scene: &Scene<'_>, polls: &[&Memory]| {
        let mut watch = Watch::new(true);
        (0..3).any(|_| {
            polls.iter().for_each(|job| job.telemetry(0).vain_blocks.add(2));
            watch.look(scene) || {
                std::thread::sleep(watch.next().unwrap_or_default());
                false
            }
        })
    };
    let scene = Scene::new(&own, [&other]);
    assert_eq!(scene.rank_of(&other, 0), Some(1));
    assert!(scene.is_closed());
    assert!(!proved(&alone(&own), &[&own, &other]), "a guest whose job is not known");
    assert!(!proved(&scene, &[&own]), "a guest that has not polled");
    meets(&other, 2, &third, 0);
    let scene = Scene::new(&own, [&other, &third]);
    assert!(!scene.is_closed(), "a process that can end the guest's wait, and is not here");
}

#[test]
fn the_page_has_every_key_and_kind() {
    let page = include_str!("../../../../docs/deadlocks.md");
    let quoted = |source: &'static str| source.split('"').skip(1).step_by(2);
    let keys = include_str!("report.rs").lines().filter_map(|line| line.trim_start().strip_prefix('"'));
    let keys: Vec<&str> = keys.filter_map(|line| line.split_once("\":")).map(|(key, _)| key).collect();
    let sources = [include_str!("cause.rs"), include_str!("circle.rs"), include_str!("near_miss.rs")];
    let kinds = sources.into_iter().flat_map(quoted).filter(|text| {
        text.contains('-') && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase())
    });
    let kinds: Vec<&str> = kinds.collect();
    assert!(keys.len() > 30 && kinds.len() > 15, "{keys:?} {kinds:?}");
    let missing = keys.into_iter().chain(kinds).filter(|name| !page.contains(&format!("`{name}`")));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}
