//! Runs on several nodes at once: a real slurmctld with two nodes.

#![allow(clippy::disallowed_methods)]

use results::ResultSet;
use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tests::{Cluster, expect_code, stderr, stdout, with_lock_of_runs};

/// Two arms on both nodes, or on one, whose trials take this long.
fn experiment(cluster: &Cluster, nodes: u32, trial: &str) -> String {
    let text = format!(
        "name = \"fleet\"\n[target]\nkind = \"slurm\"\npartition = \"lab\"\nnodes = {nodes}\n\
         [[arm]]\nname = \"default\"\n[[arm]]\nname = \"batch\"\npolicy = {{ class = \"batch\" }}\n\
         [[workload]]\nname = \"w\"\nkind = \"wakeup\"\nduration = \"{trial}\"\n"
    );
    cluster.file("fleet.toml", &text)
}

/// Never decided by this many blocks, since an interval cannot be so narrow.
const FAINT: [&str; 2] = ["--smallest-effect", "0.01%"];

/// Arguments of a run in `out` with so many blocks, which decide nothing.
fn run_of<'a>(file: &'a str, most: &'a str) -> Vec<&'a str> {
    let run = ["run", file, "-o", "out", "--max-blocks", most];
    [&run[..], &FAINT].concat()
}

fn start(cluster: &Cluster, args: &[&str]) -> Child {
    let mut command = cluster.schedlab(args);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("schedlab starts")
}

fn errors(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("schedlab ends");
    (output.status.code(), stderr(&output))
}

fn signal(child: &Child) {
    let pid = i32::try_from(child.id()).ok();
    let pid = pid
        .and_then(rustix::process::Pid::from_raw)
        .expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(90);
    while !holds() {
        assert!(Instant::now() < limit, "never came about: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Trials that a node has stored.
fn trials_of(cluster: &Cluster, node: &str) -> usize {
    let dir = cluster.path(&format!("out/nodes/{node}/trials"));
    std::fs::read_dir(dir).map_or(0, |entries| entries.flatten().count())
}

fn expect_no_job(cluster: &Cluster) {
    eventually("the job is over", || cluster.jobs().trim().is_empty());
}

/// Trials that count; a busy machine may have repeated others.
fn count_good(results: &ResultSet) -> usize {
    results.trials.iter().filter(|t| t.trial.is_ok()).count()
}

#[test]
fn blocks_of_two_nodes_are_one_result_and_more_can_be_added() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let file = experiment(&cluster, 2, "100ms");
    let run = run_of(&file, "12");
    let output = cluster.run(&run);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("on each of 2 machines"), "{said}");
    let results = ResultSet::read(&cluster.path("out")).expect("merged results");
    let sources = &results.manifest.sources;
    let machines: BTreeSet<&str> = sources.iter().map(|s| s.machine.as_str()).collect();
    assert_eq!(machines, BTreeSet::from(["n1", "n2"]));
    let seeds: BTreeSet<u64> = sources.iter().map(|s| s.seed).collect();
    assert_eq!(seeds.len(), 2, "each draws its own order");
    let blocks: u32 = sources.iter().map(|s| s.blocks).sum();
    assert_eq!((blocks, count_good(&results)), (12, 24));
    let node = results.starts[0].machines[0].system.facts.get("slurm.node");
    assert!(node.is_some_and(|node| machines.contains(node.as_str())));
    expect_code(&cluster.run(&["verify", "out"]), 0);
    expect_no_job(&cluster);
    let resumed = cluster.run(&["run", "--resume", "out", "--max-blocks", "16"]);
    expect_code(&resumed, 0);
    let results = ResultSet::read(&cluster.path("out")).expect("merged results");
    assert_eq!(count_good(&results), 32);
    expect_code(&cluster.run(&["verify", "out"]), 0);
}

#[test]
#[ignore = "half a minute: make test-long ROWS=slurm"]
fn within_a_job_its_nodes_are_used_and_a_run_on_one_node_goes_on_on_another() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let file = experiment(&cluster, 1, "100ms");
    let args = run_of(&file, "3");
    let mut inside = cluster.schedlab_in_job(&args);
    let output = inside.output().expect("salloc starts");
    expect_code(&output, 0);
    let first = ResultSet::read(&cluster.path("out")).expect("merged results");
    assert_eq!((count_good(&first), trials_of(&cluster, "n2")), (6, 0));
    cluster.ask(
        "scontrol",
        &["update", "nodename=n1", "state=drain", "reason=disk"],
    );
    let resumed = cluster.run(&["run", "--resume", "out", "--max-blocks", "5"]);
    expect_code(&resumed, 0);
    assert!(stderr(&resumed).contains("n1 is not there this time"));
    let both = ResultSet::read(&cluster.path("out")).expect("merged results");
    assert_eq!(count_good(&both), 10);
    expect_code(&cluster.run(&["verify", "out"]), 0);
    expect_code(&cluster.run(&["pack", "out", "-o", "all.tar.gz"]), 0);
    let alone = cluster.run(&["run", "--resume", "out/nodes/n1"]);
    expect_code(&alone, 2);
}

#[test]
#[ignore = "a job of Slurm that ends: make test-long"]
fn a_node_that_is_drained_leaves_its_blocks_to_the_other() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let file = experiment(&cluster, 2, "400ms");
    let run = run_of(&file, "12");
    let run = start(&cluster, &run);
    eventually("both measure", || {
        trials_of(&cluster, "n1") > 0 && trials_of(&cluster, "n2") > 0
    });
    cluster.ask(
        "scontrol",
        &["update", "nodename=n2", "state=drain", "reason=disk"],
    );
    let (code, said) = errors(run);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("n2 leaves: Slurm says that it is") && said.contains("(disk)"),
        "{said}"
    );
    let results = ResultSet::read(&cluster.path("out")).expect("merged results");
    let whole = results.trials.iter().filter(|t| t.trial.is_ok()).count();
    assert!(
        (24..=25).contains(&whole),
        "{whole} trials of 12 blocks, and one of the open block"
    );
    let warnings = &results.manifest.warnings;
    assert!(
        warnings
            .iter()
            .any(|w| w.what.starts_with("n2 left the run")),
        "{warnings:?}"
    );
    expect_code(&cluster.run(&["verify", "out"]), 0);
}

/// Two kernels on two nodes, which Slurm restarts for them.
fn two_kernels(own: &str, other: &str) -> String {
    format!(
        "name = \"kernels\"\n[target]\nkind = \"slurm\"\npartition = \"lab\"\nnodes = 2\n\
         kernel-feature = \"kernel_{{kernel}}\"\n\
         [[arm]]\nname = \"own\"\nkernel = \"{own}\"\n\
         [[arm]]\nname = \"other\"\nkernel = \"{other}\"\n\
         [[workload]]\nname = \"w\"\nkind = \"wakeup\"\nduration = \"100ms\"\n"
    )
}

#[test]
fn nodes_are_restarted_by_slurm_for_the_kernels_of_arms() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start_with_kernels() else {
        return;
    };
    let [own, other] = cluster.kernels() else {
        panic!("two kernels");
    };
    let text = |other: &str| two_kernels(own, other);
    let none = cluster.file("none.toml", &text("9.9.9"));
    let output = cluster.run(&["run", &none, "-o", "none"]);
    expect_code(&output, 3);
    let said = stderr(&output);
    assert!(said.contains("feature kernel_9.9.9"), "{said}");

    let file = cluster.file("kernels.toml", &text(other));
    let run = run_of(&file, "4");
    let output = cluster.run(&run);
    expect_code(&output, 0);
    let results = ResultSet::read(&cluster.path("out")).expect("merged results");
    let machines: BTreeSet<&str> = results
        .manifest
        .sources
        .iter()
        .map(|source| source.machine.as_str())
        .collect();
    assert_eq!(machines, BTreeSet::from(["n1", "n2"]));
    // Each node may have begun a block more.
    let count = results.trials.len();
    assert!((8..=10).contains(&count), "{count} trials of 4 blocks");
    for stored in &results.trials {
        let wanted = match stored.trial.arm.as_str() {
            "own" => own,
            _ => other,
        };
        let facts = &stored.trial.result.evidence.facts;
        let kernel = facts.iter().find(|fact| fact.what == "kernel");
        assert_eq!(&kernel.expect("a fact").found, wanted, "{stored:?}");
        assert!(stored.trial.is_ok(), "{stored:?}");
    }
    let boots = |node: &str| {
        let boots = std::fs::read_to_string(cluster.path(&format!("boots-{node}")));
        boots.map_or(0, |text| text.lines().count())
    };
    // The first at its start, and one at least where the order of a block is as of the one before.
    assert!(boots("n1") > 1 && boots("n2") > 1);
    expect_code(&cluster.run(&["verify", "out"]), 0);
    expect_no_job(&cluster);
}

#[test]
#[ignore = "a job of Slurm that ends: make test-long"]
fn a_cancelled_job_ends_the_run_in_order_and_another_job_goes_on() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let file = experiment(&cluster, 2, "300ms");
    let run = run_of(&file, "10");
    let run = start(&cluster, &run);
    eventually("both measure", || {
        trials_of(&cluster, "n1") > 1 && trials_of(&cluster, "n2") > 1
    });
    cluster.ask("scancel", &["--user=nobody"]);
    let (code, said) = errors(run);
    assert_eq!(code, Some(130), "{said}");
    assert!(said.contains("schedlab run --resume out"), "{said}");
    let before = trials_of(&cluster, "n1") + trials_of(&cluster, "n2");
    expect_code(&cluster.run(&["run", "--resume", "out"]), 0);
    let results = ResultSet::read(&cluster.path("out")).expect("merged results");
    let whole = results.trials.iter().filter(|t| t.trial.is_ok()).count();
    assert!(
        before > 3 && whole >= 20,
        "{before} before, {whole} afterwards"
    );
    expect_code(&cluster.run(&["verify", "out"]), 0);
    expect_no_job(&cluster);
}

#[test]
fn what_slurm_does_not_give_is_an_error_and_leaves_no_job() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let text = "name = \"x\"\n[target]\nkind = \"slurm\"\npartition = \"moon\"\nnodes = 2\n\
                [[arm]]\nname = \"default\"\n[[workload]]\nkind = \"wakeup\"\n";
    let moon = cluster.file("moon.toml", text);
    let refused = cluster.run(&["run", &moon, "-o", "moon"]);
    expect_code(&refused, 3);
    let said = stderr(&refused);
    assert!(said.contains("moon") && said.contains("sinfo"), "{said}");
    // Both nodes are another's: the job waits in the queue, until a signal.
    let mut holder = cluster.command("salloc");
    holder.args(["-N", "2", "--exclusive", "cat"]);
    holder.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut holder = holder.stderr(Stdio::null()).spawn().expect("salloc starts");
    eventually("the nodes are taken", || cluster.jobs().contains("RUNNING"));
    let file = experiment(&cluster, 2, "100ms");
    let waiting = start(&cluster, &["run", &file, "-o", "out"]);
    eventually("the job waits", || cluster.jobs().contains("PENDING"));
    signal(&waiting);
    let (code, said) = errors(waiting);
    assert_eq!(code, Some(130), "{said}");
    eventually("the job is out of the queue", || {
        !cluster.jobs().contains("PENDING")
    });
    // The end of its standard input is that of the job.
    holder.wait().expect("salloc ends");
    // One node alone needs no fleet.
    let checked = cluster.run(&["target", "check", "slurm:lab"]);
    expect_code(&checked, 0);
    assert!(stdout(&checked).contains("A run can start there"));
}

#[test]
fn without_the_commands_of_slurm_the_package_is_named() {
    let bench = tests::Bench::default();
    let text = "name = \"x\"\n[target]\nkind = \"slurm\"\nnodes = 2\n[[arm]]\nname = \"default\"\n\
                [[workload]]\nkind = \"wakeup\"\n";
    let file = bench.file("x.toml", text);
    let mut command = bench.command(&["run", &file, "-o", "out"]);
    let output = command.env("PATH", bench.path("empty")).output();
    let output = output.expect("schedlab starts");
    expect_code(&output, 3);
    assert!(
        stderr(&output).contains("slurm-client"),
        "{}",
        stderr(&output)
    );
}

#[test]
#[ignore = "waits for a machine that is late by more than a minute: make test-long"]
fn a_node_that_others_take_between_two_kernels_holds_up_no_run() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start_with_kernels() else {
        return;
    };
    let [own, other] = cluster.kernels() else {
        panic!("two kernels");
    };
    let file = cluster.file("kernels.toml", &two_kernels(own, other));
    let run = run_of(&file, "8");
    let run = start(&cluster, &run);
    eventually("the second node measures", || trials_of(&cluster, "n2") > 0);
    // Granted when the run gives the node back for the other kernel.
    let mut holder = cluster.command("salloc");
    holder.args(["-w", "n2", "--exclusive", "cat"]);
    holder.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut holder = holder.stderr(Stdio::null()).spawn().expect("salloc starts");
    let (code, said) = errors(run);
    assert_eq!(code, Some(0), "{said}\n{}", cluster.logs());
    assert!(said.contains("n2 is late"), "{said}");
    let results = ResultSet::read(&cluster.path("out")).expect("merged results");
    let whole = results.trials.iter().filter(|t| t.trial.is_ok()).count();
    assert!((16..=17).contains(&whole), "{whole} trials of 8 blocks");
    expect_code(&cluster.run(&["verify", "out"]), 0);
    let jobs = cluster.jobs();
    assert_eq!(jobs.lines().count(), 1, "only the other's: {jobs}");
    // The end of its standard input is that of the job.
    holder.wait().expect("salloc ends");
}

#[test]
#[ignore = "Slurm takes half a minute to notice: make test-long"]
fn a_node_that_dies_voids_its_block_and_the_other_goes_on() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let file = experiment(&cluster, 2, "400ms");
    let run = run_of(&file, "40");
    let run = start(&cluster, &run);
    eventually("both measure", || {
        trials_of(&cluster, "n1") > 0 && trials_of(&cluster, "n2") > 0
    });
    cluster.kill_second_node();
    let (code, said) = errors(run);
    // The trial under way was lost, or it had not begun.
    assert!(matches!(code, Some(0 | 4)), "{said}\n{}", cluster.logs());
    assert!(said.contains("n2"), "{said}");
    let results = ResultSet::read(&cluster.path("out")).expect("merged results");
    let whole = results.trials.iter().filter(|t| t.trial.is_ok()).count();
    assert!(
        (80..=81).contains(&whole),
        "{whole} trials of 40 blocks, and one of the open block"
    );
    expect_code(&cluster.run(&["verify", "out"]), 0);
}

/// The end of a run whose job Slurm ends, and the run in a job that follows it, until this budget ends.
fn ended_in_order(cluster: &Cluster, run: Child, budget: &str) {
    let (code, said) = errors(run);
    assert_eq!(code, Some(130), "{said}\n{}", cluster.logs());
    assert!(said.contains("schedlab run --resume out"), "{said}");
    let finished = || {
        let results = ResultSet::read(&cluster.path("out")).expect("what was measured");
        let good = results.trials.iter().filter(|stored| stored.trial.is_ok());
        good.count()
    };
    let before = finished();
    assert!(before > 2, "{said}");
    let resumed = cluster.run(&["run", "--resume", "out", "--budget", budget]);
    // The trial under way at the end of the first job is lost where the budget ends before its turn.
    let code = resumed.status.code();
    assert!(matches!(code, Some(0 | 4)), "{}", stderr(&resumed));
    assert!(finished() > before, "{before} trials before");
    expect_code(&cluster.run(&["verify", "out"]), 0);
    expect_no_job(cluster);
}

#[test]
#[ignore = "waits for a time limit: make test-long"]
fn a_run_ends_in_order_before_the_time_limit_of_its_job() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let file = experiment(&cluster, 2, "300ms");
    let text = std::fs::read_to_string(&file).expect("a file");
    let text = text.replace("nodes = 2\n", "nodes = 2\ntime = \"2m\"\n");
    std::fs::write(&file, text).expect("a writable directory");
    let run = run_of(&file, "1000");
    let run = start(&cluster, &run);
    ended_in_order(&cluster, run, "90s");
}

#[test]
#[ignore = "waits for the grace time of a job: make test-long"]
fn a_job_that_is_preempted_ends_the_run_in_order_and_another_job_goes_on() {
    let _turn = with_lock_of_runs();
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let file = experiment(&cluster, 2, "300ms");
    let run = run_of(&file, "1000");
    let run = start(&cluster, &run);
    eventually("both measure", || {
        trials_of(&cluster, "n1") > 1 && trials_of(&cluster, "n2") > 1
    });
    let mut urgent = cluster.command("srun");
    urgent.args(["-p", "urgent", "-N", "2", "--exclusive", "true"]);
    let urgent = urgent.stderr(Stdio::null()).spawn().expect("srun starts");
    ended_in_order(&cluster, run, "80s");
    assert!(
        urgent
            .wait_with_output()
            .expect("srun ends")
            .status
            .success()
    );
}
