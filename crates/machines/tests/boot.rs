//! Real guests: Debian's newest kernel, under whatever accelerator works here.
//! Needs QEMU, and the network or a cache that has the kernel; else says why not.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use machines::{Boot, Session, Target, TargetError};
use model::{PROTOCOL_VERSION, Reply, Request};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use vm::architecture::Architecture;
use vm::boot::Guest;
use vm::frame::{Exec, Exit, Frame, FrameKind, Window};
use vm::link::Output;
use vm::{Clock, Options, Vm, VmError, VmSpec, qemu};

/// One guest at a time: they share the CPUs of this machine.
static TURN: Mutex<()> = Mutex::new(());
const ANSWER: Duration = Duration::from_secs(60);

struct Bench {
    target: Vm,
    _turn: MutexGuard<'static, ()>,
}

/// A target to boot guests with, or why there is none.
fn bench(change: impl FnOnce(&mut VmSpec, &mut Options)) -> Option<Bench> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if qemu::version(Architecture::of_this_machine()).is_none() {
        ::tests::skipped(format!(
            "{} is not installed",
            Architecture::of_this_machine().qemu
        ));
        return None;
    }
    let mut spec = VmSpec::new("debian:sid", 2, 768 << 20);
    let mut options = Options::of_this_process().unwrap();
    options.program = example();
    change(&mut spec, &mut options);
    let kernel = spec.kernel.clone();
    let mut target = Vm::new(spec, options);
    if let Err(e) = target.prepare(&kernel) {
        ::tests::skipped(format!("no kernel: {e}"));
        return None;
    }
    Some(Bench {
        target,
        _turn: turn,
    })
}

/// The program that goes into the guest, built beside this test.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let example = profile.join("examples/vm");
    assert!(example.exists(), "build it with `cargo build --examples`");
    example
}

fn run(guest: &Guest, argv: &[&str]) -> (String, Exit) {
    run_with(guest, exec(argv), b"")
}

fn exec(argv: &[&str]) -> Exec {
    Exec {
        argv: argv.iter().map(|&a| a.to_owned()).collect(),
        ..Exec::default()
    }
}

fn run_with(guest: &Guest, exec: Exec, input: &[u8]) -> (String, Exit) {
    let output = guest.link.exec(&exec).unwrap();
    let channel = output.channel;
    guest
        .link
        .send(&Frame::new(FrameKind::Input, channel, input))
        .unwrap();
    guest
        .link
        .send(&Frame::new(FrameKind::InputEnd, channel, ""))
        .unwrap();
    collect(output)
}

fn collect(mut output: Output) -> (String, Exit) {
    let mut text = String::new();
    loop {
        let frame = output.next_within(ANSWER).expect("the command ends");
        match frame.kind {
            FrameKind::Exit => return (text, frame.parse().unwrap()),
            _ => text.push_str(&frame.payload_text()),
        }
    }
}

fn hello(session: &mut dyn Session) -> String {
    session
        .send_request(&Request::Hello {
            protocol: PROTOCOL_VERSION,
        })
        .unwrap();
    match session.receive_reply(ANSWER).unwrap() {
        Some(Reply::Hello { build, .. }) => build.version,
        other => panic!("no hello but {other:?}"),
    }
}

/// The error with which a session ends.
fn end(session: &mut dyn Session) -> (String, String) {
    let start = Instant::now();
    while start.elapsed() < ANSWER {
        match session.receive_reply(Duration::from_millis(200)) {
            Err(TargetError::Gone { why, tail }) => return (why, tail),
            Err(other) => panic!("{other}"),
            Ok(_) => {}
        }
    }
    panic!("the session did not end");
}

#[test]
fn in_virtual_time_a_request_is_a_boot_and_the_same_one_each_time() {
    let Some(mut bench) = bench(|spec, _| {
        spec.cpus = 1;
        spec.clock = Clock::Virtual;
    }) else {
        return;
    };
    let mut session = bench.target.open_session(&Boot::default()).unwrap();
    let mut greeting = || {
        let protocol = PROTOCOL_VERSION;
        session.send_request(&Request::Hello { protocol }).unwrap();
        loop {
            if let Some(Reply::Hello { build, .. }) = session.receive_reply(ANSWER).unwrap() {
                return (build.version, session.read_console().unwrap());
            }
        }
    };
    let (version, console) = greeting();
    assert!(version.starts_with("Linux version "), "{version}");
    // The kernel's own times are in it.
    assert!(console.contains("] "), "{console}");
    assert_eq!(greeting(), (version, console));
}

#[test]
fn a_guest_has_its_own_kernel_and_the_hosts_files_and_keeps_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "from the host").unwrap();
    let Some(mut bench) = bench(|_, options| options.directory = dir.path().to_owned()) else {
        return;
    };
    let guest = bench.target.boot(None, false).unwrap();

    let (release, exit) = run(&guest, &["uname", "-r"]);
    assert_eq!(
        (release.trim(), exit.code),
        (guest.ready.release.as_str(), 0)
    );
    assert_eq!(run(&guest, &["cat", "file"]).0, "from the host");
    let (_, exit) = run(&guest, &["sh", "-c", "echo changed > file && touch new"]);
    assert_eq!(exit.code, 0);
    assert_eq!(run(&guest, &["cat", "file"]).0, "changed\n");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "from the host");
    assert!(!dir.path().join("new").exists());

    for path in [
        "/sys/fs/cgroup/cgroup.controllers",
        "/sys/kernel/debug/sched",
        "/sys/kernel/tracing/events",
        "/sys/fs/bpf",
        "/sys/kernel/sched_ext/state",
        "/sys/kernel/btf/vmlinux",
        "/dev/pts/ptmx",
    ] {
        assert_eq!(run(&guest, &["test", "-e", path]).1.code, 0, "{path}");
    }
    let config = format!("/boot/config-{}", guest.ready.release);
    assert_eq!(
        run(
            &guest,
            &["grep", "-c", "^CONFIG_SCHED_CLASS_EXT=y", &config]
        )
        .0,
        "1\n"
    );
    let modules = format!("/lib/modules/{}/kernel", guest.ready.release);
    assert_eq!(run(&guest, &["test", "-d", &modules]).1.code, 0);
    let (interfaces, _) = run(&guest, &["ls", "/sys/class/net"]);
    assert_eq!(interfaces, "lo\n", "the network is off");
    assert_eq!(
        run(&guest, &["cat", "/sys/class/net/lo/operstate"]).0,
        "unknown\n"
    );
}

#[test]
fn commands_in_the_guest_have_input_status_and_a_terminal() {
    let Some(mut bench) = bench(|_, _| {}) else {
        return;
    };
    let guest = bench.target.boot(None, false).unwrap();

    let big = vec![b'x'; 60_000];
    assert_eq!(
        run_with(&guest, exec(&["wc", "-c"]), &big).0.trim(),
        "60000"
    );
    assert_eq!(run(&guest, &["sh", "-c", "exit 7"]).1.code, 7);
    assert_eq!(run(&guest, &["sh", "-c", "kill -9 $$"]).1.code, 137);
    let (_, exit) = run(&guest, &["/no/such/program"]);
    assert_eq!(exit.code, 127);
    assert!(exit.error.is_some());

    let on_terminal = Exec {
        terminal: Some(Window {
            rows: 33,
            columns: 77,
        }),
        ..exec(&["sh", "-c", "tty -s && stty size"])
    };
    assert_eq!(run_with(&guest, on_terminal, b"").0.trim(), "33 77");

    // Two at once, the first one ended by a hang-up.
    let sleep = guest.link.exec(&exec(&["sleep", "1000"])).unwrap();
    assert_eq!(run(&guest, &["echo", "meanwhile"]).0, "meanwhile\n");
    guest
        .link
        .send(&Frame::new(FrameKind::Hangup, sleep.channel, ""))
        .unwrap();
    assert_eq!(collect(sleep).1.code, 128 + 1);

    // Nobody takes what the first one says; it waits, and loses nothing.
    let flood = exec(&["head", "-c", "5000000", "/dev/zero"]);
    let flood = guest.link.exec(&flood).unwrap();
    assert_eq!(run(&guest, &["echo", "meanwhile"]).0, "meanwhile\n");
    std::thread::sleep(Duration::from_secs(2));
    let (text, exit) = collect(flood);
    assert_eq!((text.len(), exit.code), (5_000_000, 0));

    // What a command leaves behind does not hold it up, and is reaped.
    assert_eq!(
        run(&guest, &["sh", "-c", "sleep 0.1 & echo left"]).0,
        "left\n"
    );
    std::thread::sleep(Duration::from_secs(1));
    let (zombies, _) = run(
        &guest,
        &["sh", "-c", "grep -l 'State:.Z' /proc/[0-9]*/status || true"],
    );
    assert_eq!(zombies, "");
}

#[test]
fn the_agent_talks_and_its_death_is_told_apart_from_the_machines() {
    let Some(mut bench) = bench(|spec, _| spec.host_cpus = Some("0".to_owned())) else {
        return;
    };
    let mut session = bench.target.open_session(&Boot::default()).unwrap();
    let version = hello(session.as_mut());
    let facts = bench.target.facts();
    assert!(version.contains(&facts["vm.kernel"]), "{version}");
    assert!(
        session
            .receive_reply(Duration::from_millis(50))
            .unwrap()
            .is_none()
    );
    let readings: Vec<String> = session
        .host_readings()
        .into_iter()
        .map(|m| m.metric)
        .collect();
    assert!(readings.contains(&"host_steal".to_owned()), "{readings:?}");
    assert_eq!(facts["vm.pinned_cpus"], "0");
    assert!(facts["vm.host_cpus"].parse::<usize>().unwrap() > 0);
    let emulated = bench
        .target
        .warnings()
        .iter()
        .any(|w| w.what.contains("emulated"));
    assert_eq!(emulated, facts["vm.accel"] == "tcg");

    session.send_request(&Request::Bye).unwrap();
    assert_eq!(session.receive_reply(ANSWER).unwrap(), Some(Reply::Bye));
    let (why, _) = end(session.as_mut());
    assert!(
        why.contains("agent in the guest ended with exit status 0"),
        "{why}"
    );
}

#[test]
fn a_kernel_panic_is_noticed_with_the_consoles_last_lines() {
    let Some(mut bench) = bench(|_, options| {
        options.agent = vec!["panic".to_owned()];
    }) else {
        return;
    };
    let mut session = bench.target.open_session(&Boot::default()).unwrap();
    let (why, tail) = end(session.as_mut());
    assert!(
        why.contains("Kernel panic - not syncing: sysrq triggered crash"),
        "{why}"
    );
    assert!(tail.starts_with("Kernel panic"), "{tail}");
    assert!(tail.contains("sysrq_handle_crash"), "{tail}");
    assert!(session.read_console().unwrap().contains("Kernel panic"));
}

#[test]
fn a_killed_qemu_and_a_console_flood_are_noticed_and_bounded() {
    let Some(mut bench) = bench(|_, options| {
        options.agent = vec!["flood".to_owned()];
    }) else {
        return;
    };
    let mut session = bench.target.open_session(&Boot::default()).unwrap();
    let start = Instant::now();
    let mut text = String::new();
    while !text.contains("bytes of console left out") && start.elapsed() < ANSWER {
        std::thread::sleep(Duration::from_secs(1));
        text = session.read_console().unwrap();
        assert!(text.len() < 300 * 1024);
    }
    let mine = rustix::process::getpid();
    let qemu = children_of(
        mine.as_raw_nonzero().get(),
        Architecture::of_this_machine().qemu,
    );
    assert_eq!(qemu.len(), 1);
    let pid = rustix::process::Pid::from_raw(qemu[0]).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let (why, _) = end(session.as_mut());
    assert!(why.contains("signal: 9"), "{why}");
    drop(session);
    assert!(
        children_of(
            mine.as_raw_nonzero().get(),
            Architecture::of_this_machine().qemu
        )
        .is_empty()
    );
}

fn children_of(parent: i32, name: &str) -> Vec<i32> {
    let field = |status: &str, name: &str| {
        status
            .lines()
            .find_map(|l| l.strip_prefix(name).map(|v| v.trim().to_owned()))
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
        .filter(|pid: &i32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            // A name in /proc has 15 bytes.
            field(&status, "PPid:") == Some(parent.to_string())
                && field(&status, "Name:").is_some_and(|n| name.starts_with(&n))
        })
        .collect()
}

#[test]
fn a_kernel_that_does_not_boot_is_given_up_with_its_console() {
    let Some(mut bench) = bench(|spec, _| {
        spec.append = Some("rdinit=/no/such/init".to_owned());
    }) else {
        return;
    };
    match bench.target.boot(None, false) {
        Err(VmError::Gone { why, tail }) => {
            assert!(why.contains("Kernel panic"), "{why}");
            assert!(!tail.is_empty());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn topology_reaches_the_guest() {
    let Some(mut bench) = bench(|spec, _| {
        spec.cpus = 4;
        spec.topology = Some(vm::Topology {
            sockets: 1,
            llcs: 2,
            cores: 1,
            threads: 2,
            numa_nodes: 2,
        });
    }) else {
        return;
    };
    let guest = bench.target.boot(None, false).unwrap();
    let cpu = "/sys/devices/system/cpu";
    assert_eq!(run(&guest, &["cat", &format!("{cpu}/online")]).0, "0-3\n");
    assert_eq!(
        run(
            &guest,
            &["cat", &format!("{cpu}/cpu0/topology/core_cpus_list")]
        )
        .0,
        "0-1\n"
    );
    assert_eq!(
        run(&guest, &["cat", "/sys/devices/system/node/online"]).0,
        "0-1\n"
    );
    assert_eq!(
        run(&guest, &["cat", "/sys/devices/system/node/node1/cpulist"]).0,
        "2-3\n"
    );
    let shared = format!("{cpu}/cpu0/cache/index3/shared_cpu_list");
    assert_eq!(run(&guest, &["cat", &shared]).0, "0-1\n");
    let memory = |node: u32| {
        let file = format!("/sys/devices/system/node/node{node}/meminfo");
        let line = run(&guest, &["grep", "MemTotal", &file]).0;
        let kib = line.split_whitespace().rev().nth(1).unwrap();
        kib.parse::<u64>().unwrap()
    };
    let (first, second) = (memory(0), memory(1));
    assert!(first > 256 << 10 && second > 256 << 10, "{first} {second}");
}
