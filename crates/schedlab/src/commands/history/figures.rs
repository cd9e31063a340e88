//! Figures and versions in words.

use super::short;
use history::{Figure, Run};
use model::printable::one_line;
use report::{format_change, format_interval};

/// Half of an interval at 95 %, in standard errors.
const HALF_OF_INTERVAL: f64 = 1.96;

/// Ends of the interval of a ratio at 95 %, by the blocks of its run alone.
pub fn find_interval(figure: &Figure) -> (f64, f64) {
    let half = HALF_OF_INTERVAL * figure.error;
    let end = |log: f64| log.exp();
    (end(figure.log_ratio - half), end(figure.log_ratio + half))
}

/// `+3.2% [+1.0%, +5.4%]`.
pub fn ratio_words(figure: &Figure) -> String {
    let (low, high) = find_interval(figure);
    let ratio = format_change(figure.log_ratio.exp());
    format!("{ratio} {}", format_interval(low, high))
}

/// `2026-11-21 19:16`, in UTC.
pub fn time_words(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M").to_string()
}

/// Version of an arm in a run: `batch`, `scx_lavd (scx_lavd 1.1.3, sha256 0123456789ab)`.
pub fn version_words(run: &Run, arm: &str) -> String {
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
pub fn run_words(run: &Run) -> String {
    format!("{} of {}", short(&run.id), time_words(run.created))
}

/// Records of two runs that are not the same, an arm and its anchor looked at.
pub fn list_differences(before: &Run, after: &Run, arms: [&str; 2]) -> Vec<String> {
    let versions = arms.map(|arm| {
        let versions = [before, after].map(|run| version_words(run, arm));
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
