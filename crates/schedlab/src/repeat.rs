//! Experiments of somebody else's results, which may hold any command: those of `run --like`, and of
//! `run --resume` where the run was not begun here. So they are shown as they will run, and asked about.

use crate::agreement::Question;
use crate::args::RunArgs;
use crate::exit::CliError;
use crate::request::{Wanted, overridden};
use crate::results_argument::Opened;
use doors::started::Agreed;
use load::Chosen;
use load::roles::{ANTAGONISTS, Readiness, SERVERS};
use model::printable::one_line;
use model::stack::Container;
use model::{
    Antagonist, Arm, Calibration, Kind, Piloted, Placement, Ready, Server, Service, TargetSpec,
    Way, Workload, format_duration_ns, format_rate,
};
use plan::PlanError;
use results::Held;
use std::path::Path;

/// The experiment of an earlier run, to be repeated. Its calibrations come along,
/// so that a trial is the same work here as it was there.
pub fn wanted_like(earlier: &Path, args: &RunArgs) -> Result<Wanted, CliError> {
    let opened = Opened::open(earlier, &args.unpack)?;
    let (experiment, _) = results::read::read_plan(opened.dir())?;
    let source = results::files::read(&opened.dir().join(results::files::EXPERIMENT_SOURCE)).ok();
    let wanted = Wanted {
        experiment: overridden(experiment, &args.experiment).map_err(|e| in_results(earlier, e))?,
        source: source.and_then(|bytes| String::from_utf8(bytes).ok()),
        calibrations: results::read::read_calibrations(opened.dir())?,
    };
    let silent = args.yes && args.quiet;
    agree_to_run(earlier, &wanted, args.yes, silent)?;
    Ok(wanted)
}

/// Agreement to go on with these results. Those that were not begun here are shown, and asked about.
pub fn agreed_to_resume(held: &mut Held, yes: bool, silent: bool) -> Result<Agreed, CliError> {
    if held.was_begun_here() {
        return Ok(Agreed::by_command());
    }
    let dir = held.dir().to_owned();
    let wanted = Wanted {
        experiment: held.read_experiment()?,
        source: None,
        calibrations: results::read::read_calibrations(&dir)?,
    };
    let agreed = agree_to_run(&dir, &wanted, yes, silent)?;
    held.adopt_run()?;
    Ok(agreed)
}

/// Which of the files that were named is wrong.
fn in_results(earlier: &Path, error: CliError) -> CliError {
    match error {
        CliError::Plan(error) => {
            let help = miette::Diagnostic::help(&error).map(|help| help.to_string());
            CliError::Usage {
                message: format!("the experiment of {}: {error}", earlier.display()),
                help,
            }
        }
        error => error,
    }
}

/// Shows what will run, and asks.
pub fn agree_to_run(
    earlier: &Path,
    wanted: &Wanted,
    yes: bool,
    silent: bool,
) -> Result<Agreed, CliError> {
    let shown = match silent {
        true => String::new(),
        false => shown(earlier, wanted)?,
    };
    let question = Question {
        shown: &shown,
        asked: "Run this?",
        yes,
        unanswered: "this experiment was made elsewhere, and nobody is here to agree to what it runs",
    };
    question.ask_user()
}

/// All that comes to run, and as whom.
fn shown(earlier: &Path, wanted: &Wanted) -> Result<String, PlanError> {
    let experiment = &wanted.experiment;
    let mut shown = Shown::default();
    let user = match rustix::process::geteuid().is_root() {
        true => "as root, ",
        false => "",
    };
    let from = earlier.display().to_string();
    shown.lines.push(format!(
        "{} has an experiment, `{}`, that runs {user}on this machine:",
        one_line(&from),
        one_line(&experiment.name)
    ));
    shown.target(&experiment.target)?;
    experiment.arms.iter().for_each(|arm| shown.arm(arm));
    for workload in &experiment.workloads {
        shown.workload(workload);
    }
    let calibrated = wanted.calibrations.iter();
    for (cell, calibration) in calibrated.filter(|(_, found)| **found != Calibration::default()) {
        let values = calibration.values.iter();
        let values = values.map(|(name, n)| format!("{name} = {n}"));
        let max = calibration.max_per_sec.map(format_rate);
        let max = max.map(|rate| format!("max = {rate}"));
        let piloted = calibration.piloted.map(|piloted| match piloted {
            Piloted::Turns { lengths } => {
                format!("turns of {}", format_duration_ns(lengths.window_ns))
            }
            Piloted::Whole => "whole trials".to_owned(),
        });
        let values: Vec<String> = values.chain(max).chain(piloted).collect();
        shown.entry(1, &format!("as calibrated, {cell}"), &values.join(", "));
    }
    let stop = &experiment.stop;
    let budget = stop.budget_ns.map(format_duration_ns);
    let budget = budget.map_or(String::new(), |budget| format!(", in {budget}"));
    let most = format!("{} blocks{budget}", stop.max_blocks);
    shown.entry(1, "at most", &most);
    Ok(shown.lines.join("\n") + "\n")
}

#[derive(Default)]
struct Shown {
    lines: Vec<String>,
}

impl Shown {
    fn entry(&mut self, depth: usize, what: &str, text: &str) {
        let indent = 2 * depth;
        let (what, text) = (one_line(what), one_line(text));
        self.lines.push(format!("{:indent$}{what}: {text}", ""));
    }

    fn target(&mut self, target: &TargetSpec) -> Result<(), PlanError> {
        let entries = (machines::find_def(target)?.shown)(target)?;
        for (index, (what, text)) in entries.iter().enumerate() {
            self.entry(if index == 0 { 1 } else { 2 }, what, text);
        }
        Ok(())
    }

    fn arm(&mut self, arm: &Arm) {
        self.entry(1, &format!("arm {}", arm.name), &arm.summary());
        if let Some(scheduler) = &arm.scheduler {
            let argv = [vec![scheduler.program.clone()], scheduler.args.clone()].concat();
            self.entry(2, "starts", &command_line(&argv));
        }
    }

    fn workload(&mut self, workload: &Workload) {
        let loads: Vec<String> = workload.loads.iter().map(ToString::to_string).collect();
        let kind = format!("{} at {}", workload.kind.name(), loads.join(", "));
        self.entry(1, &format!("workload {}", workload.name), &kind);
        self.load(workload, 2);
        if workload.load_way == Way::Network {
            let text = "listens beyond loopback, at the address of the target, and the load asks over the network";
            self.entry(2, "server and {target.address}", text);
        }
        for co_runner in &workload.co_runners {
            let loads: Vec<String> = co_runner.loads.iter().map(ToString::to_string).collect();
            let kind = format!("{} at {}", co_runner.kind.name(), loads.join(", "));
            self.entry(2, &format!("co-runner {}", co_runner.name), &kind);
            self.load(co_runner, 3);
        }
        for service in &workload.services {
            self.service(service);
        }
        workload
            .server
            .iter()
            .for_each(|server| self.server(server));
        for antagonist in &workload.antagonists {
            self.antagonist(antagonist);
        }
    }

    /// What a load starts and asks by the word of the file.
    fn load(&mut self, workload: &Workload, depth: usize) {
        let remote = remote(workload);
        let chosen = load::driver(&workload.kind).map(|driver| driver.chosen_programs());
        for chosen in chosen.into_iter().flatten() {
            let (what, text) = match chosen {
                Chosen::Before(argv) => ("before each trial", command_line(&argv)),
                Chosen::Program(argv) => ("runs", command_line(&argv)),
                Chosen::Directory(directory) => ("in", directory),
                Chosen::File(path) => ("reads", path),
                Chosen::Address(address) => ("asks", address + remote),
            };
            self.entry(depth, what, &text);
        }
    }

    fn server(&mut self, server: &Server) {
        let program = SERVERS.open(&server.program).ok();
        let command = program.as_ref().map(|program| program.command());
        let ready = match program.map(|program| program.readiness()) {
            Some(Readiness::Http { path, .. }) => format!(", ready at {path}"),
            Some(Readiness::Tcp) | None => String::new(),
        };
        let text = started(&server.program, command) + &ready;
        self.entry(2, "server", &(text + &placed(&server.placement)));
    }

    /// All that it runs, in order, and the files that it is given.
    fn service(&mut self, service: &Service) {
        for argv in &service.before_start {
            self.entry(2, &format!("before {}", service.name), &command_line(argv));
        }
        let command = match &service.container {
            Some(container) => in_container(container, &service.argv),
            None => command_line(&service.argv),
        };
        let text = command + &placed(&service.placement);
        self.entry(2, &format!("service {}", service.name), &text);
        let variables = service.environment.iter();
        let more = variables.map(|(name, value)| ("with".to_owned(), format!("{name}={value}")));
        let files = service.files.iter();
        let files = files.map(|(name, text)| (format!("file {name}"), text.clone()));
        for (what, text) in more.chain(files) {
            self.entry(3, &what, &text);
        }
        if let Ready::Command { argv } = &service.ready {
            self.entry(3, "ready when", &command_line(argv));
        }
        for argv in &service.when_ready {
            self.entry(2, &format!("after {}", service.name), &command_line(argv));
        }
    }

    fn antagonist(&mut self, antagonist: &Antagonist) {
        let program = ANTAGONISTS.open(&antagonist.program).ok();
        let command = program.map(|program| program.command());
        let text = started(&antagonist.program, command);
        let what = format!("beside it, {}", antagonist.name);
        self.entry(2, &what, &(text + &placed(&antagonist.placement)));
    }
}

/// A service in a container, with the options of its engine.
fn in_container(container: &Container, argv: &[String]) -> String {
    let image = std::slice::from_ref(&container.image);
    let words = command_line(&[container.options.as_slice(), image, argv].concat());
    match &container.engine {
        Some(engine) => format!("a container by {engine}: {words}"),
        None => format!("a container: {words}"),
    }
}

fn remote(workload: &Workload) -> &'static str {
    match workload
        .client
        .as_ref()
        .is_some_and(|client| client.allow_remote)
    {
        true => ", also on other machines",
        false => "",
    }
}

fn placed(placement: &Placement) -> String {
    let policy = placement.policy.as_ref();
    policy.map_or(String::new(), |policy| format!(" ({policy})"))
}

/// The command of a role; the name of its kind for a program of schedlab's own.
fn started(kind: &Kind, command: Option<Vec<String>>) -> String {
    match command {
        Some(argv) if !argv.is_empty() => command_line(&argv),
        _ => kind.name().to_owned(),
    }
}

/// The words as they could be typed.
fn command_line(argv: &[String]) -> String {
    let words = argv.iter().map(String::as_str);
    shlex::try_join(words).unwrap_or_else(|_| argv.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(file: &str) -> Wanted {
        catalogue::install();
        Wanted {
            experiment: plan::parse_experiment("x.toml", file).unwrap(),
            source: None,
            calibrations: Default::default(),
        }
    }

    #[test]
    fn all_that_runs_is_shown() {
        let file = r#"
            [target]
            kind = "vm"
            kernel = "debian:sid"
            append = "init=/x"
            expose = ["~/.m2"]
            [[arm]]
            name = "default"
            [[arm]]
            name = "mine"
            scheduler = "/tmp/scx_mine"
            args = ["--all the cpus"]
            tunables = { base_slice = "1ms" }
            [[workload]]
            kind = "command"
            command = ["sh", "-c", "make; reboot"]
            directory = "/srv"
            prepare = ["make", "clean"]
            [[workload]]
            kind = "http"
            load-on = "controller"
            load-way = "network"
            [workload.server]
            kind = "command"
            command = ["serve", "{port}"]
            ready = { path = "/up" }
            [[workload.antagonist]]
            kind = "command"
            name = "batch"
            command = ["burn", "it"]
            [[workload.antagonist]]
            kind = "spinner"
            [[workload.antagonist]]
            kind = "stress-ng"
            args = ["--cpu", "1"]
        "#;
        let text = shown(Path::new("x.tar.gz"), &wanted(file)).unwrap();
        for said in [
            "in a guest: kernel debian:sid, 2 CPUs, root host, kernel command line: init=/x",
            "which sees, although it is private: ~/.m2",
            "starts: /tmp/scx_mine '--all the cpus'",
            "base_slice=1ms",
            "before each trial: make clean",
            "runs: sh -c 'make; reboot'",
            "in: /srv",
            "listens beyond loopback",
            "server: serve '{port}', ready at /up",
            "beside it, batch: burn it",
            "beside it, spinner: spinner",
            "beside it, stress-ng: stress-ng --cpu 1",
            "at most: 40 blocks",
        ] {
            assert!(text.contains(said), "{said} is not in:\n{text}");
        }
    }

    #[test]
    fn a_command_cannot_hide_behind_a_line_end_or_an_escape_sequence() {
        let file = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"command\"\n\
                    command = [\"sh\", \"-c\", \"rm x\\n\\u001b[1A\\u001b[2K\"]";
        let text = shown(Path::new("x"), &wanted(file)).unwrap();
        assert!(text.contains("rm x\\u{a}\\u{1b}[1A\\u{1b}[2K"), "{text}");
        assert_eq!(text.lines().count(), 5, "{text}");
    }
}
