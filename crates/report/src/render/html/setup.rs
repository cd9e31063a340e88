//! Setup of the measurement, so that a reader can judge it and do it again.

use model::{Workload, format_duration_ns};
use results::{ResultSet, files};
use serde_json::Value;

/// A longer file is no part of a page.
const MOST_BYTES: usize = 64 << 10;

pub struct Setup {
    pub cells: Vec<CellSetup>,
    /// The experiment file as it was written.
    pub source: Option<String>,
}

/// Work of one trial of a cell.
pub struct CellSetup {
    pub cell: String,
    pub work: String,
    pub load: String,
    pub window: String,
    pub warmup: String,
    /// The metrics that decide.
    pub metrics: String,
}

impl Setup {
    pub fn of(results: &ResultSet) -> Setup {
        let cells = results.plan.cells.iter();
        Setup {
            cells: cells
                .map(|cell| {
                    let workload = &results.experiment.workloads[cell.workload];
                    CellSetup {
                        cell: cell.name.clone(),
                        work: work(workload),
                        load: cell.load.to_string(),
                        window: window(workload),
                        warmup: match workload.warmup_ns {
                            0 => "none".to_owned(),
                            ns => format_duration_ns(ns),
                        },
                        metrics: workload.metrics.join(", "),
                    }
                })
                .collect(),
            source: source(results),
        }
    }
}

/// `http, server nginx, beside batch (stress-ng)`.
fn work(workload: &Workload) -> String {
    let mut parts = vec![kind(workload)];
    let server = workload.server.as_ref();
    parts.extend(server.map(|server| format!("server {}", server.program.name())));
    let services = workload.services.iter();
    parts.extend(services.map(|service| format!("service {}", service.name)));
    let beside = workload.antagonists.iter();
    parts.extend(beside.map(|a| match a.program.name() == a.name {
        true => format!("beside {}", a.name),
        false => format!("beside {} ({})", a.name, a.program.name()),
    }));
    parts.join(", ")
}

/// The kind, and the command where it has one.
fn kind(workload: &Workload) -> String {
    let kind = &workload.kind;
    let words = kind.params().get("argv").and_then(Value::as_array);
    let words: Vec<&str> = words
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    match words.is_empty() {
        true => kind.name().to_owned(),
        false => format!("{}: `{}`", kind.name(), words.join(" ")),
    }
}

/// The measured time of a trial.
fn window(workload: &Workload) -> String {
    match workload.duration_ns {
        0 => "from start to end".to_owned(),
        ns => format_duration_ns(ns),
    }
}

fn source(results: &ResultSet) -> Option<String> {
    let bytes = files::read(&results.dir.join(files::EXPERIMENT_SOURCE)).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    (text.len() <= MOST_BYTES).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Kind;

    #[test]
    fn a_command_is_shown_with_its_words() {
        let command = Kind::new("command").with("argv", vec!["make", "-B"]);
        assert_eq!(work(&Workload::new(command)), "command: `make -B`");
        assert_eq!(work(&Workload::new(Kind::new("wakeup"))), "wakeup");
    }
}
