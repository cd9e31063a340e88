//! A verdict that later blocks no longer support is none, and every format says what it was.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use report::{Comparison, Format, Options, Table, Verdict};
use results::ResultSet;

const BLOCKS: u32 = 16;

/// Hackbench under `batch` is 10 % faster in the first half of the blocks and 10 % slower in the second.
fn results() -> ResultSet {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::few_blocks(BLOCKS)).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    for stored in &mut results.trials {
        let trial = &mut stored.trial;
        let block = trial.place.block;
        let jitter = 1.0 + 0.001 * f64::from(block % 3);
        let factor = match (trial.arm.as_str(), block <= BLOCKS / 2) {
            ("batch", true) => 0.9 * jitter,
            ("batch", false) => 1.1 * jitter,
            _ => 1.0,
        };
        let metrics = trial.result.metrics.iter_mut();
        for measured in metrics.filter(|m| m.metric == "hackbench_time") {
            measured.value = 2.0 * factor;
        }
    }
    results
}

fn comparison(table: &Table) -> &Comparison {
    let mut all = table.cells.iter().flat_map(|cell| &cell.comparisons);
    all.find(|c| c.arm == "batch" && c.metric == "hackbench_time")
        .unwrap()
}

#[test]
fn a_call_that_all_blocks_no_longer_support_is_unknown_and_counted_as_that() {
    let table = Table::from_results(&results());
    let found = comparison(&table);
    assert_eq!(
        (found.verdict, found.withdrawn),
        (Verdict::Unknown, Some(Verdict::Better))
    );
    assert_eq!(found.survives_ebh, None);
    let tally = table.tallies.iter().find(|tally| tally.arm == "batch");
    let tally = tally.unwrap();
    assert_eq!((tally.better, tally.unknown), (0, 1));
    let note = "better after 6 blocks; all 16 together no longer support it";
    assert!(
        found.notes.iter().any(|said| said.starts_with(note)),
        "{:?}",
        found.notes
    );
}

#[test]
fn every_format_has_a_mark_for_it_which_is_no_verdict() {
    let results = results();
    let table = Table::from_results(&results);
    for (format, mark) in [
        ("text", " was better "),
        ("markdown", "| was better |"),
        ("lkml", " was better"),
        ("html", r#"chip unknown" title="#),
        ("json", r#""withdrawn": "better""#),
        ("junit", r#"type="was better""#),
    ] {
        let text = Format::find_by_name(format).unwrap();
        let text = text.render_report(&table, &results, &Options::default());
        let text = text.unwrap().into_string();
        assert!(text.contains(mark), "{format}: {text}");
        assert!(!text.contains("batch is better"), "{format}: {text}");
        if ["text", "markdown", "lkml", "html"].contains(&format) {
            assert!(text.contains("was better"), "{format}: {text}");
            assert!(
                text.contains("earlier blocks alone said better")
                    || text
                        .replace("\n  ", " ")
                        .contains("earlier blocks alone said better"),
                "{format}: {text}"
            );
        }
    }
    let csv = Format::find_by_name("comparisons").unwrap();
    let csv = csv
        .render_report(&table, &results, &Options::default())
        .unwrap();
    let csv = csv.into_string();
    assert!(csv.lines().next().unwrap().ends_with(",withdrawn"));
    let mut rows = csv.lines().filter(|row| row.ends_with(",better"));
    assert!(rows.any(|row| row.contains(",unknown,")), "{csv}");
}

#[test]
fn a_mail_has_one_convention_of_signs_and_no_comparison_twice() {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
    let results = ResultSet::read(dir.path()).unwrap();
    let table = Table::from_results(&results);
    let mail = Format::find_by_name("lkml").unwrap();
    let mail = mail
        .render_report(&table, &results, &Options::default())
        .unwrap();
    let mail = mail.into_string();
    let (classic, beside) = mail.split_once("Raw data of").unwrap();
    assert!(classic.contains("wakeup_p99 (lower is better): batch"));
    assert!(!beside.contains("wakeup_p99 (lower is better)"), "{mail}");
    let calls: Vec<&str> = beside
        .lines()
        .filter(|line| line.ends_with("better   11") || line.ends_with("worse    11"))
        .collect();
    assert!(calls.len() > 10, "{mail}");
    for line in calls {
        let gains = line.split_whitespace().nth(1).unwrap().starts_with('+');
        assert_eq!(gains, line.contains("better"), "{line}");
    }
}
