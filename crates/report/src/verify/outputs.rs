//! The figures of the trials against what their programs printed.

use super::{Difference, Verification, is_near};
use model::{Cell, Measurement, Workload};
use results::{ResultSet, StoredTrial};
use std::collections::BTreeMap;

/// A figure is read by the same code from the same text.
const SAME_FIGURE: f64 = 1e-9;
/// Beginning and end of the line in place of what a log is too long to keep.
const CUT: (&str, &str) = ("[", "bytes before this were left out]");

/// Reader of the figures in what a program printed: its workload, its cell, standard output and standard
/// error. `None`: the workload has no such figures.
pub type ReadAgain<'a> =
    &'a dyn Fn(&Workload, &Cell, [String; 2]) -> Option<Result<Vec<Measurement>, String>>;

/// The printed figures of every trial that counts, read again from the output that is stored with it. Those
/// that were read are no longer among `taken`. Nothing is read where no output was kept, or not all of it.
pub fn verify_outputs(
    results: &ResultSet,
    read_again: ReadAgain,
    taken: &mut BTreeMap<String, usize>,
) -> Verification {
    let mut found = Verification::default();
    let counting = results.trials.iter().filter(|stored| {
        let result = &stored.trial.result;
        stored.trial.is_ok() && result.windows.is_none()
    });
    for stored in counting {
        let Some(printed) = printed(stored) else {
            continue;
        };
        let cell = &results.plan.cells[stored.trial.place.cell];
        let workload = &results.experiment.workloads[cell.workload];
        // What could not be read stays among what is taken on trust.
        if let Some(Ok(figures)) = read_again(workload, cell, printed) {
            compare(stored, &figures, taken, &mut found);
        }
    }
    found
}

fn compare(
    stored: &StoredTrial,
    figures: &[Measurement],
    taken: &mut BTreeMap<String, usize>,
    found: &mut Verification,
) {
    for read in figures {
        // Units were not read before there was a quote of the figure.
        let said = stored.trial.metric(&read.metric);
        let said = said.filter(|said| said.own.is_some() == read.own.is_some());
        let Some(said) = said else { continue };
        found.numbers += 1;
        if let Some(count) = taken.get_mut(&said.metric) {
            *count = count.saturating_sub(1);
        }
        if said.unit != read.unit || !is_near(said.value, read.value, SAME_FIGURE) {
            found.differences.push(Difference {
                place: format!("trials/{}/trial.json, {}", name(stored), said.metric),
                said: format!("{} {}", said.value, said.unit),
                found: format!("{} {} from what its program printed", read.value, read.unit),
            });
        }
    }
    taken.retain(|_, count| *count > 0);
}

fn name(stored: &StoredTrial) -> String {
    let name = stored.dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Standard output and standard error; `None` where neither was kept, or where one was cut.
fn printed(stored: &StoredTrial) -> Option<[String; 2]> {
    let [stdout, stderr] = ["stdout.log", "stderr.log"].map(|name| {
        let bytes = results::files::read(&stored.dir.join(name)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    });
    if stdout.is_none() && stderr.is_none() {
        return None;
    }
    let both = [stdout.unwrap_or_default(), stderr.unwrap_or_default()];
    (!both.iter().any(|text| is_cut(text))).then_some(both)
}

fn is_cut(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with(CUT.0) && first.ends_with(CUT.1)
}
