//! Arms that name the kernel's own scheduler: `eevdf`, `cfs`, `bore`. They change nothing, and a
//! trial counts only where that scheduler is the one that the kernel has.

use super::ingredient::{At, Change, Form, Ingredient, problem};
use super::requirement::{Asked, Value as Wanted};
use collect::fair_scheduler::{self, FairScheduler};
use load::Keys;
use model::readings::FAIR_SCHEDULER;
use model::{Arm, Fact, Invalid, KeyDef, Problem, Workload};
use std::path::Path;

const KEY: &str = "built-in";

/// The kernel's own scheduler by its name.
pub struct BuiltIn;

impl Ingredient for BuiltIn {
    fn name(&self) -> &'static str {
        KEY
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "built-in",
                "`\"eevdf\"`, `\"cfs\"` or `\"bore\"`",
                "",
                "The kernel's own scheduler, which the arm leaves alone; a kernel that has another is \
                     refused.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        let Some(name) = keys.get::<String>(KEY) else {
            return;
        };
        match FairScheduler::from_name(&name) {
            Some(_) => drop(arm.ingredients.insert(KEY.to_owned(), name.into())),
            None => keys.refuse(
                Invalid::new(
                    KEY,
                    format!("the kernel has no scheduler `{name}` of its own"),
                )
                .with_remedy("eevdf, cfs or bore"),
            ),
        }
    }

    fn texts(&self) -> &'static [&'static str] {
        &[KEY]
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "eevdf, cfs, bore",
            "nothing changed, where that is the kernel's own scheduler; refused where it is not",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        FairScheduler::from_name(change)?;
        arm.ingredients.insert(KEY.to_owned(), change.into());
        Some(Ok(()))
    }

    /// It changes nothing, so there is nothing that a running process would miss.
    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    fn require(&self, root: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
        let (Some(wanted), Some(found)) = (of_arm(arm), fair_scheduler::read(root)) else {
            return Vec::new();
        };
        let mut problems = Vec::new();
        if wanted != found.scheduler {
            let what = format!(
                "this kernel's own scheduler is {}, not {} ({})",
                found.scheduler.display_name(),
                wanted.display_name(),
                found.because
            );
            let remedy = format!(
                "write `{}`, or `default` for whatever the kernel has; {}",
                found.scheduler.name(),
                wanted.found_in()
            );
            problems.push(problem(arm, what, &remedy));
        }
        problems
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let wanted = of_arm(arm).map(|scheduler| Wanted::Is(scheduler.display_name().to_owned()));
        let asked = wanted.map(|wanted| Asked::of_machine(FAIR_SCHEDULER, wanted));
        asked.into_iter().collect()
    }

    fn make_change<'a>(&self, _: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        Some(Box::new(Unchanged))
    }
}

fn of_arm(arm: &Arm) -> Option<FairScheduler> {
    FairScheduler::from_name(arm.ingredients.get(KEY)?.as_str()?)
}

struct Unchanged;

impl Change for Unchanged {
    fn facts(&self, at: &At) -> Vec<Fact> {
        let found = fair_scheduler::read(at.root);
        let fact = found.map(|found| Fact::new(FAIR_SCHEDULER, found.scheduler.display_name()));
        fact.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    fn arm(word: &str) -> Arm {
        let mut arm = Arm::unchanged(word);
        BuiltIn.parse(word, &mut arm).unwrap().unwrap();
        arm
    }

    #[test]
    fn an_arm_called_eevdf_is_refused_by_a_kernel_with_cfs() {
        let cfs = tree(&[("proc/sys/kernel/osrelease", "6.1.0-42-amd64\n")]);
        let problems = BuiltIn.require(cfs.path(), &arm("eevdf"), &[]);
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].what.contains("is CFS, not EEVDF"),
            "{problems:?}"
        );
        assert!(problems[0].remedy.contains("write `cfs`"), "{problems:?}");
        assert!(BuiltIn.require(cfs.path(), &arm("cfs"), &[]).is_empty());
    }

    #[test]
    fn an_arm_called_bore_is_refused_where_bore_is_switched_off() {
        let off = tree(&[
            ("proc/sys/kernel/osrelease", "6.18.0-cachyos\n"),
            ("proc/sys/kernel/sched_bore", "0\n"),
        ]);
        let problems = BuiltIn.require(off.path(), &arm("bore"), &[]);
        assert!(
            problems[0].what.contains("is EEVDF, not BORE"),
            "{problems:?}"
        );
    }

    #[test]
    fn a_name_of_no_scheduler_is_no_arm_of_this_kind() {
        assert!(BuiltIn.parse("muqss", &mut Arm::unchanged("a")).is_none());
    }
}
