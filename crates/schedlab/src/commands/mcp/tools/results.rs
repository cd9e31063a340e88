//! Tools that read what jobs have found. They take numbers of jobs and no paths, so nobody else's results
//! can be read.

use super::super::Referee;
use super::super::jobs::{Job, Purpose};
use super::super::request::Arguments;
use crate::commands::propose::findings_text;
use ::report::{Format, Options, Table, conclusion};
use ::results::ResultSet;
use std::fmt::Write;
use std::sync::Arc;

pub fn find_job(referee: &Referee, number: u64) -> Result<Arc<Job>, String> {
    referee
        .jobs
        .find_job(number)
        .ok_or_else(|| format!("this session has no job {number}; others' results are not shown"))
}

pub fn status(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let Some(number) = arguments.get_number("job")? else {
        return Ok(list_jobs(referee));
    };
    let job = find_job(referee, number)?;
    let Some(end) = job.find_end() else {
        return Ok(so_far(&job));
    };
    let seconds = end.took.as_secs_f64();
    let mut text = format!("job {number} took {seconds:.1} s\n");
    if job.purpose != Purpose::Plan && end.output.is_empty() {
        text += "There is no answer, so nothing is accepted.\n";
    }
    text += &end.output;
    if end.output.is_empty() {
        text += &end.errors;
    }
    Ok(text)
}

fn list_jobs(referee: &Referee) -> String {
    let mut text = String::new();
    for job in referee.jobs.list_jobs() {
        let state = match job.find_end() {
            None => "running".to_owned(),
            Some(end) => end_word(&job.purpose, end.code == Some(0)).to_owned(),
        };
        let _ = writeln!(text, "job {} {state}: {}", job.number, job.words.join(" "));
    }
    match text.is_empty() {
        true => "there are no jobs yet".to_owned(),
        false => text,
    }
}

fn end_word(purpose: &Purpose, is_done: bool) -> &'static str {
    match (purpose, is_done) {
        (Purpose::Plan, true) => "planned",
        (Purpose::Plan, false) => "ended",
        (Purpose::Bisect, true) => "found",
        (Purpose::Bisect, false) => "not found",
        (Purpose::Compare | Purpose::Tune, true) => "accepted",
        (Purpose::Compare | Purpose::Tune, false) => "not accepted",
    }
}

/// The comparisons so far: they may be looked at whenever somebody likes.
fn so_far(job: &Job) -> String {
    let mut text = format!(
        "job {} runs for {} s of about {}; not answered yet\n",
        job.number,
        job.elapsed().as_secs(),
        job.budget.as_secs()
    );
    text += &match job.purpose {
        Purpose::Tune => crate::commands::tune::progress_text(&job.dir),
        Purpose::Bisect => crate::commands::bisect::progress_text(&job.dir),
        Purpose::Compare | Purpose::Plan => String::new(),
    };
    if let Some(table) = read_table(job) {
        text += "so far:\n";
        text += &findings_text(&table);
    }
    text
}

/// The table of the results, once there are some.
fn read_table(job: &Job) -> Option<Table> {
    let results = ResultSet::read(&job.results_dir()).ok()?;
    Some(Table::from_results(&results))
}

pub fn explain(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let job = find_job(referee, arguments.take_number("job")?)?;
    let table = ended_table(&job)?;
    let mut text = String::new();
    for sentence in conclusion(&table) {
        let _ = writeln!(text, "{sentence}");
    }
    for comparison in table.all_comparisons().filter(|c| c.deciding && !c.aa) {
        for note in &comparison.notes {
            let _ = writeln!(text, "{}: {note}", comparison.metric);
        }
    }
    if let Some(end) = job.find_end() {
        text += &end.output;
    }
    Ok(text)
}

fn ended_table(job: &Job) -> Result<Table, String> {
    if job.is_running() {
        return Err(format!("job {} is still running: ask status", job.number));
    }
    read_table(job).ok_or_else(|| format!("job {} left no results", job.number))
}

const SECTIONS: [&str; 4] = ["summary", "comparisons", "machine", "full"];

pub fn report(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let job = find_job(referee, arguments.take_number("job")?)?;
    let section = arguments.get_text("section")?;
    let section = section.as_deref().unwrap_or(SECTIONS[0]);
    if !SECTIONS.contains(&section) {
        return Err(format!("`section` is one of {}", SECTIONS.join(", ")));
    }
    let table = ended_table(&job)?;
    match section {
        "comparisons" => Ok(findings_text(&table)),
        "machine" => machine_text(&job),
        section => {
            let results = ResultSet::read(&job.results_dir()).map_err(|e| e.to_string())?;
            let format = Format::find_by_name("text").ok_or("there is no text report")?;
            let options = Options {
                full: section == "full",
                ..Options::default()
            };
            let text = format.render_report(&table, &results, &options);
            Ok(text.map_err(|e| e.to_string())?.into_string())
        }
    }
}

fn machine_text(job: &Job) -> Result<String, String> {
    let results = ResultSet::read(&job.results_dir()).map_err(|e| e.to_string())?;
    serde_json::to_string_pretty(&results.system).map_err(|e| e.to_string())
}

pub fn cancel(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let job = find_job(referee, arguments.take_number("job")?)?;
    if !job.is_running() {
        return Err(format!("job {} has ended", job.number));
    }
    job.cancel_work();
    Ok(format!(
        "job {} ends in order; ask status for what it leaves",
        job.number
    ))
}

pub fn more(referee: &Referee, arguments: &Arguments) -> Result<String, String> {
    let handle = arguments.take_number("handle")?;
    let part = referee.pages.next_part(handle);
    part.ok_or_else(|| format!("there is no handle {handle}, or it is too old"))
}
