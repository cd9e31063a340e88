//! `schedlab pick`: from nothing to an answer in minutes, for somebody who wants to know which scheduling to use
//! on this machine. It measures a small mix with what is there, recommends, and says what to paste; it changes
//! nothing itself.

mod permanent;

use crate::args::{ExperimentArgs, PickArgs, Purpose, WordArgs};
use crate::exit::{self, CliError};
use crate::measure::{Measured, measure_anew};
use crate::output::{self, Plain, note};
use crate::request::{read_measurable, read_wanted};
use model::{Arm, Side};
use report::recommend::{Advice, Mix, RecommendError, Recommendation, Source, recommend_arm};
use report::wrap_text;
use runner::Outcome;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

/// The mix that is measured for a use.
struct Mixture {
    workloads: &'static [&'static str],
    beside: &'static [&'static str],
    /// Shell command that is measured, too.
    command: Option<&'static str>,
}

/// Forty rounds of four processes at once.
const STORM: &str =
    "for i in $(seq 40); do /bin/true & /bin/true & /bin/true & /bin/true & wait; done";

fn mixture(purpose: Purpose) -> Mixture {
    let (workloads, beside, command): (&[&str], &[&str], Option<&str>) = match purpose {
        Purpose::Desktop => (&["frames", "wakeup:50%"], &["spinner"], None),
        Purpose::Server => (&["rr", "wakeup:100%"], &[], None),
        Purpose::Build => (&["wakeup:200%"], &[], Some(STORM)),
        Purpose::Latency => (&["wakeup:50%", "periodic"], &[], None),
    };
    Mixture {
        workloads,
        beside,
        command,
    }
}

/// Arms that any machine may have, beside its installed schedulers.
const USUAL: [&str; 3] = ["batch", "slice=0.3ms", "slice=10ms"];

/// Answer. It serializes to the JSON of `schedlab pick`.
#[derive(Debug, Serialize)]
struct Pick {
    /// The answer for somebody who knows no statistics.
    answer: String,
    recommendation: Recommendation,
    /// Lines that make the arm permanent.
    permanent: Vec<String>,
    /// Lines that undo them.
    undo: Vec<String>,
    /// Arms that this machine cannot have, with the reason.
    not_tried: Vec<String>,
}

pub fn pick(args: &PickArgs) -> Result<ExitCode, CliError> {
    let (arms, not_tried) = possible_arms(args)?;
    let given = experiment_of(args, arms);
    let wanted = read_measurable(&given)?;
    let all = wanted.experiment.arms.clone();
    let dir = args.output.clone();
    let dir = dir.unwrap_or_else(|| crate::measure::default_dir("pick"));
    let Measured { results, outcome } =
        measure_anew(Some(&dir), wanted, args.wait, args.answer.quiet)?;
    super::report::write_report_files(&report::Table::from_results(&results), &results)?;
    if outcome != Outcome::Done {
        return Err(CliError::Interrupted);
    }
    let label = dir.display().to_string();
    let source = Source {
        label: &label,
        results: &results,
    };
    let recommendation =
        recommend_arm(&[source], &Mix::default(), None).map_err(|error| match error {
            RecommendError::NoArm(_) => CliError::usage(
                format!("{} was too little for an answer: {error}", args.budget),
                "give it more time: --budget 10m",
            ),
            other => other.into(),
        })?;
    let chosen = all.iter().find(|arm| arm.name == recommendation.arm);
    let chosen = chosen.filter(|_| recommendation.advice == Advice::Arm);
    let pick = Pick {
        answer: plain_answer(&recommendation, &args.budget),
        permanent: chosen.map(permanent::lines).unwrap_or_default(),
        undo: chosen.map(permanent::undo_lines).unwrap_or_default(),
        recommendation,
        not_tried,
    };
    match args.answer.format {
        Plain::Json => output::json(&pick)?,
        Plain::Text => output::print_text(pick.to_text(output::width()))?,
    }
    if !args.answer.quiet {
        note!("\nResults  {label}");
    }
    super::report::warn_of_lacks(&pick.recommendation.lacks);
    Ok(ExitCode::from(match pick.recommendation.lacks.is_empty() {
        true => exit::DONE,
        false => exit::TRIALS_LOST,
    }))
}

fn experiment_of(args: &PickArgs, arms: Vec<String>) -> ExperimentArgs {
    let mixture = mixture(args.purpose);
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let command = mixture.command.into_iter();
    let command = command
        .flat_map(|line| ["sh", "-c", line])
        .collect::<Vec<_>>();
    ExperimentArgs {
        words: WordArgs {
            arms: std::iter::once("default".to_owned()).chain(arms).collect(),
            workloads: owned(mixture.workloads),
            beside: owned(mixture.beside),
            command: owned(&command),
            duration: Some(window_of(&args.budget)),
            ..WordArgs::default()
        },
        budget: Some(args.budget.clone()),
        ..ExperimentArgs::default()
    }
}

/// Window of a trial: a hundred and fifty of them fill the time, and none is so short that it is all noise.
fn window_of(budget: &str) -> String {
    let budget_ns = plan::parse_duration(budget).unwrap_or_default();
    let window_ns = (budget_ns / 150).clamp(1_000_000_000, 2_000_000_000);
    model::format_duration_ns(window_ns / 100_000_000 * 100_000_000)
}

/// Arms that this machine can have, and why it cannot have the others. What the user names is not passed over.
fn possible_arms(args: &PickArgs) -> Result<(Vec<String>, Vec<String>), CliError> {
    let mut arms = args.arms.clone();
    let mut not_tried = Vec::new();
    if args.only {
        return Ok((arms, not_tried));
    }
    let usual = USUAL.iter().map(|arm| (*arm).to_owned());
    let tried: Vec<String> = usual.chain(installed_schedulers()?).collect();
    for arm in tried.into_iter().filter(|arm| !args.arms.contains(arm)) {
        let given = experiment_of(args, vec![arm.clone()]);
        let experiment = read_wanted(&given)?.experiment;
        let problems = agent::check(Path::new("/"), &experiment, Side::Both);
        let mut problems = problems
            .iter()
            .filter(|problem| problem.object.contains(&arm));
        match problems.next() {
            None => arms.push(arm),
            Some(problem) => not_tried.push(format!("{arm}: {}", problem.what)),
        }
    }
    Ok((arms, not_tried))
}

/// Names of the schedulers in the cache.
fn installed_schedulers() -> Result<Vec<String>, CliError> {
    let cache = schedulers::Cache::from_env()?;
    let entries = schedulers::list_schedulers(&cache, false)?;
    let installed = entries
        .into_iter()
        .filter(|entry| !entry.installed.is_empty());
    Ok(installed.map(|entry| entry.name).collect())
}

/// The answer without a word of statistics.
fn plain_answer(of: &Recommendation, time: &str) -> String {
    let percent = |share: f64| format!("{:.0} %", (100.0 * share).ceil());
    let standing = |name: &str| of.arms.iter().find(|arm| arm.arm == name);
    let most = of.arms.iter().find(|arm| arm.baseline);
    let most = most.map_or("nothing".to_owned(), |arm| percent(arm.regret.high));
    match (of.advice, standing(&of.arm)) {
        (Advice::Arm, Some(arm)) => format!(
            "Use {}: in {time} it was better for this work, by {} at least.",
            arm.arm,
            format_args!("{:.0} %", (100.0 * arm.gain.low).floor())
        ),
        (Advice::Baseline, _) => format!(
            "Stay with what you have: in {time} nothing was found that is better by more than {most}."
        ),
        _ => format!(
            "No difference was found in {time}; if there is one, it is at most {most}. Stay with what you have, \
             or give it more time (--budget)."
        ),
    }
}

impl Pick {
    fn to_text(&self, width: usize) -> String {
        let width = width.clamp(60, 120);
        let mut lines = wrap_text(&self.answer, width, 0, 2);
        if !self.permanent.is_empty() {
            lines.extend([
                String::new(),
                "To keep it (nothing was changed):".to_owned(),
            ]);
            lines.extend(self.permanent.iter().map(|line| format!("  {line}")));
            lines.extend([String::new(), "To undo it:".to_owned()]);
            lines.extend(self.undo.iter().map(|line| format!("  {line}")));
        }
        if !self.not_tried.is_empty() {
            lines.extend([String::new(), "Not tried:".to_owned()]);
            for line in &self.not_tried {
                lines.extend(wrap_text(line, width, 2, 4));
            }
        }
        let details = self.recommendation.to_text(width);
        format!("{}\n\nIn detail\n\n{details}", lines.join("\n"))
    }
}

/// True if all that an arm changes is its policy.
fn is_policy_alone(arm: &Arm) -> bool {
    arm.tunables.is_empty() && arm.scheduler.is_none() && arm.ingredients.is_empty()
}
