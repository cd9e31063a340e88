//! Arms that make a grid of two parameters, for a heat map whose cells show doubt.

use super::Measured;
use crate::table::{CellTable, Comparison, Verdict};
use model::Arm;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grid {
    /// Cell in which it was measured.
    pub cell: String,
    #[serde(flatten)]
    pub measured: Measured,
    /// The parameter of the columns and of the rows; one parameter makes one row.
    pub across: String,
    pub down: Option<String>,
    /// The values of further parameters, which are the same for the whole grid.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fixed: BTreeMap<String, String>,
    pub columns: Vec<String>,
    pub rows: Vec<GridRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridRow {
    /// Empty where there is one parameter.
    pub value: String,
    /// In the order of the columns; none where no arm has both values.
    pub points: Vec<Option<GridPoint>>,
}

/// One arm against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GridPoint {
    pub arm: String,
    pub ratio: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub verdict: Verdict,
    pub blocks: usize,
}

/// One for each cell, deciding metric, and combination of parameters beyond two.
pub fn make_grids(arms: &[Arm], cells: &[CellTable]) -> Vec<Grid> {
    let planes = planes(arms);
    let mut grids = Vec::new();
    for cell in cells {
        let mut metrics: Vec<&Comparison> = cell.deciding_comparisons().collect();
        metrics.dedup_by(|a, b| a.metric == b.metric);
        for head in metrics {
            grids.extend(planes.iter().map(|plane| plane.grid(cell, head)));
        }
    }
    grids
}

/// Arms that differ in two parameters only.
struct Plane<'a> {
    across: String,
    down: Option<String>,
    fixed: BTreeMap<String, String>,
    arms: Vec<&'a Arm>,
}

fn planes(arms: &[Arm]) -> Vec<Plane<'_>> {
    let mut planes: Vec<Plane> = Vec::new();
    for arm in arms.iter().filter(|arm| !arm.grid.is_empty()) {
        let mut fixed = arm.grid.clone();
        let down = fixed.pop_first().map(|(name, _)| name);
        let across = fixed.pop_first().map(|(name, _)| name);
        // A single parameter goes across.
        let (across, down) = match across {
            Some(across) => (across, down),
            None => (down.unwrap_or_default(), None),
        };
        let plane = planes
            .iter_mut()
            .find(|p| p.across == across && p.down == down && p.fixed == fixed);
        match plane {
            Some(plane) => plane.arms.push(arm),
            None => planes.push(Plane {
                across,
                down,
                fixed,
                arms: vec![arm],
            }),
        }
    }
    planes.retain(|plane| plane.arms.len() > 1);
    planes
}

impl Plane<'_> {
    fn grid(&self, cell: &CellTable, head: &Comparison) -> Grid {
        let columns = self.values(Some(&self.across));
        let rows = self.values(self.down.as_deref());
        let row = |value: &String| GridRow {
            value: value.clone(),
            points: columns
                .iter()
                .map(|column| self.point(cell, head, column, value))
                .collect(),
        };
        Grid {
            cell: cell.name.clone(),
            measured: Measured {
                metric: head.metric.clone(),
                unit: head.unit.clone(),
                better: head.better,
            },
            across: self.across.clone(),
            down: self.down.clone(),
            fixed: self.fixed.clone(),
            rows: rows.iter().map(row).collect(),
            columns,
        }
    }

    /// In the order of the file; one empty value where there is no parameter.
    fn values(&self, parameter: Option<&str>) -> Vec<String> {
        let Some(parameter) = parameter else {
            return vec![String::new()];
        };
        let mut values: Vec<String> = Vec::new();
        for arm in &self.arms {
            values.extend(
                arm.grid
                    .get(parameter)
                    .filter(|v| !values.contains(v))
                    .cloned(),
            );
        }
        values
    }

    fn point(
        &self,
        cell: &CellTable,
        head: &Comparison,
        column: &str,
        row: &str,
    ) -> Option<GridPoint> {
        let at = |arm: &Arm, parameter: &str, value: &str| {
            arm.grid.get(parameter).is_some_and(|found| found == value)
        };
        let is_here = |arm: &&&Arm| {
            at(arm, &self.across, column)
                && self.down.as_deref().is_none_or(|down| at(arm, down, row))
        };
        let arm = &self.arms.iter().find(is_here)?.name;
        let mut compared = cell.deciding_comparisons();
        let c = compared.find(|c| c.metric == head.metric && c.arm == *arm)?;
        Some(GridPoint {
            arm: arm.clone(),
            ratio: c.ratio,
            low: c.low,
            high: c.high,
            verdict: c.verdict,
            blocks: c.blocks,
        })
    }
}
