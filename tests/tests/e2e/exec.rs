//! Runs in places that a command leads to: a container of the real Podman, and stand-ins for programs of
//! presets, which pass the words behind theirs on to this machine.

#![allow(clippy::disallowed_methods)]

use model::{Trial, TrialState};
use results::ResultSet;
use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tests::{
    Bench, Container, beside_others, expect_code, is_root, skipped, stderr, stdout,
    with_lock_of_runs, write_program,
};

/// A knob that changes nothing here while it is a little higher for a moment.
const KNOB: &str = "/proc/sys/vm/swappiness";
/// In the command line of a workload: no other process sleeps so long.
const MARK: &str = "304.60406";
fn knob() -> u32 {
    let text = fs::read_to_string(KNOB).expect("a sysctl");
    text.trim().parse().expect("a number")
}

/// A container of the real Podman, or `None` after it was said why there is none.
fn container(bench: &Bench, options: &[&str]) -> Option<Container> {
    if !is_root() {
        skipped("podman is used as root");
        return None;
    }
    let is_possible = Container::is_possible_or_skip();
    is_possible.then(|| Container::start(bench, options, &["sleep", "100000"]))
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < limit, "never came about: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Is there a process with this in its command line?
fn is_running(text: &str) -> bool {
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let mut argvs = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    argvs.any(|argv| {
        String::from_utf8_lossy(&argv)
            .replace('\0', " ")
            .contains(text)
    })
}

fn trials(bench: &Bench) -> Vec<Trial> {
    let set = ResultSet::read(&bench.path("out")).expect("results");
    set.trials.into_iter().map(|stored| stored.trial).collect()
}

/// An experiment in a container, with an arm that turns the knob.
fn turning(name: &str, before: u32, workload: &str) -> String {
    format!(
        "[target]\nkind = \"exec\"\npodman = \"{name}\"\nreconnect = \"2s\"\n\
         [[arm]]\nname = \"default\"\n\
         [[arm]]\nname = \"tuned\"\ntunables = {{ \"vm.swappiness\" = \"{}\" }}\n\
         [[workload]]\n{workload}\n",
        before + 1
    )
}

fn sleeping(seconds: &str) -> String {
    format!("kind = \"command\"\ncommand = [\"sleep\", \"{seconds}\"]")
}

fn start(bench: &Bench, args: &[&str]) -> Child {
    let mut command = bench.command(args);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("schedlab starts")
}

#[test]
fn arms_are_compared_and_proven_in_a_container_and_the_machine_is_left_as_it_was() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let Some(container) = container(&bench, &["--privileged"]) else {
        return;
    };
    let before = knob();
    let file = bench.file(
        "experiment.toml",
        &turning(&container.name, before, &sleeping("0.05")),
    );
    let output = bench.run(&["run", &file, "-o", "out", "--max-blocks", "2", "--wait"]);
    expect_code(&output, 0);
    let trials = trials(&bench);
    assert!(
        trials.len() == 4 && trials.iter().all(Trial::is_ok),
        "{trials:?}"
    );
    expect_code(&bench.run(&["verify", "out"]), 0);
    let system = fs::read_to_string(bench.path("out/system.json")).expect("a file");
    let command = format!("podman exec -i {}", container.name);
    assert!(system.contains(&command), "{system}");
    assert_eq!(knob(), before);
}

#[test]
fn the_end_of_the_controller_undoes_the_arm_in_a_container() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let Some(container) = container(&bench, &["--privileged"]) else {
        return;
    };
    let before = knob();
    let text = turning(&container.name, before, &sleeping(MARK));
    let baseline = format!(
        "name = \"default\"\ntunables = {{ \"vm.swappiness\" = \"{}\" }}\n",
        before + 2
    );
    let file = bench.file(
        "experiment.toml",
        &text.replace("name = \"default\"\n", &baseline),
    );
    let mut run = start(&bench, &["run", &file, "-o", "out", "--wait"]);
    eventually("the load runs", || knob() != before && is_running(MARK));
    run.kill().expect("it runs");
    run.wait().expect("it ends");
    eventually("the knob is as before", || knob() == before);
    eventually("no process of it is left", || {
        !is_running(MARK) && !is_running("agent-here --for")
    });
}

#[test]
#[ignore = "another container for a rare end: make test-long runs it"]
fn a_container_that_ends_in_a_trial_voids_it_and_the_run_ends_in_order_and_goes_on_later() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let Some(container) = container(&bench, &[]) else {
        return;
    };
    let text = format!(
        "[target]\nkind = \"exec\"\npodman = \"{}\"\nreconnect = \"1s\"\n\
         [[arm]]\nname = \"default\"\n[[workload]]\n{}\n",
        container.name,
        sleeping(MARK)
    );
    let file = bench.file("experiment.toml", &text);
    let run = start(&bench, &["run", &file, "-o", "out", "--wait"]);
    eventually("the load runs", || is_running(MARK));
    container.kill();
    let output = run.wait_with_output().expect("schedlab ends");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("schedlab run --resume"), "{said}");
    let trials = trials(&bench);
    let TrialState::Void { why } = &trials[0].result.state else {
        panic!("{trials:?}")
    };
    let lost = format!("the connection to podman {} is lost", container.name);
    assert!(why.contains(&lost), "{why}");
    eventually("no process of it is left", || !is_running(MARK));
}

#[test]
fn a_container_tells_what_it_hides_and_refuses_what_it_cannot_reach() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let Some(container) = container(&bench, &["--cpus=0.5", "--cpuset-cpus=0"]) else {
        return;
    };
    let place = format!("podman:{}", container.name);
    let looked = stdout(&bench.run(&["target", "check", &place]));
    for words in ["50 % of one CPU", "its own: pid", "read-only: /proc/sys"] {
        assert!(looked.contains(words), "{words}: {looked}");
    }
    let cpus = std::thread::available_parallelism().expect("CPUs").get();
    assert_eq!(looked.contains("1 of "), cpus > 1, "{looked}");
    assert!(looked.contains("A run can start there."), "{looked}");
    let file = bench.file(
        "experiment.toml",
        &turning(&container.name, knob(), &sleeping("0.05")),
    );
    let check = bench.run(&["check", &file, "--yes"]);
    expect_code(&check, 3);
    let said = stderr(&check) + &stdout(&check);
    assert!(said.contains("Read-only file system"), "{said}");
    assert!(said.contains("podman run --privileged"), "{said}");
}

#[test]
fn a_container_that_is_not_there_is_told_with_the_command_that_asks_for_it() {
    if tests::program("podman").is_none() {
        return skipped("podman is not installed");
    }
    let bench = Bench::default();
    let check = bench.run(&["target", "check", "podman:lab-of-nobody"]);
    expect_code(&check, 3);
    let said = stderr(&check);
    assert!(said.contains("lab-of-nobody"), "{said}");
    assert!(
        said.contains("try: podman exec -i lab-of-nobody true"),
        "{said}"
    );
}

/// A PATH whose programs of presets lead to this machine.
fn with_stand_ins(bench: &Bench) -> String {
    let bin = bench.path("bin");
    fs::create_dir(&bin).expect("a directory");
    let cache = bench.path("cache").display().to_string();
    // The number of words before the command; adb gives its words to a shell as one text.
    for (program, words, ends) in [
        ("podman", 3, "exec \"$@\""),
        ("adb", 4, "exec sh -c \"$*\""),
    ] {
        let script = format!("#!/bin/sh\nshift {words}\nexport XDG_CACHE_HOME={cache}\n{ends}\n");
        write_program(&bin.join(program), script);
    }
    let usual = std::env::var("PATH").unwrap_or_default();
    format!("{}:{usual}", bin.display())
}

#[test]
fn presets_lead_to_their_places_word_by_word_and_through_a_shell() {
    let _turn = beside_others();
    let bench = Bench::default();
    let path = with_stand_ins(&bench);
    let asked = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("PATH", &path);
        command.output().expect("schedlab starts")
    };
    let cache = bench.path("cache").display().to_string();
    let text = format!(
        "[target]\nkind = \"exec\"\nadb = \"lab\"\ncache = \"{cache}\"\n\
         [[arm]]\nname = \"default\"\n[[workload]]\nkind = \"wakeup\"\n"
    );
    let file = bench.file("adb.toml", &text);
    let output = asked(&["target", "check", &file, "--yes"]);
    expect_code(&output, 0);
    assert!(stdout(&output).contains("A run can start there."));
    let run = asked(&[
        "run",
        "--target",
        "podman:lab",
        "-a",
        "default",
        "-w",
        "wakeup:1",
        "--duration",
        "100ms",
        "--max-blocks",
        "1",
        "-o",
        "out",
        "-q",
    ]);
    expect_code(&run, 0);
    assert!(trials(&bench).iter().all(Trial::is_ok));
}

#[test]
fn what_leads_nowhere_is_said_with_its_line() {
    let bench = Bench::default();
    let rest = "[[arm]]\nname = \"default\"\n[[workload]]\nkind = \"wakeup\"\n";
    for (keys, why, remedy) in [
        ("", "no command that leads to it", "podman = \"NAME\""),
        (
            "podman = \"a\"\ncommand = [\"env\"]",
            "more than one way",
            "podman = \"NAME\"",
        ),
        (
            "kubectl = \"-n\"",
            "is no name of a pod",
            "kubectl = \"NAME\"",
        ),
        (
            "command = [\"env\"]\ncache = \"here\"",
            "must begin with `/`",
            "cache = ",
        ),
        ("podmann = \"a\"", "podmann", "podman"),
    ] {
        let text = format!("[target]\nkind = \"exec\"\n{keys}\n{rest}");
        let file = bench.file("wrong.toml", &text);
        let output = bench.run(&["plan", &file]);
        expect_code(&output, 2);
        let said = stderr(&output);
        for words in [why, remedy, "wrong.toml:"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    let output = bench.run(&[
        "plan",
        "--target",
        "podmann:a",
        "-a",
        "default",
        "-w",
        "wakeup",
    ]);
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("podman:CONTAINER"), "{said}");
}

#[test]
fn a_command_of_a_file_is_shown_before_it_starts() {
    let bench = Bench::default();
    let text = format!(
        "[target]\nkind = \"exec\"\ncommand = [\"touch\", \"{}\"]\n[[arm]]\nname = \"default\"\n\
         [[workload]]\nkind = \"wakeup\"\n",
        bench.path("started").display()
    );
    let file = bench.file("stranger.toml", &text);
    let mut check = bench.command(&["target", "check", &file]);
    let output = check
        .stdin(Stdio::null())
        .output()
        .expect("schedlab starts");
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("by the command touch"), "{said}");
    assert!(!bench.path("started").exists(), "it was started unasked");
}
