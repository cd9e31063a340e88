//! Services in containers of the real Podman, from an image that is made on the spot.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use model::{Role, readings};
use results::ResultSet;
use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tests::{
    Bench, Image, alone, beside_others, expect_code, is_root, own_containers, skipped, stderr,
    stdout, with_lock_of_runs, write_program,
};

/// Limits are given since Podman raises them otherwise, which needs CAP_SYS_RESOURCE.
const WEB: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "heavy"
weight = 300
policy = { nice = 5 }
env = { GREETING = "hello" }

[[workload]]
kind = "http"
url = "/index.html"
loads = ["200/s"]
connections = 2
warmup = "50ms"
duration = "300ms"
metrics = ["request_p50"]

[[workload.service]]
name = "web"
image = "IMAGE"
options = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
command = ["sh", "-c", "echo $GREETING from $PLACE; exec httpd -f -p 127.0.0.1:{port} -h {folder}"]
env = { PLACE = "{container}" }
ports = ["http"]
files = { "index.html" = "ready" }
ready = { path = "/index.html" }
stop-limit = "1s"
ready-limit = "20s"

[stop]
min-blocks = 1
max-blocks = 1
"#;

/// An image for this bench, or `None` after it was said why there is none.
fn image(bench: &Bench) -> Option<Image> {
    if !is_root() {
        skipped("podman is used as root");
        return None;
    }
    let is_possible = Image::is_possible_or_skip();
    is_possible.then(|| Image::make(bench))
}

fn found(results: &ResultSet, arm: &str, what: &str) -> Vec<String> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let of_arm = trials.filter(|trial| trial.arm == arm && trial.is_ok());
    let facts = of_arm.flat_map(|trial| trial.result.evidence.all_facts());
    let about = facts.filter(|f| f.what == what && f.role == Some(Role::Server));
    let found: BTreeSet<String> = about.map(|fact| fact.found.clone()).collect();
    found.into_iter().collect()
}

#[test]
fn an_arm_reaches_the_processes_and_the_cgroup_of_a_service_in_a_container() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let Some(image) = image(&bench) else { return };
    let file = bench.file("web.toml", &WEB.replace("IMAGE", &image.name));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let of = |arm, what| found(&results, arm, what);
    assert_eq!(of("heavy", readings::WEIGHT), ["300"]);
    assert_eq!(of("heavy", "nice"), ["5"]);
    assert_eq!(of("default", "nice"), ["0"]);
    let log = |arm: &str| {
        let mut trials = results.trials.iter();
        let of_arm = trials.find(|stored| stored.trial.arm == arm).unwrap();
        let path = of_arm.dir.join("service-web.log");
        std::fs::read_to_string(path).unwrap()
    };
    assert!(
        log("heavy").starts_with("hello from schedlab-"),
        "{}",
        log("heavy")
    );
    assert!(
        log("default").starts_with("from schedlab-"),
        "{}",
        log("default")
    );
    assert_eq!(own_containers(), [""; 0], "they are removed");
}

#[test]
fn an_image_that_is_not_there_is_told_before_anything_starts() {
    // Beside another run `check` looks at less.
    let _turn = alone();
    let bench = Bench::default();
    if !is_root() {
        return skipped("podman is used as root");
    }
    // Whatever asks Podman for images leaves a mount of its store, which keeps a chroot from being removed.
    if !Image::is_possible_or_skip() {
        return;
    }
    let missing = "localhost/no-such-image:1";
    let file = bench.file("web.toml", &WEB.replace("IMAGE", missing));
    for command in [vec!["check", &file], vec!["run", &file, "-o", "out"]] {
        let output = bench.run(&command);
        assert!(!output.status.success(), "{output:?}");
        let said = stdout(&output) + &stderr(&output);
        assert!(
            said.contains("podman has no image localhost/no-such-image:1"),
            "{said}"
        );
        assert!(
            said.contains("podman pull localhost/no-such-image:1"),
            "{said}"
        );
    }
    assert!(!bench.path("out/trials").exists());
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < limit, "never came about: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A run whose service runs for long.
fn start_long(bench: &Bench, image: &Image) -> Child {
    let long = WEB.replace("IMAGE", &image.name);
    let long = long.replace("duration = \"300ms\"", "duration = \"10m\"");
    let file = bench.file("web.toml", &long);
    let mut command = bench.command(&["run", &file, "-o", "out"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// The process and all below it, with SIGKILL, the first one first.
fn kill_tree(first: u32) {
    let all = collect::tasks::process_tree(std::path::Path::new("/"), first.cast_signed());
    let pids: Vec<String> = all.iter().map(i32::to_string).collect();
    let killed = std::process::Command::new("kill")
        .arg("-9")
        .args(pids)
        .output();
    killed.unwrap();
}

#[test]
fn a_container_is_removed_after_kills_by_the_guard_or_by_a_restore() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let Some(image) = image(&bench) else { return };
    let mut run = start_long(&bench, &image);
    eventually("a container", || !own_containers().is_empty());
    run.kill().unwrap();
    run.wait().unwrap();
    eventually("no container", || own_containers().is_empty());
    // It waits for the guard.
    expect_code(&bench.run(&["restore"]), 0);
    bench.expect_nothing_left();

    // The guard, too: nobody is left but who restores.
    std::fs::remove_dir_all(bench.path("out")).unwrap();
    let mut run = start_long(&bench, &image);
    eventually("a container", || !own_containers().is_empty());
    kill_tree(run.id());
    run.wait().unwrap();
    let output = bench.run(&["restore"]);
    expect_code(&output, 0);
    assert_eq!(own_containers(), [""; 0], "{}", stdout(&output));
}

/// It takes the words of docker(1) that schedlab says, and starts busybox in place of a container.
const DOCKER: &str = r#"#!/bin/sh
echo "$@" >> PLACE/said
case "$1 $2" in
  "image inspect") echo sha256:1 ;;
  "container inspect") cat PLACE/process 2>/dev/null || { echo "Error: No such container: $5" >&2; exit 1; } ;;
  "create "*)
    for word in "$@"; do
      case $word in
        --publish=127.0.0.1:*:80) port=${word#--publish=127.0.0.1:}; echo "${port%:80}" > PLACE/port ;;
        --volume=*) echo "${word##*:}" > PLACE/folder ;;
      esac
    done
    echo an-id ;;
  "start "*)
    setsid busybox httpd -f -p "127.0.0.1:$(cat PLACE/port)" -h "$(cat PLACE/folder)" &
    echo "an-id $!" > PLACE/process
    trap 'kill $(cut -d " " -f 2 PLACE/process); exit' TERM
    wait ;;
  "rm "*)
    test -e PLACE/process || { echo "Error: No such container: $3" >&2; exit 1; }
    rm PLACE/process; echo "$3" ;;
esac
"#;

#[test]
fn docker_is_told_the_published_port_and_its_threads_are_given_the_arm_once_they_run() {
    let _turn = beside_others();
    let bench = Bench::default();
    let place = bench.dir.path().display().to_string();
    std::fs::create_dir(bench.path("bin")).unwrap();
    write_program(&bench.path("bin/docker"), DOCKER.replace("PLACE", &place));
    let heavy = "weight = 300\npolicy = { nice = 5 }\nenv = { GREETING = \"hello\" }";
    let text = WEB.replace("\"IMAGE\"", "\"shop:1\"\nengine = \"docker\"");
    let text = text.replace(heavy, "policy = { class = \"batch\" }");
    let text = text.replace(
        "ports = [\"http\"]",
        "ports = [\"http\"]\ncontainer-ports = { http = 80 }",
    );
    let file = bench.file("web.toml", &text);
    let mut command = bench.command(&["run", &file, "-o", "out"]);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{place}/bin:{path}"));
    expect_code(&command.output().unwrap(), 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(found(&results, "heavy", "policy"), ["batch"]);
    assert_eq!(found(&results, "default", "policy"), ["other"]);
    let said = std::fs::read_to_string(bench.path("said")).unwrap();
    let created: Vec<&str> = said.lines().filter(|l| l.starts_with("create ")).collect();
    assert_eq!(created.len(), 2, "{said}");
    for line in created {
        assert!(line.contains("--pull=never --name=schedlab-"), "{line}");
        assert!(!line.contains("--network"), "{line}");
        assert!(line.contains(" shop:1 sh -c "), "{line}");
    }
    assert_eq!(
        said.lines()
            .filter(|l| l.starts_with("rm --force schedlab-"))
            .count(),
        2
    );
}
