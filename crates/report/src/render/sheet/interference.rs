//! Slowdowns by what runs beside the load.

use super::{Sheet, SheetCell, SheetRow, no_interval, tint};
use crate::quantity::format_factor;
use crate::table::across::interference::Slowdown;
use crate::table::across::{Interference, Measured};
use model::Better;

/// A slowdown of this factor has the full tint.
const FULL_SLOWDOWN: f64 = 4.0;

pub fn of_interference(matrix: &Interference) -> Sheet {
    let placed = matrix.rows.iter().any(|row| row.placement.is_some());
    let mut labels = vec!["beside".to_owned(), "load".to_owned()];
    labels.extend(placed.then(|| "placement".to_owned()));
    let rows = matrix.rows.iter().map(|row| {
        let mut labels = vec![row.beside.clone(), row.load.clone()];
        labels.extend(placed.then(|| row.placement.clone().unwrap_or_default()));
        let cells = row.arms.iter().map(|slowdown| match slowdown {
            Some(slowdown) => slowed(slowdown, &matrix.measured),
            None => SheetCell::missing_value(),
        });
        SheetRow {
            labels,
            cells: cells.collect(),
        }
    });
    Sheet {
        title: format!(
            "{} beside others: slowdown of {}",
            matrix.service, matrix.measured.metric
        ),
        caption: interference_caption(matrix),
        doubt: "no interval, or one that includes x1",
        columns: matrix.arms.clone(),
        rows: rows.collect(),
        labels,
        ..Sheet::default()
    }
}

fn interference_caption(matrix: &Interference) -> String {
    let cells = matrix.rows.iter().flat_map(|row| row.arms.iter().flatten());
    let by_goodput = cells
        .into_iter()
        .any(|s| s.metric != matrix.measured.metric);
    let goodput = match by_goodput {
        true => {
            " goodput: the load was not carried beside it or alone, so the slowdown is that of \
                 requests_per_sec."
        }
        false => "",
    };
    format!(
        "How many times as bad this load is beside the others as alone, under the same arm and \
         within the same blocks: x1 is no slowdown. The worst rows first.{goodput}"
    )
}

fn slowed(slowdown: &Slowdown, measured: &Measured) -> SheetCell {
    let ends = slowdown.factor_interval();
    let of = match slowdown.metric == measured.metric {
        true => "",
        false => " goodput",
    };
    SheetCell {
        text: format!("{}{of}", format_factor(slowdown.factor())),
        detail: match ends {
            Some((low, high)) => format!("[{}, {}]", format_factor(low), format_factor(high)),
            None => no_interval(slowdown.blocks),
        },
        tint: tint(slowdown.factor(), Better::Lower, FULL_SLOWDOWN),
        sure: ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slowdown_is_a_factor_and_not_sure_with_x1_in_its_interval() {
        let measured = |metric: &str, better| Measured {
            metric: metric.to_owned(),
            unit: "ns".to_owned(),
            better,
        };
        let slowdown = |better, ratio, low, high| Slowdown {
            metric: "request_p99".to_owned(),
            better,
            ratio,
            low: Some(low),
            high: Some(high),
            blocks: 6,
        };
        let of = measured("request_p99", Better::Lower);
        let slower = slowed(&slowdown(Better::Lower, 1.5, 1.2, 1.9), &of);
        assert_eq!((slower.text.as_str(), slower.sure), ("x1.50", true));
        assert_eq!(slower.detail, "[x1.20, x1.90]");
        assert!(!slowed(&slowdown(Better::Lower, 1.5, 0.9, 2.5), &of).sure);
        let of = measured("wakeup_p99", Better::Lower);
        let less = slowed(&slowdown(Better::Higher, 0.5, 0.4, 0.8), &of);
        assert_eq!((less.text.as_str(), less.sure), ("x2 goodput", true));
        assert_eq!(less.detail, "[x1.25, x2.50]");
    }
}
