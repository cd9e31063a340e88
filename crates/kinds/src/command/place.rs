//! Place of a figure in a text: an expression, a path, a column.

use super::find::{self, Found, UNIT_GROUP};
use super::part::Part;
use super::yaml;
use load::Keys;
use model::Invalid;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json_path::JsonPath;

/// Place of a figure in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Find {
    /// Regular expression, applied to each line, with one named group around the figure, and
    /// perhaps another, `u`, around its unit.
    Regex(String),
    /// JSONPath (RFC 9535) of the figure in each JSON value of the text.
    Json(String),
    /// Column of a CSV table with this name in its head, or `#2`, the second one.
    Csv(String),
    /// JSONPath of the figure in each YAML document of the text.
    Yaml(String),
}

/// Keys that a metric must have.
pub const EXAMPLE: &str = "[[workload.metric]] with name = \"ops\", better = \"higher\" and \
                           regex = 'ops: (?<v>[\\d.]+)', json = \"$.ops\", yaml = \"$.ops\" or \
                           csv = \"ops\"";

impl Find {
    /// All places that the keys of one metric say; one is right.
    pub fn read(keys: &mut Keys) -> Vec<Self> {
        let found = [
            keys.get("regex").map(Find::Regex),
            keys.get("json").map(Find::Json),
            keys.get("csv").map(Find::Csv),
            keys.get("yaml").map(Find::Yaml),
        ];
        found.into_iter().flatten().collect()
    }

    /// The fault of a place that is nowhere, by its key.
    pub fn check(&self) -> Result<(), Invalid> {
        match self {
            Find::Regex(text) => regex(text)
                .map(drop)
                .map_err(|what| Invalid::new("regex", what).with_remedy(GROUP)),
            Find::Json(text) => json_path(text).map(drop).map_err(|what| {
                Invalid::new("json", what).with_remedy("json = \"$.jobs[0].read.iops\"")
            }),
            Find::Csv(name) if name.is_empty() => {
                Err(Invalid::new("csv", "a column has a name").with_remedy("csv = \"ops\""))
            }
            Find::Csv(_) => Ok(()),
            Find::Yaml(text) => json_path(text).map(drop).map_err(|what| {
                Invalid::new("yaml", what).with_remedy("yaml = \"$.metrics[0].ops\"")
            }),
        }
    }

    /// All figures in each of the lines.
    pub fn find_in_lines<'t>(
        &self,
        lines: impl Iterator<Item = &'t str>,
    ) -> Result<Vec<Vec<Found>>, String> {
        match self {
            Find::Csv(column) => {
                let lines: Vec<&str> = lines.collect();
                let mut found = vec![Vec::new(); lines.len()];
                let text = lines.join("\n");
                for (line, field) in find::by_column_of_lines(column, &Part::default(), &text)? {
                    // A line is where its row begins.
                    if let Some(found) = found.get_mut(line - 1) {
                        found.push(field);
                    }
                }
                Ok(found)
            }
            Find::Regex(written) => {
                let regex = regex(written)?;
                Ok(lines.map(|line| find::by_regex(&regex, line)).collect())
            }
            _ => Err("it is not in lines".to_owned()),
        }
    }

    /// All figures of the part of a text.
    pub fn find_all(&self, part: &Part, text: &str) -> Result<Vec<Found>, String> {
        let text = &part.cut_section(text)?;
        match self {
            Find::Regex(written) => Ok(find::by_regex(&regex(written)?, text)),
            Find::Json(written) => find::by_json_path(&json_path(written)?, part, text),
            Find::Csv(column) => find::by_column(column, part, text),
            Find::Yaml(written) => {
                let (path, mut found) = (json_path(written)?, Vec::new());
                for document in yaml::documents(text)? {
                    find::in_value(&path, part, &document, &mut found)?;
                }
                Ok(found)
            }
        }
    }
}

impl std::fmt::Display for Find {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Find::Regex(text) => write!(f, "/{text}/"),
            Find::Json(text) | Find::Yaml(text) => f.write_str(text),
            Find::Csv(name) => write!(f, "the column `{name}`"),
        }
    }
}

const GROUP: &str = "one named group around the figure, and `u` around its unit if you like: \
                     regex = 'p99: (?<v>[\\d.]+)(?<u>\\w+)'";

/// An expression for lines.
pub fn line_regex(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        // The last line says what is wrong; those before it draw the place.
        let error = error.to_string();
        let last = error.lines().last().unwrap_or_default().trim();
        format!("`{text}` is no regular expression: {last}")
    })
}

/// The expression, which has one named group around the figure.
fn regex(text: &str) -> Result<Regex, String> {
    let regex = line_regex(text)?;
    let has_unit = regex
        .capture_names()
        .flatten()
        .any(|name| name == UNIT_GROUP);
    match regex.capture_names().flatten().count() {
        1 => Ok(regex),
        2 if has_unit => Ok(regex),
        0 => Err(format!("`{text}` has no named group")),
        groups => Err(format!("`{text}` has {groups} named groups")),
    }
}

/// The path, which RFC 9535 describes.
pub fn json_path(text: &str) -> Result<JsonPath, String> {
    JsonPath::parse(text).map_err(|error| format!("`{text}` is no JSONPath: {error}"))
}
