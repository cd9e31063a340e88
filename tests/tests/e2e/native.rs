//! The native workloads as a user starts them: each has its figures, its files and its proof.

#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use tests::{Bench, alone, expect_code};

/// Metrics of each trial that counts, by workload.
fn run(bench: &Bench, file: &str) -> BTreeMap<String, Vec<BTreeMap<String, f64>>> {
    expect_code(&bench.run(&["run", file, "-o", "out"]), 0);
    let results = results::ResultSet::read(&bench.path("out")).expect("results");
    let mut found: BTreeMap<String, Vec<BTreeMap<String, f64>>> = BTreeMap::new();
    for stored in &results.trials {
        let trial = &stored.trial;
        assert!(trial.is_ok(), "{:?}", trial.result.state);
        let cell = &results.plan.cells[trial.place.cell];
        let workload = &results.experiment.workloads[cell.workload];
        let metrics = trial.result.metrics.iter();
        let metrics = metrics.map(|m| (m.metric.clone(), m.value)).collect();
        found
            .entry(workload.name.clone())
            .or_default()
            .push(metrics);
    }
    found
}

const SHORT: &str = "duration = \"600ms\"\nwarmup = \"100ms\"\n";

#[test]
fn pairs_periodic_workers_and_burners_are_measured_under_two_policies() {
    let _turn = alone();
    let bench = Bench::default();
    let text = format!(
        "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"batch\"\npolicy = {{ class = \"batch\" }}\n\
         to = \"load\"\n\
         [[workload]]\nkind = \"rr\"\nloads = [2]\n{SHORT}\
         [[workload]]\nname = \"udp\"\nkind = \"rr\"\nprotocol = \"udp\"\n{SHORT}\
         [[workload]]\nkind = \"periodic\"\nperiod = \"2ms\"\nruntime = \"200us\"\nloads = [2]\n{SHORT}\
         [[workload]]\nkind = \"burnwait\"\nloads = [3]\ninterval = \"200ms\"\n{SHORT}\
         [stop]\nmax-blocks = 1\nmin-blocks = 1\n"
    );
    let found = run(&bench, &bench.file("native.toml", &text));
    let all = |workload: &str, metric: &str, is_good: fn(f64) -> bool| {
        let trials = &found[workload];
        assert_eq!(trials.len(), 2, "{workload}");
        for trial in trials {
            let value = trial.get(metric).copied();
            assert!(value.is_some_and(is_good), "{workload} {metric}: {value:?}");
        }
    };
    all("rr", "requests_per_sec", |rate| rate > 100.0);
    all("udp", "request_p99", |ns| ns > 1_000.0);
    all("periodic", "offered_per_sec", |rate| {
        (990.0..1_010.0).contains(&rate)
    });
    all("periodic", "miss_percent", |percent| {
        (0.0..=100.0).contains(&percent)
    });
    all("burnwait", "fairness_percent", |percent| percent > 10.0);
    all("burnwait", "worst_worker_percent", |percent| percent >= 0.0);
    let trials = fs::read_dir(bench.path("out/trials")).expect("trials");
    let tables = trials.filter(|trial| {
        let trial = trial.as_ref().expect("an entry").path();
        trial.join("sets.csv").is_file() && trial.join("workers.csv").is_file()
    });
    assert_eq!(tables.count(), 2, "of the trials of burnwait");
}

/// Two sets of processes that want all CPUs, of which one has three times the weight of the other,
/// and a third with a quota.
const IN_GROUPS: &str = "[[workload]]\nkind = \"burnwait\"\nworkers = \"processes\"\nloads = [2]\n\
    duration = \"1500ms\"\nwarmup = \"200ms\"\ninterval = \"500ms\"\n\
    [[workload.set]]\nname = \"heavy\"\nevents = [\"500 0us\"]\nweight = 300\n\
    [[workload.set]]\nname = \"light\"\nevents = [\"500 0us\"]\n\
    [[workload.set]]\nname = \"limited\"\nevents = [\"500 0us\"]\nquota = \"5%\"\n";
const ONE_BLOCK: &str = "[stop]\nmax-blocks = 1\nmin-blocks = 1\n";

/// CPUs that each set used, by trial, and the periods in which it was throttled.
fn used_by_sets(bench: &Bench) -> Vec<BTreeMap<String, (f64, f64)>> {
    let table = |path: &Path, column: usize| -> BTreeMap<String, f64> {
        let text = fs::read_to_string(path).expect("a table");
        let rows = text
            .lines()
            .skip(1)
            .map(|row| row.split(',').collect::<Vec<_>>());
        rows.map(|cells| {
            (
                cells[0].to_owned(),
                cells[column].parse().expect("a number"),
            )
        })
        .collect()
    };
    let trials = fs::read_dir(bench.path("out/trials")).expect("trials");
    let of_trial = |trial: std::io::Result<fs::DirEntry>| {
        let folder = trial.expect("an entry").path();
        let throttled = table(&folder.join("groups.csv"), 4);
        let used = table(&folder.join("sets.csv"), 9).into_iter();
        used.map(|(set, cpus)| {
            let periods = throttled[&set];
            (set, (cpus, periods))
        })
        .collect()
    };
    trials.map(of_trial).collect()
}

#[test]
fn sets_of_processes_share_the_cpus_by_the_weights_and_quotas_of_their_cgroups() {
    let _turn = alone();
    if !tests::is_root() {
        return tests::skipped("a cgroup needs root");
    }
    let bench = Bench::default();
    let text = format!("[[arm]]\nname = \"default\"\n{IN_GROUPS}{ONE_BLOCK}");
    let file = bench.file("groups.toml", &text);
    let checked = bench.run(&["check", &file]);
    let lacks = [
        "no cgroup controller",
        "no cgroup can be made",
        "as in a container",
    ];
    if lacks
        .iter()
        .any(|what| tests::stderr(&checked).contains(what))
    {
        return tests::skipped("no cgroup with a weight can be made here");
    }
    let found = run(&bench, &file);
    for sets in used_by_sets(&bench) {
        let (heavy, light) = (sets["heavy"].0, sets["light"].0);
        // 1.45 and 0.5 CPUs of two; of one, 0.7 and 0.25.
        assert!(heavy > 1.5 * light && light > 0.0, "{sets:?}");
        let (limited, throttled) = sets["limited"];
        assert!(limited < 0.1 && throttled > 0.0, "{sets:?}");
        assert_eq!(sets["heavy"].1, 0.0, "{sets:?}");
    }
    // What they got is what they are entitled to. Work of others on this machine only takes from it.
    for trial in found.values().flatten() {
        assert!(trial["fairness_percent"] > 60.0, "{trial:?}");
        assert!(trial["latency_cost"] > 0.0, "{trial:?}");
    }
    let mut left = tests::left_cgroups();
    left.retain(|group| group.contains("-part-"));
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn processes_that_get_no_cpu_are_measured_as_starved() {
    let _turn = alone();
    if !tests::is_root() {
        return tests::skipped("a real-time policy needs root");
    }
    let bench = Bench::default();
    // Those that are first on the CPUs run until the window is over, the others not at all.
    let text = format!(
        "[[arm]]\nname = \"hogs\"\npolicy = {{ class = \"fifo\" }}\n\
         [[workload]]\nkind = \"burnwait\"\nworkers = \"processes\"\nduration = \"600ms\"\n\
         warmup = \"0s\"\ninterval = \"200ms\"\n\
         [[workload.set]]\nname = \"hogs\"\nevents = [\"500 0us\"]\ncpus = \"0\"\ncount = 2\n{ONE_BLOCK}"
    );
    let found = run(&bench, &bench.file("hogs.toml", &text));
    for trial in found.values().flatten() {
        assert!(trial["worst_worker_percent"] < 50.0, "{trial:?}");
        assert!(trial["starved_percent"] > 0.0, "{trial:?}");
    }
}

/// Means of the metrics over the trials of each arm, by workload and load.
fn means_by_arm(bench: &Bench, file: &str) -> BTreeMap<String, BTreeMap<String, f64>> {
    run(bench, file);
    let results = results::ResultSet::read(&bench.path("out")).expect("results");
    let mut sums: BTreeMap<String, BTreeMap<String, (f64, f64)>> = BTreeMap::new();
    for stored in &results.trials {
        let trial = &stored.trial;
        let of_arm = sums
            .entry(format!("{} {}", trial.cell, trial.arm))
            .or_default();
        for measured in &trial.result.metrics {
            let (sum, count) = of_arm.entry(measured.metric.clone()).or_default();
            *sum += measured.value;
            *count += 1.0;
        }
    }
    let means = |sums: BTreeMap<String, (f64, f64)>| {
        let mean = |(metric, (sum, count))| (metric, sum / count);
        sums.into_iter().map(mean).collect()
    };
    sums.into_iter()
        .map(|(arm, sums)| (arm, means(sums)))
        .collect()
}

/// A shipped experiment in shorter trials, two blocks of them, in which all is on two CPUs.
fn shortened(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../experiments")
        .join(name);
    let text = fs::read_to_string(file).expect("a shipped experiment");
    let whole = "events = [\"500 0us\"]";
    let half = "events = [\"500 500us\"]";
    let spinner = "kind = \"spinner\"";
    let on_two = |key: &str| format!("{key}\ncpus = \"0-1\"");
    text.replace("duration = \"3s\"", "duration = \"800ms\"")
        .replace("interval = \"500ms\"", "interval = \"200ms\"")
        .replace("loads = [5, 10]", "loads = [10]")
        .replace(
            "min-blocks = 5\nmax-blocks = 8",
            "min-blocks = 1\nmax-blocks = 2",
        )
        .replace(whole, &on_two(whole))
        .replace(half, &on_two(half))
        .replace(spinner, &on_two(spinner))
}

#[test]
#[ignore = "half a minute that nothing else may use, in make test-long"]
fn arms_that_are_unfair_on_purpose_are_ranked_by_the_measures_of_fairness() {
    let _turn = alone();
    if !tests::is_root() {
        return tests::skipped("a real-time policy, a quota and nice -10 need root");
    }
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return tests::skipped("workers that compete for two CPUs need them");
    }
    let (arms, nice) = (shortened("unfair-arms.toml"), shortened("unfair-nice.toml"));
    let bench = Bench::default();
    let checked = bench.run(&["check", &bench.file("arms.toml", &arms)]);
    if tests::stderr(&checked).contains("as in a container") {
        return tests::skipped("no cgroup with a quota can be made here");
    }
    let found = means_by_arm(&bench, &bench.file("arms.toml", &arms));
    let of = |arm: &str, metric: &str| found[arm][&format!("{metric}_percent")];
    // Hogs leave nothing to two of four workers; a quota takes half of what all are entitled to.
    let whole = |arm: &str, metric: &str| of(&format!("whole 4 {arm}"), metric);
    for fair in ["default", "quota"] {
        assert!(
            whole("hogs", "fairness") < whole(fair, "fairness") - 20.0,
            "{found:?}"
        );
        assert!(
            whole("hogs", "worst_worker") < whole(fair, "worst_worker"),
            "{found:?}"
        );
        assert!(
            whole("hogs", "starved") > whole(fair, "starved") + 20.0,
            "{found:?}"
        );
        // Half a window of 800 ms, in nanoseconds.
        let longest = |arm: &str| found[&format!("whole 4 {arm}")]["longest_wait"];
        assert!(
            longest("hogs") > 4e8 && longest(fair) < longest("hogs") / 2.0,
            "{found:?}"
        );
    }
    assert!(
        whole("quota", "shortfall") > whole("default", "shortfall") + 20.0,
        "{found:?}"
    );
    let half = |arm: &str, metric: &str| of(&format!("half 10 {arm}"), metric);
    assert!(
        half("quota", "shortfall") > half("default", "shortfall") + 20.0,
        "{found:?}"
    );

    let bench = Bench::default();
    let found = means_by_arm(&bench, &bench.file("nice.toml", &nice));
    let of = |arm: &str, metric: &str| found[&format!("beside 4 {arm}")][metric];
    let (shortfall, worst) = ("shortfall_percent", "worst_worker_percent");
    assert!(
        of("nice", shortfall) > of("default", shortfall) + 15.0,
        "{found:?}"
    );
    assert!(of("nice", worst) < of("default", worst), "{found:?}");
}

#[test]
fn cgroups_of_sets_are_refused_where_an_arm_makes_them_mean_nothing() {
    let _turn = alone();
    if !tests::is_root() {
        return tests::skipped("a cgroup needs root");
    }
    let bench = Bench::default();
    for (change, why) in [
        (
            "policy = { class = \"fifo\" }",
            "neither weight nor quota counts for `fifo`",
        ),
        ("quota = \"50%\"", "its quota is for the whole load"),
    ] {
        let text = format!("[[arm]]\nname = \"other\"\n{change}\n{IN_GROUPS}{ONE_BLOCK}");
        let output = bench.run(&["run", &bench.file("groups.toml", &text), "-o", "out"]);
        expect_code(&output, 3);
        let said = tests::stderr(&output);
        let words: Vec<&str> = said.split_whitespace().collect();
        assert!(words.join(" ").replace(" │ ", " ").contains(why), "{said}");
        assert!(!bench.path("out").exists());
    }
}

#[test]
fn a_profile_that_is_wrong_or_missing_is_said_with_its_line() {
    let bench = Bench::default();
    let refused = |profile: &str| {
        let output = bench.run(&["check", "-a", &format!("profile={profile}"), "-w", "wakeup"]);
        expect_code(&output, 2);
        tests::stderr(&output)
    };
    let misspelt = bench.file("misspelt.conf", "SCHED_LATENCY_NS=1\nSCHED_LATECNY_NS=2\n");
    let said = refused(&misspelt);
    assert!(
        said.contains("line 2") && said.contains("`latency`"),
        "{said}"
    );
    let said = refused("no-such-file.conf");
    assert!(said.contains("no-such-file.conf"), "{said}");
    let empty = bench.path("empty");
    fs::create_dir(&empty).expect("a directory");
    let output = bench.run(&["check", "--profiles", "empty", "-w", "wakeup"]);
    expect_code(&output, 2);
    let said = tests::stderr(&output);
    assert!(said.contains("no profiles in empty"), "{said}");
}

#[test]
fn tbench_has_a_network_of_its_own_though_its_port_is_taken() {
    let there = |name: &str| Path::new("/usr/bin").join(name).exists();
    if !there("tbench") || !there("unshare") {
        return tests::skipped("tbench (package dbench) or unshare is not installed");
    }
    let unshared = Command::new("unshare").args(["--net", "true"]).status();
    if !unshared.is_ok_and(|status| status.success()) {
        return tests::skipped("no right to make a network namespace");
    }
    let _turn = alone();
    let bench = Bench::default();
    // The one port that tbench_srv knows. Where it is taken already, that is as good.
    let _taken = TcpListener::bind("127.0.0.1:7003");
    let text = "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"batch\"\n\
                policy = { class = \"batch\" }\nto = \"server\"\n\
                [[workload]]\nkind = \"tbench\"\nloads = [1]\nduration = \"1s\"\n\
                [stop]\nmax-blocks = 1\nmin-blocks = 1\n";
    let found = run(&bench, &bench.file("tbench.toml", text));
    let trials = &found["tbench"];
    assert_eq!(trials.len(), 2);
    for trial in trials {
        assert!(trial["throughput"] > 0.0, "{trial:?}");
        assert!(trial["operation_mean"] <= trial["request_max"], "{trial:?}");
    }
}
