//! Does the evidence of a trial agree with its arm? A pure function, so that every
//! way to be void has a test.

use crate::arm::{policy, tunables};
use model::{Arm, Evidence, EvidencePoint, Phase, RolePolicy, SchedExt, format_duration_ns};
use std::path::Path;

/// `Err` says why the trial is void. `before` is the state of sched_ext before the
/// arm was applied.
pub fn judge(arm: &Arm, before: Option<&SchedExt>, evidence: &Evidence) -> Result<(), String> {
    complete(evidence)?;
    evidence.disagrees().map_or(Ok(()), Err)?;
    one_kernel(evidence)?;
    for point in &evidence.points {
        tunables_agree(arm, point)?;
        policies_agree(arm, point)?;
    }
    match &arm.scheduler {
        Some(scheduler) => attached_throughout(arm, &scheduler.program, before, evidence),
        None => evidence.points.iter().try_for_each(nothing_attached),
    }
}

fn complete(evidence: &Evidence) -> Result<(), String> {
    for phase in [Phase::Before, Phase::After] {
        if !evidence.points.iter().any(|point| point.phase == phase) {
            return Err(format!(
                "there is no evidence from {} the window",
                name(phase)
            ));
        }
    }
    Ok(())
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Before => "before",
        Phase::During => "within",
        Phase::After => "after",
    }
}

/// `within the window, at 2.1s`.
fn place(point: &EvidencePoint) -> String {
    format!(
        "{} the window, {} after the start",
        name(point.phase),
        format_duration_ns(point.at_ns)
    )
}

fn one_kernel(evidence: &Evidence) -> Result<(), String> {
    let mut releases = evidence.points.iter().map(|point| &point.kernel_release);
    let first = releases.next();
    match releases.find(|release| Some(*release) != first) {
        Some(other) => Err(format!("the kernel changed to {other}")),
        None => Ok(()),
    }
}

fn tunables_agree(arm: &Arm, point: &EvidencePoint) -> Result<(), String> {
    for (name, text) in &arm.tunables {
        let wanted = tunables::normalise(name, text)?;
        let found = point.tunables.get(name).map(String::as_str);
        if found != Some(wanted.as_str()) {
            let found = found.unwrap_or("not read");
            return Err(format!(
                "tunable {name} was {found}, not {wanted}, {}",
                place(point)
            ));
        }
    }
    Ok(())
}

fn policies_agree(arm: &Arm, point: &EvidencePoint) -> Result<(), String> {
    let Some(wanted) = &arm.policy else {
        return Ok(());
    };
    let of_role = || point.policies.iter().filter(|entry| entry.role == arm.to);
    let threads = |entries: &[&RolePolicy]| entries.iter().map(|e| e.threads).sum::<u32>();
    let all: Vec<&RolePolicy> = of_role().collect();
    let others: Vec<&RolePolicy> = of_role()
        .filter(|entry| !policy::agrees(wanted, &entry.policy))
        .collect();
    if all.is_empty() && point.phase == Phase::Before {
        return Err(format!(
            "no thread was seen under {wanted} {}",
            place(point)
        ));
    }
    match others.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "{} of {} threads ran under another policy than {wanted} ({}), {}",
            threads(&others),
            threads(&all),
            first.policy,
            place(point)
        )),
    }
}

/// Was the server all the time in a cgroup of the weight that was wanted?
pub fn weight_agrees(wanted: Option<u32>, evidence: &Evidence) -> Result<(), String> {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    let differs = |point: &&EvidencePoint| point.server_weight != Some(wanted);
    match evidence.points.iter().find(differs) {
        None => Ok(()),
        Some(point) => {
            let found = point.server_weight.map(|weight| weight.to_string());
            Err(format!(
                "the weight of the server's cgroup was {}, not {wanted}, {}",
                found.as_deref().unwrap_or("not read"),
                place(point)
            ))
        }
    }
}

fn nothing_attached(point: &EvidencePoint) -> Result<(), String> {
    match &point.sched_ext {
        Some(state) if state.state != "disabled" || !state.ops.is_empty() => Err(format!(
            "the sched_ext scheduler {} was {}, but the arm has none, {}",
            or_unnamed(&state.ops),
            state.state,
            place(point)
        )),
        _ => Ok(()),
    }
}

fn or_unnamed(ops: &str) -> &str {
    if ops.is_empty() { "(unnamed)" } else { ops }
}

fn attached_throughout(
    arm: &Arm,
    program: &str,
    before: Option<&SchedExt>,
    evidence: &Evidence,
) -> Result<(), String> {
    let mut first: Option<&SchedExt> = None;
    for point in &evidence.points {
        let state = point
            .sched_ext
            .as_ref()
            .ok_or("the kernel has no sched_ext")?;
        attached(program, state, point)?;
        reaches_the_workload(arm, state)?;
        match first {
            None => first = Some(state),
            Some(first) => unchanged(first, state, point)?,
        }
    }
    let (Some(before), Some(first)) = (before, first) else {
        return Ok(());
    };
    newly_attached(before, first)?;
    let last = evidence
        .points
        .iter()
        .rev()
        .find_map(|p| p.sched_ext.as_ref());
    none_rejected(before, last.unwrap_or(first))
}

fn attached(program: &str, state: &SchedExt, point: &EvidencePoint) -> Result<(), String> {
    if state.state != "enabled" || state.ops.is_empty() {
        return Err(format!(
            "no sched_ext scheduler was in force {}",
            place(point)
        ));
    }
    match expected_name(program) {
        Some(name) if !state.ops.contains(name) => Err(format!(
            "the scheduler in force was {}, and {program} is expected to be called {name}, {}",
            state.ops,
            place(point)
        )),
        _ => Ok(()),
    }
}

/// The schedulers of the scx project are called by their program without `scx_`.
fn expected_name(program: &str) -> Option<&str> {
    Path::new(program)
        .file_name()?
        .to_str()?
        .strip_prefix("scx_")
}

/// A partial scheduler runs only what is in the class SCHED_EXT.
fn reaches_the_workload(arm: &Arm, state: &SchedExt) -> Result<(), String> {
    let ext = arm
        .policy
        .as_ref()
        .is_some_and(|p| p.class == model::Class::Ext);
    if state.switch_all == Some(false) && !ext {
        return Err(format!(
            "{} runs only tasks in SCHED_EXT, and the workload is not: add policy = \"ext\" to the arm",
            state.ops
        ));
    }
    Ok(())
}

fn unchanged(first: &SchedExt, state: &SchedExt, point: &EvidencePoint) -> Result<(), String> {
    if state.ops != first.ops {
        return Err(format!(
            "the scheduler changed from {} to {}, {}",
            first.ops,
            state.ops,
            place(point)
        ));
    }
    if state.enable_seq != first.enable_seq {
        return Err(format!(
            "a scheduler was attached anew within the trial (enable_seq {} to {}), {}",
            first.enable_seq,
            state.enable_seq,
            place(point)
        ));
    }
    Ok(())
}

fn newly_attached(before: &SchedExt, first: &SchedExt) -> Result<(), String> {
    if first.enable_seq == before.enable_seq + 1 {
        return Ok(());
    }
    Err(format!(
        "the scheduler in force was not the one that this trial attached once (enable_seq {} to {})",
        before.enable_seq, first.enable_seq
    ))
}

fn none_rejected(before: &SchedExt, last: &SchedExt) -> Result<(), String> {
    match last.nr_rejected.saturating_sub(before.nr_rejected) {
        0 => Ok(()),
        tasks => Err(format!("{} rejected {tasks} tasks (nr_rejected)", last.ops)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Class, Policy, Role, Scheduler};

    const PHASES: [Phase; 3] = [Phase::Before, Phase::During, Phase::After];

    fn evidence(change: impl Fn(&mut EvidencePoint)) -> Evidence {
        let points = PHASES.into_iter().enumerate().map(|(second, phase)| {
            let mut point = EvidencePoint {
                phase,
                at_ns: second as u64 * 1_000_000_000,
                kernel_release: "6.18.0".to_owned(),
                sched_ext: Some(disabled()),
                tunables: Default::default(),
                policies: Vec::new(),
                server_weight: None,
            };
            change(&mut point);
            point
        });
        Evidence {
            points: points.collect(),
            ..Evidence::default()
        }
    }

    fn disabled() -> SchedExt {
        SchedExt {
            state: "disabled".to_owned(),
            enable_seq: 4,
            ..SchedExt::default()
        }
    }

    fn enabled(ops: &str) -> SchedExt {
        SchedExt {
            state: "enabled".to_owned(),
            ops: ops.to_owned(),
            enable_seq: 5,
            nr_rejected: 0,
            switch_all: Some(true),
        }
    }

    fn default_arm() -> Arm {
        Arm::unchanged("default")
    }

    fn rusty() -> Arm {
        Arm {
            scheduler: Some(Scheduler {
                program: "/opt/bin/scx_rusty".to_owned(),
                args: Vec::new(),
                attach_limit_ns: None,
            }),
            ..Arm::unchanged("rusty")
        }
    }

    fn batch() -> Arm {
        Arm {
            policy: Some(Policy::new(Class::Batch)),
            ..Arm::unchanged("batch")
        }
    }

    fn threads(class: Class, threads: u32) -> RolePolicy {
        RolePolicy {
            role: Role::Load,
            policy: Policy::new(class),
            threads,
        }
    }

    #[track_caller]
    fn void(arm: &Arm, evidence: &Evidence, expected: &str) {
        let why = judge(arm, Some(&disabled()), evidence).unwrap_err();
        assert!(why.contains(expected), "{why:?} does not say {expected:?}");
    }

    #[test]
    fn an_unchanged_arm_on_an_unchanged_machine_counts() {
        assert_eq!(
            judge(&default_arm(), None, &evidence(|p| p.sched_ext = None)),
            Ok(())
        );
        assert_eq!(
            judge(&default_arm(), Some(&disabled()), &evidence(|_| ())),
            Ok(())
        );
    }

    #[test]
    fn evidence_must_be_there_from_both_sides_of_the_window() {
        for missing in [Phase::Before, Phase::After] {
            let mut evidence = evidence(|_| ());
            evidence.points.retain(|p| p.phase != missing);
            void(&default_arm(), &evidence, "no evidence");
        }
    }

    #[test]
    fn a_foreign_scheduler_voids_an_arm_that_has_none() {
        let evidence = evidence(|p| {
            if p.phase == Phase::During {
                p.sched_ext = Some(enabled("lavd_1.1.4"));
            }
        });
        void(
            &default_arm(),
            &evidence,
            "scheduler lavd_1.1.4 was enabled",
        );
    }

    #[test]
    fn a_scheduler_still_being_disabled_voids_the_next_arm() {
        let evidence = evidence(|p| {
            p.sched_ext = Some(SchedExt {
                state: "disabling".to_owned(),
                ..disabled()
            });
        });
        void(&default_arm(), &evidence, "(unnamed) was disabling");
    }

    #[test]
    fn a_scheduler_in_force_throughout_counts() {
        let evidence = evidence(|p| p.sched_ext = Some(enabled("rusty_1.1.4_x86_64")));
        assert_eq!(judge(&rusty(), Some(&disabled()), &evidence), Ok(()));
    }

    #[test]
    fn a_scheduler_that_was_ejected_voids_the_trial() {
        for phase in PHASES {
            let evidence = evidence(|p| {
                let ejected = p.phase == phase;
                p.sched_ext = Some(if ejected {
                    disabled()
                } else {
                    enabled("rusty")
                });
            });
            void(&rusty(), &evidence, "no sched_ext scheduler was in force");
        }
    }

    #[test]
    fn another_scheduler_than_the_named_voids_the_trial() {
        let evidence = evidence(|p| p.sched_ext = Some(enabled("lavd_1.1.4")));
        void(&rusty(), &evidence, "in force was lavd_1.1.4");
    }

    #[test]
    fn a_program_without_the_usual_prefix_may_have_any_name_that_stays() {
        let mut arm = rusty();
        arm.scheduler.as_mut().unwrap().program = "./mine".to_owned();
        let steady = evidence(|p| p.sched_ext = Some(enabled("whatever")));
        assert_eq!(judge(&arm, Some(&disabled()), &steady), Ok(()));
        let changing = evidence(|p| {
            let late = p.phase == Phase::After;
            p.sched_ext = Some(enabled(if late { "other" } else { "whatever" }));
        });
        void(&arm, &changing, "changed from whatever to other");
    }

    #[test]
    fn a_scheduler_attached_anew_voids_the_trial() {
        let evidence = evidence(|p| {
            let mut state = enabled("rusty");
            state.enable_seq += u64::from(p.phase == Phase::After);
            p.sched_ext = Some(state);
        });
        void(
            &rusty(),
            &evidence,
            "attached anew within the trial (enable_seq 5 to 6)",
        );
    }

    #[test]
    fn a_scheduler_that_was_in_force_before_does_not_count_as_attached() {
        let evidence = evidence(|p| p.sched_ext = Some(enabled("rusty")));
        let before = enabled("rusty");
        let why = judge(&rusty(), Some(&before), &evidence).unwrap_err();
        assert!(why.contains("enable_seq 5 to 5"), "{why}");
    }

    #[test]
    fn rejected_tasks_void_the_trial() {
        let evidence = evidence(|p| {
            let mut state = enabled("rusty");
            state.nr_rejected = if p.phase == Phase::After { 2 } else { 0 };
            p.sched_ext = Some(state);
        });
        void(&rusty(), &evidence, "rusty rejected 2 tasks");
    }

    #[test]
    fn a_partial_scheduler_counts_only_for_a_workload_in_its_class() {
        let mut evidence = evidence(|p| {
            let mut state = enabled("rusty");
            state.switch_all = Some(false);
            p.sched_ext = Some(state);
        });
        void(&rusty(), &evidence, "add policy = \"ext\"");
        let mut arm = rusty();
        arm.policy = Some(Policy::new(Class::Ext));
        for point in &mut evidence.points {
            point.policies = vec![threads(Class::Ext, 2)];
        }
        assert_eq!(judge(&arm, Some(&disabled()), &evidence), Ok(()));
    }

    #[test]
    fn a_scheduler_arm_on_a_kernel_without_the_class_is_void() {
        void(&rusty(), &evidence(|p| p.sched_ext = None), "no sched_ext");
    }

    #[test]
    fn threads_under_the_policy_of_the_arm_count() {
        let evidence = evidence(|p| p.policies = vec![threads(Class::Batch, 3)]);
        assert_eq!(judge(&batch(), None, &evidence), Ok(()));
    }

    #[test]
    fn one_thread_under_another_policy_voids_the_trial() {
        let evidence = evidence(|p| {
            p.policies = vec![threads(Class::Batch, 3)];
            if p.phase == Phase::During {
                p.policies.push(threads(Class::Other, 1));
            }
        });
        void(
            &batch(),
            &evidence,
            "1 of 4 threads ran under another policy than batch (other)",
        );
        void(&batch(), &evidence, "within the window, 1s after the start");
    }

    #[test]
    fn a_policy_that_was_seen_on_no_thread_voids_the_trial() {
        void(&batch(), &evidence(|_| ()), "no thread was seen");
    }

    #[test]
    fn threads_that_ended_with_the_window_do_no_harm() {
        let evidence = evidence(|p| {
            if p.phase == Phase::Before {
                p.policies = vec![threads(Class::Batch, 3)];
            }
        });
        assert_eq!(judge(&batch(), None, &evidence), Ok(()));
    }

    #[test]
    fn the_policies_of_an_arm_that_names_none_are_not_judged() {
        let evidence = evidence(|p| p.policies = vec![threads(Class::Fifo, 1)]);
        assert_eq!(judge(&default_arm(), None, &evidence), Ok(()));
    }

    #[test]
    fn a_tunable_must_hold_its_value_all_the_time() {
        let mut arm = default_arm();
        arm.tunables
            .insert("base_slice".to_owned(), "0.3ms".to_owned());
        let with = |late: &'static str| {
            evidence(move |p| {
                let value = if p.phase == Phase::After {
                    late
                } else {
                    "300000"
                };
                p.tunables.insert("base_slice".to_owned(), value.to_owned());
            })
        };
        assert_eq!(judge(&arm, None, &with("300000")), Ok(()));
        void(
            &arm,
            &with("2800000"),
            "base_slice was 2800000, not 300000, after the window",
        );
        void(&arm, &evidence(|_| ()), "base_slice was not read");
    }

    #[test]
    fn the_server_must_have_its_weight_all_the_time() {
        let with = |late: Option<u32>| {
            evidence(move |p| {
                let after = p.phase == Phase::After;
                p.server_weight = if after { late } else { Some(1000) };
            })
        };
        assert_eq!(weight_agrees(Some(1000), &with(Some(1000))), Ok(()));
        assert_eq!(weight_agrees(None, &with(None)), Ok(()));
        let why = weight_agrees(Some(1000), &with(Some(100))).unwrap_err();
        assert!(why.contains("was 100, not 1000, after the window"), "{why}");
        let why = weight_agrees(Some(1000), &with(None)).unwrap_err();
        assert!(why.contains("was not read, not 1000"), "{why}");
    }

    #[test]
    fn another_kernel_in_the_middle_voids_the_trial() {
        let evidence = evidence(|p| {
            if p.phase == Phase::After {
                p.kernel_release = "7.2.0".to_owned();
            }
        });
        void(&default_arm(), &evidence, "the kernel changed to 7.2.0");
    }
}
