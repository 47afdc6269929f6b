//! `docs/tool-variables.md` lists the variables that there are, no more and no less.

use crate::common::root;
use perusal::events::Binding;
use perusal::internals::tool::pvar::{PVARS, Pvar};
use perusal::internals::variables::category::CATEGORIES;
use perusal::internals::variables::{Domain, JobShape, Settable, VariableScope};
use perusal::internals::variables::{VARIABLES, Variable};
use std::fs;

/// A job of two ranks with a CPU each, for ranges and defaults.
const PLACE: JobShape = JobShape {
    ranks: 2,
    usable_cpus: 2,
    ring_cells: 256,
    ring_bulk: 256 << 10,
    sender_fences: false,
    heap: 8 << 30,
    streams: false,
};

fn when(variable: &Variable) -> &'static str {
    match variable.settable {
        Settable::Never => "never",
        Settable::BeforeJob => "before the job is made",
        Settable::BeforeInit => "before MPI_Init",
        Settable::Always => "always",
        Settable::BetweenCollectives => "between collectives",
    }
}

fn scope(variable: &Variable) -> &'static str {
    match variable.scope {
        VariableScope::Constant => "constant",
        VariableScope::Readonly => "read-only",
        VariableScope::Local => "local",
        VariableScope::AllEqual => "all equal",
    }
}

fn cvars() -> String {
    let mut text =
        String::from("| name | default | may be | set | scope | what |\n|---|---|---|---|---|---|\n");
    for variable in &VARIABLES {
        let default = match variable.domain {
            Domain::Text => "empty".to_owned(),
            _ => variable.show((variable.default)(&PLACE)),
        };
        let range = variable.range(&PLACE);
        let range = range.strip_prefix("a number in ").unwrap_or(&range);
        let (name, what) = (variable.name, variable.what);
        text += &format!(
            "| `{name}` | {default} | {range} | {} | {} | {what} |\n",
            when(variable),
            scope(variable)
        );
    }
    text
}

fn uses(pvar: &Pvar) -> &'static str {
    match (pvar.is_continuous(), pvar.is_readonly()) {
        (true, _) => "read",
        (false, true) => "start, stop, read",
        (false, false) => "all",
    }
}

/// What a counter of messages or bytes by protocol is called before the protocol's name.
const BY_PROTOCOL: [&str; 4] = ["messages_sent_", "messages_received_", "bytes_sent_", "bytes_received_"];

/// Names by class; counters by protocol share one entry for each of the four things that are counted.
/// `perusal info --pvars` describes them.
fn pvars() -> String {
    let mut classes: Vec<(String, Vec<String>)> = Vec::new();
    for pvar in PVARS {
        let prefix = BY_PROTOCOL.iter().find(|prefix| pvar.name.starts_with(**prefix));
        let siblings: Vec<&str> =
            PVARS.iter().filter_map(|other| other.name.strip_prefix(prefix.copied()?)).collect();
        let name = match (prefix, siblings.first()) {
            (Some(prefix), Some(first)) if pvar.name.ends_with(first) => {
                format!("`{prefix}…` by protocol ({})", siblings.join(", "))
            }
            (Some(_), _) => continue,
            _ if pvar.binding() == Binding::Communicator => format!("`{}` (of a communicator)", pvar.name),
            _ if pvar.binding() == Binding::Window => format!("`{}` (of a window)", pvar.name),
            _ => format!("`{}`", pvar.name),
        };
        let class = format!("{}, {}", format!("{:?}", pvar.class).to_lowercase(), uses(pvar));
        match classes.iter_mut().find(|(known, _)| *known == class) {
            Some((_, names)) => names.push(name),
            None => classes.push((class, vec![name])),
        }
    }
    let mut text = String::from("| class, use | names |\n|---|---|\n");
    for (class, names) in classes {
        text += &format!("| {class} | {} |\n", names.join(", "));
    }
    text
}

fn categories() -> String {
    let mut text = String::new();
    for row in CATEGORIES {
        let mut depth = 0;
        let mut at = row;
        while let Some(parent) = at.parent {
            depth += 1;
            at = parent.row();
        }
        text += &format!("{}- `{}`: {}\n", "  ".repeat(depth), row.name, row.what);
    }
    text
}

/// `cargo xtask generate` writes the lists.
#[test]
fn the_page_lists_exactly_the_variables_that_there_are() {
    let path = root().join("docs/tool-variables.md");
    let page = fs::read_to_string(&path).expect("docs/tool-variables.md");
    let mut current = page.clone();
    for (name, list) in [("cvars", cvars()), ("pvars", pvars()), ("categories", categories())] {
        let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
        let (before, rest) = current.split_once(&begin).expect("the mark where a list begins");
        let (_, after) = rest.split_once(&end).expect("the mark where it ends");
        current = format!("{before}{begin}\n{list}\n{end}{after}");
    }
    if std::env::var_os("PERUSAL_GENERATE").is_some() {
        fs::write(&path, &current).expect("a writable page");
    } else {
        assert!(page == current, "docs/tool-variables.md is not current: run `cargo xtask generate`");
    }
}
