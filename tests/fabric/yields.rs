//! `libperusal-yield.so`: yields of a caller that yields after each of its polls.

use super::{pattern, two};
use perusal_fi::api::FI_ADDR_UNSPEC;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Set in the process that has the library preloaded.
const INSIDE: &str = "PERUSAL_FABRIC_TEST_YIELDS";

#[test]
fn a_yield_after_a_poll_is_left_out_while_nobody_needs_the_cpu() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libperusal-yield.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../preload/yield.c");
    let flags = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-fvisibility=hidden", "-shared", "-o"];
    let compiled = Command::new("cc").args(flags).arg(&library).arg(source).status().expect("a compiler");
    assert!(compiled.success());
    let name = "yields::a_yield_after_a_poll_is_left_out_while_nobody_needs_the_cpu";
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args([name, "--exact", "--nocapture"]).env("LD_PRELOAD", &library).env(INSIDE, "1");
    // What this thread starts is bound as it is: the other process has one CPU.
    let outcome = std::thread::spawn(move || {
        // SAFETY: zero is a value of a set of CPUs, in which one is then set; plain calls.
        unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(libc::sched_getcpu().cast_unsigned() as usize, &mut one);
            assert_eq!(libc::sched_setaffinity(0, size_of_val(&one), &raw const one), 0);
        }
        again.output().expect("a process")
    })
    .join()
    .expect("no panic");
    let said = String::from_utf8_lossy(&outcome.stdout);
    assert!(outcome.status.success() && said.contains("1 passed"), "{said}{outcome:?}");
}

fn inside() {
    // SAFETY: the preloaded library defines the name as a word, which lives as long as the process.
    let word = unsafe {
        let word = libc::dlsym(libc::RTLD_DEFAULT, c"perusal_skip_yield".as_ptr());
        word.cast::<AtomicU32>().as_ref().expect("the library is preloaded")
    };
    let is_left_out = || word.load(Ordering::Relaxed) == 1;
    let (a, b, to_b, _) = two();
    assert_eq!(b.read_now(), None);
    assert!(is_left_out(), "one endpoint, one CPU");
    // SAFETY: a plain call.
    assert_eq!(unsafe { libc::sched_yield() }, 0);
    assert!(!is_left_out(), "one yield for each poll");
    (0..2000).for_each(|_| assert_eq!(b.read_now(), None));
    assert!(!is_left_out(), "somebody else may need the CPU in a long wait");
    // From the first message on both share the CPU.
    let (bytes, mut buffer) = (pattern(8, 1), vec![0; 8]);
    b.receive(&mut buffer, FI_ADDR_UNSPEC, 3, 0, 1);
    assert_eq!(a.send(&bytes, to_b, 3, 0, 2), 0);
    b.read();
    assert!(is_left_out() && buffer == bytes, "there was something");
    (0..20).for_each(|_| assert_eq!(b.read_now(), None));
    assert!(!is_left_out(), "two endpoints, one CPU");
}
