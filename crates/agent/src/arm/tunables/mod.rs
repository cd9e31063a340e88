//! Arms that change kernel tunables: one logical name, and the sysctl or debugfs
//! file that this kernel has for it.
//!
//! Sources: kernel/sched/{fair,debug,rt,deadline}.c; sysctls `kernel.sched_*` up to
//! 5.12, debugfs `sched/*` from 5.13, `base_slice_ns` in place of latency and
//! granularities from 6.6. Documentation/scheduler/sched-debug.rst.

mod knob;
mod rules;
mod sysctl;
mod table;
mod value;

pub(crate) use knob::Knob;
use rules::{Wanted, Writes};
pub use table::{TABLE, Tunable, Unit};
pub(crate) use value::{is_settable, normalise, own_name};

use super::ingredient::{
    Around, At, Change, Form, Ground, Ingredient, Undone, problem, twice_error,
};
use super::requirement::{Asked, Value};
use crate::journal::{Journal, Undo};
use crate::stop::Stop;
use load::Keys;
use model::{Arm, Fact, Invalid, KeyDef, Problem, Severity, Tunables, Warning, Workload, readings};
use serde::Deserialize;
use serde_json::Map;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

const REMEDY: &str = "`schedlab list arms` has their names";

/// `feature.NAME`: one word of debugfs `sched/features`.
const FEATURE: &str = "feature.";

#[derive(Debug, thiserror::Error)]
pub(crate) enum TunableError {
    #[error("{0}")]
    Value(String),
    #[error("tunable {name}: this kernel has none")]
    Absent {
        name: String,
        nearest: Option<String>,
    },
    #[error("tunable {name}: {why}")]
    Unreachable {
        name: String,
        why: String,
        remedy: String,
    },
    #[error("{step} tunable {name} ({}): {source}", path.display())]
    Io {
        step: &'static str,
        name: String,
        path: PathBuf,
        source: io::Error,
    },
    #[error("set tunable {name} to {wanted}: the kernel made it {found}")]
    NotTaken {
        name: String,
        wanted: String,
        found: String,
    },
    #[error("tunable {name}: {value} is above {limit}, which is {most}")]
    Above {
        name: String,
        value: i64,
        limit: String,
        most: i64,
    },
    #[error("tunable {name}: the kernel forgets {other}, which is {value}, and takes no 0 back")]
    Forgets {
        name: String,
        other: String,
        value: String,
    },
    #[error("{0}")]
    Journal(String),
}

impl TunableError {
    /// True if the kernel said EBUSY.
    fn is_busy(&self) -> bool {
        matches!(self, TunableError::Io { source, .. } if source.kind() == io::ErrorKind::ResourceBusy)
    }

    /// Advice on what to do about it.
    pub fn remedy(&self) -> String {
        match self {
            TunableError::Value(_) => REMEDY.to_owned(),
            TunableError::Absent {
                nearest: Some(nearest),
                ..
            } => format!("its nearest on this kernel is {nearest}"),
            TunableError::Absent { .. } => "leave it out, or use a kernel that has it".to_owned(),
            TunableError::Unreachable { remedy, .. } => remedy.clone(),
            TunableError::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => OF_ROOT.to_owned(),
                io::ErrorKind::ReadOnlyFilesystem => OF_CONTAINER.to_owned(),
                _ => OTHER_VALUE.to_owned(),
            },
            TunableError::NotTaken { .. } => OTHER_VALUE.to_owned(),
            TunableError::Above { name, limit, .. } => format!("set {limit} and {name} together"),
            TunableError::Forgets { other, .. } => format!("set {other}"),
            TunableError::Journal(_) => "make room in the state directory".to_owned(),
        }
    }
}

const OF_ROOT: &str =
    "run as root of the machine, which root of a container with users of its own is not";
const OF_CONTAINER: &str = "a container shows it and lets nobody turn it: measure on the machine itself, or in a \
                            privileged container (podman run --privileged)";
const OTHER_VALUE: &str = "use a value that this kernel takes";

pub(super) struct Tuning;

/// A tunable is written as text with its unit, as a bare number, or as a switch.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "a tunable is a text with its unit, a whole number, or `true` or `false`"
)]
enum Written {
    Text(String),
    Number(i64),
    Switch(bool),
}

impl Written {
    fn into_text(self) -> String {
        match self {
            Written::Text(text) => text,
            Written::Number(number) => number.to_string(),
            Written::Switch(true) => "on".to_owned(),
            Written::Switch(false) => "off".to_owned(),
        }
    }
}

impl Ingredient for Tuning {
    fn name(&self) -> &'static str {
        "tunables"
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "tunables",
                "table of tunables",
                "",
                "Kernel tunables by name; they are put back after each trial.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        let written: Option<BTreeMap<String, Written>> = keys.get("tunables");
        for (name, value) in written.into_iter().flatten() {
            if let Err(fault) = set(arm, &name, value.into_text()) {
                keys.refuse(Invalid {
                    key: "tunables".to_owned(),
                    ..fault
                });
            }
        }
    }

    fn write(&self, arm: &Arm, keys: &mut Map<String, serde_json::Value>) {
        if !arm.tunables.is_empty() {
            let texts = arm.tunables.iter();
            let tunables = texts.map(|(name, text)| (name.as_str(), text.as_str()));
            keys.insert("tunables".to_owned(), tunables.collect());
        }
    }

    fn forms(&self) -> &'static [Form] {
        &[
            (
                "TUNABLE=VALUE",
                "a kernel tunable by logical name: base_slice=1ms, migration_cost=0.5ms",
            ),
            (
                "SYSCTL.NAME=VALUE",
                "any other sysctl by its full name, of which schedlab knows nothing: vm.swappiness=10",
            ),
            (
                "debugfs.sched.NAME=VALUE",
                "any other file of /sys/kernel/debug/sched, of which schedlab knows nothing: \
                 debugfs.sched.verbose=Y",
            ),
        ]
    }

    /// Any name may be one of a tunable; the kernel of the target decides.
    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let (name, value) = change.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        // Only the names of sysctls, which have dots, may have a colon: it is behind a role.
        let is_of_role = name.contains(':') && !name.contains('.');
        if name.is_empty() || value.is_empty() || is_of_role {
            return None;
        }
        Some(set(arm, name, value.to_owned()))
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    /// Names, units and ranges that are wrong on any kernel.
    fn check(&self, arm: &Arm, _: &Around) -> Result<(), Invalid> {
        arm.tunables.iter().try_for_each(|(name, text)| {
            let checked = normalise(name, text).map(drop);
            checked.map_err(|what| Invalid::new("tunables", what).with_remedy(REMEDY))
        })
    }

    fn require(&self, root: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
        let errors = check(root, &arm.tunables).into_iter();
        errors
            .map(|error| problem(arm, error.to_string(), &error.remedy()))
            .collect()
    }

    /// The values in the kernel's own form.
    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let asked = |(name, text): (&String, &String)| {
            // One that has no form in the kernel is never found there.
            let value = normalise(name, text).unwrap_or_else(|_| text.clone());
            Asked::of_machine(readings::tunable_fact_name(name), Value::Is(value))
        };
        arm.tunables.iter().map(asked).collect()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        Some(Box::new(Tuned {
            tunables: &arm.tunables,
            applied: Applied::default(),
        }))
    }
}

/// Adds one to the arm, by schedlab's name or by that of the kernel; an error if it is there.
fn set(arm: &mut Arm, name: &str, value: String) -> Result<(), Invalid> {
    let name = value::own_name(name);
    match arm.tunables.insert(name.clone(), value.clone()) {
        Some(first) => Err(twice_error(
            "tunable",
            format!("{name}={first}"),
            format!("{name}={value}"),
        )),
        None => Ok(()),
    }
}

struct Tuned<'a> {
    tunables: &'a Tunables,
    applied: Applied,
}

impl Change for Tuned<'_> {
    fn apply(&mut self, ground: Ground) -> Result<(), Stop> {
        apply(
            ground.root,
            self.tunables,
            ground.journal,
            &mut self.applied,
        )
        .map_err(|e| Stop::Void(format!("{e}; {}", e.remedy())))
    }

    fn facts(&self, at: &At) -> Vec<Fact> {
        read_facts(at.root, self.tunables)
    }

    fn warnings(&self, _: &Path) -> Vec<Warning> {
        unchecked_warning(self.tunables).into_iter().collect()
    }

    fn undo(&mut self, _: &Path) -> Undone {
        let failed = std::mem::take(&mut self.applied).undo().err();
        let errors = failed.into_iter().flatten();
        Undone {
            errors: errors.map(|e| e.to_string()).collect(),
            log: None,
        }
    }
}

/// Warning about sysctls and files of debugfs that are set by their full names.
pub(super) fn unchecked_warning(tunables: &Tunables) -> Option<Warning> {
    let names = tunables.keys().filter(|name| sysctl::is_full_name(name));
    let names: Vec<&str> = names.map(String::as_str).collect();
    (!names.is_empty()).then(|| Warning {
        severity: Severity::Caution,
        what: format!(
            "schedlab does not know {}: it was set, read back and put back, but neither its range \
             nor what it depends on was checked.",
            names.join(", ")
        ),
        remedy: "See Documentation/admin-guide/sysctl and scheduler/sched-debug.rst of the kernel for its meaning.".to_owned(),
    })
}

/// Everything that can be found out without writing: names, values, places, rights.
pub(super) fn check(root: &Path, tunables: &Tunables) -> Vec<TunableError> {
    let each = tunables.iter();
    let errors: Vec<TunableError> = each
        .filter_map(|(name, text)| check_one(root, name, text).err())
        .collect();
    match errors.is_empty() {
        true => rules::check(root, tunables),
        false => errors,
    }
}

fn check_one(root: &Path, name: &str, text: &str) -> Result<(), TunableError> {
    let value = normalise(name, text).map_err(TunableError::Value)?;
    check_forgotten(root, name)?;
    match needed(root, name, &value)? {
        // What is so already needs no right to write.
        Some(knob) if knob.read()? != value => knob.try_open_for_writing(),
        _ => Ok(()),
    }
}

/// Refuses what could not be put back.
fn check_forgotten(root: &Path, name: &str) -> Result<(), TunableError> {
    let pairs = table::FORGOTTEN.iter();
    for (_, other) in pairs.filter(|(first, _)| *first == name) {
        let value = Knob::find(root, other)?.read()?;
        if value != "0" {
            return Err(TunableError::Forgets {
                name: name.to_owned(),
                other: (*other).to_owned(),
                value,
            });
        }
    }
    Ok(())
}

/// Its knob; `None` where a kernel without it behaves as wanted.
fn needed(root: &Path, name: &str, value: &str) -> Result<Option<Knob>, TunableError> {
    match Knob::find(root, name) {
        Err(TunableError::Absent { .. }) if absent(name) == Some(value) => Ok(None),
        found => found.map(Some),
    }
}

/// The value that a kernel without the tunable behaves as.
fn absent(name: &str) -> Option<&'static str> {
    match sysctl::is_full_name(name) {
        true => None,
        false => value::find_tunable(name).ok()?.absent,
    }
}

/// Read the named tunables back.
pub(super) fn read_facts(root: &Path, tunables: &Tunables) -> Vec<Fact> {
    let value = |name: &str| match (Knob::find(root, name), absent(name)) {
        (Err(TunableError::Absent { .. }), Some(value)) => Ok(value.to_owned()),
        (knob, _) => knob?.read(),
    };
    let fact = |name: &String| {
        let text = value(name).unwrap_or_else(|e| format!("unreadable: {e}"));
        Fact::new(readings::tunable_fact_name(name), text)
    };
    tunables.keys().map(fact).collect()
}

/// Undo of the tunables that were set.
#[derive(Debug, Default)]
pub(super) struct Applied {
    undo: Vec<rules::Write>,
}

impl Applied {
    /// Write the old values back, in the order of the rules, and read them back. What the kernel
    /// refuses is tried again after the others, as long as one of them succeeds.
    pub(super) fn undo(self) -> Result<(), Vec<TunableError>> {
        let mut left = self.undo;
        loop {
            let mut errors = Vec::new();
            let tried = left.len();
            left.retain(|(knob, before)| match knob.put_back(before) {
                Ok(()) => false,
                Err(error) => {
                    errors.push(error);
                    true
                }
            });
            if left.is_empty() {
                return Ok(());
            }
            if left.len() == tried {
                return Err(errors);
            }
        }
    }
}

/// Set all. All are checked, and all are in the journal, before any is written; if one fails,
/// what was set stays in `applied` for the caller to undo.
pub(super) fn apply(
    root: &Path,
    tunables: &Tunables,
    journal: &mut Journal,
    applied: &mut Applied,
) -> Result<(), TunableError> {
    let mut wanted = Vec::new();
    for (name, text) in tunables {
        let value = normalise(name, text).map_err(TunableError::Value)?;
        let Some(knob) = needed(root, name, &value)? else {
            continue;
        };
        let before = knob.read()?;
        if before != value {
            wanted.push(Wanted {
                name: name.clone(),
                knob,
                before,
                value,
            });
        }
    }
    let writes = Writes::plan_writes(root, wanted)?;
    // The journal is replayed backwards.
    for (knob, before) in writes.undo.iter().rev() {
        let undo = Undo::Write {
            path: knob.path().to_owned(),
            text: knob.to_write(before),
        };
        let recorded = journal.record(undo);
        recorded.map_err(|e| TunableError::Journal(e.to_string()))?;
    }
    applied.undo = writes.undo;
    let mut each = writes.apply.iter();
    each.try_for_each(|(knob, value)| knob.write_and_read_back(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;
    use std::fs;

    const AUTOGROUP: &str = "proc/sys/kernel/sched_autogroup_enabled";
    const SLICE: &str = "proc/sys/kernel/sched_rr_timeslice_ms";

    fn tunables(pairs: &[(&str, &str)]) -> Tunables {
        pairs
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect()
    }

    fn values(root: &Path, wanted: &Tunables) -> Vec<String> {
        let facts = read_facts(root, wanted).into_iter();
        facts.map(|fact| fact.found).collect()
    }

    fn machine() -> tempfile::TempDir {
        tree(&[(AUTOGROUP, "1\n"), (SLICE, "100\n")])
    }

    #[test]
    fn what_was_set_is_as_before_after_undo() {
        let root = machine();
        let wanted = tunables(&[("autogroup", "off"), ("rr_timeslice", "30ms")]);
        let mut journal = Journal::open(root.path()).unwrap();
        let mut applied = Applied::default();
        apply(root.path(), &wanted, &mut journal, &mut applied).unwrap();
        assert_eq!(values(root.path(), &wanted), ["0", "30"]);
        applied.undo().unwrap();
        assert_eq!(values(root.path(), &wanted), ["1", "100"]);
    }

    #[test]
    fn the_journal_alone_restores_what_was_set() {
        let root = machine();
        let wanted = tunables(&[("autogroup", "off")]);
        let mut journal = Journal::open(root.path()).unwrap();
        apply(root.path(), &wanted, &mut journal, &mut Applied::default()).unwrap();
        Journal::open(root.path()).unwrap().replay().unwrap();
        assert_eq!(
            fs::read_to_string(root.path().join(AUTOGROUP)).unwrap(),
            "1"
        );
    }

    #[test]
    fn nothing_is_written_when_one_value_is_wrong() {
        let root = machine();
        let wanted = tunables(&[("autogroup", "off"), ("rr_timeslice", "0ms")]);
        let mut journal = Journal::open(root.path()).unwrap();
        let error = apply(root.path(), &wanted, &mut journal, &mut Applied::default());
        assert!(
            error
                .unwrap_err()
                .to_string()
                .contains("outside 1ms to 10s")
        );
        assert_eq!(
            fs::read_to_string(root.path().join(AUTOGROUP)).unwrap(),
            "1\n"
        );
    }

    #[test]
    fn what_is_so_already_is_not_written() {
        let root = machine();
        let wanted = tunables(&[("autogroup", "on"), ("rr_timeslice", "30ms")]);
        let mut journal = Journal::open(root.path()).unwrap();
        let mut applied = Applied::default();
        apply(root.path(), &wanted, &mut journal, &mut applied).unwrap();
        assert_eq!(applied.undo.len(), 1);
        assert_eq!(values(root.path(), &wanted), ["1", "30"]);
    }

    const SWAPPINESS: &str = "proc/sys/vm/swappiness";
    const RANGE: &str = "proc/sys/net/ipv4/ip_local_port_range";

    #[test]
    fn any_sysctl_is_set_read_back_and_put_back_with_a_warning_that_it_is_not_known() {
        let root = tree(&[(SWAPPINESS, "60\n"), (RANGE, "32768\t60999\n")]);
        let wanted = tunables(&[
            ("vm.swappiness", "10"),
            ("net.ipv4.ip_local_port_range", "1024  65000"),
        ]);
        assert_eq!(check(root.path(), &wanted).len(), 0);
        let mut journal = Journal::open(root.path()).unwrap();
        let mut tuned = Tuned {
            tunables: &wanted,
            applied: Applied::default(),
        };
        apply(root.path(), &wanted, &mut journal, &mut tuned.applied).unwrap();
        assert_eq!(values(root.path(), &wanted), ["1024 65000", "10"]);
        let warnings = tuned.warnings(root.path());
        assert!(
            warnings[0]
                .what
                .contains("does not know net.ipv4.ip_local_port_range, vm.swap")
        );
        assert!(tuned.undo(root.path()).errors.is_empty());
        assert_eq!(values(root.path(), &wanted), ["32768 60999", "60"]);
        let known = tunables(&[("autogroup", "off")]);
        let known = Tuned {
            tunables: &known,
            applied: Applied::default(),
        };
        assert_eq!(known.warnings(root.path()), []);
    }

    #[test]
    fn a_sysctl_that_is_not_there_or_starts_programs_is_refused() {
        let root = machine();
        let error = |name: &str| {
            let errors = check(root.path(), &tunables(&[(name, "1")]));
            errors.first().map(ToString::to_string).unwrap_or_default()
        };
        assert_eq!(
            error("vm.swappines"),
            "tunable vm.swappines: this kernel has none"
        );
        assert!(error("kernel.core_pattern").contains("names programs"));
        for name in ["vm..x", "vm.../../etc/passwd", "..", "vm.a b"] {
            assert!(error(name).contains("named as in sysctl(8)"), "{name}");
        }
    }

    #[test]
    fn a_kernel_without_autogroup_has_it_off() {
        let root = tree(&[(SLICE, "100\n")]);
        let off = tunables(&[("autogroup", "off")]);
        assert_eq!(check(root.path(), &off).len(), 0);
        let mut journal = Journal::open(root.path()).unwrap();
        let mut applied = Applied::default();
        apply(root.path(), &off, &mut journal, &mut applied).unwrap();
        assert_eq!(values(root.path(), &off), ["0"]);
        let on = tunables(&[("autogroup", "on")]);
        assert_eq!(check(root.path(), &on).len(), 1);
    }

    #[test]
    fn a_check_finds_every_problem_at_once() {
        let root = machine();
        let wanted = tunables(&[
            ("autogruop", "off"),
            ("rr_timeslice", "x"),
            ("nr_migrate", "8"),
        ]);
        let errors: Vec<String> = check(root.path(), &wanted)
            .iter()
            .map(|e| e.to_string())
            .collect();
        assert_eq!(errors.len(), 3);
        assert!(errors[0].contains("did you mean autogroup?"), "{errors:?}");
    }

    #[test]
    fn a_knob_that_cannot_be_read_is_not_taken_for_a_value() {
        let wanted = tunables(&[("rr_timeslice", "30ms")]);
        let found = values(tree(&[]).path(), &wanted);
        assert!(found[0].starts_with("unreadable: "));
    }
}
