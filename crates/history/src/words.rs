//! Figures, versions and causes in words.

use crate::alarm::Alarm;
use crate::run::{Figure, Run};
use crate::store::Contents;
use jiff::Timestamp;
use model::printable::one_line;
use report::{format_change, format_interval};

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

/// Records of the two runs around an alarm that are not the same; none where one of them is gone.
pub fn find_differences_at(alarm: &Alarm, contents: &Contents) -> Option<Vec<String>> {
    let before = contents.find_run(&alarm.before).ok()?;
    let first = contents.find_run(&alarm.first).ok()?;
    let mut figures = first.figures.iter();
    let figure = figures.find(|figure| figure.arm == alarm.key.arm)?;
    Some(list_differences(
        before,
        first,
        [&figure.arm, &figure.anchor],
    ))
}

/// The sentence on what changed at an alarm, without its full stop.
pub fn describe_cause(alarm: &Alarm, contents: &Contents) -> String {
    match find_differences_at(alarm, contents) {
        None => "what changed is not known any more".to_owned(),
        Some(differences) if differences.is_empty() => {
            "nothing that is recorded changed between the two: versions of the arm, the anchor, the kernel and \
             schedlab are the same"
                .to_owned()
        }
        Some(differences) => format!("changed between the two: {}", differences.join("; ")),
    }
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
