//! Units of systemd on this machine.

use crate::exit::CliError;
use doors::started::tool_command;
use doors::written::{Trust, find_exposed};
use model::Problem;
use std::path::{Path, PathBuf};

/// Directory of the units of this machine.
pub const UNITS: &str = "/etc/systemd/system";

/// Path of the unit NAME.KIND.
pub fn unit(name: &str, kind: &str) -> PathBuf {
    Path::new(UNITS).join(format!("{name}.{kind}"))
}

/// A word of a command line of a unit (systemd.service(5), "Command lines").
pub fn quote_word(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", word.replace('%', "%%").replace('$', "$$"))
}

/// Refuses what a unit of root would run or read, and others could change: themselves, or on the way
/// from `/` to it.
pub fn for_root(path: &Path) -> Result<(), CliError> {
    let found =
        find_exposed(path, &Trust::in_root()).map_err(|e| file_error("look at", path, &e))?;
    let Some(exposed) = found else {
        return Ok(());
    };
    Err(CliError::Unmet(vec![Problem {
        object: path.display().to_string(),
        what: format!("root would run it, and {exposed}"),
        remedy: "copy it to a directory that only root may write, such as /usr/local/bin or \
                 /etc/schedlab"
            .to_owned(),
    }]))
}

/// This program, as a unit of root starts it.
pub fn program_for_root() -> Result<PathBuf, CliError> {
    let program = std::env::current_exe().map_err(CliError::internal)?;
    for_root(&program)?;
    Ok(program)
}

/// Refuses a machine that systemd does not manage; `remedy` says what to do there.
pub fn require(remedy: &str) -> Result<(), CliError> {
    // sd_booted(3).
    if Path::new("/run/systemd/system").is_dir() {
        return Ok(());
    }
    Err(CliError::Unmet(vec![Problem {
        object: "service".to_owned(),
        what: "this machine was not booted with systemd".to_owned(),
        remedy: remedy.to_owned(),
    }]))
}

/// Runs systemctl(1) to its end.
pub fn systemctl(args: &[&str]) -> Result<(), CliError> {
    let words = format!("systemctl {}", args.join(" "));
    let output = doors::read::output_of_work(tool_command("systemctl").args(args));
    let output = output.map_err(|e| CliError::internal(format!("{words}: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(CliError::internal(format!("{words}: {}", error.trim())))
}

/// Writes a unit.
pub fn write(path: &Path, text: &str) -> Result<(), CliError> {
    doors::written::write_file_durably(path, text).map_err(|e| file_error("write", path, &e))
}

/// Removes what is left of units beside their places, where they were written by a process that was killed.
pub fn remove_partials(units: &[PathBuf]) -> Result<(), CliError> {
    let removed = |unit: &PathBuf| {
        doors::written::remove_partials_of(unit).map_err(|e| file_error("clear", unit, &e))
    };
    units.iter().try_for_each(removed)
}

/// Removes units that are there.
pub fn remove(units: &[PathBuf]) -> Result<(), CliError> {
    remove_partials(units)?;
    for file in units.iter().filter(|file| file.exists()) {
        doors::written::remove_file(file).map_err(|e| file_error("remove", file, &e))?;
    }
    systemctl(&["daemon-reload"])
}

/// A path as a unit may have it.
pub fn absolute_path(path: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(path).map_err(|e| file_error("find", path, &e))
}

/// An error about a file.
pub fn file_error(step: &str, path: &Path, error: &std::io::Error) -> CliError {
    CliError::internal(format!("{step} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_unit_is_quoted_as_systemd_reads_it() {
        assert_eq!(
            quote_word(r#"a "b" 5% $HOME \"#),
            r#""a \"b\" 5%% $$HOME \\""#
        );
    }
}
