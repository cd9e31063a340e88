//! Sixty nights of real runs in a history. A step of 3, 5 or 10 % is planted at a known night, or nothing; the
//! machine becomes slower for a while, or a week is missing. Each night is added and looked at as it comes, and
//! then each alarm is measured again, as `schedlab service --confirm` does.
//!
//! ```text
//! cargo run --release -p nights -- target/schedlab [--nights 60] [--keep DIR]
//! ```
//! A night is three processes of `wakeup` in which both arms take turns. The arm `next` does 1 % more work than
//! its baseline, and from the step on that much more. Nights without a change are shared by all courses.
//! `DIR/courses.jsonl` has the ratios, for `simulation --courses`, which looks for changes in them by other ways too.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use clap::Parser;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Real nights, what a history says of them, and whether that holds.
#[derive(Debug, Parser)]
struct Arguments {
    /// The program.
    program: PathBuf,
    /// Nights of a course.
    #[arg(long, default_value_t = 60)]
    nights: usize,
    /// Directory that keeps results, histories and the ratios of each course; nights that are there are not measured again.
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// Work that `next` does beside its baseline, in percent, before anything changes.
const USUAL: u32 = 1;
const STEPS: [u32; 3] = [3, 5, 10];
/// File of the ratios.
const COURSES: &str = "courses.jsonl";
/// Blocks of a measurement that confirms.
const MOST_BLOCKS: &str = "24";
/// The first of all nights.
const BEGIN: &str = "2026-01-01T01:30:00Z";

/// One night: its results, and the day on which it was.
#[derive(Clone, Debug)]
struct Night {
    results: PathBuf,
    day: usize,
}

struct Lab {
    program: PathBuf,
    dir: PathBuf,
    runs: usize,
}

fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let temporary = tempfile::tempdir()?;
    let dir = arguments
        .keep
        .unwrap_or_else(|| temporary.path().join("nights"));
    fs::create_dir_all(&dir)?;
    let mut lab = Lab {
        program: fs::canonicalize(&arguments.program)?,
        dir,
        runs: 0,
    };
    lab.forget_courses()?;
    let nights = arguments.nights;
    let half = nights / 2;
    let before = lab.measure_nights(nights, USUAL)?;
    let mut slower = before.clone();
    let third = nights / 3;
    {
        let _busy = Busy::start()?;
        slower.splice(third..2 * third, lab.measure_nights(third, USUAL)?);
    }
    let mut courses = vec![
        ("nothing".to_owned(), number_nights(&before), None),
        (
            "slower machine in the middle".to_owned(),
            number_nights(&slower),
            None,
        ),
    ];
    for step in STEPS {
        let after = lab.measure_nights(nights - half, USUAL + step)?;
        let stepped = number_nights(&[&before[..half], &after].concat());
        if step == 5 {
            let mut gap = stepped.clone();
            gap.retain(|night| !(half - 3..half + 4).contains(&night.day));
            courses.push(("5 %, a week missing".to_owned(), gap, Some(half)));
        }
        courses.push((format!("{step} %"), stepped, Some(half)));
    }
    println!(
        "course                        alarm told after  first night  change              after measuring again"
    );
    for (name, course, planted) in courses {
        let mut told = lab.follow(&name, &course, planted)?;
        if told.is_empty() {
            told.push("no alarm".to_owned());
        }
        for words in told {
            println!("{name:<30}{words}");
        }
    }
    Ok(())
}

/// A night after the other, from the first day on.
fn number_nights(results: &[PathBuf]) -> Vec<Night> {
    let results = results.iter().cloned().enumerate();
    results
        .map(|(day, results)| Night { results, day })
        .collect()
}

impl Lab {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Removes the histories and the measurements of alarms of an earlier time.
    fn forget_courses(&self) -> Outcome<()> {
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.unwrap_or_default();
            if name == COURSES {
                fs::remove_file(path)?;
            } else if name.starts_with("store") || name.starts_with("confirmed") {
                fs::remove_dir_all(path)?;
            }
        }
        Ok(())
    }

    /// Results of so many nights. Their days are set when they are added.
    fn measure_nights(&mut self, nights: usize, handicap: u32) -> Outcome<Vec<PathBuf>> {
        let file = self.path(&format!("next-{handicap}.toml"));
        fs::write(&file, experiment(handicap))?;
        let mut measured = Vec::new();
        for _ in 0..nights {
            self.runs += 1;
            let results = self.path(&format!("run{}", self.runs));
            let seed = self.runs.to_string();
            let words = [
                "run",
                path_word(&file)?,
                "-q",
                "--wait",
                "--seed",
                &seed,
                "-o",
            ];
            if !results.exists() {
                self.schedlab(&[&words[..], &[path_word(&results)?]].concat(), &[0, 4])?;
            }
            eprint!("\r{} nights measured", self.runs);
            measured.push(results);
        }
        Ok(measured)
    }

    /// Adds each night and looks at the history after it; then measures what was told.
    fn follow(
        &mut self,
        name: &str,
        course: &[Night],
        planted: Option<usize>,
    ) -> Outcome<Vec<String>> {
        self.runs += 1;
        let store = self.path(&format!("store{}", self.runs));
        let store = path_word(&store)?;
        let mut told: Vec<(String, usize)> = Vec::new();
        let mut day_of_run: Vec<(String, usize)> = Vec::new();
        for night in course {
            set_day(&night.results, night.day)?;
            let results = path_word(&night.results)?;
            // A night of which too little counts is no night.
            let words = [
                "history", "add", results, "--store", store, "--format", "json",
            ];
            let Ok(added) = self.schedlab(&words, &[0]) else {
                continue;
            };
            let added: Value = serde_json::from_str(&added)?;
            day_of_run.push((text(&added[0]["run"]), night.day));
            let found = self.json(&["history", "check", "--store", store], &[0])?;
            let new = found["new"].as_array().ok_or("no list of new alarms")?;
            told.extend(new.iter().map(|id| (text(id), night.day)));
        }
        self.keep_ratios(name, planted, store, &day_of_run)?;
        let shown = self.json(&["history", "check", "--store", store], &[0])?;
        let alarms = shown["alarms"].as_array().ok_or("no list of alarms")?;
        let mut lines = Vec::new();
        for alarm in alarms.iter().map(|known| &known["alarm"]) {
            let id = text(&alarm["id"]);
            let day = told
                .iter()
                .find(|(told, _)| *told == id)
                .map_or(0, |(_, day)| *day);
            let first = text(&alarm["first"]);
            let first = day_of_run
                .iter()
                .find(|(run, _)| *run == first)
                .map_or(0, |(_, day)| *day);
            let away = planted.map_or("planted nothing".to_owned(), |planted| {
                format!("planted {}", planted + 1)
            });
            let percent = |key: &str| 100.0 * (alarm[key].as_f64().unwrap_or(1.0) - 1.0);
            let change = format!(
                "{:+.1} % ({:+.1} to {:+.1})",
                percent("change"),
                percent("low"),
                percent("high")
            );
            lines.push(format!(
                "{:<18}{:<3} ({away})  {change:<24}{}",
                day + 1,
                first + 1,
                self.confirm(store, &id)?
            ));
        }
        Ok(lines)
    }

    /// Writes a line with the ratios of a course, as the store has them.
    fn keep_ratios(
        &self,
        name: &str,
        planted: Option<usize>,
        store: &str,
        day_of_run: &[(String, usize)],
    ) -> Outcome<()> {
        let index = fs::read_to_string(Path::new(store).join("index.jsonl"))?;
        let mut nights = Vec::new();
        for line in index.lines() {
            let run = &serde_json::from_str::<Value>(line)?["run"];
            let day = day_of_run.iter().find(|(id, _)| run["id"] == **id);
            if let Some((_, day)) = day {
                let figure = &run["figures"][0];
                nights.push(
                    json!({ "day": day, "value": figure["log_ratio"], "error": figure["error"] }),
                );
            }
        }
        let course = json!({ "name": name, "planted": planted, "nights": nights });
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(self.path(COURSES))?;
        Ok(writeln!(file, "{course}")?)
    }

    fn confirm(&mut self, store: &str, id: &str) -> Outcome<String> {
        self.runs += 1;
        let results = self.path(&format!("confirmed{}", self.runs));
        let words = [
            "history", "confirm", id, "-q", "-y", "--wait", "--store", store,
        ];
        let more = ["--max-blocks", MOST_BLOCKS, "-o", path_word(&results)?];
        // Where nothing differs between the versions there is nothing to measure.
        let Ok(end) = self.json(&[&words[..], &more].concat(), &[0, 3, 4]) else {
            return Ok("no two versions: left to a person".to_owned());
        };
        Ok(format!("{}: {}", text(&end["outcome"]), text(&end["why"])))
    }

    fn json(&self, words: &[&str], codes: &[i32]) -> Outcome<Value> {
        let output = self.schedlab(&[words, &["--format", "json"]].concat(), codes)?;
        Ok(serde_json::from_str(&output)?)
    }

    /// What the program prints. A night in which a trial was repeated is a night.
    fn schedlab(&self, words: &[&str], codes: &[i32]) -> Outcome<String> {
        let output = Command::new(&self.program).args(words).output()?;
        match output.status.code() {
            Some(code) if codes.contains(&code) => Ok(String::from_utf8(output.stdout)?),
            _ => Err(format!("{words:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
        }
    }
}

fn experiment(handicap: u32) -> String {
    format!(
        "name = \"nightly\"\n[[arm]]\nname = \"default\"\n[[arm]]\nname = \"next\"\nhandicap = \"{handicap}%\"\n\
         [[workload]]\nkind = \"wakeup\"\nloads = [1]\nduration = \"1s\"\nin-place = \"always\"\nturn = \"50ms\"\n\
         metrics = [\"requests_per_sec\"]\n[stop]\nmin-blocks = 3\nmax-blocks = 3\n"
    )
}

/// Lets the results begin on that day.
fn set_day(results: &Path, day: usize) -> Outcome<()> {
    let path = results.join("manifest.json");
    let mut manifest: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
    let begin: Timestamp = BEGIN.parse()?;
    let day = SignedDuration::from_hours(24 * i64::try_from(day)?);
    manifest["created"] = (begin + day).to_string().into();
    Ok(fs::write(&path, manifest.to_string())?)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn path_word(path: &Path) -> Outcome<&str> {
    path.to_str().ok_or_else(|| "a path that is no text".into())
}

/// Processes that take a part of each CPU: the machine is slower for both arms.
struct Busy(Vec<Child>);

impl Busy {
    fn start() -> Outcome<Busy> {
        let cpus = std::thread::available_parallelism()?.get();
        let start = |_| {
            let mut command = Command::new("sh");
            command
                .args(["-c", "while :; do :; done"])
                .stdout(Stdio::null())
                .spawn()
        };
        Ok(Busy((0..cpus).map(start).collect::<Result<_, _>>()?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
