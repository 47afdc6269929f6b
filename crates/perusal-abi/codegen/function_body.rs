//! The inside of an exported function.

use super::{ImplementationCall, Parameter, Variant, base};
use crate::abi::Function;
use crate::declarations::name_of;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Writes the inside of one function.
pub(super) struct Writer<'a> {
    pub(super) function: &'a Function,
    pub(super) call: &'a ImplementationCall<'a>,
    pub(super) parameters: &'a [Parameter],
    /// The function with counts of the other width.
    pub(super) twin: Option<&'a Function>,
    /// Behind an argument that may be wrong: hands its error on.
    pub(super) otherwise: &'static str,
    /// Its number in events of calls.
    pub(super) number: String,
}

impl Writer<'_> {
    /// The function, as its call has it.
    fn named(&self) -> String {
        format!("Function {{ name: {:?}, number: {} }}", self.function.name, self.number)
    }

    fn is_large(&self) -> bool {
        self.twin.is_some() && self.function.name.ends_with("_c")
    }

    fn parameter(&self, name: &str) -> &Parameter {
        let position = name.strip_prefix('$').and_then(|n| n.parse::<usize>().ok());
        let found = match position {
            Some(n) => self.parameters.get(n - 1),
            None => self.parameters.iter().find(|p| p.name == name),
        };
        found.unwrap_or_else(|| panic!("bindings.csv: {} has no argument {name}", self.function.name))
    }

    fn name(&self, name: &str) -> &str {
        &self.parameter(name).name
    }

    /// The arguments of the call: as the row lists them, or all that are no results.
    fn arguments(&self) -> Vec<&str> {
        match &self.call.arguments {
            Some(list) => list.clone(),
            None => {
                let results: BTreeSet<&str> = self.call.results.iter().map(|r| self.name(base(r))).collect();
                let names = self.parameters.iter().map(|p| p.name.as_str());
                names.filter(|name| !results.contains(name)).collect()
            }
        }
    }

    /// What does not come from an argument of C.
    fn constant(&self, item: &str) -> Option<String> {
        match item {
            "function" => Some(format!("{:?}", self.function.name)),
            "large" => Some(self.is_large().to_string()),
            _ => item.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).map(str::to_owned),
        }
    }

    /// A typed argument, made of one or several of C's.
    fn typed(&self, item: &str) -> String {
        if let Some(constant) = self.constant(item) {
            return constant;
        }
        let Some((name, rest)) = item.split_once('[') else {
            return format!("call.arg({}){}?", self.name(item), self.otherwise);
        };
        let with: Vec<&str> = rest
            .trim_end_matches(']')
            .split_whitespace()
            .map(|with| {
                with.strip_prefix('\'')
                    .map_or_else(|| self.name(with), |number| number.trim_end_matches('\''))
            })
            .collect();
        match with.len() {
            1 => format!("call.array({}, {}){}?", self.name(name), with[0], self.otherwise),
            2 => format!("call.buffer({}, {})", self.name(name), with.join(", ")),
            3 => format!("call.pieces({}, {}){}?", self.name(name), with.join(", "), self.otherwise),
            4 => format!("call.target({}, {}){}?", self.name(name), with.join(", "), self.otherwise),
            _ => panic!("bindings.csv: {item:?} of {}", self.function.name),
        }
    }

    /// The place of a result.
    fn place(&self, item: &str) -> String {
        match item.split_once('[') {
            None => {
                let (name, otherwise) = (self.name(item), self.otherwise);
                let declared =
                    self.function.arguments.iter().find(|a| name_of(a) == name).expect("an argument");
                let null = match declared.split(' ').next() {
                    Some("MPI_Comm") => Some("MPI_COMM_NULL"),
                    Some("MPI_Group") => Some("MPI_GROUP_NULL"),
                    Some("MPI_Session") => Some("MPI_SESSION_NULL"),
                    Some("MPI_Win") => Some("MPI_WIN_NULL"),
                    Some("MPI_File") => Some("MPI_FILE_NULL"),
                    _ => None,
                };
                match null {
                    Some(null) => format!("call.new_handle({name}, abi::{null}){otherwise}?"),
                    None if declared.starts_with("void ") => format!("call.pointer({name}){otherwise}?"),
                    None => format!("call.out({name}){otherwise}?"),
                }
            }
            Some((name, rest)) => {
                let (room, length) =
                    rest.trim_end_matches(']').split_once(' ').expect("bindings.csv: [ROOM length]");
                format!("call.text({}, abi::{room}, {})?", self.name(name), self.name(length.trim()))
            }
        }
    }

    fn given(&self) -> String {
        let arguments: Vec<String> = self.arguments().iter().map(|item| self.typed(item)).collect();
        format!("{}({})", self.call.fast_and_complete().1, arguments.join(", "))
    }

    /// The call, and its results where they belong.
    pub(super) fn call(&self) -> String {
        self.with_results(&self.given())
    }

    fn with_results(&self, given: &str) -> String {
        let places: Vec<String> = self.call.results.iter().map(|item| self.place(item)).collect();
        match &places[..] {
            [] => given.to_owned(),
            [place] => format!("let to = {place};\n        to.put({given}?){}", self.otherwise),
            _ => {
                let mut text = format!("let to = ({});\n        let given = {given}?;\n", places.join(", "));
                for i in 0..places.len() {
                    let end = if i + 1 < places.len() { "?;\n" } else { "" };
                    write!(text, "        to.{i}.put(given.{i}){}{end}", self.otherwise)
                        .expect("writing to a string");
                }
                text
            }
        }
    }

    pub(super) fn checked(&self, enter: &str, source: &str, call: &str) -> String {
        format!(
            "    let call = Call::new(&{});
    // SAFETY: the program's arguments are what the standard asks, which is what `Call` needs them to be.
    let run = || -> Result<()> {{ unsafe {{
        call.{enter}()?;
        {call}
    }} }};
    let result = run();
{}    call.end(result, || {source})",
            self.named(),
            if enter == "enter" { "    call.leave();\n" } else { "" },
        )
    }

    /// A function that needs MPI to be open. What the fast path does not do is a function of its own, which is given
    /// the arguments where they are.
    pub(super) fn open(&self, source: &str) -> String {
        let complete = self.checked("enter", source, &self.call());
        let Some(fast) = self.call.fast_and_complete().0 else { return complete };
        let arguments: Vec<String> = self.arguments().iter().map(|item| self.peeked(item)).collect();
        let list: Vec<String> = self.parameters.iter().map(|p| format!("{}: {}", p.name, p.ty)).collect();
        let names: Vec<&str> = self.parameters.iter().map(|p| p.name.as_str()).collect();
        format!(
            "    #[inline(never)]
    unsafe extern \"C\" fn complete({}) -> core::ffi::c_int {{
{complete}
    }}
    let call = Call::new(&{});
    // SAFETY: the program's arguments are what the standard asks, which is what `Call` needs them to be.
    let run = || -> Option<()> {{ unsafe {{ {fast}({}) }} }};
    if run().is_some() {{
        return abi::MPI_SUCCESS;
    }}
    // SAFETY: it is given the same arguments.
    unsafe {{ complete({}) }}",
            list.join(", "),
            self.named(),
            arguments.join(", "),
            names.join(", "),
        )
    }

    /// An argument of a fast path: a window that there is, or of a type that cannot be wrong as such.
    fn peeked(&self, item: &str) -> String {
        let typed = self.typed(item);
        if let Some(rest) = typed.strip_prefix("call.target(") {
            return format!("call.peek_target({rest}");
        }
        if self.function.arguments.contains(&format!("MPI_Win {item}")) {
            return format!("call.peek_window({item})?");
        }
        typed.replace("call.arg(", "call.direct(").replace(")?", ")")
    }

    pub(super) fn tool(&self) -> String {
        format!(
            "    let call = Call::new(&{});
    // SAFETY: the tool's arguments are what the standard asks, which is what `Call` needs them to be.
    let run = || -> mpi_t::Outcome {{ unsafe {{
        mpi_t::init::initialised()?;
        {}
    }} }};
    mpi_t::code(run())",
            self.named(),
            self.call()
        )
    }

    pub(super) fn plain(&self) -> String {
        let names: Vec<&str> = self.arguments().into_iter().map(|name| self.name(name)).collect();
        format!("    {}({})", self.call.path, names.join(", "))
    }

    pub(super) fn direct(&self) -> String {
        let arguments: Vec<String> = self.arguments().iter().map(|item| self.typed(item)).collect();
        let arguments: String = arguments.iter().map(|argument| format!(", {argument}")).collect();
        let arguments = arguments.replace("call.arg(", "call.direct(").replace(")?", ")");
        format!(
            "    let call = Call::new(&{});
    // SAFETY: the program's arguments are what the standard asks, which is what `Call` needs them to be.
    unsafe {{ {}(&call{arguments}) }}",
            self.named(),
            self.call.path,
        )
    }

    /// A collective operation, which is given the communicator first. `fast|path` in the row: `fast` is tried first;
    /// for a persistent request at each start, if it can be kept.
    pub(super) fn collective(&self, variant: Variant) -> String {
        let (fast_path, path) = self.call.fast_and_complete();
        let typed: Vec<String> = self.arguments().iter().map(|item| self.typed(item)).collect();
        let arguments: String = typed.iter().map(|argument| format!(", {argument}")).collect();
        let call = format!("|comm| {path}(comm{arguments})");
        let fast = |performer: &str, done: &str| {
            fast_path.map_or(String::new(), |fast| {
                format!(
                    "if let Some(done) = {fast}(collective::{performer}(call.arg(comm)?){arguments}) {{ return {done} }}\n        "
                )
            })
        };
        match variant {
            Variant::Blocking => {
                format!("{}collective::run(call.arg(comm)?, {call})", fast("AtOnce", "done"))
            }
            Variant::Nonblocking => {
                format!(
                    "let to = call.out(request)?;\n        {}to.put(collective::start(call.arg(comm)?, {call})?)",
                    fast("InBackground::Once", "to.put(collective::request(done)?)")
                )
            }
            Variant::Persistent => format!(
                "let to = call.out(request)?;\n        {}to.put(collective::prepare(call.arg(comm)?, {call}, call.arg(info)?, fast)?)",
                self.kept_fast_path(fast_path, &typed)
            ),
        }
    }

    /// The fast path of a persistent operation, none of whose arguments is an array.
    fn kept_fast_path(&self, path: Option<&str>, typed: &[String]) -> String {
        let is_array = |item: &&str| match item.split_once('[') {
            Some((_, with)) => with.split_whitespace().count() != 2,
            None => self.constant(item).is_none() && self.parameter(item).ty.starts_with('*'),
        };
        let has_arrays = self.arguments().iter().any(is_array);
        let Some(path) = path.filter(|_| !has_arrays) else { return "let fast = None;\n        ".to_owned() };
        let names: String = (0..typed.len()).map(|at| format!(", kept{at}")).collect();
        let keep = |(at, argument): (usize, &String)| {
            let keep = if argument.starts_with("call.buffer(") { ".keep()" } else { "" };
            format!("let kept{at} = {argument}{keep};\n        ")
        };
        let kept: String = typed.iter().enumerate().map(keep).collect();
        format!(
            "{kept}let fast = Some(collective::FastPath::new(move |performer| {path}(performer{names})));\n        "
        )
    }
}
