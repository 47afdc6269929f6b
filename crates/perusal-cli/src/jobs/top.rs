//! `perusal top`: what the ranks of a running job do, again and again.
//!
//! It reads the job's telemetry, mapped for reading only: the ranks do not know, and it costs them nothing.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use perusal::internals::shm::telemetry::{PROTOCOLS, Telemetry};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::Constraint;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table, TableState};
use serde_json::{Value, json};

use super::attach::{self, RunningJob};
use super::ps;
use crate::hang::{RankView, Scene, home};
use crate::sys;

/// Which job to show, and how.
#[derive(Args, Debug)]
pub struct TopOptions {
    /// The job's number, as `perusal ps` shows it [default: your only job]
    #[arg(value_name = "JOB", value_parser = attach::job_number)]
    job: Option<u32>,
    /// Show it once as text; so it is where standard output is no terminal
    #[arg(long)]
    once: bool,
    /// Write JSON, once
    #[arg(long)]
    json: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: f64,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.05..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "it must be a number of seconds from 0.05 to 3600".to_owned())
}

/// What a rank has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    sent: u64,
    received: u64,
    sent_bytes: u64,
    received_bytes: u64,
    sleeps: u64,
}

impl Counts {
    fn of(page: &Telemetry) -> Self {
        let all = |part: fn(&perusal::internals::shm::telemetry::Counts, usize) -> u64| {
            (0..PROTOCOLS)
                .map(|protocol| page.sum(|counts| part(counts, protocol)))
                .fold(0, u64::wrapping_add)
        };
        Self {
            sent: all(|counts, protocol| counts.sent[protocol].get()),
            received: all(|counts, protocol| counts.received[protocol].get()),
            sent_bytes: all(|counts, protocol| counts.sent_bytes[protocol].get()),
            received_bytes: all(|counts, protocol| counts.received_bytes[protocol].get()),
            sleeps: page.sleeps.get(),
        }
    }

    /// How many more they are than `before`, a second.
    fn rates(&self, before: &Self, seconds: f64) -> [f64; 5] {
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds.max(1e-3);
        [
            rate(self.sent, before.sent),
            rate(self.received, before.received),
            rate(self.sent_bytes, before.sent_bytes),
            rate(self.received_bytes, before.received_bytes),
            rate(self.sleeps, before.sleeps),
        ]
    }
}

/// Two looks at a job.
struct View {
    ranks: Vec<RankView>,
    counts: Vec<Counts>,
    rates: Vec<[f64; 5]>,
    pairs: Vec<Pair>,
}

/// What one rank has sent another through their ring. Large messages that are copied in one step are a record,
/// and none of its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pair {
    from: u32,
    to: u32,
    records: u64,
    bytes: u64,
    records_per_second: f64,
    bytes_per_second: f64,
}

/// Ranks whose pairs are looked at: all with all.
const PAIRED: u32 = 64;
/// Pairs that the text shows.
const SHOWN: usize = 10;

/// Records and bytes beside the cells, by who has sent them to whom.
type Taken = BTreeMap<(u32, u32), (u64, u64)>;

fn taken(scene: &Scene<'_>) -> Taken {
    let ranks = scene.own.places_in_use().min(PAIRED);
    let pairs = (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to)));
    let pairs = pairs.filter(|(from, to)| from != to);
    pairs
        .filter_map(|(from, to)| {
            let (memory, from_there, to_there) = scene.ring(from, to)?;
            Some(((from, to), memory.ring_heads(from_there, to_there)?))
        })
        .filter(|(_, (records, _))| *records > 0)
        .collect()
}

/// The pairs of two looks, those first that talk most.
fn pairs(now: &Taken, before: &Taken, seconds: f64) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = now
        .iter()
        .map(|(&(from, to), &(records, bytes))| {
            let then = before.get(&(from, to)).copied().unwrap_or_default();
            let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds.max(1e-3);
            let (records_per_second, bytes_per_second) = (rate(records, then.0), rate(bytes, then.1));
            Pair { from, to, records, bytes, records_per_second, bytes_per_second }
        })
        .collect();
    pairs.sort_by(|a, b| {
        b.records_per_second.total_cmp(&a.records_per_second).then(b.records.cmp(&a.records))
    });
    pairs
}

struct Looks {
    before: Vec<Counts>,
    taken: Taken,
    at: Instant,
}

impl Looks {
    fn begin(scene: &Scene<'_>) -> Self {
        Self { before: counts(scene), taken: taken(scene), at: Instant::now() }
    }

    fn next(&mut self, scene: &Scene<'_>) -> View {
        let (counts, seconds) = (counts(scene), self.at.elapsed().as_secs_f64());
        // A rank that has come meanwhile has no rate yet.
        let before = self.before.iter().copied().chain(counts.iter().skip(self.before.len()).copied());
        let rates = counts.iter().zip(before).map(|(now, then)| now.rates(&then, seconds)).collect();
        let taken = taken(scene);
        let pairs = pairs(&taken, &self.taken, seconds);
        *self = Self { before: counts.clone(), taken, at: Instant::now() };
        let mut ranks = RankView::all(scene);
        ranks.truncate(counts.len());
        View { ranks, counts, rates, pairs }
    }
}

fn counts(scene: &Scene<'_>) -> Vec<Counts> {
    let of_rank = |rank| {
        let (memory, place) = scene.home(rank).unwrap_or((scene.own, rank));
        Counts::of(memory.telemetry(place))
    };
    (0..scene.own.places_in_use()).map(of_rank).collect()
}

/// Shows the job until it ends or the user has seen enough.
pub fn main(options: &TopOptions) -> ExitCode {
    let shown = attach::job(options.job).and_then(|mut job| {
        job.find_guests();
        let interval = Duration::from_secs_f64(options.interval);
        if options.json || options.once || !io::stdout().is_terminal() {
            print_once(&job, interval, options.json);
            return Ok(());
        }
        if show(&mut job, interval).map_err(|error| format!("the terminal: {error}"))? {
            println!("perusal top: job {} has ended", job.number);
        }
        Ok(())
    });
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            sys::print_error(&format!("perusal top: {text}\n"));
            ExitCode::FAILURE
        }
    }
}

fn print_once(job: &RunningJob, interval: Duration, as_json: bool) {
    let mut looks = Looks::begin(&job.scene());
    sleep(interval);
    let view = looks.next(&job.scene());
    if as_json {
        println!("{:#}", view_json(job, &view));
        return;
    }
    println!("{}", title(job));
    println!("{}", line(&HEADINGS.map(str::to_owned), &TOTALS.map(str::to_owned)));
    (0..view.ranks.len()).for_each(|rank| {
        let counts = &view.counts[rank];
        let totals = [counts.sent_bytes, counts.received_bytes].map(|bytes| scaled(bytes as f64));
        println!("{}", line(&cells(&view, rank), &totals));
    });
    for pair in view.pairs.iter().take(SHOWN) {
        let Pair { from, to, .. } = pair;
        let [records, rate, bytes] =
            [pair.records as f64, pair.records_per_second, pair.bytes as f64].map(scaled);
        println!("rank {from} to rank {to}: {records} records, {rate}/s; {bytes} bytes beside their cells");
    }
    if view.pairs.len() > SHOWN {
        println!("and {} more pairs", view.pairs.len() - SHOWN);
    }
}

fn view_json(job: &RunningJob, view: &View) -> Value {
    let ranks: Vec<Value> = (0..view.ranks.len())
        .map(|at| {
            let (rank, counts, rates) = (&view.ranks[at], &view.counts[at], &view.rates[at]);
            json!({
                "rank": rank.rank,
                "pid": rank.pid,
                "guest": rank.home.map(|(job, rank)| json!({ "job": job, "rank": rank })),
                "doing": rank.doing(),
                "seconds": rank.wait().map(|wait| wait.seconds),
                "posted": rank.queues[0],
                "unexpected": rank.queues[1],
                "sent": counts.sent,
                "received": counts.received,
                "sent_bytes": counts.sent_bytes,
                "received_bytes": counts.received_bytes,
                "sleeps": counts.sleeps,
                "sent_per_second": rates[0],
                "received_per_second": rates[1],
                "sent_bytes_per_second": rates[2],
                "received_bytes_per_second": rates[3],
                "sleeps_per_second": rates[4],
            })
        })
        .collect();
    let pairs: Vec<Value> = view
        .pairs
        .iter()
        .map(|pair| {
            json!({
                "from": pair.from,
                "to": pair.to,
                "records": pair.records,
                "bytes": pair.bytes,
                "records_per_second": pair.records_per_second,
                "bytes_per_second": pair.bytes_per_second,
            })
        })
        .collect();
    json!({
        "job": job.number,
        "seconds": job.seconds,
        "command": job.command,
        "ranks": ranks,
        "pairs": pairs,
    })
}

const HEADINGS: [&str; 9] =
    ["RANK", "POSTED", "UNEXP", "SENT/s", "RECV/s", "OUT/s", "IN/s", "SLEEPS/s", "DOING"];
const WIDTHS: [u16; 8] = [5, 7, 7, 8, 8, 8, 8, 8];

fn title(job: &RunningJob) -> String {
    let ranks = job.memory.places_in_use();
    format!("job {}: {ranks} ranks, {}: {}", job.number, ps::time(job.seconds), job.command)
}

/// Columns of the text alone: bytes so far.
const TOTALS: [&str; 2] = ["OUT", "IN"];

fn line(cells: &[String; 9], totals: &[String; 2]) -> String {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(WIDTHS) {
        line.push_str(&format!("{cell:>0$} ", usize::from(width)));
    }
    for total in totals {
        line.push_str(&format!("{total:>8} "));
    }
    line + &cells[8]
}

fn cells(view: &View, at: usize) -> [String; 9] {
    let (rank, rates) = (&view.ranks[at], &view.rates[at]);
    let since = rank.wait().map_or_else(String::new, |wait| format!(" ({:.1} s)", wait.seconds));
    [
        rank.rank.to_string(),
        scaled(rank.queues[0] as f64),
        scaled(rank.queues[1] as f64),
        scaled(rates[0]),
        scaled(rates[1]),
        scaled(rates[2]),
        scaled(rates[3]),
        scaled(rates[4]),
        format!("{} {}{since}", home(&[rank]), rank.doing()).trim_start().to_owned(),
    ]
}

/// A number in at most six characters: 999, 12.3k, 1.2M.
fn scaled(number: f64) -> String {
    let mut number = number;
    for unit in ["", "k", "M", "G", "T"] {
        if number < 1000.0 {
            return if unit.is_empty() { format!("{number:.0}") } else { format!("{number:.1}{unit}") };
        }
        number /= 1000.0;
    }
    format!("{number:.0}P")
}

/// Shows the job on the terminal. Returns true if it has ended, false if the user has seen enough.
fn show(job: &mut RunningJob, interval: Duration) -> io::Result<bool> {
    let mut terminal = ratatui::try_init()?;
    let result = show_on(job, interval, &mut terminal);
    ratatui::restore();
    result
}

fn show_on(
    job: &mut RunningJob,
    interval: Duration,
    terminal: &mut ratatui::DefaultTerminal,
) -> io::Result<bool> {
    // The first poll makes crossterm hear of new sizes: one that came before it would not be drawn for.
    event::poll(Duration::ZERO)?;
    let (mut looks, start, mut screen) = (Looks::begin(&job.scene()), Instant::now(), Screen::default());
    sleep(interval.min(Duration::from_millis(100)));
    let mut view = looks.next(&job.scene());
    let mut next = Instant::now() + interval;
    while job.runs() {
        let seconds = job.seconds + start.elapsed().as_secs_f64();
        terminal.draw(|frame| draw(frame, job.number, seconds, &job.command, &view, &mut screen))?;
        if event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(false),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(false),
                    KeyCode::Char('p') | KeyCode::Tab => screen.shows_pairs = !screen.shows_pairs,
                    KeyCode::Down => screen.selected().select_next(),
                    KeyCode::Up => screen.selected().select_previous(),
                    _ => {}
                },
                _ => {}
            }
        } else {
            job.find_guests();
            view = looks.next(&job.scene());
            next = Instant::now() + interval;
        }
    }
    Ok(true)
}

/// What the terminal shows, and which row of each table is marked.
#[derive(Default)]
struct Screen {
    shows_pairs: bool,
    rank: TableState,
    pair: TableState,
}

impl Screen {
    fn selected(&mut self) -> &mut TableState {
        if self.shows_pairs { &mut self.pair } else { &mut self.rank }
    }
}

/// Bytes are those beside the cells of the ring.
const PAIR_HEADINGS: [&str; 6] = ["FROM", "TO", "RECORDS", "RECORDS/s", "BYTES", "BYTES/s"];
const PAIR_WIDTHS: [u16; 6] = [6, 6, 9, 10, 9, 9];

fn pair_cells(pair: &Pair) -> [String; 6] {
    let numbers =
        [pair.records as f64, pair.records_per_second, pair.bytes as f64, pair.bytes_per_second].map(scaled);
    let [records, rate, bytes, byte_rate] = numbers;
    [pair.from.to_string(), pair.to.to_string(), records, rate, bytes, byte_rate]
}

/// Columns by number in the order in which a terminal that is too narrow for all goes without them.
const SPARED: [usize; 7] = [7, 6, 5, 1, 2, 4, 3];
const PAIRS_SPARED: [usize; 3] = [5, 4, 3];
/// Characters of what a rank does before a column of numbers goes.
const TEXT: u16 = 24;

/// The columns, by number, that a terminal of `width` characters has room for beside `text` characters.
fn columns(widths: &[u16], spared: &[usize], text: u16, width: u16) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..widths.len()).collect();
    for column in spared {
        let taken: u16 = shown.iter().map(|column| widths[*column] + 1).sum();
        if taken + text <= width {
            break;
        }
        shown.retain(|other| other != column);
    }
    shown
}

/// A row of numbers, of those columns that are shown, and `text` behind them.
fn row<'a>(numbers: &[String], shown: &[usize], text: Option<&str>) -> Row<'a> {
    let numbers = shown.iter().map(|column| Cell::from(Text::from(numbers[*column].clone()).right_aligned()));
    Row::new(numbers.chain(text.map(|text| Cell::from(text.to_owned()))))
}

fn draw(frame: &mut Frame<'_>, job: u32, seconds: f64, command: &str, view: &View, screen: &mut Screen) {
    let bold = Style::default().add_modifier(Modifier::BOLD);
    let (ranks, other) = (view.ranks.len(), if screen.shows_pairs { "ranks" } else { "pairs" });
    let title = format!(" job {job}: {ranks} ranks, {}: {command} ", ps::time(seconds));
    let keys = Line::from(format!(" p: {other}, q ends ")).right_aligned();
    let mut block = ratatui::widgets::Block::bordered().title(title).title_bottom(keys);
    let inside = frame.area().width.saturating_sub(2);
    let (rows, widths, headings): (Vec<Row<'_>>, Vec<Constraint>, Row<'_>) = if screen.shows_pairs {
        if view.pairs.is_empty() {
            block = block.title_bottom(" no rank has sent another a record yet ");
        } else if ranks > PAIRED as usize {
            block = block.title_bottom(format!(" ranks 0 to {} with each other ", PAIRED - 1));
        }
        let shown = columns(&PAIR_WIDTHS, &PAIRS_SPARED, 0, inside);
        let rows = view.pairs.iter().map(|pair| row(&pair_cells(pair), &shown, None)).collect();
        let widths = shown.iter().map(|column| Constraint::Length(PAIR_WIDTHS[*column])).collect();
        (rows, widths, row(&PAIR_HEADINGS.map(str::to_owned), &shown, None))
    } else {
        let shown = columns(&WIDTHS, &SPARED, TEXT, inside);
        let of_rank = |rank| {
            let cells = cells(view, rank);
            row(&cells[..WIDTHS.len()], &shown, Some(&cells[WIDTHS.len()]))
        };
        let widths = shown.iter().map(|column| Constraint::Length(WIDTHS[*column]));
        let headings = row(&HEADINGS.map(str::to_owned), &shown, Some(HEADINGS[WIDTHS.len()]));
        ((0..ranks).map(of_rank).collect(), widths.chain([Constraint::Min(0)]).collect(), headings)
    };
    // A terminal that has grown is filled from the first row on.
    let (visible, state) = (usize::from(frame.area().height.saturating_sub(3)), screen.selected());
    *state.offset_mut() = state.offset().min(rows.len().saturating_sub(visible));
    let table = Table::new(rows, widths)
        .header(headings.style(bold))
        .row_highlight_style(Style::default().add_modifier(Modifier::REVERSED))
        .block(block);
    frame.render_stateful_widget(table, frame.area(), screen.selected());
}

#[cfg(test)]
mod tests {
    use super::*;
    use perusal::internals::shm::Memory;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 999.0, 1000.0, 12_345.0, 1.2e9, 5e18].map(scaled),
            ["0", "999", "1.0k", "12.3k", "1.2G", "5000P"]
        );
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let (then, now) = (
            Counts { sent: 5, ..Counts::default() },
            Counts { sent: 25, sent_bytes: 1000, ..Counts::default() },
        );
        assert_eq!(now.rates(&then, 2.0), [10.0, 0.0, 500.0, 0.0, 0.0]);
    }

    #[test]
    fn pairs_that_talk_most_come_first() {
        let before = Taken::from([((0, 1), (100, 0)), ((1, 0), (5, 0))]);
        let now = Taken::from([((0, 1), (110, 64)), ((1, 0), (105, 0)), ((2, 0), (3, 0))]);
        let pairs = pairs(&now, &before, 2.0);
        let order: Vec<(u32, u32, f64)> =
            pairs.iter().map(|pair| (pair.from, pair.to, pair.records_per_second)).collect();
        assert_eq!(order, [(1, 0, 50.0), (0, 1, 5.0), (2, 0, 1.5)]);
        assert_eq!((pairs[1].records, pairs[1].bytes), (110, 64));
    }

    fn view_of(memory: &Memory) -> View {
        let scene = Scene::new(memory, []);
        Looks::begin(&scene).next(&scene)
    }

    /// The lines of the screen.
    fn drawn(view: &View, screen: &mut Screen) -> Vec<String> {
        drawn_on((110, 6), view, screen)
    }

    fn drawn_on((width, height): (u16, u16), view: &View, screen: &mut Screen) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, 77, 61.0, "mpiexec a.out", view, screen)).unwrap();
        let cells = terminal.backend().buffer().content.chunks(width.into());
        cells.map(|row| row.iter().map(|cell| cell.symbol()).collect()).collect()
    }

    #[test]
    fn the_other_screen_has_a_row_for_each_pair_those_first_that_talk_most() {
        let memory = Memory::create(3, 0).unwrap();
        let mut view = view_of(&memory);
        let mut screen = Screen { shows_pairs: true, ..Screen::default() };
        let text = drawn(&view, &mut screen);
        assert!(text[5].contains("no rank has sent another a record yet"), "{text:#?}");
        let before = Taken::from([((0, 1), (100, 0))]);
        view.pairs = pairs(&Taken::from([((0, 1), (110, 64)), ((2, 0), (4100, 20_000))]), &before, 2.0);
        let text = drawn(&view, &mut screen);
        assert!(text[5].contains("p: ranks, q ends") && text[1].contains("RECORDS/s"), "{text:#?}");
        let words =
            |line: &str| line.trim_matches('│').split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&text[2]), ["2", "0", "4.1k", "2.0k", "20.0k", "10.0k"], "{text:#?}");
        assert_eq!(words(&text[3]), ["0", "1", "110", "5", "64", "32"], "{text:#?}");
        screen.selected().select_next();
        assert!(screen.pair.selected() == Some(0) && screen.rank.selected().is_none());
    }

    #[test]
    fn a_narrow_terminal_goes_without_columns_and_cuts_no_number() {
        let memory = Memory::create(2, 0).unwrap();
        let view = view_of(&memory);
        for (width, wanted) in [
            (110, "RANK POSTED UNEXP SENT/s RECV/s OUT/s IN/s SLEEPS/s DOING"),
            (80, "RANK POSTED UNEXP SENT/s RECV/s OUT/s DOING"),
            (60, "RANK UNEXP SENT/s RECV/s DOING"),
            (30, "RANK DOING"),
        ] {
            let text = drawn_on((width, 6), &view, &mut Screen::default());
            let words: Vec<&str> = text[1].trim_matches('│').split_whitespace().collect();
            assert_eq!(words.join(" "), wanted, "{width}: {text:#?}");
            // Numbers end where their headings end.
            assert!(text[1].starts_with("│ RANK ") && text[2].starts_with("│    0 "), "{text:#?}");
        }
        let pairs = drawn_on((40, 6), &view, &mut Screen { shows_pairs: true, ..Screen::default() });
        assert!(pairs[1].contains("RECORDS ") && !pairs[1].contains("BYTES"), "{pairs:#?}");
    }

    #[test]
    fn a_terminal_that_grows_shows_what_was_above() {
        let memory = Memory::create(5, 0).unwrap();
        let view = view_of(&memory);
        let mut screen = Screen::default();
        screen.selected().select(Some(4));
        assert!(drawn_on((60, 6), &view, &mut screen)[2].starts_with("│    2 "));
        assert!(drawn_on((60, 7), &view, &mut screen)[2].starts_with("│    1 "));
        assert!(drawn_on((60, 20), &view, &mut screen)[2].starts_with("│    0 "));
    }

    #[test]
    fn the_screen_has_a_row_for_each_rank() {
        let memory = Memory::create(2, 0).unwrap();
        memory.telemetry(1).posted.set(3);
        let view = view_of(&memory);
        let text = drawn(&view, &mut Screen::default());
        assert!(text[0].contains("job 77: 2 ranks, 1:01: mpiexec a.out"), "{text:#?}");
        assert!(text[1].contains("RANK") && text[1].contains("DOING"), "{text:#?}");
        let second: Vec<&str> = text[3].trim_start_matches('│').split_whitespace().collect();
        assert_eq!(second[..3], ["1", "3", "0"], "{text:#?}");
        assert!(text[3].contains("has not called MPI_Init"), "{text:#?}");
    }
}
