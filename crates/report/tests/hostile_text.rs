//! Text that strangers put into results reaches people as text: no terminal obeys it, no
//! line is forged, and nothing of it becomes a link, an image, a mention or a formula.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use comrak::nodes::NodeValue;
use model::printable::is_hidden;
use model::{Severity, TrialState, Warning};
use report::compare::{Side, side_by_side};
use report::forecast::{Forecast, Question, Source};
use report::{Format, Options, Table};
use results::ResultSet;

/// Clipboard, title, C1, a bidirectional override, a line of one's own, and Markdown.
const EVIL: &str = "\u{1b}]52;c;eA==\u{7}\u{1b}]0;t\u{7}\u{9b}2J\u{202e}\r\nFORGED: better\n\
                    ```\n# FORGED\n[l](http://evil.example/) ![i](http://evil.example/i.png) \
                    <b>x</b> @torvalds www.evil.example https://evil.example &amp; | $x$ a@b.cc";

fn spoil(text: &mut String) {
    text.push_str(EVIL);
}

/// Synthetic results with such text wherever there is any.
fn hostile() -> ResultSet {
    let dir = tempfile::tempdir().unwrap();
    synthetic::write(dir.path(), &synthetic::quickstart()).unwrap();
    let mut results = ResultSet::read(dir.path()).unwrap();
    for text in [
        &mut results.manifest.tool_version,
        &mut results.manifest.tool_commit,
        &mut results.manifest.created,
        &mut results.experiment.name,
        &mut results.system.kernel_release,
        &mut results.system.cpu_model,
        &mut results.system.hypervisor,
        &mut results.system.hostname,
    ] {
        spoil(text);
    }
    results.experiment.question = Some(format!("Is it?{EVIL}"));
    results.experiment.aa_arm.iter_mut().for_each(spoil);
    for arm in &mut results.experiment.arms {
        spoil(&mut arm.name);
        arm.tunables.insert(format!("t{EVIL}"), EVIL.to_owned());
    }
    for workload in &mut results.experiment.workloads {
        spoil(&mut workload.name);
        workload.metrics.iter_mut().for_each(spoil);
    }
    results
        .plan
        .cells
        .iter_mut()
        .for_each(|cell| spoil(&mut cell.name));
    let warning = Warning {
        severity: Severity::Serious,
        what: format!("w{EVIL}"),
        remedy: format!("r{EVIL}"),
    };
    results.manifest.warnings.push(warning.clone());
    results.strays.push(EVIL.to_owned());
    for stored in &mut results.trials {
        let trial = &mut stored.trial;
        spoil(&mut trial.cell);
        spoil(&mut trial.arm);
        trial.result.warnings.push(warning.clone());
        match &mut trial.result.state {
            TrialState::Void { why } | TrialState::Failed { why } => why.insert_str(0, EVIL),
            TrialState::Ok => {}
        }
        for measured in &mut trial.result.metrics {
            spoil(&mut measured.metric);
        }
        let evidence = &mut trial.result.evidence;
        let at_points = evidence.points.iter_mut().flat_map(|p| &mut p.facts);
        for fact in evidence.facts.iter_mut().chain(at_points) {
            spoil(&mut fact.what);
            spoil(&mut fact.found);
        }
    }
    results
}

fn rendered(format: &str) -> String {
    let results = hostile();
    let table = Table::from_results(&results);
    let options = Options {
        full: true,
        ..Options::default()
    };
    let format = Format::find_by_name(format).unwrap();
    format
        .render_report(&table, &results, &options)
        .unwrap()
        .into_string()
}

#[track_caller]
fn is_plain(text: &str) {
    let hidden = text.chars().find(|c| is_hidden(*c) && *c != '\n');
    assert_eq!(hidden, None, "{text}");
    let forged = text.lines().find(|line| line.trim() == "FORGED: better");
    assert_eq!(forged, None, "{text}");
}

#[test]
fn no_terminal_obeys_a_report() {
    for format in ["text", "lkml"] {
        let text = rendered(format);
        is_plain(&text);
        assert!(
            text.contains("\\u{1b}]52;c;"),
            "it is shown instead: {text}"
        );
    }
}

#[test]
fn no_terminal_obeys_a_comparison_or_a_forecast() {
    let (a, b) = (hostile(), hostile());
    let side = |label, results| Side { label, results };
    is_plain(&side_by_side(side(EVIL, &a), side("b", &b), true).to_text(100));
    let question = Question {
        times_ns: vec![60_000_000_000],
        effect: Some(0.03),
    };
    let source = Source {
        results: &a,
        setup_ns: 0,
    };
    is_plain(&Forecast::new(&a.experiment, &[source], &question).to_text());
}

/// The markup that a report has by itself: lines that are shown when somebody asks for them.
const FOLDS: [&[&str]; 2] = [
    &[
        "<details>",
        "<summary>Metrics that do not decide, and what else moved</summary>",
    ],
    &["</details>"],
];

#[test]
fn markdown_has_no_link_image_or_markup_of_a_stranger() {
    let text = rendered("markdown");
    is_plain(&text);
    let arena = comrak::Arena::new();
    let mut options = comrak::Options::default();
    options.extension.table = true;
    options.extension.autolink = true;
    options.extension.strikethrough = true;
    options.extension.tasklist = true;
    options.extension.math_dollars = true;
    let root = comrak::parse_document(&arena, &text, &options);
    let mut headings = 0;
    for node in root.descendants() {
        match &node.data.borrow().value {
            NodeValue::Heading(_) => headings += 1,
            // What is mentioned is found in the text of paragraphs.
            NodeValue::Text(text) => assert!(!text.contains('@'), "{text}"),
            NodeValue::HtmlBlock(html) => {
                let lines: Vec<&str> = html.literal.lines().collect();
                assert!(FOLDS.contains(&lines.as_slice()), "{lines:?}");
            }
            value => assert!(
                !matches!(
                    value,
                    NodeValue::Link(_)
                        | NodeValue::Image(_)
                        | NodeValue::HtmlInline(_)
                        | NodeValue::Math(_)
                ),
                "{value:?}"
            ),
        }
    }
    assert_eq!(headings, 1, "{text}");
}

#[test]
fn a_spreadsheet_calculates_nothing() {
    let mut results = hostile();
    for stored in &mut results.trials {
        stored.trial.arm = "=cmd|' /C calc'!A0".to_owned();
        stored.trial.cell = "@SUM(1+1)".to_owned();
    }
    let table = Table::from_results(&results);
    let csv = Format::find_by_name("csv").unwrap();
    let text = csv
        .render_report(&table, &results, &Options::default())
        .unwrap()
        .into_string();
    assert!(text.contains("'=cmd|") && text.contains("'@SUM("));
    let mut fields = 0;
    for record in csv::Reader::from_reader(text.as_bytes()).records() {
        for field in &record.unwrap() {
            fields += 1;
            let number = field == "-" || field.parse::<f64>().is_ok();
            assert!(
                number || !field.starts_with(['=', '+', '-', '@']),
                "{field}"
            );
            assert!(!field.contains(|c| is_hidden(c) && c != '\n'), "{field}");
        }
    }
    assert!(fields > 1000);
}

#[test]
fn programs_get_the_text_as_it_is() {
    let json: serde_json::Value = serde_json::from_str(&rendered("json")).unwrap();
    let name = json["experiment"]["name"].as_str().unwrap();
    assert!(name.ends_with(EVIL));
}
