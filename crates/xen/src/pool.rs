//! CPU pools: the classic rules by which one is made, checked, used again or refused.
//!
//! A pool that is named with its CPUs is managed: it is made, or made again where it differs and
//! nobody is in it. A pool that is named without CPUs must be there as it is wanted. So must Pool-0,
//! where dom0 is. The parameters of a pool's scheduler are set in any case.

use crate::POOL_0;
use crate::scheduler::{Parameters, Scheduler};
use crate::table::split_rows;
use crate::toolstack::{XenError, run_xl};
use std::time::{Duration, Instant};

/// Guests that were destroyed have left their pool by then.
const EMPTY_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);
/// The longest timeslice that credit takes (xen/include/public/sysctl.h).
const LONGEST_SLICE_MS: u32 = 1000;

/// A pool as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Name.
    pub name: String,
    /// Name of its scheduler.
    pub scheduler: String,
    /// Physical CPUs.
    pub cpus: Vec<u32>,
    /// Number of domains in it.
    pub domains: u32,
}

/// A pool as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolWanted {
    /// Name.
    pub name: String,
    /// Its scheduler.
    pub scheduler: Scheduler,
    /// CPUs that it must have; `None`: any, of a pool that is there.
    pub cpus: Option<Vec<u32>>,
    /// Parameters of its scheduler.
    pub parameters: Parameters,
}

/// The step that leads to a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It is there as it is wanted.
    Use,
    /// It is made of CPUs of Pool-0.
    Make,
    /// It is there otherwise, and empty: it is removed and made anew.
    Replace(Pool),
}

/// All pools of the host, Pool-0 first.
pub fn list_pools() -> Result<Vec<Pool>, XenError> {
    parse(
        &run_xl(&["cpupool-list"])?,
        &run_xl(&["cpupool-list", "-c"])?,
    )
    .ok_or_else(|| XenError::State("`xl cpupool-list` prints no table of pools".to_owned()))
}

fn parse(schedulers: &str, cpus: &str) -> Option<Vec<Pool>> {
    let cpus: Vec<Vec<&str>> = split_rows(cpus).collect();
    let mut pools = Vec::new();
    for row in split_rows(schedulers) {
        let [name, _, scheduler, _, domains] = row[..] else {
            return None;
        };
        let of_pool = cpus.iter().find(|row| row.first() == Some(&name))?;
        let list = of_pool.get(1).copied().unwrap_or_default();
        pools.push(Pool {
            name: name.to_owned(),
            scheduler: scheduler.to_owned(),
            cpus: match list {
                "" => Vec::new(),
                list => model::parse_cpu_list(list).ok()?,
            },
            domains: domains.parse().ok()?,
        });
    }
    (!pools.is_empty()).then_some(pools)
}

impl Pool {
    /// The pool of this name.
    pub fn find(name: &str) -> Result<Option<Self>, XenError> {
        Ok(list_pools()?.into_iter().find(|pool| pool.name == name))
    }

    /// Parameters of its scheduler.
    pub fn read_parameters(&self) -> Result<Parameters, XenError> {
        let scheduler = self.scheduler.parse().ok();
        scheduler.map_or(Ok(Parameters::default()), |scheduler| {
            Parameters::of_pool(scheduler, &self.name)
        })
    }

    /// `0,2`.
    pub fn cpu_list(&self) -> String {
        list(&self.cpus)
    }
}

impl PoolWanted {
    /// The step that leads to it from these pools, or why there is none. Nothing is changed.
    pub fn find_step(&self, pools: &[Pool]) -> Result<Step, String> {
        let Self { name, cpus, .. } = self;
        let there = pools.iter().find(|pool| pool.name == *name);
        let fault = match there {
            Some(pool) => match self.differs(pool) {
                None => return Ok(Step::Use),
                Some(fault) => Some(fault),
            },
            None => None,
        };
        let Some(cpus) = cpus.as_ref().filter(|_| name != POOL_0) else {
            return Err(match fault {
                Some(fault) if name == POOL_0 => {
                    format!("{fault}, and {POOL_0} is never changed: dom0 is in it")
                }
                Some(fault) => format!("{fault}; name its CPUs to have it made anew"),
                None => format!("there is no pool {name}; name its CPUs to have it made"),
            });
        };
        if let (Some(pool), Some(fault)) = (there, &fault)
            && pool.domains > 0
        {
            let domains = match pool.domains {
                1 => "a domain is".to_owned(),
                domains => format!("{domains} domains are"),
            };
            return Err(format!("{fault}, and it is in use: {domains} in it"));
        }
        self.may_take(cpus, pools)?;
        Ok(there.cloned().map_or(Step::Make, Step::Replace))
    }

    fn differs(&self, pool: &Pool) -> Option<String> {
        let Self {
            name, scheduler, ..
        } = self;
        if pool.scheduler != scheduler.name() {
            let found = &pool.scheduler;
            return Some(format!("the pool {name} has {found} and not {scheduler}"));
        }
        let cpus = self.cpus.as_ref().filter(|cpus| **cpus != pool.cpus)?;
        let (wanted, found) = (list(cpus), pool.cpu_list());
        Some(format!(
            "the pool {name} has the CPUs {found} and not {wanted}"
        ))
    }

    /// CPUs come from Pool-0, which keeps at least one.
    fn may_take(&self, cpus: &[u32], pools: &[Pool]) -> Result<(), String> {
        if cpus.is_empty() {
            return Err(format!("there is no CPU for the pool {}", self.name));
        }
        let of_0 = pools.iter().find(|pool| pool.name == POOL_0);
        let of_0 = of_0.map(|pool| pool.cpus.clone()).unwrap_or_default();
        for cpu in cpus {
            let holder = pools.iter().find(|pool| pool.cpus.contains(cpu));
            match holder {
                None => return Err(format!("there is no CPU {cpu} in any pool")),
                Some(pool) if pool.name != POOL_0 && pool.name != self.name => {
                    return Err(format!("CPU {cpu} is in the pool {}", pool.name));
                }
                Some(_) => {}
            }
        }
        match of_0.iter().all(|cpu| cpus.contains(cpu)) {
            true => Err(format!("{POOL_0} must keep a CPU for dom0")),
            false => Ok(()),
        }
    }

    /// Takes a step that [`PoolWanted::find_step`] found.
    pub fn take_step(&self, step: &Step) -> Result<(), XenError> {
        if let Step::Replace(pool) = step {
            remove(pool)?;
        }
        if *step != Step::Use {
            make(
                &self.name,
                self.scheduler.name(),
                self.cpus.as_deref().unwrap_or_default(),
            )?;
        }
        self.parameters.set_for_pool(self.scheduler, &self.name)
    }

    /// Puts back what a step that made a pool changed: the pool that was there before, with its
    /// parameters, or none. The CPUs that the step took are in some pool afterwards. It may be done
    /// again, and after half a step. Gives whether there was anything to be done.
    pub fn put_back(
        name: &str,
        before: Option<(&Pool, Parameters)>,
        taken: &[u32],
    ) -> Result<bool, XenError> {
        if name == POOL_0 {
            // No step makes it.
            return Ok(false);
        }
        let now = Pool::find(name)?;
        let is_before = |pool: &Pool| {
            before.is_some_and(|(before, _)| {
                pool.scheduler == before.scheduler && pool.cpus == before.cpus
            })
        };
        let mut changed = false;
        if !now.as_ref().is_some_and(is_before) {
            if let Some(pool) = &now {
                remove(pool)?;
            }
            changed = give_back_free()? || now.is_some() || before.is_some();
            if let Some((pool, _)) = before {
                make(name, &pool.scheduler, &pool.cpus)?;
            }
        }
        if let Some((pool, parameters)) = before {
            changed |= put_back_parameters(name, &pool.scheduler, parameters)?;
        }
        check_back(taken)?;
        Ok(changed)
    }
}

/// Gives a pool that has this scheduler the parameters that it had; one that others have changed or
/// removed since is theirs. Gives whether there was anything to be done.
pub fn put_back_parameters(
    name: &str,
    scheduler: &str,
    parameters: Parameters,
) -> Result<bool, XenError> {
    let pool = Pool::find(name)?;
    let pool = pool.filter(|pool| pool.scheduler == scheduler);
    let (Some(pool), Ok(scheduler)) = (pool, scheduler.parse::<Scheduler>()) else {
        return Ok(false);
    };
    let differs = parameters.is_different(pool.read_parameters()?);
    if differs {
        parameters.set_for_pool(scheduler, name)?;
    }
    Ok(differs)
}

fn make(name: &str, scheduler: &str, cpus: &[u32]) -> Result<(), XenError> {
    for cpu in cpus {
        run_xl(&["cpupool-cpu-remove", POOL_0, &cpu.to_string()])?;
    }
    let quoted: Vec<String> = cpus.iter().map(|cpu| format!("\"{cpu}\"")).collect();
    let name = format!("name=\"{name}\"");
    let scheduler = format!("sched=\"{scheduler}\"");
    let cpus = format!("cpus=[{}]", quoted.join(","));
    let made = run_xl(&["cpupool-create", &name, &scheduler, &cpus]).map(drop);
    if made.is_err() {
        // The CPUs are in no pool now.
        let _ = give_back_free();
    }
    made
}

/// A guest that was destroyed is in its pool until its memory is free.
fn remove(pool: &Pool) -> Result<(), XenError> {
    let before = slow_down(pool);
    let start = Instant::now();
    while let Err(error) = run_xl(&["cpupool-destroy", &pool.name]) {
        if start.elapsed() > EMPTY_LIMIT {
            if let Some(before) = before {
                // The pool stays, as it was.
                before.set_for_pool(Scheduler::Credit, &pool.name)?;
            }
            return Err(error);
        }
        std::thread::sleep(LOOK);
    }
    give_back_free().map(drop)
}

/// Makes it rare that all of Xen hangs. Credit accounts once in a timeslice, in a timer. With the last
/// CPU of its pool it ends that timer while it holds the lock that the timer's function takes
/// (`csched_deinit_pdata` and `csched_acct` in xen/common/sched/credit.c, seen with Xen 4.17.5: 8 of
/// 206 pools with slices of 1 and 5 ms, none of 173 that had the longest slice at the end). Gives the
/// parameters that were.
fn slow_down(pool: &Pool) -> Option<Parameters> {
    if pool.scheduler != Scheduler::Credit.name() {
        return None;
    }
    let before = Parameters::of_pool(Scheduler::Credit, &pool.name).ok();
    let rare = Parameters {
        timeslice_ms: Some(LONGEST_SLICE_MS),
        ..Parameters::default()
    };
    // Without it the pool is removed all the same.
    let _ = rare.set_for_pool(Scheduler::Credit, &pool.name);
    // The timer is set already, by the slice that was.
    std::thread::sleep(LOOK);
    before
}

/// CPUs that are in no pool go to Pool-0; gives whether any did. One that is offline stays.
fn give_back_free() -> Result<bool, XenError> {
    let ids = crate::host::Host::read()?.cpu_ids;
    let before = free(0..ids, &list_pools()?);
    for cpu in &before {
        // xl ends in order also where it could not add one.
        let _ = run_xl(&["cpupool-cpu-add", POOL_0, &cpu.to_string()]);
    }
    Ok(!before.is_empty() && free(0..ids, &list_pools()?) != before)
}

/// Fails where CPUs that were taken are in no pool.
fn check_back(taken: &[u32]) -> Result<(), XenError> {
    if taken.is_empty() {
        return Ok(());
    }
    let lost = free(taken.iter().copied(), &list_pools()?);
    match lost.is_empty() {
        true => Ok(()),
        false => Err(XenError::State(format!(
            "the CPUs {} are in no pool and cannot be added to {POOL_0}: are they in one without a \
             name (`xl cpupool-list` shows none; xenstore-ls /local/pool)?",
            list(&lost)
        ))),
    }
}

/// Those of the CPUs that no pool has.
fn free(cpus: impl Iterator<Item = u32>, pools: &[Pool]) -> Vec<u32> {
    cpus.filter(|cpu| pools.iter().all(|pool| !pool.cpus.contains(cpu)))
        .collect()
}

fn list(cpus: &[u32]) -> String {
    let words: Vec<String> = cpus.iter().map(u32::to_string).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULERS: &str = "Name               CPUs   Sched     Active   Domain count\n\
                              Pool-0               2   credit2       y          1\n\
                              schedlab             1    credit       y          2\n";
    const CPUS: &str = "Name               CPU list\n\
                        Pool-0             0,2\n\
                        schedlab           1\n";

    fn wanted(name: &str, scheduler: Scheduler, cpus: Option<&[u32]>) -> PoolWanted {
        PoolWanted {
            name: name.to_owned(),
            scheduler,
            cpus: cpus.map(<[u32]>::to_vec),
            parameters: Parameters::default(),
        }
    }

    fn pools() -> Vec<Pool> {
        parse(SCHEDULERS, CPUS).unwrap()
    }

    #[test]
    fn both_tables_of_xl_make_the_pools() {
        let pools = pools();
        assert_eq!(pools[0].cpus, [0, 2]);
        assert_eq!(
            (pools[1].scheduler.as_str(), pools[1].domains),
            ("credit", 2)
        );
        assert_eq!(parse("", ""), None);
    }

    #[test]
    fn a_pool_that_matches_is_used_and_one_that_is_missing_is_made_of_cpus_of_pool_0() {
        let pools = pools();
        let same = wanted("schedlab", Scheduler::Credit, Some(&[1]));
        assert_eq!(same.find_step(&pools), Ok(Step::Use));
        let new = wanted("other", Scheduler::Credit2, Some(&[2]));
        assert_eq!(new.find_step(&pools), Ok(Step::Make));
        let unnamed = wanted("schedlab", Scheduler::Credit, None);
        assert_eq!(unnamed.find_step(&pools), Ok(Step::Use));
    }

    #[test]
    fn a_pool_that_differs_is_made_anew_only_when_nobody_is_in_it() {
        let mut pools = pools();
        let other = wanted("schedlab", Scheduler::Credit2, Some(&[1]));
        let why = other.find_step(&pools).unwrap_err();
        assert!(
            why.contains("credit and not credit2") && why.contains("2 domains"),
            "{why}"
        );
        pools[1].domains = 0;
        assert_eq!(other.find_step(&pools), Ok(Step::Replace(pools[1].clone())));
    }

    #[test]
    fn what_may_not_be_made_is_refused_with_the_reason() {
        let pools = pools();
        let why = |name: &str, scheduler, cpus| {
            wanted(name, scheduler, cpus).find_step(&pools).unwrap_err()
        };
        assert!(why("Pool-0", Scheduler::Credit, None).contains("never changed"));
        assert!(why("Pool-0", Scheduler::Credit2, Some(&[0])).contains("never changed"));
        assert!(why("moon", Scheduler::Credit, None).contains("no pool moon"));
        assert!(why("schedlab", Scheduler::Rtds, None).contains("name its CPUs"));
        assert!(why("other", Scheduler::Credit, Some(&[1])).contains("is in the pool schedlab"));
        assert!(why("other", Scheduler::Credit, Some(&[0, 2])).contains("must keep"));
        assert!(why("other", Scheduler::Credit, Some(&[7])).contains("no CPU 7"));
    }
}
