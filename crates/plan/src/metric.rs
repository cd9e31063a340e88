//! A metric of a command, as it is written on the command line.

use crate::error::PlanError;
use serde_json::{Map, Value};

const EXAMPLE: &str = "--metric 'ops=/ops: (?<v>[\\d.]+)/ higher', 'ops=json:$.ops higher' or \
                       'ops=csv:ops higher'; then a unit, from=FILE, and first, last, min, max, sum, \
                       mean or rate";
const DIRECTIONS: [&str; 2] = ["higher", "lower"];
const PICKS: [&str; 8] = ["only", "first", "last", "min", "max", "sum", "mean", "rate"];

/// The keys of `[[workload.metric]]` that `NAME=/REGEX/ WORDS`, `NAME=json:PATH WORDS` or
/// `NAME=csv:COLUMN WORDS` means. The words are a direction, a choice, `from=FILE` and a unit,
/// in any order. The expression ends at the first slash that a space follows.
pub(crate) fn keys(text: &str) -> Result<Value, PlanError> {
    let wrong = |what: String| PlanError::new(what).with_help(EXAMPLE);
    let (name, rest) = text
        .split_once('=')
        .ok_or_else(|| wrong(format!("`{text}` is no metric")))?;
    let (key, found, words) =
        find(rest).ok_or_else(|| wrong(format!("the metric `{name}` does not say where it is")))?;
    let mut keys = Map::new();
    let mut insert = |key: &str, value: &str| {
        let before = keys.insert(key.to_owned(), value.into());
        match before {
            None => Ok(()),
            Some(_) => Err(wrong(format!("the metric `{name}` has its {key} twice"))),
        }
    };
    insert("name", name)?;
    insert(key, found)?;
    for word in words.split_whitespace() {
        match word.strip_prefix("from=") {
            Some(file) => insert("from", file)?,
            None if DIRECTIONS.contains(&word) => insert("better", word)?,
            None if PICKS.contains(&word) => insert("pick", word)?,
            None => insert("unit", word)?,
        }
    }
    Ok(Value::Object(keys))
}

/// The key, its value, and the words behind it.
fn find(text: &str) -> Option<(&'static str, &str, &str)> {
    if let Some(rest) = text.strip_prefix('/') {
        let (regex, words) = rest
            .split_once("/ ")
            .or_else(|| Some((rest.strip_suffix('/')?, "")))?;
        return Some(("regex", regex, words));
    }
    let (key, rest) = text.split_once(':')?;
    let key = ["json", "csv"].into_iter().find(|known| *known == key)?;
    let (found, words) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((key, found, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_metric_is_an_expression_a_path_or_a_column_with_words_behind_it() {
        for (text, expected) in [
            (
                r"ops=/bogo ops: (?<v>[\d.]+)/ higher",
                json!({"name": "ops", "regex": r"bogo ops: (?<v>[\d.]+)", "better": "higher"}),
            ),
            (
                "rate=/a/b=(?<v>.+) MB/s/ last MB/s higher from=log",
                json!({"name": "rate", "regex": "a/b=(?<v>.+) MB/s", "better": "higher",
                       "unit": "MB/s", "pick": "last", "from": "log"}),
            ),
            (
                "iops=json:$.jobs[*].iops sum higher",
                json!({"name": "iops", "json": "$.jobs[*].iops", "better": "higher", "pick": "sum"}),
            ),
            ("t=csv:took", json!({"name": "t", "csv": "took"})),
            ("t=/x/", json!({"name": "t", "regex": "x"})),
        ] {
            assert_eq!(keys(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_metric_is_refused() {
        for (text, why) in [
            ("ops", "is no metric"),
            ("ops=ops higher", "does not say where"),
            ("ops=/ops higher", "does not say where"),
            ("ops=xml:ops higher", "does not say where"),
            ("ops=csv:ops higher lower", "its better twice"),
            ("ops=csv:ops 1/s MB/s", "its unit twice"),
        ] {
            let error = keys(text).unwrap_err();
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }
}
