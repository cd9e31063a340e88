//! `for-each` in an arm: one arm for each combination of parameters, where a condition
//! (`where`) holds. `{name}` in the arm's texts stands for the parameter's value.

use crate::condition::{self, Condition, Parameters, Point};
use crate::error::PlanError;
use crate::table::{Value, take_key};
use agent::arm::table::INGREDIENTS;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use std::borrow::Cow;
use std::collections::BTreeMap;
use toml::de::{DeArray, DeValue};

const MOST_ARMS: usize = 200;
/// Combinations that a condition may be asked about.
const MOST_POINTS: usize = 20_000;

/// The keys of an arm that make it a grid.
pub(crate) const KEYS: [&str; 2] = ["for-each", "where"];

/// A value of a parameter, as text and with the type that it was given.
#[derive(Debug, Clone)]
struct Written<'i> {
    text: String,
    value: DeValue<'i>,
}

type Values<'i> = BTreeMap<String, Written<'i>>;

/// The tables that the table of an arm stands for, each with its place in the grid.
pub(crate) fn expand<'i>(mut arm: Value<'i>) -> Result<Vec<(Point, Value<'i>)>, PlanError> {
    let DeValue::Table(table) = arm.get_mut() else {
        return Ok(vec![(Point::new(), arm)]);
    };
    let condition = take_key(table, "where");
    let Some(grid) = take_key(table, "for-each") else {
        return match condition {
            Some(condition) => Err(PlanError::new("`where` without `for-each`")
                .with_help("for-each = { period = [\"40us\", \"50us\"] }")
                .with_span(condition.span())),
            None => Ok(vec![(Point::new(), arm)]),
        };
    };
    let span = grid.span();
    let mut points = points(grid)?;
    if let Some(condition) = condition {
        points = where_it_holds(condition, points)?;
    }
    if points.is_empty() || points.len() > MOST_ARMS {
        return Err(PlanError::new(format!(
            "this grid makes {} arms; 1 to {MOST_ARMS} can be compared",
            points.len()
        ))
        .with_span(span));
    }
    let filled = |values: Values<'i>| (texts(&values), fill(&arm, &values));
    Ok(points.into_iter().map(filled).collect())
}

fn texts(values: &Values) -> Point {
    let text = |(name, written): (&String, &Written)| (name.clone(), written.text.clone());
    values.iter().map(text).collect()
}

/// The points at which all conditions hold.
fn where_it_holds<'i>(
    condition: Value,
    points: Vec<Values<'i>>,
) -> Result<Vec<Values<'i>>, PlanError> {
    let span = condition.span();
    let text = String::deserialize(condition.into_deserializer())?;
    let all: Vec<Point> = points.iter().map(texts).collect();
    let conditions = condition::parse(&text, &Parameters::from_points(&all))
        .map_err(|e| e.with_span(span.clone()))?;
    let mut left = Vec::new();
    for (values, point) in points.into_iter().zip(&all) {
        if all_hold(&conditions, point).map_err(|e| e.with_span(span.clone()))? {
            left.push(values);
        }
    }
    Ok(left)
}

/// All are looked at, so that none that cannot be compared hides behind another.
fn all_hold(conditions: &[Condition], point: &Point) -> Result<bool, PlanError> {
    let mut hold = true;
    for condition in conditions {
        hold &= condition.is_met(point)?;
    }
    Ok(hold)
}

fn points<'i>(grid: Value<'i>) -> Result<Vec<Values<'i>>, PlanError> {
    let span = grid.span();
    let DeValue::Table(table) = grid.into_inner() else {
        return Err(PlanError::new("`for-each` is a table")
            .with_help("for-each = { period = [\"40us\", \"50us\"] }")
            .with_span(span));
    };
    let mut parameters = BTreeMap::new();
    for (name, list) in table {
        let name = name.into_inner().into_owned();
        let values = written(&name, list)?;
        parameters.insert(name, values);
    }
    check_product(&parameters).map_err(|e| e.with_span(span))?;
    let mut points = vec![Values::new()];
    for (name, values) in parameters {
        let with = |(point, value): (&Values<'i>, &Written<'i>)| {
            let mut point = point.clone();
            point.insert(name.clone(), value.clone());
            point
        };
        points = points
            .iter()
            .flat_map(|point| values.iter().map(move |value| (point, value)))
            .map(with)
            .collect();
    }
    Ok(points)
}

/// Check of the number of combinations, before any is made.
fn check_product(parameters: &BTreeMap<String, Vec<Written>>) -> Result<(), PlanError> {
    let mut lengths = parameters.values().map(Vec::len);
    let product = lengths.try_fold(1, usize::checked_mul);
    if product.is_some_and(|points| points <= MOST_POINTS) {
        return Ok(());
    }
    let points = product.map_or("too many to count".to_owned(), |points| points.to_string());
    Err(PlanError::new(format!(
        "the combinations of this grid are {points}; at most {MOST_POINTS} are looked at, and \
         {MOST_ARMS} compared"
    ))
    .with_help("fewer parameters, or fewer values of each"))
}

/// The values of one parameter.
fn written<'i>(name: &str, list: Value<'i>) -> Result<Vec<Written<'i>>, PlanError> {
    let span = list.span();
    match list.into_inner() {
        DeValue::Array(values) if !values.is_empty() => read_values(values),
        DeValue::Array(_) => Err(PlanError::new(format!("`{name}` has no values")).with_span(span)),
        _ => Err(PlanError::new(format!("`{name}` needs a list of values"))
            .with_help(format!("{name} = [1, 2]"))
            .with_span(span)),
    }
}

fn read_values<'i>(values: DeArray<'i>) -> Result<Vec<Written<'i>>, PlanError> {
    let read = |value: Value<'i>| {
        let (span, value) = (value.span(), value.into_inner());
        let text = match &value {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            _ => return Err(PlanError::new("a value is a text or a number").with_span(span)),
        };
        Ok(Written { text, value })
    };
    values.into_iter().map(read).collect()
}

/// The arm at one point of the grid. A name without a parameter gets all values.
fn fill<'i>(arm: &Value<'i>, values: &Values<'i>) -> Value<'i> {
    let mut arm = arm.clone();
    let DeValue::Table(table) = arm.get_mut() else {
        return arm;
    };
    if let Some((_, name)) = table.iter_mut().find(|(key, _)| key.get_ref() == "name")
        && let DeValue::String(text) = name.get_mut()
        && !values
            .keys()
            .any(|name| text.contains(&format!("{{{name}}}")))
    {
        let texts: Vec<&str> = values.values().map(|v| v.text.as_str()).collect();
        *text = Cow::Owned(format!("{text} {}", texts.join("/")));
    }
    let texts = texts_of_arms();
    for (key, value) in table.iter_mut() {
        replace(value, values, texts.contains(&key.get_ref().as_ref()));
    }
    arm
}

/// Keys of an arm whose values are texts, also where they look like numbers.
fn texts_of_arms() -> Vec<&'static str> {
    let ingredients = INGREDIENTS.iter();
    let texts = ingredients.flat_map(|ingredient| ingredient.texts());
    texts.copied().chain(["name"]).collect()
}

/// A text that is one placeholder and nothing else becomes the value itself, a number
/// where it is one, unless all that it can be is text.
fn replace<'i>(value: &mut Value<'i>, with: &Values<'i>, only_text: bool) {
    if let DeValue::String(text) = value.get_mut() {
        let whole = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
        match whole.and_then(|name| with.get(name)) {
            Some(written) if !only_text => *value.get_mut() = written.value.clone(),
            _ => replace_in_text(text, with),
        }
        return;
    }
    match value.get_mut() {
        DeValue::Array(values) => values.iter_mut().for_each(|v| replace(v, with, only_text)),
        DeValue::Table(table) => table
            .iter_mut()
            .for_each(|(_, v)| replace(v, with, only_text)),
        _ => {}
    }
}

fn replace_in_text(text: &mut Cow<str>, with: &Values) {
    for (name, written) in with {
        let place = format!("{{{name}}}");
        if text.contains(&place) {
            *text = Cow::Owned(text.replace(&place, &written.text));
        }
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
    fn a_number_stays_a_number_where_it_stands_alone() {
        #[derive(Deserialize)]
        struct Arm {
            name: String,
            args: Vec<String>,
            nice: i32,
            text: String,
        }
        let text = "name = \"{nice}\"\nargs = [\"{nice}\"]\nnice = \"{nice}\"\n\
                    text = \"is {nice}\"\nfor-each = { nice = [0, -10] }";
        let table = DeTable::parse(text).unwrap();
        let arm = Value::new(table.span(), DeValue::Table(table.into_inner()));
        let arms: Vec<Arm> = expand(arm)
            .unwrap()
            .into_iter()
            .map(|(_, arm)| Arm::deserialize(arm.into_deserializer()).unwrap())
            .collect();
        let nice: Vec<i32> = arms.iter().map(|arm| arm.nice).collect();
        assert_eq!(nice, [0, -10]);
        assert_eq!(arms[1].text, "is -10");
        assert_eq!(
            (arms[1].name.as_str(), arms[1].args[0].as_str()),
            ("-10", "-10")
        );
    }

    #[test]
    fn parameters_are_lists_of_texts_and_numbers() {
        for (grid, why) in [
            ("5", "`for-each` is a table"),
            ("{ a = 5 }", "`a` needs a list"),
            ("{ a = [] }", "`a` has no values"),
            ("{ a = [[1]] }", "a text or a number"),
        ] {
            let text = format!("name = \"x\"\nargs = []\nfor-each = {grid}");
            let error = arms(&text).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn a_grid_beyond_all_measure_is_refused_before_it_is_made() {
        let values: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        let values = values.join(", ");
        let parameters: Vec<String> = (0..8).map(|n| format!("p{n} = [{values}]")).collect();
        let text = format!(
            "name = \"x\"\nargs = []\nfor-each = {{ {} }}",
            parameters.join(", ")
        );
        let error = arms(&text).unwrap_err().to_string();
        assert!(error.contains("are 429981696; at most 20000"), "{error}");
    }

    #[test]
    fn grids_that_make_no_arm_are_refused() {
        for (condition, why) in [
            ("period < runtime and runtime < period", "makes 0 arms"),
            ("runtime < perod", "`perod` is not a parameter"),
            ("period < 5", "`period` is a time, `5` has no unit"),
            ("period", "cannot read `period`"),
        ] {
            let error = arms(&format!("{GRID}\nwhere = \"{condition}\"")).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
