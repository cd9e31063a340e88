//! Workers as processes of their own: children of the load, which are told what to do over their
//! standard streams. Those of a set may be in a cgroup, which the agent has made.

use super::sets::Set;
use super::wire::{Go, Order, Report, Said, Task};
use super::worker::{self, Member, Record, Shape};
use super::{BurnWait, figures};
use doors::read::line_within;
use doors::started::own_command;
use doors::written;
use load::gate::{Gate, Timing};
use load::recording::{Recorder, Window};
use load::{GroupAt, Job, NativeError, Parsed, PartGroup, Phases, crew, sys};
use model::TrialFile;
use std::io::{BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// Name of the thread that speaks with the workers.
const ATTENDANT: &str = "attendant";
/// Time that it takes to tell one worker to start, by far.
const TELLING_NS: u64 = 50_000;
/// Open files of the load beside the two pipes of each worker.
const FILES_BESIDE: u64 = 64;
/// This program, also where its file was replaced or removed meanwhile.
const PROGRAM: &str = "/proc/self/exe";
/// Subcommand of this program that is a worker.
const SUBCOMMAND: &str = "worker";

/// The cgroups of the sets: one for each where one of them asks for a weight or a quota, so that the
/// CPUs are shared among sets and nothing else.
pub fn groups(sets: &[Set]) -> Vec<PartGroup> {
    let of = |set: &Set| PartGroup {
        part: set.name.clone(),
        weight: set.group_weight(),
        quota_percent: set.quota_percent,
    };
    match sets.iter().any(Set::asks_for_group) {
        true => sets.iter().map(of).collect(),
        false => Vec::new(),
    }
}

/// Open files of a load with so many workers.
fn files_of(workers: u64) -> u64 {
    workers.saturating_mul(2).saturating_add(FILES_BESIDE)
}

/// Workers that need more open files than a process may have.
pub fn beyond_files(workers: u64, most: Option<u64>) -> Option<String> {
    let needed = files_of(workers);
    let most = most.filter(|most| *most < needed)?;
    Some(format!(
        "{workers} processes need {needed} open files, and the hard limit of a process is {most}"
    ))
}

/// One trial.
pub fn generate(load: &BurnWait, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
    let failed = NativeError::Generator;
    let shape = load.shape(job, job.workload.duration_ns);
    let workers = start(load, job, shape).map_err(failed)?;
    let groups = job.groups.clone();
    let attend: crew::Work<Attended> = Box::new(move |gate| attend(workers, &groups, gate));
    let (opened, attended) = crew::run(ATTENDANT, vec![attend], job, phases)?;
    let attended = attended.into_iter().next();
    let attended = attended.ok_or_else(|| failed("no worker was attended".to_owned()))?;
    let groups = groups_file(load, job, &attended.used);
    let records = attended.into_records(shape).map_err(failed)?;
    let mut parsed = figures::compute_figures(load, job, records, opened, None).map_err(failed)?;
    parsed.files.extend(groups);
    Ok(parsed)
}

/// All workers, each in its group, of which each has said that it waits.
fn start(load: &BurnWait, job: &Job, shape: Shape) -> Result<Vec<Worker>, String> {
    let owns = load.owns(job);
    sys::allow_files(files_of(owns.len() as u64))?;
    let mut workers = Vec::new();
    for (member, own) in owns {
        let set = &load.sets[member.set];
        let mut worker = Worker::start(member, set)?;
        worker.send(&Task::for_set(set, shape, &own))?;
        workers.push(worker);
    }
    for worker in &mut workers {
        match (worker.said()?, worker.said()?) {
            (Said::Ready, Said::Waiting) => {}
            _ => return Err(worker.failed("it did not say that it waits")),
        }
    }
    // Only now, so that its start does not use up the quota of a group.
    for worker in &mut workers {
        let name = &load.sets[worker.member.set].name;
        let group = job.groups.iter().find(|group| group.part == *name);
        group.map_or(Ok(()), |group| worker.join(group))?;
    }
    Ok(workers)
}

/// Workers that have reported and are still there, so that what they used can be read.
struct Attended {
    reports: Vec<(Member, Report)>,
    window: Window,
    /// Use of each group in the window.
    used: Vec<Throttled>,
    _workers: Vec<Worker>,
}

impl Attended {
    fn into_records(self, shape: Shape) -> Result<Vec<Record>, String> {
        let longest_ns = worker::longest_lateness_ns(shape.duration_ns);
        let record = |(member, report): (Member, Report)| {
            let mut lateness = Recorder::new(shape.duration_ns, longest_ns)?;
            lateness.open(self.window);
            Ok(report.into_record(member, lateness))
        };
        self.reports.into_iter().map(record).collect()
    }
}

/// From the gate to the last report.
fn attend(mut workers: Vec<Worker>, groups: &[GroupAt], gate: &Gate) -> Result<Attended, String> {
    let Some(Timing { start_ns, window }) = gate.wait() else {
        return Err("there was no load".to_owned());
    };
    // All are to be told before the first one works.
    let telling_ns = TELLING_NS.saturating_mul(workers.len() as u64);
    let warmup_ns = window.begin_ns.saturating_sub(start_ns);
    let go = Order::Go(Go {
        start_ns: start_ns.saturating_add(telling_ns.min(warmup_ns / 2)),
        begin_ns: window.begin_ns,
        end_ns: window.end_ns,
    });
    workers.iter_mut().try_for_each(|worker| worker.send(&go))?;
    sys::sleep_until(window.begin_ns);
    let before = look(&mut workers, groups)?;
    sys::sleep_until(window.end_ns);
    let after = look(&mut workers, groups)?;
    let mut reports = Vec::new();
    for worker in &mut workers {
        match worker.said()? {
            Said::Report(report) => reports.push((worker.member, report)),
            _ => return Err(worker.failed("it said something else than its report")),
        }
    }
    let used = before.into_iter().zip(after);
    Ok(Attended {
        reports,
        window,
        used: used.map(|(before, after)| after.since(before)).collect(),
        _workers: workers,
    })
}

/// Counters of each group, in which all workers of its set are.
fn look(workers: &mut [Worker], groups: &[GroupAt]) -> Result<Vec<Throttled>, String> {
    let one = |group: &GroupAt| {
        let read = |name: &str| {
            let file = group.path.join(name);
            doors::read::kernel_text(&file).map_err(|e| format!("read {}: {e}", file.display()))
        };
        let members = read("cgroup.procs")?;
        let members: Vec<u32> = members.lines().filter_map(|l| l.parse().ok()).collect();
        let mut own = workers
            .iter_mut()
            .filter(|worker| worker.group.as_ref() == Some(&group.part));
        match own.find(|worker| !members.contains(&worker.child.id())) {
            Some(worker) => Err(worker.not_there()),
            None => Ok(Throttled::of(&read("cpu.stat")?)),
        }
    };
    groups.iter().map(one).collect()
}

/// Periods of a quota, those of them in which it was used up, and the time that its threads waited
/// for the next one: `cpu.stat` of a cgroup, of v1 (`throttled_time` in ns) or v2 (`throttled_usec`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Throttled {
    periods: u64,
    throttled: u64,
    throttled_ns: u64,
}

impl Throttled {
    fn of(stat: &str) -> Self {
        let value = |name: &str| -> Option<u64> {
            let words = stat.lines().filter_map(|line| line.split_once(' '));
            let mut values = words.filter(|(word, _)| *word == name);
            values.next()?.1.trim().parse().ok()
        };
        let of_v2 = value("throttled_usec").map(|us| us * 1_000);
        Throttled {
            periods: value("nr_periods").unwrap_or_default(),
            throttled: value("nr_throttled").unwrap_or_default(),
            throttled_ns: of_v2
                .or_else(|| value("throttled_time"))
                .unwrap_or_default(),
        }
    }

    fn since(self, earlier: Self) -> Self {
        Throttled {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            throttled_ns: self.throttled_ns.saturating_sub(earlier.throttled_ns),
        }
    }
}

/// Every cgroup of a set: its weight and quota, and how its quota held the set up in the window.
fn groups_file(load: &BurnWait, job: &Job, used: &[Throttled]) -> Option<TrialFile> {
    let mut text = "set,weight,quota_percent,periods,throttled_periods,throttled_ns\n".to_owned();
    for (group, used) in job.groups.iter().zip(used) {
        let set = load.sets.iter().find(|set| set.name == group.part)?;
        let quota = set.quota_percent.map(|quota| quota.to_string());
        let Throttled {
            periods,
            throttled,
            throttled_ns,
        } = used;
        text.push_str(&format!(
            "{},{},{},{periods},{throttled},{throttled_ns}\n",
            set.name,
            set.group_weight(),
            quota.unwrap_or_default()
        ));
    }
    let name = "groups.csv".to_owned();
    (!used.is_empty()).then_some(TrialFile { name, text })
}

/// A child that is a worker. Dropped, it is ended.
/// The most of a line between a load and its workers.
const MOST_LINE_BYTES: u64 = 64 << 20;

struct Worker {
    name: String,
    member: Member,
    group: Option<String>,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start(member: Member, set: &Set) -> Result<Self, String> {
        let name = &set.name;
        let mut child = own_command(std::path::Path::new(PROGRAM))
            .arg0("schedlab")
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("start a worker of the set {name}: {e}"))?;
        let streams = child.stdin.take().zip(child.stdout.take());
        let Some((input, output)) = streams else {
            return Err("a worker was started without its streams".to_owned());
        };
        Ok(Worker {
            name: format!("{} of the set {name}", child.id()),
            member,
            group: None,
            child,
            input,
            output: BufReader::new(output),
        })
    }

    fn join(&mut self, group: &GroupAt) -> Result<(), String> {
        let file = group.path.join("cgroup.procs");
        written::write_kernel_file(&file, self.child.id().to_string())
            .map_err(|e| self.failed(&format!("put it into {}: {e}", file.display())))?;
        self.group = Some(group.part.clone());
        Ok(())
    }

    fn send(&mut self, line: &impl serde::Serialize) -> Result<(), String> {
        let json = serde_json::to_string(line).map_err(|e| e.to_string())?;
        let sent = writeln!(self.input, "{json}");
        sent.map_err(|e| self.failed(&format!("it takes no line: {e}")))
    }

    fn said(&mut self) -> Result<Said, String> {
        loop {
            let line = line_within(&mut self.output, MOST_LINE_BYTES);
            let line = line.map_err(|e| self.failed(&format!("read what it says: {e}")))?;
            let Some(line) = line else {
                return Err(self.ended());
            };
            match Said::parse(&String::from_utf8_lossy(&line)) {
                Some(Ok(Said::Failed(why))) | Some(Err(why)) => return Err(self.failed(&why)),
                Some(Ok(said)) => return Ok(said),
                None => {}
            }
        }
    }

    /// Why it is not in the cgroup of its set.
    fn not_there(&mut self) -> String {
        match self.child.try_wait() {
            Ok(None) => self.failed("it is no longer in the cgroup of its set"),
            Ok(Some(_)) | Err(_) => self.ended(),
        }
    }

    fn ended(&mut self) -> String {
        let ended = self.child.wait().map(|status| status.to_string());
        let ended = ended.unwrap_or_else(|e| e.to_string());
        self.failed(&format!("it ended by itself: {ended}"))
    }

    fn failed(&self, why: &str) -> String {
        format!("the worker {}: {why}", self.name)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // One that has ended already is only waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets;

    #[test]
    fn every_set_has_a_group_where_one_asks_for_a_weight_or_a_quota() {
        let mut sets = sets::published_sets();
        assert_eq!(groups(&sets), []);
        sets[1].quota_percent = Some(50);
        let group = |part: &str, quota_percent| PartGroup {
            part: part.to_owned(),
            weight: 100,
            quota_percent,
        };
        assert_eq!(groups(&sets), [group("A", None), group("B", Some(50))]);
        sets[0].weight = Some(200);
        assert_eq!(groups(&sets)[0].weight, 200);
    }

    #[test]
    fn workers_beyond_the_limit_of_open_files_are_told() {
        assert_eq!(beyond_files(400, Some(1024)), None);
        assert_eq!(beyond_files(100_000, None), None);
        let said = beyond_files(600, Some(1024)).unwrap();
        assert!(said.contains("1264") && said.contains("1024"), "{said}");
    }

    #[test]
    fn counters_of_a_quota_are_read_in_both_versions() {
        let v1 = Throttled::of("nr_periods 30\nnr_throttled 7\nthrottled_time 500000\n");
        let v2 = "usage_usec 9\nnr_periods 40\nnr_throttled 9\nthrottled_usec 700\nnr_bursts 0\n";
        let between = Throttled::of(v2).since(v1);
        assert_eq!((between.periods, between.throttled), (10, 2));
        assert_eq!(between.throttled_ns, 200_000);
        // The root group, or a kernel without quotas.
        assert_eq!(Throttled::of("usage_usec 9\n"), Throttled::default());
    }
}
