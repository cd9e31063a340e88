//! Kernels that a real machine boots: a Debian with GRUB and systemd on a disk of its own, two
//! kernels, and one that panics.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use model::{Trial, TrialState};
use results::ResultSet;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};
use tests::{Bench, Cluster, Machine, expect_code, stderr};

const BLOCKS: u32 = 3;
/// Fifteen boots under emulation, beside other work.
const LIMIT: Duration = Duration::from_secs(3000);

/// The machine's own kernel, and the other one that boots.
fn kernels(machine: &Machine) -> [String; 2] {
    let kernels = machine.wait("uname -r; ls /boot | sed -n 's/^vmlinuz-//p' | grep -v broken");
    let mut kernels = kernels.lines();
    let own = kernels.next().unwrap();
    let other = kernels.find(|kernel| *kernel != own).unwrap();
    [own.to_owned(), other.to_owned()]
}

/// Two kernels of Debian and one that panics, the machine's own first.
fn experiment(target: &str, machine: &Machine) -> String {
    let [own, other] = kernels(machine);
    let arm =
        |name: &str, kernel: &str| format!("[[arm]]\nname = \"{name}\"\nkernel = \"{kernel}\"\n");
    [
        target,
        &arm("own", &own),
        &arm("other", &other),
        &arm("broken", "6.1.0-broken"),
        "[[workload]]\nkind = \"wakeup\"\nduration = \"2s\"\nwarmup = \"1s\"\n",
        &format!("[stop]\nmin-blocks = {BLOCKS}\nmax-blocks = {BLOCKS}\nmax-attempts = 1\n"),
    ]
    .concat()
}

fn install(machine: &Machine) {
    machine.copy(&machine.stripped(), "/usr/local/bin/schedlab");
}

/// All that was measured is there, each trial on its kernel.
fn look_at(trials: &[Trial]) {
    let good: Vec<&Trial> = trials.iter().filter(|trial| trial.is_ok()).collect();
    let places: BTreeSet<(u32, &str)> = good
        .iter()
        .map(|trial| (trial.place.block, trial.arm.as_str()))
        .collect();
    let wanted = (1..=BLOCKS).flat_map(|block| ["other", "own"].map(|arm| (block, arm)));
    assert_eq!(places, wanted.collect());
    for trial in good {
        let mut facts = trial.result.evidence.facts.iter();
        let kernel = facts.find(|fact| fact.what == "kernel").unwrap();
        assert_eq!(Some(&kernel.found), kernel.wanted.as_ref(), "{kernel:?}");
    }
    let mut broken = trials.iter().filter(|trial| trial.arm == "broken");
    let TrialState::Void { why } = &broken.next().unwrap().result.state else {
        panic!("a kernel that panics counts");
    };
    assert!(why.contains("6.1.0-broken does not boot"), "{why}");
    assert_eq!(broken.count(), 0, "it is given up");
}

/// Nothing is left in the boot loader.
fn is_clean(machine: &Machine, own: &str) {
    let left = "uname -r; ls /boot/grub/custom.cfg /etc/systemd/system/schedlab-boot.service \
                2>/dev/null; grub-editenv list";
    let limit = Instant::now() + LIMIT;
    loop {
        let found = machine.wait(&format!("{{ {left}; }} || true"));
        if found.trim() == own {
            return;
        }
        assert!(Instant::now() < limit, "{found}");
        std::thread::sleep(Duration::from_secs(5));
    }
}

#[test]
fn what_could_not_go_on_or_boot_is_refused_with_a_remedy_and_leaves_nothing() {
    let bench = Bench::default();
    let text = "[target]\nkind = \"local\"\nreboots = \"grub\"\n\
                [[arm]]\nname = \"a\"\nkernel = \"6.0.0-none\"\n\
                [[arm]]\nname = \"b\"\nkernel = \"6.0.1-none\"\n\
                [[workload]]\nkind = \"wakeup\"\n";
    let file = bench.file("kernels.toml", text);
    for (args, code, words) in [
        (
            ["run", &file, "--output", "out"],
            2,
            "schedlab boot start FILE",
        ),
        (
            ["boot", "plan", &file, "--format=text"],
            3,
            "kernel 6.0.1-none",
        ),
        (["boot", "plan", &file, "--reboots=yes"], 2, "--reboots"),
        (["boot", "status", "--format", "json"], 2, "no run goes on"),
    ] {
        let mut command = bench.command(&args);
        let output = command
            .env("SCHEDLAB_STATE_DIR", bench.path("state"))
            .output();
        let output = output.unwrap();
        expect_code(&output, code);
        assert!(
            stderr(&output).contains(words),
            "{args:?}: {}",
            stderr(&output)
        );
    }
    for left in ["out", "state", "results"] {
        assert!(!bench.path(left).exists(), "{left}");
    }
}

#[test]
#[ignore = "a dozen boots under emulation; make test-long runs it"]
fn a_run_goes_on_after_each_boot_after_a_power_cut_and_after_a_kernel_that_panics() {
    let Some(mut machine) = Machine::start() else {
        return;
    };
    install(&machine);
    let text = experiment("[target]\nkind = \"local\"\nreboots = \"auto\"\n", &machine);
    let file = machine.bench().file("kernels.toml", &text);
    machine.copy(file.as_ref(), "kernels.toml");
    let own = machine.wait("uname -r");
    let planned = machine.wait("schedlab boot plan kernels.toml");
    assert!(
        planned.contains("6.1.0-broken") && planned.contains("by grub"),
        "{planned}"
    );
    machine.wait("schedlab boot start kernels.toml --output results");
    let limit = Instant::now() + LIMIT;
    let mut cut = false;
    let status = loop {
        let status = machine.wait("schedlab boot status --format json");
        let status: Value = serde_json::from_str(&status).unwrap();
        if !status["record"]["ended"].is_null() {
            break status;
        }
        if status["ok"].as_u64() >= Some(2) && !cut {
            cut = true;
            machine.power_off();
            machine.power_on();
        }
        assert!(Instant::now() < limit, "{status}\n{}", machine.console());
        std::thread::sleep(Duration::from_secs(5));
    };
    assert!(cut, "{status}");
    let end = status["record"]["ended"].as_str().unwrap();
    assert!(!end.contains("error"), "{end}");
    is_clean(&machine, own.trim());
    let packed = machine.bench().path("results.tar");
    let tar = machine.command("tar c results").output().unwrap();
    std::fs::write(&packed, tar.stdout).unwrap();
    let unpacked = Command::new("tar")
        .arg("xf")
        .arg(&packed)
        .current_dir(machine.bench().path(""))
        .status();
    assert!(unpacked.unwrap().success());
    let results = ResultSet::read(&machine.bench().path("results")).unwrap();
    let trials: Vec<Trial> = results.trials.into_iter().map(|t| t.trial).collect();
    look_at(&trials);
    let report = machine.bench().run(&["report", "results"]);
    assert!(tests::stdout(&report).contains("wakeup"), "{report:?}");
}

#[test]
#[ignore = "a dozen boots under emulation; make test-long runs it"]
fn a_machine_is_restarted_over_ssh_for_each_kernel() {
    let Some(machine) = Machine::start() else {
        return;
    };
    let own = machine.wait("uname -r");
    let text = experiment(&machine.target_that_reboots(), &machine);
    let file = machine.bench().file("kernels.toml", &text);
    let output = machine.bench().run(&["run", &file, "--output", "out"]);
    // A trial is missing: that of the kernel that panics.
    expect_code(&output, 4);
    let results = ResultSet::read(&machine.bench().path("out")).unwrap();
    let trials: Vec<Trial> = results.trials.into_iter().map(|t| t.trial).collect();
    look_at(&trials);
    is_clean(&machine, own.trim());
}

#[test]
#[ignore = "a dozen boots under emulation; make test-long runs it"]
fn slurm_restarts_a_machine_for_each_kernel() {
    let Some(machine) = Machine::start() else {
        return;
    };
    install(&machine);
    let broken = "6.1.0-broken".to_owned();
    let all = [&kernels(&machine)[..], &[broken]].concat();
    let Some(cluster) = Cluster::start_with_machine(&machine, all) else {
        return;
    };
    let agent = cluster.path("agent").display().to_string();
    std::fs::copy(machine.stripped(), &agent).unwrap();
    let target = format!(
        "[target]\nkind = \"slurm\"\npartition = \"lab\"\nkernel-feature = \"kernel_{{kernel}}\"\n\
         agent = \"{agent}\"\n"
    );
    let file = cluster.file("kernels.toml", &experiment(&target, &machine));
    let output = cluster.run(&["run", &file, "--output", "out"]);
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    // A trial is missing: that of the kernel that panics.
    expect_code(&output, 4);
    let results = ResultSet::read(&cluster.path("out")).unwrap();
    let trials: Vec<Trial> = results.trials.into_iter().map(|t| t.trial).collect();
    look_at(&trials);
}
