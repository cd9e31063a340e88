//! Guests in the background, driven as a user would: by a program that starts one,
//! runs commands in it and ends. Needs what the boot tests need.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vm::architecture::Architecture;
use vm::qemu;

static TURN: Mutex<()> = Mutex::new(());

/// A user with a runtime directory of their own, and the shared cache.
struct User {
    runtime: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl User {
    /// Or why there is none.
    fn new() -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        if qemu::version(Architecture::of_this_machine()).is_none() {
            ::tests::skipped(format!(
                "{} is not installed",
                Architecture::of_this_machine().qemu
            ));
            return None;
        }
        Some(User {
            runtime: tempfile::tempdir().unwrap(),
            _turn: turn,
        })
    }

    fn vm(&self, args: &[&str]) -> Output {
        self.vm_with(args, b"")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(example());
        command.args(args).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.runtime.path());
        command
    }

    fn vm_with(&self, args: &[&str], input: &[u8]) -> Output {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input is no error here.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// True if the guest runs now; a kernel that cannot be had is no failure.
    fn start(&self, args: &[&str]) -> bool {
        let output = self.vm(args);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if errors.contains("cannot be fetched") || errors.contains("cannot be downloaded") {
            ::tests::skipped(errors);
            return false;
        }
        assert!(output.status.success(), "{errors}");
        true
    }

    fn keeper(&self, name: &str) -> i32 {
        let path = self
            .runtime
            .path()
            .join("schedlab/vm")
            .join(name)
            .join("status.json");
        let status: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        i32::try_from(status["pid"].as_i64().unwrap()).unwrap()
    }
}

fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("examples/vm")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Processes whose environment or command line cannot be ours are not counted:
/// only children of `parent`.
fn children(parent: i32) -> Vec<i32> {
    let path = format!("/proc/{parent}/task");
    fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .map(|p| p.parse().unwrap())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Gone, or dead and not yet reaped by whoever inherited it.
fn is_dead(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| {
        stat.rsplit(')').next().unwrap().starts_with(" Z")
    })
}

fn wait_until(what: &str, check: impl Fn() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < Duration::from_secs(30), "not {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_guest_in_the_background_runs_commands_until_it_is_stopped_or_killed() {
    let Some(user) = User::new() else { return };
    if !user.start(&["start", "lab"]) {
        return;
    }
    assert!(text(&user.vm(&["status"])).contains("\"lab\""));
    assert_eq!(
        text(&user.vm_with(&["exec", "lab", "cat"], b"hello")),
        "hello"
    );
    assert_eq!(
        user.vm(&["exec", "lab", "sh", "-c", "exit 3"])
            .status
            .code(),
        Some(3)
    );
    let twice = user.vm(&["start", "lab"]);
    assert!(String::from_utf8_lossy(&twice.stderr).contains("running already"));

    let keeper = user.keeper("lab");
    let qemu = children(keeper);
    assert_eq!(qemu.len(), 1);
    let pid = rustix::process::Pid::from_raw(keeper).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    wait_until("dead with its keeper", || is_dead(qemu[0]));
    // The last thread of the keeper closes its socket, maybe after QEMU died.
    wait_until("forgotten", || text(&user.vm(&["status"])) == "[]\n");

    assert!(user.start(&["start", "lab"]), "the name is free again");
    let (keeper, qemu) = (user.keeper("lab"), children(user.keeper("lab")));
    assert!(user.vm(&["stop", "lab"]).status.success());
    wait_until("stopped", || {
        is_dead(keeper) && qemu.iter().all(|pid| is_dead(*pid))
    });
    let gone = user.vm(&["exec", "lab", "true"]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("no such guest runs"));
    assert!(!user.runtime.path().join("schedlab/vm/lab").exists());
}

#[test]
fn of_two_that_start_one_name_one_has_it_and_stopping_ends_a_start() {
    let Some(user) = User::new() else { return };
    let spawn = || {
        let mut start = user.command(&["start", "lab"]);
        start.stderr(Stdio::piped()).spawn().unwrap()
    };
    let starts = [spawn(), spawn()].map(|start| start.wait_with_output().unwrap());
    let errors = starts
        .each_ref()
        .map(|o| String::from_utf8_lossy(&o.stderr).into_owned());
    if errors
        .iter()
        .any(|e| e.contains("cannot be fetched") || e.contains("cannot be downloaded"))
    {
        return ::tests::skipped(format!("{errors:?}"));
    }
    let winners = starts.iter().filter(|o| o.status.success()).count();
    assert_eq!(winners, 1, "{errors:?}");
    let lost = errors
        .iter()
        .any(|e| e.contains("is being started, by process"));
    assert!(lost, "{errors:?}");
    assert_eq!(text(&user.vm(&["exec", "lab", "echo", "here"])), "here\n");
    assert!(user.vm(&["stop", "lab"]).status.success());

    let mut start = spawn();
    let lock = user.runtime.path().join("schedlab/vm/lab/lock");
    let keeper = || fs::read_to_string(&lock).ok()?.trim().parse::<i32>().ok();
    wait_until("taken", || {
        keeper().is_some_and(|pid| !children(pid).is_empty())
    });
    let (keeper, qemu) = (keeper().unwrap(), children(keeper().unwrap()));
    assert!(user.vm(&["stop", "lab"]).status.success());
    assert!(!start.wait().unwrap().success());
    wait_until("ended", || {
        is_dead(keeper) && qemu.iter().all(|pid| is_dead(*pid))
    });
    assert!(!lock.exists(), "nothing is left");
}

#[test]
fn who_does_not_read_costs_no_memory_and_holds_nobody_up() {
    let Some(user) = User::new() else { return };
    if !user.start(&["start", "lab"]) {
        return;
    }
    let keeper = user.keeper("lab");
    let before = resident_kib(keeper);
    let mut yes = user
        .command(&["exec", "lab", "yes"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // An emulated guest says some megabytes in this time.
    std::thread::sleep(Duration::from_secs(5));
    let grown = resident_kib(keeper).saturating_sub(before);
    assert!(grown < 8 << 10, "{grown} KiB");
    assert_eq!(text(&user.vm(&["exec", "lab", "echo", "here"])), "here\n");
    yes.kill().unwrap();
    yes.wait().unwrap();
    assert!(user.vm(&["stop", "lab"]).status.success());
}

fn resident_kib(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmRSS:"))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
