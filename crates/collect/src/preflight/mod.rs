//! Rules about what moves figures on this machine, looked at before the first trial.
//!
//! A table of rules: each looks at one thing below a root directory, says what is
//! in force, and knows what that does to figures and how it is changed. Nothing is
//! changed here: what a rule would write is data ([`Write`]), for whoever keeps a
//! journal. What a machine does not show is unknown, never assumed to be right.

pub mod activity;
mod cpu;
mod kernel;
mod memory;
mod namespaces;
mod power;

pub use activity::Activity;

use model::{Check, CheckState};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All rules, in the order in which they are shown.
const RULES: &[Rule] = &[
    power::GOVERNOR,
    power::TURBO,
    power::IDLE_STATES,
    power::THROTTLING,
    cpu::VIRTUALISATION,
    activity::STEAL,
    activity::BACKGROUND,
    cpu::SMT,
    cpu::ISOLATION,
    cpu::AFFINITY,
    cpu::QUOTA,
    namespaces::NAMESPACES,
    namespaces::KNOBS,
    cpu::MITIGATIONS,
    kernel::SCHED_EXT,
    kernel::AUTOGROUP,
    kernel::NUMA_BALANCING,
    kernel::IRQBALANCE,
    kernel::SCHEDSTATS,
    kernel::CLOCK_SOURCE,
    kernel::TICK,
    kernel::PERF_EVENTS,
    kernel::LOCKDOWN,
    memory::HUGE_PAGES,
    memory::PRESSURE,
    memory::SWAP,
];

/// One thing to look at.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    name: &'static str,
    effect: &'static str,
    remedy: &'static str,
    look: fn(&Machine) -> Seen,
}

/// Machine that rules look at.
#[derive(Debug, Clone)]
pub struct Machine<'a> {
    /// Directory that stands for `/`.
    pub root: &'a Path,
    /// True if this process runs as root, and so can read and write more.
    pub is_root: bool,
    /// CPUs that this process may run on.
    pub usable_cpus: u32,
    /// `System::hypervisor`.
    pub hypervisor: String,
    /// Work of others while the machine was watched.
    pub activity: Activity,
}

impl<'a> Machine<'a> {
    /// The machine below `root`, watched for `time`.
    pub fn watch(root: &'a Path, time: Duration) -> Self {
        Machine {
            root,
            is_root: rustix::process::geteuid().is_root(),
            usable_cpus: crate::machine::usable_cpus(),
            hypervisor: crate::machine::find_hypervisor(root),
            activity: Activity::watch(root, time),
        }
    }

    fn read(&self, path: &str) -> Option<String> {
        crate::read_trimmed(&self.root.join(path))
    }

    fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        crate::read_number(&self.root.join(path))
    }

    /// Files `directory/PREFIX*/file` that are there, in order.
    fn each(&self, directory: &str, prefix: &str, file: &str) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.root.join(directory)) else {
            return Vec::new();
        };
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let numbered = entry.file_name().to_str()?.strip_prefix(prefix)?.to_owned();
                numbered.parse::<u32>().ok()?;
                Some(entry.path().join(file)).filter(|path| path.exists())
            })
            .collect();
        files.sort();
        files
    }
}

/// Finding of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Ok(String),
    /// The value in force, and the writes that would change it.
    Caution(String, Vec<Write>),
    /// Why it cannot be told.
    Unknown(&'static str),
}

/// One file and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Path of the file, below the root directory of the machine.
    pub path: PathBuf,
    /// Text that is written to it.
    pub text: String,
}

impl Write {
    fn new(path: PathBuf, text: &str) -> Self {
        Write {
            path,
            text: text.to_owned(),
        }
    }
}

/// A check, and what would change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Result of the rule, as it is stored and shown.
    pub check: Check,
    /// Empty where nothing needs a change, or no file can make it.
    pub fix: Vec<Write>,
}

/// Everything, in the order of the table.
pub fn check_machine(machine: &Machine) -> Vec<Finding> {
    RULES.iter().map(|rule| rule.apply(machine)).collect()
}

/// Time for which a machine is watched for load by others and for steal.
pub const WATCH: Duration = Duration::from_secs(1);

/// The checks alone, for the results.
pub fn run_checks(root: &Path) -> Vec<Check> {
    let findings = check_machine(&Machine::watch(root, WATCH));
    findings.into_iter().map(|finding| finding.check).collect()
}

impl Rule {
    fn apply(&self, machine: &Machine) -> Finding {
        let (state, value, fix) = match (self.look)(machine) {
            Seen::Ok(value) => (CheckState::Ok, value, Vec::new()),
            Seen::Caution(value, fix) => (CheckState::Caution, value, fix),
            Seen::Unknown(why) => (CheckState::Unknown, why.to_owned(), Vec::new()),
        };
        Finding {
            check: Check {
                name: self.name.to_owned(),
                value,
                state,
                effect: self.effect.to_owned(),
                remedy: self.remedy.to_owned(),
            },
            fix,
        }
    }
}

/// `2 of 3`, `all 4`: how many of a kind.
fn share(count: usize, of: usize) -> String {
    if count == of {
        return format!("all {of}");
    }
    format!("{count} of {of}")
}

#[cfg(test)]
mod testing {
    use super::*;

    /// A machine where nothing runs and nobody steals.
    pub fn machine(root: &Path) -> Machine<'_> {
        Machine {
            root,
            is_root: true,
            usable_cpus: 2,
            hypervisor: "none".to_owned(),
            activity: Activity::default(),
        }
    }

    /// Finding of `rule` about the machine below `root`.
    pub fn seen(rule: &Rule, root: &Path) -> Finding {
        rule.apply(&machine(root))
    }

    pub fn is_caution(finding: &Finding) -> bool {
        finding.check.state == CheckState::Caution
    }

    pub fn is_unknown(finding: &Finding) -> bool {
        finding.check.state == CheckState::Unknown
    }

    /// Paths below the root and the text that would be written.
    pub fn writes<'a>(finding: &'a Finding, root: &Path) -> Vec<(String, &'a str)> {
        let below = |w: &Write| w.path.strip_prefix(root).unwrap().display().to_string();
        finding
            .fix
            .iter()
            .map(|w| (below(w), w.text.as_str()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::machine;
    use super::*;
    use ::tests::tree;
    use std::collections::BTreeSet;

    #[test]
    fn every_rule_has_a_name_of_its_own_an_effect_and_a_remedy() {
        let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
        for rule in RULES {
            assert!(rule.effect.ends_with('.'), "{}: {}", rule.name, rule.effect);
            assert!(!rule.remedy.is_empty(), "{}", rule.name);
        }
    }

    #[test]
    fn a_machine_that_shows_nothing_is_mostly_unknown_and_never_fixed() {
        let root = tree(&[]);
        let findings = check_machine(&machine(root.path()));
        let unknown = findings.iter().filter(|f| testing::is_unknown(f)).count();
        assert!(unknown > RULES.len() / 2, "{findings:#?}");
        assert!(findings.iter().all(|f| f.fix.is_empty()));
    }

    #[test]
    fn what_is_right_has_nothing_to_write() {
        let root = tree(&[(
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never\n",
        )]);
        let finding = memory::HUGE_PAGES.apply(&machine(root.path()));
        assert_eq!(finding.check.state, CheckState::Ok);
        assert_eq!(finding.check.value, "madvise");
        assert!(finding.fix.is_empty());
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let checks = run_checks(Path::new("/"));
        assert_eq!(checks.len(), RULES.len());
        assert!(checks.iter().all(|check| !check.value.is_empty()));
    }
}
