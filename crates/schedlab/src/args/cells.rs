//! Part of an experiment: `--only`, `--skip`.

use crate::exit::CliError;
use clap::Args;
use glob::Pattern;
use model::{Cell, Experiment};
use std::collections::BTreeSet;

/// Cells of an experiment, by the names of their workloads or their own.
#[derive(Debug, Clone, Default, Args)]
pub struct CellArgs {
    /// Only workloads or cells of this name, in which * and ? stand for any letters: netperf,
    /// 'hackbench*', 'wakeup 50%'
    #[arg(long, value_name = "NAME", value_parser = Pattern::new)]
    pub only: Vec<Pattern>,
    /// Without workloads or cells of this name
    #[arg(long, value_name = "NAME", value_parser = Pattern::new)]
    pub skip: Vec<Pattern>,
}

impl CellArgs {
    /// Takes all other cells out of the experiment.
    pub fn narrow(&self, experiment: &mut Experiment) -> Result<(), CliError> {
        let left_out = self.left_out(experiment)?;
        let cells = schedule::list_cells(experiment);
        for index in left_out.into_iter().rev() {
            let cell = &cells[index];
            let loads = &mut experiment.workloads[cell.workload].loads;
            loads.retain(|load| *load != cell.load);
        }
        experiment.workloads.retain(|w| !w.loads.is_empty());
        Ok(())
    }

    /// Indices of the cells that are not asked for. A name that no cell has is an error, and so is it
    /// where nothing is left.
    pub fn left_out(&self, experiment: &Experiment) -> Result<BTreeSet<usize>, CliError> {
        let cells = schedule::list_cells(experiment);
        let is_named = |cell: &Cell, name: &Pattern| {
            name.matches(&experiment.workloads[cell.workload].name) || name.matches(&cell.name)
        };
        let mut names = self.only.iter().chain(&self.skip);
        if let Some(name) = names.find(|name| !cells.iter().any(|cell| is_named(cell, name))) {
            return Err(refused(&format!("no cell is called `{name}`"), &cells));
        }
        let is_asked_for = |cell: &Cell| {
            let named_by = |names: &[Pattern]| names.iter().any(|name| is_named(cell, name));
            (self.only.is_empty() || named_by(&self.only)) && !named_by(&self.skip)
        };
        let left_out = cells.iter().enumerate();
        let left_out = left_out.filter(|(_, cell)| !is_asked_for(cell));
        let left_out: BTreeSet<usize> = left_out.map(|(index, _)| index).collect();
        match !cells.is_empty() && left_out.len() == cells.len() {
            true => Err(refused("--only and --skip leave no cell", &cells)),
            false => Ok(left_out),
        }
    }
}

fn refused(what: &str, cells: &[Cell]) -> CliError {
    let names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    CliError::usage(what, format!("the cells are: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "arm = [{ name = \"default\" }]\n\
        [[workload]]\nkind = \"hackbench\"\nloads = [1, 4]\n\
        [[workload]]\nkind = \"wakeup\"\nloads = [\"50%\"]\n\
        [[workload]]\nkind = \"rr\"\n";

    fn cells(args: &CellArgs) -> Result<Vec<String>, String> {
        catalogue::install();
        let mut experiment = plan::parse_experiment("x.toml", FILE).unwrap();
        args.narrow(&mut experiment).map_err(|e| e.to_string())?;
        let cells = schedule::list_cells(&experiment);
        Ok(cells.into_iter().map(|cell| cell.name).collect())
    }

    fn args(only: &[&str], skip: &[&str]) -> CellArgs {
        let patterns = |names: &[&str]| names.iter().map(|n| Pattern::new(n).unwrap()).collect();
        CellArgs {
            only: patterns(only),
            skip: patterns(skip),
        }
    }

    #[test]
    fn cells_are_chosen_by_the_name_of_their_workload_or_their_own() {
        let all = cells(&args(&[], &[])).unwrap();
        assert_eq!(all.len(), 4, "{all:?}");
        assert_eq!(cells(&args(&["hackbench"], &[])).unwrap(), all[..2]);
        assert_eq!(cells(&args(&["hackbench 4"], &[])).unwrap(), all[1..2]);
        assert_eq!(
            cells(&args(&["hack*", "rr*"], &["hack*1"])).unwrap(),
            [&*all[1], &*all[3]]
        );
        assert_eq!(
            cells(&args(&[], &["hackbench*", "rr*"])).unwrap(),
            all[2..3]
        );
    }

    #[test]
    fn a_name_that_is_not_there_and_nothing_that_is_left_are_errors() {
        let said = |only: &[&str], skip: &[&str]| cells(&args(only, skip)).unwrap_err();
        assert_eq!(said(&["netperf"], &[]), "no cell is called `netperf`");
        assert_eq!(
            said(&[], &["hackbench 2"]),
            "no cell is called `hackbench 2`"
        );
        assert_eq!(said(&[], &["*"]), "--only and --skip leave no cell");
    }
}
