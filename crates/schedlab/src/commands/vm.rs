//! `schedlab vm`, `schedlab kernel` and `schedlab image`: looking around in the guest
//! that experiments use, and what it is made of.

use super::snapshot::{SnapshotCommand, snapshot};
use super::{print_guest, show_guest};
use crate::exit::CliError;
use crate::output::{self, Plain, say};
use crate::targets;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use vm::architecture::Architecture;
use vm::frame::Exec;
use vm::kernel::build::BuildRequest;
use vm::manage::{self, DEFAULT_GUEST, StartRequest};
use vm::{Forward, Topology, VmSpec, cache, image, kernel};

#[derive(Debug, Subcommand)]
pub enum VmCommand {
    /// Boot a guest in the background
    Start(StartArgs),
    /// Run a command in a guest, with its exit code
    Exec {
        /// A guest of `vm status`
        #[arg(long, default_value = DEFAULT_GUEST)]
        name: String,
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// A shell in a guest
    Shell {
        #[arg(long, default_value = DEFAULT_GUEST)]
        name: String,
    },
    /// End a guest
    Stop {
        #[arg(long, default_value = DEFAULT_GUEST)]
        name: String,
    },
    /// Save guests as they run, and go on from there as often as wanted
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Guests that run in the background
    Status {
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
}

#[derive(Debug, Args)]
pub struct StartArgs {
    #[arg(long, default_value = DEFAULT_GUEST)]
    name: String,
    /// debian:sid, debian:PACKAGE, a bzImage, a built tree, host
    #[arg(long, default_value = "debian:sid")]
    kernel: String,
    /// Architecture, x86_64 or aarch64 [default: that of this machine]
    #[arg(long, value_name = "NAME", value_parser = architecture)]
    architecture: Option<&'static Architecture>,
    /// [default: 2, or what the topology makes]
    #[arg(long)]
    cpus: Option<u32>,
    /// Cores, threads and more, as in an experiment: cores=2,threads=2
    #[arg(long, value_parser = vm::keys::parse_topology)]
    topology: Option<Topology>,
    #[arg(long, default_value = "2G")]
    memory: String,
    /// host, or image:PATH
    #[arg(long, default_value = "host")]
    root: String,
    /// A private file or directory of this machine that the guest is to see
    #[arg(long, value_name = "PATH")]
    expose: Vec<String>,
    /// Forward a port of this machine's loopback to the guest: 8080:80
    #[arg(long, value_name = "HOST:GUEST", value_parser = forward)]
    forward: Vec<Forward>,
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Kernels in the cache, and those of the suites looked at before
    List {
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
    /// Build a kernel with everything that schedlab can use; prints what to name it
    ///
    /// ccache is used where it is installed.
    Build {
        /// A kernel tree, debian:linux-source-VERSION, or a git repository as a path or a URL
        source: String,
        /// Tag, branch or commit of the repository [default: a path as it is, a URL's own branch]
        #[arg(long = "ref", value_name = "REF")]
        commit: Option<String>,
        /// Where to start from: defconfig, another make target, or a config file
        #[arg(long, default_value = "defconfig")]
        config: String,
        /// Merged after the shipped fragment
        #[arg(long, value_name = "FILE")]
        fragment: Vec<PathBuf>,
        /// Where to build [default: in the cache]
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
        #[arg(short, long)]
        jobs: Option<usize>,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
}

#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// A root file system from Debian packages, for root = "image:PATH"
    Build {
        /// NAME.squashfs or NAME.ext2
        output: PathBuf,
        #[arg(long, default_value = "bookworm")]
        suite: String,
        /// Packages besides the essential ones
        packages: Vec<String>,
        /// Architecture of the guest, x86_64 or aarch64 [default: that of this machine]
        #[arg(long, value_name = "NAME", value_parser = architecture)]
        architecture: Option<&'static Architecture>,
        /// A file or folder of this machine, into a directory of the image; more than once
        #[arg(long, value_name = "PATH:DIRECTORY")]
        copy: Vec<image::Copied>,
        /// An installed sched_ext scheduler, with the libraries that it needs; more than once
        #[arg(long, value_name = "NAME")]
        scheduler: Vec<String>,
        #[arg(long, value_enum, default_value_t = Plain::Text)]
        format: Plain,
    },
}

fn architecture(name: &str) -> Result<&'static Architecture, String> {
    Architecture::named(Some(name)).map_err(|e| format!("{}; {}", e.what, e.remedy))
}

fn forward(text: &str) -> Result<Forward, String> {
    let wrong = || format!("`{text}` is not HOST:GUEST, such as 8080:80");
    let (host, guest) = text.split_once(':').ok_or_else(wrong)?;
    Ok(Forward {
        name: text.to_owned(),
        host_port: host.parse().map_err(|_| wrong())?,
        guest_port: guest.parse().map_err(|_| wrong())?,
    })
}

pub fn vm(command: &VmCommand) -> Result<ExitCode, CliError> {
    match command {
        VmCommand::Start(args) => {
            let status = manage::start(&request(args)?)?;
            show_guest(&status, args.format)?;
            Ok(ExitCode::SUCCESS)
        }
        VmCommand::Exec { name, command } => {
            let exec = Exec {
                argv: command.clone(),
                ..Exec::default()
            };
            Ok(ExitCode::from(manage::exec(name, &exec)?))
        }
        VmCommand::Shell { name } => {
            let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
            Ok(ExitCode::from(manage::shell(name, vec![shell])?))
        }
        VmCommand::Stop { name } => {
            manage::stop(name)?;
            Ok(ExitCode::SUCCESS)
        }
        VmCommand::Snapshot(command) => snapshot(command),
        VmCommand::Status { format } => status(*format),
    }
}

fn request(args: &StartArgs) -> Result<StartRequest, CliError> {
    let memory_bytes =
        plan::parse_size(&args.memory).map_err(|e| CliError::usage(e, "--memory 2G"))?;
    let by_topology = args.topology.as_ref().and_then(Topology::cpus);
    let cpus = args.cpus.or(by_topology).unwrap_or(2);
    Ok(StartRequest {
        name: args.name.clone(),
        spec: VmSpec {
            root: args.root.clone(),
            architecture: args.architecture.map(|of| of.name.to_owned()),
            expose: args.expose.clone(),
            hypervisor: None,
            forwards: args.forward.clone(),
            topology: args.topology.clone(),
            ..VmSpec::new(&args.kernel, cpus, memory_bytes)
        },
        options: targets::vm_options()?,
    })
}

fn status(format: Plain) -> Result<ExitCode, CliError> {
    let all = manage::status()?;
    match format {
        Plain::Json => output::json(&all)?,
        Plain::Text if all.is_empty() => say!("no guest is running"),
        Plain::Text => all.iter().for_each(print_guest),
    }
    Ok(ExitCode::SUCCESS)
}

pub fn kernel(command: &KernelCommand) -> Result<ExitCode, CliError> {
    match command {
        KernelCommand::List { format } => list_kernels(*format),
        KernelCommand::Build {
            source,
            commit,
            config,
            fragment,
            output,
            jobs,
            format,
        } => {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            let request = BuildRequest {
                source: source.clone(),
                commit: commit.clone(),
                base: config.clone(),
                fragments: fragment.clone(),
                output: output.clone(),
                jobs: jobs.unwrap_or(cpus),
                sched_ext: true,
                log: None,
            };
            let built = kernel::build::build(&request, &cache::directory()?)?;
            match format {
                Plain::Text => say!("{}", built.display()),
                Plain::Json => output::json(&serde_json::json!({ "kernel": built }))?,
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list_kernels(format: Plain) -> Result<ExitCode, CliError> {
    let all = kernel::list::list(&cache::directory()?);
    if format == Plain::Json {
        let all: Vec<_> = all
            .iter()
            .map(|k| {
                serde_json::json!({
                    "name": k.name, "release": k.release, "cached": k.cached,
                    "sched_ext": k.sched_ext, "suite": k.suite, "summary": k.summary,
                })
            })
            .collect();
        output::json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        say!("none yet: an experiment with kernel = \"debian:sid\" fetches one");
    }
    for k in &all {
        let sched_ext = match k.sched_ext {
            Some(true) => "sched_ext",
            Some(false) => "no sched_ext",
            None => "",
        };
        let cached = if k.cached { "cached" } else { "" };
        say!("{:<58} {cached:<7} {sched_ext:<13} {}", k.name, k.summary);
    }
    Ok(ExitCode::SUCCESS)
}

pub fn image(command: &ImageCommand) -> Result<ExitCode, CliError> {
    let ImageCommand::Build {
        output,
        suite,
        packages,
        copy,
        scheduler,
        architecture,
        format,
    } = command;
    let mut request = image::ImageRequest {
        output: output.clone(),
        suite: suite.clone(),
        architecture: architecture.unwrap_or(Architecture::of_this_machine()),
        packages: packages.clone(),
        copies: copy.clone(),
    };
    add_schedulers(&mut request, scheduler)?;
    image::build(&request)?;
    let root = format!("image:{}", output.display());
    match format {
        Plain::Text => say!("{root}"),
        Plain::Json => output::json(&serde_json::json!({ "root": root }))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Programs of schedulers for the PATH of the image, and the libraries that schedulers of
/// crates.io are linked with.
fn add_schedulers(request: &mut image::ImageRequest, names: &[String]) -> Result<(), CliError> {
    if names.is_empty() {
        return Ok(());
    }
    let cache = schedulers::Cache::from_env()?;
    for name in names {
        let installed = cache.find_installed(name, None)?;
        let installed = installed.ok_or_else(|| not_installed(name))?;
        request.copies.push(image::Copied {
            from: installed.program,
            into: "/usr/local/bin".to_owned(),
        });
    }
    let libraries = ["libelf1", "libseccomp2", "zlib1g"];
    request.packages.extend(libraries.map(str::to_owned));
    Ok(())
}

fn not_installed(name: &str) -> CliError {
    CliError::from(vm::VmError::Unmet(model::Problem {
        object: name.to_owned(),
        what: "no such scheduler is installed".to_owned(),
        remedy: format!("schedlab scheduler install {name}"),
    }))
}
