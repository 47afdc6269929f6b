//! A job whose ranks are threads leaves a trace as one of processes does.

use perusal::events::Event;
use perusal::{Any, Error};

#[test]
fn a_job_of_threads_leaves_a_trace_of_all_its_ranks() {
    let dir = std::env::temp_dir().join(format!("perusal-rust-api-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let path = dir.join("threads.trace");
    for round in 1..3 {
        perusal::run_threads_traced::<perusal::Single, _>(&path, 3, |world| {
            let next = (world.rank() + 1) % 3;
            for tag in 0..10 * round {
                world.send(&[tag], next, tag)?;
                world.recv::<i32>(Any, tag)?;
            }
            world.barrier()
        })
        .expect("no error");
        let trace = perusal_trace::read(&path).expect("a trace");
        assert_eq!((trace.ranks.len(), trace.dropped(), trace.job.status), (3, 0, Some(0)));
        for rank in &trace.ranks {
            assert!(rank.complete);
            let count = |event| rank.records.iter().filter(|record| record.event == event).count();
            let messages = 10 * round as usize;
            // Sends and receives; the barrier's messages are no requests of the program's.
            assert_eq!(count(Event::ReqActivate), 2 * messages);
            assert_eq!((count(Event::MsgArrived), count(Event::CollEnd)), (messages, 1));
        }
    }
    let error = perusal::run_threads_traced::<perusal::Single, ()>(&dir, 2, |_| Ok(())).unwrap_err();
    assert!(matches!(error, Error::Trace(_)), "a folder is no trace: {error}");
    std::fs::remove_dir_all(dir).expect("ours");
}
