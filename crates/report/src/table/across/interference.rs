//! Cost of an antagonist for a service: under each arm, the service beside it over the same
//! service alone, within the blocks.

use super::{Measured, by_block, deciding, is_overloaded, measured};
use judge::judge_ratios;
use model::{Better, Cell, Variant};
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

fn matrix(results: &ResultSet, service: &str) -> Option<Interference> {
    let of_service = |cell: &Cell| variant(results, cell).filter(|v| v.of == service);
    let cells = results.plan.cells.iter().enumerate();
    let beside = cells.filter(|(_, cell)| of_service(cell).is_some_and(|v| v.beside.is_some()));
    let mut rows = Vec::new();
    let mut measured = None;
    for (index, _) in beside {
        let Some(alone) = alone(results, index) else {
            continue;
        };
        // A row without figures stays: it was planned.
        let Some(metric) = deciding(results, index).or_else(|| deciding(results, alone)) else {
            continue;
        };
        if measured.get_or_insert_with(|| metric.clone()) == &metric {
            rows.extend(row(results, index, alone, &metric));
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

fn variant<'a>(results: &'a ResultSet, cell: &Cell) -> Option<&'a Variant> {
    results.experiment.workloads[cell.workload].variant.as_ref()
}

/// The cell of the same service, placement and load without an antagonist.
fn alone(results: &ResultSet, index: usize) -> Option<usize> {
    let cell = &results.plan.cells[index];
    let own = variant(results, cell)?;
    results.plan.cells.iter().position(|other| {
        other.load == cell.load
            && variant(results, other).is_some_and(|v| {
                v.beside.is_none() && v.of == own.of && v.placement == own.placement
            })
    })
}

fn row(
    results: &ResultSet,
    beside: usize,
    alone: usize,
    measured: &Measured,
) -> Option<InterferenceRow> {
    let cell = &results.plan.cells[beside];
    let variant = variant(results, cell)?;
    let arms = 0..results.experiment.arms.len();
    Some(InterferenceRow {
        placement: variant.placement.clone(),
        load: results.load_in_words(cell),
        beside: variant.beside.clone()?,
        arms: arms
            .map(|arm| slowdown(results, (beside, alone), arm, measured))
            .collect(),
    })
}

fn slowdown(
    results: &ResultSet,
    (beside, alone): (usize, usize),
    arm: usize,
    measured: &Measured,
) -> Option<Slowdown> {
    let goodput = goodput(results, (beside, alone), arm, measured);
    let measured = goodput.as_ref().unwrap_or(measured);
    let alone = by_block(results, alone, arm, measured);
    let beside = by_block(results, beside, arm, measured);
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
fn goodput(
    results: &ResultSet,
    (beside, alone): (usize, usize),
    arm: usize,
    compared: &Measured,
) -> Option<Measured> {
    let overloaded = [beside, alone]
        .iter()
        .any(|cell| is_overloaded(results, *cell, arm));
    (overloaded && compared.is_latency())
        .then(|| measured(results, beside, GOODPUT))
        .flatten()
}

/// Factor of the worst arm of a row.
fn harm(row: &InterferenceRow) -> f64 {
    let all = row.arms.iter().flatten().map(Slowdown::factor);
    all.fold(0.0, f64::max)
}
