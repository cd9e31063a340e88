//! Pictures of workers that burn and wait: what each set got of what it is entitled to, when it got
//! it, and how the fairness changes with their number. From the `workers.csv` of the trials; of
//! imported ones, from their `windows.csv`.

use super::charts::Figure;
use super::view::color_of;
use crate::render::chart::{self, Estimate, Labelled, Pair, Place, Series};
use crate::table::across::{GeometricMean, counted, fairness_by_count, geometric_mean};
use crate::table::{ArmInfo, Table};
use results::ResultSet;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const NS_PER_SEC: f64 = 1e9;

/// A row of the table: what one worker did in one interval.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    set: String,
    worker: usize,
    interval: u32,
    kops: f64,
    cpu_ns: f64,
    due_kops_per_sec: f64,
}

/// Figures of one interval that are drawn over time.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Done {
    /// Thousands of operations.
    kops: f64,
    /// CPU time in seconds.
    cpu: f64,
}

/// Figures of each interval.
type Intervals = BTreeMap<u32, Done>;

/// Work of one set in one trial.
#[derive(Debug, Default, Clone, PartialEq)]
struct SetWork {
    /// Sums over its workers.
    got: Intervals,
    /// Figures of each of its workers.
    by_worker: BTreeMap<usize, Intervals>,
    /// Thousands of operations in a second.
    due_per_sec: f64,
}

/// Intervals of a window as the pictures have them.
#[derive(Debug, Clone, Copy)]
struct Time {
    /// Length of one.
    seconds: f64,
    /// Number of those of full length.
    whole: f64,
    label: &'static str,
}

/// Windows of an import. The tool's rates are by the second, whatever the length of its windows.
const IMPORTED: Time = Time {
    seconds: 1.0,
    whole: f64::INFINITY,
    label: "window of a worker",
};

/// The pictures of one cell; none where it has no such workers.
pub fn of_cell(table: &Table, results: &ResultSet, cell: usize) -> Vec<Figure> {
    let workload = &results.experiment.workloads[results.plan.cells[cell].workload];
    let interval = workload.kind.params().get("interval_ns");
    let Some(interval_ns) = interval.and_then(serde_json::Value::as_f64) else {
        let arms = arms(table, results, cell, imported_rows);
        return of_time(&arms, IMPORTED).collect();
    };
    let time = Time {
        seconds: interval_ns / NS_PER_SEC,
        whole: (workload.duration_ns as f64 / interval_ns).floor(),
        label: "second of the window",
    };
    let arms = arms(table, results, cell, rows);
    let alpha = 1.0 - results.experiment.stop.confidence;
    let entitled = entitled(&arms, time.seconds * time.whole, time.whole, alpha);
    entitled.into_iter().chain(of_time(&arms, time)).collect()
}

fn arms(table: &Table, results: &ResultSet, cell: usize, read: fn(&Path) -> Vec<Row>) -> Vec<Arm> {
    let arm = |(index, arm): (usize, &ArmInfo)| Arm {
        name: arm.name.clone(),
        color: color_of(table, &arm.name),
        trials: trials(results, cell, index, read),
    };
    table.arms.iter().enumerate().map(arm).collect()
}

fn of_time(arms: &[Arm], time: Time) -> impl Iterator<Item = Figure> {
    let figures = [
        over_time(arms, time, &WORK, false),
        over_time(arms, time, &USE, false),
        over_time(arms, time, &WORK, true),
    ];
    figures.into_iter().flatten()
}

/// The fairness of each arm over the number of workers, for every workload with several numbers.
pub fn across(table: &Table, results: &ResultSet) -> Vec<Figure> {
    let found = fairness_by_count(results).into_iter();
    found
        .filter_map(|of| fairness(table, &of.workload, &of.arms))
        .collect()
}

/// Counts with their fairness, by arm.
type ByCount = Vec<(u64, GeometricMean)>;

fn fairness(table: &Table, workload: &str, arms: &[ByCount]) -> Option<Figure> {
    let series = table.arms.iter().zip(arms).map(|(arm, points)| Series {
        color: color_of(table, &arm.name),
        name: arm.name.clone(),
        points: points
            .iter()
            .map(|(count, mean)| (*count as f64, estimate(mean)))
            .collect(),
        joined: true,
    });
    Some(Figure {
        title: format!("{workload}: fairness over the number of workers of each set"),
        svg: chart::labelled(
            &series.collect::<Vec<_>>(),
            &Labelled {
                x: "workers of each set",
                y: "fairness_percent",
                reference: Some(100.0),
            },
        )?,
        caption: "Jain's index of what the workers got of what each is entitled to: 100 % is the same \
                  share for all. Geometric means over the blocks, with intervals where there are blocks \
                  enough."
            .to_owned(),
    })
}

struct Arm {
    name: String,
    color: usize,
    /// Work by set, of each trial.
    trials: Vec<BTreeMap<String, SetWork>>,
}

impl Arm {
    /// Names of the sets, in the order of their workers, which is that of the experiment.
    fn sets(arms: &[Arm]) -> Vec<String> {
        let trials = arms.iter().flat_map(|arm| &arm.trials);
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, work) in trials.flatten() {
            let worker = work.by_worker.keys().next().copied().unwrap_or(usize::MAX);
            let known = first.entry(name).or_insert(worker);
            *known = worker.min(*known);
        }
        let mut names: Vec<&str> = first.keys().copied().collect();
        names.sort_by_key(|name| first[name]);
        names.into_iter().map(str::to_owned).collect()
    }
}

/// Work of every set beside what it is entitled to, with the interval over trials.
fn entitled(arms: &[Arm], seconds: f64, whole: f64, alpha: f64) -> Option<Figure> {
    let pair = |arm: &Arm, set: &String| {
        let works: Vec<&SetWork> = arm
            .trials
            .iter()
            .filter_map(|trial| trial.get(set))
            .collect();
        let due: Vec<f64> = works.iter().map(|work| work.due_per_sec).collect();
        let got = works.iter().map(|work| {
            let kops: f64 = work.whole(whole).map(|(_, kops)| kops).sum();
            kops / seconds
        });
        let got: Vec<f64> = got.filter(|got| got.is_finite()).collect();
        Some(Pair {
            color: arm.color,
            name: arm.name.clone(),
            due: stats::summary::mean(&due)?,
            got: estimate(&mean(&got, alpha)?),
        })
    };
    let sets = Arm::sets(arms).into_iter();
    let places = sets.map(|set| Place {
        pairs: arms.iter().filter_map(|arm| pair(arm, &set)).collect(),
        name: set,
    });
    Some(Figure {
        title: "Work of each set beside what it is entitled to".to_owned(),
        svg: chart::pairs(&places.collect::<Vec<_>>(), WORK.unit)?,
        caption: "Faint: the max-min fair share by the weights of the threads. Strong: what all \
                  workers of the set got. Geometric means over the trials, with intervals where there \
                  are trials enough; the plain mean of a set that got nothing in one. Higher than the \
                  faint bar: more than the share, taken from others or left by them."
            .to_owned(),
    })
}

/// A set that got nothing in some trial has no geometric mean, and is shown all the same.
fn mean(parts: &[f64], alpha: f64) -> Option<GeometricMean> {
    match parts.contains(&0.0) {
        false => geometric_mean(parts, alpha),
        true => Some(GeometricMean {
            value: stats::summary::mean(parts)?,
            low: None,
            high: None,
            blocks: parts.len(),
        }),
    }
}

/// A quantity that is drawn over time.
struct Quantity {
    name: &'static str,
    unit: &'static str,
    of: fn(Done) -> f64,
}

const WORK: Quantity = Quantity {
    name: "Work",
    unit: "1000 operations/s",
    of: |done| done.kops,
};
const USE: Quantity = Quantity {
    name: "CPU use",
    unit: "CPUs",
    of: |done| done.cpu,
};
/// Lines of a picture of single workers: of more none is told from the others.
const MOST_LINES: usize = 24;

/// Every set, or every worker, in each interval: the mean of all trials of an arm.
fn over_time(arms: &[Arm], time: Time, quantity: &Quantity, each_worker: bool) -> Option<Figure> {
    let names = Arm::sets(arms);
    let mut series = Vec::new();
    for arm in arms {
        for set in &names {
            let works = || arm.trials.iter().filter_map(|trial| trial.get(set));
            let mut line = |name: String, intervals: &dyn Fn(&SetWork) -> Option<Intervals>| {
                series.push(Series {
                    color: arm.color,
                    name,
                    points: means(works().filter_map(intervals), time, quantity),
                    joined: true,
                });
            };
            if !each_worker {
                line(format!("{}, set {set}", arm.name), &|work| {
                    Some(work.got.clone())
                });
                continue;
            }
            let workers = works().flat_map(|work| work.by_worker.keys().copied());
            for worker in workers.collect::<BTreeSet<usize>>() {
                let name = format!("{}, {set}, worker {worker}", arm.name);
                line(name, &|work| work.by_worker.get(&worker).cloned());
            }
        }
    }
    series.retain(|line| line.points.len() > 1);
    if each_worker && (series.len() > MOST_LINES || series.len() <= names.len() * arms.len()) {
        // Too many, or no more than one of each set, which has a line already.
        return None;
    }
    let of = if each_worker { "worker" } else { "set" };
    Some(Figure {
        title: format!("{} of each {of} over time", quantity.name),
        svg: chart::labelled(
            &series,
            &Labelled {
                x: time.label,
                y: quantity.unit,
                reference: None,
            },
        )?,
        caption: match each_worker {
            true => "A line for each arm and worker, the mean of all trials.".to_owned(),
            false => {
                "A line for each arm and set: all workers of the set, the mean of all trials. A \
                      line that falls to the bottom is a set that got nothing for an interval."
                    .to_owned()
            }
        },
    })
}

/// Means over trials in the intervals of full length, at the ends of these.
fn means(
    trials: impl Iterator<Item = Intervals>,
    Time { seconds, whole, .. }: Time,
    quantity: &Quantity,
) -> Vec<(f64, Estimate)> {
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for intervals in trials {
        let intervals = intervals.into_iter();
        for (interval, done) in intervals.filter(|(interval, _)| f64::from(*interval) < whole) {
            let sum = sums.entry(interval).or_default();
            *sum = (sum.0 + (quantity.of)(done) / seconds, sum.1 + 1.0);
        }
    }
    let points = sums.into_iter().map(|(interval, (sum, count))| {
        let end = (f64::from(interval) + 1.0) * seconds;
        (end, Estimate::exact(sum / count))
    });
    points.collect()
}

impl SetWork {
    /// Work in the intervals of full length.
    fn whole(&self, whole: f64) -> impl Iterator<Item = (u32, f64)> + '_ {
        let all = self
            .got
            .iter()
            .map(|(interval, done)| (*interval, done.kops));
        all.filter(move |(interval, _)| f64::from(*interval) < whole)
    }
}

fn estimate(mean: &GeometricMean) -> Estimate {
    Estimate {
        ratio: mean.value,
        low: mean.low.unwrap_or(mean.value),
        high: mean.high.unwrap_or(mean.value),
    }
}

fn trials(
    results: &ResultSet,
    cell: usize,
    arm: usize,
    read: fn(&Path) -> Vec<Row>,
) -> Vec<BTreeMap<String, SetWork>> {
    let sets = counted(results, cell, arm).map(|stored| by_set(&read(&stored.dir)));
    sets.filter(|sets| !sets.is_empty()).collect()
}

fn by_set(rows: &[Row]) -> BTreeMap<String, SetWork> {
    let mut sets: BTreeMap<String, SetWork> = BTreeMap::new();
    let mut counted = Vec::new();
    for row in rows {
        let set = sets.entry(row.set.clone()).or_default();
        let of_worker = set.by_worker.entry(row.worker).or_default();
        for done in [&mut set.got, of_worker].map(|of| of.entry(row.interval).or_default()) {
            done.kops += row.kops;
            done.cpu += row.cpu_ns / NS_PER_SEC;
        }
        // Every row of a worker says what it is entitled to.
        if !counted.contains(&row.worker) {
            counted.push(row.worker);
            set.due_per_sec += row.due_kops_per_sec;
        }
    }
    sets
}

/// Rows of the table of a trial; empty where there is none. A line that is no row is left out: the
/// picture is of what is known.
fn rows(trial: &Path) -> Vec<Row> {
    let file = results::files::read(&trial.join("workers.csv"));
    file.map_or_else(|_| Vec::new(), |text| read(text.as_slice()))
}

fn read(file: impl std::io::Read) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(file);
    let Ok(heads) = reader.headers().cloned() else {
        return Vec::new();
    };
    let at = |name| heads.iter().position(|head| head == name);
    let (worker, set, interval) = (at("worker"), at("set"), at("interval"));
    let (kops, cpu, due) = (at("kops"), at("cpu_ns"), at("due_kops_per_sec"));
    let row = |line: csv::StringRecord| {
        Some(Row {
            set: line.get(set?)?.to_owned(),
            worker: line.get(worker?)?.parse().ok()?,
            interval: line.get(interval?)?.parse().ok()?,
            kops: line.get(kops?)?.parse().ok()?,
            cpu_ns: line.get(cpu?)?.parse().ok()?,
            due_kops_per_sec: line.get(due?)?.parse().ok()?,
        })
    };
    reader
        .records()
        .filter_map(Result::ok)
        .filter_map(row)
        .collect()
}

/// Rows of the table of an import: each window of a worker by its number, with its rates.
fn imported_rows(trial: &Path) -> Vec<Row> {
    let file = results::files::read(&trial.join("windows.csv"));
    file.map_or_else(|_| Vec::new(), |text| read_windows(text.as_slice()))
}

fn read_windows(file: impl std::io::Read) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(file);
    let mut next: BTreeMap<(String, usize), u32> = BTreeMap::new();
    let mut rows = Vec::new();
    for line in reader.deserialize::<WindowLine>().flatten() {
        let of_worker = next.entry((line.set.clone(), line.worker));
        let interval = of_worker.or_default();
        rows.push(Row {
            set: line.set,
            worker: line.worker,
            interval: *interval,
            kops: line.throughput,
            cpu_ns: line.utilization * NS_PER_SEC,
            due_kops_per_sec: 0.0,
        });
        *interval += 1;
    }
    // Beyond the last window that all workers of a set have, its work would be that of some.
    let mut common: BTreeMap<String, u32> = BTreeMap::new();
    for ((set, _), windows) in next {
        let least = common.entry(set).or_insert(windows);
        *least = windows.min(*least);
    }
    rows.retain(|row| row.interval < common[&row.set]);
    rows
}

/// A line of `windows.csv`.
#[derive(serde::Deserialize)]
struct WindowLine {
    set: String,
    worker: usize,
    throughput: f64,
    utilization: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "worker,set,interval,kops,cpu_ns,late_ns,due_kops_per_sec,weight\n\
                         0,A,0,100,1,1,150.0,1024\n0,A,1,50,1,1,150.0,1024\n\
                         1,A,0,70,1,1,150.0,1024\n2,B,0,9,1,1,20.0,15\nx,B,0,9,1,1,20.0,15\n";

    #[test]
    fn work_is_added_up_by_set_and_interval_and_entitlement_by_worker() {
        let sets = by_set(&read(TABLE.as_bytes()));
        assert_eq!(sets["A"].due_per_sec, 300.0);
        let kops =
            |intervals: &Intervals| -> Vec<f64> { intervals.values().map(|d| d.kops).collect() };
        assert_eq!(kops(&sets["A"].got), [170.0, 50.0]);
        assert_eq!(kops(&sets["A"].by_worker[&1]), [70.0]);
        assert_eq!(sets["B"].due_per_sec, 20.0);
        assert!(rows(Path::new("/nowhere")).is_empty());
    }

    #[test]
    fn sets_have_the_order_of_their_workers() {
        let file = TABLE.replace(",A,", ",steady,").replace(",B,", ",fast,");
        let arm = Arm {
            name: "default".to_owned(),
            color: 0,
            trials: vec![by_set(&read(file.as_bytes()))],
        };
        assert_eq!(Arm::sets(&[arm]), ["steady", "fast"]);
    }

    #[test]
    fn a_picture_has_every_set_and_the_share_that_each_is_entitled_to() {
        let arm = |name: &str, color| Arm {
            name: name.to_owned(),
            color,
            trials: vec![by_set(&read(TABLE.as_bytes())); 6],
        };
        let arms = [arm("default", 0), arm("batch", 1)];
        let figure = entitled(&arms, 1.0, 1.0, 0.05).unwrap();
        for part in [
            ">A<",
            ">B<",
            "A: entitled to 300",
            "batch, A: got 170, 56.7 % of it",
        ] {
            assert!(figure.svg.contains(part), "{part} in {}", figure.svg);
        }
        let time = Time {
            seconds: 1.0,
            whole: 2.0,
            label: "second of the window",
        };
        let use_of_sets = over_time(&arms, time, &USE, false).unwrap();
        assert_eq!(use_of_sets.title, "CPU use of each set over time");
        assert!(use_of_sets.svg.contains(">CPUs<"), "{}", use_of_sets.svg);
        // Of A only one worker has two intervals, so there is no line that sets have not.
        assert!(over_time(&arms, time, &WORK, true).is_none());
    }

    #[test]
    fn windows_of_an_import_are_drawn_by_their_number() {
        let text = "set,worker,now_ns,throughput,utilization,lateness_max_ns\n\
                    0,0,1200000000,100,0.5,9\n0,0,2200000000,60,0.25,9\n\
                    0,1,1900000000,40,0.2,9\n0,1,2900000000,30,0.1,9\nx\n\
                    0,0,3200000000,80,0.4,9\n\
                    1,0,1000000000,7,0.1,9\n1,0,2000000000,0,0,9\n";
        let sets = by_set(&read_windows(text.as_bytes()));
        // The third window of one of two workers is not one of their set.
        let kops: Vec<f64> = sets["0"].got.values().map(|done| done.kops).collect();
        assert_eq!(kops, [140.0, 90.0]);
        let arm = Arm {
            name: "credit".to_owned(),
            color: 0,
            trials: vec![sets],
        };
        let titles: Vec<String> = of_time(&[arm], IMPORTED).map(|f| f.title).collect();
        let work = "Work of each set over time";
        let all = [
            work,
            "CPU use of each set over time",
            "Work of each worker over time",
        ];
        assert_eq!(titles, all);
    }
}
