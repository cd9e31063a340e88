//! Treatment in a guest is proven, or the trial is void.
//!
//! `make test` builds sched/scx_faulty first, a scheduler that fails in a chosen way.

use super::guests::{KERNEL, experiment, fact, of, trials};
use results::{ResultSet, StoredTrial};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tests::{Bench, beside_others, expect_code, no_guests, sched_program, stdout};

fn faulty() -> Option<PathBuf> {
    sched_program("scx_faulty")
}

/// Why guests with a scheduler that fails cannot be tested here, if so.
pub fn no_faulty_guests() -> Option<&'static str> {
    if let Some(why) = no_guests() {
        return Some(why);
    }
    if faulty().is_none() {
        return Some("sched/scx_faulty is not built; `make test` builds it");
    }
    None
}

/// One arm of the file below: its name, its fault, what else it says.
pub fn arm(name: &str, fault: &str, more: &str) -> String {
    let program = faulty().expect("looked for before");
    format!(
        "[[arm]]\nname = \"{name}\"\nscheduler = \"{}\"\nargs = [\"--fault\", \"{fault}\"]\n{more}\n",
        program.display()
    )
}

/// Figures of `/proc/schedstat`, which not every host's kernel has and the guest's does.
fn expect_schedstat(stored: &StoredTrial, table: &str) {
    for (name, least) in [("schedstat_run_time", 0.001), ("schedstat_timeslices", 1.0)] {
        let found = stored.trial.metric(name).expect(name).value;
        assert!(found >= least, "{name}: {found}");
    }
    let cpus = table
        .lines()
        .skip(1)
        .filter_map(|row| row.split(',').next());
    let cpus: BTreeSet<&str> = cpus.collect();
    assert_eq!(cpus.len(), 2, "{table}");
}

/// One guest under a scheduler that works and under each way in which one can fail.
struct Run {
    code: Option<i32>,
    said: String,
    trials: Vec<StoredTrial>,
    /// `schedstat.csv` of the trial of each arm, in the order of `trials`; empty where it has none.
    tables: Vec<String>,
}

/// The run is made once, by whichever test needs it first.
fn run_of_all_faults() -> &'static Run {
    static RUN: LazyLock<Run> = LazyLock::new(|| {
        let _turn = beside_others();
        let bench = Bench::default();
        let arms = [
            arm("good", "none", ""),
            arm("late", "late:60", "attach-limit = \"2s\""),
            arm("stall", "stall:1", ""),
            arm("error", "error:1", ""),
            arm("never", "never", "attach-limit = \"2s\""),
            arm("exit", "exit", ""),
        ];
        let text = experiment(&arms.concat(), "sleep 5");
        let file = bench.file("faults.toml", &format!("collect = [\"schedstat\"]\n{text}"));
        let output = bench.run(&["run", &file, "-o", "out"]);
        let trials = trials(&bench);
        let table =
            |stored: &StoredTrial| std::fs::read_to_string(stored.dir.join("schedstat.csv"));
        Run {
            code: output.status.code(),
            said: stdout(&output),
            tables: trials
                .iter()
                .map(|t| table(t).unwrap_or_default())
                .collect(),
            trials,
        }
    });
    &RUN
}

#[test]
fn a_scheduler_in_force_is_proven_before_during_and_after() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let run = run_of_all_faults();
    let (said, trials) = (&run.said, &run.trials);
    let with_tables = trials.iter().zip(&run.tables);
    for (stored, table) in with_tables.filter(|(stored, _)| stored.trial.is_ok()) {
        expect_schedstat(stored, table);
    }
    let of_good = &of(trials, "good").trial.result;
    assert!(of_good.evidence.points.len() >= 3, "{of_good:?}");
    let scheduler = fact(of_good, "sched_ext scheduler");
    assert!(scheduler.found.starts_with("faulty"), "{scheduler:?}");
    assert_eq!(scheduler.wanted.as_ref(), Some(&scheduler.found));
    let binary = of_good
        .evidence
        .scheduler_binary
        .as_ref()
        .expect("recorded");
    assert_eq!(binary.sha256.len(), 64);
    let of_default = &of(trials, "eevdf").trial.result;
    let scheduler = fact(of_default, "sched_ext scheduler");
    assert_eq!(
        (scheduler.found.as_str(), scheduler.find_disagreement()),
        ("none", None)
    );
    assert!(said.contains("emulated") || !said.contains("tcg"));
}

#[test]
fn profiles_are_in_force_as_far_as_the_kernel_has_them() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let profiles = bench.path("profiles");
    std::fs::create_dir(&profiles).expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(profiles.join(name), text).expect("written");
    };
    write(
        "short.conf",
        "SCHED_BASE_SLICE_NS=750000\nSCHED_NR_MIGRATE=8\n",
    );
    // Two of CFS that differ in what EEVDF has not.
    let old =
        |latency: u32| format!("SCHED_LATENCY_NS={latency}\nSCHED_MIN_GRANULARITY_NS=3000000\n");
    write("old.conf", &old(24_000_000));
    write("older.conf", &old(3_000_000));
    let output = bench.run(&[
        "run",
        "--vm",
        KERNEL,
        "--memory",
        "1G",
        "--profiles",
        "profiles",
        "--max-blocks",
        "1",
        "-o",
        "out",
        "--",
        "true",
    ]);
    expect_code(&output, 0);
    let trials = trials(&bench);
    let found = |arm: &str, what: &str| {
        let fact = fact(&of(&trials, arm).trial.result, what);
        assert_eq!(fact.wanted.as_ref(), Some(&fact.found));
        fact.found.clone()
    };
    assert_eq!(found("short", "tunable base_slice"), "750000");
    assert_eq!(found("short", "tunable nr_migrate"), "8");
    assert_eq!(found("old", "tunable base_slice"), "3000000");
    assert!(of(&trials, "unchanged").trial.is_ok());
    let report = stdout(&output);
    assert!(report.contains("old and older were the same"), "{report}");
    assert!(report.contains("this kernel has no latency"), "{report}");
}

#[test]
fn a_check_attaches_each_scheduler_once() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let arms = [
        arm("good", "none", ""),
        arm("exits", "exit", ""),
        arm("usage", "no-such-fault", ""),
    ];
    let file = bench.file("check.toml", &experiment(&arms.concat(), "true"));
    let output = bench.run(&["check", &file, "--yes"]);
    expect_code(&output, 3);
    let said = String::from_utf8_lossy(&output.stderr).replace("\n  │ ", " ");
    assert!(said.contains("booting the guest"), "{said}");
    assert!(said.contains("ending at once, as asked"), "{said}");
    assert!(said.contains("no-such-fault"), "{said}");
    assert!(!said.contains("arm good:"), "{said}");

    // What is used in a wrong way is tried once.
    let file = bench.file("usage.toml", &experiment(&arms[2], "true"));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 4);
    let trials = trials(&bench);
    let of_usage = trials.iter().filter(|t| t.trial.arm == "usage");
    assert_eq!(of_usage.count(), 1);
}

#[test]
fn every_way_to_fail_voids_the_trial_with_its_reason_and_gives_no_figure() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let Run { code, trials, .. } = run_of_all_faults();
    assert_eq!(*code, Some(4), "trials are void");
    for (arm, reason) in [
        ("late", "not in force after 2 s"),
        ("stall", "runnable task stall"),
        ("error", "scx_bpf_error"),
        ("never", "not in force after 2 s"),
        ("exit", "ended with exit status: 1 before it was attached"),
    ] {
        let result = &of(trials, arm).trial.result;
        assert_eq!(result.state.name(), "void", "{arm}: {:?}", result.state);
        let why = result.state.why().expect("void trials say why");
        assert!(why.contains(reason), "{arm}: {why}");
        assert!(
            !result.metrics.iter().any(|m| m.metric == "wall_time"),
            "{arm} has a figure"
        );
    }
    for arm in ["eevdf", "good"] {
        assert!(of(trials, arm).trial.is_ok(), "{arm} counts");
    }
}

#[test]
fn a_scheduler_that_is_killed_in_the_middle_voids_the_trial() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let command = "sleep 1; pkill -9 -x scx_faulty; sleep 1; true";
    let file = bench.file(
        "kill.toml",
        &experiment(&arm("killed", "none", ""), command),
    );
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 4);
    let trials = trials(&bench);
    let state = &of(&trials, "killed").trial.result.state;
    assert_eq!(state.name(), "void", "{state:?}");
    assert!(
        state.why().is_some_and(|w| w.contains("signal: 9")),
        "{state:?}"
    );
}

/// The Debian kernel that a check has just fetched: the directory of its modules, in which
/// the image lies.
fn cached_kernel() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = set("SCHEDLAB_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("schedlab")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/schedlab")))
        .expect("a cache");
    let entries = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut releases = entries(cache.join("kernels"))
        .flat_map(|package| entries(package.path().join("usr/lib/modules")))
        .map(|release| release.path());
    releases
        .find(|dir| dir.join("vmlinuz").exists())
        .expect("a Debian kernel")
}

/// A kernel whose image says `#9` where the kernel in it says `#1`.
fn kernel_that_says_another_build(right: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(right).expect("readable").flatten() {
        let copy = to.join(entry.file_name());
        if entry.file_name() != "vmlinuz" {
            std::os::unix::fs::symlink(entry.path(), copy).expect("a link");
            continue;
        }
        let mut bytes = std::fs::read(entry.path()).expect("readable");
        let head = &bytes[..0x8000.min(bytes.len())];
        let at = head.windows(6).position(|part| part == b") #1 S");
        bytes[at.expect("the build in the setup header") + 3] = b'9';
        std::fs::write(copy, bytes).expect("room");
    }
}

#[test]
fn a_guest_with_another_kernel_than_its_arm_says_is_void_with_both_names() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let right = bench.file("right.toml", &experiment("", "true"));
    expect_code(&bench.run(&["check", &right]), 0);
    kernel_that_says_another_build(&cached_kernel(), &bench.path("kernel"));
    let image = bench.path("kernel/vmlinuz");
    let arm = format!(
        "[[arm]]\nname = \"other\"\nkernel = \"{}\"\n",
        image.display()
    );
    let file = bench.file("other.toml", &experiment(&arm, "true"));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 4);
    let trials = trials(&bench);
    let other = &of(&trials, "other").trial.result;
    let why = other.state.why().expect("void");
    assert!(why.starts_with("the kernel was "), "{why}");
    assert!(why.contains(" #1 SMP") && why.contains(" #9 SMP"), "{why}");
    assert!(other.metrics.is_empty());
    let right = &of(&trials, "eevdf").trial.result;
    assert_eq!(right.state.why(), None);
    for what in ["kernel", "kernel build ID"] {
        let fact = fact(right, what);
        assert_eq!(fact.wanted.as_ref(), Some(&fact.found));
    }
    // Only the text in the image is another one, the kernel in it is the same.
    assert_eq!(fact(other, "kernel build ID").find_disagreement(), None);
}

#[test]
fn an_ejection_that_is_counted_is_an_outcome_and_the_next_trial_attaches_again() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let arms = arm("thrown", "error:4", "");
    let text = experiment(&arms, "sleep 8").replace("blocks = 1", "blocks = 2");
    // On a busy machine a scheduler may be thrown out before the window opens.
    let text = text.replace("max-attempts = 1", "max-attempts = 3");
    let text = format!("[[event]]\nname = \"thrown out\"\nwhen = \"ejected\"\n{text}");
    let output = bench.run(&["run", &bench.file("x.toml", &text), "-o", "out"]);
    let trials = trials(&bench);
    let thrown = trials.iter().filter(|stored| stored.trial.arm == "thrown");
    let mut outcomes = 0;
    for StoredTrial { dir, trial } in thrown.filter(|stored| stored.trial.is_ok()) {
        outcomes += 1;
        let event = trial.find_event("thrown out").expect("counted");
        assert!(event.ended_window && event.count() == 1, "{event:?}");
        assert!(event.messages[0].contains("scx_bpf_error"), "{event:?}");
        // A part of the eight seconds, up to the moment that the kernel's log has.
        assert_eq!(event.at_ns, [trial.result.window_end_ns]);
        assert!(event.exposure_ns < 8_000_000_000, "{event:?}");
        let log = std::fs::read_to_string(dir.join("scheduler.log")).expect("kept");
        assert!(log.contains("the error that was asked for"), "{log}");
    }
    assert_eq!(outcomes, 2, "{}", stdout(&output));
    let of_default = of(&trials, "eevdf").trial.find_event("thrown out");
    let of_default = of_default.expect("counted");
    assert_eq!((of_default.count(), of_default.ended_window), (0, false));
    let said = stdout(&bench.run(&["verify", "out"]));
    assert!(said.contains("proves the arm in all"), "{said}");
}

#[test]
fn a_hunt_provokes_in_its_guest_and_ends_where_an_arm_was_thrown_out_often_enough() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let event = "[[event]]\nname = \"thrown out\"\nwhen = \"ejected\"\nat-most = 1\n";
    let arms = arm("thrown", "error:6", "");
    let text = format!("{event}{}", experiment(&arms, "sleep 9"));
    let text = text.replace("max-attempts = 1", "max-attempts = 3");
    let file = bench.file("x.toml", &text);
    let hunt = ["hunt", &file, "-o", "out", "--provoke", "affinity,cgroups"];
    let said = stdout(&bench.run(&hunt));
    let results = ResultSet::read(&bench.path("out")).expect("readable");
    // Without the end there would be two thousand blocks.
    assert_eq!(results.experiment.stop.max_blocks, 2_000);
    let counted = results.trials.iter().filter(|stored| stored.trial.is_ok());
    let counted: Vec<&str> = counted.map(|stored| stored.trial.arm.as_str()).collect();
    assert_eq!(counted.len(), 2, "{said}");
    let of_default = &of(&results.trials, "eevdf").trial.result;
    let beside = of_default.metrics.iter().map(|m| m.metric.as_str());
    let beside: Vec<&str> = beside.filter(|name| name.contains("antagonist")).collect();
    assert!(!beside.is_empty(), "{:?}", of_default.metrics);
    let thrown = results.trials.iter().map(|stored| &stored.trial);
    let thrown = thrown.filter(|trial| trial.arm == "thrown" && trial.is_ok());
    let events = thrown.filter_map(|trial| trial.find_event("thrown out"));
    assert_eq!(events.map(|event| event.count()).sum::<u64>(), 1, "{said}");
}
