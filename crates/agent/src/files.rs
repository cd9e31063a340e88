//! Files of a trial: on their way to the runner, and removed with it.

use doors::written;
use load::{Output, phase};
use model::{Reply, TrialFile};
use std::path::Path;

/// Longer logs are cut at the front: the end says why something ended.
const LOG_LIMIT_BYTES: usize = 256 << 10;

/// `stdout.log` and `stderr.log`, where there is anything in them, with this before their names.
pub fn send_output(say: &mut dyn FnMut(Reply), output: &Output, begin: &str) {
    send(
        say,
        &format!("{begin}stdout.log"),
        &without_result(&output.stdout),
    );
    send(say, &format!("{begin}stderr.log"), &output.stderr);
}

/// One text file, unless it is empty.
pub fn send(say: &mut dyn FnMut(Reply), name: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let file = TrialFile {
        name: name.to_owned(),
        text: end_of(text),
    };
    say(Reply::File { file });
}

/// Removes a folder with all that is in it, where it is there.
pub fn remove_folder(path: &Path) -> Result<(), String> {
    written::remove_recorded(path).map_err(|error| format!("remove {}: {error}", path.display()))
}

/// The result line of a phased process is stored as metrics and histograms.
/// A program that is not phased may print such a line as a figure.
fn without_result(text: &str) -> String {
    if !text.lines().any(|line| line.trim_end() == phase::READY) {
        return text.to_owned();
    }
    let kept = |line: &&str| {
        !line.starts_with(phase::RESULT)
            && ![phase::READY, phase::BEGIN, phase::END].contains(&line.trim_end())
    };
    text.split_inclusive('\n').filter(kept).collect()
}

fn end_of(text: &str) -> String {
    let Some(cut) = text
        .len()
        .checked_sub(LOG_LIMIT_BYTES)
        .filter(|cut| *cut > 0)
    else {
        return text.to_owned();
    };
    let start = (cut..text.len())
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(cut);
    format!(
        "[{start} bytes before this were left out]\n{}",
        &text[start..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_logs_keep_their_end() {
        let text = "ä".repeat(LOG_LIMIT_BYTES);
        let end = end_of(&text);
        assert!(end.starts_with("[262144 bytes"), "{}", &end[..40]);
        assert!(end.ends_with('ä') && end.len() < text.len());
        assert_eq!(end_of("short"), "short");
    }

    #[test]
    fn the_lines_of_the_protocol_are_not_a_log() {
        let text = "ready\nbegin\nsomething odd\nend\nresult {}\n";
        assert_eq!(without_result(text), "something odd\n");
        assert_eq!(without_result("result 12.5\nend\n"), "result 12.5\nend\n");
    }
}
