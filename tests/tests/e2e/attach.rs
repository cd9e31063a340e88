//! A service that runs already, measured and changed while it runs, and left as it was.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use tests::{Bench, alone, expect_code, skipped, stderr, stdout};

/// A service of somebody else. It is killed when this is dropped.
struct Service {
    shell: Child,
    port: u16,
    pid: i32,
}

impl Service {
    /// Started by a shell that ends, so that nobody finds it below this process.
    fn start() -> Service {
        let script = format!("{}/fixtures/counter.py", env!("CARGO_MANIFEST_DIR"));
        let mut shell = Command::new("setsid")
            .args(["python3", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = shell.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        Service {
            port: line.trim().parse().unwrap(),
            pid: shell.id().cast_signed(),
            shell,
        }
    }

    fn allowed_cpus(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid)).unwrap();
        let cpus = tasks.flatten().map(|task| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap();
            let mut lines = status.lines();
            let line = lines.find(|line| line.starts_with("Cpus_allowed_list:"));
            line.unwrap().to_owned()
        });
        cpus.collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Programs that leave little of the first CPU to others.
struct Others(Vec<Child>);

impl Others {
    fn start() -> Others {
        let burn = || {
            Command::new("taskset")
                .args(["-c", "0", "sh", "-c", "while :; do :; done"])
                .spawn()
        };
        Others((0..3).map(|_| burn().unwrap()).collect())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for other in &mut self.0 {
            let _ = other.kill();
            let _ = other.wait();
        }
    }
}

fn experiment(port: u16) -> String {
    format!(
        "name = \"attached\"\nstop = {{ min-blocks = 1, max-blocks = 2 }}\n\
         [[arm]]\nname = \"apart\"\ncpus = \"1\"\n\
         [[arm]]\nname = \"among others\"\ncpus = \"0\"\n\
         [[workload]]\nkind = \"attach\"\nto = {{ port = {port} }}\nin-place = \"always\"\n\
         turn = \"400ms\"\nwashout = \"200ms\"\nduration = \"3s\"\nwarmup = \"100ms\"\n\
         [[workload.metric]]\nname = \"worked\"\nbetter = \"higher\"\n\
         prometheus = \"http://127.0.0.1:{port}/metrics\"\n\
         query = 'work_total{{route=\"/sums/{{id}}\"}}'\n"
    )
}

#[test]
fn a_service_that_runs_is_moved_in_turns_by_its_own_figures_and_left_as_it_was() {
    if !tests::is_root() {
        return skipped("a process of somebody else is changed by root");
    }
    if !tests::python_or_skip() {
        return;
    }
    let _turn = alone();
    let bench = Bench::default();
    let service = Service::start();
    let before = service.allowed_cpus();
    let _others = Others::start();
    // Found by its ID, which takes less of the washout than a look at all open files.
    let text = experiment(service.port);
    let by_id = text.replacen(
        &format!("port = {}", service.port),
        &format!("pid = {}", service.pid),
        1,
    );
    let file = bench.file("attached.toml", &by_id);
    expect_code(&bench.run(&["run", &file, "-o", "out", "-q"]), 0);
    let output = bench.run(&["report", "out", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let comparisons = report["comparisons"].as_array().unwrap();
    let worked = comparisons
        .iter()
        .find(|c| c["metric"] == "worked")
        .unwrap();
    assert_eq!(worked["verdict"], "worse", "{worked}");
    assert!(
        comparisons.iter().any(|c| c["metric"] == "wait_per_run"),
        "{report}"
    );
    expect_code(&bench.run(&["verify", "out"]), 0);
    let after = service.allowed_cpus();
    assert!(
        after.len() >= 2 && after.iter().all(|cpus| before.contains(cpus)),
        "{before:?}, then {after:?}"
    );
}

#[test]
fn a_service_that_is_not_there_and_an_address_without_figures_are_said_before_anything_runs() {
    if !tests::python_or_skip() {
        return;
    }
    let bench = Bench::default();
    let service = Service::start();
    let text = experiment(service.port);
    let checks = [
        (
            format!("port = {}", service.port),
            "name = \"of-nobody\"".to_owned(),
            "of-nobody",
        ),
        (
            "/metrics".to_owned(),
            "/metrics\"\nunit = \"1/s".to_owned(),
            "",
        ),
        (
            format!("http://127.0.0.1:{}", service.port),
            "https://localhost".to_owned(),
            "there is no https",
        ),
        (
            "work_total{".to_owned(),
            "rate(work_total{".to_owned(),
            "is no query",
        ),
    ];
    for (from, to, why) in checks {
        let changed = text.replacen(&from, &to, 1);
        assert_ne!(changed, text, "{from}");
        let file = bench.file("wrong.toml", &changed);
        let output = bench.run(&["check", &file]);
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert!(said.contains(why), "{why}: {said}");
        assert_eq!(
            output.status.success(),
            why.is_empty() && tests::is_root(),
            "{said}"
        );
    }
    drop(service);
    let file = bench.file("gone.toml", &text);
    let output = bench.run(&["check", &file]);
    assert!(!output.status.success(), "{}", stdout(&output));
}
