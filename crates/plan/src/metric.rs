//! A metric of a command, as it is written on the command line.

use crate::error::PlanError;
use serde_json::{Map, Value};

const EXAMPLE: &str = "--metric 'ops=/ops: (?<v>[\\d.]+)/ higher', 'ops=json:$.ops higher', \
                       'ops=yaml:$.ops higher' or 'ops=csv:ops higher'; then a unit, from=FILE, \
                       after=REGEX, until=REGEX, where=KEY:VALUE, thousands=SIGN, and first, last, min, \
                       max, sum, mean, rate or a percentile such as p99";
const DIRECTIONS: [&str; 2] = ["higher", "lower"];
const PICKS: [&str; 8] = ["only", "first", "last", "min", "max", "sum", "mean", "rate"];

/// Keys whose values are written behind their names.
const NAMED: [&str; 4] = ["from", "after", "until", "thousands"];

/// The keys of `[[workload.metric]]` that `NAME=/REGEX/ WORDS`, `NAME=json:PATH WORDS`,
/// `NAME=yaml:PATH WORDS` or `NAME=csv:COLUMN WORDS` means. The words are a direction, a choice,
/// `from=FILE` and the like, and a unit, in any order. The expression ends at the first slash that a space follows.
pub(crate) fn keys(text: &str) -> Result<Map<String, Value>, PlanError> {
    let wrong = |what: String| PlanError::new(what).with_help(EXAMPLE);
    let (name, rest) = text
        .split_once('=')
        .ok_or_else(|| wrong(format!("`{text}` is no metric")))?;
    let (key, found, words) =
        find(rest).ok_or_else(|| wrong(format!("the metric `{name}` does not say where it is")))?;
    let mut keys = Map::new();
    let mut rows = Map::new();
    let mut insert = |key: &str, value: &str| {
        let before = match key {
            "where" => {
                let (key, value) = value.split_once(':').unwrap_or((value, ""));
                rows.insert(key.to_owned(), value.into())
            }
            _ => keys.insert(key.to_owned(), value.into()),
        };
        match before {
            None => Ok(()),
            Some(_) => Err(wrong(format!("the metric `{name}` has its {key} twice"))),
        }
    };
    insert("name", name)?;
    insert(key, found)?;
    for word in words.split_whitespace() {
        let named = word.split_once('=');
        match named.filter(|(key, _)| NAMED.contains(key) || *key == "where") {
            Some((key, value)) => insert(key, value)?,
            None if DIRECTIONS.contains(&word) => insert("better", word)?,
            None if PICKS.contains(&word) || is_percentile(word) => insert("pick", word)?,
            None => insert("unit", word)?,
        }
    }
    if !rows.is_empty() {
        keys.insert("where".to_owned(), rows.into());
    }
    Ok(keys)
}

fn is_percentile(word: &str) -> bool {
    let percent = word.strip_prefix('p');
    percent.is_some_and(|percent| percent.parse::<f64>().is_ok())
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
    let key = ["json", "csv", "yaml"]
        .into_iter()
        .find(|known| *known == key)?;
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
            (
                "p99=csv:frametime lower p99 where=scene:a:b where=#1:x after=^frames thousands=,",
                json!({"name": "p99", "csv": "frametime", "better": "lower", "pick": "p99",
                       "where": {"scene": "a:b", "#1": "x"}, "after": "^frames", "thousands": ","}),
            ),
            ("t=yaml:$.took", json!({"name": "t", "yaml": "$.took"})),
            ("t=csv:took", json!({"name": "t", "csv": "took"})),
            ("t=/x/", json!({"name": "t", "regex": "x"})),
        ] {
            assert_eq!(Value::Object(keys(text).unwrap()), expected, "{text}");
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
