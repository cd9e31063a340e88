//! Arms with a scheduler of the hypervisor: guests of the load run in a CPU pool of Xen that has
//! it. The pool is made, used as it is, or refused by the rules of `xen::PoolWanted`, read back
//! around and within each trial, and put back as it was.

use super::ingredient::{
    Around, At, Change, Form, Ground, Ingredient, Undone, parse_text, problem,
};
use super::requirement::{Asked, Value};
use crate::error::AgentError;
use crate::files;
use crate::journal::{self, Journal, Undo};
use crate::stop::Stop;
use load::guests;
use load::units::parse_duration;
use load::{GuestsIn, Keys};
use model::readings::{NONE, POOL_CPUS, POOL_SCHEDULER};
use model::{Arm, Fact, Invalid, KeyDef, Problem, Workload, parse_cpu_list};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use xen::{POOL_0, Parameters, Pool, PoolWanted, Scheduler, WEIGHTS, XenError};

const KEY: &str = "hypervisor-scheduler";
/// The pool of arms that name none.
const POOL: &str = "schedlab";
const EXAMPLE: &str = "hypervisor-scheduler = \"credit2\", or { scheduler = \"credit\", timeslice = \
                       \"5ms\", ratelimit = \"1ms\", pool = \"lab\", cpus = \"1-3\" }";
/// Making a pool takes a call of the toolstack for each of its CPUs.
const STEP_LIMIT: Duration = Duration::from_secs(120);
/// Bounds of the hypervisor (xen/common/sched/rt.c), which keeps both in 32 bits.
const LEAST_BUDGET_US: u64 = 10;
const MOST_PERIOD_US: u64 = 30 * 60 * 1_000_000;
/// Keys of the table, in the order of the text.
const PARTS: [&str; 6] = ["pool", "cpus", "timeslice", "ratelimit", "budget", "period"];
/// Further keys of the table, which are numbers.
const NUMBERS: [&str; 2] = ["weight", "cap"];
/// Further keys of the table, which are true or false.
const SWITCHES: [&str; 2] = ["extratime", "numa-placement"];

pub struct HypervisorScheduler;

impl Ingredient for HypervisorScheduler {
    fn name(&self) -> &'static str {
        KEY
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "hypervisor-scheduler",
                "name, or table",
                "",
                "Scheduler of the CPU pool of Xen in which guests of the load run: `credit`, \
                     `credit2`, `rtds`, `null`. The table has `scheduler`, `pool`, `cpus`, `timeslice`, \
                     `ratelimit`, `budget`, `period`, `weight`, `cap`, `extratime` and `numa-placement`.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        let text = keys.text_or_table(KEY, |keys| {
            let scheduler = keys.get::<String>("scheduler").unwrap_or_default();
            let mut text = scheduler;
            for part in PARTS {
                if let Some(value) = keys.get::<String>(part) {
                    text += &format!("/{part}={value}");
                }
            }
            for number in NUMBERS {
                if let Some(value) = keys.get::<u32>(number) {
                    text += &format!("/{number}={value}");
                }
            }
            for switch in SWITCHES {
                if let Some(value) = keys.get::<bool>(switch) {
                    text += &format!("/{switch}={value}");
                }
            }
            text
        });
        if let Some(text) = text {
            arm.ingredients.insert(KEY.to_owned(), text.into());
        }
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "hypervisor-scheduler=NAME[/KEY=VALUE]…",
            "scheduler of the CPU pool of Xen in which guests of the load run: credit, credit2, rtds, \
             null; with pool, cpus, timeslice, ratelimit, budget, period, weight, cap, extratime, \
             numa-placement: credit/timeslice=5ms",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        parse_text(KEY, change, arm)
    }

    fn check(&self, arm: &Arm, around: &Around) -> Result<(), Invalid> {
        let Some(value) = arm.ingredients.get(KEY) else {
            return Ok(());
        };
        let wrong = |what: String| Invalid::new(KEY, what).with_remedy(EXAMPLE);
        let text = value.as_str();
        let text = text.ok_or_else(|| wrong("a hypervisor-scheduler is a text".to_owned()))?;
        parse(text).map_err(wrong)?;
        match around
            .workloads
            .iter()
            .find(|workload| !has_guests(workload))
        {
            Some(workload) => {
                let what = format!(
                    "the workload `{}` runs in no guests of the hypervisor, so its scheduler changes \
                     nothing for it",
                    workload.name
                );
                let remedy =
                    "give the workload workers = \"guests\" (kind = \"burnwait\"), or leave it out";
                Err(Invalid::new(KEY, what).with_remedy(remedy))
            }
            None => Ok(()),
        }
    }

    fn require(&self, root: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
        let Some(wanted) = of_arm(arm) else {
            return Vec::new();
        };
        if !xen::is_there(root) {
            let what = "its scheduler is one of Xen, and this is no dom0".to_owned();
            let remedy = "use `[target] kind = \"xen\"`, or name a Xen host";
            return vec![problem(arm, what, remedy)];
        }
        let lacking = lacking(root, wanted.scheduler);
        let lacking = lacking.map(|what| {
            problem(
                arm,
                what,
                "leave the arm out, or boot a Xen that was built with it",
            )
        });
        lacking.into_iter().collect()
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let Some(wanted) = of_arm(arm) else {
            return Vec::new();
        };
        let name = wanted.scheduler.name().to_owned();
        let mut asked = vec![Asked::of_machine(POOL_SCHEDULER, Value::Is(name))];
        for (what, value) in parameters(&wanted.parameters) {
            asked.push(Asked::of_machine(what, Value::Is(value)));
        }
        asked
    }

    fn make_change<'a>(
        &self,
        arm: &'a Arm,
        workload: &'a Workload,
    ) -> Option<Box<dyn Change + 'a>> {
        let wanted = of_arm(arm);
        (wanted.is_some() || has_guests(workload)).then(|| {
            let change = InPool {
                wanted,
                cpus: None,
                step: None,
                before: None,
                taken: false,
            };
            Box::new(change) as Box<dyn Change>
        })
    }
}

/// The hypervisor's lack of a scheduler, as far as its configuration tells.
fn lacking(root: &Path, scheduler: Scheduler) -> Option<String> {
    let version = xen::Host::read().ok()?.version;
    let built = xen::find_schedulers(root, &version)?;
    let names: Vec<&str> = built.iter().map(|scheduler| scheduler.name()).collect();
    (!built.contains(&scheduler)).then(|| {
        let names = names.join(" and ");
        format!("Xen {version} was built without the scheduler {scheduler}; it has {names}")
    })
}

/// Are the workers of this workload guests of the hypervisor?
pub fn has_guests(workload: &Workload) -> bool {
    load::driver(&workload.kind).is_ok_and(|driver| driver.in_guests())
}

/// An arm's scheduler with its pool and what its guests are configured with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    scheduler: Scheduler,
    /// `None`: the pool of arms that name none, on all CPUs but the first.
    pool: Option<String>,
    cpus: Option<Vec<u32>>,
    parameters: Parameters,
    /// Budget and period of each guest in microseconds, under rtds.
    reservation: Option<(u64, u64)>,
    /// Right of guests to more than their budget where nobody else wants it.
    extratime: Option<bool>,
    /// Choice of NUMA nodes for guests by the toolstack.
    numa_placement: Option<bool>,
    /// Weight of guests whose set has none.
    weight: Option<u32>,
    /// Most that a guest gets, in percent of one CPU.
    cap: Option<u32>,
}

/// `credit2`, `credit/timeslice=5ms/cpus=1-3`.
fn parse(text: &str) -> Result<Wanted, String> {
    let mut parts = text.split('/').map(str::trim);
    let scheduler: Scheduler = parts.next().unwrap_or_default().parse()?;
    let values = Values::of(parts)?;
    let parameters = Parameters {
        timeslice_ms: values
            .time("timeslice", 1_000_000)?
            .map(narrow)
            .transpose()?,
        ratelimit_us: values.time("ratelimit", 1_000)?.map(narrow).transpose()?,
    };
    parameters.check(scheduler)?;
    let (reservation, extratime) = reservation(scheduler, &values)?;
    let pool = values.text("pool").map(str::to_owned);
    if let Some(pool) = pool.as_ref().filter(|pool| !is_name(pool)) {
        return Err(format!(
            "`{pool}` is no name of a pool: letters, digits, - and _"
        ));
    }
    let numa_placement = values.switch("numa-placement")?;
    if numa_placement == Some(true) {
        return Err(
            "the toolstack chooses NUMA nodes anyway: leave it out, or write false".to_owned(),
        );
    }
    let (weight, cap) = shares(scheduler, &values)?;
    Ok(Wanted {
        scheduler,
        weight,
        cap,
        pool,
        cpus: values.text("cpus").map(parse_cpu_list).transpose()?,
        parameters,
        reservation,
        extratime,
        numa_placement,
    })
}

/// Weight and cap of guests.
fn shares(scheduler: Scheduler, values: &Values) -> Result<(Option<u32>, Option<u32>), String> {
    let (weight, cap) = (values.number("weight")?, values.number("cap")?);
    for (name, is_there) in [("weights", weight.is_some()), ("caps", cap.is_some())] {
        if is_there && !scheduler.has_weights() {
            return Err(format!(
                "{scheduler} has no {name}; credit and credit2 have"
            ));
        }
    }
    if weight.is_some_and(|weight| !WEIGHTS.contains(&weight)) {
        let most = WEIGHTS.end();
        return Err(format!("a weight is 1 to {most}; 256 is the usual one"));
    }
    if cap.is_some_and(|cap| !(1..=100).contains(&cap)) {
        return Err("a cap is 1 to 100 percent of one CPU".to_owned());
    }
    Ok((weight, cap))
}

/// Budget and period of guests in microseconds, and whether they may have more.
type Reserved = (Option<(u64, u64)>, Option<bool>);

fn reservation(scheduler: Scheduler, values: &Values) -> Result<Reserved, String> {
    let reservation = match (values.time("budget", 1_000)?, values.time("period", 1_000)?) {
        (None, None) => None,
        (Some(budget), Some(period)) if scheduler == Scheduler::Rtds => Some((budget, period)),
        (Some(_), Some(_)) => return Err(format!("{scheduler} has no budget; rtds has")),
        _ => return Err("a budget and its period belong together".to_owned()),
    };
    if reservation.is_some_and(|(budget, period)| {
        budget < LEAST_BUDGET_US || budget > period || period > MOST_PERIOD_US
    }) {
        return Err(
            "a budget is 10us or more and at most the period, which is at most 30m".to_owned(),
        );
    }
    let extratime = values.switch("extratime")?;
    if extratime.is_some() && scheduler != Scheduler::Rtds {
        return Err(format!("{scheduler} has no extratime; rtds has"));
    }
    if extratime.is_some() && reservation.is_none() {
        return Err("beside extratime there must be a budget and a period".to_owned());
    }
    Ok((reservation, extratime))
}

/// Values behind the name of a scheduler, by their keys.
struct Values<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Values<'a> {
    fn of(parts: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut values = BTreeMap::new();
        for part in parts {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is no KEY=VALUE"))?;
            let (key, value) = (key.trim(), value.trim());
            let all = || PARTS.into_iter().chain(NUMBERS).chain(SWITCHES);
            if !all().any(|known| known == key) {
                let known = all().collect::<Vec<_>>().join(", ");
                return Err(format!("there is no `{key}` beside {known}"));
            }
            if values.insert(key, value).is_some() {
                return Err(format!("`{key}` is there twice"));
            }
        }
        Ok(Values(values))
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).copied()
    }

    /// A time in whole units.
    fn time(&self, key: &str, unit_ns: u64) -> Result<Option<u64>, String> {
        let text = self.text(key);
        text.map(|text| whole(key, text, unit_ns)).transpose()
    }

    fn number(&self, key: &str) -> Result<Option<u32>, String> {
        let wrong = |text| format!("{key} is a whole number, not `{text}`");
        let text = self.text(key);
        text.map(|text| text.parse().map_err(|_| wrong(text)))
            .transpose()
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, String> {
        let wrong = |text| format!("{key} is true or false, not `{text}`");
        let text = self.text(key);
        text.map(|text| text.parse().map_err(|_| wrong(text)))
            .transpose()
    }
}

fn whole(key: &str, text: &str, unit_ns: u64) -> Result<u64, String> {
    let ns = parse_duration(text).map_err(|e| format!("the {key}: {e}"))?;
    match ns % unit_ns {
        0 => Ok(ns / unit_ns),
        _ => Err(format!(
            "the {key} is in whole {}",
            match unit_ns {
                1_000 => "microseconds",
                _ => "milliseconds",
            }
        )),
    }
}

fn narrow(value: u64) -> Result<u32, String> {
    u32::try_from(value).map_err(|_| format!("{value} is too long"))
}

/// It becomes a word of the toolstack.
fn is_name(pool: &str) -> bool {
    let is_good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !pool.is_empty() && pool.len() < 32 && pool.chars().all(is_good)
}

fn of_arm(arm: &Arm) -> Option<Wanted> {
    parse(arm.ingredients.get(KEY)?.as_str()?).ok()
}

/// Place of the guests of a load under this arm on this host; `None`: where guests are anyway.
pub fn place(arm: &Arm) -> Option<GuestsIn> {
    let wanted = of_arm(arm)?;
    let usual = || {
        xen::Host::read()
            .map_or(POOL, |host| usual_pool(host.cpus))
            .to_owned()
    };
    Some(GuestsIn {
        pool: wanted.pool.unwrap_or_else(usual),
        reservation: wanted.reservation,
        extratime: wanted.extratime,
        numa_placement: wanted.numa_placement,
        weight: wanted.weight,
        cap: wanted.cap,
    })
}

impl Wanted {
    /// The pool that it means on a host with these pools.
    fn pool(&self, pools: &[Pool], host_cpus: u32) -> PoolWanted {
        let usual = usual_pool(host_cpus);
        let cpus = match (&self.pool, &self.cpus) {
            (None, None) if usual == POOL_0 => None,
            (None, None) => Some(all_but_the_first(pools)),
            (_, cpus) => cpus.clone(),
        };
        PoolWanted {
            name: self.pool.clone().unwrap_or_else(|| usual.to_owned()),
            scheduler: self.scheduler,
            cpus,
            parameters: self.parameters,
        }
    }
}

/// The pool of arms that name none. A host of one CPU has no other than that of dom0.
fn usual_pool(host_cpus: u32) -> &'static str {
    match host_cpus {
        1 => POOL_0,
        _ => POOL,
    }
}

/// CPUs of Pool-0 and of the pool of arms that name none.
fn all_but_the_first(pools: &[Pool]) -> Vec<u32> {
    let free = pools
        .iter()
        .filter(|pool| [POOL_0, POOL].contains(&pool.name.as_str()));
    let mut cpus: Vec<u32> = free.flat_map(|pool| pool.cpus.iter().copied()).collect();
    cpus.sort_unstable();
    cpus.split_off(1.min(cpus.len()))
}

/// Facts about parameters, and the values of those that are set.
fn parameters(of: &Parameters) -> Vec<(&'static str, String)> {
    let slice = of
        .timeslice_ms
        .map(|ms| ("timeslice of the CPU pool", format!("{ms}ms")));
    let limit = of
        .ratelimit_us
        .map(|us| ("ratelimit of the CPU pool", format!("{us}us")));
    slice.into_iter().chain(limit).collect()
}

/// The pool of one trial.
struct InPool {
    /// `None`: the guests are in Pool-0 as it is.
    wanted: Option<Wanted>,
    /// CPUs that the pool must have.
    cpus: Option<Vec<u32>>,
    step: Option<(PoolWanted, xen::Step)>,
    /// The pool that was there before, with its parameters.
    before: Option<(Pool, Parameters)>,
    /// Is there anything to be undone?
    taken: bool,
}

impl InPool {
    fn pool_name(&self) -> String {
        let pool = self.step.as_ref().map(|(pool, _)| pool.name.clone());
        pool.unwrap_or_else(|| POOL_0.to_owned())
    }

    /// The undo of the step and of the parameters; `None`: nothing is changed.
    fn undo_pool(&self) -> Option<Undo> {
        let (wanted, step) = self.step.as_ref()?;
        let parameters = self.before.as_ref().map(|(_, parameters)| *parameters);
        let parameters = parameters.unwrap_or_default();
        let (timeslice_ms, ratelimit_us) = (parameters.timeslice_ms, parameters.ratelimit_us);
        let (name, pool) = (wanted.name.clone(), self.before.as_ref().map(|(p, _)| p));
        let scheduler = pool.map(|pool| pool.scheduler.clone());
        match step {
            xen::Step::Use if wanted.parameters.is_different(parameters) => {
                Some(Undo::PutBackParameters {
                    name,
                    scheduler: scheduler?,
                    timeslice_ms,
                    ratelimit_us,
                })
            }
            xen::Step::Use => None,
            xen::Step::Make | xen::Step::Replace(_) => Some(Undo::PutBackPool {
                name,
                scheduler,
                cpus: pool.map(|pool| pool.cpus.clone()).unwrap_or_default(),
                timeslice_ms,
                ratelimit_us,
                taken: wanted.cpus.clone().unwrap_or_default(),
            }),
        }
    }
}

/// Records that there will be guests, and files that they start from.
pub fn record_guests(journal: &mut Journal) -> Result<(), AgentError> {
    journal.record(Undo::RemoveFolder {
        path: guests::DIRECTORY.into(),
    })?;
    let prefix = guests::PREFIX.to_owned();
    journal.record(Undo::DestroyGuests { prefix })
}

impl Change for InPool {
    fn step(&self) -> Option<(String, Duration)> {
        Some(("making the CPU pool".to_owned(), STEP_LIMIT))
    }

    fn apply(&mut self, ground: Ground) -> Result<(), Stop> {
        let failed = |e: XenError| Stop::Void(e.to_string());
        let unwritten = |e: AgentError| Stop::Void(e.to_string());
        if let Some(wanted) = &self.wanted {
            let pools = xen::list_pools().map_err(failed)?;
            let pool = wanted.pool(&pools, xen::Host::read().map_err(failed)?.cpus);
            let step = pool
                .find_step(&pools)
                .map_err(|why| Stop::Failed(why).for_good())?;
            self.cpus = pool.cpus.clone();
            let there = pools.into_iter().find(|there| there.name == pool.name);
            let parameters = there.as_ref().map(Pool::read_parameters).transpose();
            self.before = there.zip(parameters.map_err(failed)?);
            self.step = Some((pool, step));
            if let Some(undo) = self.undo_pool() {
                ground.journal.record(undo).map_err(unwritten)?;
            }
        }
        // Undone last first: a pool can be removed when nobody is in it.
        record_guests(ground.journal).map_err(unwritten)?;
        self.taken = true;
        match &self.step {
            Some((pool, step)) => pool.take_step(step).map_err(failed),
            None => Ok(()),
        }
    }

    fn facts(&self, _: &At) -> Vec<Fact> {
        let name = self.pool_name();
        let Ok(Some(pool)) = Pool::find(&name) else {
            return vec![Fact::new(POOL_SCHEDULER, NONE)];
        };
        let mut cpus = Fact::new(POOL_CPUS, pool.cpu_list());
        if let Some(wanted) = &self.cpus {
            let words: Vec<String> = wanted.iter().map(u32::to_string).collect();
            cpus = cpus.with_wanted(words.join(","));
        }
        let found = pool.read_parameters().unwrap_or_default();
        let parameters = parameters(&found).into_iter();
        let parameters = parameters.map(|(what, value)| Fact::new(what, value));
        [Fact::new(POOL_SCHEDULER, pool.scheduler), cpus]
            .into_iter()
            .chain(parameters)
            .collect()
    }

    fn undo_limit(&self) -> Duration {
        STEP_LIMIT
    }

    fn undo(&mut self, _: &Path) -> Undone {
        let mut errors = Vec::new();
        if !std::mem::take(&mut self.taken) {
            return Undone::default();
        }
        if let Err(e) = xen::destroy_all(guests::PREFIX) {
            errors.push(format!("destroy the guests of the load: {e}"));
        }
        // A load that was killed has left what its guests started from.
        errors.extend(files::remove_folder(Path::new(guests::DIRECTORY)).err());
        let undo = self.undo_pool();
        errors.extend(undo.and_then(|undo| journal::put_back(&undo).err()));
        Undone { log: None, errors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_and_a_table_say_the_same() {
        let table = json!({ "hypervisor-scheduler":
            { "scheduler": "credit", "timeslice": "5ms", "cpus": "1-2", "numa-placement": false } });
        let mut read = Arm::unchanged("a");
        HypervisorScheduler.read(
            &mut Keys::new(table.as_object().unwrap().clone()),
            &mut read,
        );
        let mut parsed = Arm::unchanged("a");
        let change = "hypervisor-scheduler=credit/cpus=1-2/timeslice=5ms/numa-placement=false";
        HypervisorScheduler
            .parse(change, &mut parsed)
            .unwrap()
            .unwrap();
        assert_eq!(read, parsed);
        let wanted = of_arm(&read).unwrap();
        assert_eq!(wanted.parameters.timeslice_ms, Some(5));
        assert_eq!(wanted.cpus, Some(vec![1, 2]));
        let place = place(&read).unwrap();
        assert_eq!(
            (place.pool.as_str(), place.numa_placement),
            (POOL, Some(false))
        );
    }

    #[test]
    fn what_a_scheduler_does_not_have_is_refused() {
        for (text, why) in [
            (
                "moon",
                "is no scheduler of Xen: credit, credit2, rtds, null",
            ),
            ("credit2/timeslice=5ms", "credit2 has no timeslice"),
            ("credit/timeslice=5us", "whole milliseconds"),
            ("credit/budget=1ms/period=2ms", "no budget"),
            ("rtds/budget=4ms", "belong together"),
            ("rtds/budget=4ms/period=2ms", "at most the period"),
            ("credit/slice=5ms", "there is no `slice`"),
            ("credit2/extratime=false", "no extratime"),
            ("rtds/budget=5us/period=2ms", "10us or more"),
            ("rtds/budget=1s/period=1h", "at most 30m"),
            ("rtds/extratime=0", "true or false"),
            ("rtds/cap=50", "no caps"),
            ("null/weight=50", "no weights"),
            ("credit/cap=0", "1 to 100"),
            ("credit2/weight=70000", "1 to 65535"),
            ("credit2/weight=half", "whole number"),
            ("credit2/numa-placement=true", "leave it out"),
            ("rtds/extratime=false", "must be a budget"),
            ("credit/pool=a b", "no name of a pool"),
            ("credit/cpus=x", "not a list of CPUs"),
            ("credit/pool=a/pool=b", "twice"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(
            parse("rtds/budget=2ms/period=4ms").unwrap().reservation,
            Some((2000, 4000))
        );
        let shares = parse("credit2/weight=512/cap=30").unwrap();
        assert_eq!((shares.weight, shares.cap), (Some(512), Some(30)));
    }

    #[test]
    fn the_pool_of_arms_that_name_none_has_all_cpus_but_the_first() {
        let pool = |name: &str, cpus: &[u32]| Pool {
            name: name.to_owned(),
            scheduler: "credit2".to_owned(),
            cpus: cpus.to_vec(),
            domains: 0,
        };
        let pools = [pool(POOL_0, &[0, 2]), pool("other", &[3]), pool(POOL, &[1])];
        let wanted = parse("credit").unwrap().pool(&pools, 4);
        assert_eq!(
            (wanted.name.as_str(), wanted.cpus),
            (POOL, Some(vec![1, 2]))
        );
        assert_eq!(
            parse("credit/pool=other").unwrap().pool(&pools, 4).cpus,
            None
        );
        let one = parse("credit").unwrap().pool(&[pool(POOL_0, &[0])], 1);
        assert_eq!((one.name.as_str(), one.cpus), (POOL_0, None));
    }
}
