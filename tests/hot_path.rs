//! What the way of a small message executes, instruction by instruction: no lock, no fence, no allocation, no system call.
//!
//! `benches/instructions.c` single-steps a rank and writes the address of everything that it executes; here the bytes at those
//! addresses are looked at.
#![cfg(target_arch = "x86_64")]

mod common;

use common::dist::{dist, launcher};
use common::run::run;
use common::{root, scratch, success};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The calls that are looked at; what each needs from its partner is there when it is made.
const CASES: [&str; 7] = ["send", "recv", "recv-any", "recv-unexpected", "isend", "irecv-there", "irecv"];
const LIMIT: Duration = Duration::from_secs(120);

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

#[test]
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

#[test]
fn a_small_message_meets_no_lock_no_fence_no_allocation_and_no_system_call() {
    let Some(launcher) = launcher() else { return eprintln!("not run: the launcher is not built") };
    let dir = scratch("hot_path");
    let program = dir.join("instructions");
    let mut compiler = Command::new(dist().join("bin/mpicc"));
    compiler.arg("-O2").arg(root().join("benches/instructions.c")).arg("-o").arg(&program);
    success(compiler.output().expect("mpicc"), "mpicc benches/instructions.c");

    let mut command = Command::new(launcher);
    command.args(["run", "-n", "2"]).arg(&program).args(CASES);
    // Who sleeps must be woken, by a system call; and where ranks outnumber CPUs senders fence.
    command.envs([("PERUSAL_SPIN_US", "1000000"), ("PERUSAL_SENDER_FENCES", "0")]);
    command.env("INSTRUCTIONS_TRACE", &dir);
    let outcome = run(&mut command, &dir, "instructions", LIMIT);
    if outcome.stderr.contains("instructions: ptrace") {
        return eprintln!("not run: this machine forbids ptrace");
    }
    assert_eq!(outcome.code(), Some(0), "{}{}", outcome.stdout, outcome.stderr);
    for case in CASES {
        let trace = Trace::read(&dir.join(case));
        let library = trace.executed.iter().filter_map(|&address| trace.at(address));
        let inside = library.filter(|(name, _)| name.contains("perusal") || name.contains("libmpi")).count();
        assert!(inside > 50, "{case}: {inside} instructions of the library were seen");
        assert_eq!(trace.faults(), Vec::<String>::new(), "{case}");
    }
}
