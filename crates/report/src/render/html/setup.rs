//! Setup of the measurement, so that a reader can judge it and do it again.

use crate::quantity::with_unit;
use model::{Workload, format_duration_ns};
use results::{ResultSet, files};
use serde_json::Value;
use stats::summary::median;
use std::fs;
use std::path::{Path, PathBuf};

/// A longer file is no part of a page.
const MOST_BYTES: usize = 64 << 10;

pub struct Setup {
    pub cells: Vec<CellSetup>,
    /// `None` if no trial ran in a guest.
    pub host: Option<Host>,
    /// The experiment file as it was written.
    pub source: Option<String>,
    /// Pages that loads wrote about themselves, such as Gatling's.
    pub pages: Vec<KeptPage>,
}

/// Page of a load that is kept with its trial.
#[derive(Debug, PartialEq, Eq)]
pub struct KeptPage {
    /// Directory of the trial.
    pub trial: String,
    /// Place of the page, seen from where a run puts its report.
    pub link: String,
}

/// The CPU time that a guest had of its host.
pub struct Host {
    pub text: String,
    pub arms: Vec<HostShare>,
}

/// Shares of time in the trials of one arm that count.
pub struct HostShare {
    pub arm: String,
    /// The guest's CPUs waited for one of the host's.
    pub waited: String,
    /// A hypervisor below the host took its CPUs.
    pub stolen: String,
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

/// Kept folders below which pages are looked for.
const DEEPEST: usize = 4;
/// More of them are found in the results.
const MOST_PAGES: usize = 200;

/// Pages of all trials, in the order of their directories.
fn kept_pages(results: &ResultSet) -> Vec<KeptPage> {
    let trials = results.trials.iter();
    let pages = trials.flat_map(|stored| {
        let mut found = Vec::new();
        find_pages(&stored.dir.join("kept"), DEEPEST, &mut found);
        let trial = stored.dir.file_name().unwrap_or_default();
        let trial = trial.to_string_lossy().into_owned();
        found.into_iter().filter_map(move |page| {
            let within = page.strip_prefix(stored.dir.parent()?).ok()?;
            let link = format!("../trials/{}", within.to_str()?);
            // Whoever made the file may have named it as he likes.
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            link.chars().all(plain).then(|| KeptPage {
                trial: trial.clone(),
                link,
            })
        })
    });
    let mut pages: Vec<KeptPage> = pages.take(MOST_PAGES).collect();
    pages.sort_by(|a, b| a.link.cmp(&b.link));
    pages
}

fn find_pages(directory: &Path, deep: usize, found: &mut Vec<PathBuf>) {
    let page = directory.join("index.html");
    if page.is_file() {
        found.push(page);
        return;
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let inside = entries.filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()) && deep > 0);
    inside.for_each(|entry| find_pages(&entry.path(), deep - 1, found));
}

impl Setup {
    pub fn from_results(results: &ResultSet) -> Setup {
        let cells = results.plan.cells.iter();
        Setup {
            cells: cells
                .map(|cell| {
                    let workload = &results.experiment.workloads[cell.workload];
                    CellSetup {
                        cell: cell.name.clone(),
                        work: work(workload),
                        load: results.load_in_words(cell),
                        window: window(workload),
                        warmup: warmup(workload),
                        metrics: workload.metrics.join(", "),
                    }
                })
                .collect(),
            host: host(results),
            source: source(results),
            pages: kept_pages(results),
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
    let measured = workload.co_runners.iter();
    parts.extend(measured.map(|co_runner| format!("measured with {}", kind(co_runner))));
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
fn warmup(workload: &Workload) -> String {
    let usual = match workload.warmup_ns {
        0 => "none".to_owned(),
        ns => format_duration_ns(ns),
    };
    match workload.snapshot_warmup_ns {
        None => usual,
        Some(ns) => format!("{usual}, {} before the snapshot", format_duration_ns(ns)),
    }
}

fn window(workload: &Workload) -> String {
    match workload.duration_ns {
        0 => "from start to end".to_owned(),
        ns => format_duration_ns(ns),
    }
}

fn host(results: &ResultSet) -> Option<Host> {
    let names = results.experiment.arms.iter().map(|arm| arm.name.as_str());
    let arms: Vec<HostShare> = names.filter_map(|arm| host_share(results, arm)).collect();
    if arms.is_empty() {
        return None;
    }
    let fact = |name: &str| results.system.facts.get(name);
    let cpus = fact("vm.host_cpus").map_or_else(String::new, |cpus| {
        let model = fact("vm.host_cpu").map_or_else(String::new, |model| format!(" ({model})"));
        format!(" with {cpus} CPUs{model}")
    });
    let text = format!(
        "Each CPU of the guest is a thread of a host{cpus}. Time that the host did not give it \
         stands in the figures of the guest."
    );
    Some(Host { text, arms })
}

fn host_share(results: &ResultSet, arm: &str) -> Option<HostShare> {
    let readings = |name: &str| {
        let trials = results.trials.iter().map(|stored| &stored.trial);
        let counted = trials.filter(|trial| trial.arm == arm && trial.is_ok());
        let all = counted.flat_map(|trial| &trial.result.metrics);
        let of_name = all.filter(|reading| reading.metric == name);
        of_name.map(|reading| reading.value).collect::<Vec<f64>>()
    };
    let share = |name: &str| {
        let values = readings(name);
        let middle = median(&values)?;
        let most = values.iter().copied().fold(middle, f64::max);
        let percent = |value: f64| with_unit(value, "%");
        Some(format!("{} (at most {})", percent(middle), percent(most)))
    };
    Some(HostShare {
        arm: arm.to_owned(),
        waited: share("host_vcpu_wait")?,
        stolen: share("host_steal")?,
    })
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
    fn the_first_page_of_a_folder_is_found_and_those_that_it_links_to_are_not() {
        let kept = tempfile::tempdir().unwrap();
        let page = |at: &str| {
            let at = kept.path().join(at);
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("index.html"), "").unwrap();
        };
        page("load/html/simulation-1");
        page("load/html/simulation-1/js");
        page("1/2/3/4/5");
        let mut found = Vec::new();
        find_pages(kept.path(), DEEPEST, &mut found);
        assert_eq!(
            found,
            [kept.path().join("load/html/simulation-1/index.html")]
        );
    }

    #[test]
    fn a_command_is_shown_with_its_words() {
        let command = Kind::new("command").with_param("argv", vec!["make", "-B"]);
        assert_eq!(work(&Workload::new(command)), "command: `make -B`");
        assert_eq!(work(&Workload::new(Kind::new("wakeup"))), "wakeup");
    }
}
