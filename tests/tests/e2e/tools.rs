//! `schedlab tool`: a benchmark from a local mirror, started by a workload that knows it by name
//! only, with its commit in the results.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use results::ResultSet;
use std::path::Path;
use std::process::Command;
use tests::{Bench, beside_others, expect_code, stderr, stdout};

/// A program that answers as schbench does, and measures nothing.
const SOURCE: &str = r#"
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help")) {
            fprintf(stderr, "schbench usage:\n");
            return 0;
        }
    const char *of[] = { "Wakeup", "Request" };
    for (int i = 0; i < 2; i++)
        fprintf(stderr, "%s Latencies percentiles (usec) runtime 1 (s) (100000 total samples)\n"
            "\t  50.0th: 5          (4 samples)\n\t  90.0th: 7          (4 samples)\n"
            "\t* 99.0th: 9          (1 samples)\n\t  99.9th: 9          (1 samples)\n"
            "\t  min=3, max=9\n", of[i]);
    fprintf(stderr, "average rps: 10.00\n");
    return 0;
}
"#;

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git starts");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).trim().to_owned()
}

/// A mirror of the repository with one commit, and that.
fn mirror(bench: &Bench) -> (String, String) {
    let directory = bench.path("mirror");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("schbench.c"), SOURCE).unwrap();
    git(&directory, &["init", "--quiet"]);
    git(&directory, &["add", "."]);
    git(&directory, &["commit", "--quiet", "-m", "one"]);
    let commit = git(&directory, &["rev-parse", "HEAD"]);
    (directory.display().to_string(), commit)
}

/// PATH without the folders that have a schbench, which would come before an installed one.
fn without_schbench() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let others = std::env::split_paths(&path).filter(|folder| !folder.join("schbench").exists());
    std::env::join_paths(others).expect("they were in PATH")
}

/// schedlab with a cache of its own.
fn run(bench: &Bench, arguments: &[&str]) -> std::process::Output {
    let mut command = bench.command(arguments);
    command.env("SCHEDLAB_CACHE_DIR", bench.path("cache"));
    command.env("PATH", without_schbench());
    command.output().expect("schedlab starts")
}

#[test]
fn an_installed_schbench_is_started_by_its_workload_and_named_in_the_results() {
    let _turn = beside_others();
    let bench = Bench::default();
    let (from, commit) = mirror(&bench);
    let file = bench.file(
        "x.toml",
        "[[arm]]\nname = \"default\"\n[[arm]]\nname = \"batch\"\npolicy = { class = \"batch\" }\n\
         [[workload]]\nkind = \"schbench\"\nloads = [1]\nduration = \"1s\"\n\
         [stop]\nmin-blocks = 1\nmax-blocks = 1\n",
    );
    let before = run(&bench, &["check", &file]);
    expect_code(&before, 3);
    let said = stderr(&before) + &stdout(&before);
    assert!(said.contains("schedlab tool install schbench"), "{said}");

    let name = format!("schbench@{commit}");
    let output = run(&bench, &["tool", "install", &name, "--from", &from]);
    expect_code(&output, 0);
    assert!(stderr(&output).contains("licence GPL-2.0-only"));
    assert!(stdout(&output).contains(&commit), "{}", stdout(&output));

    let output = run(&bench, &["run", &file, "-o", "out"]);
    expect_code(&output, 0);
    let results = ResultSet::read(&bench.path("out")).unwrap();
    let tool = &results.system.facts["tool.schbench"];
    assert!(tool.starts_with(&format!("commit {commit}")), "{tool}");
    let metrics = &results.trials[0].trial.result.metrics;
    let p99 = metrics.iter().find(|m| m.metric == "wakeup_p99").unwrap();
    assert!((p99.value - 9000.0).abs() < 0.5, "{p99:?}");
    // The list says which one it is.
    let listed = run(&bench, &["tool", "list"]);
    expect_code(&listed, 0);
    assert!(stdout(&listed).contains(&commit[..12]));
}

#[test]
fn errors_of_an_installation_say_what_to_do() {
    let bench = Bench::default();
    let (from, _) = mirror(&bench);
    // The mirror has not the commit that was tried with schedlab.
    let output = run(&bench, &["tool", "install", "schbench", "--from", &from]);
    expect_code(&output, 3);
    let said = stderr(&output);
    assert!(
        said.contains("has no commit 24e32b8") && said.contains("NAME@COMMIT"),
        "{said}"
    );
    let package = bench.file("netperf.deb", "no package");
    let output = run(&bench, &["tool", "install", "netperf", "--from", &package]);
    expect_code(&output, 3);
    let said = stderr(&output);
    // On other machines the package is refused before it is looked at.
    assert!(
        said.contains("another one: its SHA-256 is") || said.contains("is a package for x86_64"),
        "{said}"
    );
    let nowhere = bench.path("nowhere").display().to_string();
    let output = run(&bench, &["tool", "install", "schbench", "--from", &nowhere]);
    expect_code(&output, 3);
    assert!(stderr(&output).contains("could not be fetched"));
    let output = run(&bench, &["tool", "install", "schbenhc"]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("did you mean `schbench`?"));
    let output = run(&bench, &["tool", "install", "schbench@main"]);
    expect_code(&output, 2);
    assert!(stderr(&output).contains("40 digits"));
    let output = run(&bench, &["tool", "list", "--format", "json"]);
    expect_code(&output, 0);
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        listed
            .as_array()
            .unwrap()
            .iter()
            .all(|tool| tool["installed"].is_null())
    );
}
