//! The classic table of workers that burn and wait: what each set did, by arm. From the `sets.csv`
//! of the trials, measured or imported.

use super::counted_trials;
use results::ResultSet;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Sets of one cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetsOfCell {
    pub cell: String,
    /// A row for each set of each arm, in the order of the arms.
    pub rows: Vec<SetOfArm>,
}

/// One set in all trials of an arm that count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetOfArm {
    pub arm: String,
    pub set: String,
    pub workers: u64,
    pub trials: usize,
    /// Thousands of operations in a second; of an import, as the tool counts.
    pub throughput: Classic,
    /// CPUs.
    pub cpu_use: Classic,
}

/// Means over the trials, and the extremes of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Classic {
    /// Sum over all workers.
    pub total: f64,
    /// Average of the workers.
    pub average: f64,
    /// Standard deviation among the workers.
    pub deviation: f64,
    /// Figure of the worker that did most in any trial.
    pub most: f64,
    /// Figure of the worker that did least.
    pub least: f64,
    /// Rate in the interval of a worker in which it did most.
    pub window_most: f64,
    /// Rate in the interval in which it did least. Nothing is 0.
    pub window_least: f64,
}

/// A row of the file.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    set: String,
    workers: u64,
    throughput: Classic,
    cpu_use: Classic,
}

/// One for each cell that has such workers.
pub fn find_sets(results: &ResultSet) -> Vec<SetsOfCell> {
    let cells = results.plan.cells.iter().enumerate();
    let found = cells.map(|(index, cell)| SetsOfCell {
        cell: cell.name.clone(),
        rows: (0..results.experiment.arms.len())
            .flat_map(|arm| of_arm(results, index, arm))
            .collect(),
    });
    found.filter(|of| !of.rows.is_empty()).collect()
}

fn of_arm(results: &ResultSet, cell: usize, arm: usize) -> Vec<SetOfArm> {
    let name = &results.experiment.arms[arm].name;
    let stored = counted_trials(results, cell, arm);
    put_together(name, stored.flat_map(|stored| rows(&stored.dir)))
}

fn put_together(arm: &str, rows: impl Iterator<Item = Row>) -> Vec<SetOfArm> {
    let mut order = Vec::new();
    let mut by_set: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        if !by_set.contains_key(&row.set) {
            order.push(row.set.clone());
        }
        by_set.entry(row.set.clone()).or_default().push(row);
    }
    let of_set = |set: String| {
        let rows = by_set.get(&set)?;
        Some(SetOfArm {
            arm: arm.to_owned(),
            workers: rows.first()?.workers,
            trials: rows.len(),
            throughput: Classic::over(rows.iter().map(|row| row.throughput)),
            cpu_use: Classic::over(rows.iter().map(|row| row.cpu_use)),
            set,
        })
    };
    order.into_iter().filter_map(of_set).collect()
}

impl Classic {
    fn over(trials: impl Iterator<Item = Classic> + Clone) -> Classic {
        let count = trials.clone().count().max(1) as f64;
        let mean = |of: fn(&Classic) -> f64| trials.clone().map(|c| of(&c)).sum::<f64>() / count;
        let most = |of: fn(&Classic) -> f64| {
            trials
                .clone()
                .map(|c| of(&c))
                .fold(f64::NEG_INFINITY, f64::max)
        };
        let least =
            |of: fn(&Classic) -> f64| trials.clone().map(|c| of(&c)).fold(f64::INFINITY, f64::min);
        Classic {
            total: mean(|c| c.total),
            average: mean(|c| c.average),
            deviation: mean(|c| c.deviation),
            most: most(|c| c.most),
            least: least(|c| c.least),
            window_most: most(|c| c.window_most),
            window_least: least(|c| c.window_least),
        }
    }
}

fn rows(trial: &Path) -> Vec<Row> {
    let file = results::files::read(&trial.join("sets.csv"));
    file.map_or_else(|_| Vec::new(), |text| read(text.as_slice()))
}

/// Rows of the table; one that is none is left out.
fn read(file: impl std::io::Read) -> Vec<Row> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let Ok(heads) = reader.headers().cloned() else {
        return Vec::new();
    };
    let at = |name: &str| heads.iter().position(|head| head == name);
    let row = |line: csv::StringRecord| {
        let number = |name: String| {
            let value: f64 = line.get(at(&name)?)?.parse().ok()?;
            value.is_finite().then_some(value)
        };
        let classic = |of: char| {
            Some(Classic {
                total: number(format!("{of}total"))?,
                average: number(format!("{of}avgavg"))?,
                deviation: number(format!("{of}stdev"))?,
                most: number(format!("{of}avgmax"))?,
                least: number(format!("{of}avgmin"))?,
                window_most: number(format!("{of}totmax"))?,
                window_least: number(format!("{of}totmin"))?,
            })
        };
        Some(Row {
            set: line.get(at("set")?)?.to_owned(),
            workers: line.get(at("workers")?)?.parse().ok()?,
            throughput: classic('t')?,
            cpu_use: classic('u')?,
        })
    };
    let records = reader.records().filter_map(Result::ok);
    records.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: &str = "set,workers,ttotal,tavgavg,tstdev,tavgmax,tavgmin,ttotmax,ttotmin,\
                         utotal,uavgavg,ustdev,uavgmax,uavgmin,utotmax,utotmin\n";

    #[test]
    fn trials_are_put_together_by_means_and_extremes_and_nothing_is_zero() {
        let one = format!("{HEADS}B,2,90,45,5,50,40,60,30,0.9,0.45,0.05,0.5,0.4,0.6,0.3\n");
        let two = format!("{HEADS}B,2,70,35,15,50,20,52,0,0.7,0.35,0.15,0.5,0.2,0.5,0\nx,y\n");
        let rows = [one, two].map(|text| read(text.as_bytes())).concat();
        let [set] = &put_together("default", rows.into_iter())[..] else {
            panic!("one set");
        };
        assert_eq!((set.set.as_str(), set.workers, set.trials), ("B", 2, 2));
        assert_eq!(
            set.throughput,
            Classic {
                total: 80.0,
                average: 40.0,
                deviation: 10.0,
                most: 50.0,
                least: 20.0,
                window_most: 60.0,
                window_least: 0.0,
            }
        );
        assert_eq!(set.cpu_use.window_least, 0.0);
    }
}
