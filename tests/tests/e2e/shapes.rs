//! Metrics of commands whose output has the shapes that programs really have: tables below a
//! banner, YAML, lines of JSON, sections, digits in groups. The texts are our own, in the form of
//! the program that the test names.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use results::ResultSet;
use std::collections::BTreeMap;
use std::fs;
use tests::{Bench, beside_others, expect_code};

/// Values of all metrics of a command that prints a text, in its only trial of the first arm.
fn figures(printed: &str, metrics: &str) -> BTreeMap<String, f64> {
    let bench = Bench::default();
    fs::write(bench.path("output"), printed).unwrap();
    let file = bench.file(
        "shapes.toml",
        &format!(
            "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"nice\"\npolicy = {{ nice = 5 }}\n\
             [[workload]]\nkind = \"command\"\ncommand = [\"cat\", \"{}\"]\n{metrics}\n\
             [stop]\nmin-blocks = 1\nmax-blocks = 1\n",
            bench.path("output").display()
        ),
    );
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let trial = &results.trials[0].trial.result;
    let metrics = trial.metrics.iter();
    metrics.map(|m| (m.metric.clone(), m.value)).collect()
}

fn metric(name: &str, keys: &str) -> String {
    format!("[[workload.metric]]\nname = \"{name}\"\nbetter = \"lower\"\n{keys}\n")
}

#[test]
fn tables_below_a_banner_and_yaml_of_each_stressor_are_read() {
    let _turn = beside_others();
    let netperf = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET : first burst 0\n\
                   Throughput,Throughput Units,50th Percentile Latency Microseconds,99th Percentile Latency Microseconds\n\
                   1405.50,Trans/s,683,841\n";
    let metrics = [
        metric("rate", "csv = \"Throughput\""),
        metric("p99", "csv = \"99th Percentile Latency Microseconds\""),
    ];
    let found = figures(netperf, &metrics.concat());
    assert_eq!((found["rate"], found["p99"]), (1405.5, 841.0));
    let stress_ng = "---\nmetrics:\n    - stressor: cpu\n      bogo-ops-per-second-real-time: 5198.200000\n    \
                     - stressor: switch\n      bogo-ops-per-second-real-time: 90968.100000\n...\n";
    let of = |stressor: &str| {
        let path = "['bogo-ops-per-second-real-time']";
        metric(
            stressor,
            &format!("yaml = \"$.metrics[?@.stressor == '{stressor}']{path}\""),
        )
    };
    let found = figures(stress_ng, &[of("cpu"), of("switch")].concat());
    assert_eq!((found["cpu"], found["switch"]), (5198.2, 90_968.1));
}

#[test]
fn lines_of_json_sections_and_digits_in_groups_are_read() {
    let _turn = beside_others();
    let mut k6 = "{\"type\":\"Metric\",\"data\":{\"value\":7},\"metric\":\"took\"}\n".to_owned();
    for ms in 1..=100 {
        k6 += &format!("{{\"type\":\"Point\",\"data\":{{\"value\":{ms}}},\"metric\":\"took\"}}\n");
    }
    let keys = "json = \"$.data.value\"\nwhere = { metric = \"took\", type = \"Point\" }\npick = \"p99\"\nunit = \"ms\"";
    assert_eq!(figures(&k6, &metric("took", keys))["took"], 99.0);
    let schbench = "Wakeup Latencies percentiles (usec) runtime 10 (s)\n\t* 99.0th: 12\n\
                    Request Latencies percentiles (usec) runtime 10 (s)\n\t* 99.0th: 3412\n";
    let keys = "regex = '99\\.0th: (?<v>\\d+)'\nafter = \"^Request\"";
    assert_eq!(
        figures(schbench, &metric("request", keys))["request"],
        3412.0
    );
    let perf = " Performance counter stats for 'x':\n\n           345,678      context-switches\n     \
                12,345,678,901      cycles\n";
    let metrics = [
        metric(
            "switches",
            "regex = '(?<v>[\\d,]+)\\s+context-switches'\nthousands = \",\"",
        ),
        metric("perf_cycles", "regex = '(?<v>[\\d,]+)\\s+cycles'"),
    ];
    let found = figures(perf, &metrics.concat());
    assert_eq!(
        (found["switches"], found["perf_cycles"]),
        (345_678.0, 12_345_678_901.0)
    );
}

/// Figures that the metrics of the ready-made experiment find in a text.
fn of_seven_zip(printed: &str) -> [f64; 3] {
    let preset = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../experiments/programs/7-zip.toml"
    );
    let preset = fs::read_to_string(preset).unwrap();
    let from = preset.find("[[workload.metric]]").unwrap();
    let until = preset.find("[stop]").unwrap();
    let found = figures(printed, &preset[from..until]);
    ["rating", "compress_rating", "decompress_rating"].map(|name| found[name])
}

#[test]
fn ratings_of_old_and_new_versions_of_seven_zip_are_read() {
    let _turn = beside_others();
    let p7zip_16 = "22:       6412   755    826   6238  |     120311   798   1286  10265\n\
                    ----------------------------------  | ------------------------------\n\
                    Avr:             755    826   6238  |              798   1286  10265\n\
                    Tot:             777   1056   8252\n";
    assert_eq!(of_seven_zip(p7zip_16), [8252.0, 6238.0, 10_265.0]);
    let seven_zip_22 = "22:     150000  1500  11000 170000  |    1500000  1590   8400 134000\n\
                        ----------------------------------  | ------------------------------\n\
                        Avr:    151000  1510  11300 171133  |    1510000  1595   8420 134524\n\
                        Tot:            1552   9860 152828\n";
    assert_eq!(
        of_seven_zip(seven_zip_22),
        [152_828.0, 171_133.0, 134_524.0]
    );
}
