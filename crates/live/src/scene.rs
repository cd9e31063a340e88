//! Everything that a view draws, and where it comes from.

use doors::watch::Watch;
use report::Table;
use report::picture::Picture;
use results::fleet::{is_fleet, machine_dirs};
use results::now::{is_under_way, unix_ns};
use results::{Now, ResultSet, ResultsError, files, read};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant, SystemTime};

/// Share of the time that looking at the results may take: a thousandth of one CPU.
const PAUSES: u32 = 1000;
/// Longest time between two looks at results that changed.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// State of a run, by the process that measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    /// A process has them.
    #[default]
    UnderWay,
    /// The run has ended in order, or by an error.
    Ended,
    /// The run says that it is under way, and no process has it: it was killed.
    Lost,
}

/// One machine of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Name of the machine.
    pub name: String,
    /// The step of its run now.
    pub now: Option<Now>,
    /// State of its run.
    pub life: Life,
    /// Trials that it has stored.
    pub trials: usize,
}

/// Everything that a view draws.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Scene {
    /// Everything that was measured; nothing but names before the first trial has ended.
    pub picture: Picture,
    /// The step of the run now.
    pub now: Option<Now>,
    /// State of the run.
    pub life: Life,
    /// The machines of a run on several.
    pub nodes: Vec<Node>,
    /// Nanoseconds since 1970 on the machine of the results, when the scene was made.
    pub unix_ns: u64,
}

impl Scene {
    /// The time since a moment on the machine of the results.
    pub fn time_since(&self, unix_ns: u64) -> Duration {
        Duration::from_nanos(self.unix_ns.saturating_sub(unix_ns))
    }
}

/// A place that scenes come from.
pub trait Source {
    /// A scene, where it is another one than the last.
    ///
    /// # Errors
    /// Results that cannot be read, or a machine that is not reached any more.
    fn look(&mut self) -> io::Result<Option<Scene>>;
}

/// Results on this machine.
#[derive(Debug)]
pub struct Directory {
    dir: PathBuf,
    picture: Picture,
    /// The change of the results that the picture has.
    seen: Option<Stamp>,
    /// The last look at all results, and what it took.
    looked: Option<(Instant, Duration)>,
    last: Option<Scene>,
    /// The change of the results that its machines have.
    counted: Option<Stamp>,
    /// Tells the run, and those of its machines, that somebody watches.
    _watches: Vec<Watch>,
}

/// Times at which the directory was changed: of its manifest and of its list of trials.
type Stamp = (Option<SystemTime>, Vec<Option<SystemTime>>);

impl Directory {
    /// The results in this directory.
    ///
    /// # Errors
    /// A directory that holds no results.
    pub fn open(dir: &Path) -> Result<Directory, ResultsError> {
        if !is_fleet(dir) {
            read::read_manifest(dir)?;
        }
        let dirs = [dir.to_owned()].into_iter().chain(machine_dirs(dir));
        Ok(Directory {
            _watches: dirs.filter_map(|dir| Watch::hold_directory(&dir)).collect(),
            dir: dir.to_owned(),
            picture: Picture::default(),
            seen: None,
            looked: None,
            last: None,
            counted: None,
        })
    }

    fn stamp(&self) -> Stamp {
        let changed = |path: PathBuf| path.metadata().and_then(|found| found.modified()).ok();
        let dirs = [self.dir.clone()]
            .into_iter()
            .chain(machine_dirs(&self.dir));
        let trials = dirs.map(|dir| changed(dir.join(files::TRIALS)));
        (changed(self.dir.join(files::MANIFEST)), trials.collect())
    }

    /// True if another look at all results is worth its time.
    fn may_read(&self) -> bool {
        self.looked
            .is_none_or(|(at, took)| at.elapsed() >= took.saturating_mul(PAUSES).min(LONGEST_PAUSE))
    }

    /// The machines. Their trials are counted again only where some were added.
    fn find_nodes(&self, stamp: &Stamp) -> Vec<Node> {
        let last = self
            .last
            .as_ref()
            .filter(|_| self.counted.as_ref() == Some(stamp));
        let counted = |index: usize| Some(last?.nodes.get(index)?.trials);
        let dirs = machine_dirs(&self.dir).into_iter().enumerate();
        dirs.map(|(index, dir)| node(&dir, counted(index)))
            .collect()
    }

    fn read_results(&mut self, stamp: Stamp) {
        let began = Instant::now();
        // Several machines have one result when they have ended; until then the first stands for all.
        let one = match self.dir.join(files::MANIFEST).exists() {
            true => Some(self.dir.clone()),
            false => machine_dirs(&self.dir).into_iter().next(),
        };
        // A trial may be just written; the next look has it.
        match one.as_deref().map(ResultSet::read) {
            Some(Ok(results)) => {
                self.picture = Picture::from_table(&Table::from_results(&results));
                self.seen = Some(stamp);
                self.looked = Some((began, began.elapsed()));
            }
            // Nothing is measured yet, and the first block is waited for.
            Some(Err(_)) if self.seen.is_none() => {
                let plan = one.and_then(|dir| read::read_plan(&dir).ok());
                let planned = plan.map(|(experiment, plan)| Picture::from_plan(&experiment, &plan));
                self.picture = planned.unwrap_or_default();
            }
            Some(Err(_)) | None => {}
        }
    }
}

impl Source for Directory {
    fn look(&mut self) -> io::Result<Option<Scene>> {
        if !self.dir.exists() {
            let why = format!("{} is not there any more", self.dir.display());
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        let stamp = self.stamp();
        let stamp_of_nodes = stamp.clone();
        let life = find_life(&self.dir);
        let has_ended = life != Life::UnderWay && self.last.as_ref().is_none_or(|l| l.life != life);
        if self.seen.as_ref() != Some(&stamp) && (self.may_read() || has_ended) {
            self.read_results(stamp);
        }
        let nodes = self.find_nodes(&stamp_of_nodes);
        let scene = Scene {
            picture: self.picture.clone(),
            now: Now::read_in(&self.dir).filter(|_| life == Life::UnderWay),
            life,
            nodes,
            unix_ns: 0,
        };
        let is_new = self.last.as_ref() != Some(&scene);
        self.last = Some(scene.clone());
        self.counted = Some(stamp_of_nodes);
        Ok(is_new.then(|| Scene {
            unix_ns: unix_ns(),
            ..scene
        }))
    }
}

fn find_life(dir: &Path) -> Life {
    let is_running = match read::read_manifest(dir) {
        Ok(manifest) => manifest.state == results::RunState::Running,
        // Of several machines.
        Err(_) => is_under_way(dir),
    };
    match (is_running, is_under_way(dir)) {
        (false, _) => Life::Ended,
        (true, true) => Life::UnderWay,
        (true, false) => Life::Lost,
    }
}

fn node(dir: &Path, trials: Option<usize>) -> Node {
    let life = find_life(dir);
    let count = || {
        let trials = std::fs::read_dir(dir.join(files::TRIALS));
        trials.into_iter().flatten().flatten().count()
    };
    Node {
        name: dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        now: Now::read_in(dir).filter(|_| life == Life::UnderWay),
        life,
        trials: trials.unwrap_or_else(count),
    }
}

/// Scenes that another schedlab sends, one in a line of JSON.
#[derive(Debug)]
pub struct Feed {
    scenes: Receiver<io::Result<Scene>>,
}

/// The most of a scene.
const MOST_LINE_BYTES: u64 = 16 << 20;

impl Feed {
    /// The scenes that come from this stream, which a thread of its own reads.
    pub fn read_from(stream: impl BufRead + Send + 'static) -> Feed {
        let (sender, scenes) = channel();
        std::thread::spawn(move || {
            for line in doors::read::lines_within(stream, MOST_LINE_BYTES) {
                let scene = line.and_then(|line| Ok(serde_json::from_slice(&line)?));
                let is_over = scene.is_err();
                if sender.send(scene).is_err() || is_over {
                    return;
                }
            }
        });
        Feed { scenes }
    }
}

impl Source for Feed {
    fn look(&mut self) -> io::Result<Option<Scene>> {
        let mut last = None;
        loop {
            match self.scenes.try_recv() {
                Ok(scene) => last = Some(scene?),
                Err(TryRecvError::Empty) => return Ok(last),
                Err(TryRecvError::Disconnected) if last.is_some() => return Ok(last),
                Err(TryRecvError::Disconnected) => {
                    let why = "the other machine sends nothing any more";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_gives_the_last_scene_and_says_when_it_is_over() {
        let scene = |name: &str| Scene {
            picture: Picture {
                name: name.to_owned(),
                ..Picture::default()
            },
            ..Scene::default()
        };
        let lines: Vec<String> = ["a", "b"]
            .iter()
            .map(|name| serde_json::to_string(&scene(name)).unwrap())
            .collect();
        let mut feed = Feed::read_from(io::Cursor::new(lines.join("\n") + "\n"));
        let mut last = None;
        let error = loop {
            match feed.look() {
                Ok(Some(scene)) => last = Some(scene.picture.name),
                Ok(None) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(last.as_deref(), Some("b"));
        assert!(error.to_string().contains("nothing any more"), "{error}");
        let mut feed = Feed::read_from(io::Cursor::new("not json\n"));
        let error = loop {
            if let Err(error) = feed.look() {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    }

    #[test]
    fn a_directory_without_results_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Directory::open(dir.path()).is_err());
    }
}
