//! `schedlab boot` as it is typed.

use super::ExperimentArgs;
use crate::output::Plain;
use clap::{Args, Subcommand, ValueEnum};
use machines::By;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum BootCommand {
    /// Say which kernels the experiment boots and how, how often, and what this machine lacks;
    /// nothing is changed
    Plan {
        #[command(flatten)]
        experiment: Box<ExperimentArgs>,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Start the experiment: this machine restarts now, and goes on after each boot by itself
    Start(Box<BootStart>),
    /// Go on with the experiment; the unit of systemd does it after each boot
    Resume,
    /// Say how far the experiment is
    Status {
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// End the experiment: the machine goes on with no more boots; results are kept
    Stop,
    /// Helper of Slurm's plugin node_features/helpers, for kernels of nodes: says which feature this
    /// node has, or prepares one boot of the kernel of another
    Feature {
        /// Feature whose kernel the next boot is to run [default: say the one that runs]
        feature: Option<String>,
        /// Name of the feature of a kernel, as `kernel-feature` in experiments
        #[arg(long, default_value = "kernel_{kernel}")]
        name: String,
        /// Way of the one boot: grub, systemd-boot; with kexec, RebootProgram of Slurm must be the path
        /// of a script that runs `systemctl kexec`
        #[arg(long, default_value_t = By::Grub)]
        by: By,
    },
}

#[derive(Debug, Args)]
pub struct BootStart {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Results directory [default: /var/lib/schedlab-runs/results/NAME-TIME]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Go on with a run that has ended, or was ended, in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "output"])]
    pub resume: Option<PathBuf>,
    /// With --resume: go on with what was made elsewhere without asking
    #[arg(short, long, requires = "resume")]
    pub yes: bool,
    /// Tell somebody, as `schedlab run --notify` does
    #[arg(long, value_name = "WHERE")]
    pub notify: Vec<String>,
    /// Print the unit and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Step of one boot of another kernel, for a runner on another machine.
#[derive(Debug, Args)]
pub struct BootNextArgs {
    pub step: BootStep,
    #[arg(long, default_value_t = By::Auto)]
    pub by: By,
    pub kernels: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum BootStep {
    /// Print what keeps the kernels from being booted
    Check,
    /// Restart with the kernel
    Restart,
    /// Take back what is left of the one boot
    Clear,
    /// Restart with the machine's own kernel, where another was booted once
    Home,
}
