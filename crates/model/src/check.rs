//! Checks that every experiment, plan and trial must pass, wherever it was read: no index
//! points nowhere, no name is there twice, no number is out of range.
//!
//! Everything that indexes or calculates relies on these checks: a results directory is
//! checked as it is read, an experiment before it is planned. Whether an experiment makes
//! sense on top of that is the crate `plan`'s to say.

use crate::experiment::{Experiment, StopRule};
use crate::schedule::{Cell, Plan, PlannedTrial};
use crate::trial::Trial;
use crate::turns::Piloted;
use crate::units::format_duration_ns;
use crate::workload::{Calibration, Load, Workload};
use std::collections::HashSet;

/// A leap year. Every length of time in an experiment is shorter, so that sums of them
/// stay far from the end of their 64 bits.
pub const LONGEST_NS: u64 = 366 * 24 * 3600 * 1_000_000_000;
/// Largest number of blocks of an experiment, and of attempts for a trial.
pub const MOST_BLOCKS: u32 = 10_000;
/// Largest number of arms of an experiment.
pub const MOST_ARMS: usize = 1_000;
/// Largest number of cells, which are pairs of a workload and a load.
pub const MOST_CELLS: usize = 1_000;
/// Trials of a plan: what keeps `plan.json` below the most that is read of a file.
pub const MOST_PLACES: u64 = 500_000;
/// Windows of an arm in one process.
pub const MOST_WINDOWS: usize = 10_000;
/// The shortest window of an arm that takes turns, of some requests at least.
pub const LEAST_WINDOW_NS: u64 = 10_000_000;
/// Threads, workers, groups, connections.
pub const MOST_COUNT: u64 = 1_000_000;
/// The most that one part of a load may take: 1 TiB.
pub const MOST_SIZE_BYTES: u64 = 1 << 40;
/// One request a nanosecond.
pub const MOST_PER_SEC: f64 = 1e9;
/// Largest share of a highest rate, in percent.
pub const MOST_SHARE: f64 = 1_000.0;

/// A value that is wrong, by its key in the file it was read from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}")]
pub struct Invalid {
    /// Key as in JSON: `stop.confidence`, `arms[1].name`.
    pub key: String,
    /// Description of what is wrong with the value.
    pub what: String,
    /// The remedy; empty where the file was not written by hand.
    pub remedy: String,
}

impl Invalid {
    /// Error for the value of a key, without a remedy.
    pub fn new(key: impl Into<String>, what: impl Into<String>) -> Self {
        Invalid {
            key: key.into(),
            what: what.into(),
            remedy: String::new(),
        }
    }

    /// The error with advice on what to write in place of the value.
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// The key is one of `name`.
    pub fn in_table(mut self, name: &str) -> Self {
        self.key = format!("{name}.{}", self.key);
        self
    }
}

type Checked = Result<(), Invalid>;

/// A number of threads, connections or the like.
pub fn check_count(key: &str, count: u64) -> Checked {
    let what = match count {
        0 => format!("`{key}` must be at least 1"),
        1..=MOST_COUNT => return Ok(()),
        _ => format!("`{key}` is at most {MOST_COUNT}, not {count}"),
    };
    Err(Invalid::new(key, what))
}

/// A size of something that is there.
pub fn check_size(key: &str, bytes: u64) -> Checked {
    match bytes {
        0 => check_count(key, 0),
        1..=MOST_SIZE_BYTES => Ok(()),
        _ => Err(Invalid::new(key, format!("`{key}` is at most 1TiB"))),
    }
}

/// Check of an argument list for execve(2): it has a program, and no byte 0 anywhere.
pub fn check_argv(key: &str, argv: &[String]) -> Checked {
    if argv.first().is_none_or(String::is_empty) {
        return Err(Invalid::new(key, "a command needs a program"));
    }
    match argv.iter().any(|word| word.contains('\0')) {
        true => Err(Invalid::new(key, "a word of the command has a byte 0")),
        false => Ok(()),
    }
}

impl Experiment {
    /// Checks arms, baseline, workloads, loads and stop rule, and that all trials fit in a plan.
    pub fn check(&self) -> Checked {
        self.target.check().map_err(|e| e.in_table("target"))?;
        self.check_arms()?;
        if self.workloads.is_empty() {
            return Err(Invalid::new(
                "workloads",
                "there is no workload, so there is nothing to measure",
            )
            .with_remedy("add [[workload]] with a kind, or -w wakeup, or a command after --"));
        }
        let names = self.workloads.iter().map(|w| w.name.as_str());
        unique("workloads", "workload", names)?;
        for (index, workload) in self.workloads.iter().enumerate() {
            let here = format!("workloads[{index}]");
            workload.check().map_err(|e| e.in_table(&here))?;
        }
        self.stop.check().map_err(|e| e.in_table("stop"))?;
        self.check_pause()?;
        self.check_size()
    }

    fn check_pause(&self) -> Checked {
        not_too_long("pause_ns", self.pause_ns)?;
        match self.stop.budget_ns {
            Some(budget_ns) if self.pause_ns >= budget_ns => {
                let [pause, budget] = [self.pause_ns, budget_ns].map(format_duration_ns);
                let what = format!("a pause of {pause} leaves nothing of a budget of {budget}");
                Err(Invalid::new("pause_ns", what)
                    .with_remedy("a shorter pause, or a longer budget"))
            }
            _ => Ok(()),
        }
    }

    fn check_arms(&self) -> Checked {
        if self.arms.is_empty() {
            return Err(
                Invalid::new("arms", "there is no arm, so there is nothing to compare")
                    .with_remedy("add [[arm]] with a name, or -a default -a batch"),
            );
        }
        most("arms", self.arms.len(), MOST_ARMS)?;
        unique("arms", "arm", self.arms.iter().map(|a| a.name.as_str()))?;
        index("baseline", self.baseline, self.arms.len(), "arms")?;
        match &self.aa_arm {
            Some(name) if !self.arms.iter().any(|arm| arm.name == *name) => {
                Err(Invalid::new("aa_arm", format!("there is no arm `{name}`")))
            }
            _ => Ok(()),
        }
    }

    fn check_size(&self) -> Checked {
        let cells = self.workloads.iter().map(|w| w.loads.len()).sum();
        most("workloads", cells, MOST_CELLS).map_err(|e| Invalid {
            what: format!(
                "{cells} cells (workloads × loads); at most {MOST_CELLS} can be compared"
            ),
            ..e
        })?;
        let trials = (self.arms.len() * cells) as u64 * u64::from(self.stop.max_blocks);
        if trials <= MOST_PLACES {
            return Ok(());
        }
        Err(Invalid::new(
            "stop.max_blocks",
            format!(
                "{} arms × {cells} cells × {} blocks are {trials} trials; at most {MOST_PLACES} can \
                 be planned",
                self.arms.len(),
                self.stop.max_blocks
            ),
        )
        .with_remedy("a smaller max-blocks, or fewer arms, loads or workloads"))
    }
}

impl Workload {
    /// Numbers that reports and plans calculate with.
    pub fn check(&self) -> Checked {
        if self.loads.is_empty() {
            return Err(Invalid::new(
                "loads",
                format!("the workload `{}` has no loads", self.name),
            )
            .with_remedy("loads = [1]"));
        }
        for (index, load) in self.loads.iter().enumerate() {
            load.check().map_err(|what| {
                Invalid::new(
                    format!("loads[{index}]"),
                    format!("a load of the workload `{}` {what}", self.name),
                )
            })?;
        }
        let lengths = [
            ("duration_ns", self.duration_ns),
            ("warmup_ns", self.warmup_ns),
            (
                "snapshot_warmup_ns",
                self.snapshot_warmup_ns.unwrap_or_default(),
            ),
            ("time_limit_ns", self.time_limit_ns),
            (
                "in_place.window_ns",
                self.in_place.map_or(0, |lengths| lengths.window_ns),
            ),
            (
                "server.ready_limit_ns",
                self.server.as_ref().map_or(0, |s| s.ready_limit_ns),
            ),
        ];
        lengths
            .into_iter()
            .try_for_each(|(key, ns)| not_too_long(key, ns))?;
        for (index, service) in self.services.iter().enumerate() {
            let key = |name| format!("services[{index}].{name}");
            not_too_long(&key("ready_limit_ns"), service.ready_limit_ns)?;
            not_too_long(&key("stop_limit_ns"), service.stop_limit_ns)?;
        }
        Ok(())
    }
}

impl Load {
    /// `Err` completes the sentence "a load …".
    pub fn check(&self) -> Result<(), String> {
        let rate = |per_sec: f64| per_sec > 0.0 && per_sec <= MOST_PER_SEC;
        let wrong = match self {
            Load::ShareOfMax(share) if !(share.percent > 0.0 && share.percent <= MOST_SHARE) => {
                Some(format!(
                    "of {}% of the highest rate is out of range: above 0% and at most {MOST_SHARE}%",
                    share.percent
                ))
            }
            Load::ShareOfMax(share) => return Load::MaxRate(share.slo).check(),
            Load::One => None,
            Load::Count(0) => Some("of 0 measures nothing; the least is 1".to_owned()),
            Load::Count(n) if *n > MOST_COUNT => {
                Some(format!("of {n} is out of range; the most is {MOST_COUNT}"))
            }
            Load::PercentOfCpus(p) if !(*p > 0.0 && *p <= 1e6) => Some(format!(
                "of {p}% is out of range: above 0% and at most 1000000%"
            )),
            Load::RatePerSec(r) if !rate(*r) => Some(format!(
                "of {r} requests a second is out of range: above 0 and at most {MOST_PER_SEC}"
            )),
            Load::MaxRate(slo) if !(rate(slo.from_per_sec) && rate(slo.to_per_sec)) => {
                Some("searches rates that are out of range".to_owned())
            }
            Load::MaxRate(slo) if slo.from_per_sec >= slo.to_per_sec => {
                Some("searches from a rate to one that is not above it".to_owned())
            }
            Load::MaxRate(slo) if !(1..=999).contains(&slo.permille) || slo.below_ns == 0 => {
                Some("has a service level that is none".to_owned())
            }
            Load::Count(_) | Load::PercentOfCpus(_) | Load::RatePerSec(_) | Load::MaxRate(_) => {
                None
            }
        };
        wrong.map_or(Ok(()), Err)
    }
}

impl Calibration {
    /// Checks that a highest rate is one, and that windows have a length.
    pub fn check(&self) -> Checked {
        let is_rate = |rate: f64| rate > 0.0 && rate <= MOST_PER_SEC;
        if let Some(rate) = self.max_per_sec.filter(|rate| !is_rate(*rate)) {
            return Err(Invalid::new("max_per_sec", format!("{rate} is no rate")));
        }
        let Some(Piloted::Turns { lengths }) = self.piloted else {
            return Ok(());
        };
        not_too_long("piloted.lengths.washout_ns", lengths.washout_ns)?;
        not_too_long("piloted.lengths.window_ns", lengths.window_ns)?;
        match lengths.window_ns < LEAST_WINDOW_NS {
            true => Err(Invalid::new(
                "piloted.lengths.window_ns",
                format!(
                    "{} is too short for a window",
                    format_duration_ns(lengths.window_ns)
                ),
            )),
            false => Ok(()),
        }
    }
}

impl StopRule {
    /// Checks that the numbers of the rule are in range and fit together.
    pub fn check(&self) -> Checked {
        if !(0.5..1.0).contains(&self.confidence) {
            let what = format!("a confidence of {} is out of range", self.confidence);
            return Err(Invalid::new("confidence", what).with_remedy(
                "a fraction from 0.5 up to, but not including, 1: confidence = 0.95",
            ));
        }
        if !(self.smallest_effect > 0.0 && self.smallest_effect < 1.0) {
            return Err(
                Invalid::new("smallest_effect", "the smallest effect is out of range")
                    .with_remedy("above 0% and under 100%: smallest-effect = \"2%\""),
            );
        }
        let (least, most) = (self.min_blocks, self.max_blocks);
        if most == 0 || least > most || most > MOST_BLOCKS {
            let what = format!("min-blocks = {least} and max-blocks = {most} do not fit");
            return Err(Invalid::new("max_blocks", what)
                .with_remedy(format!("1 <= min-blocks <= max-blocks <= {MOST_BLOCKS}")));
        }
        if self.max_attempts == 0 || self.max_attempts > MOST_BLOCKS {
            let what = format!("max-attempts must be 1 to {MOST_BLOCKS}");
            return Err(Invalid::new("max_attempts", what));
        }
        match self.budget_ns {
            None => Ok(()),
            Some(0) => Err(Invalid::new("budget_ns", "a budget of 0 measures nothing")
                .with_remedy("budget = \"5m\"")),
            Some(budget) => not_too_long("budget_ns", budget),
        }
    }
}

impl Plan {
    /// Is it a plan of this experiment, which was checked before?
    pub fn check(&self, experiment: &Experiment) -> Checked {
        most("cells", self.cells.len(), MOST_CELLS)?;
        unique("cells", "cell", self.cells.iter().map(|c| c.name.as_str()))?;
        for (at, cell) in self.cells.iter().enumerate() {
            check_cell(cell, experiment).map_err(|e| e.in_table(&format!("cells[{at}]")))?;
        }
        #[expect(clippy::cast_possible_truncation, reason = "half a million")]
        let most_places = MOST_PLACES as usize;
        most("trials", self.trials.len(), most_places)?;
        let mut seen = HashSet::new();
        let mut block = 1;
        for (at, place) in self.trials.iter().enumerate() {
            self.check_place(place, at, experiment)
                .and_then(|()| match place.block {
                    next if next < block => Err(Invalid::new("block", "blocks are out of order")),
                    next if next > experiment.stop.max_blocks => {
                        Err(Invalid::new("block", "is beyond the most blocks"))
                    }
                    next if !seen.insert((next, place.cell, place.arm)) => {
                        Err(Invalid::new("arm", "is in this block of its cell twice"))
                    }
                    next => {
                        block = next;
                        Ok(())
                    }
                })
                .map_err(|e| e.in_table(&format!("trials[{at}]")))?;
        }
        Ok(())
    }

    fn check_place(&self, place: &PlannedTrial, at: usize, experiment: &Experiment) -> Checked {
        if place.index as usize != at {
            return Err(Invalid::new(
                "index",
                format!("is {}, not {at}", place.index),
            ));
        }
        index("cell", place.cell, self.cells.len(), "cells")?;
        index("arm", place.arm, experiment.arms.len(), "arms")
    }
}

fn check_cell(cell: &Cell, experiment: &Experiment) -> Checked {
    let workloads = experiment.workloads.len();
    index("workload", cell.workload, workloads, "workloads")?;
    let check = cell.load.check();
    check.map_err(|what| Invalid::new("load", format!("a load {what}")))
}

impl Trial {
    /// Is it a trial of this plan, which was checked before?
    pub fn check(&self, experiment: &Experiment, plan: &Plan) -> Checked {
        let place = &self.place;
        if plan.trials.get(place.index as usize) != Some(place) {
            let what = format!("number {} of the plan is another place", place.index);
            return Err(Invalid::new("place", what));
        }
        if self.cell != plan.cells[place.cell].name {
            return Err(Invalid::new("cell", "is not the cell of its place"));
        }
        if self.arm != experiment.arms[place.arm].name {
            return Err(Invalid::new("arm", "is not the arm of its place"));
        }
        if !(1..=MOST_COUNT).contains(&u64::from(self.attempt)) {
            return Err(Invalid::new("attempt", "attempts count from 1"));
        }
        let result = &self.result;
        not_too_long("result.elapsed_ns", result.elapsed_ns)?;
        let windows = result.windows.as_ref().map_or(0, |w| w.pairs.len());
        most("result.windows.pairs", windows, MOST_WINDOWS)?;
        if result.started_unix_ns > i64::MAX as u64 {
            return Err(Invalid::new("result.started_unix_ns", "is out of range"));
        }
        Ok(())
    }
}

fn not_too_long(key: &str, ns: u64) -> Checked {
    if ns <= LONGEST_NS {
        return Ok(());
    }
    let what = format!(
        "{} is longer than a year (366 days), the most that is measured",
        format_duration_ns(ns)
    );
    Err(Invalid::new(key, what))
}

fn index(key: &str, at: usize, count: usize, of: &str) -> Checked {
    if at < count {
        return Ok(());
    }
    let what = format!("is {at}, but there are only {count} {of}");
    Err(Invalid::new(key, what))
}

fn most(key: &str, count: usize, most: usize) -> Checked {
    if count <= most {
        return Ok(());
    }
    let what = format!("{count} are more than the {most} that there can be");
    Err(Invalid::new(key, what))
}

fn unique<'a>(key: &str, what: &str, names: impl Iterator<Item = &'a str>) -> Checked {
    let mut seen = HashSet::new();
    for (at, name) in names.enumerate() {
        let key = format!("{key}[{at}].name");
        if name.trim().is_empty() {
            return Err(Invalid::new(key, format!("this {what} has no name")));
        }
        if !seen.insert(name) {
            return Err(Invalid::new(key, format!("there are two {what}s `{name}`"))
                .with_remedy(format!("give each {what} a name of its own")));
        }
    }
    Ok(())
}
