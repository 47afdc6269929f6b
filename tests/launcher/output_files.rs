//! Files for what ranks write.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::common::jobs::{Directory, run};

const TALK: &str = "echo out $PERUSAL_RANK; echo err $PERUSAL_RANK >&2; printf end";

fn read(dir: &Directory, name: &str) -> String {
    fs::read_to_string(dir.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn each_rank_has_a_file_and_its_lines_are_shown_as_ever() {
    let dir = Directory::new("output-filename");
    let name = dir.path().join("new/out");
    let job = |name: &str| {
        let ended = run(&["-n", "11", "--output-filename", name, "sh", "-c", TALK]);
        assert_eq!(ended.code(), 0, "{ended:?}");
        for rank in 0..11 {
            let mut lines: Vec<String> =
                read(&dir, &format!("new/out.{rank:02}")).lines().map(str::to_owned).collect();
            lines.sort_unstable();
            assert_eq!(lines, ["end".to_owned(), format!("err {rank}"), format!("out {rank}")]);
        }
        ended
    };
    let ended = job(name.to_str().unwrap());
    assert_eq!(ended.out.matches("out ").count(), 11, "{ended:?}");
    assert_eq!(ended.err.matches("err ").count(), 11, "{ended:?}");
    // The files of before are replaced.
    let ended = job(&format!("{}:nocopy", name.display()));
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", ""));
}

#[test]
fn a_directory_has_a_file_for_each_stream() {
    let dir = Directory::new("output-dir");
    let words = format!("tag,dir={}", dir.path().display());
    let ended = run(&["-n", "2", "--output", &words, "sh", "-c", TALK]);
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(read(&dir, "1/rank.1/stdout"), "[1] out 1\n[1] end\n");
    assert_eq!(read(&dir, "1/rank.0/stderr"), "[0] err 0\n");
    assert_eq!(ended.lines(), ["[0] end", "[0] out 0", "[1] end", "[1] out 1"]);
}

#[test]
fn patterns_may_have_ranks_share_a_file_in_which_lines_stay_whole() {
    let dir = Directory::new("outfile-pattern");
    let path = |name: &str| dir.path().join(name).to_str().expect("a plain name").to_owned();
    let (out, err) = (path("all"), path("err-%r"));
    let script = "i=0; while test $i -lt 200; do printf $PERUSAL_RANK; echo $PERUSAL_RANK; i=$((i+1)); done; echo e >&2";
    let ended = run(&["-n", "3", "-outfile-pattern", &out, "-errfile-pattern", &err, "sh", "-c", script]);
    assert_eq!((ended.code(), ended.out.as_str(), ended.err.as_str()), (0, "", ""));
    let all = read(&dir, "all");
    for pair in ["00", "11", "22"] {
        assert_eq!(all.lines().filter(|line| *line == pair).count(), 200);
    }
    assert_eq!(all.lines().count(), 600);
    assert_eq!(read(&dir, "err-2"), "e\n");
}

#[test]
fn standard_error_goes_where_standard_output_goes() {
    let ended = run(&["-n", "2", "--merge-stderr-to-stdout", "sh", "-c", TALK]);
    assert_eq!((ended.code(), ended.err.as_str()), (0, ""));
    assert_eq!(ended.out.matches("err ").count(), 2, "{ended:?}");
}

#[test]
fn a_file_that_cannot_be_made_or_written_ends_the_job_with_its_name() {
    let ended = run(&["-n", "2", "--output-filename", "/proc/no/such", "sleep", "1000"]);
    assert_eq!(ended.code(), 1);
    assert!(ended.err.contains("a file for output: /proc/no/such.0: "), "{ended:?}");
    let ended = run(&["-n", "2", "-outfile-pattern", "/dev/full", "sh", "-c", "echo a; sleep 1000"]);
    assert_eq!(ended.code(), 1);
    assert!(ended.err.contains("/dev/full: No space left on device"), "{ended:?}");
}

#[test]
fn who_reads_a_pipe_slowly_gets_all_of_it() {
    let dir = Directory::new("output-pipe");
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    let name = pipe.to_str().expect("a plain name").to_owned();
    let job = || run(&["-n", "1", "-outfile-pattern", &name, "head", "-c", "5000000", "/dev/zero"]);
    let ended = job();
    assert!(ended.code() == 1 && ended.err.contains("pipe: No such device"), "nobody reads: {ended:?}");
    // Opened for reading without waiting for a writer.
    let mut reader =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).expect("a pipe");
    let slow = thread::spawn(move || {
        let (mut got, mut piece) = (0, vec![0; 70_000]);
        while got < 5_000_000 {
            got += reader.read(&mut piece).unwrap_or(0);
            thread::sleep(Duration::from_micros(100));
        }
        got
    });
    let ended = job();
    assert_eq!((ended.code(), slow.join().expect("it reads")), (0, 5_000_000), "{ended:?}");
}
