//! A program under arms that take turns: it runs from before the first turn until it is stopped
//! after the last, and its metrics are in the lines that it prints, or adds to a file, in each window.

use super::Command;
use super::log_growth::Grown;
use super::metric::{Line, OwnMetric, Source};
use doors::read::{discard_rest, line_within};
use doors::started::{Agreed, named_command};
use load::gate::Timing;
use load::phase::{NativeError, Phases};
use load::{Job, Parsed, TurnFigures, sys};
use model::Turns;
use model::printable::last_lines;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two looks whether the program still runs.
const LOOK_NS: u64 = 200_000_000;
/// Time that the program has to end by itself when it is asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Time in which what a program has written is read, when it has ended.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// Runs the program through all turns, and gives the figures of each.
pub(super) fn run(
    command: &Command,
    job: &Job,
    turns: &Turns,
    phases: &mut Phases,
) -> Result<Parsed, NativeError> {
    let failed = NativeError::Generator;
    let mut program = Program::start(command).map_err(failed)?;
    phases.report_ready()?;
    let timing = Timing::from_now(job.workload.warmup_ns, job.measured_ns());
    phases.announce_window(timing.window.begin_ns)?;
    program.wait_until(timing.window.begin_ns, phases)?;
    phases.begin_window(timing.window.begin_ns)?;
    program.wait_until(timing.window.end_ns, phases)?;
    phases.end_window(timing.window.end_ns)?;
    phases.wait_until_seen()?;
    program.check().map_err(failed)?;
    program.stop();
    let printed = program.printed().map_err(failed)?;
    figures(&command.metrics, turns, timing.window.begin_ns, &printed).map_err(failed)
}

/// Lines of one stream, as a thread reads them.
#[derive(Debug, Clone, Default)]
pub(super) struct Printed(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    bytes: usize,
    /// The stream has ended.
    are_all: bool,
}

impl Printed {
    /// Text that is kept of each stream; a program that prints more says too much for its own good.
    pub const MOST_BYTES: usize = 64 << 20;

    /// Keeps a line that has come now.
    pub fn keep_line(&self, bytes: &[u8]) {
        let at_ns = sys::now_ns();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes += bytes.len();
        if kept.bytes <= Self::MOST_BYTES {
            let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
            kept.lines.push(Line { at_ns, text });
        }
    }

    /// Reads to the end of the stream, which is that of all processes that have it.
    fn read(&self, stream: impl Read + Send + 'static) -> Result<(), String> {
        let printed = self.clone();
        let read = move || {
            let mut stream = BufReader::new(stream);
            while let Ok(Some(bytes)) = line_within(&mut stream, Self::MOST_BYTES as u64 + 1) {
                printed.keep_line(&bytes);
            }
            // A line without end is too much, and who writes it is not held up.
            let _ = discard_rest(&mut stream);
            let mut kept = printed.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.are_all = true;
        };
        let builder = std::thread::Builder::new().name("command-output".to_owned());
        let started = builder.spawn(read).map(drop);
        started.map_err(|e| format!("start a thread that reads the program's output: {e}"))
    }

    pub fn take(&self, from: &Source) -> Result<Vec<Line>, String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.bytes > Self::MOST_BYTES {
            true => Err(format!(
                "the program wrote more than {} MiB to {from}; let it print less often",
                Self::MOST_BYTES >> 20
            )),
            false => Ok(std::mem::take(&mut kept.lines)),
        }
    }

    /// The last words, for a message, of a program that has ended.
    fn end(&self) -> String {
        let until = Instant::now() + READ_WITHIN;
        let are_all = || {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .are_all
        };
        while !are_all() && Instant::now() < until {
            sys::sleep_ns(1_000_000);
        }
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = kept.lines.iter().rev().take(3).rev();
        let texts: Vec<&str> = last.map(|line| line.text.as_str()).collect();
        last_lines(&texts.join("\n"), 3, " | ")
    }
}

/// The program while it runs. It is killed with the processes of its group when this is dropped.
struct Program {
    name: String,
    child: Child,
    stdout: Printed,
    stderr: Printed,
    /// Files that have figures, by their paths.
    files: BTreeMap<String, Grown>,
    /// Its ID may be another one's.
    is_reaped: bool,
}

impl Program {
    fn start(command: &Command) -> Result<Self, String> {
        let [name, arguments @ ..] = command.argv.as_slice() else {
            return Err("there is no command".to_owned());
        };
        let files = command.files().map(|path| {
            let grown = Grown::follow(PathBuf::from(path))?;
            Ok((path.clone(), grown))
        });
        let files = files.collect::<Result<_, String>>()?;
        let child = named_command(name, Agreed::by_trial())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let child = child.map_err(|e| format!("start {name}: {e}"))?;
        let mut program = Program {
            name: name.clone(),
            child,
            stdout: Printed::default(),
            stderr: Printed::default(),
            files,
            is_reaped: false,
        };
        if let Some(stdout) = program.child.stdout.take() {
            program.stdout.read(stdout)?;
        }
        if let Some(stderr) = program.child.stderr.take() {
            program.stderr.read(stderr)?;
        }
        Ok(program)
    }

    /// Waits for a time while both the agent and the program are there.
    fn wait_until(&mut self, at_ns: u64, phases: &mut Phases) -> Result<(), NativeError> {
        while sys::now_ns() < at_ns {
            self.check().map_err(NativeError::Generator)?;
            phases.wait_until(at_ns.min(sys::now_ns() + LOOK_NS))?;
        }
        Ok(())
    }

    /// An error where the program has ended by itself.
    fn check(&mut self) -> Result<(), String> {
        if !self.has_ended() {
            return Ok(());
        }
        self.kill();
        let status = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "with an unknown status".to_owned(),
        };
        let said = [self.stderr.end(), self.stdout.end()];
        let said = said.into_iter().find(|said| !said.is_empty());
        Err(format!(
            "{} ended before the last turn ({status}); where arms take turns it must run until it is \
             stopped{}",
            self.name,
            said.map_or_else(String::new, |said| format!(": {said}"))
        ))
    }

    /// It stays to be reaped, so that its ID is that of its group.
    fn has_ended(&self) -> bool {
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let Some(pid) = self.pid().filter(|_| !self.is_reaped) else {
            return true;
        };
        !matches!(waitid(WaitId::Pid(pid), how), Ok(None))
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Asks the processes of the program to end, and kills those that do not.
    fn stop(&mut self) {
        self.signal(Signal::TERM);
        let until = Instant::now() + ENDS_WITHIN;
        while Instant::now() < until && !self.has_ended() {
            sys::sleep_ns(10_000_000);
        }
        self.kill();
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        if !self.is_reaped {
            // Why it ended is asked before.
            let _ = self.child.wait();
            self.is_reaped = true;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.pid().filter(|_| !self.is_reaped) {
            // A group that has ended needs none.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Lines of standard output, of standard error and of the files.
    fn printed(&mut self) -> Result<BTreeMap<Source, Vec<Line>>, String> {
        let mut lines = BTreeMap::new();
        for (stream, from) in [
            (&self.stdout, Source::Stdout),
            (&self.stderr, Source::Stderr),
        ] {
            lines.insert(from.clone(), stream.take(&from)?);
        }
        for (path, grown) in &mut self.files {
            let from = Source::File(path.clone());
            lines.insert(from.clone(), grown.take_lines(&from)?);
        }
        Ok(lines)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Figures of each turn. A line belongs to the window in which it came.
pub(crate) fn figures(
    metrics: &[OwnMetric],
    turns: &Turns,
    begin_ns: u64,
    printed: &BTreeMap<Source, Vec<Line>>,
) -> Result<Parsed, String> {
    let mut of_turns = vec![TurnFigures::default(); turns.order.len()];
    let mut parsed = Parsed::default();
    for metric in metrics {
        let lines = printed.get(&metric.from);
        let timed = metric.timed_figures(lines.map_or(&[], Vec::as_slice))?;
        let mut halves = vec![[const { Vec::new() }; 2]; turns.order.len()];
        for (at_ns, figure) in &timed {
            let since_ns = at_ns.checked_sub(begin_ns);
            let Some((turn, half)) = since_ns.and_then(|ns| turns.lengths.half_at(ns)) else {
                continue;
            };
            let turn = usize::try_from(turn).unwrap_or(usize::MAX);
            if let Some(halves) = halves.get_mut(turn) {
                halves[half].push((*at_ns, figure.value));
            }
        }
        for (figures, halves) in of_turns.iter_mut().zip(&halves) {
            let whole = halves.concat();
            let parts = [&whole, &halves[0], &halves[1]];
            let into = [&mut figures.whole].into_iter().chain(&mut figures.halves);
            for (into, part) in into.zip(parts) {
                if let Some(value) = metric.pick.pick_from(part) {
                    into.insert(metric.name.clone(), value);
                }
            }
        }
        if of_turns
            .iter()
            .all(|turn| !turn.whole.contains_key(&metric.name))
        {
            return Err(format!(
                "the metric `{}`: no window has enough lines with it in {}; does the program print as it \
                 goes? A program whose output is no terminal may keep it back: `stdbuf -oL` helps",
                metric.name, metric.from
            ));
        }
        // The value is that of each arm's windows.
        let figures = timed.iter().map(|(_, figure)| figure);
        parsed.metrics.push(metric.measurement(0.0, figures));
    }
    parsed.turns = of_turns;
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use crate::command::{Command, Find, KIND, OwnMetric, Pick, Source};
    use load::{Driver, Job, NativeError, Parsed};
    use model::{Better, InPlace, Turn, Turns};
    use std::time::{Duration, Instant};

    /// A count that goes on by one each ten milliseconds.
    const COUNTS: &str = "i=0; while :; do i=$((i+1)); echo \"done $i\"; sleep 0.01; done";

    fn command(script: &str, regex: &str, pick: Pick) -> Command {
        Command {
            argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
            directory: None,
            prepare: Vec::new(),
            metrics: vec![OwnMetric {
                name: "done_per_sec".to_owned(),
                unit: Some("1/s".to_owned()),
                better: Better::Higher,
                find: Find::Regex(regex.to_owned()),
                from: Source::Stdout,
                part: Default::default(),
                thousands: None,
                pick,
                scale: model::Scale::Ratio,
                smallest_effect: None,
            }],
        }
    }

    fn run(command: &Command) -> Result<Parsed, String> {
        let turn = |arm| Turn { arm, pair: 0 };
        let turns = Turns {
            // On a busy machine a percentile has enough lines in half a second.
            lengths: InPlace::new(500_000_000),
            order: [0, 1].map(turn).into(),
        };
        let job = Job {
            turns: Some(turns),
            ..testing::job(KIND.with_params(command))
        };
        assert!(command.launch(&job).phased, "the load starts the program");
        testing::generate(command, &job).map_err(|error| match error {
            NativeError::Generator(why) => why,
            other => panic!("{other}"),
        })
    }

    #[test]
    fn a_count_that_is_printed_becomes_a_rate_in_each_window_and_in_its_halves() {
        let parsed = run(&command(COUNTS, r"done (?<v>\d+)", Pick::Rate)).unwrap();
        assert_eq!(parsed.turns.len(), 2);
        for turn in &parsed.turns {
            // At most 100 a second; on a busy machine fewer.
            let rates = turn.halves.iter().chain([&turn.whole]);
            for rate in rates.map(|figures| figures["done_per_sec"]) {
                assert!((5.0..=120.0).contains(&rate), "{turn:?}");
            }
        }
        assert_eq!(parsed.metrics[0].unit, "1/s");
    }

    #[test]
    fn a_figure_that_each_line_has_is_picked_from_those_of_the_window() {
        let mean = run(&command(COUNTS, r"done (?<v>\d+)", Pick::Mean)).unwrap();
        let of = |turn: usize| mean.turns[turn].whole["done_per_sec"];
        assert!(of(0) < of(1), "{:?}", mean.turns);
    }

    #[test]
    fn a_percentile_is_picked_from_the_lines_that_a_file_got_in_the_window() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("frames.csv").display().to_string();
        std::fs::write(&log, "frame,took\n0,9000000\n").unwrap();
        let script = format!(
            "echo os,cpu > {log}; echo frame,took >> {log}; i=0; while :; do i=$((i+1)); \
             echo \"1,$i\" >> {log}; sleep 0.01; done"
        );
        let mut command = command(&script, "", Pick::try_from("p50".to_owned()).unwrap());
        for find in [
            Find::Csv("took".to_owned()),
            Find::Regex(r"^1,(?<v>\d+)".to_owned()),
        ] {
            command.metrics[0].find = find;
            command.metrics[0].from = Source::File(log.clone());
            let parsed = run(&command).unwrap();
            let of = |turn: usize| parsed.turns[turn].whole["done_per_sec"];
            // A line of the program before it would be larger than all others.
            assert!(of(0) < of(1) && of(1) < 9_000_000.0, "{:?}", parsed.turns);
        }
    }

    #[test]
    fn a_program_that_ends_is_a_failure_with_its_last_words() {
        let started = Instant::now();
        let why = run(&command(
            "echo done 1; echo no room >&2; exit 3",
            "(?<v>1)",
            Pick::Rate,
        ));
        let why = why.unwrap_err();
        assert!(why.contains("ended before the last turn"), "{why}");
        assert!(
            why.contains("exit status: 3") && why.contains("no room"),
            "{why}"
        );
        assert!(started.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_program_that_keeps_its_lines_back_is_told_what_to_do() {
        let silent = run(&command("sleep 60", r"done (?<v>\d+)", Pick::Rate)).unwrap_err();
        assert!(silent.contains("stdbuf"), "{silent}");
    }

    #[test]
    fn processes_that_the_program_started_end_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let script = format!(
            "trap '' TERM; (trap '' TERM; while :; do sleep 0.1; done) & echo $! > {}; {COUNTS}",
            pid_file.display()
        );
        run(&command(&script, r"done (?<v>\d+)", Pick::Rate)).unwrap();
        let pid = std::fs::read_to_string(pid_file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        let until = Instant::now() + Duration::from_secs(10);
        let is_there = || {
            let stat = std::fs::read_to_string(&stat).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while is_there() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!is_there());
    }
}
