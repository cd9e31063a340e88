//! The last figures and the alarms of all series as OpenMetrics, for what watches machines.

use crate::exit::CliError;
use history::words::{find_interval, shorten_hash};
use history::{Contents, Outcome, Series, Tracked, Turn, group_series};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;

type Float = Gauge<f64, AtomicU64>;

/// Labels of a series.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSeries {
    series: String,
    cell: String,
    metric: String,
    arm: String,
    anchor: String,
}

/// Labels of the level of one of the two arms of a series.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLevel {
    series: String,
    cell: String,
    metric: String,
    arm: String,
    unit: String,
}

/// Labels of the alarms of a series.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfAlarms {
    series: String,
    cell: String,
    metric: String,
    arm: String,
    turn: String,
    state: String,
}

/// Figures of all series.
#[derive(Debug, Default)]
struct Figures {
    ratio: Family<OfSeries, Float>,
    low: Family<OfSeries, Float>,
    high: Family<OfSeries, Float>,
    began: Family<OfSeries, Gauge>,
    runs: Family<OfSeries, Gauge>,
    level: Family<OfLevel, Float>,
    alarms: Family<OfAlarms, Gauge>,
}

/// The text on all that is in a history.
pub fn write_figures(contents: &Contents) -> Result<String, CliError> {
    let figures = Figures::default();
    for series in group_series(&contents.runs) {
        figures.set_last(&series);
        figures.count_alarms(&series, &contents.alarms);
    }
    let mut text = String::new();
    text::encode(&mut text, &figures.registered()).map_err(CliError::internal)?;
    Ok(sort_samples(&text))
}

/// The samples of each metric in the order of their labels: the library has that of its hash map.
fn sort_samples(text: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_sample = |line: &str| !line.starts_with('#');
    let blocks = lines.chunk_by(|one, next| is_sample(one) == is_sample(next));
    let sorted = blocks.flat_map(|block| {
        let mut block = block.to_vec();
        if is_sample(block[0]) {
            block.sort_unstable();
        }
        block
    });
    sorted.collect()
}

impl Figures {
    fn set_last(&self, series: &Series) {
        let Some((run, figure)) = series.points.last() else {
            return;
        };
        let of = OfSeries {
            series: shorten_hash(&series.id).to_owned(),
            cell: figure.cell.clone(),
            metric: figure.metric.clone(),
            arm: figure.arm.clone(),
            anchor: figure.anchor.clone(),
        };
        let (low, high) = find_interval(figure);
        let ratios = [
            (&self.ratio, figure.log_ratio.exp()),
            (&self.low, low),
            (&self.high, high),
        ];
        for (family, value) in ratios {
            family.get_or_create(&of).set(value);
        }
        self.began.get_or_create(&of).set(run.created.as_second());
        let runs = i64::try_from(series.points.len()).unwrap_or(i64::MAX);
        self.runs.get_or_create(&of).set(runs);
        let levels = [
            (&figure.arm, figure.level),
            (&figure.anchor, figure.anchor_level),
        ];
        for (arm, level) in levels {
            let labels = OfLevel {
                series: of.series.clone(),
                cell: of.cell.clone(),
                metric: of.metric.clone(),
                arm: arm.clone(),
                unit: figure.unit.clone(),
            };
            if let Some(level) = level {
                self.level.get_or_create(&labels).set(level);
            }
        }
    }

    /// All states, since a figure that comes with an alarm cannot be compared with that before it.
    fn count_alarms(&self, series: &Series, alarms: &[Tracked]) {
        for turn in [Turn::Worse, Turn::Better] {
            for outcome in Outcome::ALL {
                let is_counted = |known: &&Tracked| {
                    known.alarm.series == series.id
                        && (known.alarm.turn, known.outcome) == (turn, outcome)
                };
                let count = alarms.iter().filter(is_counted).count();
                let labels = OfAlarms {
                    series: shorten_hash(&series.id).to_owned(),
                    cell: series.key.cell.clone(),
                    metric: series.key.metric.clone(),
                    arm: series.key.arm.clone(),
                    turn: turn.as_str().to_owned(),
                    state: outcome.as_str().to_owned(),
                };
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                self.alarms.get_or_create(&labels).set(count);
            }
        }
    }

    /// The figures with their names, help and units.
    fn registered(&self) -> Registry {
        let mut registry = Registry::with_prefix("schedlab_history");
        let help = "Arm over anchor in the last run";
        registry.register_with_unit("last", help, Unit::Ratios, self.ratio.clone());
        let help = "Lower end of its interval at 95 %, by the blocks of that run";
        registry.register_with_unit("last_low", help, Unit::Ratios, self.low.clone());
        let help = "Upper end of the interval";
        registry.register_with_unit("last_high", help, Unit::Ratios, self.high.clone());
        let help = "Beginning of the last run, since 1970";
        registry.register_with_unit("last_run", help, Unit::Seconds, self.began.clone());
        registry.register("runs", "Runs of the series", self.runs.clone());
        let help = "Figure of an arm in the last run, in its unit";
        registry.register("last_level", help, self.level.clone());
        let help = "Alarms, by what the arm became and how the alarm stands";
        registry.register("alarms", help, self.alarms.clone());
        registry
    }
}
