//! Outputs of perf 6.1 of Debian 12, as it printed them, and of other languages in its form.

use super::*;
use std::fs;

const TEXT: &str = "# started on Fri Nov 27 23:51:36 2026\n\n\n \
Performance counter stats for 'perf bench sched pipe -l 1000' (3 runs):\n\n             \
15.21 msec task-clock                       #    0.605 CPUs utilized            ( +- 17.21% )\n              \
2000      context-switches                 #  110.885 K/sec                    ( +-  0.06% )\n                 \
0      cpu-migrations                   #    0.000 /sec                   \n              \
1071      page-faults                      #   59.379 K/sec                    ( +-  0.05% )\n   \
<not supported>      cycles                                                      \n   \
<not supported>      instructions                                                \n\n           \
0.02515 +- 0.00571 seconds time elapsed  ( +- 22.72% )\n\n";
const ONCE: &str = "
 Performance counter stats for 'true':

              0.57 msec task-clock                       #    0.542 CPUs utilized          
                49      page-faults                      #   86.675 K/sec                  

       0.001042293 seconds time elapsed

       0.001148000 seconds user
       0.000000000 seconds sys

";
const CSV: &str = "# started on Fri Nov 27 23:51:36 2026

0.57,msec,task-clock,2.23%,565650,100.00,0.520,CPUs utilized
0,,context-switches,0.00%,565650,100.00,0.000,/sec
49,,page-faults,0.68%,565650,100.00,86.386,K/sec
<not supported>,,cycles,0.00%,0,100.00,,
";
const JSON: &str = r#"# started on Fri Nov 27 23:51:37 2026

{"counter-value" : "0.598828", "unit" : "msec", "event" : "task-clock", "event-runtime" : 598828, "pcnt-running" : 100.00, "metric-value" : 0.504109, "metric-unit" : "CPUs utilized"}
{"counter-value" : "49.000000", "unit" : "", "event" : "page-faults", "event-runtime" : 598828, "pcnt-running" : 100.00, "metric-value" : 81.826501, "metric-unit" : "K/sec"}
{"counter-value" : "<not supported>", "unit" : "", "event" : "cycles", "event-runtime" : 0, "pcnt-running" : 100.00, "metric-value" : 0.000000, "metric-unit" : ""}
"#;

fn of(text: &str) -> Read {
    read_text(Path::new("x"), text).unwrap()
}

/// Values by name.
fn values(text: &str) -> Vec<(String, f64)> {
    let counts = of(text).stats.into_iter().flat_map(|stat| stat.counts);
    let counted = counts.filter_map(|count| Some((count.event, count.value?)));
    counted.collect()
}

fn named(values: &[(&str, f64)]) -> Vec<(String, f64)> {
    let values = values.iter();
    values
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}

#[track_caller]
fn refused(text: &str) -> String {
    let error = read_text(Path::new("x"), text).unwrap_err();
    format!("{error} → {}", error.remedy)
}

fn import(files: &[(&str, &str)], path: &str) -> Imported {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = dir.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    read(&[dir.path().join(path)]).unwrap()
}

#[test]
fn text_of_many_runs_has_their_mean_and_the_spread_between_them() {
    let imported = import(&[("lavd.txt", TEXT)], "lavd.txt");
    assert_eq!(imported.faults, []);
    let [run] = imported.runs.as_slice() else {
        panic!("{imported:?}");
    };
    assert_eq!(run.arm, "lavd");
    assert_eq!(run.place.cell_name(), "perf bench sched pipe -l 1000");
    let metric = |name: &str| run.metrics.iter().find(|m| m.metric == name).unwrap();
    let task_clock = metric("task_clock");
    assert_eq!((task_clock.value, task_clock.unit.as_str()), (15.21, "ms"));
    assert_eq!(metric("context_switches").value, 2000.0);
    assert_eq!(metric("elapsed").value, 0.02515);
    assert_eq!(metric("elapsed_parts").value, 3.0);
    // The standard error of the mean of three runs, times the root of two.
    let spread = metric("elapsed_parts_sd").value;
    assert!(
        (spread - 0.02515 * 0.2272 * 2f64.sqrt()).abs() < 1e-9,
        "{spread}"
    );
    // perf prints no error where all runs had 0.
    assert!(
        run.metrics
            .iter()
            .all(|m| m.metric != "cpu_migrations_parts")
    );
    let note = &imported.warnings[0].what;
    assert!(note.contains("left out: cycles, instructions"), "{note}");
}

#[test]
fn text_of_one_run_has_the_times_of_its_user_and_system() {
    let expected = [
        ("task-clock", 0.57),
        ("page-faults", 49.0),
        ("elapsed", 0.001042293),
        ("user", 0.001148),
        ("sys", 0.0),
    ];
    assert_eq!(values(ONCE), named(&expected));
    assert_eq!(of(&format!("{ONCE}{ONCE}")).stats.len(), 2);
}

#[test]
fn fields_and_json_have_the_same_figures_as_text() {
    let expected = [
        ("task-clock", 0.57),
        ("context-switches", 0.0),
        ("page-faults", 49.0),
    ];
    assert_eq!(values(CSV), named(&expected));
    assert_eq!(of(CSV).stats[0].counts[2].error_percent, Some(0.68));
    let semicolons = CSV.replace('.', "!").replace(',', ";").replace('!', ",");
    assert_eq!(values(&semicolons), named(&expected), "{semicolons}");
    assert_eq!(values(&CSV.replace(',', "\t")), named(&expected));
    let expected = [("task-clock", 0.598828), ("page-faults", 49.0)];
    assert_eq!(values(JSON), named(&expected));
    // Files to which --append added.
    assert_eq!(of(&CSV.repeat(2)).stats.len(), 2);
    assert_eq!(of(&JSON.repeat(2)).stats.len(), 2);
}

#[test]
fn digits_in_groups_are_read_as_the_time_that_passed_is_written() {
    let text = |count: &str, elapsed: &str| {
        format!(
            " Performance counter stats for 'x':\n\n   {count}      cycles   #  1 GHz   (49,92%)\n\n   \
             {elapsed} seconds time elapsed\n"
        )
    };
    for (count, elapsed, expected) in [
        ("1,234,567", "0.5", [1_234_567.0, 0.5]),
        ("2,000", "12.25", [2_000.0, 12.25]),
        ("2.000", "0,5", [2_000.0, 0.5]),
        ("2\u{202f}000", "0,5", [2_000.0, 0.5]),
        ("2’000", "0.5", [2_000.0, 0.5]),
    ] {
        let [cycles, time] = expected;
        let expected = named(&[("cycles", cycles), ("elapsed", time)]);
        assert_eq!(values(&text(count, elapsed)), expected, "{count}");
    }
    assert!(refused(&text("2.0.1", "0.5")).contains("`2.0.1"));
}

#[test]
fn what_was_counted_for_a_part_of_the_time_is_said() {
    let text = ONCE.replace(
        "                49      page-faults",
        "  1,500,000      cycles   #  2.1 GHz   (49.92%)\n      49      page-faults",
    );
    let imported = import(&[("a.txt", &text)], "a.txt");
    let note = &imported.warnings[0].what;
    assert!(note.contains("scaled by perf: cycles"), "{note}");
}

#[test]
fn parts_of_the_machine_or_of_the_time_are_no_figures_of_a_run() {
    let interval = "     0.100152299;0.88;msec;task-clock;877468;100.00;0.009;CPUs utilized\n";
    let of_time = "#           time             counts unit events\n     0.100142013    0.93 msec task-clock\n";
    let json =
        r#"{"interval" : 0.100139572, "counter-value" : "1.000000", "unit" : "", "event" : "cs"}"#;
    for text in [interval, of_time, json] {
        assert!(refused(text).contains("without -I"), "{text}");
    }
    let cpu = "CPU0,653,,context-switches,102067219,100.00,,\n";
    let socket = "S0,2,322.94,msec,cpu-clock,322942822,100.00,2.000,CPUs utilized\n";
    let json = r#"{"cpu" : "0", "counter-value" : "236.000000", "unit" : "", "event" : "cs"}"#;
    let plain = " Performance counter stats for 'system wide':\n\nCPU0       911      cs\n\n 0.1 seconds time elapsed\n";
    for text in [cpu, socket, json, plain] {
        assert!(refused(text).contains("without -A"), "{text}");
    }
}

#[test]
fn what_is_not_whole_or_was_not_counted_is_refused_with_its_line() {
    let cut = ONCE.split("       0.001042293").next().unwrap();
    assert!(refused(cut).contains("x:2: there is no `seconds time elapsed`"));
    assert!(refused("<not counted>,,cycles,0,100.00,,\n").contains("no event was counted"));
    assert!(refused("hello\n").contains("no figure of perf stat"));
    // An empty line of --metric-only.
    assert!(refused(",,,,\n").contains("no figure of perf stat"));
    let event = "5,,cpu/event=0x3c,umask=0x0/,1000,100.00,,\n";
    assert!(refused(event).contains("-x';'"));
}

#[test]
fn lines_of_the_program_are_passed_over_and_a_directory_is_an_arm() {
    let text = format!("Total time: 0.031 [sec]\n{ONCE}5 files\n");
    let imported = import(&[("lavd/1.txt", &text), ("lavd/2.txt", ONCE)], "lavd");
    assert_eq!(imported.faults, []);
    let arms: Vec<&str> = imported.runs.iter().map(|run| run.arm.as_str()).collect();
    assert_eq!(arms, ["lavd", "lavd"]);
    let note = &imported.warnings[0].what;
    assert!(
        note.contains("1.txt: 2 lines are not of perf stat, the first is line 1"),
        "{note}"
    );
}

#[test]
fn an_event_that_is_there_twice_is_a_fault() {
    let twice = CSV.replace("0,,context-switches", "7,,page-faults");
    let imported = import(&[("a.csv", &twice)], "a.csv");
    assert!(
        imported.faults[0]
            .to_string()
            .contains("`page-faults` is there twice")
    );
}
