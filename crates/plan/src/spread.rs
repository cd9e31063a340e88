//! One service in several surroundings: `antagonists = "each"` makes a cell alone and
//! one beside each antagonist, `[[workload.placement]]` one for each placement.

use crate::error::PlanError;
use crate::name::check_name;
use crate::placement::check_cpus;
use crate::table::{Value, items, take_key};
use crate::workload::with_clients;
use model::{Variant, Workload};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;

/// Surroundings of a `[[workload]]`: its antagonists and placements.
#[derive(Debug)]
pub(crate) struct Spread {
    each: bool,
    placements: Vec<FilePlacement>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Antagonists {
    /// All of them, in every trial.
    #[default]
    Together,
    /// None, then one at a time.
    Each,
}

/// CPU sets of the roles, over those that the roles have themselves.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FilePlacement {
    name: Spanned<String>,
    load_cpus: Option<String>,
    server_cpus: Option<String>,
    antagonist_cpus: Option<String>,
}

impl Spread {
    /// Takes its keys out of the table of a workload.
    pub fn take_keys(value: &mut Value) -> Result<Self, PlanError> {
        let span = value.span();
        let toml::de::DeValue::Table(table) = value.get_mut() else {
            return Err(PlanError::new("a workload is a table").with_span(span));
        };
        let antagonists = match take_key(table, "antagonists") {
            Some(value) => Antagonists::deserialize(value.into_deserializer())?,
            None => Antagonists::default(),
        };
        let placements = items(take_key(table, "placement"), "workload.placement")?
            .into_iter()
            .map(|value| FilePlacement::deserialize(value.into_deserializer()))
            .collect::<Result<Vec<_>, _>>()?;
        let spread = Spread {
            each: antagonists == Antagonists::Each,
            placements,
        };
        for (index, placement) in spread.placements.iter().enumerate() {
            check(placement).map_err(|e| e.in_table(&format!("placement.{index}")))?;
        }
        Ok(spread)
    }

    /// All variants; the workload itself where there is only one.
    pub fn expand_workload(&self, workload: Workload) -> Result<Vec<Workload>, PlanError> {
        if !self.each && self.placements.is_empty() {
            return Ok(vec![workload]);
        }
        self.fits(&workload)?;
        let mut placed: Vec<Workload> = self.placements.iter().map(|p| p.of(&workload)).collect();
        if placed.is_empty() {
            placed.push(variant(&workload, None));
        }
        if self.each {
            placed = placed.iter().flat_map(beside_each).collect();
        }
        Ok(placed)
    }

    fn fits(&self, workload: &Workload) -> Result<(), PlanError> {
        let name = &workload.name;
        if self.each && workload.antagonists.is_empty() {
            return Err(PlanError::new(format!(
                "the workload `{name}` has no antagonist to be beside"
            ))
            .with_help("add [[workload.antagonist]] with a kind, or leave out `antagonists`"));
        }
        let Some(placement) = self.placements.first() else {
            return Ok(());
        };
        match &workload.client {
            Some(_) => Ok(()),
            None => Err(
                PlanError::new(format!("the workload `{name}` has no roles to place"))
                    .with_help(format!("only {} have placements", with_clients()))
                    .with_span(placement.name.span()),
            ),
        }
    }
}

fn check(placement: &FilePlacement) -> Result<(), PlanError> {
    let lists = [
        ("load-cpus", &placement.load_cpus),
        ("server-cpus", &placement.server_cpus),
        ("antagonist-cpus", &placement.antagonist_cpus),
    ];
    let name = &placement.name;
    check_name(name.get_ref()).map_err(|e| e.with_span(name.span()))?;
    for (key, list) in lists {
        check_cpus(key, list.as_ref())?;
    }
    Ok(())
}

impl FilePlacement {
    fn of(&self, workload: &Workload) -> Workload {
        let mut placed = variant(workload, Some(self.name.get_ref()));
        if let Some(client) = &mut placed.client {
            replace(&mut client.load_cpus, &self.load_cpus);
        }
        if let Some(server) = &mut placed.server {
            replace(&mut server.placement.cpus, &self.server_cpus);
        }
        for service in &mut placed.services {
            replace(&mut service.placement.cpus, &self.server_cpus);
        }
        for antagonist in &mut placed.antagonists {
            replace(&mut antagonist.placement.cpus, &self.antagonist_cpus);
        }
        placed
    }
}

fn replace(place: &mut Option<String>, with: &Option<String>) {
    if with.is_some() {
        place.clone_from(with);
    }
}

fn variant(workload: &Workload, placement: Option<&String>) -> Workload {
    let name = &workload.name;
    Workload {
        name: placement.map_or_else(|| name.clone(), |p| format!("{name} {p}")),
        variant: Some(Variant {
            of: name.clone(),
            placement: placement.cloned(),
            beside: None,
        }),
        ..workload.clone()
    }
}

/// Alone first.
fn beside_each(workload: &Workload) -> Vec<Workload> {
    let with = |antagonists: Vec<model::Antagonist>| {
        let mut cell = workload.clone();
        cell.antagonists = antagonists;
        cell
    };
    let mut cells = vec![with(Vec::new())];
    for antagonist in &workload.antagonists {
        let mut cell = with(vec![antagonist.clone()]);
        cell.name = format!("{} + {}", workload.name, antagonist.name);
        if let Some(variant) = &mut cell.variant {
            variant.beside = Some(antagonist.name.clone());
        }
        cells.push(cell);
    }
    cells
}
