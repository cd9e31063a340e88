//! What the runners of the Linux Test Project write: the JSON of kirk and runltp-ng, the table of
//! `runltp -l`, and the output of runltp itself, which alone has times of old runners.
//!
//! LTP tells whether a kernel is right. Each call of it is a run of the cell `all tests`, with how
//! many passed and failed; a test that passed is a run of its own cell where its time is known. How
//! long a test took before it failed is not compared with anything.

use crate::files::{file_name, file_text, files_of, load_from_count, parse_number};
use crate::schbench::with_arm;
use crate::{ImportError, Imported, Place, Run, make_figure};
use model::{Better, Severity, Warning};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the tool.
pub const NAME: &str = "ltp";

const REMEDY: &str =
    "give the JSON of kirk or runltp-ng, or what `runltp -l FILE` or `-o FILE` wrote";
/// Name of the cell with the numbers of tests.
const ALL: &str = "all tests";
/// Clock ticks a second in which the output of runltp has CPU times.
const TICKS: f64 = 100.0;
/// Exit code of a test that does not fit the machine.
const CONF: &str = "32";
/// Names in a warning.
const MOST_NAMED: usize = 5;

/// One call of a runner.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// Tests in their order.
    pub tests: Vec<Test>,
    /// Line at which it begins.
    pub line: usize,
}

/// A test that was run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Test {
    /// Name of the test.
    pub name: String,
    /// Result in lower case: `pass`, `fail`, `brok`, `warn` or `conf`.
    pub result: String,
    /// Time that it took, in seconds.
    pub seconds: Option<f64>,
    /// CPU time of its processes, in seconds.
    pub cpu_seconds: Option<f64>,
    /// Line of the file; 0 in JSON.
    pub line: usize,
}

/// Reads files and directories of files. `ARM=PATH` gives the arm a name; without it that is the
/// kernel.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    for path in paths {
        let (named, path) = with_arm(path);
        for file in files_of(&path, None, REMEDY)? {
            let arm = named.as_deref();
            let read = file_text(&file).and_then(|text| add_text(&file, &text, arm, &mut imported));
            imported.faults.extend(read.err());
        }
    }
    Ok(imported)
}

/// Adds the runs in the text of one file, to the named arm or to that of the kernel.
pub fn add_text(
    file: &Path,
    text: &str,
    arm: Option<&str>,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    for session in read_text(file, text)? {
        add(imported, file, arm, session);
    }
    Ok(())
}

/// Reads the text of one file, in the form that it has.
pub fn read_text(path: &Path, text: &str) -> Result<Vec<Session>, ImportError> {
    let sessions = match () {
        () if text.trim_start().starts_with('{') => vec![of_json(path, text)?],
        () if text.contains(BEGIN) => vec![of_output(path, text)?],
        () => of_table(path, text)?,
    };
    match sessions.iter().all(|session| session.tests.is_empty()) {
        true => Err(ImportError::in_file(
            path,
            "there is no test of LTP in it",
            REMEDY,
        )),
        false => Ok(sessions),
    }
}

#[derive(Deserialize)]
struct Report {
    results: Vec<Reported>,
    #[serde(default)]
    environment: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Reported {
    test_fqn: String,
    #[serde(default)]
    status: Option<String>,
    test: ReportedTest,
}

#[derive(Deserialize)]
struct ReportedTest {
    duration: f64,
    #[serde(default)]
    result: Option<String>,
}

fn of_json(path: &Path, text: &str) -> Result<Session, ImportError> {
    let wrong = |e: serde_json::Error| ImportError::in_json(path, &e, REMEDY);
    let report: Report = serde_json::from_str(text).map_err(wrong)?;
    let kernel = report.environment.get("kernel").and_then(|k| k.as_str());
    let test = |reported: Reported| {
        let result = reported.test.result.or(reported.status);
        let is_time = |seconds: &f64| seconds.is_finite() && *seconds >= 0.0;
        let seconds = Some(reported.test.duration).filter(is_time);
        let name = reported.test_fqn;
        let what = || format!("the test `{name}` has no result, or no time");
        let (Some(result), Some(_)) = (result, seconds) else {
            return Err(ImportError::in_file(path, what(), REMEDY));
        };
        Ok(Test {
            name,
            result,
            seconds,
            ..Test::default()
        })
    };
    Ok(Session {
        kernel: kernel
            .filter(|kernel| !kernel.is_empty())
            .map(str::to_owned),
        tests: report
            .results
            .into_iter()
            .map(test)
            .collect::<Result<_, _>>()?,
        ..Session::default()
    })
}

/// The tables of `runltp -l`, which adds to a file that is there.
fn of_table(path: &Path, text: &str) -> Result<Vec<Session>, ImportError> {
    let mut sessions: Vec<Session> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("Test Start Time:") {
            sessions.push(Session {
                line: at + 1,
                ..Session::default()
            });
            continue;
        }
        let Some(session) = sessions.last_mut() else {
            continue;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [
                test,
                result @ ("PASS" | "FAIL" | "CONF" | "BROK" | "WARN"),
                code,
            ] if code.parse::<i64>().is_ok() => {
                session.tests.push(Test {
                    name: (*test).to_owned(),
                    result: result.to_lowercase(),
                    line: at + 1,
                    ..Test::default()
                });
            }
            ["Total", "Tests:", total] => is_whole(path, session, total, at + 1)?,
            ["Kernel", "Version:", kernel] => session.kernel = Some((*kernel).to_owned()),
            ["Hostname:", host] => session.host = Some((*host).to_owned()),
            _ => {}
        }
    }
    match sessions.iter().find(|session| session.kernel.is_none()) {
        None => Ok(sessions),
        Some(session) => {
            let what = "the table that begins here has no end: was the run interrupted?";
            Err(ImportError::in_line(path, session.line, what, REMEDY))
        }
    }
}

fn is_whole(path: &Path, session: &Session, total: &str, at: usize) -> Result<(), ImportError> {
    let rows = session.tests.len();
    match total.parse() == Ok(rows) {
        true => Ok(()),
        false => {
            let what = format!("it says {total} tests, and there are {rows} above it");
            Err(ImportError::in_line(path, at, what, REMEDY))
        }
    }
}

const BEGIN: &str = "<<<test_start>>>";
const END: &str = "<<<test_end>>>";

/// The output of runltp, with a block for each test.
fn of_output(path: &Path, text: &str) -> Result<Session, ImportError> {
    let mut session = Session {
        line: 1,
        ..Session::default()
    };
    let mut open: Option<Test> = None;
    for (at, line) in text.lines().enumerate() {
        if line.trim() == BEGIN {
            no_end(path, open.as_ref())?;
            open = Some(Test {
                line: at + 1,
                ..Test::default()
            });
        }
        if let Some((_, release)) = line.split_once("TINFO: Tested kernel: ") {
            let release = release.split_whitespace().next().map(str::to_owned);
            session.kernel = session.kernel.or(release);
        }
        if line.trim() == END {
            session.tests.extend(open.take());
        }
        if let Some(test) = &mut open {
            take(test, line);
        }
    }
    no_end(path, open.as_ref())?;
    Ok(session)
}

fn no_end(path: &Path, open: Option<&Test>) -> Result<(), ImportError> {
    open.map_or(Ok(()), |test| {
        let what = format!(
            "the test `{}` has no end: was the run interrupted?",
            test.name
        );
        Err(ImportError::in_line(path, test.line, what, REMEDY))
    })
}

/// Takes what a line within a block says of its test.
fn take(test: &mut Test, line: &str) {
    let words = line
        .split_whitespace()
        .filter_map(|word| word.split_once('='));
    let words: BTreeMap<&str, &str> = words.collect();
    let seconds = |key: &str| words.get(key).and_then(|text| parse_number(text));
    if test.name.is_empty()
        && line.starts_with("tag=")
        && let Some(tag) = words.get("tag")
    {
        (*tag).clone_into(&mut test.name);
    }
    if line.starts_with("duration=") {
        test.seconds = seconds("duration");
        let ended = [words.get("termination_type"), words.get("termination_id")];
        let result = match ended.map(|word| word.copied().unwrap_or_default()) {
            ["exited", "0"] => "pass",
            ["exited", CONF] => "conf",
            _ => "fail",
        };
        result.clone_into(&mut test.result);
    }
    if let (true, Some(user), Some(system)) = (
        line.starts_with("cutime="),
        seconds("cutime"),
        seconds("cstime"),
    ) {
        test.cpu_seconds = Some((user + system) / TICKS).filter(|seconds| seconds.is_finite());
    }
}

fn add(imported: &mut Imported, file: &Path, named: Option<&str>, session: Session) {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let own = session.kernel.clone().unwrap_or_else(|| stem.into_owned());
    let arm = named.unwrap_or(&own);
    let facts = [("kernel", &session.kernel), ("host", &session.host)];
    let facts = facts
        .into_iter()
        .filter_map(|(fact, value)| Some((fact.to_owned(), value.clone()?)));
    if let Err(fault) = imported.ensure_arm(arm).learn_facts(file, facts) {
        imported.faults.push(fault);
        return;
    }
    imported.runs.push(all(file, arm, &session));
    for test in session.tests.iter().filter(|test| test.result == "pass") {
        imported.runs.extend(timed(file, arm, test));
    }
    imported.warnings.extend(not_passed(file, &session));
}

fn place(workload: &str) -> Place {
    Place {
        workload: workload.to_owned(),
        benchmark: NAME.to_owned(),
        load: load_from_count(None),
        load_name: String::new(),
    }
}

fn source(file: &Path, line: usize) -> String {
    match line {
        0 => file.display().to_string(),
        line => format!("{}:{line}", file.display()),
    }
}

/// The run with the numbers of tests.
fn all(file: &Path, arm: &str, session: &Session) -> Run {
    let count = |results: &[&str]| {
        let tests = session.tests.iter();
        tests
            .filter(|test| results.contains(&test.result.as_str()))
            .count() as f64
    };
    let (passed, skipped) = (count(&["pass"]), count(&["conf"]));
    let failed = session.tests.len() as f64 - passed - skipped;
    let metrics = vec![
        make_figure("tests_failed", "count", Better::Lower, failed),
        make_figure("tests_passed", "count", Better::Higher, passed),
        make_figure("tests_skipped", "count", Better::Neither, skipped),
    ];
    Run {
        metrics,
        ..Run::new(arm, place(ALL), source(file, session.line))
    }
}

/// The run of a test that passed, if it has a time. The output of runltp has whole seconds, and most
/// tests take none.
fn timed(file: &Path, arm: &str, test: &Test) -> Option<Run> {
    let times = [("time", test.seconds), ("cpu_time", test.cpu_seconds)];
    let times = times
        .into_iter()
        .filter_map(|(metric, seconds)| Some((metric, seconds.filter(|seconds| *seconds > 0.0)?)));
    let metrics: Vec<_> = times
        .map(|(metric, seconds)| make_figure(metric, "s", Better::Lower, seconds))
        .collect();
    (!metrics.is_empty()).then(|| Run {
        elapsed_ns: model::truncate_to_u64(test.seconds.unwrap_or(0.0) * 1e9),
        metrics,
        ..Run::new(arm, place(&test.name), source(file, test.line))
    })
}

/// Warning that names tests that did not pass.
fn not_passed(file: &Path, session: &Session) -> Option<Warning> {
    let others = session.tests.iter().filter(|test| test.result != "pass");
    let others: Vec<String> = others
        .map(|test| format!("{} ({})", test.name, test.result))
        .collect();
    let more = others.len().saturating_sub(MOST_NAMED);
    let named = others[..others.len() - more].join(", ");
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!others.is_empty()).then(|| Warning {
        severity: Severity::Note,
        what: format!(
            "{}: tests that did not pass, whose times are left out: {named}{more}.",
            file_name(file)
        ),
        remedy: String::new(),
    })
}

#[cfg(test)]
mod tests;
