//! Rules of the Makefile that decide by themselves when something is out of date.

use std::path::{Path, PathBuf};
use std::process::Command;
use tests::{expect_code, skipped, tree, write_program};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A schedlab that writes a line into the image that it is to build.
const FAKE: &str = "#!/bin/sh\necho image >> \"$3\"\n";

/// How often the image of the bank has been built in this folder, after another `make` of it.
fn images_after_make(folder: &Path) -> usize {
    let output = Command::new("make")
        .arg("--directory")
        .arg(folder)
        .arg("--file")
        .arg(root().join("Makefile"))
        .args(["--old-file", "demo/target/built", "SCHEDLAB=./schedlab"])
        .args([
            "BANKING_SCHEDULERS=scx_one scx_two",
            "demo/target/bank.squashfs",
        ])
        .env("SCHEDLAB_CACHE_DIR", folder.join("cache"))
        // Those of a `make test` around this.
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .output()
        .expect("make starts");
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
