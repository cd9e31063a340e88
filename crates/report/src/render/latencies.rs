//! The whole distribution of each open-loop load at each rate, in the columns of mcperf
//! (memcache-perf), so that what was made for its scans reads ours: as a sheet, as CSV and in its own
//! format.
//!
//! The requests of all trials of an arm are pooled, so it is a description: no verdict comes of it.

use super::sheet::{Sheet, SheetCell, SheetRow, plain_cell};
use crate::ReportError;
use crate::hlog::FEWEST_BEYOND;
use crate::quantity::format_thousands;
use crate::render::csv::{escape_text, finish_csv};
use crate::table::pooled_quantile::merged;
use hdrhistogram::Histogram;
use model::printable;
use results::{ResultSet, StoredTrial};

/// Percentiles with the names that mcperf has for them.
const PERCENTILES: [(&str, f64); 12] = [
    ("p5", 5.0),
    ("p10", 10.0),
    ("p50", 50.0),
    ("p67", 67.0),
    ("p75", 75.0),
    ("p80", 80.0),
    ("p85", 85.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p999", 99.9),
    ("p9999", 99.99),
];
/// Metrics that an open-loop load has.
const QPS: &str = "requests_per_sec";
const OFFERED: &str = "offered_per_sec";
/// Logs of such a load with a server, with the word for each: mcperf's `read` begins when a request is
/// sent.
const LOGS: [(&str, &str); 2] = [("read", "service.hlog"), ("request", "request.hlog")];
const NS_PER_US: f64 = 1_000.0;
const MEANING: &str = "Microseconds, of the requests of all trials together: read from when a request \
                       was sent, as mcperf has it, request from when it was due, whatever the server did.";

/// One arm at one load, by one of its logs.
struct Row {
    cell: String,
    workload: usize,
    arm: usize,
    kind: &'static str,
    trials: usize,
    requests: u64,
    mean_us: f64,
    deviation_us: f64,
    least_us: f64,
    /// None with fewer requests beyond it than tell it from noise.
    percentiles_us: Vec<Option<f64>>,
    /// Right answers in a second, as a mean over the trials.
    per_sec: f64,
    /// Rate that was asked for.
    target_per_sec: f64,
}

/// Rows in the order of the plan, by loads and arms. An arm without both logs has none.
fn rows(results: &ResultSet) -> Vec<Row> {
    let mut rows = Vec::new();
    for cell in 0..results.plan.cells.len() {
        for arm in 0..results.experiment.arms.len() {
            rows.extend(rows_of(results, cell, arm));
        }
    }
    rows
}

fn rows_of(results: &ResultSet, cell: usize, arm: usize) -> Vec<Row> {
    let is_of = |stored: &&StoredTrial| {
        let place = &stored.trial.place;
        place.cell == cell && place.arm == arm && stored.trial.is_ok()
    };
    let trials: Vec<&StoredTrial> = results.trials.iter().filter(is_of).collect();
    let mean = |metric: &str| {
        let values = trials.iter().filter_map(|t| t.trial.metric(metric));
        let values: Vec<f64> = values.map(|m| m.value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let Some((per_sec, offered)) = mean(QPS).zip(mean(OFFERED)) else {
        return Vec::new();
    };
    let planned = &results.plan.cells[cell];
    let row = |(kind, log): (&'static str, &str)| {
        let all = merged(&trials, log).filter(|all| !all.is_empty())?;
        Some(Row {
            cell: planned.name.clone(),
            workload: planned.workload,
            arm,
            kind,
            trials: trials.len(),
            requests: all.len(),
            mean_us: all.mean() / NS_PER_US,
            deviation_us: all.stdev() / NS_PER_US,
            least_us: all.min() as f64 / NS_PER_US,
            percentiles_us: PERCENTILES
                .iter()
                .map(|(_, p)| percentile(&all, *p))
                .collect(),
            per_sec,
            target_per_sec: results.rate_per_sec(planned).unwrap_or(offered),
        })
    };
    // A load without a server has the one log only, and no such figures.
    let rows = LOGS.into_iter().map(row).collect::<Option<Vec<Row>>>();
    rows.unwrap_or_default()
}

fn percentile(all: &Histogram<u64>, percent: f64) -> Option<f64> {
    let beyond = all.len() as f64 * (100.0 - percent) / 100.0;
    (beyond >= FEWEST_BEYOND).then(|| all.value_at_percentile(percent) as f64 / NS_PER_US)
}

/// Rows of one workload and one arm after another, the loads in the order of the plan.
fn scans(rows: &[Row]) -> Vec<Vec<&Row>> {
    let mut scans: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let is_same = |scan: &&mut Vec<&Row>| {
            scan.first()
                .is_some_and(|first| (first.workload, first.arm) == (row.workload, row.arm))
        };
        match scans.iter_mut().find(is_same) {
            Some(scan) => scan.push(row),
            None => scans.push(vec![row]),
        }
    }
    scans
}

/// Lines as `mcperf --scan` prints them, for each workload and arm. Lines that begin with `#` are no rows.
pub fn mcperf(results: &ResultSet) -> String {
    let rows = rows(results);
    if rows.is_empty() {
        return "# no trial that counts is of an open-loop load with a server\n".to_owned();
    }
    let mut out = format!("# {MEANING} nan: fewer than ten requests beyond it.\n");
    for scan in scans(&rows) {
        let Some(first) = scan.first() else {
            continue;
        };
        let workload = &results.experiment.workloads[first.workload].name;
        let arm = &results.experiment.arms[first.arm].name;
        let names = printable::clean_lines(&format!("{workload}, {arm}")).into_owned();
        out.push_str(&format!("# {}\n", names.replace('\n', " ")));
        out.push_str(&format!(
            "{:<7} {:>7} {:>7} {:>7}",
            "#type", "avg", "std", "min"
        ));
        for (name, _) in PERCENTILES {
            out.push_str(&format!(" {name:>7}"));
        }
        out.push_str(&format!(" {:>8} {:>8}\n", "QPS", "target"));
        scan.iter().for_each(|row| out.push_str(&line(row)));
    }
    out
}

fn line(row: &Row) -> String {
    let mut line = format!("{:<7}", row.kind);
    let first = [row.mean_us, row.deviation_us, row.least_us].map(Some);
    for value in first.iter().chain(&row.percentiles_us) {
        line.push_str(&match value {
            Some(value) => format!(" {value:>7.1}"),
            None => format!(" {:>7}", "nan"),
        });
    }
    format!("{line} {:>8.1} {:>8.0}\n", row.per_sec, row.target_per_sec)
}

/// A row for each load, arm and log. What has no value is empty.
pub fn csv(results: &ResultSet) -> Result<String, ReportError> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let mut head: Vec<String> = ["cell", "arm", "type", "trials", "requests"]
        .map(str::to_owned)
        .into();
    head.extend(["avg_us", "std_us", "min_us"].map(str::to_owned));
    head.extend(PERCENTILES.map(|(name, _)| format!("{name}_us")));
    head.extend(["qps", "target"].map(str::to_owned));
    writer.write_record(head)?;
    for row in rows(results) {
        let mut record = vec![
            escape_text(&row.cell),
            escape_text(&results.experiment.arms[row.arm].name),
            row.kind.to_owned(),
            row.trials.to_string(),
            row.requests.to_string(),
        ];
        record.extend([row.mean_us, row.deviation_us, row.least_us].map(|v| v.to_string()));
        let values = row.percentiles_us.iter();
        record.extend(values.map(|v| v.map_or_else(String::new, |v| v.to_string())));
        record.extend([row.per_sec, row.target_per_sec].map(|v| v.to_string()));
        writer.write_record(record)?;
    }
    finish_csv(writer)
}

/// A sheet for each workload.
pub fn sheets(results: &ResultSet) -> Vec<Sheet> {
    let rows = rows(results);
    let workloads = results.experiment.workloads.iter().enumerate();
    let sheet = |(index, workload): (usize, &model::Workload)| {
        let of_workload: Vec<&Row> = rows.iter().filter(|row| row.workload == index).collect();
        (!of_workload.is_empty()).then(|| sheet(results, &workload.name, &of_workload))
    };
    workloads.filter_map(sheet).collect()
}

fn sheet(results: &ResultSet, workload: &str, rows: &[&Row]) -> Sheet {
    let mut columns: Vec<String> = ["avg", "std", "min"].map(str::to_owned).into();
    columns.extend(PERCENTILES.map(|(name, _)| name.to_owned()));
    columns.extend(["QPS", "target"].map(str::to_owned));
    let row = |row: &&Row| {
        let some = |value: f64| plain_cell(format_thousands(value), String::new());
        let mut cells: Vec<SheetCell> = [row.mean_us, row.deviation_us, row.least_us]
            .map(some)
            .into();
        let percentiles = row.percentiles_us.iter();
        cells.extend(percentiles.map(|value| value.map_or_else(too_few, some)));
        cells.extend([row.per_sec, row.target_per_sec].map(some));
        let arm = results.experiment.arms[row.arm].name.clone();
        SheetRow {
            labels: vec![row.cell.clone(), arm, row.kind.to_owned()],
            cells,
        }
    };
    Sheet {
        title: format!("{workload}, latencies"),
        caption: MEANING.to_owned(),
        dense: true,
        labels: ["cell", "arm", "type"].map(str::to_owned).into(),
        columns,
        rows: rows.iter().map(row).collect(),
        ..Sheet::default()
    }
}

fn too_few() -> SheetCell {
    SheetCell {
        detail: "fewer than ten requests beyond it".to_owned(),
        ..SheetCell::missing_value()
    }
}
