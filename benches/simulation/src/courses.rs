//! Ratios of real nights, as `nights --keep` leaves them, and what each way tells of them.

use crate::Outcome;
use crate::nights::{Way, tell_each_night};
use crate::table::Table;
use serde::Deserialize;
use stats::change::Reading;
use std::fs;
use std::path::Path;

/// One course of nights.
#[derive(Debug, Deserialize)]
struct Course {
    name: String,
    /// Day of the first night with the change.
    planted: Option<usize>,
    nights: Vec<Night>,
}

#[derive(Debug, Deserialize)]
struct Night {
    day: usize,
    value: f64,
    error: f64,
}

/// Alarms of each way on each course.
pub fn judge_courses(path: &Path) -> Outcome<Table> {
    let header = [
        "course",
        "way",
        "told after night: first night",
        "for nothing",
        "moved",
    ];
    let note = "Nights from 1. For nothing: alarms before the change, or without any. Moved: what was told is not told\n\
                any more, or more than a night away, when the last night has come.";
    let mut table = Table::new("Real nights", header.map(str::to_owned).to_vec(), note);
    for line in fs::read_to_string(path)?.lines() {
        let course: Course = serde_json::from_str(line)?;
        for way in Way::ALL {
            table.push(judge_course(&course, way));
        }
    }
    Ok(table)
}

fn judge_course(course: &Course, way: Way) -> Vec<String> {
    let nights = &course.nights;
    let reading = |night: &Night| Reading {
        value: night.value,
        error: night.error,
    };
    let told = tell_each_night(way, &nights.iter().map(reading).collect::<Vec<_>>());
    let alarms = told
        .alarms
        .iter()
        .map(|(at, count)| (nights[*at].day, nights[count - 1].day));
    let alarms: Vec<(usize, usize)> = alarms.collect();
    let is_early = |seen: usize| course.planted.is_none_or(|planted| seen < planted);
    let for_nothing = alarms.iter().filter(|(_, seen)| is_early(*seen)).count();
    let words = alarms
        .iter()
        .map(|(first, seen)| format!("{}: {}", seen + 1, first + 1));
    let words: Vec<String> = words.collect();
    vec![
        course.name.clone(),
        way.name().to_owned(),
        if words.is_empty() {
            "-".to_owned()
        } else {
            words.join(", ")
        },
        for_nothing.to_string(),
        if told.is_moved { "yes" } else { "no" }.to_owned(),
    ]
}
