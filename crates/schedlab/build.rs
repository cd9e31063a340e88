//! The commit that the binary was built from goes into every manifest.

#![allow(clippy::disallowed_methods)]

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
    let output = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output();
    let commit = match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into(),
        _ => String::new(),
    };
    println!("cargo::rustc-env=SCHEDLAB_COMMIT={}", commit.trim());
}
