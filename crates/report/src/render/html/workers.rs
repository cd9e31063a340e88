//! Pictures of workers that burn and wait: what each set got of what it is entitled to, when it got
//! it, and how the fairness changes with their number. From the `workers.csv` of the trials; of
//! imported ones, from their `windows.csv`.

use super::charts::Figure;
use super::view::color_of;
use crate::render::chart::{self, Estimate, Labelled, Pair, Place, Series};
use crate::table::across::{GeometricMean, counted_trials, fairness_by_count, geometric_mean};
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
    /// Place of the set among those of the table.
    place: usize,
    /// Sums over its workers.
    got: Intervals,
    /// Figures of each of its workers, by its number within the set.
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
    let params = workload.kind.params();
    let interval = params.get("interval_ns");
    let Some(interval_ns) = interval.and_then(serde_json::Value::as_f64) else {
        let arms = arms(table, results, cell, imported_rows);
        return of_time(&arms, &Arm::sets(&arms, &[]), IMPORTED).collect();
    };
    let time = Time {
        seconds: interval_ns / NS_PER_SEC,
        whole: (workload.duration_ns as f64 / interval_ns).floor(),
        label: "second of the window",
    };
    let arms = arms(table, results, cell, rows);
    let sets = Arm::sets(&arms, &planned(params.get("sets")));
    let alpha = 1.0 - results.experiment.stop.confidence;
    let entitled = entitled(&arms, &sets, time, alpha);
    let of_time = of_time(&arms, &sets, time);
    entitled.into_iter().chain(of_time).collect()
}

/// Names of the sets in the order of the experiment.
fn planned(sets: Option<&serde_json::Value>) -> Vec<String> {
    let sets = sets.and_then(serde_json::Value::as_array);
    let names = sets.into_iter().flatten().filter_map(|set| {
        let name = set.get("name")?.as_str()?;
        Some(name.to_owned())
    });
    names.collect()
}

fn arms(table: &Table, results: &ResultSet, cell: usize, read: fn(&Path) -> Vec<Row>) -> Vec<Arm> {
    let arm = |(index, arm): (usize, &ArmInfo)| Arm {
        name: arm.name.clone(),
        color: color_of(table, &arm.name),
        trials: trials(results, cell, index, read),
    };
    table.arms.iter().enumerate().map(arm).collect()
}

fn of_time(arms: &[Arm], sets: &[String], time: Time) -> impl Iterator<Item = Figure> {
    let figures = [
        sets_over_time(arms, sets, time, &WORK),
        sets_over_time(arms, sets, time, &USE),
        workers_over_time(arms, sets, time, &WORK),
        workers_over_time(arms, sets, time, &USE),
    ];
    figures.into_iter().flatten()
}

/// The fairness of each arm over the number of workers, for every workload with several numbers.
pub fn draw_fairness(table: &Table, results: &ResultSet) -> Vec<Figure> {
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
        svg: chart::draw_labelled(
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
    /// Names of the sets in the order in which they were planned; of others, in that of the tables.
    /// Tables alone do not tell: older ones begin with the set that the seed of the trial chose.
    fn sets(arms: &[Arm], planned: &[String]) -> Vec<String> {
        let trials = arms.iter().flat_map(|arm| &arm.trials);
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, work) in trials.flatten() {
            let known = first.entry(name).or_insert(work.place);
            *known = work.place.min(*known);
        }
        let of_plan = |name: &str| planned.iter().position(|known| known == name);
        let mut names: Vec<&str> = first.keys().copied().collect();
        names.sort_by_key(|&name| (of_plan(name).unwrap_or(usize::MAX), first[name]));
        names.into_iter().map(str::to_owned).collect()
    }
}

/// Work of every set beside what it is entitled to, with the interval over trials.
fn entitled(arms: &[Arm], sets: &[String], time: Time, alpha: f64) -> Option<Figure> {
    let seconds = time.seconds * time.whole;
    let pair = |arm: &Arm, set: &String| {
        let works: Vec<&SetWork> = arm
            .trials
            .iter()
            .filter_map(|trial| trial.get(set))
            .collect();
        let due: Vec<f64> = works.iter().map(|work| work.due_per_sec).collect();
        let got = works.iter().map(|work| {
            let kops: f64 = work.whole(time.whole).map(|(_, kops)| kops).sum();
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
    let places = sets.iter().map(|set| Place {
        pairs: arms.iter().filter_map(|arm| pair(arm, set)).collect(),
        name: set.clone(),
    });
    Some(Figure {
        title: "Work of each set beside what it is entitled to".to_owned(),
        svg: chart::draw_pairs(&places.collect::<Vec<_>>(), WORK.unit)?,
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
    /// What somebody did who has much of it.
    did: &'static str,
    unit: &'static str,
    of: fn(Done) -> f64,
}

const WORK: Quantity = Quantity {
    name: "Work",
    did: "did",
    unit: "1000 operations/s",
    of: |done| done.kops,
};
const USE: Quantity = Quantity {
    name: "CPU use",
    did: "used",
    unit: "CPUs",
    of: |done| done.cpu,
};
/// Lines of a picture of single workers: of more none is told from the others.
const MOST_LINES: usize = 24;
/// Points of a picture: more are closer than eyes tell apart, and each takes memory.
const MOST_POINTS: usize = 10_000;

/// Every set in each interval: the mean of all trials of an arm.
fn sets_over_time(
    arms: &[Arm],
    sets: &[String],
    time: Time,
    quantity: &Quantity,
) -> Option<Figure> {
    let mut series = Vec::new();
    for arm in arms {
        for set in sets {
            let name = format!("{}, set {set}", arm.name);
            let got = |work: &SetWork| Some(work.got.clone());
            series.extend(line((arm, set.as_str()), name, time, quantity, got));
        }
    }
    let title = format!("{} of each set over time", quantity.name);
    let caption = "A line for each arm and set: all workers of the set, the mean of all trials. A \
                   line that falls to the bottom is a set that got nothing for an interval.";
    figure(title, caption.to_owned(), &series, time, quantity)
}

/// Every worker in each interval: the mean of all trials of an arm. Where there are too many of them,
/// those with the least and the most.
fn workers_over_time(
    arms: &[Arm],
    sets: &[String],
    time: Time,
    quantity: &Quantity,
) -> Option<Figure> {
    let mut of_sets: Vec<Vec<Series>> = Vec::new();
    for arm in arms {
        of_sets.extend(sets.iter().map(|set| of_workers(arm, set, time, quantity)));
    }
    let count = of_sets.iter().map(Vec::len).sum::<usize>();
    if count <= of_sets.len() {
        // No more than one of each set, which has a line already.
        return None;
    }
    let are_too_many = count > MOST_LINES;
    if are_too_many {
        of_sets.iter_mut().for_each(keep_least_and_most);
    }
    let series: Vec<Series> = of_sets.into_iter().flatten().collect();
    if series.len() > MOST_LINES {
        return None;
    }
    let (of, caption) = match are_too_many {
        false => (
            "each worker",
            "A line for each arm and worker, the mean of all trials.".to_owned(),
        ),
        true => (
            "single workers",
            format!(
                "A line for each worker that {} the least or the most of its set under an arm, \
                 the mean of all trials: of all {count}, none could be told from the others.",
                quantity.did
            ),
        ),
    };
    let title = format!("{} of {of} over time", quantity.name);
    figure(title, caption, &series, time, quantity)
}

/// Lines of every worker of a set.
fn of_workers(arm: &Arm, set: &str, time: Time, quantity: &Quantity) -> Vec<Series> {
    let works = arm.trials.iter().filter_map(|trial| trial.get(set));
    let workers = works.flat_map(|work| work.by_worker.keys().copied());
    let workers: BTreeSet<usize> = workers.collect();
    let of_worker = |worker: usize| {
        let name = format!("{}, {set}, worker {worker}", arm.name);
        let own = |work: &SetWork| work.by_worker.get(&worker).cloned();
        line((arm, set), name, time, quantity, own)
    };
    workers.into_iter().filter_map(of_worker).collect()
}

/// Leaves the line with the least in all and that with the most.
fn keep_least_and_most(lines: &mut Vec<Series>) {
    let sum = |line: &Series| -> f64 { line.points.iter().map(|(_, rate)| rate.ratio).sum() };
    lines.sort_by(|one, other| sum(one).total_cmp(&sum(other)));
    let most = lines.pop();
    lines.truncate(1);
    lines.extend(most);
}

/// A line over the intervals: the mean of all trials in which the set has it. None where it would be
/// a point.
fn line(
    (arm, set): (&Arm, &str),
    name: String,
    time: Time,
    quantity: &Quantity,
    of: impl Fn(&SetWork) -> Option<Intervals>,
) -> Option<Series> {
    let works = arm.trials.iter().filter_map(|trial| trial.get(set));
    let points = means(works.filter_map(of), time, quantity);
    (points.len() > 1).then_some(Series {
        color: arm.color,
        name,
        points,
        joined: true,
    })
}

fn figure(
    title: String,
    caption: String,
    series: &[Series],
    time: Time,
    quantity: &Quantity,
) -> Option<Figure> {
    let of = Labelled {
        x: time.label,
        y: quantity.unit,
        reference: None,
    };
    let points: usize = series.iter().map(|line| line.points.len()).sum();
    let step = points.div_ceil(MOST_POINTS);
    if step <= 1 {
        let svg = chart::draw_labelled(series, &of)?;
        return Some(Figure {
            title,
            svg,
            caption,
        });
    }
    // Two points of each line at least stay.
    if series.len() > MOST_POINTS / 2 {
        return None;
    }
    let fewer: Vec<Series> = series.iter().map(|line| thinned(line, step)).collect();
    Some(Figure {
        title,
        svg: chart::draw_labelled(&fewer, &of)?,
        caption: format!("{caption} Each point is the mean of {step} intervals."),
    })
}

/// The same line with a point for so many of its points: their mean, at the last of them.
fn thinned(line: &Series, step: usize) -> Series {
    let mean = |points: &[(f64, Estimate)]| {
        let sum: f64 = points.iter().map(|(_, rate)| rate.ratio).sum();
        let end = points.last().map_or(0.0, |(end, _)| *end);
        (end, Estimate::without_interval(sum / points.len() as f64))
    };
    Series {
        color: line.color,
        name: line.name.clone(),
        points: line.points.chunks(step).map(mean).collect(),
        joined: line.joined,
    }
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
        (end, Estimate::without_interval(sum / count))
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
    let sets = counted_trials(results, cell, arm).map(|stored| by_set(&read(&stored.dir)));
    sets.filter(|sets| !sets.is_empty()).collect()
}

fn by_set(rows: &[Row]) -> BTreeMap<String, SetWork> {
    let mut sets: BTreeMap<String, SetWork> = BTreeMap::new();
    for row in rows {
        let place = sets.len();
        let set = sets.entry(row.set.clone()).or_insert_with(|| SetWork {
            place,
            ..SetWork::default()
        });
        // Every row of a worker says what it is entitled to.
        if !set.by_worker.contains_key(&row.worker) {
            set.due_per_sec += row.due_kops_per_sec;
        }
        let of_worker = set.by_worker.entry(row.worker).or_default();
        for done in [&mut set.got, of_worker].map(|of| of.entry(row.interval).or_default()) {
            done.kops += row.kops;
            done.cpu += row.cpu_ns / NS_PER_SEC;
        }
    }
    // Tables count all workers together, and older ones in the order of their start or end, which is
    // another in each trial: only its number within the set can be the same worker.
    for set in sets.values_mut() {
        let workers = std::mem::take(&mut set.by_worker).into_values();
        set.by_worker = workers.enumerate().collect();
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
        assert_eq!(kops(&sets["B"].by_worker[&0]), [9.0]);
        assert_eq!(sets["B"].due_per_sec, 20.0);
        assert!(rows(Path::new("/nowhere")).is_empty());
    }

    fn arm(name: &str, color: usize, trials: Vec<BTreeMap<String, SetWork>>) -> Arm {
        Arm {
            name: name.to_owned(),
            color,
            trials,
        }
    }

    /// A trial whose table has these workers in this order, by set and work in each of two intervals.
    fn trial(workers: &[(&str, u32)]) -> BTreeMap<String, SetWork> {
        let mut text = TABLE.lines().next().unwrap().to_owned();
        for (worker, (set, kops)) in workers.iter().enumerate() {
            for interval in 0..2 {
                text += &format!("\n{worker},{set},{interval},{kops},1,1,9.0,1024");
            }
        }
        by_set(&read(text.as_bytes()))
    }

    const TWO_SECONDS: Time = Time {
        seconds: 1.0,
        whole: 2.0,
        label: "second of the window",
    };

    #[test]
    fn sets_have_the_order_of_the_plan_or_of_the_tables() {
        let file = TABLE.replace(",A,", ",steady,").replace(",B,", ",fast,");
        let one = [arm("default", 0, vec![by_set(&read(file.as_bytes()))])];
        assert_eq!(Arm::sets(&one, &[]), ["steady", "fast"]);
        // Each set was the first to start in one of two trials.
        let trials = [["a", "b"], ["b", "a"]].map(|sets| trial(&sets.map(|set| (set, 1))));
        let params = serde_json::json!([{"name": "b"}, {"name": "a"}, {"name": "idle"}]);
        let arms = [arm("default", 0, trials.into())];
        assert_eq!(Arm::sets(&arms, &planned(Some(&params))), ["b", "a"]);
        assert!(planned(None).is_empty());
    }

    #[test]
    fn a_worker_has_one_line_whichever_set_was_the_first_to_start() {
        let trials = vec![
            trial(&[("A", 10), ("B", 30), ("A", 0), ("B", 40)]),
            trial(&[("B", 30), ("A", 10), ("B", 40), ("A", 0)]),
        ];
        let arms = [arm("default", 0, trials)];
        let sets = Arm::sets(&arms, &[]);
        let svg = workers_over_time(&arms, &sets, TWO_SECONDS, &WORK)
            .unwrap()
            .svg;
        // The second of A got nothing, which no other worker makes up for.
        let points = [
            "default, A, worker 0, 1: 10",
            "default, A, worker 1, 1: 0",
            "default, B, worker 1, 2: 40",
        ];
        for point in points {
            assert!(svg.contains(point), "{point} in {svg}");
        }
        assert!(!svg.contains("worker 2"), "{svg}");
    }

    #[test]
    fn of_too_many_workers_those_with_the_least_and_the_most_work_are_drawn() {
        let eight = [30, 20, 10, 20, 30, 40, 30, 20];
        let workers = eight.map(|kops| [("A", kops), ("B", 100 - kops)]);
        let both = || vec![trial(workers.as_flattened())];
        let arms = [arm("default", 0, both()), arm("batch", 1, both())];
        let sets = Arm::sets(&arms, &[]);
        let figure = workers_over_time(&arms, &sets, TWO_SECONDS, &WORK).unwrap();
        for arm in ["default", "batch"] {
            for drawn in ["A, worker 2, 1: 10", "A, worker 5, 1: 40"] {
                let point = format!("{arm}, {drawn}");
                assert!(figure.svg.contains(&point), "{point} in {}", figure.svg);
            }
        }
        assert!(figure.svg.contains("default, B, worker 2, 1: 90"));
        assert!(!figure.svg.contains("worker 0"), "{}", figure.svg);
        assert!(figure.caption.contains("of all 32, none"));
        // A few have a line each.
        let figure = workers_over_time(&arms[..1], &sets, TWO_SECONDS, &WORK).unwrap();
        assert!(figure.svg.contains("default, A, worker 0, 1: 30"));
    }

    #[test]
    fn a_picture_has_every_set_and_the_share_that_each_is_entitled_to() {
        let trials = || vec![by_set(&read(TABLE.as_bytes())); 6];
        let arms = [arm("default", 0, trials()), arm("batch", 1, trials())];
        let sets = Arm::sets(&arms, &[]);
        let one_second = Time {
            whole: 1.0,
            ..TWO_SECONDS
        };
        let figure = entitled(&arms, &sets, one_second, 0.05).unwrap();
        for part in [
            ">A<",
            ">B<",
            "A: entitled to 300",
            "batch, A: got 170, 56.7 % of it",
        ] {
            assert!(figure.svg.contains(part), "{part} in {}", figure.svg);
        }
        let use_of_sets = sets_over_time(&arms, &sets, TWO_SECONDS, &USE).unwrap();
        assert_eq!(use_of_sets.title, "CPU use of each set over time");
        assert!(use_of_sets.svg.contains(">CPUs<"), "{}", use_of_sets.svg);
        // Of A only one worker has two intervals, so there is no line that sets have not.
        assert!(workers_over_time(&arms, &sets, TWO_SECONDS, &WORK).is_none());
    }

    #[test]
    fn a_picture_of_many_intervals_has_means_of_several() {
        let got = (0..u32::try_from(3 * MOST_POINTS).unwrap()).map(|interval| {
            let done = Done {
                kops: f64::from(interval % 3),
                cpu: 0.0,
            };
            (interval, done)
        });
        let work = SetWork {
            got: got.collect(),
            ..SetWork::default()
        };
        let set = BTreeMap::from([("A".to_owned(), work)]);
        let arms = [arm("default", 0, vec![set])];
        let figure = sets_over_time(&arms, &["A".to_owned()], IMPORTED, &WORK).unwrap();
        assert!(figure.caption.ends_with("the mean of 3 intervals."));
        assert!(
            figure.svg.contains("default, set A, 3: 1"),
            "the mean of 0, 1 and 2"
        );
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
        let arms = [arm("credit", 0, vec![sets])];
        let sets = Arm::sets(&arms, &[]);
        let titles: Vec<String> = of_time(&arms, &sets, IMPORTED).map(|f| f.title).collect();
        let work = "Work of each set over time";
        let all = [
            work,
            "CPU use of each set over time",
            "Work of each worker over time",
            "CPU use of each worker over time",
        ];
        assert_eq!(titles, all);
    }
}
