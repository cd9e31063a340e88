//! Heat maps: changes over two parameters of an arm.

use super::{Sheet, SheetCell, SheetRow, no_interval, tint};
use crate::quantity::{format_change, format_factor};
use crate::render::chart::tick_label;
use crate::table::across::Grid;
use crate::table::across::grid::GridPoint;
use crate::table::{Table, Verdict};
use model::Better;

/// A change of this factor has the full tint of a heat map: -50 % or x2.
const FULL_HEAT: f64 = 2.0;
/// Heat maps with more columns show colours only; the figures are in the tooltips.
const MOST_FIGURES: usize = 8;

pub fn of_grid(table: &Table, grid: &Grid) -> Sheet {
    let fixed: Vec<String> = grid
        .fixed
        .iter()
        .map(|(k, v)| format!(", {k} {v}"))
        .collect();
    let better = grid.measured.better;
    let form = form(grid);
    let rows = grid.rows.iter().map(|row| SheetRow {
        labels: vec![row.value.clone()],
        cells: row
            .points
            .iter()
            .map(|point| heat(point.as_ref(), better, form))
            .collect(),
    });
    let down = grid.down.clone().unwrap_or_default();
    let dense = grid.columns.len() > MOST_FIGURES;
    let heads = grid.columns.iter().map(|value| match dense {
        true => value.clone(),
        false => format!("{} {value}", grid.across),
    });
    Sheet {
        title: format!("{}: {}{}", grid.cell, grid.measured.metric, fixed.concat()),
        caption: format!(
            "{} across{}, against {}.",
            grid.across,
            match down.as_str() {
                "" => String::new(),
                down => format!(", {down} down"),
            },
            table.baseline()
        ),
        doubt: "no verdict",
        scale: scale(better),
        dense,
        together: false,
        labels: vec![down],
        columns: heads.collect(),
        rows: rows.collect(),
    }
}

/// Form in which all changes of a grid are written: factors if one of them is a doubling or a
/// halving.
fn form(grid: &Grid) -> fn(f64) -> String {
    let points = grid.rows.iter().flat_map(|row| row.points.iter().flatten());
    let mut ratios = points.filter_map(|point| point.ratio);
    match ratios.any(|ratio| !(0.5..2.0).contains(&ratio)) {
        true => format_factor,
        false => format_change,
    }
}

fn heat(point: Option<&GridPoint>, better: Better, form: fn(f64) -> String) -> SheetCell {
    let Some(point) = point else {
        return SheetCell::missing_value();
    };
    SheetCell {
        text: point.ratio.map_or_else(|| "-".to_owned(), form),
        detail: match point.low.zip(point.high) {
            Some((low, high)) => format!("[{}, {}]", form(low), form(high)),
            None => no_interval(point.blocks),
        },
        tint: point.ratio.map_or(0, |r| tint(r, better, FULL_HEAT)),
        sure: point.verdict != Verdict::Unknown,
    }
}

/// The legend of a heat map, from the left end of its colours to the right one.
fn scale(better: Better) -> Vec<SheetCell> {
    const STEPS: [f64; 9] = [0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0];
    let step = |ratio: f64| SheetCell {
        text: tick_label(ratio),
        tint: tint(ratio, better, FULL_HEAT),
        sure: true,
        ..SheetCell::default()
    };
    STEPS.into_iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::across::Measured;
    use crate::table::across::grid::GridRow;

    fn grid(ratios: &[f64]) -> Grid {
        let point = |ratio: &f64| {
            Some(GridPoint {
                arm: "mq".to_owned(),
                ratio: Some(*ratio),
                low: None,
                high: None,
                verdict: Verdict::Unknown,
                blocks: 1,
            })
        };
        Grid {
            cell: "wakeup".to_owned(),
            measured: Measured {
                metric: "request_p99".to_owned(),
                unit: "ns".to_owned(),
                better: Better::Lower,
            },
            across: "period".to_owned(),
            down: None,
            fixed: Default::default(),
            columns: ratios.iter().map(f64::to_string).collect(),
            rows: vec![GridRow {
                value: String::new(),
                points: ratios.iter().map(point).collect(),
            }],
        }
    }

    #[test]
    fn the_scale_of_a_heat_map_runs_from_half_to_double() {
        let scale = scale(Better::Lower);
        let ends = [&scale[0], &scale[8]].map(|cell| (cell.text.as_str(), cell.tint));
        assert_eq!(ends, [("-50%", 100), ("x2", -100)]);
        assert_eq!((scale[4].text.as_str(), scale[4].tint), ("0", 0));
    }

    #[test]
    fn a_heat_map_writes_all_its_changes_in_one_form() {
        assert_eq!(form(&grid(&[0.8, 1.9]))(0.8), "-20.0%");
        assert_eq!(form(&grid(&[0.8, 15.0]))(0.8), "x0.80");
    }
}
