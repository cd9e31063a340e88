//! Warnings of a report: those of the run and of its trials, each once, and what
//! the results themselves give reason to say. The most serious come first.

use crate::drift;
use crate::table::{CellTable, Notice};
use model::preflight::{Check, CheckState};
use model::{Severity, Trial, Warning};
use results::{ResultSet, RunState};

pub fn collect(results: &ResultSet, cells: &[CellTable]) -> Vec<Notice> {
    let mut notices: Vec<Gathered> = Vec::new();
    for warning in &results.manifest.warnings {
        add(&mut notices, warning, None);
    }
    for stored in &results.trials {
        for warning in &stored.trial.result.warnings {
            add(&mut notices, warning, Some(&stored.trial));
        }
    }
    let own = own(results, &notices);
    for warning in own.iter().chain(&drift::warnings(results, cells)) {
        add(&mut notices, warning, None);
    }
    let mut notices: Vec<Notice> = notices.into_iter().map(Gathered::merged).collect();
    notices.sort_by_key(|notice| std::cmp::Reverse(notice.severity));
    notices
}

/// A notice and all that was said of it.
struct Gathered {
    notice: Notice,
    said: Vec<String>,
}

impl Gathered {
    fn merged(self) -> Notice {
        Notice {
            what: in_ranges(&self.said),
            ..self.notice
        }
    }
}

/// A warning of the run as a whole, or of one trial.
fn add(notices: &mut Vec<Gathered>, warning: &Warning, trial: Option<&Trial>) {
    let place = trial.map(|trial| format!("{} in {}", trial.arm, trial.cell));
    let same = |gathered: &Gathered| {
        let n = &gathered.notice;
        n.severity == warning.severity
            && (n.trials > 0) == trial.is_some()
            && alike(&n.what, &warning.what)
    };
    let index = notices.iter().position(same).unwrap_or_else(|| {
        notices.push(Gathered {
            notice: Notice {
                severity: warning.severity,
                what: warning.what.clone(),
                remedy: warning.remedy.clone(),
                trials: 0,
                places: Vec::new(),
            },
            said: Vec::new(),
        });
        notices.len() - 1
    });
    let Gathered { notice, said } = &mut notices[index];
    said.push(warning.what.clone());
    if let Some(place) = place {
        notice.trials += 1;
        if !notice.places.contains(&place) {
            notice.places.push(place);
        }
    }
}

/// The numbers of texts that are alike but for them: `7 to 93.1 % were completed`.
fn in_ranges(texts: &[String]) -> String {
    let numbers: Vec<Vec<&str>> = texts.iter().map(|text| numbers(text)).collect();
    let Some(first) = texts.first() else {
        return String::new();
    };
    let mut text = String::new();
    let mut rest = first.as_str();
    for (index, number) in numbers[0].iter().enumerate() {
        let at = rest.find(number).unwrap_or(0);
        text.push_str(&rest[..at]);
        text.push_str(&range(
            numbers.iter().filter_map(|of| of.get(index).copied()),
        ));
        rest = &rest[at + number.len()..];
    }
    text + rest
}

/// In their order, without a full stop behind them.
fn numbers(text: &str) -> Vec<&str> {
    let parts = text.split(|c: char| !is_numeric(c));
    let parts = parts.map(|part| part.trim_matches('.'));
    parts.filter(|part| !part.is_empty()).collect()
}

/// `7 to 93.1`, or the number that all are.
fn range<'a>(numbers: impl Iterator<Item = &'a str>) -> String {
    let by_size = |a: &&str, b: &&str| {
        let of = |number: &str| number.parse().unwrap_or(f64::NAN);
        of(a).total_cmp(&of(b))
    };
    let mut numbers: Vec<&str> = numbers.collect();
    numbers.sort_by(by_size);
    match (numbers.first(), numbers.last()) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (one, _) => one.copied().unwrap_or_default().to_owned(),
    }
}

fn is_numeric(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// Equal but for their numbers.
pub fn alike(a: &str, b: &str) -> bool {
    let skeleton = |text: &str| -> String { text.chars().filter(|c| !is_numeric(*c)).collect() };
    skeleton(a) == skeleton(b)
}

/// What nobody warned of while it ran.
fn own(results: &ResultSet, said: &[Gathered]) -> Vec<Warning> {
    let mut own = Vec::new();
    own.extend(emulation(results, said));
    own.extend(unfinished(results.manifest.state));
    own.extend(many_excluded(results));
    own.extend(settings(&results.system.preflight));
    own
}

fn emulation(results: &ResultSet, said: &[Gathered]) -> Option<Warning> {
    let tcg = results.system.hypervisor == "tcg";
    let known = said.iter().any(|said| said.notice.what.contains("TCG"));
    (tcg && !known).then(|| Warning {
        severity: Severity::Serious,
        what: "The guest ran under emulation (TCG): its times are those of an emulated CPU, \
               where a context switch costs far more than on a real one."
            .to_owned(),
        remedy: "Take the direction of a difference, not its size; repeat on KVM or on a real \
                 machine before you act on it."
            .to_owned(),
    })
}

fn unfinished(state: RunState) -> Option<Warning> {
    let what = match state {
        RunState::Done => return None,
        RunState::Running => "The run is still under way, or its process died.",
        RunState::Interrupted => "The run was interrupted before it was done.",
        RunState::Aborted => "The run was ended by an error.",
    };
    Some(Warning {
        severity: Severity::Caution,
        what: format!("{what} What follows is from the trials so far."),
        remedy: "Go on with `schedlab run FILE --resume DIR`.".to_owned(),
    })
}

/// What was found on the machine before the first trial.
fn settings(preflight: &[Check]) -> Option<Warning> {
    let found = preflight.iter().filter(|c| c.state == CheckState::Caution);
    let names: Vec<&str> = found.map(|check| check.name.as_str()).collect();
    (!names.is_empty()).then(|| Warning {
        severity: Severity::Note,
        what: format!(
            "Settings of this machine that move figures: {}.",
            names.join(", ")
        ),
        remedy: "schedlab doctor says what each does; --fix changes what can be changed."
            .to_owned(),
    })
}

/// A tenth or more of the attempts did not count.
fn many_excluded(results: &ResultSet) -> Option<Warning> {
    let all = results.trials.len();
    let lost = results.trials.iter().filter(|t| !t.trial.is_ok()).count();
    (lost > 0 && lost * 10 >= all).then(|| Warning {
        severity: Severity::Caution,
        what: format!("{lost} of {all} trials do not count."),
        remedy: "Read their reasons; an arm that often fails is no answer even where it \
                 is fast."
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(what: &str) -> Warning {
        Warning {
            severity: Severity::Caution,
            what: what.to_owned(),
            remedy: String::new(),
        }
    }

    #[test]
    fn only_settings_that_move_figures_are_named() {
        let check = |name: &str, state| Check {
            name: name.to_owned(),
            value: String::new(),
            state,
            effect: String::new(),
            remedy: String::new(),
        };
        let fine = check("turbo", CheckState::Ok);
        assert_eq!(settings(std::slice::from_ref(&fine)), None);
        let warning = settings(&[fine, check("governor", CheckState::Caution)]);
        assert!(warning.is_some_and(|w| w.what.ends_with("figures: governor.")));
    }

    #[test]
    fn warnings_that_differ_in_numbers_only_are_one() {
        let mut notices = Vec::new();
        add(
            &mut notices,
            &warning("overload: 93.1 % were completed"),
            None,
        );
        add(&mut notices, &warning("overload: 7 % were completed"), None);
        add(&mut notices, &warning("steal: 7 % were stolen"), None);
        assert_eq!(notices.len(), 2);
        let whats: Vec<String> = notices.into_iter().map(|n| n.merged().what).collect();
        assert_eq!(whats[0], "overload: 7 to 93.1 % were completed");
        assert_eq!(whats[1], "steal: 7 % were stolen");
    }

    #[test]
    fn a_number_at_the_end_of_a_sentence_keeps_its_full_stop() {
        let said = ["1 of 9 was 3.", "1 of 7 was 12."].map(str::to_owned);
        assert_eq!(in_ranges(&said), "1 of 7 to 9 was 3 to 12.");
    }
}
