//! Nodes of a cluster that Slurm gives: one job, whose nodes are far machines with an agent that
//! srun(1) starts.

mod job;
mod node;
mod spec;

pub use spec::{KEYS, SlurmSpec, kernel_feature};

use crate::far::FarTarget;
use crate::reboots::{self, came_with_another};
use crate::{
    Boot, Can, Fleet, Host, Leaving, Looked, Made, Session, Short, Target, TargetDef, TargetError,
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
    shorts: &[Short::of_kind(NAME, "partition")],
    read: |keys| {
        let slurm = SlurmSpec::deserialize(keys)?;
        slurm.check()?;
        Ok(TargetSpec::from(&slurm))
    },
    can: |spec| Ok(can(&SlurmSpec::from_target(spec)?)),
    expose: None,
    shown: |spec| Ok(SlurmSpec::from_target(spec)?.shown_lines()),
    make: |spec, host| {
        Ok(Box::new(SlurmTarget::new(
            SlurmSpec::from_target(spec)?,
            host,
        )))
    },
    fleet: Some(|spec, host, say| {
        let spec = SlurmSpec::from_target(spec)?;
        let job = Job::find_or_start(&spec, &host.interrupted, say)?;
        let nodes = job.nodes().to_vec();
        // Each kernel is a job of its own on its node.
        let job = spec.kernel_feature.is_none().then(|| Arc::new(job));
        Ok(Box::new(Nodes { spec, nodes, job }))
    }),
};

const CAN: Can = Can {
    kernels: false,
    reboots: false,
    cpus: None,
    apart: false,
    here: false,
    programs_of_here: false,
    is_guest: false,
    machines: None,
    reset: Reset::None,
};

fn can(spec: &SlurmSpec) -> Can {
    let usual = Can {
        machines: Some(spec.nodes),
        ..CAN
    };
    reboots::can(usual, spec.kernel_feature.is_some(), None)
}

/// The nodes of one job, or of a job for each kernel on each of them.
#[derive(Debug)]
struct Nodes {
    spec: SlurmSpec,
    nodes: Vec<String>,
    job: Option<Arc<Job>>,
}

impl Fleet for Nodes {
    fn machine_names(&self) -> Vec<String> {
        self.nodes.clone()
    }

    fn machine_spec(&self, machine: &str) -> TargetSpec {
        TargetSpec::from(&self.spec.on_node(machine))
    }

    fn make_target(&self, machine: &str, host: &Host) -> Made {
        let spec = self.spec.on_node(machine);
        let far = self.job.as_ref().map(|job| {
            let node = Node::new(&self.spec, job, machine);
            FarTarget::new(Arc::new(node), CAN, host)
        });
        Ok(Box::new(SlurmTarget {
            far,
            ..SlurmTarget::new(spec, host)
        }))
    }

    fn machines_to_leave(&self) -> Vec<Leaving> {
        match &self.job {
            Some(job) => job.nodes_to_leave(),
            None => job::unfit_nodes(&self.nodes),
        }
    }
}

/// One node, which a job is asked for when it is needed first.
#[derive(Debug)]
struct SlurmTarget {
    spec: SlurmSpec,
    host: Host,
    far: Option<FarTarget>,
    /// The kernel that a job has asked for, and the job.
    booted: Option<(String, Arc<Job>)>,
}

impl SlurmTarget {
    fn new(spec: SlurmSpec, host: &Host) -> Self {
        SlurmTarget {
            spec,
            host: host.clone(),
            far: None,
            booted: None,
        }
    }

    fn far(&mut self) -> Result<&mut FarTarget, TargetError> {
        let far = match self.far.take() {
            Some(far) => far,
            None => self.job(&self.spec.clone())?.0,
        };
        Ok(self.far.insert(far))
    }

    /// A node of a job of its own.
    fn job(&mut self, spec: &SlurmSpec) -> Result<(FarTarget, Arc<Job>), TargetError> {
        let one = SlurmSpec {
            nodes: 1,
            ..spec.clone()
        };
        if spec.nodes > 1 {
            tracing::info!("this command takes one of {} nodes", spec.nodes);
        }
        let mut say = |line: &str| tracing::info!("{line}");
        let job = Arc::new(Job::find_or_start(&one, &self.host.interrupted, &mut say)?);
        let name = &job.nodes()[0];
        if spec.kernel_feature.is_some() {
            // All kernels are compared on one machine.
            self.spec.nodes = 1;
            self.spec.host = Some(name.clone());
        }
        let node = Node::new(&one, &job, name);
        let far = FarTarget::new(Arc::new(node), can(spec), &self.host);
        Ok((far, job))
    }

    /// The node with this kernel, for which Slurm restarts it between two jobs.
    fn boot(&mut self, kernel: &str) -> Result<(), TargetError> {
        let is_there = |(booted, job): &(String, Arc<Job>)| {
            booted == kernel && job.nodes_to_leave().is_empty()
        };
        if self.far.is_some() && self.booted.as_ref().is_some_and(is_there) {
            return Ok(());
        }
        // The end of the job before, without which the node cannot be restarted.
        (self.booted, self.far) = (None, None);
        if let Some(node) = &self.spec.host {
            job::wait_for_the_end(node, &self.host.interrupted);
        }
        let did_not_boot = |error| match error {
            TargetError::Unmet(problem) if job::is_of_the_boot(&problem.what) => {
                TargetError::Gone {
                    why: format!("no node came up with {kernel}: {}", problem.what),
                    tail: String::new(),
                }
            }
            other => other,
        };
        let spec = self.spec.with_kernel(kernel);
        let (mut far, job) = self.job(&spec).map_err(did_not_boot)?;
        let release = far.kernel_release().map_err(did_not_boot)?;
        if release != kernel {
            return Err(came_with_another(kernel, &release));
        }
        self.far = Some(far);
        self.booted = Some((kernel.to_owned(), job));
        Ok(())
    }
}

impl Target for SlurmTarget {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn abilities(&self) -> Can {
        can(&self.spec)
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
        let problems = match self.far() {
            Ok(far) => far.check(experiment),
            Err(TargetError::Unmet(problem)) => vec![problem],
            Err(other) => vec![job::slurm_problem(other.to_string(), job::LOOK)],
        };
        if self.spec.kernel_feature.is_none() || !problems.is_empty() {
            return problems;
        }
        job::kernels_lacking(&self.spec, &reboots::named_kernels(experiment))
    }

    fn opening_step(&self, boot: &Boot) -> String {
        let is_new = |kernel: &&String| self.booted.as_ref().is_none_or(|(b, _)| b != *kernel);
        if let (Some(kernel), Some(node)) = (boot.kernel.as_ref().filter(is_new), &self.spec.host) {
            return format!("asking Slurm for {node} with {kernel}");
        }
        let far = self.far.as_ref();
        far.map_or_else(
            || "asking Slurm for a node".to_owned(),
            |far| far.opening_step(&Boot::default()),
        )
    }

    fn open_session(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        if let (Some(kernel), Some(_)) = (&boot.kernel, &self.spec.kernel_feature) {
            self.boot(kernel)?;
            return self.far()?.open_session(&Boot::default());
        }
        self.far()?.open_session(boot)
    }

    fn find_lacks(&mut self) -> Result<Looked, TargetError> {
        Target::find_lacks(self.far()?)
    }

    fn schedlab_command(&mut self, args: &[&str]) -> Result<Command, TargetError> {
        self.far()?.schedlab_command(args)
    }

    fn warnings(&self) -> Vec<Warning> {
        self.far.as_ref().map(Target::warnings).unwrap_or_default()
    }

    fn facts(&self) -> BTreeMap<String, String> {
        self.far.as_ref().map(Target::facts).unwrap_or_default()
    }
}
