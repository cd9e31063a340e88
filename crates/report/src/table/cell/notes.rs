//! Notes below a comparison: what its figures do not say by themselves.

use super::{CellScope, MetricHead};
use crate::table::doubt;
use crate::table::not_measured::of_both;
use crate::words;
use judge::Judgement;
use results::bound::{Bound, find_bound};
use results::{LEAST_PERCENT, Overload, Pair};
use std::collections::HashSet;

impl CellScope<'_> {
    pub(super) fn notes(
        &self,
        head: &MetricHead,
        arm: usize,
        overload: &Overload,
        pairs: &[Pair],
        judged: &Judgement,
    ) -> Vec<String> {
        let by_difference = judged.difference.is_some();
        let note = match note_overload(head, overload) {
            Some(note) if pairs.is_empty() => return vec![note],
            _ if !self.are_measured(arm) => return self.notes_not_measured(arm),
            note => note,
        };
        let notes = [
            note,
            self.note_elsewhere(arm),
            self.note_bounds(head.name, self.baseline),
            self.note_bounds(head.name, arm),
            self.note_missing(head, arm, pairs.len(), overload),
            note_unusable(pairs, by_difference),
            note_from_nothing(pairs),
            doubt::by_difference(judged),
            doubt::doubt_note(judged),
        ];
        notes.into_iter().flatten().collect()
    }

    fn note_elsewhere(&self, arm: usize) -> Option<String> {
        self.is_work_elsewhere(arm).then(|| {
            "others did most of the work of the command, so equal figures do not show that the arms \
             are equal"
                .to_owned()
        })
    }

    /// A note on the trials of an arm whose figure is only a bound.
    fn note_bounds(&self, metric: &str, arm: usize) -> Option<String> {
        let of_arm = self.trials.iter().filter(|t| t.place.arm == arm);
        let bounds: Vec<Option<Bound>> = of_arm.map(|trial| find_bound(trial, metric)).collect();
        let (all, name) = (bounds.len(), &self.experiment.arms[arm].name);
        let count = |kind| bounds.iter().filter(|bound| **bound == Some(kind)).count();
        let words = [(Bound::Lower, "lower"), (Bound::Higher, "higher")]
            .into_iter()
            .filter(|(kind, _)| count(*kind) > 0)
            .map(|(kind, word)| {
                let number = count(kind);
                format!("in {number} of {all} trials {name} is {word} than its figure")
            });
        let words: Vec<String> = words.collect();
        (!words.is_empty()).then(|| format!("{}, a bound", words.join(" and ")))
    }

    fn notes_not_measured(&self, arm: usize) -> Vec<String> {
        of_both(self.experiment, [arm, self.baseline], &self.not_measured)
            .map(words::arm_not_measured)
            .collect()
    }

    /// A note on the blocks in which both arms ran, but not both have the figure.
    fn note_missing(
        &self,
        head: &MetricHead,
        arm: usize,
        found: usize,
        overload: &Overload,
    ) -> Option<String> {
        let blocks = |arm| -> HashSet<u32> {
            let of_arm = self.trials.iter().filter(|t| t.place.arm == arm);
            of_arm.map(|t| t.place.block).collect()
        };
        let baseline = blocks(self.baseline);
        let left_out = match head.is_latency() {
            true => overload.count_blocks(head.name),
            false => 0,
        };
        let both = blocks(arm).intersection(&baseline).count() - left_out;
        (found > 0 && found < both)
            .then(|| format!("only {found} of {both} blocks have this figure of both arms"))
    }
}

/// A note on latencies that are those of a queue.
fn note_overload(head: &MetricHead, overload: &Overload) -> Option<String> {
    let (blocks, of) = (overload.count_blocks(head.name), overload.of);
    if !head.is_latency() || blocks == 0 {
        return None;
    }
    Some(match overload.forbids_latency(head.name) {
        true => format!(
            "overloaded in {blocks} of {of} blocks: latency is that of a queue and not compared; \
             {} decides",
            overload.name_goodput(head.name)
        ),
        false => format!("{blocks} of {of} blocks are left out: a trial was overloaded"),
    })
}

/// A note on the blocks that have no change.
fn note_unusable(pairs: &[Pair], by_difference: bool) -> Option<String> {
    let is_usable = |pair: &Pair| match by_difference {
        true => pair.difference().is_some(),
        false => pair.log_ratio().is_some(),
    };
    let without: Vec<String> = pairs
        .iter()
        .filter(|pair| !is_usable(pair))
        .map(|pair| pair.block.to_string())
        .collect();
    match without.as_slice() {
        [] => None,
        [one] => Some(format!("block {one} is left out: a value is not a number")),
        many => Some(format!(
            "{} blocks are left out ({}): a value is not a number",
            many.len(),
            many.join(", ")
        )),
    }
}

/// A note on ratios of which one side is too small a percentage to be told from 0.
fn note_from_nothing(pairs: &[Pair]) -> Option<String> {
    let raised = pairs.iter().filter(|pair| pair.is_from_nothing()).count();
    let all = pairs.len();
    (raised > 0).then(|| {
        format!(
            "in {raised} of {all} blocks one arm has less than {LEAST_PERCENT} %, which counts as \
             {LEAST_PERCENT} %: the ratio says no more than that it is far from the other"
        )
    })
}
