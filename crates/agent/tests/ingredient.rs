//! One entry is all that an ingredient of arms needs: one that is known nowhere else is read
//! from an experiment file and from the command line, stored, put in force, proven and undone.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

mod entry;
mod few;

use agent::Stop;
use agent::arm::ingredient::{
    self, Around, At, Change, Form, Ground, Ingredient, Undone, value_of,
};
use agent::arm::table::{self, INGREDIENTS};
use agent::arm::{Asked, Value};
use entry::{trial, wrong};
use load::Keys;
use model::{Arm, Fact, Invalid, Problem, TrialState, Workload};
use serde_json::Map;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The file that the toy changes.
static KNOB: OnceLock<PathBuf> = OnceLock::new();

fn knob() -> String {
    fs::read_to_string(KNOB.get().unwrap()).unwrap()
}

fn set_knob(text: &str) {
    fs::write(KNOB.get().unwrap(), text).unwrap();
}

struct Toy;

/// The most that the knob takes.
const MOST: u64 = 100;

fn wanted(arm: &Arm) -> Option<u64> {
    arm.ingredients.get("knob")?.as_u64()
}

impl Ingredient for Toy {
    fn name(&self) -> &'static str {
        "knob"
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        if let Some(value) = keys.get::<u64>("knob") {
            arm.ingredients.insert("knob".to_owned(), value.into());
        }
    }

    fn write(&self, arm: &Arm, keys: &mut Map<String, serde_json::Value>) {
        keys.extend(wanted(arm).map(|value| ("knob".to_owned(), value.into())));
    }

    fn forms(&self) -> &'static [Form] {
        &[("knob=N", "a file that the test has")]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let value: Result<u64, _> = value_of(change, "knob")?.parse();
        let take = |value: u64| arm.ingredients.insert("knob".to_owned(), value.into());
        let not_one = |_| Invalid::new("knob", "a knob is a number");
        Some(value.map(take).map(drop).map_err(not_one))
    }

    fn check(&self, arm: &Arm, _: &Around) -> Result<(), Invalid> {
        match wanted(arm) {
            Some(0) => Err(Invalid::new("knob", "the knob cannot be 0").with_remedy("knob = 1")),
            _ => Ok(()),
        }
    }

    fn require(&self, _: &Path, arm: &Arm, _: &[Workload]) -> Vec<Problem> {
        let known = ["1", "7"].map(str::to_owned);
        let value = wanted(arm).map(|value| value.to_string());
        let unknown = value.filter(|value| !known.contains(value));
        let what = unknown.map(|value| format!("the knob does not turn to {value}"));
        what.map(|what| ingredient::problem(arm, what, "turn it less"))
            .into_iter()
            .collect()
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let value = wanted(arm).map(|value| Value::Is(value.to_string()));
        value
            .map(|value| Asked::of_machine("knob", value))
            .into_iter()
            .collect()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        Some(Box::new(Turned {
            wanted: wanted(arm),
            before: None,
        }))
    }
}

struct Turned {
    wanted: Option<u64>,
    before: Option<String>,
}

impl Change for Turned {
    fn apply(&mut self, _: Ground) -> Result<(), Stop> {
        if let Some(value) = self.wanted {
            self.before = Some(knob());
            set_knob(&value.min(MOST).to_string());
        }
        Ok(())
    }

    fn facts(&self, _: &At) -> Vec<Fact> {
        vec![Fact::new("knob", knob())]
    }

    fn undo(&mut self, _: &Path) -> Undone {
        if let Some(before) = self.before.take() {
            set_knob(&before);
        }
        Undone::default()
    }
}

const FILE: &str = "[[arm]]\nname = \"a\"\nknob = 7\n[[workload]]\nkind = \"command\"\n\
                    command = [\"true\"]\n";

#[test]
fn an_ingredient_is_one_entry() {
    few::install();
    let directory = tempfile::tempdir().unwrap();
    KNOB.set(directory.path().join("knob")).unwrap();
    set_knob("50");
    let stored = r#"{"name": "a", "knob": 7}"#;
    let arm: Arm = serde_json::from_str(stored).unwrap();
    assert_eq!(arm.summary(), "knob=7", "reports need no entry");
    let around = Around {
        boots: false,
        reboots: false,
        workloads: &[],
    };
    let unknown = table::check(&arm, &around).unwrap_err();
    assert!(unknown.what.contains("no ingredient `knob`"), "{unknown}");
    INGREDIENTS.add_entry(&Toy);

    let experiment = plan::parse_experiment("x.toml", FILE).unwrap();
    assert_eq!(experiment.arms[0].ingredients, arm.ingredients);
    let json = serde_json::to_value(&experiment.arms[0]).unwrap();
    assert_eq!(json["knob"], 7, "{json}");
    let read = plan::parse_arm("turned:=batch+knob=7").unwrap();
    assert_eq!(read.summary(), "batch + knob=7");
    assert!(plan::parse_arm("knob=far").is_err());
    assert!(plan::forms().iter().any(|(form, _)| *form == "knob=N"));

    assert_eq!(
        wrong(&FILE.replace("knob", "konb")),
        (3, 1, "did you mean `knob`?".to_owned())
    );
    assert_eq!(wrong(&FILE.replace('7', "\"far\"")), (3, 8, String::new()));
    assert_eq!(
        wrong(&FILE.replace('7', "0")),
        (3, 8, "knob = 1".to_owned())
    );

    let (problems, result) = trial(&experiment);
    assert_eq!(problems, &[]);
    assert_eq!(result.state, TrialState::Ok);
    let facts = result.evidence.all_facts();
    let found: Vec<&str> = facts
        .filter(|f| f.what == "knob")
        .map(|f| f.found.as_str())
        .collect();
    assert_eq!(
        (found, knob().as_str()),
        (vec!["7"], "50"),
        "proven and undone"
    );

    let file = FILE.replace('7', "200");
    let (problems, result) = trial(&plan::parse_experiment("x.toml", &file).unwrap());
    assert_eq!(problems[0].what, "the knob does not turn to 200");
    let TrialState::Void { why } = result.state else {
        panic!("{:?}", result.state);
    };
    assert!(why.contains("knob"), "{why}");
}
