//! Man pages and completions, as `make install` puts them below a prefix.

#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::Command;
use tests::{Bench, expect_code, skipped, stdout};

/// The share/ directory that `schedlab manual` fills.
fn share(bench: &Bench) -> PathBuf {
    let share = bench.path("share");
    expect_code(&bench.run(&["manual", &share.display().to_string()]), 0);
    share
}

/// Sub-commands that the help of a command lists.
fn listed(bench: &Bench, command: &[&str]) -> Vec<String> {
    let help = stdout(&bench.run(&[command, &["--help"]].concat()));
    let list = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    names.map(str::to_owned).collect()
}

/// Every command with its sub-commands, as `vm snapshot create`.
fn all_commands(bench: &Bench, above: &[&str]) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for name in listed(bench, above) {
        let path = [above, &[name.as_str()]].concat();
        all.push(path.iter().map(|word| (*word).to_owned()).collect());
        all.extend(all_commands(bench, &path));
    }
    all
}

fn pages(share: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(share.join("man/man1")).expect("man pages");
    entries.map(|e| e.expect("an entry").path()).collect()
}

#[test]
fn every_command_has_a_man_page_and_nothing_else_has() {
    let bench = Bench::default();
    let mut wanted: Vec<String> = all_commands(&bench, &[])
        .iter()
        .map(|words| format!("schedlab-{}.1", words.join("-")))
        .collect();
    assert!(wanted.len() > 20, "only {wanted:?}");
    wanted.push("schedlab.1".to_owned());
    wanted.sort();
    let pages = pages(&share(&bench));
    let names = pages.iter().map(|path| path.file_name().expect("a name"));
    let mut found: Vec<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
    found.sort();
    assert_eq!(found, wanted);
}

#[test]
fn man_formats_every_page_without_a_warning() {
    let bench = Bench::default();
    if Command::new("man").arg("--version").output().is_err() {
        return skipped("man is not installed");
    }
    for page in pages(&share(&bench)) {
        let output = Command::new("man")
            .args(["--warnings", "--local-file"])
            .arg(&page)
            .envs([
                ("LC_ALL", "C.UTF-8"),
                ("MANWIDTH", "80"),
                ("MANPAGER", "cat"),
            ])
            .output()
            .expect("man starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.is_empty(),
            "{page:?}: {said}"
        );
        let text = stdout(&output);
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION"] {
            assert!(text.contains(heading), "{page:?} lacks {heading}:\n{text}");
        }
    }
}

/// Completions that bash offers for the last word of a line.
fn offered(share: &Path, line: &[&str]) -> Vec<String> {
    let script = r#"
        source "$1"; shift
        function=$(complete -p schedlab | sed 's/.*-F \([^ ]*\).*/\1/')
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        "$function" schedlab "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let output = Command::new("bash")
        .args(["--norc", "-c", script, "bash"])
        .arg(share.join("bash-completion/completions/schedlab"))
        .args(line)
        .output()
        .expect("bash starts");
    expect_code(&output, 0);
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    let bench = Bench::default();
    let share = share(&bench);
    assert_eq!(offered(&share, &["schedlab", "sch"]), ["scheduler"]);
    assert_eq!(
        offered(&share, &["schedlab", "scheduler", "in"]),
        ["install"]
    );
    assert_eq!(
        offered(&share, &["schedlab", "run", "--max-b"]),
        ["--max-blocks"]
    );
    assert_eq!(
        offered(&share, &["schedlab", "report", "--format", "mark"]),
        ["markdown"]
    );
    // What schedlab starts itself is offered to nobody.
    assert_eq!(offered(&share, &["schedlab", "agen"]), [""]);
}

#[test]
fn zsh_and_fish_have_their_completions() {
    let bench = Bench::default();
    let share = share(&bench);
    for (file, start) in [
        ("zsh/site-functions/_schedlab", "#compdef schedlab"),
        (
            "fish/vendor_completions.d/schedlab.fish",
            "# Print an optspec",
        ),
    ] {
        let text = std::fs::read_to_string(share.join(file)).expect("a completion");
        assert!(text.starts_with(start), "{file}:\n{text}");
        assert!(text.contains("certify"), "{file}:\n{text}");
    }
}
