//! Text of ranks, traces and users for a terminal, which would obey what it finds in a program's name or a
//! communicator's.
//!
//! Whatever the commands print themselves goes through here. What ranks print goes through untouched.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a terminal obeys `c`, or shows in another order what stands around it.
fn is_obeyed(c: char) -> bool {
    const BIDI_MARKS: [char; 3] = ['\u{61c}', '\u{200e}', '\u{200f}'];
    // Ends of lines and paragraphs, embeddings and overrides; isolates.
    c.is_control()
        || BIDI_MARKS.contains(&c)
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, obeyed: impl Fn(char) -> bool, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(&obeyed) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if obeyed(c) { escape(&mut shown, c) } else { shown.push(c) }
    }
    shown.into()
}

/// Returns `text`, which may hold anything, as a part of one line:
/// what a terminal obeys is written as in Rust, `\n` or `\u{1b}`.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_obeyed, |shown, c| shown.extend(c.escape_default()))
}

/// As [`one_line`] of a text of several lines, whose ends stay.
#[must_use]
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_obeyed(c), |shown, c| shown.extend(c.escape_default()))
}

/// Returns a JSON document with the same values that may be shown on a terminal.
#[must_use]
pub fn json(document: &str) -> Cow<'_, str> {
    // Only strings hold such characters, and an escape means the same there; all of them have four digits at most. A
    // string has no ends of lines.
    let escape = |shown: &mut String, c| {
        // Writing to a string cannot fail.
        let _ = write!(shown, "\\u{:04x}", u32::from(c));
    };
    escaped(document, |c| c != '\n' && is_obeyed(c), escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Escape sequences, C1 controls, DEL, a return to the line's begin, ends of lines of all kinds,
    /// an override and an isolate.
    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\u{7f}\rb\nc\u{2028}\u{202e}d\u{2066}\u{200f}ä→\u{1f600}";

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(
            one_line(HOSTILE),
            "a\\u{1b}[2J\\u{9b}31m\\u{7f}\\rb\\nc\\u{2028}\\u{202e}d\\u{2066}\\u{200f}ä→\u{1f600}"
        );
        assert_eq!(lines("a\rb\nc"), "a\\rb\nc");
        assert!(matches!(one_line("heat -n 4 ä"), Cow::Borrowed("heat -n 4 ä")));
    }

    #[test]
    fn a_document_keeps_its_values() {
        let document = serde_json::to_string_pretty(&[HOSTILE]).expect("a string");
        let shown = json(&document);
        assert!(!shown.contains(|c| c != '\n' && is_obeyed(c)), "{shown}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).expect("still JSON"), [HOSTILE]);
    }
}
