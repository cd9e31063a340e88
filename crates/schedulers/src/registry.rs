//! Which version of a crate is the newest, or is in a directory, asked through
//! cargo, which knows the user's registry, proxy and offline settings.

use crate::version::{self, Version};
use doors::read::output_of_work;
use doors::started::tool_at;
use std::path::Path;

/// The newest version of `name` that `cargo info` reports, or why there is none.
/// `neutral` is a directory outside any workspace, whose lock file would decide.
pub(crate) fn ask_newest(cargo: &Path, name: &str, neutral: &Path) -> Result<Version, String> {
    let mut info = tool_at(cargo);
    info.args(["info", "--quiet", "--color", "never", name])
        .current_dir(neutral);
    let output = output_of_work(&mut info).map_err(|e| format!("{}: {e}", cargo.display()))?;
    match output.status.success() {
        true => parse(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| "cargo info printed no version".to_owned()),
        false => Err(first_line(&String::from_utf8_lossy(&output.stderr))),
    }
}

/// The version of the crate whose manifest this is, or why there is none.
pub(crate) fn version_of_path(cargo: &Path, manifest: &Path) -> Result<Version, String> {
    let mut pkgid = tool_at(cargo);
    pkgid
        .args(["pkgid", "--quiet", "--color", "never", "--manifest-path"])
        .arg(manifest)
        // rustup's cargo obeys a rust-toolchain.toml around the working directory.
        .current_dir("/");
    let output = output_of_work(&mut pkgid).map_err(|e| format!("{}: {e}", cargo.display()))?;
    match output.status.success() {
        true => parse_id(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| "cargo pkgid printed no version".to_owned()),
        false => Err(first_line(&String::from_utf8_lossy(&output.stderr))),
    }
}

/// `path+file:///tree/sched/scx_own#0.1.0`, or `…#name@0.1.0` where the directory
/// has another name.
fn parse_id(id: &str) -> Option<Version> {
    let (_, version) = id.trim().rsplit_once(['#', '@'])?;
    version::parse(version)
}

/// `version: 1.1.4`, or `version: 1.1.4 (latest 1.2.0)` where a newer release
/// needs a newer Rust than the one here.
fn parse(info: &str) -> Option<Version> {
    let line = info.lines().find_map(|l| l.strip_prefix("version: "))?;
    version::parse(line.split_whitespace().next()?)
}

fn first_line(stderr: &str) -> String {
    let line = stderr.lines().find(|l| !l.trim().is_empty());
    let line = line.unwrap_or("cargo info failed and said nothing");
    line.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_cargo_info_prints() {
        let info = "scx_rusty\nA scheduler\nversion: 1.1.4\nlicense: GPL-2.0-only\n";
        assert_eq!(parse(info).unwrap().to_string(), "1.1.4");
    }

    #[test]
    fn the_version_that_can_be_built_here_is_taken_over_the_latest() {
        let info = "scx_rusty\nversion: 1.1.4 (latest 1.2.0)\n";
        assert_eq!(parse(info).unwrap().to_string(), "1.1.4");
    }

    #[test]
    fn the_version_of_a_directory_is_read_from_its_package_id() {
        for id in [
            "path+file:///a@b/scx_own#0.1.0",
            "path+file:///own#scx_own@0.1.0",
        ] {
            assert_eq!(parse_id(id).unwrap().to_string(), "0.1.0");
        }
        assert_eq!(parse_id("scx_own"), None);
    }

    #[test]
    fn output_without_a_version_gives_none() {
        assert_eq!(parse("scx_rusty\nunversioned\n"), None);
    }
}
