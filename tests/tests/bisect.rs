//! `schedlab bisect`: what it says before anything is measured, and a whole bisection of a scheduler
//! in guests.

use std::path::Path;
use std::process::Command;
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

/// Commits after the first one, and the one of them that makes the scheduler slower.
const COMMITS: u32 = 32;
const CULPRIT: u32 = 19;

/// A repository of the schedulers of this source tree, in which one commit of many lets each
/// enqueueing of scx_faulty take its time.
fn with_a_planted_slowdown(bench: &Bench) -> String {
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
