//! `--live`: the view of the run of this process, on the terminal or as a page.

use crate::exit::CliError;
use crate::output::note;
use doors::shown::Stream;
use live::{Directory, Left, Page, Source};
use results::now::{Now, unix_ns};
use runner::{Event, Progress};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two looks of a page at the results.
const BETWEEN: Duration = Duration::from_secs(1);

/// The view of one run, until it is dropped.
pub struct View {
    ended: Arc<AtomicBool>,
    /// True while the view has the terminal.
    is_open: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The page, where it is one.
    page: Option<Arc<Page>>,
}

impl View {
    /// Opens the view that was asked for: nothing is the terminal, else it is the address of a page.
    pub fn open(
        asked: Option<&str>,
        dir: &Path,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Option<Self>, CliError> {
        let Some(asked) = asked else {
            return Ok(None);
        };
        let mut source = Directory::open(dir)?;
        let ended = Arc::<AtomicBool>::default();
        let is_open = Arc::new(AtomicBool::new(asked.is_empty()));
        let until = Arc::clone(&ended);
        let page = match asked.is_empty() {
            false => Some(Arc::new(listen_at(asked)?)),
            true => None,
        };
        let thread = match page.clone() {
            Some(page) => std::thread::spawn(move || {
                while !until.load(Ordering::Relaxed) {
                    show(&mut source, &page);
                    std::thread::sleep(BETWEEN);
                }
                show(&mut source, &page);
            }),
            None => {
                let (is_open, interrupted) = (Arc::clone(&is_open), Arc::clone(interrupted));
                std::thread::spawn(move || {
                    let left = live::watch(&mut source, &until);
                    is_open.store(false, Ordering::Relaxed);
                    match left {
                        Ok(Left::Interrupted) => interrupted.store(true, Ordering::Relaxed),
                        Ok(Left::Quit) => note!("The run goes on; Ctrl-C ends it."),
                        Ok(Left::RunEnded) => {}
                        Err(error) => note!("note: the view has ended: {error}"),
                    }
                })
            }
        };
        Ok(Some(View {
            ended,
            is_open,
            thread: Some(thread),
            page,
        }))
    }

    /// Closes the view, as the run has ended. A page becomes the report.
    pub fn end(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A view that panicked has nothing to close any more.
            let _ = thread.join();
        }
    }

    /// Puts the report that was written into the place of a page.
    pub fn show_report(&self, html: &Path) {
        if let Some(page) = &self.page {
            show_report(page, html);
        }
    }

    /// The flag that is set while the view has the terminal.
    pub fn is_open(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_open)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.end();
    }
}

/// The page that a run writes at its end, below its directory.
pub const HTML_REPORT: &str = "report/report.html";
/// The most of a report that becomes a page.
const MOST_REPORT: u64 = 64 << 20;

/// Puts a report into the place of a page. One that cannot be read leaves the page as it is.
pub fn show_report(page: &Page, html: &Path) {
    match doors::read::file_text(html, MOST_REPORT) {
        Ok(text) => page.show_report(&text),
        Err(error) => tracing::debug!("{} is not shown: {error}", html.display()),
    }
}

fn show(source: &mut Directory, page: &Page) {
    if let Ok(Some(scene)) = source.look() {
        page.show(&scene);
    }
}

/// Refuses a view on the terminal where there is none, before anything is measured.
pub fn check_view(asked: Option<&str>) -> Result<(), CliError> {
    match asked == Some("") && !Stream::Errors.is_terminal() {
        true => Err(CliError::usage(
            "--live draws on a terminal, and there is none here",
            "take --live=127.0.0.1:0 for a page, or watch the run from a terminal: schedlab watch DIR",
        )),
        false => Ok(()),
    }
}

/// A page at an address of this machine, which is said.
pub fn listen_at(address: &str) -> Result<Page, CliError> {
    let wrong = |what: String| {
        let help =
            "an address and a port of this machine: 127.0.0.1:8080, or 127.0.0.1:0 for any port";
        CliError::usage(format!("{address}: {what}"), help)
    };
    let at: SocketAddr = address
        .parse()
        .map_err(|_| wrong("that is no address with a port".to_owned()))?;
    if !at.ip().to_canonical().is_loopback() {
        return Err(wrong(
            "that is no loopback address; the page is for this machine alone".to_owned(),
        ));
    }
    let page = Page::listen_at(at).map_err(|e| wrong(e.to_string()))?;
    note!("Live     {}", page.address());
    Ok(page)
}

/// The step under way, written for those who watch.
pub struct Pulse {
    dir: PathBuf,
    now: Now,
}

impl Pulse {
    pub fn new(dir: &Path) -> Self {
        Pulse {
            dir: dir.to_owned(),
            now: Now::default(),
        }
    }

    pub fn see_event(&mut self, event: &Event) {
        let now = &mut self.now;
        match event {
            Event::TrialStarted {
                place,
                cell,
                arm,
                attempt,
            } => {
                now.block = place.block;
                (*cell).clone_into(&mut now.cell);
                (*arm).clone_into(&mut now.arm);
                now.attempt = *attempt;
                now.step.clear();
                now.pace = None;
            }
            // Arms that take turns say the same step again and again.
            Event::Step { step } if now.step == *step => return,
            Event::Step { step } => {
                (*step).clone_into(&mut now.step);
                now.pace = None;
            }
            Event::Pace { pace } => {
                now.pace = Some((*pace).clone());
                return self.write();
            }
            Event::BlockEnded {
                state:
                    Progress {
                        elapsed_ns,
                        left_ns,
                        ..
                    },
            } => {
                (now.elapsed_ns, now.left_ns) = (*elapsed_ns, *left_ns);
                now.block_unix_ns = unix_ns();
            }
            _ => return,
        }
        self.now.since_unix_ns = unix_ns();
        self.write();
    }

    fn write(&self) {
        // Nothing that is measured depends on who watches.
        if let Err(error) = self.now.write_in(&self.dir) {
            tracing::debug!("the step is not said to those who watch: {error}");
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        Now::clear_in(&self.dir);
    }
}
