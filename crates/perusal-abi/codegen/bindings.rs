//! Source text of the exported functions, from the ABI's table (`functions.csv`) and the table of what implements them
//! (`bindings.csv`).
//!
//! # A row
//! `function,section,form,raises,calls`. It stands for the function, for its large-count twin `_c` unless that has a
//! row of its own, and for a family if there is a list in braces: `MPI_{Comm,Type}_set_attr`; `{}` in `calls` is then
//! the word from the list, `{_}` the same in small letters. Every function of the ABI has a row.
//!
//! - `section`: of MPI 5.0.
//! - `form`: see [`RowForm`].
//! - `raises`: on which object errors are raised, if not on the first communicator, window, file or session that is
//!   passed, or else MPI_COMM_SELF; `*comm` for a handle that is passed by address.
//! - `calls`: the implementation, its arguments and its results: `path(argument; …) -> result; …`. Without arguments,
//!   it is given all of C's in their order but for the results.
//!
//! | argument | what the implementation is given |
//! |---|---|
//! | `name`, or `$2` for the second | what its parameter's type makes of it (`Argument` in `src/arguments/mod.rs`) |
//! | `name[length]` | an array (`Array`) |
//! | `name[count datatype]` | a buffer (`Buffer`) |
//! | `name[counts displs datatype]` | a buffer with a piece for each peer (`Varied`) |
//! | `name[disp count datatype win]` | the target of a one-sided operation (`Target`) |
//! | `'expression'` | that |
//! | `large` | whether this is the twin with large counts |
//! | `function` | the function's name |
//!
//! `fast|path(argument; …)`: `fast` is called first, with the same arguments. If it gives `None`, it has done nothing,
//! and `path` is called; so it is where a window's handle is none. Other arguments of `fast` cannot be wrong as such.
//!
//! A result is the name of an output argument, in the order in which the implementation returns them, or
//! `name[ROOM length]` for a text and its length. A new communicator, window, file,
//! group or session is the null handle until it is there.

mod function_body;

use crate::abi::Function;
use crate::declarations::{name_of, rust_type};
use function_body::Writer;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A row of `bindings.csv`.
struct Row<'a> {
    /// The function's name; a list in braces stands for a family: `MPI_{Comm,Win}_create_errhandler`.
    function: &'a str,
    /// Where the standard has it.
    section: &'a str,
    /// When it may be called, and what it gives.
    form: RowForm,
    /// Where its errors are raised, if not on the first communicator, window, file or session that is passed, or else
    /// MPI_COMM_SELF.
    raises: &'a str,
    /// What implements it.
    calls: &'a str,
}

/// What surrounds the call of the implementation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowForm {
    /// MPI must be open, and no event callback may run on this thread.
    Open,
    /// Legal before MPI_Init and after MPI_Finalize too, but in no event callback.
    Anytime,
    /// MPI must be open. An event callback may call it: it communicates with nobody, makes no progress, raises no
    /// event, and takes no lock but one in which no event is raised.
    Enquiry,
    /// The same, legal before MPI_Init and after MPI_Finalize too.
    AnytimeEnquiry,
    /// A function of MPI_T: MPI_T must be initialised; gives an error class and raises nothing.
    Tool,
    /// Checks nothing and cannot fail; an event callback may call it.
    Plain,
    /// The implementation is given the [`Call`](../src/arguments/mod.rs) and arguments that cannot be wrong as such,
    /// and does by itself all that surrounds it elsewhere: what has a fast path.
    Direct,
    /// A collective operation with its nonblocking and persistent forms.
    Collective,
}

/// Arguments and results of a call, as a row has them.
struct ImplementationCall<'a> {
    path: &'a str,
    /// `None`: all arguments in their order, but for the results.
    arguments: Option<Vec<&'a str>>,
    results: Vec<&'a str>,
}

/// One argument of a C function.
struct Parameter {
    name: String,
    ty: String,
}

/// All functions, each of which a row implements. `observed` is the source that lists those whose calls have events, by
/// their number.
pub fn source(functions: &[Function], table: &str, observed: &str) -> String {
    let names = observed.split("    c\"").skip(1);
    let observed: Vec<&str> = names.filter_map(|rest| Some(rest.split_once('"')?.0)).collect();
    let known: BTreeMap<&str, &Function> = functions.iter().map(|f| (f.name.as_str(), f)).collect();
    let mut written = BTreeSet::new();
    let mut enquiries = Vec::new();
    let mut text = String::new();
    let named: BTreeSet<String> =
        rows(table).flat_map(|row| expanded(row.function)).map(|(name, _)| name).collect();
    for row in rows(table) {
        for (name, word) in expanded(row.function) {
            for (name, variant) in row.variants(&name, &known, &named) {
                assert!(written.insert(name.clone()), "bindings.csv: {name} is implemented twice");
                if matches!(row.form, RowForm::Enquiry | RowForm::AnytimeEnquiry | RowForm::Plain) {
                    enquiries.push(name.clone());
                }
                row.write(&mut text, known[name.as_str()], &word, variant, &known, &observed);
            }
        }
    }
    text.push_str("/// What an event callback may call, besides MPI_T and PERUSE, in the order of the table of implementations.\n");
    text.push_str("pub const ENQUIRIES: &[&str] = &[\n");
    enquiries.iter().for_each(|name| writeln!(text, "    \"{name}\",").expect("writing to a string"));
    text.push_str("];\n");
    let missing: Vec<&str> = known.keys().filter(|name| !written.contains(**name)).copied().collect();
    assert!(missing.is_empty(), "bindings.csv: the ABI has these functions too: {}", missing.join(", "));
    text
}

/// The number of a function in events of calls, if it has any. Forms for large counts have that of the others.
fn number_of(observed: &[&str], has_events: bool, name: &str) -> String {
    let is_it = |observed: &&str| *observed == name || name.strip_suffix("_c") == Some(*observed);
    match observed.iter().position(is_it) {
        Some(number) if has_events => number.to_string(),
        None if has_events => panic!("{name} belongs at the end of src/events/functions.rs"),
        _ => "Function::WITHOUT_EVENTS".to_owned(),
    }
}

fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    table.lines().skip(1).filter(|row| !row.trim().is_empty()).map(Row::of)
}

/// How a collective operation is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    Blocking,
    Nonblocking,
    Persistent,
}

impl<'a> Row<'a> {
    fn of(row: &'a str) -> Self {
        let fields: Vec<&str> = split_row(row);
        let [function, section, form, raises, calls] = fields[..] else {
            panic!("bindings.csv: expected function,section,form,raises,calls in {row:?}");
        };
        let form = match form {
            "" => RowForm::Open,
            "anytime" => RowForm::Anytime,
            "enquiry" => RowForm::Enquiry,
            "anytime enquiry" => RowForm::AnytimeEnquiry,
            "tool" => RowForm::Tool,
            "plain" => RowForm::Plain,
            "direct" => RowForm::Direct,
            "collective" => RowForm::Collective,
            other => panic!("bindings.csv: unknown form {other:?}"),
        };
        Self { function, section, form, raises, calls }
    }

    /// The functions that the row stands for: the one of this name, its large-count twin unless that has a row of its
    /// own, and the other forms of a collective operation.
    fn variants(
        &self,
        name: &str,
        known: &BTreeMap<&str, &Function>,
        named: &BTreeSet<String>,
    ) -> Vec<(String, Variant)> {
        let mut variants = vec![(name.to_owned(), Variant::Blocking)];
        if self.form == RowForm::Collective {
            let operation = name.strip_prefix("MPI_").expect("a function of MPI");
            variants.push((format!("MPI_I{}", operation.to_lowercase()), Variant::Nonblocking));
            variants.push((format!("{name}_init"), Variant::Persistent));
        }
        assert!(
            variants.iter().all(|(name, _)| known.contains_key(name.as_str())),
            "bindings.csv: no {name}"
        );
        let twins: Vec<_> = variants.iter().map(|(name, variant)| (format!("{name}_c"), *variant)).collect();
        let has_twin = |name: &str| known.contains_key(name) && !named.contains(name);
        variants.extend(twins.into_iter().filter(|(name, _)| has_twin(name)));
        variants
    }

    fn write(
        &self,
        text: &mut String,
        function: &Function,
        word: &str,
        variant: Variant,
        known: &BTreeMap<&str, &Function>,
        observed: &[&str],
    ) {
        let calls = self.calls.replace("{}", word).replace("{_}", &word.to_lowercase());
        let call = ImplementationCall::of(&calls);
        let parameters = parameters(function);
        let returns = match (self.form, function.returns.as_str()) {
            (_, "int") => "core::ffi::c_int".to_owned(),
            (_, other) => rust_type(other),
        };
        writeln!(
            text,
            "/// MPI 5.0 §{}.\n///\n/// # Safety\n/// The arguments are what the standard asks of a program.",
            self.section
        )
        .expect("writing to a string");
        let twin = match function.name.strip_suffix("_c") {
            Some(base) => known.get(base),
            None => known.get(format!("{}_c", function.name).as_str()),
        };
        let otherwise = if self.form == RowForm::Tool { ".map_err(mpi_t::invalid)" } else { "" };
        let has_events = matches!(self.form, RowForm::Open | RowForm::Direct | RowForm::Collective)
            && !function.name.starts_with("MPI_T_");
        let number = number_of(observed, has_events, &function.name);
        let writer =
            Writer { function, call: &call, parameters: &parameters, twin: twin.copied(), otherwise, number };
        let body = match self.form {
            RowForm::Plain => writer.plain(),
            RowForm::Direct => writer.direct(),
            RowForm::Tool => writer.tool(),
            RowForm::Collective => {
                writer.checked("enter", &self.source(function), &writer.collective(variant))
            }
            RowForm::Open => writer.open(&self.source(function)),
            RowForm::Anytime => writer.checked("enter_anytime", &self.source(function), &writer.call()),
            RowForm::Enquiry => writer.checked("enter_enquiry", &self.source(function), &writer.call()),
            RowForm::AnytimeEnquiry => {
                writer.checked("enter_anytime_enquiry", &self.source(function), &writer.call())
            }
        };
        exported(text, function, &parameters, &returns, &body);
    }

    /// The expression that says where errors are raised.
    fn source(&self, function: &Function) -> String {
        match (self.raises, self.raises.strip_prefix('*')) {
            ("", _) => source_of(function),
            // The handle is passed by address.
            (_, Some(at)) => {
                let (source, null) = match at {
                    "session" => ("ErrorSource::Session", "MPI_SESSION_NULL"),
                    "win" => ("ErrorSource::Win", "MPI_WIN_NULL"),
                    "fh" => ("ErrorSource::File", "MPI_FILE_NULL"),
                    _ => ("ErrorSource::Comm", "MPI_COMM_NULL"),
                };
                format!(
                    "{{
        // SAFETY: argument rule 1: the address of a handle, or NULL.
        {source}(unsafe {{ call.handle({at}, abi::{null}) }})
    }}"
                )
            }
            (source, None) => source.to_owned(),
        }
    }
}

/// The fields of a row; only the last two may hold commas, the fourth in parentheses.
fn split_row(row: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in row.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            ',' if depth == 0 && fields.len() < 4 => {
                fields.push(row[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    fields.push(row[start..].trim());
    fields
}

/// The names of a family, each with the word that tells it from the others.
fn expanded(function: &str) -> Vec<(String, String)> {
    match function.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
        Some((head, (words, tail))) => {
            words.split(',').map(|word| (format!("{head}{word}{tail}"), word.to_owned())).collect()
        }
        None => vec![(function.to_owned(), String::new())],
    }
}

impl<'a> ImplementationCall<'a> {
    fn of(calls: &'a str) -> Self {
        let (call, results) = calls.split_once("->").map_or((calls, ""), |(call, results)| (call, results));
        let list = |text: &'a str| -> Vec<&'a str> {
            text.split(';').map(str::trim).filter(|item| !item.is_empty()).collect()
        };
        let call = call.trim();
        let (path, arguments) = match call.split_once('(') {
            Some((path, rest)) => {
                (path, Some(list(rest.strip_suffix(')').expect("bindings.csv: a closing parenthesis"))))
            }
            None => (call, None),
        };
        Self { path: path.trim(), arguments, results: list(results) }
    }

    /// What is tried first, if anything is, and what does everything.
    fn fast_and_complete(&self) -> (Option<&'a str>, &'a str) {
        self.path.split_once('|').map_or((None, self.path), |(fast, complete)| (Some(fast), complete))
    }
}

fn base(item: &str) -> &str {
    item.split_once('[').map_or(item, |(name, _)| name)
}

/// The function itself, strong as `PMPI_X`, and its weak alias `MPI_X`.
fn exported(text: &mut String, function: &Function, parameters: &[Parameter], returns: &str, body: &str) {
    let name = &function.name;
    let list: Vec<String> = parameters.iter().map(|p| format!("{}: {}", p.name, p.ty)).collect();
    writeln!(
        text,
        "#[unsafe(export_name = \"P{name}\")]
pub unsafe extern \"C\" fn {name}({}) -> {returns} {{
{body}
}}
core::arch::global_asm!(\".weak {name}\", \".set {name}, P{name}\");
",
        list.join(", ")
    )
    .expect("writing to a string");
}

/// The object whose error handler is called: the first communicator, window, file or session that is passed. What is
/// about files and is passed none raises its errors on MPI_FILE_NULL (MPI 5.0 §14.7).
fn source_of(function: &Function) -> String {
    let of_no_file = ["MPI_File_open", "MPI_File_delete", "MPI_Register_datarep", "MPI_Register_datarep_c"];
    if of_no_file.contains(&function.name.as_str()) {
        return "ErrorSource::File(abi::MPI_FILE_NULL)".to_owned();
    }
    for (argument, parameter) in function.arguments.iter().zip(parameters(function)) {
        if argument.contains(['*', '[']) {
            continue;
        }
        let name = parameter.name;
        match argument.split_whitespace().next() {
            Some("MPI_Comm") => return format!("ErrorSource::Comm({name})"),
            Some("MPI_Win") => return format!("ErrorSource::Win({name})"),
            Some("MPI_File") => return format!("ErrorSource::File({name})"),
            Some("MPI_Session") => return format!("ErrorSource::Session({name})"),
            _ => {}
        }
    }
    "ErrorSource::Nothing".to_owned()
}

fn parameters(function: &Function) -> Vec<Parameter> {
    let fixed = function.arguments.iter().filter(|a| *a != "...");
    fixed.map(|a| Parameter { name: name_of(a).to_owned(), ty: rust_type(a) }).collect()
}
