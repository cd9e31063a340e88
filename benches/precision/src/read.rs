//! Figures of one trial, from what it kept.

use crate::demand::{BETWEEN_US, Demand};
use std::error::Error;

/// Jobs of one trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jobs {
    /// Median job over what was asked for, less 1.
    pub work_error: f64,
    pub late_p50_us: f64,
    pub late_p90_us: f64,
}

/// Jobs at the beginning of a log of rt-app that are left out: the warm-up of the other side.
const WARM_UP: usize = 50;

/// Jobs in the log of rt-app: idx perf run period start end rel_st slack c_duration c_period wu_lat.
/// It has no lateness of a thread that slept, which is what is left of the loop.
pub fn rt_app(log: &str, demand: Demand) -> Result<Jobs, Box<dyn Error>> {
    let lines = log.lines().filter(|line| !line.starts_with('#'));
    let (mut work, mut late) = (Vec::new(), Vec::new());
    for line in lines.skip(WARM_UP) {
        let fields: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        let fields = fields?;
        let at = |index: usize| fields.get(index).ok_or("a short line in the log of rt-app");
        let (run, period, wakeup) = (at(2)?, at(3)?, at(10)?);
        work.push(*run);
        late.push(match demand.periodic {
            true => *wakeup,
            false => period - run - f64::from(BETWEEN_US),
        });
    }
    jobs(demand, &work, &late)
}

fn jobs(demand: Demand, work_us: &[f64], late_us: &[f64]) -> Result<Jobs, Box<dyn Error>> {
    let of = |values, part| stats::summary::quantile(values, part).ok_or("a trial without jobs");
    Ok(Jobs {
        work_error: of(work_us, 0.5)? / f64::from(demand.work_us) - 1.0,
        late_p50_us: of(late_us, 0.5)?,
        late_p90_us: of(late_us, 0.9)?,
    })
}

/// Jobs of the only worker, by the intervals in `workers.csv`, which hold one each.
pub fn burnwait(
    workers: impl std::io::Read,
    demand: Demand,
    late_us: (f64, f64),
) -> Result<Jobs, Box<dyn Error>> {
    let mut reader = csv::Reader::from_reader(workers);
    let heads = reader.headers()?.clone();
    let column = |name: &str| {
        heads
            .iter()
            .position(|head| head == name)
            .ok_or(name.to_owned())
    };
    let (kops, cpu) = (column("kops")?, column("cpu_ns")?);
    let mut work = Vec::new();
    for line in reader.records() {
        let line = line?;
        let (kops, cpu_ns): (f64, f64) = (line[kops].parse()?, line[cpu].parse()?);
        if kops > 0.0 {
            work.push(f64::from(demand.work_us) * cpu_ns / (1000.0 * kops));
        }
    }
    let jobs = jobs(demand, &work, &[late_us.0])?;
    Ok(Jobs {
        late_p90_us: late_us.1,
        ..jobs
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Demand = Demand {
        work_us: 70,
        periodic: false,
    };

    #[test]
    fn jobs_of_rt_app_are_read_after_its_warm_up() {
        let mut log =
            "#idx perf run period start end rel_st slack c_duration c_period wu_lat\n".to_owned();
        for _ in 0..WARM_UP {
            log += "0 1 999 99999 1 2 3 0 70 0 999\n";
        }
        log += "0 1 77 10090 1 2 3 0 70 0 55\n";
        let found = rt_app(&log, SHORT).unwrap();
        let late = (found.late_p50_us, found.late_p90_us);
        assert_eq!((late, found.work_error), ((13.0, 13.0), 77.0 / 70.0 - 1.0));
        let periodic = Demand {
            periodic: true,
            ..SHORT
        };
        assert_eq!(rt_app(&log, periodic).unwrap().late_p50_us, 55.0);
    }

    #[test]
    fn jobs_of_burnwait_are_its_intervals_with_work() {
        let text = "worker,set,interval,kops,cpu_ns\n0,one,0,70,63000\n0,one,1,0,0\n0,one,2,140,154000\n\
                    0,one,3,70,63000\n";
        let found = burnwait(text.as_bytes(), SHORT, (4.0, 9.0)).unwrap();
        assert_eq!((found.late_p50_us, found.late_p90_us), (4.0, 9.0));
        assert!((found.work_error + 0.1).abs() < 1e-9, "{found:?}");
    }
}
