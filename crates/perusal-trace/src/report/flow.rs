//! Messages between ranks, sorted for the questions that are asked of them.

use crate::trace::flows::{Flow, MessageArrival};

/// The messages of one rank, as indices of all flows.
#[derive(Debug, Clone, Default)]
pub struct RankFlows {
    /// Those it sends: the index of the record that begins the send, ascending, and the message.
    pub from: Vec<(usize, usize)>,
    /// Those that arrived: when, ascending, and the message.
    pub to: Vec<(u64, usize)>,
}

/// The messages of each of `ranks` ranks.
#[must_use]
pub fn rank_flows(flows: &[Flow], ranks: usize) -> Vec<RankFlows> {
    let mut ways = vec![RankFlows::default(); ranks];
    for (index, flow) in flows.iter().enumerate() {
        if let Some(way) = ways.get_mut(flow.source as usize) {
            way.from.push((flow.send.index, index));
        }
        if let (Some(way), Some(incoming)) = (ways.get_mut(flow.dest as usize), &flow.incoming) {
            way.to.push((incoming.arrived, index));
        }
    }
    for way in &mut ways {
        way.from.sort_unstable();
        way.to.sort_unstable();
    }
    ways
}

/// When the receiver came to a message: posted its receive, or took it by a probe. `None` if it never did.
#[must_use]
pub fn came(incoming: &MessageArrival) -> Option<u64> {
    incoming.posted.into_iter().chain(incoming.matched).min()
}
