//! `schedlab provoke`: provocations, which do to a scheduler what has thrown schedulers out before. Each is small
//! and bounded, and works until it is killed. They change what only a guest may lose, so nothing is done outside one.

use doors::started::own_command;
use doors::written::{make_cgroup, remove_cgroup, write_kernel_file};
use load::allowed_cpus;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process, setpriority_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant, SystemTime};

/// One of the list.
#[derive(Debug)]
pub struct Provocation {
    /// Name on the command line and in files.
    pub name: &'static str,
    /// Sentence for the list.
    pub text: &'static str,
    /// Its work.
    pub act: Act,
}

/// Work of a provocation.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// Our own, which returns only when it fails.
    Own(fn() -> Result<Never, String>),
    /// A stressor of stress-ng, where that is installed.
    StressNg(&'static [&'static str]),
}

/// A value that cannot be.
#[derive(Debug, Clone, Copy)]
pub enum Never {}

/// All provocations.
pub static PROVOCATIONS: &[Provocation] = &[
    own(
        "hotplug",
        "takes one CPU after another offline for 50 ms, twice a second; never the first one",
        take_cpus_offline,
    ),
    own(
        "affinity",
        "two threads for each CPU that move themselves to a CPU at random, 2000 times a second each",
        || in_threads(change_affinity),
    ),
    own(
        "nice",
        "two threads for each CPU that change their own nice value, 2000 times a second each",
        || in_threads(change_nice),
    ),
    own(
        "forks",
        "bursts of 64 tasks that end at once, ten times a second",
        burst_tasks,
    ),
    own(
        "cgroups",
        "makes a cgroup, moves a process into it, changes its weight, moves the process back and removes the \
         group, a hundred times a second",
        churn_cgroups,
    ),
    own(
        "stops",
        "stops a busy process by a signal and lets it go on, a hundred times a second",
        stop_and_go,
    ),
    stress_ng(
        "stress-switch",
        "stress-ng --switch: two pairs that only switch to each other",
        &["--switch", "2"],
    ),
    stress_ng(
        "stress-schedpolicy",
        "stress-ng --schedpolicy: two processes that go through all policies",
        &["--schedpolicy", "2"],
    ),
    stress_ng(
        "stress-futex",
        "stress-ng --futex: two pairs that wake each other by futexes",
        &["--futex", "2"],
    ),
];

const fn own(
    name: &'static str,
    text: &'static str,
    act: fn() -> Result<Never, String>,
) -> Provocation {
    Provocation {
        name,
        text,
        act: Act::Own(act),
    }
}

const fn stress_ng(
    name: &'static str,
    text: &'static str,
    args: &'static [&'static str],
) -> Provocation {
    Provocation {
        name,
        text,
        act: Act::StressNg(args),
    }
}

/// The provocation with this name.
pub fn find(name: &str) -> Option<&'static Provocation> {
    PROVOCATIONS.iter().find(|known| known.name == name)
}

/// Name of the threads, as the agent and traces see it.
const THREAD: &str = "provocation";
/// Word on the command line of a kernel that schedlab booted.
const OF_GUEST: &str = "schedlab.init";
const EVERY: Duration = Duration::from_micros(500);
const TASKS: usize = 64;

/// Does what the provocation is, until the process is killed.
pub fn provoke_main(name: &str) -> Result<(), String> {
    let command_line = doors::read::kernel_text("/proc/cmdline").unwrap_or_default();
    if !command_line.split_whitespace().any(|word| word == OF_GUEST) {
        return Err(format!(
            "the provocation {name} is for guests that schedlab starts, and this is none"
        ));
    }
    match find(name).map(|known| known.act) {
        Some(Act::Own(act)) => act().map(|never| match never {}),
        Some(Act::StressNg(_)) | None => Err(format!("{name} is no provocation of our own")),
    }
}

/// Work in two threads for each CPU; this one does it too.
fn in_threads(work: fn() -> Result<Never, String>) -> Result<Never, String> {
    let threads = 2 * allowed_cpus().len();
    for _ in 1..threads.max(2) {
        let started = Builder::new().name(THREAD.to_owned()).spawn(work);
        started.map_err(|e| format!("start a thread: {e}"))?;
    }
    work()
}

/// Chance of each thread for itself. What is provoked need not be the same twice.
fn make_chance() -> ChaCha8Rng {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    ChaCha8Rng::seed_from_u64(u64::from(now.subsec_nanos()))
}

/// Uses the CPU for a moment: one that never did would not be seen to disturb.
fn work_for(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn change_affinity() -> Result<Never, String> {
    let cpus = allowed_cpus();
    let mut chance = make_chance();
    loop {
        let cpu = cpus[chance.random_range(0..cpus.len())];
        // A CPU may be offline by another provocation.
        let _ = load::keep_to(&[cpu]);
        work_for(Duration::from_micros(50));
        let _ = load::keep_to(&cpus);
        sleep(EVERY);
    }
}

fn change_nice() -> Result<Never, String> {
    let mut chance = make_chance();
    loop {
        // Of the calling thread: the kernel takes it for a process of its own.
        setpriority_process(None, chance.random_range(-20..20))
            .map_err(|e| format!("change the nice value: {e}"))?;
        work_for(Duration::from_micros(50));
        sleep(EVERY);
    }
}

fn burst_tasks() -> Result<Never, String> {
    loop {
        let tasks = (0..TASKS).map(|_| {
            let work = || work_for(Duration::from_micros(20));
            Builder::new().name(THREAD.to_owned()).spawn(work)
        });
        // A limit that is reached is a part of it.
        let tasks: Vec<_> = tasks.flatten().collect();
        for task in tasks {
            let _ = task.join();
        }
        sleep(Duration::from_millis(100));
    }
}

/// CPUs that can be taken offline, by their files.
fn switches() -> Vec<PathBuf> {
    let cpus = allowed_cpus().into_iter().filter(|cpu| *cpu > 0);
    let switch = |cpu| PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
    // One that an earlier trial left offline is not among those that are allowed.
    let entries = fs::read_dir("/sys/devices/system/cpu")
        .into_iter()
        .flatten();
    let all = entries.flatten().map(|entry| entry.path().join("online"));
    let offline = all.filter(|path| doors::read::kernel_text(path).is_ok_and(|t| t.trim() == "0"));
    let mut found: Vec<PathBuf> = cpus.map(switch).chain(offline).collect();
    found.retain(|path| path.exists());
    found.sort();
    found.dedup();
    found
}

fn take_cpus_offline() -> Result<Never, String> {
    let switches = switches();
    if switches.is_empty() {
        return Err("no CPU can be taken offline: the guest needs two, --cpus 2".to_owned());
    }
    let put = |path: &Path, state: &str| write_kernel_file(path, state);
    for path in &switches {
        // Online already, as a rule.
        let _ = put(path, "1");
    }
    loop {
        for path in &switches {
            work_for(Duration::from_millis(10));
            sleep(Duration::from_millis(440));
            if put(path, "0").is_ok() {
                sleep(Duration::from_millis(50));
                put(path, "1").map_err(|e| format!("{}: {e}", path.display()))?;
            }
        }
    }
}

/// A process of our own that keeps a CPU busy until it is killed, with its number.
fn start_busy() -> Result<(Child, Pid), String> {
    let child = own_command(Path::new("/proc/self/exe"))
        .args(["spin", "--threads", "1"])
        .spawn()
        .map_err(|e| format!("start a busy process: {e}"))?;
    let pid = Pid::from_child(&child);
    Ok((child, pid))
}

fn stop_and_go() -> Result<Never, String> {
    let (_busy, pid) = start_busy()?;
    let send = |signal| kill_process(pid, signal).map_err(|e| format!("send a signal: {e}"));
    loop {
        work_for(Duration::from_micros(500));
        sleep(Duration::from_millis(5));
        send(Signal::STOP)?;
        sleep(Duration::from_millis(5));
        send(Signal::CONT)?;
    }
}

fn churn_cgroups() -> Result<Never, String> {
    let root = Path::new("/sys/fs/cgroup");
    let group = root.join("schedlab-provocation");
    let (_busy, pid) = start_busy()?;
    let home = format!("/proc/{}/cgroup", pid.as_raw_nonzero());
    let home = doors::read::kernel_text(home).unwrap_or_default();
    let home = home.lines().find_map(|line| line.strip_prefix("0::/"));
    let home = root.join(home.unwrap_or_default()).join("cgroup.procs");
    let number = pid.as_raw_nonzero().to_string();
    // Where a controller comes down, the scheduler is told of the groups.
    let _ = write_kernel_file(&root.join("cgroup.subtree_control"), "+cpu");
    let mut chance = make_chance();
    let mut churn = || {
        make_cgroup(&group)?;
        // The weight is there where the controller is.
        let weight: u32 = chance.random_range(1..=1_000);
        let _ = write_kernel_file(&group.join("cpu.weight"), weight.to_string());
        write_kernel_file(&group.join("cgroup.procs"), &number)?;
        sleep(Duration::from_millis(5));
        write_kernel_file(&home, &number)?;
        remove_cgroup(&group)
    };
    // What a killed one left.
    let _ = remove_cgroup(&group);
    loop {
        churn().map_err(|e| format!("the cgroup {}: {e}", group.display()))?;
        work_for(Duration::from_micros(500));
        sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn nothing_is_provoked_outside_a_guest() {
        for known in PROVOCATIONS {
            let refused = provoke_main(known.name).unwrap_err();
            assert!(refused.contains("for guests"), "{refused}");
        }
    }

    #[test]
    fn each_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = PROVOCATIONS.iter().map(|known| known.name).collect();
        assert_eq!(names.len(), PROVOCATIONS.len());
    }
}
