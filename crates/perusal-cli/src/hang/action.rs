//! What the launcher does about a job that stands still.

use std::path::PathBuf;

use super::{Cause, RankView, cause, json, report};
use crate::args::{OnDeadlock, Plan};
use crate::supervisor::Supervisor;
use crate::supervisor::failure::Failure;

/// A deadlock that has been proved, and said.
#[derive(Debug)]
pub struct Proved {
    cause: Cause,
    /// The number of each rank's wait.
    waits: Vec<Option<u64>>,
}

impl Proved {
    fn new(cause: Cause, ranks: &[RankView]) -> Self {
        Self { cause, waits: numbers(ranks).collect() }
    }

    /// The cause, if the ranks are still in the waits of which it was proved. Those may have ended: of a job that
    /// survives deaths, one may have been killed.
    fn holds(&self, ranks: &[RankView]) -> Option<&Cause> {
        numbers(ranks).eq(self.waits.iter().copied()).then_some(&self.cause)
    }
}

fn numbers(ranks: &[RankView]) -> impl Iterator<Item = Option<u64>> {
    ranks.iter().map(|rank| rank.wait().map(|wait| wait.number))
}

/// Takes away the report of an earlier job, which one might take for this one's.
/// What is no file of its own (a link, a pipe) stays.
pub fn forget_report(plan: &Plan) {
    let is_file = |file: &&PathBuf| file.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
    if let Some(file) = plan.deadlock_report.as_ref().filter(is_file) {
        // One that cannot be removed cannot be written either, mostly, which is said then.
        let _ = std::fs::remove_file(file);
    }
}

impl Supervisor<'_> {
    /// Ends a job that is known to be deadlocked, or says so once.
    pub(crate) fn check_for_deadlock(&mut self) {
        if self.is_failing() {
            return;
        }
        let scene = self.universe.guests.scene(&self.memory);
        if !self.watch.look(&scene) {
            return;
        }
        self.watch.end();
        let ranks = RankView::all(&scene);
        let cause = cause(&ranks);
        let mut text = format!("deadlock: {}\n{}perusal:   {}", cause.text, report(&ranks), cause.advice);
        self.proved = Some(Proved::new(cause, &ranks));
        self.write_report(&ranks);
        if self.plan.on_deadlock == OnDeadlock::Warn {
            self.say(&text);
        } else {
            text.push_str("; the ranks are ended");
            self.fail(Failure { status: 125, text });
        }
    }

    /// What each rank does, those of other jobs that have met this one among them.
    pub(crate) fn views(&self) -> Vec<RankView> {
        RankView::all(&self.universe.guests.scene(&self.memory))
    }

    /// What the ranks do, for who asks.
    pub(crate) fn say_what_ranks_do(&mut self) {
        let ranks = self.views();
        self.write_report(&ranks);
        self.say(&format!("what the ranks do\n{}", report(&ranks).trim_end()));
    }

    /// Writes what is known as JSON, where that was asked for, with the cause of a deadlock that has been proved.
    pub(crate) fn write_report(&mut self, ranks: &[RankView]) {
        let Some(file) = &self.plan.deadlock_report else { return };
        let cause = self.proved.as_ref().and_then(|proved| proved.holds(ranks));
        if let Err(error) = std::fs::write(file, format!("{:#}\n", json(cause, ranks))) {
            self.say(&format!("--deadlock-report {}: {error}", file.display()));
        }
    }
}
