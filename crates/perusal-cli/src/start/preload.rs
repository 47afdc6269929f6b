//! Libraries of the distribution that ranks preload: where they lie, and the variable that names them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use perusal::internals::variables::{Overrides, VariableId};

use super::environment::VariableChange;

/// The variable that the dynamic linker reads.
pub const VARIABLE: &str = "LD_PRELOAD";

/// The library that has malloc take what is large from the shared heap.
const HEAP: &str = "libperusal-heap.so";

/// A library of the distribution, for what it is called in a message.
///
/// # Errors
/// It is not where the distribution has it.
pub fn library(name: &str, what: &str) -> Result<PathBuf, String> {
    let own =
        std::env::current_exe().map_err(|error| format!("where perusal itself lies is unknown: {error}"))?;
    let prefix = own.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let library = prefix.join("lib").join(name);
    if library.is_file() {
        return preloadable(library, what);
    }
    Err(format!("{what} is missing: {} is where it belongs (`make dist` builds it)", library.display()))
}

/// Refuses a path that the dynamic linker would take for several.
fn preloadable(library: PathBuf, what: &str) -> Result<PathBuf, String> {
    if library.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        return Err(format!(
            "{what} cannot be preloaded from {}: the dynamic linker ends a name at a blank or a colon; move the distribution to a directory without them",
            library.display()
        ));
    }
    Ok(library)
}

/// Has a library preloaded before `others`, a list as the variable has it.
pub fn change(library: &Path, others: Option<OsString>) -> VariableChange {
    let mut list = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    VariableChange::Set(VARIABLE.into(), list)
}

/// The variables that the ranks need besides `set` to share large memory from malloc; none unless `asked`, by option,
/// or the environment asks for it. Whatever the user preloads stays.
///
/// # Errors
/// The library is missing.
pub fn sharing(asked: bool, set: &[VariableChange]) -> Result<Vec<VariableChange>, String> {
    let steered =
        || Overrides::from_environment().is_ok_and(|own| own.number(VariableId::ShareHeap) == Some(1));
    if !asked && !steered() {
        return Ok(vec![]);
    }
    let library = library(HEAP, "the library that shares memory from malloc")?;
    let on = VariableChange::Set(VariableId::ShareHeap.variable().environment.into(), "on".into());
    Ok(vec![on, change(&library, others(set))])
}

/// What ranks preload by `set`, or by the launcher's own environment.
pub fn others(set: &[VariableChange]) -> Option<OsString> {
    last_set(set).or_else(|| std::env::var_os(VARIABLE))
}

fn last_set(set: &[VariableChange]) -> Option<OsString> {
    set.iter().rev().find_map(|change| match change {
        VariableChange::Set(name, value) if name == OsStr::new(VARIABLE) => Some(value.clone()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(value: &str) -> VariableChange {
        VariableChange::Set(VARIABLE.into(), value.into())
    }

    #[test]
    fn what_is_preloaded_already_stays() {
        let library = Path::new("/a/mel.so");
        assert_eq!(change(library, None), set("/a/mel.so"));
        assert_eq!(change(library, Some("".into())), set("/a/mel.so"));
        assert_eq!(change(library, Some("/b.so".into())), set("/a/mel.so:/b.so"));
    }

    #[test]
    fn a_path_that_the_dynamic_linker_would_split_is_refused() {
        assert_eq!(preloadable("/a/b.so".into(), "it"), Ok("/a/b.so".into()));
        for path in ["/a b/c.so", "/a:b/c.so"] {
            let refused = preloadable(path.into(), "it").unwrap_err();
            assert!(refused.starts_with(&format!("it cannot be preloaded from {path}: ")), "{refused}");
        }
    }

    #[test]
    fn the_last_that_the_command_line_names_is_what_stays() {
        assert_eq!(
            last_set(&[set("/a"), set("/b"), VariableChange::Pass(VARIABLE.into())]),
            Some("/b".into())
        );
        assert_eq!(last_set(&[VariableChange::Set("X".into(), "/a".into())]), None);
    }

    #[test]
    fn who_asks_for_nothing_changes_nothing() {
        assert_eq!(sharing(false, &[set("/a")]), Ok(vec![]));
    }
}
