//! Warnings of the length of an experiment and of its generators.

#![allow(clippy::unwrap_used)]

fn said(text: &str, cpus: Option<u32>) -> Vec<String> {
    let experiment = plan::parse_experiment("x.toml", text).unwrap();
    let warnings = schedule::warnings(&experiment, &schedule::plan(&experiment), cpus);
    warnings.into_iter().map(|w| w.what).collect()
}

#[test]
fn more_threads_of_a_generator_than_cpus_are_warned_of() {
    let with = |known: Option<u32>, cpus: &str| {
        let file = format!(
            "[[arm]]\nname = \"default\"\n[[workload]]\nkind = \"http\"\n\
             threads = 2\nload-cpus = \"{cpus}\""
        );
        said(&file, known)
    };
    let warnings = with(None, "0");
    assert!(
        warnings[0].contains("more threads (2) than CPUs"),
        "{warnings:?}"
    );
    assert_eq!(with(Some(2), "0%-50%").len(), 1);
    assert_eq!(with(None, "0-1"), [""; 0]);
    assert_eq!(with(Some(2), "0%-100%"), [""; 0]);
    assert_eq!(with(None, "0%-50%"), [""; 0], "nobody knows of how many");
}

#[test]
fn a_budget_below_the_least_blocks_is_warned_of() {
    let with = |budget: &str| {
        let file = format!(
            "[stop]\nbudget = \"{budget}\"\nmin-blocks = 3\n[[arm]]\nname = \"a\"\n\
             [[arm]]\nname = \"b\"\n[[workload]]\nkind = \"wakeup\"\n\
             duration = \"20s\"\nwarmup = \"1s\""
        );
        said(&file, None)
    };
    let expected = "the budget of 2m is likely to end before min-blocks: 3 blocks take about \
                    2m8s";
    assert_eq!(with("2m"), [expected]);
    assert_eq!(with("3m"), [""; 0]);
}
