//! Rails of a service in use: `errors > 5/s`, `answer_p99 > 250ms for 5s`.

use super::Attach;
use super::metric::ScrapedMetric;
use load::units::parse_duration;
use model::print::unit::{find_conversion, split_number};
use model::{Invalid, format_duration_ns, truncate_to_u64};
use serde::{Deserialize, Serialize};

/// The key of a workload that has them.
pub const KEY: &str = "stop-if";
const EXAMPLE: &str = "stop-if = [\"answer_p99 > 250ms for 5s\"]";
/// Longest time for which a rail may have to hold.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A condition that ends the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rail {
    written: String,
    metric: String,
    is_above: bool,
    bound: f64,
    /// Unit behind the bound; without one it is that of the metric.
    unit: Option<String>,
    /// Time for which it must hold.
    for_ns: u64,
}

impl From<Rail> for String {
    fn from(rail: Rail) -> Self {
        rail.written
    }
}

impl TryFrom<String> for Rail {
    type Error = Invalid;

    fn try_from(written: String) -> Result<Self, Invalid> {
        let wrong = |why: &str| {
            let what = format!("`{written}` is no rail: {why}");
            Invalid::new("", what).with_remedy(EXAMPLE)
        };
        let at = written.find(['<', '>']);
        let at = at.ok_or_else(|| wrong("it compares nothing; write METRIC > BOUND"))?;
        let (metric, rest) = (written[..at].trim(), &written[at + 1..]);
        let (bound, time) = match rest.split_once(" for ") {
            Some((bound, time)) => (bound, Some(time)),
            None => (rest, None),
        };
        let for_ns = time.map_or(Ok(0), |time| parse_duration(time.trim()));
        let for_ns = for_ns.map_err(|why| wrong(&why))?;
        if for_ns > LONGEST_NS {
            return Err(wrong("an hour is the longest time to wait"));
        }
        let (bound, unit) = split_number(bound)
            .ok_or_else(|| wrong(&format!("`{}` is no number with a unit", bound.trim())))?;
        Ok(Rail {
            metric: metric.to_owned(),
            is_above: written[at..].starts_with('>'),
            bound,
            unit: unit.map(str::to_owned),
            for_ns,
            written,
        })
    }
}

impl Rail {
    /// Refuses a rail that looks at no metric of the service, or at another unit than it has.
    pub fn check(&self, attach: &Attach) -> Result<(), Invalid> {
        let Some(unit) = attach.unit_of(&self.metric) else {
            let known: Vec<&str> = attach.metric_names().collect();
            let what = format!(
                "`{}`: the service has no metric `{}`",
                self.written, self.metric
            );
            let remedy = match model::find_nearest(&self.metric, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has {}", known.join(", ")),
            };
            return Err(Invalid::new("", what).with_remedy(remedy));
        };
        self.find_bound(&unit).map(drop).map_err(|why| {
            let what = format!("`{}`: {why}", self.written);
            let remedy = format!(
                "write the bound in {unit}, or give the metric another `unit`: {} {} {}",
                self.metric,
                if self.is_above { '>' } else { '<' },
                self.bound
            );
            Invalid::new("", what).with_remedy(remedy)
        })
    }

    /// The bound in the unit of the metric. An error says why it has none there.
    fn find_bound(&self, unit: &str) -> Result<f64, String> {
        let Some(written) = &self.unit else {
            return Ok(self.bound);
        };
        match find_conversion(written, Some(unit)) {
            Ok((factor, _)) => Ok(factor.convert(self.bound)),
            Err(_) => Err(format!(
                "the bound is in {written}, and `{}` is in {unit}",
                self.metric
            )),
        }
    }

    /// Does a figure in this unit break it?
    pub fn is_broken_by(&self, value: f64, unit: &str) -> bool {
        match (self.find_bound(unit), self.is_above) {
            (Ok(bound), true) => value > bound,
            (Ok(bound), false) => value < bound,
            (Err(_), _) => false,
        }
    }

    /// Name of the metric that it looks at.
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// The rail as it was written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Time for which it must hold, in nanoseconds.
    pub fn for_ns(&self) -> u64 {
        self.for_ns
    }
}

impl Attach {
    /// Names of all metrics of the service.
    fn metric_names(&self) -> impl Iterator<Item = &str> {
        let own = self.metrics.iter().map(|metric| metric.name.as_str());
        own.chain(super::METRICS.iter().map(|def| def.name))
    }

    /// The unit of a metric, as far as it is known before the service was asked.
    pub(super) fn unit_of(&self, name: &str) -> Option<String> {
        let own = self.metrics.iter().find(|metric| metric.name == name);
        let of_kernel = || super::METRICS.iter().find(|def| def.name == name);
        match own {
            Some(metric) => Some(metric.likely_unit()),
            None => of_kernel().map(|def| def.unit.to_owned()),
        }
    }

    /// The same service with no more metrics than rails look at.
    pub(super) fn narrowed_to_rails(&self) -> Attach {
        let is_looked_at =
            |metric: &&ScrapedMetric| self.rails.iter().any(|rail| rail.metric == metric.name);
        Attach {
            metrics: self.metrics.iter().filter(is_looked_at).cloned().collect(),
            ..self.clone()
        }
    }
}

/// A figure for people.
pub fn write_figure(value: f64, unit: &str) -> String {
    if value.is_infinite() {
        return "more than the largest bucket".to_owned();
    }
    match find_conversion(unit, Some("ns")) {
        Ok((factor, _)) => format_duration_ns(truncate_to_u64(factor.convert(value))),
        Err(_) => format!("{} {unit}", (value * 1e3).round() / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rail(text: &str) -> Result<Rail, String> {
        Rail::try_from(text.to_owned()).map_err(|fault| fault.what)
    }

    #[test]
    fn a_bound_is_compared_in_the_unit_of_the_metric() {
        let p99 = rail("answer_p99 > 250ms for 5s").unwrap();
        assert_eq!((p99.metric(), p99.for_ns()), ("answer_p99", 5_000_000_000));
        assert!(p99.is_broken_by(0.251, "s") && !p99.is_broken_by(0.25, "s"));
        assert!(p99.is_broken_by(250_000_001.0, "ns"));
        let least = rail("answered < 5/s").unwrap();
        assert!(least.is_broken_by(4.0, "1/s") && !least.is_broken_by(5.0, "1/s"));
        let bare = rail("error_percent>1").unwrap();
        assert!(bare.is_broken_by(1.1, "%") && bare.is_broken_by(1.1, "count"));
        assert_eq!(String::from(bare), "error_percent>1");
    }

    #[test]
    fn what_is_no_rail_is_said_with_its_reason() {
        for (text, why) in [
            ("answer_p99 = 5ms", "it compares nothing"),
            ("a > ", "is no number with a unit"),
            ("a > soon", "is no number with a unit"),
            ("a > 5ms for long", "is not a duration"),
            ("a > 5ms for 5", "has no unit"),
            ("a > 5ms for 2h", "an hour is the longest"),
        ] {
            let error = rail(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn figures_are_written_as_people_read_them() {
        assert_eq!(write_figure(0.3125, "s"), "312.5ms");
        assert_eq!(write_figure(4.25, "1/s"), "4.25 1/s");
        assert_eq!(write_figure(1.5, "%"), "1.5 %");
        assert!(write_figure(f64::INFINITY, "s").contains("largest bucket"));
    }
}
