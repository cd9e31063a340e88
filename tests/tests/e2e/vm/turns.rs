//! sched_ext schedulers that are attached and detached under one running process.

use super::guests::{KERNEL, of, trials};
use super::proof::{arm, no_faulty_guests};
use tests::{Bench, beside_others, expect_code, stdout};

/// The kernel's own scheduler and another in turns of a second, in one process.
fn experiment(arm: &str) -> String {
    format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"1G\"\n\
         [[arm]]\nname = \"eevdf\"\n{arm}\
         [[workload]]\nkind = \"wakeup\"\nloads = [1]\noperations = 1\nsleep = \"5ms\"\n\
         metrics = [\"requests_per_sec\"]\nwarmup = \"100ms\"\n\
         in-place = \"always\"\nturn = \"1s\"\nwashout = \"8s\"\nduration = \"18s\"\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\nmax-attempts = 1\n"
    )
}

#[test]
fn a_scheduler_takes_turns_with_the_kernels_own_and_each_window_is_proven() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file("turns.toml", &experiment(&arm("good", "none", "")));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 0);
    let trials = trials(&bench);
    for (arm, name) in [("eevdf", "none"), ("good", "faulty")] {
        let result = &of(&trials, arm).trial.result;
        let windows = result.windows.as_ref().expect("measured in turns");
        assert_eq!(windows.pairs.len(), 2);
        assert!(!windows.counted_pairs().is_empty(), "{:?}", windows.void);
        let mut facts = result.evidence.facts.iter();
        let scheduler = facts.find(|fact| fact.what == "sched_ext scheduler");
        let found = &scheduler.expect("the same in all windows").found;
        assert!(found.starts_with(name), "{arm}: {found}");
        let has_program = result.evidence.scheduler_binary.is_some();
        assert_eq!(has_program, arm == "good");
    }
    let text = stdout(&bench.run(&["report", "out"]));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("in turns inside"), "{text}");
}

#[test]
#[ignore = "a boot and its turns, in make test-long"]
fn a_scheduler_that_is_ejected_ends_the_turns_with_its_reason() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file("ejected.toml", &experiment(&arm("bad", "error:3", "")));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 4);
    let trials = trials(&bench);
    let why = of(&trials, "bad").trial.result.state.why().expect("void");
    assert!(why.contains("scx_faulty ended within the trial"), "{why}");
    assert!(why.contains("the error that was asked for"), "{why}");
}
