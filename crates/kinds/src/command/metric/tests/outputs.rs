//! Outputs as programs print them, with the figures that a person reads in them: cases from the outside,
//! and others of their kind. fio's is its own; the rest are figures of ours in the form of the program.

use super::{metric, value};
use serde_json::{Value, json};
use testing::make_output;

/// The note of this call of fio 3.33 is one that it prints itself.
const FIO: &str = include_str!("fio-3.33.txt");

#[track_caller]
fn reads(text: &str, figures: &[(Value, f64)]) {
    for (keys, expected) in figures {
        assert_eq!(value(keys.clone(), text), Ok(*expected), "{keys}");
    }
}

#[test]
fn a_note_of_fio_before_its_json_hides_no_figure() {
    let read = |path: &str| json!({"json": format!("$.jobs[0].read.{path}")});
    reads(
        FIO,
        &[
            (read("iops"), 5333.333333),
            (read("clat_ns.percentile['99.000000']"), 5_341_184.0),
            (read("lat_ns.mean"), 185_282.957031),
        ],
    );
    let said = metric(read("iops")).unwrap().passed_over(&make_output(FIO));
    let said = said.unwrap();
    assert!(
        said.contains("note: both iodepth >= 1 and synchronous I/O engine"),
        "{said}"
    );
}

#[test]
fn perf_bench_has_the_time_of_messages_before_that_of_the_pipe() {
    let text = "# Running sched/messaging benchmark...\n# 10 groups == 400 processes run\n\n     \
                Total time: 0.119 [sec]\n\n# Running sched/pipe benchmark...\n\n     \
                Total time: 6.695 [sec]\n\n       6.695423 usecs/op\n         149355 ops/sec\n";
    let total = r"Total time: (?<v>[\d.]+) \[sec\]";
    reads(
        text,
        &[
            (
                json!({"regex": r"(?<v>[\d.]+) usecs/op", "unit": "us"}),
                6.695423,
            ),
            (json!({"regex": total, "pick": "first", "unit": "s"}), 0.119),
            (
                json!({"regex": total, "after": "sched/pipe", "unit": "s"}),
                6.695,
            ),
            (json!({"regex": r"(?<v>\d+) ops/sec"}), 149_355.0),
        ],
    );
}

#[test]
fn miscellaneous_lines_of_stress_ng_are_not_taken_for_its_stressors() {
    let text = "stress-ng: metrc: [2036] stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s\n\
                stress-ng: metrc: [2036] cpu               52000     10.00     19.80      0.01      5200.00        2624.94        99.05          2304\n\
                stress-ng: metrc: [2036] pipe           31000000     10.01      3.99     15.90   3096903.10     1558572.15        99.35          1920\n\
                stress-ng: metrc: [2036] switch           910000     10.00      0.99      4.10     91000.00      178781.93        25.45          1920\n\
                stress-ng: metrc: [2036] miscellaneous metrics:\n\
                stress-ng: metrc: [2036] pipe             12098.45 MB per sec pipe write rate (geometric mean of 1 instances)\n\
                stress-ng: metrc: [2036] switch           10989.01 nanosecs per context switch (pipe method)\n";
    let of = |stressor: &str| json!({"regex": format!(r"\] {stressor}\s+\d+(\s+[\d.]+){{3}}\s+(?<v>[\d.]+)")});
    reads(
        text,
        &[
            (of("cpu"), 5200.0),
            (of("pipe"), 3_096_903.1),
            (of("switch"), 91_000.0),
        ],
    );
    let rate = json!({"regex": r"\] pipe\s+(?<v>[\d.]+) (?<u>MB) per sec", "after": "miscellaneous", "unit": "MB"});
    reads(text, &[(rate, 12_098.45)]);
}

#[test]
fn of_a_line_that_is_written_over_the_last_words_count() {
    let text = " 3#iso  :2082816000 ->\r 3#iso  :2082816000 ->2063222758 (1.009),2803.0 MB/s\r \
                3#iso  :2082816000 ->2063222758 (1.009),2812.0 MB/s ,6511.0 MB/s \n";
    reads(
        text,
        &[
            (
                json!({"regex": r"\),(?<v>[\d.]+) MB/s", "pick": "last", "unit": "MB/s"}),
                2812.0,
            ),
            (
                json!({"regex": r" ,(?<v>[\d.]+) MB/s", "pick": "last", "unit": "MB/s"}),
                6511.0,
            ),
        ],
    );
}

#[test]
fn a_figure_of_a_document_that_is_no_json_is_not_taken_from_its_good_half() {
    let text = r#"{ "ALL STATS": { "Totals": { "Ops/sec": 62355.66, "Percentile Latencies": { "p99.00": 8.575 } },
  "Time-Serie": { "374": { "Count": 10, "Average Latency": -nan, "Min Latency": 1.000 } } } }"#;
    let error = value(json!({"json": "$['ALL STATS'].Totals['Ops/sec']"}), text).unwrap_err();
    assert!(
        error.contains("line 2 column 61") && error.contains("-nan"),
        "{error}"
    );
}

#[test]
fn statistics_of_gatling_have_the_figures_of_right_answers() {
    let text = r#"{"name":"All Requests","numberOfRequests":{"total":4000,"ok":3990,"ko":10},
        "percentiles3":{"total":42,"ok":41,"ko":97}}"#;
    reads(
        text,
        &[
            (json!({"json": "$.percentiles3.ok", "unit": "ms"}), 41.0),
            (json!({"json": "$.numberOfRequests.ok"}), 3990.0),
        ],
    );
}

#[test]
fn other_programs_are_read_in_their_own_words() {
    // hyperfine --export-json
    let hyperfine = r#"{"results": [{"command": "make", "mean": 1.875, "times": [1.5, 2.25], "exit_codes": [0, 0]}]}"#;
    // MangoHud: two lines of the machine, a head, a frame in each line.
    let frames: String = (1..=100).map(|ms| format!("60,{ms}.5,33\n")).collect();
    let mangohud = format!("os,cpu,gpu,ram\nDebian,A,B,1\nfps,frametime,cpu_load\n{frames}");
    // wrk2: figures whose units change with their size.
    let wrk2 =
        "  Latency Distribution\n 50.000%  955.00us\n 99.000%    1.03ms\n100.000%    1.20s \n";
    // pgbench
    let pgbench =
        "latency average = 1.304 ms\ntps = 7668.529341 (without initial connection time)\n";
    // redis-benchmark --csv
    let redis = "\"test\",\"rps\",\"p99_latency_ms\"\n\"SET\",\"98039.22\",\"0.391\"\n\"GET\",\"102040.82\",\"0.295\"\n";
    // osu_latency
    let osu = "# OSU MPI Latency Test v7.3\n# Size          Latency (us)\n1                       0.92\n1024                    1.84\n";
    for (text, keys, expected) in [
        (
            hyperfine,
            json!({"json": "$.results[0].times[*]", "pick": "max", "unit": "s"}),
            2.25,
        ),
        (
            &mangohud,
            json!({"csv": "frametime", "pick": "p99", "unit": "ms"}),
            99.5,
        ),
        (
            wrk2,
            json!({"regex": r"99\.000%\s+(?<v>[\d.]+)(?<u>\w+)", "unit": "us"}),
            1030.0,
        ),
        (
            wrk2,
            json!({"regex": r"100\.000%\s+(?<v>[\d.]+)(?<u>\w+)", "unit": "ms"}),
            1200.0,
        ),
        (
            pgbench,
            json!({"regex": r"^tps = (?<v>[\d.]+)"}),
            7668.529341,
        ),
        (
            redis,
            json!({"csv": "p99_latency_ms", "where": {"test": "GET"}, "unit": "ms"}),
            0.295,
        ),
        (
            osu,
            json!({"regex": r"^1024\s+(?<v>[\d.]+)", "unit": "us"}),
            1.84,
        ),
    ] {
        assert_eq!(value(keys.clone(), text), Ok(expected), "{keys}");
    }
}
