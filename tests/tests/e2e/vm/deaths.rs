//! Guests, agents and QEMUs that die or hang: their trial is void, or an outcome where that is counted, and the run
//! goes on.

use super::guests::{KERNEL, experiment, of, trials};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tests::{Bench, beside_others, expect_code, no_guests, stdout};

/// Arms that end in another way each: their policy is what the command looks at.
const ARMS: &str = "[[arm]]\nname = \"panics\"\npolicy = { class = \"batch\" }\n\
                    [[arm]]\nname = \"loses-its-agent\"\npolicy = { class = \"idle\" }\n";
const COMMAND: &str = "case $(chrt -p $$) in \
                       *BATCH*) echo c > /proc/sysrq-trigger ;; \
                       *IDLE*) pkill -9 -f '[s]chedlab agent' ;; esac; sleep 1";
/// The event that a guest died, at the head of a file.
const COUNTED: &str = "[[event]]\nname = \"died\"\nwhen = \"guest_death\"\n";

#[test]
fn a_guest_that_dies_is_an_outcome_where_that_is_counted() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let text = format!("{COUNTED}{}", experiment(ARMS, COMMAND));
    let output = bench.run(&["run", &bench.file("x.toml", &text), "-o", "out"]);
    expect_code(&output, 4);
    let trials = trials(&bench);
    let outcome = &of(&trials, "panics");
    let result = &outcome.trial.result;
    assert_eq!(result.state.why(), None);
    let event = outcome.trial.find_event("died").expect("counted");
    assert!(event.ended_window && event.count() == 1, "{event:?}");
    let window_ns = result.window_end_ns - result.window_start_ns;
    assert!(event.exposure_ns == window_ns && window_ns > 0, "{event:?}");
    let said = event.messages.join("\n");
    assert!(said.contains("Kernel panic"), "{said}");
    let console = std::fs::read_to_string(outcome.dir.join("console.log")).expect("kept");
    assert!(console.contains("sysrq_handle_crash"), "{console}");
    let of_default = of(&trials, "eevdf").trial.find_event("died");
    assert_eq!(of_default.expect("counted").count(), 0);
    // The end of an agent is none of its guest.
    let without = &of(&trials, "loses-its-agent").trial.result;
    assert_eq!(without.state.name(), "void");
    let said = stdout(&bench.run(&["verify", "out"]));
    assert!(said.contains("proves the arm in all 2 trials"), "{said}");
}

#[test]
fn a_guest_or_an_agent_that_dies_voids_its_trial_and_the_run_goes_on() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let file = bench.file("deaths.toml", &experiment(ARMS, COMMAND));
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 4);
    let trials = trials(&bench);
    assert!(of(&trials, "eevdf").trial.is_ok());
    let void = of(&trials, "panics");
    let why = void.trial.result.state.why().expect("void");
    assert!(why.contains("Kernel panic"), "{why}");
    assert!(why.contains("sysrq_handle_crash"), "last lines: {why}");
    let console = std::fs::read_to_string(void.dir.join("console.log")).expect("kept");
    assert!(console.contains("Kernel panic"), "{console}");
    let why = of(&trials, "loses-its-agent").trial.result.state.why();
    let why = why.expect("void");
    assert!(
        why.contains("agent in the guest ended with signal 9"),
        "{why}"
    );
    let text = stdout(&output);
    assert!(!text.contains("sysrq_handle_crash"), "one line: {text}");
}

#[test]
fn a_guest_that_is_too_small_for_its_service_is_said_to_be() {
    const PYTHON: &str = "/usr/bin/python3";
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if !std::path::Path::new(PYTHON).exists() {
        return tests::skipped("python3 is not installed");
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let text = format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"320M\"\n\
         [[arm]]\nname = \"eevdf\"\n\
         [[workload]]\nkind = \"http\"\nurl = \"/hoard\"\nloads = [\"5/s\"]\nconnections = 1\n\
         warmup = \"100ms\"\nduration = \"2m\"\nmetrics = [\"request_p50\"]\n\
         [[workload.service]]\nname = \"notes\"\nports = [\"http\"]\n\
         command = [\"{PYTHON}\", \"{}/fixtures/notes.py\", \"{{port}}\"]\n\
         ready = {{ path = \"/health\" }}\nready-limit = \"2m\"\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\nmax-attempts = 1\n",
        env!("CARGO_MANIFEST_DIR")
    );
    let file = bench.file("small.toml", &text);
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 4);
    let trials = trials(&bench);
    let why = of(&trials, "eevdf").trial.result.state.why();
    let why = why.expect("it failed");
    // Where the load ended just before the service's last thread did, it is the first to be named.
    assert!(why.contains("service-notes"), "{why}");
    assert!(why.contains("the machine has too little memory"), "{why}");
    assert!(why.contains("Out of memory: Killed process"), "{why}");
    bench.expect_nothing_left();
}

/// QEMU below this schedlab.
fn qemu_of(schedlab: u32) -> Option<rustix::process::Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{schedlab}/task")).ok()?;
    let children = tasks.flatten().filter_map(|task| {
        let list = std::fs::read_to_string(task.path().join("children")).ok()?;
        Some(
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    });
    let mut qemu = children.flatten().filter(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.starts_with("qemu-system"))
    });
    rustix::process::Pid::from_raw(qemu.next()?.parse().ok()?)
}

/// Wait until this many trials are on disk, then do this to the QEMU that runs.
fn after_trials(bench: &Bench, schedlab: u32, count: usize, signal: rustix::process::Signal) {
    let limit = Instant::now() + Duration::from_secs(300);
    let there = || std::fs::read_dir(bench.path("out/trials")).map_or(0, Iterator::count);
    while there() < count {
        assert!(Instant::now() < limit, "{count} trials never came");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Into the next trial: a boot, if there is one, is not what is tested.
    std::thread::sleep(Duration::from_secs(1));
    let qemu = qemu_of(schedlab).expect("a guest runs");
    rustix::process::kill_process(qemu, signal).expect("it runs");
}

/// Trials of a run the QEMU of whose second trial gets a signal. It goes on, and nothing is missing.
fn lost(signal: rustix::process::Signal, events: &str) -> Vec<results::StoredTrial> {
    let _turn = beside_others();
    let bench = Bench::default();
    let text = format!(
        "{events}[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"512M\"\n\
         [[arm]]\nname = \"eevdf\"\n\
         [[workload]]\nkind = \"command\"\ntime-limit = \"20s\"\n\
         command = [\"sh\", \"-c\", \"echo in the guest > /dev/console; sleep 4\"]\n\
         [stop]\nmin-blocks = 2\nmax-blocks = 2\n"
    );
    let file = bench.file("lost.toml", &text);
    let mut run = bench.command(&["run", &file, "-o", "out"]);
    let mut run = run.stdout(Stdio::null()).spawn().expect("schedlab starts");
    after_trials(&bench, run.id(), 1, signal);
    assert_eq!(run.wait().expect("it ends").code(), Some(0));
    trials(&bench)
}

#[test]
fn a_qemu_that_is_killed_voids_its_trial_and_the_run_goes_on() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let trials = lost(rustix::process::Signal::KILL, "");
    let states: Vec<_> = trials.iter().map(|t| &t.trial.result.state).collect();
    // It was measured again.
    let void: Vec<&str> = states.iter().filter_map(|s| s.why()).collect();
    assert_eq!((states.len(), void.len()), (3, 1), "{states:?}");
    assert!(states.iter().any(|s| s.name() == "void"), "{states:?}");
    expect_last_lines(void[0], "signal: 9");
}

#[test]
#[ignore = "it is waited for a minute, in make test-long"]
fn a_qemu_that_hangs_is_an_outcome_where_that_is_counted() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let trials = lost(rustix::process::Signal::STOP, COUNTED);
    let events = trials.iter().filter_map(|t| t.trial.find_event("died"));
    let died: Vec<_> = events.filter(|event| event.ended_window).collect();
    assert_eq!((trials.len(), died.len()), (2, 1), "{died:?}");
    expect_last_lines(&died[0].messages.join("\n"), "was silent for 60 s");
}

/// The reason of a death, with the console's last lines.
#[track_caller]
fn expect_last_lines(why: &str, reason: &str) {
    assert!(
        why.contains(reason) && why.contains("in the guest"),
        "{why}"
    );
}
