//! Options of schedulers that are varied: each program is asked once, before the race, whether it knows them.

use crate::exit::CliError;
use doors::read::output_of;
use doors::started::{Agreed, named_command};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An error where a program that is here does not name a varied option in its help. One that is not here is
/// asked by its first trial.
pub fn check_options(vary: &[String]) -> Result<(), CliError> {
    let mut directories = schedulers::bin_dirs()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    directories.extend(std::env::split_paths(&path));
    check_options_in(vary, &directories)
}

fn check_options_in(vary: &[String], directories: &[PathBuf]) -> Result<(), CliError> {
    for (program, options) in by_program(vary) {
        let Some(path) = collect::tools::find_in(program, directories.iter().cloned()) else {
            continue;
        };
        let mut command = named_command(&path, Agreed::by_command());
        let Ok(output) = output_of(command.arg("--help")) else {
            continue;
        };
        let said = [output.stdout, output.stderr].concat();
        let help = String::from_utf8_lossy(&said);
        let known = options_of(&help);
        if known.is_empty() {
            continue;
        }
        if let Some(option) = options.iter().find(|option| !known.contains(option)) {
            let nearest = model::find_nearest(option, known.iter().copied());
            let near = nearest.map(|near| format!("did you mean `{near}`? "));
            return Err(CliError::usage(
                format!(
                    "--vary '{program} {option}': this version of {program} has no such option"
                ),
                format!(
                    "{}`{program} --help` lists those of {}",
                    near.unwrap_or_default(),
                    path.display()
                ),
            ));
        }
    }
    Ok(())
}

/// The options that are varied, by program.
fn by_program(vary: &[String]) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for text in vary {
        let key = text.split('=').next().unwrap_or_default().trim();
        if let Some((program, option)) = key.split_once(' ') {
            // What else is written there stays as it is for all candidates.
            let option = option.split_whitespace().last().unwrap_or_default();
            found.entry(program).or_default().push(option);
        }
    }
    found
}

/// Words of a help that begin with a dash, without what follows the name.
fn options_of(help: &str) -> Vec<&str> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let words = help.split_whitespace().filter(|word| word.starts_with('-'));
    let names = words.map(|word| word.split(is_end).next().unwrap_or_default());
    names.filter(|name| name.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_option_that_the_installed_version_does_not_have_is_refused_before_the_race() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("scx_x");
        let help = "#!/bin/sh\necho 'Usage: scx_x [OPTIONS]\n  -s, --slice-us <N>  length\n'";
        std::fs::write(&program, help).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let directories = [dir.path().to_owned()];
        let check = |vary: &str| check_options_in(&[vary.to_owned()], &directories);
        assert!(check("scx_x --slice-us=1..5").is_ok());
        assert!(check("scx_x -s=1..5").is_ok());
        assert!(check("scx_absent --any=1..5").is_ok());
        assert!(check("nice=0,5").is_ok());
        let refused = check("scx_x --slice-su=1..5").unwrap_err();
        let refused = format!("{refused:?}");
        assert!(refused.contains("did you mean `--slice-us`"), "{refused}");
    }
}
