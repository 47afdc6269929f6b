//! What stands before each line of a rank's output: `-l`, `--timestamp-output` as Open MPI has it, and
//! `-prepend-pattern` as MPICH does.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;
use std::time::Instant;

use super::output_files::host;
use crate::args::Plan;

/// When the job began.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Text with places that are filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelText(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    /// The rank.
    Rank,
    /// Whole seconds since the job began.
    Seconds,
    /// The date and the time of day.
    Date,
}

impl LabelText {
    /// Reads a pattern: `%r` stands for the rank, `%h` for the machine, `%t` for the seconds since the job began, `%g`
    /// and `%p`, of which there is one each, for 0, and `%%` for a percent sign.
    ///
    /// # Errors
    /// Says what stands for nothing.
    pub fn of(pattern: &OsStr) -> Result<Self, String> {
        // The clock of this job runs from here on at the latest.
        LazyLock::force(&BEGINNING);
        let mut pieces = vec![];
        let mut rest = pattern.as_bytes();
        while let [first, after @ ..] = rest {
            rest = after;
            if *first != b'%' {
                pieces.push(Piece::Bytes(vec![*first]));
                continue;
            }
            pieces.push(match rest.first() {
                Some(b'r') => Piece::Rank,
                Some(b't') => Piece::Seconds,
                Some(b'h') => Piece::Bytes(host().into_bytes()),
                Some(b'g' | b'p') => Piece::Bytes(b"0".to_vec()),
                Some(b'%') => Piece::Bytes(b"%".to_vec()),
                _ => {
                    let pattern = pattern.to_string_lossy();
                    return Err(format!(
                        "-prepend-pattern {pattern}: %r, %h, %t, %g, %p and %% mean something"
                    ));
                }
            });
            rest = &rest[1..];
        }
        Ok(Self(pieces))
    }
}

/// The label of one stream of one rank.
#[derive(Debug, Default)]
pub struct Label {
    rank: u32,
    pieces: Vec<Piece>,
}

impl Label {
    /// The label that a plan asks for; `stream` is 0 for standard output and 1 for standard error.
    #[must_use]
    pub fn of(plan: &Plan, rank: u32, stream: usize) -> Self {
        let text = |text: &str| Piece::Bytes(text.as_bytes().to_vec());
        let mut pieces = vec![];
        if plan.timestamps {
            pieces.extend([text("["), Piece::Date, text("]")]);
        }
        if plan.label {
            pieces.extend([text("["), Piece::Rank, text("]")]);
        }
        if plan.timestamps {
            pieces.push(text(["<stdout>:", "<stderr>:"][stream]));
        }
        if !pieces.is_empty() {
            pieces.push(text(" "));
        }
        pieces.extend(plan.prefix.iter().flat_map(|prefix| prefix.0.iter().cloned()));
        Self { rank, pieces }
    }

    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Appends it as it is now.
    pub fn write(&self, to: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => to.extend_from_slice(bytes),
                Piece::Rank => to.extend_from_slice(self.rank.to_string().as_bytes()),
                Piece::Seconds => to.extend_from_slice(BEGINNING.elapsed().as_secs().to_string().as_bytes()),
                Piece::Date => to.extend_from_slice(&date()),
            }
        }
    }
}

/// The date and the time of day as ctime(3) has them, without the end of the line.
fn date() -> Vec<u8> {
    let mut text = [0_u8; 64];
    // SAFETY: `now` and `parts` are live, the format ends with a NUL,
    // and strftime writes no more than the length that it is given.
    unsafe {
        let now = libc::time(std::ptr::null_mut());
        let mut parts: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&raw const now, &raw mut parts).is_null() {
            return vec![];
        }
        let format = c"%a %b %e %H:%M:%S %Y";
        let len = libc::strftime(text.as_mut_ptr().cast(), text.len(), format.as_ptr(), &raw const parts);
        text[..len].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(plan: &Plan, rank: u32, stream: usize) -> String {
        let mut bytes = vec![];
        Label::of(plan, rank, stream).write(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_pattern_is_filled_in() {
        let prefix = Some(LabelText::of("%r/%g:%p %%>".as_ref()).unwrap());
        assert_eq!(written(&Plan { prefix, ..Plan::default() }, 12, 0), "12/0:0 %>");
        let seconds = Some(LabelText::of("%t".as_ref()).unwrap());
        assert!(written(&Plan { prefix: seconds, ..Plan::default() }, 0, 0).parse::<u64>().is_ok());
        for wrong in ["%x", "%"] {
            assert!(LabelText::of(wrong.as_ref()).unwrap_err().contains("mean something"), "{wrong}");
        }
    }

    #[test]
    fn rank_and_time_stand_before_the_stream() {
        assert!(Label::of(&Plan::default(), 0, 0).is_empty());
        assert_eq!(written(&Plan { label: true, ..Plan::default() }, 3, 1), "[3] ");
        let timed = written(&Plan { label: true, timestamps: true, ..Plan::default() }, 3, 1);
        // [Sat Nov 28 01:57:38 2026][3]<stderr>:
        assert_eq!(timed.len(), "[Sat Nov 28 01:57:38 2026][3]<stderr>: ".len(), "{timed}");
        assert!(timed.ends_with("][3]<stderr>: "), "{timed}");
        let timed = written(&Plan { timestamps: true, ..Plan::default() }, 3, 0);
        assert!(timed.starts_with('[') && timed.ends_with("]<stdout>: "), "{timed}");
    }
}
