//! Loads beside those at which a winner was confirmed: does it win there, too?

use model::{Experiment, Load};
use report::race::{Confirmed, Goal, judge_confirmation};
use report::recommend::{RecommendError, Source};
use results::ResultSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Directory of the results at other loads.
const NEIGHBOURS: &str = "neighbours";

/// Loads of an experiment, changed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbour {
    /// Half of each load.
    Half,
    /// Twice the threads or connections. A rate grows by half: few servers that are busy sustain twice as much.
    More,
}

/// The confirmed arm at other loads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AtNeighbour {
    pub loads: Neighbour,
    /// Names of the cells.
    pub cells: Vec<String>,
    /// Results directory, below that of the race.
    pub results: PathBuf,
    #[serde(flatten)]
    pub confirmed: Confirmed,
}

impl Neighbour {
    pub const ALL: [Neighbour; 2] = [Neighbour::Half, Neighbour::More];

    fn name(self) -> &'static str {
        match self {
            Neighbour::Half => "half",
            Neighbour::More => "more",
        }
    }

    pub fn results_dir(self) -> PathBuf {
        Path::new(NEIGHBOURS).join(self.name())
    }

    /// Leaves the workloads that have other loads, with these; false where none has.
    pub fn change_loads(self, experiment: &mut Experiment) -> bool {
        for workload in &mut experiment.workloads {
            let known = workload.loads.clone();
            let mut changed: Vec<Load> = Vec::new();
            for load in known.iter().filter_map(|load| self.change_load(load)) {
                if !known.contains(&load) && !changed.contains(&load) {
                    changed.push(load);
                }
            }
            workload.loads = changed;
        }
        experiment
            .workloads
            .retain(|workload| !workload.loads.is_empty());
        !experiment.workloads.is_empty()
    }

    /// `None` of a load that cannot be changed.
    fn change_load(self, load: &Load) -> Option<Load> {
        let (count, rate) = match self {
            Neighbour::Half => (0.5, 0.5),
            Neighbour::More => (2.0, 1.5),
        };
        Some(match load {
            Load::Count(n) if self == Neighbour::Half => Load::Count((n / 2).max(1)),
            Load::Count(n) => Load::Count(n.saturating_mul(2)),
            Load::PercentOfCpus(percent) => Load::PercentOfCpus(percent * count),
            Load::RatePerSec(per_sec) => Load::RatePerSec(per_sec * rate),
            Load::ShareOfMax(share) => Load::ShareOfMax(model::ShareOfMax {
                percent: share.percent * rate,
                ..*share
            }),
            Load::One | Load::MaxRate(_) => return None,
        })
    }
}

impl AtNeighbour {
    /// Judges the confirmed arm there. Where the goal names a cell that is not there, all deciding metrics count.
    pub fn judge(
        loads: Neighbour,
        results: &ResultSet,
        goal: &Goal,
        arm: &str,
    ) -> Result<AtNeighbour, RecommendError> {
        let dir = loads.results_dir();
        let label = dir.display().to_string();
        let source = Source {
            label: &label,
            results,
        };
        let confirmed = judge_confirmation(&source, goal, arm)
            .or_else(|_| judge_confirmation(&source, &Goal::default(), arm))?;
        let cells: BTreeSet<&str> = results
            .trials
            .iter()
            .map(|t| t.trial.cell.as_str())
            .collect();
        Ok(AtNeighbour {
            loads,
            cells: cells.into_iter().map(str::to_owned).collect(),
            results: dir,
            confirmed,
        })
    }

    /// `wakeup 4: better, +3.1% [+1.0%, +5.2%], 8 blocks`.
    pub fn to_text(&self) -> String {
        let cells = self.cells.join(", ");
        let Some(change) = self.confirmed.format_change() else {
            return format!(
                "{cells}: not measured, since no block has a trial of each arm that counts"
            );
        };
        let interval = self.confirmed.format_interval();
        let interval = interval.map(|interval| format!(" {interval}"));
        format!(
            "{cells}: {}, {change}{}, {}",
            self.confirmed.verdict,
            interval.unwrap_or_default(),
            report::format_count(self.confirmed.blocks, "block")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_that_are_there_already_or_cannot_change_are_no_neighbours() {
        let loads_of = |which: Neighbour, loads: &[Load]| {
            let mut experiment = plan_of(loads);
            let changed = which.change_loads(&mut experiment);
            let workloads = experiment.workloads.into_iter();
            (changed, workloads.flat_map(|w| w.loads).collect::<Vec<_>>())
        };
        let counts = [Load::Count(1), Load::Count(2), Load::Count(6)];
        let half = (true, vec![Load::Count(3)]);
        assert_eq!(loads_of(Neighbour::Half, &counts), half);
        let more = (true, vec![Load::Count(4), Load::Count(12)]);
        assert_eq!(loads_of(Neighbour::More, &counts), more);
        assert_eq!(
            loads_of(Neighbour::Half, &[Load::Count(1)]),
            (false, vec![])
        );
        assert_eq!(loads_of(Neighbour::More, &[Load::One]), (false, vec![]));
        let rate = (true, vec![Load::RatePerSec(1500.0)]);
        assert_eq!(loads_of(Neighbour::More, &[Load::RatePerSec(1000.0)]), rate);
    }

    fn plan_of(loads: &[Load]) -> Experiment {
        let text = "name = \"x\"\n[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\npolicy = { nice = 1 }\n\
                    [[workload]]\nkind = \"wakeup\"\nloads = [1]\n";
        let mut experiment = plan::parse_experiment("x.toml", text).expect("it is valid");
        experiment.workloads[0].loads = loads.to_vec();
        experiment
    }
}
