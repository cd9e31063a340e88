//! Runs that other tools measured, read into results directories.
//!
//! Those tools run all repetitions of one arm and then all of the next. Whatever changed in
//! between is mixed with the arm, so nothing here becomes a comparison within blocks
//! ([`model::imported`]): the report describes level and spread of each arm, and no verdict is
//! reached. A reader of a tool's files is one module and one entry of [`TOOLS`].

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod bench_file;
pub mod cachyos;
pub mod capframex;
mod convert;
mod empty;
mod error;
mod files;
mod frame_times;
pub mod lkp;
pub mod ltp;
mod machines;
pub mod mangohud;
pub mod mmtests;
pub mod perf_stat;
pub mod phoronix;
pub mod presentmon;
pub mod schbench;
pub mod schedbench;
pub mod schedtests;
pub mod table;

pub use convert::{Converted, Options};
pub use error::ImportError;

use model::{Better, Load, Measurement, TrialFile, Warning};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A tool whose results can be imported.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Name on the command line.
    pub name: &'static str,
    /// Description of what is read.
    pub summary: &'static str,
    /// Reader of the files or directories that were named, at least one.
    reader: fn(&[PathBuf]) -> Result<Imported, ImportError>,
}

/// All tools.
pub static TOOLS: &[Tool] = &[
    Tool {
        name: "schedtests",
        summary: "the tree of logs, results/ or logs/, of either fork; its hackbench, netperf, tbench \
                  and schbench",
        reader: schedtests::read,
    },
    Tool {
        name: "mmtests",
        summary: "work/log with raw logs of hackbench and schbench, or for any benchmark the file that \
                  compare-mmtests.pl --json-export writes, unpacked",
        reader: mmtests::read,
    },
    Tool {
        name: "schbench-json",
        summary: "files that schbench --json wrote, or directories of them; ARM=PATH names their arm",
        reader: schbench::read,
    },
    Tool {
        name: "phoronix",
        summary: "composite.xml of the Phoronix Test Suite, or its directory",
        reader: phoronix::read,
    },
    Tool {
        name: "schedbench",
        summary: "the JSON file of schedbench after its runs: completed ones, an arm for each \
                  scheduler",
        reader: schedbench::read,
    },
    Tool {
        name: lkp::NAME,
        summary: "lkp-tests: a tree of results with stats.json of each run, or the text of a table of lkp \
                  ncompare, also as the kernel test robot mails it",
        reader: lkp::read,
    },
    Tool {
        name: cachyos::NAME,
        summary: "benchie_DATE.log of cachyos-benchmarker, or directories of them; ARM=PATH names their arm",
        reader: cachyos::read,
    },
    Tool {
        name: perf_stat::NAME,
        summary: "what perf stat -o wrote, as text, with -x or -j, also with -r; ARM=PATH names the arm",
        reader: perf_stat::read,
    },
    Tool {
        name: ltp::NAME,
        summary: "LTP: the JSON of kirk and of runltp-ng, the table of runltp -l, or its output with the \
                  times of each test; ARM=PATH names the arm",
        reader: ltp::read,
    },
    Tool {
        name: mangohud::NAME,
        summary: "logs of MangoHud with every frame, or directories of them; ARM=PATH names their arm",
        reader: mangohud::read,
    },
    Tool {
        name: presentmon::NAME,
        summary: "CSV of PresentMon 1 and 2, or directories of them; ARM=PATH names their arm",
        reader: presentmon::read,
    },
    Tool {
        name: capframex::NAME,
        summary: "JSON records of CapFrameX, or directories of them; ARM=PATH names their arm",
        reader: capframex::read,
    },
    Tool {
        name: table::NAME,
        summary: "runs of any tool, as CSV or JSON with a row or an object for each; --arm, --cell and \
                  --metric name its columns",
        reader: table::read_unknown,
    },
];

impl Tool {
    /// The tool of this name.
    pub fn find_by_name(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// Reads the files or directories that were named, at least one. Runs in which nothing was
    /// measured are faults; arms that were measured on different machines are a warning.
    pub fn read(&self, paths: &[PathBuf]) -> Result<Imported, ImportError> {
        Ok(looked_at((self.reader)(paths)?))
    }
}

/// Reads a table with these columns, as [`Tool::read`] does the files of a tool.
pub fn read_table(paths: &[PathBuf], columns: &table::Columns) -> Result<Imported, ImportError> {
    Ok(looked_at(table::read(paths, columns)?))
}

fn looked_at(mut imported: Imported) -> Imported {
    empty::take_out(&mut imported);
    machines::compare_machines(&mut imported);
    imported
}

/// Everything that was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// Arms in the order in which they were found, or in which the tool has them.
    pub arms: Vec<ImportedArm>,
    /// Runs; those of one arm and cell are in the order in which they were made.
    pub runs: Vec<Run>,
    /// Files that could not be used, each with the reason.
    pub faults: Vec<ImportError>,
    /// Warnings about what was read.
    pub warnings: Vec<Warning>,
}

/// An arm as the tool names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportedArm {
    /// Name, unique among the arms.
    pub name: String,
    /// Facts that the tool recorded about the machine or the kernel, by name.
    pub facts: BTreeMap<String, String>,
    /// Files in which the facts are, by the names of the facts.
    told_in: BTreeMap<String, PathBuf>,
}

/// One run of a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Name of the arm.
    pub arm: String,
    /// The cell in which arms can be put side by side.
    pub place: Place,
    /// Figures of the run. Those that a report is to show for each arm improve in a direction.
    pub metrics: Vec<Measurement>,
    /// Start of the run, nanoseconds since the epoch; 0 where it is not known.
    pub started_unix_ns: u64,
    /// Length of the run; 0 where it is not known.
    pub elapsed_ns: u64,
    /// File and perhaps line that the figures come from.
    pub source: String,
    /// Tables that are kept with the run.
    pub files: Vec<TrialFile>,
}

/// A cell as the tool names it.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Name of the workload: `hackbench process-pipe`.
    pub workload: String,
    /// Name of the benchmark: `hackbench`.
    pub benchmark: String,
    /// Load, as far as the tool says one.
    pub load: Load,
    /// The load in the tool's own words: `group-8`.
    pub load_name: String,
}

impl Place {
    /// Name of the cell: `hackbench process-pipe group-8`.
    pub fn cell_name(&self) -> String {
        format!("{} {}", self.workload, self.load_name)
            .trim()
            .to_owned()
    }
}

impl Run {
    /// A run without a time.
    pub(crate) fn new(arm: &str, place: Place, source: String) -> Self {
        Run {
            arm: arm.to_owned(),
            place,
            metrics: Vec::new(),
            started_unix_ns: 0,
            elapsed_ns: 0,
            source,
            files: Vec::new(),
        }
    }
}

impl Imported {
    /// Adds a run, and its arm unless that is there.
    pub fn add_run(&mut self, run: Run) {
        self.ensure_arm(&run.arm);
        self.runs.push(run);
    }

    /// Adds the arm unless it is there.
    pub(crate) fn ensure_arm(&mut self, name: &str) -> &mut ImportedArm {
        let at = self.arms.iter().position(|arm| arm.name == name);
        let at = at.unwrap_or_else(|| {
            self.arms.push(ImportedArm {
                name: name.to_owned(),
                ..ImportedArm::default()
            });
            self.arms.len() - 1
        });
        &mut self.arms[at]
    }
}

/// A figure of a run.
pub(crate) fn make_figure(metric: &str, unit: &str, better: Better, value: f64) -> Measurement {
    Measurement {
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        better,
        value,
        own: None,
    }
}

/// The figures of a run that is known by several parts which ran at once: their mean, their
/// number and their spread.
pub(crate) fn of_parts(
    metric: &str,
    unit: &str,
    better: Better,
    parts: &[f64],
) -> Vec<Measurement> {
    let count = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / count;
    let mut figures = vec![make_figure(metric, unit, better, mean)];
    if parts.len() > 1 {
        let squares: f64 = parts.iter().map(|part| (part - mean).powi(2)).sum();
        let (name, sd) = (
            model::imported::parts_metric(metric),
            model::imported::parts_sd(metric),
        );
        figures.push(make_figure(&name, "count", Better::Neither, count));
        figures.push(make_figure(
            &sd,
            unit,
            Better::Neither,
            (squares / count).sqrt(),
        ));
    }
    figures
}
