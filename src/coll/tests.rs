//! Collectives on users' buffers against arithmetic: dense and with gaps, in place, within one group and between two.

use super::buffer::{InputBuffer, OpKernel, OutputBuffer};
use super::intercomm::{self, IntercommRoot, Sides};
use super::transport::threads::{self, ThreadTransport};
use super::{Subset, Transport, algorithms, intracomm, run};
use crate::abi;
use crate::datatype::Datatype;
use crate::datatype::op::Op;

/// What fills the gaps of buffers, and must still be there afterwards.
const GAP: i32 = -77;

/// A buffer of ints, with a gap after each if `stride` is 2.
struct Ints {
    data: Vec<i32>,
    stride: usize,
    datatype: Datatype,
}

impl Ints {
    fn new(values: &[i32], stride: usize) -> Self {
        let int = Datatype::predefined(abi::MPI_INT).unwrap();
        let datatype = match stride {
            1 => int,
            _ => Datatype::resized(&int, 0, 4 * stride as isize).unwrap(),
        };
        let data =
            values.iter().flat_map(|&v| (0..stride).map(move |i| if i == 0 { v } else { GAP })).collect();
        Self { data, stride, datatype }
    }
    fn empty(count: usize, stride: usize) -> Self {
        Self::new(&vec![-1; count], stride)
    }
    fn input(&self, at: usize, count: usize) -> InputBuffer<'_> {
        let addr = self.data.as_ptr().wrapping_add(at * self.stride).cast();
        // SAFETY: this thread's, and it lives for as long as the input (buffer rule 1).
        unsafe { InputBuffer::new(addr, count, &self.datatype) }
    }
    fn output(&self, at: usize, count: usize) -> OutputBuffer<'_> {
        let addr = self.data.as_ptr().cast_mut().wrapping_add(at * self.stride).cast();
        // SAFETY: this thread's, and it lives for as long as the output;
        // tests read it when the collective is over (buffer rule 2).
        unsafe { OutputBuffer::new(addr, count, &self.datatype) }
    }
    fn all(&self) -> InputBuffer<'_> {
        self.input(0, self.data.len() / self.stride)
    }
    fn all_out(&self) -> OutputBuffer<'_> {
        self.output(0, self.data.len() / self.stride)
    }
    fn check(&self, expected: impl IntoIterator<Item = i32>, what: &str) {
        let values: Vec<i32> = self.data.iter().step_by(self.stride).copied().collect();
        assert_eq!(values, expected.into_iter().collect::<Vec<_>>(), "{what}");
        let gaps = self.data.iter().enumerate().filter(|(i, _)| i % self.stride != 0);
        assert!(gaps.into_iter().all(|(_, &gap)| gap == GAP), "{what}: a gap was overwritten");
    }
}

/// Runs `body` on 1 to 5 ranks with every combination of dense and gappy buffers.
fn everywhere(body: impl Fn(&ThreadTransport, usize, usize) + Sync) {
    for size in 1..=5 {
        for (a, b) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            threads::ranks(size, |transport| body(transport, a, b));
        }
    }
}

fn sum() -> Op {
    Op::predefined(abi::MPI_SUM).unwrap()
}
fn kernel_of<'a>(op: &'a Op, datatype: &'a Datatype) -> OpKernel<'a> {
    OpKernel { op, datatype, handle: abi::MPI_INT }
}
/// 10 r + i: what rank r has at place i.
fn own(rank: usize, count: usize) -> Vec<i32> {
    (0..count).map(|i| (10 * rank + i) as i32).collect()
}

#[test]
fn broadcasts_keep_gaps() {
    everywhere(|transport, stride, _| {
        let buffer =
            if transport.rank() == 0 { Ints::new(&[4, 5, 6], stride) } else { Ints::empty(3, stride) };
        run(intracomm::bcast(transport, buffer.all_out(), 0)).unwrap();
        buffer.check([4, 5, 6], "bcast");
    });
}

#[test]
fn gathers_place_pieces_of_different_sizes_and_in_place() {
    everywhere(|transport, a, b| {
        let (rank, size) = (transport.rank(), transport.size());
        let root = size - 1;
        let starts: Vec<usize> = (0..=size).map(|r| r * (r + 1) / 2 + r).collect();
        let send = Ints::new(&own(rank, rank + 1), a);
        for in_place in [false, true] {
            let recv = Ints::empty(starts[size], b);
            if in_place && rank == root {
                super::buffer::copy(send.all(), &recv.output(starts[rank], rank + 1)).unwrap();
            }
            let from = (!in_place || rank != root).then(|| send.all());
            run(algorithms::gather(transport, from, |r| recv.output(starts[r], r + 1), root)).unwrap();
            if rank == root {
                // A place is left free after each piece.
                let expected = (0..size).flat_map(|r| [own(r, r + 1), vec![-1]].concat());
                recv.check(expected.take(starts[size]), "gatherv");
            }
        }
    });
}

#[test]
fn scatters_hand_out_pieces_of_different_sizes() {
    everywhere(|transport, a, b| {
        let (rank, size) = (transport.rank(), transport.size());
        let starts: Vec<usize> = (0..=size).map(|r| r * (r + 1) / 2).collect();
        let all: Vec<i32> = (0..size).flat_map(|r| own(r, r + 1)).collect();
        let send = Ints::new(&all, a);
        let recv = Ints::empty(rank + 1, b);
        run(algorithms::scatter(transport, |r| send.input(starts[r], r + 1), Some(recv.all_out()), 0))
            .unwrap();
        recv.check(own(rank, rank + 1), "scatterv");
    });
}

#[test]
fn allgathers_agree_in_every_layout() {
    everywhere(|transport, a, b| {
        let (rank, size) = (transport.rank(), transport.size());
        let send = Ints::new(&own(rank, 2), a);
        // Dense pieces, then pieces with a free place between them, in descending order.
        let recv = Ints::empty(2 * size, b);
        run(intracomm::allgather(transport, Some(send.all()), |r| recv.output(2 * r, 2))).unwrap();
        recv.check((0..size).flat_map(|r| own(r, 2)), "allgather");
        run(intracomm::allgather(transport, None, |r| recv.output(2 * r, 2))).unwrap();
        recv.check((0..size).flat_map(|r| own(r, 2)), "allgather in place");
        let recv = Ints::empty(3 * size, b);
        run(intracomm::allgather(transport, Some(send.all()), |r| recv.output(3 * (size - 1 - r), 2)))
            .unwrap();
        let expected = (0..size).rev().flat_map(|r| [own(r, 2), vec![-1]].concat());
        recv.check(expected, "allgatherv");
    });
}

#[test]
fn an_alltoall_transposes_and_does_so_in_place() {
    everywhere(|transport, a, b| {
        let (rank, size) = (transport.rank(), transport.size());
        let send = Ints::new(&(0..size).map(|to| (100 * rank + to) as i32).collect::<Vec<_>>(), a);
        let recv = Ints::empty(size, b);
        run(intracomm::alltoall(transport, Some(|r| send.input(r, 1)), |r| recv.output(r, 1))).unwrap();
        recv.check((0..size).map(|from| (100 * from + rank) as i32), "alltoall");
        // Transposed again, in place.
        run(intracomm::alltoall(transport, None::<fn(usize) -> InputBuffer<'static>>, |r| recv.output(r, 1)))
            .unwrap();
        recv.check((0..size).map(|to| (100 * rank + to) as i32), "alltoall in place");
    });
}

#[test]
fn reductions_and_scans_add_up() {
    everywhere(|transport, a, b| {
        let (rank, size) = (transport.rank(), transport.size());
        let op = sum();
        let int = Datatype::predefined(abi::MPI_INT).unwrap();
        let dense = kernel_of(&op, &int);
        let send = Ints::new(&own(rank, size), 1);
        let total = |i: usize| (0..size).map(|r| (10 * r + i) as i32).sum::<i32>();
        let up_to = |end: usize, i: usize| (0..end).map(|r| (10 * r + i) as i32).sum::<i32>();
        let recv = || Ints::empty(size, 1);

        let got = recv();
        run(intracomm::reduce(transport, send.all(), Some(got.all_out()), dense, size - 1)).unwrap();
        if rank == size - 1 {
            got.check((0..size).map(total), "reduce");
        }
        let got = recv();
        run(intracomm::allreduce(transport, send.all(), got.all_out(), dense)).unwrap();
        got.check((0..size).map(total), "allreduce");
        let got = Ints::empty(1, 1);
        run(intracomm::reduce_scatter(transport, send.all(), got.all_out(), |_| 1, dense)).unwrap();
        got.check([total(rank)], "reduce_scatter");
        let got = recv();
        run(intracomm::scan(transport, send.all(), got.all_out(), dense)).unwrap();
        got.check((0..size).map(|i| up_to(rank + 1, i)), "scan");
        let got = recv();
        run(intracomm::exscan(transport, send.all(), got.all_out(), dense)).unwrap();
        got.check((0..size).map(|i| if rank == 0 { -1 } else { up_to(rank, i) }), "exscan");

        // A user's operation takes derived types, with their gaps.
        let user = Op::closure(
            Box::new(|left, right, count, datatype| {
                for i in 0..count as isize {
                    let at = (i * datatype.extent() / 4) as usize;
                    // SAFETY: `count` elements of an int each, an extent apart.
                    unsafe { *right.cast::<i32>().add(at) += *left.cast::<i32>().add(at) };
                }
            }),
            true,
        );
        let (send, got) = (Ints::new(&own(rank, size), a), Ints::empty(size, b));
        let gappy = kernel_of(&user, &send.datatype);
        run(intracomm::allreduce(transport, send.all(), got.all_out(), gappy)).unwrap();
        got.check((0..size).map(total), "allreduce of a derived type");
    });
}

/// Runs `body` as every rank of two groups of `near` and `far` members: (the sides, in the first group?, own rank).
fn two_groups(
    near: usize,
    far: usize,
    body: impl Fn(&Sides<Subset<'_, ThreadTransport>>, bool, usize) + Sync,
) {
    threads::ranks(near + far, |transport| {
        let (first, second): (Vec<usize>, Vec<usize>) = (0..near + far).partition(|&r| r < near);
        let is_first = transport.rank() < near;
        let rank = if is_first { transport.rank() } else { transport.rank() - near };
        let (own, other) = if is_first { (&first, &second) } else { (&second, &first) };
        let sides = Sides {
            local: Subset { transport, ranks: own, rank },
            remote: Subset { transport, ranks: other, rank },
        };
        body(&sides, is_first, rank);
    });
}

#[test]
fn between_two_groups_the_other_side_is_what_counts() {
    for (near, far) in [(1, 1), (1, 3), (3, 1), (2, 2), (2, 3), (4, 3)] {
        two_groups(near, far, |sides, first, rank| {
            // Rank r of the first group has 10 r + i, of the second 10 (r + 50) + i.
            let number = |first: bool, r: usize| if first { r } else { r + 50 };
            let (me, others) = (number(first, rank), sides.remote.size());
            let theirs = |i: usize| (0..others).map(|r| (10 * number(!first, r) + i) as i32).sum::<i32>();
            let (op, int) = (sum(), Datatype::predefined(abi::MPI_INT).unwrap());
            let dense = kernel_of(&op, &int);
            let send = Ints::new(&own(me, 2), 1);

            run(intercomm::barrier(sides)).unwrap();
            let got = Ints::empty(2 * others, 2);
            run(intercomm::allgather(sides, send.all(), |r| got.output(2 * r, 2))).unwrap();
            got.check((0..others).flat_map(|r| own(number(!first, r), 2)), "allgather");

            let got = Ints::empty(2, 1);
            run(intercomm::allreduce(sides, send.all(), got.all_out(), dense)).unwrap();
            got.check((0..2).map(theirs), "allreduce");

            let send_all = Ints::new(&(0..others).map(|to| (100 * me + to) as i32).collect::<Vec<_>>(), 1);
            let got = Ints::empty(others, 1);
            run(intercomm::alltoall(sides, |r| send_all.input(r, 1), |r| got.output(r, 1))).unwrap();
            got.check((0..others).map(|r| (100 * number(!first, r) + rank) as i32), "alltoall");

            let counted = near * far;
            let (all, mine) = (Ints::new(&own(me, counted), 1), counted / sides.local.size());
            let got = Ints::empty(mine, 1);
            run(intercomm::reduce_scatter(sides, all.all(), got.all_out(), |_| mine, dense)).unwrap();
            got.check((rank * mine..(rank + 1) * mine).map(theirs), "reduce_scatter");
        });
    }
}

#[test]
fn between_two_groups_a_root_deals_with_the_other_side() {
    for (near, far) in [(1, 1), (1, 3), (3, 1), (2, 3)] {
        two_groups(near, far, |sides, first, rank| {
            // The last of the first group is the root.
            let root = match (first, rank + 1 == near) {
                (true, true) => IntercommRoot::Caller,
                (true, false) => IntercommRoot::Sibling,
                (false, _) => IntercommRoot::Remote(near - 1),
            };
            let (op, int) = (sum(), Datatype::predefined(abi::MPI_INT).unwrap());
            let buffer = if first { Ints::new(&[7, 8], 2) } else { Ints::empty(2, 2) };
            run(intercomm::bcast(sides, buffer.all_out(), root)).unwrap();
            buffer.check([7, 8], "bcast");

            let (send, got) = (Ints::new(&own(rank, 2), 1), Ints::empty(2 * far, 2));
            run(intercomm::gather(sides, Some(send.all()), |r| got.output(2 * r, 2), root)).unwrap();
            if root == IntercommRoot::Caller {
                got.check((0..far).flat_map(|r| own(r, 2)), "gather");
            }
            let back = Ints::empty(2, 1);
            run(intercomm::scatter(sides, |r| got.input(2 * r, 2), Some(back.all_out()), root)).unwrap();
            if !first {
                back.check(own(rank, 2), "scatter");
            }
            let got = Ints::empty(2, 1);
            let dense = kernel_of(&op, &int);
            run(intercomm::reduce(sides, Some(send.all()), Some(got.all_out()), dense, root)).unwrap();
            if root == IntercommRoot::Caller {
                got.check((0..2).map(|i| (0..far).map(|r| (10 * r + i) as i32).sum()), "reduce");
            }
        });
    }
}

#[test]
fn what_goes_up_a_grid_arrives_from_below_however_few_places_there_are() {
    use crate::comm::topology::{Cart, Topology};
    use crate::comm::{Comm, Group};
    use crate::events::Registry;
    use std::sync::Arc;
    for size in 1..=4_usize {
        for periodic in [false, true] {
            threads::ranks(size, |transport| {
                let rank = transport.rank();
                let cart = Cart::new(vec![size as i32], vec![periodic], size as u32).unwrap();
                let (below, above) = cart.shift(rank as u32, 0, 1).unwrap();
                let events = Registry::new(Box::new(|_| {})).attach(0);
                let comm = Comm::intra(8, rank as u32, Group::run(0, size as u32), events)
                    .with_topology(Some(Arc::new(Topology::Cart(cart))));
                // Down goes 10 r, up goes 10 r + 1.
                let (send, recv) = (Ints::new(&own(rank, 2), 1), Ints::empty(2, 2));
                run(super::neighbor::exchange(transport, &comm, |i| send.input(i, 1), |i| recv.output(i, 1)))
                    .unwrap();
                let expected = |from: i32, value: i32| if from < 0 { -1 } else { 10 * from + value };
                recv.check([expected(below, 1), expected(above, 0)], "neighbours");
            });
        }
    }
}
