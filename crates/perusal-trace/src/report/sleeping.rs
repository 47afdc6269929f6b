//! Sleeps and full rings of one rank.

use super::types::{RingFull, Sleep, SleepKind, Times};
use super::waits::Slept;
use crate::events::Event;
use crate::trace::RankTrace;
use std::collections::BTreeMap;

/// What a rank slept for.
#[must_use]
pub fn sleep(slept: &[Slept]) -> Sleep {
    let mut sums = Sleep::default();
    let mut kinds: BTreeMap<&'static str, SleepKind> = BTreeMap::new();
    for slept in slept {
        let (what, ns) = (slept.kind.phrase(), slept.end - slept.begin);
        let kind = kinds.entry(what).or_insert(SleepKind { what, times: 0, ns: 0 });
        for (times, sum) in [(&mut sums.times, &mut sums.ns), (&mut kind.times, &mut kind.ns)] {
            *times += 1;
            *sum += ns;
        }
        sums.longest_ns = sums.longest_ns.max(ns);
    }
    sums.kinds = kinds.into_values().collect();
    sums.kinds.sort_by_key(|kind| std::cmp::Reverse(kind.ns));
    sums
}

/// Where a rank found no room.
#[must_use]
pub fn ring_full(trace: &RankTrace) -> RingFull {
    let mut peers: BTreeMap<u32, u64> = BTreeMap::new();
    let mut times = 0;
    for record in trace.records.iter().filter(|record| record.event == Event::RingFull) {
        times += 1;
        if let Ok(peer) = u32::try_from(record.peer) {
            *peers.entry(peer).or_default() += 1;
        }
    }
    let mut peers: Vec<Times> = peers.into_iter().map(|(rank, times)| Times { rank, times }).collect();
    peers.sort_by_key(|peer| std::cmp::Reverse(peer.times));
    RingFull { times, peers }
}
