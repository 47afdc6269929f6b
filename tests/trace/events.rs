//! A strict reader of Chrome's Trace Event Format: phases, fields, pairs, order.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What a document says.
#[derive(Debug, Default)]
pub struct Summary {
    /// Flows, each with both ends.
    pub flows: usize,
    /// Flows by process of begin and end.
    pub matrix: BTreeMap<(u32, u32), u64>,
    /// The most of each counter, by process and name.
    pub counters: BTreeMap<(u32, String), u64>,
    /// Categories of slices.
    pub slices: BTreeSet<String>,
}

type Wrong = String;

/// One event's fields that all phases have.
struct Head<'a> {
    phase: &'a str,
    name: &'a str,
    category: &'a str,
    process: u32,
    thread: u32,
    /// Nanoseconds.
    when: u64,
    fields: &'a Map<String, Value>,
}

#[derive(Default)]
struct Checker {
    summary: Summary,
    /// Slices that are open, by process and thread.
    open: BTreeMap<(u32, u32), Vec<String>>,
    /// The last time on each thread's slices.
    last: BTreeMap<(u32, u32), u64>,
    asynchronous: BTreeMap<(String, String), (String, u64)>,
    begun: BTreeMap<String, (u32, u64)>,
    ended: BTreeMap<String, (u32, u64)>,
    named: BTreeSet<u32>,
    seen: BTreeSet<u32>,
}

/// Checks a document.
///
/// # Errors
/// What is wrong with it, and where.
pub fn check(document: &str) -> Result<Summary, Wrong> {
    let document: Value = serde_json::from_str(document).map_err(|error| error.to_string())?;
    let top = document.as_object().ok_or("the document is no object")?;
    for key in top.keys() {
        if !["traceEvents", "displayTimeUnit", "otherData"].contains(&key.as_str()) {
            return Err(format!("unknown member {key}"));
        }
    }
    if !matches!(top.get("displayTimeUnit").and_then(Value::as_str), Some("ns" | "ms")) {
        return Err("displayTimeUnit must be ns or ms".into());
    }
    let events = top.get("traceEvents").and_then(Value::as_array).ok_or("no array traceEvents")?;
    let mut checker = Checker::default();
    for (index, event) in events.iter().enumerate() {
        checker.take(event).map_err(|wrong| format!("event {index}: {wrong}: {event}"))?;
    }
    checker.finish()
}

fn head(event: &Value) -> Result<Head<'_>, Wrong> {
    let fields = event.as_object().ok_or("no object")?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).ok_or(format!("no text {name}"));
    let number = |name: &str| {
        let number = fields.get(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
        number.ok_or(format!("no number {name}"))
    };
    let when = fields.get("ts").and_then(Value::as_f64).filter(|when| when.is_finite() && *when >= 0.0);
    Ok(Head {
        phase: text("ph")?,
        name: text("name")?,
        category: text("cat")?,
        process: number("pid")?,
        thread: number("tid")?,
        when: (when.ok_or("no time")? * 1000.0).round() as u64,
        fields,
    })
}

impl Head<'_> {
    fn id(&self) -> Result<String, Wrong> {
        Ok(self.fields.get("id").and_then(Value::as_str).ok_or("no id")?.to_owned())
    }

    fn allow(&self, more: &[&str]) -> Result<(), Wrong> {
        let common = ["ph", "name", "cat", "pid", "tid", "ts", "args"];
        match self.fields.keys().find(|key| !common.contains(&key.as_str()) && !more.contains(&key.as_str()))
        {
            Some(key) => Err(format!("field {key} has no meaning in phase {}", self.phase)),
            None => Ok(()),
        }
    }
}

impl Checker {
    fn take(&mut self, event: &Value) -> Result<(), Wrong> {
        let head = head(event)?;
        self.seen.insert(head.process);
        if let Some(args) = head.fields.get("args")
            && !args.is_object()
        {
            return Err("args is no object".into());
        }
        match head.phase {
            "M" => self.metadata(&head),
            "B" | "E" => self.slice(&head),
            "b" | "e" => self.apart(&head),
            "C" => self.counter(&head),
            "s" | "f" => self.flow(&head),
            "i" => {
                head.allow(&["s"])?;
                let scope = head.fields.get("s").and_then(Value::as_str);
                scope.filter(|scope| ["g", "p", "t"].contains(scope)).map(drop).ok_or("no scope".into())
            }
            phase => Err(format!("unknown phase {phase}")),
        }
    }

    fn metadata(&mut self, head: &Head<'_>) -> Result<(), Wrong> {
        head.allow(&[])?;
        let member = match head.name {
            "process_name" | "thread_name" => "name",
            "process_sort_index" | "thread_sort_index" => "sort_index",
            other => return Err(format!("unknown metadata {other}")),
        };
        let value = head.fields.get("args").and_then(|args| args.get(member)).ok_or("no value")?;
        if head.name == "process_name" && !self.named.insert(head.process) {
            return Err("the process has a name".into());
        }
        if value.is_string() == (member == "name") { Ok(()) } else { Err("a value of another type".into()) }
    }

    fn slice(&mut self, head: &Head<'_>) -> Result<(), Wrong> {
        head.allow(&[])?;
        let thread = (head.process, head.thread);
        let last = self.last.entry(thread).or_default();
        if head.when < *last {
            return Err(format!("time goes back on its thread, from {last} ns"));
        }
        *last = head.when;
        let open = self.open.entry(thread).or_default();
        if head.phase == "B" {
            open.push(head.category.to_owned());
            self.summary.slices.insert(head.category.to_owned());
            return Ok(());
        }
        let begun = open.pop().ok_or("ends what has not begun")?;
        if begun == head.category { Ok(()) } else { Err(format!("ends a slice of {begun}")) }
    }

    fn apart(&mut self, head: &Head<'_>) -> Result<(), Wrong> {
        head.allow(&["id"])?;
        let key = (head.category.to_owned(), head.id()?);
        if head.phase == "b" {
            self.summary.slices.insert(head.category.to_owned());
            let before = self.asynchronous.insert(key, (head.name.to_owned(), head.when));
            return if before.is_none() { Ok(()) } else { Err("the id is in use".into()) };
        }
        let (name, begun) = self.asynchronous.remove(&key).ok_or("ends what has not begun")?;
        if name == head.name && begun <= head.when { Ok(()) } else { Err(format!("does not end {name}")) }
    }

    fn counter(&mut self, head: &Head<'_>) -> Result<(), Wrong> {
        head.allow(&[])?;
        let args = head.fields.get("args").and_then(Value::as_object).ok_or("no args")?;
        let values: Option<Vec<u64>> = args.values().map(Value::as_u64).collect();
        let most = values.and_then(|values| values.into_iter().max()).ok_or("a value is no number")?;
        let known = self.summary.counters.entry((head.process, head.name.to_owned())).or_default();
        *known = most.max(*known);
        Ok(())
    }

    fn flow(&mut self, head: &Head<'_>) -> Result<(), Wrong> {
        head.allow(&["id", "bp"])?;
        let binding = head.fields.get("bp").and_then(Value::as_str);
        // Each end binds to the slice around it; without one a viewer draws no arrow.
        let around = if head.name == "lock" { "synchronization" } else { "message" };
        if self.open.get(&(head.process, head.thread)).is_none_or(|open| !open.contains(&around.to_owned())) {
            return Err(format!("no slice of a {around} is around it"));
        }
        let begins = head.phase == "s";
        if binding.is_some() == begins {
            return Err("bp belongs to the end".into());
        }
        let ends = if begins { &mut self.begun } else { &mut self.ended };
        match ends.insert(head.id()?, (head.process, head.when)) {
            None => Ok(()),
            Some(_) => Err("the flow's id is in use".into()),
        }
    }

    fn finish(mut self) -> Result<Summary, Wrong> {
        if let Some((thread, open)) = self.open.iter().find(|(_, open)| !open.is_empty()) {
            return Err(format!("on thread {thread:?} {open:?} do not end"));
        }
        if let Some((key, _)) = self.asynchronous.first_key_value() {
            return Err(format!("{key:?} does not end"));
        }
        if self.named != self.seen {
            return Err("a process has no name".into());
        }
        if self.begun.keys().ne(self.ended.keys()) {
            return Err("a flow has one end".into());
        }
        for ((from, begun), (to, ended)) in self.begun.values().zip(self.ended.values()) {
            if begun > ended {
                return Err(format!("a flow goes back in time, from {begun} to {ended} ns"));
            }
            *self.summary.matrix.entry((*from, *to)).or_default() += 1;
        }
        self.summary.flows = self.begun.len();
        Ok(self.summary)
    }
}
