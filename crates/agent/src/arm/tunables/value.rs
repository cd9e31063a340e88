//! From what a person writes (`1ms`, `on`) to the text that the kernel keeps.

use super::FEATURE;
use super::sysctl;
use super::table::{TABLE, Tunable, Unit};
use crate::arm::table::INGREDIENTS;
use load::units::parse_duration;
use model::format_duration_ns;

/// The value in the kernel's own unit, as it is read back: `1ms` → `1000000`,
/// `on` → `1`. An error if the name, unit or range is wrong on any kernel.
pub fn normalise(name: &str, text: &str) -> Result<String, String> {
    let text = text.trim();
    if let Some(feature) = name.strip_prefix(FEATURE) {
        return switch(text)
            .map(|on| if on { "on" } else { "off" }.to_owned())
            .ok_or_else(|| format!("feature {feature}: {text:?} is neither on nor off"));
    }
    if sysctl::is_full_name(name) {
        return sysctl::check(name, text);
    }
    let tunable = find_tunable(name)?;
    match tunable.unit {
        Unit::Word(words) if words.contains(&text) => Ok(text.to_owned()),
        Unit::Word(words) => Err(format!(
            "tunable {name}: {text:?} is none of {}",
            words.join(", ")
        )),
        unit => number(tunable, unit, text).map(|number| number.to_string()),
    }
}

/// The entry of a name, or an error with the nearest one.
pub(super) fn find_tunable(name: &str) -> Result<&'static Tunable, String> {
    if let Some(tunable) = TABLE.iter().find(|t| t.name == name) {
        return Ok(tunable);
    }
    let nearest = model::find_nearest(name, TABLE.iter().map(|t| t.name).chain(other_keys()));
    let hint = nearest.map(|n| format!("; did you mean {n}?"));
    Err(format!(
        "tunable {name}: there is none of that name{}",
        hint.unwrap_or_default()
    ))
}

/// Keys of other changes, which somebody may have meant: `nice` of `nice=N`.
fn other_keys() -> impl Iterator<Item = &'static str> {
    let forms = INGREDIENTS.iter().flat_map(|ingredient| ingredient.forms());
    let keys = forms.filter_map(|(form, _)| Some(form.split_once('=')?.0));
    keys.filter(|key| key.chars().all(|c| c.is_ascii_lowercase()))
}

/// The logical name of a tunable that is written as the kernel calls it (`base_slice_ns`,
/// `sched_latency_ns`, `kernel.sched_latency_ns`); any other name as it is.
pub(crate) fn own_name(name: &str) -> String {
    let of_debugfs = name.strip_prefix(sysctl::DEBUGFS);
    let file = of_debugfs.or(name.strip_prefix("kernel.")).unwrap_or(name);
    let is_its_file = |path: &&str| path.rsplit('/').next() == Some(file);
    let own = TABLE.iter().find(|t| t.candidates.iter().any(is_its_file));
    own.map_or(name, |tunable| tunable.name).to_owned()
}

/// True if [`normalise`] knows how a tunable of this name is set: those of the table, and sysctls by
/// their full names.
pub(crate) fn is_settable(name: &str) -> bool {
    let is_in_table = TABLE.iter().any(|tunable| tunable.name == name);
    let is_sysctl = sysctl::is_full_name(name) && sysctl::check(name, "0").is_ok();
    is_in_table || is_sysctl || name.starts_with(FEATURE)
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

fn number(tunable: &Tunable, unit: Unit, text: &str) -> Result<i64, String> {
    let name = tunable.name;
    let number = match (unit, unit_ns(unit)) {
        (_, Some(unit_ns)) => time(text, unit_ns),
        (Unit::Switch, _) => switch(text).map(i64::from).ok_or("it is on or off"),
        _ => text.parse().map_err(|_| "it is a whole number"),
    }
    .map_err(|expected| format!("tunable {name}: {text:?}: {expected}"))?;
    let (low, high) = tunable.range;
    if (low..=high).contains(&number) {
        return Ok(number);
    }
    let shown = |number| in_unit(unit, number);
    let bare = text.parse::<i64>().is_ok() && unit_ns(unit).is_some();
    let advice = match bare {
        true => "; a bare number is in the kernel's unit, a time is 3ms or 300us",
        false => "",
    };
    Err(format!(
        "tunable {name}: {} is outside {} to {}{advice}",
        shown(number),
        shown(low),
        shown(high)
    ))
}

/// Nanoseconds of the kernel's unit, where it is one of time.
fn unit_ns(unit: Unit) -> Option<u64> {
    match unit {
        Unit::Nanoseconds => Some(1),
        Unit::Microseconds => Some(1_000),
        Unit::Milliseconds => Some(1_000_000),
        Unit::Count | Unit::Switch | Unit::Word(_) => None,
    }
}

/// A number in the kernel's unit as people write it.
fn in_unit(unit: Unit, number: i64) -> String {
    let ns = unit_ns(unit).zip(u64::try_from(number).ok());
    ns.map_or_else(
        || number.to_string(),
        |(unit_ns, number)| format_duration_ns(number.saturating_mul(unit_ns)),
    )
}

/// A time with its unit, or a plain number in units of `unit_ns`.
fn time(text: &str, unit_ns: u64) -> Result<i64, &'static str> {
    if let Ok(plain) = text.parse::<i64>() {
        return Ok(plain);
    }
    let expected = "it is a time such as 300us or 1.5ms, or a whole number in the kernel's unit";
    let ns = parse_duration(text).map_err(|_| expected)?;
    if ns % unit_ns != 0 {
        return Err("the kernel keeps it in whole units, and this is a fraction of one");
    }
    i64::try_from(ns / unit_ns).map_err(|_| expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_brought_to_the_unit_of_the_kernel() {
        assert_eq!(normalise("base_slice", "0.3ms").as_deref(), Ok("300000"));
        assert_eq!(normalise("base_slice", "3000000").as_deref(), Ok("3000000"));
        assert_eq!(
            normalise("cfs_bandwidth_slice", "5ms").as_deref(),
            Ok("5000")
        );
        assert_eq!(normalise("rt_runtime", "-1").as_deref(), Ok("-1"));
    }

    #[test]
    fn a_fraction_of_the_unit_of_the_kernel_is_refused() {
        assert!(
            normalise("rr_timeslice", "1.5ms")
                .unwrap_err()
                .contains("fraction")
        );
    }

    #[test]
    fn switches_words_and_features_have_one_form() {
        assert_eq!(normalise("autogroup", "off").as_deref(), Ok("0"));
        assert_eq!(normalise("preempt", "lazy").as_deref(), Ok("lazy"));
        assert_eq!(normalise("feature.PLACE_LAG", "true").as_deref(), Ok("on"));
        assert!(
            normalise("preempt", "some")
                .unwrap_err()
                .contains("none, voluntary")
        );
        assert!(normalise("feature.PLACE_LAG", "2").is_err());
    }

    #[test]
    fn wrong_names_units_and_ranges_say_what_is_right() {
        assert!(
            normalise("base_slize", "1ms")
                .unwrap_err()
                .contains("base_slice")
        );
        assert!(
            normalise("base_slice", "1 meter")
                .unwrap_err()
                .contains("1.5ms")
        );
        assert!(
            normalise("base_slice", "1ns")
                .unwrap_err()
                .contains("1ns is outside 100us to 1s")
        );
        assert!(
            normalise("nr_migrate", "8ms")
                .unwrap_err()
                .contains("whole number")
        );
        assert!(normalise("base_slice", "-1ms").is_err());
        assert!(normalise("base_slice", "1e99s").is_err());
    }

    #[test]
    fn every_entry_of_the_table_has_a_name_of_its_own_and_a_place() {
        for (index, tunable) in TABLE.iter().enumerate() {
            assert!(
                TABLE[..index]
                    .iter()
                    .all(|other| other.name != tunable.name)
            );
            assert!(!tunable.candidates.is_empty(), "{}", tunable.name);
            assert!(
                tunable
                    .nearest
                    .is_none_or(|name| find_tunable(name).is_ok())
            );
        }
    }
}
