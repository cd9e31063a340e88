//! Parts of pages that other crates make, so that all of them look alike: the style sheet, and the chart of a ratio
//! over months.

pub use crate::render::chart::{
    LevelSpan, MonthsChart, RatioPoint, TimeMark, VersionMark, draw_months, renumber_clips,
};

/// The style sheet of all pages: light and dark, wide and narrow, without anything from elsewhere.
pub const STYLE: &str = include_str!("../templates/style.css");
