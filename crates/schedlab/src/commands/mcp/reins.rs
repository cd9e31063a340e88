//! Reins: all that the person who started the server lets an agent do. All else is refused by its name.

use crate::args::McpArgs;
use crate::exit::CliError;
use agent::arm::table::INGREDIENTS;
use model::{Arm, Experiment, TargetSpec, Workload};
use serde_json::Map;
use std::collections::BTreeSet;
use std::time::Duration;

/// Comparisons that one question may have.
const MOST_COMPARISONS: usize = 8;
/// Ingredients that have lists of their own.
const TUNABLES: &str = "tunables";
const SCHEDULER: &str = "scheduler";
/// Word that allows programs.
const COMMAND: &str = "command";

/// Limits of a session.
#[derive(Debug, Clone)]
pub struct Reins {
    /// `local`, `vm`, `vm:KERNEL`, `ssh:HOST`.
    places: BTreeSet<String>,
    commands: bool,
    ingredients: BTreeSet<String>,
    knobs: BTreeSet<String>,
    schedulers: BTreeSet<String>,
    repositories: BTreeSet<String>,
    /// Command that builds programs of the repositories.
    build: Option<String>,
    budget: Duration,
}

impl Reins {
    pub fn from_args(args: &McpArgs) -> Result<Reins, CliError> {
        let budget = load::units::parse_duration(&args.budget).map_err(|e| {
            CliError::usage(format!("`--budget {}`: {e}", args.budget), "--budget 20m")
        })?;
        let mut places: BTreeSet<String> = args.allow.iter().cloned().collect();
        let commands = places.remove(COMMAND);
        if places.is_empty() {
            places.insert("local".to_owned());
        }
        for place in &places {
            let kind = place.split(':').next().unwrap_or_default();
            if machines::find_by_name(kind).is_none() {
                return Err(CliError::usage(
                    format!("`--allow {place}` is neither a target nor `command`"),
                    "--allow local, --allow vm, --allow ssh:root@lab3, --allow command",
                ));
            }
        }
        let ingredients: BTreeSet<String> = args.arms.iter().cloned().collect();
        let known = |name: &str| INGREDIENTS.iter().any(|i| i.name() == name);
        if let Some(name) = ingredients.iter().find(|name| !known(name)) {
            let all: Vec<&str> = INGREDIENTS.iter().map(|i| i.name()).collect();
            return Err(CliError::usage(
                format!("`--arms {name}` is no ingredient of arms"),
                format!("they are: {}", all.join(", ")),
            ));
        }
        Ok(Reins {
            places,
            commands,
            ingredients,
            knobs: args.knobs.iter().cloned().collect(),
            schedulers: args.schedulers.iter().cloned().collect(),
            repositories: args.repository.iter().cloned().collect(),
            build: args.build.clone(),
            budget: Duration::from_nanos(budget),
        })
    }

    /// Time of all measuring.
    pub fn budget(&self) -> Duration {
        self.budget
    }

    /// The limits in a few lines, for the agent.
    pub fn to_text(&self) -> String {
        let list = |names: &BTreeSet<String>| match names.is_empty() {
            true => "none".to_owned(),
            false => names.iter().cloned().collect::<Vec<_>>().join(", "),
        };
        format!(
            "places: {}\nprograms of your own: {}\ningredients of arms: {}\ntunables: {}\nschedulers: {}\n\
             repositories for `bisect`: {}\nat most {MOST_COMPARISONS} comparisons (cells × metrics that decide) in a question",
            list(&self.places),
            if self.commands { "allowed" } else { "none" },
            list(&self.ingredients),
            list(&self.knobs),
            list(&self.schedulers),
            list(&self.repositories)
        )
    }

    /// The reason for which an experiment is refused; `target` is as it was named.
    pub fn check_experiment(&self, target: &str, experiment: &Experiment) -> Result<(), String> {
        self.check_target(target, &experiment.target)?;
        for arm in &experiment.arms {
            self.check_arm(arm)?;
        }
        for workload in &experiment.workloads {
            self.check_workload(workload)?;
        }
        let calls = experiment.workloads.iter();
        let calls: usize = calls.map(crate::commands::bisect::count_calls).sum();
        match calls > MOST_COMPARISONS {
            true => Err(format!(
                "refused: {calls} comparisons in one question, and at most {MOST_COMPARISONS} are \
                 allowed; ask about fewer loads"
            )),
            false => Ok(()),
        }
    }

    /// The command with which a program is built; none for a scheduler. The reason where the agent may not
    /// bisect it.
    pub fn check_bisection(&self, program: &str, repository: &str) -> Result<Option<&str>, String> {
        if !self.repositories.contains(repository) {
            return Err(format!(
                "refused: the repository `{repository}` is not allowed (--repository {repository})"
            ));
        }
        if program.starts_with('-') {
            return Err(format!("refused: `{program}` is no program"));
        }
        if let Some(build) = &self.build {
            return Ok(Some(build));
        }
        let name = program.split(' ').next().unwrap_or_default();
        match self.schedulers.contains(name) {
            true => Ok(None),
            false => Err(format!(
                "refused: the scheduler `{name}` is not allowed (--schedulers {name}), and there is no \
                 command that builds programs (--build)"
            )),
        }
    }

    fn check_target(&self, named: &str, target: &TargetSpec) -> Result<(), String> {
        let kernel = named.strip_prefix("vm:").unwrap_or_default();
        // A path is a file that the agent chose.
        let is_plain_guest = kernel == "host" || kernel.starts_with("debian:");
        let is_allowed = self.places.contains(named)
            || (target.kind() == "vm" && self.places.contains("vm") && is_plain_guest);
        match is_allowed {
            true => Ok(()),
            false => Err(format!(
                "refused: the target `{named}` is not allowed (--allow {named}); allowed: {}",
                self.places.iter().cloned().collect::<Vec<_>>().join(", ")
            )),
        }
    }

    fn check_arm(&self, arm: &Arm) -> Result<(), String> {
        if arm.collect.is_some() {
            return Err("refused: an arm may not choose collectors".to_owned());
        }
        for ingredient in INGREDIENTS.iter() {
            let mut keys = Map::new();
            ingredient.write(arm, &mut keys);
            if !keys.is_empty() {
                self.check_ingredient(ingredient.name(), arm)?;
            }
        }
        Ok(())
    }

    fn check_ingredient(&self, name: &str, arm: &Arm) -> Result<(), String> {
        let refused = |what: String, option: String| {
            Err(format!("refused: {what} is not allowed ({option})"))
        };
        match name {
            TUNABLES => {
                let mut knobs = arm.tunables.keys();
                match knobs.find(|knob| !self.knobs.contains(*knob)) {
                    Some(knob) => {
                        refused(format!("the tunable `{knob}`"), format!("--knobs {knob}"))
                    }
                    None => Ok(()),
                }
            }
            SCHEDULER => {
                let program = arm.scheduler.as_ref().map(|s| s.program.as_str());
                let program = program.unwrap_or_default();
                match self.schedulers.contains(program) {
                    true => Ok(()),
                    false => refused(
                        format!("the scheduler `{program}`"),
                        format!("--schedulers {program}"),
                    ),
                }
            }
            name if self.ingredients.contains(name) => Ok(()),
            name => refused(
                format!("`{name}` in the arm `{}`", arm.summary()),
                format!("--arms {name}"),
            ),
        }
    }

    fn check_workload(&self, workload: &Workload) -> Result<(), String> {
        if self.commands {
            return Ok(());
        }
        for load in workload.list_loads() {
            if !load::driver(&load.kind)?.chosen_programs().is_empty() {
                return Err(format!(
                    "refused: `{}` starts what its words name, and programs are not allowed (--allow \
                     {COMMAND})",
                    load::summary(&load)
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn reins(options: &[&str]) -> Reins {
        catalogue::install();
        let words = [&["schedlab", "mcp"], options].concat();
        match Cli::try_parse_from(words).unwrap().command {
            Command::Mcp(args) => Reins::from_args(&args).unwrap(),
            _ => unreachable!(),
        }
    }

    fn check(options: &[&str], arm: &str, workload: &str, target: &str) -> Result<(), String> {
        let words = [
            "schedlab",
            "propose",
            "--arm=default",
            &format!("--arm={arm}"),
            &format!("--workload={workload}"),
            &format!("--target={target}"),
        ]
        .map(str::to_owned);
        let reins = reins(options);
        let Command::Propose(args) = Cli::try_parse_from(words).unwrap().command else {
            unreachable!()
        };
        let wanted = crate::request::read_wanted(&args.experiment).map_err(|e| e.to_string())?;
        reins.check_experiment(target, &wanted.experiment)
    }

    #[test]
    fn what_the_person_did_not_allow_is_refused_by_its_name() {
        let allowed = |arm, workload| check(&[], arm, workload, "local");
        assert_eq!(allowed("nice=5", "wakeup"), Ok(()));
        assert_eq!(allowed("batch+slice=3ms", "hackbench:1,4"), Ok(()));
        for (arm, workload, named) in [
            ("base_slice=1ms", "wakeup", "the tunable `base_slice`"),
            (
                "/tmp/scx_evil --all",
                "wakeup",
                "the scheduler `/tmp/scx_evil`",
            ),
            ("env.LD_PRELOAD=/tmp/x.so", "wakeup", "`env`"),
            ("cpus=0", "wakeup", "`cpus`"),
            (
                "nice=5",
                "wakeup:1,2,3,4,5,6,7,8,9",
                "comparisons in one question",
            ),
        ] {
            let refused = allowed(arm, workload).unwrap_err();
            assert!(refused.contains(named), "{arm}: {refused}");
        }
        let far = check(&[], "nice=5", "wakeup", "ssh:root@lab3").unwrap_err();
        assert!(far.contains("the target `ssh:root@lab3`"), "{far}");
    }

    #[test]
    fn what_the_person_allowed_is_let_through() {
        let options = ["--knobs=base_slice", "--allow=vm", "--arms=policy,cpus"];
        for (arm, target) in [("base_slice=1ms", "vm:debian:sid"), ("cpus=0", "vm:host")] {
            assert_eq!(check(&options, arm, "wakeup", target), Ok(()), "{arm}");
        }
        let here = check(&options, "nice=5", "wakeup", "local").unwrap_err();
        assert!(here.contains("`local`"), "{here}");
        let file = check(&options, "nice=5", "wakeup", "vm:/tmp/bzImage").unwrap_err();
        assert!(file.contains("/tmp/bzImage"), "{file}");
    }
}
