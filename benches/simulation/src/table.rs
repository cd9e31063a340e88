//! A table of fixed width: a title, a header, rows, and a sentence below.

use std::fmt;

#[derive(Debug)]
pub struct Table {
    title: String,
    rows: Vec<Vec<String>>,
    note: String,
}

impl Table {
    pub fn new(title: &str, header: Vec<String>, note: &str) -> Table {
        Table {
            title: title.to_owned(),
            rows: vec![header],
            note: note.to_owned(),
        }
    }

    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        for row in &self.rows {
            for (column, cell) in row.iter().enumerate() {
                let width = self.width(column);
                match column {
                    0 => write!(f, "{cell:width$}")?,
                    _ => write!(f, "  {cell:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        write!(f, "\n{}", self.note)
    }
}

/// `0.0213` as `2.1%`.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// `0.02` as `2%`.
pub fn whole_percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let mut table = Table::new("T", row(["a", "long"]), "n");
        table.push(row(["longer", "1"]));
        assert_eq!(table.to_string(), "T\n\na       long\nlonger     1\n\nn");
        assert_eq!(percent(0.0213), "2.1%");
    }
}
