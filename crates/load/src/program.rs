//! External programs: what to say of one that failed or printed something else than
//! expected.

use crate::Output;
use model::printable::last_lines;

/// Lines of a program's output that an error quotes.
const QUOTED_LINES: usize = 5;

/// Debian packages of programs that servers are often started by.
const PACKAGES: [(&str, &str); 6] = [
    ("busybox", "busybox-static"),
    ("java", "default-jre-headless"),
    ("javac", "default-jdk-headless"),
    ("mvn", "maven"),
    ("node", "nodejs"),
    ("python3", "python3"),
];

/// Remedy for a program that is not there, with its package where that is known.
pub fn remedy(program: &str) -> String {
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    match known.map(|(_, package)| package) {
        Some(package) => format!("apt-get install {package}, or give its path"),
        None => format!("install {program}, or give its path"),
    }
}

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
    fn the_package_of_a_program_is_named_where_it_is_known() {
        let java = "apt-get install default-jre-headless, or give its path";
        assert_eq!(remedy("java"), java);
        assert_eq!(remedy("my-server"), "install my-server, or give its path");
    }

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
