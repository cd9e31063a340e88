//! Readers of experiments with all that can be named.

#![allow(dead_code)] // Each test file uses its part.

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
