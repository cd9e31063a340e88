//! Results of mmtests: `work/log/RUN/iter-N/BENCHMARK/logs/` with the raw logs of hackbench
//! (`hackbench-GROUPS`) and schbench (`schbench-WORKERS.log`), or, for any benchmark, the JSON
//! file that `compare-mmtests.pl --json-export` writes.

use crate::files::{self, file_text, list_directories, list_entries, parse_number};
use crate::{ImportError, Imported, Place, Run, make_figure, of_parts};
use model::{Better, Measurement, Severity, Warning};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const REMEDY: &str = "give work/log of mmtests, with RUN/iter-1/BENCHMARK/logs/ below it, or a file of \
                      compare-mmtests.pl --json-export (unpack it: zstd -d, xz -d)";

/// Reads trees of logs and exported files.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    for path in paths {
        match path.is_dir() {
            true => read_tree(path, &mut imported)?,
            false => {
                let read = file_text(path).and_then(|text| read_export(path, &text, &mut imported));
                if let Err(fault) = read {
                    imported.faults.push(fault);
                }
            }
        }
    }
    Ok(imported)
}

/// `work/log` itself, or the directory `work` or that of mmtests.
fn read_tree(path: &Path, imported: &mut Imported) -> Result<(), ImportError> {
    let places = [path.to_owned(), path.join("log"), path.join("work/log")];
    let mut runs = Vec::new();
    for place in places.iter().filter(|place| place.is_dir()) {
        for run in list_directories(place)? {
            let iterations = list_directories(&run)?;
            let mut iterations = iterations.into_iter();
            if iterations.any(|dir| files::file_name(&dir).starts_with("iter-")) {
                runs.push(run);
            }
        }
        if !runs.is_empty() {
            break;
        }
    }
    if runs.is_empty() {
        return Err(ImportError::in_file(
            path,
            "there is no RUN/iter-N in it",
            REMEDY,
        ));
    }
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs {
        imported.ensure_arm(&files::file_name(&run));
        for iteration in list_directories(&run)? {
            if files::file_name(&iteration).starts_with("iter-") {
                read_iteration(&files::file_name(&run), &iteration, imported, &mut unknown)?;
            }
        }
    }
    imported
        .warnings
        .extend(unknown.into_keys().map(|benchmark| Warning {
        severity: Severity::Caution,
        what: format!("The raw logs of {benchmark} were left out: their format is not known here."),
        remedy: format!(
            "Export them: compare-mmtests.pl -d work/log -b {benchmark} -n RUN,RUN --json-export, \
             and import the file."
        ),
    }));
    Ok(())
}

fn read_iteration(
    arm: &str,
    iteration: &Path,
    imported: &mut Imported,
    unknown: &mut BTreeMap<String, usize>,
) -> Result<(), ImportError> {
    for dir in list_directories(iteration)? {
        let (benchmark, logs) = (files::file_name(&dir), dir.join("logs"));
        if !logs.is_dir() {
            continue;
        }
        let read = match benchmark.split('-').next() {
            Some("hackbench") => hackbench_log as fn(&Path, &str) -> _,
            Some("schbench") => schbench_log,
            _ => {
                *unknown.entry(benchmark).or_default() += 1;
                continue;
            }
        };
        for log in list_entries(&logs)?.into_iter().filter(|log| log.is_file()) {
            let Some(load_name) = load_name(&files::file_name(&log), &benchmark) else {
                continue;
            };
            let place = Place {
                workload: benchmark.clone(),
                benchmark: benchmark.clone(),
                load: files::load_from_count(files::first_number(&load_name)),
                load_name,
            };
            match file_text(&log).and_then(|text| read(&log, &text)) {
                Ok(found) => imported
                    .runs
                    .extend(found.into_iter().map(|(line, metrics)| Run {
                        metrics,
                        ..Run::new(arm, place.clone(), format!("{}:{line}", log.display()))
                    })),
                Err(fault) => imported.faults.push(fault),
            }
        }
    }
    Ok(())
}

/// `8` of `hackbench-8` (in older versions `hackbench-8-1`, one file a repetition) and of
/// `schbench-8.log`.
fn load_name(file: &str, benchmark: &str) -> Option<String> {
    let program = benchmark.split('-').next()?;
    let rest = file.strip_prefix(program)?.strip_prefix('-')?;
    let rest = rest.strip_suffix(".log").unwrap_or(rest);
    let groups = rest.split('-').next()?;
    let is_number = !groups.is_empty() && groups.chars().all(|c| c.is_ascii_digit());
    is_number.then(|| groups.to_owned())
}

/// Figures of a run, with the line that they are in.
pub type Found = (usize, Vec<Measurement>);

/// Words that stand before a time: that of `perf bench sched messaging`, and that of hackbench itself,
/// which mmtests ran until May 2019.
const TIMES: [&str; 2] = ["Total time:", "Time:"];

/// The times of a log of hackbench, a run each.
pub fn hackbench_log(path: &Path, text: &str) -> Result<Vec<Found>, ImportError> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let time = TIMES.iter().find_map(|time| line.trim().strip_prefix(time));
        let Some(rest) = time else {
            continue;
        };
        let word = rest.split_whitespace().next().unwrap_or_default();
        let Some(seconds) = parse_number(word) else {
            let what = format!("`{word}` is no number of seconds");
            return Err(ImportError::in_line(path, index + 1, what, REMEDY));
        };
        let time = make_figure("hackbench_time", "s", Better::Lower, seconds);
        found.push((index + 1, vec![time]));
    }
    not_empty(path, text, found, &TIMES)
}

fn not_empty(
    path: &Path,
    text: &str,
    found: Vec<Found>,
    sought: &[&str],
) -> Result<Vec<Found>, ImportError> {
    if !found.is_empty() {
        return Ok(found);
    }
    let end = match model::printable::last_lines(text, 1, " | ") {
        end if end.is_empty() => "the log is empty".to_owned(),
        end => format!("it ends with: {end}"),
    };
    let what = format!(
        "there is no line with `{}` in it; {end}",
        sought.join("` or `")
    );
    let remedy = "leave the log out with --skip-bad, if the benchmark failed";
    Err(ImportError::in_file(path, what, remedy))
}

/// The last percentiles of a log of schbench, which prints them every ten seconds: one run.
pub fn schbench_log(path: &Path, text: &str) -> Result<Vec<Found>, ImportError> {
    let mut sections: BTreeMap<&str, Section> = BTreeMap::new();
    let (mut section, mut at, mut ends) = ("wakeup", 1, 0);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let fault = |what: String, remedy| Err(ImportError::in_line(path, index + 1, what, remedy));
        if let Some((name, began)) = section_head(line) {
            section = name;
            sections.insert(name, began);
        }
        ends += u32::from(line.to_ascii_lowercase().starts_with("average rps"));
        if ends > 1 {
            let what = "the log mixes two runs: schbench ended here before".to_owned();
            return fault(
                what,
                "mmtests writes one run a log; leave the log out with --skip-bad",
            );
        }
        let Some((percentile, rest)) = line.trim_start_matches(['*', ' ', '\t']).split_once("th:")
        else {
            continue;
        };
        let word = rest.split_whitespace().next().unwrap_or_default();
        let (Some(_), Some(value)) = (parse_number(percentile), parse_number(word)) else {
            return fault(format!("`{line}` is no percentile"), REMEDY);
        };
        let measured = percentile_of(section, percentile, value);
        sections.entry(section).or_default().figures.push(measured);
        at = index + 1;
    }
    if let Some(what) = cut_off(&sections) {
        let remedy = "leave the log out with --skip-bad: schbench was ended while it printed";
        return Err(ImportError::in_line(path, at, what, remedy));
    }
    let last = sections.into_values().flat_map(|section| section.figures);
    let mut last: Vec<Measurement> = last.collect();
    last.sort_by(|a, b| a.metric.cmp(&b.metric));
    let found = match last.is_empty() {
        true => Vec::new(),
        false => vec![(at, last)],
    };
    not_empty(path, text, found, &["99.0th:"])
}

/// The percentiles that were printed last of one quantity, and the time that they are of.
#[derive(Default)]
struct Section {
    /// Time that it took; older versions do not say it.
    runtime: Option<String>,
    figures: Vec<Measurement>,
}

/// The quantity whose percentiles begin with this line: those that were printed before are of a part of the run.
fn section_head(line: &str) -> Option<(&'static str, Section)> {
    let head = line.to_ascii_lowercase();
    let name = match () {
        () if head.starts_with("rps percentiles") => "requests_per_sec",
        () if !(head.contains("latenc") && head.contains("percentiles")) => return None,
        () if head.starts_with("request") => "request",
        () => "wakeup",
    };
    let runtime = head.split_once("runtime ");
    let runtime = runtime.and_then(|(_, rest)| rest.split_whitespace().next());
    let section = Section {
        runtime: runtime.map(str::to_owned),
        figures: Vec::new(),
    };
    Some((name, section))
}

/// Percentiles of different times: those of the end are not all there.
fn cut_off(sections: &BTreeMap<&str, Section>) -> Option<String> {
    let times = sections.iter().map(|(name, section)| {
        let time = section.runtime.as_deref();
        (name, time.filter(|_| !section.figures.is_empty()))
    });
    let times: Vec<(&&str, Option<&str>)> = times.collect();
    let (_, first) = times.first()?;
    if times.iter().all(|(_, time)| time == first) {
        return None;
    }
    let said = times.iter().map(|(name, time)| match time {
        Some(seconds) => format!("{name} of {seconds} s"),
        None => format!("{name} without any"),
    });
    let said: Vec<String> = said.collect();
    Some(format!(
        "the log ends in the middle of its percentiles: {}",
        said.join(", ")
    ))
}

fn percentile_of(section: &str, percentile: &str, value: f64) -> Measurement {
    let digits = match percentile.contains('.') {
        true => percentile.trim_end_matches('0').trim_end_matches('.'),
        false => percentile,
    };
    let name = format!("{section}_p{}", digits.replace('.', ""));
    match section {
        "requests_per_sec" => make_figure(&name, "1/s", Better::Higher, value),
        _ => make_figure(&name, "ns", Better::Lower, value * 1e3),
    }
}

#[derive(Deserialize)]
struct Comparison {
    #[serde(rename = "_ExtractModules")]
    modules: Vec<Module>,
}

/// The extraction of one benchmark from one run, as its class in mmtests holds it.
#[derive(Deserialize)]
struct Module {
    #[serde(rename = "_ModuleName", default)]
    name: String,
    #[serde(rename = "_TestName")]
    run: String,
    #[serde(rename = "_ResultData")]
    data: BTreeMap<String, Vec<Option<Series>>>,
    /// `Higher` or `Lower`.
    #[serde(rename = "_PreferredVal", default)]
    preferred: Option<String>,
    /// The same in older versions.
    #[serde(rename = "_RatioPreferred", default)]
    ratio_preferred: Option<String>,
    #[serde(rename = "_PlotYaxis", default)]
    unit: Option<String>,
}

/// The figures of one iteration; Perl writes numbers that it read as texts.
#[derive(Deserialize)]
struct Series {
    #[serde(rename = "Values", default)]
    values: Vec<Value>,
}

/// Reads the text of an exported file.
pub fn read_export(path: &Path, text: &str, imported: &mut Imported) -> Result<(), ImportError> {
    if text.trim().is_empty() {
        return Err(ImportError::in_file(path, "the file is empty", REMEDY));
    }
    let wrong = |e: serde_json::Error| ImportError::in_json(path, &e, REMEDY);
    let modules = match text.trim_start().starts_with('[') {
        true => serde_json::from_str::<Vec<Module>>(text).map_err(wrong)?,
        false => {
            serde_json::from_str::<Comparison>(text)
                .map_err(wrong)?
                .modules
        }
    };
    for module in &modules {
        if module.run.trim().is_empty() {
            let what = "a module has no _TestName, the name of its run";
            return Err(ImportError::in_file(path, what, REMEDY));
        }
        imported.ensure_arm(&module.run);
        let name = module
            .name
            .trim_start_matches("Extract")
            .to_ascii_lowercase();
        for (operation, iterations) in &module.data {
            match exported(path, module, &name, operation, iterations) {
                Ok(runs) => imported.runs.extend(runs),
                Err(fault) => imported.faults.push(fault),
            }
        }
    }
    Ok(())
}

/// With several iterations each is a run; with one each of its samples is.
fn exported(
    path: &Path,
    module: &Module,
    benchmark: &str,
    operation: &str,
    iterations: &[Option<Series>],
) -> Result<Vec<Run>, ImportError> {
    let preferred = module
        .preferred
        .as_ref()
        .or(module.ratio_preferred.as_ref());
    let better = match preferred.map(String::as_str) {
        Some("Higher") => Better::Higher,
        _ => Better::Lower,
    };
    let benchmark = match benchmark {
        "" | "shellpack" => "mmtests",
        name => name,
    };
    let place = Place {
        workload: format!("{benchmark} {operation}").trim().to_owned(),
        benchmark: benchmark.to_owned(),
        load: files::load_from_count(None),
        load_name: String::new(),
    };
    let unit = module.unit.as_deref().map_or("", unit);
    let mut series: Vec<Vec<f64>> = Vec::new();
    for iteration in iterations.iter().flatten() {
        let values = iteration.values.iter().map(|value| {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            parse_number(text.trim()).ok_or_else(|| {
                let what = format!("`{text}` in {operation} of {} is no number", module.run);
                ImportError::in_file(path, what, REMEDY)
            })
        });
        let values = values.collect::<Result<Vec<f64>, _>>()?;
        series.extend(Some(values).filter(|values| !values.is_empty()));
    }
    let runs: Vec<Vec<f64>> = match series.as_slice() {
        [alone] => alone.iter().map(|value| vec![*value]).collect(),
        _ => series,
    };
    let source = format!("{}: {operation} of {}", path.display(), module.run);
    let run = |values: Vec<f64>| Run {
        metrics: of_parts("result", unit, better, &values),
        ..Run::new(&module.run, place.clone(), source.clone())
    };
    Ok(runs.into_iter().map(run).collect())
}

/// The unit of a label of mmtests' axes.
fn unit(label: &str) -> &str {
    match label {
        "Time (nanoseconds)" => "ns",
        "Time (microseconds)" => "us",
        "Time (milliseconds)" => "ms",
        "Time (seconds)" => "s",
        "Operations/second" | "Transactions/second" => "1/s",
        "Time Percentage" | "Percentage" => "%",
        "UNKNOWN" => "",
        label => label,
    }
}
