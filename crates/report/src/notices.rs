//! Warnings of a report: those of the run and of its trials, each once, and what
//! the results themselves give reason to say. The most serious come first.

use crate::table::Notice;
use model::{Severity, Warning};
use results::{ResultSet, RunState};

pub fn collect(results: &ResultSet) -> Vec<Notice> {
    let mut notices: Vec<Notice> = Vec::new();
    for warning in &results.manifest.warnings {
        add(&mut notices, warning, 0);
    }
    for stored in &results.trials {
        for warning in &stored.trial.result.warnings {
            add(&mut notices, warning, 1);
        }
    }
    for warning in own(results, &notices) {
        add(&mut notices, &warning, 0);
    }
    notices.sort_by_key(|notice| std::cmp::Reverse(notice.severity));
    notices
}

fn add(notices: &mut Vec<Notice>, warning: &Warning, trials: usize) {
    let same = |n: &&mut Notice| {
        n.severity == warning.severity && n.what == warning.what && n.remedy == warning.remedy
    };
    match notices.iter_mut().find(same) {
        Some(notice) => notice.trials += trials,
        None => notices.push(Notice {
            trials,
            ..Notice::of_run(warning)
        }),
    }
}

/// What nobody warned of while it ran.
fn own(results: &ResultSet, said: &[Notice]) -> Vec<Warning> {
    let mut own = Vec::new();
    own.extend(emulation(results, said));
    own.extend(unfinished(results.manifest.state));
    own.extend(many_excluded(results));
    own
}

fn emulation(results: &ResultSet, said: &[Notice]) -> Option<Warning> {
    let tcg = results.system.hypervisor == "tcg";
    let known = said.iter().any(|notice| notice.what.contains("TCG"));
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

/// A tenth or more of the attempts did not count.
fn many_excluded(results: &ResultSet) -> Option<Warning> {
    let all = results.trials.len();
    let lost = results.trials.iter().filter(|t| !t.trial.is_ok()).count();
    (lost > 0 && lost * 10 >= all).then(|| Warning {
        severity: Severity::Caution,
        what: format!("{lost} of {all} trials do not count."),
        remedy: "Read their reasons below; an arm that often fails is no answer even where it \
                 is fast."
            .to_owned(),
    })
}
