//! Errors of an import: the file, the line where there is one, what is wrong and what to do.

use model::printable::one_line;
use std::fmt;
use std::path::{Path, PathBuf};

/// Something in a file that was to be imported and that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// Path of the file or directory.
    pub path: PathBuf,
    /// Line, from 1 on; `None` for the file as a whole.
    pub line: Option<usize>,
    /// Description of what is wrong.
    pub what: String,
    /// Advice on what to do; empty where nothing can be done.
    pub remedy: String,
}

impl ImportError {
    /// Error of a whole file or directory.
    pub fn in_file(path: &Path, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        ImportError {
            path: path.to_owned(),
            line: None,
            what: what.into(),
            remedy: remedy.into(),
        }
    }

    /// Error of one line, which is counted from 1.
    pub fn in_line(
        path: &Path,
        line: usize,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        ImportError {
            line: Some(line),
            ..ImportError::in_file(path, what, remedy)
        }
    }

    /// Error of JSON, with the line of the parser.
    pub(crate) fn in_json(path: &Path, error: &serde_json::Error, remedy: &str) -> Self {
        let line = Some(error.line()).filter(|line| *line > 0);
        ImportError {
            line,
            ..ImportError::in_file(path, format!("not valid: {error}"), remedy)
        }
    }

    /// Error of the operating system or of the file's kind, as the reader of results says it.
    pub(crate) fn while_reading(path: &Path, error: &dyn fmt::Display) -> Self {
        ImportError::in_file(path, format!("cannot be read: {error}"), "")
    }
}

impl std::error::Error for ImportError {}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.path.to_string_lossy()))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", one_line(&self.what))
    }
}
