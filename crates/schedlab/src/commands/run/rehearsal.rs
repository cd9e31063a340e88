//! `schedlab run --rehearse`: the turns, the looks and the rails of a run in which no arm changes anything.

use crate::args::ExperimentArgs;
use crate::exit::CliError;
use crate::output::note;
use crate::request::{Wanted, read_wanted};
use model::{Arm, Trial};
use report::with_unit;
use results::ResultSet;
use std::collections::BTreeMap;

/// The experiment with arms that change nothing, and one block of it. Nothing is built for the arms.
pub fn read_unchanged(args: &ExperimentArgs) -> Result<Wanted, CliError> {
    let mut wanted = read_wanted(args)?;
    let experiment = &mut wanted.experiment;
    for arm in &mut experiment.arms {
        *arm = Arm::unchanged(&format!("{} (not applied)", arm.name));
    }
    experiment.name = format!("rehearsal-{}", experiment.name);
    experiment.stop.max_blocks = args.max_blocks.unwrap_or(1);
    experiment.stop.min_blocks = experiment.stop.min_blocks.min(experiment.stop.max_blocks);
    // The file describes another experiment than the one that is measured.
    wanted.source = None;
    Ok(wanted)
}

/// Prints the figures of all windows, or of whole trials, whatever the arm is called.
pub fn show_windows(results: &ResultSet) {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let trials: Vec<&Trial> = trials.filter(|trial| trial.is_ok()).collect();
    let mut figures: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for metric in trials.iter().flat_map(|trial| &trial.result.metrics) {
        let key = (metric.metric.as_str(), metric.unit.as_str());
        figures.entry(key).or_default();
    }
    for (key, values) in &mut figures {
        values.extend(trials.iter().flat_map(|trial| values_of(trial, key.0)));
        values.sort_by(f64::total_cmp);
    }
    note!(
        "\nNothing was changed. Every figure above is of the machine as it was, and so are these:"
    );
    for ((metric, unit), values) in &figures {
        let (Some(low), Some(high)) = (values.first(), values.last()) else {
            continue;
        };
        note!(
            "  {metric}: median {} of {} windows, {} to {}",
            with_unit(values[values.len() / 2], unit),
            values.len(),
            with_unit(*low, unit),
            with_unit(*high, unit)
        );
    }
}

/// Figures of the windows of a trial; of one without turns that of the trial.
fn values_of(trial: &Trial, metric: &str) -> Vec<f64> {
    let windows = trial.result.windows.as_ref();
    if let Some(windows) = windows {
        let of_metric = windows.figures.get(metric).into_iter().flatten();
        return of_metric.filter_map(|value| *value).collect();
    }
    let of_trial = trial.result.metrics.iter().filter(|m| m.metric == metric);
    of_trial.map(|m| m.value).collect()
}
