//! Smoothness from the command line to the verdict.

use tests::{Bench, alone, expect_code, skipped, stdout};

/// A game beside two spinners. Without autogroup: with it, sessions share the CPUs whatever policies
/// are within them.
const BESIDE: &str = "name = \"frames\"\n\
    stop = { min-blocks = 1, max-blocks = 2 }\n\
    [[arm]]\nname = \"default\"\ntunables = { autogroup = \"off\" }\n\
    [[arm]]\nname = \"idle\"\ntunables = { autogroup = \"off\" }\n\
    to = \"load\"\npolicy = { class = \"idle\" }\n\
    [[workload]]\nkind = \"frames\"\ncompilers = 1\nmetrics = [\"missed_frames_per_min\"]\n\
    in-place = \"always\"\nturn = \"400ms\"\nwashout = \"100ms\"\nduration = \"6s\"\n\
    warmup = \"100ms\"\n\
    [[workload.antagonist]]\nkind = \"spinner\"\n";

#[test]
#[ignore = "a machine that nothing else uses for most of a minute: make test-long ROWS=quiet"]
fn a_game_that_runs_only_where_nobody_else_does_misses_more_frames() {
    let _turn = alone();
    let bench = Bench::default();
    let file = bench.file("frames.toml", BESIDE);
    if !tests::is_root() {
        return skipped("autogroup is changed by root");
    }
    expect_code(&bench.run(&["run", &file, "-o", "out", "-q"]), 0);
    let output = bench.run(&["report", "out", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("valid JSON");
    let comparisons = report["comparisons"].as_array().expect("a list");
    let of = |metric: &str| {
        let mut found = comparisons.iter();
        let found = found.find(|comparison| comparison["metric"] == metric);
        found.unwrap_or_else(|| panic!("there is no {metric}"))
    };
    let missed = of("missed_frames_per_min");
    assert_eq!(missed["verdict"], "worse", "{missed}");
    // The rest of what players know is there, and none of it is better.
    for metric in [
        "fps_average",
        "fps_1_percent_low",
        "fps_0_1_percent_low",
        "fps_p1",
        "longest_freeze",
        "input_max",
        "render_max",
        "underruns_per_min",
        "compiled_per_sec",
    ] {
        assert_ne!(of(metric)["verdict"], "better", "{}", of(metric));
    }
    expect_code(&bench.run(&["verify", "out"]), 0);
}

#[test]
fn a_rate_that_no_screen_has_is_refused_before_anything_starts() {
    let bench = Bench::default();
    let text = "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\npolicy = { class = \"batch\" }\n\
        [[workload]]\nkind = \"frames\"\nloads = [\"1k/s\"]\n";
    let file = bench.file("frames.toml", text);
    let output = bench.run(&["check", &file]);
    expect_code(&output, 3);
    let said = tests::stderr(&output);
    assert!(said.contains("30 to 480"), "{said}");
}
