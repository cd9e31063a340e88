//! The log of an agent's session: each call as it came, and what became of it.

use crate::exit::CliError;
use doors::written;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Bytes that are kept of the arguments and of the answer of a call.
const MOST_BYTES: usize = 2_000;

/// A file of lines of JSON.
#[derive(Debug)]
pub struct Journal {
    file: Mutex<File>,
}

impl Journal {
    pub fn open(dir: &Path) -> Result<Journal, CliError> {
        let path = dir.join("mcp.log");
        let file = written::open_log(&path)
            .map_err(|e| CliError::internal(format!("opening {}: {e}", path.display())))?;
        Ok(Journal {
            file: Mutex::new(file),
        })
    }

    /// A call and its answer, or the reason for which it was refused.
    pub fn note_call(&self, tool: &str, arguments: &Value, answer: &Result<String, String>) {
        let (word, text) = match answer {
            Ok(text) => ("answer", text),
            Err(text) => ("refused", text),
        };
        let entry = json!({
            "at": jiff::Timestamp::now().to_string(),
            "tool": start_of(tool),
            "arguments": start_of(&arguments.to_string()),
            word: start_of(text),
        });
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(format!("{entry}\n").as_bytes()) {
            tracing::warn!("the log of the session could not be written: {error}");
        }
    }
}

fn start_of(text: &str) -> &str {
    let most = text.len().min(MOST_BYTES);
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
