//! What the ranks of a communicator must agree on in a collective call: as people read it
//! ([`Outline`](super::Outline)), and as numbers that can be compared ([`Signature`]).

use super::call::{CallRoot, CollectiveOp, Elements, Form, Pieces, TypedOp};
use super::intercomm::IntercommRoot;
use super::outline::Amount;
use crate::abi;
use crate::comm::{Comm, Group};
use crate::datatype::Datatype;
use crate::shm::telemetry::RootAbout;
use core::iter::Sum;
use core::ops::{Add, Sub};

/// Numbers of a signature that must be equal at all members.
pub const FIELDS: usize = 7;

/// What must be equal at all members, and what must add up to nothing over all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Signature {
    /// The function, the root, the operation, bytes, lengths for each rank, the type, other arguments.
    /// 0 in the last two stands for any.
    pub fields: [u64; FIELDS],
    /// What the caller sends to each member less what it expects of each.
    pub balance: Balance,
}

/// What is sent less what is expected, every transfer mixed with who sends it to whom: over all members nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Balance {
    /// Of lengths.
    pub lengths: u64,
    /// Of types that stand for no others.
    pub types: u64,
    /// Whether there is a type that may stand for others: then nobody knows what types should add up to.
    pub has_any: bool,
    /// Of the root between two groups: those who name it less those who are it.
    pub roots: u64,
}

impl Add for Balance {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            lengths: self.lengths.wrapping_add(other.lengths),
            types: self.types.wrapping_add(other.types),
            has_any: self.has_any || other.has_any,
            roots: self.roots.wrapping_add(other.roots),
        }
    }
}

impl Sub for Balance {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        let less = Self {
            lengths: other.lengths.wrapping_neg(),
            types: other.types.wrapping_neg(),
            roots: other.roots.wrapping_neg(),
            ..other
        };
        self.add(less)
    }
}

impl Sum for Balance {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
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
    /// The signature of a call of `function` that moves no data of the program's, and all of whose members must give
    /// the arguments that `about` has in words; any, if that is empty.
    #[must_use]
    pub fn of_call(function: &str, about: &str) -> Self {
        let arguments = if about.is_empty() { 0 } else { text_number(about) | 1 };
        Self { fields: [text_number(function), 0, 0, 0, 0, 0, arguments], balance: Balance::default() }
    }

    /// Returns the first argument in which two calls differ, if there is one.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        use Difference::{Arguments, Function, Length, Lengths, Op, Root, Type};
        let kinds = [Function, Root, Op, Length, Lengths, Type, Arguments];
        (0..FIELDS).zip(kinds).find_map(|(at, kind)| {
            let (own, other) = (self.fields[at], other.fields[at]);
            let is_any = matches!(kind, Type | Arguments) && (own == 0 || other == 0);
            (own != other && !is_any).then_some(kind)
        })
    }
}

/// A number for the group of an intercommunicator in which a member says that the root is.
fn group_of_root(comm: &Comm, root: RootAbout) -> u64 {
    let group = match root {
        RootAbout::Rank(_) => comm.peers(),
        RootAbout::Caller | RootAbout::Sibling => comm.group(),
    };
    group.iter().min().map_or(0, |lowest| u64::from(lowest) + 1)
}

/// Who names the root between two groups, less who is it: nothing over all members if one rank says that it is the root
/// and every member of the other group names it.
fn named_roots(comm: &Comm, root: RootAbout) -> u64 {
    let number = |group: &Group, rank: u32| mix(u64::from(group.world_rank(rank)) + 1);
    match root {
        RootAbout::Rank(root) => number(comm.peers(), root),
        RootAbout::Caller => {
            number(comm.group(), comm.rank()).wrapping_mul(u64::from(comm.peers().size())).wrapping_neg()
        }
        RootAbout::Sibling => 0,
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

/// A number for the basic types of so many bytes, one after the other;
/// 0 if one of them may stand for others, or there is none.
fn types(bytes: usize, datatype: &Datatype) -> u64 {
    datatype.sequence_number(bytes).unwrap_or(0)
}

fn mix(number: u64) -> u64 {
    let mixed = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// So many bytes of elements of a type.
type Data<'a> = (usize, &'a Datatype);

fn data_of(elements: &Elements) -> Data<'_> {
    (elements.bytes(), elements.datatype())
}

/// Numbers for "`from` sends `to` these elements". Nothing is sent alike by all.
fn transfer(from: u32, to: u32, (bytes, datatype): Data<'_>) -> Balance {
    if bytes == 0 {
        return Balance::default();
    }
    let pair = mix(u64::from(from) << 32 | u64::from(to));
    let number = types(bytes, datatype);
    Balance {
        lengths: mix(pair ^ bytes as u64),
        types: if number == 0 { 0 } else { mix(pair ^ number) },
        has_any: number == 0,
        roots: 0,
    }
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

    fn data(&self) -> Option<Data<'a>> {
        match self {
            Self::Elements(elements) => Some(data_of(elements)),
            Self::Piece(count, datatype) => Some((count.wrapping_mul(datatype.size()), datatype)),
            Self::None => None,
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

    pub(super) fn root(&self) -> Option<RootAbout> {
        let rank = |rank: usize| u32::try_from(rank).ok().map(RootAbout::Rank);
        match self {
            Self::Bcast(_, root)
            | Self::Gather(_, _, root, _)
            | Self::Scatter(_, _, root, _)
            | Self::Reduce(_, _, _, root) => match root {
                CallRoot::Intracomm(root) => rank(*root),
                CallRoot::Intercomm(IntercommRoot::Remote(root)) => rank(*root),
                CallRoot::Intercomm(IntercommRoot::Caller) => Some(RootAbout::Caller),
                CallRoot::Intercomm(IntercommRoot::Sibling) => Some(RootAbout::Sibling),
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

    /// What elements consist of whose type has no name, if that is the same for all ranks.
    pub(super) fn contents_without_name(&self) -> Option<String> {
        let (bytes, datatype) = self.even().data()?;
        datatype.initial_name().is_empty().then(|| datatype.contents_text(bytes))
    }

    /// The name of the operation of a reduction; empty for others.
    pub(super) fn reduction_name(&self) -> &'static str {
        self.reduction().map_or("", |typed| op(typed).1)
    }

    /// Returns the signature of a call of `function` on `comm`. Of intercommunicators, whose sides give different
    /// arguments, it has the function alone, in which group the root is, and who is it.
    #[must_use]
    pub fn signature(&self, function: &str, comm: &Comm) -> Signature {
        let function = text_number(function);
        if comm.is_inter() {
            let group = self.root().map_or(0, |root| group_of_root(comm, root));
            let roots = self.root().map_or(0, |root| named_roots(comm, root));
            let balance = Balance { roots, ..Balance::default() };
            return Signature { fields: [function, group, 0, 0, 0, 0, 0], balance };
        }
        let root = RootAbout::to_word(self.root());
        let op = self.reduction().map_or(0, |typed| op(typed).0);
        let (lengths, listed) = self.lists(comm);
        let (bytes, types) =
            self.even().data().map_or((0, listed), |(bytes, datatype)| (bytes, types(bytes, datatype)));
        Signature {
            fields: [function, root, op, bytes as u64, lengths, types, 0],
            balance: self.balance(comm),
        }
    }

    /// Numbers for the lengths and types that all members must give alike for each of them.
    fn lists(&self, comm: &Comm) -> (u64, u64) {
        let all = |number: &dyn Fn(usize) -> u64| {
            (0..comm.size() as usize).fold(1, |all, rank| mix(all ^ number(rank)))
        };
        match self {
            Self::Allgather(_, pieces) if !pieces.are_even() => {
                let piece = |rank| pieces.data(rank);
                let is_any = |rank| piece(rank).0 > 0 && types(piece(rank).0, piece(rank).1) == 0;
                let some_any = (0..comm.size() as usize).any(is_any);
                let types = |rank| types(piece(rank).0, piece(rank).1);
                (all(&|rank| piece(rank).0 as u64), if some_any { 0 } else { all(&types) })
            }
            Self::ReduceScatter(operands, _, counts, _) => {
                (all(&|rank| counts[rank] as u64), types(operands.bytes(), operands.datatype()))
            }
            _ => (0, 0),
        }
    }

    fn balance(&self, comm: &Comm) -> Balance {
        let (own, all) = (comm.rank(), 0..comm.size());
        let to_all =
            |pieces: &Pieces| all.clone().map(|to| transfer(own, to, pieces.data(to as usize))).sum();
        let from_all =
            |pieces: &Pieces| all.clone().map(|from| transfer(from, own, pieces.data(from as usize))).sum();
        let to_oneself = |data: Data<'_>| transfer(own, own, data);
        let own_piece = |pieces: &Pieces| to_oneself(pieces.data(own as usize));
        let others = |list: &[i32], of: &dyn Fn(u32, usize) -> Balance| -> Balance {
            let there =
                list.iter().enumerate().filter_map(|(at, rank)| Some((u32::try_from(*rank).ok()?, at)));
            there.map(|(rank, at)| of(rank, at)).sum()
        };
        match self {
            // In place nothing is sent to oneself: the root's own piece counts on both sides.
            Self::Gather(send, pieces, CallRoot::Intracomm(root), false) => {
                let expected = pieces.as_ref().map_or_else(Balance::default, from_all);
                let sent = match (send, pieces) {
                    (Some(send), _) => transfer(own, *root as u32, data_of(send)),
                    (None, pieces) => pieces.as_ref().map_or_else(Balance::default, own_piece),
                };
                sent - expected
            }
            Self::Scatter(pieces, recv, CallRoot::Intracomm(root), false) => {
                let sent = pieces.as_ref().map_or_else(Balance::default, to_all);
                let expected = match (recv, pieces) {
                    (Some(recv), _) => transfer(*root as u32, own, data_of(recv)),
                    (None, pieces) => pieces.as_ref().map_or_else(Balance::default, own_piece),
                };
                sent - expected
            }
            // What a member sends itself must be what it expects of itself.
            Self::Gather(Some(one), Some(pieces), _, true)
            | Self::Scatter(Some(pieces), Some(one), _, true)
            | Self::Allgather(Some(one), pieces) => to_oneself(data_of(one)) - own_piece(pieces),
            Self::Alltoall(Some(send), recv) => to_all(send) - from_all(recv),
            Self::Alltoall(None, recv) => to_all(recv) - from_all(recv),
            Self::NeighbourAllgather(send, recv) => {
                let sent = others(comm.destinations(), &|to, _| transfer(own, to, data_of(send)));
                let expected = others(comm.sources(), &|from, at| transfer(from, own, recv.data(at)));
                sent - expected
            }
            Self::NeighbourAlltoall(send, recv) => {
                let sent = others(comm.destinations(), &|to, at| transfer(own, to, send.data(at)));
                let expected = others(comm.sources(), &|from, at| transfer(from, own, recv.data(at)));
                sent - expected
            }
            _ => Balance::default(),
        }
    }
}
