//! Records of what was measured, one JSON object a line.

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    Interleaved(Interleaved),
    Side(Side),
}

/// One metric of one `schedlab run` of two arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interleaved {
    /// Extra work of the second arm; 0: the same arm twice.
    pub injected_percent: f64,
    pub metric: String,
    /// True if the run went on until this metric had its verdict.
    pub deciding: bool,
    pub verdict: String,
    pub ratio: Option<f64>,
    pub e_value: Option<f64>,
    pub blocks: usize,
    /// From the first trial's start to the last one's end.
    pub machine_ns: u64,
    pub load_average: f64,
}

/// All runs of one arm, one after the other. The next line is the side that was
/// measured right after it, unless it begins a new series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    pub begins_series: bool,
    pub injected_percent: f64,
    /// Requests per second of each run.
    pub values: Vec<f64>,
    /// Time that each run took, all in all.
    pub run_ns: Vec<u64>,
    pub load_average: f64,
}

pub fn append(path: &Path, records: &[Record]) -> Result<(), Box<dyn Error>> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    for record in records {
        writeln!(file, "{}", serde_json::to_string(record)?)?;
    }
    Ok(())
}

pub fn read(path: &Path) -> Result<Vec<Record>, Box<dyn Error>> {
    let file = File::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let lines = BufReader::new(file).lines();
    lines
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect()
}
