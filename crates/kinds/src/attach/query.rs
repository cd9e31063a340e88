//! Queries to the figures of a service, between two answers: a rate, a level, or a quantile.

use super::exposition::{Exposition, Labels, Sample, parse_series};
use load::recording::samples_needed;
use model::Invalid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The word of a quantile, as in PromQL.
const QUANTILE: &str = "histogram_quantile";
/// The factor before a share, as in PromQL.
const PERCENT: &str = "100";
const EXAMPLE: &str = "query = \"http_requests_total{code=\\\"200\\\"}\", or query = \
                       \"histogram_quantile(0.99, http_request_seconds)\"";

/// A question to the figures of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Query {
    written: String,
    name: String,
    labels: Labels,
    /// The quantile of a histogram, 0 to 1.
    quantile: Option<f64>,
    /// The count of which it is a share, in percent.
    share_of: Option<(String, Labels)>,
}

impl From<Query> for String {
    fn from(query: Query) -> Self {
        query.written
    }
}

impl TryFrom<String> for Query {
    type Error = Invalid;

    fn try_from(written: String) -> Result<Self, Invalid> {
        let wrong = |why: &str| {
            let what = format!("`{written}` is no query: {why}");
            Invalid::new("query", what).with_remedy(EXAMPLE)
        };
        let text = written.trim();
        let inner = text.strip_prefix(QUANTILE).map(str::trim_start);
        let inner = inner.and_then(|text| text.strip_prefix('(')?.strip_suffix(')'));
        let (quantile, series) = match inner {
            None => (None, text),
            Some(inner) => {
                let (number, series) = inner
                    .split_once(',')
                    .ok_or_else(|| wrong("a quantile has a number and a name"))?;
                let number: f64 = number
                    .trim()
                    .parse()
                    .map_err(|_| wrong("the quantile is no number"))?;
                if !(number > 0.0 && number < 1.0) {
                    return Err(wrong("the quantile is not between 0 and 1"));
                }
                (Some(number), series.trim())
            }
        };
        let part = series.strip_prefix(PERCENT).map(str::trim_start);
        let part = part
            .and_then(|text| text.strip_prefix('*'))
            .map(str::trim_start);
        let (name, labels, rest) = parse_series(part.unwrap_or(series)).map_err(&wrong)?;
        let share_of = match (part, rest.trim().strip_prefix('/')) {
            (None, None) => None,
            (Some(_), Some(whole)) => Some(whole.trim()),
            _ => return Err(wrong("a share is written 100 * PART / WHOLE")),
        };
        let share_of = share_of.map(parse_series).transpose().map_err(&wrong)?;
        let behind = share_of.as_ref().map_or(rest, |(.., rest)| *rest);
        if !behind.trim().is_empty() {
            return Err(wrong("something follows the name"));
        }
        let share_of = share_of.map(|(name, labels, _)| (name, labels));
        // The histogram is known by either name.
        let name = match quantile.and(name.strip_suffix("_bucket")) {
            Some(family) => family.to_owned(),
            None => name,
        };
        Ok(Query {
            written,
            name,
            labels,
            quantile,
            share_of,
        })
    }
}

impl std::fmt::Display for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written)
    }
}

impl Query {
    /// Unit of the figure where the experiment names none: Prometheus has its base unit at the end of
    /// a name.
    pub fn usual_unit(&self, is_count: bool) -> &'static str {
        if self.share_of.is_some() {
            return "%";
        }
        let is_in = |unit: &str| self.name.trim_end_matches("_total").ends_with(unit);
        match (is_count, is_in("_seconds"), is_in("_bytes")) {
            (false, true, _) => "s",
            (false, _, true) => "B",
            (true, _, true) => "B/s",
            (true, ..) => "1/s",
            _ => "count",
        }
    }

    /// True for the name of a figure that the query needs.
    pub fn reads(&self, name: &str) -> bool {
        let of_histogram = |rest: &str| self.quantile.is_some() && rest == "_bucket";
        let is_whole = self
            .share_of
            .as_ref()
            .is_some_and(|(whole, _)| whole == name);
        let rest = name.strip_prefix(&self.name);
        is_whole || rest.is_some_and(|rest| rest.is_empty() || of_histogram(rest))
    }

    /// Unit of the figure as far as it is known before there is an answer.
    pub fn likely_unit(&self) -> &'static str {
        self.usual_unit(self.is_rate(&Exposition::default()))
    }

    /// True where the figure is the increase of a count a second.
    pub fn is_rate(&self, answer: &Exposition) -> bool {
        self.quantile.is_none() && answer.is_count(&self.name)
    }

    /// The figure between two answers that are so many seconds apart; infinite for a quantile above the
    /// largest bucket. An error says why there is none.
    pub fn evaluate(
        &self,
        first: &Exposition,
        last: &Exposition,
        seconds: f64,
    ) -> Result<f64, String> {
        let value = match self.quantile {
            Some(quantile) => self.find_quantile(quantile, first, last)?,
            None if self.share_of.is_some() => self.find_share(first, last)?,
            None if last.is_count(&self.name) => {
                self.find_growth((&self.name, &self.labels), first, last)? / seconds
            }
            None => {
                let level = |answer| {
                    self.select(answer, &self.name)
                        .map(|s| s.value)
                        .sum::<f64>()
                };
                (level(first) + level(last)) / 2.0
            }
        };
        let is_there = match self.quantile {
            Some(_) => true,
            // Of a share there may be no part, as while nothing fails.
            None => self.share_of.is_some() || self.select(last, &self.name).next().is_some(),
        };
        let is_number = value.is_finite() || self.quantile.is_some() && !value.is_nan();
        match (is_there, is_number) {
            (false, _) => Err(format!("the answer has no figure `{}`", self.written)),
            (true, false) => Err(format!("`{}` is no number in the answer", self.written)),
            (true, true) => Ok(value),
        }
    }

    /// Why an infinite figure is none.
    pub fn is_beyond(&self) -> String {
        format!(
            "`{}` is above the largest bucket: nobody knows how far",
            self.written
        )
    }

    /// Increase of a count, over all series that match.
    fn find_growth(
        &self,
        (name, labels): (&str, &Labels),
        first: &Exposition,
        last: &Exposition,
    ) -> Result<f64, String> {
        let grown = grown(select(first, name, labels), select(last, name, labels));
        Ok(grown.ok_or_else(|| self.was_reset())?.values().sum())
    }

    /// Share of a count in another, of what came between the answers, in percent.
    fn find_share(&self, first: &Exposition, last: &Exposition) -> Result<f64, String> {
        let Some((whole, labels)) = &self.share_of else {
            return Err(format!("`{}` is no share", self.written));
        };
        let part = self.find_growth((&self.name, &self.labels), first, last)?;
        let all = self.find_growth((whole, labels), first, last)?;
        match all > 0.0 {
            true => Ok(100.0 * part / all),
            false => Err(format!("`{whole}` did not grow between two answers")),
        }
    }

    fn was_reset(&self) -> String {
        format!(
            "`{}` fell or went away between two answers: the service was started anew",
            self.written
        )
    }

    fn select<'a>(
        &'a self,
        answer: &'a Exposition,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Sample> {
        select(answer, name, &self.labels)
    }

    /// The quantile of what was counted between the answers, interpolated within its bucket as
    /// Prometheus does.
    fn find_quantile(
        &self,
        quantile: f64,
        first: &Exposition,
        last: &Exposition,
    ) -> Result<f64, String> {
        let name = format!("{}_bucket", self.name);
        let grown = grown(self.select(first, &name), self.select(last, &name));
        let buckets = add_up(grown.ok_or_else(|| self.was_reset())?);
        let Some((_, all)) = buckets.last().filter(|(bound, _)| bound.is_infinite()) else {
            return Err(format!(
                "the answer has no histogram `{}` up to +Inf",
                self.name
            ));
        };
        let needed = samples_needed(permille(quantile));
        if *all < needed as f64 {
            return Err(format!(
                "{quantile} of `{}` needs {needed} requests in a window, and there were {all}; a \
                 longer turn, or a lower quantile",
                self.name
            ));
        }
        let rank = quantile * all;
        let mut below = (0.0, 0.0);
        for bucket in &buckets {
            if bucket.1 >= rank {
                return match bucket.0.is_finite() {
                    true => Ok(
                        below.0 + (bucket.0 - below.0) * (rank - below.1) / (bucket.1 - below.1)
                    ),
                    false => Ok(f64::INFINITY),
                };
            }
            below = *bucket;
        }
        Err(format!(
            "the counts of `{}` do not grow with its buckets",
            self.name
        ))
    }
}

/// Figures of this name with these labels.
fn select<'a>(
    answer: &'a Exposition,
    name: &'a str,
    labels: &'a Labels,
) -> impl Iterator<Item = &'a Sample> {
    let samples = answer.samples.iter();
    samples.filter(move |sample| {
        let has = |(key, value)| sample.labels.get(key) == Some(value);
        sample.name == name && labels.iter().all(has)
    })
}

/// The quantile in thousandths, which is between 0 and 1.
#[expect(clippy::cast_possible_truncation, reason = "it is between 0 and 1000")]
fn permille(quantile: f64) -> u32 {
    (1000.0 * quantile) as u32
}

/// Increase of each series by its labels; `None` where one fell or went away. A series that came has
/// grown from 0.
fn grown<'a>(
    first: impl Iterator<Item = &'a Sample>,
    last: impl Iterator<Item = &'a Sample>,
) -> Option<BTreeMap<&'a Labels, f64>> {
    let mut grown: BTreeMap<&Labels, f64> = last.map(|s| (&s.labels, s.value)).collect();
    for sample in first {
        let value = grown.get_mut(&sample.labels)?;
        *value -= sample.value;
        if *value < 0.0 {
            return None;
        }
    }
    Some(grown)
}

/// Counts up to each bound, over all series, in the order of the bounds.
fn add_up(grown: BTreeMap<&Labels, f64>) -> Vec<(f64, f64)> {
    let bound = |labels: &Labels| match labels.get("le").map(String::as_str) {
        Some("+Inf") => Some(f64::INFINITY),
        text => text?.parse::<f64>().ok(),
    };
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    for (bound, count) in grown
        .iter()
        .filter_map(|(labels, n)| Some((bound(labels)?, *n)))
    {
        match buckets.iter_mut().find(|(known, _)| *known == bound) {
            Some((_, sum)) => *sum += count,
            None => buckets.push((bound, count)),
        }
    }
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(query: &str, first: &str, last: &str) -> Result<f64, String> {
        let query = Query::try_from(query.to_owned()).unwrap();
        let read = |text| Exposition::parse(text).unwrap();
        query.evaluate(&read(first), &read(last), 2.0)
    }

    #[test]
    fn a_count_is_a_rate_over_the_series_that_match() {
        let first = "a_total{c=\"200\",p=\"1\"} 10\na_total{c=\"500\",p=\"1\"} 1\n";
        let last = "a_total{c=\"200\",p=\"1\"} 30\na_total{c=\"500\",p=\"1\"} 9\na_total{c=\"200\",p=\"2\"} 4\n";
        assert_eq!(ask("a_total{c=\"200\"}", first, last), Ok(12.0));
        assert_eq!(ask("a_total", first, last), Ok(16.0));
        assert!(
            ask("b_total", first, last)
                .unwrap_err()
                .contains("no figure")
        );
    }

    #[test]
    fn a_count_that_fell_is_no_figure_and_a_level_is_a_mean() {
        let why = ask("a_total", "a_total 10\n", "a_total 3\n").unwrap_err();
        assert!(why.contains("started anew"), "{why}");
        let why = ask("a_total", "a_total 10\n", "b 3\n").unwrap_err();
        assert!(why.contains("started anew"), "{why}");
        assert_eq!(ask("depth", "depth 10\n", "depth 4\n"), Ok(7.0));
        assert!(ask("depth", "depth 1\n", "depth NaN\n").is_err());
    }

    #[test]
    fn a_share_is_of_what_came_between_the_answers_and_none_of_nothing() {
        let query = "100 * asked_total{code=\"500\"} / asked_total";
        let first = "asked_total{code=\"200\"} 10\n";
        let last = "asked_total{code=\"200\"} 25\nasked_total{code=\"500\"} 5\n";
        assert_eq!(ask(query, first, last), Ok(25.0));
        assert_eq!(ask(query, first, "asked_total{code=\"200\"} 25\n"), Ok(0.0));
        assert!(
            ask(query, first, first)
                .unwrap_err()
                .contains("did not grow")
        );
        let query = Query::try_from(query.to_owned()).unwrap();
        assert_eq!(query.likely_unit(), "%");
        assert!(query.reads("asked_total") && !query.reads("asked_total_bucket"));
    }

    fn histogram(counts: [u64; 3]) -> String {
        let [low, high, all] = counts;
        format!(
            "h_bucket{{le=\"0.1\"}} {low}\nh_bucket{{le=\"0.5\"}} {high}\nh_bucket{{le=\"+Inf\"}} {all}\n"
        )
    }

    #[test]
    fn a_quantile_is_that_of_what_came_between_the_answers() {
        let (first, last) = (histogram([500, 500, 500]), histogram([550, 600, 600]));
        // 100 requests: 50 up to 0.1, 50 between 0.1 and 0.5.
        let p75 = ask("histogram_quantile(0.75, h)", &first, &last).unwrap();
        assert!((p75 - 0.3).abs() < 1e-9, "{p75}");
        let by_bucket = ask("histogram_quantile(0.75, h_bucket)", &first, &last);
        assert_eq!(by_bucket, Ok(p75));
    }

    #[test]
    fn a_quantile_beyond_the_buckets_or_of_too_few_is_no_figure() {
        let first = histogram([0, 0, 0]);
        let beyond = ask(
            "histogram_quantile(0.9, h)",
            &first,
            &histogram([10, 20, 1000]),
        );
        assert_eq!(beyond, Ok(f64::INFINITY));
        let few = ask(
            "histogram_quantile(0.99, h)",
            &first,
            &histogram([10, 20, 20]),
        );
        assert!(few.unwrap_err().contains("needs 1000"));
        let none = ask("histogram_quantile(0.5, g)", &first, &first);
        assert!(none.unwrap_err().contains("no histogram"));
    }

    #[test]
    fn what_is_no_query_is_refused_with_an_example() {
        for text in [
            "",
            "rate(a[5m])",
            "histogram_quantile(99, a)",
            "histogram_quantile(0.5)",
            "a{b=~\"c\"}",
            "a b",
            "a / b",
            "100 * a",
            "100 * a / b c",
        ] {
            let error = Query::try_from(text.to_owned()).unwrap_err();
            assert!(!error.remedy.is_empty(), "{text}: {error}");
        }
    }
}
