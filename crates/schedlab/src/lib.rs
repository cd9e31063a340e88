//! schedlab: which CPU scheduler is better for this work, on this machine, and
//! how sure are we?

#![cfg_attr(test, allow(clippy::disallowed_methods))]

mod agreement;
mod args;
mod commands;
mod complete;
mod examples;
mod exit;
mod fleet;
mod latest;
mod live;
mod measure;
mod metrics;
mod misspelling;
mod notify;
mod outcomes;
mod output;
mod progress;
mod reference;
mod repeat;
mod request;
mod results_argument;
mod signature;
mod sources;
mod systemd;
mod targets;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use doors::shown::{self, Notes, Stream};
use exit::{Broken, CliError, Shown};
use std::ffi::OsString;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Runs the command that these words ask for, the first of which is the program's own name.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    take_own_name();
    catalogue::install();
    let words: Vec<OsString> = words.into_iter().collect();
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => {
            let words = words.iter().map(|word| word.to_string_lossy().into_owned());
            let words: Vec<String> = words.collect();
            return refused(&misspelling::with_nearest(error, &Cli::command(), &words));
        }
    };
    let filter = EnvFilter::try_from_env("SCHEDLAB_LOG");
    tracing_subscriber::fmt()
        .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new(told(cli.verbose))))
        .with_writer(own_line)
        // Words of others are in it, so colours are cleaned away like all else.
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .init();
    match dispatch(&cli.command) {
        Ok(code) => code,
        Err(error) => {
            let code = error.code();
            match cli.command.is_for_programs() {
                true => shown::print_note(Shown(error)),
                false => say(Stream::Errors, format!("{:?}\n", for_a_person(error))),
            }
            code
        }
    }
}

/// Agents, loads and the like are started as `/proc/self/exe`, and the kernel calls them `exe` for that:
/// nobody knows them by it in a trace or in top(1).
fn take_own_name() {
    if rustix::thread::name().is_ok_and(|name| name.as_c_str() == c"exe") {
        // It is a name for people, and nothing depends on it.
        let _ = rustix::thread::set_name(c"schedlab");
    }
}

/// Prints a text of ours, with its colours where a terminal shows them.
fn say(stream: Stream, words: String) {
    let words = match output::has_colours(stream) {
        true => shown::coloured_text(words),
        false => shown::clean_text(words),
    };
    // Who does not read it any more is gone.
    let _ = stream.write(&words);
}

/// Help, the version, or what is wrong with the command line, which quotes names of files.
fn refused(error: &clap::Error) -> ExitCode {
    let stream = match error.use_stderr() {
        true => Stream::Errors,
        false => Stream::Output,
    };
    let words = error.render();
    say(
        stream,
        match output::has_colours(stream) {
            true => words.ansi().to_string(),
            false => words.to_string(),
        },
    );
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::USAGE))
}

/// An error with its place and its remedy, in lines of ours.
fn for_a_person(error: CliError) -> miette::Report {
    // Fails only where a hook is set already.
    let _ = miette::set_hook(Box::new(|_| {
        Box::new(miette::MietteHandlerOpts::new().wrap_lines(false).build())
    }));
    miette::Report::new(Broken {
        error: Shown(error),
        width: output::width(),
    })
}

/// The filter of the log. The long steps of making a guest are always told: a download, a build.
fn told(verbose: u8) -> &'static str {
    match verbose {
        0 => "warn,target=info",
        1 => "info",
        _ => "debug",
    }
}

/// In place of the live line of progress, if there is one.
fn own_line() -> Notes {
    Stream::Errors.clear_line();
    Notes
}

fn dispatch(command: &Command) -> Result<ExitCode, CliError> {
    match command {
        Command::Run(args) => commands::run::run(args),
        Command::Bisect(args) => commands::bisect::bisect(args),
        Command::Pick(args) => commands::pick::pick(args),
        Command::Tune(args) => commands::tune::tune(args),
        Command::Propose(args) => commands::propose::propose(args),
        Command::Mcp(args) => commands::mcp::mcp(args),
        Command::Boot(command) => commands::boot::boot(command),
        Command::BootNext(args) => commands::boot::next(args),
        Command::Hunt(args) => commands::hunt::hunt(args),
        Command::Certify(args) => commands::certify::certify(args),
        Command::Check(args) => commands::check::check(args),
        Command::Plan(args) => commands::plan::plan(args),
        Command::List { what, word, format } => {
            commands::list::list(*what, word.as_deref(), *format)
        }
        Command::Report(args) => commands::report::report(args),
        Command::Import(args) => commands::import::import(args),
        Command::Doctor(args) => commands::doctor::doctor(args),
        Command::Overhead(args) => commands::overhead::overhead(args),
        Command::Pack(args) => commands::pack::pack(args),
        Command::Verify(args) => commands::verify::verify(args),
        Command::Compare(args) => commands::compare::compare(args),
        Command::Merge(args) => commands::merge::merge(args),
        Command::Recommend(args) => commands::recommend::recommend(args),
        Command::Gate(args) => commands::gate::run(args),
        Command::History(command) => commands::history::history(command),
        Command::Watch(args) => commands::watch::watch(args),
        Command::Restore { far, format } => commands::restore::restore(far.as_ref(), *format),
        Command::Scheduler(command) => commands::scheduler::scheduler(command),
        Command::Service(command) => commands::service::service(command),
        Command::Tool(command) => commands::tool::tool(command),
        Command::Vm(command) => commands::vm::vm(command),
        Command::Kernel(command) => commands::vm::kernel(command),
        Command::Image(command) => commands::vm::image(command),
        Command::Manual { share } => commands::manual::manual(share),
        Command::VmKeeper => Ok(vm::manage::keeper::main()),
        Command::Target(command) => commands::target::target(command),
        Command::Agent { alone: true, .. } => commands::inner_roles::agent_alone(),
        Command::Agent { .. } => commands::inner_roles::agent(),
        Command::AgentHere { runner } => commands::inner_roles::agent_here(runner),
        Command::Guard => commands::inner_roles::guard(),
        Command::Load => commands::inner_roles::load(),
        Command::Serve {
            pairs: true, at, ..
        } => commands::inner_roles::serve_pairs(*at),
        Command::Serve { threads, at, .. } => commands::inner_roles::serve(*threads, *at),
        Command::Worker => commands::inner_roles::worker(),
        Command::Provoke { name } => commands::inner_roles::provoke(name),
        Command::Burn { company } => commands::inner_roles::burn(company),
        Command::Spin { threads } => commands::inner_roles::spin(*threads),
    }
}
