//! A run: an experiment that is measured into a results directory, new or resumed.

use crate::args::{ExperimentArgs, WaitArgs};
use crate::exit::{self, CliError};
use crate::latest;
use crate::live::{Pulse, View};
use crate::output::note;
use crate::progress::Display;
use crate::request::{Wanted, extend_experiment};
use crate::targets;
use doors::started::Agreed;
use doors::written::no_patience;
use machines::{Host, Target};
use model::{Build, Calibration, Experiment, Plan, Trial};
use results::files::plain_name;
use results::{FORMAT, Held, Manifest, ResultSet, ResultsError, RunState, Writer, read};
use runner::{Event, Member, Options, Outcome};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub struct Run {
    experiment: Experiment,
    plan: Plan,
    writer: Writer,
    done: Vec<Trial>,
    calibrations: BTreeMap<String, Calibration>,
    boots: Boots,
    /// Cells that are left as they are.
    left_out: BTreeSet<usize>,
}

/// Boots of this machine that a run goes on after.
#[derive(Default)]
pub struct Boots {
    /// Record of the run; `None` where this machine is not restarted.
    pub record: Option<PathBuf>,
    /// The last start goes on, after a boot in order.
    pub continues: bool,
    /// Time that they have taken so far.
    pub away: Duration,
}

/// Results of a run.
pub struct Measured {
    pub results: ResultSet,
    pub outcome: Outcome,
}

/// Measure from the first block to the end, alone on this machine.
pub fn measure_anew(
    output: Option<&Path>,
    wanted: Wanted,
    wait: WaitArgs,
    quiet: bool,
) -> Result<Measured, CliError> {
    targets::stays_up(&wanted.experiment.target)?;
    if let Some(output) = output {
        results::write::check_place(output)?;
    }
    let interrupted = interrupt_flag()?;
    let _lock = targets::made_ready(&wanted.experiment.target, wait, &interrupted)?;
    let mut run = Run::start(output, wanted)?;
    let outcome = run.measure(&interrupted, wait, quiet, false, None, &mut |_| {})?;
    if outcome == Outcome::Interrupted && run.is_empty() {
        return Err(CliError::Interrupted);
    }
    if let Outcome::Railed(hit) = outcome {
        // Nobody goes on with what broke a service.
        return Err(CliError::Railed(hit));
    }
    Ok(Measured {
        results: ResultSet::read(run.dir())?,
        outcome,
    })
}

/// Does a signal ask for an orderly end?
static IN_ORDER: AtomicBool = AtomicBool::new(false);

/// True once a run is under way that ends in order at a signal.
pub fn ends_in_order() -> bool {
    IN_ORDER.load(Ordering::Relaxed)
}

/// The first signal asks for an orderly end, another one later ends at once. timeout(1)
/// sends its signal twice, to its command and to the process group. The flag is the same for all
/// that ask, so a signal that comes before the measuring begins is not lost.
pub fn interrupt_flag() -> Result<Arc<AtomicBool>, CliError> {
    static FLAG: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut known = FLAG.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(flag) = &*known {
        return Ok(Arc::clone(flag));
    }
    let flag = Arc::new(AtomicBool::new(false));
    let signals = Signals::new([SIGINT, SIGTERM]).map_err(CliError::internal)?;
    IN_ORDER.store(true, Ordering::Relaxed);
    let raised = Arc::clone(&flag);
    std::thread::spawn(move || heed_signals(signals, &raised));
    *known = Some(Arc::clone(&flag));
    Ok(flag)
}

fn heed_signals(mut signals: Signals, raised: &AtomicBool) {
    const TWICE: Duration = Duration::from_secs(1);
    let mut first = None;
    for _ in signals.forever() {
        raised.store(true, Ordering::Relaxed);
        if first.get_or_insert_with(Instant::now).elapsed() > TWICE {
            std::process::exit(exit::INTERRUPTED.into());
        }
    }
}

/// Results that are there, for this process alone. Where another one has them, its end is waited for
/// if that is wanted.
pub fn take_results(
    dir: &Path,
    wait: WaitArgs,
    interrupted: &AtomicBool,
) -> Result<Held, CliError> {
    let mut told = false;
    let held = Held::take_results(dir, &mut || {
        if wait.wait && !std::mem::replace(&mut told, true) {
            let dir = dir.display();
            note!("Waiting for its end: another run measures into {dir}");
        }
        wait.wait && !interrupted.load(Ordering::Relaxed)
    });
    match held {
        Err(ResultsError::InUse(_)) if interrupted.load(Ordering::Relaxed) => {
            Err(CliError::Interrupted)
        }
        held => Ok(held?),
    }
}

impl Run {
    pub fn start(output: Option<&Path>, wanted: Wanted) -> Result<Run, CliError> {
        Run::begin(output, wanted, false)
    }

    /// The same for one of several machines.
    pub fn start_together(dir: &Path, wanted: Wanted) -> Result<Run, CliError> {
        Run::begin(Some(dir), wanted, true)
    }

    fn begin(output: Option<&Path>, wanted: Wanted, together: bool) -> Result<Run, CliError> {
        let Wanted {
            experiment,
            source,
            calibrations,
        } = wanted;
        plan::check(&experiment)?;
        let plan = schedule::plan_blocks(&experiment);
        let dir = output.map_or_else(|| default_dir(&experiment.name), Path::to_owned);
        let manifest = Manifest {
            together,
            ..manifest(&experiment)
        };
        let writer = Writer::create(&dir, manifest, source.as_deref(), &experiment, &plan)?;
        if !calibrations.is_empty() {
            writer.write_calibrations(&calibrations)?;
        }
        Ok(Run {
            experiment,
            plan,
            writer,
            done: Vec::new(),
            calibrations,
            boots: Boots::default(),
            left_out: BTreeSet::new(),
        })
    }

    /// Goes on with a run, for longer where the arguments say so.
    pub fn resume(
        held: Held,
        _agreed: Agreed,
        wanted: Option<Wanted>,
        args: &ExperimentArgs,
    ) -> Result<Run, CliError> {
        let dir = held.dir();
        if !read::read_manifest(dir)?.sources.is_empty() {
            return Err(CliError::usage(
                format!("{} was merged from several runs", dir.display()),
                "resume one of them, and merge again",
            ));
        }
        let (before, plan) = read::read_plan(dir)?;
        let experiment = extend_experiment(&before, args)?;
        refuse_another(dir, wanted.as_ref().map(|w| &w.experiment), &experiment)?;
        let left_out = args.cells.left_out(&experiment)?;
        Ok(Run {
            left_out,
            ..Run::go_on(held, before, plan, experiment)?
        })
    }

    /// The same for one of several machines, whose experiment is that of all of them. It ends as all of
    /// them do.
    pub fn resume_together(dir: &Path, experiment: Experiment) -> Result<Run, CliError> {
        let held = Held::take_results(dir, &mut no_patience)?;
        let (before, plan) = read::read_plan(dir)?;
        let experiment = Experiment {
            target: before.target.clone(),
            ..experiment
        };
        let as_before = Experiment {
            stop: before.stop.clone(),
            ..experiment.clone()
        };
        refuse_another(dir, Some(&as_before), &before)?;
        Run::go_on(held, before, plan, experiment)
    }

    fn go_on(
        held: Held,
        before: Experiment,
        mut plan: Plan,
        experiment: Experiment,
    ) -> Result<Run, CliError> {
        let dir = held.dir().to_owned();
        let done = read::read_trials(&dir)?;
        let mut writer = Writer::go_on(held)?;
        if experiment != before {
            plan::check(&experiment)?;
            // Blocks are drawn one after the other: those of the shorter plan come first.
            plan = schedule::plan_blocks(&experiment);
            writer.extend_plan(&experiment, &plan, runner::says_of_budget)?;
        }
        Ok(Run {
            experiment,
            plan,
            calibrations: read::read_calibrations(&dir)?,
            done: done.into_iter().map(|t| t.trial).collect(),
            writer,
            boots: Boots::default(),
            left_out: BTreeSet::new(),
        })
    }

    /// Lets the machine be restarted for kernels of arms: the run goes on with its record afterwards.
    pub fn across_boots(&mut self, boots: Boots) {
        self.boots = boots;
    }

    pub fn dir(&self) -> &Path {
        self.writer.dir()
    }

    /// True if there is nothing to report: the first boot was not done.
    pub fn is_empty(&self) -> bool {
        !self.dir().join(results::files::SYSTEM).exists()
    }

    pub fn name(&self) -> &str {
        &self.experiment.name
    }

    /// `anyway`: also where this start differs from the earlier ones of the run. `also` sees the
    /// events that are shown.
    pub fn measure(
        &mut self,
        interrupted: &Arc<AtomicBool>,
        wait: WaitArgs,
        quiet: bool,
        anyway: bool,
        view: Option<&View>,
        also: &mut dyn FnMut(&Event),
    ) -> Result<Outcome, CliError> {
        let host = Host {
            record: self.boots.record.clone(),
            ..targets::host_of(wait, interrupted)?
        };
        let mut target = machines::make_target(&self.experiment.target, &host)?;
        let mut progress = Display::new(&self.experiment, &self.plan, quiet);
        if let Some(view) = view {
            progress.wait_for_view(view.is_open());
        }
        let shown = &mut |event: Event| {
            progress.show_event(&event);
            also(&event);
        };
        let outcome = self.measure_on(target.as_mut(), interrupted, anyway, None, shown);
        progress.end_display();
        latest::remember(self.dir());
        outcome
    }

    /// The same on this target, beside the other machines of a pool.
    pub fn measure_on(
        &mut self,
        target: &mut dyn Target,
        interrupted: &Arc<AtomicBool>,
        anyway: bool,
        pool: Option<Member>,
        sink: &mut dyn FnMut(Event),
    ) -> Result<Outcome, CliError> {
        let mut controller = targets::make_controller(interrupted)?;
        let mut pulse = Pulse::new(self.writer.dir());
        let mut sink = |event: Event| {
            pulse.see_event(&event);
            sink(event);
        };
        let options = Options {
            controller: Some(controller.as_mut()),
            interrupted,
            done: std::mem::take(&mut self.done),
            calibrations: std::mem::take(&mut self.calibrations),
            began: jiff::Timestamp::now().to_string(),
            build: build(),
            anyway,
            continues: self.boots.continues,
            away: self.boots.away,
            pool,
            left_out: self.left_out.clone(),
        };
        let outcome = runner::run_plan(
            &self.experiment,
            &self.plan,
            target,
            &mut self.writer,
            options,
            &mut sink,
        );
        drop(pulse);
        let state = match &outcome {
            Ok(Outcome::Done) => RunState::Done,
            Ok(Outcome::Interrupted | Outcome::Railed(_)) => RunState::Interrupted,
            Ok(Outcome::Restarts(_)) => RunState::Running,
            Err(_) => RunState::Aborted,
        };
        let kept = self.writer.set_state(state);
        let outcome = outcome.map_err(|e| with_directory(e.into(), &self.writer))?;
        kept?;
        Ok(outcome)
    }

    /// Number of earlier starts.
    pub fn count_starts(&self) -> usize {
        self.writer.earlier_starts().len()
    }

    /// Trials of earlier starts.
    pub fn done_trials(&self) -> &[Trial] {
        &self.done
    }
}

/// Refuses an experiment that is not the one of the run that goes on.
pub fn refuse_another(
    dir: &Path,
    wanted: Option<&Experiment>,
    experiment: &Experiment,
) -> Result<(), CliError> {
    match wanted.is_some_and(|wanted| wanted != experiment) {
        false => Ok(()),
        true => Err(CliError::usage(
            format!(
                "{} holds another experiment than the one given",
                dir.display()
            ),
            "resume without naming the experiment, or start a new run without --resume",
        )),
    }
}

/// This build of schedlab.
pub fn build() -> Build {
    Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("SCHEDLAB_COMMIT").to_owned(),
    }
}

fn manifest(experiment: &Experiment) -> Manifest {
    let build = build();
    Manifest {
        format: FORMAT,
        tool_version: build.version,
        tool_commit: build.commit,
        name: experiment.name.clone(),
        seed: experiment.seed,
        created: jiff::Timestamp::now().to_string(),
        state: RunState::Running,
        warnings: Vec::new(),
        sources: Vec::new(),
        together: false,
    }
}

/// The directory of new results of this name.
pub fn default_dir(name: &str) -> PathBuf {
    // A file system takes 255 bytes for a name, and a capsule's is longer than this one.
    const LONGEST: usize = 120;
    let stamp = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let mut name = plain_name(name);
    name.truncate(LONGEST);
    Path::new(latest::RESULTS).join(format!("{name}-{stamp}"))
}

/// After an error: what was measured is not lost, and how to go on.
fn with_directory(error: CliError, writer: &Writer) -> CliError {
    writer.discard();
    let dir = writer.dir();
    if !dir.exists() {
        return error;
    }
    match error {
        CliError::Internal { message, .. } => CliError::Internal {
            message,
            help: Some(format!(
                "what was measured is in {0}; go on with `schedlab run --resume {0}`",
                dir.display()
            )),
        },
        error => error,
    }
}
