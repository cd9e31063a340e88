//! A service that runs already, measured and changed while it runs, and left as it was.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use tests::{Bench, alone, expect_code, skipped, stderr, stdout, with_lock_of_runs};

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

/// The service under an arm that keeps it to one CPU, which the service sees, with these rails.
fn confining(service: &Service, rails: &str) -> String {
    let port = service.port;
    format!(
        "name = \"confined\"\nstop = {{ min-blocks = 2, max-blocks = 2 }}\n\
         [[arm]]\nname = \"free\"\n\
         [[arm]]\nname = \"kept\"\ncpus = \"0\"\n\
         [[workload]]\nkind = \"attach\"\nto = {{ pid = {} }}\nin-place = \"always\"\n\
         turn = \"3s\"\nwashout = \"200ms\"\nduration = \"6s\"\nwarmup = \"100ms\"\n\
         stop-if = {rails}\n\
         [[workload.metric]]\nname = \"confined\"\nbetter = \"lower\"\nscale = \"difference\"\n\
         prometheus = \"http://127.0.0.1:{port}/metrics\"\nquery = \"confined\"\n\
         [[workload.metric]]\nname = \"worked\"\nbetter = \"higher\"\n\
         prometheus = \"http://127.0.0.1:{port}/metrics\"\nquery = \"work_total\"\n",
        service.pid
    )
}

/// The rail in the first trial of a run.
fn rail_of(bench: &Bench) -> model::RailHit {
    let results = results::ResultSet::read(&bench.path("out")).unwrap();
    let trial = &results.trials[0].trial;
    trial.result.rail.clone().unwrap()
}

/// One run in which the arm hits a rail: it is back as it was, and the report says so.
fn expect_rail(service: &Service) {
    let bench = Bench::default();
    let before = service.allowed_cpus();
    let text = confining(service, "[\"worked < 0\", \"confined > 0 for 500ms\"]");
    let file = bench.file("rails.toml", &text);
    let output = bench.run(&["run", &file, "-o", "out", "-q", "--wait"]);
    expect_code(&output, 6);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    let words = "The rail `confined > 0 for 500ms` was hit";
    assert!(said.contains(words), "{said}");
    let hit = rail_of(&bench);
    assert_eq!(hit.arm, "kept");
    assert!(hit.taken_back_ns < 1_000_000_000, "{hit:?}");
    assert_eq!(service.allowed_cpus()[0], before[0]);
    let report = stdout(&bench.run(&["report", "out"]));
    assert!(report.contains("while kept was in force"), "{report}");
    expect_code(&bench.run(&["verify", "out"]), 0);
    bench.expect_nothing_left();
}

/// Can a service of somebody else be changed here?
fn can_change_or_skip() -> bool {
    if !tests::is_root() {
        skipped("a process of somebody else is changed by root");
    }
    tests::is_root() && tests::python_or_skip()
}

#[test]
fn a_rail_that_an_arm_hits_takes_it_back_within_a_second_and_ends_the_run() {
    if can_change_or_skip() {
        let _turn = alone();
        expect_rail(&Service::start());
    }
}

#[test]
#[ignore = "a hundred runs; make test-long runs them"]
fn a_hundred_rails_of_a_hundred_take_their_arm_back_within_a_second() {
    if can_change_or_skip() {
        let _turn = alone();
        let service = Service::start();
        (0..100).for_each(|_| expect_rail(&service));
    }
}

#[test]
fn a_service_that_gives_no_answer_is_a_rail_that_was_hit() {
    if !can_change_or_skip() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let service = Service::start();
    let text = confining(&service, "[\"worked < 0\"]");
    let file = bench.file("rails.toml", &text);
    let mut command = bench.command(&["run", &file, "-o", "out", "-q", "--wait"]);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    let signal = |name: &str| {
        let pid = service.pid.to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.unwrap().success());
    };
    // The arm is in force when the service is kept to a CPU.
    let before = service.allowed_cpus();
    while service.allowed_cpus()[0] == before[0] {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    signal("-STOP");
    let output = run.wait_with_output().unwrap();
    signal("-CONT");
    expect_code(&output, 6);
    assert!(
        rail_of(&bench).seen.contains("nobody knows"),
        "{:?}",
        rail_of(&bench)
    );
    assert_eq!(service.allowed_cpus()[0], before[0]);
}

#[test]
fn a_rehearsal_shows_all_windows_and_applies_no_arm() {
    if !tests::python_or_skip() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let service = Service::start();
    let file = bench.file("rails.toml", &confining(&service, "[\"confined > 0\"]"));
    let output = bench.run(&["run", &file, "-o", "out", "--rehearse", "--wait"]);
    expect_code(&output, 0);
    let said = stderr(&output);
    assert!(said.contains("Nothing was changed."), "{said}");
    assert!(
        said.contains("confined: median 0 of 2 windows, 0 to 0"),
        "{said}"
    );
    assert!(
        stdout(&output).contains("kept (not applied)"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_rail_that_nobody_could_look_at_is_said_with_its_line() {
    if !tests::python_or_skip() {
        return;
    }
    let bench = Bench::default();
    let service = Service::start();
    for (rail, why, remedy) in [
        (
            "wroked > 5",
            "the service has no metric `wroked`",
            "did you mean `worked`?",
        ),
        (
            "worked > 250ms",
            "the bound is in ms, and `worked` is in 1/s",
            "write the bound in 1/s",
        ),
        ("worked = 5", "it compares nothing", "stop-if = "),
        ("worked > 5 for long", "is not a duration", "stop-if = "),
        ("worked > many", "is no number with a unit", "stop-if = "),
    ] {
        let text = confining(&service, &format!("[\"confined > 0\", \"{rail}\"]"));
        let output = bench.run(&["plan", &bench.file("wrong.toml", &text)]);
        expect_code(&output, 2);
        let said = stderr(&output);
        for words in [why, remedy, "wrong.toml:16:"] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
