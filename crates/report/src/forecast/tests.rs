use super::*;
use tempfile::TempDir;

fn stored(scenario: &synthetic::Scenario) -> (TempDir, ResultSet) {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), scenario).unwrap();
    let results = ResultSet::read(dir.path()).unwrap();
    (dir, results)
}

fn minutes(times: &[u64]) -> Question {
    Question {
        times_ns: times.iter().map(|m| m * 60_000_000_000).collect(),
        effect: Some(0.03),
    }
}

fn forecast(scenario: &synthetic::Scenario, question: &Question) -> Forecast {
    let (_dir, results) = stored(scenario);
    let source = Source {
        results: &results,
        setup_ns: 1_000_000_000,
    };
    Forecast::new(&results.experiment, &[source], question)
}

#[test]
fn every_deciding_metric_of_every_cell_gets_an_answer() {
    let scenario = synthetic::quickstart();
    let forecast = forecast(&scenario, &minutes(&[30]));
    let workloads = &scenario.experiment.workloads;
    let rows: usize = workloads
        .iter()
        .map(|w| w.loads.len() * w.metrics.len())
        .sum();
    assert_eq!(forecast.rows.len(), rows, "{:?}", forecast.unknown);
    assert!(forecast.rows.iter().all(|row| row.blocks.is_some()));
}

#[test]
fn more_time_sees_less_and_max_blocks_end_that() {
    let mut scenario = synthetic::quickstart();
    scenario.experiment.stop.max_blocks = 30;
    let forecast = forecast(&scenario, &minutes(&[15, 20, 600]));
    let blocks: Vec<u32> = forecast.times.iter().map(|t| t.blocks).collect();
    assert!(blocks[0] < blocks[1] && blocks[2] == 30, "{blocks:?}");
    assert!(forecast.times[2].capped && !forecast.times[0].capped);
    let seen = |row: &Row| -> Vec<f64> { row.sees.iter().filter_map(|s| s.expected).collect() };
    for row in &forecast.rows {
        let seen = seen(row);
        assert!(seen[0] > seen[1] && seen[1] > seen[2], "{row:?}");
    }
}

#[test]
fn a_short_pilot_is_less_sure_than_a_long_one() {
    let unsure = |blocks| {
        let forecast = forecast(&synthetic::few_blocks(blocks), &minutes(&[30]));
        let row = &forecast.rows[0];
        row.spread_high / row.spread
    };
    assert!(unsure(3) > 1.2 * unsure(30), "{} {}", unsure(3), unsure(30));
}

#[test]
fn one_block_tells_nothing_of_noise() {
    let forecast = forecast(&synthetic::few_blocks(1), &minutes(&[30]));
    assert!(forecast.rows.is_empty());
    assert!(!forecast.unknown.is_empty());
}

#[test]
fn arms_that_share_a_baseline_count_for_less() {
    assert_eq!(effective(10, 1), 10);
    assert_eq!(effective(30, 3), 20);
}

#[test]
fn the_answer_is_said_in_words_and_fits_the_terminal() {
    let text = forecast(&synthetic::quickstart(), &minutes(&[30])).to_text();
    assert!(text.contains("you will see"), "{text}");
    assert!(text.contains("a change of 3.0% takes"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(text.is_ascii());
}

#[test]
fn a_metric_that_is_compared_by_differences_is_planned_in_its_unit() {
    let scenario = synthetic::quickstart();
    let (_dir, mut results) = stored(&scenario);
    let metric = scenario.experiment.workloads[0].metrics[0].clone();
    let cell = results.plan.cells[0].name.clone();
    let baseline = results.experiment.baseline;
    let plan = |results: &ResultSet| {
        let source = Source {
            results,
            setup_ns: 0,
        };
        Forecast::new(&results.experiment, &[source], &minutes(&[30]))
    };
    let of_metric = |forecast: &Forecast| {
        let mut rows = forecast.rows.iter();
        let row = rows.find(|row| row.cell == cell && row.metric == metric);
        row.cloned().unwrap()
    };
    let before = of_metric(&plan(&results));
    assert_eq!(before.unit, None);

    let mut of_cell = results.trials.iter_mut().filter(|t| t.trial.cell == cell);
    let of_baseline = of_cell.find(|t| t.trial.place.arm == baseline).unwrap();
    let mut metrics = of_baseline.trial.result.metrics.iter_mut();
    let zero = metrics.find(|m| m.metric == metric).unwrap();
    let (level, unit) = (zero.value, zero.unit.clone());
    zero.value = 0.0;
    let forecast = plan(&results);
    assert!(forecast.unknown.is_empty(), "{:?}", forecast.unknown);
    let row = of_metric(&forecast);
    assert_eq!(row.unit, Some(unit.clone()));
    // The one figure that is 0 makes the spread a good part of the level.
    assert!(row.spread > level / 100.0 && row.spread < level, "{row:?}");
    assert!(row.sees[0].expected.unwrap() > 0.0, "{row:?}");
    // A change in percent is none of a difference.
    assert_eq!(row.blocks, None);
    let text = forecast.to_text();
    let spread = crate::quantity::with_unit(row.spread, &unit);
    assert!(text.contains(&spread), "{spread}: {text}");
    assert!(
        text.contains("ratio, or the difference in its unit"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}
