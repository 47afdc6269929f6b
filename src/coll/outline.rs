//! What a collective call is, in a few words that it may keep until somebody asks ([`CollectiveAbout`]):
//! making them allocates nothing.

use super::call::{CollectiveOp, Form};
use crate::events::{CollMode, Collective};
use crate::shm::telemetry::{CollectiveAbout, RootAbout};
use core::fmt;

/// The arguments of a collective call, and whether it is one that a request stands for.
#[derive(Debug, Clone, Copy)]
pub struct Outline {
    function: Function,
    /// Its number among the collective calls on its communicator, from 1; 0 if it is not known.
    number: u64,
    root: Option<RootAbout>,
    data: Option<Amount>,
    op: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Function {
    /// That which the program is in.
    Current,
    /// A form of a collective operation: how its name ends, and its mode.
    Form(Collective, &'static str, CollMode),
    /// Another one.
    Named(&'static str),
}

/// How many elements of which type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    pub count: usize,
    /// The type's name; empty if it has none.
    pub name: &'static str,
    /// Bytes of an element.
    pub size: usize,
}

impl Outline {
    /// Outlines a call of `function`, the `number`th on its communicator (0: unknown), of which nothing else is known.
    #[must_use]
    pub const fn of_function(function: &'static str, number: u64) -> Self {
        Self { function: Function::Named(function), number, root: None, data: None, op: "" }
    }

    /// Returns what people want to know of the call.
    #[must_use]
    pub fn about(&self) -> CollectiveAbout {
        let data =
            self.data.map_or_else(String::new, |Amount { count, name, size }| elements(count, name, size));
        CollectiveAbout {
            function: self.function.name(),
            number: self.number,
            root: self.root,
            data,
            bytes: self.data.map(|Amount { count, size, .. }| (count as u64).saturating_mul(size as u64)),
            op: self.op.to_owned(),
        }
    }
}

/// "4 × MPI_INT", or, of a type without a name, its bytes.
fn elements(count: impl fmt::Display, name: &str, size: usize) -> String {
    match name {
        "" => format!("{count} × a type of {size} bytes"),
        name => format!("{count} × {name}"),
    }
}

/// A list of lengths, for people: all of a short one; of a long one the first, how many they are, and their sum.
fn list(lengths: &[usize]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = lengths.iter().take(SHOWN).map(usize::to_string).collect();
    let shown = shown.join(", ");
    if lengths.len() <= SHOWN {
        return format!("[{shown}]");
    }
    let sum = lengths.iter().fold(0, |sum: usize, length| sum.saturating_add(*length));
    format!("[{shown}, …: {} lengths, together {sum}]", lengths.len())
}

impl Function {
    /// The function of the request; empty for one that the program is in.
    fn name(self) -> String {
        match self {
            Self::Current => String::new(),
            Self::Named(name) => name.to_owned(),
            Self::Form(operation, ending, mode) => {
                let name = Collective::NAMES[operation as usize].to_string_lossy();
                match mode {
                    CollMode::Persistent => {
                        let mut name = format!("MPI_{name}{ending}_init");
                        name[4..5].make_ascii_uppercase();
                        name
                    }
                    _ => format!("MPI_I{name}{ending}"),
                }
            }
        }
    }
}

impl CollectiveOp {
    /// Outlines the call, in which the program is, and which is the `number`th on its communicator.
    #[must_use]
    pub fn outline(&self, number: u64) -> Outline {
        Outline {
            function: Function::Current,
            number,
            root: self.root(),
            data: self.amount(),
            op: self.reduction_name(),
        }
    }

    /// Returns what people compare of the call with those of other members: as [`Outline::about`], with the list of
    /// lengths that all must give alike, and the contents of types without a name.
    #[must_use]
    pub fn about_with_lists(&self) -> CollectiveAbout {
        let mut about = self.outline(0).about();
        let lists = match self {
            Self::Allgather(_, pieces) => match &pieces.form {
                Form::Varied(counts, _, datatype) => Some((counts, datatype)),
                _ => None,
            },
            Self::ReduceScatter(operands, _, counts, _) => Some((counts, operands.datatype())),
            _ => None,
        };
        if let Some((counts, datatype)) = lists {
            about.data = elements(list(counts), datatype.initial_name(), datatype.size());
        } else if let Some(contents) = self.contents_without_name() {
            about.data = contents;
        }
        about
    }

    /// Outlines the call, for which a request stands.
    #[must_use]
    pub fn outline_of_request(&self, number: u64, mode: CollMode) -> Outline {
        let function = Function::Form(self.operation(), self.ending(), mode);
        Outline { function, ..self.outline(number) }
    }

    /// How the name of the function ends that has these arguments.
    const fn ending(&self) -> &'static str {
        match self {
            Self::Gather(_, _, _, false) | Self::Scatter(_, _, _, false) => "v",
            Self::Allgather(_, pieces)
            | Self::Alltoall(_, pieces)
            | Self::NeighbourAllgather(_, pieces)
            | Self::NeighbourAlltoall(_, pieces) => match pieces.form {
                Form::Even(..) => "",
                Form::Varied(..) => "v",
                Form::Each(..) => "w",
            },
            _ => "",
        }
    }
}

#[cfg(all(test, not(perusal_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_by_the_function_that_made_it() {
        let name = |mode| CollectiveOp::Barrier.outline_of_request(3, mode).about();
        assert_eq!(name(CollMode::Nonblocking).function, "MPI_Ibarrier");
        assert_eq!(name(CollMode::Persistent).function, "MPI_Barrier_init");
        assert_eq!((name(CollMode::Nonblocking).number, name(CollMode::Nonblocking).data.as_str()), (3, ""));
        assert_eq!(CollectiveOp::Barrier.outline(3).about().function, "");
    }

    #[test]
    fn a_long_list_of_lengths_is_shortened() {
        assert_eq!(elements(list(&[2, 3]), "MPI_INT", 4), "[2, 3] × MPI_INT");
        assert_eq!(list(&[1; 8]), "[1, 1, 1, 1, 1, 1, 1, 1]");
        assert_eq!(list(&[2; 9]), "[2, 2, 2, 2, 2, 2, 2, 2, …: 9 lengths, together 18]");
        assert_eq!(elements(list(&[]), "", 12), "[] × a type of 12 bytes");
    }
}
