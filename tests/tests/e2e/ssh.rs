//! Runs on another machine over ssh: a real sshd, whose machine is this one.

#![allow(clippy::disallowed_methods)]

use model::{Trial, TrialState};
use results::ResultSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tests::{Bench, Sshd, expect_code, is_root, skipped, stderr, stdout, with_lock_of_runs};

/// A knob that changes nothing here while it is a little higher for a moment.
const KNOB: &str = "/proc/sys/vm/swappiness";
/// In the command line of a workload: no other process sleeps so long.
const MARK: &str = "302.40204";

fn knob() -> u32 {
    let text = fs::read_to_string(KNOB).expect("a sysctl");
    text.trim().parse().expect("a number")
}

fn root_or_skip() -> bool {
    if !is_root() {
        skipped("tunables need root");
    }
    is_root()
}

/// An experiment on the machine behind the sshd, with these arms and one workload.
fn experiment(bench: &Bench, sshd: &Sshd, arms: &str, workload: &str) -> String {
    let arms = format!("[[arm]]\nname = \"default\"\n{arms}");
    let text = format!("{}{arms}[[workload]]\n{workload}\n", sshd.target());
    bench.file("experiment.toml", &text)
}

/// An arm with the knob higher by one.
fn tuned(before: u32) -> String {
    let value = before + 1;
    format!("[[arm]]\nname = \"tuned\"\ntunables = {{ \"vm.swappiness\" = \"{value}\" }}\n")
}

fn sleeping(seconds: &str) -> String {
    format!("kind = \"command\"\ncommand = [\"sleep\", \"{seconds}\"]")
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < limit, "never came about: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes with this in their command line.
fn processes(text: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let argvs = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let argvs = argvs.map(|argv| String::from_utf8_lossy(&argv).replace('\0', " "));
    argvs.filter(|argv| argv.contains(text)).collect()
}

/// Neither knob nor process is left, and no lock.
fn expect_restored(sshd: &Sshd, before: u32) {
    let cache = sshd.path("cache").display().to_string();
    eventually("the far agent has ended", || processes(&cache).is_empty());
    eventually("the knob is as before", || knob() == before);
    assert_eq!(processes(MARK), Vec::<String>::new());
}

fn trials(bench: &Bench) -> Vec<Trial> {
    ResultSet::read(&bench.path("out"))
        .expect("results")
        .trials
        .into_iter()
        .map(|t| t.trial)
        .collect()
}

fn start(bench: &Bench, args: &[&str]) -> Child {
    let mut command = bench.command(args);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("schedlab starts")
}

fn errors(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("schedlab ends");
    (output.status.code(), stderr(&output))
}

#[test]
fn arms_are_compared_and_proven_on_another_machine() {
    let Some(sshd) = Sshd::start() else { return };
    if !root_or_skip() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let before = knob();
    let arms = format!(
        "[[arm]]\nname = \"batch\"\npolicy = {{ class = \"batch\" }}\n{}",
        tuned(before)
    );
    let file = experiment(&bench, &sshd, &arms, &sleeping("0.05"));
    let output = bench.run(&["run", &file, "-o", "out", "--max-blocks", "2", "--wait"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("tuned"), "{}", stdout(&output));
    let trials = trials(&bench);
    assert!(trials.len() == 6 && trials.iter().all(Trial::is_ok));
    for trial in &trials {
        let facts = &trial.result.evidence.facts;
        let kernel = facts
            .iter()
            .find(|fact| fact.what == "kernel")
            .expect("a fact");
        assert_eq!(kernel.wanted.as_ref(), Some(&kernel.found));
    }
    expect_code(&bench.run(&["verify", "out"]), 0);
    let system = fs::read_to_string(bench.path("out/system.json")).expect("a file");
    assert!(system.contains("\"ssh.host\": \"lab\""), "{system}");
    let resumed = bench.run(&["run", "--resume", "out", "--max-blocks", "3", "--wait"]);
    expect_code(&resumed, 0);
    expect_restored(&sshd, before);
}

#[test]
fn a_connection_that_is_cut_voids_its_trial_and_the_run_goes_on() {
    let Some(sshd) = Sshd::start() else { return };
    if !root_or_skip() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let before = knob();
    let file = experiment(&bench, &sshd, &tuned(before), &sleeping("1"));
    let run = start(
        &bench,
        &["run", &file, "-o", "out", "--max-blocks", "1", "--wait"],
    );
    eventually("the arm is in force", || knob() == before + 1);
    assert!(sshd.cut() > 0);
    let (code, said) = errors(run);
    assert_eq!(code, Some(0), "{said}");
    let trials = trials(&bench);
    let lost: Vec<&Trial> = trials.iter().filter(|trial| !trial.is_ok()).collect();
    assert_eq!((trials.len(), lost.len()), (3, 1), "{trials:?}");
    let why = &lost[0].result.state;
    let TrialState::Void { why } = why else {
        panic!("{why:?}")
    };
    assert!(why.contains("the connection to lab is lost"), "{why}");
    expect_restored(&sshd, before);
}

#[test]
fn the_end_of_the_controller_ends_the_trial_and_undoes_the_arm() {
    let Some(sshd) = Sshd::start() else { return };
    if !root_or_skip() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let before = knob();
    let file = experiment(&bench, &sshd, &tuned(before), &sleeping(MARK));
    // Whichever comes first changes something.
    let value = before + 2;
    let baseline =
        format!("name = \"default\"\ntunables = {{ \"vm.swappiness\" = \"{value}\" }}\n");
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("name = \"default\"\n", &baseline)).expect("a file");
    let mut run = start(&bench, &["run", &file, "-o", "out", "--wait"]);
    eventually("the load runs", || {
        knob() != before && !processes(MARK).is_empty()
    });
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    expect_restored(&sshd, before);
}

#[test]
fn a_machine_that_nobody_knows_or_that_has_another_key_is_never_used() {
    let Some(sshd) = Sshd::start() else { return };
    let bench = Bench::default();
    let file = experiment(&bench, &sshd, "", &sleeping("0.1"));
    fs::write(sshd.path("known_hosts"), "").expect("a file");
    let unknown = bench.run(&["check", &file, "--yes"]);
    expect_code(&unknown, 3);
    let said = stderr(&unknown);
    assert!(
        said.contains("ssh:lab: ") && said.contains("log in once by hand"),
        "{said}"
    );
    sshd.trust("other");
    let known = fs::read_to_string(sshd.path("known_hosts")).expect("a file");
    let changed = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&changed, 3);
    let said = stderr(&changed);
    assert!(said.contains("HOST IDENTIFICATION HAS CHANGED"), "{said}");
    assert!(said.contains("before you trust it"), "{said}");
    assert_eq!(
        fs::read_to_string(sshd.path("known_hosts")).expect("a file"),
        known
    );
    assert!(!sshd.path("cache").exists(), "something was copied");
}

/// id(1) of a user who is not root.
const USER: (&str, &str) = (
    "id",
    "[ \"$1\" = -u ] && echo 1000 || exec /usr/bin/id \"$@\"",
);

#[test]
fn sudo_is_asked_for_before_anything_is_applied() {
    let refuses = ("sudo", "echo 'sudo: a password is required' >&2; exit 1");
    let Some(sshd) = Sshd::start_with(&[USER, refuses]) else {
        return;
    };
    let bench = Bench::default();
    let file = experiment(&bench, &sshd, "", &sleeping("0.1"));
    let text = fs::read_to_string(&file).expect("a file");
    fs::write(&file, text.replace("host = ", "sudo = \"yes\"\nhost = ")).expect("a file");
    let refused = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&refused, 3);
    let said = stderr(&refused);
    assert!(
        said.contains("sudo -n true: sudo: a password is required"),
        "{said}"
    );
    assert!(said.contains("NOPASSWD"), "{said}");
}

#[test]
fn the_agent_of_a_user_who_is_not_root_is_started_by_sudo_where_an_arm_changes_something() {
    let asked = tempfile::NamedTempFile::new().expect("a file");
    let path = asked.path().display();
    let sudo = format!("echo \"$@\" >> {path}; [ \"$1\" = -n ] && shift && exec \"$@\"");
    let Some(sshd) = Sshd::start_with(&[USER, ("sudo", &sudo)]) else {
        return;
    };
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let run = |arms: &str, output: &str| {
        let file = experiment(&bench, &sshd, arms, &sleeping("0.05"));
        let run = bench.run(&["run", &file, "-o", output, "--max-blocks", "1", "--wait"]);
        expect_code(&run, 0);
        fs::read_to_string(asked.path()).expect("a file")
    };
    assert!(!run("", "one").contains("agent-here"));
    let arm = "[[arm]]\nname = \"batch\"\npolicy = { class = \"batch\" }\n";
    assert!(run(arm, "two").contains("agent-here --for"));
}

#[test]
fn a_machine_of_another_architecture_needs_a_build_for_it() {
    let uname = (
        "uname",
        "[ \"$1\" = -m ] && echo riscv64 && exit; exec /usr/bin/uname \"$@\"",
    );
    let Some(sshd) = Sshd::start_with(&[uname]) else {
        return;
    };
    let bench = Bench::default();
    let file = experiment(&bench, &sshd, "", &sleeping("0.1"));
    let check = bench.run(&["check", &file, "--yes"]);
    expect_code(&check, 3);
    let said = stderr(&check);
    assert!(
        said.contains("the machine is riscv64, and this schedlab is for"),
        "{said}"
    );
    assert!(said.contains("agent = \"PATH\""), "{said}");
}

#[test]
fn two_controllers_do_not_share_a_machine() {
    let Some(sshd) = Sshd::start() else { return };
    let _turn = with_lock_of_runs();
    let (first, second) = (Bench::default(), Bench::default());
    let long = experiment(&first, &sshd, "", &sleeping(MARK));
    let short = experiment(&second, &sshd, "", &sleeping("0.1"));
    let mut run = start(&first, &["run", &long, "-o", "out", "--wait"]);
    eventually("the load runs", || !processes(MARK).is_empty());
    let refused = second.run(&["run", &short, "-o", "out"]);
    expect_code(&refused, 3);
    let said = stderr(&refused);
    let runner = format!("process {}", run.id());
    assert!(said.contains("ssh:lab: another run is under way"), "{said}");
    assert!(
        said.contains("agent --alone --for") && said.contains(&runner),
        "{said}"
    );
    let looked = second.run(&["target", "check", &short, "--yes"]);
    expect_code(&looked, 3);
    let waiting = start(
        &second,
        &["run", &short, "-o", "out", "--max-blocks", "1", "--wait"],
    );
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    let (code, said) = errors(waiting);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_machine_is_looked_at_before_any_run() {
    let Some(sshd) = Sshd::start() else { return };
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let file = experiment(&bench, &sshd, "", &sleeping("0.1"));
    let text = bench.run(&["target", "check", &file, "--yes"]);
    expect_code(&text, 0);
    for word in [
        "architecture",
        "kernel",
        "sched_ext",
        "clock",
        "free",
        "A run can start there.",
    ] {
        assert!(stdout(&text).contains(word), "{word}: {}", stdout(&text));
    }
    let json = bench.run(&["target", "check", &file, "--yes", "--format", "json"]);
    expect_code(&json, 0);
    let json: serde_json::Value = serde_json::from_str(&stdout(&json)).expect("JSON");
    assert!(
        json["checks"]
            .as_array()
            .is_some_and(|checks| checks.len() >= 8),
        "{json}"
    );
    assert_eq!(json["missing"], serde_json::json!([]));
    let doctor = bench.run(&["doctor", "--target", &file, "--yes"]);
    expect_code(&doctor, 0);
    assert!(stdout(&doctor).contains("governor"), "{}", stdout(&doctor));
    expect_code(&bench.run(&["restore", "--target", &file, "--yes"]), 0);
}

#[test]
fn a_check_of_a_machine_foresees_what_its_trials_will_warn_of() {
    let Some(sshd) = Sshd::start() else { return };
    if !root_or_skip() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let nice = "[[arm]]\nname = \"nice\"\npolicy = { nice = 5 }\n";
    let file = experiment(&bench, &sshd, nice, &sleeping("0.1"));
    let check = bench.run(&["check", &file, "--yes"]);
    expect_code(&check, 0);
    let on = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    let is_on = on.is_ok_and(|on| on.trim() == "1");
    let said = stdout(&check).contains("sched_autogroup_enabled = 1");
    assert_eq!(said, is_on, "{}", stdout(&check));
}

#[test]
fn a_clock_that_is_off_is_told() {
    let behind = (
        "date",
        "[ \"$1\" = +%s ] && echo 1700000000 && exit; exec /usr/bin/date \"$@\"",
    );
    let Some(sshd) = Sshd::start_with(&[behind]) else {
        return;
    };
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let file = experiment(&bench, &sshd, "", &sleeping("0.05"));
    let check = bench.run(&["target", "check", &file, "--yes"]);
    assert!(
        stdout(&check).contains("behind of this one"),
        "{}",
        stdout(&check)
    );
    let run = bench.run(&[
        "run",
        &file,
        "-o",
        "out",
        "--max-blocks",
        "1",
        "--wait",
        "-q",
    ]);
    expect_code(&run, 0);
    let set = ResultSet::read(&bench.path("out")).expect("results");
    let warned = set
        .manifest
        .warnings
        .iter()
        .any(|w| w.what.contains("The clock of lab is"));
    assert!(warned, "{:?}", set.manifest.warnings);
}

#[test]
fn a_load_on_the_controller_reaches_the_service_through_ssh() {
    let Some(sshd) = Sshd::start() else { return };
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let workload = "kind = \"http\"\nloads = [\"200/s\"]\nload-on = \"controller\"\n\
                    metrics = [\"request_p50\"]\n\
                    duration = \"500ms\"\nwarmup = \"100ms\"\n[workload.server]\nkind = \"echo\"";
    let file = experiment(&bench, &sshd, "", workload);
    let words = ["run", &file, "-o", "out", "--max-blocks", "1", "--wait"];
    // No request takes less than a nanosecond.
    let run = bench.run(&[&words[..], &["--event", "request > 1ns"]].concat());
    expect_code(&run, 0);
    // A busy machine may make a trial void, which is repeated.
    let trials = trials(&bench);
    let counting: Vec<_> = trials.iter().filter(|trial| trial.is_ok()).collect();
    let mut figures = counting.iter().flat_map(|trial| &trial.result.metrics);
    assert!(figures.any(|m| m.metric == "request_p50"), "{trials:?}");
    for trial in counting {
        let late = trial.find_event("request > 1ns").expect("counted here");
        assert!(late.count() > 0, "{late:?}");
        assert_eq!(Some(late.count()), late.requests);
        let first = late.at_ns[0];
        assert!(first >= trial.result.window_start_ns, "{late:?}");
    }
}

#[test]
fn an_agent_in_the_cache_that_was_changed_is_not_used() {
    let Some(sshd) = Sshd::start() else { return };
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let file = experiment(&bench, &sshd, "", &sleeping("0.05"));
    expect_code(&bench.run(&["check", &file, "--yes"]), 0);
    let agents = fs::read_dir(sshd.path("cache/schedlab"))
        .expect("a cache")
        .flatten();
    let agents: Vec<_> = agents.map(|entry| entry.path()).collect();
    let [agent] = agents.as_slice() else {
        panic!("{agents:?}")
    };
    tests::write_program(Path::new(agent), "#!/bin/sh\nexit 7\n");
    expect_code(&bench.run(&["check", &file, "--yes"]), 0);
    assert!(fs::metadata(agent).expect("a file").len() > 1 << 20);
}

#[test]
fn a_kernel_and_a_name_that_is_none_are_refused_before_anybody_is_asked() {
    let bench = Bench::default();
    let arm = ["check", "--target", "ssh:nobody.invalid", "-w", "wakeup"];
    let kernel = bench.run(&[&arm[..], &["-a", "kernel=debian:sid"]].concat());
    expect_code(&kernel, 2);
    assert!(stderr(&kernel).contains("kernel"), "{}", stderr(&kernel));
    let option = bench.run(&[
        "check",
        "--target",
        "ssh:-oProxyCommand=x",
        "-a",
        "default",
        "-w",
        "wakeup",
    ]);
    expect_code(&option, 2);
    assert!(
        stderr(&option).contains("is no name of a machine"),
        "{}",
        stderr(&option)
    );
    let moon = bench.run(&["target", "check", "moon:x"]);
    expect_code(&moon, 2);
    assert!(stderr(&moon).contains("ssh:HOST"), "{}", stderr(&moon));
}

#[test]
fn ssh_that_is_not_there_is_named() {
    let bench = Bench::default();
    let mut command: Command = bench.command(&["target", "check", "ssh:nobody.invalid"]);
    let output = command
        .env("PATH", bench.dir.path())
        .output()
        .expect("schedlab starts");
    assert!(stderr(&output).contains("ssh"), "{}", stderr(&output));
    assert_ne!(output.status.code(), Some(0));
}
