//! How many instructions MPI calls take on an 8-byte message, and in which functions they are.
//!
//! Instructions are single-stepped (`benches/instructions.c`), so load and clock do not matter. Functions are known by
//! the line tables of the distribution's library (binutils' addr2line). `MPICC=mpicc.mpich MPIEXEC=mpiexec.mpich`
//! counts those of another library.

use crate::shell::{Result, command, folder, output, read, root, run};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// `instructions [DIST]`: a line for each case. `instructions [DIST] CASE`: the functions of one case,
/// most instructions first.
pub fn main(arguments: &[String]) -> Result {
    let (dist, cases) = match arguments.split_first() {
        Some((first, rest)) if Path::new(first).is_dir() => (root().join(first), rest),
        _ => (root().join("dist"), arguments),
    };
    let out = folder(root().join("build/instructions"))?;
    let mut job = job(&dist, &out)?;
    run(job.args(cases).env("INSTRUCTIONS_TRACE", &out))?;
    let Some(case) = cases.first() else { return Ok(()) };
    functions(&read(out.join(case))?)
}

/// Returns the job that counts, built in `out`, to which cases may be added.
pub fn job(dist: &Path, out: &Path) -> Result<Command> {
    let program = out.join("instructions");
    let wrapper = |variable: &str, name: &str| {
        command(std::env::var_os(variable).unwrap_or_else(|| dist.join("bin").join(name).into()))
    };
    run(wrapper("MPICC", "mpicc").args(["-O2", "-w", "benches/instructions.c", "-o"]).arg(&program))?;
    let mut mpiexec = wrapper("MPIEXEC", "mpiexec");
    // Nobody may fall asleep while the other is stepped.
    mpiexec.args(["-n", "2"]).arg(&program).env("PERUSAL_SPIN_US", "1000000");
    Ok(mpiexec)
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or(0)
}

/// The library's first executable mapping.
struct Mapping<'a> {
    begin: u64,
    end: u64,
    /// Where in the file it begins.
    offset: u64,
    file: &'a str,
}

impl<'a> Mapping<'a> {
    fn find(trace: &'a str) -> Option<Self> {
        trace.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let ["map", range, _, offset, _, _, file] = fields[..] else { return None };
            let (begin, end) = range.split_once('-')?;
            file.contains("libmpi").then(|| Self {
                begin: hex(begin),
                end: hex(end),
                offset: hex(offset),
                file,
            })
        })
    }

    /// What an address of the file's line tables is more than its place in the file.
    fn skew(&self) -> Result<u64> {
        let headers = output(command("readelf").args(["-lW", self.file]))?;
        let code =
            headers.lines().find(|line| line.trim_start().starts_with("LOAD") && line.contains(" R E "));
        let fields: Vec<&str> = code.unwrap_or_default().split_whitespace().collect();
        let [_, offset, address, ..] = fields[..] else { return Err(format!("{}: no code", self.file)) };
        let number = |text: &str| hex(text.trim_start_matches("0x"));
        Ok(number(address).wrapping_sub(number(offset)))
    }
}

fn functions(trace: &str) -> Result {
    let mapping = Mapping::find(trace).ok_or("the program was not linked with libmpi_abi.so")?;
    let skew = mapping.skew()?;
    let inside = |line: &&str| !line.starts_with("map") && !line.starts_with("entry");
    let addresses =
        trace.lines().filter(inside).map(hex).filter(|at| (mapping.begin..mapping.end).contains(at));
    let addresses: Vec<String> = addresses
        .map(|at| format!("{:#x}\n", (at - mapping.begin + mapping.offset).wrapping_add(skew)))
        .collect();
    let mut tool = command("addr2line");
    tool.args(["-f", "-C", "-e", mapping.file]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut tool = tool.spawn().map_err(|error| format!("addr2line, from binutils: {error}"))?;
    let mut input = tool.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(addresses.concat().as_bytes()));
    let output = tool.wait_with_output().map_err(|error| error.to_string())?;
    let _ = writer.join();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for name in output.lines().step_by(2) {
        *counts.entry(plain(name)).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.iter().take(40).for_each(|(name, count)| println!("{count} {name}"));
    Ok(())
}

/// A function's name without its path and its type arguments.
fn plain(name: &str) -> String {
    let mut depth = 0;
    let mut text = String::new();
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => text.push(letter),
            _ => {}
        }
    }
    text.rsplit("::").next().unwrap_or_default().to_owned()
}
