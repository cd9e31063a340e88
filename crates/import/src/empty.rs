//! Runs in which nothing was measured: tools write a 0 for each figure of a run that was cut short.

use crate::{ImportError, Imported, Run};
use model::{Better, Measurement};
use std::path::Path;

/// Moves runs without a figure above 0 to the faults, each with its file.
pub(crate) fn take_out(imported: &mut Imported) {
    let runs = std::mem::take(&mut imported.runs);
    let (empty, measured): (Vec<Run>, Vec<Run>) = runs.into_iter().partition(is_empty);
    imported.runs = measured;
    imported.faults.extend(empty.iter().map(|run| {
        let what = format!(
            "every figure of `{}` in {} is 0: nothing was measured",
            run.arm,
            run.place.cell_name()
        );
        ImportError::in_file(Path::new(&run.source), what, "")
    }));
}

fn is_empty(run: &Run) -> bool {
    let judged = run.metrics.iter().filter(|m| m.better != Better::Neither);
    let judged: Vec<&Measurement> = judged.collect();
    // One latency of 0 may be a small one, and no errors are good news; but work takes time.
    let is_of_work =
        |m: &&Measurement| m.unit == "s" || m.unit.ends_with("/s") && m.better == Better::Higher;
    let are_times = judged.len() > 1 && judged.iter().all(|m| is_time(&m.unit));
    let has_work = are_times || judged.iter().any(is_of_work);
    has_work && judged.iter().all(|m| m.value == 0.0)
}

fn is_time(unit: &str) -> bool {
    matches!(unit, "ns" | "us" | "ms" | "s")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, make_figure};
    use model::Load;

    fn run(figures: &[(&str, f64)]) -> Run {
        let place = Place {
            workload: "w".to_owned(),
            benchmark: "w".to_owned(),
            load: Load::One,
            load_name: String::new(),
        };
        let metrics = figures
            .iter()
            .enumerate()
            .map(|(k, (unit, value))| make_figure(&format!("m{k}"), unit, Better::Lower, *value));
        Run {
            metrics: metrics.collect(),
            ..Run::new("a", place, "file.json".to_owned())
        }
    }

    #[test]
    fn work_that_took_no_time_and_percentiles_of_nothing_were_not_measured() {
        for (figures, empty) in [
            (&[("s", 0.0)][..], true),
            // A rate of misses.
            (&[("1/s", 0.0)], false),
            (&[("count", 0.0), ("count", 0.0)], false),
            (&[("ns", 0.0), ("ns", 0.0)], true),
            (&[("ns", 0.0)], false),
            (&[("%", 0.0)], false),
            (&[("ns", 0.0), ("1/s", 5.0)], false),
            (&[], false),
        ] {
            assert_eq!(is_empty(&run(figures)), empty, "{figures:?}");
        }
    }

    #[test]
    fn an_empty_run_is_a_fault_with_its_file_and_the_others_stay() {
        let mut imported = Imported::default();
        imported.add_run(run(&[("s", 0.0)]));
        imported.add_run(run(&[("s", 2.0)]));
        take_out(&mut imported);
        assert_eq!(imported.runs.len(), 1);
        let said = imported.faults[0].to_string();
        assert!(
            said.contains("file.json") && said.contains("nothing was measured"),
            "{said}"
        );
    }
}
