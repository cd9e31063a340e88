//! Virtual time: the same trial to the bit on a busy machine, another one with another seed or
//! another scheduler.

use super::guests::KERNEL;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use tests::{Bench, beside_others, expect_code, no_guests, stdout};

fn experiment(arms: &str, target: &str) -> String {
    format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nclock = \"virtual\"\nmemory = \"768M\"\n{target}\n\
         {arms}\n\
         [[workload]]\nkind = \"burnwait\"\nloads = [3]\nduration = \"300ms\"\nwarmup = \"50ms\"\n\
         interval = \"100ms\"\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\n"
    )
}

/// One, since each trial is a boot.
const ARMS: &str = "[[arm]]\nname = \"eevdf\"";

/// Load on the machine, which comes and goes, until it is dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let script = "while :; do timeout 0.1 sh -c 'while :; do :; done'; sleep 0.1; done";
        Busy(Command::new("sh").args(["-c", script]).spawn().expect("sh"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn gate(bench: &Bench, stored: &str, new: &str) -> Output {
    bench.run(&["gate", stored, new, "--virtual"])
}

/// A bench with the experiment of one arm; `None` without guests. What else the machine does must not
/// matter, so other tests may run.
fn one_arm() -> Option<(Bench, String, tests::Turn)> {
    if let Some(why) = no_guests() {
        tests::skipped(why);
        return None;
    }
    let turn = beside_others();
    let bench = Bench::default();
    let file = bench.file("virtual.toml", &experiment(ARMS, ""));
    Some((bench, file, turn))
}

fn run(bench: &Bench, file: &str, out: &str, seed: &str) {
    let args = ["run", file, "-o", out, "--seed", seed, "-q"];
    expect_code(&bench.run(&args), 0);
}

/// Figures of the trials of a run, all of which are ok.
fn figures(bench: &Bench, out: &str) -> Vec<Vec<model::Measurement>> {
    let results = results::ResultSet::read(&bench.path(out)).expect("results");
    let trials = results.trials.into_iter();
    let metrics = trials.map(|s| {
        assert!(s.trial.is_ok(), "{:?}", s.trial.result.state);
        s.trial.result.metrics
    });
    metrics.collect()
}

#[test]
fn the_same_seed_gives_the_same_trials_on_a_busy_machine() {
    let Some((bench, file, _turn)) = one_arm() else {
        return;
    };
    run(&bench, &file, "one", "1");
    let busy = Busy::start();
    run(&bench, &file, "again", "1");
    drop(busy);
    // Before the gate is asked: they say what differs.
    let (one, again) = (figures(&bench, "one"), figures(&bench, "again"));
    let pairs = one.iter().flatten().zip(again.iter().flatten());
    let differ: Vec<_> = pairs.filter(|(one, again)| one != again).collect();
    assert!(differ.is_empty(), "{differ:?}");
    assert_eq!(one, again);
    let same = gate(&bench, "one", "again");
    expect_code(&same, 0);
    assert!(stdout(&same).contains("passed: "), "{}", stdout(&same));
}

#[test]
#[ignore = "two more boots of emulation, in make test-long"]
fn another_seed_is_another_trial_which_no_gate_compares() {
    let Some((bench, file, _turn)) = one_arm() else {
        return;
    };
    run(&bench, &file, "one", "1");
    run(&bench, &file, "other", "2");
    expect_code(&gate(&bench, "one", "other"), 2);
    assert_ne!(figures(&bench, "one"), figures(&bench, "other"));
}

/// A line of the BPF half of scx_microquanta: who slept comes back with a slice to catch up.
const LINE: &str = "\treturn to->vtime + MAX(ahead, -(s64)rest_slice_ns);";
/// The line that takes its place: a slice behind those who did not sleep.
const CHANGED_LINE: &str = "\treturn to->vtime + MAX(ahead, (s64)rest_slice_ns);";

/// Sources of our schedulers, to be changed and built.
struct Sources(tempfile::TempDir);

impl Sources {
    fn copy() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../sched");
        let copied = Command::new("tar")
            .args(["-C", own, "--exclude=./target", "-cf", "-", "."])
            .stdout(Stdio::piped())
            .spawn()
            .and_then(|mut tar| {
                let archive = tar.stdout.take().expect("its output");
                let mut unpack = Command::new("tar");
                let unpack = unpack.arg("-C").arg(dir.path()).args(["-xf", "-"]);
                let unpacked = unpack.stdin(archive).status()?;
                Ok(tar.wait()?.success() && unpacked.success())
            });
        assert!(copied.expect("tar"), "copy {own}");
        Sources(dir)
    }

    /// Puts one line of a file in the place of another.
    fn change(&self, file: &str, line: &str, other: &str) {
        let path = self.0.path().join(file);
        let text = std::fs::read_to_string(&path).expect(file);
        assert_eq!(text.matches(line).count(), 1, "{line} in {file}");
        std::fs::write(&path, text.replace(line, other)).expect(file);
    }

    /// Builds scx_microquanta. What it is linked with stays built for the next time.
    fn build(&self) -> Vec<u8> {
        let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/one-line");
        let built = Command::new(env!("CARGO"))
            .current_dir(&self.0)
            .args(["build", "--quiet", "--locked", "--bin", "scx_microquanta"])
            .args(["--target-dir", target])
            .env("BPF_CLANG", clang())
            .env("RUSTFLAGS", "")
            .env_remove("CARGO_BUILD_TARGET")
            .status();
        assert!(built.expect("cargo").success(), "build scx_microquanta");
        let program = Path::new(target).join("debug/scx_microquanta");
        std::fs::read(program).expect("the program that was built")
    }
}

/// The newest clang that `make sched` would take.
fn clang() -> String {
    let versions = (16..40).rev().map(|version| format!("clang-{version}"));
    let there = |name: &String| Command::new(name).arg("--version").output().is_ok();
    let mut versions = versions.chain(["clang".to_owned()]);
    versions.find(there).unwrap_or_else(|| "clang".to_owned())
}

#[test]
#[ignore = "nine boots and two builds: seven minutes, in make test-long"]
fn a_scheduler_with_one_line_changed_is_another_one() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if tests::sched_program("scx_microquanta").is_none() {
        return tests::skipped("scx_microquanta is not built: make test builds it");
    }
    let sources = Sources::copy();
    let before = sources.build();
    sources.change("scx_microquanta/src/bpf/fair.bpf.h", LINE, CHANGED_LINE);
    let after = sources.build();
    assert!(before != after, "the line is not in what was built");
    let _turn = beside_others();
    let bench = Bench::default();
    let mine = bench.path("scx_microquanta");
    let arms = format!(
        "[[arm]]\nname = \"eevdf\"\n[[arm]]\nname = \"mine\"\nscheduler = \"{}\"",
        mine.display()
    );
    let file = bench.file("mine.toml", &experiment(&arms, ""));
    let run = |out: &str| expect_code(&bench.run(&["run", &file, "-o", out, "-q"]), 0);
    tests::write_program(&mine, before);
    run("stored");
    run("same");
    tests::write_program(&mine, after);
    run("changed");
    expect_code(&gate(&bench, "stored", "same"), 0);
    only_mine_differs(&bench);
}

/// The gate fails, and names no trial of the arm whose scheduler is the kernel's.
fn only_mine_differs(bench: &Bench) {
    let changed = gate(bench, "stored", "changed");
    expect_code(&changed, 5);
    let json = bench.run(&["gate", "stored", "changed", "--virtual", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&json)).expect("JSON");
    let checks = json["checks"].as_array().expect("a list");
    let differs = |check: &&serde_json::Value| check["call"] != "same";
    assert!(checks.iter().any(|check| differs(&check)), "{json}");
    for check in checks.iter().filter(differs) {
        assert_eq!(check["arm"], "mine", "{check}");
    }
}

#[test]
fn what_would_let_time_in_is_refused() {
    let bench = Bench::default();
    for (keys, says) in [
        ("cpus = 2", "one CPU"),
        ("accel = \"kvm\"", "an emulated CPU"),
        ("root = \"image:x.squashfs\"", "in memory"),
        ("host-cpus = \"0\"", "no CPUs of its own"),
        ("reset = \"snapshot\"", "a boot for each trial"),
    ] {
        let file = bench.file("bad.toml", &experiment(ARMS, keys));
        let output = bench.run(&["plan", &file]);
        expect_code(&output, 2);
        let said = tests::stderr(&output);
        assert!(said.contains(says), "{keys}: {said}");
    }
}
