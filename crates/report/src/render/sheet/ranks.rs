//! The ranks of the arms, as a sheet.

use super::{Sheet, SheetRow, plain_cell};
use crate::table::Table;
use crate::table::across::ranks::Rank;

/// The ranks; none where the arms were not compared with each other.
pub fn of_ranks(table: &Table) -> Option<Sheet> {
    let ranks = &table.across.ranks;
    if ranks.is_empty() {
        return None;
    }
    let labels = ["arm", "ahead of", "better and worse than"];
    Some(Sheet {
        title: "Ranks".to_owned(),
        caption: format!(
            "Over all cells and deciding metrics, by the calls that hold together. An arm is ahead of another \
             that it is better than somewhere and worse than nowhere.{}",
            untold(ranks)
        ),
        labels: labels.map(str::to_owned).to_vec(),
        columns: vec!["rank".to_owned()],
        rows: ranks.iter().map(row).collect(),
        ..Sheet::default()
    })
}

fn row(rank: &Rank) -> SheetRow {
    let place = match rank.best == rank.worst {
        true => rank.best.to_string(),
        false => format!("{} to {}", rank.best, rank.worst),
    };
    let names = |names: &[String]| match names.is_empty() {
        true => "-".to_owned(),
        false => names.join(", "),
    };
    SheetRow {
        labels: vec![
            rank.arm.clone(),
            names(&rank.ahead_of),
            names(&rank.mixed_with),
        ],
        cells: vec![plain_cell(place, String::new())],
    }
}

/// The arms that no call tells apart from the first.
fn untold(ranks: &[Rank]) -> String {
    let Some(first) = ranks.first() else {
        return String::new();
    };
    let is_untold = |rank: &&Rank| {
        !first.ahead_of.contains(&rank.arm)
            && !first.mixed_with.contains(&rank.arm)
            && !rank.ahead_of.contains(&first.arm)
    };
    let untold: Vec<&str> = ranks
        .iter()
        .filter(is_untold)
        .map(|rank| rank.arm.as_str())
        .collect();
    match untold.as_slice() {
        [] | [_] => String::new(),
        [others @ .., last] => format!(" {} and {last} are not told apart.", others.join(", ")),
    }
}
