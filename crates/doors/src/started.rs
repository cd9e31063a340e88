//! Programs: the tools that schedlab needs, and programs that strangers name or bring.
//!
//! Every program is started with a command from here, and `clippy.toml` forbids other ways. There
//! are three kinds:
//!
//! - [`tool_command`]: a program of this machine with a name that stands in the source of schedlab. It reads
//!   no input unless it is given some.
//! - [`own_command`]: this program, as an agent, a guard, a keeper.
//! - [`named_command`]: a program that a word of somebody else names or brings: one of an experiment, a build
//!   of somebody's source. It takes an [`Agreed`], which only they make who were shown what starts, or
//!   who gave the experiment to a command that runs it.
//!
//! What is built from somebody's source is built in a [`Workshop`].

mod workshop;

pub use workshop::{NoWorkshop, Workshop};

use crate::read::line_within;
use crate::shown::{Stream, clean_text};
use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// The most that is read of an answer.
const MOST_ANSWER_BYTES: u64 = 1024;

/// Agreement to start what others wrote. To have one is to have asked, or to do what the user
/// asked for: to run an experiment, to build a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed(());

/// Answer to a question whether something may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Yes, on a terminal or by an option.
    Yes(Agreed),
    /// No.
    No,
    /// There is no terminal to ask on, and no option that answers.
    Nobody,
}

impl Agreed {
    /// The user calls a command whose purpose is to start this: `run FILE`, `kernel build SOURCE`.
    pub fn by_command() -> Self {
        Agreed(())
    }

    /// A trial is measured: who asks this machine's agent for it has agreed.
    pub fn by_trial() -> Self {
        Agreed(())
    }

    /// Shows what would start, and asks. `yes` is the option that answers beforehand.
    pub fn ask_user(shown: &str, question: &str, yes: bool) -> io::Result<Answer> {
        let see = |words: &str| Stream::Errors.write(&clean_text(words));
        see(shown)?;
        if yes {
            return Ok(Answer::Yes(Agreed(())));
        }
        if !io::stdin().is_terminal() || !Stream::Errors.is_terminal() {
            return Ok(Answer::Nobody);
        }
        see(&format!("{question} [y/N] "))?;
        let answer = line_within(&mut io::stdin().lock(), MOST_ANSWER_BYTES)?;
        let answer = String::from_utf8_lossy(&answer.unwrap_or_default()).into_owned();
        Ok(match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Answer::Yes(Agreed(())),
            _ => Answer::No,
        })
    }
}

/// A tool of this machine, by its name on PATH.
pub fn tool_command(name: &'static str) -> Command {
    without_input(OsStr::new(name))
}

/// A tool that was looked for by its name, such as `cargo` or `clang-19`, at the path where it was
/// found.
pub fn tool_at(path: &Path) -> Command {
    without_input(path.as_os_str())
}

/// This program itself, at the path of its file.
pub fn own_command(path: &Path) -> Command {
    command(path.as_os_str())
}

/// A program that somebody else names or brings.
pub fn named_command(program: impl AsRef<OsStr>, _agreed: Agreed) -> Command {
    command(program.as_ref())
}

/// A tool that is not given input gets none: neither the terminal nor a script that is being read.
fn without_input(program: &OsStr) -> Command {
    let mut command = command(program);
    command.stdin(Stdio::null());
    command
}

/// Status of a tool whose words are of no interest, such as a probe.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub fn status_of(mut tool: Command) -> io::Result<ExitStatus> {
    tool.stdout(Stdio::null()).stderr(Stdio::null()).status()
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
fn command(program: &OsStr) -> Command {
    Command::new(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tool_reads_the_input_of_this_program() {
        let output = tool_command("cat").output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty());
    }

    #[test]
    fn nobody_agrees_without_a_terminal_unless_an_option_does() {
        // Tests run without a terminal, or with one for their input only.
        if !io::stdin().is_terminal() {
            assert_eq!(
                Agreed::ask_user("x\n", "Run this?", false).unwrap(),
                Answer::Nobody
            );
        }
        assert!(matches!(
            Agreed::ask_user("x\n", "Run this?", true).unwrap(),
            Answer::Yes(_)
        ));
    }
}
