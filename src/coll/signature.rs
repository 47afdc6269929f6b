//! What the ranks of a communicator must agree on in a collective call: as people read it ([`Outline`](super::Outline)), and as numbers that can
//! be compared ([`Signature`]).

use super::call::{CallRoot, CollectiveOp, Elements, Form, Pieces, TypedOp};
use super::intercomm::IntercommRoot;
use super::outline::Amount;
use crate::abi;
use crate::comm::Comm;
use crate::datatype::{Datatype, kind_of};

/// Numbers of a signature that must be equal at all members.
pub const FIELDS: usize = 7;

/// What must be equal at all members, and what must add up to nothing over all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Signature {
    /// The function, the root, the operation, bytes, class of their type, lengths for each rank, other arguments. 0 in the class and the last one
    /// stands for any.
    pub fields: [u64; FIELDS],
    /// What the caller sends to each member less what it expects of each, every length mixed with who sends it to whom.
    pub balance: u64,
}

/// In which argument two calls differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// They are different functions.
    Function,
    /// The roots.
    Root,
    /// The operations of a reduction.
    Op,
    /// The lengths.
    Length,
    /// The types.
    Type,
    /// The list of lengths.
    Lengths,
    /// Other arguments.
    Arguments,
}

impl Signature {
    /// The signature of a call of `function` that moves no data of the program's, and all of whose members must give the arguments that `about` has in
    /// words; any, if that is empty.
    #[must_use]
    pub fn of_call(function: &str, about: &str) -> Self {
        let arguments = if about.is_empty() { 0 } else { text_number(about) | 1 };
        Self { fields: [text_number(function), 0, 0, 0, 0, 0, arguments], balance: 0 }
    }

    /// Returns the first argument in which two calls differ, if there is one.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        use Difference::{Arguments, Function, Length, Lengths, Op, Root, Type};
        let kinds = [Function, Root, Op, Length, Type, Lengths, Arguments];
        (0..FIELDS).zip(kinds).find_map(|(at, kind)| {
            let (own, other) = (self.fields[at], other.fields[at]);
            let is_any = matches!(kind, Type | Arguments) && (own == 0 || other == 0);
            (own != other && !is_any).then_some(kind)
        })
    }
}

/// Predefined operations of reductions, and their names.
const OPS: [(usize, &str); 12] = [
    (abi::MPI_SUM, "MPI_SUM"),
    (abi::MPI_MIN, "MPI_MIN"),
    (abi::MPI_MAX, "MPI_MAX"),
    (abi::MPI_PROD, "MPI_PROD"),
    (abi::MPI_BAND, "MPI_BAND"),
    (abi::MPI_BOR, "MPI_BOR"),
    (abi::MPI_BXOR, "MPI_BXOR"),
    (abi::MPI_LAND, "MPI_LAND"),
    (abi::MPI_LOR, "MPI_LOR"),
    (abi::MPI_LXOR, "MPI_LXOR"),
    (abi::MPI_MINLOC, "MPI_MINLOC"),
    (abi::MPI_MAXLOC, "MPI_MAXLOC"),
];

fn op(op: &TypedOp) -> (u64, &'static str) {
    let found = OPS.iter().find(|(handle, _)| op.op.is(*handle));
    found.map_or((1, "an operation of the program's"), |(handle, name)| (*handle as u64, name))
}

/// A number for the class and size of the elements; 0 for what may stand for others: bytes, packed data, and mixtures.
fn class(datatype: &Datatype) -> u64 {
    datatype.uniform().and_then(kind_of).unwrap_or(0)
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// A number for "`from` sends `to` so many bytes". Nothing is sent alike by all.
fn transfer(from: u32, to: u32, bytes: usize) -> u64 {
    if bytes == 0 { 0 } else { mix(mix(u64::from(from) << 32 | u64::from(to)) ^ bytes as u64) }
}

fn text_number(text: &str) -> u64 {
    text.bytes().fold(0, |number, byte| mix(number ^ u64::from(byte)))
}

/// How much of what.
fn data(count: usize, datatype: &Datatype) -> Amount {
    Amount { count, name: datatype.initial_name(), size: datatype.size() }
}

/// What an operation is about at the caller: all data that has one length for all ranks.
enum Even<'a> {
    Elements(&'a Elements),
    Piece(usize, &'a Datatype),
    None,
}

impl<'a> Even<'a> {
    fn of(pieces: Option<&'a Pieces>, elements: Option<&'a Elements>) -> Self {
        match (pieces.map(|pieces| &pieces.form), elements) {
            (Some(Form::Even(count, datatype)), _) => Self::Piece(*count, datatype),
            (_, Some(elements)) => Self::Elements(elements),
            _ => Self::None,
        }
    }

    fn numbers(&self) -> (u64, u64) {
        match self {
            Self::Elements(elements) => (elements.bytes() as u64, class(elements.datatype())),
            Self::Piece(count, datatype) => (count.wrapping_mul(datatype.size()) as u64, class(datatype)),
            Self::None => (0, 0),
        }
    }

    fn amount(&self) -> Option<Amount> {
        match self {
            Self::Elements(elements) => Some(data(elements.count(), elements.datatype())),
            Self::Piece(count, datatype) => Some(data(*count, datatype)),
            Self::None => None,
        }
    }
}

impl CollectiveOp {
    fn even(&self) -> Even<'_> {
        match self {
            Self::Bcast(data, _)
            | Self::Allreduce(_, data, _)
            | Self::Scan(_, data, _)
            | Self::Exscan(_, data, _) => Even::Elements(data),
            Self::Gather(own, pieces, _, true) | Self::Scatter(pieces, own, _, true) => {
                Even::of(pieces.as_ref(), own.as_ref())
            }
            Self::Allgather(_, pieces) | Self::Alltoall(_, pieces) => Even::of(Some(pieces), None),
            Self::Reduce(data, result, ..) => Even::of(None, data.as_ref().or(result.as_ref())),
            _ => Even::None,
        }
    }

    pub(super) fn root(&self) -> Option<u32> {
        match self {
            Self::Bcast(_, root)
            | Self::Gather(_, _, root, _)
            | Self::Scatter(_, _, root, _)
            | Self::Reduce(_, _, _, root) => match root {
                CallRoot::Intracomm(rank) => u32::try_from(*rank).ok(),
                CallRoot::Intercomm(IntercommRoot::Remote(rank)) => u32::try_from(*rank).ok(),
                CallRoot::Intercomm(_) => None,
            },
            _ => None,
        }
    }

    fn reduction(&self) -> Option<&TypedOp> {
        match self {
            Self::Reduce(_, _, op, _)
            | Self::Allreduce(_, _, op)
            | Self::ReduceScatter(_, _, _, op)
            | Self::Scan(_, _, op)
            | Self::Exscan(_, _, op) => Some(op),
            _ => None,
        }
    }

    /// How much of what the call moves, if that is the same for all ranks.
    pub(super) fn amount(&self) -> Option<Amount> {
        self.even().amount()
    }

    /// The name of the operation of a reduction; empty for others.
    pub(super) fn reduction_name(&self) -> &'static str {
        self.reduction().map_or("", |typed| op(typed).1)
    }

    /// Returns the signature of a call of `function` on `comm`. Of intercommunicators, whose sides give different arguments, it has the function alone.
    #[must_use]
    pub fn signature(&self, function: &str, comm: &Comm) -> Signature {
        let function = text_number(function);
        if comm.is_inter() {
            return Signature { fields: [function, 0, 0, 0, 0, 0, 0], balance: 0 };
        }
        let root = self.root().map_or(0, |root| u64::from(root) + 1);
        let op = self.reduction().map_or(0, |typed| op(typed).0);
        let (bytes, class) = self.even().numbers();
        Signature {
            fields: [function, root, op, bytes, class, self.lengths(comm), 0],
            balance: self.balance(comm),
        }
    }

    /// A number for the lengths that all members must give alike for each of them.
    fn lengths(&self, comm: &Comm) -> u64 {
        let all = |bytes: &dyn Fn(usize) -> usize| {
            (0..comm.size() as usize).fold(1, |number, rank| mix(number ^ bytes(rank) as u64))
        };
        match self {
            Self::Allgather(_, pieces) if !matches!(pieces.form, Form::Even(..)) => {
                all(&|rank| pieces.bytes(rank))
            }
            Self::ReduceScatter(_, _, counts, _) => all(&|rank| counts[rank]),
            _ => 0,
        }
    }

    fn balance(&self, comm: &Comm) -> u64 {
        let (own, all) = (comm.rank(), 0..comm.size());
        let to_all = |pieces: &Pieces| {
            all.clone().map(|to| transfer(own, to, pieces.bytes(to as usize))).fold(0, u64::wrapping_add)
        };
        let from_all = |pieces: &Pieces| {
            all.clone()
                .map(|from| transfer(from, own, pieces.bytes(from as usize)))
                .fold(0, u64::wrapping_add)
        };
        let others = |list: &[i32], of: &dyn Fn(u32, usize) -> u64| {
            let there =
                list.iter().enumerate().filter_map(|(at, rank)| Some((u32::try_from(*rank).ok()?, at)));
            there.map(|(rank, at)| of(rank, at)).fold(0, u64::wrapping_add)
        };
        match self {
            // In place nothing is sent to oneself: the root's own piece counts on both sides.
            Self::Gather(send, pieces, root, false) => {
                let CallRoot::Intracomm(root) = root else { return 0 };
                let root = *root as u32;
                let expected = pieces.as_ref().map_or(0, from_all);
                let sent = match send {
                    Some(send) => transfer(own, root, send.bytes()),
                    None => {
                        pieces.as_ref().map_or(0, |pieces| transfer(own, own, pieces.bytes(own as usize)))
                    }
                };
                sent.wrapping_sub(expected)
            }
            Self::Scatter(pieces, recv, root, false) => {
                let CallRoot::Intracomm(root) = root else { return 0 };
                let sent = pieces.as_ref().map_or(0, to_all);
                let expected = match recv {
                    Some(recv) => transfer(*root as u32, own, recv.bytes()),
                    None => {
                        pieces.as_ref().map_or(0, |pieces| transfer(own, own, pieces.bytes(own as usize)))
                    }
                };
                sent.wrapping_sub(expected)
            }
            // What a member sends must be what it says that it gets of itself.
            Self::Allgather(Some(send), pieces) => {
                transfer(own, own, send.bytes()).wrapping_sub(transfer(own, own, pieces.bytes(own as usize)))
            }
            Self::Alltoall(Some(send), recv) => to_all(send).wrapping_sub(from_all(recv)),
            Self::Alltoall(None, recv) => to_all(recv).wrapping_sub(from_all(recv)),
            Self::NeighbourAllgather(send, recv) => {
                let sent = others(comm.destinations(), &|to, _| transfer(own, to, send.bytes()));
                let expected = others(comm.sources(), &|from, at| transfer(from, own, recv.bytes(at)));
                sent.wrapping_sub(expected)
            }
            Self::NeighbourAlltoall(send, recv) => {
                let sent = others(comm.destinations(), &|to, at| transfer(own, to, send.bytes(at)));
                let expected = others(comm.sources(), &|from, at| transfer(from, own, recv.bytes(at)));
                sent.wrapping_sub(expected)
            }
            _ => 0,
        }
    }
}
