//! `perusal info`: what this machine and this build offer.

use std::process::ExitCode;

use perusal::config::VARIABLES;
use perusal::job::{Geometry, Layout, Memory, cpus, header, layout};
use perusal::placement::Topology;
use perusal::wire::measure_thresholds;

use crate::sys;

/// Prints it.
pub fn main() -> ExitCode {
    sys::die_of_broken_pipes();
    println!("perusal {}", env!("CARGO_PKG_VERSION"));
    println!("  events (PERUSE)   {}", if cfg!(feature = "peruse") { "built in" } else { "not built in" });
    println!("  job memory        version {}, {}", header::VERSION, memory_works());
    machine();
    copies();
    environment();
    match sizes() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            sys::tell(&format!("perusal: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn machine() {
    let topology = Topology::load();
    println!(
        "  CPUs              affinity mask: {}, cgroup quota: {}, usable: {}",
        cpus::affinity().len(),
        cpus::quota().map_or_else(|| "none".into(), |quota| quota.to_string()),
        cpus::usable()
    );
    println!(
        "  topology          cores: {}, sockets: {}, NUMA nodes: {} (from {})",
        topology.cores().len(),
        topology.sockets().len(),
        topology.numas().len(),
        topology.source()
    );
}

fn copies() {
    let [read, halves] = measure_thresholds();
    let from = |threshold: Option<u32>| {
        threshold.map_or_else(|| "never".into(), |bytes| format!("from {} bytes", amount(u64::from(bytes))))
    };
    println!(
        "  large messages    measured now: one read of the sender's memory {}, a half by each rank {}, else chunks",
        from(read),
        from(halves)
    );
}

fn environment() {
    println!("  environment that steers a job");
    for variable in &VARIABLES {
        let value = std::env::var(variable.environment).unwrap_or_else(|_| "default".into());
        println!("    {:24}  {value:10}  {}", variable.environment, variable.what);
    }
}

fn sizes() -> perusal::Result<()> {
    println!("  memory of a job");
    println!("    ranks  cells   bulk  a ring   fixed  address space");
    for ranks in [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024] {
        println!("{}", row(&Layout::new(Geometry::from_environment(ranks)?)?));
    }
    Ok(())
}

fn row(layout: &Layout) -> String {
    let Geometry { ranks, cells, bulk } = layout.geometry();
    format!(
        "    {ranks:>5}{cells:>7}{:>7}{:>8}{:>8}{:>15}",
        amount(u64::from(bulk)),
        amount(layout.ring_size()),
        amount(layout.fixed() - layout::CONTEXT_TABLE),
        amount(layout.total()),
    )
}

/// Bytes for people: at most four digits and a unit.
fn amount(bytes: u64) -> String {
    let units = ["", "K", "M", "G", "T", "P"];
    let step = (0..units.len() - 1).take_while(|step| bytes >> (10 * step) >= 10_000).count();
    format!("{}{}", (bytes >> (10 * step)), units[step])
}

fn memory_works() -> String {
    match Memory::create(1, 0) {
        Ok(_) => "sealed memfd works".into(),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_to_four_digits() {
        assert_eq!(amount(0), "0");
        assert_eq!(amount(9999), "9999");
        assert_eq!(amount(278_528), "272K");
        assert_eq!(amount(1 << 40), "1024G");
    }
}
