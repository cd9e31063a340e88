//! Programs of the boot loaders, run to their end.

use doors::read::output_of;
use doors::started::tool_at;
use std::path::Path;

/// Standard output of a program that must succeed.
pub(crate) fn run_program(name: &str, args: &[&str]) -> Result<String, String> {
    let words = || format!("{name} {}", args.join(" "));
    let output = output_of(tool_at(Path::new(name)).args(args).env("LC_ALL", "C"))
        .map_err(|e| format!("`{}`: {e}", words()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = model::printable::last_lines(&said, 2, "; ");
    Err(format!("`{}` failed: {said} ({})", words(), output.status))
}

/// The first of these programs that is installed, in PATH or where root has programs.
pub(crate) fn find_installed(names: &[&'static str]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<_> = std::env::split_paths(&path).collect();
    directories.extend(["/usr/sbin", "/sbin"].map(Into::into));
    let directories = std::env::join_paths(directories).ok()?;
    let find = |name: &&str| which::which_in(name, Some(&directories), "/").ok();
    let found = names.iter().find_map(find)?;
    Some(found.display().to_string())
}
