//! What each arm was, what all have in common, how they compare with each other, and what those beside paid.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use model::{Better, Measurement, SchedulerBinary};
use report::{Format, Options, Table};
use results::ResultSet;

const FORMATS: [&str; 4] = ["text", "markdown", "lkml", "html"];

/// Hackbench under three arms beside the baseline, whose times are these for each block.
fn results(times: [f64; 4]) -> ResultSet {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::few_blocks(11)).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    results.experiment.aa_arm = None;
    for stored in &mut results.trials {
        let trial = &mut stored.trial;
        let jitter = 1.0 + 0.002 * f64::from((trial.place.block * 7 + trial.place.index * 5) % 11);
        let metrics = trial.result.metrics.iter_mut();
        for measured in metrics.filter(|m| m.metric == "hackbench_time") {
            measured.value = times[trial.place.arm] * jitter;
        }
    }
    results
}

fn rendered(results: &ResultSet, format: &str) -> String {
    let table = Table::from_results(results);
    let format = Format::find_by_name(format).unwrap();
    let text = format
        .render_report(&table, results, &Options::default())
        .unwrap();
    let text = text.into_string().replace("\\_", "_");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn arms_are_compared_with_each_other_in_one_sentence() {
    let results = results([2.0, 1.5, 1.9, 1.501]);
    let [_, batch, slice, again] = [0, 1, 2, 3].map(|arm| &results.experiment.arms[arm].name);
    for format in FORMATS {
        let text = rendered(&results, format);
        let alike = format!("Among the arms, hackbench time: {batch} and {again} ");
        assert!(text.contains(&alike), "{format}: {text}");
        let better = format!("better than {slice}");
        assert!(text.contains(&better), "{format}: {text}");
    }
    let json = rendered(&results, "json");
    assert!(json.contains(r#""between": ["#), "{json}");
}

#[test]
fn arms_that_are_far_apart_are_ranked_and_two_arms_are_no_group() {
    let ranked = rendered(&results([2.0, 1.5, 1.7, 1.9]), "text");
    assert!(
        ranked.contains("batch is better than slice=0.3ms and default-again"),
        "{ranked}"
    );
    assert!(
        ranked.contains("slice=0.3ms is better than default-again"),
        "{ranked}"
    );
    let mut alone = results([2.0, 1.5, 1.7, 1.9]);
    alone.experiment.arms.truncate(2);
    alone.trials.retain(|stored| stored.trial.place.arm < 2);
    let said = rendered(&alone, "text");
    assert!(!said.contains("Among the arms"), "{said}");
}

#[test]
fn a_scheduler_is_named_with_version_hash_and_flags_in_every_format() {
    let mut results = results([2.0, 1.5, 1.7, 1.9]);
    results.experiment.arms[1].scheduler = Some(
        serde_json::from_value(serde_json::json!({
            "program": "scx_rusty", "args": ["--slice", "5ms"]
        }))
        .unwrap(),
    );
    for stored in results.trials.iter_mut().filter(|s| s.trial.place.arm == 1) {
        stored.trial.result.evidence.scheduler_binary = Some(SchedulerBinary {
            path: "/root/.cache/schedlab/scx_rusty".to_owned(),
            args: Vec::new(),
            sha256: "0123456789abcdef0123456789abcdef".to_owned(),
            version: Some("scx_rusty 1.1.4".to_owned()),
        });
    }
    for format in FORMATS {
        let text = rendered(&results, format);
        let said = "scx_rusty 1.1.4, sha256 0123456789ab)";
        assert!(text.contains(said), "{format}: {text}");
        assert!(text.contains("scx_rusty --slice 5ms"), "{format}: {text}");
    }
}

#[test]
fn what_was_switched_off_in_all_arms_is_said_with_what_it_means_for_nice_values() {
    let mut results = results([2.0, 1.5, 1.7, 1.9]);
    for arm in &mut results.experiment.arms {
        let tunables = &mut arm.tunables;
        tunables.insert("autogroup".to_owned(), "off".to_owned());
    }
    let policy = serde_json::json!({ "class": "other", "nice": 19 });
    results.experiment.arms[1].policy = Some(serde_json::from_value(policy).unwrap());
    for format in FORMATS {
        let text = rendered(&results, format);
        assert!(
            text.contains("In all arms: autogroup=off. Where autogroup is on"),
            "{format}: {text}"
        );
    }
}

#[test]
fn what_the_antagonists_paid_stands_beside_what_was_gained() {
    let mut results = results([2.0, 1.5, 1.7, 1.9]);
    for stored in &mut results.trials {
        let jitter = 1.0 + 0.001 * f64::from(stored.trial.place.block % 3);
        let value = match stored.trial.place.arm {
            1 => 2.4e9 * jitter,
            _ => 2.8e9,
        };
        stored.trial.result.metrics.push(Measurement {
            metric: "antagonist_cpu_time".to_owned(),
            unit: "ns".to_owned(),
            better: Better::Neither,
            value,
            own: None,
        });
    }
    for format in FORMATS {
        let text = rendered(&results, format);
        assert!(
            text.contains("CPU time of the antagonists: 14 % lower (14 to 14 %)"),
            "{format}: {text}"
        );
    }
}
