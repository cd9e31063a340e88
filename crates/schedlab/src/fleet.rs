//! A run on several machines at once: a run of its own on each of them, in a thread, and one result
//! of all.

use crate::args::RunArgs;
use crate::commands::merge;
use crate::exit::CliError;
use crate::latest;
use crate::measure::{Run, default_dir, refuse_another};
use crate::progress::Display;
use crate::request::{Wanted, extend_experiment};
use crate::targets;
use agent::machine_lock::Lock;
use machines::{Fleet, Host, MakeFleet, TargetError};
use model::{Calibration, Experiment, Plan, Severity, Warning};
use plan::PlanError;
use results::fleet::FleetDir;
use results::merge::Part;
use results::{Held, ResultSet, read};
use runner::{Event, Member, Outcome, Pool};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Between two questions for machines that will be lost.
const LOOK: Duration = Duration::from_secs(5);
/// Between two looks at the flag of a signal.
const LOOK_UP: Duration = Duration::from_millis(100);

/// An experiment on several machines at once.
pub struct Several {
    dir: FleetDir,
    experiment: Experiment,
    plan: Plan,
    calibrations: BTreeMap<String, Calibration>,
    make: MakeFleet,
}

/// One machine with its run.
struct Machine {
    name: String,
    run: Run,
    flags: Flags,
}

/// Flags of one machine's run.
#[derive(Clone, Default)]
struct Flags {
    /// Set to end it, and no other.
    end: Arc<AtomicBool>,
    /// Set when it has ended.
    over: Arc<AtomicBool>,
}

/// A run on several machines, or what one on one machine goes on with.
type Maybe = (Option<Several>, Option<Held>, Option<Wanted>);

/// What ended the run of a machine before the others, for the reader of the results.
type Left = Vec<(String, String)>;

impl Several {
    /// The run that the arguments mean, where it is one on several machines; otherwise the
    /// results and the experiment are given back.
    pub fn from_args(
        args: &RunArgs,
        held: Option<Held>,
        wanted: Option<Wanted>,
    ) -> Result<Maybe, CliError> {
        if let Some(held) = held {
            return match FleetDir::open(held)? {
                Ok(fleet) => Ok((Some(Several::again(fleet, wanted, args)?), None, None)),
                Err(held) => Ok((None, Some(held), wanted)),
            };
        }
        let Some(wanted) = wanted else {
            return Ok((None, None, None));
        };
        let Some(make) =
            machines::find_fleet(&wanted.experiment.target).map_err(PlanError::from)?
        else {
            return Ok((None, None, Some(wanted)));
        };
        let Wanted {
            experiment,
            source,
            calibrations,
        } = wanted;
        plan::check(&experiment)?;
        refuse_auto(&experiment)?;
        let output = args.output.clone();
        let dir = output.unwrap_or_else(|| default_dir(&experiment.name));
        let several = Several {
            dir: FleetDir::create(&dir, &experiment, source.as_deref())?,
            plan: schedule::plan_blocks(&experiment),
            experiment,
            calibrations,
            make,
        };
        Ok((Some(several), None, None))
    }

    fn again(mut dir: FleetDir, wanted: Option<Wanted>, args: &RunArgs) -> Result<Self, CliError> {
        let before = dir.read_experiment()?;
        let experiment = extend_experiment(&before, &args.experiment)?;
        refuse_another(
            dir.dir(),
            wanted.as_ref().map(|w| &w.experiment),
            &experiment,
        )?;
        plan::check(&experiment)?;
        dir.extend_experiment(&experiment)?;
        let make = machines::find_fleet(&experiment.target).map_err(PlanError::from)?;
        let make = make.ok_or_else(|| CliError::internal("its target is one machine"))?;
        Ok(Several {
            dir,
            plan: schedule::plan_blocks(&experiment),
            experiment,
            calibrations: BTreeMap::new(),
            make,
        })
    }

    pub fn dir(&self) -> &Path {
        self.dir.dir()
    }

    pub fn name(&self) -> &str {
        &self.experiment.name
    }

    /// Measures on all machines until their blocks together have decided, and merges their results.
    /// Machines that are lost leave the rest to the others.
    pub fn measure(
        &self,
        args: &RunArgs,
        interrupted: &Arc<AtomicBool>,
        see: See,
    ) -> Result<Outcome, CliError> {
        let mut display = Display::new(&self.experiment, &self.plan, args.quiet);
        let host = targets::host_of(args.wait, interrupted)?;
        let taken = self.take_machines(args, &host, interrupted, &mut display);
        let (_lock, fleet) = match taken {
            Ok(taken) => taken,
            Err(CliError::Interrupted) if !self.dir.discard() => return Ok(Outcome::Interrupted),
            Err(error) => {
                self.dir.discard();
                return Err(error);
            }
        };
        let mut machines = self.machines(fleet.as_ref())?;
        let pool = Pool::new(&self.experiment, &self.plan);
        for (name, dir) in self.dir.find_runs()? {
            if !machines.iter().any(|machine| machine.run.dir() == dir) {
                display.add_note(&format!(
                    "{name} is not there this time; what it measured counts"
                ));
                let done = read::read_trials(&dir)?;
                let done: Vec<_> = done.into_iter().map(|stored| stored.trial).collect();
                pool.add_absent(&done);
            }
        }
        let watch = Watch {
            shown: Mutex::new((display, see)),
            fleet: fleet.as_ref(),
            host: &host,
            anyway: args.anyway,
            interrupted,
            first_done: OnceLock::new(),
        };
        let (ends, left) = watch.run_all(&mut machines, &pool);
        if let Ok(mut shown) = watch.shown.lock() {
            shown.0.end_display();
        }
        drop((watch, machines));
        // The machines are others' while all is merged.
        drop(fleet);
        let outcome = outcome(ends, interrupted);
        let is_done = matches!(outcome, Ok(Outcome::Done));
        let merged = self.merge(&left, is_done, pool.is_decided())?;
        match outcome {
            Err(error) if !merged => {
                self.dir.discard();
                Err(error)
            }
            outcome => {
                latest::remember(self.dir());
                Ok(outcome.unwrap_or(Outcome::Interrupted))
            }
        }
    }

    /// The machines, and the lock of this one where they take its CPUs.
    fn take_machines(
        &self,
        args: &RunArgs,
        host: &Host,
        interrupted: &AtomicBool,
        display: &mut Display,
    ) -> Result<(Option<Lock>, Box<dyn Fleet>), CliError> {
        let target = &self.experiment.target;
        let lock = targets::made_ready(target, args.wait, interrupted)?;
        match (self.make)(target, host, &mut |line| display.add_note(line)) {
            Err(TargetError::Interrupted) => Err(CliError::Interrupted),
            made => Ok((lock, made?)),
        }
    }

    fn machines(&self, fleet: &dyn Fleet) -> Result<Vec<Machine>, CliError> {
        let machine = |name: String| {
            Ok(Machine {
                run: self.run_on(&name, fleet)?,
                name,
                flags: Flags::default(),
            })
        };
        fleet.machine_names().into_iter().map(machine).collect()
    }

    fn run_on(&self, machine: &str, fleet: &dyn Fleet) -> Result<Run, CliError> {
        let dir = self.dir.machine_dir(machine);
        let experiment = Experiment {
            seed: schedule::machine_seed(self.experiment.seed, machine),
            target: fleet.machine_spec(machine),
            ..self.experiment.clone()
        };
        if dir.join(results::files::MANIFEST).exists() {
            return Run::resume_together(&dir, experiment);
        }
        let wanted = Wanted {
            experiment,
            source: None,
            calibrations: self.calibrations.clone(),
        };
        Run::start_together(&dir, wanted)
    }

    /// One result of all machines that have measured something; `false` where none has.
    fn merge(&self, left: &Left, is_done: bool, is_decided: bool) -> Result<bool, CliError> {
        let mut all = Vec::new();
        for (name, dir) in self.dir.find_runs()? {
            let has_begun = dir.join(results::files::SYSTEM).exists();
            if !has_begun {
                continue;
            }
            let results = ResultSet::read(&dir)?;
            if !results.trials.is_empty() {
                all.push((name, results));
            }
        }
        if all.is_empty() {
            return Ok(false);
        }
        let parts = all.iter().map(|(name, results)| Part {
            machine: name.clone(),
            results,
        });
        let parts: Vec<Part> = parts.collect();
        let go_on = format!("go on with: schedlab run --resume {}", self.dir().display());
        let mut manifest = merge::manifest(&parts, Some(go_on.as_str()).filter(|_| !is_done));
        manifest.seed = self.experiment.seed;
        manifest
            .warnings
            .extend(left.iter().map(|(machine, why)| Warning {
                severity: Severity::Caution,
                what: format!("{machine} left the run: {why}."),
                remedy: go_on.clone(),
            }));
        let budget_ended = self.budget_ended(&parts).filter(|_| !is_decided);
        manifest.warnings.extend(budget_ended);
        manifest.warnings.extend(self.neighbours(parts.len()));
        self.dir.merge_runs(&parts, manifest)?;
        Ok(true)
    }

    /// A word on guests that are neighbours on this machine.
    fn neighbours(&self, guests: usize) -> Option<Warning> {
        let can = machines::find_abilities(&self.experiment.target).ok()?;
        (can.here && guests > 1).then(|| Warning {
            severity: Severity::Note,
            what: format!(
                "{guests} guests measured at once, each on CPUs of its own. They share the caches and the \
                 memory of this machine, so times and rates scatter more than those of one."
            ),
            remedy: String::new(),
        })
    }

    /// The warning of a machine whose budget ended, for all of them.
    fn budget_ended(&self, parts: &[Part]) -> Option<Warning> {
        let mut warnings = parts
            .iter()
            .flat_map(|part| &part.results.manifest.warnings);
        let ended = warnings.find(|warning| runner::says_budget_ended(warning))?;
        let minutes = self.experiment.stop.budget_ns? / 60_000_000_000;
        Some(Warning {
            remedy: format!(
                "go on with: schedlab run --resume {} --budget {}m",
                self.dir().display(),
                (minutes * 2).max(1)
            ),
            ..ended.clone()
        })
    }
}

/// Machines whose pilots chose different ways could not be judged together.
fn refuse_auto(experiment: &Experiment) -> Result<(), CliError> {
    let mut workloads = experiment.workloads.iter();
    match workloads.find(|workload| workload.in_place.is_some_and(|way| way.pilot)) {
        None => Ok(()),
        Some(workload) => Err(CliError::usage(
            format!(
                "workload {}: with in-place = \"auto\" each machine could choose another way",
                workload.name
            ),
            "say which: in-place = \"always\" or \"never\"",
        )),
    }
}

/// The end of all, by those of the machines.
fn outcome(
    ends: Vec<Result<Outcome, CliError>>,
    interrupted: &AtomicBool,
) -> Result<Outcome, CliError> {
    let is_done = |end: &Result<Outcome, CliError>| matches!(end, Ok(Outcome::Done));
    let railed = ends.iter().find_map(|end| match end {
        Ok(Outcome::Railed(hit)) => Some(hit.clone()),
        _ => None,
    });
    if let Some(hit) = railed {
        return Ok(Outcome::Railed(hit));
    }
    if interrupted.load(Ordering::Relaxed) {
        return Ok(Outcome::Interrupted);
    }
    if ends.iter().any(is_done) {
        return Ok(Outcome::Done);
    }
    ends.into_iter()
        .find(Result::is_err)
        .unwrap_or(Ok(Outcome::Interrupted))
}

/// Somebody else who sees the events of all machines.
type See<'a> = &'a mut (dyn FnMut(&Event) + Send);

/// Whatever the threads of the machines share.
struct Watch<'a> {
    shown: Mutex<(Display, See<'a>)>,
    fleet: &'a dyn Fleet,
    host: &'a Host,
    anyway: bool,
    interrupted: &'a AtomicBool,
    /// When a machine first had nothing left to measure.
    first_done: OnceLock<Instant>,
}

impl Watch<'_> {
    fn note(&self, line: &str) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.0.add_note(line);
    }

    /// A thread for each machine, and one that asks for those that will be lost.
    fn run_all(
        &self,
        machines: &mut [Machine],
        pool: &Pool,
    ) -> (Vec<Result<Outcome, CliError>>, Left) {
        let flags: Vec<(String, Flags)> = machines
            .iter()
            .map(|machine| (machine.name.clone(), machine.flags.clone()))
            .collect();
        // All of them are there before the first begins.
        let members = machines.iter();
        let members = members.map(|machine| pool.add_member(machine.run.done_trials()));
        let members: Vec<Member> = members.collect();
        thread::scope(|scope| {
            let start = |(machine, member)| scope.spawn(move || self.run_one(machine, member));
            let threads: Vec<_> = machines.iter_mut().zip(members).map(start).collect();
            let left = scope.spawn(|| self.leave_what_will_be_lost(&flags));
            let mut looked = Instant::now();
            while !all_over(&flags) {
                thread::sleep(LOOK_UP);
                if looked.elapsed() > LOOK {
                    self.end_the_late(&flags, pool);
                    looked = Instant::now();
                }
                if self.interrupted.load(Ordering::Relaxed) {
                    let all = flags.iter().map(|(_, flags)| &flags.end);
                    all.for_each(|end| end.store(true, Ordering::Relaxed));
                }
            }
            let ends: Vec<_> = threads
                .into_iter()
                .map(|thread| {
                    let end = thread.join();
                    end.unwrap_or_else(|_| Err(CliError::internal("its thread died")))
                })
                .collect();
            let mut left = left.join().unwrap_or_default();
            for ((name, _), end) in flags.iter().zip(&ends) {
                if let Err(error) = end {
                    let said = error.to_string();
                    let words: Vec<&str> = said.split_whitespace().collect();
                    let why = model::printable::one_line(&words.join(" ")).into_owned();
                    left.push((name.clone(), why));
                }
            }
            (ends, left)
        })
    }

    fn run_one(&self, machine: &mut Machine, member: Member) -> Result<Outcome, CliError> {
        let over = Over(Arc::clone(&machine.flags.over));
        let ended = self.run_of(machine, member);
        match ended {
            Ok(Outcome::Done) => {
                self.first_done.get_or_init(Instant::now);
            }
            // No other machine goes on with what broke it.
            Ok(Outcome::Railed(_)) => self.interrupted.store(true, Ordering::Relaxed),
            _ => {}
        }
        drop(over);
        ended
    }

    /// Ends machines that are late where there is nothing left to measure: they may wait in the queue of
    /// a cluster for a node that others have.
    fn end_the_late(&self, flags: &[(String, Flags)], pool: &Pool) {
        let late = self.first_done.get().zip(pool.patience());
        let is_late = late.is_some_and(|(done, patience)| done.elapsed() > patience);
        if !is_late || !pool.is_over() {
            return;
        }
        for (name, flags) in flags {
            let is_over = flags.over.load(Ordering::Relaxed);
            if !is_over && !flags.end.swap(true, Ordering::Relaxed) {
                self.note(&format!("{name} is late; the run ends without its block"));
            }
        }
    }

    fn run_of(&self, machine: &mut Machine, member: Member) -> Result<Outcome, CliError> {
        let host = Host {
            interrupted: Arc::clone(&machine.flags.end),
            ..self.host.clone()
        };
        let mut target = self.fleet.make_target(&machine.name, &host)?;
        let name = machine.name.clone();
        let mut sink = |event: Event| {
            let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            let (display, see) = &mut *shown;
            display.show_of(&name, &event);
            see(&event);
        };
        let ended = machine.run.measure_on(
            target.as_mut(),
            &machine.flags.end,
            self.anyway,
            Some(member),
            &mut sink,
        );
        if let Err(error) = &ended {
            self.note(&format!("{} leaves: {error}", machine.name));
        }
        ended
    }

    /// Until all have ended: a machine that will be lost is left in order before it is.
    fn leave_what_will_be_lost(&self, flags: &[(String, Flags)]) -> Left {
        let mut left = Left::new();
        let mut looked = Instant::now();
        while !all_over(flags) {
            thread::sleep(LOOK_UP);
            if looked.elapsed() < LOOK {
                continue;
            }
            for leaving in self.fleet.machines_to_leave() {
                let mut of_it = flags.iter().filter(|(name, _)| *name == leaving.machine);
                let Some((name, flags)) = of_it.next() else {
                    continue;
                };
                let is_over = flags.over.load(Ordering::Relaxed);
                if !is_over && !flags.end.swap(true, Ordering::Relaxed) {
                    self.note(&format!("{name} leaves: {}", leaving.why));
                    left.push((name.clone(), leaving.why));
                }
            }
            looked = Instant::now();
        }
        left
    }
}

fn all_over(flags: &[(String, Flags)]) -> bool {
    flags
        .iter()
        .all(|(_, flags)| flags.over.load(Ordering::Relaxed))
}

/// Says that a run is over, also where its thread panics.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
