//! Collective calls, each compared with that of the member of the communicator that has come first (MPI 5.0 §6.14).

use super::{State, function, report, threads, with};
use crate::coll::call::CollectiveOp;
use crate::coll::signature::{Difference, Signature};
use crate::coll::signature_table::{Comparison, SignatureTable, TEXT_BYTES, TableCall};
use crate::comm::{Comm, Group, Similarity};
use crate::events::CommEvents;
use crate::process::engine;
use crate::shm::roster::names;
use std::collections::HashMap;
use std::sync::Arc;

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
    /// Compares a call with that of the member that came first, of which the table keeps `text`.
    fn compare(&mut self, call: &TableCall, text: impl FnOnce() -> String) -> Comparison {
        let text = || {
            let mut text = text();
            text.truncate(text.floor_char_boundary(TEXT_BYTES));
            text
        };
        let comparison = self.table().map_or(Comparison::Unknown, |table| table.compare(call, text));
        self.unknown += u64::from(comparison == Comparison::Unknown);
        comparison
    }

    /// A communicator has been freed; another one may get its context id.
    pub fn forget(&mut self, context: u32) {
        self.numbers.remove(&context);
    }
}

/// Compares a collective call that is about to begin with those of the other members.
/// Returns its number, if it has one.
pub fn compare(comm: &Comm, op: &CollectiveOp) -> Option<u32> {
    let signature = op.signature(function(), comm);
    compare_signatures(comm, signature, &|| op.about_with_lists().to_string(), "arguments", || {
        report::name_of(comm)
    })
}

/// Compares a collective call on a communicator that moves no data of the program's: `about` has in words what all
/// members must give alike, which is called `what`; it is empty if there is nothing, or the caller may give anything.
pub fn compare_on_comm(comm: &Comm, what: &'static str, about: &str) {
    compare_call(comm, what, about, || report::name_of(comm));
}

/// As [`compare_on_comm`], for a call on the window or file with the communicator `comm`, which `on` names.
pub fn compare_call(comm: &Comm, what: &'static str, about: &str, on: impl Fn() -> String) {
    compare_signatures(comm, Signature::of_call(function(), about), &|| about.to_owned(), what, on);
}

/// Says where members of the group that this call has given have given another one: the group that was `made` of all
/// that they gave is then none of theirs (MPI 5.0 §7.4.2).
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

/// Members of a communicator, those of both groups of an intercommunicator.
fn members_of(comm: &Comm) -> u32 {
    comm.size() + comm.remote().map_or(0, Group::size)
}

fn compare_signatures(
    comm: &Comm,
    signature: Signature,
    about: &dyn Fn() -> String,
    what: &'static str,
    on: impl Fn() -> String,
) -> Option<u32> {
    let engine = engine().ok()?;
    // The table is memory of one job.
    if engine.has_guests(crate::coll::agreement::members(comm)) {
        return None;
    }
    let members = members_of(comm);
    with(|state| {
        threads::collective(state, comm.context, function(), &on);
        let number = state.collectives.numbers.entry(comm.context).or_default();
        *number += 1;
        let (number, rank) = (*number, engine.rank());
        let call = TableCall { context: comm.context, number, members, rank, signature };
        let comparison = state.collectives.compare(&call, || format!("{}|{}", function(), about()));
        let place = || format!("no. {number} on {}", on());
        match comparison {
            Comparison::Agrees | Comparison::Unknown => {}
            Comparison::LengthsUnbalanced => state.findings.say_for_all(format!(
                "{} {}: what some rank sends is not as long as what its receiver expects; compare the counts and types",
                function(),
                place()
            )),
            Comparison::TypesUnbalanced => state.findings.say_for_all(format!(
                "{} {}: what some rank sends has other types than what its receiver expects; compare the types",
                function(),
                place()
            )),
            Comparison::RootsUnbalanced => state.findings.say_for_all(format!(
                "{} {}: the root that one group names is not the one rank of the other group that gives MPI_ROOT",
                function(),
                place()
            )),
            Comparison::Differs(first, other, text) => {
                let (name, said) = text.split_once('|').unwrap_or((&text, ""));
                let about = about();
                let mut both = [(first, name, said), (rank, function(), about.as_str())];
                both.sort_unstable_by_key(|(rank, ..)| *rank);
                let difference = signature.difference(&other).unwrap_or(Difference::Function);
                state.findings.say_for_all(difference_text(difference, what, &place(), &both));
            }
        }
        number
    })
}

/// The sentence for two calls as `place` that differ: a rank each, the function, and what it says of its arguments.
fn difference_text(
    difference: Difference,
    what: &str,
    place: &str,
    [one, other]: &[(u32, &str, &str); 2],
) -> String {
    let with_name = |(rank, name, said): &(u32, &str, &str)| {
        let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
        format!("rank {rank} {name}{said}")
    };
    let alone = |(rank, _, said): &(u32, &str, &str)| format!("rank {rank} {said}");
    let differs = match difference {
        Difference::Function => {
            return format!(
                "the ranks call different collective operations as {place}: {}, {}",
                with_name(one),
                with_name(other)
            );
        }
        Difference::Root => "roots",
        Difference::Op => "operations",
        Difference::Length => "lengths",
        Difference::Type => "types",
        Difference::Lengths => "lists of lengths",
        Difference::Arguments => what,
    };
    format!("the {differs} of {} {place} differ: {}; {}", function(), alone(one), alone(other))
}

/// How often this rank has started a persistent operation.
pub struct Starts {
    /// The context of its communicator, whose members start it equally often.
    context: u32,
    members: u32,
    comm: Arc<CommEvents>,
    /// The function that made it, and its number on the communicator.
    made: (&'static str, u32),
    /// How often it has been started.
    pub times: u64,
}

/// Above the numbers of calls: the number of a call with this bit is that of the starts of what it made.
const STARTS: u32 = 1 << 31;

impl Starts {
    /// None yet, of the operation that this call has made as the `number`th on its communicator.
    pub fn new(comm: &Comm, number: u32) -> Self {
        let (context, members) = (comm.context, members_of(comm));
        Self { context, members, comm: comm.events.clone(), made: (function(), number), times: 0 }
    }

    /// Compares them, which will be no more, with those of the other members (MPI 5.0 §6.13).
    pub fn compare(&self, state: &mut State) {
        let Ok(engine) = engine() else { return };
        let (rank, (function, number)) = (engine.rank(), self.made);
        let said = format!("started {} times", self.times);
        let signature = Signature::of_call(function, &said);
        let call = TableCall {
            context: self.context,
            number: number | STARTS,
            members: self.members,
            rank,
            signature,
        };
        if let Comparison::Differs(first, other, text) = state.collectives.compare(&call, || said.clone())
            && signature.difference(&other) == Some(Difference::Arguments)
        {
            let mut both = [(first, text), (rank, said)];
            both.sort_unstable_by_key(|(rank, _)| *rank);
            let [(one, once), (two, twice)] = both;
            let name = report::in_quotation_marks(&self.comm.about().name);
            state.findings.say_for_all(format!(
                "the starts of {function} no. {number} on {name} differ: rank {one} {once}; rank {two} {twice}"
            ));
        }
    }
}
