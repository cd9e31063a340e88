//! The output of schbench, in any of the formats that it has had.
//!
//! - since 2023: `Wakeup Latencies percentiles (usec) runtime 2 (s) (219 total samples)`,
//!   then `* 99.0th: 8400 (19 samples)` and `min=3, max=8585`; `Request Latencies …`,
//!   `RPS …`, `average rps: 109.50`; the last block is the one of the whole run;
//! - before: one block `Latency percentiles (usec)` with lines like `*99.0th: 13`;
//! - JSON: `{"normal": {…}, "int": {"wakeup_latency_pct99.0": 8400, …}}`.

use load::Output;
use load::recording::samples_needed;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub wakeup: Section,
    pub request: Option<Section>,
    pub requests_per_sec: Option<f64>,
}

/// Quantiles of one kind of latency, in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    /// By thousandths: 990 is p99.
    quantiles_us: BTreeMap<u32, u64>,
    max_us: Option<u64>,
    /// `None` where the version does not say.
    samples: Option<u64>,
}

impl Section {
    /// A quantile, or the maximum; `None` if there is none or too few samples stand
    /// behind it.
    pub fn value_us(&self, permille: Option<u32>) -> Option<u64> {
        let Some(permille) = permille else {
            return self.max_us;
        };
        let enough = self.samples.is_none_or(|n| n >= samples_needed(permille));
        self.quantiles_us.get(&permille).copied().filter(|_| enough)
    }

    fn is_empty(&self) -> bool {
        self.quantiles_us.is_empty() || self.samples == Some(0)
    }
}

impl Report {
    /// `None` if there is no latency in it.
    pub fn read(output: &Output) -> Option<Report> {
        let text = Text::read(&output.stderr);
        let json = Json::read(&output.stdout);
        let mut wakeup = text.wakeup.unwrap_or_default();
        let mut request = text.request;
        if let Some(json) = &json {
            json.refine("wakeup_latency", &mut wakeup);
            json.refine("request_latency", request.get_or_insert_default());
        }
        let requests_per_sec = text
            .requests_per_sec
            .or_else(|| json.as_ref()?.number("rps_pct50.0"));
        (!wakeup.is_empty()).then_some(Report {
            wakeup,
            request: request.filter(|r| !r.is_empty()),
            requests_per_sec,
        })
    }
}

/// The numbers of the JSON report, by name.
struct Json(serde_json::Map<String, serde_json::Value>);

impl Json {
    fn read(stdout: &str) -> Option<Json> {
        let start = stdout.find('{')?;
        let mut values = serde_json::Deserializer::from_str(&stdout[start..]).into_iter();
        let whole: serde_json::Value = values.next()?.ok()?;
        whole.get("int")?.as_object().cloned().map(Json)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// Takes what the JSON says of one kind of latency, and keeps the rest.
    fn refine(&self, kind: &str, section: &mut Section) {
        let prefix = format!("{kind}_pct");
        for (name, value) in &self.0 {
            let permille = name.strip_prefix(&prefix).and_then(permille);
            if let (Some(permille), Some(us)) = (permille, value.as_u64()) {
                section.quantiles_us.insert(permille, us);
            }
        }
        let max = self.0.get(&format!("{kind}_max"));
        section.max_us = max.and_then(|v| v.as_u64()).or(section.max_us);
    }
}

/// `99.0` → 990.
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most 1000, which is checked before"
)]
fn permille(percent: &str) -> Option<u32> {
    let percent: f64 = percent.trim().parse().ok()?;
    (0.0..100.0)
        .contains(&percent)
        .then(|| (percent * 10.0).round() as u32)
}

/// The blocks of the text report; a later block replaces an earlier one of its kind.
#[derive(Default)]
struct Text {
    wakeup: Option<Section>,
    request: Option<Section>,
    requests_per_sec: Option<f64>,
}

enum Block {
    Wakeup,
    Request,
    Other,
}

impl Text {
    fn read(stderr: &str) -> Text {
        let mut text = Text::default();
        let mut block = Block::Other;
        for line in stderr.lines().map(str::trim) {
            if line.to_ascii_lowercase().contains("percentiles (") {
                block = text.open(line);
            } else if let Some(rate) = line.strip_prefix("average rps:") {
                text.requests_per_sec = rate.trim().parse().ok();
            } else if let Some(section) = text.section(&block) {
                section.read_line(line);
            }
        }
        text
    }

    fn open(&mut self, title: &str) -> Block {
        let section = Section {
            samples: samples(title),
            ..Section::default()
        };
        if title.starts_with("Wakeup") || title.starts_with("Latency") {
            self.wakeup = Some(section);
            Block::Wakeup
        } else if title.starts_with("Request") {
            self.request = Some(section);
            Block::Request
        } else {
            Block::Other
        }
    }

    fn section(&mut self, block: &Block) -> Option<&mut Section> {
        match block {
            Block::Wakeup => self.wakeup.as_mut(),
            Block::Request => self.request.as_mut(),
            Block::Other => None,
        }
    }
}

impl Section {
    fn read_line(&mut self, line: &str) {
        if let Some((_, max)) = line.split_once("max=") {
            self.max_us = max.trim().parse().ok();
        } else if let Some((percent, rest)) = line.split_once("th:") {
            let permille = permille(percent.trim_start_matches('*'));
            let us = rest.split_whitespace().next().and_then(|v| v.parse().ok());
            if let (Some(permille), Some(us)) = (permille, us) {
                self.quantiles_us.insert(permille, us);
            }
        }
    }
}

/// `… (219 total samples)` → 219.
fn samples(title: &str) -> Option<u64> {
    let (before, _) = title.split_once(" total samples")?;
    before.rsplit('(').next()?.parse().ok()
}
