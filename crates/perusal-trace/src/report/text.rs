//! The report for a terminal: what stands out, and the tables that people ask for first.

use super::types::{Accesses, RankReport, Report};
use super::words::{bytes, count, counted, duration, share};
use crate::terminal::one_line;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Rows of a table at most.
const ROWS: usize = 10;
/// Columns of running text.
const WIDTH: usize = 100;

/// The text; a terminal obeys nothing of what comes from the trace.
#[must_use]
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let job = &report.job;
    let _ = writeln!(
        out,
        "{}: {}, {}\n",
        one_line(&report.name()),
        counted(report.ranks.len() as u64, "rank"),
        duration(job.duration_ns)
    );
    paragraph(&mut out, &report.verdict.paragraph);
    for caution in &report.verdict.cautions {
        out.push('\n');
        paragraph(&mut out, &format!("Caution: {caution}"));
    }
    key(&mut out, report);
    ranks(&mut out, report);
    late(&mut out, report);
    matrix(&mut out, report);
    collectives(&mut out, report);
    calls(&mut out, report);
    partitioned(&mut out, report);
    windows(&mut out, report);
    files(&mut out, report);
    out
}

fn key(out: &mut String, report: &Report) {
    let key = &report.key;
    let _ = write!(
        out,
        "\nmessages {} ({}), unexpected {} ({})\nwaiting {} ({} of all ranks' time): late senders {}, late receivers {}, collectives {}, windows and files {}\n\
         longest queues: unexpected {} (rank {}), posted {} (rank {}); sleeps {}, rings full {}\n",
        count(key.messages),
        bytes(key.bytes),
        count(key.unexpected),
        share(key.unexpected, key.messages),
        duration(key.waited_ns),
        share(key.waited_ns, key.rank_time_ns),
        duration(key.late_sender_ns),
        duration(key.late_receiver_ns),
        duration(key.collective_wait_ns),
        duration(key.window_wait_ns),
        count(key.unexpected_high.length.into()),
        key.unexpected_high.rank,
        count(key.posted_high.length.into()),
        key.posted_high.rank,
        count(key.sleeps),
        count(key.ring_full),
    );
}

fn ranks(out: &mut String, report: &Report) {
    let mut shown: Vec<&RankReport> = report.ranks.iter().collect();
    shown.sort_by_key(|rank| (std::cmp::Reverse(rank.caused.root_ns), rank.rank));
    let rows = shown.iter().map(|rank| {
        vec![
            rank.rank.to_string(),
            duration(rank.caused.root_ns),
            duration(rank.waited.total()),
            count(rank.sent.messages),
            count(rank.received.messages),
            count(rank.unexpected.entries),
            count(rank.unexpected.high.into()),
            duration(rank.unexpected.residence.max),
            count(rank.posted.high.into()),
            duration(rank.posted.residence.max),
        ]
    });
    let heads = [
        "rank",
        "made others wait",
        "waited",
        "sent",
        "received",
        "unexpected",
        "queue",
        "longest in it",
        "posted queue",
        "longest in it",
    ];
    table(out, "Ranks, those that others waited for first", &heads, rows.collect());
}

fn late(out: &mut String, report: &Report) {
    let rows = report.late_senders.iter().map(|row| {
        vec![
            row.sender.to_string(),
            row.receiver.to_string(),
            duration(row.waited_ns),
            count(row.messages),
            duration(row.longest_ns),
            duration(row.passed_on_ns),
        ]
    });
    let heads = ["sender", "made wait", "for", "messages", "longest", "sender waited itself"];
    table(out, "Late senders", &heads, rows.collect());
    let rows = report.late_receivers.iter().filter(|row| row.waited_ns > 0).map(|row| {
        vec![
            row.receiver.to_string(),
            row.sender.to_string(),
            duration(row.waited_ns),
            count(row.messages),
            duration(row.early_ns),
            duration(row.earliest_ns),
        ]
    });
    let heads = ["receiver", "sender", "sender waited", "messages", "sent before the receive by", "most"];
    table(out, "Late receivers", &heads, rows.collect());
}

fn matrix(out: &mut String, report: &Report) {
    let mut cells = report.matrix.cells.clone();
    cells.sort_by_key(|cell| (std::cmp::Reverse(cell.2), cell.0, cell.1));
    let rows = cells.iter().map(|&(from, to, messages, sent, unexpected, _)| {
        vec![
            from.to_string(),
            to.to_string(),
            count(messages),
            bytes(sent),
            count(unexpected),
            share(unexpected, messages),
        ]
    });
    table(
        out,
        "Pairs with most messages",
        &["from", "to", "messages", "bytes", "unexpected", "share"],
        rows.collect(),
    );
}

fn collectives(out: &mut String, report: &Report) {
    let rows = report.collectives.iter().map(|row| {
        let last = row.last.first();
        vec![
            format!("{} on {}", row.operation, row.communicator),
            count(row.calls),
            duration(row.inside_ns),
            duration(row.waited_ns),
            last.map_or_else(String::new, |last| {
                format!("rank {} ({})", last.rank, counted(last.times, "time"))
            }),
        ]
    });
    let heads = ["operation", "calls", "time inside", "waiting", "most costly last"];
    table(out, "Collective operations", &heads, rows.collect());
}

fn windows(out: &mut String, report: &Report) {
    let amount = |sum: Accesses| format!("{} ({})", count(sum.operations), bytes(sum.bytes));
    let rows = report.windows.iter().map(|window| {
        let epochs: Vec<String> =
            window.epochs.iter().map(|epoch| format!("{} {}", count(epoch.times), epoch.kind)).collect();
        vec![
            window.name.clone(),
            window.reach.clone(),
            amount(window.put),
            amount(window.get),
            amount(window.accumulated),
            epochs.join(", "),
            duration(window.synchronizing_ns),
            duration(window.lock_waited_ns),
        ]
    });
    let heads =
        ["window", "reached by", "put", "got", "accumulated", "epochs", "synchronizing", "lock waits"];
    table(out, "Windows", &heads, rows.collect());
    let mut cells = report.one_sided.clone();
    cells.sort_by_key(|cell| (std::cmp::Reverse(cell.3 + cell.4 + cell.5), cell.0, cell.1));
    let rows = cells.iter().map(|&(origin, target, operations, put, got, accumulated)| {
        vec![
            origin.to_string(),
            target.to_string(),
            count(operations),
            bytes(put),
            bytes(got),
            bytes(accumulated),
        ]
    });
    let heads = ["origin", "target", "operations", "put", "got", "accumulated"];
    table(out, "Pairs with most bytes of one-sided operations", &heads, rows.collect());
    let rows = report.lock_waits.iter().map(|row| {
        vec![
            row.waiter.to_string(),
            row.target.to_string(),
            row.window.clone(),
            row.holder.map_or_else(|| "not known".into(), |holder| holder.to_string()),
            duration(row.waited_ns),
            count(row.times),
            duration(row.longest_ns),
        ]
    });
    let heads = ["waited", "for the lock of", "in window", "held by", "for", "times", "longest"];
    table(out, "Waits for locks", &heads, rows.collect());
}

fn calls(out: &mut String, report: &Report) {
    let rows = report.calls.iter().map(|row| {
        vec![
            row.function.clone(),
            count(row.calls),
            duration(row.inside_ns),
            share(row.inside_ns, report.key.rank_time_ns),
            duration(row.longest_ns),
            format!("{} ({})", row.most_rank, duration(row.most_ns)),
        ]
    });
    let heads = ["function", "calls", "time in it", "of all ranks' time", "longest", "most at rank"];
    table(out, "Calls", &heads, rows.collect());
}

fn partitioned(out: &mut String, report: &Report) {
    let rows = report.partitioned.iter().map(|row| {
        vec![
            row.sender.to_string(),
            row.receiver.to_string(),
            count(row.messages),
            bytes(row.bytes),
            count(row.partitions),
            duration(row.ready_ns),
            count(row.put_off),
            duration(row.put_off_ns),
            duration(row.open_ns),
            count(row.tested),
            count(row.in_vain),
        ]
    });
    let heads = [
        "sender",
        "receiver",
        "messages",
        "bytes",
        "partitions",
        "first to last ready",
        "put off",
        "for",
        "receiver open",
        "tested",
        "in vain",
    ];
    table(out, "Partitioned messages", &heads, rows.collect());
}

fn files(out: &mut String, report: &Report) {
    let amount = |sum: Accesses| format!("{} ({})", count(sum.operations), bytes(sum.bytes));
    let rows = report.files.iter().map(|file| {
        vec![
            file.name.clone(),
            amount(file.read),
            amount(file.written),
            count(file.collective),
            count(file.nonblocking),
            count(file.disk_accesses),
            duration(file.inside_ns),
            duration(file.moving_ns),
            duration(file.pointer_ns),
            duration(file.lock_waited_ns),
        ]
    });
    let heads = [
        "file",
        "read",
        "written",
        "collective",
        "nonblocking",
        "system calls",
        "time inside",
        "moving bytes",
        "shared pointer",
        "lock waits",
    ];
    table(out, "Files", &heads, rows.collect());
    let rows = report.file_waits.iter().map(|row| {
        vec![
            row.waiter.to_string(),
            row.file.clone(),
            row.holder.map_or_else(|| "not known".into(), |holder| holder.to_string()),
            duration(row.waited_ns),
            count(row.times),
            duration(row.longest_ns),
        ]
    });
    let heads = ["waited", "for a part of", "locked by", "for", "times", "longest"];
    table(out, "Waits for locks of files", &heads, rows.collect());
}

/// Columns as wide as they need, numbers to the right, the first column to the left if it is words.
fn table(out: &mut String, title: &str, heads: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    let more = rows.len().saturating_sub(ROWS);
    let shown: Vec<Vec<Cow<'_, str>>> =
        rows[..rows.len() - more].iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()).collect();
    let width = |column: usize| {
        let cells = shown.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(heads[column].chars().count())
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let words = shown.iter().any(|row| !row[0].starts_with(|c: char| c.is_ascii_digit()));
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (column, (cell, width)) in cells.zip(&widths).enumerate() {
            let _ = if column == 0 && words {
                write!(text, "  {cell:<width$}")
            } else {
                write!(text, "  {cell:>width$}")
            };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(&mut heads.iter().copied());
    for row in &shown {
        line(&mut row.iter().map(AsRef::as_ref));
    }
    if more > 0 {
        let _ = writeln!(out, "  … and {} more", count(more as u64));
    }
}

/// Lines of at most [`WIDTH`] columns, where words allow it.
fn paragraph(out: &mut String, text: &str) {
    let mut column = 0;
    for word in one_line(text).split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_says_what_it_leaves_out() {
        let mut out = String::new();
        let rows = (0..12).map(|n| vec![n.to_string(), format!("{}", n * 1000)]).collect();
        table(&mut out, "Things", &["n", "thousands"], rows);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[..4], ["", "Things", "  n  thousands", "  0          0"]);
        assert_eq!(lines[lines.len() - 2..], ["  9       9000", "  … and 2 more"]);
        table(&mut out, "None", &["n"], vec![]);
        assert!(!out.contains("None"));
    }

    #[test]
    fn running_text_is_broken_between_words() {
        let mut out = String::new();
        paragraph(&mut out, &"word ".repeat(50));
        assert!(out.lines().all(|line| line.chars().count() <= WIDTH) && out.lines().count() == 3, "{out}");
    }
}
