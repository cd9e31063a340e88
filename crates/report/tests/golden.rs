//! The reports of synthetic results, held against what was once looked at.

use report::{Format, Options, Table, render};
use results::ResultSet;
use synthetic::Scenario;
use tempfile::TempDir;

/// The name of the directory is in no report, so any will do.
fn stored(scenario: &Scenario) -> (TempDir, ResultSet) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), scenario).unwrap();
    let results = ResultSet::read(dir.path()).unwrap();
    (dir, results)
}

fn report(scenario: &Scenario, format: Format) -> String {
    let (_dir, results) = stored(scenario);
    let table = Table::from_results(&results);
    render(format, &table, &results, &Options::default()).unwrap()
}

#[test]
fn the_terminal_shows_the_answer_first() {
    insta::assert_snapshot!(report(&synthetic::quickstart(), Format::Text));
}

#[test]
fn one_arm_alone_is_summarised_and_not_compared() {
    insta::assert_snapshot!(report(&synthetic::one_arm(), Format::Text));
}

#[test]
fn markdown_has_the_verdict_table_and_the_warnings() {
    insta::assert_snapshot!(report(&synthetic::quickstart(), Format::Markdown));
}

#[test]
fn json_has_every_comparison() {
    insta::assert_snapshot!(report(&synthetic::one_arm(), Format::Json));
}

#[test]
fn csv_has_a_row_for_each_trial_and_metric() {
    let text = report(&synthetic::quickstart(), Format::Csv);
    let lines: Vec<&str> = text.lines().take(20).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_report_made_twice_from_one_directory_is_the_same_to_the_byte() {
    let (_dir, results) = stored(&synthetic::quickstart());
    let again = ResultSet::read(&results.dir).unwrap();
    for format in Format::ALL {
        let of = |results| {
            let table = Table::from_results(results);
            render(format, &table, results, &Options::default()).unwrap()
        };
        assert!(of(&results) == of(&again), "{} differs", format.name());
    }
}

#[test]
fn no_line_of_the_terminal_report_is_wider_than_100_columns() {
    let full = Options {
        full: true,
        ..Options::default()
    };
    let (_dir, results) = stored(&synthetic::quickstart());
    let table = Table::from_results(&results);
    let text = render(Format::Text, &table, &results, &full).unwrap();
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{widest:?}");
    assert!(text.is_ascii());
}

#[test]
fn colour_changes_nothing_but_the_colour() {
    let (_dir, results) = stored(&synthetic::quickstart());
    let table = Table::from_results(&results);
    let coloured = Options {
        color: true,
        ..Options::default()
    };
    let plain = render(Format::Text, &table, &results, &Options::default()).unwrap();
    let coloured = render(Format::Text, &table, &results, &coloured).unwrap();
    assert_ne!(plain, coloured);
    assert_eq!(without_sgr(&coloured), plain);
}

fn without_sgr(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut out, part| {
        out.push_str(part.split_once('m').map_or("", |(_, rest)| rest));
        out
    })
}
