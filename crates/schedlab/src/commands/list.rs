//! `schedlab list`: what experiments can name.

use crate::args::Listing;
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use crate::reference;
use model::{Better, MetricDef};
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn list(what: Listing, format: Plain) -> Result<ExitCode, CliError> {
    match (what, format) {
        (Listing::Reference, _) => output::write(reference::page().into_bytes())?,
        (what, Plain::Json) => output::json(&as_json(what))?,
        (Listing::Arms, Plain::Text) => arms(),
        (Listing::Workloads, Plain::Text) => workloads(),
        (Listing::Targets, Plain::Text) => targets(),
        (Listing::Metrics, Plain::Text) => metrics(),
        (Listing::Collectors, Plain::Text) => collectors(),
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(what: Listing) -> Value {
    match what {
        Listing::Arms => {
            let forms = plan::forms().into_iter();
            let forms = forms.map(|(form, text)| json!({ "form": form, "text": text }));
            let tunables = agent::arm::tunables::TABLE.iter();
            let tunables = tunables.map(|t| json!({ "name": t.name, "text": t.text }));
            json!({ "forms": forms.collect::<Value>(), "tunables": tunables.collect::<Value>() })
        }
        Listing::Workloads => {
            let kinds = load::KINDS.all();
            let kinds =
                kinds.map(|k| json!({ "name": k.name, "load": k.load_unit, "summary": k.summary }));
            kinds.collect()
        }
        Listing::Targets => {
            let targets = target::TARGETS.iter();
            let targets = targets.map(|t| json!({ "name": t.name, "summary": t.summary }));
            targets.collect()
        }
        Listing::Metrics => {
            let metrics = all_metrics().into_iter().map(|(kind, metric)| {
                json!({
                    "workload": kind, "name": metric.name, "unit": metric.unit,
                    "better": metric.better, "text": metric.text,
                })
            });
            metrics.collect()
        }
        Listing::Collectors => {
            let all = agent::COLLECTORS.iter();
            all.map(|c| json!({ "name": c.name, "text": c.text }))
                .collect()
        }
        Listing::Reference => Value::Null,
    }
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

/// Metrics with the kind of workload that has them; `any` for those of all trials.
fn all_metrics() -> Vec<(&'static str, MetricDef)> {
    let of_trials = agent::METRICS.iter().copied();
    let of_trials = of_trials.chain(agent::collector_metrics());
    let of_trials = of_trials.map(|metric| ("any", metric));
    load::metric_defs().into_iter().chain(of_trials).collect()
}

fn metrics() {
    for (kind, metric) in all_metrics() {
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
