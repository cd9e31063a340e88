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
pub fn verify_report(results: &ResultSet, said: &str) -> Result<Verification, ReportError> {
    let found = json(&Table::from_results(results))?;
    let said = serde_json::from_str(said)?;
    let found = serde_json::from_str(&found)?;
    compared("report", said, found)
}

/// The certificate `said` against the one that `results` give now.
pub fn verify_certificate(results: &ResultSet, said: &str) -> Result<Verification, ReportError> {
    let found = serde_json::to_value(Certificate::from_results(results))?;
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
        let verification = verify_report(&results, &json(&results)).unwrap();
        assert_eq!(verification.differences, []);
        assert!(verification.numbers > 100);
    }

    #[test]
    fn a_changed_ratio_is_named() {
        let (_dir, results) = stored();
        let mut said: Value = serde_json::from_str(&json(&results)).unwrap();
        said["comparisons"][2]["ratio"] = Value::from(2.5);
        let differences = verify_report(&results, &said.to_string())
            .unwrap()
            .differences;
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
        let differences = verify_report(&results, &said.to_string())
            .unwrap()
            .differences;
        assert_eq!(differences[0].place, "report.warnings");
    }

    #[test]
    fn what_an_older_format_could_not_say_is_no_difference() {
        let (_dir, results) = stored();
        let mut said: Value = serde_json::from_str(&json(&results)).unwrap();
        said.as_object_mut().unwrap().remove("warnings");
        said["format"]["minor"] = Value::from(-1);
        let differences = verify_report(&results, &said.to_string())
            .unwrap()
            .differences;
        assert_eq!(differences, []);
    }
}
