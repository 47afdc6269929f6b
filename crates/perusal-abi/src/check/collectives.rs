//! Collective calls, each compared with that of the member of the communicator that has come first (MPI 5.0 §6.14).

use super::{function, report, with};
use crate::coll::call::CollectiveOp;
use crate::coll::signature::{Difference, Signature};
use crate::coll::signature_table::{Meeting, SignatureTable, TEXT_BYTES, TableCall};
use crate::comm::{Comm, Group, Similarity};
use crate::process::engine;
use crate::shm::roster::names;
use std::collections::HashMap;

/// Collective calls of this process.
#[derive(Default)]
pub struct Calls {
    /// Calls on each communicator, by its context id.
    numbers: HashMap<u32, u32>,
    /// The job's table: unknown, not there, or there.
    table: Option<Option<SignatureTable>>,
    /// Calls that could not be compared.
    pub unknown: u64,
}

impl Calls {
    /// The job's table, if there is room for it.
    pub fn table(&mut self) -> Option<SignatureTable> {
        *self.table.get_or_insert_with(|| SignatureTable::of(engine().ok()?.job()).ok())
    }
}

impl Calls {
    /// A communicator has been freed; another one may get its context id.
    pub fn forget(&mut self, context: u32) {
        self.numbers.remove(&context);
    }
}

/// Compares a collective call that is about to begin with those of the other members.
pub fn compare(comm: &Comm, op: &CollectiveOp) {
    let signature = op.signature(function(), comm);
    meet(comm, signature, &|| op.about_with_lists().to_string(), "arguments", || report::name_of(comm));
}

/// Compares a collective call on a communicator that moves no data of the program's: `about` has in words what all members must give alike, which
/// is called `what`; it is empty if there is nothing, or the caller may give anything.
pub fn compare_on_comm(comm: &Comm, what: &'static str, about: &str) {
    compare_call(comm, what, about, || report::name_of(comm));
}

/// As [`compare_on_comm`], for a call on the window or file with the communicator `comm`, which `on` names.
pub fn compare_call(comm: &Comm, what: &'static str, about: &str, on: impl Fn() -> String) {
    meet(comm, Signature::of_call(function(), about), &|| about.to_owned(), what, on);
}

/// Says where members of the group that this call has given have given another one: the group that was `made` of all that they gave is then none of
/// theirs (MPI 5.0 §7.4.2).
pub fn compare_groups(comm: &Comm, given: &Group, made: &Group) {
    if given.compare(made) == Similarity::Ident {
        return;
    }
    let not_in = |one: &Group, other: &Group| -> Vec<u32> {
        one.iter().filter(|member| other.rank_of(*member).is_none()).collect()
    };
    let mut others = [not_in(given, made), not_in(made, given)].concat();
    others.sort_unstable();
    let differs = match others.as_slice() {
        [] => "a member of it gave it in another order".to_owned(),
        others => format!("{} gave another one", names(others)),
    };
    let finding = format!(
        "{} on {} was given the group of {}, and {differs}; all members of a group must give the same one, in the same order",
        function(),
        report::name_of(comm),
        names(&given.iter().collect::<Vec<_>>())
    );
    with(|state| state.findings.say(finding));
}

fn meet(
    comm: &Comm,
    signature: Signature,
    about: &dyn Fn() -> String,
    what: &'static str,
    on: impl Fn() -> String,
) {
    let Ok(engine) = engine() else { return };
    // The table is memory of one job.
    if engine.has_guests(crate::coll::agreement::members(comm)) {
        return;
    }
    let members = comm.size() + comm.remote().map_or(0, Group::size);
    with(|state| {
        let number = state.collectives.numbers.entry(comm.context).or_default();
        *number += 1;
        let (number, rank) = (*number, engine.rank());
        let text = || {
            let mut text = format!("{}|{}", function(), about());
            text.truncate(text.floor_char_boundary(TEXT_BYTES));
            text
        };
        let call = TableCall { context: comm.context, number, members, rank, signature };
        let meeting = state.collectives.table().map_or(Meeting::Unknown, |table| table.meet(&call, text));
        let place = || format!("no. {number} on {}", on());
        match meeting {
            Meeting::Agrees => {}
            Meeting::Unknown => state.collectives.unknown += 1,
            Meeting::LengthsUnbalanced => state.findings.say_for_all(format!(
                "{} {}: what some rank sends is not as long as what its receiver expects; compare the counts and types",
                function(),
                place()
            )),
            Meeting::TypesUnbalanced => state.findings.say_for_all(format!(
                "{} {}: what some rank sends has other types than what its receiver expects; compare the types",
                function(),
                place()
            )),
            Meeting::Differs(first, other, text) => {
                let (name, said) = text.split_once('|').unwrap_or((&text, ""));
                let about = about();
                let mut both = [(first, name, said), (rank, function(), about.as_str())];
                both.sort_unstable_by_key(|(rank, ..)| *rank);
                let with_name = |(rank, name, said): &(u32, &str, &str)| {
                    let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
                    format!("rank {rank} {name}{said}")
                };
                let alone = |(rank, _, said): &(u32, &str, &str)| format!("rank {rank} {said}");
                let differs = match signature.difference(&other) {
                    Some(Difference::Function) | None => {
                        state.findings.say_for_all(format!(
                            "the ranks call different collective operations as {}: {}, {}",
                            place(),
                            with_name(&both[0]),
                            with_name(&both[1])
                        ));
                        return;
                    }
                    Some(Difference::Root) => "roots",
                    Some(Difference::Op) => "operations",
                    Some(Difference::Length) => "lengths",
                    Some(Difference::Type) => "types",
                    Some(Difference::Lengths) => "lists of lengths",
                    Some(Difference::Arguments) => what,
                };
                let finding =
                    format!("the {differs} of {} {} differ: {}; {}", function(), place(), alone(&both[0]), alone(&both[1]));
                state.findings.say_for_all(finding);
            }
        }
    });
}
