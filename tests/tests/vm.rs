//! Real guests with their own kernel: treatment is proven, or the trial is void.
//!
//! Here under software emulation, where KVM does not work. `make test` builds
//! sched/scx_faulty first, a scheduler that fails in a chosen way.

use model::{Fact, TrialResult};
use results::{ResultSet, StoredTrial};
use std::collections::BTreeSet;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tests::{Bench, alone, expect_code, no_guests, sched_program, stderr, stdout};

const KERNEL: &str = "debian:sid";

fn faulty() -> Option<PathBuf> {
    sched_program("scx_faulty")
}

/// Why guests with a scheduler that fails cannot be tested here, if so.
fn no_faulty_guests() -> Option<&'static str> {
    if let Some(why) = no_guests() {
        return Some(why);
    }
    if faulty().is_none() {
        return Some("sched/scx_faulty is not built; `make test` builds it");
    }
    None
}

/// One arm of the file below: its name, its fault, what else it says.
fn arm(name: &str, fault: &str, more: &str) -> String {
    let program = faulty().expect("looked for before");
    format!(
        "[[arm]]\nname = \"{name}\"\nscheduler = \"{}\"\nargs = [\"--fault\", \"{fault}\"]\n{more}\n",
        program.display()
    )
}

fn experiment(arms: &str, command: &str) -> String {
    format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"1G\"\n\
         [[arm]]\nname = \"eevdf\"\n{arms}\
         [[workload]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\nmax-attempts = 1\n"
    )
}

fn trials(bench: &Bench) -> Vec<StoredTrial> {
    ResultSet::read(&bench.path("out"))
        .expect("readable")
        .trials
}

/// Facts that held for the whole trial.
fn fact<'a>(result: &'a TrialResult, what: &str) -> &'a Fact {
    let mut facts = result.evidence.facts.iter();
    let fact = facts.find(|fact| fact.what == what);
    fact.unwrap_or_else(|| panic!("{what}: {:?}", result.evidence))
}

fn of<'a>(trials: &'a [StoredTrial], arm: &str) -> &'a StoredTrial {
    let mut of_arm = trials.iter().filter(|t| t.trial.arm == arm);
    of_arm.next().unwrap_or_else(|| panic!("{arm} was tried"))
}

#[test]
fn a_scheduler_in_force_is_proven_before_during_and_after() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let file = bench.file(
        "good.toml",
        &experiment(&arm("good", "none", ""), "sleep 2"),
    );
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    let trials = trials(&bench);
    let of_good = &of(&trials, "good").trial.result;
    assert!(of_good.evidence.points.len() >= 3, "{of_good:?}");
    let scheduler = fact(of_good, "sched_ext scheduler");
    assert!(scheduler.found.starts_with("faulty"), "{scheduler:?}");
    assert_eq!(scheduler.wanted.as_ref(), Some(&scheduler.found));
    let binary = of_good
        .evidence
        .scheduler_binary
        .as_ref()
        .expect("recorded");
    assert_eq!(binary.sha256.len(), 64);
    let of_default = &of(&trials, "eevdf").trial.result;
    let scheduler = fact(of_default, "sched_ext scheduler");
    assert_eq!(
        (scheduler.found.as_str(), scheduler.disagrees()),
        ("none", None)
    );
    assert!(stdout(&output).contains("emulated") || !stdout(&output).contains("tcg"));
}

#[test]
fn every_way_to_fail_voids_the_trial_with_its_reason_and_gives_no_figure() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let arms = [
        arm("late", "late:60", "attach-limit = \"2s\""),
        arm("stall", "stall:1", ""),
        arm("error", "error:1", ""),
        arm("never", "never", "attach-limit = \"2s\""),
        arm("exit", "exit", ""),
    ]
    .concat();
    let file = bench.file("faults.toml", &experiment(&arms, "sleep 5"));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 4);
    let trials = trials(&bench);
    for (arm, reason) in [
        ("late", "not in force after 2 s"),
        ("stall", "runnable task stall"),
        ("error", "scx_bpf_error"),
        ("never", "not in force after 2 s"),
        ("exit", "ended with exit status: 1 before it was attached"),
    ] {
        let result = &of(&trials, arm).trial.result;
        assert_eq!(result.state.name(), "void", "{arm}: {:?}", result.state);
        let why = result.state.why().expect("void trials say why");
        assert!(why.contains(reason), "{arm}: {why}");
        assert!(
            !result.metrics.iter().any(|m| m.metric == "wall_time"),
            "{arm} has a figure"
        );
    }
    assert!(of(&trials, "eevdf").trial.is_ok(), "the baseline counts");
}

#[test]
fn a_scheduler_that_is_killed_in_the_middle_voids_the_trial() {
    if let Some(why) = no_faulty_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let command = "sleep 1; pkill -9 -x scx_faulty; sleep 1; true";
    let file = bench.file(
        "kill.toml",
        &experiment(&arm("killed", "none", ""), command),
    );
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 4);
    let trials = trials(&bench);
    let state = &of(&trials, "killed").trial.result.state;
    assert_eq!(state.name(), "void", "{state:?}");
    assert!(
        state.why().is_some_and(|w| w.contains("signal: 9")),
        "{state:?}"
    );
}

#[test]
fn a_guest_or_an_agent_that_dies_voids_its_trial_and_the_run_goes_on() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    // Each only under one arm: its policy is what the command looks at.
    let arms = "[[arm]]\nname = \"panics\"\npolicy = { class = \"batch\" }\n\
                [[arm]]\nname = \"loses-its-agent\"\npolicy = { class = \"idle\" }\n";
    let command = "case $(chrt -p $$) in \
                   *BATCH*) echo c > /proc/sysrq-trigger ;; \
                   *IDLE*) pkill -9 -f '[s]chedlab agent' ;; esac; sleep 1";
    let file = bench.file("deaths.toml", &experiment(arms, command));
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 4);
    let trials = trials(&bench);
    assert!(of(&trials, "eevdf").trial.is_ok());
    let void = of(&trials, "panics");
    let why = void.trial.result.state.why().expect("void");
    assert!(why.contains("Kernel panic"), "{why}");
    assert!(why.contains("sysrq_handle_crash"), "last lines: {why}");
    let console = std::fs::read_to_string(void.dir.join("console.log")).expect("kept");
    assert!(console.contains("Kernel panic"), "{console}");
    let why = of(&trials, "loses-its-agent").trial.result.state.why();
    let why = why.expect("void");
    assert!(
        why.contains("agent in the guest ended with signal 9"),
        "{why}"
    );
    let text = stdout(&output);
    assert!(!text.contains("sysrq_handle_crash"), "one line: {text}");
}

/// QEMU below this schedlab.
fn qemu_of(schedlab: u32) -> Option<rustix::process::Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{schedlab}/task")).ok()?;
    let children = tasks.flatten().filter_map(|task| {
        let list = std::fs::read_to_string(task.path().join("children")).ok()?;
        Some(
            list.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    });
    let mut qemu = children.flatten().filter(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.starts_with("qemu-system"))
    });
    rustix::process::Pid::from_raw(qemu.next()?.parse().ok()?)
}

/// Wait until this many trials are on disk, then do this to the QEMU that runs.
fn after_trials(bench: &Bench, schedlab: u32, count: usize, signal: rustix::process::Signal) {
    let limit = Instant::now() + Duration::from_secs(300);
    let there = || std::fs::read_dir(bench.path("out/trials")).map_or(0, Iterator::count);
    while there() < count {
        assert!(Instant::now() < limit, "{count} trials never came");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Into the next trial: a boot, if there is one, is not what is tested.
    std::thread::sleep(Duration::from_secs(1));
    let qemu = qemu_of(schedlab).expect("a guest runs");
    rustix::process::kill_process(qemu, signal).expect("it runs");
}

#[test]
fn a_qemu_that_is_killed_or_hangs_voids_its_trial_and_the_run_goes_on() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let text = format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"512M\"\n\
         [[arm]]\nname = \"eevdf\"\n\
         [[workload]]\nkind = \"command\"\ntime-limit = \"20s\"\n\
         command = [\"sh\", \"-c\", \"echo in the guest > /dev/console; sleep 4\"]\n\
         [stop]\nmin-blocks = 3\nmax-blocks = 3\n"
    );
    let file = bench.file("lost.toml", &text);
    let mut run = bench.command(&["run", &file, "-o", "out"]);
    let mut run = run.stdout(Stdio::null()).spawn().expect("schedlab starts");
    after_trials(&bench, run.id(), 1, rustix::process::Signal::KILL);
    // The void one, and its second attempt.
    after_trials(&bench, run.id(), 3, rustix::process::Signal::STOP);
    assert_eq!(run.wait().expect("it ends").code(), Some(4));

    let trials = trials(&bench);
    let states: Vec<_> = trials.iter().map(|t| &t.trial.result.state).collect();
    assert!(
        states.iter().filter(|s| s.why().is_none()).count() >= 2,
        "{states:?}"
    );
    assert!(states.len() >= 5, "each was tried again: {states:?}");
    let voids = states.iter().filter(|s| s.name() == "void");
    let voids = voids.filter_map(|s| s.why());
    let voids: Vec<&str> = voids.collect();
    assert_eq!(voids.len(), 2, "{voids:?}");
    assert!(voids[0].contains("signal: 9"), "{voids:?}");
    assert!(voids[1].contains("was silent for 60 s"), "{voids:?}");
    for void in voids {
        assert!(
            void.contains("in the guest"),
            "the console's last lines: {void}"
        );
    }
}

#[test]
fn what_cannot_work_is_said_before_the_first_trial() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let not_a_kernel = bench.file("vmlinuz", "this is no kernel");
    for (args, code, says) in [
        (vec!["--vm", &not_a_kernel], 3, "kernel"),
        (
            vec!["--vm", "debian:linux-image-no-such-thing"],
            3,
            "no-such-thing",
        ),
        (vec!["--vm", KERNEL, "--memory", "10T"], 3, "memory"),
        (vec!["--vm", KERNEL, "--memory", "much"], 2, "size"),
    ] {
        let mut all = vec!["run", "-o", "out", "-a", "default"];
        all.extend(args.iter());
        all.extend(["--", "true"]);
        let output = bench.run(&all);
        expect_code(&output, code);
        assert!(
            stderr(&output).contains(says),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(!bench.path("out").exists(), "{args:?}");
    }
}

#[test]
fn a_kernels_name_is_no_path_to_write_to() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let bench = Bench::default();
    // What apt keeps its state in, and its sources: names that others use too.
    let theirs = ["v/status", "v/sources.list", "cache/v/status"].map(|f| bench.path(f));
    for file in &theirs {
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("made");
        std::fs::write(file, "keep").expect("written");
    }
    let absolute = bench.path("v").display().to_string();
    for name in [
        absolute.as_str(),
        "../../v",
        "../v",
        "a/../../v",
        "a/../../../v",
        "-o",
        "sid/..",
    ] {
        let kernel = format!("kernel = \"debian:{name}\"");
        let text = experiment("", "true").replace(&format!("kernel = \"{KERNEL}\""), &kernel);
        let file = bench.file("names.toml", &text);
        let mut check = bench.command(&["check", &file]);
        let output = check
            .env("SCHEDLAB_CACHE_DIR", bench.path("cache"))
            .output();
        let output = output.expect("schedlab starts");
        expect_code(&output, 3);
        let said = stderr(&output);
        assert!(said.contains("no suite of Debian"), "{name}: {said}");
    }
    for file in &theirs {
        assert_eq!(std::fs::read_to_string(file).expect("there"), "keep");
    }
    let entries = |dir: &str| std::fs::read_dir(bench.path(dir)).expect("there").count();
    assert_eq!((entries("v"), entries("cache")), (2, 1), "nothing was made");
}

#[test]
fn apt_does_not_run_the_hosts_hooks_and_goes_through_its_proxy() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let bench = Bench::default();
    let hooked = bench.path("hooked");
    let config = format!(
        "APT::Update::Pre-Invoke {{\"touch {0}\";}};\nAPT::Update::Post-Invoke {{\"touch {0}\";}};\n\
         Acquire::http::Proxy \"http://127.0.0.1:1\";\nAcquire::https::Proxy \"http://127.0.0.1:1\";\n\
         Acquire::Retries \"0\";\n",
        hooked.display()
    );
    let config = bench.file("apt.conf", &config);
    let file = bench.file("sid.toml", &experiment("", "true"));
    let mut check = bench.command(&["check", &file]);
    check.env("SCHEDLAB_CACHE_DIR", bench.path("cache"));
    let output = check
        .env("APT_CONFIG", config)
        .output()
        .expect("schedlab starts");
    expect_code(&output, 3);
    let said = stderr(&output);
    if said.contains("is not installed") || said.contains("are not there") {
        return tests::skipped(format!("no apt: {said}"));
    }
    assert!(said.contains("127.0.0.1"), "the proxy is asked: {said}");
    assert!(!hooked.exists(), "a hook of the host ran");
}

/// Guests in the background of one test, and its snapshot, which are gone after it.
struct Background<'a> {
    bench: &'a Bench,
    snapshot: String,
}

impl<'a> Background<'a> {
    fn new(bench: &'a Bench) -> Self {
        Background {
            bench,
            snapshot: format!("test-{}", std::process::id()),
        }
    }

    fn vm(&self, args: &[&str]) -> Output {
        let mut command = self.bench.command(&["vm"]);
        command.args(args);
        let output = command.env("XDG_RUNTIME_DIR", self.bench.dir.path());
        output.output().expect("schedlab starts")
    }

    /// Standard output of what must succeed.
    fn said(&self, args: &[&str]) -> String {
        let output = self.vm(args);
        expect_code(&output, 0);
        stdout(&output)
    }

    fn sh(&self, guest: &str, script: &str) -> String {
        self.said(&["exec", "--name", guest, "/bin/busybox", "sh", "-c", script])
    }
}

impl Drop for Background<'_> {
    fn drop(&mut self) {
        for guest in ["one", "two"] {
            self.vm(&["stop", "--name", guest]);
        }
        self.vm(&["snapshot", "delete", &self.snapshot]);
    }
}

#[test]
fn a_snapshot_goes_on_where_it_was_taken() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    if let Some(why) = small_image(&bench) {
        return tests::skipped(why);
    }
    let lab = Background::new(&bench);
    let saved = lab.snapshot.as_str();
    let start = ["start", "--name", "one", "--memory", "512M"];
    // A relative path must mean the same image later, from any directory.
    lab.said(&[&start[..], &["--root", "image:image.squashfs"]].concat());
    lab.sh("one", "echo before > /note");
    lab.said(&["snapshot", "create", saved, "--name", "one"]);
    lab.sh("one", "echo after > /note");
    assert_eq!(lab.sh("one", "cat /note"), "after\n", "the guest goes on");

    let twice = lab.vm(&["snapshot", "create", saved, "--name", "one"]);
    expect_code(&twice, 3);
    assert!(stderr(&twice).contains("it exists"), "{}", stderr(&twice));

    let list: serde_json::Value =
        serde_json::from_str(&lab.said(&["snapshot", "list", "--format", "json"])).expect("JSON");
    let ours = list.as_array().expect("a list").iter();
    let ours: Vec<_> = ours.filter(|s| s["name"] == saved).collect();
    assert_eq!(ours.len(), 1);
    let image = bench.path("image.squashfs").canonicalize().expect("there");
    assert_eq!(ours[0]["root"], format!("image:{}", image.display()));
    assert!(
        ours[0]["bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 1 << 20)
    );

    lab.said(&["snapshot", "restore", saved, "--name", "two"]);
    assert_eq!(lab.sh("two", "cat /note"), "before\n");
    lab.said(&["snapshot", "delete", saved]);
    let gone = lab.vm(&["snapshot", "restore", saved]);
    expect_code(&gone, 3);
    assert!(stderr(&gone).contains("no such snapshot"));
}

/// busybox and its libraries as a squashfs image; or why there is none.
fn small_image(bench: &Bench) -> Option<String> {
    let script = "set -e; mkdir -p r/bin r/dev r/proc r/sys r/run; cp /bin/busybox r/bin/; \
         for l in $(ldd /bin/busybox 2>/dev/null | grep -o '/[^ ]*'); do \
         mkdir -p r$(dirname $l); cp -L $l r$l; done; tar -C r -c . | tar2sqfs -q image.squashfs";
    let mut command = Command::new("sh");
    let made = command
        .args(["-c", script])
        .current_dir(bench.dir.path())
        .output();
    let made = made.expect("sh");
    (!made.status.success()).then(|| {
        let why = stderr(&made);
        format!("no image can be made (busybox, squashfs-tools-ng): {why}")
    })
}

#[test]
fn a_guest_over_the_hosts_files_has_its_ports_and_cannot_be_saved() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let lab = Background::new(&bench);
    let forward = format!("{}:7000", free_port());
    let start = ["start", "--name", "one", "--memory", "512M", "--forward"];
    lab.said(&[&start[..], &[&forward]].concat());

    let answer = std::thread::scope(|threads| {
        let port = forward.split(':').next().and_then(|p| p.parse().ok());
        let guest = "echo from the guest | timeout 60 busybox nc -l -p 7000";
        threads.spawn(|| lab.vm(&["exec", "--name", "one", "sh", "-c", guest]));
        read_from(port.expect("a port"))
    });
    assert_eq!(answer, "from the guest\n");
    let taken = lab.vm(&["start", "--name", "two", "--forward", &forward]);
    expect_code(&taken, 3);
    assert!(
        stderr(&taken).contains("cannot be bound"),
        "{}",
        stderr(&taken)
    );

    let refused = lab.vm(&["snapshot", "create", &lab.snapshot, "--name", "one"]);
    expect_code(&refused, 3);
    let said = stderr(&refused);
    assert!(said.contains("--root image:PATH"), "{said}");
    let going_on = lab.said(&["exec", "--name", "one", "echo", "still", "here"]);
    assert_eq!(going_on, "still here\n");
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("bound").port()
}

/// QEMU accepts before the guest listens, and then closes: try until there is an answer.
fn read_from(port: u16) -> String {
    let limit = Instant::now() + Duration::from_secs(60);
    let mut text = String::new();
    while text.is_empty() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(200));
        if let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            let _ = stream.read_to_string(&mut text);
        }
    }
    text
}

#[test]
fn each_trial_has_a_boot_of_its_own_where_that_is_asked_for() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let more = std::thread::available_parallelism().map_or(2, usize::from) * 2;
    let text = format!(
        "[target]\nkind = \"vm\"\nkernel = \"{KERNEL}\"\nmemory = \"512M\"\n\
         cpus = {more}\nhost-cpus = \"0\"\nreset = \"trial\"\n\
         [[arm]]\nname = \"eevdf\"\n[[arm]]\nname = \"batch\"\npolicy = {{ class = \"batch\" }}\n\
         [[workload]]\nkind = \"command\"\ncommand = [\"cat\", \"/proc/sys/kernel/random/boot_id\"]\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\n"
    );
    let file = bench.file("reset.toml", &text);
    let output = bench.run(&["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    let trials = trials(&bench);
    let boot_of = |t: &StoredTrial| std::fs::read_to_string(t.dir.join("stdout.log"));
    let boots: BTreeSet<String> = trials.iter().map(|t| boot_of(t).expect("kept")).collect();
    assert_eq!((trials.len(), boots.len()), (2, 2), "{boots:?}");
    for trial in &trials {
        let metrics = &trial.trial.result.metrics;
        let pinned = metrics.iter().find(|m| m.metric == "host_pinned_cpus");
        assert_eq!(pinned.map(|m| m.value), Some(1.0));
    }
    let said = stdout(&output)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        said.contains(&format!("the guest has {more} CPUs and the host only")),
        "{said}"
    );
    assert!(
        said.contains(&format!("{more} vCPUs are pinned to 1 CPUs")),
        "{said}"
    );
}

#[test]
fn an_ordinary_user_can_do_all_of_it() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    if !tests::is_root() {
        return tests::skipped("only root can become another user; the other tests ran as one");
    }
    let _turn = alone();
    let bench = Bench::default();
    let home = bench.path("home");
    std::fs::create_dir(&home).expect("a home");
    let chown = Command::new("chown")
        .args(["-R", "nobody"])
        .arg(bench.dir.path())
        .status();
    assert!(chown.is_ok_and(|s| s.success()));
    // The tree may stand below a directory that only root may enter.
    let program = bench.path("schedlab");
    tests::write_program(
        &program,
        std::fs::read(tests::schedlab()).expect("the program"),
    );
    let output = Command::new("setpriv")
        .args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"])
        .arg(&program)
        .args([
            "run",
            "-o",
            "out",
            "--vm",
            KERNEL,
            "-a",
            "default",
            "--max-blocks",
            "1",
        ])
        .args(["--", "true"])
        .current_dir(bench.dir.path())
        .env("HOME", &home)
        .env_remove("SCHEDLAB_CACHE_DIR")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_STATE_HOME")
        .output()
        .expect("setpriv");
    expect_code(&output, 0);
    assert!(trials(&bench).iter().all(|t| t.trial.is_ok()));
}

/// The Debian kernel that a check has just fetched: the directory of its modules, in which
/// the image lies.
fn cached_kernel() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = set("SCHEDLAB_CACHE_DIR")
        .or_else(|| set("XDG_CACHE_HOME").map(|dir| dir.join("schedlab")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/schedlab")))
        .expect("a cache");
    let entries = |dir: PathBuf| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut releases = entries(cache.join("kernels"))
        .flat_map(|package| entries(package.path().join("usr/lib/modules")))
        .map(|release| release.path());
    releases
        .find(|dir| dir.join("vmlinuz").exists())
        .expect("a Debian kernel")
}

/// A kernel whose image says `#9` where the kernel in it says `#1`.
fn kernel_that_says_another_build(right: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(right).expect("readable").flatten() {
        let copy = to.join(entry.file_name());
        if entry.file_name() != "vmlinuz" {
            std::os::unix::fs::symlink(entry.path(), copy).expect("a link");
            continue;
        }
        let mut bytes = std::fs::read(entry.path()).expect("readable");
        let head = &bytes[..0x8000.min(bytes.len())];
        let at = head.windows(6).position(|part| part == b") #1 S");
        bytes[at.expect("the build in the setup header") + 3] = b'9';
        std::fs::write(copy, bytes).expect("room");
    }
}

#[test]
fn a_guest_with_another_kernel_than_its_arm_says_is_void_with_both_names() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let right = bench.file("right.toml", &experiment("", "true"));
    expect_code(&bench.run(&["check", &right]), 0);
    kernel_that_says_another_build(&cached_kernel(), &bench.path("kernel"));
    let image = bench.path("kernel/vmlinuz");
    let arm = format!(
        "[[arm]]\nname = \"other\"\nkernel = \"{}\"\n",
        image.display()
    );
    let file = bench.file("other.toml", &experiment(&arm, "true"));
    expect_code(&bench.run(&["run", &file, "-o", "out"]), 4);
    let trials = trials(&bench);
    let other = &of(&trials, "other").trial.result;
    let why = other.state.why().expect("void");
    assert!(why.starts_with("the kernel was "), "{why}");
    assert!(why.contains(" #1 SMP") && why.contains(" #9 SMP"), "{why}");
    assert!(other.metrics.is_empty());
    let right = &of(&trials, "eevdf").trial.result;
    assert_eq!(right.state.why(), None);
    for what in ["kernel", "kernel build ID"] {
        let fact = fact(right, what);
        assert_eq!(fact.wanted.as_ref(), Some(&fact.found));
    }
    // Only the text in the image is another one, the kernel in it is the same.
    assert_eq!(fact(other, "kernel build ID").disagrees(), None);
}

/// The guest's memcached listens on its loopback address only, and what the load writes stays
/// on the machine that it runs on.
const LOADS_APART: &str = r#"
[target]
kind = "vm"
kernel = "debian:sid"
memory = "1G"
[[arm]]
name = "default"
[[arm]]
name = "batch"
policy = { class = "batch" }
[[workload]]
kind = "http"
loads = ["50/s"]
duration = "1s"
warmup = "100ms"
connections = 2
metrics = ["request_p50"]
load-on = "controller"
[[workload]]
kind = "command"
command = ["bash", "-c", """
  exec 3<>/dev/tcp/127.0.0.1/{store.port}
  printf 'version\\r\\n' >&3
  head -n 1 <&3 | tee {folder}/said >> /PLACE/said"""]
load-on = "controller"
keep = ["said"]
[[workload.service]]
name = "store"
command = ["memcached", "-l", "127.0.0.1", "-U", "0", "-u", "nobody", "-p", "{port}"]
ports = ["main"]
[stop]
min-blocks = 1
max-blocks = 1
"#;

#[test]
fn a_load_on_the_controller_asks_the_services_in_the_guest() {
    let _alone = alone();
    let memcached = Command::new("memcached").arg("-V").output();
    if let Some(why) = no_guests().or(memcached.err().map(|_| "memcached is not installed")) {
        return tests::skipped(why);
    }
    let bench = Bench::default();
    let text = LOADS_APART.replace("/PLACE", &bench.dir.path().display().to_string());
    let file = bench.file("apart.toml", &text);
    let said = bench.run(&["run", &file, "-o", "out", "--quiet"]);
    expect_code(&said, 0);
    let trials = trials(&bench);
    assert_eq!(trials.len(), 4);
    for stored in &trials {
        let result = &stored.trial.result;
        assert!(stored.trial.is_ok(), "{:?}", result.state);
        let has = |name: &str| result.metrics.iter().any(|m| m.metric == name);
        let wanted = match stored.trial.cell.starts_with("http") {
            true => "request_p50",
            false => "wall_time",
        };
        assert!(has(wanted) && has("steal_time"), "{:?}", result.metrics);
        let kept = std::fs::read_to_string(stored.dir.join("kept/load/said"));
        assert_eq!(
            kept.is_ok_and(|said| said.starts_with("VERSION")),
            wanted == "wall_time"
        );
        // The kernel that is proven is the guest's.
        assert!(fact(result, "kernel").wanted.is_some());
    }
    let answers = std::fs::read_to_string(bench.path("said")).unwrap_or_default();
    assert_eq!(answers.matches("VERSION").count(), 2, "{answers}");
}

#[test]
fn a_load_on_the_controller_that_its_arm_is_for_or_that_has_no_service_is_an_error() {
    let bench = Bench::default();
    let check = |text: &str| {
        let file = bench.file("wrong.toml", text);
        let said = bench.run(&["plan", &file]);
        expect_code(&said, 2);
        stderr(&said)
    };
    let for_load = LOADS_APART.replace("class = \"batch\" }", "class = \"batch\" }\nto = \"load\"");
    let said = check(&for_load);
    assert!(said.contains("runs on the controller"), "{said}");
    let alone = LOADS_APART
        .split("[[workload.service]]")
        .next()
        .unwrap_or_default();
    let said = check(alone);
    assert!(
        said.contains("nothing of the workload `bash` would run on the target"),
        "{said}"
    );
}
