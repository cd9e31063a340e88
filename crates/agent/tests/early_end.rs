//! An arm that ends within its window is an outcome where the experiment counts that, and a void trial where
//! it does not.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

mod entry;
mod few;

use agent::Stop;
use agent::arm::Asked;
use agent::arm::ingredient::{Around, At, Change, Ending, Form, Ground, Ingredient};
use agent::arm::table::INGREDIENTS;
use entry::{trial, wrong};
use load::Keys;
use model::{Arm, Fact, Invalid, Problem, RareEvent, TrialState, When, Workload};
use serde_json::{Map, Value};
use std::path::Path;

/// An ingredient that is thrown out as soon as somebody looks whether it is still there.
struct Fuse;

const BLOWN: &str = "runnable task stall (watchdog failed to check in)";

fn is_wanted(arm: &Arm) -> bool {
    arm.ingredients.contains_key("fuse")
}

impl Ingredient for Fuse {
    fn name(&self) -> &'static str {
        "fuse"
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        if let Some(value) = keys.get::<u64>("fuse") {
            arm.ingredients.insert("fuse".to_owned(), value.into());
        }
    }

    fn write(&self, _: &Arm, _: &mut Map<String, Value>) {}

    fn forms(&self) -> &'static [Form] {
        &[]
    }

    fn parse(&self, _: &str, _: &mut Arm) -> Option<Result<(), Invalid>> {
        None
    }

    fn check(&self, _: &Arm, _: &Around) -> Result<(), Invalid> {
        Ok(())
    }

    fn require(&self, _: &Path, _: &Arm, _: &[Workload]) -> Vec<Problem> {
        Vec::new()
    }

    fn asked_facts(&self, _: &Arm) -> Vec<Asked> {
        Vec::new()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        let fuse = Burning { is_blown: false };
        is_wanted(arm).then(|| Box::new(fuse) as Box<dyn Change>)
    }
}

struct Burning {
    is_blown: bool,
}

impl Change for Burning {
    fn apply(&mut self, _: Ground) -> Result<(), Stop> {
        Ok(())
    }

    fn facts(&self, _: &At) -> Vec<Fact> {
        Vec::new()
    }

    fn check_alive(&mut self) -> Result<(), Stop> {
        self.is_blown = true;
        Err(Stop::Void(BLOWN.to_owned()))
    }

    fn find_ending(&mut self, _: &Path) -> Option<Ending> {
        self.is_blown.then(|| Ending {
            when: When::Ejected,
            at_us: None,
            messages: vec![BLOWN.to_owned()],
        })
    }
}

const FILE: &str = "[[arm]]\nname = \"a\"\nfuse = 1\n[[workload]]\nkind = \"command\"\n\
                    command = [\"sleep\", \"600\"]\n";

fn event(name: &str, when: When) -> RareEvent {
    RareEvent::new(name, when)
}

#[test]
fn an_arm_that_is_thrown_out_is_an_outcome_where_that_is_counted() {
    few::install();
    INGREDIENTS.add_entry(&Fuse);
    let mut experiment = plan::parse_experiment("x.toml", FILE).unwrap();
    let misspelt = wrong(&FILE.replace("fuse", "fues"));
    assert_eq!(misspelt, (3, 1, "did you mean `fuse`?".to_owned()));
    let (_, result) = trial(&experiment);
    let void = TrialState::Void {
        why: BLOWN.to_owned(),
    };
    assert_eq!((result.state, result.events.len()), (void, 0));

    experiment.observe.events = vec![
        event("thrown out", When::Ejected),
        event("killed", When::OomKill),
        event("ended", When::ErrorExit),
    ];
    let (_, result) = trial(&experiment);
    assert_eq!(result.state, TrialState::Ok, "{result:?}");
    let window_ns = result.window_end_ns - result.window_start_ns;
    assert!(window_ns > 0 && result.metrics.is_empty(), "{result:?}");
    let [out, killed, ended] = &result.events[..] else {
        panic!("{:?}", result.events);
    };
    assert_eq!(out.at_ns, [result.window_end_ns]);
    assert_eq!(
        (out.messages.as_slice(), out.ended_window),
        (&[BLOWN.to_owned()][..], true)
    );
    for event in [out, killed, ended] {
        assert_eq!(event.exposure_ns, window_ns, "{event:?}");
    }
    assert_eq!((killed.count(), ended.count()), (0, 0));
    let arm = &experiment.arms[0];
    agent::judge_until_end(arm, &result.evidence).unwrap();

    // Another end than the one that is counted voids the trial as before.
    experiment.observe.events.remove(0);
    let (_, result) = trial(&experiment);
    assert!(
        matches!(result.state, TrialState::Void { .. }),
        "{result:?}"
    );
}
