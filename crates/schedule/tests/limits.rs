//! Limits of placements that count for some arms and not for others.

#![allow(clippy::unwrap_used)]

mod named;

use named::parse_experiment;

const SERVICE: &str = r#"
    [[arm]]
    name = "default"
    [[arm]]
    name = "other"
    policy = { class = "batch" }
    [[workload]]
    kind = "http"
    [workload.server]
    kind = "echo"
    weight = 100
"#;

fn said(changes: &[(&str, &str)]) -> Result<Vec<String>, String> {
    let mut text = SERVICE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from));
        text = text.replace(from, to);
    }
    let experiment = parse_experiment(&text).map_err(|e| e.to_string())?;
    let warnings =
        schedule::experiment_warnings(&experiment, &schedule::plan_blocks(&experiment), None);
    Ok(warnings.into_iter().map(|w| w.what).collect())
}

const QUOTA: (&str, &str) = ("weight = 100", "quota = \"50%\"");
const DEADLINE: &str = "class = \"deadline\", runtime = \"1ms\", period = \"5ms\"";

#[test]
fn a_quota_that_an_arm_lifts_is_an_error() {
    assert_eq!(said(&[QUOTA]), Ok(Vec::new()));
    for class in ["class = \"fifo\"", "class = \"rr\"", DEADLINE] {
        let error = said(&[QUOTA, ("class = \"batch\"", class)]).unwrap_err();
        assert!(
            error.starts_with("arm `other`: the quota of 50% of the server"),
            "{error}"
        );
    }
    let of_load = (
        "{ class = \"batch\" }",
        "{ class = \"fifo\" }\nto = \"load\"",
    );
    assert_eq!(said(&[QUOTA, of_load]), Ok(Vec::new()));
}

#[test]
fn a_weight_or_nice_value_that_does_not_count_is_a_warning() {
    assert_eq!(said(&[]), Ok(Vec::new()));
    let fifo = ("class = \"batch\"", "class = \"fifo\"");
    let warnings = said(&[fifo, ("weight = 100", "weight = 100\nnice = 5")]).unwrap();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let inside = "default: the nice value of the server of http counts only inside its cgroup";
    assert!(warnings[0].starts_with(inside), "{warnings:?}");
    assert!(warnings[1].starts_with("other: the weight of the server of http does not"));
    assert!(warnings[2].starts_with("other: the nice of the server of http does not"));
}

#[test]
fn nobody_is_told_to_give_a_weight_to_a_nice_arm() {
    let weight = "policy = { class = \"batch\" }";
    let arms = [
        (weight, "weight = 1000"),
        ("    weight = 100\n", ""),
        (
            "name = \"default\"",
            "name = \"default\"\n    policy = { nice = -5 }",
        ),
    ];
    let mut text = SERVICE.to_owned();
    for (from, to) in arms {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let experiment = parse_experiment(&text).unwrap();
    let warnings =
        schedule::experiment_warnings(&experiment, &schedule::plan_blocks(&experiment), None);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0]
            .what
            .contains("under other but not under default")
    );
    assert!(!warnings[0].remedy.contains("weight = 100"), "{warnings:?}");
}

#[test]
fn a_quota_under_sched_ext_is_a_warning() {
    let scheduler = (
        "policy = { class = \"batch\" }",
        "scheduler = \"scx_rusty\"",
    );
    let warnings = said(&[QUOTA, scheduler]).unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("most sched_ext schedulers do not implement cpu.max"));
}

#[test]
fn arms_of_which_only_some_have_a_cgroup_are_warned_of() {
    let heavy = ("policy = { class = \"batch\" }", "weight = 1000");
    assert_eq!(said(&[heavy]), Ok(Vec::new()));
    let warnings = said(&[("weight = 100", ""), heavy]).unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("under other but not under default"),
        "{warnings:?}"
    );
    let neighbour = (
        "policy = { class = \"batch\" }",
        "to = \"antagonist\"\nweight = 20",
    );
    let beside = (
        "weight = 100",
        "weight = 100\n[[workload.antagonist]]\nkind = \"spinner\"",
    );
    let warnings = said(&[beside, neighbour]).unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("an antagonist of http has a cgroup of its own under other"),
        "{warnings:?}"
    );
    let turns = (
        "kind = \"http\"",
        "kind = \"wakeup\"\nin-place = \"always\"\n[[workload.antagonist]]\nkind = \"spinner\"",
    );
    let no_server = (
        "[workload.server]\n    kind = \"echo\"\n    weight = 100",
        "",
    );
    let one_role = (
        "name = \"default\"",
        "name = \"default\"\nto = \"antagonist\"",
    );
    assert_eq!(
        said(&[turns, no_server, one_role, neighbour]),
        Ok(Vec::new())
    );
}
