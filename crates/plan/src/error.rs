//! What is wrong with an experiment file or a command line, where, and what to do.

use crate::table::Places;
use miette::{Diagnostic, NamedSource, SourceSpan};
use std::ops::Range;

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
}

impl PlanError {
    pub fn new(message: impl Into<String>) -> Self {
        PlanError {
            message: message.into(),
            help: None,
            source_code: None,
            span: None,
            key: None,
        }
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn with_help_maybe(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    pub(crate) fn at(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span.into());
        self
    }

    /// The key whose value is wrong.
    pub(crate) fn about(mut self, key: &str) -> Self {
        self.key.get_or_insert_with(|| key.to_owned());
        self
    }

    /// The key is one of the table `name`.
    pub(crate) fn within(mut self, name: &str) -> Self {
        self.key = self.key.map(|key| format!("{name}.{key}"));
        self
    }

    /// At the value of its key, rather than at the table around it.
    pub(crate) fn at_key(mut self, places: &Places) -> Self {
        let place = self.key.as_ref().and_then(|key| places.get(key));
        self.span = place.map(|span| span.into()).or(self.span);
        self
    }

    pub(crate) fn in_file(mut self, name: &str, text: &str) -> Self {
        let source = NamedSource::new(name, text.to_owned()).with_language("toml");
        self.source_code = Some(source);
        self
    }
}

/// Serde and toml say what is wrong and where; the nearest right key is ours.
impl From<toml::de::Error> for PlanError {
    fn from(error: toml::de::Error) -> Self {
        let message = error.message().to_owned();
        let help = unknown_field_help(&message);
        let result = PlanError::new(message).with_help_maybe(help);
        match error.span() {
            Some(span) => result.at(span),
            None => result,
        }
    }
}

/// serde's text: ``unknown field `x`, expected one of `a`, `b` ``.
fn unknown_field_help(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field ")?;
    let mut words = rest.split('`').skip(1).step_by(2);
    let wrong = words.next()?;
    crate::nearest(wrong, words).map(|right| format!("did you mean `{right}`?"))
}

impl PlanError {
    /// The same error under another message.
    pub(crate) fn renamed(mut self, message: String) -> Self {
        self.message = message;
        self
    }
}
