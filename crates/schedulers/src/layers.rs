//! Arguments that a scheduler cannot do without.
//!
//! scx_layered has no layers of its own: started without a specification it
//! ends with "No layer spec", and what is measured then is the kernel's
//! default. It gets the specification of `sched/layers/`, documented there.
//! scx_microquanta that is told of no tasks favours none: it gets those that are
//! measured.

use crate::cache::Cache;
use crate::error::Error;
use crate::measured;
use model::Task;
use std::fs;
use std::path::{Path, PathBuf};

const DEFAULT_LAYERS: &str = include_str!("../../../sched/layers/default.json");

/// The arguments to start `program` with: the given ones, and for scx_layered
/// without a layer specification the shipped one, as a file in `cache`, for
/// scx_microquanta without tasks the `measured` ones.
pub fn default_args(
    cache: &Cache,
    program: &str,
    given: &[String],
    measured: &[Task],
) -> Result<Vec<String>, Error> {
    let mut args = given.to_vec();
    match name(program) {
        Some("scx_layered") if !given.iter().any(|a| settles_layers(a)) => {
            args.push(format!("file:{}", write_layers(cache)?.display()));
        }
        Some("scx_microquanta") => args.extend(measured::tasks(given, measured)),
        _ => {}
    }
    Ok(args)
}

/// By file name, whichever version: `/x/bin/scx_layered`, `scx_layered@1.1.4`.
fn name(program: &str) -> Option<&str> {
    let file = Path::new(program).file_name()?.to_str()?;
    Some(crate::split_name(file).0)
}

/// A specification (JSON text or `f:`/`file:` and a path), its built-in
/// example, or an option under which it schedules nothing.
fn settles_layers(arg: &str) -> bool {
    const OPTIONS: [&str; 9] = [
        "--run-example",
        "--example",
        "-e",
        "--monitor",
        "--help",
        "-h",
        "--version",
        "-V",
        "--help-stats",
    ];
    let option = arg.split('=').next().unwrap_or(arg);
    OPTIONS.contains(&option)
        || ["f:", "file:"].iter().any(|p| arg.starts_with(p))
        || arg.trim_start().starts_with('[')
}

/// Written anew when it differs, by rename: another run may be reading it.
fn write_layers(cache: &Cache) -> Result<PathBuf, Error> {
    let dir = cache.layers_dir();
    let file = dir.join("default.json");
    if fs::read_to_string(&file).is_ok_and(|now| now == DEFAULT_LAYERS) {
        return Ok(file);
    }
    fs::create_dir_all(&dir).map_err(Error::io("create", &dir))?;
    let fresh = dir.join(format!("default.json.{}", std::process::id()));
    fs::write(&fresh, DEFAULT_LAYERS).map_err(Error::io("write", &fresh))?;
    fs::rename(&fresh, &file).map_err(Error::io("rename", &file))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(program: &str, given: &[&str]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let given: Vec<String> = given.iter().map(|a| (*a).to_owned()).collect();
        let measured = [Task::Thread("wakeup-*")];
        default_args(&Cache::at(dir.path()), program, &given, &measured).unwrap()
    }

    #[test]
    fn layered_without_layers_gets_the_shipped_ones() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path());
        let args = default_args(&cache, "scx_layered", &["-s".into(), "5000".into()], &[]).unwrap();
        let file = args.last().unwrap().strip_prefix("file:").unwrap();
        assert_eq!(args[..2], ["-s", "5000"]);
        assert_eq!(fs::read_to_string(file).unwrap(), DEFAULT_LAYERS);
    }

    #[test]
    fn a_path_or_a_version_in_the_name_changes_nothing() {
        assert_eq!(args("/opt/bin/scx_layered", &[]).len(), 1);
        assert_eq!(args("scx_layered@1.1.4", &[]).len(), 1);
    }

    #[test]
    fn layers_that_the_user_gives_are_left_alone() {
        for given in [
            "f:my.json",
            "file:my.json",
            " [{}]",
            "--run-example",
            "--monitor=1",
        ] {
            assert_eq!(args("scx_layered", &[given]), [given]);
        }
    }

    #[test]
    fn microquanta_without_tasks_gets_those_that_are_measured() {
        let args = args("scx_microquanta", &["--runtime", "1ms"]);
        assert_eq!(args, ["--runtime", "1ms", "--thread", "wakeup-*"]);
    }

    #[test]
    fn other_schedulers_get_nothing() {
        assert_eq!(args("scx_rusty", &["--slice-us", "5000"]).len(), 2);
    }

    #[test]
    fn the_last_shipped_layer_takes_every_task() {
        let layers: serde_json::Value = serde_json::from_str(DEFAULT_LAYERS).unwrap();
        let last = layers.as_array().unwrap().last().unwrap();
        assert_eq!(last["matches"], serde_json::json!([[]]));
    }
}
