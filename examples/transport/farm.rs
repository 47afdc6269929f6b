//! A farm over perusal's transport, without MPI: a manager hands tasks to workers that come when they like,
//! and one of them is killed.
//!
//! ```sh
//! cargo run -p perusal-fabric --example farm
//! ```
//!
//! Tags: what a message is stands in the upper half, the number of a task in the lower one.

use perusal_fi::transport::{Address, Completion, Endpoint, Error, Peer};
use std::collections::{HashMap, VecDeque};
use std::process::{Child, Command};
use std::time::Duration;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A worker says its address. It is nobody's peer yet.
const HELLO: u64 = 1 << 32;
/// A task, with its number as its data.
const TASK: u64 = 2 << 32;
/// The result of the task that the lower half of the tag names.
const RESULT: u64 = 3 << 32;
/// There are no more tasks.
const END: u64 = 4 << 32;
/// The bits of a tag that a receive does not care for: the number of the task.
const ANY_NUMBER: u64 = u32::MAX as u64;

const TASKS: u64 = 200;
const WORKERS: usize = 3;
/// The bytes of a task: more than are sent at once.
const BYTES: usize = 100_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("worker") => worker(arguments[2].parse()?),
        _ => Manager::run(),
    }
}

/// Works until there is no more to do.
fn worker(manager: Address) -> Result<()> {
    let mut endpoint = Endpoint::open()?;
    let manager = endpoint.add(manager);
    endpoint.inject(manager, HELLO, 0, endpoint.address().to_string().as_bytes())?;
    // From the manager only, and whatever tag: tasks and the end are taken in the order in which they were sent.
    endpoint.receive(Some(manager), 0, u64::MAX, vec![0; BYTES], 0);
    loop {
        let Some(done) = endpoint.wait(Duration::from_secs(60)) else {
            return Err("no word in a minute".into());
        };
        // The manager has ended.
        done.result?;
        if done.tag == END {
            return Ok(());
        }
        let sum: u64 = done.bytes().iter().map(|&byte| u64::from(byte)).sum();
        endpoint.inject(manager, RESULT | done.data, sum, &[])?;
        // The buffer of the last task serves the next one.
        endpoint.receive(Some(manager), 0, u64::MAX, done.buffer, 0);
    }
}

/// Hands out tasks and collects results.
struct Manager {
    endpoint: Endpoint,
    tasks: VecDeque<u64>,
    /// Who works on which task.
    busy: HashMap<Peer, u64>,
    results: HashMap<u64, u64>,
}

impl Manager {
    fn run() -> Result<()> {
        let endpoint = Endpoint::open()?;
        let (program, address) = (std::env::current_exe()?, endpoint.address().to_string());
        let start = || Command::new(&program).args(["worker", &address]).spawn();
        let mut workers = (0..WORKERS).map(|_| start()).collect::<std::io::Result<Vec<Child>>>()?;
        let (busy, results) = (HashMap::new(), HashMap::new());
        let mut manager = Manager { endpoint, tasks: (0..TASKS).collect(), busy, results };
        manager.endpoint.receive(None, HELLO, 0, vec![0; 100], 0);
        manager.endpoint.receive(None, RESULT, ANY_NUMBER, Vec::new(), 0);
        while manager.results.len() < TASKS as usize {
            match manager.endpoint.wait(Duration::from_millis(50)) {
                Some(done) => manager.take(done)?,
                None => manager.look_for_the_lost(),
            }
            // Halfway one worker is killed, whatever it is doing, and another one comes.
            if workers.len() == WORKERS && manager.results.len() as u64 > TASKS / 2 {
                workers[0].kill()?;
                workers.push(start()?);
            }
        }
        for &peer in manager.busy.keys() {
            // Whoever has ended needs no word.
            let _ = manager.endpoint.inject(peer, END, 0, &[]);
        }
        workers.iter_mut().try_for_each(|worker| worker.wait().map(drop))?;
        let right = (0..TASKS).all(|task| manager.results[&task] == task % 256 * BYTES as u64);
        println!("{} results, all right: {right}; one worker was killed", manager.results.len());
        Ok(())
    }

    fn take(&mut self, done: Completion) -> Result<()> {
        if !done.received {
            // A task was sent, or its worker has ended: then it is found below.
            return Ok(());
        }
        done.result?;
        if done.tag == HELLO {
            let peer = self.endpoint.add(std::str::from_utf8(done.bytes())?.parse()?);
            self.endpoint.receive(None, HELLO, 0, done.buffer, 0);
            return self.hand_out(peer);
        }
        let peer = done.peer.ok_or("a result from a worker that was not added")?;
        self.results.insert(done.tag & ANY_NUMBER, done.data);
        self.endpoint.receive(None, RESULT, ANY_NUMBER, Vec::new(), 0);
        self.hand_out(peer)
    }

    fn hand_out(&mut self, peer: Peer) -> Result<()> {
        // A worker without a task stays known: it hears of the end.
        let task = self.tasks.pop_front();
        self.busy.insert(peer, task.unwrap_or(u64::MAX));
        let Some(task) = task else { return Ok(()) };
        match self.endpoint.send(peer, TASK, task, vec![task as u8; BYTES], task) {
            Ok(_) => Ok(()),
            // It is found to have ended.
            Err(refused) if matches!(refused.error, Error::Closed | Error::Unreachable) => Ok(()),
            Err(refused) => Err(refused.error.into()),
        }
    }

    /// Takes the tasks of workers that have ended back.
    fn look_for_the_lost(&mut self) {
        let endpoint = &mut self.endpoint;
        let lost: Vec<Peer> = self.busy.keys().copied().filter(|&peer| endpoint.has_left(peer)).collect();
        for peer in lost {
            let task = self.busy.remove(&peer).filter(|&task| task != u64::MAX);
            // Its result may have come before its end.
            self.tasks.extend(task.filter(|task| !self.results.contains_key(task)));
            let _ = self.endpoint.remove(peer);
        }
        // Who had nothing to do has.
        let idle = self.busy.iter().filter(|one| *one.1 == u64::MAX).map(|one| *one.0);
        for peer in idle.collect::<Vec<_>>() {
            let _ = self.hand_out(peer);
        }
    }
}
