//! Programs of the toolstack, run to their end.

use doors::read::{Asked, NoOutput, output_within};
use doors::started::tool_command;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Output;
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
pub(crate) fn run_xl(args: &[&str]) -> Result<String, XenError> {
    run(XL, args)
}

/// The value of a key of the store.
pub(crate) fn read_store_key(key: &str) -> Result<String, XenError> {
    Ok(run(XENSTORE_READ, &[key])?.trim().to_owned())
}

fn run(program: &'static str, args: &[&str]) -> Result<String, XenError> {
    let refused = |why: String| XenError::Refused {
        command: format!("{program} {}", args.join(" ")),
        why,
    };
    let mut command = tool_command(program);
    command.args(args).env("LC_ALL", "C");
    let asked = Asked {
        time: CALL_LIMIT,
        ..Asked::default()
    };
    let output = output_within(&mut command, asked).map_err(|e| match e {
        NoOutput::NotStarted(e) if e.kind() == ErrorKind::NotFound => {
            XenError::NotInstalled(program)
        }
        e => refused(e.to_string()),
    })?;
    if !output.status.success() {
        return Err(refused(last_words(&output)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The libraries say what was refused, and xl, in the last line, what it gave up.
fn last_words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    match model::printable::last_lines(&text, 2, "; ") {
        words if words.is_empty() => output.status.to_string(),
        words => words,
    }
}
