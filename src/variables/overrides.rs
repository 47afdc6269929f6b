//! Overrides of control variables: what tune file, environment or tools ask for before there is an engine.

use super::job_shape::JobShape;
use super::table::{COUNT, VARIABLES, VariableId};
use super::variable::{Domain, Variable};
use crate::error::{Error, Result};
use crate::limits::{MAX_BULK, MAX_CELLS, MIN_BULK, MIN_CELLS, VARIABLE_TEXT};

/// Environment variable in which the launcher hands the values of a tune file to the ranks:
/// `name=value`, separated by commas.
pub const TUNED: &str = "PERUSAL_TUNED";

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, num_enum::FromPrimitive)]
#[repr(u8)]
pub enum ValueSource {
    /// Nobody asked for anything.
    #[num_enum(default)]
    Default = 0,
    /// A file that `perusal tune` wrote.
    TuneFile = 1,
    /// The environment.
    Environment = 2,
    /// A tool, through MPI_T.
    Tool = 3,
}

impl ValueSource {
    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::TuneFile => "tune file",
            Self::Environment => "environment",
            Self::Tool => "tool",
        }
    }
}

/// A value that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverrideValue {
    /// Of a variable of every domain but text.
    Number(u64),
    /// Of a text variable.
    Text(String),
}

/// The values that were asked for. The values of all other variables follow from the job.
#[derive(Debug, Clone)]
pub struct Overrides {
    values: [Option<(OverrideValue, ValueSource)>; COUNT],
}

impl Default for Overrides {
    fn default() -> Self {
        Self { values: [const { None }; COUNT] }
    }
}

impl Overrides {
    /// Reads what tune file and environment ask for; the environment wins.
    ///
    /// # Errors
    /// [`Error::Other`] that names the variable, its value and what it may be.
    pub fn from_environment() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned()))
    }

    fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut overrides = Self::default();
        overrides.tune(&get(TUNED).unwrap_or_default());
        for variable in &VARIABLES {
            if let Some(text) = get(variable.environment) {
                let value = parse(variable, variable.environment, text.trim())?;
                overrides.values[variable.id as usize] = Some((value, ValueSource::Environment));
            }
        }
        Ok(overrides)
    }

    /// Takes the values of a tune file, `name=value` separated by commas. Leaves out what this version does not know or
    /// allow: the file may be from another version.
    pub fn tune(&mut self, pairs: &str) {
        let pairs = pairs.split(',').filter_map(|pair| pair.split_once('='));
        for (name, text) in pairs {
            let variable = Variable::named(name.trim());
            let value =
                variable.and_then(|variable| Some((variable, parse(variable, name, text.trim()).ok()?)));
            if let Some((variable, value)) = value {
                self.values[variable.id as usize] = Some((value, ValueSource::TuneFile));
            }
        }
    }

    /// Asks for a value, in place of what was asked for before.
    pub fn set(&mut self, id: VariableId, value: OverrideValue, source: ValueSource) {
        self.values[id as usize] = Some((value, source));
    }

    /// Returns where the value of a variable comes from.
    #[must_use]
    pub fn source(&self, id: VariableId) -> ValueSource {
        self.values[id as usize].as_ref().map_or(ValueSource::Default, |(_, source)| *source)
    }

    /// Returns the number that was asked for.
    #[must_use]
    pub fn number(&self, id: VariableId) -> Option<u64> {
        match self.values[id as usize] {
            Some((OverrideValue::Number(number), _)) => Some(number),
            _ => None,
        }
    }

    /// Returns the text that was asked for; empty if none was.
    #[must_use]
    pub fn text(&self, id: VariableId) -> &str {
        match &self.values[id as usize] {
            Some((OverrideValue::Text(text), _)) => text,
            _ => "",
        }
    }

    /// Returns the number in force in a job.
    ///
    /// # Errors
    /// [`Error::Other`] that names the variable, its value and what it may be there.
    pub fn resolve(&self, id: VariableId, shape: &JobShape) -> Result<u64> {
        let variable = id.variable();
        match &self.values[id as usize] {
            // A tune file does not know this job's rings: a value that does not fit them is left out.
            Some((OverrideValue::Number(number), ValueSource::TuneFile))
                if !variable.allows(*number, shape) =>
            {
                Ok((variable.default)(shape))
            }
            Some((OverrideValue::Number(number), source)) if !variable.allows(*number, shape) => {
                let name = if *source == ValueSource::Tool { variable.name } else { variable.environment };
                Err(wrong(name, &variable.show(*number), &variable.range(shape)))
            }
            Some((OverrideValue::Number(number), _)) => Ok(*number),
            _ => Ok((variable.default)(shape)),
        }
    }
}

/// A job with the widest ranges.
const WIDEST: JobShape = JobShape {
    ranks: 1,
    usable_cpus: 1,
    ring_cells: MAX_CELLS,
    ring_bulk: MAX_BULK,
    sender_fences: false,
    heap: 0,
    streams: false,
};

/// One with the narrowest.
const NARROWEST: JobShape = JobShape { ring_cells: MIN_CELLS, ring_bulk: MIN_BULK, ..WIDEST };

/// Reads a value as a user writes it. [`Overrides::resolve`] checks what depends on the job.
fn parse(variable: &Variable, name: &str, text: &str) -> Result<OverrideValue> {
    let number = match variable.domain {
        Domain::Text if text.len() < VARIABLE_TEXT => return Ok(OverrideValue::Text(text.to_owned())),
        Domain::Text => None,
        Domain::Choice(of) => of.find(text).map(|item| u64::from(item.value.unsigned_abs())),
        Domain::Number(_) | Domain::PowerOfTwo(..) => text.parse().ok(),
    };
    let number = number.filter(|number| variable.allows(*number, &WIDEST));
    number.map(OverrideValue::Number).ok_or_else(|| {
        let by_rings = variable.range(&WIDEST) != variable.range(&NARROWEST);
        let range =
            variable.range(&WIDEST) + if by_rings { ", as far as PERUSAL_RING_BULK allows" } else { "" };
        wrong(name, text, &range)
    })
}

fn wrong(name: &str, text: &str, range: &str) -> Error {
    Error::Other(format!("{name} is {text:?}; it must be {range}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Overrides> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name);
        Overrides::from_variables(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_environment_wins_over_the_tune_file() {
        let overrides =
            of(&[(TUNED, "yields=7,spin_us=11,later=3"), ("PERUSAL_YIELDS", " 5 ")]).expect("good values");
        assert_eq!(overrides.number(VariableId::Yields), Some(5));
        assert_eq!(overrides.source(VariableId::Yields), ValueSource::Environment);
        assert_eq!(overrides.number(VariableId::SpinUs), Some(11));
        assert_eq!(overrides.source(VariableId::SpinUs), ValueSource::TuneFile);
        assert_eq!(overrides.source(VariableId::RingBulk), ValueSource::Default);
    }

    #[test]
    fn a_wrong_value_is_named_with_what_it_may_be() {
        for (name, value, text) in [
            (
                "PERUSAL_RING_CELLS",
                "100",
                "PERUSAL_RING_CELLS is \"100\"; it must be a power of two in 8..=1048576",
            ),
            ("PERUSAL_YIELDS", "many", "PERUSAL_YIELDS is \"many\"; it must be a number in 0..=1000"),
            (
                "PERUSAL_EAGER_LIMIT",
                "lots",
                "PERUSAL_EAGER_LIMIT is \"lots\"; it must be a number in 0..=4194304, as far as PERUSAL_RING_BULK allows",
            ),
            ("PERUSAL_COPY_ENGINE", "fast", "it must be auto, chunks, read, halves or direct"),
            ("PERUSAL_SENDER_FENCES", "2", "it must be off or on"),
        ] {
            let error = of(&[(name, value)]).expect_err(value).to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn what_a_tune_file_says_wrongly_is_left_out() {
        let overrides =
            of(&[(TUNED, "yields=lots,spin_us,eager_limit=4294967296,=,nap_ms=50")]).expect("no error");
        assert_eq!(overrides.number(VariableId::Yields), None);
        assert_eq!(overrides.number(VariableId::EagerLimit), None);
        assert_eq!(overrides.number(VariableId::NapMs), Some(50));
    }

    #[test]
    fn a_limit_that_the_rings_set_is_an_error_from_a_user_and_ignored_from_a_tune_file() {
        let shape = JobShape { ring_bulk: 4096, ..WIDEST };
        let tuned = of(&[(TUNED, "eager_limit=16384")]).expect("good");
        assert_eq!(tuned.resolve(VariableId::EagerLimit, &shape).expect("left out"), 1024);
        let asked = of(&[("PERUSAL_EAGER_LIMIT", "16384")]).expect("good somewhere");
        let error = asked.resolve(VariableId::EagerLimit, &shape).expect_err("too much here").to_string();
        assert!(error.contains("0..=1024"), "{error}");
    }

    #[test]
    fn text_is_kept_as_it_is_unless_it_is_too_long() {
        assert_eq!(of(&[("PERUSAL_BIND_TO", "core:2")]).expect("text").text(VariableId::BindTo), "core:2");
        assert!(of(&[("PERUSAL_BIND_TO", &"x".repeat(VARIABLE_TEXT))]).is_err());
    }
}
