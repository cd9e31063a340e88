//! Writes a synthetic results directory and all its reports, to look at.
//!
//! ```text
//! cargo run -p report --example sample -- OUTPUT-DIR
//! ```

use report::{Format, Options, Table, render};
use results::ResultSet;
use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args().nth(1).ok_or("say where to write")?;
    let out = PathBuf::from(out);
    for (name, scenario) in [
        ("quickstart", synthetic::quickstart()),
        ("one-arm", synthetic::one_arm()),
    ] {
        synthetic::write(&out.join(name), &scenario)?;
        write_reports(&out, name)?;
    }
    Ok(())
}

fn write_reports(out: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    let results = ResultSet::read(&out.join(name))?;
    let table = Table::from_results(&results);
    for format in Format::ALL {
        let path = out.join(format!("{name}.{}", format.name()));
        let report = render(format, &table, &results, &Options::default())?;
        std::fs::write(&path, report)?;
        println!("{}", path.display());
    }
    Ok(())
}
