//! `schedlab bisect`: what it says before anything is measured, and whole bisections of a scheduler
//! and of a kernel in guests.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::print_stderr)]

use std::path::Path;
use std::process::{Command, Output};
use tests::{Bench, alone, expect_code, no_guests, skipped, stderr, stdout};

/// A repository of two commits without a scheduler, tagged `one` and `two`.
fn repository(bench: &Bench) -> Option<String> {
    let script = "git init -q r && cd r && for n in one two; do git -c user.name=a -c user.email=a@b.c \
                  commit -q --allow-empty -m $n && git tag $n; done";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(bench.dir.path())
        .status();
    made.is_ok_and(|status| status.success())
        .then(|| bench.path("r").display().to_string())
}

#[test]
fn what_cannot_be_bisected_is_said_before_anything_is_built() {
    let bench = Bench::default();
    let Some(repository) = repository(&bench) else {
        return skipped("there is no git");
    };
    let bisect = |good: &str, bad: &str, more: &[&str]| {
        let arguments = [
            "bisect",
            "scx_none",
            "--repository",
            &repository,
            "--good",
            good,
            "--bad",
            bad,
            "-o",
            "out",
        ];
        bench.run(&[&arguments, more].concat())
    };
    for (good, bad, more, code, says) in [
        ("one", "two", &[][..], 2, "needs a workload"),
        ("no-such", "two", &["-w", "wakeup"], 3, "no commit no-such"),
        ("two", "one", &["-w", "wakeup"], 3, "does not come after"),
        ("one", "two", &["-w", "wakeup"], 2, "no crate scx_none"),
    ] {
        let output = bisect(good, bad, more);
        expect_code(&output, code);
        let said = stderr(&output);
        assert!(said.contains(says), "{good} {bad}: {said}");
    }
}

/// Words of a shell that print a number of steps near `$to`, another in each trial, and so take no time. Beside
/// other tests, they would do most of the work of such a command.
const COUNT: &str = "echo steps $((to + $$ % 256))";
/// The metric of what they print.
pub const STEPS: &str =
    "[[workload.metric]]\nname = \"steps\"\nregex = '^steps (?<v>\\d+)'\nbetter = \"lower\"\n";

/// A repository of a script that counts, built by another one: commit 11 of 16 lets it count further,
/// and commit 8 does not build.
pub fn with_a_slower_program(bench: &Bench) {
    bench.file("count", COUNT);
    let script = "set -e; git init -q r; cd r; git config user.name a; git config user.email a@b.c; \
        for n in $(seq 0 16); do test $n -lt 11 && to=50000 || to=200000; \
        echo \"mkdir bin; { echo to=$to; cat steps; } > bin/count\" > build.sh; cp ../count steps; \
        test $n != 8 || echo 'echo no compiler; exit 1' > build.sh; \
        echo $n > NOTES; git add .; git commit -q -m \"change $n\"; git tag v$n; done";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(bench.dir.path())
        .status();
    assert!(made.is_ok_and(|status| status.success()));
}

/// A bisection of the program between the first commit and the last, built by a shell command.
fn bisect_program(bench: &Bench, program: &str, build: &str, more: &[&str]) -> Output {
    let repository = bench.path("r").display().to_string();
    let first = [
        "bisect",
        program,
        "--build",
        build,
        "--repository",
        &repository,
    ];
    let between = ["--good", "v0", "--bad", "v16", "--budget", "1m"];
    bench.run(&[&first[..], &between, more].concat())
}

#[test]
fn the_commit_that_slows_a_program_is_found_and_one_that_does_not_build_is_skipped() {
    let bench = Bench::default();
    if repository(&bench).is_none() {
        return skipped("there is no git");
    }
    let _turn = alone();
    let bench = Bench::default();
    with_a_slower_program(&bench);
    // A file without arms of its own.
    let text = "[[workload]]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", 'sh \"$PROGRAM\"']\n";
    let file = bench.file("count.toml", &[text, STEPS].concat());
    let output = bisect_program(&bench, "bin/count", "sh build.sh", &[&file, "-o", "out"]);
    expect_code(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("\n  change 11\n"), "{text}");
    let skipped = "the build failed: exit status: 1: no compiler";
    assert!(text.contains(skipped), "{text}");
    let steps = std::fs::read_to_string(bench.path("out/bisect.json")).expect("kept");
    let steps: serde_json::Value = serde_json::from_str(&steps).expect("valid JSON");
    assert_eq!(steps["again"]["verdict"], "bad", "{steps}");

    // One directory holds one bisection.
    let output = bisect_program(&bench, "bin/count", "true", &[&file, "-o", "out"]);
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("another bisection"), "{said}");
}

/// Words of a bisection that cannot build: it comes so far once it has its clone and its steps.
const BOTH_BUILD: &str = "both ends must build";

/// A repository of a script that counts, farther from commit 5 of 6 on. No commit builds as it is, and what
/// `no-exit.patch` changes is another line in the commit in the middle.
fn with_what_does_not_build(bench: &Bench) {
    bench.file("count", COUNT);
    let script = "set -e; git init -q r; cd r; git config user.name a; git config user.email a@b.c; \
        for n in $(seq 0 6); do test $n -lt 5 && to=40000 || to=160000; \
        echo exit 7 > first.sh; test $n != 3 || echo exit 8 > first.sh; \
        { echo to=$to; cat ../count; } > count.sh; \
        git add .; git commit -q --allow-empty -m \"change $n\"; git tag v$n; done; \
        echo : > first.sh; git diff > ../no-exit.patch; git checkout -q first.sh";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(bench.dir.path())
        .status();
    assert!(made.is_ok_and(|status| status.success()));
}

/// A bisection of its program between both ends, with these words too.
fn bisect_counting(bench: &Bench, more: &str) -> Output {
    let mut words = vec![
        "bisect",
        "count",
        "--build",
        "sh -c '. ./first.sh; cp count.sh count'",
    ];
    words.extend("--repository r --good v0 --bad v6 --budget 1m -o out".split(' '));
    words.extend(more.split_whitespace());
    words.extend(["--metric", "steps=/^steps (?<v>\\d+)/ lower"]);
    words.extend(["--", "sh", "-c", "sh \"$PROGRAM\""]);
    bench.run(&words)
}

#[test]
fn each_commit_is_built_with_a_patch_and_one_to_which_it_does_not_apply_is_skipped() {
    let bench = Bench::default();
    if repository(&bench).is_none() {
        return skipped("there is no git");
    }
    let _turn = alone();
    let bench = Bench::default();
    with_what_does_not_build(&bench);
    for (words, code, says) in [
        ("", 2, "both ends must build"),
        ("--patch no-exit.patch --path NOTES", 3, "changes NOTES"),
        ("--patch no-such.patch", 2, "--patch no-such.patch"),
    ] {
        let refused = bisect_counting(&bench, words);
        expect_code(&refused, code);
        let said = stderr(&refused);
        assert!(said.contains(says), "{words}: {said}");
        let _ = std::fs::remove_dir_all(bench.path("out"));
    }
    let words = "--patch no-exit.patch --path count.sh --path first.sh";
    let output = bisect_counting(&bench, words);
    expect_code(&output, 0);
    let text = stdout(&output);
    assert!(text.contains("\n  change 5\n"), "{text}");
    assert!(text.contains("no-exit.patch does not apply"), "{text}");
    // The same with another patch is another bisection.
    bench.file("no-exit.patch", "");
    let other = bisect_counting(&bench, words);
    expect_code(&other, 2);
    let said = stderr(&other);
    assert!(said.contains("its patch differs"), "{said}");
}

#[test]
fn steps_that_are_torn_are_named_with_a_remedy_that_works() {
    let bench = Bench::default();
    if repository(&bench).is_none() {
        return skipped("there is no git");
    }
    let bench = Bench::default();
    with_a_slower_program(&bench);
    let bisect = || {
        let words = ["-o", "out", "--", "sh", "-c", "sh \"$PROGRAM\""];
        let output = bisect_program(&bench, "bin/count", "exit 1", &words);
        expect_code(&output, 2);
        stderr(&output)
    };
    let said = bisect();
    assert!(said.contains(BOTH_BUILD), "{said}");
    let steps = bench.path("out/bisect.json");
    std::fs::write(&steps, "{\"prog").unwrap();
    let said = bisect();
    assert!(said.contains("out/bisect.json is not valid"), "{said}");
    assert!(said.contains("remove it"), "{said}");
    // As it says.
    std::fs::remove_file(&steps).unwrap();
    let said = bisect();
    assert!(said.contains(BOTH_BUILD), "{said}");
}

/// Somebody else's bisection brings a clone, whose settings git obeys, and programs that are built.
#[test]
fn a_bisection_that_was_begun_elsewhere_starts_nothing() {
    let bench = Bench::default();
    if repository(&bench).is_none() {
        return skipped("there is no git");
    }
    let bench = Bench::default();
    with_a_slower_program(&bench);
    let words = ["-o", "out", "--", "sh", "-c", "sh \"$PROGRAM\""];
    let bisect = || stderr(&bisect_program(&bench, "bin/count", "exit 1", &words));
    assert!(bisect().contains(BOTH_BUILD));
    let ran = bench.path("ran");
    let script = format!(
        "cp -a out copy && rm -r out && mv copy out && \
         git -C out/repository.git config core.fsmonitor 'touch {0}' && \
         git -C out/repository.git config core.alternateRefsCommand 'touch {0}'",
        ran.display()
    );
    let copied = Command::new("sh")
        .args(["-c", &script])
        .current_dir(bench.dir.path())
        .status();
    assert!(copied.is_ok_and(|status| status.success()));
    let said = bisect();
    assert!(said.contains("was begun elsewhere"), "{said}");
    assert!(!ran.exists());
}

#[test]
fn a_clone_that_was_killed_is_made_anew_and_leaves_nothing() {
    let bench = Bench::default();
    if repository(&bench).is_none() {
        return skipped("there is no git");
    }
    let bench = Bench::default();
    with_a_slower_program(&bench);
    std::fs::create_dir(bench.path("bin")).unwrap();
    // A git that is killed, with schedlab, in the middle of a clone.
    let slow = "#!/bin/sh\ncase \" $* \" in *\" clone \"*) for last; do :; done; mkdir -p \"$last\"; \
                echo half > \"$last/HEAD\"; kill -9 $PPID; exit 1 ;; esac\n\
                PATH=${PATH#*:}; exec git \"$@\"\n";
    tests::write_program(&bench.path("bin/git"), slow);
    let path = std::env::var("PATH").unwrap();
    let own_first = format!("{}:{path}", bench.path("bin").display());
    let bisect = |path: &str| {
        let mut command = bench.command(&[
            "bisect",
            "bin/count",
            "--build",
            "exit 1",
            "--repository",
            "r",
            "--good",
            "v0",
            "--bad",
            "v16",
            "--budget",
            "1m",
            "-o",
            "out",
            "--",
            "sh",
            "-c",
            "sh \"$PROGRAM\"",
        ]);
        command.env("PATH", path).output().unwrap()
    };
    let killed = bisect(&own_first);
    assert_eq!(killed.status.code(), None, "{killed:?}");
    assert!(!bench.path("out/repository.git").exists());
    let before = names_in(&bench.path("out"));
    let said = stderr(&bisect(&path));
    assert!(said.contains(BOTH_BUILD), "{said}");
    let after = names_in(&bench.path("out"));
    let left: Vec<_> = before.iter().filter(|name| after.contains(name)).collect();
    assert_eq!(left, [".schedlab"], "of {before:?}, after {after:?}");
    assert!(before.len() > 1, "half of a clone: {before:?}");
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_program_that_is_none_of_the_tree_is_refused() {
    let bench = Bench::default();
    if repository(&bench).is_none() {
        return skipped("there is no git");
    }
    let bench = Bench::default();
    with_a_slower_program(&bench);
    let here = ["-o", "none", "--", "sh", "-c", "sh \"$PROGRAM\""];
    let far = [&["--on", "ssh:far"], &here[..]].concat();
    for (program, more, says) in [
        ("bin/count", &here[..], "the build made no bin/count"),
        ("/bin/true", &here, "no file within the tree"),
        ("../count", &here, "no file within the tree"),
        ("bin/a+b", &here, "plus sign"),
        ("bin/count", &far, "is built here"),
    ] {
        let output = bisect_program(&bench, program, "true", more);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(says), "{program}: {said}");
    }
}

#[test]
fn what_is_no_way_to_bisect_a_kernel_is_refused_before_anything_is_built() {
    let bench = Bench::default();
    let Some(repository) = repository(&bench) else {
        return skipped("there is no git");
    };
    let bisect = |program: &str, more: &[&str]| {
        let first = ["bisect", program, "--repository", &repository];
        let between = ["--good", "one", "--bad", "two", "-w", "wakeup"];
        bench.run(&[&first[..], &between, more].concat())
    };
    for (program, more, says) in [
        (
            "kernel",
            ["-o", "out", "--target", "ssh:far"],
            "booted in guests",
        ),
        (
            "kernel",
            ["-o", "a+b", "--config", "defconfig"],
            "plus sign",
        ),
        (
            "scx_none",
            ["-o", "out", "--config", "defconfig"],
            "are of a kernel",
        ),
        (
            "scx_none",
            ["-o", "out", "--fragment", "my.config"],
            "are of a kernel",
        ),
    ] {
        let output = bisect(program, &more);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(says), "{program} {more:?}: {said}");
    }
}

/// Commits of the kernel after the first one: the one that makes it slower, and one that does not build.
const KERNELS: u32 = 8;
const SLOWER: u32 = 6;
const BROKEN: u32 = 4;

/// Configuration of a small kernel, which schedlab completes.
const SMALL: &str = "tinyconfig";

/// A repository of Debian's kernel, in which one commit of many lets each enqueueing of a task of
/// the fair class take its time. `None`, said, where its source or a program for the build is out of
/// reach.
fn kernel_with_a_planted_slowdown(bench: &Bench) -> Option<String> {
    let package = "debian:linux-source-6.12";
    let mut build = bench.command(&["kernel", "build", package, "--config", SMALL]);
    let built = build
        .args(["-o", "first"])
        .env("XDG_CACHE_HOME", bench.path("cache"))
        .output();
    let built = built.expect("schedlab starts");
    if built.status.code() == Some(3) {
        skipped(stderr(&built));
        return None;
    }
    expect_code(&built, 0);
    let script = format!(
        "set -e; mv cache/schedlab/src/linux-source-* r; cd r; git init -q .; \
         git config user.name a; git config user.email a@b.c; git config gc.auto 0; \
         fair=kernel/sched/fair.c; git add -f .; git commit -q -m start; git tag v0; \
         for n in $(seq 1 {KERNELS}); do echo $n >> NOTES; \
         if [ $n = {SLOWER} ]; then sed -i '/^enqueue_task_fair(/{{n;s/.*/&\\n\\tfor (int i = 0; i < 300000; i++)\\n\\t\\tbarrier();/}}' $fair; fi; \
         if [ $n = {BROKEN} ]; then echo '#error broken' >> $fair; fi; \
         if [ $n = $(({BROKEN} + 1)) ]; then sed -i '/^#error broken/d' $fair; fi; \
         git add -f NOTES $fair; git commit -q -m \"change $n\"; git tag v$n; done"
    );
    let made = Command::new("sh")
        .args(["-c", &script])
        .current_dir(bench.dir.path())
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    Some(bench.path("r").display().to_string())
}

#[test]
#[ignore = "builds kernels and boots them in guests: half an hour, in make test-long"]
fn the_commit_that_slows_a_kernel_is_found() {
    if let Some(why) = no_guests() {
        return skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let Some(repository) = kernel_with_a_planted_slowdown(&bench) else {
        return;
    };
    let last = format!("v{KERNELS}");
    let first = ["bisect", "kernel", "--repository", &repository];
    let between = ["--good", "v0", "--bad", &last, "--config", SMALL];
    // On one CPU a request is two switches of it, wherever its server would be.
    let guest = ["--vm", "debian:sid", "--cpus", "1"];
    let how = [
        "-w",
        "rr",
        "--duration",
        "1s",
        "--budget",
        "5m",
        "-o",
        "out",
    ];
    let output = bench.run(&[&first[..], &between, &guest, &how].concat());
    expect_code(&output, 0);
    let text = stdout(&output);
    eprintln!("{text}");
    assert!(text.contains(&format!("\n  change {SLOWER}\n")), "{text}");
    assert!(text.contains("broken"), "{text}");
    let steps = std::fs::read_to_string(bench.path("out/bisect.json")).expect("kept");
    let steps: serde_json::Value = serde_json::from_str(&steps).expect("valid JSON");
    assert_eq!(steps["again"]["verdict"], "bad", "{steps}");
}

/// Commits after the first one, and the one of them that makes the scheduler slower.
const COMMITS: u32 = 32;
pub const CULPRIT: u32 = 19;

/// A repository of the schedulers of this source tree, in which one commit of many lets each
/// enqueueing of scx_faulty take its time.
pub fn with_a_planted_slowdown(bench: &Bench) -> String {
    let sched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sched");
    let script = format!(
        "set -e; mkdir r; tar -C {} --exclude=./target -c . | tar -C r -x; cd r; git init -q .; \
         git config user.name a; git config user.email a@b.c; \
         git add .; git commit -q -m start; git tag good; \
         for n in $(seq 1 {COMMITS}); do echo $n >> NOTES; \
         if [ $n = {CULPRIT} ]; then sed -i 's|^\\tdsq_insert(p, SCX_DSQ_GLOBAL.*|\\tfor (int i = 0; i < 20000; \
         i++)\\n\\t\\tattached_at += bpf_ktime_get_ns() >> 63;\\n&|' scx_faulty/src/bpf/main.bpf.c; fi; \
         git add .; git commit -q -m \"change $n\"; done; git tag bad",
        sched.display()
    );
    let made = Command::new("sh")
        .args(["-c", &script])
        .current_dir(bench.dir.path())
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    bench.path("r").display().to_string()
}

#[test]
#[ignore = "builds seven schedulers and measures them in guests: ten minutes, in make test-long"]
fn a_planted_slowdown_is_found_among_many_commits() {
    if let Some(why) = no_guests() {
        return skipped(why);
    }
    let _turn = alone();
    let bench = Bench::default();
    let repository = with_a_planted_slowdown(&bench);
    let output = bench.run(&[
        "bisect",
        "scx_faulty",
        "--repository",
        &repository,
        "--good",
        "good",
        "--bad",
        "bad",
        "-w",
        "rr",
        "--vm",
        "debian:sid",
        "--duration",
        "1s",
        "--budget",
        "3m",
        "-o",
        "out",
    ]);
    expect_code(&output, 0);
    let text = stdout(&output);
    eprintln!("{text}");
    assert!(text.contains(&format!("\n  change {CULPRIT}\n")), "{text}");
    let steps = std::fs::read_to_string(bench.path("out/bisect.json")).expect("kept");
    let steps: serde_json::Value = serde_json::from_str(&steps).expect("valid JSON");
    assert_eq!(steps["again"]["verdict"], "bad", "{steps}");
    let log = std::fs::read_to_string(bench.path("out/bisect.log")).expect("kept");
    assert!(log.contains("# first bad commit: ["), "{log}");
}
