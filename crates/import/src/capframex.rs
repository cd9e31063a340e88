//! Records of CapFrameX: JSON with `Info` and `Runs`, each of which has its frame times in milliseconds
//! as `CaptureData.MsBetweenPresents`.

use crate::files::{files_of, read_by_arm};
use crate::frame_times::{self, Rules};
use crate::{ImportError, Imported, Run};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Name of the tool.
pub const NAME: &str = "capframex";

const REMEDY: &str = "give CapFrameX-*.json as CapFrameX wrote it, or a directory of them";
const NS_PER_MS: f64 = 1e6;
/// Largest difference of the time that passed from the sum of all frames, as a factor.
const SAME_LENGTH: f64 = 1.5;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Session {
    #[serde(default)]
    info: Info,
    runs: Vec<Captured>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Info {
    process_name: Option<String>,
    game_name: Option<String>,
    processor: Option<String>,
    #[serde(rename = "OS")]
    os: Option<String>,
    #[serde(rename = "GPU")]
    gpu: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Captured {
    capture_data: CaptureData,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CaptureData {
    time_in_seconds: Option<Vec<f64>>,
    ms_between_presents: Vec<f64>,
    dropped: Option<Vec<bool>>,
}

/// Reads records and directories of records. `ARM=PATH` gives the arm a name; without it that is the
/// directory, or the file without its extension.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    read_by_arm(paths, |path| files_of(path, Some("json"), REMEDY), add_text)
}

/// Adds the runs of this record to an arm.
pub fn add_text(
    path: &Path,
    text: &str,
    arm: &str,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let text = text.trim_start_matches('\u{feff}');
    let session: Session =
        serde_json::from_str(text).map_err(|error| ImportError::in_json(path, &error, REMEDY))?;
    let info = session.info;
    let names = [info.game_name, info.process_name].into_iter().flatten();
    let program = names.into_iter().find(|name| !name.trim().is_empty());
    let program = program.unwrap_or_else(|| "CapFrameX".to_owned());
    for (index, captured) in session.runs.iter().enumerate() {
        let source = format!("{}, run {}", path.display(), index + 1);
        let times_ns = captured.capture_data.times_ns(path, index + 1)?;
        let dropped = captured.capture_data.dropped.as_ref();
        let dropped = dropped.map(|all| all.iter().filter(|dropped| **dropped).count());
        let mut run = Run::new(arm, frame_times::place(&program, "CapFrameX"), source);
        run.metrics = frame_times::figures(&times_ns, dropped, Rules::CapFrameX);
        run.elapsed_ns = frame_times::length_ns(&times_ns);
        imported.add_run(run);
    }
    if session.runs.is_empty() {
        return Err(ImportError::in_file(path, "there is no run in it", REMEDY));
    }
    let facts = [("os", info.os), ("cpu", info.processor), ("gpu", info.gpu)];
    let facts = facts.into_iter();
    let facts = facts.filter_map(|(fact, value)| Some((fact.to_owned(), value?)));
    imported.ensure_arm(arm).facts.extend(facts);
    Ok(())
}

impl CaptureData {
    fn times_ns(&self, path: &Path, run: usize) -> Result<Vec<u64>, ImportError> {
        let wrong = |what: String| {
            let what = format!("run {run}: {what}");
            ImportError::in_file(path, what, REMEDY)
        };
        let time = |ms: &f64| {
            let ns = frame_times::to_ns(*ms, NS_PER_MS);
            ns.ok_or_else(|| wrong(format!("`{ms}` is no frame time in milliseconds")))
        };
        let times: Vec<u64> = self
            .ms_between_presents
            .iter()
            .map(time)
            .collect::<Result<_, _>>()?;
        let Some((_, after)) = times.split_first() else {
            return Err(wrong("there is no frame in it".to_owned()));
        };
        let clock = self.time_in_seconds.as_deref().unwrap_or_default();
        let (Some(first), Some(last), [_, ..]) = (clock.first(), clock.last(), after) else {
            return Ok(times);
        };
        let (passed, sum) = (last - first, frame_times::length_ns(after) as f64 / 1e9);
        let is_same = passed <= sum * SAME_LENGTH && sum <= passed * SAME_LENGTH;
        match is_same {
            true => Ok(times),
            false => Err(wrong(format!(
                "its frames are {sum:.3} s, and `TimeInSeconds` says that {passed:.3} s passed"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "\u{feff}{\"Info\":{\"AppVersion\":\"1.7.3\",\"ProcessName\":\"game.exe\",\
        \"GameName\":\"A game\",\"OS\":\"Linux\",\"Processor\":\"CPU\"},\"Runs\":[{\"Hash\":\"x\",\"CaptureData\":\
        {\"TimeInSeconds\":[0.01,0.05],\"MsBetweenPresents\":[10.0,40.0],\"Dropped\":[false,true]}},\
        {\"CaptureData\":{\"MsBetweenPresents\":[20.0]}}]}";

    fn read(text: &str) -> Result<Imported, ImportError> {
        let mut imported = Imported::default();
        add_text(Path::new("x.json"), text, "a", &mut imported).map(|()| imported)
    }

    #[test]
    fn each_run_of_a_record_is_a_run_of_its_game() {
        let imported = read(RECORD).unwrap();
        let runs = imported.runs.iter();
        let rates = runs.map(|run| (run.place.workload.as_str(), run.metrics[0].value));
        assert_eq!(
            rates.collect::<Vec<_>>(),
            [("A game", 40.0), ("A game", 50.0)]
        );
        let dropped = |run: &Run| {
            let mut metrics = run.metrics.iter();
            metrics.any(|metric| metric.metric == "dropped_frames_per_min")
        };
        assert_eq!(
            imported.runs.iter().map(dropped).collect::<Vec<_>>(),
            [true, false]
        );
        assert_eq!(imported.arms[0].facts["cpu"], "CPU");
    }

    #[test]
    fn seconds_in_place_of_milliseconds_and_records_without_frames_are_errors() {
        let error = |text: &str| read(text).unwrap_err().what;
        let seconds = RECORD.replace("[10.0,40.0]", "[0.010,0.040]");
        assert!(
            error(&seconds).contains("TimeInSeconds"),
            "{}",
            error(&seconds)
        );
        assert!(error(&RECORD.replace("20.0", "-1")).contains("milliseconds"));
        assert!(error(&RECORD.replace("[20.0]", "[]")).contains("no frame"));
        assert!(error("{\"Info\":{},\"Runs\":[]}").contains("no run"));
        assert!(error("{\"Runs\":[{\"CaptureData\":{}}]}").contains("MsBetweenPresents"));
        assert!(error("[]").contains("not valid"));
    }
}
