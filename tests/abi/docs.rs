//! `docs/abi.md` lists what is not implemented, no more and no less.

use crate::common::root;
use std::collections::BTreeMap;
use std::fs;

const BEGIN: &str = "<!-- unsupported: begin -->\n";
const END: &str = "<!-- unsupported: end -->";

/// The family that a function belongs to, for people who look for what they need.
fn family(name: &str) -> &'static str {
    let families = [
        ("MPI_T_", "Tools interface"),
        ("MPI_File_", "Files"),
        ("MPI_Register_datarep", "Files"),
        ("MPI_Win_", "One-sided communication"),
        ("MPI_Session_", "Sessions"),
        ("MPI_Ineighbor_", "Neighbourhood collectives"),
        ("MPI_Neighbor_", "Neighbourhood collectives"),
        ("MPI_Cart_", "Topologies"),
        ("MPI_Cartdim", "Topologies"),
        ("MPI_Graph_", "Topologies"),
        ("MPI_Graphdims", "Topologies"),
        ("MPI_Dist_graph", "Topologies"),
        ("MPI_Topo_", "Topologies"),
        ("MPI_Dims_", "Topologies"),
        ("MPI_P", "Partitioned communication and dynamic processes"),
        ("MPI_Comm_", "Communicators and dynamic processes"),
        ("MPI_Type_", "Datatypes"),
        ("MPI_Grequest", "Generalized requests"),
    ];
    let one_sided = ["Put", "Get", "Accumulate", "Rput", "Rget", "Raccumulate", "Compare_and", "Fetch_and"];
    if one_sided.iter().any(|word| name.strip_prefix("MPI_").is_some_and(|rest| rest.starts_with(word))) {
        return "One-sided communication";
    }
    if let Some((_, family)) = families.iter().find(|(prefix, _)| name.starts_with(prefix)) {
        return family;
    }
    if name.contains("_init") {
        return "Persistent collectives";
    }
    if name.starts_with("MPI_I") { "Non-blocking collectives" } else { "Others" }
}

fn list() -> String {
    let names = perusal_abi::bindings::UNSUPPORTED;
    let mut families: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in names {
        families.entry(family(name)).or_default().push(name);
    }
    let mut text = format!("\n{} of 664 functions:\n", names.len());
    for (family, names) in families {
        text.push_str(&format!("\n### {family} ({})\n\n", names.len()));
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&wrapped(&names));
    }
    text.push('\n');
    text
}

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

/// `cargo xtask generate` writes the list.
#[test]
fn the_page_lists_exactly_what_is_not_implemented() {
    let path = root().join("docs/abi.md");
    let page = fs::read_to_string(&path).expect("docs/abi.md");
    let (before, rest) = page.split_once(BEGIN).expect("the mark where the list begins");
    let (_, after) = rest.split_once(END).expect("the mark where the list ends");
    let current = format!("{before}{BEGIN}{}{END}{after}", list());
    if std::env::var_os("PERUSAL_GENERATE").is_some() {
        fs::write(&path, &current).expect("a writable page");
    } else {
        assert!(page == current, "docs/abi.md is not current: run `cargo xtask generate`");
    }
}
