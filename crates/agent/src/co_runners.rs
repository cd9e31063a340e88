//! Loads that work and are measured in the window of the load of a trial.
//!
//! Those that say when they are ready are told to begin with the load, and close their windows by themselves. A program
//! with a window of its own is started then, and one that knows nothing of windows when that of the load opens. All
//! have the same lengths of time, so that their windows are nearly the same; a trial in which they are not does not count.

use crate::bell;
use crate::load_files::Files;
use crate::load_process::Purpose;
use crate::process::{Event, Process};
use crate::stop::Stop;
use crate::trial::{Trial, failed_with};
use load::latency::OVERLOADED;
use load::{Driver, Job, Launch, Output, Parsed, Window, phase};
use model::{Measurement, Workload, format_duration_ns};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Part of a window by which the end of a co-runner may lie before or after its end, and the time that a program may
/// take to start and to end beside.
const APART_SHARE: u32 = 10;
const APART_BESIDE: Duration = Duration::from_millis(500);

/// A co-runner with its process, as far as that is started.
pub struct CoRunner {
    name: String,
    driver: Box<dyn Driver>,
    job: Job,
    launch: Launch,
    files: Files,
    /// True of a program whose window is its life, which starts when that of the load opens.
    is_whole: bool,
    process: Option<Process>,
    /// The moment at which its window was seen to have closed.
    closed: Option<Instant>,
    /// Tells when a program ended that knows nothing of windows.
    watch: Option<JoinHandle<Instant>>,
}

/// The job of a co-runner in a trial with this one.
fn job_beside(co_runner: Workload, main: &Job) -> Job {
    let load = co_runner.loads.first().copied().unwrap_or(model::Load::One);
    Job {
        calibration: main.calibration.of_co_runner(&co_runner.name),
        // Two clients of one rate are not to ask at the same moments.
        seed: mix_seed(main.seed, &co_runner.name),
        server: main.server,
        ..Job::new(&co_runner, load, main.cpus)
    }
}

/// Seed of a load beside the one that has this seed.
fn mix_seed(seed: u64, name: &str) -> u64 {
    let mix = |seed: u64, byte: u8| (seed ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    name.bytes().fold(seed, mix)
}

impl Trial<'_, '_> {
    /// Makes ready what the co-runners need before they start.
    pub fn prepare_co_runners(&mut self, main: &Job) -> Result<(), Stop> {
        let spec = self.spec;
        let mut co_runners = Vec::new();
        for workload in spec.workload.list_loads().skip(1) {
            let mut workload = workload.into_owned();
            let services = &spec.workload.services;
            workload.kind = self.stage.roles.named_in(services, &workload.kind);
            let name = workload.name.clone();
            let def = load::kind::find(workload.kind.name());
            let is_whole = def.is_some_and(|def| def.window == Window::Whole);
            let driver = load::driver(&workload.kind).map_err(Stop::Failed)?;
            let job = job_beside(workload, main);
            let launch = driver.launch(&job);
            self.prepare(&launch).map_err(|stop| stop.about(&name))?;
            co_runners.push(CoRunner {
                files: Files::before_launch(&launch),
                name,
                driver,
                job,
                launch,
                is_whole,
                process: None,
                closed: None,
                watch: None,
            });
        }
        self.co_runners = co_runners;
        Ok(())
    }

    /// Starts those that say when they are ready, and waits until they are.
    pub fn start_co_runners(&mut self) -> Result<(), Stop> {
        self.each_co_runner(|trial, co_runner| {
            if !co_runner.launch.phased {
                return Ok(());
            }
            let mut process = trial.start_process(&co_runner.launch, Purpose::CoRunner)?;
            trial.stage.co_runners.push(process.pid);
            bell::expect_line(trial, &mut process, phase::READY)?;
            co_runner.process = Some(process);
            Ok(())
        })
    }

    /// Lets those work that have a warm-up: that of the load begins now.
    pub fn begin_co_runners(&mut self) -> Result<(), Stop> {
        self.each_co_runner(|trial, co_runner| match &mut co_runner.process {
            Some(process) => {
                process.say(phase::GO);
                Ok(())
            }
            None if co_runner.is_whole => Ok(()),
            None => trial.start_program_beside(co_runner),
        })
    }

    /// Starts those that know nothing of windows: that of the load opens now.
    pub fn open_co_runners(&mut self) -> Result<(), Stop> {
        self.each_co_runner(|trial, co_runner| match co_runner.process {
            Some(_) => Ok(()),
            None => trial.start_program_beside(co_runner),
        })
    }

    fn start_program_beside(&mut self, co_runner: &mut CoRunner) -> Result<(), Stop> {
        let process = self.start_process(&co_runner.launch, Purpose::CoRunner)?;
        self.stage.co_runners.push(process.pid);
        let watch = process.watch_end();
        co_runner.watch = Some(watch.map_err(|e| Stop::Failed(e.to_string()))?);
        co_runner.process = Some(process);
        Ok(())
    }

    /// True if new threads of programs beside the load may have to be given what they cannot inherit.
    pub fn has_programs_beside(&self) -> bool {
        self.co_runners
            .iter()
            .any(|co_runner| !co_runner.launch.phased)
    }

    /// Notes whose windows have closed by now.
    pub fn look_at_co_runners(&mut self) -> Result<(), Stop> {
        self.each_co_runner(|trial, co_runner| {
            let CoRunner {
                process,
                closed,
                watch,
                ..
            } = co_runner;
            let Some(process) = process.as_mut().filter(|_| watch.is_none()) else {
                return Ok(());
            };
            while closed.is_none() {
                match process.wait(trial.context.interrupt, Instant::now()) {
                    Event::Line(line) if line == phase::END => *closed = Some(Instant::now()),
                    Event::Line(other) => trial.hear_line(&other)?,
                    Event::Exited => return Err(bell::ended_early(process, phase::END)),
                    Event::Interrupted | Event::Timeout => break,
                }
            }
            Ok(())
        })
    }

    /// Waits until the windows of all have closed, which is to be about when that of the load did.
    pub fn close_co_runners(&mut self) -> Result<(), Stop> {
        let closed = Instant::now();
        let window_ns = self.window_ns.1.saturating_sub(self.window_ns.0);
        let most = Duration::from_nanos(window_ns) / APART_SHARE + APART_BESIDE;
        self.each_co_runner(|trial, co_runner| {
            let Some(process) = &mut co_runner.process else {
                return Ok(());
            };
            let ended = match (co_runner.watch.take(), co_runner.closed) {
                (None, Some(closed)) => closed,
                (None, None) => {
                    bell::expect_line(trial, process, phase::END)?;
                    Instant::now()
                }
                (Some(watch), _) => {
                    bell::wait_for_exit(trial, process)?;
                    // One that failed has a better reason than when that was.
                    if process.exit_code() != Some(0) {
                        return Ok(());
                    }
                    watch.join().unwrap_or_else(|_| Instant::now())
                }
            };
            match find_gap(closed, ended, most) {
                None => Ok(()),
                Some(why) => Err(Stop::Void(why)),
            }
        })
    }

    /// Lets the co-runners end, whose windows were looked at.
    pub fn release_co_runners(&mut self) -> Result<(), Stop> {
        self.each_co_runner(|_, co_runner| match &mut co_runner.process {
            Some(process) if co_runner.launch.phased => {
                process.say(phase::SEEN);
                Ok(())
            }
            _ => Ok(()),
        })
    }

    /// Waits until all of them have ended.
    pub fn wait_for_co_runners(&mut self) -> Result<(), Stop> {
        self.each_co_runner(|trial, co_runner| match &mut co_runner.process {
            Some(process) => bell::wait_for_exit(trial, process),
            None => Ok(()),
        })
    }

    /// The figures of the co-runners, which have ended, and their files.
    pub fn read_co_runners(&mut self) -> Result<Vec<Measurement>, Stop> {
        let mut figures = Vec::new();
        for mut co_runner in std::mem::take(&mut self.co_runners) {
            let Some(process) = co_runner.process.take() else {
                continue;
            };
            let (mut output, _) = self
                .end_load(process, Ok(()), &format!("{}-", co_runner.name))
                .map_err(|stop| stop.about(&co_runner.name))?;
            output.files = co_runner.files.texts();
            let (name, workload) = (&co_runner.name, &co_runner.job.workload);
            let read = read(&*co_runner.driver, &co_runner.job, &output);
            let mut parsed = read.map_err(|stop| stop.about(name))?;
            for file in &mut parsed.files {
                file.name = format!("{name}-{}", file.name);
            }
            for warning in &mut parsed.warnings {
                warning.what = format!("{name}: {}", warning.what);
            }
            let mut parsed = self.accept(parsed).map_err(|stop| stop.about(name))?;
            // Its latencies do not hang on whether the load was carried.
            if !parsed
                .metrics
                .iter()
                .any(|found| found.metric == OVERLOADED.name)
            {
                parsed.metrics.push(OVERLOADED.to_measurement(0.0));
            }
            figures.extend(parsed.metrics.into_iter().map(|mut measured| {
                measured.metric = workload.name_beside(&measured.metric);
                measured
            }));
        }
        Ok(figures)
    }

    /// Does something with each. The first error ends that, and names whom it is about.
    fn each_co_runner(
        &mut self,
        mut step: impl FnMut(&mut Self, &mut CoRunner) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut all = std::mem::take(&mut self.co_runners);
        let mut each = all.iter_mut();
        let done = each.try_for_each(|co_runner| {
            step(self, co_runner).map_err(|stop| stop.about(&co_runner.name))
        });
        self.co_runners = all;
        done
    }
}

fn read(driver: &dyn Driver, job: &Job, output: &Output) -> Result<Parsed, Stop> {
    if !output.success {
        return Err(failed_with("it", output));
    }
    driver.parse(job, output).map_err(Stop::Failed)
}

/// What is wrong with the end of a co-runner, where the window of the load closed then.
fn find_gap(closed: Instant, ended: Instant, most: Duration) -> Option<String> {
    let gap = |from: Instant, to: Instant| {
        Some(to.saturating_duration_since(from)).filter(|gap| *gap > most)
    };
    let in_words =
        |gap: Duration| format_duration_ns(model::whole_nanos(gap) / 1_000_000 * 1_000_000);
    let (gap, place) = match (gap(ended, closed), gap(closed, ended)) {
        (Some(gap), _) => (gap, "before"),
        (_, Some(gap)) => (gap, "after"),
        (None, None) => return None,
    };
    Some(format!(
        "it ended {} {place} the window of the load had closed, and the two are to work at the same time: give both \
         about as much to do",
        in_words(gap)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_that_did_not_work_at_the_same_time_are_told() {
        let closed = Instant::now() + Duration::from_secs(60);
        let most = Duration::from_millis(700);
        let gap = |early: u64, late: u64| {
            let ended = closed - Duration::from_millis(early) + Duration::from_millis(late);
            find_gap(closed, ended, most)
        };
        assert_eq!(gap(0, 0), None);
        assert_eq!(gap(700, 0), None);
        assert_eq!(gap(0, 700), None);
        assert!(
            gap(1500, 0).unwrap().starts_with("it ended 1.5s before "),
            "{:?}",
            gap(1500, 0)
        );
        assert!(
            gap(0, 2000).unwrap().starts_with("it ended 2s after "),
            "{:?}",
            gap(0, 2000)
        );
    }
}
