//! Results in one file: packed, checked, tampered with, compared and repeated. All
//! start from the stored results of format 1.0, so hardly anything is measured here.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use tests::{Bench, beside_others, expect_code, stderr, stdout};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/results-1.0")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &place),
            false => fs::copy(&path, &place).map(|_| ()).unwrap(),
        }
    }
}

/// The stored results as `stored/`, packed as `stored.tar.gz`.
fn packed() -> Bench {
    let bench = Bench::default();
    copy(&fixture(), &bench.path("stored"));
    expect_code(&bench.run(&["pack", "stored"]), 0);
    bench
}

/// The capsule unpacked as `capsule/stored`, so that it can be tampered with.
fn unpacked() -> (Bench, PathBuf) {
    let bench = packed();
    let into = bench.path("capsule");
    fs::create_dir(&into).unwrap();
    let limits = results::capsule::Limits::default();
    results::capsule::unpack_capsule(&bench.path("stored.tar.gz"), &into, limits, &false.into())
        .unwrap();
    (bench, into.join("stored"))
}

fn replace(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from} is not in {}", path.display());
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn an_honest_capsule_is_verified() {
    let bench = packed();
    let output = bench.run(&["verify", "stored.tar.gz"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("bytes: fingerprint"), "{said}");
    assert!(said.contains("all 18 trials that count"), "{said}");
    assert!(said.contains("report/report.json: numbers"), "{said}");
    assert!(
        said.contains("ok       report/report.html: is what"),
        "{said}"
    );
    assert!(
        said.contains("ok       report/report.txt: is what"),
        "{said}"
    );
    assert!(
        said.contains("of the first 18 places, all are measured"),
        "{said}"
    );
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("what it says is what it holds; ")
            && last.contains("proven: the arm of 18 trials; recomputed: ")
            && last.contains("taken on trust: ")
            && last.ends_with("signed by nobody"),
        "{last}"
    );
    assert!(
        last.contains("figures that are in no histogram and no output (")
            && last.contains("system.json"),
        "{last}"
    );
}

#[test]
fn a_directory_packed_twice_is_the_same_file() {
    let bench = packed();
    let again = bench.run(&["pack", "stored", "-o", "again.tar.gz"]);
    expect_code(&again, 0);
    let bytes = |name| fs::read(bench.path(name)).unwrap();
    assert!(bytes("stored.tar.gz") == bytes("again.tar.gz"));
}

#[test]
fn a_changed_file_is_named() {
    let (bench, dir) = unpacked();
    replace(&dir.join("system.json"), "6.18.44", "7.2.0");
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    assert!(
        stdout(&output).contains("DIFFERS  system.json: its bytes"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_missing_and_an_added_file_are_named() {
    let (bench, dir) = unpacked();
    fs::remove_file(dir.join("calibration.json")).unwrap();
    fs::write(dir.join("notes.txt"), "").unwrap();
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    let said = stdout(&output);
    assert!(
        said.contains("calibration.json: was packed, but is missing"),
        "{said}"
    );
    assert!(
        said.contains("notes.txt: is there, but was not packed"),
        "{said}"
    );
}

#[test]
fn a_ratio_that_does_not_follow_from_the_trials_is_named() {
    let (bench, dir) = unpacked();
    let report = dir.join("report/report.json");
    replace(&report, "\"verdict\": \"worse\"", "\"verdict\": \"better\"");
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    let said = stdout(&output);
    assert!(
        said.contains("verdict: says \"better\", recomputed \"worse\""),
        "{said}"
    );
}

#[test]
fn a_figure_that_does_not_follow_from_its_histogram_is_named() {
    let (bench, dir) = unpacked();
    let trial = first_trial(&dir);
    replace(
        &trial.join("trial.json"),
        "\"metric\": \"request_p50\",\n        \"unit\": \"ns\",\n        \"better\": \"lower\",\n        \"value\": ",
        "\"metric\": \"request_p50\",\n        \"unit\": \"ns\",\n        \"better\": \"lower\",\n        \"value\": 9",
    );
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    let named = "trial.json, request_p50: says 9";
    assert!(stdout(&output).contains(named), "{}", stdout(&output));
}

fn first_trial(dir: &Path) -> PathBuf {
    let entries = fs::read_dir(dir.join("trials")).unwrap();
    entries.map(|entry| entry.unwrap().path()).min().unwrap()
}

#[test]
fn a_trial_that_counts_without_proof_is_named() {
    let (bench, dir) = unpacked();
    let trials = fs::read_dir(dir.join("trials")).unwrap();
    let mut paths = trials.map(|entry| entry.unwrap().path());
    let batch = paths.find(|path| path.ends_with("00002-wakeup-50%-b1-batch+nice=5"));
    replace(
        &batch.unwrap().join("trial.json"),
        "\"found\": \"batch\"",
        "\"found\": \"other\"",
    );
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    let named = "trial 2, wakeup 50%, batch+nice=5: counts, but";
    assert!(stdout(&output).contains(named), "{}", stdout(&output));
}

/// The list of hashes as `sha256sum` would write it now, so that every byte agrees again.
fn listed_anew(dir: &Path) {
    let mut names = Vec::new();
    files_below(dir, "", &mut names);
    names.retain(|name| name != "SHA256SUMS");
    names.sort();
    let line = |name: &String| {
        let bytes = fs::read(dir.join(name)).unwrap();
        format!("{}  {name}\n", results::capsule::sha256(&bytes))
    };
    let text: String = names.iter().map(line).collect();
    fs::write(dir.join("SHA256SUMS"), text).unwrap();
}

fn files_below(dir: &Path, prefix: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        match entry.path().is_dir() {
            true => files_below(&entry.path(), &format!("{name}/"), names),
            false => names.push(name),
        }
    }
}

/// The stored results changed, and packed by this schedlab: all bytes and the whole
/// report agree with them.
fn forged(change: impl Fn(&Path)) -> Bench {
    let bench = Bench::default();
    copy(&fixture(), &bench.path("stored"));
    change(&bench.path("stored"));
    expect_code(&bench.run(&["pack", "stored"]), 0);
    bench
}

#[track_caller]
fn differs(bench: &Bench, what: &str, named: &str) {
    let output = bench.run(&["verify", what]);
    expect_code(&output, 1);
    let said = stdout(&output);
    let line = said.lines().find(|line| line.contains(named));
    assert!(line.is_some_and(|line| line.contains("DIFFERS")), "{said}");
}

#[test]
fn figures_whose_histograms_were_deleted_are_not_taken_on_trust() {
    let bench = forged(|dir| {
        for trial in fs::read_dir(dir.join("trials")).unwrap() {
            let trial = trial.unwrap().path();
            for file in ["wakeup.hlog", "request.hlog"] {
                let _ = fs::remove_file(trial.join(file));
            }
            let path = trial.join("trial.json");
            let mut whole: serde_json::Value =
                serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            if whole["arm"] == "batch+nice=5" {
                for metric in whole["result"]["metrics"].as_array_mut().unwrap() {
                    let value = metric["value"].as_f64().unwrap();
                    if metric["unit"] == "ns" {
                        metric["value"] = (value / 5.0).into();
                    }
                }
            }
            fs::write(path, whole.to_string()).unwrap();
        }
    });
    differs(
        &bench,
        "stored.tar.gz",
        "wakeup.hlog: says the histogram of wakeup_p50",
    );
}

#[test]
fn an_empty_histogram_proves_no_figure() {
    let bench = forged(|dir| fs::write(first_trial(dir).join("wakeup.hlog"), "").unwrap());
    differs(&bench, "stored.tar.gz", "wakeup_p99: says");
}

#[test]
fn inconvenient_trials_that_were_deleted_are_missed() {
    let bench = forged(|dir| {
        for trial in fs::read_dir(dir.join("trials")).unwrap() {
            let trial = trial.unwrap().path();
            let name = trial.file_name().unwrap().to_str().unwrap();
            if ["b1-batch", "b2-batch", "b3-batch"]
                .iter()
                .any(|part| name.contains(part))
            {
                fs::remove_dir_all(trial).unwrap();
            }
        }
    });
    differs(
        &bench,
        "stored.tar.gz",
        "place 2 of the plan (wakeup 50%, batch+nice=5, block 1)",
    );
}

#[test]
fn a_plan_that_does_not_follow_from_the_seed_is_named() {
    let bench = forged(|dir| replace(&dir.join("experiment.json"), "\"seed\": 1", "\"seed\": 2"));
    differs(
        &bench,
        "stored.tar.gz",
        "plan.json: is not what this schedlab makes",
    );
}

#[test]
fn the_weight_of_an_arm_is_proven_again() {
    let bench = forged(|dir| {
        replace(
            &dir.join("experiment.json"),
            "\"name\": \"batch+nice=5\",",
            "\"name\": \"batch+nice=5\", \"weight\": 1000,",
        );
    });
    differs(
        &bench,
        "stored.tar.gz",
        "counts, but the cgroup weight of the server was not read",
    );
}

#[test]
fn a_page_that_pack_did_not_make_is_named() {
    let (bench, dir) = unpacked();
    fs::write(dir.join("report/better.html"), "<h1>batch is better</h1>").unwrap();
    differs(
        &bench,
        "capsule/stored",
        "report/better.html: is there, but was not packed",
    );
    listed_anew(&dir);
    differs(
        &bench,
        "capsule/stored",
        "report/better.html: is no part of any results",
    );
}

#[test]
fn results_that_are_links_are_refused() {
    let (bench, dir) = unpacked();
    let system = dir.join("system.json");
    fs::rename(&system, bench.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.path("elsewhere"), &system).unwrap();
    let output = bench.run(&["verify", "capsule/stored"]);
    expect_code(&output, 1);
    assert!(
        stderr(&output).contains("system.json: is a link"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn another_capsule_than_the_one_that_was_meant_is_told_by_its_fingerprint() {
    let bench = packed();
    let said = stdout(&bench.run(&["verify", "stored.tar.gz"]));
    let (_, fingerprint) = said.split_once("fingerprint ").unwrap();
    let fingerprint = fingerprint.split_whitespace().next().unwrap();
    let with =
        |fingerprint: &str| bench.run(&["verify", "stored.tar.gz", "--fingerprint", fingerprint]);
    expect_code(&with(fingerprint), 0);
    let other = with(&"0".repeat(64));
    expect_code(&other, 1);
    assert!(
        stdout(&other).contains("another capsule"),
        "{}",
        stdout(&other)
    );
    expect_code(&with("abc"), 2);
}

/// `None` where there is no ssh-keygen.
fn signed() -> Option<Bench> {
    let bench = Bench::default();
    copy(&fixture(), &bench.path("stored"));
    for (key, who) in [("alice", "alice@lab"), ("mallory", "mallory@lab")] {
        let made = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", who, "-f"])
            .arg(bench.path(key))
            .status();
        if made.is_err() {
            tests::skipped("there is no ssh-keygen");
            return None;
        }
        assert!(made.unwrap().success());
    }
    let public = fs::read_to_string(bench.path("alice.pub")).unwrap();
    bench.file("signers", &format!("alice@lab,root@lab {public}"));
    expect_code(&bench.run(&["pack", "stored", "--sign=alice"]), 0);
    Some(bench)
}

#[test]
fn a_signed_capsule_says_who_signed_it() {
    let Some(bench) = signed() else { return };
    let output = bench.run(&["verify", "stored.tar.gz", "--signer", "signers"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(
        said.contains("signature for alice@lab with ED25519 key SHA256:"),
        "{said}"
    );
    let unasked = stdout(&bench.run(&["verify", "stored.tar.gz"]));
    assert!(
        unasked.contains("unknown  signature: \"schedlab-capsule\" signature"),
        "{unasked}"
    );
}

#[test]
fn a_capsule_signed_by_somebody_else_or_by_nobody_is_told() {
    let Some(bench) = signed() else { return };
    let args = ["pack", "stored", "--sign=mallory", "-o", "other.tar.gz"];
    expect_code(&bench.run(&args), 0);
    expect_code(&bench.run(&["pack", "stored", "-o", "unsigned.tar.gz"]), 0);
    for (file, named) in [
        ("other.tar.gz", "signature: its key is not in signers"),
        ("unsigned.tar.gz", "signature: there is none"),
    ] {
        let output = bench.run(&["verify", file, "--signer", "signers"]);
        expect_code(&output, 1);
        assert!(stdout(&output).contains(named), "{}", stdout(&output));
    }
}

#[test]
fn a_signature_is_of_these_bytes_and_of_this_kind_only() {
    let Some(bench) = signed() else { return };
    let into = bench.path("capsule");
    fs::create_dir(&into).unwrap();
    let limits = results::capsule::Limits::default();
    let dir = results::capsule::unpack_capsule(
        &bench.path("stored.tar.gz"),
        &into,
        limits,
        &false.into(),
    )
    .unwrap();
    let verified = || bench.run(&["verify", "capsule/stored", "--signer", "signers"]);
    expect_code(&verified(), 0);
    // By the right key, but as the signature of a file or of a mail.
    let sums = dir.join("SHA256SUMS");
    let honest = fs::read(dir.join("SHA256SUMS.sig")).unwrap();
    fs::remove_file(dir.join("SHA256SUMS.sig")).unwrap();
    let made = std::process::Command::new("ssh-keygen")
        .args(["-q", "-Y", "sign", "-n", "file", "-f"])
        .arg(bench.path("alice"))
        .arg(&sums)
        .output()
        .unwrap();
    assert!(made.status.success());
    assert!(
        stdout(&verified()).contains("DIFFERS  signature:"),
        "{}",
        stdout(&verified())
    );
    fs::write(dir.join("SHA256SUMS.sig"), honest).unwrap();
    // What it was made of has changed, and the list with it.
    replace(&dir.join("system.json"), "6.18.44", "7.2.0");
    listed_anew(&dir);
    let output = verified();
    expect_code(&output, 1);
    assert!(
        stdout(&output).contains("DIFFERS  signature:"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn a_key_that_is_not_there_is_found_before_anything_is_packed() {
    let bench = Bench::default();
    copy(&fixture(), &bench.path("stored"));
    let output = bench.run(&["pack", "stored", "--sign=nobody"]);
    expect_code(&output, 2);
    assert!(
        stderr(&output).contains("no key nobody"),
        "{}",
        stderr(&output)
    );
    assert!(!bench.path("stored.tar.gz").exists());
}

#[test]
fn an_experiment_of_a_stranger_is_shown_and_not_run_unasked() {
    let bench = packed();
    let output = bench.run(&["run", "--like", "stored.tar.gz", "-o", "repeated"]);
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(
        said.contains("an experiment, `results-1.0`, that runs"),
        "{said}"
    );
    assert!(said.contains("workload wakeup: wakeup at 50%"), "{said}");
    assert!(said.contains("add --yes"), "{said}");
    assert!(!bench.path("repeated").exists());
}

#[test]
fn an_experiment_of_a_stranger_is_checked_as_a_file_is() {
    let bench = Bench::default();
    copy(&fixture(), &bench.path("stored"));
    let file = bench.path("stored/experiment.json");
    replace(&file, "\"nice\": 5", "\"nice\": 50");
    let args = ["run", "--like", "stored", "--yes", "-o", "repeated"];
    let output = bench.run(&args);
    expect_code(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("nice 50 is out of range"), "{said}");
    replace(&file, "\"baseline\": 0", "\"baseline\": 99");
    let output = bench.run(&args);
    assert!(
        stderr(&output).contains("baseline: is 99"),
        "{}",
        stderr(&output)
    );
    assert!(!bench.path("repeated").exists());
}

#[test]
fn what_is_no_capsule_is_refused() {
    let bench = packed();
    fs::write(bench.path("text.tar.gz"), "no archive").unwrap();
    let output = bench.run(&["verify", "text.tar.gz"]);
    expect_code(&output, 1);
    assert!(
        stderr(&output).contains("text.tar.gz: no usable capsule"),
        "{}",
        stderr(&output)
    );
    expect_code(&bench.run(&["verify", "nothing"]), 2);
    expect_code(&bench.run(&["pack", "."]), 2);
}

#[test]
fn a_capsule_that_leads_out_of_its_place_is_refused() {
    let bench = Bench::default();
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(
        fs::File::create(bench.path("evil.tar.gz")).unwrap(),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    header.set_size(2);
    header.as_old_mut().name[..9].copy_from_slice(b"../escape");
    header.set_mode(0o644);
    header.set_cksum();
    archive.append(&header, &b"hi"[..]).unwrap();
    archive.into_inner().unwrap().finish().unwrap();
    let output = bench.run(&["verify", "evil.tar.gz"]);
    expect_code(&output, 1);
    assert!(
        stderr(&output).contains("which no capsule has"),
        "{}",
        stderr(&output)
    );
    assert!(!bench.path("escape").exists());
}

#[test]
fn a_directory_and_its_capsule_lie_side_by_side() {
    let bench = packed();
    let output = bench.run(&["compare", "stored", "stored.tar.gz"]);
    expect_code(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("A and B are the same run"), "{said}");
    assert!(!said.contains("agree"), "{said}");
    assert!(
        said.lines().all(|line| line.chars().count() <= 100),
        "{said}"
    );
}

#[test]
fn a_capsule_is_read_without_schedlab_and_with_it() {
    let (bench, dir) = unpacked();
    let page = fs::read_to_string(dir.join("report/report.html")).unwrap();
    assert!(page.contains("id=\"answer\""), "{page}");
    let text = fs::read_to_string(dir.join("report/report.txt")).unwrap();
    let of = |what, format| bench.run(&["report", what, "--full", "--format", format]);
    for (format, packed) in [("html", &page), ("text", &text)] {
        let output = of("stored.tar.gz", format);
        expect_code(&output, 0);
        assert!(stdout(&output) == *packed, "{format}");
        assert!(stdout(&of("stored", format)) == *packed, "{format}");
    }
    let output = bench.run(&["report", "stored.tar.gz", "--unpack-limit", "1KiB"]);
    expect_code(&output, 1);
    assert!(
        stderr(&output).contains("--unpack-limit"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_page_that_says_something_else_than_the_trials_is_named() {
    let (bench, dir) = unpacked();
    replace(&dir.join("report/report.html"), "worse", "better");
    listed_anew(&dir);
    differs(&bench, "capsule/stored", "report/report.html: line ");
    fs::remove_file(dir.join("report/report.txt")).unwrap();
    listed_anew(&dir);
    differs(&bench, "capsule/stored", "there is no report/report.txt");
}

#[test]
fn nobody_vouches_for_the_page_of_another_version() {
    let (bench, dir) = unpacked();
    replace(&dir.join("report/report.html"), "worse", "better");
    let head = fs::read_to_string(dir.join("capsule.json")).unwrap();
    let mut head: serde_json::Value = serde_json::from_str(&head).unwrap();
    head["packed_by_version"] = "0.0.1".into();
    fs::write(dir.join("capsule.json"), head.to_string()).unwrap();
    listed_anew(&dir);
    let output = bench.run(&["verify", "capsule/stored"]);
    let said = stdout(&output);
    let line = said
        .lines()
        .find(|line| line.contains("report/report.html"));
    assert!(line.is_some_and(|line| line.contains("unknown")), "{said}");
}

#[test]
fn a_check_can_fail_on_what_is_not_decided() {
    let bench = Bench::default();
    copy(&fixture(), &bench.path("stored"));
    // One metric decides, which is not worse, and it is not decided.
    let experiment = bench.path("stored/experiment.json");
    let text = fs::read_to_string(&experiment).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["workloads"][0]["metrics"] = serde_json::json!(["wakeup_p50"]);
    fs::write(&experiment, json.to_string()).unwrap();
    let fails_on = |what| bench.run(&["report", "stored", "--fail-on", what]);
    let output = fails_on("regression");
    expect_code(&output, 0);
    let said = stderr(&output);
    assert!(said.contains("no regression was found, but"), "{said}");
    expect_code(&fails_on("unknown"), 5);
    expect_code(&bench.run(&["report", "stored"]), 0);
}

#[test]
fn other_kernels_are_listed_and_no_cause_is_claimed() {
    let bench = packed();
    copy(&bench.path("stored"), &bench.path("other"));
    for file in ["system.json", "starts.json"] {
        replace(
            &bench.path(&format!("other/{file}")),
            "\"kernel_release\": \"6.18.44\"",
            "\"kernel_release\": \"7.2.13\"",
        );
    }
    let output = bench.run(&["compare", "stored", "other", "--format", "json"]);
    // One of its arms has no trial that counts.
    expect_code(&output, 4);
    let both: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(both["differs"][0]["what"], "kernel");
    assert_eq!(both["differs"][0]["b"], "7.2.13");
    let conclusions = both["conclusions"].to_string();
    assert!(
        conclusions.contains("kernel is the only recorded difference"),
        "{conclusions}"
    );
}

#[test]
fn the_experiment_of_a_capsule_is_repeated_here() {
    let _turn = beside_others();
    let bench = packed();
    let output = bench.run(&[
        "run",
        "--like",
        "stored.tar.gz",
        "--yes",
        "-o",
        "repeated",
        "--max-blocks",
        "1",
        "-q",
    ]);
    expect_code(&output, 0);
    let read = |dir: &str| results::ResultSet::read(&bench.path(dir)).unwrap();
    let (stored, repeated) = (read("stored"), read("repeated"));
    assert_eq!(stored.experiment.arms, repeated.experiment.arms);
    assert_eq!(stored.experiment.workloads, repeated.experiment.workloads);
    assert_eq!(stored.plan.cells, repeated.plan.cells);
    assert_eq!(repeated.trials.len(), repeated.experiment.arms.len());
    expect_code(&bench.run(&["compare", "stored", "repeated"]), 4);
}

/// A run of a command whose figure decides, in `run/`.
fn figure_of_a_command() -> Bench {
    let bench = Bench::default();
    let file = bench.file(
        "figure.toml",
        "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"nice\"\npolicy = { nice = 5 }\n\
         [[workload]]\nname = \"told\"\nkind = \"command\"\ncommand = [\"echo\", \"figure: 600\"]\n\
         [[workload.metric]]\nname = \"figure\"\nbetter = \"lower\"\nregex = 'figure: (?<v>\\S+)'\n\
         [stop]\nmax-blocks = 2\n",
    );
    let ran = bench.run(&["run", "--wait", &file, "-o", "run"]);
    assert!(
        ran.status.code().is_some_and(|code| [0, 4].contains(&code)),
        "{}",
        stderr(&ran)
    );
    bench
}

/// Halves the figure of every trial of the arm `nice`, and makes the files of the report anew.
fn forge(bench: &Bench) {
    let trials = fs::read_dir(bench.path("run/trials")).unwrap();
    for trial in trials.map(|entry| entry.unwrap().path().join("trial.json")) {
        let text = fs::read_to_string(&trial).unwrap();
        let mut trial_json: serde_json::Value = serde_json::from_str(&text).unwrap();
        if trial_json["arm"] != "nice" {
            continue;
        }
        let metrics = trial_json["result"]["metrics"].as_array_mut().unwrap();
        let figure = metrics.iter_mut().find(|m| m["metric"] == "figure");
        figure.unwrap()["value"] = 300.0.into();
        fs::write(&trial, trial_json.to_string()).unwrap();
    }
}

#[test]
fn a_forged_figure_of_a_command_is_named_from_the_output_beside_it() {
    let _turn = beside_others();
    let bench = figure_of_a_command();
    expect_code(&bench.run(&["pack", "run", "-o", "honest.tar.gz"]), 0);
    let honest = bench.run(&["verify", "honest.tar.gz"]);
    expect_code(&honest, 0);
    let said = stdout(&honest);
    assert!(
        said.contains("figures that programs printed: 4 recomputed"),
        "{said}"
    );
    assert!(!said.contains("of the metrics that decide"), "{said}");
    forge(&bench);
    expect_code(&bench.run(&["pack", "run", "-o", "forged.tar.gz"]), 0);
    let forged = bench.run(&["verify", "forged.tar.gz"]);
    expect_code(&forged, 1);
    let said = stdout(&forged);
    assert!(
        said.contains("figure: says 300 count, recomputed 600 count from what its program printed"),
        "{said}"
    );
}

#[test]
fn a_deciding_figure_whose_output_was_taken_away_is_named_in_the_last_line() {
    let _turn = beside_others();
    let bench = figure_of_a_command();
    forge(&bench);
    for trial in fs::read_dir(bench.path("run/trials")).unwrap() {
        fs::remove_file(trial.unwrap().path().join("stdout.log")).unwrap();
    }
    expect_code(&bench.run(&["pack", "run", "-o", "forged.tar.gz"]), 0);
    let said = stdout(&bench.run(&["verify", "forged.tar.gz"]));
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("of the metrics that decide, not recomputed: figure;"),
        "{last}"
    );
}
