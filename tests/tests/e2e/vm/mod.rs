//! Real guests with their own kernel, here under software emulation where KVM does not work.

#![allow(clippy::disallowed_methods)]

mod apart;
mod at_once;
mod container;
mod deaths;
mod documented;
pub mod guests;
mod isolation;
mod kernels;
mod manage;
mod proof;
mod races;
mod snapshot;
mod turns;
mod virtual_time;

use guests::{KERNEL, experiment, trials};
use results::StoredTrial;
use std::collections::BTreeSet;
use std::process::Command;
use tests::{Bench, beside_others, expect_code, no_guests, stderr, stdout, with_lock_of_runs};

#[test]
fn what_cannot_work_is_said_before_the_first_trial() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
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
        (
            vec!["--vm", KERNEL, "--memory", "100M"],
            3,
            "100 MiB of memory are too few for a guest",
        ),
        (vec!["--vm", KERNEL, "--memory", "much"], 2, "size"),
        (vec!["--vm", KERNEL, "--clock", "sun"], 2, "virtual"),
        (
            vec!["--vm", KERNEL, "--clock", "virtual", "--cpus", "2"],
            2,
            "one",
        ),
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
    // Beside another run `check` starts nothing, so it would not see what this is about.
    let _turn = beside_others();
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
    let _turn = with_lock_of_runs();
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

#[test]
fn each_trial_has_a_boot_of_its_own_where_that_is_asked_for() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
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
    // A host that is busy may spoil one, which is repeated.
    let mut trials = trials(&bench);
    trials.retain(|stored| stored.trial.is_ok());
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
    let _turn = beside_others();
    let bench = Bench::default();
    let (home, lock) = (bench.path("home"), bench.path("lock"));
    for directory in [&home, &lock] {
        std::fs::create_dir(directory).expect("a directory");
    }
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
        .env("SCHEDLAB_TEST_LOCK", &lock)
        .env_remove("SCHEDLAB_CACHE_DIR")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("XDG_STATE_HOME")
        .output()
        .expect("setpriv");
    expect_code(&output, 0);
    assert!(trials(&bench).iter().all(|t| t.trial.is_ok()));
}
