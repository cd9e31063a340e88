//! One poisoned text, sent through every string of every input and every command: no output has a
//! character that a terminal would obey.

use model::printable::is_hidden;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Output;
use tests::{Bench, write_program};

/// Title of a terminal, CSI in one character, a right-to-left override, NUL, a return, DEL, a tag.
const POISON: &str = "\u{1b}]0;pwn\u{7}\u{9b}2J\u{202e}\u{0}\r\u{7f}\u{e0041}";
/// The same without what no name of a file and no argument can have.
const IN_A_NAME: &str = "\u{1b}]0;pwn\u{7}\u{9b}2J\u{202e}\r\u{7f}\u{e0041}";

/// Both streams have lines and tabs, and nothing else that is obeyed rather than seen.
#[track_caller]
fn expect_clean(output: &Output, what: &str) {
    for (stream, bytes) in [("output", &output.stdout), ("errors", &output.stderr)] {
        let text = String::from_utf8_lossy(bytes);
        let raw = text
            .chars()
            .find(|c| is_hidden(*c) && !matches!(c, '\n' | '\t'));
        assert_eq!(raw, None, "{what}: {stream}: {text:?}");
    }
}

/// Formats of `report`, `run` and `import`.
const FORMATS: [&str; 10] = [
    "text",
    "lkml",
    "csv",
    "comparisons",
    "requests",
    "json",
    "html",
    "markdown",
    "junit",
    "ktap",
];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("a copy")),
        }
    }
}

/// Real results, as format 1.0 has them.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/results-1.0")
}

/// The strings of a value by their place, where items of a list have the same place.
fn places(value: &Value, at: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::String(_) => drop(all.insert(at.to_owned())),
        Value::Array(items) => items
            .iter()
            .for_each(|item| places(item, &format!("{at}/*"), all)),
        Value::Object(items) => items
            .iter()
            .for_each(|(key, item)| places(item, &format!("{at}/{key}"), all)),
        _ => {}
    }
}

/// Poisons the strings of these places.
fn poison(value: &mut Value, at: &str, places: &BTreeSet<String>) {
    match value {
        Value::String(text) if places.contains(at) => text.push_str(POISON),
        Value::Array(items) => {
            let items = items.iter_mut();
            items.for_each(|item| poison(item, &format!("{at}/*"), places));
        }
        Value::Object(items) => {
            let items = items.iter_mut();
            items.for_each(|(key, item)| poison(item, &format!("{at}/{key}"), places));
        }
        _ => {}
    }
}

/// A results directory, and its files of JSON by their path in it.
struct Results<'a> {
    bench: &'a Bench,
    files: Vec<(String, Value)>,
}

impl<'a> Results<'a> {
    fn new(bench: &'a Bench) -> Self {
        let mut names: Vec<String> = ["manifest", "experiment", "plan", "system"]
            .map(|name| format!("{name}.json"))
            .into();
        let trials = fs::read_dir(fixture().join("trials"))
            .expect("trials")
            .flatten();
        names.extend(trials.map(|t| format!("trials/{}/trial.json", t.file_name().display())));
        let read = |name: String| {
            let bytes = fs::read(fixture().join(&name)).expect("a file");
            (name, serde_json::from_slice(&bytes).expect("JSON"))
        };
        let files = names.into_iter().map(read).collect();
        Results { bench, files }
    }

    /// Kind of a file: all trials are one.
    fn kind(name: &str) -> &str {
        name.rsplit('/').next().unwrap_or(name)
    }

    /// Places of all strings, such as `system.json/hostname`.
    fn all(&self) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        for (name, value) in &self.files {
            places(value, Self::kind(name), &mut all);
        }
        all
    }

    /// Results with poison in these places.
    fn write(&self, dir: &str, places: &BTreeSet<String>) {
        copy(&fixture(), &self.bench.path(dir));
        for (name, value) in &self.files {
            let mut value = value.clone();
            poison(&mut value, Self::kind(name), places);
            let path = self.bench.path(dir).join(name);
            fs::write(path, value.to_string()).expect("written");
        }
    }

    /// Those places of which the results are read with poison in them. What is refused is refused
    /// with words that are clean.
    fn accepted(&self) -> BTreeSet<String> {
        let mut accepted = BTreeSet::new();
        for place in self.all() {
            let mut places = accepted.clone();
            places.insert(place.clone());
            let _ = fs::remove_dir_all(self.bench.path("one"));
            self.write("one", &places);
            let output = self.bench.run(&["report", "one", "--format", "json"]);
            expect_clean(&output, &place);
            if output.status.success() {
                accepted = places;
            }
        }
        accepted
    }
}

/// Every command that reads results, in each of its formats.
fn all_commands(bench: &Bench, results: &str, other: &str) {
    let mut commands: Vec<Vec<&str>> = FORMATS
        .iter()
        .flat_map(|format| {
            let report = vec!["report", results, "--format", format];
            let full = vec!["report", results, "--full", "--format", format];
            [report, full]
        })
        .collect();
    for format in ["text", "json"] {
        commands.push(vec![
            "compare", results, other, "--full", "--format", format,
        ]);
        commands.push(vec!["verify", results, "--format", format]);
        commands.push(vec![
            "pack", results, "-o", "c.tar.gz", "--force", "--format", format,
        ]);
    }
    for format in ["text", "json", "markdown", "junit", "ktap"] {
        for by in ["effects", "levels"] {
            commands.push(vec!["gate", other, results, "--by", by, "--format", format]);
        }
    }
    for format in ["text", "json", "markdown"] {
        commands.push(vec!["recommend", results, other, "--format", format]);
        commands.push(vec!["recommend", results, "--format", format]);
    }
    for fail in ["regression", "unknown"] {
        commands.push(vec!["report", results, "--fail-on", fail]);
    }
    commands.push(vec!["run", "--like", results, "-o", "never"]);
    commands.push(vec!["run", "--resume", results]);
    commands.push(vec!["merge", results, other, "-o", "merged"]);
    commands.push(vec!["plan", results]);
    commands.push(vec!["history", "add", results, "--store", "history"]);
    for format in ["text", "json"] {
        let in_history = |words: &[&'static str]| {
            let more = ["--store", "history", "--format", format];
            [&["history"], words, &more].concat()
        };
        commands.push(in_history(&["list"]));
        commands.push(in_history(&["list", "--runs"]));
        commands.push(in_history(&["check"]));
        // A run and its series are among what begins so.
        for start in ["0", "2", "4", "6", "8", "a", "c", "e"] {
            commands.push(in_history(&["show", start]));
        }
    }
    for words in [
        &["history", "list", "--format", "openmetrics"][..],
        &["history", "page", "-o", "/dev/stdout"],
        &["gate", "--history", other],
    ] {
        commands.push([words, &["--store", "history"]].concat());
    }
    for command in commands {
        expect_clean(&bench.run(&command), &command.join(" "));
    }
}

#[test]
fn every_string_of_results_comes_out_of_every_command_without_what_a_terminal_obeys() {
    let bench = Bench::default();
    let results = Results::new(&bench);
    assert!(results.all().len() > 40, "{:?}", results.all());
    let accepted = results.accepted();
    assert!(accepted.len() > 20, "{accepted:?}");
    results.write("poisoned", &accepted);
    results.write("plain", &BTreeSet::new());
    all_commands(&bench, "poisoned", "plain");
    all_commands(&bench, "plain", "poisoned");
    expect_clean_files(&bench.path("poisoned/report"));
    let packed = bench.run(&["pack", "poisoned", "-o", "packed.tar.gz"]);
    expect_clean(&packed, "pack");
    if packed.status.success() {
        all_commands(&bench, "packed.tar.gz", "plain");
    }
}

/// Reports that were written as files.
fn expect_clean_files(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).expect("text");
        let raw = text
            .chars()
            .find(|c| is_hidden(*c) && !matches!(c, '\n' | '\t'));
        assert_eq!(raw, None, "{}", entry.path().display());
    }
}

/// The pieces of a text that stand between quotation marks, by their place in it.
fn quoted(text: &str) -> Vec<usize> {
    let marks: Vec<usize> = text.match_indices('"').map(|(at, _)| at).collect();
    marks.chunks_exact(2).map(|pair| pair[1]).collect()
}

#[test]
fn every_string_of_an_experiment_is_planned_or_refused_in_clean_words() {
    let bench = Bench::default();
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments");
    let mut tried = 0;
    for name in ["quickstart", "memcached-slo", "cgroups", "scx-tour"] {
        let text = fs::read_to_string(experiments.join(format!("{name}.toml"))).expect("a file");
        let poison = "\\u001b]0;pwn\\u0007\\u009b2J\\u202e\\u0000\\r\\u007f";
        for end in quoted(&text) {
            let poisoned = format!("{}{poison}{}", &text[..end], &text[end..]);
            let file = bench.file("x.toml", &poisoned);
            for format in ["text", "json"] {
                let output = bench.run(&["plan", &file, "--format", format]);
                expect_clean(&output, &poisoned);
            }
            tried += 1;
        }
        // And raw, in a comment and in a key.
        for raw in [
            format!("# {POISON}\n{text}"),
            format!("x{IN_A_NAME} = 1\n{text}"),
        ] {
            let file = bench.file("x.toml", &raw);
            expect_clean(&bench.run(&["plan", &file]), &raw);
        }
    }
    assert!(tried > 40, "{tried}");
}

#[test]
fn names_and_texts_of_other_tools_are_imported_in_clean_words() {
    let bench = Bench::default();
    let load = format!("in/results/hack{IN_A_NAME}bench/process-pipe/group-1");
    fs::create_dir_all(bench.path(&load)).expect("a directory");
    for run in ["6.1", "6.2"] {
        let log = bench.path(&load).join(format!("{run}{IN_A_NAME}.log"));
        fs::write(log, "10.5\n10.25\n10.75\n").expect("a log");
    }
    fs::write(bench.path("text"), format!("{POISON}\nline {POISON}\n")).expect("a file");
    for tool in [
        "schedtests",
        "phoronix",
        "mmtests",
        "schbench",
        "schedbench",
    ] {
        for (from, format) in ["in/results", "text"]
            .iter()
            .flat_map(|f| FORMATS.map(|m| (f, m)))
        {
            let _ = fs::remove_dir_all(bench.path("out"));
            let args = ["import", tool, from, "-o", "out", "--format", format];
            expect_clean(&bench.run(&args), &args.join(" "));
        }
    }
}

/// `ssh` and `git` of a bench, first on PATH, and what is run there.
fn with_program(bench: &Bench, name: &str, script: &str, args: &[&str]) -> Output {
    fs::create_dir_all(bench.path("bin")).expect("a directory");
    write_program(&bench.path("bin").join(name), script);
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", bench.path("bin").display());
    let output = bench.command(args).env("PATH", path).output();
    output.expect("schedlab starts")
}

/// A far machine that gives the wanted answers to the first look, and poison as all else.
const FAR: &str = r#"#!/bin/sh
for a; do last=$a; done
poison=$(printf '\033]0;pwn\007\302\2332J\342\200\256\177\rx')
case $last in
"sh -s"*)
    hash=$(sed -n 's/^hash=//p')
    printf 'schedlab-look\nmachine=x86_64\nsystem=Linux\nrelease=6.1%s\nhostname=h%s\n' "$poison" "$poison"
    printf 'uid=0\nclock=%s\nboot=x%s\ncache=/tmp/none%s\nwritable=yes\n' "$(date +%s)" "$poison" "$poison"
    printf 'free_kib=9999999\nagent=%s\nschedlab-end\n' "$hash" ;;
*) printf '%s\n' "$poison"; printf '%s' "$poison"; printf '%s\n' "$poison" >&2; exit 0 ;;
esac
"#;

#[test]
fn what_another_machine_says_is_shown_and_not_obeyed() {
    let bench = Bench::default();
    for args in [
        &["doctor", "--target", "ssh:far"][..],
        &["doctor", "--target", "ssh:far", "--format", "json"],
        &["restore", "--target", "ssh:far"],
        &["target", "check", "ssh:far"],
        &["target", "check", "ssh:far", "--format", "json"],
    ] {
        let output = with_program(&bench, "ssh", FAR, args);
        expect_clean(&output, &args.join(" "));
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(
            said.contains("]0;pwn"),
            "{args:?} shows nothing of it: {said}"
        );
    }
}

/// A process of this name that ends with the test.
struct Named(std::process::Child);

impl Drop for Named {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn names_of_processes_are_shown_and_not_obeyed() {
    let bench = Bench::default();
    let path = bench.path("\u{1b}]0;p\u{7}\u{9b}x\u{202e}");
    symlink("/bin/sh", &path).expect("a link");
    let busy = std::process::Command::new(&path)
        .args(["-c", "while :; do :; done"])
        .spawn();
    let _busy = Named(busy.expect("a shell starts"));
    for format in ["text", "json"] {
        let output = bench.run(&["doctor", "--format", format]);
        expect_clean(&output, format);
    }
}

#[test]
fn subjects_of_commits_are_shown_and_not_obeyed() {
    let bench = Bench::default();
    let script = format!(
        "git init -q r && cd r && for n in 1 2 3; do git -c user.name=a -c user.email=a@b.c commit -q \
         --allow-empty -m \"$n {IN_A_NAME}\" && git tag v$n; done"
    );
    let made = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(bench.dir.path())
        .status();
    assert!(
        made.is_ok_and(|made| made.success()),
        "git makes a repository"
    );
    let repository = bench.path("r").display().to_string();
    let build = format!("echo '{IN_A_NAME}'; exit 1");
    let args = [
        "bisect",
        "bin/x",
        "--build",
        &build,
        "--repository",
        &repository,
        "--good",
        "v1",
        "--bad",
        "v3",
        "--budget",
        "1m",
        "-o",
        "out",
        "--yes",
        "-w",
        "hackbench",
    ];
    expect_clean(&bench.run(&args), "bisect");
}

#[test]
fn words_of_the_command_line_are_shown_and_not_obeyed() {
    let bench = Bench::default();
    let name = format!("x{IN_A_NAME}");
    for args in [
        &["report", &name][..],
        &[&name],
        &["report", "--format", &name],
        &["run", "-a", &name, "-w", &name],
        &["run", "-a", "default", "-w", "wakeup", "--budget", &name],
        &["vm", "exec", &name, "true"],
        &["list", &name],
        &["list", "arms", &name],
        &["tool", "install", &name],
        &["scheduler", "install", &name],
        &["kernel", "build", &name],
        &["service", "remove", &name],
        &["target", "check", &name],
    ] {
        expect_clean(&bench.run(args), &args.join(" "));
    }
}
