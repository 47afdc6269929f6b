//! Commands whose output nobody reads to its end.

use std::process::Command;

#[test]
fn a_command_ends_quietly_when_nobody_reads_what_it_prints() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    // Its first line says which part begins; without a toolchain in PATH it would end there anyway.
    let mut verify = Command::new(env!("CARGO_BIN_EXE_xtask"));
    verify.args(["verify", "miri"]).env("PATH", "/nonexistent").stdout(writer);
    let ended = verify.output().expect("it can be started");
    assert_eq!(ended.status.code(), Some(141), "{ended:?}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
}
