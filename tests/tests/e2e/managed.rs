//! Arms for daemons that somebody else manages: a container of a real engine, and a unit of a real
//! systemd.

#![allow(clippy::unwrap_used)]

use crate::daemons::{CLIENT, LONG, expect_work_elsewhere, found, script};
use collect::sys::sched_getattr;
use model::readings;
use results::ResultSet;
use rustix::process::Pid;
use std::path::Path;
use std::process::Command;
use tests::{Bench, Container, Machine, expect_code, is_root, skipped, stdout, with_lock_of_runs};

/// The program of the daemon.
const NAME: &str = "lab-daemon";

/// An arm for the daemon beside one that leaves it alone.
const ARMS: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "calm"
to = TO
policy = { nice = 10 }
weight = 50
[[workload]]
name = "client"
kind = "command"
command = ["sh", "-c", "CLIENT"]
[stop]
min-blocks = 1
max-blocks = 1
"#;

/// The experiment of a daemon that works in this directory.
fn experiment(to: &str, place: &Path) -> String {
    let client = CLIENT.replace("/PLACE", &place.display().to_string());
    ARMS.replace("TO", to).replace("CLIENT", &client)
}

/// The arm was in force in the daemon, and only there.
fn look_at(results: &ResultSet) {
    assert_eq!(results.trials.len(), 2);
    assert_eq!(found(results, "calm", "nice"), ["10"]);
    assert_eq!(found(results, "calm", readings::WEIGHT), ["50"]);
    assert_eq!(found(results, "default", "nice"), [""; 0]);
    expect_work_elsewhere(results, NAME);
}

/// A container whose shell works for whoever asks it. Its pipes are in this bench.
fn start_daemon(bench: &Bench) -> Container {
    for pipe in ["requests", "answers"] {
        let made = Command::new("mkfifo").arg(bench.path(pipe)).status();
        assert!(made.unwrap().success());
    }
    tests::write_program(&bench.path(NAME), script(LONG));
    let volume = format!("--volume={}:/lab", bench.dir.path().display());
    Container::start(
        bench,
        &[&volume, "--workdir=/lab"],
        &[&format!("/lab/{NAME}")],
    )
}

/// Nice value of its first process, and the files of weights of its cgroup.
fn state(container: &Container) -> (i32, Vec<String>) {
    let pid: i32 = container.inspect("{{.State.Pid}}").parse().unwrap();
    let nice = sched_getattr(Pid::from_raw(pid).unwrap().as_raw_nonzero().get())
        .unwrap()
        .nice;
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let groups = groups.lines().map(|line| line.splitn(3, ':').nth(2));
    let group = groups.flatten().find(|group| group.contains(&container.id));
    let group = group.unwrap().trim_start_matches('/').to_owned();
    let files = ["cpu.weight", "cpu/cpu.shares"].map(|file| match file.split_once('/') {
        None => format!("/sys/fs/cgroup/{group}/{file}"),
        Some((tree, file)) => format!("/sys/fs/cgroup/{tree}/{group}/{file}"),
    });
    let texts = files.iter().filter_map(|f| std::fs::read_to_string(f).ok());
    (nice, texts.collect())
}

#[test]
fn a_container_has_what_the_arm_says_by_its_name_and_by_its_id() {
    if !is_root() {
        return skipped("changing the processes of others needs root");
    }
    if !Container::is_possible_or_skip() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let container = start_daemon(&bench);
    let before = state(&container);
    for (out, called) in [
        ("by-name", &*container.name),
        ("by-id", &container.id[..12]),
    ] {
        let to = format!("{{ container = \"{called}\" }}");
        let file = bench.file("container.toml", &experiment(&to, bench.dir.path()));
        expect_code(&bench.run(&["run", &file, "-o", out, "--wait"]), 0);
        look_at(&ResultSet::read(&bench.path(out)).unwrap());
        assert_eq!(state(&container), before);
    }
}

#[test]
#[ignore = "a boot under emulation; make test-long runs it"]
fn a_unit_that_systemd_started_has_what_the_arm_says_over_ssh() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let bench = machine.bench();
    let daemon = bench.file(NAME, &script(LONG));
    machine.wait("mkdir -p /srv/lab && cd /srv/lab && mkfifo requests answers || true");
    machine.copy(daemon.as_ref(), &format!("/srv/lab/{NAME}"));
    machine.wait(&format!(
        "systemctl is-active lab || systemd-run --unit=lab --property=WorkingDirectory=/srv/lab \
         --property=CPUWeight=200 --nice=2 /srv/lab/{NAME}"
    ));
    let state = || {
        machine.wait(
            "ps -o ni= $(systemctl show --value --property=MainPID lab); \
             cat /sys/fs/cgroup/system.slice/lab.service/cpu.weight",
        )
    };
    let before = state();
    assert_eq!(before.split_whitespace().collect::<Vec<_>>(), ["2", "200"]);
    let text = machine.target() + &experiment("{ unit = \"lab\" }", "/srv/lab".as_ref());
    let file = bench.file("unit.toml", &text);
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 0);
    look_at(&ResultSet::read(&bench.path("out")).unwrap());
    assert_eq!(state(), before);
    let absent = text.replace("\"lab\" }", "\"labb\" }");
    let output = bench.run(&["check", &bench.file("absent.toml", &absent), "--yes"]);
    expect_code(&output, 3);
    let said = tests::stderr(&output) + &stdout(&output);
    assert!(said.contains("unit labb has no cgroup"), "{said}");
}
