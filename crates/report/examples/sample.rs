//! Writes a synthetic results directory and all its reports, to look at; or the
//! reports of directories that are there.
//!
//! ```text
//! cargo run -p schedlab-report --example sample -- OUTPUT-DIR [RESULTS-DIR ...]
//! ```

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

use report::{FORMATS, Options, Table};
use results::ResultSet;
use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let out = args.next().ok_or("say where to write")?;
    let given: Vec<PathBuf> = args.collect();
    std::fs::create_dir_all(&out)?;
    for dir in &given {
        let name = dir.file_name().ok_or("not a directory")?;
        write_reports(dir, &out, &name.to_string_lossy())?;
    }
    if given.is_empty() {
        write_synthetic(&out)?;
    }
    Ok(())
}

fn write_synthetic(out: &Path) -> Result<(), Box<dyn Error>> {
    for (name, scenario) in [
        ("quickstart", synthetic::quickstart()),
        ("one-arm", synthetic::one_arm()),
    ] {
        synthetic::write(&out.join(name), &scenario)?;
        write_reports(&out.join(name), out, name)?;
    }
    Ok(())
}

fn write_reports(dir: &Path, out: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    let results = ResultSet::read(dir)?;
    let table = Table::from_results(&results);
    for format in FORMATS {
        let path = out.join(format!("{name}.{}", format.name));
        let report = format
            .render_report(&table, &results, &Options::default())?
            .into_string();
        std::fs::write(&path, report)?;
        println!("{}", path.display());
    }
    Ok(())
}
