//! Programs in which one rank is late.

/// Runs a program in which a rank is late by so much, until that stands out. A machine that is busy makes other ranks
/// late too, so each delay is longer than the one before. Where none stands out the last run is returned, so that the
/// tests say what is wrong with it.
pub fn until_it_stands_out<T>(
    delays: &[&str],
    mut run: impl FnMut(&str) -> T,
    stands_out: impl Fn(&T) -> bool,
) -> T {
    let (last, others) = delays.split_last().expect("a delay");
    let found = others.iter().map(|delay| run(delay)).find(stands_out);
    found.unwrap_or_else(|| run(last))
}
