//! Rare events of a trial, at their true rates.

use crate::Scenario;
use model::{Happened, Trial};
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Requests of each millisecond of a window.
const REQUESTS_PER_MS: u64 = 2;

/// Puts the events of the experiment into a trial. One that ends the window ends it for all.
pub fn count(scenario: &Scenario, trial: &mut Trial, mut chance: ChaCha8Rng) {
    let start_ns = trial.result.window_start_ns;
    for event in &scenario.experiment.observe.events {
        let known = scenario.event_rates.iter();
        let mut known = known.filter(|rate| rate.event == event.name && rate.arm == trial.arm);
        let per_minute = known.next().map_or(0.0, |rate| rate.per_minute);
        let mut at_ns = moments(
            &mut chance,
            per_minute,
            trial.result.window_end_ns - start_ns,
        );
        if event.when.ends_window() {
            at_ns.truncate(1);
            let end = at_ns.first().map(|at| start_ns + at);
            trial.result.window_end_ns = end.unwrap_or(trial.result.window_end_ns);
        }
        let said = at_ns.first().filter(|_| event.when.ends_window());
        let said = said.map(|_| "runnable task stall (watchdog failed to check in)".to_owned());
        trial.result.events.push(Happened {
            name: event.name.clone(),
            exposure_ns: 0,
            requests: event.when.latency().map(|_| 0),
            at_ns: at_ns.iter().map(|at| start_ns + at).collect(),
            without_moment: 0,
            ended_window: said.is_some(),
            messages: said.into_iter().collect(),
        });
    }
    let (end_ns, window_ns) = (
        trial.result.window_end_ns,
        trial.result.window_end_ns - start_ns,
    );
    for happened in &mut trial.result.events {
        happened.exposure_ns = window_ns;
        let requests = window_ns / 1_000_000 * REQUESTS_PER_MS;
        happened.requests = happened.requests.map(|_| requests);
        happened.at_ns.retain(|at| *at <= end_ns);
    }
}

/// Moments of a Poisson process within a window.
fn moments(chance: &mut ChaCha8Rng, per_minute: f64, window_ns: u64) -> Vec<u64> {
    let mut found = Vec::new();
    let mut at = 0.0;
    loop {
        at -= (1.0 - chance.random::<f64>()).ln() * 60e9 / per_minute;
        if at >= window_ns as f64 {
            break;
        }
        found.push(model::truncate_to_u64(at));
    }
    found
}
