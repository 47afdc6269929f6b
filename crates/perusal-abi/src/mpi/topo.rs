//! Topologies (MPI 5.0 §8).

use super::comm_create::{admit, split_by};
use crate::abi::*;
use crate::capi::args::{list, list_mut, put};
use crate::capi::collective::{blocking, check};
use crate::capi::comms;
use crate::capi::process::engine;
use crate::capi::types::{MPI_Comm, MPI_Info};
use crate::coll::call::Transports;
use crate::coll::{Purpose, Transport, allgather, allgatherv, run};
use crate::comm::topology::{Cart, DistGraph, Graph, dims_create};
use crate::comm::{Comm, Topology};
use crate::error::{Error, Result};
use crate::export;
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

/// Copies as much as there is room for.
fn fill<T>(to: &mut [T], from: impl IntoIterator<Item = T>) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from);
}

/// The grid of C's arguments, on `size` ranks.
///
/// # Safety
/// The arrays have `ndims` elements.
unsafe fn cart(ndims: c_int, dims: *const c_int, periods: *const c_int, size: u32) -> Result<Cart> {
    if ndims < 0 {
        return Err(Error::Dims("their number is negative"));
    }
    // SAFETY: the caller's promise.
    let (dims, periods) = unsafe { (list(dims, ndims)?, list(periods, ndims)?) };
    Cart::new(dims.to_vec(), flags(periods), size)
}

/// The graph of C's arguments, on `size` ranks.
///
/// # Safety
/// `index` has `nnodes` elements, `edges` as many as the last of them says.
unsafe fn graph(nnodes: c_int, index: *const c_int, edges: *const c_int, size: u32) -> Result<Graph> {
    // SAFETY: the caller's promise.
    let index = unsafe { list(index, nnodes) }?;
    // SAFETY: as above.
    let edges = unsafe { list(edges, index.last().copied().unwrap_or(0)) }?;
    Graph::new(index.to_vec(), edges.to_vec(), size)
}

/// `n` weights: the user's, or 1 for MPI_UNWEIGHTED.
///
/// # Safety
/// An array of `n`, or one of the constants.
unsafe fn weights(from: *const c_int, n: usize) -> Result<Vec<i32>> {
    match from.addr() {
        MPI_UNWEIGHTED => Ok(vec![1; n]),
        MPI_WEIGHTS_EMPTY => Ok(vec![0; n]),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { list(from, n as c_int) }?.to_vec()),
    }
}

fn is_weighted(weights: *const c_int) -> bool {
    weights.addr() != MPI_UNWEIGHTED
}

/// Ranks with their weights.
///
/// # Safety
/// Arrays of `n`, or a constant for the weights.
unsafe fn edges(n: c_int, ranks: *const c_int, weight: *const c_int, size: u32) -> Result<Vec<(i32, i32)>> {
    // SAFETY: the caller's promise.
    let (ranks, weights) = unsafe { (list(ranks, n)?, weights(weight, n.max(0) as usize)?) };
    if let Some(&rank) = ranks.iter().find(|&&rank| checked_rank(rank, size).is_err()) {
        return Err(Error::Rank { rank, size: size as i32 });
    }
    if weights.iter().any(|&weight| weight < 0) {
        return Err(Error::Arg("the weight of an edge is negative"));
    }
    Ok(ranks.iter().copied().zip(weights).collect())
}

/// Everybody's numbers, in rank order.
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
    check(&transports).and(gathered)
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = i32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|&word| i32::from_le_bytes(word))
}

/// MPI_Dist_graph_create: anybody names any edges; each rank picks those that touch it.
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

/// # Safety
/// `to` is NULL or may be written.
unsafe fn give(to: *mut MPI_Comm, made: impl FnOnce() -> Result<MPI_Comm>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { put(to, MPI_COMM_NULL) }?;
    let handle = made()?;
    // SAFETY: as above.
    unsafe { put(to, handle) }
}

/// The rank that MPI_Cart_map and MPI_Graph_map suggest: the present one, if it has a place.
fn mapped(comm: &Comm, places: u32) -> c_int {
    if comm.rank() < places { comm.rank() as c_int } else { MPI_UNDEFINED }
}

export! {
    /// MPI 5.0 §8.5.2.
    fn MPI_Dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) raises(MPI_COMM_SELF) {
        if ndims < 0 {
            return Err(Error::Dims("their number is negative"));
        }
        // SAFETY: an array of `ndims` elements.
        dims_create(nnodes, unsafe { list_mut(dims, ndims) }?)
    }

    /// MPI 5.0 §8.5.1. Ranks are not reordered.
    fn MPI_Cart_create(
        comm_old: MPI_Comm, ndims: c_int, dims: *const c_int, periods: *const c_int, _reorder: c_int,
        comm_cart: *mut MPI_Comm,
    ) raises(comm_old) {
        let made = || {
            let old = within(comm_old)?;
            // SAFETY: arrays of `ndims` elements.
            let cart = unsafe { cart(ndims, dims, periods, old.size()) }?;
            create(&old, cart.size(), Topology::Cart(cart))
        };
        // SAFETY: an output argument.
        unsafe { give(comm_cart, made) }
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Cartdim_get(comm: MPI_Comm, ndims: *mut c_int) raises(comm) {
        // SAFETY: an output argument.
        with_cart(comm, |cart| unsafe { put(ndims, cart.dims.len() as c_int) })
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Cart_get(
        comm: MPI_Comm, maxdims: c_int, dims: *mut c_int, periods: *mut c_int, coords: *mut c_int,
    ) raises(comm) {
        let rank = comms::get(comm)?.rank();
        with_cart(comm, |cart| {
            // SAFETY: arrays of `maxdims` elements.
            unsafe {
                fill(list_mut(dims, maxdims)?, cart.dims.iter().copied());
                fill(list_mut(periods, maxdims)?, cart.periodic.iter().map(|&wraps| c_int::from(wraps)));
                fill(list_mut(coords, maxdims)?, cart.coords(rank));
            }
            Ok(())
        })
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Cart_rank(comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) raises(comm) {
        with_cart(comm, |cart| {
            // SAFETY: an array with an element for each dimension; an output argument.
            unsafe { put(rank, cart.rank(list(coords, cart.dims.len() as c_int)?)? as c_int) }
        })
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Cart_coords(comm: MPI_Comm, rank: c_int, maxdims: c_int, coords: *mut c_int) raises(comm) {
        with_cart(comm, |cart| {
            let found = cart.coords(checked_rank(rank, cart.size())?);
            // SAFETY: an array of `maxdims` elements.
            fill(unsafe { list_mut(coords, maxdims) }?, found);
            Ok(())
        })
    }

    /// MPI 5.0 §8.5.6.
    fn MPI_Cart_shift(
        comm: MPI_Comm, direction: c_int, disp: c_int, rank_source: *mut c_int, rank_dest: *mut c_int,
    ) raises(comm) {
        let own = comms::get(comm)?.rank();
        with_cart(comm, |cart| {
            let axis = usize::try_from(direction).unwrap_or(usize::MAX);
            let (source, dest) = cart.shift(own, axis, disp)?;
            // SAFETY: output arguments.
            unsafe { put(rank_source, source).and(put(rank_dest, dest)) }
        })
    }

    /// MPI 5.0 §8.5.7.
    fn MPI_Cart_sub(comm: MPI_Comm, remain_dims: *const c_int, newcomm: *mut MPI_Comm) raises(comm) {
        let made = || {
            let old = comms::get(comm)?;
            let (grid, which, place) = with_cart(comm, |cart| {
                // SAFETY: an array with an element for each dimension.
                let remain = unsafe { list(remain_dims, cart.dims.len() as c_int) }?;
                Ok(cart.sub(old.rank(), &flags(remain)))
            })?;
            match split_by(&old, Some(which), place)? {
                Some(agreed) => admit(agreed, Some(Arc::new(Topology::Cart(grid))), &old),
                None => Ok(MPI_COMM_NULL),
            }
        };
        // SAFETY: an output argument.
        unsafe { give(newcomm, made) }
    }

    /// MPI 5.0 §8.5.8.
    fn MPI_Cart_map(
        comm: MPI_Comm, ndims: c_int, dims: *const c_int, periods: *const c_int, newrank: *mut c_int,
    ) raises(comm) {
        let old = within(comm)?;
        // SAFETY: arrays of `ndims` elements; an output argument.
        unsafe { put(newrank, mapped(&old, cart(ndims, dims, periods, old.size())?.size())) }
    }

    /// MPI 5.0 §8.5.3. Ranks are not reordered.
    fn MPI_Graph_create(
        comm_old: MPI_Comm, nnodes: c_int, index: *const c_int, edges: *const c_int, _reorder: c_int,
        comm_graph: *mut MPI_Comm,
    ) raises(comm_old) {
        let made = || {
            let old = within(comm_old)?;
            // SAFETY: arrays as the standard asks.
            let graph = unsafe { graph(nnodes, index, edges, old.size()) }?;
            create(&old, nnodes as u32, Topology::Graph(graph))
        };
        // SAFETY: an output argument.
        unsafe { give(comm_graph, made) }
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Graphdims_get(comm: MPI_Comm, nnodes: *mut c_int, nedges: *mut c_int) raises(comm) {
        with_graph(comm, |graph| {
            // SAFETY: output arguments.
            unsafe { put(nnodes, graph.index.len() as c_int).and(put(nedges, graph.edges.len() as c_int)) }
        })
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Graph_get(
        comm: MPI_Comm, maxindex: c_int, maxedges: c_int, index: *mut c_int, edges: *mut c_int,
    ) raises(comm) {
        with_graph(comm, |graph| {
            // SAFETY: arrays of `maxindex` and `maxedges` elements.
            unsafe {
                fill(list_mut(index, maxindex)?, graph.index.iter().copied());
                fill(list_mut(edges, maxedges)?, graph.edges.iter().copied());
            }
            Ok(())
        })
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Graph_neighbors_count(comm: MPI_Comm, rank: c_int, nneighbors: *mut c_int) raises(comm) {
        with_graph(comm, |graph| {
            let count = graph.neighbours(checked_rank(rank, graph.index.len() as u32)?).len();
            // SAFETY: an output argument.
            unsafe { put(nneighbors, count as c_int) }
        })
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Graph_neighbors(
        comm: MPI_Comm, rank: c_int, maxneighbors: c_int, neighbors: *mut c_int,
    ) raises(comm) {
        with_graph(comm, |graph| {
            let found = graph.neighbours(checked_rank(rank, graph.index.len() as u32)?);
            // SAFETY: an array of `maxneighbors` elements.
            fill(unsafe { list_mut(neighbors, maxneighbors) }?, found.iter().copied());
            Ok(())
        })
    }

    /// MPI 5.0 §8.5.8.
    fn MPI_Graph_map(
        comm: MPI_Comm, nnodes: c_int, index: *const c_int, edges: *const c_int, newrank: *mut c_int,
    ) raises(comm) {
        let old = within(comm)?;
        // SAFETY: arrays as the standard asks; an output argument.
        unsafe {
            graph(nnodes, index, edges, old.size())?;
            put(newrank, mapped(&old, nnodes as u32))
        }
    }

    /// MPI 5.0 §8.5.4. Ranks are not reordered.
    fn MPI_Dist_graph_create_adjacent(
        comm_old: MPI_Comm, indegree: c_int, sources: *const c_int, sourceweights: *const c_int, outdegree: c_int,
        destinations: *const c_int, destweights: *const c_int, _info: MPI_Info, _reorder: c_int,
        comm_dist_graph: *mut MPI_Comm,
    ) raises(comm_old) {
        let made = || {
            let old = within(comm_old)?;
            // SAFETY: arrays as the standard asks.
            let graph = unsafe {
                DistGraph {
                    sources: edges(indegree, sources, sourceweights, old.size())?,
                    destinations: edges(outdegree, destinations, destweights, old.size())?,
                    weighted: is_weighted(sourceweights) || is_weighted(destweights),
                }
            };
            create(&old, old.size(), Topology::DistGraph(graph))
        };
        // SAFETY: an output argument.
        unsafe { give(comm_dist_graph, made) }
    }

    /// MPI 5.0 §8.5.4. Ranks are not reordered.
    fn MPI_Dist_graph_create(
        comm_old: MPI_Comm, n: c_int, sources: *const c_int, degrees: *const c_int, destinations: *const c_int,
        weights: *const c_int, _info: MPI_Info, _reorder: c_int, comm_dist_graph: *mut MPI_Comm,
    ) raises(comm_old) {
        let made = || {
            let old = within(comm_old)?;
            // SAFETY: arrays as the standard asks.
            let own = unsafe { named_edges(n, sources, degrees, destinations, weights, old.size()) }?;
            let graph = picked(&old, &own, is_weighted(weights))?;
            create(&old, old.size(), Topology::DistGraph(graph))
        };
        // SAFETY: an output argument.
        unsafe { give(comm_dist_graph, made) }
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Dist_graph_neighbors_count(
        comm: MPI_Comm, indegree: *mut c_int, outdegree: *mut c_int, weighted: *mut c_int,
    ) raises(comm) {
        with_dist_graph(comm, |graph| {
            // SAFETY: output arguments.
            unsafe {
                put(indegree, graph.sources.len() as c_int)?;
                put(outdegree, graph.destinations.len() as c_int)?;
                put(weighted, c_int::from(graph.weighted))
            }
        })
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Dist_graph_neighbors(
        comm: MPI_Comm, maxindegree: c_int, sources: *mut c_int, sourceweights: *mut c_int, maxoutdegree: c_int,
        destinations: *mut c_int, destweights: *mut c_int,
    ) raises(comm) {
        with_dist_graph(comm, |graph| {
            // SAFETY: arrays as the standard asks; weights only of a graph that has some.
            unsafe {
                give_edges(&graph.sources, graph.weighted, maxindegree, sources, sourceweights)?;
                give_edges(&graph.destinations, graph.weighted, maxoutdegree, destinations, destweights)
            }
        })
    }

    /// MPI 5.0 §8.5.5.
    fn MPI_Topo_test(comm: MPI_Comm, status: *mut c_int) raises(comm) {
        let kind = match comms::get(comm)?.topology().map(|topology| &**topology) {
            None => MPI_UNDEFINED,
            Some(Topology::Cart(_)) => MPI_CART,
            Some(Topology::Graph(_)) => MPI_GRAPH,
            Some(Topology::DistGraph(_)) => MPI_DIST_GRAPH,
        };
        // SAFETY: an output argument.
        unsafe { put(status, kind) }
    }
}

/// The edges that the caller names, as triplets of source, destination and weight.
///
/// # Safety
/// `sources` and `degrees` have `n` elements, the others as many as the degrees add up to.
unsafe fn named_edges(
    n: c_int,
    sources: *const c_int,
    degrees: *const c_int,
    destinations: *const c_int,
    weights: *const c_int,
    size: u32,
) -> Result<Vec<i32>> {
    // SAFETY: the caller's promise.
    let (sources, degrees) = unsafe { (list(sources, n)?, list(degrees, n)?) };
    if degrees.iter().any(|&degree| degree < 0) {
        return Err(Error::Arg("the degree of a node is negative"));
    }
    let total = degrees.iter().sum();
    // SAFETY: the caller's promise.
    let ends = unsafe { edges(total, destinations, weights, size) }?;
    let starts =
        sources.iter().zip(degrees).flat_map(|(&source, &n)| core::iter::repeat_n(source, n as usize));
    let mut named = Vec::new();
    for (source, (destination, weight)) in starts.zip(ends) {
        checked_rank(source, size)?;
        named.extend([source, destination, weight]);
    }
    Ok(named)
}

/// # Safety
/// Arrays of `max` elements, or MPI_UNWEIGHTED for the weights.
unsafe fn give_edges(
    edges: &[(i32, i32)],
    weighted: bool,
    max: c_int,
    ranks: *mut c_int,
    weights: *mut c_int,
) -> Result<()> {
    // SAFETY: the caller's promise.
    fill(unsafe { list_mut(ranks, max) }?, edges.iter().map(|edge| edge.0));
    if weighted && is_weighted(weights) && weights.addr() != MPI_WEIGHTS_EMPTY {
        // SAFETY: the caller's promise.
        fill(unsafe { list_mut(weights, max) }?, edges.iter().map(|edge| edge.1));
    }
    Ok(())
}
