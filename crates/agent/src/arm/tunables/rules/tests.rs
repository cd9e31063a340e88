use super::*;
use crate::arm::tunables::{Applied, apply, read_facts};
use crate::journal::Journal;
use crate::kernel_file::fake;
use ::tests::tree;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const KERNEL: &str = "proc/sys/kernel";
const DEBUG: &str = "sys/kernel/debug/sched";
const GROUP: &str = "sys/fs/cgroup/cpu";
/// Slices without the factor of the scaling, from which the kernel sets them when a CPU comes. No
/// file of a real kernel shows them.
const NORMALISED: &str = "normalised";

/// Ties tunables to each other as Linux does, and may die after some writes.
struct Linux {
    root: PathBuf,
    writes_left: Option<usize>,
}

fn now(root: &Path, path: &str) -> i64 {
    collect::read_number(&root.join(path)).unwrap()
}

/// As `to_ratio` of kernel/sched/core.c: no bound is the whole.
fn share(period: i64, runtime: i64) -> i64 {
    match runtime {
        -1 => 1 << 20,
        runtime => (runtime << 20) / period,
    }
}

impl Linux {
    fn takes_realtime(&self, period: i64, runtime: i64) -> bool {
        let of_group = match self.root.join(GROUP).is_dir() {
            true => share(
                now(&self.root, &format!("{GROUP}/cpu.rt_period_us")),
                now(&self.root, &format!("{GROUP}/cpu.rt_runtime_us")),
            ),
            false => 0,
        };
        (runtime == -1 || runtime <= period) && of_group <= share(period, runtime)
    }
}

impl fake::Kernel for Linux {
    fn takes(&mut self, path: &Path, text: &str) -> bool {
        if let Some(left) = &mut self.writes_left {
            let Some(less) = left.checked_sub(1) else {
                return false;
            };
            *left = less;
        }
        let value: i64 = text.parse().unwrap();
        let of = |name: &str| now(&self.root, &format!("{KERNEL}/sched_{name}"));
        match path.file_name().unwrap().to_str().unwrap() {
            "sched_rt_period_us" => self.takes_realtime(value, of("rt_runtime_us")),
            "sched_rt_runtime_us" => self.takes_realtime(of("rt_period_us"), value),
            "sched_deadline_period_min_us" => value <= of("deadline_period_max_us"),
            "sched_deadline_period_max_us" => value >= of("deadline_period_min_us"),
            "sched_util_clamp_min" => value <= of("util_clamp_max"),
            "sched_util_clamp_max" => value >= of("util_clamp_min"),
            _ => true,
        }
    }

    fn was_written(&mut self, path: &Path) {
        if path.ends_with("tunable_scaling") {
            normalise_slices(&self.root);
        }
    }
}

/// As `sched_update_scaling` of kernel/sched/fair.c, on four CPUs.
fn normalise_slices(root: &Path) {
    let factor = match now(root, &format!("{DEBUG}/tunable_scaling")) {
        0 => 1,
        1 => 3,
        _ => 4,
    };
    let slice = |name: &str| now(root, &format!("{DEBUG}/{name}_ns")) / factor;
    let slices = [
        "base_slice",
        "latency",
        "min_granularity",
        "wakeup_granularity",
    ]
    .map(slice);
    fs::write(root.join(NORMALISED), format!("{slices:?}")).unwrap();
}

fn machine(has_groups: bool) -> tempfile::TempDir {
    let kernel = |name: &str, text: &'static str| (format!("{KERNEL}/sched_{name}"), text);
    let debug = |name: &str, text: &'static str| (format!("{DEBUG}/{name}"), text);
    let mut files = vec![
        kernel("rt_period_us", "1000000"),
        kernel("rt_runtime_us", "950000"),
        kernel("deadline_period_min_us", "100"),
        kernel("deadline_period_max_us", "1000000"),
        kernel("util_clamp_min", "200"),
        kernel("util_clamp_max", "800"),
        debug("base_slice_ns", "2400000"),
        debug("latency_ns", "2400000"),
        debug("min_granularity_ns", "2400000"),
        debug("wakeup_granularity_ns", "2400000"),
        debug("tunable_scaling", "1"),
    ];
    if has_groups {
        files.push((format!("{GROUP}/cpu.rt_period_us"), "1000000"));
        files.push((format!("{GROUP}/cpu.rt_runtime_us"), "950000"));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
    let root = tree(&files);
    normalise_slices(root.path());
    root
}

fn boot(root: &Path, writes_left: Option<usize>) {
    let root = root.to_owned();
    fake::boot(Linux { root, writes_left });
}

/// All files that a kernel has, by their paths.
fn state(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => directories.push(path),
                path => {
                    let text = fs::read_to_string(&path).unwrap();
                    files.insert(path, text.trim().to_owned());
                }
            }
        }
    }
    files
}

/// Values of a member and of the last one of its rule, above and below what they are.
fn values(rule: &Rule) -> &'static [(&'static str, &'static str)] {
    match rule.last {
        "rt_runtime" => &[
            ("100000", "50000"),
            ("2000000", "1900000"),
            ("100000", "-1"),
            ("950000", "950000"),
        ],
        "deadline_period_min_us" => &[("80", "50"), ("9000000", "4000000"), ("500", "100")],
        "kernel.sched_util_clamp_min" => &[("100", "50"), ("1000", "900"), ("200", "0")],
        "tunable_scaling" => &[("1200000", "0"), ("4800000", "2"), ("4800000", "1")],
        other => panic!("{other} has no values to try"),
    }
}

/// Every arm of a pair that shares a rule: both, the member alone, the last one alone. What the
/// kernel could not have is left out.
fn arms(root: &Path) -> Vec<Tunables> {
    let mut arms = Vec::new();
    for rule in RULES {
        for member in rule.members {
            for (of_member, of_last) in values(rule) {
                let named = [(*member, *of_member), (rule.last, *of_last)];
                for chosen in [&named[..], &named[..1], &named[1..]] {
                    let pairs = chosen.iter().map(|(n, v)| (n.to_string(), v.to_string()));
                    arms.push(pairs.collect::<Tunables>());
                }
            }
        }
    }
    arms.retain(|arm| check(root, arm).is_empty());
    arms.dedup();
    arms
}

/// Puts the arm in force; gives what takes it back, and the journal's directory.
fn put_in_force(root: &Path, arm: &Tunables) -> (Applied, tempfile::TempDir, bool) {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(directory.path()).unwrap();
    let mut applied = Applied::default();
    let is_in_force = apply(root, arm, &mut journal, &mut applied).is_ok();
    (applied, directory, is_in_force)
}

#[test]
fn every_pair_that_shares_a_rule_is_set_and_read_as_before_after_its_undo() {
    for has_groups in [false, true] {
        let root = machine(has_groups);
        let before = state(root.path());
        boot(root.path(), None);
        let arms = arms(root.path());
        assert!(arms.len() > 30, "{}", arms.len());
        for arm in arms {
            let (applied, _journal, is_in_force) = put_in_force(root.path(), &arm);
            assert!(is_in_force, "{arm:?}");
            for fact in read_facts(root.path(), &arm) {
                assert!(arm.values().any(|value| *value == fact.found), "{fact:?}");
            }
            applied.undo().unwrap();
            assert_eq!(state(root.path()), before, "{arm:?}");
        }
    }
}

#[test]
fn every_pair_that_shares_a_rule_is_read_as_before_after_a_kill_at_any_write() {
    for has_groups in [false, true] {
        let root = machine(has_groups);
        let before = state(root.path());
        boot(root.path(), None);
        for arm in arms(root.path()) {
            for writes in 0..20 {
                boot(root.path(), Some(writes));
                let (_, journal, is_in_force) = put_in_force(root.path(), &arm);
                boot(root.path(), None);
                let replayed = Journal::open(journal.path()).unwrap().replay().unwrap();
                assert!(replayed.failed.is_empty(), "{arm:?} {writes}: {replayed:?}");
                assert_eq!(state(root.path()), before, "{arm:?} {writes}");
                if is_in_force {
                    break;
                }
                assert!(writes < 19, "{arm:?} is never in force");
            }
        }
    }
}

#[test]
fn arms_that_take_turns_are_read_as_before_whatever_the_order_of_their_turns() {
    let root = machine(true);
    let before = state(root.path());
    boot(root.path(), None);
    let arms = arms(root.path());
    for (index, arm) in arms.iter().enumerate() {
        let next = &arms[(index + 7) % arms.len()];
        let directory = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(directory.path()).unwrap();
        let mut applied = Applied::default();
        apply(root.path(), arm, &mut journal, &mut applied).unwrap();
        applied.undo().unwrap();
        apply(root.path(), next, &mut journal, &mut Applied::default()).unwrap();
        let replayed = Journal::open(directory.path()).unwrap().replay().unwrap();
        assert!(replayed.failed.is_empty(), "{arm:?} {next:?}: {replayed:?}");
        assert_eq!(state(root.path()), before, "{arm:?} {next:?}");
    }
}

#[test]
fn slices_that_are_set_stay_when_a_cpu_comes() {
    let root = machine(false);
    boot(root.path(), None);
    let arm = [("base_slice", "1200000"), ("tunable_scaling", "0")];
    let arm = arm.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
    let (applied, _journal, _) = put_in_force(root.path(), &arm);
    let normalised = fs::read_to_string(root.path().join(NORMALISED)).unwrap();
    assert!(normalised.starts_with("[1200000,"), "{normalised}");
    applied.undo().unwrap();
}

#[test]
fn a_value_above_the_one_that_stays_is_told_before_anything_is_set() {
    let root = machine(false);
    let errors = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(n, v)| (n.to_string(), v.to_string()));
        let errors = super::super::check(root.path(), &pairs.collect());
        let each = errors.iter().map(|e| format!("{e}; {}", e.remedy()));
        each.collect::<Vec<String>>()
    };
    assert_eq!(
        errors(&[("rt_period", "100ms")]),
        [
            "tunable rt_runtime: 950000 is above rt_period, which is 100000; set rt_period and \
             rt_runtime together"
        ]
    );
    assert_eq!(
        errors(&[("rt_period", "100ms"), ("rt_runtime", "50ms")]).len(),
        0
    );
    assert_eq!(
        errors(&[("rt_period", "100ms"), ("rt_runtime", "-1")]).len(),
        0
    );
}

#[test]
fn a_tunable_for_which_the_kernel_forgets_another_is_refused() {
    let root = tree(&[
        ("proc/sys/vm/dirty_ratio", "20\n"),
        ("proc/sys/vm/dirty_bytes", "0\n"),
    ]);
    let errors = |name: &str| {
        let arm = [(name.to_owned(), "4096".to_owned())].into();
        super::super::check(root.path(), &arm).len()
    };
    assert_eq!((errors("vm.dirty_bytes"), errors("vm.dirty_ratio")), (1, 0));
}

#[test]
fn what_an_unknown_rule_of_the_kernel_refuses_is_tried_again_after_the_others() {
    /// `first` is never above `second`, and no table says so.
    struct Unknown(PathBuf);
    impl fake::Kernel for Unknown {
        fn takes(&mut self, path: &Path, text: &str) -> bool {
            let value: i64 = text.parse().unwrap();
            match path.ends_with("first") {
                true => value <= now(&self.0, "proc/sys/x/second"),
                false => value >= now(&self.0, "proc/sys/x/first"),
            }
        }
        fn was_written(&mut self, _: &Path) {}
    }
    let root = tree(&[("proc/sys/x/first", "10"), ("proc/sys/x/second", "20")]);
    fake::boot(Unknown(root.path().to_owned()));
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(directory.path()).unwrap();
    for (name, text) in [("second", "20"), ("first", "10")] {
        let path = root.path().join("proc/sys/x").join(name);
        let text = text.to_owned();
        journal
            .record(crate::journal::Undo::Write { path, text })
            .unwrap();
    }
    fs::write(root.path().join("proc/sys/x/second"), "5").unwrap();
    fs::write(root.path().join("proc/sys/x/first"), "1").unwrap();
    let replayed = journal.replay().unwrap();
    assert!(replayed.failed.is_empty(), "{replayed:?}");
    assert_eq!(now(root.path(), "proc/sys/x/first"), 10);
    assert_eq!(now(root.path(), "proc/sys/x/second"), 20);
    assert_eq!(
        fs::metadata(directory.path().join("journal.jsonl"))
            .unwrap()
            .len(),
        0
    );
}
