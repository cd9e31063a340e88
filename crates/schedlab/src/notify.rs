//! `--notify`: notices about a run for people and programs that do not watch it.
//!
//! Mail goes to sendmail(8), a webhook to curl(1), all else to a command. An address may hold a
//! secret, such as the path of a webhook: it is written neither into results nor into the
//! arguments of another program, which everybody on the machine can read.

use crate::exit::CliError;
use crate::output::note;
use crate::systemd;
use doors::started::{tool_at, tool_command};
use model::Problem;
use model::trial::first_line;
use runner::Event;
use rustix::io::ioctl_fionbio;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// Remedy of every address that cannot be one.
const FORMS: &str =
    "use mailto:ADDRESS, https://…, exec:COMMAND, or @FILE with one of these a line";
/// Whoever is told has answered by then; the run waits for no one longer.
const LIMIT: Duration = Duration::from_secs(20);
/// Time between two notices of trouble; what happens meanwhile is counted.
const BETWEEN: Duration = Duration::from_secs(600);

/// Receiver of notices.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Receiver {
    /// An address for sendmail(8).
    Mail(String),
    /// A URL that takes a JSON body.
    Webhook(String),
    /// A command of the shell, with the same JSON on its standard input.
    Command(String),
}

/// Receivers of the notices of one run.
#[derive(Debug, Default)]
pub struct Notices {
    receivers: Vec<Receiver>,
    name: String,
    directory: PathBuf,
    /// Time of the last notice of trouble, and what has happened since.
    trouble: Option<Instant>,
    unsaid: usize,
}

/// Body of a webhook and of a command.
#[derive(Debug, Serialize)]
struct Notice<'a> {
    /// `start`, `trouble` or `end`.
    event: &'a str,
    name: &'a str,
    host: String,
    directory: String,
    time: String,
    text: &'a str,
}

/// The address for a process that is started in another directory.
pub fn from_anywhere(address: &str) -> Result<String, CliError> {
    Ok(match address.strip_prefix('@') {
        Some(file) => format!("@{}", systemd::absolute_path(Path::new(file))?.display()),
        None => address.to_owned(),
    })
}

impl Notices {
    /// Reads the addresses, and looks for the programs that they need.
    pub fn for_addresses(addresses: &[String]) -> Result<Self, CliError> {
        let mut receivers = Vec::new();
        for address in addresses {
            match address.strip_prefix('@') {
                Some(file) => receivers.extend(of_file(Path::new(file))?),
                None => receivers.push(Receiver::read(address)?),
            }
        }
        for receiver in &receivers {
            receiver.require()?;
        }
        Ok(Notices {
            receivers,
            ..Notices::default()
        })
    }

    /// Takes note of the run that notices are about.
    pub fn is_about(&mut self, name: &str, directory: &Path) {
        self.name = name.to_owned();
        self.directory = directory.to_owned();
    }

    /// Says that a run begins.
    pub fn start(&mut self, name: &str, directory: &Path) {
        self.is_about(name, directory);
        self.send("start", "The run has begun.");
    }

    /// Says what a person should look at while the run goes on.
    pub fn report_event(&mut self, event: &Event) {
        let what = match event {
            Event::TrialEnded { trial } => trial.result.state.headline().map(|why| {
                let state = trial.result.state.name();
                format!("A trial is {state}: {}, {}: {why}", trial.cell, trial.arm)
            }),
            Event::GaveUp { cell, arm, .. } => {
                Some(format!("Gave up on {arm} in {cell}: it never worked."))
            }
            Event::Restarting { why } => {
                Some(format!("Starting the agent again: {}", first_line(why)))
            }
            _ => None,
        };
        if let Some(what) = what {
            self.trouble(&what);
        }
    }

    fn trouble(&mut self, what: &str) {
        if self.trouble.is_some_and(|last| last.elapsed() < BETWEEN) {
            self.unsaid += 1;
            return;
        }
        self.trouble = Some(Instant::now());
        let unsaid = std::mem::take(&mut self.unsaid);
        self.send("trouble", &with_unsaid(what, unsaid));
    }

    /// Says how the run ended.
    pub fn report_end(&mut self, text: &str) {
        let unsaid = std::mem::take(&mut self.unsaid);
        self.send("end", &with_unsaid(text, unsaid));
    }

    /// Sends one notice to all. One that does not arrive is a note: it does not end a run.
    fn send(&self, event: &str, text: &str) {
        if self.receivers.is_empty() {
            return;
        }
        let notice = Notice {
            event,
            name: &self.name,
            host: host(),
            directory: self.directory.display().to_string(),
            time: jiff::Timestamp::now().to_string(),
            text,
        };
        for receiver in &self.receivers {
            if let Err(why) = receiver.send(&notice) {
                let what = receiver.kind();
                note!("note: the notice of the {event} was not sent by {what}: {why}");
            }
        }
    }
}

fn with_unsaid(text: &str, unsaid: usize) -> String {
    match unsaid {
        0 => text.to_owned(),
        unsaid => format!("{text}\nTroubles that were not told one by one: {unsaid}."),
    }
}

fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Addresses of a file, one a line, so that no secret is an argument.
fn of_file(file: &Path) -> Result<Vec<Receiver>, CliError> {
    let text = doors::read::small_file_text(file)
        .map_err(|error| CliError::usage(format!("read {}: {error}", file.display()), FORMS))?;
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(Receiver::read).collect()
}

impl Receiver {
    fn read(address: &str) -> Result<Self, CliError> {
        let is_url = |text: &str| text.starts_with("https://") || text.starts_with("http://");
        let receiver = match address.split_once(':') {
            Some(("mailto", to)) if to.contains('@') && !to.contains(char::is_whitespace) => {
                Receiver::Mail(to.to_owned())
            }
            Some(("exec", command)) if !command.trim().is_empty() => {
                Receiver::Command(command.to_owned())
            }
            _ if is_url(address) && !address.contains(['"', '\n', ' ']) => {
                Receiver::Webhook(address.to_owned())
            }
            _ => {
                let what = format!("`{address}` is no address for notices");
                return Err(CliError::usage(what, FORMS));
            }
        };
        Ok(receiver)
    }

    fn kind(&self) -> &'static str {
        match self {
            Receiver::Mail(_) => "mail",
            Receiver::Webhook(_) => "webhook",
            Receiver::Command(_) => "command",
        }
    }

    fn require(&self) -> Result<(), CliError> {
        let (missing, package) = match self {
            Receiver::Mail(_) if sendmail().is_none() => ("sendmail", "msmtp-mta, or another MTA"),
            Receiver::Webhook(_) if which::which("curl").is_err() => ("curl", "curl"),
            _ => return Ok(()),
        };
        Err(CliError::Unmet(vec![Problem {
            object: "--notify".to_owned(),
            what: format!("{missing} is not installed"),
            remedy: format!("install the package {package}, or use exec:COMMAND"),
        }]))
    }

    fn send(&self, notice: &Notice) -> Result<(), String> {
        let json = serde_json::to_string(notice).map_err(|e| e.to_string())?;
        match self {
            Receiver::Mail(to) => {
                let program = sendmail().ok_or("sendmail is gone")?;
                let mut command = tool_at(&program);
                // `-i`: a line with a single dot is no end.
                command.args(["-t", "-i"]);
                tell(command, &mail(to, notice), LIMIT)
            }
            Receiver::Webhook(url) => {
                let mut command = tool_command("curl");
                command.args(["--silent", "--show-error", "--fail", "--config", "-"]);
                tell(command, &request(url, &json), LIMIT)
            }
            Receiver::Command(line) => {
                // The user's own words.
                let mut command = tool_command("sh");
                command.args(["-c", line]);
                tell(command, &json, LIMIT)
            }
        }
    }
}

/// sendmail(8), which is often outside of PATH.
fn sendmail() -> Option<PathBuf> {
    let usual = ["/usr/sbin/sendmail", "/usr/lib/sendmail"].map(PathBuf::from);
    let found = which::which("sendmail").ok();
    found.or_else(|| usual.into_iter().find(|path| path.exists()))
}

fn mail(to: &str, notice: &Notice) -> String {
    let first = notice.text.lines().next().unwrap_or_default();
    let subject = format!("schedlab {} {}: {first}", notice.name, notice.event);
    // A header is one line of ASCII; the text has the rest.
    let subject: String = subject
        .chars()
        .filter(|c| c.is_ascii() && !c.is_control())
        .take(140)
        .collect();
    format!(
        "To: {to}\nSubject: {subject}\nContent-Type: text/plain; charset=utf-8\n\n{}\n\n\
         Run      {} on {}\nResults  {}\nTime     {}\n",
        notice.text, notice.name, notice.host, notice.directory, notice.time
    )
}

/// Configuration of curl(1) on its standard input.
fn request(url: &str, json: &str) -> String {
    let json = json.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "url = \"{url}\"\nheader = \"Content-Type: application/json\"\nmax-time = {}\n\
         output = \"/dev/null\"\ndata-raw = \"{json}\"\n",
        LIMIT.as_secs()
    )
}

/// Runs a command with a text on its standard input, for at most `limit`: to write, to wait and to
/// read together. What has not ended then is killed with all that it started.
fn tell(mut command: Command, text: &str, limit: Duration) -> Result<(), String> {
    const LOOK: Duration = Duration::from_millis(20);
    // Ctrl-C ends the run, and that has to be told.
    command.process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| e.to_string())?;
    let mut input = Input::new(child.stdin.take(), text);
    let mut errors = Errors::new(child.stderr.take());
    let end = Instant::now() + limit;
    loop {
        input.write();
        let ended = child.try_wait().map_err(|e| e.to_string())?;
        // What it said before it ended is in the pipe; others may hold that open for longer.
        errors.read();
        match ended {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("{status}{}", errors.last())),
            None if Instant::now() >= end => {
                let group = Pid::from_child(&child);
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                return Err(format!("it had not ended after {} s", limit.as_secs()));
            }
            None => std::thread::sleep(LOOK),
        }
    }
}

/// The text that a command has not read yet.
struct Input<'a> {
    pipe: Option<ChildStdin>,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    fn new(pipe: Option<ChildStdin>, text: &'a str) -> Self {
        let pipe = pipe.filter(|pipe| ioctl_fionbio(pipe, true).is_ok());
        let rest = text.as_bytes();
        Input { pipe, rest }
    }

    /// Writes as much as there is room for. A command that does not read is judged by its exit status.
    fn write(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            match pipe.write(self.rest) {
                Ok(count) if count < self.rest.len() => self.rest = &self.rest[count..],
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                _ => self.pipe = None,
            }
        }
    }
}

/// The errors that a command told, as far as they are quoted.
struct Errors {
    pipe: Option<ChildStderr>,
    said: Vec<u8>,
}

impl Errors {
    /// The most that is kept of them.
    const KEPT: usize = 8 << 10;

    fn new(pipe: Option<ChildStderr>) -> Self {
        let pipe = pipe.filter(|pipe| ioctl_fionbio(pipe, true).is_ok());
        Errors {
            pipe,
            said: Vec::new(),
        }
    }

    /// Reads what is there, and no more at a time than a pipe holds.
    fn read(&mut self) {
        let mut bytes = [0; 64 << 10];
        let Some(Ok(count)) = self.pipe.as_mut().map(|pipe| pipe.read(&mut bytes)) else {
            return;
        };
        self.said.extend(&bytes[..count]);
        let excess = self.said.len().saturating_sub(Self::KEPT);
        self.said.drain(..excess);
    }

    fn last(&self) -> String {
        let text = String::from_utf8_lossy(&self.said);
        match text.lines().last() {
            Some(line) => format!(": {}", model::printable::one_line(line)),
            None => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_by_their_scheme() {
        let read = |address: &str| Receiver::read(address).ok();
        assert_eq!(
            read("mailto:a@b.c"),
            Some(Receiver::Mail("a@b.c".to_owned()))
        );
        assert_eq!(
            read("exec:cat > x"),
            Some(Receiver::Command("cat > x".to_owned()))
        );
        let url = "https://hooks.example/T0/B1";
        assert_eq!(read(url), Some(Receiver::Webhook(url.to_owned())));
        for wrong in [
            "a@b.c",
            "mailto:nobody",
            "exec:",
            "ftp://x",
            "https://x\"y",
            "",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_body_survives_the_quotes_of_curls_configuration() {
        let text = request("http://x/", r#"{"text":"a \"b\" \\ c"}"#);
        let line = text
            .lines()
            .find(|line| line.starts_with("data-raw"))
            .unwrap();
        assert_eq!(line, r#"data-raw = "{\"text\":\"a \\\"b\\\" \\\\ c\"}""#);
    }

    #[test]
    fn a_command_gets_the_notice_and_its_failure_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("seen");
        let receivers = vec![Receiver::Command(format!("cat >> {}", path.display()))];
        let mut notices = Notices {
            receivers,
            ..Notices::default()
        };
        notices.start("night", Path::new("results/x"));
        notices.trouble("A trial is void");
        notices.trouble("A trial is void");
        notices.report_end("Done.");
        let seen = std::fs::read_to_string(&path).unwrap();
        let notices: Vec<serde_json::Value> = serde_json::Deserializer::from_str(&seen)
            .into_iter()
            .collect::<Result<_, _>>()
            .unwrap();
        let events: Vec<_> = notices
            .iter()
            .map(|n| n["event"].as_str().unwrap())
            .collect();
        assert_eq!(events, ["start", "trouble", "end"]);
        assert_eq!(notices[0]["name"], "night");
        // The second trouble is within ten minutes of the first.
        assert!(
            notices[2]["text"]
                .as_str()
                .unwrap()
                .ends_with("one by one: 1.")
        );
        let failed = tell(Command::new("false"), "", LIMIT).unwrap_err();
        assert!(failed.contains("exit status: 1"), "{failed}");
    }

    #[test]
    fn a_subject_is_one_line() {
        let notice = Notice {
            event: "end",
            name: "x\nBcc: y",
            host: "h".to_owned(),
            directory: "d".to_owned(),
            time: "t".to_owned(),
            text: "first\nsecond",
        };
        let mail = mail("a@b.c", &notice);
        let head: Vec<&str> = mail.lines().take(4).collect();
        assert_eq!(head[1], "Subject: schedlab xBcc: y end: first");
        assert_eq!(head[3], "");
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn nobody_holds_up_a_notice_by_keeping_its_errors_open() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!(
            "echo lost >&2; sleep 600 & echo $! > {}; exit 1",
            file.display()
        );
        let failed = tell(shell(&script), "", LIMIT).unwrap_err();
        assert!(failed.ends_with(": lost"), "{failed}");
        // It was not waited for, and ends with the test.
        let pid = std::fs::read_to_string(&file).unwrap();
        let ended = shell(&format!("kill {pid}")).status().unwrap();
        assert!(ended.success(), "the sleep had ended");
    }

    #[test]
    fn what_takes_too_long_ends_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        // It reads nothing of a text that no pipe holds.
        let script = format!("sleep 600 & echo $! > {}; wait", file.display());
        let text = "x".repeat(1 << 20);
        let failed = tell(shell(&script), &text, Duration::from_secs(2)).unwrap_err();
        assert!(failed.contains("had not ended after 2 s"), "{failed}");
        let pid = std::fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // A process that was killed takes a moment to end, and nobody may have taken note of its end
        // yet; one that was not would stay.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_long_text_reaches_a_command_that_reads_slowly() {
        let text = "x".repeat(300_000);
        let counted = shell("sleep 0.1; test $(wc -c) = 300000");
        tell(counted, &text, LIMIT).unwrap();
    }
}
