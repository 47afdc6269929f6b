//! Endpoints of the provider, as processes under other MPIs have them: `perusal fabric --show`,
//! `perusal fabric --trace`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perusal_fi::transport::{Completion, Endpoint, Error};
use perusal_trace::flows::{Flow, flows};
use perusal_trace::{Trace, read};

use crate::attach::perusal;
use crate::common::jobs::{Ended, eventually};

/// The endpoint is this process's.
#[test]
fn what_an_endpoint_under_another_mpi_waits_for_is_shown() {
    let mut endpoint = perusal_fi::transport::Endpoint::open().expect("an endpoint");
    endpoint.receive(None, 0x5a, 0, vec![0; 8], 1);
    let own = std::process::id();
    let start = format!("process {own} (");
    eventually("the receive", || {
        (0..2000).for_each(|_| _ = endpoint.progress());
        let shown = perusal(&["fabric", "--show"]).out;
        let its = shown.split(&start).nth(1).unwrap_or_default();
        its.contains("  waits for messages: 1\n    from any process, tag 0x5a\n")
    });
    let listed = perusal(&["ps"]).out;
    let is_own =
        |line: &str| line.split_whitespace().next() == Some(&own.to_string()) && line.contains("launcher");
    let (_, processes) = listed.split_once("Processes under other MPIs").expect("a second list");
    assert!(processes.lines().any(is_own), "{listed}");
    let top = perusal(&["top", &own.to_string(), "--once"]);
    assert!(top.err.contains("perusal fabric --show"), "{top:?}");
}

/// Set for a process that plays a program under another MPI.
const PLAYS: &str = "PERUSAL_TEST_ENDPOINTS";

/// Two endpoints of this process exchange messages, if this is such a process. Under the test's name it does nothing.
#[test]
fn plays_a_program_under_another_mpi() {
    match std::env::var(PLAYS).as_deref() {
        Ok("exchange") => exchange(),
        Ok("none") | Err(_) => {}
        Ok("killed") => {
            exchange();
            std::process::abort();
        }
        Ok(other) => panic!("{other}"),
    }
}

fn exchange() {
    let [mut a, mut b] = [(); 2].map(|()| Endpoint::open().expect("an endpoint"));
    let (to_b, from_a) = (a.add(b.address()), b.add(a.address()));
    let next = |a: &mut Endpoint, b: &mut Endpoint| -> Completion {
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < Duration::from_secs(300), "no completion");
            a.progress();
            if let Some(done) = b.poll() {
                return done;
            }
        }
    };
    // Received before it comes.
    b.receive(Some(from_a), 7, 0, vec![0; 100], 1);
    a.inject(to_b, 7, 0, &[1; 40]).expect("room");
    next(&mut a, &mut b).result.expect("received");
    // Comes before it is received: of another tag, and of one that differs in its upper half.
    a.inject(to_b, 9, 0, &[1; 8]).expect("room");
    a.inject(to_b, 1 << 40 | 9, 0, &[1; 9]).expect("room");
    (0..100).for_each(|_| _ = b.progress());
    for tag in [1 << 40 | 9, 9] {
        b.receive(None, tag, 0, vec![0; 100], 2);
        next(&mut a, &mut b).result.expect("received");
    }
    // Long, and taken back.
    assert!(a.send(to_b, 11, 0, vec![2; 300_000], 3).is_ok());
    b.receive(Some(from_a), 0, u64::MAX, vec![0; 300_000], 4);
    next(&mut b, &mut a).result.expect("sent");
    let last = b.receive(Some(from_a), 13, 0, vec![0; 8], 5);
    b.cancel(last);
    let ends: Vec<_> = (0..2).map(|_| next(&mut a, &mut b).result).collect();
    assert!(ends.contains(&Err(Error::Canceled)), "{ends:?}");
}

/// The file of a trace, which goes with it.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("perusal-endpoints-{}-{name}", std::process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Traces this test program as one that does `what`.
fn traced(file: &File, what: &str) -> Ended {
    let own = std::env::current_exe().expect("a path");
    let set = format!("{PLAYS}={what}");
    let name = "endpoints::plays_a_program_under_another_mpi";
    let own = own.to_str().expect("text");
    perusal(&["fabric", "--trace", file.path(), "env", &set, own, "--exact", name])
}

fn trace(file: &File) -> Trace {
    read(Path::new(file.path())).expect("a trace")
}

#[test]
fn what_endpoints_under_another_mpi_do_is_traced() {
    let file = File::new("exchange");
    let ended = traced(&file, "exchange");
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert!(ended.err.contains(" records of 2 endpoints in "), "{ended:?}");
    let trace = trace(&file);
    assert_eq!((trace.ranks.len(), trace.job.status), (2, Some(0)));
    assert!(trace.ranks.iter().all(|rank| rank.complete && rank.unreadable == 0 && rank.dropped == 0));
    let flows = flows(&trace);
    let seen = |flow: &Flow| {
        let incoming = flow.incoming.expect("arrived");
        assert!(
            incoming.posted.is_some() && incoming.matched.is_some() && incoming.completed.is_some(),
            "{flow:?}"
        );
        (flow.source, flow.dest, flow.tag, flow.bytes, incoming.unexpected)
    };
    let all: Vec<_> = flows.iter().map(seen).collect();
    let by = |unexpected, tag, bytes| (0, 1, tag, bytes, unexpected);
    assert_eq!(all[..3], [by(false, 7, 40), by(true, 9, 8), by(true, 9, 9)]);
    assert_eq!((all.len(), all[3].2, all[3].3), (4, 11, 300_000));
    let name =
        |flow: &Flow| trace.ranks[1].communicator(flow.context, flow.sent).expect("named").name.clone();
    assert_eq!(
        [0, 1, 2].map(|at| name(&flows[at])),
        ["tags from 0x0 on", "tags from 0x0 on", "tags from 0x10000000000 on"]
    );
    // Nothing is left in a queue, for all that was taken back.
    let last = trace.ranks[1].records.last().expect("records");
    assert_eq!((last.posted, last.unexpected, trace.ranks[1].unexpected_high >= 2), (0, 0, true));
    let shown = perusal(&["trace", "print", file.path()]);
    assert!(shown.code() == 0 && shown.out.contains("bytes 300000 on tags from 0x0 on"), "{shown:?}");
    let page = File::new("exchange.html");
    let report = perusal(&["report", file.path(), "-o", page.path()]);
    assert!(report.code() == 0 && page.0.exists(), "{report:?}");
    assert!(!report.out.contains("time waiting"), "{report:?}");
    let text = std::fs::read_to_string(&page.0).expect("a page");
    assert!(text.contains("nothing is known of how long they waited"));
}

#[test]
fn a_trace_says_how_its_program_has_ended() {
    let file = File::new("killed");
    let ended = traced(&file, "killed");
    assert_eq!(ended.code(), 128 + libc::SIGABRT, "{ended:?}");
    // The endpoints were closed before.
    assert_eq!((trace(&file).job.status, trace(&file).ranks.len()), (Some(128 + libc::SIGABRT), 2));
    let none = traced(&file, "none");
    assert!(none.code() == 0 && none.err.contains("no process has opened an endpoint"), "{none:?}");
    let report = perusal(&["report", file.path()]);
    assert!(report.code() != 0 && report.err.contains("no process has opened an endpoint"), "{report:?}");
}

#[test]
fn a_program_that_cannot_be_started_leaves_no_trace() {
    let file = File::new("absent");
    let ended = perusal(&["fabric", "--trace", file.path(), "/no/such/program"]);
    assert!(ended.code() == 1 && ended.err.contains("/no/such/program cannot be started"), "{ended:?}");
    assert!(!file.0.exists());
    for (words, why) in [
        (&["fabric", "--trace", file.path()][..], "<PROGRAM"),
        (&["fabric", "--trace-limit", "1M"], "--trace"),
        (&["fabric", "--trace", "/no/such/folder/t", "true"], "/no/such/folder/t"),
        (&["fabric", "--trace", file.path(), "--trace-limit", "x", "true"], "--trace-limit x"),
    ] {
        let ended = perusal(words);
        assert!(ended.code() != 0 && ended.err.contains(why), "{ended:?}");
    }
}
