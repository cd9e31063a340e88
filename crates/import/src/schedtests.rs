//! The logs of schedtests, of both forks: `BENCHMARK/CASE/LOAD/RUN.log` below `results/`
//! (loads are `group-8`) or `logs/` (loads are `8-groups`), one figure a line; beside each log a
//! directory `RUN/` with all that the benchmark printed.
//!
//! The tool appends to what an earlier run of the same name left. Such logs hold two runs, and
//! are refused.

use crate::files::{
    self, file_text, first_number, list_directories, list_entries, natural_key, parse_number,
};
use crate::{ImportError, Imported, Place, Run, of_parts};
use model::{Better, Severity, Warning};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A benchmark, and its figure as the tool takes it from the output.
struct Benchmark {
    name: &'static str,
    metric: &'static str,
    unit: &'static str,
    better: Better,
    /// Factor from the figure to the unit.
    factor: f64,
    /// True if each of the pairs of a load gives a figure of its own.
    of_pairs: bool,
}

const BENCHMARKS: [Benchmark; 4] = [
    Benchmark {
        name: "hackbench",
        metric: "hackbench_time",
        unit: "s",
        better: Better::Lower,
        factor: 1.0,
        of_pairs: false,
    },
    Benchmark {
        name: "netperf",
        metric: "transactions_per_sec",
        unit: "1/s",
        better: Better::Higher,
        factor: 1.0,
        of_pairs: true,
    },
    Benchmark {
        name: "tbench",
        metric: "throughput",
        unit: "MB/s",
        better: Better::Higher,
        factor: 1.0,
        of_pairs: false,
    },
    Benchmark {
        name: "schbench",
        metric: "latency_p99",
        unit: "ns",
        better: Better::Lower,
        // It prints microseconds.
        factor: 1e3,
        of_pairs: false,
    },
];

/// The log of one run name in one case and load.
struct Log {
    benchmark: &'static Benchmark,
    run: String,
    path: PathBuf,
    place: Place,
    /// Figures with the numbers of their lines.
    figures: Vec<(usize, f64)>,
    /// Figures of one repetition.
    pairs: usize,
}

impl Log {
    fn repetitions(&self) -> usize {
        self.figures.len() / self.pairs
    }
}

/// Reads the trees of `paths`, each of which may be the checkout of the tool, `results/`, `logs/`
/// or the directory of one benchmark.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    for path in paths {
        let mut logs = Vec::new();
        for (benchmark, dir) in benchmarks(path)? {
            logs.extend(logs_of(benchmark, &dir, &mut imported)?);
        }
        refuse_doubled(&mut logs, &mut imported);
        for log in &logs {
            imported.runs.extend(runs(log));
        }
    }
    let mut names: Vec<String> = imported.runs.iter().map(|run| run.arm.clone()).collect();
    names.sort_by_cached_key(|name| natural_key(name));
    for name in names {
        imported.ensure_arm(&name);
    }
    Ok(imported)
}

/// Directories of benchmarks, in the order of [`BENCHMARKS`].
fn benchmarks(path: &Path) -> Result<Vec<(&'static Benchmark, PathBuf)>, ImportError> {
    let own = files::file_name(&path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    if let Some(benchmark) = BENCHMARKS.iter().find(|b| b.name == own) {
        return Ok(vec![(benchmark, path.to_owned())]);
    }
    if !path.is_dir() {
        let what = "this is no directory";
        return Err(ImportError::in_file(
            path,
            what,
            "give the tree of the logs",
        ));
    }
    for dir in [path.to_owned(), path.join("results"), path.join("logs")] {
        let found = BENCHMARKS.iter().map(|b| (b, dir.join(b.name)));
        let found: Vec<_> = found.filter(|(_, dir)| dir.is_dir()).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let names: Vec<&str> = BENCHMARKS.iter().map(|b| b.name).collect();
    Err(ImportError::in_file(
        path,
        format!(
            "there is no directory of a benchmark in it ({})",
            names.join(", ")
        ),
        "give results/ or logs/ of schedtests, with BENCHMARK/CASE/LOAD/RUN.log below it",
    ))
}

fn logs_of(
    benchmark: &'static Benchmark,
    dir: &Path,
    imported: &mut Imported,
) -> Result<Vec<Log>, ImportError> {
    let mut logs = Vec::new();
    for case in list_directories(dir)? {
        for load in list_directories(&case)? {
            for (run, path) in logs_in(&load)? {
                let place = place(
                    benchmark,
                    &files::file_name(&case),
                    &files::file_name(&load),
                );
                match log(benchmark, place, &run, path) {
                    Ok(log) => logs.push(log),
                    Err(fault) => imported.faults.push(fault),
                }
            }
        }
    }
    Ok(logs)
}

/// The logs of a load by the names of their runs. Files of other monitors (`RUN-ftrace.log`) have
/// no directory beside them.
fn logs_in(load: &Path) -> Result<Vec<(String, PathBuf)>, ImportError> {
    let all = list_entries(load)?;
    let log = |path: &PathBuf| {
        let name = files::file_name(path);
        let run = name.strip_suffix(".log").filter(|_| path.is_file())?;
        Some((run.to_owned(), path.clone()))
    };
    let mut logs: Vec<(String, PathBuf)> = all.iter().filter_map(log).collect();
    let has_output = |run: &str| load.join(run).is_dir();
    if logs.iter().any(|(run, _)| has_output(run)) {
        logs.retain(|(run, _)| has_output(run));
    }
    Ok(logs)
}

fn place(benchmark: &Benchmark, case: &str, load: &str) -> Place {
    // A load of two numbers (`2-mthreads-4-workers`) is a case of its own for each second one.
    let count = first_number(load);
    let rest = count.map_or(load.to_owned(), |count| {
        load.replacen(&count.to_string(), "", 1)
    });
    let more = rest.trim_matches('-');
    let workload = match more.contains(|c: char| c.is_ascii_digit()) {
        true => format!("{} {case} {more}", benchmark.name),
        false => format!("{} {case}", benchmark.name),
    };
    Place {
        workload,
        benchmark: benchmark.name.to_owned(),
        load: files::load_from_count(count),
        load_name: load.to_owned(),
    }
}

fn log(
    benchmark: &'static Benchmark,
    place: Place,
    run: &str,
    path: PathBuf,
) -> Result<Log, ImportError> {
    let figures = read_figures(&path, &file_text(&path)?)?;
    let pairs = match (benchmark.of_pairs, place.load) {
        (true, model::Load::Count(pairs)) => usize::try_from(pairs).unwrap_or(usize::MAX),
        _ => 1,
    };
    if figures.len() % pairs != 0 {
        return Err(ImportError::in_line(
            &path,
            figures.last().map_or(1, |(line, _)| *line),
            format!(
                "{} figures are no whole number of repetitions with {pairs} pairs each: a pair \
                 failed, or the log mixes two runs",
                figures.len()
            ),
            "which figures belong together is not known; leave the log out with --skip-bad",
        ));
    }
    check_output(benchmark, &path, run, figures.len())?;
    Ok(Log {
        benchmark,
        run: run.to_owned(),
        path,
        place,
        figures,
        pairs,
    })
}

/// The figures of a log with the numbers of their lines: the first column of each line.
pub fn read_figures(path: &Path, text: &str) -> Result<Vec<(usize, f64)>, ImportError> {
    let mut figures = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let Some(column) = line.split_whitespace().next() else {
            let what = "the line is empty: the benchmark gave no figure";
            let remedy = "look at its output in the directory beside the log";
            return Err(ImportError::in_line(path, at, what, remedy));
        };
        let Some(value) = parse_number(column) else {
            return Err(ImportError::in_line(
                path,
                at,
                format!("`{column}` is no number"),
                "the format of the benchmark has probably changed since schedtests was written; \
                 look at its output in the directory beside the log",
            ));
        };
        figures.push((at, value));
    }
    match figures.is_empty() {
        true => Err(ImportError::in_file(
            path,
            "the log is empty: nothing was measured",
            "schedtests runs with fewer than 8 CPUs without measuring anything; leave the log out \
             with --skip-bad",
        )),
        false => Ok(figures),
    }
}

/// Does the output in the directory `RUN/` beside the log hold one run, and the log all of it?
fn check_output(
    benchmark: &Benchmark,
    log: &Path,
    run: &str,
    figures: usize,
) -> Result<(), ImportError> {
    let output = log
        .with_file_name(run)
        .join(format!("{}.log", benchmark.name));
    if benchmark.name != "hackbench" || !output.is_file() {
        return Ok(());
    }
    let times = hackbench_times(&output, &file_text(&output)?)?;
    match times == figures {
        true => Ok(()),
        false => Err(ImportError::in_file(
            log,
            format!(
                "it has {figures} figures, and the output in {run}/ has {times}: they are not of the \
                 same run"
            ),
            "make the log from its output again, or leave it out with --skip-bad",
        )),
    }
}

/// Number of times that hackbench printed, all of them with the same parameters.
pub fn hackbench_times(path: &Path, text: &str) -> Result<usize, ImportError> {
    let mut first: Option<&str> = None;
    let mut times = 0;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        times += usize::from(line.starts_with("Time:"));
        if !line.starts_with("Running in ") {
            continue;
        }
        let first = *first.get_or_insert(line);
        if first != line {
            return Err(ImportError::in_line(
                path,
                index + 1,
                format!("the log mixes two runs: `{line}` after `{first}`"),
                "they are not the same work; leave the log out with --skip-bad",
            ));
        }
    }
    Ok(times)
}

/// A log with two or more times the repetitions that the benchmark usually has was appended to.
fn refuse_doubled(logs: &mut Vec<Log>, imported: &mut Imported) {
    let mut usual: BTreeMap<&str, BTreeMap<usize, usize>> = BTreeMap::new();
    for log in logs.iter() {
        let counts = usual.entry(log.benchmark.name).or_default();
        *counts.entry(log.repetitions()).or_default() += 1;
    }
    let usual: BTreeMap<&str, usize> = usual
        .into_iter()
        .filter_map(|(name, counts)| {
            // Of equally frequent numbers the smaller one: a repetition is more easily doubled
            // than lost.
            let (most, _) = counts.iter().rev().max_by_key(|(_, often)| **often)?;
            let least = counts.iter().filter(|(_, often)| **often == counts[most]);
            Some((name, least.map(|(number, _)| *number).min()?))
        })
        .collect();
    logs.retain(|log| {
        let (found, usual) = (log.repetitions(), usual[log.benchmark.name]);
        if usual > 1 && found > usual && found.is_multiple_of(usual) {
            imported.faults.push(ImportError::in_line(
                &log.path,
                log.figures[usual * log.pairs].0,
                format!(
                    "{found} repetitions where the other logs of {} have {usual}: the log mixes \
                     {} runs of the name `{}`",
                    log.benchmark.name,
                    found / usual,
                    log.run
                ),
                "here the second one begins; schedtests appends, so remove what is not of the run, \
                 or leave the log out with --skip-bad",
            ));
            return false;
        }
        if found != usual {
            imported.warnings.push(Warning {
                severity: Severity::Caution,
                what: format!(
                    "{} has {found} repetitions of {}, where other logs have {usual}.",
                    log.run,
                    log.place.cell_name()
                ),
                remedy: String::new(),
            });
        }
        true
    });
}

fn runs(log: &Log) -> Vec<Run> {
    let Benchmark {
        metric,
        unit,
        better,
        factor,
        ..
    } = log.benchmark;
    let of = |repetition: &[(usize, f64)]| {
        let parts: Vec<f64> = repetition.iter().map(|(_, value)| value * factor).collect();
        let line = repetition.first().map_or(1, |(line, _)| *line);
        let source = format!("{}:{line}", log.path.display());
        Run {
            metrics: of_parts(metric, unit, *better, &parts),
            ..Run::new(&log.run, log.place.clone(), source)
        }
    };
    log.figures.chunks(log.pairs).map(of).collect()
}
