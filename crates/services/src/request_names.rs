//! Figures of a trial for each name of a request: `requests-by-name.csv`, and the ways in which
//! requests failed.

use load::recording::samples_needed;
use model::{Severity, TrialFile, Warning};

/// Name of the file.
const FILE: &str = "requests-by-name.csv";
const COLUMNS: [&str; 9] = [
    "request",
    "offered",
    "ok",
    "failed",
    "ok_per_sec",
    "p50_ns",
    "p95_ns",
    "p99_ns",
    "max_ns",
];
/// Quantiles of the columns, in thousandths.
const QUANTILES: [u32; 3] = [500, 950, 990];
/// Ways to fail that a warning names.
const NAMED: usize = 3;
/// Characters of such a way, which may hold a whole answer.
const MOST_CHARS: usize = 200;

/// Requests of one name that were due in the window.
#[derive(Debug)]
pub struct Named<'a> {
    /// Name.
    pub name: &'a str,
    /// Number of those that were due.
    pub offered: u64,
    /// Those with the right answer, of which the latencies are.
    pub ok: u64,
    /// Longest latency; `None` where none succeeded.
    pub max_ns: Option<u64>,
}

/// The table with a row for each name. `quantile` is asked for those of the requests that
/// succeeded, by row and thousandths, and only where there are enough of them.
pub fn file(
    rows: &[Named],
    duration_ns: u64,
    quantile: impl Fn(usize, u32) -> u64,
) -> Result<TrialFile, String> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let failed = |e: csv::Error| format!("write {FILE}: {e}");
    table.write_record(COLUMNS).map_err(failed)?;
    for (index, row) in rows.iter().enumerate() {
        let per_sec = row.ok as f64 * 1e9 / duration_ns as f64;
        let mut cells = vec![
            row.name.to_owned(),
            row.offered.to_string(),
            row.ok.to_string(),
            row.offered.saturating_sub(row.ok).to_string(),
            format!("{per_sec:.3}"),
        ];
        cells.extend(
            QUANTILES.map(|permille| match row.ok >= samples_needed(permille) {
                true => quantile(index, permille).to_string(),
                false => String::new(),
            }),
        );
        cells.push(row.max_ns.map_or_else(String::new, |ns| ns.to_string()));
        table.write_record(cells).map_err(failed)?;
    }
    let text = table
        .into_inner()
        .map_err(|e| failed(e.into_error().into()))?;
    Ok(TrialFile {
        name: FILE.to_owned(),
        text: String::from_utf8_lossy(&text).into_owned(),
    })
}

/// The failures as `NAME: REASON` with their numbers, the most frequent first.
pub fn ways_to_fail(mut ways: Vec<(String, u64)>) -> Option<Warning> {
    ways.sort_by(|(one, count), (other, more)| more.cmp(count).then_with(|| one.cmp(other)));
    let cut = |way: &str| match way.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &way[..end]),
        None => way.to_owned(),
    };
    let named: Vec<String> = ways.iter().take(NAMED).map(|(way, _)| cut(way)).collect();
    (!named.is_empty()).then(|| Warning {
        severity: Severity::Note,
        what: format!("failed most often: {}", named.join("; ")),
        remedy: "see requests-by-name.csv and the logs of the services".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        let ways = vec![("a: no".to_owned(), 1), ("ü".repeat(1_000_000), 2)];
        let what = ways_to_fail(ways).unwrap().what;
        assert_eq!(
            what,
            format!("failed most often: {}…; a: no", "ü".repeat(200))
        );
    }
}
