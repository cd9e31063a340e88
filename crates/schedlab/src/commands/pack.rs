//! `schedlab pack`: a results directory in one file.

use crate::args::PackArgs;
use crate::exit::CliError;
use crate::output::say;
use report::{Format, Options, Table};
use results::ResultSet;
use results::capsule::{self, CAPSULE_FORMAT, Capsule};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn pack(args: &PackArgs) -> Result<ExitCode, CliError> {
    let results = ResultSet::read(&args.dir)?;
    let table = Table::from_results(&results);
    let json = report::render(Format::Json, &table, &results, &Options::default())
        .map_err(CliError::internal)?;
    let output = match &args.output {
        Some(path) => path.clone(),
        None => beside(&args.dir)?,
    };
    let capsule = Capsule {
        format: CAPSULE_FORMAT,
        packed_by_version: env!("CARGO_PKG_VERSION").to_owned(),
        packed_by_commit: env!("SCHEDLAB_COMMIT").to_owned(),
    };
    let packed = capsule::pack(&args.dir, &json, &capsule, &output)?;
    say!(
        "{}: {} files, {} KiB before compression\nfingerprint {}",
        output.display(),
        packed.files,
        packed.bytes.div_ceil(1024),
        packed.fingerprint
    );
    Ok(ExitCode::SUCCESS)
}

/// `results/quickstart-…/` becomes `results/quickstart-….tar.gz`.
fn beside(dir: &Path) -> Result<PathBuf, CliError> {
    let whole = dir.canonicalize().map_err(CliError::internal)?;
    let mut name = whole.file_name().unwrap_or_default().to_owned();
    name.push(".tar.gz");
    Ok(dir
        .parent()
        .filter(|_| !dir.ends_with("."))
        .map_or_else(|| whole.with_file_name(&name), |parent| parent.join(&name)))
}
