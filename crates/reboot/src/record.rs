//! A run that goes on after each boot of this machine, as it is kept between boots.

use crate::{By, boot_id, replace, running_release};
use doors::written;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// So many boots in a row that bring no trial end a run: the machine stays up.
pub const FRUITLESS: u32 = 3;
const FILE: &str = "boot.json";

/// The record of a run cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct RecordError {
    path: PathBuf,
    why: String,
}

/// The run that goes on after each boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Directory of its results.
    pub directory: PathBuf,
    /// Whom its end is told, as `--notify` has it.
    #[serde(default)]
    pub notify: Vec<String>,
    /// Kernel that the machine boots by itself.
    pub own_kernel: String,
    /// Boot that was asked for and has not come.
    #[serde(default)]
    pub asked: Option<Asked>,
    /// Boot that came.
    #[serde(default)]
    pub up: Option<Up>,
    /// Boots that were asked for.
    #[serde(default)]
    pub boots: u32,
    /// The last of them, in a row, that brought no trial.
    #[serde(default)]
    pub fruitless: u32,
    /// Starts of the run that were there when it last began without a boot in order: later ones are
    /// one.
    #[serde(default)]
    pub earlier_starts: usize,
    /// Boots in a row of a kernel that ended by themselves after trials were begun in them.
    #[serde(default)]
    pub lost: BTreeMap<String, u32>,
    /// Trials that were there at the last boot.
    #[serde(default)]
    pub trials: usize,
    /// Seconds in which the machine was not up.
    #[serde(default)]
    pub away_s: u64,
    /// The end, in words; `None` while it goes on.
    #[serde(default)]
    pub ended: Option<String>,
}

/// A boot that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Release of the kernel.
    pub kernel: String,
    /// The way to it.
    pub by: By,
    /// Boot that it was asked for in.
    pub from: String,
    /// Time of it, in seconds since 1970.
    pub at_s: u64,
}

/// A boot that was asked for and came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Up {
    /// Release that was asked for.
    pub kernel: String,
    /// Release that came.
    pub found: String,
    /// Name of the boot.
    pub boot: String,
    /// True when trials were begun in it.
    pub used: bool,
}

impl Record {
    /// The record of a run that has not been started.
    pub fn new(directory: PathBuf, notify: Vec<String>) -> Self {
        Record {
            directory,
            notify,
            own_kernel: running_release(),
            asked: None,
            up: None,
            boots: 0,
            fruitless: 0,
            earlier_starts: 0,
            lost: BTreeMap::new(),
            trials: 0,
            away_s: 0,
            ended: None,
        }
    }

    /// Its file in the directory of what schedlab keeps of this machine.
    pub fn file_path(state: &Path) -> PathBuf {
        state.join(FILE)
    }

    /// Reads it; `None` where there is none.
    pub fn read(file: &Path) -> Result<Option<Self>, RecordError> {
        let failed = |why: String| RecordError {
            path: file.to_owned(),
            why,
        };
        match doors::read::small_file_text(file) {
            Ok(text) => serde_json::from_str(&text)
                .map(Some)
                .map_err(|e| failed(e.to_string())),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(e.to_string())),
        }
    }

    /// Writes it in one step, to the disk.
    pub fn write(&self, file: &Path) -> Result<(), RecordError> {
        let failed = |why: String| RecordError {
            path: file.to_owned(),
            why,
        };
        if let Some(directory) = file.parent() {
            written::make_directory(directory).map_err(|e| failed(e.to_string()))?;
        }
        let text = serde_json::to_string_pretty(self).map_err(|e| failed(e.to_string()))?;
        replace(file, &text).map_err(failed)
    }

    /// Takes note of the boot that this is, when the run goes on with so many starts and trials. True
    /// where its last start goes on.
    pub fn goes_on(&mut self, starts: usize, trials: usize) -> bool {
        if trials > self.trials {
            self.fruitless = 0;
        }
        self.trials = trials;
        let boot = boot_id(Path::new("/"));
        let asked = self.asked.take_if(|asked| asked.from != boot);
        if let Some(left) = self.up.take_if(|up| up.boot != boot)
            && left.used
        {
            let lost = self.lost.entry(left.kernel).or_default();
            *lost = if asked.is_some() { 0 } else { *lost + 1 };
        }
        match asked {
            Some(asked) => {
                self.away_s += now_s().saturating_sub(asked.at_s);
                self.up = Some(Up {
                    kernel: asked.kernel,
                    found: running_release(),
                    boot,
                    used: false,
                });
            }
            // The power was cut, or somebody ended it.
            None => self.earlier_starts = starts,
        }
        starts > self.earlier_starts
    }

    /// A kernel that brought the machine down so often that the run must not go on: it would for ever.
    pub fn brings_down(&self) -> Option<&str> {
        let mut lost = self.lost.iter();
        let most = lost.find(|(_, count)| **count >= FRUITLESS);
        most.map(|(kernel, _)| kernel.as_str())
    }

    /// The boot that this is, if it was asked for with this kernel and nothing was begun in it.
    pub fn find_fresh_boot(&mut self, kernel: &str) -> Option<&mut Up> {
        let boot = boot_id(Path::new("/"));
        let up = self.up.as_mut()?;
        (up.boot == boot && up.kernel == kernel && !up.used).then_some(up)
    }

    /// Takes note that a boot is asked for.
    pub fn add_request(&mut self, kernel: &str, by: By) {
        self.boots += 1;
        self.fruitless += 1;
        self.asked = Some(Asked {
            kernel: kernel.to_owned(),
            by,
            from: boot_id(Path::new("/")),
            at_s: now_s(),
        });
    }
}

fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record() -> Record {
        Record::new("/results".into(), Vec::new())
    }

    #[test]
    fn a_boot_counts_once_and_only_with_the_kernel_that_was_asked_for() {
        let mut record = record();
        record.add_request("6.12", By::Grub);
        record.goes_on(0, 0);
        assert_eq!(record.up, None, "the machine has not gone down yet");
        record.asked.as_mut().unwrap().from = "another".to_owned();
        record.goes_on(0, 0);
        assert_eq!(record.find_fresh_boot("6.1"), None);
        let up = record.find_fresh_boot("6.12").unwrap();
        assert_eq!(up.found, running_release());
        up.used = true;
        assert_eq!(record.find_fresh_boot("6.12"), None);
    }

    #[test]
    fn a_start_goes_on_over_boots_in_order_and_ends_with_any_other() {
        let mut record = record();
        let comes = |record: &mut Record, starts| {
            record.add_request("6.12", By::Grub);
            record.asked.as_mut().unwrap().from = "another".to_owned();
            record.goes_on(starts, 0)
        };
        assert!(!record.goes_on(0, 0), "it has just begun");
        assert!(!comes(&mut record, 0), "nothing is on record yet");
        assert!(comes(&mut record, 1));
        assert!(!record.goes_on(1, 0), "a power cut");
        assert!(
            !comes(&mut record, 1),
            "its boot in order is of a new start"
        );
        assert!(comes(&mut record, 2));
    }

    #[test]
    fn a_kernel_that_brings_the_machine_down_each_time_ends_the_run() {
        let mut record = record();
        for lost in 0..FRUITLESS {
            assert_eq!(record.brings_down(), None, "{lost}");
            record.up = Some(Up {
                kernel: "6.12".to_owned(),
                found: "6.12".to_owned(),
                boot: format!("boot {lost}"),
                used: true,
            });
            // Another kernel brings trials in between.
            record.goes_on(1, lost as usize);
        }
        assert_eq!(record.brings_down(), Some("6.12"));
    }

    #[test]
    fn boots_without_a_trial_are_counted_until_one_comes() {
        let mut record = record();
        for _ in 0..2 {
            record.add_request("6.12", By::Kexec);
            record.goes_on(1, 4);
        }
        assert_eq!((record.boots, record.fruitless), (2, 1));
        record.goes_on(1, 5);
        assert_eq!(record.fruitless, 0);
    }

    #[test]
    fn a_record_is_the_same_after_it_was_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = Record::file_path(&directory.path().join("state"));
        assert_eq!(Record::read(&file).unwrap(), None);
        let mut record = record();
        record.add_request("6.12", By::SystemdBoot);
        record.write(&file).unwrap();
        assert_eq!(Record::read(&file).unwrap(), Some(record));
        std::fs::write(&file, "{").unwrap();
        assert!(
            Record::read(&file)
                .unwrap_err()
                .to_string()
                .contains("boot.json")
        );
    }
}
