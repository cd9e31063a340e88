//! `for-each` in an arm: one arm for each combination of parameters, where a condition
//! (`where`) holds. `{name}` in the arm's texts stands for the parameter's value.

use crate::error::PlanError;
use crate::table::{Value, take};
use crate::units::{parse_duration, parse_percent, parse_rate, parse_size};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use toml::de::DeValue;

const MOST_ARMS: usize = 200;

/// Parameters with their values as written.
pub(crate) type Point = BTreeMap<String, String>;

/// The tables that the table of an arm stands for, each with its place in the grid.
pub(crate) fn expand<'i>(mut arm: Value<'i>) -> Result<Vec<(Point, Value<'i>)>, PlanError> {
    let DeValue::Table(table) = arm.get_mut() else {
        return Ok(vec![(Point::new(), arm)]);
    };
    let condition = take(table, "where");
    let Some(grid) = take(table, "for-each") else {
        return match condition {
            Some(condition) => Err(PlanError::new("`where` without `for-each`")
                .with_help("for-each = { period = [\"40us\", \"50us\"] }")
                .at(condition.span())),
            None => Ok(vec![(Point::new(), arm)]),
        };
    };
    let span = grid.span();
    let mut points = points(grid)?;
    let conditions = conditions(condition, points.first())?;
    points.retain(|point| conditions.iter().all(|c| c.holds(point)));
    if points.is_empty() || points.len() > MOST_ARMS {
        return Err(PlanError::new(format!(
            "this grid makes {} arms; 1 to {MOST_ARMS} can be compared",
            points.len()
        ))
        .at(span));
    }
    let filled = |point: Point| {
        let arm = fill(&arm, &point);
        (point, arm)
    };
    Ok(points.into_iter().map(filled).collect())
}

fn points(grid: Value) -> Result<Vec<Point>, PlanError> {
    let span = grid.span();
    let values: BTreeMap<String, Vec<Written>> = BTreeMap::deserialize(grid.into_deserializer())?;
    let mut points = vec![Point::new()];
    for (name, values) in values {
        if values.is_empty() {
            return Err(PlanError::new(format!("`{name}` has no values")).at(span));
        }
        let with = |point: &Point, value: &Written| {
            let mut point = point.clone();
            point.insert(name.clone(), value.0.clone());
            point
        };
        points = points
            .iter()
            .flat_map(|point| values.iter().map(move |value| (point, value)))
            .map(|(point, value)| with(point, value))
            .collect();
    }
    Ok(points)
}

/// A value of a parameter, as text.
#[derive(Debug, Clone)]
struct Written(String);

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a text or a number")]
        enum Any {
            Text(String),
            Whole(i64),
            Decimal(f64),
        }
        Ok(Written(match Any::deserialize(deserializer)? {
            Any::Text(text) => text,
            Any::Whole(number) => number.to_string(),
            Any::Decimal(number) => number.to_string(),
        }))
    }
}

/// The arm at one point of the grid. A name without a parameter gets all values.
fn fill<'i>(arm: &Value<'i>, point: &Point) -> Value<'i> {
    let mut arm = arm.clone();
    if let DeValue::Table(table) = arm.get_mut()
        && let Some((_, name)) = table.iter_mut().find(|(key, _)| key.get_ref() == "name")
        && let DeValue::String(text) = name.get_mut()
        && !point
            .keys()
            .any(|name| text.contains(&format!("{{{name}}}")))
    {
        let values: Vec<&str> = point.values().map(String::as_str).collect();
        *text = Cow::Owned(format!("{text} {}", values.join("/")));
    }
    replace(&mut arm, point);
    arm
}

fn replace(value: &mut Value, point: &Point) {
    match value.get_mut() {
        DeValue::String(text) => {
            for (name, with) in point {
                let place = format!("{{{name}}}");
                if text.contains(&place) {
                    *text = Cow::Owned(text.replace(&place, with));
                }
            }
        }
        DeValue::Array(values) => values.iter_mut().for_each(|v| replace(v, point)),
        DeValue::Table(table) => table.iter_mut().for_each(|(_, v)| replace(v, point)),
        _ => {}
    }
}

/// `runtime < period`; a side is a parameter or a value.
#[derive(Debug)]
struct Condition {
    left: String,
    operator: &'static str,
    right: String,
}

const OPERATORS: [&str; 6] = ["<=", ">=", "==", "!=", "<", ">"];

/// Several are joined with `and`.
fn conditions(value: Option<Value>, point: Option<&Point>) -> Result<Vec<Condition>, PlanError> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let span = value.span();
    let text = String::deserialize(value.into_deserializer())?;
    text.split(" and ")
        .map(|part| {
            let condition = Condition::parse(part)?;
            condition.names(point)?;
            Ok(condition)
        })
        .collect::<Result<_, PlanError>>()
        .map_err(|e| e.at(span))
}

impl Condition {
    fn parse(text: &str) -> Result<Self, PlanError> {
        let operator = OPERATORS.into_iter().find(|op| text.contains(op));
        let parts = operator.and_then(|op| Some((op, text.split_once(op)?)));
        match parts {
            Some((operator, (left, right))) => Ok(Condition {
                left: left.trim().to_owned(),
                operator,
                right: right.trim().to_owned(),
            }),
            None => Err(PlanError::new(format!("`{text}` is not a condition"))
                .with_help("write \"runtime < period\"; join several with and")),
        }
    }

    /// One side at least must be a parameter: a misspelt one is compared as a text.
    fn names(&self, point: Option<&Point>) -> Result<(), PlanError> {
        let known = |side: &String| point.is_some_and(|p| p.contains_key(side));
        if known(&self.left) || known(&self.right) {
            return Ok(());
        }
        Err(PlanError::new(format!(
            "neither `{}` nor `{}` is a parameter of this grid",
            self.left, self.right
        )))
    }

    fn holds(&self, point: &Point) -> bool {
        let value = |side: &String| point.get(side).unwrap_or(side).clone();
        let ordering = compare(&value(&self.left), &value(&self.right));
        match self.operator {
            "<" => ordering == Ordering::Less,
            ">" => ordering == Ordering::Greater,
            "<=" => ordering != Ordering::Greater,
            ">=" => ordering != Ordering::Less,
            "==" => ordering == Ordering::Equal,
            _ => ordering != Ordering::Equal,
        }
    }
}

/// As quantities when both are of the same kind, otherwise as texts.
fn compare(left: &str, right: &str) -> Ordering {
    let kinds: [fn(&str) -> Option<f64>; 5] = [
        |text| text.parse().ok(),
        |text| parse_duration(text).ok().map(|ns| ns as f64),
        |text| parse_percent(text).ok(),
        |text| parse_rate(text).ok(),
        |text| parse_size(text).ok().map(|bytes| bytes as f64),
    ];
    let numbers = kinds.iter().find_map(|kind| kind(left).zip(kind(right)));
    match numbers {
        Some((left, right)) => left.total_cmp(&right),
        None => left.cmp(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    fn arms(text: &str) -> Result<Vec<(Point, String, Vec<String>)>, PlanError> {
        #[derive(Deserialize)]
        struct Arm {
            name: String,
            args: Vec<String>,
        }
        let table = DeTable::parse(text).unwrap();
        let span = table.span();
        let arm = Value::new(span, DeValue::Table(table.into_inner()));
        let read = |(point, arm): (Point, Value)| {
            let arm = Arm::deserialize(arm.into_deserializer()).unwrap();
            (point, arm.name, arm.args)
        };
        Ok(expand(arm)?.into_iter().map(read).collect())
    }

    const GRID: &str = r#"
        name = "mq"
        args = ["-p", "{period}", "-r", "{runtime}"]
        for-each = { period = ["100us", "50us"], runtime = ["20us", "0.05ms"] }
    "#;

    #[test]
    fn a_grid_makes_an_arm_for_each_combination() {
        let arms = arms(GRID).unwrap();
        let names: Vec<&str> = arms.iter().map(|(_, name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "mq 100us/20us",
                "mq 100us/0.05ms",
                "mq 50us/20us",
                "mq 50us/0.05ms"
            ]
        );
        assert_eq!(arms[2].2, ["-p", "50us", "-r", "20us"]);
        assert_eq!(arms[2].0["period"], "50us");
    }

    #[test]
    fn conditions_compare_quantities() {
        let left = |condition: &str| {
            let arms = arms(&format!("{GRID}\nwhere = \"{condition}\"")).unwrap();
            arms.iter()
                .map(|(_, name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(left("runtime < period").len(), 3, "0.05ms is 50us");
        assert_eq!(
            left("runtime < period and period == 50us"),
            ["mq 50us/20us"]
        );
    }

    #[test]
    fn a_name_may_say_where_the_values_go() {
        let text = GRID.replace("\"mq\"", "\"{runtime} of {period}\"");
        assert_eq!(arms(&text).unwrap()[2].1, "20us of 50us");
    }

    #[test]
    fn grids_that_make_no_arm_are_refused() {
        for (condition, why) in [
            ("period < runtime and runtime < period", "makes 0 arms"),
            ("quota < 5", "neither `quota`"),
            ("period", "not a condition"),
        ] {
            let error = arms(&format!("{GRID}\nwhere = \"{condition}\"")).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
