//! Files of other tools: what is right becomes results that can be stored and read, and what is
//! wrong is said in words that a terminal does not obey.

use import::{Converted, ImportError, Imported, Options};
use model::printable::is_hidden;
use std::path::Path;

/// The first byte chooses the reader, the rest is the file.
pub fn imports(input: &[u8]) {
    let Some((reader, rest)) = input.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let path = Path::new("x");
    let mut imported = Imported::default();
    let read = match reader % 12 {
        0 => import::schedtests::read_figures(path, text).map(|figures| {
            assert!(
                figures
                    .iter()
                    .all(|(line, value)| *line > 0 && value.is_finite())
            );
        }),
        1 => import::schedtests::hackbench_times(path, text).map(drop),
        2 => import::phoronix::read_text(path, text, &mut imported),
        3 => import::mmtests::read_export(path, text, &mut imported),
        4 => import::mmtests::schbench_log(path, text).map(drop),
        5 => import::schedbench::read_text(path, text, &mut imported),
        6 => import::schbench::read_text(path, text).map(|read| imported.add_run(read.run)),
        7 => import::perf_stat::add_text(path, text, "x", &mut imported),
        8 => import::ltp::add_text(path, text, None, &mut imported),
        9 => import::mangohud::add_text(path, text, "x", &mut imported),
        10 => import::presentmon::add_text(path, text, "x", &mut imported),
        _ => import::capframex::add_text(path, text, "x", &mut imported),
    };
    for error in read.err().iter().chain(&imported.faults) {
        is_shown(error);
    }
    if imported.runs.is_empty() {
        return;
    }
    match Converted::from_imported(imported, path, Options::default()) {
        Ok(converted) => is_whole(&converted),
        Err(error) => is_shown(&error),
    }
}

fn is_shown(error: &ImportError) {
    assert!(!error.to_string().contains(is_hidden), "{error}");
}

fn is_whole(converted: &Converted) {
    let Converted {
        experiment, plan, ..
    } = converted;
    experiment.check().expect("what was converted was checked");
    plan.check(experiment).expect("a plan of the experiment");
    for (trial, _) in &converted.trials {
        trial.check(experiment, plan).expect("a trial of the plan");
        let metrics = trial.result.metrics.iter();
        assert!(metrics.clone().all(|m| m.value.is_finite()), "{trial:?}");
    }
    let stored = serde_json::to_string(experiment).expect("it can be stored");
    let again: model::Experiment = serde_json::from_str(&stored).expect("it can be read");
    assert_eq!(again, *experiment);
}
