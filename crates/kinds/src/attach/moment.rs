//! A service at one moment, and its figures between two.

use super::query::Query;
use super::scrape::{Scrape, Scraper};
use super::usage::Reading;
use super::{Attach, DECIDING, ROOT};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

/// The threads of a service and its answers, read at one moment.
#[derive(Debug, Clone)]
pub struct Moment {
    usage: Reading,
    /// Answers by their addresses, or why there is none.
    scrapes: BTreeMap<String, Result<Scrape, String>>,
}

/// Figures by metric, and the reasons of those that are missing.
#[derive(Debug, Default)]
pub struct Figures {
    /// Figures that are there.
    pub values: BTreeMap<String, f64>,
    /// Reasons by metric.
    pub missing: BTreeMap<String, String>,
    /// Metrics among the missing ones that are above all that can be told.
    pub beyond: BTreeSet<String>,
}

impl Moment {
    /// Reads the threads, and asks for the metrics. An error where the service does not run.
    pub fn take(attach: &Attach, scraper: &Scraper) -> Result<Self, String> {
        let usage = Reading::take(Path::new(ROOT), attach.service()?)?;
        let mut scrapes = BTreeMap::new();
        for metric in &attach.metrics {
            let url = metric.prometheus.clone();
            scrapes.entry(url).or_insert_with_key(|url| {
                let mut scrape = scraper.ask(url)?;
                let of_url = attach.metrics.iter().filter(|m| m.prometheus == *url);
                let queries: Vec<_> = of_url.filter_map(|m| m.query.as_ref()).collect();
                scrape
                    .answer
                    .samples
                    .retain(|sample| queries.iter().any(|query| query.reads(&sample.name)));
                Ok(scrape)
            });
        }
        Ok(Moment { usage, scrapes })
    }

    /// The moment at which the threads were read.
    pub fn taken_at(&self) -> Instant {
        self.usage.taken_at()
    }

    /// The answer of an address, where there is one.
    pub fn answer(&self, url: &str) -> Option<&Scrape> {
        self.scrapes.get(url)?.as_ref().ok()
    }

    /// Why an address gave no answer.
    pub fn silence(&self) -> Option<&str> {
        let mut failed = self
            .scrapes
            .values()
            .filter_map(|scrape| scrape.as_ref().err());
        failed.next().map(String::as_str)
    }

    /// Figures from an earlier moment to this one.
    pub fn figures_since(&self, earlier: &Moment, attach: &Attach) -> Figures {
        let mut figures = Figures::default();
        match self.usage.figures_since(&earlier.usage) {
            Ok(found) => {
                let named = found.into_iter().map(|(def, v)| (def.name.to_owned(), v));
                figures.values.extend(named);
            }
            Err(why) => {
                figures.missing.insert(DECIDING[0].to_owned(), why);
            }
        }
        for metric in &attach.metrics {
            let of = |moment: &Moment| match moment.scrapes.get(&metric.prometheus) {
                Some(scrape) => scrape.clone(),
                None => Err("it was not asked".to_owned()),
            };
            let value = of(earlier).and_then(|first| metric.evaluate(&first, &of(self)?));
            let why = match value {
                Ok(value) if value.is_finite() => {
                    figures.values.insert(metric.name.clone(), value);
                    continue;
                }
                Ok(_) => {
                    figures.beyond.insert(metric.name.clone());
                    let query = metric.query.as_ref();
                    query.map(Query::is_beyond).unwrap_or_default()
                }
                Err(why) => why,
            };
            figures.missing.insert(metric.name.clone(), why);
        }
        figures
    }
}
