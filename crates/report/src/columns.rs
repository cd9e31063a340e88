//! Plain text in columns of the width that their content needs.
//!
//! All text of results comes into the reports for terminals and mailing lists through
//! here: what a terminal would obey is shown instead ([`model::printable`]), and a name
//! with a line end stays in its line.

use model::printable::one_line;
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

/// Which side a column keeps straight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A column does not shrink below this.
const NARROWEST: usize = 8;

/// Rows of text under a head.
#[derive(Debug, Clone)]
pub struct Columns {
    align: Vec<Align>,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Columns {
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Columns {
            align: columns.iter().map(|(_, align)| *align).collect(),
            head: columns.iter().map(|(name, _)| plain_line(name)).collect(),
            rows: Vec::new(),
        }
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows
            .push(row.iter().map(|cell| plain_line(cell)).collect());
    }

    /// Widths so that all is seen, but the columns `shrink` give way, in this
    /// order, until a line takes no more than `width`.
    pub fn fit_widths(&self, indent: usize, width: usize, shrink: &[usize]) -> Vec<usize> {
        let mut widths: Vec<usize> = (0..self.head.len()).map(|c| self.natural(c)).collect();
        for &column in shrink {
            let total = indent + widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
            let excess = total.saturating_sub(width);
            let spare = widths[column].saturating_sub(NARROWEST);
            widths[column] -= excess.min(spare);
        }
        widths
    }

    /// Width of the longest line in which nothing is cut.
    pub fn natural_width(&self, indent: usize) -> usize {
        let widths = (0..self.count_columns()).map(|column| self.natural(column));
        indent + widths.sum::<usize>() + 2 * (self.count_columns() - 1)
    }

    /// Number of columns.
    pub fn count_columns(&self) -> usize {
        self.head.len()
    }

    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| length(&row[column]));
        cells.chain([length(&self.head[column])]).max().unwrap_or(0)
    }

    /// Each row as lines, for a terminal that has no room for columns: its first cell, then one
    /// line for each of the others, after the name of its column.
    pub fn stacked_lines(&self, indent: usize, width: usize) -> Vec<String> {
        let Some((first, names)) = self.head.split_first() else {
            return Vec::new();
        };
        let mut lines = wrap_text(first, width, indent, 2 * indent);
        for row in &self.rows {
            lines.extend(wrap_text(&row[0], width, indent, 2 * indent));
            for (name, cell) in names.iter().zip(&row[1..]) {
                let text = format!("{name}: {cell}");
                lines.extend(wrap_text(&text, width, 2 * indent, 3 * indent));
            }
        }
        lines
    }

    pub fn head_line(&self, indent: usize, widths: &[usize]) -> String {
        self.line(&self.head, indent, widths, |_, text| text)
    }

    /// The rows; `style` may add what takes no width (colour) to a padded cell.
    pub fn row_lines<'a>(
        &'a self,
        indent: usize,
        widths: &'a [usize],
        style: impl Fn(usize, String) -> String + 'a,
    ) -> impl Iterator<Item = String> + 'a {
        let line = move |row: &Vec<String>| self.line(row, indent, widths, &style);
        self.rows.iter().map(line)
    }

    fn line(
        &self,
        cells: &[String],
        indent: usize,
        widths: &[usize],
        style: impl Fn(usize, String) -> String,
    ) -> String {
        let last = cells.len().saturating_sub(1);
        let padded = cells.iter().enumerate().map(|(column, text)| {
            let text = clip_text(text, widths[column]);
            // No space at the end of a line, which a style would hide from trimming.
            let padded = match (column == last, self.align[column]) {
                (true, Align::Left) => text,
                (_, align) => pad(&text, widths[column], align),
            };
            style(column, padded)
        });
        let joined = padded.collect::<Vec<_>>().join("  ");
        format!("{:indent$}{}", "", joined.trim_end())
    }
}

/// Rows below a head, two columns indented; one line for each cell where the terminal is too narrow.
pub fn table_lines(head: &[&str], rows: Vec<Vec<String>>, width: usize) -> Vec<String> {
    const INDENT: usize = 2;
    let head: Vec<(&str, Align)> = head.iter().map(|name| (*name, Align::Left)).collect();
    let mut columns = Columns::new(&head);
    rows.into_iter().for_each(|row| columns.push(row));
    if columns.natural_width(INDENT) > width {
        return columns.stacked_lines(INDENT, width);
    }
    let widths = columns.fit_widths(INDENT, width, &[]);
    let mut lines = vec![columns.head_line(INDENT, &widths)];
    lines.extend(columns.row_lines(INDENT, &widths, |_, text| text));
    lines
}

/// One line of it, as it can be shown.
pub fn plain_line(text: &str) -> String {
    one_line(text).into_owned()
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn pad(text: &str, width: usize, align: Align) -> String {
    match align {
        Align::Left => format!("{text:<width$}"),
        Align::Right => format!("{text:>width$}"),
    }
}

/// Cut to `width`, with dots where something is missing.
pub fn clip_text(text: &str, width: usize) -> String {
    let text = plain_line(text);
    if length(&text) <= width {
        return text;
    }
    let kept: String = text.chars().take(width.saturating_sub(2)).collect();
    format!("{kept}..")
}

/// `text` broken at spaces to lines of at most `width`: the first is indented by
/// `indent` spaces, those that continue it by `hang`.
pub fn wrap_text(text: &str, width: usize, indent: usize, hang: usize) -> Vec<String> {
    let (indent, hang) = (" ".repeat(indent), " ".repeat(hang));
    let options = Options::new(width)
        .initial_indent(&indent)
        .subsequent_indent(&hang)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    let words: Vec<String> = text.split_whitespace().map(plain_line).collect();
    let text = with_unbroken(&words.join(" "), width.saturating_sub(hang.len()));
    let lines = textwrap::wrap(&text, options).into_iter();
    lines.map(|line| line.replace(UNBROKEN, " ")).collect()
}

/// A space at which no line is broken.
const UNBROKEN: char = '\u{a0}';

/// Text whose commands (in backticks) have no space to break at, so that they can be pasted, nor
/// have its percentages. One of schedlab's own that fits no line stays whole, too: a terminal
/// continues it on the next line without putting an end of line into what is copied. Other texts
/// in backticks may be anybody's, and are broken as words are where they do not fit.
fn with_unbroken(text: &str, width: usize) -> String {
    // Both marks, and a full stop behind them.
    const AROUND: usize = 3;
    let text = text.replace(" %", &format!("{UNBROKEN}%"));
    let is_own = |part: &str| part.starts_with("schedlab ") || part.starts_with("--");
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(index, part)| {
        let is_command = index % 2 == 1 && (is_own(part) || length(part) + AROUND <= width);
        match is_command {
            true => part.replace(' ', &UNBROKEN.to_string()),
            false => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// A text and what can be done, as [`wrap_text`] does it. The remedy has a line of its own where that
/// keeps it whole: it may be a command to paste.
pub fn wrap_with_remedy(
    text: &str,
    remedy: &str,
    width: usize,
    indent: usize,
    hang: usize,
) -> Vec<String> {
    if remedy.is_empty() {
        return wrap_text(text, width, indent, hang);
    }
    let remedy = format!("-> {remedy}");
    let together = wrap_text(&format!("{text} {remedy}"), width, indent, hang);
    let mut apart = wrap_text(text, width, indent, hang);
    if together.len() == apart.len() || length(&plain_line(&remedy)) + hang > width {
        return together;
    }
    apart.extend(wrap_text(&remedy, width, hang, hang));
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_may_shrink_gives_way_until_the_line_fits() {
        let mut columns = Columns::new(&[("metric", Align::Left), ("change", Align::Right)]);
        columns.push(vec!["a_very_long_metric_name".into(), "+3.2%".into()]);
        let widths = columns.fit_widths(2, 24, &[0]);
        let row = columns.row_lines(2, &widths, |_, text| text).next();
        assert_eq!(row.as_deref(), Some("  a_very_long_..   +3.2%"));
    }

    #[test]
    fn text_is_wrapped_at_spaces_with_a_hanging_indent() {
        assert_eq!(
            wrap_text("one two three four", 9, 1, 2),
            [" one two", "  three", "  four"]
        );
    }

    #[test]
    fn a_command_is_not_broken_however_long_it_is() {
        let text = "Go on with `schedlab run --resume DIR`.";
        for width in [32, 12] {
            assert_eq!(
                wrap_text(text, width, 0, 2),
                ["Go on with", "  `schedlab run --resume DIR`."]
            );
        }
        let of_others = wrap_text("It said `no such file or directory`.", 12, 0, 2);
        assert!(of_others.len() > 3, "{of_others:?}");
    }

    #[test]
    fn a_percentage_is_not_broken() {
        assert_eq!(
            wrap_text("it is 44 % lower", 9, 0, 0),
            ["it is", "44 %", "lower"]
        );
    }

    #[test]
    fn no_line_ends_with_a_space_whatever_its_style() {
        let mut columns = Columns::new(&[("metric", Align::Left), ("verdict", Align::Left)]);
        columns.push(vec!["a".into(), "same".into()]);
        let widths = columns.fit_widths(0, 40, &[]);
        let row = columns
            .row_lines(0, &widths, |_, text| format!("<{text}>"))
            .next();
        assert_eq!(row.as_deref(), Some("<a     >  <same>"));
    }

    #[test]
    fn a_remedy_stays_whole_where_a_line_has_room_for_it() {
        let wrapped = |width| wrap_with_remedy("It is slow.", "sysctl -w a=1", width, 0, 2);
        assert_eq!(wrapped(30), ["It is slow. -> sysctl -w a=1"]);
        assert_eq!(wrapped(24), ["It is slow.", "  -> sysctl -w a=1"]);
        assert_eq!(wrapped(12), ["It is slow.", "  -> sysctl", "  -w a=1"]);
        assert_eq!(wrap_with_remedy("It is.", "", 30, 0, 2), ["It is."]);
    }
}
