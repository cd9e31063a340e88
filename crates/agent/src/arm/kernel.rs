//! Arms with a kernel of their own. The target boots it and proves it, so there is nothing
//! to do on the machine.

use super::ingredient::{Around, Form, Ingredient, twice, value_of};
use load::Keys;
use model::{Arm, Invalid};
use serde_json::{Map, Value};

pub struct OwnKernel;

impl Ingredient for OwnKernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        arm.kernel = keys.get("kernel");
    }

    fn write(&self, arm: &Arm, keys: &mut Map<String, Value>) {
        if let Some(kernel) = &arm.kernel {
            keys.insert("kernel".to_owned(), kernel.as_str().into());
        }
    }

    fn texts(&self) -> &'static [&'static str] {
        &["kernel"]
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "kernel=SOURCE",
            "another kernel, on a vm target: kernel=debian:trixie",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let kernel = value_of(change, "kernel")?;
        Some(match arm.kernel.replace(kernel.to_owned()) {
            Some(first) => Err(twice("kernel", first, kernel)),
            None => Ok(()),
        })
    }

    fn check(&self, arm: &Arm, around: &Around) -> Result<(), Invalid> {
        if arm.kernel.is_none() || around.boots {
            return Ok(());
        }
        let what = "a kernel of its own needs a machine of its own";
        Err(Invalid::new("kernel", what)
            .with_remedy("use the target `vm`, or compare across reboots with two runs"))
    }
}
