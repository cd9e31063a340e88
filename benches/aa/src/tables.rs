//! The Markdown tables of what was measured.

use crate::measure::{INJECTED, METRIC};
use crate::record::{Interleaved, Record, Side};
use crate::sequential::{self, Answer, Rule};
use stats::{bounds, summary};
use std::cmp::Ordering;
use std::fmt::Write;

const ALPHA: f64 = 0.05;

pub fn all(records: &[Record]) -> String {
    let interleaved: Vec<&Interleaved> = records
        .iter()
        .filter_map(|record| match record {
            Record::Interleaved(found) => Some(found),
            Record::Side(_) => None,
        })
        .collect();
    let sides: Vec<&Side> = records
        .iter()
        .filter_map(|record| match record {
            Record::Side(side) => Some(side),
            Record::Interleaved(_) => None,
        })
        .collect();
    let mut text = equal_arms(&interleaved);
    text.push('\n');
    text.push_str(&slowdowns(&interleaved, &sides));
    text.push('\n');
    text.push_str(&conditions(records));
    text
}

/// The same arm twice: whatever is called is false.
fn equal_arms(all: &[&Interleaved]) -> String {
    let equal = || all.iter().filter(|r| r.injected_percent == 0.0).copied();
    let mut text = "| metric of equal arms | comparisons | better | worse | same | unknown \
                    | false calls, 95 % interval | mean blocks |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let mut names: Vec<&str> = equal().map(|r| r.metric.as_str()).collect();
    names.sort_by_key(|name| (*name != METRIC, *name));
    names.dedup();
    for name in names {
        let of_metric: Vec<&Interleaved> = equal().filter(|r| r.metric == name).collect();
        text.push_str(&equal_row(name, &of_metric));
    }
    text
}

fn equal_row(name: &str, records: &[&Interleaved]) -> String {
    let count = |verdict: &str| records.iter().filter(|r| r.verdict == verdict).count();
    let (better, worse) = (count("better"), count("worse"));
    let blocks: Vec<f64> = records.iter().map(|r| r.blocks as f64).collect();
    let deciding = records.iter().any(|r| r.deciding);
    format!(
        "| {name}{} | {} | {better} | {worse} | {} | {} | {} | {:.1} |\n",
        if deciding { " (decides)" } else { "" },
        records.len(),
        count("same"),
        count("unknown"),
        share(better + worse, records.len()),
        summary::mean(&blocks).unwrap_or(0.0)
    )
}

/// `2.0 % [0.5, 5.0]`.
fn share(hits: usize, of: usize) -> String {
    let [few, all] = [hits, of].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    match bounds::share_interval(few, all, ALPHA) {
        None => "-".to_owned(),
        Some(interval) => format!(
            "{:.1} % [{:.1}, {:.1}]",
            100.0 * hits as f64 / of as f64,
            100.0 * interval.low,
            100.0 * interval.high
        ),
    }
}

/// Results of the protocols for an arm with more work, and for one without.
fn slowdowns(interleaved: &[&Interleaved], sides: &[&Side]) -> String {
    let mut text = "| extra work | protocol | comparisons | called slower | called faster \
                    | machine time, s: median, range |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for injected in [0.0].into_iter().chain(INJECTED) {
        for (name, answers) in protocols(interleaved, sides) {
            let here: Vec<Answer> = answers
                .into_iter()
                .filter(|a| a.injected_percent == injected)
                .collect();
            if !here.is_empty() {
                text.push_str(&slowdown_row(injected, &name, &here));
            }
        }
    }
    text
}

fn protocols(interleaved: &[&Interleaved], sides: &[&Side]) -> Vec<(String, Vec<Answer>)> {
    let mut protocols = vec![("schedlab".to_owned(), of_schedlab(interleaved))];
    for runs in [3, 10] {
        for (rule, word) in [(Rule::Percentage, "2 %"), (Rule::Welch, "Welch")] {
            let answers = sequential::compare(sides, runs, rule);
            protocols.push((format!("{runs} + {runs} runs, {word}"), answers));
        }
    }
    protocols
}

fn of_schedlab(interleaved: &[&Interleaved]) -> Vec<Answer> {
    let deciding = interleaved.iter().filter(|r| r.deciding);
    deciding
        .map(|r| Answer {
            injected_percent: r.injected_percent,
            called: match r.verdict.as_str() {
                "worse" => Ordering::Less,
                "better" => Ordering::Greater,
                _ => Ordering::Equal,
            },
            machine_ns: r.machine_ns,
        })
        .collect()
}

fn slowdown_row(injected: f64, name: &str, answers: &[Answer]) -> String {
    let count = |called| answers.iter().filter(|a| a.called == called).count();
    let seconds: Vec<f64> = answers.iter().map(|a| a.machine_ns as f64 / 1e9).collect();
    let of = answers.len();
    format!(
        "| {injected} % | {name} | {of} | {} | {} | {} |\n",
        share(count(Ordering::Less), of),
        share(count(Ordering::Greater), of),
        spread(&seconds)
    )
}

/// `12.1, 3.0 to 26.2`.
fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let median = summary::median(values).unwrap_or(0.0);
    format!("{median:.1}, {least:.1} to {most:.1}")
}

/// Load of the machine, and the change of the rate by the injected work.
fn conditions(records: &[Record]) -> String {
    let loads: Vec<f64> = records
        .iter()
        .map(|record| match record {
            Record::Interleaved(r) => r.load_average,
            Record::Side(side) => side.load_average,
        })
        .collect();
    let mut text = format!("Load average of a minute: median {}.\n", spread(&loads));
    for injected in INJECTED {
        let ratios: Vec<f64> = records
            .iter()
            .filter_map(|record| match record {
                Record::Interleaved(r) if r.deciding && r.injected_percent == injected => r.ratio,
                _ => None,
            })
            .collect();
        if let Some(median) = summary::median(&ratios) {
            let _ = writeln!(
                text,
                "{injected} % more work: median of the estimated changes of {METRIC} {:+.1} %.",
                100.0 * (median - 1.0)
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(injected_percent: f64, verdict: &str) -> Record {
        Record::Interleaved(Interleaved {
            injected_percent,
            metric: METRIC.to_owned(),
            deciding: true,
            verdict: verdict.to_owned(),
            ratio: Some(0.97),
            e_value: None,
            blocks: 10,
            machine_ns: 4_000_000_000,
            load_average: 1.5,
        })
    }

    #[test]
    fn false_calls_are_a_share_with_its_interval() {
        let mut records = vec![compared(0.0, "same"); 38];
        records.extend([compared(0.0, "better"), compared(0.0, "worse")]);
        let text = all(&records);
        // scipy: binomtest(2, 40).proportion_ci(0.95, "exact") = 0.0061, 0.1692.
        assert!(
            text.contains("| 40 | 1 | 1 | 38 | 0 | 5.0 % [0.6, 16.9] | 10.0 |"),
            "{text}"
        );
    }

    #[test]
    fn a_slowdown_is_found_or_not_with_its_machine_time() {
        let text = all(&[compared(3.0, "worse"), compared(3.0, "unknown")]);
        assert!(
            text.contains("| 3 % | schedlab | 2 | 50.0 % [1.3, 98.7] |"),
            "{text}"
        );
        assert!(text.contains("4.0, 4.0 to 4.0"), "{text}");
        assert!(
            text.contains("changes of requests_per_sec -3.0 %"),
            "{text}"
        );
    }
}
