//! Every function of MPI_T, and every code that it may give, is asserted in a program of `tests/c`: which codes those
//! are follows from the function's arguments in the ABI's table. Whether the assertions hold is for `c_programs` to
//! say; here, that none is missing.

use crate::common::root;
use std::collections::BTreeSet;
use std::fs;

/// Codes that no function gives, as `docs/tool-variables.md` says.
const NEVER: [&str; 3] = ["MPI_T_ERR_INVALID_ITEM", "MPI_T_ERR_NOT_ACCESSIBLE", "MPI_T_ERR_NOT_SUPPORTED"];

struct Function {
    name: String,
    arguments: Vec<String>,
}

fn functions() -> Vec<Function> {
    let table = fs::read_to_string(root().join("crates/perusal-abi/src/abi/functions.csv"))
        .expect("the ABI's functions");
    let rows = table.lines().filter_map(|line| line.split_once(','));
    let named =
        rows.filter_map(|(_, rest)| rest.split_once(',')).filter(|(name, _)| name.starts_with("MPI_T_"));
    let arguments =
        |text: &str| text.trim_matches('"').split(';').map(|part| part.trim().to_owned()).collect();
    named.map(|(name, text)| Function { name: name.to_owned(), arguments: arguments(text) }).collect()
}

impl Function {
    fn takes(&self, of: impl Fn(&str) -> bool) -> bool {
        self.arguments.iter().any(|argument| of(argument))
    }

    /// Whether each of its results may be unwanted, so that NULL is no error.
    fn has_no_result_that_must_go_somewhere(&self) -> bool {
        let shows = ["cvar", "pvar", "enum", "category", "source"].map(|of| format!("MPI_T_{of}_get_info"));
        let others = [
            "MPI_T_event_get_info",
            "MPI_T_enum_get_item",
            "MPI_T_event_handle_free",
            "MPI_T_event_set_dropped_handler",
        ];
        shows.contains(&self.name)
            || others.contains(&self.name.as_str())
            || !self.takes(|it| it.contains(['*', '[']))
    }

    /// The codes that its arguments allow.
    fn codes(&self) -> Vec<&'static str> {
        let makes = self.name.ends_with("_alloc") || self.name.ends_with("_create");
        let mut codes = vec!["MPI_SUCCESS"];
        let mut add = |code, holds: bool| codes.extend(holds.then_some(code));
        add("MPI_T_ERR_NOT_INITIALIZED", self.name != "MPI_T_init_thread");
        add("MPI_T_ERR_CANNOT_INIT", self.name == "MPI_T_init_thread");
        add("MPI_T_ERR_INVALID", !self.has_no_result_that_must_go_somewhere());
        add("MPI_T_ERR_INVALID_NAME", self.takes(|it| it == "const char *name"));
        let index = |it: &str| it.starts_with("int ") && it.ends_with("_index") && !it.contains('*');
        add("MPI_T_ERR_INVALID_INDEX", self.takes(|it| index(it) || it.starts_with("MPI_T_enum enumtype")));
        let session = |it: &str| it.starts_with("MPI_T_pvar_session ");
        add("MPI_T_ERR_INVALID_SESSION", self.takes(session) && !self.name.ends_with("_create"));
        let handle = |it: &str| {
            let kinds = ["cvar_handle", "pvar_handle", "event_registration", "event_instance"];
            kinds.iter().any(|kind| it.starts_with(&format!("MPI_T_{kind} ")))
        };
        add("MPI_T_ERR_INVALID_HANDLE", self.takes(handle) && !makes);
        add("MPI_T_ERR_OUT_OF_HANDLES", self.name.ends_with("_handle_alloc"));
        add("MPI_T_ERR_OUT_OF_SESSIONS", self.name == "MPI_T_pvar_session_create");
        add("MPI_T_ERR_CVAR_SET_NEVER", self.name == "MPI_T_cvar_write");
        add("MPI_T_ERR_CVAR_SET_NOT_NOW", self.name == "MPI_T_cvar_write");
        add(
            "MPI_T_ERR_PVAR_NO_STARTSTOP",
            ["MPI_T_pvar_start", "MPI_T_pvar_stop"].contains(&self.name.as_str()),
        );
        add(
            "MPI_T_ERR_PVAR_NO_WRITE",
            ["MPI_T_pvar_write", "MPI_T_pvar_reset"].contains(&self.name.as_str()),
        );
        add("MPI_T_ERR_PVAR_NO_ATOMIC", self.name == "MPI_T_pvar_readreset");
        add("MPI_T_ERR_MEMORY", self.name == "MPI_T_event_handle_set_info");
        codes
    }
}

/// The text from an opening bracket, which is left out, to the one that closes it, and what comes after that.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 1;
    for (at, character) in text.char_indices() {
        depth += i32::from(character == '(') - i32::from(character == ')');
        if depth == 0 {
            return Some((&text[..at], &text[at + 1..]));
        }
    }
    None
}

/// The assertions of a program: which function may give which codes there.
fn assertions(source: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (name, codes) in
        [("OK(", Some("MPI_SUCCESS")), ("NOT(", Some("MPI_T_ERR_NOT_INITIALIZED")), ("SAME(", None)]
    {
        for (at, _) in source.match_indices(name) {
            let Some((inside, _)) = bracketed(&source[at + name.len()..]) else { continue };
            let function = inside.trim_start().trim_start_matches('P');
            let Some((function, rest)) =
                function.split_once('(').filter(|(name, _)| name.starts_with("MPI_T_"))
            else {
                continue;
            };
            let expected = bracketed(rest).map_or("", |(_, expected)| expected);
            let words = expected
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .filter(|word| word.starts_with("MPI_"));
            let codes =
                codes.map_or_else(|| words.map(str::to_owned).collect(), |code| vec![code.to_owned()]);
            found.push((function.to_owned(), codes));
        }
    }
    found
}

fn programs() -> Vec<String> {
    let entries =
        fs::read_dir(root().join("tests/c")).expect("tests/c").map(|entry| entry.expect("an entry").path());
    let sources = entries.filter(|path| path.extension().is_some_and(|end| end == "c" || end == "h"));
    sources.map(|path| fs::read_to_string(path).expect("readable text")).collect()
}

#[test]
fn every_function_is_asserted_to_give_every_code_that_it_may_give() {
    let functions = functions();
    assert_eq!(functions.len(), 51);
    let asserted: BTreeSet<(String, String)> = programs()
        .iter()
        .flat_map(|source| assertions(source))
        .flat_map(|(function, codes)| codes.into_iter().map(move |code| (function.clone(), code)))
        .collect();
    let wanted =
        functions.iter().flat_map(|of| of.codes().into_iter().map(|code| (of.name.clone(), code.to_owned())));
    let missing: Vec<_> = wanted.filter(|pair| !asserted.contains(pair)).collect();
    assert!(missing.is_empty(), "in no assertion of tests/c: {missing:#?}");
}

#[test]
fn every_code_of_the_abi_is_given_by_a_function_or_said_never_to_come() {
    let table = fs::read_to_string(root().join("crates/perusal-abi/src/abi/constants.csv"))
        .expect("the ABI's constants");
    let words = table.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let codes: BTreeSet<&str> = words.filter(|word| word.starts_with("MPI_T_ERR_")).collect();
    assert_eq!(codes.len(), 18);
    let given: BTreeSet<&str> = functions()
        .iter()
        .flat_map(Function::codes)
        .chain(NEVER)
        .filter(|code| *code != "MPI_SUCCESS")
        .collect();
    assert_eq!(given, codes);
    let page = fs::read_to_string(root().join("docs/tool-variables.md")).expect("the page");
    assert!(
        NEVER.iter().all(|code| page.contains(code)),
        "docs/tool-variables.md says why {NEVER:?} never come"
    );
}

#[test]
fn an_assertion_is_found_with_its_function_and_its_codes() {
    let source = "OK(MPI_T_finalize()); SAME(PMPI_T_enum_get_item(f(1), 2), wrong ? MPI_T_ERR_INVALID_INDEX : MPI_SUCCESS); SAME(n, MPI_T_x(3));";
    let found = assertions(source);
    assert_eq!(found[0], ("MPI_T_finalize".to_owned(), vec!["MPI_SUCCESS".to_owned()]));
    assert_eq!(found[1].0, "MPI_T_enum_get_item");
    assert_eq!(found[1].1, ["MPI_T_ERR_INVALID_INDEX", "MPI_SUCCESS"]);
    assert_eq!(found.len(), 2);
}
