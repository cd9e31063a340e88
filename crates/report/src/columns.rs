//! Plain text in columns of the width that their content needs.
//!
//! All text of results comes into the reports for terminals and mailing lists through
//! here: what a terminal would obey is shown instead ([`model::printable`]), and a name
//! with a line end stays in its line.

use model::printable::one_line;
use std::borrow::Cow;
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
            head: columns.iter().map(|(name, _)| plain(name)).collect(),
            rows: Vec::new(),
        }
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row.iter().map(|cell| plain(cell)).collect());
    }

    /// Widths so that all is seen, but the columns `shrink` give way, in this
    /// order, until a line takes no more than `width`.
    pub fn widths(&self, indent: usize, width: usize, shrink: &[usize]) -> Vec<usize> {
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
        let widths = (0..self.count()).map(|column| self.natural(column));
        indent + widths.sum::<usize>() + 2 * (self.count() - 1)
    }

    /// Number of columns.
    pub fn count(&self) -> usize {
        self.head.len()
    }

    fn natural(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| length(&row[column]));
        cells.chain([length(&self.head[column])]).max().unwrap_or(0)
    }

    pub fn head(&self, indent: usize, widths: &[usize]) -> String {
        self.line(&self.head, indent, widths, |_, text| text)
    }

    /// The rows; `style` may add what takes no width (colour) to a padded cell.
    pub fn rows<'a>(
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
        let padded = cells.iter().enumerate().map(|(column, text)| {
            let text = clip(text, widths[column]);
            let padded = pad(&text, widths[column], self.align[column]);
            style(column, padded)
        });
        let joined = padded.collect::<Vec<_>>().join("  ");
        format!("{:indent$}{}", "", joined.trim_end())
    }
}

/// One line of it, as it can be shown.
pub fn plain(text: &str) -> String {
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
pub fn clip(text: &str, width: usize) -> String {
    let text = plain(text);
    if length(&text) <= width {
        return text;
    }
    let kept: String = text.chars().take(width.saturating_sub(2)).collect();
    format!("{kept}..")
}

/// `text` broken at spaces to lines of at most `width`: the first is indented by
/// `indent` spaces, those that continue it by `hang`.
pub fn wrap(text: &str, width: usize, indent: usize, hang: usize) -> Vec<String> {
    let (indent, hang) = (" ".repeat(indent), " ".repeat(hang));
    let options = Options::new(width)
        .initial_indent(&indent)
        .subsequent_indent(&hang)
        .break_words(false)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit);
    let words: Vec<String> = text.split_whitespace().map(plain).collect();
    let text = words.join(" ");
    let lines = textwrap::wrap(&text, options).into_iter();
    lines.map(Cow::into_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_may_shrink_gives_way_until_the_line_fits() {
        let mut columns = Columns::new(&[("metric", Align::Left), ("change", Align::Right)]);
        columns.push(vec!["a_very_long_metric_name".into(), "+3.2%".into()]);
        let widths = columns.widths(2, 24, &[0]);
        let row = columns.rows(2, &widths, |_, text| text).next();
        assert_eq!(row.as_deref(), Some("  a_very_long_..   +3.2%"));
    }

    #[test]
    fn text_is_wrapped_at_spaces_with_a_hanging_indent() {
        assert_eq!(
            wrap("one two three four", 9, 1, 2),
            [" one two", "  three", "  four"]
        );
    }
}
