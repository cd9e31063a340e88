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
    pub fn measured(&self, value: f64) -> Measurement {
        Measurement {
            metric: self.name.to_owned(),
            unit: self.unit.to_owned(),
            better: self.better,
            value,
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
}
