//! `composite.xml` of the Phoronix Test Suite: for each result the entries of all systems, with
//! the figures of their runs joined by colons (`RawString`).

use crate::files::{file_text, parse_number};
use crate::{ImportError, Imported, Place, Run, make_figure};
use model::{Better, Load, Severity, Warning};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

const REMEDY: &str = "give composite.xml of ~/.phoronix-test-suite/test-results/NAME/";

/// Elements within elements beyond which no file of the suite goes.
const DEEPEST: usize = 40;

/// The texts of an element's children by their names, with lines.
type Fields = BTreeMap<String, (String, usize)>;

#[derive(Default)]
struct TestResult {
    fields: Fields,
    entries: Vec<Fields>,
    line: usize,
}

impl TestResult {
    fn get(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |(text, _)| text.trim())
    }

    /// True for what a monitor of the suite (`MONITOR=cpu.power`) or frame times add: each value is
    /// a list of readings with commas.
    fn is_series(&self) -> bool {
        let values = self.entries.iter().filter_map(|entry| entry.get("Value"));
        let mut values = values.map(|(text, _)| text.trim());
        let is_list = |text: &str| {
            let parts: Vec<&str> = text.split(',').map(str::trim).collect();
            parts.len() > 1
                && parts
                    .iter()
                    .all(|p| p.is_empty() || p.parse::<f64>().is_ok())
        };
        values.any(is_list)
    }

    /// False for what the suite notes about a test itself: how long it took to install, and how
    /// large it is, once for each time that it was installed.
    fn is_benchmark(&self) -> bool {
        let about_itself = ["test install time", "test install size"];
        !about_itself.contains(&self.get("Arguments"))
    }
}

#[derive(Default)]
struct Document {
    systems: Vec<Fields>,
    results: Vec<TestResult>,
}

/// Reads files, or directories with a `composite.xml`.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    let mut cells = Cells::default();
    for path in paths {
        let path = match path.is_dir() {
            true => path.join("composite.xml"),
            false => path.clone(),
        };
        let read =
            file_text(&path).and_then(|text| read_file(&path, &text, &mut imported, &mut cells));
        if let Err(fault) = read {
            imported.faults.push(fault);
        }
    }
    Ok(imported)
}

/// Reads the text of one file.
pub fn read_text(path: &Path, text: &str, imported: &mut Imported) -> Result<(), ImportError> {
    read_file(path, text, imported, &mut Cells::default())
}

fn read_file(
    path: &Path,
    text: &str,
    imported: &mut Imported,
    cells: &mut Cells,
) -> Result<(), ImportError> {
    let document = parse(path, text)?;
    if document.results.is_empty() {
        return Err(ImportError::in_file(
            path,
            "there is no <Result> in it",
            REMEDY,
        ));
    }
    for system in &document.systems {
        let get = |name: &str| system.get(name).map(|(text, _)| text.trim().to_owned());
        let Some(name) = get("Identifier").filter(|name| !name.is_empty()) else {
            continue;
        };
        let facts = [
            ("Hardware", "hardware"),
            ("Software", "software"),
            ("TimeStamp", "time"),
        ];
        let facts = facts
            .into_iter()
            .filter_map(|(element, fact)| Some((fact.to_owned(), get(element)?)));
        imported.ensure_arm(&name).learn_facts(path, facts)?;
    }
    let mut series = Vec::new();
    for result in document
        .results
        .iter()
        .filter(|result| result.is_benchmark())
    {
        if result.is_series() {
            series.push(cells.place(result).cell_name());
            continue;
        }
        let found = result_runs(path, result, cells, imported);
        if let Err(fault) = found {
            imported.faults.push(fault);
        }
    }
    imported.warnings.extend(left_out(path, &series));
    Ok(())
}

/// Note about results that are series of readings over time.
fn left_out(path: &Path, series: &[String]) -> Option<Warning> {
    (!series.is_empty()).then(|| Warning {
        severity: Severity::Note,
        what: format!(
            "Left out of {}: readings over time, which are no figure of a run: {}.",
            path.display(),
            series.join("; ")
        ),
        remedy: String::new(),
    })
}

fn result_runs(
    path: &Path,
    result: &TestResult,
    cells: &mut Cells,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let better = match result.get("Proportion") {
        "HIB" => Better::Higher,
        "LIB" => Better::Lower,
        // Graphs over time and pictures say neither.
        _ => return Ok(()),
    };
    let place = cells.place(result);
    let mut seen = HashSet::new();
    for entry in &result.entries {
        let get = |name: &str| {
            entry
                .get(name)
                .map_or(("", result.line), |(t, l)| (t.trim(), *l))
        };
        let (arm, line) = get("Identifier");
        let arm = if arm.is_empty() { "unnamed" } else { arm };
        if !seen.insert(arm.to_owned()) {
            return Err(ImportError::in_line(
                path,
                line,
                format!("`{arm}` is in this result twice: the file mixes two runs of one name"),
                "rename one of them with phoronix-test-suite rename-identifier-in-result-file",
            ));
        }
        let figures = figures(path, get("RawString"), get("Value"))?;
        imported.ensure_arm(arm);
        if figures.len() < 2 {
            imported
                .warnings
                .push(few(&place.cell_name(), arm, figures.len()));
        }
        let unit = unit(result.get("Scale"));
        imported.runs.extend(figures.into_iter().map(|value| Run {
            metrics: vec![make_figure("result", &unit, better, value)],
            ..Run::new(arm, place.clone(), format!("{}:{line}", path.display()))
        }));
    }
    Ok(())
}

fn few(cell: &str, arm: &str, figures: usize) -> Warning {
    let what = match figures {
        0 => format!("{arm} has no figure in {cell}: the test failed there."),
        _ => format!("{arm} has one figure in {cell}, so its spread is not known."),
    };
    Warning {
        severity: Severity::Caution,
        what,
        remedy: String::new(),
    }
}

/// Names of the cells of all files. One test of two files is one cell: the arms of a comparison
/// are often in files of their own.
#[derive(Default)]
struct Cells {
    /// By what makes a test another one: its words, its arguments and its program's version.
    names: HashMap<[String; 3], String>,
}

impl Cells {
    fn place(&mut self, result: &TestResult) -> Place {
        let title = result.get("Title");
        let benchmark = match title {
            "" => "untitled",
            title => title,
        };
        let words = match result.get("Description") {
            "" => benchmark.to_owned(),
            description => format!("{benchmark}, {description}"),
        };
        let more = ["Arguments", "AppVersion"].map(|name| result.get(name).to_owned());
        let [arguments, version] = more;
        let alike = self.names.keys().filter(|[other, ..]| *other == words);
        // The same test with another argument may have the same words.
        let name = match alike.count() {
            0 => words.clone(),
            others => format!("{words} ({})", others + 1),
        };
        let key = [words, arguments, version];
        Place {
            workload: self.names.entry(key).or_insert(name).clone(),
            benchmark: benchmark.to_owned(),
            load: Load::One,
            load_name: String::new(),
        }
    }
}

fn unit(scale: &str) -> String {
    match scale {
        "Seconds" => "s",
        "Milliseconds" | "ms" => "ms",
        "Microseconds" | "us" => "us",
        "Nanoseconds" | "ns" => "ns",
        scale => scale,
    }
    .to_owned()
}

fn figures(
    path: &Path,
    (raw, raw_line): (&str, usize),
    (value, value_line): (&str, usize),
) -> Result<Vec<f64>, ImportError> {
    let (text, line) = match raw {
        "" => (value, value_line),
        raw => (raw, raw_line),
    };
    let figures = text
        .split(':')
        .map(str::trim)
        .filter(|figure| !figure.is_empty());
    figures
        .map(|figure| {
            parse_number(figure).ok_or_else(|| {
                let what = format!("`{figure}` is no number");
                let remedy = "correct the figure, or leave its result out with --skip-bad";
                ImportError::in_line(path, line, what, remedy)
            })
        })
        .collect()
}

/// The lines of a text by the positions of their bytes.
struct Lines<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line of a position, which does not go back.
    fn of(&mut self, position: u64) -> usize {
        let position = usize::try_from(position)
            .unwrap_or(usize::MAX)
            .min(self.text.len());
        if position > self.at {
            let bytes = &self.text.as_bytes()[self.at..position];
            self.line += bytes.iter().filter(|byte| **byte == b'\n').count();
            self.at = position;
        }
        self.line
    }
}

fn parse(path: &Path, text: &str) -> Result<Document, ImportError> {
    let mut reader = Reader::from_str(text);
    let mut lines = Lines {
        text,
        at: 0,
        line: 1,
    };
    let mut document = Document::default();
    let mut open: Vec<String> = Vec::new();
    let mut said = String::new();
    loop {
        let event = reader.read_event();
        let line = lines.of(reader.buffer_position());
        let wrong = |what: String| ImportError::in_line(path, line, what, REMEDY);
        match event.map_err(|e| wrong(format!("not valid XML: {e}")))? {
            Event::Start(start) => {
                let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
                if open.is_empty() && name != "PhoronixTestSuite" {
                    return Err(wrong(format!(
                        "the file is <{name}>, not <PhoronixTestSuite>"
                    )));
                }
                open.push(name);
                if open.len() > DEEPEST {
                    return Err(wrong("the elements are nested too deep".to_owned()));
                }
                said.clear();
                begin(&mut document, &open, line);
            }
            Event::Text(text) => said.push_str(&text.decode().map_err(|e| wrong(e.to_string()))?),
            Event::CData(text) => said.push_str(&text.decode().map_err(|e| wrong(e.to_string()))?),
            Event::GeneralRef(entity) => said.push(character(&entity)),
            Event::End(_) => {
                end(&mut document, &open, &said, line);
                said.clear();
                open.pop();
            }
            Event::Eof if open.is_empty() => return Ok(document),
            Event::Eof => return Err(wrong("the file ends too early: is it whole?".to_owned())),
            _ => {}
        }
    }
}

/// The character of `&amp;` or `&#38;`.
fn character(entity: &quick_xml::events::BytesRef) -> char {
    if let Ok(Some(character)) = entity.resolve_char_ref() {
        return character;
    }
    match entity.decode().as_deref() {
        Ok("lt") => '<',
        Ok("gt") => '>',
        Ok("amp") => '&',
        Ok("quot") => '"',
        Ok("apos") => '\'',
        _ => '?',
    }
}

fn begin(document: &mut Document, open: &[String], line: usize) {
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    match open.as_slice() {
        [_, "System"] => document.systems.push(Fields::new()),
        [_, "Result"] => document.results.push(TestResult {
            line,
            ..TestResult::default()
        }),
        [_, "Result", "Data", "Entry"] => {
            if let Some(result) = document.results.last_mut() {
                result.entries.push(Fields::new());
            }
        }
        _ => {}
    }
}

fn end(document: &mut Document, open: &[String], said: &str, line: usize) {
    let open: Vec<&str> = open.iter().map(String::as_str).collect();
    let (fields, name) = match open.as_slice() {
        [_, "System", name] => (document.systems.last_mut(), *name),
        [_, "Result", name] => (document.results.last_mut().map(|r| &mut r.fields), *name),
        [_, "Result", "Data", "Entry", name] => {
            let result = document.results.last_mut();
            (result.and_then(|r| r.entries.last_mut()), *name)
        }
        _ => return,
    };
    if let Some(fields) = fields {
        fields.insert(name.to_owned(), (said.to_owned(), line));
    }
}
