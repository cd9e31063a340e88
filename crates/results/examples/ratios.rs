//! The ratios of a results directory, block by block:
//! `cargo run -p schedlab-results --example ratios -- tests/fixtures/results-1.0`

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

use results::{ResultSet, log_ratios};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: ratios DIRECTORY")?;
    let results = ResultSet::read(Path::new(&dir))?;
    let baseline = results.experiment.baseline;
    for (cell, planned) in results.plan.cells.iter().enumerate() {
        let workload = &results.experiment.workloads[planned.workload];
        for (arm, named) in results.experiment.arms.iter().enumerate() {
            for metric in workload.metrics.iter().filter(|_| arm != baseline) {
                let trials = results.trials.iter().map(|stored| &stored.trial);
                for ratio in log_ratios(trials, cell, metric, arm, baseline) {
                    println!(
                        "{} {} {metric}: {:.3}",
                        workload.name,
                        named.name,
                        ratio.x.exp()
                    );
                }
            }
        }
    }
    Ok(())
}
