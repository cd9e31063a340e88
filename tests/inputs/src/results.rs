//! Results directories: what is read can be reported in any format, compared, forecast and
//! verified, whatever the files say.
//!
//! The stored results of format 1.0, cut to two blocks, are changed and read. The first
//! byte of an input chooses how: `F`, then a byte for the file, and the rest is its content;
//! `E`, then edits of five bytes each: a file, a place in it, a value, what becomes of it.

use model::printable::is_hidden;
use report::compare::{Side, side_by_side};
use report::forecast::{Forecast, Question, Source};
use report::recommend;
use report::{FORMATS, Format, Options, Table, verify};
use results::ResultSet;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A results directory.
pub fn results(input: &[u8]) {
    thread_local! {
        static BASE: RefCell<Base> = RefCell::new(Base::new());
    }
    BASE.with_borrow_mut(|base| {
        match input.split_first() {
            Some((b'F', [file, content @ ..])) => base.replace(usize::from(*file), content),
            Some((_, edits)) => base.edit(edits),
            None => {}
        }
        if let Ok(results) = ResultSet::read(base.dir.path()) {
            let sum: usize = input.iter().map(|byte| usize::from(*byte)).sum();
            is_used(&results, sum);
        }
        base.restore();
    });
}

/// One of all uses, for all of them would take a hundred times as long as reading.
fn is_used(results: &ResultSet, choice: usize) {
    let table = Table::from_results(results);
    let others = [histograms, compared, forecast, resumed, recommended];
    match FORMATS.get(choice % (FORMATS.len() + others.len())) {
        Some(format) => reported(format, &table, results),
        None => others[choice % others.len()](results),
    }
}

fn reported(format: &Format, table: &Table, results: &ResultSet) {
    let options = Options {
        full: true,
        ..Options::default()
    };
    let text = format.render_report(table, results, &options);
    let text = text.expect("every table can be rendered").into_string();
    is_plain(&text.replace('\t', ""));
    if format.name == "json" {
        let verified = verify::verify_report(results, &text).expect("it is JSON");
        assert_eq!(verified.differences, [], "it agrees with itself");
    }
}

fn histograms(results: &ResultSet) {
    report::hgrm_files(results);
    verify::verify_histograms(results, &|_, _, _| Some("wakeup"));
}

fn compared(results: &ResultSet) {
    let side = |label| Side { label, results };
    is_plain(&side_by_side(side("a"), side("b"), true).to_text(100));
}

fn recommended(results: &ResultSet) {
    let label = "a";
    let source = recommend::Source { label, results };
    if let Ok(found) = recommend::recommend_arm(&[source], &recommend::Mix::default(), None) {
        is_plain(&found.to_text(100));
        is_plain(&found.to_markdown());
    }
}

fn forecast(results: &ResultSet) {
    let source = Source {
        results,
        setup_ns: u64::MAX,
    };
    let question = Question {
        times_ns: vec![1, u64::MAX],
        effect: Some(0.01),
    };
    is_plain(&Forecast::new(&results.experiment, &[source, source], &question).to_text());
}

/// The checks of `run --resume`.
fn resumed(results: &ResultSet) {
    let trials: Vec<_> = results.trials.iter().map(|s| s.trial.clone()).collect();
    runner::find_unexplained(
        &results.experiment,
        &results.plan,
        &trials,
        results.manifest.together,
    );
}

fn is_plain(text: &str) {
    let hidden = text.chars().find(|c| is_hidden(*c) && *c != '\n');
    assert_eq!(hidden, None, "{text}");
}

/// In memory, where there is such a directory.
pub fn fast_directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary directory")
}

struct Base {
    dir: TempDir,
    files: Vec<File>,
    /// Those that are not what they were.
    changed: Vec<usize>,
}

struct File {
    path: PathBuf,
    content: Vec<u8>,
    /// The places of all values of JSON.
    json: Option<(Value, Vec<String>)>,
}

impl Base {
    fn new() -> Base {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/results-1.0");
        let mut base = Base {
            dir: fast_directory(),
            files: Vec::new(),
            changed: Vec::new(),
        };
        base.copy(&fixture, PathBuf::new());
        base.files.sort_by(|a, b| a.path.cmp(&b.path));
        base.changed = (0..base.files.len()).collect();
        base.restore();
        ResultSet::read(base.dir.path()).expect("unchanged, it is right");
        base
    }

    fn copy(&mut self, from: &Path, relative: PathBuf) {
        let place = self.dir.path().join(&relative);
        fs::create_dir_all(place).expect("room for it");
        for entry in fs::read_dir(from).expect("the fixture") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_owned();
            let later = ["-b3-", "-b4-", "-b5-", "-b6-"];
            if later
                .iter()
                .any(|block| name.to_string_lossy().contains(block))
            {
                continue;
            }
            match path.is_dir() {
                true => self.copy(&path, relative.join(name)),
                false => self.files.push(File::read(&path, relative.join(name))),
            }
        }
    }

    fn restore(&mut self) {
        for index in std::mem::take(&mut self.changed) {
            let file = &self.files[index];
            self.write(index, &file.content);
        }
    }

    fn write(&self, index: usize, content: &[u8]) {
        let path = self.dir.path().join(&self.files[index].path);
        fs::write(path, content).expect("room for it");
    }

    fn replace(&mut self, file: usize, content: &[u8]) {
        let index = file % self.files.len();
        self.changed.push(index);
        self.write(index, content);
    }

    fn edit(&mut self, edits: &[u8]) {
        for edit in edits.as_chunks::<5>().0.iter().take(16) {
            let [file, high, low, value, way] = *edit;
            let index = usize::from(file) % self.files.len();
            let Some((json, places)) = &self.files[index].json else {
                continue;
            };
            let place = &places[usize::from(u16::from_be_bytes([high, low])) % places.len()];
            let mut json = match self.changed.contains(&index) {
                false => json.clone(),
                true => self.read(index),
            };
            change(&mut json, place, value, way);
            self.changed.push(index);
            self.write(index, json.to_string().as_bytes());
        }
    }

    fn read(&self, index: usize) -> Value {
        let path = self.dir.path().join(&self.files[index].path);
        let text = fs::read(path).expect("it was written");
        serde_json::from_slice(&text).unwrap_or_default()
    }
}

impl File {
    fn read(from: &Path, path: PathBuf) -> File {
        let content = fs::read(from).expect("the fixture");
        let json = serde_json::from_slice(&content).ok().map(|json: Value| {
            let mut places = Vec::new();
            places_of(&json, String::new(), &mut places);
            (json, places)
        });
        File {
            path,
            content,
            json,
        }
    }
}

fn places_of(json: &Value, place: String, places: &mut Vec<String>) {
    match json {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                places_of(value, format!("{place}/{key}"), places);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                places_of(value, format!("{place}/{index}"), places);
            }
        }
        _ => {}
    }
    places.push(place);
}

fn change(json: &mut Value, place: &str, value: u8, way: u8) {
    let (above, key) = place.rsplit_once('/').unwrap_or_default();
    let other = json.pointer(above).cloned().unwrap_or_default();
    match json.pointer_mut(above) {
        Some(Value::Object(fields)) if way == 1 => drop(fields.remove(key)),
        Some(Value::Array(values)) if way <= 2 => {
            let index = key.parse().unwrap_or(0);
            match values.get(index).cloned() {
                Some(same) if way == 2 => values.push(same),
                Some(_) => drop(values.remove(index)),
                None => {}
            }
        }
        Some(above) if way == 3 => *above = wrong(value),
        _ => {
            if let Some(found) = json.pointer_mut(place) {
                *found = match way {
                    4 => other,
                    _ => nudged(found, value),
                };
            }
        }
    }
}

/// A value near to what it was, or one of those that are often wrong.
fn nudged(found: &Value, value: u8) -> Value {
    match (found, value) {
        (Value::Number(number), 0..64) => {
            let number = number.as_f64().unwrap_or(0.0);
            json!(number + f64::from(value) - 32.0)
        }
        (Value::Number(number), 64..128) => {
            let number = number.as_i64().unwrap_or(0);
            json!(number.wrapping_add(i64::from(value) - 96))
        }
        (Value::String(text), 0..64) => json!(format!("{text}\u{1b}]0;x\u{7}\n{value}")),
        _ => wrong(value),
    }
}

fn wrong(value: u8) -> Value {
    let values = [
        json!(null),
        json!(0),
        json!(1),
        json!(-1),
        json!(99),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(u64::from(u32::MAX)),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(0.5),
        json!(-0.0),
        json!(""),
        json!("x"),
        json!("a\nb\u{202e}"),
        json!("-1"),
        json!(true),
        json!([]),
        json!({}),
        json!([[]]),
    ];
    values[usize::from(value) % values.len()].clone()
}
