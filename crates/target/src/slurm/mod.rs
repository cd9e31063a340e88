//! Nodes of a cluster that Slurm gives: one job, whose nodes are far machines with an agent that
//! srun(1) starts.

mod job;
mod node;
mod spec;

pub use spec::{KEYS, SlurmSpec};

use crate::far::FarTarget;
use crate::{
    Boot, Can, Fleet, Host, Leaving, Looked, Made, Session, Target, TargetDef, TargetError,
};
use job::Job;
use model::{Experiment, Place, Problem, Reset, TargetSpec, Warning};
use node::Node;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;

const NAME: &str = "slurm";

/// Entry in the table of targets.
pub static DEF: TargetDef = TargetDef {
    name: NAME,
    summary: "one or several nodes of a cluster, which Slurm gives",
    keys: KEYS,
    short: Some("partition"),
    read: |keys| {
        let slurm = SlurmSpec::deserialize(keys)?;
        slurm.check()?;
        Ok(TargetSpec::from(&slurm))
    },
    can: |spec| {
        SlurmSpec::of(spec)?;
        Ok(CAN)
    },
    expose: None,
    shown: |spec| Ok(SlurmSpec::of(spec)?.shown()),
    make: |spec, host| Ok(Box::new(SlurmTarget::new(SlurmSpec::of(spec)?, host))),
    fleet: Some(|spec, host, say| {
        let spec = SlurmSpec::of(spec)?;
        let job = Arc::new(Job::of(&spec, &host.interrupted, say)?);
        Ok(Box::new(Nodes { spec, job }))
    }),
};

const CAN: Can = Can {
    kernels: false,
    reboots: false,
    cpus: None,
    apart: false,
    here: false,
    reset: Reset::None,
};

/// The nodes of one job.
#[derive(Debug)]
struct Nodes {
    spec: SlurmSpec,
    job: Arc<Job>,
}

impl Fleet for Nodes {
    fn machines(&self) -> Vec<String> {
        self.job.nodes().to_vec()
    }

    fn spec(&self, machine: &str) -> TargetSpec {
        TargetSpec::from(&self.spec.on(machine))
    }

    fn target(&self, machine: &str, host: &Host) -> Made {
        let node = Node::new(&self.spec, &self.job, machine);
        Ok(Box::new(SlurmTarget {
            spec: self.spec.on(machine),
            host: host.clone(),
            far: Some(FarTarget::new(Arc::new(node), CAN, host)),
        }))
    }

    fn leaving(&self) -> Vec<Leaving> {
        self.job.leaving()
    }
}

/// One node, which a job is asked for when it is needed first.
#[derive(Debug)]
struct SlurmTarget {
    spec: SlurmSpec,
    host: Host,
    far: Option<FarTarget>,
}

impl SlurmTarget {
    fn new(spec: SlurmSpec, host: &Host) -> Self {
        SlurmTarget {
            spec,
            host: host.clone(),
            far: None,
        }
    }

    fn far(&mut self) -> Result<&mut FarTarget, TargetError> {
        let far = match self.far.take() {
            Some(far) => far,
            None => {
                let one = SlurmSpec {
                    nodes: 1,
                    ..self.spec.clone()
                };
                if self.spec.nodes > 1 {
                    tracing::info!("this command takes one of {} nodes", self.spec.nodes);
                }
                let mut say = |line: &str| tracing::info!("{line}");
                let job = Arc::new(Job::of(&one, &self.host.interrupted, &mut say)?);
                let node = Node::new(&one, &job, &job.nodes()[0]);
                FarTarget::new(Arc::new(node), CAN, &self.host)
            }
        };
        Ok(self.far.insert(far))
    }
}

impl Target for SlurmTarget {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn can(&self) -> Can {
        CAN
    }

    fn check(&mut self, experiment: &Experiment) -> Vec<Problem> {
        let mut apart = experiment.workloads.iter();
        if let Some(workload) = apart.find(|w| w.load_on == Place::Controller) {
            return vec![Problem {
                object: format!("workload {}", workload.name),
                what: "load-on = \"controller\": no ports are forwarded from nodes of Slurm"
                    .to_owned(),
                remedy: "leave it out, and pin load and services apart (`load-cpus`, `cpus`)"
                    .to_owned(),
            }];
        }
        match self.far() {
            Ok(far) => far.check(experiment),
            Err(TargetError::Unmet(problem)) => vec![problem],
            Err(other) => vec![job::problem(other.to_string(), job::LOOK)],
        }
    }

    fn opening(&self, boot: &Boot) -> String {
        let far = self.far.as_ref();
        far.map_or_else(
            || "asking Slurm for a node".to_owned(),
            |far| far.opening(boot),
        )
    }

    fn open(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        self.far()?.open(boot)
    }

    fn look(&mut self) -> Result<Looked, TargetError> {
        Target::look(self.far()?)
    }

    fn command(&mut self, args: &[&str]) -> Result<Command, TargetError> {
        self.far()?.command(args)
    }

    fn warnings(&self) -> Vec<Warning> {
        self.far.as_ref().map(Target::warnings).unwrap_or_default()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        self.far.as_ref().map(Target::facts).unwrap_or_default()
    }
}
