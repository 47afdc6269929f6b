//! Hints of files that are known (MPI 5.0 §14.2.8).
//! A hint that is not known, or whose value makes no sense, is ignored.

use super::access::Direction;
use crate::info::Info;

/// What a hint's value is.
#[derive(Clone, Copy)]
enum Kind {
    /// `true` or `false`.
    Truth,
    /// A number that is not 0.
    Number,
    /// `enable`, `disable` or `automatic`.
    Choice,
    /// Permissions of a new file, in octal.
    Permissions,
}

const HINTS: &[(&str, Kind, &str)] = &[
    ("collective_buffering", Kind::Truth, "true"),
    ("cb_buffer_size", Kind::Number, "1048576"),
    ("romio_cb_read", Kind::Choice, "automatic"),
    ("romio_cb_write", Kind::Choice, "automatic"),
    ("romio_ds_read", Kind::Choice, "automatic"),
    ("romio_ds_write", Kind::Choice, "automatic"),
    ("file_perm", Kind::Permissions, "0666"),
];

fn value(kind: Kind, asked: Option<&str>) -> Option<String> {
    let asked = asked?.trim().to_ascii_lowercase();
    let good = match kind {
        Kind::Truth => matches!(&*asked, "true" | "false"),
        Kind::Number => asked.parse::<u64>().is_ok_and(|number| number > 0),
        Kind::Choice => matches!(&*asked, "enable" | "disable" | "automatic"),
        Kind::Permissions => u32::from_str_radix(&asked, 8).is_ok_and(|bits| bits <= 0o777),
    };
    good.then_some(asked)
}

/// The hints of a file that is opened with these.
#[must_use]
pub(super) fn at_open(asked: &Info) -> Info {
    let mut info = Info::new();
    for (key, kind, default) in HINTS {
        let value = value(*kind, asked.text(key)).unwrap_or_else(|| (*default).to_owned());
        // Keys and values are short.
        let _ = info.set(key, value);
    }
    info
}

/// The hints of a file with `hints`, after others have been asked for. The permissions stay: the file is there.
#[must_use]
pub(super) fn changed(mut hints: Info, asked: &Info) -> Info {
    for (key, kind, _) in HINTS.iter().filter(|(_, kind, _)| !matches!(kind, Kind::Permissions)) {
        if let Some(value) = value(*kind, asked.text(key)) {
            // Keys and values are short.
            let _ = hints.set(key, value);
        }
    }
    hints
}

/// The permissions of a new file.
#[must_use]
pub(super) fn permissions(hints: &Info) -> u32 {
    hints.text("file_perm").and_then(|text| u32::from_str_radix(text, 8).ok()).unwrap_or(0o666)
}

/// Whether short runs may be accessed in this direction through a mapping.
#[must_use]
pub(super) fn maps(hints: &Info, direction: Direction) -> bool {
    let romio = match direction {
        Direction::Read => "romio_ds_read",
        Direction::Write => "romio_ds_write",
    };
    hints.text(romio) != Some("disable")
}

/// Whether collective accesses in this direction may be made of few large ones.
#[must_use]
pub(super) fn buffers(hints: &Info, direction: Direction) -> bool {
    let romio = match direction {
        Direction::Read => "romio_cb_read",
        Direction::Write => "romio_cb_write",
    };
    hints.text("collective_buffering") != Some("false") && hints.text(romio) != Some("disable")
}

/// Bytes that all members together hold at a time in a collective access.
#[must_use]
pub(super) fn buffer_size(hints: &Info) -> usize {
    hints.text("cb_buffer_size").and_then(|text| text.parse().ok()).unwrap_or(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_have_defaults_and_nonsense_is_ignored() {
        let mut asked = Info::new();
        for (key, value) in [("cb_buffer_size", "0"), ("collective_buffering", " FALSE"), ("colour", "red")] {
            asked.set(key, value).unwrap();
        }
        let hints = at_open(&asked);
        assert!(!buffers(&hints, Direction::Read) && hints.text("colour").is_none());
        assert_eq!((buffer_size(&hints), permissions(&hints)), (1 << 20, 0o666));
        asked.set("cb_buffer_size", "65536").unwrap();
        asked.set("file_perm", "0600").unwrap();
        let hints = changed(hints, &asked);
        assert_eq!((buffer_size(&hints), permissions(&hints)), (65536, 0o666));
        assert_eq!(permissions(&at_open(&asked)), 0o600);
    }

    #[test]
    fn each_direction_can_do_without_the_shared_buffer() {
        let mut asked = Info::new();
        asked.set("romio_cb_write", "disable").unwrap();
        asked.set("romio_cb_read", "sometimes").unwrap();
        let hints = at_open(&asked);
        assert!(buffers(&hints, Direction::Read) && !buffers(&hints, Direction::Write));
    }
}
