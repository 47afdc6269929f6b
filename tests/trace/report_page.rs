//! The page of `perusal report` in a browser: what its script makes of known jobs. The pages and, with
//! `PERUSAL_PICTURES=1`, pictures of them stay in cargo's directory for tests.

use crate::common::browser::{Page, open, picture};
use crate::common::scratch;
use perusal::events::Event;
use perusal::internals::shm::telemetry::Waiting;
use perusal_trace::synthetic::{Synthetic, SyntheticMessage};
use perusal_trace::{Record, RecordPayload, report};
use std::fs;
use std::path::{Path, PathBuf};

fn sleep(job: &mut Synthetic, rank: u32, begin: u64, end: u64, kind: Waiting, peer: i32) {
    let payload = RecordPayload::Sleep { waiting: kind as u8, peer: peer.cast_unsigned() };
    let context = Record::NO_CONTEXT;
    let what = Record { payload, peer, context, ..Synthetic::record(Event::BellSleep, 0) };
    job.span(rank, begin, end, &what, Event::BellWake);
}

fn barrier(job: &mut Synthetic, rank: u32, id: u64, begin: u64, end: u64) {
    let what = Record {
        payload: RecordPayload::Coll {
            operation: 0,
            root: perusal::events::CollRoot::default(),
            algorithm: 2,
            mode: 0,
            bytes: 0,
        },
        ..Synthetic::record(Event::CollBegin, id)
    };
    job.span(rank, begin, end, &what, Event::CollEnd);
}

const MS: u64 = 1_000_000;

/// `ranks` ranks in a ring, 20 rounds of 10 ms, each sending to both neighbours; `slow` sends 6 ms late, and everybody
/// waits for it. Every rank but 0 also sends 5 messages to rank 0, which takes them in the end.
fn ring(ranks: u32, slow: u32) -> Synthetic {
    let mut job = Synthetic::new(ranks);
    job.trace_header().command = format!("./ring --ranks {ranks}");
    for rank in 0..ranks {
        job.push(rank, 0, &Synthetic::record(Event::Initialized, 0));
    }
    for round in 0..20 {
        let begin = MS + round * 10 * MS;
        for rank in 0..ranks {
            for to in [(rank + 1) % ranks, (rank + ranks - 1) % ranks] {
                let late = if rank == slow { 6 * MS } else { 100_000 + u64::from(rank) * 500 };
                let (sent, posted) = (begin + late, begin + 50_000);
                job.message(&SyntheticMessage {
                    from: rank,
                    to,
                    tag: to as i32,
                    bytes: 8192,
                    sent,
                    posted,
                    ..SyntheticMessage::default()
                });
                if rank == slow {
                    sleep(&mut job, to, begin + 200_000, sent + 40, Waiting::All, -1);
                }
            }
            barrier(
                &mut job,
                rank,
                1000 + round,
                begin + 8 * MS + u64::from(rank) * 100,
                begin + 8 * MS + 200_000,
            );
        }
    }
    for rank in 1..ranks {
        for n in 0..5 {
            let sent = 30 * MS + n * 20 * MS + u64::from(rank) * 1000;
            let posted = 190 * MS + u64::from(rank) * 50_000 + n * 5_000;
            job.message(&SyntheticMessage {
                from: rank,
                to: 0,
                tag: 99,
                bytes: 64,
                sent,
                posted,
                ..SyntheticMessage::default()
            });
        }
    }
    job
}

fn written(job: &Synthetic, dir: &Path, name: &str) -> PathBuf {
    let found = report::analyse(&job.trace(), &format!("{name}.trace"));
    let path = dir.join(format!("{name}.html"));
    fs::write(&path, report::page(&found).expect("a page")).expect("a writable directory");
    if std::env::var_os("PERUSAL_PICTURES").is_some() {
        let size = "--window-size=1280,5200";
        picture(&path, &dir.join(format!("{name}-light.png")), &[size]);
        picture(
            &path,
            &dir.join(format!("{name}-dark.png")),
            &[size, "--blink-settings=preferredColorScheme=0"],
        );
    }
    path
}

/// Nothing on the console: the script ran without an error, and no request was made (the page's policy refuses all,
/// and says so there).
fn silent(page: &Page) {
    assert!(
        page.dom.contains("data-drawn=\"yes\""),
        "the script did not come to its end: {:?}",
        page.console
    );
    assert!(page.console.is_empty(), "{:#?}", page.console);
}

/// The text of an element: what stands between its tags, without tags.
fn text_of<'a>(dom: &'a str, from: &str, to: &str) -> String {
    let begin = dom.find(from).unwrap_or_else(|| panic!("no {from}"));
    let rest: &'a str = &dom[begin..];
    let element = &rest[..rest.find(to).unwrap_or_else(|| panic!("no {to} behind {from}"))];
    let mut text = String::new();
    let mut inside = false;
    for c in element.chars() {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                text.push(' ');
            }
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn cell(from: u32, to: u32, value: u64) -> String {
    format!("data-from=\"{from}\" data-to=\"{to}\" data-value=\"{value}\"")
}

#[test]
fn the_page_of_a_known_job_shows_its_matrix_its_maxima_and_who_was_late() {
    let dir = scratch("report-known");
    let page = open(&written(&ring(4, 2), &dir, "known"));
    silent(&page);
    // 20 rounds to each neighbour; to rank 0 five more from each.
    for (from, to, messages) in [(0, 1, 20), (0, 3, 20), (1, 0, 25), (2, 1, 20), (2, 0, 5), (3, 0, 25)] {
        assert!(page.dom.contains(&cell(from, to, messages)), "{from} to {to}");
    }
    assert!(page.dom.contains(&cell(0, 2, 0)));
    // 15 messages lie in rank 0's queue together; the last one comes at 110,003,050 and is in it 10 later.
    assert!(
        text_of(&page.dom, "class=\"row\" data-rank=\"0\"", "</g>").contains("high water 15 at 110"),
        "the high-water mark"
    );
    let tiles = text_of(&page.dom, "<dl id=\"key\"", "</dl>");
    assert!(tiles.contains("Longest unexpected queue 15 rank 0, at 110"), "{tiles}");
    assert!(tiles.contains("Messages 175"), "{tiles}");
    let late = text_of(&page.dom, "id=\"late-senders\"", "</table>");
    assert!(late.contains("rank 2 rank 1") && late.contains("rank 2 rank 3"), "{late}");
    let causes = text_of(&page.dom, "id=\"causes\"", "</table>");
    assert!(causes.contains(" 2 "), "{causes}");
    // Messages came before their receives, but nobody waited to send them.
    assert!(!page.dom.contains("id=\"late-receivers\""), "rows of nothing");
    let verdict = text_of(&page.dom, "class=\"verdict\"", "</p>");
    assert!(verdict.contains("Rank 2 kept the others waiting"), "{verdict}");
    assert!(
        text_of(&page.dom, "id=\"collectives-table\"", "</table>").contains("MPI_Barrier"),
        "collectives"
    );
}

/// A wait of rank 1 for the lock of rank 2 in a window of three, which rank 0 holds, and a put.
fn window(job: &mut Synthetic, name: &str) {
    job.window(10, 8, name, &[0, 1, 2]);
    let of =
        |event, id, peer: i32, payload| Record { context: 8, peer, payload, ..Synthetic::record(event, id) };
    let lock = |event, id| of(event, id, 2, RecordPayload::Lock { target: 2, lock: 2, holder: 0 });
    job.push(0, MS, &lock(Event::WinLockAcquired, 5)).push(0, 40 * MS, &lock(Event::WinLockReleased, 5));
    job.push(1, 2 * MS, &lock(Event::WinLockWaitBegin, 6)).push(1, 40 * MS, &lock(Event::WinLockWaitEnd, 6));
    let put = RecordPayload::Rma { operation: 0, reach: 0, world: u32::MAX, address: 0, target: None };
    job.push(1, 41 * MS, &Record { bytes: 1_500, ..of(Event::WinReqComplete, 7, 2, put) });
    for rank in 0..3 {
        job.push(rank, 50 * MS, &Synthetic::record(Event::Finalizing, 0));
    }
}

#[test]
fn windows_are_shown_with_their_bytes_and_who_waited_for_whose_lock() {
    let dir = scratch("report-windows");
    let mut job = Synthetic::new(3);
    window(&mut job, "<b>shelf</b>");
    let page = open(&written(&job, &dir, "windows"));
    silent(&page);
    let windows = text_of(&page.dom, "id=\"windows-table\"", "</table>");
    for part in ["&lt;b&gt;shelf", "allocate loads and stores 3 0-2 1× 1.50 kB", "lock: 1×, 39.0 ms"] {
        assert!(windows.contains(part), "{part}: {windows}");
    }
    let bytes = text_of(&page.dom, "id=\"one-sided-table\"", "</table>");
    assert!(bytes.contains("1 2 1 1.50 kB"), "{bytes}");
    let waits = text_of(&page.dom, "id=\"lock-waits-table\"", "</table>");
    assert!(waits.contains("1 2 &lt;b&gt;shelf&lt;/b&gt; 0 38.0 ms 1 38.0 ms"), "{waits}");
    let verdict = text_of(&page.dom, "class=\"verdict\"", "</p>");
    assert!(
        verdict.contains("Rank 0 kept the others waiting") && verdict.contains("it held locks of windows"),
        "{verdict}"
    );
    assert!(verdict.contains("rank 1 alone 38.0 ms for that of rank 2's memory"), "{verdict}");
    let tiles = text_of(&page.dom, "<dl id=\"key\"", "</dl>");
    assert!(tiles.contains("One-sided operations 1 1.50 kB, 38.0 ms waiting at windows"), "{tiles}");
}

#[test]
fn a_job_of_64_ranks_is_shown_as_fields_and_stays_small() {
    let dir = scratch("report-64");
    let path = written(&ring(64, 17), &dir, "ranks64");
    let page = open(&path);
    silent(&page);
    assert_eq!(page.dom.matches("<canvas").count(), 2, "the heat map of queues, and the matrix");
    assert!(text_of(&page.dom, "class=\"verdict\"", "</p>").contains("Rank 17 kept the others waiting"));
    let size = fs::metadata(&path).expect("the page").len();
    assert!(size < 2_000_000, "{size} bytes");
}

#[test]
fn two_ranks_one_rank_and_no_record_at_all_make_pages_too() {
    let dir = scratch("report-small");
    silent(&open(&written(&ring(2, 1), &dir, "ranks2")));
    let mut alone = Synthetic::new(1);
    alone.push(0, 5, &Synthetic::record(Event::Initialized, 0));
    silent(&open(&written(&alone, &dir, "ranks1")));
    silent(&open(&written(&Synthetic::new(3), &dir, "nothing")));
}

#[test]
fn a_name_that_a_program_chose_is_text_and_never_markup() {
    const HOSTILE: &str = "</script><script>document.title='caught'</script><img src=x onerror=\"document.title='caught'\">&lt;";
    let dir = scratch("report-hostile");
    let mut job = ring(2, 1);
    job.trace_header().command = HOSTILE.into();
    job.trace_header().host = HOSTILE.into();
    job.communicator(10, 8, HOSTILE, &[0, 1]);
    job.message(&SyntheticMessage {
        context: 8,
        from: 0,
        to: 1,
        sent: 50,
        posted: 20,
        ..SyntheticMessage::default()
    });
    barrier(&mut job, 0, 1, 100, 200);
    let page = open(&written(&job, &dir, "hostile"));
    silent(&page);
    assert!(!page.dom.contains("<img"), "an element came to life");
    assert!(!text_of(&page.dom, "<title>", "</title>").eq("caught"));
    let shown = text_of(&page.dom, "id=\"communicators-table\"", "</table>");
    assert!(shown.contains("&lt;/script&gt;&lt;script&gt;document.title"), "{shown}");
}

/// What a person does, done by a script behind the page's own.
#[test]
fn the_controls_narrow_the_figures_to_some_ranks_and_a_part_of_the_time() {
    const HANDS: &str = r#"<script>
        const type = (text) => { filter.value = text; filter.dispatchEvent(new Event("input")); };
        for (const select of document.querySelectorAll("select")) {
            for (const option of [...select.options].reverse()) {
                select.value = option.value;
                select.dispatchEvent(new Event("change"));
            }
        }
        for (const box of document.querySelectorAll("input[type=checkbox]")) box.click();
        for (const button of ["in", "right", "out", "left", "all"]) document.getElementById("zoom-" + button).click();
        for (const summary of document.querySelectorAll("summary")) summary.click();
        type("1-9");
        document.body.dataset.refused = filter.getAttribute("aria-invalid");
        type("0, 2-3");
        setZoom(0, 50e6);
        document.body.dataset.tried = "yes";
        </script></body>"#;
    let dir = scratch("report-controls");
    let sound = fs::read_to_string(written(&ring(4, 2), &dir, "sound")).expect("the page");
    let path = dir.join("tried.html");
    fs::write(&path, sound.replace("</body>", HANDS)).expect("a writable directory");
    let page = open(&path);
    silent(&page);
    assert!(page.dom.contains("data-tried=\"yes\"") && page.dom.contains("data-refused=\"true\""));
    let rows: Vec<bool> =
        (0..4).map(|rank| page.dom.contains(&format!("class=\"row\" data-rank=\"{rank}\""))).collect();
    assert_eq!(rows, [true, false, true, true]);
    let range = text_of(&page.dom, "id=\"zoom-range\"", "</span>");
    assert!(range.ends_with(" 0 to 50.00 ms"), "{range}");
    // The high-water mark at 110 ms is outside; the matrix has three ranks.
    assert!(!page.dom.contains("high water 15"));
    assert!(page.dom.contains(&cell(2, 3, 20)) && !page.dom.contains("data-from=\"1\""));
    assert!(
        text_of(&page.dom, "id=\"high-water\"", "</table>").contains("unexpected: high water"),
        "the table is open"
    );
}

/// What `silent` relies on: a page that asks for something from elsewhere, or whose script fails, does not stay silent.
#[test]
fn a_request_and_an_error_of_a_script_would_be_seen() {
    let dir = scratch("report-loud");
    let sound = fs::read_to_string(written(&ring(2, 1), &dir, "sound")).expect("the page");
    for (name, bad) in [
        ("request", "<img src=\"http://127.0.0.1:9/x.png\" alt=\"\"></main>"),
        ("error", "<script>undefined_function()</script></main>"),
    ] {
        let path = dir.join(format!("{name}.html"));
        fs::write(&path, sound.replace("</main>", bad)).expect("a writable directory");
        assert!(!open(&path).console.is_empty(), "{name}");
    }
}

#[test]
fn captions_are_whole_on_a_narrow_screen_though_tables_are_wider() {
    let dir = scratch("report-narrow");
    let whole = fs::read_to_string(written(&ring(4, 2), &dir, "narrow")).expect("the page");
    let measure = "<script>addEventListener('load', () => {
        const captions = [...document.querySelectorAll('caption span, figcaption')].filter((c) => c.textContent !== '');
        const cut = captions.filter((c) => {
            const box = c.getBoundingClientRect();
            return c.scrollWidth > c.clientWidth + 1 || box.left < 0 || box.right > innerWidth;
        });
        const wide = [...document.querySelectorAll('.scroll')].filter((s) => s.scrollWidth > s.clientWidth);
        console.log(`measured: width ${innerWidth}, captions ${captions.length > 1}, cut ${cut.length}, wide ${wide.length > 0}`);
    });</script></main>";
    fs::write(dir.join("narrow.html"), whole.replace("</main>", measure)).expect("a writable directory");
    let frame = dir.join("frame.html");
    fs::write(
        &frame,
        "<iframe src=\"narrow.html\" width=\"420\" height=\"4000\" style=\"border:0\"></iframe>",
    )
    .expect("a writable directory");
    let console = open(&frame).console.join("\n");
    assert!(console.contains("measured: width 420, captions true, cut 0, wide true"), "{console}");
}
