//! fi_ubertest: one test of fabtests that runs a series of cases. Each is a call of the interface with a kind of
//! completion and a mode of registration, of messages and accesses whose bytes are checked.

use super::Run;
use crate::shell::{Result, attempt, command, number, write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Its name, as that of other tests.
pub const NAME: &str = "fi_ubertest";
/// Its sources, in fabtests.
pub const SOURCES: &str = "uber connect cq config domain ep xfer verify test_ctrl";

/// What the cases of a set have in common.
const COMMON: &str =
    "prov_name: PROVIDER, ep_type: [FI_EP_RDM], comp_type: [FT_COMP_QUEUE], test_flags: FT_FLAG_QUICKTEST, ";
/// The sets of cases, each the product of its lists. FT_TEST_UNIT checks bytes, except of messages in pieces: of few
/// bytes it makes pieces that are more bytes together. libfabric's own series for shm has all types and operations of
/// atomics, which takes half an hour; here a few of them stand for each family.
const SETS: [&str; 7] = [
    "test_type: [FT_TEST_UNIT], class_function: [FT_FUNC_SEND, FT_FUNC_SENDDATA, FT_FUNC_INJECT, \
     FT_FUNC_INJECTDATA], test_class: [FT_CAP_MSG, FT_CAP_TAGGED], \
     progress: [FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO]",
    "test_type: [FT_TEST_BANDWIDTH], class_function: [FT_FUNC_SENDV, FT_FUNC_SENDMSG], \
     test_class: [FT_CAP_MSG, FT_CAP_TAGGED], tx_cq_bind_flags: [FI_SELECTIVE_COMPLETION], \
     tx_op_flags: [FI_COMPLETION], msg_flags: [FI_COMPLETION]",
    "test_type: [FT_TEST_LATENCY, FT_TEST_UNIT], class_function: [FT_FUNC_SEND], \
     test_class: [FT_CAP_MSG, FT_CAP_TAGGED], cq_wait_obj: [FI_WAIT_UNSPEC, FI_WAIT_FD], \
     av_type: [FI_AV_TABLE, FI_AV_MAP]",
    "test_type: [FT_TEST_UNIT], class_function: [FT_FUNC_WRITE, FT_FUNC_WRITEV, FT_FUNC_WRITEMSG, \
     FT_FUNC_INJECT_WRITE, FT_FUNC_WRITEDATA, FT_FUNC_INJECT_WRITEDATA, FT_FUNC_READ, FT_FUNC_READV, \
     FT_FUNC_READMSG], test_class: [FT_CAP_RMA]",
    "test_type: [FT_TEST_UNIT], class_function: [FT_FUNC_WRITE, FT_FUNC_READ], test_class: [FT_CAP_RMA], \
     mr_mode: [FI_MR_VIRT_ADDR], progress: [FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO]",
    "test_type: [FT_TEST_UNIT], class_function: [FT_FUNC_ATOMIC, FT_FUNC_ATOMICV, FT_FUNC_ATOMICMSG, \
     FT_FUNC_INJECT_ATOMIC, FT_FUNC_FETCH_ATOMIC, FT_FUNC_FETCH_ATOMICV, FT_FUNC_FETCH_ATOMICMSG], \
     op: [FI_MIN, FI_SUM, FI_LXOR], datatype: [FI_INT8, FI_UINT64, FI_DOUBLE], test_class: [FT_CAP_ATOMIC]",
    "test_type: [FT_TEST_UNIT], class_function: [FT_FUNC_COMPARE_ATOMIC, FT_FUNC_COMPARE_ATOMICV, \
     FT_FUNC_COMPARE_ATOMICMSG], op: [FI_CSWAP, FI_CSWAP_GE, FI_MSWAP], datatype: [FI_INT32, FI_UINT64], \
     test_class: [FT_CAP_ATOMIC]",
];

/// The file of a series, for a provider.
fn series(provider: &str) -> String {
    SETS.map(|set| format!("{{ {}{set} }}", COMMON.replace("PROVIDER", provider))).join(",\n") + "\n"
}

/// The cases that did not succeed, and how many did, as the client's output says.
fn ends(output: &str) -> (Vec<&str>, usize) {
    let all = output.lines().filter(|line| line.starts_with("Ending test "));
    let (good, bad): (Vec<&str>, Vec<&str>) = all.partition(|line| line.ends_with("result: Success"));
    (bad, good.len())
}

impl Run<'_> {
    /// Runs the series, in which no case may fail or be left out.
    pub fn ubertest(&mut self, programs: &Path) -> Result {
        let text = |error: std::io::Error| error.to_string();
        let file = programs.join("ubertest.series");
        write(&file, series(&self.provider))?;
        let port = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).map_err(text)?.port();
        let program = || -> Command {
            let mut program = command("timeout");
            program.args(["-s", "KILL", &number("FABRIC_SECONDS", 900).to_string()]);
            program.arg(programs.join(NAME)).args(["-q", &port.to_string()]);
            program.env("FI_PROVIDER_PATH", self.dist.join("lib")).env("FI_PROVIDER", &self.provider);
            program
        };
        let start = Instant::now();
        let mut server = program();
        server.arg("-x").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = server.spawn().map_err(text)?;
        super::wait_for_listener(&mut server, port, false)?;
        let (good, output) = attempt(program().arg("-u").arg(&file).arg("127.0.0.1"));
        if !good {
            std::thread::sleep(Duration::from_millis(500));
            let _ = attempt(command("kill").arg(server.id().to_string()));
        }
        let served = server.wait_with_output().map_err(text)?;
        let (bad, count) = ends(&output);
        let passed = good && served.status.success() && bad.is_empty() && count > 0;
        let said = if bad.is_empty() { output.clone() } else { bad.join("\n") };
        let said = format!("{said}\nserver:\n{}", String::from_utf8_lossy(&served.stderr));
        let took = format!("{:6.1} s", start.elapsed().as_secs_f64());
        self.report(NAME, &format!("{NAME} ({count} cases)"), passed, &took, &said);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_that_did_not_succeed_are_told() {
        let output = "Starting test 1 / 2:\nEnding test 1 / 2, result: Success\nlat 16\n\
                      Ending test 2 / 2, result: Input/output error\n";
        assert_eq!(ends(output), (vec!["Ending test 2 / 2, result: Input/output error"], 1));
        assert!(series("perusal").contains("prov_name: perusal"));
    }
}
