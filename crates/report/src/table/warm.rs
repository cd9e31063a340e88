//! Warning about a command that found its work done: its first trial did the work, and the
//! rest measured how long it takes to see that nothing is left to do.

use super::summary::median;
use model::{Severity, Trial, Warning};
use results::ResultSet;

/// Metric of a command that did the whole of its work.
const WALL_TIME: &str = "wall_time";
/// A cold cache makes a first trial slower, but hardly by so much.
const FACTOR: f64 = 5.0;
/// Trials besides the first that must be there.
const LEAST: usize = 3;

pub fn warmup_warnings(results: &ResultSet) -> Vec<Warning> {
    let mut trials: Vec<&Trial> = results.trials.iter().map(|t| &t.trial).collect();
    trials.sort_by_key(|trial| trial.order_key());
    let cells = results.plan.cells.iter().enumerate();
    let of_cell = |cell| {
        let here = trials
            .iter()
            .filter(move |t| t.place.cell == cell && t.is_ok());
        here.filter_map(|trial| Some(trial.metric(WALL_TIME)?.value))
            .collect::<Vec<f64>>()
    };
    cells
        .filter_map(|(index, cell)| warning(&cell.name, &of_cell(index)))
        .collect()
}

fn warning(cell: &str, wall_times: &[f64]) -> Option<Warning> {
    let (first, rest) = wall_times.split_first()?;
    let usual = median(rest.iter().copied())?;
    let factor = first / usual;
    (rest.len() >= LEAST && factor >= FACTOR).then(|| Warning {
        severity: Severity::Caution,
        what: format!(
            "The first trial of {cell} took {factor:.0} times as long as the rest: it seems that \
             the others found their work done."
        ),
        remedy: "Undo the work before each trial, such as with `--prepare 'make \
                 clean'` (`prepare` in a file)."
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_trial_that_did_the_work_of_all_is_said() {
        let said = warning("make", &[7.2, 0.056, 0.05, 0.05]).unwrap();
        assert!(
            said.what.contains("make took 144 times as long"),
            "{}",
            said.what
        );
        assert_eq!(warning("make", &[7.2, 0.05, 0.05]), None);
        assert_eq!(warning("make", &[7.2, 5.0, 5.1, 4.9]), None);
        assert_eq!(warning("make", &[]), None);
    }
}
