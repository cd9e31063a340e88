//! Arms that clamp the utilization of the threads of a role: sched_setattr(2) with
//! `SCHED_FLAG_UTIL_CLAMP`, read back of every thread that is looked at
//! (Documentation/scheduler/sched-util-clamp.rst). Threads that start later inherit it, and it
//! ends with them, so there is nothing to undo.

use super::ingredient::{Around, At, Change, Form, Ingredient, parse_text, problem, without_role};
use super::requirement::Asked;
use collect::sys::{SchedAttr, UTIL_CLAMP_MAX, UTIL_CLAMP_MIN, sched_getattr, sched_setattr};
use collect::tasks::{self, Pid};
use load::Keys;
use load::units::parse_percent;
use model::readings::{UCLAMP_MAX, UCLAMP_MIN};
use model::{Arm, Class, Fact, Invalid, KeyDef, Problem, Role, Severity, Warning, Workload};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

const KEY: &str = "uclamp";
const EXAMPLE: &str = "uclamp = { min = \"20%\", max = \"80%\" }, or either of them";
/// `SCHED_CAPACITY_SCALE`: all of the largest CPU.
const WHOLE: u32 = 1024;
/// Threads that are looked at at once.
const SAMPLE_LIMIT: usize = 256;

pub struct Uclamp;

/// The clamps, of [`WHOLE`]; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clamps {
    min: Option<u32>,
    max: Option<u32>,
}

impl Ingredient for Uclamp {
    fn name(&self) -> &'static str {
        KEY
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "uclamp",
                "table of `min` and `max`, percent",
                "",
                "Utilization clamps of the threads of the role (sched_setattr(2)); read back of every \
                     thread.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        let text = keys.text_or_table(KEY, |keys| {
            let mut end = |key| keys.get::<String>(key).unwrap_or_default();
            format!("{}-{}", end("min"), end("max"))
        });
        if let Some(text) = text {
            arm.ingredients.insert(KEY.to_owned(), text.into());
        }
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "uclamp=MIN-MAX",
            "utilization clamps of the threads of the role: uclamp=20%-80%, uclamp=20%-, uclamp=-80%",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        parse_text(KEY, change, arm)
    }

    fn roles(&self) -> &'static [Role] {
        &Role::ALL
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    /// Without clamps a thread has the whole range.
    fn name_in_all(&self, arms: &mut [Arm], _: &Workload) {
        if arms.iter().all(|arm| of_arm(arm).is_none()) {
            return;
        }
        for arm in arms {
            let written = arm.ingredients.get(KEY).and_then(|value| value.as_str());
            let (min, max) = written
                .and_then(|text| text.split_once('-'))
                .unwrap_or_default();
            let end = |text: &str, usual: &str| match text.trim() {
                "" => usual.to_owned(),
                text => text.to_owned(),
            };
            let clamps = format!("{}-{}", end(min, "0%"), end(max, "100%"));
            arm.ingredients.insert(KEY.to_owned(), clamps.into());
        }
    }

    fn check(&self, arm: &Arm, _: &Around) -> Result<(), Invalid> {
        let Some(value) = arm.ingredients.get(KEY) else {
            return Ok(());
        };
        let wrong = |what: String| Invalid::new(KEY, what).with_remedy(EXAMPLE);
        let text = value.as_str();
        let text = text.ok_or_else(|| wrong("the clamps are a text".to_owned()))?;
        parse(text).map_err(wrong)?;
        let policy = arm.policy.as_ref();
        if policy.is_some_and(|policy| policy.class == Class::Deadline) {
            let what = "utilization clamps do not count for the deadline class";
            return Err(
                Invalid::new(KEY, what).with_remedy("leave out uclamp, or take another policy")
            );
        }
        Ok(())
    }

    fn require(&self, root: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem> {
        let Some(clamps) = of_arm(arm) else {
            return Vec::new();
        };
        let mut problems: Vec<Problem> = without_role(arm, KEY, workloads).into_iter().collect();
        if let Err(error) = try_on_this_machine(clamps) {
            let unknown = [libc::EOPNOTSUPP, libc::EINVAL, libc::E2BIG];
            let (what, remedy) = match error.raw_os_error() {
                Some(number) if unknown.contains(&number) => (
                    "this kernel has no utilization clamps (CONFIG_UCLAMP_TASK)".to_owned(),
                    "leave out uclamp, or use a kernel with it (--vm debian:sid)",
                ),
                _ => (format!("uclamp: {error}"), "see sched_setattr(2)"),
            };
            problems.push(problem(arm, what, remedy));
        }
        problems.extend(capped(root, arm, clamps));
        problems
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let Some(Clamps { min, max }) = of_arm(arm) else {
            return Vec::new();
        };
        let asked = |what, value: u32| Asked::of_role(&arm.to, what, value.to_string());
        let min = min.map(|value| asked(UCLAMP_MIN, value));
        let max = max.map(|value| asked(UCLAMP_MAX, value));
        min.into_iter().chain(max).collect()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        let clamps = of_arm(arm)?;
        Some(Box::new(Clamped {
            role: &arm.to,
            clamps,
        }))
    }
}

/// `20%-80%`, `20%-`, `-80%`.
fn parse(text: &str) -> Result<Clamps, String> {
    let wrong = || format!("`{text}` are no utilization clamps");
    let (min, max) = text.split_once('-').ok_or_else(wrong)?;
    let end = |text: &str| match text.trim() {
        "" => Ok(None),
        text => {
            let percent = parse_percent(text)?;
            let scaled = (percent * f64::from(WHOLE) / 100.0).round();
            match (0.0..=100.0).contains(&percent) {
                true => Ok(u32::try_from(model::truncate_to_u64(scaled)).ok()),
                false => Err(format!("a utilization clamp is 0% to 100%, not `{text}`")),
            }
        }
    };
    let clamps = Clamps {
        min: end(min)?,
        max: end(max)?,
    };
    match clamps {
        Clamps {
            min: None,
            max: None,
        } => Err(wrong()),
        Clamps {
            min: Some(min),
            max: Some(max),
        } if min > max => Err(format!(
            "the lower clamp of `{text}` is above the upper one"
        )),
        clamps => Ok(clamps),
    }
}

fn of_arm(arm: &Arm) -> Option<Clamps> {
    parse(arm.ingredients.get(KEY)?.as_str()?).ok()
}

/// The kernel's limits for all threads, which count in place of larger clamps.
fn capped(root: &Path, arm: &Arm, clamps: Clamps) -> Vec<Problem> {
    let limit = |end: &str, wanted: Option<u32>| {
        let name = format!("sched_util_clamp_{end}");
        let most: u32 = collect::read_number(&root.join("proc/sys/kernel").join(&name))?;
        let wanted = wanted.filter(|wanted| *wanted > most)?;
        let what = format!("uclamp {end} of {wanted} of {WHOLE}: kernel.{name} caps it at {most}");
        let remedy = format!("add the tunable to the arm: kernel.{name} = \"{WHOLE}\"");
        let own = arm.tunables.keys().any(|key| key.ends_with(&name));
        (!own).then(|| problem(arm, what, &remedy))
    };
    let min = limit("min", clamps.min);
    min.into_iter().chain(limit("max", clamps.max)).collect()
}

/// Clamps one thread.
pub fn apply(tid: Pid, clamps: Clamps) -> io::Result<()> {
    let flag = |clamp: Option<u32>, flag| clamp.map_or(0, |_| flag);
    let attr = SchedAttr {
        flags: SchedAttr::KEEP_ALL
            | flag(clamps.min, UTIL_CLAMP_MIN)
            | flag(clamps.max, UTIL_CLAMP_MAX),
        util_min: clamps.min.unwrap_or(0),
        util_max: clamps.max.unwrap_or(0),
        ..SchedAttr::default()
    };
    sched_setattr(tid, &attr)
}

/// Clamps every thread of a process tree.
fn clamp_tree(root: &Path, pid: Pid, clamps: Clamps) -> Result<(), String> {
    for tid in tasks::threads_of_tree(root, pid, usize::MAX) {
        match apply(tid, clamps) {
            Err(e) if e.raw_os_error() != Some(libc::ESRCH) => {
                return Err(format!("set the utilization clamps of thread {tid}: {e}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Clamps a thread of this process, which ends with that.
fn try_on_this_machine(clamps: Clamps) -> io::Result<()> {
    let ended = std::thread::spawn(move || apply(0, clamps)).join();
    ended.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

struct Clamped<'a> {
    role: &'a Role,
    clamps: Clamps,
}

impl Change for Clamped<'_> {
    fn before_exec(&self, root: &Path, role: &Role, pid: Pid) -> Result<(), String> {
        self.equip_threads(root, role, pid)
    }

    fn equip_threads(&self, root: &Path, role: &Role, leader: Pid) -> Result<(), String> {
        match role == self.role {
            true => clamp_tree(root, leader, self.clamps),
            false => Ok(()),
        }
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        let leaders = at.leaders.iter().filter(|(role, _)| role == self.role);
        let threads =
            leaders.flat_map(|(_, pid)| tasks::threads_of_tree(at.root, *pid, SAMPLE_LIMIT));
        // A thread that ended meanwhile has none.
        let read: Vec<SchedAttr> = threads.filter_map(|tid| sched_getattr(tid).ok()).collect();
        let fact = |what, end: fn(&SchedAttr) -> u32| {
            let values: BTreeSet<u32> = read.iter().map(end).collect();
            let values: Vec<String> = values.iter().map(u32::to_string).collect();
            (!values.is_empty())
                .then(|| Fact::new(what, values.join(" and ")).about_role(self.role))
        };
        let min = fact(UCLAMP_MIN, |attr| attr.util_min);
        let max = fact(UCLAMP_MAX, |attr| attr.util_max);
        min.into_iter().chain(max).collect()
    }

    fn warnings(&self, root: &Path) -> Vec<Warning> {
        let governor = root.join("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let found = match collect::read_trimmed(&governor) {
            Some(governor) if governor == "schedutil" => return Vec::new(),
            Some(governor) => format!("the frequency governor is {governor}"),
            None => "the kernel does not set the frequency of the CPUs here".to_owned(),
        };
        vec![Warning {
            severity: Severity::Caution,
            what: format!(
                "utilization clamps act on frequencies through the governor schedutil only, and \
                 {found}; what is left of them is the choice between CPUs of different capacity"
            ),
            remedy: "use a machine with the governor schedutil, or leave out uclamp".to_owned(),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(clamps: &str) -> Arm {
        let mut arm = Arm::unchanged("a");
        let change = format!("uclamp={clamps}");
        Uclamp.parse(&change, &mut arm).unwrap().unwrap();
        arm
    }

    #[test]
    fn percentages_are_shares_of_the_largest_cpu() {
        let clamps = |min, max| Ok(Clamps { min, max });
        assert_eq!(parse("20%-80%"), clamps(Some(205), Some(819)));
        assert_eq!(parse("12.5%-"), clamps(Some(128), None));
        assert_eq!(parse("-100%"), clamps(None, Some(1024)));
        for wrong in ["", "-", "20%", "80%-20%", "20-80", "-120%", "x%-"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_table_and_a_text_of_an_arm_say_the_same() {
        let table = serde_json::json!({ "uclamp": { "min": "20%", "max": "80%" } });
        let mut read = Arm::unchanged("a");
        let mut keys = Keys::new(table.as_object().unwrap().clone());
        Uclamp.read(&mut keys, &mut read);
        assert_eq!(read, arm("20%-80%"));
    }

    #[test]
    fn a_clamp_above_the_kernels_limit_is_a_problem_unless_the_arm_lifts_that() {
        let root = ::tests::tree(&[("proc/sys/kernel/sched_util_clamp_min", "128\n")]);
        let mut arm = arm("20%-");
        let clamps = of_arm(&arm).unwrap();
        let problems = capped(root.path(), &arm, clamps);
        assert!(problems[0].what.contains("caps it at 128"), "{problems:?}");
        let name = "kernel.sched_util_clamp_min".to_owned();
        arm.tunables.insert(name, "1024".to_owned());
        assert_eq!(capped(root.path(), &arm, clamps), []);
    }

    #[test]
    fn clamps_of_a_thread_are_read_back() {
        let clamps = parse("20%-80%").unwrap();
        let read = std::thread::spawn(move || apply(0, clamps).and_then(|()| sched_getattr(0)));
        match read.join().unwrap() {
            Ok(attr) => assert_eq!((attr.util_min, attr.util_max), (205, 819)),
            Err(error) => ::tests::skipped(format!("no utilization clamps: {error}")),
        }
    }
}
