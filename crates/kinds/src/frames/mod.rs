//! Frames (native): a render loop against a virtual screen, an input thread whose events must reach a
//! frame, an audio thread with its deadline, and a pool of workers as an option.
//!
//! Frames of a screen: a player sees whether the next one is done when the screen asks for it.
//! Nothing is drawn: the screen is a clock, and the work of a frame is that of the other native loads.

mod audio;
mod compile;
mod figures;
mod input;
mod metrics;
mod render;
mod screen;
mod work;

use crate::calibrate::{self, ROWS_PER_SEC};
use crate::matrices::Matrices;
use load::crew::Work as Threads;
use load::recording::Recorder;
use load::worst::At;
use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params, Parsed,
    Phases, Run, Usual, Window, Work, crew, phase,
};
use model::check::check_size;
use model::{Calibration, Invalid, KeyDef, Load, Problem, Task, format_duration_ns};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::sync::Arc;
use work::{Distribution, FrameWork, Works, WrittenWork};

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "work",
        "`\"40%\"` or a duration",
        "`\"40%\"`",
        "Mean CPU time of a frame: a share of its time on one CPU, or a duration. Its work is calibrated \
         once for each cell, so that every arm has the same.",
    ),
    KeyDef::new(
        "distribution",
        "`fixed`, `uniform` or `lognormal`",
        "`lognormal`",
        "Law of the works of frames, which are drawn by the seed of the block: all arms have the same frames.",
    ),
    KeyDef::new(
        "spread",
        "percent",
        "`20%`",
        "Standard deviation of lognormal works, half the width of uniform ones, in percent of the mean.",
    ),
    KeyDef::new(
        "input-rate",
        "rate",
        "`125/s`",
        "Input events, at random times; 125 a second is a mouse of USB's usual rate.",
    ),
    KeyDef::new(
        "audio-period",
        "duration",
        "`10ms`",
        "Time of an audio period, of which two are a buffer. `0s`: there is no audio.",
    ),
    KeyDef::new(
        "audio-work",
        "duration",
        "`500us`",
        "CPU time to fill an audio period.",
    ),
    KeyDef::new(
        "compilers",
        "number",
        "0",
        "Threads of a worker pool, as of a compiler of shaders, which all have a job at the same moments.",
    ),
    KeyDef::new(
        "compile-every",
        "duration",
        "`1s`",
        "Time from one of these moments to the next.",
    ),
    KeyDef::new(
        "compile-work",
        "duration",
        "`50ms`",
        "CPU time of a job of the worker pool.",
    ),
    KeyDef::new(
        "footprint",
        "size",
        "`32KiB`",
        "Memory that the work of one thread goes through.",
    ),
];

/// The kind `frames`.
pub static KIND: KindDef = KindDef {
    name: "frames",
    aliases: &[],
    summary: "a render loop that must have a frame done at each vblank of a virtual screen, with input and \
              audio threads (native; what players call smoothness)",
    loads: LoadForms::FixedRates,
    load_unit: "frames per second",
    window: Window::Phased,
    usual: Usual {
        load: Load::RatePerSec(60.0),
        duration_ns: 10_000_000_000,
        warmup_ns: 500_000_000,
        time_limit_ns: None,
    },
    keys: KEYS,
    work: Work::for_params::<Frames>(),
    client: false,
    metrics: metrics::METRICS,
    deciding: metrics::DECIDING,
    logs: &["frame", "render", "input", "audio"],
    watched: &["render", "frame", "input", "audio"],
    tasks: &[Task::Thread("frames-*")],
    programs: &[],
    handicap: true,
    turns: true,
};

/// Rates of a screen.
const RATES: RangeInclusive<f64> = 30.0..=480.0;
/// Periods of sound cards.
const AUDIO_PERIODS_NS: RangeInclusive<u64> = 1_000_000..=100_000_000;
const MOST_COMPILERS: u32 = 1024;
const SHORTEST_EVERY_NS: u64 = 1_000_000;
/// A polling rate above that of any mouse is mostly the clock.
const MOST_INPUT_PER_SEC: f64 = 8_000.0;

/// A game. The load is the rate of its screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frames {
    /// Mean CPU time of a frame.
    work: FrameWork,
    /// Law of the works of frames.
    distribution: Distribution,
    /// Spread of the works, in percent of the mean.
    spread_percent: f64,
    /// Input events per second.
    input_per_sec: f64,
    /// Audio period; 0: no audio.
    audio_period_ns: u64,
    /// CPU time to fill an audio period.
    audio_work_ns: u64,
    /// Threads of the worker pool.
    compilers: u32,
    /// Time between two jobs of the pool.
    compile_every_ns: u64,
    /// CPU time of a job of the pool.
    compile_work_ns: u64,
    /// Bytes that the work of one thread goes through.
    footprint_bytes: u64,
}

impl Params for Frames {
    fn read(keys: &mut Keys) -> Self {
        let work = keys.get::<WrittenWork>("work").map(|work| work.0);
        Frames {
            work: work.unwrap_or(FrameWork::Percent(40.0)),
            distribution: keys.get("distribution").unwrap_or_default(),
            spread_percent: keys.percent("spread").unwrap_or(20.0),
            input_per_sec: keys.rate("input-rate").unwrap_or(125.0),
            audio_period_ns: keys.duration("audio-period").unwrap_or(10_000_000),
            audio_work_ns: keys.duration("audio-work").unwrap_or(500_000),
            compilers: keys.get("compilers").unwrap_or(0),
            compile_every_ns: keys.duration("compile-every").unwrap_or(1_000_000_000),
            compile_work_ns: keys.duration("compile-work").unwrap_or(50_000_000),
            footprint_bytes: keys.size("footprint").unwrap_or(32 << 10),
        }
    }
}

/// Record that a thread brings back.
#[derive(Debug)]
enum Record {
    Rendered(Option<Box<render::Rendered>>),
    /// The input thread, which records nothing itself.
    Delivered,
    Heard(Box<audio::Heard>),
    Compiled(Vec<u64>),
}

type Thread = (&'static str, Threads<Record>);

impl Frames {
    fn rows_per_sec(&self, job: &Job) -> u64 {
        let interval_ns = interval_ns(job);
        let work_ns = self.work.mean_ns(interval_ns).max(1);
        calibrate::rows_per_sec(self.footprint_bytes, work_ns, interval_ns)
    }

    fn threads(&self, job: &Job) -> Vec<Thread> {
        let calibrated = job.calibration.values.get(ROWS_PER_SEC).copied();
        let per_sec = calibrated.unwrap_or_else(|| self.rows_per_sec(job));
        let schedule = input::make_schedule(self.input_per_sec, job.seed);
        let delivered = Arc::default();
        let mut threads = vec![self.render_thread(job, per_sec, &delivered)];
        let deliver: Threads<Record> = Box::new(move |gate| {
            input::deliver(schedule, &delivered, gate);
            Ok(Record::Delivered)
        });
        threads.push((input::THREAD, deliver));
        threads.extend((self.audio_period_ns > 0).then(|| self.audio_thread(job, per_sec)));
        threads.extend((0..self.compilers).map(|_| self.compile_thread(per_sec)));
        threads
    }

    fn render_thread(
        &self,
        job: &Job,
        per_sec: u64,
        delivered: &Arc<std::sync::atomic::AtomicU64>,
    ) -> Thread {
        let (params, job, delivered) = (self.clone(), job.clone(), Arc::clone(delivered));
        let work: Threads<Record> = Box::new(move |gate| {
            let interval_ns = interval_ns(&job);
            let mean_rows = calibrate::rows_in(per_sec, params.work.mean_ns(interval_ns));
            let [frame, render, input] = render::Renderer::make_recorders(&job)?;
            let schedule = input::make_schedule(params.input_per_sec, job.seed);
            let spread = params.spread_percent;
            let renderer = render::Renderer {
                interval_ns,
                works: Works::draw(params.distribution, spread, mean_rows, job.seed),
                handicaps: render::Handicaps::for_job(&job),
                matrices: Matrices::new(params.footprint_bytes),
                events: input::Events::new(schedule),
                delivered,
                frame,
                render,
                input,
                end_ns: 0,
            };
            Ok(Record::Rendered(renderer.run(gate).map(Box::new)))
        });
        (render::THREAD, work)
    }

    fn audio_thread(&self, job: &Job, per_sec: u64) -> Thread {
        let (params, job) = (self.clone(), job.clone());
        let work: Threads<Record> = Box::new(move |gate| {
            let player = audio::Player {
                period_ns: params.audio_period_ns,
                rows: calibrate::rows_in(per_sec, params.audio_work_ns),
                matrices: Matrices::new(params.footprint_bytes),
                heard: audio::Heard {
                    filled: make_recorder(&job)?.watched_as("audio", At::End),
                    underruns: Vec::new(),
                },
            };
            Ok(Record::Heard(Box::new(player.run(gate))))
        });
        (audio::THREAD, work)
    }

    fn compile_thread(&self, per_sec: u64) -> Thread {
        let params = self.clone();
        let work: Threads<Record> = Box::new(move |gate| {
            let compiler = compile::Compiler {
                every_ns: params.compile_every_ns,
                rows: calibrate::rows_in(per_sec, params.compile_work_ns),
                matrices: Matrices::new(params.footprint_bytes),
            };
            Ok(Record::Compiled(compiler.run(gate)))
        });
        (compile::THREAD, work)
    }

    fn check_times(&self) -> Result<(), Invalid> {
        let time = format_duration_ns;
        let refuse = |key: &str, what: String| Err(Invalid::new(key, what));
        let period = self.audio_period_ns;
        if period > 0 && !AUDIO_PERIODS_NS.contains(&period) {
            let what = format!(
                "`audio-period` is 1ms to 100ms, or 0s, not {}",
                time(period)
            );
            return refuse("audio-period", what);
        }
        if period > 0 && self.audio_work_ns >= period {
            let what = format!(
                "a period of {} cannot be filled in {}",
                time(period),
                time(self.audio_work_ns)
            );
            return refuse("audio-work", what);
        }
        if self.compilers > MOST_COMPILERS {
            let what = format!("`compilers` is at most {MOST_COMPILERS}");
            return refuse("compilers", what);
        }
        if self.compile_every_ns < SHORTEST_EVERY_NS {
            let what = format!("`compile-every` is at least {}", time(SHORTEST_EVERY_NS));
            return refuse("compile-every", what);
        }
        Ok(())
    }
}

/// Time of a frame of a job; that of 60 a second where its load is no rate.
fn interval_ns(job: &Job) -> u64 {
    let rate_per_sec = match job.load {
        Load::RatePerSec(rate) => rate,
        _ => 60.0,
    };
    model::truncate_to_u64((1e9 / rate_per_sec).round()).max(1)
}

/// A recorder for whatever takes no longer than the process lives.
fn make_recorder(job: &Job) -> Result<Recorder, String> {
    let whole_ns = job.workload.warmup_ns.saturating_add(job.measured_ns());
    let longest_ns = whole_ns.saturating_mul(2).max(1_000_000_000);
    let recorder = Recorder::new(job.measured_ns(), longest_ns)?;
    Ok(recorder.in_turns(job.turns.as_ref()))
}

impl Driver for Frames {
    fn check(&self) -> Result<(), Invalid> {
        check_size("footprint", self.footprint_bytes)?;
        let is_none = match self.work {
            FrameWork::Percent(percent) => percent.is_nan() || percent <= 0.0,
            FrameWork::Ns(ns) => ns == 0,
        };
        if is_none {
            return Err(Invalid::new("work", "`work` must be above 0"));
        }
        if !(0.0..=100.0).contains(&self.spread_percent) {
            return Err(Invalid::new("spread", "`spread` is 0% to 100%"));
        }
        let rate = self.input_per_sec;
        if !(rate > 0.0 && rate <= MOST_INPUT_PER_SEC) {
            let what = format!("`input-rate` is at most {MOST_INPUT_PER_SEC}/s");
            return Err(Invalid::new("input-rate", what));
        }
        self.check_times()
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        Vec::new()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        match job.load {
            Load::RatePerSec(rate) if RATES.contains(&rate) => Vec::new(),
            load => {
                let (least, most) = (RATES.start(), RATES.end());
                let what =
                    format!("no screen has {load} frames; it has {least} to {most} a second");
                vec![job.problem(what, "write a rate such as loads = [\"60/s\", \"144/s\"]")]
            }
        }
    }

    fn calibrate(&self, job: &Job, _run: &mut Run) -> Result<Calibration, String> {
        let mut calibration = Calibration::default();
        let rows = self.rows_per_sec(job);
        calibration.values.insert(ROWS_PER_SEC.to_owned(), rows);
        Ok(calibration)
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        let (opened, records) = crew::run_named(self.threads(job), job, phases)?;
        figures::compute_figures(job, records, opened).map_err(NativeError::Generator)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}

#[cfg(test)]
mod tests;
