//! `docs/peruse.md` lists what an event callback may call, no more and no less.

use crate::common::root;
use std::fs;

fn wrapped(names: &[String]) -> String {
    let mut text = String::new();
    let mut width = 0;
    for (i, name) in names.iter().enumerate() {
        let comma = if i + 1 < names.len() { "," } else { "" };
        if width + name.len() > 130 {
            text.push('\n');
            width = 0;
        } else if width > 0 {
            text.push(' ');
        }
        text.push_str(name);
        text.push_str(comma);
        width += name.len() + 2;
    }
    text.push('\n');
    text
}

/// What an event callback may call. Forms for large counts go without saying,
/// and conversions of handles are one entry for all kinds.
fn enquiries() -> String {
    let names = perusal_abi::bindings::ENQUIRIES;
    let is_conversion = |name: &str| name.ends_with("_toint") || name.ends_with("_fromint");
    let is_large = |name: &str| {
        ["_c", "_x"].iter().any(|end| name.strip_suffix(end).is_some_and(|base| names.contains(&base)))
    };
    let is_listed = |name: &&&str| !is_conversion(name) && !is_large(name);
    let mut entries: Vec<String> = names.iter().filter(is_listed).map(|name| format!("`{name}`")).collect();
    entries.sort();
    entries.push("`MPI_…_toint`".to_owned());
    entries.push("`MPI_…_fromint`".to_owned());
    format!("\n{}\n", wrapped(&entries))
}

/// Compares what stands between two marks of a page with `list`, or writes it there.
fn check(page: &str, mark: &str, list: &str) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).expect(page);
    let (begin, end) = (format!("<!-- {mark}: begin -->\n"), format!("<!-- {mark}: end -->"));
    let (before, rest) = text.split_once(&begin).expect("the mark where the list begins");
    let (_, after) = rest.split_once(&end).expect("the mark where the list ends");
    let current = format!("{before}{begin}{list}{end}{after}");
    if std::env::var_os("PERUSAL_GENERATE").is_some() {
        fs::write(&path, &current).expect("a writable page");
    } else {
        assert!(text == current, "{page} is not current: run `cargo xtask generate`");
    }
}

/// `cargo xtask generate` writes the list.
#[test]
fn the_page_lists_exactly_what_an_event_callback_may_call() {
    check("docs/peruse.md", "enquiries", &enquiries());
}
