//! Logs of MangoHud: `PROGRAM_DATE.csv`, two lines about the machine and a line for each frame.
//!
//! The log does not say its unit: `frametime` is in microseconds up to 0.6 and in milliseconds from 0.7
//! on. The rate beside it does, since the product of both is a second.

use crate::files::{files_of, read_by_arm};
use crate::frame_times::{self, Rules};
use crate::{ImportError, Imported, Run};
use std::path::{Path, PathBuf};

/// Name of the tool.
pub const NAME: &str = "mangohud";

const REMEDY: &str =
    "give the log that MangoHud wrote (output_folder, autostart_log), or a directory of them";
/// Names of what is known of the machine.
const MACHINE: &str = "os,cpu,gpu,ram,kernel,driver,cpuscheduler";
/// End of the names of summaries, which MangoHud writes beside its logs.
const SUMMARY: &str = "_summary.csv";
/// Largest difference of the time that passed from the sum of all frames, as a factor.
const SAME_LENGTH: f64 = 1.5;

/// Reads logs and directories of logs. `ARM=PATH` gives the arm a name; without it that is the
/// directory, or the file without its extension.
pub fn read(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    let logs = |path: &Path| {
        let mut files = files_of(path, Some("csv"), REMEDY)?;
        files.retain(|file| file == path || !file.to_string_lossy().ends_with(SUMMARY));
        Ok(files)
    };
    read_by_arm(paths, logs, add_text)
}

/// Adds the log in this text to an arm.
pub fn add_text(
    path: &Path,
    text: &str,
    arm: &str,
    imported: &mut Imported,
) -> Result<(), ImportError> {
    let log = read_text(path, text)?;
    let mut run = Run::new(
        arm,
        frame_times::place(&program(path), "MangoHud"),
        path.display().to_string(),
    );
    run.metrics = frame_times::figures(&log.times_ns, None, Rules::MangoHud);
    run.elapsed_ns = frame_times::length_ns(&log.times_ns);
    imported.add_run(run);
    imported.ensure_arm(arm).facts.extend(log.facts);
    Ok(())
}

/// A log as it is read.
#[derive(Debug, Default, PartialEq)]
pub struct Log {
    /// Time of each frame, in nanoseconds.
    pub times_ns: Vec<u64>,
    /// Facts about the machine, by the names that MangoHud gives them.
    pub facts: Vec<(String, String)>,
}

/// A frame as it is written.
struct Frame {
    line: usize,
    fps: f64,
    time: String,
    elapsed_ns: f64,
}

/// Program of a log `PROGRAM_2026-11-28_20-15-00.csv`.
fn program(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_date = |c: char| c.is_ascii_digit() || c == '-' || c == '_';
    let name = stem.trim_end_matches(is_date);
    match name.is_empty() {
        true => stem.into_owned(),
        false => name.to_owned(),
    }
}

/// Reads the text of one log.
pub fn read_text(path: &Path, text: &str) -> Result<Log, ImportError> {
    let mut log = Log::default();
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let columns = read_head(path, &mut lines, &mut log)?;
    let frames = lines.filter(|(_, line)| !line.trim().is_empty());
    let frames = frames.map(|(at, line)| columns.read_frame(path, at, line));
    let frames: Vec<Frame> = frames.collect::<Result<_, _>>()?;
    let unit_ns = find_unit(path, &frames)?;
    for frame in &frames {
        let time = frame_times::parse_time(&frame.time, unit_ns).ok_or_else(|| {
            let what = format!("`{}` is no frame time", frame.time);
            ImportError::in_line(path, frame.line, what, REMEDY)
        })?;
        log.times_ns.push(time);
    }
    check_whole(path, &frames, &log.times_ns)?;
    Ok(log)
}

/// Places of the columns.
struct Columns {
    names: Vec<String>,
    fps: usize,
    time: usize,
    elapsed: usize,
}

/// Reads up to the names of the columns of frames.
fn read_head<'t>(
    path: &Path,
    lines: &mut impl Iterator<Item = (usize, &'t str)>,
    log: &mut Log,
) -> Result<Columns, ImportError> {
    while let Some((at, line)) = lines.next() {
        let line = line.trim_start_matches('\u{feff}').trim();
        match line {
            MACHINE => {
                let values = lines.next().map_or("", |(_, values)| values).trim();
                let fields: Vec<&str> = values.split(',').collect();
                let names: Vec<&str> = MACHINE.split(',').collect();
                // A name with a comma in it moves all others.
                if fields.len() == names.len() {
                    let facts = names.into_iter().zip(fields);
                    let facts = facts.filter(|(_, value)| !value.is_empty());
                    log.facts.extend(
                        facts.map(|(name, value)| (name.to_owned(), value.trim().to_owned())),
                    );
                }
            }
            _ if line.starts_with("fps,") => return Columns::find(path, at, line),
            _ if line.starts_with("0.1% Min FPS") => {
                let what = "this is MangoHud's summary, which has no frames";
                return Err(ImportError::in_line(
                    path,
                    at,
                    what,
                    "give the log beside it",
                ));
            }
            // With `log_versioning`: the version of the format, that of MangoHud, and headings.
            "" | "v1" => {}
            _ if line.starts_with("-----") => {}
            _ if line.starts_with(|c: char| c.is_ascii_digit()) && !line.contains(',') => {}
            other => {
                let what = format!("`{other}` is in no version of the log that is known");
                return Err(ImportError::in_line(path, at, what, REMEDY));
            }
        }
    }
    let what = "there is no line `fps,frametime,…` in it";
    Err(ImportError::in_file(path, what, REMEDY))
}

impl Columns {
    fn find(path: &Path, at: usize, line: &str) -> Result<Self, ImportError> {
        let names: Vec<String> = line.split(',').map(|name| name.trim().to_owned()).collect();
        let place = |wanted: &str| {
            names.iter().position(|name| name == wanted).ok_or_else(|| {
                let what = format!("there is no column `{wanted}`");
                let remedy = "record it with MangoHud 0.6 or a later version";
                ImportError::in_line(path, at, what, remedy)
            })
        };
        Ok(Columns {
            fps: place("fps")?,
            time: place("frametime")?,
            elapsed: place("elapsed")?,
            names,
        })
    }

    fn read_frame(&self, path: &Path, at: usize, line: &str) -> Result<Frame, ImportError> {
        let fields: Vec<&str> = line.trim().split(',').collect();
        let wrong = |what: String| ImportError::in_line(path, at, what, REMEDY);
        if fields.len() != self.names.len() {
            let (has, columns) = (fields.len(), self.names.len());
            let what = format!("it has {has} fields, and there are {columns} columns");
            return Err(wrong(what));
        }
        let number = |index: usize| {
            let text = fields[index].trim();
            let number: Option<f64> = text.parse().ok();
            let number = number.filter(|number| number.is_finite());
            number.ok_or_else(|| wrong(format!("`{text}` is no number")))
        };
        Ok(Frame {
            line: at,
            fps: number(self.fps)?,
            time: fields[self.time].to_owned(),
            elapsed_ns: number(self.elapsed)?,
        })
    }
}

/// Nanoseconds of the unit of the frame times. A frame's rate may be that of the last half second, so it is
/// the middle one of all products that counts.
fn find_unit(path: &Path, frames: &[Frame]) -> Result<f64, ImportError> {
    let product = |frame: &Frame| Some(frame.fps * frame.time.trim().parse::<f64>().ok()?);
    let mut products: Vec<f64> = frames.iter().filter_map(product).collect();
    products.sort_by(f64::total_cmp);
    let Some(middle) = products.get(products.len() / 2) else {
        let what = "there is no frame in it";
        return Err(ImportError::in_file(path, what, REMEDY));
    };
    let units = [(1e3, 1e6), (1e6, 1e3)];
    let is_near = |(second, _): &&(f64, f64)| (second / 10.0..second * 10.0).contains(middle);
    let unit = units.iter().find(is_near).map(|(_, unit_ns)| *unit_ns);
    unit.ok_or_else(|| {
        let what = format!(
            "fps times frametime is {middle:.0}, which is a second neither in milliseconds nor in \
             microseconds"
        );
        ImportError::in_file(path, what, REMEDY)
    })
}

/// An error where frames are missing: with `log_interval` MangoHud writes one of many, and lows would
/// be those of a sample.
fn check_whole(path: &Path, frames: &[Frame], times_ns: &[u64]) -> Result<(), ImportError> {
    let ([first, .., last], [_, after @ ..]) = (frames, times_ns) else {
        return Ok(());
    };
    let passed_ns = last.elapsed_ns - first.elapsed_ns;
    let sum_ns = frame_times::length_ns(after) as f64;
    if passed_ns > sum_ns * SAME_LENGTH {
        let what = format!(
            "its frames are {:.1} s of the {:.1} s that passed: it is a sample of the frames",
            sum_ns / 1e9,
            passed_ns / 1e9
        );
        let remedy = "record every frame: log_interval=0";
        return Err(ImportError::in_file(path, what, remedy));
    }
    if sum_ns > passed_ns * SAME_LENGTH {
        let what = format!(
            "its frames are {:.1} s, and `elapsed` says that {:.1} s passed",
            sum_ns / 1e9,
            passed_ns / 1e9
        );
        return Err(ImportError::in_file(path, what, REMEDY));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS_06: &str = "fps,frametime,cpu_load,gpu_load,elapsed";
    const COLUMNS_08: &str = "fps,frametime,cpu_load,cpu_power,gpu_load,swap_used,elapsed";

    /// A log of these frames in milliseconds, in the form of 0.8 or in that of 0.6.
    fn log(times_ms: &[f64], is_new: bool) -> String {
        let columns = if is_new { COLUMNS_08 } else { COLUMNS_06 };
        let mut text = format!("{MACHINE}\nDebian,CPU,GPU,32000,6.12.1,,performance\n{columns}\n");
        let mut elapsed_ns = 0.0;
        for ms in times_ms {
            elapsed_ns += ms * 1e6;
            let fps = 1000.0 / ms;
            text += &match is_new {
                true => format!("{fps},{ms},10,0,50,0,{elapsed_ns:.0}\n"),
                false => format!("{fps},{:.0},10,50,{elapsed_ns:.0}\n", ms * 1e3),
            };
        }
        text
    }

    fn error(text: &str) -> ImportError {
        read_text(Path::new("x.csv"), text).unwrap_err()
    }

    #[test]
    fn microseconds_of_old_versions_and_milliseconds_of_new_ones_are_the_same_times() {
        let times_ms = [10.0, 10.0, 12.5, 40.0];
        let expected = [10_000_000, 10_000_000, 12_500_000, 40_000_000];
        for is_new in [false, true] {
            let log = read_text(Path::new("x.csv"), &log(&times_ms, is_new)).unwrap();
            assert_eq!(log.times_ns, expected, "{is_new}");
            assert!(
                log.facts
                    .contains(&("kernel".to_owned(), "6.12.1".to_owned()))
            );
        }
        let versioned = log(&times_ms, true).replace(
            MACHINE,
            &format!("v1\n0.8.1\n---------------------SYSTEM INFO---------------------\n{MACHINE}"),
        );
        let log = read_text(Path::new("x.csv"), &versioned).unwrap();
        assert_eq!(log.times_ns, expected);
    }

    #[test]
    fn a_log_is_a_run_of_its_program() {
        let mut imported = Imported::default();
        let path = Path::new("logs/vkcube_2026-11-28_20-15-00.csv");
        add_text(path, &log(&[10.0, 30.0], true), "lavd", &mut imported).unwrap();
        let run = &imported.runs[0];
        assert_eq!(
            (run.arm.as_str(), run.place.workload.as_str()),
            ("lavd", "vkcube")
        );
        assert_eq!(run.elapsed_ns, 40_000_000);
        assert_eq!(run.metrics[0].value, 50.0);
        assert_eq!(imported.arms[0].facts["cpuscheduler"], "performance");
    }

    #[test]
    fn another_unit_a_sample_and_another_version_are_errors() {
        let seconds = log(&[10.0; 4], true).replace(",10,10,0", ",0.010,10,0");
        assert!(
            error(&seconds).what.contains("neither in milliseconds"),
            "{seconds}"
        );
        let mut sampled = format!("{COLUMNS_06}\n");
        for n in 0..10 {
            sampled += &format!("100,10000,1,1,{}\n", n * 100_000_000);
        }
        assert!(error(&sampled).remedy.contains("log_interval=0"));
        let summary = "0.1% Min FPS,1% Min FPS,97% Percentile FPS\n1,2,3\n";
        assert!(error(summary).what.contains("summary"));
        let unknown = error("v2\n");
        assert!(unknown.what.contains("v2") && unknown.line == Some(1));
        let no_times = error("fps,cpu_load,elapsed\n60,10,100\n");
        assert!(no_times.what.contains("`frametime`"));
        let cut = log(&[10.0, 10.0], true) + "100,10";
        assert_eq!(error(&cut).line, Some(6));
        assert!(error(&format!("{COLUMNS_06}\n")).what.contains("no frame"));
    }
}
