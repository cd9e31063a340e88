//! Options of schedulers that are varied: each program is asked once, before the race, whether it knows them.

use crate::exit::CliError;
use doors::read::output_of;
use doors::started::{Agreed, named_command};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An option that the help of an installed program does not name.
struct Unknown {
    program: String,
    option: String,
    path: PathBuf,
    nearest: Option<String>,
}

/// An error where a program that is here does not name a varied option in its help. One that is not here is
/// asked by its first trial.
pub fn check_options(vary: &[String]) -> Result<(), CliError> {
    check_options_in(vary, &directories()?)
}

/// The settings of a ready space that the installed version knows, and the options that it does not.
pub fn keep_known(vary: Vec<String>) -> Result<(Vec<String>, Vec<String>), CliError> {
    Ok(keep_known_in(vary, &directories()?))
}

fn keep_known_in(vary: Vec<String>, directories: &[PathBuf]) -> (Vec<String>, Vec<String>) {
    let unknown = find_unknown(&vary, directories);
    let is_unknown = |text: &String| {
        let named = split_option(text);
        unknown
            .iter()
            .any(|of| named == Some((of.program.as_str(), of.option.as_str())))
    };
    let left_out = unknown.iter().map(|of| of.option.clone()).collect();
    let known = vary.iter().filter(|text| !is_unknown(text)).cloned();
    (known.collect(), left_out)
}

fn directories() -> Result<Vec<PathBuf>, CliError> {
    let mut directories = schedulers::bin_dirs()?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    directories.extend(std::env::split_paths(&path));
    Ok(directories)
}

fn check_options_in(vary: &[String], directories: &[PathBuf]) -> Result<(), CliError> {
    match find_unknown(vary, directories).into_iter().next() {
        None => Ok(()),
        Some(unknown) => {
            let (program, option) = (&unknown.program, &unknown.option);
            let near = unknown.nearest.as_ref();
            let near = near.map(|near| format!("did you mean `{near}`? "));
            Err(CliError::usage(
                format!(
                    "--vary '{program} {option}': this version of {program} has no such option"
                ),
                format!(
                    "{}`{program} --help` lists those of {}",
                    near.unwrap_or_default(),
                    unknown.path.display()
                ),
            ))
        }
    }
}

fn find_unknown(vary: &[String], directories: &[PathBuf]) -> Vec<Unknown> {
    let mut found = Vec::new();
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
        let unknown = options.into_iter().filter(|option| !known.contains(option));
        found.extend(unknown.map(|option| Unknown {
            program: program.to_owned(),
            option: option.to_owned(),
            path: path.clone(),
            nearest: model::find_nearest(option, known.iter().copied()).map(str::to_owned),
        }));
    }
    found
}

/// The options that are varied, by program.
fn by_program(vary: &[String]) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (program, option) in vary.iter().filter_map(|text| split_option(text)) {
        found.entry(program).or_default().push(option);
    }
    found
}

/// Program and option of a setting; none where it is of no program.
fn split_option(text: &str) -> Option<(&str, &str)> {
    let key = text.split('=').next().unwrap_or_default().trim();
    let (program, option) = key.split_once(' ')?;
    // What else is written there stays as it is for all candidates.
    let option = option.split_whitespace().last().unwrap_or_default();
    Some((program, option.trim_end_matches('?')))
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
        assert!(check("scx_x --slice-us?").is_ok());
        let ready = ["scx_x --slice-us=1..5", "scx_x --other?"].map(str::to_owned);
        let (known, left_out) = keep_known_in(ready.to_vec(), &directories);
        assert_eq!((known.len(), left_out), (1, vec!["--other".to_owned()]));
        let refused = check("scx_x --slice-su=1..5").unwrap_err();
        let refused = format!("{refused:?}");
        assert!(refused.contains("did you mean `--slice-us`"), "{refused}");
    }
}
