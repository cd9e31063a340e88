//! schedlab as the first process of a container (`docker run IMAGE schedlab …`): every
//! command is that command, and never the init of a guest.

#![allow(clippy::disallowed_methods)]

use std::process::{Command, Output};
use tests::{Bench, expect_code, stdout, with_lock_of_runs};

/// In process and mount namespaces of its own, as process 1; `None` where the kernel
/// gives none.
fn as_process_1(bench: &Bench, args: &[&str]) -> Option<Output> {
    let namespaces = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
        // The root of a chroot need not be a mount whose propagation could change.
        "--propagation",
        "unchanged",
    ];
    let unshare = |namespaces: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(namespaces);
        command
    };
    let namespaces = if tests::is_root() {
        &namespaces[2..]
    } else {
        &namespaces[..]
    };
    let works = unshare(namespaces).arg("true").output();
    if !works.is_ok_and(|o| o.status.success()) {
        tests::skipped("no namespaces for an own process 1 (unshare, user namespaces)");
        return None;
    }
    let output = unshare(namespaces)
        .arg(tests::schedlab())
        .args(args)
        .current_dir(bench.dir.path())
        .env("SCHEDLAB_STATE_DIR", bench.path("state"))
        .env("NO_COLOR", "1")
        .output();
    Some(output.expect("unshare"))
}

#[test]
fn commands_work_as_process_1() {
    let bench = Bench::default();
    for (args, says) in [
        (&["--version"][..], "schedlab"),
        (&["list", "workloads"], "hackbench"),
        (&["plan", "-a", "default", "-w", "wakeup"], "wakeup"),
    ] {
        let Some(output) = as_process_1(&bench, args) else {
            return;
        };
        expect_code(&output, 0);
        assert!(stdout(&output).contains(says), "{}", stdout(&output));
    }
}

#[test]
fn a_run_works_as_process_1_and_its_results_can_be_verified_there() {
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    let run = [
        "run",
        "-o",
        "out",
        "-a",
        "default",
        "--max-blocks",
        "1",
        "--",
        "true",
    ];
    let Some(output) = as_process_1(&bench, &run) else {
        return;
    };
    expect_code(&output, 0);
    for args in [
        &["pack", "out", "-o", "out.tar.gz"][..],
        &["verify", "out.tar.gz"],
    ] {
        let output = as_process_1(&bench, args).expect("it worked before");
        expect_code(&output, 0);
    }
}
