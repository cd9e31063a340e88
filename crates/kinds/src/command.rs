//! Any program: its wall time, its CPU time, and the metrics of its own that the experiment
//! defines. A program that fails is a failed trial, not a fast one.

mod find;
mod log_growth;
mod metric;
mod part;
mod pick;
mod place;
mod windows;
mod yaml;

pub(crate) use log_growth::Grown;
pub(crate) use metric::{Line, check_metric_name};
pub use metric::{OwnMetric, Source};
pub use part::Part;
pub use pick::{Percentile, Pick};
pub use place::Find;
pub(crate) use windows::figures as figures_of_windows;

use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params, Parsed,
    Phases, Usual, Window, Work, phase, program,
};
use model::check::check_argv;
use model::{
    Better, Invalid, KeyDef, Load, Measurement, MetricDef, Problem, Program, Severity, Warning,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "command",
        "list of words",
        "needed",
        "The program and its arguments. No shell reads them.",
    ),
    KeyDef::new(
        "directory",
        "path",
        "the current directory",
        "Working directory of the program and of `prepare`.",
    ),
    KeyDef::new(
        "prepare",
        "list of words",
        "",
        "A command that is run before each trial and is in no figure, such as `rm -rf build`.",
    ),
    KeyDef::new(
        metric::KEY,
        "tables `[[workload.metric]]`",
        "",
        "Figures in what the program prints or writes. Each has a `name`, `better` (`higher` or \
         `lower`), and one of `regex` (with one named group, applied to each line), `json` and `yaml` \
         (JSONPath, RFC 9535) and `csv` (name of a column, or `#2`); further `unit`, to which the unit that \
         stands behind a figure is converted (in the group `u` of the regex, or right behind the \
         figure), `thousands` (the sign between groups of digits), `from` (`stdout`, \
         `stderr`, a file, or all files whose names have something in place of a `*`), `after` and `until` (expressions of the lines around a section), `where` \
         (what a row or a JSON value must say, by column or key) and `pick` (`only`, `first`, `last`, \
         `min`, `max`, `sum`, `mean` or a percentile such as `p99`), `scale` (`ratio`, or `difference` for \
         figures that may be 0 or below it) and \
         `smallest-effect` of a difference, in the unit. They decide in place of `wall_time`, unless `metrics` names others. Where \
         arms take turns, each is a `regex` or a column of `csv` in lines that the program prints, or adds to a \
         file, as it goes, and `pick` may be `rate`, the increase of a count a second.",
    ),
];

/// Name of the kind.
const NAME: &str = "command";

/// The kind `command`.
pub static KIND: KindDef = KindDef {
    name: NAME,
    aliases: &[],
    summary: "any program, from its start to its end",
    loads: LoadForms::Counts,
    load_unit: "runs",
    window: Window::Whole,
    usual: Usual {
        load: Load::One,
        duration_ns: 0,
        warmup_ns: 0,
        time_limit_ns: Some(600_000_000_000),
    },
    keys: KEYS,
    work: Work::for_params::<Command>(),
    client: false,
    metrics: METRICS,
    deciding: DECIDING,
    logs: &[],
    watched: &[],
    tasks: &[],
    programs: &[],
    handicap: false,
    turns: true,
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
/// Metrics of the load.
pub const METRICS: &[MetricDef] = &[WALL_TIME, CPU_TIME];
/// Names of the metrics that decide when a cell stops.
pub const DECIDING: &[&str] = &["wall_time"];

/// Programs that `schedlab tool install` brings for this kind. Which program a command starts is
/// not known before there is an experiment; of these the results say what they were made from.
pub const INSTALLABLE: &[Program] = &[
    program("dbench", "dbench"),
    program("rt-app", "rt-app"),
    program("tbench", "dbench"),
];

/// A program that prints no version.
const fn program(name: &'static str, package: &'static str) -> Program {
    Program {
        name,
        version: None,
        package: Some(package),
    }
}

/// Any program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Working directory of the program and of `prepare`; `None` is that of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Run before each trial, outside the figures (`make clean`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<String>,
    /// Figures in what the program prints or writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<OwnMetric>,
}

impl Params for Command {
    fn read(keys: &mut Keys) -> Self {
        let argv = keys.words("command").unwrap_or_default();
        if argv.is_empty() {
            let missing = Invalid::new("command", "the workload `command` needs its command");
            keys.refuse(missing.with_remedy(
                "command = [\"make\", \"-j8\"]; on the command line, after two dashes: -- make -j8",
            ));
        }
        Command {
            argv,
            directory: keys.get("directory"),
            prepare: keys.words("prepare").unwrap_or_default(),
            metrics: keys
                .tables(metric::KEY, OwnMetric::read)
                .unwrap_or_default(),
        }
    }
}

impl Command {
    /// Files that have figures.
    fn files(&self) -> impl Iterator<Item = &String> {
        self.metrics.iter().filter_map(|metric| match &metric.from {
            Source::File(path) => Some(path),
            Source::Stdout | Source::Stderr => None,
        })
    }

    fn directory(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(PathBuf::from)
    }

    fn missing_directory(&self) -> Option<&str> {
        let directory = self.directory.as_deref();
        directory.filter(|d| !Path::new(d).is_dir())
    }

    /// Why a program cannot be started, and what to do. One with a slash in its name is looked up from
    /// the working directory.
    fn missing(&self, name: &str) -> Option<(String, String)> {
        let path = match self.directory() {
            Some(directory) if name.contains('/') => directory.join(name),
            _ => PathBuf::from(name),
        };
        if which::which(&path).is_ok() {
            return None;
        }
        let is_there = name.contains('/') && path.is_file();
        let remedy = match (is_there, name.contains(' ')) {
            (true, _) => format!("chmod +x {name}, or write what runs it before its name"),
            (false, true) => {
                "write it without quotation marks, a word each: -- make -j4".to_owned()
            }
            (false, false) => load::program::remedy(name),
        };
        let what = match is_there {
            true => format!("the file `{name}` may not be executed"),
            false => format!("there is no program `{name}`"),
        };
        Some((what, remedy))
    }
}

impl Driver for Command {
    fn name(&self) -> Option<String> {
        let program = self.argv.first()?;
        program.rsplit('/').next().map(str::to_owned)
    }

    fn check(&self) -> Result<(), Invalid> {
        check_argv("command", &self.argv)?;
        if !self.prepare.is_empty() {
            check_argv("prepare", &self.prepare)?;
        }
        metric::check_all(&self.metrics)
    }

    fn own_metrics(&self) -> Vec<&str> {
        self.metrics.iter().map(|m| m.name.as_str()).collect()
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        let mut chosen = Vec::new();
        if !self.prepare.is_empty() {
            chosen.push(Chosen::Before(self.prepare.clone()));
        }
        chosen.push(Chosen::Program(self.argv.clone()));
        chosen.extend(self.directory.clone().map(Chosen::Directory));
        let files: BTreeSet<&String> = self.files().collect();
        chosen.extend(files.into_iter().cloned().map(Chosen::File));
        chosen
    }

    fn may_work_elsewhere(&self) -> bool {
        true
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let problem = |what: String, remedy: &str| job.problem(what, remedy);
        if let Some(directory) = self.missing_directory() {
            let what = format!("the directory {directory} does not exist");
            return vec![problem(what, "create it, or correct `directory`")];
        }
        let programs = [self.argv.first(), self.prepare.first()];
        let directory = self.directory().unwrap_or_else(|| PathBuf::from("."));
        // The command before each trial may make them.
        let no_classes = self.prepare.is_empty().then_some(&self.argv);
        let no_classes = no_classes.and_then(|a| program::no_class_path(a, Some(&directory)));
        let no_classes = no_classes.map(|what| problem(what, program::BUILD_CLASSES));
        programs
            .into_iter()
            .flatten()
            .filter_map(|name| self.missing(name))
            .map(|(what, remedy)| problem(what, &remedy))
            .chain(no_classes)
            .collect()
    }

    fn never_in_turns(&self) -> Option<String> {
        if self.metrics.is_empty() {
            return Some(
                "it has no [[workload.metric]], a figure in the lines that it prints as it goes"
                    .to_owned(),
            );
        }
        self.metrics.iter().find_map(OwnMetric::never_in_turns)
    }

    fn only_in_turns(&self) -> Option<String> {
        let mut metrics = self.metrics.iter();
        let rate = metrics.find(|metric| metric.pick == Pick::Rate)?;
        Some(format!(
            "`pick = \"rate\"` of the metric `{}` is for arms that take turns",
            rate.name
        ))
    }

    fn launch(&self, job: &Job) -> Launch {
        if job.turns.is_some() {
            // The program is started by the load, which sees when it prints what.
            return Launch {
                directory: self.directory(),
                prepare: self.prepare.clone(),
                ..phase::launch(job)
            };
        }
        Launch {
            directory: self.directory(),
            prepare: self.prepare.clone(),
            files: self.files().cloned().collect(),
            ..Launch::new(self.argv.clone())
        }
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        match &job.turns {
            Some(turns) => windows::run(self, job, turns, phases),
            None => Err(NativeError::Generator(
                "a command is started by the agent, unless arms take turns".to_owned(),
            )),
        }
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        if job.turns.is_some() {
            return phase::parse(job, output);
        }
        let name = self.argv.first().map_or("the command", String::as_str);
        program::check_success(name, output)?;
        let cpu_ns = output.user_ns + output.system_ns;
        let mut metrics = vec![
            WALL_TIME.to_measurement(output.wall_ns as f64 / 1e9),
            CPU_TIME.to_measurement(cpu_ns as f64 / 1e9),
        ];
        for own in &self.metrics {
            metrics.push(own.measure_output(output)?);
        }
        let notes: BTreeSet<String> = self
            .metrics
            .iter()
            .filter_map(|own| own.passed_over(output))
            .collect();
        Ok(Parsed {
            metrics,
            warnings: notes.into_iter().map(passed_over).collect(),
            ..Parsed::default()
        })
    }

    /// Files that a program wrote are not among what a trial keeps of what it printed.
    fn read_again(&self, _job: &Job, output: &Output) -> Option<Result<Vec<Measurement>, String>> {
        let is_printed = |own: &&OwnMetric| !matches!(own.from, Source::File(_));
        let printed = self.metrics.iter().filter(is_printed);
        let printed: Vec<&OwnMetric> = printed.collect();
        let read = || {
            printed
                .iter()
                .map(|own| own.measure_output(output))
                .collect()
        };
        (!printed.is_empty()).then(read)
    }
}

fn passed_over(what: String) -> Warning {
    Warning {
        severity: Severity::Note,
        what,
        remedy: "have the program write its JSON into a file, and name that in `from`".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(argv: &[&str], directory: Option<&str>) -> Command {
        Command {
            argv: argv.iter().map(|s| (*s).to_owned()).collect(),
            directory: directory.map(str::to_owned),
            prepare: Vec::new(),
            metrics: Vec::new(),
        }
    }

    fn problems(command: Command) -> Vec<Problem> {
        command.require(&testing::job(KIND.with_params(&command)))
    }

    #[test]
    fn a_command_is_started_as_it_is_written() {
        let command = command(&["make", "-j4"], Some("/tmp"));
        let launch = command.launch(&testing::job(KIND.with_params(&command)));
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
    fn a_file_that_may_not_be_executed_is_there_and_said_to_be() {
        let found = problems(command(&["./passwd"], Some("/etc")));
        assert_eq!(found[0].what, "the file `./passwd` may not be executed");
        assert!(found[0].remedy.contains("chmod +x ./passwd"), "{found:?}");
    }

    #[test]
    fn a_missing_directory_is_a_problem() {
        let found = problems(command(&["sh"], Some("/no/such/place")));
        assert!(found[0].what.contains("/no/such/place"), "{found:?}");
    }

    #[test]
    fn wall_and_cpu_time_are_in_seconds() {
        let command = command(&["true"], None);
        let job = testing::job(KIND.with_params(&command));
        let output = Output {
            success: true,
            wall_ns: 2_500_000_000,
            user_ns: 1_000_000_000,
            system_ns: 500_000_000,
            ..Output::default()
        };
        let parsed = command.parse(&job, &output).unwrap();
        let values: Vec<f64> = parsed.metrics.iter().map(|m| m.value).collect();
        assert_eq!(values, [2.5, 1.5]);
    }

    #[test]
    fn a_failing_command_is_an_error_with_its_status_and_last_words() {
        let command = command(&["make"], None);
        let job = testing::job(KIND.with_params(&command));
        let output = Output {
            status: "exit status 2".to_owned(),
            stderr: "make: *** No targets.  Stop.\n".to_owned(),
            wall_ns: 1,
            ..Output::default()
        };
        let error = command.parse(&job, &output).unwrap_err();
        assert!(
            error.contains("exit status 2") && error.contains("No targets"),
            "{error}"
        );
    }
}
