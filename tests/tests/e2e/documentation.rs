//! Every command of README and docs exists and is understood. Those that measure are
//! planned instead of run; those that install or change something are asked for help.

#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use tests::{Bench, stderr};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for dir in [
        "docs",
        "docs/guide",
        "docs/design",
        "docs/design/decisions",
        "sched",
        "guest",
        "demo",
    ] {
        let entries = std::fs::read_dir(root().join(dir)).expect("a directory");
        pages.extend(entries.map(|e| e.expect("an entry").path()));
    }
    pages.retain(|p| p.extension().is_some_and(|e| e == "md"));
    pages
}

/// Lines that begin with `program `, of fenced blocks that begin with a command (the
/// others are output, or files), without their comments, and those in tables. What root does is
/// shown with sudo before it.
fn commands(page: &Path, program: &str) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page");
    let is_command = |l: &str| {
        ["schedlab ", "make ", "cargo "]
            .iter()
            .any(|p| l.starts_with(p))
    };
    let mut found = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let block = block.replace("\\\n", " ");
        let lines = block.lines().skip(1).map(|l| l.trim_start_matches("$ "));
        let lines: Vec<&str> = lines.map(|l| l.trim_start_matches("sudo ")).collect();
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
    let spans = spans.map(|span| span.trim_start_matches("sudo "));
    found.extend(spans.filter(|s| s.starts_with(program)).map(str::to_owned));
    found
}

/// Command that can be run here in place of one of the documentation: a run is planned, and of
/// others all words are read, and help is given in place of what they do.
fn in_place_of(command: &str) -> String {
    let (command, _) = command.split_once(" > ").unwrap_or((command, ""));
    let (command, _) = command.split_once(" >> ").unwrap_or((command, ""));
    let (command, _) = command.split_once(" | ").unwrap_or((command, ""));
    // Signs for what else may be written there.
    let command = command.replace([']', '…'], "").replace('[', "");
    let words: Vec<&str> = command.split_whitespace().collect();
    // Options that `plan` has not.
    let only_of_run = [
        "--notify",
        "--fail-on",
        "--wait",
        "--format",
        "--target",
        "--live",
        "--rehearse",
    ];
    let option = |word: &&str| word.split('=').next().unwrap_or_default().to_owned();
    let only_of_run = words
        .iter()
        .any(|word| only_of_run.contains(&option(word).as_str()));
    match words.get(1) {
        Some(&"run") if words.len() > 2 && !only_of_run => {
            command.replacen("schedlab run", "schedlab plan", 1)
        }
        Some(&("list" | "plan")) => command,
        // What follows is a command of the guest.
        Some(&"vm") if words.get(2) == Some(&"exec") => command.replacen("exec", "exec --help", 1),
        _ => match command.split_once(" -- ") {
            Some((ours, theirs)) => format!("{ours} --help -- {theirs}"),
            None => format!("{command} --help"),
        },
    }
}

/// Answer of schedlab to a line of a shell.
fn answer(line: &str) -> std::process::Output {
    let bench = Bench::default();
    let program = tests::schedlab().display().to_string();
    let line = line
        .replacen("schedlab", &program, 1)
        .replace("import TOOL", "import mmtests")
        .replace("FILE", "experiments/quickstart.toml");
    std::process::Command::new("sh")
        .args(["-c", &line])
        .env("SCHEDLAB_STATE_DIR", bench.path("state"))
        .current_dir(root())
        .output()
        .expect("sh")
}

#[test]
fn every_schedlab_command_is_understood() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        for command in commands(&page, "schedlab ") {
            count += 1;
            let output = answer(&in_place_of(&command));
            if !output.status.success() {
                let page = page.display();
                wrong.push(format!("{page}: {command}\n{}", stderr(&output)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 90, "only {count} commands were found");
}

/// Each kind of tool that people come from has its commands, which the test above types.
#[test]
fn the_page_for_users_of_other_tools_has_commands_for_each_kind() {
    let page = root().join("docs/from.md");
    let typed = commands(&page, "schedlab ");
    let text = std::fs::read_to_string(&page).expect("a page");
    let kinds: Vec<&str> = text.split("\n## ").skip(1).collect();
    assert_eq!(kinds.len(), 5, "kinds of tools");
    for kind in kinds {
        let has = typed.iter().filter(|command| kind.contains(*command));
        let title = kind.lines().next().unwrap_or_default();
        assert!(has.count() >= 7, "too few commands of {title}");
        // What is shown of a run was printed by one.
        assert!(kind.contains("```\n$ schedlab"), "no output of {title}");
    }
}

/// So that the first test can fail.
#[test]
fn a_command_with_a_wrong_option_word_or_value_is_not_understood() {
    for command in [
        "schedlab report results/latest --fromat html",
        "schedlab gate old new --fail-on everything",
        "schedlab vm snapshot create --nmae x",
        "schedlab service install FILE --evry night",
        "schedlab run -a bathc -w wakeup",
        "schedlab run -a default -w wakeup --notfy mailto:me@example.com --wait",
        "schedlab verfy x.tar.gz",
    ] {
        let output = answer(&in_place_of(command));
        assert_eq!(output.status.code(), Some(2), "{command}");
    }
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

/// Links of a page to files here, with what is after the `#`. Links in code are none.
fn links(page: &Path) -> Vec<(PathBuf, Option<String>)> {
    let text = std::fs::read_to_string(page).expect("a page");
    let prose: String = text.split("```").step_by(2).collect();
    let prose: String = prose.split('`').step_by(2).collect();
    let targets = prose.split("](").skip(1);
    let targets = targets.filter_map(|rest| rest.split(')').next());
    let here = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    here.map(|target| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let place = match file {
            "" => page.to_owned(),
            file => page.parent().expect("a directory").join(file),
        };
        (place, (!anchor.is_empty()).then(|| anchor.to_owned()))
    })
    .collect()
}

/// The anchor that a heading has on pages that show Markdown.
fn anchor_of(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    let text: String = heading.to_lowercase().chars().filter(kept).collect();
    text.trim().replace(' ', "-")
}

fn has_heading(page: &Path, anchor: &str) -> bool {
    let text = std::fs::read_to_string(page).expect("a page");
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    headings.any(|line| anchor_of(line.trim_start_matches('#')) == anchor)
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        for (place, anchor) in links(&page) {
            count += 1;
            let is_there = place.exists() && anchor.as_ref().is_none_or(|a| has_heading(&place, a));
            if !is_there {
                let (page, place) = (page.display(), place.display());
                wrong.push(format!("{page}: {place} {}", anchor.unwrap_or_default()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 100, "only {count} links were found");
}

#[test]
fn every_page_of_the_guide_is_in_its_index() {
    let index = std::fs::read_to_string(root().join("docs/guide.md")).expect("an index");
    for page in std::fs::read_dir(root().join("docs/guide")).expect("a directory") {
        let name = page.expect("an entry").file_name();
        let link = format!("(guide/{})", name.to_string_lossy());
        assert!(index.contains(&link), "docs/guide.md has no {link}");
    }
}
