//! The short report: what a reader of the terminal needs, on one screen or two.

use super::verdicts::Shape;
use super::{INDENT, Page, notices};
use crate::render::conclusion;
use crate::render::sheet::make_sheets;
use crate::table::explanation::Kind;
use crate::table::{CellTable, Comparison, Notice, Table};
use crate::words;
use model::Severity;

/// Deciding comparisons up to this number are all shown; of more, the calls.
const MOST_DECIDING: usize = 24;
/// Comparisons beside those that decide, of each kind.
const MOST_BESIDE: usize = 4;
/// Metrics of an arm that is compared with nothing.
const MOST_METRICS: usize = 20;
/// Warnings that are not serious, and notes.
const MOST_NOTICES: usize = 8;

impl Page {
    pub(super) fn write_answer(&mut self, table: &Table) {
        self.deciding(table);
        self.not_measured(table);
        for sheet in make_sheets(table) {
            self.sheet(&sheet);
        }
        self.beside(table);
        self.warnings(table);
        self.legend(table);
    }

    fn deciding(&mut self, table: &Table) {
        let all = deciding_of(table).count();
        let chosen = chosen_comparisons(table);
        let is_shown = |c: &&Comparison| chosen.iter().any(|shown| std::ptr::eq(*shown, *c));
        let mut shown = 0;
        for cell in table.cells.iter().filter(|cell| !cell.is_empty()) {
            if table.across.sequential.is_some() {
                continue;
            }
            if table.tallies.is_empty() {
                self.spread(cell, MOST_METRICS);
                continue;
            }
            let rows: Vec<&Comparison> = cell.deciding_comparisons().filter(is_shown).collect();
            shown += rows.len();
            if !rows.is_empty() {
                self.heading(&format!("{} (against {})", cell.title, table.baseline()));
                self.write_comparisons(table, &rows, Shape::short_form(table));
            }
        }
        if shown < all {
            self.line("");
            let more = match deciding_of(table).any(|c| c.verdict.is_call()) {
                true => format!(
                    "{} of {all} comparisons are the same or unknown.",
                    all - shown
                ),
                false => {
                    format!("All {all} comparisons are the same or unknown; {shown} are shown.")
                }
            };
            self.wrapped(&more, 0, 2);
        }
    }

    /// Other differences, and what went with the calls. Costs are in the conclusion.
    fn beside(&mut self, table: &Table) {
        let better = conclusion::better_beside(table);
        let moved = moved(table);
        let groups = [
            ("Also better", named(table, &better)),
            ("Went up and down with it", moved),
        ];
        if groups.iter().any(|(_, found)| !found.is_empty()) {
            self.heading("Beside what decides");
        }
        for (label, mut found) in groups {
            let more = found.len().saturating_sub(MOST_BESIDE);
            found.truncate(MOST_BESIDE);
            found.extend((more > 0).then(|| format!("and {more} more")));
            if !found.is_empty() {
                self.wrapped(
                    &format!("{label}: {}", found.join("; ")),
                    INDENT,
                    2 * INDENT,
                );
            }
        }
    }

    /// Trials that do not count and warnings, those that are alike in one line; then what is only good to know.
    fn warnings(&mut self, table: &Table) {
        let cautions = notices(table, Severity::Caution);
        let folded = words::excluded_by_kind(&table.excluded);
        let has_warnings = !cautions.is_empty() || !folded.is_empty();
        if has_warnings {
            self.heading("Warnings");
        }
        for line in folded {
            self.wrapped(&line, INDENT, 2 * INDENT);
        }
        self.notices(&cautions);
        let notes = notices(table, Severity::Note);
        if !notes.is_empty() {
            match has_warnings {
                true => self.line(self.paint("1", "Notes".to_owned())),
                false => self.heading("Notes"),
            }
        }
        self.notices(&notes);
    }

    fn notices(&mut self, notices: &[&Notice]) {
        for notice in notices.iter().take(MOST_NOTICES) {
            let text = words::notice_line(notice);
            self.with_remedy(&text, &notice.remedy, INDENT, 2 * INDENT);
        }
        let more = notices.len().saturating_sub(MOST_NOTICES);
        if more > 0 {
            self.line(format!("  and {more} more"));
        }
    }

    fn legend(&mut self, table: &Table) {
        self.line("");
        let mut said: Vec<String> = words::error_rate(table).into_iter().collect();
        said.extend(self.scale.take());
        said.push("More: `schedlab report DIR --full`.".to_owned());
        self.wrapped(&said.join(" "), 0, 0);
        self.star(table);
    }
}

fn deciding_of(table: &Table) -> impl Iterator<Item = &Comparison> {
    table.all_comparisons().filter(|c| c.deciding && !c.aa)
}

/// The deciding comparisons that are shown: all of a few; of many the calls, and where nothing is called
/// some of each cell, for a run that decided nothing has measured something, too.
fn chosen_comparisons(table: &Table) -> Vec<&Comparison> {
    let all: Vec<&Comparison> = deciding_of(table).collect();
    if all.len() <= MOST_DECIDING {
        return all;
    }
    let calls = all.iter().copied().filter(|c| c.verdict.is_call());
    let calls: Vec<&Comparison> = calls.collect();
    if !calls.is_empty() {
        return calls;
    }
    let cells = table.cells.iter().enumerate();
    let mut by_turn: Vec<(usize, usize, &Comparison)> = cells
        .flat_map(|(index, cell)| {
            let here = cell.deciding_comparisons().filter(|c| !c.aa);
            here.enumerate().map(move |(turn, c)| (turn, index, c))
        })
        .collect();
    by_turn.sort_by_key(|(turn, cell, _)| (*turn, *cell));
    let chosen = by_turn.into_iter().take(MOST_DECIDING);
    chosen.map(|(.., comparison)| comparison).collect()
}

/// `request_p50 +72.4%`, with arm and cell where there are several.
fn named(table: &Table, found: &[(&CellTable, &Comparison)]) -> Vec<String> {
    let several_arms = table.tallies.iter().filter(|tally| !tally.aa).count() > 1;
    let several_cells = table.cells.len() > 1;
    let name = |(cell, c): &(&CellTable, &Comparison)| {
        let star = match c.survives_ebh {
            Some(false) => "*",
            _ => "",
        };
        let by = c.format_change().unwrap_or_default();
        let mut text = format!("{} {by}{star}", c.metric);
        let places = [
            several_arms.then_some(c.arm.as_str()),
            several_cells.then_some(cell.name.as_str()),
        ];
        let places: Vec<&str> = places.into_iter().flatten().collect();
        if !places.is_empty() {
            text = format!("{text} ({})", places.join(", "));
        }
        text
    };
    found.iter().map(name).collect()
}

/// Counters that followed a call from block to block.
fn moved(table: &Table) -> Vec<String> {
    let calls = table.across.why.iter().filter_map(|why| {
        let together = why.counters.iter().filter(|c| c.kind == Kind::Together);
        let counters: Vec<&str> = together.map(|c| c.counter.as_str()).take(3).collect();
        let place = format!("{}, {} {}", why.cell, why.arm, why.metric);
        (!counters.is_empty()).then(|| format!("{} ({place})", counters.join(", ")))
    });
    calls.collect()
}
