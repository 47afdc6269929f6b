//! Whatever the number of ranks and receives, each sender's messages come once and in order.

use crate::common::examples::{example, job, lines};

fn all_to_all(ranks: &str, messages: &str, bytes: &str, window: &str) {
    let program = example("all_to_all_order.c");
    let program = program.to_string_lossy();
    let output = job(&["-n", ranks, &program, "--messages", messages, "--bytes", bytes, "--window", window]);
    let line = &lines(&output, "all_to_all_order")[0];
    assert_eq!(line.text("ranks"), ranks);
    assert!(line.number("messages") >= messages.parse().expect("a number"));
    assert_eq!(line.count("errors"), 0, "{output}");
}

#[test]
fn sixty_four_ranks_get_every_message_once_and_in_order() {
    all_to_all("64", "200000", "8", "64");
}

#[test]
fn one_receive_at_a_time_keeps_the_order_and_a_thousand_do() {
    all_to_all("3", "30000", "8", "1");
    all_to_all("3", "30000", "8", "1000");
}

#[test]
fn messages_of_every_protocol_keep_the_order() {
    for bytes in ["40", "44", "4096", "60000", "300000"] {
        all_to_all("4", "2000", bytes, "20");
    }
}

#[test]
fn pingpong_carries_every_size_intact() {
    let program = example("pingpong.c");
    let output = job(&["-n", "2", &program.to_string_lossy(), "4194304", "10"]);
    let all = lines(&output, "pingpong");
    assert!(all.len() > 15, "{output}");
    assert!(all.iter().all(|l| l.count("wrong") == 0), "{output}");
}

#[test]
fn a_heat_solver_gets_the_exact_answer_on_any_number_of_ranks() {
    let program = example("heat.c");
    for ranks in ["1", "2", "3", "6"] {
        let output = job(&["-n", ranks, &program.to_string_lossy(), "--points", "60", "--steps", "50"]);
        assert!(output.contains(": right"), "{output}");
    }
}
