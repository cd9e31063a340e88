//! `[[workload.antagonist]]`: the programs that disturb.

use crate::command::{argv, unused};
use crate::error::PlanError;
use crate::name::check_shows;
use crate::placement::{check_placement, read_role};
use crate::table::Value;
use model::check::{check_argv, check_count};
use model::{Antagonist, AntagonistProgram};
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FileAntagonist {
    kind: AntagonistKind,
    name: Option<String>,
    threads: Option<u32>,
    args: Option<Vec<String>>,
    command: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AntagonistKind {
    Spinner,
    StressNg,
    Command,
}

pub(crate) fn antagonists(files: Vec<Value>) -> Result<Vec<Antagonist>, PlanError> {
    let mut antagonists: Vec<Antagonist> = Vec::new();
    for (index, file) in files.into_iter().enumerate() {
        let span = file.span();
        let place = format!("antagonist.{index}");
        let antagonist = read_antagonist(file).map_err(|e| e.at(span.clone()).within(&place))?;
        if antagonists.iter().any(|a| a.name == antagonist.name) {
            return Err(
                PlanError::new(format!("there are two antagonists `{}`", antagonist.name))
                    .with_help("give one of them another `name`")
                    .at(span),
            );
        }
        antagonists.push(antagonist);
    }
    Ok(antagonists)
}

fn read_antagonist(value: Value) -> Result<Antagonist, PlanError> {
    let (placement, file): (_, FileAntagonist) = read_role(value)?;
    let what = "this kind of antagonist";
    let kind = file.kind;
    unused(
        kind != AntagonistKind::Spinner && file.threads.is_some(),
        "threads",
        what,
    )?;
    unused(
        kind != AntagonistKind::StressNg && file.args.is_some(),
        "args",
        what,
    )?;
    unused(
        kind != AntagonistKind::Command && file.command.is_some(),
        "command",
        what,
    )?;
    let (usual, program) = match kind {
        AntagonistKind::Spinner => (
            "spinner",
            AntagonistProgram::Spinner {
                threads: file.threads,
            },
        ),
        AntagonistKind::StressNg => (
            "stress-ng",
            AntagonistProgram::StressNg {
                args: argv(file.args, "antagonist", "…; args = [\"--cpu\", \"1\"]")?,
            },
        ),
        AntagonistKind::Command => (
            "command",
            AntagonistProgram::Command {
                argv: argv(file.command, "antagonist", "[\"my-batch-job\"]")?,
            },
        ),
    };
    let antagonist = Antagonist {
        name: file.name.unwrap_or_else(|| usual.to_owned()),
        program,
        placement,
    };
    check_antagonist(&antagonist)?;
    Ok(antagonist)
}

pub(crate) fn check_antagonists(antagonists: &[Antagonist]) -> Result<(), PlanError> {
    let mut names = BTreeSet::new();
    for antagonist in antagonists {
        check_shows(&antagonist.name)?;
        if !names.insert(&antagonist.name) {
            return Err(
                PlanError::new(format!("there are two antagonists `{}`", antagonist.name))
                    .with_help("give one of them another `name`"),
            );
        }
        check_antagonist(antagonist)?;
    }
    Ok(())
}

pub(crate) fn check_antagonist(antagonist: &Antagonist) -> Result<(), PlanError> {
    check_placement(&antagonist.placement)?;
    match &antagonist.program {
        AntagonistProgram::Spinner { threads } => {
            let check = |threads: u32| check_count("threads", threads.into());
            Ok(threads.map_or(Ok(()), check)?)
        }
        AntagonistProgram::StressNg { .. } => Ok(()),
        AntagonistProgram::Command { argv } => Ok(check_argv("command", argv)?),
    }
}
