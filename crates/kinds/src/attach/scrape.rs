//! A service's own figures, asked for over HTTP.

use super::exposition::Exposition;
use std::time::{Duration, Instant};

/// Time that an answer may take; a service that is slower has no figures in that window.
const LIMIT: Duration = Duration::from_secs(2);
/// Most bytes of an answer.
const MOST_BYTES: u64 = 32 << 20;

/// An answer, and the moment at which it was given: the middle of the time that it took.
#[derive(Debug, Clone)]
pub struct Scrape {
    /// The middle between question and answer.
    pub at: Instant,
    /// The figures.
    pub answer: Exposition,
}

/// One who asks, with a connection that stays open.
#[derive(Debug, Clone)]
pub struct Scraper(ureq::Agent);

impl Default for Scraper {
    fn default() -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(LIMIT))
            .max_redirects(0)
            // The service is asked, and nobody between.
            .proxy(None)
            .build();
        Scraper(config.into())
    }
}

impl Scraper {
    /// The figures as they are now. An error says why there are none.
    pub fn ask(&self, url: &str) -> Result<Scrape, String> {
        let asked = Instant::now();
        let failed = |why: ureq::Error| match why {
            ureq::Error::Timeout(_) => format!("{url} gave no answer within {} s", LIMIT.as_secs()),
            other => format!("{url}: {other}"),
        };
        let mut answer = self.0.get(url).call().map_err(failed)?;
        let body = answer.body_mut().with_config().limit(MOST_BYTES);
        let text = body.read_to_string().map_err(failed)?;
        let at = asked + asked.elapsed() / 2;
        let answer = Exposition::parse(&text)
            .map_err(|why| format!("{url} does not answer in Prometheus' text format: {why}"))?;
        Ok(Scrape { at, answer })
    }
}
