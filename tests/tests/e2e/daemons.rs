//! Arms for a daemon: processes that run before the run, do its work and run on after it. They get
//! what the arm has for them, are read, and have afterwards what they had before, whatever ends
//! schedlab.

#![allow(clippy::unwrap_used)]

use collect::sys::sched_getattr;
use collect::tasks;
use model::{Class, Role, readings};
use results::ResultSet;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use tests::{
    Bench, alone, beside_others, expect_code, is_root, skipped, stderr, stdout, with_lock_of_runs,
};

/// The nice value that the daemon has of itself.
const OWN_NICE: i32 = 2;
const SCRIPT: &str = "#!/bin/sh
exec 3<> requests 4<> answers
while read -r word <&3; do
  i=0
  while [ $i -lt LOOPS ]; do i=$((i+1)); done
  echo done >&4
done
";
/// Work of some tenths of a second.
pub const LONG: u32 = 200_000;
/// Work of some milliseconds.
const SHORT: u32 = 2_000;
/// Asks the daemon to work, and waits for that.
pub const CLIENT: &str = "echo x > /PLACE/requests; read -r word < /PLACE/answers";
const ROOT: &str = "/";

/// The text of a daemon whose shell counts so far for each who asks.
pub fn script(loops: u32) -> String {
    SCRIPT.replace("LOOPS", &loops.to_string())
}

/// A shell under a name of its own that works for whoever asks it.
struct Daemon {
    child: Child,
    name: String,
}

impl Daemon {
    /// `loops` say how long it works for each who asks.
    fn start(bench: &Bench, loops: u32) -> Self {
        for pipe in ["requests", "answers"] {
            let made = Command::new("mkfifo").arg(bench.path(pipe)).status();
            assert!(made.unwrap().success());
        }
        let name = format!("lab-{}", std::process::id());
        tests::write_program(&bench.path(&name), script(loops));
        let mut command = Command::new("nice");
        command.args(["-n", &OWN_NICE.to_string(), &format!("./{name}")]);
        let child = command.current_dir(bench.dir.path()).spawn().unwrap();
        let daemon = Daemon { child, name };
        wait_until(|| daemon.command() == daemon.name);
        daemon
    }

    fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    fn command(&self) -> String {
        tasks::read_stat(Path::new(ROOT), self.pid())
            .unwrap()
            .command
    }

    fn nice(&self) -> i32 {
        sched_getattr(self.pid()).unwrap().nice
    }

    /// Class, nice value and number of CPUs.
    fn state(&self) -> (Option<Class>, i32, u32) {
        let attr = sched_getattr(self.pid()).unwrap();
        let cpus: CpuSet = sched_getaffinity(Pid::from_raw(self.pid())).unwrap();
        (Class::from_number(attr.policy), attr.nice, cpus.count())
    }

    fn text(&self, bench: &Bench, text: &str) -> String {
        text.replace("CLIENT", CLIENT)
            .replace("/PLACE", &bench.dir.path().display().to_string())
            .replace("NAME", &self.name)
            .replace("PID", &self.pid().to_string())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn first_cpu() -> usize {
    let cpus: CpuSet = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).find(|cpu| cpus.is_set(*cpu)).unwrap()
}

#[track_caller]
fn wait_until(is_so: impl Fn() -> bool) {
    // Another run on this machine may have to end first.
    let limit = Instant::now() + Duration::from_secs(600);
    while !is_so() {
        assert!(Instant::now() < limit, "it does not come to that");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn can_change() -> bool {
    if !is_root() {
        skipped("changing the processes of others needs root");
    }
    is_root()
}

/// Values of a fact about the daemon in the trials of an arm.
pub fn found(results: &ResultSet, arm: &str, what: &str) -> Vec<String> {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let of_arm = trials.filter(|trial| trial.arm == arm && trial.is_ok());
    let facts = of_arm.flat_map(|trial| trial.result.evidence.all_facts());
    let about = facts.filter(|fact| fact.subject() == (what, Some(&Role::Daemon)));
    let found: BTreeSet<String> = about.map(|fact| fact.found.clone()).collect();
    found.into_iter().collect()
}

/// The work of a command is that of the daemon with this name, as the warnings of exactly those trials say
/// whose arm is for the load.
#[track_caller]
pub fn expect_work_elsewhere(results: &ResultSet, name: &str) {
    for stored in &results.trials {
        let warnings = &stored.trial.result.warnings;
        let names_it = warnings
            .iter()
            .any(|w| w.what.contains("than the command itself") && w.what.contains(name));
        let is_for_load = stored.trial.arm == "default";
        assert_eq!(names_it, is_for_load, "{warnings:?}");
    }
}

const WHOLE: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "nice"
to = { name = "NAME" }
policy = { nice = 19 }
[[arm]]
name = "batch"
to = { pid = PID }
policy = { class = "batch" }
cpus = "0"
[[workload]]
name = "client"
kind = "command"
command = ["sh", "-c", "CLIENT"]
[stop]
min-blocks = 1
max-blocks = 1
"#;

#[test]
fn a_daemon_has_what_the_arm_says_in_its_trials_and_its_own_afterwards() {
    if !can_change() {
        return;
    }
    // Which process used most of the CPUs is said, and must be the daemon.
    let _turn = alone();
    let bench = Bench::default();
    let daemon = Daemon::start(&bench, LONG);
    let before = daemon.state();
    let first = first_cpu().to_string();
    let text = WHOLE.replace("cpus = \"0\"", &format!("cpus = \"{first}\""));
    let file = bench.file("daemon.toml", &daemon.text(&bench, &text));
    expect_code(&bench.run(&["run", &file, "-o", "out", "--wait"]), 0);
    assert_eq!(daemon.state(), before);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let of = |arm, what| found(&results, arm, what);
    assert_eq!(of("nice", "nice"), ["19"]);
    assert_eq!(of("nice", readings::PROCESSES), [&*daemon.name]);
    assert_eq!(of("batch", "policy"), ["batch"]);
    assert_eq!(of("batch", "nice"), [OWN_NICE.to_string()]);
    assert_eq!(of("batch", readings::CPUS), [first]);
    // An arm that is for the load looks at no daemon.
    assert_eq!(of("default", "nice"), [""; 0]);
    expect_work_elsewhere(&results, &daemon.name);
    expect_code(&bench.run(&["verify", "out"]), 0);
    let said = stdout(&bench.run(&["report", "out"]));
    assert!(
        said.contains(&format!("nice=19 (name {})", daemon.name)),
        "{said}"
    );
}

#[test]
fn arms_for_a_daemon_take_turns_beside_one_process_with_an_arm_that_leaves_it_alone() {
    if !can_change() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let daemon = Daemon::start(&bench, SHORT);
    let text = r#"
arm = [{ name = "default" }, { name = "nice", to = { name = "NAME" }, policy = { nice = 10 } }]
stop = { min-blocks = 1, max-blocks = 1 }
[[workload]]
name = "count"
kind = "command"
command = ["sh", "-c", "i=0; while :; do CLIENT; i=$((i+1)); echo done $i; done"]
in-place = "always"
turn = "1s"
washout = "300ms"
duration = "4s"
[[workload.metric]]
name = "per_sec"
regex = 'done (?<v>\d+)'
better = "higher"
pick = "rate"
"#;
    let text = daemon.text(&bench, text);
    let file = bench.file("turns.toml", &text);
    expect_code(&bench.run(&["run", &file, "-o", "out", "--wait"]), 0);
    assert_eq!(daemon.nice(), OWN_NICE);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(found(&results, "nice", "nice"), ["10"]);
    let counted = results.trials.iter().filter(|stored| stored.trial.is_ok());
    let windows = counted.filter_map(|stored| stored.trial.result.windows.as_ref());
    let windows: Vec<usize> = windows
        .map(|windows| windows.counted_pairs().len())
        .collect();
    assert!(
        windows.len() >= 2 && windows.iter().all(|n| *n > 0),
        "{windows:?}"
    );
    let two = text.replace(
        "name = \"default\" }",
        "name = \"default\", policy = { nice = 1 } }",
    );
    let output = bench.run(&["plan", &bench.file("two.toml", &two)]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("must all be for one role"),
        "{}",
        stderr(&output)
    );
}

/// A run under way, which ends with the test.
struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run under way that has changed the daemon.
fn run_that_waits(bench: &Bench, daemon: &Daemon) -> Run {
    let text = WHOLE.replace("CLIENT", "sleep 600");
    let without =
        text.find("[[arm]]\nname = \"batch\"").unwrap()..text.find("[[workload]]").unwrap();
    let text = text.replace(&text[without], "");
    let text = text.replacen(
        "name = \"default\"",
        "name = \"default\"\nto = { pid = PID }\npolicy = { nice = 18 }",
        1,
    );
    let file = bench.file("waits.toml", &daemon.text(bench, &text));
    let run = Run(bench
        .command(&["run", &file, "-o", "out", "-q", "--wait"])
        .spawn()
        .unwrap());
    wait_until(|| daemon.nice() >= 18);
    run
}

/// The processes of schedlab that have this state directory.
fn of_bench(bench: &Bench) -> Vec<Pid> {
    let state = format!("SCHEDLAB_STATE_DIR={}", bench.path("state").display());
    let found = tasks::with_environment(Path::new(ROOT), |entry| entry == state.as_bytes());
    found.into_iter().filter_map(Pid::from_raw).collect()
}

#[test]
fn a_daemon_has_its_own_again_after_the_death_of_schedlab_and_of_all_that_guards_it() {
    if !can_change() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let daemon = Daemon::start(&bench, LONG);
    let before = daemon.state();
    drop(run_that_waits(&bench, &daemon));
    wait_until(|| daemon.state() == before);
    wait_until(|| of_bench(&bench).is_empty());
    std::fs::remove_dir_all(bench.path("out")).unwrap();

    let run = run_that_waits(&bench, &daemon);
    let all = of_bench(&bench);
    assert!(all.len() >= 3, "runner, agent and guard: {all:?}");
    for signal in [Signal::STOP, Signal::KILL] {
        for pid in &all {
            let _ = kill_process(*pid, signal);
        }
    }
    drop(run);
    assert!(daemon.nice() >= 18, "nobody is there to put it back");
    let restored = bench.run(&["restore"]);
    expect_code(&restored, 0);
    assert!(
        stderr(&restored).contains("policy and CPUs of 1 thread of"),
        "{}",
        stderr(&restored)
    );
    assert_eq!(daemon.state(), before);
    let again = stdout(&bench.run(&["restore"]));
    assert!(again.contains("nothing was left in force"), "{again}");
    bench.expect_nothing_left();
}

#[test]
fn a_daemon_that_is_not_there_or_nobodys_to_change_is_refused_before_anything_runs() {
    if !can_change() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let daemon = Daemon::start(&bench, LONG);
    for (to, said, remedy) in [
        (
            "{ unit = \"of-nobody.service\" }",
            "has no cgroup on this machine",
            "systemctl",
        ),
        (
            "{ cgroup = \"/of/nobody\" }",
            "has no cgroup on this machine",
            "/proc/PID/cgroup",
        ),
        ("{ name = \"of-nobody\" }", "is called of-nobody", "ps -e"),
        ("{ pid = 4194300 }", "it has ended", "by its name"),
        ("{ container = \"of-nobody\" }", "container of-nobody", "ID"),
        (
            &*format!("{{ pid = {} }}", std::process::id()),
            "schedlab itself runs under",
            "unit",
        ),
    ] {
        let text = WHOLE.replace("{ name = \"NAME\" }", to);
        let file = bench.file("wrong.toml", &daemon.text(&bench, &text));
        let output = bench.run(&["check", &file]);
        expect_code(&output, 3);
        let errors = stderr(&output) + &stdout(&output);
        assert!(
            errors.contains(said) && errors.contains(remedy),
            "{to}: {errors}"
        );
    }
    assert_eq!(daemon.nice(), OWN_NICE);
}

#[test]
fn what_a_daemon_cannot_be_given_is_refused_where_it_is_read() {
    let bench = Bench::default();
    for (to, said) in [
        ("{ pid = 1 }", "process 1 starts and ends all others"),
        (
            "{ name = \"NAME\" }\nweight = 50",
            "a cgroup weight is that of a cgroup",
        ),
        (
            "{ name = \"NAME\" }\nenv = { A = \"1\" }",
            "cannot be given env",
        ),
        ("{ name = \"NAME\", pid = 7 }", "there are two keys"),
        ("{ cgroup = \"/a/../b\" }", "is no path of a cgroup"),
        ("\"daemon\"", "daemon"),
    ] {
        let text = WHOLE.replace("{ name = \"NAME\" }", to);
        let file = bench.file("wrong.toml", &text.replace("PID", "7"));
        let output = bench.run(&["plan", &file]);
        expect_code(&output, 2);
        assert!(stderr(&output).contains(said), "{to}: {}", stderr(&output));
    }
    let guest = [
        "plan",
        "--vm",
        "debian:sid",
        "-w",
        "wakeup",
        "-a",
        "name=mysqld:nice=5",
    ];
    let output = bench.run(&guest);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("no daemon runs there"),
        "{}",
        stderr(&output)
    );
}

/// A cgroup with a weight and a quota, which is removed with its daemon.
struct Group {
    path: PathBuf,
    /// The file that hands the controller down in version 2, where the test wrote it.
    handed: Option<PathBuf>,
}

impl Group {
    /// `None` where none can be made.
    fn make(name: &str) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let is_v2 = root.join("cgroup.controllers").exists();
        let control = root.join("cgroup.subtree_control");
        let has_cpu = || {
            std::fs::read_to_string(&control).is_ok_and(|t| t.split(' ').any(|c| c.trim() == "cpu"))
        };
        let handed = (is_v2 && !has_cpu()).then(|| control.clone());
        if let Some(control) = &handed {
            std::fs::write(control, "+cpu").ok()?;
        }
        let path = if is_v2 {
            root.join(name)
        } else {
            root.join("cpu").join(name)
        };
        let group = Group { path, handed };
        std::fs::create_dir(&group.path).ok()?;
        let has_quota =
            group.path.join("cpu.max").exists() || group.path.join("cpu.cfs_quota_us").exists();
        has_quota.then_some(group)
    }

    /// All that the files of weight and quota say.
    fn state(&self) -> Vec<String> {
        let files = [
            "cpu.weight",
            "cpu.max",
            "cpu.shares",
            "cpu.cfs_quota_us",
            "cpu.cfs_period_us",
        ];
        let texts = files.map(|file| std::fs::read_to_string(self.path.join(file)));
        texts.into_iter().flatten().collect()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its processes are gone a moment after their end.
        let limit = Instant::now() + Duration::from_secs(5);
        while std::fs::remove_dir(&self.path).is_err() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Some(control) = &self.handed {
            let _ = std::fs::write(control, "-cpu");
        }
    }
}

#[test]
fn the_cgroup_of_a_daemon_has_the_weight_and_the_quota_of_the_arm_and_its_own_afterwards() {
    if !can_change() {
        return;
    }
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let Some(group) = Group::make(&format!("lab-{}", std::process::id())) else {
        return skipped("no cgroup with a weight and a quota can be made here");
    };
    let daemon = Daemon::start(&bench, LONG);
    let pid = daemon.pid().to_string();
    std::fs::write(group.path.join("cgroup.procs"), pid).unwrap();
    let before = group.state();
    let text = WHOLE.replace(
        "{ name = \"NAME\" }",
        "{ cgroup = \"/NAME\" }\nweight = 50\nquota = \"80%\"",
    );
    let file = bench.file("group.toml", &daemon.text(&bench, &text));
    expect_code(&bench.run(&["run", &file, "-o", "out", "--wait"]), 0);
    assert_eq!(group.state(), before);
    assert_eq!(daemon.nice(), OWN_NICE);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    assert_eq!(found(&results, "nice", readings::WEIGHT), ["50"]);
    assert_eq!(
        found(&results, "nice", readings::QUOTA),
        ["80000 of 100000 us"]
    );
    assert_eq!(found(&results, "nice", "nice"), ["19"]);
    drop(daemon);
}
