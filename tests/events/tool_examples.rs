//! The first tool, in C and in Rust, beside the program that it is made for: what it counts follows by arithmetic.

#[path = "../../examples/first_tool.rs"]
mod first_tool;

use crate::common::examples::{example, job, lines, mpicc, product};
use std::time::Duration;

#[test]
fn the_first_tool_counts_the_messages_that_came_early_of_a_program_that_it_is_preloaded_into() {
    let (ranks, messages, pause) = (3, 12, 30);
    let library = product("libfirst_tool.so");
    mpicc(&["-shared", "-fPIC", "examples/tools/first_tool.c", "-o", &library.to_string_lossy()]);
    let program = example("tools/late_receiver.c");
    let preload = format!("LD_PRELOAD={}", library.display());
    let output = job(&[
        "-n",
        &ranks.to_string(),
        "-x",
        &preload,
        &program.to_string_lossy(),
        &messages.to_string(),
        &pause.to_string(),
    ]);
    let found = lines(&output, "first_tool");
    assert_eq!(found.len(), ranks);
    for line in found {
        if line.count("rank") > 0 {
            assert_eq!((line.count("early"), line.count("from")), (0, -1), "{output}");
            continue;
        }
        // Each sender's last message meets a receive, and those that rank 0 does not ask for yet may be early too.
        let early = line.count("early");
        let (least, most) = ((ranks as i64 - 1) * (messages - 1), (ranks as i64 - 1) * messages);
        assert!((least..=most).contains(&early), "{early} of {least}..={most} early\n{output}");
        assert!(line.number("longest_us") >= 1000.0 * f64::from(pause), "{output}");
        assert!(line.number("total_us") >= 1000.0 * f64::from(pause) * least as f64, "{output}");
        assert!((1..ranks as i64).contains(&line.count("from")), "{output}");
    }
}

#[test]
fn the_first_tool_in_rust_counts_the_same() {
    let (ranks, messages) = (3, 12);
    let early = perusal::run_threads(ranks, |world| {
        first_tool::watched(world, |world| first_tool::late_receiver(world, messages))
    })
    .unwrap();
    let least = (ranks - 1) * (messages as usize - 1);
    assert!((least..=least + ranks - 1).contains(&early[0].messages), "{:?}", early[0]);
    assert!(early[0].total >= Duration::from_millis(20) * least as u32);
    assert!(early[0].longest.is_some_and(|(lay, from)| lay >= Duration::from_millis(20) && from > 0));
    assert!(early[1..].iter().all(|rank| rank.messages == 0));
}

#[test]
fn the_page_about_the_first_tool_shows_the_tool_as_it_is() {
    let read = |path: &str| std::fs::read_to_string(crate::common::root().join(path)).unwrap();
    let page = read("docs/first-tool.md");
    for (fence, path, least) in
        [("```c\n", "examples/tools/first_tool.c", 30), ("```rust\n", "examples/first_tool.rs", 5)]
    {
        let tool = read(path);
        let blocks = page.split(fence).skip(1).map(|rest| rest.split("```").next().unwrap());
        let lines: Vec<&str> = blocks.flat_map(str::lines).filter(|line| !line.trim().is_empty()).collect();
        let strange: Vec<&&str> = lines.iter().filter(|line| !tool.contains(**line)).collect();
        assert!(strange.is_empty(), "not in {path}: {strange:?}");
        assert!(lines.len() >= least, "the page shows {path}");
    }
}
