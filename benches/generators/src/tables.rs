//! Medians and ranges of all rounds, one line a figure and side.

#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    figure: String,
    side: String,
    values: Vec<f64>,
}

impl Table {
    /// Says so at once, too: a run of many minutes may be cut short.
    pub fn add(&mut self, figure: &str, side: &str, value: f64) {
        eprintln!("{figure}, {side}: {value:.1}");
        let is_here = |row: &&mut Row| row.figure == figure && row.side == side;
        if let Some(row) = self.rows.iter_mut().find(is_here) {
            row.values.push(value);
            return;
        }
        self.rows.push(Row {
            figure: figure.to_owned(),
            side: side.to_owned(),
            values: vec![value],
        });
    }

    pub fn print(mut self) {
        self.rows
            .sort_by(|a, b| (&a.figure, &a.side).cmp(&(&b.figure, &b.side)));
        println!("| figure | side | median | range | schedlab's, in parts of it |");
        println!("|---|---|---|---|---|");
        for row in &self.rows {
            let ratio = self.ratio(row);
            let values = sorted(row.values.clone());
            let (Some(least), Some(most)) = (values.first(), values.last()) else {
                continue;
            };
            println!(
                "| {} | {} | {:.1} | {least:.1} to {most:.1} | {} |",
                row.figure,
                row.side,
                median(&values),
                ratio.unwrap_or_default()
            );
        }
    }

    /// Within each round; then their median.
    fn ratio(&self, row: &Row) -> Option<String> {
        let is_own = |own: &&Row| own.figure == row.figure && own.side == OWN;
        let own = self.rows.iter().find(is_own).filter(|_| row.side != OWN)?;
        let rounds = own.values.iter().zip(&row.values);
        let ratios = sorted(rounds.map(|(own, other)| own / other).collect());
        Some(format!("{:.2}", median(&ratios)))
    }
}

/// The side that all others are compared with.
pub const OWN: &str = "schedlab";

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn median(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_within_each_round() {
        let mut table = Table::default();
        for (own, other) in [(10.0, 100.0), (80.0, 200.0), (90.0, 300.0)] {
            table.add("figure", OWN, own);
            table.add("figure", "other", other);
        }
        assert_eq!(table.ratio(&table.rows[1]).unwrap(), "0.30");
        assert_eq!(table.ratio(&table.rows[0]), None);
    }
}
