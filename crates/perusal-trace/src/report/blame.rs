//! Whom waiting is charged to: directly to the rank that was waited for, and at the root to the one at the end of the
//! chain of those who were waiting themselves.

use super::types::Caused;
use super::waits::{Cause, CausedWait};

/// How many ranks a chain of waiting is followed over; those who wait in a ring would be followed for ever.
const LONGEST_CHAIN: u32 = 64;

/// What each rank's lateness cost the others. `waits` are those of each rank, in order.
#[must_use]
pub fn charge(waits: &[Vec<CausedWait>]) -> Vec<Caused> {
    let mut caused = vec![Caused::default(); waits.len()];
    let mut roots = vec![0; waits.len()];
    for wait in waits.iter().flatten() {
        let Some(on) = caused.get_mut(wait.on as usize) else { continue };
        let ns = wait.end - wait.begin;
        on.direct_ns += ns;
        match wait.cause {
            Cause::LateSender(_) => on.late_sender_ns += ns,
            Cause::LateReceiver(_) => on.late_receiver_ns += ns,
            Cause::Collective => on.collective_ns += ns,
            Cause::Lock => on.lock_ns += ns,
            Cause::Epoch => on.epoch_ns += ns,
        }
        follow(waits, wait.on, wait.begin, wait.end, LONGEST_CHAIN, &mut roots);
    }
    for (caused, root) in caused.iter_mut().zip(roots) {
        caused.root_ns = root;
    }
    caused
}

/// Charges the stretch to `rank`, but for the parts in which that waited itself.
fn follow(waits: &[Vec<CausedWait>], rank: u32, begin: u64, end: u64, left: u32, roots: &mut [u64]) {
    let Some(own) = waits.get(rank as usize) else { return };
    let mut free = end - begin;
    if left > 0 {
        for wait in within(own, begin, end) {
            free -= wait.end - wait.begin;
            follow(waits, wait.on, wait.begin, wait.end, left - 1, roots);
        }
    }
    roots[rank as usize] += free;
}

/// The waits of a rank within a stretch, cut at its ends.
pub fn within(waits: &[CausedWait], begin: u64, end: u64) -> impl Iterator<Item = CausedWait> {
    let first = waits.partition_point(|wait| wait.end <= begin);
    let inside = waits[first..].iter().take_while(move |wait| wait.begin < end);
    inside.map(move |wait| CausedWait { begin: wait.begin.max(begin), end: wait.end.min(end), ..*wait })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(begin: u64, end: u64, on: u32) -> CausedWait {
        CausedWait { begin, end, on, cause: Cause::LateSender(0) }
    }

    #[test]
    fn the_charge_goes_on_to_whom_the_late_one_waited_for() {
        // 2 waits for 1 from 100 to 200; 1 waits for 0 from 120 to 180, so 1 is at the root of 40 ns only.
        let waits = [vec![], vec![wait(120, 180, 0)], vec![wait(100, 200, 1)]];
        let caused = charge(&waits);
        let found: Vec<_> = caused.iter().map(|c| (c.direct_ns, c.root_ns)).collect();
        assert_eq!(found, [(60, 120), (100, 40), (0, 0)]);
        assert_eq!(caused[0].late_sender_ns, 60);
    }

    #[test]
    fn ranks_that_wait_in_a_ring_are_charged_once_and_the_walk_ends() {
        let waits = [vec![wait(0, 10, 1)], vec![wait(0, 10, 0)]];
        let caused = charge(&waits);
        assert_eq!(caused.iter().map(|c| c.root_ns).sum::<u64>(), 20);
    }

    #[test]
    fn a_peer_outside_of_the_job_is_charged_with_nothing() {
        assert_eq!(charge(&[vec![wait(0, 10, 9)]]), [Caused::default()]);
    }
}
