//! Limits of what comes in: no file, no capsule and no other machine fills the memory.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tests::{Bench, expect_code, schedlab, stderr, write_program};

/// The most memory that a command takes, whatever it is given to read.
const MOST_KIB: u32 = 256 << 10;

/// schedlab with so much memory for data. The limit is the kernel's: beyond it an allocation fails,
/// and the program ends with a signal.
fn bounded(bench: &Bench, args: &[&str]) -> Output {
    let script = format!("ulimit -d {MOST_KIB} && exec \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script])
        .arg(schedlab())
        .args(args)
        .current_dir(bench.dir.path())
        .env("SCHEDLAB_STATE_DIR", bench.path("state"))
        .env("NO_COLOR", "1")
        .env("PATH", path_of(bench))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Programs of the test come first.
fn path_of(bench: &Bench) -> String {
    let usual = std::env::var("PATH").unwrap_or_default();
    format!("{}:{usual}", bench.path("bin").display())
}

/// Results in `name/`, whose experiment has this key in its target.
pub(super) fn results_with(bench: &Bench, name: &str, key: &str) {
    let dir = bench.path(name);
    synthetic::write(&dir, &synthetic::quickstart()).unwrap();
    let path = dir.join("experiment.json");
    let text = fs::read_to_string(&path).unwrap();
    let changed = text.replacen("\"kind\"", &format!("{key},\n\"kind\""), 1);
    assert_ne!(text, changed);
    fs::write(&path, changed).unwrap();
    // What makes a capsule of it.
    let head =
        r#"{"format": {"major": 1, "minor": 2}, "packed_by_version": "", "packed_by_commit": ""}"#;
    fs::write(dir.join("capsule.json"), head).unwrap();
}

/// A capsule of a directory, as anybody can make it with a few lines.
pub(super) fn pack(bench: &Bench, name: &str) {
    let file = fs::File::create(bench.path(&format!("{name}.tar.gz"))).unwrap();
    let gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let mut archive = tar::Builder::new(gzip);
    append(&mut archive, &bench.path(name), name);
    archive.into_inner().unwrap().finish().unwrap();
}

fn append(archive: &mut tar::Builder<impl std::io::Write>, path: &Path, name: &str) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{name}/{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            append(archive, &path, &name);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, name, bytes.as_slice())
            .unwrap();
    }
}

#[test]
fn no_results_fill_the_memory() {
    let bench = Bench::default();
    // 30 million values of two bytes, as many as a small file may have, and a deep list.
    let lists = [30_000_000, 1_900_000].map(|count| format!("[0{}]", ",0".repeat(count)));
    for list in lists {
        results_with(&bench, "r", &format!("\"x\": {list}"));
        pack(&bench, "r");
        for results in ["r", "r.tar.gz"] {
            for args in [
                &["report", results][..],
                &["verify", results],
                &["compare", results, results],
                &["run", "--like", results, "--yes"],
                &["gate", results, results],
            ] {
                let output = bounded(&bench, args);
                let code = output.status.code();
                assert!(matches!(code, Some(1 | 2)), "{args:?}: {output:?}");
                let said = stderr(&output);
                let has_limit = said.contains("larger than") || said.contains("more than");
                assert!(has_limit, "{args:?}: {said}");
            }
        }
    }
}

#[test]
fn a_key_that_no_target_reads_is_a_finding() {
    let bench = Bench::default();
    results_with(&bench, "r", "\"x\": [0, 0]");
    let output = bench.run(&["verify", "r"]);
    expect_code(&output, 1);
    let said = tests::stdout(&output);
    assert!(said.contains("unknown field `x`"), "{said}");
}

#[test]
fn a_machine_that_says_too_much_is_left() {
    let bench = Bench::default();
    fs::create_dir(bench.path("bin")).unwrap();
    for script in ["exec cat /dev/zero", "exec cat /dev/zero >&2"] {
        write_program(&bench.path("bin/ssh"), format!("#!/bin/sh\n{script}\n"));
        let output = bounded(&bench, &["target", "check", "ssh:somewhere"]);
        expect_code(&output, 3);
        let said = stderr(&output);
        assert!(said.contains("more than 1 MiB"), "{said}");
        assert!(said.contains("login shell"), "{said}");
    }
}

#[test]
fn a_file_that_never_ends_is_refused() {
    let bench = Bench::default();
    let pipe = bench.path("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for (file, why) in [
        ("pipe", "nobody wrote to it"),
        ("/dev/zero", "a device"),
        (".", "a directory"),
    ] {
        let output = bounded(&bench, &["plan", file]);
        expect_code(&output, 2);
        assert!(stderr(&output).contains(why), "{file}: {}", stderr(&output));
    }
    let script = format!("'{}' plan <(cat experiments/x.toml)", schedlab().display());
    fs::create_dir(bench.path("experiments")).unwrap();
    let text = "[[arm]]\nname = \"default\"\n[[workload]]\nkind = \"wakeup\"\n";
    fs::write(bench.path("experiments/x.toml"), text).unwrap();
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(bench.dir.path())
        .output()
        .unwrap();
    expect_code(&output, 0);
}

/// A file of schedbench with as many of these parts as have so many bytes.
fn bench_file(
    bench: &Bench,
    name: &str,
    bytes: usize,
    [head, tail]: [&str; 2],
    part: fn(usize) -> String,
) {
    let mut text = head.to_owned();
    for index in 1.. {
        if text.len() + tail.len() + 200 > bytes {
            break;
        }
        if index > 1 {
            text.push(',');
        }
        text += &part(index);
    }
    fs::write(bench.path(name), text + tail).unwrap();
}

/// One run with the reports of a worker, each as short as it can be.
const REPORTS: [&str; 2] = [
    r#"{"Runs": [{"Label": "A", "WorkerSets": [{"Params": {}, "Count": 1}], "Completed": true, "Results": {"Raw": ["#,
    "]}}]}",
];

fn report(index: usize) -> String {
    format!(r#"{{"Id":{{"Set":0,"Id":0}},"Now":{index},"Kops":{index}}}"#)
}

/// Runs of one worker each.
const RUNS: [&str; 2] = [r#"{"Runs": ["#, "]}"];

fn run_of_one(index: usize) -> String {
    format!(
        r#"{{"Label":"{index}","WorkerSets":[{{"Params":{{"Args":["burnwait","{index}","0"]}},"Count":1}}]}}"#
    )
}

#[test]
fn no_file_of_another_tool_fills_the_memory() {
    let bench = Bench::default();
    let (accepted, refused) = (16 << 20, 17 << 20);
    for (bytes, says) in [(accepted, "work_per_sec"), (refused, "larger than 16 MiB")] {
        bench_file(&bench, "reports.bench", bytes, REPORTS, report);
        let args = [
            "import",
            "schedbench",
            "reports.bench",
            "-o",
            &format!("out-{bytes}"),
        ];
        let output = bounded(&bench, &args);
        let said = tests::stdout(&output) + &stderr(&output);
        assert!(said.contains(says), "{bytes}: {:?} {said}", output.status);
    }
    for (bytes, says) in [
        (accepted, "more than 1000 cells"),
        (refused, "larger than 16 MiB"),
    ] {
        bench_file(&bench, "runs.bench", bytes, RUNS, run_of_one);
        let output = bounded(&bench, &["plan", "runs.bench"]);
        expect_code(&output, 2);
        let said = stderr(&output);
        assert!(said.contains(says), "{bytes}: {said}");
    }
}
