//! What was done with the ranks, as a table for people.

use std::fmt::Write as _;

use crate::placement::{MachineTopology, Placement};

impl Placement {
    /// The CPUs that a rank is bound to, as "0-3,8"; empty if it is not bound.
    #[must_use]
    pub fn cpus_of(&self, rank: u32) -> String {
        self.ranks.get(rank as usize).map_or_else(String::new, |cpus| ranges(cpus.clone()))
    }

    /// One line of what was done and why, and one line a rank: its CPUs, cores, sockets and NUMA nodes.
    #[must_use]
    pub fn report(&self, topology: &MachineTopology, usable: u32) -> String {
        let mut text = format!(
            "ranks: {}, usable CPUs: {}, cores: {}, sockets: {}, NUMA nodes: {} ({}), time granted for CPUs: {usable}; {}\n",
            self.ranks.len(),
            topology.cpus().len(),
            topology.cores().len(),
            topology.sockets().len(),
            topology.numas().len(),
            topology.source(),
            self.reason,
        );
        let rows: Vec<[String; 5]> =
            self.ranks.iter().enumerate().map(|(rank, cpus)| row(rank, cpus, topology)).collect();
        let head = ["rank", "cpus", "cores", "sockets", "numa"].map(str::to_owned);
        let width = |column: usize| {
            std::iter::once(&head).chain(&rows).map(|row| row[column].len()).max().unwrap_or_default()
        };
        let widths = [0, 1, 2, 3, 4].map(width);
        for row in std::iter::once(&head).chain(&rows) {
            let [rank, cpus, cores, sockets, numa] = row;
            let [w0, w1, w2, w3, _] = widths;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{rank:>w0$}  {cpus:<w1$}  {cores:<w2$}  {sockets:<w3$}  {numa}");
        }
        text
    }
}

fn row(rank: usize, cpus: &[u32], topology: &MachineTopology) -> [String; 5] {
    if cpus.is_empty() {
        return [rank.to_string(), "any".into(), "any".into(), "any".into(), "any".into()];
    }
    let places: Vec<_> = cpus.iter().filter_map(|id| topology.cpu(*id)).collect();
    let list = |key: fn(&super::Cpu) -> u32| ranges(places.iter().map(|cpu| key(cpu)).collect());
    let index = |core: u32| {
        topology
            .cores()
            .iter()
            .position(|ids| ids.first().and_then(|id| topology.cpu(*id)).is_some_and(|cpu| cpu.core == core))
    };
    let cores = places.iter().filter_map(|cpu| index(cpu.core)).filter_map(|at| u32::try_from(at).ok());
    [
        rank.to_string(),
        ranges(cpus.to_vec()),
        ranges(cores.collect()),
        list(|cpu| cpu.socket),
        list(|cpu| cpu.numa),
    ]
}

/// Numbers as a list of ranges: "0-3,8".
fn ranges(mut numbers: Vec<u32>) -> String {
    numbers.sort_unstable();
    numbers.dedup();
    let mut text = String::new();
    let mut rest = numbers.as_slice();
    while let Some(&first) = rest.first() {
        let run =
            rest.iter().zip(first..=u32::MAX).take_while(|(number, expected)| **number == *expected).count();
        let comma = if text.is_empty() { "" } else { "," };
        let _ = match run {
            1 => write!(text, "{comma}{first}"),
            _ => write!(text, "{comma}{first}-{}", rest[run - 1]),
        };
        rest = &rest[run..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{Bind, Cpu, Policy, place};

    #[test]
    fn numbers_become_ranges() {
        assert_eq!(ranges(vec![3, 1, 2, 2, 9]), "1-3,9");
        assert_eq!(ranges(vec![]), "");
        assert_eq!(ranges(vec![u32::MAX]), "4294967295");
    }

    #[test]
    fn the_table_has_a_line_a_rank() {
        let topology = MachineTopology::new(
            (0..4).map(|id| Cpu { numa: 0, socket: 0, core: id / 2, id }).collect(),
            "test",
        );
        let placement = place(&topology, 3, 4, &Policy { bind: Bind::Core, ..Policy::default() });
        let report = placement.report(&topology, 4);
        let lines: Vec<&str> = report.lines().collect();
        assert_eq!(
            lines,
            [
                "ranks: 3, usable CPUs: 4, cores: 2, sockets: 1, NUMA nodes: 1 (test), time granted for CPUs: 4; bound to core, shared: there are fewer than ranks",
                "rank  cpus  cores  sockets  numa",
                "   0  0-1   0      0        0",
                "   1  2-3   1      0        0",
                "   2  0-1   0      0        0",
            ]
        );
    }
}
