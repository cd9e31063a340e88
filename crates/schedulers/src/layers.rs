//! Arguments that a scheduler cannot do without.
//!
//! scx_layered has no layers of its own: started without a specification it
//! ends with "No layer spec", and what is measured then is the kernel's
//! default. It gets the specification of `sched/layers/`, documented there, as JSON
//! in the argument itself: a file of this machine would not be there on another one.
//! scx_microquanta that is told of no tasks favours none: it gets those that are
//! measured.

use crate::measured_tasks;
use model::Task;
use std::path::Path;

const DEFAULT_LAYERS: &str = include_str!("../../../sched/layers/default.json");

/// The arguments to start `program` with: the given ones, and for scx_layered
/// without a layer specification the shipped one, for scx_microquanta without tasks
/// the `measured` ones.
pub fn default_args(program: &str, given: &[String], measured: &[Task]) -> Vec<String> {
    let mut args = given.to_vec();
    match name(program) {
        Some("scx_layered") if !given.iter().any(|a| settles_layers(a)) => {
            args.push(on_one_line(DEFAULT_LAYERS));
        }
        Some("scx_microquanta") => args.extend(measured_tasks::task_arguments(given, measured)),
        _ => {}
    }
    args
}

/// JSON whose texts have no breaks and no blanks at their ends.
fn on_one_line(json: &str) -> String {
    let lines: Vec<&str> = json.lines().map(str::trim).collect();
    lines.join(" ")
}

/// By file name, whichever version: `/x/bin/scx_layered`, `scx_layered@1.1.4`,
/// `scx_layered@git:../scx`.
fn name(program: &str) -> Option<&str> {
    if let Some(of) = crate::GitName::parse(program) {
        return Some(of.name);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn args(program: &str, given: &[&str]) -> Vec<String> {
        let given: Vec<String> = given.iter().map(|a| (*a).to_owned()).collect();
        default_args(program, &given, &[Task::Thread("wakeup-*")])
    }

    #[test]
    fn layered_without_layers_gets_the_shipped_ones_in_one_word() {
        let args = args("scx_layered", &["-s", "5000"]);
        assert_eq!(args[..2], ["-s", "5000"]);
        let json = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(json(&args[2]), json(DEFAULT_LAYERS));
        assert!(settles_layers(&args[2]) && !args[2].contains('\n'));
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
