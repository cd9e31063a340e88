use super::*;
use crate::table::{HoldsFor, Table, Verdict};
use model::{Load, Measurement, Variant};
use synthetic::Scenario;

const SCAN_RATES: [f64; 3] = [1_000.0, 2_000.0, 4_000.0];

/// The first arm's values in cell `n` are `n + 1` milliseconds; those of the second are
/// `factor` times as long in the last cell.
fn results(scenario: &Scenario, factor: f64) -> ResultSet {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), scenario).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    let last = results.plan.cells.len() - 1;
    for stored in &mut results.trials {
        let place = &stored.trial.place;
        let wobble = 1.0 + 0.001 * f64::from(place.block % 3);
        let slow = match (place.cell == last, place.arm) {
            (true, 1) => factor,
            _ => 1.0,
        };
        let value = 1e6 * (place.cell as f64 + 1.0) * wobble * slow;
        stored.trial.result.metrics = vec![Measurement {
            metric: "request_p99".to_owned(),
            unit: "ns".to_owned(),
            better: Better::Lower,
            value,
            own: None,
        }];
    }
    results
}

/// Marks the trials of some places as overloaded.
fn overload(results: &mut ResultSet, which: impl Fn(&model::PlannedTrial) -> bool) {
    for stored in &mut results.trials {
        if which(&stored.trial.place) {
            stored.trial.result.metrics.push(Measurement {
                metric: results::overload::MARK.to_owned(),
                unit: "count".to_owned(),
                better: Better::Neither,
                value: 1.0,
                own: None,
            });
        }
    }
}

/// Three cells of one workload.
fn scenario(change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut scenario = synthetic::quickstart();
    scenario.experiment.workloads.truncate(1);
    scenario.experiment.workloads[0].metrics = vec!["request_p99".to_owned()];
    scenario.plan.cells.retain(|cell| cell.workload == 0);
    let cells = scenario.plan.cells.len();
    scenario.plan.trials.retain(|trial| trial.cell < cells);
    scenario.failed_attempts.clear();
    change(&mut scenario);
    for (trial, index) in scenario.plan.trials.iter_mut().zip(0..) {
        trial.index = index;
    }
    scenario
}

#[test]
fn a_scan_has_every_rate_and_the_knee_of_each_arm() {
    let scenario = scenario(|s| {
        for (cell, rate) in s.plan.cells.iter_mut().zip(SCAN_RATES) {
            cell.load = Load::RatePerSec(rate);
        }
    });
    let scans = scan::find_scans(&results(&scenario, 10.0));
    assert_eq!(scans.len(), 1);
    let (first, second) = (&scans[0].arms[0], &scans[0].arms[1]);
    assert_eq!(
        first.knee.knee_per_sec, None,
        "3 ms is not above 3 times 1 ms"
    );
    assert_eq!(second.knee.knee_per_sec, Some(2_000.0));
    assert_eq!(second.knee.beyond_per_sec, Some(4_000.0));
    let last = second.points[2].latency;
    assert!((last.value / 30e6 - 1.0).abs() < 0.01, "{last:?}");
    assert!(last.low.unwrap() < last.value && last.value < last.high.unwrap());
}

#[test]
fn a_scan_marks_what_was_not_carried_and_names_what_was_not_measured() {
    let scenario = scenario(|s| {
        for (cell, rate) in s.plan.cells.iter_mut().zip(SCAN_RATES) {
            cell.load = Load::RatePerSec(rate);
        }
    });
    let mut results = results(&scenario, 1.0);
    overload(&mut results, |place| (place.cell, place.arm) == (2, 1));
    results.trials.retain(|stored| {
        let place = &stored.trial.place;
        (place.cell, place.arm) != (1, 1)
    });
    let arms = scan::find_scans(&results).remove(0).arms;
    assert!(arms[0].points.iter().all(|p| !p.overloaded));
    assert!(arms[1].points[1].overloaded);
    assert_eq!(arms[1].unmeasured_per_sec, [2_000.0]);
    assert_eq!(arms[1].knee.knee_per_sec, None);
    assert_eq!(arms[1].knee.beyond_per_sec, Some(4_000.0));
}

/// The first cell is the service alone, the second beside an antagonist.
fn beside() -> Scenario {
    scenario(|s| {
        s.plan.cells.truncate(2);
        s.plan.trials.retain(|trial| trial.cell < 2);
        let variant = |beside: Option<&str>| {
            Some(Variant {
                of: "service".to_owned(),
                placement: None,
                beside: beside.map(str::to_owned),
            })
        };
        let workloads = &mut s.experiment.workloads;
        workloads.push(workloads[0].clone());
        workloads[0].variant = variant(None);
        workloads[1].variant = variant(Some("batch"));
        workloads[1].name += " + batch";
        s.plan.cells[1].workload = 1;
        s.plan.cells[1].load = s.plan.cells[0].load;
    })
}

#[test]
fn interference_is_against_the_lone_service_under_the_same_arm() {
    let scenario = beside();
    let matrices = interference::make_matrices(&results(&scenario, 5.0));
    assert_eq!(matrices.len(), 1);
    let row = &matrices[0].rows[0];
    assert_eq!(row.beside, "batch");
    let ratio = |arm: usize| row.arms[arm].as_ref().unwrap().ratio;
    assert!((ratio(0) - 2.0).abs() < 0.01, "2 ms over 1 ms");
    assert!((ratio(1) - 10.0).abs() < 0.05, "five times that");
}

#[test]
fn an_overloaded_service_is_slower_by_its_goodput() {
    let mut results = results(&beside(), 0.9);
    overload(&mut results, |place| (place.cell, place.arm) == (1, 1));
    for stored in &mut results.trials {
        stored.trial.result.metrics.push(Measurement {
            metric: "requests_per_sec".to_owned(),
            unit: "1/s".to_owned(),
            better: Better::Higher,
            value: 9_000.0 / (1.0 + 2.0 * stored.trial.place.cell as f64),
            own: None,
        });
    }
    let matrices = interference::make_matrices(&results);
    let arms = &matrices[0].rows[0].arms;
    let (carried, overloaded) = (arms[0].as_ref().unwrap(), arms[1].as_ref().unwrap());
    assert_eq!(carried.metric, "request_p99");
    assert_eq!(overloaded.metric, "requests_per_sec");
    assert!((overloaded.factor() - 3.0).abs() < 0.01);
}

#[test]
fn a_search_has_the_rate_of_each_arm_without_its_bounds() {
    let slo = model::Slo {
        permille: 990,
        below_ns: 1_000_000,
        from_per_sec: 1e3,
        to_per_sec: 1e5,
    };
    let scenario = scenario(|s| {
        s.experiment.workloads[0].metrics = vec!["slo_rate".to_owned()];
        s.plan.cells[0].load = Load::MaxRate(slo);
    });
    let mut results = results(&scenario, 1.0);
    for stored in &mut results.trials {
        let (block, arm) = (stored.trial.place.block, stored.trial.place.arm);
        let rate = 8e3 * (1.0 + 0.01 * f64::from(block % 2)) * (1.0 + arm as f64);
        let bound = f64::from(u8::from(arm == 1 && block == 1));
        let figures = [("slo_rate", rate), ("slo_bound", -bound)];
        stored.trial.result.metrics = figures.map(figure).to_vec();
    }
    let searches = search::find_searches(&results);
    assert_eq!((searches.len(), searches[0].quantile.as_str()), (1, "p99"));
    let (one, two) = (&searches[0].arms[0], &searches[0].arms[1]);
    let mean = one.rate_per_sec.unwrap();
    assert!((8_000.0..8_080.0).contains(&mean.value));
    assert!(mean.low.unwrap() < mean.value && mean.value < mean.high.unwrap());
    assert_eq!((one.lower, two.lower, two.higher), (0, 1, 0));
    assert_eq!(two.rate_per_sec.unwrap().blocks, mean.blocks - 1);
}

fn figure((metric, value): (&str, f64)) -> Measurement {
    Measurement {
        metric: metric.to_owned(),
        unit: "1/s".to_owned(),
        better: Better::Higher,
        value,
        own: None,
    }
}

#[test]
fn a_grid_has_a_place_for_each_arm_and_none_for_what_is_left_out() {
    let mut scenario = scenario(|_| {});
    let at = |period: &str, runtime: &str| {
        let point = [("period", period), ("runtime", runtime)];
        point.map(|(k, v)| (k.to_owned(), v.to_owned())).into()
    };
    let arms = &mut scenario.experiment.arms;
    arms[1].grid = at("5ms", "1ms");
    arms[2].grid = at("9ms", "1ms");
    arms[3].grid = at("9ms", "2ms");
    let table = Table::from_results(&results(&scenario, 3.0));
    let grid = table.across.grids.last().unwrap();
    assert_eq!(
        (grid.across.as_str(), grid.down.as_deref()),
        ("runtime", Some("period"))
    );
    assert_eq!(grid.columns, ["1ms", "2ms"]);
    assert!(grid.rows[0].points[1].is_none());
    let slow = grid.rows[0].points[0].as_ref().unwrap();
    assert_eq!(slow.arm, scenario.experiment.arms[1].name);
    assert!((slow.ratio.unwrap() - 3.0).abs() < 0.01);
}

fn source(machine: &str, seed: u64, blocks: u32) -> results::Source {
    results::Source {
        machine: machine.to_owned(),
        created: "2026-11-21T19:16:06Z".to_owned(),
        seed,
        blocks,
        together: false,
    }
}

/// The table of merged runs of these machines, under whose second arm latencies are so many times as long, in the first
/// cell.
fn merged(of: [(&str, f64); 3]) -> Table {
    let mut results = results(&scenario(|_| {}), 1.0);
    let blocks = [4, 4, 3];
    let sources = of.iter().zip(blocks).zip(1..);
    let sources = sources.map(|(((name, _), blocks), seed)| source(name, seed, blocks));
    results.manifest.sources = sources.collect();
    for stored in &mut results.trials {
        let place = &stored.trial.place;
        if (place.cell, place.arm) == (0, 1) {
            let part = usize::from(place.block > 4) + usize::from(place.block > 8);
            let scatter = 1.0 + 0.002 * f64::from(place.block % 2);
            stored.trial.result.metrics[0].value *= of[part].1 * scatter;
        }
    }
    Table::from_results(&results)
}

fn over(table: &Table) -> (&ByMachine, &over::Over) {
    let by = &table.across.machines[0];
    (by, by.over_machines.as_ref().unwrap())
}

#[test]
fn three_machines_tell_of_others_and_of_the_next_one() {
    let table = merged([("a", 1.10), ("b", 1.12), ("c", 1.20)]);
    let (by, over) = over(&table);
    assert_eq!(
        (by.level, over.machines),
        (results::merge::Level::Machine, 3)
    );
    // Mean and standard deviation of the logarithms are 0.1303 and 0.0459, Student's quantile is 4.303.
    let found = [
        over.low,
        Some(over.value),
        over.high,
        over.next_low,
        over.next_high,
    ];
    for (found, wanted) in found.into_iter().zip([1.016, 1.139, 1.277, 0.907, 1.431]) {
        assert!((found.unwrap() - wanted).abs() < 0.005, "{over:?}");
    }
    assert_eq!(over.differ, None, "four blocks have no interval");
    assert!((over.between.unwrap() - 0.0459).abs() < 0.002, "{over:?}");
    let said = crate::render::machines::describe_over(&table).join(" ");
    let wanted = "p99 of requests under batch in wakeup 50% 14 % higher (1.7 to 28 %), on the next one 9.3 % lower \
                  to 43 % higher.";
    assert!(said.contains(wanted), "{said}");
    let first = &table.cells[0].comparisons[0];
    assert_eq!((first.verdict, first.holds_for), (Verdict::Worse, None));
}

#[test]
fn a_call_that_machines_in_general_do_not_bear_out_is_about_these() {
    let reach = |of| merged(of).cells[0].comparisons[0].holds_for;
    let found = reach([("a", 1.10), ("b", 1.12), ("c", 1.60)]);
    assert_eq!(found, Some(HoldsFor::TheseMachines));
    let two = merged([("a", 1.10), ("b", 1.12), ("a", 1.11)]);
    assert_eq!(over(&two).1.low, None);
    let said = crate::render::machines::describe_over(&two);
    assert_eq!(
        said,
        ["Of other machines these 2 machines tell nothing: that takes 3 or more."]
    );
    assert_eq!(
        two.cells[0].comparisons[0].holds_for,
        Some(HoldsFor::TheseMachines)
    );
}

#[test]
fn nights_of_one_machine_are_a_level_of_their_own() {
    let table = merged([("a", 1.10), ("a", 1.12), ("a", 1.60)]);
    let (by, over) = over(&table);
    assert_eq!((by.level, over.machines), (results::merge::Level::Run, 3));
    assert_eq!(by.machines[2].machine, "2026-11-21 seed 3");
    let holds_for = table.cells[0].comparisons[0].holds_for;
    assert_eq!(holds_for, Some(HoldsFor::TheseRuns));
    let sheets = crate::render::sheet::make_sheets(&table);
    let sheet = sheets
        .iter()
        .find(|s| s.title.ends_with("in each of 3 runs"));
    assert!(
        sheet
            .unwrap()
            .columns
            .ends_with(&["over runs".to_owned(), "next run".to_owned()])
    );
}

#[test]
fn a_machine_without_the_figure_keeps_its_column() {
    let mut results = results(&scenario(|_| {}), 1.0);
    results.manifest.sources = vec![source("a", 1, 6), source("b", 2, 5)];
    for stored in &mut results.trials {
        if stored.trial.place.block > 6 {
            stored.trial.result.metrics.clear();
        }
    }
    let table = Table::from_results(&results);
    let found = &table.across.machines[0].machines;
    let blocks: Vec<(&str, usize)> = found
        .iter()
        .map(|on| (on.machine.as_str(), on.blocks))
        .collect();
    assert_eq!(blocks, [("a", 6), ("b", 0)]);
    assert_eq!(found[1].ratio, None);
    let sheets = crate::render::sheet::make_sheets(&table);
    let of_machines = sheets
        .iter()
        .filter(|s| s.title.contains("each of 2 machines"));
    for sheet in of_machines {
        assert!(
            sheet
                .rows
                .iter()
                .all(|row| row.cells.len() == sheet.columns.len())
        );
    }
}
