//! The page: one HTML file with its style, its script and its data, which loads nothing.

use super::types::Report;
use super::words::{count, counted, duration};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// In this order: each uses what stands before it.
const SCRIPTS: [&str; 7] = [
    include_str!("page/base.js"),
    include_str!("page/timeline.js"),
    include_str!("page/bars.js"),
    include_str!("page/matrix.js"),
    include_str!("page/waiting.js"),
    include_str!("page/tables.js"),
    include_str!("page/main.js"),
];

/// Rows and columns of the page's matrix at most; ranks beyond share one.
const MATRIX_ROWS: u32 = 256;
/// Pairs in the page's tables of late ones at most; `--json` has all.
const PAIRS: usize = 1000;

/// The page.
///
/// # Errors
/// Those of serde_json, which this data cannot cause.
pub fn page(report: &Report) -> Result<String, serde_json::Error> {
    let mut shown = report.clone();
    shown.matrix = report.matrix.grouped(report.ranks.len() as u32, MATRIX_ROWS);
    shown.late_senders.truncate(PAIRS);
    // Messages that nobody waited to send are shown by the queues.
    shown.late_receivers.retain(|row| row.waited_ns > 0);
    shown.late_receivers.truncate(PAIRS);
    let data = inert(&serde_json::to_string(&shown)?);
    let cautions: String = report
        .verdict
        .cautions
        .iter()
        .map(|text| {
            format!("<p class=\"caution\" role=\"note\"><strong>Caution.</strong> {}</p>\n", escape(text))
        })
        .collect();
    let name = report.name();
    Ok(filled(&[
        ("title", &format!("{} – perusal report", escape(&name))),
        ("name", &escape(&name)),
        ("facts", &escape(&facts(report))),
        ("verdict", &escape(&report.verdict.paragraph)),
        ("cautions", &cautions),
        ("version", env!("CARGO_PKG_VERSION")),
        ("css", STYLE),
        ("js", &SCRIPTS.concat()),
        ("data", &data),
    ]))
}

/// The template with its `{{places}}` filled, each once; what is filled in is not looked at again.
fn filled(values: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        page += before;
        let Some((place, behind)) = after.split_once("}}") else { break };
        page += values.iter().find(|(name, _)| *name == place).map_or("", |(_, value)| value);
        rest = behind;
    }
    page + rest
}

fn facts(report: &Report) -> String {
    let job = &report.job;
    let mut facts = vec![
        counted(report.ranks.len() as u64, "rank"),
        format!("{} from the first event to the last", duration(job.duration_ns)),
        format!("{} records", count(job.records)),
    ];
    if job.started > 0 {
        facts.push(format!("started {}", date(job.started)));
    }
    if !job.host.is_empty() {
        facts.push(format!("on {}", job.host));
    }
    match job.status {
        Some(0) => {}
        Some(status) => facts.push(format!("exit status {status}")),
        None => facts.push("exit status not known".to_owned()),
    }
    facts.push(format!("trace {}", job.file));
    facts.join(" · ")
}

/// "2026-11-20 06:02:11 UTC" of seconds since 1970.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years (Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

/// Text for an element or an attribute.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c => escaped.push(c),
        }
    }
    escaped
}

/// JSON that no HTML parser takes for anything but text, whatever strings are in it: `</script>`, `<!--`, an entity.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_wrote_is_text_in_elements_attributes_and_data() {
        assert_eq!(escape("<b a=\"x\">'&"), "&lt;b a=&quot;x&quot;&gt;&#39;&amp;");
        let hostile = serde_json::to_string("</script><script>alert(1)</script><!--&lt;").expect("a string");
        let data = inert(&hostile);
        assert!(!data.contains(['<', '>', '&']), "{data}");
        let back: String = serde_json::from_str(&data).expect("still JSON");
        assert_eq!(back, "</script><script>alert(1)</script><!--&lt;");
    }

    #[test]
    fn a_place_in_what_is_filled_in_is_left_alone() {
        let page = filled(&[("name", "{{data}}"), ("data", "secret")]);
        assert!(page.contains("<h1>{{data}}</h1>"));
        assert_eq!(page.matches("secret").count(), 1);
    }

    #[test]
    fn every_place_of_the_template_is_known() {
        let places: Vec<&str> = TEMPLATE
            .split("{{")
            .skip(1)
            .filter_map(|rest| rest.split_once("}}"))
            .map(|(place, _)| place)
            .collect();
        assert_eq!(places, ["title", "css", "name", "facts", "verdict", "cautions", "version", "data", "js"]);
        assert!(!SCRIPTS.concat().contains("</script"), "the script would end there");
        assert!(!STYLE.contains("</style"), "the style would end there");
    }

    #[test]
    fn the_page_names_no_place_elsewhere() {
        let whole = format!("{TEMPLATE}{STYLE}{}", SCRIPTS.concat());
        let elsewhere = whole.replace("http://www.w3.org/2000/svg", "");
        for word in
            ["http:", "https:", "//cdn", "@import", "url(http", "fetch(", "XMLHttpRequest", "innerHTML"]
        {
            assert!(!elsewhere.contains(word), "{word}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let dates = [0, 951_782_400, 1_795_154_531, 4_107_542_399].map(date);
        assert_eq!(
            dates,
            [
                "1970-01-01 00:00:00 UTC",
                "2000-02-29 00:00:00 UTC",
                "2026-11-20 06:02:11 UTC",
                "2100-02-28 23:59:59 UTC"
            ]
        );
    }
}
