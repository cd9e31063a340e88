//! Experiment files: what is right can be planned and stored, and what is wrong can be
//! shown, whatever the file says.

use model::Experiment;
use model::printable::is_hidden;
use plan::PlanError;

/// Larger plans are right too, and take longer than a fuzzer has.
const MOST_PLANNED: u64 = 5_000;

/// An experiment file (TOML).
pub fn experiment(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    catalogue::install();
    match plan::parse_experiment("x.toml", text) {
        Ok(experiment) => is_whole(&experiment),
        Err(error) => is_shown(error),
    }
}

/// Checks that the result is an experiment, planned, and the same after it was stored.
pub fn is_whole(experiment: &Experiment) {
    plan::check(experiment).expect("what was read was checked");
    let stored = serde_json::to_string(experiment).expect("it can be stored");
    let again: Experiment = serde_json::from_str(&stored).expect("it can be read");
    assert_eq!(again, *experiment);
    let cells: usize = experiment.workloads.iter().map(|w| w.loads.len()).sum();
    let once = (cells * experiment.arms.len()) as u64;
    if once * u64::from(experiment.stop.max_blocks) > MOST_PLANNED {
        return;
    }
    let planned = schedule::plan_blocks(experiment);
    planned.check(experiment).expect("a plan of the experiment");
    schedule::block_ns(experiment, &planned);
    schedule::experiment_warnings(experiment, &planned, None);
}

/// The error with its picture of the file has nothing that a terminal obeys, but for the
/// colours that it may have.
pub fn is_shown(error: PlanError) {
    assert!(!error.to_string().contains(is_hidden), "{error}");
    let mut picture = String::new();
    let theme = miette::GraphicalTheme::unicode_nocolor();
    let _ = miette::GraphicalReportHandler::new_themed(theme).render_report(&mut picture, &error);
    let hidden = picture
        .chars()
        .find(|c| is_hidden(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(hidden, None, "{picture}");
}
