//! `schedlab compare`: two results side by side.

use crate::args::CompareArgs;
use crate::exit::{self, CliError};
use crate::output::{self, Plain};
use crate::results_argument::Opened;
use report::compare::{Side, side_by_side};
use results::ResultSet;
use std::process::ExitCode;

pub fn compare(args: &CompareArgs) -> Result<ExitCode, CliError> {
    let open = |path| Opened::open(path, &args.unpack);
    let (a, b) = (open(&args.a)?, open(&args.b)?);
    let (a, b) = (ResultSet::read(a.dir())?, ResultSet::read(b.dir())?);
    let labels = [&args.a, &args.b].map(|path| path.display().to_string());
    let side = |label, results| Side { label, results };
    let both = side_by_side(side(&labels[0], &a), side(&labels[1], &b), args.full);
    match args.format {
        Plain::Text => output::print_text(both.to_text(output::width()))?,
        Plain::Json => output::json(&both)?,
    }
    super::report::warn_of_lacks(&both.lacks);
    Ok(match both.lacks.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(exit::TRIALS_LOST),
    })
}
