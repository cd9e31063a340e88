//! scx_microquanta: see README.md for what it does, `bpf/main.bpf.c` for how.

mod bpf_intf;
mod bpf_skel;
mod params;
mod scheduler;
mod select;
mod stats;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use log::{info, warn};
use params::Params;
use scheduler::{Scheduler, Setup};
use scx_utils::build_id;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// scx_microquanta: gives chosen tasks a bounded share of every CPU, at once.
///
/// The chosen tasks run before all others, but on each CPU only for RUNTIME of
/// every PERIOD while others want that CPU. When nobody else does they may have
/// all of it. All other tasks are scheduled fairly by weight.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Opts {
    /// Length of a period, 2us to 1s. [default: 40us]
    #[clap(short = 'p', long, value_parser = humantime::parse_duration)]
    period: Option<Duration>,

    /// CPU time that the chosen tasks may take from the others in every period
    /// on each CPU; at least 1us, and shorter than the period by 1us
    /// and by 1 % of it.
    /// [default: 20us]
    #[clap(short = 'r', long, value_parser = humantime::parse_duration)]
    runtime: Option<Duration>,

    /// Choose the tasks in this cgroup (version 2) and below it. May be repeated,
    /// as may the next two; a task is chosen when any of them holds.
    #[clap(short = 'c', long, value_name = "PATH")]
    cgroup: Vec<PathBuf>,

    /// Choose all threads of processes with this name; `NAME*` for a beginning.
    #[clap(short = 'n', long, value_name = "NAME")]
    process: Vec<String>,

    /// Choose threads with this name; `NAME*` for a beginning.
    #[clap(short = 't', long, value_name = "NAME")]
    thread: Vec<String>,

    /// Slice of the other tasks.
    #[clap(short = 's', long, default_value = "3ms", value_parser = humantime::parse_duration)]
    slice: Duration,

    /// Change PERIOD and RUNTIME of the scx_microquanta that is running, and exit.
    #[clap(long)]
    update: bool,

    /// Print statistics every so many seconds.
    #[clap(long)]
    stats: Option<f64>,

    /// Print statistics of the scx_microquanta that is running, every so many
    /// seconds. Starts no scheduler.
    #[clap(long)]
    monitor: Option<f64>,

    /// Describe the statistics, and exit.
    #[clap(long)]
    help_stats: bool,

    /// Length of the exit debug dump. 0 is the kernel's default.
    #[clap(long, default_value = "0")]
    exit_dump_len: u32,

    /// Show what libbpf does.
    #[clap(short = 'v', long)]
    verbose: bool,

    /// Print the version, and exit.
    #[clap(short = 'V', long)]
    version: bool,
}

fn main() -> Result<()> {
    let opts = Opts::parse();
    if opts.version {
        println!("scx_microquanta {}", version());
        return Ok(());
    }
    if opts.help_stats {
        return stats::server_data().describe_meta(&mut std::io::stdout(), None);
    }
    if opts.update {
        return update(&opts);
    }
    start_log()?;
    let shutdown = stop_on_signal()?;
    match opts.monitor {
        Some(seconds) => stats::monitor(interval(seconds)?, shutdown),
        None => schedule(&opts, &shutdown),
    }
}

fn version() -> String {
    build_id::full_version(env!("CARGO_PKG_VERSION"))
}

fn update(opts: &Opts) -> Result<()> {
    ensure!(
        opts.period.is_some() || opts.runtime.is_some(),
        "--update needs --period, --runtime or both"
    );
    let params = stats::request_change(opts.period, opts.runtime)?;
    println!("{} ns of every {} ns", params.runtime_ns, params.period_ns);
    Ok(())
}

fn interval(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).context("not a number of seconds")
}

fn start_log() -> Result<()> {
    let config = simplelog::ConfigBuilder::new()
        .set_target_level(simplelog::LevelFilter::Off)
        .set_location_level(simplelog::LevelFilter::Off)
        .set_thread_level(simplelog::LevelFilter::Off)
        .build();
    simplelog::TermLogger::init(
        simplelog::LevelFilter::Info,
        config,
        simplelog::TerminalMode::Stderr,
        simplelog::ColorChoice::Auto,
    )?;
    Ok(())
}

/// Set by SIGINT, SIGTERM and SIGHUP.
fn stop_on_signal() -> Result<Arc<AtomicBool>> {
    let shutdown = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&shutdown);
    ctrlc::set_handler(move || handler.store(true, Ordering::Relaxed))
        .context("set the signal handler")?;
    Ok(shutdown)
}

/// Until told to stop. The kernel may ask for a restart, which keeps changed
/// parameters.
fn schedule(opts: &Opts, shutdown: &Arc<AtomicBool>) -> Result<()> {
    let setup = Setup {
        rules: select::rules(&opts.cgroup, &opts.process, &opts.thread)?,
        slice: slice(opts.slice)?,
        exit_dump_len: opts.exit_dump_len,
        verbose: opts.verbose,
    };
    let mut params = Params::default().with(opts.period, opts.runtime)?;
    if setup.rules.is_empty() {
        warn!("no task is chosen: give --cgroup, --process or --thread");
    }
    if let Some(seconds) = opts.stats {
        print_stats(interval(seconds)?, shutdown);
    }
    let mut object = MaybeUninit::uninit();
    loop {
        let mut scheduler = Scheduler::attach(&setup, params, &mut object)?;
        info!("scx_microquanta {} attached, {params:?}", version());
        let exit = scheduler.run(shutdown)?;
        params = scheduler.params();
        if !exit.should_restart() {
            return Ok(());
        }
    }
}

fn slice(given: Duration) -> Result<Duration> {
    let allowed = Duration::from_micros(100)..=Duration::from_millis(100);
    ensure!(allowed.contains(&given), "the slice must be 100us to 100ms");
    Ok(given)
}

/// Over the socket, as any other client would.
fn print_stats(interval: Duration, shutdown: &Arc<AtomicBool>) {
    let shutdown = Arc::clone(shutdown);
    std::thread::spawn(move || {
        if let Err(error) = stats::monitor(interval, shutdown) {
            warn!("the statistics ended: {error:#}");
        }
    });
}
