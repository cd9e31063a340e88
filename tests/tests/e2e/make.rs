//! Rules of the Makefile that decide by themselves when something is out of date.

#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tests::{expect_code, skipped, tree, write_program};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `make ARGS…` below this folder, with the rules of this repository.
fn make(folder: &Path, args: &[&str]) -> Output {
    Command::new("make")
        .arg("--directory")
        .arg(folder)
        .arg("--file")
        .arg(root().join("Makefile"))
        .args(args)
        // Those of a `make test` around this.
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .output()
        .expect("make starts")
}

/// A schedlab that writes a line into the image that it is to build.
const FAKE: &str = "#!/bin/sh\necho image >> \"$3\"\n";

/// How often the image of the bank has been built in this folder, after another `make` of it.
fn images_after_make(folder: &Path) -> usize {
    let cache = format!("SCHEDLAB_CACHE_DIR={}", folder.join("cache").display());
    let args = [
        "--old-file",
        "demo/target/built",
        "SCHEDLAB=./schedlab",
        "BANKING_SCHEDULERS=scx_one scx_two",
        &cache,
        "demo/target/bank.squashfs",
    ];
    let output = make(folder, &args);
    expect_code(&output, 0);
    let image = std::fs::read_to_string(folder.join("demo/target/bank.squashfs"));
    image.expect("an image").lines().count()
}

#[test]
fn the_image_of_the_bank_is_built_anew_when_a_scheduler_changed_and_only_then() {
    if Command::new("make").arg("--version").output().is_err() {
        return skipped("make is not installed");
    }
    let folder = tree(&[
        ("demo/target/built", ""),
        ("cache/schedulers/bin/scx_one", "1.0"),
        ("cache/schedulers/bin/scx_two", "1.0"),
        ("cache/schedulers/bin/scx_other", "1.0"),
    ]);
    write_program(&folder.path().join("schedlab"), FAKE);
    let make = || images_after_make(folder.path());
    let install = |name: &str, program: &str| {
        let path = folder.path().join("cache/schedulers/bin").join(name);
        std::fs::write(path, program).expect("a program");
    };
    assert_eq!(make(), 1);
    assert_eq!(make(), 1, "nothing changed");
    install("scx_two", "1.1");
    assert_eq!(make(), 2, "a newer one is installed");
    install("scx_two", "1.1");
    install("scx_other", "1.1");
    assert_eq!(make(), 2, "none that is in the image changed");
}

/// Paths of all files below a folder, from there.
fn files_below(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let nested = paths.map(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        match path.is_dir() {
            true => files_below(&path)
                .iter()
                .map(|inner| format!("{name}/{inner}"))
                .collect(),
            false => vec![name.into_owned()],
        }
    });
    nested.collect::<Vec<_>>().concat()
}

#[test]
fn an_installation_is_below_its_prefix_and_works_there() {
    let folder = tree(&[]);
    let place = folder.path().join("package");
    let program = format!("SCHEDLAB={}", tests::schedlab().display());
    let destination = format!("DESTDIR={}", place.display());
    let args = [
        "--old-file",
        "build",
        &program,
        &destination,
        "prefix=/opt/lab",
        "install",
    ];
    expect_code(&make(folder.path(), &args), 0);
    let files = files_below(folder.path());
    let outside = files
        .iter()
        .find(|file| !file.starts_with("package/opt/lab/"));
    assert_eq!(outside, None, "all is below DESTDIR and prefix");
    for file in [
        "bin/schedlab",
        "share/man/man1/schedlab.1",
        "share/man/man1/schedlab-run.1",
        "share/bash-completion/completions/schedlab",
        "share/zsh/site-functions/_schedlab",
        "share/fish/vendor_completions.d/schedlab.fish",
    ] {
        let file = format!("package/opt/lab/{file}");
        assert!(files.contains(&file), "{file} is not in {files:?}");
    }
    let installed = place.join("opt/lab/bin/schedlab");
    let output = Command::new(installed).args(["list", "arms"]).output();
    expect_code(&output.expect("it starts"), 0);
}
