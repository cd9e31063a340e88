//! `schedlab tune`: a race of settings beside a baseline, and a fresh measurement of the one that is ahead.
//!
//! Each round of the race is an ordinary run with its own results, and so is the confirmation. Only the
//! confirmation says what an effect is: who is the first of many is so by luck, too.

mod answer_text;
mod directory;
mod options;

use super::propose;
use crate::args::{ExperimentArgs, TuneArgs};
use crate::exit::{self, CliError};
use crate::measure::{Measured, measure_anew};
use crate::output::{self, Plain, note};
use crate::request::{read_measurable, read_wanted};
use doors::written::{self, Marked};
use model::Experiment;
use plan::{Point, Space};
use referee::{Ledger, WhichSession};
use report::race::{Confirmed, MOST_ARMS, Race, judge_confirmation, judge_race};
use report::recommend::{Mix, Source};
use results::ResultSet;
use runner::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
/// Least share of the time for a round.
const LEAST_OF_A_ROUND: f64 = 0.05;
/// Seeds between those of the rounds and that of the confirmation.
const OTHER_SEEDS: u64 = 1_000_003;

/// State of a race, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    baseline: String,
    vary: Vec<String>,
    weigh: String,
    candidates: Vec<Candidate>,
    rounds: Vec<Round>,
    /// Time that was measured so far.
    spent_ns: u64,
    confirmation: Option<Confirmation>,
}

/// Setting that is tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The arm as a command line writes it, which is its name.
    arm: String,
    /// Its place in the space; none of an arm that was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    point: Option<Point>,
    /// Round after which it was dropped, with the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropped: Option<(u32, String)>,
    /// True if it was dropped since its trials failed.
    #[serde(default)]
    failed: bool,
}

/// A round that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Results directory, below that of the race.
    results: PathBuf,
    /// Candidates that ran.
    arms: Vec<String>,
}

/// Fresh measurement of the candidate that was ahead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    arm: String,
    /// Others of the race whose difference from the one that was ahead is surely too small to matter.
    alike: Vec<String>,
    results: PathBuf,
    confirmed: Confirmed,
    /// Answer of the referee, where the confirmation is a question of the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ruling: Option<Ruled>,
}

impl Confirmation {
    fn is_better(&self) -> bool {
        match &self.ruling {
            Some(ruling) => ruling.accepted,
            None => self.confirmed.is_better(),
        }
    }
}

/// Answer of the referee to the confirmation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ruled {
    accepted: bool,
    text: String,
}

struct Tune<'a> {
    args: &'a TuneArgs,
    space: Space,
    mix: Mix,
    dir: PathBuf,
    state: State,
    budget: Duration,
    smallest_effect: f64,
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

/// The state in which a race begins, its space, and the experiment of its first round.
fn begin_race(args: &TuneArgs) -> Result<(State, Space, Experiment), CliError> {
    let (mut vary, mut others) = (args.vary.clone(), args.experiment.words.arms.clone());
    if let Some(file) = &args.experiment.file {
        vary.extend(crate::request::read_vary(file)?);
    }
    let baseline = match others.is_empty() {
        true => "default".to_owned(),
        false => others.remove(0),
    };
    let space = Space::parse("--vary", &vary)?;
    let begun = State {
        candidates: first_candidates(&space, &others),
        baseline,
        vary,
        weigh: args.weigh.clone().unwrap_or_default(),
        rounds: Vec::new(),
        spent_ns: 0,
        confirmation: None,
    };
    let arms: Vec<String> = begun.candidates.iter().map(|c| c.arm.clone()).collect();
    let given = with_arms(&args.experiment, &begun.baseline, &arms);
    Ok((begun, space, read_wanted(&given)?.experiment))
}

impl<'a> Tune<'a> {
    /// Begins, or goes on where the directory holds the same race. All candidates are read before anything is
    /// made.
    fn open(args: &'a TuneArgs) -> Result<Tune<'a>, CliError> {
        let (begun, space, experiment) = begin_race(args)?;
        let mix = Mix::parse_option(&begun.weigh)?;
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
            mix,
            dir,
            state,
            budget: budget.unwrap_or(USUAL_BUDGET),
            smallest_effect: experiment.stop.smallest_effect,
            ledger,
            _marked: marked,
        })
    }

    fn run_race(&mut self) -> Result<(), CliError> {
        if self.state.confirmation.is_some() {
            return Ok(());
        }
        let race = loop {
            let race = self.judge()?;
            match self.choose_round(race.as_ref()) {
                Some(arms) => self.run_round(&arms)?,
                None => break race,
            }
        };
        match race {
            Some(race) => self.confirm(&race),
            None => Ok(()),
        }
    }

    /// All rounds so far, judged together; none before the first.
    fn judge(&self) -> Result<Option<Race>, CliError> {
        if self.state.rounds.is_empty() {
            return Ok(None);
        }
        let rounds = self.state.rounds.iter();
        let labels: Vec<String> = rounds.map(|r| r.results.display().to_string()).collect();
        let all = labels
            .iter()
            .map(|label| ResultSet::read(&self.dir.join(label)));
        let all = all.collect::<Result<Vec<ResultSet>, _>>()?;
        let sources = labels.iter().zip(&all);
        let sources: Vec<Source> = sources
            .map(|(label, results)| Source { label, results })
            .collect();
        Ok(Some(judge_race(&sources, &self.mix)?))
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
        self.drop_losers(race);
        self.left_of_race()?;
        let round = u32::try_from(self.state.rounds.len()).unwrap_or(u32::MAX);
        let runners = race.choose_runners(round);
        if runners.is_empty()
            || round >= MOST_ROUNDS
            || race.is_hopeless(self.smallest_effect, 2 * BLOCKS)
        {
            return None;
        }
        let mut arms: Vec<String> = runners.into_iter().map(str::to_owned).collect();
        arms.extend(self.join_neighbours(race));
        // One candidate alone has nobody to be told from, so its time goes to the confirmation.
        (arms.len() > 1).then_some(arms)
    }

    fn drop_losers(&mut self, race: &Race) {
        let round = u32::try_from(self.state.rounds.len()).unwrap_or(u32::MAX);
        for (name, runner) in race.names.iter().zip(&race.runners) {
            let Some(candidate) = self.state.candidates.iter_mut().find(|c| c.arm == *name) else {
                continue;
            };
            let behind = runner.dropped.map(|dropped| {
                let rival = &race.names[dropped.rival];
                format!("behind {rival}, evidence {:.0}", dropped.e_value.floor())
            });
            let failed = race.failed.get(name);
            candidate.failed |= failed.is_some();
            if let (None, Some(why)) = (&candidate.dropped, failed.cloned().or(behind)) {
                candidate.dropped = Some((round, why));
            }
        }
    }

    /// New candidates near the one that is ahead.
    fn join_neighbours(&mut self, race: &Race) -> Vec<String> {
        let front = race.find_front_runner();
        let candidates = &self.state.candidates;
        let point = candidates.iter().find(|c| Some(c.arm.as_str()) == front);
        let Some(point) = point.and_then(|c| c.point.clone()) else {
            return Vec::new();
        };
        let tried: Vec<Point> = candidates.iter().filter_map(|c| c.point.clone()).collect();
        let room = (MOST_ARMS - 1)
            .saturating_sub(candidates.len())
            .min(JOINING);
        let near = self.space.neighbours(&point, &tried).into_iter().take(room);
        let near: Vec<Candidate> = near.map(|point| candidate_at(&self.space, point)).collect();
        self.state.candidates.extend(near.iter().cloned());
        near.into_iter().map(|candidate| candidate.arm).collect()
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
        let rounds = u64::try_from(number).unwrap_or(u64::MAX);
        self.measure(&name, arms, Some(blocks), left, rounds)?;
        self.state.rounds.push(Round {
            results: name,
            arms: arms.to_vec(),
        });
        self.keep()
    }

    /// Measures the arm that is ahead anew, with other seeds.
    fn confirm(&mut self, race: &Race) -> Result<(), CliError> {
        self.drop_losers(race);
        let hopeless = race.is_hopeless(self.smallest_effect, 2 * BLOCKS);
        let Some(front) = race.find_front_runner().filter(|_| !hopeless) else {
            return self.keep();
        };
        let mut all = race.find_alike(front, self.smallest_effect);
        all.insert(0, front);
        // The first of the simplest: the one that is ahead where the others are no simpler.
        let settings = |arm: &&str| arm.matches(['+', ' ']).count();
        let chosen = all
            .iter()
            .copied()
            .min_by_key(settings)
            .unwrap_or(front)
            .to_owned();
        let alike = all.into_iter().filter(|arm| *arm != chosen);
        let alike: Vec<String> = alike.map(str::to_owned).collect();
        if !self.args.answer.quiet {
            note!("Confirmation: {chosen} beside {}", self.state.baseline);
        }
        let name = PathBuf::from(directory::CONFIRMATION);
        let arms = [chosen.clone()];
        // A race that took longer than it should leaves the confirmation its share all the same.
        let left = self.left().max(self.budget.mul_f64(CONFIRMING));
        let (results, ruling) = match &self.ledger {
            Some(_) => self.ask_referee(&name, &chosen, left)?,
            None => (self.measure(&name, &arms, None, left, OTHER_SEEDS)?, None),
        };
        let label = name.display().to_string();
        let source = Source {
            label: &label,
            results: &results,
        };
        self.state.confirmation = Some(Confirmation {
            confirmed: judge_confirmation(&source, &self.mix, &chosen)?,
            arm: chosen,
            alike,
            results: name,
            ruling,
        });
        self.keep()
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

    /// An interleaved run of the baseline and these arms, in a results directory of its own. All its blocks are
    /// measured, as far as the time goes: the race judges and not the run, and a confirmation that ended with
    /// its first call would report too much. `blocks`: none for those of the experiment.
    fn measure(
        &mut self,
        name: &Path,
        arms: &[String],
        blocks: Option<usize>,
        left: Duration,
        seeds: u64,
    ) -> Result<ResultSet, CliError> {
        let dir = self.dir.join(name);
        // What an interrupt left of it begins anew.
        written::remove_marked(&dir)
            .map_err(|e| CliError::internal(format!("remove {}: {e}", dir.display())))?;
        let mut wanted = read_measurable(&with_arms(
            &self.args.experiment,
            &self.state.baseline,
            arms,
        ))?;
        wanted.source = None;
        let experiment = &mut wanted.experiment;
        experiment.seed = experiment.seed.wrapping_add(seeds);
        experiment.name = format!(
            "{}-{}",
            experiment.name,
            name.display().to_string().replace('/', "-")
        );
        let nanoseconds = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
        experiment.stop.budget_ns = Some(nanoseconds);
        if let Some(blocks) = blocks.and_then(|blocks| u32::try_from(blocks).ok()) {
            experiment.stop.max_blocks = blocks;
        }
        experiment.stop.min_blocks = experiment.stop.max_blocks;
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

/// The arms that were named, and the first points of the space.
fn first_candidates(space: &Space, others: &[String]) -> Vec<Candidate> {
    let named = others.iter().map(|arm| Candidate {
        arm: arm.clone(),
        point: None,
        dropped: None,
        failed: false,
    });
    let room = FIRST.saturating_sub(others.len()).max(1);
    let points = space.first_points(room).into_iter();
    named
        .chain(points.map(|point| candidate_at(space, point)))
        .collect()
}

fn candidate_at(space: &Space, point: Point) -> Candidate {
    Candidate {
        arm: space.arm_text(&point),
        point: Some(point),
        dropped: None,
        failed: false,
    }
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
        return "the first round is measured\n".to_owned();
    };
    let dropped = state.candidates.iter().filter(|c| c.dropped.is_some());
    format!(
        "{} of the race measured, {} of {} dropped\n",
        report::format_count(state.rounds.len(), "round"),
        dropped.count(),
        report::format_count(state.candidates.len(), "candidate")
    )
}

/// Names of candidates by why they were dropped.
fn count_dropped(candidates: &[Candidate]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for candidate in candidates.iter().filter(|c| c.dropped.is_some()) {
        let why = match candidate.failed {
            true => "failed",
            false => "behind",
        };
        *counts.entry(why).or_default() += 1;
    }
    counts
}
