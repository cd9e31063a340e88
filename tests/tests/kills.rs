//! Killed at random moments: no finished trial is lost, the machine is as before,
//! and resume completes the same plan.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tests::{Bench, alone, expect_code};

const KILLS: usize = 30;
/// A knob that a locked-down kernel lets root write, with no effect on the tests.
const KNOB: &str = "/proc/sys/kernel/sched_rr_timeslice_ms";
const FILE: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "changed"
policy = { class = "batch" }
KNOB
[[workload]]
kind = "command"
command = ["sleep", "0.1"]
[stop]
min-blocks = 25
max-blocks = 25
"#;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Victim {
    Runner,
    Agent,
    Both,
}

#[test]
fn no_kill_loses_a_trial_or_leaves_a_change() {
    let _turn = alone();
    let bench = Bench::default();
    let knob = (tests::is_root() && fs::write(KNOB, read(KNOB)).is_ok()).then_some(KNOB);
    let tunables = match knob {
        Some(_) => "tunables = { rr_timeslice = \"37ms\" }",
        None => {
            println!("skipped: the tunable, which needs root; the policy is tested");
            ""
        }
    };
    let file = bench.file("kills.toml", &FILE.replace("KNOB", tunables));
    let before = knob.map(read);
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for kill in 0..KILLS {
        let victim = [Victim::Runner, Victim::Agent, Victim::Both][kill % 3];
        run_and_kill(&bench, &file, victim, random.random_range(100..900));
        assert_eq!(
            knob.map(read),
            before,
            "the knob is as before after kill {kill}"
        );
        seen = no_trial_is_lost(&bench.path("out/trials"), seen);
    }
    let output = bench.run(&["run", "--resume", "out"]);
    // An agent that was killed inside a trial voided it.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{output:?}");
    let set = results::ResultSet::read(&bench.path("out")).expect("readable");
    let mut done: Vec<u32> = set
        .trials
        .iter()
        .filter(|t| t.trial.is_ok())
        .map(|t| t.trial.place.index)
        .collect();
    done.dedup();
    assert_eq!(
        done,
        (0..50).collect::<Vec<u32>>(),
        "the whole plan, each place once"
    );
    no_trial_is_lost(&bench.path("out/trials"), seen);
    expect_code(&bench.run(&["restore"]), 0);
    assert_eq!(knob.map(read), before);
}

fn read(path: &str) -> String {
    fs::read_to_string(path).expect("a readable knob")
}

fn run_and_kill(bench: &Bench, file: &str, victim: Victim, after_ms: u64) {
    let args = match bench.path("out").exists() {
        true => vec!["run", "--resume", "out"],
        false => vec!["run", file, "-o", "out"],
    };
    let mut runner = bench
        .command(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("schedlab starts");
    std::thread::sleep(Duration::from_millis(after_ms));
    let agent = agent_of(&runner);
    if victim != Victim::Runner {
        agent.into_iter().for_each(kill);
    }
    if victim == Victim::Agent {
        // The runner goes on with another agent; then it is our turn to end it.
        std::thread::sleep(Duration::from_millis(200));
    }
    kill(Pid::from_child(&runner));
    runner.wait().expect("it ends");
    wait_until_undone(bench);
}

fn kill(pid: Pid) {
    // It may have ended by itself.
    let _ = kill_process(pid, Signal::KILL);
}

fn agent_of(runner: &Child) -> Option<Pid> {
    let path = format!("/proc/{0}/task/{0}/children", runner.id());
    let children = fs::read_to_string(path).ok()?;
    let first = children.split_whitespace().next()?.parse().ok()?;
    Pid::from_raw(first)
}

/// The guard works after its agent's death; `restore` waits for it.
fn wait_until_undone(bench: &Bench) {
    let limit = Instant::now() + Duration::from_secs(60);
    while Instant::now() < limit {
        let output = bench.run(&["restore"]);
        if output.status.code() == Some(0) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the guard did not end");
}

/// Every trial that was whole before is there with the same text.
fn no_trial_is_lost(dir: &Path, before: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut now = BTreeMap::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            let text = fs::read_to_string(entry.path().join("trial.json"));
            now.insert(name, text.expect("a trial is whole or absent"));
        }
    }
    for (name, text) in before {
        assert_eq!(now.get(&name), Some(&text), "{name}");
    }
    now
}
