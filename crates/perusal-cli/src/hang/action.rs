//! What the launcher does about a job that stands still.

use super::{Cause, RankView, cause, json, report};
use crate::args::OnDeadlock;
use crate::failure::Failure;
use crate::supervisor::Supervisor;

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
        self.write_report(Some(&cause), &ranks);
        let report = report(&ranks);
        let mut text = format!("deadlock: {}\n{report}perusal:   {}", cause.text, cause.advice);
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
        self.write_report(None, &ranks);
        self.say(&format!("what the ranks do\n{}", report(&ranks).trim_end()));
    }

    /// Writes what is known as JSON, where that was asked for.
    pub(crate) fn write_report(&mut self, cause: Option<&Cause>, ranks: &[RankView]) {
        let Some(file) = &self.plan.deadlock_report else { return };
        if let Err(error) = std::fs::write(file, format!("{:#}\n", json(cause, ranks))) {
            self.say(&format!("--deadlock-report {}: {error}", file.display()));
        }
    }
}
