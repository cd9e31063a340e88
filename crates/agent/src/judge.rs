//! Does the evidence of a trial prove its arm? A pure function, so that whoever has
//! the results can ask again.

use crate::arm::table::asked_facts;
use model::{Arm, Evidence, Phase};

/// `Err` says why the trial is void.
pub fn judge(arm: &Arm, evidence: &Evidence) -> Result<(), String> {
    judge_phases(arm, evidence, &[Phase::Before, Phase::After])
}

/// The same of a trial whose arm has ended within the window, and whose evidence is from before that.
pub fn judge_until_end(arm: &Arm, evidence: &Evidence) -> Result<(), String> {
    judge_phases(arm, evidence, &[Phase::Before])
}

fn judge_phases(arm: &Arm, evidence: &Evidence, phases: &[Phase]) -> Result<(), String> {
    is_complete(evidence, phases)?;
    evidence.find_disagreement().map_or(Ok(()), Err)?;
    asked_facts(arm)
        .iter()
        .try_for_each(|asked| asked.is_in(evidence))
}

fn is_complete(evidence: &Evidence, phases: &[Phase]) -> Result<(), String> {
    for phase in phases {
        if !evidence.points.iter().any(|point| point.phase == *phase) {
            let name = phase.name();
            return Err(format!("there is no evidence from {name} the window"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::readings::{self, NONE, SCHEDULER};
    use model::{Class, EvidencePoint, Fact, Policy, Role, Scheduler};

    const PHASES: [Phase; 3] = [Phase::Before, Phase::During, Phase::After];

    /// Facts of an arm are as the ingredients give them, without what they want.
    fn evidence(facts: impl Fn(Phase) -> Vec<Fact>) -> Evidence {
        let point = |phase| EvidencePoint {
            phase,
            at_ns: 1_000_000_000,
            threads: 0,
            facts: facts(phase),
        };
        let mut evidence = Evidence {
            points: PHASES.map(point).into(),
            ..Evidence::default()
        };
        evidence.merge_facts();
        evidence
    }

    fn no_scheduler() -> Fact {
        Fact::new(SCHEDULER, NONE)
    }

    fn with_scheduler(program: &str) -> Arm {
        Arm {
            scheduler: Some(Scheduler {
                program: program.to_owned(),
                args: Vec::new(),
                attach_limit_ns: None,
                built_from: None,
            }),
            ..Arm::unchanged("scheduled")
        }
    }

    #[track_caller]
    fn void(arm: &Arm, evidence: &Evidence, expected: &str) {
        let why = judge(arm, evidence).unwrap_err();
        assert!(why.contains(expected), "{why:?} does not say {expected:?}");
    }

    #[test]
    fn an_unchanged_arm_on_an_unchanged_machine_counts() {
        let evidence = evidence(|_| vec![no_scheduler()]);
        assert_eq!(judge(&Arm::unchanged("default"), &evidence), Ok(()));
    }

    #[test]
    fn evidence_must_be_there_from_both_sides_of_the_window() {
        for missing in [Phase::Before, Phase::After] {
            let mut evidence = evidence(|_| vec![no_scheduler()]);
            evidence.points.retain(|p| p.phase != missing);
            void(&Arm::unchanged("default"), &evidence, "no evidence");
        }
    }

    #[test]
    fn a_fact_that_disagrees_at_one_point_voids_the_trial() {
        for phase in PHASES {
            let evidence = evidence(|at| {
                let found = if at == phase { "7.2.0" } else { "6.18.0" };
                let kernel = Fact::new("kernel release", found).with_wanted("6.18.0");
                vec![no_scheduler(), kernel]
            });
            let why = "the kernel release was 7.2.0, not 6.18.0, ";
            let place = format!("{why}{} the window", phase.name());
            void(&Arm::unchanged("default"), &evidence, &place);
        }
    }

    #[test]
    fn a_foreign_scheduler_voids_an_arm_that_has_none() {
        let evidence = evidence(|_| vec![Fact::new(SCHEDULER, "lavd_1.1.4")]);
        void(
            &Arm::unchanged("default"),
            &evidence,
            "the sched_ext scheduler was lavd_1.1.4, not none",
        );
    }

    #[test]
    fn a_loader_that_switches_schedulers_voids_the_trial_with_what_was_found() {
        const LOADED: &str = "rusty_1.1.4_x86_64_unknown_linux_gnu";
        let switched = |normal: &'static str, at: Phase, other: &'static str| {
            evidence(move |phase| {
                let found = if phase == at { other } else { normal };
                vec![Fact::new(SCHEDULER, found)]
            })
        };
        let default = Arm::unchanged("default");
        for at in PHASES {
            let expected = format!("was {LOADED}, not none");
            void(&default, &switched(NONE, at, LOADED), &expected);
        }
        // A service puts its own in the place of the arm's, another build of it, or nothing after a stall.
        let rusty = with_scheduler("scx_rusty");
        let other = switched(LOADED, Phase::During, "bpfland_1.0.20");
        void(&rusty, &other, "was bpfland_1.0.20, not rusty");
        void(
            &rusty,
            &switched(LOADED, Phase::After, NONE),
            "was none, not rusty",
        );
        let flash = with_scheduler("scx_flash@1.0.20");
        let newer = switched("flash_1.0.20", Phase::During, "flash_1.1.4");
        assert!(judge(&flash, &newer).is_err(), "the version is named");
    }

    #[test]
    fn a_scheduler_has_the_name_of_its_program() {
        let with = |found| evidence(move |_| vec![Fact::new(SCHEDULER, found)]);
        let rusty = with_scheduler("/opt/bin/scx_rusty");
        assert_eq!(judge(&rusty, &with("rusty_1.1.4_x86_64")), Ok(()));
        void(&rusty, &with("lavd_1.1.4"), "was lavd_1.1.4, not rusty");
        void(&rusty, &with(NONE), "was none, not rusty");
        let own = with_scheduler("./mine");
        assert_eq!(judge(&own, &with("whatever")), Ok(()));
        void(&own, &with(NONE), "was none, not one");
    }

    #[test]
    fn what_an_arm_asks_must_have_been_read() {
        let mut arm = Arm::unchanged("batch");
        arm.policy = Some(Policy::new(Class::Batch));
        let none = evidence(|_| vec![no_scheduler()]);
        void(&arm, &none, "the policy of the load was not read");
        let with = |role: &'static Role, found| {
            evidence(move |_| vec![no_scheduler(), Fact::new("policy", found).about_role(role)])
        };
        assert_eq!(judge(&arm, &with(&Role::Load, "batch")), Ok(()));
        void(&arm, &with(&Role::Server, "batch"), "load was not read");
        void(&arm, &with(&Role::Load, "batch and other"), "not batch");
    }

    #[test]
    fn tunables_and_weights_are_asked_as_the_kernel_has_them() {
        let mut arm = Arm::unchanged("tuned");
        arm.weight = Some(1000);
        let slice = ("base_slice".to_owned(), "0.3ms".to_owned());
        arm.tunables.extend([slice]);
        let with = |slice: &'static str, weight: &'static str| {
            evidence(move |_| {
                let slice = Fact::new(readings::tunable_fact_name("base_slice"), slice);
                let weight = Fact::new(readings::WEIGHT, weight).about_role(&Role::Server);
                vec![no_scheduler(), slice, weight]
            })
        };
        assert_eq!(judge(&arm, &with("300000", "1000")), Ok(()));
        let why = "the tunable base_slice was 2800000, not 300000";
        void(&arm, &with("2800000", "1000"), why);
        let why = "the cgroup weight of the server was 100, not 1000";
        void(&arm, &with("300000", "100"), why);
    }
}
