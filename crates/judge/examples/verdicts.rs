//! The verdicts of a results directory:
//! `cargo run -p schedlab-judge --example verdicts -- tests/fixtures/results-1.0`

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

use model::Trial;
use results::ResultSet;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: verdicts DIRECTORY")?;
    let results = ResultSet::read(Path::new(&dir))?;
    let trials: Vec<Trial> = results.trials.iter().map(|t| t.trial.clone()).collect();
    for judged in judge::judge_deciding(
        &results.experiment,
        &results.plan,
        &trials,
        judge::Looks::AfterEach,
    ) {
        let planned = &results.plan.cells[judged.cell];
        println!(
            "{} {} {}: {}, {} blocks",
            results.experiment.workloads[planned.workload].name,
            results.experiment.arms[judged.arm].name,
            judged.metric,
            judged.judgement.verdict.as_str(),
            judged.judgement.blocks
        );
    }
    Ok(())
}
