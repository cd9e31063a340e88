//! Workers as guests of Xen, seen from dom0: one guest of one virtual CPU for each worker.
//!
//! Guests boot while the next ones are made. When all have booted, each is given its cap and budget and
//! asked for its clock, and told the same window by it. What they did comes back over their consoles;
//! what they used is asked of the toolstack.

mod guest_worker;
mod image;
mod proof;

pub use guest_worker::{is_wanted, main};
pub use proof::AsMade;

use super::sets::Set;
use super::wire::{self, Go, Order, Said, Task};
use super::worker::{self, Member, Own, Record, Shape, Standing};
use super::{BurnWait, OPERATIONS_PER_KOP, figures};
use image::Image;
use load::gate::{Gate, Timing};
use load::guests::PREFIX;
use load::recording::Recorder;
use load::{GuestsIn, Job, NativeError, Parsed, Phases, crew, sys};
use model::{Calibration, Problem};
use proof::{Weights, as_made, check_room, check_shares};
use std::path::Path;
use std::time::{Duration, Instant};
use xen::{Console, Guest, GuestConfig, POOL_0, Pool, Running, Scheduler};

/// Name of the domain that has the toolstack.
const DOM0: &str = "Domain-0";
/// Readings of CPU times end within one such part of the window after its begin and its end: a guest goes
/// soon after its window.
const MOST_DELAY_PART: u64 = 2;
/// With write protection of the kernel's code comes a check of all its pages, a tenth of the boot where
/// CPUs are emulated.
const ARGUMENTS: &str = "console=hvc0 quiet panic=-1 nokaslr cryptomgr.notests rodata=off";
/// A guest boots in 5 s of an emulated CPU, which may be slow or shared.
const BOOT_LIMIT: Duration = Duration::from_secs(300);
/// Usual part of the time limit of a trial for each of its guests: where CPUs are emulated, one is made
/// and boots in 10 s.
pub const BOOTS_WITHIN: Duration = Duration::from_secs(60);
/// From the end of the window, or of a guest's start alone, to the end of its report.
const REPORT_LIMIT: Duration = Duration::from_secs(60);
const SEND_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks at whether a guest that says nothing is still there.
const LOOK: Duration = Duration::from_secs(3);
/// A clock is known to half the time in which it is told, which is to be this part of the window at
/// most: else guests would not have the same one.
const CLOCK_WITHIN: u64 = 25;
/// An answer as quick as this is taken at once.
const CLOCK_SOON_NS: u64 = 50_000_000;
/// Most questions for a clock, of which the quickest answer counts.
const CLOCK_QUESTIONS: usize = 5;
/// Memory that the hypervisor takes for a guest, beside the guest's own.
const OVERHEAD_MIB: u64 = 3;

/// Figures of a trial with guests beside the records of the workers.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// CPUs of the pool.
    pub cpus: usize,
    /// CPU time of all guests by the toolstack, in percent of one CPU.
    pub cpu_percent: f64,
    /// Guests in the order of the records.
    pub guests: Vec<OfGuest>,
    /// Other domains of the pool that ran in the window, with their CPU time, in percent of one CPU.
    pub others: Vec<(String, f64)>,
}

/// Figures of one guest.
#[derive(Debug, Clone, PartialEq)]
pub struct OfGuest {
    /// Name.
    pub name: String,
    /// Most of a CPU that it gets, in percent; 0 is no limit.
    pub cap: u32,
    /// CPU time in the window by the toolstack, as it was read.
    pub cpu_seconds: f64,
    /// Time in the window in which it could have run and another one did.
    pub steal_ns: u64,
    /// Most by which its window can be off that of the others.
    pub clock_ns: u64,
    /// Where it may run, and what is reserved for it.
    pub made: AsMade,
}

/// Pool that the guests of a job run in.
fn place(job: &Job) -> GuestsIn {
    let pool_0 = || GuestsIn::pool(POOL_0);
    job.guests.clone().unwrap_or_else(pool_0)
}

/// Problems of this target, where the workers are guests.
pub fn require(load: &BurnWait, job: &Job) -> Vec<Problem> {
    let root = std::path::Path::new("/");
    if !xen::is_there(root) {
        let what = "its workers are guests of Xen, and this is no dom0".to_owned();
        return vec![job.problem(what, "use `[target] kind = \"xen\"`, or name a Xen host")];
    }
    let kernel = image::kernel();
    if !kernel.is_file() {
        let remedy = "put the kernel that dom0 runs there";
        return vec![job.problem(image::lacks_kernel(&kernel), remedy)];
    }
    let count = load.order(job).len() as u64;
    let needed_mib = count * (image::memory_mib() + OVERHEAD_MIB);
    match xen::Host::read() {
        Ok(host) if host.free_mib < needed_mib => {
            let free = host.free_mib;
            let what = format!(
                "{count} guests need {needed_mib} MiB, and the Xen host has {free} MiB free"
            );
            vec![job.problem(what, "give the target more `memory`, or use smaller loads")]
        }
        Ok(_) => Vec::new(),
        Err(e) => vec![job.problem(e.to_string(), "see the message")],
    }
}

/// Demand of a worker of each set alone, found in one guest of Pool-0.
pub fn calibrate(load: &BurnWait, job: &Job) -> Result<Calibration, String> {
    let image = Image::make()?;
    let config = config(&image, 0, &load.sets[0], &place(job));
    let guest = config
        .create_guest(&image.directory)
        .map_err(|e| e.to_string())?;
    let mut worker = Attended::start(&guest)?;
    let task = Task::Alone {
        sets: load.sets.clone(),
        operations_per_us: job.calibration.values.get(OPERATIONS_PER_KOP).copied(),
        interval_ns: load.interval_ns,
    };
    worker.hello(&task)?;
    let limit = REPORT_LIMIT + super::baseline::limit(&load.sets);
    let Said::Wants {
        operations_per_us,
        wants,
    } = worker.said_within(limit)?
    else {
        return Err(worker.failed("it said something else than what it wants"));
    };
    let mut calibration = Calibration {
        of_all_loads: true,
        ..Calibration::default()
    };
    let values = &mut calibration.values;
    values.insert(OPERATIONS_PER_KOP.to_owned(), operations_per_us);
    for (set, want) in load.sets.iter().zip(wants) {
        want.store(&set.name, &mut calibration);
    }
    Ok(calibration)
}

/// One trial.
pub fn generate(load: &BurnWait, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
    let failed = NativeError::Generator;
    let place = place(job);
    let pool = Pool::find(&place.pool).map_err(|e| failed(e.to_string()))?;
    let pool = pool.ok_or_else(|| failed(format!("there is no pool {}", place.pool)))?;
    let (order, owns): (Vec<Member>, Vec<Own>) = load.owns(job).into_iter().unzip();
    let sets = order.iter().map(|member| &load.sets[member.set]);
    let sets: Vec<&Set> = sets.collect();
    check_room(&pool, sets.len()).map_err(failed)?;
    check_shares(&pool, &sets, &place).map_err(failed)?;
    let image = Image::make().map_err(failed)?;
    let shape = load.shape(job, job.workload.duration_ns);
    let tasks = sets.iter().zip(&owns);
    let tasks: Vec<Task> = tasks
        .map(|(set, own)| Task::for_set(set, shape, own))
        .collect();
    let configs = sets.iter().enumerate();
    let configs = configs.map(|(index, set)| config(&image, index, set, &place));
    let at_once = pool.cpus.len().max(1);
    let (guests, workers) = boot(configs, &tasks, &image.directory, at_once).map_err(failed)?;
    limit(&guests, &sets, &place, &pool).map_err(failed)?;
    let weights = Weights::read(&pool).map_err(failed)?;
    weights.check(&guests, &sets, &place).map_err(failed)?;
    let made = as_made(&guests, &sets, &place, &pool).map_err(failed)?;
    let works = works(workers, &order, shape.duration_ns).map_err(failed)?;
    let (opened, done) = crew::run(worker::THREAD, works, job, phases)?;
    let after = Weights::read(&pool).map_err(failed)?;
    if after != weights {
        return Err(failed(
            "the weights of the guests changed in the window".to_owned(),
        ));
    }
    drop(guests);
    let (records, seen) = put_together(done, made, &weights, &pool, shape).map_err(failed)?;
    figures::compute_figures(load, job, records, opened, Some(seen)).map_err(failed)
}

/// All guests with their tasks, of which each has said that it waits. So many boot at the same time, one
/// for each CPU of the pool, while the next one is made: where CPUs are emulated, every switch between guests
/// makes their boots longer.
fn boot(
    configs: impl Iterator<Item = GuestConfig>,
    tasks: &[Task],
    directory: &Path,
    at_once: usize,
) -> Result<(Vec<Guest>, Vec<Attended>), String> {
    let mut guests = Vec::new();
    let mut workers: Vec<Attended> = Vec::new();
    for (index, config) in configs.enumerate() {
        let guest = config.create_guest(directory).map_err(|e| e.to_string())?;
        if let Some(earlier) = index.checked_sub(at_once) {
            workers[earlier].hello(&tasks[earlier])?;
        }
        workers.push(Attended::start(&guest)?);
        guests.push(guest);
    }
    let booting = workers.len().saturating_sub(at_once);
    for (worker, task) in workers.iter_mut().zip(tasks).skip(booting) {
        worker.hello(task)?;
    }
    Ok((guests, workers))
}

/// Gives each guest its cap, and the budget that the arm has for it. They have booted: one that is small
/// would make that last, and what a set wants is measured in a guest without any.
fn limit(guests: &[Guest], sets: &[&Set], place: &GuestsIn, pool: &Pool) -> Result<(), String> {
    let failed = |e: xen::XenError| e.to_string();
    let scheduler: Scheduler = pool.scheduler.parse()?;
    for (guest, set) in guests.iter().zip(sets) {
        // One that is missing is told by the check of all.
        if let Some(cap) = place.cap(set.cap) {
            scheduler.cap_domain(guest.name(), cap).map_err(failed)?;
        }
        if let Some(reservation) = place.reservation() {
            reservation.set_for_domain(guest.name()).map_err(failed)?;
        }
    }
    Ok(())
}

fn config(image: &Image, index: usize, set: &Set, place: &GuestsIn) -> GuestConfig {
    let mut lines = Vec::new();
    let weight = place.weight(set.weight);
    lines.extend(weight.map(|weight| format!("cpu_weight={weight}")));
    // Any preference keeps the toolstack from choosing a NUMA node; in Xen 4.17 the hard affinity
    // `cpus="all"` does not.
    let anywhere = (place.numa_placement == Some(false)).then_some(proof::ALL_CPUS);
    let soft = set.soft_cpus.as_deref().or(anywhere);
    lines.extend(soft.map(|cpus| format!("cpus_soft=\"{cpus}\"")));
    GuestConfig {
        name: format!("{PREFIX}{index}"),
        kernel: image.kernel.clone(),
        initramfs: image.initramfs.clone(),
        arguments: format!("{ARGUMENTS} -- {}", wire::ARGUMENT),
        memory_mib: image::memory_mib(),
        pool: place.pool.clone(),
        lines,
    }
}

/// Clock of a guest, as it was told.
#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Lead over the clock of dom0.
    ahead_ns: i64,
    /// Most by which that is wrong.
    wrong_ns: u64,
}

/// Outcome of one thread: the index of its guest as they were made, its worker, the record, and the
/// guest's figures.
struct Done {
    index: usize,
    member: Member,
    name: String,
    clock: Clock,
    report: wire::Report,
    /// CPU times of all domains at both ends of the window, from the first thread.
    used: Option<Used>,
    timing: Timing,
}

/// Readings of the toolstack at both ends of the window.
struct Used {
    before: Vec<Running>,
    after: Vec<Running>,
    seconds: f64,
}

impl Used {
    /// CPU seconds of a domain between the readings; one that is in only one of them used none that is known.
    fn of(&self, guest: &str) -> f64 {
        self.of_listed(guest).unwrap_or_default()
    }

    /// `None` where a reading does not have the domain.
    fn of_listed(&self, guest: &str) -> Option<f64> {
        let at = |all: &[Running]| {
            let found = all.iter().find(|running| running.name == guest);
            found.map(|running| running.cpu_seconds)
        };
        Some(at(&self.after)? - at(&self.before)?)
    }

    /// Domains in the pool that are neither workers nor dom0, with their CPU time in seconds. Dom0 runs
    /// there with the workers where it is their pool, which the file chose.
    fn others(&self, pool: &str) -> Vec<(&str, f64)> {
        let is_other = |running: &&Running| {
            running.pool == pool && running.name != DOM0 && !running.name.starts_with(PREFIX)
        };
        let others = self.after.iter().filter(is_other);
        let used = others.map(|running| (running.name.as_str(), self.of(&running.name)));
        used.filter(|(_, seconds)| *seconds > 0.0).collect()
    }
}

/// A thread for each guest, which waits with it at the gate.
fn works(
    workers: Vec<Attended>,
    order: &[Member],
    duration_ns: u64,
) -> Result<Vec<crew::Work<Done>>, String> {
    let mut works: Vec<crew::Work<Done>> = Vec::new();
    let workers = workers.into_iter().zip(order.iter().copied());
    for (index, (mut worker, member)) in workers.enumerate() {
        let clock = worker.clock_within(duration_ns / CLOCK_WITHIN)?;
        works.push(Box::new(move |gate| {
            worker.wait_at(gate, index, member, clock)
        }));
    }
    Ok(works)
}

/// The quickest answer, with what it took; no further question is asked after one that was quick.
fn quickest(
    soon_ns: u64,
    mut ask: impl FnMut() -> Result<(u64, i64), String>,
) -> Result<(u64, i64), String> {
    let mut best = ask()?;
    for _ in 1..CLOCK_QUESTIONS {
        if best.0 <= soon_ns {
            break;
        }
        best = best.min(ask()?);
    }
    Ok(best)
}

/// The first thing that a guest says in the lines of its console; `None` where the limit has passed
/// before. A kernel that prints all the time does not stop the clock.
fn first_said(
    limit: Duration,
    mut line: impl FnMut() -> Result<Option<String>, String>,
) -> Result<Option<Result<Said, String>>, String> {
    let start = Instant::now();
    loop {
        let said = line()?.and_then(|line| Said::parse(&line));
        if said.is_some() {
            return Ok(said);
        }
        if start.elapsed() >= limit {
            return Ok(None);
        }
    }
}

/// A guest with its console.
struct Attended {
    name: String,
    console: Console,
}

impl Attended {
    fn start(guest: &Guest) -> Result<Self, String> {
        let console = guest.open_console().map_err(|e| e.to_string())?;
        guest.start().map_err(|e| e.to_string())?;
        Ok(Attended {
            name: guest.name().to_owned(),
            console,
        })
    }

    /// From its boot to where it knows its task.
    fn hello(&mut self, task: &Task) -> Result<(), String> {
        match self.said_within(BOOT_LIMIT)? {
            Said::Ready => {}
            _ => return Err(self.failed("it did not say that it is ready")),
        }
        self.send(task)?;
        if matches!(task, Task::Alone { .. }) {
            return Ok(());
        }
        match self.said_within(BOOT_LIMIT)? {
            Said::Waiting => Ok(()),
            _ => Err(self.failed("it did not say that it waits")),
        }
    }

    /// Clock of the guest, which is to be known to so much. It is asked for while all guests wait, so
    /// that no work keeps this one from its answer.
    fn clock_within(&mut self, most_ns: u64) -> Result<Clock, String> {
        let soon_ns = CLOCK_SOON_NS.min(most_ns);
        let (took_ns, ahead_ns) = quickest(soon_ns, || self.clock())?;
        let wrong_ns = took_ns.div_ceil(2);
        if wrong_ns > most_ns {
            let [took, most] = [took_ns, 2 * most_ns].map(model::format_duration_ns);
            return Err(self.failed(&format!(
                "it told its clock after {took}, and for a common window it has {most}; use a longer \
                 window, or fewer guests"
            )));
        }
        Ok(Clock { ahead_ns, wrong_ns })
    }

    /// Time that a question for the clock and its answer took, and the lead of the guest's clock:
    /// the guest read it somewhere between the two.
    fn clock(&mut self) -> Result<(u64, i64), String> {
        let asked_ns = sys::now_ns();
        self.send(&Order::TellClock)?;
        let Said::Clock(there_ns) = self.said_within(REPORT_LIMIT)? else {
            return Err(self.failed("it did not tell its clock"));
        };
        let answered_ns = sys::now_ns();
        let middle_ns = u64::midpoint(asked_ns, answered_ns);
        let ahead_ns = there_ns.cast_signed() - middle_ns.cast_signed();
        Ok((answered_ns - asked_ns, ahead_ns))
    }

    /// From the gate to the report.
    fn wait_at(
        mut self,
        gate: &Gate,
        index: usize,
        member: Member,
        clock: Clock,
    ) -> Result<Done, String> {
        let Some(timing) = gate.wait() else {
            return Err("there was no load".to_owned());
        };
        let there = |here_ns: u64| here_ns.saturating_add_signed(clock.ahead_ns);
        self.send(&Order::Go(Go {
            start_ns: there(timing.start_ns),
            begin_ns: there(timing.window.begin_ns),
            end_ns: there(timing.window.end_ns),
        }))?;
        let used = (index == 0).then(|| used(timing)).transpose()?;
        sys::sleep_until(timing.window.end_ns);
        match self.said_within(REPORT_LIMIT)? {
            Said::Report(report) => Ok(Done {
                index,
                member,
                name: self.name,
                clock,
                report,
                used,
                timing,
            }),
            _ => Err(self.failed("it said something else than its report")),
        }
    }

    fn send(&mut self, line: &impl serde::Serialize) -> Result<(), String> {
        let json = serde_json::to_string(line).map_err(|e| e.to_string())?;
        let sent = self.console.send(&json, SEND_LIMIT);
        sent.map_err(|e| self.failed(&format!("it takes no line: {e}")))
    }

    /// The next thing that it says. One that ended is told as soon as it is seen.
    fn said_within(&mut self, limit: Duration) -> Result<Said, String> {
        match first_said(limit, || self.line())? {
            Some(Ok(Said::Failed(why))) | Some(Err(why)) => Err(self.failed(&why)),
            Some(Ok(said)) => Ok(said),
            None => {
                let seconds = limit.as_secs();
                Err(self.failed(&format!("it said nothing for {seconds} s")))
            }
        }
    }

    /// The next line of its console; `None` where there was none for a while and it is still there.
    fn line(&mut self) -> Result<Option<String>, String> {
        match self.console.read_line(LOOK) {
            Ok(Some(line)) => Ok(Some(line)),
            Ok(None) => self.is_there().map(|()| None),
            Err(e) => Err(self.failed(&format!("its console ended: {e}"))),
        }
    }

    fn is_there(&self) -> Result<(), String> {
        let all = Running::list_all().map_err(|e| self.failed(&e.to_string()))?;
        match all.iter().find(|running| running.name == self.name) {
            None => Err(self.failed("it is gone")),
            Some(running) => running
                .end_reason()
                .map_or(Ok(()), |end| Err(self.failed(end))),
        }
    }

    fn failed(&self, why: &str) -> String {
        let name = &self.name;
        match self.console.last_lines() {
            tail if tail.is_empty() => format!("the guest {name}: {why}"),
            tail => format!("the guest {name}: {why}; its console: {tail}"),
        }
    }
}

fn used(timing: Timing) -> Result<Used, String> {
    let window = timing.window;
    let read_at = |at_ns: u64| {
        sys::sleep_until(at_ns);
        let begun = Instant::now();
        let all = Running::list_all().map_err(|e| e.to_string())?;
        check_delay(
            sys::now_ns().saturating_sub(at_ns),
            window.end_ns - window.begin_ns,
        )?;
        Ok::<_, String>((begun, all))
    };
    let (from, before) = read_at(window.begin_ns)?;
    let (to, after) = read_at(window.end_ns)?;
    Ok(Used {
        before,
        after,
        seconds: (to - from).as_secs_f64(),
    })
}

/// Refuses readings of CPU times that are not those of the window: the guests stop soon after it.
fn check_delay(delay_ns: u64, window_ns: u64) -> Result<(), String> {
    if delay_ns <= window_ns / MOST_DELAY_PART {
        return Ok(());
    }
    let seconds = |ns: u64| ns as f64 / 1e9;
    Err(format!(
        "`xl list` told the CPU times of the guests {:.1} s after the begin or the end of a window of {:.1} s, \
         so that they are not those of the window; give the first domain a CPU of its own, or use a longer \
         duration",
        seconds(delay_ns),
        seconds(window_ns)
    ))
}

/// Records in the order in which the guests were made, and what was seen of these.
fn put_together(
    mut done: Vec<Done>,
    made: Vec<AsMade>,
    weights: &Weights,
    pool: &Pool,
    shape: Shape,
) -> Result<(Vec<Record>, Seen), String> {
    done.sort_by_key(|done| done.index);
    let used = done.iter_mut().find_map(|done| done.used.take());
    let used = used.ok_or("no CPU times were read")?;
    let mut records = Vec::new();
    let mut guests = Vec::new();
    for (one, made) in done.into_iter().zip(made) {
        let (weight, cap) = weights.weight_and_cap(&one.name);
        guests.push(OfGuest {
            cap,
            cpu_seconds: used
                .of_listed(&one.name)
                .ok_or_else(|| format!("`xl list` has no guest {} in the window", one.name))?,
            steal_ns: one.report.steal_ns,
            clock_ns: one.clock.wrong_ns,
            name: one.name,
            made,
        });
        let longest_ns = worker::longest_lateness_ns(shape.duration_ns);
        let mut lateness = Recorder::new(shape.duration_ns, longest_ns)?;
        lateness.open(one.timing.window);
        records.push(Record {
            // A guest does not see what the hypervisor has given it.
            standing: Standing {
                weight,
                cpus: Vec::new(),
            },
            ..one.report.into_record(one.member, lateness)
        });
    }
    let all: f64 = guests.iter().map(|guest| guest.cpu_seconds).sum();
    let percent = |seconds: f64| 100.0 * seconds / used.seconds;
    let others = used.others(&pool.name).into_iter();
    let seen = Seen {
        others: others
            .map(|(name, seconds)| (name.to_owned(), percent(seconds)))
            .collect(),
        cpus: pool.cpus.len(),
        cpu_percent: percent(all),
        guests,
    };
    Ok((records, seen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets;

    #[test]
    fn other_domains_of_the_pool_are_seen_by_what_they_used_in_the_window() {
        let running = |name: &str, pool: &str, cpu_seconds| Running {
            name: name.to_owned(),
            state: "r-----".to_owned(),
            cpu_seconds,
            pool: pool.to_owned(),
        };
        let all = |seconds: f64| {
            vec![
                running(DOM0, "tests", seconds),
                running("schedlab-worker-0", "tests", seconds),
                running("database", "tests", 3.0 * seconds),
                running("idle", "tests", 7.0),
                running("elsewhere", "Pool-0", seconds),
            ]
        };
        let used = Used {
            before: all(1.0),
            after: all(3.0),
            seconds: 5.0,
        };
        assert_eq!(used.others("tests"), [("database", 6.0)]);
    }

    #[test]
    fn cpu_times_that_are_told_late_are_no_figures_of_the_window() {
        let ms = 1_000_000;
        assert_eq!(check_delay(2_000 * ms, 4_000 * ms), Ok(()));
        let refused = check_delay(2_001 * ms, 4_000 * ms).unwrap_err();
        assert!(refused.contains("2.0 s after"), "{refused}");
        let running = Running {
            name: "ended".to_owned(),
            state: "r-----".to_owned(),
            cpu_seconds: 5.0,
            pool: "tests".to_owned(),
        };
        let used = Used {
            before: vec![running],
            after: Vec::new(),
            seconds: 4.0,
        };
        assert_eq!(used.of_listed("ended"), None);
    }

    #[test]
    fn the_quickest_answer_is_taken_and_the_first_quick_one_is_the_last() {
        let take = |answers: &[u64]| {
            let mut asked = 0;
            let quickest = quickest(CLOCK_SOON_NS, || {
                asked += 1;
                Ok((answers[asked - 1], asked as i64))
            });
            (quickest.unwrap(), asked)
        };
        let ms = 1_000_000;
        assert_eq!(take(&[9 * ms]), ((9 * ms, 1), 1));
        assert_eq!(take(&[70 * ms, 9 * ms]), ((9 * ms, 2), 2));
        let late = [90, 70, 2000, 80, 75].map(|took| took * ms);
        assert_eq!(take(&late), ((70 * ms, 2), 5));
    }

    #[test]
    fn a_guest_whose_kernel_prints_all_the_time_is_timed_out() {
        let mut printed = 0;
        let said = first_said(Duration::from_millis(20), || {
            // So that a limit that is never looked at fails the test and does not hang it.
            printed += 1;
            std::thread::sleep(Duration::from_millis(1));
            match printed {
                0..1000 => Ok(Some("[    1.2] soft lockup".to_owned())),
                _ => Err("it was never timed out".to_owned()),
            }
        });
        assert_eq!(said, Ok(None));
        let lines = ["[    1.2] random: crng init".to_owned(), Said::Ready.line()];
        let mut lines = lines.into_iter();
        let said = first_said(Duration::from_secs(60), || Ok(lines.next()));
        assert_eq!(said, Ok(Some(Ok(Said::Ready))));
    }

    #[test]
    fn a_set_has_its_own_soft_cpus_or_all_where_no_node_is_to_be_chosen() {
        let lines = |soft: Option<&str>, numa_placement| {
            let image = Image {
                kernel: "/k".into(),
                initramfs: "/i".into(),
                directory: "/d".into(),
            };
            let set = Set {
                soft_cpus: soft.map(str::to_owned),
                ..sets::published_sets().remove(0)
            };
            let place = GuestsIn {
                numa_placement,
                ..GuestsIn::pool("lab")
            };
            let lines = config(&image, 0, &set, &place).lines;
            // Dropping it removes its directory.
            std::mem::forget(image);
            lines
        };
        let none: [&str; 0] = [];
        assert_eq!(lines(None, None), none);
        assert_eq!(lines(None, Some(false)), ["cpus_soft=\"all\""]);
        assert_eq!(lines(Some("2"), Some(false)), ["cpus_soft=\"2\""]);
        assert_eq!(lines(Some("2"), None), ["cpus_soft=\"2\""]);
    }
}
