//! Rare events in words, and as rows of a table.

use crate::ReportError;
use crate::quantity::{format_rough_time, in_short, with_unit};
use crate::render::csv::{escape_text, finish_csv};
use crate::table::across::{EventComparison, EventCount};
use crate::table::{Table, Verdict};

/// `0.16/min`; without an event what the rate is below: `fewer than 0.079/min`.
pub fn describe_rate(side: &EventCount) -> String {
    let rate = |rate: f64| with_unit(rate, "/min").replace(" /min", "/min");
    match (side.below_per_minute, side.per_minute) {
        (Some(below), _) => format!("fewer than {}", rate(below)),
        (None, Some(per_minute)) => rate(per_minute),
        (None, None) => "-".to_owned(),
    }
}

/// How often the arm has the event, of the times that its baseline has it: `x5.2 [2.1, 16]`, `more than x4.2`.
pub fn describe_ratio(c: &EventComparison) -> String {
    let times = |ratio: f64| with_unit(ratio, "").trim_end().to_owned();
    let ends = match (c.low, c.high) {
        (Some(low), Some(high)) => format!(" [{}, {}]", times(low), times(high)),
        (Some(low), None) if c.ratio.is_some() => format!(" [{}, no end]", times(low)),
        (None, Some(high)) if c.ratio.is_some_and(|ratio| ratio > 0.0) => {
            format!(" [0, {}]", times(high))
        }
        _ => String::new(),
    };
    match (c.ratio, c.low, c.high) {
        (Some(0.0), _, Some(high)) => format!("less than x{}", times(high)),
        (Some(ratio), ..) if ratio > 0.0 => format!("x{}{ends}", times(ratio)),
        (None, Some(low), _) => format!("more than x{}", times(low)),
        _ => "-".to_owned(),
    }
}

/// `thrown out 8 times in 50 minutes, where default never was`; of other events `request > 100ms 31 times in 12
/// minutes, where default had it 4 times`.
pub fn describe_call(c: &EventComparison) -> String {
    let time = format_rough_time(c.arm_events.exposure_ns);
    let star = match c.survives_ebh {
        Some(false) => "*",
        _ => "",
    };
    let (had, of_baseline) = (c.arm_events.count, c.baseline_events.count);
    let what = c.past.map_or(c.event.as_str(), |past| past.words);
    let baseline = match (c.past, of_baseline) {
        (Some(past), 0) => format!("{} never {}", c.baseline, past.auxiliary),
        (Some(past), count) => {
            let times = times_in_words(count);
            format!("{} {} {times}", c.baseline, past.auxiliary)
        }
        (None, 0) => format!("{} had none", c.baseline),
        (None, count) => format!("{} had {count}", c.baseline),
    };
    match had {
        0 => format!("never {what} in {time}, where {baseline}{star}"),
        count => format!(
            "{what} {} in {time}, where {baseline}{star}",
            times_in_words(count)
        ),
    }
}

fn times_in_words(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// Time to a call of an event that only one arm has, by its rate: `40 s at 10/min, 6 min at 1/min, 1 h at
/// 0.1/min`. A block takes `block_ns` and has a window of `window_ns` of each arm; `at_once` machines measure
/// one each.
pub fn describe_time_to_call(
    window_ns: u64,
    block_ns: u64,
    at_once: u32,
    confidence: f64,
) -> String {
    const RATES_PER_MINUTE: [f64; 3] = [10.0, 1.0, 0.1];
    let windows_a_minute = 60e9 / window_ns.max(1) as f64;
    let of_rate = |rate: f64| {
        let rates = [0.0, rate / windows_a_minute];
        let blocks = stats::events::expect_decision(rates, 1.0, 1.0 - confidence)?;
        let rounds = blocks.div_ceil(at_once.max(1));
        let time = in_short(f64::from(rounds) * block_ns as f64);
        Some(format!("{time} at {rate}/min"))
    };
    let times: Vec<String> = RATES_PER_MINUTE.into_iter().filter_map(of_rate).collect();
    times.join(", ")
}

/// The verdict with its evidence, or the time to a decision at these rates.
pub fn describe_verdict(c: &EventComparison) -> String {
    let star = match c.survives_ebh {
        Some(false) => "*",
        _ => "",
    };
    match (c.verdict, c.more_ns) {
        (Verdict::Unknown, Some(ns)) if ns > 0.0 => {
            format!("unknown, {} more", in_short(ns))
        }
        (verdict, _) => format!("{}{star}", verdict.as_str()),
    }
}

const HEAD: [&str; 20] = [
    "cell",
    "event",
    "baseline",
    "arm",
    "aa",
    "baseline_events",
    "baseline_exposure_s",
    "baseline_per_minute",
    "arm_events",
    "arm_exposure_s",
    "arm_per_minute",
    "ratio",
    "low",
    "high",
    "confidence",
    "verdict",
    "survives_ebh",
    "e_value",
    "blocks",
    "blocks_needed",
];

/// One row for each event of an arm in a cell. What has no value is empty.
pub fn render_csv(table: &Table) -> Result<String, ReportError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEAD)?;
    for comparison in &table.across.events {
        writer.write_record(columns(comparison))?;
    }
    finish_csv(writer)
}

fn columns(c: &EventComparison) -> [String; 20] {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let seconds = |side: &EventCount| (side.exposure_ns / 1e9).to_string();
    let (baseline, arm) = (&c.baseline_events, &c.arm_events);
    [
        escape_text(&c.cell),
        escape_text(&c.event),
        escape_text(&c.baseline),
        escape_text(&c.arm),
        c.aa.to_string(),
        baseline.count.to_string(),
        seconds(baseline),
        number(baseline.per_minute),
        arm.count.to_string(),
        seconds(arm),
        number(arm.per_minute),
        number(c.ratio),
        number(c.low),
        number(c.high),
        c.confidence.to_string(),
        c.verdict.as_str().to_owned(),
        c.survives_ebh
            .map_or_else(String::new, |holds| holds.to_string()),
        c.e_value.to_string(),
        c.blocks.to_string(),
        number(c.blocks_needed.map(f64::from)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::across::events::Past;

    fn side(count: u32, minutes: f64) -> EventCount {
        EventCount {
            count,
            exposure_ns: minutes * 60e9,
            per_minute: Some(f64::from(count) / minutes),
            below_per_minute: (count == 0).then_some(3.0 / minutes),
            requests: None,
            share_of_requests: None,
        }
    }

    fn ejections(baseline: u32, arm: u32) -> EventComparison {
        EventComparison {
            cell: "hackbench 4".to_owned(),
            event: "ejected".to_owned(),
            past: Some(Past {
                words: "thrown out",
                auxiliary: "was",
            }),
            arm: "lavd".to_owned(),
            baseline: "default".to_owned(),
            aa: false,
            ends_window: true,
            arm_events: side(arm, 50.0),
            baseline_events: side(baseline, 50.0),
            ratio: None,
            low: Some(4.2),
            high: None,
            confidence: 0.95,
            e_value: 90.0,
            blocks: 50,
            verdict: Verdict::Worse,
            withdrawn: None,
            survives_ebh: Some(true),
            blocks_needed: None,
            more_ns: None,
            messages: Vec::new(),
        }
    }

    #[test]
    fn a_rarer_event_takes_longer_to_be_called() {
        let (window_ns, block_ns) = (10_000_000_000, 25_000_000_000);
        let said = describe_time_to_call(window_ns, block_ns, 1, 0.95);
        // Six blocks at least: with 1.7 events a window some have none.
        assert!(
            said.starts_with("4 min at 10/min, 19 min at 1/min, "),
            "{said}"
        );
        assert!(
            said.contains(" at 1/min, ") && said.ends_with(" h at 0.1/min"),
            "{said}"
        );
        let on_four = describe_time_to_call(window_ns, block_ns, 4, 0.95);
        assert!(on_four.contains(", 5 min at 1/min, "), "{on_four}");
    }

    #[test]
    fn what_one_side_never_had_is_said_with_a_limit() {
        let c = ejections(0, 8);
        assert_eq!(describe_rate(&c.arm_events), "0.16/min");
        assert_eq!(describe_rate(&side(0, 38.0)), "fewer than 0.08/min");
        assert_eq!(describe_ratio(&c), "more than x4.20");
        assert_eq!(
            describe_call(&c),
            "thrown out 8 times in 50 minutes, where default never was"
        );
    }

    #[test]
    fn a_guest_that_died_is_said_of_its_arm() {
        let dead = EventComparison {
            past: Some(Past {
                words: "brought its guest down",
                auxiliary: "did",
            }),
            ..ejections(1, 3)
        };
        assert_eq!(
            describe_call(&dead),
            "brought its guest down 3 times in 50 minutes, where default did once"
        );
    }

    #[test]
    fn ratios_have_their_ends_and_others_events_their_names() {
        let c = EventComparison {
            event: "request > 100ms".to_owned(),
            past: None,
            ratio: Some(0.25),
            low: None,
            high: Some(0.8),
            verdict: Verdict::Better,
            ..ejections(16, 4)
        };
        assert_eq!(describe_ratio(&c), "x0.25 [0, 0.80]");
        assert_eq!(
            describe_call(&c),
            "request > 100ms 4 times in 50 minutes, where default had 16"
        );
        let open = EventComparison {
            verdict: Verdict::Unknown,
            more_ns: Some(240e9),
            ..c
        };
        assert_eq!(describe_verdict(&open), "unknown, 4 min more");
    }
}
