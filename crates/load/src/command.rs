//! Any program: its wall time and its CPU time. A program that fails is a failed
//! trial, not a fast one.

use crate::{Driver, Job, KindDef, Launch, LoadForms, Output, Parsed, Window, program};
use model::{Better, CommandParams, MetricDef, Problem};
use std::path::{Path, PathBuf};

/// The kind `command`.
pub static KIND: KindDef = KindDef {
    name: "command",
    aliases: &[],
    summary: "any program, from its start to its end",
    loads: LoadForms::Counts,
    load_unit: "runs",
    window: Window::Whole,
    client: false,
    metrics: METRICS,
    deciding: DECIDING,
    logs: &[],
    tasks: &[],
    programs: &[],
    handicap: false,
};

const WALL_TIME: MetricDef = MetricDef {
    name: "wall_time",
    unit: "s",
    better: Better::Lower,
    text: "Time from the start of the program to its end.",
};
const CPU_TIME: MetricDef = MetricDef {
    name: "cpu_time",
    unit: "s",
    better: Better::Lower,
    text: "User and system time of the program and the children that it waited for.",
};
pub const METRICS: &[MetricDef] = &[WALL_TIME, CPU_TIME];
pub const DECIDING: &[&str] = &["wall_time"];

#[derive(Debug, Clone)]
pub struct Command {
    params: CommandParams,
}

impl Command {
    pub fn new(params: CommandParams) -> Self {
        Command { params }
    }

    fn directory(&self) -> Option<PathBuf> {
        self.params.directory.as_ref().map(PathBuf::from)
    }

    fn missing_directory(&self) -> Option<&str> {
        let directory = self.params.directory.as_deref();
        directory.filter(|d| !Path::new(d).is_dir())
    }

    /// A program with a slash in its name is looked up from the working directory.
    fn is_missing(&self, name: &str) -> bool {
        let name = match self.directory() {
            Some(directory) if name.contains('/') => directory.join(name),
            _ => PathBuf::from(name),
        };
        program::find(&name.to_string_lossy()).is_none()
    }
}

impl Driver for Command {
    fn require(&self, job: &Job) -> Vec<Problem> {
        let problem = |what: String, remedy: &str| Problem {
            object: format!("workload {}", job.workload.name),
            what,
            remedy: remedy.to_owned(),
        };
        if let Some(directory) = self.missing_directory() {
            let what = format!("the directory {directory} does not exist");
            return vec![problem(what, "create it, or correct `directory`")];
        }
        let programs = [self.params.argv.first(), self.params.prepare.first()];
        programs
            .into_iter()
            .flatten()
            .filter(|name| self.is_missing(name))
            .map(|name| {
                problem(
                    format!("there is no program {name}"),
                    "install it, or give its path",
                )
            })
            .collect()
    }

    fn launch(&self, _job: &Job) -> Launch {
        Launch {
            argv: self.params.argv.clone(),
            directory: self.directory(),
            stdin: String::new(),
            phased: false,
            prepare: self.params.prepare.clone(),
        }
    }

    fn parse(&self, _job: &Job, output: &Output) -> Result<Parsed, String> {
        let name = self
            .params
            .argv
            .first()
            .map_or("the command", String::as_str);
        program::succeeded(name, output)?;
        let cpu_ns = output.user_ns + output.system_ns;
        Ok(Parsed {
            metrics: vec![
                WALL_TIME.measured(output.wall_ns as f64 / 1e9),
                CPU_TIME.measured(cpu_ns as f64 / 1e9),
            ],
            ..Parsed::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use model::Kind;

    fn command(argv: &[&str], directory: Option<&str>) -> CommandParams {
        CommandParams {
            argv: argv.iter().map(|s| (*s).to_owned()).collect(),
            directory: directory.map(str::to_owned),
            prepare: Vec::new(),
        }
    }

    fn problems(params: CommandParams) -> Vec<Problem> {
        let fixture = testing::Fixture::new(Kind::Command(params.clone()));
        Command::new(params).require(&fixture.job())
    }

    #[test]
    fn a_command_is_started_as_it_is_written() {
        let params = command(&["make", "-j4"], Some("/tmp"));
        let fixture = testing::Fixture::new(Kind::Command(params.clone()));
        let launch = Command::new(params).launch(&fixture.job());
        assert_eq!(launch.argv, ["make", "-j4"]);
        assert_eq!(launch.directory, Some(PathBuf::from("/tmp")));
        assert!(!launch.phased);
    }

    #[test]
    fn a_missing_program_is_a_problem() {
        assert_eq!(problems(command(&["sh"], None)), []);
        let found = problems(command(&["no-such-program"], None));
        assert!(found[0].what.contains("no-such-program"), "{found:?}");
    }

    #[test]
    fn a_program_path_counts_from_the_directory_of_the_command() {
        assert_eq!(problems(command(&["bin/sh"], Some("/"))), []);
        assert_eq!(problems(command(&["bin/no-such"], Some("/"))).len(), 1);
    }

    #[test]
    fn a_missing_directory_is_a_problem() {
        let found = problems(command(&["sh"], Some("/no/such/place")));
        assert!(found[0].what.contains("/no/such/place"), "{found:?}");
    }

    #[test]
    fn wall_and_cpu_time_are_in_seconds() {
        let params = command(&["true"], None);
        let fixture = testing::Fixture::new(Kind::Command(params.clone()));
        let output = Output {
            success: true,
            wall_ns: 2_500_000_000,
            user_ns: 1_000_000_000,
            system_ns: 500_000_000,
            ..Output::default()
        };
        let parsed = Command::new(params).parse(&fixture.job(), &output).unwrap();
        let values: Vec<f64> = parsed.metrics.iter().map(|m| m.value).collect();
        assert_eq!(values, [2.5, 1.5]);
    }

    #[test]
    fn a_failing_command_is_an_error_with_its_status_and_last_words() {
        let params = command(&["make"], None);
        let fixture = testing::Fixture::new(Kind::Command(params.clone()));
        let output = Output {
            status: "exit status 2".to_owned(),
            stderr: "make: *** No targets.  Stop.\n".to_owned(),
            wall_ns: 1,
            ..Output::default()
        };
        let error = Command::new(params)
            .parse(&fixture.job(), &output)
            .unwrap_err();
        assert!(
            error.contains("exit status 2") && error.contains("No targets"),
            "{error}"
        );
    }
}
