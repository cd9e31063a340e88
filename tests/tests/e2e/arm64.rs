//! Guests of 64-bit ARM, emulated. They need a build of schedlab for it, which `scripts/cross` makes.

#![allow(clippy::disallowed_methods)]

use crate::vm::guests::{fact, trials_that_count};
use std::path::PathBuf;
use std::process::Command;
use tests::{Bench, beside_others, expect_code, skipped, stderr, stdout, write_program};

/// The program for 64-bit ARM that `scripts/cross build` made last; `None`, and the reason said, where
/// there is none.
fn agent() -> Option<String> {
    let builds = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/cross/build");
    // A guest sees no file by a way over `..`.
    let builds = builds.canonicalize().unwrap_or(builds);
    let of = builds.join("aarch64-unknown-linux-gnu");
    let profiles = ["debug", "release"].map(|profile| of.join(profile).join("schedlab"));
    let built = profiles.iter().filter_map(|path| {
        let made = path.metadata().ok()?.modified().ok()?;
        Some((made, path))
    });
    let Some((_, newest)) = built.max() else {
        skipped("there is no build for 64-bit ARM: scripts/cross build -p schedlab");
        return None;
    };
    Some(newest.display().to_string())
}

/// An experiment in a guest of 64-bit ARM.
fn experiment(agent: &str, keys: &str, rest: &str) -> String {
    format!(
        "[target]\nkind = \"vm\"\narchitecture = \"aarch64\"\nkernel = \"debian:sid\"\nmemory = \"1G\"\n\
         agent = \"{agent}\"\n{keys}\n{rest}"
    )
}

#[test]
fn a_guest_of_another_architecture_needs_a_build_for_it() {
    let _turn = beside_others();
    let bench = Bench::default();
    let words = ["-a", "default", "--vm", "debian:sid", "--architecture"];
    let run = |name| bench.run(&[&["check"], &words[..], &[name, "--", "true"]].concat());
    let refused = run("vax");
    expect_code(&refused, 2);
    assert!(stderr(&refused).contains("x86_64 or aarch64"));
    let text = "[target]\nkind = \"vm\"\nkernel = \"k\"\narchitecture = \"sparc\"\n[[arm]]\nname = \"a\"\n";
    let file = bench.file("sparc.toml", text);
    let refused = bench.run(&["plan", &file]);
    expect_code(&refused, 2);
    assert!(stderr(&refused).contains("no guest has the architecture"));
}

#[test]
#[ignore = "make test-long ROWS=arm64"]
fn policies_are_compared_in_a_guest_of_another_architecture() {
    let Some(agent) = agent() else { return };
    let _turn = beside_others();
    let bench = Bench::default();
    let rest = "[[arm]]\nname = \"eevdf\"\n[[arm]]\nname = \"batch\"\npolicy = { class = \"batch\" }\n\
                [[workload]]\nkind = \"wakeup\"\nwarmup = \"1s\"\nduration = \"3s\"\n\
                [stop]\nmin-blocks = 2\nmax-blocks = 2\n";
    let file = bench.file("arm64.toml", &experiment(&agent, "", rest));
    let output = bench.run(&["run", &file, "-o", "out", "--quiet"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("batch"), "{said}");
    let trials = trials_that_count(&bench);
    assert_eq!(trials.len(), 4);
    for stored in &trials {
        let kernel = fact(&stored.trial.result, "kernel");
        assert!(kernel.found.contains("arm64"), "{kernel:?}");
        assert_eq!(kernel.wanted.as_ref(), Some(&kernel.found));
    }
    let system = std::fs::read_to_string(bench.path("out/system.json")).expect("written");
    assert!(system.contains("aarch64"), "{system}");
}

/// `machine` of the header of an ELF file of 64-bit ARM.
const MACHINE: u8 = 183;

/// Programs that come first on the PATH of a place, so that it says that it is of 64-bit ARM.
fn place(bench: &Bench) -> String {
    let bin = bench.path("place");
    std::fs::create_dir_all(&bin).expect("made");
    let uname = "#!/bin/sh\n[ \"$1\" = -m ] && { echo aarch64; exit; }\nexec /bin/uname \"$@\"\n";
    write_program(&bin.join("uname"), uname);
    format!(
        "[target]\nkind = \"exec\"\ncommand = [\"env\", \"PATH={}:/usr/bin:/bin\", \"SCHEDLAB_CACHE_DIR={}\"]\n",
        bin.display(),
        bench.path("there").display()
    )
}

#[test]
fn a_place_of_another_architecture_gets_the_build_that_lies_beside_the_program() {
    let _turn = beside_others();
    let bench = Bench::default();
    let (own, other) = (
        bench.path("bin/schedlab"),
        bench.path("bin/schedlab-aarch64"),
    );
    std::fs::create_dir_all(bench.path("bin")).expect("made");
    // A link would lead to the folder of the build.
    std::fs::hard_link(tests::schedlab(), &own)
        .or_else(|_| std::fs::copy(tests::schedlab(), &own).map(drop))
        .expect("a second name");
    let arms = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"command\"\ncommand = [\"true\"]\n";
    let file = bench.file("place.toml", &(place(&bench) + arms));
    let check = || {
        let words = bench.command(&["check", &file, "--yes"]);
        let set = words
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?)));
        let mut command = Command::new(&own);
        command.args(words.get_args()).envs(set);
        command
            .current_dir(bench.dir.path())
            .output()
            .expect("schedlab starts")
    };
    let without = check();
    expect_code(&without, 3);
    assert!(
        stderr(&without).contains("schedlab-aarch64"),
        "{}",
        stderr(&without)
    );
    // No program, but the header of one: it is copied and does not start.
    let mut header = vec![0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    header[18] = MACHINE;
    std::fs::write(&other, &header).expect("written");
    let with = check();
    assert!(
        !stderr(&with).contains("schedlab-aarch64"),
        "{}",
        stderr(&with)
    );
    let there = std::fs::read_dir(bench.path("there")).expect("it is there");
    let mut copied = there.flatten().map(|entry| std::fs::read(entry.path()));
    assert!(copied.any(|bytes| bytes.is_ok_and(|bytes| bytes == header)));
}

#[test]
#[ignore = "make test-long ROWS=arm64"]
fn programs_of_an_image_run_on_cpus_of_two_capacities_and_their_cycles_are_counted() {
    let Some(agent) = agent() else { return };
    let _turn = beside_others();
    let bench = Bench::default();
    let made = bench.run(&["image", "build", "--architecture", "aarch64", "a.squashfs"]);
    expect_code(&made, 0);
    let image = bench.path("a.squashfs");
    let keys = format!(
        "capacities = [1024, 446]\nroot = \"image:{}\"",
        image.display()
    );
    let command = "uname -m; cat /sys/devices/system/cpu/cpu*/cpu_capacity; sleep 0.1";
    let rest = format!(
        "[[arm]]\nname = \"eevdf\"\n[[workload]]\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", \"{command}\"]\n[stop]\nmin-blocks = 1\nmax-blocks = 1\n"
    );
    let text = format!("perf = [\"cycles\"]\n{}", experiment(&agent, &keys, &rest));
    let file = bench.file("image.toml", &text);
    expect_code(&bench.run(&["run", &file, "-o", "out", "--quiet"]), 0);
    let trials = trials_that_count(&bench);
    assert_eq!(trials.len(), 1);
    let printed = std::fs::read_to_string(trials[0].dir.join("stdout.log")).expect("kept");
    assert_eq!(printed.trim(), "aarch64\n1024\n446");
    let mut metrics = trials[0].trial.result.metrics.iter();
    let cycles = metrics.find(|metric| metric.metric == "perf_cycles");
    assert!(
        cycles.is_some_and(|cycles| cycles.value > 0.0),
        "{cycles:?}"
    );
}

#[test]
#[ignore = "make test-long ROWS=arm64"]
fn a_seed_gives_the_same_figures_in_virtual_time_and_instructions_are_counted() {
    let Some(agent) = agent() else { return };
    let _turn = beside_others();
    let bench = Bench::default();
    let rest = "[[arm]]\nname = \"eevdf\"\n[[workload]]\nkind = \"wakeup\"\nwarmup = \"200ms\"\n\
                duration = \"1s\"\n[stop]\nmin-blocks = 1\nmax-blocks = 1\n";
    let target = experiment(&agent, "clock = \"virtual\"", rest);
    let text = format!("perf = [\"cycles\", \"instructions\"]\n{target}");
    let file = bench.file("virtual.toml", &text);
    let figures = || {
        let _ = std::fs::remove_dir_all(bench.path("out"));
        let run = bench.run(&["run", &file, "-o", "out", "--quiet", "--seed", "7"]);
        expect_code(&run, 0);
        let trials = trials_that_count(&bench);
        let metrics = trials[0].trial.result.metrics.iter();
        let named = metrics.map(|metric| (metric.metric.clone(), metric.value));
        named.collect::<std::collections::BTreeMap<String, f64>>()
    };
    let first = figures();
    // An instruction takes two nanoseconds, and a CPU of QEMU has a cycle in each.
    assert_eq!(first["perf_cycles"], 2.0 * first["perf_instructions"]);
    assert_eq!(first, figures());
}
