//! The reports of synthetic results, held against what was once looked at.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use report::{FORMATS, Format, Options, Table};
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

fn report(scenario: &Scenario, format: &str) -> String {
    let (_dir, results) = stored(scenario);
    let table = Table::from_results(&results);
    rendered(format, &table, &results, &Options::default())
}

fn rendered(format: &str, table: &Table, results: &ResultSet, options: &Options) -> String {
    let format = Format::find_by_name(format).unwrap();
    format
        .render_report(table, results, options)
        .unwrap()
        .into_string()
}

#[test]
fn the_terminal_shows_the_answer_first() {
    insta::assert_snapshot!(report(&synthetic::quickstart(), "text"));
}

#[test]
fn an_arm_that_is_faster_and_thrown_out_is_both_in_the_head_and_in_a_section() {
    let (_dir, results) = stored(&synthetic::thrown_out());
    let table = Table::from_results(&results);
    let text = rendered("text", &table, &results, &Options::default());
    assert!(text.contains("batch is faster and worse: "), "{text}");
    assert!(text.contains("but thrown out"), "{text}");
    assert!(text.contains("default never was"), "{text}");
    for format in ["text", "markdown", "html", "json", "events"] {
        let page = rendered(format, &table, &results, &Options::default());
        assert!(page.contains("ejected"), "{format}: {page}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_terminal_shows_everything_when_asked() {
    insta::assert_snapshot!(text(&synthetic::quickstart(), everything(100)));
}

/// Two arms on two workloads in an emulated guest, with what such runs bring.
fn demo() -> Scenario {
    let mut scenario = synthetic::quickstart();
    let experiment = &mut scenario.experiment;
    experiment.arms.truncate(2);
    experiment.aa_arm = None;
    scenario.system.hypervisor = "tcg".to_owned();
    scenario.warnings.remove(0);
    scenario.plan.trials.retain(|t| t.arm < 2 && t.cell > 1);
    for (index, trial) in scenario.plan.trials.iter_mut().enumerate() {
        trial.index = index.try_into().unwrap();
        trial.cell -= 2;
    }
    scenario.plan.cells.drain(..2);
    scenario.experiment.workloads[0].loads.drain(..2);
    scenario.experiment.workloads[0].metrics = vec!["requests_per_sec".to_owned()];
    scenario.failed_attempts = scenario.plan.trials.iter().step_by(4).map(late).collect();
    scenario
}

fn late(trial: &model::PlannedTrial) -> (u32, model::TrialState) {
    let late = f64::from(trial.index + 1) * 7.125;
    let why = format!("the generator was late by {late}ms");
    (trial.index, model::TrialState::Void { why })
}

#[test]
fn a_run_of_two_arms_fits_a_screen_and_shows_what_is_worse_though_it_does_not_decide() {
    let text = text(&demo(), Options::default());
    let conclusion = text.split("SERIOUS").next().unwrap();
    assert!(conclusion.contains("batch is better: "), "{text}");
    assert!(
        conclusion.contains("worse in metrics that do not decide"),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn a_run_like_the_demo_is_at_most_forty_lines_of_eighty_columns() {
    let usual = Options {
        width: 80,
        ..Options::default()
    };
    for options in [usual, Options::default()] {
        let width = options.width;
        let text = text(&demo(), options);
        assert!(text.lines().count() <= 40, "{width} columns:\n{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
    }
}

fn text(scenario: &Scenario, options: Options) -> String {
    let (_dir, results) = stored(scenario);
    let table = Table::from_results(&results);
    rendered("text", &table, &results, &options)
}

fn everything(width: usize) -> Options {
    Options {
        full: true,
        width,
        ..Options::default()
    }
}

#[test]
fn one_arm_alone_is_summarised_and_not_compared() {
    insta::assert_snapshot!(report(&synthetic::one_arm(), "text"));
}

#[test]
fn one_block_has_no_interval_and_the_report_says_so() {
    insta::assert_snapshot!(report(&synthetic::few_blocks(1), "text"));
}

#[test]
fn markdown_has_the_verdict_table_and_the_warnings() {
    insta::assert_snapshot!(report(&synthetic::quickstart(), "markdown"));
}

#[test]
fn a_mailing_list_gets_what_fits_its_width() {
    let text = report(&synthetic::quickstart(), "lkml");
    assert!(text.lines().all(|line| line.chars().count() < 78));
    insta::assert_snapshot!(text);
}

#[test]
fn continuous_integration_sees_worse_as_a_failure() {
    let xml = report(&synthetic::quickstart(), "junit");
    assert_eq!(xml.matches("<failure").count(), 4);
    insta::assert_snapshot!(xml);
}

#[test]
fn every_latency_of_every_arm_has_a_distribution_for_the_plotter() {
    let (_dir, results) = stored(&synthetic::quickstart());
    let files = report::hgrm_files(&results);
    assert_eq!(files.len(), 3 * 4 * 2);
    assert_eq!(files[0].name, "wakeup-50%-request-default.hgrm");
}

#[test]
fn json_has_every_comparison() {
    insta::assert_snapshot!(report(&synthetic::one_arm(), "json"));
}

#[test]
fn json_has_the_shape_that_its_schema_promises() {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/report.schema.json");
    let schema: serde_json::Value =
        serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let scenarios = [
        synthetic::quickstart(),
        synthetic::one_arm(),
        synthetic::few_blocks(1),
        grid_of_rates(),
        synthetic::thrown_out(),
    ];
    for scenario in scenarios {
        let json = serde_json::from_str(&report(&scenario, "json")).unwrap();
        let errors: Vec<String> = schema
            .iter_errors(&json)
            .map(|e| format!("{}: {e}", e.instance_path))
            .collect();
        assert!(errors.is_empty(), "{errors:#?}");
        let mut broken: serde_json::Value = json;
        broken["comparisons"] = 7.into();
        assert!(!schema.is_valid(&broken));
    }
}

/// A scan over rates, and arms that make a grid.
fn grid_of_rates() -> Scenario {
    let mut scenario = synthetic::quickstart();
    for (index, cell) in scenario.plan.cells.iter_mut().enumerate() {
        cell.load = model::Load::RatePerSec(1_000.0 * (index + 1) as f64);
        cell.workload = 0;
    }
    scenario.experiment.workloads[0].metrics = vec!["request_p99".to_owned()];
    for (index, arm) in scenario.experiment.arms.iter_mut().enumerate().skip(1) {
        arm.grid = [("period".to_owned(), format!("{index}ms"))].into();
    }
    scenario
}

#[test]
fn csv_has_a_row_for_each_trial_and_metric() {
    let text = report(&synthetic::quickstart(), "csv");
    let lines: Vec<&str> = text.lines().take(20).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_report_made_twice_from_one_directory_is_the_same_to_the_byte() {
    let (_dir, results) = stored(&synthetic::quickstart());
    let again = ResultSet::read(&results.dir).unwrap();
    for format in FORMATS {
        let of = |results| {
            let table = Table::from_results(results);
            format
                .render_report(&table, results, &Options::default())
                .unwrap()
                .into_string()
        };
        assert!(of(&results) == of(&again), "{} differs", format.name);
    }
}

#[test]
fn no_line_of_the_terminal_report_is_wider_than_the_terminal() {
    for width in [60, 80, 100] {
        for full in [false, true] {
            let options = Options {
                full,
                ..everything(width)
            };
            let text = text(&synthetic::quickstart(), options);
            let widest = text
                .lines()
                .max_by_key(|line| line.chars().count())
                .unwrap();
            assert!(widest.chars().count() <= width, "{width}: {widest}");
            assert!(text.is_ascii());
        }
    }
}

#[test]
fn the_levels_of_a_row_differ_by_its_change() {
    let (_dir, results) = stored(&synthetic::quickstart());
    let table = Table::from_results(&results);
    let compared = table.all_comparisons().filter_map(|c| {
        let levels = c.arm_level? / c.baseline_level?;
        Some((levels, c.ratio?))
    });
    let compared: Vec<(f64, f64)> = compared.collect();
    assert!(compared.len() > 20);
    assert!(
        compared
            .iter()
            .all(|(levels, ratio)| (levels / ratio - 1.0).abs() < 1e-9)
    );
}

#[test]
fn colour_changes_nothing_but_the_colour() {
    let (_dir, results) = stored(&synthetic::quickstart());
    let table = Table::from_results(&results);
    let coloured = Options {
        color: true,
        ..Options::default()
    };
    let plain = rendered("text", &table, &results, &Options::default());
    let coloured = rendered("text", &table, &results, &coloured);
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

#[test]
fn the_page_needs_no_network_and_runs_no_script() {
    let page = report(&synthetic::quickstart(), "html");
    // Only the name of the SVG namespace, and references within the page.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    let page = page.replace("url(#", "");
    for part in ["<script", "src=", "@import", "url(", "<link", "http"] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn the_page_shows_serious_warnings_above_the_answer() {
    let page = report(&synthetic::quickstart(), "html");
    let warning = page.find("Other processes used 38 % of the CPUs");
    assert!(warning < page.find("id=\"answer\""));
    assert!(warning.is_some());
}

#[test]
fn the_page_draws_every_histogram_and_every_deciding_metric_of_a_cell() {
    let page = report(&synthetic::quickstart(), "html");
    assert_eq!(page.matches("wakeup latency by percentile").count(), 3);
    assert_eq!(page.matches("request latency by percentile").count(), 3);
    assert_eq!(page.matches("wakeup_p99, every block").count(), 3);
    assert_eq!(page.matches("hackbench_time, every block").count(), 1);
}

#[test]
fn the_page_has_an_overview_only_of_what_one_look_cannot_take_in() {
    let page = |scenario| report(&scenario, "html").contains("id=\"overview\"");
    assert!(page(synthetic::quickstart()));
    assert!(!page(demo()));
}

#[test]
fn the_page_says_what_a_cell_is_and_how_to_do_it_again() {
    let (_dir, results) = stored(&synthetic::quickstart());
    let source = "question = \"Is <batch> better?\"\n";
    std::fs::write(results.dir.join("experiment.toml"), source).unwrap();
    let table = Table::from_results(&results);
    let page = rendered("html", &table, &results, &Options::default());
    let setup = page.split("id=\"setup\"").nth(1).unwrap();
    for part in [
        "<td class=\"nowrap\">wakeup 200%</td><td>wakeup</td>",
        "<td>5s</td><td>1s</td>",
        "<code>schedlab run --like DIR</code>",
        "Is &#60;batch&#62; better?",
    ] {
        assert!(setup.contains(part), "{part} is not in {setup}");
    }
}

#[test]
fn the_page_says_what_the_host_gave_a_guest_under_each_arm() {
    let (_dir, mut results) = stored(&demo());
    let page = |results: &ResultSet| {
        let table = Table::from_results(results);
        rendered("html", &table, results, &Options::default())
    };
    assert!(
        !page(&results).contains("id=\"host\""),
        "no reading of a host"
    );
    let facts = &mut results.system.facts;
    facts.insert("vm.host_cpu".to_owned(), "Some <CPU>".to_owned());
    facts.insert("vm.host_cpus".to_owned(), "8".to_owned());
    for (index, stored) in results.trials.iter_mut().enumerate() {
        let of_host = |metric: &str, value: f64| model::Measurement {
            metric: metric.to_owned(),
            value,
            unit: "%".to_owned(),
            better: model::Better::Neither,
            own: None,
        };
        let waited = if index == 7 { 40.0 } else { 12.0 };
        let metrics = &mut stored.trial.result.metrics;
        metrics.push(of_host("host_vcpu_wait", waited));
        metrics.push(of_host("host_steal", 0.0));
    }
    assert!(results.trials[7].trial.is_ok());
    let page = page(&results);
    let setup = page.split("id=\"setup\"").nth(1).unwrap();
    for part in [
        "a host with 8 CPUs (Some &#60;CPU&#62;)",
        "12% (at most 40%)</td><td>0% (at most 0%)</td>",
        "12% (at most 12%)</td><td>0% (at most 0%)</td>",
    ] {
        assert!(setup.contains(part), "{part} is not in {setup}");
    }
}

#[test]
fn commands_of_a_warning_are_set_as_code() {
    let mut scenario = synthetic::quickstart();
    scenario.warnings[0].remedy = "run `echo <b>` ` once".to_owned();
    assert!(report(&scenario, "html").contains("run `echo &#60;b&#62;` ` once"));
    scenario.warnings[0].remedy = "run `echo <b>` once".to_owned();
    assert!(report(&scenario, "html").contains("run <code>echo &#60;b&#62;</code> once"));
}

#[test]
fn pictures_come_before_tables_and_what_does_not_follow_is_folded() {
    let page = report(&synthetic::quickstart(), "html");
    let folded = page.find("changed without following wakeup_p99</summary>");
    assert!(folded > page.find("every block against"), "{folded:?}");
    assert!(folded.is_some());
    assert!(page.contains("<details><summary class=\"quiet\">Each of them</summary>"));
}

#[test]
fn each_comparison_has_a_row_of_its_own() {
    let rows = report(&synthetic::quickstart(), "comparisons");
    let (_dir, results) = stored(&synthetic::quickstart());
    let all = Table::from_results(&results).all_comparisons().count();
    assert_eq!(rows.lines().count(), 1 + all);
    let row = rows.lines().find(|row| row.starts_with("hackbench 4,"));
    let row: Vec<&str> = row.unwrap().split(',').collect();
    assert_eq!(
        row[3..10],
        [
            "hackbench_time",
            "s",
            "lower",
            "default",
            "batch",
            "true",
            "false"
        ]
    );
    let number = |column: usize| row[column].parse::<f64>().unwrap();
    assert!((number(11) / number(10) - number(12)).abs() < 1e-9);
    assert_eq!([row[19], row[20], row[22]], ["better", "true", "11"]);
}

#[test]
fn text_from_an_experiment_cannot_become_markup() {
    let mut scenario = synthetic::one_arm();
    scenario.experiment.question = Some("<script>alert(1)</script> | *bold*".to_owned());
    let page = report(&scenario, "html");
    assert!(!page.contains("<script>"));
    let markdown = report(&scenario, "markdown");
    assert!(!markdown.contains("<script>") && !markdown.contains(" | *bold*"));
}
