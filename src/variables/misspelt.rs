//! Variables of the environment whose names are nearly those of control variables:
//! whoever sets one believes that it has an effect.

use super::table::VARIABLES;

/// What the environment names of all control variables begin with.
const PREFIX: &str = "PERUSAL_";

/// Returns a sentence for each of `names` that is very like a control variable's and is none.
#[must_use]
pub fn misspelt<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let sentence = |name: &str| {
        let meant = meant(name)?;
        Some(format!("{name} is no variable of perusal's and has no effect; is {meant} meant?"))
    };
    names.into_iter().filter_map(sentence).collect()
}

/// The same, of the names in the environment of this process.
#[must_use]
pub fn misspelt_in_environment() -> Vec<String> {
    let names: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    misspelt(names.iter().map(String::as_str))
}

/// The control variable that is meant: the nearest of those that begin with the same word, or differ in a letter of
/// four at most. A name that is like none is somebody else's: installations call their folders so.
fn meant(name: &str) -> Option<&'static str> {
    let given = name.strip_prefix(PREFIX)?.to_ascii_uppercase();
    let names = || VARIABLES.iter().map(|variable| variable.environment);
    if names().any(|known| known == name) {
        return None;
    }
    let alike = names().filter_map(|known| {
        let errors = distance(&given, &known[PREFIX.len()..]);
        let is_like =
            errors <= (given.len() / 4).max(1) || first_word(&given) == first_word(&known[PREFIX.len()..]);
        is_like.then_some((errors, known))
    });
    alike.min().map(|(_, known)| known)
}

fn first_word(name: &str) -> &str {
    name.split('_').next().unwrap_or_default()
}

/// How many letters must be changed, put in, left out, or exchanged with their neighbour (Damerau and Levenshtein, no
/// place twice).
fn distance(given: &str, known: &str) -> usize {
    let (given, known) = (given.as_bytes(), known.as_bytes());
    // `table[a][b]` is the distance of the first `a` letters from the first `b`.
    let mut table = vec![vec![0; known.len() + 1]; given.len() + 1];
    for a in 0..=given.len() {
        for b in 0..=known.len() {
            table[a][b] = match (a, b) {
                (0, _) | (_, 0) => a + b,
                _ => {
                    let changed = table[a - 1][b - 1] + usize::from(given[a - 1] != known[b - 1]);
                    let one_more = table[a - 1][b].min(table[a][b - 1]) + 1;
                    let exchanged =
                        a > 1 && b > 1 && given[a - 1] == known[b - 2] && given[a - 2] == known[b - 1];
                    let exchanged = if exchanged { table[a - 2][b - 2] + 1 } else { usize::MAX };
                    changed.min(one_more).min(exchanged)
                }
            };
        }
    }
    table[given.len()][known.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_asked_for() {
        for (name, nearest) in [
            ("PERUSAL_EAGER_LIMTI", "PERUSAL_EAGER_LIMIT"),
            ("PERUSAL_EAGER_LIMITS", "PERUSAL_EAGER_LIMIT"),
            ("PERUSAL_EAGERLIMIT", "PERUSAL_EAGER_LIMIT"),
            ("PERUSAL_eager_limit", "PERUSAL_EAGER_LIMIT"),
            ("PERUSAL_EAGER_SIZE", "PERUSAL_EAGER_LIMIT"),
            ("PERUSAL_RING_CELL", "PERUSAL_RING_CELLS"),
            ("PERUSAL_SPIN", "PERUSAL_SPIN_US"),
            ("PERUSAL_SPIN_MS", "PERUSAL_SPIN_US"),
            ("PERUSAL_YEILDS", "PERUSAL_YIELDS"),
            ("PERUSAL_BINDTO", "PERUSAL_BIND_TO"),
            ("PERUSAL_COLL_REDUCE_SCATTER_BLOCK", "PERUSAL_COLL_REDUCE_SCATTER"),
        ] {
            let said = misspelt([name]);
            assert_eq!(said.len(), 1, "{name}");
            assert!(said[0].starts_with(&format!("{name} is no variable")), "{said:?}");
            assert!(said[0].ends_with(&format!("is {nearest} meant?")), "{said:?}");
        }
    }

    #[test]
    fn names_of_variables_and_of_others_are_taken_in_silence() {
        assert_eq!(misspelt(VARIABLES.iter().map(|variable| variable.environment)), [""; 0]);
        let others = [
            "PERUSAL_ROOT",
            "PERUSAL_HOME",
            "PERUSAL_DIR",
            "PERUSAL_VERSION",
            "PERUSAL_PREFIX",
            "PERUSAL_PATH",
            "PERUSAL_BIN",
            "PERUSAL_LIB",
            "PERUSAL_INCLUDE",
            "PERUSAL_",
            "EAGER_LIMIT",
            "OMPI_EAGER_LIMIT",
        ];
        let own = [
            "PERUSAL_TUNED",
            "PERUSAL_TRACE",
            "PERUSAL_JOB_FD",
            "PERUSAL_DOOR_FD",
            "PERUSAL_RANK",
            "PERUSAL_SIZE",
            "PERUSAL_WORLD",
            "PERUSAL_PARENT",
            "PERUSAL_JOB_ID",
            "PERUSAL_LAUNCHER",
            "PERUSAL_APPNUM",
            "PERUSAL_APPNUM_GIVEN",
            "PERUSAL_MAXPROCS",
            "PERUSAL_INITIAL_ERRHANDLER",
            "PERUSAL_MEMORY_ALLOC_KINDS",
            "PERUSAL_MPICH",
            "PERUSAL_FABRIC_NODE",
            "PERUSAL_FABRIC_ONE_NODE",
            "PERUSAL_FABRIC_TIMEOUT",
            "PERUSAL_FABRIC_SUMMARY",
            "PERUSAL_FABRIC_TRACE",
            "PERUSAL_FABRIC_CORE",
        ];
        assert_eq!(misspelt(others.into_iter().chain(own)), [""; 0]);
    }
}
