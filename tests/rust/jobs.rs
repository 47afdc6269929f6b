//! The Rust API under the launcher: ranks that are processes. This program is also what the launcher starts.

#[path = "../../examples/ring.rs"]
mod ring;

use perusal::internals::shm::RANK_VARIABLE;
use perusal::{Error, Result, World};
use std::process::{Command, Output};

/// What to do as a rank.
const PART: &str = "PERUSAL_TEST_PART";

/// Runs `part` on `ranks` processes.
fn launch(ranks: u32, part: &str, environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_perusal"))
        .args(["run", "-n", &ranks.to_string()])
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
        other => panic!("no such part: {other}"),
    };
    if let Err(error) = played {
        println!("ended with: {error}");
        std::process::exit(3);
    }
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
