//! Display of a run while it goes on, on standard error. A terminal has live lines: the run,
//! and below it each comparison that is open, as it stands. Elsewhere, in a log, there is a
//! line for the start and for each block, and after a minute of silence one for the step under
//! way. Whatever a person must know is a line that stays.

mod live;

use crate::exit::CliError;
use doors::shown::{self, Stream, clean_line};
use indicatif::{ProgressBar, ProgressStyle};
use live::{Live, left_in_words};
use model::trial::first_line;
use model::{Experiment, Plan, Trial, format_duration_ns, format_rate};
use report::format_count;
use runner::{Event, OpenComparison, Progress};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Display of one run.
pub struct Display {
    lines: Lines,
    /// The machine that events are of, with a colon; empty where there is only one.
    machine: String,
    /// Notes that were shown: several machines have the same.
    noted: BTreeSet<String>,
    /// Block, cell and arm.
    place: String,
    state: String,
    /// Arms that never worked in a cell, where the run goes on without them.
    given_up: BTreeSet<String>,
    cells: usize,
    decides: f64,
    /// While this is set, a view has the terminal, and nothing is said beside it.
    view: Option<Arc<AtomicBool>>,
}

/// Line about the first trial whose load was more than could be carried: whoever sees it need not wait for
/// the end of the run.
fn overload_of(trial: &Trial) -> Option<String> {
    (trial.is_ok() && results::overload::has_overload(trial)).then(|| {
        format!(
            "overloaded: {}, {}: more was offered than done, so latency of that load will not be compared and goodput \
             decides; to compare latency end this run (Ctrl-C) and take a lower rate",
            trial.cell, trial.arm
        )
    })
}

impl Display {
    pub fn new(experiment: &Experiment, plan: &Plan, quiet: bool) -> Self {
        let lines = match quiet {
            true => Lines::None,
            false => Lines::of_this_process(),
        };
        let arms = format_count(experiment.arms.len(), "arm");
        let cells = format_count(plan.cells.len(), "cell");
        let (name, blocks) = (&experiment.name, experiment.stop.max_blocks);
        let budget = experiment.stop.budget_ns.map(format_duration_ns);
        let budget = budget.map_or_else(String::new, |budget| format!(" in {budget}"));
        lines.say(&format!(
            "{name}: {arms} × {cells}, at most {blocks} blocks{budget}"
        ));
        Display {
            lines,
            machine: String::new(),
            noted: BTreeSet::new(),
            place: String::new(),
            state: String::new(),
            given_up: BTreeSet::new(),
            cells: plan.cells.len(),
            decides: 1.0 / (1.0 - experiment.stop.confidence),
            view: None,
        }
    }

    /// Says nothing until the view has left the terminal.
    pub fn wait_for_view(&mut self, is_open: Arc<AtomicBool>) {
        if is_open.load(Ordering::Relaxed) && !matches!(self.lines, Lines::None) {
            self.lines.end();
            self.view = Some(is_open);
        }
    }

    fn look_at_view(&mut self) {
        let has_left = |is_open: &mut Arc<AtomicBool>| !is_open.load(Ordering::Relaxed);
        if self.view.take_if(has_left).is_some() {
            self.lines = Lines::of_this_process();
        }
    }

    /// Shows an event of one of several machines.
    pub fn show_of(&mut self, machine: &str, event: &Event) {
        self.machine = format!("{machine}: ");
        self.show_event(event);
        self.machine.clear();
    }

    /// A line about a machine, or all of them, that stays.
    pub fn add_note(&mut self, line: &str) {
        self.lines.say(line);
    }

    pub fn show_event(&mut self, event: &Event) {
        self.look_at_view();
        let machine = &self.machine;
        match event {
            Event::Ready { warnings } => {
                for warning in *warnings {
                    if self.noted.insert(warning.what.clone()) {
                        self.lines.say(&format!("note: {}", warning.what));
                    }
                }
            }
            Event::SearchStarted { .. }
            | Event::RateTried { .. }
            | Event::RateFound { .. }
            | Event::SearchFailed { .. } => self.search(event),
            Event::TrialStarted {
                place,
                cell,
                arm,
                attempt,
            } => {
                let again = match attempt {
                    1 => String::new(),
                    attempt => format!(", attempt {attempt}"),
                };
                self.place = format!("{machine}block {} · {cell} · {arm}{again}", place.block);
                self.now("");
            }
            Event::Step { step } if self.place.is_empty() => self.lines.first_steps(step),
            Event::Step { step } => self.now(step),
            // A line a second is too much for a log; a view has them.
            Event::Pace { .. } => {}
            Event::TrialEnded { trial } => {
                let state = &trial.result.state;
                if let Some(why) = state.headline() {
                    let (state, cell, arm) = (state.name(), &trial.cell, &trial.arm);
                    self.lines
                        .say(&format!("{machine}{state}: {cell}, {arm}: {why}"));
                }
                if let Some(line) =
                    overload_of(trial).filter(|_| self.noted.insert(trial.cell.clone()))
                {
                    self.lines.say(&format!("{machine}{line}"));
                }
            }
            Event::FoundOut { cell, what } => self.lines.say(&format!("{machine}{cell}: {what}")),
            Event::TooLong { what } => self.lines.say(&format!("{machine}note: {what}")),
            Event::GaveUp { cell, arm, .. } => {
                self.given_up.insert((*arm).to_owned());
                let line = format!("{machine}gave up on {arm} in {cell}: it never worked");
                self.lines.say(&line);
            }
            Event::Restarting { why } => {
                let line = format!("{machine}starting the agent again: {}", first_line(why));
                self.lines.say(&line);
            }
            Event::BlockEnded { state } => self.block_ended(state),
        }
    }

    /// The search for a highest rate, before the first block.
    fn search(&mut self, event: &Event) {
        match event {
            Event::SearchStarted {
                workload,
                arm,
                search,
            } => {
                self.lines.say(&format!(
                    "first the highest rate of {workload} at {} under {arm}, which takes about {}",
                    search.slo,
                    format_duration_ns(search.about_ns)
                ));
                self.place = format!("highest rate · {workload} · {arm}");
                self.now("");
            }
            Event::RateTried {
                workload,
                rate_per_sec,
                held,
                what,
            } => self.lines.say(&format!(
                "{workload} at {} in an ordinary trial {} ({what})",
                format_rate(*rate_per_sec),
                if *held { "holds" } else { "does not hold" }
            )),
            Event::RateFound {
                workload,
                slo,
                rate_per_sec,
            } => self.lines.say(&format!(
                "the highest rate of {workload} at {slo} is {}; its loads are shares of that",
                format_rate(*rate_per_sec)
            )),
            Event::SearchFailed { workload, why } => {
                let line = format!("no highest rate of {workload} found: {}", first_line(why));
                self.lines.say(&line);
            }
            _ => {}
        }
    }

    /// Shows the step under way.
    fn now(&self, step: &str) {
        self.lines.live(&[&self.state, &self.place, step]);
    }

    /// A cell in which nothing is left to measure needs no more blocks, which decides nothing.
    fn so_far_decided(&self, decided: usize) -> String {
        let cells = format_count(self.cells, "cell");
        match self.given_up.len() {
            0 => format!("{decided} of {cells} decided"),
            some => format!(
                "{decided} of {cells} done, {} given up",
                format_count(some, "arm")
            ),
        }
    }

    fn block_ended(&mut self, state: &Progress) {
        let decided = match state.set_aside {
            0 => self.so_far_decided(state.decided),
            some => format!("{}, {some} set aside", self.so_far_decided(state.decided)),
        };
        self.state.clone_from(&decided);
        let open = state.open.iter().map(|open| self.so_far(open));
        let open: Vec<String> = open.collect();
        let left = state.left_ns.map(left_in_words);
        let log = [Some(decided), left, self.nearest(&state.open)];
        let log: Vec<String> = log.into_iter().flatten().collect();
        self.lines
            .log(&format!("block {}: {}", state.block, log.join("; ")));
        self.lines.block_ended(state.left_ns, &self.state, &open);
    }

    /// The open comparison that is nearest to its end, and the number of the others.
    fn nearest(&self, open: &[OpenComparison]) -> Option<String> {
        let nearest = open.iter().max_by(|a, b| a.e_value.total_cmp(&b.e_value))?;
        let others = match open.len() - 1 {
            0 => String::new(),
            others => format!("; {others} more open"),
        };
        Some(format!("{}{others}", self.so_far(nearest)))
    }

    /// `wakeup 200% wakeup_p99, rusty: -44 % (-56 to -30), evidence 12 of 20`.
    fn so_far(&self, open: &OpenComparison) -> String {
        let named = format!("{} {}, {}:", open.cell, open.metric, open.arm);
        let change = match change_so_far(open) {
            Some(change) => format!("{change}, "),
            None if open.blocks == 0 => return format!("{named} nothing yet"),
            None => String::new(),
        };
        let e_value = open.e_value.min(self.decides);
        format!(
            "{named} {change}evidence {e_value:.0} of {:.0}",
            self.decides
        )
    }

    pub fn end_display(&mut self) {
        self.lines.end();
    }
}

/// `-44 % (-56 to -30)`, or `+3 us (+2 us to +4 us)` where a ratio has no meaning.
fn change_so_far(open: &OpenComparison) -> Option<String> {
    let between = |interval: Option<(f64, f64)>, write: &dyn Fn(f64) -> String| {
        interval.map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", write(low), write(high))
        })
    };
    if let Some(found) = &open.difference {
        let write = |value| report::signed_with_unit(value, &found.unit);
        return Some(write(found.value) + &between(found.interval, &write));
    }
    let percent = |ratio: f64| format!("{:+.0}", (ratio - 1.0) * 100.0);
    let between = between(open.interval, &percent);
    open.ratio
        .map(|ratio| format!("{} %{between}", percent(ratio)))
}

/// Display of steps that have nothing to do with blocks.
pub struct Steps(Lines);

impl Steps {
    pub fn new() -> Self {
        Steps(Lines::of_this_process())
    }

    pub fn show_step(&self, step: &str) {
        self.0.first_steps(step);
    }

    pub fn end_display(&mut self) {
        self.0.end();
    }
}

/// Spinner of one long step, such as a build.
pub struct Spinner(ProgressBar);

impl Spinner {
    pub fn new() -> Result<Self, CliError> {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
        bar.set_style(style.map_err(CliError::internal)?);
        bar.enable_steady_tick(Duration::from_millis(200));
        Ok(Spinner(bar))
    }

    pub fn show_line(&self, line: &str) {
        say_beside(&self.0, line);
    }

    pub fn end_display(self) {
        self.0.finish_and_clear();
    }
}

/// Words beside a bar. They may be of a build, or of another machine.
#[expect(clippy::disallowed_methods, reason = "here they are cleaned")]
fn say_beside(bar: &ProgressBar, line: &str) {
    bar.set_message(clean_line(line).into_string());
}

/// The place that lines go to.
enum Lines {
    Live(Live),
    /// A log, with the time of its last line.
    Log(Cell<Instant>),
    None,
}

/// A log that was silent for so long says what is under way.
const SILENCE: Duration = Duration::from_secs(60);

impl Lines {
    fn of_this_process() -> Self {
        match Stream::Errors.is_terminal() {
            true => Lines::Live(Live::new()),
            false => Lines::Log(Cell::new(Instant::now())),
        }
    }

    /// A line that stays. Names and reasons are those of the experiment and of programs.
    fn say(&self, line: &str) {
        let line = clean_line(line).into_string();
        match self {
            // The bars are drawn again below it.
            Lines::Live(live) => drop(live.all.println(line)),
            Lines::Log(_) => self.log(&line),
            Lines::None => {}
        }
    }

    /// A step before the first trial, such as the boot of a guest, takes its time.
    fn first_steps(&self, step: &str) {
        self.log(step);
        self.live(&[step]);
    }

    /// A line for where nothing is live.
    fn log(&self, line: &str) {
        if let Lines::Log(last) = self {
            shown::print_note(clean_line(line));
            last.set(Instant::now());
        }
    }

    /// The step under way now, with what is known before it.
    fn live(&self, parts: &[&str]) {
        match self {
            Lines::Live(live) => live.show_step(parts),
            Lines::Log(last) if last.get().elapsed() >= SILENCE => {
                let parts = parts.iter().copied().filter(|part| !part.is_empty());
                self.log(&parts.collect::<Vec<_>>().join(" · "));
            }
            Lines::Log(_) | Lines::None => {}
        }
    }

    fn block_ended(&mut self, left_ns: Option<u64>, state: &str, open: &[String]) {
        if let Lines::Live(live) = self {
            live.set_left(left_ns);
            live.show_step(&[state]);
            live.show_open(open);
        }
    }

    fn end(&mut self) {
        if let Lines::Live(live) = std::mem::replace(self, Lines::None) {
            live.end_display();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner::OpenDifference;

    fn display() -> Display {
        Display {
            lines: Lines::None,
            machine: String::new(),
            noted: BTreeSet::new(),
            place: String::new(),
            state: String::new(),
            given_up: BTreeSet::new(),
            cells: 3,
            decides: 20.0,
            view: None,
        }
    }

    fn open(arm: &str, ratio: Option<f64>, e_value: f64) -> OpenComparison {
        OpenComparison {
            cell: "wakeup 200%".to_owned(),
            metric: "wakeup_p99".to_owned(),
            arm: arm.to_owned(),
            blocks: 2,
            blocks_needed: None,
            ratio,
            interval: ratio.map(|ratio| (ratio - 0.1, ratio + 0.1)),
            difference: None,
            judged: None,
            e_value,
        }
    }

    #[test]
    fn a_cell_without_a_figure_is_not_called_decided() {
        let mut display = display();
        assert_eq!(display.so_far_decided(1), "1 of 3 cells decided");
        display.show_event(&Event::GaveUp {
            cell: "wakeup 200%",
            arm: "rusty",
            why: "it has no figure",
        });
        assert_eq!(
            display.so_far_decided(1),
            "1 of 3 cells done, 1 arm given up"
        );
    }

    #[test]
    fn a_comparison_has_its_change_its_interval_and_what_its_evidence_lacks() {
        let said = display().so_far(&open("rusty", Some(0.56), 12.3));
        let expected = "wakeup 200% wakeup_p99, rusty: -44 % (-54 to -34), evidence 12 of 20";
        assert_eq!(said, expected);
        // More than enough is enough.
        let said = display().so_far(&open("rusty", Some(1.2), 1e9));
        assert!(
            said.ends_with("+20 % (+10 to +30), evidence 20 of 20"),
            "{said}"
        );
        let mut unknown = open("rusty", None, 1.0);
        let said = display().so_far(&unknown);
        assert_eq!(said, "wakeup 200% wakeup_p99, rusty: evidence 1 of 20");
        unknown.difference = Some(OpenDifference {
            value: 3000.0,
            interval: Some((2000.0, 4000.0)),
            unit: "ns".to_owned(),
        });
        let said = display().so_far(&unknown);
        assert_eq!(
            said,
            "wakeup 200% wakeup_p99, rusty: +3 us (+2 us to +4 us), evidence 1 of 20"
        );
        unknown.difference = None;
        unknown.blocks = 0;
        let said = display().so_far(&unknown);
        assert_eq!(said, "wakeup 200% wakeup_p99, rusty: nothing yet");
    }

    #[test]
    fn a_log_has_the_comparison_that_is_nearest_to_its_end_and_the_number_of_the_others() {
        let all = [
            open("a", Some(1.0), 2.0),
            open("b", Some(1.0), 7.0),
            open("c", None, 1.0),
        ];
        let said = display().nearest(&all).unwrap();
        assert!(said.contains("wakeup_p99, b: +0 %"), "{said}");
        assert!(said.ends_with("evidence 7 of 20; 2 more open"), "{said}");
        assert!(!display().nearest(&all[..1]).unwrap().contains("more open"));
        assert_eq!(display().nearest(&[]), None);
    }
}
