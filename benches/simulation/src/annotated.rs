//! Public series in which people marked the changes, and how well each way finds what they marked.
//!
//! The series are those of a checkout of the Turing Change Point Dataset (van den Burg and Williams, 2020), the scores
//! those of its benchmark: F1 with a margin of five values, and the covering of the parts, over all who marked a
//! series. Nothing of the dataset is in this repository.

use crate::Outcome;
use crate::nights::Way;
use crate::rivals::noise_of_steps;
use crate::table::Table;
use serde::Deserialize;
use stats::change::Reading;
use stats::summary::Moments;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Values that a change may be away from its mark.
const MARGIN: usize = 5;
/// The series that are levels with noise and at most one step, as a ratio over months is.
const LEVELS: &str = "quality_control";

/// Marks of a series by the person who made them.
type Marks = BTreeMap<String, BTreeSet<usize>>;

/// A file of the dataset.
#[derive(Debug, Deserialize)]
struct File {
    series: Vec<Column>,
}

#[derive(Debug, Deserialize)]
struct Column {
    raw: Vec<Option<f64>>,
}

/// A series and what people said of it.
#[derive(Debug)]
struct Marked {
    name: String,
    values: Vec<f64>,
    marks: Marks,
}

/// Scores of all ways on the series of a checkout. Those of several columns or with missing values, and those that the
/// checkout does not have, are left out.
pub fn score_dataset(dir: &Path) -> Outcome<Table> {
    let all = read_dataset(dir)?;
    let levels = all.iter().filter(|series| series.name.starts_with(LEVELS));
    let groups = [
        ("all", all.iter().collect::<Vec<_>>()),
        ("levels with noise", levels.collect()),
    ];
    let header = [
        "series",
        "way",
        "F1",
        "covering",
        "changes told",
        "for nothing",
    ];
    let note = "Means over the series, each scaled to a standard deviation of one; no smallest change. For nothing:\n\
                changes that nobody marked within five values, of those told.";
    let mut table = Table::new(
        "Public series that people annotated",
        header.map(str::to_owned).to_vec(),
        note,
    );
    for (name, group) in groups {
        for way in [
            None,
            Some(Way::Detector),
            Some(Way::Energy),
            Some(Way::Partition),
        ] {
            table.push(score_group(
                &format!("{name} ({})", group.len()),
                way,
                &group,
            ));
        }
    }
    Ok(table)
}

fn read_dataset(dir: &Path) -> Outcome<Vec<Marked>> {
    let annotations = fs::read(dir.join("annotations.json"))?;
    let annotations: BTreeMap<String, Marks> = serde_json::from_slice(&annotations)?;
    let mut all = Vec::new();
    for (name, marks) in annotations {
        let path = dir
            .join("datasets")
            .join(&name)
            .join(format!("{name}.json"));
        let Ok(text) = fs::read(&path) else {
            continue;
        };
        let file: File = serde_json::from_slice(&text)?;
        let [column] = file.series.as_slice() else {
            continue;
        };
        if let Some(values) = column.raw.iter().copied().collect() {
            all.push(Marked {
                name,
                values,
                marks,
            });
        }
    }
    match all.is_empty() {
        true => Err(format!(
            "{} has no series: it is to be a checkout of TCPD",
            dir.display()
        )
        .into()),
        false => Ok(all),
    }
}

fn score_group(group: &str, way: Option<Way>, all: &[&Marked]) -> Vec<String> {
    let (mut f1, mut covering) = (Moments::default(), Moments::default());
    let (mut told, mut for_nothing) = (0, 0);
    for series in all {
        let found = way.map_or_else(Vec::new, |way| find(way, &series.values));
        f1.push(score_f1(&series.marks, &found));
        covering.push(score_covering(&series.marks, &found, series.values.len()));

        told += found.len();
        let marks: BTreeSet<usize> = series.marks.values().flatten().copied().collect();
        let is_marked = |at: &&usize| marks.iter().any(|mark| mark.abs_diff(**at) <= MARGIN);
        for_nothing += found.len() - found.iter().filter(is_marked).count();
    }
    vec![
        group.to_owned(),
        way.map_or("no change, ever", Way::name).to_owned(),
        format!("{:.2}", f1.mean()),
        format!("{:.2}", covering.mean()),
        told.to_string(),
        for_nothing.to_string(),
    ]
}

fn find(way: Way, values: &[f64]) -> Vec<usize> {
    let moments = Moments::from_values(values);
    let deviation = (moments.squared_deviations() / values.len() as f64).sqrt();
    let scaled = values
        .iter()
        .map(|value| (value - moments.mean()) / deviation);
    let scaled: Vec<f64> = scaled.collect();
    // A night of a history knows its own error. These values do not, so each has the noise of the series.
    let error = noise_of_steps(&scaled);
    let reading = |value| Reading { value, error };
    let readings: Vec<Reading> = scaled.into_iter().map(reading).collect();
    way.split(&readings, 0.0)
}

/// Harmonic mean of the precision against the marks of all and the mean recall of each. The beginning of a series is a
/// change that all found, so that one without marks has a score.
fn score_f1(marks: &Marks, found: &[usize]) -> f64 {
    let with_begin = |changes: &BTreeSet<usize>| -> BTreeSet<usize> {
        changes.iter().copied().chain([0]).collect()
    };
    let found = with_begin(&found.iter().copied().collect());
    let each: Vec<BTreeSet<usize>> = marks.values().map(with_begin).collect();
    let all: BTreeSet<usize> = each.iter().flatten().copied().collect();
    let precision = count_found(&all, &found) / found.len() as f64;
    let recalls = each
        .iter()
        .map(|marks| count_found(marks, &found) / marks.len() as f64);
    let recall = recalls.sum::<f64>() / each.len() as f64;
    2.0 * precision * recall / (precision + recall)
}

/// Marks near a change, each change for one mark.
fn count_found(marks: &BTreeSet<usize>, found: &BTreeSet<usize>) -> f64 {
    let mut left = found.clone();
    let mut count = 0.0;
    for mark in marks {
        let near = left
            .iter()
            .copied()
            .filter(|at| at.abs_diff(*mark) <= MARGIN);
        if let Some(nearest) = near.min_by_key(|at| at.abs_diff(*mark)) {
            left.remove(&nearest);
            count += 1.0;
        }
    }
    count
}

/// Mean over the people of how much of each of their parts the part that fits best has in common with it.
fn score_covering(marks: &Marks, found: &[usize], count: usize) -> f64 {
    let found = split_parts(found.iter().copied(), count);
    let cover = |marks: &BTreeSet<usize>| {
        let parts = split_parts(marks.iter().copied(), count);
        let best = |part: &(usize, usize)| {
            let shares = found.iter().map(|other| overlap(*part, *other));
            (part.1 - part.0) as f64 * shares.fold(0.0, f64::max)
        };
        parts.iter().map(best).sum::<f64>() / count as f64
    };
    marks.values().map(cover).sum::<f64>() / marks.len() as f64
}

fn split_parts(changes: impl Iterator<Item = usize>, count: usize) -> Vec<(usize, usize)> {
    let ends: BTreeSet<usize> = changes.chain([0, count]).collect();
    let ends: Vec<usize> = ends.into_iter().collect();
    ends.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// What two parts have in common, of what either has.
fn overlap(a: (usize, usize), b: (usize, usize)) -> f64 {
    let common = a.1.min(b.1).saturating_sub(a.0.max(b.0));
    let either = (a.1 - a.0) + (b.1 - b.0) - common;
    common as f64 / either as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(all: &[&[usize]]) -> Marks {
        let people = all.iter().enumerate();
        people
            .map(|(person, marks)| (person.to_string(), marks.iter().copied().collect()))
            .collect()
    }

    /// The examples of the benchmark of the dataset.
    #[test]
    fn scores_are_those_of_the_benchmark() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
        near(
            score_f1(&marks(&[&[10, 20], &[11, 20], &[10], &[0, 5]]), &[10, 20]),
            1.0,
        );
        near(score_f1(&marks(&[&[], &[10], &[50]]), &[10]), 10.0 / 11.0);
        near(score_f1(&marks(&[&[], &[10], &[50]]), &[]), 0.8);
        let covering = |all: &[&[usize]], found: &[usize]| score_covering(&marks(all), found, 45);
        near(
            covering(&[&[10, 20], &[10], &[0, 5]], &[10, 20]),
            0.796_296_296_296_296_3,
        );
        near(
            covering(&[&[], &[10], &[40]], &[10]),
            0.795_414_462_081_128_6,
        );
        near(covering(&[&[], &[10], &[40]], &[]), 0.818_930_041_152_263);
    }
}
