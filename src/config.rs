//! What steers the engine, from the environment, validated.

use crate::error::{Error, Result};
use crate::job::Job;
use core::time::Duration;

/// An environment variable that steers the engine.
#[derive(Debug, Clone, Copy)]
pub struct Steering {
    /// Its name.
    pub name: &'static str,
    /// What it does, with its unit and range.
    pub what: &'static str,
}

/// Every variable that steers a rank; `perusal info` and PERUSE_Query_environment list them.
pub const STEERING: &[Steering] = &[
    Steering { name: "PERUSAL_RING_CELLS", what: "cells of a ring, 64 bytes each; a power of two from 8" },
    Steering { name: "PERUSAL_RING_BULK", what: "bytes of a ring's bulk area; a power of two from 1024" },
    Steering {
        name: "PERUSAL_EAGER_LIMIT",
        what: "largest payload in bytes that is sent before a receive is known; at most a quarter of the bulk area",
    },
    Steering {
        name: "PERUSAL_COPY_ENGINE",
        what: "how large messages are copied: auto, chunks, read, halves or direct",
    },
    Steering {
        name: "PERUSAL_SPIN_US",
        what: "microseconds that a waiting rank polls before it yields or sleeps; 0 to 1000000",
    },
    Steering {
        name: "PERUSAL_YIELDS",
        what: "times that a waiting rank gives its CPU away before it sleeps; 0 to 1000",
    },
    Steering {
        name: "PERUSAL_SENDER_FENCES",
        what: "1: senders fence, 0: sleepers do by membarrier(2); the same for all ranks",
    },
];

/// Which engine copies large messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyChoice {
    /// Whatever the start-up measurement found best.
    Auto,
    /// In chunks through the ring, both ranks at work.
    Chunks,
    /// One `process_vm_readv` by the receiver.
    Read,
    /// Receiver and sender copy a half each by `process_vm_readv` and `process_vm_writev`.
    Halves,
    /// A plain copy, where both ranks see the memory; elsewhere as `Auto`.
    Direct,
}

/// The values in force.
#[derive(Debug, Clone)]
pub struct Config {
    /// Largest eager payload in bytes.
    pub eager_limit: usize,
    /// How large messages are copied.
    pub copy: CopyChoice,
    /// How long a waiting rank polls.
    pub spin: Duration,
    /// How often a receive looks at its sender's ring before it goes the general way: a part of `spin`.
    pub listens: u32,
    /// How often it then gives its CPU away before it sleeps.
    pub yields: u32,
    /// Whether senders fence.
    pub fences_on_both_sides: bool,
    /// Cells of a ring.
    pub ring_cells: usize,
    /// Bytes of a ring's bulk area.
    pub ring_bulk: usize,
}

const EAGER_DEFAULT: usize = 16 << 10;

impl Config {
    /// Reads the environment; what is not set follows from the job.
    ///
    /// # Errors
    ///
    /// [`Error::Other`] that names the variable, its value and what it may be.
    pub fn from_environment(job: &Job) -> Result<Self> {
        let geometry = job.layout().geometry();
        let crowded = job.size() > job.header().usable_cpus();
        let most = (geometry.bulk as usize / 4).min(1 << 23);
        let eager =
            number("PERUSAL_EAGER_LIMIT", 0, most as u64)?.map_or(EAGER_DEFAULT.min(most), |n| n as usize);
        let spin = number("PERUSAL_SPIN_US", 0, 1_000_000)?.unwrap_or(if crowded { 2 } else { 50 });
        let yields = number("PERUSAL_YIELDS", 0, 1000)?.unwrap_or(if crowded { 3 } else { 0 });
        let fences = number("PERUSAL_SENDER_FENCES", 0, 1)?;
        Ok(Self {
            eager_limit: eager,
            copy: copy_choice()?,
            spin: Duration::from_micros(spin),
            // A look with nothing there takes ten nanoseconds or so.
            listens: (spin * 50).clamp(1, 5_000) as u32,
            yields: yields as u32,
            fences_on_both_sides: fences.map_or(job.header().sender_fences(), |n| n == 1),
            ring_cells: geometry.cells as usize,
            ring_bulk: geometry.bulk as usize,
        })
    }

    /// Name and value in force of every steering variable.
    #[must_use]
    pub fn in_force(&self) -> Vec<(&'static str, String)> {
        let copy = format!("{:?}", self.copy).to_lowercase();
        let values = [
            self.ring_cells.to_string(),
            self.ring_bulk.to_string(),
            self.eager_limit.to_string(),
            copy,
            self.spin.as_micros().to_string(),
            self.yields.to_string(),
            u32::from(self.fences_on_both_sides).to_string(),
        ];
        STEERING.iter().map(|steering| steering.name).zip(values).collect()
    }
}

fn number(name: &str, min: u64, max: u64) -> Result<Option<u64>> {
    let Some(text) = std::env::var_os(name) else { return Ok(None) };
    let text = text.to_string_lossy();
    match text.trim().parse::<u64>() {
        Ok(value) if (min..=max).contains(&value) => Ok(Some(value)),
        _ => Err(Error::Other(format!("{name} is {text:?}; it must be a number in {min}..={max}"))),
    }
}

fn copy_choice() -> Result<CopyChoice> {
    let name = "PERUSAL_COPY_ENGINE";
    let Some(text) = std::env::var_os(name) else { return Ok(CopyChoice::Auto) };
    Ok(match text.to_string_lossy().trim() {
        "auto" => CopyChoice::Auto,
        "chunks" => CopyChoice::Chunks,
        "read" => CopyChoice::Read,
        "halves" => CopyChoice::Halves,
        "direct" => CopyChoice::Direct,
        other => {
            return Err(Error::Other(format!(
                "{name} is {other:?}; it must be auto, chunks, read, halves or direct"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_steering_variable_has_a_value_in_force() {
        let job = Job::singleton().expect("memory");
        let config = Config::from_environment(&job).expect("no variables set");
        let names: Vec<_> = config.in_force().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, STEERING.iter().map(|s| s.name).collect::<Vec<_>>());
        assert!(config.eager_limit <= config.ring_bulk / 4);
    }
}
