//! Threads that do nothing but use the CPU ([`crate::spin`]).

use load::roles::{AntagonistProgram, ProgramDef, cpus, words};
use load::{Keys, Launch, Params, SELF, Work};
use model::check::check_count;
use model::{Calibration, Invalid, KeyDef, Placement};
use serde::{Deserialize, Serialize};

/// The kind `spinner`.
pub static ANTAGONIST: ProgramDef<dyn AntagonistProgram> = ProgramDef {
    name: "spinner",
    summary: "schedlab's own: threads that do nothing but use the CPU",
    keys: &[KeyDef::new(
        "threads",
        "number",
        "one for each of its CPUs",
        "Number of threads.",
    )],
    work: Work::for_params::<Spinner>(),
    tasks: &[],
    program: None,
};

/// Threads that only count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spinner {
    /// Number of threads; `None`: one for each CPU of the placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
}

impl Params for Spinner {
    fn read(keys: &mut Keys) -> Self {
        Spinner {
            threads: keys.get("threads"),
        }
    }
}

impl AntagonistProgram for Spinner {
    fn check(&self) -> Result<(), Invalid> {
        let check = |threads: u32| check_count("threads", threads.into());
        self.threads.map_or(Ok(()), check)
    }

    fn command(&self) -> Vec<String> {
        Vec::new()
    }

    fn least_threads(&self, placement: &Placement) -> u32 {
        self.threads.unwrap_or_else(|| cpus(placement))
    }

    fn launch(&self, placement: &Placement, _: &Calibration) -> Launch {
        let threads = self.least_threads(placement).to_string();
        Launch::new(words(&[SELF, "spin", "--threads", &threads]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinner_has_a_thread_for_each_of_its_cpus() {
        let placement = Placement {
            cpus: Some("0-2,7".to_owned()),
            ..Placement::default()
        };
        let spinner = Spinner { threads: None };
        let argv = spinner.launch(&placement, &Calibration::default()).argv;
        assert_eq!(argv[1..], ["spin", "--threads", "4"]);
    }
}
