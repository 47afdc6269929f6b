//! What a rank writes into its ring is checked before it is used: each check has a record that it alone refuses.

use crate::common::dist::dist;
use crate::common::root;
use crate::common::run::run;
use crate::common::scratch;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = crate::common::HANG;

/// A lie of `lies.c`, and what the receiver says.
const LIES: [(&str, &str); 31] = [
    ("kind", "unknown kind of record 99"),
    ("length", "payload length exceeds a quarter of the ring (8388607)"),
    ("block", "a payload lies in a block that is not the sender's (0)"),
    ("context", "context id 16777215 is out of range"),
    ("place", "100000 bytes at 1152921504606846976, outside of the shared heap"),
    ("first-none", "a message of 0 bytes in fragments, where "),
    ("first-huge", "a message of 1152921504606846976 bytes in fragments, where "),
    ("first-twice", "a new message where 1000 bytes of another are missing"),
    ("fragment-alone", "a fragment of 32 bytes where 0 are missing"),
    ("fragment-long", "a fragment of 32 bytes where 10 are missing"),
    ("fragment-empty", "a fragment of 0 bytes where 10 are missing"),
    ("matched", "an answer about request 12345, which waits for none"),
    ("cts", "an answer about request 12345, which waits for none"),
    ("data", "an answer about request 12345, which waits for none"),
    ("split-cts", "an answer about request 12345, which waits for none"),
    ("split-done", "an answer about request 12345, which waits for none"),
    ("fin", "an answer about request 12345, which waits for none"),
    ("heap-cts", "an answer about request 12345, which waits for none"),
    ("heap-done", "an answer about request 12345, which waits for none"),
    ("cancelled", "an answer to a cancellation of 12345 that nobody asked for"),
    ("cts-none", "0 bytes wanted of a message of 300000"),
    ("cts-long", "300001 bytes wanted of a message of 300000"),
    ("split-backwards", "a copy of bytes 5..3 of a message of 300000"),
    ("split-long", "a copy of bytes 0..300001 of a message of 300000"),
    (
        "heap-outside",
        "a copy of 300000 bytes to 1152921504606846976 of the shared heap, of a message of 300000",
    ),
    ("heap-long", "a copy of 300001 bytes to 67108864 of the shared heap, of a message of 300000"),
    ("heap-shared", "a shared copy of a buffer outside of the shared heap"),
    ("data-of-a-send", ", which waits for none"),
    ("data-long", "32 bytes of data where 16 are missing"),
    ("data-empty", "0 bytes of data where 16 are missing"),
    ("copied-unasked", ", which waits for none"),
];

#[test]
fn a_record_that_no_rank_writes_is_refused_in_a_sentence_and_not_used() {
    let dir = scratch("lies");
    let program = dir.join("lies");
    let built = Command::new(dist().join("bin/mpicc"))
        .current_dir(root())
        .args(["-Wall", "-Werror", "-O1", "-Itests/c", "tests/p2p/lies.c", "-o"])
        .arg(&program)
        .status();
    assert!(built.is_ok_and(|status| status.success()));
    let mut wrong = Vec::new();
    for (lie, said) in LIES {
        let mut job = Command::new(dist().join("bin/mpiexec"));
        job.args(["-n", "2", "--on-deadlock", "ignore"]).arg(&program).arg(lie);
        let outcome = run(&mut job, &dir, lie, LIMIT);
        let reported = outcome.stderr.lines().any(|line| {
            line.contains("rank 0: MPI_Recv: corrupt record from rank 1: ") && line.contains(said)
        });
        if outcome.code() != Some(17) || !reported {
            wrong.push(format!("{lie}: {outcome:?}, expected: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
