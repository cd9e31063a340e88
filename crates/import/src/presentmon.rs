//! CSV of PresentMon, with the columns of its versions: `msBetweenPresents` of 1.x, `FrameTime` of 2.0 to
//! 2.2 and of `--v2_metrics`, `MsBetweenPresents` from 2.3 on. All are milliseconds.

use crate::files::{files_of, read_by_arm};
use crate::frame_times::{self, Rules};
use crate::{ImportError, Imported, Run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the tool.
pub const NAME: &str = "presentmon";

const REMEDY: &str = "give the CSV that PresentMon wrote, or a directory of them";
const NS_PER_MS: f64 = 1e6;
/// Text of a field without a value.
const NONE: &str = "NA";

/// Reads files and directories of files. `ARM=PATH` gives the arm a name; without it that is the
/// directory, or the file without its extension.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    read_by_arm(paths, |path| files_of(path, Some("csv"), REMEDY), add_text)
}

/// Adds the processes of this text to an arm, each as a run.
pub fn add_text(
    path: &Path,
    text: &str,
    arm: &str,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    for (application, frames) in read_text(path, text)? {
        let place = frame_times::place(&application, "PresentMon");
        let mut run = Run::new(arm, place, path.display().to_string());
        run.metrics = frame_times::figures(&frames.times_ns, frames.dropped, Rules::CapFrameX);
        run.elapsed_ns = frame_times::length_ns(&frames.times_ns);
        imported.add_run(run);
    }
    Ok(())
}

/// Frames of one process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frames {
    /// Process and swap chain.
    source: (String, String),
    /// Time of each frame, in nanoseconds.
    pub times_ns: Vec<u64>,
    /// Frames that were never shown; `None` where no column says it.
    pub dropped: Option<usize>,
}

/// Places of the columns.
struct Columns {
    count: usize,
    application: usize,
    process: Option<usize>,
    chain: Option<usize>,
    time: usize,
    dropped: Option<Dropped>,
    kind: Option<usize>,
}

/// The column that says whether a frame was shown.
enum Dropped {
    /// 1: it was not.
    Flag(usize),
    /// `NA`: it was not.
    Shown(usize),
}

/// Frames of each application.
pub fn read_text(path: &Path, text: &str) -> Result<BTreeMap<String, Frames>, ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    // OCAT and old versions of CapFrameX say what the machine was in such lines.
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let mut lines = lines.filter(|(_, line)| !line.starts_with("//") && !line.trim().is_empty());
    let Some((at, head)) = lines.next() else {
        return Err(ImportError::in_file(path, "the file is empty", REMEDY));
    };
    let columns = Columns::find(path, at, head)?;
    let mut found = BTreeMap::new();
    for (at, line) in lines {
        columns.add_frame(path, at, line, &mut found)?;
    }
    found.retain(|_, frames: &mut Frames| !frames.times_ns.is_empty());
    match found.is_empty() {
        true => Err(ImportError::in_file(
            path,
            "there is no frame in it",
            REMEDY,
        )),
        false => Ok(found),
    }
}

impl Columns {
    fn find(path: &Path, at: usize, head: &str) -> Result<Self, ImportError> {
        let names: Vec<String> = head
            .split(',')
            .map(|name| name.trim().to_lowercase())
            .collect();
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        let missing = |wanted: &str| {
            let what = format!("there is no column `{wanted}`");
            ImportError::in_line(path, at, what, REMEDY)
        };
        let times = [place("frametime"), place("msbetweenpresents")];
        let time = match times {
            [Some(_), Some(_)] => {
                let what = "it has `FrameTime` and `MsBetweenPresents`, which no known version has";
                return Err(ImportError::in_line(path, at, what, REMEDY));
            }
            [time, other] => time.or(other),
        };
        let flag = place("dropped").map(Dropped::Flag);
        let shown = place("displayedtime").or_else(|| {
            // Version 1 has a 0 there where it does not know.
            let is_second = place("msbetweensimulationstart").is_some();
            place("msbetweendisplaychange").filter(|_| is_second)
        });
        Ok(Columns {
            count: names.len(),
            application: place("application").ok_or_else(|| missing("Application"))?,
            process: place("processid"),
            chain: place("swapchainaddress"),
            time: time.ok_or_else(|| missing("MsBetweenPresents` or `FrameTime"))?,
            dropped: flag.or_else(|| shown.map(Dropped::Shown)),
            kind: place("frametype"),
        })
    }

    fn add_frame(
        &self,
        path: &Path,
        at: usize,
        line: &str,
        found: &mut BTreeMap<String, Frames>,
    ) -> Result<(), ImportError> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let wrong = |what: String| Err(ImportError::in_line(path, at, what, REMEDY));
        if fields.len() != self.count {
            let (has, columns) = (fields.len(), self.count);
            return wrong(format!(
                "it has {has} fields, and there are {columns} columns"
            ));
        }
        let kind = self.kind.map_or("Application", |kind| fields[kind]);
        if !["Application", "NotSet", NONE].contains(&kind) {
            return wrong(format!(
                "a frame of the type `{kind}` was not made by the application"
            ));
        }
        let text = |column: Option<usize>| column.map_or(String::new(), |at| fields[at].to_owned());
        let source = (text(self.process), text(self.chain));
        let frames = found
            .entry(fields[self.application].to_owned())
            .or_insert_with(|| Frames {
                source: source.clone(),
                ..Frames::default()
            });
        if frames.source != source {
            let (process, chain) = source;
            return wrong(format!(
                "a second process or swap chain of {} ({process}, {chain}): their frames are not those of one \
                 picture",
                fields[self.application]
            ));
        }
        let time = fields[self.time];
        if time == NONE {
            return Ok(());
        }
        let Some(time_ns) = frame_times::parse_time(time, NS_PER_MS) else {
            return wrong(format!("`{time}` is no frame time in milliseconds"));
        };
        frames.times_ns.push(time_ns);
        let is_dropped = match self.dropped {
            Some(Dropped::Flag(at)) => Some(fields[at] == "1"),
            Some(Dropped::Shown(at)) => Some(fields[at] == NONE),
            None => None,
        };
        if let Some(is_dropped) = is_dropped {
            *frames.dropped.get_or_insert(0) += usize::from(is_dropped);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "Application,ProcessID,SwapChainAddress,Runtime,SyncInterval,PresentFlags,Dropped,\
        TimeInSeconds,msInPresentAPI,msBetweenPresents,AllowsTearing,PresentMode,msBetweenDisplayChange\n\
        game.exe,7,0xA,DXGI,0,0,0,0.01,0.1,10.0,0,Composed: Flip,10\n\
        game.exe,7,0xA,DXGI,0,0,1,0.05,0.1,40.0,0,Composed: Flip,0\n";
    const V20: &str = "Application,ProcessID,SwapChainAddress,PresentRuntime,CPUStartTime,FrameTime,CPUBusy,\
        DisplayedTime\ngame.exe,7,0xA,DXGI,0.0,10.0,8,10.0\ngame.exe,7,0xA,DXGI,10.0,40.0,8,NA\n";
    const V23: &str = "Application,ProcessID,SwapChainAddress,FrameType,TimeInMs,MsBetweenSimulationStart,\
        MsBetweenPresents,MsBetweenDisplayChange\ngame.exe,7,0xA,Application,10,NA,10.0,10.0\n\
        game.exe,7,0xA,Application,50,NA,40.0,NA\n";

    fn error(text: &str) -> ImportError {
        read_text(Path::new("x.csv"), text).unwrap_err()
    }

    #[test]
    fn the_columns_of_all_versions_are_the_same_frames() {
        for text in [V1, V20, V23] {
            let found = read_text(Path::new("x.csv"), text).unwrap();
            let frames = &found["game.exe"];
            assert_eq!(frames.times_ns, [10_000_000, 40_000_000], "{text}");
            assert_eq!(frames.dropped, Some(1), "{text}");
        }
    }

    #[test]
    fn each_application_is_a_cell() {
        let two = format!("{V20}other.exe,9,0xB,DXGI,0,20.0,8,20.0\n");
        let mut imported = Imported::default();
        add_text(Path::new("x.csv"), &two, "a", &mut imported).unwrap();
        let runs = imported.runs.iter();
        let rates = runs.map(|run| (run.place.workload.as_str(), run.metrics[0].value));
        assert_eq!(
            rates.collect::<Vec<_>>(),
            [("game.exe", 40.0), ("other.exe", 50.0)]
        );
    }

    #[test]
    fn frames_that_cannot_be_told_apart_and_unknown_columns_are_errors() {
        let chains = format!("{V20}game.exe,7,0xB,DXGI,0,20.0,8,20.0\n");
        assert!(error(&chains).what.contains("second process or swap chain"));
        assert_eq!(error(&chains).line, Some(4));
        let generated = V23.replacen("Application,50", "Intel XeSS-FG,50", 1);
        assert!(error(&generated).what.contains("XeSS-FG"));
        let none = "Application,ProcessID,MsBetweenFrames\ngame.exe,7,10\n";
        assert!(error(none).what.contains("MsBetweenPresents"));
        let both = "Application,FrameTime,MsBetweenPresents\ngame.exe,10,10\n";
        assert!(error(both).what.contains("no known version"));
        assert!(
            error(&V1.replace("40.0", "-40.0"))
                .what
                .contains("milliseconds")
        );
        assert!(error("").what.contains("empty"));
        assert!(error(V20.lines().next().unwrap()).what.contains("no frame"));
    }
}
