use super::*;
use std::fs;

fn columns(arm: &str, cells: &[&str], metrics: &[&str]) -> Columns {
    Columns {
        arm: arm.to_owned(),
        cells: cells.iter().map(|cell| (*cell).to_owned()).collect(),
        metrics: metrics.iter().map(|m| Column::parse(m).unwrap()).collect(),
        thousands: None,
    }
}

fn of(text: &str, columns: &Columns) -> Result<Imported, ImportError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs.txt");
    fs::write(&path, text).unwrap();
    read(&[path], columns)
}

/// Arm, cell, and figures with their units.
type Figures = (String, String, Vec<(String, f64, String)>);

fn figures(text: &str, columns: &Columns) -> Vec<Figures> {
    let imported = of(text, columns).unwrap();
    assert_eq!(imported.faults, []);
    let figures = |run: &Run| {
        let metrics = run.metrics.iter();
        metrics
            .map(|m| (m.metric.clone(), m.value, m.unit.clone()))
            .collect()
    };
    let runs = imported.runs.iter();
    runs.map(|run| (run.arm.clone(), run.place.cell_name(), figures(run)))
        .collect()
}

fn faults(text: &str, columns: &Columns) -> Vec<String> {
    let faults = of(text, columns).unwrap().faults;
    let said = |fault: &ImportError| {
        let text = fault.to_string();
        let (_, place) = text.split_once("runs.txt").unwrap();
        format!("runs.txt{place}")
    };
    faults.iter().map(said).collect()
}

fn one(arm: &str, cell: &str, metric: &str, value: f64, unit: &str) -> Figures {
    (
        arm.to_owned(),
        cell.to_owned(),
        vec![(metric.to_owned(), value, unit.to_owned())],
    )
}

#[test]
fn a_row_of_csv_is_a_run_of_its_arm_and_cell() {
    let text = "exported by x\nkernel;bench;threads;P99 Latency\n6.1;wakeup;4;955us\n6.2;wakeup;4;1.03ms\n";
    let columns = columns("kernel", &["bench", "threads"], &["P99 Latency lower ms"]);
    let expected = [
        one("6.1", "wakeup 4", "p99_latency", 0.955, "ms"),
        one("6.2", "wakeup 4", "p99_latency", 1.03, "ms"),
    ];
    assert_eq!(figures(text, &columns), expected);
}

#[test]
fn objects_of_a_list_of_lines_and_of_an_object_are_runs() {
    let columns = columns("arm", &["data.cell"], &["ops higher"]);
    let expected = [
        one("a", "x", "ops", 5.0, "1/s"),
        one("b", "x", "ops", 1200.0, "1/s"),
    ];
    let (a, b) = (
        r#"{"arm": "a", "data": {"cell": "x"}, "ops": "5 ops/s"}"#,
        r#"{"arm": "b", "data": {"cell": "x"}, "ops": "1.2 kops/s"}"#,
    );
    for text in [
        format!("[{a},\n{b}]"),
        format!("{a}\n{b}\n"),
        format!("{{\"host\": \"h\", \"runs\": [{a}, {b}]}}"),
    ] {
        assert_eq!(figures(&text, &columns), expected, "{text}");
    }
    let error = of(&format!("{{\"x\": [{a}], \"y\": [{b}]}}"), &columns).unwrap_err();
    assert!(
        error.what.contains("2 lists") && error.remedy.contains("jq"),
        "{error}"
    );
}

#[test]
fn a_wrong_field_is_an_error_with_its_line_and_the_others_are_read() {
    let columns = columns("arm", &[], &["took lower"]);
    let text = "arm,took\na,3ms\nb,soon\n,4ms\nc,4\nd,5 MB/s\ne,0\n";
    let found = faults(text, &columns);
    assert_eq!(found.len(), 4, "{found:?}");
    for (fault, (place, why)) in found.iter().zip([
        ("runs.txt:3", "`soon` in the column `took`: it is no number"),
        ("runs.txt:4", "the column `arm` is empty"),
        ("runs.txt:5", "no unit"),
        ("runs.txt:6", "B/s"),
    ]) {
        assert!(fault.starts_with(place) && fault.contains(why), "{fault}");
    }
    let lines = "{\"arm\": \"a\", \"took\": 3}\n\n{\"arm\": \"b\"}\n";
    let error = of(lines, &columns).unwrap_err();
    assert_eq!(error.line, Some(3));
    assert!(error.what.contains("no `took`; it has: arm"), "{error}");
    let grouped = faults("arm,took\na,\"345,678\"\n", &columns);
    assert!(grouped[0].contains("345678 or 345.678"), "{grouped:?}");
}

#[test]
fn a_column_that_is_not_there_is_an_error_that_names_those_that_are() {
    let wrong = columns("kernel", &[], &["took lower"]);
    let error = of("arm,took\na,3\n", &wrong).unwrap_err();
    assert!(error.what.contains("`arm,took`"), "{error}");
    for text in ["arm,took\na,3\n", "[{\"arm\": 1, \"took\": 2}]"] {
        let error = of(text, &Columns::default()).unwrap_err();
        assert!(
            error.what.contains("arm") && error.what.contains("took"),
            "{error}"
        );
        assert!(error.remedy.contains("--metric"), "{error:?}");
    }
}

#[test]
fn a_metric_is_a_column_with_a_direction_and_perhaps_a_unit() {
    let column = Column::parse("latency_99%_us lower us").unwrap();
    assert_eq!(column.metric(), "latency_99_percent_us");
    assert_eq!(
        (column.better, column.unit.as_deref()),
        (Better::Lower, Some("us"))
    );
    assert_eq!(Column::parse("99th lower").unwrap().metric(), "figure_99th");
    for wrong in ["", "took", "lower", "took lower ms ms", "lower ms"] {
        let error = Column::parse(wrong).unwrap_err();
        assert!(error.contains("direction"), "{error}");
    }
}

#[test]
fn digits_of_a_number_of_json_are_in_no_groups_and_those_of_a_text_are() {
    let columns = Columns {
        thousands: Some(Thousands::Point),
        ..columns("kernel", &[], &["took lower ms"])
    };
    let text = r#"[{"kernel": "a", "took": 12.345}, {"kernel": "b", "took": "12.345"}, {"kernel": "c", "took": 1.5}]"#;
    let values = figures(text, &columns).into_iter().map(|(_, _, m)| m[0].1);
    assert_eq!(values.collect::<Vec<_>>(), [12.345, 12_345.0, 1.5]);
    let csv = figures("kernel;took\na;12.345\n", &columns);
    assert_eq!(csv[0].2[0].1, 12_345.0);
}
