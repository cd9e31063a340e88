//! What `perf stat` prints: its text, its fields between separators (`-x,`) and its JSON (`-j`).
//!
//! With `-r N` all three are the mean of N runs. Only the text says how many they were, so only there
//! the spread between the runs can be told from that of their mean.

use crate::files::{file_name, files_of, load_from_count, read_by_arm};
use crate::{ImportError, Imported, Place, Run, make_figure};
use model::{Better, Measurement, Severity, Warning, imported};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

mod fields;
mod plain;

/// Name of the tool.
pub const NAME: &str = "perf-stat";

const REMEDY: &str = "give what `perf stat -o FILE` wrote, also with -r N, -x, or -j";

/// What one call of perf stat printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stat {
    /// The command, as the text has it.
    pub command: Option<String>,
    /// Number of runs whose mean the figures are, where it is said.
    pub runs: Option<u64>,
    /// Figures in their order.
    pub counts: Vec<Count>,
    /// Line at which it begins.
    pub line: usize,
}

/// A figure of an event.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Count {
    /// Name of the event as perf has it.
    pub event: String,
    /// Unit in perf's words; empty for a number of events.
    pub unit: String,
    /// Value; `None` for an event that was not counted.
    pub value: Option<f64>,
    /// Standard error of the mean of the runs in percent of it.
    pub error_percent: Option<f64>,
    /// Share of the time in which the event was counted, in percent.
    pub counted_percent: f64,
    /// Line of the file.
    pub line: usize,
}

/// What a text has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Read {
    /// Calls in their order.
    pub stats: Vec<Stat>,
    /// Lines that are none of perf stat's, as those of the program that was measured.
    pub others: Vec<usize>,
}

/// Reads files and directories of files. `ARM=PATH` gives the arm a name; without it that is the
/// directory, or the file without its extension.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    read_by_arm(paths, |path| files_of(path, None, REMEDY), add_text)
}

/// Reads the text of one file, in the form that it has.
pub fn read_text(path: &Path, text: &str) -> Result<Read, ImportError> {
    let of_intervals = |line: &str| line.starts_with('#') && line.contains(" counts unit events");
    if let Some(at) = text.lines().position(of_intervals) {
        return Err(of_a_part(path, at + 1, "an interval each", "-I"));
    }
    let read = match () {
        () if text.contains(plain::HEAD) => plain::read(path, text)?,
        () if text.lines().any(|line| line.starts_with('{')) => fields::of_json(path, text)?,
        () => fields::of_lines(path, text)?,
    };
    let is_counted = |stat: &Stat| stat.counts.iter().any(|count| count.value.is_some());
    match read.stats.iter().find(|stat| !is_counted(stat)) {
        None if read.stats.is_empty() => {
            let what = "there is no figure of perf stat in it";
            Err(ImportError::in_file(path, what, REMEDY))
        }
        None => Ok(read),
        Some(stat) => {
            let what = "no event was counted";
            let remedy =
                "choose events that are counted there: perf stat -e task-clock,context-switches";
            Err(ImportError::in_line(path, stat.line, what, remedy))
        }
    }
}

/// A figure of a part of the machine or of the time, which is no figure of the run.
fn of_a_part(path: &Path, line: usize, what: &str, option: &str) -> ImportError {
    let what = format!("its figures are those of {what}, not of the run");
    let remedy = format!("measure again without {option}");
    ImportError::in_line(path, line, what, remedy)
}

/// Adds the runs in the text of one file.
pub fn add_text(
    file: &Path,
    text: &str,
    arm: &str,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let read = read_text(file, text)?;
    let mut notes = BTreeSet::new();
    for stat in &read.stats {
        notes.extend(notes_on(stat));
        match run(file, arm, stat) {
            Ok(run) => imported.add_run(run),
            Err(fault) => imported.faults.push(fault),
        }
    }
    if let [first, ..] = read.others.as_slice() {
        let lines = read.others.len();
        notes.insert(format!(
            "{lines} lines are not of perf stat, the first is line {first}"
        ));
    }
    let notes = notes.into_iter().map(|note| Warning {
        severity: Severity::Note,
        what: format!("{}: {note}.", file_name(file)),
        remedy: String::new(),
    });
    imported.warnings.extend(notes);
    Ok(())
}

fn notes_on(stat: &Stat) -> Vec<String> {
    let names = |which: &dyn Fn(&&Count) -> bool| {
        let counts = stat.counts.iter().filter(which);
        let names: Vec<&str> = counts.map(|count| count.event.as_str()).collect();
        names.join(", ")
    };
    let missing = names(&|count| count.value.is_none());
    let scaled = names(&|count| count.value.is_some() && count.counted_percent < 100.0);
    let has_error = |count: &Count| count.error_percent.is_some();
    let are_means = stat.runs.is_none() && stat.counts.iter().any(has_error);
    let mut notes = Vec::new();
    if !missing.is_empty() {
        notes.push(format!(
            "events that were not counted are left out: {missing}"
        ));
    }
    if !scaled.is_empty() {
        notes.push(format!(
            "events that were counted for a part of the time only, and scaled by perf: {scaled}"
        ));
    }
    if are_means {
        notes.push(
            "the figures are means of the runs of -r, and only the text without -x and -j says of how many"
                .to_owned(),
        );
    }
    notes
}

fn run(file: &Path, arm: &str, stat: &Stat) -> Result<Run, ImportError> {
    let workload = stat
        .command
        .clone()
        .unwrap_or_else(|| "perf stat".to_owned());
    let place = Place {
        workload,
        benchmark: "perf stat".to_owned(),
        load: load_from_count(None),
        load_name: String::new(),
    };
    let mut run = Run::new(arm, place, format!("{}:{}", file.display(), stat.line));
    let mut known = BTreeSet::new();
    for count in &stat.counts {
        let Some(value) = count.value else { continue };
        let metric = metric(&count.event);
        if !known.insert(metric.clone()) {
            let what = format!("the event `{}` is there twice", count.event);
            return Err(ImportError::in_line(file, count.line, what, REMEDY));
        }
        if metric == ELAPSED {
            run.elapsed_ns = model::truncate_to_u64(value * 1e9);
        }
        let unit = unit(&count.unit);
        run.metrics
            .push(make_figure(&metric, unit, better(&metric), value));
        run.metrics
            .extend(spread(&metric, unit, count, value, stat.runs));
    }
    Ok(run)
}

/// Number of the runs and the spread between them. perf says the standard error of their mean, which
/// is smaller by the root of their number.
fn spread(
    metric: &str,
    unit: &str,
    count: &Count,
    mean: f64,
    runs: Option<u64>,
) -> Vec<Measurement> {
    let (Some(percent), Some(runs @ 2..)) = (count.error_percent, runs) else {
        return Vec::new();
    };
    let (parts, sd) = (imported::parts_metric(metric), imported::parts_sd(metric));
    let spread = mean * percent / 100.0 * (runs as f64 - 1.0).sqrt();
    if !spread.is_finite() {
        return Vec::new();
    }
    vec![
        make_figure(&parts, "count", Better::Neither, runs as f64),
        make_figure(&sd, unit, Better::Neither, spread),
    ]
}

const ELAPSED: &str = "elapsed";

/// Name of the metric of an event: `context_switches` for `context-switches`.
fn metric(event: &str) -> String {
    let words = event.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_").to_lowercase()
}

fn unit(said: &str) -> &str {
    match said {
        "" => "count",
        "msec" => "ms",
        "Joules" => "J",
        other => other,
    }
}

/// Direction in which the same work gets cheaper. How many instructions it takes says nothing of a
/// scheduler, and the clock of a CPU runs also where nothing does.
fn better(metric: &str) -> Better {
    let cheaper = [
        ELAPSED,
        "user",
        "sys",
        "task_clock",
        "duration_time",
        "context_switches",
        "cs",
        "cpu_migrations",
        "migrations",
        "faults",
        "page_faults",
        "minor_faults",
        "major_faults",
        "cycles",
    ];
    let is_miss = metric.ends_with("_misses") || metric.ends_with("_load_misses");
    let is_energy = metric.starts_with("power_energy");
    match cheaper.contains(&metric) || is_miss || is_energy {
        true => Better::Lower,
        false => Better::Neither,
    }
}

#[cfg(test)]
mod tests;
