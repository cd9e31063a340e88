//! Configuration of an open-loop generator, whatever it speaks.

use super::address;
use super::shape::{Ramps, Shaped};
use load::pacing::{IntendedStarts, Share};
use load::recording::samples_needed;
use load::{Job, sys};
use model::{Arrivals, Load, Slo, Turns, format_duration_ns, format_rate};
use std::net::SocketAddr;
use std::ops::Range;

/// One trial of a load, without its requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Address of the server.
    pub address: SocketAddr,
    /// In all.
    pub rate_per_sec: f64,
    /// Look for the highest rate that holds this, from `rate_per_sec` on.
    pub search: Option<Slo>,
    /// Spread of the intended starts.
    pub arrivals: Arrivals,
    /// In all, shared out evenly between the threads.
    pub connections: u32,
    /// Number of the generator's threads.
    pub threads: u32,
    /// Time after which a request without a whole answer has failed.
    pub timeout_ns: u64,
    /// One for each thread in turn; empty: wherever the process may run.
    pub cpus: Vec<u32>,
    /// Polls the sockets without pause instead of sleeping.
    pub busy_poll: bool,
    /// Length of the warm-up, which is left out of the figures.
    pub warmup_ns: u64,
    /// Length of the measured window.
    pub duration_ns: u64,
    /// Ramps within the measured window.
    pub ramps: Ramps,
    /// Seed of the intended starts and of the requests.
    pub seed: u64,
    /// Turns of arms that change places while the load runs.
    pub turns: Option<Turns>,
}

impl Config {
    /// For requests to `address`.
    pub fn for_job(job: &Job, address: SocketAddr) -> Result<Self, String> {
        let client = job.workload.client.as_ref().ok_or("it has no client")?;
        // The experiment says by itself that the load goes to the target.
        let is_target = job.server.is_some_and(|server| server.ip() == address.ip());
        address::check(address, client.allow_remote || is_target)?;
        let (rate_per_sec, search) = match job.load {
            Load::RatePerSec(rate) => (rate, None),
            Load::MaxRate(slo) => (slo.from_per_sec, Some(slo)),
            load => return Err(format!("its load is a rate, not {load}; write \"1k/s\"")),
        };
        let cpus = match &client.load_cpus {
            Some(list) => model::choose_cpus(list, &sys::allowed_cpus())?,
            None => Vec::new(),
        };
        Ok(Config {
            address,
            rate_per_sec,
            search,
            arrivals: client.arrivals,
            connections: client.connections,
            threads: client.threads,
            timeout_ns: client.timeout_ns,
            cpus,
            busy_poll: client.busy_poll,
            warmup_ns: job.workload.warmup_ns,
            duration_ns: job.measured_ns(),
            ramps: Ramps::default(),
            seed: job.seed,
            turns: job.turns.clone(),
        })
    }

    /// Reason why the job is impossible, in words.
    pub fn fault(&self) -> Option<String> {
        if !(self.rate_per_sec.is_finite() && self.rate_per_sec > 0.0) {
            Some("the rate is not above 0".to_owned())
        } else if self.threads == 0 {
            Some("there are no threads".to_owned())
        } else if self.connections < self.threads {
            let (connections, threads) = (self.connections, self.threads);
            Some(format!(
                "{threads} threads have only {connections} connections"
            ))
        } else if self.timeout_ns == 0 {
            Some("the time-out is 0".to_owned())
        } else if self.duration_ns == 0 {
            Some("the measured window is empty".to_owned())
        } else {
            let search = self.search.as_ref().and_then(|slo| self.search_fault(slo));
            search.or_else(|| self.ramps.fault(self.duration_ns))
        }
    }

    /// Part of the window whose rate is constant, from its opening.
    pub fn constant_ns(&self) -> Range<u64> {
        self.ramps.up_ns..self.duration_ns.saturating_sub(self.ramps.down_ns)
    }

    /// The same with ramps in its window. A search compares constant rates and has none.
    pub fn with_ramps(self, ramps: Ramps) -> Self {
        let ramps = match self.search {
            Some(_) => Ramps::default(),
            None => ramps,
        };
        Config { ramps, ..self }
    }

    fn search_fault(&self, slo: &Slo) -> Option<String> {
        if slo.to_per_sec < slo.from_per_sec {
            return Some("the search ends below where it begins".to_owned());
        }
        let needed = samples_needed(slo.permille);
        let seconds = self.duration_ns as f64 / 1e9;
        // Poisson arrivals spread by their root: four of these below the mean there must be enough.
        let mean = (2.0 + (4.0 + needed as f64).sqrt()).powi(2);
        (slo.from_per_sec * seconds < mean).then(|| {
            format!(
                "{slo} needs {needed} requests in each window, and {} in {} may be fewer; begin the \
                 search at {} or more, or take a duration of {:.0}s or more",
                format_rate(slo.from_per_sec),
                format_duration_ns(self.duration_ns),
                format_rate(two_digits_above(mean / seconds)),
                (mean / slo.from_per_sec).ceil()
            )
        })
    }

    /// Each thread's share of the connections.
    pub fn shares(&self) -> impl Iterator<Item = Share> + use<> {
        let (groups, workers) = (self.threads, self.connections);
        (0..groups).map(move |index| Share {
            index,
            groups,
            workers,
        })
    }

    /// The schedule of one thread: each has the same part of the rate.
    pub fn schedule(&self, index: u32) -> Shaped {
        let share = Share {
            index,
            groups: self.threads,
            workers: self.threads,
        };
        let starts = IntendedStarts::new(self.arrivals, self.rate_per_sec, self.seed, share);
        Shaped::new(starts, self.ramps, self.warmup_ns, self.duration_ns)
    }

    /// The CPU of one thread.
    pub fn cpu(&self, index: u32) -> Option<u32> {
        let turn = index as usize % self.cpus.len().max(1);
        self.cpus.get(turn).copied()
    }

    /// After the window the load goes on until the last request that was intended
    /// inside is answered, at most this long.
    pub fn cool_down_ns(&self) -> u64 {
        self.timeout_ns
    }

    /// No latency can be longer than the load lasts.
    pub fn longest_ns(&self) -> u64 {
        self.warmup_ns
            .saturating_add(self.duration_ns)
            .saturating_add(self.cool_down_ns())
            .max(1_000_000_000)
    }
}

/// The next number of two digits and zeros, so that what is printed is not below the value.
fn two_digits_above(value: f64) -> f64 {
    let unit = 10_f64.powf(value.log10().floor() - 1.0);
    (value / unit).ceil() * unit
}

#[cfg(test)]
fn config(address: SocketAddr) -> Config {
    Config {
        address,
        rate_per_sec: 500.0,
        search: None,
        arrivals: Arrivals::Constant,
        connections: 4,
        threads: 2,
        timeout_ns: 2_000_000_000,
        cpus: Vec::new(),
        busy_poll: false,
        warmup_ns: 50_000_000,
        duration_ns: 400_000_000,
        ramps: Ramps::default(),
        seed: 1,
        turns: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> Config {
        config("127.0.0.1:1".parse().unwrap())
    }

    #[test]
    fn threads_take_turns_on_the_cpus() {
        let config = Config {
            cpus: vec![4, 7],
            ..usual()
        };
        assert_eq!(
            [0, 1, 2].map(|i| config.cpu(i)),
            [Some(4), Some(7), Some(4)]
        );
        assert_eq!(usual().cpu(3), None);
    }

    #[test]
    fn a_thread_without_a_connection_is_a_fault() {
        let config = Config {
            connections: 1,
            ..usual()
        };
        assert!(config.fault().unwrap().contains("only 1 connections"));
        assert_eq!(usual().fault(), None);
    }

    #[test]
    fn a_search_needs_enough_requests_for_its_quantile() {
        let slo = Slo {
            permille: 990,
            below_ns: 1_000_000,
            from_per_sec: 500.0,
            to_per_sec: 5_000.0,
        };
        let search = |slo| Config {
            search: Some(slo),
            ..usual()
        };
        let fault = search(slo).fault().unwrap();
        let says = "needs 1000 requests in each window, and 500/s in 400ms may be fewer; begin the \
                    search at 2.9k/s or more, or take a duration of 3s or more";
        assert!(fault.contains(says), "{fault}");
        let from_per_sec = 3_000.0;
        assert_eq!(
            search(Slo {
                from_per_sec,
                ..slo
            })
            .fault(),
            None
        );
        let from_per_sec = 9_000.0;
        let fault = search(Slo {
            from_per_sec,
            ..slo
        })
        .fault()
        .unwrap();
        assert!(fault.contains("ends below"), "{fault}");
    }

    #[test]
    fn connections_are_shared_out_evenly() {
        let config = Config {
            connections: 5,
            ..usual()
        };
        assert_eq!(
            config.shares().map(|s| s.size()).collect::<Vec<_>>(),
            [3, 2]
        );
    }
}
