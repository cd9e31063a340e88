//! Errors in an experiment file or a command line: what is wrong, where, and what to do.
//!
//! Errors quote what was written, by whomever: it stays in its line, and nothing in it is
//! obeyed by a terminal ([`model::printable`]).

use crate::places::Places;
use crate::serde_errors::{self, Unknown};
use miette::{Diagnostic, NamedSource, SourceSpan};
use model::Invalid;
use model::printable::{clean_lines, one_line};
use std::ops::Range;

/// How toml says that a key, or a table, is there twice.
const DUPLICATE_KEY: &str = "duplicate key";

/// Error in an experiment file or a command line, with its place where that is known.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct PlanError {
    message: String,
    #[help]
    help: Option<String>,
    #[source_code]
    source_code: Option<NamedSource<String>>,
    #[label("here")]
    span: Option<SourceSpan>,
    /// The key whose value is wrong, from the table that [`PlanError::at_key`] is given
    /// the places of: `server.cpus`.
    key: Option<String>,
    /// The name that is not known, where that is what is wrong.
    unknown: Option<Unknown>,
}

impl PlanError {
    /// Error with this message, without place and advice.
    pub fn new(message: impl Into<String>) -> Self {
        PlanError {
            message: plain(message),
            help: None,
            source_code: None,
            span: None,
            key: None,
            unknown: None,
        }
    }

    /// Error with a message that may be one of serde.
    fn of_serde(message: &str) -> Self {
        let Some(unknown) = serde_errors::parse_unknown(message) else {
            let sentence = serde_errors::sentence(message);
            return PlanError::new(sentence.as_deref().unwrap_or(message));
        };
        PlanError::of_unknown(unknown)
    }

    fn of_unknown(unknown: Unknown) -> Self {
        let error = PlanError::new(unknown.message()).with_help_maybe(unknown.help());
        PlanError {
            unknown: Some(unknown),
            ..error
        }
    }

    /// The error with advice on what to write.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(plain(help));
        self
    }

    /// The error with advice where there is some; otherwise with the advice that it has.
    pub fn with_help_maybe(mut self, help: Option<String>) -> Self {
        self.help = help.map(plain).or(self.help);
        self
    }

    pub(crate) fn with_span(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.into());
        self
    }

    /// The key whose value is wrong.
    pub(crate) fn about_key(mut self, key: &str) -> Self {
        self.key.get_or_insert_with(|| key.to_owned());
        self
    }

    /// Is the error that a table has no such key?
    pub(crate) fn is_unknown(&self, key: &str) -> bool {
        self.is_of_name() && self.unknown.as_ref().is_some_and(|it| it.word == key)
    }

    fn is_of_name(&self) -> bool {
        self.unknown.as_ref().is_some_and(Unknown::is_key)
    }

    /// Where the place of the error begins.
    pub(crate) fn place(&self) -> Option<usize> {
        self.span.map(|span| span.offset())
    }

    /// The error of a text that nobody has seen, said of the word of the command line that the text is of.
    /// An arm or a workload that is named already is not named again.
    pub(crate) fn of_word(mut self, word: Option<&str>) -> Self {
        self.span = None;
        let is_named = |word: &str| match word.split_once(' ') {
            Some(("-a" | "-w", text)) => self.message.contains(&format!("`{}`", plain(text))),
            _ => false,
        };
        match word.filter(|word| !word.is_empty() && !is_named(word)) {
            Some(word) => {
                let message = format!("`{word}`: {}", self.message);
                self.with_message(message)
            }
            None => self,
        }
    }

    /// The key is one of the table `name`.
    pub(crate) fn in_table(mut self, name: &str) -> Self {
        self.key = self.key.map(|key| format!("{name}.{key}"));
        self
    }

    /// At the value of its key, or at the key if that is unknown, rather than at the table
    /// around it.
    pub(crate) fn at_key(mut self, places: &Places) -> Self {
        let place = self.key.as_ref().and_then(|key| match self.is_of_name() {
            true => places.name(key),
            false => places.get(key),
        });
        self.span = place.map(|span| span.into()).or(self.span);
        self
    }

    /// For an unknown key of a table: these are known too, but were read before.
    pub(crate) fn beside_keys(self, read_before: impl Iterator<Item = &'static str>) -> Self {
        match self.unknown {
            Some(unknown) => PlanError {
                span: self.span,
                ..PlanError::of_unknown(unknown.with_names(read_before))
            },
            None => self,
        }
    }

    /// The text of the file, as it can be shown; the place moves with what it grows by.
    pub(crate) fn in_file(mut self, name: &str, text: &str) -> Self {
        let shown = |from: usize, to: usize| text.get(from..to).map(|part| clean_lines(part).len());
        self.span = self.span.and_then(|span| {
            let (from, to) = (span.offset(), span.offset() + span.len());
            Some((shown(0, from)?, shown(from, to)?).into())
        });
        let text = clean_lines(text).into_owned();
        if text.lines().any(|line| line.len() > LONGEST_LINE) {
            return self.beside_file(name, &text);
        }
        let source = NamedSource::new(plain(name), text).with_language("toml");
        self.source_code = Some(source);
        self
    }

    /// The place in words, where the text itself is too long to be shown.
    fn beside_file(mut self, name: &str, text: &str) -> Self {
        let before = self.span.take().and_then(|span| text.get(..span.offset()));
        let line = before.map(|before| format!(", line {}", 1 + before.matches('\n').count()));
        let (name, line) = (plain(name), line.unwrap_or_default());
        self.message = format!("{name}{line}: {}", self.message);
        self
    }
}

/// Bytes of a line beyond which a text is not shown: miette panics at 65 536 columns, and nobody
/// reads so many.
const LONGEST_LINE: usize = 10_000;

/// Serde and toml find what is wrong and where; how it is said is ours.
impl From<toml::de::Error> for PlanError {
    fn from(error: toml::de::Error) -> Self {
        // Some have what was expected in a second line.
        let message: Vec<&str> = error.message().lines().map(str::trim).collect();
        let mut result = PlanError::of_serde(&message.join("; "));
        if error.message().starts_with(DUPLICATE_KEY) {
            let help =
                "leave one out; of a list of tables each has two brackets: [[arm]], [[workload]]";
            result = result.with_help(help);
        }
        match error.span() {
            Some(span) => result.with_span(span),
            None => result,
        }
    }
}

impl From<machines::ReadError> for PlanError {
    fn from(error: machines::ReadError) -> Self {
        match error {
            machines::ReadError::Toml(error) => error.into(),
            machines::ReadError::Invalid(invalid) => invalid.into(),
        }
    }
}

fn plain(text: impl Into<String>) -> String {
    one_line(&text.into()).into_owned()
}

impl From<Invalid> for PlanError {
    fn from(invalid: Invalid) -> Self {
        let help = Some(invalid.remedy).filter(|remedy| !remedy.is_empty());
        let error = PlanError::of_serde(&invalid.what).with_help_maybe(help);
        let key = match error.is_of_name() {
            true => invalid.key,
            false => key_in_file(&invalid.key),
        };
        error.about_key(&key)
    }
}

/// Key as in TOML: `stop.max_blocks` is `stop.max-blocks`, `loads[1]` is `loads.1`, and
/// `duration_ns` has its unit in the value.
fn key_in_file(key: &str) -> String {
    let key = key.replace('[', ".").replace(']', "").replace('_', "-");
    let plain = |part: &str| {
        let units = ["-ns", "-bytes"];
        let without = units.iter().find_map(|unit| part.strip_suffix(unit));
        without.unwrap_or(part).to_owned()
    };
    let parts: Vec<String> = key.split('.').map(plain).collect();
    parts.join(".")
}

impl PlanError {
    /// The same error under another message.
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.message = plain(message);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that the label of an error of this file points at.
    fn pointed_at(text: &str) -> String {
        catalogue::install();
        let error = crate::parse_experiment("x\u{1b}[2J.toml", text).unwrap_err();
        let label = error.labels().unwrap().next().unwrap();
        let source = error.source_code().unwrap();
        let span = source.read_span(label.inner(), 0, 0).unwrap();
        let name = span.name().unwrap_or_default();
        assert!(name.starts_with("x\\u{1b}"), "{name}");
        String::from_utf8(span.data().to_vec()).unwrap()
    }

    #[test]
    fn what_is_shown_of_a_file_is_printable_and_the_place_stays_right() {
        let text = "# \u{202e} \u{feff}\n[[arm]]\nname = \"a\"\n[[workload]]\n\
                    kind = \"wakeup\" # \u{202e}\nduration = \"5 \u{2066}s\"\n";
        assert_eq!(pointed_at(text), "\"5 \\u{2066}s\"");
    }

    #[test]
    fn a_line_that_is_too_long_to_be_shown_is_named_by_its_number() {
        let long = "x".repeat(70_000);
        let text = format!("# {long}\n[[arm]]\nname = \"a\"\nnice = \"{long}\"\n");
        let error = crate::parse_experiment("x.toml", &text).unwrap_err();
        assert!(
            error.source_code().is_none(),
            "nothing that miette would show"
        );
        let said = error.to_string();
        assert!(said.starts_with("x.toml, line 4: "), "{}", &said[..80]);
    }

    #[test]
    fn a_name_in_an_error_stays_in_its_line() {
        let text = "[[arm]]\nname = \"a\\nb\"\n[[arm]]\nname = \"a\\nb\"\n";
        let error = crate::parse_experiment("x.toml", text).unwrap_err();
        assert!(!error.to_string().contains('\n'), "{error}");
        let error = crate::parse_arm("\u{1b}[2J\nx").unwrap_err();
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
    }
}
