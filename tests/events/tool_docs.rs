//! `docs/tool-events.md` has every event type of the catalogue, with its elements, and the paper's, with what they are
//! made of. `cargo xtask generate` writes the tables anew.

use crate::common::root;
use perusal::events::{Binding, CATALOG};
use perusal::internals::tool::event::types::{ALL, TYPES, ToolEventType};
use std::fs;

/// Element lists that many types share, by the names that the page gives them.
const SHARED: [(&str, &str); 4] = [
    ("*request*", "id, operation, peer, tag, bytes, count, datatype, buffer, comm, context"),
    ("*message*", "id, peer, tag, bytes, comm, context"),
    (
        "*one-sided*",
        "id, rma_operation, origin, target, world_rank, bytes, buffer, target_address, reach, win, context",
    ),
    ("*message*, compared, hit", "id, peer, tag, bytes, comm, context, compared, hit"),
];

fn elements(kind: &ToolEventType) -> String {
    let names: Vec<&str> = kind.elements.iter().map(|element| element.name).collect();
    let list = names.join(", ");
    match SHARED.iter().find(|(_, shared)| *shared == list) {
        Some((name, _)) => (*name).to_owned(),
        None if list.is_empty() => "none".into(),
        None => list,
    }
}

/// The types of the catalogue; those that differ in their scope alone share a row.
fn types() -> String {
    let mut text = String::from("\n| type | raised when | elements |\n|---|---|---|\n");
    for kind in &TYPES[..CATALOG.len()] {
        let row = kind.event.info();
        let name = match kind.name.strip_suffix(ALL) {
            Some(plain) => format!("`{plain}`, `…{ALL}`"),
            None => format!("`{}`", kind.name),
        };
        // PERUSE's events of communicators are described in docs/peruse.md.
        let when =
            if kind.event.is_peruse() && row.binding == Binding::Communicator { "" } else { row.description };
        text.push_str(&format!("| {name} | {when} | {} |\n", elements(kind)));
    }
    text.push('\n');
    text
}

/// The paper's types, and the events that they are raised at.
fn paper() -> String {
    let mut text = String::from("\n| type | our event | elements |\n|---|---|---|\n");
    let twin = |kind: &&ToolEventType| !kind.bound && kind.name.ends_with(ALL);
    for kind in TYPES.iter().filter(|kind| kind.of_paper && !twin(kind)) {
        let event = kind.event.info().name.to_string_lossy();
        text.push_str(&format!("| `{}` | `{event}` | {} |\n", kind.name, elements(kind)));
    }
    text.push('\n');
    text
}

fn with(page: &str, table: &str, text: &str) -> String {
    let (begin, end) = (format!("<!-- {table}: begin -->\n"), format!("<!-- {table}: end -->"));
    let from = page.find(&begin).expect("the table begins") + begin.len();
    let to = page.find(&end).expect("the table ends");
    format!("{}{text}{}", &page[..from], &page[to..])
}

#[test]
fn the_tables_of_event_types_are_what_the_library_has() {
    let path = root().join("docs/tool-events.md");
    let page = fs::read_to_string(&path).expect("the page");
    let expected = with(&with(&page, "types", &types()), "paper", &paper());
    if std::env::var_os("PERUSAL_GENERATE").is_some() {
        fs::write(&path, expected).expect("the page can be written");
        return;
    }
    assert!(page == expected, "docs/tool-events.md is not current: run `cargo xtask generate`");
}

#[test]
fn every_type_is_in_one_of_the_tables() {
    let tables = types() + &paper();
    for kind in TYPES.iter() {
        let plain = kind.name.strip_suffix(ALL).unwrap_or(&kind.name);
        assert!(tables.contains(&format!("| `{plain}`")), "{plain} is in no table");
    }
}

#[test]
fn the_page_says_which_elements_the_shared_lists_have() {
    let page = fs::read_to_string(root().join("docs/tool-events.md")).expect("the page");
    for (name, list) in &SHARED[..3] {
        assert!(page.contains(&format!("{name}: {list}")), "{name}");
    }
}
