//! Another program that boots a guest and runs `uname -r` in it.

use crate::Failure;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// One that says nothing for this long in all is hung.
const LIMIT: &str = "300";

/// To the line that is the kernel's release.
pub fn command(words: &[String], release: &str) -> Result<Duration, Failure> {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', r"'\''")))
        .collect();
    let start = Instant::now();
    let mut child = Command::new("timeout")
        .args([LIMIT, "script", "-qefc", &quoted.join(" "), "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let seen = until_release(&mut child, release).map(|()| start.elapsed());
    // Its power-off ends before the next one boots, and is not timed.
    child.wait()?;
    seen
}

fn until_release(child: &mut Child, release: &str) -> Result<(), Failure> {
    let mut reader = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut last = String::new();
    loop {
        let mut line = Vec::new();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Err(format!("did not come up: {last}").into());
        }
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        if text == release {
            drain(reader);
            return Ok(());
        }
        if !text.is_empty() {
            last = text;
        }
    }
}

/// A pipe that nobody reads would hold it up.
fn drain(mut reader: BufReader<ChildStdout>) {
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
}
