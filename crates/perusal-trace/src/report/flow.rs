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
    let mut by_rank = vec![RankFlows::default(); ranks];
    for (index, flow) in flows.iter().enumerate() {
        if let Some(own) = by_rank.get_mut(flow.source as usize) {
            own.from.push((flow.send.index, index));
        }
        if let (Some(own), Some(incoming)) = (by_rank.get_mut(flow.dest as usize), &flow.incoming) {
            own.to.push((incoming.arrived, index));
        }
    }
    for own in &mut by_rank {
        own.from.sort_unstable();
        own.to.sort_unstable();
    }
    by_rank
}

/// When the receiver came to a message: posted its receive, or took it by a probe. `None` if it never did.
#[must_use]
pub fn came(incoming: &MessageArrival) -> Option<u64> {
    incoming.posted.into_iter().chain(incoming.matched).min()
}
