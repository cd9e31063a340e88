//! The table in the words and shapes of the page: what the template loops over.

use super::charts::{CellCharts, Figure};
use super::scale::{IntervalPlot, Scale, Tick};
use super::setup::Setup;
use crate::quantity::{format_percent, with_unit};
use crate::render::chart::COLORS;
use crate::render::sheet::{Moved, Sheet, make_sheets, moved_in, of_sets};
use crate::render::{arms, conclusion, machines};
use crate::table::{CellTable, Comparison, Excluded, MetricRow, Notice, Statement, Summary, Table};
use crate::words;
use askama::Template;
use model::{Better, System};

/// With no more arms and no more cells than these, the answer itself is seen at a glance.
const OVERVIEW_ARMS: usize = 2;
const OVERVIEW_CELLS: usize = 5;

#[derive(Template)]
#[template(path = "report.html")]
pub struct Page<'a> {
    pub title: &'a str,
    pub table: &'a Table,
    pub about: String,
    pub error_rate: Option<String>,
    /// Definitions of the arms, and the settings that all have in common.
    pub definitions: Vec<String>,
    /// How the arms compare with each other.
    pub among: Vec<String>,
    pub confidence: String,
    pub smallest_effect: String,
    pub ticks: Vec<Tick>,
    /// In the place of an answer.
    pub nothing: Option<String>,
    /// Sentences about imported runs, in the place of verdicts.
    pub sequential: Vec<String>,
    pub tallies: Vec<TallyView>,
    pub serious: Vec<NoticeView>,
    pub notices: Vec<NoticeView>,
    pub arms: Vec<ArmView<'a>>,
    pub overview: Option<Overview<'a>>,
    pub sheets: Vec<Sheet>,
    pub across: Vec<Figure>,
    pub cells: Vec<CellView<'a>>,
    pub trials: String,
    pub excluded: &'a [Excluded],
    /// Those of a kind in one line.
    pub excluded_by_kind: Vec<String>,
    pub setup: Setup,
    /// True if a deciding comparison has a star.
    pub starred: bool,
    pub star: String,
    /// The e-value that decides.
    pub evidence_bar: String,
    pub machine: Vec<(String, String)>,
}

fn sequential(table: &Table) -> Vec<String> {
    let sequential = table.across.sequential.as_ref();
    sequential.map_or_else(Vec::new, |found| words::sequential_runs(table, found))
}

pub struct TallyView {
    pub arm: String,
    pub color: usize,
    /// The sentence behind the name of the arm, a part a line.
    pub parts: Vec<String>,
}

pub struct NoticeView {
    pub severity: &'static str,
    pub what: String,
    pub remedy: String,
    pub trials: String,
}

pub struct ArmView<'a> {
    pub name: &'a str,
    pub summary: &'a str,
    pub color: usize,
    pub label: &'static str,
    pub evidence: &'a [Statement],
}

/// Verdicts of all deciding comparisons at a glance: a row a cell.
pub struct Overview<'a> {
    pub arms: Vec<&'a str>,
    pub rows: Vec<OverviewRow<'a>>,
}

pub struct OverviewRow<'a> {
    pub id: String,
    pub cell: &'a str,
    /// For each arm the verdicts of the metrics.
    pub arms: Vec<Vec<RowView>>,
    pub not_measured: Option<String>,
}

pub struct CellView<'a> {
    pub id: String,
    pub name: &'a str,
    pub rows: Vec<RowView>,
    pub further: Vec<RowView>,
    pub further_differ: usize,
    pub charts: CellCharts,
    /// Counters beside the calls of the cell.
    pub moved: Vec<Moved>,
    pub metrics: Vec<MetricView>,
    /// Metrics that are 0 under every arm.
    pub nothing: String,
    pub not_measured: Option<String>,
}

/// One comparison.
pub struct RowView {
    pub metric: String,
    /// The first arm of its metric.
    pub first: bool,
    pub direction: &'static str,
    pub arrow: &'static str,
    pub arm: String,
    pub color: usize,
    pub aa: bool,
    pub levels: Option<(String, String)>,
    pub change: String,
    pub interval: String,
    pub plot: IntervalPlot,
    pub verdict: &'static str,
    pub marked: String,
    pub meaning: String,
    pub blocks: String,
    pub blocks_in_all: Option<String>,
    /// Strength of the evidence, with its e-value.
    pub evidence: String,
    /// Below the row.
    pub notes: Vec<String>,
}

pub struct MetricView {
    pub metric: String,
    pub direction: &'static str,
    pub judged: bool,
    pub arms: Vec<(String, String)>,
}

pub fn make_page(
    table: &Table,
    cell_charts: Vec<CellCharts>,
    across: Vec<Figure>,
    setup: Setup,
) -> Page<'_> {
    let experiment = &table.experiment;
    let effect = experiment.smallest_effect;
    let deciding = table.all_comparisons().filter(|c| c.deciding);
    let scale = Scale::fit_to(deciding, effect);
    let view = View { table, scale };
    let starred = table
        .all_comparisons()
        .any(|c| c.deciding && c.survives_ebh == Some(false));
    Page {
        title: experiment.question.as_deref().unwrap_or(&experiment.name),
        table,
        about: about(table),
        error_rate: words::error_rate(table),
        definitions: arms::define_arms(table)
            .into_iter()
            .chain(arms::in_all(table))
            .collect(),
        among: arms::describe_ranking(table)
            .into_iter()
            .chain(machines::describe_over(table))
            .collect(),
        confidence: format_percent(experiment.confidence),
        smallest_effect: format_percent(effect),
        ticks: scale.axis_ticks(),
        nothing: words::nothing_measured(table),
        sequential: sequential(table),
        tallies: table.tallies.iter().map(|t| view.tally(t)).collect(),
        serious: table.serious_notices().map(notice).collect(),
        notices: view.lesser_notices(),
        arms: table.arms.iter().map(|arm| view.arm(arm)).collect(),
        overview: view.overview(),
        sheets: make_sheets(table)
            .into_iter()
            .chain(of_sets(table))
            .collect(),
        across,
        cells: view.cells(cell_charts),
        trials: words::count_trials(&table.trials),
        excluded: &table.excluded,
        excluded_by_kind: words::excluded_by_kind(&table.excluded),
        setup,
        starred,
        star: words::not_surviving(experiment),
        evidence_bar: words::deciding_e_value(experiment),
        machine: machine(&table.system),
    }
}

/// The parts of a text, and whether they are code, which is between backticks. A backtick
/// without another is one.
pub fn split_code(text: &str) -> Vec<(bool, &str)> {
    let marks = text.matches('`').count();
    if marks % 2 == 1 {
        return vec![(false, text)];
    }
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| (index % 2 == 1, part));
    parts.filter(|(_, part)| !part.is_empty()).collect()
}

fn about(table: &Table) -> String {
    let experiment = &table.experiment;
    format!(
        "{}, {}. {}. {}.",
        experiment.name,
        words::created_time(experiment),
        words::trials_and_time(table),
        words::machine_line(table)
    )
}

/// The colour of each arm: the baseline has the first, the others follow.
pub fn color_of(table: &Table, arm: &str) -> usize {
    let others = table.arms.iter().filter(|a| !a.baseline);
    let position = others.into_iter().position(|a| a.name == arm);
    position.map_or(0, |position| 1 + position % (COLORS - 1))
}

struct View<'a> {
    table: &'a Table,
    scale: Scale,
}

impl<'a> View<'a> {
    fn tally(&self, tally: &crate::table::Tally) -> TallyView {
        let mut parts = conclusion::sentence_parts(self.table, tally);
        if let Some(first) = parts.first_mut() {
            let rest = first.strip_prefix(tally.arm.as_str());
            *first = rest.unwrap_or(first).to_owned();
        }
        TallyView {
            arm: tally.arm.clone(),
            color: color_of(self.table, &tally.arm),
            parts,
        }
    }

    fn lesser_notices(&self) -> Vec<NoticeView> {
        let lesser = |n: &&Notice| n.severity != model::Severity::Serious;
        self.table
            .warnings
            .iter()
            .filter(lesser)
            .map(notice)
            .collect()
    }

    fn arm(&self, arm: &'a crate::table::ArmInfo) -> ArmView<'a> {
        ArmView {
            name: &arm.name,
            summary: &arm.summary,
            color: color_of(self.table, &arm.name),
            label: match (arm.baseline, arm.aa) {
                (true, _) => "baseline",
                (_, true) => "A/A",
                _ => "",
            },
            evidence: &arm.evidence,
        }
    }

    /// Overview of all verdicts, for a page with more cells than one look can take in.
    fn overview(&self) -> Option<Overview<'a>> {
        let arms: Vec<&str> = self
            .table
            .arms
            .iter()
            .filter(|arm| !arm.baseline)
            .map(|arm| arm.name.as_str())
            .collect();
        let rows = self.table.cells.iter().enumerate().map(|(index, cell)| {
            let of = |arm: &&str| {
                let arm = *arm;
                let found = cell.deciding_comparisons().filter(move |c| c.arm == arm);
                found.map(|c| self.row(c)).collect()
            };
            OverviewRow {
                id: cell_id(index),
                cell: &cell.name,
                arms: arms.iter().map(of).collect(),
                not_measured: words::cell_not_measured(cell),
            }
        });
        let rows: Vec<OverviewRow> = rows.collect();
        let several = self.table.arms.len() > OVERVIEW_ARMS && rows.len() > 1;
        let many = rows.len() > OVERVIEW_CELLS && !arms.is_empty();
        (several || many).then_some(Overview { arms, rows })
    }

    fn cells(&self, charts: Vec<CellCharts>) -> Vec<CellView<'a>> {
        let cells = self.table.cells.iter().zip(charts).enumerate();
        cells
            .map(|(index, (cell, charts))| self.cell(index, cell, charts))
            .collect()
    }

    fn cell(&self, index: usize, cell: &'a CellTable, charts: CellCharts) -> CellView<'a> {
        let (nothing, shown): (Vec<&MetricRow>, Vec<&MetricRow>) =
            cell.metrics.iter().partition(|row| row.is_nothing());
        let nothing: Vec<&str> = nothing.iter().map(|row| row.metric.as_str()).collect();
        CellView {
            id: cell_id(index),
            name: &cell.title,
            rows: self.rows(cell.deciding_comparisons()),
            further: self.rows(cell.further_comparisons()),
            further_differ: cell
                .further_comparisons()
                .filter(|c| c.verdict.is_call())
                .count(),
            charts,
            moved: moved_in(self.table, &cell.name),
            metrics: shown.into_iter().map(metric).collect(),
            nothing: nothing.join(", "),
            not_measured: words::cell_not_measured(cell),
        }
    }

    fn rows<'b>(&self, comparisons: impl Iterator<Item = &'b Comparison>) -> Vec<RowView> {
        let comparisons: Vec<&Comparison> = comparisons.collect();
        let notes = words::row_notes(&comparisons);
        let mut rows: Vec<RowView> = comparisons.iter().map(|c| self.row(c)).collect();
        for (row, notes) in rows.iter_mut().zip(notes) {
            row.notes = notes;
        }
        for index in 0..rows.len() {
            rows[index].first = index == 0 || rows[index - 1].metric != rows[index].metric;
        }
        rows
    }

    fn row(&self, c: &Comparison) -> RowView {
        let unit = |value| with_unit(value, &c.unit);
        RowView {
            metric: c.metric.clone(),
            first: false,
            direction: words::direction_word(c.better),
            arrow: match c.better {
                Better::Higher => "\u{2191}",
                Better::Lower => "\u{2193}",
                Better::Neither => "",
            },
            arm: c.arm.clone(),
            color: color_of(self.table, &c.arm),
            aa: c.aa,
            levels: c.baseline_level.map(unit).zip(c.arm_level.map(unit)),
            change: c.format_change().unwrap_or_else(|| "\u{2013}".to_owned()),
            interval: c
                .format_interval()
                .unwrap_or_else(|| "no interval".to_owned()),
            plot: self.scale.plot_interval(c),
            verdict: c.verdict.as_str(),
            blocks_in_all: c
                .blocks_needed
                .map(|needed| format!("about {needed} blocks in all")),
            marked: words::marked_verdict(c),
            meaning: words::verdict_meaning(c, self.table.experiment.smallest_effect),
            blocks: words::blocks_word(c),
            evidence: words::strength_of(c),
            notes: Vec::new(),
        }
    }
}

fn cell_id(index: usize) -> String {
    format!("cell-{}", index + 1)
}

fn notice(notice: &Notice) -> NoticeView {
    NoticeView {
        severity: words::severity_word(notice.severity),
        what: notice.what.clone(),
        remedy: notice.remedy.clone(),
        trials: words::notice_trials(notice),
    }
}

fn metric(row: &MetricRow) -> MetricView {
    let cell = |summary: &Option<Summary>| match summary {
        Some(s) => {
            let in_unit = |value| with_unit(value, &row.unit);
            let (low, high) = (in_unit(s.lower_quartile), in_unit(s.upper_quartile));
            let hint = format!("middle half of {} trials: {low} to {high}", s.trials);
            (in_unit(s.median), hint)
        }
        None => ("\u{2013}".to_owned(), "no trial has this figure".to_owned()),
    };
    MetricView {
        metric: row.metric.clone(),
        direction: words::direction_word(row.better),
        judged: row.better != Better::Neither,
        arms: row.arms.iter().map(cell).collect(),
    }
}

fn machine(system: &System) -> Vec<(String, String)> {
    let fixed = [
        ("host", system.hostname.clone()),
        ("kernel", system.kernel_release.clone()),
        ("kernel version", system.kernel_version.clone()),
        ("command line", system.kernel_command_line.clone()),
        ("architecture", system.architecture.clone()),
        ("CPU", system.cpu_model.clone()),
        ("CPUs", system.cpus.to_string()),
        ("memory", with_unit(system.memory_bytes as f64, "bytes")),
        ("sched_ext", yes_no(system.sched_ext)),
        ("root", yes_no(system.root)),
        ("hypervisor", system.hypervisor.clone()),
    ];
    let fixed = fixed
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let facts = system.facts.iter().map(|(k, v)| (k.clone(), v.clone()));
    fixed.chain(facts).collect()
}

fn yes_no(value: bool) -> String {
    match value {
        true => "yes",
        false => "no",
    }
    .to_owned()
}
