//! The text format of Prometheus and OpenMetrics
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>), as a service shows its own
//! figures.
//!
//! Kept readers of this format split labels at commas and at braces. So they lose every figure of a
//! route such as `uri="/users/{id}"` without a word.

use std::collections::{BTreeMap, HashMap};

/// Longest part of a line that a message quotes.
const QUOTED: usize = 80;

/// Labels of a figure with their values.
pub type Labels = BTreeMap<String, String>;

/// Figures of one answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exposition {
    /// Figures in the order of the text.
    pub samples: Vec<Sample>,
    types: HashMap<String, String>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Name of its family, with the suffix of the line.
    pub name: String,
    /// Labels that tell it from others of the name.
    pub labels: Labels,
    /// The figure.
    pub value: f64,
}

impl Exposition {
    /// The figures of a text. An error names the line that is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut found = Exposition::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if let Some(comment) = line.strip_prefix('#') {
                found.take_type(comment);
            } else if !line.is_empty() {
                let sample = parse_sample(line).map_err(|why| {
                    let quoted: String = line.chars().take(QUOTED).collect();
                    format!("line {number}, `{quoted}`: {why}")
                })?;
                found.samples.push(sample);
            }
        }
        Ok(found)
    }

    fn take_type(&mut self, comment: &str) {
        let mut words = comment.split_whitespace();
        if let (Some("TYPE"), Some(name), Some(kind)) = (words.next(), words.next(), words.next()) {
            self.types.insert(name.to_owned(), kind.to_owned());
        }
    }

    /// True where the figures of this name only grow, by their type, or by the name where the text has
    /// none.
    pub fn is_count(&self, name: &str) -> bool {
        let of = |name: &str| self.types.get(name).map(String::as_str);
        let family = ["_total", "_count", "_sum", "_bucket"]
            .into_iter()
            .find_map(|suffix| Some((name.strip_suffix(suffix)?, suffix)));
        match (of(name), family) {
            (Some(kind), _) => kind == "counter",
            (None, Some((family, "_total"))) => of(family).is_none_or(|kind| kind == "counter"),
            (None, Some(_)) => true,
            (None, None) => false,
        }
    }
}

/// A line: `name{label="value"} 1.5`, then a time or an exemplar, which are passed over.
fn parse_sample(line: &str) -> Result<Sample, &'static str> {
    let (name, labels, rest) = parse_series(line)?;
    let value = rest.split_whitespace().next().ok_or("it has no figure")?;
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        text => text.parse().map_err(|_| "the figure is no number")?,
    };
    Ok(Sample {
        name,
        labels,
        value,
    })
}

/// A name with or without labels at the beginning of a text, and the rest of the text.
pub fn parse_series(text: &str) -> Result<(String, Labels, &str), &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':' || c == '.';
    let end = text.find(|c| !fits(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("it does not begin with the name of a figure");
    }
    match rest.strip_prefix('{') {
        None if rest.is_empty() || rest.starts_with(char::is_whitespace) => {
            Ok((name.to_owned(), Labels::new(), rest))
        }
        None => Err("the name has a sign that names do not have"),
        Some(rest) => {
            let (labels, rest) = parse_labels(rest)?;
            Ok((name.to_owned(), labels, rest))
        }
    }
}

/// Labels up to the brace that closes them, and what follows it.
fn parse_labels(mut rest: &str) -> Result<(Labels, &str), &'static str> {
    let mut labels = Labels::new();
    loop {
        rest = rest.trim_start_matches([' ', ',']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Ok((labels, rest));
        }
        let (key, after) = rest.split_once('=').ok_or("a label has no `=`")?;
        let after = after.strip_prefix('"');
        let after = after.ok_or(
            "the value of a label is not between quotation marks; `=` is the only comparison",
        )?;
        let (value, after) = parse_quoted(after)?;
        labels.insert(key.trim().to_owned(), value);
        rest = after;
    }
}

/// A text up to its closing quotation mark, and what follows.
fn parse_quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return Ok((value, &text[at + 1..])),
            '\\' => match signs.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, other)) => value.push(other),
                None => break,
            },
            other => value.push(other),
        }
    }
    Err("the value of a label does not end")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let owned = pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        owned.collect()
    }

    #[test]
    fn labels_may_have_braces_commas_and_quotation_marks() {
        let text = "http_total{uri=\"/users/{id}\",q=\"a,b=\\\"c\\\"\"} 12 1795930816000\n";
        let found = Exposition::parse(text).unwrap();
        assert_eq!(
            found.samples,
            [Sample {
                name: "http_total".to_owned(),
                labels: labels(&[("uri", "/users/{id}"), ("q", "a,b=\"c\"")]),
                value: 12.0,
            }]
        );
    }

    #[test]
    fn a_type_says_what_grows_and_a_name_does_where_there_is_none() {
        let text = "# HELP up no type\n# TYPE jobs gauge\n# TYPE asked counter\njobs 1\nasked_total 2 # {id=\"x\"} 1\n";
        let found = Exposition::parse(text).unwrap();
        assert_eq!(found.samples.len(), 2);
        for (name, grows) in [
            ("jobs", false),
            ("asked_total", true),
            ("x_total", true),
            ("x_sum", true),
            ("x", false),
        ] {
            assert_eq!(found.is_count(name), grows, "{name}");
        }
    }

    #[test]
    fn a_line_that_is_no_figure_is_named() {
        for (text, why) in [
            ("<html>", "name of a figure"),
            ("a 1\nb{x=1} 2", "line 2"),
            ("a{x=\"1} 2", "does not end"),
            ("a one", "no number"),
            ("a", "no figure"),
            ("a-b 1", "a sign"),
        ] {
            let error = Exposition::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
