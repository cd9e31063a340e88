//! The highest rate that holds a service level, within one trial: the same server,
//! one load after the other, each with its own warm-up and window.
//!
//! The rate is doubled from where the search begins until it does not hold, then the
//! gap is halved (on a log scale) until it is [`PRECISION`] wide. A rate does not
//! hold only when it failed twice in a row: one disturbance does not end the climb.

use super::config::Config;
use super::figures::{self, Total};
use super::metrics as own;
use crate::Parsed;
use model::{Severity, Slo, TrialFile, Warning, format_duration_ns, format_rate};
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
    pub held: bool,
}

impl Step {
    pub fn of(config: &Config, slo: &Slo, total: Total) -> Result<Self, String> {
        let achieved_percent = total.achieved_percent();
        let error_percent = total.error_percent();
        let overloaded = figures::is_overload(config, &total);
        let cpu_percent = 100.0 * total.cpu_ns as f64 / config.duration_ns as f64;
        let quantile_ns = figures::merged(total.request)?.quantile_ns(slo.permille);
        let lateness_p99_ns = figures::merged(total.lateness)?.quantile_ns(990);
        let below = quantile_ns.is_some_and(|ns| ns < slo.below_ns);
        Ok(Step {
            rate_per_sec: config.rate_per_sec,
            quantile_ns,
            achieved_percent,
            error_percent,
            lateness_p99_ns,
            cpu_percent,
            held: below && !overloaded && error_percent <= figures::ERRORS_ALLOWED_PERCENT,
        })
    }
}

/// Where a search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Found {
    Rate(f64),
    /// Not even the first rate holds.
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

/// The figures of a search.
pub fn parsed(slo: &Slo, found: Found, steps: &[Step]) -> Parsed {
    let rate_per_sec = found.rate_per_sec();
    let mut parsed = Parsed::default();
    parsed.metrics.push(own::SLO_RATE.measured(rate_per_sec));
    let best = steps.iter().rfind(|step| step.rate_per_sec == rate_per_sec);
    if let Some(best) = best {
        let cpu = own::GENERATOR_CPU.measured(best.cpu_percent);
        parsed.metrics.push(cpu);
        let late = best.lateness_p99_ns;
        let late = late.map(|ns| own::LATENESS_P99.measured(ns as f64));
        parsed.metrics.extend(late);
    }
    parsed.warnings.extend(bound(slo, found));
    parsed.warnings.extend(lateness(slo, steps));
    parsed.files.push(TrialFile {
        name: "search.csv".to_owned(),
        text: table(steps),
    });
    parsed
}

/// A rate that is only a bound.
fn bound(slo: &Slo, found: Found) -> Option<Warning> {
    let (what, remedy) = match found {
        Found::Rate(_) => return None,
        Found::AtMost(rate) => (
            format!(
                "{slo} does not even hold at {}, where the search begins: the highest rate is lower than the one given",
                format_rate(rate)
            ),
            "begin lower with `from`, or ask for less",
        ),
        Found::AtLeast(rate) => (
            format!(
                "{slo} still holds at {}, where the search ends: the highest rate is higher than the one given",
                format_rate(rate)
            ),
            "go on further with `to`",
        ),
    };
    Some(warning(what, remedy))
}

fn lateness(slo: &Slo, steps: &[Step]) -> Option<Warning> {
    let limit_ns = LATE_PART * slo.below_ns as f64;
    let late = |step: &&Step| step.lateness_p99_ns.is_some_and(|ns| ns as f64 > limit_ns);
    let step = steps.iter().filter(|step| !step.held).find(late)?;
    let what = format!(
        "the generator itself was {} late in one of 100 requests at {}: the rate that was found may be its own",
        format_duration_ns(step.lateness_p99_ns.unwrap_or_default()),
        format_rate(step.rate_per_sec)
    );
    let remedy = "give the generator CPUs of its own with load-cpus, or more threads";
    Some(warning(what, remedy))
}

fn warning(what: String, remedy: &str) -> Warning {
    Warning {
        severity: Severity::Serious,
        what,
        remedy: remedy.to_owned(),
    }
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
            step.held
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
    fn a_level_that_never_or_always_holds_gives_a_bound_and_says_so() {
        assert_eq!(search(10.0), (Found::AtMost(1_000.0), 2));
        assert_eq!(search(1e9).0, Found::AtLeast(100_000.0));
        let said = |found| parsed(&SLO, found, &[]).warnings[0].what.clone();
        assert!(said(Found::AtMost(1_000.0)).contains("lower than"));
        assert!(said(Found::AtLeast(100_000.0)).contains("higher than"));
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

    #[test]
    fn every_rate_that_was_tried_is_kept() {
        let step = Step {
            rate_per_sec: 1_000.0,
            quantile_ns: Some(2_000_000),
            achieved_percent: 100.0,
            error_percent: 0.0,
            lateness_p99_ns: Some(900_000),
            cpu_percent: 7.0,
            held: false,
        };
        let parsed = parsed(&SLO, Found::AtMost(1_000.0), &[step]);
        let text = &parsed.files[0].text;
        assert!(
            text.ends_with("1000.0,2000000,100.00,0.00,900000,7.0,false\n"),
            "{text}"
        );
        assert_eq!(parsed.metrics[0].metric, "slo_rate");
        let own = &parsed.warnings[1].what;
        assert!(own.contains("may be its own"), "{own}");
    }
}
