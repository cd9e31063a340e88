//! Every arm that README, guide, help and lists show is attached for real, and proven.

use super::guests::{KERNEL, of, trials};
use std::path::PathBuf;
use tests::{Bench, beside_others, expect_code, no_guests, stderr, stdout};

/// The form of an arm as the lists have it, and the arms of this form that documents show.
const DOCUMENTED: &[(&str, &[&str])] = &[
    ("default", &["default"]),
    ("TUNABLE=VALUE", &["base_slice=1ms", "migration_cost=0.5ms"]),
    ("SYSCTL.NAME=VALUE", &["vm.swappiness=50"]),
    // Which files are there depends on the kernel.
    ("debugfs.sched.NAME=VALUE", &[]),
    (
        "scx_NAME [ARGS]",
        &[
            "scx_rusty",
            "scx_rusty --slice-us-overutil 5000",
            "scx_lavd",
            "scx_lavd --performance",
            "scx_bpfland --slice-us 5000",
        ],
    ),
    (
        "loader:[scx_NAME/]MODE",
        &["loader:scx_lavd/gaming", "loader:scx_bpfland/lowlatency"],
    ),
    // The kernel of the guest has neither of the others.
    ("eevdf, cfs, bore", &["eevdf"]),
    (
        "profile=FILE",
        &["low:=profile=experiments/profiles/eevdf/low_latency.conf"],
    ),
    ("other, batch, idle", &["other", "batch", "idle"]),
    ("fifo[:PRIO], rr[:PRIO]", &["fifo", "rr:5"]),
    // A process that has ended has no deadline parameters left to read, which voids the trial of
    // a command.
    ("deadline:RUNTIME/PERIOD", &[]),
    ("nice=N", &["nice=5", "nice=-10"]),
    ("slice=TIME", &["slice=0.3ms"]),
    // It needs a server: services.rs.
    ("weight=N", &[]),
    ("cpus=LIST", &["cpus=0"]),
    (
        "quota=PERCENT, quota=RUNTIME/PERIOD",
        &["quota=50%", "quota=20ms/40ms", "quota=max"],
    ),
    ("uclamp=MIN-MAX", &["uclamp=20%-80%", "uclamp=20%-"]),
    ("env.NAME=VALUE", &["env.GOMAXPROCS=2"]),
    // It needs a boot of its own: vm/proof.rs.
    ("kernel=SOURCE", &[]),
    // It needs a hypervisor: virtual_xen.rs.
    ("hypervisor-scheduler=NAME[/KEY=VALUE]…", &[]),
    // Of the workload `wakeup` only: run.rs.
    ("handicap=N%", &[]),
    // Those of the other roles need a server or a neighbour: stacks.rs.
    ("ROLE:CHANGE", &["load:nice=5", "load:nice=-5"]),
    // A guest has no daemon: daemons.rs.
    ("DAEMON:CHANGE", &[]),
    ("A+B", &["batch+nice=5"]),
    ("NAME:=ARM", &["calm:=batch+nice=5"]),
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn documented() -> impl Iterator<Item = &'static str> {
    DOCUMENTED.iter().flat_map(|(_, arms)| arms.iter().copied())
}

/// Arms that follow `-a` in the commands of a page, without those of repositories, of which bisect.rs
/// has one, and those of versions, which would be built first.
fn arms_of(page: &str) -> Vec<String> {
    let after = page.split(" -a ").skip(1);
    let arms = after.map(|rest| match rest.chars().next() {
        Some(quote @ ('\'' | '"')) => rest[1..].split(quote).next().unwrap_or_default(),
        _ => rest.split([' ', '`', '\n']).next().unwrap_or_default(),
    });
    let here = arms.filter(|arm| !arm.contains('@'));
    here.map(str::to_owned).collect()
}

#[test]
fn the_arms_of_the_documents_are_those_that_are_attached() {
    let forms: Vec<&str> = plan::forms().into_iter().map(|(form, _)| form).collect();
    let tried: Vec<&str> = DOCUMENTED.iter().map(|(form, _)| *form).collect();
    assert_eq!(tried, forms, "each form has its arms above");
    let mut found = 0;
    let pages = std::fs::read_dir(root().join("docs/guide")).expect("a directory");
    let pages = pages.map(|page| page.expect("an entry").path());
    for page in pages.chain([root().join("README.md")]) {
        let text = std::fs::read_to_string(&page).expect("a page");
        for arm in arms_of(&text) {
            found += 1;
            assert!(
                documented().any(|d| d == arm),
                "{}: -a {arm}",
                page.display()
            );
        }
    }
    assert!(found >= 8, "only {found} arms were found");
    let bench = Bench::default();
    for command in ["run", "check", "plan", "certify"] {
        for arm in arms_of(&stdout(&bench.run(&[command, "--help"]))) {
            assert!(documented().any(|d| d == arm), "{command} --help: -a {arm}");
        }
    }
}

/// Whether the arm's scheduler is installed; true for an arm without one.
fn is_installed(arm: &str, installed: &serde_json::Value) -> bool {
    let scheduler = arm.strip_prefix("loader:").unwrap_or(arm);
    let Some(name) = scheduler
        .split([' ', '/'])
        .next()
        .filter(|n| n.starts_with("scx_"))
    else {
        return true;
    };
    let mut schedulers = installed.as_array().expect("a list").iter();
    schedulers
        .any(|s| s["name"] == name && s["installed"].as_array().is_some_and(|v| !v.is_empty()))
}

#[test]
fn every_documented_arm_is_attached_and_proven() {
    if let Some(why) = no_guests() {
        return tests::skipped(why);
    }
    let _turn = beside_others();
    let bench = Bench::default();
    let listed = bench.run(&["scheduler", "list", "--format", "json"]);
    let installed = serde_json::from_str(&stdout(&listed)).expect("JSON");
    let (arms, missing): (Vec<&str>, Vec<&str>) =
        documented().partition(|arm| is_installed(arm, &installed));
    if !missing.is_empty() {
        tests::skipped(format!(
            "{}: not installed; `make test-long` installs them",
            missing.join(", ")
        ));
    }
    let mut command = bench.command(&["run", "--vm", KERNEL, "--memory", "1G"]);
    command
        .args(["--max-blocks", "1", "-o"])
        .arg(bench.path("out"));
    for arm in &arms {
        command.args(["-a", arm]);
    }
    let output = command
        .args(["--", "sleep", "0.5"])
        .current_dir(root())
        .output();
    let output = output.expect("schedlab starts");
    expect_code(&output, 0);
    let trials = trials(&bench);
    for arm in arms {
        let name = arm.split_once(":=").map_or(arm, |(name, _)| name);
        // Arguments are in the name of those only that have a twin without them.
        let is_whole = trials.iter().any(|stored| stored.trial.arm == name);
        let name = match name.split_once(' ') {
            Some((program, _)) if !is_whole => program,
            _ => name,
        };
        assert!(
            of(&trials, name).trial.is_ok(),
            "{arm}: {}",
            stderr(&output)
        );
    }
}
