//! One entry is all that a kind of workload needs: a kind that is known nowhere else is read
//! from an experiment file, listed, planned, checked and measured by the agent.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

mod entry;

use entry::trial;
use load::{
    Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, Output, Params, Parsed, Usual, Window,
    Work, program,
};
use model::check::check_count;
use model::{Better, Invalid, KeyDef, Load, MetricDef, Problem, Program, Task, TrialState};
use serde::{Deserialize, Serialize};

const COUNTED: MetricDef = MetricDef {
    name: "counted",
    unit: "count",
    better: Better::Higher,
    text: "What the toy has counted to.",
};

static TOY: KindDef = KindDef {
    name: "toy",
    aliases: &["counter"],
    summary: "a shell that counts",
    loads: LoadForms::Counts,
    load_unit: "rounds",
    window: Window::Whole,
    usual: Usual {
        load: Load::Count(3),
        duration_ns: 0,
        warmup_ns: 0,
        time_limit_ns: Some(20_000_000_000),
    },
    keys: &[KeyDef::new("step", "number", "1", "Size of a step.")],
    work: Work::for_params::<Toy>(),
    client: false,
    metrics: &[COUNTED],
    deciding: &["counted"],
    logs: &[],
    watched: &[],
    tasks: &[Task::Process("toy")],
    programs: &[Program {
        name: "toy",
        version: None,
        package: Some("toys"),
    }],
    handicap: false,
    turns: false,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Toy {
    step: u32,
}

impl Params for Toy {
    fn read(keys: &mut Keys) -> Self {
        Toy {
            step: keys.get("step").unwrap_or(1),
        }
    }
}

impl Driver for Toy {
    fn check(&self) -> Result<(), Invalid> {
        check_count("step", self.step.into())
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        Vec::new()
    }

    fn require(&self, _job: &Job) -> Vec<Problem> {
        Vec::new()
    }

    fn launch(&self, job: &Job) -> Launch {
        let rounds = job.load.resolve_count(job.cpus).unwrap_or(1);
        let script = format!("echo $(({rounds} * {}))", self.step);
        Launch::new(["sh", "-c", &script].map(str::to_owned).to_vec())
    }

    fn parse(&self, _job: &Job, output: &Output) -> Result<Parsed, String> {
        program::check_success("the toy", output)?;
        let counted: f64 = output.stdout.trim().parse().map_err(|_| "no number")?;
        Ok(Parsed {
            metrics: vec![COUNTED.to_measurement(counted)],
            ..Parsed::default()
        })
    }
}

const FILE: &str = "[[arm]]\nname = \"a\"\n[[workload]]\nkind = \"counter\"\nstep = 7\n";

fn wrong(from: &str, to: &str) -> (usize, usize, String) {
    entry::wrong(&FILE.replace(from, to))
}

#[test]
fn a_kind_is_one_entry() {
    load::KINDS.add_entry(&TOY);

    let experiment = plan::parse_experiment("x.toml", FILE).unwrap();
    let workload = &experiment.workloads[0];
    assert_eq!(
        (workload.name.as_str(), workload.kind.name()),
        ("toy", "toy")
    );
    assert_eq!(workload.metrics, ["counted"]);
    let planned = schedule::plan_blocks(&experiment);
    assert_eq!(planned.cells[0].name, "toy 3");
    assert_eq!(
        plan::parse_workload("toy:9").unwrap().loads,
        [Load::Count(9)]
    );

    assert!(load::kind::names().any(|name| name == "toy"));
    assert!(
        load::metric_defs()
            .iter()
            .any(|(kind, metric)| *kind == "toy" && metric.name == "counted")
    );
    assert!(load::programs().iter().any(|program| program.name == "toy"));
    assert!(load::measured_tasks().contains(&Task::Process("toy")));

    assert_eq!(
        wrong("step", "stpe"),
        (5, 1, "did you mean `step`?".to_owned())
    );
    assert_eq!(wrong("7", "\"many\""), (5, 8, String::new()));
    assert_eq!(wrong("7", "0"), (5, 8, String::new()));
    assert_eq!(wrong("counter", "conter").2, "did you mean `counter`?");

    let (problems, result) = trial(&experiment);
    assert_eq!(problems, []);
    assert_eq!(result.state, TrialState::Ok);
    let counted = result.metrics.iter().find(|m| m.metric == "counted");
    assert_eq!(counted.map(|m| m.value), Some(21.0));
}
