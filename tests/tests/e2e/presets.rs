//! The ready-made experiments of experiments/programs, with the real programs, in a shortened
//! form: one block of what takes about a second. What is not installed is skipped.

#![allow(clippy::unwrap_used)]

use model::TrialState;
use results::ResultSet;
use std::path::{Path, PathBuf};
use tests::{Bench, beside_others, expect_code, skipped, with_lock_of_runs};

/// One file: the program that it needs, what makes it short, and the metrics that must come out.
struct Preset {
    file: &'static str,
    program: &'static str,
    shorter: &'static [(&'static str, &'static str)],
    /// Workload, metric, unit.
    metrics: &'static [(&'static str, &'static str, &'static str)],
}

const PRESETS: &[Preset] = &[
    Preset {
        file: "stress-ng",
        program: "stress-ng",
        shorter: &[("\"--timeout\", \"10\"", "\"--timeout\", \"1\"")],
        metrics: &[
            ("stress-ng", "cpu_bogo_ops", "1/s"),
            ("stress-ng", "pipe_bogo_ops", "1/s"),
            ("stress-ng", "switch_bogo_ops", "1/s"),
        ],
    },
    Preset {
        file: "sysbench",
        program: "sysbench",
        shorter: &[("--time=10", "--time=1")],
        metrics: &[
            ("cpu", "events_per_sec", "1/s"),
            ("cpu", "event_p95", "ms"),
            ("threads", "events", "events"),
            ("threads", "event_p95", "ms"),
        ],
    },
    Preset {
        file: "perf-bench-sched",
        program: "perf",
        shorter: &[
            ("\"300000\"", "\"2000\""),
            ("\"--group\", \"10\"", "\"--group\", \"1\""),
        ],
        metrics: &[("pipe", "turn", "us"), ("messaging", "messaging_time", "s")],
    },
    Preset {
        file: "cyclictest",
        program: "cyclictest",
        shorter: &[("--duration=10s", "--duration=1s")],
        metrics: &[
            ("cyclictest", "cyclictest_mean", "us"),
            ("cyclictest", "cyclictest_max", "us"),
        ],
    },
    Preset {
        file: "rt-app",
        program: "rt-app",
        shorter: &[("\"duration\": 10,", "\"duration\": 1,")],
        metrics: &[
            ("rt-app", "slack_mean", "us"),
            ("rt-app", "wakeup_mean", "us"),
            ("rt-app", "wakeup_worst", "us"),
        ],
    },
    Preset {
        file: "7-zip",
        program: "7zz",
        // The smallest dictionary that it takes.
        shorter: &[("\"-mmt2\"", "\"-mmt1\", \"-md18\"")],
        metrics: &[
            ("7-zip", "rating", "MIPS"),
            ("7-zip", "compress_rating", "MIPS"),
            ("7-zip", "decompress_rating", "MIPS"),
        ],
    },
    Preset {
        file: "vkcube",
        program: "vkcube",
        shorter: &[
            ("\"{folder}\", \"6\"", "\"{folder}\", \"3\""),
            ("duration = \"6s\"", "duration = \"1s\""),
        ],
        metrics: &[
            ("vkcube", "cube_fps", "1/s"),
            ("vkcube", "cube_1_percent_low", "1/s"),
            ("vkcube", "cube_longest_frame", "ms"),
            ("frames", "longest_freeze", "ns"),
        ],
    },
    Preset {
        file: "iperf3",
        program: "iperf3",
        shorter: &[("\"--time\", \"10\"", "\"--time\", \"1\"")],
        metrics: &[
            ("iperf3", "received", "bit/s"),
            ("iperf3", "sender_cpu", "%"),
        ],
    },
];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../experiments/programs")
}

fn shortened(file: &str, changes: &[(&str, &str)]) -> String {
    shorten(&directory(), file, changes)
}

/// The text of a shipped file with all of the changes and one block.
pub fn shorten(directory: &Path, file: &str, changes: &[(&str, &str)]) -> String {
    let path = directory.join(format!("{file}.toml"));
    let mut text = std::fs::read_to_string(&path).unwrap();
    let one_block = ("[stop]", "[stop]\nmin-blocks = 1\nmax-blocks = 1");
    for (from, to) in changes.iter().chain([&one_block]) {
        assert!(text.contains(from), "{file} has no {from}");
        text = text.replace(from, to);
    }
    text
}

fn measured(name: &str, text: &str) -> ResultSet {
    measure(name, text, &[])
}

/// Results of the one block, all of whose trials count.
pub fn measure(name: &str, text: &str, options: &[&str]) -> ResultSet {
    let bench = Bench::default();
    let file = bench.file(&format!("{name}.toml"), text);
    let command = [&["run", &file, "-o", "out"], options].concat();
    expect_code(&bench.run(&command), 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    for stored in &results.trials {
        let state = &stored.trial.result.state;
        assert!(matches!(state, TrialState::Ok), "{name}: {state:?}");
    }
    results
}

/// A tunable is one for the whole machine. Beside an antagonist, arms may turn autogroup by themselves.
fn turns_a_tunable(preset: &Preset) -> bool {
    let text = shortened(preset.file, preset.shorter);
    text.contains("tunables") || text.contains("[workload.antagonist]")
}

#[test]
fn every_preset_measures_its_metrics_with_the_real_program() {
    let _turn = beside_others();
    expect_figures(PRESETS.iter().filter(|preset| !turns_a_tunable(preset)));
}

#[test]
fn presets_that_turn_a_tunable_measure_their_metrics_with_the_real_program() {
    let _turn = with_lock_of_runs();
    expect_figures(PRESETS.iter().filter(|preset| turns_a_tunable(preset)));
}

/// Each has a figure of each metric for each arm.
fn expect_figures<'a>(presets: impl Iterator<Item = &'a Preset>) {
    for preset in presets {
        let Preset { file, program, .. } = preset;
        if tests::program(program).is_none() {
            skipped(format!("{file}.toml: {program} is not installed"));
            continue;
        }
        let results = measured(file, &shortened(file, preset.shorter));
        for row in preset.metrics {
            expect_metric(file, &results, 2, row);
        }
    }
}

/// Each of so many arms has a figure of this workload, metric and unit.
pub fn expect_metric(file: &str, results: &ResultSet, arms: usize, row: &(&str, &str, &str)) {
    let (workload, metric, unit) = row;
    let of_workload = results.trials.iter().map(|stored| &stored.trial);
    let of_workload = of_workload.filter(|t| t.cell.split(' ').next() == Some(workload));
    let figures: Vec<_> = of_workload
        .flat_map(|trial| &trial.result.metrics)
        .filter(|figure| figure.metric == *metric)
        .collect();
    let found = figures.len();
    assert_eq!(found, arms, "{file}: {metric} of {workload}, an arm each");
    for figure in figures {
        assert_eq!(figure.unit, *unit, "{file}: {figure:?}");
        // A period that is missed on a busy machine has a negative slack.
        let is_sane = figure.value > 0.0 || *metric == "slack_mean";
        assert!(is_sane && figure.value.is_finite(), "{file}: {figure:?}");
    }
}

/// A tree that make(1) treats as the kernel's: it configures and builds below `O=`, and a build
/// without its configuration fails. The kernel itself takes minutes.
const MAKEFILE: &str = "\
tinyconfig:
\ttest ! -e $(O)/.config
\techo CONFIG_TINY=y > $(O)/.config
vmlinux: $(addprefix $(O)/,a.o b.o)
\t$(CC) -shared -o $(O)/vmlinux $^
$(O)/%.o: %.c
\tgrep -q TINY $(O)/.config
\t$(CC) -fPIC -c -o $@ $<
";

#[test]
fn a_kernel_is_built_in_a_folder_of_its_own_in_each_trial() {
    if tests::program("make").is_none() || tests::program("cc").is_none() {
        return skipped("kernel-build.toml: make or cc is not installed");
    }
    let _turn = with_lock_of_runs();
    let tree = tests::tree(&[
        ("Makefile", MAKEFILE),
        ("a.c", "int a(void) { return 1; }\n"),
        ("b.c", "int b(void) { return 2; }\n"),
    ]);
    let directory = format!("directory = \"{}\"", tree.path().display());
    let text = shortened("kernel-build", &[("directory = \"linux\"", &directory)]);
    let results = measured("kernel-build", &text);
    for metric in ["wall_time", "cpu_time"] {
        let trials = results.trials.iter().map(|stored| &stored.trial.result);
        let figures = trials.flat_map(|result| &result.metrics);
        let of_it: Vec<_> = figures.filter(|f| f.metric == metric).collect();
        assert_eq!(of_it.len(), 2, "{metric}");
        assert!(
            of_it.iter().all(|f| f.value > 0.0 && f.unit == "s"),
            "{of_it:?}"
        );
    }
    let mut left: Vec<_> = std::fs::read_dir(tree.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(
        left,
        ["Makefile", "a.c", "b.c"],
        "the tree is not written to"
    );
}

/// So that no file is left out of the tests above.
#[test]
fn every_preset_is_tried() {
    let entries = std::fs::read_dir(directory()).unwrap();
    let names = entries.map(|e| e.unwrap().path().file_stem().unwrap().to_owned());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    let mut tried: Vec<&str> = PRESETS.iter().map(|p| p.file).collect();
    tried.push("kernel-build");
    tried.sort_unstable();
    assert_eq!(names, tried);
}
