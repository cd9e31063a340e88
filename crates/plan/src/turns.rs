//! Arms that take turns inside one process: what such a workload and such arms must be able to.

use crate::error::PlanError;
use crate::workload::kinds;
use agent::arm::ingredient::Ingredient;
use agent::arm::table::INGREDIENTS;
use load::{KindDef, Window};
use model::check::{LEAST_WINDOW_NS, MOST_WINDOWS};
use model::{Arm, Experiment, InPlace, Load, Observe, Place, Role, Workload};
use serde_json::Map;

const HELP: &str = "leave out in-place: each trial is a process of its own then";
/// The longest window: the change of a machine within it is what turns are to be faster than.
const MOST_WINDOW_NS: u64 = 60_000_000_000;
/// The shortest washout: its half is for a change and its proof.
const LEAST_WASHOUT_NS: u64 = 1_000_000;
/// The shortest washout in which a sched_ext scheduler could end and another be verified and
/// attached, on a fast machine.
const LEAST_TO_ATTACH_NS: u64 = 200_000_000;
/// The washout that a pilot begins with: a change with its proof takes half a millisecond or so.
const PILOT_WASHOUT_NS: u64 = 5_000_000;

/// Decides for each workload whose arms take turns if they can whether they do.
pub(crate) fn choose(experiment: &mut Experiment) -> Result<(), PlanError> {
    let kept = experiment.workloads.clone();
    for (index, workload) in kept.iter().enumerate() {
        let Some(lengths) = workload.in_place.filter(|lengths| lengths.pilot) else {
            continue;
        };
        let lengths = pilot_lengths(experiment, lengths);
        // Alone, so that nothing of another workload is in its way.
        let alone = Experiment {
            workloads: vec![Workload {
                in_place: Some(InPlace {
                    pilot: false,
                    ..lengths
                }),
                ..workload.clone()
            }],
            ..experiment.clone()
        };
        let def = crate::workload::find(workload.kind.name())?;
        let can = check_ends(def, workload)
            .and_then(|()| check(def, &alone.workloads[0]))
            .and_then(|()| check_arms(&alone));
        let chosen = &mut experiment.workloads[index];
        match can {
            Ok(()) => chosen.in_place = Some(lengths),
            // Whoever takes turns with it comes later: `schedlab certify` repeats it.
            Err(_) if experiment.arms.len() < 2 => chosen.in_place = None,
            Err(error) => {
                chosen.in_place = None;
                chosen.whole_because = Some(error.to_string());
            }
        }
    }
    Ok(())
}

/// Refuses a program that ends by itself: one that takes turns runs until it is stopped, so it
/// cannot be measured in both ways.
fn check_ends(def: &KindDef, workload: &Workload) -> Result<(), PlanError> {
    match def.turns && def.window == Window::Whole {
        true => Err(PlanError::new(format!(
            "`{}` is a program that runs to its end",
            workload.name
        ))),
        false => Ok(()),
    }
}

/// Lengths that the pilot begins with.
fn pilot_lengths(experiment: &Experiment, lengths: InPlace) -> InPlace {
    match experiment.arms.iter().any(|arm| arm.scheduler.is_some()) {
        true => InPlace {
            window_ns: LEAST_TO_ATTACH_NS.saturating_mul(10),
            washout_ns: LEAST_TO_ATTACH_NS.saturating_mul(5),
            ..lengths
        },
        false => InPlace {
            washout_ns: PILOT_WASHOUT_NS,
            ..lengths
        },
    }
}

/// Refuses a workload that has no windows of which each could have another arm.
pub(crate) fn check(def: &KindDef, workload: &Workload) -> Result<(), PlanError> {
    let driver = load::driver(&workload.kind).map_err(PlanError::new)?;
    let name = &workload.name;
    if let Some(why) = driver
        .only_in_turns()
        .filter(|_| workload.in_place.is_none())
    {
        let help = "in-place = \"always\", or another `pick`";
        return Err(PlanError::new(why).with_help(help));
    }
    // One that may take turns is asked when all arms are known.
    let Some(lengths) = workload.in_place.filter(|lengths| !lengths.pilot) else {
        return Ok(());
    };
    let wrong = |what: String| Err(PlanError::new(what).with_help(HELP).about_key("in-place"));
    if !def.turns {
        let able = kinds(|def| def.turns).join("`, `");
        return wrong(format!(
            "the workload `{name}` does not record window by window, which in-place asks for; \
             `{able}` can"
        ));
    }
    if workload.load_on == Place::Controller {
        return wrong(format!(
            "the load of `{name}` runs on the controller, and changes are made on the target"
        ));
    }
    if let Some(co_runner) = workload.co_runners.first() {
        let co_runner = &co_runner.name;
        return wrong(format!(
            "`{name}` has the co-runner `{co_runner}`, and windows of two processes would not be the same"
        ));
    }
    if let Some(why) = driver.never_in_turns() {
        return wrong(format!("arms cannot take turns under `{name}`: {why}"));
    }
    if def.window == Window::Whole && workload.duration_ns == 0 {
        return Err(PlanError::new(format!(
            "arms that take turns under `{name}` need a time for which it runs"
        ))
        .with_help("duration = \"10s\", the time of each arm; the program is stopped after all")
        .about_key("duration"));
    }
    if workload
        .loads
        .iter()
        .any(|load| matches!(load, Load::MaxRate(_)))
    {
        return wrong(format!(
            "`{name}` looks for its highest rate, which takes a process of its own"
        ));
    }
    check_lengths(lengths)
}

fn check_lengths(lengths: InPlace) -> Result<(), PlanError> {
    let out_of_range = |key: &str, ns: u64, help: &str| {
        let what = format!(
            "a {key} of {} is out of range",
            model::format_duration_ns(ns)
        );
        Err(PlanError::new(what).with_help(help).about_key(key))
    };
    let (window_ns, washout_ns) = (lengths.window_ns, lengths.washout_ns);
    if !(LEAST_WINDOW_NS..=MOST_WINDOW_NS).contains(&window_ns) {
        return out_of_range("turn", window_ns, "from 10ms to 60s: turn = \"200ms\"");
    }
    if !(LEAST_WASHOUT_NS..=MOST_WINDOW_NS).contains(&washout_ns) {
        return out_of_range("washout", washout_ns, "from 1ms to 60s: washout = \"20ms\"");
    }
    Ok(())
}

/// Refuses arms that cannot change under a process that runs.
pub(crate) fn check_arms(experiment: &Experiment) -> Result<(), PlanError> {
    let mut workloads = experiment.workloads.iter();
    let Some(workload) = workloads.find(|workload| workload.in_place.is_some()) else {
        return Ok(());
    };
    let wrong = |what: String| Err(PlanError::new(what).with_help(HELP));
    let most = experiment
        .workloads
        .iter()
        .filter_map(|w| Some((w, windows(experiment, w)?)));
    let many = most.max_by_key(|(_, windows)| *windows);
    if let Some((workload, windows)) = many.filter(|(_, windows)| *windows > MOST_WINDOWS as u64) {
        return Err(PlanError::new(format!(
            "`{}` has {windows} windows of an arm in one process; at most {MOST_WINDOWS} are kept",
            workload.name
        ))
        .with_help("a shorter duration, or a longer turn"));
    }
    check_attaching(experiment)?;
    for arm in &experiment.arms {
        if let Some(key) = fixed(arm) {
            return wrong(format!(
                "arm `{}`: {key} cannot change in a process that runs, as in-place of the \
                 workload `{}` asks for",
                arm.name, workload.name
            ));
        }
        if let Some(key) = unlike(arm, workload) {
            return wrong(format!(
                "arm `{}`: the programs of the role {} have a {key} of their own each in `{}`, and turns \
                 give all of them one",
                arm.name,
                arm.weighed_role().name(),
                workload.name
            ));
        }
    }
    if let Some((first, other)) = of_two_roles(&experiment.arms) {
        return wrong(format!(
            "arms that take turns must all be for one role; `{}` is for the {}, `{}` for the {}",
            first.name,
            first.describe_role(),
            other.name,
            other.describe_role()
        ));
    }
    if machines::find_abilities(&experiment.target)?
        .reset
        .has_snapshot()
    {
        return wrong(
            "with a snapshot each trial goes on from it, in a process of its own".to_owned(),
        );
    }
    match find_whole_observation(&experiment.observe) {
        Some(what) => wrong(what),
        None => Ok(()),
    }
}

/// Observation that is of whole trials only, if there is any.
fn find_whole_observation(observe: &Observe) -> Option<String> {
    if observe.trace.is_some() {
        return Some("a trace is of one arm, not of arms that take turns".to_owned());
    }
    if !observe.events.is_empty() {
        return Some(
            "rare events are counted in trials that are processes of their own".to_owned(),
        );
    }
    let mut named = observe.collect.iter().flatten();
    let name = named.find(|name| *name != "pace")?;
    Some(format!(
        "`collect` names {name}, which counts within the window of one arm"
    ))
}

/// Two arms of which neither could be gone back from to the other. What is changed of a daemon is taken
/// back, so arms for one may take turns with all that change no role.
fn of_two_roles(arms: &[Arm]) -> Option<(&Arm, &Arm)> {
    let is_of_daemon = |arm: &Arm| arm.to == Role::Daemon;
    let (daemons, others): (Vec<&Arm>, Vec<&Arm>) = arms.iter().partition(|arm| is_of_daemon(arm));
    match daemons.first() {
        Some(first) => {
            let other = others.into_iter().find(|arm| changes_a_role(arm))?;
            Some((first, other))
        }
        None => {
            let first = others.first()?;
            let other = others.iter().find(|arm| arm.to != first.to)?;
            Some((first, other))
        }
    }
}

/// Refuses turns that end before a scheduler of theirs could be attached.
fn check_attaching(experiment: &Experiment) -> Result<(), PlanError> {
    let Some(arm) = experiment.arms.iter().find(|arm| arm.scheduler.is_some()) else {
        return Ok(());
    };
    let lengths = experiment.workloads.iter().filter_map(|w| w.in_place);
    let shortest = lengths.map(|lengths| lengths.washout_ns).min();
    match shortest.filter(|washout_ns| *washout_ns < LEAST_TO_ATTACH_NS) {
        None => Ok(()),
        Some(washout_ns) => Err(PlanError::new(format!(
            "arm `{}`: a sched_ext scheduler is not attached within half a washout of {}",
            arm.name,
            model::format_duration_ns(washout_ns)
        ))
        .with_help(
            "turns of seconds: turn = \"2s\", washout = \"1s\"; twice as long in a guest \
             without KVM",
        )),
    }
}

/// Windows of the baseline in one process, where arms take turns.
fn windows(experiment: &Experiment, workload: &Workload) -> Option<u64> {
    let turn_ns = workload.in_place?.turn_ns().max(1);
    let all_ns = workload
        .duration_ns
        .saturating_mul(experiment.arms.len() as u64);
    Some(all_ns / turn_ns / 2)
}

/// The key of an arm to which no turn could go back, since placements of its role differ in it.
fn unlike(arm: &Arm, workload: &Workload) -> Option<&'static str> {
    let mut weights = workload.placements_of(&arm.weighed_role());
    let first = weights.next().and_then(|placement| placement.weight);
    if arm.weight.is_some() && weights.any(|placement| placement.weight != first) {
        return Some("weight");
    }
    let mut quotas = workload.placements_of(&arm.to);
    let first = quotas.next().and_then(|placement| placement.quota_percent);
    let differ = quotas.any(|placement| placement.quota_percent != first);
    (differ && arm.ingredients.contains_key("quota")).then_some("quota")
}

/// Name of an ingredient of the arm that cannot change in place.
fn fixed(arm: &Arm) -> Option<&'static str> {
    let mut fixed = INGREDIENTS
        .iter()
        .filter(|ingredient| !ingredient.in_place(arm));
    fixed
        .find(|ingredient| is_written(*ingredient, arm))
        .map(|found| found.name())
}

/// Does the arm have this ingredient?
/// True where an arm changes the processes of a role, or of a daemon in its place.
pub(crate) fn changes_a_role(arm: &Arm) -> bool {
    let mut of_role = INGREDIENTS.iter().filter(|i| !i.roles().is_empty());
    of_role.any(|ingredient| is_written(ingredient, arm))
}

fn is_written(ingredient: &dyn Ingredient, arm: &Arm) -> bool {
    let mut keys = Map::new();
    ingredient.write(arm, &mut keys);
    !keys.is_empty()
}
