//! The highest rate that holds a service level, within one trial: the same server,
//! one load after the other, each with its own warm-up and window.
//!
//! The rate is doubled from where the search begins until it does not hold, then the
//! gap is halved (on a log scale) until it is [`PRECISION`] wide. A rate does not
//! hold only when it failed twice in a row: one disturbance does not end the climb.

use super::config::Config;
use super::figures::{self, OWN_REMEDY, Total};
use super::metrics as own;
use load::Parsed;
use load::figures::merge_recorders;
use load::latency::SLO_RATE;
use model::{Measurement, Severity, Slo, TrialFile, Warning, format_duration_ns, format_rate};
use std::fmt::Write as _;

/// The highest rate that held and the lowest that did not are this close at the end.
const PRECISION: f64 = 1.05;
/// Lateness of the generator beside the service level, from which on the rate that was
/// found may be the generator's own.
const LATE_PART: f64 = 0.5;

/// One rate that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub rate_per_sec: f64,
    /// `None`: too few requests for it.
    pub quantile_ns: Option<u64>,
    pub achieved_percent: f64,
    pub error_percent: f64,
    pub lateness_p99_ns: Option<u64>,
    pub cpu_percent: f64,
    /// Why it did not hold.
    pub fault: Option<Fault>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The generator used all CPU that it can.
    Saturated,
    /// The generator's lateness is most of the latency.
    Late,
    TooManyErrors,
    Overload,
    TooFewRequests,
    TooSlow,
}

impl Fault {
    /// It says nothing of the server.
    fn is_the_generators(self) -> bool {
        matches!(self, Fault::Saturated | Fault::Late)
    }
}

impl Step {
    pub fn from_total(config: &Config, slo: &Slo, total: Total) -> Result<Self, String> {
        let cpu_percent = 100.0 * total.cpu_ns as f64 / config.duration_ns as f64;
        let overload = figures::is_overload(config, &total);
        let mut step = Step {
            rate_per_sec: config.rate_per_sec,
            achieved_percent: total.achieved_percent(),
            error_percent: total.error_percent(),
            cpu_percent,
            quantile_ns: merge_recorders(total.request)?.quantile_ns(slo.permille),
            lateness_p99_ns: merge_recorders(total.lateness)?.quantile_ns(990),
            fault: None,
        };
        let saturated = overload && figures::is_saturated(config, cpu_percent);
        step.fault = step.fault(slo, overload, saturated);
        Ok(step)
    }

    fn fault(&self, slo: &Slo, overload: bool, saturated: bool) -> Option<Fault> {
        let slow = self.quantile_ns.is_some_and(|ns| ns >= slo.below_ns);
        let late = match (self.lateness_p99_ns, self.quantile_ns) {
            (Some(late), Some(request)) => figures::is_too_late(late, request),
            _ => false,
        };
        let faults = [
            (saturated, Fault::Saturated),
            (late && (slow || overload), Fault::Late),
            (
                self.error_percent > figures::ERRORS_ALLOWED_PERCENT,
                Fault::TooManyErrors,
            ),
            (overload, Fault::Overload),
            (self.quantile_ns.is_none(), Fault::TooFewRequests),
            (slow, Fault::TooSlow),
        ];
        let first = faults.into_iter().find(|(is_so, _)| *is_so);
        first.map(|(_, fault)| fault)
    }

    pub fn has_held(&self) -> bool {
        self.fault.is_none()
    }

    /// In words, and what to do.
    fn reason(&self, slo: &Slo) -> Option<(String, &'static str)> {
        let quantile = self
            .quantile_ns
            .map_or_else(String::new, format_duration_ns);
        Some(match self.fault? {
            Fault::Saturated => (
                format!("the generator used {:.0} % of a CPU", self.cpu_percent),
                OWN_REMEDY,
            ),
            Fault::Late => (
                format!(
                    "the generator itself was {} late in one of 100 requests",
                    format_duration_ns(self.lateness_p99_ns.unwrap_or_default())
                ),
                OWN_REMEDY,
            ),
            Fault::TooManyErrors => (
                format!("{:.1} % of the requests failed", self.error_percent),
                "look at the server's log",
            ),
            Fault::Overload => (
                format!("only {:.1} % were answered", self.achieved_percent),
                "begin lower with `from`",
            ),
            Fault::TooFewRequests => (
                format!(
                    "the window has too few requests for {}",
                    slo.quantile_name()
                ),
                "use a longer duration, or begin higher with `from`",
            ),
            Fault::TooSlow => (
                format!("{} is {quantile}", slo.quantile_name()),
                "begin lower with `from`, or ask for less",
            ),
        })
    }
}

/// Result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found {
    Rate(f64),
    /// Bound: not even the first rate holds.
    AtMost(f64),
    /// The last rate still holds.
    AtLeast(f64),
}

impl Found {
    fn rate_per_sec(self) -> f64 {
        match self {
            Found::Rate(rate) | Found::AtMost(rate) | Found::AtLeast(rate) => rate,
        }
    }

    /// Position of the highest rate: below the one given (-1), there (0), or above (1).
    fn bound(self) -> f64 {
        match self {
            Found::AtMost(_) => -1.0,
            Found::Rate(_) => 0.0,
            Found::AtLeast(_) => 1.0,
        }
    }
}

/// Asks `holds` for one rate after the other.
pub fn climb<E>(slo: &Slo, mut holds: impl FnMut(f64) -> Result<bool, E>) -> Result<Found, E> {
    let mut holds = |rate| Ok(holds(rate)? || holds(rate)?);
    let mut low = slo.from_per_sec;
    if !holds(low)? {
        return Ok(Found::AtMost(low));
    }
    let mut high = loop {
        if low >= slo.to_per_sec {
            return Ok(Found::AtLeast(low));
        }
        let next = (2.0 * low).min(slo.to_per_sec);
        if !holds(next)? {
            break next;
        }
        low = next;
    };
    while high / low > PRECISION {
        let middle = (low * high).sqrt();
        match holds(middle)? {
            true => low = middle,
            false => high = middle,
        }
    }
    Ok(Found::Rate(low))
}

/// The figures of a search. A rate that is only a bound is marked as one.
pub fn compute_figures(slo: &Slo, found: Found, steps: &[Step]) -> Parsed {
    let rate_per_sec = found.rate_per_sec();
    let mut parsed = Parsed {
        metrics: metrics(rate_per_sec, steps),
        ..Parsed::default()
    };
    parsed.files.push(TrialFile {
        name: "search.csv".to_owned(),
        text: table(steps),
    });
    let bound = own::SLO_BOUND.to_measurement(found.bound());
    parsed.metrics.push(bound);
    let above = match found {
        Found::Rate(_) => rate_per_sec,
        // The first rate itself failed.
        Found::AtMost(_) => 0.0,
        Found::AtLeast(_) => f64::INFINITY,
    };
    parsed.void = own_limit(slo, above, steps);
    parsed.warnings.extend(bound_warning(slo, found, steps));
    parsed.warnings.extend(lateness(slo, steps));
    parsed
}

fn metrics(rate_per_sec: f64, steps: &[Step]) -> Vec<Measurement> {
    let mut metrics = vec![SLO_RATE.to_measurement(rate_per_sec)];
    if let Some(best) = steps.iter().rfind(|step| step.rate_per_sec == rate_per_sec) {
        metrics.push(own::GENERATOR_CPU.to_measurement(best.cpu_percent));
        let late = best.lateness_p99_ns;
        metrics.extend(late.map(|ns| own::LATENESS_P99.to_measurement(ns as f64)));
    }
    metrics
}

/// The lowest rate that did not hold, each time that it was tried.
fn lowest_failed(steps: &[Step], above: f64) -> Vec<&Step> {
    let failed = |step: &&Step| !step.has_held() && step.rate_per_sec > above;
    let rates = steps.iter().filter(failed).map(|step| step.rate_per_sec);
    let lowest = rates.fold(f64::INFINITY, f64::min);
    let at_it = |step: &&Step| step.rate_per_sec == lowest;
    steps.iter().filter(failed).filter(at_it).collect()
}

/// The search ended where the generator did, not the server.
fn own_limit(slo: &Slo, rate_per_sec: f64, steps: &[Step]) -> Option<String> {
    let failed = lowest_failed(steps, rate_per_sec);
    let is_own = |step: &&Step| step.fault.is_some_and(Fault::is_the_generators);
    if !failed.iter().all(is_own) {
        return None;
    }
    let step = failed.first()?;
    let (why, remedy) = step.reason(slo)?;
    let at = format_rate(step.rate_per_sec);
    Some(format!(
        "the highest rate may be the generator's own: at {at} {why}; {remedy}"
    ))
}

fn bound_warning(slo: &Slo, found: Found, steps: &[Step]) -> Option<Warning> {
    let at = format_rate(found.rate_per_sec());
    let (what, remedy) = match found {
        Found::Rate(_) => return None,
        Found::AtMost(_) => {
            let (why, remedy) = steps.last()?.reason(slo)?;
            let what = format!(
                "{slo} does not even hold at {at}, where the search begins ({why}): the highest \
                 rate is lower than the one given"
            );
            (what, remedy)
        }
        Found::AtLeast(_) => {
            let what = format!(
                "{slo} still holds at {at}, where the search ends: the highest rate is higher \
                 than the one given"
            );
            (what, "go on further with `to`")
        }
    };
    Some(serious(what, remedy))
}

fn serious(what: String, remedy: &str) -> Warning {
    Warning {
        severity: Severity::Serious,
        what,
        remedy: remedy.to_owned(),
    }
}

fn lateness(slo: &Slo, steps: &[Step]) -> Option<Warning> {
    let limit_ns = LATE_PART * slo.below_ns as f64;
    let late = |step: &&Step| step.lateness_p99_ns.is_some_and(|ns| ns as f64 > limit_ns);
    let step = steps.iter().filter(|step| !step.has_held()).find(late)?;
    let what = format!(
        "the generator itself was {} late in one of 100 requests at {}: the rate that was found may be its own",
        format_duration_ns(step.lateness_p99_ns.unwrap_or_default()),
        format_rate(step.rate_per_sec)
    );
    Some(serious(what, OWN_REMEDY))
}

fn table(steps: &[Step]) -> String {
    let mut text = "rate_per_sec,quantile_ns,achieved_percent,error_percent,\
                    generator_lateness_p99_ns,generator_cpu_percent,held\n"
        .to_owned();
    let number = |ns: Option<u64>| ns.map_or_else(String::new, |ns| ns.to_string());
    for step in steps {
        let _ = writeln!(
            text,
            "{:.1},{},{:.2},{:.2},{},{:.1},{}",
            step.rate_per_sec,
            number(step.quantile_ns),
            step.achieved_percent,
            step.error_percent,
            number(step.lateness_p99_ns),
            step.cpu_percent,
            step.has_held()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLO: Slo = Slo {
        permille: 990,
        below_ns: 1_000_000,
        from_per_sec: 1_000.0,
        to_per_sec: 100_000.0,
    };

    fn search(limit: f64) -> (Found, usize) {
        let mut tried = 0;
        let found = climb(&SLO, |rate| {
            tried += 1;
            Ok::<_, ()>(rate <= limit)
        });
        (found.unwrap(), tried)
    }

    #[test]
    fn the_rate_found_is_the_highest_one_within_the_precision() {
        for limit in [1_000.0, 1_999.0, 13_370.0, 64_000.0, 99_000.0] {
            let (Found::Rate(rate), tried) = search(limit) else {
                panic!("there is one below {limit}");
            };
            assert!(rate <= limit && rate * PRECISION > limit, "{rate}, {limit}");
            assert!(tried <= 20, "{tried} loads are too many");
        }
    }

    #[test]
    fn a_level_that_never_or_always_holds_gives_a_bound_and_says_why() {
        assert_eq!(search(10.0), (Found::AtMost(1_000.0), 2));
        assert_eq!(search(1e9).0, Found::AtLeast(100_000.0));
        let bound = |parsed: &Parsed| {
            let mut metrics = parsed.metrics.iter();
            metrics.find(|m| m.metric == "slo_bound").unwrap().value
        };
        let steps = [step(1_000.0, Some(Fault::TooSlow))];
        let never = compute_figures(&SLO, Found::AtMost(1_000.0), &steps);
        assert_eq!((bound(&never), &never.void), (-1.0, &None));
        assert_eq!(
            never.warnings[0].what,
            "p99 < 1ms does not even hold at 1k/s, where the search begins (p99 is 2ms): the \
             highest rate is lower than the one given"
        );
        let always = compute_figures(&SLO, Found::AtLeast(100_000.0), &[step(1e5, None)]);
        assert_eq!((bound(&always), &always.void), (1.0, &None));
        assert!(always.warnings[0].remedy.contains("`to`"));
    }

    #[test]
    fn a_level_that_errors_break_says_so() {
        let steps = [step(1_000.0, Some(Fault::TooManyErrors))];
        let said = &compute_figures(&SLO, Found::AtMost(1_000.0), &steps).warnings[0].what;
        assert!(said.contains("2.5 % of the requests failed"), "{said}");
    }

    #[test]
    fn a_rate_at_which_the_generator_was_the_limit_is_not_found() {
        let found = |again| {
            let steps = [
                step(1_000.0, None),
                step(2_000.0, Some(Fault::Late)),
                step(2_000.0, Some(again)),
            ];
            compute_figures(&SLO, Found::Rate(1_000.0), &steps).void
        };
        let void = found(Fault::Saturated).unwrap();
        assert!(void.contains("load-cpus"), "{void}");
        assert_eq!(found(Fault::TooSlow), None);
        let first = [step(1_000.0, Some(Fault::Late))];
        assert!(
            compute_figures(&SLO, Found::AtMost(1_000.0), &first)
                .void
                .is_some()
        );
    }

    #[test]
    fn what_failed_has_its_first_cause() {
        let fine = Step {
            error_percent: 0.0,
            lateness_p99_ns: Some(100_000),
            quantile_ns: Some(900_000),
            ..step(1_000.0, None)
        };
        let with = |change: fn(&mut Step), overload| {
            let mut step = fine.clone();
            change(&mut step);
            step.fault(&SLO, overload, false)
        };
        assert_eq!(with(|_| {}, false), None);
        assert_eq!(with(|_| {}, true), Some(Fault::Overload));
        let slow = |step: &mut Step| step.quantile_ns = Some(2_000_000);
        assert_eq!(with(slow, false), Some(Fault::TooSlow));
        let late = |step: &mut Step| {
            step.quantile_ns = Some(2_000_000);
            step.lateness_p99_ns = Some(1_000_000);
        };
        assert_eq!(with(late, true), Some(Fault::Late));
        let few = |step: &mut Step| step.quantile_ns = None;
        assert_eq!(with(few, false), Some(Fault::TooFewRequests));
        let errors = |step: &mut Step| step.error_percent = 1.1;
        assert_eq!(with(errors, false), Some(Fault::TooManyErrors));
    }

    #[test]
    fn one_disturbance_does_not_end_the_climb() {
        let mut tried = 0;
        let found = climb(&SLO, |rate| {
            tried += 1;
            Ok::<_, ()>(rate < 30_000.0 && tried != 2)
        });
        let Ok(Found::Rate(rate)) = found else {
            panic!("{found:?}");
        };
        assert!(rate > 28_000.0, "{rate}");
    }

    fn step(rate_per_sec: f64, fault: Option<Fault>) -> Step {
        Step {
            rate_per_sec,
            quantile_ns: Some(2_000_000),
            achieved_percent: 100.0,
            error_percent: 2.5,
            lateness_p99_ns: Some(900_000),
            cpu_percent: 7.0,
            fault,
        }
    }

    #[test]
    fn every_rate_that_was_tried_is_kept() {
        let steps = [step(1_000.0, None), step(2_000.0, Some(Fault::TooSlow))];
        let parsed = compute_figures(&SLO, Found::Rate(1_000.0), &steps);
        let text = &parsed.files[0].text;
        assert!(
            text.ends_with("2000.0,2000000,100.00,2.50,900000,7.0,false\n"),
            "{text}"
        );
        assert_eq!(parsed.metrics[0].metric, "slo_rate");
        let own = &parsed.warnings[0].what;
        assert!(own.contains("may be its own"), "{own}");
    }
}
