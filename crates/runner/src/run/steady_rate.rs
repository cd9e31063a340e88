//! The rate that ordinary trials sustain: a search offers all its rates to one server, which has
//! minutes to warm up. A trial has a server of its own, and the same rate may be too much for it. So
//! ordinary trials go down from the rate that the search found until one holds.

use super::Run;
use super::capacity::{Aside, find_metric, none_found};
use crate::{Event, RunError};
use model::{
    Load, Severity, Slo, TrialResult, TrialState, Warning, format_duration_ns, format_rate,
};
use schedule::Search;

/// A rate that does not hold in an ordinary trial is followed by this part of it, or by a little
/// less than the rate that was answered.
const NEXT: f64 = 0.9;
const ANSWERED: f64 = 0.97;
/// The same after a trial without figures.
const AFTER_FAILURE: f64 = 0.75;
/// Part of the rate of the search at which the descent gives up.
const LOWEST: f64 = 0.1;
/// Header of the table of ordinary trials.
const TRIALS_HEADER: &str = "rate_per_sec,answered_per_sec,quantile_ns,overloaded,held\n";

/// An ordinary trial at a rate.
struct Tried {
    answered_per_sec: Option<f64>,
    /// `None`: too few requests for it.
    quantile_ns: Option<f64>,
    overloaded: bool,
    held: bool,
    /// Why there are no figures: a rate that is far too high can leave no request answered in the
    /// window.
    failed: Option<String>,
}

impl Tried {
    /// `Err` gives the reason for which the trial says nothing about the rate.
    fn of(slo: &Slo, result: &TrialResult) -> Result<Self, String> {
        let failed = match &result.state {
            TrialState::Void { why } => return Err(why.clone()),
            TrialState::Failed { why } if result.for_good => return Err(why.clone()),
            TrialState::Failed { why } => Some(why.clone()),
            TrialState::Ok => None,
        };
        let quantile = format!("request_{}", slo.quantile_name().replace('.', ""));
        let quantile_ns = find_metric(result, &quantile);
        let overloaded = find_metric(result, "overloaded").is_some_and(|is_so| is_so > 0.0);
        let is_fast = quantile_ns.is_none_or(|ns| ns < slo.below_ns as f64);
        Ok(Tried {
            answered_per_sec: find_metric(result, "requests_per_sec"),
            quantile_ns,
            overloaded,
            held: failed.is_none() && !overloaded && is_fast,
            failed,
        })
    }

    /// The rate to try next.
    fn lower(&self, rate_per_sec: f64) -> f64 {
        if self.failed.is_some() {
            return AFTER_FAILURE * rate_per_sec;
        }
        let answered = self.answered_per_sec.unwrap_or(f64::INFINITY);
        (NEXT * rate_per_sec).min(ANSWERED * answered)
    }

    /// `p95 2.4s, 399/s answered`
    fn words(&self, slo: &Slo) -> String {
        if let Some(why) = &self.failed {
            return why.clone();
        }
        let quantile = self.quantile_ns.map(|ns| {
            let ns = format_duration_ns(model::truncate_to_u64(ns));
            format!("{} {ns}", slo.quantile_name())
        });
        let answered = self.answered_per_sec;
        let answered = answered.map(|rate| format!("{} answered", format_rate(rate)));
        let said: Vec<String> = quantile.into_iter().chain(answered).collect();
        said.join(", ")
    }

    fn row(&self, rate_per_sec: f64) -> String {
        let number = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.1}"));
        format!(
            "{rate_per_sec:.1},{},{},{},{}\n",
            number(self.answered_per_sec),
            number(self.quantile_ns),
            self.overloaded,
            self.held
        )
    }
}

/// Where whole trials look for the rate, one that held is followed by so many times of it, until one does not
/// hold; the search ends when the two are so close.
const STEP: f64 = 1.5;
const CLOSE: f64 = 1.1;

/// Rates that were tried on the way to the highest one that holds.
#[derive(Debug, Default)]
struct Climb {
    /// The highest that held.
    held: Option<f64>,
    /// The lowest that did not, and what it was like.
    refused: Option<(f64, String)>,
}

impl Climb {
    /// The rate to try next; none where the search has ended.
    fn find_next(&self, slo: &Slo) -> Option<f64> {
        match (self.held, &self.refused) {
            (None, None) => Some(slo.from_per_sec),
            (None, Some(_)) => None,
            (Some(held), None) if held >= slo.to_per_sec => None,
            (Some(held), None) => Some((STEP * held).min(slo.to_per_sec)),
            (Some(held), Some((refused, _))) if refused / held <= CLOSE => None,
            (Some(held), Some((refused, _))) => Some((held * refused).sqrt()),
        }
    }

    /// The rate that was found, or why there is none and what to do.
    fn find_rate(self, slo: &Slo) -> Result<f64, (String, &'static str)> {
        match (self.held, self.refused) {
            (Some(held), Some(_)) => Ok(held),
            (Some(_), None) => {
                let most = format_rate(slo.to_per_sec);
                Err((
                    format!("{most}, the highest one that is tried, holds"),
                    "give a higher `to`",
                ))
            }
            (None, refused) => {
                let least = format_rate(slo.from_per_sec);
                let what = refused.map_or_else(String::new, |(_, what)| what);
                Err((
                    format!("not even {least} holds: {what}"),
                    "give a lower `from`, or a longer `warmup`",
                ))
            }
        }
    }
}

impl Run<'_> {
    /// The highest rate that ordinary trials hold, for a load whose process cannot change its rate: upwards
    /// from the lower end of the search, then between what held and what did not. `None` when interrupted.
    pub(super) fn climb_to_rate(&mut self, search: &Search) -> Result<Option<f64>, RunError> {
        let workload = &self.experiment.workloads[search.workload].name;
        let mut table = TRIALS_HEADER.to_owned();
        let mut climb = Climb::default();
        while let Some(rate_per_sec) = climb.find_next(&search.slo) {
            let Some(tried) = self.try_rate(search, rate_per_sec, &mut table)? else {
                return Ok(None);
            };
            match tried.held {
                true => climb.held = Some(rate_per_sec),
                false => climb.refused = Some((rate_per_sec, tried.words(&search.slo))),
            }
        }
        self.writer
            .add_search(&format!("{workload} trials"), &table)?;
        match climb.find_rate(&search.slo) {
            Ok(rate_per_sec) => Ok(Some(rate_per_sec)),
            Err((why, remedy)) => Err(RunError::Unmet(vec![none_found(workload, why, remedy)])),
        }
    }

    /// The highest rate, from that of the search downwards, that holds in an ordinary trial;
    /// `None` when interrupted.
    pub(super) fn find_sustained_rate(
        &mut self,
        search: &Search,
        found: f64,
    ) -> Result<Option<f64>, RunError> {
        let workload = &self.experiment.workloads[search.workload].name;
        let most = self.experiment.stop.max_attempts;
        let mut table = TRIALS_HEADER.to_owned();
        let (mut rate_per_sec, mut failed) = (found, 0);
        loop {
            let Some(tried) = self.try_rate(search, rate_per_sec, &mut table)? else {
                return Ok(None);
            };
            if tried.held {
                break;
            }
            rate_per_sec = tried.lower(rate_per_sec);
            failed = if tried.failed.is_some() {
                failed + 1
            } else {
                0
            };
            if let Some(why) = tried.failed.clone().filter(|_| failed == most) {
                return Err(RunError::Unmet(vec![none_found(workload, why, "")]));
            }
            if rate_per_sec < LOWEST * found {
                let why = format!(
                    "a search in one process found {}, but no ordinary trial holds even a tenth of \
                     it, the last one with {}",
                    format_rate(found),
                    tried.words(&search.slo)
                );
                let remedy = "give the server a longer `warmup`, at rates that rise";
                return Err(RunError::Unmet(vec![none_found(workload, why, remedy)]));
            }
        }
        let name = format!("{workload} trials");
        self.writer.add_search(&name, &table)?;
        if rate_per_sec < found {
            let note = lower_than_found(workload, found, rate_per_sec);
            self.writer.add_warnings(vec![note])?;
        }
        Ok(Some(rate_per_sec))
    }

    /// The rate in an ordinary trial; in a second one where only the quantile was too high, since
    /// one disturbance is no overload. `None` when interrupted.
    fn try_rate(
        &mut self,
        search: &Search,
        rate_per_sec: f64,
        table: &mut String,
    ) -> Result<Option<Tried>, RunError> {
        let experiment = self.experiment;
        let workload = &experiment.workloads[search.workload].name;
        let (mut lost, mut again) = (0, true);
        loop {
            let tried = match self.run_aside(search, Load::RatePerSec(rate_per_sec))? {
                Aside::Interrupted => return Ok(None),
                Aside::Result(result, _) => Tried::of(&search.slo, &result),
                Aside::Lost(why) => Err(why),
            };
            let tried = match tried {
                Ok(tried) => tried,
                Err(why) => {
                    (self.sink)(Event::SearchFailed {
                        workload,
                        why: &why,
                    });
                    lost += 1;
                    if lost == experiment.stop.max_attempts {
                        return Err(RunError::Unmet(vec![none_found(workload, why, "")]));
                    }
                    continue;
                }
            };
            table.push_str(&tried.row(rate_per_sec));
            (self.sink)(Event::RateTried {
                workload,
                rate_per_sec,
                held: tried.held,
                what: &tried.words(&search.slo),
            });
            if tried.held || tried.overloaded || tried.failed.is_some() || !again {
                return Ok(Some(tried));
            }
            again = false;
        }
    }
}

/// A note for the report: what its shares are of, and why this is not what a search finds.
fn lower_than_found(workload: &str, found: f64, held: f64) -> Warning {
    Warning {
        severity: Severity::Note,
        what: format!(
            "{workload}: the search, which has one server for all its rates, found {}; ordinary \
             trials, each with a server of its own, hold {}. Loads are shares of the latter.",
            format_rate(found),
            format_rate(held)
        ),
        remedy: "a longer `warmup` brings them closer".to_owned(),
    }
}
