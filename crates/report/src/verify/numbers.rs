//! The numbers of a stored report against those that its results give now.

use super::{Difference, Verification, is_near};
use crate::certificate::Certificate;
use crate::{ReportError, Table, json};
use results::ResultSet;
use serde_json::{Map, Value};

/// Another machine's logarithm may differ in the last digit, its report must not.
const SAME_NUMBER: f64 = 1e-9;
/// Differences of one report beyond these say nothing new.
const MOST_DIFFERENCES: usize = 200;

/// The JSON report `said` against the one that `results` give now. What only the
/// newer of the two formats has is not compared.
pub fn report(results: &ResultSet, said: &str) -> Result<Verification, ReportError> {
    let found = json(&Table::from_results(results))?;
    let mut said = serde_json::from_str(said)?;
    let mut found = serde_json::from_str(&found)?;
    leave_out_old_statements(&mut said);
    leave_out_old_intervals(&mut said, &mut found);
    leave_out_coins(&mut said, &mut found);
    leave_out_medians(&mut said, &mut found);
    leave_out_nothing_at_all(&mut said, &mut found);
    leave_out_differences(&mut said, &mut found);
    leave_out_withdrawn(&mut said, &mut found);
    compared("report", said, found)
}

/// Before format 1.5 the levels of scans and searches had an interval from two blocks on.
fn leave_out_old_intervals(said: &mut Value, found: &mut Value) {
    if minor(said).is_none_or(|minor| minor >= 5) {
        return;
    }
    for report in [said, found] {
        let points = ["scans", "searches"].iter();
        points.for_each(|of| report.get_mut(of).into_iter().for_each(without_ends));
    }
}

/// Before format 1.9 blocks of which some are far from the others were judged by a t-test, too, and
/// the notes on turns had no price of a change.
fn leave_out_coins(said: &mut Value, found: &mut Value) {
    if minor(said).is_none_or(|minor| minor >= 9) {
        return;
    }
    for (said, found) in pairs_of_comparisons(said, found) {
        let by_coins = found.get("test").and_then(Value::as_str) == Some("coins");
        match found.get("in_turns").is_some() {
            true => [said, found].into_iter().for_each(without_notes),
            false if by_coins => (*said, *found) = (Value::Null, Value::Null),
            false => {}
        }
    }
}

/// Before format 1.10 the change by coins was that of the median, from which the search for its interval
/// began, and each half of the windows had its median.
fn leave_out_medians(said: &mut Value, found: &mut Value) {
    if minor(said).is_none_or(|minor| minor >= 10) {
        return;
    }
    for (said, found) in pairs_of_comparisons(said, found) {
        if found.get("test").and_then(Value::as_str) != Some("coins") {
            continue;
        }
        for comparison in [said, found] {
            without_notes(comparison);
            if let Some(fields) = comparison.as_object_mut() {
                fields.retain(|key, _| !BY_CENTRE.contains(&key.as_str()));
            }
        }
    }
}

/// Before format 1.14 a block in which a percentage was 0 had no ratio, and which calls hold together
/// depended on fewer comparisons.
fn leave_out_nothing_at_all(said: &mut Value, found: &mut Value) {
    if minor(said).is_none_or(|minor| minor >= 14) {
        return;
    }
    leave_out(said, found, |said, found| {
        found.get("unit").and_then(Value::as_str) == Some("%")
            && said.get("blocks") != found.get("blocks")
    });
}

/// Before format 1.15 a block in which a figure was 0 or below it had no ratio and was left out; now all blocks
/// of such a metric are compared by differences.
fn leave_out_differences(said: &mut Value, found: &mut Value) {
    if minor(said).is_none_or(|minor| minor >= 15) {
        return;
    }
    leave_out(said, found, |_, found| found.get("difference").is_some());
}

/// Before format 1.16 a verdict stayed where later blocks no longer supported it.
fn leave_out_withdrawn(said: &mut Value, found: &mut Value) {
    if minor(said).is_none_or(|minor| minor >= 16) {
        return;
    }
    let is_withdrawn = |found: &Value| found.get("withdrawn").is_some();
    if pairs_of_comparisons(said, found).any(|(_, found)| is_withdrawn(found)) {
        leave_out(said, found, |_, found| is_withdrawn(found));
        for report in [said, found] {
            FOLLOWING_VERDICTS
                .iter()
                .for_each(|key| without(report, key));
        }
    }
}

/// Parts of a report in which verdicts of comparisons stand again.
const FOLLOWING_VERDICTS: [&str; 3] = ["grids", "why", "machines"];

/// Leaves out the comparisons that an older format judged otherwise, and what follows from all of them.
fn leave_out(said: &mut Value, found: &mut Value, is_other: impl Fn(&Value, &Value) -> bool) {
    let (mut any, mut any_deciding) = (false, false);
    for (said, found) in pairs_of_comparisons(said, found) {
        if is_other(said, found) {
            any = true;
            any_deciding |= found.get("deciding") == Some(&Value::Bool(true));
            (*said, *found) = (Value::Null, Value::Null);
        }
    }
    if any {
        for comparison in pairs_of_comparisons(said, found).flat_map(|(said, found)| [said, found])
        {
            without(comparison, "survives_ebh");
        }
    }
    if any_deciding {
        for report in [said, found] {
            without(report, "summary");
        }
    }
}

/// Fields of a comparison that follow from the centre of its pairs.
const BY_CENTRE: [&str; 5] = ["ratio", "low", "high", "arm_level", "in_turns"];

/// The comparisons of two reports, side by side.
fn pairs_of_comparisons<'a>(
    said: &'a mut Value,
    found: &'a mut Value,
) -> impl Iterator<Item = (&'a mut Value, &'a mut Value)> {
    let [said, found] = [said, found].map(|report| {
        let comparisons = report.get_mut("comparisons");
        comparisons
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
    });
    said.zip(found)
}

fn without_notes(comparison: &mut Value) {
    without(comparison, "notes");
}

fn without(value: &mut Value, key: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(key);
    }
}

/// Removes `low` and `high`, however deep they are.
fn without_ends(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(without_ends),
        Value::Object(fields) => {
            fields.remove("low");
            fields.remove("high");
            fields.values_mut().for_each(without_ends);
        }
        _ => {}
    }
}

fn minor(report: &Value) -> Option<i64> {
    report.pointer("/format/minor").and_then(Value::as_i64)
}

/// Before format 1.4 a report told the evidence in other statements, several facts in one.
fn leave_out_old_statements(said: &mut Value) {
    if minor(said).is_none_or(|minor| minor >= 4) {
        return;
    }
    let arms = said.get_mut("arms").and_then(Value::as_array_mut);
    for arm in arms.into_iter().flatten().filter_map(Value::as_object_mut) {
        arm.remove("evidence");
    }
}

/// The certificate `said` against the one that `results` give now.
pub fn certificate(results: &ResultSet, said: &str) -> Result<Verification, ReportError> {
    let found = serde_json::to_value(Certificate::of(results))?;
    compared("certificate", serde_json::from_str(said)?, found)
}

fn compared(place: &str, mut said: Value, found: Value) -> Result<Verification, ReportError> {
    let mut walk = Walk {
        same_format: said.get("format") == found.get("format"),
        verification: Verification::default(),
    };
    if let (false, Some(fields)) = (walk.same_format, said.as_object_mut()) {
        fields.remove("format");
    }
    walk.compare(place, &said, &found);
    Ok(walk.verification)
}

struct Walk {
    same_format: bool,
    verification: Verification,
}

impl Walk {
    fn compare(&mut self, place: &str, said: &Value, found: &Value) {
        match (said, found) {
            (Value::Object(said), Value::Object(found)) => self.fields(place, said, found),
            (Value::Array(said), Value::Array(found)) if said.len() == found.len() => {
                for (index, (said, found)) in said.iter().zip(found).enumerate() {
                    let name = found.get("name").or_else(|| found.get("metric"));
                    let name = name.and_then(Value::as_str).unwrap_or_default();
                    self.compare(&format!("{place}[{index}{}]", spaced(name)), said, found);
                }
            }
            (Value::Number(a), Value::Number(b)) => {
                self.verification.numbers += 1;
                let (a, b) = (
                    a.as_f64().unwrap_or(f64::NAN),
                    b.as_f64().unwrap_or(f64::NAN),
                );
                if !is_near(a, b, SAME_NUMBER) {
                    self.differs(place, said, found);
                }
            }
            _ if said == found => {}
            _ => self.differs(place, said, found),
        }
    }

    fn fields(&mut self, place: &str, said: &Map<String, Value>, found: &Map<String, Value>) {
        for (key, value) in said {
            let place = format!("{place}.{key}");
            self.compare(&place, value, found.get(key).unwrap_or(&Value::Null));
        }
        if self.same_format {
            for (key, value) in found.iter().filter(|(key, _)| !said.contains_key(*key)) {
                self.differs(&format!("{place}.{key}"), &Value::Null, value);
            }
        }
    }

    fn differs(&mut self, place: &str, said: &Value, found: &Value) {
        let differences = &mut self.verification.differences;
        if differences.len() < MOST_DIFFERENCES {
            differences.push(Difference {
                place: place.to_owned(),
                said: short(said),
                found: short(found),
            });
        }
    }
}

fn spaced(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!(" {name}"),
    }
}

fn short(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Array(list) => format!("a list of {}", list.len()),
        value => value.to_string().chars().take(120).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn stored() -> (TempDir, ResultSet) {
        let dir = tempfile::tempdir().unwrap();
        synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
        let results = ResultSet::read(dir.path()).unwrap();
        (dir, results)
    }

    fn json(results: &ResultSet) -> String {
        super::json(&Table::from_results(results)).unwrap()
    }

    #[test]
    fn a_report_agrees_with_the_results_that_it_was_made_from() {
        let (_dir, results) = stored();
        let verification = report(&results, &json(&results)).unwrap();
        assert_eq!(verification.differences, []);
        assert!(verification.numbers > 100);
    }

    #[test]
    fn a_changed_ratio_is_named() {
        let (_dir, results) = stored();
        let mut said: Value = serde_json::from_str(&json(&results)).unwrap();
        said["comparisons"][2]["ratio"] = Value::from(2.5);
        let differences = report(&results, &said.to_string()).unwrap().differences;
        assert_eq!(differences.len(), 1);
        assert!(
            differences[0].place.contains("comparisons[2"),
            "{differences:?}"
        );
        assert_eq!(differences[0].said, "2.5");
    }

    #[test]
    fn what_a_report_leaves_out_is_named() {
        let (_dir, results) = stored();
        let mut said: Value = serde_json::from_str(&json(&results)).unwrap();
        said.as_object_mut().unwrap().remove("warnings");
        let differences = report(&results, &said.to_string()).unwrap().differences;
        assert_eq!(differences[0].place, "report.warnings");
    }

    #[test]
    fn what_an_older_format_could_not_say_is_no_difference() {
        let (_dir, results) = stored();
        let mut said: Value = serde_json::from_str(&json(&results)).unwrap();
        said.as_object_mut().unwrap().remove("warnings");
        said["format"]["minor"] = Value::from(-1);
        said["arms"][0]["evidence"] = Value::Array(Vec::new());
        let differences = report(&results, &said.to_string()).unwrap().differences;
        assert_eq!(differences, []);
    }

    #[test]
    fn an_interval_of_few_blocks_is_no_difference_in_an_old_report_only() {
        let point = |low: Value| serde_json::json!([{ "arms": [{ "points": [{ "low": low }] }] }]);
        let of = |minor: i64| {
            let format = serde_json::json!({ "major": 1, "minor": minor });
            let report = |low| serde_json::json!({ "format": format, "scans": point(low) });
            (report(Value::from(2.5)), report(Value::Null))
        };
        let (mut said, mut found) = of(4);
        leave_out_old_intervals(&mut said, &mut found);
        assert_eq!(said, found);
        let (mut said, mut found) = of(5);
        leave_out_old_intervals(&mut said, &mut found);
        assert_ne!(said, found);
    }

    #[test]
    fn blocks_without_any_percent_are_no_difference_in_an_old_report_only() {
        let report = |minor: u64, blocks: u64, unit: &str| {
            serde_json::json!({
                "format": { "major": 1, "minor": minor },
                "summary": blocks,
                "comparisons": [
                    { "unit": unit, "blocks": blocks, "deciding": true },
                    { "unit": "ns", "blocks": 5, "survives_ebh": blocks == 2 },
                ],
            })
        };
        for (minor, unit, differs) in [(13, "%", false), (14, "%", true), (13, "ns", true)] {
            let mut said = report(minor, 0, unit);
            let mut found = report(minor, 2, unit);
            leave_out_nothing_at_all(&mut said, &mut found);
            assert_eq!(said != found, differs, "{minor} {unit}");
        }
    }

    #[test]
    fn what_coins_say_is_no_difference_in_an_old_report_only() {
        let report = |minor: u64, test: &str, verdict: &str| {
            serde_json::json!({
                "format": { "major": 1, "minor": minor },
                "comparisons": [
                    { "verdict": verdict, "test": test },
                    { "verdict": "same", "test": "coins", "in_turns": {}, "notes": [test] },
                ],
            })
        };
        for (minor, differs) in [(8, false), (9, true)] {
            let mut said = report(minor, "safe-t", "unknown");
            let mut found = report(9, "coins", "better");
            leave_out_coins(&mut said, &mut found);
            assert_eq!(said["comparisons"][0] != found["comparisons"][0], differs);
            let notes = |report: &Value| report["comparisons"][1]["notes"].clone();
            assert_eq!(notes(&said) != notes(&found), differs);
        }
    }
}
