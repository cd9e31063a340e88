use super::*;
use serde_json::json;
use testing::make_output;

mod outputs;

fn metric(keys: serde_json::Value) -> Result<OwnMetric, Invalid> {
    let mut written = json!({"name": "ops", "better": "higher"});
    let more = keys.as_object().cloned().unwrap();
    written.as_object_mut().unwrap().extend(more);
    let mut keys = Keys::new(written.as_object().cloned().unwrap());
    let metric = OwnMetric::read(&mut keys);
    match keys.into_fault() {
        Some(fault) => Err(fault),
        None => metric.check().map(|()| metric),
    }
}

fn value(keys: serde_json::Value, stdout: &str) -> Result<f64, String> {
    let metric = metric(keys).unwrap();
    metric.measure_output(&make_output(stdout)).map(|m| m.value)
}

/// Regular expression of all tests of `pick`.
fn picked(pick: &str, stdout: &str) -> Result<f64, String> {
    value(json!({"regex": "ops: (?<v>\\S+)", "pick": pick}), stdout)
}

#[test]
fn a_named_group_is_the_figure() {
    let found = value(
        json!({"regex": r"^bogo ops: (?<v>[\d.]+)$"}),
        "start\nbogo ops: 12.5\nend\n",
    );
    assert_eq!(found, Ok(12.5));
}

#[test]
fn a_figure_has_the_name_the_unit_and_the_direction_that_were_given() {
    let keys = json!({"regex": "(?<v>.+)", "unit": "MB/s", "better": "lower"});
    let measured = metric(keys)
        .unwrap()
        .measure_output(&make_output("7"))
        .unwrap();
    assert_eq!(
        (measured.metric.as_str(), measured.unit.as_str()),
        ("ops", "MB/s")
    );
    assert_eq!((measured.better, measured.value), (Better::Lower, 7.0));
}

#[test]
fn several_figures_are_picked_as_the_file_says() {
    let text = "ops: 1\nops: 2 ops: 6\n";
    for (pick, expected) in [
        ("first", 1.0),
        ("last", 6.0),
        ("min", 1.0),
        ("max", 6.0),
        ("sum", 9.0),
        ("mean", 3.0),
    ] {
        assert_eq!(picked(pick, text), Ok(expected), "{pick}");
    }
    let doubled = picked("only", text).unwrap_err();
    assert!(
        doubled.contains("3 times") && doubled.contains("line 2, `ops: 2 ops: 6`"),
        "{doubled}"
    );
}

#[test]
fn a_figure_that_is_missing_or_no_number_is_an_error_with_its_line() {
    let missing = picked("last", "made\nno figure\n").unwrap_err();
    assert!(missing.contains("the metric `ops`"), "{missing}");
    assert!(missing.contains("made | no figure"), "{missing}");
    assert!(picked("sum", "").unwrap_err().contains("which is empty"));
    for text in ["soon", "nan", "inf", "1,5", "1.2.3"] {
        let error = picked("only", &format!("x\nops: {text}\n")).unwrap_err();
        assert!(
            error.contains(&format!("line 2, `ops: {text}`")) && error.contains("no number"),
            "{error}"
        );
    }
    assert!(picked("max", "ops: 1\nops: -\n").is_err());
    let one_of_two = picked("mean", "ops: 1\nops: -\n").unwrap_err();
    assert!(one_of_two.contains("line 2"), "{one_of_two}");
}

#[test]
fn a_json_path_finds_numbers_also_where_they_are_texts() {
    let text = r#"{"jobs": [{"iops": 3}, {"iops": "4.5"}]}"#;
    assert_eq!(value(json!({"json": "$.jobs[0].iops"}), text), Ok(3.0));
    let all = json!({"json": "$.jobs[*].iops", "pick": "sum"});
    assert_eq!(value(all.clone(), text), Ok(7.5));
    // JSON lines are values one after the other.
    let lines = json!({"json": "$.iops", "pick": "last"});
    assert_eq!(
        value(lines.clone(), "{\"iops\": 1}\n{\"iops\": 2}\n"),
        Ok(2.0)
    );
    let garbage = value(lines, "{\"iops\": 1}\nSegmentation fault\n").unwrap_err();
    assert!(garbage.contains("no JSON"), "{garbage}");
    let no_number = value(json!({"json": "$.jobs"}), text).unwrap_err();
    assert!(
        no_number.contains("$['jobs']") && no_number.contains("no number"),
        "{no_number}"
    );
    assert!(value(json!({"json": "$.nowhere"}), text).is_err());
}

/// fio prints notes before its JSON, on standard output and into `--output` alike.
#[test]
fn notes_before_json_are_passed_over_and_said() {
    let json = "{\"iops\" : 2788.5, \"p99\" : {\n\"99.000000\" : 981000}}\n";
    for notes in [
        "fio: sprandom sets norandommap=1\n",
        "[info] starting\n\nfio: two\n",
        "[2026-11-27 10:00:00] go [1]\n",
        "",
    ] {
        let text = format!("{notes}{json}");
        assert_eq!(
            value(json!({"json": "$.iops"}), &text),
            Ok(2788.5),
            "{notes}"
        );
        let p99 = json!({"json": "$.p99['99.000000']"});
        assert_eq!(value(p99.clone(), &text), Ok(981_000.0), "{notes}");
        let said = metric(p99).unwrap().passed_over(&make_output(&text));
        let first = notes.lines().next();
        assert_eq!(said.is_some(), first.is_some());
        assert!(said.unwrap_or_default().contains(first.unwrap_or_default()));
    }
}

#[test]
fn what_is_no_json_is_quoted_and_nothing_inside_of_it_is_taken() {
    for (text, line) in [
        (
            "note\n{\"iops\": -nan,\n{\"iops\": 2}\n}",
            "at line 2 column",
        ),
        (
            "{\"iops\": 1}\nSegmentation fault\n",
            "`Segmentation fault`",
        ),
        ("[nan,\n{\"iops\": 2}]\n", "`[nan,`"),
        ("fio: no such file\n", "`fio: no such file`"),
    ] {
        let error = value(json!({"json": "$.iops"}), text).unwrap_err();
        assert!(
            error.contains("it is no JSON") && error.contains(line),
            "{error}"
        );
    }
}

#[test]
fn a_figure_that_is_in_the_other_stream_is_said_with_the_key_to_it() {
    for (from, other) in [("stdout", "stderr"), ("stderr", "stdout")] {
        for keys in [
            json!({"regex": "ops: (?<v>\\d+)", "from": from}),
            json!({"json": "$.ops", "from": from}),
        ] {
            let text = match keys.get("json") {
                Some(_) => "{\"ops\": 5}",
                None => "ops: 5",
            };
            let of = |stdout: &str, stderr: &str| {
                let mut output = make_output(stdout);
                output.stderr = stderr.to_owned();
                metric(keys.clone()).unwrap().measure_output(&output)
            };
            let output = match from {
                "stdout" => of("", text),
                _ => of(text, "loading"),
            };
            let error = output.unwrap_err();
            assert!(error.contains(&format!("from = \"{other}\"")), "{error}");
            let nowhere = of("x", "x").unwrap_err();
            assert!(!nowhere.contains("from ="), "{nowhere}");
        }
    }
}

#[test]
fn a_column_is_found_by_its_name() {
    let text = "case,ops, took\na,1,5\nb,2,6\n";
    assert_eq!(value(json!({"csv": "took", "pick": "mean"}), text), Ok(5.5));
    let error = value(json!({"csv": "tok", "pick": "sum"}), text).unwrap_err();
    assert!(error.contains("case,ops,took"), "{error}");
    let error = value(json!({"csv": "case", "pick": "last"}), text).unwrap_err();
    assert!(error.contains("line 3, `b,2,6`"), "{error}");
    assert!(value(json!({"csv": "ops"}), "ops\n").is_err(), "no rows");
    assert!(value(json!({"csv": "a", "pick": "sum"}), "a,a\n1,2\n").is_err());
    assert!(value(json!({"csv": "a", "pick": "sum"}), "a,b\n1\n").is_err());
}

#[test]
fn a_figure_comes_from_where_the_file_says() {
    let mut output = make_output("ops: 1");
    output.stderr = "ops: 2".to_owned();
    let of_file = |text: Result<&str, &str>| {
        let text = text.map(str::to_owned).map_err(str::to_owned);
        ("log".to_owned(), text)
    };
    output.files = [of_file(Ok("ops: 3"))].into();
    let from = |from: &str, output: &Output| {
        let keys = json!({"regex": "ops: (?<v>.+)", "from": from});
        metric(keys)
            .unwrap()
            .measure_output(output)
            .map(|m| m.value)
    };
    assert_eq!(from("stdout", &output), Ok(1.0));
    assert_eq!(from("stderr", &output), Ok(2.0));
    assert_eq!(from("log", &output), Ok(3.0));
    output.files = [of_file(Err("it is not there"))].into();
    assert!(from("log", &output).unwrap_err().contains("not there"));
}

#[test]
fn a_metric_that_no_trial_could_have_is_refused_by_its_key() {
    for (keys, key, what) in [
        (json!({"regex": "("}), "regex", "unclosed group"),
        (json!({"regex": "(.+)"}), "regex", "no named group"),
        (
            json!({"regex": "(?<a>.)(?<b>.)"}),
            "regex",
            "2 named groups",
        ),
        (json!({"json": "jobs"}), "json", "no JSONPath"),
        (json!({"csv": ""}), "csv", "a column has a name"),
        (json!({}), "", "one of `regex`, `json`, `csv` and `yaml`"),
        (
            json!({"csv": "a", "json": "$.a"}),
            "",
            "one of `regex`, `json`, `csv` and `yaml`",
        ),
        (json!({"csv": "a", "name": "Ops/s"}), "name", "no name"),
        (json!({"csv": "a", "unit": "per s"}), "unit", "no unit"),
        (
            json!({"csv": "a", "unit": "p99"}),
            "unit",
            "choice among figures",
        ),
        (
            json!({"csv": "a", "better": "neither"}),
            "better",
            "direction",
        ),
        (json!({"csv": "a", "from": ""}), "from", "no path"),
        (json!({"yaml": "a.b"}), "yaml", "no JSONPath"),
        (json!({"csv": "a", "after": "("}), "after", "unclosed group"),
        (json!({"csv": "a", "until": "("}), "until", "unclosed group"),
        (
            json!({"csv": "a", "where": {"b": []}}),
            "where",
            "`b` must say",
        ),
        (
            json!({"json": "$.a", "where": {"$": 1, "$[": 1}}),
            "where",
            "no JSONPath",
        ),
        (
            json!({"regex": "(?<v>.)", "where": {"b": 1}}),
            "where",
            "no columns",
        ),
        (json!({"csv": "a", "pick": "p100"}), "pick", "no choice"),
        (
            json!({"csv": "a", "thousands": ";"}),
            "thousands",
            "`;` separates no",
        ),
    ] {
        let fault = metric(keys.clone()).unwrap_err();
        assert_eq!(fault.key, key, "{keys}: {fault}");
        assert!(fault.what.contains(what), "{keys}: {fault}");
    }
}

#[test]
fn two_metrics_of_one_name_are_refused() {
    let ops = metric(json!({"csv": "a"})).unwrap();
    let fault = check_all(&[ops.clone(), ops]).unwrap_err();
    assert_eq!(fault.key, "metric.1.name");
}

#[test]
fn a_metric_is_read_again_as_it_was_stored() {
    for keys in [
        json!({"regex": "(?<v>.)", "from": "stderr", "pick": "sum"}),
        json!({"json": "$.a", "from": "{folder}/out.json"}),
        json!({"csv": "a"}),
        json!({"csv": "#2", "where": {"#1": "cpu"}, "pick": "p99.9", "thousands": ","}),
        json!({"yaml": "$.a", "after": "^---", "until": "^$"}),
    ] {
        let metric = metric(keys).unwrap();
        let stored = serde_json::to_string(&metric).unwrap();
        assert_eq!(serde_json::from_str::<OwnMetric>(&stored).unwrap(), metric);
    }
}

#[test]
fn figures_of_any_size_of_a_unit_are_in_the_declared_one() {
    let keys = json!({"regex": r"99%\s+(?<v>[\d.]+)", "unit": "ms"});
    assert_eq!(value(keys.clone(), "99%  955.00us"), Ok(0.955));
    assert_eq!(value(keys.clone(), "99%  1.03ms"), Ok(1.03));
    assert_eq!(value(keys, "99%  1.50m"), Ok(90_000.0));
    let both = json!({"regex": r"99%\s+(?<v>[\d.]+)", "unit": "ms", "pick": "max"});
    assert_eq!(value(both, "99%  955.00us\n99%  1.03ms"), Ok(1.03));
}

/// Value and unit of a metric that declares none.
fn undeclared(keys: serde_json::Value, stdout: &str) -> (f64, String) {
    let measured = metric(keys)
        .unwrap()
        .measure_output(&make_output(stdout))
        .unwrap();
    (measured.value, measured.unit)
}

#[test]
fn without_a_declared_unit_that_of_the_dimension_is_taken() {
    let found = |text: &str| undeclared(json!({"regex": r"rate: (?<v>[\d.]+)"}), text);
    assert_eq!(found("rate: 955us"), (955_000.0, "ns".to_owned()));
    assert_eq!(found("rate: 9.41 Gbits/sec"), (9.41e9, "bit/s".to_owned()));
    assert_eq!(found("rate: 12.3k"), (12_300.0, "count".to_owned()));
    assert_eq!(found("rate: 2KiB/s"), (2048.0, "B/s".to_owned()));
    assert_eq!(found("rate: 12 of 40"), (12.0, "count".to_owned()));
}

#[test]
fn a_group_of_the_expression_may_be_the_unit() {
    let keys = json!({"regex": r"(?<u>\w+): (?<v>[\d.]+)", "unit": "us"});
    assert_eq!(value(keys.clone(), "ms: 3"), Ok(3000.0));
    let error = value(keys, "fathoms: 3").unwrap_err();
    assert!(
        error.contains("`fathoms`") && error.contains("unit = \"us\""),
        "{error}"
    );
    let optional = json!({"regex": r"ops: (?<v>[\d.]+)(?<u>[kM])?"});
    assert_eq!(undeclared(optional, "ops: 7").0, 7.0);
}

#[test]
fn a_unit_that_is_not_known_or_not_always_there_is_an_error_with_its_lines() {
    let error = |text: &str| {
        let keys = json!({"regex": r"lat: (?<v>[\d.]+)", "pick": "mean"});
        value(keys, text).unwrap_err()
    };
    let unknown = error("lat: 3ms\nlat: 3fortnights");
    assert!(
        unknown.contains("`lat: 3fortnights`") && unknown.contains("`fortnights`"),
        "{unknown}"
    );
    let missing = error("lat: 955us\nlat: 1030");
    assert!(
        missing.contains("`lat: 955us`") && missing.contains("`lat: 1030`"),
        "{missing}"
    );
    let other = error("lat: 955us\nlat: 3MB/s");
    assert!(
        other.contains("`lat: 955us`") && other.contains("`lat: 3MB/s`"),
        "{other}"
    );
    let cut = value(json!({"regex": r"lat: (?<v>[\d.]+)"}), "lat: 1.5e3").unwrap_err();
    assert!(
        cut.contains("`e`"),
        "a figure that the expression cuts: {cut}"
    );
}

#[test]
fn a_zero_needs_no_unit() {
    let keys = json!({"regex": r"lat: (?<v>[\d.]+)", "unit": "ms", "pick": "sum"});
    assert_eq!(value(keys, "lat: 0\nlat: 500us\nlat: 0"), Ok(0.5));
}

#[test]
fn fields_of_tables_and_texts_in_json_have_their_units() {
    let text = "case,took\na,950us\nb,1.05ms\n";
    let keys = json!({"csv": "took", "pick": "mean", "unit": "us"});
    assert_eq!(value(keys, text), Ok(1000.0));
    let json = json!({"json": "$.p99", "unit": "us"});
    assert_eq!(value(json.clone(), r#"{"p99": "1.03ms"}"#), Ok(1030.0));
    assert_eq!(value(json.clone(), r#"{"p99": 955}"#), Ok(955.0));
    let wrong = value(json, r#"{"p99": "3 MB/s"}"#).unwrap_err();
    assert!(
        wrong.contains("`3 MB/s`") && wrong.contains("unit = \"us\""),
        "{wrong}"
    );
}

#[test]
fn a_word_that_the_expression_demands_is_no_unit_that_changes() {
    let keys = json!({"regex": r"(?<v>\d+)x faster"});
    assert_eq!(value(keys, "12x faster"), Ok(12.0));
    let declared = json!({"regex": r"at (?<v>\d+)", "unit": "rpm"});
    assert_eq!(value(declared, "at 900rpm"), Ok(900.0));
}

/// As netperf prints with `-o`: a banner, the names of the columns, and the row.
const BANNER: &str = "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 () port 0 AF_INET : 95%, \"x\n\
                      Throughput,Throughput Units,99th Percentile Latency Microseconds\n\
                      1405.50,Trans/s,841\n";

#[test]
fn a_table_is_found_below_lines_that_are_not_of_it() {
    assert_eq!(value(json!({"csv": "Throughput"}), BANNER), Ok(1405.5));
    let p99 = json!({"csv": "99th Percentile Latency Microseconds"});
    assert_eq!(value(p99, BANNER), Ok(841.0));
    let error = value(json!({"csv": "Rate"}), BANNER).unwrap_err();
    assert!(error.contains("no column is called `Rate`"), "{error}");
    assert!(error.contains("csv = \"#2\""), "{error}");
    // A field of a row is no name of a column.
    let rows = "case,took\nops,5\n7,6\n";
    assert!(value(json!({"csv": "ops", "pick": "sum"}), rows).is_err());
    let behind = value(json!({"csv": "a", "pick": "sum"}), "a,b\n1,2\ndone\n").unwrap_err();
    assert!(
        behind.contains("line 3, `done`") && behind.contains("of the table"),
        "{behind}"
    );
    let until = json!({"csv": "a", "pick": "sum", "until": "^done"});
    assert_eq!(value(until, "a,b\n1,2\ndone\n"), Ok(1.0));
}

#[test]
fn a_table_without_a_head_has_numbers_for_columns() {
    let text = "cpu,10,1.5ms\nio,20,2ms\n";
    assert_eq!(value(json!({"csv": "#2", "pick": "sum"}), text), Ok(30.0));
    let of_io = json!({"csv": "#3", "where": {"#1": "io"}, "unit": "us"});
    assert_eq!(value(of_io, text), Ok(2000.0));
    assert_eq!(
        value(json!({"csv": "#1", "pick": "last"}), "1;2\n3;4"),
        Ok(3.0)
    );
    let error = value(json!({"csv": "#4", "pick": "sum"}), text).unwrap_err();
    assert!(error.contains("has no column #4"), "{error}");
    let error = value(json!({"csv": "#1", "pick": "sum"}), "1,2\n3\n").unwrap_err();
    assert!(error.contains("line 2, `3`"), "{error}");
}

#[test]
fn rows_of_a_table_are_chosen_by_what_another_column_says() {
    let text = "stressor\tops\ncpu\t5198.2\nswitch\t90968.1\ncpu\t1\n";
    let of = |stressor: &str| json!({"csv": "ops", "where": {"stressor": stressor}});
    assert_eq!(value(of("switch"), text), Ok(90_968.1));
    let twice = value(of("cpu"), text).unwrap_err();
    assert!(
        twice.contains("where stressor = cpu is in") && twice.contains("2 times"),
        "{twice}"
    );
    let none = value(of("vm"), text).unwrap_err();
    assert!(none.contains("where stressor = vm is nowhere"), "{none}");
    let unknown = json!({"csv": "ops", "where": {"stresor": "cpu"}});
    assert!(value(unknown, text).unwrap_err().contains("`stresor`"));
}

#[test]
fn lines_of_json_are_chosen_by_a_key() {
    let text = "{\"metric\":\"vus\",\"type\":\"Point\",\"data\":{\"value\":3}}\n\
                {\"metric\":\"took\",\"type\":\"Metric\",\"data\":{\"value\":1}}\n\
                {\"metric\":\"took\",\"type\":\"Point\",\"data\":{\"value\":8,\"tags\":{\"status\":200}}}\n\
                {\"metric\":\"took\",\"type\":\"Point\",\"data\":{\"value\":9,\"tags\":{\"status\":500}}}\n";
    let keys =
        |rows: serde_json::Value| json!({"json": "$.data.value", "where": rows, "pick": "mean"});
    let took = json!({"metric": "took", "type": "Point"});
    assert_eq!(value(keys(took), text), Ok(8.5));
    let ok = json!({"metric": "took", "$.data.tags.status": 200});
    assert_eq!(value(keys(ok), text), Ok(8.0));
    assert!(
        value(keys(json!({"metric": "tok"})), text)
            .unwrap_err()
            .contains("nowhere")
    );
}

#[test]
fn a_path_finds_figures_in_yaml() {
    let text = "---\nsystem-info:\n      stress-ng-version: 0.17.06\nmetrics:\n    - stressor: cpu\n      \
                bogo-ops-per-second-real-time: 5198.200000\n    - stressor: switch\n      \
                bogo-ops-per-second-real-time: 90968.100000\n...\n";
    let of = |stressor: &str| {
        let path = "bogo-ops-per-second-real-time";
        json!({"yaml": format!("$.metrics[?@.stressor == '{stressor}']['{path}']")})
    };
    assert_eq!(value(of("cpu"), text), Ok(5198.2));
    assert_eq!(value(of("switch"), text), Ok(90_968.1));
    assert!(value(of("vm"), text).unwrap_err().contains("nowhere"));
    let documents = json!({"yaml": "$.p99", "where": {"name": "b"}, "unit": "us"});
    let text = "name: a\np99: 3ms\n---\nname: b\np99: 1.5ms\n";
    assert_eq!(value(documents, text), Ok(1500.0));
    assert!(
        value(json!({"yaml": "$.a"}), "a: [1")
            .unwrap_err()
            .contains("no YAML")
    );
}

#[test]
fn a_section_begins_behind_a_line() {
    let text = "Wakeup Latencies percentiles (usec)\n 99.0th: 12\n\
                Request Latencies percentiles (usec)\n 99.0th: 3412\n\
                RPS percentiles\n 99.0th: 77\n";
    let of = |after: &str| json!({"regex": r"99\.0th: (?<v>\d+)", "after": after, "until": "percentiles"});
    assert_eq!(value(of("^Wakeup"), text), Ok(12.0));
    assert_eq!(value(of("^Request"), text), Ok(3412.0));
    let error = value(of("^Latencies"), text).unwrap_err();
    assert!(
        error.contains("no line matches after = \"^Latencies\""),
        "{error}"
    );
    // Lines are counted in the whole text.
    let wrong = json!({"regex": "99.0th: (?<v>.*)", "after": "^Request", "pick": "mean"});
    let error = value(wrong, &text.replace("77", "-")).unwrap_err();
    assert!(error.contains("line 6"), "{error}");
    let json = json!({"json": "$.iops", "after": "^Result:"});
    assert_eq!(value(json, "note\nResult:\n{\"iops\": 7}\n"), Ok(7.0));
}

#[test]
fn digits_in_groups_are_one_number() {
    let keys = |thousands: serde_json::Value| {
        let mut keys = json!({"regex": r"(?<v>\S+)\s+cycles"});
        keys.as_object_mut()
            .unwrap()
            .extend(thousands.as_object().cloned().unwrap());
        keys
    };
    let sure = keys(json!({}));
    assert_eq!(
        value(sure.clone(), " 12,345,678      cycles"),
        Ok(12_345_678.0)
    );
    let unsure = value(sure, "345,678 cycles").unwrap_err();
    assert!(unsure.contains("345678 or 345.678"), "{unsure}");
    let comma = keys(json!({"thousands": ","}));
    assert_eq!(value(comma.clone(), "345,678 cycles"), Ok(345_678.0));
    assert!(value(comma, "3,5 cycles").is_err());
    let point = keys(json!({"thousands": "."}));
    assert_eq!(value(point, "345.678,5 cycles"), Ok(345_678.5));
}

#[test]
fn digits_of_a_number_of_json_or_yaml_are_in_no_groups() {
    for (text, sign, expected) in [
        (r#"{"v": 12.345}"#, ".", 12.345),
        (r#"{"v": 1.5}"#, ".", 1.5),
        (r#"{"v": 12345.678}"#, ",", 12_345.678),
        (r#"{"v": -2.125e3}"#, ".", -2125.0),
        // A text is as its program writes numbers.
        (r#"{"v": "12.345"}"#, ".", 12_345.0),
        (r#"{"v": "12,345 us"}"#, ",", 12_345_000.0),
    ] {
        let keys = json!({"json": "$.v", "thousands": sign});
        assert_eq!(value(keys, text), Ok(expected), "{text}");
    }
    let yaml = |text: &str| value(json!({"yaml": "$.v", "thousands": "."}), text);
    assert_eq!(yaml("v: 12.345\n"), Ok(12.345));
    assert_eq!(yaml("v: '12.345'\n"), Ok(12_345.0));
    assert_eq!(yaml("v: 12.345,5\n"), Ok(12_345.5));
}

#[test]
fn an_expression_that_takes_a_part_of_a_number_is_refused() {
    for (regex, text, whole) in [
        (r"cycles: (?<v>\d+)", "cycles: 12,345,678", "12,345,678"),
        (r"took.*(?<v>\d+) ms", "took 123 ms", "123"),
        (r"(?<v>\d+) ms", "took 12,345 ms", "12,345"),
        (
            r"(?<v>[\d.]+)\s+cycles",
            "12,345,678   cycles",
            "12,345,678",
        ),
        (r"(?<v>\d+) ms", "took 1.5 ms", "1.5"),
    ] {
        let error = value(json!({"regex": regex}), text).unwrap_err();
        assert!(error.contains(&format!("a part of `{whole}`")), "{error}");
    }
    let separated = json!({"regex": r"^\w+,(?<v>\d+),"});
    assert_eq!(value(separated, "a,12,345"), Ok(12.0));
    let decimals = json!({"regex": r"0\.(?<v>\d+)"});
    assert_eq!(value(decimals, "took 0.5"), Ok(5.0));
}

#[test]
fn a_percentile_of_many_figures_is_picked() {
    let text: String = (1..=200).map(|ms| format!("{ms}\n")).collect();
    let text = format!("frametime\n{text}");
    let keys = |pick: &str| json!({"csv": "frametime", "pick": pick, "unit": "ms"});
    assert_eq!(value(keys("p99"), &text), Ok(198.0));
    assert_eq!(value(keys("p1"), &text), Ok(2.0));
    let few = value(keys("p99.9"), &text).unwrap_err();
    assert!(
        few.contains("p99.9 needs 1000 figures") && few.contains("200"),
        "{few}"
    );
}
