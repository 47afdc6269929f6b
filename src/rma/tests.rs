//! Windows of ranks that are threads of one process.

use super::{Assert, LockKind, Memory, Target, Window};
use crate::abi::{MPI_DOUBLE, MPI_INT64_T, MPI_NO_OP, MPI_REPLACE, MPI_SUM};
use crate::coll::buffer::{InputBuffer, OutputBuffer};
use crate::coll::{self, BlockingTransport, Purpose};
use crate::comm::{Comm, Group};
use crate::datatype::Datatype;
use crate::datatype::op::Op;
use crate::engine::Engine;
use crate::error::Error;
use crate::info::Info;
use crate::p2p::tests::ranks;

fn window(engine: &Engine, comm: &Comm, memory: Memory, unit: u64) -> Window {
    Window::create(engine, comm, memory, unit, &Info::default()).expect("a window")
}

fn free(engine: &Engine, window: Window) {
    window.free(engine).expect("no epoch is open");
    window.release(engine);
}

fn int64() -> &'static Datatype {
    Datatype::predefined_ref(MPI_INT64_T).expect("predefined")
}

fn double() -> &'static Datatype {
    Datatype::predefined_ref(MPI_DOUBLE).expect("predefined")
}

fn op(handle: usize) -> Op {
    Op::predefined(handle).expect("predefined")
}

fn input<'a, T>(of: &'a [T], datatype: &'a Datatype) -> InputBuffer<'a> {
    // SAFETY: the slice is borrowed as long as the buffer, and its elements are of that type.
    unsafe { InputBuffer::new(of.as_ptr().cast(), of.len(), datatype) }
}

fn output<'a, T>(of: &'a mut [T], datatype: &'a Datatype) -> OutputBuffer<'a> {
    // SAFETY: the slice is borrowed as long as the buffer, and its elements are of that type.
    unsafe { OutputBuffer::new(of.as_mut_ptr().cast(), of.len(), datatype) }
}

fn at(rank: u32, disp: i64, count: usize, datatype: &Datatype) -> Target<'_> {
    Target { rank: rank as i32, disp, count, datatype }
}

fn barrier(engine: &Engine, comm: &Comm) {
    let transport = BlockingTransport::new(engine, comm, Purpose::Barrier);
    transport.run(coll::barrier(&transport)).expect("nobody fails");
}

const NO: Assert = Assert { no_check: false, no_succeed: false };

/// Own memory of a rank that lives as long as its window.
fn own(words: &mut [i64]) -> Memory {
    Memory::Own { base: words.as_mut_ptr().cast(), bytes: size_of_val(words) }
}

#[test]
fn between_fences_a_rank_puts_to_its_neighbour_and_gets_from_it() {
    for kind in 0..3 {
        ranks(3, false, |engine, comm| {
            let mut words = [0_i64; 8];
            let memory = [own(&mut words), Memory::Allocated(64), Memory::Shared(64)][kind];
            let window = window(engine, comm, memory, 8);
            let (rank, right) = (comm.rank(), (comm.rank() + 1) % 3);
            window.fence(engine, NO).unwrap();
            let mine: Vec<i64> = (0..4).map(|i| i64::from(rank) * 10 + i).collect();
            window.put(engine, input(&mine, int64()), at(right, 2, 4, int64())).unwrap();
            window.fence(engine, NO).unwrap();
            let mut seen = [0_i64; 8];
            window.get(engine, &output(&mut seen, int64()), at(right, 0, 8, int64())).unwrap();
            assert_eq!(seen[..6], [0, 0, mine[0], mine[1], mine[2], mine[3]]);
            // Every second word, from a row of neighbours.
            let strided = Datatype::vector(2, 1, 2, int64()).unwrap();
            window.fence(engine, NO).unwrap();
            window.put(engine, input(&[-1_i64, -2], int64()), at(right, 4, 1, &strided)).unwrap();
            window.fence(engine, Assert { no_succeed: true, ..NO }).unwrap();
            assert!(matches!(
                window.get(engine, &output(&mut seen, int64()), at(right, 0, 8, int64())),
                Err(Error::RmaSync(_))
            ));
            window.lock(engine, LockKind::Shared, rank as i32, NO).unwrap();
            window.get(engine, &output(&mut seen, int64()), at(rank, 0, 8, int64())).unwrap();
            window.unlock(engine, rank as i32).unwrap();
            let left = i64::from((rank + 2) % 3) * 10;
            assert_eq!(seen, [0, 0, left, left + 1, -1, left + 3, -2, 0]);
            free(engine, window);
        });
    }
}

#[test]
fn accumulates_are_atomic_whatever_the_type() {
    const ROUNDS: usize = if cfg!(miri) { 5 } else { 2000 };
    ranks(4, false, |engine, comm| {
        let window = window(engine, comm, Memory::Allocated(64), 8);
        window.lock_all(engine, NO).unwrap();
        for _ in 0..ROUNDS {
            window
                .accumulate(engine, input(&[1_i64, 2], int64()), at(0, 0, 2, int64()), &op(MPI_SUM))
                .unwrap();
            window
                .accumulate(engine, input(&[0.5_f64], double()), at(0, 2, 1, double()), &op(MPI_SUM))
                .unwrap();
            let mut old = [0; 8];
            let one = 1_i64.to_ne_bytes();
            window.fetch_and_op(engine, Some(&one), &mut old, at(1, 3, 1, int64()), &op(MPI_SUM)).unwrap();
        }
        window.flush(engine, None).unwrap();
        window.unlock_all(engine).unwrap();
        window.fence(engine, NO).unwrap();
        let (mut sums, mut halves, mut count) = ([0_i64; 2], [0_f64], [0_i64]);
        window
            .get_accumulate(engine, None, &output(&mut sums, int64()), at(0, 0, 2, int64()), &op(MPI_NO_OP))
            .unwrap();
        window.get(engine, &output(&mut halves, double()), at(0, 2, 1, double())).unwrap();
        window.get(engine, &output(&mut count, int64()), at(1, 3, 1, int64())).unwrap();
        let all = 4 * ROUNDS as i64;
        assert_eq!((sums, halves, count), ([all, 2 * all], [all as f64 / 2.0], [all]));
        window.fence(engine, NO).unwrap();
        free(engine, window);
    });
}

#[test]
fn an_exclusive_lock_excludes_and_shared_ones_do_not() {
    const ROUNDS: usize = if cfg!(miri) { 5 } else { 500 };
    ranks(3, false, |engine, comm| {
        let window = window(engine, comm, Memory::Allocated(16), 8);
        for _ in 0..ROUNDS {
            window.lock(engine, LockKind::Exclusive, 1, NO).unwrap();
            // Not atomic: the lock alone makes it so.
            let mut value = [0_i64];
            window.get(engine, &output(&mut value, int64()), at(1, 0, 1, int64())).unwrap();
            window.put(engine, input(&[value[0] + 1], int64()), at(1, 0, 1, int64())).unwrap();
            window.unlock(engine, 1).unwrap();
            window.lock(engine, LockKind::Shared, 1, NO).unwrap();
            let mut again = [0_i64];
            window.get(engine, &output(&mut again, int64()), at(1, 0, 1, int64())).unwrap();
            assert!(again[0] > value[0]);
            window.unlock(engine, 1).unwrap();
        }
        // All at once, and nobody waits for anybody.
        barrier(engine, comm);
        window.lock_all(engine, NO).unwrap();
        barrier(engine, comm);
        let mut value = [0_i64];
        window.get(engine, &output(&mut value, int64()), at(1, 0, 1, int64())).unwrap();
        window.unlock_all(engine).unwrap();
        assert_eq!(value, [3 * ROUNDS as i64]);
        free(engine, window);
    });
}

#[test]
fn who_starts_waits_for_posts_and_who_waits_for_completions() {
    const ROUNDS: i64 = if cfg!(miri) { 5 } else { 200 };
    ranks(3, false, |engine, comm| {
        let window = window(engine, comm, Memory::Allocated(64), 8);
        let rank = comm.rank();
        let group = |ranks: &[u32]| Group::from_world_ranks(ranks.to_vec());
        for round in 0..ROUNDS {
            if rank == 0 {
                window.start(engine, &group(&[1, 2])).unwrap();
                for target in [1, 2] {
                    window.put(engine, input(&[round + 1], int64()), at(target, 0, 1, int64())).unwrap();
                }
                let mut none = [0_i64];
                let own = window.get(engine, &output(&mut none, int64()), at(0, 0, 1, int64()));
                assert!(matches!(own, Err(Error::RmaSync(_))));
                window.complete(engine).unwrap();
            } else {
                window.post(engine, &group(&[0])).unwrap();
                if rank == 1 {
                    window.wait_completed(engine).unwrap();
                } else {
                    while !window.test_completed(engine).unwrap() {}
                }
                let base = window.base() as *const i64;
                // SAFETY: the window's own memory, which nobody writes between two epochs.
                assert_eq!(unsafe { base.read_volatile() }, round + 1);
            }
        }
        free(engine, window);
    });
}

#[test]
fn compare_and_swap_counts_as_locks_do() {
    const ROUNDS: i64 = if cfg!(miri) { 5 } else { 500 };
    ranks(3, false, |engine, comm| {
        let window = window(engine, comm, Memory::Allocated(8), 8);
        window.lock_all(engine, NO).unwrap();
        for _ in 0..ROUNDS {
            let mut seen = 0_i64;
            loop {
                let (new, compare) = ((seen + 1).to_ne_bytes(), seen.to_ne_bytes());
                let mut old = [0; 8];
                window.compare_and_swap(engine, (&new, &compare), &mut old, at(0, 0, 1, int64())).unwrap();
                let was = i64::from_ne_bytes(old);
                if was == seen {
                    break;
                }
                seen = was;
            }
        }
        window.unlock_all(engine).unwrap();
        window.fence(engine, NO).unwrap();
        let mut value = [0_i64];
        window.get(engine, &output(&mut value, int64()), at(0, 0, 1, int64())).unwrap();
        assert_eq!(value, [3 * ROUNDS]);
        free(engine, window);
    });
}

#[test]
fn parts_of_a_shared_window_lie_one_behind_the_other() {
    ranks(3, false, |engine, comm| {
        let rank = comm.rank();
        let window = window(engine, comm, Memory::Shared(1000 * rank as usize), 1);
        let part = |of: Option<i32>| window.shared_part(of).unwrap().expect("mapped");
        assert_eq!(part(Some(1)).addr, part(Some(0)).addr);
        assert_eq!(part(Some(2)).addr, part(Some(1)).addr + 1000);
        assert_eq!(part(None), part(Some(1)));
        assert_eq!(window.own_size(), (1000 * u64::from(rank), 1));
        free(engine, window);
    });
}

#[test]
fn what_is_beyond_a_window_is_an_error_and_nothing_is_moved() {
    ranks(2, false, |engine, comm| {
        let mut words = [7_i64; 4];
        let window = window(engine, comm, own(&mut words), 8);
        window.lock_all(engine, NO).unwrap();
        for (disp, count) in [(0, 5), (4, 1), (-1, 1), (i64::MAX, 1), (i64::MIN, 1), (1, 4)] {
            let zeros = vec![0_i64; count];
            let put = window.put(engine, input(&zeros, int64()), at(1, disp, count, int64()));
            assert!(matches!(put, Err(Error::RmaRange { .. })), "{disp} {count}: {put:?}");
        }
        let none = window.put(engine, input(&[0_i64; 0], int64()), at(1, 4, 0, int64()));
        assert_eq!(none, Ok(()));
        let longer = window.put(engine, input(&[0_i64; 2], int64()), at(1, 0, 1, int64()));
        assert!(matches!(longer, Err(Error::RmaTruncate { .. })));
        let user = Op::closure(Box::new(|_, _, _, _| ()), true);
        let refused = window.accumulate(engine, input(&[0_i64], int64()), at(1, 0, 1, int64()), &user);
        assert!(matches!(refused, Err(Error::Op(_))));
        let mixed =
            window.accumulate(engine, input(&[0.0_f64], double()), at(1, 0, 1, int64()), &op(MPI_REPLACE));
        assert!(matches!(mixed, Err(Error::Type(_))));
        window.unlock_all(engine).unwrap();
        window.fence(engine, NO).unwrap();
        assert_eq!(words, [7; 4]);
        free(engine, window);
    });
}

#[test]
fn memory_comes_to_a_dynamic_window_and_goes() {
    ranks(2, false, |engine, comm| {
        let mut words = [i64::from(comm.rank()); 4];
        let window = window(engine, comm, Memory::Dynamic, 1);
        let base = words.as_mut_ptr().cast::<u8>();
        window.attach(engine, base, 32).unwrap();
        assert!(matches!(window.attach(engine, base.wrapping_add(8), 8), Err(Error::RmaAttach(_))));
        let mut addresses = [0_i64; 2];
        addresses[comm.rank() as usize] = base as i64;
        let transport = BlockingTransport::new(engine, comm, Purpose::Allgather);
        // SAFETY: any bytes are a number, and the array is borrowed.
        let bytes = unsafe { core::slice::from_raw_parts_mut(addresses.as_mut_ptr().cast::<u8>(), 16) };
        transport.run(coll::allgather(&transport, bytes)).unwrap();
        let other = 1 - comm.rank();
        window.fence(engine, NO).unwrap();
        let there = addresses[other as usize] + 8;
        window.put(engine, input(&[50_i64], int64()), at(other, there, 1, int64())).unwrap();
        window.fence(engine, NO).unwrap();
        let own = i64::from(comm.rank());
        // SAFETY: the array is this thread's, and no epoch is open in which others write it.
        assert_eq!(unsafe { (&raw const words).read_volatile() }, [own, 50, own, own]);
        window.detach(base).unwrap();
        assert!(matches!(window.detach(base), Err(Error::RmaAttach(_))));
        free(engine, window);
    });
}
