//! The Rust API under the launcher: ranks that are processes. This program is also what the launcher starts.

#[path = "../../examples/ring.rs"]
mod ring;

use perusal::internals::shm::RANK_VARIABLE;
use perusal::{Any, Error, Reduction, Result, World};
use std::process::{Command, Output};

/// What to do as a rank.
const PART: &str = "PERUSAL_TEST_PART";

/// Runs `part` on `ranks` processes.
fn launch(ranks: u32, part: &str, environment: &[(&str, &str)]) -> Output {
    launch_with(&[], ranks, part, environment)
}

/// The same with further options of the launcher.
fn launch_with(options: &[&str], ranks: u32, part: &str, environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_perusal"))
        .args(["run", "-n", &ranks.to_string()])
        .args(options)
        .arg(std::env::current_exe().expect("a path"))
        .args(["--exact", "play_a_part", "--nocapture"])
        .env(PART, part)
        .envs(environment.iter().copied())
        .output()
        .expect("the launcher runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What a launched rank does; nothing when the tests run.
#[test]
fn play_a_part() {
    if std::env::var_os(RANK_VARIABLE).is_none() {
        return;
    }
    let part = std::env::var(PART).expect("a part");
    let played = match &*part {
        "ring" => perusal::run(ring::ring).map(drop),
        "large" => perusal::run(large),
        "error" => perusal::run(|world| if world.rank() == 1 { Err(Error::Code(77)) } else { hang(world) }),
        "panic" => perusal::run(|world| if world.rank() == 1 { panic!("as asked") } else { hang(world) }),
        "callback" => perusal::run(callback),
        "survive" => perusal::run(survive),
        "receives" => perusal::run(receives_that_have_failed),
        "fence" => perusal::run(fence_that_has_failed),
        other => panic!("no such part: {other}"),
    };
    if let Err(error) = played {
        println!("ended with: {error}");
        std::process::exit(3);
    }
}

/// Ranks 1 and 3 of four die one after the other, in the middle of a sum that the others repeat without them.
fn survive(world: &World) -> Result<()> {
    let me = world.rank();
    let mut comm = world.dup()?;
    let mut dead = Vec::new();
    for step in 0..6_u64 {
        loop {
            if (step, me) == (2, 1) || (step, me) == (4, 3) {
                std::process::abort();
            }
            let mut sum = [0_u64];
            let done = comm.allreduce(Reduction::Sum, &[1], &mut sum);
            let (all, deaths) = comm.agree(u32::from(done.is_ok()))?;
            if all == 1 && deaths.is_ok() {
                assert_eq!(sum, [comm.size() as u64]);
                break;
            }
            comm.revoke()?;
            assert!(comm.is_revoked()? && matches!(comm.barrier(), Err(Error::Revoked)));
            dead.extend(comm.failed()?);
            comm = comm.shrink()?;
        }
    }
    // The ranks within their communicators: rank 3 of all was the last of three.
    assert_eq!((comm.size(), dead.as_slice()), (2, [1, 2].as_slice()));
    // Messages of the dead do not come; those of the living do, and one that is ahead has sent its own already.
    assert!(matches!(world.recv::<u8>(1, 6), Err(Error::ProcFailed { rank: 1, .. })));
    assert!(matches!(world.recv::<u8>(Any, 6), Err(Error::ProcFailed { .. })));
    assert_eq!(world.acknowledge_failed(world.failed()?.len())?, 2);
    let peer = 2 - me;
    world.send(&[me], peer, 5)?;
    assert_eq!(world.recv::<usize>(Any, 5)?.0, [peer]);
    println!("rank {me} has outlived {:?}", world.failed()?);
    Ok(())
}

#[test]
fn ranks_outlive_others_and_go_on_without_them() {
    let output = launch_with(&["--survive"], 4, "survive", &[]);
    let text = text(&output);
    for rank in [0, 2] {
        assert!(text.contains(&format!("rank {rank} has outlived [1, 3]")), "{text}");
    }
}

/// Rank 1 dies. So receives of rank 0 from any source fail, and what rank 2 sends afterwards is for others.
fn receives_that_have_failed(world: &World) -> Result<()> {
    const BYTES: usize = 64;
    match world.rank() {
        0 => {
            let failed = |error| matches!(error, Error::ProcFailed { rank: 1, .. });
            let mut room = [1_u8; BYTES];
            assert!(world.irecv(vec![0_u8; BYTES], Any, 7)?.wait().is_err_and(failed));
            assert!(world.scope(|scope| scope.irecv(&mut room, Any, 7)?.wait().map(drop)).is_err_and(failed));
            assert!(world.scope(|scope| scope.irecv(&mut room, Any, 7).map(drop)).is_err_and(failed));
            assert!(world.sendrecv(&[5_u8], (0, 5), &mut room, (Any, 7)).is_err_and(failed));
            // Now rank 2 sends; the last of its messages comes after the others.
            world.send(&world.recv::<u8>(0, 5)?.0, 2, 5)?;
            world.recv::<u8>(2, 8)?;
            assert_eq!(room, [1; BYTES]);
            for value in 0..4 {
                assert!(world.iprobe(2, 7)?.is_some(), "a receive that has failed took message {value}");
                assert_eq!(world.recv::<u8>(2, 7)?.0, [value; BYTES]);
            }
            println!("rank 0 has all messages");
        }
        1 => std::process::abort(),
        _ => {
            world.recv::<u8>(0, 5)?;
            (0..4_u8).try_for_each(|value| world.send(&[value; BYTES], 0, 7))?;
            world.send(&[0_u8], 0, 8)?;
        }
    }
    Ok(())
}

#[test]
fn a_receive_that_fails_because_of_a_death_takes_no_message_afterwards() {
    let text = text(&launch_with(&["--survive"], 3, "receives", &[]));
    assert!(text.contains("rank 0 has all messages"), "{text}");
}

/// Rank 1 dies between two fences. Rank 2 still stores there when the second fence has failed at rank 0.
fn fence_that_has_failed(world: &World) -> Result<()> {
    let mut window = world.window::<u64>(1)?;
    let failed = |error| matches!(error, Error::ProcFailed { rank: 1, .. });
    match world.rank() {
        0 => {
            assert!(window.fence(|_| world.send(&[0_u8], 1, 1)).is_err_and(failed));
            for target in [0, 2] {
                assert!(matches!(window.lock(target), Err(Error::RmaSync(_))));
                assert!(matches!(window.lock_shared(target), Err(Error::RmaSync(_))));
            }
            assert!(matches!(window.fence(|_| Ok(())), Err(Error::RmaSync(_))));
            assert!(matches!(window.free(), Err(Error::RmaSync(_))));
            world.send(&[0_u8], 2, 1)?;
            println!("rank 0 has no slice");
        }
        1 => window.fence(|_| {
            world.recv::<u8>(0, 1)?;
            world.recv::<u8>(2, 1)?;
            std::process::abort()
        })?,
        _ => {
            let left = window.fence(|epoch| {
                world.send(&[0_u8], 1, 1)?;
                let mut value = 0;
                while world.iprobe(0, 1)?.is_none() {
                    value += 1;
                    epoch.put(&[value], 0, 0)?;
                }
                world.recv::<u8>(0, 1).map(drop)
            });
            assert!(left.is_err_and(failed));
        }
    }
    Ok(())
}

#[test]
fn a_window_whose_fence_has_failed_gives_no_slice_of_memory_to_which_others_may_store() {
    let text = text(&launch_with(&["--survive"], 3, "fence", &[]));
    assert!(text.contains("rank 0 has no slice"), "{text}");
}

fn hang(world: &World) -> Result<()> {
    world.recv::<u8>(1, 99).map(drop)
}

fn large(world: &World) -> Result<()> {
    let peer = 1 - world.rank();
    for size in [20_000, 1 << 20, 5_000_001] {
        let mine = vec![world.rank() as u8 + 1; size];
        let mut theirs = vec![0; size];
        world.sendrecv(&mine, (peer, 1), &mut theirs, (peer, 1))?;
        assert!(theirs.iter().all(|&byte| byte == peer as u8 + 1), "{size} bytes");
        drop(world.isend(mine, peer, 2)?);
        assert_eq!(world.recv::<u8>(peer, 2)?.0, theirs);
    }
    Ok(())
}

fn callback(world: &World) -> Result<()> {
    let _subscription = world.subscribe(perusal::events::Event::ReqActivate, |_| panic!("as asked"))?;
    world.isend(vec![1_u8], world.rank(), 0)?.wait().map(drop)
}

#[test]
fn a_token_goes_around_processes_as_it_does_around_threads() {
    let output = launch(5, "ring", &[]);
    assert!(output.status.success(), "{}", text(&output));
    for rank in 0..5 {
        let line = format!("rank {rank} of 5: the token carried 10");
        assert!(text(&output).contains(&line), "{}", text(&output));
    }
    assert_eq!(perusal::run_threads(5, ring::ring), Ok(vec![10; 5]));
    assert_eq!(perusal::run_threads(1, ring::ring), Ok(vec![0]));
}

#[test]
fn large_messages_cross_processes_by_every_copy_engine() {
    for engine in ["auto", "chunks", "read", "halves"] {
        let output = launch(2, "large", &[("PERUSAL_COPY_ENGINE", engine)]);
        assert!(output.status.success(), "{engine}: {}", text(&output));
    }
}

#[test]
fn an_error_or_a_panic_in_one_process_ends_the_others() {
    for (part, what) in [
        ("error", "rank 1 ended with an error"),
        ("panic", "rank 1 panicked"),
        ("callback", "panicked for event"),
    ] {
        let output = launch(2, part, &[]);
        assert!(!output.status.success());
        assert!(text(&output).contains(what), "{part}: {}", text(&output));
    }
}
