//! The table of targets. Whoever has to know about targets asks here: the reader of experiment files, the checks
//! of a plan, the lists of the command line and what starts a run.

use crate::def::{
    CONFIGURATION_OF_SSH, Can, Host, Made, MakeFleet, OPTIONS, PROGRAM, START, Short, Shown,
    TargetDef,
};
use crate::{exec, local, slurm, ssh, vm, xen};
use model::{Invalid, TargetSpec};

/// All targets, this machine first.
pub static TARGETS: &[&TargetDef] = &[
    &local::DEF,
    &vm::DEF,
    &xen::DEF,
    &ssh::DEF,
    &exec::DEF,
    &slurm::DEF,
];

/// Names of those lines that start something, of [`TargetDef::shown`].
const THAT_START: [&str; 4] = [CONFIGURATION_OF_SSH, PROGRAM, START, OPTIONS];

/// The lines of a target about what starts as soon as somebody connects to it.
pub fn starts_by_connecting(spec: &TargetSpec) -> Result<Shown, Invalid> {
    let shown = (find_def(spec)?.shown)(spec).map_err(|e| e.in_table("target"))?;
    let starts = |(what, _): &(&str, String)| THAT_START.contains(what);
    Ok(shown.into_iter().filter(starts).collect())
}

/// The target with this name.
pub fn find_by_name(name: &str) -> Option<&'static TargetDef> {
    TARGETS.iter().find(|def| def.name == name).copied()
}

/// The target that this word of a command line means before a colon.
pub fn find_by_short(word: &str) -> Option<(&'static TargetDef, &'static Short)> {
    let all = TARGETS.iter().copied();
    let mut all = all.flat_map(|def| def.shorts.iter().map(move |short| (def, short)));
    all.find(|(_, short)| short.word == word)
}

/// The entry for what an experiment names.
pub fn find_def(spec: &TargetSpec) -> Result<&'static TargetDef, Invalid> {
    find_by_name(spec.kind()).ok_or_else(|| {
        Invalid::new("target", format!("there is no target `{}`", spec.kind()))
            .with_remedy("`schedlab list targets` has all")
    })
}

/// The abilities of the target of an experiment; an error where its keys make none.
pub fn find_abilities(spec: &TargetSpec) -> Result<Can, Invalid> {
    (find_def(spec)?.can)(spec).map_err(|e| e.in_table("target"))
}

/// The CPUs of its agents, where that is known beforehand.
pub fn known_cpus(spec: &TargetSpec) -> Option<u32> {
    find_abilities(spec).ok().and_then(|can| can.cpus)
}

/// The way to the machines of an experiment, where it can want several at once.
pub fn find_fleet(spec: &TargetSpec) -> Result<Option<MakeFleet>, Invalid> {
    let is_several = find_abilities(spec)?.machines.is_some();
    Ok(find_def(spec)?.fleet.filter(|_| is_several))
}

/// The target of an experiment; nothing is started yet.
pub fn make_target(spec: &TargetSpec, host: &Host) -> Made {
    (find_def(spec)?.make)(spec, host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::vm::VmSpec;
    use model::Reset;

    /// Target as the first version of schedlab stored it.
    const STORED: &str = r#"{"kind": "vm", "kernel": "debian:sid", "cpus": 4,
        "memory_bytes": 2147483648, "root": "host", "reset": "block"}"#;

    #[test]
    fn every_target_has_a_name_of_its_own_and_is_found_by_it() {
        for def in TARGETS {
            let same = TARGETS.iter().filter(|other| other.name == def.name);
            assert_eq!(same.count(), 1, "{}", def.name);
            assert_eq!(find_by_name(def.name).map(|d| d.summary), Some(def.summary));
            for short in def.shorts {
                let found = find_by_short(short.word).map(|(def, short)| (def.name, *short));
                assert_eq!(found, Some((def.name, *short)));
                assert!(
                    def.keys.iter().any(|key| key.name == short.key),
                    "{short:?}"
                );
            }
        }
    }

    #[test]
    fn what_a_target_can_is_known_from_its_stored_keys() {
        let spec: TargetSpec = serde_json::from_str(STORED).unwrap();
        let guest = Can {
            kernels: true,
            reboots: false,
            cpus: Some(4),
            apart: true,
            here: true,
            programs_of_here: true,
            is_guest: true,
            machines: None,
            reset: Reset::Block,
        };
        assert_eq!(find_abilities(&spec), Ok(guest));
        assert!(!find_abilities(&TargetSpec::local()).unwrap().kernels);
        assert!(find_fleet(&spec).unwrap().is_none(), "it is one guest");
        let several = STORED.replace("\"cpus\"", "\"guests\": 3, \"cpus\"");
        let several: TargetSpec = serde_json::from_str(&several).unwrap();
        assert_eq!(find_abilities(&several).unwrap().machines, Some(3));
        assert!(find_fleet(&several).unwrap().is_some());
        let vm = VmSpec::from_target(&spec).unwrap();
        assert_eq!(TargetSpec::from(&vm), spec);
    }

    #[test]
    fn keys_that_make_no_target_are_an_error_with_their_place() {
        let other: TargetSpec = serde_json::from_str(r#"{"kind": "moon"}"#).unwrap();
        assert_eq!(
            find_abilities(&other).unwrap_err().what,
            "there is no target `moon`"
        );
        let without = STORED.replace("\"cpus\": 4", "\"cpus\": 0");
        let without: TargetSpec = serde_json::from_str(&without).unwrap();
        let error = find_abilities(&without).unwrap_err();
        assert_eq!(error.key, "target.cpus");
        assert!(error.what.contains("at least one CPU"), "{error}");
    }
}
