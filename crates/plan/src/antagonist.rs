//! `[[workload.antagonist]]`: the programs that disturb.

use crate::error::PlanError;
use crate::name::check_shows;
use crate::placement::check_placement;
use crate::program::read_program;
use crate::table::Value;
use load::roles::ANTAGONISTS;
use machines::Can;
use model::Antagonist;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Keys that every kind has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FileAntagonist {
    name: Option<String>,
}

pub(crate) fn antagonists(files: Vec<Value>) -> Result<Vec<Antagonist>, PlanError> {
    let mut antagonists: Vec<Antagonist> = Vec::new();
    for (index, file) in files.into_iter().enumerate() {
        let span = file.span();
        let place = format!("antagonist.{index}");
        let antagonist =
            read_antagonist(file).map_err(|e| e.with_span(span.clone()).in_table(&place))?;
        if antagonists.iter().any(|a| a.name == antagonist.name) {
            return Err(
                PlanError::new(format!("there are two antagonists `{}`", antagonist.name))
                    .with_help("give one of them another `name`")
                    .with_span(span),
            );
        }
        antagonists.push(antagonist);
    }
    Ok(antagonists)
}

fn read_antagonist(value: Value) -> Result<Antagonist, PlanError> {
    let (program, placement, file): (_, _, FileAntagonist) = read_program(&ANTAGONISTS, value)?;
    let antagonist = Antagonist {
        name: file.name.unwrap_or_else(|| program.name().to_owned()),
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

/// Checks that what only a guest may suffer is done to a guest.
pub(crate) fn check_provocations(antagonists: &[Antagonist], target: Can) -> Result<(), PlanError> {
    let opened = antagonists.iter().map(|a| ANTAGONISTS.open(&a.program));
    let opened: Vec<_> = opened.flatten().collect();
    let mut names = opened.iter().filter_map(|program| program.guests_only());
    match names.next().filter(|_| !target.is_guest) {
        None => Ok(()),
        Some(name) => Err(PlanError::new(format!(
            "the provocation `{name}` is for guests only, and this experiment runs on a machine that others may \
             need"
        ))
        .with_help("run it in a guest: --vm debian:sid, or kind = \"vm\" in [target]")),
    }
}

fn check_antagonist(antagonist: &Antagonist) -> Result<(), PlanError> {
    check_placement(&antagonist.placement)?;
    let program = ANTAGONISTS.open(&antagonist.program);
    Ok(program.map_err(PlanError::new)?.check()?)
}
