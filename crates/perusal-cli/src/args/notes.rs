//! What is said of options that are taken and not obeyed.

use super::{Plan, RunOptions};
use std::ffi::OsString;

/// Notes the options of other launchers that have no effect here, and perusal's own that have none on several hosts.
pub(super) fn note_what_has_no_effect(plan: &mut Plan, block: &RunOptions) {
    let mut note = |given: &[OsString], what: &str| {
        if !given.is_empty() {
            plan.notes
                .push(format!("{what} without effect: jobs run on this machine, by perusal's own means"));
        }
    };
    note(&block.hostfile, "a host file is");
    note(&block.mca, "another MPI's parameters (--mca) are");
    note(&block.elsewhere, "options on how to start processes elsewhere are");
    let reached = [&block.launcher, &block.launcher_exec, &block.iface];
    let reached: Vec<OsString> = reached.into_iter().flatten().cloned().collect();
    if plan.hosts.is_none() {
        return note(&reached, "options on how to reach other hosts are");
    }
    let given = [
        ("--check", block.check.is_some()),
        ("--timestamp-output", plan.timestamps),
        ("--on-deadlock", block.on_deadlock.is_some()),
        ("--share-heap", block.share_heap),
        ("--log-events", block.log_events.is_some()),
        ("--queue-statistics", block.queue_statistics),
        ("--list-events", block.list_events),
        ("--initial-errhandler", block.initial_errhandler.is_some()),
        ("--path", block.path.is_some()),
        ("--bind-to", block.bind_to.is_some()),
        ("--map-by", block.map_by.is_some()),
    ];
    let given = given.iter().filter(|one| one.1);
    plan.notes.extend(given.map(|(option, _)| {
        format!("{option} is without effect: on several hosts MPICH's launcher and library run the job")
    }));
}
