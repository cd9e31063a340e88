//! Arms with a kernel of their own. The target boots it and proves it, so there is nothing
//! to do on the machine.

use super::ingredient::{Around, Form, Ingredient, twice_error, value_of};
use load::Keys;
use model::{Arm, Invalid, KeyDef};
use serde_json::{Map, Value};

pub struct OwnKernel;

impl Ingredient for OwnKernel {
    fn name(&self) -> &'static str {
        "kernel"
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "kernel",
                "`debian:SUITE`, `debian:PACKAGE`, `file:PACKAGES`, path or `host`",
                "that of the target",
                "Kernel of the arm's trials, on a target that boots.",
            )]
        }
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
            "another kernel: on a vm target kernel=debian:trixie, on a machine that reboots its release",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let kernel = value_of(change, "kernel")?;
        Some(match arm.kernel.replace(kernel.to_owned()) {
            Some(first) => Err(twice_error("kernel", first, kernel)),
            None => Ok(()),
        })
    }

    fn check(&self, arm: &Arm, around: &Around) -> Result<(), Invalid> {
        let wrong =
            |what: &str, remedy: &str| Err(Invalid::new("kernel", what).with_remedy(remedy));
        match &arm.kernel {
            None if around.reboots => wrong(
                "this arm names no kernel; with `reboots`, every arm must",
                "kernel = \"RELEASE\", as `uname -r` says it",
            ),
            Some(kernel) if around.reboots => {
                reboot::check_name(kernel).map_err(|what| Invalid::new("kernel", what))
            }
            Some(_) if !around.boots => wrong(
                "a kernel of its own needs a machine that boots it",
                "use the target `vm`, or allow that the machine is restarted: reboots = \"auto\" in \
                 [target]",
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_arm_of_a_machine_that_reboots_names_an_installed_kernel() {
        let refused = |kernel: Option<&str>, boots, reboots| {
            let around = Around {
                boots,
                reboots,
                workloads: &[],
            };
            let arm = Arm {
                kernel: kernel.map(str::to_owned),
                ..Arm::unchanged("a")
            };
            OwnKernel.check(&arm, &around).err().map(|e| e.what)
        };
        let guest = refused(Some("debian:sid"), true, false);
        assert_eq!(guest, None);
        assert_eq!(refused(None, true, false), None);
        assert_eq!(refused(Some("6.1.0-50-amd64"), true, true), None);
        let why = refused(None, true, true).unwrap_or_default();
        assert!(why.contains("names no kernel"), "{why}");
        let why = refused(Some("debian:sid"), true, true).unwrap_or_default();
        assert!(why.contains("no release"), "{why}");
        let why = refused(Some("6.1.0-50-amd64"), false, false).unwrap_or_default();
        assert!(why.contains("a machine that boots it"), "{why}");
    }
}
