//! The directory of a history.

use crate::alarm::{Alarm, End, Outcome, Tracked};
use crate::digest::hash_value;
use crate::prune::{Pruning, plan_pruning};
use crate::run::Run;
use crate::search::{Found, Look, Settings, find_alarms};
use doors::read::{self, file_bytes};
use doors::written::{self, LockedLines, is_punched, read_whole_lines};
use jiff::Timestamp;
use model::Experiment;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

const INDEX: &str = "index.jsonl";
const EXPERIMENTS: &str = "experiments";
/// Rights of the index, less the umask.
const MODE: u32 = 0o666;
/// The most that is read of an index: 100 000 runs of 16 figures.
const MOST_BYTES: u64 = 1 << 30;
/// Values of one line at most.
const MOST_VALUES: usize = 1_000_000;
/// The most that is read of an experiment.
const MOST_OF_EXPERIMENT: u64 = 64 << 20;

/// Failure of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file could not be read or written.
    #[error("{what} {path}: {error}")]
    Io {
        /// Step that failed.
        what: &'static str,
        /// The file.
        path: String,
        /// Reason.
        error: io::Error,
    },
    /// There is no store.
    #[error("there is no history in {0}")]
    Missing(String),
    /// A line is none of the store's.
    #[error("line {line} of {path} cannot be read: {why}")]
    Broken {
        /// The index.
        path: String,
        /// Number of the line, from 1.
        line: usize,
        /// The fault.
        why: String,
    },
    /// A run that is in the store as a part of another one, or the other way round.
    #[error("it shares a run with {0}, which is in the history")]
    Shared(String),
    /// Nothing has this hash, or several have.
    #[error("{0}")]
    Unknown(String),
}

/// One line of the index.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Entry {
    Run(Box<Run>),
    Alarm(Box<Alarm>),
    End(End),
    Look(Look),
}

/// Everything that is in a store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// Runs in the order in which they began, each once.
    pub runs: Vec<Run>,
    /// Alarms in the order in which they were told, each once.
    pub alarms: Vec<Tracked>,
    /// Last search for alarms; none where nobody has looked.
    pub look: Option<Look>,
}

/// Outcome of a run that was to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// It is there now.
    New {
        /// Runs in the store that began later.
        began_before: usize,
        /// No run of such a machine was there.
        is_first_of_class: bool,
    },
    /// It was there.
    Known,
    /// It was there with fewer trials, and went on.
    Longer {
        /// Trials that it had.
        before: usize,
    },
}

/// A store.
#[derive(Debug, Clone)]
pub struct Store {
    dir: PathBuf,
}

impl Store {
    /// The store of a directory, which is made where it is missing.
    pub fn make(dir: &Path) -> Result<Store, StoreError> {
        let store = Store {
            dir: dir.to_owned(),
        };
        let experiments = dir.join(EXPERIMENTS);
        written::make_directory(&experiments).map_err(|e| failed("make", &experiments, e))?;
        Ok(store)
    }

    /// The store of a directory that has one.
    pub fn open(dir: &Path) -> Result<Store, StoreError> {
        match dir.join(INDEX).exists() {
            true => Ok(Store {
                dir: dir.to_owned(),
            }),
            false => Err(StoreError::Missing(dir.display().to_string())),
        }
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All that is in it.
    pub fn read_contents(&self) -> Result<Contents, StoreError> {
        let index = self.dir.join(INDEX);
        let text = read_whole_lines(&index, MOST_BYTES).map_err(|e| failed("read", &index, e))?;
        self.parse(&text)
    }

    /// Adds a run with its experiment. One that is there is not added again.
    pub fn add_run(&self, run: &Run, experiment: &Experiment) -> Result<Added, StoreError> {
        self.add(|contents| {
            let added = contents.judge_addition(run)?;
            // With the lock, so that nobody takes it for one that no line names.
            self.keep_experiment(&run.experiment, experiment)?;
            let entry = (added != Added::Known).then(|| Entry::Run(Box::new(run.clone())));
            Ok((entry.into_iter().collect(), added))
        })
    }

    /// Looks for alarms in all that is there, and keeps those that were not told, with nobody else between the two.
    pub fn look_for_alarms(
        &self,
        settings: Settings,
        now: Timestamp,
    ) -> Result<(Found, Contents), StoreError> {
        let found = self.add(|contents| {
            let found = find_alarms(contents, settings, now);
            let alarms = found.alarms.iter().cloned();
            let mut entries: Vec<Entry> =
                alarms.map(|alarm| Entry::Alarm(Box::new(alarm))).collect();
            let runs = contents.runs.len();
            let is_known = |look: Look| (look.runs, look.settings) == (runs, settings);
            if !contents.look.is_some_and(is_known) {
                entries.push(Entry::Look(Look {
                    at: now,
                    runs,
                    settings,
                }));
            }
            Ok((entries, found))
        })?;
        Ok((found, self.read_contents()?))
    }

    /// Records the end of an alarm, or that a measurement left it open.
    pub fn end_alarm(&self, end: End) -> Result<(), StoreError> {
        self.add(|_| Ok((vec![Entry::End(end)], ())))
    }

    /// Takes what was planned out of the store, unless it has become a part of an open alarm meanwhile. A kill leaves
    /// all of it or none, and some where the disk is full, so that the room must be given back line by line; experiments that no run names any more go afterwards. Gives what went, and the number of
    /// experiments.
    pub fn prune(
        &self,
        planned: &Pruning,
        before: Timestamp,
    ) -> Result<(Pruning, usize), StoreError> {
        let index = self.dir.join(INDEX);
        let lines = self.lock_lines()?;
        // A prune that was killed left its lines beside the index.
        written::remove_partials_of(&index).map_err(|e| failed("clear", &index, e))?;
        let mut pruning = plan_pruning(&self.parse(lines.text())?, before);
        pruning.runs.retain(|run| planned.runs.contains(run));
        pruning
            .alarms
            .retain(|alarm| planned.alarms.contains(alarm));
        let (kept, gone) = self.split_lines(lines.text(), &pruning)?;
        let failed_write = |e| failed("write", &index, e);
        match lines.replace_lines(&kept) {
            // Where holes cannot be made, what there is to do is said by the first error.
            Err(e) if is_full(&e) => lines.punch_lines(&gone).map_err(|_| failed_write(e))?,
            done => done.map_err(failed_write)?,
        }
        drop(lines);
        Ok((pruning, self.sweep_experiments()?))
    }

    /// The lines that stay, their bytes as they are, whoever wrote them; and where those are that go. An alarm goes before its
    /// end, and a run before what it was when it went on, so that some of them alone leave nothing that was not there.
    fn split_lines(
        &self,
        text: &[u8],
        pruning: &Pruning,
    ) -> Result<(Vec<u8>, Vec<Range<usize>>), StoreError> {
        let (mut kept, mut gone) = (Vec::new(), Vec::<Range<usize>>::new());
        let mut begin = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let end = begin + line.len();
            let goes = is_punched(line) || {
                let entry: Entry = read::parse_json(line, MOST_VALUES)
                    .map_err(|e| failed("read", &self.dir.join(INDEX), e.into()))?;
                entry.is_of(pruning)
            };
            match gone.last_mut() {
                _ if !goes => kept.extend_from_slice(line),
                // Room is given back by the block, and most lines are shorter.
                Some(last) if last.end == begin => last.end = end,
                _ => gone.push(begin..end),
            }
            begin = end;
        }
        Ok((kept, gone))
    }

    /// Removes the experiments that no run names.
    fn sweep_experiments(&self) -> Result<usize, StoreError> {
        let lines = self.lock_lines()?;
        let contents = self.parse(lines.text())?;
        let named: BTreeSet<String> = contents
            .runs
            .iter()
            .map(|run| format!("{}.json", run.experiment))
            .collect();
        let dir = self.dir.join(EXPERIMENTS);
        let mut swept = 0;
        for entry in std::fs::read_dir(&dir).map_err(|e| failed("read", &dir, e))? {
            let name = entry.map_err(|e| failed("read", &dir, e))?.file_name();
            let name = name.to_string_lossy();
            if is_experiment(&name) && !named.contains(&*name) {
                let path = dir.join(&*name);
                written::remove_file(&path).map_err(|e| failed("remove", &path, e))?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    fn lock_lines(&self) -> Result<LockedLines, StoreError> {
        let index = self.dir.join(INDEX);
        LockedLines::open(&index, MODE, MOST_BYTES).map_err(|e| failed("open", &index, e))
    }

    /// Experiment that the store kept.
    pub fn read_experiment(&self, hash: &str) -> Result<Experiment, StoreError> {
        let path = self.experiment_path(hash);
        let bytes = file_bytes(&path, MOST_OF_EXPERIMENT).map_err(|e| failed("read", &path, e))?;
        let experiment: Experiment =
            read::parse_json(&bytes, MOST_VALUES).map_err(|e| failed("read", &path, e.into()))?;
        let invalid = |e: model::Invalid| failed("read", &path, io::Error::other(e.to_string()));
        experiment.check().map_err(invalid)?;
        match hash_value(&experiment) == hash {
            true => Ok(experiment),
            false => Err(failed("read", &path, io::Error::other("it was changed"))),
        }
    }

    fn experiment_path(&self, hash: &str) -> PathBuf {
        self.dir.join(EXPERIMENTS).join(format!("{hash}.json"))
    }

    /// Before the line that names it, so that no line names a file that is not there.
    fn keep_experiment(&self, hash: &str, experiment: &Experiment) -> Result<(), StoreError> {
        let path = self.experiment_path(hash);
        if path.exists() {
            return Ok(());
        }
        // One that was killed while it added this run left a part beside it.
        written::remove_partials_of(&path).map_err(|e| failed("clear", &path, e))?;
        let text =
            serde_json::to_vec_pretty(experiment).map_err(|e| failed("write", &path, e.into()))?;
        written::write_file_durably(&path, text).map_err(|e| failed("write", &path, e))
    }

    /// Adds what `make` makes of all that is there.
    fn add<T>(
        &self,
        make: impl FnOnce(&Contents) -> Result<(Vec<Entry>, T), StoreError>,
    ) -> Result<T, StoreError> {
        let index = self.dir.join(INDEX);
        let mut lines = self.lock_lines()?;
        let (entries, made) = make(&self.parse(lines.text())?)?;
        let mut text = Vec::new();
        for entry in &entries {
            serde_json::to_writer(&mut text, entry)
                .map_err(|e| failed("write", &index, e.into()))?;
            text.push(b'\n');
        }
        if !text.is_empty() {
            lines
                .add_lines(&text)
                .map_err(|e| failed("write", &index, e))?;
        }
        Ok(made)
    }

    fn parse(&self, text: &[u8]) -> Result<Contents, StoreError> {
        let mut contents = Unordered::default();
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        for (index, line) in lines.enumerate() {
            // A prune of a full disk left it.
            if is_punched(line) {
                continue;
            }
            let entry = read::parse_json(line, MOST_VALUES).map_err(|e| StoreError::Broken {
                path: self.dir.join(INDEX).display().to_string(),
                line: index + 1,
                why: e.to_string(),
            })?;
            contents.enter(entry);
        }
        Ok(contents.put_in_order())
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// A file that the store made: a hash and nothing else.
fn is_experiment(name: &str) -> bool {
    let hash = name.strip_suffix(".json").unwrap_or_default();
    !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Entry {
    /// Does it leave with these?
    fn is_of(&self, pruning: &Pruning) -> bool {
        match self {
            Entry::Run(run) => pruning.runs.contains(&run.id),
            Entry::Alarm(alarm) => pruning.alarms.contains(&alarm.id),
            Entry::End(end) => pruning.alarms.contains(&end.alarm),
            Entry::Look(_) => false,
        }
    }
}

fn failed(what: &'static str, path: &Path, error: io::Error) -> StoreError {
    StoreError::Io {
        what,
        path: path.display().to_string(),
        error,
    }
}

/// Entries as they come.
#[derive(Default)]
struct Unordered {
    runs: BTreeMap<String, Run>,
    alarms: Vec<Alarm>,
    ends: BTreeMap<String, End>,
    /// Measurements that did not decide, by the alarm.
    attempts: BTreeMap<String, u32>,
    look: Option<Look>,
}

impl Unordered {
    fn enter(&mut self, entry: Entry) {
        match entry {
            // A run that went on takes its own place.
            Entry::Run(run) => drop(self.runs.insert(run.id.clone(), *run)),
            Entry::Alarm(alarm) if self.alarms.iter().any(|known| known.id == alarm.id) => {}
            Entry::Alarm(alarm) => self.alarms.push(*alarm),
            Entry::End(end) if end.outcome == Outcome::Open => {
                *self.attempts.entry(end.alarm).or_default() += 1;
            }
            Entry::End(end) => drop(self.ends.insert(end.alarm.clone(), end)),
            Entry::Look(look) => self.look = Some(look),
        }
    }

    fn put_in_order(mut self) -> Contents {
        let mut runs: Vec<Run> = self.runs.into_values().collect();
        runs.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        let alarms = self.alarms.into_iter().map(|alarm| {
            let end = self.ends.remove(&alarm.id);
            let outcome = end.as_ref().map_or(Outcome::Open, |end| end.outcome);
            Tracked {
                attempts: self.attempts.remove(&alarm.id).unwrap_or(0),
                alarm,
                outcome,
                end,
            }
        });
        Contents {
            alarms: alarms.collect(),
            runs,
            look: self.look,
        }
    }
}

impl Contents {
    fn judge_addition(&self, run: &Run) -> Result<Added, StoreError> {
        let shares = |known: &&Run| known.parts.iter().any(|part| run.parts.contains(part));
        if let Some(known) = self.runs.iter().find(shares) {
            return match known.id == run.id {
                true if run.trials > known.trials => Ok(Added::Longer {
                    before: known.trials,
                }),
                true => Ok(Added::Known),
                false => {
                    let known = format!("{} of {}", known.name, known.created);
                    Err(StoreError::Shared(known))
                }
            };
        }
        let later = self.runs.iter().filter(|known| known.created > run.created);
        Ok(Added::New {
            began_before: later.count(),
            is_first_of_class: self.runs.iter().all(|known| known.class != run.class),
        })
    }

    /// The run whose hash begins so.
    pub fn find_run(&self, start: &str) -> Result<&Run, StoreError> {
        find_one(self.runs.iter(), start, "run", |run| &run.id)
    }

    /// The alarm whose hash begins so.
    pub fn find_alarm(&self, start: &str) -> Result<&Tracked, StoreError> {
        find_one(self.alarms.iter(), start, "alarm", |alarm| &alarm.alarm.id)
    }
}

/// The one thing whose hash begins so.
pub(crate) fn find_one<'a, T>(
    all: impl Iterator<Item = &'a T>,
    start: &str,
    what: &str,
    id: impl Fn(&T) -> &String,
) -> Result<&'a T, StoreError> {
    let mut found = all.filter(|thing| id(thing).starts_with(start));
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(StoreError::Unknown(format!(
            "the history has no {what} {start}"
        ))),
        (Some(_), Some(_)) => Err(StoreError::Unknown(format!(
            "{start} is the beginning of several hashes; give more of it"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{experiment, run};

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::make(&dir.path().join("history")).unwrap();
        (dir, store)
    }

    fn add(store: &Store, run: &Run) -> Result<Added, StoreError> {
        store.add_run(run, &experiment())
    }

    #[test]
    fn a_run_is_there_once_and_one_that_went_on_takes_its_place() {
        let (_dir, store) = store();
        let first = run(1, 0.1);
        let is_new = |added: &Added| matches!(added, Added::New { .. });
        assert!(is_new(&add(&store, &first).unwrap()));
        assert_eq!(add(&store, &first).unwrap(), Added::Known);
        let longer = Run {
            trials: first.trials + 4,
            ..first.clone()
        };
        let before = first.trials;
        assert_eq!(add(&store, &longer).unwrap(), Added::Longer { before });
        assert_eq!(add(&store, &first).unwrap(), Added::Known);
        assert_eq!(store.read_contents().unwrap().runs, [longer]);
    }

    #[test]
    fn runs_are_in_the_order_of_their_beginnings_and_those_behind_are_counted() {
        let (_dir, store) = store();
        for night in [5, 3, 4] {
            add(&store, &run(night, 0.0)).unwrap();
        }
        let wanted = Added::New {
            began_before: 3,
            is_first_of_class: false,
        };
        assert_eq!(add(&store, &run(1, 0.0)).unwrap(), wanted);
        let runs = store.read_contents().unwrap().runs;
        assert!(runs.is_sorted_by_key(|run| run.created), "{runs:?}");
        let contents = store.read_contents().unwrap();
        assert_eq!(
            contents.find_run(&run(4, 0.0).id[..8]).unwrap().created,
            runs[2].created
        );
        assert!(contents.find_run("").is_err() && contents.find_run("nothing").is_err());
    }

    #[test]
    fn a_merged_run_and_its_parts_are_not_there_together() {
        let (_dir, store) = store();
        let (one, other) = (run(1, 0.0), run(2, 0.0));
        add(&store, &one).unwrap();
        let merged = Run {
            id: "merged".to_owned(),
            parts: [one.parts.clone(), other.parts].concat(),
            ..one
        };
        assert!(matches!(add(&store, &merged), Err(StoreError::Shared(_))));
        assert_eq!(store.read_contents().unwrap().runs.len(), 1);
    }

    #[test]
    fn an_alarm_stays_whatever_is_added_and_whatever_is_looked_for() {
        let (_dir, store) = store();
        let night = |n: i64| {
            let wave = 0.002 * (n as f64 * 2.4).sin();
            run(n, if n < 20 { wave } else { wave - 0.05 })
        };
        let check = |effect: f64| {
            let settings = Settings {
                effect,
                false_alarms_per_year: 1.0,
            };
            let now = "2027-01-01T00:00:00Z".parse().unwrap();
            store
                .look_for_alarms(settings, now)
                .map(|(_, contents)| contents)
        };
        for n in 0..26 {
            add(&store, &night(n)).unwrap();
        }
        let told = check(0.02).unwrap().alarms;
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].alarm.first, night(20).id);
        // Runs before it that came late, later ones, and a finer look.
        for n in (-10..0).chain(26..60) {
            add(&store, &night(n)).unwrap();
        }
        for effect in [0.02, 0.01, 0.02] {
            assert_eq!(check(effect).unwrap().alarms, told);
        }
        let end = End {
            alarm: told[0].alarm.id.clone(),
            outcome: Outcome::Confirmed,
            at: told[0].alarm.raised,
            why: "measured".to_owned(),
            results: None,
        };
        store.end_alarm(end.clone()).unwrap();
        let ended = check(0.02).unwrap().alarms;
        assert_eq!((ended.len(), ended[0].end.as_ref()), (1, Some(&end)));
        assert_eq!(ended[0].alarm, told[0].alarm);
    }

    #[test]
    fn measurements_that_did_not_decide_are_counted_and_open_no_alarm_that_ended() {
        let (_dir, store) = store();
        for n in 0..26 {
            let wave = 0.002 * (n as f64 * 2.4).sin();
            add(&store, &run(n, if n < 20 { wave } else { wave - 0.05 })).unwrap();
        }
        let now: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let (found, _) = store.look_for_alarms(Settings::default(), now).unwrap();
        let end = |outcome| {
            let end = End {
                alarm: found.alarms[0].id.clone(),
                outcome,
                at: now,
                why: "measured".to_owned(),
                results: None,
            };
            store.end_alarm(end).unwrap();
            let known = store.read_contents().unwrap().alarms.remove(0);
            (known.outcome, known.attempts, known.end.is_some())
        };
        assert_eq!(end(Outcome::Open), (Outcome::Open, 1, false));
        assert_eq!(end(Outcome::Open), (Outcome::Open, 2, false));
        assert_eq!(end(Outcome::Confirmed), (Outcome::Confirmed, 2, true));
        assert_eq!(end(Outcome::Open), (Outcome::Confirmed, 3, true));
    }

    #[test]
    fn what_is_pruned_goes_with_its_experiments_and_the_rest_keeps_its_bytes() {
        let (_dir, store) = store();
        for n in 0..6 {
            add(&store, &run(n, 0.1 / 3.0)).unwrap();
        }
        let other = Run {
            experiment: "0123".to_owned(),
            ..run(-1, 0.0)
        };
        add(&store, &other).unwrap();
        let text = || std::fs::read_to_string(store.dir().join(INDEX)).unwrap();
        let before = text();
        let cutoff = run(3, 0.0).created;
        let planned = plan_pruning(&store.read_contents().unwrap(), cutoff);
        let (gone, swept) = store.prune(&planned, cutoff).unwrap();
        assert_eq!((gone.runs.len(), swept), (4, 1));
        let kept: String = before.split_inclusive('\n').skip(3).take(3).collect();
        assert_eq!(text(), kept);
        // What came after it was stated what goes, stays.
        add(&store, &run(0, 0.0)).unwrap();
        let (gone, swept) = store.prune(&Pruning::default(), cutoff).unwrap();
        assert_eq!((gone.runs.len(), swept), (0, 0));
        assert_eq!(store.read_contents().unwrap().runs.len(), 4);
        assert!(store.experiment_path(&run(0, 0.0).experiment).exists());
    }

    #[test]
    fn what_a_killed_add_left_of_an_experiment_goes_when_the_run_is_added() {
        let (_dir, store) = store();
        let first = run(1, 0.0);
        let name = format!(".partial-{}.json-abcdef", first.experiment);
        let partial = store.dir().join(EXPERIMENTS).join(name);
        std::fs::write(&partial, "{").unwrap();
        add(&store, &first).unwrap();
        assert!(!partial.exists());
    }

    #[test]
    fn an_experiment_that_somebody_changed_is_not_run() {
        let (_dir, store) = store();
        let first = run(1, 0.0);
        add(&store, &first).unwrap();
        assert_eq!(
            store.read_experiment(&first.experiment).unwrap(),
            experiment()
        );
        let path = store.experiment_path(&first.experiment);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("hackbench", "other")).unwrap();
        let error = store.read_experiment(&first.experiment).unwrap_err();
        assert!(error.to_string().contains("it was changed"), "{error}");
    }
}
