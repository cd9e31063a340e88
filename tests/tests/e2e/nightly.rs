//! Nights from the first run to the commit, with nobody there: a history that raises an alarm, measures it again and
//! bisects.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::print_stderr)]

use crate::bisect::{CULPRIT, with_a_planted_slowdown};
use std::process::Command;
use tests::{Bench, alone, expect_code, no_guests, skipped};

/// Nights before the step: a series needs them for its first alarm.
const NIGHTS_BEFORE: u32 = 8;
/// Nights in which a step of this size is surely told.
const NIGHTS_SINCE: u32 = 5;

#[test]
#[ignore = "a dozen nights in guests and seven schedulers that are built: half an hour, in make test-long"]
fn a_night_tells_a_slowdown_confirms_it_and_names_its_commit_by_itself() {
    if let Some(why) = no_guests() {
        return skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let repository = with_a_planted_slowdown(&bench);
    let text = format!(
        "name = \"nightly\"\n[target]\nkind = \"vm\"\nkernel = \"debian:sid\"\n[[arm]]\nname = \"default\"\n\
         [[arm]]\nname = \"next\"\nscheduler = {{ git = \"{repository}\", rev = \"tonight\", package = \
         \"scx_faulty\" }}\n[[workload]]\nkind = \"rr\"\nduration = \"1s\"\nmetrics = [\"requests_per_sec\"]\n\
         [stop]\nmin-blocks = 3\nmax-blocks = 3\n"
    );
    let file = bench.file("nightly.toml", &text);
    let told = || std::fs::read_to_string(bench.path("told")).unwrap_or_default();
    let is_named = |told: &str| told.contains(&format!("change {CULPRIT}"));
    for night in 0..NIGHTS_BEFORE + NIGHTS_SINCE {
        let at = if night < NIGHTS_BEFORE { "good" } else { "bad" };
        let moved = Command::new("git")
            .args(["-C", &repository, "branch", "-f", "tonight", at])
            .status();
        assert!(moved.is_ok_and(|status| status.success()));
        let words = format!(
            "run {file} -q --wait -o night{night} --history=store --confirm 5m --bisect 30m --notify"
        );
        let mut words: Vec<&str> = words.split(' ').collect();
        words.push("exec:cat >> told; echo >> told");
        expect_code(&bench.run(&words), 0);
        if is_named(&told()) {
            break;
        }
        assert!(!told().contains("could not be measured"), "{}", told());
    }
    let told = told();
    eprintln!("{told}");
    assert!(is_named(&told), "{told}");
    for wanted in [
        "is added to the history",
        "New alarm ",
        "|",
        " is confirmed (",
    ] {
        assert!(told.contains(wanted), "{wanted} is not in {told}");
    }
}
