//! Readers of experiments with all that can be named.

#![allow(dead_code)] // Each test file uses its part.

use miette::Diagnostic;
use model::{Experiment, Workload};
use plan::{Document, PlanError, Words};

pub fn parse_experiment(name: &str, text: &str) -> Result<Experiment, PlanError> {
    catalogue::install();
    plan::parse_experiment(name, text)
}

pub fn parse_workload(text: &str) -> Result<Workload, PlanError> {
    catalogue::install();
    plan::parse_workload(text)
}

pub fn parse_words(words: &Words) -> Result<Document, PlanError> {
    catalogue::install();
    Document::from_words(words)
}

/// The message, the help, and the text that is pointed at, where a part of a file is replaced by what is wrong.
#[track_caller]
pub fn find_wrong(file: &str, from: &str, to: &str) -> (String, String, String) {
    let text = file.replacen(from, to, 1);
    assert_ne!(text, file);
    let error = parse_experiment("x.toml", &text).expect_err("is wrong");
    let mut labels = error.labels().expect("a place");
    let label = labels.next().expect("one");
    let place = &text[label.offset()..label.offset() + label.len()];
    let help = error.help().map(|h| h.to_string()).unwrap_or_default();
    (error.to_string(), help, place.to_owned())
}
