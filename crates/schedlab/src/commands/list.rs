//! `schedlab list`: what experiments can name.

use crate::args::Listing;
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use crate::reference;
use model::{Better, MetricDef};
use serde_json::{Value, json};
use std::process::ExitCode;

pub fn list(what: Listing, word: Option<&str>, format: Plain) -> Result<ExitCode, CliError> {
    if what == Listing::Reference {
        output::print_text(reference::page())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut groups = groups(what);
    if let Some(word) = word {
        for group in &mut groups {
            group.entries.retain(|entry| entry.has(word, group.name));
        }
        groups.retain(|group| !group.entries.is_empty());
        if groups.is_empty() {
            let all = format!("`schedlab list {}` has all", what.name());
            return Err(CliError::usage(format!("nothing has `{word}` in it"), all));
        }
    }
    match format {
        Plain::Json => output::json(&as_json(what, &groups))?,
        Plain::Text => groups.iter().for_each(show),
    }
    Ok(ExitCode::SUCCESS)
}

/// Columns before every text of a list.
const INDENT: usize = 2;

/// Entries under one heading.
struct Group {
    /// Key in JSON, or the kind of workload of metrics.
    name: &'static str,
    heading: Option<String>,
    /// Width of the names; 0: the text of an entry is below its name.
    column: usize,
    entries: Vec<Entry>,
}

/// One thing that an experiment can name.
struct Entry {
    name: &'static str,
    /// Short facts behind the name.
    facts: String,
    text: &'static str,
    json: Value,
}

impl Entry {
    fn new(name: &'static str, text: &'static str, key: &str) -> Self {
        Entry {
            name,
            facts: String::new(),
            text,
            json: json!({ key: name, "text": text }),
        }
    }

    fn has(&self, word: &str, group: &str) -> bool {
        let all = [self.name, &self.facts, self.text, group];
        let word = word.to_lowercase();
        all.iter().any(|part| part.to_lowercase().contains(&word))
    }
}

fn groups(what: Listing) -> Vec<Group> {
    let group = |name, heading: Option<&str>, column, entries| Group {
        name,
        heading: heading.map(str::to_owned),
        column,
        entries,
    };
    match what {
        Listing::Arms => {
            let forms = plan::forms().into_iter();
            let forms = forms.map(|(form, text)| Entry::new(form, text, "form"));
            let tunables = agent::arm::tunables::TABLE.iter();
            let tunables = tunables.map(|t| Entry::new(t.name, t.text, "name"));
            let feature = Entry::new("feature.NAME", "a scheduler feature, on or off", "name");
            let form = "On the command line (-a); in a file the same are keys of [[arm]]:";
            vec![
                group("forms", Some(form), 26, forms.collect()),
                group(
                    "tunables",
                    Some("Tunables:"),
                    26,
                    tunables.chain([feature]).collect(),
                ),
            ]
        }
        Listing::Workloads => vec![group("workloads", None, 12, workloads())],
        Listing::Targets => {
            let all = machines::TARGETS.iter();
            let of_target = |name, summary| Entry {
                json: json!({ "name": name, "summary": summary }),
                ..Entry::new(name, summary, "name")
            };
            let kinds = all.clone().map(|t| of_target(t.name, t.summary));
            let words = all.flat_map(|t| t.shorts).filter(|s| !s.summary.is_empty());
            let words = words.map(|s| of_target(s.word, s.summary));
            vec![
                group("targets", None, 10, kinds.collect()),
                group(
                    "words",
                    Some("Places of `exec`, as --target WORD:NAME:"),
                    10,
                    words.collect(),
                ),
            ]
        }
        Listing::Collectors => {
            let all = agent::COLLECTORS.iter();
            let all = all.map(|c| Entry::new(c.name, c.text, "name"));
            vec![group("collectors", None, 12, all.collect())]
        }
        Listing::Provocations => {
            let all = services::provoke::PROVOCATIONS.iter();
            let all = all.map(|p| Entry::new(p.name, p.text, "name"));
            vec![group("provocations", None, 19, all.collect())]
        }
        Listing::Spaces => schedulers::SPACES.iter().map(of_space).collect(),
        Listing::Metrics => metrics(),
        Listing::Reference => Vec::new(),
    }
}

fn of_space(space: &'static schedulers::ReadySpace) -> Group {
    let options = space.options.iter().map(|option| Entry {
        json: json!({ "space": space.scheduler, "version": space.version, "option": option }),
        ..Entry::new(option, "", "option")
    });
    Group {
        name: &space.scheduler,
        heading: Some(format!(
            "{}, made from the help of version {}:",
            space.scheduler, space.version
        )),
        column: 40,
        entries: options.collect(),
    }
}

fn workloads() -> Vec<Entry> {
    let kinds = load::KINDS.iter();
    let kinds = kinds.map(|k| Entry {
        facts: format!("load: {}", k.load_unit),
        json: json!({ "name": k.name, "load": k.load_unit, "summary": k.summary }),
        ..Entry::new(k.name, k.summary, "name")
    });
    kinds.collect()
}

/// Metrics by the kind of workload that has them; `any` are those of all trials.
fn metrics() -> Vec<Group> {
    let of_trials = agent::METRICS.iter().copied();
    let of_trials = of_trials.chain(agent::collector_metrics());
    let of_trials = of_trials.map(|metric| ("any", metric));
    let mut groups: Vec<Group> = Vec::new();
    for (kind, metric) in load::metric_defs().into_iter().chain(of_trials) {
        let entry = of_metric(kind, &metric);
        match groups.iter_mut().find(|group| group.name == kind) {
            Some(group) => group.entries.push(entry),
            None => groups.push(Group {
                name: kind,
                heading: Some(match kind {
                    "any" => "Every trial:".to_owned(),
                    kind => format!("{kind}:"),
                }),
                column: 0,
                entries: vec![entry],
            }),
        }
    }
    groups
}

fn of_metric(kind: &str, metric: &MetricDef) -> Entry {
    let better = match metric.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neither => "explains",
    };
    Entry {
        facts: match metric.unit {
            "" => better.to_owned(),
            unit => format!("{unit}, {better}"),
        },
        json: json!({
            "workload": kind, "name": metric.name, "unit": metric.unit,
            "better": metric.better, "text": metric.text,
        }),
        ..Entry::new(metric.name, metric.text, "name")
    }
}

/// A list of all, or for arms an object with a list for each heading.
fn as_json(what: Listing, groups: &[Group]) -> Value {
    let entries = |group: &Group| {
        group
            .entries
            .iter()
            .map(|e| e.json.clone())
            .collect::<Vec<_>>()
    };
    match what {
        Listing::Arms => groups
            .iter()
            .map(|group| (group.name.to_owned(), entries(group).into()))
            .collect::<serde_json::Map<String, Value>>()
            .into(),
        _ => groups.iter().flat_map(entries).collect(),
    }
}

fn show(group: &Group) {
    if let Some(heading) = &group.heading {
        say!("{heading}\n");
    }
    let width = output::width();
    let facts_column = match group.entries.iter().any(|entry| !entry.facts.is_empty()) {
        true => 22,
        false => 1,
    };
    for Entry {
        name, facts, text, ..
    } in &group.entries
    {
        let lines = match group.column {
            0 => {
                say!("  {name}  ({facts})");
                report::wrap_text(text, width, 6, 6)
            }
            column => beside(
                &format!("{name:<column$} {facts}"),
                column + facts_column,
                text,
                width,
            ),
        };
        lines.iter().for_each(|line| say!("{line}"));
    }
    if group.heading.is_some() {
        say!("");
    }
}

/// A text in a column beside its head, or below the head where that is too long.
fn beside(head: &str, column: usize, text: &str, width: usize) -> Vec<String> {
    let column = column + INDENT;
    let mut lines = report::wrap_text(text, width, column, column);
    let head = format!("{:INDENT$}{}", "", head.trim_end());
    match lines.first_mut() {
        Some(first) if head.chars().count() < column => {
            *first = format!("{head:<column$}{}", first.trim_start());
            first.truncate(first.trim_end().len());
        }
        _ => lines.insert(0, head),
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_stays_in_its_column() {
        assert_eq!(
            beside("nice=N", 10, "nice value, -20 to 19", 26),
            ["  nice=N    nice value,", "            -20 to 19"]
        );
        assert_eq!(
            beside("a-very-long-name", 10, "text", 26),
            ["  a-very-long-name", "            text"]
        );
    }

    #[test]
    fn a_word_finds_entries_by_their_name_and_by_their_group() {
        catalogue::install();
        let groups = metrics();
        let has = |group: &str, name: &str, word: &str| {
            let group = groups.iter().find(|g| g.name == group).unwrap();
            let entry = group.entries.iter().find(|e| e.name == name).unwrap();
            entry.has(word, group.name)
        };
        assert!(has("wakeup", "wakeup_p99", "P99"));
        assert!(has("rr", "request_p99", "rr"));
        assert!(!has("rr", "request_p99", "memcached"));
    }
}
