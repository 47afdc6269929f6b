//! The tool of `docs/first-tool.md` in Rust: how many messages came before their receives, how long they lay there,
//! and whose message lay longest.
//!
//! ```sh
//! cargo run --example first_tool                                       # three ranks, which are threads
//! dist/bin/perusal run -n 3 target/debug/examples/first_tool           # three ranks, which are processes
//! ```

use perusal::events::{Event, EventRecord, EventSet, GlobalSubscriber};
use perusal::{Result, World};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the tool knows of one rank.
#[derive(Debug, Default)]
pub struct Early {
    /// Messages that came before their receives.
    pub messages: usize,
    /// How long they lay there, all together.
    pub total: Duration,
    /// How long the message that lay longest lay there, and which rank sent it.
    pub longest: Option<(Duration, i32)>,
    since: HashMap<isize, Instant>,
}

struct Tool(Arc<Mutex<Early>>);

impl GlobalSubscriber for Tool {
    fn on_event(&self, record: &EventRecord<'_>) {
        let mut early = self.0.lock().unwrap();
        if record.event == Event::MsgInsertInUnexQ {
            early.messages += 1;
            early.since.insert(record.id, Instant::now());
        } else if let Some(since) = early.since.remove(&record.id) {
            let lay = since.elapsed();
            early.total += lay;
            early.longest = early.longest.max(Some((lay, record.spec.peer)));
        }
    }
}

/// Runs `program` with the tool listening, and gives what it found.
pub fn watched(world: &World, program: impl FnOnce(&World) -> Result<()>) -> Result<Early> {
    let early = Arc::new(Mutex::new(Early::default()));
    let events: EventSet = [Event::MsgInsertInUnexQ, Event::MsgRemoveFromUnexQ].into_iter().collect();
    let subscription = world.subscribe_globally(events, Tool(early.clone()));
    program(world)?;
    // From here on `tell` neither runs nor will run.
    drop(subscription);
    Ok(std::mem::take(&mut *early.lock().unwrap()))
}

/// Rank 0 asks for the last of the messages that every other rank has sent, then for the rest.
pub fn late_receiver(world: &World, messages: i32) -> Result<()> {
    if world.rank() > 0 {
        (0..messages).try_for_each(|tag| world.send(&[0_u8], 0, tag))?;
    }
    world.barrier()?;
    if world.rank() == 0 {
        for source in 1..world.size() {
            world.recv::<u8>(source, messages - 1)?;
        }
        std::thread::sleep(Duration::from_millis(20));
        for source in 1..world.size() {
            for tag in 0..messages - 1 {
                world.recv::<u8>(source, tag)?;
            }
        }
    }
    world.barrier()
}

#[allow(dead_code, reason = "the tests take only what it is made of")]
fn main() -> Result<()> {
    let rank = |world: &World| {
        let early = watched(world, |world| late_receiver(world, 10))?;
        let longest = early
            .longest
            .map_or(String::new(), |(lay, from)| format!(", the longest {lay:.1?} (from rank {from})"));
        println!(
            "rank {}: {} messages came early; they lay {:.1?} in all{longest}",
            world.rank(),
            early.messages,
            early.total
        );
        Ok(())
    };
    let launched = perusal::is_launched();
    if launched { perusal::run(rank).map(drop) } else { perusal::run_threads(3, rank).map(drop) }
}
