//! Every command of README and docs exists and is understood. Those that measure are
//! planned instead of run; those that install or change something are asked for help.

use std::path::{Path, PathBuf};
use tests::{Bench, stderr};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for dir in ["docs", "docs/design", "sched", "guest", "demo"] {
        let entries = std::fs::read_dir(root().join(dir)).expect("a directory");
        pages.extend(entries.map(|e| e.expect("an entry").path()));
    }
    pages.retain(|p| p.extension().is_some_and(|e| e == "md"));
    pages
}

/// Lines that begin with `program `, of fenced blocks that begin with a command (the
/// others are output, or files), without their comments, and those in tables.
fn commands(page: &Path, program: &str) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page");
    let is_command = |l: &str| {
        ["schedlab ", "make ", "cargo "]
            .iter()
            .any(|p| l.starts_with(p))
    };
    let mut found = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let lines = block.lines().skip(1).map(|l| l.trim_start_matches("$ "));
        let lines: Vec<&str> = lines.collect();
        if !lines.first().is_some_and(|first| is_command(first)) {
            continue;
        }
        for line in lines.iter().filter(|l| l.starts_with(program)) {
            let command = line.split(" #").next().unwrap_or(line);
            found.push(command.trim().to_owned());
        }
    }
    let rows = text.lines().filter(|l| l.starts_with('|'));
    let spans = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    found.extend(spans.filter(|s| s.starts_with(program)).map(str::to_owned));
    found
}

/// Command that can be run here in place of one of the documentation.
fn in_place_of(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    // Options that `plan` has not; with `--help` at the end all words are still read.
    let only_of_run = ["--notify", "--fail-on", "--wait"];
    let only_of_run = words.iter().any(|word| only_of_run.contains(word));
    match words.get(1) {
        Some(&"run") if only_of_run => {
            let (command, _) = command.split_once(" > ").unwrap_or((command, ""));
            format!("{command} --help")
        }
        Some(&"run") if words.len() > 2 => command.replacen("schedlab run", "schedlab plan", 1),
        Some(&("list" | "plan")) => command.to_owned(),
        // Sub-commands with a sub-command of their own.
        Some(&("scheduler" | "service" | "tool" | "kernel" | "vm" | "image")) => {
            format!("{} --help", words[..3.min(words.len())].join(" "))
        }
        _ => format!("{} --help", words[..2.min(words.len())].join(" ")),
    }
}

#[test]
fn every_schedlab_command_is_understood() {
    let bench = Bench::default();
    let program = tests::schedlab().display().to_string();
    let mut count = 0;
    for page in pages() {
        for command in commands(&page, "schedlab ") {
            count += 1;
            let line = in_place_of(&command)
                .replacen("schedlab", &program, 1)
                .replace("FILE", "experiments/quickstart.toml");
            let output = std::process::Command::new("sh")
                .args(["-c", &line])
                .env("SCHEDLAB_STATE_DIR", bench.path("state"))
                .current_dir(root())
                .output()
                .expect("sh");
            assert!(
                output.status.success(),
                "{}: {command}\n{}",
                page.display(),
                stderr(&output)
            );
        }
    }
    assert!(count >= 8, "only {count} commands were found");
}

#[test]
fn every_make_target_and_every_bench_exists() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("a Makefile");
    for page in pages() {
        for command in commands(&page, "make ") {
            let target = command.split_whitespace().nth(1).unwrap_or_default();
            assert!(
                makefile.contains(&format!("\n{target}:")),
                "{}: {command}",
                page.display()
            );
        }
        for command in commands(&page, "cargo run ") {
            let mut words = command.split_whitespace().skip_while(|w| *w != "-p");
            let package = words.nth(1).unwrap_or_default();
            let folder = package.strip_prefix("schedlab-").unwrap_or(package);
            let known = [format!("benches/{folder}"), format!("crates/{folder}")];
            assert!(
                known.iter().any(|dir| root().join(dir).exists()),
                "{}: {command}",
                page.display()
            );
        }
    }
}

#[test]
fn every_link_of_the_readme_leads_somewhere() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("a README");
    for target in text.split("](").skip(1).filter_map(|t| t.split(')').next()) {
        if !target.contains("://") {
            assert!(root().join(target).exists(), "{target}");
        }
    }
}
