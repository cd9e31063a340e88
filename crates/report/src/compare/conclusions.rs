//! Conclusions that two results allow, and those that they do not allow.

use super::{Agreement, SideBySide};
use crate::quantity::percent;
use results::ResultSet;

pub fn of(both: &SideBySide, a: &ResultSet, b: &ResultSet) -> Vec<String> {
    let mut said = vec![
        "Within A and within B: the verdicts stand. Their arms ran interleaved on one machine."
            .to_owned(),
    ];
    said.push(effects(both, a, b));
    said.push(levels(both));
    said.extend(causes(both));
    said.extend(emulation(a, b));
    said
}

fn effects(both: &SideBySide, a: &ResultSet, b: &ResultSet) -> String {
    if both.effects.is_empty() {
        return "No arm was compared with the same baseline in the same cell on both sides: \
                nothing can be said about effects."
            .to_owned();
    }
    let count = |agreement| {
        both.effects
            .iter()
            .filter(|e| e.agreement == agreement)
            .count()
    };
    let risk =
        percent((2.0 - a.experiment.stop.confidence - b.experiment.stop.confidence).min(1.0));
    format!(
        "Effects: {} of {} agree, {} differ, {} are open. `differs` is a claim (each with at most \
         {risk} % chance to be false): the arm does something else there than here. `open` is none: \
         not told apart is not the same.",
        count(Agreement::Agrees),
        both.effects.len(),
        count(Agreement::Differs),
        count(Agreement::Open),
    )
}

fn levels(both: &SideBySide) -> String {
    match both.levels.is_empty() {
        true => "No arm ran in the same cell on both sides: no figures can be laid side by side.",
        false => {
            "Levels, one arm in A against the same arm in B, are a description. Their interval \
             covers the noise of trials, not the time between the two runs nor anything else that \
             changed, so an interval beside 1 proves a difference of circumstances, never its cause."
        }
    }
    .to_owned()
}

/// All that differs may be the cause.
fn causes(both: &SideBySide) -> Vec<String> {
    let names: Vec<&str> = both.differs.iter().map(|d| d.what.as_str()).collect();
    let ran_apart = "put both into one experiment as arms, so that they are interleaved";
    match names.as_slice() {
        [] => vec![
            "Nothing that was recorded differs but the time. A difference is then drift, or \
             something that was not recorded."
                .to_owned(),
        ],
        [one] => vec![format!(
            "{one} is the only recorded difference besides the time. To claim that it is the \
             cause, {ran_apart}."
        )],
        many => vec![format!(
            "{} things differ ({}) and cannot be told apart from each other. To claim one of \
             them as the cause, {ran_apart}.",
            many.len(),
            listed(many)
        )],
    }
}

fn listed(names: &[&str]) -> String {
    match names {
        [first @ .., _] if names.len() > 6 => {
            format!("{}, ...", first[..5].join(", "))
        }
        names => names.join(", "),
    }
}

fn emulation(a: &ResultSet, b: &ResultSet) -> Option<String> {
    let emulated = |results: &ResultSet| results.system.hypervisor == "tcg";
    let which = match (emulated(a), emulated(b)) {
        (false, false) => return None,
        (true, true) => "Both ran",
        (true, false) => "A ran",
        (false, true) => "B ran",
    };
    Some(format!(
        "{which} under emulation (TCG): take directions, not sizes."
    ))
}
