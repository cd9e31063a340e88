//! From what the workers did to metrics, a table of the sets and a table of all workers.

use super::baseline::Want;
use super::guests::{AsMade, OfGuest, Seen};
use super::metrics::{
    CPU_PERCENT, FAIRNESS, LATENCY_COST, LATENESS, LONGEST_WAIT, MISSED, SHORTFALL, SPREAD,
    STARVED, STEAL, WORK_PER_SEC, WORST_INTERVAL, WORST_WORKER,
};
use super::sets::Set;
use super::worker::{Interval, Record, Standing};
use super::{BurnWait, entitlement};
use load::figures::Figures;
use load::recording::Recording;
use load::turn_values::InTurns;
use load::{GuestsIn, Job, Parsed};
use model::{MetricDef, Severity, TrialFile, Turns};
use std::time::SystemTime;

/// Events alone that are due at once are less late than a clock tells.
const LEAST_LATE_NS: u64 = 1_000;
/// Part of the CPUs of a pool that others may use without a warning.
const SMALL_PART: f64 = 0.02;
const NOTHING_ENDED: &str = "no event ended in the window; use a longer duration";

/// The figures of a load whose window opened at `opened`. Records may be in any order; guests are
/// in that of their records.
pub fn compute_figures(
    load: &BurnWait,
    job: &Job,
    records: Vec<Record>,
    opened: SystemTime,
    guests: Option<Seen>,
) -> Result<Parsed, String> {
    let (records, guests) = in_order(records, guests);
    match &job.turns {
        Some(turns) => in_turns(load, job, turns, &records, opened),
        None => of_window(load, job, &records, opened, guests.as_ref()),
    }
}

/// Workers by their sets, and by their numbers in these, whichever started or ended first: the same
/// row of a table is the same worker in every trial. A guest goes with its worker.
fn in_order(mut records: Vec<Record>, guests: Option<Seen>) -> (Vec<Record>, Option<Seen>) {
    let Some(seen) = guests else {
        records.sort_by_key(|record| record.member);
        return (records, None);
    };
    let mut pairs: Vec<(Record, OfGuest)> = records.into_iter().zip(seen.guests).collect();
    pairs.sort_by_key(|(record, _)| record.member);
    let (records, guests): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    (records, Some(Seen { guests, ..seen }))
}

/// Figures of a window that one arm has for itself.
fn of_window(
    load: &BurnWait,
    job: &Job,
    records: &[Record],
    opened: SystemTime,
    guests: Option<&Seen>,
) -> Result<Parsed, String> {
    let seconds = job.workload.duration_ns as f64 / 1e9;
    let mut figures = Figures::new(opened);
    let judged = || {
        records
            .iter()
            .filter(|record| load.sets[record.member.set].is_judged())
    };
    let lateness = judged().map(|record| record.lateness.clone());
    figures.latency("lateness", LATENESS, lateness.collect())?;
    let done: u64 = judged().map(Record::kops).sum();
    if done == 0 {
        return Err(NOTHING_ENDED.to_owned());
    }
    let cpu_ns: u64 = records.iter().map(Record::cpu_ns).sum();
    figures.push(WORK_PER_SEC, done as f64 / seconds);
    let cpu_percent = 100.0 * cpu_ns as f64 / 1e9 / seconds;
    // A guest does not see when it was not run.
    figures.push(
        CPU_PERCENT,
        guests.map_or(cpu_percent, |seen| seen.cpu_percent),
    );
    let deadlines: u64 = judged().map(|record| record.deadlines).sum();
    if deadlines > 0 {
        let missed: u64 = judged().map(|record| record.missed).sum();
        figures.push(MISSED, 100.0 * missed as f64 / deadlines as f64);
    }
    let stand = records.iter().map(|r| (r.member.set, &r.standing));
    let due = due_per_sec(load, job, stand.collect(), guests)?;
    let all = records.iter().zip(due.iter().copied());
    let (judged, their_due) = judged_of(load, all);
    judge(&mut figures, load, job, &judged, &their_due);
    figures.parsed.files.push(sets_file(load, job, records));
    figures.parsed.files.push(workers_file(load, records, &due));
    if let Some(cost) = latency_cost(load, job, records) {
        figures.push(LATENCY_COST, cost);
    }
    if let Some(seen) = guests {
        let steal_ns: u64 = seen.guests.iter().map(|guest| guest.steal_ns).sum();
        figures.push(STEAL, 100.0 * steal_ns as f64 / 1e9 / seconds);
        figures.parsed.files.push(guests_file(load, records, seen));
        if let Some(what) = in_the_way(seen) {
            let remedy = "use a pool of its own (`pool` and `cpus` of the arm), or stop them";
            figures.warn(Severity::Caution, what, remedy);
        }
    }
    Ok(figures.finish())
}

/// Figures of each turn of arms that change places. Deadlines are not counted by turn, nor is
/// there a worst interval.
fn in_turns(
    load: &BurnWait,
    job: &Job,
    turns: &Turns,
    records: &[Record],
    opened: SystemTime,
) -> Result<Parsed, String> {
    let mut figures = InTurns::new(turns, opened);
    let is_judged = |record: &&Record| load.sets[record.member.set].is_judged();
    let lateness = records.iter().filter(is_judged);
    let lateness = lateness.map(|record| record.lateness.clone());
    figures.latency("lateness", LATENESS, None, lateness.collect())?;
    if records
        .iter()
        .filter(is_judged)
        .all(|record| record.kops() == 0)
    {
        return Err(NOTHING_ENDED.to_owned());
    }
    let seconds = turns.lengths.window_ns as f64 / 1e9;
    for turn in 0..turns.order.len() {
        let stand = records.iter().map(|r| {
            let now = r.in_turns.get(turn).and_then(Option::as_ref);
            (r.member.set, now.unwrap_or(&r.standing))
        });
        let due = due_per_sec(load, job, stand.collect(), None)?;
        let rate = |r: &Record, halves: &[usize], of: fn(&Interval) -> u64| -> f64 {
            let seconds = seconds / 2.0 * halves.len() as f64;
            let sum: u64 = halves.iter().map(|h| of(&r.intervals[2 * turn + h])).sum();
            sum as f64 / seconds
        };
        let (judged, their_due) = judged_of(load, records.iter().zip(due));
        let figures_of = |halves: &[usize]| {
            let got = judged.iter().map(|r| rate(r, halves, |i| i.kops));
            let got: Vec<f64> = got.collect();
            let cpu_ns = records.iter().map(|r| rate(r, halves, |i| i.cpu_ns));
            let cpu_percent = cpu_ns.sum::<f64>() / 1e7;
            let rates = [(WORK_PER_SEC, got.iter().sum()), (CPU_PERCENT, cpu_percent)];
            rates
                .into_iter()
                .chain(shared(load, &judged, &got, &their_due))
                .collect::<Vec<_>>()
        };
        let [first, second] = [figures_of(&[0]), figures_of(&[1])];
        let find = |figures: &[(MetricDef, f64)], name: &str| {
            let mut figures = figures.iter();
            figures
                .find(|(def, _)| def.name == name)
                .map(|(_, value)| *value)
        };
        for (def, whole) in figures_of(&[0, 1]) {
            let halves = [&first, &second].map(|half| find(half, def.name));
            figures.set(turn, def, Some(whole), halves);
        }
    }
    let all = [
        WORK_PER_SEC,
        CPU_PERCENT,
        FAIRNESS,
        SHORTFALL,
        WORST_WORKER,
        SPREAD,
    ];
    all.into_iter().for_each(|def| figures.define(def));
    Ok(figures.finish())
}

/// Thousands of operations in a second that each worker, given by its set and its standing, is
/// entitled to.
fn due_per_sec(
    load: &BurnWait,
    job: &Job,
    workers: Vec<(usize, &Standing)>,
    guests: Option<&Seen>,
) -> Result<Vec<f64>, String> {
    let wants: Option<Vec<Want>> = load
        .sets
        .iter()
        .map(|set| Want::from_calibration(&set.name, &job.calibration))
        .collect();
    let wants = wants.ok_or("what a worker does alone was not calibrated")?;
    // Guests are placed by their pool, and do not see on which CPUs.
    let pool: Option<Vec<u32>> = guests.map(|seen| (0..).take(seen.cpus).collect());
    let most = job.guests.as_ref().map_or(1.0, GuestsIn::cpu_limit);
    let asks = workers.iter().map(|(set, standing)| entitlement::Ask {
        want: wants[*set]
            .cpus()
            .min(load.sets[*set].cpu_limit())
            .min(most),
        weight: standing.weight.into(),
        cpus: pool.as_ref().unwrap_or(&standing.cpus),
    });
    let asks: Vec<entitlement::Ask> = asks.collect();
    let shares = match job.groups.is_empty() {
        true => entitlement::shares(&asks),
        false => shares_in_groups(load, &workers, &asks),
    };
    let due = |((set, _), share): (&(usize, &Standing), &f64)| {
        let want = wants[*set];
        want.kops_per_sec as f64 * share / want.cpus().max(f64::MIN_POSITIVE)
    };
    Ok(workers.iter().zip(&shares).map(due).collect())
}

/// The share of each worker where every set is in a cgroup: the CPUs are shared among the sets by the
/// weights of their groups, and a quota is the most that a set gets; its workers are equals.
pub fn shares_in_groups(
    load: &BurnWait,
    workers: &[(usize, &Standing)],
    asks: &[entitlement::Ask],
) -> Vec<f64> {
    let of_set = |(index, set): (usize, &Set)| {
        let own = workers.iter().zip(asks).filter(|((of, _), _)| *of == index);
        let all: Vec<&entitlement::Ask> = own.map(|(_, ask)| ask).collect();
        let most = set
            .quota_percent
            .map_or(f64::INFINITY, |quota| f64::from(quota) / 100.0);
        let want = all.iter().map(|ask| ask.want).sum::<f64>().min(most);
        let ask = entitlement::Ask {
            want,
            weight: set.group_weight().into(),
            cpus: all.first().map_or(&[], |ask| ask.cpus),
        };
        (ask, all.len().max(1))
    };
    let (groups, counts): (Vec<entitlement::Ask>, Vec<usize>) =
        load.sets.iter().enumerate().map(of_set).unzip();
    let shares = entitlement::shares(&groups);
    let each = |(of, _): &(usize, &Standing)| shares[*of] / counts[*of] as f64;
    workers.iter().map(each).collect()
}

/// The workers that are judged, and what they are entitled to.
fn judged_of<'a>(
    load: &BurnWait,
    all: impl Iterator<Item = (&'a Record, f64)>,
) -> (Vec<&'a Record>, Vec<f64>) {
    all.filter(|(record, _)| load.sets[record.member.set].is_judged())
        .unzip()
}

fn judge(figures: &mut Figures, load: &BurnWait, job: &Job, records: &[&Record], due: &[f64]) {
    let seconds = job.workload.duration_ns as f64 / 1e9;
    let got: Vec<f64> = records.iter().map(|r| r.kops() as f64 / seconds).collect();
    for (def, value) in shared(load, records, &got, due) {
        figures.push(def, value);
    }
    let whole = whole_intervals(load, job);
    let interval_seconds = load.interval_ns as f64 / 1e9;
    let intervals = records.iter().zip(due).flat_map(|(record, due)| {
        let part = move |i: &Interval| (i.kops as f64 / interval_seconds / due, i.idle_ns);
        record.intervals.iter().take(whole).map(part)
    });
    // Whoever has nothing to do lacks nothing.
    let due_in = intervals
        .clone()
        .filter(|(_, idle_ns)| *idle_ns < load.interval_ns);
    let worst = due_in.map(|(part, _)| part).reduce(f64::min);
    if let Some(worst) = worst {
        figures.push(WORST_INTERVAL, 100.0 * worst);
    }
    // A worker that is entitled to nothing starves of nothing: its part is no number.
    let (starved, all) = intervals.fold((0_u32, 0_u32), |(starved, all), (part, idle_ns)| {
        (
            starved + u32::from(part == 0.0 && idle_ns == 0),
            all + u32::from(!part.is_nan()),
        )
    });
    if all > 0 {
        figures.push(STARVED, 100.0 * f64::from(starved) / f64::from(all));
    }
    let longest_ns = records.iter().map(|record| record.longest_wait_ns).max();
    if let Some(longest_ns) = longest_ns {
        figures.push(LONGEST_WAIT, longest_ns as f64);
    }
}

/// How the CPUs were shared: what each worker got and what it is entitled to, in thousands of
/// operations a second.
fn shared(load: &BurnWait, records: &[&Record], got: &[f64], due: &[f64]) -> Vec<(MetricDef, f64)> {
    let ratios: Vec<f64> = got.iter().zip(due).map(|(got, due)| got / due).collect();
    let mut figures = Vec::new();
    if let Some(jain) = entitlement::jain(&ratios) {
        figures.push((FAIRNESS, 100.0 * jain));
    }
    let lacks = got.iter().zip(due).map(|(got, due)| (due - got).max(0.0));
    let shortfall = lacks.sum::<f64>() / due.iter().sum::<f64>();
    figures.push((SHORTFALL, 100.0 * shortfall));
    let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    figures.push((WORST_WORKER, 100.0 * worst));
    let spreads = (0..load.sets.len()).filter_map(|set| {
        let workers = records.iter().zip(got);
        let equals = workers.filter(|(record, _)| record.member.set == set);
        entitlement::spread_percent(&equals.map(|(_, got)| *got).collect::<Vec<_>>())
    });
    if let Some(spread) = spreads.reduce(f64::max) {
        figures.push((SPREAD, spread));
    }
    figures
}

/// Mean lateness of the events of each set, as a multiple of that of one worker alone, where it
/// is highest. `None` where it was not measured alone, or nothing was due.
pub fn latency_cost(load: &BurnWait, job: &Job, records: &[Record]) -> Option<f64> {
    let of_set = |(index, set): (usize, &Set)| {
        let alone_ns = Want::from_calibration(&set.name, &job.calibration)?.late_ns?;
        let workers = records.iter().filter(|record| record.member.set == index);
        let together = Recording::merge(workers.map(|record| record.lateness.clone()))?;
        Some(together.mean_ns()? / alone_ns.max(LEAST_LATE_NS) as f64)
    };
    let judged = load.sets.iter().enumerate();
    let costs = judged.filter(|(_, set)| set.is_judged()).filter_map(of_set);
    costs.reduce(f64::max)
}

/// Intervals of full length.
fn whole_intervals(load: &BurnWait, job: &Job) -> usize {
    let whole = job.workload.duration_ns / load.interval_ns;
    usize::try_from(whole).unwrap_or(usize::MAX)
}

/// Rates in the intervals of one worker: their mean, least and most, and the deviation.
struct Summary {
    average: f64,
    least: f64,
    most: f64,
}

impl Summary {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let count = values.clone().count().max(1) as f64;
        Summary {
            average: values.clone().sum::<f64>() / count,
            least: values.clone().fold(f64::INFINITY, f64::min),
            most: values.fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The classic table: for each set the throughput (t, thousands of operations a second) and the
/// CPU use (u, of one CPU) in total; average, deviation, most and least of its workers; most and
/// least of any interval of full length.
fn sets_file(load: &BurnWait, job: &Job, records: &[Record]) -> TrialFile {
    let seconds = job.workload.duration_ns as f64 / 1e9;
    let interval = load.interval_ns as f64 / 1e9;
    let whole = whole_intervals(load, job);
    let mut text = "set,workers,ttotal,tavgavg,tstdev,tavgmax,tavgmin,ttotmax,ttotmin,\
                    utotal,uavgavg,ustdev,uavgmax,uavgmin,utotmax,utotmin\n"
        .to_owned();
    for (index, set) in load.sets.iter().enumerate() {
        let workers = records.iter().filter(|r| r.member.set == index);
        let workers: Vec<&Record> = workers.collect();
        let count = workers.len();
        text.push_str(&format!("{},{count}", set.name));
        let work = |i: &Interval| i.kops as f64;
        let cpu = |i: &Interval| i.cpu_ns as f64 / 1e9;
        text.push_str(&columns(&workers, seconds, (interval, whole), work));
        text.push_str(&columns(&workers, seconds, (interval, whole), cpu));
        text.push('\n');
    }
    TrialFile {
        name: "sets.csv".to_owned(),
        text,
    }
}

fn columns(
    workers: &[&Record],
    seconds: f64,
    (interval, whole): (f64, usize),
    of: impl Fn(&Interval) -> f64 + Copy,
) -> String {
    let totals = workers.iter().map(|worker| {
        let sum: f64 = worker.intervals.iter().map(of).sum();
        sum / seconds
    });
    let intervals = workers
        .iter()
        .flat_map(|worker| worker.intervals.iter().take(whole));
    let intervals = intervals.map(|i| of(i) / interval);
    let (each, windows) = (Summary::of(totals.clone()), Summary::of(intervals));
    let total: f64 = totals.clone().sum();
    let squares = totals.map(|value| (value - each.average).powi(2));
    let deviation = (squares.sum::<f64>() / workers.len().max(1) as f64).sqrt();
    format!(
        ",{total:.3},{:.3},{deviation:.3},{:.3},{:.3},{:.3},{:.3}",
        each.average, each.most, each.least, windows.most, windows.least
    )
}

/// Every guest: its weight and cap as the scheduler has them, its CPU time by the toolstack, the
/// time that others took from it, the most by which its window can be off, the CPUs that it prefers, and
/// its reservation under rtds.
fn guests_file(load: &BurnWait, records: &[Record], seen: &Seen) -> TrialFile {
    let mut text = "worker,set,guest,weight,cap,cpu_seconds,steal_ns,clock_ns,soft_cpus,budget_us,\
                    period_us,extratime\n"
        .to_owned();
    for (worker, (record, guest)) in records.iter().zip(&seen.guests).enumerate() {
        let OfGuest {
            name,
            cap,
            cpu_seconds,
            steal_ns,
            clock_ns,
            made: AsMade {
                soft_cpus,
                reserved,
            },
        } = guest;
        let reserved = reserved.map_or(",,".to_owned(), |r| {
            format!("{},{},{}", r.budget_us, r.period_us, r.extratime)
        });
        let (set, weight) = (&load.sets[record.member.set].name, record.standing.weight);
        text.push_str(&format!(
            "{worker},{set},{name},{weight},{cap},{cpu_seconds:.1},{steal_ns},{clock_ns},\"{soft_cpus}\",{reserved}\n"
        ));
    }
    TrialFile {
        name: "guests.csv".to_owned(),
        text,
    }
}

/// Other domains that took what the guests are entitled to, which are not counted in that.
fn in_the_way(seen: &Seen) -> Option<String> {
    let all: f64 = seen.others.iter().map(|(_, percent)| percent).sum();
    if all < SMALL_PART * 100.0 * seen.cpus as f64 {
        return None;
    }
    let each = seen.others.iter();
    let each: Vec<String> = each
        .map(|(name, percent)| format!("{name} ({percent:.0} % of a CPU)"))
        .collect();
    Some(format!(
        "other domains in the pool of the guests ran, and what they are entitled to is not counted: {}",
        each.join(", ")
    ))
}

/// Every worker and interval: what was got, and what the worker is entitled to.
fn workers_file(load: &BurnWait, records: &[Record], due: &[f64]) -> TrialFile {
    let mut text =
        "worker,set,interval,kops,cpu_ns,late_ns,due_kops_per_sec,weight,idle_ns\n".to_owned();
    for (worker, (record, due)) in records.iter().zip(due).enumerate() {
        let set = &load.sets[record.member.set].name;
        for (index, i) in record.intervals.iter().enumerate() {
            let Interval {
                kops,
                cpu_ns,
                late_ns,
                idle_ns,
            } = i;
            text.push_str(&format!(
                "{worker},{set},{index},{kops},{cpu_ns},{late_ns},{due:.1},{},{idle_ns}\n",
                record.standing.weight
            ));
        }
    }
    TrialFile {
        name: "workers.csv".to_owned(),
        text,
    }
}
