//! `perusal info`: what this machine and this build offer.
//!
//! | file | what it has |
//! |---|---|
//! | `mod` | the machine: processors, memory, system calls, thresholds |
//! | `variables` | the variables and event types that MPI_T shows |

mod variables;

use std::process::ExitCode;

use crate::tune::file::FoundTuneFile;
use perusal::internals::heap::may_remap;
use perusal::internals::limits::PAGE;
use perusal::internals::placement::MachineTopology;
use perusal::internals::protocol::rendezvous::has_cross_memory_attach;
use perusal::internals::shm::{Geometry, JobLayout, Memory, cpus, header, layout};
use perusal::internals::variables::misspelt::misspelt_in_environment;
use perusal::internals::variables::{CopyChoice, Overrides, VARIABLES, VariableId};

use crate::{sys, tune};
use variables::InForce;

/// What is asked for; everything about the machine, if nothing is.
#[derive(clap::Args, Debug)]
pub struct InfoOptions {
    /// List the control variables of MPI_T, which the environment sets too:
    /// values, where they come from, what they may be
    #[arg(long)]
    cvars: bool,
    /// List the performance variables of MPI_T
    #[arg(long)]
    pvars: bool,
    /// List the event types of MPI_T: their names, which tools and --log-events take, and what they tell
    #[arg(long)]
    events: bool,
    /// Show the tree of categories with all variables and event types
    #[arg(long)]
    categories: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl InfoOptions {
    /// Whether some of the lists are asked for by name.
    fn asks_for_some(&self) -> bool {
        self.cvars || self.pvars || self.events || self.categories
    }
}

/// Prints it.
pub fn main(options: &InfoOptions) -> ExitCode {
    let found = tune::take_over(false);
    if options.asks_for_some() || options.json {
        return succeeded(variables_of(options));
    }
    println!("perusal {}", env!("CARGO_PKG_VERSION"));
    println!("  processor         {} (of x86_64 and aarch64)", std::env::consts::ARCH);
    println!("  events (PERUSE)   {}", if cfg!(feature = "peruse") { "built in" } else { "not built in" });
    println!("  job memory        version {}, {}", header::VERSION, memory_works());
    println!("  shared heap       {}", shared_heap());
    println!("  windows           {}", windows());
    machine();
    copies();
    tuned(&found);
    succeeded(environment().and_then(|()| sizes()))
}

fn succeeded(outcome: perusal::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            sys::print_error(&format!("perusal: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn machine() {
    let topology = MachineTopology::load();
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
    let how = if has_cross_memory_attach() {
        "written into the receiver's memory by the sender, and if they are long a half read by the receiver (copy_halves_from, copy_read_from)"
    } else {
        "through the ring, in chunks: the kernel does not let processes copy between their memories (process_vm_readv)"
    };
    println!("  large messages    {how}");
    let remapped = if may_remap() {
        "buffers of malloc and static ones, of 32 KiB and more, once messages have used them copy_remap_after times: copied once, without the kernel"
    } else {
        "none: the kernel does not let a process ask what it has mapped (PROCMAP_QUERY, Linux 6.11), or its pages are not of 4 KiB"
    };
    println!("  remapped buffers  {remapped}");
}

fn variables_of(options: &InfoOptions) -> perusal::Result<()> {
    // Alone, --json means everything.
    let all = !options.asks_for_some();
    let mut json = serde_json::Map::new();
    if options.cvars || all {
        let in_force = InForce::find()?;
        match options.json {
            true => _ = json.insert("cvars".into(), variables::cvars_json(&in_force)),
            false => print!("{}", variables::cvars(&in_force)),
        }
    }
    if options.pvars || all {
        match options.json {
            true => _ = json.insert("pvars".into(), variables::pvars_json()),
            false => print!("{}", variables::pvars()),
        }
    }
    if options.events || all {
        match options.json {
            true => _ = json.insert("events".into(), variables::events_json()),
            false => print!("{}", variables::events()),
        }
    }
    if options.categories || all {
        match options.json {
            true => _ = json.insert("categories".into(), variables::categories_json()),
            false => print!("{}", variables::categories()),
        }
    }
    if options.json {
        println!("{:#}", serde_json::Value::Object(json));
    }
    Ok(())
}

fn tuned(found: &FoundTuneFile) {
    let text = match found {
        FoundTuneFile::Nothing => "none; `perusal tune` writes one".into(),
        FoundTuneFile::Used(path, file) => {
            let left_out = match file.left_out() {
                none if none.is_empty() => String::new(),
                some => format!("; left out, as unknown or out of range: {}", some.join(", ")),
            };
            format!(
                "{}: {}; oversubscribed: {}{left_out}",
                path.display(),
                file.pairs(false),
                file.pairs(true)
            )
        }
        FoundTuneFile::Elsewhere(path, why) | FoundTuneFile::Ignored(path, why) => {
            format!("{} is ignored: {why}", path.display())
        }
    };
    println!("  tune file         {text}");
}

fn environment() -> perusal::Result<()> {
    let settings = Overrides::from_environment()?;
    println!("  what steers a job (see --cvars)");
    for variable in &VARIABLES {
        let value = match settings.number(variable.id) {
            Some(number) => variable.show(number),
            None if settings.text(variable.id).is_empty() => "default".into(),
            None => settings.text(variable.id).to_owned(),
        };
        println!("    {:27}  {value:10}  {}", variable.environment, variable.what);
    }
    for mistake in misspelt_in_environment() {
        println!("    note: {mistake}");
    }
    Ok(())
}

fn sizes() -> perusal::Result<()> {
    println!("  memory of a job");
    println!("    ranks  cells   bulk  a ring   fixed  address space");
    for ranks in [1, 2, 4, 8, 16, 32, 64, 128, 256, 1024] {
        println!("{}", row(&JobLayout::new(Geometry::from_environment(ranks)?)?));
    }
    Ok(())
}

fn row(layout: &JobLayout) -> String {
    let Geometry { ranks, cells, bulk, .. } = layout.geometry();
    // What is reserved at once: the header, the first page of the context-id table, the ranks' blocks.
    let fixed = layout::HEADER + PAGE as u64 + u64::from(ranks) * layout.rank_block_size();
    format!(
        "    {ranks:>5}{cells:>7}{:>7}{:>8}{:>8}{:>15}",
        amount(u64::from(bulk)),
        amount(layout.ring_size()),
        amount(fixed),
        amount(layout.total()),
    )
}

/// Bytes for people: at most four digits and a unit.
fn amount(bytes: u64) -> String {
    let units = ["", "K", "M", "G", "T", "P"];
    let step = (0..units.len() - 1).take_while(|step| bytes >> (10 * step) >= 10_000).count();
    format!("{}{}", (bytes >> (10 * step)), units[step])
}

/// What MPI_Alloc_mem can take that all ranks see.
fn shared_heap() -> String {
    match Memory::create(2, 0) {
        Ok(memory) if memory.heap_region().is_some() => {
            format!(
                "{} of address space for memory from MPI_Alloc_mem, and from malloc with --share-heap",
                amount(memory.shape().heap)
            )
        }
        _ => "none: MPI_Alloc_mem takes ordinary memory".into(),
    }
}

/// How operations on windows reach other ranks' memory here.
fn windows() -> String {
    let chosen = Overrides::from_environment().ok().and_then(|set| set.number(VariableId::CopyEngine));
    let private = if chosen.map(CopyChoice::of) == Some(CopyChoice::Chunks) {
        "messages (copy_engine is chunks)"
    } else if sys::siblings_may_read() {
        "process_vm_readv and process_vm_writev"
    } else {
        "messages: the kernel forbids process_vm_readv between ranks"
    };
    format!("memory of MPI_Win_allocate and MPI_Alloc_mem: loads and stores; a process's own: {private}")
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
    fn of_the_tables_little_is_reserved_at_once() {
        let layout = JobLayout::new(Geometry::of(1)).unwrap();
        let row = row(&layout);
        assert_eq!(row.split_whitespace().nth(4), Some("20K"), "{row}");
    }

    #[test]
    fn amounts_keep_to_four_digits() {
        assert_eq!(amount(0), "0");
        assert_eq!(amount(9999), "9999");
        assert_eq!(amount(278_528), "272K");
        assert_eq!(amount(1 << 40), "1024G");
    }
}
