//! External programs: what to say of one that failed or printed something else than
//! expected.

use crate::Output;
use model::printable::last_lines;

/// Lines of a program's output that an error quotes.
const QUOTED_LINES: usize = 5;

/// Fails with the status and the last lines of a program that did not succeed.
pub fn succeeded(what: &str, output: &Output) -> Result<(), String> {
    if output.success {
        return Ok(());
    }
    Err(format!(
        "{what} failed with {}{}",
        output.status,
        quoted(output)
    ))
}

/// The error for output without what was expected in it.
pub fn garbage(what: &str, expected: &str, output: &Output) -> String {
    format!("{what} did not print {expected}{}", quoted(output))
}

/// `: ` and the last lines of standard error, or else of standard output.
fn quoted(output: &Output) -> String {
    [&output.stderr, &output.stdout]
        .into_iter()
        .map(|text| last_lines(text, QUOTED_LINES, "\n"))
        .find(|lines| !lines.is_empty())
        .map_or_else(
            || "; it printed nothing".to_owned(),
            |lines| format!("; it printed: {lines}"),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_quotes_the_last_lines_only() {
        let output = Output {
            stderr: (0..9).map(|i| format!("line {i}\n")).collect(),
            status: "exit status 1".to_owned(),
            ..Output::default()
        };
        let error = succeeded("prog", &output).unwrap_err();
        assert!(
            error.starts_with("prog failed with exit status 1"),
            "{error}"
        );
        assert!(
            error.contains("line 8") && !error.contains("line 3"),
            "{error}"
        );
    }
}
