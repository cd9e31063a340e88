//! Metrics that an experiment defines: what is right decides, what is wrong is shown where it is.

mod named;

use model::Experiment;
use named::{find_wrong, parse_experiment, parse_words};
use plan::Words;

const FILE: &str = r#"
[[arm]]
name = "a"
[[workload]]
kind = "command"
command = ["stress-ng"]
[[workload.metric]]
name = "ops"
regex = 'ops: (?<v>\d+)'
better = "higher"
[[workload.metric]]
name = "p99"
json = "$.latency.p99"
from = "out.json"
better = "lower"
unit = "us"
"#;

/// The message, the help, and the text that is pointed at.
#[track_caller]
fn wrong(from: &str, to: &str) -> (String, String, String) {
    find_wrong(FILE, from, to)
}

fn deciding(experiment: &Experiment) -> &[String] {
    &experiment.workloads[0].metrics
}

#[test]
fn own_metrics_decide_unless_the_file_names_others() {
    let experiment = parse_experiment("x.toml", FILE).expect("is right");
    assert_eq!(deciding(&experiment), ["ops", "p99"]);
    let named = FILE.replacen(
        "[[workload.metric]]",
        "metrics = [\"wall_time\", \"p99\"]\n[[workload.metric]]",
        1,
    );
    let experiment = parse_experiment("x.toml", &named).expect("is right");
    assert_eq!(deciding(&experiment), ["wall_time", "p99"]);
    let (message, help, place) = wrong(
        "[[workload.metric]]",
        "metrics = [\"p98\"]\n[[workload.metric]]",
    );
    assert!(message.contains("no metric `p98`"), "{message}");
    assert!(help.contains("`p99`"), "{help}");
    assert_eq!(place, "\"p98\"");
}

#[test]
fn what_makes_no_metric_is_shown_where_it_is() {
    for (from, to, said, place) in [
        ("(?<v>", "(?<v", "no regular expression", r"'ops: (?<v\d+)'"),
        ("?<v>", "", "no named group", r"'ops: (\d+)'"),
        ("$.lat", "lat", "no JSONPath", "\"latency.p99\""),
        ("\"p99\"", "\"ops\"", "two metrics `ops`", "\"ops\""),
        ("\"ops\"", "\"cpu_time\"", "schedlab itself", "\"cpu_time\""),
        (
            "\"p99\"",
            "\"wakeup_p99\"",
            "schedlab itself",
            "\"wakeup_p99\"",
        ),
        ("\"lower\"", "\"less\"", "less", "\"less\""),
        ("from =", "form =", "no key `form`", "form"),
        ("\"us\"", "\"\"", "no unit", "\"\""),
    ] {
        let (message, _, found) = wrong(from, to);
        assert!(message.contains(said), "{message}");
        assert_eq!(found, place, "{message}");
    }
    let (message, help, _) = wrong("better = \"higher\"", "");
    assert!(message.contains("which direction is better"), "{message}");
    assert!(help.contains("better = \"higher\""), "{help}");
    let (message, _, _) = wrong("regex = 'ops: (?<v>\\d+)'", "");
    assert!(message.contains("one of `regex`"), "{message}");
}

fn line(metrics: &[&str], command: &[&str]) -> Result<Experiment, String> {
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let words = Words {
        arms: own(&["default"]),
        command: own(command),
        metrics: own(metrics),
        ..Words::default()
    };
    let read = parse_words(&words).and_then(|document| document.read());
    read.map(|(experiment, _)| experiment)
        .map_err(|error| error.to_string())
}

#[test]
fn a_command_line_has_metrics_too() {
    let ops = r"ops=/bogo ops: (?<v>[\d.]+)/ higher 1/s";
    let experiment = line(&[ops, "t=csv:took lower"], &["bench"]).expect("is right");
    assert_eq!(deciding(&experiment), ["ops", "t"]);
    let params = experiment.workloads[0].kind.params();
    assert_eq!(params["metrics"][0]["unit"], "1/s");
    let without = line(&[ops], &[]).unwrap_err();
    assert!(without.contains("without a command"), "{without}");
    let bad = line(&["ops=/(/ higher"], &["bench"]).unwrap_err();
    assert!(bad.contains("no regular expression"), "{bad}");
    let taken = line(&["wall_time=csv:a lower"], &["bench"]).unwrap_err();
    assert!(taken.contains("schedlab itself"), "{taken}");
}

#[test]
fn a_command_without_metrics_is_stored_as_before() {
    let experiment = line(&[], &["bench"]).expect("is right");
    assert_eq!(deciding(&experiment), ["wall_time"]);
    let params = experiment.workloads[0].kind.params();
    assert_eq!(params.keys().collect::<Vec<_>>(), ["argv"]);
}
