//! One service in several surroundings: `antagonists = "each"` makes a cell alone and
//! one beside each antagonist, `[[workload.placement]]` one for each placement, `co-runners = "each"` one for
//! each of the loads that are measured together.

use crate::error::PlanError;
use crate::name::check_name;
use crate::placement::check_cpus;
use crate::table::{Value, items, take_key};
use crate::workload::with_clients;
use load::Asks;
use model::{Variant, Workload};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::DeTable;

/// Surroundings of a `[[workload]]`: its antagonists and placements.
#[derive(Debug)]
pub(crate) struct Spread {
    each: bool,
    each_load: bool,
    placements: Vec<FilePlacement>,
}

/// How those are beside each other of which there are several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Company {
    /// All of them, in every trial.
    #[default]
    Together,
    /// Cells for each as well.
    Each,
}

impl Company {
    fn take_key(table: &mut DeTable, key: &str) -> Result<Self, PlanError> {
        match take_key(table, key) {
            Some(value) => Ok(Company::deserialize(value.into_deserializer())?),
            None => Ok(Company::default()),
        }
    }
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
        let antagonists = Company::take_key(table, "antagonists")?;
        let co_runners = Company::take_key(table, "co-runners")?;
        let placements = items(take_key(table, "placement"), "workload.placement")?
            .into_iter()
            .map(|value| FilePlacement::deserialize(value.into_deserializer()))
            .collect::<Result<Vec<_>, _>>()?;
        let spread = Spread {
            each: antagonists == Company::Each,
            each_load: co_runners == Company::Each,
            placements,
        };
        for (index, placement) in spread.placements.iter().enumerate() {
            check(placement).map_err(|e| e.in_table(&format!("placement.{index}")))?;
        }
        Ok(spread)
    }

    /// All variants; the workload itself where there is only one.
    pub fn expand_workload(&self, workload: Workload) -> Result<Vec<Workload>, PlanError> {
        self.fits(&workload)?;
        if self.each_load {
            return Ok(alone_and_together(workload));
        }
        if !self.each && self.placements.is_empty() {
            return Ok(vec![workload]);
        }
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
        if self.each_load && workload.co_runners.is_empty() {
            return Err(PlanError::new(format!(
                "the workload `{name}` has no co-runner to be measured with"
            ))
            .with_help("add [[workload.co-runner]] with a kind, or leave out `co-runners`"));
        }
        if self.each_load && (self.each || !self.placements.is_empty()) {
            return Err(PlanError::new(format!(
                "the workload `{name}` has each of its loads alone, and placements or each of its antagonists"
            ))
            .with_help("leave out `co-runners`, or the others"));
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

/// Each load alone, with what it asks, and then all of them.
fn alone_and_together(workload: Workload) -> Vec<Workload> {
    let variant = |of: &str, beside: Option<String>| {
        Some(Variant {
            of: of.to_owned(),
            placement: None,
            beside,
        })
    };
    let is_beside = |metric: &String| {
        let mut begins = workload.co_runners.iter().map(|w| w.name_beside(""));
        begins.any(|begin| metric.starts_with(&begin))
    };
    let of_main = workload.metrics.iter().filter(|metric| !is_beside(metric));
    let main = Workload {
        metrics: of_main.cloned().collect(),
        co_runners: Vec::new(),
        variant: variant(&workload.name, None),
        ..workload.clone()
    };
    let others = workload.co_runners.iter().map(|co_runner| {
        let asks =
            load::driver(&co_runner.kind).map_or(Asks::Nobody, |driver| driver.request_receiver());
        let asks_server = matches!(asks, Asks::Server(_));
        let services = asks_server || co_runner.names_any(&workload.services);
        Workload {
            metrics: own_metrics(&workload.metrics, &co_runner.name_beside("")),
            antagonists: workload.antagonists.clone(),
            files: workload.files.clone(),
            server: workload.server.clone().filter(|_| asks_server),
            services: workload
                .services
                .clone()
                .into_iter()
                .filter(|_| services)
                .collect(),
            variant: variant(&co_runner.name, None),
            ..co_runner.clone()
        }
    });
    let names: Vec<&str> = workload
        .co_runners
        .iter()
        .map(|w| w.name.as_str())
        .collect();
    let names = names.join(", ");
    let mut cells: Vec<Workload> = std::iter::once(main).chain(others).collect();
    cells.push(Workload {
        name: format!("{} + {names}", workload.name),
        variant: variant(&workload.name, Some(names)),
        ..workload
    });
    cells
}

/// Those of the metrics that are of a co-runner, as it has them alone.
fn own_metrics(metrics: &[String], begin: &str) -> Vec<String> {
    let own = metrics
        .iter()
        .filter_map(|metric| metric.strip_prefix(begin));
    own.map(str::to_owned).collect()
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
