//! Figures of windows that have closed, told while arms still take turns, so that a process may end as soon as they are
//! enough.
//!
//! Each recorder of a log that is told ([`crate::recording::Recorder::told_as`]) shares its values with the thread that
//! waits for the end of the window. That thread puts some windows together in the washout after them. What
//! it tells is forgotten: the figures that count are made of all values when the load has ended.

use crate::Parsed;
use crate::latency::Quantile;
use crate::turn_values::{TurnFigures, Words, quantile, turn_of, value_of};
use model::{MetricDef, Turns};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Recorders of one kind of latency.
struct Log {
    quantiles: &'static [Quantile],
    rate: Option<MetricDef>,
    recorders: Vec<Words>,
}

/// Logs of this process, by the name of their first quantile.
static LOGS: Mutex<BTreeMap<&'static str, Log>> = Mutex::new(BTreeMap::new());

/// Adds a recorder to its log.
pub(crate) fn add(quantiles: &'static [Quantile], rate: Option<MetricDef>, words: Words) {
    let Some((first, _)) = quantiles.first() else {
        return;
    };
    let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
    let new = || Log {
        quantiles,
        rate,
        recorders: Vec::new(),
    };
    let log = logs.entry(first.name).or_insert_with(new);
    log.recorders.push(words);
}

/// Figures of these turns; `None` where a metric that is wanted is in no log.
pub(crate) fn figures_of(turns: &Turns, range: Range<usize>, wanted: &[String]) -> Option<Parsed> {
    if wanted.is_empty() {
        return None;
    }
    let logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut told = Parsed {
        turns: vec![TurnFigures::default(); range.len()],
        ..Parsed::default()
    };
    for log in logs.values() {
        log.tell(turns, &range, wanted, &mut told);
    }
    let is_told = |name: &String| told.metrics.iter().any(|m| m.metric == *name);
    wanted.iter().all(is_told).then_some(told)
}

impl Log {
    fn tell(&self, turns: &Turns, range: &Range<usize>, wanted: &[String], told: &mut Parsed) {
        let is_wanted = |def: &MetricDef| wanted.iter().any(|name| name == def.name);
        let quantiles = self.quantiles.iter().filter(|(def, _)| is_wanted(def));
        let quantiles: Vec<&Quantile> = quantiles.collect();
        let rate = self.rate.filter(is_wanted);
        if quantiles.is_empty() && rate.is_none() {
            return;
        }
        let seconds = turns.lengths.window_ns as f64 / 1e9;
        for (values, figures) in self.values_of(range).iter().zip(&mut told.turns) {
            let of_quantiles = quantiles
                .iter()
                .filter_map(|(def, permille)| Some((def.name, quantile(values, *permille)?)));
            let of_rate = rate.map(|def| (def.name, values.len() as f64 / seconds));
            let all = of_quantiles.chain(of_rate);
            figures
                .whole
                .extend(all.map(|(name, value)| (name.to_owned(), value)));
        }
        let defs = quantiles.iter().map(|(def, _)| *def).chain(rate);
        told.metrics.extend(defs.map(|def| def.to_measurement(0.0)));
    }

    /// Values of each of these turns, in order of size.
    fn values_of(&self, range: &Range<usize>) -> Vec<Vec<u64>> {
        let mut values = vec![Vec::new(); range.len()];
        for words in &self.recorders {
            let words = words.lock().unwrap_or_else(PoisonError::into_inner);
            let recent = words.iter().rev();
            for word in recent.take_while(|word| turn_of(**word) >= range.start) {
                if let Some(of_turn) = values.get_mut(turn_of(*word) - range.start) {
                    of_turn.push(value_of(*word));
                }
            }
        }
        values.iter_mut().for_each(|values| values.sort_unstable());
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency as m;
    use crate::recording::{Recorder, Window};
    use model::{InPlace, Turn};

    const MS: u64 = 1_000_000;
    const MINE: &[Quantile] = &[(m::SERVICE_P50, Some(500))];
    const RATE: MetricDef = m::SLOWEST_PAIR;

    #[test]
    fn windows_that_have_closed_are_told_if_all_that_is_wanted_is_known() {
        let turns = Turns {
            lengths: InPlace::new(100 * MS),
            order: vec![Turn { arm: 0, pair: 0 }; 4],
        };
        let mut recorders = [0; 2].map(|_| {
            let recorder = Recorder::new(turns.all_ns(), MS).unwrap();
            let mut recorder = recorder.in_turns(Some(&turns)).told_as(MINE, Some(RATE));
            recorder.open(Window {
                begin_ns: 0,
                end_ns: turns.all_ns(),
            });
            recorder
        });
        for at_ms in 0..480 {
            let recorder = &mut recorders[usize::from(at_ms % 2 == 0)];
            recorder.record(at_ms * MS, 1_000 * (1 + at_ms / 120));
        }
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let wanted = names(&[m::SERVICE_P50.name, RATE.name]);
        let told = figures_of(&turns, 1..3, &wanted).unwrap();
        assert_eq!((told.turns.len(), told.metrics.len()), (2, 2));
        let figure = |turn: usize, name| told.turns[turn].whole[name];
        let medians = [0, 1].map(|turn| figure(turn, m::SERVICE_P50.name));
        assert_eq!(medians, [2_000.0, 3_000.0]);
        assert_eq!(figure(1, RATE.name), 1_000.0);
        let more = names(&[m::SERVICE_P50.name, "of_no_log"]);
        assert_eq!(figures_of(&turns, 1..3, &more), None);
    }
}
