//! Programs of the toolstack, run to their end.

use doors::started::tool;
use rustix::process::{Pid, Signal, kill_process};
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

const XL: &str = "xl";
const XENSTORE_READ: &str = "xenstore-read";
/// The kernel's mark of dom0: a file of xenfs with this word.
const CAPABILITIES: &str = "/proc/xen/capabilities";
const CONTROL: &str = "control_d";
/// A call takes seconds where CPUs are emulated. One that waits for a store or a domain that never
/// answers must not keep what comes after it.
const CALL_LIMIT: Duration = Duration::from_secs(60);

/// Error of a step with the toolstack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum XenError {
    /// A program of the toolstack is not installed.
    #[error("{0} is not installed; it is part of Xen's toolstack (Debian: xen-utils)")]
    NotInstalled(&'static str),
    /// A program was refused its step, and said why.
    #[error("`{command}` failed: {why}")]
    Refused {
        /// Program and arguments.
        command: String,
        /// Last line that it printed.
        why: String,
    },
    /// A step cannot be taken as things are.
    #[error("{0}")]
    State(String),
}

/// True in a dom0 that can be managed: it has a toolstack, and the hypervisor obeys it.
pub fn is_there(root: &Path) -> bool {
    let path = root.join(CAPABILITIES.trim_start_matches('/'));
    doors::read::kernel_text(path).is_ok_and(|text| text.contains(CONTROL))
}

/// Standard output of `xl ARGS`.
pub(crate) fn xl(args: &[&str]) -> Result<String, XenError> {
    run(XL, args)
}

/// The value of a key of the store.
pub(crate) fn stored(key: &str) -> Result<String, XenError> {
    Ok(run(XENSTORE_READ, &[key])?.trim().to_owned())
}

fn run(program: &'static str, args: &[&str]) -> Result<String, XenError> {
    let refused = |why: String| XenError::Refused {
        command: format!("{program} {}", args.join(" ")),
        why,
    };
    let child = tool(program)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.map_err(|e| match e.kind() {
        ErrorKind::NotFound => XenError::NotInstalled(program),
        _ => refused(e.to_string()),
    })?;
    let output = output_within(child, CALL_LIMIT).map_err(refused)?;
    if !output.status.success() {
        return Err(refused(last_words(&output)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Output of a process that ends in time. One that does not is killed and not waited for: it may
/// hang in the kernel.
fn output_within(child: Child, limit: Duration) -> Result<Output, String> {
    let pid = Pid::from_child(&child);
    let (sender, receiver) = channel();
    let wait = move || sender.send(child.wait_with_output());
    let waiting = std::thread::Builder::new().spawn(wait);
    waiting.map_err(|e| e.to_string())?;
    match receiver.recv_timeout(limit) {
        Ok(output) => output.map_err(|e| e.to_string()),
        Err(_) => {
            let _ = kill_process(pid, Signal::KILL);
            let seconds = limit.as_secs();
            Err(format!("it did not end within {seconds} s and was killed"))
        }
    }
}

/// The libraries say what was refused, and xl, in the last line, what it gave up.
fn last_words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match model::printable::last_lines(&text, 2, "; ") {
        words if words.is_empty() => output.status.to_string(),
        words => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn shell(script: &str) -> Child {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", script]).stdout(Stdio::piped());
        shell.stderr(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_call_that_hangs_is_killed_and_one_that_says_much_is_read() {
        let hung = output_within(shell("exec sleep 1000"), Duration::from_millis(100));
        assert!(hung.unwrap_err().contains("did not end within"));
        let much = output_within(shell("seq 100000"), Duration::from_secs(60)).unwrap();
        assert!(much.stdout.ends_with(b"\n100000\n"), "{much:?}");
    }
}
