//! Conclusions that two results allow, and those that they do not allow.

use super::events::describe_events;
use super::{Agreement, Effect, SideBySide};
use crate::quantity::{format_count, format_percent};
use results::ResultSet;

/// The weightiest first.
pub fn draw_conclusions(both: &SideBySide, a: &ResultSet, b: &ResultSet) -> Vec<String> {
    let mut said = vec![effects(both, a, b)];
    said.extend(describe_events(both));
    said.extend(causes(both));
    said.extend(emulation(a, b));
    said.push(levels(both));
    said.push(
        "Within A and within B the verdicts stand: their arms ran interleaved on one machine."
            .to_owned(),
    );
    said
}

fn effects(both: &SideBySide, a: &ResultSet, b: &ResultSet) -> String {
    if both.effects.is_empty() {
        return "No arm was compared with the same baseline in the same cell on both sides: \
                nothing can be said about effects."
            .to_owned();
    }
    let risk = format_percent(
        (2.0 - a.experiment.stop.confidence - b.experiment.stop.confidence).min(1.0),
    );
    let meanings = [
        (Agreement::Agrees, String::new()),
        (
            Agreement::Differs,
            format!(
                " `differs` is a claim (each with at most {risk} % chance to be false): the arm \
                 does something else there than here."
            ),
        ),
        (
            Agreement::Open,
            " `open` is none: not told apart is not the same.".to_owned(),
        ),
    ];
    let number = |agreement| {
        let effects = both.effects.iter();
        effects.filter(|e| e.agreement == agreement).count()
    };
    let found = meanings.iter().filter(|(of, _)| number(*of) > 0);
    let counted = |of: Agreement| format!("{}{}", of.of(number(of)), differing(both, of));
    let counts: Vec<String> = found.clone().map(|(of, _)| counted(*of)).collect();
    let meanings: String = found.map(|(_, meaning)| meaning.as_str()).collect();
    let all = format_count(both.effects.len(), "effect");
    format!("Of {all}, {}.{meanings}", counts.join(", "))
}

/// ` (batch hackbench_time in hackbench 4)`; only effects that differ are named.
fn differing(both: &SideBySide, agreement: Agreement) -> String {
    const MOST_NAMED: usize = 3;
    let effects = both.effects.iter();
    let effects: Vec<&Effect> = effects.filter(|e| e.agreement == agreement).collect();
    if agreement != Agreement::Differs {
        return String::new();
    }
    let named = effects.iter().take(MOST_NAMED);
    let named = named.map(|e| format!("{} {} in {}", e.arm, e.metric, e.cell));
    let mut named: Vec<String> = named.collect();
    named.extend((effects.len() > MOST_NAMED).then(|| "...".to_owned()));
    format!(" ({})", named.join(", "))
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
            "Nothing that was recorded and can matter differs but the time. A difference is then \
             drift, or something that was not recorded."
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
