//! The parts of a mix: every cell and metric of some results, with the gains of all arms in its blocks.

use super::{RecommendError, Source};
use crate::compare::same_run;
use crate::table::{Comparison, Table};
use model::{Arm, Better};
use results::ResultSet;

/// A metric of a cell, over all results that have it.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name of the cell.
    pub cell: String,
    /// Name of its workload.
    pub workload: String,
    /// Name of the metric.
    pub metric: String,
    /// Direction in which it is better.
    pub better: Better,
    /// The experiment names it as its question.
    pub deciding: bool,
    /// Arms that were compared with the baseline.
    pub arms: Vec<ArmGains>,
}

/// Gains of an arm over the baseline, block by block: logarithms of ratios, positive where it is better.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmGains {
    /// Name of the arm.
    pub arm: String,
    /// Index of the results and number of the block in them, with the gain.
    pub blocks: Vec<((usize, u32), f64)>,
    /// Doubt that the comparison notes; why there is no block where there is none.
    pub note: Option<String>,
}

/// Results that may be looked at together, with their tables.
pub struct Together<'a> {
    /// Tables in the order of the sources.
    pub tables: Vec<Table>,
    /// Name of the baseline of all.
    pub baseline: String,
    /// Arms beside the baseline, each once, without those that repeat it.
    pub arms: Vec<&'a Arm>,
    /// Parts in the order in which they were found.
    pub parts: Vec<Part>,
}

impl<'a> Together<'a> {
    /// All that the sources have. An error where they cannot be looked at together.
    pub fn from_sources(sources: &[Source<'a>]) -> Result<Together<'a>, RecommendError> {
        check_sources(sources)?;
        let first = &sources[0].results.experiment;
        let tables = sources.iter();
        let tables: Vec<Table> = tables.map(|s| Table::from_results(s.results)).collect();
        let mut together = Together {
            baseline: first.arms[first.baseline].name.clone(),
            arms: Vec::new(),
            parts: Vec::new(),
            tables,
        };
        for (index, source) in sources.iter().enumerate() {
            together.add_arms(source.results);
            for cell in &together.tables[index].cells {
                let smallest = together.tables[index].experiment.smallest_effect;
                for comparison in cell.comparisons.iter().filter(|c| !c.aa) {
                    let part = part_of(&mut together.parts, &cell.name, comparison);
                    add_gains(part, index, comparison, smallest);
                }
            }
        }
        Ok(together)
    }

    fn add_arms(&mut self, results: &'a ResultSet) {
        let experiment = &results.experiment;
        for (index, arm) in experiment.arms.iter().enumerate() {
            let is_candidate = index != experiment.baseline && !judge::is_aa(experiment, index);
            if is_candidate && !self.arms.iter().any(|known| known.name == arm.name) {
                self.arms.push(arm);
            }
        }
    }
}

/// The part of a comparison, which is made where it is the first.
fn part_of<'a>(parts: &'a mut Vec<Part>, cell: &str, comparison: &Comparison) -> &'a mut Part {
    let is_same = |part: &Part| part.cell == cell && part.metric == comparison.metric;
    let index = parts.iter().position(is_same).unwrap_or_else(|| {
        parts.push(Part {
            cell: cell.to_owned(),
            workload: comparison.workload.clone(),
            metric: comparison.metric.clone(),
            better: comparison.better,
            deciding: false,
            arms: Vec::new(),
        });
        parts.len() - 1
    });
    &mut parts[index]
}

fn add_gains(part: &mut Part, source: usize, comparison: &Comparison, smallest: f64) {
    part.deciding |= comparison.deciding;
    let blocks = find_gains(comparison, smallest).into_iter();
    let blocks = blocks.map(|(block, gain)| ((source, block), gain));
    match part.arms.iter_mut().find(|of| of.arm == comparison.arm) {
        Some(found) => found.blocks.extend(blocks),
        None => part.arms.push(ArmGains {
            arm: comparison.arm.clone(),
            blocks: blocks.collect(),
            note: comparison.notes.first().cloned(),
        }),
    }
}

/// Gains of the arm by block. A difference counts by the smallest one that matters, which is worth as much
/// as the smallest ratio that does: this is the only common measure that the experiment has.
fn find_gains(comparison: &Comparison, smallest: f64) -> Vec<(u32, f64)> {
    let sign = match comparison.better {
        Better::Lower => -1.0,
        Better::Higher | Better::Neither => 1.0,
    };
    let ratios = comparison.block_ratios.iter();
    let mut found: Vec<(u32, f64)> = ratios.map(|b| (b.block, sign * b.ratio.ln())).collect();
    if let Some(difference) = &comparison.difference {
        let worth = smallest.ln_1p() / difference.smallest_effect;
        let all = difference.blocks.iter();
        found.extend(all.map(|b| (b.block, sign * b.difference * worth)));
    }
    found.retain(|(_, gain)| gain.is_finite());
    found
}

fn check_sources(sources: &[Source]) -> Result<(), RecommendError> {
    let first = sources.first().ok_or(RecommendError::NoSource)?;
    for (index, source) in sources.iter().enumerate() {
        let (label, results) = (source.label, source.results);
        if let Some(from) = results.experiment.import_source() {
            let (label, tool) = (label.to_owned(), from.tool.clone());
            return Err(RecommendError::Imported { label, tool });
        }
        let again = sources[..index].iter();
        let mut again = again.filter(|before| same_run(before.results, results).is_some());
        if let Some(before) = again.next() {
            return Err(RecommendError::SameRun(
                before.label.to_owned(),
                label.to_owned(),
            ));
        }
        check_machine(first, source)?;
        check_baseline(first, source)?;
        for before in &sources[..index] {
            check_definitions(before, source)?;
        }
    }
    Ok(())
}

fn check_machine(a: &Source, b: &Source) -> Result<(), RecommendError> {
    let (here, there) = (&a.results.system, &b.results.system);
    let facts = [
        ("machine", host(a.results), host(b.results)),
        ("CPU", here.cpu_model.clone(), there.cpu_model.clone()),
        ("CPUs", here.cpus.to_string(), there.cpus.to_string()),
        ("target", target(a.results), target(b.results)),
    ];
    let differs = facts.into_iter().find(|(_, here, there)| here != there);
    match differs {
        None => Ok(()),
        Some((what, here, there)) => Err(RecommendError::OtherMachine {
            what,
            a: format!("{here} in {}", a.label),
            b: format!("{there} in {}", b.label),
        }),
    }
}

/// Host names tell machines apart; guests all have the same.
fn host(results: &ResultSet) -> String {
    results.system.hostname.clone()
}

fn target(results: &ResultSet) -> String {
    results.experiment.target.kind().to_owned()
}

fn check_baseline(a: &Source, b: &Source) -> Result<(), RecommendError> {
    let baseline = |s: &Source| {
        let experiment = &s.results.experiment;
        experiment.arms[experiment.baseline].clone()
    };
    let (here, there) = (baseline(a), baseline(b));
    let is_same = here.name == there.name && here == there;
    let said = |arm: &Arm, label: &str| format!("{} ({}) in {label}", arm.name, arm.summary());
    match is_same {
        true => Ok(()),
        false => Err(RecommendError::NoCommonBaseline {
            a: said(&here, a.label),
            b: said(&there, b.label),
        }),
    }
}

/// Checks that all of the same name is the same in both.
fn check_definitions(a: &Source, b: &Source) -> Result<(), RecommendError> {
    let (here, there) = (&a.results.experiment, &b.results.experiment);
    let unlike = |what: String| RecommendError::Unlike {
        what,
        a: a.label.to_owned(),
        b: b.label.to_owned(),
    };
    for arm in &here.arms {
        let twin = there.arms.iter().find(|other| other.name == arm.name);
        if twin.is_some_and(|twin| twin != arm) {
            return Err(unlike(format!("arm {}", arm.name)));
        }
    }
    for cell in &a.results.plan.cells {
        let twin = b.results.plan.cells.iter().find(|c| c.name == cell.name);
        let Some(twin) = twin else { continue };
        let (x, y) = (
            &here.workloads[cell.workload],
            &there.workloads[twin.workload],
        );
        let is_same = x.kind == y.kind && x.duration_ns == y.duration_ns;
        if !is_same {
            return Err(unlike(format!("cell {}", cell.name)));
        }
    }
    Ok(())
}
