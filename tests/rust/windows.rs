//! Windows of the Rust API: what is put is there, operations are atomic,
//! and ranks that disagree learn it instead of racing.

use crate::rounds;
use perusal::Reduction::{Max, Sum, Xor};
use perusal::{Error, Multiple, run_threads, run_threads_with};

#[test]
fn a_locked_part_is_a_slice_that_nobody_else_has() {
    let rounds = rounds(200) as u64;
    run_threads(3, |world| {
        let window = world.window::<[u64; 2]>(5)?;
        for _ in 0..rounds {
            for target in 0..3 {
                let mut part = window.lock(target)?;
                let [one, two] = part[4];
                assert_eq!(one, two);
                part[4] = [one + 1, one];
                part[4][1] += 1;
            }
        }
        world.barrier()?;
        assert_eq!(window.lock(world.rank())?[..], [[0; 2], [0; 2], [0; 2], [0; 2], [3 * rounds; 2]]);
        world.barrier()?;
        window.free()
    })
    .unwrap();
}

#[test]
fn atomic_operations_of_all_ranks_meet_at_one_element() {
    let rounds = rounds(500) as i64;
    run_threads(3, |world| {
        let window = world.window::<i64>(if world.rank() == 1 { 4 } else { 0 })?;
        let shared = window.lock_shared(1)?;
        for i in 0..rounds {
            shared.accumulate(Sum, &[1, 2], 1, 0)?;
            assert!(shared.fetch_and_op(Sum, 1, 1, 2)? >= i);
            let mut seen = shared.fetch_and_op(Max, 0, 1, 3)?;
            loop {
                let before = shared.compare_and_swap(seen, seen + 1, 1, 3)?;
                if before == seen {
                    break;
                }
                seen = before;
            }
        }
        shared.flush()?;
        drop(shared);
        world.barrier()?;
        let mut sums = [0; 4];
        window.lock_all()?.get(&mut sums, 1, 0)?;
        assert_eq!(sums, [3 * rounds, 6 * rounds, 3 * rounds, 3 * rounds]);
        window.free()
    })
    .unwrap();
}

#[test]
fn epochs_of_fences_and_exposures_move_what_they_say() {
    run_threads(3, |world| {
        let (rank, right, left) = (world.rank(), (world.rank() + 1) % 3, (world.rank() + 2) % 3);
        let mut window = world.window::<u32>(4)?;
        for round in 0..rounds(20) as u32 {
            window.fence(|epoch| epoch.put(&[round, rank as u32], right, 1))?;
            window.fence(|epoch| {
                let mut got = [9; 2];
                epoch.get(&mut got, rank, 1)?;
                assert_eq!(got, [round, left as u32]);
                Ok(())
            })?;
            let exposed = window.expose(&[left])?;
            let started = window.start(&[right])?;
            assert!(matches!(started.put(&[1], rank, 0), Err(Error::RmaSync(_))));
            assert_eq!(started.swap(round + 1, right, 3)?, round);
            started.complete()?;
            exposed.wait()?;
            assert_eq!(window.lock(rank)?[3], round + 1);
        }
        // All put to one place: one of the values is there.
        window.fence(|epoch| epoch.put(&[100 + rank as u32; 4], 0, 0))?;
        if rank == 0 {
            assert!(window.lock(0)?.iter().all(|value| (100..103).contains(value)));
        }
        window.free()
    })
    .unwrap();
}

#[test]
fn what_is_wrong_is_an_error_and_nothing_is_moved() {
    run_threads(2, |world| {
        let mut window = world.window::<f64>(3)?;
        assert_eq!((window.len_of(1)?, window.size()), (3, 2));
        assert!(matches!(window.len_of(2), Err(Error::WinRank { .. })));
        let all = window.lock_all()?;
        assert!(matches!(all.put(&[1.0; 2], 1, 2), Err(Error::RmaRange { .. })));
        assert!(matches!(all.put(&[1.0], 1, usize::MAX), Err(Error::RmaRange { .. })));
        assert!(matches!(all.put(&[1.0], 7, 0), Err(Error::WinRank { .. })));
        assert!(matches!(all.accumulate(Xor, &[1.0], 1, 0), Err(Error::Op(_))));
        assert!(matches!(all.compare_and_swap(0.0, 1.0, 1, 0), Err(Error::Type(_))));
        assert!(matches!(all.get_accumulate(Sum, &[1.0], &mut [], 1, 0), Err(Error::Buffer(_))));
        assert!(matches!(window.lock(1), Err(Error::RmaSync(_))));
        drop(all);
        let shared = window.lock_shared(0)?;
        assert!(matches!(shared.put(&[1.0], 1, 0), Err(Error::RmaSync(_))));
        drop(shared);
        world.barrier()?;
        let own = window.lock(world.rank())?;
        assert_eq!(own[..], [0.0; 3]);
        assert!(matches!(window.lock(world.rank()), Err(Error::RmaSync(_))));
        assert!(matches!(window.expose(&[0]), Err(Error::RmaSync(_))));
        drop(own);
        let failed = window.fence(|_| Err::<(), _>(Error::Code(5)));
        assert_eq!(failed, Err(Error::Code(5)));
        window.fence(|_| Ok(()))?;
        window.free()
    })
    .unwrap();
}

#[test]
fn ranks_that_disagree_learn_it_and_nobody_races() {
    run_threads(2, |world| {
        let mut window = world.window::<u8>(8)?;
        // One has forgotten a lock, which it then holds for good.
        if world.rank() == 0 {
            core::mem::forget(window.lock(0)?);
        }
        assert!(matches!(window.fence(|_| Ok(())), Err(Error::RmaSync(_))));
        assert!(matches!(window.free(), Err(Error::RmaSync(_))));
        // One frees where the other begins an epoch.
        let mut window = world.window::<u8>(8)?;
        let done = if world.rank() == 0 { window.free() } else { window.fence(|_| Ok(())) };
        assert!(matches!(done, Err(Error::RmaSync(_))));
        // Elements of two types.
        let made = if world.rank() == 0 {
            world.window::<u32>(8).map(drop)
        } else {
            world.window::<[u16; 2]>(8).map(drop)
        };
        assert!(matches!(made, Err(Error::Type(_))));
        assert!(matches!(world.window::<[u8; 0]>(8).map(drop), Err(Error::Type(_))));
        Ok(())
    })
    .unwrap();
}

#[test]
fn threads_have_windows_of_their_own() {
    let rounds = rounds(100) as u64;
    run_threads_with::<Multiple, _>(2, |world| {
        let copies = [world.dup()?, world.dup()?];
        std::thread::scope(|threads| {
            let work = |comm| {
                move || -> perusal::Result<u64> {
                    let comm: &perusal::Communicator<Multiple> = comm;
                    let window = comm.window::<u64>(2)?;
                    let all = window.lock_all()?;
                    for _ in 0..rounds {
                        all.accumulate(Sum, &[1, 1], 0, 0)?;
                    }
                    drop(all);
                    comm.barrier()?;
                    let sum = window.lock(0)?[1];
                    window.free()?;
                    Ok(sum)
                }
            };
            let started = copies.each_ref().map(|comm| threads.spawn(work(comm)));
            for thread in started {
                assert_eq!(thread.join().expect("no panic")?, 2 * rounds);
            }
            Ok(())
        })
    })
    .unwrap();
}

#[test]
fn a_panic_in_an_epoch_ends_the_job_and_the_window() {
    let caught = std::panic::catch_unwind(|| {
        run_threads(2, |world| {
            let mut window = world.window::<u64>(1)?;
            window.fence(|epoch| {
                if epoch.fetch_and_op(Sum, 1, 0, 0)? == 0 {
                    std::panic::resume_unwind(Box::new("quietly"));
                }
                Ok(())
            })
        })
    });
    assert!(caught.is_err());
}
