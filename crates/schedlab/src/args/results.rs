//! Arguments of the commands that read results.

use super::FailOn;
use super::choices::{format, import_tool, thousands};
use crate::output::Plain;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Results directory, or capsule [default: that of the newest run, results/latest]
    pub dir: Option<PathBuf>,
    #[arg(long, value_parser = format(), default_value = "text")]
    pub format: &'static report::Format,
    /// Every comparison, median and trial that does not count, not only the answer (text)
    #[arg(long)]
    pub full: bool,
    /// Write here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Open the HTML report in a browser, too (xdg-open)
    #[arg(long, conflicts_with_all = ["output", "hgrm"])]
    pub open: bool,
    /// Write every latency distribution into this directory, as HdrHistogram's plotter
    /// reads them (.hgrm), and no report
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["output", "format"])]
    pub hgrm: Option<PathBuf>,
    /// Exit with 5 when an arm is worse than the baseline, or also when that is not known
    #[arg(long, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    #[command(flatten)]
    pub unpack: UnpackArgs,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Tool that measured
    #[arg(value_parser = import_tool())]
    pub tool: &'static import::Tool,
    /// Its files or directories
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Results directory [default: results/TOOL-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Arm that the others are put beside [default: the first by name, or in the file]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Column of a table: the one with the name of the arm
    #[arg(long, value_name = "COLUMN", requires = "metrics")]
    pub arm: Option<String>,
    /// Column of a table with the name of the cell, or a part of it
    #[arg(long = "cell", value_name = "COLUMN", requires = "arm")]
    pub cells: Vec<String>,
    /// Column of a table with figures, their direction, and perhaps their unit: 'took lower ms'
    #[arg(long = "metric", value_name = "COLUMN", requires = "arm", value_parser = import::table::Column::parse)]
    pub metrics: Vec<import::table::Column>,
    /// Sign of a table between groups of digits, as in 345,678
    #[arg(long, value_name = "SIGN", requires = "arm", value_parser = thousands())]
    pub thousands: Option<model::print::number::Thousands>,
    /// Leave out logs that are empty, mixed or no numbers, and say so in the report
    #[arg(long)]
    pub skip_bad: bool,
    /// Confidence of the intervals: 99%, 0.99
    #[arg(long, value_name = "FRACTION", value_parser = plan::parse_fraction, default_value = "95%")]
    pub confidence: f64,
    /// Format of the report that is printed
    #[arg(long, value_parser = format(), default_value = "text")]
    pub format: &'static report::Format,
}

#[derive(Debug, Args)]
pub struct PackArgs {
    /// Results directory [default: that of the newest run, results/latest]
    pub dir: Option<PathBuf>,
    /// The capsule [default: NAME.tar.gz beside the directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Sign it with an SSH key, by ssh-keygen [default key: as ssh has it]
    #[arg(long, value_name = "KEY", num_args = 0..=1, require_equals = true)]
    pub sign: Option<Option<PathBuf>>,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
}

/// Limits of an unpacked capsule.
#[derive(Debug, Clone, Args)]
pub struct UnpackArgs {
    /// Most that a capsule may unpack to; a sixteenth of it for one file
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = plan::parse_size)]
    pub unpack_limit: u64,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Capsule or results directory [default: that of the newest run, results/latest]
    pub results: Option<PathBuf>,
    /// The capsule must be the one with this fingerprint, which `schedlab pack` printed
    #[arg(long, value_name = "SHA256", value_parser = fingerprint)]
    pub fingerprint: Option<String>,
    /// It must be signed by one of these: allowed signers, as ssh-keygen(1) has them
    #[arg(long, value_name = "FILE")]
    pub signer: Option<PathBuf>,
    #[command(flatten)]
    pub unpack: UnpackArgs,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
}

fn fingerprint(text: &str) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    match text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => Ok(text),
        false => Err("a fingerprint has 64 hexadecimal digits".to_owned()),
    }
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Capsule or results directory
    pub a: PathBuf,
    /// Capsule or results directory
    pub b: PathBuf,
    /// Every metric, not only those that decide
    #[arg(long)]
    pub full: bool,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
    #[command(flatten)]
    pub unpack: UnpackArgs,
}
