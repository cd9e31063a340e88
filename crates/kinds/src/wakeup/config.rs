//! Configuration of the generator, and the shape of the load that follows from it.

use super::Wakeup;
use load::Job;
use load::pacing::{IntendedStarts, Share};
use model::{Load, Turns};

/// One trial of the load.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub params: Wakeup,
    /// In all, shared out evenly between the message threads.
    pub workers: u32,
    /// In all; `None`: closed loop.
    pub rate_per_sec: Option<f64>,
    /// Extra matrix work in each request.
    pub handicap_percent: f64,
    pub warmup_ns: u64,
    pub duration_ns: u64,
    pub seed: u64,
    /// Turns of arms that change places while the load runs.
    pub turns: Option<Turns>,
    /// Extra work of each of these arms, in percent.
    pub handicaps: Vec<f64>,
}

impl Config {
    pub fn for_job(params: &Wakeup, job: &Job) -> Self {
        let workers = match job.load.resolve_count(job.cpus) {
            Some(count) => u32::try_from(count).unwrap_or(u32::MAX),
            None => params.workers.unwrap_or(job.cpus),
        };
        let rate_per_sec = match job.load {
            Load::RatePerSec(rate) => Some(rate),
            _ => params.rate_per_sec,
        };
        Config {
            params: params.clone(),
            workers: workers.max(1),
            rate_per_sec,
            handicap_percent: job.handicap_percent,
            warmup_ns: job.workload.warmup_ns,
            duration_ns: job.measured_ns(),
            seed: job.seed,
            turns: job.turns.clone(),
            handicaps: job.handicaps.clone(),
        }
    }

    /// Reason why the job is impossible, in words.
    pub fn fault(&self) -> Option<String> {
        let rate_is_bad = |rate: f64| !(rate.is_finite() && rate > 0.0);
        if self.workers == 0 {
            Some("there are no workers".to_owned())
        } else if self.duration_ns == 0 {
            Some("the measured window is empty".to_owned())
        } else if self.rate_per_sec.is_some_and(rate_is_bad) {
            Some("the rate is not above 0".to_owned())
        } else {
            None
        }
    }

    /// Each message thread's share of the workers and of the rate: as even as can be, and none
    /// without workers.
    pub fn shares(&self) -> impl Iterator<Item = Share> + use<> {
        let workers = self.workers;
        let groups = self.params.message_threads.clamp(1, workers.max(1));
        (0..groups).map(move |index| Share {
            index,
            groups,
            workers,
        })
    }

    /// The open-loop schedule of one message thread; `None` in a closed loop.
    pub fn schedule(&self, share: Share) -> Option<IntendedStarts> {
        let rate = self.rate_per_sec?;
        let arrivals = self.params.arrivals;
        Some(IntendedStarts::new(arrivals, rate, self.seed, share))
    }

    /// No latency can be longer than the process lives, with room to end.
    pub fn longest_ns(&self) -> u64 {
        (self.warmup_ns.saturating_add(self.duration_ns))
            .saturating_mul(2)
            .max(1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(message_threads: u32, workers: u32) -> Vec<u32> {
        let mut config = crate::wakeup::small_config();
        config.workers = workers;
        config.params.message_threads = message_threads;
        config.shares().map(|s| s.size()).collect()
    }

    #[test]
    fn workers_are_shared_out_evenly() {
        assert_eq!(sizes(3, 8), [3, 3, 2]);
    }

    #[test]
    fn no_message_thread_is_without_workers() {
        assert_eq!(sizes(9, 2), [1, 1]);
        assert_eq!(sizes(0, 2), [2]);
    }

    #[test]
    fn a_load_in_percent_means_workers_and_a_rate_means_an_open_loop() {
        let params = Wakeup {
            workers: Some(3),
            ..crate::wakeup::small_config().params
        };
        let at = |load| {
            let job = Job {
                load,
                seed: 9,
                handicap_percent: 1.5,
                ..::testing::job(crate::wakeup::KIND.with_params(&params))
            };
            Config::for_job(&params, &job)
        };
        let percent = at(Load::PercentOfCpus(200.0));
        assert_eq!((percent.workers, percent.rate_per_sec), (4, None));
        assert_eq!((percent.seed, percent.handicap_percent), (9, 1.5));
        let rate = at(Load::RatePerSec(100.0));
        assert_eq!((rate.workers, rate.rate_per_sec), (3, Some(100.0)));
    }

    #[test]
    fn a_rate_of_zero_is_refused() {
        let config = Config {
            rate_per_sec: Some(0.0),
            ..crate::wakeup::small_config()
        };
        assert!(config.fault().is_some());
    }
}
