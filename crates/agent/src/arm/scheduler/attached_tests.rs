//! Fake schedulers: shell scripts that write the files that the kernel would.

use super::*;
use crate::fence::Fence;
use crate::journal::Journal;
use ::tests::tree;
use std::fs;
use tempfile::TempDir;

const QUICK: Limits = Limits {
    attach: Duration::from_secs(20),
    detach: Duration::from_secs(20),
    kill: Duration::from_millis(200),
};

const ATTACH: &str =
    "mkdir -p root; echo fake_1.0 > root/ops; echo 8 > enable_seq; echo enabled > state";
const DETACH: &str = "echo disabled > state; rm -f root/ops";

/// A root with a kernel that could, and a program `fake` with this script.
struct Machine {
    root: TempDir,
}

/// A shell that starts with SIGINT ignored cannot trap it, and tests that run in the
/// background hand that down. The agent handles the signal, so its children do not.
fn handle_interrupts() {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    let end = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGINT, 130, end)
        .unwrap();
}

impl Machine {
    fn new(script: &str) -> Self {
        handle_interrupts();
        let root = tree(&[
            ("sys/kernel/sched_ext/state", "disabled\n"),
            ("sys/kernel/sched_ext/enable_seq", "7\n"),
            ("sys/kernel/sched_ext/nr_rejected", "0\n"),
        ]);
        let program = root.path().join("fake");
        let directory = root.path().join("sys/kernel/sched_ext");
        let text = format!("#!/bin/sh\ncd {}\n{script}\n", directory.display());
        ::tests::write_program(&program, text);
        Machine { root }
    }

    fn scheduler(&self) -> Scheduler {
        Scheduler {
            program: self.root.path().join("fake").display().to_string(),
            args: vec!["--fast".to_owned()],
            attach_limit_ns: None,
            built_from: None,
        }
    }

    fn attach(&self, limits: Limits) -> Result<Attached, SchedulerError> {
        let interrupt = Interrupt::new().unwrap();
        attach(self.root.path(), &self.scheduler(), &interrupt, limits)
    }

    fn state(&self) -> SchedExt {
        sched_ext::read(self.root.path()).unwrap()
    }
}

fn attach(
    root: &Path,
    scheduler: &Scheduler,
    interrupt: &Interrupt,
    limits: Limits,
) -> Result<Attached, SchedulerError> {
    let state = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(state.path()).unwrap();
    let mark = format!("scheduler-test-{}", std::process::id());
    let fence = Fence::set_up(root, mark, &mut journal).unwrap();
    let ground = Ground {
        root,
        fence: &fence,
        journal: &mut journal,
        interrupt,
    };
    Attached::attach(ground, scheduler, limits)
}

/// Waits for SIGINT, which may come as soon as it is attached. `sleep` in the
/// background lets the shell run its trap at once.
fn until_asked() -> String {
    format!(
        "sleep 600 & trap '{DETACH}; echo EXIT: unregistered from user space >&2; kill $!; exit 0' INT; {ATTACH}; wait $!"
    )
}

#[test]
fn a_scheduler_is_attached_described_and_detached() {
    let machine = Machine::new(&until_asked());
    let mut attached = machine.attach(QUICK).unwrap();
    assert_eq!(machine.state().ops, "fake_1.0");
    assert_eq!(attached.binary.args, ["--fast"]);
    assert_eq!(attached.binary.sha256.len(), 64);
    attached.check_alive().unwrap();
    let (log, detached) = attached.detach(machine.root.path());
    detached.unwrap();
    assert_eq!(machine.state().state, "disabled");
    assert!(log.contains("unregistered from user space"), "{log}");
}

#[test]
fn a_scheduler_that_attaches_late_is_waited_for() {
    let machine = Machine::new(&format!("sleep 0.3; {}", until_asked()));
    let attached = machine.attach(QUICK).unwrap();
    assert_eq!(machine.state().state, "enabled");
    attached.detach(machine.root.path()).1.unwrap();
}

#[test]
fn one_that_exits_at_once_is_an_error_with_its_last_words() {
    let machine = Machine::new("echo 'No layer spec' >&2; exit 2");
    let error = machine.attach(QUICK).unwrap_err().to_string();
    assert!(
        error.contains("exit status: 2 before it was attached: No layer spec"),
        "{error}"
    );
}

#[test]
fn options_that_a_version_does_not_have_are_told_in_its_own_words() {
    for (printed, words) in [
        // As clap says it, with the name that the option has now.
        (
            "error: unexpected argument '--slice-us' found\n\n  tip: a similar argument exists: \
             '--slice-us-overutil'\n\nUsage: scx_rusty --slice-us-overutil <SLICE_US_OVERUTIL>",
            &["unexpected argument '--slice-us'", "'--slice-us-overutil'"][..],
        ),
        (
            "error: invalid value 'turbo' for '--power-mode <MODE>'\n  [possible values: auto, performance]",
            &[
                "invalid value 'turbo'",
                "[possible values: auto, performance]",
            ],
        ),
        (
            "error: the argument '--autopilot' cannot be used with '--performance'",
            &["'--autopilot' cannot be used with '--performance'"],
        ),
        // As getopt says it, for schedulers in C.
        (
            "scx_simple: unrecognized option '--fifo'",
            &["unrecognized option '--fifo'"],
        ),
    ] {
        let machine = Machine::new(&format!("cat >&2 <<'END'\n{printed}\nEND\nexit 2"));
        let error = machine.attach(QUICK).unwrap_err().to_string();
        assert!(
            words.iter().all(|words| error.contains(words)),
            "{printed}: {error}"
        );
    }
}

#[test]
fn one_that_the_verifier_refuses_is_no_matter_of_its_arguments() {
    let machine = Machine::new(
        "cat >&2 <<'END'\nlibbpf: prog 'fake_init': BPF program load failed: -EACCES\n\
         libbpf: prog 'fake_init': -- BEGIN PROG LOAD LOG --\n\
         0: R1=ctx() R10=fp0\nR0 invalid mem access 'scalar'\n\
         processed 40 insns (limit 1000000) max_states_per_insn 0 total_states 3 peak_states 3 \
         mark_read 1\n-- END PROG LOAD LOG --\n\
         libbpf: prog 'fake_init': failed to load: -EACCES\n\
         libbpf: failed to load object 'bpf_bpf'\nError: Failed to load BPF program\nEND\nexit 1",
    );
    let release = machine.root.path().join("proc/sys/kernel/osrelease");
    fs::create_dir_all(release.parent().unwrap()).unwrap();
    fs::write(release, "7.2.13-amd64\n").unwrap();
    let error = machine.attach(QUICK).unwrap_err();
    assert_eq!(
        error.to_string(),
        "fake does not load on Linux 7.2.13-amd64: the verifier of the kernel refuses its program \
         fake_init: 0: R1=ctx() R10=fp0 | R0 invalid mem access 'scalar'"
    );
    assert!(matches!(Stop::from(error), Stop::ForGood(_)));
}

#[test]
fn one_that_never_attaches_is_given_up_and_ended() {
    let machine = Machine::new("exec sleep 600");
    let limits = Limits {
        attach: Duration::from_millis(200),
        ..QUICK
    };
    let error = machine.attach(limits).unwrap_err().to_string();
    assert!(error.contains("not in force after"), "{error}");
}

#[test]
fn one_that_dies_in_the_middle_is_noticed_with_the_reason() {
    let machine = Machine::new(&format!(
        "{ATTACH}; while [ ! -e stop ]; do sleep 0.02; done; {DETACH}; echo 'EXIT: runnable task stall' >&2; exit 1"
    ));
    let mut attached = machine.attach(QUICK).unwrap();
    fs::write(machine.root.path().join("sys/kernel/sched_ext/stop"), "").unwrap();
    let error = loop {
        match attached.check_alive() {
            Ok(()) => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => break error.to_string(),
        }
    };
    assert!(
        error.contains("exit status: 1: EXIT: runnable task stall"),
        "{error}"
    );
    attached.detach(machine.root.path()).1.unwrap();
}

#[test]
fn one_that_leaves_the_class_enabled_is_not_called_detached() {
    let machine = Machine::new(&format!("{ATTACH}; exec sleep 600"));
    let limits = Limits {
        detach: Duration::from_millis(200),
        ..QUICK
    };
    let attached = machine.attach(limits).unwrap();
    let error = attached
        .detach(machine.root.path())
        .1
        .unwrap_err()
        .to_string();
    assert!(error.contains("the state is enabled (fake_1.0)"), "{error}");
}

#[test]
fn nothing_is_attached_beside_a_scheduler_in_force() {
    let machine = Machine::new(&until_asked());
    fs::write(
        machine.root.path().join("sys/kernel/sched_ext/state"),
        "enabled\n",
    )
    .unwrap();
    let error = machine.attach(QUICK).unwrap_err();
    assert!(matches!(error, SchedulerError::Occupied { .. }), "{error}");
}

#[test]
fn an_interrupt_ends_the_wait_for_a_scheduler() {
    let machine = Machine::new("exec sleep 600");
    let interrupt = Interrupt::new().unwrap();
    interrupt.raise();
    let error = attach(machine.root.path(), &machine.scheduler(), &interrupt, QUICK).unwrap_err();
    assert!(matches!(error, SchedulerError::Interrupted(_)), "{error}");
}

#[test]
fn a_kernel_without_the_class_and_a_missing_program_are_told_apart() {
    let machine = Machine::new("");
    let missing = Scheduler {
        program: "scx_there_is_none".to_owned(),
        args: Vec::new(),
        attach_limit_ns: None,
        built_from: None,
    };
    let interrupt = Interrupt::new().unwrap();
    let attach = |root: &Path| attach(root, &missing, &interrupt, QUICK);
    let error = attach(machine.root.path()).unwrap_err();
    assert!(matches!(error, SchedulerError::NotFound(_)), "{error}");
    let error = attach(tree(&[]).path()).unwrap_err();
    assert!(matches!(error, SchedulerError::Unsupported), "{error}");
}

#[test]
fn a_program_that_was_replaced_has_another_hash() {
    let machine = Machine::new("exit 0");
    let path = machine.root.path().join("fake");
    let (first, version) = hash_and_version(&path, false).unwrap();
    assert_eq!(version, None, "it is not asked: its name is not scx_…");
    assert_eq!(hash_and_version(&path, false).unwrap().0, first);
    fs::write(&path, "#!/bin/sh\nexit 1 # changed\n").unwrap();
    assert_ne!(hash_and_version(&path, false).unwrap().0, first);
}

#[test]
fn what_is_described_is_the_program_that_runs_not_the_file_that_took_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("scheduler");
    let copy = |program: &str, to: &Path| fs::copy(which::which(program).unwrap(), to).unwrap();
    copy("sleep", &path);
    let before = sha256(&path).unwrap();
    // The file was written by this process, and another test may just be forking.
    let started = || Command::new(&path).arg("600").spawn();
    let mut child = std::iter::repeat_with(started)
        .find_map(Result::ok)
        .unwrap();
    copy("true", &directory.path().join("newer"));
    fs::rename(directory.path().join("newer"), &path).unwrap();
    let found = sha256(&running_file(child.id(), &path)).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found, before);
    assert_ne!(sha256(&path).unwrap(), before);
}

#[test]
fn one_that_is_thrown_out_has_an_ending_and_one_that_runs_has_none() {
    let stalls = format!(
        "{ATTACH}; while [ ! -e stall ]; do sleep 0.02; done; {DETACH}; \
         echo 'EXIT: runnable task stall (watchdog failed to check in)' >&2; exit 1"
    );
    let machine = Machine::new(&stalls);
    let mut attached = machine.attach(QUICK).unwrap();
    assert_eq!(attached.find_ending(machine.root.path()), None);
    fs::write(machine.root.path().join("sys/kernel/sched_ext/stall"), "").unwrap();
    while attached.check_alive().is_ok() {
        std::thread::sleep(POLL_EVERY);
    }
    let ending = attached.find_ending(machine.root.path()).unwrap();
    assert_eq!(ending.when, model::When::Ejected);
    assert!(
        ending.messages[0].contains("failed to check in"),
        "{ending:?}"
    );
    attached.detach(machine.root.path()).1.unwrap();
}
