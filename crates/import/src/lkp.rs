//! Results of lkp-tests: the tree `TESTCASE/PARAMETERS…/COMMIT/RUN/stats.json`, and the tables that
//! `lkp ncompare` prints and the kernel test robot mails.

use crate::files::{file_name, file_text, list_directories, list_entries, load_from_count};
use crate::{ImportError, Imported, Place, Run, make_figure};
use model::{Better, Measurement, Severity, Warning, imported};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the tool.
pub const NAME: &str = "lkp";

const REMEDY: &str = "give a directory of results (TESTCASE/…/COMMIT/RUN/stats.json), or the text of a table \
                      of `lkp ncompare`";
/// Folders within folders beyond which no result of lkp-tests is.
const DEEPEST: usize = 16;

/// Reads directories of results and texts with tables.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    for path in paths {
        let before = imported.runs.len() + imported.faults.len();
        match path.is_dir() {
            true => in_directory(path, &mut Vec::new(), &mut imported)?,
            false => read_text(path, &file_text(path)?, &mut imported)?,
        }
        if imported.runs.len() + imported.faults.len() == before {
            return Err(ImportError::in_file(
                path,
                "there is no result of lkp-tests in it",
                REMEDY,
            ));
        }
    }
    say_what_is_not_compared(&mut imported);
    Ok(imported)
}

fn say_what_is_not_compared(imported: &mut Imported) {
    let metrics = imported.runs.iter().flat_map(|run| &run.metrics);
    let unknown =
        |m: &&Measurement| m.better == Better::Neither && !m.metric.ends_with("_parts_sd");
    let mut unknown: Vec<&str> = metrics.filter(unknown).map(|m| m.metric.as_str()).collect();
    unknown.sort_unstable();
    unknown.dedup();
    if let [first, ..] = unknown.as_slice() {
        let what = format!(
            "{} figures are kept and not compared, as their names do not say which direction is better; \
             the first is {first}.",
            unknown.len()
        );
        imported.warnings.push(Warning {
            severity: Severity::Note,
            what,
            remedy: String::new(),
        });
    }
}

/// The runs below a directory, whose path from the given one is `above`.
fn in_directory(
    path: &Path,
    above: &mut Vec<String>,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    if above.len() > DEEPEST {
        return Err(ImportError::in_file(
            path,
            "the folders are nested too deep",
            REMEDY,
        ));
    }
    for directory in list_directories(path)? {
        let name = file_name(&directory);
        if name.bytes().all(|byte| byte.is_ascii_digit())
            && let Some(file) = stats(&directory)?
        {
            let read = file_text(&file).and_then(|text| run(&file, &text, above));
            match read {
                Ok(run) => imported.add_run(run),
                Err(fault) => imported.faults.push(fault),
            }
            continue;
        }
        above.push(name);
        in_directory(&directory, above, imported)?;
        above.pop();
    }
    Ok(())
}

/// The file with the figures of a run: `stats.json`, or one that is named as a folder above it is.
fn stats(directory: &Path) -> Result<Option<PathBuf>, ImportError> {
    let mut files = list_entries(directory)?;
    let named = |wanted: &str| files.iter().position(|file| file_name(file) == wanted);
    let parts = parts(directory);
    let own = || parts.iter().find_map(|part| named(&format!("{part}.json")));
    let found = named("stats.json").or_else(own);
    Ok(found.map(|at| files.swap_remove(at)))
}

fn parts(path: &Path) -> Vec<String> {
    let parts = path.components();
    parts
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect()
}

fn run(file: &Path, text: &str, above: &[String]) -> Result<Run, ImportError> {
    let figures: BTreeMap<String, Value> =
        serde_json::from_str(text).map_err(|e| ImportError::in_json(file, &e, REMEDY))?;
    let is_of = |program: &str| {
        let mut names = figures.keys();
        names.any(|key| key.starts_with(&format!("{program}.")))
    };
    let folders = parts(file).into_iter();
    let Some(testcase) = folders
        .flat_map(|part| programs(&part))
        .find(|name| is_of(name))
    else {
        let what =
            "none of its figures begins with the name of a folder, which would be its testcase";
        return Err(ImportError::in_file(file, what, REMEDY));
    };
    let testcase = testcase.as_str();
    let prefix = format!("{testcase}.");
    let of_testcase = figures.iter().filter(|(key, _)| key.starts_with(&prefix));
    let metrics = of_testcase.filter_map(|(key, value)| {
        let value = match value {
            Value::Array(values) => mean(values)?,
            value => value.as_f64()?,
        };
        Some(measured(&key[prefix.len()..], value))
    });
    let metrics: Vec<Measurement> = metrics.collect();
    let Some((commit, parameters)) = above.split_last() else {
        return Err(ImportError::in_file(
            file,
            "there is no folder of a commit above it",
            REMEDY,
        ));
    };
    let cell = match parameters {
        [] => testcase.to_owned(),
        parameters => parameters.join(" "),
    };
    Ok(Run {
        metrics,
        ..Run::new(commit, place(testcase, cell), file.display().to_string())
    })
}

/// Names that the figures of a testcase may have: its own, or that of the program (`fio` of `fio-basic`).
fn programs(testcase: &str) -> Vec<String> {
    let program = testcase.rsplit_once('-').map(|(program, _)| program);
    let names = [testcase].into_iter().chain(program);
    names.map(str::to_owned).collect()
}

fn mean(values: &[Value]) -> Option<f64> {
    let figures: Vec<f64> = values.iter().map(Value::as_f64).collect::<Option<_>>()?;
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

fn place(testcase: &str, workload: String) -> Place {
    Place {
        workload,
        benchmark: testcase.to_owned(),
        load: load_from_count(None),
        load_name: String::new(),
    }
}

fn measured(name: &str, value: f64) -> Measurement {
    let units = [
        ("per_sec", "1/s"),
        ("/sec", "1/s"),
        ("_us", "us"),
        ("_usecs", "us"),
        ("_ns", "ns"),
        ("_ms", "ms"),
        ("Mbps", "Mbit/s"),
        ("tps", "1/s"),
        ("%", "%"),
    ];
    let unit = units.iter().find(|(end, _)| name.ends_with(end));
    make_figure(
        name,
        unit.map_or("count", |(_, unit)| unit),
        better(name),
        value,
    )
}

/// The direction that a name says. `BENCHMARK.time.…` is what time(1) counted of it, which is more
/// or less for many reasons; a share of the requests within some latency (`latency_10us%`) is no latency.
fn better(name: &str) -> Better {
    let lower = [
        "latency", "elapsed", "_us", "_usecs", "_ns", "_ms", "runtime",
    ];
    let higher = [
        "ops",
        "throughput",
        "per_sec",
        "/sec",
        "per-min",
        "per_min",
        "workload",
        "rps",
        "bps",
        "tps",
        "score",
        "_mb",
        "mb/s",
    ];
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let is_share = name.ends_with("us%") || name.ends_with("ms%");
    match () {
        () if name.starts_with("time.") || name.contains("stddev") || is_share => Better::Neither,
        () if has(&lower) => Better::Lower,
        () if has(&higher) => Better::Higher,
        () => Better::Neither,
    }
}

/// A table as it is read.
#[derive(Default)]
struct Table {
    cell: String,
    testcase: String,
    /// Names of the commits with their subjects.
    commits: Vec<(String, String)>,
    /// Arms in the order of their columns.
    arms: Vec<String>,
    /// Figures of each arm.
    figures: Vec<Vec<Measurement>>,
    line: usize,
}

/// Reads the tables of a text, also of a mail that quotes them.
pub fn read_text(path: &Path, text: &str, imported: &mut Imported) -> Result<(), ImportError> {
    let lines: Vec<&str> = text.lines().map(unquoted).collect();
    let mut table = Table::default();
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1).copied().unwrap_or_default();
        if line.contains("testcase") && line.trim_end().ends_with(':') && line.contains('/') {
            finish(path, &mut table, imported);
            let mut below = lines[index + 1..].iter();
            let values = below.find(|line| !line.trim().is_empty());
            table = titled(line, values.unwrap_or(&next));
        } else if let Some(commit) = commit(line) {
            table.commits.push(commit);
        } else if next.trim_start().starts_with("----------------") {
            let columns = line.split_whitespace();
            table.arms = columns.map(|column| arm(column, &table.commits)).collect();
            table.figures = vec![Vec::new(); table.arms.len()];
            table.line = index + 1;
        } else if let Some((values, key)) = row(line).filter(|(v, _)| v.len() == table.arms.len()) {
            take(&mut table, &values, &key);
        }
    }
    finish(path, &mut table, imported);
    Ok(())
}

fn unquoted(line: &str) -> &str {
    line.trim_start_matches(['>', ' ']).trim_end()
}

/// The names of the parameters and their values on the next line; those that name the machine and
/// its software are no part of the cell.
fn titled(names: &str, values: &str) -> Table {
    let environment = [
        "compiler",
        "cpufreq_governor",
        "kconfig",
        "rootfs",
        "tbox_group",
        "ucode",
    ];
    let names = names.trim().trim_end_matches(':').split('/');
    let pairs: Vec<(&str, &str)> = names.zip(values.trim().split('/')).collect();
    let testcase = pairs.iter().find(|(name, _)| *name == "testcase");
    let testcase = testcase.map_or("", |(_, value)| value).to_owned();
    let kept = pairs
        .iter()
        .filter(|(name, _)| *name != "testcase" && !environment.contains(name));
    let words = [testcase.as_str()]
        .into_iter()
        .chain(kept.map(|(_, value)| *value));
    Table {
        cell: words.collect::<Vec<_>>().join(" "),
        testcase,
        ..Table::default()
    }
}

/// `f2ffc48de2 ("subject")`.
fn commit(line: &str) -> Option<(String, String)> {
    let (name, subject) = line.trim().split_once(" (\"")?;
    let is_hash = name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let subject = subject.trim_end_matches("\")");
    is_hash.then(|| (name.to_owned(), subject.to_owned()))
}

/// A column's name, as the list of commits has it.
fn arm(column: &str, commits: &[(String, String)]) -> String {
    let found = commits
        .iter()
        .find(|(name, _)| column.starts_with(name.as_str()) || name.starts_with(column));
    found.map_or(column, |(name, _)| name).to_owned()
}

/// A mean and its spread in percent.
type Spread = (f64, Option<f64>);

/// The mean of each column, and the name of the figure.
fn row(line: &str) -> Option<(Vec<Spread>, String)> {
    let spaced = line.replace('±', " ± ");
    let mut words = spaced.split_whitespace().peekable();
    let mut values = Vec::new();
    loop {
        let mean: f64 = words.next()?.parse().ok()?;
        let spread = words.next_if_eq(&"±").and_then(|_| words.next());
        let spread = spread.map(|percent| percent.trim_end_matches('%').parse());
        values.push((mean, spread.transpose().ok()?));
        let word = words.next()?;
        if words.peek().is_none() {
            return Some((values, word.to_owned()));
        }
        if !word.starts_with(['+', '-']) {
            return None;
        }
    }
}

fn take(table: &mut Table, values: &[Spread], key: &str) {
    let programs = programs(&table.testcase);
    let mut names = programs
        .iter()
        .filter_map(|program| key.strip_prefix(&format!("{program}.")));
    let Some(name) = names.next() else {
        return;
    };
    for (figures, (mean, spread)) in table.figures.iter_mut().zip(values) {
        let measured = measured(name, *mean);
        let (unit, spread) = (measured.unit.clone(), spread.unwrap_or(0.0));
        figures.push(measured);
        let sd = imported::parts_sd(name);
        figures.push(make_figure(
            &sd,
            &unit,
            Better::Neither,
            mean.abs() * spread / 100.0,
        ));
    }
}

/// One run for each column: its figures are means of runs whose number the table does not say.
fn finish(path: &Path, table: &mut Table, imported: &mut Imported) {
    let table = std::mem::take(table);
    let source = format!("{}:{}", path.display(), table.line);
    if !table.arms.is_empty() && table.figures.iter().all(Vec::is_empty) {
        let what = format!(
            "the table at line {} has no figure of its testcase `{}`",
            table.line, table.testcase
        );
        imported
            .faults
            .push(ImportError::in_file(path, &what, REMEDY));
        return;
    }
    let figures = table.arms.iter().zip(table.figures);
    for (arm, metrics) in figures.filter(|(_, metrics)| !metrics.is_empty()) {
        let place = place(&table.testcase, table.cell.clone());
        imported.add_run(Run {
            metrics,
            ..Run::new(arm, place, source.clone())
        });
        let subject = table.commits.iter().find(|(name, _)| name == arm);
        let subject = subject.map(|(_, subject)| ("subject".to_owned(), subject.clone()));
        imported.ensure_arm(arm).facts.extend(subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn value(imported: &Imported, arm: &str, metric: &str) -> f64 {
        let run = imported.runs.iter().find(|run| run.arm == arm).unwrap();
        run.metrics
            .iter()
            .find(|m| m.metric == metric)
            .unwrap()
            .value
    }

    #[test]
    fn a_tree_has_an_arm_for_each_commit_and_a_run_for_each_number() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "schbench/30s-1-32/6.0.7/0/schbench.json",
            r#"{"schbench.latency_99%_us": [43000.0, 43500.0]}"#,
        );
        write(
            "schbench/30s-1-32/6.1.0-rc4/0/schbench.json",
            r#"{"schbench.latency_99%_us": [41000.0]}"#,
        );
        write(
            "hackbench/50%/6.0.7/0/stats.json",
            r#"{"hackbench.throughput": 12, "vmstat.system.cs": 5}"#,
        );
        write(
            "hackbench/50%/6.0.7/1/stats.json",
            r#"{"vmstat.system.cs": 5}"#,
        );
        let imported = read(&[dir.path().to_owned()]).unwrap();
        let runs: Vec<(&str, String, f64)> = imported
            .runs
            .iter()
            .map(|run| {
                (
                    run.arm.as_str(),
                    run.place.cell_name(),
                    run.metrics[0].value,
                )
            })
            .collect();
        assert_eq!(
            runs,
            [
                ("6.0.7", "hackbench 50%".to_owned(), 12.0),
                ("6.0.7", "schbench 30s-1-32".to_owned(), 43_250.0),
                ("6.1.0-rc4", "schbench 30s-1-32".to_owned(), 41_000.0),
            ]
        );
        let latency = &imported.runs[1].metrics[0];
        assert_eq!(
            (
                latency.metric.as_str(),
                latency.unit.as_str(),
                latency.better
            ),
            ("latency_99%_us", "us", Better::Lower)
        );
        let fault = imported.faults[0].to_string();
        assert!(
            fault.contains("1/stats.json") && fault.contains("testcase"),
            "{fault}"
        );
    }

    /// Our own figures, in the form in which the kernel test robot mails them.
    const MAIL: &str = "\
> compiler/cpufreq_governor/kconfig/nr_threads/rootfs/tbox_group/test/testcase/testtime:
>   gcc-12/performance/x86_64-rhel-9.4/100%/debian-12.cgz/lkp-box/pipeherd/stress-ng/60s
>
> commit:
>   aaaa48de20 (\"one: before\")
>   bbbbda8ea5 (\"two: after\")
>
> aaaa48de2017c69 bbbbda8ea59546af2e8f192c060
> ---------------- ---------------------------
>          %stddev     %change         %stddev
>              \\          |                \\
>     138055 ± 18%     +33.4%     184128 ± 14%  cpuidle..usage
>   1.5e+06            -13.1%    1303500 ±104%  stress-ng.pipeherd.ops_per_sec
>      60.20           +0.1%      60.26        stress-ng.time.elapsed_time
>       0.05 ±  5%      +0.0        0.06 ± 10%  mpstat.cpu.all.soft%
>    3250:1      -281381%         436:1     dmesg.timestamp:last
";

    #[test]
    fn a_table_of_ncompare_has_the_means_and_spreads_of_its_commits() {
        let mut imported = Imported::default();
        read_text(Path::new("mail"), MAIL, &mut imported).unwrap();
        assert_eq!(imported.runs.len(), 2);
        assert_eq!(
            imported.runs[0].place.cell_name(),
            "stress-ng 100% pipeherd 60s"
        );
        let ops = "pipeherd.ops_per_sec";
        assert_eq!(value(&imported, "aaaa48de20", ops), 1.5e6);
        assert_eq!(value(&imported, "bbbbda8ea5", ops), 1_303_500.0);
        let sd = value(&imported, "bbbbda8ea5", "pipeherd.ops_per_sec_parts_sd");
        assert!((sd - 1_355_640.0).abs() < 1.0, "{sd}");
        assert_eq!(imported.arms[1].facts["subject"], "two: after");
        assert!(
            imported
                .runs
                .iter()
                .all(|run| run.metrics.iter().all(|m| !m.metric.contains("cpuidle")))
        );
    }

    #[test]
    fn figures_of_a_testcase_may_have_the_name_of_its_program() {
        let mail = MAIL
            .replace("stress-ng/60s", "fio-basic/60s")
            .replace("stress-ng.pipeherd.ops_per_sec", "fio.write_iops");
        let mut imported = Imported::default();
        read_text(Path::new("mail"), &mail, &mut imported).unwrap();
        assert_eq!(value(&imported, "aaaa48de20", "write_iops"), 1.5e6);
        let mail = mail
            .replace("fio.write_iops", "netperf.tps")
            .replace("stress-ng.time", "vmstat");
        let mut imported = Imported::default();
        read_text(Path::new("mail"), &mail, &mut imported).unwrap();
        let fault = imported.faults[0].to_string();
        assert!(
            fault.contains("no figure of its testcase `fio-basic`"),
            "{fault}"
        );
    }

    #[test]
    fn an_empty_line_and_whole_hashes_lose_no_table() {
        let mail = MAIL.replace("testtime:\n", "testtime:\n>\n").replace(
            "  aaaa48de20 (",
            "  aaaa48de2017c69d1e5a1fdb7a3ca4bc3d1d5c83 (",
        );
        let mut imported = Imported::default();
        read_text(Path::new("mail"), &mail, &mut imported).unwrap();
        assert_eq!(
            imported.runs[0].place.cell_name(),
            "stress-ng 100% pipeherd 60s"
        );
        assert_eq!(imported.arms[0].facts["subject"], "one: before");
    }

    #[test]
    fn names_of_other_benchmarks_say_their_direction_too() {
        let higher = [
            "Throughput_Mbps",
            "Throughput_total_tps",
            "jobs_per_min",
            "write_iops",
        ];
        for name in higher {
            assert_eq!(better(name), Better::Higher, "{name}");
        }
        for name in ["latency_10us%", "latency_100ms%", "time.elapsed_time"] {
            assert_eq!(better(name), Better::Neither, "{name}");
        }
        assert_eq!(better("latency_99%_us"), Better::Lower);
    }

    #[test]
    fn what_is_no_result_of_lkp_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = read(&[dir.path().to_owned()]).unwrap_err();
        assert!(error.what.contains("no result of lkp-tests"), "{error}");
        let file = dir.path().join("x.txt");
        fs::write(&file, "ops 5\n").unwrap();
        assert!(read(&[file]).is_err());
    }
}
