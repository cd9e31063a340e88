//! `--metrics`: the state of a run as OpenMetrics, for Prometheus and what reads it.
//!
//! The text is made at the end of a trial or a block and only handed out when somebody asks, so
//! that asking costs a run next to nothing. The verdicts are those of the report, made anew at most
//! once in a quarter of a minute.

mod server;

use crate::exit::CliError;
use crate::output::note;
use model::TrialState;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use report::{Comparison, Table};
use results::ResultSet;
use runner::{Event, Progress};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time between two looks at the verdicts.
const BETWEEN: Duration = Duration::from_secs(15);

type Float = Gauge<f64, AtomicU64>;

/// Labels of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTrials {
    run: String,
    state: String,
}

/// Labels of a run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRun {
    run: String,
}

/// Labels of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfComparison {
    run: String,
    workload: String,
    load: String,
    arm: String,
    metric: String,
}

/// Labels of a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfVerdict {
    run: String,
    workload: String,
    load: String,
    arm: String,
    metric: String,
    verdict: String,
}

/// Figures of one run.
#[derive(Debug, Default)]
struct Figures {
    trials: Family<OfTrials, Counter>,
    blocks: Family<OfRun, Gauge>,
    cells: Family<OfRun, Gauge>,
    decided: Family<OfRun, Gauge>,
    elapsed: Family<OfRun, Float>,
    left: Family<OfRun, Float>,
    ratio: Family<OfComparison, Float>,
    low: Family<OfComparison, Float>,
    high: Family<OfComparison, Float>,
    evidence: Family<OfComparison, Float>,
    compared: Family<OfComparison, Gauge>,
    verdict: Family<OfVerdict, Gauge>,
}

/// Server of the figures of a run, where that was asked for.
#[derive(Default)]
pub struct Metrics {
    shown: Option<Shown>,
}

struct Shown {
    text: Arc<Mutex<String>>,
    registry: Registry,
    figures: Figures,
    run: String,
    directory: PathBuf,
    looked: Option<Instant>,
}

impl Metrics {
    /// Listens at an address, `127.0.0.1:9464`.
    pub fn listen_at(address: Option<&str>) -> Result<Self, CliError> {
        let Some(address) = address else {
            return Ok(Metrics::default());
        };
        let wrong = |what: String| {
            let help = "an address and a port of this machine: --metrics 127.0.0.1:9464";
            CliError::usage(format!("--metrics {address}: {what}"), help)
        };
        let at: SocketAddr = address
            .parse()
            .map_err(|_| wrong("that is no address with a port".to_owned()))?;
        let listener = TcpListener::bind(at).map_err(|e| wrong(e.to_string()))?;
        if !at.ip().to_canonical().is_loopback() {
            note!(
                "note: --metrics {at}: everybody who reaches this address over the network can read \
                 the figures; 127.0.0.1:{} is for this machine alone",
                at.port()
            );
        }
        let text = Arc::new(Mutex::new("# EOF\n".to_owned()));
        let shown = Arc::clone(&text);
        std::thread::spawn(move || server::serve(&listener, &shown));
        let (registry, figures) = registered();
        Ok(Metrics {
            shown: Some(Shown {
                text,
                registry,
                figures,
                run: String::new(),
                directory: PathBuf::new(),
                looked: None,
            }),
        })
    }

    /// Names the run.
    pub fn start(&mut self, name: &str, directory: &Path) {
        if let Some(shown) = &mut self.shown {
            name.clone_into(&mut shown.run);
            directory.clone_into(&mut shown.directory);
            shown.write();
        }
    }

    /// Takes part in what happens.
    pub fn see_event(&mut self, event: &Event) {
        let Some(shown) = &mut self.shown else {
            return;
        };
        match event {
            Event::TrialEnded { trial } => shown.count(&trial.result.state),
            Event::BlockEnded { state } => shown.progress(state),
            _ => return,
        }
        shown.write();
    }
}

impl Shown {
    fn count(&self, state: &TrialState) {
        let labels = OfTrials {
            run: self.run.clone(),
            state: state.name().to_owned(),
        };
        self.figures.trials.get_or_create(&labels).inc();
    }

    fn progress(&mut self, state: &Progress) {
        let of = OfRun {
            run: self.run.clone(),
        };
        let seconds = |ns: u64| ns as f64 / 1e9;
        let figures = &self.figures;
        figures.blocks.get_or_create(&of).set(state.block.into());
        figures.cells.get_or_create(&of).set(count(state.cells));
        figures.decided.get_or_create(&of).set(count(state.decided));
        let elapsed = figures.elapsed.get_or_create(&of);
        elapsed.set(seconds(state.elapsed_ns));
        if let Some(left) = state.left_ns {
            figures.left.get_or_create(&of).set(seconds(left));
        }
        if self.looked.is_none_or(|last| last.elapsed() >= BETWEEN) {
            self.looked = Some(Instant::now());
            // What cannot be read now is told by the report at the end.
            if let Ok(results) = ResultSet::read(&self.directory) {
                self.compare(&Table::verdicts_only(&results));
            }
        }
    }

    fn compare(&self, table: &Table) {
        self.figures.verdict.clear();
        for comparison in table.all_comparisons().filter(|c| c.deciding) {
            self.judged(comparison);
        }
    }

    fn judged(&self, comparison: &Comparison) {
        let of = OfComparison {
            run: self.run.clone(),
            workload: comparison.workload.clone(),
            load: comparison.load.clone(),
            arm: comparison.arm.clone(),
            metric: comparison.metric.clone(),
        };
        let figures = &self.figures;
        let known = [
            (&figures.ratio, comparison.ratio),
            (&figures.low, comparison.low),
            (&figures.high, comparison.high),
            (&figures.evidence, comparison.e_value),
        ];
        for (family, value) in known {
            if let Some(value) = value {
                family.get_or_create(&of).set(value);
            }
        }
        let compared = figures.compared.get_or_create(&of);
        compared.set(count(comparison.blocks));
        let labels = OfVerdict {
            run: of.run,
            workload: of.workload,
            load: of.load,
            arm: of.arm,
            metric: of.metric,
            verdict: comparison.verdict.as_str().to_owned(),
        };
        figures.verdict.get_or_create(&labels).set(1);
    }

    fn write(&self) {
        let mut text = String::new();
        if text::encode(&mut text, &self.registry).is_ok() {
            *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
        }
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The figures, with their names, help and units.
fn registered() -> (Registry, Figures) {
    let figures = Figures::default();
    let mut registry = Registry::with_prefix("schedlab");
    let f = &figures;
    registry.register(
        "trials",
        "Trials that have ended, by state",
        f.trials.clone(),
    );
    registry.register("blocks", "Blocks that have ended", f.blocks.clone());
    registry.register("cells", "Cells of the plan", f.cells.clone());
    let help = "Cells that need no more blocks";
    registry.register("cells_decided", help, f.decided.clone());
    let help = "Wall time of the run so far";
    registry.register_with_unit("elapsed", help, Unit::Seconds, f.elapsed.clone());
    let help = "Wall time that the run takes still, at most";
    registry.register_with_unit("left", help, Unit::Seconds, f.left.clone());
    let help = "Arm over baseline, of each metric that decides";
    registry.register_with_unit("change", help, Unit::Ratios, f.ratio.clone());
    let help = "Lower end of the interval of the change";
    registry.register_with_unit("change_low", help, Unit::Ratios, f.low.clone());
    let help = "Upper end of the interval of the change: its width is the noise that is left";
    registry.register_with_unit("change_high", help, Unit::Ratios, f.high.clone());
    let help = "E-value of the evidence against no difference";
    registry.register("evidence", help, f.evidence.clone());
    let help = "Blocks that have a figure of both arms";
    registry.register("compared_blocks", help, f.compared.clone());
    let help = "1 for the verdict on the arm so far: better, worse, same or unknown";
    registry.register("verdict", help, f.verdict.clone());
    (registry, figures)
}
