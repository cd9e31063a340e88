//! Loads that are measured in one window: what they decide, what is refused and where.

mod named;

use named::{find_wrong, parse_experiment, parse_words};
use plan::Words;

const FILE: &str = r#"
[[arm]]
name = "a"
[[workload]]
kind = "wakeup"
loads = [2]
duration = "3s"
[[workload.co-runner]]
name = "ticks"
kind = "periodic"
load = 1
[[workload.co-runner]]
kind = "command"
command = ["make"]
[[workload.co-runner.metric]]
name = "files"
regex = 'files: (?<v>\d+)'
better = "higher"
"#;

/// The message with its help, and the text that is pointed at.
#[track_caller]
fn wrong(from: &str, to: &str) -> (String, String) {
    let (message, help, place) = find_wrong(FILE, from, to);
    (format!("{message} | {help}"), place)
}

#[test]
fn each_load_has_the_window_of_the_workload_and_decides_with_its_own_metrics() {
    let experiment = parse_experiment("x.toml", FILE).expect("is right");
    let [workload] = experiment.workloads.as_slice() else {
        panic!("{:?}", experiment.workloads);
    };
    let decide = workload.metrics.join(" ");
    let expected =
        "wakeup_p99 request_p99 requests_per_sec ticks_lateness_p99 ticks_request_p99 make_files";
    assert_eq!(decide, expected);
    for co_runner in &workload.co_runners {
        assert_eq!(
            co_runner.duration_ns, workload.duration_ns,
            "{}",
            co_runner.name
        );
    }
    let each = FILE.replacen("duration", "co-runners = \"each\"\nduration", 1);
    let experiment = parse_experiment("x.toml", &each).expect("is right");
    let cells = experiment
        .workloads
        .iter()
        .map(|w| (w.name.as_str(), w.co_runners.len()));
    let cells: Vec<(&str, usize)> = cells.collect();
    let expected = [
        ("wakeup", 0),
        ("ticks", 0),
        ("make", 0),
        ("wakeup + ticks, make", 2),
    ];
    assert_eq!(cells, expected);
    let named = each.replacen(
        "duration",
        "metrics = [\"ticks_lateness_p99\", \"wakeup_p50\"]\nduration",
        1,
    );
    let experiment = parse_experiment("x.toml", &named).expect("is right");
    let decide = experiment.workloads.iter().map(|w| w.metrics.join(" "));
    let decide: Vec<String> = decide.collect();
    let both = "ticks_lateness_p99 wakeup_p50";
    assert_eq!(decide, ["wakeup_p50", "lateness_p99", "files", both]);
    let disturbed = each + "[[workload.antagonist]]\nkind = \"spinner\"\n";
    let experiment = parse_experiment("x.toml", &disturbed).expect("is right");
    let mut workloads = experiment.workloads.iter();
    assert!(
        workloads.all(|w| w.antagonists.len() == 1),
        "alone as together"
    );
}

const TICKS: &str = "[[workload.co-runner]]\nname = \"ticks\"\nkind = \"periodic\"\nload = 1";
const NAME: &str = "name = \"ticks\"";
const LENGTH: &str = "duration = \"3s\"";

/// What is replaced by what, words of the error, and its place where that is more than the table.
#[rustfmt::skip]
const WRONG: [[&str; 4]; 14] = [
    [NAME, "name = \"server\"", "not fit for that", "\"server\""],
    [NAME, "name = \"my ticks\"", "not fit for that", "\"my ticks\""],
    [NAME, "name = \"generator\"", "two metrics `generator_lateness_p50`", "\"generator\""],
    [NAME, "name = \"wakeup\"", "two loads `wakeup`", ""],
    [NAME, "name = \"request\"", "`request_p50` of another load begins", "\"request\""],
    ["name = \"files\"", "name = \"x_ticks\"\nregex = 'x: (?<v>\\d+)'\nbetter = \"higher\"\n[[workload.co-runner]]\nname = \"make_x\"\nkind = \"command\"\ncommand = [\"x\"]\n[[workload.co-runner.metric]]\nname = \"y\"", "`make_x_wall_time` of another load begins", ""],
    ["load = 1\n", "load = \"5k/s\"\n", "has no rate", "\"5k/s\""],
    ["kind = \"periodic\"", "kind = \"period\"", "`periodic`", "\"period\""],
    ["load = 1\n", "loads = [1]\n", "load", "loads"],
    [TICKS, "[[workload.co-runner]]\nkind = \"http\"\nload = \"1k/s\"", "nothing answers the requests", ""],
    ["loads = [2]", "loads = [2]\nload-on = \"controller\"", "controller", ""],
    ["loads = [2]", "loads = [2]\nin-place = \"always\"", "windows of two processes", ""],
    [LENGTH, "duration = \"3s\"\nantagonists = \"each\"", "no antagonist", ""],
    [LENGTH, "duration = \"3s\"\nmetrics = [\"ticks_p99\"]", "no metric `ticks_p99`", "\"ticks_p99\""],
];

#[test]
fn a_load_that_cannot_share_a_window_is_refused_where_it_stands() {
    for [from, to, expected, place] in WRONG {
        let (message, found) = wrong(from, to);
        assert!(message.contains(expected), "{to}: {message}");
        assert!(place.is_empty() || found == place, "{to}: {found}");
    }
    let mut parts = FILE.split("[[workload.co-runner]]");
    let alone = parts.next().expect("the first part");
    let each = alone.replacen("duration", "co-runners = \"each\"\nduration", 1);
    let error = parse_experiment("x.toml", &each).expect_err("is wrong");
    let error = error.to_string();
    assert!(
        error.contains("no co-runner to be measured with"),
        "{error}"
    );
}

#[test]
fn a_command_line_has_co_runners_beside_every_workload() {
    let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect();
    let line = Words {
        arms: words(&["default", "batch"]),
        workloads: words(&["wakeup"]),
        command: words(&["make"]),
        co_runners: words(&["periodic:50%"]),
        ..Words::default()
    };
    let experiment = parse_words(&line).and_then(|document| document.read());
    let error = experiment.expect_err("make ends by itself").to_string();
    assert!(error.contains("--co-runner periodic:50%"), "{error}");
    assert!(error.contains("nobody knows how long"), "{error}");
    let line = Words {
        command: Vec::new(),
        ..line
    };
    let document = parse_words(&line).expect("is right");
    let (experiment, _) = document.read().expect("is right");
    let co_runner = &experiment.workloads[0].co_runners[0];
    assert_eq!(
        (co_runner.name.as_str(), co_runner.loads[0].to_string()),
        ("periodic", "50%".to_owned())
    );
}
