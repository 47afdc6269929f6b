//! What was measured, as a table for people and as JSON.

use std::fmt::Write;

/// One figure: a median over chunks of work, and how far they spread.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Group and case: "latency", "8 bytes".
    pub what: &'static str,
    pub case: String,
    pub unit: &'static str,
    pub median: f64,
    /// Tenth and ninetieth of a hundred.
    pub low: f64,
    pub high: f64,
    /// What the machine can do at best, and by what that is known.
    pub limit: Option<(f64, &'static str)>,
}

/// The machine, for the first line.
#[derive(Debug, Clone)]
pub struct MachineInfo {
    pub ranks: usize,
    pub usable: usize,
    pub processor: String,
}

/// A table.
pub fn table(machine: &MachineInfo, figures: &[Figure]) -> String {
    let mut text = format!(
        "perusal {}, {} ranks, {} usable CPUs ({})\n",
        env!("CARGO_PKG_VERSION"),
        machine.ranks,
        machine.usable,
        machine.processor
    );
    let mut last = "";
    for figure in figures {
        if figure.what != last {
            _ = writeln!(
                text,
                "\n{:<34}{:>10}  {:<18} {:<5} times the limit",
                figure.what, "median", "10th to 90th", ""
            );
            last = figure.what;
        }
        let spread = format!("{} to {}", short(figure.low), short(figure.high));
        _ = write!(
            text,
            "  {:<32}{:>10}  {spread:<18} {:<5}",
            figure.case,
            short(figure.median),
            figure.unit
        );
        if let Some((limit, name)) = figure.limit {
            _ = write!(text, " {:>5.2}  {name}, {} {}", figure.median / limit, short(limit), figure.unit);
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Three digits that count.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// The same as JSON: an object with the machine, and the figures as a list.
pub fn json(machine: &MachineInfo, figures: &[Figure]) -> String {
    let rows = figures.iter().map(|figure| {
        serde_json::json!({
            "what": figure.what, "case": figure.case, "unit": figure.unit,
            "median": figure.median, "low": figure.low, "high": figure.high,
            "limit": figure.limit.map(|(value, what)| serde_json::json!({"value": value, "what": what})),
        })
    });
    let all = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"), "ranks": machine.ranks, "usable_cpus": machine.usable,
        "processor": machine.processor, "figures": rows.collect::<Vec<_>>(),
    });
    format!("{all:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (MachineInfo, Vec<Figure>) {
        let figure = |what, case: &str, limit| Figure {
            what,
            case: case.into(),
            unit: "ns",
            median: 54.25,
            low: 53.0,
            high: 1234.0,
            limit,
        };
        let machine = MachineInfo { ranks: 2, usable: 4, processor: "A \"fast\" one".into() };
        (
            machine,
            vec![
                figure("latency", "8 bytes", Some((50.0, "a bare line"))),
                figure("barrier", "2 ranks", None),
            ],
        )
    }

    #[test]
    fn the_table_has_each_figure_and_its_ratio_to_the_limit() {
        let (machine, figures) = example();
        let table = table(&machine, &figures);
        assert!(table.contains("  8 bytes                               54.2  53.0 to 1234       ns     1.08  a bare line, 50.0 ns\n"), "{table}");
        assert!(
            table.contains("  2 ranks                               54.2  53.0 to 1234       ns\n"),
            "{table}"
        );
    }

    #[test]
    fn json_has_the_same_and_null_where_there_is_no_limit() {
        let (machine, figures) = example();
        let json: serde_json::Value = serde_json::from_str(&json(&machine, &figures)).expect("it is JSON");
        assert_eq!(json["processor"], "A \"fast\" one");
        assert_eq!(json["figures"][0]["limit"]["value"], 50.0);
        assert_eq!(
            (&json["figures"][1]["limit"], &json["figures"][1]["median"]),
            (&serde_json::Value::Null, &54.25.into())
        );
    }
}
