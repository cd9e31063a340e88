//! Questions to the user whether something that somebody else wrote may start.

use crate::exit::CliError;
use doors::started::{Agreed, Answer};
use model::TargetSpec;
use model::printable::one_line;

/// Something that nobody starts unasked.
pub struct Question<'a> {
    /// All that would start; shown first.
    pub shown: &'a str,
    /// The question then: "Run this?"
    pub asked: &'a str,
    /// The option that answers beforehand was given.
    pub yes: bool,
    /// The error where nobody is there to answer.
    pub unanswered: &'a str,
}

impl Question<'_> {
    /// Shows, asks, and has an error where the answer is no.
    pub fn ask_user(&self) -> Result<Agreed, CliError> {
        let answer = Agreed::ask_user(self.shown, self.asked, self.yes);
        match answer.map_err(CliError::internal)? {
            Answer::Yes(agreed) => Ok(agreed),
            Answer::Nobody => Err(CliError::usage(
                self.unanswered,
                "read what it starts, above, and add --yes",
            )),
            Answer::No => Err(CliError::usage(
                "not started",
                "nothing was changed on this machine",
            )),
        }
    }
}

/// Things that a connection to the target starts: a command of a configuration of ssh, a program that is
/// copied there. One line for each.
pub fn started_by_connecting(target: &TargetSpec) -> Result<Vec<String>, CliError> {
    let brought = machines::starts_by_connecting(target).map_err(plan::PlanError::from)?;
    let lines = brought.iter().map(|(how, what)| {
        let text = format!("connects to the target, {how} {what}");
        one_line(&text).into_owned()
    });
    Ok(lines.collect())
}
