//! `schedlab overhead`: what each collector costs on this machine. Arms that differ
//! in nothing but what is collected run in blocks like any other arms; the baseline
//! collects nothing.

use crate::args::{ExperimentArgs, OverheadArgs, WordArgs};
use crate::exit::{self, CliError};
use crate::measure::{Measured, measure_anew};
use crate::output::{self, Plain, note};
use crate::request::{Wanted, read_measurable};
use agent::{COLLECTORS, COSTLY, CollectorDef, Cost, Costs};
use model::{Arm, Better, Experiment, StopRule};
use report::{Comparison, Table};
use runner::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

pub fn overhead(args: &OverheadArgs) -> Result<ExitCode, CliError> {
    let asked = read_measurable(&ExperimentArgs {
        words: WordArgs {
            workloads: vec![args.workload.clone()],
            arms: vec!["default".to_owned()],
            ..WordArgs::default()
        },
        budget: args.budget.clone(),
        max_blocks: Some(args.max_blocks),
        ..ExperimentArgs::default()
    })?;
    let absent = absent()?;
    let mut here = COLLECTORS.to_vec();
    here.retain(|def| !absent.contains_key(def.name));
    let wanted = Wanted {
        experiment: on_and_off(asked.experiment, &here),
        // The text has none of these arms.
        source: None,
        ..asked
    };
    let Measured { results, outcome } =
        measure_anew(args.output.as_deref(), wanted, args.wait, args.quiet)?;
    let table = Table::from_results(&results);
    super::report::write_report_files(&table, &results)?;
    let costs = Costs {
        kernel_release: results.system.kernel_release.clone(),
        costs: costs(&table),
    };
    store(&costs, &agent::costs_file()?)?;
    match args.format {
        Plain::Text => output::print_text(text(&table, &costs, &absent))?,
        Plain::Json => output::json(&costs)?,
    }
    if !args.quiet {
        note!("\nResults  {}", results.dir.display());
    }
    Ok(match outcome {
        Outcome::Interrupted | Outcome::Railed(_) | Outcome::Restarts(_) => {
            ExitCode::from(exit::INTERRUPTED)
        }
        Outcome::Done => super::report::verdict_code(&table, &results, None),
    })
}

/// The collectors that cannot be had here: what each lacks, and what to do.
type Absent = BTreeMap<&'static str, (String, String)>;

fn absent() -> Result<Absent, CliError> {
    let directories = schedulers::bin_dirs()?;
    let lacks = |def: &&CollectorDef| {
        let why = (def.missing)(Path::new("/"), directories.clone())?;
        Some((def.name, why))
    };
    Ok(COLLECTORS.iter().filter_map(lacks).collect())
}

/// An arm that collects nothing, and one for each collector.
fn on_and_off(experiment: Experiment, collectors: &[&CollectorDef]) -> Experiment {
    let arm = |name: &str, collect| Arm {
        collect: Some(collect),
        ..Arm::unchanged(name)
    };
    let none = std::iter::once(arm("nothing", Vec::new()));
    let each = collectors
        .iter()
        .map(|def| arm(def.name, vec![def.name.to_owned()]));
    Experiment {
        name: "overhead".to_owned(),
        question: Some("What does each collector cost?".to_owned()),
        arms: none.chain(each).collect(),
        baseline: 0,
        aa_arm: None,
        observe: experiment.observe.without_trace(),
        stop: StopRule {
            // What is the same within it counts as cheap.
            smallest_effect: COSTLY,
            ..experiment.stop
        },
        ..experiment
    }
}

/// The worst of the deciding metrics for each collector.
fn costs(table: &Table) -> Vec<Cost> {
    COLLECTORS
        .iter()
        .filter_map(|def| {
            let of_collector = deciding(table).filter(|c| c.arm == def.name);
            of_collector
                .filter_map(|c| cost(def.name, c))
                .max_by(|a, b| (a.is_costly().cmp(&b.is_costly())).then(a.low.total_cmp(&b.low)))
        })
        .collect()
}

fn deciding(table: &Table) -> impl Iterator<Item = &Comparison> {
    table.all_comparisons().filter(|c| c.deciding)
}

/// Worse counts as a positive cost, whichever direction is better.
fn cost(collector: &str, comparison: &Comparison) -> Option<Cost> {
    let (ratio, low, high) = (comparison.ratio?, comparison.low?, comparison.high?);
    let (cost, low, high) = match comparison.better {
        Better::Higher => (1.0 - ratio, 1.0 - high, 1.0 - low),
        Better::Lower | Better::Neither => (ratio - 1.0, low - 1.0, high - 1.0),
    };
    Some(Cost {
        collector: collector.to_owned(),
        metric: comparison.metric.clone(),
        cost,
        low,
        high,
        survives: comparison.survives_ebh == Some(true),
        blocks: comparison.blocks,
    })
}

fn store(costs: &Costs, path: &Path) -> Result<(), CliError> {
    let failed = |e| CliError::internal(format!("writing {}: {e}", path.display()));
    if let Some(directory) = path.parent() {
        doors::written::make_directory(directory).map_err(failed)?;
    }
    doors::written::write_file(path, output::json_text(costs)?).map_err(failed)
}

fn text(table: &Table, costs: &Costs, absent: &Absent) -> String {
    let mut out = format!(
        "{:<10} {:<18} {:>8}  {:<20} blocks\n",
        "collector", "metric", "cost", "95 % interval"
    );
    for def in COLLECTORS {
        let of_collector = deciding(table).filter(|c| c.arm == def.name);
        for cost in of_collector.filter_map(|c| cost(def.name, c)) {
            let _ = writeln!(out, "{}", line(&cost));
        }
    }
    out.push('\n');
    for def in COLLECTORS {
        let found = costs.costs.iter().find(|c| c.collector == def.name);
        let words = match absent.get(def.name) {
            Some((what, remedy)) => format!("not measured, {what}; {remedy}"),
            None if def.usual => in_words(found).to_owned(),
            None => "on only where an experiment names it (collect)".to_owned(),
        };
        let _ = writeln!(out, "{}: {words}", def.name);
    }
    out
}

fn line(cost: &Cost) -> String {
    let interval = format!("{:+.1} % to {:+.1} %", 100.0 * cost.low, 100.0 * cost.high);
    let mean = format!("{:+.1} %", 100.0 * cost.cost);
    format!(
        "{:<10} {:<18} {mean:>8}  {interval:<20} {}",
        cost.collector, cost.metric, cost.blocks
    )
}

/// Consequence of the worst of its costs.
fn in_words(cost: Option<&Cost>) -> &'static str {
    match cost {
        None => "too few blocks for an interval; it stays on",
        Some(cost) if cost.is_costly() => {
            "costs more than 1 %: off from now on, unless an experiment names it (collect)"
        }
        Some(cost) if cost.high <= COSTLY => "costs at most 1 %: on",
        Some(_) => "may cost more or less than 1 %: on; more blocks would tell",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_interval(low: f64, high: f64) -> Cost {
        Cost {
            collector: "delays".to_owned(),
            metric: "requests_per_sec".to_owned(),
            cost: f64::midpoint(low, high),
            low,
            high,
            survives: true,
            blocks: 12,
        }
    }

    #[test]
    fn what_is_said_follows_from_the_interval_not_from_the_mean() {
        assert!(in_words(Some(&with_interval(0.02, 0.04))).contains("off"));
        assert!(in_words(Some(&with_interval(-0.01, 0.005))).contains("at most 1 %"));
        assert!(in_words(Some(&with_interval(-0.05, 0.08))).contains("more blocks"));
        let by_chance = Cost {
            survives: false,
            ..with_interval(0.02, 0.04)
        };
        assert!(in_words(Some(&by_chance)).contains("more blocks"));
        assert!(in_words(None).contains("too few"));
    }

    #[test]
    fn a_line_has_the_cost_with_its_interval() {
        assert_eq!(
            line(&with_interval(-0.01, 0.03)),
            "delays     requests_per_sec     +1.0 %  -1.0 % to +3.0 %     12"
        );
    }

    #[test]
    fn the_baseline_collects_nothing_and_each_arm_one_thing() {
        let text = "[[arm]]\nname = \"default\"\n[[workload]]\nkind = \"wakeup\"\n";
        catalogue::install();
        let experiment = plan::parse_experiment("x.toml", text);
        let arms = on_and_off(experiment.unwrap(), COLLECTORS).arms;
        assert_eq!(arms.len(), 1 + COLLECTORS.len());
        assert_eq!(arms[0].collect, Some(Vec::new()));
        assert!(
            arms[1..]
                .iter()
                .all(|a| a.collect.as_ref().is_some_and(|c| c.len() == 1))
        );
    }
}
