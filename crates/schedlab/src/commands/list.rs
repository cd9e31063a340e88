//! `schedlab list`: what experiments can name.

use crate::args::Listing;
use crate::exit::CliError;
use crate::output::{self, say};
use crate::reference;
use model::Better;
use std::process::ExitCode;

pub fn list(what: Listing) -> Result<ExitCode, CliError> {
    match what {
        Listing::Arms => arms(),
        Listing::Workloads => workloads(),
        Listing::Targets => targets(),
        Listing::Metrics => metrics(),
        Listing::Collectors => collectors(),
        Listing::Reference => output::write(reference::page().into_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn arms() {
    say!("On the command line (-a); in a file the same are keys of [[arm]]:\n");
    for (form, text) in plan::forms() {
        say!("  {form:<26} {text}");
    }
    say!("\nTunables:\n");
    for tunable in agent::arm::tunables::TABLE {
        say!("  {:<26} {}", tunable.name, tunable.text);
    }
    say!("  {:<26} a scheduler feature, on or off", "feature.NAME");
}

fn workloads() {
    for kind in load::KINDS.all() {
        say!(
            "  {:<12} load: {:<20} {}",
            kind.name,
            kind.load_unit,
            kind.summary
        );
    }
}

fn targets() {
    for target in target::TARGETS {
        say!("  {:<8} {}", target.name, target.summary);
    }
}

fn collectors() {
    for def in agent::COLLECTORS {
        say!("  {:<12} {}", def.name, def.text);
    }
}

fn metrics() {
    let of_trials = agent::METRICS
        .iter()
        .copied()
        .chain(agent::collector_metrics());
    let of_trials = of_trials.map(|metric| ("any", metric));
    for (kind, metric) in load::metric_defs().into_iter().chain(of_trials) {
        let better = match metric.better {
            Better::Higher => "higher is better",
            Better::Lower => "lower is better",
            Better::Neither => "explains",
        };
        let name = metric.name;
        say!(
            "  {kind:<10} {name:<22} {:<6} {better:<17} {}",
            metric.unit,
            metric.text
        );
    }
}
