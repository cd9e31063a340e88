//! Metrics of a program's own: where a figure is in what the program prints or writes.
//!
//! A figure that is missing, that is there more often than it may be, or that is no number
//! fails the trial: a wrong figure is worse than none.

use super::find::{self, Figure, Found};
use super::part::Part;
use super::pick::Pick;
use super::place::{EXAMPLE, Find};
use load::{Keys, Output};
use model::print::number::Thousands;
use model::{Better, Invalid, Measurement, Own, Scale};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The key of a workload that has them.
pub const KEY: &str = "metric";
/// Longest name and longest unit.
const MOST_LETTERS: usize = 40;
/// Unit of figures that have none.
const NO_UNIT: &str = "count";

/// A metric that an experiment defines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnMetric {
    /// Name, in snake_case; no other metric of the trial has it.
    pub name: String,
    /// Unit of the figure, such as `1/s` or `MB/s`. Without one it is that of the dimension in which
    /// the text says its figures, or a count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Direction in which the metric improves.
    pub better: Better,
    /// Place of the figure in the text.
    pub find: Find,
    /// Text that is searched.
    #[serde(default)]
    pub from: Source,
    /// Part of the text that is searched.
    #[serde(default, skip_serializing_if = "Part::is_whole")]
    pub part: Part,
    /// The sign between groups of three digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thousands: Option<Thousands>,
    /// Choice among several figures.
    #[serde(default)]
    pub pick: Pick,
    /// Scale on which arms are compared.
    #[serde(default)]
    pub scale: Scale,
    /// Smallest difference that is of interest, in the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_effect: Option<f64>,
}

/// Text that has a figure.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Source {
    /// Standard output of the program.
    #[default]
    Stdout,
    /// Standard error of the program.
    Stderr,
    /// File that the program writes.
    File(String),
}

impl From<String> for Source {
    fn from(text: String) -> Self {
        match text.as_str() {
            "stdout" => Source::Stdout,
            "stderr" => Source::Stderr,
            _ => Source::File(text),
        }
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        match source {
            Source::Stdout => "stdout".to_owned(),
            Source::Stderr => "stderr".to_owned(),
            Source::File(path) => path,
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Stdout => f.write_str("standard output"),
            Source::Stderr => f.write_str("standard error"),
            Source::File(path) => write!(f, "the file {path}"),
        }
    }
}

/// A line that a program printed, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Time of CLOCK_MONOTONIC at which the line had come.
    pub at_ns: u64,
    pub text: String,
}

impl OwnMetric {
    /// From the keys of one `[[workload.metric]]`. Faults stay in the keys.
    pub(crate) fn read(keys: &mut Keys) -> Self {
        let mut missing = Vec::new();
        let mut needed = |keys: &mut Keys, key| {
            let text: Option<String> = keys.get(key);
            text.unwrap_or_else(|| {
                missing.push(key);
                String::new()
            })
        };
        let name = needed(keys, "name");
        let better = keys.get("better");
        let unit = keys.get("unit");
        let mut found = Find::read(keys).into_iter();
        let (from, pick) = (keys.get("from"), keys.get("pick"));
        let (part, thousands) = (Part::read(keys), keys.get("thousands"));
        let (scale, smallest_effect) = (keys.get("scale"), keys.get("smallest-effect"));
        let (find, second) = (found.next(), found.next());
        if !missing.is_empty() {
            keys.refuse(Invalid::new("", "a metric needs a name").with_remedy(EXAMPLE));
        }
        if better.is_none() {
            let what = format!("the metric `{name}` does not say which direction is better");
            let remedy = "better = \"higher\", or better = \"lower\"";
            keys.refuse(Invalid::new("", what).with_remedy(remedy));
        }
        if find.is_none() || second.is_some() {
            let what =
                format!("the metric `{name}` needs one of `regex`, `json`, `csv` and `yaml`");
            keys.refuse(Invalid::new("", what).with_remedy(EXAMPLE));
        }
        OwnMetric {
            name,
            unit,
            better: better.unwrap_or(Better::Neither),
            find: find.unwrap_or(Find::Csv(String::new())),
            from: from.unwrap_or_default(),
            part,
            thousands,
            pick: pick.unwrap_or_default(),
            scale: scale.unwrap_or_default(),
            smallest_effect,
        }
    }

    /// The fault of a metric that no trial could have, by its key.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let name = &self.name;
        check_metric_name(name)?;
        let is_shown = |c: char| !c.is_whitespace() && !model::printable::is_hidden(c);
        let unit = self.unit.as_deref().unwrap_or(NO_UNIT);
        if unit.is_empty() || !unit.chars().all(is_shown) || unit.chars().count() > MOST_LETTERS {
            let what = format!("`{unit}` is no unit");
            return Err(
                Invalid::new("unit", what).with_remedy("a word without spaces: unit = \"MB/s\"")
            );
        }
        if Pick::try_from(unit.to_owned()).is_ok() {
            let what = format!("`{unit}` is a choice among figures, no unit");
            return Err(Invalid::new("unit", what).with_remedy(format!("pick = \"{unit}\"")));
        }
        if self.better == Better::Neither {
            let what = format!("the metric `{name}` needs a direction");
            return Err(Invalid::new("better", what)
                .with_remedy("better = \"higher\", or better = \"lower\""));
        }
        self.check_smallest_effect()?;
        if let Source::File(path) = &self.from
            && (path.is_empty() || path.contains('\0'))
        {
            return Err(Invalid::new("from", "this is no path of a file"));
        }
        self.find.check()?;
        self.part.check()?;
        match &self.find {
            Find::Regex(_) if !self.part.rows.is_empty() => Err(Invalid::new(
                "where",
                "lines that an expression is applied to have no columns and no keys",
            )
            .with_remedy("put it into the expression, or use after = \"…\"")),
            _ => Ok(()),
        }
    }

    fn check_smallest_effect(&self) -> Result<(), Invalid> {
        let Some(smallest) = self.smallest_effect else {
            return Ok(());
        };
        let what = match (self.scale, smallest.is_finite() && smallest > 0.0) {
            (Scale::Difference, true) => return Ok(()),
            (Scale::Difference, false) => "the smallest effect is not above 0",
            (Scale::Ratio, _) => {
                "the smallest effect of a metric is in its unit, and ratios have none"
            }
        };
        let remedy = "scale = \"difference\" and smallest-effect = 50, in the unit of the metric";
        Err(Invalid::new("smallest-effect", what).with_remedy(remedy))
    }

    /// The metric's figure in the output of a trial.
    pub(super) fn measure_output(&self, output: &Output) -> Result<Measurement, String> {
        let in_metric = |why: String| format!("the metric `{}`: {why}", self.name);
        let figures = self.text(output).and_then(|text| self.figures(text));
        let figures = figures.map_err(|why| in_metric(why + &self.elsewhere(output)))?;
        let value = self.chosen(&figures).map_err(in_metric)?;
        Ok(self.measurement(value, &figures))
    }

    /// Where the figure is, if not in the stream that was searched: half of all programs print theirs
    /// on standard error.
    fn elsewhere(&self, output: &Output) -> String {
        let (here, other, key) = match &self.from {
            Source::Stdout => (&output.stdout, &output.stderr, Source::Stderr),
            Source::Stderr => (&output.stderr, &output.stdout, Source::Stdout),
            Source::File(_) => return String::new(),
        };
        let has = |text: &str| {
            self.find
                .find_all(&self.part, text)
                .is_ok_and(|found| !found.is_empty())
        };
        match !has(here) && has(other) {
            true => format!("; it is in {key}: from = \"{}\"", String::from(key.clone())),
            false => String::new(),
        }
    }

    /// Note about lines before the JSON in which the metric is.
    pub(super) fn passed_over(&self, output: &Output) -> Option<String> {
        let Find::Json(_) = &self.find else {
            return None;
        };
        let text = self.part.cut_section(self.text(output).ok()?).ok()?;
        let first = find::first_line(find::notes_before_json(&text));
        (!first.is_empty()).then(|| {
            format!(
                "lines before the JSON of {} were passed over: `{first}`",
                self.from
            )
        })
    }

    /// A value with all that is said of it.
    pub(crate) fn measurement<'f>(
        &self,
        value: f64,
        figures: impl IntoIterator<Item = &'f Figure>,
    ) -> Measurement {
        let quoted = figures.into_iter().find(|figure| figure.has_certain_unit());
        let unit = quoted.and_then(|figure| figure.unit.as_ref());
        let declared = self.unit.as_ref().or(unit);
        Measurement {
            metric: self.name.clone(),
            unit: declared.map_or_else(|| NO_UNIT.to_owned(), String::clone),
            better: self.better,
            value,
            own: Some(Box::new(Own {
                quote: quoted.map(Figure::quote),
                scale: self.scale,
                smallest_effect: self.smallest_effect,
            })),
        }
    }

    /// Why the metric cannot be measured window by window; `None` where it can.
    pub(crate) fn never_in_turns(&self) -> Option<String> {
        let name = &self.name;
        match (&self.find, &self.from, self.pick) {
            _ if !self.part.is_whole() => Some(format!(
                "the metric `{name}` is in a part of the output, which lines that are read as they \
                 come do not have"
            )),
            (_, Source::File(path), _) if path.contains('*') => Some(format!(
                "the metric `{name}` is in several files, of which one is followed as it grows"
            )),
            (Find::Json(_) | Find::Yaml(_), ..) => Some(format!(
                "the metric `{name}` is not in lines that the program prints as it goes, which \
                 takes a regex, or a column of CSV"
            )),
            (.., Pick::Only) => Some(format!(
                "the metric `{name}` is in many lines; pick = \"rate\" is the increase of a count a \
                 second, pick = \"mean\" the mean of a window"
            )),
            _ => None,
        }
    }

    /// All figures of the metric in lines of a program, each with the time of its line.
    pub(crate) fn timed_figures(&self, lines: &[Line]) -> Result<Vec<(u64, Figure)>, String> {
        let in_metric = |why: String| format!("the metric `{}`: {why}", self.name);
        let mut figures = Vec::new();
        let found = self
            .find
            .find_in_lines(lines.iter().map(|line| line.text.as_str()));
        for (line, found) in lines.iter().zip(found.map_err(in_metric)?) {
            for figure in found {
                let figure = figure.figure(&self.from, self.unit.as_deref(), self.thousands);
                figures.push((line.at_ns, figure.map_err(in_metric)?));
            }
        }
        same_units(figures.iter().map(|(_, figure)| figure)).map_err(in_metric)?;
        Ok(figures)
    }

    fn text<'a>(&self, output: &'a Output) -> Result<&'a str, String> {
        match &self.from {
            Source::Stdout => Ok(&output.stdout),
            Source::Stderr => Ok(&output.stderr),
            Source::File(path) => match output.files.get(path) {
                Some(Ok(text)) => Ok(text),
                Some(Err(why)) => Err(why.clone()),
                None => Err(format!("the file {path} was not read")),
            },
        }
    }

    /// The figures among which `pick` chooses, all of them with a unit or none of them.
    fn figures(&self, text: &str) -> Result<Vec<Figure>, String> {
        let from = &self.from;
        let found = self
            .find
            .find_all(&self.part, text)
            .map_err(|why| format!("{from}: {why}"))?;
        let (Some(first), Some(last)) = (found.first(), found.last()) else {
            let end = find::text_tail(text);
            return Err(format!(
                "{}{} is nowhere in {from}, {end}",
                self.find, self.part
            ));
        };
        let read = |found: &Found| found.figure(from, self.unit.as_deref(), self.thousands);
        let figures = match self.pick {
            Pick::Only if found.len() > 1 => {
                return Err(format!(
                    "{}{} is in {from} {} times, first {first} and last {last}; \
                     pick = \"first\", \"last\", \"min\", \"max\", \"sum\", \"mean\" or \"p99\" chooses",
                    self.find,
                    self.part,
                    found.len()
                ));
            }
            Pick::Only | Pick::Last => vec![read(last)?],
            Pick::First => vec![read(first)?],
            Pick::Min | Pick::Max | Pick::Sum | Pick::Mean | Pick::Rate | Pick::Percentile(_) => {
                found.iter().map(read).collect::<Result<_, _>>()?
            }
        };
        same_units(&figures)?;
        Ok(figures)
    }

    fn chosen(&self, figures: &[Figure]) -> Result<f64, String> {
        if self.pick == Pick::Rate {
            return Err("pick = \"rate\" is for arms that take turns".to_owned());
        }
        let timed: Vec<(u64, f64)> = figures.iter().map(|figure| (0, figure.value)).collect();
        if let Pick::Percentile(percentile) = self.pick
            && (figures.len() as u64) < percentile.least_figures()
        {
            return Err(format!(
                "{percentile} needs {} figures, so that one is beyond it, and there are {} in {}",
                percentile.least_figures(),
                figures.len(),
                self.from
            ));
        }
        let value = self
            .pick
            .pick_from(&timed)
            .filter(|value| value.is_finite());
        value.ok_or_else(|| format!("the sum of the figures in {} is out of range", self.from))
    }
}

/// An error with both figures where one of them has a unit and the other has none, or that of
/// something else.
fn same_units<'f>(figures: impl IntoIterator<Item = &'f Figure>) -> Result<(), String> {
    let mut figures = figures
        .into_iter()
        .filter(|figure| figure.has_certain_unit());
    let Some(first) = figures.next().map(Figure::quote) else {
        return Ok(());
    };
    match figures.find_map(|figure| first.find_conflict(&figure.quote())) {
        None => Ok(()),
        Some(why) => Err(why),
    }
}

/// Refuses what is no name for a metric of one's own.
pub(crate) fn check_metric_name(name: &str) -> Result<(), Invalid> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits);
    if is_name && name.len() <= MOST_LETTERS {
        return Ok(());
    }
    let what = format!("`{name}` is no name for a metric");
    let remedy = "use lower-case letters, digits and underscores, at most 40, a letter first";
    Err(Invalid::new("name", what).with_remedy(remedy))
}

/// The first fault of the metrics of one workload, by its key.
pub(super) fn check_all(metrics: &[OwnMetric]) -> Result<(), Invalid> {
    let mut names = BTreeSet::new();
    for (index, metric) in metrics.iter().enumerate() {
        let of_it = |fault: Invalid| fault.in_table(&format!("{KEY}.{index}"));
        metric.check().map_err(of_it)?;
        if !names.insert(&metric.name) {
            let twice = format!("there are two metrics `{}`", metric.name);
            let fault = Invalid::new("name", twice);
            return Err(of_it(fault.with_remedy("give one of them another name")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
