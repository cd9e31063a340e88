//! The JSON file of schedbench: `Runs`, each with its `WorkerSets` and, once it was completed,
//! the reports of all workers (`Results.Raw`): cumulative thousands of operations, CPU time and
//! the worst lateness, in nanoseconds.
//!
//! The figures of windows, workers and sets follow the tool's own formulas, with one difference: a
//! window without any work counts as 0 in the least of all windows, where the tool forgets it and
//! all windows before it.

use crate::files::file_text;
use crate::{ImportError, Imported, Place, Run, make_figure};
use model::{Better, Load, Measurement, Severity, TrialFile, Warning};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const REMEDY: &str = "give the file that `schedbench run` left, whole: .NAME.tmp beside it may be an \
                      earlier one";
/// Workers of a run beyond which no file of the tool goes.
const MOST_WORKERS: usize = 100_000;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Benchmark {
    #[serde(default)]
    runs: Option<Vec<BenchmarkRun>>,
    #[serde(default)]
    run_config: RunConfig,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct RunConfig {
    scheduler: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct BenchmarkRun {
    label: String,
    worker_sets: Vec<WorkerSet>,
    #[serde(default)]
    scheduler: String,
    #[serde(default)]
    numa_disable: Option<bool>,
    #[serde(default)]
    completed: bool,
    #[serde(default)]
    results: Results,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WorkerSet {
    params: WorkerParams,
    count: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct WorkerParams {
    #[serde(default)]
    args: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "PascalCase", default)]
struct Results {
    raw: Option<Vec<Report>>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "PascalCase")]
struct Report {
    id: WorkerId,
    now: i64,
    kops: i64,
    #[serde(default)]
    max_delta: i64,
    #[serde(default)]
    cputime: i64,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "PascalCase")]
struct WorkerId {
    set: usize,
    id: usize,
}

/// Reads files.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    for path in paths {
        let read = file_text(path).and_then(|text| read_text(path, &text, &mut imported));
        if let Err(fault) = read {
            imported.faults.push(fault);
        }
    }
    Ok(imported)
}

/// Reads the text of one file.
pub fn read_text(path: &Path, text: &str, imported: &mut Imported) -> Result<(), ImportError> {
    if text.trim().is_empty() {
        return Err(ImportError::in_file(path, "the file is empty", REMEDY));
    }
    let benchmark: Benchmark =
        serde_json::from_str(text).map_err(|e| ImportError::in_json(path, &e, REMEDY))?;
    let runs = benchmark.runs.unwrap_or_default();
    if runs.is_empty() {
        return Err(ImportError::in_file(
            path,
            "there are no Runs in it: it is a template, or was planned and not run",
            "give the file after `schedbench run`",
        ));
    }
    for run in &runs {
        let label = run.label.trim();
        if !run.completed {
            imported.warnings.push(Warning {
                severity: Severity::Caution,
                what: format!("The run `{label}` was not completed, and is left out."),
                remedy: String::new(),
            });
            continue;
        }
        match of_run(path, run, &benchmark.run_config) {
            Ok(run) => imported.add_run(run),
            Err(what) => {
                let what = format!("run `{label}`: {what}");
                imported
                    .faults
                    .push(ImportError::in_file(path, what, REMEDY));
            }
        }
    }
    Ok(())
}

fn of_run(path: &Path, run: &BenchmarkRun, general: &RunConfig) -> Result<Run, String> {
    let workers = workers(run)?;
    let sets: Vec<Set> = (0..run.worker_sets.len())
        .map(|set| Set::of(workers.iter().filter(|w| w.id.set == set)))
        .collect();
    let scheduler = match run.scheduler.as_str() {
        "" => general.scheduler.as_str(),
        own => own,
    };
    let (arm, place) = arm_and_place(run, scheduler);
    Ok(Run {
        metrics: metrics(run, &workers, &sets),
        elapsed_ns: workers.iter().map(Worker::elapsed_ns).max().unwrap_or(0),
        files: vec![
            sets_file(run, &sets),
            workers_file(&workers),
            windows_file(&workers),
        ],
        ..Run::new(&arm, place, format!("{}: {}", path.display(), run.label))
    })
}

/// The label without what the arm says: `A 4 + B 4` of `A 4 + B 4 credit2 NumaOff`.
fn arm_and_place(run: &BenchmarkRun, scheduler: &str) -> (String, Place) {
    let mut arm = match scheduler {
        "" => "scheduler as it was",
        scheduler => scheduler,
    }
    .to_owned();
    let mut label = run.label.trim();
    if let Some(off) = run.numa_disable {
        let word = if off { "NumaOff" } else { "NumaOn" };
        arm = format!("{arm} {word}");
        label = label.strip_suffix(word).unwrap_or(label).trim();
    }
    label = label.strip_suffix(scheduler).unwrap_or(label).trim();
    let count = run.worker_sets.iter().map(|set| set.count as u64).sum();
    let place = Place {
        workload: format!("schedbench {label}").trim().to_owned(),
        benchmark: "schedbench".to_owned(),
        load: crate::files::load_from_count(Some(count)),
        load_name: String::new(),
    };
    let place = match label {
        "" => Place {
            load: Load::One,
            ..place
        },
        _ => place,
    };
    (arm, place)
}

/// Reports of one worker, and its windows: from each report to the next.
struct Worker {
    id: WorkerId,
    reports: Vec<Report>,
}

impl Worker {
    fn ends(&self) -> Option<(&Report, &Report)> {
        self.reports.first().zip(self.reports.last())
    }

    fn elapsed_ns(&self) -> u64 {
        let ends = self.ends().map(|(first, last)| last.now - first.now);
        ends.unwrap_or(0).unsigned_abs()
    }

    /// Thousands of operations in a second. The tool counts what was done before the first report
    /// too, and so does this.
    fn throughput(&self) -> f64 {
        self.ends().map_or(0.0, |(first, last)| {
            last.kops as f64 / ((last.now - first.now) as f64 / 1e9)
        })
    }

    /// CPUs in use.
    fn utilization(&self) -> f64 {
        self.ends().map_or(0.0, |(first, last)| {
            (last.cputime - first.cputime) as f64 / (last.now - first.now) as f64
        })
    }

    /// Throughput and CPU use of each window.
    fn windows(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.reports.windows(2).map(|pair| {
            let ns = (pair[1].now - pair[0].now) as f64;
            let kops = (pair[1].kops - pair[0].kops) as f64;
            let cpu = (pair[1].cputime - pair[0].cputime) as f64;
            (kops / (ns / 1e9), cpu / ns)
        })
    }
}

fn workers(run: &BenchmarkRun) -> Result<Vec<Worker>, String> {
    let count: usize = run.worker_sets.iter().map(|set| set.count).sum();
    if count > MOST_WORKERS {
        return Err(format!("{count} workers are more than the tool can have"));
    }
    let mut found: BTreeMap<WorkerId, Vec<Report>> = BTreeMap::new();
    for report in run.results.raw.iter().flatten() {
        let WorkerId { set, id } = report.id;
        let known = run.worker_sets.get(set).is_some_and(|of| id < of.count);
        if !known {
            return Err(format!(
                "there is a report of worker {set}:{id}, which it does not have"
            ));
        }
        let limit = i64::MAX / 4;
        let values = [report.now, report.kops, report.cputime, report.max_delta];
        if values.iter().any(|value| !(0..limit).contains(value)) {
            return Err(format!(
                "a report of worker {set}:{id} has a value out of range"
            ));
        }
        let reports = found.entry(report.id).or_default();
        if reports.last().is_some_and(|last| {
            last.now >= report.now || last.kops > report.kops || last.cputime > report.cputime
        }) {
            return Err(format!(
                "the reports of worker {set}:{id} go back: the file mixes two runs"
            ));
        }
        reports.push(*report);
    }
    let short = found.iter().find(|(_, reports)| reports.len() < 2);
    if let Some((WorkerId { set, id }, _)) = short {
        return Err(format!(
            "worker {set}:{id} has one report only, so it has no window"
        ));
    }
    if found.len() < count {
        return Err(format!(
            "only {} of its {count} workers reported",
            found.len()
        ));
    }
    let workers = found
        .into_iter()
        .map(|(id, reports)| Worker { id, reports });
    Ok(workers.collect())
}

/// A figure of the workers of a set, and of all of their windows.
#[derive(Default)]
struct Column {
    total: f64,
    average: f64,
    deviation: f64,
    most: f64,
    least: f64,
    window_most: f64,
    window_least: f64,
}

impl Column {
    fn of(workers: &[f64], windows: &[f64]) -> Self {
        let count = workers.len().max(1) as f64;
        let total: f64 = workers.iter().sum();
        let average = total / count;
        let squares: f64 = workers.iter().map(|value| (value - average).powi(2)).sum();
        Column {
            total,
            average,
            deviation: (squares / count).sqrt(),
            most: most(workers),
            least: least(workers),
            window_most: most(windows),
            window_least: least(windows),
        }
    }

    fn row(&self) -> String {
        let values = [
            self.total,
            self.average,
            self.deviation,
            self.most,
            self.least,
            self.window_most,
            self.window_least,
        ];
        values.map(|value| format!(",{value:.6}")).concat()
    }
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::max).unwrap_or(0.0)
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().reduce(f64::min).unwrap_or(0.0)
}

/// Throughput and CPU use of one set.
struct Set {
    throughput: Column,
    utilization: Column,
}

impl Set {
    fn of<'a>(workers: impl Iterator<Item = &'a Worker>) -> Self {
        let workers: Vec<&Worker> = workers.collect();
        let of = |figure: fn(&Worker) -> f64| -> Vec<f64> {
            workers.iter().map(|worker| figure(worker)).collect()
        };
        let windows = workers.iter().flat_map(|worker| worker.windows());
        let (kops, cpu): (Vec<f64>, Vec<f64>) = windows.unzip();
        Set {
            throughput: Column::of(&of(Worker::throughput), &kops),
            utilization: Column::of(&of(Worker::utilization), &cpu),
        }
    }
}

/// The metrics of `burnwait` that the reports give, and the throughput of each set.
fn metrics(run: &BenchmarkRun, workers: &[Worker], sets: &[Set]) -> Vec<Measurement> {
    let sum = |of: fn(&Set) -> f64| sets.iter().map(of).sum::<f64>();
    let late = workers.iter().flat_map(|worker| &worker.reports);
    let late = late.map(|report| report.max_delta).max().unwrap_or(0);
    let mut metrics = vec![
        make_figure(
            "work_per_sec",
            "1/s",
            Better::Higher,
            sum(|s| s.throughput.total),
        ),
        make_figure(
            "cpu_percent",
            "%",
            Better::Neither,
            100.0 * sum(|s| s.utilization.total),
        ),
        make_figure("lateness_max", "ns", Better::Lower, late as f64),
    ];
    for (index, set) in sets
        .iter()
        .enumerate()
        .filter(|_| run.worker_sets.len() > 1)
    {
        let name = format!("work_per_sec_set{index}");
        metrics.push(make_figure(
            &name,
            "1/s",
            Better::Higher,
            set.throughput.total,
        ));
    }
    metrics
}

/// The classic table, with the columns of `burnwait`.
fn sets_file(run: &BenchmarkRun, sets: &[Set]) -> TrialFile {
    let mut text = "set,workers,ttotal,tavgavg,tstdev,tavgmax,tavgmin,ttotmax,ttotmin,\
                    utotal,uavgavg,ustdev,uavgmax,uavgmin,utotmax,utotmin,args\n"
        .to_owned();
    for (index, (set, of)) in sets.iter().zip(&run.worker_sets).enumerate() {
        let args = of.params.args.as_deref().unwrap_or_default().join(" ");
        let args = args.replace(['"', ',', '\n'], " ");
        let (t, u) = (set.throughput.row(), set.utilization.row());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{index},{}{t}{u},{args}", of.count);
    }
    TrialFile {
        name: "sets.csv".to_owned(),
        text,
    }
}

/// Figures that the tool prints of each worker, under its names, and the worst lateness.
fn workers_file(workers: &[Worker]) -> TrialFile {
    let mut text =
        "set,worker,toput,time,cpu,tavg,tmin,tmax,uavg,umin,umax,lateness_max_ns\n".to_owned();
    for worker in workers {
        let WorkerId { set, id } = worker.id;
        let Some((first, last)) = worker.ends() else {
            continue;
        };
        let (throughput, utilization): (Vec<f64>, Vec<f64>) = worker.windows().unzip();
        let values = [
            (last.now - first.now) as f64 / 1e9,
            (last.cputime - first.cputime) as f64 / 1e9,
            worker.throughput(),
            least(&throughput),
            most(&throughput),
            worker.utilization(),
            least(&utilization),
            most(&utilization),
        ];
        let values = values.map(|value| format!(",{value:.6}")).concat();
        let late = worker.reports.iter().map(|report| report.max_delta).max();
        let (kops, late) = (last.kops, late.unwrap_or(0));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{set},{id},{kops}{values},{late}");
    }
    TrialFile {
        name: "workers.csv".to_owned(),
        text,
    }
}

/// Each window of each worker by its end.
fn windows_file(workers: &[Worker]) -> TrialFile {
    let mut text = "set,worker,now_ns,throughput,utilization,lateness_max_ns\n".to_owned();
    for worker in workers {
        let WorkerId { set, id } = worker.id;
        for (end, (t, u)) in worker.reports.iter().skip(1).zip(worker.windows()) {
            let (now, late) = (end.now, end.max_delta);
            let _ = writeln!(text, "{set},{id},{now},{t:.6},{u:.6},{late}");
        }
    }
    TrialFile {
        name: "windows.csv".to_owned(),
        text,
    }
}
