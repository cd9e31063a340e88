//! `where` of a grid: `runtime < period`, several joined with `and`. A side is a
//! parameter or a value.

use crate::error::PlanError;
use load::units::{parse_duration, parse_percent, parse_rate, parse_size};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Parameters with their values as written.
pub(crate) type Point = BTreeMap<String, String>;

const OPERATORS: [&str; 6] = ["<=", ">=", "==", "!=", "<", ">"];

/// A kind of quantity: how its texts are called, and the number of a text of it.
struct Kind {
    called: &'static str,
    number: fn(&str) -> Option<f64>,
}

/// The first that fits names a text; two are compared by the first that fits both.
const KINDS: [Kind; 5] = [
    Kind {
        called: "has no unit",
        number: |text| text.parse().ok(),
    },
    Kind {
        called: "is a time",
        number: |text| parse_duration(text).ok().map(|ns| ns as f64),
    },
    Kind {
        called: "is a percentage",
        number: |text| parse_percent(text).ok(),
    },
    Kind {
        called: "is a rate",
        number: |text| parse_rate(text).ok(),
    },
    Kind {
        called: "is a size",
        number: |text| parse_size(text).ok().map(|bytes| bytes as f64),
    },
];

/// The parameters of a grid, each with all its values as written.
#[derive(Debug, Default)]
pub(crate) struct Parameters(BTreeMap<String, BTreeSet<String>>);

impl Parameters {
    pub fn from_points(points: &[Point]) -> Self {
        let mut all = Parameters::default();
        for (name, value) in points.iter().flatten() {
            let values = all.0.entry(name.clone()).or_default();
            values.insert(value.clone());
        }
        all
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn unknown(&self, name: &str) -> PlanError {
        let help = match model::find_nearest(name, self.names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "its parameters are {}",
                self.names().collect::<Vec<_>>().join(", ")
            ),
        };
        PlanError::new(format!("`{name}` is not a parameter of this grid")).with_help(help)
    }
}

/// `runtime < period`.
#[derive(Debug)]
pub(crate) struct Condition {
    left: String,
    operator: &'static str,
    right: String,
}

/// The conditions of a text, all of which are to hold.
pub(crate) fn parse(text: &str, parameters: &Parameters) -> Result<Vec<Condition>, PlanError> {
    text.split(" and ")
        .map(|part| Condition::parse(part.trim(), parameters))
        .collect()
}

impl Condition {
    fn parse(text: &str, parameters: &Parameters) -> Result<Self, PlanError> {
        let operator = OPERATORS.into_iter().find(|op| text.contains(op));
        let sides = operator.and_then(|op| Some((op, text.split_once(op)?)));
        let (operator, (left, right)) = sides.ok_or_else(|| unreadable(text))?;
        let condition = Condition {
            left: left.trim().to_owned(),
            operator,
            right: right.trim().to_owned(),
        };
        condition.check(text, parameters)?;
        Ok(condition)
    }

    /// Each side must be a parameter, a quantity, or a value of the other side.
    fn check(&self, text: &str, parameters: &Parameters) -> Result<(), PlanError> {
        let known = |side: &str| parameters.0.contains_key(side);
        for (side, other) in [(&self.left, &self.right), (&self.right, &self.left)] {
            let of_other = parameters.0.get(other);
            let is_value = called(side).is_some() || of_other.is_some_and(|v| v.contains(side));
            if known(side) || is_value {
                continue;
            }
            return Err(match is_word(side) {
                true => parameters.unknown(side),
                false => unreadable(text),
            });
        }
        if known(&self.left) || known(&self.right) {
            return Ok(());
        }
        Err(
            PlanError::new(format!("`{text}` names no parameter of this grid"))
                .with_help("leave it out, or compare a parameter with it"),
        )
    }

    /// An error where the values at this point cannot be compared.
    pub fn is_met(&self, point: &Point) -> Result<bool, PlanError> {
        let value = |side: &String| point.get(side).unwrap_or(side).clone();
        let (left, right) = (value(&self.left), value(&self.right));
        let ordering = self.compare(&left, &right)?;
        Ok(match self.operator {
            "<" => ordering == Ordering::Less,
            ">" => ordering == Ordering::Greater,
            "<=" => ordering != Ordering::Greater,
            ">=" => ordering != Ordering::Less,
            "==" => ordering == Ordering::Equal,
            _ => ordering != Ordering::Equal,
        })
    }

    /// Order of two quantities of one kind. Texts that are no quantities are the same or
    /// differ, but have no order.
    fn compare(&self, left: &str, right: &str) -> Result<Ordering, PlanError> {
        let mut kinds = KINDS.iter().map(|kind| kind.number);
        if let Some((left, right)) = kinds.find_map(|number| number(left).zip(number(right))) {
            return Ok(left.total_cmp(&right));
        }
        let (left_called, right_called) = (called(left), called(right));
        let texts = left_called.is_none() || right_called.is_none();
        if texts && ["==", "!="].contains(&self.operator) {
            return Ok(left.cmp(right));
        }
        let is = |called: Option<&'static str>| called.unwrap_or("is a text");
        let help = match texts {
            true => "texts have no order; compare them with == or !=",
            false => "write both with units of one kind",
        };
        Err(PlanError::new(format!(
            "`{}` {}, `{}` {}",
            self.left,
            is(left_called),
            self.right,
            is(right_called)
        ))
        .with_help(help))
    }
}

fn called(text: &str) -> Option<&'static str> {
    let kind = KINDS.iter().find(|kind| (kind.number)(text).is_some())?;
    Some(kind.called)
}

/// Can it be meant as a name?
fn is_word(side: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || "_-./%".contains(c);
    !side.is_empty() && side.chars().all(part)
}

fn unreadable(text: &str) -> PlanError {
    PlanError::new(format!(
        "cannot read `{text}`: write PARAMETER <|<=|>|>=|==|!= PARAMETER or value"
    ))
    .with_help("where = \"runtime < period\"; join several with `and`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use miette::Diagnostic;

    fn points() -> Vec<Point> {
        let point = |runtime: &str, prio: &str, mode: &str| {
            [("runtime", runtime), ("prio", prio), ("mode", mode)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into_iter()
                .collect()
        };
        vec![point("20us", "1", "on"), point("0.05ms", "50", "off")]
    }

    fn left(text: &str) -> Result<usize, PlanError> {
        let points = points();
        let conditions = parse(text, &Parameters::from_points(&points))?;
        let mut left = 0;
        for point in &points {
            let mut all = true;
            for condition in &conditions {
                all &= condition.is_met(point)?;
            }
            left += usize::from(all);
        }
        Ok(left)
    }

    #[test]
    fn quantities_are_compared_by_what_they_are_worth() {
        for (text, expected) in [
            ("runtime < 50us", 1),
            ("runtime <= 50us", 2),
            ("50us == runtime", 1),
            ("prio >= 50", 1),
            ("prio != 1 and runtime > 1m", 0),
            ("runtime < 1m 30s", 2),
        ] {
            assert_eq!(left(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn texts_are_the_same_or_differ() {
        assert_eq!(left("mode == on").unwrap(), 1);
        assert_eq!(left("mode != on").unwrap(), 1);
        let error = left("mode < on").unwrap_err();
        assert_eq!(error.to_string(), "`mode` is a text, `on` is a text");
        assert!(error.help().unwrap().to_string().contains("no order"));
    }

    #[test]
    fn what_cannot_be_compared_is_refused_with_what_each_side_is() {
        for (text, why) in [
            ("prio < 100us", "`prio` has no unit, `100us` is a time"),
            ("runtime == 5%", "`runtime` is a time, `5%` is a percentage"),
        ] {
            assert_eq!(left(text).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn a_misspelt_parameter_is_answered_with_the_nearest() {
        for text in ["runtmie < 50us", "20us <= runtmie", "prio < runtmie"] {
            let error = left(text).unwrap_err();
            let why = "`runtmie` is not a parameter of this grid";
            assert_eq!(error.to_string(), why);
            assert_eq!(error.help().unwrap().to_string(), "did you mean `runtime`?");
        }
        let error = left("zz == 5").unwrap_err();
        assert_eq!(
            error.help().unwrap().to_string(),
            "its parameters are mode, prio, runtime"
        );
    }

    #[test]
    fn what_is_no_comparison_cannot_be_read() {
        for text in [
            "runtime + 1 < 50us",
            "runtime*2 < 50us",
            "runtime",
            "runtime = 5us",
            "runtime <",
            "runtime < prio < 5",
            "",
        ] {
            let error = left(text).unwrap_err();
            let why = format!("cannot read `{text}`: write PARAMETER");
            assert!(error.to_string().starts_with(&why), "{error}");
        }
        let error = left("5 < 6").unwrap_err();
        assert!(error.to_string().contains("names no parameter"), "{error}");
    }
}
