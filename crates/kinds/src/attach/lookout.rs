//! Whoever looks at the rails of a service while its figures are taken: a thread of its own, so that a service
//! that answers late moves no window.

use super::Attach;
use super::moment::Moment;
use super::rail::{Rail, write_figure};
use super::scrape::Scraper;
use load::phase::{NativeError, Phases};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two looks at the service.
const LOOK: Duration = Duration::from_millis(500);
/// Times over which a figure is taken: the shortest that has one. A quantile needs requests beyond it.
const SPANS: [Duration; 4] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];
/// Time without an answer after which nobody knows whether a rail holds.
const SILENCE: Duration = Duration::from_secs(3);
/// Time between two questions whether one was hit.
const STEP_NS: u64 = 50_000_000;
/// The same while the service is read, which mostly takes less.
const SHORT_STEP_NS: u64 = 2_000_000;

/// A rail that was hit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hit {
    rail: String,
    seen: String,
}

/// Findings that the thread and its owner share.
#[derive(Debug, Default)]
struct Shared {
    hit: Mutex<Option<Hit>>,
    /// Metrics of rails that had a figure.
    seen: Mutex<BTreeSet<String>>,
    is_over: AtomicBool,
}

/// The thread that looks, until this is dropped.
#[derive(Debug)]
pub struct Lookout {
    shared: Arc<Shared>,
    first_rail: Option<String>,
}

impl Drop for Lookout {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl Lookout {
    /// Starts to look, where the service has rails.
    pub fn start(attach: &Attach) -> Result<Self, NativeError> {
        let shared = Arc::new(Shared::default());
        if !attach.rails.is_empty() {
            let mut watch = Watch::new(attach.narrowed_to_rails(), Arc::clone(&shared));
            let thread = std::thread::Builder::new().name("rails".to_owned());
            thread.spawn(move || watch.look_until_over())?;
        }
        Ok(Lookout {
            shared,
            first_rail: attach.rails.first().map(|rail| rail.written().to_owned()),
        })
    }

    /// Waits for a time. A rail that is hit meanwhile ends the load.
    pub fn wait_until(&self, phases: &mut Phases, at_ns: u64) -> Result<(), NativeError> {
        while self.first_rail.is_some() {
            self.heed(phases)?;
            let next_ns = load::sys::now_ns().saturating_add(STEP_NS);
            if next_ns >= at_ns {
                break;
            }
            phases.wait_until(next_ns)?;
        }
        phases.wait_until(at_ns)
    }

    /// Reads something of the service, which may take as long as an answer does. A rail that is hit meanwhile ends
    /// the load.
    pub fn wait_for<T: Send>(
        &self,
        phases: &mut Phases,
        read: impl FnOnce() -> T + Send,
    ) -> Result<T, NativeError> {
        if self.first_rail.is_none() {
            return Ok(read());
        }
        std::thread::scope(|scope| {
            let reader = scope.spawn(read);
            while !reader.is_finished() {
                self.heed(phases)?;
                phases.wait_until(load::sys::now_ns().saturating_add(SHORT_STEP_NS))?;
            }
            let died = |_| NativeError::Generator("the reader of the service died".to_owned());
            reader.join().map_err(died)
        })
    }

    /// The error of a service that cannot be read. Where it has rails the run ends, since nobody could look at them.
    pub fn give_up(&self, phases: &mut Phases, why: String) -> NativeError {
        let said = match &self.first_rail {
            Some(rail) => phases.report_rail(rail, &format!("nobody knows: {why}")),
            None => Ok(()),
        };
        said.err().unwrap_or(NativeError::Generator(why))
    }

    /// Says a rail that was hit to the agent, which takes the arm back.
    fn heed(&self, phases: &mut Phases) -> Result<(), NativeError> {
        let hit = self
            .shared
            .hit
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(Hit { rail, seen }) = hit.clone() else {
            return Ok(());
        };
        phases.report_rail(&rail, &seen)?;
        Err(NativeError::Generator(format!("`{rail}` was hit: {seen}")))
    }

    /// Rails of metrics that never had a figure, so that nobody looked at them.
    pub fn unseen_rails<'a>(&self, attach: &'a Attach) -> Vec<&'a Rail> {
        let seen = self
            .shared
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let rails = attach.rails.iter();
        rails.filter(|rail| !seen.contains(rail.metric())).collect()
    }
}

/// Looks of the last seconds, and since when each rail is broken.
struct Watch {
    attach: Attach,
    scraper: Scraper,
    shared: Arc<Shared>,
    moments: VecDeque<Moment>,
    broken_since: Vec<Option<Instant>>,
    /// The last look to which all answered.
    answered: Instant,
}

impl Watch {
    fn new(attach: Attach, shared: Arc<Shared>) -> Self {
        Watch {
            broken_since: vec![None; attach.rails.len()],
            scraper: Scraper::default(),
            moments: VecDeque::new(),
            answered: Instant::now(),
            attach,
            shared,
        }
    }

    fn look_until_over(&mut self) {
        while !self.shared.is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            let taken = Moment::take(&self.attach, &self.scraper);
            if let Some(hit) = self.judge(taken) {
                let mut shared = self
                    .shared
                    .hit
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                *shared = Some(hit);
                return;
            }
            std::thread::sleep(LOOK.saturating_sub(began.elapsed()));
        }
    }

    /// The rail that is hit, by one more look.
    fn judge(&mut self, taken: Result<Moment, String>) -> Option<Hit> {
        let why = match &taken {
            Ok(moment) => moment.silence().map(str::to_owned),
            Err(why) => Some(why.clone()),
        };
        match why {
            None => self.answered = Instant::now(),
            Some(why) if self.answered.elapsed() >= SILENCE => return self.find_silent(&why),
            Some(_) => {}
        }
        let moment = taken.ok()?;
        let hit = (0..self.attach.rails.len()).find_map(|index| self.judge_rail(index, &moment));
        self.remember(moment);
        hit
    }

    fn find_silent(&self, why: &str) -> Option<Hit> {
        let rail = self.attach.rails.first()?;
        Some(Hit {
            rail: rail.written().to_owned(),
            seen: format!("nobody knows, for {} s: {why}", SILENCE.as_secs()),
        })
    }

    fn judge_rail(&mut self, index: usize, now: &Moment) -> Option<Hit> {
        let rail = self.attach.rails.get(index)?;
        let unit = self.attach.unit_of(rail.metric())?;
        let value = self.find_figure(rail.metric(), now);
        let is_broken = value.is_some_and(|value| rail.is_broken_by(value, &unit));
        if value.is_some() {
            let mut seen = self
                .shared
                .seen
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            seen.insert(rail.metric().to_owned());
        }
        let since = match is_broken {
            true => Some(self.broken_since[index].unwrap_or(now.taken_at())),
            false => None,
        };
        self.broken_since[index] = since;
        let lasted = now.taken_at().saturating_duration_since(since?);
        (lasted >= Duration::from_nanos(rail.for_ns())).then(|| Hit {
            rail: rail.written().to_owned(),
            seen: write_figure(value.unwrap_or_default(), &unit),
        })
    }

    /// The figure of the shortest time that has one.
    fn find_figure(&self, metric: &str, now: &Moment) -> Option<f64> {
        SPANS.iter().find_map(|span| {
            let is_old =
                |moment: &&Moment| now.taken_at().duration_since(moment.taken_at()) >= *span;
            let earlier = self.moments.iter().rev().find(is_old)?;
            let figures = now.figures_since(earlier, &self.attach);
            let beyond = figures.beyond.contains(metric).then_some(f64::INFINITY);
            figures.values.get(metric).copied().or(beyond)
        })
    }

    fn remember(&mut self, moment: Moment) {
        let longest = SPANS[SPANS.len() - 1];
        let now = moment.taken_at();
        self.moments.push_back(moment);
        // One that is older than the longest time is the beginning of it.
        while (self.moments.get(1)).is_some_and(|m| now.duration_since(m.taken_at()) >= longest) {
            self.moments.pop_front();
        }
    }
}
