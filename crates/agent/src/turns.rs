//! A trial in which arms take turns inside one process.
//!
//! The load is told its turns beforehand and says when the first begins; from then on all that
//! passes between it and the agent are figures of some windows at a time, in the washout after them. The runner may
//! find that they are enough; then no further pair begins. At the start of each turn the agent reads back that the arm
//! of the last one was still in force, takes it back, puts the next in force, and reads that
//! back on every thread. A window whose proof disagrees, or comes after the first half of its
//! washout, does not count.

use crate::arm::changes::InForce;
use crate::arm::ingredient::Ingredient;
use crate::arm::table::INGREDIENTS;
use crate::bell::{self, Clock, clock};
use crate::judge::judge;
use crate::load_process::Purpose;
use crate::process::Process;
use crate::processes::KILL_LIMIT;
use crate::stop::Stop;
use crate::trial::Trial;
use load::{Driver, Job, Launch, Parsed, TurnFigures, phase};
use model::turns::VoidWindow;
use model::{
    Arm, Evidence, Measurement, Reply, Request, Role, Severity, SoFar, TakingTurns, TrialResult,
    TrialSpec, Turns, Warning, Windows,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The spec with arms that say all that any of them changes, so that each turn sets and proves it.
pub fn resolve_arms(spec: &TrialSpec) -> TrialSpec {
    let mut spec = spec.clone();
    let Some(taking) = &mut spec.turns else {
        return spec;
    };
    // What an arm changes of a daemon is taken back after its turn, so other arms need no value for it.
    let is_of_daemon = taking.arms.iter().any(|arm| arm.to == Role::Daemon);
    let named = |ingredient: &&dyn Ingredient| !is_of_daemon || ingredient.roles().is_empty();
    for ingredient in INGREDIENTS.iter().filter(named) {
        ingredient.name_in_all(&mut taking.arms, &spec.workload);
    }
    let first = taking.turns.order.first().map_or(0, |turn| turn.arm);
    if let Some(arm) = taking.arms.get(first) {
        spec.arm = arm.clone();
    }
    spec
}

/// Part of a trial that belongs to one of its arms.
#[derive(Debug, Clone, Default)]
pub struct OfArm {
    evidence: Evidence,
    metrics: Vec<Measurement>,
    windows: Windows,
}

impl OfArm {
    fn so_far(self) -> SoFar {
        SoFar {
            metrics: self.metrics,
            windows: self.windows,
        }
    }
}

/// Result of each arm of a trial that counts. The time of the process is shared out between them.
pub fn results(of_trial: &TrialResult, arms: Vec<OfArm>) -> Vec<TrialResult> {
    let share_ns = of_trial.elapsed_ns / arms.len().max(1) as u64;
    let result = |(index, of_arm): (u64, OfArm)| TrialResult {
        started_unix_ns: of_trial.started_unix_ns + index * share_ns,
        elapsed_ns: share_ns,
        evidence: of_arm.evidence,
        metrics: of_arm.metrics,
        // They are of the process: each is said once.
        warnings: match index {
            0 => of_trial.warnings.clone(),
            _ => Vec::new(),
        },
        windows: Some(Windows {
            process_unix_ns: of_trial.started_unix_ns,
            ..of_arm.windows
        }),
        ..of_trial.clone()
    };
    (0..).zip(arms).map(result).collect()
}

/// Figures that the load tells while arms take turns.
#[derive(Debug, Default)]
pub struct Known {
    figures: Parsed,
    /// Number of turns that the runner was told of last.
    told: usize,
    /// It has said that they are enough.
    is_enough: bool,
}

impl Known {
    /// Adds the figures of a line. One that cannot be read tells nothing, and the process goes on to its end.
    pub fn hear_figures(&mut self, line: &str) {
        let json = line.strip_prefix(phase::FIGURES).unwrap_or_default();
        if let Ok(told) = serde_json::from_str::<Parsed>(json) {
            self.figures.metrics = told.metrics;
            self.figures.turns.extend(told.turns);
        }
    }

    /// Number of turns whose figures have come since the last look.
    fn count_new(&self) -> Option<usize> {
        let known = self.figures.turns.len();
        (known > self.told).then_some(known)
    }
}

/// Outcome of one turn.
#[derive(Debug)]
struct Turned {
    /// Facts that were read after the change and at the end of the window.
    evidence: Evidence,
    /// From the start of the turn until the arm was proven to be in force.
    change_ns: u64,
    void: Option<String>,
    /// Its scheduler was in force and is not any more.
    is_lost: bool,
}

impl Turned {
    /// A turn that comes after an arm was lost.
    fn without_arm(why: &str) -> Self {
        Turned {
            evidence: Evidence::default(),
            change_ns: 0,
            void: Some(format!("an earlier turn ended all: {why}")),
            is_lost: false,
        }
    }

    /// The same for a look, which asks for figures alone.
    fn without_evidence(&self) -> Self {
        Turned {
            evidence: Evidence::default(),
            change_ns: self.change_ns,
            void: self.void.clone(),
            is_lost: self.is_lost,
        }
    }
}

impl<'a> Trial<'a, '_> {
    /// The trial from the start of the load to the figures of each arm.
    pub fn measure_turns(
        &mut self,
        driver: &dyn Driver,
        job: &Job,
        launch: &Launch,
        taking: &'a TakingTurns,
    ) -> Result<(), Stop> {
        let limit = Duration::from_nanos(self.spec.workload.time_limit_ns)
            + Duration::from_nanos(taking.turns.all_ns());
        self.until = Instant::now() + limit;
        self.stage
            .start_collectors(self.context, self.spec, &self.in_force, limit);
        self.say_measuring();
        self.stage.limit_load(self.context, &self.in_force)?;
        let mut process = self.start_process(launch, Purpose::Load)?;
        let turned = self.take_turns(&mut process, taking);
        let (turned, ended) = match turned {
            Ok(turned) => (turned, bell::wait_for_exit(self, &mut process)),
            Err(stop) => (Vec::new(), Err(stop)),
        };
        let (output, _) = self.end_process(process, ended)?;
        let mut parsed = self.read_output(driver, job, &output)?;
        let taken = first_turns(taking, turned.len());
        parsed.turns.truncate(turned.len());
        self.of_arms = of_arms(&taken, &parsed, turned)?;
        for (arm, of_arm) in taking.arms.iter().zip(&self.of_arms) {
            judge(arm, &of_arm.evidence).map_err(Stop::Void)?;
        }
        self.warn_of_short_windows();
        Ok(())
    }

    fn say_measuring(&mut self) {
        let left = self.until.saturating_duration_since(Instant::now());
        self.context
            .progress("measuring in turns", left + KILL_LIMIT);
    }

    /// A quantile that decides needs enough requests in each window.
    fn warn_of_short_windows(&mut self) {
        let measured = |name: &&String| {
            let mut metrics = self.of_arms.iter().flat_map(|of_arm| &of_arm.metrics);
            metrics.any(|m| m.metric == **name)
        };
        let names = self.spec.workload.metrics.iter();
        let missing: Vec<&str> = names.filter(|n| !measured(n)).map(String::as_str).collect();
        if !missing.is_empty() {
            self.warnings.push(Warning {
                severity: Severity::Caution,
                what: format!(
                    "no window has requests enough for {}, so that does not decide",
                    missing.join(", ")
                ),
                remedy: "a longer turn (`--turn`), or other metrics: metrics = [\"request_p50\"]"
                    .to_owned(),
            });
        }
    }

    fn take_turns(
        &mut self,
        process: &mut Process,
        taking: &'a TakingTurns,
    ) -> Result<Vec<Turned>, Stop> {
        let turns = &taking.turns;
        let begin = clock::start_clock(self, process)?;
        let start_of = |index| begin + Duration::from_nanos(turns.lengths.turn_ns()) * index;
        clock::wait_until(self, process, begin)?;
        self.check_arm()?;
        let mut turned: Vec<Turned> = Vec::with_capacity(turns.order.len());
        let mut over: Option<String> = None;
        for (index, turn) in (0..).zip(&turns.order) {
            let ends = [start_of(index), start_of(index + 1)];
            turned.push(match &over {
                None => self.turn_to(arm_at(taking, turn.arm)?, process, ends, turns)?,
                Some(why) => {
                    clock::wait_until(self, process, ends[1])?;
                    Turned::without_arm(why)
                }
            });
            over = over.or(self.find_end_of_all(turned.last_mut()));
            let is_enough = self.ask_if_enough(taking, &turned);
            if is_enough && turned.len().is_multiple_of(2) {
                let _ = process.send(&format!("{}\n", phase::ENOUGH));
                break;
            }
        }
        let end = start_of(u32::try_from(turned.len()).unwrap_or(u32::MAX));
        self.window_ns = (self.since_start(begin), self.since_start(end));
        self.prove_roles()?;
        let _ = process.send(&format!("{}\n", phase::SEEN));
        Ok(turned)
    }

    /// Tells the runner of windows that it does not know, and hears whether it has enough of them.
    fn ask_if_enough(&mut self, taking: &TakingTurns, turned: &[Turned]) -> bool {
        if self.so_far.is_enough {
            return true;
        }
        let new = self.so_far.count_new();
        if let Some(known) = new.filter(|known| *known <= turned.len()) {
            self.so_far.told = known;
            let taken = first_turns(taking, known);
            // Evidence is for the end, and much of it takes time of the next change.
            let turned = turned[..known].iter().map(Turned::without_evidence);
            let arms = of_arms(&taken, &self.so_far.figures, turned.collect());
            // That an arm has no window which counts is said at the end.
            if let Ok(arms) = arms {
                let arms = arms.into_iter().map(OfArm::so_far).collect();
                (self.context.say)(Reply::SoFar { arms });
            }
        }
        let is_asked = self.so_far.told > 0;
        if is_asked && (self.context.hear)(Duration::ZERO) == Some(Request::Enough) {
            self.so_far.is_enough = true;
        }
        self.so_far.is_enough
    }

    /// Takes one turn: takes back the arm in force, puts another in force, reads it back, and reads it
    /// again at the end. What the kernel refuses makes the window void; what cannot be taken back ends
    /// the trial.
    fn turn_to(
        &mut self,
        arm: &'a Arm,
        process: &mut Process,
        ends: [Instant; 2],
        turns: &Turns,
    ) -> Result<Turned, Stop> {
        self.take_back()?;
        self.look_at_guard()?;
        self.in_force = InForce::new(arm, &self.spec.workload);
        self.evidence = Evidence::default();
        let refused = self.apply().err();
        if self.in_force.has_steps() {
            self.say_measuring();
        }
        let mut clock = Clock::new(process, ends, refused);
        self.take_turn(&mut clock)?;
        let mut turned = Turned {
            evidence: std::mem::take(&mut self.evidence),
            change_ns: clock.change_ns,
            void: clock.refused.map(|stop| stop.in_words()),
            is_lost: false,
        };
        let limit_ns = turns.lengths.washout_ns / 2;
        if turned.void.is_none() && turned.change_ns > limit_ns {
            turned.void = Some(format!(
                "the arm was proven to be in force after {}, which is more than half of the \
                 washout; give a longer one (`--washout`)",
                model::format_duration_ns(turned.change_ns)
            ));
        }
        if turned.void.is_none() {
            turned.void = judge(arm, &turned.evidence).err();
            turned.is_lost = turned.void.is_some() && arm.scheduler.is_some();
        }
        Ok(turned)
    }

    /// The reason for which no arm can be trusted after a turn: a scheduler that the kernel ejected, or
    /// that ended.
    fn find_end_of_all(&mut self, turned: Option<&mut Turned>) -> Option<String> {
        let turned = turned?;
        if let Err(ended) = self.check_arm() {
            let why = ended.in_words();
            turned.void.get_or_insert_with(|| why.clone());
            return Some(why);
        }
        turned.void.clone().filter(|_| turned.is_lost)
    }

    /// Nothing is put in force that nobody would undo.
    fn look_at_guard(&mut self) -> Result<(), Stop> {
        let looked = self.context.guard.ensure_guard(self.context.journal);
        self.warnings.extend(self.context.guard.take_warnings());
        looked.map_err(|e| Stop::Failed(e.to_string()))
    }

    /// Takes back what is in force. An error where something could not be.
    pub fn take_back(&mut self) -> Result<(), Stop> {
        let errors = self.in_force.take_back(self.context.root).errors;
        match errors.is_empty() {
            true => Ok(()),
            false => Err(Stop::Failed(format!(
                "an arm could not be taken back: {}",
                errors.join("; ")
            ))),
        }
    }
}

/// So many turns from the first on.
fn first_turns(taking: &TakingTurns, count: usize) -> TakingTurns {
    let mut taken = taking.clone();
    taken.turns.order.truncate(count);
    taken
}

fn arm_at(taking: &TakingTurns, index: usize) -> Result<&Arm, Stop> {
    let arm = taking.arms.get(index);
    arm.ok_or_else(|| Stop::Failed(format!("there is no arm {index} to take its turn")))
}

/// Evidence, figures and windows of each arm. An error where an arm has no window that counts.
fn of_arms(taking: &TakingTurns, parsed: &Parsed, turned: Vec<Turned>) -> Result<Vec<OfArm>, Stop> {
    let turns = &taking.turns;
    if parsed.turns.len() != turns.order.len() || turned.len() != turns.order.len() {
        return Err(Stop::Failed(format!(
            "the load has figures of {} turns, not of {}",
            parsed.turns.len(),
            turns.order.len()
        )));
    }
    let mut turned: Vec<Option<Turned>> = turned.into_iter().map(Some).collect();
    let arms = taking.arms.iter().enumerate();
    arms.map(|(index, arm)| {
        let own = turns.order.iter().enumerate();
        let own = own.filter(|(_, turn)| turn.arm == index);
        let own: Vec<usize> = own.map(|(turn, _)| turn).collect();
        let outcomes = own.iter().filter_map(|turn| turned[*turn].take()).collect();
        of_arm(arm, turns, &own, parsed, outcomes)
    })
    .collect()
}

fn of_arm(
    arm: &Arm,
    turns: &Turns,
    own: &[usize],
    parsed: &Parsed,
    outcomes: Vec<Turned>,
) -> Result<OfArm, Stop> {
    let mut windows = Windows {
        window_ns: turns.lengths.window_ns,
        washout_ns: turns.lengths.washout_ns,
        change_ns: median(outcomes.iter().map(|turned| turned.change_ns).collect()),
        turns: own
            .iter()
            .map(|turn| u32::try_from(*turn).unwrap_or(u32::MAX))
            .collect(),
        pairs: own.iter().map(|turn| turns.order[*turn].pair).collect(),
        ..Windows::default()
    };
    let figures: Vec<&TurnFigures> = own.iter().map(|turn| &parsed.turns[*turn]).collect();
    windows.figures = columns(&parsed.metrics, figures.iter().map(|f| &f.whole));
    windows.first_halves = columns(&parsed.metrics, figures.iter().map(|f| &f.halves[0]));
    windows.second_halves = columns(&parsed.metrics, figures.iter().map(|f| &f.halves[1]));
    let mut evidence = Evidence::default();
    for (index, outcome) in outcomes.into_iter().enumerate() {
        match outcome.void {
            Some(why) => {
                windows.void.push(VoidWindow { window: index, why });
            }
            None => {
                evidence.points.extend(outcome.evidence.points);
                let program = outcome.evidence.scheduler_binary;
                evidence.scheduler_binary = program.or(evidence.scheduler_binary);
            }
        }
    }
    evidence.merge_facts();
    if let Some(void) = windows
        .void
        .first()
        .filter(|_| windows.counted_pairs().is_empty())
    {
        let why = format!("no window of {} counts: {}", arm.name, void.why);
        return Err(Stop::Void(why));
    }
    Ok(OfArm {
        metrics: levels(&parsed.metrics, &windows),
        evidence,
        windows,
    })
}

/// Figures by metric, in the order of the windows.
fn columns<'a>(
    metrics: &[Measurement],
    windows: impl Iterator<Item = &'a BTreeMap<String, f64>> + Clone,
) -> BTreeMap<String, Vec<Option<f64>>> {
    let column = |metric: &Measurement| {
        let values: Vec<Option<f64>> = windows
            .clone()
            .map(|window| window.get(&metric.metric).copied())
            .collect();
        let is_measured = values.iter().any(Option::is_some);
        is_measured.then(|| (metric.metric.clone(), values))
    };
    metrics.iter().filter_map(column).collect()
}

/// Level of each metric over the windows that count.
fn levels(metrics: &[Measurement], windows: &Windows) -> Vec<Measurement> {
    let of = |metric: &Measurement| {
        Some(Measurement {
            value: windows.level_of(&metric.metric)?,
            ..metric.clone()
        })
    };
    metrics.iter().filter_map(of).collect()
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}
