//! `schedlab mcp` as it is typed.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct McpArgs {
    /// Place where the agent may measure: local, vm, vm:KERNEL, ssh:HOST; command: any program as a
    /// workload, which is any command of a shell [default: local]
    #[arg(long, value_name = "WHERE")]
    pub allow: Vec<String>,
    /// Ingredients of arms that the agent may use: policy,cpus,quota,weight
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "policy"
    )]
    pub arms: Vec<String>,
    /// Tunables that the agent may set: base_slice,migration_cost
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub knobs: Vec<String>,
    /// Installed sched_ext schedulers that the agent may attach: scx_rusty,scx_lavd
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub schedulers: Vec<String>,
    /// Repository of which the agent may bisect schedulers: what its commits hold is built and run
    #[arg(long, value_name = "REPOSITORY")]
    pub repository: Vec<String>,
    /// Shell command of yours that builds a program in such a repository, so that the agent may bisect it
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// Time that all measuring of the session may take: 20m, 2h
    #[arg(long, value_name = "TIME", default_value = "20m")]
    pub budget: String,
    /// Go on although this is root
    #[arg(long)]
    pub root: bool,
    /// Directory of the results [default: results/mcp-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}
