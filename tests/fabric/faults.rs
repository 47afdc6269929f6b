//! Peers that are killed at any moment, memory that somebody writes anything into, other users,
//! and what the kernel refuses.

use crate::node::{CAPS, Node, Said, info};
use crate::{OTHER, Other, both, pattern, two};
use perusal_fi::api::*;
use perusal_fi::transport::Endpoint;
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};

const SIZES: [usize; 5] = [8, 16 << 10, 40_000, 1 << 20, 4 << 20];

/// The next completion with this context, if it comes within a minute.
fn end_of(node: &Node, context: usize) -> Said {
    let start = Instant::now();
    loop {
        let said = node.read();
        if matches!(said, Said::Done(which, ..) | Said::Failed(which, _) if which == context) {
            return said;
        }
        assert!(start.elapsed() < Duration::from_secs(900), "no end of operation {context}");
    }
}

/// One endpoint outlives one peer after the other, each killed while messages go both ways.
#[test]
fn peers_that_are_killed_at_any_moment_end_what_is_under_way() {
    let node = Node::new();
    let mut back = vec![0; 4 << 20];
    for round in 0..12_u64 {
        let mut other = Other::start("echo");
        let to = other.meet(&node);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_micros(500 + 1700 * round));
            drop(other);
        });
        let error = (0..).find_map(|at| {
            let bytes = pattern(SIZES[(at + round as usize) % SIZES.len()], round);
            node.receive(&mut back, to, 0, u64::MAX, 3);
            let error = node.send(&bytes, to, 1, 0, 4);
            let ended = if error == 0 { end_of(&node, 4) } else { Said::Failed(4, -error as i32) };
            // The answer is not waited for: a peer that is gone sends none.
            node.cancel(3);
            match ended {
                Said::Failed(_, error) => Some(error),
                Said::Done(..) => None,
            }
        });
        assert!([Some(FI_ESHUTDOWN), Some(FI_EHOSTUNREACH)].contains(&error), "round {round}: {error:?}");
        killer.join().expect("a thread");
        while node.read_now().is_some() {}
    }
    // What has met so many ends still works.
    let other = Node::new();
    let (to, from) = (node.insert(&other.name()), other.insert(&node.name()));
    other.receive(&mut back, from, 1, 0, 5);
    assert_eq!(node.send(&[7; 8], to, 1, 0, 6), 0);
    assert!(matches!(end_of(&other, 5), Said::Done(5, _, 8, ..)));
}

/// Whatever is written into an endpoint's memory, its calls and those of its peers return, and other endpoints go on.
#[test]
fn anything_written_into_the_memory_is_survived() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..40 {
        let (a, b, to_b, from_a) = two();
        let (bytes, mut buffer) = (pattern(100_000, 1), vec![0; 100_000]);
        b.receive(&mut buffer, from_a, 1, 0, 1);
        for size in [8, 3000, 100_000] {
            assert_eq!(a.send(&bytes[..size], to_b, 0, 0, 2), 0);
        }
        b.read_now();
        let name = b.name();
        let fd: u32 = name.split('.').nth(1).expect("a descriptor").parse().expect("a number");
        let memory = std::fs::File::options().write(true).open(format!("/proc/self/fd/{fd}"));
        let memory = memory.expect("this process's own memory");
        for _ in 0..200 {
            // The head and the first slots, or the doorbells and the first rings.
            let at = if random() % 2 == 0 { random() % 1024 } else { random() % (3 << 20) } & !3;
            let value = match random() % 3 {
                0 => random() % 4,
                1 => u64::from(u32::MAX) - random() % 4,
                _ => random(),
            };
            memory.write_all_at(&value.to_le_bytes(), at).expect("room");
            a.send_now(&bytes[..(random() % 20_000) as usize], to_b, random(), 0, 2);
            a.read_now();
            b.read_now();
        }
    }
    let (a, b, to_b, from_a) = two();
    let mut buffer = [0; 8];
    b.receive(&mut buffer, from_a, 1, 0, 1);
    assert_eq!(a.send(&[5; 8], to_b, 1, 0, 2), 0);
    assert!(matches!(b.read(), Said::Done(1, ..)));
}

/// Starts a process with an endpoint that takes one message and nothing more,
/// and to which a long message is under way then.
fn met(node: &Node, long: &[u8]) -> Other {
    let mut other = Other::start("silent");
    let to = other.meet(node);
    assert_eq!(node.send(&[1], to, 0, 0, 1), 0);
    assert!(matches!(node.read(), Said::Done(1, ..)));
    assert_eq!(node.send(long, to, 0, 0, 2), 0);
    other
}

#[test]
fn a_thread_that_waits_for_the_descriptor_learns_that_a_peer_was_killed() {
    let (node, long) = (Node::new(), pattern(1 << 20, 1));
    let mut other = met(&node, &long);
    while !node.may_wait() {
        assert_eq!(node.read_now(), None);
    }
    other.child.kill().expect("a process");
    other.child.wait().expect("an end");
    assert!(node.is_readable(900_000), "nobody woke this thread");
    while node.read_now().is_none_or(|said| said != Said::Failed(2, FI_ESHUTDOWN)) {
        assert!(node.poll(900_000), "nobody woke this thread");
    }
}

#[test]
fn a_peer_that_was_killed_is_found_while_others_send() {
    let (node, long) = (Node::new(), pattern(1 << 20, 1));
    let other = met(&node, &long);
    let busy = Node::new();
    let (to, start) = (busy.insert(&node.name()), Instant::now());
    let mut room = [0; 8];
    drop(other);
    loop {
        assert!(start.elapsed() < Duration::from_secs(900), "no end of the message to it");
        node.receive(&mut room, FI_ADDR_UNSPEC, 3, 0, 3);
        assert_eq!(busy.send(&[7; 8], to, 3, 0, 4), 0);
        match node.read() {
            Said::Failed(2, FI_ESHUTDOWN) => break,
            said => assert!(matches!(said, Said::Done(3, ..)), "{said:?}"),
        }
        assert!(matches!(busy.read(), Said::Done(4, ..)));
    }
}

#[test]
fn a_receive_that_names_a_peer_ends_with_it() {
    let (node, mut room) = (Node::new(), [0; 8]);
    // Met by a message, and by its address alone.
    for has_sent in [true, false] {
        let mut other = Other::start("silent");
        let from = other.meet(&node);
        if has_sent {
            assert_eq!(node.send(&[1], from, 0, 0, 1), 0);
            assert!(matches!(node.read(), Said::Done(1, ..)));
        }
        node.receive(&mut room, from, 1, 0, 2);
        node.receive_plain(&mut room, from, 3);
        drop(other);
        let mut ends = [node.read(), node.read()];
        ends.sort_by_key(|end| matches!(end, Said::Failed(3, _)));
        assert_eq!(ends, [Said::Failed(2, FI_ESHUTDOWN), Said::Failed(3, FI_ESHUTDOWN)]);
    }
    // What an endpoint has sent before its end is received.
    let (a, b, to_b, from_a) = two();
    assert_eq!(a.send(&[5; 8], to_b, 1, 0, 1), 0);
    b.receive(&mut room, from_a, 1, 0, 2);
    b.receive_plain(&mut [], from_a, 3);
    drop(a);
    assert!(matches!(b.read(), Said::Done(2, ..)));
    assert_eq!(b.read(), Said::Failed(3, FI_ESHUTDOWN));
}

#[test]
fn a_process_that_goes_on_as_another_program_has_ended_as_a_peer() {
    let (node, long) = (Node::new(), pattern(1 << 20, 1));
    let mut other = Other::start("changes");
    let to = other.meet(&node);
    assert_eq!(node.send(&[1], to, 0, 0, 1), 0);
    assert!(matches!(node.read(), Said::Done(1, ..)));
    // It is seen alive.
    while !node.may_wait() {
        assert_eq!(node.read_now(), None);
    }
    assert_eq!((node.send(&[1], to, 0, 0, 3), node.send(&long, to, 0, 0, 2)), (0, 0));
    assert!(matches!(node.read(), Said::Done(3, ..)));
    assert_eq!(node.read(), Said::Failed(2, FI_ESHUTDOWN));
}

#[test]
fn peers_that_come_and_go_leave_no_descriptors() {
    let mut host = Command::new(std::env::current_exe().expect("this program"));
    host.args(["the_other_process", "--exact", "--nocapture"]).env(OTHER, "host");
    let ended = host.output().expect("a process");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// What that process does: nobody else there opens anything.
pub fn peers_leave_no_descriptors() {
    let count = || std::fs::read_dir("/proc/self/fd").expect("Linux").count();
    let mut host = Endpoint::open().expect("an endpoint");
    let before = count();
    for _ in 0..20 {
        let mut guest = Endpoint::open().expect("an endpoint");
        let (to_host, to_guest) = (guest.add(host.address()), host.add(guest.address()));
        guest.inject(to_host, 1, 0, &[1]).expect("room");
        host.inject(to_guest, 1, 0, &[1]).expect("room");
        host.receive(None, 1, 0, vec![0], 1);
        assert!(host.wait(Duration::from_secs(900)).is_some_and(|done| done.result.is_ok()));
        assert!(!host.has_left(to_guest));
        host.send(to_guest, 2, 0, vec![0; 1 << 20], 2).expect("room");
        drop(guest);
        assert!(host.has_left(to_guest));
        assert!(host.wait(Duration::from_secs(900)).is_some_and(|done| done.result.is_err()));
    }
    assert_eq!(count(), before);
}

/// An endpoint of another user's is out of reach, by an error of the kernel's. The superuser tries it as somebody else:
/// the change is one of this thread.
#[test]
fn an_endpoint_of_another_user_is_refused() {
    // SAFETY: a plain call.
    let is_root = unsafe { libc::geteuid() } == 0;
    let mut other = is_root.then(|| Other::start("silent"));
    let name = match &mut other {
        Some(other) => {
            let node = Node::new();
            let to = other.meet(&node);
            node.lookup(to)
        }
        // The first process is root's.
        None => format!("perusal://{:010}.{:06}.{:016x}", 1, 3, 1),
    };
    let attempt = std::thread::spawn(move || {
        if is_root {
            // SAFETY: the system call itself, which changes the calling thread alone.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) }, 0);
        }
        let node = Node::new();
        let to = node.insert(&name);
        node.send(&[1], to, 0, 0, 1)
    });
    let error = attempt.join().expect("a thread");
    // Who is not root may not even see that process.
    assert!(error == -(FI_EACCES as isize) || !is_root && error == -(FI_EHOSTUNREACH as isize), "{error}");
}

/// A program may close all descriptors, those of its endpoints' memory among them, or have other files under their
/// numbers: nobody else meets the endpoint then, and whoever has met it gets an error.
#[test]
fn an_endpoint_whose_memory_is_taken_from_its_name_is_gone_for_others() {
    let (met, stranger, node) = (Node::new(), Node::new(), Node::new());
    let name = node.name();
    let (to, to_also) = (met.insert(&name), stranger.insert(&name));
    assert_eq!(met.send(&[1; 8], to, 1, 0, 1), 0);
    assert!(matches!(met.read(), Said::Done(1, ..)));
    let fd = name.split('.').nth(1).expect("a descriptor").parse().expect("a number");
    let other = std::fs::File::open("/dev/null").expect("a descriptor");
    // SAFETY: the number is another file's from now on; the endpoint has its memory mapped.
    assert_eq!(unsafe { libc::dup3(other.as_raw_fd(), fd, libc::O_CLOEXEC) }, fd);
    assert_eq!(stranger.send(&[1], to_also, 1, 0, 2), -(FI_EHOSTUNREACH as isize));
    // A long one waits for its receiver, which cannot answer: it has met nobody that way.
    let error = met.send(&pattern(1 << 20, 1), to, 1, 0, 3);
    let gone = [-(FI_EHOSTUNREACH as isize), -(FI_ESHUTDOWN as isize)];
    assert!(
        error == 0 && end_of(&met, 3) == Said::Failed(3, FI_ESHUTDOWN) || gone.contains(&error),
        "{error}"
    );
}

/// What a kernel gives no memory or descriptors for is an error of the call, and no signal.
#[test]
fn an_endpoint_that_cannot_be_had_is_an_error() {
    let mut poor = Command::new(std::env::current_exe().expect("this program"));
    poor.args(["the_other_process", "--exact", "--nocapture"]).env(OTHER, "poor");
    let ended = poor.output().expect("a process");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// What that process does.
pub fn what_the_kernel_refuses_is_an_error() {
    let limit = |what, to: u64| {
        let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: room for the limits, and limits.
        unsafe {
            assert_eq!(libc::getrlimit(what, &raw mut limits), 0);
            let before = limits.rlim_cur;
            limits.rlim_cur = to.min(limits.rlim_max);
            assert_eq!(libc::setrlimit(what, &raw const limits), 0);
            before
        }
    };
    let offer = info(CAPS).expect("an offer");
    let pages: u64 = std::fs::read_to_string("/proc/self/statm")
        .expect("Linux")
        .split(' ')
        .next()
        .and_then(|pages| pages.parse().ok())
        .expect("a number");
    let before = limit(libc::RLIMIT_AS, pages * 4096 + (64 << 20));
    assert_eq!(Node::open(offer).err(), Some(-FI_ENOMEM));
    limit(libc::RLIMIT_AS, before);
    // The limit is one of numbers, of which the process may have inherited any: it begins with the lowest free one.
    let free = std::fs::File::open("/").expect("a descriptor").as_raw_fd() as u64;
    let mut refused = 0;
    loop {
        let before = limit(libc::RLIMIT_NOFILE, free + refused);
        let opened = Node::open(offer);
        limit(libc::RLIMIT_NOFILE, before);
        match opened {
            Ok(_) => break,
            Err(error) => assert_eq!(error, -libc::EMFILE),
        }
        refused += 1;
    }
    assert!(refused > 1, "a queue and an endpoint have descriptors");
    drop(Node::open(offer).expect("an endpoint"));
    // An answer waits until the way to its receiver can be opened.
    let (a, b, to_b, _) = two();
    let (bytes, mut room) = (pattern(300_001, 1), vec![0; 300_001]);
    assert_eq!(a.send_pieces(&bytes, to_b, 1, 0, 5), 0);
    let before = limit(libc::RLIMIT_NOFILE, 0);
    b.receive(&mut room, FI_ADDR_UNSPEC, 1, 0, 6);
    (0..100).for_each(|_| assert_eq!((a.read_now(), b.read_now()), (None, None)));
    limit(libc::RLIMIT_NOFILE, before);
    both(&a, &b);
    assert!(room == bytes);
}

/// Endpoints need no room in /dev/shm or /tmp, and leave nothing there.
#[test]
fn nothing_is_in_the_file_system() {
    let left = || -> BTreeSet<_> {
        let entries = ["/dev/shm", "/tmp"].into_iter().filter_map(|dir| std::fs::read_dir(dir).ok());
        let names = entries.flatten().filter_map(|entry| Some(entry.ok()?.path().display().to_string()));
        names.filter(|name| name.contains("perusal-fi")).collect()
    };
    let full =
        "mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero > /dev/shm/full && exec \"$@\"";
    let possible =
        Command::new("unshare").args(["--mount", "true"]).output().is_ok_and(|one| one.status.success());
    let mut again = match possible {
        true => Command::new("unshare"),
        false => Command::new("sh"),
    };
    match possible {
        true => again.args(["--mount", "sh", "-c", full, "sh"]),
        // Without the right to mount only what is left is looked at.
        false => again.args(["-c", "exec \"$@\"", "sh"]),
    };
    let again = again
        .arg(std::env::current_exe().expect("this program"))
        .args(["two_processes_exchange_messages_of_all_sizes", "--exact"])
        .output()
        .expect("a process");
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stdout));
    assert!(String::from_utf8_lossy(&again.stdout).contains("1 passed"));
    let mut killed = Other::start("silent");
    killed.meet(&Node::new());
    drop(killed);
    assert_eq!(left(), BTreeSet::new());
}
