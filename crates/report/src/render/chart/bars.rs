//! A chart of bars: what was due beside what was got, with intervals.

use super::{Estimate, color, custom, draw};
use crate::quantity::with_unit;
use kuva::prelude::{BarPlot, Layout, Plot, ScatterPlot};

/// Bars of one arm at one place: what is due to it, and what it got.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Number of the arm's colour.
    pub color: usize,
    /// Name in the labels of the bars.
    pub name: String,
    pub due: f64,
    pub got: Estimate,
}

/// Place on the first axis: its name, and the pairs of bars that stand there.
#[derive(Debug, Clone)]
pub struct Place {
    pub name: String,
    pub pairs: Vec<Pair>,
}

/// Part of the room of a place that its bars take.
const WIDTH: f64 = 0.84;

/// The chart; none without pairs. What is due is faint. What was got is strong, with its interval.
pub fn draw_pairs(places: &[Place], y: &str) -> Option<String> {
    let all = || places.iter().flat_map(|place| &place.pairs);
    let tops = all().flat_map(|pair| [pair.due, pair.got.high]);
    let top = tops.fold(0.0, f64::max);
    let plots = vec![bars(places), whiskers(places)];
    let layout = Layout::auto_from_plots(&plots)
        .with_y_label(y)
        .with_y_axis_min(0.0)
        .with_y_axis_max(top * 1.05)
        .with_y_tick_format(custom(|value| with_unit(value, "count")));
    all().next().map(|_| draw(plots, layout))
}

/// Bars of a place for so many pairs: two for each, and the room of one between two pairs.
fn bars_for(pairs: usize) -> usize {
    (3 * pairs).saturating_sub(1)
}

fn bars(places: &[Place]) -> Plot {
    let mut bars = BarPlot::new().with_width(WIDTH);
    let mut labels = Vec::new();
    for place in places {
        let mut group = Vec::new();
        for pair in &place.pairs {
            if !group.is_empty() {
                group.push((0.0, "none".to_owned()));
                labels.push(String::new());
            }
            group.push((pair.due, format!("var(--arm-{}-faint)", pair.color)));
            group.push((pair.got.ratio, color(pair.color)));
            labels.extend(pair.labels(&place.name));
        }
        bars = bars.with_group(&place.name, group);
    }
    Plot::Bar(bars.with_tooltips().with_tooltip_labels(labels))
}

/// Intervals of what was got, in the middle of its bars.
fn whiskers(places: &[Place]) -> Plot {
    let mut found = Vec::new();
    for (at, place) in places.iter().enumerate() {
        let width = WIDTH / bars_for(place.pairs.len()) as f64;
        for (index, pair) in place.pairs.iter().enumerate() {
            let bar = (3 * index + 1) as f64;
            let x = at as f64 + 1.0 - WIDTH / 2.0 + width * (bar + 0.5);
            if pair.got.low < pair.got.high {
                found.push((x, pair.got));
            }
        }
    }
    let whiskers = ScatterPlot::new()
        .with_data(found.iter().map(|(x, got)| (*x, got.ratio)))
        .with_y_err_asymmetric(found.iter().map(|(_, got)| got.arms()))
        .with_color("var(--text)")
        .with_size(1.0);
    Plot::Scatter(whiskers)
}

impl Pair {
    fn labels(&self, place: &str) -> [String; 2] {
        let value = |value| with_unit(value, "count");
        let part = match self.due > 0.0 {
            true => format!(", {:.1} % of it", 100.0 * self.got.ratio / self.due),
            false => String::new(),
        };
        [
            format!("{}, {place}: entitled to {}", self.name, value(self.due)),
            format!(
                "{}, {place}: got {}{part}",
                self.name,
                value(self.got.ratio),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(got: Estimate) -> [Place; 1] {
        let pair = |color, name: &str, got| Pair {
            color,
            name: name.to_owned(),
            due: 200.0,
            got,
        };
        let pairs = vec![
            pair(0, "default", got),
            pair(3, "batch", Estimate::without_interval(150.0)),
        ];
        [Place {
            name: "A".to_owned(),
            pairs,
        }]
    }

    /// Left edges of the bars of these colours, and their heights.
    fn rects(svg: &str) -> Vec<(String, f64, f64)> {
        let part = |rect: &str, name: &str| {
            let from = rect.split(&format!(" {name}=\"")).nth(1)?;
            Some(from.split('"').next()?.to_owned())
        };
        let rects = svg.split("<rect").skip(1);
        let found = rects.filter_map(|rect| {
            let fill = part(rect, "fill")?;
            let number = |name| part(rect, name)?.parse().ok();
            let of_arm = fill.starts_with("var(--arm-");
            of_arm.then_some((fill, number("x")?, number("height")?))
        });
        found.collect()
    }

    #[test]
    fn each_arm_has_what_is_due_beside_what_it_got() {
        let svg = draw_pairs(&places(Estimate::without_interval(100.0)), "work").unwrap();
        let rects = rects(&svg);
        let fills: Vec<&str> = rects.iter().map(|(fill, _, _)| fill.as_str()).collect();
        assert_eq!(
            fills,
            [
                "var(--arm-0-faint)",
                "var(--arm-0)",
                "var(--arm-3-faint)",
                "var(--arm-3)"
            ]
        );
        let near = |a: f64, b: f64| (a - b).abs() < 0.1;
        // 100 and 150 of 200.
        assert!(near(rects[1].2, rects[0].2 / 2.0), "{rects:?}");
        assert!(near(rects[3].2, rects[2].2 * 0.75), "{rects:?}");
        // The two of an arm touch, and the next arm is one bar further.
        let width = rects[1].1 - rects[0].1;
        assert!(near(rects[2].1 - rects[1].1, 2.0 * width), "{rects:?}");
        assert!(svg.contains("default, A: got 100, 50.0 % of it"), "{svg}");
    }

    #[test]
    fn only_what_has_an_interval_has_a_whisker() {
        let strokes = |got| {
            let svg = draw_pairs(&places(got), "work").unwrap();
            svg.matches("stroke=\"var(--text)\"").count()
        };
        let (ratio, low, high) = (100.0, 90.0, 120.0);
        assert_eq!(strokes(Estimate::without_interval(100.0)), 0);
        // The line and its two ends.
        assert_eq!(strokes(Estimate { ratio, low, high }), 3);
        assert_eq!(draw_pairs(&[], "work"), None);
    }
}
