//! CPUs that are isolated on the kernel's command line.

use super::guests::KERNEL;
use results::ResultSet;
use tests::{Bench, beside_others, expect_code, no_guests, stdout};

#[test]
fn an_isolated_cpu_is_not_among_those_of_a_load_and_the_report_says_that_there_is_one() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file(
        "isolcpus.toml",
        &format!(
            "name = \"isolcpus\"\n[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\ncpus = 2\n\
             append = \"isolcpus=1\"\n[[arm]]\nname = \"default\"\n[[arm]]\nname = \"batch\"\n\
             policy = {{ class = \"batch\" }}\n[[workload]]\nkind = \"wakeup\"\nloads = [\"100%\"]\n\
             duration = \"1s\"\n[stop]\nmin-blocks = 1\nmax-blocks = 1\n"
        ),
    );
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("isolation"), "{said}");
    let results = ResultSet::read(&bench.path("out")).expect("readable");
    assert_eq!(results.trials.len(), 2);
    for stored in &results.trials {
        // One worker for the one CPU that is left, its message thread and the two that belong to any load.
        let threads = stored
            .trial
            .result
            .evidence
            .points
            .iter()
            .map(|point| point.threads);
        let threads: Vec<_> = threads.collect();
        assert_eq!(threads, [4, 4, 4], "{}", stored.trial.arm);
    }
}
