//! `schedlab recommend`, from the command line.

#![allow(clippy::disallowed_methods)]

use synthetic::Scenario;
use tests::{Bench, expect_code, stderr, stdout};

/// A results directory of the bench.
fn stored(bench: &Bench, name: &str, seed: u64, change: impl Fn(&mut Scenario)) {
    let mut scenario = synthetic::quickstart();
    scenario.experiment.seed = seed;
    change(&mut scenario);
    synthetic::write(&bench.path(name), &scenario).expect("a results directory");
}

#[test]
fn weights_decide_and_a_file_says_the_same_as_an_option() {
    let bench = Bench::default();
    stored(&bench, "night", 1, |_| {});
    let hackbench = bench.run(&["recommend", "night", "--weigh", "hackbench=1"]);
    expect_code(&hackbench, 0);
    let said = stdout(&hackbench);
    assert!(said.starts_with("Take batch: "), "{said}");
    assert!(said.contains("What it does not cover"), "{said}");
    let other = bench.run(&["recommend", "night", "--weigh", "wakeup p99=1"]);
    assert!(
        stdout(&other).starts_with("Take slice=0.3ms: "),
        "{}",
        stdout(&other)
    );
    let file = bench.file("mix.txt", "# mine\nwakeup p99 = 3\nhackbench = 1\n");
    let of_file = bench.run(&["recommend", "night", "--weigh", &file]);
    let typed = ["recommend", "night", "--weigh", "wakeup p99=3,hackbench=1"];
    expect_code(&of_file, 0);
    assert_eq!(stdout(&of_file), stdout(&bench.run(&typed)));
    let markdown = bench.run(&["recommend", "night", "--format", "markdown"]);
    assert!(
        stdout(&markdown).contains("| arm | best |"),
        "{}",
        stdout(&markdown)
    );
}

#[test]
fn a_capsule_and_a_second_night_are_looked_at_together() {
    let bench = Bench::default();
    stored(&bench, "monday", 1, |_| {});
    stored(&bench, "tuesday", 2, |scenario| {
        scenario.experiment.arms[2].name = "other".to_owned()
    });
    expect_code(&bench.run(&["pack", "monday", "-o", "monday.tar.gz"]), 0);
    let both = [
        "recommend",
        "monday.tar.gz",
        "tuesday",
        "--weigh",
        "hackbench=1",
    ];
    let output = bench.run(&both);
    expect_code(&output, 0);
    assert!(
        stdout(&output).starts_with("Take batch: "),
        "{}",
        stdout(&output)
    );
}

#[test]
fn what_cannot_be_answered_is_refused_with_a_place_and_a_remedy() {
    let bench = Bench::default();
    stored(&bench, "here", 1, |_| {});
    stored(&bench, "there", 2, |scenario| {
        scenario.system.hostname = "node2".to_owned()
    });
    stored(&bench, "base", 3, |scenario| {
        scenario.experiment.baseline = 1
    });
    for (words, says) in [
        (
            &["here", "--weigh", "hackbench=0"][..],
            "the weights sum to 0",
        ),
        (
            &["here", "--weigh", "hackbnech=1"],
            "did you mean `hackbench`",
        ),
        (
            &["here", "--weigh", "hackbench=1,wakeup"],
            "--weigh, part 2",
        ),
        (&["here", "--weigh", "absent.txt"], "absent.txt"),
        (&["here", "there"], "lab in here and node2 in there"),
        (&["here", "base"], "no common baseline"),
        (&["here", "here"], "the same run"),
        (&["here", "--care", "0"], "--care 2%"),
    ] {
        let words: Vec<&str> = std::iter::once("recommend")
            .chain(words.iter().copied())
            .collect();
        let output = bench.run(&words);
        expect_code(&output, 2);
        let said = stderr(&output)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(said.contains(says), "{words:?}: {said}");
    }
}
