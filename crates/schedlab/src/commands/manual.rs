//! `schedlab manual`: man pages, and completions for shells, made from the table of arguments.
//! `make install` and the package put them where man(1) and the shells look.

use crate::args::Cli;
use crate::exit::CliError;
use crate::output;
use clap::builder::Resettable;
use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::path::Path;
use std::process::ExitCode;

const NAME: &str = "schedlab";

/// Places of completions below a share/ directory.
const COMPLETIONS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "bash-completion/completions", NAME),
    (Shell::Zsh, "zsh/site-functions", "_schedlab"),
    (Shell::Fish, "fish/vendor_completions.d", "schedlab.fish"),
];

pub fn manual(share: &Path) -> Result<ExitCode, CliError> {
    let mut command = for_people();
    for (shell, folder, file) in COMPLETIONS {
        let mut text = Vec::new();
        generate(shell, &mut command, NAME, &mut text);
        let dir = share.join(folder);
        output::directory(&dir)?;
        output::file(&dir.join(file), text)?;
    }
    let mut command = for_people().disable_help_subcommand(true);
    command.build();
    let dir = share.join("man/man1");
    output::directory(&dir)?;
    pages(&command, &dir)?;
    Ok(ExitCode::SUCCESS)
}

/// The command line without what schedlab starts itself; completions would offer that.
fn for_people() -> Command {
    let all = Cli::command();
    let about = all.get_about().cloned().unwrap_or_default();
    let after = all.get_after_help().cloned().unwrap_or_default();
    let shown = all.get_subcommands().filter(|c| !c.is_hide_set());
    Command::new(NAME)
        .version(env!("CARGO_PKG_VERSION"))
        .about(about)
        .after_help(after)
        .subcommand_required(true)
        .args(all.get_arguments())
        .subcommands(shown)
}

/// The page of a command, and those of its sub-commands.
fn pages(command: &Command, dir: &Path) -> Result<(), CliError> {
    for inner in command.get_subcommands() {
        pages(inner, dir)?;
    }
    let (name, page) = page(command).map_err(CliError::internal)?;
    output::file(&dir.join(name), page)
}

/// Name of the file, and its text.
fn page(command: &Command) -> std::io::Result<(String, Vec<u8>)> {
    let end = command.get_after_help().map(ToString::to_string);
    let man = Man::new(command.clone().after_help(Resettable::Reset)).manual("schedlab");
    let mut text = Vec::new();
    man.render(&mut text)?;
    sections(&end.unwrap_or_default()).to_writer(&mut text)?;
    Ok((man.get_filename(), text))
}

/// The end of a help text, as sections of a man page: a line that ends with a
/// colon begins one, and the others are kept as they are.
fn sections(end: &str) -> Roff {
    let mut roff = Roff::new();
    for line in end.lines().filter(|line| !line.is_empty()) {
        match line.strip_suffix(':').filter(|l| !l.starts_with(' ')) {
            Some(heading) => {
                roff.control("fi", []);
                roff.control("SH", [heading.to_uppercase().as_str()]);
                roff.control("nf", []);
            }
            None => {
                roff.text([roman(line)]);
            }
        }
    }
    roff.control("fi", []);
    roff
}
