//! Arms that make the load do more work: a known effect, to find out what the judgement
//! sees. The load carries it, so there is nothing to do on the machine.

use super::ingredient::{Around, Form, Ingredient, twice_error, value_of};
use load::Keys;
use load::units::parse_percent;
use model::{Arm, Invalid, KeyDef, Workload};
use serde_json::{Map, Value};

const KEY: &str = "handicap";

pub struct Handicap;

impl Ingredient for Handicap {
    fn name(&self) -> &'static str {
        KEY
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "handicap",
                "percent",
                "",
                "Extra work in each request of `wakeup`: a known effect, to test the judgement.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        arm.handicap_percent = keys.percent(KEY).unwrap_or_default();
    }

    fn write(&self, arm: &Arm, keys: &mut Map<String, Value>) {
        if arm.handicap_percent != 0.0 {
            let percent = format!("{}%", arm.handicap_percent);
            keys.insert(KEY.to_owned(), percent.into());
        }
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "handicap=N%",
            "extra work in each request of `wakeup`: a known effect, to test the judgement",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let text = value_of(change, KEY)?;
        let before = arm.handicap_percent;
        Some(match parse_percent(text) {
            Ok(_) if before != 0.0 => Err(twice_error(KEY, format!("{before}%"), text)),
            Ok(percent) => {
                arm.handicap_percent = percent;
                Ok(())
            }
            Err(what) => Err(Invalid::new(KEY, what)),
        })
    }

    fn in_place(&self, _: &Arm) -> bool {
        true
    }

    fn check(&self, arm: &Arm, around: &Around) -> Result<(), Invalid> {
        if !(0.0..=1000.0).contains(&arm.handicap_percent) {
            return Err(Invalid::new(KEY, "a handicap is 0% to 1000%"));
        }
        if arm.handicap_percent == 0.0 || around.workloads.iter().all(carries) {
            return Ok(());
        }
        let able = load::KINDS.iter().filter(|def| def.handicap);
        let able: Vec<&str> = able.map(|def| def.name).collect();
        let what = format!("only the `{}` load can carry a handicap", able.join("`, `"));
        Err(Invalid::new(KEY, what).with_remedy("leave the other workloads out of this experiment"))
    }
}

fn carries(workload: &Workload) -> bool {
    load::kind::find(workload.kind.name()).is_some_and(|def| def.handicap)
}
