//! Figures that a service shows of itself.

use super::query::Query;
use super::scrape::Scrape;
use crate::command::check_metric_name;
use load::Keys;
use model::{Better, Invalid, Measurement, Own, Scale};
use serde::{Deserialize, Serialize};

/// The key of a workload that has them.
pub const KEY: &str = "metric";
const EXAMPLE: &str = "name = \"answered\", better = \"higher\", prometheus = \
                       \"http://127.0.0.1:9090/metrics\", query = \"http_requests_total\"";

/// A metric that is in what a service shows of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScrapedMetric {
    /// Name, in snake_case.
    pub name: String,
    /// Direction in which it improves.
    pub better: Better,
    /// Unit; without one it is that of the name in the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Address that is asked.
    pub prometheus: String,
    /// Question to the answer.
    pub query: Option<Query>,
    /// Scale on which arms are compared.
    #[serde(default)]
    pub scale: Scale,
    /// Smallest difference that is of interest, in the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_effect: Option<f64>,
}

impl ScrapedMetric {
    /// From the keys of one `[[workload.metric]]`. Faults stay in the keys.
    pub fn read(keys: &mut Keys) -> Self {
        let name: Option<String> = keys.get("name");
        let better = keys.get("better");
        let unit = keys.get("unit");
        let prometheus: Option<String> = keys.get("prometheus");
        let written: Option<String> = keys.get("query");
        let (scale, smallest_effect) = (keys.get("scale"), keys.get("smallest-effect"));
        let query = written.and_then(|text| match Query::try_from(text) {
            Ok(query) => Some(query),
            Err(fault) => {
                keys.refuse(fault);
                None
            }
        });
        if name.is_none() || better.is_none() || prometheus.is_none() || query.is_none() {
            let what = "a metric of a service needs `name`, `better`, `prometheus` and `query`";
            keys.refuse(Invalid::new("", what).with_remedy(EXAMPLE));
        }
        ScrapedMetric {
            name: name.unwrap_or_default(),
            better: better.unwrap_or(Better::Neither),
            unit,
            prometheus: prometheus.unwrap_or_default(),
            query,
            scale: scale.unwrap_or_default(),
            smallest_effect,
        }
    }

    /// The fault of a metric that no trial could have, by its key.
    pub fn check(&self) -> Result<(), Invalid> {
        check_metric_name(&self.name)?;
        if self.better == Better::Neither {
            return Err(Invalid::new("better", "the metric needs a direction")
                .with_remedy("better = \"higher\", or better = \"lower\""));
        }
        match self.prometheus.strip_prefix("http://") {
            Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => Ok(()),
            _ => {
                let what = format!("`{}` is no address that can be asked", self.prometheus);
                Err(Invalid::new("prometheus", what).with_remedy(
                    "http://HOST:PORT/PATH as the target reaches it; there is no https",
                ))
            }
        }
    }

    /// Unit of the figure as far as it is known before there is an answer.
    pub fn likely_unit(&self) -> String {
        let usual = || self.query.as_ref().map_or("count", Query::likely_unit);
        let unit = self.unit.as_deref();
        unit.unwrap_or_else(usual).to_owned()
    }

    /// The figure between two answers. An error says why there is none.
    pub fn evaluate(&self, first: &Scrape, last: &Scrape) -> Result<f64, String> {
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let query = self.query.as_ref().ok_or("the metric asks nothing")?;
        query.evaluate(&first.answer, &last.answer, seconds.max(1e-9))
    }

    /// A value with all that is said of it.
    pub fn to_measurement(&self, value: f64, answer: Option<&Scrape>) -> Measurement {
        let unit = self.unit.clone().unwrap_or_else(|| {
            let is_rate = |query: &Query| answer.is_some_and(|a| query.is_rate(&a.answer));
            let usual = self
                .query
                .as_ref()
                .map(|query| query.usual_unit(is_rate(query)));
            usual.unwrap_or("count").to_owned()
        });
        Measurement {
            metric: self.name.clone(),
            unit,
            better: self.better,
            value,
            own: Some(Box::new(Own {
                quote: None,
                scale: self.scale,
                smallest_effect: self.smallest_effect,
            })),
        }
    }
}
