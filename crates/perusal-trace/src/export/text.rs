//! A trace as lines of text, one a record, in the order of time over all ranks.

use super::super::model::{RankTrace, Record, RecordPayload, Trace};
use super::labels;
use crate::events::Field;
use crate::terminal::one_line;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes the trace as text; a terminal obeys nothing of it.
///
/// # Errors
/// Those of `out`.
pub fn print(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let job = &trace.job;
    writeln!(out, "# command   {}", one_line(&job.command))?;
    writeln!(out, "# host      {}, perusal {}", one_line(&job.host), one_line(&job.version))?;
    let status = job.status.map_or_else(|| "unknown".into(), |status| status.to_string());
    writeln!(out, "# duration  {} s, exit status {status}", job.duration as f64 / 1e9)?;
    for rank in &trace.ranks {
        writeln!(out, "# {}", one_line(&about(rank)))?;
        for comm in &rank.communicators {
            let freed = comm.freed.map_or_else(String::new, |freed| format!(", freed at {}", seconds(freed)));
            let (context, size, created) = (comm.context, comm.group.len(), seconds(comm.created));
            let name = one_line(&comm.name);
            writeln!(out, "#   context {context}: \"{name}\", {size} ranks, made at {created}{freed}")?;
        }
        for file in &rank.files {
            let closed =
                file.freed.map_or_else(String::new, |closed| format!(", closed at {}", seconds(closed)));
            let (context, size, opened) = (file.context, file.group.len(), seconds(file.created));
            let name = one_line(&file.name);
            writeln!(out, "#   file {context}: \"{name}\", {size} ranks, opened at {opened}{closed}")?;
        }
        for window in &rank.windows {
            let comm = &window.comm;
            let freed = comm.freed.map_or_else(String::new, |freed| format!(", freed at {}", seconds(freed)));
            writeln!(
                out,
                "#   window {}: \"{}\", {} ranks, {} bytes here, {}, reached by {}, made at {}{freed}",
                comm.context,
                one_line(&comm.name),
                comm.group.len(),
                window.bytes,
                labels::value(Field::Flavor, window.flavor),
                labels::value(Field::Reach, window.reach).replace('_', " "),
                seconds(comm.created),
            )?;
        }
    }
    writeln!(out, "# seconds rank.stream event id: what; posted/unexpected entries after it")?;
    let mut order: Vec<(u64, usize, usize)> = Vec::with_capacity(trace.len());
    for (number, rank) in trace.ranks.iter().enumerate() {
        order.extend(rank.records.iter().enumerate().map(|(index, record)| (record.when, number, index)));
    }
    order.sort_unstable();
    let mut line = String::new();
    for (_, number, index) in order {
        line.clear();
        let rank = &trace.ranks[number];
        put_record(&mut line, rank, &rank.records[index]);
        writeln!(out, "{}", one_line(&line))?;
    }
    Ok(())
}

fn about(rank: &RankTrace) -> String {
    if rank.pid == 0 {
        return format!("rank {}: never recorded", rank.rank);
    }
    let bound = if rank.cpus.is_empty() { String::new() } else { format!(", CPUs {}", rank.cpus) };
    let spoiled = if rank.unreadable == 0 {
        String::new()
    } else {
        format!(", {} records make no sense", rank.unreadable)
    };
    let end = if rank.complete { "" } else { ", did not come to MPI_Finalize" };
    format!(
        "rank {}: process {}{bound}, {} records, {} dropped, queues up to {}/{}{spoiled}{end}",
        rank.rank,
        rank.pid,
        rank.records.len(),
        rank.dropped,
        rank.posted_high,
        rank.unexpected_high
    )
}

fn seconds(nanoseconds: u64) -> String {
    format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
}

/// Writing to a string cannot fail, so what `write!` returns is dropped.
fn put_record(line: &mut String, rank: &RankTrace, record: &Record) {
    let event = labels::event(record.event);
    let _ =
        write!(line, "{} {}.{} {event} {:#x}:", seconds(record.when), rank.rank, record.stream, record.id);
    if labels::is_of_message(record) {
        let (preposition, Record { peer, tag, bytes, .. }) =
            (if record.send { "to" } else { "from" }, record);
        let _ = write!(line, " {preposition} {peer} tag {tag} bytes {bytes}");
    } else if matches!(record.payload, RecordPayload::Rma { .. }) {
        let _ = write!(line, " target {} bytes {}", record.peer, record.bytes);
    } else if record.bytes > 0 {
        let _ = write!(line, " bytes {}", record.bytes);
    }
    for (name, value) in labels::payload(record) {
        let _ = write!(line, " {name} {value}");
    }
    if let Some(comm) = labels::communicator(rank, record) {
        let _ = write!(line, " on {comm}");
    }
    let _ = write!(line, "; {}/{}", record.posted, record.unexpected);
}

#[cfg(test)]
mod tests {
    use super::super::super::synthetic::{Synthetic, SyntheticMessage};
    use super::*;

    #[test]
    fn a_trace_reads_as_lines() {
        let mut job = Synthetic::new(2);
        job.message(&SyntheticMessage {
            from: 0,
            to: 1,
            tag: 7,
            bytes: 64,
            sent: 1000,
            posted: 9000,
            ..SyntheticMessage::default()
        });
        job.drop_events(0, 3);
        let mut out = Vec::new();
        print(&job.trace(), &mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        for line in [
            "# command   synthetic",
            "# rank 0: process 1000, 5 records, 3 dropped, queues up to 0/0",
            "#   context 0: \"MPI_COMM_WORLD\", 2 ranks, made at 0.000000000",
            "0.000000000 0.0 req_activate 0x2: to 1 tag 7 bytes 64 on MPI_COMM_WORLD; 0/0",
            "0.000000060 1.0 msg_insert_in_unex_q 0x4: from 0 tag 7 bytes 64 on MPI_COMM_WORLD; 0/1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(
            text.contains("search_unex_q_end 0x6: from 0 tag 7 bytes 0 compared 1 found yes on"),
            "{text}"
        );
    }

    #[test]
    fn a_terminal_obeys_no_name() {
        let mut job = Synthetic::new(2);
        job.message(&SyntheticMessage { from: 0, to: 1, ..SyntheticMessage::default() });
        let mut trace = job.trace();
        trace.job.command = "heat\u{1b}[2J".into();
        trace.job.host = "here\r\u{202e}".into();
        trace.ranks[0].cpus = "0\u{9b}31m".into();
        for comm in trace.ranks.iter_mut().flat_map(|rank| &mut rank.communicators) {
            comm.name = "rows\u{7f}\n0.0 forged".into();
        }
        let mut out = Vec::new();
        print(&trace, &mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert!(!text.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')), "{text:?}");
        assert!(text.contains(" on rows\\u{7f}\\n0.0 forged; "), "{text}");
    }
}
