//! `schedlab recommend`: which arm to use, from results that there are.

use crate::args::{RecommendArgs, RecommendFormat};
use crate::exit::{self, CliError};
use crate::latest;
use crate::output;
use crate::results_argument::Opened;
use doors::read;
use report::recommend::{Mix, RecommendError, Recommendation, Source, recommend_arm};
use results::ResultSet;
use std::path::PathBuf;
use std::process::ExitCode;

/// Most bytes of a file of weights.
const MOST_BYTES: u64 = 1 << 20;

pub fn recommend(args: &RecommendArgs) -> Result<ExitCode, CliError> {
    let care = read_care(args.care.as_deref())?;
    let mix = read_mix(args.weigh.as_deref())?;
    let paths: Vec<PathBuf> = match args.results.is_empty() {
        true => vec![latest::or_newest(None)?],
        false => args.results.clone(),
    };
    let opened = paths.iter().map(|path| Opened::open(path, &args.unpack));
    let opened = opened.collect::<Result<Vec<Opened>, CliError>>()?;
    let all = opened.iter().map(|opened| ResultSet::read(opened.dir()));
    let all = all.collect::<Result<Vec<ResultSet>, _>>()?;
    let labels: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    let sources = labels.iter().zip(&all);
    let sources: Vec<Source> = sources
        .map(|(label, results)| Source { label, results })
        .collect();
    let found = recommend_arm(&sources, &mix, care)?;
    print(&found, args.format)?;
    super::report::warn_of_lacks(&found.lacks);
    Ok(match found.lacks.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(exit::TRIALS_LOST),
    })
}

fn print(found: &Recommendation, format: RecommendFormat) -> Result<(), CliError> {
    match format {
        RecommendFormat::Text => output::print_text(found.to_text(output::width())),
        RecommendFormat::Json => output::json(found),
        RecommendFormat::Markdown => output::print_text(found.to_markdown()),
    }
}

fn read_care(text: Option<&str>) -> Result<Option<f64>, CliError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let fraction = plan::parse_fraction(text).map_err(|e| CliError::usage(e, "--care 2%"))?;
    match fraction > 0.0 {
        true => Ok(Some(fraction)),
        false => Err(CliError::usage(
            "nothing is ever known to be exactly the best",
            "--care 2%",
        )),
    }
}

/// Weights that were typed have an equals sign; all else is the name of a file.
fn read_mix(words: Option<&str>) -> Result<Mix, CliError> {
    let Some(words) = words else {
        return Ok(Mix::default());
    };
    if words.contains('=') {
        return Ok(Mix::parse_option(words)?);
    }
    let text = read::file_text(words, MOST_BYTES).map_err(|error| {
        CliError::usage(
            format!("--weigh {words}: {error}"),
            "give weights, 'http p99=3, hackbench=1', or a file with one NAME = NUMBER on each line",
        )
    })?;
    Ok(Mix::parse_file(words, &text)?)
}

impl From<RecommendError> for CliError {
    fn from(error: RecommendError) -> Self {
        CliError::usage(
            model::printable::clean_lines(&error.to_string()),
            error.remedy(),
        )
    }
}
