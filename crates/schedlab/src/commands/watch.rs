//! `schedlab watch`: a run that is under way, as a picture that is drawn again and again.

use crate::args::{FarArgs, WatchArgs, WatchFormat};
use crate::exit::CliError;
use crate::latest;
use crate::live::{HTML_REPORT, listen_at, show_report};
use crate::output::{self, note};
use crate::targets;
use doors::shown::{self, Stream};
use live::{Directory, Feed, Left, Life, Source};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Time between two looks, where nobody presses keys.
const BETWEEN: Duration = Duration::from_secs(1);

pub fn watch(args: &WatchArgs) -> Result<ExitCode, CliError> {
    let mut watched = Watched::open(args.results.as_deref(), args.far.as_ref())?;
    let source = watched.source.as_mut();
    match (args.format, &args.page) {
        (WatchFormat::Json, _) => send(source)?,
        (WatchFormat::Text, Some(address)) => show_page(source, watched.dir.as_deref(), address)?,
        (WatchFormat::Text, None) => draw(source)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A source of scenes, and the program that sends them from another machine.
struct Watched {
    source: Box<dyn Source>,
    /// The results, where they are on this machine.
    dir: Option<PathBuf>,
    sender: Option<Child>,
}

impl Watched {
    fn open(results: Option<&str>, far: Option<&FarArgs>) -> Result<Self, CliError> {
        if let Some(far) = far {
            return Watched::far(far, results);
        }
        if let Some((target, dir)) = results.and_then(far_results) {
            return Watched::far(&FarArgs { target, yes: false }, Some(dir));
        }
        let dir = latest::or_newest(results.map(Path::new))?;
        Ok(Watched {
            source: Box::new(Directory::open(&dir)?),
            dir: Some(dir),
            sender: None,
        })
    }

    /// A schedlab there reads the results, and sends what is to be drawn.
    fn far(far: &FarArgs, dir: Option<&str>) -> Result<Self, CliError> {
        let mut target = targets::named_target(far, &Arc::default())?;
        let mut words = vec!["watch", "--format=json", "--"];
        words.extend(dir);
        let mut command = target.schedlab_command(&words)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut sender = command.spawn().map_err(CliError::internal)?;
        let stream = sender.stdout.take();
        let stream = stream.ok_or_else(|| CliError::internal("a stream was to be piped"))?;
        Ok(Watched {
            source: Box::new(Feed::read_from(BufReader::new(stream))),
            dir: None,
            sender: Some(sender),
        })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(sender) = &mut self.sender {
            // It may have ended by itself.
            let _ = sender.kill();
            let _ = sender.wait();
        }
    }
}

/// `ssh:HOST:DIR` as a target and a directory there.
fn far_results(given: &str) -> Option<(String, &str)> {
    let host = given.strip_prefix("ssh:")?;
    let bracket = host.find(']').unwrap_or(0);
    let colon = bracket + host[bracket..].find(':')?;
    Some((format!("ssh:{}", &host[..colon]), &host[colon + 1..]))
}

/// Draws on the terminal, until the person leaves.
fn draw(source: &mut dyn Source) -> Result<(), CliError> {
    if !Stream::Errors.is_terminal() || !rustix::termios::isatty(rustix::stdio::stdin()) {
        return Err(CliError::usage(
            "a view is drawn on a terminal, and there is none here",
            "take --page for a page, or --format json for a program",
        ));
    }
    match live::watch(source, &AtomicBool::new(false)) {
        Ok(Left::Quit | Left::Interrupted | Left::RunEnded) => Ok(()),
        Err(error) => Err(CliError::internal(error)),
    }
}

/// A line of JSON for each change, until the run has ended.
fn send(source: &mut dyn Source) -> Result<(), CliError> {
    loop {
        if let Some(scene) = source.look().map_err(CliError::internal)? {
            output::write(&shown::json_line(&scene).map_err(CliError::internal)?)?;
            if scene.life != Life::UnderWay {
                return Ok(());
            }
        }
        std::thread::sleep(BETWEEN);
    }
}

/// A page of this machine, until it is interrupted. When the run has ended, it is the report.
fn show_page(source: &mut dyn Source, dir: Option<&Path>, address: &str) -> Result<(), CliError> {
    let page = listen_at(address)?;
    note!("Ctrl-C ends the page; the run goes on.");
    let mut is_over = false;
    loop {
        if let Some(scene) = source.look().map_err(CliError::internal)? {
            page.show(&scene);
            is_over = scene.life == Life::Ended;
        }
        // A run writes its report a moment after its end.
        if let Some(report) = dir
            .map(|dir| dir.join(HTML_REPORT))
            .filter(|r| is_over && r.exists())
        {
            show_report(&page, &report);
            is_over = false;
        }
        std::thread::sleep(BETWEEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_on_another_machine_are_a_host_and_a_directory() {
        let far = |given| far_results(given).map(|(target, dir)| (target, dir.to_owned()));
        let expected = |target: &str, dir: &str| Some((target.to_owned(), dir.to_owned()));
        assert_eq!(far("ssh:lab3:/var/r"), expected("ssh:lab3", "/var/r"));
        let colons = "ssh:root@lab3:results/a:b";
        assert_eq!(far(colons), expected("ssh:root@lab3", "results/a:b"));
        assert_eq!(far("ssh:[::1]:r"), expected("ssh:[::1]", "r"));
        assert_eq!(far("results/latest"), None);
        assert_eq!(far("ssh:lab3"), None);
    }
}
