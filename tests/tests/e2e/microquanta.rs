//! Promises of scx_microquanta, measured in guests by its own test,
//! sched/scx_microquanta/tests/bounds, which `make test` builds.
//!
//! Shares and waits are judged strictly, in a guest with one CPU whose clock counts
//! instructions (QEMU's -icount): what the host does beside it takes no time there,
//! so the figures are the same on a busy machine. That mode is unfair between two
//! busy CPUs, so what needs two is measured in a guest in real time, less strictly.

#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use tests::{Bench, alone, expect_code, stdout};

/// Promises that are shown with one CPU, by parts of the names: those that every change is
/// tried with. The README of the scheduler says which are in no list, and why.
const MAIN: [&str; 2] = [
    "share is runtime over period",
    "no longer than period minus runtime",
];

/// The others that are shown with one CPU, which take longer.
const MORE: [&str; 13] = [
    "bad parameters are refused",
    "detaches cleanly",
    "tasks are chosen",
    "has its statistics",
    "does not wait for the others",
    "are not starved",
    "alone a task has the whole CPU",
    "take turns",
    "credit of an idle time",
    "scheduled by weight",
    "waits for long",
    "parameters change while it runs",
    "survives storms",
];

const QEMU: &str = "qemu-system-x86_64";

/// The newest build of the test.
fn bounds() -> Option<PathBuf> {
    let sched = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../sched/target");
    let builds = std::fs::read_dir(sched).ok()?.flatten();
    let deps = builds.filter_map(|dir| std::fs::read_dir(dir.path().join("debug/deps")).ok());
    let files = deps.flat_map(|dir| dir.flatten().map(|entry| entry.path()));
    let is_test = |path: &PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str());
        path.extension().is_none() && name.is_some_and(|n| n.starts_with("bounds-"))
    };
    let built = |path: &PathBuf| path.metadata().and_then(|m| m.modified()).ok();
    files.filter(is_test).max_by_key(built)?.canonicalize().ok()
}

/// A QEMU whose guests have a clock that counts instructions, 8 ns each, and that
/// skips the time in which they are idle. It needs TCG, also where KVM works.
fn counting_qemu(bench: &Bench, real: &Path) -> PathBuf {
    let script = format!(
        "#!/bin/sh\nfor arg; do\n  shift\n  case $arg in\n    kvm) arg=tcg,thread=single ;;\n    \
         host) arg=max,-smap,-erms ;;\n  esac\n  set -- \"$@\" \"$arg\"\ndone\n\
         exec {} \"$@\" -icount shift=3,sleep=off -rtc clock=vm\n",
        real.display()
    );
    let directory = bench.path("bin");
    std::fs::create_dir(&directory).expect("a directory");
    tests::write_program(&directory.join(QEMU), script);
    directory
}

/// A guest that ends with the test.
struct Guest<'a> {
    bench: &'a Bench,
    name: String,
}

impl<'a> Guest<'a> {
    /// Starts a guest that sees the program and what was built with it, with a directory before all
    /// others that programs are looked for in.
    fn start(bench: &'a Bench, program: &str, cpus: [&str; 2], first: Option<&Path>) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("bounds-{}-{number}", std::process::id());
        let path = std::env::var_os("PATH").unwrap_or_default();
        // The program is in `deps`, and starts the scheduler, which is in the directory above.
        let built = Path::new(program).ancestors().nth(2).expect("a build");
        let directories = first.map(Path::to_owned).into_iter();
        let directories = directories.chain(std::env::split_paths(&path));
        let output = bench
            .command(&["vm", "start", "--name", &name, "--memory", "1G"])
            .arg("--expose")
            .arg(built)
            .args(cpus)
            .env("PATH", std::env::join_paths(directories).expect("a path"))
            .output()
            .expect("schedlab starts");
        expect_code(&output, 0);
        Guest { bench, name }
    }

    #[expect(
        clippy::print_stdout,
        reason = "the harness shows it where the test fails"
    )]
    fn run(&self, command: &[&str]) -> Output {
        let mut args = vec!["vm", "exec", "--name", &self.name, "--"];
        args.extend(command);
        let output = self.bench.run(&args);
        println!("{}", stdout(&output));
        output
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        self.bench.run(&["vm", "stop", "--name", &self.name]);
    }
}

/// The test and QEMU, or why it cannot run.
fn needs() -> Result<(String, PathBuf), &'static str> {
    let qemu = tests::program(QEMU).ok_or("qemu-system-x86_64 is not installed")?;
    let bounds = bounds().ok_or("scx_microquanta is not built; `make test` builds it")?;
    Command::new(&qemu)
        .arg("--version")
        .output()
        .map_err(|_| "qemu-system-x86_64 does not start")?;
    Ok((bounds.display().to_string(), qemu))
}

#[test]
#[ignore = "it takes long: make test-long"]
fn shares_and_waits_are_within_their_bounds() {
    measure_strictly(&MAIN);
}

#[test]
#[ignore = "it takes long: make test-long"]
fn all_that_one_cpu_shows_is_within_its_bounds() {
    measure_strictly(&MORE);
}

/// All of these, in two guests at once: neither has a time that the other could spoil.
fn measure_strictly(promises: &[&str]) {
    let (bounds, qemu) = match needs() {
        Ok(found) => found,
        Err(why) => return tests::skipped(why),
    };
    let _turn = alone();
    let measure = |promises: &[&str]| {
        let bench = Bench::default();
        let counting = counting_qemu(&bench, &qemu);
        let guest = Guest::start(&bench, &bounds, ["--cpus", "1"], Some(&counting));
        let command = [&[bounds.as_str()], promises].concat();
        let output = guest.run(&command);
        expect_code(&output, 0);
        let is_measured = !stdout(&output).contains("skipped: this kernel");
        assert!(is_measured, "not measured");
    };
    let (one, two) = promises.split_at(promises.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| measure(one));
        measure(two);
    });
}

#[test]
#[ignore = "it takes long: make test-long"]
fn what_needs_two_cpus_is_within_its_bounds() {
    measure_in_real_time(
        ["--cpus", "2"],
        &[
            "weights hold",
            "the rest starves",
            "share what is left",
            "real-time task has",
            "share two CPUs evenly",
            "wakes on an idle CPU",
            "CPUs that go and come",
        ],
    );
}

#[test]
fn wakes_are_placed_by_the_topology() {
    measure_in_real_time(["--topology", "cores=2,threads=2"], &["idle core"]);
}

/// All of these, in a guest whose CPUs share those of the host.
fn measure_in_real_time(cpus: [&str; 2], promises: &[&str]) {
    let bounds = match needs() {
        Ok((bounds, _)) => bounds,
        Err(why) => return tests::skipped(why),
    };
    let _turn = alone();
    let bench = Bench::default();
    let guest = Guest::start(&bench, &bounds, cpus, None);
    let mut command = vec!["env", "MICROQUANTA_SHARED_CPUS=1", &bounds];
    command.extend(promises);
    let output = guest.run(&command);
    expect_code(&output, 0);
    assert!(!stdout(&output).contains("skipped"), "not measured");
}
