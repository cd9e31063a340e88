//! Cost of an antagonist or a co-runner for a service: under each arm, the service beside it over the same
//! service alone, within the blocks.

use super::{Measured, by_block, deciding, has_queue, measured};
use judge::judge_ratios;
use model::{Better, Cell, Load, Variant, Workload};
use results::{ResultSet, overload::GOODPUT};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interference {
    pub service: String,
    #[serde(flatten)]
    pub measured: Measured,
    /// Columns.
    pub arms: Vec<String>,
    /// The worst first.
    pub rows: Vec<InterferenceRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterferenceRow {
    pub placement: Option<String>,
    pub load: String,
    pub beside: String,
    /// In the order of the arms; none where no block has both.
    pub arms: Vec<Option<Slowdown>>,
}

/// Beside the antagonist over alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slowdown {
    /// The metric that is compared: goodput where one of the two did not carry the load.
    pub metric: String,
    pub better: Better,
    pub ratio: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub blocks: usize,
}

impl Slowdown {
    /// Factor by which the service is worse: above 1 is slower, whatever the metric.
    pub fn factor(&self) -> f64 {
        in_factors(self.better, self.ratio)
    }

    /// The interval of [`Self::factor`].
    pub fn factor_interval(&self) -> Option<(f64, f64)> {
        let (a, b) = self.low.zip(self.high)?;
        let (a, b) = (in_factors(self.better, a), in_factors(self.better, b));
        Some((a.min(b), a.max(b)))
    }
}

fn in_factors(better: Better, ratio: f64) -> f64 {
    match better {
        Better::Higher => 1.0 / ratio,
        Better::Lower | Better::Neither => ratio,
    }
}

/// One for each service that is measured alone and beside others.
pub fn make_matrices(results: &ResultSet) -> Vec<Interference> {
    let mut services: Vec<&str> = Vec::new();
    for workload in &results.experiment.workloads {
        let service = workload.variant.as_ref().map(|v| v.of.as_str());
        services.extend(service.filter(|of| !services.contains(of)));
    }
    let matrix = |service: &&str| matrix(results, service);
    services.iter().filter_map(matrix).collect()
}

/// A cell in which a load works beside others, and one in which it is alone.
struct Pair<'a> {
    beside: usize,
    alone: usize,
    /// The load, where it is a co-runner of the other cell.
    co_runner: Option<&'a Workload>,
}

impl Pair<'_> {
    /// The metric of the load as the cell has it where it is beside others.
    fn name_beside(&self, measured: &Measured) -> Measured {
        let name = &measured.metric;
        let metric = self
            .co_runner
            .map_or_else(|| name.clone(), |load| load.name_beside(name));
        Measured {
            metric,
            ..measured.clone()
        }
    }
}

fn matrix(results: &ResultSet, service: &str) -> Option<Interference> {
    let mut rows = Vec::new();
    let mut measured = None;
    for pair in find_pairs(results, service) {
        // A row without figures stays: it was planned.
        let beside = deciding(results, pair.beside).filter(|_| pair.co_runner.is_none());
        let Some(metric) = beside.or_else(|| deciding(results, pair.alone)) else {
            continue;
        };
        if measured.get_or_insert_with(|| metric.clone()) == &metric {
            rows.extend(row(results, &pair, &metric));
        }
    }
    let measured = measured?;
    rows.sort_by(|a, b| harm(b).total_cmp(&harm(a)));
    Some(Interference {
        service: service.to_owned(),
        arms: results
            .experiment
            .arms
            .iter()
            .map(|a| a.name.clone())
            .collect(),
        measured,
        rows,
    })
}

fn workload<'a>(results: &'a ResultSet, cell: &Cell) -> &'a Workload {
    &results.experiment.workloads[cell.workload]
}

/// The cells in which a load of this name is beside others, each with that where it is alone.
fn find_pairs<'a>(results: &'a ResultSet, service: &str) -> Vec<Pair<'a>> {
    let pair = |(beside, cell): (usize, &Cell)| {
        let workload = workload(results, cell);
        let variant = workload.variant.as_ref()?;
        variant.beside.as_ref()?;
        let mut co_runners = workload.co_runners.iter();
        let (co_runner, load) = match variant.of == service {
            true => (None, cell.load),
            false => {
                let co_runner = co_runners.find(|load| load.name == service)?;
                (Some(co_runner), *co_runner.loads.first()?)
            }
        };
        Some(Pair {
            beside,
            alone: find_alone(results, service, variant, load)?,
            co_runner,
        })
    };
    results
        .plan
        .cells
        .iter()
        .enumerate()
        .filter_map(pair)
        .collect()
}

/// The cell of the same service, placement and load with nothing beside it.
fn find_alone(results: &ResultSet, service: &str, variant: &Variant, load: Load) -> Option<usize> {
    results.plan.cells.iter().position(|other| {
        other.load == load
            && workload(results, other).variant.as_ref().is_some_and(|v| {
                v.beside.is_none() && v.of == service && v.placement == variant.placement
            })
    })
}

/// Names of all that the load is beside.
fn list_others(workload: &Workload, co_runner: Option<&Workload>) -> Option<String> {
    let variant = workload.variant.as_ref()?;
    let Some(own) = co_runner else {
        return variant.beside.clone();
    };
    let others = workload.co_runners.iter().map(|load| load.name.as_str());
    let others = others.filter(|name| *name != own.name);
    let all: Vec<&str> = std::iter::once(variant.of.as_str()).chain(others).collect();
    Some(all.join(", "))
}

fn row(results: &ResultSet, pair: &Pair, measured: &Measured) -> Option<InterferenceRow> {
    let workload = workload(results, &results.plan.cells[pair.beside]);
    let variant = workload.variant.as_ref()?;
    let arms = 0..results.experiment.arms.len();
    Some(InterferenceRow {
        placement: variant.placement.clone(),
        load: results.load_in_words(&results.plan.cells[pair.alone]),
        beside: list_others(workload, pair.co_runner)?,
        arms: arms
            .map(|arm| slowdown(results, pair, arm, measured))
            .collect(),
    })
}

fn slowdown(results: &ResultSet, pair: &Pair, arm: usize, measured: &Measured) -> Option<Slowdown> {
    let goodput = goodput(results, pair, arm, measured);
    let measured = goodput.as_ref().unwrap_or(measured);
    let alone = by_block(results, pair.alone, arm, measured);
    let beside = by_block(results, pair.beside, arm, &pair.name_beside(measured));
    let xs: Vec<f64> = beside
        .iter()
        .filter_map(|(block, value)| Some((value / alone.get(block)?).ln()))
        .collect();
    let judged = judge_ratios(&xs, measured.better, &results.experiment.stop);
    Some(Slowdown {
        metric: measured.metric.clone(),
        better: measured.better,
        ratio: judged.known_ratio()?,
        low: judged.lower_end(),
        high: judged.upper_end(),
        blocks: xs.len(),
    })
}

/// Metric that takes the place of a latency where the arm did not carry the load in one of the
/// two cells.
fn goodput(results: &ResultSet, pair: &Pair, arm: usize, compared: &Measured) -> Option<Measured> {
    let beside = pair.name_beside(compared).metric;
    let overloaded = has_queue(results, pair.beside, arm, &beside)
        || has_queue(results, pair.alone, arm, &compared.metric);
    (overloaded && compared.is_latency())
        .then(|| measured(results, pair.alone, GOODPUT))
        .flatten()
}

/// Factor of the worst arm of a row.
fn harm(row: &InterferenceRow) -> f64 {
    let all = row.arms.iter().flatten().map(Slowdown::factor);
    all.fold(0.0, f64::max)
}
