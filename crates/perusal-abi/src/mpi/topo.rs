//! Topologies (MPI 5.0 §8).

use super::comm_create::{ANY, admit, hinted, making, split_by};
use crate::abi::*;
use crate::arguments::{Argument, Array, Integer, Room, Unbounded};
use crate::coll::call::Transports;
use crate::coll::{Purpose, Transport, allgather, allgatherv, run};
use crate::collective::{blocking, conclude};
use crate::comm::topology::{Cart, DistGraph, Graph, dims_create};
use crate::comm::{Comm, Topology};
use crate::comms;
use crate::error::{Error, Result};
use crate::info::Info;
use crate::process::engine;
use crate::types::MPI_Comm;
use core::ffi::c_int;
use std::sync::Arc;

/// A communicator of the first `members` ranks of `old` with `topology`; MPI_COMM_NULL for the others.
fn create(old: &Comm, members: u32, topology: Topology) -> Result<MPI_Comm> {
    let rank = old.rank();
    let color = (rank < members).then_some(0);
    match split_by(old, color, 0)? {
        Some(agreed) => admit(agreed, Some(Arc::new(topology)), old),
        None => Ok(MPI_COMM_NULL),
    }
}

fn within(handle: MPI_Comm) -> Result<Arc<Comm>> {
    let comm = comms::get(handle)?;
    if comm.is_inter() { Err(Error::Comm("an intercommunicator has no topology")) } else { Ok(comm) }
}

fn topology(handle: MPI_Comm) -> Result<Arc<Topology>> {
    comms::get(handle)?.topology().cloned().ok_or(Error::Topology("the communicator has none"))
}

fn with_cart<R>(handle: MPI_Comm, use_it: impl FnOnce(&Cart) -> Result<R>) -> Result<R> {
    match &*topology(handle)? {
        Topology::Cart(cart) => use_it(cart),
        _ => Err(Error::Topology("the communicator has no grid")),
    }
}

fn with_graph<R>(handle: MPI_Comm, use_it: impl FnOnce(&Graph) -> Result<R>) -> Result<R> {
    match &*topology(handle)? {
        Topology::Graph(graph) => use_it(graph),
        _ => Err(Error::Topology("the communicator has no graph")),
    }
}

fn with_dist_graph<R>(handle: MPI_Comm, use_it: impl FnOnce(&DistGraph) -> Result<R>) -> Result<R> {
    match &*topology(handle)? {
        Topology::DistGraph(graph) => use_it(graph),
        _ => Err(Error::Topology("the communicator has no distributed graph")),
    }
}

fn checked_rank(rank: c_int, size: u32) -> Result<u32> {
    let found = u32::try_from(rank).ok().filter(|&rank| rank < size);
    found.ok_or(Error::Rank { rank, size: size as i32 })
}

fn flags(list: &[c_int]) -> Vec<bool> {
    list.iter().map(|&flag| flag != 0).collect()
}

/// The graph of C's arguments, on `size` ranks.
fn graph(index: &[c_int], edges: Unbounded<'_, &[c_int]>, size: u32) -> Result<Graph> {
    let length = usize::try_from(index.last().copied().unwrap_or(0));
    let length = length.map_err(|_| Error::Arg("the length of an array is negative"))?;
    // SAFETY: MPI 5.0 §8.5.3: the last index is the number of edges.
    let edges = unsafe { edges.elements(length) }?;
    Graph::new(index.to_vec(), edges.to_vec(), size)
}

/// Weights of edges, or a constant that stands for them.
pub enum Weights<'a> {
    /// MPI_UNWEIGHTED, for so many edges.
    Not(usize),
    /// MPI_WEIGHTS_EMPTY, for so many edges.
    Empty(usize),
    /// One for each edge.
    Each(&'a [c_int]),
}

impl<'a, N: Integer> Array<'a, *const c_int, N> for Weights<'a> {
    unsafe fn of(from: *const c_int, length: N) -> Result<Self> {
        let n = usize::try_from(length.wide()).unwrap_or(0);
        match from.addr() {
            MPI_UNWEIGHTED => Ok(Self::Not(n)),
            MPI_WEIGHTS_EMPTY => Ok(Self::Empty(n)),
            // SAFETY: argument rule 1: any other address is an array of this length, and the call outlives the result.
            _ => unsafe { Array::of(from, length) }.map(Self::Each),
        }
    }
}

impl Weights<'_> {
    fn to_vec(&self) -> Vec<i32> {
        match self {
            Self::Not(n) => vec![1; *n],
            Self::Empty(n) => vec![0; *n],
            Self::Each(weights) => weights.to_vec(),
        }
    }

    fn are_there(&self) -> bool {
        !matches!(self, Self::Not(_))
    }
}

/// Ranks with their weights.
fn edges(ranks: &[c_int], weights: &Weights<'_>, size: u32) -> Result<Vec<(i32, i32)>> {
    let weights = weights.to_vec();
    if let Some(&rank) = ranks.iter().find(|&&rank| checked_rank(rank, size).is_err()) {
        return Err(Error::Rank { rank, size: size as i32 });
    }
    if weights.iter().any(|&weight| weight < 0) {
        return Err(Error::Arg("the weight of an edge is negative"));
    }
    Ok(ranks.iter().copied().zip(weights).collect())
}

/// Every rank's numbers, in rank order.
fn collected(comm: &Comm, own: &[i32]) -> Result<Vec<i32>> {
    let transports = blocking(engine()?, comm, Purpose::Create);
    let Transports::Intracomm(transport) = &transports else {
        return Err(Error::Comm("an intercommunicator"));
    };
    let (rank, size) = (transport.rank(), transport.size());
    let gathered = run(async {
        let mut lengths = vec![0; 4 * size];
        lengths[4 * rank..][..4].copy_from_slice(&(own.len() as u32).to_le_bytes());
        allgather(transport, &mut lengths).await?;
        let mut end = 0;
        let ends: Vec<usize> = numbers(&lengths)
            .map(|length| {
                end += 4 * length as usize;
                end
            })
            .collect();
        let mut all = vec![0; end];
        let bytes: Vec<u8> = own.iter().flat_map(|n| n.to_le_bytes()).collect();
        all[ends[rank] - bytes.len()..ends[rank]].copy_from_slice(&bytes);
        allgatherv(transport, &mut all, &ends).await?;
        Ok(numbers(&all).collect())
    });
    conclude(&transports, gathered)
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = i32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|&word| i32::from_le_bytes(word))
}

/// MPI_Dist_graph_create: any rank names any edges; each rank picks those that touch it.
fn picked(comm: &Comm, own: &[i32], weighted: bool) -> Result<DistGraph> {
    let rank = comm.rank() as i32;
    let mut graph = DistGraph { weighted, ..DistGraph::default() };
    for edge in collected(comm, own)?.as_chunks::<3>().0 {
        let &[from, to, weight] = edge;
        if to == rank {
            graph.sources.push((from, weight));
        }
        if from == rank {
            graph.destinations.push((to, weight));
        }
    }
    Ok(graph)
}

/// The rank that MPI_Cart_map and MPI_Graph_map suggest: the present one, if it has a place.
fn mapped(comm: &Comm, places: u32) -> c_int {
    if comm.rank() < places { comm.rank() as c_int } else { MPI_UNDEFINED }
}

/// The number of dimensions of a grid.
pub struct Dimensions;

impl Argument<'_, c_int> for Dimensions {
    unsafe fn of(from: c_int) -> Result<Self> {
        if from < 0 { Err(Error::Dims("their number is negative")) } else { Ok(Self) }
    }
}

/// MPI_Dims_create.
pub fn dims(nodes: c_int, _: Dimensions, dims: &mut [c_int]) -> Result<()> {
    dims_create(nodes, dims)
}

/// MPI_Cart_create. Ranks are not reordered.
pub fn cart_create(comm: MPI_Comm, _: Dimensions, dims: &[c_int], periods: &[c_int]) -> Result<MPI_Comm> {
    let old = within(comm)?;
    let about = || format!("dimensions {dims:?}, periods {:?}", flags(periods));
    making(&old, ("grids", about), || {
        let cart = Cart::new(dims.to_vec(), flags(periods), old.size())?;
        create(&old, cart.size(), Topology::Cart(cart))
    })
}

/// MPI_Cartdim_get.
pub fn cart_dim(comm: MPI_Comm) -> Result<usize> {
    with_cart(comm, |cart| Ok(cart.dims.len()))
}

/// MPI_Cart_get.
pub fn cart_get(
    comm: MPI_Comm,
    dims: Room<'_, c_int>,
    periods: Room<'_, c_int>,
    coords: Room<'_, c_int>,
) -> Result<()> {
    let rank = comms::get(comm)?.rank();
    with_cart(comm, |cart| {
        dims.fill(cart.dims.iter().copied());
        periods.fill(cart.periodic.iter().map(|&wraps| c_int::from(wraps)));
        coords.fill(cart.coords(rank));
        Ok(())
    })
}

/// MPI_Cart_rank.
pub fn cart_rank(comm: MPI_Comm, coords: Unbounded<'_, &[c_int]>) -> Result<u32> {
    // SAFETY: MPI 5.0 §8.5.5: an element for each dimension.
    with_cart(comm, |cart| cart.rank(unsafe { coords.elements(cart.dims.len()) }?))
}

/// MPI_Cart_coords.
pub fn cart_coords(comm: MPI_Comm, rank: c_int, coords: Room<'_, c_int>) -> Result<()> {
    with_cart(comm, |cart| {
        coords.fill(cart.coords(checked_rank(rank, cart.size())?));
        Ok(())
    })
}

/// MPI_Cart_shift.
pub fn cart_shift(comm: MPI_Comm, direction: c_int, by: c_int) -> Result<(c_int, c_int)> {
    let own = comms::get(comm)?.rank();
    with_cart(comm, |cart| cart.shift(own, usize::try_from(direction).unwrap_or(usize::MAX), by))
}

/// MPI_Cart_sub.
pub fn cart_sub(comm: MPI_Comm, remain: Unbounded<'_, &[c_int]>) -> Result<MPI_Comm> {
    let old = comms::get(comm)?;
    let (grid, which, place) = with_cart(comm, |cart| {
        // SAFETY: MPI 5.0 §8.5.7: an element for each dimension.
        let remain = unsafe { remain.elements(cart.dims.len()) }?;
        Ok(cart.sub(old.rank(), &flags(remain)))
    })?;
    let dims = grid.dims.clone();
    making(&old, ("dimensions that remain", || format!("dimensions {dims:?}")), || {
        match split_by(&old, Some(which), place)? {
            Some(agreed) => admit(agreed, Some(Arc::new(Topology::Cart(grid))), &old),
            None => Ok(MPI_COMM_NULL),
        }
    })
}

/// MPI_Cart_map.
pub fn cart_map(comm: MPI_Comm, _: Dimensions, dims: &[c_int], periods: &[c_int]) -> Result<c_int> {
    let old = within(comm)?;
    Ok(mapped(&old, Cart::new(dims.to_vec(), flags(periods), old.size())?.size()))
}

/// MPI_Graph_create. Ranks are not reordered.
pub fn graph_create(comm: MPI_Comm, index: &[c_int], edges: Unbounded<'_, &[c_int]>) -> Result<MPI_Comm> {
    let old = within(comm)?;
    let graph = graph(index, edges, old.size())?;
    let about = format!("index {:?}, edges {:?}", graph.index, graph.edges);
    making(&old, ("graphs", || about), || create(&old, index.len() as u32, Topology::Graph(graph)))
}

/// MPI_Graphdims_get: nodes and edges.
pub fn graph_dims(comm: MPI_Comm) -> Result<(usize, usize)> {
    with_graph(comm, |graph| Ok((graph.index.len(), graph.edges.len())))
}

/// MPI_Graph_get.
pub fn graph_get(comm: MPI_Comm, index: Room<'_, c_int>, edges: Room<'_, c_int>) -> Result<()> {
    with_graph(comm, |graph| {
        index.fill(graph.index.iter().copied());
        edges.fill(graph.edges.iter().copied());
        Ok(())
    })
}

/// MPI_Graph_neighbors_count.
pub fn graph_neighbours_count(comm: MPI_Comm, rank: c_int) -> Result<usize> {
    with_graph(comm, |graph| Ok(graph.neighbours(checked_rank(rank, graph.index.len() as u32)?).len()))
}

/// MPI_Graph_neighbors.
pub fn graph_neighbours(comm: MPI_Comm, rank: c_int, neighbours: Room<'_, c_int>) -> Result<()> {
    with_graph(comm, |graph| {
        let found = graph.neighbours(checked_rank(rank, graph.index.len() as u32)?);
        neighbours.fill(found.iter().copied());
        Ok(())
    })
}

/// MPI_Graph_map.
pub fn graph_map(comm: MPI_Comm, index: &[c_int], edges: Unbounded<'_, &[c_int]>) -> Result<c_int> {
    let old = within(comm)?;
    graph(index, edges, old.size())?;
    Ok(mapped(&old, index.len() as u32))
}

/// MPI_Dist_graph_create_adjacent. Ranks are not reordered.
pub fn dist_graph_create_adjacent(
    comm: MPI_Comm,
    sources: &[c_int],
    source_weights: Weights<'_>,
    destinations: &[c_int],
    destination_weights: Weights<'_>,
    hints: Info,
) -> Result<MPI_Comm> {
    let old = within(comm)?;
    making(&old, ANY, || {
        let graph = DistGraph {
            sources: edges(sources, &source_weights, old.size())?,
            destinations: edges(destinations, &destination_weights, old.size())?,
            weighted: source_weights.are_there() || destination_weights.are_there(),
        };
        hinted(create(&old, old.size(), Topology::DistGraph(graph))?, &hints)
    })
}

/// MPI_Dist_graph_create. Ranks are not reordered.
pub fn dist_graph_create(
    comm: MPI_Comm,
    sources: &[c_int],
    degrees: &[c_int],
    destinations: Unbounded<'_, &[c_int]>,
    weights: Unbounded<'_, Weights<'_>>,
    hints: Info,
) -> Result<MPI_Comm> {
    let old = within(comm)?;
    making(&old, ANY, || {
        if degrees.iter().any(|&degree| degree < 0) {
            return Err(Error::Arg("the degree of a node is negative"));
        }
        let total = degrees.iter().map(|&degree| degree as usize).sum();
        // SAFETY: MPI 5.0 §8.5.4: as many as the degrees add up to.
        let (destinations, weights) = unsafe { (destinations.elements(total)?, weights.elements(total)?) };
        let named = named_edges(sources, degrees, edges(destinations, &weights, old.size())?, old.size())?;
        let graph = picked(&old, &named, weights.are_there())?;
        hinted(create(&old, old.size(), Topology::DistGraph(graph))?, &hints)
    })
}

/// The edges that the caller names, as triplets of source, destination and weight.
fn named_edges(sources: &[c_int], degrees: &[c_int], ends: Vec<(i32, i32)>, size: u32) -> Result<Vec<i32>> {
    let starts =
        sources.iter().zip(degrees).flat_map(|(&source, &n)| core::iter::repeat_n(source, n as usize));
    let mut named = Vec::new();
    for (source, (destination, weight)) in starts.zip(ends) {
        checked_rank(source, size)?;
        named.extend([source, destination, weight]);
    }
    Ok(named)
}

/// MPI_Dist_graph_neighbors_count: sources, destinations, whether there are weights.
pub fn dist_graph_neighbours_count(comm: MPI_Comm) -> Result<(usize, usize, bool)> {
    with_dist_graph(comm, |graph| Ok((graph.sources.len(), graph.destinations.len(), graph.weighted)))
}

/// Room for weights: used only if the graph has some.
pub struct WeightRoom<'a>(Option<Result<Room<'a, c_int>>>);

impl<'a, N: Integer> Array<'a, *mut c_int, N> for WeightRoom<'a> {
    unsafe fn of(from: *mut c_int, length: N) -> Result<Self> {
        Ok(Self(match from.addr() {
            MPI_UNWEIGHTED | MPI_WEIGHTS_EMPTY => None,
            // SAFETY: argument rule 1: any other address is an array of this length, and the call outlives the result.
            _ => Some(unsafe { Array::of(from, length) }),
        }))
    }
}

/// MPI_Dist_graph_neighbors.
pub fn dist_graph_neighbours(
    comm: MPI_Comm,
    sources: Room<'_, c_int>,
    source_weights: WeightRoom<'_>,
    destinations: Room<'_, c_int>,
    destination_weights: WeightRoom<'_>,
) -> Result<()> {
    with_dist_graph(comm, |graph| {
        give_edges(&graph.sources, graph.weighted, &sources, source_weights)?;
        give_edges(&graph.destinations, graph.weighted, &destinations, destination_weights)
    })
}

fn give_edges(
    edges: &[(i32, i32)],
    weighted: bool,
    ranks: &Room<'_, c_int>,
    weights: WeightRoom<'_>,
) -> Result<()> {
    ranks.fill(edges.iter().map(|edge| edge.0));
    if let Some(weights) = weights.0.filter(|_| weighted) {
        weights?.fill(edges.iter().map(|edge| edge.1));
    }
    Ok(())
}

/// MPI_Topo_test.
pub fn test(comm: Arc<Comm>) -> Result<c_int> {
    Ok(match comm.topology().map(|topology| &**topology) {
        None => MPI_UNDEFINED,
        Some(Topology::Cart(_)) => MPI_CART,
        Some(Topology::Graph(_)) => MPI_GRAPH,
        Some(Topology::DistGraph(_)) => MPI_DIST_GRAPH,
    })
}
