//! Virtual topologies: which ranks of a communicator are neighbours (MPI 5.0 §8). Ranks are never reordered: on one
//! node, which rank is where is the launcher's business.

use crate::abi;
use crate::error::{Error, Result};

/// A communicator's topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// A grid.
    Cart(Cart),
    /// A graph that every process knows.
    Graph(Graph),
    /// A graph of which each process knows its own edges.
    DistGraph(DistGraph),
}

impl Topology {
    /// From whom a neighbourhood collective receives, in order (MPI 5.0 §8.6); MPI_PROC_NULL is nobody.
    #[must_use]
    pub fn sources(&self, rank: u32) -> Vec<i32> {
        match self {
            Self::Cart(cart) => cart.neighbours(rank),
            Self::Graph(graph) => graph.neighbours(rank).to_vec(),
            Self::DistGraph(graph) => graph.sources.iter().map(|edge| edge.0).collect(),
        }
    }

    /// To whom a neighbourhood collective sends, in order.
    #[must_use]
    pub fn destinations(&self, rank: u32) -> Vec<i32> {
        match self {
            Self::DistGraph(graph) => graph.destinations.iter().map(|edge| edge.0).collect(),
            _ => self.sources(rank),
        }
    }

    /// In which order to send to `n` destinations, so that a rank that is a neighbour several times can receive in the
    /// order of its sources: in a grid, what goes up a dimension arrives from below, which is received first.
    pub fn send_order(&self, n: usize) -> impl Iterator<Item = usize> + use<> {
        let other_direction = usize::from(matches!(self, Self::Cart(_)));
        (0..n).map(move |i| i ^ other_direction)
    }
}

/// A grid of ranks in row-major order: the last coordinate varies fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    /// Extent of each dimension, all positive.
    pub dims: Vec<i32>,
    /// Whether each dimension wraps around.
    pub periodic: Vec<bool>,
}

impl Cart {
    /// A grid on a communicator of `size` ranks.
    ///
    /// # Errors
    /// [`Error::Dims`] for an extent that is not positive,
    /// [`Error::Topology`] if the grid has more places than there are ranks.
    pub fn new(dims: Vec<i32>, periodic: Vec<bool>, size: u32) -> Result<Self> {
        if dims.iter().any(|&extent| extent <= 0) {
            return Err(Error::Dims("an extent of the grid is not positive"));
        }
        let cart = Self { dims, periodic };
        match cart.places() {
            Some(places) if places <= u64::from(size) => Ok(cart),
            _ => Err(Error::Topology("the grid has more places than the communicator has ranks")),
        }
    }

    fn places(&self) -> Option<u64> {
        self.dims.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent as u64))
    }

    /// Number of places, each of which is a rank's.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.places().unwrap_or(0) as u32
    }

    /// The coordinates of `rank`, which is below [`size`](Self::size).
    #[must_use]
    pub fn coords(&self, rank: u32) -> Vec<i32> {
        let mut rest = rank as i32;
        let mut coords: Vec<i32> = self
            .dims
            .iter()
            .rev()
            .map(|&extent| {
                let coord = rest % extent;
                rest /= extent;
                coord
            })
            .collect();
        coords.reverse();
        coords
    }

    /// The rank at `coords`; periodic ones wrap around.
    ///
    /// # Errors
    /// [`Error::Arg`] for a coordinate outside a dimension that does not wrap.
    pub fn rank(&self, coords: &[i32]) -> Result<u32> {
        self.rank_or_none(coords)
            .ok_or(Error::Arg("a coordinate lies outside the grid in a dimension that is not periodic"))
    }

    fn rank_or_none(&self, coords: &[i32]) -> Option<u32> {
        let mut axes = self.dims.iter().zip(&self.periodic).zip(coords);
        axes.try_fold(0_i32, |rank, ((&extent, &wraps), &coord)| {
            let place = if wraps { coord.rem_euclid(extent) } else { coord };
            (0..extent).contains(&place).then(|| rank * extent + place)
        })
        .map(|rank| rank as u32)
    }

    /// The ranks `by` places behind and ahead of `rank` along `axis`: (source, destination),
    /// MPI_PROC_NULL beyond the edge.
    ///
    /// # Errors
    /// [`Error::Dims`] if there is no such dimension.
    pub fn shift(&self, rank: u32, axis: usize, by: i32) -> Result<(i32, i32)> {
        if axis >= self.dims.len() {
            return Err(Error::Dims("the grid has no such direction"));
        }
        let coords = self.coords(rank);
        let at = |distance: i64| {
            let extent = i64::from(self.dims[axis]);
            let mut moved = i64::from(coords[axis]) + distance;
            if self.periodic[axis] {
                moved = moved.rem_euclid(extent);
            }
            let mut coords = coords.clone();
            // What lies outside an i32 lies outside the grid.
            coords[axis] = i32::try_from(moved).unwrap_or(-1);
            self.rank_or_none(&coords).map_or(abi::MPI_PROC_NULL, |rank| rank as i32)
        };
        Ok((at(-i64::from(by)), at(i64::from(by))))
    }

    /// For each dimension the rank before and the rank after.
    fn neighbours(&self, rank: u32) -> Vec<i32> {
        let pair = |axis| self.shift(rank, axis, 1).map_or([abi::MPI_PROC_NULL; 2], |(from, to)| [from, to]);
        (0..self.dims.len()).flat_map(pair).collect()
    }

    /// The grid of the dimensions that `remain`; which of the subgrids `rank` lies in, and its rank there.
    #[must_use]
    pub fn sub(&self, rank: u32, remain: &[bool]) -> (Self, i32, i32) {
        let coords = self.coords(rank);
        let mut grid = Self { dims: Vec::new(), periodic: Vec::new() };
        let (mut which, mut place) = (0, 0);
        for (axis, &kept) in remain.iter().enumerate().take(self.dims.len()) {
            let number = if kept { &mut place } else { &mut which };
            *number = *number * self.dims[axis] + coords[axis];
            if kept {
                grid.dims.push(self.dims[axis]);
                grid.periodic.push(self.periodic[axis]);
            }
        }
        (grid, which, place)
    }
}

/// A graph as MPI_Graph_create takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Where the neighbours of each node end in `edges`.
    pub index: Vec<i32>,
    /// The neighbours of all nodes.
    pub edges: Vec<i32>,
}

impl Graph {
    /// A graph on a communicator of `size` ranks; `edges` may be longer than the last index says.
    ///
    /// # Errors
    /// [`Error::Topology`] for indices that decrease or more nodes than ranks, [`Error::Rank`] for an edge to no node.
    pub fn new(index: Vec<i32>, mut edges: Vec<i32>, size: u32) -> Result<Self> {
        if index.len() > size as usize {
            return Err(Error::Topology("the graph has more nodes than the communicator has ranks"));
        }
        let last = index.last().copied().unwrap_or(0);
        if !index.is_sorted() || index.first().is_some_and(|&first| first < 0) || last as usize > edges.len()
        {
            return Err(Error::Topology(
                "the indices of the graph's nodes do not grow, or run beyond its edges",
            ));
        }
        edges.truncate(last as usize);
        let nodes = index.len() as i32;
        match edges.iter().find(|&&node| !(0..nodes).contains(&node)) {
            Some(&rank) => Err(Error::Rank { rank, size: nodes }),
            None => Ok(Self { index, edges }),
        }
    }

    /// The neighbours of node `rank`.
    #[must_use]
    pub fn neighbours(&self, rank: u32) -> &[i32] {
        let rank = rank as usize;
        let begin = if rank == 0 { 0 } else { self.index[rank - 1] };
        &self.edges[begin as usize..self.index[rank] as usize]
    }
}

/// One process's edges of a distributed graph: (neighbour, weight).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistGraph {
    /// Edges that lead here.
    pub sources: Vec<(i32, i32)>,
    /// Edges that lead away.
    pub destinations: Vec<(i32, i32)>,
    /// Whether weights were given.
    pub weighted: bool,
}

/// Factors `nodes` into the free (zero) entries of `dims`, as equal as can be, in descending order (MPI 5.0 §8.5.2).
///
/// # Errors
/// [`Error::Dims`] for a negative entry, or if the given ones do not divide `nodes`;
/// [`Error::Arg`] if `nodes` is not positive.
pub fn dims_create(nodes: i32, dims: &mut [i32]) -> Result<()> {
    if nodes <= 0 {
        return Err(Error::Arg("the number of nodes is not positive"));
    }
    if dims.iter().any(|&extent| extent < 0) {
        return Err(Error::Dims("an extent is negative"));
    }
    let mut given = dims.iter().filter(|&&extent| extent > 0);
    let fixed = given.try_fold(1_i32, |product, &extent| product.checked_mul(extent));
    let rest = fixed.filter(|fixed| nodes % fixed == 0).map(|fixed| nodes / fixed);
    let rest = rest.ok_or(Error::Dims("the number of nodes is not a multiple of the given extents"))?;
    let free = dims.iter().filter(|&&extent| extent == 0).count();
    if free == 0 {
        return if rest == 1 {
            Ok(())
        } else {
            Err(Error::Dims("the extents do not multiply to the number of nodes"))
        };
    }
    let mut best = Vec::new();
    factor(rest, free, i32::MAX, &mut Vec::new(), &mut best);
    let slots = dims.iter_mut().filter(|extent| **extent == 0);
    slots.zip(best).for_each(|(slot, extent)| *slot = extent);
    Ok(())
}

/// Writes `rest` as `free` factors that do not grow, behind those in `chosen`, and keeps in `best` the best way to do
/// so: its largest and smallest factor differ least; of several such ways the one with the largest smallest factor, and
/// of these the first in the order of a dictionary.
fn factor(rest: i32, free: usize, most: i32, chosen: &mut Vec<i32>, best: &mut Vec<i32>) {
    // The smallest factor to come is at most the rest's root (one more, for rounding); so the spread is at least this.
    let root = f64::from(rest).powf(1.0 / free as f64) as i32 + 1;
    if !best.is_empty() && chosen.first().is_some_and(|first| first - root > spread(best)) {
        return;
    }
    if free == 1 {
        if rest <= most {
            chosen.push(rest);
            let key = |list: &[i32]| (spread(list), -list[list.len() - 1]);
            if best.is_empty() || (key(chosen), &chosen[..]) < (key(best), &best[..]) {
                best.clone_from(chosen);
            }
            chosen.pop();
        }
        return;
    }
    // The largest factor of the rest is at least its root; try each divisor and its partner.
    let mut divisors = Vec::new();
    let mut small = 1;
    while i64::from(small) * i64::from(small) <= i64::from(rest) {
        if rest % small == 0 {
            divisors.extend([small, rest / small]);
        }
        small += 1;
    }
    divisors.sort_unstable();
    divisors.dedup();
    for first in divisors.into_iter().filter(|&d| d <= most && reaches(d, free, rest)) {
        chosen.push(first);
        factor(rest / first, free - 1, first, chosen, best);
        chosen.pop();
    }
}

/// By how much the factors of a list that does not grow differ.
fn spread(list: &[i32]) -> i32 {
    list[0] - list[list.len() - 1]
}

/// Whether `free` factors of at most `most` can multiply to `rest`.
fn reaches(most: i32, free: usize, rest: i32) -> bool {
    let mut power = 1_i64;
    for _ in 0..free {
        power = power.saturating_mul(i64::from(most));
        if power >= i64::from(rest) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created<const N: usize>(nodes: i32, mut dims: [i32; N]) -> Result<[i32; N]> {
        dims_create(nodes, &mut dims).map(|()| dims)
    }

    #[test]
    fn extents_are_as_equal_as_can_be() {
        assert_eq!(created(6, [0, 0]), Ok([3, 2]));
        assert_eq!(created(7, [0, 0]), Ok([7, 1]));
        assert_eq!(created(6, [0, 3, 0]), Ok([2, 3, 1]));
        assert_eq!(created(16, [0, 0, 0, 0]), Ok([2, 2, 2, 2]));
        assert_eq!(created(1440, [0, 0, 0, 0]), Ok([8, 6, 6, 5]));
        // 20 × 18 × 14 differ by as much, but the smallest is smaller.
        assert_eq!(created(5040, [0, 0, 0]), Ok([21, 16, 15]));
        assert_eq!(created(5616, [0, 0, 0, 0]), Ok([13, 9, 8, 6]));
        assert_eq!(created(i32::MAX, [0, 0]), Ok([i32::MAX, 1]));
        assert_eq!(created(5, [5]), Ok([5]));
        assert!(matches!(created(7, [0, 3, 0]), Err(Error::Dims(_))));
        assert!(matches!(created(6, [5]), Err(Error::Dims(_))));
        assert!(matches!(created(6, [-1, 0]), Err(Error::Dims(_))));
    }

    #[test]
    fn extents_multiply_to_the_nodes_and_never_grow() {
        for nodes in 1..300 {
            for free in 1..5 {
                let mut dims = vec![0; free];
                dims_create(nodes, &mut dims).unwrap();
                assert_eq!(dims.iter().product::<i32>(), nodes);
                assert!(dims.is_sorted_by(|a, b| a >= b), "{nodes} {dims:?}");
            }
        }
    }

    #[test]
    fn ranks_and_coordinates_are_inverse_and_row_major() {
        let cart = Cart::new(vec![2, 3, 4], vec![true, false, true], 24).unwrap();
        assert_eq!(cart.coords(23), [1, 2, 3]);
        for rank in 0..24 {
            assert_eq!(cart.rank(&cart.coords(rank)), Ok(rank));
        }
        assert_eq!(cart.rank(&[-1, 0, 5]), cart.rank(&[1, 0, 1]));
        assert!(matches!(cart.rank(&[0, 3, 0]), Err(Error::Arg(_))));
    }

    #[test]
    fn a_shift_wraps_or_falls_off_the_edge() {
        let cart = Cart::new(vec![3, 2], vec![true, false], 6).unwrap();
        assert_eq!(cart.shift(0, 0, 1), Ok((4, 2)));
        assert_eq!(cart.shift(0, 0, -1), Ok((2, 4)));
        assert_eq!(cart.shift(0, 1, 1), Ok((abi::MPI_PROC_NULL, 1)));
        assert_eq!(cart.shift(1, 1, i32::MAX), Ok((abi::MPI_PROC_NULL, abi::MPI_PROC_NULL)));
        assert_eq!(cart.shift(0, 0, i32::MIN), Ok((4, 2)));
        assert!(matches!(cart.shift(0, 2, 1), Err(Error::Dims(_))));
        assert_eq!(Topology::Cart(cart).sources(0), [4, 2, abi::MPI_PROC_NULL, 1]);
    }

    #[test]
    fn subgrids_partition_the_grid() {
        let cart = Cart::new(vec![2, 3, 4], vec![true, false, true], 24).unwrap();
        for keep in 0..8 {
            let remain: Vec<bool> = (0..3).map(|axis| keep & (1 << axis) != 0).collect();
            let mut places: Vec<(i32, i32)> = (0..24)
                .map(|rank| {
                    let (sub, which, place) = cart.sub(rank, &remain);
                    assert!(place < sub.size() as i32);
                    let kept: Vec<i32> =
                        cart.coords(rank).into_iter().zip(&remain).filter(|c| *c.1).map(|c| c.0).collect();
                    assert_eq!(sub.coords(place as u32), kept);
                    (which, place)
                })
                .collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 24);
        }
    }

    #[test]
    fn a_grid_or_graph_that_makes_no_sense_is_refused() {
        assert!(matches!(Cart::new(vec![3, 3], vec![false; 2], 8), Err(Error::Topology(_))));
        assert!(matches!(Cart::new(vec![0], vec![false], 8), Err(Error::Dims(_))));
        assert!(matches!(Cart::new(vec![i32::MAX; 3], vec![false; 3], 8), Err(Error::Topology(_))));
        assert_eq!(Cart::new(vec![], vec![], 8).map(|cart| cart.size()), Ok(1));
        assert!(matches!(Graph::new(vec![2, 1], vec![0, 1], 4), Err(Error::Topology(_))));
        assert!(matches!(Graph::new(vec![1], vec![1], 4), Err(Error::Rank { rank: 1, size: 1 })));
        let graph = Graph::new(vec![2, 3, 4, 6], vec![1, 3, 0, 3, 0, 2], 4).unwrap();
        assert_eq!((graph.neighbours(0), graph.neighbours(3)), (&[1, 3][..], &[0, 2][..]));
    }
}
