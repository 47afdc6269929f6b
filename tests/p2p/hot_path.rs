//! What the way of a small message executes, instruction by instruction:
//! no lock, no fence, no allocation, no system call.
//!
//! `benches/instructions.c` single-steps a rank and writes the address of everything that it executes; here the bytes
//! at those addresses are looked at. That such a look finds what is there is tested too: on deeds that are done on
//! purpose, and on the library itself when an option has it fence.
//!
//! A test runner of its own: where ptrace is forbidden nothing can be stepped through, and without membarrier(2)
//! senders must fence; there the tests that need it are counted as ignored, not as passed.

#[path = "../common/mod.rs"]
mod common;

use crate::common::dist::{dist, launcher};
use crate::common::run::run;
use crate::common::{root, scratch, success};
use libtest_mimic::{Arguments, Trial};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

/// The calls that are looked at; what each needs from its partner is there when it is made.
const CASES: [&str; 8] =
    ["send", "recv", "recv-any", "recv-unexpected", "sendrecv", "isend", "irecv-there", "irecv"];
/// The limit that tells a hang. Where both ranks and the process that steps share one CPU,
/// each instruction waits for a turn.
const LIMIT: Duration = crate::common::HANG;

/// What is wrong with an instruction on this way, if anything is.
fn forbidden(code: &[u8]) -> Option<&'static str> {
    let is_prefix = |byte: &u8| {
        matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3)
    };
    let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
    if code[..prefixes].contains(&0xf0) {
        return Some("a locked instruction");
    }
    let rex = code[prefixes..].iter().take_while(|byte| (0x40..=0x4f).contains(*byte)).count();
    let (opcode, operand) = (&code[prefixes + rex..], |modrm: u8| modrm >> 6);
    match opcode {
        [0x86 | 0x87, modrm, ..] if operand(*modrm) != 3 => Some("an exchange with memory, which locks"),
        [0x0f, 0xae, modrm, ..] if operand(*modrm) == 3 && modrm >> 3 & 7 >= 5 && prefixes == 0 => {
            Some("a fence")
        }
        [0x0f, 0x05 | 0x34, ..] | [0xcd, 0x80, ..] => Some("a system call"),
        _ => None,
    }
}

/// A file that was mapped into the rank, for execution.
struct Mapped {
    from: u64,
    to: u64,
    offset: u64,
    name: String,
    bytes: Vec<u8>,
}

/// What one run executed.
struct Trace {
    mapped: Vec<Mapped>,
    /// Functions that allocate, by where they begin.
    entries: HashMap<u64, String>,
    executed: Vec<u64>,
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).expect("a number in a trace")
}

impl Trace {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("the program has written what it executed");
        let mut trace = Trace { mapped: Vec::new(), entries: HashMap::new(), executed: Vec::new() };
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["map", range, _, offset, _, _, name] if name.starts_with('/') => {
                    let (from, to) = range.split_once('-').expect("a range");
                    trace.mapped.push(Mapped {
                        from: hex(from),
                        to: hex(to),
                        offset: hex(offset),
                        name: name.to_owned(),
                        bytes: fs::read(name).expect("what was loaded"),
                    });
                }
                ["map", ..] => {}
                ["entry", name, address] => _ = trace.entries.insert(hex(address), name.to_owned()),
                [address] => trace.executed.push(hex(address)),
                _ => panic!("{line}: no line of a trace"),
            }
        }
        trace
    }

    /// The file in which an address lies, and the bytes there.
    fn at(&self, address: u64) -> Option<(&str, &[u8])> {
        let mapped = self.mapped.iter().find(|mapped| (mapped.from..mapped.to).contains(&address))?;
        let at = (address - mapped.from + mapped.offset) as usize;
        Some((&mapped.name, mapped.bytes.get(at..)?))
    }

    /// Instructions of the library that were executed.
    fn of_the_library(&self) -> usize {
        let files = self.executed.iter().filter_map(|&address| self.at(address));
        files.filter(|(name, _)| name.contains("perusal") || name.contains("libmpi")).count()
    }

    /// Everything on the way that must not be there.
    fn faults(&self) -> Vec<String> {
        let fault = |&address: &u64| {
            if let Some(name) = self.entries.get(&address) {
                return Some(format!("a call of {name}"));
            }
            let Some((name, code)) = self.at(address) else {
                return Some(format!("{address:#x} is in no file: a call into the kernel's page?"));
            };
            forbidden(&code[..code.len().min(16)]).map(|what| format!("{what} at {address:#x} in {name}"))
        };
        self.executed.iter().filter_map(fault).collect()
    }
}

fn the_forbidden_instructions_are_known_by_their_bytes() {
    assert!(forbidden(&[0xf0, 0x48, 0x0f, 0xb1, 0x0f]).is_some(), "lock cmpxchg [rdi], rcx");
    assert!(forbidden(&[0x66, 0xf0, 0x83, 0x07, 0x01]).is_some(), "lock add word [rdi], 1");
    assert!(forbidden(&[0x48, 0x87, 0x07]).is_some(), "xchg [rdi], rax");
    assert!(forbidden(&[0x48, 0x87, 0xc3]).is_none(), "xchg rbx, rax");
    assert!(forbidden(&[0x0f, 0xae, 0xf0]).is_some(), "mfence");
    assert!(forbidden(&[0x0f, 0x05]).is_some(), "syscall");
    assert!(forbidden(&[0xf3, 0x90]).is_none(), "pause");
    assert!(forbidden(&[0x48, 0x89, 0x07]).is_none(), "mov [rdi], rax");
}

/// What a rank has executed, case by case.
struct Traces {
    dir: PathBuf,
    program: PathBuf,
    launcher: &'static Path,
}

impl Traces {
    /// Builds the program; `Err` says why nothing can be traced here.
    fn new() -> Result<Traces, &'static str> {
        if !cfg!(target_arch = "x86_64") {
            return Err("the instructions of x86-64 alone are known");
        }
        let launcher = launcher().ok_or("needs the launcher")?;
        let dir = scratch("hot_path");
        let program = dir.join("instructions");
        let mut compiler = Command::new(dist().join("bin/mpicc"));
        compiler.arg("-O2").arg(root().join("benches/instructions.c")).arg("-o").arg(&program);
        success(compiler.output().expect("mpicc"), "mpicc benches/instructions.c");
        let traces = Traces { dir, program, launcher };
        traces.step(&["broken-lock"], "0").map(|_| traces)
    }

    /// Traces `cases`, with senders that fence or do not.
    fn step(&self, cases: &[&str], fences: &str) -> Result<Vec<Trace>, &'static str> {
        let mut command = Command::new(self.launcher);
        command.args(["run", "-n", "2"]).arg(&self.program).args(cases);
        // Who sleeps must be woken, by a system call.
        command.envs([("PERUSAL_SPIN_US", "1000000"), ("PERUSAL_SENDER_FENCES", fences)]);
        command.env("INSTRUCTIONS_TRACE", &self.dir);
        let outcome = run(&mut command, &self.dir, "instructions", LIMIT);
        if outcome.stderr.contains("instructions: ptrace") {
            return Err("this machine forbids ptrace");
        }
        if outcome.stderr.contains("membarrier(2)") {
            return Err("this machine has no membarrier(2), so all senders fence");
        }
        assert_eq!(outcome.code(), Some(0), "{}{}", outcome.stdout, outcome.stderr);
        Ok(cases.iter().map(|case| Trace::read(&self.dir.join(case))).collect())
    }

    /// As [`Self::step`], where it is known to work.
    fn of(&self, cases: &[&str], fences: &str) -> Vec<Trace> {
        self.step(cases, fences).expect("ptrace was allowed before")
    }
}

fn a_small_message_meets_no_lock_no_fence_no_allocation_and_no_system_call(traces: &Traces) {
    // Where ranks outnumber CPUs senders fence: here they do not.
    for (case, trace) in CASES.iter().zip(traces.of(&CASES, "0")) {
        let inside = trace.of_the_library();
        assert!(inside > 50, "{case}: {inside} instructions of the library were seen");
        assert_eq!(trace.faults(), Vec::<String>::new(), "{case}");
    }
}

fn each_forbidden_deed_is_found_when_it_is_done(traces: &Traces) {
    let deeds = [
        ("broken-lock", "a locked instruction"),
        ("broken-exchange", "an exchange with memory"),
        ("broken-fence", "a fence"),
        ("broken-system-call", "a system call"),
        ("broken-allocation", "a call of malloc"),
        ("broken-free", "a call of free"),
    ];
    for ((case, expected), trace) in deeds.iter().zip(traces.of(&deeds.map(|(case, _)| case), "0")) {
        let faults = trace.faults();
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{case}: {faults:?}");
    }
}

fn a_library_whose_senders_fence_is_found_out(traces: &Traces) {
    let trace = &traces.of(&["send"], "1")[0];
    assert!(trace.of_the_library() > 50);
    let faults = trace.faults();
    let inside = |fault: &String| fault.contains("perusal") || fault.contains("libmpi");
    assert!(faults.iter().any(inside), "{faults:?}");
}

fn main() -> ExitCode {
    type Test = (&'static str, fn(&Traces));
    const TESTS: [Test; 3] = [
        (
            "a_small_message_meets_no_lock_no_fence_no_allocation_and_no_system_call",
            a_small_message_meets_no_lock_no_fence_no_allocation_and_no_system_call,
        ),
        ("each_forbidden_deed_is_found_when_it_is_done", each_forbidden_deed_is_found_when_it_is_done),
        ("a_library_whose_senders_fence_is_found_out", a_library_whose_senders_fence_is_found_out),
    ];
    let mut arguments = Arguments::from_args();
    // They step one after the other: a partner that is not scheduled makes every step longer.
    arguments.test_threads = Some(1);
    let traces = if arguments.list { Err("nothing is run") } else { Traces::new() };
    let traces = match traces {
        Ok(traces) => Some(Arc::new(traces)),
        Err(why) => {
            eprintln!("hot_path: ignored, {why}");
            None
        }
    };
    let stepped = TESTS.map(|(name, test)| {
        let own = traces.clone();
        let run = move || {
            test(&own.expect("ignored without"));
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(traces.is_none())
    });
    let patterns = Trial::test("the_forbidden_instructions_are_known_by_their_bytes", || {
        the_forbidden_instructions_are_known_by_their_bytes();
        Ok(())
    });
    libtest_mimic::run(&arguments, stepped.into_iter().chain([patterns]).collect()).exit_code()
}
