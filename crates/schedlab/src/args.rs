//! The command line as it is typed. Its meaning is in `request.rs` and in the commands.

mod answer;
mod bisect;
mod boot;
mod cells;
mod choices;
mod forecast;
mod gate;
mod history;
mod hunt;
mod installation;
mod mcp;
mod merge;
mod overhead;
mod pick;
mod propose;
mod recommend;
mod results;
mod tune;
mod watch;

pub use answer::{AnswerArgs, WaitArgs};
pub use bisect::BisectArgs;
pub use boot::{BootCommand, BootNextArgs, BootStart, BootStep};
pub use cells::CellArgs;
pub use forecast::PlanArgs;
pub use gate::{GateArgs, GateFormat};
pub use history::{
    BisectHistoryArgs, CheckLimits, ConfirmArgs, FailOnAlarm, FollowArgs, HistoryCommand, ListArgs,
    ListFormat, PlaceArgs, StoreArgs,
};
pub use hunt::{HuntArgs, HuntWords};
pub use installation::{
    SchedulerCommand, ServiceCommand, ServiceInstall, TargetCommand, ToolCommand,
};
pub use mcp::McpArgs;
pub use merge::MergeArgs;
pub use overhead::OverheadArgs;
pub use pick::{PickArgs, Purpose};
pub use propose::ProposeArgs;
pub use recommend::{RecommendArgs, RecommendFormat};
pub use results::{CompareArgs, ImportArgs, PackArgs, ReportArgs, UnpackArgs, VerifyArgs};
pub use tune::TuneArgs;
pub use watch::{WatchArgs, WatchFormat};

use crate::commands::vm::{ImageCommand, KernelCommand, VmCommand};
use crate::examples;
use crate::output::Plain;
use choices::format;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Which CPU scheduler is better for this work, on this machine, and how sure are we?
#[derive(Debug, Parser)]
#[command(name = "schedlab", version, max_term_width = 100, after_help = crate::exit::help())]
pub struct Cli {
    /// Say what is done on the way, and with -vv in detail
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure, judge and report
    #[command(after_help = examples::RUN)]
    Run(Box<RunArgs>),
    /// Look for rare events, such as ejections: a run that goes on until the rates of its events are told
    /// apart, with provocations in guests
    #[command(after_help = examples::HUNT)]
    Hunt(Box<HuntArgs>),
    /// Measure the baseline against itself: what is called where nothing differs, and
    /// the smallest change that each cell can see
    #[command(after_help = examples::CERTIFY)]
    Certify(Box<CertifyArgs>),
    /// Find the commit that made a sched_ext scheduler, or another program, worse: each step is an
    /// interleaved comparison with the good commit
    #[command(after_help = examples::BISECT)]
    Bisect(Box<BisectArgs>),
    /// Measure a small mix with what is installed, and say what to use and how to keep it
    #[command(after_help = examples::PICK)]
    Pick(PickArgs),
    /// Look for settings that beat the baseline: a race of candidates, then a fresh measurement of the one
    /// that is ahead
    #[command(after_help = examples::TUNE)]
    Tune(Box<TuneArgs>),
    /// Ask whether one change is better. The question pays from the error of its session before it is
    /// measured, so that many questions together err no more often than one
    #[command(after_help = examples::PROPOSE)]
    Propose(Box<ProposeArgs>),
    /// The referee for agents: the same questions as `propose`, by the Model Context Protocol on the
    /// standard streams, within what you allow
    #[command(after_help = examples::MCP)]
    Mcp(Box<McpArgs>),
    /// Compare kernels that this machine boots itself: a run that goes on after each boot
    #[command(subcommand, after_help = examples::BOOT)]
    Boot(BootCommand),
    /// One boot of another kernel, for a runner on another machine
    #[command(hide = true)]
    BootNext(BootNextArgs),
    /// Look at a run that is under way, whoever started it; the run does not notice
    #[command(after_help = examples::WATCH)]
    Watch(WatchArgs),
    /// Parse an experiment and say what the target lacks for it; schedulers of a file are built and
    /// attached once, after a question
    #[command(after_help = examples::CHECK)]
    Check(Box<CheckArgs>),
    /// Print the blocks of an experiment and how long they take; with a pilot or earlier
    /// results: what they will show
    #[command(after_help = examples::PLAN)]
    Plan(Box<PlanArgs>),
    /// List what experiments can name
    #[command(after_help = examples::LIST, arg_required_else_help = true)]
    List {
        what: Listing,
        /// Only what has this word in it: wakeup, p99, slice
        word: Option<String>,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Report on a results directory
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Read runs that another tool measured into a results directory: described, never judged
    #[command(after_help = examples::IMPORT)]
    Import(ImportArgs),
    /// Settings of this machine that move figures, and how to change them
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArgs),
    /// Cost of each collector on this machine
    #[command(after_help = examples::OVERHEAD)]
    Overhead(OverheadArgs),
    /// Put a results directory into one file, with the hash of every part
    #[command(after_help = examples::PACK)]
    Pack(PackArgs),
    /// Make every number of a capsule again and compare
    #[command(after_help = examples::VERIFY)]
    Verify(VerifyArgs),
    /// Put two results side by side, and say what may be concluded across them
    #[command(after_help = examples::COMPARE)]
    Compare(CompareArgs),
    /// Make one result of several runs of an experiment: of several machines, or of several nights
    #[command(after_help = examples::MERGE)]
    Merge(MergeArgs),
    /// Say which arm to use for a mix of work, from results that there are: an arm, the default, or
    /// not known yet
    #[command(after_help = examples::RECOMMEND)]
    Recommend(RecommendArgs),
    /// Judge a new run against a stored one of the same experiment, for a CI
    #[command(after_help = examples::GATE)]
    Gate(GateArgs),
    /// Follow ratios over many runs: since when one is another, and whether that is so
    #[command(subcommand, after_help = examples::HISTORY)]
    History(HistoryCommand),
    /// Undo what a killed run, a power cut or doctor --fix left in force
    #[command(after_help = examples::RESTORE)]
    Restore {
        #[command(flatten)]
        far: Option<FarArgs>,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Install and list sched_ext schedulers
    #[command(subcommand, after_help = examples::SCHEDULER)]
    Scheduler(SchedulerCommand),
    /// Install and list benchmarks that distributions do not package usably
    #[command(subcommand, after_help = examples::TOOL)]
    Tool(ToolCommand),
    /// Let an experiment run by itself, every night for one, as a timer of systemd
    #[command(subcommand, after_help = examples::SERVICE)]
    Service(ServiceCommand),
    /// Look at machines that experiments run on
    #[command(subcommand, after_help = examples::TARGET)]
    Target(TargetCommand),
    /// Look around in the guest that experiments use
    #[command(subcommand, after_help = examples::VM)]
    Vm(VmCommand),
    /// Kernels for guests
    #[command(subcommand, after_help = examples::KERNEL)]
    Kernel(KernelCommand),
    /// Root file systems for guests
    #[command(subcommand, after_help = examples::IMAGE)]
    Image(ImageCommand),
    /// Writes man pages and completions for shells below a share/ directory
    #[command(hide = true)]
    Manual { share: PathBuf },
    /// Keeps a guest in the background
    #[command(hide = true)]
    VmKeeper,
    /// One process on the target: apply, prove, measure, undo
    #[command(hide = true)]
    Agent {
        /// With the lock of this machine, for a runner on another that gives signs of life
        #[arg(long)]
        alone: bool,
        /// The runner, for who finds the lock taken
        #[arg(long = "for", value_name = "RUNNER")]
        runner: Option<String>,
    },
    /// An agent for a runner on another machine, with the schedulers and tools of this one
    #[command(hide = true)]
    AgentHere {
        #[arg(long = "for", value_name = "RUNNER")]
        runner: String,
    },
    /// Undoes what an agent leaves when it dies
    #[command(hide = true)]
    Guard,
    /// A native load generator, started by the agent
    #[command(hide = true)]
    Load,
    /// The embedded server, started by the agent
    #[command(hide = true)]
    Serve {
        #[arg(long, default_value_t = 1)]
        threads: u32,
        /// Requests and responses of `rr`, with a thread for each pair
        #[arg(long)]
        pairs: bool,
        /// Where it listens; port 0: any free one
        #[arg(long, default_value = "127.0.0.1:0")]
        at: std::net::SocketAddr,
    },
    /// A worker of a native load, started by the load
    #[command(hide = true)]
    Worker,
    /// A provocation of a hunt, started by the agent of a guest
    #[command(hide = true)]
    Provoke { name: String },
    /// Workers that burn and wait beside another load, started by the agent
    #[command(hide = true)]
    Burn {
        /// Sets, number and unit of work as JSON
        company: String,
    },
    /// The native antagonist, started by the agent
    #[command(hide = true)]
    Spin {
        #[arg(long, default_value_t = 1)]
        threads: u32,
    },
}

/// Source of an experiment.
#[derive(Debug, Clone, Default, Args)]
pub struct ExperimentArgs {
    /// Experiment file (TOML)
    #[arg(conflicts_with_all = word_ids())]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub words: WordArgs,
    /// A private file or directory of this machine that the guest is to see
    #[arg(long, value_name = "PATH")]
    pub expose: Vec<String>,
    /// Guests that measure at once, each on CPUs of this machine that no other has, so that rare events
    /// come as many times as fast [default: the file's, or 1]
    #[arg(long, value_name = "N")]
    pub guests: Option<u32>,
    /// The baseline once more under another name, judged like any other
    #[arg(long)]
    pub aa: bool,
    /// Keep the scheduling events around the worst latency of each arm in each cell, as a Perfetto
    /// trace: worst, worst:request [default: the file's, or none]
    #[arg(long, value_name = "WHAT")]
    pub trace: Option<String>,
    /// Seed of order and arrivals [default: the file's, or 1]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Wall time for the trials: 2m, 1h [default: the file's, or until all is decided]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Most blocks of a cell [default: the file's, or 40]
    #[arg(long, value_name = "N")]
    pub max_blocks: Option<u32>,
    /// Smallest change that matters; less is `same` [default: the file's, or 2%]
    #[arg(long, value_name = "PERCENT")]
    pub smallest_effect: Option<String>,
    /// 1 − the error rate of one comparison: 99%, 0.99 [default: the file's, or 95%]
    #[arg(long, value_name = "FRACTION", value_parser = plan::parse_fraction)]
    pub confidence: Option<f64>,
    /// A rare event that is counted and compared by its rate, in place of those of the file: ejected,
    /// guest_death, 'request > 100ms', 'request > 3 x p99 of the baseline', 'stall > 50ms', failed_request,
    /// oom_kill, 'kernel_log = REGEX'
    #[arg(long, value_name = "EVENT")]
    pub event: Vec<String>,
    #[command(flatten)]
    pub cells: CellArgs,
    /// Additions of `schedlab hunt`.
    #[arg(skip)]
    pub hunt: Option<HuntWords>,
}

/// Names of the words that a file takes the place of.
fn word_ids() -> Vec<clap::Id> {
    let words = WordArgs::augment_args(clap::Command::new("words"));
    words
        .get_arguments()
        .map(|word| word.get_id().clone())
        .collect()
}

/// Words that make an experiment without a file.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct WordArgs {
    /// An arm: default, batch, nice=5, slice=0.3ms, base_slice=1ms, 'scx_rusty ARGS', A+B, NAME:=…;
    /// the first is the baseline
    #[arg(short, long = "arm", value_name = "ARM")]
    pub arms: Vec<String>,
    /// A directory of profiles, files of NAME=VALUE lines: each is an arm beside those of -a, or
    /// beside the machine as it is
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
    /// A workload, with loads if wanted: wakeup, hackbench:1,4, wakeup:50%,200%
    #[arg(short, long = "workload", value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// Server of the workloads that ask one (http, memcached), with arguments if it takes some:
    /// nginx, 'memcached -v' [default: echo, memcached]
    #[arg(long, value_name = "KIND")]
    pub server: Option<String>,
    /// A program that disturbs beside every workload: spinner, stress-ng, 'stress-ng --cpu 2',
    /// 'burnwait:4 70 200us', 'command ./batch-job'
    #[arg(long, value_name = "KIND")]
    pub beside: Vec<String>,
    /// A load that is measured in the same window as every workload, with a load if wanted: wakeup:2,
    /// periodic; its metrics begin with its name
    #[arg(long, value_name = "WORKLOAD")]
    pub co_runner: Vec<String>,
    /// Events that are counted in each trial, as perf list(1) names them:
    /// LLC-load-misses,sched:sched_wakeup
    #[arg(long, value_name = "EVENT", value_delimiter = ',')]
    pub perf: Vec<String>,
    /// Run elsewhere: ssh:HOST, ssh:USER@HOST, podman:NAME, docker:NAME, kubectl:POD, slurm:PARTITION
    #[arg(
        long,
        visible_alias = "on",
        value_name = "KIND:NAME",
        conflicts_with = "vm"
    )]
    pub target: Option<String>,
    /// Run in a virtual machine with this kernel: debian:sid, a bzImage, a built tree, host
    #[arg(long, value_name = "KERNEL")]
    pub vm: Option<String>,
    /// Architecture of the virtual machine, x86_64 or aarch64 [default: that of this machine]
    #[arg(long, value_name = "NAME", requires = "vm")]
    pub architecture: Option<String>,
    /// CPUs of the virtual machine [default: 2, or 1 with --clock virtual]
    #[arg(long, value_name = "N", requires = "vm")]
    pub cpus: Option<u32>,
    /// Clock of the virtual machine: that of the host, or virtual, a number of instructions, with
    /// which the same seed gives the same trial to the bit [default: host]
    #[arg(long, value_name = "CLOCK", requires = "vm")]
    pub clock: Option<String>,
    /// Memory of the virtual machine
    #[arg(long, value_name = "SIZE", requires = "vm", default_value = "2G")]
    pub memory: String,
    /// A figure in what the command prints: 'ops=/ops: (?<v>[\d.]+)/ higher', NAME=json:PATH
    /// lower, NAME=yaml:PATH lower, NAME=csv:COLUMN higher mean; then unit, from=FILE, after=REGEX,
    /// until=REGEX, where=KEY:VALUE, thousands=SIGN, and first, last, min, max, sum, mean or p99
    #[arg(long = "metric", value_name = "METRIC")]
    pub metrics: Vec<String>,
    /// A command that runs before each trial of the command, outside the figures: 'make clean'
    #[arg(long, value_name = "COMMAND", requires = "command")]
    pub prepare: Option<String>,
    /// Length of the measured window of every workload that has one: 5s, 1m [default: the kind's]
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Let the arms change places inside one running process, in short windows, rather than give
    /// each trial a process of its own: auto, always, never [default: never]
    #[arg(long, value_name = "WHEN")]
    pub in_place: Option<String>,
    /// Length of a window of --in-place: 50ms, 1s [default: 200ms]
    #[arg(long, value_name = "TIME", requires = "in_place")]
    pub turn: Option<String>,
    /// Time before each window of --in-place that does not count: 1s for sched_ext schedulers
    /// [default: a tenth of the turn]
    #[arg(long, value_name = "TIME", requires = "in_place")]
    pub washout: Option<String>,
    /// Any command as a workload (wall time, CPU time)
    #[arg(last = true)]
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Results directory [default: results/NAME-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Repeat the experiment of a capsule or results directory here, with the same work
    #[arg(
        long,
        group = "earlier",
        value_name = "FILE|DIR",
        conflicts_with_all = ["file", "resume"],
        conflicts_with_all = word_ids()
    )]
    pub like: Option<PathBuf>,
    /// With --like and --resume: run what was made elsewhere without asking
    #[arg(short, long, requires = "earlier")]
    pub yes: bool,
    #[command(flatten)]
    pub unpack: UnpackArgs,
    /// Go on with an earlier run, with --budget or --max-blocks for longer than it was to be
    #[arg(long, value_name = "DIR", group = "earlier", conflicts_with = "output")]
    pub resume: Option<PathBuf>,
    /// Resume although kernel, machine or schedlab are not those of the trials so far; the
    /// report says so
    #[arg(long, requires = "resume")]
    pub anyway: bool,
    /// Change nothing: measure one block as the machine is, under the names of the arms, and say what would be
    /// seen
    #[arg(long, conflicts_with_all = ["like", "resume", "fail_on"])]
    pub rehearse: bool,
    #[command(flatten)]
    pub follow: FollowArgs,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Open the HTML report in a browser at the end (xdg-open)
    #[arg(long)]
    pub open: bool,
    /// Tell somebody when the run starts, has trouble and ends: mailto:ADDRESS, https://…,
    /// exec:COMMAND, or @FILE with such lines
    #[arg(long, value_name = "WHERE")]
    pub notify: Vec<String>,
    /// Serve the state of the run as OpenMetrics at http://ADDRESS/metrics while it goes on:
    /// 127.0.0.1:9464
    #[arg(long = "metrics", value_name = "ADDRESS:PORT")]
    pub metrics_at: Option<String>,
    /// Draw the run while it goes on: on this terminal, or with =ADDRESS:PORT as a page of this
    /// machine, 127.0.0.1:0
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub live: Option<String>,
    /// Exit with 5 when an arm is worse than the baseline, or also when that is not known
    #[arg(long, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// Format of what is printed at the end
    #[arg(long, value_parser = format(), default_value = "text")]
    pub format: &'static report::Format,
    /// No progress, only the report
    #[arg(short, long)]
    pub quiet: bool,
}

/// Another machine that does the command's work.
#[derive(Debug, Clone, Args)]
pub struct FarArgs {
    /// Another machine: ssh:HOST, podman:NAME, or an experiment file with its target
    #[arg(
        long,
        visible_alias = "on",
        value_name = "KIND:NAME|FILE",
        required = false
    )]
    pub target: String,
    /// Connect as a file says, without asking
    #[arg(short, long, requires = "target")]
    pub yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// An arm is worse than the baseline
    Regression,
    /// That, or it has more of a rare event
    Events,
    /// An arm is worse, or a comparison that decides is not decided
    Unknown,
}

#[derive(Debug, Args)]
pub struct CertifyArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Arms that repeat the baseline, besides the baseline itself
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub copies: u32,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Results directory [default: results/NAME-certificate-TIME/]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
    /// No progress, only the certificate
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub experiment: ExperimentArgs,
    /// Build, attach and connect as a file says, without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Start nothing: read the file, and look at this machine where it is the target
    #[arg(long, conflicts_with = "yes")]
    pub no_start: bool,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub far: Option<FarArgs>,
    /// Change what can be changed, until `schedlab restore` or the next boot
    #[arg(long)]
    pub fix: bool,
    /// Explain also what is fine (text)
    #[arg(long)]
    pub full: bool,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub format: Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    Arms,
    Workloads,
    Targets,
    Metrics,
    Collectors,
    Provocations,
    Spaces,
    /// `docs/reference.md`, which `make reference` writes
    #[value(hide = true)]
    Reference,
}

impl Listing {
    /// The word for it on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

impl ExperimentArgs {
    /// The same without `--only` and `--skip`.
    pub fn with_all_cells(&self) -> Self {
        ExperimentArgs {
            cells: CellArgs::default(),
            ..self.clone()
        }
    }

    /// Nothing was said about an experiment.
    pub fn is_empty(&self) -> bool {
        let nothing = WordArgs {
            memory: self.words.memory.clone(),
            ..WordArgs::default()
        };
        let of_target = self.expose.is_empty() && self.guests.is_none();
        self.file.is_none() && self.words == nothing && of_target
    }
}

impl Command {
    /// Started by schedlab itself: what it says ends up in other messages.
    pub fn is_for_programs(&self) -> bool {
        matches!(
            self,
            Command::Agent { .. }
                | Command::AgentHere { .. }
                | Command::Guard
                | Command::Load
                | Command::Serve { .. }
                | Command::Worker
                | Command::Burn { .. }
                | Command::Provoke { .. }
                | Command::Spin { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use model::StopRule;

    fn examples(command: &clap::Command) -> Vec<String> {
        let end = command.get_after_help().map(ToString::to_string);
        let end = end.unwrap_or_default();
        let lines = end
            .lines()
            .map(|line| line.trim().trim_start_matches("sudo "));
        let lines = lines.filter(|line| line.starts_with("schedlab "));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn every_command_has_examples_and_all_of_them_parse() {
        let cli = Cli::command();
        for command in cli.get_subcommands().filter(|c| !c.is_hide_set()) {
            let (name, examples) = (command.get_name(), examples(command));
            assert!(!examples.is_empty(), "{name}");
            for example in examples {
                let words = shlex::split(&example).unwrap();
                assert!(words[1] == name && example.len() < 79, "{name}: {example}");
                if let Err(error) = Cli::try_parse_from(&words) {
                    panic!("{name}: {example}: {error}");
                }
            }
        }
    }

    #[test]
    fn the_defaults_that_the_help_says_are_those_that_hold() {
        let usual = StopRule::default();
        let cli = Cli::command();
        let run = cli.find_subcommand("run").unwrap();
        let help = |name: &str| {
            let found = run.get_arguments().find(|arg| arg.get_id() == name);
            found.and_then(|arg| arg.get_help()).unwrap().to_string()
        };
        for (name, value) in [
            ("confidence", format!("{}%", 100.0 * usual.confidence)),
            (
                "smallest_effect",
                format!("{}%", 100.0 * usual.smallest_effect),
            ),
            ("max_blocks", usual.max_blocks.to_string()),
        ] {
            let help = help(name);
            assert!(help.ends_with(&format!(" or {value}]")), "{value}: {help}");
        }
        assert_eq!(usual.budget_ns, None);
    }
}
