//! Files as people have them: what is good in them is taken, what is wrong is said with its file,
//! and what does not belong together is not mixed.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use import::{Imported, Tool};
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;

/// Files of one import.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Files(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, tool: &str, names: &[&str]) -> Imported {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.0.path().join(name)).collect();
        Tool::find_by_name(tool).unwrap().read(&paths).unwrap()
    }
}

/// The mean of a metric of an arm.
fn mean(imported: &Imported, arm: &str, metric: &str) -> f64 {
    let runs = imported.runs.iter().filter(|run| run.arm == arm);
    let values: Vec<f64> = runs
        .flat_map(|run| &run.metrics)
        .filter(|m| m.metric == metric)
        .map(|m| m.value)
        .collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn faults(imported: &Imported) -> String {
    let faults: Vec<String> = imported.faults.iter().map(ToString::to_string).collect();
    faults.join("\n")
}

fn warnings(imported: &Imported) -> String {
    let warnings: Vec<&str> = imported.warnings.iter().map(|w| w.what.as_str()).collect();
    warnings.join("\n")
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

/// A file of the Phoronix Test Suite: two systems on a machine, and its results.
fn composite(machine: &str, results: &[String]) -> String {
    let system = |name: &str| {
        format!(
            "<System><Identifier>{name}</Identifier><Hardware>Processor: {machine}</Hardware>\
             <Software>Kernel: 6</Software></System>"
        )
    };
    let (old, new) = (system("old6"), system("new7"));
    format!(
        "<?xml version=\"1.0\"?><PhoronixTestSuite>{old}{new}{}</PhoronixTestSuite>",
        results.concat()
    )
}

fn result(words: &str, format: &str, values: [&str; 2]) -> String {
    let [old, new] = values;
    let entry = |name: &str, raw: &str| {
        format!(
            "<Entry><Identifier>{name}</Identifier><Value>{raw}</Value>\
             <RawString>{raw}</RawString></Entry>"
        )
    };
    format!(
        "<Result><Title>Hackbench</Title><Arguments></Arguments><Description>{words}</Description>\
         <Scale>Seconds</Scale><Proportion>LIB</Proportion><DisplayFormat>{format}</DisplayFormat>\
         <Data>{}{}</Data></Result>",
        entry("old6", old),
        entry("new7", new)
    )
}

const OLD: [&str; 2] = ["19.8:20.0:20.2", "17.9:18.0:18.1"];
const FAST: [&str; 2] = ["9.8:10.0:10.2", "8.9:9.0:9.1"];

#[test]
fn series_of_a_sensor_are_left_out_and_said_and_the_benchmark_is_taken() {
    let files = Files::new();
    let power = ["55.1,60.2,58.3", "50.1,52.2,51.3"];
    let results = [
        result("Count: 8", "BAR_GRAPH", OLD),
        result("CPU Power Consumption Monitor", "LINE_GRAPH", power),
        result(
            "Frame Times",
            "VERTICAL_BOX_PLOT",
            ["16.1, 17,", "15, 15.5"],
        ),
    ];
    files.write("composite.xml", &composite("8-Core A", &results));
    let imported = files.read("phoronix", &["composite.xml"]);
    assert_eq!(faults(&imported), "");
    assert_eq!(imported.runs.len(), 6);
    near(mean(&imported, "old6", "result"), 20.0);
    near(mean(&imported, "new7", "result"), 18.0);
    let said = warnings(&imported);
    assert_eq!(said.matches("Left out of").count(), 1, "{said}");
    for name in [
        "CPU Power Consumption Monitor",
        "Frame Times",
        "composite.xml",
    ] {
        assert!(said.contains(name), "{name}: {said}");
    }
}

#[test]
fn a_figure_that_is_none_is_said_as_such() {
    let files = Files::new();
    let results = [result("Count: 8", "BAR_GRAPH", ["19.8:x7", "18"])];
    files.write("composite.xml", &composite("8-Core A", &results));
    let imported = files.read("phoronix", &["composite.xml"]);
    assert!(faults(&imported).contains("`x7` is no number"));
    assert!(imported.faults[0].remedy.contains("--skip-bad"));
}

#[test]
fn one_name_of_two_machines_is_refused_with_both_files() {
    let files = Files::new();
    let of = |machine: &str, values| composite(machine, &[result("Count: 8", "BAR_GRAPH", values)]);
    files.write("laptop.xml", &of("8-Core A", OLD));
    files.write("server.xml", &of("128-Core B", FAST));
    let imported = files.read("phoronix", &["laptop.xml", "server.xml"]);
    let said = faults(&imported);
    for word in [
        "laptop.xml",
        "server.xml",
        "8-Core A",
        "128-Core B",
        "`old6`",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    // What is left out with --skip-bad is the second machine, not a part of it.
    assert_eq!(imported.runs.len(), 6);
    near(mean(&imported, "old6", "result"), 20.0);
    for (file, old) in [("laptop.xml", 20.0), ("server.xml", 10.0)] {
        let alone = files.read("phoronix", &[file]);
        assert_eq!((faults(&alone), warnings(&alone)), Default::default());
        near(mean(&alone, "old6", "result"), old);
        near(mean(&alone, "new7", "result"), old * 0.9);
    }
}

/// A file of `schbench --json`.
fn schbench(host: &str, scheduler: &str, ints: &str) -> String {
    format!(
        "{{\"normal\": {{\"version\": \"6.18.0\", \"hostname\": \"{host}\", \"sched_ext\": \
         \"{scheduler}\", \"cmdline\": \"schbench -m 2 -t 16 -r 30 --json out\"}}, \"int\": {{{ints}}}}}"
    )
}

const MEASURED: &str = "\"time\": 1764000000, \"wakeup_latency_pct50.0\": 7, \
                        \"wakeup_latency_pct99.0\": 2292, \"request_latency_pct99.0\": 9000, \
                        \"rps_pct50.0\": 600, \"runtime\": 30";
const NOTHING: &str = "\"time\": 1764000000, \"wakeup_latency_pct50.0\": 0, \
                       \"wakeup_latency_pct99.0\": 0, \"request_latency_pct99.0\": 0, \
                       \"rps_pct50.0\": 0, \"runtime\": 0";

#[test]
fn a_run_of_schbench_that_was_cut_short_is_no_run() {
    let files = Files::new();
    files.write("eevdf-1.json", &schbench("lab1", "disabled", MEASURED));
    files.write("flash-1.json", &schbench("lab1", "flash", NOTHING));
    // The same without a runtime, and with one: nothing was counted.
    let longer = NOTHING.replace("\"runtime\": 0", "\"runtime\": 30");
    files.write("flash-2.json", &schbench("lab1", "flash", &longer));
    let unsaid = NOTHING.replace(", \"runtime\": 0", "");
    files.write("flash-3.json", &schbench("lab1", "flash", &unsaid));
    let names = [
        "eevdf-1.json",
        "flash-1.json",
        "flash-2.json",
        "flash-3.json",
    ];
    let imported = files.read("schbench-json", &names);
    assert_eq!(imported.runs.len(), 1);
    near(mean(&imported, "6.18.0", "wakeup_p99"), 2_292_000.0);
    assert_eq!(imported.faults.len(), 3);
    for (fault, name) in faults(&imported).lines().zip(&names[1..]) {
        let is_said = fault.contains(name) && fault.contains("nothing was measured");
        assert!(is_said, "{name}: {fault}");
    }
}

#[test]
fn percentiles_of_requests_that_there_were_none_of_are_no_figures() {
    let files = Files::new();
    let without = MEASURED.replace("9000", "0").replace("600", "0");
    let with_a_text = without.replace("\"runtime\"", "\"note\": null, \"runtime\"");
    files.write("a.json", &schbench("lab1", "flash", &with_a_text));
    let imported = files.read("schbench-json", &["a.json"]);
    assert_eq!(faults(&imported), "");
    let metrics = imported.runs[0].metrics.iter().map(|m| m.metric.as_str());
    assert_eq!(metrics.collect::<Vec<_>>(), ["wakeup_p50", "wakeup_p99"]);
}

#[test]
fn one_arm_of_two_hosts_is_refused_and_two_arms_of_two_hosts_are_a_warning() {
    let files = Files::new();
    files.write("a.json", &schbench("lab1", "disabled", MEASURED));
    files.write("b.json", &schbench("lab2", "disabled", MEASURED));
    files.write("c.json", &schbench("lab2", "flash", MEASURED));
    let mixed = files.read("schbench-json", &["a.json", "b.json"]);
    let said = faults(&mixed);
    for word in ["a.json", "b.json", "lab1", "lab2"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let beside = files.read("schbench-json", &["a.json", "c.json"]);
    assert_eq!(faults(&beside), "");
    let said = warnings(&beside);
    for word in ["different machines", "a.json", "c.json", "lab1", "lab2"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let one = files.read("schbench-json", &["b.json", "c.json"]);
    assert_eq!((faults(&one), warnings(&one)), Default::default());
}

#[test]
fn logs_of_hackbench_before_and_after_2019_are_read() {
    let files = Files::new();
    let log = |run: &str, name: &str| format!("log/{run}/iter-0/hackbench-pipes/logs/{name}");
    let old = |time: &str| format!("Running with 1*40 (== 40) tasks.\nTime: {time}\n");
    files.write(&log("4.4", "hackbench-1-1"), &old("0.44"));
    files.write(&log("4.9", "hackbench-1-1"), &old("0.49"));
    let new = "# 20 sender and receiver processes per group\n     Total time: 0.450 [sec]\n";
    files.write(&log("5.4", "hackbench-1"), new);
    let imported = files.read("mmtests", &["log"]);
    assert_eq!(faults(&imported), "");
    for (run, seconds) in [("4.4", 0.44), ("4.9", 0.49), ("5.4", 0.45)] {
        near(mean(&imported, run, "hackbench_time"), seconds);
    }
}

#[test]
fn a_log_without_a_time_is_said_with_what_it_has() {
    let files = Files::new();
    let log = "log/4.4/iter-0/hackbench-pipes/logs/hackbench-1-1";
    files.write(
        log,
        "Running with 1*40 (== 40) tasks.\nfork: Resource temporarily unavailable\n",
    );
    let said = faults(&files.read("mmtests", &["log"]));
    assert!(
        said.contains("it ends with: fork: Resource temporarily"),
        "{said}"
    );
    assert!(!said.contains("nothing was measured"), "{said}");
    files.write(log, "");
    assert!(faults(&files.read("mmtests", &["log"])).contains("the log is empty"));
}

#[test]
fn a_wrong_value_of_one_operation_leaves_the_others_of_an_export() {
    let files = Files::new();
    let data = |values: &str| format!("[{{\"Values\": [{values}]}}]");
    let module = format!(
        "[{{\"_ModuleName\": \"ExtractX\", \"_TestName\": \"6.1\", \"_PlotYaxis\": \
         \"Time (seconds)\", \"_ResultData\": {{\"good\": {}, \"bad\": {}}}}}]",
        data("2.0, 4.0"),
        data("\"NaN\"")
    );
    files.write("export.json", &module);
    let imported = files.read("mmtests", &["export.json"]);
    near(mean(&imported, "6.1", "result"), 3.0);
    assert!(faults(&imported).contains("`NaN` in bad of 6.1"));
}

#[test]
fn a_benchmark_that_took_no_time_is_no_run() {
    let files = Files::new();
    let results = [
        result("Count: 8", "BAR_GRAPH", OLD),
        result("Count: 9", "BAR_GRAPH", ["0:0:0", "17"]),
    ];
    files.write("composite.xml", &composite("8-Core A", &results));
    let imported = files.read("phoronix", &["composite.xml"]);
    assert_eq!((imported.runs.len(), imported.faults.len()), (7, 3));
    assert!(faults(&imported).contains("nothing was measured"));
}

/// One interval as schbench prints it: percentiles of the time so far, in microseconds.
fn interval(seconds: u32, p99: u32, requests: u32, rps: u32) -> String {
    let total = "(100 total samples)";
    format!(
        "Wakeup Latencies percentiles (usec) runtime {seconds} (s) {total}\n\t  50.0th: 6          (50 samples)\n\
         \t* 99.0th: {p99}        (9 samples)\n\t  min=1, max=2000\n\
         Request Latencies percentiles (usec) runtime {seconds} (s) {total}\n\t  50.0th: 5100       (50 samples)\n\
         \t* 99.0th: {requests}       (9 samples)\n\t  min=1, max=12000\n\
         RPS percentiles (requests) runtime {seconds} (s) {total}\n\t* 50.0th: {rps}        (5 samples)\n\
         \t  min=190, max=222\n"
    )
}

fn log_of_schbench(run: &str) -> String {
    format!("log/{run}/iter-0/schbench/logs/schbench-2.log")
}

#[test]
fn of_the_intervals_that_schbench_prints_the_last_one_counts() {
    let files = Files::new();
    for (run, p99) in [("6.1.0", 100), ("6.6.0", 80)] {
        let halves = [interval(10, 999, 9000, 210), interval(20, p99, 9100, 211)];
        let log = halves.join("current rps: 205.00\n") + "average rps: 207.50\n";
        files.write(&log_of_schbench(run), &log);
    }
    let imported = files.read("mmtests", &["log"]);
    assert_eq!((faults(&imported), imported.runs.len()), (String::new(), 2));
    for (run, p99) in [("6.1.0", 100_000.0), ("6.6.0", 80_000.0)] {
        near(mean(&imported, run, "wakeup_p99"), p99);
        near(mean(&imported, run, "request_p99"), 9_100_000.0);
        near(mean(&imported, run, "requests_per_sec_p50"), 211.0);
    }
}

#[test]
fn a_percentile_of_the_first_half_alone_is_none_of_the_whole_run() {
    let files = Files::new();
    let first = interval(10, 999, 9000, 210)
        .replace("\t  min=1, max=2000\n", "\t  99.9th: 5000 (1 samples)\n");
    assert!(first.contains("99.9th"));
    let log = first + &interval(20, 100, 9100, 211);
    files.write(&log_of_schbench("6.1.0"), &log);
    let imported = files.read("mmtests", &["log"]);
    let metrics = imported.runs[0].metrics.iter().map(|m| m.metric.as_str());
    let expected = [
        "request_p50",
        "request_p99",
        "requests_per_sec_p50",
        "wakeup_p50",
        "wakeup_p99",
    ];
    assert_eq!(metrics.collect::<Vec<_>>(), expected);
}

#[test]
fn a_log_of_schbench_that_ends_in_the_middle_is_said_and_not_mixed() {
    let files = Files::new();
    let second = interval(20, 100, 9100, 211);
    let cut = second.find("Request Latencies").unwrap();
    files.write(
        &log_of_schbench("6.1.0"),
        &(interval(10, 999, 9000, 210) + &second[..cut]),
    );
    let imported = files.read("mmtests", &["log"]);
    let said = faults(&imported);
    assert!(
        said.contains("request of 10 s") && said.contains("wakeup of 20 s"),
        "{said}"
    );
    assert_eq!(imported.runs.len(), 0);
    // Its head alone was printed.
    let head = second.find('\n').unwrap() + 1;
    files.write(
        &log_of_schbench("6.1.0"),
        &(interval(10, 999, 9000, 210) + &second[..head]),
    );
    let said = faults(&files.read("mmtests", &["log"]));
    assert!(said.contains("wakeup without any"), "{said}");
}

#[test]
fn intervals_of_versions_that_say_no_time_are_read_to_the_last() {
    let files = Files::new();
    let table = |p99: u32| {
        format!(
            "Latency percentiles (usec)\n\t50.0000th: 9\n\t*99.0000th: {p99}\n\tmin=0, max=5038\n"
        )
    };
    files.write(&log_of_schbench("4.9"), &(table(500) + &table(29)));
    let imported = files.read("mmtests", &["log"]);
    assert_eq!(faults(&imported), "");
    near(mean(&imported, "4.9", "wakeup_p99"), 29_000.0);
}
