//! Numbers for people. The page's script has the same rules, so that a figure and a sentence never differ.

use std::fmt::Write as _;

/// Nanoseconds, with three digits and the unit that fits: "312 ms".
#[must_use]
pub fn duration(ns: u64) -> String {
    if ns == 0 { "0 s".to_owned() } else { scaled(ns, &["ns", "µs", "ms", "s"]) }
}

/// Bytes: "1.20 MB", in powers of ten.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB", "TB"])
}

fn scaled(value: u64, units: &[&str]) -> String {
    let (mut size, mut at) = (value as f64, 0);
    while at + 1 < units.len() && size >= 999.5 {
        size /= 1000.0;
        at += 1;
    }
    let digits = match size {
        _ if at == 0 => 0,
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        _ => 2,
    };
    format!("{size:.digits$} {}", units[at])
}

/// A count with a comma between thousands: "10,240".
#[must_use]
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count and what is counted: "1 message", "2 messages". `one` takes an s.
#[must_use]
pub fn counted(n: u64, one: &str) -> String {
    format!("{} {one}{}", count(n), if n == 1 { "" } else { "s" })
}

/// A part of a whole: "71 %", "3.2 %", "less than 0.1 %".
#[must_use]
pub fn share(part: u64, whole: u64) -> String {
    let share = part as f64 / whole.max(1) as f64;
    match share {
        0.0 => "0 %".to_owned(),
        s if s < 0.001 => "less than 0.1 %".to_owned(),
        s if s < 0.0995 => format!("{:.1} %", 100.0 * s),
        s => format!("{:.0} %", 100.0 * s),
    }
}

/// Ranks as people write them: "0-3, 7"; what is beyond `most` ranges becomes "and 12 more".
#[must_use]
pub fn ranks(mut ranks: Vec<u32>, most: usize) -> String {
    ranks.sort_unstable();
    ranks.dedup();
    let mut ranges: Vec<(u32, u32)> = vec![];
    for &rank in &ranks {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => ranges.push((rank, rank)),
        }
    }
    let mut text = String::new();
    let mut shown = 0;
    for &(first, last) in ranges.iter().take(most) {
        let between = if text.is_empty() { "" } else { ", " };
        shown += (last - first + 1) as usize;
        // Writing to a string cannot fail.
        let _ = match last - first {
            0 => write!(text, "{between}{first}"),
            1 => write!(text, "{between}{first}, {last}"),
            _ => write!(text, "{between}{first}-{last}"),
        };
    }
    if shown < ranks.len() {
        let _ = write!(text, " and {} more", count((ranks.len() - shown) as u64));
    }
    text
}

/// "rank 3", or "ranks 0-3, 7": at most `most` ranges.
#[must_use]
pub fn named(of: Vec<u32>, most: usize) -> String {
    format!("{} {}", if of.len() == 1 { "rank" } else { "ranks" }, ranks(of, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_the_unit_that_fits() {
        let texts: Vec<String> =
            [0, 1, 999, 1000, 12_345, 999_499, 999_500, 4_100_000_000, 4_100_000_000_000]
                .map(duration)
                .to_vec();
        assert_eq!(
            texts,
            ["0 s", "1 ns", "999 ns", "1.00 µs", "12.3 µs", "999 µs", "1.00 ms", "4.10 s", "4100 s"]
        );
        assert_eq!([bytes(0), bytes(1_500), bytes(2_000_000_000_000_000)], ["0 B", "1.50 kB", "2000 TB"]);
    }

    #[test]
    fn thousands_are_parted_and_one_has_no_s() {
        assert_eq!([count(7), count(10_240), count(1_234_567)], ["7", "10,240", "1,234,567"]);
        assert_eq!([counted(1, "message"), counted(2_000, "message")], ["1 message", "2,000 messages"]);
    }

    #[test]
    fn shares_never_round_something_to_nothing() {
        let texts = [share(0, 9), share(1, 9_999), share(32, 1000), share(71, 100), share(0, 0)];
        assert_eq!(texts, ["0 %", "less than 0.1 %", "3.2 %", "71 %", "0 %"]);
    }

    #[test]
    fn ranks_are_told_in_ranges() {
        assert_eq!(ranks(vec![3, 1, 2, 0, 7], 9), "0-3, 7");
        assert_eq!(ranks(vec![4, 5, 9, 11, 13], 2), "4, 5, 9 and 2 more");
        assert_eq!(ranks(vec![], 2), "");
        assert_eq!([named(vec![3], 2), named(vec![4, 3], 2)], ["rank 3", "ranks 3, 4"]);
        assert_eq!(ranks(vec![u32::MAX], 2), "4294967295");
    }
}
