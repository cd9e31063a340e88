//! Xen in a virtual machine: guests of it under its schedulers, what is proven of them, and what
//! becomes of a guest that is lost.

#![allow(clippy::unwrap_used)]

use model::{TrialResult, TrialState};
use results::ResultSet;
use std::process::Output;
use tests::{Bench, alone, expect_code, no_guests, skipped, stderr};

const TARGET: &str = "[target]\nkind = \"xen\"\naccel = \"tcg\"\nmemory = \"2G\"\n";

fn arm(name: &str, scheduler: &str) -> String {
    format!("[[arm]]\nname = \"{name}\"\nhypervisor-scheduler = {scheduler}\n")
}

/// Two workers that both want a whole CPU, one with twice the weight of the other.
fn workload(more: &str) -> String {
    format!(
        "[[workload]]\nkind = \"burnwait\"\nworkers = \"guests\"\nloads = [1]\nduration = \"4s\"\n\
         warmup = \"2s\"\ninterval = \"1s\"\ntime-limit = \"20m\"\n{more}\
         [[workload.set]]\nname = \"heavy\"\nevents = [\"500 10us\"]\nweight = 512\n\
         [[workload.set]]\nname = \"light\"\nevents = [\"500 10us\"]\nweight = 256\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\nmax-attempts = 1\n"
    )
}

/// The packages of the hypervisor may be out of reach.
fn not_to_be_had(output: &Output) -> Option<String> {
    let text = stderr(output);
    let lost = ["cannot be fetched", "cannot be downloaded"];
    lost.iter()
        .any(|words| text.contains(words))
        .then_some(text)
}

/// Runs the experiment; `None`, said, where it cannot be.
fn run(bench: &Bench, command: &str, text: &str) -> Option<Output> {
    if let Some(why) = no_guests() {
        skipped(why);
        return None;
    }
    let _turn = alone();
    let file = bench.file("experiment.toml", text);
    let output = match command {
        "run" => bench.run(&["run", &file, "--output", "out"]),
        command => bench.run(&[command, &file]),
    };
    match not_to_be_had(&output) {
        Some(why) => {
            skipped(why);
            None
        }
        None => Some(output),
    }
}

fn found<'a>(result: &'a TrialResult, what: &str) -> &'a str {
    let mut facts = result.evidence.facts.iter();
    let fact = facts.find(|fact| fact.what == what);
    &fact
        .unwrap_or_else(|| panic!("{what}: {:?}", result.evidence))
        .found
}

fn value(result: &TrialResult, name: &str) -> f64 {
    let mut metrics = result.metrics.iter();
    let metric = metrics.find(|metric| metric.metric == name);
    metric
        .unwrap_or_else(|| panic!("{name}: {:?}", result.metrics))
        .value
}

#[test]
fn guests_run_under_the_scheduler_of_the_arm_by_their_weights() {
    expect_weights(&arm("credit", CREDIT), 1);
}

#[test]
#[ignore = "a boot of emulated Xen for each scheduler; make test-long runs it"]
fn guests_run_under_each_scheduler_by_their_weights() {
    expect_weights(
        &[arm("credit2", "\"credit2\""), arm("credit", CREDIT)].concat(),
        2,
    );
}

const CREDIT: &str = "{ scheduler = \"credit\", timeslice = \"5ms\", cpus = \"1\" }";

/// Every arm is proven, and its guests have shares of the CPU by their weights.
fn expect_weights(arms: &str, count: usize) {
    let bench = Bench::default();
    // All of Xen may hang as a pool of credit is removed (`slow_down` in xen/src/pool.rs), and a
    // guest of a busy machine may tell its clock too late: such a trial is repeated.
    let workload = workload("").replace("max-attempts = 1", "max-attempts = 3");
    let text = [TARGET, arms, &workload].concat();
    let Some(output) = run(&bench, "run", &text) else {
        return;
    };
    expect_code(&output, 0);
    let mut trials = ResultSet::read(&bench.path("out")).unwrap().trials;
    // The others were repeated.
    trials.retain(|trial| trial.trial.result.state.why().is_none());
    assert_eq!(trials.len(), count);
    for trial in trials {
        let result = &trial.trial.result;
        assert_eq!(found(result, "scheduler of the CPU pool"), trial.trial.arm);
        assert_eq!(found(result, "CPUs of the CPU pool"), "1");
        if trial.trial.arm == "credit" {
            assert_eq!(found(result, "timeslice of the CPU pool"), "5ms");
        }
        // Emulated CPUs are no instrument: the shares are far from equal, and no more is said.
        let csv = std::fs::read_to_string(trial.dir.join("guests.csv")).unwrap();
        let seconds = |set: &str| -> f64 {
            let row = csv.lines().find(|row| row.split(',').nth(1) == Some(set));
            let columns: Vec<&str> = row.unwrap().split(',').collect();
            assert_eq!(columns[3], if set == "heavy" { "512" } else { "256" });
            columns[5].parse().unwrap()
        };
        let ratio = seconds("heavy") / seconds("light");
        assert!((1.4..2.8).contains(&ratio), "{}: {csv}", trial.trial.arm);
        assert!(value(result, "fairness_percent") > 80.0, "{result:?}");
        assert!(value(result, "guests_steal_percent") > 10.0, "{result:?}");
    }
}

/// Figures of the trials of a run, all of which are ok.
fn figures(bench: &Bench, out: &str) -> Vec<impl PartialEq + std::fmt::Debug> {
    let trials = ResultSet::read(&bench.path(out))
        .unwrap()
        .trials
        .into_iter();
    let metrics = trials.map(|stored| {
        let result = stored.trial.result;
        assert_eq!(result.state, TrialState::Ok, "{result:?}");
        result.metrics
    });
    metrics.collect()
}

#[test]
#[ignore = "six boots of emulated Xen; make test-long runs it"]
fn guests_in_virtual_time_give_the_same_figures_for_the_same_seed() {
    let bench = Bench::default();
    let arms = arm("credit", "\"credit\"") + &arm("credit2", "\"credit2\"");
    let target = TARGET.to_owned() + "clock = \"virtual\"\n";
    let workload = workload("")
        .replace("weight = 512", "weight = 512\nsoft-cpus = \"0\"")
        .replace(
            "duration = \"4s\"\nwarmup = \"2s\"",
            "duration = \"1s\"\nwarmup = \"500ms\"",
        );
    let text = target + &arms + &workload;
    let Some(output) = run(&bench, "run", &text) else {
        return;
    };
    expect_code(&output, 0);
    let _turn = alone();
    let again = bench.run(&["run", "experiment.toml", "--output", "again"]);
    expect_code(&again, 0);
    assert_eq!(figures(&bench, "out"), figures(&bench, "again"));
    expect_code(&bench.run(&["gate", "out", "again", "--virtual"]), 0);
}

#[test]
#[ignore = "a minute of a Xen that scripts/xen-hypervisor builds; make test-long runs both"]
fn a_rebuilt_hypervisor_has_rtds_and_null_whose_pools_come_and_go() {
    let xen = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/xen");
    if !xen.join("boot").is_dir() {
        return skipped("target/xen is not there: scripts/xen-hypervisor builds it");
    }
    let bench = Bench::default();
    // Another budget than the usual one, which the guest may not exceed.
    let rtds = "{ scheduler = \"rtds\", budget = \"3ms\", period = \"10ms\", extratime = false }";
    let arms = [
        arm("credit2", "\"credit2\""),
        arm("rtds", rtds),
        arm("null", "\"null\""),
    ]
    .concat();
    let target = format!("{TARGET}xen = \"{}\"\n", xen.display());
    let workload = "[[workload]]\nkind = \"burnwait\"\nworkers = \"guests\"\nloads = [1]\n\
                    duration = \"3s\"\nwarmup = \"1s\"\ntime-limit = \"10m\"\n\
                    [[workload.set]]\nname = \"w\"\nevents = [\"70 20us\"]\n\
                    [stop]\nmin-blocks = 2\nmax-blocks = 2\nmax-attempts = 3\n";
    let Some(output) = run(
        &bench,
        "run",
        &[target.as_str(), arms.as_str(), workload].concat(),
    ) else {
        return;
    };
    expect_code(&output, 0);
    let trials = ResultSet::read(&bench.path("out")).unwrap().trials;
    for name in ["credit2", "rtds", "null"] {
        let of_arm = trials.iter().filter(|trial| trial.trial.arm == name);
        assert_eq!(of_arm.count(), 2, "{name}");
    }
    for trial in trials {
        let result = &trial.trial.result;
        assert_eq!(result.state, TrialState::Ok, "{result:?}");
        assert_eq!(found(result, "scheduler of the CPU pool"), trial.trial.arm);
        if trial.trial.arm == "rtds" {
            let csv = std::fs::read_to_string(trial.dir.join("guests.csv")).unwrap();
            assert!(csv.contains(",3000,10000,false\n"), "{csv}");
            let percent = value(result, "cpu_percent");
            assert!((20.0..45.0).contains(&percent), "{percent}: {csv}");
        }
    }
}

#[test]
#[ignore = "a minute and a half of emulated Xen; make test-long runs it"]
fn the_toolstack_chooses_numa_nodes_unless_the_arm_keeps_it_from_that() {
    let bench = Bench::default();
    let anywhere = "{ scheduler = \"credit2\", numa-placement = false }";
    let arms = arm("placed", "\"credit2\"") + &arm("anywhere", anywhere);
    let target =
        TARGET.replace("2G", "4G") + "topology = { sockets = 2, cores = 1, numa-nodes = 2 }\n";
    let text = [target, arms, workload("")].concat();
    let Some(output) = run(&bench, "run", &text) else {
        return;
    };
    expect_code(&output, 0);
    let trials = ResultSet::read(&bench.path("out")).unwrap().trials;
    assert_eq!(trials.len(), 2);
    for trial in trials {
        let result = &trial.trial.result;
        assert_eq!(result.state, TrialState::Ok, "{result:?}");
        // The pool has the second CPU, which is the second node.
        let cpus = if trial.trial.arm == "placed" {
            "1"
        } else {
            "all"
        };
        let csv = std::fs::read_to_string(trial.dir.join("guests.csv")).unwrap();
        let of = |row: &str| row.split(',').nth(7).map(str::to_owned);
        let preferred: Vec<String> = csv.lines().skip(1).filter_map(of).collect();
        let wanted = format!("\"{cpus}\"");
        assert_eq!(preferred, [wanted.clone(), wanted], "{csv}");
    }
}

/// Trials in which these commands are run once the second guest is there: they fail, with its name.
fn expect_lost(commands: &str) {
    let bench = Bench::default();
    let antagonist = format!(
        "[[workload.antagonist]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \
         \"until xl domid schedlab-worker-1 > /dev/null 2>&1; do sleep 1; done; {commands}\"]\n"
    );
    let arms = arm("credit2", "\"credit2\"") + &arm("credit", "\"credit\"");
    let text = [TARGET, &arms, &workload(&antagonist)].concat();
    let Some(output) = run(&bench, "run", &text) else {
        return;
    };
    expect_code(&output, 4);
    let trials = ResultSet::read(&bench.path("out")).unwrap().trials;
    assert_eq!(trials.len(), 2, "the second finds no guest of the first");
    for trial in trials {
        let TrialState::Failed { why } = &trial.trial.result.state else {
            panic!("{:?}", trial.trial.result.state);
        };
        assert!(why.contains("schedlab-worker-1"), "{why}");
    }
}

#[test]
#[ignore = "two minutes of emulated Xen; make test-long runs it"]
fn a_guest_that_is_lost_fails_its_trial_and_says_so() {
    expect_lost("xl destroy schedlab-worker-1; sleep 1000");
}

#[test]
#[ignore = "two minutes of emulated Xen; make test-long runs it"]
fn a_guest_whose_kernel_ends_fails_its_trial_and_says_so() {
    // Its kernel restarts at once, as one does that panics.
    expect_lost("while sleep 1; do xl sysrq schedlab-worker-1 b; done");
}

#[test]
#[ignore = "two minutes of emulated Xen; make test-long runs it"]
fn parameters_of_arms_are_in_force_and_a_pool_that_may_not_be_had_gives_its_arm_up() {
    let bench = Bench::default();
    let capped = "{ scheduler = \"credit2\", ratelimit = \"2ms\", cap = 30, weight = 300 }";
    let slow = "{ scheduler = \"credit\", timeslice = \"7ms\", ratelimit = \"3ms\" }";
    // Dom0 is in it, under credit2.
    let refused = "{ scheduler = \"credit\", pool = \"Pool-0\" }";
    let absent = "{ scheduler = \"credit2\", pool = \"lab\" }";
    let arms = [
        arm("capped", capped),
        arm("slow", slow),
        arm("refused", refused),
        arm("absent", absent),
    ]
    .concat();
    let workload = workload("").replace("weight = 256\n", "");
    let text = [TARGET, &arms, &workload].concat();
    let Some(output) = run(&bench, "run", &text) else {
        return;
    };
    expect_code(&output, 4);
    let trials = ResultSet::read(&bench.path("out")).unwrap().trials;
    let of = |name: &str| trials.iter().find(|trial| trial.trial.arm == name).unwrap();
    for (name, pool, slice, limit) in [
        ("capped", "credit2", None, "2000us"),
        ("slow", "credit", Some("7ms"), "3000us"),
    ] {
        let result = &of(name).trial.result;
        assert_eq!(result.state, TrialState::Ok, "{result:?}");
        assert_eq!(found(result, "scheduler of the CPU pool"), pool);
        assert_eq!(found(result, "ratelimit of the CPU pool"), limit);
        if let Some(slice) = slice {
            assert_eq!(found(result, "timeslice of the CPU pool"), slice);
        }
    }
    let csv = std::fs::read_to_string(of("capped").dir.join("guests.csv")).unwrap();
    let columns = |row: &str| -> Vec<String> { row.split(',').map(str::to_owned).collect() };
    for row in csv.lines().skip(1).map(columns) {
        let weight = if row[1] == "heavy" { "512" } else { "300" };
        assert_eq!((row[3].as_str(), row[4].as_str()), (weight, "30"), "{csv}");
        let seconds: f64 = row[5].parse().unwrap();
        assert!((1.0..2.6).contains(&seconds), "of 6 seconds: {csv}");
    }
    let report = bench.run(&["report", "out"]);
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, reason) in [
        ("refused", "the pool Pool-0 has credit2 and not credit"),
        ("absent", "there is no pool lab"),
    ] {
        let state = &of(name).trial.result.state;
        let why = state.why().unwrap_or_default();
        assert!(why.contains(reason), "{state:?}");
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
#[ignore = "a minute of emulated Xen; make test-long runs it"]
fn a_scheduler_that_the_hypervisor_lacks_is_an_error_that_names_what_it_has() {
    let bench = Bench::default();
    let rtds = "{ scheduler = \"rtds\", budget = \"4ms\", period = \"10ms\" }";
    let arms = [arm("credit2", "\"credit2\""), arm("rtds", rtds)].concat();
    let text = [TARGET, &arms, &workload("")].concat();
    let Some(output) = run(&bench, "check", &text) else {
        return;
    };
    assert_ne!(output.status.code(), Some(0));
    let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = said.split_whitespace().collect();
    let words = words.join(" ");
    assert!(
        words.contains("without the scheduler rtds; it has credit and credit2"),
        "{words}"
    );
}

#[test]
fn what_no_xen_host_could_be_is_refused_with_a_remedy() {
    let bench = Bench::default();
    let arms = arm("credit", "\"credit\"") + &arm("credit2", "\"credit2\"");
    let moon = arm("moon", "\"moon\"");
    for (target, arms, workload, why) in [
        (
            "[target]\nkind = \"xen\"\ncpus = 1\n",
            &arms,
            workload(""),
            "beside that of dom0",
        ),
        (
            "[target]\nkind = \"xen\"\ncpus = 2\nclock = \"virtual\"\n",
            &arms,
            workload(""),
            "has one CPU",
        ),
        (TARGET, &moon, workload(""), "credit, credit2, rtds, null"),
        (
            TARGET,
            &arms,
            workload("").replace("weight = 512", "nice = 5"),
            "`nice` is for workers that are",
        ),
        (
            TARGET,
            &arms,
            workload("").replace("weight = 512", "soft-cpus = \"x\""),
            "not a list of CPUs of the Xen host",
        ),
        (
            TARGET,
            &arms,
            workload("").replace("workers = \"guests\"\n", ""),
            "`weight` is for workers that are",
        ),
        (
            TARGET,
            &arms,
            "[[workload]]\nkind = \"wakeup\"\n".to_owned(),
            "runs in no guests",
        ),
    ] {
        let file = bench.file("bad.toml", &[target, arms, &workload].concat());
        let output = bench.run(&["plan", &file]);
        assert_ne!(output.status.code(), Some(0), "{why}");
        assert!(stderr(&output).contains(why), "{why}: {}", stderr(&output));
    }
}
