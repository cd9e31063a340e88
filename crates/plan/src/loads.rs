//! `loads`: a list, a scan (`{ from, to, step }`), a search for the highest rate that holds a
//! service level (`{ find = "max", slo = "p99 < 1ms" }`), or shares of the highest rate of the
//! baseline (`{ shares-of-max = ["50%", "80%"], slo = "p99 < 1ms" }`).

use load::units::{Percent, WrittenLoad, WrittenSlo};
use model::{Load, ShareOfMax, Slo};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Usual ends of a search.
const SEARCH_FROM_PER_SEC: f64 = 1_000.0;
const SEARCH_TO_PER_SEC: f64 = 1_000_000.0;
const MOST_LOADS: usize = 100;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loads(pub Vec<Load>);

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Table {
    from: Option<WrittenLoad>,
    to: Option<WrittenLoad>,
    step: Option<WrittenLoad>,
    find: Option<Find>,
    shares_of_max: Option<Vec<Percent>>,
    slo: Option<WrittenSlo>,
}

#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Find {
    Max,
}

impl<'de> Deserialize<'de> for Loads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl<'de> Visitor<'de> for Written {
            type Value = Loads;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str(
                    "loads: [1, 4], { from, to, step }, { find = \"max\", slo = \"p99 < 1ms\" }, or \
                     { shares-of-max = [\"50%\", \"80%\"], slo = \"p99 < 1ms\" }",
                )
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Loads, A::Error> {
                let list: Vec<WrittenLoad> =
                    Deserialize::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(Loads(list.into_iter().map(|load| load.0).collect()))
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Loads, A::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(table))?;
                of_table(table).map(Loads).map_err(A::Error::custom)
            }
        }
        deserializer.deserialize_any(Written)
    }
}

fn of_table(table: Table) -> Result<Vec<Load>, String> {
    if let Some(percents) = &table.shares_of_max {
        return shares(percents, &table);
    }
    match (table.find, table.slo) {
        (Some(Find::Max), Some(WrittenSlo(slo))) => {
            if table.step.is_some() {
                return Err("a search finds its own steps; leave out `step`".to_owned());
            }
            Ok(vec![Load::MaxRate(search(slo, table.from, table.to)?)])
        }
        (Some(Find::Max), None) => {
            Err("the highest rate of what? Add slo = \"p99 < 1ms\"".to_owned())
        }
        (None, Some(_)) => {
            Err("a service level without find = \"max\" or shares-of-max".to_owned())
        }
        (None, None) => match (table.from, table.to, table.step) {
            (Some(from), Some(to), Some(step)) => scan(from.0, to.0, step.0),
            _ => Err("a scan has `from`, `to` and `step`".to_owned()),
        },
    }
}

fn search(
    (permille, below_ns): (u32, u64),
    from: Option<WrittenLoad>,
    to: Option<WrittenLoad>,
) -> Result<Slo, String> {
    let rate = |written: Option<WrittenLoad>, usual| match written.map(|load| load.0) {
        None => Ok(usual),
        Some(Load::RatePerSec(rate)) => Ok(rate),
        Some(load) => Err(format!("a search goes over rates, and {load} is none")),
    };
    let slo = Slo {
        permille,
        below_ns,
        from_per_sec: rate(from, SEARCH_FROM_PER_SEC)?,
        to_per_sec: rate(to, SEARCH_TO_PER_SEC)?,
    };
    if slo.from_per_sec >= slo.to_per_sec {
        return Err("a search ends above where it begins".to_owned());
    }
    Ok(slo)
}

/// Shares of the rate that a search finds before the first block.
fn shares(percents: &[Percent], table: &Table) -> Result<Vec<Load>, String> {
    if table.find.is_some() || table.step.is_some() {
        return Err(
            "shares-of-max looks for the highest rate itself; leave out `find` and \
                    `step`"
                .to_owned(),
        );
    }
    let Some(WrittenSlo(slo)) = table.slo else {
        return Err("shares of the highest rate of what? Add slo = \"p99 < 1ms\"".to_owned());
    };
    let slo = search(slo, table.from, table.to)?;
    let share = |Percent(percent): &Percent| {
        let percent = *percent;
        let load = Load::ShareOfMax(ShareOfMax {
            percent,
            slo,
            by_trials: false,
        });
        load.check().map_err(|what| format!("a load {what}"))?;
        Ok(load)
    };
    percents.iter().map(share).collect()
}

/// Both ends included where the steps meet the second.
fn scan(from: Load, to: Load, step: Load) -> Result<Vec<Load>, String> {
    let ((first, make), (last, _), (step_by, _)) = (number(from), number(to), number(step));
    let same_unit = |load: Load| std::mem::discriminant(&load) == std::mem::discriminant(&from);
    if !same_unit(to) || !same_unit(step) {
        return Err(format!("{from}, {to} and {step} are not in the same unit"));
    }
    // Half a thousandth of a step for what decimals lose.
    let steps = ((last - first) / step_by + 0.0005).floor();
    if steps < 0.0 {
        return Err(format!(
            "the scan ends at {to}, below {from}, where it begins"
        ));
    }
    if steps >= MOST_LOADS as f64 {
        return Err(format!(
            "these are more than {MOST_LOADS} loads; take a larger step"
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "below MOST_LOADS, which is checked before"
    )]
    let steps = steps as u32;
    Ok((0..=steps)
        .map(|i| make(first + f64::from(i) * step_by))
        .collect())
}

fn number(load: Load) -> (f64, fn(f64) -> Load) {
    match load {
        Load::One | Load::MaxRate(_) | Load::ShareOfMax(_) => (1.0, |_| Load::One),
        Load::Count(count) => (count as f64, |n| {
            Load::Count(model::truncate_to_u64(n.round()))
        }),
        Load::PercentOfCpus(percent) => (percent, Load::PercentOfCpus),
        Load::RatePerSec(rate) => (rate, Load::RatePerSec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(text: &str) -> Result<Vec<Load>, String> {
        #[derive(serde::Deserialize)]
        struct File {
            loads: Loads,
        }
        let file: Result<File, _> = toml::from_str(&format!("loads = {text}"));
        file.map(|f| f.loads.0).map_err(|e| e.to_string())
    }

    #[test]
    fn a_scan_has_both_its_ends() {
        let rates = [1_000.0, 3_000.0, 5_000.0].map(Load::RatePerSec);
        let scan = r#"{ from = "1k/s", to = "5k/s", step = "2k/s" }"#;
        assert_eq!(loads(scan).unwrap(), rates);
        let counts = [1, 3].map(Load::Count);
        assert_eq!(loads("{ from = 1, to = 4, step = 2 }").unwrap(), counts);
    }

    #[test]
    fn a_search_has_a_service_level_and_usual_ends() {
        let found = loads(r#"{ find = "max", slo = "p99.9 < 2ms", to = "50k/s" }"#).unwrap();
        let slo = Slo {
            permille: 999,
            below_ns: 2_000_000,
            from_per_sec: 1_000.0,
            to_per_sec: 50_000.0,
        };
        assert_eq!(found, [Load::MaxRate(slo)]);
    }

    #[test]
    fn shares_have_the_service_level_of_the_highest_rate_and_the_ends_of_its_search() {
        let text = r#"{ shares-of-max = ["50%", "120%"], slo = "p95 < 500ms", from = "20/s" }"#;
        let slo = Slo {
            permille: 950,
            below_ns: 500_000_000,
            from_per_sec: 20.0,
            to_per_sec: SEARCH_TO_PER_SEC,
        };
        let share = |percent| {
            Load::ShareOfMax(ShareOfMax {
                percent,
                slo,
                by_trials: false,
            })
        };
        assert_eq!(loads(text).unwrap(), [share(50.0), share(120.0)]);
    }

    #[test]
    fn what_is_neither_is_refused_with_the_reason() {
        for (wrong, why) in [
            (r#"{ shares-of-max = ["50%"] }"#, "Add slo ="),
            (
                r#"{ shares-of-max = [50], slo = "p99 < 1ms" }"#,
                "a percentage",
            ),
            (
                r#"{ shares-of-max = ["50%", "0%"], slo = "p99 < 1ms" }"#,
                "above 0%",
            ),
            (
                r#"{ shares-of-max = ["1001%"], slo = "p99 < 1ms" }"#,
                "at most 1000%",
            ),
            (
                r#"{ shares-of-max = ["50%"], find = "max", slo = "p99 < 1ms" }"#,
                "leave out `find`",
            ),
            (
                r#"{ shares-of-max = ["50%"], slo = "p99 < 1ms", from = "9k/s", to = "1k/s" }"#,
                "ends above",
            ),
            (r#"{ find = "max" }"#, "slo ="),
            (r#"{ slo = "p99 < 1ms" }"#, "without find"),
            (r#"{ from = 1, to = 4 }"#, "`step`"),
            (r#"{ from = 1, to = "5k/s", step = 1 }"#, "same unit"),
            (r#"{ from = 9, to = 4, step = 1 }"#, "below 9"),
            (r#"{ from = 1, to = 4000, step = 1 }"#, "more than 100"),
            (
                r#"{ find = "max", slo = "p99 < 1ms", from = 3 }"#,
                "is none",
            ),
            (r#"{ find = "min", slo = "p99 < 1ms" }"#, "max"),
            ("5", "loads:"),
        ] {
            let error = loads(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
