//! Any program of messages and collective operations on three ranks that are threads, beside an oracle that knows what
//! each receive gets: messages of one sender meet the receives that take them in order, whatever the timing.
//!
//! A step is four bytes: what to do, who takes part, tag and size, and a detail. All ranks read the same program.
#![no_main]

use libfuzzer_sys::fuzz_target;
use perusal::{Any, Communicator, Reduction, Tag, run_threads};

const RANKS: usize = 3;
const MOST_STEPS: usize = 60;
/// Every receive has room for the longest message.
const SIZES: [usize; 8] = [0, 1, 8, 40, 41, 1000, 9_000, 70_000];
const MOST: usize = SIZES[7];

/// What a step does.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A message and a receive, which need not meet each other: the receive takes this tag only, or any (`None`). One
    /// of the two may be left out; what then misses its partner gets one where everything is waited for.
    Message { from: usize, to: usize, tag: i32, size: usize, send: bool, receive: Option<Option<i32>> },
    /// Everything that is under way is waited for.
    WaitAll,
    /// A collective operation of all, or of the ranks of one half of a split communicator.
    Collective { which: u8, root: usize, length: usize, split: bool },
}

fn step(bytes: &[u8]) -> Step {
    let [what, who, how, detail] = [bytes[0], bytes[1], bytes[2], bytes[3]];
    match what % 8 {
        0..=4 => {
            let tag = i32::from(how & 3);
            let receive = match detail & 3 {
                0 => None,
                1 => Some(None),
                _ => Some(Some(tag)),
            };
            Step::Message {
                from: usize::from(who) % RANKS,
                to: usize::from(who >> 4) % RANKS,
                tag,
                size: SIZES[usize::from(how >> 2 & 7)],
                send: detail & 4 == 0 || receive.is_none(),
                receive,
            }
        }
        5 => Step::WaitAll,
        _ => Step::Collective {
            which: detail % 6,
            root: usize::from(who) % RANKS,
            length: usize::from(how) * if detail & 64 == 0 { 1 } else { 40 },
            split: detail & 128 != 0,
        },
    }
}

/// A message that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    tag: i32,
    size: usize,
    serial: usize,
}

/// The bytes of a message.
fn pattern(serial: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 7 + serial * 31) as u8).collect()
}

/// Which message each receive gets, of one pair of ranks, and which of both are left.
fn matched(sent: &[Sent], receives: &[Option<i32>]) -> (Vec<Option<Sent>>, Vec<Sent>) {
    let mut got = vec![None; receives.len()];
    let mut left = Vec::new();
    for message in sent {
        let at = (0..receives.len())
            .find(|&at| got[at].is_none() && receives[at].is_none_or(|tag| tag == message.tag));
        match at {
            Some(at) => got[at] = Some(*message),
            None => left.push(*message),
        }
    }
    (got, left)
}

/// What is under way between each pair of ranks, the sender first.
#[derive(Default)]
struct UnderWay {
    sent: [[Vec<Sent>; RANKS]; RANKS],
    receives: [[Vec<Option<i32>>; RANKS]; RANKS],
}

fn play(world: &Communicator, program: &[Step]) -> perusal::Result<()> {
    let me = world.rank();
    let mut oracle = UnderWay::default();
    let mut serial = 0;
    let mut steps = program.iter().copied().chain([Step::WaitAll]);
    loop {
        let mut sends = Vec::new();
        let mut received: [Vec<_>; RANKS] = Default::default();
        loop {
            let Some(step) = steps.next() else { return Ok(()) };
            match step {
                Step::Message { from, to, tag, size, send, receive } => {
                    if let Some(wanted) = receive {
                        oracle.receives[from][to].push(wanted);
                        if to == me {
                            let tag: Tag = wanted.map_or(Any.into(), Into::into);
                            received[from].push(world.irecv(vec![0_u8; MOST], from, tag)?);
                        }
                    }
                    if send {
                        serial += 1;
                        oracle.sent[from][to].push(Sent { tag, size, serial });
                        if from == me {
                            sends.push(world.isend(pattern(serial, size), to, tag)?);
                        }
                    }
                }
                Step::WaitAll => break,
                Step::Collective { which, root, length, split } => {
                    collective(world, (which, root, length), split)?
                }
            }
        }
        // What has no partner gets one.
        for from in 0..RANKS {
            for to in 0..RANKS {
                let (got, left) = matched(&oracle.sent[from][to], &oracle.receives[from][to]);
                for wanted in got
                    .iter()
                    .zip(oracle.receives[from][to].clone())
                    .filter_map(|(got, wanted)| got.is_none().then_some(wanted))
                {
                    serial += 1;
                    let message = Sent { tag: wanted.unwrap_or(0), size: SIZES[serial % 8], serial };
                    oracle.sent[from][to].push(message);
                    if from == me {
                        sends.push(world.isend(pattern(serial, message.size), to, message.tag)?);
                    }
                }
                for message in left {
                    oracle.receives[from][to].push(Some(message.tag));
                    if to == me {
                        received[from].push(world.irecv(vec![0_u8; MOST], from, message.tag)?);
                    }
                }
                let (got, left) = matched(&oracle.sent[from][to], &oracle.receives[from][to]);
                assert!(left.is_empty() && got.iter().all(Option::is_some), "the oracle pairs everything");
            }
        }
        for (from, receives) in received.into_iter().enumerate() {
            let (expected, _) = matched(&oracle.sent[from][me], &oracle.receives[from][me]);
            assert_eq!(receives.len(), expected.len());
            for (receive, sent) in receives.into_iter().zip(expected) {
                let (data, status) = receive.wait()?;
                let sent = sent.expect("everything is paired");
                assert_eq!((status.source, status.tag, status.bytes), (from, sent.tag, sent.size));
                assert!(data[..sent.size] == pattern(sent.serial, sent.size), "{sent:?} arrives spoiled");
            }
        }
        for send in sends {
            send.wait()?;
        }
        oracle = UnderWay::default();
    }
}

/// A collective operation, and whether everybody has what it should.
fn collective(
    world: &Communicator,
    (which, root, length): (u8, usize, usize),
    split: bool,
) -> perusal::Result<()> {
    if split {
        let half = world.split((world.rank() != root).then_some(1), -(world.rank() as i32))?;
        return half.map_or(Ok(()), |half| collective(&half, (which, 0, length), false));
    }
    let (me, size) = (world.rank(), world.size());
    let of = |rank: usize| (0..length).map(|at| (at * 3 + rank * 17) as u32).collect::<Vec<u32>>();
    match which {
        0 => world.barrier()?,
        1 => {
            let mut data = if me == root { of(root) } else { vec![0; length] };
            world.bcast(&mut data, root)?;
            assert_eq!(data, of(root));
        }
        2 => {
            let mut sum = vec![0; length];
            world.allreduce(Reduction::Sum, &of(me), &mut sum)?;
            let expected = |at: usize| (0..size).map(|rank| (at * 3 + rank * 17) as u32).sum::<u32>();
            assert!(sum.iter().enumerate().all(|(at, sum)| *sum == expected(at)));
        }
        3 => {
            let mut all = vec![0; length * size];
            world.allgather(&of(me), &mut all)?;
            assert_eq!(all, (0..size).flat_map(of).collect::<Vec<_>>());
        }
        4 => {
            let mut all = vec![0; if me == root { length * size } else { 0 }];
            world.gather(&of(me), &mut all, root)?;
            assert!(me != root || all == (0..size).flat_map(of).collect::<Vec<_>>());
        }
        _ => {
            let sent: Vec<u32> = (0..size).flat_map(|to| of(me * 8 + to)).collect();
            let mut all = vec![0; length * size];
            world.alltoall(&sent, &mut all)?;
            assert_eq!(all, (0..size).flat_map(|from| of(from * 8 + me)).collect::<Vec<_>>());
        }
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let program: Vec<Step> = bytes.chunks_exact(4).take(MOST_STEPS).map(step).collect();
    run_threads(RANKS, |world| play(world, &program)).expect("a program without mistakes");
});
