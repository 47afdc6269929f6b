//! `perusal fabric --show`: what the endpoints of the provider do that processes of this machine have open.

use std::fmt::Write;
use std::fs;

use perusal_fi::observe::{self, KeptMessage, NAMED, OpenSend, PostedReceive, Status};
use perusal_trace::terminal::one_line;

/// Seconds without a call or a record from which on they are shown.
const LONG: f64 = 1.0;

/// What all endpoints do.
pub fn shown() -> String {
    let all = observe::endpoints();
    if all.is_empty() {
        return "no process of yours has an endpoint of perusal's provider open\n".to_owned();
    }
    let now = observe::now();
    all.iter().map(|one| as_text(one, &command(one.process), now)).collect()
}

/// The name of a process.
fn command(process: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    one_line(name.trim_end()).into_owned()
}

/// What an endpoint does, on several lines.
fn as_text(one: &Status, command: &str, now: u64) -> String {
    let mut text = format!("process {} ({command})", one.process);
    if one.said == 0 {
        return text + ": has made few calls yet\n";
    }
    let since = |then: u64| now.saturating_sub(then) as f64 / 1e9;
    let _ = writeln!(text, ": {} records sent, {} taken", one.sent, one.taken);
    if since(one.said) >= LONG {
        let _ = writeln!(text, "  has not called the provider often for {:.1} s", since(one.said));
    } else if since(one.moved) >= LONG {
        let _ = writeln!(text, "  has sent and taken nothing for {:.1} s", since(one.moved));
    }
    part(&mut text, "waits for messages", one.receives, one.first_receives.iter().map(receive));
    part(&mut text, "keeps messages that no receive has taken", one.kept, one.first_kept.iter().map(message));
    part(&mut text, "has sends and accesses under way", one.sends, one.first_sends.iter().map(send));
    for (count, what) in
        [(one.arriving, "long messages come"), (one.full, "peers have no room for what is to go")]
    {
        if count > 0 {
            let _ = writeln!(text, "  {what}: {count}");
        }
    }
    text
}

/// What there is of one kind, and the oldest of it: what is alike stands there once.
fn part(text: &mut String, what: &str, count: u64, named: impl Iterator<Item = String>) {
    if count == 0 {
        return;
    }
    let _ = writeln!(text, "  {what}: {count}");
    let named: Vec<String> = named.collect();
    for alike in named.chunk_by(|one, other| one == other) {
        let times = if alike.len() > 1 { format!(" ({} times)", alike.len()) } else { String::new() };
        let _ = writeln!(text, "    {}{times}", alike[0]);
    }
    if count > NAMED as u64 {
        let _ = writeln!(text, "    and {} more", count - NAMED as u64);
    }
}

fn receive(one: &PostedReceive) -> String {
    let from = one.from.map_or("any process".to_owned(), |from| format!("process {from}"));
    match one.tag {
        None => format!("from {from}, without a tag"),
        Some((tag, 0)) => format!("from {from}, tag {tag:#x}"),
        Some((tag, ignore)) => format!("from {from}, tag {tag:#x}, any of the bits {ignore:#x}"),
    }
}

fn message(one: &KeptMessage) -> String {
    let tag = one.tag.map_or("without a tag".to_owned(), |tag| format!("tag {tag:#x}"));
    format!("from process {}, {tag}, {} bytes", one.from, one.len)
}

fn send(one: &OpenSend) -> String {
    format!("to process {}, {} bytes", one.to, one.len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_waits_says_for_whom_and_what_has_come_instead() {
        let receive = |from, tag| PostedReceive { from, tag };
        let one = Status {
            process: 7,
            said: 10_000_000_000,
            moved: 7_500_000_000,
            sent: 3,
            taken: 4,
            receives: 11,
            first_receives: [vec![receive(Some(9), Some((0x50, 0)))], vec![receive(None, None); 7]].concat(),
            kept: 1,
            first_kept: vec![KeptMessage { from: 9, tag: Some(0x60), len: 40 }],
            ..Status::default()
        };
        assert_eq!(
            as_text(&one, "app", 10_000_000_000),
            "process 7 (app): 3 records sent, 4 taken\n  has sent and taken nothing for 2.5 s\n  \
             waits for messages: 11\n    from process 9, tag 0x50\n    from any process, without a tag (7 times)\n    \
             and 3 more\n  keeps messages that no receive has taken: 1\n    \
             from process 9, tag 0x60, 40 bytes\n"
        );
        let late = as_text(&one, "app", 13_000_000_000);
        assert!(late.contains("has not called the provider often for 3.0 s"), "{late}");
        assert!(as_text(&Status::default(), "app", 0).contains("few calls"));
    }
}
