//! Completion of an experiment where its words leave open what would spoil its figures. The
//! results hold the experiment as it was measured.

use model::{Arm, Class, Experiment, Place, Placement, Policy, Workload};
use std::collections::BTreeSet;

/// Completes the experiment; `cpus` are those of its target, where they are known.
pub fn complete(experiment: &mut Experiment, cpus: &[u32]) {
    schedulers(&mut experiment.arms);
    without_autogroup(experiment);
    // SCHED_DEADLINE admits no thread that may not run on all CPUs (sched(7)).
    let arms = experiment.arms.iter();
    let mut policies = arms.filter_map(|arm| arm.policy.as_ref());
    if policies.all(|policy| policy.class != Class::Deadline) {
        generators_apart(&mut experiment.workloads, cpus);
    }
}

/// scx_layered gets the shipped layers and scx_microquanta the measured tasks where the
/// arm names none.
fn schedulers(arms: &mut [Arm]) {
    let measured = load::measured_tasks();
    for scheduler in arms.iter_mut().filter_map(|arm| arm.scheduler.as_mut()) {
        scheduler.args = schedulers::default_args(&scheduler.program, &scheduler.args, &measured);
    }
}

/// Autogroup is off in every arm where a nice value is compared, unless the arm says otherwise:
/// servers, services and antagonists are sessions of their own, between which nice values do not
/// count while the kernel groups tasks by session (sched(7)).
fn without_autogroup(experiment: &mut Experiment) {
    let is_nice = |policy: &Option<Policy>| policy.as_ref().is_some_and(|p| p.nice.is_some());
    let of_arms = experiment.arms.iter().any(|arm| is_nice(&arm.policy));
    let compared = |p: &Placement| of_arms || p.nice.is_some() || is_nice(&p.policy);
    let mut workloads = experiment.workloads.iter();
    if !workloads.any(|workload| workload.placements().any(compared)) {
        return;
    }
    for arm in &mut experiment.arms {
        let tunables = &mut arm.tunables;
        tunables
            .entry("autogroup".to_owned())
            .or_insert_with(|| "off".to_owned());
    }
}

/// A generator beside antagonists has the last quarter of the CPUs, at least one, where the
/// experiment says nothing of any CPUs: otherwise it would measure its own delays. The same
/// holds for the variant without antagonists, which must differ in nothing else.
fn generators_apart(workloads: &mut [Workload], cpus: &[u32]) {
    let quarter = (cpus.len() / 4).max(1);
    let Some((others, own)) = cpus.split_at_checked(cpus.len().saturating_sub(quarter)) else {
        return;
    };
    if others.is_empty() {
        return;
    }
    let together = list_together(workloads);
    for workload in workloads {
        let of = workload
            .variant
            .as_ref()
            .map_or(&workload.name, |variant| &variant.of);
        if together.contains(of) {
            continue;
        }
        let crowded = match &workload.variant {
            Some(variant) => variant.placement.is_none(),
            None => !workload.antagonists.is_empty(),
        };
        let deadline = |p: &Placement| matches!(&p.policy, Some(q) if q.class == Class::Deadline);
        let is_free = workload
            .placements()
            .all(|p| p.cpus.is_none() && !deadline(p));
        if !crowded || !is_free || workload.load_on != Place::Target {
            continue;
        }
        let Some(client) = workload.client.as_mut().filter(|c| c.load_cpus.is_none()) else {
            continue;
        };
        client.load_cpus = Some(list(own));
        for placement in workload.placements_mut() {
            placement.cpus = Some(list(others));
        }
    }
}

/// Names of the loads that are measured together. They are no generators to be kept apart: beside each other they cannot be, so
/// alone they are not.
fn list_together(workloads: &[Workload]) -> BTreeSet<String> {
    let loads = workloads.iter().filter(|w| !w.co_runners.is_empty());
    let names = loads.flat_map(|workload| {
        let variant = workload.variant.as_ref();
        let of = variant.map_or(&workload.name, |variant| &variant.of);
        let beside = workload.co_runners.iter().map(|co_runner| &co_runner.name);
        std::iter::once(of).chain(beside)
    });
    names.cloned().collect()
}

/// `0-2,5`.
fn list(cpus: &[u32]) -> String {
    let ranges = cpus.chunk_by(|a, b| a + 1 == *b);
    let words: Vec<String> = ranges
        .map(|range| match range {
            [first, .., last] => format!("{first}-{last}"),
            [one] => one.to_string(),
            [] => String::new(),
        })
        .collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: &str = "[[arm]]\nname = \"a\"\nARM\n[[workload]]\nkind = \"http\"\n\
                          loads = [\"100/s\"]\nMORE[workload.server]\nkind = \"echo\"\n\
                          [[workload.antagonist]]\nkind = \"spinner\"\n";

    fn completed(arm: &str, more: &str, cpus: &[u32]) -> Experiment {
        let text = SERVED.replace("ARM", arm).replace("MORE", more);
        catalogue::install();
        let mut experiment = plan::parse_experiment("x.toml", &text).unwrap();
        complete(&mut experiment, cpus);
        experiment
    }

    fn cpus(experiment: &Experiment) -> Vec<Option<&str>> {
        let workload = &experiment.workloads[0];
        let client = workload
            .client
            .as_ref()
            .and_then(|c| c.load_cpus.as_deref());
        let placed = workload.placements().map(|p| p.cpus.as_deref());
        std::iter::once(client).chain(placed).collect()
    }

    #[test]
    fn a_generator_beside_antagonists_is_apart() {
        let none = [None, None, None];
        assert_eq!(cpus(&completed("", "", &[0])), none);
        assert_eq!(cpus(&completed("", "", &[])), none);
        let two = [Some("1"), Some("0"), Some("0")];
        assert_eq!(cpus(&completed("", "", &[0, 1])), two);
        let eight = [Some("7,9"), Some("0-3,5-6"), Some("0-3,5-6")];
        assert_eq!(cpus(&completed("", "", &[0, 1, 2, 3, 5, 6, 7, 9])), eight);
        let own = completed("", "load-cpus = \"0\"\n", &[0, 1]);
        assert_eq!(cpus(&own), [Some("0"), None, None]);
        let deadline = "policy = { class = \"deadline\", runtime = \"1ms\", period = \"5ms\" }\n";
        assert_eq!(cpus(&completed(deadline, "", &[0, 1])), none);
        let alone_too = completed("", "antagonists = \"each\"\n", &[0, 1]);
        assert_eq!(alone_too.workloads.len(), 2);
        for workload in alone_too.workloads {
            let client = workload.client.unwrap();
            assert_eq!(client.load_cpus.as_deref(), Some("1"));
        }
    }

    #[test]
    fn nice_values_are_compared_without_autogroup() {
        let autogroup = |experiment: Experiment| {
            let arm = experiment.arms.into_iter().next();
            arm.and_then(|arm| arm.tunables.get("autogroup").cloned())
        };
        assert_eq!(autogroup(completed("", "", &[])), None);
        let nice = "policy = { nice = -10 }\n";
        assert_eq!(autogroup(completed(nice, "", &[])).as_deref(), Some("off"));
        let own = format!("{nice}tunables = {{ autogroup = \"on\" }}\n");
        assert_eq!(autogroup(completed(&own, "", &[])).as_deref(), Some("on"));
        let alone =
            "[[arm]]\nname = \"a\"\npolicy = { nice = 5 }\n[[workload]]\nkind = \"wakeup\"\n";
        catalogue::install();
        let mut alone = plan::parse_experiment("x.toml", alone).unwrap();
        complete(&mut alone, &[]);
        assert_eq!(autogroup(alone), None);
    }
}
