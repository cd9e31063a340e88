//! Arms: the keys of `[[arm]]` that are of no ingredient, and the short form of the command
//! line (`batch`, `slice=0.3ms`, `'scx_rusty --slice-us-overutil 5000'`; several changes join with
//! `+`, `NAME:=…` names the arm). Ingredients read what is theirs themselves, in the agent.

use crate::check::check_collectors;
use crate::condition::Point;
use crate::error::PlanError;
use crate::grid;
use crate::name::check_name;
use crate::recipient::Whose;
use crate::table::{Places, Value, keys_of, no_fault, own_keys, split};
use agent::arm::POLICY_KEYS;
use agent::arm::ingredient::{Around, Form, Ingredient};
use agent::arm::table::{self, INGREDIENTS};
use machines::Can;
use model::{Arm, Invalid, Place, Role, Workload};
use schedule::check_quota;
use serde::Deserialize;
use toml::Spanned;

/// Word for an arm that changes nothing.
const UNCHANGED: &str = "default";

/// The forms of an arm, for `schedlab list arms` and for errors.
pub fn forms() -> Vec<Form> {
    let mut forms = vec![(
        UNCHANGED,
        "nothing changed: the kernel's own scheduler, whichever that is",
    )];
    let ingredients = INGREDIENTS.iter();
    forms.extend(ingredients.flat_map(|ingredient| ingredient.forms()));
    forms.extend([
        (
            "ROLE:CHANGE",
            "a change for one role of the workload, which is load, server or antagonist: \
             antagonist:nice=19, 'server:cpus=0-1'; without a role it is for the server where every \
             workload has one, otherwise for the load",
        ),
        (
            "DAEMON:CHANGE",
            "a change for processes that run on the target already: unit=mysqld.service:nice=5, \
             container=NAME:weight=50, cgroup=/PATH:quota=50%, name=COMMAND:batch, pid=N:cpus=0",
        ),
        ("A+B", "several changes together: batch+nice=5"),
        (
            "NAME:=ARM",
            "the arm under a name of its own: calm:=batch+nice=5",
        ),
    ]);
    forms
}

/// An arm from its short form, for the load unless it says another role.
pub fn parse_arm(text: &str) -> Result<Arm, PlanError> {
    parse_arm_for(text, &Role::Load)
}

/// An arm from its short form, for the usual role unless it says another.
pub fn parse_arm_for(text: &str, usual: &Role) -> Result<Arm, PlanError> {
    let (name, changes) = match text.split_once(":=") {
        Some((name, changes)) => (name.trim().to_owned(), changes),
        None => (short_name(text), text),
    };
    check_name(&name)?;
    let mut arm = Arm::unchanged(&name);
    let mut first: Option<(Whose, &str)> = None;
    for written in changes.split('+').map(str::trim) {
        let whose = apply(&mut arm, written, usual).map_err(|e| prefix(text, e))?;
        match (whose, &first) {
            (Some(whose), Some(first)) if whose != first.0 => {
                return Err(prefix(text, two_roles(first, &(whose, written))));
            }
            (Some(whose), None) => first = Some((whose, written)),
            _ => {}
        }
    }
    let whose = first.map_or_else(|| usual.clone().into(), |(whose, _)| whose);
    whose.apply_to(&mut arm);
    Ok(arm)
}

fn two_roles(first: &(Whose, &str), second: &(Whose, &str)) -> PlanError {
    let whose = |(whose, change): &(Whose, &str)| format!("`{change}` is for the {}", whose.name());
    let message = format!("{}, {}", whose(first), whose(second));
    PlanError::new(format!("{message}, and an arm changes one role")).with_help(
        "make them two arms, or write the role in front of each change: \
         antagonist:nice=19+antagonist:weight=20",
    )
}

fn prefix(text: &str, error: PlanError) -> PlanError {
    let message = format!("arm `{text}`: {error}");
    error.with_message(message)
}

/// The text itself; a scheduler without its path, repository and arguments, a profile without its path. The
/// slash of other values (`quota=20ms/40ms`) is none of a path.
fn short_name(text: &str) -> String {
    if let Some((scheduler, place)) = text.split_once("@git:") {
        let place = place.split(' ').next().unwrap_or(place);
        let at = place.rsplit_once('#').map(|(_, revision)| revision);
        return at.map_or(scheduler.to_owned(), |at| format!("{scheduler}@{at}"));
    }
    let head = text.split([' ', ':']).next().unwrap_or(text);
    let path = head.strip_prefix("profile=").unwrap_or(head);
    if head.starts_with("scx_") || (path.contains('/') && !path.contains('=')) {
        return path.rsplit('/').next().unwrap_or(path).to_owned();
    }
    text.trim().to_owned()
}

/// Reads a change into the arm. Gives the role or the daemon that it is for, if it is for one.
fn apply(arm: &mut Arm, written: &str, usual: &Role) -> Result<Option<Whose>, PlanError> {
    let (said, change) = Whose::split(written).map_err(PlanError::new)?;
    if change == UNCHANGED {
        return Ok(said);
    }
    let taker = table::parse(change, arm).ok_or_else(|| unknown(change))??;
    match (said, taker.roles()) {
        (Some(whose), roles) if !roles.contains(whose.role()) => {
            Err(without_that_role(whose.role(), change, roles))
        }
        (Some(whose), _) => Ok(Some(whose)),
        (None, roles) => Ok((!roles.is_empty()).then(|| usual.clone().into())),
    }
}

fn without_that_role(role: &Role, change: &str, roles: &[Role]) -> PlanError {
    let of_trials = roles.iter().filter(|role| **role != Role::Daemon);
    let names: Vec<&str> = of_trials.map(Role::name).collect();
    let (what, help) = match names.is_empty() {
        true => (
            "changes the machine, and not one role".to_owned(),
            format!("leave out the role: {change}"),
        ),
        false => (
            format!("is no change for the {}", role.name()),
            format!("{}:{change}", names.join(&format!(":{change}, or "))),
        ),
    };
    PlanError::new(format!("`{change}` {what}")).with_help(help)
}

fn unknown(change: &str) -> PlanError {
    let near = model::find_nearest(change, words()).map(str::to_owned);
    let near = near.or_else(|| with_near_role(change));
    let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
    let scheduler = match is_word(change) {
        true => format!("if it is a sched_ext scheduler, write `scx_{change}`; "),
        false => String::new(),
    };
    let help = format!("{near}{scheduler}`schedlab list arms` has all forms");
    PlanError::new(format!("`{change}` is no policy, tunable or scheduler")).with_help(help)
}

/// The change with the role that was misspelt in front of it.
fn with_near_role(written: &str) -> Option<String> {
    let (word, change) = written.split_once(':')?;
    let near = model::find_nearest(word, Role::ALL.iter().map(Role::name))?;
    (near != word).then(|| format!("{near}:{change}"))
}

/// A name as schedulers have them, with or without a version.
fn is_word(text: &str) -> bool {
    let (name, _) = text.split_once('@').unwrap_or((text, ""));
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// The words of the forms that stand for themselves: `batch` of `other, batch, idle`.
fn words() -> Vec<&'static str> {
    let forms = forms().into_iter().flat_map(|(form, _)| form.split(", "));
    let words = forms.filter_map(|form| form.split(['[', ':', '=', ' ']).next());
    let stands = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
    words.filter(stands).collect()
}

/// Whom the policy of an arm is for unless the arm says: the server, where every
/// workload has one, for its requests are what is judged; otherwise the load.
pub(crate) fn usual_role(workloads: &[Workload]) -> Role {
    match workloads.iter().all(Workload::is_served) && !workloads.is_empty() {
        true => Role::Server,
        false => Role::Load,
    }
}

/// Keys of an arm beside those of its ingredients.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileArm {
    name: Spanned<String>,
    #[serde(default)]
    baseline: bool,
    to: Option<Whose>,
    collect: Option<Vec<String>>,
}

/// The arms and the index of the baseline: the first unless one says so.
pub(crate) fn read_arms(
    values: Vec<Value>,
    target: Can,
    workloads: &[Workload],
) -> Result<(Vec<Arm>, usize), PlanError> {
    let usual_role = usual_role(workloads);
    let mut arms: Vec<Arm> = Vec::new();
    let mut baseline = None;
    let mut points: Vec<(Point, Value)> = Vec::new();
    for value in values {
        points.extend(grid::expand(value)?);
    }
    for (point, value) in points {
        let (span, places) = (value.span(), Places::from_value(&value));
        let (file, mut arm) = read_arm(value).map_err(|e| e.at_key(&places))?;
        let name_span = file.name.span();
        if arms.iter().any(|a| a.name == arm.name) {
            return Err(PlanError::new(format!("there are two arms `{}`", arm.name))
                .with_help("give each arm a name of its own; after -a: NAME:=CHANGES")
                .with_span(name_span));
        }
        if file.baseline && baseline.replace(arms.len()).is_some() {
            return Err(
                PlanError::new("two arms say that they are the baseline").with_span(name_span)
            );
        }
        let whose = file.to.unwrap_or_else(|| usual_role.clone().into());
        whose.apply_to(&mut arm);
        arm.grid = point;
        arm.collect = file.collect;
        check_name(&arm.name)
            .and_then(|()| check_arm(&arm, target, workloads))
            .and_then(|()| check_collectors(arm.collect.as_deref()))
            .map_err(|e| e.with_span(span).at_key(&places))?;
        arms.push(arm);
    }
    Ok((arms, baseline.unwrap_or(0)))
}

/// The keys of an arm, and the arm with its ingredients only.
fn read_arm(mut value: Value) -> Result<(FileArm, Arm), PlanError> {
    let mut keys = keys_of(&value)?;
    let mut arm = Arm::default();
    for ingredient in INGREDIENTS.iter() {
        ingredient.read(&mut keys, &mut arm);
    }
    split(&mut value, keys.asked_keys());
    let taken: Vec<_> = keys
        .asked_keys()
        .iter()
        .copied()
        .chain(grid::KEYS)
        .collect();
    let file: FileArm = own_keys(value, &taken).map_err(of_policy)?;
    no_fault(keys)?;
    arm.name.clone_from(file.name.get_ref());
    Ok((file, arm))
}

/// The error of a key that stands beside the policy and belongs into it.
fn of_policy(error: PlanError) -> PlanError {
    let mut names = POLICY_KEYS.iter().map(|key| key.name);
    match names.find(|name| error.is_unknown(name)) {
        Some(name) => error.with_help(format!("policy = {{ {name} = … }}")),
        None => error,
    }
}

/// Arms are put in force on the target, and not where a load runs apart from it.
fn check_reach(arm: &Arm, target: Can, workload: &Workload) -> Result<(), Invalid> {
    if arm.to != Role::Load || !target.apart || workload.load_on != Place::Controller {
        return Ok(());
    }
    let reaches = |ingredient: &&dyn Ingredient| ingredient.roles().contains(&Role::Load);
    let mut of_role = INGREDIENTS.iter().filter(reaches);
    let key = of_role.find_map(|ingredient| arm.ingredients.get_key_value(ingredient.name()));
    let key = key.map(|(key, _)| key.as_str());
    let Some(key) = arm.policy.as_ref().map(|_| "policy").or(key) else {
        return Ok(());
    };
    let what = format!(
        "its {key} is for the load, and that of the workload `{}` runs on the controller",
        workload.name
    );
    Err(Invalid::new(key, what).with_remedy("to = \"server\", or leave out load-on"))
}

/// Checks of an arm against the target and the workloads, which the arm alone does not allow.
pub(crate) fn check_arm(arm: &Arm, target: Can, workloads: &[Workload]) -> Result<(), PlanError> {
    let around = Around {
        boots: target.kernels,
        reboots: target.reboots,
        workloads,
    };
    let of_workloads = || {
        workloads.iter().try_for_each(|workload| {
            check_quota(arm, workload)?;
            check_reach(arm, target, workload)
        })
    };
    table::check(arm, &around)
        .and_then(|()| of_workloads())
        .map_err(|invalid| {
            let error = PlanError::from(invalid);
            let message = format!("arm `{}`: {error}", arm.name);
            error.with_message(message)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::arm::check_policy;
    use model::Class;

    #[test]
    fn a_scheduler_without_the_beginning_of_its_name_is_answered_with_the_whole() {
        let help = |text: &str| {
            let error = parse_arm(text).unwrap_err();
            miette::Diagnostic::help(&error).map(|help| help.to_string())
        };
        for (text, whole) in [
            ("bpfland", "scx_bpfland"),
            ("lavd", "scx_lavd"),
            ("lavd@1.1.3", "scx_lavd@1.1.3"),
        ] {
            let help = help(text).unwrap();
            assert!(help.contains(&format!("write `{whole}`")), "{help}");
        }
        assert!(!help("a b").unwrap().contains("scx_"));
        assert!(help("bacth").unwrap().contains("did you mean `batch`?"));
    }

    #[test]
    fn an_unnamed_arm_is_called_what_it_is() {
        assert_eq!(
            parse_arm("batch").map(|a| a.name).ok(),
            Some("batch".into())
        );
        let arm = parse_arm("scx_rusty --slice-us-overutil 5000").expect("parses");
        assert_eq!(arm.name, "scx_rusty");
        let scheduler = arm.scheduler.expect("has one");
        assert_eq!(scheduler.args, ["--slice-us-overutil", "5000"]);
    }

    #[test]
    fn several_changes_join_with_plus_and_may_have_a_name() {
        let arm = parse_arm("calm:=batch+nice=5+base_slice=1ms").expect("parses");
        assert_eq!(arm.name, "calm");
        let policy = arm.policy.expect("has one");
        assert_eq!((policy.class, policy.nice), (Class::Batch, Some(5)));
        assert_eq!(arm.tunables["base_slice"], "1ms");
    }

    #[test]
    fn deadline_takes_runtime_and_period() {
        let policy = parse_arm("deadline:2ms/5ms")
            .expect("parses")
            .policy
            .expect("has one");
        assert_eq!(policy.runtime_ns, Some(2_000_000));
        assert_eq!(policy.deadline_ns, Some(5_000_000));
        assert_eq!(policy.period_ns, Some(5_000_000));
        assert!(check_policy(&policy).is_ok());
    }

    #[test]
    fn a_weight_joins_with_other_changes() {
        let arm = parse_arm("weight=1000+nice=-5").expect("parses");
        assert_eq!(arm.weight, Some(1000));
        assert_eq!(arm.policy.and_then(|p| p.nice), Some(-5));
        assert!(parse_arm("weight=heavy").is_err());
    }

    #[test]
    fn what_is_set_twice_is_refused_and_both_are_named() {
        for (text, first, second) in [
            ("batch+fifo", "`batch`", "`fifo`"),
            ("other+batch", "`other`", "`batch`"),
            ("nice=5+nice=10", "`5`", "`10`"),
            ("slice=1ms+slice=2ms", "`1ms`", "`2ms`"),
            ("scx_rusty+scx_lavd", "`scx_rusty`", "`scx_lavd`"),
            (
                "autogroup=on+autogroup=off",
                "`autogroup=on`",
                "`autogroup=off`",
            ),
            ("weight=10+weight=20", "`10`", "`20`"),
            ("kernel=a+kernel=b", "`a`", "`b`"),
            ("handicap=1%+handicap=2%", "`1%`", "`2%`"),
        ] {
            let error = parse_arm(text).expect_err(text).to_string();
            assert!(error.contains(first) && error.contains(second), "{error}");
        }
        for fine in [
            "batch+nice=5",
            "nice=5+batch",
            "slice=1ms+nice=5",
            "fifo+weight=10",
        ] {
            assert!(parse_arm(fine).is_ok(), "{fine}");
        }
    }

    #[test]
    fn a_change_of_one_sort_leaves_the_others_alone() {
        for (text, summary) in [
            (
                "scx_rusty --greedy-threshold 2",
                "scx_rusty --greedy-threshold 2",
            ),
            ("base_slice=1ms", "base_slice=1ms"),
            ("kernel=debian:sid", "kernel=debian:sid"),
            ("handicap=5%", "handicap=5%"),
            ("weight=200", "weight=200"),
            ("nice=5", "nice=5"),
        ] {
            assert_eq!(parse_arm(text).expect("parses").summary(), summary);
        }
    }

    #[test]
    fn tunables_may_have_the_kernels_own_names() {
        let arm = parse_arm("base_slice_ns=1ms+kernel.sched_autogroup_enabled=0").expect("parses");
        assert_eq!(arm.tunables["base_slice"], "1ms");
        assert_eq!(arm.tunables["autogroup"], "0");
    }

    #[test]
    fn a_misspelt_policy_is_answered_with_the_nearest() {
        let error = parse_arm("bathc").expect_err("is wrong");
        let help = miette::Diagnostic::help(&error)
            .expect("has help")
            .to_string();
        assert!(help.contains("`batch`"), "{help}");
    }

    #[test]
    fn what_the_kernel_would_refuse_is_refused_here() {
        for wrong in [
            "nice=20",
            "fifo:0",
            "rr:100",
            "slice=1us",
            "idle+nice=3",
            "deadline:5ms/2ms",
        ] {
            let arm = parse_arm(wrong).expect("parses");
            let policy = arm.policy.expect("has one");
            assert!(check_policy(&policy).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_role_stands_in_front_of_a_change() {
        let of = |text: &str| parse_arm_for(text, &Role::Server).expect("parses");
        let calm = of("calm:=antagonist:nice=19+antagonist:weight=20");
        assert_eq!((calm.to, calm.weight), (Role::Antagonist, Some(20)));
        assert_eq!(calm.policy.and_then(|p| p.nice), Some(19));
        assert_eq!(of("load:fifo:10").to, Role::Load);
        assert_eq!(of("antagonist:default").to, Role::Antagonist);
        assert_eq!(
            of("antagonist:quota=20ms/40ms").name,
            "antagonist:quota=20ms/40ms"
        );
        assert_eq!(of("nice=5+base_slice=1ms").to, Role::Server);
        assert_eq!(
            of("antagonist:env.A=x:y+base_slice=1ms").to,
            Role::Antagonist
        );
    }

    #[test]
    fn a_role_that_a_change_cannot_have_is_refused_with_what_can_be() {
        for (text, said) in [
            ("antagonist:nice=19+weight=20", "an arm changes one role"),
            ("batch+server:weight=20", "`batch` is for the load"),
            ("load:weight=20", "is no change for the load"),
            ("server:base_slice=1ms", "changes the machine"),
            ("antagonist:scx_lavd", "changes the machine"),
            ("antagonists:nice=19", "is no policy"),
            ("antagonist:", "is no policy"),
            ("antagonist:server:nice=5", "is no policy"),
        ] {
            let error = parse_arm(text).expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
        for (text, said) in [
            (
                "load:weight=20",
                "server:weight=20, or antagonist:weight=20",
            ),
            ("antagonists:nice=19", "did you mean `antagonist:nice=19`?"),
        ] {
            let error = parse_arm(text).expect_err("is wrong");
            let help = miette::Diagnostic::help(&error).expect("has help");
            assert!(help.to_string().starts_with(said), "{help}");
        }
    }
}
