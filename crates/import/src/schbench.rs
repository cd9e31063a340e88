//! Files that `schbench --json FILE` wrote, one run each: `{"normal": {"version": kernel,
//! "hostname", "sched_ext", "cmdline"}, "int": {"time", "wakeup_latency_pct99.0", …, "runtime"}}`.
//! Latencies are in microseconds; `rps` are requests in each second.

use crate::files::{self, file_text, files_of};
use crate::{ImportError, Imported, Place, Run, make_figure};
use model::{Better, Load, Measurement};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Document {
    normal: Normal,
    int: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct Normal {
    version: String,
    #[serde(default)]
    jobname: Option<String>,
    #[serde(default)]
    hostname: String,
    #[serde(default)]
    sched_ext: Option<String>,
    cmdline: String,
}

/// A run, and the facts about its machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The run, under the arm that the file itself names.
    pub run: Run,
    /// Facts by name.
    pub facts: BTreeMap<String, String>,
}

/// Reads files and directories of files. `ARM=PATH` gives the arm a name; without it that is the
/// job's name, or the kernel with the sched_ext scheduler.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    for path in paths {
        let (named, path) = with_arm(path);
        for file in files_of(
            &path,
            Some("json"),
            "give what `schbench --json FILE` wrote",
        )? {
            match file_text(&file).and_then(|text| read_text(&file, &text)) {
                Ok(read) => add(&mut imported, &file, read, named.as_deref()),
                Err(fault) => imported.faults.push(fault),
            }
        }
    }
    imported.runs.sort_by_key(|run| run.started_unix_ns);
    Ok(imported)
}

fn add(imported: &mut Imported, file: &Path, mut read: Read, named: Option<&str>) {
    if let Some(named) = named {
        named.clone_into(&mut read.run.arm);
    }
    match imported
        .ensure_arm(&read.run.arm)
        .learn_facts(file, read.facts)
    {
        Ok(()) => imported.runs.push(read.run),
        Err(fault) => imported.faults.push(fault),
    }
}

/// The arm and the path of `ARM=PATH`.
pub(crate) fn with_arm(path: &Path) -> (Option<String>, PathBuf) {
    let text = path.to_string_lossy();
    match text.split_once('=') {
        Some((arm, rest)) if !path.exists() && !arm.is_empty() => {
            (Some(arm.to_owned()), PathBuf::from(rest))
        }
        _ => (None, path.to_owned()),
    }
}

/// Reads the text of one file.
pub fn read_text(path: &Path, text: &str) -> Result<Read, ImportError> {
    if text.trim().is_empty() {
        let remedy = "schbench writes it when it ends; was the run interrupted?";
        return Err(ImportError::in_file(path, "the file is empty", remedy));
    }
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Document>();
    let wrong = |e: serde_json::Error| {
        let remedy = "give what `schbench --json FILE` wrote (schbench 1.0 of 2023, or later)";
        ImportError::in_json(path, &e, remedy)
    };
    let Some(document) = documents.next().transpose().map_err(wrong)? else {
        return Err(ImportError::in_file(path, "the file is empty", ""));
    };
    if !text[documents.byte_offset()..].trim().is_empty() {
        let line = 1 + text[..documents.byte_offset()].matches('\n').count();
        return Err(ImportError::in_line(
            path,
            line,
            "the file mixes two runs: there is more behind the first result",
            "schbench writes one result a file; split it",
        ));
    }
    if document.number("runtime") == Some(0.0) {
        return Err(ImportError::in_file(
            path,
            "its runtime is 0 s: nothing was measured",
            "the run was cut short; measure it again",
        ));
    }
    Ok(of_document(path, &document))
}

impl Document {
    fn number(&self, name: &str) -> Option<f64> {
        self.int.get(name).and_then(Value::as_f64)
    }

    /// True for a percentile of a kind of figure that was never counted: all of them are 0.
    fn is_of_nothing(&self, name: &str) -> bool {
        let kind = name.split_once("pct").map(|(kind, _)| kind);
        kind.is_some_and(|kind| {
            let mut alike = self.int.iter().filter(|(name, _)| name.starts_with(kind));
            alike.all(|(_, value)| value.as_f64() == Some(0.0))
        })
    }
}

fn of_document(path: &Path, document: &Document) -> Read {
    let Normal {
        version,
        jobname,
        hostname,
        sched_ext,
        cmdline,
    } = &document.normal;
    let scheduler = sched_ext.as_deref().filter(|ops| *ops != "disabled");
    let named = jobname.clone().filter(|name| !name.trim().is_empty());
    let arm = named.unwrap_or_else(|| match scheduler {
        Some(ops) => format!("{version} {ops}"),
        None => version.clone(),
    });
    let facts = [
        ("kernel", Some(version.as_str())),
        ("host", Some(hostname.as_str())),
        ("sched_ext", scheduler),
    ];
    let facts = facts
        .into_iter()
        .filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned())));
    let seconds = |name: &str| document.number(name).unwrap_or(0.0).max(0.0);
    let elapsed_ns = model::truncate_to_u64(seconds("runtime") * 1e9);
    let ended_ns = model::truncate_to_u64(seconds("time") * 1e9);
    let arm = match arm.trim() {
        "" => "schbench".to_owned(),
        arm => arm.to_owned(),
    };
    Read {
        run: Run {
            metrics: metrics(document),
            started_unix_ns: ended_ns.saturating_sub(elapsed_ns),
            elapsed_ns,
            ..Run::new(&arm, place(cmdline), path.display().to_string())
        },
        facts: facts.collect(),
    }
}

/// The cell is the command line without the program's path and without the names that differ from
/// run to run.
fn place(cmdline: &str) -> Place {
    let mut words = cmdline.split_whitespace().skip(1);
    let mut kept: Vec<&str> = Vec::new();
    let mut load = None;
    while let Some(word) = words.next() {
        match word {
            "-j" | "--json" | "-J" | "--jobname" => drop(words.next()),
            _ if word.starts_with("--json=") || word.starts_with("--jobname=") => {}
            "-m" | "--message-threads" => {
                let count = words.next().unwrap_or_default();
                load = count.parse().ok();
                kept.extend([word, count]);
            }
            _ => kept.push(word),
        }
    }
    Place {
        workload: format!("schbench {}", kept.join(" ")).trim().to_owned(),
        benchmark: "schbench".to_owned(),
        load: load.map_or(Load::One, |count| files::load_from_count(Some(count))),
        load_name: String::new(),
    }
}

/// The figures, without those of a kind of which nothing was counted, where others were.
fn metrics(document: &Document) -> Vec<Measurement> {
    let all = || document.int.iter();
    let counted: Vec<Measurement> = all()
        .filter(|(name, _)| !document.is_of_nothing(name))
        .filter_map(measured)
        .collect();
    match counted.is_empty() {
        true => all().filter_map(measured).collect(),
        false => counted,
    }
}

/// `wakeup_latency_pct99.9` in microseconds is `wakeup_p999` in nanoseconds.
fn measured((name, value): (&String, &Value)) -> Option<Measurement> {
    let value = value.as_f64().filter(|value| *value >= 0.0)?;
    let kinds = [
        ("wakeup_latency_", "wakeup_", "ns", Better::Lower, 1e3),
        ("request_latency_", "request_", "ns", Better::Lower, 1e3),
        ("rps_", "requests_per_sec_", "1/s", Better::Higher, 1.0),
    ];
    kinds
        .into_iter()
        .find_map(|(prefix, metric, unit, better, factor)| {
            let what = name.strip_prefix(prefix)?;
            let (what, better) = match (what.strip_prefix("pct"), what) {
                // The least of all says little, and of the rates it is a false 0 of the first second.
                (None, "min") => ("min".to_owned(), Better::Neither),
                (None, what) => (what.to_owned(), better),
                (Some(digits), _) => {
                    let digits = digits.strip_suffix(".0").unwrap_or(digits);
                    (format!("p{}", digits.replace('.', "")), better)
                }
            };
            Some(make_figure(
                &format!("{metric}{what}"),
                unit,
                better,
                value * factor,
            ))
        })
}
