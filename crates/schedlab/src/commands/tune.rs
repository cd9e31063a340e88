//! `schedlab tune`: a race of settings beside a baseline, and a fresh measurement of the one that is ahead.
//!
//! Each round of the race is an ordinary run with its own results, and so is the confirmation. Only the
//! confirmation says what an effect is: who is the first of many is so by luck, too.

mod answer_text;
mod directory;
mod neighbours;
mod options;
mod replay;
mod state;

pub use replay::{is_race, replay_race};

use super::propose;
use super::snapshot::forget_name;
use crate::args::{ExperimentArgs, TuneArgs};
use crate::exit::{self, CliError};
use crate::measure::{Measured, measure_anew};
use crate::output::{self, Plain, note};
use crate::request::{read_measurable, read_wanted};
use doors::written::{self, Marked};
use model::Experiment;
use neighbours::{AtNeighbour, Neighbour};
use plan::Space;
use referee::{Ledger, WhichSession};
use report::race::{Goal, KnownMetric, Race, judge_confirmation};
use report::recommend::Source;
use results::ResultSet;
use runner::Outcome;
use state::{Confirmation, Round, Ruled, State};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Candidates of the first round.
const FIRST: usize = 16;
/// Candidates that join a later round.
const JOINING: usize = 4;
/// Blocks of the first round; later ones have more, as fewer arms share their time.
const BLOCKS: usize = 4;
const MOST_BLOCKS: usize = 24;
const MOST_ROUNDS: u32 = 6;
const USUAL_BUDGET: Duration = Duration::from_secs(600);
/// Share of the time that is kept for the confirmation.
const CONFIRMING: f64 = 1.0 / 3.0;
/// Share of the time that is kept for each other load that a winner is measured at.
const AT_A_NEIGHBOUR: f64 = CONFIRMING / 8.0;
/// Least share of the time for a round.
const LEAST_OF_A_ROUND: f64 = 0.05;
/// Seeds between those of the rounds and that of the confirmation.
const OTHER_SEEDS: u64 = 1_000_003;

/// One run of the race, in a results directory of its own.
struct Run<'a> {
    name: &'a Path,
    /// Arms beside the baseline.
    arms: &'a [String],
    /// Blocks; none for those of the experiment.
    blocks: Option<usize>,
    time: Duration,
    /// Distance of its seed from that of the experiment.
    seeds: u64,
    /// Other loads than those of the experiment.
    loads: Option<Neighbour>,
    /// Fewest blocks of one that ends with its answer; none of one that measures all.
    fewest: Option<usize>,
}

struct Tune<'a> {
    args: &'a TuneArgs,
    space: Space,
    goal: Goal,
    dir: PathBuf,
    state: State,
    budget: Duration,
    /// The first round, whose loads are those of all.
    experiment: Experiment,
    /// Ledger that the confirmation is a question of, and the session that pays.
    ledger: Option<(Ledger, u32)>,
    _marked: Marked,
}

pub fn tune(args: &TuneArgs) -> Result<ExitCode, CliError> {
    let mut tune = Tune::open(args)?;
    tune.run_race().inspect_err(|error| {
        if matches!(error, CliError::Interrupted) {
            let dir = tune.dir.display();
            note!("The rounds so far are in {dir}; the same command with -o {dir} goes on.");
        }
    })?;
    let answer = answer_text::Answer::from_state(&tune.state, tune.judge()?.as_ref());
    match args.answer.format {
        Plain::Json => output::json(&answer)?,
        Plain::Text => output::print_text(answer.to_text(output::width()))?,
    }
    if !args.answer.quiet {
        note!("\nResults  {}", tune.dir.display());
    }
    Ok(ExitCode::from(match &tune.state.confirmation {
        Some(Confirmation {
            ruling: Some(ruling),
            ..
        }) if !ruling.accepted => exit::REGRESSION,
        None if args.session.is_some() => exit::REGRESSION,
        _ => exit::DONE,
    }))
}

/// The experiment of the first round, with all its candidates.
pub fn read_first_round(args: &TuneArgs) -> Result<Experiment, CliError> {
    Ok(begin_race(args)?.2)
}

/// Every metric that a trial of each cell may have. Which ones a kind really has its trials say, so that all
/// kinds have those of all.
fn list_known_metrics(experiment: &Experiment) -> Vec<KnownMetric> {
    let of_trials = agent::METRICS.iter().chain(agent::SURROUNDINGS).copied();
    let of_kinds = load::metric_defs().into_iter().map(|(_, metric)| metric);
    let all = of_kinds.chain(of_trials).chain(agent::collector_metrics());
    let names: BTreeSet<&str> = all.map(|metric| metric.name).collect();
    let mut known = Vec::new();
    for cell in schedule::list_cells(experiment) {
        let workload = &experiment.workloads[cell.workload];
        let mut names = names.clone();
        names.extend(workload.metrics.iter().map(String::as_str));
        let own = load::driver(&workload.kind);
        let own = own.map(|driver| {
            driver
                .own_metrics()
                .into_iter()
                .map(str::to_owned)
                .collect()
        });
        let mut own: Vec<String> = own.unwrap_or_default();
        for co_runner in &workload.co_runners {
            let begin = co_runner.name_beside("");
            let metrics = load::metric_defs().into_iter();
            own.extend(metrics.map(|(_, metric)| format!("{begin}{}", metric.name)));
        }
        names.extend(own.iter().map(String::as_str));
        known.extend(names.into_iter().map(|name| KnownMetric {
            cell: cell.name.clone(),
            workload: workload.name.clone(),
            metric: name.to_owned(),
            deciding: workload.metrics.iter().any(|deciding| deciding == name),
        }));
    }
    known
}

/// The state in which a race begins, its space, and the experiment of its first round.
fn begin_race(args: &TuneArgs) -> Result<(State, Space, Experiment), CliError> {
    let begun = begin_state(args)?;
    let space = Space::parse("--vary", &begun.vary)?;
    let begun = State {
        candidates: State::first_candidates(&space, &begun.named),
        ..begun
    };
    let arms: Vec<String> = begun.candidates.iter().map(|c| c.arm.clone()).collect();
    let given = with_arms(&args.experiment, &begun.baseline, &arms);
    let experiment = read_wanted(&given)?.experiment;
    begun
        .read_goal()?
        .check_names(&list_known_metrics(&experiment))?;
    Ok((begun, space, experiment))
}

impl<'a> Tune<'a> {
    /// Begins, or goes on where the directory holds the same race. All candidates are read before anything is
    /// made.
    fn open(args: &'a TuneArgs) -> Result<Tune<'a>, CliError> {
        let (begun, space, experiment) = begin_race(args)?;
        let goal = begun.read_goal()?;
        let ledger = match args.session {
            Some(session) => {
                propose::refuse_what_the_ledger_sets(&args.experiment)?;
                Some((propose::open_ledger()?, session))
            }
            None => None,
        };
        options::check_options(&begun.vary)?;
        let budget = experiment.stop.budget_ns.map(Duration::from_nanos);
        let dir = args.output.clone();
        let dir = dir.unwrap_or_else(|| crate::measure::default_dir("tune"));
        let marked = directory::take_directory(&dir)?;
        let state = match directory::read_state(&dir)? {
            Some(state) => directory::check_same(&dir, state, &begun)?,
            None => begun,
        };
        Ok(Tune {
            args,
            space,
            goal,
            dir,
            state,
            budget: budget.unwrap_or(USUAL_BUDGET),
            experiment,
            ledger,
            _marked: marked,
        })
    }

    fn run_race(&mut self) -> Result<(), CliError> {
        if self.state.confirmation.is_some() {
            return self.measure_neighbours();
        }
        let race = loop {
            let race = self.judge()?;
            match self.choose_round(race.as_ref()) {
                Some(arms) => self.run_round(&arms)?,
                None => break race,
            }
        };
        match race {
            Some(race) => self.confirm(&race)?,
            None => return Ok(()),
        }
        self.measure_neighbours()
    }

    /// All rounds so far, judged together; none before the first.
    fn judge(&self) -> Result<Option<Race>, CliError> {
        let rounds = self.state.rounds.len();
        self.state.judge_rounds(&self.dir, rounds, &self.goal)
    }

    fn left(&self) -> Duration {
        self.budget
            .saturating_sub(Duration::from_nanos(self.state.spent_ns))
    }

    /// Time that the race may still take; none where it is over. A round that has hardly time for a block
    /// tells nothing.
    fn left_of_race(&self) -> Option<Duration> {
        let kept = self.budget.mul_f64(CONFIRMING);
        let left = self.left().checked_sub(kept);
        left.filter(|left| *left >= self.budget.mul_f64(LEAST_OF_A_ROUND))
    }

    /// Candidates of the next round; none where the race has ended.
    fn choose_round(&mut self, race: Option<&Race>) -> Option<Vec<String>> {
        let Some(race) = race else {
            let all = self.state.candidates.iter();
            return Some(all.map(|candidate| candidate.arm.clone()).collect());
        };
        let rounds = self.state.rounds.len();
        self.state.drop_losers(race, rounds);
        self.left_of_race()?;
        let smallest = self.experiment.stop.smallest_effect;
        self.state.choose_round(&self.space, race, smallest, rounds)
    }

    fn run_round(&mut self, arms: &[String]) -> Result<(), CliError> {
        let number = self.state.rounds.len() + 1;
        let first = self
            .state
            .rounds
            .first()
            .map_or(arms.len(), |r| r.arms.len());
        let blocks = (BLOCKS * (first + 1) / (arms.len() + 1)).clamp(BLOCKS, MOST_BLOCKS);
        let left = self.left_of_race().unwrap_or(self.budget);
        if !self.args.answer.quiet {
            note!(
                "Round {number}: {} candidates beside {}",
                arms.len(),
                self.state.baseline
            );
        }
        let name = Path::new(directory::ROUNDS).join(format!("{number:02}"));
        self.measure(&Run {
            name: &name,
            arms,
            blocks: Some(blocks),
            time: left,
            seeds: u64::try_from(number).unwrap_or(u64::MAX),
            loads: None,
            fewest: None,
        })?;
        self.state.rounds.push(Round {
            results: name,
            arms: arms.to_vec(),
        });
        self.keep()
    }

    /// Measures the arm that is ahead anew, with other seeds.
    fn confirm(&mut self, race: &Race) -> Result<(), CliError> {
        let Some(chosen) = State::choose_winner(race, self.experiment.stop.smallest_effect) else {
            return self.keep();
        };
        if !self.args.answer.quiet {
            note!(
                "Confirmation: {} beside {}",
                chosen.arm,
                self.state.baseline
            );
        }
        let name = PathBuf::from(directory::CONFIRMATION);
        let arms = [chosen.arm.clone()];
        // A race that took longer than it should leaves the confirmation its share all the same.
        let left = self.left().max(self.budget.mul_f64(CONFIRMING));
        let others = Neighbour::ALL
            .iter()
            .filter(|loads| loads.change_loads(&mut self.experiment.clone()));
        let kept = self.budget.mul_f64(AT_A_NEIGHBOUR * others.count() as f64);
        let confirmation = Run {
            name: &name,
            arms: &arms,
            blocks: None,
            time: left.saturating_sub(kept),
            seeds: OTHER_SEEDS,
            loads: None,
            fewest: self.find_fewest(race, &chosen.arm),
        };
        let (results, ruling) = match &self.ledger {
            Some(_) => self.ask_referee(&name, &chosen.arm, left)?,
            None => (self.measure(&confirmation)?, None),
        };
        let label = name.display().to_string();
        let source = Source {
            label: &label,
            results: &results,
        };
        self.state.confirmation = Some(Confirmation {
            confirmed: judge_confirmation(&source, &self.goal, &chosen.arm)?,
            arm: chosen.arm,
            alike: chosen.alike,
            results: name,
            ruling,
        });
        self.keep()
    }

    /// Measures a winner at other loads, where the work has any and no ledger counts what is asked.
    fn measure_neighbours(&mut self) -> Result<(), CliError> {
        let confirmation = self.state.confirmation.as_ref();
        let Some(winner) = confirmation
            .filter(|c| c.is_winner())
            .map(|c| c.arm.clone())
        else {
            return Ok(());
        };
        for loads in Neighbour::ALL {
            let is_there = self.state.neighbours.iter().any(|at| at.loads == loads);
            if self.ledger.is_some()
                || is_there
                || !loads.change_loads(&mut self.experiment.clone())
            {
                continue;
            }
            let name = loads.results_dir();
            let results = self.measure(&Run {
                name: &name,
                arms: std::slice::from_ref(&winner),
                blocks: None,
                time: self.budget.mul_f64(AT_A_NEIGHBOUR),
                seeds: OTHER_SEEDS + 1,
                loads: Some(loads),
                fewest: None,
            })?;
            let at = AtNeighbour::judge(loads, &results, &self.goal, &winner)?;
            self.state.neighbours.push(at);
            self.keep()?;
        }
        Ok(())
    }

    /// The confirmation as a question of the ledger, which pays before it is measured.
    fn ask_referee(
        &self,
        name: &Path,
        chosen: &str,
        left: Duration,
    ) -> Result<(ResultSet, Option<Ruled>), CliError> {
        let dir = self.dir.join(name);
        let Some((ledger, session)) = &self.ledger else {
            return Err(CliError::internal("a race without a ledger asks nobody"));
        };
        written::remove_marked(&dir)
            .map_err(|e| CliError::internal(format!("remove {}: {e}", dir.display())))?;
        let arms = [chosen.to_owned()];
        let mut given = with_arms(&self.args.experiment, &self.state.baseline, &arms);
        given.budget = Some(format!("{}s", left.as_secs().max(1)));
        let place = propose::Place {
            dir: &dir,
            wait: self.args.wait,
            is_quiet: self.args.answer.quiet,
        };
        let which = WhichSession::Number(*session);
        let (ruling, _) = propose::ask_referee(ledger, which, given, &place)?;
        if ruling.answer.outcome.is_cut_short() {
            return Err(CliError::Interrupted);
        }
        let ruled = Ruled {
            accepted: ruling.accepted,
            text: ruling.to_text(),
        };
        Ok((ResultSet::read(&dir)?, Some(ruled)))
    }

    /// True if the run of a confirmation asks nothing but what is to be confirmed, by whole trials: then its end is the
    /// answer.
    fn is_plain(&self) -> bool {
        let cells = schedule::list_cells(&self.experiment);
        let [workload] = self.experiment.workloads.as_slice() else {
            return false;
        };
        let has_one_question = workload.metrics.len() == 1 && cells.len() == 1;
        has_one_question && workload.in_place.is_none() && self.goal.is_about(&workload.metrics[0])
    }

    /// Blocks of a confirmation that ends with its answer: so many that the gain is known to the smallest effect.
    fn find_fewest(&self, race: &Race, arm: &str) -> Option<usize> {
        let stop = &self.experiment.stop;
        let known = race.blocks_to_know(arm, stop.smallest_effect);
        let fewest = known.filter(|_| self.is_plain() && stop.smallest_effect > 0.0)?;
        Some(fewest.max(stop.min_blocks as usize))
    }

    /// An interleaved run of the baseline and some arms. All its blocks are measured, as far as the time goes, unless
    /// it ends with its answer: the race judges the others and not the run.
    fn measure(&mut self, run: &Run) -> Result<ResultSet, CliError> {
        let dir = self.dir.join(run.name);
        // What an interrupt left of it begins anew.
        written::remove_marked(&dir)
            .map_err(|e| CliError::internal(format!("remove {}: {e}", dir.display())))?;
        let mut wanted = read_measurable(&with_arms(
            &self.args.experiment,
            &self.state.baseline,
            run.arms,
        ))?;
        wanted.source = None;
        let experiment = &mut wanted.experiment;
        if let Some(loads) = run.loads {
            loads.change_loads(experiment);
            forget_name(experiment);
        }
        experiment.seed = experiment.seed.wrapping_add(run.seeds);
        experiment.name = format!(
            "{}-{}",
            experiment.name,
            run.name.display().to_string().replace('/', "-")
        );
        let nanoseconds = u64::try_from(run.time.as_nanos()).unwrap_or(u64::MAX);
        experiment.stop.budget_ns = Some(nanoseconds);
        if let Some(blocks) = run.blocks.and_then(|blocks| u32::try_from(blocks).ok()) {
            experiment.stop.max_blocks = blocks;
        }
        let stop = &mut experiment.stop;
        let fewest = run.fewest.and_then(|fewest| u32::try_from(fewest).ok());
        stop.min_blocks = fewest.unwrap_or(u32::MAX).min(stop.max_blocks);
        let began = Instant::now();
        let measured = measure_anew(Some(&dir), wanted, self.args.wait, self.args.answer.quiet);
        let spent = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.state.spent_ns = self.state.spent_ns.saturating_add(spent);
        let Measured { results, outcome } = measured?;
        if outcome == Outcome::Interrupted {
            return Err(CliError::Interrupted);
        }
        super::report::write_report_files(&report::Table::from_results(&results), &results)?;
        Ok(results)
    }

    fn keep(&self) -> Result<(), CliError> {
        directory::write_state(&self.dir, &self.state)
    }
}

/// Settings of ready spaces, without what the installed version does not know.
fn read_spaces(names: &[String]) -> Result<Vec<String>, CliError> {
    let mut vary = Vec::new();
    for name in names {
        let space = schedulers::find_space(name).ok_or_else(|| {
            let known = schedulers::SPACES.iter().map(|s| s.scheduler.as_str());
            let known: Vec<&str> = known.collect();
            let help = format!("there are: {}", known.join(", "));
            CliError::usage(format!("there is no ready space `{name}`"), help)
        })?;
        let (known, left_out) = options::keep_known(space.list_vary())?;
        if !left_out.is_empty() {
            note!("{name}: this version does not know {}", left_out.join(", "));
        }
        vary.extend(known);
    }
    Ok(vary)
}

/// The race as it is asked for, before anything is measured. What is typed goes before what the file says.
fn begin_state(args: &TuneArgs) -> Result<State, CliError> {
    let file = args.experiment.file.as_ref();
    let file = file.map(|file| crate::request::read_tuning(file));
    let file = file.transpose()?.unwrap_or_default();
    let mut named = args.experiment.words.arms.clone();
    let baseline = match named.is_empty() {
        true => "default".to_owned(),
        false => named.remove(0),
    };
    let weigh = args.weigh.clone();
    let is_weighed = weigh.is_some();
    Ok(State {
        baseline,
        vary: [
            args.vary.clone(),
            file.vary,
            read_spaces(&[args.space.clone(), file.space].concat())?,
        ]
        .concat(),
        weigh: weigh.unwrap_or_default(),
        objective: args
            .objective
            .clone()
            .or(file.objective.filter(|_| !is_weighed)),
        must_not_worsen: [args.must_not_worsen.clone(), file.must_not_worsen].concat(),
        named,
        candidates: Vec::new(),
        rounds: Vec::new(),
        spent_ns: 0,
        confirmation: None,
        neighbours: Vec::new(),
    })
}

/// The experiment with these arms; a name of each is what it changes.
fn with_arms(args: &ExperimentArgs, baseline: &str, arms: &[String]) -> ExperimentArgs {
    let mut given = args.clone();
    given.words.arms = std::iter::once(baseline.to_owned())
        .chain(arms.iter().cloned())
        .collect();
    given
}

/// State of the race in a directory, in a sentence; its figures decide nothing.
pub fn progress_text(dir: &Path) -> String {
    let Ok(Some(state)) = directory::read_state(dir) else {
        return "the first round is measured
"
        .to_owned();
    };
    let dropped = state.candidates.iter().filter(|c| c.dropped.is_some());
    format!(
        "{} of the race measured, {} of {} dropped
",
        report::format_count(state.rounds.len(), "round"),
        dropped.count(),
        report::format_count(state.candidates.len(), "candidate")
    )
}
