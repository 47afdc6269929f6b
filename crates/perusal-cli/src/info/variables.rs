//! `perusal info --cvars`, `--pvars`, `--events`, `--categories`: the variables and event types that MPI_T shows,
//! for people and as JSON.

use perusal::events::Binding;
use perusal::internals::shm;
use perusal::internals::tool::event::types::{TYPES, ToolEventType};
use perusal::internals::tool::pvar::{PVARS, Pvar};
use perusal::internals::variables::Category;
use perusal::internals::variables::category::CATEGORIES;
use perusal::internals::variables::overrides::Overrides;
use perusal::internals::variables::{Config, JobShape, VARIABLES, Variable};
use perusal::internals::variables::{Domain, Settable, VariableScope};
use serde_json::{Value, json};

/// What tune file and environment give a job of as many ranks as there are usable CPUs.
pub struct InForce {
    config: Config,
    place: JobShape,
}

impl InForce {
    /// Reads both.
    pub fn find() -> perusal::Result<Self> {
        let settings = Overrides::from_environment()?;
        let place = shm::usual_shape(&settings);
        Ok(Self { config: Config::new(&settings, place)?, place })
    }

    fn value(&self, variable: &Variable) -> String {
        self.config.show(variable.id)
    }
}

fn scope(variable: &Variable) -> &'static str {
    match variable.scope {
        VariableScope::Constant => "constant",
        VariableScope::Readonly => "read-only",
        VariableScope::Local => "local",
        VariableScope::AllEqual => "all equal",
    }
}

fn when(variable: &Variable) -> &'static str {
    match variable.settable {
        Settable::Never => "never",
        Settable::BeforeJob => "before the job",
        Settable::BeforeInit => "before MPI_Init",
        Settable::Always => "always",
        Settable::BetweenCollectives => "between collectives",
    }
}

fn kind(variable: &Variable) -> &'static str {
    match variable.domain {
        Domain::Number(_) | Domain::PowerOfTwo(..) => "number",
        Domain::Choice(_) => "choice",
        Domain::Text => "text",
    }
}

/// The control variables as a table.
pub fn cvars(in_force: &InForce) -> String {
    let mut text = format!(
        "Control variables: value in force, where it comes from, when it can be changed, by whom, and what it can be, in a job of {} ranks.\n",
        in_force.place.ranks
    );
    for variable in &VARIABLES {
        let value = in_force.value(variable);
        text += &format!(
            "\n{:20} = {:12} ({}; {}; {}; {})\n    {}\n    {}\n",
            variable.name,
            if value.is_empty() { "\"\"" } else { &value },
            in_force.config.source(variable.id).word(),
            when(variable),
            scope(variable),
            variable.range(&in_force.place),
            variable.what,
            variable.environment,
        );
    }
    text
}

/// The control variables for programs.
pub fn cvars_json(in_force: &InForce) -> Value {
    let one = |variable: &Variable| {
        let value = in_force.value(variable);
        let value = match variable.domain {
            Domain::Number(_) | Domain::PowerOfTwo(..) => {
                value.parse::<u64>().map_or(Value::Null, Value::from)
            }
            _ => Value::from(value),
        };
        json!({
            "name": variable.name,
            "environment": variable.environment,
            "type": kind(variable),
            "value": value,
            "origin": in_force.config.source(variable.id).word(),
            "range": variable.range(&in_force.place),
            "scope": scope(variable),
            "when": when(variable),
            "category": variable.category.row().name,
            "description": variable.what,
        })
    };
    VARIABLES.iter().map(one).collect()
}

fn class(pvar: &Pvar) -> String {
    format!("{:?}", pvar.class).to_lowercase()
}

/// How a performance variable may be used.
fn uses(pvar: &Pvar) -> &'static str {
    match (pvar.is_continuous(), pvar.is_readonly()) {
        (true, _) => "read",
        (false, true) => "start, stop, read",
        (false, false) => "start, stop, read, write, reset",
    }
}

/// The performance variables as a table.
pub fn pvars() -> String {
    let mut text =
        String::from("Performance variables: class, what may be done with a handle, what it is bound to.\n");
    for pvar in PVARS {
        let bound = match pvar.binding() {
            Binding::Nothing => String::new(),
            binding => format!("; bound to a {}", name_of(binding)),
        };
        text +=
            &format!("\n{:32} {:14} ({}{bound})\n    {}\n", pvar.name, class(pvar), uses(pvar), pvar.what);
    }
    text
}

/// The performance variables for programs.
pub fn pvars_json() -> Value {
    let one = |pvar: &Pvar| {
        json!({
            "name": pvar.name,
            "class": class(pvar),
            "bound": name_of(pvar.binding()),
            "readonly": pvar.is_readonly(),
            "continuous": pvar.is_continuous(),
            "atomic": pvar.is_atomic(),
            "category": pvar.category.row().name,
            "description": pvar.what,
        })
    };
    PVARS.iter().map(one).collect()
}

fn bound(kind: &ToolEventType) -> &'static str {
    name_of(kind.binding())
}

fn name_of(binding: Binding) -> &'static str {
    match binding {
        Binding::Communicator => "communicator",
        Binding::Window => "window",
        Binding::File => "file",
        Binding::Nothing => "nothing",
    }
}

/// The event types as a table.
pub fn events() -> String {
    let mut text = String::from("Event types: index, what a handle is bound to, the event, what it tells.\n");
    for (index, kind) in TYPES.iter().enumerate() {
        let elements: Vec<&str> = kind.elements.iter().map(|element| element.name).collect();
        let elements = if elements.is_empty() { "nothing".into() } else { elements.join(", ") };
        let what = kind.event.info().description;
        text += &format!("\n{:44} ({index}; {})\n    {what}\n    {elements}\n", kind.name, bound(kind));
    }
    text
}

/// The event types for programs.
pub fn events_json() -> Value {
    let one = |kind: &ToolEventType| {
        json!({
            "name": kind.name,
            "bound": bound(kind),
            "elements": kind.elements.iter().map(|element| element.name).collect::<Vec<_>>(),
            "category": kind.category().row().name,
            "description": kind.description,
            "explanations": kind.elements.iter().map(|element| element.explanation()).collect::<Vec<_>>(),
        })
    };
    TYPES.iter().map(one).collect()
}

/// What hangs in a branch: control variables, performance variables, event types.
fn leaves(of: Category) -> [Vec<String>; 3] {
    let cvars = VARIABLES.iter().filter(|variable| variable.category == of);
    let pvars = PVARS.iter().filter(|pvar| pvar.category == of);
    let events = TYPES.iter().filter(|kind| kind.category() == of);
    [
        cvars.map(|variable| variable.name.to_owned()).collect(),
        pvars.map(|pvar| format!("{} ({})", pvar.name, class(pvar))).collect(),
        events.map(|kind| kind.name.clone()).collect(),
    ]
}

const LEAVES: [&str; 3] = ["control", "performance", "events"];

/// The tree with what hangs in it.
pub fn categories() -> String {
    let mut text = String::new();
    branch(&mut text, Category::Perusal, 0);
    text
}

fn branch(text: &mut String, of: Category, depth: usize) {
    let pad = "  ".repeat(depth);
    let row = of.row();
    *text += &format!("{pad}{}: {}\n", row.name, row.what);
    for (kind, names) in LEAVES.iter().zip(leaves(of)) {
        for name in names {
            *text += &format!("{pad}    {kind:12} {name}\n");
        }
    }
    for child in of.children() {
        branch(text, child, depth + 1);
    }
}

/// The tree for programs.
pub fn categories_json() -> Value {
    let one = |row: &perusal::internals::variables::category::CategoryRow| {
        let [cvars, pvars, events] = leaves(row.id);
        json!({
            "name": row.name,
            "parent": row.parent.map(|parent| parent.row().name),
            "description": row.what,
            "cvars": cvars,
            "pvars": pvars,
            "events": events,
        })
    };
    CATEGORIES.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_and_event_hangs_in_the_tree_once() {
        let tree = categories();
        let count = |kind: &str| tree.lines().filter(|line| line.trim_start().starts_with(kind)).count();
        assert_eq!(count("control      "), VARIABLES.len());
        assert_eq!(count("performance  "), PVARS.len());
        assert_eq!(count("events       "), TYPES.len());
    }

    #[test]
    fn lists_for_people_and_for_programs_name_the_same() {
        let in_force = InForce::find().expect("a sane environment");
        let (people, programs) = (cvars(&in_force), cvars_json(&in_force));
        for (variable, row) in VARIABLES.iter().zip(programs.as_array().expect("a list")) {
            assert_eq!(row["name"], variable.name);
            assert!(people.contains(&format!("\n{:20} = ", variable.name)));
        }
        assert_eq!(pvars_json().as_array().map(Vec::len), Some(PVARS.len()));
        assert_eq!(events_json().as_array().map(Vec::len), Some(TYPES.len()));
        let people = events();
        assert!(TYPES.iter().all(|kind| people.contains(&format!("\n{:44} (", kind.name))));
        assert_eq!(categories_json()[0]["parent"], Value::Null);
    }
}
