//! External programs: where they are, a run with a time limit, and what to say of a
//! program that failed or printed something else than expected.

use crate::{Output, sys};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

/// Lines of a program's output that an error quotes.
const QUOTED_LINES: usize = 5;

/// The file that `name` starts: a path as it is, a bare name looked up on PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|p| is_executable(p));
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
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
        .map(|text| last_lines(text))
        .find(|lines| !lines.is_empty())
        .map_or_else(
            || "; it printed nothing".to_owned(),
            |lines| format!("; it printed: {lines}"),
        )
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(QUOTED_LINES);
    lines[skipped..].join("\n")
}

/// Runs a program to its end, for calibration. After `limit_ns` it is killed with all
/// its children, and that is an error.
pub fn run(argv: &[String], limit_ns: u64) -> Result<Output, String> {
    let (name, args) = argv.split_first().ok_or("run a program: none is named")?;
    let started = Instant::now();
    let child = Command::new(name)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|e| format!("start {name}: {e}"))?;
    let finished = wait(child, limit_ns).map_err(|e| format!("run {name}: {e}"))?;
    let (status, stdout, stderr) = finished.ok_or_else(|| {
        let limit = model::format_duration_ns(limit_ns);
        format!("{name} did not end within {limit} and was killed")
    })?;
    Ok(Output {
        stdout,
        stderr,
        success: status.success(),
        status: status_text(status),
        wall_ns: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        user_ns: 0,
        system_ns: 0,
    })
}

/// `None` if the limit passed.
fn wait(mut child: Child, limit_ns: u64) -> std::io::Result<Option<(ExitStatus, String, String)>> {
    let stdout = read_aside(child.stdout.take());
    let stderr = read_aside(child.stderr.take());
    let ended = sys::wait_for_end(child.id(), limit_ns)?;
    // Also after a normal end: what is left of the group would hold the pipes open.
    sys::kill_group(child.id());
    let status = child.wait()?;
    let text = |reader: JoinHandle<String>| reader.join().unwrap_or_default();
    let (stdout, stderr) = (text(stdout), text(stderr));
    Ok(ended.then_some((status, stdout, stderr)))
}

/// Reads in a thread of its own, so that a full pipe stops nobody.
fn read_aside(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is all there is.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn status_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit_ns: u64) -> Result<Output, String> {
        run(
            &["sh".to_owned(), "-c".to_owned(), script.to_owned()],
            limit_ns,
        )
    }

    #[test]
    fn a_program_is_found_on_the_path_or_by_its_path() {
        assert!(find("sh").is_some());
        assert!(find("/bin/sh").is_some());
        assert_eq!(find("no-such-program-anywhere"), None);
        assert_eq!(find("/etc/passwd"), None);
    }

    #[test]
    fn a_run_returns_both_streams_and_the_status() {
        let output = shell("echo out; echo err >&2; exit 3", 60_000_000_000).unwrap();
        assert_eq!(
            (output.stdout.as_str(), output.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert_eq!(output.status, "exit status 3");
        assert!(!output.success);
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let error = shell("sleep 1000 & sleep 1000", 50_000_000).unwrap_err();
        assert!(error.contains("did not end within 50ms"), "{error}");
    }

    #[test]
    fn a_program_that_leaves_a_child_behind_does_not_hang_the_run() {
        let output = shell("sleep 1000 & echo done", 60_000_000_000).unwrap();
        assert_eq!(output.stdout, "done\n");
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
