//! From what the workers recorded to metrics and histograms.

use super::worker::Record;
use super::{
    DEADLINE_MISSES, DEADLINE_OVERRUNS, JITTER, JOB_CPU, LATENESS, LATENESS_MEAN, MISS_PERCENT,
};
use load::figures::Figures;
use load::latency as m;
use load::overload::{achieved_percent, is_overload, percent};
use load::recording::Recorder;
use load::turn_values::InTurns;
use load::{Job, Parsed};
use model::{Severity, Turns};
use std::time::SystemTime;

/// Figures of each turn of arms that change places. Misses of deadlines are not counted by turn.
fn in_turns(turns: &Turns, records: Vec<Record>, opened: SystemTime) -> Result<Parsed, String> {
    let mut figures = InTurns::new(turns, opened);
    let mut all: [Vec<Recorder>; 4] = Default::default();
    for record in records {
        let of_record = [
            record.lateness,
            record.request,
            record.jitter,
            record.job_cpu,
        ];
        let pairs = all.iter_mut().zip(of_record);
        pairs.for_each(|(all, recorder)| all.push(recorder));
    }
    let logs = [
        ("lateness", LATENESS),
        ("request", m::REQUEST),
        ("jitter", JITTER),
        ("job-cpu", JOB_CPU),
    ];
    for ((name, quantiles), recorders) in logs.into_iter().zip(all) {
        figures.latency(name, quantiles, None, recorders)?;
    }
    Ok(figures.finish())
}

/// The figures of a load whose window opened at `opened`.
pub fn compute_figures(
    job: &Job,
    records: Vec<Record>,
    opened: SystemTime,
) -> Result<Parsed, String> {
    let workers = u32::try_from(records.len()).unwrap_or(u32::MAX);
    let due: u64 = records.iter().map(|record| record.due).sum();
    let in_time: u64 = records.iter().map(|record| record.in_time).sum();
    if due == 0 {
        let what = "no deadline was in the window; use a longer duration or a shorter period";
        return Err(what.to_owned());
    }
    if let Some(turns) = &job.turns {
        return in_turns(turns, records, opened);
    }
    let mut figures = Figures::new(opened);
    let each = |of: fn(&Record) -> &load::recording::Recorder| {
        records.iter().map(|record| of(record).clone()).collect()
    };
    let lateness = figures.latency("lateness", LATENESS, each(|record| &record.lateness))?;
    if let Some(mean_ns) = lateness.mean_ns() {
        figures.push(LATENESS_MEAN, mean_ns);
    }
    figures.latency("request", m::REQUEST, each(|record| &record.request))?;
    figures.latency("jitter", JITTER, each(|record| &record.jitter))?;
    let done = figures.latency("job-cpu", JOB_CPU, each(|record| &record.job_cpu))?;
    figures.push(MISS_PERCENT, percent(due - in_time, due));
    figures.push(DEADLINE_MISSES, (due - in_time) as f64);
    if let Some(overruns) = overruns(&records) {
        figures.push(DEADLINE_OVERRUNS, overruns as f64);
    }
    let seconds = job.workload.duration_ns as f64 / 1e9;
    let done = done.count().min(due);
    let achieved = achieved_percent(due, done);
    let overloaded = is_overload(due, done, workers);
    figures.push(m::OFFERED_PER_SEC, due as f64 / seconds);
    figures.push(m::ACHIEVED_PERCENT, achieved);
    figures.push(m::OVERLOADED, f64::from(u8::from(overloaded)));
    if overloaded {
        let what = format!(
            "overload: {achieved:.1} % of the jobs that were due were done, so lateness grows \
             with the length of the window"
        );
        let remedy = "ask for a shorter runtime, a longer period or fewer workers";
        figures.warn(Severity::Caution, what, remedy);
    }
    Ok(figures.finish())
}

/// Overruns of the process in the window; `None` where no worker was a deadline thread.
fn overruns(records: &[Record]) -> Option<u64> {
    let counts = || records.iter().filter_map(|record| record.overruns);
    let first = counts().map(|(at_first, _)| at_first).min()?;
    let last = counts().map(|(_, at_last)| at_last).max()?;
    Some(last - first)
}
