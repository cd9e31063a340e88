//! Files as the tools write them, through an import into the report.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use import::{Converted, Imported, Options, Tool};
use report::{Format, Options as Shown, Table};
use results::ResultSet;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn read(tool: &str, path: &Path) -> Imported {
    Tool::find_by_name(tool)
        .unwrap()
        .read(&[path.to_owned()])
        .unwrap()
}

/// The results of an import, and the directory that holds them.
fn results(tool: &str, path: &Path) -> (TempDir, ResultSet) {
    let imported = read(tool, path);
    assert_eq!(imported.faults, []);
    let options = Options {
        tool: tool.to_owned(),
        name: tool.to_owned(),
        ..Options::default()
    };
    let converted = Converted::from_imported(imported, path, options).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("results");
    converted.write(&place).unwrap();
    let results = ResultSet::read(&place).unwrap();
    (dir, results)
}

fn rendered(results: &ResultSet, format: &str) -> String {
    let format = Format::find_by_name(format).unwrap();
    let table = Table::from_results(results);
    format
        .render_report(&table, results, &Shown::default())
        .unwrap()
        .into_string()
}

fn write(dir: &Path, path: &str, text: &str) -> PathBuf {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn lines(figures: &[f64]) -> String {
    figures.iter().map(|figure| format!("{figure}\n")).collect()
}

/// Two runs of schedtests: times of hackbench, and rates of two pairs of netperf, thrice.
fn schedtests(root: &str, loads: [&str; 2]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let [groups, threads] = loads;
    for (run, times, rates) in [
        (
            "6.1.0",
            [10.25, 10.75, 11.5, 10.0],
            [70100.5, 14020.25, 69000.0, 71000.0, 14500.0, 14100.0],
        ),
        (
            "6.1.0-fix",
            [9.125, 9.5, 9.25, 9.75],
            [14000.0, 14200.0, 70250.0, 14300.0, 14100.5, 13900.0],
        ),
    ] {
        for (place, figures) in [
            (format!("hackbench/process-pipe/{groups}"), lines(&times)),
            (format!("netperf/UDP_RR/{threads}"), lines(&rates)),
        ] {
            write(dir.path(), &format!("{root}/{place}/{run}.log"), &figures);
        }
    }
    dir
}

const FORKS: [(&str, [&str; 2]); 2] = [
    ("results", ["group-8", "thread-2"]),
    ("logs", ["8-groups", "2-threads"]),
];

#[test]
fn the_classic_table_has_the_figures_that_schedtests_prints_of_either_fork() {
    for (root, loads) in FORKS {
        let dir = schedtests(root, loads);
        let (_kept, results) = results("schedtests", dir.path());
        let text = rendered(&results, "lkml");
        // Its formulas in Python: b = round(mean(base), 4), std = round(100 * pstdev / b, 2),
        // compare = round((1 - c / b) * 100, 2) where lower is better, else (c / b - 1) * 100.
        for (case, load, figures) in [
            ("process-pipe", loads[0], "1.00 (  5.39)   +11.47 (  2.55)"),
            ("UDP_RR", loads[1], "1.00 ( 66.29)   -44.31 ( 89.21)"),
        ] {
            let line = text.lines().find(|line| line.starts_with(case)).unwrap();
            assert!(line.contains(load) && line.contains(figures), "{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() < 78), "{text}");
    }
}

#[test]
fn sequential_runs_get_no_word_of_interleaved_ones() {
    // Ten runs a side, far apart and without noise to speak of: interleaved they would be called.
    let dir = tempfile::tempdir().unwrap();
    for (run, level) in [("a", 10.0), ("b", 5.0)] {
        let figures: Vec<f64> = (0..10).map(|i| level + f64::from(i % 3) / 100.0).collect();
        write(
            dir.path(),
            &format!("hackbench/x-pipe/group-1/{run}.log"),
            &lines(&figures),
        );
    }
    let (_kept, results) = results("schedtests", dir.path());
    let table = Table::from_results(&results);
    assert_eq!(table.all_comparisons().count(), 0);
    assert!(table.tallies.is_empty());
    for format in ["text", "lkml", "markdown", "html"] {
        let text = rendered(&results, format);
        let body = match text.split_once("<body>") {
            Some((_, body)) => body.to_owned(),
            None => text,
        };
        let words = body.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in [
            "b is better",
            "b is worse",
            "better:",
            ">better<",
            ">worse<",
            "unknown",
        ] {
            assert!(!words.contains(word), "{format}: {word}: {words}");
        }
        assert!(words.contains("is mixed with the arm"), "{format}: {words}");
        assert!(words.contains("no error rate"), "{format}: {words}");
    }
    let json: serde_json::Value = serde_json::from_str(&rendered(&results, "json")).unwrap();
    let change = &json["sequential"]["rows"][0]["changes"][0];
    assert!(change["ratio"].as_f64().unwrap() < 0.51);
    assert!(change["high"].as_f64().unwrap() < 0.51);
    assert!(change.get("verdict").is_none() && change.get("e_value").is_none());
}

#[test]
fn one_run_a_side_has_no_interval() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "hackbench/x-pipe/8-groups/a.log", "234.622\n");
    write(dir.path(), "hackbench/x-pipe/8-groups/b.log", "1508.932\n");
    let (_kept, results) = results("schedtests", dir.path());
    let json: serde_json::Value = serde_json::from_str(&rendered(&results, "json")).unwrap();
    assert!(json["sequential"]["rows"][0]["changes"][0]["low"].is_null());
    let text = rendered(&results, "text");
    assert!(text.contains("one run, its spread is not known"), "{text}");
}

#[test]
fn runs_that_drift_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let rising: Vec<f64> = (0..8).map(|i| 10.0 + f64::from(i)).collect();
    write(
        dir.path(),
        "hackbench/x-pipe/group-1/a.log",
        &lines(&rising),
    );
    let (_kept, results) = results("schedtests", dir.path());
    let text = rendered(&results, "text");
    assert!(text.contains("In 1 of 1 series the runs"), "{text}");
}

fn fault(tree: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in tree {
        write(dir.path(), path, text);
    }
    let faults = read("schedtests", dir.path()).faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    let shown = faults[0].to_string();
    shown.replace(&*dir.path().to_string_lossy(), "")
}

#[test]
fn bad_logs_are_named_with_their_lines() {
    let log = "hackbench/x-pipe/group-1/a.log";
    assert_eq!(
        fault(&[(log, "")]),
        format!("/{log}: the log is empty: nothing was measured")
    );
    let words = fault(&[(log, "1.5\n99.0th:\n")]);
    assert_eq!(words, format!("/{log}:2: `99.0th:` is no number"));
    let hole = fault(&[(log, "1.5\n\n1.6\n")]);
    assert!(
        hole.starts_with(&format!("/{log}:2: the line is empty")),
        "{hole}"
    );
    let pairs = fault(&[("netperf/TCP_RR/thread-4/a.log", "1\n2\n3\n4\n5\n")]);
    assert!(
        pairs.contains("a.log:5: 5 figures are no whole number"),
        "{pairs}"
    );
    assert!(fault(&[(log, "nan\n")]).contains("`nan` is no number"));
}

#[test]
fn logs_that_mix_two_runs_are_refused() {
    let place = |load: &str| format!("hackbench/x-pipe/{load}/a.log");
    let doubled = fault(&[
        (&place("group-1"), "1\n2\n3\n"),
        (&place("group-2"), "1\n2\n3\n"),
        (&place("group-4"), "1\n2\n3\n4\n5\n6\n"),
    ]);
    assert!(
        doubled.contains("group-4/a.log:4: 6 repetitions"),
        "{doubled}"
    );
    assert!(doubled.contains("mixes 2 runs"), "{doubled}");
    let output = "hackbench/x-pipe/group-1/a/hackbench.log";
    let running = |fds: u32| {
        format!("Running in process mode with 8 groups using {fds} file descriptors each\n")
    };
    let text = format!("{}Time: 1.5\n{}Time: 1.6\n", running(28), running(10));
    let mixed = fault(&[(&place("group-1"), "1.5\n1.6\n"), (output, &text)]);
    assert!(
        mixed.contains("a/hackbench.log:3: the log mixes two runs"),
        "{mixed}"
    );
    let text = format!("{0}Time: 1.5\n{0}Time: 1.6\n", running(28));
    let other = fault(&[(&place("group-1"), "1.5\n"), (output, &text)]);
    assert!(other.contains("not of the same run"), "{other}");
}

fn schbench_file(kernel: &str, ops: &str, p99: u32, time: u64) -> String {
    format!(
        r#"{{"normal": {{"version": "{kernel}","hostname": "host","sched_ext": "{ops}","cmdline": "/usr/bin/schbench -m 2 -t 4 -r 10 -j {p99}.json"}},"int": {{"time": {time}, "wakeup_latency_pct50.0": 7, "wakeup_latency_pct99.0": {p99}, "wakeup_latency_pct99.9": 5000, "wakeup_latency_min": 1,"wakeup_latency_max": 9000, "request_latency_pct99.0": 20000, "rps_pct50.0": 300, "rps_min": 0,"rps_max": 310, "runtime": 10}}}}"#
    )
}

#[test]
fn files_of_schbench_are_arms_by_kernel_and_scheduler() {
    let dir = tempfile::tempdir().unwrap();
    for (n, ops, p99) in [
        (1, "disabled", 50),
        (2, "disabled", 60),
        (3, "lavd_1.0", 90),
    ] {
        let text = schbench_file("6.12.0", ops, p99, 1_700_000_000 + 100 * n);
        write(dir.path(), &format!("{n}.json"), &text);
    }
    let (_kept, results) = results("schbench-json", dir.path());
    let arms: Vec<&str> = results
        .experiment
        .arms
        .iter()
        .map(|a| a.name.as_str())
        .collect();
    assert_eq!(arms, ["6.12.0", "6.12.0 lavd_1.0"]);
    // One cell: the files have different names on their command lines, and the same work.
    assert_eq!(results.plan.cells.len(), 1);
    assert_eq!(results.plan.cells[0].name, "schbench -m 2 -t 4 -r 10");
    let trial = &results.trials[0].trial;
    assert_eq!(trial.metric("wakeup_p99").unwrap().value, 50_000.0);
    assert_eq!(trial.metric("wakeup_p999").unwrap().value, 5_000_000.0);
    assert_eq!(trial.result.started_unix_ns, 1_700_000_090_000_000_000);
    // The least rate is that of the first second, a false 0.
    assert_eq!(
        trial.metric("requests_per_sec_min").unwrap().better,
        model::Better::Neither
    );
}

#[test]
fn two_results_in_a_file_of_schbench_are_refused() {
    let one = schbench_file("6.12.0", "disabled", 50, 1);
    let text = format!("{one}\n{one}\n");
    let error = import::schbench::read_text(Path::new("x.json"), &text).unwrap_err();
    assert_eq!(
        error.to_string(),
        "x.json:1: the file mixes two runs: there is more behind the first result"
    );
    let cut = import::schbench::read_text(Path::new("x.json"), &one[..300]).unwrap_err();
    assert!(
        cut.to_string().starts_with("x.json:1: not valid: EOF"),
        "{cut}"
    );
    let empty = import::schbench::read_text(Path::new("x.json"), " \n").unwrap_err();
    assert_eq!(empty.to_string(), "x.json: the file is empty");
}

fn composite(entries: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<PhoronixTestSuite>\n <Generated><Title>t</Title></Generated>\n \
         <System><Identifier>cfs</Identifier><Hardware>Processor: X &amp; Y</Hardware></System>\n \
         <Result>\n  <Identifier>pts/hackbench-1.0.0</Identifier>\n  <Title>Hackbench</Title>\n  \
         <Description>Count: 8 - Type: Thread</Description>\n  <Scale>Seconds</Scale>\n  \
         <Proportion>LIB</Proportion>\n  <Data>\n{entries}  </Data>\n </Result>\n</PhoronixTestSuite>\n"
    )
}

fn entry(arm: &str, raw: &str) -> String {
    format!(
        "   <Entry><Identifier>{arm}</Identifier><Value>1</Value><RawString>{raw}</RawString></Entry>\n"
    )
}

#[test]
fn entries_of_phoronix_are_arms_and_their_raw_figures_are_runs() {
    let dir = tempfile::tempdir().unwrap();
    let text = composite(&(entry("cfs", "10.5:10.6:10.4") + &entry("scx", "11:12:13")));
    write(dir.path(), "composite.xml", &text);
    let (_kept, results) = results("phoronix", dir.path());
    assert_eq!(results.trials.len(), 6);
    assert_eq!(
        results.plan.cells[0].name,
        "Hackbench, Count: 8 - Type: Thread"
    );
    assert_eq!(results.system.cpu_model, "Processor: X & Y");
    let figure = results.trials[0].trial.metric("result").unwrap();
    assert_eq!((figure.value, figure.unit.as_str()), (10.5, "s"));
    assert_eq!(figure.better, model::Better::Lower);
}

#[test]
fn one_test_in_two_files_of_phoronix_is_one_cell_and_another_argument_makes_another() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, arguments: &str, arm: &str| {
        let with = format!("<Arguments>{arguments}</Arguments>\n  <Scale>");
        let text = composite(&entry(arm, "10:11:12")).replace("<Scale>", &with);
        write(dir.path(), name, &text);
        dir.path().join(name)
    };
    let files = [
        file("cfs.xml", "8", "cfs"),
        file("scx.xml", "8", "scx"),
        file("size.xml", "test install size ", "scx"),
        file("other.xml", "16", "scx"),
    ];
    let imported = import::phoronix::read(&files).unwrap();
    assert!(imported.faults.is_empty(), "{:?}", imported.faults);
    let places: Vec<(&str, &str)> = imported
        .runs
        .iter()
        .step_by(3)
        .map(|run| (run.arm.as_str(), run.place.workload.as_str()))
        .collect();
    let name = "Hackbench, Count: 8 - Type: Thread";
    let other = format!("{name} (2)");
    assert_eq!(places, [("cfs", name), ("scx", name), ("scx", &other)]);
}

fn phoronix_faults(entries: &str) -> Vec<String> {
    let mut imported = Imported::default();
    let read = import::phoronix::read_text(Path::new("c.xml"), &composite(entries), &mut imported);
    let faults = read.err().into_iter().chain(imported.faults);
    faults.map(|fault| fault.to_string()).collect()
}

#[test]
fn bad_files_of_phoronix_are_named_with_their_lines() {
    assert_eq!(
        phoronix_faults(&entry("cfs", "1:x:3")),
        ["c.xml:12: `x` is no number"]
    );
    let twice = entry("cfs", "1:2") + &entry("cfs", "3:4");
    let twice = phoronix_faults(&twice);
    assert!(
        twice[0].starts_with("c.xml:13: `cfs` is in this result twice"),
        "{twice:?}"
    );
    let mut imported = Imported::default();
    let mut read =
        |text: &str| import::phoronix::read_text(Path::new("c.xml"), text, &mut imported);
    let other = read("<html></html>").unwrap_err().to_string();
    assert_eq!(
        other,
        "c.xml:1: the file is <html>, not <PhoronixTestSuite>"
    );
    let cut = read("<PhoronixTestSuite>\n<Result>")
        .unwrap_err()
        .to_string();
    assert!(cut.contains("c.xml:2: the file ends too early"), "{cut}");
}

#[test]
fn logs_of_mmtests_are_read_over_all_iterations() {
    let dir = tempfile::tempdir().unwrap();
    for (run, factor) in [("6.1", 1.0), ("6.2", 1.5)] {
        for iteration in [1, 2] {
            let base = format!("work/log/{run}/iter-{iteration}");
            let total = |s: f64| format!("# Running\n     Total time: {} [sec]\n", s * factor);
            let text = total(1.0) + &total(1.25);
            write(
                dir.path(),
                &format!("{base}/hackbench-process-pipes/logs/hackbench-4"),
                &text,
            );
            write(dir.path(), &format!("{base}/sockperf/logs/x.log"), "1\n");
            let text = "Wakeup Latencies percentiles (usec) runtime 10 (s) (9 total samples)\n\t  \
                        50.0th: 5          (4 samples)\n\t* 99.0th: 70         (2 samples)\n\
                        Request Latencies percentiles (usec) runtime 10 (s)\n\t* 99.0th: 9000 (1)\n\
                        average rps: 10.0\n";
            write(
                dir.path(),
                &format!("{base}/schbench/logs/schbench-2.log"),
                text,
            );
        }
    }
    let (_kept, results) = results("mmtests", dir.path());
    assert_eq!(results.trials.len(), 2 * (4 + 2));
    let names: Vec<&str> = results.plan.cells.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["hackbench-process-pipes 4", "schbench 2"]);
    let schbench = results
        .trials
        .iter()
        .find(|t| t.trial.place.cell == 1)
        .unwrap();
    assert_eq!(schbench.trial.metric("wakeup_p99").unwrap().value, 70_000.0);
    assert_eq!(schbench.trial.metric("request_p99").unwrap().value, 9e6);
    let warning = &results.manifest.warnings[0].what;
    assert!(warning.contains("sockperf"), "{warning}");
}

#[test]
fn an_exported_file_of_mmtests_gives_runs_for_any_benchmark() {
    let module = |run: &str, values: &str| {
        format!(
            r#"{{"_ModuleName":"ExtractShellpack","_TestName":"{run}","_PreferredVal":"Higher",
            "_PlotYaxis":"Transactions/second","_ResultData":{{"send-64":[{{"SampleNrs":[1,2],"Values":{values}}}]}}}}"#
        )
    };
    let text = |values: &str| {
        let modules = [module("a", r#"[10, "11.5"]"#), module("b", values)];
        format!(r#"{{"_ExtractModules":[{}]}}"#, modules.join(","))
    };
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), "netperf.json", &text("[12, 13]"));
    let (_kept, results) = results("mmtests", &path);
    assert_eq!(results.trials.len(), 4);
    let figure = results.trials[0].trial.metric("result").unwrap();
    assert_eq!(
        (figure.unit.as_str(), figure.better),
        ("1/s", model::Better::Higher)
    );
    let path = write(dir.path(), "bad.json", &text(r#"["x"]"#));
    let faults = read("mmtests", &path).faults;
    assert!(
        faults[0]
            .to_string()
            .contains("`x` in send-64 of b is no number"),
        "{faults:?}"
    );
}

/// Two sets under one scheduler. Worker 0:0 does nothing in its last second.
fn schedbench_file(completed: bool) -> String {
    let report = |set: u32, id: u32, now: u64, kops: u64, late: u64, cpu: u64| {
        format!(
            r#"{{"Id":{{"Set":{set},"Id":{id}}},"Now":{now},"Kops":{kops},"MaxDelta":{late},"Cputime":{cpu}}}"#
        )
    };
    let raw = [
        report(0, 0, 1_000_000_000, 100, 10, 100_000_000),
        report(0, 1, 1_500_000_000, 50, 20, 50_000_000),
        report(1, 0, 1_000_000_000, 10, 0, 0),
        report(0, 0, 2_000_000_000, 300, 10, 600_000_000),
        report(0, 1, 2_500_000_000, 350, 90, 450_000_000),
        report(1, 0, 3_000_000_000, 20, 5, 500_000_000),
        report(0, 0, 3_000_000_000, 300, 70, 600_000_000),
    ];
    let set = |args: &str, count: u32| {
        format!(
            r#"{{"Params":{{"Args":[{args}]}},"Config":{{"Pool":"p","SoftAffinity":""}},"Count":{count}}}"#
        )
    };
    format!(
        r#"{{"Input":{{}},"WorkerType":1,"Pool":"","SoftAffinity":"","RunConfig":{{"Scheduler":"","Pool":"p","Cpus":[1]}},
        "Runs":[{{"Label":"A 2 + B 1 credit2 NumaOff","WorkerSets":[{},{}],"SoftAffinity":"",
        "Scheduler":"credit2","Cpus":[1],"NumaDisable":true,"RuntimeSeconds":10,"Completed":{completed},
        "Results":{{"Raw":[{}]}}}}]}}"#,
        set(r#""burnwait","70","200000""#, 2),
        set(r#""burnwait","10","300000""#, 1),
        raw.join(",")
    )
}

#[test]
fn sets_and_windows_of_schedbench_have_the_figures_of_its_own_formulas() {
    let mut imported = Imported::default();
    let path = Path::new("x.bench");
    import::schedbench::read_text(path, &schedbench_file(true), &mut imported).unwrap();
    assert_eq!(imported.faults, []);
    let run = &imported.runs[0];
    assert_eq!(
        (run.arm.as_str(), run.place.cell_name()),
        ("credit2 NumaOff", "schedbench A 2 + B 1".into())
    );
    let file = |name: &str| {
        &run.files
            .iter()
            .find(|file| file.name == name)
            .unwrap()
            .text
    };
    let lines: Vec<&str> = file("sets.csv").lines().collect();
    // By hand. Worker 0:0: 300 in 2 s and 0.5 s of CPU in 2 s; 0:1: 350 in 1 s (what was done before
    // the first report counts) and 0.4 of a CPU. Windows: 200, 0 and 300 a second.
    assert_eq!(
        lines[1],
        "0,2,500.000000,250.000000,100.000000,350.000000,150.000000,300.000000,0.000000,\
         0.650000,0.325000,0.075000,0.400000,0.250000,0.500000,0.000000,burnwait 70 200000"
    );
    assert!(
        lines[2].starts_with("1,1,10.000000,10.000000,0.000000,"),
        "{}",
        lines[2]
    );
    assert!(file("windows.csv").contains("0,0,3000000000,0.000000,0.000000"));
    let get = |name: &str| run.metrics.iter().find(|m| m.metric == name).unwrap().value;
    assert_eq!(get("work_per_sec"), 510.0);
    assert_eq!(get("work_per_sec_set1"), 10.0);
    assert_eq!(get("cpu_percent"), 100.0 * (0.65 + 0.25));
    assert_eq!(get("lateness_max"), 90.0);
}

#[test]
fn bad_files_of_schedbench_are_errors_with_their_place() {
    let read = |text: &str| {
        let mut imported = Imported::default();
        let read = import::schedbench::read_text(Path::new("x"), text, &mut imported);
        let faults = read.err().into_iter().chain(imported.faults);
        (
            faults.map(|f| f.to_string()).collect::<Vec<_>>().join("|"),
            imported.runs.len(),
        )
    };
    let whole = schedbench_file(true);
    let (cut, _) = read(&whole[..whole.len() / 2]);
    assert!(
        cut.starts_with("x:4: not valid: EOF") || cut.starts_with("x:3: not valid: EOF"),
        "{cut}"
    );
    let (mixed, _) = read(&whole.replace("3000000000,\"Kops\":300", "500000000,\"Kops\":300"));
    assert!(mixed.contains("reports of worker 0:0 go back"), "{mixed}");
    let (other, _) = read(&whole.replace("\"Set\":1,\"Id\":0", "\"Set\":7,\"Id\":0"));
    assert!(
        other.contains("worker 7:0, which it does not have"),
        "{other}"
    );
    let (template, _) = read(r#"{"Input":{"WorkerPresets":{}}}"#);
    assert!(template.contains("there are no Runs"), "{template}");
    assert_eq!(read(&schedbench_file(false)), (String::new(), 0));
}
