//! Percentile distributions for the HdrHistogram plotter: one `.hgrm` text for each
//! cell, arm and latency, as `outputPercentileDistribution` of the Java
//! implementation writes it. Values are nanoseconds.

use crate::render::histogram::map_groups;
use hdrhistogram::Histogram;
use results::ResultSet;
use results::files::plain_name;

/// Steps for each halving of the distance to 100 %, the default of the plotter.
const TICKS_PER_HALF_DISTANCE: u32 = 5;

/// A file to write beside others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportFile {
    /// File name, of characters that every file system takes.
    pub name: String,
    /// Content of the file, ready to be written.
    pub text: String,
}

/// All distributions of the results, by cell, latency and arm.
pub fn hgrm_files(results: &ResultSet) -> Vec<ReportFile> {
    map_groups(results, |group, merged| {
        let cell = &results.plan.cells[group.cell].name;
        let arm = &results.experiment.arms[group.arm].name;
        ReportFile {
            name: plain_name(&format!("{cell}-{}-{arm}.hgrm", group.name)),
            text: distribution(&merged.histogram),
        }
    })
}

fn distribution(histogram: &Histogram<u64>) -> String {
    let mut out = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut below = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        below += step.count_since_last_iteration();
        out.push_str(&line(
            step.value_iterated_to() as f64,
            step.quantile_iterated_to(),
            below,
        ));
    }
    out.push_str(&format!(
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>12.3}, Total count    = {:>12}]\n",
        histogram.mean(),
        histogram.stdev(),
        histogram.max() as f64,
        histogram.len()
    ));
    out
}

/// The last one, at 100 %, has no inverse.
fn line(value: f64, quantile: f64, below: u64) -> String {
    let inverse = 1.0 / (1.0 - quantile);
    match inverse.is_finite() {
        true => format!("{value:>12.3} {quantile:>14.12} {below:>10} {inverse:>14.2}\n"),
        false => format!("{value:>12.3} {quantile:>14.12} {below:>10}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_the_shape_that_the_plotter_reads() {
        let mut histogram = Histogram::new(3).unwrap();
        (1..=1000u64).for_each(|value| histogram.saturating_record(value));
        let text = distribution(&histogram);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]
        );
        assert_eq!(
            lines[2],
            "       1.000 0.000000000000          1           1.00"
        );
        assert!(text.contains("1000.000 1.000000000000       1000\n#[Mean"));
        assert!(text.ends_with("#[Max     =     1000.000, Total count    =         1000]\n"));
    }
}
