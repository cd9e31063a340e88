//! Warnings of the length of an experiment and of its generators.

#![allow(clippy::unwrap_used)]

mod named;

fn said(text: &str, cpus: Option<u32>) -> Vec<String> {
    let experiment = named::parse_experiment(text).unwrap();
    let warnings =
        schedule::experiment_warnings(&experiment, &schedule::plan_blocks(&experiment), cpus);
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
fn luck_that_a_run_draws_once_is_said_with_what_draws_it_in_each_block() {
    let with = |reset: &str, kernel: &str, server: &str| {
        let file = format!(
            "[target]\nkind = \"vm\"\nkernel = \"debian:sid\"\nroot = \"image:lab.squashfs\"\nreset = \"{reset}\"\n[[arm]]\nname = \"default\"\n\
             [[arm]]\nname = \"other\"\n{kernel}[[workload]]\nkind = \"http\"\n{server}"
        );
        let said = said(&file, None);
        let once = said.into_iter().filter_map(|what| {
            let at = what.find("; its verdicts hold ")?;
            Some(what[at..].to_owned())
        });
        once.collect::<Vec<_>>()
    };
    let other = "kernel = \"debian:trixie\"\n";
    let started = "[workload.server]\nkind = \"nginx\"\n";
    let boot = ["; its verdicts hold \"in this boot\""];
    assert_eq!(with("snapshot", other, started), boot);
    let start = ["; its verdicts hold \"for this start\""];
    assert_eq!(with("snapshot", "", started), start);
    for reset in ["block-snapshot", "block", "none"] {
        assert_eq!(with(reset, other, started), [""; 0], "{reset}");
    }
}

#[test]
fn a_budget_that_cannot_decide_is_warned_of() {
    let with = |budget: &str| {
        let file = format!(
            "[stop]\nbudget = \"{budget}\"\nmin-blocks = 3\n[[arm]]\nname = \"a\"\n\
             [[arm]]\nname = \"b\"\n[[workload]]\nkind = \"wakeup\"\n\
             duration = \"20s\"\nwarmup = \"1s\""
        );
        said(&file, None)
    };
    let expected = "the budget of 2m holds 2 blocks of about 42.6s; 6 are the least that decide";
    assert_eq!(with("2m"), [expected]);
    assert_eq!(with("4m"), [""; 0]);
}

#[test]
fn a_last_block_that_cannot_decide_is_warned_of() {
    let with = |blocks: u32, arms: &[&str]| {
        let arms: String = arms
            .iter()
            .map(|a| format!("[[arm]]\nname = \"{a}\"\n"))
            .collect();
        said(
            &format!("[stop]\nmax-blocks = {blocks}\n{arms}[[workload]]\nkind = \"wakeup\""),
            None,
        )
    };
    assert_eq!(
        with(4, &["a", "b"]),
        ["max-blocks is 4; 6 are the least that decide"]
    );
    assert_eq!(with(5, &["a", "b"]).len(), 1);
    assert_eq!(with(6, &["a", "b"]), [""; 0]);
    assert_eq!(with(4, &["a"]), [""; 0], "nothing is compared");
}

fn block_of(arms: [&str; 2], kind: &str, more: &str) -> u64 {
    let [a, b] = arms;
    let file = format!(
        "[[arm]]\nname = \"a\"\n{a}\n[[arm]]\nname = \"b\"\n{b}\n\
         [[workload]]\nkind = \"{kind}\"\nduration = \"2s\"\nwarmup = \"500ms\"\n{more}"
    );
    let experiment = named::parse_experiment(&file).unwrap();
    schedule::block_ns(&experiment, &schedule::plan_blocks(&experiment))
}

#[test]
fn the_guess_of_a_block_counts_the_attaching_of_schedulers() {
    let attached = "scheduler = \"scx_rusty\"";
    let guest = "[target]\nkind = \"vm\"\nkernel = \"debian:sid\"\n";
    let of = |arms, target| block_of(arms, "wakeup", target);
    let added = |arms, target| of(arms, target) - of(["", ""], target);
    assert_eq!(added(["", attached], ""), 1_000_000_000);
    // In a guest, whose CPUs may be emulated, the kernel's verifier takes its time.
    assert_eq!(added([attached, attached], guest), 10_000_000_000);
}

#[test]
fn the_guess_of_a_block_counts_the_starts_of_programs_that_answer() {
    let of = |more| block_of(["", ""], "http", more);
    let own = of("[workload.server]\nkind = \"http-echo\"\n");
    let server = "[workload.server]\nkind = \"command\"\ncommand = [\"./serve\", \"{port}\"]\n";
    // One start for each of the two arms.
    assert_eq!(of(server) - own, 4_000_000_000);
    let service = "[[workload.service]]\nname = \"store\"\ncommand = [\"./store\"]\n";
    let both = format!("{service}{server}");
    assert_eq!(of(&both) - own, 8_000_000_000);
}

#[test]
fn a_budget_that_lacks_less_than_a_tenth_is_not_warned_of() {
    let with = |budget: &str| {
        let file = format!(
            "[stop]\nbudget = \"{budget}\"\n[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\
             [[workload]]\nkind = \"wakeup\"\nduration = \"20s\"\nwarmup = \"1s\""
        );
        said(&file, None)
    };
    // Six blocks take 4m15s.
    assert_eq!(with("3m55s"), [""; 0]);
    assert_eq!(with("3m50s").len(), 1);
}

const SHARES: &str = "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n[[workload]]\nkind = \"http\"\n\
    loads = { shares-of-max = [\"50%\", \"120%\"], slo = \"p95 < 10ms\", from = \"100/s\", to = \"1600/s\" }\n\
    duration = \"8s\"\nwarmup = \"2s\"\n";

#[test]
fn a_search_before_the_first_block_takes_of_the_budget() {
    let with = |budget: &str| said(&format!("stop.budget = \"{budget}\"\n{SHARES}"), None);
    let expected = "the budget of 4m50s holds 4 blocks of about 41.2s after a search of about 2m1s; 6 \
                    are the least that decide";
    assert_eq!(with("4m50s"), [expected]);
    assert_eq!(with("5m45s"), [""; 0], "a tenth more is taken");
    assert_eq!(with("7m"), [""; 0]);
}

#[test]
fn a_workload_with_shares_has_one_search_which_may_take_as_long_as_all_of_its_rates() {
    let experiment = named::parse_experiment(SHARES).unwrap();
    let searches = schedule::list_searches(&experiment);
    assert_eq!(searches.len(), 1);
    assert_eq!((searches[0].workload, searches[0].slo.permille), (0, 950));
    let workload = &experiment.workloads[0];
    let limit = schedule::search_limit_ns(workload, &searches[0].slo);
    // Five rates up and four within the last gap, each twice, with a second for late answers.
    assert_eq!(limit - workload.time_limit_ns, 18 * 11_000_000_000);
    let names: Vec<String> = schedule::list_cells(&experiment)
        .into_iter()
        .map(|c| c.name)
        .collect();
    assert_eq!(names, ["http 50% of max", "http 120% of max"]);
}
