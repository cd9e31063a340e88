//! From what the threads recorded to metrics and histograms.

use super::Record;
use super::metrics::{
    AUDIO, COMPILED, FPS_0_1_PERCENT_LOW, FPS_1_PERCENT_LOW, FPS_AVERAGE, FPS_P1, INPUT,
    LONGEST_FREEZE, MISSED, RENDER, UNDERRUNS,
};
use super::screen::{Pictures, Screen};
use load::figures::Figures;
use load::latency::Quantile;
use load::recording::{Recorder, Window};
use load::turn_values::InTurns;
use load::{Job, Parsed};
use model::{MetricDef, Turns};
use stats::frames::{low_by_mean, low_by_rank};
use std::time::SystemTime;

/// Moments from which the figures of any part of the window follow.
struct Seen {
    screen: Screen,
    window: Window,
    shown: Vec<u64>,
    underruns: Option<Vec<u64>>,
    compiled: Option<Vec<u64>>,
}

/// A log with its quantiles and its recorders.
type Log = (&'static str, &'static [Quantile], Vec<Recorder>);

/// The figures of a load whose window opened at `opened`.
pub fn compute_figures(
    job: &Job,
    records: Vec<Record>,
    opened: SystemTime,
) -> Result<Parsed, String> {
    let (seen, logs) = sort_records(records)?;
    if seen.screen.vblanks_in(seen.window).is_empty() {
        return Err("no vblank was in the window; use a longer duration".to_owned());
    }
    if let Some(turns) = &job.turns {
        return in_turns(turns, &seen, logs, opened);
    }
    let mut figures = Figures::new(opened);
    for (def, value) in seen.figures_in(seen.window) {
        figures.push(def, value);
    }
    for (name, quantiles, recorders) in logs {
        figures.latency(name, quantiles, recorders)?;
    }
    Ok(figures.finish())
}

fn sort_records(records: Vec<Record>) -> Result<(Seen, Vec<Log>), String> {
    let mut rendered = None;
    let mut heard = None;
    let mut compiled: Option<Vec<u64>> = None;
    for record in records {
        match record {
            Record::Rendered(render) => rendered = render,
            Record::Delivered => {}
            Record::Heard(audio) => heard = Some(*audio),
            Record::Compiled(done) => compiled.get_or_insert_default().extend(done),
        }
    }
    let rendered = *rendered.ok_or("the render loop did not run")?;
    let mut logs: Vec<Log> = vec![
        ("frame", &[], vec![rendered.frame]),
        ("render", RENDER, vec![rendered.render]),
        ("input", INPUT, vec![rendered.input]),
    ];
    let underruns = heard.map(|heard| {
        logs.push(("audio", AUDIO, vec![heard.filled]));
        heard.underruns
    });
    let seen = Seen {
        screen: rendered.screen,
        window: rendered.window,
        shown: rendered.shown,
        underruns,
        compiled,
    };
    Ok((seen, logs))
}

/// Figures of each turn of arms that change places. Each is of the vblanks of its window.
fn in_turns(
    turns: &Turns,
    seen: &Seen,
    logs: Vec<Log>,
    opened: SystemTime,
) -> Result<Parsed, String> {
    let mut figures = InTurns::new(turns, opened);
    let mut defs = Vec::new();
    let half_ns = turns.lengths.window_ns / 2;
    for turn in 0..turns.order.len() {
        let turn_begin_ns = seen.window.begin_ns + turns.lengths.turn_ns() * turn as u64;
        let begin_ns = turn_begin_ns + turns.lengths.washout_ns;
        let end_ns = begin_ns + turns.lengths.window_ns;
        let part = |begin_ns, end_ns| seen.figures_in(Window { begin_ns, end_ns });
        let middle_ns = begin_ns + half_ns;
        let halves = [part(begin_ns, middle_ns), part(middle_ns, end_ns)];
        defs = part(begin_ns, end_ns);
        for (index, (def, whole)) in defs.iter().enumerate() {
            let of_half = |half: &Vec<(MetricDef, f64)>| half.get(index).map(|(_, value)| *value);
            figures.set(turn, *def, Some(*whole), halves.each_ref().map(of_half));
        }
    }
    defs.into_iter().for_each(|(def, _)| figures.define(def));
    for (name, quantiles, recorders) in logs {
        figures.latency(name, quantiles, None, recorders)?;
    }
    Ok(figures.finish())
}

impl Seen {
    /// Figures of a part of the window, always in the same order; a vblank at least must be in it.
    fn figures_in(&self, part: Window) -> Vec<(MetricDef, f64)> {
        let pictures = Pictures::shown_in(self.screen.vblanks_in(part), &self.shown);
        let interval_ns = self.screen.interval_ns;
        let times_ns: Vec<u64> = pictures.stays.iter().map(|n| n * interval_ns).collect();
        let seconds = (pictures.vblanks * interval_ns) as f64 / 1e9;
        let longest_ns = times_ns.iter().max().copied().unwrap_or(0);
        let per_sec = |count: u64| count as f64 / seconds;
        let mut figures = vec![
            (FPS_AVERAGE, per_sec(pictures.frames)),
            (MISSED, 60.0 * per_sec(pictures.missed())),
            (LONGEST_FREEZE, longest_ns as f64),
        ];
        let lows = [
            (FPS_1_PERCENT_LOW, low_by_mean(&times_ns, 10)),
            (FPS_0_1_PERCENT_LOW, low_by_mean(&times_ns, 1)),
            (FPS_P1, low_by_rank(&times_ns, 10)),
        ];
        figures.extend(lows.map(|(def, low)| (def, low.unwrap_or(0.0))));
        let count = |moments: &[u64]| moments.iter().filter(|at| part.contains(**at)).count();
        let underruns = self.underruns.as_ref();
        figures.extend(underruns.map(|all| (UNDERRUNS, 60.0 * count(all) as f64 / part.seconds())));
        let compiled = self.compiled.as_ref();
        figures.extend(compiled.map(|all| (COMPILED, count(all) as f64 / part.seconds())));
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const MS: u64 = 1_000_000;

    /// A screen of 100 vblanks a second, and a window from 1 s to 2 s.
    fn seen(shown: Vec<u64>) -> Seen {
        Seen {
            screen: Screen {
                start_ns: 0,
                interval_ns: 10 * MS,
            },
            window: Window {
                begin_ns: 1_000 * MS,
                end_ns: 2_000 * MS,
            },
            shown,
            underruns: Some(vec![999 * MS, 1_500 * MS, 2_000 * MS]),
            compiled: None,
        }
    }

    fn figures(seen: &Seen) -> BTreeMap<&'static str, f64> {
        let figures = seen.figures_in(seen.window).into_iter();
        figures.map(|(def, value)| (def.name, value)).collect()
    }

    #[test]
    fn without_a_miss_all_rates_are_that_of_the_screen() {
        let found = figures(&seen((0..200).collect()));
        for rate in [
            "fps_average",
            "fps_1_percent_low",
            "fps_0_1_percent_low",
            "fps_p1",
        ] {
            assert_eq!(found[rate], 100.0, "{rate}");
        }
        assert_eq!(found["missed_frames_per_min"], 0.0);
        assert_eq!(found["longest_freeze"], 10e6);
        assert_eq!(found["underruns_per_min"], 60.0, "one in a second");
        assert!(!found.contains_key("compiled_per_sec"));
    }

    #[test]
    fn misses_are_in_every_figure_as_worked_by_hand() {
        // Vblanks 110 to 113 and 150 show the old picture.
        let shown = (0..200).filter(|n| !(110..114).contains(n) && *n != 150);
        let found = figures(&seen(shown.collect()));
        assert_eq!(found["fps_average"], 95.0);
        assert_eq!(found["missed_frames_per_min"], 300.0);
        assert_eq!(found["longest_freeze"], 50e6);
        // Of 95 pictures one is 1 % and 0.1 %, rounded up: the freeze of 50 ms.
        assert_eq!(found["fps_1_percent_low"], 20.0);
        assert_eq!(found["fps_0_1_percent_low"], 20.0);
        assert_eq!(found["fps_p1"], 20.0);
    }

    #[test]
    fn a_loop_that_stands_still_has_figures() {
        let found = figures(&seen(vec![1, 2, 3]));
        assert_eq!(found["fps_average"], 0.0);
        assert_eq!(found["fps_1_percent_low"], 1.0);
        assert_eq!(found["missed_frames_per_min"], 6_000.0);
        assert_eq!(found["longest_freeze"], 1e9);
    }
}
