//! A new run judged by the last good runs of its series, in place of one stored run.

use crate::run::{Figure, Run};
use crate::series::{Series, SeriesKey, group_series};
use crate::store::Contents;
use crate::stretch::split_series;
use crate::words::{describe_alarm, describe_ratio, format_time, list_differences, shorten_hash};
use report::gate::{By, Call, Check, Gate, call_ratio};
use report::lacks::find_lacks;
use report::{Table, format_change, format_count};
use results::ResultSet;
use stats::change::Reading;
use stats::prediction::{FEWEST, compare_with_last};
use std::collections::BTreeSet;

/// Judges a run by the last good runs of each of its series, so many at most. None where the history has no run
/// before it with a figure that may be compared.
pub fn judge_by_history(
    contents: &Contents,
    (new, results): (&Run, &ResultSet),
    last: usize,
) -> Option<Gate> {
    let all = group_series(&contents.runs);
    let followed: Vec<Followed> = new
        .figures
        .iter()
        .map(|figure| Followed::find(&all, contents, new, figure, last))
        .collect();
    let newest = followed
        .iter()
        .flat_map(|f| &f.earlier)
        .max_by_key(|run| run.created)?;
    let stop = &results.experiment.stop;
    let most = followed.iter().map(|f| f.good.len()).max().unwrap_or(0);
    Some(Gate {
        experiment: new.name.clone(),
        stored: format!(
            "the last {} of the history before it",
            format_count(most, "good run")
        ),
        new: results.manifest.created.clone(),
        by: By::Effects,
        smallest_effect: stop.smallest_effect,
        risk: 1.0 - stop.confidence,
        notes: list_notes(contents, &followed, newest, new),
        lacks: list_lacks(&followed, newest, new, results),
        checks: followed
            .iter()
            .map(|f| f.check(stop.smallest_effect, stop.confidence))
            .collect(),
    })
}

/// A figure of the new run with what it is judged by.
struct Followed<'a> {
    figure: &'a Figure,
    /// Hash of its series.
    series: String,
    /// Runs of the series before the new one.
    earlier: Vec<&'a Run>,
    /// The last good ones.
    good: Vec<&'a Figure>,
}

impl<'a> Followed<'a> {
    fn find(
        all: &[Series<'a>],
        contents: &Contents,
        new: &Run,
        figure: &'a Figure,
        last: usize,
    ) -> Followed<'a> {
        let key = SeriesKey::from_figure(new, figure);
        let is_earlier = |(run, _): &(&Run, &Figure)| {
            run.created < new.created && !run.parts.iter().any(|part| new.parts.contains(part))
        };
        let found = all.iter().find(|series| series.key == key);
        let earlier = found.map_or_else(Vec::new, |series| {
            let points = series.points.iter().copied().filter(is_earlier);
            points.map(|(run, _)| run).collect()
        });
        let good = found.map_or_else(Vec::new, |series| {
            let stretches = split_series(series, &contents.alarms).into_iter().rev();
            let mut good = stretches.filter(|stretch| stretch.is_good).map(|stretch| {
                let points = series.points[stretch.runs].iter().copied();
                let points: Vec<&Figure> = points.filter(is_earlier).map(|(_, f)| f).collect();
                points[points.len().saturating_sub(last)..].to_vec()
            });
            good.find(|points| !points.is_empty()).unwrap_or_default()
        });
        Followed {
            figure,
            series: key.identify_series(),
            earlier,
            good,
        }
    }

    fn check(&self, smallest: f64, confidence: f64) -> Check {
        let figure = self.figure;
        let readings: Vec<Reading> = self.good.iter().map(|figure| read(figure)).collect();
        let compared = compare_with_last(&readings, read(figure), confidence);
        let interval = compared.map(|(_, found)| (found.low.exp(), found.high.exp()));
        Check {
            cell: figure.cell.clone(),
            metric: figure.metric.clone(),
            better: figure.better,
            arm: figure.arm.clone(),
            ratio: compared.map(|(distance, _)| distance.exp()),
            low: interval.map(|ends| ends.0),
            high: interval.map(|ends| ends.1),
            difference: None,
            call: match interval {
                None => Call::Unknown,
                Some(_) => call_ratio(interval, figure.better, smallest),
            },
            figures: format!("{}, now {}", self.describe_good(), describe_ratio(figure)),
        }
    }

    fn describe_good(&self) -> String {
        let count = self.good.len();
        if count == 0 {
            return "no good run".to_owned();
        }
        let sum: f64 = self.good.iter().map(|figure| figure.log_ratio).sum();
        let mean = format_change((sum / count as f64).exp());
        format!("{mean} in {}", format_count(count, "run"))
    }
}

fn read(figure: &Figure) -> Reading {
    Reading {
        value: figure.log_ratio,
        error: figure.error,
    }
}

fn list_notes(contents: &Contents, followed: &[Followed], newest: &Run, new: &Run) -> Vec<String> {
    let mut notes = vec![
        "an interval has what the good runs scatter, so the rate holds where nights scatter as those did"
            .to_owned(),
    ];
    let pairs = followed.iter();
    let differences: BTreeSet<String> = pairs
        .flat_map(|f| list_differences(newest, new, [&f.figure.arm, &f.figure.anchor]))
        .collect();
    if !differences.is_empty() {
        let differences: Vec<String> = differences.into_iter().collect();
        notes.push(format!(
            "changed since the run of {}: {}",
            format_time(newest.created),
            differences.join("; ")
        ));
    }
    let is_of_these = |id: &String| followed.iter().any(|f| f.series == *id);
    let alarms = contents.alarms.iter();
    notes.extend(alarms.filter_map(|known| {
        let alarm = &known.alarm;
        (known.is_regression() && is_of_these(&alarm.series)).then(|| {
            format!(
                "runs since alarm {} are no good ones: it is {}, {}",
                shorten_hash(&alarm.id),
                known.outcome.as_str(),
                describe_alarm(alarm, contents)
            )
        })
    }));
    notes
}

fn list_lacks(followed: &[Followed], newest: &Run, new: &Run, results: &ResultSet) -> Vec<String> {
    let own = find_lacks(&Table::verdicts_only(results), results).into_iter();
    let mut lacks: Vec<String> = own.map(|lack| format!("the new run: {lack}")).collect();
    if new.left_out > 0 {
        lacks.push(format!(
            "{} cannot be followed, since they are differences or have fewer than three blocks; a stored run can \
             judge them",
            format_count(new.left_out, "comparison")
        ));
    }
    let name = |figure: &Figure| format!("{}, {}: {}", figure.cell, figure.arm, figure.metric);
    let too_few = followed.iter().filter(|f| f.good.len() < FEWEST);
    lacks.extend(too_few.map(|f| {
        let runs = format_count(f.good.len(), "good run");
        format!("{}: {runs} before it, {FEWEST} are needed", name(f.figure))
    }));
    let has = |key: &SeriesKey| {
        new.figures
            .iter()
            .any(|f| SeriesKey::from_figure(new, f) == *key)
    };
    let gone = newest.figures.iter().filter(|figure| {
        let key = SeriesKey::from_figure(newest, figure);
        key.class == new.class && !has(&key)
    });
    lacks.extend(gone.map(|figure| {
        let at = format_time(newest.created);
        format!(
            "{}: the run of {at} has it, the new one does not",
            name(figure)
        )
    }));
    lacks
}
