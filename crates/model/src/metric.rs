//! Metrics: what a number means, and the number.

use serde::{Deserialize, Serialize};

/// The definition of a metric, beside the code that measures it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricDef {
    /// snake_case, unique over all workloads that share its meaning.
    pub name: &'static str,
    /// `ns`, `1/s`, `s`, `count`, `%`, …
    pub unit: &'static str,
    /// Direction in which the metric improves.
    pub better: Better,
    /// One sentence.
    pub text: &'static str,
}

impl MetricDef {
    /// One that is never judged.
    pub const fn explaining(name: &'static str, unit: &'static str, text: &'static str) -> Self {
        MetricDef {
            name,
            unit,
            better: Better::Neither,
            text,
        }
    }

    /// A value of this metric, with its unit and its direction.
    pub fn to_measurement(&self, value: f64) -> Measurement {
        Measurement {
            metric: self.name.to_owned(),
            unit: self.unit.to_owned(),
            better: self.better,
            value,
            own: None,
        }
    }
}

/// Direction in which a metric improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More is better, as with rates.
    Higher,
    /// Less is better, as with latency.
    Lower,
    /// Explains, but is never judged.
    Neither,
}

/// One number of one trial. It never travels without its unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Name of the metric.
    pub metric: String,
    /// Unit of the value.
    pub unit: String,
    /// Direction in which the metric improves.
    pub better: Better,
    /// Value, in that unit.
    pub value: f64,
    /// Declaration of a metric that the experiment defines; `None` for the metrics of schedlab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Box<Own>>,
}

/// Knowledge of one number of a metric that an experiment defines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Own {
    /// Place that the figure was read from; `None` for a 0 without a unit, which is 0 of any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
    /// Scale on which the figures of two arms are compared.
    #[serde(default)]
    pub scale: Scale,
    /// Smallest difference that is of interest, in the unit of the metric; `None` is a share of its level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_effect: Option<f64>,
}

/// Scale of a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Arm over baseline, as long as all figures are above 0.
    #[default]
    Ratio,
    /// Arm minus baseline.
    Difference,
}

/// Place of a figure in a text, with the unit that it became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// Unit of the metric; `None` where no unit stands beside the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The figure with its line, as messages quote them.
    pub line: String,
}

impl Quote {
    /// Why another figure cannot be one of the same metric; `None` where it can.
    pub fn find_conflict(&self, other: &Quote) -> Option<String> {
        let [one, another] = [&self.line, &other.line].map(|line| line.trim_end_matches(','));
        let what = match (&self.unit, &other.unit) {
            (one, another) if one == another => return None,
            (Some(_), Some(_)) => "the units of two figures cannot be converted into each other",
            _ => "a unit stands beside one figure and beside another none",
        };
        Some(format!("{what}: {one}; {another}"))
    }
}
