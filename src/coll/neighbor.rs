//! Collectives among neighbours in a topology (MPI 5.0 §8.6).

use super::Transport;
use super::buffer::{InputBuffer, OutputBuffer};
use crate::comm::Comm;
use crate::error::{Error, Result};

/// Neighbour `i` that the caller sends to gets `send(i)`;
/// `recv(i)` becomes what neighbour `i` that it receives from sends.
///
/// Two ranks may be neighbours several times; then messages between them are matched in order, which for a grid is not
/// the order of the neighbours ([`Topology::send_order`](crate::comm::Topology::send_order)).
///
/// # Errors
/// Those of the transport; [`Error::Topology`] if the communicator has none.
pub async fn exchange<'a, 'b, T: Transport>(
    transport: &T,
    comm: &Comm,
    send: impl Fn(usize) -> InputBuffer<'a>,
    recv: impl Fn(usize) -> OutputBuffer<'b>,
) -> Result<()> {
    let topology = comm.topology().ok_or(Error::Topology("the communicator has none"))?;
    let (from, to) = (comm.sources(), comm.destinations());
    let order = topology.send_order(to.len());
    let some = |ranks: &[i32], i: usize| usize::try_from(ranks[i]).ok();
    let packed = order.filter_map(|i| some(to, i).map(|rank| Ok((rank, send(i).packed()?))));
    let packed = packed.collect::<Result<Vec<_>>>()?;
    let landings = (0..from.len()).filter_map(|i| some(from, i).map(|rank| Ok((rank, recv(i).landing()?))));
    let mut landings = landings.collect::<Result<Vec<_>>>()?;
    let sends: Vec<(usize, &[u8])> = packed.iter().map(|(rank, bytes)| (*rank, &**bytes)).collect();
    let mut recvs: Vec<(usize, &mut [u8])> =
        landings.iter_mut().map(|(rank, room)| (*rank, &mut **room)).collect();
    transport.exchange_all(&sends, &mut recvs).await?;
    drop(recvs);
    landings.into_iter().try_for_each(|(_, landing)| landing.land())
}
