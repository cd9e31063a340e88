//! Exit codes, and the one error type of the command line.
//!
//! Errors quote files and programs of others: what a terminal would obey is shown instead.

use miette::{Diagnostic, LabeledSpan, SourceCode};
use model::printable::{clean_lines, one_line};
use model::{Problem, RailHit};
use std::fmt::{Display, Write};
use std::process::ExitCode;

/// Everything asked for was done.
pub const DONE: u8 = 0;
/// An error in schedlab or in the machine (a full disk, for one).
pub const INTERNAL: u8 = 1;
/// `verify` found a number or a byte that is not what it is said to be.
pub const DIFFERS: u8 = 1;
/// The command line or the experiment file is wrong.
pub const USAGE: u8 = 2;
/// A requirement is not met; nothing was applied.
pub const UNMET: u8 = 3;
/// Trials, metrics or whole cells are missing, so that the question is not answered: they failed or
/// were void at every attempt, or nothing was measured.
pub const TRIALS_LOST: u8 = 4;
/// A result was found that `--fail-on` names: a regression, a difference (`gate`), or a comparison
/// that is not decided. A proposal was not accepted.
pub const REGRESSION: u8 = 5;
/// A rail of the workload was hit (`stop-if`): the arm was taken back, and the run has ended.
pub const RAIL: u8 = 6;
/// Interrupted; everything was undone, finished trials are on disk.
pub const INTERRUPTED: u8 = 130;

/// All codes, for `--help` and `docs/reference.md`.
pub const CODES: &[(u8, &str)] = &[
    (DONE, "done"),
    (INTERNAL, "internal error; with verify: something differs"),
    (USAGE, "bad command line or experiment file"),
    (UNMET, "a requirement is not met; nothing was applied"),
    (
        TRIALS_LOST,
        "something was not measured: trials failed or were void at every attempt, or are not there",
    ),
    (
        REGRESSION,
        "with --fail-on, or of gate: a regression or difference was found, or is not decided; of propose: \
         not accepted",
    ),
    (
        RAIL,
        "a rail was hit (stop-if): the arm in force was taken back, and the run has ended",
    ),
    (INTERRUPTED, "interrupted; everything was undone"),
];

/// The codes at the end of `--help`.
pub fn help() -> String {
    let lines = CODES
        .iter()
        .map(|(code, text)| format!("\n  {code:<4} {text}"));
    format!("Exit codes:{}", lines.collect::<String>())
}

#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum CliError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Plan(#[from] plan::PlanError),
    #[error("{message}")]
    Usage {
        message: String,
        #[help]
        help: Option<String>,
    },
    #[error("{}", list(.0))]
    Unmet(Vec<Problem>),
    #[error("interrupted before anything was measured; everything was undone")]
    Interrupted,
    #[error("{}", .0.in_words())]
    Railed(RailHit),
    #[error("{message}")]
    Internal {
        message: String,
        #[help]
        help: Option<String>,
    },
}

impl CliError {
    pub fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        CliError::Usage {
            message: message.into(),
            help: Some(help.into()),
        }
    }

    pub fn internal(error: impl std::fmt::Display) -> Self {
        CliError::Internal {
            message: error.to_string(),
            help: None,
        }
    }

    pub fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            CliError::Plan(_) | CliError::Usage { .. } => USAGE,
            CliError::Unmet(_) => UNMET,
            CliError::Internal { .. } => INTERNAL,
            CliError::Interrupted => INTERRUPTED,
            CliError::Railed(_) => RAIL,
        })
    }
}

/// An error on its way to a person.
#[derive(Debug, thiserror::Error)]
#[error("{}", clean_lines(&.0.to_string()))]
pub struct Shown(pub CliError);

/// The same in lines for a terminal. miette breaks lines anywhere; here commands stay whole, so that
/// they can be pasted.
#[derive(Debug, thiserror::Error)]
#[error("{}", broken(&.error.to_string(), *.width))]
pub struct Broken {
    pub error: Shown,
    pub width: usize,
}

/// Columns that miette puts before every line of a message or of a help.
const MARGIN: usize = 8;

/// A text whose lines that are too long are broken at spaces.
fn broken(text: &str, width: usize) -> String {
    let width = width.saturating_sub(MARGIN);
    let lines = text.lines().flat_map(|line| {
        if line.chars().count() <= width {
            return vec![line.to_owned()];
        }
        let words = line.trim_start();
        let indent = line.chars().count() - words.chars().count();
        let hang = if words.starts_with('→') { 2 } else { 0 };
        report::wrap_text(words, width, indent, indent + hang)
    });
    lines.collect::<Vec<_>>().join("\n")
}

impl Diagnostic for Broken {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        let help = self.error.help()?.to_string();
        Some(Box::new(broken(&help, self.width)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.error.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.error.labels()
    }
}

impl Diagnostic for Shown {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        let help = self.0.help()?.to_string();
        Some(Box::new(clean_lines(&help).into_owned()))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.0.labels()
    }
}

/// One problem a paragraph: what it is about, what is missing, what to do.
pub fn list(problems: &[Problem]) -> String {
    let mut text = match problems.len() {
        1 => "a requirement is not met".to_owned(),
        n => format!("{n} requirements are not met"),
    };
    for problem in problems {
        let Problem {
            object,
            what,
            remedy,
        } = problem;
        // What a program said may have several lines; those after the first are indented, so
        // that none looks like one of ours. Writing to a string cannot fail.
        let what: Vec<_> = what.lines().map(one_line).collect();
        let _ = write!(text, "\n{}: {}", one_line(object), what.join("\n    "));
        if !remedy.is_empty() {
            let _ = write!(text, "\n  → {}", one_line(remedy));
        }
    }
    text
}

/// Something that an earlier run changed is still in force.
pub fn unrestored_error(failed: &[String]) -> CliError {
    CliError::Internal {
        message: format!(
            "what an earlier run changed could not be undone:\n{}",
            failed.join("\n")
        ),
        help: Some("remove the cause, then: `schedlab restore`".to_owned()),
    }
}

/// A machine or an agent that is gone, with the last lines that it left. They are indented, so that
/// none looks like one of ours.
fn gone(error: &dyn Display, tail: &str) -> CliError {
    let lines = tail.lines().map(one_line);
    let last: String = lines.map(|line| format!("\n    {line}")).collect();
    match last.is_empty() {
        true => CliError::internal(error),
        false => CliError::internal(format!("{error}\nThe last that was seen of it:{last}")),
    }
}

impl From<results::ResultsError> for CliError {
    fn from(error: results::ResultsError) -> Self {
        use results::ResultsError::{InUse, NeverBegan, NotMerged, NotResults, Occupied, TooNew};
        // It names files and keys of others.
        let message = one_line(&error.to_string()).into_owned();
        match error {
            NotResults(_) => CliError::usage(
                message,
                "give a results directory, or a capsule that `schedlab pack` made",
            ),
            NotMerged(_) | InUse(_) | TooNew { .. } | Occupied(_) => CliError::Usage {
                message,
                help: None,
            },
            NeverBegan(ref dir) => CliError::usage(
                message,
                format!(
                    "start it again, without --resume and with: -o {}",
                    dir.display()
                ),
            ),
            _ => CliError::internal(message),
        }
    }
}

impl From<machines::TargetError> for CliError {
    fn from(error: machines::TargetError) -> Self {
        match error {
            machines::TargetError::Unmet(problem) => CliError::Unmet(vec![problem]),
            machines::TargetError::Gone { ref tail, .. } => gone(&error, tail),
            error => CliError::internal(error),
        }
    }
}

impl From<vm::VmError> for CliError {
    fn from(error: vm::VmError) -> Self {
        match error {
            vm::VmError::Unmet(problem) => CliError::Unmet(vec![problem]),
            vm::VmError::Interrupted => CliError::Interrupted,
            vm::VmError::Gone { ref tail, .. } => gone(&error, tail),
            error => CliError::internal(error),
        }
    }
}

impl From<agent::AgentError> for CliError {
    fn from(error: agent::AgentError) -> Self {
        use agent::AgentError::{Busy, Foreign, Io, JournalMissing, NoStateDirectory};
        let object = "what must be undone on this machine";
        let remedy = match &error {
            Io { .. } => return CliError::internal(error),
            Busy { .. } => "another agent is at work, or is just undoing what it changed",
            // They say what to do.
            Foreign { .. } | JournalMissing { .. } | NoStateDirectory => "",
        };
        CliError::Unmet(vec![Problem {
            object: object.into(),
            what: error.to_string(),
            remedy: remedy.into(),
        }])
    }
}

impl From<runner::RunError> for CliError {
    fn from(error: runner::RunError) -> Self {
        match error {
            runner::RunError::Unrestored(failed) => unrestored_error(&failed),
            runner::RunError::Unmet(problems) | runner::RunError::Mixed(problems) => {
                CliError::Unmet(problems)
            }
            runner::RunError::Results(error) => error.into(),
            runner::RunError::Target(error) => error.into(),
            runner::RunError::Calibration { .. } => CliError::Unmet(vec![Problem {
                object: "calibration".into(),
                what: error.to_string(),
                remedy: "run the workload by hand to see what it says".into(),
            }]),
            error => CliError::internal(error),
        }
    }
}

impl From<tools::Error> for CliError {
    fn from(error: tools::Error) -> Self {
        if let tools::Error::Git(error) = error {
            return error.into();
        }
        let message = error.to_string();
        match (error.is_usage(), error.remedy()) {
            (true, help) => CliError::Usage { message, help },
            (false, Some(remedy)) => CliError::Unmet(vec![Problem {
                object: "installing a tool".into(),
                what: message,
                remedy,
            }]),
            (false, None) => CliError::internal(message),
        }
    }
}

impl From<git::Error> for CliError {
    fn from(error: git::Error) -> Self {
        match error {
            git::Error::Unmet(problem) => CliError::Unmet(vec![problem]),
            error => CliError::internal(error),
        }
    }
}

impl From<schedulers::Error> for CliError {
    fn from(error: schedulers::Error) -> Self {
        use schedulers::Error::{
            BadVersion, Git, MissingTools, NoOtherUser, NoSourceTree, NoSuchCrate, NoVersion,
            OtherVersion, UnknownName,
        };
        let message = error.to_string();
        match error {
            NoSourceTree { .. } | NoVersion { .. } | NoOtherUser { .. } => CliError::Usage {
                message,
                help: None,
            },
            UnknownName { .. } | BadVersion { .. } | OtherVersion { .. } => CliError::Usage {
                message,
                help: Some("`schedlab scheduler list` has all".into()),
            },
            Git(error) => error.into(),
            NoSuchCrate { .. } => CliError::Usage {
                message,
                help: None,
            },
            MissingTools(_) => CliError::Unmet(vec![Problem {
                object: "building schedulers".into(),
                what: message,
                remedy: String::new(),
            }]),
            _ => CliError::internal(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_is_gone_is_shown_with_the_last_lines_of_its_console() {
        let gone = |tail: &str| {
            let error = machines::TargetError::Gone {
                why: "signal 9".to_owned(),
                tail: tail.to_owned(),
            };
            Shown(error.into()).to_string()
        };
        assert_eq!(gone(""), "the agent ended: signal 9");
        let shown = gone("Kernel panic\n\u{1b}[2JHLT=1");
        let expected =
            "the agent ended: signal 9\nThe last that was seen of it:\n    Kernel panic\n    ";
        assert!(shown.starts_with(expected), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
    }
}
