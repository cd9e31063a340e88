//! The verdict over six blocks: `cargo run -p schedlab-stats --example verdict`

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a program that prints"
)]

use stats::{Better, Params, judge, log_ratio};

/// Requests per second of the arm and of the baseline, block by block.
const BLOCKS: [(f64, f64); 6] = [
    (1041.0, 1003.0),
    (1058.0, 1011.0),
    (1049.0, 1004.0),
    (1037.0, 998.0),
    (1062.0, 1015.0),
    (1044.0, 1001.0),
];

fn main() {
    let ratios = BLOCKS
        .iter()
        .filter_map(|(arm, base)| log_ratio(*arm, *base));
    let params = Params {
        alpha: 0.05,
        smallest_effect: 0.02,
        better: Better::Higher,
    };
    let judgement = judge(&ratios.collect::<Vec<f64>>(), &params);
    println!(
        "{}: ratio {:.4}, e-value {:.0}, decided at block {:?}",
        judgement.verdict.as_str(),
        judgement.ratio,
        judgement.e_value,
        judgement.decided_at
    );
}
