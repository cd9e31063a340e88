//! One run at a time on one kernel, and nobody who can keep root from running or from
//! undoing.

#![allow(clippy::disallowed_methods)]

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tests::{Bench, alone, expect_code, stderr, stdout};

/// A user without rights.
const NOBODY: u32 = 65534;

fn root_or_skip() -> bool {
    if !tests::is_root() {
        tests::skipped("the locks of root need root");
    }
    tests::is_root()
}

/// Killed when the test ends, however it ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < limit, "never came about: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A run that lasts until it is ended, in its first trial.
fn long_run(bench: &Bench) -> Running {
    let mut command = bench.command(&["run", "-a", "default", "-o", "long", "--", "sleep", "600"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let run = Running(command.spawn().expect("schedlab starts"));
    eventually("the run is under way", || bench.path("long").exists());
    run
}

const SHORT: [&str; 8] = [
    "run",
    "-a",
    "default",
    "--max-blocks",
    "1",
    "-q",
    "--",
    "true",
];

/// The same command in namespaces of its own, as in a container.
fn contained(command: &Command, script: &str) -> Command {
    let options = ["--net", "--pid", "--fork", "--mount-proc"];
    let script = format!("{script}\n\"$@\"; exit $?");
    let mut unshare = tests::shell_with_own_mounts(&options, &script);
    unshare.arg("sh");
    unshare.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        unshare.env(name, value.unwrap_or_default());
    }
    unshare.current_dir(command.get_current_dir().expect("that of the bench"));
    unshare
}

#[test]
fn two_containers_of_one_kernel_do_not_run_at_once() {
    if !root_or_skip() {
        return;
    }
    let _turn = alone();
    let (first, second) = (Bench::default(), Bench::default());
    let _run = long_run(&first);
    let refused = second.run(&SHORT);
    expect_code(&refused, 3);
    assert!(
        stderr(&refused).contains("(process "),
        "{}",
        stderr(&refused)
    );
    if !tests::own_mounts_or_skip() {
        return;
    }
    let mut contained = contained(&second.command(&SHORT), "mount -t tmpfs none /run");
    let refused = contained.output().expect("unshare starts");
    expect_code(&refused, 3);
    let said = stderr(&refused);
    assert!(said.contains("in another container"), "{said}");
}

#[test]
fn an_experiment_is_checked_beside_a_run_and_a_missing_scheduler_is_said_before_the_queue() {
    let _turn = alone();
    let (first, second) = (Bench::default(), Bench::default());
    let _run = long_run(&first);
    let checked = second.run(&["check", "-a", "default", "-a", "batch", "-w", "wakeup"]);
    expect_code(&checked, 0);
    let said = stdout(&checked);
    assert!(
        said.contains("nothing that can be seen without starting anything is missing"),
        "{said}"
    );
    assert!(said.contains("Another run is under way"), "{said}");
    let missing = second.run(&["check", "-a", "default", "-a", "scx_lavdd", "-w", "wakeup"]);
    expect_code(&missing, 3);
    assert!(
        stderr(&missing).contains("did you mean `scx_lavd`?"),
        "{}",
        stderr(&missing)
    );
    // It would wait for ever for the machine.
    let waiting = [
        "run",
        "--wait",
        "-a",
        "default",
        "-a",
        "scx_lavdd",
        "-w",
        "wakeup",
    ];
    let refused = second.run(&waiting);
    expect_code(&refused, 3);
    assert!(
        stderr(&refused).contains("did you mean `scx_lavd`?"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn no_other_user_keeps_root_from_running_or_restoring() {
    if !root_or_skip() {
        return;
    }
    let _turn = alone();
    let bench = Bench::default();
    let name = "import socket, time; s = socket.socket(socket.AF_UNIX); \
                s.bind('\\0schedlab-run'); s.listen(); print('taken', flush=True); time.sleep(600)";
    let mut command = Command::new("python3");
    command
        .args(["-c", name])
        .uid(NOBODY)
        .stdout(Stdio::piped());
    let Ok(child) = command.spawn() else {
        tests::skipped("python3 is not installed");
        return;
    };
    let mut squatter = Running(child);
    let mut line = String::new();
    let said = squatter.0.stdout.take().expect("it was asked for");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut line).expect("a line");
    assert_eq!(line, "taken\n");
    let run = bench.run(&SHORT);
    expect_code(&run, 0);
    let restored = bench.run(&["restore"]);
    expect_code(&restored, 0);
}

#[test]
fn restore_needs_no_lock_of_runs() {
    let _turn = alone();
    let (first, second) = (Bench::default(), Bench::default());
    let _run = long_run(&first);
    let restored = second.run(&["restore"]);
    expect_code(&restored, 0);
    assert!(stdout(&restored).contains("nothing was left in force"));
}

#[test]
fn a_user_is_told_that_the_journal_of_root_holds_something() {
    if !root_or_skip() {
        return;
    }
    if !tests::own_mounts_or_skip() {
        return;
    }
    let _turn = alone();
    let bench = Bench::default();
    let copy = bench.path("schedlab");
    fs::copy(tests::schedlab(), &copy).expect("a copy that nobody can reach");
    // In directories that are this test's own, with a change in the journal of root that
    // cannot be undone.
    let entry = r#"{"boot":"'$(cat /proc/sys/kernel/random/boot_id)'","undo":"write","path":"/gone","text":"1"}"#;
    let script = format!(
        "mount -t tmpfs none /var/lib; mount -t tmpfs none /run; mkdir -m 700 /var/lib/schedlab; \
         chmod 755 {0}; chmod 755 {1}; export HOME={0}/home; mkdir -m 777 -p $HOME; \
         unset SCHEDLAB_STATE_DIR; as_nobody='setpriv --reuid {NOBODY} --clear-groups'; \
         $as_nobody {1} restore; echo \"at first $?\"; \
         echo '{entry}' > /var/lib/schedlab/journal.jsonl; \
         {1} run -a default --max-blocks 1 -q -- true; echo \"run $?\"; \
         {1} restore; echo \"root $?\"; \
         $as_nobody {1} restore; echo \"then $?\"",
        bench.dir.path().display(),
        copy.display(),
    );
    let mut shell = tests::shell_with_own_mounts(&[], &script);
    let output = shell
        .env("HOME", "/root")
        .current_dir(bench.dir.path())
        .output()
        .expect("unshare starts");
    let (said, errors) = (stdout(&output), stderr(&output));
    let codes: Vec<&str> = said
        .lines()
        .filter(|l| l.ends_with(char::is_numeric))
        .collect();
    assert_eq!(
        codes,
        ["at first 0", "run 1", "root 1", "then 3"],
        "{said}\n{errors}"
    );
    assert!(errors.contains("As root: schedlab restore"), "{errors}");
}
