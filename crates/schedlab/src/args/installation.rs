//! Arguments of commands for machines, schedulers, tools and services.

use crate::output::Plain;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum TargetCommand {
    /// Say what a machine lacks for experiments; only the agent is copied there
    Check {
        /// ssh:HOST, podman:NAME, or an experiment file with its target
        #[arg(value_name = "KIND:NAME|FILE")]
        target: String,
        /// Connect as a file says, without asking
        #[arg(short, long)]
        yes: bool,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
}

#[derive(Debug, Subcommand)]
pub enum SchedulerCommand {
    /// Build a scheduler from crates.io into the cache: scx_rusty, scx_rusty@1.1.4,
    /// scx_rusty@latest; without a version the one that `scheduler list` calls default
    Install {
        scheduler: String,
        /// Build as root, and not as a user who is nobody else: build scripts of all
        /// dependencies then run as root
        #[arg(long)]
        as_root: bool,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Schedulers that are installed, and those that could be
    List {
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
}

#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Write a service and its timer, and start the timer
    Install(ServiceInstall),
    /// Stop the timer of an experiment and remove its units; results are kept
    Remove {
        /// Name of the experiment
        name: String,
    },
}

#[derive(Debug, Args)]
pub struct ServiceInstall {
    /// Experiment file (TOML)
    pub file: PathBuf,
    /// When it runs: hour, night (01:30), week, or a calendar event of systemd.time(7)
    #[arg(long, value_name = "WHEN", default_value = "night")]
    pub every: String,
    /// Directory whose results/ the runs are in [default: /var/lib/schedlab-runs]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Tell somebody, as `schedlab run --notify` does
    #[arg(long, value_name = "WHERE")]
    pub notify: Vec<String>,
    /// Do not add the runs to the history, nor look for alarms
    #[arg(long)]
    pub no_history: bool,
    /// Directory of the history [default: history/ in the state directory]
    #[arg(long, value_name = "DIR", conflicts_with = "no_history")]
    pub store: Option<PathBuf>,
    /// After each run measure open alarms, for so long at most: 30m
    #[arg(long, value_name = "TIME", conflicts_with = "no_history")]
    pub confirm: Option<String>,
    /// Then look for the commit of what was confirmed to be worse, in trials of so long at most: 1h
    #[arg(long, value_name = "TIME", requires = "confirm")]
    pub bisect: Option<String>,
    /// Print the units and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub enum ToolCommand {
    /// Fetch a benchmark, check it and build it into the cache, where workloads find it:
    /// schbench, netperf, tbench, rt-app
    Install {
        /// NAME, or NAME@COMMIT for a commit that was not tried
        tool: String,
        /// Take it from here: a clone of the repository, a mirror of Debian, or the package, as
        /// a path or a URL
        #[arg(long, value_name = "PATH|URL")]
        from: Option<String>,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Benchmarks that are installed, and those that could be, with their licences
    List {
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
}
