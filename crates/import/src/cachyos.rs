//! Logs of cachyos-benchmarker and of the mini-benchmarker that it comes from: `benchie_DATE.log`,
//! a line `NAME: SECONDS` for each test, the totals, and what the machine was.

use crate::files::{file_text, files_of, load_from_count, parse_number};
use crate::schbench::with_arm;
use crate::{ImportError, Imported, Place, Run, make_figure};
use model::Better;
use std::path::{Path, PathBuf};

/// Name of the tool.
pub const NAME: &str = "cachyos-benchmarker";

const REMEDY: &str = "give benchie_DATE.log of cachyos-benchmarker, or a directory of them";
/// Name of the benchmark in reports.
const BENCHMARK: &str = "mini-benchmarker";

/// Reads logs and directories of logs. `ARM=PATH` gives the arm a name; without it that is the
/// kernel with the sched_ext scheduler.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    for path in paths {
        let (named, path) = with_arm(path);
        for file in files_of(&path, Some("log"), REMEDY)? {
            let read = file_text(&file).and_then(|text| read_text(&file, &text));
            match read {
                Ok(log) => add(&mut imported, &file, named.as_deref(), log),
                Err(fault) => imported.faults.push(fault),
            }
        }
    }
    Ok(imported)
}

/// A log as it is read.
#[derive(Debug, Default, PartialEq)]
pub struct Log {
    /// Seconds of each test, with the line.
    pub tests: Vec<(String, f64, usize)>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Name of the sched_ext scheduler.
    pub scheduler: Option<String>,
}

/// Reads the text of one log, which must be whole: one that was interrupted has no total.
pub fn read_text(path: &Path, text: &str) -> Result<Log, ImportError> {
    let mut log = Log::default();
    let mut has_total = false;
    for (index, line) in text.lines().enumerate() {
        let (before, after) = line.split_once(": ").unwrap_or((line, ""));
        let (before, after) = (before.trim(), after.trim());
        match before {
            "SCX Scheduler" => log.scheduler = Some(after.to_owned()).filter(|ops| ops != "none"),
            "Total time (s)" => has_total = true,
            // What was measured stands above the totals.
            _ if has_total => log.kernel = log.kernel.or_else(|| kernel(line)),
            "" => {}
            test => {
                let seconds = parse_number(after).ok_or_else(|| {
                    let what = format!("`{line}` is no test with its seconds");
                    ImportError::in_line(path, index + 1, what, REMEDY)
                })?;
                log.tests.push((test.to_owned(), seconds, index + 1));
            }
        }
    }
    match has_total {
        true => Ok(log),
        false => Err(ImportError::in_file(
            path,
            "there is no `Total time (s):` in it: was the run interrupted?",
            REMEDY,
        )),
    }
}

/// The release in the words of inxi: `Kernel: 6.9.1-2-cachyos arch: x86_64`.
fn kernel(line: &str) -> Option<String> {
    let (_, after) = line.split_once("Kernel: ")?;
    after.split_whitespace().next().map(str::to_owned)
}

fn add(imported: &mut Imported, file: &Path, named: Option<&str>, log: Log) {
    let kernel = log
        .kernel
        .clone()
        .unwrap_or_else(|| "unknown kernel".to_owned());
    let own = match &log.scheduler {
        Some(ops) => format!("{kernel} {ops}"),
        None => kernel,
    };
    let arm = named.unwrap_or(&own);
    for (test, seconds, line) in log.tests {
        let place = Place {
            workload: test,
            benchmark: BENCHMARK.to_owned(),
            load: load_from_count(None),
            load_name: String::new(),
        };
        imported.add_run(Run {
            metrics: vec![make_figure("time", "s", Better::Lower, seconds)],
            elapsed_ns: model::truncate_to_u64(seconds * 1e9),
            ..Run::new(arm, place, format!("{}:{line}", file.display()))
        });
    }
    let facts = [("kernel", log.kernel), ("sched_ext", log.scheduler)];
    let facts = facts
        .into_iter()
        .filter_map(|(fact, value)| Some((fact.to_owned(), value?)));
    imported.ensure_arm(arm).facts.extend(facts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Our own figures, in the form of the benchmarker.
    fn log(seconds: &str, scheduler: &str) -> String {
        format!(
            "stress-ng cpu-cache-mem: {seconds}\nperf sched msg fork thread: 9.143\n\n\
             Total time (s): 20.1\nTotal score: 12.3\n\nDate: 2024-05-05-1200\n\n\
             System:\n  Kernel: 6.9.1-2-cachyos arch: x86_64 bits: 64\n\nSCX Scheduler: {scheduler}\n\n\
             SCX Version: {scheduler}\n"
        )
    }

    #[test]
    fn each_test_of_a_log_is_a_run_of_its_kernel_and_scheduler() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("benchie_1.log"), log("11.02", "none")).unwrap();
        fs::write(dir.path().join("benchie_2.log"), log("10.5", "lavd")).unwrap();
        let imported = read(&[dir.path().to_owned()]).unwrap();
        assert_eq!(imported.faults, []);
        let runs = imported.runs.iter();
        let runs = runs.map(|run| {
            (
                run.arm.as_str(),
                run.place.cell_name(),
                run.metrics[0].value,
            )
        });
        let expected = [
            (
                "6.9.1-2-cachyos",
                "stress-ng cpu-cache-mem".to_owned(),
                11.02,
            ),
            (
                "6.9.1-2-cachyos",
                "perf sched msg fork thread".to_owned(),
                9.143,
            ),
            (
                "6.9.1-2-cachyos lavd",
                "stress-ng cpu-cache-mem".to_owned(),
                10.5,
            ),
            (
                "6.9.1-2-cachyos lavd",
                "perf sched msg fork thread".to_owned(),
                9.143,
            ),
        ];
        assert_eq!(runs.collect::<Vec<_>>(), expected);
        assert_eq!(imported.arms[1].facts["sched_ext"], "lavd");
        let named = PathBuf::from(format!(
            "tuned={}",
            dir.path().join("benchie_1.log").display()
        ));
        assert_eq!(read(&[named]).unwrap().arms[0].name, "tuned");
    }

    #[test]
    fn a_log_that_is_not_whole_or_has_no_seconds_is_an_error_with_its_line() {
        let path = Path::new("x.log");
        let error = read_text(path, "stress-ng cpu-cache-mem: 11.02\n").unwrap_err();
        assert!(error.what.contains("interrupted"), "{error}");
        let error = read_text(path, &log("Command exited", "none")).unwrap_err();
        assert_eq!(error.line, Some(1));
        assert!(error.what.contains("Command exited"), "{error}");
    }
}
