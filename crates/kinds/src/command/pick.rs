//! Choice among several figures of one trial.

use serde::{Deserialize, Serialize};

/// Choice among several figures of one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Pick {
    /// There must be one.
    #[default]
    Only,
    /// The first one.
    First,
    /// The last one.
    Last,
    /// The smallest one.
    Min,
    /// The largest one.
    Max,
    /// The sum of all.
    Sum,
    /// The arithmetic mean of all.
    Mean,
    /// The increase a second from the first to the last, of a count that the program prints as it
    /// goes. Only where arms take turns: elsewhere nobody sees when it was printed.
    Rate,
    /// The smallest figure below which this share of them lies, or at which it ends.
    Percentile(Percentile),
}

/// A share of all figures, in thousandths of a percent, above 0 and below 100 percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentile(u32);

const ALL: u32 = 100_000;

const NAMES: [(&str, Pick); 8] = [
    ("only", Pick::Only),
    ("first", Pick::First),
    ("last", Pick::Last),
    ("min", Pick::Min),
    ("max", Pick::Max),
    ("sum", Pick::Sum),
    ("mean", Pick::Mean),
    ("rate", Pick::Rate),
];

impl TryFrom<String> for Pick {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let named = NAMES.iter().find(|(name, _)| *name == text);
        let pick = named.map(|(_, pick)| *pick);
        let pick = pick.or_else(|| Percentile::parse(&text).map(Pick::Percentile));
        pick.ok_or_else(|| {
            let names = NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            format!("`{text}` is no choice; it is one of {names}, or a percentile such as `p99`")
        })
    }
}

impl From<Pick> for String {
    fn from(pick: Pick) -> Self {
        if let Pick::Percentile(percentile) = pick {
            return percentile.to_string();
        }
        let found = NAMES.iter().find(|(_, other)| *other == pick);
        found.map_or("", |(name, _)| name).to_owned()
    }
}

impl Percentile {
    /// The percentile that `p99` or `p99.9` is.
    pub fn parse(text: &str) -> Option<Self> {
        let percent = text.strip_prefix('p')?;
        let is_plain = percent.starts_with(|c: char| c.is_ascii_digit());
        let thousandths = percent.parse::<f64>().ok().filter(|_| is_plain)? * 1000.0;
        let is_whole = (thousandths - thousandths.round()).abs() < 1e-6;
        let share = u32::try_from(model::truncate_to_u64(thousandths.round())).ok()?;
        (is_whole && (1..ALL).contains(&share)).then_some(Percentile(share))
    }

    /// How many figures there must be: one beyond the percentile.
    pub fn least_figures(self) -> u64 {
        let beyond = self.0.min(ALL - self.0);
        u64::from(ALL).div_ceil(u64::from(beyond))
    }

    /// The figure of this rank; `None` where there are too few.
    fn of(self, values: &mut [f64]) -> Option<f64> {
        let count = values.len() as u64;
        if count < self.least_figures() {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let rank = (count * u64::from(self.0)).div_ceil(u64::from(ALL)).max(1);
        values.get(usize::try_from(rank - 1).ok()?).copied()
    }
}

impl std::fmt::Display for Percentile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p{}", f64::from(self.0) / 1000.0)
    }
}

impl Pick {
    /// The one of figures with their times; `None` where there are too few.
    pub fn pick_from(self, figures: &[(u64, f64)]) -> Option<f64> {
        let (first, last) = (figures.first()?, figures.last()?);
        let values = || figures.iter().map(|(_, value)| *value);
        Some(match self {
            Pick::First => first.1,
            Pick::Only | Pick::Last => last.1,
            Pick::Min => values().fold(f64::INFINITY, f64::min),
            Pick::Max => values().fold(f64::NEG_INFINITY, f64::max),
            Pick::Sum => values().sum(),
            Pick::Mean => values().sum::<f64>() / figures.len() as f64,
            Pick::Rate => {
                let seconds = last.0.checked_sub(first.0).filter(|ns| *ns > 0)? as f64 / 1e9;
                (last.1 - first.1) / seconds
            }
            Pick::Percentile(percentile) => percentile.of(&mut values().collect::<Vec<_>>())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(text: &str) -> Result<Pick, String> {
        Pick::try_from(text.to_owned())
    }

    #[test]
    fn a_choice_is_written_as_it_is_read() {
        for text in ["only", "rate", "mean", "p50", "p99", "p99.9", "p0.1"] {
            assert_eq!(String::from(pick(text).unwrap()), text);
        }
        for none in [
            "",
            "p",
            "p0",
            "p100",
            "p-1",
            "pinf",
            "p99.99999",
            "median",
            "P99",
        ] {
            assert!(pick(none).unwrap_err().contains("such as `p99`"), "{none}");
        }
    }

    #[test]
    fn a_percentile_is_a_figure_that_was_there_and_needs_one_beyond_it() {
        let figures: Vec<(u64, f64)> = (0..100).map(|i| (0, f64::from((i * 37) % 100))).collect();
        for (text, count, expected) in [
            ("p99", 100, Some(98.0)),
            ("p99", 99, None),
            ("p50", 100, Some(49.0)),
            ("p1", 100, Some(0.0)),
            ("p50", 2, Some(0.0)),
            ("p50", 1, None),
            ("p99.9", 100, None),
        ] {
            let found = pick(text).unwrap().pick_from(&figures[..count]);
            assert_eq!(found, expected, "{text} of {count}");
        }
    }
}
