//! Cells in which the parts of a workload are alone.

mod named;

use model::Load;
use named::parse_experiment;

#[test]
fn sets_of_workers_are_measured_alone_before_they_are_measured_together() {
    let text = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"burnwait\"\nbaselines = true\n\
                loads = [2, 4]\nduration = \"3s\"\n";
    let experiment = parse_experiment("x.toml", text).expect("is right");
    let found = experiment.workloads.iter();
    let found: Vec<(&str, &[Load])> = found.map(|w| (&*w.name, &*w.loads)).collect();
    assert_eq!(
        found,
        [
            ("burnwait A alone", &[Load::Count(1)][..]),
            ("burnwait B alone", &[Load::Count(1)]),
            ("burnwait", &[Load::Count(2), Load::Count(4)]),
        ]
    );
    let long = experiment.workloads.iter();
    assert!(long.map(|w| w.duration_ns).all(|ns| ns == 3_000_000_000));
}

#[test]
fn who_is_alone_has_no_antagonist_beside_it() {
    let text = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"burnwait\"\nbaselines = true\n\
                antagonists = \"each\"\n[[workload.antagonist]]\nkind = \"spinner\"\n";
    let experiment = parse_experiment("x.toml", text).expect("is right");
    let found = experiment.workloads.iter();
    let found: Vec<(&str, usize)> = found.map(|w| (&*w.name, w.antagonists.len())).collect();
    assert_eq!(
        found,
        [
            ("burnwait A alone", 0),
            ("burnwait B alone", 0),
            ("burnwait", 0),
            ("burnwait + spinner", 1),
        ]
    );
}
