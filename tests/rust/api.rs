//! The Rust API: what arrives is what was sent.

use crate::rounds;
use perusal::events::Event;
use perusal::{Any, Error, Multiple, Reduction, Result, World, run_threads, run_threads_with};
use std::sync::{Arc, Mutex};

/// Sizes in bytes on both sides of every boundary: inline, eager, announced.
/// The last one is for memory that the processor copies.
const SIZES: [usize; 9] =
    [0, 1, 40, 41, 1000, 16 << 10, (16 << 10) + 1, 100_000, if cfg!(miri) { 1 << 18 } else { 1 << 20 }];

/// Bytes that repeat at no distance at which a message is divided.
fn pattern(len: usize, seed: usize) -> Vec<u8> {
    let period: Vec<u8> = (0..251).map(|i| (i * 31 + seed) as u8).collect();
    let mut bytes = period.repeat(len / period.len() + 1);
    bytes.truncate(len);
    bytes
}

#[test]
fn every_size_arrives_by_every_verb() {
    run_threads(2, |world| {
        for (i, size) in SIZES.into_iter().enumerate() {
            let (data, tag) = (pattern(size, i), i as i32);
            if world.rank() == 0 {
                world.send(&data, 1, tag)?;
                world.ssend(&data, 1, tag)?;
                assert_eq!(world.isend(data.clone(), 1, tag)?.wait()?, data);
                world.scope(|scope| scope.isend(&data, 1, tag).map(drop))?;
                world.scope(|scope| scope.issend(&data, 1, tag)?.wait())?;
            } else {
                let mut room = vec![0; size];
                let status = world.recv_into(&mut room, 0, tag)?;
                assert!(room == data, "{size} bytes");
                assert_eq!((status.source, status.tag, status.bytes), (0, tag, size));
                assert!(world.recv::<u8>(Any, Any)?.0 == data, "{size} bytes");
                assert!(world.irecv(vec![0; size], 0, tag)?.wait()?.0 == data, "{size} bytes");
                room.fill(0);
                world.scope(|scope| {
                    assert!(*scope.irecv(&mut room, 0, Any)?.wait()?.0 == data, "{size} bytes");
                    Ok(())
                })?;
                room.fill(0);
                world.scope(|scope| scope.irecv(&mut room, Any, tag).map(drop))?;
                assert!(room == data, "{size} bytes");
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn arrays_and_numbers_of_all_kinds_travel() {
    run_threads(2, |world| {
        let peer = 1 - world.rank();
        let mine = [[f64::MAX, -0.0, 1e-300]; 7];
        let mut theirs = [[0.0; 3]; 7];
        let status = world.sendrecv(&mine, (peer, 1), &mut theirs, (peer, 1))?;
        assert_eq!((theirs, status.count::<[f64; 3]>(), status.count::<f64>()), (mine, Some(7), Some(21)));
        let status = world.sendrecv(&[i16::MIN, 7], (peer, 2), &mut theirs, (peer, 2))?;
        assert_eq!((status.count::<i16>(), status.count::<f64>()), (Some(2), None));
        world.send(&[usize::MAX, 3], peer, 3)?;
        assert_eq!(world.recv::<u64>(peer, 3)?.0, [u64::MAX, 3]);
        world.send(&[[0_u8; 0]; 5], peer, 4)?;
        assert_eq!(world.recv::<[u8; 0]>(peer, 4)?.1.bytes, 0);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_message_of_broken_elements_is_an_error_and_gone() {
    run_threads(2, |world| {
        if world.rank() == 0 {
            world.send(&[1_u8; 7], 1, 1)?;
            return world.send(&[2_u8; 8], 1, 1);
        }
        assert!(matches!(world.recv::<u32>(0, 1), Err(Error::Type(_))));
        assert_eq!(world.recv::<u32>(0, 1)?.0, [0x0202_0202; 2]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_message_that_does_not_fit_is_an_error_and_the_rank_goes_on() {
    run_threads(2, |world| {
        for size in [10, 1000, 100_000] {
            if world.rank() == 0 {
                world.send(&pattern(size, 0), 1, 1)?;
                world.send(&pattern(size, 0), 1, 1)?;
            } else {
                let truncated = Error::Truncate { sent: size as u64, room: 5 };
                assert_eq!(world.recv_into(&mut [0_u8; 5], 0, 1), Err(truncated.clone()));
                let mut room = [0_u8; 5];
                let unwaited = world.scope(|scope| scope.irecv(&mut room, 0, 1).map(drop));
                assert_eq!(unwaited, Err(truncated), "the scope tells what nobody waited for");
            }
        }
        world.barrier()
    })
    .unwrap();
}

#[test]
fn wrong_ranks_and_tags_are_refused_before_anything_happens() {
    run_threads(2, |world| {
        assert_eq!(world.send(&[1_u8], 2, 0), Err(Error::Rank { rank: 2, size: 2 }));
        assert_eq!(world.send(&[1_u8], 0, -1), Err(Error::Tag(-1)));
        assert_eq!(world.recv::<u8>(5, 0).unwrap_err(), Error::Rank { rank: 5, size: 2 });
        assert_eq!(world.probe(Any, -2), Err(Error::Tag(-2)));
        assert_eq!(world.bcast(&mut [0_u8], 2), Err(Error::Root { root: 2, size: 2 }));
        assert!(matches!(world.allgather(&[0_u8; 2], &mut [0; 3]), Err(Error::Buffer(_))));
        let floats = world.allreduce(Reduction::Xor, &[1.0], &mut [0.0]);
        assert!(matches!(floats, Err(Error::Op(_))));
        assert_eq!(world.sub(&[0, 0]).unwrap_err(), Error::RankTwice(0));
        world.barrier()
    })
    .unwrap();
}

#[test]
fn probes_tell_what_a_receive_would_get() {
    run_threads(2, |world| {
        if world.rank() == 0 {
            world.send(&[7_u16; 9], 1, 3)?;
            return world.send::<u8>(&[], 1, 4);
        }
        let status = world.probe(Any, Any)?;
        assert_eq!((status.source, status.tag, status.count::<u16>()), (0, 3, Some(9)));
        assert_eq!(world.probe(0, 4)?.bytes, 0);
        assert_eq!(world.iprobe(0, 5)?, None);
        assert_eq!(world.iprobe(Any, 3)?, Some(status));
        assert_eq!(world.recv::<u16>(0, 3)?.0, [7; 9]);
        assert_eq!(world.iprobe(Any, 3)?, None);
        world.recv::<u8>(0, Any).map(drop)
    })
    .unwrap();
}

#[test]
fn a_receive_can_be_taken_back_until_a_message_meets_it() {
    run_threads(1, |world| {
        let (mut room, mut other) = ([0_u8; 4], [0_u8; 4]);
        world.scope(|scope| {
            let early = scope.irecv(&mut room, 0, 1)?;
            let never = scope.irecv(&mut other, 0, 2)?;
            assert!(!early.is_complete()? && !never.is_complete()?);
            world.send(b"came", 0, 1)?;
            let (data, status) = early.cancel()?.expect("the message was there");
            assert_eq!((&*data, status.tag), (&b"came"[..], 1));
            assert!(never.cancel()?.is_none());
            Ok(())
        })?;
        drop(world.irecv(vec![0_u8; 4], 0, 3)?);
        let sent = world.isend(b"late".to_vec(), 0, 3)?;
        assert_eq!(world.recv::<u8>(0, 3)?.0, b"late", "the dropped receive did not take it");
        sent.wait().map(drop)
    })
    .unwrap();
}

#[test]
fn a_scope_that_fails_takes_back_what_it_began() {
    run_threads(2, |world| {
        let mut room = vec![0_u8; 100_000];
        let data = pattern(100_000, 1);
        let failed: Result<()> = world.scope(|scope| {
            scope.irecv(&mut room, Any, 99)?;
            scope.issend(&data, 1 - world.rank(), 98)?;
            Err(Error::Code(77))
        });
        assert_eq!(failed, Err(Error::Code(77)));
        world.barrier()?;
        assert_eq!(world.iprobe(Any, Any)?, None, "the other rank's send is gone");
        Ok(())
    })
    .unwrap();
}

#[test]
fn handles_that_nobody_keeps_are_waited_for_by_their_scope() {
    run_threads(2, |world| {
        let peer = 1 - world.rank();
        for size in SIZES {
            let data = pattern(size, peer);
            let (mut first, mut second) = (vec![0; size], vec![0; size]);
            world.scope(|scope| {
                scope.irecv(&mut first, peer, 1)?;
                scope.irecv(&mut second, peer, 1)?;
                scope.isend(&data, peer, 1)?;
                scope.isend(&data, peer, 1).map(drop)
            })?;
            assert!(first == pattern(size, world.rank()) && second == first, "{size} bytes");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn owned_requests_that_are_dropped_go_on_and_forgotten_ones_harm_nobody() {
    run_threads(2, |world| {
        let peer = 1 - world.rank();
        for size in SIZES {
            drop(world.isend(pattern(size, peer), peer, 1)?);
            core::mem::forget(world.isend(pattern(size, peer), peer, 2)?);
            for tag in [1, 2] {
                assert!(world.recv::<u8>(peer, tag)?.0 == pattern(size, world.rank()), "{size} bytes");
            }
        }
        core::mem::forget(world.irecv(vec![0_u8; 1000], peer, 3)?);
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_is_dropped_under_way_is_finished_before_the_job_is_left() {
    run_threads(2, |world| {
        if world.rank() == 0 {
            // The receiver does not look before the sender has left its closure.
            drop(world.isend(pattern(1 << 20, 5), 1, 1)?);
            world.send::<u8>(&[], 1, 2)
        } else {
            world.recv::<u8>(0, 2)?;
            assert!(world.recv::<u8>(0, 1)?.0 == pattern(1 << 20, 5));
            Ok(())
        }
    })
    .unwrap();
}

#[test]
fn collectives_agree_with_arithmetic() {
    for ranks in [1, 2, 3, 5] {
        run_threads(ranks, |world| {
            let (rank, size) = (world.rank() as i64, world.size() as i64);
            for root in 0..world.size() {
                let is_root = world.rank() == root;
                let mut data = if is_root { [root as i64, 5] } else { [-1, -1] };
                world.bcast(&mut data, root)?;
                assert_eq!(data, [root as i64, 5]);
                let all: Vec<i64> = (0..2 * size).collect();
                let mut gathered = if is_root { vec![-1; all.len()] } else { vec![] };
                world.gather(&[2 * rank, 2 * rank + 1], &mut gathered, root)?;
                assert!(!is_root || gathered == all);
                let mut piece = [0; 2];
                world.scatter(if is_root { &all } else { &[] }, &mut piece, root)?;
                assert_eq!(piece, [2 * rank, 2 * rank + 1]);
                let mut sum = [-1];
                world.reduce(Reduction::Sum, &[rank + 1], &mut sum[..usize::from(is_root)], root)?;
                assert_eq!(sum, [if is_root { size * (size + 1) / 2 } else { -1 }]);
            }
            let mut all = vec![0; world.size()];
            world.allgather(&[rank * rank], &mut all)?;
            assert_eq!(all, (0..size).map(|r| r * r).collect::<Vec<_>>());
            let sent: Vec<i64> = (0..size).map(|to| 100 * rank + to).collect();
            world.alltoall(&sent, &mut all)?;
            assert_eq!(all, (0..size).map(|from| 100 * from + rank).collect::<Vec<_>>());
            let mut both = [[0; 2]; 1];
            world.allreduce(Reduction::Max, &[[rank, -rank]], &mut both)?;
            assert_eq!(both, [[size - 1, 0]]);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn communicators_keep_their_messages_apart_and_come_and_go() {
    run_threads(4, |world| {
        for round in 0..rounds(200) as u32 {
            let copy = world.dup()?;
            let peer = (world.rank() + 2) % 4;
            copy.send(&[round], peer, 0)?;
            world.send(&[round + 1000], peer, 0)?;
            assert_eq!(world.recv::<u32>(peer, Any)?.0, [round + 1000]);
            assert_eq!(copy.recv::<u32>(Any, 0)?.0, [round]);
            let half = copy.split(Some(world.rank() as i32 % 2), -(world.rank() as i32))?.expect("a color");
            assert_eq!((half.size(), half.rank()), (2, 1 - world.rank() / 2));
            half.barrier()?;
            let some = world.sub(&[3, 0, 1])?;
            assert_eq!(
                some.as_ref().map(|some| some.rank()),
                [Some(1), Some(2), None, Some(0)][world.rank()]
            );
            if let Some(some) = some {
                let mut ranks = [0; 3];
                some.allgather(&[world.rank()], &mut ranks)?;
                assert_eq!(ranks, [3, 0, 1]);
            }
            assert!(world.split(None, 0)?.is_none());
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_communicator_outlives_its_world_and_is_of_no_use() {
    let kept = Mutex::new(Vec::new());
    run_threads_with::<Multiple, _>(2, |world| {
        // A collective call, so not under the lock that the other rank needs to get there.
        let dup = world.dup()?;
        kept.lock().unwrap().push(dup);
        Ok(())
    })
    .unwrap();
    for comm in kept.into_inner().unwrap() {
        assert!(matches!(comm.barrier(), Err(Error::NotInitialized(_))));
        assert!(matches!(
            comm.scope(|scope| scope.isend(&[1_u8], 0, 0).map(drop)),
            Err(Error::NotInitialized(_))
        ));
    }
}

#[test]
fn threads_of_several_ranks_talk_at_once() {
    let messages = rounds(300);
    run_threads_with::<Multiple, _>(2, |world| {
        let lanes = (0..3).map(|_| world.dup()).collect::<Result<Vec<_>>>()?;
        let peer = 1 - world.rank();
        std::thread::scope(|threads| {
            for lane in lanes {
                // Each thread owns its communicator and drops it while the others are busy.
                threads.spawn(move || {
                    for i in 0..messages {
                        let size = if i % 50 == 0 { 50_000 } else { i };
                        let sent = lane.isend(pattern(size, i), peer, i as i32).unwrap();
                        assert!(lane.recv::<u8>(peer, i as i32).unwrap().0 == pattern(size, i));
                        drop(sent);
                    }
                    lane.barrier().unwrap();
                });
            }
        });
        world.barrier()
    })
    .unwrap();
}

fn count(world: &World, event: Event, counted: &Arc<Mutex<u32>>) -> perusal::events::Subscription {
    let counted = counted.clone();
    world.subscribe(event, move |_| *counted.lock().unwrap() += 1).unwrap()
}

#[test]
fn subscriptions_hear_their_event_until_they_are_paused_or_dropped() {
    run_threads(1, |world| {
        let counted = Arc::new(Mutex::new(0));
        let subscription = count(world, Event::ReqActivate, &counted);
        let exchange = || {
            world.isend(vec![1_u8], 0, 0)?.wait()?;
            world.recv_into(&mut [0_u8], 0, 0)
        };
        let heard = || core::mem::take(&mut *counted.lock().unwrap());
        exchange()?;
        assert_eq!(heard(), 2);
        subscription.pause().unwrap();
        exchange()?;
        assert_eq!(heard(), 0);
        subscription.resume().unwrap();
        let second = count(world, Event::ReqActivate, &counted);
        exchange()?;
        assert_eq!(heard(), 4);
        drop(second);
        exchange()?;
        assert_eq!(heard(), 2);
        let other = world.dup()?;
        other.isend(vec![1_u8], 0, 0)?.wait()?;
        other.recv::<u8>(0, 0)?;
        assert_eq!(heard(), 0, "another communicator");
        drop(subscription);
        exchange()?;
        assert_eq!((heard(), Arc::strong_count(&counted)), (0, 1), "the closure is gone");
        Ok(())
    })
    .unwrap();
}
