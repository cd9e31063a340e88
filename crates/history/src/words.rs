//! Figures, versions and causes in words.

use crate::alarm::{Alarm, Tracked};
use crate::run::{Figure, Run};
use crate::series::group_series;
use crate::store::Contents;
use jiff::Timestamp;
use model::printable::one_line;
use report::picture::HEIGHTS;
use report::{format_change, format_count, format_interval};

/// Characters of a hash that are shown: enough to be the beginning of one only.
const SHOWN_HASH: usize = 8;
/// Half of an interval at 95 %, in standard errors.
const HALF_OF_INTERVAL: f64 = 1.96;

/// The beginning of a hash.
pub fn shorten_hash(hash: &str) -> &str {
    hash.get(..SHOWN_HASH).unwrap_or(hash)
}

/// Ends of the interval of a ratio at 95 %, by the blocks of its run alone.
pub fn find_interval(figure: &Figure) -> (f64, f64) {
    let half = HALF_OF_INTERVAL * figure.error;
    let end = |log: f64| log.exp();
    (end(figure.log_ratio - half), end(figure.log_ratio + half))
}

/// `+3.2% [+1.0%, +5.4%]`.
pub fn describe_ratio(figure: &Figure) -> String {
    let (low, high) = find_interval(figure);
    let ratio = format_change(figure.log_ratio.exp());
    format!("{ratio} {}", format_interval(low, high))
}

/// `2026-11-21 19:16`, in UTC.
pub fn format_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Version of an arm in a run: `batch`, `scx_lavd (scx_lavd 1.1.3, sha256 0123456789ab)`.
pub fn describe_version(run: &Run, arm: &str) -> String {
    let Some(version) = run.arms.get(arm) else {
        return "none".to_owned();
    };
    let programs = version.programs.join(", ");
    let words = match programs.is_empty() {
        true => version.text.clone(),
        false => format!("{} ({programs})", version.text),
    };
    one_line(&words).into_owned()
}

/// `1a2b3c4d of 2026-11-21 19:16`.
pub fn name_run(run: &Run) -> String {
    format!("{} of {}", shorten_hash(&run.id), format_time(run.created))
}

/// Measurements of both versions of an alarm that did not decide; none where there is none.
pub fn describe_attempts(known: &Tracked) -> Option<String> {
    let measurements = format_count(known.attempts as usize, "measurement");
    (known.attempts > 0).then(|| format!("{measurements} of both versions did not decide"))
}

/// Records of two runs that are not the same, an arm and its anchor looked at.
pub fn list_differences(before: &Run, after: &Run, arms: [&str; 2]) -> Vec<String> {
    let versions = arms.map(|arm| {
        let versions = [before, after].map(|run| describe_version(run, arm));
        (format!("arm {arm}"), versions)
    });
    let facts = [
        ("kernel", [&before.kernel, &after.kernel]),
        ("machine", [&before.machine, &after.machine]),
        ("schedlab", [&before.tool, &after.tool]),
    ];
    let facts = facts.map(|(what, values)| (what.to_owned(), values.map(Clone::clone)));
    let all = versions.into_iter().chain(facts);
    let differing = all.filter(|(_, [before, after])| before != after);
    let words = differing.map(|(what, [before, after])| format!("{what}: {before} → {after}"));
    words.map(|words| one_line(&words).into_owned()).collect()
}

/// Records that are not the same in the two runs whose versions an alarm is about; none where one of them is gone.
pub fn find_differences_at(alarm: &Alarm, contents: &Contents) -> Option<Vec<String>> {
    let [before, after] = contents.find_pair(alarm).ok()?;
    let mut figures = after.figures.iter();
    let figure = figures.find(|figure| figure.arm == alarm.key.arm)?;
    Some(list_differences(
        before,
        after,
        [&figure.arm, &figure.anchor],
    ))
}

/// The sentence on what changed at an alarm, without its full stop.
pub fn describe_cause(alarm: &Alarm, contents: &Contents) -> String {
    let pair = contents.find_pair(alarm).ok();
    let differences = find_differences_at(alarm, contents);
    let Some(([before, after], differences)) = pair.zip(differences) else {
        return "what changed is not known any more".to_owned();
    };
    let between = match [&before.id, &after.id] == [&alarm.before, &alarm.first] {
        true => "the two".to_owned(),
        false => format!("runs {} and {}", name_run(before), name_run(after)),
    };
    match differences.is_empty() {
        true => format!(
            "nothing that is recorded changed between {between}: versions of the arm, the anchor, the kernel and \
             schedlab are the same"
        ),
        false => format!("changed between {between}: {}", differences.join("; ")),
    }
}

/// Runs of a picture, and those of them that are before the change at least, if there are so many.
const DRAWN: usize = 40;
const DRAWN_BEFORE: usize = 15;

/// The ratios of the runs around an alarm as one line: `▁▂▁▁|▇▆▇`, with their range. None where its runs are gone.
pub fn draw_series(alarm: &Alarm, contents: &Contents) -> Option<String> {
    let all = group_series(&contents.runs);
    let series = all.iter().find(|series| series.id == alarm.series)?;
    let mut runs = series.points.iter();
    let change = runs.position(|(run, _)| run.id == alarm.first)?;
    let count = series.points.len();
    let from = count
        .saturating_sub(DRAWN)
        .min(change.saturating_sub(DRAWN_BEFORE));
    let shown = &series.points[from..count.min(from + DRAWN)];
    let logs: Vec<f64> = shown.iter().map(|(_, figure)| figure.log_ratio).collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
    let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let height = |log: f64| {
        let share = if high > low {
            (log - low) / (high - low)
        } else {
            0.0
        };
        let step = model::truncate_to_u64(share * 7.0 + 0.5);
        HEIGHTS[usize::try_from(step).unwrap_or(7).min(7)]
    };
    let (before, after) = logs.split_at(change - from);
    let draw = |logs: &[f64]| logs.iter().map(|log| height(*log)).collect::<String>();
    Some(format!(
        "{}|{}  ({} to {} in {})",
        draw(before),
        draw(after),
        format_change(low.exp()),
        format_change(high.exp()),
        format_count(logs.len(), "run")
    ))
}

/// The sentence on an alarm: its series, its size with the interval, and since when.
pub fn describe_alarm(alarm: &Alarm, contents: &Contents) -> String {
    let since = contents.find_run(&alarm.first).map_or_else(
        |_| format!("run {}", shorten_hash(&alarm.first)),
        |run| format!("run {}", name_run(run)),
    );
    let came = if alarm.is_drift {
        "little by little since"
    } else {
        "since"
    };
    let (change, interval) = (
        format_change(alarm.change),
        format_interval(alarm.low, alarm.high),
    );
    let title = one_line(&alarm.title);
    format!(
        "{title} is {}, {change} {interval}, {came} {since}",
        alarm.turn.as_str()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{Settings, find_alarms};
    use crate::testing::run;

    #[test]
    fn a_picture_has_the_runs_around_the_change_and_nothing_of_an_alarm_whose_runs_are_gone() {
        let at = |n: i64| {
            let wave = 0.002 * (n as f64 * 2.4).sin();
            run(n, wave + if n < 50 { 0.0 } else { 0.05 })
        };
        let contents = |nights: std::ops::Range<i64>| Contents {
            runs: nights.map(at).collect(),
            alarms: Vec::new(),
            look: None,
        };
        let all = contents(0..60);
        let now = "2027-01-01T00:00:00Z".parse().unwrap();
        let found = find_alarms(&all, Settings::default(), now);
        let alarm = &found.alarms[0];
        let picture = draw_series(alarm, &all).unwrap();
        let (drawn, range) = picture.split_once("  ").unwrap();
        let (before, after) = drawn.split_once('|').unwrap();
        assert_eq!((before.chars().count(), after.chars().count()), (30, 10));
        let is_low = |c| matches!(c, '▁' | '▂');
        assert!(
            before.chars().all(is_low) && !after.contains(is_low),
            "{picture}"
        );
        assert!(range.contains("in 40 runs"), "{picture}");
        assert!(picture.chars().count() <= 76, "{picture}");

        // Many nights later it still shows the change.
        let later = draw_series(alarm, &contents(0..300)).unwrap();
        let (before, after) = later.split_once('|').unwrap();
        assert_eq!(before.chars().count(), 15);
        assert!(after.starts_with(|c| !is_low(c)), "{later}");
        assert_eq!(draw_series(alarm, &contents(51..60)), None);
    }
}
