//! The first screen of a report: what a reader without statistics takes from it, also in a narrow terminal.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use model::Severity;
use report::{Comparison, Format, Options, Table};
use results::ResultSet;
use synthetic::Scenario;

fn results() -> ResultSet {
    results_of(&synthetic::quickstart())
}

fn results_of(scenario: &Scenario) -> ResultSet {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), scenario).unwrap();
    ResultSet::read(dir.path()).unwrap()
}

fn text(table: &Table, results: &ResultSet, width: usize, full: bool) -> String {
    let options = Options {
        width,
        full,
        ..Options::default()
    };
    let text = Format::find_by_name("text").unwrap();
    text.render_report(table, results, &options)
        .unwrap()
        .into_string()
}

#[test]
fn a_narrow_terminal_shows_the_levels_of_both_arms_rather_than_an_e_value() {
    let results = results();
    let table = Table::from_results(&results);
    let row_at = |width| {
        let said = text(&table, &results, width, false);
        let row = said.lines().find(|line| line.contains("x3.90"));
        row.unwrap().to_owned()
    };
    let wide = row_at(100);
    assert!(wide.contains("358 us") && wide.contains("770"), "{wide}");
    let narrow = row_at(88);
    assert!(narrow.contains("358 us  1.40 ms"), "{narrow}");
    assert!(narrow.ends_with("worse"), "{narrow}");
    // Where there is no room for them either, the e-value is better than nothing.
    let narrower = row_at(76);
    assert!(
        !narrower.contains("358 us") && narrower.ends_with("770"),
        "{narrower}"
    );
    assert!(row_at(66).ends_with("worse"));
    // All was asked for: medians are below.
    let full = text(&table, &results, 88, true);
    assert!(full.contains("e-value"), "{full}");
}

#[test]
fn what_was_not_found_is_said_with_the_largest_that_it_may_be() {
    let results = results();
    let said = text(&Table::from_results(&results), &results, 120, false);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = "no difference was found in 19 minutes; if there is one, it is at most: p99 of wakeups 24 % \
                    higher or 22 % lower in wakeup 50%; more than 7 hours more would decide it.";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn the_meaning_of_the_star_is_there_where_a_star_is() {
    const MEANING: &str = "* holds by itself";
    let results = results();
    let mut table = Table::from_results(&results);
    let decides = |c: &&mut Comparison| c.deciding && c.survives_ebh.is_some();
    let mut deciding = table.cells[1].comparisons.iter_mut();
    deciding.find(decides).unwrap().survives_ebh = Some(false);
    assert!(text(&table, &results, 100, false).contains(MEANING));
    // The smallest of many that are better beside what decides: only the first four are named.
    let all = table
        .cells
        .iter_mut()
        .flat_map(|cell| &mut cell.comparisons);
    for comparison in all.filter(|c| c.survives_ebh.is_some()) {
        let is_small = comparison.arm == "slice=0.3ms" && comparison.metric == "request_p50";
        comparison.survives_ebh = Some(!is_small);
    }
    let starred = table
        .all_comparisons()
        .any(|c| c.survives_ebh == Some(false));
    assert!(starred, "one has a star");
    let short = text(&table, &results, 100, false);
    assert!(!short.contains('*'), "{short}");
    assert!(text(&table, &results, 100, true).contains(MEANING));
}

#[test]
fn what_is_only_good_to_know_is_no_warning() {
    let mut scenario = synthetic::few_blocks(5);
    scenario.failed_attempts.clear();
    scenario.warnings.retain(|w| w.severity == Severity::Note);
    let results = results_of(&scenario);
    let table = Table::from_results(&results);
    for full in [false, true] {
        let said = text(&table, &results, 100, full);
        assert!(said.contains("\nNotes\n"), "{said}");
        assert!(!said.contains("Warnings"), "{said}");
    }
}

#[test]
fn a_run_that_decided_nothing_shows_figures_of_each_of_its_many_cells() {
    let results = results_of(&synthetic::few_blocks(1));
    let mut table = Table::from_results(&results);
    let cell = table.cells[0].clone();
    table.cells = vec![cell; 15];
    let said = text(&table, &results, 100, false);
    let heads = said
        .lines()
        .filter(|line| line.contains("(against default)"));
    assert_eq!(heads.count(), table.cells.len(), "{said}");
    let all = "All 30 comparisons are the same or unknown; 24 are shown.";
    assert!(said.contains(all), "{said}");
}
