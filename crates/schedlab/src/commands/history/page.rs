//! The page of a history.

use super::open_store;
use crate::args::PlaceArgs;
use crate::exit::CliError;
use crate::output::{self, say};
use doors::shown;
use history::render_page;
use std::path::Path;
use std::process::ExitCode;

/// Writes the page on all that is in a history.
pub fn write_page(file: &Path, open: bool, place: &PlaceArgs) -> Result<ExitCode, CliError> {
    let contents = open_store(place)?.read_contents()?;
    let page = render_page(&contents).map_err(CliError::internal)?;
    output::file(file, shown::clean_text(page).into_string().into_bytes())?;
    say!("{}", file.display());
    if open {
        output::open(file);
    }
    Ok(ExitCode::SUCCESS)
}
