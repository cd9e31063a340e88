//! An arm is what its name says: the kernel's own scheduler, and the work that an arm reaches.

#![allow(clippy::unwrap_used)]

use collect::fair_scheduler;
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;
use tests::{Bench, beside_others, expect_code, python_or_skip, stderr, stdout};

#[test]
fn an_arm_that_names_another_scheduler_than_the_kernels_own_is_refused() {
    let bench = Bench::default();
    let found = fair_scheduler::read(Path::new("/")).unwrap().scheduler;
    let other = if found.name() == "cfs" {
        "eevdf"
    } else {
        "cfs"
    };
    let refused = bench.run(&["run", "-a", "default", "-a", other, "--wait", "--", "true"]);
    expect_code(&refused, 3);
    let said = stderr(&refused);
    let wanted = format!("this kernel's own scheduler is {}", found.display_name());
    assert!(said.contains(&wanted), "{said}");
    assert!(
        said.contains(&format!("write `{}`", found.name())),
        "{said}"
    );
}

#[test]
fn a_scheduler_that_is_not_installed_is_told_before_a_guest_boots() {
    let bench = Bench::default();
    let arms = ["-a", "default", "-a", "scx_lavdd"];
    let refused =
        bench.run(&[&["run", "--vm", "debian:sid"], &arms[..], &["-w", "wakeup"]].concat());
    expect_code(&refused, 3);
    let said = stderr(&refused);
    assert!(said.contains("did you mean `scx_lavd`?"), "{said}");
    assert!(!said.contains("booting"), "{said}");
}

/// Answers each connection after a fifth of a second of CPU time of this thread.
fn work_for_others(listener: &UnixListener) {
    let cpu_ms = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec * 1000 + now.tv_nsec / 1_000_000
    };
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let _ = stream.read(&mut [0]);
        let end = cpu_ms() + 200;
        while cpu_ms() < end {}
        let _ = stream.write_all(b"done");
    }
}

const CLIENT: &str = r#"
[[arm]]
name = "default"
[[arm]]
name = "nice"
policy = { nice = 19 }
[[workload]]
name = "daemon"
kind = "command"
command = ["python3", "-c", """
import socket
s = socket.socket(socket.AF_UNIX)
s.connect('/PLACE/daemon')
s.send(b'x')
assert s.recv(9) == b'done'
"""]
[stop]
smallest-effect = "90%"
min-blocks = 5
max-blocks = 8
"#;

#[test]
fn arms_of_a_command_whose_work_a_daemon_does_are_never_called_the_same() {
    if !python_or_skip() {
        return;
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let place = bench.dir.path().display().to_string();
    let listener = UnixListener::bind(bench.path("daemon")).unwrap();
    thread::spawn(move || work_for_others(&listener));
    let file = bench.file("daemon.toml", &CLIENT.replace("/PLACE", &place));
    let run = bench.run(&["run", &file, "-o", "out", "--wait"]);
    expect_code(&run, 0);
    let said = stdout(&run);
    assert!(
        said.contains("Others used more CPU time than the command itself"),
        "{said}"
    );
    assert!(said.contains("docker run, systemd-run"), "{said}");
    let json = stdout(&bench.run(&["report", "out", "--format", "json"]));
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let comparisons = report["comparisons"].as_array().unwrap();
    assert!(!comparisons.is_empty(), "{json}");
    let same = comparisons.iter().filter(|one| one["verdict"] == "same");
    assert_eq!(same.count(), 0, "{json}");
}
