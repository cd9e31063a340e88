//! One HTML file of everything that changed: no script, no network, light and dark, wide and narrow.
//!
//! `templates/history.html` says how it is laid out, the style sheet is that of reports, and so is the chart.

use crate::alarm::{Outcome, Tracked, Turn};
use crate::run::{Figure, Run};
use crate::search::Look;
use crate::series::{Series, group_series};
use crate::store::Contents;
use crate::stretch::split_series;
use crate::words::{
    describe_attempts, describe_cause, describe_ratio, describe_version, find_interval,
    format_time, list_differences, shorten_hash,
};
use askama::Template;
use jiff::Timestamp;
use report::page::{
    LevelSpan, MonthsChart, RatioPoint, STYLE, TimeMark, VersionMark, draw_months, renumber_clips,
};
use report::{format_change, format_count, format_interval};

/// Runs of a series that are drawn.
const MOST_POINTS: usize = 400;
/// Changes of versions that are listed below a chart.
const MOST_VERSIONS: usize = 60;
/// Series without an alarm that are listed.
const MOST_STEADY: usize = 500;
/// Characters of a version on the axis, and of one that is a commit.
const SHOWN_VERSION: usize = 12;
const SHOWN_COMMIT: usize = 7;
const DAY: f64 = 86_400.0;

/// Failure of the template of the page.
#[derive(Debug, thiserror::Error)]
#[error("writing the page of the history: {0}")]
pub struct PageError(#[from] askama::Error);

#[derive(Template)]
#[template(path = "history.html")]
struct Page {
    style: &'static str,
    title: String,
    about: Vec<String>,
    /// In the place of alarms where there is none.
    nothing: [&'static str; 2],
    alarms: Vec<AlarmView>,
    changed: Vec<SeriesView>,
    steady: Vec<SteadyView>,
    more_steady: usize,
    made_by: &'static str,
}

struct AlarmView {
    id: String,
    series: String,
    title: String,
    chip: &'static str,
    state: String,
    change: String,
    interval: String,
    since: String,
    cause: String,
    attempts: Option<String>,
    /// Reason of its end.
    end: Option<String>,
}

struct SeriesView {
    id: String,
    title: String,
    class: String,
    svg: Option<String>,
    caption: String,
    alarms: Vec<AlarmView>,
    /// Moments with what changed at them, the newest first.
    versions: Vec<(String, String)>,
    more_versions: usize,
}

struct SteadyView {
    cell: String,
    metric: String,
    arm: String,
    runs: usize,
    last: String,
}

/// The page on all that is in a store. The same contents give the same bytes.
pub fn render_page(contents: &Contents) -> Result<String, PageError> {
    let all = group_series(&contents.runs);
    let has_alarm = |series: &Series| {
        let mut alarms = contents.alarms.iter();
        alarms.any(|known| known.alarm.series == series.id)
    };
    let (changed, steady): (Vec<&Series>, Vec<&Series>) =
        all.iter().partition(|series| has_alarm(series));
    let views = changed.iter().map(|series| view_series(series, contents));
    let mut changed_views: Vec<SeriesView> = views.collect();
    // What waits for an answer comes first.
    changed_views.sort_by_key(|view| view.alarms.iter().all(|alarm| alarm.end.is_some()));
    let page = Page {
        style: STYLE,
        title: title(contents, changed.len(), all.len()),
        nothing: describe_nothing(contents),
        about: about(contents),
        alarms: list_alarms(contents, |_| true),
        changed: changed_views,
        more_steady: steady.len().saturating_sub(MOST_STEADY),
        steady: steady
            .into_iter()
            .take(MOST_STEADY)
            .map(view_steady)
            .collect(),
        made_by: env!("CARGO_PKG_VERSION"),
    };
    Ok(renumber_clips(&page.render()?))
}

fn title(contents: &Contents, changed: usize, all: usize) -> String {
    match (contents.look, changed) {
        (None, 0) => format!("{all} series, not looked at yet"),
        (Some(_), 0) => format!("Nothing changed in {all} series"),
        (_, changed) => format!("{changed} of {all} series changed"),
    }
}

fn describe_nothing(contents: &Contents) -> [&'static str; 2] {
    match contents.look {
        None => [
            "There is no alarm yet.",
            "Nobody has looked for changes: schedlab history check does.",
        ],
        Some(_) => [
            "There is no alarm.",
            "Each series below is as it was, as far as its runs can tell.",
        ],
    }
}

fn about(contents: &Contents) -> Vec<String> {
    let runs = &contents.runs;
    let mut about = Vec::new();
    if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
        about.push(format!(
            "{} from {} to {} (UTC).",
            format_count(runs.len(), "run"),
            format_time(first.created),
            format_time(last.created)
        ));
    }
    about.extend(contents.look.map(|look| describe_look(look, runs)));
    about
}

fn describe_look(look: Look, runs: &[Run]) -> String {
    let since = runs.iter().filter(|run| run.added > look.at).count();
    let newer = match since {
        0 => String::new(),
        since => format!("; {} came since", format_count(since, "run")),
    };
    format!(
        "Changes from {} % on were looked for on {}; false alarms: at most {} a year{newer}.",
        (1e5 * look.settings.effect).round() / 1e3,
        format_time(look.at),
        look.settings.false_alarms_per_year
    )
}

/// Alarms that are open first, then the newest first.
fn list_alarms(contents: &Contents, wanted: impl Fn(&Tracked) -> bool) -> Vec<AlarmView> {
    let mut alarms: Vec<&Tracked> = contents.alarms.iter().filter(|a| wanted(a)).collect();
    alarms.sort_by_key(|known| {
        let newest = std::cmp::Reverse(known.alarm.seen_at);
        (known.outcome != Outcome::Open, newest)
    });
    let alarms = alarms.into_iter();
    alarms.map(|known| view_alarm(known, contents)).collect()
}

fn view_alarm(known: &Tracked, contents: &Contents) -> AlarmView {
    let alarm = &known.alarm;
    let since = contents.find_run(&alarm.first);
    let since = since.map_or_else(|_| alarm.seen_at, |run| run.created);
    let came = if alarm.is_drift {
        "little by little since"
    } else {
        "since"
    };
    let stands = matches!(known.outcome, Outcome::Open | Outcome::Confirmed);
    AlarmView {
        id: shorten_hash(&alarm.id).to_owned(),
        series: shorten_hash(&alarm.series).to_owned(),
        title: alarm.title.clone(),
        chip: if stands {
            alarm.turn.as_str()
        } else {
            "unknown"
        },
        state: format!("{}, {}", alarm.turn.as_str(), known.outcome.as_str()),
        change: format_change(alarm.change),
        interval: format_interval(alarm.low, alarm.high),
        since: format!("{came} {}", format_time(since)),
        cause: describe_cause(alarm, contents),
        attempts: describe_attempts(known),
        end: known.end.as_ref().map(|end| {
            let (how, at) = (end.outcome.as_str(), format_time(end.at));
            format!("{how} on {at}: {}", end.why)
        }),
    }
}

fn view_series(series: &Series, contents: &Contents) -> SeriesView {
    let begin = series.points.len().saturating_sub(MOST_POINTS);
    let mut changes = list_version_changes(series);
    changes.reverse();
    let all = changes.len();
    changes.truncate(MOST_VERSIONS);
    SeriesView {
        id: shorten_hash(&series.id).to_owned(),
        title: series.title(),
        class: series.key.class.in_words(),
        svg: draw_months(&chart_series(series, contents, begin)),
        caption: caption(series, begin),
        alarms: list_alarms(contents, |known| known.alarm.series == series.id),
        more_versions: all - changes.len(),
        versions: changes,
    }
}

fn caption(series: &Series, begin: usize) -> String {
    let all = series.points.len();
    let runs = match begin {
        0 => format_count(all, "run"),
        _ => format!("The newest {} of {all} runs", all - begin),
    };
    let last = series.points.last();
    let last = last.map_or_else(String::new, |(_, figure)| describe_ratio(figure));
    format!("{runs}, the last with {last}.")
}

fn chart_series(series: &Series, contents: &Contents, begin: usize) -> MonthsChart {
    let shown = &series.points[begin..];
    let of_series = contents.alarms.iter();
    let alarms: Vec<&Tracked> = of_series.filter(|a| a.alarm.series == series.id).collect();
    let stretches = split_series(series, &contents.alarms).into_iter();
    let levels = stretches.filter_map(|stretch| {
        let runs = stretch.runs.start.max(begin)..stretch.runs.end;
        find_level(series.points.get(runs)?)
    });
    let changes = alarms.iter().filter_map(|known| {
        let mut points = shown.iter();
        let (run, _) = points.find(|(run, _)| run.id == known.alarm.first)?;
        Some(mark_change(run, known))
    });
    MonthsChart {
        points: shown
            .iter()
            .map(|(run, figure)| point(run, figure))
            .collect(),
        levels: levels.collect(),
        changes: changes.collect(),
        versions: mark_versions(shown, &alarms),
        date_words,
    }
}

fn point(run: &Run, figure: &Figure) -> RatioPoint {
    let (low, high) = find_interval(figure);
    RatioPoint {
        at_s: seconds_of(run),
        ratio: figure.log_ratio.exp(),
        low,
        high,
        words: format!(
            "{}: {}; {}, kernel {}",
            format_time(run.created),
            describe_ratio(figure),
            describe_version(run, &figure.arm),
            run.kernel
        ),
    }
}

/// The mean of a stretch, on the scale of the logarithm.
fn find_level(points: &[(&Run, &Figure)]) -> Option<LevelSpan> {
    let (first, last) = (points.first()?.0, points.last()?.0);
    let sum: f64 = points.iter().map(|(_, figure)| figure.log_ratio).sum();
    Some(LevelSpan {
        from_to_s: [first, last].map(seconds_of),
        ratio: (sum / points.len() as f64).exp(),
    })
}

fn mark_change(run: &Run, known: &Tracked) -> TimeMark {
    let color = match (known.outcome, known.alarm.turn) {
        (Outcome::Open | Outcome::Confirmed, Turn::Worse) => "var(--worse)",
        (Outcome::Open | Outcome::Confirmed, Turn::Better) => "var(--better)",
        _ => "var(--axis)",
    };
    TimeMark {
        at_s: seconds_of(run),
        color,
        is_solid: known.outcome == Outcome::Confirmed,
    }
}

fn mark_versions(points: &[(&Run, &Figure)], alarms: &[&Tracked]) -> Vec<VersionMark> {
    let is_first = |run: &Run| alarms.iter().any(|known| known.alarm.first == run.id);
    let marks = points
        .iter()
        .enumerate()
        .filter_map(|(index, (run, figure))| {
            let before = index.checked_sub(1).map(|before| points[before].0);
            let arms = [figure.arm.as_str(), figure.anchor.as_str()];
            Some(VersionMark {
                at_s: seconds_of(run),
                name: name_version(before, run, arms)?,
                is_first: is_first(run),
            })
        });
    marks.collect()
}

/// Short name of what is new in a run; none where all is as before.
fn name_version(before: Option<&Run>, run: &Run, [arm, anchor]: [&str; 2]) -> Option<String> {
    let is_new = |what: fn(&Run, &str) -> String, arm: &str| {
        before.is_none_or(|before| what(before, arm) != what(run, arm))
    };
    let text = |run: &Run, arm: &str| {
        run.arms
            .get(arm)
            .map(|v| v.text.clone())
            .unwrap_or_default()
    };
    let programs = |run: &Run, arm: &str| {
        run.arms
            .get(arm)
            .map(|v| v.programs.join(" "))
            .unwrap_or_default()
    };
    let name = if is_new(text, arm) {
        let text = text(run, arm);
        let version = text.rsplit(['@', '#']).next().unwrap_or_default();
        version.split(' ').next().unwrap_or_default().to_owned()
    } else if is_new(programs, arm) {
        let programs = programs(run, arm);
        programs.rsplit(' ').next().unwrap_or_default().to_owned()
    } else if is_new(|run, _| run.kernel.clone(), arm) {
        run.kernel.clone()
    } else if is_new(describe_version, anchor) {
        "anchor".to_owned()
    } else {
        return None;
    };
    // A dollar sign begins mathematics in a chart.
    let is_plain = |c: char| c.is_alphanumeric() || "._-+=:%/".contains(c);
    let is_commit = name.len() >= SHOWN_VERSION && name.bytes().all(|b| b.is_ascii_hexdigit());
    let most = if is_commit {
        SHOWN_COMMIT
    } else {
        SHOWN_VERSION
    };
    let name = name.chars().take(most);
    Some(name.map(|c| if is_plain(c) { c } else { '_' }).collect())
}

fn list_version_changes(series: &Series) -> Vec<(String, String)> {
    let pairs = series.points.windows(2);
    let changes = pairs.filter_map(|pair| {
        let (run, figure) = pair[1];
        let changed = list_differences(pair[0].0, run, [&figure.arm, &figure.anchor]);
        (!changed.is_empty()).then(|| (format_time(run.created), changed.join("; ")))
    });
    changes.collect()
}

fn view_steady(series: &Series) -> SteadyView {
    let key = &series.key;
    let last = series.points.last();
    SteadyView {
        cell: key.cell.clone(),
        metric: key.metric.clone(),
        arm: key.arm.clone(),
        runs: series.points.len(),
        last: last.map_or_else(String::new, |(_, figure)| describe_ratio(figure)),
    }
}

fn seconds_of(run: &Run) -> f64 {
    run.created.as_second() as f64
}

/// A mark of the axis of time, which is so many seconds before the next.
#[expect(clippy::cast_possible_truncation, reason = "the time of a run")]
fn date_words(at: f64, step: f64) -> String {
    let form = if step < DAY {
        "%d. %H:%M"
    } else if step < 180.0 * DAY {
        "%b %-d"
    } else {
        "%Y-%m"
    };
    let time = Timestamp::from_second(at as i64);
    time.map_or_else(|_| String::new(), |time| time.strftime(form).to_string())
}
