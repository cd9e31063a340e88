//! Loads that work and are measured in the window of the load of a trial.
//!
//! Those that say when they are ready are told to begin with the load, and close their windows by themselves; programs
//! that know nothing of windows are started then. All have the same lengths of time, so that their windows are nearly
//! the same; a trial in which they are not does not count.

use crate::bell;
use crate::load_files::Files;
use crate::process::Process;
use crate::stop::Stop;
use crate::trial::{Trial, failed_with};
use load::latency::OVERLOADED;
use load::{Driver, Job, Launch, Output, Parsed, phase};
use model::{Calibration, Measurement, Workload, format_duration_ns};
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
    process: Option<Process>,
    /// Tells when a program ended that knows nothing of windows.
    watch: Option<JoinHandle<Instant>>,
}

/// The job of a co-runner in a trial with this one.
fn job_beside(co_runner: Workload, main: &Job) -> Job {
    let load = co_runner.loads.first().copied().unwrap_or(model::Load::One);
    Job {
        calibration: calibration_of(&co_runner.name, &main.calibration),
        seed: main.seed,
        server: main.server,
        ..Job::new(&co_runner, load, main.cpus)
    }
}

/// Values of a co-runner among those of a trial.
fn calibration_of(name: &str, all: &Calibration) -> Calibration {
    let own = |(key, value): (&String, &u64)| {
        let key = key.strip_prefix(name)?.strip_prefix('.')?;
        Some((key.to_owned(), *value))
    };
    Calibration {
        values: all.values.iter().filter_map(own).collect(),
        ..Calibration::default()
    }
}

/// Name of a calibrated value of a co-runner among those of a trial.
pub fn name_value(name: &str, key: &str) -> String {
    format!("{name}.{key}")
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
                process: None,
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
            let mut process = trial.start_load(&co_runner.launch)?;
            trial.stage.co_runners.push(process.pid);
            bell::expect_line(trial, &mut process, phase::READY)?;
            co_runner.process = Some(process);
            Ok(())
        })
    }

    /// Lets all work: the load begins now.
    pub fn begin_co_runners(&mut self) -> Result<(), Stop> {
        self.each_co_runner(|trial, co_runner| {
            if let Some(process) = &mut co_runner.process {
                process.say(phase::GO);
                return Ok(());
            }
            let process = trial.start_load(&co_runner.launch)?;
            trial.stage.co_runners.push(process.pid);
            co_runner.watch = Some(
                process
                    .watch_end()
                    .map_err(|e| Stop::Failed(e.to_string()))?,
            );
            co_runner.process = Some(process);
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
            let ended = match co_runner.watch.take() {
                None => {
                    bell::expect_line(trial, process, phase::END)?;
                    Instant::now()
                }
                Some(watch) => {
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

    #[test]
    fn values_of_a_co_runner_have_its_name_before_them() {
        let values = [("loops", 7), ("web.unit_ps", 3), ("web2.unit_ps", 4)];
        let all = Calibration {
            values: values.map(|(key, value)| (key.to_owned(), value)).into(),
            ..Calibration::default()
        };
        let own = calibration_of("web", &all);
        assert_eq!(own.values, [("unit_ps".to_owned(), 3)].into());
        assert_eq!(name_value("web", "unit_ps"), "web.unit_ps");
    }
}
