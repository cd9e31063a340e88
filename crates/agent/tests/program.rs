//! One entry is all that a program of a role needs: a server and an antagonist that are known
//! nowhere else are read from an experiment file, checked, started, awaited and proven.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

mod entry;
mod few;

use entry::{trial, wrong};
use load::roles::{ANTAGONISTS, AntagonistProgram, ProgramDef, Readiness, SERVERS, ServerProgram};
use load::{Keys, Launch, Params, Work};
use model::check::check_count;
use model::{
    Calibration, Invalid, KeyDef, OpenLoopParams, Placement, Program, Role, Task, TrialState,
};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A web server without any files.
static HTTPD: ProgramDef<dyn ServerProgram> = ProgramDef {
    name: "httpd",
    summary: "busybox httpd",
    keys: &[KeyDef::new(
        "answers",
        "number",
        "404",
        "Status when it is ready.",
    )],
    work: Work::for_params::<Httpd>(),
    tasks: &[Task::Process("busybox")],
    program: Some(Program {
        name: "busybox",
        version: None,
        package: Some("busybox-static"),
    }),
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Httpd {
    status: u16,
}

impl Params for Httpd {
    fn read(keys: &mut Keys) -> Self {
        Httpd {
            status: keys.get("answers").unwrap_or(404),
        }
    }
}

impl ServerProgram for Httpd {
    fn check(&self) -> Result<(), Invalid> {
        check_count("answers", self.status.into())
    }

    fn command(&self) -> Vec<String> {
        vec!["busybox".to_owned()]
    }

    fn readiness(&self) -> Readiness {
        Readiness::Http {
            path: "/no-such-file".to_owned(),
            status: self.status,
        }
    }

    fn launch(&self, address: SocketAddr, _: Option<&OpenLoopParams>) -> Launch {
        let argv = ["busybox", "httpd", "-f", "-p", &address.to_string()];
        Launch::new(argv.map(str::to_owned).to_vec())
    }
}

/// Shells that count.
static COUNTERS: ProgramDef<dyn AntagonistProgram> = ProgramDef {
    name: "counters",
    summary: "shells that count",
    keys: &[KeyDef::new("shells", "number", "1", "Number of shells.")],
    work: Work::for_params::<Counters>(),
    tasks: &[],
    program: None,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Counters {
    shells: u32,
}

impl Params for Counters {
    fn read(keys: &mut Keys) -> Self {
        Counters {
            shells: keys.get("shells").unwrap_or(1),
        }
    }
}

impl AntagonistProgram for Counters {
    fn check(&self) -> Result<(), Invalid> {
        check_count("shells", self.shells.into())
    }

    fn command(&self) -> Vec<String> {
        vec!["sh".to_owned()]
    }

    fn least_threads(&self, _: &Placement) -> u32 {
        self.shells
    }

    fn launch(&self, _: &Placement, _: &Calibration) -> Launch {
        let more = "(while :; do :; done) & ".repeat(self.shells as usize);
        Launch::new(["sh", "-c", &(more + "wait")].map(str::to_owned).to_vec())
    }
}

/// The service is there because nothing asks a server of a command otherwise.
const FILE: &str = "[[arm]]
name = \"a\"
policy = { class = \"batch\" }
to = \"antagonist\"
[[workload]]
kind = \"command\"
command = [\"sleep\", \"0.5\"]
[[workload.service]]
name = \"idle\"
command = [\"sleep\", \"100\"]
[workload.server]
kind = \"httpd\"
answers = 404
[[workload.antagonist]]
kind = \"counters\"
shells = 2
";

fn wrong_with(from: &str, to: &str) -> (usize, usize, String) {
    assert!(FILE.contains(from));
    wrong(&FILE.replace(from, to))
}

#[test]
fn a_server_and_an_antagonist_are_one_entry_each() {
    few::install();
    assert_eq!(wrong(FILE).2, "did you mean `http-echo`?");
    SERVERS.kinds.add_entry(&HTTPD);
    let (_, _, help) = wrong(FILE);
    assert!(help.starts_with("one of spinner, stress-ng"), "{help}");
    ANTAGONISTS.kinds.add_entry(&COUNTERS);

    let experiment = plan::parse_experiment("x.toml", FILE).unwrap();
    let json = serde_json::to_value(&experiment.workloads[0]).unwrap();
    let stored = serde_json::json!({ "kind": "httpd", "status": 404 });
    assert_eq!(json["server"]["program"], stored);
    let stored = serde_json::json!({ "kind": "counters", "shells": 2 });
    assert_eq!(json["antagonists"][0]["program"], stored);
    assert_eq!(experiment.workloads[0].antagonists[0].name, "counters");
    let programs = load::programs();
    assert!(programs.iter().any(|program| program.name == "busybox"));
    assert!(load::measured_tasks().contains(&Task::Process("busybox")));
    expect_programs_to_ask();

    let help = |help: &str| help.to_owned();
    assert_eq!(
        wrong_with("answers", "anwsers"),
        (13, 1, help("did you mean `answers`?"))
    );
    assert_eq!(wrong_with("= 404", "= 0"), (13, 11, help("")));
    assert_eq!(wrong_with("= 404", "= \"soon\""), (13, 11, help("")));
    assert_eq!(
        wrong_with("answers = 404", "args = [\"-v\"]"),
        (13, 8, help("leave it out; `memcached` has it"))
    );
    assert_eq!(
        wrong_with("httpd", "htpd"),
        (12, 8, help("did you mean `httpd`?"))
    );
    assert_eq!(
        wrong_with("shells", "shels"),
        (16, 1, help("did you mean `shells`?"))
    );
    assert_eq!(wrong_with("= 2", "= 0"), (16, 10, help("")));
    assert_eq!(
        wrong_with("counters", "conters"),
        (15, 8, help("did you mean `counters`?"))
    );

    if which::which("busybox").is_err() {
        tests::skipped("busybox is not installed");
        return;
    }
    let (problems, result) = trial(&experiment);
    assert_eq!(problems, []);
    assert_eq!(result.state, TrialState::Ok);
    let mut facts = result.evidence.all_facts();
    let of_antagonist = facts.find(|fact| fact.role == Some(Role::Antagonist));
    assert!(of_antagonist.is_some(), "{:?}", result.evidence);

    let other = FILE.replace("= 404", "= 200\nready-limit = \"300ms\"");
    let (problems, result) = trial(&plan::parse_experiment("x.toml", &other).unwrap());
    assert_eq!(problems, []);
    let TrialState::Failed { why } = result.state else {
        panic!("{:?}", result.state);
    };
    assert!(why.contains("answered with 404, not 200"), "{why}");
}

/// Of all programs of the catalogue, only those that an experiment can start are asked for their versions.
fn expect_programs_to_ask() {
    let asked = |file: &str| {
        let experiment = plan::parse_experiment("x.toml", file).unwrap();
        let programs = load::programs_of(&experiment).into_iter();
        programs.map(|program| program.name).collect::<Vec<_>>()
    };
    assert_eq!(asked(FILE), ["busybox"]);
    let mut both = asked(&FILE.replace("sleep", "stress-ng"));
    both.sort_unstable();
    assert_eq!(both, ["busybox", "stress-ng"]);
}
