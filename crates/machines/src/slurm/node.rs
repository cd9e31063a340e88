//! One node of a job, with srun(1) as the way to it.

use super::NAME;
use super::job::{self, Job};
use super::spec::SlurmSpec;
use crate::TargetError;
use crate::far::{Failure, Line, Sudo};
use doors::started::tool_command;
use model::printable::last_lines;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Time for which a lost step is started anew. A node that is down is told by Slurm.
const RECONNECT: Duration = Duration::from_secs(180);
/// Words of srun(1) about a command that has ended by itself, and about what changes nothing.
const OF_THE_COMMAND: [&str; 6] = [
    ": task ",
    NO_BINDING,
    "arning:",
    "couldn't chdir",
    "oom_kill",
    "oom-kill",
];
const NO_BINDING: &str = "lacks support for cpu binding";
/// Words of srun(1) where the job is no more.
const NO_JOB: [&str; 3] = ["has expired", "Invalid job id", "Expired or invalid job"];

/// One node of a job.
#[derive(Debug)]
pub(super) struct Node {
    spec: SlurmSpec,
    job: Arc<Job>,
    name: String,
}

impl Node {
    pub fn new(spec: &SlurmSpec, job: &Arc<Job>, name: &str) -> Self {
        Node {
            spec: spec.clone(),
            job: Arc::clone(job),
            name: name.to_owned(),
        }
    }
}

impl Line for Node {
    fn kind(&self) -> &'static str {
        NAME
    }

    fn machine_name(&self) -> String {
        self.name.clone()
    }

    fn agent_path(&self) -> Option<PathBuf> {
        self.spec.agent.clone()
    }

    fn sudo(&self) -> Sudo {
        self.spec.sudo
    }

    fn reconnect_time(&self) -> Duration {
        RECONNECT
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn state_dir(&self, cache: &str) -> Option<String> {
        Some(format!("{cache}/state-{}", self.name))
    }

    /// A step of the job that has all CPUs of the node, bound to none of them, beside steps that
    /// are about to end.
    fn command(&self, words: &[String]) -> Command {
        let mut srun = tool_command("srun");
        srun.arg(format!("--jobid={}", self.job.id()));
        srun.args(["--nodes=1", "--ntasks=1", "--nodelist", &self.name]);
        srun.args(["--overlap", "--whole", "--cpu-bind=none", "--mem=0"]);
        // Limits of a login node are not those of what is measured.
        srun.arg("--propagate=NONE");
        job::without_options(&mut srun, &["SLURM_", "SRUN_"]);
        srun.arg("--").args(words);
        srun
    }

    fn is_lost(&self, code: Option<i32>, said: &str) -> bool {
        let of_srun = |line: &&str| line.starts_with("srun: ") || line.starts_with("slurmstepd");
        let of_the_command = |line: &str| OF_THE_COMMAND.iter().any(|words| line.contains(words));
        let mut of_the_way = said
            .lines()
            .filter(of_srun)
            .filter(|line| !of_the_command(line));
        code.is_none() || code != Some(0) && of_the_way.next().is_some()
    }

    fn no_connection(&self, said: &str) -> Failure {
        let lines = said.lines().filter(|line| !line.contains(NO_BINDING));
        let lines: Vec<&str> = lines.collect();
        let said = last_lines(&lines.join("\n"), 15, "\n");
        let what = match said.is_empty() {
            true => "srun gives no connection".to_owned(),
            false => said.clone(),
        };
        let remedy = format!(
            "look at the node and the job: sinfo -n {}; squeue -j {}",
            self.name,
            self.job.id()
        );
        match NO_JOB.iter().any(|words| said.contains(words)) {
            true => self
                .problem(what, "a new job goes on: schedlab run --resume DIR")
                .into(),
            false => Failure::Connection(self.problem(what, &remedy)),
        }
    }

    fn trial_command(&self) -> String {
        format!("srun --jobid={} --overlap -w {}", self.job.id(), self.name)
    }

    fn facts(&self) -> Vec<(String, String)> {
        let partition = self.spec.partition.clone();
        let known = [
            ("slurm.node", Some(self.name.clone())),
            ("slurm.job", Some(self.job.id().to_owned())),
            ("slurm.partition", partition),
        ];
        let known = known.into_iter();
        known
            .filter_map(|(name, text)| Some((name.to_owned(), text?)))
            .collect()
    }
}

impl From<job::Unavailable> for TargetError {
    fn from(unavailable: job::Unavailable) -> Self {
        TargetError::Unmet(job::slurm_problem(unavailable.what, &unavailable.remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> Node {
        let spec = super::super::spec::SlurmSpec::from_target(&model::TargetSpec::new(
            NAME,
            &serde_json::json!({}),
        ));
        Node::new(
            &spec.unwrap(),
            &Arc::new(Job::with_nodes("7", &["n1"])),
            "n1",
        )
    }

    #[test]
    fn the_end_of_a_command_is_no_lost_connection() {
        let node = node();
        let ended = "srun: cluster configuration lacks support for cpu binding\n\
                     srun: error: n1: task 0: Exited with exit code 3\n";
        assert!(!node.is_lost(Some(3), ended));
        assert!(!node.is_lost(Some(9), "srun: error: n1: task 0: Killed\n"));
        let cancelled = "slurmstepd-n1: error: *** STEP 5.4 ON n1 CANCELLED DUE TO TIME LIMIT ***";
        assert!(node.is_lost(Some(143), cancelled) && node.is_lost(None, ""));
        assert!(!node.is_lost(Some(0), "srun: Job step 7.1 created"));
        assert!(node.is_lost(Some(1), "srun: error: Node failure on room12"));
    }

    #[test]
    fn a_job_that_is_no_more_is_final_and_a_node_may_come_back() {
        let gone = "srun: error: Slurm job 7 has expired\nsrun: Check SLURM_JOB_ID";
        assert!(matches!(node().no_connection(gone), Failure::Final(_)));
        let busy = "srun: error: Unable to create step for job 7: Required node not available";
        assert!(matches!(node().no_connection(busy), Failure::Connection(_)));
    }
}
