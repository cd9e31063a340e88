//! `schedlab pack`: a results directory in one file.

use crate::args::PackArgs;
use crate::exit::CliError;
use crate::latest;
use crate::output::{self, Plain, say};
use crate::signature;
use model::printable::one_line;
use results::ResultSet;
use results::capsule::{CAPSULE_FORMAT, Capsule, Limits, Packed, Packer};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn pack(args: &PackArgs) -> Result<ExitCode, CliError> {
    // Before the work: a key that is not there is found at once.
    let key = match &args.sign {
        Some(key) => Some(signature::key(key.as_deref()).map_err(|e| usage_of_sign(&e))?),
        None => None,
    };
    let dir = latest::or_newest(args.dir.as_deref())?;
    let mut results = ResultSet::read(&dir)?;
    // They are left out, so the report of the capsule must not speak of them.
    results.strays.clear();
    let reports = super::report::for_capsule(&results)?;
    let output = match &args.output {
        Some(path) => path.clone(),
        None => beside(&dir)?,
    };
    let sign = |sums: &str| signature::sign(sums, key.as_deref().unwrap_or(Path::new("")));
    let packer = Packer {
        capsule: &Capsule {
            format: CAPSULE_FORMAT,
            packed_by_version: env!("CARGO_PKG_VERSION").to_owned(),
            packed_by_commit: env!("SCHEDLAB_COMMIT").to_owned(),
        },
        reports: &reports,
        sign: key.is_some().then_some(&sign),
    };
    let packed = packer.pack(&dir, &output)?;
    match args.format {
        Plain::Text => print(&output, &packed),
        Plain::Json => output::json(&serde_json::json!({
            "capsule": output,
            "files": packed.files,
            "bytes": packed.bytes,
            "left_out": packed.left_out,
            "fingerprint": packed.fingerprint,
            "unpack_limit_bytes": needed_limit(&packed),
        }))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn usage_of_sign(why: &str) -> CliError {
    CliError::usage(why, "leave out --sign to pack without a signature")
}

fn print(output: &Path, packed: &Packed) {
    say!(
        "{}: {} files, {} KiB before compression",
        one_line(&output.display().to_string()),
        packed.files,
        packed.bytes.div_ceil(1024),
    );
    if !packed.left_out.is_empty() {
        let names: Vec<_> = packed.left_out.iter().map(|name| one_line(name)).collect();
        say!("left out, no part of the results: {}", names.join(", "));
    }
    if let Some(needed) = needed_limit(packed) {
        let gib = needed.div_ceil(1 << 30);
        say!("it is large: readers need --unpack-limit {gib}GiB");
    }
    say!("fingerprint {}", packed.fingerprint);
}

/// The limit that readers of a large capsule have to raise theirs to.
fn needed_limit(packed: &Packed) -> Option<u64> {
    let needed = packed.bytes.max(packed.most_bytes.saturating_mul(16));
    (needed > Limits::default().bytes).then_some(needed)
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
