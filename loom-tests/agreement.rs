//! Agreement among ranks of which one dies, revocation, and copies between the memories of members when one has died.
//!
//! Run:   .ci/loom agreement
//! Bound: 2 and 3 threads, every interleaving with at most 3 preemptions (LOOM_MAX_PREEMPTIONS raises that).
//!
//! Time:  a few seconds.
//!
//! Weakened, each of these makes at least one model fail (checked by editing the line and running, one at a time):
//!
//! - the Release of the key in `Ballot::vote` and the Acquire of it in `count`;
//! - the Release in the exchange of `Ballot::decide`, and the Acquire in `FailureWords::decision`;
//! - that the exchange expects the word from before the count;
//! - the Release of `RevocationCount::add` and the Acquire of `get`;
//! - the fence of `begin_copying`, that of `is_copying`, the Release of `end_copying` and the Acquire in
//!   `is_copying`.
#![cfg(perusal_loom)]

use crate::support::Plain;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use perusal::internals::shm::RosterEntry;
use perusal::internals::shm::failures::{Ballot, Count, Decision, FailureWords, RevocationCount, Subject};

fn model(body: impl Fn() + Send + Sync + 'static) {
    perusal::model::check(3, body);
}

#[derive(Default)]
struct Job {
    words: FailureWords,
    entries: [RosterEntry; 3],
}

impl Job {
    /// Rank `rank` agrees with the first `members` ranks, in agreement number `serial`.
    fn agree(&self, rank: usize, members: usize, serial: u32, flag: u32) -> Decision {
        let ballot = Ballot::new(&self.words, 3, serial, Subject::Value);
        let acknowledged = serial + 4;
        let place = ballot.vote(&self.entries[rank], flag, acknowledged).expect("room for a vote");
        let propose = |count: Count| {
            assert_eq!(count.acknowledged, acknowledged);
            Ok(Decision { small: count.latest_death as u16, large: count.flag })
        };
        loop {
            let decided = ballot
                .decide(self.entries[..members].iter(), propose, |_| {})
                .expect("a word that ranks write");
            if let Some(decision) = decided {
                ballot.leave(&self.entries[rank], place);
                return decision;
            }
            thread::yield_now();
        }
    }
}

#[test]
fn two_ranks_agree_on_the_and_of_their_flags_again_and_again() {
    model(|| {
        let job = Arc::new(Job::default());
        let other = {
            let job = job.clone();
            thread::spawn(move || [job.agree(1, 2, 1, 0b011), job.agree(1, 2, 2, 0b100)])
        };
        let own = [job.agree(0, 2, 1, 0b110), job.agree(0, 2, 2, 0b101)];
        assert_eq!(own.map(|decision| decision.large), [0b010, 0b100]);
        assert_eq!(other.join().unwrap(), own);
    });
}

#[test]
fn the_living_agree_on_who_is_dead() {
    model(|| {
        let job = Arc::new(Job::default());
        let other = {
            let job = job.clone();
            thread::spawn(move || {
                let decision = job.agree(1, 3, 1, 1);
                // A rank that sees the decision sees the death.
                assert_eq!(job.entries[2].death(), Some(1));
                decision
            })
        };
        job.entries[2].declare_dead(1);
        let own = job.agree(0, 3, 1, 1);
        assert_eq!(own, Decision { small: 1, large: 1 });
        assert_eq!(other.join().unwrap(), own);
    });
}

/// What each of two proposers has made for its proposal.
#[derive(Default)]
struct Proposals {
    job: Job,
    made: [Plain<u32>; 2],
}

#[test]
fn whose_proposal_is_not_taken_sees_what_the_other_has_made_for_its_own() {
    model(|| {
        let proposals = Arc::new(Proposals::default());
        // Both have voted, so that the proposals alone are left to order.
        let ballot = Ballot::new(&proposals.job.words, 3, 1, Subject::Value);
        (0..2).for_each(|rank| assert!(ballot.vote(&proposals.job.entries[rank], 1, 0).is_some()));
        let decide = |proposals: &Proposals, own: usize| {
            let propose = |_: Count| {
                // Nobody else makes it.
                proposals.made[own].set(7);
                Ok(Decision { small: 0, large: own as u32 })
            };
            let ballot = Ballot::new(&proposals.job.words, 3, 1, Subject::Value);
            let decided = ballot.decide(proposals.job.entries[..2].iter(), propose, |_| {});
            let decision = decided.expect("a word that ranks write").expect("all have voted");
            // Agreement rule 2: a thread that sees the decision sees what was made for it.
            assert_eq!(proposals.made[decision.large as usize].get(), 7);
            decision
        };
        let other = {
            let proposals = proposals.clone();
            thread::spawn(move || decide(&proposals, 1))
        };
        let own = decide(&proposals, 0);
        assert_eq!(other.join().unwrap(), own);
    });
}

#[test]
fn a_vote_of_who_dies_counts_for_all_or_for_none() {
    fn propose(count: Count) -> perusal::Result<Decision> {
        Ok(Decision { small: count.latest_death as u16, large: count.flag })
    }
    fn decide(job: &Job) -> Option<Decision> {
        Ballot::new(&job.words, 3, 1, Subject::Value)
            .decide(job.entries.iter(), propose, |_| {})
            .expect("a word that ranks write")
    }
    model(|| {
        let job = Arc::new(Job::default());
        let ballot = Ballot::new(&job.words, 3, 1, Subject::Value);
        (0..2).for_each(|rank| assert!(ballot.vote(&job.entries[rank], 1, 0).is_some()));
        let living = [(); 2].map(|()| {
            let job = job.clone();
            thread::spawn(move || decide(&job))
        });
        assert!(ballot.vote(&job.entries[2], 0, 0).is_some());
        job.entries[2].declare_dead(1);
        let decision = decide(&job).expect("all have voted or died");
        assert_eq!(decision.large, u32::from(decision.small));
        for other in living {
            assert!(other.join().unwrap().is_none_or(|other| other == decision));
        }
    });
}

#[test]
fn who_sees_the_count_of_revocations_sees_which_communicator_it_is() {
    model(|| {
        let job = Arc::new((FailureWords::default(), RevocationCount::default()));
        let other = {
            let job = job.clone();
            thread::spawn(move || {
                assert!(job.0.revoke());
                job.1.add();
            })
        };
        if job.1.get() == 1 {
            assert!(job.0.is_revoked());
        }
        other.join().unwrap();
    });
}

/// What a member has exposed to another, who copies to it unless a third one has died.
#[derive(Default)]
struct Exposed {
    deaths: AtomicU32,
    copier: RosterEntry,
    memory: Plain<u32>,
}

#[test]
fn nobody_copies_to_the_memory_of_a_member_that_has_left() {
    model(|| {
        let job = Arc::new(Exposed::default());
        let copier = {
            let job = job.clone();
            thread::spawn(move || {
                job.copier.begin_copying();
                if job.deaths.load(Ordering::Relaxed) == 0 {
                    // Direct rule 3: its owner waits for the end of the copy.
                    job.memory.update(|memory| *memory += 1);
                }
                job.copier.end_copying();
            })
        };
        // The owner has noticed a death.
        job.deaths.store(1, Ordering::Relaxed);
        while job.copier.is_copying() {
            thread::yield_now();
        }
        // Direct rule 3: nobody copies any more.
        job.memory.update(|memory| *memory += 1);
        copier.join().unwrap();
    });
}
