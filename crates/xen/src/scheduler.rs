//! Schedulers of the hypervisor and their parameters, as xl(1) sets and prints them.

use crate::toolstack::{XenError, run_xl};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// A scheduler of the hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// Credits that are burned and given out by weight.
    Credit,
    /// The successor of credit, and the usual one.
    Credit2,
    /// Real-time deferrable servers: a budget in each period.
    Rtds,
    /// One virtual CPU on each physical one, for good.
    Null,
}

/// All of them, as they are named.
pub const SCHEDULERS: [Scheduler; 4] = [
    Scheduler::Credit,
    Scheduler::Credit2,
    Scheduler::Rtds,
    Scheduler::Null,
];

/// Weights that a guest can have, where the scheduler has them (xl(1)); 256 is the usual one.
pub const WEIGHTS: RangeInclusive<u32> = 1..=65_535;

impl Scheduler {
    /// Keeps a guest to so many percent of a CPU, where the scheduler has caps.
    pub fn cap_domain(self, domain: &str, percent: u32) -> Result<(), XenError> {
        match self.command().filter(|_| self.has_weights()) {
            Some(command) => run_xl(&[command, "-d", domain, "-c", &percent.to_string()]).map(drop),
            None => Ok(()),
        }
    }

    /// Name, as xl(1) has it.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Credit => "credit",
            Scheduler::Credit2 => "credit2",
            Scheduler::Rtds => "rtds",
            Scheduler::Null => "null",
        }
    }

    /// Do guests have weights and caps under it?
    pub fn has_weights(self) -> bool {
        matches!(self, Scheduler::Credit | Scheduler::Credit2)
    }

    /// The command of xl that sets its parameters; the null scheduler has none.
    fn command(self) -> Option<&'static str> {
        match self {
            Scheduler::Credit => Some("sched-credit"),
            Scheduler::Credit2 => Some("sched-credit2"),
            Scheduler::Rtds => Some("sched-rtds"),
            Scheduler::Null => None,
        }
    }

    /// Name, weight and cap of each domain in a pool, as the scheduler has them; none where it
    /// has no weights.
    pub fn of_guests(self, pool: &str) -> Result<Vec<(String, u32, u32)>, XenError> {
        match self.command().filter(|_| self.has_weights()) {
            Some(command) => Ok(weights(&run_xl(&[command, "-p", pool])?)),
            None => Ok(Vec::new()),
        }
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scheduler {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = |scheduler: &Scheduler| scheduler.name() == text;
        SCHEDULERS.into_iter().find(named).ok_or_else(|| {
            let names = SCHEDULERS.map(Scheduler::name).join(", ");
            format!("`{text}` is no scheduler of Xen: {names}")
        })
    }
}

/// Parameters of a pool's scheduler. `None` is left as the hypervisor has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Time slice in milliseconds, of credit.
    pub timeslice_ms: Option<u32>,
    /// Shortest time that a virtual CPU runs, in microseconds; 0 is none.
    pub ratelimit_us: Option<u32>,
}

impl Parameters {
    /// Refuses parameters that the scheduler does not have, or not in this range
    /// (xl(1); xen/include/public/sysctl.h).
    pub fn check(&self, scheduler: Scheduler) -> Result<(), String> {
        if self.timeslice_ms.is_some() && scheduler != Scheduler::Credit {
            return Err(format!("{scheduler} has no timeslice; credit has"));
        }
        if self.ratelimit_us.is_some() && !scheduler.has_weights() {
            return Err(format!(
                "{scheduler} has no ratelimit; credit and credit2 have"
            ));
        }
        if self
            .timeslice_ms
            .is_some_and(|ms| !(1..=1000).contains(&ms))
        {
            return Err("a timeslice is 1ms to 1s".to_owned());
        }
        let in_range = |us: u32| us == 0 || (100..=500_000).contains(&us);
        if self.ratelimit_us.is_some_and(|us| !in_range(us)) {
            return Err("a ratelimit is 100us to 500ms, or 0us for none".to_owned());
        }
        let longest = self.timeslice_ms.map(|ms| ms.saturating_mul(1000));
        match (longest, self.ratelimit_us) {
            (Some(slice), Some(limit)) if limit > slice => {
                Err("the ratelimit is longer than the timeslice".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// True if nothing is to be set.
    pub fn is_empty(&self) -> bool {
        *self == Parameters::default()
    }

    /// Does a pool that has the others not have these? One that is not set differs from nothing.
    pub fn is_different(&self, others: Parameters) -> bool {
        let differs = |wanted: Option<u32>, found: Option<u32>| wanted.is_some() && wanted != found;
        differs(self.timeslice_ms, others.timeslice_ms)
            || differs(self.ratelimit_us, others.ratelimit_us)
    }

    /// Sets them for a pool.
    pub fn set_for_pool(&self, scheduler: Scheduler, pool: &str) -> Result<(), XenError> {
        let Some(command) = scheduler.command().filter(|_| !self.is_empty()) else {
            return Ok(());
        };
        let slice = self.timeslice_ms.map(|ms| ms.to_string());
        let limit = self.ratelimit_us.map(|us| us.to_string());
        let mut args = vec![command, "-s", "-p", pool];
        if let Some(slice) = &slice {
            args.extend(["-t", slice]);
        }
        if let Some(limit) = &limit {
            args.extend(["-r", limit]);
        }
        run_xl(&args).map(drop)
    }

    /// The parameters that a pool has now.
    pub fn of_pool(scheduler: Scheduler, pool: &str) -> Result<Self, XenError> {
        match scheduler.command().filter(|_| scheduler.has_weights()) {
            Some(command) => Ok(parse(&run_xl(&[command, "-s", "-p", pool])?)),
            None => Ok(Parameters::default()),
        }
    }
}

/// `Cpupool schedlab: tslice=30ms ratelimit=1000us migration-delay=0us`.
fn parse(text: &str) -> Parameters {
    let value = |name: &str, unit: &str| {
        let mut words = text.split_whitespace();
        let word = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
        word.strip_suffix(unit)?.parse().ok()
    };
    Parameters {
        timeslice_ms: value("tslice", "ms"),
        ratelimit_us: value("ratelimit", "us"),
    }
}

/// Reservation of a virtual CPU under rtds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// CPU time that it is guaranteed in each period, in microseconds.
    pub budget_us: u64,
    /// Period in microseconds.
    pub period_us: u64,
    /// Right to more where nobody else wants it.
    pub extratime: bool,
}

impl Reservation {
    /// Sets it for all virtual CPUs of a domain in a pool of rtds. With Xen 4.17 a domain of
    /// another pool than `Pool-0` has the usual one, whatever `budget` and `period` its
    /// configuration has.
    pub fn set_for_domain(&self, domain: &str) -> Result<(), XenError> {
        let numbers = [self.period_us, self.budget_us].map(|us| us.to_string());
        let [period, budget] = &numbers;
        let extratime = if self.extratime { "1" } else { "0" };
        let args = [
            "sched-rtds",
            "-d",
            domain,
            "-v",
            "all",
            "-p",
            period,
            "-b",
            budget,
            "-e",
            extratime,
        ];
        run_xl(&args).map(drop)
    }
}

/// Reservation of each virtual CPU in all pools of rtds, with the name of its domain.
pub fn list_reservations() -> Result<Vec<(String, Reservation)>, XenError> {
    Ok(parse_reservations(&run_xl(&["sched-rtds", "-v", "all"])?))
}

/// Rows such as `schedlab-1    1    0    10000    4000    yes`: the period, then the budget.
fn parse_reservations(text: &str) -> Vec<(String, Reservation)> {
    let of_row = |row: Vec<&str>| match row[..] {
        [name, _, _, period, budget, extratime] => Some((
            name.to_owned(),
            Reservation {
                budget_us: budget.parse().ok()?,
                period_us: period.parse().ok()?,
                extratime: extratime == "yes",
            },
        )),
        _ => None,
    };
    crate::table::split_rows(text).filter_map(of_row).collect()
}

/// Rows such as `schedlab-1    1    256    0`.
fn weights(text: &str) -> Vec<(String, u32, u32)> {
    let of_row = |row: Vec<&str>| match row[..] {
        [name, _, weight, cap] => Some((name.to_owned(), weight.parse().ok()?, cap.parse().ok()?)),
        _ => None,
    };
    crate::table::split_rows(text).filter_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_xl_prints_them() {
        let credit = "Cpupool schedlab: tslice=30ms ratelimit=1000us migration-delay=0us\n";
        assert_eq!(
            parse(credit),
            Parameters {
                timeslice_ms: Some(30),
                ratelimit_us: Some(1000)
            }
        );
        assert_eq!(
            parse("Cpupool Pool-0: ratelimit=1000us\n").ratelimit_us,
            Some(1000)
        );
        assert!(parse("Cpupool Pool-0: [sched params unavailable]\n").is_empty());
    }

    #[test]
    fn parameters_that_are_not_set_differ_from_nothing() {
        let of = |timeslice_ms, ratelimit_us| Parameters {
            timeslice_ms,
            ratelimit_us,
        };
        assert!(!of(None, None).is_different(of(Some(30), Some(1000))));
        assert!(!of(Some(30), None).is_different(of(Some(30), Some(1000))));
        assert!(of(Some(5), None).is_different(of(Some(30), Some(1000))));
        assert!(of(None, Some(0)).is_different(of(Some(30), None)));
    }

    #[test]
    fn a_guests_weight_is_in_its_row() {
        let text = "Cpupool schedlab: tslice=30ms ratelimit=1000us migration-delay=0us\n\
                    Name                                ID Weight  Cap\n\
                    schedlab-1                           1    512   50\n";
        assert_eq!(weights(text), [("schedlab-1".to_owned(), 512, 50)]);
    }

    #[test]
    fn a_reservation_is_in_the_row_of_each_virtual_cpu_of_every_pool() {
        let heading = "Name                ID VCPU    Period    Budget  Extratime\n";
        let text = [
            "Cpupool Pool-0: sched=RTDS\n",
            heading,
            "Domain-0             0    0     10000      4000        yes\n",
            "Cpupool schedlab: sched=RTDS\n",
            heading,
            "schedlab-worker-0    3    0     20000      5000         no\n",
        ];
        let found = parse_reservations(&text.concat());
        let reservation = |budget_us, period_us, extratime| Reservation {
            budget_us,
            period_us,
            extratime,
        };
        let dom0 = ("Domain-0".to_owned(), reservation(4000, 10_000, true));
        let worker = (
            "schedlab-worker-0".to_owned(),
            reservation(5000, 20_000, false),
        );
        assert_eq!(found, [dom0, worker]);
    }

    #[test]
    fn a_parameter_belongs_to_its_scheduler() {
        let slice = Parameters {
            timeslice_ms: Some(5),
            ratelimit_us: None,
        };
        assert_eq!(slice.check(Scheduler::Credit), Ok(()));
        assert!(
            slice
                .check(Scheduler::Credit2)
                .unwrap_err()
                .contains("no timeslice")
        );
        let long = Parameters {
            ratelimit_us: Some(6000),
            ..slice
        };
        assert!(
            long.check(Scheduler::Credit)
                .unwrap_err()
                .contains("longer")
        );
        assert!(
            "moon"
                .parse::<Scheduler>()
                .unwrap_err()
                .contains("credit, credit2")
        );
    }
}
