use super::*;
use crate::journal::Journal;
use ::tests::tree;
use std::fs;

const EEVDF: [(&str, &str); 3] = [
    ("sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
    ("sys/kernel/debug/sched/migration_cost_ns", "500000\n"),
    ("sys/kernel/debug/sched/nr_migrate", "32\n"),
];
/// As the scripts for CFS have it.
const CLASSIC: &str = "# Lowest latency\nPROFILE_NAME=\"low latency\"\n\
                       SCHED_LATENCY_NS=3000000\nSCHED_MIN_GRANULARITY_NS=500000\n\
                       export SCHED_WAKEUP_GRANULARITY_NS=500000\n\
                       SCHED_MIGRATION_COST_NS=250000 # as before\n";

fn arm(text: &str) -> Result<Arm, Invalid> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    let mut arm = Arm::unchanged("a");
    let change = format!("profile={}", file.path().display());
    Profile.parse(&change, &mut arm).unwrap().map(|()| arm)
}

fn pairs(tunables: &Tunables) -> Vec<(&str, &str)> {
    tunables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[test]
fn the_three_ways_of_writing_a_profile_say_the_same() {
    let expected = [("latency", "24000000"), ("migration_cost", "500000")];
    for text in [
        "SCHED_LATENCY_NS=24000000\nSCHED_MIGRATION_COST_NS=500000\n",
        "kernel.sched_latency_ns = 24000000\nkernel.sched_migration_cost_ns=500000\n",
        "latency = \"24000000\"\nmigration_cost = 500000\n",
    ] {
        assert_eq!(pairs(&of(&arm(text).unwrap())), expected, "{text}");
    }
    let eevdf = arm("SCHED_BASE_SLICE_NS=750000\nSCHED_NR_MIGRATE=64\n").unwrap();
    let expected = [("base_slice", "750000"), ("nr_migrate", "64")];
    assert_eq!(pairs(&of(&eevdf)), expected);
}

#[test]
fn a_wrong_line_is_named_and_nothing_of_it_is_taken() {
    let error = |text| arm(text).unwrap_err().what;
    let misspelt = error("SCHED_LATENCY_NS=1000000\nSCHED_MIGRATION_COTS_NS=1\n");
    assert!(misspelt.contains("line 2"), "{misspelt}");
    assert!(
        misspelt.contains("did you mean `migration_cost`?"),
        "{misspelt}"
    );
    assert!(error("SCHED_LATENCY_NS=\n").contains("no value"));
    assert!(error("SCHED_LATENCY_NS 5\n").contains("NAME=VALUE"));
    assert!(error("latency=1ms\nSCHED_LATENCY_NS=1000000\n").contains("twice"));
    assert!(error("PROFILE_NAME=x\n").contains("no tunables"));
    let around = Around {
        boots: false,
        reboots: false,
        workloads: &[],
    };
    let outside = arm("base_slice=1ns\n").unwrap();
    let error = Profile.check(&outside, &around).unwrap_err();
    assert!(error.what.contains("outside 100us to 1s"), "{error}");
    let mut both = arm("base_slice=1ms\n").unwrap();
    both.tunables
        .insert("base_slice".to_owned(), "2ms".to_owned());
    assert!(Profile.check(&both, &around).is_err());
}

#[test]
fn old_names_are_translated_and_the_rest_is_said() {
    let root = tree(&EEVDF);
    let arm = arm(CLASSIC).unwrap();
    let taken = Taken::of(root.path(), &of(&arm));
    let expected = [("base_slice", "500000"), ("migration_cost", "250000")];
    assert_eq!(pairs(&taken.tunables), expected);
    assert_eq!(taken.left_out, ["latency", "wakeup_granularity"]);
    assert_eq!(Profile.require(root.path(), &arm, &[]), []);
    let workload = Workload::new(model::Kind::new("wakeup"));
    let change = Profile.make_change(&arm, &workload).unwrap();
    let warnings = change.warnings(root.path());
    assert!(warnings[0].what.contains("latency, wakeup_granularity"));
}

/// As distributions ship it, with what is not about the scheduler and of one kernel only.
#[test]
fn a_file_of_sysctl_d_is_taken_and_what_is_not_set_is_said() {
    let root = tree(&[
        ("proc/sys/kernel/sched_autogroup_enabled", "0\n"),
        ("proc/sys/kernel/sched_cfs_bandwidth_slice_us", "5000\n"),
        ("proc/sys/vm/swappiness", "60\n"),
    ]);
    let arm = arm(
        "; what a desktop ships\n# own words\n-kernel.sched_autogroup_enabled = 1\n\
                   kernel/sched_cfs_bandwidth_slice_us = 3000\nvm.swappiness = 10\n\
                   kernel.sched_bore = 1\nkernel.core_pattern = |/bin/x\n-net.*.rp_filter\n\
                   net.ipv4.conf.*.rp_filter = 2\nnet/ipv4/conf/eth0.2/rp_filter = 2\n",
    )
    .unwrap();
    let around = Around {
        boots: false,
        reboots: false,
        workloads: &[],
    };
    Profile.check(&arm, &around).unwrap();
    assert_eq!(Profile.require(root.path(), &arm, &[]), []);
    let taken = Taken::of(root.path(), &of(&arm));
    let expected = [
        ("autogroup", "1"),
        ("cfs_bandwidth_slice", "3000"),
        ("vm.swappiness", "10"),
    ];
    assert_eq!(pairs(&taken.tunables), expected);
    assert_eq!(taken.left_out, ["bore"]);
    let not_set = [
        "kernel.core_pattern",
        "net.ipv4.conf.*.rp_filter",
        "net/ipv4/conf/eth0.2/rp_filter",
    ];
    assert_eq!(taken.not_set, not_set);
    let said = warnings(&root, &arm);
    for name in not_set.iter().chain(&["bore", "vm.swappiness"]) {
        assert!(said.contains(name), "{name}: {said}");
    }
}

fn warnings(root: &tempfile::TempDir, arm: &Arm) -> String {
    let workload = Workload::new(model::Kind::new("wakeup"));
    let change = Profile.make_change(arm, &workload).unwrap();
    let warnings = change.warnings(root.path());
    warnings
        .iter()
        .map(|warning| warning.what.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_name_in_capitals_that_is_no_tunable_is_said_and_a_misprint_is_an_error() {
    let root = tree(&[("proc/sys/kernel/sched_rr_timeslice_ms", "100\n")]);
    let slices = arm("SCHED_RR_TIMESLICE_MS=90\nMIN_BASE_SLICE_NS=2000000\n").unwrap();
    let taken = Taken::of(root.path(), &of(&slices));
    assert_eq!(pairs(&taken.tunables), [("rr_timeslice", "90")]);
    assert!(warnings(&root, &slices).contains("schedlab sets no MIN_BASE_SLICE_NS"));
    for misprint in ["MIGRATON_COST_NS=1", "RR_TIMESLCIE_MS=9", "base_silce=1ms"] {
        let refused = arm(&format!("SCHED_RR_TIMESLICE_MS=90\n{misprint}\n")).unwrap_err();
        let said = refused.what;
        assert!(
            said.contains("line 2") && said.contains("did you mean"),
            "{said}"
        );
    }
}

#[test]
fn a_new_name_goes_before_a_translation() {
    let both = arm("min_granularity=1ms\nbase_slice=2ms\n").unwrap();
    let taken = Taken::of(tree(&EEVDF).path(), &of(&both));
    assert_eq!(pairs(&taken.tunables), [("base_slice", "2ms")]);
    assert_eq!(taken.left_out, ["min_granularity"]);
}

#[test]
fn a_profile_is_proven_and_put_back() {
    let root = tree(&EEVDF);
    let profile = of(&arm(CLASSIC).unwrap());
    let mut applied = Applied::default();
    let mut journal = Journal::open(root.path()).unwrap();
    let taken = Taken::of(root.path(), &profile);
    tunables::apply(root.path(), &taken.tunables, &mut journal, &mut applied).unwrap();
    let slice = root.path().join(EEVDF[0].0);
    assert_eq!(fs::read_to_string(&slice).unwrap().trim(), "500000");
    let in_force = InForce { profile, applied };
    let facts = |in_force: &InForce| {
        in_force.facts(&At {
            root: root.path(),
            policies: &[],
            leaders: &[],
            roles: &crate::roles::Roles::default(),
        })
    };
    assert!(
        facts(&in_force)
            .iter()
            .all(|fact| fact.find_disagreement().is_none())
    );
    fs::write(&slice, "900000\n").unwrap();
    let wrong: Vec<String> = facts(&in_force)
        .iter()
        .filter_map(Fact::find_disagreement)
        .collect();
    assert_eq!(wrong, ["the tunable base_slice was 900000, not 500000"]);
    in_force.applied.undo().unwrap();
    assert_eq!(fs::read_to_string(&slice).unwrap().trim(), "2800000");
}

#[test]
fn a_kernel_without_any_of_it_is_a_problem() {
    let files = [("sys/kernel/debug/sched/nr_migrate", "32\n")];
    let only_old = arm("SCHED_LATENCY_NS=3000000\n").unwrap();
    let problems = Profile.require(tree(&files).path(), &only_old, &[]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].what.contains("none of the tunables"));
}
