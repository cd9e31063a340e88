//! Latency of an arm that could not carry the load is not compared.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)] // In a test a panic is the message.

use model::{Better, Measurement};
use report::{Comparison, Format, Options, Table, Verdict};
use results::ResultSet;
use std::path::Path;

/// The report of a synthetic run in which `batch` is overloaded in `wakeup 200%`, in
/// the blocks that `when` says.
fn table(when: impl Fn(u32) -> bool) -> Table {
    let dir = tempfile::tempdir().unwrap();
    Table::from_results(&results(dir.path(), when))
}

fn results(dir: &Path, when: impl Fn(u32) -> bool) -> ResultSet {
    synthetic::write(dir, &synthetic::quickstart()).unwrap();
    let mut results = ResultSet::read(dir).unwrap();
    for stored in &mut results.trials {
        let trial = &mut stored.trial;
        let overloaded =
            trial.arm == "batch" && trial.cell == "wakeup 200%" && when(trial.place.block);
        trial.result.metrics.push(Measurement {
            metric: results::overload::MARK.to_owned(),
            unit: "count".to_owned(),
            better: Better::Neither,
            value: f64::from(u8::from(overloaded)),
            own: None,
        });
    }
    results
}

fn comparison<'a>(table: &'a Table, arm: &str, metric: &str) -> &'a Comparison {
    let cell = table
        .cells
        .iter()
        .find(|c| c.name == "wakeup 200%")
        .unwrap();
    let mut found = cell.comparisons.iter();
    found.find(|c| c.arm == arm && c.metric == metric).unwrap()
}

#[test]
fn goodput_decides_where_an_arm_is_always_overloaded() {
    let table = table(|_| true);
    let latency = comparison(&table, "batch", "wakeup_p99");
    assert_eq!(latency.verdict, Verdict::Unknown);
    assert!(!latency.deciding && latency.ratio.is_none());
    assert!(
        latency.notes[0].contains("overloaded in 11 of 11 blocks"),
        "{:?}",
        latency.notes
    );
    assert!(comparison(&table, "batch", "requests_per_sec").deciding);
}

#[test]
fn the_other_arms_are_compared_by_latency_as_before() {
    let table = table(|_| true);
    let other = comparison(&table, "slice=0.3ms", "wakeup_p99");
    assert!(other.deciding && other.ratio.is_some());
    assert_eq!(other.notes, Vec::<String>::new());
}

#[test]
fn one_overloaded_block_of_eleven_is_left_out_with_a_note() {
    let table = table(|block| block == 3);
    let latency = comparison(&table, "batch", "wakeup_p99");
    assert_eq!(latency.blocks, 10);
    assert!(latency.deciding);
    let note = "1 of 11 blocks are left out: a trial was overloaded";
    assert_eq!(latency.notes, [note]);
    assert_eq!(comparison(&table, "batch", "requests_per_sec").blocks, 11);
}

#[test]
fn pictures_of_latency_say_which_arm_was_overloaded() {
    let dir = tempfile::tempdir().unwrap();
    let page = |when: fn(u32) -> bool| {
        let results = results(dir.path(), when);
        let table = Table::from_results(&results);
        let html = Format::find_by_name("html").unwrap();
        html.render_report(&table, &results, &Options::default())
            .unwrap()
            .into_string()
    };
    let caption = "Hollow circles: batch overloaded; requests without an answer";
    assert!(page(|_| true).contains(caption));
    assert!(!page(|block| block == 3).contains("Hollow circles"));
}
