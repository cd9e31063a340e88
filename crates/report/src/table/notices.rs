//! Warnings of a report: those of the run and of its trials, each once, and what
//! the results themselves give reason to say. The most serious come first.

use crate::fold::{in_ranges, is_alike};
use crate::quantity::format_rough_time;
use crate::table::across::{EventComparison, EventCount};
use crate::table::{ArmTrials, CellTable, Notice};
use crate::table::{drift, modes, twins, warm};
use model::preflight::{Check, CheckState};
use model::{RareEvent, Severity, System, Trial, Warning};
use results::{ResultSet, RunState};

pub fn collect_notices(
    results: &ResultSet,
    cells: &[CellTable],
    events: &[EventComparison],
) -> Vec<Notice> {
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
    let drifts = drift::drift_warnings(results, cells);
    // Trials of two machines lie in two groups.
    let is_one_run = results.manifest.sources.is_empty();
    let modes = is_one_run
        .then(|| modes::mode_warnings(results, cells))
        .flatten();
    for warning in own
        .iter()
        .chain(&note_frequent(events))
        .chain(&note_uncompared(results, events))
        .chain(&warm::warmup_warnings(results))
        .chain(&twins::twin_warnings(results))
        .chain(&drifts)
        .chain(&modes)
    {
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
            what: in_ranges(&self.said.iter().map(String::as_str).collect::<Vec<_>>()),
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
            && is_alike(&n.what, &warning.what)
    };
    let index = notices.iter().position(same).unwrap_or_else(|| {
        notices.push(Gathered {
            notice: Notice {
                severity: warning.severity,
                what: warning.what.clone(),
                remedy: warning.remedy.clone(),
                trials: 0,
                places: Vec::new(),
                arms: Vec::new(),
            },
            said: Vec::new(),
        });
        notices.len() - 1
    });
    let Gathered { notice, said } = &mut notices[index];
    said.push(warning.what.clone());
    if let (Some(place), Some(trial)) = (place, trial) {
        notice.trials += 1;
        ArmTrials::add_trial(&mut notice.arms, &trial.arm);
        if !notice.places.contains(&place) {
            notice.places.push(place);
        }
    }
}

/// Warnings that the results give reason for and that nobody gave during the run.
fn own(results: &ResultSet, said: &[Gathered]) -> Vec<Warning> {
    let mut own = Vec::new();
    if results.experiment.import_source().is_some() {
        return strays(&results.strays).into_iter().collect();
    }
    own.extend(emulation(results, said));
    own.extend(unfinished(results.manifest.state));
    own.extend(many_excluded(results));
    own.extend(settings(
        systems(results).flat_map(|system| &system.preflight),
    ));
    own.extend(strays(&results.strays));
    own
}

/// Events that are none that are rare.
pub fn note_frequent(events: &[EventComparison]) -> Vec<Warning> {
    let frequent = events.iter().filter(|c| c.is_frequent());
    let warning = |c: &EventComparison| {
        let sides = [c.arm_events, c.baseline_events];
        let shares = sides.iter().filter_map(|side| side.share_of_requests);
        let most = shares.fold(0.0, f64::max);
        Warning {
            severity: Severity::Caution,
            what: format!(
                "The event `{}` is no rare one: {:.0} % of all requests in {} are beyond its bound.",
                c.event,
                100.0 * most,
                c.cell
            ),
            remedy: "Compare a quantile, or choose a higher bound before the next run.".to_owned(),
        }
    };
    let uneven = events.iter().filter_map(note_uneven);
    frequent.map(warning).chain(uneven).collect()
}

/// Events that no block has of two arms, of which nothing else is said.
fn note_uncompared(results: &ResultSet, events: &[EventComparison]) -> Vec<Warning> {
    let is_compared = |event: &RareEvent| events.iter().any(|c| c.event == event.name);
    let declared = results.experiment.observe.events.iter();
    let missing = declared.filter(|event| !is_compared(event));
    missing
        .map(|event| Warning {
            severity: Severity::Caution,
            what: format!(
                "The event `{}` is compared with nothing, since no block counted it under two arms: {}.",
                event.name,
                describe_all(results, event)
            ),
            remedy: "Compare two arms; the same one under another name shows what chance does."
                .to_owned(),
        })
        .collect()
}

/// `3 in 5 minutes` in all trials that count.
fn describe_all(results: &ResultSet, event: &RareEvent) -> String {
    let trials = results.trials.iter().map(|stored| &stored.trial);
    let trials = trials.filter(|trial| trial.is_ok());
    let found = trials.filter_map(|trial| trial.find_event(&event.name));
    let (count, exposure_ns) = found.fold((0, 0.0), |(count, exposure_ns), happened| {
        let exposure_ns = exposure_ns + happened.exposure_ns as f64;
        (count + happened.count(), exposure_ns)
    });
    match exposure_ns > 0.0 {
        true => format!("{count} in {}", format_rough_time(exposure_ns)),
        false => "no trial counted it at all".to_owned(),
    }
}

/// Events are compared by time, so an arm that does less has fewer occasions.
fn note_uneven(c: &EventComparison) -> Option<Warning> {
    let ratio = c.uneven_requests()?;
    let share = |side: &EventCount| 100.0 * side.share_of_requests.unwrap_or(0.0);
    Some(Warning {
        severity: Severity::Note,
        what: format!(
            "The event `{}` is compared by time, and in {} {} made {:.0} % of the requests of {}: of them {:.3} % \
             were beyond the bound, of those of {} {:.3} %.",
            c.event,
            c.cell,
            c.arm,
            100.0 * ratio,
            c.baseline,
            share(&c.arm_events),
            c.baseline,
            share(&c.baseline_events),
        ),
        remedy: "Give all arms the same work: a rate as the load.".to_owned(),
    })
}

/// Entries beside the trials that are none.
fn strays(names: &[String]) -> Option<Warning> {
    (!names.is_empty()).then(|| Warning {
        severity: Severity::Note,
        what: format!(
            "The directory of the trials also has what holds no trial: {}.",
            names.join(", ")
        ),
        remedy: "It was left out. If it was a trial, its trial.json is gone.".to_owned(),
    })
}

/// The machine of the report's head, then all that came up: others, where runs were merged.
fn systems(results: &ResultSet) -> impl Iterator<Item = &System> {
    let machines = results.starts.iter().flat_map(|start| &start.machines);
    std::iter::once(&results.system).chain(machines.map(|machine| &machine.system))
}

fn emulation(results: &ResultSet, said: &[Gathered]) -> Option<Warning> {
    let tcg =
        systems(results).any(|system| system.hypervisor == "tcg" && !system.in_virtual_time());
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
        remedy: "Go on with `schedlab run --resume DIR`.".to_owned(),
    })
}

/// Warning about the settings that were found on the machine before the first trial.
fn settings<'a>(checks: impl IntoIterator<Item = &'a Check>) -> Option<Warning> {
    let found = checks
        .into_iter()
        .filter(|check| check.state == CheckState::Caution);
    let mut names: Vec<&str> = Vec::new();
    for name in found.map(|check| check.name.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
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
    fn what_lies_beside_the_trials_is_named() {
        assert_eq!(strays(&[]), None);
        let warning = strays(&["lost+found".to_owned()]).unwrap();
        assert!(
            warning.what.ends_with("no trial: lost+found."),
            "{}",
            warning.what
        );
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
}
