//! The architecture as `docs/design/architecture.md` describes it is the one that is built.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Crates that each of them may use.
const FOR_ALL: [&str; 2] = ["model", "doors"];

/// Names of the folders below `crates`.
fn crates() -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("crates")).expect("the folder of crates");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// The table below the heading "Edges" of the page.
fn described() -> BTreeMap<String, BTreeSet<String>> {
    let page = root().join("docs/design/architecture.md");
    let text = fs::read_to_string(page).expect("the page");
    let (_, table) = text.split_once("## Edges").expect("its last section");
    let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.map(|row| {
        let mut cells = row.trim_matches('|').split('|').map(str::trim);
        let name = cells.next().expect("a crate").to_owned();
        let uses = cells.next().expect("its crates").split(", ");
        (name, uses.map(str::to_owned).collect())
    });
    cells.collect()
}

/// Crates of ours in the section `[dependencies]` of a manifest.
fn used(name: &str, ours: &BTreeSet<String>) -> BTreeSet<String> {
    let manifest = root().join("crates").join(name).join("Cargo.toml");
    let text = fs::read_to_string(manifest).expect("a manifest");
    let manifest: toml::Table = text.parse().expect("TOML");
    let dependencies = manifest
        .get("dependencies")
        .and_then(|table| table.as_table());
    let names = dependencies.into_iter().flat_map(|table| table.keys());
    names.filter(|name| ours.contains(*name)).cloned().collect()
}

#[test]
fn crates_use_each_other_as_the_page_says() {
    let (ours, described) = (crates(), described());
    for name in &ours {
        let mut used = used(name, &ours);
        used.retain(|other| !FOR_ALL.contains(&other.as_str()));
        let allowed = described.get(name).cloned().unwrap_or_default();
        assert_eq!(
            used, allowed,
            "{name}: mend the code or docs/design/architecture.md"
        );
    }
    for name in described.keys() {
        assert!(ours.contains(name), "{name} is described and is not there");
    }
}

/// Lines that a source file has at most, without the module of its tests at the end.
const MOST_LINES: usize = 600;

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The sources of the product with their texts, without the modules of tests at their ends.
fn product() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for name in crates() {
        sources(&root().join("crates").join(name).join("src"), &mut files);
    }
    assert!(files.len() > 100, "the sources were not found");
    files.retain(|file| !file.ends_with("tests.rs"));
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("a source");
        let product = text.split("\n#[cfg(test)]\nmod ").next();
        let product = product.unwrap_or(&text).to_owned();
        (file, product)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn no_file_of_the_product_is_longer_than_six_hundred_lines() {
    let mut long = BTreeSet::new();
    for (file, text) in product() {
        if text.lines().count() > MOST_LINES {
            let name = file
                .strip_prefix(root().join("crates"))
                .expect("below crates");
            long.insert(name.display().to_string());
        }
    }
    assert_eq!(long, BTreeSet::new(), "longer than {MOST_LINES} lines");
}

/// Words that tell nothing where a function is called.
const PREPOSITIONS: [&str; 10] = [
    "at", "by", "for", "from", "in", "of", "on", "since", "to", "with",
];
/// Percent of the public functions that may have one word for a name.
const MOST_OF_ONE_WORD: usize = 35;

#[test]
fn public_functions_tell_where_they_are_called_what_they_do() {
    let mut names = Vec::new();
    for (file, text) in product() {
        let public = text.lines().filter_map(|line| {
            let line = line.trim_start().strip_prefix("pub")?;
            let line = line
                .strip_prefix("(crate)")
                .or(line.strip_prefix("(super)"))
                .unwrap_or(line);
            let name = line
                .trim_start()
                .trim_start_matches("const ")
                .strip_prefix("fn ")?;
            name.split(['(', '<']).next()
        });
        names.extend(public.map(|name| (file.clone(), name.to_owned())));
    }
    let vague = names
        .iter()
        .filter(|(_, name)| PREPOSITIONS.contains(&name.as_str()));
    assert_eq!(vague.collect::<Vec<_>>(), Vec::<&(PathBuf, String)>::new());
    let of_one_word = names.iter().filter(|(_, name)| !name.contains('_')).count();
    assert!(
        of_one_word * 100 < names.len() * MOST_OF_ONE_WORD,
        "{of_one_word} of {}",
        names.len()
    );
}

/// Modules whose names are participles and stay: the doors, as the design calls them,
/// and what is a noun, too (a bound) or a name of others (TuneD, `Transfer-Encoding: chunked`).
const PARTICIPLES: [&str; 9] = [
    "bound",
    "chunked",
    "imported",
    "memcached",
    "shared",
    "shown",
    "started",
    "tuned",
    "written",
];
/// Participles that do not end as most do, and words that stand before a noun.
const NO_NOUNS: [&str; 24] = [
    "alone",
    "apart",
    "beside",
    "between",
    "bound",
    "by",
    "elsewhere",
    "found",
    "given",
    "grown",
    "heard",
    "held",
    "in",
    "inside",
    "kept",
    "like",
    "made",
    "of",
    "paid",
    "said",
    "shown",
    "told",
    "whose",
    "written",
];

#[test]
fn modules_are_called_by_nouns() {
    let mut wrong = BTreeSet::new();
    for (file, _) in product() {
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let is_participle =
            name.ends_with("ed") && !name.contains('_') || NO_NOUNS.contains(&name.as_str());
        if is_participle && !PARTICIPLES.contains(&name.as_str()) {
            wrong.insert(name);
        }
    }
    assert_eq!(wrong, BTreeSet::new());
}

/// Our scripts, and those of a CI.
fn scripts() -> Vec<PathBuf> {
    let folders = ["scripts", "ci", ".ci"].map(|folder| root().join(folder));
    let entries = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    let is_script = |path: &PathBuf| {
        let text = fs::read(path).unwrap_or_default();
        text.starts_with(b"#!/bin/sh") || text.starts_with(b"#!/usr/bin/env bash")
    };
    paths.filter(is_script).collect()
}

#[test]
fn each_script_is_one_that_its_shell_can_read() {
    let scripts = scripts();
    assert!(scripts.len() > 10, "{scripts:?}");
    for script in scripts {
        let read = std::process::Command::new("bash")
            .arg("-n")
            .arg(&script)
            .output()
            .expect("bash");
        let said = String::from_utf8_lossy(&read.stderr);
        assert!(read.status.success(), "{}: {said}", script.display());
        // A shell takes these in a text that it only prints.
        let text = fs::read_to_string(&script).expect("text");
        assert!(!text.contains("\n<<<<<<< "), "{}", script.display());
    }
}

#[test]
fn each_row_of_long_tests_has_its_last_date_in_the_docs() {
    let script = fs::read_to_string(root().join("scripts/test-long")).expect("the script");
    let (_, rows) = script.split_once("<<'ROWS'\n").expect("its rows");
    let (rows, _) = rows.split_once("\nROWS\n").expect("their end");
    let page = fs::read_to_string(root().join("docs/reliability.md")).expect("the page");
    let (_, table) = page
        .split_once("\n| row | last passed |")
        .expect("the table");
    for row in rows.lines() {
        let name = row.split('|').next().expect("a name").trim();
        let is_there = table.contains(&format!("\n| `{name}` | "));
        assert!(is_there, "docs/reliability.md has no row of `{name}`");
    }
}
