//! Runs of several machines, or of several nights, as one result.

#![allow(clippy::disallowed_methods)]

use serde_json::Value;
use tests::{Bench, beside_others, expect_code, stderr, stdout};

/// The results of a run of the quickstart experiment on a machine, where `batch` has this effect on
/// the throughput of hackbench.
fn run_on(bench: &Bench, dir: &str, hostname: &str, seed: u64, throughput: f64) {
    let mut scenario = synthetic::quickstart();
    scenario.experiment.seed = seed;
    scenario.system.hostname = hostname.to_owned();
    for effect in &mut scenario.effects {
        if (effect.arm, effect.cell) == ("batch", "hackbench") {
            effect.throughput = throughput;
        }
    }
    synthetic::write(&bench.path(dir), &scenario).expect("a results directory");
}

fn report(bench: &Bench, dir: &str) -> Value {
    let output = bench.run(&["report", dir, "--format", "json"]);
    expect_code(&output, 0);
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

/// The comparison of `batch` by hackbench.
fn of_batch<'a>(report: &'a Value, list: &str) -> &'a Value {
    let mut all = report[list].as_array().expect("a list").iter();
    let found = all.find(|c| c["workload"] == "hackbench" && c["arm"] == "batch");
    found.unwrap_or_else(|| panic!("no such comparison in {}", report[list]))
}

/// Machines of a comparison, with what is said of each: whether it differs, and its blocks.
fn list_machines(of: &Value) -> Vec<(&str, bool, u64)> {
    let machines = of["machines"].as_array().expect("a list").iter();
    let said = machines.map(|m| {
        let name = m["machine"].as_str().unwrap_or_default();
        (
            name,
            m["differs"] == true,
            m["blocks"].as_u64().unwrap_or(0),
        )
    });
    said.collect()
}

#[test]
fn a_fleet_has_one_verdict_and_the_machine_that_disagrees_is_named() {
    let bench = Bench::default();
    for (dir, host, seed, throughput) in [
        ("a", "node1", 1, 1.09),
        ("b", "node2", 2, 1.09),
        ("c", "node3", 3, 0.7),
        ("night", "node1", 4, 1.09),
    ] {
        run_on(&bench, dir, host, seed, throughput);
    }
    for order in [["a", "b", "c", "night"], ["c", "night", "b", "a"]] {
        let mut args = vec!["merge", "-o", "fleet"];
        args.extend(order);
        let output = bench.run(&args);
        expect_code(&output, 0);
        let fleet = report(&bench, "fleet");
        let all = of_batch(&fleet, "comparisons");
        assert_eq!(all["verdict"], "unknown", "{order:?}: {all}");
        std::fs::remove_dir_all(bench.path("fleet")).expect("removed");
    }
    let output = bench.run(&["merge", "a", "b", "c", "night", "-o", "fleet"]);
    expect_code(&output, 0);
    assert!(
        stdout(&output).contains("the machine node3 differs from the others"),
        "{}",
        stdout(&output)
    );
    let (one, fleet) = (report(&bench, "a"), report(&bench, "fleet"));
    let blocks = |report: &Value| of_batch(report, "comparisons")["blocks"].as_u64();
    let each = ["a", "b", "c", "night"].map(|dir| blocks(&report(&bench, dir)).unwrap_or(0));
    assert_eq!(blocks(&fleet), Some(each.iter().sum()));
    assert!(one.get("machines").is_none(), "{one}");
    let machines = of_batch(&fleet, "machines");
    let wanted = [
        ("node1", false, each[0] + each[3]),
        ("node2", false, each[1]),
        ("node3", true, each[2]),
    ];
    assert_eq!(list_machines(machines), wanted);
    let full = stdout(&bench.run(&["report", "fleet", "--full"]));
    assert!(
        full.contains("hackbench 4 on each of 3 machines") && full.contains("over machines"),
        "{full}"
    );
    let page = std::fs::read_to_string(bench.path("fleet/report/report.html")).expect("a page");
    assert!(page.contains("on each of 3 machines"));
    let over = &machines["over_machines"];
    let ends = ["next_low", "low", "value", "high", "next_high"].map(|key| over[key].as_f64());
    assert!(ends.is_sorted() && ends[0].is_some(), "{over}");
    let others = "Over machines like these 3:";
    let short = stdout(&bench.run(&["report", "fleet"]));
    assert!(short.contains(others) && page.contains(others), "{short}");
}

#[test]
fn nights_of_one_machine_add_up_and_are_told_apart_as_runs() {
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file(
        "sleep.toml",
        "name = \"sleep\"\n[[arm]]\nname = \"default\"\n[[arm]]\nname = \"batch\"\n\
         policy = { class = \"batch\" }\n[[workload]]\nkind = \"command\"\ncommand = [\"true\"]\n\
         [stop]\nmin-blocks = 2\nmax-blocks = 2\n",
    );
    for (dir, seed) in [("monday", "1"), ("tuesday", "2")] {
        let output = bench.run(&["run", &file, "-o", dir, "--seed", seed, "-q"]);
        expect_code(&output, 0);
    }
    expect_code(&bench.run(&["merge", "monday", "tuesday", "-o", "both"]), 0);
    let both = report(&bench, "both");
    let of_runs = &both["machines"][0];
    assert_eq!(of_runs["level"], "run", "{both}");
    let names = [0_usize, 1].map(|run| {
        of_runs["machines"][run]["machine"]
            .as_str()
            .unwrap_or_default()
    });
    assert!(
        names[0].ends_with(" seed 1") && names[1].ends_with(" seed 2"),
        "{names:?}"
    );
    let said = stdout(&bench.run(&["report", "both"]));
    assert!(
        said.contains("Of other runs these 2 runs tell nothing"),
        "{said}"
    );
    assert_eq!(both["comparisons"][0]["blocks"], 4, "{both}");
    let kept = |dir: &str| {
        let results = results::ResultSet::read(&bench.path(dir)).expect("results");
        let files = results.trials.iter().map(|stored| {
            let entries = std::fs::read_dir(&stored.dir).expect("a trial");
            entries.count()
        });
        files.sum::<usize>()
    };
    assert_eq!(kept("both"), kept("monday") + kept("tuesday"));
    let output = bench.run(&["verify", "both"]);
    expect_code(&output, 0);
    let plan = "places of 2 merged runs, all are measured";
    assert!(stdout(&output).contains(plan), "{}", stdout(&output));
    let output = bench.run(&["run", "--resume", "both"]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("merged from several runs"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_is_no_run_of_the_same_experiment_is_refused_and_nothing_is_written() {
    let bench = Bench::default();
    run_on(&bench, "a", "node1", 1, 1.0);
    run_on(&bench, "b", "node2", 2, 1.0);
    run_on(&bench, "twin", "node3", 1, 1.0);
    let mut other = synthetic::quickstart();
    other.experiment.workloads[0].duration_ns += 1_000_000_000;
    synthetic::write(&bench.path("other"), &other).expect("a results directory");
    expect_code(&bench.run(&["merge", "a", "b", "-o", "ab"]), 0);
    for (parts, says) in [
        (["a", "a"], "a and a are the same run"),
        (["a", "twin"], "a and twin both have the seed 1"),
        (["a", "other"], "different experiments"),
        (["a", "ab"], "ab was merged itself"),
        (["a", "nowhere"], "nowhere does not exist"),
    ] {
        let output = bench.run(&["merge", parts[0], parts[1], "-o", "out"]);
        expect_code(&output, 2);
        assert!(
            stderr(&output).contains(says),
            "{parts:?}: {}",
            stderr(&output)
        );
        assert!(!bench.path("out").exists(), "{parts:?}");
    }
    expect_code(&bench.run(&["merge", "a"]), 2);
    let both = bench.run(&["gate", "a", "ab"]);
    expect_code(&both, 2);
    assert!(
        stderr(&both).contains("A and B share the run"),
        "{}",
        stderr(&both)
    );
}
